//! Layouts and messages of more than 2 GiB between hosts.

use landeck::layout::{Family, Kind, Layout};
use landeck::{Job, Tag, World};

use crate::job::{EACH, RANKS, on_hosts};
use crate::support::{is_member, is_soak, skipped};

/// The distance between pieces of a layout whose extent no 32 bits count.
const FAR_APART: i64 = 1 << 30;
const PIECES: u64 = 4;
const PIECE: usize = 1_000;
/// A message whose length no 31 bits count.
const LONG: usize = (1 << 31) + 4_096 + 3;
/// The memory that a message of that length needs, in both processes.
const NEEDED_BYTES: u64 = 8 << 30;

fn value_at(place: usize) -> u8 {
    (place * 31 + (place >> 20)) as u8
}

/// Each process sends columns of a table to the other host, and takes theirs as rows, or the other way round.
fn columns(world: &World) {
    let far = (world.rank() + EACH) % RANKS;
    let double = Layout::element(Kind::new(Family::Float, 8).unwrap());
    for rows in [3, 700, 40_000] {
        let column = Layout::vector(rows as u64, 1, 24, &double).unwrap();
        let table: Vec<f64> = (0..3 * rows).map(|at| (at * 4 + world.rank()) as f64).collect();
        let expected = (0..rows).map(|row| (3 * row * 4 + far) as f64);
        let (mut dense, mut sparse) = (vec![0f64; rows], vec![-1f64; 3 * rows]);
        world
            .scope(|scope| {
                let sends = [1, 2].map(|tag| scope.send_layout(&table, &column, 1, far, Tag(tag)));
                let taken = scope.receive_into(&mut dense, far, Tag(1))?;
                let spread = scope.receive_layout(&mut sparse, &column, 1, far, Tag(2))?;
                assert_eq!(taken.wait()?.bytes(), 8 * rows as u64);
                spread.wait()?;
                sends.into_iter().try_for_each(|send| send?.wait().map(drop))
            })
            .unwrap();
        assert!(dense.iter().copied().eq(expected.clone()), "{rows} rows as a row");
        assert!(sparse.iter().step_by(3).copied().eq(expected), "{rows} rows as a column");
        assert!(sparse.iter().skip(1).step_by(3).all(|&value| value == -1.0), "between them");
    }
}

/// Pieces that lie a gibibyte apart, in memory that is touched only there.
fn far_apart(world: &World) {
    let byte = Layout::element(Kind::new(Family::Unsigned, 1).unwrap());
    let pieces = Layout::vector(PIECES, PIECE as u64, FAR_APART, &byte).unwrap();
    assert!(pieces.extent_bytes().unwrap() > i64::from(i32::MAX));
    let mut memory = vec![0u8; (PIECES as usize - 1) * FAR_APART as usize + PIECE];
    let place = |at: usize| at / PIECE * FAR_APART as usize + at % PIECE;
    let places = 0..PIECES as usize * PIECE;
    if world.rank() == 0 {
        places.for_each(|at| memory[place(at)] = value_at(at + 1));
        world.send_layout(&memory, &pieces, 1, EACH, Tag(3)).unwrap();
    } else {
        let status = world.receive_layout(&mut memory, &pieces, 1, 0, Tag(3)).unwrap();
        assert_eq!(status.bytes(), PIECES * PIECE as u64);
        assert!(places.clone().all(|at| memory[place(at)] == value_at(at + 1)));
        assert_eq!(memory[PIECE], 0, "behind the first piece");
    }
}

#[test]
fn layouts_arrive_as_they_lie() {
    on_hosts("long::layouts_arrive_as_they_lie", |job| {
        let world = job.world();
        columns(&world);
        if world.rank() % EACH == 0 {
            far_apart(&world);
        }
        world.barrier().unwrap();
    });
}

/// The memory that this computer has left, in bytes.
fn free_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[test]
fn a_message_of_more_than_two_gibibytes_arrives() {
    let test = "long::a_message_of_more_than_two_gibibytes_arrives";
    let send = |job: &Job| {
        let world = job.world();
        if world.rank() == 0 {
            let bytes: Vec<u8> = (0..LONG).map(value_at).collect();
            world.send(&bytes, EACH, Tag(1)).unwrap();
        } else if world.rank() == EACH {
            let mut bytes = vec![0u8; LONG];
            let status = world.receive_into(&mut bytes, 0, Tag(1)).unwrap();
            assert_eq!(status.bytes(), LONG as u64);
            assert!(bytes.iter().enumerate().all(|(at, &byte)| byte == value_at(at)));
        }
        world.barrier().unwrap();
    };
    if !is_member() {
        if !is_soak() {
            return;
        }
        if free_bytes() < NEEDED_BYTES {
            return skipped(test, "it needs 8 GiB of free memory");
        }
    }
    on_hosts(test, send);
}
