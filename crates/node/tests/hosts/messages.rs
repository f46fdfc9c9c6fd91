//! Messages of every kind between hosts.

use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, thread};

use landeck::{Any, ErrorKind, Repeated, SendMode, Tag};

use crate::job::{EACH, RANKS, on_hosts};

/// Lengths around everything that divides messages: lines, frames of 64 KiB, blocks.
const LENGTHS: [usize; 11] = [0, 1, 6, 7, 100, 2_048, 8_191, 8_192, 8_193, 100_000, 1_000_000];

#[test]
fn every_length_arrives() {
    on_hosts("messages::every_length_arrives", |job| {
        let world = job.world();
        let (rank, size) = (world.rank(), world.size());
        for distance in 1..size {
            let (next, previous) = ((rank + distance) % size, (rank + size - distance) % size);
            for (tag, length) in (0..).zip(LENGTHS) {
                let values: Vec<u64> = (0..length as u64).map(|at| at * 3 + rank as u64).collect();
                let mut into = vec![0u64; length];
                let sent = (&values[..], (next, Tag(tag)));
                let status = world.send_receive(sent.0, sent.1, &mut into, (previous, Tag(tag)));
                let status = status.unwrap();
                assert_eq!((status.rank(), status.bytes()), (previous, 8 * length as u64));
                let expected = (0..length as u64).map(|at| at * 3 + previous as u64);
                assert!(into.iter().copied().eq(expected), "length {length}");
            }
        }
    });
}

#[test]
fn a_wildcard_hears_memory_and_network_in_order() {
    on_hosts("messages::a_wildcard_hears_memory_and_network_in_order", |job| {
        const ROUNDS: u32 = 3_000;
        let world = job.world();
        if world.rank() != 1 {
            for number in 0..ROUNDS {
                world.send(&[number], 1, Tag(number % 3)).unwrap();
            }
            return;
        }
        let mut next = [[0; 3]; RANKS];
        for _ in 0..ROUNDS * (RANKS as u32 - 1) {
            let (number, status) = world.receive::<u32>(Any, Any).unwrap();
            let counter = &mut next[status.rank()][status.tag().0 as usize];
            assert_eq!(number, *counter * 3 + status.tag().0, "in order per sender and tag");
            *counter += 1;
        }
    });
}

#[test]
fn each_mode_keeps_its_promise() {
    on_hosts("messages::each_mode_keeps_its_promise", |job| {
        let world = job.world();
        let long = vec![3u64; 200_000];
        let far = (world.rank() + EACH) % RANKS;
        let begun = std::time::Instant::now();
        world.barrier().unwrap();
        if world.rank() < EACH {
            world.send_in(SendMode::Synchronous, &[1u8], far, Tag(1)).unwrap();
            assert!(begun.elapsed().as_millis() >= 40, "its receive had not begun");
            world.send_in(SendMode::Buffered, &long, far, Tag(2)).unwrap();
            world.send_in(SendMode::Buffered, &[4u8], far, Tag(3)).unwrap();
            assert_eq!(world.receive::<u8>(far, Tag(9)).unwrap().0, 1);
            world.send_in(SendMode::Ready, &[5u8], far, Tag(4)).unwrap();
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(60));
        assert_eq!(world.receive::<u8>(far, Tag(1)).unwrap().0, 1);
        let mut value = [0u8];
        world
            .scope(|scope| {
                let ready = scope.receive_into(&mut value, far, Tag(4))?;
                world.send(&[1u8], far, Tag(9))?;
                ready.wait()
            })
            .unwrap();
        assert_eq!(value, [5]);
        assert_eq!(world.receive::<u8>(far, Tag(3)).unwrap().0, 4);
        assert_eq!(world.receive_vec::<u64>(far, Tag(2)).unwrap().0, long);
    });
}

#[test]
fn urgent_messages_need_no_order() {
    on_hosts("messages::urgent_messages_need_no_order", |job| {
        let world = job.world();
        let far = (world.rank() + EACH) % RANKS;
        let bulk = vec![7u8; 16 * 1024];
        if world.rank() < EACH {
            (0..200).for_each(|_| world.send(&bulk, far, Tag(1)).unwrap());
            world.send_urgent(&[9u64], far, Tag(2)).unwrap();
            assert_eq!(world.receive::<u64>(far, Tag(3)).unwrap().0, 10);
            return;
        }
        assert_eq!(world.receive::<u64>(Any, Tag(2)).unwrap().0, 9);
        world.send_urgent(&[10u64], far, Tag(3)).unwrap();
        for _ in 0..200 {
            assert_eq!(world.receive_vec::<u8>(far, Tag(1)).unwrap().0, bulk);
        }
    });
}

#[test]
fn messages_are_probed_held_cancelled_and_repeated() {
    on_hosts("messages::messages_are_probed_held_cancelled_and_repeated", |job| {
        let world = job.world();
        let (rank, far) = (world.rank(), (world.rank() + EACH) % RANKS);
        let values: Vec<u32> = (0..50_000).collect();
        world
            .scope(|scope| {
                let sent = scope.send(&values, far, Tag(1))?;
                let status = world.probe(far, Any)?;
                assert_eq!((status.rank(), status.tag(), status.bytes()), (far, Tag(1), 200_000));
                let held = world.hold(far, Tag(1))?;
                assert_eq!(world.try_probe(far, Tag(1))?, None, "a held message is out of reach");
                assert_eq!(held.receive_vec::<u32>()?, values);
                sent.wait()
            })
            .unwrap();
        // A receive and a send that meet nothing are withdrawn.
        let mut never = [0u8; 4];
        world
            .scope(|scope| {
                let mut receive = scope.receive_into(&mut never, far, Tag(2))?;
                receive.cancel()?;
                assert!(receive.wait()?.is_cancelled());
                Ok(())
            })
            .unwrap();
        world.barrier().unwrap();
        let mut sends = Repeated::send(&world, SendMode::Standard, vec![0u64; 3], far, Tag(3));
        let mut receives = Repeated::<u64>::receive(&world, 3, far, Tag(3));
        for round in 0..50 {
            receives.start().unwrap();
            sends.values_mut().unwrap().fill(round * 10 + rank as u64);
            sends.start().unwrap();
            assert_eq!(receives.values().unwrap(), [round * 10 + far as u64; 3]);
        }
        sends.wait().unwrap();
    });
}

#[test]
fn sends_of_256_kib_end_before_their_receives() {
    on_hosts("messages::sends_of_256_kib_end_before_their_receives", |job| {
        let world = job.world();
        let (rank, far) = (world.rank(), (world.rank() + EACH) % RANKS);
        for round in 0..20 {
            let sent = vec![(rank + round) as u32; 64 * 1024];
            world.send(&sent, far, Tag(1)).unwrap();
            world.send(&[round], far, Tag(2)).unwrap();
            let got = world.receive_vec::<u32>(far, Tag(1)).unwrap().0;
            assert!(got == vec![(far + round) as u32; 64 * 1024], "round {round}");
            assert_eq!(world.receive::<usize>(far, Tag(2)).unwrap().0, round);
        }
        // A message that is held and thrown away is received as well.
        world.send(&vec![1u8; 200_000], far, Tag(3)).unwrap();
        drop(world.hold(far, Tag(3)).unwrap());
        // Nobody waits for a receive that never comes, not even when all leave.
        world.send(&vec![1u8; 200_000], far, Tag(4)).unwrap();
        world.barrier().unwrap();
    });
}

/// A send that is over needs no further call of its process: its data are on their way, whatever the process does then.
#[test]
fn a_message_arrives_while_its_sender_computes() {
    on_hosts("messages::a_message_arrives_while_its_sender_computes", |job| {
        const LENGTHS: [usize; 5] = [60_000, 66_000, 131_072, 200_000, 262_144];
        let (world, pause) = (job.world(), Duration::from_millis(200));
        let (rank, far) = (world.rank(), (world.rank() + EACH) % RANKS);
        let sign = |rank: usize, round: usize| {
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("arrived-{rank}-{round}"))
        };
        let rounds = 2 * LENGTHS.len();
        (0..rounds).for_each(|round| drop(fs::remove_file(sign(rank, round))));
        world.barrier().unwrap();
        for round in 0..rounds {
            let (length, tag) = (LENGTHS[round % LENGTHS.len()], Tag(1));
            if rank >= EACH {
                thread::sleep(if round % 2 == 0 { pause } else { Duration::ZERO });
                let got = world.receive_vec::<u8>(far, tag).unwrap().0;
                assert!(got == vec![round as u8; length], "{length} B");
                fs::write(sign(rank, round), "").unwrap();
                continue;
            }
            let sent = vec![round as u8; length];
            match round / LENGTHS.len() {
                0 => world.send(&sent, far, tag),
                _ => world.scope(|scope| scope.send(&sent, far, tag)?.wait().map(drop)),
            }
            .unwrap();
            // From here on it calls nothing.
            let begun = Instant::now();
            while !sign(far, round).exists() {
                assert!(
                    begun.elapsed() < Duration::from_secs(20),
                    "{length} B stay at rank {rank}"
                );
                thread::sleep(Duration::from_millis(1));
            }
        }
        world.barrier().unwrap();
        (0..rounds).for_each(|round| drop(fs::remove_file(sign(rank, round))));
    });
}

#[test]
fn a_message_that_is_too_long_is_cut_and_told() {
    on_hosts("messages::a_message_that_is_too_long_is_cut_and_told", |job| {
        let world = job.world();
        let far = (world.rank() + EACH) % RANKS;
        for length in [100, 100_000] {
            let mut into = [0u8; 10];
            let sent = vec![7u8; length];
            let cut = world.scope(|scope| {
                let send = scope.send(&sent, far, Tag(1))?;
                let received = world.receive_into(&mut into, far, Tag(1));
                send.wait()?;
                received
            });
            let kind = cut.unwrap_err().kind;
            let named = format!("from rank {far} on n{} with tag 1", far / EACH + 1);
            assert!(kind.to_string().contains(&named), "{kind}");
            let ErrorKind::Truncated { rank, message_bytes, .. } = kind else { panic!("{kind}") };
            assert_eq!((rank, message_bytes), (Some(far), length as u64));
            assert_eq!(into, [7; 10]);
        }
    });
}

#[test]
fn loans_and_layouts_arrive_as_data() {
    on_hosts("messages::loans_and_layouts_arrive_as_data", |job| {
        let world = job.world();
        let (rank, far) = (world.rank(), (world.rank() + EACH) % RANKS);
        for count in [3, 5_000, 300_000] {
            let mut loan = job.loan::<u64>(count).unwrap();
            loan.fill(rank as u64 + 7);
            if rank < EACH {
                world.send_loan(loan, far, Tag(1)).unwrap();
            }
            let (loaned, status) = match rank < EACH {
                true => world.receive_loan::<u64>(far, Tag(2)).unwrap(),
                false => {
                    let received = world.receive_loan::<u64>(far, Tag(1)).unwrap();
                    let mut loan = job.loan::<u64>(count).unwrap();
                    loan.fill(rank as u64 + 7);
                    world.send_loan(loan, far, Tag(2)).unwrap();
                    received
                }
            };
            assert_eq!((loaned.len(), status.rank()), (count, far));
            assert_eq!([loaned.get(0), loaned.get(count - 1)], [Some(far as u64 + 7); 2]);
        }
    });
}
