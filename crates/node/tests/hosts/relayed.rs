//! Messages over relays: tests of this program again under `--path relay`, jobs with few lanes, and a stopped receiver.

use std::fs;
use std::process::Command;
use std::time::Duration;

use landeck::{Any, Job, Tag};
use landeck_testing::Watchdog;
use landeck_testing::hosts::{Hosts, Wish};
use rustix::net::{AddressFamily, getpeername};
use rustix::process::{
    Pid, PidfdFlags, PidfdGetfdFlags, Signal, getpid, kill_process, pidfd_getfd, pidfd_open,
};

use crate::job::{EACH, RANKS, command, on_hosts};
use crate::support::{is_member, launcher, text};

/// Runs these tests of this program over relays, on hosts that are made once.
fn again_over_relays(test: &str, tests: &[&str], options: &[&str], code: i32) {
    let _watchdog = Watchdog::start(Duration::from_secs(300));
    launcher(); // it may have to be built
    let Some(hosts) = Hosts::or_skip(test, &Wish::hosts(2)) else { return };
    for test in tests {
        let options = [&["--path", "relay"], options].concat();
        let ended = command(&hosts, EACH, test, &options).output().unwrap();
        let said = text(&ended);
        assert_eq!(ended.status.code(), Some(code), "{test}: {said}");
        assert!(!said.contains("panicked"), "{test}: {said}");
    }
}

#[test]
fn messages_of_every_kind_arrive_over_relays() {
    let tests = [
        "messages::every_length_arrives",
        "messages::a_wildcard_hears_memory_and_network_in_order",
        "messages::each_mode_keeps_its_promise",
        "messages::urgent_messages_need_no_order",
        "messages::messages_are_probed_held_cancelled_and_repeated",
        "messages::loans_and_layouts_arrive_as_data",
    ];
    again_over_relays("relayed::messages_of_every_kind_arrive_over_relays", &tests, &[], 0);
}

#[test]
fn layers_above_messages_work_over_relays() {
    let tests = [
        "waiting::a_sleeper_is_woken_by_memory_and_by_network",
        "waiting::threads_of_one_process_wait_for_memory_and_network",
        "leaving::everything_arrives_from_a_process_that_has_left",
        "leaving::a_process_leaves_that_has_only_sent",
        "collectives::every_operation_gives_what_a_naive_one_gives",
        "mailboxes::messages_of_every_length_reach_a_mailbox_found_by_name",
        "mailboxes::a_dropped_mailbox_returns_posts_that_wait_and_drops_the_others",
    ];
    again_over_relays("relayed::layers_above_messages_work_over_relays", &tests, &[], 0);
}

#[test]
fn deaths_are_told_behind_the_last_relayed_message() {
    let tests = [
        "deaths::calls_that_need_the_dead_fail_and_others_go_on",
        "deaths::a_death_in_a_collective_operation_ends_it_everywhere",
    ];
    let test = "relayed::deaths_are_told_behind_the_last_relayed_message";
    again_over_relays(test, &tests, &["--on-failure", "notify"], 137);
}

#[test]
fn pairs_beyond_the_limit_of_lanes_take_the_relay() {
    const EACH: usize = 3;
    let test = "relayed::pairs_beyond_the_limit_of_lanes_take_the_relay";
    if is_member() {
        let job = Job::join().unwrap();
        all_to_all(&job);
        let connections = connections_in_the_end(&job, 2);
        meet(&job, "counted"); // the others' connections end when they leave
        assert!((1..=2).contains(&connections), "one lane and one relay: {connections}");
        return job.leave().unwrap();
    }
    let _watchdog = Watchdog::start(Duration::from_secs(300));
    launcher(); // it may have to be built
    let Some(hosts) = Hosts::or_skip(test, &Wish::hosts(2)) else { return };
    let mut limited: Command = command(&hosts, EACH, test, &["-x", "LANDECK_LANES=1"]);
    let ended = limited.output().unwrap();
    assert!(ended.status.success(), "{}", text(&ended));
}

#[test]
fn ranks_with_variables_of_their_own_do_as_their_launcher_says() {
    let test = "relayed::ranks_with_variables_of_their_own_do_as_their_launcher_says";
    if is_member() {
        let job = Job::join().unwrap();
        all_to_all(&job);
        let connections = connections_in_the_end(&job, 1);
        meet(&job, "counted"); // the others' connections end when they leave
        assert_eq!(connections, 1, "the relay of the other host, and no lane");
        return job.leave().unwrap();
    }
    let _watchdog = Watchdog::start(Duration::from_secs(300));
    launcher(); // it may have to be built
    let Some(hosts) = Hosts::or_skip(test, &Wish::hosts(2)) else { return };
    // Half of them ask for other paths, and half for nothing that exists.
    let script = "case $PMI_RANK in
        [02]) export LANDECK_PATH=lane LANDECK_LANES=9 LANDECK_INCAST=none LANDECK_ONE_COPY=4K ;;
        *) export LANDECK_PATH=sea LANDECK_LANES=no LANDECK_INCAST=wait LANDECK_ONE_COPY=two ;;
        esac
        exec \"$0\" \"$@\"";
    let options = ["--path", "relay", "--incast", "fixed:2", "sh", "-c", script];
    let ended = command(&hosts, EACH, test, &options).env("LANDECK_LANES", "1").output().unwrap();
    assert!(ended.status.success(), "{}", text(&ended));
}

/// The connections of this process to other hosts, once there are no more than so many. A lane that another one has
/// replaced, or that is refused for the limit, ends in one of the next calls.
fn connections_in_the_end(job: &Job, most: usize) -> usize {
    let give_up = std::time::Instant::now() + Duration::from_secs(60);
    loop {
        let count = far_connections();
        if count <= most || std::time::Instant::now() > give_up {
            return count;
        }
        assert_eq!(job.world().try_probe(Any, Tag(99)).unwrap(), None);
    }
}

/// Waits until all have come here, without a message.
fn meet(job: &Job, place: &str) {
    let world = job.world();
    let come = |rank: usize| format!("/run/hosts/{place}-{rank}");
    fs::write(come(world.rank()), "").unwrap();
    while !(0..world.size()).all(|rank| fs::exists(come(rank)).unwrap()) {
        std::thread::yield_now();
    }
}

/// Everybody sends to everybody, in order, short and long.
fn all_to_all(job: &Job) {
    const ROUNDS: u32 = 30;
    let world = job.world();
    let (rank, size) = (world.rank(), world.size());
    let others = || (0..size).filter(|&other| other != rank);
    let long: Vec<u32> = (0..40_000).collect();
    world
        .scope(|scope| {
            let mut sends = Vec::new();
            for other in others() {
                sends.push(scope.send(&long, other, Tag(2))?);
            }
            for round in 0..ROUNDS {
                others().try_for_each(|other| world.send(&[round], other, Tag(1)))?;
            }
            let mut next = vec![0; size];
            for _ in 0..ROUNDS as usize * (size - 1) {
                let (round, status) = world.receive::<u32>(Any, Tag(1))?;
                assert_eq!(round, std::mem::replace(&mut next[status.rank()], round + 1));
            }
            for other in others() {
                assert_eq!(world.receive_vec::<u32>(other, Tag(2))?.0, long);
            }
            sends.into_iter().try_for_each(|send| send.wait().map(drop))
        })
        .unwrap();
    world.barrier().unwrap();
}

/// The number of this process's connections to other hosts.
fn far_connections() -> usize {
    let own = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
    let number = |entry: fs::DirEntry| entry.file_name().to_str().and_then(|it| it.parse().ok());
    let numbers = fs::read_dir("/proc/self/fd").unwrap().flatten().filter_map(number);
    let is_far = |number: &i32| {
        let copy = pidfd_getfd(&own, *number, PidfdGetfdFlags::empty());
        let peer = copy.ok().and_then(|copy| getpeername(&copy).ok().flatten());
        peer.is_some_and(|peer| {
            matches!(peer.address_family(), AddressFamily::INET | AddressFamily::INET6)
        })
    };
    numbers.filter(is_far).count()
}

#[test]
fn a_stopped_receiver_holds_up_its_senders_alone() {
    let test = "relayed::a_stopped_receiver_holds_up_its_senders_alone";
    if is_member() {
        return on_hosts(test, stop_and_go);
    }
    again_over_relays(test, &[test], &[], 0);
}

pub(crate) fn stop_and_go(job: &Job) {
    const MESSAGES: u32 = 400;
    const ROUNDS: u32 = 100;
    const { assert!(RANKS == 4) }
    let world = job.world();
    let bulk = vec![5u8; 20_000];
    match world.rank() {
        // It sends more than the relay holds, and goes on only when the receiver does.
        0 => {
            assert_eq!(world.receive::<u8>(2, Tag(1)).unwrap().0, 1, "the receiver is stopped");
            (0..MESSAGES).for_each(|_| world.send(&bulk, 3, Tag(2)).unwrap());
        }
        // It talks to the stopped one's neighbour through the relay meanwhile.
        1 => {
            for round in 0..ROUNDS {
                world.send(&bulk, 2, Tag(3)).unwrap();
                assert_eq!(world.receive::<u32>(2, Tag(4)).unwrap().0, round);
            }
        }
        2 => {
            let pid = world.receive::<i32>(3, Tag(5)).unwrap().0;
            let pid = Pid::from_raw(pid).unwrap();
            let stat = format!("/proc/{}/stat", pid.as_raw_nonzero());
            while !fs::read_to_string(&stat).unwrap().contains(") T ") {
                std::thread::yield_now();
            }
            world.send(&[1u8], 0, Tag(1)).unwrap();
            for round in 0..ROUNDS {
                assert_eq!(world.receive_vec::<u8>(1, Tag(3)).unwrap().0, bulk);
                world.send(&[round], 1, Tag(4)).unwrap();
            }
            kill_process(pid, Signal::CONT).unwrap();
        }
        _ => {
            world.send(&[getpid().as_raw_nonzero().get()], 2, Tag(5)).unwrap();
            kill_process(getpid(), Signal::STOP).unwrap();
            for _ in 0..MESSAGES {
                assert_eq!(world.receive_vec::<u8>(0, Tag(2)).unwrap().0, bulk);
            }
        }
    }
}
