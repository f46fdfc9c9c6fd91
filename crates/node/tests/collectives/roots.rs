//! Broadcasts and scatters of long data whose root is another member each time.

use std::time::Duration;

use landeck::{ThreadMode, World};

use crate::support::in_job;

const MEMBERS: usize = 5;
/// Words of a broadcast, around 256 KiB and 2 MiB.
const BROADCAST: [usize; 5] = [32_767, 32_768, 100_003, 262_144, 262_145];
/// Words of one member's block of a scatter.
const SCATTERED: [usize; 3] = [5_000, 20_001, 60_000];

#[test]
fn deposits_of_roots_that_take_turns_arrive() {
    let name = "roots::deposits_of_roots_that_take_turns_arrive";
    in_job(MEMBERS, name, ThreadMode::Single, |job| {
        let world = job.world();
        let other = world.duplicate().unwrap();
        for turn in 0..40 {
            // Roots run ahead of who is behind, as far as they may.
            if turn % 8 == 3 && turn / 8 == world.rank() {
                std::thread::sleep(Duration::from_millis(20));
            }
            broadcast(&world, turn);
            scatter(&world, turn);
            if turn % 10 == 9 {
                broadcast(&other, turn);
                world.barrier().unwrap();
            }
        }
    });
}

#[test]
fn several_at_once_end() {
    let name = "roots::several_at_once_end";
    in_job(MEMBERS, name, ThreadMode::Single, |job| {
        let world = job.world();
        for turn in 0..4 {
            several_at_once(&world, turn * 7);
        }
    });
}

fn value(turn: usize, to: usize, place: usize) -> u64 {
    (turn as u64) << 40 ^ (to as u64) << 32 ^ (place as u64).wrapping_mul(0x9e37_79b9)
}

fn values(turn: usize, to: usize, length: usize) -> Vec<u64> {
    (0..length).map(|place| value(turn, to, place)).collect()
}

fn are_right(turn: usize, to: usize, words: &[u64]) -> bool {
    words.iter().enumerate().all(|(place, &word)| word == value(turn, to, place))
}

fn own_or_zero(world: &World, turn: usize, length: usize) -> Vec<u64> {
    if turn % world.size() == world.rank() { values(turn, 0, length) } else { vec![0; length] }
}

fn broadcast(world: &World, turn: usize) {
    let mut words = own_or_zero(world, turn, BROADCAST[turn % BROADCAST.len()]);
    world.broadcast(&mut words, turn % world.size()).unwrap();
    assert!(are_right(turn, 0, &words), "broadcast {turn}");
}

fn scatter(world: &World, turn: usize) {
    let (root, length) = (turn * 3 % world.size(), SCATTERED[turn % SCATTERED.len()]);
    let all = match root == world.rank() {
        true => (0..world.size()).flat_map(|to| values(turn, to, length)).collect(),
        false => Vec::new(),
    };
    let mut own = vec![0; length];
    world.scatter(&all, &mut own, root).unwrap();
    assert!(are_right(turn, world.rank(), &own), "scatter {turn}");
}

fn several_at_once(world: &World, first: usize) {
    let turns = first..first + 7;
    let mut all: Vec<Vec<u64>> =
        turns.clone().map(|turn| own_or_zero(world, turn, 40_000)).collect();
    world
        .scope(|scope| {
            let mut begun = Vec::new();
            for (turn, words) in turns.clone().zip(&mut all) {
                begun.push(scope.broadcast(words, turn % world.size())?);
            }
            begun.into_iter().rev().try_for_each(|request| request.wait().map(drop))
        })
        .unwrap();
    assert!(turns.zip(&all).all(|(turn, words)| are_right(turn, 0, words)), "from {first} on");
}
