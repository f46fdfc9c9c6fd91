//! The files for the output of a job: one for each stream of each rank, or one for all of a detached job.

use std::env;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use landeck_host::file;
use landeck_host::say::complain;
use landeck_memory::JobName;
use landeck_wire::JobId;

use crate::output::{Stream, digits};
use crate::request::LaunchError;

/// The file for the words of a detached job's launcher, and for the output of its processes if they have no files of their
/// own. Dropping this before the job has begun removes the file if it is empty.
#[derive(Debug)]
pub(crate) struct DetachedFile {
    file: File,
    path: PathBuf,
    has_begun: bool,
}

impl DetachedFile {
    /// Creates the file: `launcher.stderr` in the directory for output files, or `NAME-IDENTITY.out` among the files of
    /// this user.
    pub(crate) fn create(
        directory: Option<&Path>,
        name: &str,
        job: JobId,
    ) -> Result<Self, LaunchError> {
        let path = match directory {
            Some(directory) => directory.join("launcher.stderr"),
            None => {
                let directory = state_directory().ok_or(LaunchError::NoStateDirectory)?;
                file::make_directory(&directory).map_err(|source| LaunchError::OutputFile {
                    path: directory.clone(),
                    source,
                })?;
                let name = JobName::new(name).to_string().replace('/', "-");
                directory.join(format!("{name}-{job}.out"))
            }
        };
        let path = std::path::absolute(&path).unwrap_or(path);
        match output_file(&path) {
            Ok(file) => Ok(Self { file, path, has_begun: false }),
            Err(source) => Err(LaunchError::OutputFile { path, source }),
        }
    }

    /// A further descriptor of the file.
    pub(crate) fn descriptor(&self) -> io::Result<OwnedFd> {
        self.file.as_fd().try_clone_to_owned()
    }

    /// Keeps the file: the job has begun.
    pub(crate) fn keep(&mut self) {
        self.has_begun = true;
    }

    /// The path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl AsFd for DetachedFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for DetachedFile {
    fn drop(&mut self) {
        if self.has_begun {
            return;
        }
        if self.file.metadata().is_ok_and(|found| found.len() == 0) {
            // Without a right to remove it, it stays empty.
            let _ = fs::remove_file(&self.path);
        } else {
            let path = self.path.display();
            complain(format_args!("landeck: the output until then is in {path}"));
        }
    }
}

/// The directory for what this user's detached jobs write.
fn state_directory() -> Option<PathBuf> {
    let absolute =
        |name| env::var_os(name).map(PathBuf::from).filter(|path: &PathBuf| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
    Some(state?.join("landeck"))
}

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
