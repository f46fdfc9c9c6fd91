//! Bonds: who still needs what lies in a slot whose process is gone.
//!
//! A slot is given to its next process only when nobody who lives needs what the last one left there:
//! lines on boards, the shared words of groups that it led, messages in its rings, blocks of its heap.
//! Each process has a row of bits in its own page, one for each slot:
//!
//! | bit of slot s in the page of p | set | cleared |
//! |---|---|---|
//! | p may need what lies in s | when p borrows a block of s, opens a board with it, or joins the first world with it | when p knows that the process of s is gone, and needs nothing of it |
//! | p has left something for s | when p opens a ring to s or lends it a block: the same bit | the same |
//!
//! Beside it stands the generation of the membership that p has acted upon. So whoever gives slots away
//! asks of each process that lives: does it say that it needs the slot; or did the dead leave it
//! something, and it has not looked since the end? Both make a slot *kept*. Setting a bit costs a look at
//! it, and what a process has of others is counted in its private memory.

use std::sync::atomic::Ordering;

use crate::page::Presence;
use crate::segment::Segment;

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
            self.bond(own, slot);
        }
    }

    /// Takes back what [`Segment::hold`] has counted.
    #[inline]
    pub fn release(&self, slot: u32) {
        if let Some(count) = self.holdings().of(slot) {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Says that the process of `own`, which calls, and that of another slot have to do with each other:
    /// one of them reads what the other one has written into its own memory. What is no slot is passed
    /// over.
    #[inline]
    pub fn bond(&self, own: u32, other: u32) {
        if other < self.plan().slots() && !self.is_bonded(own, other) {
            let (place, bit) = self.bond_bit(own, other);
            self.long(place).fetch_or(bit, Ordering::SeqCst);
        }
    }

    /// Whether the process of `of` says that it and that of another slot have to do with each other.
    #[inline]
    pub fn is_bonded(&self, of: u32, other: u32) -> bool {
        let slots = self.plan().slots();
        let (place, bit) = self.bond_bit(of.min(slots - 1), other.min(slots - 1));
        self.long(place).load(Ordering::Acquire) & bit != 0
    }

    /// Bonds a process of the first world with all others of it.
    pub(crate) fn bond_first_world(&self, own: u32) {
        (0..self.plan().processes).for_each(|other| self.bond(own, other));
    }

    /// Says whether the process of `own`, which calls, still needs what the process of another slot has
    /// left, which is gone: as far as is counted here, or `is_needed` says, which also knows the first world's
    /// board. To be called before [`Segment::set_seen`].
    pub fn settle(&self, own: u32, gone: u32, is_needed: bool) {
        if gone >= self.plan().slots() || !self.is_bonded(own, gone) {
            return;
        }
        let is_held =
            self.holdings().of(gone).is_some_and(|count| count.load(Ordering::Relaxed) != 0);
        if !is_needed && !is_held {
            let (place, bit) = self.bond_bit(own, gone);
            self.long(place).fetch_and(!bit, Ordering::SeqCst);
        }
    }

    /// Says that the process of `own`, which calls, has acted upon the membership up to this generation.
    pub fn set_seen(&self, own: u32, generation: u32) {
        self.word(self.plan().own_page(own) + SEEN).store(generation, Ordering::SeqCst);
    }

    /// Whether anybody who lives may need what the process of a slot has left, which is gone since this
    /// generation of the membership. Where the process of slot 0 has been, the shared words of the first
    /// world are: that slot is always kept.
    pub fn is_kept(&self, gone: u32, since: u32) -> bool {
        let plan = self.plan();
        let is_kept_by = |process: u32| match self.presence(process) {
            // It is to come, and to find the first world's board as others have left it.
            Presence::NotAttached => gone < plan.processes && self.rank_of(process).is_some(),
            Presence::Attached => {
                let seen = self.word(plan.own_page(process) + SEEN).load(Ordering::SeqCst);
                let has_looked = seen.wrapping_sub(since) as i32 >= 0;
                self.is_bonded(process, gone) || self.is_bonded(gone, process) && !has_looked
            }
            Presence::Finalized | Presence::Aborted(_) => false,
        };
        let others = (0..plan.slots()).filter(|&process| process != gone);
        gone == 0 || others.filter(|&other| self.is_there(other)).any(is_kept_by)
    }

    /// Whether a slot has a process that lives or is to come.
    fn is_there(&self, slot: u32) -> bool {
        let state = self.slot_record(slot).state;
        !state.is_gone() && state != crate::membership::SlotState::Free
    }

    /// The word in which a bit is, and the bit.
    #[inline]
    fn bond_bit(&self, of: u32, other: u32) -> (u64, u64) {
        let row = self.plan().bonds(of);
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

    fn look(all: &[Segment], gone: u32) {
        for own in (0..all.len() as u32).filter(|&own| own != gone) {
            let view = &all[own as usize];
            view.settle(own, gone, false);
            view.set_seen(own, view.membership_generation());
        }
    }

    #[test]
    fn a_slot_is_free_when_all_have_looked_who_have_to_do_with_it() {
        let all = all();
        all[3].bond(GUEST, 1);
        let since = depart(&all[0], GUEST);
        assert!(all[0].is_kept(GUEST, since), "something may lie in its ring");
        all[1].set_seen(1, since);
        assert!(!all[0].is_kept(GUEST, since), "the others have nothing of it");
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
        assert!(all[1].is_kept(GUEST, since));
        drop(borrowed);
        look(&all, GUEST);
        assert!(!all[1].is_kept(GUEST, since));
    }

    #[test]
    fn who_is_to_come_finds_the_first_world_as_it_was_left() {
        let all = all();
        all[1].set_presence(1, Presence::NotAttached);
        let since = depart(&all[0], 2);
        look(&all, 2);
        assert!(all[0].is_kept(2, since));
        all[1].set_presence(1, Presence::Finalized);
        assert!(!all[0].is_kept(2, since), "who has left needs nothing");
    }
}
