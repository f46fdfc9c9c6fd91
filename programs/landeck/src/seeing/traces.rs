//! `landeck group check`: the traces of a directory, and the promises of their groups.

use landeck_host::say::{SayError, complain, say};
use landeck_traces::{GroupTrace, check, is_trace};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Bytes of the longest trace.
const TRACE_BYTES_MAX: u64 = 1 << 30;
/// Bytes that tell a trace from other files.
const START_BYTES: usize = 32;

/// A directory whose traces cannot be checked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CheckError {
    #[error("{}: {error}", .path.display())]
    Read { path: PathBuf, error: io::Error },
    #[error("{}: it has more than 1 GiB; let the program run shorter", .0.display())]
    Long(PathBuf),
    #[error(
        "{} has no trace of a group: give the directory into which the members wrote theirs, as with --output-dir", .0.display()
    )]
    None(PathBuf),
    #[error(transparent)]
    Say(#[from] SayError),
}

/// Checks the traces in a directory, each group for itself.
///
/// # Errors
/// The directory or a file that cannot be read.
pub(super) fn check_directory(directory: &Path) -> Result<ExitCode, CheckError> {
    let mut groups: BTreeMap<String, Vec<GroupTrace>> = BTreeMap::new();
    let mut are_whole = true;
    for path in files(directory)? {
        let Some(bytes) = read(&path)? else { continue };
        match GroupTrace::decode(&path.display().to_string(), &bytes) {
            Ok(trace) => groups.entry(trace.head.group.clone()).or_default().push(trace),
            Err(error) => {
                complain(format_args!("landeck: {error}"));
                are_whole = false;
            }
        }
    }
    if !are_whole {
        return Ok(ExitCode::FAILURE);
    }
    if groups.is_empty() {
        return Err(CheckError::None(directory.into()));
    }
    let mut all_hold = true;
    for (name, traces) in &groups {
        let report = check(traces);
        all_hold &= report.holds();
        let heading = if groups.len() > 1 { format!("group {name}\n") } else { String::new() };
        say(&format!("{heading}{report}"))?;
    }
    Ok(if all_hold { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The files of a directory, in the order of their names.
fn files(directory: &Path) -> Result<Vec<PathBuf>, CheckError> {
    let failed = |error| CheckError::Read { path: directory.into(), error };
    let entries = fs::read_dir(directory).map_err(failed)?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()).map_err(failed));
    let mut paths = paths.collect::<Result<Vec<_>, _>>()?;
    paths.retain(|path| path.is_file());
    paths.sort();
    Ok(paths)
}

/// The bytes of a file if it is a trace.
fn read(path: &Path) -> Result<Option<Vec<u8>>, CheckError> {
    let failed = |error| CheckError::Read { path: path.into(), error };
    let file = File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    let mut bytes = Vec::new();
    (&file).take(START_BYTES as u64).read_to_end(&mut bytes).map_err(failed)?;
    if !is_trace(&bytes) {
        return Ok(None);
    }
    file.take(TRACE_BYTES_MAX).read_to_end(&mut bytes).map_err(failed)?;
    if length > TRACE_BYTES_MAX { Err(CheckError::Long(path.into())) } else { Ok(Some(bytes)) }
}
