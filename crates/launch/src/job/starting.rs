//! Processes that are started while their job runs, as a process of it wishes.

use std::time::{Duration, Instant};

use landeck_host::report::ProcessFailure;
use landeck_protocols::door::{StartAnswer, StartRefusal, StartWish};
use landeck_wire::HostNumber;

use super::Job;
use crate::messages::PartCommand;
use crate::starts::{self, Answered};

/// The longest time that the joining of a started process is waited for.
const JOIN_TIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);

impl Job<'_> {
    /// Has a process started that a process of a host wants.
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
        match self.host_of_wish(asker, &wish) {
            Ok(place) => self.start_process(place, question, rank, wish),
            Err(refusal) => self.answer_starts([(question, StartAnswer::refused(refusal))]),
        }
    }

    /// The place of the host where a process is wanted.
    fn host_of_wish(&self, asker: usize, wish: &StartWish) -> Result<usize, StartRefusal> {
        // A job on one host does not know its number.
        let own = Some(asker).filter(|_| wish.host == HostNumber::NONE);
        let place = own.or_else(|| self.hosts.iter().position(|host| host.number == wish.host));
        let place = place.ok_or_else(|| StartRefusal::NoSuchHost(wish.host.0.to_string()))?;
        let name = || self.record.as_ref().map_or("", |record| record.host(place)).to_owned();
        match self.hosts[place].is_over {
            true => Err(StartRefusal::HostLost(name())),
            false => Ok(place),
        }
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
