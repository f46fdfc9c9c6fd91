//! Named groups that end while others come and go.

use std::time::Duration;

use landeck::unstable::JobInternals;
use landeck::{
    Error, ErrorKind, Group, GroupError, GroupOptions, Job, Message, ObjectError, ServedBy, Tag,
    ThreadMode,
};

use crate::support::named_groups::{all, group, next, value};
use crate::support::{in_enduring_job, in_job, kill_myself};

const LONG: Duration = Duration::from_secs(100);
const MOMENT: Duration = Duration::from_millis(1);
/// Changes of the members that are seen before the group is destroyed.
const CHANGES: u64 = 100;
/// Groups that are destroyed one after the other.
const TURNS: u32 = 30;

/// Joins and leaves until it is told that the group ends; then it is, whatever the call.
fn come_and_go(group: &Group, inbox: &mut landeck::Mailbox) {
    let told = loop {
        match group.join(inbox) {
            // Who was a member when the group ended is none any more.
            Ok(member) => match member.leave() {
                Ok(()) | Err(Error { kind: ErrorKind::Group(GroupError::NoMember { .. }), .. }) => {
                }
                Err(error) => break error,
            },
            Err(error) => break error,
        }
    };
    let is_end = |error: &Error| {
        use GroupError::{Destroying, GroupDestroyed};
        matches!(error.kind, ErrorKind::Group(Destroying { .. } | GroupDestroyed { .. }))
    };
    assert!(is_end(&told), "{told}");
    for refused in [
        group.join(inbox).map(drop).unwrap_err(),
        group.broadcast(&value(1)).unwrap_err(),
        group.destroy().unwrap_err(),
    ] {
        assert!(is_end(&refused), "{refused}");
    }
}

/// Three processes join and leave as fast as they can; the fourth destroys the group. Each is told, once the
/// name is free another group has it, and the old handles stay dead.
#[test]
fn destruction_is_told_to_who_is_joining() {
    let name = "ending_groups::destruction_is_told_to_who_is_joining";
    in_job(4, name, ThreadMode::Single, |job| {
        let world = job.world();
        for (name, how) in [
            ("by all", GroupOptions::default()),
            ("by a server", GroupOptions::default().served_by(ServedBy::Creator)),
        ] {
            let old = group(job, name, how.persistent(true));
            let mut inbox = job.create_mailbox().unwrap();
            if world.rank() == 0 {
                let mut number = old.view().unwrap().number;
                while number < CHANGES {
                    number = old.next_view_within(number, LONG).unwrap().number();
                }
                old.destroy().unwrap();
            } else {
                come_and_go(&old, &mut inbox);
            }
            world.barrier().unwrap();
            let new = group(job, name, how.minimum(4));
            assert_ne!(new.number(), old.number());
            let mut member = new.join(&mut inbox).unwrap();
            if world.rank() == 1 {
                member.broadcast(&value(7)).unwrap();
            }
            assert_eq!(next(&mut inbox), 7);
            let refused = old.join(&mut job.create_mailbox().unwrap()).map(drop).unwrap_err();
            assert!(
                matches!(refused.kind, ErrorKind::Group(GroupError::GroupDestroyed { .. })),
                "{refused}"
            );
            member.sync().unwrap();
            member.leave().unwrap();
            world.barrier().unwrap();
        }
    });
}

/// A broadcast of rank 0 waits for room in the mailbox of rank 2 while rank 1 destroys the group: it finishes,
/// and whatever is begun meanwhile is refused.
#[test]
fn a_call_that_begins_while_a_group_is_being_destroyed_is_told_so() {
    let name = "ending_groups::a_call_that_begins_while_a_group_is_being_destroyed_is_told_so";
    in_job(3, name, ThreadMode::Single, |job| {
        let world = job.world();
        let (mut member, mut inbox) = all(job, "ends", GroupOptions::default().messages(1));
        if world.rank() == 0 {
            member.broadcast(&value(1)).unwrap();
        }
        world.barrier().unwrap();
        if world.rank() < 2 {
            assert_eq!(next(&mut inbox), 1);
        }
        match world.rank() {
            0 => member.broadcast(&value(2)).unwrap(),
            1 => {
                wait_until_held(job, 0);
                member.group().destroy().unwrap();
            }
            _ => {
                // As long as the group is not being destroyed, this finds no room.
                let first = loop {
                    match member.try_broadcast(&value(9)).unwrap_err() {
                        Error { kind: ErrorKind::Group(GroupError::Full { .. }), .. } => {
                            std::thread::sleep(MOMENT);
                        }
                        error => break error,
                    }
                };
                let group = member.group().clone();
                for refused in [
                    first,
                    group.join(&mut job.create_mailbox().unwrap()).map(drop).unwrap_err(),
                    group.broadcast(&value(9)).unwrap_err(),
                    member.broadcast_within(&value(9), LONG).unwrap_err(),
                    member.sync().unwrap_err(),
                    member.advance().map(drop).unwrap_err(),
                    group.destroy().unwrap_err(),
                ] {
                    let is_told =
                        matches!(refused.kind, ErrorKind::Group(GroupError::Destroying { .. }));
                    assert!(is_told, "{refused}");
                }
                assert_eq!(next(&mut inbox), 1);
            }
        }
        assert_eq!(next(&mut inbox), 2, "what had waited was accepted");
        world.barrier().unwrap();
        let gone = member.broadcast(&value(9)).unwrap_err();
        assert!(matches!(gone.kind, ErrorKind::Group(GroupError::GroupDestroyed { .. })), "{gone}");
    });
}

/// A broadcast of rank 0 waits for room while rank 1, whose only thread does not retrieve, destroys the group.
/// Rank 2 retrieves one message, after which what rank 1 has not retrieved is all that can be in the way.
fn destroyed_by_who_does_not_retrieve(job: &Job, options: GroupOptions, last: usize, fits: bool) {
    const PAGE: usize = 4096;
    let world = job.world();
    let (member, mut inbox) = all(job, "late", options);
    let long = |bytes| {
        let mut message = Message::new();
        message.pack(&vec![0u8; bytes]);
        message
    };
    if world.rank() == 0 {
        member.broadcast(&long(PAGE)).unwrap();
        member.broadcast(&long(PAGE)).unwrap();
    }
    world.barrier().unwrap();
    let taken = [2, 1, 0][world.rank()];
    for _ in 0..taken {
        inbox.retrieve().unwrap();
    }
    world.barrier().unwrap();
    match world.rank() {
        0 => {
            let sent = member.broadcast(&long(last));
            assert_eq!(sent.is_ok(), fits, "{sent:?}");
        }
        1 => {
            wait_until_held(job, 0);
            match member.group().destroy() {
                Ok(()) => assert!(fits),
                Err(Error {
                    kind: ErrorKind::Group(GroupError::DestroyedWithLoss { members, .. }),
                    ..
                }) => {
                    assert!(!fits && members.contains(&member.id()), "{members:?}");
                }
                Err(error) => panic!("{error}"),
            }
        }
        _ => {
            wait_until_held(job, 1);
            inbox.retrieve().unwrap();
        }
    }
    world.barrier().unwrap();
}

#[test]
fn destroying_beside_a_mailbox_of_ones_own_loses_what_has_no_room_and_nothing_else() {
    let name = "ending_groups::destroying_beside_a_mailbox_of_ones_own_loses_what_has_no_room_and_nothing_else";
    in_job(3, name, ThreadMode::Single, |job| {
        let options = || GroupOptions::default().messages(4).bytes(2 * 4096);
        for _ in 0..TURNS {
            destroyed_by_who_does_not_retrieve(job, options(), 4096, true);
            destroyed_by_who_does_not_retrieve(job, options(), 2 * 4096, false);
        }
    });
}

/// Waits until a process waits in a group.
fn wait_until_held(job: &Job, slot: u32) {
    while job.segment().wait_record(slot).operation != landeck::unstable::memory::Operation::Group {
        std::thread::sleep(MOMENT);
    }
}

#[test]
fn the_death_of_the_last_member_ends_a_group_and_frees_its_name() {
    let name = "ending_groups::the_death_of_the_last_member_ends_a_group_and_frees_its_name";
    in_enduring_job(2, name, 137, |job| {
        let world = job.world();
        let names = ["known to others", "known to nobody else"];
        let mut inbox = job.create_mailbox().unwrap();
        if world.rank() == 1 {
            let _members = names.map(|name| {
                let group = job.create_group(name, GroupOptions::default()).unwrap();
                group.join(&mut inbox).unwrap()
            });
            world.send(&[0u8], 0, Tag(1)).unwrap();
            world.receive::<u8>(0, Tag(2)).unwrap();
            kill_myself();
        }
        world.receive::<u8>(1, Tag(1)).unwrap();
        let old = job.open_group(names[0]).unwrap();
        world.send(&[0u8], 1, Tag(2)).unwrap();
        for name in names {
            // Until the death is known, the name is taken.
            let new = loop {
                match job.create_group(name, GroupOptions::default()) {
                    Ok(group) => break group,
                    Err(Error { kind: ErrorKind::Object(ObjectError::Taken { .. }), .. }) => {
                        std::thread::sleep(MOMENT);
                    }
                    Err(error) => panic!("{error}"),
                }
            };
            let member = new.join(&mut inbox).unwrap();
            assert_eq!(member.id(), 0);
            member.broadcast(&value(7)).unwrap();
            assert_eq!(next(&mut inbox), 7);
            member.leave().unwrap();
        }
        let dead = old.broadcast(&value(1)).unwrap_err();
        assert!(matches!(dead.kind, ErrorKind::Group(GroupError::GroupDestroyed { .. })), "{dead}");
        println!("survivor done");
        job.leave().unwrap();
    });
}
