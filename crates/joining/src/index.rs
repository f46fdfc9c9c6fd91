//! The index of a user's jobs on this host: a directory with a socket for each job.
//!
//! It is `$XDG_RUNTIME_DIR/landeck`, else `/tmp/landeck-<user number>`, and only its user may enter it. An entry is
//! `<host identity>-<number of the name>.job`, the joining socket of that job as a file. So a container that has the
//! directory reaches the job without sharing a network namespace with it, and a search for a name asks only those jobs
//! that may have it. An agent removes its entry when it ends. A killed agent cannot: then the launcher or the daemon does,
//! which sees its end. Where those are killed too, any process that finds an entry at which nobody listens removes it, and
//! every new job looks at a few.
//!
//! The directory stays even without entries: a container that has it mounted would not see a new one, and no other user
//! can take its name while it exists.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use landeck_host::private_directory::{self, PrivateDirectoryError};
use landeck_memory::JobName;
use landeck_wire::SegmentId;

use crate::address::{Address, is_listened_to, own_uid};

/// The end of an entry's name, after the identity.
const SUFFIX: &str = ".job";
/// The beginning of the name while nobody listens at the socket yet.
const UNFINISHED: &str = ".new-";
/// The number of other entries that a new job looks at. It is more than a job makes, so those of killed jobs disappear.
const LOOKED_AT: usize = 4;
/// The mode that lets only the user connect.
const WRITABLE: u32 = 0o600;

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

/// A listed job, whether or not its agent still listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    /// Its identity.
    pub(crate) host: SegmentId,
    /// The number of its name.
    number: u64,
    path: PathBuf,
}

/// The reason why there is no index.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The directory cannot be created or examined.
    #[error(
        "{}: {source}; jobs are found without it, but not from other network namespaces",
        .directory.display()
    )]
    System {
        /// The directory.
        directory: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// Others may write there, another user owns it, or it is no directory.
    #[error(
        "{} is not a directory for this user alone, so it is not used: remove it, or set \
         XDG_RUNTIME_DIR",
        .directory.display()
    )]
    NotPrivate {
        /// The directory.
        directory: PathBuf,
    },
}

impl Index {
    /// The index of the user as which this process acts; `None` if there can be none.
    pub fn of_user() -> Option<Self> {
        Self::open().ok()
    }

    /// The index of the user as which this process acts, or the reason why there is none.
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

    /// The index in this directory, which is created if it does not exist.
    ///
    /// # Errors
    /// [`IndexError`].
    pub fn at(directory: PathBuf) -> Result<Self, IndexError> {
        match private_directory::create(&directory) {
            Ok(()) => Ok(Self { directory }),
            Err(PrivateDirectoryError::System(source)) => {
                Err(IndexError::System { directory, source })
            }
            Err(PrivateDirectoryError::NotPrivate) => Err(IndexError::NotPrivate { directory }),
        }
    }

    /// The path of the directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Creates the entry of a job, and removes some entries that killed jobs have left.
    pub(crate) fn enter(&self, host: SegmentId, name: &JobName) -> io::Result<Entry> {
        self.sweep(LOOKED_AT);
        let unfinished = self.directory.join(format!("{UNFINISHED}{host}"));
        let path = self.directory.join(format!("{host}-{:016x}{SUFFIX}", number_of(name)));
        let socket = Address::File(unfinished.clone()).listen()?;
        // From here on somebody listens, so nobody removes the entry. A process that connects needs the right to write
        // there, whatever the umask is.
        let allowed = fs::set_permissions(&unfinished, fs::Permissions::from_mode(WRITABLE));
        if let Err(error) = allowed.and_then(|()| fs::rename(&unfinished, &path)) {
            let _ = fs::remove_file(&unfinished);
            return Err(error);
        }
        Ok(Entry { socket, path })
    }

    /// Removes what the agent of a job has left, which was killed.
    fn forget(&self, host: SegmentId) {
        let its = self.listed().into_iter().filter(|listed| listed.host == host);
        let unfinished = self.directory.join(format!("{UNFINISHED}{host}"));
        for path in its.map(|listed| listed.path).chain([unfinished]) {
            // It may have been removed before.
            let _ = fs::remove_file(path);
        }
    }

    /// The jobs that have entries. Entries at which nobody listens are removed.
    pub fn jobs(&self) -> Vec<SegmentId> {
        self.sweep(usize::MAX)
    }

    /// Looks at up to `most` entries and removes those of dead jobs; returns the others.
    fn sweep(&self, most: usize) -> Vec<SegmentId> {
        let mut jobs = Vec::new();
        for entry in self.entries().take(most) {
            match Listed::read(&entry) {
                Some(listed) if listed.is_there() => jobs.push(listed.host),
                Some(_) => {}
                None => self.remove_unfinished(&entry),
            }
        }
        jobs
    }

    /// The jobs that have entries; none of them is contacted.
    pub(crate) fn listed(&self) -> Vec<Listed> {
        self.entries().filter_map(|entry| Listed::read(&entry)).collect()
    }

    fn entries(&self) -> impl Iterator<Item = fs::DirEntry> + use<> {
        fs::read_dir(&self.directory).into_iter().flatten().flatten()
    }

    /// Removes the unfinished entry of a job that was killed between two steps. A recent one may still be at work.
    fn remove_unfinished(&self, entry: &fs::DirEntry) {
        const MINUTE_S: u64 = 60;
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(UNFINISHED));
        let modified = entry.metadata().and_then(|found| found.modified()).ok();
        let age = modified.and_then(|modified| modified.elapsed().ok());
        if is_ours && age.is_some_and(|age| age.as_secs() > MINUTE_S) {
            let _ = fs::remove_file(entry.path());
        }
    }

    /// The address of a job's entry, if it has one.
    pub(crate) fn address(&self, host: SegmentId) -> Option<Address> {
        let listed = self.listed().into_iter().find(|listed| listed.host == host)?;
        Some(Address::File(listed.path))
    }
}

impl Listed {
    /// Parses an entry; `None` if it is none.
    fn read(entry: &fs::DirEntry) -> Option<Self> {
        entry.file_type().ok().filter(fs::FileType::is_socket)?;
        let name = entry.file_name();
        let (host, number) = name.to_str()?.strip_suffix(SUFFIX)?.split_once('-')?;
        let number = u64::from_str_radix(number, 16).ok()?;
        Some(Self { host: host.parse().ok()?, number, path: entry.path() })
    }

    /// Whether the job may have this name or an identity that begins so. Only the job itself knows for sure.
    pub(crate) fn may_be(&self, reference: &str) -> bool {
        self.number == number_of(&JobName::new(reference))
            || self.host.to_string().starts_with(reference)
    }

    /// Whether somebody listens there. If not, the job has ended, and the entry is removed.
    pub(crate) fn is_there(&self) -> bool {
        let is_there = is_listened_to(&Address::File(self.path.clone()));
        if !is_there {
            // Another process may have removed it meanwhile.
            let _ = fs::remove_file(&self.path);
        }
        is_there
    }
}

/// Removes what the killed agent of a job has left in the index of this user.
pub fn forget(host: SegmentId) {
    if let Some(index) = Index::of_user() {
        index.forget(host);
    }
}

/// A hash of a name, which two names rarely share (FNV-1a).
fn number_of(name: &JobName) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let step = |number: u64, byte: u8| (number ^ u64::from(byte)).wrapping_mul(PRIME);
    name.to_string().bytes().fold(BASIS, step)
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
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::fs::symlink;

    struct IndexFolder(PathBuf);

    impl IndexFolder {
        fn new(name: &str) -> Self {
            let id = std::process::id();
            let place = std::env::temp_dir().join(format!("landeck-test-index-{name}-{id}"));
            fs::create_dir_all(&place).unwrap();
            Self(place)
        }
    }

    impl Drop for IndexFolder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn count(directory: &Path) -> usize {
        fs::read_dir(directory).unwrap().count()
    }

    #[test]
    fn an_entry_goes_with_its_job() {
        let place = IndexFolder::new("goes");
        let index = Index::at(place.0.join("landeck")).unwrap();
        let mode = fs::metadata(index.directory()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let entry = index.enter(SegmentId(7), &JobName::new("heat")).unwrap();
        assert_eq!(index.jobs(), [SegmentId(7)]);
        let directory = || fs::metadata(index.directory()).unwrap().ino();
        let before = directory();
        drop(entry);
        assert_eq!((index.jobs(), count(index.directory())), (vec![], 0));
        assert_eq!(directory(), before, "a container may have it mounted");
    }

    #[test]
    fn entries_tell_who_may_be_meant_without_being_asked() {
        let place = IndexFolder::new("meant");
        let index = Index::at(place.0.join("landeck")).unwrap();
        let entry = |host, name| index.enter(SegmentId(host), &JobName::new(name)).unwrap();
        let _entries = [entry(0xab << 56, "heat"), entry(0xcd << 56, "a/b \u{fc}")];
        let meant = |reference: &str| {
            let listed = index.listed().into_iter().filter(|listed| listed.may_be(reference));
            listed.map(|listed| listed.host.0 >> 56).collect::<Vec<_>>()
        };
        assert_eq!((meant("heat"), meant("a/b \u{fc}")), (vec![0xab], vec![0xcd]));
        assert_eq!((meant("cd00"), meant("hea")), (vec![0xcd], vec![]));
        assert_eq!(index.address(SegmentId(1)), None);
        assert!(index.address(SegmentId(0xab << 56)).is_some_and(|at| is_listened_to(&at)));
    }

    #[test]
    fn entries_of_killed_jobs_are_removed_at_each_look_and_each_new_job() {
        let place = IndexFolder::new("left");
        let index = Index::at(place.0.join("landeck")).unwrap();
        let kill = |host| {
            let mut entry = index.enter(SegmentId(host), &JobName::new("heat")).unwrap();
            entry.path = PathBuf::from("/nowhere"); // as if it were never dropped
        };
        kill(5);
        assert_eq!(count(index.directory()), 1);
        index.forget(SegmentId(6));
        assert_eq!(count(index.directory()), 1);
        index.forget(SegmentId(5));
        assert_eq!(count(index.directory()), 0, "who sees the end of the agent");
        (0..20).for_each(kill);
        assert!(count(index.directory()) <= LOOKED_AT + 1, "new ones made room");
        let live = index.enter(SegmentId(99), &JobName::new("heat")).unwrap();
        assert_eq!(index.jobs(), [SegmentId(99)]);
        assert_eq!(count(index.directory()), 1);
        drop(live);
    }

    #[test]
    fn a_directory_that_others_can_enter_is_not_used() {
        let place = IndexFolder::new("private");
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
