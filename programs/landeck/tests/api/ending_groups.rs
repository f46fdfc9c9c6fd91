//! Named groups that end while others come and go.

use std::time::Duration;

use landeck::{Error, Group, GroupError, GroupOptions, ServedBy, ThreadMode};

use crate::support::in_job;
use crate::support::named_groups::{group, next, value};

const LONG: Duration = Duration::from_secs(100);
/// Changes of the members that are seen before the group is destroyed.
const CHANGES: u64 = 100;

/// Joins and leaves until it is told that the group ends; then it is, whatever the call.
fn come_and_go(group: &Group, inbox: &mut landeck::Mailbox) {
    let told = loop {
        match group.join(inbox) {
            // Who was a member when the group ended is none any more.
            Ok(member) => match member.leave() {
                Ok(()) | Err(Error::Group(GroupError::NoMember { .. })) => {}
                Err(error) => break error,
            },
            Err(error) => break error,
        }
    };
    let is_end = |error: &Error| {
        use GroupError::{Destroying, GroupDestroyed};
        matches!(error, Error::Group(Destroying { .. } | GroupDestroyed { .. }))
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
            let mut inbox = job.mailbox().unwrap();
            if world.rank() == 0 {
                let mut view = old.view().unwrap();
                while view.number < CHANGES {
                    view = old.view_after_within(view.number, LONG).unwrap();
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
            let refused = old.join(&mut job.mailbox().unwrap()).map(drop).unwrap_err();
            assert!(
                matches!(refused, Error::Group(GroupError::GroupDestroyed { .. })),
                "{refused}"
            );
            member.sync().unwrap();
            member.leave().unwrap();
            world.barrier().unwrap();
        }
    });
}
