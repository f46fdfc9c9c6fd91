//! Entries of a group's log as far as the order needs their meaning, and the state that follows from them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::words::HolderId;

/// A process that takes part in a group, on the host of a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OrderParty {
    /// The holder on its host.
    pub holder: HolderId,
    /// Its number there.
    pub number: u32,
}

/// The promise of a message's delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderLevel {
    /// It is delivered as soon as a holder stores it.
    Total,
    /// It is delivered when all holders that count have stored it.
    Safe,
}

/// The size and level of a request. Its content is the driver's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestShape {
    /// The bytes of its content.
    pub bytes: u32,
    /// Its level.
    pub level: OrderLevel,
}

/// An entry of a group's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderEntry {
    /// An epoch begins. All these holders have stored everything before.
    View {
        /// The epoch.
        epoch: u64,
        /// Its holders.
        holders: Vec<HolderId>,
    },
    /// This holder counts from here on.
    Holder(HolderId),
    /// A holder was put out; all parties of its host are gone.
    HostGone(HolderId),
    /// A party died. It stands behind all its accepted requests.
    Died(OrderParty),
    /// The home accepts nothing more in this epoch.
    Sealed,
    /// A request of a party.
    Request {
        /// The party.
        party: OrderParty,
        /// Its number: a party's requests are accepted one after the other.
        number: u64,
        /// The party's oldest unanswered request. Outcomes before it are forgotten.
        oldest: u64,
        /// Its size and level.
        asked: RequestShape,
    },
}

impl OrderEntry {
    /// The bytes of the entry's content.
    pub(super) const fn bytes(&self) -> u32 {
        match self {
            Self::Request { asked, .. } => asked.bytes,
            _ => 0,
        }
    }

    /// Whether the entry waits until it is stable.
    pub(super) const fn is_safe(&self) -> bool {
        matches!(self, Self::Request { asked: RequestShape { level: OrderLevel::Safe, .. }, .. })
    }
}

/// The requests of one party that have an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct PartyRecord {
    last: u64,
    is_dead: bool,
    /// The positions of the last requests, from the oldest unanswered one on.
    outcomes: VecDeque<u64>,
}

/// The state that follows from a log's entries. It is part of a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrderFold {
    epoch: u64,
    is_sealed: bool,
    present: BTreeSet<HolderId>,
    parties: BTreeMap<OrderParty, PartyRecord>,
}

impl OrderFold {
    /// The epoch of the last view.
    #[must_use]
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether the log is sealed.
    #[must_use]
    pub const fn is_sealed(&self) -> bool {
        self.is_sealed
    }

    /// The holders that have counted and whose end has no entry.
    #[must_use]
    pub const fn present(&self) -> &BTreeSet<HolderId> {
        &self.present
    }

    /// The number of a party's last request that has an entry; 0 before the first.
    #[must_use]
    pub fn last_of(&self, party: OrderParty) -> u64 {
        self.parties.get(&party).map_or(0, |record| record.last)
    }

    /// The position of a party's request, from its oldest unanswered one on.
    #[must_use]
    pub fn outcome(&self, party: OrderParty, number: u64) -> Option<u64> {
        let record = self.parties.get(&party)?;
        let first = record.last + 1 - record.outcomes.len() as u64;
        record.outcomes.get(usize::try_from(number.checked_sub(first)?).ok()?).copied()
    }

    /// Whether a party's death has an entry.
    #[must_use]
    pub fn is_dead(&self, party: OrderParty) -> bool {
        self.parties.get(&party).is_some_and(|record| record.is_dead)
    }

    /// Whether a request takes effect: it is its party's next one, and the party takes part.
    pub(super) fn is_next(&self, party: OrderParty, number: u64) -> bool {
        self.present.contains(&party.holder)
            && !self.is_dead(party)
            && number == self.last_of(party) + 1
    }

    pub(super) fn note(&mut self, position: u64, entry: &OrderEntry) {
        match entry {
            OrderEntry::View { epoch, holders } => {
                (self.epoch, self.is_sealed) = (*epoch, false);
                self.present.extend(holders);
            }
            OrderEntry::Holder(holder) => {
                self.present.insert(*holder);
            }
            OrderEntry::HostGone(holder) => {
                self.present.remove(holder);
                self.parties.retain(|party, _| party.holder != *holder);
            }
            OrderEntry::Died(party) => self.parties.entry(*party).or_default().is_dead = true,
            OrderEntry::Sealed => self.is_sealed = true,
            OrderEntry::Request { party, number, oldest, .. } => {
                let record = self.parties.entry(*party).or_default();
                record.last = *number;
                record.outcomes.push_back(position);
                let kept = (number + 1).saturating_sub(*oldest).max(1) as usize;
                let forgotten = record.outcomes.len().saturating_sub(kept);
                record.outcomes.drain(..forgotten);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_wire::HostNumber;

    #[test]
    fn outcomes_are_kept_from_the_oldest_unanswered_request() {
        let holder = HolderId { word: 1, host: HostNumber(1) };
        let party = OrderParty { holder, number: 0 };
        let asked = RequestShape { bytes: 1, level: OrderLevel::Total };
        let request = |number, oldest| OrderEntry::Request { party, number, oldest, asked };
        let mut fold = OrderFold::default();
        assert!(!fold.is_next(party, 1), "its holder does not count");
        fold.note(0, &OrderEntry::View { epoch: 1, holders: vec![holder] });
        assert!(fold.is_next(party, 1) && !fold.is_next(party, 2));
        fold.note(1, &request(1, 1));
        fold.note(2, &request(2, 1));
        assert_eq!([1, 2, 3].map(|number| fold.outcome(party, number)), [Some(1), Some(2), None]);
        fold.note(3, &request(3, 3));
        assert_eq!([2, 3].map(|number| fold.outcome(party, number)), [None, Some(3)]);
        fold.note(4, &OrderEntry::Died(party));
        assert!(!fold.is_next(party, 4), "it is dead");
        fold.note(5, &OrderEntry::HostGone(holder));
        assert_eq!(fold.last_of(party), 0, "its host is forgotten");
    }
}
