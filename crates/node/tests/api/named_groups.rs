//! Named groups as programs use them: each sentence of what they promise.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use landeck::ErrorKind::{Object, TimedOut};
use landeck::{
    Error, ErrorKind, GroupError, GroupOptions, Job, Mailbox, Member, Message, ObjectError,
    Options, Progress, ServedBy, Sum, Tag, ThreadMode, WhenFull,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::support::named_groups::{all, group, next, value, wait_until_held};
use crate::support::{in_enduring_job, in_job, in_job_with, is_member, kill_myself};

const MOMENT: Duration = Duration::from_millis(30);
const LONG: Duration = Duration::from_secs(100);

fn options() -> GroupOptions {
    GroupOptions::default()
}

fn is_empty(inbox: &mut Mailbox) -> bool {
    inbox.try_retrieve().unwrap().is_none()
}

fn fault(error: Error) -> GroupError {
    match error.kind {
        ErrorKind::Group(fault) => fault,
        other => panic!("not an error of a group: {other}"),
    }
}

#[test]
fn every_member_gets_every_broadcast_once_in_one_order() {
    const EACH: u64 = 300;
    for n in [1, 2, 4, 8] {
        let name = "named_groups::every_member_gets_every_broadcast_once_in_one_order";
        in_job(n, name, ThreadMode::Single, |job| {
            let world = job.world();
            let (size, rank) = (world.size() as u64, world.rank() as u64);
            // Fewer messages have room than are sent: whoever sends retrieves in between.
            let (mut member, mut inbox) = all(job, "order", options().messages(64));
            let mut seen: Vec<u64> = Vec::new();
            for number in 0..EACH {
                let message = value(rank * EACH + number);
                // Whoever is in the way may be another one.
                while member.try_broadcast(&message).is_err() {
                    match inbox.retrieve_within(Duration::from_millis(1)) {
                        Ok(mut message) => seen.push(message.unpack_value().unwrap()),
                        Err(error) => assert!(matches!(error.kind, TimedOut(_)), "{error}"),
                    }
                }
            }
            while seen.len() < (size * EACH) as usize {
                seen.push(next(&mut inbox));
            }
            member.sync().unwrap();
            assert!(is_empty(&mut inbox), "nothing comes twice");
            for sender in 0..size {
                let own = seen.iter().filter(|&&value| value / EACH == sender);
                assert!(own.copied().eq(sender * EACH..(sender + 1) * EACH), "as it was sent");
            }
            let mut first = seen.clone();
            world.broadcast(&mut first, 0).unwrap();
            assert_eq!(first, seen, "one order for all");
            member.leave().unwrap();
        });
        if is_member() {
            return;
        }
    }
}

#[test]
fn members_have_the_smallest_free_numbers_and_who_creates_is_none() {
    let name = "named_groups::members_have_the_smallest_free_numbers_and_who_creates_is_none";
    in_job(1, name, ThreadMode::Single, |job| {
        let group = job.create_group("numbers", options().persistent(true)).unwrap();
        assert!(group.view().unwrap().members.is_empty());
        let mut boxes: Vec<Mailbox> = (0..4).map(|_| job.create_mailbox().unwrap()).collect();
        let mut members: Vec<Member> =
            boxes.iter_mut().map(|inbox| group.join(inbox).unwrap()).collect();
        assert_eq!(members.iter().map(Member::id).collect::<Vec<_>>(), [0, 1, 2, 3]);
        let again = fault(group.join(&mut boxes[2]).unwrap_err());
        assert!(matches!(again, GroupError::AlreadyMember { member: 2, .. }), "{again}");
        members.remove(1).leave().unwrap();
        drop(members.remove(1)); // number 2
        assert_eq!(group.view().unwrap().members.len(), 2);
        let joined = group.join(&mut boxes[1]).unwrap();
        assert_eq!(joined.id(), 1);
        let view = group.view().unwrap();
        assert_eq!(view.members[1].mailbox, boxes[1].address());
        assert_eq!((view.number, view.has_started), (7, true));
    });
}

#[test]
fn the_minimum_holds_until_it_is_reached_once() {
    let name = "named_groups::the_minimum_holds_until_it_is_reached_once";
    in_job(2, name, ThreadMode::Single, |job| {
        let world = job.world();
        let group = group(job, "minimum", options().minimum(2));
        let mut inbox = job.create_mailbox().unwrap();
        if world.rank() == 0 {
            let mut member = group.join(&mut inbox).unwrap();
            let is_early = |error| {
                let fault = fault(error);
                matches!(fault, GroupError::MinimumNotReached { have: 1, want: 2, .. })
            };
            assert!(is_early(member.try_broadcast(&value(0)).unwrap_err()));
            assert!(is_early(member.broadcast_within(&value(0), MOMENT).unwrap_err()));
            assert!(is_early(member.sync_within(MOMENT).unwrap_err()));
            assert!(is_early(group.wait_started_within(MOMENT).unwrap_err()));
            world.barrier().unwrap();
            member.broadcast(&value(1)).unwrap(); // waits for the other one
            assert_eq!(next(&mut inbox), 1);
            member.sync().unwrap();
            world.barrier().unwrap();
            member.sync().unwrap(); // the other one has left
            member.try_broadcast(&value(2)).unwrap();
            assert_eq!(next(&mut inbox), 2);
        } else {
            world.barrier().unwrap();
            std::thread::sleep(MOMENT);
            let mut member = group.join(&mut inbox).unwrap();
            assert_eq!(next(&mut inbox), 1);
            member.sync().unwrap();
            member.leave().unwrap();
            world.barrier().unwrap();
        }
    });
}

#[test]
fn anybody_broadcasts_and_a_member_may_leave_itself_out() {
    let name = "named_groups::anybody_broadcasts_and_a_member_may_leave_itself_out";
    in_job(3, name, ThreadMode::Single, |job| {
        let world = job.world();
        let group = group(job, "anybody", options().minimum(2));
        let mut inbox = job.create_mailbox().unwrap();
        if world.rank() == 2 {
            group.broadcast(&value(1)).unwrap();
            world.barrier().unwrap();
            world.barrier().unwrap();
            return;
        }
        let member = group.join(&mut inbox).unwrap();
        assert_eq!(next(&mut inbox), 1);
        assert_eq!(inbox.last_group(), Some((group.number(), None)));
        assert_eq!(inbox.last_poster().unwrap().slot.0, 2);
        world.barrier().unwrap();
        member.broadcast_to_others(&value(10 + u64::from(member.id()))).unwrap();
        let other = 1 - member.id();
        assert_eq!(next(&mut inbox), 10 + u64::from(other));
        assert_eq!(inbox.last_group(), Some((group.number(), Some(other))));
        // Posts and broadcasts meet in one mailbox.
        let own = job.open_mailbox_by_address(inbox.address()).unwrap();
        own.post_values(&[5u64]).unwrap();
        assert_eq!(next(&mut inbox), 5);
        assert_eq!(inbox.last_group(), None);
        assert!(is_empty(&mut inbox));
        world.barrier().unwrap();
    });
}

#[test]
fn messages_of_any_length_arrive_whole() {
    let name = "named_groups::messages_of_any_length_arrive_whole";
    in_job(3, name, ThreadMode::Single, |job| {
        let (mut member, mut inbox) = all(job, "lengths", options().bytes(32 << 20));
        let lengths = [0usize, 1, 79, 80, 81, 4096, 4097, 70_000, 1 << 20, 10 << 20];
        for round in 0..2 * lengths.len() {
            let length = lengths[round % lengths.len()];
            let bytes: Vec<u8> = (0..length).map(|at| (at * 7 + round) as u8).collect();
            if job.world().rank() == round % 3 {
                let mut message = Message::new();
                member.broadcast(message.pack(&bytes)).unwrap();
                // What was sent stays, whatever becomes of the message.
                message.clear();
                message.pack(&vec![0xaau8; length]);
            }
            if round % 2 == 0 {
                assert_eq!(inbox.retrieve().unwrap().unpack_all::<u8>(), bytes, "{length}");
            } else {
                let mut into = vec![0u8; length + 3];
                assert_eq!(inbox.retrieve_values(&mut into).unwrap(), length);
                assert_eq!(into[..length], bytes);
            }
        }
        member.sync().unwrap();
        let long = Message::new().pack(&vec![0u8; (32 << 20) + 1]).clone();
        let refused = fault(member.broadcast(&long).unwrap_err());
        assert!(matches!(refused, GroupError::TooLong { .. }), "{refused}");
        member.broadcast(Message::new().pack_text("texts").pack(&[1.5f64])).unwrap();
        for _ in 0..3 {
            assert!(inbox.retrieve_values(&mut [0u64]).is_err(), "it waits on");
            let mut message = inbox.retrieve().unwrap();
            assert_eq!(message.unpack_text().unwrap(), "texts");
            assert_eq!(message.unpack_value::<f64>().unwrap(), 1.5);
        }
        member.sync().unwrap();
    });
}

#[test]
fn a_synchronisation_is_of_those_who_were_there_when_it_began() {
    let name = "named_groups::a_synchronisation_is_of_those_who_were_there_when_it_began";
    in_job(3, name, ThreadMode::Single, |job| {
        let world = job.world();
        let group = group(job, "rounds", options().minimum(2));
        let mut inbox = job.create_mailbox().unwrap();
        let mut member = (world.rank() < 2).then(|| group.join(&mut inbox).unwrap());
        world.barrier().unwrap();
        if let (0, Some(first)) = (world.rank(), &mut member) {
            first.broadcast(&value(7)).unwrap();
            assert!(!first.has_come());
            let early = first.sync_within(MOMENT).unwrap_err();
            assert!(matches!(early.kind, TimedOut(_)), "{early}");
            assert!(first.has_come());
        }
        world.barrier().unwrap();
        if world.rank() == 2 {
            // It began without this one, which belongs to the next.
            let mut late = group.join(&mut inbox).unwrap();
            assert!(late.sync_within(MOMENT).is_err());
            world.barrier().unwrap();
            late.sync().unwrap();
            assert!(is_empty(&mut inbox), "what was sent before is not for it");
            return;
        }
        world.barrier().unwrap();
        let mut member = member.unwrap();
        member.sync().unwrap();
        assert_eq!(inbox.try_retrieve().unwrap().unwrap().unpack_value::<u64>().unwrap(), 7);
        member.sync().unwrap(); // with the third
    });
}

#[test]
fn a_leave_counts_as_coming_and_nothing_enters_the_mailbox_any_more() {
    let name = "named_groups::a_leave_counts_as_coming_and_nothing_enters_the_mailbox_any_more";
    in_job(2, name, ThreadMode::Single, |job| {
        let world = job.world();
        let (mut member, mut inbox) = all(job, "leave", options());
        if world.rank() == 0 {
            member.broadcast(&value(1)).unwrap();
            member.broadcast(Message::new().pack(&[2u64; 20_000])).unwrap();
            world.barrier().unwrap();
            member.sync().unwrap();
            member.broadcast(&value(3)).unwrap();
            world.barrier().unwrap();
            assert_eq!(next(&mut inbox), 1);
        } else {
            world.barrier().unwrap();
            std::thread::sleep(MOMENT);
            member.leave().unwrap();
            world.barrier().unwrap();
            assert_eq!(next(&mut inbox), 1, "what was in the mailbox is there");
            let both = inbox.retrieve().unwrap().unpack_all::<u64>();
            assert_eq!(both, [2; 20_000]);
            assert!(is_empty(&mut inbox));
        }
        world.barrier().unwrap();
    });
}

/// As many as have a place on the roll, and more.
#[test]
fn any_number_of_members_synchronises_also_when_some_leave_in_the_middle() {
    let name =
        "named_groups::any_number_of_members_synchronises_also_when_some_leave_in_the_middle";
    in_job(1, name, ThreadMode::Single, |job| {
        for count in [1, 2, 23, 24, 25, 40] {
            let group = job.create_group(format!("of {count}"), options()).unwrap();
            let mut boxes: Vec<Mailbox> =
                (0..count).map(|_| job.create_mailbox().unwrap()).collect();
            let mut members: Vec<Member> =
                boxes.iter_mut().map(|inbox| group.join(inbox).unwrap()).collect();
            for _ in 0..3 {
                let (last, early) = members.split_last_mut().unwrap();
                for member in &mut *early {
                    let waits = member.sync_within(Duration::ZERO).unwrap_err();
                    assert!(matches!(waits.kind, TimedOut(_)), "{count}: {waits}");
                }
                last.sync().unwrap();
                early.iter_mut().for_each(|member| member.sync().unwrap());
            }
            let left = members.split_off(count / 2);
            for member in &mut members {
                assert!(member.sync_within(Duration::ZERO).is_err());
            }
            left.into_iter().for_each(|member| member.leave().unwrap());
            members.iter_mut().for_each(|member| member.sync().unwrap());
        }
    });
}

#[test]
fn the_last_leave_ends_a_group_and_the_end_of_its_creator_does_not() {
    let name = "named_groups::the_last_leave_ends_a_group_and_the_end_of_its_creator_does_not";
    in_job(2, name, ThreadMode::Single, |job| {
        let world = job.world();
        let made = (world.rank() == 0).then(|| job.create_group("last", options()).unwrap());
        world.barrier().unwrap();
        if world.rank() == 0 {
            drop(made);
            world.barrier().unwrap();
            return;
        }
        world.barrier().unwrap();
        let group = job.open_group("last").unwrap();
        let mut inbox = job.create_mailbox().unwrap();
        for persistent in [false, true] {
            let group = match persistent {
                false => group.clone(),
                true => job.create_group("last", options().persistent(true)).unwrap(),
            };
            let taken = job.create_group("last", options()).unwrap_err();
            assert!(matches!(taken.kind, Object(ObjectError::Taken { .. })), "{taken}");
            let member = group.join(&mut inbox).unwrap();
            member.leave().unwrap();
            let joined = group.join(&mut inbox);
            assert_eq!(joined.is_ok(), persistent);
            if let Err(error) = joined {
                assert!(matches!(fault(error), GroupError::GroupDestroyed { .. }));
                let gone = job.open_group("last").unwrap_err();
                assert!(matches!(gone.kind, Object(ObjectError::Unknown { .. })), "{gone}");
            }
        }
        // The handle to the first one stays dead, whatever has its name now.
        let dead = fault(group.broadcast(&value(1)).unwrap_err());
        assert!(matches!(dead, GroupError::GroupDestroyed { .. }), "{dead}");
        job.open_group("last").unwrap().destroy().unwrap();
    });
}

#[test]
fn destruction_ends_what_waits_and_leaves_what_was_accepted() {
    let name = "named_groups::destruction_ends_what_waits_and_leaves_what_was_accepted";
    in_job(3, name, ThreadMode::Single, |job| {
        let world = job.world();
        let is_destroyed = |error| matches!(fault(error), GroupError::GroupDestroyed { .. });
        // Rank 1 waits for the minimum of one group, then all of them in a synchronisation of another.
        let waiting = group(job, "waiting", options().minimum(5));
        match world.rank() {
            0 => {
                std::thread::sleep(MOMENT);
                waiting.destroy().unwrap();
                assert!(is_destroyed(waiting.destroy().unwrap_err()));
            }
            1 => assert!(is_destroyed(waiting.broadcast(&value(1)).unwrap_err())),
            _ => assert!(is_destroyed(waiting.wait_started().unwrap_err())),
        }
        let (mut member, mut inbox) = all(job, "synchronised", options());
        member.broadcast(&value(world.rank() as u64)).unwrap();
        world.barrier().unwrap();
        if world.rank() == 0 {
            std::thread::sleep(MOMENT);
            member.group().destroy().unwrap();
        } else {
            assert!(is_destroyed(member.sync().unwrap_err()));
        }
        assert!(is_destroyed(member.broadcast(&value(9)).unwrap_err()));
        assert!(is_destroyed(member.sync().unwrap_err()));
        let mut sum = 0;
        while let Some(mut message) = inbox.try_retrieve().unwrap() {
            sum += message.unpack_value::<u64>().unwrap();
        }
        assert_eq!(sum, 3, "what was accepted is retrieved");
        let mut other = job.create_mailbox().unwrap();
        assert!(is_destroyed(member.group().join(&mut other).unwrap_err()));
        world.barrier().unwrap();
    });
}

#[test]
fn a_member_that_does_not_retrieve_is_put_out_where_options_say_so() {
    let name = "named_groups::a_member_that_does_not_retrieve_is_put_out_where_options_say_so";
    in_job(2, name, ThreadMode::Single, |job| {
        let world = job.world();
        let evicting = options().messages(4).when_full(WhenFull::Evict(MOMENT));
        let (mut member, mut inbox) = all(job, "evict", evicting);
        if world.rank() == 0 {
            for number in 0..10 {
                member.broadcast(&value(number)).unwrap();
                assert_eq!(next(&mut inbox), number);
            }
            assert_eq!(member.group().view().unwrap().members.len(), 1);
            member.sync().unwrap();
            world.barrier().unwrap();
        } else {
            world.barrier().unwrap();
            let mut got = 0;
            let out = loop {
                match inbox.retrieve_within(LONG) {
                    Ok(mut message) => assert_eq!(message.unpack_value::<u64>().unwrap(), got),
                    Err(error) => break fault(error),
                }
                got += 1;
            };
            assert!(matches!(out, GroupError::NoMember { .. }) && got <= 4, "{got}: {out}");
            for refused in [member.broadcast(&value(1)), member.sync(), member.leave()] {
                let out = fault(refused.unwrap_err());
                assert!(matches!(out, GroupError::NoMember { .. }), "{out}");
            }
        }
        let refusing = options().messages(1).when_full(WhenFull::Refuse);
        let (member, mut inbox) = all(job, "refuse", refusing);
        if world.rank() == 0 {
            member.broadcast(&value(1)).unwrap();
            let full = fault(member.broadcast(&value(2)).unwrap_err());
            assert!(matches!(full, GroupError::Full { waiting: 1, .. }), "{full}");
        }
        world.barrier().unwrap();
        assert_eq!(next(&mut inbox), 1);
    });
}

#[test]
fn destruction_lets_held_broadcasts_finish_or_says_what_is_lost() {
    let name = "named_groups::destruction_lets_held_broadcasts_finish_or_says_what_is_lost";
    in_job(3, name, ThreadMode::Single, |job| {
        let world = job.world();
        for in_vain in [false, true] {
            let (member, mut inbox) = all(job, "held", options().messages(1));
            match world.rank() {
                0 => {
                    member.broadcast(&value(1)).unwrap();
                    assert_eq!(next(&mut inbox), 1);
                    world.barrier().unwrap();
                    let held = member.broadcast(&value(2));
                    assert_eq!(held.is_err(), in_vain, "{held:?}");
                    if let Err(error) = held {
                        assert!(matches!(fault(error), GroupError::GroupDestroyed { .. }));
                    }
                }
                1 => {
                    world.barrier().unwrap();
                    assert_eq!(next(&mut inbox), 1);
                    wait_until_held(job, 0);
                    let destroyed = match in_vain {
                        true => member.group().destroy_within(MOMENT),
                        false => member.group().destroy_within(LONG),
                    };
                    assert_eq!(destroyed.is_err(), in_vain, "{destroyed:?}");
                    if let Err(error) = destroyed {
                        let fault = fault(error);
                        let GroupError::DestroyedWithLoss { members, .. } = fault else {
                            panic!("{fault}")
                        };
                        assert_eq!(members.len(), 1);
                    }
                }
                _ => {
                    world.barrier().unwrap();
                    // It retrieves when the destruction waits for what is held, or never does.
                    if !in_vain {
                        wait_until_held(job, 1);
                    }
                }
            }
            if in_vain {
                world.barrier().unwrap();
            }
            let mut last = u64::from(world.rank() < 2);
            while last < if in_vain { 1 } else { 2 } {
                last += 1;
                assert_eq!(next(&mut inbox), last);
            }
            assert!(is_empty(&mut inbox));
            world.barrier().unwrap();
        }
    });
}

#[test]
fn a_death_is_told_to_all_others_of_a_synchronisation() {
    let name = "named_groups::a_death_is_told_to_all_others_of_a_synchronisation";
    in_enduring_job(4, name, 137, |job| {
        let world = job.world();
        let (mut member, mut inbox) = all(&job, "death", options());
        if world.rank() == 3 {
            member.broadcast(&value(7)).unwrap();
            world.send(&[member.id()], 0, Tag(1)).unwrap();
            job.drain().unwrap();
            kill_myself();
        }
        if world.rank() == 0 {
            let dead = world.receive::<u32>(3, Tag(1)).unwrap().0;
            for rank in [1, 2] {
                world.send(&[dead], rank, Tag(2)).unwrap();
            }
            check_death(&mut member, dead);
        } else {
            let dead = world.receive::<u32>(0, Tag(2)).unwrap().0;
            check_death(&mut member, dead);
        }
        assert_eq!(next(&mut inbox), 7, "what the dead had sent is there");
        assert_eq!(member.group().view().unwrap().members.len(), 3);
        member.sync().unwrap();
        assert!(is_empty(&mut inbox));
        member.leave().unwrap();
        println!("survivor done");
        job.leave().unwrap();
    });
}

/// The first synchronisation says so, whether the dead took part in it or died before it began.
fn check_death(member: &mut Member, dead: u32) {
    let before = Instant::now();
    let died = fault(member.sync().unwrap_err());
    assert!(matches!(died, GroupError::MemberDied { member, .. } if member == dead), "{died}");
    assert!(before.elapsed() < LONG);
}

#[test]
fn a_death_between_two_synchronisations_is_told_in_the_next() {
    let name = "named_groups::a_death_between_two_synchronisations_is_told_in_the_next";
    in_enduring_job(3, name, 137, |job| {
        let (mut member, _inbox) = all(&job, "between", options());
        let mut ids = [0u32; 3];
        job.world().all_gather(&[member.id()], &mut ids).unwrap();
        member.sync().unwrap();
        if job.world().rank() == 2 {
            kill_myself();
        }
        while member.group().view().unwrap().members.len() == 3 {
            std::thread::sleep(Duration::from_millis(1));
        }
        // Both have seen the members that are left, so none of them begins a synchronisation with the dead.
        let survivors = job.world().among(&[0, 1], Tag(1)).unwrap();
        survivors.barrier().unwrap();
        check_death(&mut member, ids[2]);
        member.sync().unwrap();
        member.leave().unwrap();
        println!("survivor done");
        job.leave().unwrap();
    });
}

#[test]
fn operations_go_on_with_those_who_are_there() {
    let name = "named_groups::operations_go_on_with_those_who_are_there";
    in_job(4, name, ThreadMode::Single, |job| {
        let world = job.world();
        let (rank, group) = (world.rank(), group(job, "elastic", options().minimum(2)));
        let mut inbox = job.create_mailbox().unwrap();
        let mut member = (rank < 2).then(|| group.join(&mut inbox).unwrap());
        let mut sizes = Vec::new();
        if let Some(member) = &mut member {
            group.wait_started().unwrap();
            assert_eq!(member.world().unwrap().all_reduce(1u64, Sum).unwrap(), 2);
            assert!(!member.advance().unwrap(), "nobody came or went");
        }
        world.barrier().unwrap();
        let mut member = match member {
            Some(member) => member,
            None => group.join(&mut inbox).unwrap(),
        };
        world.barrier().unwrap();
        // Those who were there go on; the new ones are in from here.
        for round in 0..6 {
            if rank == 1 && round == 3 {
                member.leave().unwrap();
                world.barrier().unwrap();
                assert_eq!(sizes, [4, 4, 4]);
                return;
            }
            member.advance().unwrap();
            sizes.push(member.world().unwrap().all_reduce(1u64, Sum).unwrap());
            if round == 2 && rank != 1 {
                // Wait until the leave is accepted, so that the next operation is without it.
                while group.view().unwrap().members.len() == 4 {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        }
        world.barrier().unwrap();
        assert_eq!(sizes, [4, 4, 4, 3, 3, 3]);
    });
}

#[test]
fn operations_go_on_without_the_dead() {
    let name = "named_groups::operations_go_on_without_the_dead";
    in_enduring_job(4, name, 137, |job| {
        let world = job.world();
        let (mut member, _inbox) = all(&job, "operations", options().minimum(4));
        assert_eq!(member.world().unwrap().all_reduce(1u64, Sum).unwrap(), 4);
        if world.rank() == 2 {
            kill_myself();
        }
        let size = loop {
            match member.advance().and_then(|_| member.world()?.all_reduce(1u64, Sum)) {
                Ok(3) => break 3,
                Ok(size) => assert_eq!(size, 4),
                Err(Error { kind: ErrorKind::PeerFailed { .. }, .. }) => {}
                Err(error) => panic!("{error}"),
            }
        };
        assert_eq!(size, 3);
        println!("survivor done");
        job.leave().unwrap();
    });
}

#[test]
fn a_death_between_two_operations_is_told_by_the_next_one() {
    let name = "named_groups::a_death_between_two_operations_is_told_by_the_next_one";
    in_enduring_job(4, name, 137, |job| {
        let (mut member, _inbox) = all(&job, "between", options().minimum(4));
        assert_eq!(member.world().unwrap().all_reduce(1u64, Sum).unwrap(), 4);
        if job.world().rank() == 2 {
            kill_myself();
        }
        while member.group().view().unwrap().members.len() == 4 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let told = member.advance().unwrap_err();
        assert!(matches!(told.kind, ErrorKind::PeerFailed { .. }), "{told}");
        assert!(member.advance().unwrap(), "told once");
        assert_eq!(member.world().unwrap().all_reduce(1u64, Sum).unwrap(), 3);
        assert!(!member.advance().unwrap());
        println!("survivor done");
        job.leave().unwrap();
    });
}

#[test]
fn the_log_goes_round_whoever_does_not_look() {
    let name = "named_groups::the_log_goes_round_whoever_does_not_look";
    in_job(2, name, ThreadMode::Single, |job| {
        const TURNS: u64 = 10_000;
        let world = job.world();
        let (mut member, mut inbox) = all(job, "round", options());
        if world.rank() == 0 {
            member.broadcast(&value(1)).unwrap();
            let mut other = job.create_mailbox().unwrap();
            for _ in 0..TURNS {
                let second = member.group().join(&mut other).unwrap();
                assert_eq!(second.id(), 2);
                second.leave().unwrap();
            }
            member.broadcast(&value(2)).unwrap();
        }
        world.barrier().unwrap();
        assert_eq!([next(&mut inbox), next(&mut inbox)], [1, 2]);
        assert_eq!(member.group().view().unwrap().number, 2 + 2 * TURNS);
        member.sync().unwrap();
    });
}

#[test]
fn threads_join_with_mailboxes_of_their_own() {
    let name = "named_groups::threads_join_with_mailboxes_of_their_own";
    in_job(2, name, ThreadMode::Multiple, |job| {
        const EACH: u64 = 100;
        let group = group(job, "threads", options().minimum(4).messages(16));
        std::thread::scope(|threads| {
            for _ in 0..2 {
                threads.spawn(|| {
                    let mut inbox = job.create_mailbox().unwrap();
                    let mut member = group.join(&mut inbox).unwrap();
                    let mut got = 0;
                    for number in 0..EACH {
                        while member.broadcast_within(&value(number), Duration::ZERO).is_err() {
                            got += u64::from(!is_empty(&mut inbox));
                        }
                        if number % 10 == 0 {
                            got += u64::from(!is_empty(&mut inbox));
                        }
                    }
                    while got < 4 * EACH {
                        next(&mut inbox);
                        got += 1;
                    }
                    member.sync().unwrap();
                    assert!(is_empty(&mut inbox));
                });
            }
        });
        job.world().barrier().unwrap();
    });
}

#[test]
fn a_member_may_be_used_from_another_thread_than_its_mailbox() {
    let name = "named_groups::a_member_may_be_used_from_another_thread_than_its_mailbox";
    in_job(1, name, ThreadMode::Multiple, |job| {
        let group = job.create_group("moved", options()).unwrap();
        let mut inbox = job.create_mailbox().unwrap();
        let mut member = group.join(&mut inbox).unwrap();
        let (tell, told) = mpsc::channel();
        std::thread::scope(|threads| {
            threads.spawn(move || {
                std::thread::sleep(MOMENT);
                member.broadcast(&value(4)).unwrap();
                member.sync().unwrap();
                told.recv().unwrap();
                member.leave().unwrap();
            });
            assert_eq!(next(&mut inbox), 4);
            tell.send(()).unwrap();
        });
        assert!(group.join(&mut inbox).is_err(), "the last one has left");
    });
}

#[test]
fn bad_names_and_options_are_told() {
    in_job(1, "named_groups::bad_names_and_options_are_told", ThreadMode::Single, |job| {
        for name in [&b""[..], &[b'n'; 65], &[b'a', 0xff], b"a\nb"] {
            for refused in [job.create_group(name, options()), job.open_group(name)] {
                let refused = refused.unwrap_err();
                assert!(matches!(refused.kind, Object(ObjectError::Name(_))), "{refused}");
            }
        }
        for wrong in [options().minimum(1025), options().messages(0), options().bytes(u64::MAX)] {
            let wrong = fault(job.create_group("wrong", wrong).unwrap_err());
            assert!(matches!(wrong, GroupError::Options { .. }), "{wrong}");
        }
        let unknown = job.open_group("nobody").unwrap_err();
        assert!(matches!(unknown.kind, Object(ObjectError::Unknown { .. })), "{unknown}");
    });
}

fn is_readable(inbox: &mut Mailbox, time: Duration) -> bool {
    let descriptor = inbox.descriptor().unwrap();
    let limit = Timespec::try_from(time).unwrap();
    poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&limit)).unwrap() == 1
}

#[test]
fn a_descriptor_tells_of_what_comes_from_groups() {
    let name = "named_groups::a_descriptor_tells_of_what_comes_from_groups";
    let progress = Options { progress: Progress::Thread, ..Options::default() };
    in_job_with(2, name, progress, |job| {
        let world = job.world();
        for (name, how) in [
            ("plain", options()),
            ("evicting", options().messages(2).when_full(WhenFull::Evict(MOMENT))),
            ("served", options().served_by(ServedBy::Creator)),
        ] {
            let group = group(job, name, how.minimum(2));
            let mut inbox = job.create_mailbox().unwrap();
            // Before it joins, and after.
            if name != "plain" {
                assert!(!is_readable(&mut inbox, Duration::ZERO));
            }
            let member = group.join(&mut inbox).unwrap();
            group.wait_started().unwrap();
            assert!(!is_readable(&mut inbox, Duration::ZERO));
            world.barrier().unwrap();
            if world.rank() == 1 {
                for number in 0..6 {
                    std::thread::sleep(MOMENT);
                    member.broadcast_to_others(&value(number)).unwrap();
                    assert!(is_empty(&mut inbox));
                    world.barrier().unwrap();
                }
                if name == "evicting" {
                    for number in 0..4 {
                        group.broadcast(&value(number)).unwrap();
                        assert_eq!(take(&mut inbox), number);
                    }
                }
                world.barrier().unwrap();
                world.barrier().unwrap();
                continue;
            }
            for number in 0..6 {
                assert!(is_readable(&mut inbox, LONG), "{name}");
                assert_eq!(take(&mut inbox), number);
                assert!(!is_readable(&mut inbox, Duration::ZERO), "{name}: as many as told of");
                world.barrier().unwrap();
            }
            world.barrier().unwrap();
            if name == "evicting" {
                // What was in it may be taken, then it is told that it was put out.
                let out = std::iter::repeat_with(|| {
                    assert!(is_readable(&mut inbox, LONG));
                    inbox.try_retrieve()
                });
                let out = out.take(9).find_map(landeck::Result::err).unwrap();
                assert!(matches!(fault(out), GroupError::NoMember { .. }));
                assert!(!is_readable(&mut inbox, Duration::ZERO));
            } else {
                // What was in the mailbox is told of after the leave as well.
                member.broadcast(&value(9)).unwrap();
                member.leave().unwrap();
                assert!(is_readable(&mut inbox, LONG));
                assert_eq!(take(&mut inbox), 9);
                // What a server had sent may come behind, and is told of for nothing.
                let mut for_nothing = 0;
                while is_readable(&mut inbox, MOMENT) {
                    assert!(is_empty(&mut inbox));
                    for_nothing += 1;
                    assert!(for_nothing <= u32::from(name == "served"), "{name}: {for_nothing}");
                }
            }
            world.barrier().unwrap();
        }
    });
}

/// The message that a descriptor has told of: at once, or at the next look.
fn take(inbox: &mut Mailbox) -> u64 {
    loop {
        if let Some(mut message) = inbox.try_retrieve().unwrap() {
            return message.unpack_value().unwrap();
        }
    }
}

/// How many threads this process has, and the bytes of its memory that others have no part in and its
/// part of what is shared.
fn threads_and_memory() -> (usize, u64) {
    let threads = std::fs::read_dir("/proc/self/task").unwrap().count();
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap();
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    (threads, kib << 10)
}

#[test]
fn a_thousand_groups_take_no_thread_each() {
    let name = "named_groups::a_thousand_groups_take_no_thread_each";
    in_job(8, name, ThreadMode::Single, |job| be_in_a_thousand(job, options(), 0));
}

#[test]
fn a_thousand_served_groups_take_one_thread() {
    let name = "named_groups::a_thousand_served_groups_take_one_thread";
    let served = options().served_by(ServedBy::Creator);
    // One that serves, and one with which it watches the agent.
    in_job(8, name, ThreadMode::Single, |job| be_in_a_thousand(job, served, 2));
}

/// Makes its share of a thousand groups of all, with at most so many threads more, and uses each.
fn be_in_a_thousand(job: &Job, how: GroupOptions, threads_max: usize) {
    const GROUPS: usize = 1_000;
    let world = job.world();
    let (threads, memory) = threads_and_memory();
    world.barrier().unwrap();
    let began = Instant::now();
    let mut members = Vec::new();
    for number in 0..GROUPS {
        let name = format!("group {number}");
        let how = how.minimum(8).messages(64).bytes(1 << 20);
        let made = (number % 8 == world.rank()).then(|| job.create_group(&name, how).unwrap());
        world.barrier().unwrap();
        let group = made.unwrap_or_else(|| job.open_group(&name).unwrap());
        let mut inbox = job.create_mailbox().unwrap();
        members.push((group.join(&mut inbox).unwrap(), inbox));
    }
    world.barrier().unwrap();
    let made = began.elapsed();
    for (number, (member, _)) in (0..).zip(&members) {
        if number % 8 == world.rank() {
            member.broadcast(&value(number as u64)).unwrap();
        }
    }
    for (number, (_, inbox)) in (0..).zip(&mut members) {
        assert_eq!(next(inbox), number);
    }
    for (member, _) in &mut members {
        member.sync().unwrap();
    }
    let all = began.elapsed();
    let (threads_now, memory_now) = threads_and_memory();
    let more = threads_now.saturating_sub(threads);
    assert!(more <= threads_max, "{more} threads for {GROUPS} groups");
    let bytes = world.all_reduce(memory_now.saturating_sub(memory), Sum).unwrap();
    if world.rank() == 0 {
        println!(
            "{GROUPS} groups of 8: made and joined in {made:?}, with a broadcast and a \
             synchronisation each in {all:?}; {} KiB each, {more} threads more",
            bytes / GROUPS as u64 / 1024,
        );
    }
    for (member, _) in members {
        member.leave().unwrap();
    }
    world.barrier().unwrap();
}
