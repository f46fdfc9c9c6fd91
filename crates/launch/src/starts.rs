//! Processes that are started while their job runs, as the launcher sees to them.
//!
//! A process asks the agent of its host, which passes the wish on to the part there, and that to the launcher. The launcher
//! gives the new process a number behind the ranks and has the part of the chosen host start it. It answers once, when the
//! process has joined, has ended, or has not joined in time. A number is given again when its process has ended and both
//! streams have, so a job that starts processes for days needs no more memory for that.

use std::time::{Duration, Instant};

use landeck_protocols::door::{StartAnswer, StartRefusal};
use landeck_wire::ProcessId;

/// The processes that were started while the job runs.
#[derive(Clone, Debug)]
pub(crate) struct Starts {
    /// The number of the first one: that of the ranks.
    first: u32,
    /// The output streams that each has.
    streams: u32,
    /// Whether numbers are given again.
    gives_again: bool,
    added: Vec<Added>,
}

/// A process with its number.
#[derive(Clone, Debug)]
struct Added {
    /// The host where it runs, as a place in the list of hosts.
    host: usize,
    pid: u32,
    open_streams: u32,
    has_ended: bool,
    question: Option<Question>,
}

/// A question that is not answered yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question {
    /// The host of the process that asks, as a place in the list of hosts.
    pub(crate) host: usize,
    /// The number of its question there.
    pub(crate) request: u64,
    /// How long the joining is waited for, once the process runs.
    pub(crate) patience: Duration,
    /// Until when its start is waited for, and then its joining.
    pub(crate) until: Instant,
}

/// How long a host may take to start a process. A stopped one does not answer.
pub(crate) const START_TIME: Duration = Duration::from_secs(8);

/// An answer with the question that it is for.
pub(crate) type Answered = (Question, StartAnswer);

impl Starts {
    /// None yet. Numbers follow those of the ranks, and each process has so many output streams.
    pub(crate) const fn new(first: u32, streams: u32, gives_again: bool) -> Self {
        Self { first, streams, gives_again, added: Vec::new() }
    }

    /// The number for a process that is to be started on a host. Its streams are open from now on.
    pub(crate) fn begin(&mut self, host: usize, question: Question) -> u32 {
        let is_free = |it: &Added| it.has_ended && it.open_streams == 0;
        let free = self.added.iter().position(is_free).filter(|_| self.gives_again);
        let (open_streams, question) = (self.streams, Some(question));
        let added = Added { host, pid: 0, open_streams, has_ended: false, question };
        let place = free.unwrap_or(self.added.len());
        match self.added.get_mut(place) {
            Some(before) => *before = added,
            None => self.added.push(added),
        }
        self.first + place as u32
    }

    fn get(&mut self, number: u32) -> Option<&mut Added> {
        let place = number.checked_sub(self.first)?;
        self.added.get_mut(place as usize)
    }

    /// It runs its program.
    pub(crate) fn started(&mut self, number: u32, pid: u32) {
        if let Some(added) = self.get(number) {
            added.pid = pid;
            added.question.iter_mut().for_each(|it| it.until = Instant::now() + it.patience);
        }
    }

    /// It has joined.
    pub(crate) fn joined(&mut self, number: u32, process: ProcessId, pid: u32) -> Option<Answered> {
        let question = self.get(number)?.question.take()?;
        Some((question, StartAnswer::Joined { process, pid }))
    }

    /// It was not started.
    pub(crate) fn refused(&mut self, number: u32, refusal: StartRefusal) -> Option<Answered> {
        let added = self.get(number)?;
        added.has_ended = true;
        Some((added.question.take()?, StartAnswer::refused(refusal)))
    }

    /// It has ended, in these words.
    pub(crate) fn ended(&mut self, number: u32, how: String) -> Option<Answered> {
        let pid = self.get(number)?.pid;
        self.refused(number, StartRefusal::Ended { pid, how })
    }

    /// One of its streams has ended.
    pub(crate) fn stream_ended(&mut self, number: u32) {
        if let Some(added) = self.get(number) {
            added.open_streams = added.open_streams.saturating_sub(1);
        }
    }

    /// Nothing more comes from a host, for this reason, and nobody there waits for an answer.
    pub(crate) fn lose(&mut self, host: usize, why: &StartRefusal) -> Vec<Answered> {
        let mut answered = Vec::new();
        for added in &mut self.added {
            added.question.take_if(|question| question.host == host);
            if added.host == host {
                added.has_ended = true;
                added.open_streams = 0;
                let question = added.question.take();
                answered.extend(question.map(|it| (it, StartAnswer::refused(why.clone()))));
            }
        }
        answered
    }

    /// The answers to the questions whose time is over.
    pub(crate) fn overdue(&mut self, now: Instant) -> Vec<Answered> {
        let answer = |added: &mut Added| {
            let question = added.question.take_if(|question| question.until <= now)?;
            let waited_ms = u32::try_from(question.patience.as_millis()).unwrap_or(u32::MAX);
            let unanswered =
                || format!("its host has not answered for {START_TIME:?}; is it stopped?");
            let refusal = match added.pid {
                0 => StartRefusal::System(unanswered()),
                pid => StartRefusal::NotJoined { pid, waited_ms },
            };
            Some((question, StartAnswer::Refused(refusal)))
        };
        self.added.iter_mut().filter_map(answer).collect()
    }

    /// When the next time is over.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.added.iter().filter_map(|added| Some(added.question?.until)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_wire::{Incarnation, SegmentId, Slot};

    fn question(host: usize, request: u64, after: Duration) -> Question {
        let until = Instant::now() + after;
        Question { host, request, patience: after, until }
    }

    const SOON: Duration = Duration::from_secs(60);

    #[test]
    fn a_number_is_given_again_when_all_of_its_process_has_ended() {
        let mut starts = Starts::new(4, 2, true);
        assert_eq!(starts.begin(0, question(0, 1, SOON)), 4);
        assert_eq!(starts.begin(0, question(0, 2, SOON)), 5);
        starts.started(4, 77);
        let answered = starts.ended(4, "ended with exit code 3".to_owned());
        let Some((Question { request: 1, .. }, StartAnswer::Refused(refusal))) = answered else {
            panic!("{answered:?}")
        };
        assert!(refusal.to_string().starts_with("the process (pid 77) ended with exit code 3"));
        assert!(starts.ended(4, String::new()).is_none(), "one answer");
        starts.stream_ended(4);
        assert_eq!(starts.begin(0, question(0, 3, SOON)), 6, "a stream is open");
        starts.stream_ended(4);
        assert_eq!(starts.begin(0, question(0, 4, SOON)), 4);
        let mut files = Starts::new(4, 2, false);
        files.begin(0, question(0, 1, SOON));
        files.refused(4, StartRefusal::NoSlot);
        (0..2).for_each(|_| files.stream_ended(4));
        assert_eq!(files.begin(0, question(0, 1, SOON)), 5, "its files stay");
    }

    #[test]
    fn each_question_has_one_answer_in_time() {
        let mut starts = Starts::new(2, 1, true);
        starts.begin(0, question(0, 1, Duration::ZERO));
        starts.begin(1, question(0, 2, SOON));
        starts.begin(0, question(1, 3, SOON));
        let unanswered = starts.clone().overdue(Instant::now());
        assert!(matches!(unanswered[0].1, StartAnswer::Refused(StartRefusal::System(_))));
        starts.started(2, 91);
        let overdue = starts.overdue(Instant::now());
        let late = StartRefusal::NotJoined { pid: 91, waited_ms: 0 };
        assert_eq!(overdue.len(), 1);
        assert_eq!(overdue[0].1, StartAnswer::Refused(late));
        assert!(starts.next_due().is_some() && starts.overdue(Instant::now()).is_empty());
        let process =
            ProcessId { segment: SegmentId(1), slot: Slot(2), incarnation: Incarnation(1) };
        assert!(starts.joined(2, process, 91).is_none(), "it came too late");
        let lost = starts.lose(1, &StartRefusal::HostLost("n2".to_owned()));
        let [(Question { request: 2, .. }, StartAnswer::Refused(refusal))] = &lost[..] else {
            panic!("{lost:?}")
        };
        assert_eq!(refusal, &StartRefusal::HostLost("n2".to_owned()));
        assert_eq!(starts.next_due(), None, "the asker of the third one is lost too");
    }
}
