//! Named groups in a job of one process, with and without a server.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)] // tests may, and so may what helps them

use std::time::Duration;

use landeck::{Error, ErrorKind, Group, GroupError, GroupOptions, Job, Mailbox, Message, ServedBy};
use landeck_testing::Watchdog;

const LONG: Duration = Duration::from_secs(100);

fn values(count: u64) -> Message {
    let mut message = Message::new();
    message.pack(&(0..count).collect::<Vec<_>>());
    message
}

fn assert_next(inbox: &mut Mailbox, count: u64) {
    let mut message = inbox.retrieve_within(LONG).unwrap();
    assert_eq!(message.unpack_all::<u64>(), (0..count).collect::<Vec<_>>());
}

/// Two members of one process broadcast, synchronise and leave; then the group is destroyed.
fn live(job: &Job, group: &Group) {
    let (mut first_inbox, mut second_inbox) =
        (job.create_mailbox().unwrap(), job.create_mailbox().unwrap());
    let mut first = group.join(&mut first_inbox).unwrap();
    let second = group.join(&mut second_inbox).unwrap();
    let again = group.join(&mut first_inbox).unwrap_err();
    assert!(matches!(again.kind, ErrorKind::Group(GroupError::AlreadyMember { member: 0, .. })));
    assert!(again.to_string().starts_with("rank 0: join: "), "{again}");
    assert_eq!((first.id(), second.id(), group.view().unwrap().members.len()), (0, 1, 2));
    // Of a line, of a cell's length and beyond, shared with the own mailbox, and copied outside.
    for count in [1, 100, 2_000, 20_000] {
        first.broadcast_within(&values(count), LONG).unwrap();
        assert_next(&mut first_inbox, count);
        assert_next(&mut second_inbox, count);
    }
    first.broadcast_to_others(&values(3)).unwrap();
    assert_next(&mut second_inbox, 3);
    assert!(first_inbox.try_retrieve().unwrap().is_none());
    // On a busy machine an attempt may end before the member has arrived.
    while !first.has_come() {
        let early = first.sync_within(Duration::from_millis(5)).unwrap_err();
        let is_late = matches!(early.kind, ErrorKind::TimedOut(time) if time.as_millis() == 5);
        assert!(is_late, "{early}");
    }
    second.broadcast_within(&values(5), LONG).unwrap();
    second.leave().unwrap();
    first.sync_within(LONG).unwrap();
    assert_next(&mut first_inbox, 5);
    assert_next(&mut second_inbox, 5);
    first.broadcast_within(&values(7), LONG).unwrap();
    assert_next(&mut first_inbox, 7);
    group.wait_delivered_within(LONG).unwrap();
    group.destroy_within(LONG).unwrap();
    let over = first.sync().unwrap_err();
    assert!(matches!(over.kind, ErrorKind::Group(GroupError::GroupDestroyed { .. })), "{over}");
    let unknown = job.open_group(group.name());
    assert!(matches!(unknown, Err(Error { kind: ErrorKind::Object(_), .. })));
}

/// A member that is left out of its broadcasts passes them when it looks for messages, so the group's room comes back.
fn leave_out(job: &Job, group: &Group) {
    let (mut own, mut other) = (job.create_mailbox().unwrap(), job.create_mailbox().unwrap());
    let sender = group.join(&mut own).unwrap();
    let receiver = group.join(&mut other).unwrap();
    for count in 1..10 {
        sender.broadcast_to_others(&values(count)).unwrap();
        assert_next(&mut other, count);
        assert!(own.try_retrieve().unwrap().is_none());
    }
    // The group ends with its last member.
    drop((sender, receiver));
}

/// One test, since a process is in one job at a time.
#[test]
fn members_of_one_process_live_with_and_without_a_server() {
    let _watchdog = Watchdog::start(Duration::from_secs(300));
    let job = Job::join().unwrap();
    for (name, served_by) in [("direct", ServedBy::Nobody), ("served", ServedBy::Creator)] {
        let options = GroupOptions::default().served_by(served_by);
        live(&job, &job.create_group(name, options.messages(16)).unwrap());
        let narrow = format!("narrow {name}");
        leave_out(&job, &job.create_group(&narrow, options.messages(1)).unwrap());
    }
    job.leave().unwrap();
}
