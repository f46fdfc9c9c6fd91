//! The index of a user's jobs on this host: a directory with a socket for each job.
//!
//! It is `$XDG_RUNTIME_DIR/landeck`, else `/tmp/landeck-<user number>`, and only its user may enter
//! it. An entry is `<host identity>.job`, the joining socket of that job as a file: so a container
//! that has the directory reaches the job without sharing a network namespace with it. An agent
//! takes its entry away when it goes. One that was killed cannot: whoever finds an entry at which
//! nobody listens removes it, and every new job looks at a few.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use landeck_wire::HostId;

use crate::socket::{Address, is_listened_to, own_uid};

/// What stands behind the identity in the name of an entry.
const SUFFIX: &str = ".job";
/// In front of the name while the socket is not listened at yet.
const UNFINISHED: &str = ".new-";
/// Entries of others that a new job looks at: more than it makes, so those of killed jobs go.
const LOOKED_AT: usize = 4;
/// Only the user may do anything.
const PRIVATE: u32 = 0o700;

/// The index of this user.
#[derive(Debug, Clone)]
pub struct Index {
    directory: PathBuf,
}

/// A job's entry; removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Entry {
    socket: OwnedFd,
    path: PathBuf,
}

/// Why there is no index.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The directory cannot be made or looked at.
    #[error(
        "{}: {source}; jobs are found without it, but not from other network namespaces",
        .directory.display()
    )]
    System {
        /// The directory.
        directory: PathBuf,
        /// What the kernel says.
        source: io::Error,
    },
    /// Others may write there, or it is another user's, or no directory.
    #[error(
        "{} is not this user's alone, so it is not used: remove it, or set XDG_RUNTIME_DIR",
        .directory.display()
    )]
    NotPrivate {
        /// The directory.
        directory: PathBuf,
    },
}

impl Index {
    /// The index of the user that this process acts as; none where there can be none.
    pub fn of_user() -> Option<Self> {
        Self::open().ok()
    }

    /// The same, with the reason.
    ///
    /// # Errors
    /// [`IndexError`].
    pub fn open() -> Result<Self, IndexError> {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        match runtime.filter(|path| path.is_absolute() && path.is_dir()) {
            Some(runtime) => Self::at(runtime.join("landeck")),
            None => Self::at(PathBuf::from(format!("/tmp/landeck-{}", own_uid()))),
        }
    }

    /// The index in this directory, which is made if it is not there.
    ///
    /// # Errors
    /// [`IndexError`].
    pub fn at(directory: PathBuf) -> Result<Self, IndexError> {
        let system = |source| IndexError::System { directory: directory.clone(), source };
        match DirBuilder::new().mode(PRIVATE).create(&directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(system(error));
            }
            Ok(()) | Err(_) => {}
        }
        // Not followed: in /tmp anybody can put a link there first.
        let found = fs::symlink_metadata(&directory).map_err(system)?;
        let is_private = found.is_dir() && found.uid() == own_uid() && found.mode() & 0o077 == 0;
        if is_private { Ok(Self { directory }) } else { Err(IndexError::NotPrivate { directory }) }
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Makes the entry of a job, and removes some of those that killed jobs have left.
    pub(crate) fn enter(&self, host: HostId) -> io::Result<Entry> {
        self.sweep(LOOKED_AT);
        let unfinished = self.directory.join(format!("{UNFINISHED}{host}"));
        let path = self.directory.join(format!("{host}{SUFFIX}"));
        let socket = Address::File(unfinished.clone()).listen()?;
        // From here on it is listened at: nobody takes it for a dead one.
        if let Err(error) = fs::rename(&unfinished, &path) {
            let _ = fs::remove_file(&unfinished);
            return Err(error);
        }
        Ok(Entry { socket, path })
    }

    /// The jobs that have entries. Those at which nobody listens are removed.
    pub fn jobs(&self) -> Vec<HostId> {
        self.sweep(usize::MAX)
    }

    /// Looks at so many entries, and removes those that are left over; returns the others.
    fn sweep(&self, most: usize) -> Vec<HostId> {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let mut jobs = Vec::new();
        for entry in entries.take(most) {
            let is_socket = entry.file_type().is_ok_and(|kind| kind.is_socket());
            let name = entry.file_name();
            let host = name.to_str().and_then(|name| name.strip_suffix(SUFFIX)?.parse().ok());
            match host {
                Some(host) if is_socket && is_listened_to(&self.address(host)) => jobs.push(host),
                // Whoever made it is gone. Somebody else may have removed it meanwhile.
                Some(_) if is_socket => drop(fs::remove_file(entry.path())),
                _ => self.remove_unfinished(&entry),
            }
        }
        jobs
    }

    /// What a job left that was killed between two steps; those of a moment ago may be at work.
    fn remove_unfinished(&self, entry: &fs::DirEntry) {
        const MINUTE_S: u64 = 60;
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(UNFINISHED));
        let modified = entry.metadata().and_then(|found| found.modified()).ok();
        let age = modified.and_then(|modified| modified.elapsed().ok());
        if is_ours && age.is_some_and(|age| age.as_secs() > MINUTE_S) {
            let _ = fs::remove_file(entry.path());
        }
    }

    /// Where the entry of a job is.
    pub(crate) fn address(&self, host: HostId) -> Address {
        Address::File(self.directory.join(format!("{host}{SUFFIX}")))
    }
}

impl Entry {
    /// The socket, which never blocks.
    pub(crate) fn socket(&self) -> &OwnedFd {
        &self.socket
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let id = std::process::id();
            let place = std::env::temp_dir().join(format!("landeck-test-index-{name}-{id}"));
            fs::create_dir_all(&place).unwrap();
            Self(place)
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn count(directory: &Path) -> usize {
        fs::read_dir(directory).unwrap().count()
    }

    #[test]
    fn an_entry_goes_with_its_job() {
        let place = Place::new("goes");
        let index = Index::at(place.0.join("landeck")).unwrap();
        let mode = fs::metadata(index.directory()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, PRIVATE);
        let entry = index.enter(HostId(7)).unwrap();
        assert_eq!(index.jobs(), [HostId(7)]);
        drop(entry);
        assert_eq!((index.jobs(), count(index.directory())), (vec![], 0));
    }

    #[test]
    fn what_killed_jobs_left_is_removed_by_who_looks_and_by_who_comes() {
        let place = Place::new("left");
        let index = Index::at(place.0.join("landeck")).unwrap();
        let kill = |host| {
            let mut entry = index.enter(HostId(host)).unwrap();
            entry.path = PathBuf::from("/nowhere"); // as if nobody dropped it
        };
        (0..20).for_each(kill);
        assert!(count(index.directory()) <= LOOKED_AT + 1, "new ones made room");
        let live = index.enter(HostId(99)).unwrap();
        assert_eq!(index.jobs(), [HostId(99)]);
        assert_eq!(count(index.directory()), 1);
        drop(live);
    }

    #[test]
    fn a_directory_that_others_can_enter_is_not_used() {
        let place = Place::new("private");
        let open = place.0.join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(matches!(Index::at(open.clone()), Err(IndexError::NotPrivate { .. })));
        let link = place.0.join("link");
        symlink(&place.0, &link).unwrap();
        assert!(matches!(Index::at(link), Err(IndexError::NotPrivate { .. })));
        let nowhere = place.0.join("no/where");
        assert!(matches!(Index::at(nowhere), Err(IndexError::System { .. })));
        let file = place.0.join("file");
        fs::write(&file, "").unwrap();
        assert!(matches!(Index::at(file), Err(IndexError::NotPrivate { .. })));
    }
}
