//! The journal of a daemon: everything that its next run needs, in the memory of its keeper.
//!
//! A daemon tells its keeper of each change before it acts on it. The keeper understands nothing of it. It gives all entries to
//! the next run, which is its child.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use landeck_host::say::complain;
use landeck_launch::parcel;
use landeck_launch::part::KeptPipe;
use landeck_launch::spec::JobSpec;
use landeck_wire::{ControlMessage, HostNumber, JobId};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{Errno, pread, pwrite, retry_on_intr};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
};
use serde::{Deserialize, Serialize};

use crate::bootstrap::{Enrolment, Place};
use crate::trunks::envelope::CONTENT_BYTES_MAX;

mod copies;

use copies::Copies;

/// How long a daemon waits for a keeper that does not read.
const PATIENCE: Duration = Duration::from_secs(10);

/// The name of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum EntryName {
    /// The place of the daemon in its machine.
    Place,
    /// The part of a job.
    Part(JobId),
    /// A pipe of a part, by its number.
    Pipe(JobId, u32),
    /// A job that the daemon conducts.
    Conducted(JobId),
}

/// The content of an entry. Its descriptors stand beside it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Entry {
    /// The listening socket of the daemon, and its socket for datagrams, stand beside it.
    Place(Box<KeptPlace>),
    /// The conductor has asked for a part, which does not run yet.
    Asked {
        /// The host whose daemon conducts the job.
        conductor: HostNumber,
    },
    /// The part runs. Its segment, the conversation with its guardian, and the listening socket for its processes stand
    /// beside it.
    Runs {
        /// The host whose daemon conducts the job.
        conductor: HostNumber,
        /// The job.
        spec: Box<JobSpec>,
    },
    /// A pipe of a part, which stands beside it if it is open.
    Pipe(KeptPipe),
    /// The job.
    Conducted {
        /// The job with its hosts.
        spec: Box<JobSpec>,
        /// Whether its processes are started.
        runs: bool,
    },
}

impl ControlMessage for Entry {
    const NAME: &'static str = "an entry of a journal";
    const BYTES_MAX: usize = CONTENT_BYTES_MAX;
}

/// The place of a daemon in a machine that stays.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct KeptPlace {
    /// The knowledge of this host about the machine.
    pub(crate) enrolment: Enrolment,
    /// The private key of the daemon.
    pub(crate) key: Vec<u8>,
    /// The name of the machine, and the options that the daemon was started with.
    pub(crate) place: Place,
}

/// A change of an entry.
#[derive(Debug)]
pub(crate) struct Change<'a> {
    name: EntryName,
    /// The content as it is now; `None`: the entry is needed no more.
    entry: Option<Vec<u8>>,
    descriptors: Vec<BorrowedFd<'a>>,
}

impl<'a> Change<'a> {
    /// An entry is new, or takes the place of the one with its name.
    pub(crate) fn keep(name: EntryName, entry: &Entry, descriptors: Vec<BorrowedFd<'a>>) -> Self {
        Self { name, entry: Some(entry.encode()), descriptors }
    }

    /// An entry is needed no more.
    pub(crate) const fn forget(name: EntryName) -> Self {
        Self { name, entry: None, descriptors: Vec::new() }
    }
}

/// The changes of one moment as they travel: for each the content, and the number of its descriptors.
type Record = Vec<(EntryName, Option<Vec<u8>>, u32)>;

/// The daemon's side of its journal.
#[derive(Debug)]
pub(crate) struct Journal {
    /// `None` for a daemon without a keeper.
    keeper: Option<OwnedFd>,
    /// A file in memory with the time from which the lease of this host counts. It is written so often that the keeper is not
    /// woken for it.
    lease: Option<OwnedFd>,
    /// The record of a founder, which is written as often.
    record: Option<Copies>,
}

/// The keeper's side of a journal.
#[derive(Debug)]
pub(crate) struct KeptJournal {
    /// The socket from which [`Entries::take`] takes the changes.
    pub(crate) changes: OwnedFd,
    lease: OwnedFd,
    record: Copies,
}

impl KeptJournal {
    /// The record of a founder, if the daemon has written one.
    pub(crate) fn record(&self) -> Option<Vec<u8>> {
        self.record.read()
    }

    /// Tells the daemon that this process is its keeper now, and depends on no other process.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn says_that_it_keeps(&self) -> io::Result<()> {
        match send(&self.changes, &[0], SendFlags::NOSIGNAL) {
            // The daemon has ended.
            Ok(_) | Err(Errno::PIPE | Errno::CONNRESET) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// The time from which the lease of the host counts, if the daemon has written one.
    pub(crate) fn leased_from(&self) -> Option<Duration> {
        let mut nanoseconds = [0; 8];
        let count = pread(&self.lease, &mut nanoseconds[..], 0).ok()?;
        (count == nanoseconds.len()).then(|| Duration::from_nanos(u64::from_le_bytes(nanoseconds)))
    }
}

impl Journal {
    /// The journal of a daemon that is not started again.
    pub(crate) const fn none() -> Self {
        Self { keeper: None, lease: None, record: None }
    }

    /// A journal, and the keeper's side of it.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn pair() -> io::Result<(Self, KeptJournal)> {
        let flags = SocketFlags::CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        set_socket_timeout(&ours, Timeout::Send, Some(PATIENCE))?;
        let lease = memfd_create("landeck-lease", MemfdFlags::CLOEXEC)?;
        let record = Copies::new()?;
        let kept =
            KeptJournal { changes: theirs, lease: lease.try_clone()?, record: record.share()? };
        Ok((Self { keeper: Some(ours), lease: Some(lease), record: Some(record) }, kept))
    }

    /// Waits until the keeper depends on no other process.
    ///
    /// # Errors
    /// The kernel's error: the keeper has ended.
    pub(crate) fn wait_for_keeper(&self) -> io::Result<()> {
        let Some(keeper) = &self.keeper else { return Ok(()) };
        match retry_on_intr(|| recv(keeper, &mut [0; 1][..], RecvFlags::empty()))? {
            (_, 0) => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// Whether anybody keeps it.
    pub(crate) const fn is_kept(&self) -> bool {
        self.keeper.is_some()
    }

    /// Writes the time from which the lease of this host counts.
    pub(crate) fn note_lease(&self, from: Duration) {
        if let Some(lease) = &self.lease {
            let nanoseconds = u64::try_from(from.as_nanos()).unwrap_or(u64::MAX);
            // A page of memory that was written before takes it.
            let _ = pwrite(lease, &nanoseconds.to_le_bytes(), 0);
        }
    }

    /// Whether a founder's record is written.
    pub(crate) const fn has_record(&self) -> bool {
        self.record.is_some()
    }

    /// Writes the record of a founder. If there is no memory for it, the founder is not started again.
    pub(crate) fn write_record(&mut self, record: &[u8]) {
        let Some(copies) = &mut self.record else { return };
        if let Err(error) = copies.write(record) {
            complain(format_args!(
                "landeckd has no memory for its record, and is not started again: {error}"
            ));
            self.record = None;
            self.write(vec![Change::forget(EntryName::Place)]);
        }
    }

    /// Writes changes, all or none of which are in the journal of the next run. A keeper that has ended takes the daemon along,
    /// so nobody reads what it does not take.
    pub(crate) fn write(&self, changes: Vec<Change<'_>>) {
        let Some(keeper) = self.keeper.as_ref().filter(|_| !changes.is_empty()) else { return };
        let beside: Vec<BorrowedFd<'_>> =
            changes.iter().flat_map(|change| change.descriptors.iter().copied()).collect();
        let each = changes
            .iter()
            .map(|change| (change.name, change.entry.clone(), change.descriptors.len() as u32));
        let record: Record = each.collect();
        let _ = parcel::send(keeper, &record, &beside);
    }
}

/// The entries of a journal.
#[derive(Debug, Default)]
pub(crate) struct Entries(BTreeMap<EntryName, (Vec<u8>, Vec<OwnedFd>)>);

impl Entries {
    /// Takes the next changes from the socket of [`Journal::pair`]. Returns false if the daemon has closed its side.
    ///
    /// # Errors
    /// The kernel's error; no daemon writes such changes.
    pub(crate) fn take(&mut self, daemon: &OwnedFd) -> io::Result<bool> {
        let Some((record, descriptors)) = parcel::receive::<Record>(daemon)? else {
            return Ok(false);
        };
        let mut descriptors = descriptors.into_iter();
        for (name, entry, count) in record {
            let beside: Vec<OwnedFd> = descriptors.by_ref().take(count as usize).collect();
            match entry {
                Some(bytes) => drop(self.0.insert(name, (bytes, beside))),
                None => self.forget(name),
            }
        }
        Ok(true)
    }

    /// Forgets an entry; with that of a part its pipes.
    fn forget(&mut self, name: EntryName) {
        self.0.remove(&name);
        if let EntryName::Part(job) = name {
            self.0.retain(|name, _| !matches!(name, EntryName::Pipe(of, _) if *of == job));
        }
    }

    /// Whether the daemon has told its place.
    pub(crate) fn has_place(&self) -> bool {
        self.0.contains_key(&EntryName::Place)
    }

    /// Takes the entry with this name out.
    pub(crate) fn remove(&mut self, name: EntryName) -> Option<(Entry, Vec<OwnedFd>)> {
        let (bytes, descriptors) = self.0.remove(&name)?;
        Some((Entry::decode(&bytes).ok()?, descriptors))
    }

    /// Takes all entries out, in the order of their names. One that is not understood is passed over.
    pub(crate) fn into_all(self) -> impl Iterator<Item = (EntryName, Entry, Vec<OwnedFd>)> {
        self.0.into_iter().filter_map(|(name, (bytes, descriptors))| {
            Some((name, Entry::decode(&bytes).ok()?, descriptors))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    const JOB: JobId = JobId(7);

    fn asked(conductor: u16) -> Entry {
        Entry::Asked { conductor: HostNumber(conductor) }
    }

    /// The entries as they are told: conductors and numbers of descriptors.
    fn told(entries: Entries) -> Vec<(EntryName, u16, usize)> {
        let each = entries.into_all().map(|(name, entry, descriptors)| {
            let Entry::Asked { conductor } = entry else { panic!("{entry:?}") };
            (name, conductor.0, descriptors.len())
        });
        each.collect()
    }

    #[test]
    fn the_next_run_has_what_was_written_before_the_end() {
        let names = [EntryName::Part(JOB), EntryName::Conducted(JOB), EntryName::Pipe(JOB, 3)];
        let file = || OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
        let files = [file(), file()];
        let beside = |count: usize| files[..count].iter().map(AsFd::as_fd).collect::<Vec<_>>();
        let write = |journal: &Journal, step: usize| {
            journal.write(match step {
                0 => vec![Change::keep(names[0], &asked(1), beside(0))],
                1 => vec![
                    Change::keep(names[1], &asked(2), beside(2)),
                    Change::keep(names[2], &asked(3), beside(1)),
                ],
                2 => vec![Change::keep(names[0], &asked(4), beside(1))],
                3 => vec![Change::forget(names[1])],
                // A part takes its pipes along.
                _ => vec![Change::forget(names[0])],
            });
        };
        let expected: [&[(EntryName, u16, usize)]; 6] = [
            &[],
            &[(names[0], 1, 0)],
            &[(names[0], 1, 0), (names[2], 3, 1), (names[1], 2, 2)],
            &[(names[0], 4, 1), (names[2], 3, 1), (names[1], 2, 2)],
            &[(names[0], 4, 1), (names[2], 3, 1)],
            &[],
        ];
        for (steps, expected) in expected.into_iter().enumerate() {
            let (journal, keeper) = Journal::pair().unwrap();
            (0..steps).for_each(|step| write(&journal, step));
            drop(journal);
            let mut entries = Entries::default();
            while entries.take(&keeper.changes).unwrap() {}
            assert_eq!(told(entries), expected, "after {steps} steps");
        }
    }

    #[test]
    fn the_lease_of_the_next_run_counts_from_the_same_time() {
        let (journal, keeper) = Journal::pair().unwrap();
        assert_eq!(keeper.leased_from(), None);
        for seconds in [5, 7] {
            journal.note_lease(Duration::from_secs(seconds));
        }
        drop(journal);
        assert_eq!(keeper.leased_from(), Some(Duration::from_secs(7)));
    }

    #[test]
    fn nobody_keeps_the_journal_of_a_daemon_that_is_not_started_again() {
        let journal = Journal::none();
        assert!(!journal.is_kept());
        journal.note_lease(Duration::ZERO);
        journal.write(vec![Change::forget(EntryName::Place)]);
        let mut entries = Entries::default();
        assert!(!entries.has_place() && entries.remove(EntryName::Place).is_none());
    }
}
