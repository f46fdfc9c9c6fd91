//! Positions of a copy of a group's log: its length, and what of it is stable, delivered and kept.

use std::collections::VecDeque;

use super::fold::{OrderEntry, OrderFold};
use super::words::HolderId;

#[derive(Clone, Copy, Debug)]
struct KeptEntry {
    /// The bytes of all entries up to this one.
    bytes: u64,
    is_safe: bool,
}

/// A copy of a group's log, without its entries' contents.
#[derive(Clone, Debug)]
pub(super) struct OrderCopy {
    own: HolderId,
    /// The position of the first entry of `kept`.
    first: u64,
    kept: VecDeque<KeptEntry>,
    /// The bytes of all entries before `kept`.
    bytes_before: u64,
    stable: u64,
    delivered: u64,
    fold: OrderFold,
    has_begun: bool,
    is_complete: bool,
}

impl OrderCopy {
    pub(super) fn new(own: HolderId) -> Self {
        Self {
            own,
            first: 0,
            kept: VecDeque::new(),
            bytes_before: 0,
            stable: 0,
            delivered: 0,
            fold: OrderFold::default(),
            has_begun: false,
            is_complete: false,
        }
    }

    /// The copy of a group that begins with this holder.
    pub(super) fn created(own: HolderId) -> Self {
        Self { has_begun: true, is_complete: true, ..Self::new(own) }
    }

    /// The copy begins with the state at a position.
    pub(super) fn begin(&mut self, at: u64, stable: u64, fold: OrderFold) {
        let is_complete = fold.present().contains(&self.own);
        let positions = Self { first: at, stable, delivered: at, ..Self::new(self.own) };
        *self = Self { fold, has_begun: true, is_complete, ..positions };
    }

    /// The home has changed. A copy that is not complete begins anew, as it may have entries of the former home that no
    /// complete copy has.
    pub(super) const fn begins_anew(&mut self) {
        self.has_begun = self.is_complete;
    }

    pub(super) fn length(&self) -> u64 {
        self.first + self.kept.len() as u64
    }

    pub(super) const fn stable(&self) -> u64 {
        self.stable
    }

    pub(super) const fn delivered(&self) -> u64 {
        self.delivered
    }

    pub(super) const fn kept_from(&self) -> u64 {
        self.first
    }

    pub(super) const fn fold(&self) -> &OrderFold {
        &self.fold
    }

    pub(super) const fn has_begun(&self) -> bool {
        self.has_begun
    }

    pub(super) const fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The copy has everything that a complete one has, and counts as one.
    pub(super) const fn complete(&mut self) {
        self.is_complete = true;
    }

    /// The bytes of the entries from a position to the end.
    pub(super) fn bytes_from(&self, position: u64) -> u64 {
        self.bytes_until(self.length()).saturating_sub(self.bytes_until(position))
    }

    /// The number of entries from a position on that fit into a message; one always does.
    pub(super) fn batch(&self, from: u64, entries: u64, bytes: u64) -> u64 {
        let most = self.length().saturating_sub(from).min(entries);
        let fits = |count: &u64| {
            self.bytes_until(from + count) - self.bytes_until(from) <= bytes || *count == 1
        };
        (1..=most).take_while(fits).last().unwrap_or(0)
    }

    fn bytes_until(&self, position: u64) -> u64 {
        match position.checked_sub(self.first + 1) {
            Some(index) => self.kept.get(index as usize).map_or(0, |kept| kept.bytes),
            None => self.bytes_before,
        }
    }

    /// Appends an entry, and returns its position.
    pub(super) fn push(&mut self, entry: &OrderEntry) -> u64 {
        let position = self.length();
        let bytes = self.bytes_until(position) + u64::from(entry.bytes());
        self.kept.push_back(KeptEntry { bytes, is_safe: entry.is_safe() });
        self.fold.note(position, entry);
        let counts_here = match entry {
            OrderEntry::Holder(holder) => *holder == self.own,
            OrderEntry::View { holders, .. } => holders.contains(&self.own),
            _ => false,
        };
        self.is_complete |= counts_here;
        position
    }

    /// Everything before this position is stored by all holders that count.
    pub(super) fn stable_until(&mut self, position: u64) {
        self.stable = self.stable.max(position.min(self.length()));
    }

    /// Moves the delivered position on; true if there is something to deliver. Nothing overtakes an entry that waits until
    /// it is stable.
    pub(super) fn deliver(&mut self) -> bool {
        let before = self.delivered;
        let waits = |at: &u64| {
            let kept = self.kept.get((at - self.first) as usize);
            kept.is_some_and(|kept| kept.is_safe) && *at >= self.stable
        };
        if self.is_complete {
            let length = self.length();
            self.delivered = (before..length).find(waits).unwrap_or(length);
        }
        self.delivered > before
    }

    /// Forgets the sizes of entries before a position that are stable and delivered.
    pub(super) fn forget(&mut self, before: u64) {
        let until = before.min(self.stable).min(self.delivered);
        while self.first < until
            && let Some(entry) = self.kept.pop_front()
        {
            (self.first, self.bytes_before) = (self.first + 1, entry.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::{OrderLevel, OrderParty, RequestShape};
    use landeck_wire::HostNumber;

    const OWN: HolderId = HolderId { word: 1, host: HostNumber(1) };

    fn copy_of(levels: &[OrderLevel]) -> OrderCopy {
        let mut copy = OrderCopy::created(OWN);
        let party = OrderParty { holder: OWN, number: 0 };
        for (number, level) in (1..).zip(levels) {
            let asked = RequestShape { bytes: 10, level: *level };
            copy.push(&OrderEntry::Request { party, number, oldest: 1, asked });
        }
        copy
    }

    #[test]
    fn nothing_overtakes_a_safe_entry_that_is_not_stable() {
        let mut copy = copy_of(&[OrderLevel::Total, OrderLevel::Safe, OrderLevel::Total]);
        assert!(copy.deliver() && copy.delivered() == 1);
        copy.stable_until(2);
        assert!(copy.deliver() && copy.delivered() == 3);
        copy.stable_until(99);
        assert_eq!(copy.stable(), 3, "no more than there is");
    }

    #[test]
    fn sizes_are_forgotten_when_entries_are_stable_and_delivered_and_nobody_needs_them() {
        let mut copy = copy_of(&[OrderLevel::Total; 5]);
        copy.deliver();
        copy.stable_until(3);
        copy.forget(2);
        assert_eq!((copy.kept_from(), copy.length(), copy.bytes_from(2)), (2, 5, 30));
        copy.forget(u64::MAX);
        assert_eq!((copy.kept_from(), copy.bytes_from(3)), (3, 20));
        assert_eq!([19, 20, 5].map(|bytes| copy.batch(3, 32, bytes)), [1, 2, 1]);
    }

    #[test]
    fn a_copy_is_complete_from_its_own_entry_on() {
        let mut copy = OrderCopy::new(OWN);
        copy.begin(7, 5, OrderFold::default());
        assert!(copy.has_begun() && !copy.is_complete() && !copy.deliver());
        copy.begins_anew();
        assert!(!copy.has_begun());
        copy.begin(6, 5, OrderFold::default());
        copy.push(&OrderEntry::Holder(OWN));
        copy.begins_anew();
        assert!(copy.is_complete() && copy.has_begun() && copy.deliver());
    }
}
