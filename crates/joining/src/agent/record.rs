//! Translates the membership's record of a slot into the segment's.

use landeck_memory::membership::Replaced;
use landeck_memory::{SlotRecord, SlotState};
use landeck_protocols::membership::{Record, State};

/// Translates a record.
pub(super) fn written(record: Record) -> SlotRecord {
    SlotRecord {
        state: match record.state {
            State::Free => SlotState::Free,
            State::Reserved => SlotState::Reserved,
            State::Alive => SlotState::Alive,
            State::Left => SlotState::Left,
            State::Departed => SlotState::Departed,
            State::Dead => SlotState::Dead,
        },
        incarnation: record.incarnation,
        pid: record.pid,
        stopped: record.stopped,
        status: record.status,
        replaces: record.replaces.map(|of| Replaced { rank: of.rank, number: of.number }),
        returns: record.returns,
    }
}
