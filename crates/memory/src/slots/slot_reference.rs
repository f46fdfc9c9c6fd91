//! Slot references: which processes may still need what lies in a vacant slot.
//!
//! A slot is given to its next process only when no living process needs what the last one left there:
//! lines on boards, the shared words of groups that it led, messages in its rings, blocks of its heap.
//! Each process has a row of bits in its own page, one for each slot. Such a bit is a *slot reference*:
//!
//! | bit of slot s in the page of p | set | cleared |
//! |---|---|---|
//! | p may need what lies in s | when p borrows a block of s, opens a board with it, or joins the first world with it | when p knows that the process of s has failed or left, and needs nothing of it |
//! | p has left something for s | when p opens a ring to s or lends it a block: the same bit | likewise |
//!
//! Beside the row stands the generation of the membership that p has acted upon. The agent, which gives slots
//! away, checks two things for each living process: whether it references the slot, and whether the slot's last
//! process referenced it and it has not acted upon that end yet. Setting a bit costs one load when it is set
//! already. What a process has of other slots is counted in its private memory.

use std::sync::atomic::Ordering;

use crate::segment::Segment;
use crate::slots::page::Presence;

/// Where the generation stands in the own page.
const SEEN: u64 = 8;

impl Segment {
    /// Counts something that this process has in the memory of a slot, until [`Segment::release`].
    #[inline]
    pub fn hold(&self, slot: u32) {
        if let Some(count) = self.holdings().of(slot) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(own) = self.own_slot() {
            self.reference_slot(own, slot);
        }
    }

    /// Takes back one count of [`Segment::hold`].
    #[inline]
    pub fn release(&self, slot: u32) {
        if let Some(count) = self.holdings().of(slot) {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Publishes that the calling process, that of `own`, deals with the process of another slot: one of them
    /// reads what the other one has written into its own memory. A number that is no slot changes nothing.
    #[inline]
    pub fn reference_slot(&self, own: u32, other: u32) {
        if other < self.plan().slots() && !self.references(own, other) {
            let (place, bit) = self.reference_bit(own, other);
            self.long(place).fetch_or(bit, Ordering::SeqCst);
        }
    }

    /// Whether the process of `of` references another slot.
    #[inline]
    pub fn references(&self, of: u32, other: u32) -> bool {
        let slots = self.plan().slots();
        let (place, bit) = self.reference_bit(of.min(slots - 1), other.min(slots - 1));
        self.long(place).load(Ordering::Acquire) & bit != 0
    }

    /// References all slots of the first world for one of its processes.
    pub(crate) fn reference_first_world(&self, own: u32) {
        (0..self.plan().processes).for_each(|other| self.reference_slot(own, other));
    }

    /// Clears the reference of the calling process, that of `own`, to a slot whose process has failed or left,
    /// unless it still needs something there: by the counts of [`Segment::hold`], or because the caller says so in
    /// `is_needed`, which covers the first world's board. Call it before [`Segment::set_seen`].
    pub fn release_vacant(&self, own: u32, vacant: u32, is_needed: bool) {
        if vacant >= self.plan().slots() || !self.references(own, vacant) {
            return;
        }
        let is_held =
            self.holdings().of(vacant).is_some_and(|count| count.load(Ordering::Relaxed) != 0);
        if !is_needed && !is_held {
            let (place, bit) = self.reference_bit(own, vacant);
            self.long(place).fetch_and(!bit, Ordering::SeqCst);
        }
    }

    /// Publishes that the calling process, that of `own`, has acted upon the membership up to this generation.
    pub fn set_seen(&self, own: u32, generation: u32) {
        self.word(self.plan().own_page(own) + SEEN).store(generation, Ordering::SeqCst);
    }

    /// Whether a living process may need what lies in a slot that is vacant since this generation of the
    /// membership. Slot 0 always counts as needed, because the shared words of the first world lie there.
    pub fn is_referenced(&self, vacant: u32, since: u32) -> bool {
        let plan = self.plan();
        let needs = |process: u32| match self.presence(process) {
            // It will come, and is to find the first world's board as others have left it.
            Presence::NotAttached => vacant < plan.processes && self.rank_of(process).is_some(),
            Presence::Attached | Presence::Helping => {
                let seen = self.word(plan.own_page(process) + SEEN).load(Ordering::SeqCst);
                let has_looked = seen.wrapping_sub(since) as i32 >= 0;
                self.references(process, vacant) || self.references(vacant, process) && !has_looked
            }
            Presence::Finalized | Presence::Aborted(_) => false,
        };
        let others = (0..plan.slots()).filter(|&process| process != vacant);
        vacant == 0 || others.filter(|&other| self.is_there(other)).any(needs)
    }

    /// Whether a slot has a process that lives or is to come.
    fn is_there(&self, slot: u32) -> bool {
        let state = self.slot_record(slot).state;
        !state.has_ended() && state != crate::slots::membership::SlotState::Free
    }

    /// The word in which a bit is, and the bit.
    #[inline]
    fn reference_bit(&self, of: u32, other: u32) -> (u64, u64) {
        let row = self.plan().slot_references(of);
        debug_assert!(other < self.plan().slots(), "a plan has no more slots");
        (row + u64::from(other / 64) * 8, 1 << (other % 64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{attached_views, depart};
    use crate::heap::{Borrowed, Heap};
    use crate::plan::SegmentPlan;

    const PROCESSES: u32 = 3;
    /// The guest's slot.
    const GUEST: u32 = PROCESSES;

    /// A segment with the first world and a guest, as each of them sees it.
    fn all() -> Vec<Segment> {
        let plan =
            SegmentPlan { heap_bytes_per_process: 1 << 20, ..SegmentPlan::new(1, PROCESSES) };
        attached_views(&SegmentPlan { guests: 1, ..plan })
    }

    fn look(all: &[Segment], vacant: u32) {
        for own in (0..all.len() as u32).filter(|&own| own != vacant) {
            let view = &all[own as usize];
            view.release_vacant(own, vacant, false);
            view.set_seen(own, view.membership_generation());
        }
    }

    #[test]
    fn a_slot_is_free_when_all_have_looked_who_have_to_do_with_it() {
        let all = all();
        all[3].reference_slot(GUEST, 1);
        let since = depart(&all[0], GUEST);
        assert!(all[0].is_referenced(GUEST, since), "something may lie in its ring");
        all[1].set_seen(1, since);
        assert!(!all[0].is_referenced(GUEST, since), "the others have nothing of it");
    }

    #[test]
    fn a_slot_is_kept_while_somebody_reads_its_memory() {
        let all = all();
        let mut heap = Heap::of(&all[3], GUEST).unwrap();
        let block = heap.allocate(64).unwrap();
        let lent = heap.lend(block, &[0], 64).unwrap();
        let borrowed = Borrowed::open(&all[0], lent.place(0)).unwrap();
        let since = depart(&all[1], GUEST);
        look(&all, GUEST);
        assert!(all[1].is_referenced(GUEST, since));
        drop(borrowed);
        look(&all, GUEST);
        assert!(!all[1].is_referenced(GUEST, since));
    }

    #[test]
    fn a_process_that_is_to_come_finds_the_first_world_as_it_was_left() {
        let all = all();
        all[1].set_presence(1, Presence::NotAttached);
        let since = depart(&all[0], 2);
        look(&all, 2);
        assert!(all[0].is_referenced(2, since));
        all[1].set_presence(1, Presence::Finalized);
        assert!(!all[0].is_referenced(2, since), "who has left needs nothing");
    }
}
