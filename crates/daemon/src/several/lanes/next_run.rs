//! The lanes of a daemon that has started again: they go on with the processes that the run before has left.

use landeck_channel::conformance::Arrivals;
use landeck_channel::{Channel, Peer};
use landeck_joining::address::{connect_to_daemon, reconnect_to_daemon};
use landeck_memory::Bytes;
use landeck_transports::Lanes;
use landeck_wire::handover::RELAY_LANE;
use landeck_wire::way::PathWish;
use landeck_wire::{Header, Kind};

use super::*;

impl Daemon {
    /// Plays that a daemon has started again, as the lanes of it and of the others see that.
    pub(in super::super) fn begin_again(&self, run: u32, others: &[&Daemon]) {
        let host = self.entry.host;
        for other in others {
            other.ask(move |context| context.lanes_restarted(host, run));
        }
        self.ask(move |context| context.begin_lanes_again(JOB, run));
    }
}

/// The channel of the process of a segment, as a program has it.
pub(in super::super) fn channel(segment: &Segment, wish: PathWish) -> Lanes {
    let host = SegmentId(segment.plan().host);
    let socket = connect_to_daemon(host).unwrap();
    let mut lanes = Lanes::with_relays(socket, segment, 0, wish, 0).unwrap();
    lanes.reconnect_by(move || reconnect_to_daemon(host));
    lanes
}

/// Sends a message to a far process, and waits until it is there.
pub(in super::super) fn pass(from: &mut Lanes, to: &mut Lanes, segment: &Segment, far: u32) {
    let header = Header::user(Kind::Eager, 3, 1, 2);
    let peer = Peer(segment.plan().slots() + far);
    let (mut arrivals, give_up) = (Arrivals::default(), Instant::now() + PATIENCE);
    let mut is_sent = false;
    while arrivals.is_empty() {
        assert!(Instant::now() < give_up, "is it sent: {is_sent}");
        is_sent = is_sent || from.try_send(peer, &header, Bytes::from(&b"abc"[..])).is_ok();
        from.poll_thoroughly(&mut Arrivals::default());
        to.poll_thoroughly(&mut arrivals);
    }
}

#[test]
fn processes_go_on_with_their_lanes_and_get_further_ones_from_the_next_run() {
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    let [zero, one, two] = three();
    let segments = parts_of(JOB, [&zero, &one, &two]);
    let [mut a, mut b, mut c] = [0, 1, 2].map(|at| channel(&segments[at], PathWish::Lane));
    pass(&mut a, &mut b, &segments[0], 0);
    one.begin_again(1, &[&zero, &two]);
    pass(&mut b, &mut a, &segments[1], 0);
    // What the process waits for when its daemon ends is answered by the next run.
    let far_of_c = Peer(segments[1].plan().slots() + 1);
    let header = Header::user(Kind::Eager, 0, 1, 2);
    assert!(b.try_send(far_of_c, &header, Bytes::from(&b""[..])).is_err());
    one.begin_again(2, &[&zero, &two]);
    pass(&mut b, &mut c, &segments[1], 1);
    one.begin_again(3, &[&zero, &two]);
    two.begin_again(1, &[&zero, &one]);
    pass(&mut c, &mut b, &segments[2], 1);
    pass(&mut c, &mut a, &segments[2], 0);
    pass(&mut a, &mut b, &segments[0], 0);
}

#[test]
fn messages_over_relays_go_on_behind_a_new_run() {
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    let [zero, one, _two] = three();
    let segments = parts(&zero, &one);
    let [mut a, mut b] = [0, 1].map(|at| channel(&segments[at], PathWish::Relay));
    let mut pass_both = |times| {
        for _ in 0..times {
            pass(&mut a, &mut b, &segments[0], 0);
            pass(&mut b, &mut a, &segments[1], 0);
        }
    };
    pass_both(3);
    one.begin_again(1, &[&zero]);
    pass_both(20);
    one.begin_again(2, &[&zero]);
    zero.begin_again(1, &[&one]);
    pass_both(3);
}

#[test]
fn a_lane_that_breaks_behind_a_new_run_is_followed_by_one_with_a_higher_number() {
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    let [zero, one, _two] = three();
    let segments = parts(&zero, &one);
    let (first, second) = (Process::hello(&segments[0]), Process::hello(&segments[1]));
    second.say(&Handover::Want { far: 0 });
    let ((before, ..), _other) = (second.lane(), first.lane());
    one.begin_again(1, &[&zero]);
    let second = Process::hello(&segments[1]);
    second.say(&Handover::Has { far: 0, incarnation: 1, lane: before });
    second.say(&Handover::Broken { far: 0, incarnation: 1, lane: before, errno: 104 });
    second.say(&Handover::Want { far: 0 });
    let mut lane = second.lane();
    assert!(lane.0 > before, "{} after {before}", lane.0);
    assert_connected(&mut lane, &mut first.further_lane());
}

#[test]
fn a_lane_that_was_lost_with_its_daemon_holds_up_nobody() {
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    let [zero, one, _two] = three();
    // The side that dials is drawn with the identities of the segments.
    for round in 0..6 {
        let again = if round % 2 == 0 { [&one, &zero] } else { [&zero, &one] };
        let segments = parts_of(JOB, [again[0], again[1]]);
        let there = Process::hello(&segments[1]);
        there.say(&Handover::Want { far: 0 });
        let (before, _, lost) = there.lane();
        // The daemon keeps the other end for a process that computes, and dies.
        again[0].begin_again(round + 1, &[again[1]]);
        let here = Process::hello(&segments[0]);
        here.say(&Handover::Want { far: 0 });
        let mut lane = here.lane();
        assert!(lane.0 > before, "{} after {before}", lane.0);
        // The process there has not noticed anything.
        assert_connected(&mut lane, &mut there.further_lane());
        drop(lost);
        for daemon in again {
            daemon.ask(|context| context.remove_part(JOB));
        }
    }
}

#[test]
fn a_process_that_has_lanes_which_cannot_be_is_sent_away() {
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    let [zero, one, _two] = three();
    let segments = parts(&zero, &one);
    let has = |far, incarnation, lane| Handover::Has { far, incarnation, lane };
    for nonsense in [has(1, 1, 1), has(0, 2, 1), has(0, 1, 0), has(0, 1, RELAY_LANE)] {
        let process = Process::welcomed(&segments[0]);
        process.say(&nonsense);
        let answer = process.hear();
        assert!(matches!(answer, Ok((None, None)) | Err(_)), "{answer:?}");
    }
    let process = Process::welcomed(&segments[0]);
    process.say(&has(0, 0, 7)); // of the process before, which nobody needs
    process.say(&has(0, 1, 4));
    process.say(&has(0, 1, 4));
    process.say(&Handover::Broken { far: 0, incarnation: 1, lane: 4, errno: 104 });
    process.say(&Handover::Want { far: 0 });
    let lane = process.further_lane();
    assert!(lane.0 > 4, "{}", lane.0);
}

#[test]
fn a_process_that_was_away_while_there_was_no_daemon_is_told_to_be_back() {
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    let [mut zero, one, _two] = three();
    let segments = parts(&zero, &one);
    let record = SlotRecord { state: SlotState::Alive, ..SlotRecord::default() };
    segments[1].set_slot_record(0, SlotRecord { incarnation: 2, returns: 1, ..record });
    one.begin_again(1, &[&zero]);
    for _ in 0..2 {
        drop(Process::with_incarnation(&segments[1], 0, 2));
    }
    let back = |content: &WordContent| matches!(content, WordContent::ProcessReturned { .. });
    let is_away = |content: &WordContent| {
        let away = ProcessEnd::Away;
        matches!(content, WordContent::ProcessEnded { end, .. } if *end == away)
    };
    assert!(zero.wait_word(is_away).number < zero.wait_word(back).number);
}

#[test]
fn the_next_run_tells_the_ends_that_came_while_there_was_no_daemon() {
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    let [mut zero, one, _two] = three();
    let segments = parts(&zero, &one);
    let segment = &segments[1];
    let first = segment.plan().processes;
    let set = |slot: u32, state, incarnation, returns| {
        let record = SlotRecord { state, incarnation, returns, ..SlotRecord::default() };
        segment.set_slot_record(slot, record);
    };
    (0..4).for_each(|guest| set(first + guest, SlotState::Alive, 1, 0));
    let guests = [0, 1].map(|guest| Process::in_slot(segment, first + guest, 0));
    guests.iter().for_each(|guest| drop(guest.hear().unwrap()));
    // No daemon hears of these: a guest has died, another one has taken the slot of a dead one, a rank has left.
    one.begin_again(1, &[&zero]);
    set(first, SlotState::Dead, 1, 0);
    set(first + 1, SlotState::Alive, 2, 0);
    set(0, SlotState::Left, 1, 0);
    one.begin_again(2, &[&zero]);
    let mut ends = Vec::new();
    let mut wait = |zero: &mut Daemon, slot: u32, incarnation: u32| {
        let word = zero.wait_word(|content| match content {
            WordContent::ProcessEnded { process, .. } => {
                (process.slot, process.incarnation) == (Slot(slot), Incarnation(incarnation))
            }
            _ => false,
        });
        let WordContent::ProcessEnded { end, .. } = word.content else { unreachable!() };
        ends.push(end);
    };
    wait(&mut zero, first, 1);
    wait(&mut zero, first + 1, 1);
    wait(&mut zero, 0, 1);
    // One that has not connected yet ends later; another one connects, and ends then.
    let guest = Process::in_slot(segment, first + 3, 0);
    guest.hear().unwrap();
    set(first + 2, SlotState::Departed, 1, 0);
    wait(&mut zero, first + 2, 1);
    set(first + 3, SlotState::Departed, 1, 0);
    drop(guest);
    wait(&mut zero, first + 3, 1);
    let unknown = |pid| ProcessEnd::Died { pid, status: SlotRecord::UNKNOWN_STATUS };
    let died = ProcessEnd::Died { pid: 0, status: 0 };
    assert_eq!(ends, [died, unknown(0), ProcessEnd::Away, ProcessEnd::Left, ProcessEnd::Left]);
    // The rank comes back, as its next incarnation.
    set(0, SlotState::Alive, 2, 1);
    let _back = Process::with_incarnation(segment, 0, 2);
    zero.wait_word(|content| matches!(content, WordContent::ProcessReturned { .. }));
    // Everything that the host had to say is here before this.
    one.send(&zero, "over");
    zero.wait_text();
    let again = |seen: &Seen| matches!(seen, Seen::Word(word) if matches!(word.content, WordContent::ProcessEnded { .. }));
    assert!(!zero.seen_so_far().iter().any(again), "{:?}", zero.kept);
}
