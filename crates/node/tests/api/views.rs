//! Views of a named group as events of a mailbox: in one order with the messages, for all members.

use std::time::Duration;

use landeck::{
    ErrorKind, Gone, GroupError, GroupOptions, Mailbox, MailboxEvent, Member, Options, Progress,
    ServedBy, Tag, ThreadMode, WhenFull,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::support::named_groups::{all, group, next, value};
use crate::support::{in_enduring_job, in_job, in_job_with, kill_myself};

const MOMENT: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(100);
/// The number of changes that a group remembers.
const REMEMBERED: u64 = 256;

fn options() -> GroupOptions {
    GroupOptions::default()
}

/// An event in words: a message with its number and value, or a view with its place, its members and those that have gone.
fn words(event: MailboxEvent) -> String {
    match event {
        MailboxEvent::Message(mut told) => {
            let value: u64 = told.message().unpack_value().unwrap();
            format!("message {} is {value}", told.number().unwrap())
        }
        MailboxEvent::View(view) => {
            let ids: Vec<u32> = view.members().iter().map(|member| member.id).collect();
            let gone: Vec<_> = view.departed().iter().map(|(it, how)| (it.id, *how)).collect();
            format!("view {} after {}: {ids:?} {gone:?}", view.number(), view.after())
        }
    }
}

fn next_words(inbox: &mut Mailbox) -> String {
    words(inbox.next_event_within(LONG).unwrap())
}

/// The events up to the message with a value.
fn until(inbox: &mut Mailbox, last: u64) -> Vec<String> {
    let mut seen = Vec::new();
    while seen.last().is_none_or(|it: &String| !it.ends_with(&format!("is {last}"))) {
        seen.push(next_words(inbox));
    }
    seen
}

#[test]
fn views_and_messages_are_one_stream() {
    let name = "views::views_and_messages_are_one_stream";
    in_job(3, name, ThreadMode::Single, |job| {
        let world = job.world();
        for (round, how) in [options(), options().served_by(ServedBy::Creator)].iter().enumerate() {
            let group = group(job, &format!("stream {round}"), how.persistent(true));
            let mut inbox = job.create_mailbox().unwrap();
            let mut member: Option<Member> = None;
            for rank in 0..3 {
                if world.rank() == rank {
                    member = Some(group.join(&mut inbox).unwrap());
                    group.broadcast(&value(rank as u64)).unwrap();
                }
                world.barrier().unwrap();
            }
            if world.rank() == 1 {
                member.take().unwrap().leave().unwrap();
            }
            world.barrier().unwrap();
            if world.rank() == 2 {
                group.broadcast(&value(9)).unwrap();
            }
            let all = [
                "view 1 after 0: [0] []",
                "message 0 is 0",
                "view 2 after 1: [0, 1] []",
                "message 1 is 1",
                "view 3 after 2: [0, 1, 2] []",
                "message 2 is 2",
                "view 4 after 3: [0, 2] [(1, Left)]",
                "message 3 is 9",
            ];
            match world.rank() {
                0 => assert_eq!(until(&mut inbox, 9), all),
                1 => assert_eq!(until(&mut inbox, 2), all[2..6], "up to its leave"),
                _ => assert_eq!(until(&mut inbox, 9), all[4..]),
            }
            assert!(inbox.try_next_event().unwrap().is_none());
            let late = inbox.next_event_within(MOMENT).unwrap_err();
            assert!(matches!(late.kind, ErrorKind::TimedOut(_)), "{late}");
            world.barrier().unwrap();
            drop(member);
            world.barrier().unwrap();
        }
    });
}

#[test]
fn all_see_the_same_views_at_the_same_places_while_members_come_and_go() {
    let name = "views::all_see_the_same_views_at_the_same_places_while_members_come_and_go";
    in_job(4, name, ThreadMode::Single, |job| {
        const ROUNDS: u64 = 30;
        let world = job.world();
        let (mut member, mut inbox) = all(job, "busy", options());
        if world.rank() >= 2 {
            let rank = world.rank() as u64;
            for number in 0..ROUNDS {
                let mut other = job.create_mailbox().unwrap();
                let guest = member.group().join(&mut other).unwrap();
                guest.broadcast(&value(rank * 1_000 + number)).unwrap();
                guest.leave().unwrap();
            }
        }
        member.sync().unwrap();
        if world.rank() == 0 {
            member.broadcast(&value(9)).unwrap();
        }
        let seen = until(&mut inbox, 9);
        let from = seen.iter().position(|it| it.starts_with("view 5 ")).unwrap();
        let views = seen.iter().filter(|it| it.starts_with("view ")).count() - from;
        assert_eq!(views as u64, 4 * ROUNDS, "a view for each join and each leave");
        let mut first = seen[from..].join("\n").into_bytes();
        let own = first.clone();
        let mut length = [first.len() as u64];
        world.broadcast(&mut length, 0).unwrap();
        first.resize(length[0] as usize, 0);
        world.broadcast(&mut first, 0).unwrap();
        assert_eq!(String::from_utf8(first).unwrap(), String::from_utf8(own).unwrap());
        member.leave().unwrap();
    });
}

#[test]
fn a_mailbox_that_asks_for_messages_gets_no_views() {
    let name = "views::a_mailbox_that_asks_for_messages_gets_no_views";
    in_job(2, name, ThreadMode::Single, |job| {
        let (member, mut inbox) = all(job, "plain", options());
        job.world().barrier().unwrap();
        if job.world().rank() == 0 {
            member.broadcast(&value(1)).unwrap();
            member.broadcast(&value(2)).unwrap();
        }
        assert_eq!(next(&mut inbox), 1);
        // The views that it went past are told now, with their places.
        let view = next_words(&mut inbox);
        assert!(view.starts_with("view ") && view.contains(" after 0: "), "{view}");
        assert_eq!(until(&mut inbox, 2).last().unwrap(), "message 1 is 2");
        assert!(inbox.try_retrieve().unwrap().is_none());
        job.world().barrier().unwrap();
    });
}

#[test]
fn a_view_tells_how_each_member_has_gone() {
    let name = "views::a_view_tells_how_each_member_has_gone";
    in_enduring_job(3, name, 137, |job| {
        let world = job.world();
        let full = WhenFull::Evict(MOMENT);
        let (member, mut inbox) = all(&job, "ends", options().messages(2).when_full(full));
        if world.rank() == 2 {
            world.send(&[member.id()], 0, Tag(1)).unwrap();
            job.drain().unwrap();
            kill_myself();
        }
        if world.rank() == 1 {
            world.send(&[member.id()], 0, Tag(1)).unwrap();
            world.receive_into(&mut [0u8], 0, Tag(2)).unwrap();
            // It is put out, since it has retrieved nothing.
            let out = loop {
                match inbox.next_event_within(LONG) {
                    Ok(MailboxEvent::View(view)) => {
                        let mut members = view.members().iter();
                        assert!(members.any(|it| it.id == member.id()), "its own end: {view:?}");
                    }
                    Ok(MailboxEvent::Message(_)) => {}
                    Err(error) => break error,
                }
            };
            let is_out = |kind| matches!(kind, ErrorKind::Group(GroupError::NoMember { .. }));
            assert!(is_out(out.kind));
        } else {
            let [slow, dead] = [1, 2].map(|rank| world.receive::<u32>(rank, Tag(1)).unwrap().0);
            let gone = |inbox: &mut Mailbox| loop {
                if let MailboxEvent::View(view) = inbox.next_event_within(LONG).unwrap()
                    && let [(it, how)] = view.departed()
                {
                    return (it.id, *how);
                }
            };
            assert_eq!(gone(&mut inbox), (dead, Gone::Died));
            for number in 0..3 {
                member.broadcast(&value(number)).unwrap();
                while inbox.try_retrieve().unwrap().is_some() {}
            }
            assert_eq!(gone(&mut inbox), (slow, Gone::Evicted));
            world.send(&[0u8], 1, Tag(2)).unwrap();
        }
        println!("survivor done");
        job.leave().unwrap();
    });
}

#[test]
fn a_member_that_is_late_is_told_that_views_are_missing() {
    let name = "views::a_member_that_is_late_is_told_that_views_are_missing";
    in_job(1, name, ThreadMode::Single, |job| {
        let group = job.create_group("late", options()).unwrap();
        let (mut inbox, mut other) = (job.create_mailbox().unwrap(), job.create_mailbox().unwrap());
        let member = group.join(&mut inbox).unwrap();
        for _ in 0..REMEMBERED {
            group.join(&mut other).unwrap().leave().unwrap();
        }
        let MailboxEvent::View(first) = inbox.next_event().unwrap() else { panic!("no view") };
        assert!(first.has_missed() && first.number() > REMEMBERED, "{first:?}");
        let mut last = first;
        while let Some(event) = inbox.try_next_event().unwrap() {
            let MailboxEvent::View(view) = event else { panic!("no view") };
            assert!(!view.has_missed() && view.number() == last.number() + 1, "{view:?}");
            last = view;
        }
        assert_eq!((last.number(), last.members().len()), (2 * REMEMBERED + 1, 1));
        member.leave().unwrap();
    });
}

fn is_readable(inbox: &mut Mailbox, time: Duration) -> bool {
    let descriptor = inbox.descriptor().unwrap();
    let limit = Timespec::try_from(time).unwrap();
    poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&limit)).unwrap() == 1
}

#[test]
fn a_descriptor_tells_of_views_once_they_are_asked_for() {
    let name = "views::a_descriptor_tells_of_views_once_they_are_asked_for";
    let progress = Options { progress: Progress::Thread, ..Options::default() };
    in_job_with(2, name, progress, |job| {
        let world = job.world();
        let group = group(job, "told", options().persistent(true));
        for has_descriptor in [false, true] {
            let mut inbox = job.create_mailbox().unwrap();
            if has_descriptor {
                assert!(!is_readable(&mut inbox, Duration::ZERO));
            }
            assert!(inbox.try_next_event().unwrap().is_none());
            let own = (world.rank() == 0).then(|| group.join(&mut inbox).unwrap());
            if own.is_some() {
                assert!(is_readable(&mut inbox, LONG), "its own view");
                assert!(next_words(&mut inbox).ends_with("[0] []"));
                assert!(!is_readable(&mut inbox, Duration::ZERO));
            }
            world.barrier().unwrap();
            if world.rank() == 1 {
                let other = group.join(&mut inbox).unwrap();
                // It does nothing that wakes the first one but this.
                world.receive_into(&mut [0u8], 0, Tag(1)).unwrap();
                other.broadcast_to_others(&value(3)).unwrap();
                other.leave().unwrap();
            } else {
                assert!(is_readable(&mut inbox, LONG), "another member's");
                assert!(next_words(&mut inbox).ends_with("[0, 1] []"));
                assert!(!is_readable(&mut inbox, Duration::ZERO));
                world.send(&[0u8], 1, Tag(1)).unwrap();
                for end in [" is 3", "[(1, Left)]"] {
                    assert!(is_readable(&mut inbox, LONG), "{end}");
                    assert!(next_words(&mut inbox).ends_with(end));
                }
                assert!(!is_readable(&mut inbox, Duration::ZERO));
            }
            world.barrier().unwrap();
            drop(own);
            world.barrier().unwrap();
        }
    });
}
