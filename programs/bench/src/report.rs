//! The outcome of a run: the report, which is printed and kept, and beside it values and pictures.

use std::error::Error;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use landeck_host::say::say;
use serde::Serialize;

use crate::candidate::Candidate;
use crate::launch;
use crate::problem::Problem;

/// The text of a run, and the folder with all that it leaves.
pub(crate) struct Report {
    folder: PathBuf,
    file: fs::File,
}

impl Report {
    /// Makes the folder and the report in it, and adopts whatever launches will leave.
    pub(crate) fn begin(folder: &Path) -> Result<Report, Problem> {
        let folder = folder.to_owned();
        fs::create_dir_all(&folder)
            .map_err(|error| Problem::NotWritten { path: folder.clone(), error })?;
        launch::adopt_orphans();
        let path = folder.join("report.txt");
        match fs::File::create(&path) {
            Ok(file) => Ok(Report { folder, file }),
            Err(error) => Err(Problem::NotWritten { path, error }),
        }
    }

    pub(crate) fn add(&mut self, text: &str) -> Result<(), Problem> {
        say(text)?;
        let written = self.file.write_all(text.as_bytes());
        written.map_err(|error| self.not_written("report.txt", error))
    }

    /// Keeps values as JSON.
    pub(crate) fn keep(&self, name: &str, values: &impl Serialize) -> Result<(), Problem> {
        let name = format!("{name}.json");
        let text = serde_json::to_string_pretty(values).map_err(io::Error::from);
        let written = text.and_then(|text| fs::write(self.folder.join(&name), text));
        written.map_err(|error| self.not_written(&name, error))
    }

    /// Draws a picture.
    pub(crate) fn draw(
        &self,
        name: &str,
        draw: impl FnOnce(&Path) -> Result<(), Box<dyn Error>>,
    ) -> Result<(), Problem> {
        let path = self.folder.join(format!("{name}.png"));
        draw(&path).map_err(|error| Problem::NotDrawn { path, error: error.to_string() })
    }

    /// Says where all of it is, and how many launches did not end well.
    pub(crate) fn end(&self, all: &str, troubles: usize) -> Result<(), Problem> {
        say(&format!("\n{all}: {}\n", self.folder.display()))?;
        if troubles == 0 { Ok(()) } else { Err(Problem::Troubles { troubles }) }
    }

    fn not_written(&self, name: &str, error: io::Error) -> Problem {
        Problem::NotWritten { path: self.folder.join(name), error }
    }
}

/// All that are there, of those for whom something may be missing; the others are named.
pub(crate) fn present<T>(
    all: impl IntoIterator<Item = T>,
    missing: impl Fn(&T) -> Option<(Candidate, PathBuf)>,
) -> Result<Vec<T>, Problem> {
    let mut present = Vec::new();
    for one in all {
        match missing(&one) {
            None => present.push(one),
            Some((candidate, path)) => {
                let (name, path) = (candidate.name(), path.display());
                say(&format!("{name} is left out: {path} is not there\n"))?;
            }
        }
    }
    Ok(present)
}
