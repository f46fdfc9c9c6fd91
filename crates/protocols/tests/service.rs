//! Random histories of named groups. Every fold has the same result, from the beginning or from any snapshot, and the
//! promises of a group hold after every entry.

use landeck_protocols::service::{
    GroupEntry, HELD_MAX, HOSTS_MAX, Joining, Outcome, Party, Phase, Rules, Seat, State,
};
use landeck_testing::{Random, Watchdog, seed};
use landeck_wire::SegmentId;
use std::time::Duration;

const HOME: SegmentId = SegmentId(77);
const HISTORIES: u64 = 2_000;
const ENTRIES: u64 = 200;

#[test]
fn random_histories_keep_what_groups_promise() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let seed = seed();
    let mut outcomes = [0u64; 4];
    for number in 0..HISTORIES {
        let mut random = Random::new(seed.wrapping_add(number));
        let rules = Rules { minimum: random.below(4) as u32, is_persistent: random.below(2) == 0 };
        let (mut state, mut other) = (State::new(rules, HOME), State::new(rules, HOME));
        for _ in 0..ENTRIES {
            let entry = draw(&mut random, &state);
            let before = state.clone();
            let outcome = state.apply(entry);
            assert_eq!(other.apply(entry), outcome, "seed {seed}, history {number}");
            check(&before, &state, entry, outcome);
            if random.below(20) == 0 {
                other = State::from_words(&other.to_words()).unwrap();
            }
            assert_eq!(state, other);
            outcomes[match outcome {
                Outcome::Broadcast(_) => 0,
                Outcome::Come(_) => 1,
                Outcome::Removed(..) => 2,
                _ => 3,
            }] += 1;
        }
    }
    assert!(outcomes.iter().all(|&count| count > HISTORIES), "{outcomes:?}");
}

fn draw(random: &mut Random, state: &State) -> GroupEntry {
    let member = random.below(8) as u32;
    let known = state.members().iter().find(|it| it.id == member);
    // One entry in eight names a member that has gone long ago.
    let seat = match known {
        Some(member) if random.below(8) != 0 => member.seat(),
        _ => Seat::new(member, random.below(state.position() + 1)),
    };
    let ticket = match state.held().first() {
        Some(held) if random.below(2) == 0 => held.ticket,
        _ => random.below(200),
    };
    let host = random.below(state.hosts().len() as u64) as u16;
    let process = Party { host, slot: random.below(10) as u16, incarnation: 1 };
    match random.below(42) {
        0..8 => GroupEntry::Broadcast { was_held: random.below(2) == 0, by: None },
        8..16 => GroupEntry::Join(Joining { process, context: 1, place: 64 }),
        16..18 => GroupEntry::Hold(process),
        18..20 => GroupEntry::Release { ticket },
        20..23 => GroupEntry::Leave(seat),
        23 => GroupEntry::Died(seat),
        24 => GroupEntry::Evict(seat),
        25..36 => GroupEntry::Sync(seat),
        36..39 => GroupEntry::Cut { number: state.cuts_made() + random.below(3) },
        40 => GroupEntry::HostGone(host),
        39 => GroupEntry::Host(SegmentId(random.below(5))),
        _ if random.below(4) == 0 => GroupEntry::Destroy,
        _ => GroupEntry::End,
    }
}

/// Checks the properties that hold after every entry.
fn check(before: &State, after: &State, entry: GroupEntry, outcome: Outcome) {
    assert_eq!(after.position(), before.position() + 1);
    assert!(after.members().is_sorted_by(|one, next| one.id < next.id));
    assert!(after.held().len() <= HELD_MAX && after.hosts().len() <= HOSTS_MAX);
    assert!(after.hosts().starts_with(before.hosts()), "a host keeps its number");
    assert!(after.has_started() || !before.has_started(), "it is a latch");
    let changed = before.members().len() != after.members().len();
    assert_eq!(after.view() != before.view(), changed, "a view for each change");
    if changed {
        let view = after.view_after(before.view()).expect("the view is remembered");
        assert_eq!((view.number, view.after), (after.view(), before.broadcasts()));
        let members = after.members().iter().map(|it| (it.id, it.joined_at));
        assert!(view.members.iter().map(|it| (it.id, it.joined_at)).eq(members));
        let difference = before.members().len().abs_diff(after.members().len());
        assert_eq!((view.changes.len(), view.has_missed), (difference, false));
    }
    if before.view() > 0 {
        // A view stays what it was, as long as it is remembered.
        let (old, new) =
            (before.view_after(before.view() - 1), after.view_after(before.view() - 1));
        assert_eq!(old, new);
    }
    let is_message = matches!(outcome, Outcome::Broadcast(number) if number == before.broadcasts());
    assert_eq!(after.broadcasts() - before.broadcasts(), u64::from(is_message));
    assert!(before.phase() != Phase::Ended || after.phase() == Phase::Ended, "the end is final");
    if let Outcome::Joined(id) = outcome {
        assert!(before.members().iter().all(|member| member.id != id));
        assert!((0..id).all(|lower| before.members().iter().any(|member| member.id == lower)));
        assert_eq!(before.phase(), Phase::Open);
    }
    if let (GroupEntry::Broadcast { was_held, .. }, Outcome::Broadcast(_)) = (entry, outcome) {
        assert!(before.phase() == Phase::Open || was_held && !before.held().is_empty());
        assert!(before.has_started());
    }
    // While a round goes on, it waits for at least one member.
    if let Outcome::Come(round) = outcome {
        assert!(after.ended(round).is_some() || after.awaited().next().is_some());
    }
    for number in 1..=after.cuts_made() {
        if let (Some(old), Some(new)) = (before.cut(number), after.cut(number)) {
            assert_eq!(old, new, "what an operation goes by does not change");
        }
    }
}
