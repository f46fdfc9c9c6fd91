//! Named groups with a server, as in the paper of 2000: how many messages each call costs, and that
//! nothing is lost, or done twice, when the server is gone.

use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use landeck::unstable::JobInternals;
use landeck::{
    Error, ErrorKind, GroupError, GroupOptions, Job, Mailbox, Member, Message, ServedBy, Tag,
    ThreadMode,
};

use crate::support::named_groups::{all, group, next, value};
use crate::support::{in_enduring_job, in_job, is_member, job_of, kill_myself, run_well};

const LONG: Duration = Duration::from_secs(100);
const MOMENT: Duration = Duration::from_millis(30);

fn served() -> GroupOptions {
    GroupOptions::default().served_by(ServedBy::Creator)
}

/// Waits until a process has taken note of what stops it.
fn wait_until_stopped(pid: u32) {
    let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    while !state().rsplit(')').next().unwrap().starts_with(" T") {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Messages that all processes of the job have sent, guests and servers among them.
fn messages(job: &Job) -> u64 {
    let slots = 0..job.segment().plan().slots();
    slots.map(|slot| job.segment().counters(slot).messages_sent).sum()
}

/// How many messages a part of rank 0's costs, while the others are in a barrier, which costs none.
fn cost<T>(job: &Job, part: impl FnOnce() -> T) -> (u64, T) {
    let world = job.world();
    world.barrier().unwrap();
    let before = messages(job);
    world.barrier().unwrap();
    let result = part();
    world.barrier().unwrap();
    let after = messages(job);
    world.barrier().unwrap();
    (after - before, result)
}

#[test]
fn calls_cost_as_many_messages_as_in_the_paper() {
    let name = "served_groups::calls_cost_as_many_messages_as_in_the_paper";
    in_job(4, name, ThreadMode::Single, |job| {
        let (rank, n) = (job.world().rank(), 4);
        let (barriers, ()) = cost(job, || ());
        assert_eq!(barriers, 0, "what is measured with costs nothing");
        let (made, first) = cost(job, || {
            (rank == 0).then(|| job.create_group("paper", served().minimum(n)).unwrap())
        });
        assert_eq!(made, 0, "create");
        let group = first.unwrap_or_else(|| job.open_group("paper").unwrap());
        let mut inbox = job.create_mailbox().unwrap();
        let mut member = None;
        for joining in 0..n as usize {
            let (joined, ()) = cost(job, || {
                if rank == joining {
                    member = Some(group.join(&mut inbox).unwrap());
                }
            });
            assert_eq!(joined, 2, "join");
        }
        let mut member = member.unwrap();
        assert_eq!(member.id() as usize, rank);
        for length in [1usize, 1_000, 100_000] {
            let (sent, ()) = cost(job, || {
                if rank == 1 {
                    member.broadcast(Message::new().pack(&vec![7u64; length])).unwrap();
                }
                let got = inbox.retrieve_within(LONG).unwrap().unpack_all::<u64>();
                assert_eq!(got, vec![7; length]);
            });
            assert_eq!(sent, u64::from(1 + n), "broadcast of {length} values");
        }
        let (sent, ()) = cost(job, || {
            if rank == 2 {
                member.broadcast_to_others(&value(3)).unwrap();
            } else {
                assert_eq!(next(&mut inbox), 3);
            }
        });
        assert_eq!(sent, u64::from(n), "broadcast to the others");
        // The hundredth costs what the first does.
        for _ in 0..100 {
            let (synchronised, ()) = cost(job, || member.sync().unwrap());
            assert_eq!(synchronised, u64::from(2 * n), "sync");
        }
        let (left, member) = cost(job, || {
            if rank == 3 {
                member.leave().unwrap();
                return None;
            }
            Some(member)
        });
        assert_eq!(left, 2, "leave");
        let (destroyed, ()) = cost(job, || {
            if rank == 3 {
                group.destroy().unwrap();
            }
        });
        assert_eq!(destroyed, 2, "destroy");
        if let Some(member) = member {
            let gone = member.broadcast(&value(1)).unwrap_err();
            assert!(
                matches!(gone.kind, ErrorKind::Group(GroupError::GroupDestroyed { .. })),
                "{gone}"
            );
        }
    });
}

#[test]
fn without_a_server_calls_cost_no_messages() {
    let name = "served_groups::without_a_server_calls_cost_no_messages";
    in_job(3, name, ThreadMode::Single, |job| {
        let (sent, ()) = cost(job, || {
            let group = group(job, "plain", GroupOptions::default().minimum(3));
            let mut inbox = job.create_mailbox().unwrap();
            let mut member = group.join(&mut inbox).unwrap();
            if job.world().rank() == 0 {
                member.broadcast(&value(4)).unwrap();
            }
            assert_eq!(next(&mut inbox), 4);
            member.sync().unwrap();
            member.leave().unwrap();
        });
        assert_eq!(sent, 0);
    });
}

#[test]
fn a_served_group_keeps_what_groups_promise() {
    let name = "served_groups::a_served_group_keeps_what_groups_promise";
    in_job(4, name, ThreadMode::Single, |job| {
        const EACH: u64 = 200;
        let world = job.world();
        let rank = world.rank() as u64;
        // Fewer messages have room than are sent: whoever sends retrieves in between.
        let (mut member, mut inbox) = all(job, "promises", served().messages(64).minimum(4));
        let mut seen: Vec<u64> = Vec::new();
        for number in 0..EACH {
            let message = value(rank * EACH + number);
            while member.try_broadcast(&message).is_err() {
                match inbox.retrieve_within(Duration::from_millis(1)) {
                    Ok(mut message) => seen.push(message.unpack_value().unwrap()),
                    Err(error) => assert!(matches!(error.kind, ErrorKind::TimedOut(_)), "{error}"),
                }
            }
        }
        while seen.len() < 4 * EACH as usize {
            seen.push(next(&mut inbox));
        }
        member.sync().unwrap();
        assert!(inbox.try_retrieve().unwrap().is_none(), "nothing comes twice");
        world.barrier().unwrap();
        for sender in 0..4 {
            let own = seen.iter().filter(|&&value| value / EACH == sender);
            assert!(own.copied().eq(sender * EACH..(sender + 1) * EACH), "all of {sender}");
        }
        let again = member.group().join(&mut inbox).unwrap_err();
        assert!(
            matches!(again.kind, ErrorKind::Group(GroupError::AlreadyMember { .. })),
            "{again}"
        );
        // What was sent before the leave is retrieved after it; what comes later is not.
        let id = member.id();
        member.broadcast(&value(id.into())).unwrap();
        member.sync().unwrap();
        if id == 0 {
            member.leave().unwrap();
            world.barrier().unwrap();
        } else {
            world.barrier().unwrap();
            member.broadcast(&value(9)).unwrap();
        }
        world.barrier().unwrap();
        let mut got: Vec<u64> = (0..4).map(|_| next(&mut inbox)).collect();
        got.sort_unstable();
        assert_eq!(got, [0, 1, 2, 3]);
        let more = if id == 0 { 0 } else { 3 };
        (0..more).for_each(|_| assert_eq!(next(&mut inbox), 9));
        assert!(inbox.try_retrieve().unwrap().is_none());
        // Posted messages come beside.
        job.open_mailbox_by_address(inbox.address()).unwrap().post_values(&[5u64]).unwrap();
        assert_eq!(next(&mut inbox), 5);
        assert_eq!(inbox.last_group(), None);
        world.barrier().unwrap();
    });
}

#[test]
fn broadcasts_whose_delivery_was_waited_for_are_in_all_mailboxes() {
    let name = "served_groups::broadcasts_whose_delivery_was_waited_for_are_in_all_mailboxes";
    in_job(3, name, ThreadMode::Single, |job| {
        let world = job.world();
        for (name, options) in [("told", served()), ("found", GroupOptions::default())] {
            let (member, mut inbox) = all(job, name, options.minimum(3));
            for round in 0..50 {
                if world.rank() == round % 3 {
                    (0..10).for_each(|number| member.broadcast(&value(number)).unwrap());
                    member.group().wait_delivered().unwrap();
                }
                // That is all that the others hear of it.
                world.barrier().unwrap();
                for number in 0..10 {
                    let found =
                        inbox.try_retrieve().unwrap().map(|mut it| it.unpack_value::<u64>());
                    assert_eq!(found, Some(Ok(number)), "{round}");
                }
            }
            world.barrier().unwrap();
            let group = member.group().clone();
            if world.rank() == 0 {
                group.destroy().unwrap();
            }
            world.barrier().unwrap();
            let gone = group.wait_delivered_within(Duration::from_secs(100)).unwrap_err();
            assert!(
                matches!(gone.kind, ErrorKind::Group(GroupError::GroupDestroyed { .. })),
                "{gone}"
            );
        }
    });
}

/// Broadcasts until a stopped member has no room for what the server sends on; how often.
fn fill(member: &Member, stopped: u32) -> u64 {
    wait_until_stopped(stopped);
    let mut sent = 0;
    while member.group().wait_delivered_within(MOMENT).is_ok() {
        member.broadcast_within(&value(sent), LONG).unwrap();
        sent += 1;
    }
    sent
}

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), signal).unwrap();
}

/// Exactly these messages are there at once.
fn takes_at_once(inbox: &mut Mailbox, sent: u64) {
    for number in 0..sent {
        let found = inbox.try_retrieve().unwrap().map(|mut it| it.unpack_value::<u64>());
        assert_eq!(found, Some(Ok(number)));
    }
}

/// A message for which a stopped member has no room is not delivered, however fast the server is.
#[test]
fn a_wait_for_delivery_waits_for_a_stopped_member() {
    let name = "served_groups::a_wait_for_delivery_waits_for_a_stopped_member";
    in_job(3, name, ThreadMode::Single, |job| {
        let world = job.world();
        let (member, mut inbox) = all(job, "slow", served().minimum(3));
        let (mut pids, mut sent) = ([0; 3], 0);
        world.all_gather(&[std::process::id()], &mut pids).unwrap();
        match world.rank() {
            0 => {}
            1 => {
                sent = fill(&member, pids[2]);
                signal(pids[2], Signal::CONT);
                member.group().wait_delivered_within(LONG).unwrap();
            }
            rank => signal(pids[rank], Signal::STOP),
        }
        world.broadcast(std::slice::from_mut(&mut sent), 1).unwrap();
        takes_at_once(&mut inbox, sent);
    });
}

/// After the death of a server the members deliver the accepted messages, so no call waits for the
/// server.
#[test]
fn a_wait_for_delivery_goes_on_when_the_server_is_killed() {
    let name = "served_groups::a_wait_for_delivery_goes_on_when_the_server_is_killed";
    in_enduring_job(4, name, 137, |job| {
        let world = job.world();
        let group = group(&job, "left", served().minimum(3));
        let (mut pids, mut sent) = ([0; 4], [0]);
        world.all_gather(&[std::process::id()], &mut pids).unwrap();
        if world.rank() == 0 {
            world.receive::<u8>(1, Tag(1)).unwrap();
            std::thread::sleep(MOMENT);
            kill_myself();
        }
        let mut inbox = job.create_mailbox().unwrap();
        let mut member = group.join(&mut inbox).unwrap();
        member.sync().unwrap();
        match world.rank() {
            1 => {
                sent = [fill(&member, pids[2])];
                world.send(&[0u8], 0, Tag(1)).unwrap();
                member.group().wait_delivered_within(LONG).unwrap();
                signal(pids[2], Signal::CONT);
                (2..4).for_each(|rank| world.send(&sent, rank, Tag(2)).unwrap());
            }
            2 => signal(pids[2], Signal::STOP),
            _ => {}
        }
        if world.rank() > 1 {
            sent = [world.receive::<u64>(1, Tag(2)).unwrap().0];
        }
        takes_at_once(&mut inbox, sent[0]);
        println!("survivor done");
        job.leave().unwrap();
    });
}

/// Destroying a group ends the wait for delivery: the accepted messages are in all mailboxes then,
/// and a wait that begins later returns an error.
#[test]
fn destruction_ends_the_wait_for_delivery() {
    let name = "served_groups::destruction_ends_the_wait_for_delivery";
    in_job(3, name, ThreadMode::Single, |job| {
        let world = job.world();
        let (member, mut inbox) = all(job, "ended", served().minimum(3));
        let (mut pids, mut sent) = ([0; 3], 0);
        world.all_gather(&[std::process::id()], &mut pids).unwrap();
        match world.rank() {
            0 => {
                world.receive::<u8>(1, Tag(1)).unwrap();
                std::thread::sleep(MOMENT);
                member.group().destroy().unwrap();
            }
            1 => {
                sent = fill(&member, pids[2]);
                world.send(&[0u8], 0, Tag(1)).unwrap();
                match member.group().wait_delivered_within(LONG) {
                    Ok(()) => {}
                    Err(Error {
                        kind: ErrorKind::Group(GroupError::GroupDestroyed { .. }),
                        ..
                    }) => {}
                    Err(Error {
                        kind: ErrorKind::Group(GroupError::Destroying { .. }), ..
                    }) => {}
                    Err(other) => panic!("{other}"),
                }
                world.receive::<u8>(0, Tag(2)).unwrap();
                signal(pids[2], Signal::CONT);
            }
            rank => signal(pids[rank], Signal::STOP),
        }
        if world.rank() == 0 {
            world.send(&[0u8], 1, Tag(2)).unwrap();
        }
        world.broadcast(std::slice::from_mut(&mut sent), 1).unwrap();
        takes_at_once(&mut inbox, sent);
    });
}

#[test]
fn a_named_process_serves_and_who_leaves_is_followed_by_another() {
    let name = "served_groups::a_named_process_serves_and_who_leaves_is_followed_by_another";
    in_job(3, name, ThreadMode::Single, |job| {
        let world = job.world();
        let named = GroupOptions::default().served_by(ServedBy::Process(1)).minimum(2);
        if world.rank() == 1 {
            world.barrier().unwrap();
            let group = job.open_group("named").unwrap();
            drop(group);
            world.barrier().unwrap();
            // It leaves the job, and its seat with it.
            return;
        }
        let made = (world.rank() == 0).then(|| job.create_group("named", named).unwrap());
        world.barrier().unwrap();
        let group = made.unwrap_or_else(|| job.open_group("named").unwrap());
        let mut inbox = job.create_mailbox().unwrap();
        let mut member = group.join(&mut inbox).unwrap();
        member.sync().unwrap();
        world.barrier().unwrap();
        for round in 0..200 {
            if member.id() == 0 {
                member.broadcast(&value(round)).unwrap();
            }
            assert_eq!(next(&mut inbox), round);
            member.sync().unwrap();
        }
        member.leave().unwrap();
    });
}

#[test]
fn when_the_server_is_killed_what_was_accepted_counts_once() {
    const EACH: u64 = 400;
    let name = "served_groups::when_the_server_is_killed_what_was_accepted_counts_once";
    in_enduring_job(4, name, 137, |job| {
        let world = job.world();
        let rank = world.rank() as u64;
        let options = served().minimum(3).messages(1 << 12);
        let group = group(&job, "killed", options);
        if rank == 0 {
            // The others ask its thread, which goes with it in the middle of that.
            world.receive::<u8>(1, Tag(1)).unwrap();
            std::thread::sleep(MOMENT / 10);
            kill_myself();
        }
        let mut inbox = job.create_mailbox().unwrap();
        let mut member = group.join(&mut inbox).unwrap();
        member.sync().unwrap();
        if rank == 1 {
            world.send(&[0u8], 0, Tag(1)).unwrap();
        }
        for number in 0..EACH {
            member.broadcast(&value(rank << 32 | number)).unwrap();
            if number % 10 == 0 {
                member.sync().unwrap();
            }
        }
        member.sync().unwrap();
        let mut seen: Vec<u64> = (0..3 * EACH).map(|_| next(&mut inbox)).collect();
        assert!(inbox.try_retrieve().unwrap().is_none(), "nothing comes twice");
        seen.sort_unstable();
        let all = (1..4u64).flat_map(|sender| (0..EACH).map(move |number| sender << 32 | number));
        assert!(seen.into_iter().eq(all));
        member.sync().unwrap();
        member.leave().unwrap();
        println!("survivor done");
        job.leave().unwrap();
    });
}

#[test]
fn a_time_limit_takes_back_what_nobody_does() {
    let name = "served_groups::a_time_limit_takes_back_what_nobody_does";
    in_job(2, name, ThreadMode::Single, |job| {
        let world = job.world();
        let (mut member, mut inbox) = all(job, "limits", served().minimum(2));
        if world.rank() == 0 {
            let early = member.sync_within(MOMENT).unwrap_err();
            assert!(matches!(early.kind, ErrorKind::TimedOut(MOMENT)), "{early}");
            world.barrier().unwrap();
            member.sync().unwrap();
        } else {
            world.barrier().unwrap();
            member.sync().unwrap();
        }
        member.sync().unwrap();
        member.broadcast_within(&value(2), LONG).unwrap();
        assert_eq!([next(&mut inbox), next(&mut inbox)], [2, 2]);
        // Nobody serves a group whose server has not come.
        let named = GroupOptions::default().served_by(ServedBy::Process(1));
        let made = (world.rank() == 0).then(|| job.create_group("unserved", named).unwrap());
        if let Some(group) = made {
            let late = group.broadcast_within(&value(1), MOMENT).unwrap_err();
            assert!(matches!(late.kind, ErrorKind::TimedOut(MOMENT)), "{late}");
            assert!(late.to_string().contains("30ms"), "{late}");
            // Whoever has a limit for that ends the group without the server.
            group.destroy_within(MOMENT).unwrap();
            let gone = group.broadcast(&value(1)).unwrap_err();
            assert!(
                matches!(gone.kind, ErrorKind::Group(GroupError::GroupDestroyed { .. })),
                "{gone}"
            );
        }
        world.barrier().unwrap();
    });
}

#[test]
fn the_launcher_serves_beside_all_processes() {
    let name = "served_groups::the_launcher_serves_beside_all_processes";
    let options = GroupOptions::default().served_by(ServedBy::Launcher);
    if !is_member() {
        return run_well(&mut job_of(3, name, &["--serve-groups"]));
    }
    let job = Job::join().unwrap();
    let world = job.world();
    let (mut member, mut inbox) = all(&job, "launcher's", options.minimum(3));
    for round in 0..50 {
        if member.id() == round % 3 {
            member.broadcast(&value(round.into())).unwrap();
        }
        assert_eq!(next(&mut inbox), u64::from(round));
        member.sync().unwrap();
    }
    // It has no rank: no process of the program is the server's.
    let ServedBy::Process(slot) = member.group().options().served_by_whom() else {
        panic!("{:?}", member.group().options())
    };
    assert!(slot as usize >= world.size(), "slot {slot}");
    // The messages are those of any server, one for each retrieval among them.
    let (sent, ()) = cost(&job, || member.sync().unwrap());
    assert_eq!(sent, 6);
    member.leave().unwrap();
    job.leave().unwrap();
}

#[test]
fn a_launcher_that_serves_no_groups_is_named() {
    let name = "served_groups::a_launcher_that_serves_no_groups_is_named";
    in_job(1, name, ThreadMode::Single, |job| {
        let options = GroupOptions::default().served_by(ServedBy::Launcher);
        let none = job.create_group("nobody's", options).unwrap_err();
        assert!(
            matches!(none.kind, ErrorKind::Group(GroupError::NoServingLauncher { .. })),
            "{none}"
        );
        assert!(none.to_string().contains("--serve-groups"), "{none}");
        // The name is free.
        job.create_group("nobody's", GroupOptions::default()).unwrap();
    });
}

#[test]
fn a_long_broadcast_does_not_hold_up_the_server() {
    let name = "served_groups::a_long_broadcast_does_not_hold_up_the_server";
    in_job(3, name, ThreadMode::Single, |job| {
        const BYTES: usize = 48 << 20;
        const ROUNDS: u64 = 4;
        /// So many where the machine has a lot to do: then few joins fit into a broadcast.
        const ROUNDS_MAX: u64 = 50;
        const LAST: u64 = u64::MAX;
        let world = job.world();
        let group = group(job, "long", served().bytes(2 * BYTES as u64).persistent(true));
        let words = match world.rank() {
            0 => job.create_segment("turns", 4096).unwrap(),
            _ => {
                world.barrier().unwrap();
                job.open_segment("turns").unwrap()
            }
        };
        if world.rank() == 0 {
            world.barrier().unwrap();
        }
        // Odd while a broadcast goes on; far above when all are over. And how many joins were answered in one.
        let (turn, meanwhile) = (&words.words()[0], &words.words()[1]);
        let mut inbox = job.create_mailbox().unwrap();
        match world.rank() {
            0 => {
                let member = group.join(&mut inbox).unwrap();
                world.barrier().unwrap();
                for round in 0.. {
                    let got = inbox.retrieve_within(LONG).unwrap().unpack_all::<u64>();
                    if got == [LAST] {
                        break;
                    }
                    assert_eq!((got.len(), got[0], got[BYTES / 8 - 1]), (BYTES / 8, round, round));
                }
                member.leave().unwrap();
            }
            1 => {
                world.barrier().unwrap();
                // One may be answered at the end of each, also where the server does nothing else.
                let is_enough = |rounds| meanwhile.load(Ordering::SeqCst) > rounds;
                for round in 0..ROUNDS_MAX {
                    if round >= ROUNDS && is_enough(round) {
                        break;
                    }
                    let long = Message::new().pack(&vec![round; BYTES / 8]).clone();
                    turn.fetch_add(1, Ordering::SeqCst);
                    group.broadcast(&long).unwrap();
                    turn.fetch_add(1, Ordering::SeqCst);
                }
                let rounds = turn.fetch_add(1 << 32, Ordering::SeqCst) / 2;
                group.broadcast(&value(LAST)).unwrap();
                assert!(
                    is_enough(rounds),
                    "{meanwhile:?} joins answered during {rounds} broadcasts"
                );
            }
            _ => {
                world.barrier().unwrap();
                loop {
                    let before = turn.load(Ordering::SeqCst);
                    group.join(&mut inbox).unwrap().leave().unwrap();
                    let is_same = turn.load(Ordering::SeqCst) == before;
                    let is_within = is_same && before % 2 == 1;
                    meanwhile.fetch_add(u64::from(is_within), Ordering::SeqCst);
                    if before >> 32 != 0 {
                        break;
                    }
                }
            }
        }
        world.barrier().unwrap();
    });
}
