//! Pages that a process only reads, mapped so that it can do nothing else.
//!
//! The header, the membership, the tables for other hosts, and the own page, rings and heap of each other process have
//! one writer, which is not this process. In a hardened job this process maps them read-only: a stray write there kills its writer by
//! a signal and harms no other process. The protocols and checks stay the same. Pages with several writers stay
//! writable (shared pages, boards, handoff buffers, mailboxes, credits, and control lines of blocks, which lie
//! outside the heap in such a job). A region has pages of its own, which a process that opens it maps for writing
//! until its last view of them is gone.

use std::io;
use std::ops::Range;
use std::sync::PoisonError;

use crate::plan::PAGE_BYTES;
use crate::segment::Segment;
use crate::system;

impl Segment {
    /// Maps the one-writer pages that the process of a slot only reads as read-only, if the job is hardened. A process
    /// of the job calls it once it has attached the segment and knows its slot; it may call it again with another
    /// slot. The agent does not call it. Nothing happens in the local form.
    ///
    /// # Errors
    /// The kernel's error: there are more mappings than it permits (`vm.max_map_count`), or its pages
    /// are larger than those of the segment.
    pub fn harden(&self, slot: u32) -> io::Result<()> {
        if !self.plan().is_hardened || self.descriptor().is_none() {
            return Ok(());
        }
        let plan = self.plan();
        self.protect(0, plan.shared_page(0), false)?;
        for of in 0..plan.slots() {
            self.protect(plan.ring(of, 0), plan.slot(of + 1), false)?;
        }
        self.protect(plan.heap(0), plan.heap(plan.slots()), false)?;
        self.protect(plan.far_record(0), plan.relay_credit(0), false)?;
        self.protect(plan.own_page(slot), plan.own_page(slot + 1), true)?;
        self.protect(plan.ring(slot, 0), plan.slot(slot + 1), true)?;
        self.protect(plan.heap(slot), plan.heap(slot + 1), true)
    }

    /// Maps the pages of these bytes of another process's heap for writing, in a hardened job, until
    /// what is returned is dropped.
    ///
    /// # Errors
    /// As [`Segment::harden`].
    pub fn open_for_writing(&self, bytes: Range<u64>) -> io::Result<Opened> {
        let segment = self.clone();
        if !self.plan().is_hardened || self.descriptor().is_none() {
            return Ok(Opened { segment, pages: 0..0 });
        }
        let start = bytes.start / PAGE_BYTES * PAGE_BYTES;
        let pages = start..bytes.end.next_multiple_of(PAGE_BYTES);
        let mut opened = self.opened().lock().unwrap_or_else(PoisonError::into_inner);
        self.protect(pages.start, pages.end, true)?;
        opened.push(pages.clone());
        Ok(Opened { segment, pages })
    }

    /// Maps the pages from `start` to `end` for reading alone, or for writing too.
    fn protect(&self, start: u64, end: u64, writable: bool) -> io::Result<()> {
        if start == end {
            return Ok(());
        }
        let place = self.place(start, end - start);
        // SAFETY: the range was just checked to be of the mapping, and no reference of ours writes to
        // pages that are another process's.
        unsafe { system::protect(place, (end - start) as usize, writable) }
    }
}

/// Pages of another process that are mapped for writing while this is there.
#[derive(Debug)]
pub struct Opened {
    segment: Segment,
    pages: Range<u64>,
}

impl Drop for Opened {
    fn drop(&mut self) {
        if self.pages.is_empty() {
            return;
        }
        let mut opened = self.segment.opened().lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = opened.iter().position(|pages| *pages == self.pages) {
            opened.swap_remove(at);
        }
        for pages in without(self.pages.clone(), &opened) {
            // Where that fails they stay writable here, as in a job that is not hardened.
            let _ = self.segment.protect(pages.start, pages.end, false);
        }
    }
}

/// The parts of a range that lie outside all `others`.
fn without(whole: Range<u64>, others: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut left = vec![whole];
    for other in others {
        left = left
            .into_iter()
            .flat_map(|part| {
                let before = part.start..part.end.min(other.start);
                let behind = part.start.max(other.end)..part.end;
                [before, behind]
            })
            .filter(|part| !part.is_empty())
            .collect();
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::SegmentPlan;
    use crate::slots::membership::{SlotRecord, SlotState};
    use std::sync::atomic::Ordering;

    fn plan() -> SegmentPlan {
        let plan = SegmentPlan { heap_bytes_per_process: 1 << 20, ..SegmentPlan::new(0xabc, 3) };
        SegmentPlan { guests: 1, is_hardened: true, ..plan }
    }

    /// Whether the page at an offset is mapped for writing.
    fn is_writable(segment: &Segment, offset: u64) -> bool {
        let address = segment.place(offset, 8).as_ptr() as u64;
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
        let line = maps.lines().find(|line| {
            let (start, end) = line.split(' ').next().unwrap().split_once('-').unwrap();
            (number(start)..number(end)).contains(&address)
        });
        line.unwrap().split(' ').nth(1).unwrap().contains('w')
    }

    fn attached(made: &Segment) -> Segment {
        Segment::attach(made.descriptor().unwrap().try_clone_to_owned().unwrap()).unwrap()
    }

    #[test]
    fn memory_that_only_others_write_is_read_only_and_all_else_is_not() {
        let made = Segment::create(&plan()).unwrap();
        let segment = attached(&made);
        for own in [1, 2, 0, 3] {
            segment.harden(own).unwrap();
            let plan = segment.plan();
            assert!(!is_writable(&segment, 0) && !is_writable(&segment, plan.membership()));
            for cell in 0..plan.cells() {
                assert!(is_writable(&segment, plan.cell(cell)), "cell {cell}");
            }
            for slot in 0..plan.slots() {
                let of_one = [
                    plan.own_page(slot),
                    plan.own_page(slot + 1) - 8,
                    plan.ring(slot, 0),
                    plan.bulk(slot, plan.rings() - 1),
                    plan.slot(slot + 1) - 8,
                    plan.heap(slot),
                    plan.heap(slot + 1) - 8,
                ];
                for offset in of_one {
                    assert_eq!(is_writable(&segment, offset), slot == own, "{slot} at {offset}");
                }
                let of_several = [
                    plan.shared_page(slot),
                    plan.shared_page(slot + 1) - 8,
                    plan.board(slot, 0),
                    plan.mailbox(slot),
                    plan.credit(slot, 0),
                    plan.controls(slot),
                    plan.controls(slot + 1) - 8,
                ];
                for offset in of_several {
                    assert!(is_writable(&segment, offset), "{slot} at {offset}");
                }
            }
        }
        assert!(is_writable(&made, 0), "the agent's mapping is another");
    }

    #[test]
    fn pages_that_are_opened_are_writable_until_nobody_has_them_open() {
        let made = Segment::create(&plan()).unwrap();
        let segment = attached(&made);
        segment.harden(1).unwrap();
        let heap = segment.plan().heap(2);
        let writable = |pages: &[u64]| {
            (0..8).for_each(|page| {
                let is = is_writable(&segment, heap + page * PAGE_BYTES);
                assert_eq!(is, pages.contains(&page), "page {page} of {pages:?}");
            });
        };
        let open = |from: u64, to: u64| segment.open_for_writing(heap + from..heap + to).unwrap();
        let first = open(PAGE_BYTES, PAGE_BYTES + 1);
        writable(&[1]);
        let second = open(PAGE_BYTES + 8, 4 * PAGE_BYTES);
        writable(&[1, 2, 3]);
        let inner = open(2 * PAGE_BYTES, 3 * PAGE_BYTES);
        let again = open(PAGE_BYTES, PAGE_BYTES + 1);
        drop(first);
        writable(&[1, 2, 3]);
        drop(second);
        writable(&[1, 2]);
        drop(again);
        writable(&[2]);
        drop(inner);
        writable(&[]);
    }

    #[test]
    fn read_only_memory_shows_its_writers_stores() {
        let made = Segment::create(&plan()).unwrap();
        let segment = attached(&made);
        segment.harden(1).unwrap();
        let record = SlotRecord { state: SlotState::Dead, incarnation: 4, ..SlotRecord::default() };
        made.set_slot_record(2, record);
        made.long(made.plan().ring(0, 0)).store(77, Ordering::Release);
        assert_eq!(segment.slot_record(2), record);
        assert_eq!(segment.long(segment.plan().ring(0, 0)).load(Ordering::Acquire), 77);
    }

    #[test]
    fn a_local_segment_and_another_job_stay_as_they_are() {
        Segment::local(&plan()).harden(0).unwrap();
        let made = Segment::create(&SegmentPlan { is_hardened: false, ..plan() }).unwrap();
        made.harden(0).unwrap();
        assert!(is_writable(&made, 0));
    }
}
