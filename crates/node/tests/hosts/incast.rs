//! Many-to-one steps between hosts, at every pace.

use std::time::Duration;

use landeck::architecture::Flat;
use landeck::{Incast, Sum, World};

use crate::job::{RANKS, on_hosts};

const PACES: [Incast; 6] = [
    Incast::None,
    Incast::Fixed(1),
    Incast::Fixed(2),
    Incast::Calibrated,
    Incast::Credit(32 << 10),
    Incast::Credit(128 << 10),
];

fn value(rank: usize, at: usize) -> u8 {
    (rank * 31 + at * 7 + at / 251) as u8
}

/// Gathers at a root, which checks every byte, and reduces.
fn gather(world: &World, bytes: usize, root: usize) {
    let (rank, size) = (world.rank(), world.size());
    let own: Vec<u8> = (0..bytes).map(|at| value(rank, at)).collect();
    let mut all = vec![0; if rank == root { bytes * size } else { 0 }];
    world.via(Flat).gather(&own, &mut all, root).unwrap();
    for (at, byte) in all.iter().enumerate() {
        assert_eq!(*byte, value(at / bytes, at % bytes), "byte {at} of {bytes} each");
    }
    let words = vec![rank as u64; bytes / 8];
    let mut sums = vec![0; if rank == root { bytes / 8 } else { 0 }];
    world.via(Flat).reduce(&words, &mut sums, Sum, root).unwrap();
    let sum = (size * (size - 1) / 2) as u64;
    assert!(sums.iter().all(|found| *found == sum));
}

#[test]
fn gathers_of_every_length_arrive_at_every_pace() {
    on_hosts("incast::gathers_of_every_length_arrive_at_every_pace", |job| {
        let world = job.world();
        for pace in PACES {
            world.set_incast(pace).unwrap();
            for bytes in [8, 5_000, 40_000, 65_536, 80_000, 800_000, 100_001] {
                (0..RANKS).for_each(|root| gather(&world, bytes, root));
            }
        }
        // The calibration tries each number of senders some times, and then stays with one.
        world.set_incast(Incast::Calibrated).unwrap();
        (0..24).for_each(|_| gather(&world, 100_000, 0));
    });
}

#[test]
fn a_member_that_computes_keeps_no_other_waiting() {
    on_hosts("incast::a_member_that_computes_keeps_no_other_waiting", |job| {
        let world = job.world();
        world.set_incast(Incast::Credit(32 << 10)).unwrap();
        let own = vec![world.rank() as u8; 1 << 20];
        world.barrier().unwrap();
        if world.rank() == 0 {
            let mut all = vec![0; own.len() * RANKS];
            world.via(Flat).gather(&own, &mut all, 0).unwrap();
            assert!((0..RANKS).all(|rank| all[(rank << 20) + 77] == rank as u8));
        } else {
            let flat = world.via(Flat);
            flat.scope(|scope| {
                let request = scope.gather(&own, &mut [], 0)?;
                if world.rank() == 2 {
                    // It has offered its data, and is granted some while it does not look.
                    std::thread::sleep(Duration::from_millis(400));
                }
                request.wait().map(drop)
            })
            .unwrap();
        }
    });
}
