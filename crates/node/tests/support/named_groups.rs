//! Helpers for tests of named groups: groups of a whole job, and messages of one number.

use std::time::Duration;

use landeck::unstable::JobInternals;
use landeck::unstable::memory::Operation;
use landeck::{Error, ErrorKind, Group, GroupError, GroupOptions, Job, Mailbox, Member, Message};

/// Longer than anything may take.
const LONG: Duration = Duration::from_secs(100);

/// The group of this name, made by rank 0; all of the job call this, and have it afterwards.
pub(crate) fn group(job: &Job, name: &str, options: GroupOptions) -> Group {
    let world = job.world();
    let made = (world.rank() == 0).then(|| job.create_group(name, options).unwrap());
    world.barrier().unwrap();
    let group = made.unwrap_or_else(|| job.open_group(name).unwrap());
    world.barrier().unwrap();
    group
}

/// All of the job as members, whose numbers are not their ranks.
pub(crate) fn all(job: &Job, name: &str, options: GroupOptions) -> (Member, Mailbox) {
    let group = group(job, name, options);
    let mut inbox = job.create_mailbox().unwrap();
    let member = group.join(&mut inbox).unwrap();
    job.world().barrier().unwrap();
    (member, inbox)
}

/// A message of one number.
pub(crate) fn value(number: u64) -> Message {
    let mut message = Message::new();
    message.pack(&[number]);
    message
}

/// The number in the next message.
pub(crate) fn next(inbox: &mut Mailbox) -> u64 {
    inbox.retrieve_within(LONG).unwrap().unpack_value().unwrap()
}

/// Synchronises all members that live. A death that none of them has been told of is told first, to all of them.
pub(crate) fn sync_the_living(member: &mut Member) {
    while let Err(error) = member.sync() {
        let Error { kind: ErrorKind::Group(GroupError::MemberDied { .. }), .. } = error else {
            panic!("{error}")
        };
    }
}

/// Waits until a process waits in a group.
pub(crate) fn wait_until_held(job: &Job, slot: u32) {
    while job.segment().wait_record(slot).operation != Operation::Group {
        std::thread::sleep(Duration::from_millis(3));
    }
}
