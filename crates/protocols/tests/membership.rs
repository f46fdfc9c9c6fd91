//! The membership in random histories: properties that hold after every step.

use std::time::Duration;

use landeck_protocols::membership::{
    Input, LastPresence, Membership, MembershipPlan, OnFailure, Output, State,
};
use landeck_wire::{ProcessId, SegmentId, Slot};
use proptest::prelude::*;

const GRACE: Duration = Duration::from_secs(1);

fn any_input() -> impl Strategy<Value = Input> {
    let slot = || (0_u32..6).prop_map(Slot);
    let presence = prop_oneof![
        Just(LastPresence::NotAttached),
        Just(LastPresence::Attached),
        Just(LastPresence::Finalized),
        Just(LastPresence::Aborted)
    ];
    prop_oneof![
        8 => (slot(), 1_u32..99).prop_map(|(slot, pid)| Input::Started { slot, pid }),
        1 => slot().prop_map(|slot| Input::NotStarted { slot }),
        6 => (slot(), prop_oneof![Just(0), Just(9), Just(256)], presence)
            .prop_map(|(slot, status, presence)| Input::Ended { slot, status, presence }),
        2 => (slot(), 1_u32..99).prop_map(|(slot, pid)| Input::Found { slot, pid }),
        3 => slot().prop_map(|slot| Input::Left { slot }),
        3 => slot().prop_map(|slot| Input::Returned { slot }),
        2 => slot().prop_map(|slot| Input::Stopped { slot }),
        2 => slot().prop_map(|slot| Input::Continued { slot }),
        8 => (proptest::option::weighted(0.2, slot()), 1_u32..99)
            .prop_map(|(wanted, pid)| Input::Asked { request: 5, wanted, pid }),
        1 => (0_u64..9).prop_map(|s| Input::End { grace: Duration::from_secs(s) }),
        1 => Just(Input::Kill),
        1 => Just(Input::NoRestarts),
        6 => Just(Input::Tick),
    ]
}

fn any_policy() -> impl Strategy<Value = OnFailure> {
    prop_oneof![
        Just(OnFailure::Abort),
        Just(OnFailure::Notify),
        (0_u32..4, any::<bool>())
            .prop_map(|(times, then_abort)| OnFailure::Restart { times, then_abort }),
    ]
}

fn is_subsequence(part: &[ProcessId], whole: &[ProcessId]) -> bool {
    let mut whole = whole.iter();
    part.iter().all(|wanted| whole.any(|process| process == wanted))
}

/// Checks the properties that hold after every step, whatever the input.
fn check_step(before: &Membership, after: &Membership, out: &[Output]) {
    let (old, new) = (before.view(), after.view());
    let changed = old.members() != new.members();
    assert_eq!(new.id(), old.id() + u64::from(changed), "a change is a new view, nothing else is");
    assert_eq!(out.contains(&Output::NewView), changed);
    let survivors: Vec<_> =
        old.members().iter().copied().filter(|&p| new.rank_of(p).is_some()).collect();
    assert_eq!(new.members()[..survivors.len()], survivors, "survivors keep their order");
    assert!(!changed || is_subsequence(new.departed(), old.members()));
    for slot in (0..5).map(Slot) {
        let (was, is) = (before.record(slot), after.record(slot));
        assert!(is.incarnation >= was.incarnation);
        let gone = |state| matches!(state, State::Left | State::Departed | State::Dead);
        if gone(was.state) && !gone(is.state) {
            assert_eq!(is.incarnation, was.incarnation + 1, "the dead do not come back");
            let is_same = is.returns > was.returns;
            assert_eq!(
                is_same,
                was.state == State::Left,
                "a slot is given away behind its process"
            );
        }
        assert!(is.state != State::Left || is.incarnation == was.incarnation);
        let member = new.rank_of(after.process(slot)).is_some();
        assert_eq!(member, matches!(is.state, State::Reserved | State::Alive));
        let written = out.iter().any(
            |output| matches!(output, Output::SetRecord { slot: s, record } if *s == slot && *record == is),
        );
        assert_eq!(written, was != is, "every change is written, and nothing else");
    }
    let announced = out.iter().position(|output| *output == Output::Announce);
    let last_written =
        out.iter().rposition(|o| matches!(o, Output::SetRecord { .. } | Output::SetEnding));
    assert_eq!(announced, last_written.map(|place| place + 1), "{out:?}");
    assert!(before.is_running() || !after.is_running(), "an ended job does not go on");
}

proptest! {
    #[test]
    fn invariants_hold_in_any_history(
        inputs in proptest::collection::vec((any_input(), 0_u64..3), 1..80),
        on_failure in any_policy(),
    ) {
        let plan = MembershipPlan { host: SegmentId(7), processes: 3, guests: 2, keeps_ranks: false, is_held: false, on_failure, grace: GRACE };
        let mut membership = Membership::new(plan);
        let mut now = Duration::ZERO;
        let mut overs = 0;
        for (input, step_s) in inputs {
            now += Duration::from_secs(step_s);
            let before = membership.clone();
            let out = membership.handle(now, input);
            check_step(&before, &membership, &out);
            prop_assert!(membership.kill_at().is_none_or(|kill_at| kill_at > now));
            overs += out.iter().filter(|output| **output == Output::Over).count();
        }
        prop_assert!(overs <= 1);
        membership.handle(now, Input::Kill);
        for slot in (0..5).map(Slot) {
            let presence = LastPresence::Attached;
            membership.handle(now, Input::Ended { slot, status: 9, presence });
        }
        prop_assert!((0..5).all(|slot| membership.record(Slot(slot)).state != State::Alive));
        prop_assert_eq!(membership.deadline(), None);
    }
}
