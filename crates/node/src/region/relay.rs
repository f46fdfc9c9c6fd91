//! Relays: the daemons of other hosts, which read and write the regions of their hosts' processes for this one.
//!
//! Requests travel over this process's connection to the relay, and have one answer each ([`RelayRequests`]). They go in
//! windows, so long data are on their way in several parts at once. A connection that breaks is replaced, and no request
//! is done twice. Whether the owner or its host is gone is the arbiter's word.

use std::collections::VecDeque;
use std::time::Duration;

use landeck_channel::relay_requests::RelayRequests;
use landeck_engine::{Engine, Shared, WaitError};
use landeck_kernel::Peer;
use landeck_memory::system::now_ns;
use landeck_memory::{Operation, ThreadMode, WaitRecord};
use landeck_wire::relay::{RelayOutcome, RelayRequest};

use crate::error::{Error, ErrorKind, Members, Result};
use crate::peers::far_failure;

/// How long the first connection may take to come, or the word that explains what a relay has said.
const WORD_TIME: Duration = Duration::from_secs(15);
/// How soon an answer comes mostly.
const SOON_NS: u64 = 1_000_000;

/// The reason why a relay did not do everything.
pub(crate) enum RelayError {
    /// It answered one request with this outcome and word.
    Refused(RelayOutcome, u64),
    /// Something else failed.
    Failed(Error),
}

/// Sends so many requests about a region of `owner`, which `request` makes with the bytes to write, and hands the data of
/// their answers to `take`, in order. After the first answer that refuses, no further request is sent.
pub(crate) fn ask<'a>(
    shared: &Shared,
    owner: Peer,
    count: usize,
    request: impl FnMut(usize) -> (RelayRequest, &'a [u8]),
    take: impl FnMut(usize, &[u8]) -> bool,
) -> std::result::Result<(), RelayError> {
    let (waiting, refused, is_new) = (VecDeque::new(), None, true);
    let mut exchange = Exchange { owner, count, asked: 0, waiting, refused, is_new, request, take };
    let result = exchange.wait(shared).map_err(RelayError::Failed);
    exchange.give_up(shared);
    result?;
    exchange.refused.map_or(Ok(()), |(outcome, word)| Err(RelayError::Refused(outcome, word)))
}

/// Waits for the word that explains what a relay has said.
pub(crate) fn explain(shared: &Shared, owner: Peer, why: &str) -> Error {
    let gone = |_: &mut Engine| far_failure(&shared.segment, owner);
    match shared.wait_until(&record(), Some(deadline_ns()), gone) {
        Ok(gone) => gone.into(),
        Err(WaitError::TimedOut) => unreachable(shared, owner, why),
        Err(error) => Error::of_wait(shared, error, None, Members::OF_JOB),
    }
}

#[cold]
pub(crate) fn unreachable(shared: &Shared, owner: Peer, why: &str) -> Error {
    ErrorKind::NoRelay { host: host_of(shared, owner), why: why.to_owned() }.into()
}

/// The host of an owner, in words.
pub(crate) fn host_of(shared: &Shared, owner: Peer) -> String {
    let segment = &shared.segment;
    let record = segment.far_record(owner.0 - segment.plan().slots());
    segment.host_in_words(record.host_number)
}

fn record() -> WaitRecord {
    WaitRecord { operation: Operation::Wait, ..WaitRecord::default() }
}

fn deadline_ns() -> u64 {
    now_ns() + WORD_TIME.as_nanos() as u64
}

/// Requests on their way.
struct Exchange<R, T> {
    owner: Peer,
    count: usize,
    asked: usize,
    /// The numbers of the requests whose answers were not taken.
    waiting: VecDeque<u32>,
    refused: Option<(RelayOutcome, u64)>,
    /// There was no connection to the relay yet.
    is_new: bool,
    request: R,
    take: T,
}

impl<'a, R, T> Exchange<R, T>
where
    R: FnMut(usize) -> (RelayRequest, &'a [u8]),
    T: FnMut(usize, &[u8]) -> bool,
{
    /// Waits until everything that was asked is answered, and nothing more follows.
    fn wait(&mut self, shared: &Shared) -> Result<()> {
        if shared.engine.mode() == ThreadMode::Single
            && let Some(ended) = self.wait_on_connection(shared)?
        {
            return ended;
        }
        let mut deadline = Some(deadline_ns());
        loop {
            match shared.wait_until(&record(), deadline, |engine| self.look(shared, engine)) {
                Ok(ended) => return ended,
                // What a connection that breaks leads to is the arbiter's word.
                Err(WaitError::TimedOut) if !self.is_new => deadline = None,
                Err(WaitError::TimedOut) => {
                    let why = "no address of that host is reached from here";
                    return Err(unreachable(shared, self.owner, why));
                }
                Err(error) => return Err(Error::of_wait(shared, error, None, Members::OF_JOB)),
            }
        }
    }

    /// The first step of the wait, for a process with one thread: as long as answers come soon, it sleeps on the connection,
    /// which wakes it with one switch less than the waiter.
    /// `None` if it is to go on waiting.
    fn wait_on_connection(&mut self, shared: &Shared) -> Result<Option<Result<()>>> {
        let mut engine = shared.engine.enter()?;
        let mut until_ns = now_ns() + SOON_NS;
        loop {
            let answered = self.answered();
            let ended = self.look(shared, &mut engine);
            if ended.is_some() {
                return Ok(ended);
            }
            if self.answered() > answered {
                until_ns = now_ns() + SOON_NS;
                engine.progress();
            }
            let left = Duration::from_nanos(until_ns.saturating_sub(now_ns()));
            let network = engine.endpoint.network_mut().filter(|_| !left.is_zero());
            if network.is_none_or(|network| !network.sleep_for_answers(self.owner, left)) {
                return Ok(None);
            }
        }
    }

    /// Looks for answers; the end of the wait, if it is over.
    fn look(&mut self, shared: &Shared, engine: &mut Engine) -> Option<Result<()>> {
        let owner = self.owner;
        let Some(requests) = engine.endpoint.relay_requests(owner) else {
            return Some(Err(unreachable(shared, owner, "this process has left the job")));
        };
        self.is_new = requests.is_new();
        match self.advance(requests) {
            Ok(false) => far_failure(&shared.segment, owner).map(|gone| Err(gone.into())),
            Ok(true) => Some(Ok(())),
            Err(why) => Some(Err(unreachable(shared, owner, why))),
        }
    }

    /// The number of answers that were taken.
    fn answered(&self) -> usize {
        self.asked - self.waiting.len()
    }

    /// Asks and takes what is possible now. True if everything that was asked is answered, and nothing more follows.
    fn advance(&mut self, requests: &mut RelayRequests) -> std::result::Result<bool, &'static str> {
        while let Some(number) = self.waiting.front()
            && let Some((outcome, data)) = requests.take(*number)
        {
            let part = self.asked - self.waiting.len();
            self.waiting.pop_front();
            if outcome == RelayOutcome::Done {
                if !(self.take)(part, data) {
                    return Err("its answer has another length");
                }
            } else if self.refused.is_none() {
                let word = data.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
                self.refused = Some((outcome, word));
            }
        }
        while self.refused.is_none() && self.asked < self.count {
            let (request, bytes) = (self.request)(self.asked);
            let Some(number) = requests.ask(&request, bytes) else { break };
            self.waiting.push_back(number);
            self.asked += 1;
        }
        let is_whole = self.asked == self.count || self.refused.is_some();
        Ok(is_whole && self.waiting.is_empty())
    }

    /// Needs the answers no more that have not come.
    fn give_up(&self, shared: &Shared) {
        if !self.waiting.is_empty()
            && let Ok(mut engine) = shared.engine.enter()
            && let Some(requests) = engine.endpoint.relay_requests(self.owner)
        {
            self.waiting.iter().for_each(|number| requests.forget(*number));
        }
    }
}
