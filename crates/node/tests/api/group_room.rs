//! Room in named groups: which broadcasts wait for which mailboxes.

use std::sync::mpsc;
use std::time::Duration;

use landeck::{Error, ErrorKind, GroupError, GroupOptions, Tag, ThreadMode};

use crate::support::in_job;
use crate::support::named_groups::{all, next, value, wait_until_held};

const MOMENT: Duration = Duration::from_millis(30);

fn options() -> GroupOptions {
    GroupOptions::default()
}

fn fault(error: Error) -> GroupError {
    match error.kind {
        ErrorKind::Group(fault) => fault,
        other => panic!("not an error of a group: {other}"),
    }
}

#[test]
fn a_full_mailbox_holds_who_sends_to_it_and_nobody_else() {
    let name = "group_room::a_full_mailbox_holds_who_sends_to_it_and_nobody_else";
    in_job(2, name, ThreadMode::Single, |job| {
        let world = job.world();
        let (mut member, mut inbox) = all(job, "full", options().messages(8));
        let (other, mut second) = all(job, "beside", options());
        if world.rank() == 0 {
            // A process may have half of the room.
            for number in 0..4 {
                member.try_broadcast(&value(number)).unwrap();
                assert_eq!(next(&mut inbox), number);
            }
            for refused in [
                member.try_broadcast(&value(9)).unwrap_err(),
                member.broadcast_within(&value(9), MOMENT).unwrap_err(),
            ] {
                let fault = fault(refused);
                let text = fault.to_string();
                let GroupError::Full { members, waiting, .. } = fault else { panic!("{text}") };
                assert_eq!(members.len(), 1, "{text}");
                assert_eq!((members[0] + member.id(), waiting), (1, 4), "{text}");
            }
            other.broadcast(&value(5)).unwrap();
            assert_eq!(next(&mut second), 5, "another group is not held");
            let view = member.group().view().unwrap();
            assert_eq!(view.members.len(), 2, "nor is a look at it");
            world.send(&[0u8], 1, Tag(1)).unwrap();
            for number in 4..100 {
                member.broadcast(&value(number)).unwrap();
                assert_eq!(next(&mut inbox), number);
            }
        } else {
            world.receive::<u8>(0, Tag(1)).unwrap();
            std::thread::sleep(MOMENT);
            assert!((0..100).all(|number| next(&mut inbox) == number));
        }
        member.sync().unwrap();
        // Who is to retrieve itself, and has no other thread that could, is told.
        let sends = std::iter::repeat_with(|| member.group().broadcast(&value(0)));
        let full = sends.take(9).find_map(landeck::Result::err).unwrap();
        let full = fault(full);
        assert!(matches!(full, GroupError::Full { .. }), "{full}");
        // Over hosts, the group's own host stays until all are done.
        world.barrier().unwrap();
    });
}

#[test]
fn threads_are_told_of_their_own_full_mailboxes_and_wait_for_those_of_others() {
    let name =
        "group_room::threads_are_told_of_their_own_full_mailboxes_and_wait_for_those_of_others";
    in_job(1, name, ThreadMode::Multiple, |job| {
        // A process may have half of the room: one message.
        let (member, mut inbox) = all(job, "own", options().messages(2));
        let is_full = || {
            let full = fault(member.broadcast(&value(9)).unwrap_err());
            assert!(matches!(&full, GroupError::Full { waiting: 1, .. }), "{full}");
        };
        member.broadcast(&value(1)).unwrap();
        is_full();
        assert_eq!(next(&mut inbox), 1);
        let (joined, has_joined) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut inbox = job.create_mailbox().unwrap();
                let _member = job.open_group("own").unwrap().join(&mut inbox).unwrap();
                joined.send(()).unwrap();
                // The other thread waits for this one, which has time.
                wait_until_held(job, 0);
                assert_eq!((next(&mut inbox), next(&mut inbox)), (2, 3));
            });
            has_joined.recv().unwrap();
            member.broadcast(&value(2)).unwrap();
            assert_eq!(next(&mut inbox), 2);
            member.broadcast(&value(3)).unwrap();
            assert_eq!(next(&mut inbox), 3);
        });
        // Another mailbox of this thread, which has joined by another handle.
        let mut second = job.create_mailbox().unwrap();
        let other = job.open_group("own").unwrap().join(&mut second).unwrap();
        member.broadcast(&value(4)).unwrap();
        assert_eq!(next(&mut inbox), 4);
        is_full();
        assert_eq!(next(&mut second), 4);
        other.leave().unwrap();
        // Whoever destroys it does not wait for its own mailbox either.
        member.broadcast(&value(5)).unwrap();
        std::thread::scope(|scope| {
            let held = scope.spawn(|| member.group().broadcast(&value(6)));
            wait_until_held(job, 0);
            let lost = fault(member.group().destroy().unwrap_err());
            assert!(matches!(lost, GroupError::DestroyedWithLoss { .. }), "{lost}");
            let ended = fault(held.join().unwrap().unwrap_err());
            assert!(matches!(ended, GroupError::GroupDestroyed { .. }), "{ended}");
        });
        assert_eq!(next(&mut inbox), 5);
    });
}
