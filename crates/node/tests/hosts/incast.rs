//! Many-to-one steps between hosts, at every pace.

use std::fs;
use std::time::Duration;

use landeck::architecture::Flat;
use landeck::{Incast, Job, Priority, Sum, TokenWish, World};
use landeck_testing::hosts::{Hosts, Wish};
use landeck_testing::{Watchdog, jobs};

use crate::job::{RANKS, on_hosts};
use crate::support::{is_member, job_by, launcher, text};

const PACES: [Incast; 10] = [
    Incast::None,
    Incast::Fixed(1),
    Incast::Fixed(2),
    Incast::Calibrated,
    Incast::Credit(32 << 10),
    Incast::Credit(128 << 10),
    Incast::GrowingCredit,
    Incast::Tokens(TokenWish::SEGMENTATION),
    Incast::Tokens(TokenWish::RESERVATION),
    Incast::Tokens(TokenWish { chunks_up_to: 65_537, priority: Priority::High }),
];

fn values(rank: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (rank * 31 + at * 7 + at / 251) as u8).collect()
}

/// Gathers at a root, which checks every byte.
fn gather_right(world: &World, bytes: usize, root: usize) {
    let (rank, size) = (world.rank(), world.size());
    let own = values(rank, bytes);
    let mut all = vec![0; if rank == root { bytes * size } else { 0 }];
    world.via(Flat).gather(&own, &mut all, root).unwrap();
    for (from, found) in all.chunks(bytes).enumerate() {
        assert!(found == values(from, bytes), "{bytes} bytes of rank {from}");
    }
}

/// Gathers and reduces.
fn gather(world: &World, bytes: usize, root: usize) {
    gather_right(world, bytes, root);
    let (rank, size) = (world.rank(), world.size());
    let words = vec![rank as u64; bytes / 8];
    let mut sums = vec![0; if rank == root { bytes / 8 } else { 0 }];
    world.via(Flat).reduce(&words, &mut sums, Sum, root).unwrap();
    let sum = (size * (size - 1) / 2) as u64;
    assert!(sums.iter().all(|found| *found == sum));
}

#[test]
fn many_to_one_steps_arrive_at_every_pace() {
    on_hosts("incast::many_to_one_steps_arrive_at_every_pace", |job| {
        let world = job.world();
        for pace in PACES {
            world.set_incast(pace).unwrap();
            // At once, offered because of the other senders, offered for its length, of several parts.
            for (bytes, root) in [(8, 3), (40_000, 0), (65_537, 3), (100_001, 0)] {
                gather(&world, bytes, root);
            }
        }
        // The calibration tries each number of senders some times, and then stays with one.
        world.set_incast(Incast::Calibrated).unwrap();
        (0..20).for_each(|_| gather_right(&world, 40_000, 0));
        a_member_computes(&world);
    });
}

/// Messages of the program itself need tokens as well, and come past others that nobody receives yet.
#[test]
fn messages_with_tokens_arrive_in_any_order() {
    on_hosts("incast::messages_with_tokens_arrive_in_any_order", |job| {
        let (low, high) = (job.world(), job.world().duplicate().unwrap());
        let wish = TokenWish::SEGMENTATION;
        low.set_incast(Incast::Tokens(wish)).unwrap();
        let wish = TokenWish { priority: Priority::High, ..wish };
        high.set_incast(Incast::Tokens(wish)).unwrap();
        let peer = (low.rank() + RANKS / 2) % RANKS;
        let bytes = [1_000_000, 300_001, 100, 70_000];
        let sent = bytes.map(|bytes| values(low.rank(), bytes));
        let mut found = bytes.map(|bytes| vec![0; bytes]);
        let worlds = [&low, &low, &low, &high];
        low.scope(|scope| {
            for (tag, data) in (0..3u32).zip(&sent) {
                let _ = scope.send(data, peer, tag)?;
            }
            high.scope(|urgent| {
                let _ = urgent.send(&sent[3], peer, 3)?;
                for tag in (0..bytes.len()).rev() {
                    worlds[tag].receive_into(&mut found[tag], peer, tag as u32)?;
                }
                Ok(())
            })
        })
        .unwrap();
        assert!(bytes.iter().zip(&found).all(|(bytes, found)| *found == values(peer, *bytes)));
        low.barrier().unwrap();
    });
}

/// A member that computes keeps no other waiting.
fn a_member_computes(world: &World) {
    world.set_incast(Incast::Credit(32 << 10)).unwrap();
    // Rank 2 has the smaller rest, so it is granted first; it does not look until rank 3 has sent everything.
    let done = std::env::temp_dir().join("incast-rank-3-has-sent");
    let parts = [0..1, 1..2, 2..300_002, 300_002..800_002];
    let own = vec![world.rank() as u8 + 1; parts[world.rank()].len()];
    let mut all = vec![0; if world.rank() == 0 { 800_002 } else { 0 }];
    let flat = world.via(Flat);
    world.barrier().unwrap();
    flat.scope(|scope| {
        let request = scope.gather_varying(&own, &mut all, &parts, 0)?;
        while world.rank() == 2 && !done.exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
        request.wait().map(drop)
    })
    .unwrap();
    if world.rank() == 3 {
        fs::write(&done, "").unwrap();
    }
    let is_right =
        |rank: usize| all[parts[rank].clone()] == vec![rank as u8 + 1; parts[rank].len()];
    assert!(world.rank() != 0 || (0..RANKS).all(is_right));
    world.barrier().unwrap();
    let _ = fs::remove_file(&done);
}

/// The segments that this host has sent again.
fn sent_again() -> u64 {
    let counters = fs::read_to_string("/proc/net/snmp").unwrap();
    let mut lines = counters.lines().filter(|line| line.starts_with("Tcp:"));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let mut pairs = names.split(' ').zip(values.split(' '));
    pairs.find(|(name, _)| *name == "RetransSegs").unwrap().1.parse().unwrap()
}

#[test]
fn credit_spares_a_small_port() {
    const TEST: &str = "incast::credit_spares_a_small_port";
    const EACH: usize = 3;
    if !is_member() {
        let _watchdog = Watchdog::start(Duration::from_secs(300));
        launcher(); // it may have to be built
        let (rate, port_bytes) = (Some("100mbit".to_owned()), Some(131_072));
        let wish = Wish { rate, port_bytes, ..Wish::hosts(4) };
        let Some(hosts) = Hosts::or_skip(TEST, &wish) else { return };
        let run = jobs::run_on(&hosts, launcher(), 4 * EACH);
        let ended = job_by(run, 4 * EACH, TEST, &["--timeout", "100"]).output().unwrap();
        return assert!(ended.status.success(), "{}", text(&ended));
    }
    let job = Job::join().unwrap();
    let world = job.world();
    let own = vec![world.rank() as u8; 200_000];
    let mut all = vec![0; if world.rank() == 0 { own.len() * world.size() } else { 0 }];
    let lost: Vec<u64> = [Incast::None, Incast::Credit(64 << 10)]
        .into_iter()
        .map(|pace| {
            world.set_incast(pace).unwrap();
            world.barrier().unwrap();
            let before = sent_again();
            (0..2).for_each(|_| world.via(Flat).gather(&own, &mut all, 0).unwrap());
            world.barrier().unwrap();
            let here = if world.rank().is_multiple_of(EACH) { sent_again() - before } else { 0 };
            world.all_reduce(here, Sum).unwrap()
        })
        .collect();
    assert!(lost[0] > 40, "the port is not small: {lost:?}");
    assert!(2 * lost[1] < lost[0], "credit spares nothing: {lost:?}");
    job.leave().unwrap();
}
