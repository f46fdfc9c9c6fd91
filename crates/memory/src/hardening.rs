//! Pages that a process only reads, mapped so that it can do nothing else.
//!
//! Of what lies in a segment, the header and the membership, and of each other process the own page
//! and the rings, have one writer, which is somebody else. In a hardened job they are mapped for
//! reading alone: a stray write there ends its writer, by the signal that says so, and reaches nobody.
//! Layout and protocols are the same, and so is what others check: pages that several write (shared
//! pages, boards, mailboxes, credits, cells) and heaps stay as they are.

use std::io;

use crate::segment::Segment;
use crate::system;

impl Segment {
    /// Maps what the process of a slot only reads for reading alone, as far as pages have one writer,
    /// if the job is a hardened one. For a process of the job that has attached the segment, once it
    /// knows its slot; calling it again, with another slot, is possible. Not for the agent. Nothing
    /// happens in the local form.
    ///
    /// # Errors
    /// What the kernel says: there are more mappings than it permits (`vm.max_map_count`), or its pages
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
        self.protect(plan.own_page(slot), plan.own_page(slot + 1), true)?;
        self.protect(plan.ring(slot, 0), plan.slot(slot + 1), true)
    }

    /// Maps the pages from `start` to `end` for reading alone, or for writing too.
    fn protect(&self, start: u64, end: u64, writable: bool) -> io::Result<()> {
        let place = self.place(start, end - start);
        // SAFETY: the range was just checked to be of the mapping, and no reference of ours writes to
        // pages that are another process's.
        unsafe { system::protect(place, (end - start) as usize, writable) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::{SlotRecord, SlotState};
    use crate::plan::SegmentPlan;
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
    fn what_others_write_is_read_only_and_all_else_is_not() {
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
                    plan.heap(slot),
                    plan.heap(slot + 1) - 8,
                ];
                for offset in of_several {
                    assert!(is_writable(&segment, offset), "{slot} at {offset}");
                }
            }
        }
        assert!(is_writable(&made, 0), "the agent's mapping is another");
    }

    #[test]
    fn what_is_read_only_shows_what_its_writer_writes() {
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
