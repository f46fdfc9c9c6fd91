//! A receiver that does not receive: its senders wait or are told so, and nobody's memory grows
//! without bound.

use std::thread;
use std::time::{Duration, Instant};

use landeck::unstable::JobInternals;
use landeck::{Any, Error, ErrorKind, Job, Tag, ThreadMode};
use rustix::fs::fstat;

use crate::support::{Count, in_job};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// How long nothing is received.
const PAUSE: Duration = Duration::from_millis(300);
/// Bytes of rings, of mailboxes, and of other memory that a few processes touch.
const CHANNEL_BYTES: u64 = 4 * MIB;
/// Bytes of unexpected messages that a receiver keeps from one sender.
const KEPT_BYTES: u64 = 4 * MIB;
/// Bytes of slack for an allocator.
const SLACK_BYTES: u64 = 4 * MIB;

/// Sent when all of one kind are sent: how many those were.
const COUNT: Tag = Tag(100);

#[test]
fn a_sender_without_room_is_told_so_and_keeps_nothing() {
    let name = "pressure::a_sender_without_room_is_told_so_and_keeps_nothing";
    in_job(2, name, ThreadMode::Single, |job| {
        let (world, kinds_sent) = (job.world(), Count::new(job, "kinds sent"));
        for (tag, length) in (0..).map(Tag).zip([1, 500, 2_000]) {
            if world.rank() == 0 {
                let (private, shared) = (private_bytes(), segment_bytes(job));
                let sent = try_for(PAUSE, |number| world.try_send(&vec![number; length], 1, tag));
                assert!(sent > 0 && sent < 10_000, "{sent} messages of {length} values");
                assert_grown_by(private, private_bytes(), SLACK_BYTES);
                assert_grown_by(shared, segment_bytes(job), CHANNEL_BYTES);
                kinds_sent.add_one();
                world.send(&[sent], 1, COUNT).unwrap();
            } else {
                kinds_sent.wait_for(u64::from(tag.0) + 1);
                let mut next = 0u64;
                while world.probe(0, Any).unwrap().tag() == tag {
                    let (values, _) = world.receive_vec::<u64>(0, tag).unwrap();
                    assert_eq!(values, vec![next; length], "in order, nothing lost, nothing twice");
                    next += 1;
                }
                assert_eq!(world.receive::<u64>(0, COUNT).unwrap().0, next);
            }
            world.barrier().unwrap(); // the next kind finds everything taken
        }
    });
}

#[test]
fn sends_that_wait_take_no_further_memory() {
    const SENDS: usize = 400;
    const LENGTH: usize = 4_000;
    let name = "pressure::sends_that_wait_take_no_further_memory";
    in_job(2, name, ThreadMode::Single, |job| {
        let world = job.world();
        for tag in [Tag(1), Tag(2)] {
            // Data beside the lines of a ring, and data through blocks of the heap.
            let length = if tag == Tag(1) { LENGTH / 4 } else { LENGTH * 4 };
            if world.rank() == 0 {
                let values: Vec<Vec<u64>> =
                    (0..SENDS as u64).map(|number| vec![number; length]).collect();
                let private = private_bytes();
                let shared = segment_bytes(job);
                let grown = world.scope(|scope| {
                    for values in &values {
                        let _goes_on = scope.send(values, 1, tag)?;
                    }
                    let grown = segment_bytes(job).saturating_sub(shared);
                    assert_grown_by(private, private_bytes(), SLACK_BYTES);
                    Ok(grown)
                });
                println!("{SENDS} sends of {length} values: {} KiB shared", grown.unwrap() / KIB);
            } else {
                thread::sleep(PAUSE);
                for number in 0..SENDS as u64 {
                    let (values, _) = world.receive_vec::<u64>(0, tag).unwrap();
                    assert_eq!(values, vec![number; length]);
                }
            }
        }
    });
}

#[test]
fn messages_that_nobody_asked_for_are_kept_within_bounds() {
    const EACH: u64 = 4_000;
    const LENGTH: usize = 1_000;
    let name = "pressure::messages_that_nobody_asked_for_are_kept_within_bounds";
    in_job(4, name, ThreadMode::Single, |job| {
        let world = job.world();
        let counts = [Count::new(job, "sent by 1"), Count::new(job, "sent by 2")];
        match world.rank() {
            0 => {
                let before = private_bytes();
                world.receive::<u8>(3, Tag(9)).unwrap();
                assert_grown_by(before, private_bytes(), 2 * KEPT_BYTES + SLACK_BYTES);
                let mut next = [0, 0, 0];
                for _ in 0..2 * EACH {
                    let (values, status) = world.receive_vec::<u64>(Any, Tag(1)).unwrap();
                    let next = &mut next[status.rank()];
                    assert_eq!(values, vec![*next; LENGTH], "in order per sender");
                    *next += 1;
                }
                assert_eq!(next, [0, EACH, EACH]);
            }
            3 => {
                wait_until_stopped(&counts);
                assert!(counts.iter().all(|sent| sent.get() < EACH), "the last ones wait");
                world.send(&[1u8], 0, Tag(9)).unwrap();
            }
            rank => {
                let before = private_bytes();
                (0..EACH).for_each(|number| {
                    world.send(&[number; LENGTH], 0, Tag(1)).unwrap();
                    counts[rank - 1].add_one();
                });
                assert_grown_by(before, private_bytes(), SLACK_BYTES);
            }
        }
    });
}

/// Waits until all have begun to count, and none has gone on for a while.
fn wait_until_stopped(counts: &[Count; 2]) {
    let mut last = [0; 2];
    loop {
        thread::sleep(PAUSE);
        let now = counts.each_ref().map(Count::get);
        if now == last && now.iter().all(|&count| count > 0) {
            return;
        }
        last = now;
    }
}

/// Tries to send for a while; returns how often that went well.
fn try_for(time: Duration, mut send: impl FnMut(u64) -> landeck::Result<()>) -> u64 {
    let began = Instant::now();
    let mut sent = 0;
    while began.elapsed() < time {
        match send(sent) {
            Ok(()) => sent += 1,
            Err(Error { kind: ErrorKind::WouldBlock, .. }) => thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
    sent
}

fn assert_grown_by(before: u64, after: u64, at_most: u64) {
    let grown = after.saturating_sub(before);
    assert!(grown <= at_most, "grown by {} KiB, at most {}", grown / KIB, at_most / KIB);
}

/// Memory of this process alone that is in use.
fn private_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    kib * KIB
}

/// Memory of the segment that is in use.
fn segment_bytes(job: &Job) -> u64 {
    let blocks = fstat(job.segment().descriptor().unwrap()).unwrap().st_blocks;
    blocks as u64 * 512
}
