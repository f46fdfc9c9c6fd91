//! Pictures for tests: a job on two hosts whose four ranks alternate between them.

use landeck_memory::{Operation, SlotRecord, SlotState};
use landeck_wire::{Incarnation, ProcessId, SegmentId, Slot};

use crate::host_picture::{FarMember, HostPicture, ObservedWait, Stored};
use crate::names::Role;
use crate::picture::Member;

/// When pictures are taken.
const AT_NS: u64 = 5_000_000_000;

pub(crate) fn process(host: u64, slot: u32) -> ProcessId {
    ProcessId { segment: SegmentId(host), slot: Slot(slot), incarnation: Incarnation(1) }
}

pub(crate) fn record(pid: u32) -> SlotRecord {
    SlotRecord { state: SlotState::Alive, incarnation: 1, pid, ..SlotRecord::default() }
}

/// A process that computes.
pub(crate) fn member(host: u64, slot: u32, rank: u32) -> Member {
    let at_ns = AT_NS + host * 1_000_000_000;
    Member { at_ns, ..Member::new(process(host, slot), Role::Rank(rank), record(410 + rank)) }
}

/// A wait of two seconds by the clock of the member's host.
pub(crate) fn waits(member: &mut Member, operation: Operation, peer: Option<ProcessId>) {
    let since_ns = member.at_ns - 2_000_000_000;
    member.wait = ObservedWait { operation, peer, since_ns, ..ObservedWait::default() };
    member.is_asleep = true;
}

/// The pictures of hosts n1 and n2, whose segments are 1 and 2. Everybody computes.
pub(crate) fn two_hosts() -> Vec<HostPicture> {
    let far = |host: u64, slot: u32, rank: u32| FarMember {
        process: process(host, slot),
        host_number: host as u16 - 1,
        rank: Some(rank),
        record: record(410 + rank),
        is_host_lost: false,
    };
    let host = |host: u64| {
        let (own, other) = (host as u32 - 1, 2 - host as u32);
        HostPicture {
            host: SegmentId(host),
            number: own as u16,
            name: format!("n{host}"),
            ranks: 4,
            processes: 2,
            is_ending: false,
            members: vec![member(host, 0, own), member(host, 1, 2 + own)],
            far: vec![far(3 - host, 0, other), far(3 - host, 1, 2 + other)],
            host_names: vec![(0, "n1".to_owned()), (1, "n2".to_owned())],
            boards: Vec::new(),
            ways: Vec::new(),
            stored: Stored::default(),
        }
    };
    vec![host(1), host(2)]
}
