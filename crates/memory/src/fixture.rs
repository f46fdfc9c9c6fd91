//! Segments for tests in which one process plays several.

use crate::plan::SegmentPlan;
use crate::segment::Segment;
use crate::slots::membership::{SlotRecord, SlotState};
use crate::slots::page::Presence;

/// Makes a segment, and attaches it once for each slot, whose process is alive.
///
/// # Panics
/// When there is no memory for the segment.
pub fn attached_views(plan: &SegmentPlan) -> Vec<Segment> {
    let made = Segment::create(plan).expect("a valid plan and memory for it");
    let slots = plan.slots();
    let alive = SlotRecord { state: SlotState::Alive, incarnation: 1, ..Default::default() };
    (0..slots).for_each(|slot| made.set_slot_record(slot, alive));
    let attach = |slot| {
        let file = made.descriptor().expect("a segment that was created has a file");
        let file = file.try_clone_to_owned().expect("a free descriptor");
        let view = Segment::attach(file).expect("a segment of this version");
        view.set_presence(slot, Presence::Attached);
        view
    };
    (0..slots).map(attach).collect()
}

/// Records that the process of a slot has departed; returns the generation of the membership since then.
pub fn depart(segment: &Segment, slot: u32) -> u32 {
    let departed = SlotRecord { state: SlotState::Departed, incarnation: 1, ..Default::default() };
    segment.set_slot_record(slot, departed);
    segment.announce_membership();
    segment.membership_generation()
}
