//! A host's copy of the arbiter's words.
//!
//! Words may arrive in any order and several times. The follower applies each once, in the order of their numbers, and
//! returns what follows: only an applied word changes a far record.

use core::net::SocketAddr;
use std::collections::BTreeMap;

use landeck_wire::word::{HostEntry, HostPlace, LaterProcess, ProcessEnd, Word, WordContent};
use landeck_wire::{HostIncarnation, HostNumber, JobId, ProcessId};

use super::snapshot::{HostStanding, Snapshot};

/// The words beyond a gap that are kept. Later ones are dropped, and sent again when the gap is closed.
const AHEAD_MAX: usize = 1_024;

/// The process or host that a far record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FarSubject {
    /// One process.
    Process(ProcessId),
    /// All processes of an incarnation of a host whose own end has no word.
    Host(HostNumber, HostIncarnation),
}

/// The state that a far record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FarState {
    /// The process left in good order.
    Left,
    /// The process left in good order, and may come back.
    Away,
    /// The process takes part, and the job did not begin with it.
    Came {
        /// Whether it is a guest, and not one that the launcher has started.
        is_guest: bool,
    },
    /// The process takes part again, as its next incarnation.
    Back,
    /// The process died.
    Died {
        /// Its process number on its host.
        pid: u32,
        /// The raw wait status; -1 if only its parent knows it.
        status: i32,
    },
    /// The host is lost: its processes may still run.
    Lost {
        /// The time without an answer, in milliseconds.
        silent_ms: u64,
    },
    /// The host is gone: none of its processes runs.
    Gone,
}

/// A change of far records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FarChange {
    /// The process or host that changed.
    pub subject: FarSubject,
    /// The new state.
    pub state: FarState,
}

/// A consequence of words for the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FollowerOutput {
    /// A host has joined.
    Joined(HostEntry),
    /// A living host has other addresses, or another place.
    Moved {
        /// The host.
        host: HostNumber,
        /// The addresses, best first.
        addresses: Vec<SocketAddr>,
        /// Its place with these.
        place: HostPlace,
    },
    /// Write this into the far records of this host's segments.
    Far(FarChange),
    /// A job ends.
    JobEnds {
        /// The job.
        job: JobId,
        /// Its exit code.
        code: u8,
        /// The cause, in a sentence for people.
        cause: String,
    },
    /// A job is over on all hosts: forget it.
    JobOver {
        /// The job.
        job: JobId,
    },
    /// Ask the arbiter for all words from this number on.
    Resend {
        /// The first missing number.
        from: u64,
    },
}

/// A host of the host table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRecord {
    /// Its entry.
    pub entry: HostEntry,
    /// Its state.
    pub standing: HostStanding,
}

/// A host's copy of the words.
#[derive(Clone, Debug)]
pub struct WordFollower {
    applied: u64,
    ahead: BTreeMap<u64, WordContent>,
    hosts: BTreeMap<HostNumber, HostRecord>,
    came: BTreeMap<ProcessId, (JobId, Option<LaterProcess>)>,
    ended: BTreeMap<ProcessId, (JobId, ProcessEnd)>,
    ending: BTreeMap<JobId, (u8, String)>,
}

impl WordFollower {
    /// Creates the copy of a host that has just joined, from everything that was said before.
    #[must_use]
    pub fn new(snapshot: Snapshot) -> Self {
        let host = |(entry, standing): (HostEntry, HostStanding)| {
            (entry.host, HostRecord { entry, standing })
        };
        Self {
            applied: snapshot.number,
            ahead: BTreeMap::new(),
            hosts: snapshot.hosts.into_iter().map(host).collect(),
            came: snapshot
                .came
                .into_iter()
                .map(|(process, job, kind)| (process, (job, kind)))
                .collect(),
            ended: snapshot
                .ended
                .into_iter()
                .map(|(process, job, end)| (process, (job, end)))
                .collect(),
            ending: snapshot
                .ending
                .into_iter()
                .map(|(job, code, cause)| (job, (code, cause)))
                .collect(),
        }
    }

    /// The number of the last applied word.
    #[must_use]
    pub const fn applied(&self) -> u64 {
        self.applied
    }

    /// Takes a word, and applies all that are in order.
    pub fn take(&mut self, word: Word) -> Vec<FollowerOutput> {
        let mut outputs = Vec::new();
        if word.number <= self.applied {
            return outputs;
        }
        let is_gap = self.ahead.is_empty() && word.number != self.applied + 1;
        if self.ahead.len() < AHEAD_MAX || word.number == self.applied + 1 {
            self.ahead.insert(word.number, word.content);
        }
        while let Some(content) = self.ahead.remove(&(self.applied + 1)) {
            self.applied += 1;
            outputs.extend(self.apply(content));
        }
        if is_gap {
            outputs.push(FollowerOutput::Resend { from: self.applied + 1 });
        }
        outputs
    }

    /// Learns the number of the arbiter's last word from a heartbeat, and asks for what is missing.
    pub fn arbiter_is_at(&mut self, number: u64) -> Option<FollowerOutput> {
        (number > self.applied).then_some(FollowerOutput::Resend { from: self.applied + 1 })
    }

    /// The host with this number.
    #[must_use]
    pub fn host(&self, host: HostNumber) -> Option<&HostRecord> {
        self.hosts.get(&host)
    }

    /// All hosts.
    pub fn hosts(&self) -> impl Iterator<Item = &HostRecord> {
        self.hosts.values()
    }

    /// Whether this incarnation of a host takes part, as far as this host has heard.
    #[must_use]
    pub fn is_living(&self, host: HostNumber, incarnation: HostIncarnation) -> bool {
        self.host(host).is_some_and(|record| {
            record.entry.incarnation == incarnation && record.standing == HostStanding::Living
        })
    }

    /// The end of a process, if it has a word. The loss of its host does not change it.
    #[must_use]
    pub fn end_of(&self, process: ProcessId) -> Option<ProcessEnd> {
        self.ended.get(&process).map(|(_, end)| *end)
    }

    /// The processes of a job that have come or returned and take part, each with its kind if a word says that.
    pub fn came(&self, job: JobId) -> impl Iterator<Item = (ProcessId, Option<LaterProcess>)> {
        let its = self.came.iter().filter(move |(_, (of, _))| *of == job);
        its.map(|(process, (_, kind))| (*process, *kind))
    }

    /// The cause of the end of a job, if a word has ended it and it is not over.
    #[must_use]
    pub fn cause_of_end(&self, job: JobId) -> Option<&str> {
        self.ending.get(&job).map(|(_, cause)| cause.as_str())
    }

    /// Everything that the applied words have said.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let ending = self.ending.iter().map(|(job, (code, cause))| (*job, *code, cause.clone()));
        Snapshot {
            number: self.applied,
            hosts: self.hosts().map(|record| (record.entry.clone(), record.standing)).collect(),
            came: self.came.iter().map(|(process, (job, kind))| (*process, *job, *kind)).collect(),
            ended: self.ended.iter().map(|(process, (job, end))| (*process, *job, *end)).collect(),
            ending: ending.collect(),
        }
    }

    fn apply(&mut self, content: WordContent) -> Option<FollowerOutput> {
        match content {
            WordContent::HostJoined(entry) => {
                let record = HostRecord { entry: entry.clone(), standing: HostStanding::Living };
                self.hosts.insert(entry.host, record);
                Some(FollowerOutput::Joined(entry))
            }
            WordContent::HostMoved { host, incarnation, addresses, place } => {
                let is_it = |record: &&mut HostRecord| record.entry.incarnation == incarnation;
                let record = self.hosts.get_mut(&host).filter(is_it)?;
                (record.entry.addresses, record.entry.place) = (addresses.clone(), place.clone());
                Some(FollowerOutput::Moved { host, addresses, place })
            }
            WordContent::HostLost { host, incarnation, silent_ms } => {
                self.set_standing(host, incarnation, HostStanding::Lost)?;
                Some(far(FarSubject::Host(host, incarnation), FarState::Lost { silent_ms }))
            }
            WordContent::HostGone { host, incarnation } => {
                self.set_standing(host, incarnation, HostStanding::Gone)?;
                Some(far(FarSubject::Host(host, incarnation), FarState::Gone))
            }
            WordContent::ProcessEnded { job, process, end } => {
                self.came.remove(&process);
                self.ended.insert(process, (job, end));
                let state = match end {
                    ProcessEnd::Left => FarState::Left,
                    ProcessEnd::Away => FarState::Away,
                    ProcessEnd::Died { pid, status } => FarState::Died { pid, status },
                };
                Some(far(FarSubject::Process(process), state))
            }
            WordContent::ProcessCame { job, process, kind } => {
                self.came.insert(process, (job, Some(kind)));
                let came = FarState::Came { is_guest: kind.is_guest() };
                Some(far(FarSubject::Process(process), came))
            }
            WordContent::ProcessReturned { job, process } => {
                self.came.insert(process, (job, None));
                let left = (job, ProcessEnd::Left);
                self.ended.extend(process.before().map(|before| (before, left)));
                Some(far(FarSubject::Process(process), FarState::Back))
            }
            WordContent::JobEnds { job, code, cause } => {
                self.ending.insert(job, (code, cause.clone()));
                Some(FollowerOutput::JobEnds { job, code, cause })
            }
            WordContent::JobOver { job } => {
                self.came.retain(|_, (of, _)| *of != job);
                self.ended.retain(|_, (of, _)| *of != job);
                self.ending.remove(&job);
                Some(FollowerOutput::JobOver { job })
            }
        }
    }

    fn set_standing(
        &mut self,
        host: HostNumber,
        incarnation: HostIncarnation,
        standing: HostStanding,
    ) -> Option<()> {
        let record = self.hosts.get_mut(&host).filter(|it| it.entry.incarnation == incarnation)?;
        record.standing = standing;
        Some(())
    }
}

fn far(subject: FarSubject, state: FarState) -> FollowerOutput {
    FollowerOutput::Far(FarChange { subject, state })
}

#[cfg(test)]
mod tests {
    use landeck_wire::word::LaterProcess;

    use super::*;
    use landeck_wire::{Incarnation, SegmentId, Slot};

    fn ended(number: u64) -> Word {
        let process = ProcessId {
            segment: SegmentId(1),
            slot: Slot(number as u32),
            incarnation: Incarnation(1),
        };
        Word {
            number,
            content: WordContent::ProcessEnded { job: JobId(1), process, end: ProcessEnd::Left },
        }
    }

    fn slots(outputs: &[FollowerOutput]) -> Vec<u32> {
        let slot = |output: &FollowerOutput| match output {
            FollowerOutput::Far(FarChange { subject: FarSubject::Process(process), .. }) => {
                Some(process.slot.0)
            }
            _ => None,
        };
        outputs.iter().filter_map(slot).collect()
    }

    #[test]
    fn words_are_applied_in_order_and_once() {
        let mut follower = WordFollower::new(Snapshot::default());
        assert_eq!(follower.take(ended(3)), [FollowerOutput::Resend { from: 1 }]);
        assert_eq!(follower.take(ended(2)), [], "it has asked already");
        assert_eq!(slots(&follower.take(ended(1))), [1, 2, 3]);
        assert_eq!((follower.take(ended(2)), follower.applied()), (Vec::new(), 3));
        assert_eq!(follower.arbiter_is_at(3), None);
        assert_eq!(follower.arbiter_is_at(4), Some(FollowerOutput::Resend { from: 4 }));
    }

    #[test]
    fn the_words_beyond_a_gap_are_bounded() {
        let mut follower = WordFollower::new(Snapshot::default());
        (2..5_000).for_each(|number| assert!(follower.take(ended(number)).len() <= 1));
        assert_eq!(slots(&follower.take(ended(1))).len(), 1 + AHEAD_MAX);
        assert_eq!(follower.arbiter_is_at(5_000), Some(FollowerOutput::Resend { from: 1_026 }));
    }

    #[test]
    fn a_copy_that_begins_with_a_snapshot_says_what_the_others_say() {
        let entry = |incarnation| HostEntry {
            host: HostNumber(1),
            incarnation: HostIncarnation(incarnation),
            name: "a".into(),
            key: [0; 32],
            addresses: Vec::new(),
            cores: 1,
            place: HostPlace::default(),
        };
        let incarnation = HostIncarnation(5);
        let process = |slot| ProcessId {
            segment: SegmentId(1),
            slot: Slot(slot),
            incarnation: Incarnation(1),
        };
        let came = |job, slot| WordContent::ProcessCame {
            job,
            process: process(slot),
            kind: LaterProcess::Guest,
        };
        let back = ProcessId { incarnation: Incarnation(2), ..process(2) };
        let words = [
            WordContent::HostJoined(entry(5)),
            WordContent::HostLost { host: HostNumber(1), incarnation, silent_ms: 3_100 },
            WordContent::HostGone { host: HostNumber(1), incarnation },
            WordContent::HostJoined(entry(6)),
            WordContent::HostLost { host: HostNumber(1), incarnation, silent_ms: 1 },
            WordContent::JobEnds { job: JobId(2), code: 7, cause: "asked".into() },
            WordContent::JobEnds { job: JobId(3), code: 7, cause: "asked".into() },
            WordContent::JobOver { job: JobId(3) },
            came(JobId(2), 1),
            came(JobId(2), 2),
            came(JobId(3), 3),
            WordContent::ProcessEnded { job: JobId(2), process: process(2), end: ProcessEnd::Away },
            WordContent::ProcessReturned { job: JobId(2), process: back },
            WordContent::JobOver { job: JobId(3) },
        ];
        let mut first = WordFollower::new(Snapshot::default());
        let mut outputs = Vec::new();
        for (number, content) in (1..).zip(words) {
            let word = Word { number, content };
            outputs.push(first.take(word.clone()).len());
            if number == 3 {
                assert_eq!(
                    first.host(HostNumber(1)).map(|it| it.standing),
                    Some(HostStanding::Gone)
                );
            }
        }
        assert_eq!(
            outputs,
            [1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1],
            "a word on another incarnation changes nothing"
        );
        assert!(first.is_living(HostNumber(1), HostIncarnation(6)));
        let second = WordFollower::new(first.snapshot());
        assert_eq!(second.snapshot(), first.snapshot());
        assert_eq!(first.snapshot().ending, [(JobId(2), 7, "asked".into())], "one is over");
        assert_eq!([2, 3].map(|job| first.cause_of_end(JobId(job))), [Some("asked"), None]);
        let came: Vec<_> = second.came(JobId(2)).collect();
        assert_eq!(came, [(process(1), Some(LaterProcess::Guest)), (back, None)]);
        assert_eq!(second.came(JobId(3)).count(), 0);
    }
}
