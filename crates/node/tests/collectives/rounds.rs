//! Large data with more members than processors (oversubscribed): operations that use the board in
//! rounds, or bypass the caches. With a processor for each member they take one round, and all of
//! this holds as well.

use landeck::{ErrorKind, Sum, ThreadMode, World};

use crate::support::in_job;

const MEMBERS: usize = 8;
/// More than a board has lines for the rounds of.
const MANY: usize = 20;
/// Words of one member, or of one block. Neither is a multiple of a cache line.
const TERMS: usize = (1 << 20) / 8 + 5;
const BLOCK: usize = (160 << 10) / 8 + 3;
/// All members together gather more than a cache has room for.
const GATHERED: usize = (800 << 10) / 8 + 1;

#[test]
fn much_data_arrive_where_they_belong() {
    let name = "rounds::much_data_arrive_where_they_belong";
    in_job(MEMBERS, name, ThreadMode::Single, |job| {
        let world = job.world();
        for turn in 0..6 {
            reduce(&world, turn);
            exchange(&world, turn);
            // Short ones in between have the numbers that come after the rounds.
            assert_eq!(world.all_reduce(1u64, Sum).unwrap(), MEMBERS as u64);
            gather(&world, turn);
            several_at_once(&world, turn);
        }
    });
}

fn value(turn: u64, from: usize, to: usize, place: usize) -> u64 {
    turn ^ ((from as u64) << 40) ^ ((to as u64) << 20) ^ (place as u64).wrapping_mul(31)
}

fn values(turn: u64, from: usize, to: usize, length: usize) -> impl Iterator<Item = u64> {
    (0..length).map(move |place| value(turn, from, to, place))
}

fn terms(turn: u64, from: usize) -> Vec<u64> {
    values(turn, from, 0, TERMS).collect()
}

fn sum_of(turn: u64, size: usize, place: usize) -> u64 {
    (0..size).fold(0, |sum: u64, from| sum.wrapping_add(value(turn, from, 0, place)))
}

fn reduce(world: &World, turn: u64) {
    let own = terms(turn, world.rank());
    let mut sums = vec![0; TERMS];
    world.all_reduce_into(&own, &mut sums, Sum).unwrap();
    assert!((0..TERMS).all(|place| sums[place] == sum_of(turn, world.size(), place)), "{turn}");
}

/// The blocks that a member sends to all members.
fn blocks_of(turn: u64, from: usize, size: usize, length: usize) -> Vec<u64> {
    (0..size).flat_map(|to| values(turn, from, to, length)).collect()
}

fn are_all_for(turn: u64, own: usize, blocks: &[u64], length: usize) -> bool {
    let is_right =
        |(from, block): (usize, &[u64])| block.iter().copied().eq(values(turn, from, own, length));
    blocks.chunks(length).enumerate().all(is_right)
}

fn exchange(world: &World, turn: u64) {
    exchange_of(world, turn, BLOCK);
}

/// Exchanges blocks of `length` words between all members, and checks them.
fn exchange_of(world: &World, turn: u64, length: usize) {
    let (rank, size) = (world.rank(), world.size());
    let mut incoming = vec![0; length * size];
    world.all_to_all(&blocks_of(turn, rank, size, length), &mut incoming).unwrap();
    assert!(are_all_for(turn, rank, &incoming, length), "turn {turn}, blocks of {length} words");
}

fn gather(world: &World, turn: u64) {
    let own: Vec<u64> = values(turn, world.rank(), 0, GATHERED).collect();
    let mut all = vec![0; GATHERED * world.size()];
    world.all_gather(&own, &mut all).unwrap();
    let is_right =
        |(from, block): (usize, &[u64])| block.iter().copied().eq(values(turn, from, 0, GATHERED));
    assert!(all.chunks(GATHERED).enumerate().all(is_right), "{turn}");
}

/// Each with rounds of its own, in any order.
fn several_at_once(world: &World, turn: u64) {
    let (rank, size) = (world.rank(), world.size());
    let (own, blocks) = (terms(turn, rank), blocks_of(turn, rank, size, BLOCK));
    let (mut sums, mut incoming) = (vec![0; TERMS], vec![0; BLOCK * size]);
    world
        .scope(|scope| {
            let sum = scope.all_reduce_into(&own, &mut sums, Sum)?;
            let exchanged = scope.all_to_all(&blocks, &mut incoming)?;
            scope.barrier()?.wait()?;
            exchanged.wait()?;
            sum.wait().map(drop)
        })
        .unwrap();
    assert!((0..TERMS).all(|place| sums[place] == sum_of(turn, size, place)), "{turn}");
    assert!(are_all_for(turn, rank, &incoming, BLOCK), "{turn}");
}

/// Words of blocks that go one by one from hand to hand, and of some beside them.
const HANDED: [usize; 5] = [4_095, 4_096, 6_001, 8_192, 8_193];

#[test]
fn blocks_of_an_exchange_go_from_hand_to_hand() {
    let name = "rounds::blocks_of_an_exchange_go_from_hand_to_hand";
    in_job(MEMBERS, name, ThreadMode::Single, |job| {
        let world = job.world();
        // In more turns than there are cells each of them has been everywhere.
        for turn in 0..12 {
            for length in HANDED {
                exchange_of(&world, turn, length);
                assert_eq!(world.all_reduce(1u64, Sum).unwrap(), MEMBERS as u64);
            }
            two_exchanges_at_once(&world, turn);
        }
        // A root that does not change has all cells soon; and other groups have none.
        let mut all = vec![0; 8_192 * MEMBERS];
        for _ in 0..20 {
            world.gather(&[7u64; 8_192], &mut all, 2).unwrap();
        }
        exchange_of(&world, 99, 8_192);
        exchange_of(&world.duplicate().unwrap(), 100, 8_192);
    });
}

/// They have numbers of the board in turns, and lay down ahead of each other.
fn two_exchanges_at_once(world: &World, turn: u64) {
    let (rank, size) = (world.rank(), world.size());
    let [first, second] = [8_192, 5_000];
    let own = [first, second].map(|length| blocks_of(turn, rank, size, length));
    let (mut one, mut other) = (vec![0; first * size], vec![0; second * size]);
    world
        .scope(|scope| {
            let begun = scope.all_to_all(&own[0], &mut one)?;
            scope.all_to_all(&own[1], &mut other)?.wait()?;
            begun.wait().map(drop)
        })
        .unwrap();
    assert!(are_all_for(turn, rank, &one, first), "{turn}");
    assert!(are_all_for(turn, rank, &other, second), "{turn}");
}

#[test]
fn an_exchange_in_more_rounds_than_a_board_has_lines_ends() {
    let name = "rounds::an_exchange_in_more_rounds_than_a_board_has_lines_ends";
    in_job(MANY, name, ThreadMode::Single, |job| {
        let world = job.world();
        for turn in 0..3 {
            exchange_of(&world, turn, 8_192);
            exchange_of(&world, turn, 4_096);
        }
    });
}

/// Each finds the wrong block, in whatever round, and nobody blames who has found it before; the numbers go on.
#[test]
fn other_lengths_of_blocks_are_told_to_all_and_the_group_goes_on() {
    let name = "rounds::other_lengths_of_blocks_are_told_to_all_and_the_group_goes_on";
    in_job(MANY, name, ThreadMode::Single, |job| {
        let world = job.world();
        for turn in 0..4 {
            let odd = turn as usize * 5;
            let length = if world.rank() == odd { 5_000 } else { 8_192 };
            let blocks = vec![1u64; length * MANY];
            let error = world.all_to_all(&blocks, &mut blocks.clone()).unwrap_err();
            let ErrorKind::LengthMismatch { rank, .. } = error.kind else { panic!("{error}") };
            assert!(rank == odd || world.rank() == odd, "{error}");
            assert_eq!(world.all_reduce(1u64, Sum).unwrap(), MANY as u64);
            exchange_of(&world, turn, 8_192);
        }
    });
}

/// Members whose data differ in length would go in different rounds: all are told, and nobody takes
/// a part of another round for its own.
#[test]
fn other_lengths_are_told_and_never_taken_for_other_rounds() {
    let name = "rounds::other_lengths_are_told_and_never_taken_for_other_rounds";
    in_job(MEMBERS, name, ThreadMode::Single, |job| {
        let world = job.world().duplicate().unwrap();
        let factor = if world.rank() == 3 { 2 } else { 1 };
        let error = world.all_reduce_in_place(&mut vec![1u64; factor * TERMS], Sum).unwrap_err();
        assert!(!matches!(error.kind, ErrorKind::PeerFailed { .. }), "{error}");
        // Where the group goes on, so do its numbers.
        if world.barrier().is_ok() {
            assert_eq!(world.all_reduce(1u64, Sum).unwrap(), MEMBERS as u64);
        }
        job.world().barrier().unwrap();
    });
}

/// Lengths that two members divide in no, one and several rounds, in cells and beyond them; with halves that are
/// alike and not, and places that a cell's end cuts.
#[test]
fn halves_that_two_members_combine_for_each_other_come_back() {
    let name = "rounds::halves_that_two_members_combine_for_each_other_come_back";
    in_job(2, name, ThreadMode::Single, |job| {
        let world = job.world();
        // More turns than there are cells: each has come back.
        for turn in 0..24 {
            for bytes in [32 << 10, 64 << 10, 128 << 10, 136 << 10, 250 << 10, 256 << 10, 1 << 20] {
                for length in [bytes / 8, bytes / 8 - 1] {
                    halves(&world, turn, length);
                }
            }
            assert_eq!(world.all_reduce(1u64, Sum).unwrap(), 2);
            two_at_once(&world, turn);
        }
        let pair = world.duplicate().unwrap();
        halves(&pair, 99, TERMS); // It has no cells.
    });
}

fn halves(world: &World, turn: u64, length: usize) {
    let own: Vec<u64> = values(turn, world.rank(), 0, length).collect();
    let mut sums = vec![0; length];
    world.all_reduce_into(&own, &mut sums, Sum).unwrap();
    let is_right = |place: usize| sums[place] == sum_of(turn, 2, place);
    assert!((0..length).all(is_right), "turn {turn}, {length} words");
    let mut in_place = own;
    world.all_reduce_in_place(&mut in_place, Sum).unwrap();
    assert_eq!(in_place, sums, "turn {turn}, {length} words in place");
}

/// Both have cells that are to come back.
fn two_at_once(world: &World, turn: u64) {
    let [long, short] = [30 << 10, 8 << 10];
    let own: Vec<u64> = values(turn, world.rank(), 0, long).collect();
    let (mut first, mut second) = (vec![0; long], vec![0; short]);
    world
        .scope(|scope| {
            let first = scope.all_reduce_into(&own, &mut first, Sum)?;
            scope.all_reduce_into(&own[..short], &mut second, Sum)?.wait()?;
            first.wait().map(drop)
        })
        .unwrap();
    assert!((0..long).all(|place| first[place] == sum_of(turn, 2, place)), "{turn}");
    assert_eq!(second, first[..short]);
}
