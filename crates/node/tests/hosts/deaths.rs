//! Processes die on another host, and the others go on.

use std::fs;
use std::thread;
use std::time::Duration;

use landeck::{Any, Error, ErrorKind, Job, Sum, Tag};
use rustix::net::{AddressFamily, Shutdown, getpeername, shutdown};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

use crate::job::{RANKS, on_hosts, run};
use crate::support::{is_member, kill_myself, text};

const DONE: &str = "survivor done";

/// Runs a job in which one process dies and the others go on.
fn enduring(test: &str, body: impl FnOnce(Job)) {
    if is_member() {
        body(Job::join().unwrap());
        return;
    }
    let Some(ended) = run(test, &["--on-failure", "notify"]) else { return };
    let said = text(&ended);
    assert_eq!(ended.status.code(), Some(137), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    assert_eq!(said.matches(DONE).count(), RANKS - 1, "{said}");
}

fn done(job: Job) {
    println!("{DONE}");
    job.leave().unwrap();
}

fn failed(error: &Error, rank: usize) -> bool {
    matches!(&error.kind, ErrorKind::PeerFailed { rank: Some(it), how, .. }
        if *it == rank && how == "was killed by signal 9")
}

#[test]
fn calls_that_need_the_dead_fail_and_others_go_on() {
    enduring("deaths::calls_that_need_the_dead_fail_and_others_go_on", |job| {
        let world = job.world();
        world.barrier().unwrap();
        if world.rank() == 3 {
            (0..3).for_each(|to| world.send(&[7u8], to, Tag(9)).unwrap());
            job.drain().unwrap();
            thread::sleep(Duration::from_millis(100));
            kill_myself();
        }
        let lost = world.receive::<u8>(3, Tag(1)).unwrap_err();
        assert!(failed(&lost, 3), "{lost}");
        assert!(world.rank() == 2 || lost.to_string().contains("rank 3 on n2 (pid "), "{lost}");
        // A message from before the death counts.
        assert_eq!(world.receive::<u8>(3, Tag(9)).unwrap().0, 7);
        let lost = world.receive::<u8>(Any, Tag(1)).unwrap_err();
        assert!(failed(&lost, 3), "{lost}");
        assert_eq!(job.acknowledge_failures().unwrap(), [3]);
        let lost = world.send(&[1u8], 3, Tag(1)).unwrap_err();
        assert!(failed(&lost, 3), "{lost}");
        let next = (world.rank() + 1) % 3;
        world.send(&[world.rank()], next, Tag(2)).unwrap();
        let (value, status) = world.receive::<usize>(Any, Tag(2)).unwrap();
        assert_eq!((value, status.rank()), ((world.rank() + 2) % 3, value));
        let lost = world.barrier().unwrap_err();
        assert!(failed(&lost, 3), "{lost}");
        let agreed = world.agree_on_failures(5).unwrap();
        assert_eq!((agreed.flags, &agreed.gone[..], agreed.are_acknowledged), (5, &[3][..], true));
        let smaller = world.shrink().unwrap();
        assert_eq!(smaller.all_reduce(1, Sum).unwrap(), 3);
        assert_eq!(smaller.clusters().unwrap().clusters(), [vec![0, 1], vec![2]]);
        smaller.barrier().unwrap();
        done(job);
    });
}

#[test]
fn a_death_in_a_collective_operation_ends_it_everywhere() {
    enduring("deaths::a_death_in_a_collective_operation_ends_it_everywhere", |job| {
        let mut world = job.world().duplicate().unwrap();
        if world.rank() == 2 {
            (0..5).for_each(|_| assert_eq!(world.all_reduce(1usize, Sum).unwrap(), 4));
            kill_myself();
        }
        let mut rounds = 0;
        while rounds < 20 {
            match world.all_reduce(1usize, Sum) {
                Ok(sum) => {
                    assert_eq!(sum, world.size());
                    rounds += 1;
                }
                Err(Error {
                    kind: ErrorKind::PeerFailed { .. } | ErrorKind::Revoked { .. },
                    ..
                }) => {
                    world.revoke().unwrap();
                    world = world.shrink().unwrap();
                    rounds = 0;
                }
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!(world.size(), RANKS - 1);
        done(job);
    });
}

#[test]
fn a_death_ends_the_job_by_default() {
    let test = "deaths::a_death_ends_the_job_by_default";
    if is_member() {
        let job = Job::join().unwrap();
        let world = job.world();
        world.barrier().unwrap();
        if world.rank() == 3 {
            kill_myself();
        }
        let _ = world.receive::<u8>(3, Tag(1));
        thread::sleep(Duration::from_secs(30)); // the guardian is faster
        return;
    }
    let Some(ended) = run(test, &[]) else { return };
    let said = text(&ended);
    assert_eq!(ended.status.code(), Some(137), "{said}");
    assert!(said.contains("rank 3 of 4") && said.contains("n2"), "{said}");
}

#[test]
fn a_connection_that_breaks_is_followed_by_another_one() {
    on_hosts("deaths::a_connection_that_breaks_is_followed_by_another_one", |job| {
        let world = job.world();
        world.barrier().unwrap();
        for round in 0..3 {
            if world.rank() == round {
                break_connections();
            }
            // A suspicion fails no call: it waits until the next connection is there.
            assert_eq!(world.all_reduce(1usize, Sum).unwrap(), RANKS);
            let (next, last) = ((world.rank() + 2) % RANKS, (world.rank() + RANKS - 2) % RANKS);
            let (sent, mut got) = (vec![world.rank(); 50_000], vec![0; 50_000]);
            world.send_receive(&sent, (next, Tag(1)), &mut got, (last, Tag(1))).unwrap();
            assert!(got.iter().all(|value| *value == last));
        }
    });
}

/// Shuts this process's connections to other hosts down, as a network does that loses their state.
fn break_connections() {
    let own = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
    for entry in fs::read_dir("/proc/self/fd").unwrap().flatten() {
        let Some(number) = entry.file_name().to_str().and_then(|text| text.parse().ok()) else {
            continue;
        };
        let Ok(copy) = pidfd_getfd(&own, number, PidfdGetfdFlags::empty()) else { continue };
        let Ok(Some(peer)) = getpeername(&copy) else { continue };
        if matches!(peer.address_family(), AddressFamily::INET | AddressFamily::INET6) {
            shutdown(&copy, Shutdown::Both).unwrap();
        }
    }
}
