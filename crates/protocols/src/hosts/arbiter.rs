//! The arbiter: it numbers everything that all hosts must learn in one order.
//!
//! A process's end is reported by its own host, a host's loss by the host's detector. The first word on an incarnation
//! is final: a second end of a process is dropped, and so is everything that a lost host reports. A process that is away
//! may still end, or return as its next incarnation. A host's loss has one
//! word; each host derives from it the state of those processes whose end has no word.
//!
//! A word is kept until every living host has applied it. A host that joins later gets a [`Snapshot`] of everything
//! that was said before, and so does a host whose daemon has started again: its copy of the words is empty. What such a daemon
//! asks for again, because the answer to the run before may be lost, has its one word.

use core::net::SocketAddr;
use std::collections::{BTreeMap, VecDeque};

use landeck_wire::word::{HostEntry, HostPlace, LaterProcess, ProcessEnd, Word, WordContent};
use landeck_wire::{HostIncarnation, HostNumber, JobId, ProcessId, SegmentId};
use serde::{Deserialize, Serialize};

use super::snapshot::{HostStanding, Snapshot};

/// The number of group numbers in a block.
const BLOCK: u32 = 4_096;
/// The jobs that are over and still known as such, for what hosts say late about them.
const OVER_MAX: usize = 1_024;
/// The first group number that is not leased. Behind it are as many others, which the host has that a job began on alone.
const NUMBERS_END: u32 = 1 << 26;

/// An action for the arbiter's daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArbiterOutput {
    /// Send a word to a host.
    Send {
        /// The host.
        to: HostNumber,
        /// The word.
        word: Word,
    },
    /// Send a host that has just joined everything that was said before.
    Welcome {
        /// The host.
        to: HostNumber,
        /// Everything that was said.
        snapshot: Snapshot,
    },
    /// Tell a host that this incarnation of it is excluded.
    Exclude {
        /// The host.
        to: HostNumber,
        /// The incarnation.
        incarnation: HostIncarnation,
    },
}

/// The reason why a host is not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdmissionError {
    /// An earlier incarnation of this host may still run.
    #[error("host {} is still in the machine as incarnation {incarnation}: wait until that is gone", .host.0)]
    StillThere {
        /// The host.
        host: HostNumber,
        /// The earlier incarnation.
        incarnation: HostIncarnation,
    },
    /// This incarnation was called lost.
    #[error("incarnation {incarnation} of host {} was called lost: start its daemon again", .host.0)]
    Excluded {
        /// The host.
        host: HostNumber,
        /// The incarnation.
        incarnation: HostIncarnation,
    },
}

/// A block of group numbers that one host may give out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumberBlock {
    /// The first number.
    pub first: u32,
    /// The number of numbers.
    pub count: u32,
}

/// The reason why a host gets no block of group numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NumbersError {
    /// All numbers of the job have been given out.
    #[error("job {job} has used all its group numbers: free groups, or run it as several jobs")]
    Exhausted {
        /// The job.
        job: JobId,
    },
    /// The job is over.
    #[error("job {job} is over")]
    Over {
        /// The job.
        job: JobId,
    },
    /// The host does not take part.
    #[error("host {} takes no part in the machine as incarnation {incarnation}", .host.0)]
    NoHost {
        /// The host.
        host: HostNumber,
        /// The incarnation that asked.
        incarnation: HostIncarnation,
    },
}

/// The arbiter of a machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Arbiter {
    hosts: BTreeMap<HostNumber, Admitted>,
    segments: BTreeMap<SegmentId, JobPart>,
    jobs: BTreeMap<JobId, JobWords>,
    /// The last jobs that are over.
    over: VecDeque<JobId>,
    came: BTreeMap<ProcessId, (JobId, Option<LaterProcess>)>,
    ended: BTreeMap<ProcessId, (JobId, ProcessEnd)>,
    /// The words that some living host has not applied, oldest first.
    kept: VecDeque<Word>,
    last: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Admitted {
    entry: HostEntry,
    standing: HostStanding,
    /// The run of its daemon.
    run: u32,
    /// The number up to which its welcome tells at least, as long as the daemon has not applied so much: it may not have got it.
    welcome: Option<u64>,
    /// The number of the last word that the host has applied, or that its welcome tells.
    applied: u64,
}

/// A segment of a job on a host.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct JobPart {
    job: JobId,
    host: HostNumber,
    incarnation: HostIncarnation,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct JobWords {
    /// Whether its conductor is done with it. It is forgotten when no host has a part of it.
    is_done: bool,
    /// Code and cause of the first failure that has a word.
    failure: Option<(u8, String)>,
    end: Option<(u8, String)>,
    /// The first group number of the next block. Those below the first block are known to every host.
    next_number: u32,
    /// The last request of each host, with its answer.
    requests: BTreeMap<(HostNumber, HostIncarnation), (u64, NumberBlock)>,
}

impl Default for JobWords {
    fn default() -> Self {
        Self {
            is_done: false,
            failure: None,
            end: None,
            next_number: BLOCK,
            requests: BTreeMap::new(),
        }
    }
}

impl Arbiter {
    /// Creates the arbiter of a machine that has its own host alone, and gives the word that this host has joined.
    #[must_use]
    pub fn new(own: HostEntry) -> (Self, Vec<ArbiterOutput>) {
        let mut arbiter = Self {
            hosts: BTreeMap::new(),
            segments: BTreeMap::new(),
            jobs: BTreeMap::new(),
            over: VecDeque::new(),
            came: BTreeMap::new(),
            ended: BTreeMap::new(),
            kept: VecDeque::new(),
            last: 0,
        };
        let outputs = arbiter.join(own);
        (arbiter, outputs)
    }

    /// The number of the last word.
    #[must_use]
    pub const fn last(&self) -> u64 {
        self.last
    }

    /// The newest incarnation of a host, and its standing.
    pub fn host(&self, host: HostNumber) -> Option<(&HostEntry, HostStanding)> {
        self.hosts.get(&host).map(|known| (&known.entry, known.standing))
    }

    /// The newest incarnations of all hosts, and their standings, in the order of their numbers.
    pub fn hosts(&self) -> impl Iterator<Item = (&HostEntry, HostStanding)> + Clone {
        self.hosts.values().map(|known| (&known.entry, known.standing))
    }

    /// The number of words that are kept because some living host has not applied them.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.kept.len()
    }

    /// Admits a host. One that is a member already gets what it misses.
    ///
    /// # Errors
    /// [`AdmissionError`] if an earlier incarnation may still run, or if this one was called lost.
    pub fn admit(&mut self, entry: HostEntry) -> Result<Vec<ArbiterOutput>, AdmissionError> {
        let host = entry.host;
        match self.hosts.get(&host) {
            Some(known) if known.entry.incarnation == entry.incarnation => {
                let incarnation = entry.incarnation;
                match known.standing {
                    HostStanding::Living => Ok(self.trunk_renewed(host, incarnation)),
                    _ => Err(AdmissionError::Excluded { host, incarnation }),
                }
            }
            Some(known) if known.standing != HostStanding::Gone => {
                Err(AdmissionError::StillThere { host, incarnation: known.entry.incarnation })
            }
            _ => Ok(self.join(entry)),
        }
    }

    /// Records that a job has a segment on a host, whose processes that host may report from now on. A job that is over
    /// stays so, and a lost host has no new part.
    pub fn add_part(
        &mut self,
        job: JobId,
        segment: SegmentId,
        host: HostNumber,
        incarnation: HostIncarnation,
    ) {
        if self.is_living(host, incarnation) && !self.over.contains(&job) {
            self.jobs.entry(job).or_default();
            self.segments.insert(segment, JobPart { job, host, incarnation });
        }
    }

    /// Records that a host's part of a job is over: the host reports nothing more of it.
    pub fn remove_part(
        &mut self,
        segment: SegmentId,
        host: HostNumber,
        incarnation: HostIncarnation,
    ) -> Vec<ArbiterOutput> {
        let is_its = |part: &JobPart| (part.host, part.incarnation) == (host, incarnation);
        match self.segments.get(&segment).copied().filter(is_its) {
            Some(part) => {
                self.segments.remove(&segment);
                self.forget_if_over(part.job)
            }
            None => Vec::new(),
        }
    }

    /// Records that a host whose daemon has started again has these parts and no others: the report that one was over may be
    /// lost.
    pub fn keep_parts(
        &mut self,
        host: HostNumber,
        incarnation: HostIncarnation,
        kept: &[SegmentId],
    ) -> Vec<ArbiterOutput> {
        let all: Vec<SegmentId> = self.segments.keys().copied().collect();
        let over = all.into_iter().filter(|segment| !kept.contains(segment));
        over.flat_map(|segment| self.remove_part(segment, host, incarnation)).collect()
    }

    /// Records that a job's conductor is done with it, or that its host is gone. Once no host has a part of the job, a word
    /// says that it is over, and it is forgotten.
    pub fn job_done(&mut self, job: JobId) -> Vec<ArbiterOutput> {
        if self.over.contains(&job) {
            return Vec::new();
        }
        self.jobs.entry(job).or_default().is_done = true;
        self.forget_if_over(job)
    }

    /// Takes the report of a host that a process of its own takes part no more. Only the first counts, and an end after it
    /// was away.
    pub fn process_ended(
        &mut self,
        host: HostNumber,
        incarnation: HostIncarnation,
        process: ProcessId,
        end: ProcessEnd,
    ) -> Vec<ArbiterOutput> {
        if !self.is_living(host, incarnation) {
            return vec![ArbiterOutput::Exclude { to: host, incarnation }];
        }
        let Some(job) = self.job_of(process, (host, incarnation)) else { return Vec::new() };
        let known = self.ended.get(&process).map(|(_, known)| *known);
        if known.is_some_and(|known| known.is_final() || known == end) {
            return Vec::new();
        }
        let mut outputs = self.process_returned(host, incarnation, process);
        self.came.remove(&process);
        self.ended.insert(process, (job, end));
        if let ProcessEnd::Died { pid, status } = end {
            let cause = format!("process {process} (pid {pid}, host {}) died", self.name(host));
            self.note_failure(job, exit_code(status), cause);
        }
        outputs.extend(self.give(WordContent::ProcessEnded { job, process, end }));
        outputs
    }

    /// Takes the report of a host that a process of its own takes part again, as this incarnation. It counts if the one
    /// before is away.
    pub fn process_returned(
        &mut self,
        host: HostNumber,
        incarnation: HostIncarnation,
        process: ProcessId,
    ) -> Vec<ArbiterOutput> {
        if !self.is_living(host, incarnation) {
            return vec![ArbiterOutput::Exclude { to: host, incarnation }];
        }
        let job = self.job_of(process, (host, incarnation));
        let before = process.before().and_then(|before| self.ended.get_mut(&before));
        match (job, before) {
            (Some(job), Some((_, end @ ProcessEnd::Away))) => {
                *end = ProcessEnd::Left;
                self.came.insert(process, (job, None));
                self.give(WordContent::ProcessReturned { job, process })
            }
            _ => Vec::new(),
        }
    }

    /// Takes the report of a host that a process of its own takes part with which the job did not begin. It counts once, and
    /// not if its end has a word.
    pub fn process_came(
        &mut self,
        host: HostNumber,
        incarnation: HostIncarnation,
        process: ProcessId,
        kind: LaterProcess,
    ) -> Vec<ArbiterOutput> {
        if !self.is_living(host, incarnation) {
            return vec![ArbiterOutput::Exclude { to: host, incarnation }];
        }
        match self.job_of(process, (host, incarnation)) {
            Some(job) if !self.ended.contains_key(&process) => {
                let came = (job, Some(kind));
                if self.came.insert(process, came) == Some(came) {
                    return Vec::new();
                }
                self.give(WordContent::ProcessCame { job, process, kind })
            }
            _ => Vec::new(),
        }
    }

    /// The job of a process, if its segment is one of this host.
    fn job_of(&self, process: ProcessId, host: (HostNumber, HostIncarnation)) -> Option<JobId> {
        let part = self.segments.get(&process.segment)?;
        ((part.host, part.incarnation) == host).then_some(part.job)
    }

    /// Takes the report of a host that its daemon listens at other addresses.
    pub fn host_moved(
        &mut self,
        host: HostNumber,
        incarnation: HostIncarnation,
        (addresses, place): (Vec<SocketAddr>, HostPlace),
    ) -> Vec<ArbiterOutput> {
        if !self.is_living(host, incarnation) {
            return vec![ArbiterOutput::Exclude { to: host, incarnation }];
        }
        let Some(Admitted { entry, .. }) = self.hosts.get_mut(&host) else { return Vec::new() };
        if (&entry.addresses, &entry.place) == (&addresses, &place) {
            return Vec::new();
        }
        (entry.addresses, entry.place) = (addresses.clone(), place.clone());
        self.give(WordContent::HostMoved { host, incarnation, addresses, place })
    }

    /// Takes the verdict of a host's detector that it is lost.
    pub fn host_lost(
        &mut self,
        host: HostNumber,
        incarnation: HostIncarnation,
        silent_ms: u64,
    ) -> Vec<ArbiterOutput> {
        if !self.is_living(host, incarnation) {
            return Vec::new();
        }
        let cause = format!("host {} did not answer for {silent_ms} ms", self.name(host));
        let lost = |part: &&JobPart| part.host == host && part.incarnation == incarnation;
        let jobs: Vec<JobId> = self.segments.values().filter(lost).map(|part| part.job).collect();
        jobs.into_iter().for_each(|job| self.note_failure(job, 1, cause.clone()));
        self.set_standing(host, HostStanding::Lost);
        self.give(WordContent::HostLost { host, incarnation, silent_ms })
    }

    /// Takes the verdict that nothing of a lost host runs any more.
    pub fn host_gone(
        &mut self,
        host: HostNumber,
        incarnation: HostIncarnation,
    ) -> Vec<ArbiterOutput> {
        let is_lost = self.hosts.get(&host).is_some_and(|known| {
            known.entry.incarnation == incarnation && known.standing == HostStanding::Lost
        });
        if !is_lost {
            return Vec::new();
        }
        self.set_standing(host, HostStanding::Gone);
        let mut outputs = self.give(WordContent::HostGone { host, incarnation });
        let its = |part: &JobPart| (part.host, part.incarnation) == (host, incarnation);
        let parts: Vec<JobPart> =
            self.segments.values().filter(|part| its(part)).copied().collect();
        self.segments.retain(|_, part| !its(part));
        for part in parts {
            outputs.extend(self.forget_if_over(part.job));
        }
        outputs
    }

    /// Ends a job. Only the first end of a job counts. If a failure of the job has a word, the job ends with the code
    /// and the cause of the first one; otherwise with those given here.
    pub fn end_job(&mut self, job: JobId, code: u8, cause: String) -> Vec<ArbiterOutput> {
        if self.over.contains(&job) {
            return Vec::new();
        }
        let words = self.jobs.entry(job).or_default();
        if words.end.is_some() {
            return Vec::new();
        }
        let (code, cause) = words.failure.clone().unwrap_or((code, cause));
        words.end = Some((code, cause.clone()));
        self.give(WordContent::JobEnds { job, code, cause })
    }

    /// Ends a job that somebody wants to end. It has gone on after its failures, so they are not the cause.
    pub fn order_end(&mut self, job: JobId, code: u8, cause: String) -> Vec<ArbiterOutput> {
        if let Some(words) = self.jobs.get_mut(&job) {
            words.failure = None;
        }
        self.end_job(job, code, cause)
    }

    /// Records that this run of a living host's daemon has applied all words up to a number. What a run before has applied
    /// counts no more.
    pub fn applied(
        &mut self,
        host: HostNumber,
        incarnation: HostIncarnation,
        run: u32,
        number: u64,
    ) {
        let last = self.last;
        let is_it = |known: &&mut Admitted| known.entry.incarnation == incarnation;
        let known = self.hosts.get_mut(&host).filter(is_it).filter(|known| known.run <= run);
        if let Some(known) = known {
            known.applied = known.applied.max(number.min(last));
            known.welcome.take_if(|welcome| *welcome <= number);
        }
        self.forget_applied();
    }

    /// Records that this run of a host's daemon has begun, whose copy of the words is empty: it is welcomed again as soon as
    /// [`Arbiter::trunk_renewed`] says that it is reached.
    pub fn restarted(&mut self, host: HostNumber, incarnation: HostIncarnation, run: u32) {
        let last = self.last;
        let is_it = |known: &&mut Admitted| known.entry.incarnation == incarnation;
        if let Some(known) = self.hosts.get_mut(&host).filter(is_it).filter(|it| it.run < run) {
            (known.run, known.welcome, known.applied) = (run, Some(last), last);
        }
    }

    /// The living hosts whose daemons have started again, with the runs of these. A host that is welcomed has to know them.
    pub fn later_runs(&self) -> impl Iterator<Item = (HostNumber, u32)> {
        let living = self.hosts.iter().filter(|(_, it)| it.standing == HostStanding::Living);
        living.map(|(host, it)| (*host, it.run)).filter(|(_, run)| *run > 0)
    }

    /// Sends a host everything that it has not applied: its trunk is new, or it asks for what it misses.
    pub fn trunk_renewed(
        &mut self,
        host: HostNumber,
        incarnation: HostIncarnation,
    ) -> Vec<ArbiterOutput> {
        let Some(known) = self.hosts.get(&host).filter(|_| self.is_living(host, incarnation))
        else {
            return vec![ArbiterOutput::Exclude { to: host, incarnation }];
        };
        let welcome =
            known.welcome.map(|_| ArbiterOutput::Welcome { to: host, snapshot: self.snapshot() });
        let missing = self.kept.iter().filter(|word| word.number > known.applied);
        let words = missing.map(|word| ArbiterOutput::Send { to: host, word: word.clone() });
        welcome.into_iter().chain(words).collect()
    }

    /// Gives a host a block of a job's group numbers. A request that is repeated with its number gets the same block.
    ///
    /// # Errors
    /// [`NumbersError`] if all numbers are used, or if the host takes no part.
    pub fn lease_numbers(
        &mut self,
        job: JobId,
        host: HostNumber,
        incarnation: HostIncarnation,
        request: u64,
    ) -> Result<NumberBlock, NumbersError> {
        if !self.is_living(host, incarnation) {
            return Err(NumbersError::NoHost { host, incarnation });
        }
        if self.over.contains(&job) {
            return Err(NumbersError::Over { job });
        }
        let words = self.jobs.entry(job).or_default();
        let former = words.requests.get(&(host, incarnation));
        if let Some((_, block)) = former.filter(|(number, _)| *number == request) {
            return Ok(*block);
        }
        let first = words.next_number;
        if first >= NUMBERS_END {
            return Err(NumbersError::Exhausted { job });
        }
        words.next_number = first + BLOCK;
        let block = NumberBlock { first, count: BLOCK };
        words.requests.insert((host, incarnation), (request, block));
        Ok(block)
    }

    /// The jobs that are not forgotten.
    pub fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.jobs.keys().copied()
    }

    /// Everything that has been said so far.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let ending = self.jobs.iter().filter_map(|(job, words)| {
            let (code, cause) = words.end.clone()?;
            Some((*job, code, cause))
        });
        Snapshot {
            number: self.last,
            hosts: self.hosts.values().map(|known| (known.entry.clone(), known.standing)).collect(),
            came: self
                .came
                .iter()
                .map(|(process, (job, guest))| (*process, *job, *guest))
                .collect(),
            ended: self.ended.iter().map(|(process, (job, end))| (*process, *job, *end)).collect(),
            ending: ending.collect(),
        }
    }

    /// Whether this incarnation of a host takes part.
    #[must_use]
    pub fn is_living(&self, host: HostNumber, incarnation: HostIncarnation) -> bool {
        self.hosts.get(&host).is_some_and(|known| {
            known.entry.incarnation == incarnation && known.standing == HostStanding::Living
        })
    }

    fn join(&mut self, entry: HostEntry) -> Vec<ArbiterOutput> {
        let to = entry.host;
        let welcome = ArbiterOutput::Welcome { to, snapshot: self.snapshot() };
        let (standing, applied) = (HostStanding::Living, self.last);
        let known =
            Admitted { entry: entry.clone(), standing, run: 0, welcome: Some(applied), applied };
        self.hosts.insert(to, known);
        let mut outputs = vec![welcome];
        outputs.extend(self.give(WordContent::HostJoined(entry)));
        outputs
    }

    fn give(&mut self, content: WordContent) -> Vec<ArbiterOutput> {
        self.last += 1;
        let word = Word { number: self.last, content };
        self.kept.push_back(word.clone());
        let living = self.hosts.iter().filter(|(_, known)| known.standing == HostStanding::Living);
        let outputs =
            living.map(|(to, _)| ArbiterOutput::Send { to: *to, word: word.clone() }).collect();
        self.forget_applied();
        outputs
    }

    fn forget_applied(&mut self) {
        let living = self.hosts.values().filter(|known| known.standing == HostStanding::Living);
        let applied = living.map(|known| known.applied).min().unwrap_or(self.last);
        while self.kept.front().is_some_and(|word| word.number <= applied) {
            self.kept.pop_front();
        }
    }

    /// Forgets a job that is over, and says so.
    fn forget_if_over(&mut self, job: JobId) -> Vec<ArbiterOutput> {
        let is_done = self.jobs.get(&job).is_some_and(|words| words.is_done);
        if !is_done || self.segments.values().any(|part| part.job == job) {
            return Vec::new();
        }
        self.jobs.remove(&job);
        self.came.retain(|_, (of, _)| *of != job);
        self.ended.retain(|_, (of, _)| *of != job);
        self.over.push_back(job);
        if self.over.len() > OVER_MAX {
            self.over.pop_front();
        }
        self.give(WordContent::JobOver { job })
    }

    fn note_failure(&mut self, job: JobId, code: u8, cause: String) {
        let words = self.jobs.entry(job).or_default();
        words.failure.get_or_insert((code, cause));
    }

    fn set_standing(&mut self, host: HostNumber, standing: HostStanding) {
        if let Some(known) = self.hosts.get_mut(&host) {
            known.standing = standing;
        }
    }

    fn name(&self, host: HostNumber) -> &str {
        self.hosts.get(&host).map_or("?", |known| &known.entry.name)
    }
}

/// The exit code of a job whose first failure was a process with this raw wait status.
fn exit_code(status: i32) -> u8 {
    match (status & 0x7f, status >> 8 & 0xff) {
        _ if status < 0 => 1,
        (0, 0) => 1,
        (0, code) => code as u8,
        (signal, _) => 128 + signal as u8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_wire::{Incarnation, Slot};

    const JOB: JobId = JobId(5);

    #[test]
    fn a_process_comes_before_its_end_and_by_the_word_of_its_host() {
        let (mut arbiter, _) = Arbiter::new(entry(0, 10));
        arbiter.admit(entry(1, 11)).unwrap();
        let (host, incarnation) = (HostNumber(1), HostIncarnation(11));
        arbiter.add_part(JOB, SegmentId(1), host, incarnation);
        let process =
            ProcessId { segment: SegmentId(1), slot: Slot(9), incarnation: Incarnation(1) };
        let kind = LaterProcess::Started;
        let foreign = arbiter.process_came(HostNumber(0), HostIncarnation(10), process, kind);
        assert!(foreign.is_empty(), "it is none of that host: {foreign:?}");
        let came = arbiter.process_came(host, incarnation, process, kind);
        let word = WordContent::ProcessCame { job: JOB, process, kind };
        let is_it = |output: &ArbiterOutput| matches!(output, ArbiterOutput::Send { word: it, .. } if it.content == word);
        assert!(came.iter().any(is_it), "{came:?}");
        let again = arbiter.process_came(host, incarnation, process, kind);
        assert!(again.is_empty(), "its daemon has started again: {again:?}");
        assert_eq!(arbiter.snapshot().came, [(process, JOB, Some(kind))]);
        arbiter.process_ended(host, incarnation, process, ProcessEnd::Left);
        assert!(arbiter.snapshot().came.is_empty());
        assert!(arbiter.process_came(host, incarnation, process, kind).is_empty(), "it has ended");
    }

    fn entry(host: u16, incarnation: u64) -> HostEntry {
        let incarnation = HostIncarnation(incarnation);
        let name = format!("h{host}");
        let (host, addresses, place) = (HostNumber(host), Vec::new(), HostPlace::default());
        HostEntry { host, incarnation, name, key: [0; 32], addresses, cores: 1, place }
    }

    fn process(segment: u64) -> ProcessId {
        ProcessId { segment: SegmentId(segment), slot: Slot(0), incarnation: Incarnation(1) }
    }

    fn arbiter() -> Arbiter {
        let (mut arbiter, first) = Arbiter::new(entry(0, 10));
        assert_eq!(first.len(), 2);
        for host in 1..3 {
            let outputs = arbiter.admit(entry(host, 10 + u64::from(host))).expect("new");
            assert_eq!(outputs.len(), 2 + usize::from(host), "welcome, and the word to everybody");
            arbiter.add_part(
                JOB,
                SegmentId(host.into()),
                HostNumber(host),
                HostIncarnation(10 + u64::from(host)),
            );
        }
        arbiter
    }

    fn died(arbiter: &mut Arbiter, host: u16, status: i32) -> usize {
        let incarnation = HostIncarnation(10 + u64::from(host));
        let end = ProcessEnd::Died { pid: 1, status };
        arbiter.process_ended(HostNumber(host), incarnation, process(host.into()), end).len()
    }

    #[test]
    fn the_first_word_is_final() {
        let mut arbiter = arbiter();
        assert_eq!((died(&mut arbiter, 1, 9), died(&mut arbiter, 1, 0)), (3, 0));
        let lost = arbiter.host_lost(HostNumber(2), HostIncarnation(12), 3_100);
        assert_eq!(lost.len(), 2, "not to itself");
        assert!(arbiter.host_lost(HostNumber(2), HostIncarnation(12), 3_200).is_empty());
        let end = ProcessEnd::Left;
        let late = arbiter.process_ended(HostNumber(2), HostIncarnation(12), process(2), end);
        assert!(matches!(late[..], [ArbiterOutput::Exclude { .. }]), "{late:?}");
        let foreign = arbiter.process_ended(HostNumber(1), HostIncarnation(11), process(2), end);
        assert!(foreign.is_empty(), "the process of another host");
        assert_eq!(arbiter.host_gone(HostNumber(2), HostIncarnation(12)).len(), 2);
        assert!(arbiter.host_gone(HostNumber(1), HostIncarnation(11)).is_empty(), "not lost");
    }

    #[test]
    fn a_process_that_is_away_ends_or_returns() {
        let mut arbiter = arbiter();
        let (host, incarnation) = (HostNumber(1), HostIncarnation(11));
        let at = |number| ProcessId { incarnation: Incarnation(number), ..process(1) };
        let mut end =
            |number, end| arbiter.process_ended(host, incarnation, at(number), end).len() / 3;
        assert_eq!((end(1, ProcessEnd::Away), end(1, ProcessEnd::Away)), (1, 0));
        assert_eq!(end(2, ProcessEnd::Away), 2, "it has returned and gone again");
        assert_eq!((end(1, ProcessEnd::Left), end(2, ProcessEnd::Left)), (0, 1));
        let mut return_as =
            |number| arbiter.process_returned(host, incarnation, at(number)).len() / 3;
        assert_eq!((return_as(2), return_as(3)), (0, 0), "none of them is away");
        arbiter.process_ended(host, incarnation, at(3), ProcessEnd::Away);
        assert!(arbiter.process_returned(HostNumber(2), HostIncarnation(12), at(4)).is_empty());
        assert_eq!(arbiter.process_returned(host, incarnation, at(4)).len(), 3);
        assert!(arbiter.process_returned(host, incarnation, at(4)).is_empty());
    }

    #[test]
    fn a_host_returns_only_as_a_new_incarnation_after_it_is_gone() {
        let mut arbiter = arbiter();
        let still = Err(AdmissionError::StillThere {
            host: HostNumber(1),
            incarnation: HostIncarnation(11),
        });
        assert_eq!(arbiter.admit(entry(1, 21)), still);
        arbiter.host_lost(HostNumber(1), HostIncarnation(11), 1);
        assert_eq!(arbiter.admit(entry(1, 21)), still);
        arbiter.host_gone(HostNumber(1), HostIncarnation(11));
        assert!(matches!(arbiter.admit(entry(1, 11)), Err(AdmissionError::Excluded { .. })));
        let outputs = arbiter.admit(entry(1, 21)).expect("a new incarnation");
        let ArbiterOutput::Welcome { snapshot, .. } = &outputs[0] else { panic!("{outputs:?}") };
        assert_eq!((snapshot.number, snapshot.hosts.len()), (5, 3));
    }

    #[test]
    fn words_are_kept_until_every_living_host_has_applied_them() {
        let mut arbiter = arbiter();
        let last = arbiter.last();
        arbiter.applied(HostNumber(0), HostIncarnation(10), 0, last);
        arbiter.applied(HostNumber(1), HostIncarnation(11), 0, last);
        assert_eq!(arbiter.kept(), 1, "host 2 joined with this word");
        let missing = arbiter.trunk_renewed(HostNumber(2), HostIncarnation(12));
        assert!(matches!(missing[..], [ArbiterOutput::Welcome { .. }, ArbiterOutput::Send { .. }]));
        arbiter.applied(HostNumber(2), HostIncarnation(99), 0, last);
        assert_eq!(arbiter.kept(), 1, "another incarnation");
        arbiter.host_lost(HostNumber(2), HostIncarnation(12), 1);
        assert_eq!(arbiter.kept(), 1, "the loss itself");
        let excluded = arbiter.trunk_renewed(HostNumber(2), HostIncarnation(12));
        assert!(matches!(excluded[..], [ArbiterOutput::Exclude { .. }]));
    }

    #[test]
    fn a_host_whose_daemon_has_started_again_is_welcomed_until_it_has_the_words() {
        let mut arbiter = arbiter();
        let (host, incarnation) = (HostNumber(2), HostIncarnation(12));
        let sent = |arbiter: &mut Arbiter| {
            let outputs = arbiter.trunk_renewed(host, incarnation).into_iter();
            outputs
                .map(|output| match output {
                    ArbiterOutput::Welcome { snapshot, .. } => (true, snapshot.number),
                    ArbiterOutput::Send { word, .. } => (false, word.number),
                    ArbiterOutput::Exclude { .. } => (false, 0),
                })
                .collect::<Vec<_>>()
        };
        arbiter.applied(host, incarnation, 0, 3);
        died(&mut arbiter, 1, 9);
        assert_eq!(sent(&mut arbiter), [(false, 4)]);
        arbiter.restarted(host, incarnation, 1);
        died(&mut arbiter, 0, 9);
        arbiter.applied(host, incarnation, 0, 4);
        let order = arbiter.end_job(JOB, 1, "asked".into());
        assert_eq!(order.len(), 3, "it gets words before its welcome");
        assert_eq!(sent(&mut arbiter), [(true, 5), (false, 5)], "the run before had applied 4");
        arbiter.restarted(host, incarnation, 1);
        arbiter.applied(host, incarnation, 1, 0);
        assert!(sent(&mut arbiter)[0].0, "its heartbeats come before its welcome");
        arbiter.applied(host, incarnation, 1, 4);
        assert_eq!(sent(&mut arbiter), [(false, 5)]);
        arbiter.restarted(host, incarnation, 1);
        assert_eq!(sent(&mut arbiter), [(false, 5)], "it has been welcomed already");
    }

    #[test]
    fn a_host_whose_daemon_has_started_again_says_which_parts_it_has() {
        let mut arbiter = arbiter();
        let (host, incarnation) = (HostNumber(2), HostIncarnation(12));
        arbiter.add_part(JobId(6), SegmentId(26), host, incarnation);
        arbiter.job_done(JOB);
        arbiter.job_done(JobId(6));
        arbiter.remove_part(SegmentId(1), HostNumber(1), HostIncarnation(11));
        assert!(arbiter.keep_parts(HostNumber(1), HostIncarnation(11), &[]).is_empty());
        assert_eq!(arbiter.keep_parts(host, incarnation, &[SegmentId(2)]).len(), 3);
        assert_eq!(arbiter.jobs().collect::<Vec<_>>(), [JOB]);
        assert_eq!(arbiter.keep_parts(host, incarnation, &[]).len(), 3);
    }

    #[test]
    fn a_job_ends_once_with_the_first_failure_that_has_a_word() {
        let mut arbiter = arbiter();
        died(&mut arbiter, 2, 9);
        died(&mut arbiter, 1, 3 << 8);
        let outputs = arbiter.end_job(JOB, 3, "rank 0 failed".into());
        let ArbiterOutput::Send { word, .. } = &outputs[0] else { panic!("{outputs:?}") };
        let WordContent::JobEnds { code, cause, .. } = &word.content else { panic!("{word:?}") };
        assert_eq!(*code, 137);
        assert!(cause.contains("host h2"), "{cause}");
        assert!(arbiter.end_job(JOB, 1, String::new()).is_empty());
        let other = arbiter.end_job(JobId(6), 4, "as asked".into());
        assert!(format!("{other:?}").contains("code: 4"), "{other:?}");
    }

    #[test]
    fn a_job_that_has_survived_a_failure_ends_with_the_cause_of_the_order() {
        let mut arbiter = arbiter();
        arbiter.host_lost(HostNumber(2), HostIncarnation(12), 600);
        let outputs = arbiter.order_end(JOB, 1, "lab was stopped".into());
        let ArbiterOutput::Send { word, .. } = &outputs[0] else { panic!("{outputs:?}") };
        let ends = WordContent::JobEnds { job: JOB, code: 1, cause: "lab was stopped".into() };
        assert_eq!(word.content, ends);
        assert!(arbiter.order_end(JOB, 1, "again".into()).is_empty());
    }

    #[test]
    fn a_job_is_forgotten_when_its_conductor_is_done_and_no_host_has_a_part() {
        let mut arbiter = arbiter();
        died(&mut arbiter, 2, 9);
        let remove = |arbiter: &mut Arbiter, host: u16| {
            let incarnation = HostIncarnation(10 + u64::from(host));
            arbiter.remove_part(SegmentId(host.into()), HostNumber(host), incarnation).len()
        };
        assert_eq!((remove(&mut arbiter, 1), arbiter.job_done(JOB).len()), (0, 0));
        assert_eq!(arbiter.snapshot().ended.len(), 1, "a part of it runs");
        let foreign = arbiter.remove_part(SegmentId(2), HostNumber(1), HostIncarnation(11));
        assert!(foreign.is_empty(), "the part of another host");
        assert_eq!(remove(&mut arbiter, 2), 3, "a word for each host");
        assert_eq!((arbiter.snapshot().ended, arbiter.jobs().count()), (Vec::new(), 0));
        assert_eq!((remove(&mut arbiter, 2), arbiter.job_done(JOB).len()), (0, 0));
        arbiter.add_part(JOB, SegmentId(7), HostNumber(1), HostIncarnation(11));
        assert!(arbiter.end_job(JOB, 1, "late".into()).is_empty());
        let late = arbiter.lease_numbers(JOB, HostNumber(1), HostIncarnation(11), 1);
        assert_eq!(late, Err(NumbersError::Over { job: JOB }));
        assert_eq!(arbiter.jobs().count(), 0, "what is said late changes nothing");
    }

    #[test]
    fn the_parts_of_a_host_are_over_when_it_is_gone() {
        let mut arbiter = arbiter();
        arbiter.remove_part(SegmentId(1), HostNumber(1), HostIncarnation(11));
        arbiter.job_done(JOB);
        arbiter.host_lost(HostNumber(2), HostIncarnation(12), 1);
        assert_eq!(arbiter.jobs().count(), 1, "processes of a lost host may run");
        assert_eq!(arbiter.host_gone(HostNumber(2), HostIncarnation(12)).len(), 4);
        assert_eq!(arbiter.jobs().count(), 0);
    }

    #[test]
    fn each_block_is_given_once_and_the_last_is_the_end() {
        let mut arbiter = arbiter();
        let mut lease = |host: u16, request| {
            arbiter.lease_numbers(
                JOB,
                HostNumber(host),
                HostIncarnation(10 + u64::from(host)),
                request,
            )
        };
        assert_eq!(lease(1, 1), Ok(NumberBlock { first: 4_096, count: 4_096 }));
        assert_eq!(lease(1, 1), Ok(NumberBlock { first: 4_096, count: 4_096 }), "repeated");
        assert_eq!(lease(2, 1), Ok(NumberBlock { first: 8_192, count: 4_096 }));
        let blocks = (2..).take_while(|&request| lease(1, request).is_ok()).count();
        assert_eq!(blocks, (1 << 14) - 3);
        assert_eq!(lease(1, 0), Err(NumbersError::Exhausted { job: JOB }));
        assert!(matches!(lease(9, 1), Err(NumbersError::NoHost { .. })));
    }

    #[test]
    fn a_wait_status_gives_the_exit_code_of_a_shell() {
        assert_eq!([9, 3 << 8, 0, -1, 134].map(exit_code), [137, 3, 1, 1, 134]);
    }
}
