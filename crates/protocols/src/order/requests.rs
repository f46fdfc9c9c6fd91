//! Requests of a host's parties to a group's home.
//!
//! A party's requests have numbers. The host repeats those without an entry in its own copy, in order, to each next home.
//! A request is answered when its entry is in the own copy; one of level *safe* when that is stable.

use std::collections::{BTreeMap, VecDeque};

use super::fold::{OrderFold, OrderLevel, OrderParty, RequestShape};
use super::message::OrderContent;

/// The requests of a party that may be unanswered at once.
pub const REQUESTS_MAX: usize = 64;
/// The bytes of a party's unanswered requests. A longer request is sent alone.
pub const REQUEST_BYTES_MAX: u64 = 1 << 20;

/// The reason why a request is not taken: the party waits for answers to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{requests} requests of {bytes} bytes wait for their answers: receive some first")]
pub struct WindowFull {
    /// The unanswered requests.
    pub requests: usize,
    /// Their bytes.
    pub bytes: u64,
}

/// An answered request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderAnswer {
    /// The party.
    pub party: OrderParty,
    /// The number of its request.
    pub number: u64,
    /// The position of its entry.
    pub position: u64,
}

#[derive(Clone, Copy, Debug)]
struct Unanswered {
    asked: RequestShape,
    is_answered: bool,
}

#[derive(Clone, Debug)]
struct PartyRequests {
    /// The number of the first request of `waiting`.
    oldest: u64,
    waiting: VecDeque<Unanswered>,
    /// The number of the first request without an entry in the own copy.
    unstored: u64,
    is_dead: bool,
}

impl PartyRequests {
    fn next(&self) -> u64 {
        self.oldest + self.waiting.len() as u64
    }
}

/// The unanswered requests of all parties of a host in one group.
#[derive(Clone, Debug, Default)]
pub(super) struct Requests {
    parties: BTreeMap<OrderParty, PartyRequests>,
    /// The stored requests that wait until they are stable, by position.
    unstable: BTreeMap<u64, (OrderParty, u64)>,
}

impl Requests {
    /// Takes a request, and returns its number.
    pub(super) fn ask(
        &mut self,
        party: OrderParty,
        asked: RequestShape,
    ) -> Result<u64, WindowFull> {
        let new =
            || PartyRequests { oldest: 1, waiting: VecDeque::new(), unstored: 1, is_dead: false };
        let requests = self.parties.entry(party).or_insert_with(new);
        let bytes: u64 = requests.waiting.iter().map(|it| u64::from(it.asked.bytes)).sum();
        let is_long = bytes + u64::from(asked.bytes) > REQUEST_BYTES_MAX && bytes > 0;
        if requests.waiting.len() >= REQUESTS_MAX || is_long {
            return Err(WindowFull { requests: requests.waiting.len(), bytes });
        }
        requests.waiting.push_back(Unanswered { asked, is_answered: false });
        Ok(requests.next() - 1)
    }

    pub(super) fn next_number(&self, party: OrderParty) -> u64 {
        self.parties.get(&party).map_or(1, PartyRequests::next)
    }

    /// A party died. Its death is told behind its last request.
    pub(super) fn died(&mut self, party: OrderParty) {
        if let Some(requests) = self.parties.get_mut(&party) {
            requests.is_dead = true;
        }
    }

    /// An entry of an own party's request is stored.
    pub(super) fn stored(
        &mut self,
        (party, number): (OrderParty, u64),
        position: u64,
        level: OrderLevel,
    ) -> Option<OrderAnswer> {
        let requests = self.parties.get_mut(&party)?;
        requests.unstored = requests.unstored.max(number + 1);
        if level == OrderLevel::Safe {
            self.unstable.insert(position, (party, number));
            return None;
        }
        self.answer(party, number, position)
    }

    /// Everything before this position is stable.
    pub(super) fn stable(&mut self, position: u64) -> Vec<OrderAnswer> {
        let unstable = self.unstable.split_off(&position);
        let stable = std::mem::replace(&mut self.unstable, unstable);
        stable
            .into_iter()
            .filter_map(|(at, (party, number))| self.answer(party, number, at))
            .collect()
    }

    fn answer(&mut self, party: OrderParty, number: u64, position: u64) -> Option<OrderAnswer> {
        let requests = self.parties.get_mut(&party)?;
        let index = usize::try_from(number.checked_sub(requests.oldest)?).ok()?;
        requests.waiting.get_mut(index)?.is_answered = true;
        while requests.waiting.front().is_some_and(|it| it.is_answered) {
            requests.waiting.pop_front();
            requests.oldest += 1;
        }
        Some(OrderAnswer { party, number, position })
    }

    /// The messages that the home has to hear: the requests of each party without an entry, and deaths.
    pub(super) fn untold(&self, fold: &OrderFold) -> Vec<OrderContent> {
        let is_told = |party: OrderParty, requests: &PartyRequests| {
            let is_death_told = !requests.is_dead || fold.is_dead(party);
            requests.unstored == requests.next() && is_death_told
        };
        let untold = self.parties.iter().filter(|(party, it)| !is_told(**party, it));
        untold.map(|(party, requests)| Self::message(*party, requests)).collect()
    }

    /// The message of one party.
    pub(super) fn untold_of(&self, party: OrderParty) -> Option<OrderContent> {
        self.parties.get(&party).map(|requests| Self::message(party, requests))
    }

    fn message(party: OrderParty, requests: &PartyRequests) -> OrderContent {
        let skipped = (requests.unstored - requests.oldest) as usize;
        OrderContent::Requests {
            party,
            first: requests.unstored,
            oldest: requests.oldest,
            asked: requests.waiting.iter().skip(skipped).map(|it| it.asked).collect(),
            died_after: requests.is_dead.then(|| requests.next() - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::HolderId;
    use landeck_wire::HostNumber;

    const PARTY: OrderParty =
        OrderParty { holder: HolderId { word: 1, host: HostNumber(1) }, number: 0 };

    fn asked(bytes: u32, level: OrderLevel) -> RequestShape {
        RequestShape { bytes, level }
    }

    #[test]
    fn a_window_holds_64_requests_or_a_mebibyte_and_a_longer_one_alone() {
        let mut requests = Requests::default();
        assert_eq!(requests.ask(PARTY, asked(2 << 20, OrderLevel::Total)), Ok(1), "alone");
        assert!(requests.ask(PARTY, asked(1, OrderLevel::Total)).is_err());
        assert!(requests.stored((PARTY, 1), 0, OrderLevel::Total).is_some());
        let taken = (0..100).filter(|_| requests.ask(PARTY, asked(1, OrderLevel::Total)).is_ok());
        assert_eq!(taken.count(), 64);
        assert!(requests.ask(PARTY, asked(0, OrderLevel::Total)).is_err());
    }

    #[test]
    fn answers_come_in_any_order_and_the_oldest_moves_over_those_that_have_come() {
        let mut requests = Requests::default();
        let levels = [OrderLevel::Safe, OrderLevel::Total, OrderLevel::Total];
        for level in levels {
            assert!(requests.ask(PARTY, asked(1, level)).is_ok());
        }
        assert_eq!(requests.stored((PARTY, 1), 5, OrderLevel::Safe), None);
        let answer = OrderAnswer { party: PARTY, number: 2, position: 6 };
        assert_eq!(requests.stored((PARTY, 2), 6, OrderLevel::Total), Some(answer));
        let oldest = |requests: &Requests| match requests.untold_of(PARTY) {
            Some(OrderContent::Requests { first, oldest, asked, .. }) => {
                (first, oldest, asked.len())
            }
            _ => (0, 0, 0),
        };
        assert_eq!(oldest(&requests), (3, 1, 1));
        assert_eq!(requests.stable(5), []);
        assert_eq!(requests.stable(6).len(), 1);
        assert_eq!(oldest(&requests), (3, 3, 1));
    }
}
