//! Processes that are started while their job runs, as a process of it wishes.

use std::time::{Duration, Instant};

use landeck_host::report::ProcessFailure;
use landeck_protocols::door::{StartAnswer, StartRefusal, StartWish};
use landeck_wire::HostNumber;

use super::{HostState, Job};
use crate::messages::PartCommand;
use crate::spec::HostSpec;
use crate::starts::{self, Answered};

/// The longest time that the joining of a started process is waited for.
const JOIN_TIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The wish of a process that waits for a host to be added to the job.
pub(super) struct WaitingWish {
    question: starts::Question,
    /// The rank of the process that asks, or its number.
    rank: Option<u32>,
    wish: Box<StartWish>,
}

impl WaitingWish {
    /// Until when it waits.
    pub(super) const fn due(&self) -> Instant {
        self.question.until
    }
}

impl Job<'_> {
    /// Has a process started that a process of a host wants. A host without a part of the job is added first.
    pub(super) fn take_wish(
        &mut self,
        asker: usize,
        request: u64,
        rank: Option<u32>,
        wish: Box<StartWish>,
    ) {
        let patience = Duration::from_millis(wish.join_ms).min(JOIN_TIME_MAX);
        let until = Instant::now() + starts::START_TIME;
        let question = starts::Question { host: asker, request, patience, until };
        // A job on one host does not know its number.
        let own = Some(asker).filter(|_| wish.host == HostNumber::NONE);
        match own.or_else(|| self.place_of(wish.host)).filter(|&place| !self.hosts[place].is_over) {
            Some(place) => self.start_process(place, question, rank, wish),
            None => {
                let host = wish.host;
                self.waiting_wishes.push(WaitingWish { question, rank, wish });
                if !self.parts.add_host(host) {
                    self.take_added_host(host, Err("the job has one host".to_owned()));
                }
            }
        }
    }

    /// Takes a host that was added, or the reason why not, and goes on with the wishes that have waited for it.
    pub(super) fn take_added_host(
        &mut self,
        number: HostNumber,
        outcome: Result<HostSpec, String>,
    ) {
        let is_its = |waiting: &mut WaitingWish| waiting.wish.host == number;
        let wishes: Vec<WaitingWish> = self.waiting_wishes.extract_if(.., is_its).collect();
        let known = self.place_of(number);
        let why = match outcome {
            Ok(host) => {
                let place = known.filter(|&place| !self.hosts[place].is_over);
                let place = place.unwrap_or_else(|| self.add_host(host));
                for WaitingWish { question, rank, wish } in wishes {
                    self.start_process(place, question, rank, wish);
                }
                return;
            }
            Err(why) => why,
        };
        let lost = known.filter(|&place| self.hosts[place].is_lost);
        let refusal = match lost.zip(self.record.as_ref()) {
            Some((place, record)) => StartRefusal::HostLost(record.host(place).to_owned()),
            None => StartRefusal::NoPart(why),
        };
        let answer = |it: WaitingWish| (it.question, StartAnswer::refused(refusal.clone()));
        self.answer_starts(wishes.into_iter().map(answer));
    }

    /// Answers those whose host was not added in time.
    pub(super) fn end_overdue_wishes(&mut self, now: Instant) {
        let is_overdue = |it: &mut WaitingWish| it.due() <= now;
        let overdue: Vec<WaitingWish> = self.waiting_wishes.extract_if(.., is_overdue).collect();
        let answer = |WaitingWish { question, .. }: WaitingWish| {
            let time = starts::START_TIME;
            let why = format!("not all hosts of the job have answered for {time:?}");
            (question, StartAnswer::refused(StartRefusal::NoPart(why)))
        };
        self.answer_starts(overdue.into_iter().map(answer));
    }

    /// Refuses all wishes that wait for hosts to be added.
    pub(super) fn end_waiting_wishes(&mut self, why: &str) {
        let answer = |WaitingWish { question, .. }: WaitingWish| {
            (question, StartAnswer::refused(StartRefusal::NoPart(why.to_owned())))
        };
        let waiting = std::mem::take(&mut self.waiting_wishes);
        self.answer_starts(waiting.into_iter().map(answer));
    }

    /// Adds a host to the list; returns its place.
    fn add_host(&mut self, host: HostSpec) -> usize {
        self.hosts.push(HostState::new(host.number, false));
        if let Some(record) = &mut self.record {
            record.add_host(host.name);
        }
        if let Some(question) = &mut self.question {
            question.places.push(None);
            self.parts.command(Some(host.number), PartCommand::Places { stacks: false });
        }
        self.hosts.len() - 1
    }

    fn start_process(
        &mut self,
        place: usize,
        question: starts::Question,
        asker: Option<u32>,
        wish: Box<StartWish>,
    ) {
        let Some(record) = &mut self.record else { return };
        let (ranks, host) = (record.ranks(), record.host(place).to_owned());
        let rank = self.starts.begin(place, question);
        record.add(rank, place, &wish.program);
        self.output.add_process(rank as usize);
        if let Err(error) = self.add_sources(rank, ranks, &host) {
            let answered = self.starts.refused(rank, StartRefusal::System(error.to_string()));
            return self.answer_starts(answered);
        }
        let like = asker.filter(|&rank| rank < ranks).unwrap_or(0);
        let host = Some(self.hosts[place].number);
        self.command(host, PartCommand::Start { rank, like, wish });
    }

    pub(super) fn answer_starts(&mut self, answered: impl IntoIterator<Item = Answered>) {
        for (starts::Question { host, request, .. }, answer) in answered {
            let host = Some(self.hosts[host].number);
            self.command(host, PartCommand::AnswerStart { request, answer });
        }
    }
}

/// The end of a process that had not joined, in words.
pub(super) fn end_in_words(failure: Option<ProcessFailure>) -> String {
    failure.map_or_else(|| "ended with exit code 0".to_owned(), ProcessFailure::sentence)
}
