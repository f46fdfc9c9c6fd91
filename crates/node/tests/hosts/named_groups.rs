//! Named groups whose members are on both hosts. The log lies on the creator's host.

use std::time::Duration;

use landeck::{
    Any, ErrorKind, Group, GroupError, GroupOptions, Job, Mailbox, Member, Message, ObjectError,
    ServedBy, Sum, Tag, WhenFull,
};
use landeck_testing::Watchdog;
use landeck_testing::hosts::{Hosts, Wish};

use crate::job::{EACH, RANKS, command, on_hosts, run};
use crate::support::{is_member, kill_myself, launcher, text};

const DONE: &str = "survivor done";

/// A group that all processes have joined, made by a rank: this process's number in it.
fn joined(job: &Job, name: &str, maker: usize, options: GroupOptions) -> (Group, Mailbox, Member) {
    let world = job.world();
    let mut inbox = job.create_mailbox().unwrap();
    if world.rank() == maker {
        let group = job.create_group(name, options).unwrap();
        world.barrier().unwrap();
        let member = group.join(&mut inbox).unwrap();
        world.barrier().unwrap();
        return (group, inbox, member);
    }
    world.barrier().unwrap();
    let group = job.open_group(name).unwrap();
    let member = group.join(&mut inbox).unwrap();
    world.barrier().unwrap();
    (group, inbox, member)
}

fn message(values: &[u64]) -> Message {
    let mut message = Message::new();
    message.pack(values);
    message
}

/// The two values of the next message.
fn values(inbox: &mut Mailbox) -> [u64; 2] {
    let mut message = inbox.retrieve_within(Duration::from_secs(60)).unwrap();
    let mut values = [0; 2];
    message.unpack(&mut values).unwrap();
    values
}

#[test]
fn members_of_both_hosts_join_broadcast_and_leave() {
    on_hosts("named_groups::members_of_both_hosts_join_broadcast_and_leave", |job| {
        let world = job.world();
        for maker in [0, EACH] {
            let name = format!("made by {maker}");
            let (group, mut inbox, mut member) = joined(job, &name, maker, GroupOptions::default());
            assert_eq!(group.view().unwrap().members.len(), RANKS);
            world.barrier().unwrap();
            member.broadcast(&message(&[member.id().into(), 7])).unwrap();
            let mut seen = [0u64; RANKS];
            let own: Vec<u64> = (0..RANKS).map(|_| values(&mut inbox)[0]).collect();
            own.iter().for_each(|&id| seen[id as usize] += 1);
            assert_eq!(seen, [1; RANKS]);
            let mut all = vec![0u64; RANKS * RANKS];
            world.all_gather(&own, &mut all).unwrap();
            assert!(all.chunks(RANKS).all(|order| order == own), "one order: {all:?}");
            member.sync().unwrap();
            member.leave().unwrap();
            world.barrier().unwrap();
            let unknown = job.open_group(&name).unwrap_err();
            let is_unknown = matches!(
                unknown.kind,
                ErrorKind::Object(ObjectError::Unknown { .. })
                    | ErrorKind::Group(GroupError::GroupDestroyed { .. })
            );
            assert!(is_unknown, "{unknown}");
            world.barrier().unwrap();
        }
    });
}

/// The creator's process serves the group until it leaves the job, which it does as others leave the group.
#[test]
fn members_leave_while_the_creator_leaves_the_job() {
    const JOBS: usize = 10;
    const TEST: &str = "named_groups::members_leave_while_the_creator_leaves_the_job";
    if is_member() {
        let job = Job::join().unwrap();
        let options = GroupOptions::default().served_by(ServedBy::Creator);
        let (_group, mut inbox, mut member) = joined(&job, "ends", 0, options);
        if job.world().rank() == 0 {
            member.broadcast(&message(&[1, 2])).unwrap();
        }
        assert_eq!(values(&mut inbox), [1, 2]);
        member.sync().unwrap();
        member.leave().unwrap();
        return job.leave().unwrap();
    }
    let _watchdog = Watchdog::start(Duration::from_secs(300));
    launcher();
    let Some(hosts) = Hosts::or_skip(TEST, &Wish::hosts(2)) else { return };
    for number in 0..JOBS {
        let ended = command(&hosts, 1 + number % 2, TEST, &[]).output().unwrap();
        assert!(ended.status.success(), "job {number}: {}", text(&ended));
    }
}

#[test]
fn all_members_see_one_order_of_many_broadcasts() {
    on_hosts("named_groups::all_members_see_one_order_of_many_broadcasts", |job| {
        const EACH_SENDS: u64 = 200;
        let world = job.world();
        let (_group, mut inbox, mut member) = joined(job, "order", 1, GroupOptions::default());
        let sends = [0, EACH].contains(&world.rank());
        let mut order = Vec::new();
        for number in 0..EACH_SENDS {
            if sends {
                member.broadcast(&message(&[world.rank() as u64, number])).unwrap();
            }
            // Each takes two messages a turn, which the two senders send.
            order.extend((0..2).flat_map(|_| values(&mut inbox)));
        }
        let mut firsts = vec![0u64; order.len()];
        if world.rank() == 0 {
            firsts.copy_from_slice(&order);
        }
        world.broadcast(&mut firsts, 0).unwrap();
        assert!(firsts == order, "one order");
        for sender in [0, EACH as u64] {
            let its = order.chunks(2).filter(|pair| pair[0] == sender).map(|pair| pair[1]);
            assert!(its.eq(0..EACH_SENDS), "the order of sender {sender}");
        }
        member.sync().unwrap();
        member.leave().unwrap();
        world.barrier().unwrap();
    });
}

#[test]
fn messages_of_any_length_cross_and_are_delivered_when_awaited() {
    on_hosts("named_groups::messages_of_any_length_cross_and_are_delivered_when_awaited", |job| {
        let world = job.world();
        let (group, mut inbox, member) = joined(job, "lengths", 0, GroupOptions::default());
        for (turn, length) in [0usize, 1, 80, 81, 5_000, 70_000, 1 << 20].into_iter().enumerate() {
            let sender = turn % RANKS;
            let bytes: Vec<u8> = (0..length).map(|at| (at * 7 + turn) as u8).collect();
            if world.rank() == sender {
                let mut message = Message::new();
                message.pack(&bytes);
                match turn % 2 {
                    0 => member.broadcast(&message).unwrap(),
                    _ => member.broadcast_to_others(&message).unwrap(),
                }
                group.wait_delivered().unwrap();
            }
            world.barrier().unwrap();
            // What was waited for is there at once.
            let found = inbox.try_retrieve().unwrap();
            if world.rank() == sender && turn % 2 == 1 {
                assert!(found.is_none(), "its own");
            } else {
                let mut got = vec![0u8; length];
                found.unwrap_or_else(|| panic!("{length} bytes")).unpack(&mut got).unwrap();
                assert!(got == bytes, "{length} bytes");
            }
            assert_eq!(group.broadcasts().unwrap(), turn as u64 + 1);
            world.barrier().unwrap();
        }
        drop(member);
        world.barrier().unwrap();
    });
}

/// Three of four members find that each call ends at its time limit.
fn wait_for_the_minimum(group: &Group, member: &mut Member, limit: Duration) {
    let early = [
        group.wait_started_within(limit),
        member.broadcast_within(&message(&[1, 2]), limit),
        member.sync_within(limit),
    ];
    for early in early.map(Result::unwrap_err) {
        let ErrorKind::Group(GroupError::MinimumNotReached { have, want, .. }) = early.kind else {
            panic!("{early}")
        };
        assert_eq!((have, want), (3, 4));
    }
}

#[test]
fn the_minimum_a_taken_name_and_an_end_are_told_on_every_host() {
    on_hosts("named_groups::the_minimum_a_taken_name_and_an_end_are_told_on_every_host", |job| {
        let world = job.world();
        let mut inbox = job.create_mailbox().unwrap();
        let options = GroupOptions::default().minimum(RANKS as u32).persistent(true);
        let limit = Duration::from_millis(20);
        let unknown = job.open_group("rules").unwrap_err();
        assert!(
            matches!(&unknown.kind, ErrorKind::Object(ObjectError::Unknown { .. })),
            "{unknown}"
        );
        world.barrier().unwrap();
        let made = (world.rank() == EACH).then(|| job.create_group("rules", options).unwrap());
        world.barrier().unwrap();
        let taken = job.create_group("rules", options).unwrap_err();
        let ErrorKind::Object(taken) = taken.kind else { panic!("{taken}") };
        match taken {
            ObjectError::Taken { .. } => assert!(world.rank() >= EACH),
            ObjectError::TakenElsewhere { host, .. } => {
                assert!(world.rank() < EACH && host == "n2", "{host}");
            }
            other => panic!("{other}"),
        }
        let group = made.unwrap_or_else(|| job.open_group("rules").unwrap());
        world.barrier().unwrap();
        if world.rank() != 1 {
            let mut member = group.join(&mut inbox).unwrap();
            let again = group.join(&mut inbox).unwrap_err();
            assert!(
                matches!(again.kind, ErrorKind::Group(GroupError::AlreadyMember { .. })),
                "{again}"
            );
            world.barrier().unwrap();
            wait_for_the_minimum(&group, &mut member, limit);
            world.barrier().unwrap();
            group.wait_started().unwrap();
            world.barrier().unwrap();
            if world.rank() == 2 {
                let late = member.sync_within(limit).unwrap_err();
                assert!(matches!(late.kind, ErrorKind::TimedOut(_)) && member.has_come(), "{late}");
            }
            world.barrier().unwrap();
            member.sync().unwrap();
            world.barrier().unwrap();
            member.leave().unwrap();
        } else {
            world.barrier().unwrap();
            world.barrier().unwrap();
            let mut member = group.join(&mut inbox).unwrap();
            world.barrier().unwrap();
            world.barrier().unwrap();
            member.sync().unwrap();
            world.barrier().unwrap();
            member.leave().unwrap();
        }
        world.barrier().unwrap();
        assert!(group.view().unwrap().members.is_empty(), "it is persistent");
        world.barrier().unwrap();
        if world.rank() == 0 {
            group.destroy().unwrap();
        }
        world.barrier().unwrap();
        let gone = group.broadcast(&message(&[0, 0])).unwrap_err();
        assert!(matches!(gone.kind, ErrorKind::Group(GroupError::GroupDestroyed { .. })), "{gone}");
        world.barrier().unwrap();
        // The name is free for a host that has not had it.
        if world.rank() == 0 {
            job.create_group("rules", GroupOptions::default()).unwrap().destroy().unwrap();
        }
        world.barrier().unwrap();
    });
}

/// Members of both hosts take one message and then wait for something else: the room that they have made is known.
#[test]
fn the_room_of_what_a_member_elsewhere_has_taken_is_free_at_once() {
    on_hosts(
        "named_groups::the_room_of_what_a_member_elsewhere_has_taken_is_free_at_once",
        |job| {
            let world = job.world();
            let options = GroupOptions::default().messages(2);
            for sender in [0, EACH] {
                let (_group, mut inbox, member) =
                    joined(job, &format!("room of {sender}"), 0, options);
                for number in 0..3 {
                    if world.rank() == sender {
                        // One message of two is for each process.
                        let limit = Duration::from_secs(60);
                        member.broadcast_within(&message(&[number, 0]), limit).unwrap();
                    }
                    assert_eq!(values(&mut inbox), [number, 0]);
                    if number == 1 && world.rank() == sender {
                        for rank in (0..RANKS).filter(|&rank| rank != sender) {
                            world.send(&[0u8], rank, Tag(5)).unwrap();
                        }
                    } else if number == 0 && world.rank() != sender {
                        // It comes behind the next broadcast.
                        world.receive::<u8>(sender, Tag(5)).unwrap();
                    }
                }
                world.barrier().unwrap();
            }
        },
    );
}

#[test]
fn a_member_elsewhere_that_does_not_retrieve_holds_refuses_or_is_put_out() {
    on_hosts(
        "named_groups::a_member_elsewhere_that_does_not_retrieve_holds_refuses_or_is_put_out",
        |job| {
            let world = job.world();
            let limit = Duration::from_millis(50);
            for (turn, full) in
                [WhenFull::Refuse, WhenFull::Hold, WhenFull::Evict(limit)].into_iter().enumerate()
            {
                // The sender is here or there.
                let (sender, slow) = if turn % 2 == 0 { (0, EACH) } else { (EACH, 0) };
                let options = GroupOptions::default().messages(4).when_full(full);
                let name = format!("full {turn}");
                let (group, mut inbox, member) = joined(job, &name, 1, options);
                let is_idle = world.rank() == slow;
                if world.rank() == sender {
                    let mut sent = 0;
                    let refused = loop {
                        match member.try_broadcast(&message(&[sent, 0])) {
                            Ok(()) => sent += 1,
                            Err(refused) => break refused,
                        }
                        values(&mut inbox);
                    };
                    let ErrorKind::Group(GroupError::Full { members, waiting, .. }) = refused.kind
                    else {
                        panic!("{refused}")
                    };
                    let view = group.view().unwrap();
                    assert!(members.len() < RANKS && waiting == sent && sent >= 2, "{members:?}");
                    assert!(view.members.iter().any(|it| it.waiting == sent), "{view:?}");
                    world.barrier().unwrap();
                    let sent = member.broadcast(&message(&[sent, 1]));
                    match full {
                        WhenFull::Refuse => {
                            let refused = sent.unwrap_err().kind;
                            assert!(matches!(refused, ErrorKind::Group(GroupError::Full { .. })));
                        }
                        _ => sent.unwrap(),
                    }
                    world.barrier().unwrap();
                } else if is_idle {
                    world.barrier().unwrap();
                    match full {
                        WhenFull::Refuse => {}
                        WhenFull::Hold => while values(&mut inbox)[1] == 0 {},
                        WhenFull::Evict(_) => {
                            world.barrier().unwrap(); // the sender has put it out
                            let mut out = Ok(Message::new());
                            while out.is_ok() {
                                out = inbox.retrieve_within(Duration::from_secs(60));
                            }
                            let out = out.unwrap_err();
                            let is_out =
                                matches!(out.kind, ErrorKind::Group(GroupError::NoMember { .. }));
                            assert!(is_out, "{out}");
                        }
                    }
                    if !matches!(full, WhenFull::Evict(_)) {
                        world.barrier().unwrap();
                    }
                } else {
                    drop(member);
                    world.barrier().unwrap();
                    world.barrier().unwrap();
                    continue;
                }
                drop(member);
            }
            world.barrier().unwrap();
        },
    );
}

#[test]
fn operations_go_on_with_the_members_of_both_hosts() {
    on_hosts("named_groups::operations_go_on_with_the_members_of_both_hosts", |job| {
        let world = job.world();
        let (_group, _inbox, mut member) = joined(job, "together", EACH, GroupOptions::default());
        for turn in 0..3u64 {
            let changed = member.advance().unwrap();
            assert_eq!(changed, turn == 0);
            let sum = member.world().unwrap().all_reduce(turn + 1, Sum).unwrap();
            assert_eq!(sum, (turn + 1) * RANKS as u64);
        }
        world.barrier().unwrap();
        if world.rank() == 1 {
            member.leave().unwrap();
            world.barrier().unwrap();
            return world.barrier().unwrap();
        }
        world.barrier().unwrap();
        assert!(member.advance().unwrap());
        assert_eq!(member.world().unwrap().all_reduce(1u64, Sum).unwrap(), RANKS as u64 - 1);
        member.leave().unwrap();
        world.barrier().unwrap();
    });
}

/// Tells a rank that all others need it no more.
fn all_have_come(job: &Job, rank: usize) {
    let world = job.world();
    match world.rank() == rank {
        true => (1..RANKS).for_each(|_| {
            world.receive::<u8>(Any, Tag(9)).unwrap();
        }),
        false => world.send(&[0u8], rank, Tag(9)).unwrap(),
    }
}

/// Runs a job in which one process dies, and checks that all others come to their end.
fn enduring(test: &str, body: impl FnOnce(Job)) {
    if is_member() {
        return body(Job::join().unwrap());
    }
    let Some(ended) = run(test, &["--on-failure", "notify"]) else { return };
    let said = text(&ended);
    assert!(!said.contains("panicked"), "{said}");
    assert_eq!(said.matches(DONE).count(), RANKS - 1, "{said}");
}

#[test]
fn of_groups_that_are_made_at_the_same_time_on_both_hosts_one_has_the_name() {
    on_hosts(
        "named_groups::of_groups_that_are_made_at_the_same_time_on_both_hosts_one_has_the_name",
        |job| {
            let world = job.world();
            for round in 0..30 {
                let name = format!("contested {round}");
                let make =
                    |_| job.create_group(&name, GroupOptions::default().minimum(RANKS as u32));
                world.barrier().unwrap();
                let group = job.open_group(&name).or_else(make);
                let group = group.or_else(|_| job.open_group(&name)).unwrap();
                let mut inbox = job.create_mailbox().unwrap();
                let mut member = group.join(&mut inbox).unwrap();
                member.sync().unwrap();
                assert_eq!(group.view().unwrap().members.len(), RANKS);
                world.barrier().unwrap();
                member.leave().unwrap();
            }
            // The servers stay until all have left.
            world.barrier().unwrap();
        },
    );
}

#[test]
#[cfg(debug_assertions)]
fn a_group_whose_maker_dies_before_it_has_its_name_gets_it_from_the_next_one() {
    enduring(
        "named_groups::a_group_whose_maker_dies_before_it_has_its_name_gets_it_from_the_next_one",
        |job| {
            let rank = job.world().rank();
            job.world().barrier().unwrap();
            if rank == 0 {
                // The first store is that of its server, which has not taken the seat then.
                landeck::unstable::objects::crash_point::die_after(1);
                let _ = job.create_group("orphan", GroupOptions::default());
                kill_myself();
            }
            // Rank 1 is on the maker's host; the others find the group once it has its name.
            let group = loop {
                if let Ok(group) = job.open_group("orphan") {
                    break group;
                }
            };
            let mut inbox = job.create_mailbox().unwrap();
            let mut member = group.join(&mut inbox).unwrap();
            while group.view().unwrap().members.len() < RANKS - 1 {}
            member.sync().unwrap();
            println!("{DONE}");
            // The server stays until all have come here.
            member.sync().unwrap();
            member.leave().unwrap();
            job.leave().unwrap();
        },
    );
}

#[test]
fn a_death_between_two_operations_is_told_by_the_next_one() {
    enduring("named_groups::a_death_between_two_operations_is_told_by_the_next_one", |job| {
        let rank = job.world().rank();
        let (group, _inbox, mut member) = joined(&job, "between", EACH, GroupOptions::default());
        assert_eq!(member.world().unwrap().all_reduce(1u64, Sum).unwrap(), RANKS as u64);
        if rank == 1 {
            kill_myself();
        }
        while group.view().unwrap().members.len() == RANKS {}
        let told = member.advance().unwrap_err();
        assert!(matches!(told.kind, ErrorKind::PeerFailed { .. }), "{told}");
        assert!(member.advance().unwrap(), "told once");
        assert_eq!(member.world().unwrap().all_reduce(1u64, Sum).unwrap(), RANKS as u64 - 1);
        println!("{DONE}");
        // The server stays until all have come here. It tells of the death by itself.
        member.sync().unwrap_err();
        member.leave().unwrap();
        job.leave().unwrap();
    });
}

#[test]
fn a_death_elsewhere_is_told_in_a_synchronisation_and_the_others_go_on() {
    enduring(
        "named_groups::a_death_elsewhere_is_told_in_a_synchronisation_and_the_others_go_on",
        |job| {
            let world = job.world();
            let (group, mut inbox, mut member) = joined(&job, "mortal", 0, GroupOptions::default());
            let mut ids = [0u32; RANKS];
            world.all_gather(&[member.id()], &mut ids).unwrap();
            all_have_come(&job, RANKS - 1);
            if world.rank() == RANKS - 1 {
                kill_myself();
            }
            let died = member.sync().unwrap_err();
            let ErrorKind::Group(GroupError::MemberDied { member: id, .. }) = died.kind else {
                panic!("{died}")
            };
            assert_eq!(id, ids[RANKS - 1]);
            member.broadcast(&message(&[member.id().into(), 1])).unwrap();
            let mut seen: Vec<u64> = (1..RANKS).map(|_| values(&mut inbox)[0]).collect();
            seen.sort_unstable();
            let mut living: Vec<u64> = ids[..RANKS - 1].iter().map(|&id| id.into()).collect();
            living.sort_unstable();
            assert_eq!(seen, living);
            member.sync().unwrap();
            assert_eq!(group.view().unwrap().members.len(), RANKS - 1);
            // All have seen the view before the first leaves.
            member.sync().unwrap();
            member.leave().unwrap();
            println!("{DONE}");
            job.leave().unwrap();
        },
    );
}

#[test]
fn the_seat_of_a_dead_server_is_taken_on_its_host_and_nothing_is_lost() {
    enduring(
        "named_groups::the_seat_of_a_dead_server_is_taken_on_its_host_and_nothing_is_lost",
        |job| {
            let world = job.world();
            let (_group, mut inbox, mut member) =
                joined(&job, "handed on", 0, GroupOptions::default());
            all_have_come(&job, 0);
            if world.rank() == 0 {
                member.broadcast(&message(&[0, 100])).unwrap();
                kill_myself();
            }
            assert_eq!(values(&mut inbox), [0, 100]);
            // Its end may come to members before or after their own broadcasts.
            for number in 0..20 {
                member.broadcast(&message(&[world.rank() as u64, number])).unwrap();
            }
            let mut next = [0u64; RANKS];
            for _ in 0..20 * (RANKS - 1) {
                let [from, number] = values(&mut inbox);
                assert_eq!(number, next[from as usize], "each once and in order");
                next[from as usize] += 1;
            }
            while let Err(error) = member.sync() {
                let is_death =
                    matches!(error.kind, ErrorKind::Group(GroupError::MemberDied { .. }));
                assert!(is_death, "{error}");
            }
            println!("{DONE}");
            // The next server stays until all have come here.
            member.sync().unwrap();
            member.leave().unwrap();
            job.leave().unwrap();
        },
    );
}

#[test]
fn without_a_process_on_the_logs_host_calls_end_with_its_name() {
    let test = "named_groups::without_a_process_on_the_logs_host_calls_end_with_its_name";
    if is_member() {
        let job = Job::join().unwrap();
        let world = job.world();
        let (group, mut inbox, mut member) = joined(&job, "deserted", 0, GroupOptions::default());
        if world.rank() < EACH {
            kill_myself();
        }
        let unreached = [
            member.sync().unwrap_err(),
            member.broadcast(&message(&[0, 0])).unwrap_err(),
            group.view().unwrap_err(),
            inbox.retrieve().unwrap_err(),
        ];
        for unreached in unreached {
            let ErrorKind::Group(GroupError::Unreached { host, .. }) = &unreached.kind else {
                panic!("{unreached}")
            };
            assert_eq!(host, "n1", "{unreached}");
        }
        println!("{DONE}");
        drop(member);
        return job.leave().unwrap();
    }
    let Some(ended) = run(test, &["--on-failure", "notify"]) else { return };
    let said = text(&ended);
    assert!(!said.contains("panicked"), "{said}");
    assert_eq!(said.matches(DONE).count(), RANKS - EACH, "{said}");
}
