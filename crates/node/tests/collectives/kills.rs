//! kill -9 of a member in the middle of collective operations: the others learn of it, nobody
//! hangs, nobody's memory is touched afterwards.

use std::time::{Duration, Instant};

use landeck::unstable::JobInternals;
use landeck::unstable::collectives::architecture::{Butterfly, Daisy, Flat, Knomial};
use landeck::unstable::collectives::{BoardStyle, Way};
use landeck::{Any, Error, ErrorKind, Job, Sum, User, World};
use landeck_testing::{Random, Trail, Watchdog, seed};
use rustix::process::{Signal, getpid, kill_process};

use crate::support::{
    GONE_WITHIN, RUN_MAX, Survivors, is_member, is_soak, job_of, stay_until_told, text,
};

const ROUNDS: u64 = 200;
const ROUNDS_SOAK: u64 = 1_000;
const TEST: &str = "kills::a_member_killed_in_the_middle_ends_the_calls_that_need_it_and_no_others";
/// On the average.
const ROUND_MAX: Duration = Duration::from_secs(6);
const SEED: &str = "LANDECK_KILLS_SEED";
/// A member is killed so long after the first operation, at most.
const KILLED_WITHIN_US: u64 = 20_000;
/// Survivors are told of the death at the latest after this.
const TOLD_WITHIN: Duration = Duration::from_secs(60);

#[test]
fn a_member_killed_in_the_middle_ends_the_calls_that_need_it_and_no_others() {
    if is_member() {
        return take_part();
    }
    let rounds = if is_soak() { ROUNDS_SOAK } else { ROUNDS };
    let _watchdog = Watchdog::start(RUN_MAX + ROUND_MAX * rounds as u32);
    let seed = seed();
    for number in 0..rounds {
        let seed = seed.wrapping_add(number << 32);
        let processes = 2 + Random::new(seed).below(5) as usize;
        let trail = Trail::new();
        let mut command = job_of(processes, TEST, &["--on-failure", "notify"]);
        let _survivors = Survivors::of(&mut command);
        let ended = trail.run(command.env(SEED, seed.to_string()), RUN_MAX);
        let out = text(&ended);
        let survivors = out.matches("SURVIVED").count();
        assert_eq!(survivors, processes - 1, "round {number}, seed {seed}, of {processes}: {out}");
        trail.assert_gone(GONE_WITHIN);
    }
}

/// A root that is as far ahead as it may be waits for the others; one of them never comes.
#[test]
fn a_member_that_waits_for_room_on_the_board_does_not_wait_for_the_dead() {
    let name = "kills::a_member_that_waits_for_room_on_the_board_does_not_wait_for_the_dead";
    if is_member() {
        return broadcast_to_the_dead();
    }
    let _watchdog = Watchdog::start(4 * RUN_MAX);
    let trail = Trail::new();
    let mut command = job_of(3, name, &["--on-failure", "notify"]);
    let _survivors = Survivors::of(&mut command);
    let ended = trail.run(&mut command, RUN_MAX);
    let out = text(&ended);
    assert_eq!(out.matches("SURVIVED").count(), 2, "{out}");
    trail.assert_gone(GONE_WITHIN);
}

fn broadcast_to_the_dead() {
    let job = Job::join().unwrap();
    let world = job.world();
    world.barrier().unwrap();
    if world.rank() == 2 {
        // Long enough for the root to get ahead.
        std::thread::sleep(Duration::from_millis(200));
        std::process::abort();
    }
    let error = loop {
        if let Err(error) = world.broadcast(&mut [1u64], 0) {
            break error;
        }
    };
    assert!(matches!(error.kind, ErrorKind::PeerFailed { rank: Some(2), .. }), "{error}");
    stay_until_told(2);
    println!("SURVIVED");
}

fn take_part() {
    let seed: u64 = std::env::var(SEED).unwrap().parse().unwrap();
    let job = Job::join().unwrap();
    let world = job.world();
    let mut random = Random::new(seed ^ 1);
    let victim = random.below(world.size() as u64) as usize;
    let after = Duration::from_micros(random.below(KILLED_WITHIN_US));
    world.barrier().unwrap();
    if world.rank() == victim {
        std::thread::spawn(move || {
            std::thread::sleep(after);
            kill_process(getpid(), Signal::KILL)
        });
    }
    let began = Instant::now();
    let mut buffers = Buffers::default();
    let error = loop {
        assert!(began.elapsed() < TOLD_WITHIN, "nobody was told");
        if let Err(error) = one_operation(&world, &mut random, &mut buffers) {
            break error;
        }
    };
    assert!(matches!(error.kind, ErrorKind::PeerFailed { .. }), "{error}");
    stay_until_told(world.size() - 1);
    stay_untouched(&world, &mut buffers);
    // The next ones fail at once, and blame the dead.
    while job.segment().slot_record(victim as u32).state
        != landeck::unstable::memory::SlotState::Dead
    {
        assert!(began.elapsed() < TOLD_WITHIN, "the death was not noticed");
        let _ = world.try_probe(Any, Any);
    }
    match world.barrier() {
        Err(Error { kind: ErrorKind::PeerFailed { rank, .. }, .. }) => {
            assert_eq!(rank, Some(victim));
        }
        other => panic!("{other:?}"),
    }
    println!("SURVIVED");
    job.leave().unwrap();
}

#[derive(Default)]
struct Buffers {
    one: Vec<u64>,
    other: Vec<u64>,
}

/// Whatever the members draw alike.
fn one_operation(world: &World, random: &mut Random, buffers: &mut Buffers) -> Result<(), Error> {
    let ways = [
        None,
        Some(Way::by(Flat)),
        Some(Way::by(Daisy)),
        Some(Way::by(Knomial::BINOMIAL)),
        Some(Way::split_by(Butterfly)),
        Some(Way::Board(BoardStyle::Told)),
    ];
    let way = random.pick(&ways).clone();
    let world = way.map_or_else(|| world.clone(), |way| world.via(way));
    let size = world.size();
    let most = *random.pick(&[2, 100, 5_000, 8_200, 100_000]);
    let length = random.below(most) as usize;
    let root = random.below(size as u64) as usize;
    buffers.one = vec![1; length * size];
    buffers.other = vec![0; length * size];
    let (one, other) = (&mut buffers.one[..], &mut buffers.other[..]);
    match random.below(9) {
        0 => world.barrier(),
        1 => world.broadcast(one, root),
        2 => world.gather(&one[..length], other, root),
        3 => world.scatter(one, &mut other[..length], root),
        4 => world.all_gather(&one[..length], other),
        5 => world.all_to_all(one, other),
        6 => world.all_reduce_in_place(one, Sum),
        7 => world.scan(one, other, User::ordered(|left: u64, right| left.wrapping_add(right))),
        _ => world.scope(|scope| {
            let sum = scope.all_reduce_in_place(one, Sum)?;
            let broadcast = scope.broadcast(other, root)?;
            sum.wait()?;
            broadcast.wait().map(drop)
        }),
    }
}

/// After a failed call its memory is the caller's alone.
fn stay_untouched(world: &World, buffers: &mut Buffers) {
    const MARK: u64 = 0x5a5a_5a5a_5a5a_5a5a;
    for buffer in [&mut buffers.one, &mut buffers.other] {
        buffer.fill(MARK);
    }
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(10) {
        let _ = world.try_probe(Any, Any);
    }
    for buffer in [&buffers.one, &buffers.other] {
        assert!(buffer.iter().all(|&value| value == MARK), "memory was touched after the call");
    }
}
