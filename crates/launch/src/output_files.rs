//! The directory for the output of a job: a file for each stream of each rank.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use landeck_host::file;

use crate::output::{Stream, digits};
use crate::request::LaunchError;

/// Creates the directory for output files, unless it exists.
pub(crate) fn make_directory(path: &Path) -> Result<(), LaunchError> {
    file::make_directory(path)
        .map_err(|source| LaunchError::OutputDirectory { path: path.to_owned(), source })
}

/// Opens the file for a stream of a process; returns its name in messages as well. Numbers behind the ranks are those of
/// processes that are started while the job runs.
pub(crate) fn open_output_file(
    directory: &Path,
    rank: u32,
    processes: u32,
    stream: Stream,
) -> Result<(String, OwnedFd), LaunchError> {
    let width = digits(processes - 1);
    let ending = match stream {
        Stream::Output => "stdout",
        Stream::Error => "stderr",
    };
    let path = directory.join(match rank.checked_sub(processes) {
        None => format!("rank-{rank:0width$}.{ending}"),
        Some(number) => format!("started-{number}.{ending}"),
    });
    let name = path.display().to_string();
    let file = output_file(&path).map_err(|source| LaunchError::OutputFile { path, source })?;
    Ok((name, file.into()))
}

/// Opens a file for output. A named pipe is refused: the launcher would wait for its reader even after the end of the
/// job.
fn output_file(path: &Path) -> io::Result<File> {
    // Opened for reading as well: opening a named pipe for writing only would wait for its reader.
    let file = File::options().create(true).truncate(true).read(true).write(true).open(path)?;
    match file.metadata()?.file_type().is_fifo() {
        true => Err(io::Error::other("this is a named pipe, and a file is wanted; remove it")),
        false => Ok(file),
    }
}
