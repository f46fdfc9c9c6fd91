//! The names of a job's mailboxes and groups on all its hosts, and of the ports of all jobs, as the arbiter keeps them. Each kind
//! has names of its own.
//!
//! A name has one owner in its job: the first process whose request reaches the arbiter. A name ends with its owner, or
//! when the owner takes it back. A process whose end was told publishes nothing more, whatever is still on its way. The
//! processes of a lost host may still run and use their names, so these names end when the host is gone.

use std::collections::{BTreeMap, BTreeSet};

use landeck_wire::word::{HostEntry, WordContent};
use landeck_wire::{HostNumber, JobId, ProcessId};
use serde::{Deserialize, Serialize};

use crate::door::registry::Registry;
use crate::door::{ObjectAnswer, ObjectKind, ObjectQuestion, ObjectRequest, Verdict};

/// The scope of the names that all jobs of a machine have in common. No job has this identity.
const MACHINE: JobId = JobId(0);

/// The most names that a job has at a time.
pub const JOB_NAMES_MAX: usize = 1 << 16;

/// The names of all jobs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct NameTable {
    /// The objects with a name, each with the host of its owner.
    jobs: BTreeMap<JobId, Registry<HostNumber>>,
    ended: BTreeMap<JobId, BTreeSet<ProcessId>>,
    lost: BTreeSet<HostNumber>,
}

impl NameTable {
    /// Answers a question of a process on a host, which has this PID there: to give an object a name, to find it by its name, or
    /// to take a name back by its number. Only mailboxes, groups, aborts and ports have names over hosts; those of ports are
    /// names of the machine, and all others of the job.
    pub fn ask(
        &mut self,
        job: JobId,
        host: HostNumber,
        pid: u32,
        question: ObjectQuestion,
    ) -> ObjectAnswer {
        let ended = self.ended.get(&job);
        let has_ended = ended.is_some_and(|ended| ended.contains(&question.process));
        if has_ended || self.lost.contains(&host) {
            return ObjectAnswer::bare(Verdict::NotAlive);
        }
        let has_name = match question.kind {
            ObjectKind::Mailbox | ObjectKind::Group | ObjectKind::Abort | ObjectKind::Port => {
                question.name.is_some()
            }
            ObjectKind::Segment | ObjectKind::Semaphore => {
                return ObjectAnswer::bare(Verdict::Senseless);
            }
        };
        let scope = if question.kind == ObjectKind::Port { MACHINE } else { job };
        let names = self.jobs.entry(scope).or_insert_with(|| Registry::new(JOB_NAMES_MAX, 0));
        match question.asked {
            ObjectRequest::Name if has_name => names.add(question, pid, host),
            ObjectRequest::Find if has_name => match names.find(&question) {
                Some(found) => ObjectAnswer::granted(found.object),
                None => ObjectAnswer::bare(Verdict::Unknown),
            },
            ObjectRequest::Close if !has_name => names.take_back(&question),
            _ => ObjectAnswer::bare(Verdict::Senseless),
        }
    }

    /// Notes what follows from a word of the arbiter.
    pub fn take(&mut self, word: &WordContent) {
        match *word {
            WordContent::ProcessEnded { job, process, .. } => self.process_ended(job, process),
            // Its processes keep their names, and are answered no more.
            WordContent::HostLost { host, .. } => drop(self.lost.insert(host)),
            WordContent::HostGone { host, .. } => self.host_gone(host),
            WordContent::HostJoined(HostEntry { host, .. }) => drop(self.lost.remove(&host)),
            WordContent::JobOver { job } => {
                self.jobs.remove(&job);
                self.ended.remove(&job);
            }
            _ => {}
        }
    }

    /// Takes back the names of a process that has ended, but for the claim to say why it aborts the job: nobody says it again.
    fn process_ended(&mut self, job: JobId, process: ProcessId) {
        self.ended.entry(job).or_default().insert(process);
        for names in self.jobs.values_mut() {
            names.remove_all(|entry| {
                entry.object.owner == process && entry.kind != ObjectKind::Abort
            });
        }
    }

    /// Takes back the names of all processes of a host that is gone.
    fn host_gone(&mut self, host: HostNumber) {
        for names in self.jobs.values_mut() {
            names.remove_all(|entry| entry.beside == host);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::door::{Name, Object};
    use landeck_wire::word::HostPlace;
    use landeck_wire::{HostIncarnation, Incarnation, SegmentId, Slot};

    const JOB: JobId = JobId(7);

    fn process(host: u16, slot: u32) -> ProcessId {
        let (host, incarnation) = (SegmentId(u64::from(host) + 100), Incarnation(1));
        ProcessId { segment: host, slot: Slot(slot), incarnation }
    }

    /// Publishes a name for a process; its PID is its slot plus 50.
    fn publish(table: &mut NameTable, (host, slot): (u16, u32), name: &str) -> ObjectAnswer {
        let words = [u64::from(slot), 9];
        let question = ObjectQuestion { words, ..about(process(host, slot), ObjectRequest::Name) };
        let question = question.named(&Name::new(name).unwrap());
        table.ask(JOB, HostNumber(host), slot + 50, question)
    }

    fn about(process: ProcessId, asked: ObjectRequest) -> ObjectQuestion {
        ObjectQuestion::new(process, ObjectKind::Mailbox, asked)
    }

    fn find(table: &mut NameTable, name: &str) -> Option<ProcessId> {
        let question = about(process(9, 9), ObjectRequest::Find).named(&Name::new(name).unwrap());
        let answer = table.ask(JOB, HostNumber(9), 59, question);
        match answer.verdict {
            Verdict::Granted => Some(answer.object.owner),
            Verdict::Unknown => None,
            other => panic!("{other:?}"),
        }
    }

    fn number(answer: &ObjectAnswer) -> u64 {
        assert_eq!(answer.verdict, Verdict::Granted);
        answer.object.number
    }

    #[test]
    fn the_first_of_two_publishers_owns_the_name() {
        let mut table = NameTable::default();
        assert_eq!(find(&mut table, "a"), None);
        assert_eq!(number(&publish(&mut table, (1, 0), "a")), 1);
        let taken = publish(&mut table, (2, 0), "a");
        let Object { owner, pid, words, .. } = taken.object;
        assert_eq!(taken.verdict, Verdict::InUse);
        assert_eq!((owner, pid, words), (process(1, 0), 50, [0, 9]));
        assert_eq!(publish(&mut table, (1, 0), "a").verdict, Verdict::InUse, "its own");
        assert_eq!(find(&mut table, "a"), Some(process(1, 0)));
        let question = about(process(1, 5), ObjectRequest::Find).named(&Name::new("a").unwrap());
        let mut ask = |job, kind| {
            let question = ObjectQuestion { kind, ..question.clone() };
            table.ask(job, HostNumber(1), 55, question).verdict
        };
        assert_eq!(ask(JobId(8), ObjectKind::Mailbox), Verdict::Unknown, "another job");
        assert_eq!(ask(JOB, ObjectKind::Group), Verdict::Unknown, "another kind");
    }

    #[test]
    fn only_its_owner_takes_a_name_back_and_numbers_are_not_given_out_again() {
        let mut table = NameTable::default();
        let first = number(&publish(&mut table, (1, 0), "a"));
        let withdraw = |table: &mut NameTable, (host, slot), number| {
            let question =
                ObjectQuestion { number, ..about(process(host, slot), ObjectRequest::Close) };
            table.ask(JOB, HostNumber(host), slot + 50, question).verdict
        };
        assert_eq!(withdraw(&mut table, (2, 0), first), Verdict::InUse);
        assert_eq!(withdraw(&mut table, (1, 0), first), Verdict::Granted);
        assert_eq!(withdraw(&mut table, (1, 0), first), Verdict::Unknown);
        assert_eq!(number(&publish(&mut table, (2, 0), "a")), first + 1);
        assert_eq!(withdraw(&mut table, (1, 0), first), Verdict::Unknown, "an old number");
        assert_eq!(find(&mut table, "a"), Some(process(2, 0)));
    }

    #[test]
    fn what_has_no_name_over_hosts_is_senseless() {
        let mut table = NameTable::default();
        let nameless = |asked| about(process(1, 0), asked);
        let named = |asked| nameless(asked).named(&Name::new("a").unwrap());
        for question in [
            ObjectQuestion { kind: ObjectKind::Segment, ..named(ObjectRequest::Name) },
            ObjectQuestion { kind: ObjectKind::Semaphore, ..named(ObjectRequest::Find) },
            nameless(ObjectRequest::Name),
            nameless(ObjectRequest::Find),
            named(ObjectRequest::Close),
            nameless(ObjectRequest::Make),
            named(ObjectRequest::Open),
        ] {
            let answer = table.ask(JOB, HostNumber(1), 50, question);
            assert_eq!(answer, ObjectAnswer::bare(Verdict::Senseless));
        }
    }

    #[test]
    fn names_end_with_their_owner_and_a_late_publication_is_refused() {
        let mut table = NameTable::default();
        publish(&mut table, (1, 0), "a");
        publish(&mut table, (1, 1), "b");
        table.process_ended(JOB, process(1, 0));
        assert_eq!((find(&mut table, "a"), find(&mut table, "b")), (None, Some(process(1, 1))));
        assert_eq!(publish(&mut table, (1, 0), "a").verdict, Verdict::NotAlive);
        assert_eq!(number(&publish(&mut table, (2, 0), "a")), 3);
    }

    #[test]
    fn one_process_of_a_job_says_why_it_is_aborted_also_when_it_has_ended() {
        let mut table = NameTable::default();
        let name = Name::new("abort").unwrap();
        let claim = |table: &mut NameTable, job, (host, slot)| {
            let question = about(process(host, slot), ObjectRequest::Name).named(&name);
            let question = ObjectQuestion { kind: ObjectKind::Abort, ..question };
            table.ask(job, HostNumber(host), slot + 50, question).verdict
        };
        publish(&mut table, (1, 1), "abort");
        assert_eq!(claim(&mut table, JOB, (1, 0)), Verdict::Granted);
        assert_eq!(claim(&mut table, JOB, (2, 0)), Verdict::InUse);
        table.process_ended(JOB, process(1, 0));
        assert_eq!(claim(&mut table, JOB, (2, 0)), Verdict::InUse);
        assert_eq!(claim(&mut table, JobId(8), (2, 0)), Verdict::Granted, "another job");
        table.take(&WordContent::JobOver { job: JOB });
        assert_eq!(claim(&mut table, JOB, (2, 0)), Verdict::Granted);
    }

    #[test]
    fn a_port_has_one_name_for_all_jobs_until_its_owner_ends() {
        let mut table = NameTable::default();
        let ask = |table: &mut NameTable, (job, host): (u64, u16), asked| {
            let question = ObjectQuestion::new(process(host, 0), ObjectKind::Port, asked);
            table.ask(JobId(job), HostNumber(host), 50, question.named(&Name::new("heat").unwrap()))
        };
        number(&ask(&mut table, (1, 1), ObjectRequest::Name));
        assert_eq!(ask(&mut table, (2, 2), ObjectRequest::Name).verdict, Verdict::InUse);
        let found = ask(&mut table, (2, 2), ObjectRequest::Find);
        assert_eq!((found.verdict, found.object.owner), (Verdict::Granted, process(1, 0)));
        // The job of the one that has asked is no matter.
        table.take(&WordContent::JobOver { job: JobId(2) });
        assert_eq!(ask(&mut table, (3, 2), ObjectRequest::Find).verdict, Verdict::Granted);
        table.process_ended(JobId(1), process(1, 0));
        assert_eq!(ask(&mut table, (2, 2), ObjectRequest::Find).verdict, Verdict::Unknown);
        number(&ask(&mut table, (2, 2), ObjectRequest::Name));
    }

    #[test]
    fn the_names_of_a_lost_host_end_when_it_is_gone() {
        let (host, incarnation) = (HostNumber(1), HostIncarnation(11));
        let mut table = NameTable::default();
        publish(&mut table, (1, 0), "a");
        publish(&mut table, (2, 0), "b");
        table.take(&WordContent::HostLost { host, incarnation, silent_ms: 1 });
        assert_eq!(find(&mut table, "a"), Some(process(1, 0)), "its process may still run");
        assert_eq!(publish(&mut table, (1, 4), "c").verdict, Verdict::NotAlive);
        table.take(&WordContent::HostGone { host, incarnation });
        assert_eq!((find(&mut table, "a"), find(&mut table, "b")), (None, Some(process(2, 0))));
        assert_eq!(publish(&mut table, (1, 4), "c").verdict, Verdict::NotAlive);
        let (name, key, addresses) = ("h1".to_owned(), [0; 32], Vec::new());
        let entry = HostEntry {
            host,
            incarnation,
            name,
            key,
            addresses,
            cores: 1,
            place: HostPlace::default(),
        };
        table.take(&WordContent::HostJoined(entry));
        number(&publish(&mut table, (1, 5), "c"));
    }

    #[test]
    fn a_job_that_is_over_leaves_nothing_and_there_is_a_limit() {
        let mut table = NameTable::default();
        for name in 0..JOB_NAMES_MAX {
            number(&publish(&mut table, (1, 0), &format!("{name}")));
        }
        assert_eq!(publish(&mut table, (1, 0), "more").verdict, Verdict::TooMany);
        table.process_ended(JOB, process(1, 0));
        table.take(&WordContent::JobOver { job: JOB });
        assert!(table.jobs.is_empty() && table.ended.is_empty());
    }
}
