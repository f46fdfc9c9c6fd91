//! The report, which is printed and kept beside the values.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use landeck::unstable::host::say::say;

use crate::candidate::Candidate;
use crate::problem::Problem;

/// The text of a run.
pub(crate) struct Report {
    path: PathBuf,
    file: fs::File,
}

impl Report {
    pub(crate) fn begin(folder: &Path) -> Result<Report, Problem> {
        let path = folder.join("report.txt");
        match fs::File::create(&path) {
            Ok(file) => Ok(Report { path, file }),
            Err(error) => Err(Problem::NotWritten { path, error }),
        }
    }

    pub(crate) fn add(&mut self, text: &str) -> Result<(), Problem> {
        say(text)?;
        let written = self.file.write_all(text.as_bytes());
        written.map_err(|error| Problem::NotWritten { path: self.path.clone(), error })
    }
}

/// Says that a candidate is not measured, because one of its files is not there.
pub(crate) fn leave_out(candidate: Candidate, missing: &Path) -> Result<(), Problem> {
    let name = candidate.name();
    Ok(say(&format!("{name} is left out: {} is not there\n", missing.display()))?)
}
