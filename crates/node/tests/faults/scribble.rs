//! A process that overwrites random words of the segment: the others get errors or wrong data, and
//! never crash, fail an assertion of ours, or hang in a call that has a limit.

use std::fs::File;
use std::os::fd::AsFd;
use std::process::Output;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use landeck::unstable::JobInternals;
use landeck::unstable::board::{LINES_BYTES, SHARED_BYTES};
use landeck::unstable::collectives::{BoardStyle, Way};
use landeck::unstable::memory::SegmentPlan;
use landeck::{Any, Job, Options, Result, Sum, Tag, ThreadMode, User, World};
use landeck_testing::{Random, Trail, Watchdog, seed};

use crate::support::{GONE_WITHIN, RUN_MAX, is_member, is_soak, job_of, text};

pub(crate) const PROCESSES: usize = 4;
/// The process that scribbles.
pub(crate) const SCRIBBLER: usize = 3;
/// How long one job is scribbled upon: what is lost to it is lost for the job's life.
pub(crate) const EPISODE: Duration = Duration::from_millis(100);
/// How long a job takes for it on the average, with its start, where the machine has a lot to do.
pub(crate) const EPISODE_MAX: Duration = Duration::from_secs(10);
pub(crate) const EPISODES: u32 = 20;
pub(crate) const EPISODES_SOAK: u32 = 600;
/// No call with a limit may take longer.
const CALL_MAX: Duration = Duration::from_secs(50);
/// The exit code of a process in which one did.
const HANGS: i32 = 86;
/// The line of a process that came to its end.
pub(crate) const WHOLE: &str = "came to its end";
/// The start of the line of one that could not join.
const REFUSED: &str = "Error: ";

pub(crate) const SEED: &str = "LANDECK_TEST_SCRIBBLES";
/// Set when the scribbles begin before the others join.
const AT_ONCE: &str = "LANDECK_TEST_AT_ONCE";

#[test]
fn scribbles_under_traffic_crash_nobody() {
    if is_member() {
        return take_part();
    }
    let episodes = if is_soak() { EPISODES_SOAK } else { EPISODES };
    let _watchdog = Watchdog::start(RUN_MAX + EPISODE_MAX * episodes);
    let mut random = Random::new(seed());
    for number in 0..episodes {
        let name = "scribble::scribbles_under_traffic_crash_nobody";
        let mut command = job_of(PROCESSES, name, options(&mut random));
        command.env(SEED, random.bits().to_string());
        if number % 4 == 3 {
            command.env(AT_ONCE, "1");
        }
        let trail = Trail::new();
        let ended = trail.run(&mut command, RUN_MAX);
        trail.assert_gone(GONE_WITHIN);
        judge(&ended, number % 4 == 3);
    }
}

/// Stray writes under collective operations, to the words of boards and the data on them, crash no
/// other process. The scribbler takes part until it is gone; then no member waits for it.
#[test]
fn scribbles_under_collective_operations_crash_nobody() {
    if is_member() {
        return take_part_together();
    }
    let episodes = if is_soak() { EPISODES_SOAK } else { EPISODES };
    let _watchdog = Watchdog::start(RUN_MAX + EPISODE_MAX * episodes);
    let mut random = Random::new(seed());
    for _ in 0..episodes {
        let name = "scribble::scribbles_under_collective_operations_crash_nobody";
        let mut command = job_of(PROCESSES, name, options(&mut random));
        let seed = random.bits();
        command.env(SEED, seed.to_string());
        let trail = Trail::new();
        let ended = trail.run(&mut command, RUN_MAX);
        trail.assert_gone(GONE_WITHIN);
        println!("seed {seed}: {}", text(&ended));
        judge(&ended, false);
    }
}

/// Options of the launcher. Words are overwritten in the file itself, which no mapping keeps from
/// anybody: so a hardened job must stand as much as another one.
pub(crate) fn options(random: &mut Random) -> &'static [&'static str] {
    let options = &["--on-failure", "notify", "--harden"];
    if random.once_in(3) { options } else { &options[..2] }
}

/// The heap of a slot, or, in a hardened job, as often the control lines of its blocks.
pub(crate) fn heap_of(plan: &SegmentPlan, slot: u32, random: &mut Random) -> u64 {
    if plan.is_hardened && random.once_in(2) { plan.controls(slot) } else { plan.heap(slot) }
}

pub(crate) fn judge(ended: &Output, at_once: bool) {
    let told = text(ended);
    // The status that the launcher makes of it may be scribbled, its own end may not.
    assert!(ended.status.code().is_some(), "the launcher itself: {told}");
    for wrong in ["panicked", "by signal", "guardian of the job was", "exit code 86"] {
        assert!(!told.contains(wrong), "{wrong}: {told}");
    }
    // The scribbler's own record may say by now that its process ended the job, as any process may: all are ended.
    if told.contains(") ended the job with exit code ") {
        return;
    }
    let count = |lines: &[u8], end: &str| {
        String::from_utf8_lossy(lines).lines().filter(|line| line.starts_with(end)).count()
    };
    let whole = count(&ended.stdout, WHOLE);
    // A process that finds no segment where it should be is told so and ends.
    let refused = if at_once { count(&ended.stderr, REFUSED) } else { 0 };
    assert_eq!(whole + refused, PROCESSES - 1, "{told}");
}

fn take_part() {
    let rank: usize = std::env::var("LANDECK_SLOT").unwrap().parse().unwrap();
    let mut random = Random::new(std::env::var(SEED).unwrap().parse().unwrap());
    (0..rank).for_each(|_| random = Random::new(random.bits()));
    let at_once = std::env::var_os(AT_ONCE).is_some();
    if rank == SCRIBBLER && at_once {
        // What is inherited is reached without joining.
        let number = std::env::var("LANDECK_SEGMENT").unwrap();
        let path = format!("/proc/self/fd/{number}");
        let file = File::options().read(true).write(true).open(path).unwrap();
        scribble(&file, &SegmentPlan::new(0, PROCESSES as u32), &mut random, &ANYWHERE);
        std::process::exit(0);
    }
    let threads = if random.once_in(2) { ThreadMode::Single } else { ThreadMode::Multiple };
    let job = match Job::join_with(Options { threads, ..Options::default() }) {
        Ok(job) => job,
        Err(error) => {
            eprintln!("{REFUSED}{error}");
            std::process::exit(1)
        }
    };
    if !at_once {
        meet(&job.world()).unwrap();
    }
    if rank == SCRIBBLER {
        let segment = job.segment();
        scribble(segment.descriptor().unwrap(), segment.plan(), &mut random, &ANYWHERE);
    } else {
        talk(&job, &mut random);
        println!("{WHOLE}");
    }
    // To leave means to wait for what is lost: end as a program does that has given up.
    std::process::exit(0);
}

fn take_part_together() {
    // All draw the same operations.
    let mut random = Random::new(std::env::var(SEED).unwrap().parse().unwrap());
    let threads = if random.once_in(2) { ThreadMode::Single } else { ThreadMode::Multiple };
    let job = Job::join_with(Options { threads, ..Options::default() }).unwrap();
    let first = job.world();
    first.barrier().unwrap();
    let world = if random.once_in(2) { first.duplicate().unwrap() } else { first.clone() };
    // Nothing is overwritten before everybody has the world: one that cannot be made is no world.
    meet(&first).unwrap();
    let mut scribbles = Random::new(random.bits());
    if world.rank() == SCRIBBLER {
        let segment = job.segment().clone();
        thread::spawn(move || {
            scribble(segment.descriptor().unwrap(), segment.plan(), &mut scribbles, &BOARDS);
            std::process::exit(0)
        });
    }
    let beats = watch_calls();
    let (mut good, mut bad) = (0u64, 0u64);
    let is_gone = || job.segment().slot_record(SCRIBBLER as u32).state.is_gone();
    while !is_gone() {
        beats.fetch_add(1, Ordering::Relaxed);
        match call_together(&world, &mut random) {
            Ok(()) => good += 1,
            Err(_) => bad += 1,
        }
    }
    println!("{good} operations went well, {bad} did not");
    println!("{WHOLE}");
    std::process::exit(0);
}

/// One collective operation, drawn alike everywhere; whatever data and error it ends with.
fn call_together(world: &World, random: &mut Random) -> Result<()> {
    let styles = [BoardStyle::Each, BoardStyle::Divided, BoardStyle::Together, BoardStyle::Told];
    let way = Way::Board(*random.pick(&styles));
    let world = if random.once_in(2) { world.via(way) } else { world.clone() };
    let (size, rank) = (world.size(), world.rank());
    let length = *random.pick(&[0, 1, 2, 6, 100, 1_000, 5_000, 40_000]);
    let root = random.below(size as u64) as usize;
    let parts: Vec<_> = (0..size).map(|at| at * length..at * length + length / (at + 1)).collect();
    let (mut one, mut other) = (vec![1u64; length * size], vec![0; length * size]);
    match random.below(14) {
        0 => world.barrier(),
        1 => world.broadcast(&mut one, root),
        2 => world.gather(&one[..length], &mut other, root),
        3 => world.scatter(&one, &mut other[..length], root),
        4 => world.all_gather(&one[..length], &mut other),
        5 => world.all_to_all(&one, &mut other),
        6 => world.reduce(&one, &mut other, Sum, root),
        7 => world.all_reduce_in_place(&mut one, Sum),
        8 => world.all_reduce_in_place(&mut one, User::ordered(|left: u64, right| left ^ right)),
        9 => world.reduce_scatter_block(&one, &mut other[..length], Sum),
        10 => world.scan(&one, &mut other, Sum),
        11 => world.all_gather_varying(&one[..parts[rank].len()], &mut other, &parts),
        12 => world.all_to_all_varying(&one, &parts, &mut other, &vec![parts[rank].clone(); size]),
        _ => world.scope(|scope| {
            let sum = scope.all_reduce_in_place(&mut one, Sum)?;
            let broadcast = scope.broadcast(&mut other, root);
            sum.wait()?;
            broadcast?.wait().map(drop)
        }),
    }
}

/// The scribbler waits until everybody is there.
fn meet(world: &World) -> Result<()> {
    if world.rank() != SCRIBBLER {
        return world.send(&[0u8], SCRIBBLER, Tag(0));
    }
    // By name: who has sent and is done with all by now, while others begin, is not waited for.
    let others = (0..PROCESSES).filter(|&rank| rank != SCRIBBLER);
    others.into_iter().try_for_each(|rank| world.receive::<u8>(rank, Tag(0)).map(drop))
}

/// Where words are overwritten, and how fast.
struct Aim {
    draw_place: fn(&SegmentPlan, &mut Random) -> u64,
    /// Powers of two of words at once.
    bursts: u64,
    pause_max_us: u64,
}

const ANYWHERE: Aim = Aim { draw_place, bursts: 8, pause_max_us: 500 };
/// Few: a world whose members are out of step does nothing more.
const BOARDS: Aim = Aim { draw_place: draw_board_place, bursts: 3, pause_max_us: 5_000 };

/// Overwrites words for an episode, few or many of them: few leave others alive to be met later.
fn scribble(file: impl AsFd, plan: &SegmentPlan, random: &mut Random, aim: &Aim) {
    let began = Instant::now();
    let mut count = 0u64;
    let at_once = 1 << random.below(aim.bursts);
    let pause = Duration::from_micros(random.below(aim.pause_max_us));
    while began.elapsed() < EPISODE {
        thread::sleep(pause);
        for _ in 0..at_once {
            let place = (aim.draw_place)(plan, random);
            let mut word = [0; 8];
            let _ = rustix::io::pread(&file, &mut word, place);
            let word = draw_word(u64::from_ne_bytes(word), random);
            let written = rustix::io::pwrite(&file, &word.to_ne_bytes(), place);
            assert_eq!(written, Ok(8), "at {place}");
            count += 1;
        }
    }
    println!("{count} words were overwritten");
}

/// Most often where somebody looks, sometimes anywhere at all.
fn draw_place(plan: &SegmentPlan, random: &mut Random) -> u64 {
    let slot = random.below(PROCESSES as u64 + 1) as u32;
    let (start, bytes) = match random.below(64) {
        0 => (0, plan.own_page(0)), // header and membership
        1..5 => (plan.own_page(slot), 4_096),
        5..8 => (plan.shared_page(slot), 4_096),
        8..24 => (plan.mailbox(slot), plan.ring(slot, 0) - plan.mailbox(slot)),
        24..44 => (plan.ring(slot, random.below(4)), 16_384),
        44..54 => (plan.ring(slot, 0), plan.ring(slot, 5) - plan.ring(slot, 0)),
        54..63 => (heap_of(plan, slot, random), 2 << 20),
        _ if random.once_in(50) => (0, plan.total_bytes()),
        _ => (heap_of(plan, slot, random), 4_096),
    };
    start + random.below(bytes / 8) * 8
}

/// Lines of members, shared words of boards, and blocks.
fn draw_board_place(plan: &SegmentPlan, random: &mut Random) -> u64 {
    let slot = random.below(PROCESSES as u64) as u32;
    let (start, bytes) = match random.below(4) {
        0 | 1 => (plan.world_lines(slot), LINES_BYTES),
        2 => (plan.board(0, random.below(3)), SHARED_BYTES),
        _ => (heap_of(plan, slot, random), 64 << 10 << (2 * random.below(4))),
    };
    start + random.below(bytes / 8) * 8
}

pub(crate) fn draw_word(old: u64, random: &mut Random) -> u64 {
    match random.below(8) {
        0 => random.bits(),
        1 => random.below(16),
        2 => 0,
        3 => u64::MAX,
        4 => old.wrapping_add(1),
        5 => old.wrapping_sub(1),
        6 => old ^ random.bits() << 32,
        _ => old ^ 1 << random.below(64),
    }
}

/// Calls of every kind that ends by itself, for an episode and a little more.
fn talk(job: &Job, random: &mut Random) {
    let beats = watch_calls();
    let world = job.world();
    let began = Instant::now();
    let (mut good, mut bad) = (0u64, 0u64);
    while began.elapsed() < EPISODE + EPISODE / 4 {
        beats.fetch_add(1, Ordering::Relaxed);
        match call(job, &world, random) {
            Ok(()) => good += 1,
            Err(_) => bad += 1,
        }
    }
    println!("{good} calls went well, {bad} did not");
}

/// One call, or a few that belong together.
fn call(job: &Job, world: &World, random: &mut Random) -> Result<()> {
    let peer = random.below(PROCESSES as u64) as usize;
    let tag = Tag(1 + random.below(3) as u32);
    let length = *random.pick(&[1, 5, 40, 1_000, 2_000, 20_000, 60_000]);
    let time = Duration::from_micros(random.below(2_000));
    let mut into = vec![0u64; length];
    match random.below(12) {
        0..4 => world.try_send(&vec![random.bits(); length.min(2_000)], peer, tag),
        4..6 => world.receive_into_within(&mut into, peer, tag, time).map(drop),
        6..8 => world.receive_into_within(&mut into, Any, Any, time).map(drop),
        8 => match world.try_probe(Any, Any)? {
            // It is there already, unless its sender is broken.
            Some(status) => {
                let mut into = vec![0u8; status.bytes().min(1 << 20) as usize];
                world.receive_into_within(&mut into, status.rank(), status.tag(), time).map(drop)
            }
            None => job.acknowledge_failures().map(drop),
        },
        9 => {
            let mut loan = job.loan::<u64>(length)?;
            loan.fill(1);
            let message = loan.to_vec();
            drop(loan);
            world.try_send(&message[..length.min(2_000)], peer, tag)
        }
        // Given up in the middle, most of them.
        10 => world.scope(|scope| {
            let mut receive = scope.receive_into(&mut into, Any, tag)?;
            receive.test()?;
            receive.cancel()?;
            receive.test()?;
            Err(landeck::ErrorKind::WouldBlock.into())
        }),
        _ => {
            let values = vec![random.bits(); length];
            world.scope(|scope| {
                let mut send = scope.send(&values, peer, tag)?;
                for _ in 0..20 {
                    if send.test()?.is_some() {
                        return Ok(());
                    }
                }
                send.cancel()?;
                Err(landeck::ErrorKind::WouldBlock.into())
            })
        }
    }
}

/// Ends the process when no call has ended for too long. Returns where calls are counted.
pub(crate) fn watch_calls() -> &'static AtomicU64 {
    static BEATS: AtomicU64 = AtomicU64::new(0);
    thread::spawn(|| {
        let mut last = (0, Instant::now());
        loop {
            thread::sleep(CALL_MAX / 20);
            let beats = BEATS.load(Ordering::Relaxed);
            if beats != last.0 {
                last = (beats, Instant::now());
            } else if last.1.elapsed() > CALL_MAX {
                std::process::exit(HANGS);
            }
        }
    });
    &BEATS
}
