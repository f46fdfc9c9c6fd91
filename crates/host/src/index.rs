//! The index of a user's jobs on this host: a directory with a socket for each job.
//!
//! It is `$XDG_RUNTIME_DIR/landeck`, else `/tmp/landeck-<user number>`, and only its user may enter
//! it. An entry is `<host identity>-<number of the name>.job`, the joining socket of that job as a
//! file: so a container that has the directory reaches the job without sharing a network namespace
//! with it, and who looks for a name asks only those jobs that may have it. An agent
//! takes its entry away when it goes. One that was killed cannot: whoever finds an entry at which
//! nobody listens removes it, and every new job looks at a few.
//!
//! The directory stays, also without entries: a container that has it mounted would not see a new one, and
//! nobody else can take its name while it is there.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use landeck_memory::JobName;
use landeck_wire::HostId;

use crate::address::{Address, is_listened_to, own_uid};

/// What stands behind the identity in the name of an entry.
const SUFFIX: &str = ".job";
/// In front of the name while the socket is not listened at yet.
const UNFINISHED: &str = ".new-";
/// Entries of others that a new job looks at: more than it makes, so those of killed jobs go.
const LOOKED_AT: usize = 4;
/// Only the user may do anything.
const PRIVATE: u32 = 0o700;
/// Only the user may connect.
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

/// A job that is listed, whether or not anybody is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    /// Its identity.
    pub(crate) host: HostId,
    /// Of its name.
    number: u64,
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
        if !is_private {
            return Err(IndexError::NotPrivate { directory });
        }
        if found.mode() & PRIVATE != PRIVATE {
            // It was made under a umask that takes rights from the user itself.
            fs::set_permissions(&directory, fs::Permissions::from_mode(PRIVATE)).map_err(system)?;
        }
        Ok(Self { directory })
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Makes the entry of a job, and removes some of those that killed jobs have left.
    pub(crate) fn enter(&self, host: HostId, name: &JobName) -> io::Result<Entry> {
        self.sweep(LOOKED_AT);
        let unfinished = self.directory.join(format!("{UNFINISHED}{host}"));
        let path = self.directory.join(format!("{host}-{:016x}{SUFFIX}", number_of(name)));
        let socket = Address::File(unfinished.clone()).listen()?;
        // From here on it is listened at: nobody takes it for a dead one. Who connects must be allowed
        // to write there, whatever the umask is.
        let allowed = fs::set_permissions(&unfinished, fs::Permissions::from_mode(WRITABLE));
        if let Err(error) = allowed.and_then(|()| fs::rename(&unfinished, &path)) {
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

    /// The jobs that have entries, of which nobody is asked.
    pub(crate) fn listed(&self) -> Vec<Listed> {
        self.entries().filter_map(|entry| Listed::read(&entry)).collect()
    }

    fn entries(&self) -> impl Iterator<Item = fs::DirEntry> + use<> {
        fs::read_dir(&self.directory).into_iter().flatten().flatten()
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

    /// Where the entry of a job is, if it has one.
    pub(crate) fn address(&self, host: HostId) -> Option<Address> {
        let listed = self.listed().into_iter().find(|listed| listed.host == host)?;
        Some(Address::File(listed.path))
    }
}

impl Listed {
    /// What an entry says, if it is one.
    fn read(entry: &fs::DirEntry) -> Option<Self> {
        entry.file_type().ok().filter(fs::FileType::is_socket)?;
        let name = entry.file_name();
        let (host, number) = name.to_str()?.strip_suffix(SUFFIX)?.split_once('-')?;
        let number = u64::from_str_radix(number, 16).ok()?;
        Some(Self { host: host.parse().ok()?, number, path: entry.path() })
    }

    /// Whether the job may be meant by a name or by the first digits of its identity; the job itself
    /// knows.
    pub(crate) fn may_be(&self, reference: &str) -> bool {
        self.number == number_of(&JobName::new(reference))
            || self.host.to_string().starts_with(reference)
    }

    /// Whether somebody listens there. If not, whoever made it is gone, and it is removed.
    pub(crate) fn is_there(&self) -> bool {
        let is_there = is_listened_to(&Address::File(self.path.clone()));
        if !is_there {
            // Somebody else may have removed it meanwhile.
            let _ = fs::remove_file(&self.path);
        }
        is_there
    }
}

/// A name as a number that two names rarely have in common (FNV-1a).
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
    use std::os::unix::fs::symlink;

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
        let entry = index.enter(HostId(7), &JobName::new("heat")).unwrap();
        assert_eq!(index.jobs(), [HostId(7)]);
        let directory = || fs::metadata(index.directory()).unwrap().ino();
        let before = directory();
        drop(entry);
        assert_eq!((index.jobs(), count(index.directory())), (vec![], 0));
        assert_eq!(directory(), before, "a container may have it mounted");
    }

    #[test]
    fn entries_tell_who_may_be_meant_without_being_asked() {
        let place = Place::new("meant");
        let index = Index::at(place.0.join("landeck")).unwrap();
        let entry = |host, name| index.enter(HostId(host), &JobName::new(name)).unwrap();
        let _entries = [entry(0xab << 56, "heat"), entry(0xcd << 56, "a/b \u{fc}")];
        let meant = |reference: &str| {
            let listed = index.listed().into_iter().filter(|listed| listed.may_be(reference));
            listed.map(|listed| listed.host.0 >> 56).collect::<Vec<_>>()
        };
        assert_eq!((meant("heat"), meant("a/b \u{fc}")), (vec![0xab], vec![0xcd]));
        assert_eq!((meant("cd00"), meant("hea")), (vec![0xcd], vec![]));
        assert_eq!(index.address(HostId(1)), None);
        assert!(index.address(HostId(0xab << 56)).is_some_and(|at| is_listened_to(&at)));
    }

    #[test]
    fn what_killed_jobs_left_is_removed_by_who_looks_and_by_who_comes() {
        let place = Place::new("left");
        let index = Index::at(place.0.join("landeck")).unwrap();
        let kill = |host| {
            let mut entry = index.enter(HostId(host), &JobName::new("heat")).unwrap();
            entry.path = PathBuf::from("/nowhere"); // as if nobody dropped it
        };
        (0..20).for_each(kill);
        assert!(count(index.directory()) <= LOOKED_AT + 1, "new ones made room");
        let live = index.enter(HostId(99), &JobName::new("heat")).unwrap();
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
