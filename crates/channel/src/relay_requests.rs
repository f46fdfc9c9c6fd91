//! The requests of a process to the relay of one host, about regions there and about data that stay there, and their answers.
//!
//! Requests are numbered, and the relay answers them in their order. They are frames of a [`Pair`], whose lanes are the
//! connections to the relay, and an answer is the receipt of its request. So a request is kept until its answer has come,
//! and goes again over the next connection if it has not. The relay does no change twice ([`AnsweredRequests`]).

use std::collections::VecDeque;

use landeck_wire::relay::{RELAY_WINDOW, RelayOutcome, RelayRequest};
use landeck_wire::stored::StoredRequest;
use landeck_wire::{Header, Kind};

use crate::BrokenPeer;
use crate::pair::{Pair, Positions};

/// The requests to one relay.
#[derive(Debug)]
pub struct RelayRequests {
    pair: Pair<()>,
    /// The requests and answers, by the last digits of their numbers. The memory is used again and again.
    places: [RequestPlace; RELAY_WINDOW],
}

/// A request, and then its answer.
#[derive(Debug)]
struct RequestPlace {
    state: RequestState,
    header: Header,
    data: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestState {
    Free,
    Asked,
    /// It has no answer, and its caller has given up.
    Forgotten,
    Answered(RelayOutcome),
}

impl Default for RelayRequests {
    fn default() -> Self {
        let (state, header) = (RequestState::Free, Header::RELAY_OPEN);
        let place = |_| RequestPlace { state, header, data: Vec::new() };
        Self { pair: Pair::unlimited(), places: std::array::from_fn(place) }
    }
}

impl RelayRequests {
    /// Accepts a request with the bytes to write, and returns the number that it gets. `None` while the requests whose
    /// answers were not taken are as many as may be.
    pub fn ask(&mut self, request: &RelayRequest, bytes: &[u8]) -> Option<u32> {
        self.accept(bytes, |number| request.encode(number, bytes.len()))
    }

    /// Accepts a request about stored data, as [`RelayRequests::ask`] does.
    pub fn ask_stored(&mut self, request: &StoredRequest, bytes: &[u8]) -> Option<u32> {
        self.accept(bytes, |number| request.encode(number, bytes.len()))
    }

    fn accept<const HEAD: usize>(
        &mut self,
        bytes: &[u8],
        encode: impl FnOnce(u32) -> (Header, [u8; HEAD]),
    ) -> Option<u32> {
        let number = self.pair.pushed() as u32;
        let place = self.place(number);
        if place.state != RequestState::Free {
            return None;
        }
        let (header, head) = encode(number);
        (place.state, place.header) = (RequestState::Asked, header);
        place.data.clear();
        place.data.extend_from_slice(&head);
        place.data.extend_from_slice(bytes);
        self.pair.push((), 0).ok().map(|_| number)
    }

    /// Takes the answer to a request, if it has come: its outcome, and the bytes that were read, or one word.
    pub fn take(&mut self, number: u32) -> Option<(RelayOutcome, &[u8])> {
        let place = self.place(number);
        let RequestState::Answered(outcome) = place.state else { return None };
        place.state = RequestState::Free;
        Some((outcome, &place.data))
    }

    /// Gives up a request that was not taken: its answer is dropped.
    pub fn forget(&mut self, number: u32) {
        let place = self.place(number);
        place.state = match place.state {
            RequestState::Asked => RequestState::Forgotten,
            _ => RequestState::Free,
        };
    }

    fn place(&mut self, number: u32) -> &mut RequestPlace {
        &mut self.places[number as usize % RELAY_WINDOW]
    }

    /// Whether no connection was open yet.
    #[must_use]
    pub const fn is_new(&self) -> bool {
        self.pair.lane() == 0
    }

    /// A connection is open. Its number is higher than those of earlier ones.
    pub fn connected(&mut self, connection: u32) {
        let opened = self.pair.open(connection).is_ok();
        debug_assert!(opened, "connection {connection} is not a new one");
        // Requests without an answer go again.
        self.received(self.answered());
    }

    /// The connection has ended.
    pub fn disconnected(&mut self) {
        self.pair.close(self.pair.lane());
    }

    /// Whether a request waits for the connection.
    #[must_use]
    pub fn has_waiting(&self) -> bool {
        self.pair.waiting().next().is_some()
    }

    /// Whether the answer to a request has not come.
    #[must_use]
    pub fn has_unanswered(&self) -> bool {
        !self.pair.may_change_path()
    }

    /// How many requests were accepted.
    #[must_use]
    pub fn asked(&self) -> u64 {
        self.pair.pushed()
    }

    /// How many requests are answered.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.pair.received_there()
    }

    /// How many requests have gone over any connection.
    #[must_use]
    pub const fn sent(&self) -> u32 {
        self.pair.sent_most() as u32
    }

    /// The next request for the connection.
    pub fn next_to_send(&mut self) -> Option<(&Header, &[u8])> {
        let (position, ()) = self.pair.next_to_send()?;
        let place = self.place(position as u32);
        Some((&place.header, &place.data))
    }

    /// Takes an answer from the connection.
    ///
    /// # Errors
    /// [`BrokenPeer::Form`] if it is not the answer to the first request that has none.
    pub fn answer(&mut self, header: &Header, data: &[u8]) -> Result<(), BrokenPeer> {
        let (position, number) = (self.answered(), header.context);
        let outcome = RelayOutcome::from_tag(header.tag).ok_or(BrokenPeer::Form)?;
        let is_next = header.kind == Kind::RelayAnswer && number == position as u32;
        if !is_next || !self.received(position + 1) {
            return Err(BrokenPeer::Form);
        }
        let place = self.place(number);
        if place.state == RequestState::Forgotten {
            place.state = RequestState::Free;
            return Ok(());
        }
        place.state = RequestState::Answered(outcome);
        place.data.clear();
        place.data.extend_from_slice(data);
        Ok(())
    }

    /// The relay has answered so many requests; false if it cannot have.
    fn received(&mut self, received: u64) -> bool {
        self.pair.told(self.pair.lane(), Positions { received, granted: u64::MAX }).is_ok()
    }
}

/// The requests of one process, as the relay answers them.
#[derive(Debug, Default)]
pub struct AnsweredRequests {
    /// The number of the next request.
    next: u32,
    /// The process has sent so many requests to the relay of an earlier run. None has come here yet.
    asked_before: Option<u32>,
    /// So many of the next requests may have been done by that relay.
    may_be_done: u32,
    /// The answers to the last requests. Those to reading ones are empty, as reading can be repeated.
    answers: VecDeque<(RelayOutcome, Vec<u8>)>,
}

/// The turn of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Turn<'a> {
    /// It is the next one.
    New,
    /// It was done, with this answer. If it reads, it is done again.
    Again(RelayOutcome, &'a [u8]),
    /// The relay of an earlier run may have done it, and it cannot be repeated.
    Unknown,
}

impl AnsweredRequests {
    /// The process has sent so many requests to the relay of an earlier run.
    pub const fn resume(&mut self, asked: u32) {
        self.asked_before = Some(asked);
    }

    /// Takes the number of a request that can be repeated, or cannot.
    ///
    /// # Errors
    /// [`BrokenPeer::Form`] if the process cannot have sent it now.
    pub fn turn(&mut self, number: u32, may_repeat: bool) -> Result<Turn<'_>, BrokenPeer> {
        if let Some(asked) = self.asked_before.take() {
            // The first one says how many the relay of an earlier run has answered.
            (self.next, self.may_be_done) = (number, asked.wrapping_sub(number));
            if self.may_be_done > RELAY_WINDOW as u32 {
                return Err(BrokenPeer::Form);
            }
        }
        let back = self.next.wrapping_sub(number);
        if back == 0 {
            let is_unknown = self.may_be_done > 0 && !may_repeat;
            return Ok(if is_unknown { Turn::Unknown } else { Turn::New });
        }
        let place = self.answers.len().checked_sub(back as usize);
        let answer = place.and_then(|place| self.answers.get(place));
        answer.map(|(outcome, data)| Turn::Again(*outcome, data)).ok_or(BrokenPeer::Form)
    }

    /// The next request is done. The answer to one that reads is not kept.
    pub fn done(&mut self, outcome: RelayOutcome, answer: &[u8]) {
        self.may_be_done = self.may_be_done.saturating_sub(1);
        self.next = self.next.wrapping_add(1);
        if self.answers.len() == RELAY_WINDOW {
            self.answers.pop_front();
        }
        self.answers.push_back((outcome, answer.to_vec()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_wire::relay::RelayOperation;

    fn request() -> RelayRequest {
        let (slot, incarnation, operation) = (3, 9, RelayOperation::Look);
        RelayRequest { slot, incarnation, place: 64, number: 7, offset: 8, operation }
    }

    /// The numbers of the requests that are sent now.
    fn sent(requests: &mut RelayRequests) -> Vec<u32> {
        std::iter::from_fn(|| requests.next_to_send().map(|(header, _)| header.context)).collect()
    }

    fn answer(requests: &mut RelayRequests, number: u32) -> Result<(), BrokenPeer> {
        let header = RelayRequest::answer(number, RelayOutcome::Done, 4);
        requests.answer(&header, &number.to_le_bytes())
    }

    #[test]
    fn requests_without_an_answer_go_again_over_the_next_connection() {
        let mut requests = RelayRequests::default();
        let asked: Vec<u32> = (0..3).map(|_| requests.ask(&request(), &[]).unwrap()).collect();
        assert_eq!(
            (asked, requests.is_new(), requests.has_waiting()),
            (vec![0, 1, 2], true, false)
        );
        requests.connected(4);
        assert_eq!((sent(&mut requests), requests.is_new()), (vec![0, 1, 2], false));
        assert_eq!(answer(&mut requests, 0), Ok(()));
        requests.disconnected();
        assert_eq!(requests.ask(&request(), &[]), Some(3));
        assert_eq!(sent(&mut requests), []);
        requests.connected(6);
        assert_eq!(sent(&mut requests), [1, 2, 3]);
        for number in 1..4 {
            assert_eq!(answer(&mut requests, number), Ok(()));
            assert_eq!(requests.take(number).unwrap().1, number.to_le_bytes());
            assert_eq!(requests.take(number), None);
        }
        assert!(!requests.has_unanswered() && requests.take(0).is_some());
    }

    #[test]
    fn answers_that_nobody_takes_are_bounded_and_forgotten_ones_are_dropped() {
        let mut requests = RelayRequests::default();
        requests.connected(1);
        for number in 0..RELAY_WINDOW as u32 {
            assert_eq!(requests.ask(&request(), &[]), Some(number));
        }
        sent(&mut requests);
        assert_eq!(answer(&mut requests, 0), Ok(()));
        assert_eq!(requests.ask(&request(), &[]), None, "the answer was not taken");
        requests.forget(0);
        requests.forget(1);
        assert_eq!(answer(&mut requests, 1), Ok(()));
        assert_eq!(requests.take(1), None);
        let asked = [16, 17].map(|_| requests.ask(&request(), &[]));
        assert_eq!((asked, requests.ask(&request(), &[])), ([Some(16), Some(17)], None));
    }

    #[test]
    fn an_answer_that_no_relay_gives_is_refused() {
        let mut requests = RelayRequests::default();
        requests.connected(1);
        requests.ask(&request(), &[]);
        assert_eq!(answer(&mut requests, 0), Err(BrokenPeer::Form), "it was not sent");
        sent(&mut requests);
        assert_eq!(answer(&mut requests, 1), Err(BrokenPeer::Form), "out of order");
        let header = RelayRequest::answer(0, RelayOutcome::Done, 0);
        let unknown = Header { tag: 99, ..header };
        assert_eq!(requests.answer(&unknown, &[]), Err(BrokenPeer::Form));
        let other = Header { kind: Kind::RelayPut, ..header };
        assert_eq!(requests.answer(&other, &[]), Err(BrokenPeer::Form));
        assert_eq!(requests.answer(&header, &[]), Ok(()));
        assert_eq!(answer(&mut requests, 0), Err(BrokenPeer::Form), "twice");
    }

    #[test]
    fn what_was_done_is_answered_again() {
        let mut answered = AnsweredRequests::default();
        for number in 0..40 {
            assert_eq!(answered.turn(number, false), Ok(Turn::New));
            answered.done(RelayOutcome::Done, &[number as u8]);
        }
        assert_eq!(answered.turn(39, false), Ok(Turn::Again(RelayOutcome::Done, &[39])));
        assert_eq!(answered.turn(24, true), Ok(Turn::Again(RelayOutcome::Done, &[24])));
        for number in [23, 41, u32::MAX] {
            assert_eq!(answered.turn(number, true), Err(BrokenPeer::Form), "{number}");
        }
    }

    #[test]
    fn what_an_earlier_run_may_have_done_is_done_again_if_it_can_be() {
        let mut answered = AnsweredRequests::default();
        answered.resume(12);
        assert_eq!(answered.turn(10, true), Ok(Turn::New));
        answered.done(RelayOutcome::Done, &[]);
        assert_eq!(answered.turn(11, false), Ok(Turn::Unknown));
        answered.done(RelayOutcome::Unknown, &[]);
        assert_eq!(answered.turn(12, false), Ok(Turn::New), "it was asked only now");
        let mut answered = AnsweredRequests::default();
        answered.resume(12);
        assert_eq!(answered.turn(13, true), Err(BrokenPeer::Form), "more than was sent");
    }
}
