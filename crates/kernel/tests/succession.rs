//! Slots with another process than before: no process is mistaken for its predecessor.

#![allow(clippy::unwrap_used, reason = "a panic is how the helpers of a test report")]

use std::ptr::NonNull;
use std::time::Duration;

use landeck_channel::Channel;
use landeck_kernel::{Area, Endpoint, Failure, Peer, RequestId, Started, Wanted};
use landeck_memory::{Buffer, Bytes, Presence, Segment, SegmentPlan, SlotRecord, SlotState};
use landeck_testing::Watchdog;
use landeck_transports::SharedMemory;
use landeck_wire::{Header, Kind};

/// A context that both processes know, and one that is made later.
const OLD: u32 = 3;
const NEW: u32 = 5;
/// The slot that changes hands.
const SLOT: u32 = 1;

type End = Endpoint<SharedMemory>;

fn area(values: &[u8]) -> Area {
    // SAFETY: the test keeps the values until its requests are complete.
    Area::contiguous(unsafe { Buffer::new(NonNull::from(values).cast(), values.len()) })
}

fn end_of(segment: &Segment, slot: u32) -> End {
    let near = SharedMemory::new(segment, slot).unwrap();
    Endpoint::new(near, segment, slot).unwrap()
}

/// Writes the record of a slot: this process, in this state.
fn tell(segment: &Segment, incarnation: u32, state: SlotState) {
    segment.set_slot_record(SLOT, SlotRecord { state, incarnation, ..SlotRecord::default() });
    segment.announce_membership();
}

/// Gives the slot to its next process, as the agent does.
fn succeed(segment: &Segment, incarnation: u32) {
    segment.clear_slot(SLOT);
    tell(segment, incarnation, SlotState::Alive);
}

/// A segment in which slots 0 to 2 live, and the endpoint of slot 0 in the old context.
fn begun() -> (Segment, End) {
    let plan = SegmentPlan { heap_bytes_per_process: 4 << 20, ..SegmentPlan::new(7, 3) };
    let segment = Segment::create(&plan).unwrap();
    let alive = SlotRecord { state: SlotState::Alive, incarnation: 1, ..SlotRecord::default() };
    (0..3).for_each(|slot| segment.set_slot_record(slot, alive));
    let mut end = end_of(&segment, 0);
    end.set_members(OLD, vec![Peer(0), Peer(SLOT), Peer(2)]);
    (segment, end)
}

fn from(source: Option<u32>, context: u32) -> Wanted {
    Wanted { context, source, tag: None }
}

fn failure(end: &mut End, id: RequestId) -> Option<Failure> {
    end.take(id).map(|ended| ended.result.unwrap_err())
}

fn is_death(failure: &Failure) -> bool {
    matches!(failure, Failure::PeerGone { peer: Peer(SLOT), died: true })
}

#[test]
fn a_receive_from_the_last_process_is_told_though_its_end_was_not_seen() {
    let (segment, mut end) = begun();
    let place = [0; 4];
    let of_it = end.receive(from(Some(SLOT), OLD), area(&place));
    let of_another = end.receive(from(Some(2), OLD), area(&place));
    succeed(&segment, 2);
    end.refresh();
    assert!(is_death(&failure(&mut end, of_it).unwrap()));
    assert!(!end.is_done(of_another));
    let died = end.failure_of_group(OLD, &[Peer(0), Peer(SLOT), Peer(2)]).unwrap();
    assert!(is_death(&died));
}

#[test]
fn a_message_to_the_last_process_does_not_reach_the_next_one() {
    let (segment, mut end) = begun();
    tell(&segment, 1, SlotState::Dead);
    end.refresh();
    succeed(&segment, 2);
    let mut next = end_of(&segment, SLOT);
    let refused = end.send(Peer(SLOT), OLD, 1, area(&[7]));
    end.refresh();
    let refused = refused.err().or_else(|| end.send(Peer(SLOT), OLD, 1, area(&[7])).err());
    assert!(is_death(&refused.unwrap()));
    assert!(end.send(Peer(2), OLD, 1, area(&[7])).is_ok(), "the others are not concerned");
    end.set_members(NEW, vec![Peer(0), Peer(SLOT)]);
    next.set_members(NEW, vec![Peer(0), Peer(SLOT)]);
    let place = vec![0; 1];
    let received = next.receive(from(Some(0), NEW), area(&place));
    assert!(matches!(end.send(Peer(SLOT), NEW, 1, area(&[9])).unwrap(), Started::Complete(_)));
    while !next.is_done(received) {
        next.progress();
    }
    assert!(next.take(received).unwrap().result.is_ok());
    assert_eq!(place, [9]);
    end.set_members_of(OLD + 100, OLD, vec![Peer(0), Peer(SLOT)]);
    assert!(
        end.send(Peer(SLOT), OLD + 100, 1, area(&[7])).is_err(),
        "a context beside the old one"
    );
}

#[test]
fn the_next_process_is_not_broken_because_the_last_one_was() {
    let _watchdog = Watchdog::start(Duration::from_secs(60));
    let (segment, mut end) = begun();
    let mut last = SharedMemory::new(&segment, SLOT).unwrap();
    // Too short for a reference.
    last.try_send(Peer(0), &Header::user(Kind::Reference, 3, OLD, 1), Bytes::from(&[0; 3][..]))
        .unwrap();
    let members = [Peer(0), Peer(SLOT)];
    while end.failure_of_group(OLD, &members).is_none() {
        end.progress();
    }
    let failure = end.failure_of_group(OLD, &members);
    assert!(matches!(failure, Some(Failure::PeerBroken { peer: Peer(SLOT), .. })), "{failure:?}");
    succeed(&segment, 2);
    end.refresh();
    end.set_members(NEW, members.to_vec());
    assert_eq!(end.failure_of_group(NEW, &members), None);
}

#[test]
fn a_block_lent_to_the_last_process_comes_back_though_its_end_was_not_seen() {
    let (segment, mut end) = begun();
    // Too long for a ring and for a cell.
    let data = [5; 200_000];
    assert!(matches!(end.send(Peer(SLOT), OLD, 1, area(&data)).unwrap(), Started::Complete(_)));
    assert!(end.heap_in_use() >= data.len() as u64);
    succeed(&segment, 2);
    end.refresh();
    assert_eq!(end.heap_in_use(), 0);
}

#[test]
fn where_somebody_is_awaited_the_next_process_is_meant() {
    let (segment, mut end) = begun();
    tell(&segment, 1, SlotState::Departed);
    end.await_members(NEW, vec![Peer(0), Peer(SLOT)]);
    let place = [0; 1];
    let received = end.receive(from(Some(SLOT), NEW), area(&place));
    succeed(&segment, 2);
    let mut next = end_of(&segment, SLOT);
    next.set_members(NEW, vec![Peer(0), Peer(SLOT)]);
    end.refresh();
    assert!(!end.is_done(received));
    next.send(Peer(0), NEW, 1, area(&[9])).unwrap();
    while !end.is_done(received) {
        end.progress();
    }
    assert!(end.take(received).unwrap().result.is_ok());
    succeed(&segment, 3);
    let of_it = end.receive(from(Some(SLOT), NEW), area(&place));
    end.refresh();
    assert!(is_death(&failure(&mut end, of_it).unwrap()), "the one after that is another");
}

#[test]
fn a_slot_is_kept_until_what_its_process_has_sent_is_received() {
    let (segment, _) = begun();
    let view =
        || Segment::attach(segment.descriptor().unwrap().try_clone_to_owned().unwrap()).unwrap();
    let (mine, theirs) = (view(), view());
    mine.set_presence(0, Presence::Attached);
    theirs.set_presence(SLOT, Presence::Attached);
    view().set_presence(2, Presence::Finalized);
    let mut end = end_of(&mine, 0);
    end.set_members(OLD, vec![Peer(0), Peer(SLOT), Peer(2)]);
    let mut sender = end_of(&theirs, SLOT);
    let long = vec![7; 200_000];
    assert!(sender.send(Peer(0), OLD, 1, area(&long)).is_ok());
    sender.progress();
    tell(&segment, 1, SlotState::Departed);
    let since = segment.membership_generation();
    assert!(segment.is_referenced(SLOT, since), "nobody has looked");
    end.refresh();
    assert!(segment.is_referenced(SLOT, since), "its data are there");
    let place = vec![0; long.len()];
    let received = end.receive(from(Some(SLOT), OLD), area(&place));
    while !end.is_done(received) {
        end.progress();
    }
    assert!(end.take(received).unwrap().result.is_ok());
    segment.announce_membership();
    end.refresh();
    assert!(!segment.is_referenced(SLOT, since));
    assert_eq!(place, long);
}

#[test]
fn a_receive_from_anybody_tells_of_the_death_where_the_dead_was_a_member() {
    let (segment, mut end) = begun();
    succeed(&segment, 2);
    end.set_members(NEW, vec![Peer(0), Peer(SLOT)]);
    let place = [0; 1];
    let of_old = end.receive(from(None, OLD), area(&place));
    let of_new = end.receive(from(None, NEW), area(&place));
    assert!(end.is_hopeless(of_old) && !end.is_hopeless(of_new));
    assert_eq!(end.acknowledge_failures(), [Peer(SLOT)]);
    assert!(!end.is_hopeless(of_old), "the third one lives");
}

#[test]
fn a_context_that_is_made_again_has_nothing_of_the_last_one() {
    let (segment, mut end) = begun();
    succeed(&segment, 2);
    end.refresh();
    assert!(end.failure_of_group(OLD, &[Peer(0), Peer(SLOT)]).is_some());
    end.set_members(OLD, vec![Peer(0), Peer(SLOT)]);
    assert!(end.failure_of_group(OLD, &[Peer(0), Peer(SLOT)]).is_none(), "it lives in this one");
    tell(&segment, 2, SlotState::Dead);
    end.await_members(NEW, vec![Peer(0), Peer(SLOT)]);
    end.set_members(NEW, vec![Peer(0), Peer(SLOT)]);
    succeed(&segment, 3);
    end.refresh();
    let died = end.failure_of_group(NEW, &[Peer(0), Peer(SLOT)]).unwrap();
    assert!(is_death(&died), "nobody is awaited in this one");
}

/// Writes that the process of the slot has come back so often.
fn come_back(segment: &Segment, returns: u32) {
    let (state, incarnation) = (SlotState::Alive, 1 + returns);
    let record = SlotRecord { state, incarnation, returns, ..SlotRecord::default() };
    segment.set_slot_record(SLOT, record);
    segment.announce_membership();
}

#[test]
fn a_process_that_comes_back_is_another_member_and_has_its_memory_still() {
    let (segment, mut end) = begun();
    let mut other = end_of(&segment, SLOT);
    other.set_members(OLD, vec![Peer(0), Peer(SLOT), Peer(2)]);
    let (place, late) = ([0; 1], [0; 1]);
    other.send(Peer(0), OLD, 1, area(&[7])).unwrap();
    tell(&segment, 1, SlotState::Left);
    let received = end.receive(from(Some(SLOT), OLD), area(&place));
    end.refresh();
    assert!(end.take(received).unwrap().result.is_ok(), "what it sent before counts");
    let has_left =
        |failure: &Failure| matches!(failure, Failure::PeerGone { peer: Peer(SLOT), died: false });
    assert!(has_left(&end.send(Peer(SLOT), OLD, 1, area(&[7])).err().unwrap()));
    let awaited = end.receive(from(Some(SLOT), OLD), area(&late));
    come_back(&segment, 1);
    end.refresh();
    assert!(has_left(&failure(&mut end, awaited).unwrap()), "it comes to nothing it was in before");
    assert!(has_left(&end.send(Peer(SLOT), OLD, 1, area(&[7])).err().unwrap()));
    end.set_members(NEW, vec![Peer(0), Peer(SLOT)]);
    other.set_members(NEW, vec![Peer(0), Peer(SLOT)]);
    let received = end.receive(from(Some(SLOT), NEW), area(&place));
    other.send(Peer(0), NEW, 1, area(&[9])).unwrap();
    while !end.is_done(received) {
        end.progress();
    }
    assert!(end.take(received).unwrap().result.is_ok());
    // It leaves and comes back again before anybody looks.
    come_back(&segment, 2);
    end.refresh();
    assert!(has_left(&end.send(Peer(SLOT), NEW, 1, area(&[7])).err().unwrap()));
}

#[test]
fn a_process_that_has_left_is_waited_for_only_where_it_may_come_again() {
    const NAMES: u32 = 9;
    let (segment, mut end) = begun();
    end.wait_for_leavers_in(NAMES);
    let place = [0; 1];
    let received = end.receive(from(Some(SLOT), NAMES), area(&place));
    tell(&segment, 1, SlotState::Left);
    assert!(end.verdict(received).is_none() && !end.is_done(received));
    assert!(end.send(Peer(SLOT), NAMES, 1, area(&[7])).is_ok());
    come_back(&segment, 1);
    assert!(end.verdict(received).is_none() && !end.is_done(received));
    let ended =
        SlotRecord { state: SlotState::Left, incarnation: 2, returns: 1, ..Default::default() };
    segment.set_slot_record(SLOT, ended);
    segment.announce_membership();
    assert!(end.verdict(received).is_none() && !end.is_done(received));
    segment.set_slot_record(SLOT, SlotRecord { state: SlotState::Departed, ..ended });
    segment.announce_membership();
    end.verdict(received);
    let failure = failure(&mut end, received).unwrap();
    assert!(matches!(failure, Failure::PeerGone { died: false, .. }), "{failure:?}");
}
