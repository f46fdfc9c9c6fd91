//! The names of a job's mailboxes and groups on all its hosts, as the arbiter keeps them. Each kind has names of its own.
//!
//! A name has one owner in its job: the first process whose request reaches the arbiter. A name ends with its owner, or
//! when the owner takes it back. A process whose end was told publishes nothing more, whatever is still on its way.

use std::collections::{BTreeMap, BTreeSet};

use landeck_wire::{HostNumber, JobId, ProcessId};
use serde::{Deserialize, Serialize};

/// The most names that a job has at a time.
pub const JOB_NAMES_MAX: usize = 1 << 16;

/// The kind of an object whose name holds on all hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum NamedKind {
    /// A mailbox.
    Mailbox,
    /// A group, whose name its server owns.
    Group,
}

/// A process's mailbox or group with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// The number of the name, never given out again in its job.
    pub number: u64,
    /// The process that owns the name.
    pub owner: ProcessId,
    /// The owner's process number on its host.
    pub pid: u32,
    /// Two words of the owner.
    pub words: [u64; 2],
}

/// A process's question about names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NameQuestion {
    /// Give an object of the asking process this name.
    Publish {
        /// The object's kind.
        kind: NamedKind,
        /// The name.
        name: String,
        /// The process number of the asking process.
        pid: u32,
        /// Two words that stand beside the name.
        words: [u64; 2],
    },
    /// Find the object with this name.
    Find {
        /// The object's kind.
        kind: NamedKind,
        /// The name.
        name: String,
    },
    /// Take back the name with this number.
    Withdraw {
        /// The number.
        number: u64,
    },
}

/// The answer to a question about names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NameAnswer {
    /// The name stands, or has stood until now.
    Granted(Named),
    /// Another object has the name.
    Taken(Named),
    /// There is no such name.
    Unknown,
    /// The asking process has ended, or its host is lost.
    NotAlive,
    /// The job has as many names as are possible.
    TooMany,
}

/// The names of all jobs.
#[derive(Clone, Debug, Default)]
pub struct NameTable {
    jobs: BTreeMap<JobId, NamesOfJob>,
    ended: BTreeSet<ProcessId>,
    lost: BTreeSet<HostNumber>,
}

#[derive(Clone, Debug, Default)]
struct NamesOfJob {
    last: u64,
    names: BTreeMap<(NamedKind, String), (HostNumber, Named)>,
}

impl NameTable {
    /// Answers a question of a process on a host.
    pub fn ask(
        &mut self,
        job: JobId,
        host: HostNumber,
        asking: ProcessId,
        question: NameQuestion,
    ) -> NameAnswer {
        if self.ended.contains(&asking) || self.lost.contains(&host) {
            return NameAnswer::NotAlive;
        }
        let of_job = self.jobs.entry(job).or_default();
        match question {
            NameQuestion::Publish { kind, name, pid, words } => {
                let name = (kind, name);
                if let Some((_, taken)) = of_job.names.get(&name) {
                    return NameAnswer::Taken(*taken);
                }
                if of_job.names.len() >= JOB_NAMES_MAX {
                    return NameAnswer::TooMany;
                }
                of_job.last += 1;
                let named = Named { number: of_job.last, owner: asking, pid, words };
                of_job.names.insert(name, (host, named));
                NameAnswer::Granted(named)
            }
            NameQuestion::Find { kind, name } => of_job
                .names
                .get(&(kind, name))
                .map_or(NameAnswer::Unknown, |(_, found)| NameAnswer::Granted(*found)),
            NameQuestion::Withdraw { number } => of_job.withdraw(asking, number),
        }
    }

    /// Takes back the names of a process that has ended.
    pub fn process_ended(&mut self, process: ProcessId) {
        self.ended.insert(process);
        for of_job in self.jobs.values_mut() {
            of_job.names.retain(|_, (_, named)| named.owner != process);
        }
    }

    /// Takes back the names of all processes of a host that is lost or gone.
    pub fn host_lost(&mut self, host: HostNumber) {
        self.lost.insert(host);
        for of_job in self.jobs.values_mut() {
            of_job.names.retain(|_, (at, _)| *at != host);
        }
    }

    /// Forgets a job that is over.
    pub fn job_over(&mut self, job: JobId) {
        self.jobs.remove(&job);
    }
}

impl NamesOfJob {
    fn withdraw(&mut self, asking: ProcessId, number: u64) -> NameAnswer {
        let found = self.names.iter().find(|(_, (_, named))| named.number == number);
        let Some((name, (_, named))) = found.map(|(name, named)| (name.clone(), *named)) else {
            return NameAnswer::Unknown;
        };
        if named.owner != asking {
            return NameAnswer::Taken(named);
        }
        self.names.remove(&name);
        NameAnswer::Granted(named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_wire::{HostId, Incarnation, Slot};

    const JOB: JobId = JobId(7);

    fn process(host: u16, slot: u32) -> ProcessId {
        let (host, incarnation) = (HostId(u64::from(host) + 100), Incarnation(1));
        ProcessId { host, slot: Slot(slot), incarnation }
    }

    /// Publishes a name for a process; its PID is its slot plus 50.
    fn publish(table: &mut NameTable, (host, slot): (u16, u32), name: &str) -> NameAnswer {
        let (name, pid) = (name.to_owned(), slot + 50);
        let (kind, words) = (NamedKind::Mailbox, [u64::from(slot), 9]);
        let question = NameQuestion::Publish { kind, name, pid, words };
        table.ask(JOB, HostNumber(host), process(host, slot), question)
    }

    fn find(table: &mut NameTable, name: &str) -> Option<ProcessId> {
        let question = NameQuestion::Find { kind: NamedKind::Mailbox, name: name.to_owned() };
        match table.ask(JOB, HostNumber(9), process(9, 9), question) {
            NameAnswer::Granted(found) => Some(found.owner),
            NameAnswer::Unknown => None,
            other => panic!("{other:?}"),
        }
    }

    fn number(answer: NameAnswer) -> u64 {
        match answer {
            NameAnswer::Granted(named) => named.number,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_first_of_two_publishers_owns_the_name() {
        let mut table = NameTable::default();
        assert_eq!(find(&mut table, "a"), None);
        assert_eq!(number(publish(&mut table, (1, 0), "a")), 1);
        let refused = publish(&mut table, (2, 0), "a");
        let NameAnswer::Taken(taken) = refused else { panic!("{refused:?}") };
        assert_eq!((taken.owner, taken.pid, taken.words), (process(1, 0), 50, [0, 9]));
        assert!(matches!(publish(&mut table, (1, 0), "a"), NameAnswer::Taken(_)), "its own");
        assert_eq!(find(&mut table, "a"), Some(process(1, 0)));
        let find = |kind| NameQuestion::Find { kind, name: "a".into() };
        let mut ask = |job, kind| table.ask(job, HostNumber(1), process(1, 5), find(kind));
        assert_eq!(ask(JobId(8), NamedKind::Mailbox), NameAnswer::Unknown, "another job");
        assert_eq!(ask(JOB, NamedKind::Group), NameAnswer::Unknown, "another kind");
    }

    #[test]
    fn only_its_owner_takes_a_name_back_and_numbers_are_not_given_out_again() {
        let mut table = NameTable::default();
        let first = number(publish(&mut table, (1, 0), "a"));
        let withdraw = |table: &mut NameTable, (host, slot), number| {
            let question = NameQuestion::Withdraw { number };
            table.ask(JOB, HostNumber(host), process(host, slot), question)
        };
        assert!(matches!(withdraw(&mut table, (2, 0), first), NameAnswer::Taken(_)));
        assert!(matches!(withdraw(&mut table, (1, 0), first), NameAnswer::Granted(_)));
        assert_eq!(withdraw(&mut table, (1, 0), first), NameAnswer::Unknown);
        assert_eq!(number(publish(&mut table, (2, 0), "a")), first + 1);
        assert_eq!(withdraw(&mut table, (1, 0), first), NameAnswer::Unknown, "an old number");
        assert_eq!(find(&mut table, "a"), Some(process(2, 0)));
    }

    #[test]
    fn names_end_with_their_owner_and_a_late_publication_is_refused() {
        let mut table = NameTable::default();
        publish(&mut table, (1, 0), "a");
        publish(&mut table, (1, 1), "b");
        table.process_ended(process(1, 0));
        assert_eq!((find(&mut table, "a"), find(&mut table, "b")), (None, Some(process(1, 1))));
        assert_eq!(publish(&mut table, (1, 0), "a"), NameAnswer::NotAlive);
        assert_eq!(number(publish(&mut table, (2, 0), "a")), 3);
    }

    #[test]
    fn a_lost_host_takes_its_names_along() {
        let mut table = NameTable::default();
        publish(&mut table, (1, 0), "a");
        publish(&mut table, (2, 0), "b");
        table.host_lost(HostNumber(1));
        assert_eq!((find(&mut table, "a"), find(&mut table, "b")), (None, Some(process(2, 0))));
        assert_eq!(publish(&mut table, (1, 4), "c"), NameAnswer::NotAlive);
    }

    #[test]
    fn a_job_that_is_over_leaves_nothing_and_there_is_a_limit() {
        let mut table = NameTable::default();
        for name in 0..JOB_NAMES_MAX {
            number(publish(&mut table, (1, 0), &format!("{name}")));
        }
        assert_eq!(publish(&mut table, (1, 0), "more"), NameAnswer::TooMany);
        table.job_over(JOB);
        assert!(table.jobs.is_empty());
    }
}
