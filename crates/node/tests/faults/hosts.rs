//! Worlds of processes of two jobs that share no memory, as on two hosts: connected by TCP, each
//! process of the one with each of the other. They agree, revoke and shrink as on one host.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use landeck::unstable::JobInternals;
use landeck::unstable::tcp::{Tcp, Token};
use landeck::{Error, ErrorKind, Job, Peer, Sum, Tag, World};
use landeck_testing::{Trail, Watchdog, seed};

use crate::agreement::{Belief, arm, next_world};
use crate::played_daemon::PlayedDaemon;
use crate::support::{
    GONE_WITHIN, RUN_MAX, is_member, is_soak, kill_myself, seed_of_job, seeded_job_of, text,
};

/// Processes of each job.
const EACH: usize = 3;
const BOTH: usize = 2 * EACH;
/// Runs of two jobs, with five kills each.
const RUNS: u64 = 12;
const RUNS_SOAK: u64 = 200;
/// On the average.
const RUN_USUAL_MAX: Duration = Duration::from_secs(20);
/// Operations in which all meet, after which all have found out who is out of step.
const MEETINGS: u32 = 20;
/// How long the two jobs may take to find each other.
const CONNECT_TIME: Duration = Duration::from_secs(100);
/// The context of the world of all.
const CONTEXT: u32 = 1 << 31 | 7;

/// Numbers of groups that the arbiter has leased to the two hosts.
const NUMBERS: [std::ops::Range<u32>; 2] = [1..1_000_000, 1_000_000..2_000_000];
/// Groups that one host has made before the other one makes any.
const AHEAD: usize = 10;

const SIDE: &str = "LANDECK_TEST_SIDE";
const SECRET: &str = "LANDECK_TEST_SECRET";
const MEETING: &str = "LANDECK_TEST_MEETING";
const DONE: &str = "survivor done";

/// Runs two jobs that find each other, to their ends.
fn run_both(test: &str, seed: u64) -> [Output; 2] {
    let trail = Trail::new();
    let meeting = Meeting::new(seed);
    let secret = Token::random().unwrap().to_secret_text();
    let jobs = ["near", "far"].map(|side| {
        let mut command = seeded_job_of(EACH, test, seed);
        command.env(SIDE, side).env(SECRET, &secret).env(MEETING, &meeting.0);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        trail.spawn(&mut command)
    });
    let ended = jobs.map(|job| trail.finish(job, RUN_MAX));
    for job in &ended {
        assert!(
            !text(job).contains("panicked"),
            "seed {seed}: {} {}",
            text(&ended[0]),
            text(&ended[1])
        );
    }
    trail.assert_gone(GONE_WITHIN);
    ended
}

/// The world of all processes of both jobs, first the near ones.
fn world_of_both(job: &Job) -> World {
    if job.slot() == 0 {
        let is_near = std::env::var(SIDE).unwrap() == "near";
        job.segment().begin_group_numbers(NUMBERS[usize::from(is_near)].clone());
    }
    let first = job.first_far_peer().0;
    let others: Vec<Peer> = (0..EACH as u32).map(|slot| Peer(first + slot)).collect();
    let own: Vec<Peer> = (0..EACH as u32).map(Peer).collect();
    let secret = std::env::var(SECRET).unwrap().parse().unwrap();
    let number = move |slot: u32| Some(Peer(first + slot));
    let mut network = Tcp::new(job.process(), secret, move |it| number(it.slot.0)).unwrap();
    let meeting = Meeting(std::env::var_os(MEETING).unwrap().into());
    let members = if std::env::var(SIDE).unwrap() == "near" {
        let address = network.listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        others.iter().for_each(|&peer| network.expect(peer, CONNECT_TIME).unwrap());
        meeting.publish(job.slot(), address);
        [&own[..], &others].concat()
    } else {
        for (slot, &peer) in (0..).zip(&others) {
            network.connect(meeting.find(slot), peer, CONNECT_TIME).unwrap();
        }
        [&others[..], &own].concat()
    };
    std::mem::forget(meeting);
    let network = PlayedDaemon::new(network, job.segment(), &others);
    job.set_network(Box::new(network)).unwrap();
    job.world_of(CONTEXT, &members).unwrap()
}

#[test]
fn those_who_live_agree_across_hosts() {
    if is_member() {
        return agree_until_one_is_left();
    }
    let runs = if is_soak() { RUNS_SOAK } else { RUNS };
    let _watchdog = Watchdog::start(RUN_USUAL_MAX * runs as u32 + RUN_MAX);
    let (seed, began) = (seed(), Instant::now());
    let mut sums = [0u64; 2];
    for number in 0..runs {
        let seed = seed.wrapping_add(number << 32);
        let ended = run_both("hosts::those_who_live_agree_across_hosts", seed);
        let said = ended.map(|job| text(&job)).concat();
        let told = said.lines().find_map(|line| Some(line.split_once(DONE)?.1));
        let told = told.unwrap_or_else(|| panic!("seed {seed}: no survivor in {said}"));
        let counts = told.split_whitespace().map(|word| word.parse::<u64>().unwrap());
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    let kills = runs * (BOTH as u64 - 1);
    let [agreements, shrinks] = sums;
    println!("{kills} kills in {:?}: {agreements} agreements, {shrinks} shrinks", began.elapsed());
    assert!(shrinks >= runs && agreements >= shrinks);
}

fn agree_until_one_is_left() {
    let job = Job::join().unwrap();
    let seed = seed_of_job();
    let mut world = world_of_both(&job);
    world.barrier().unwrap();
    meet(&world, "ready", BOTH);
    arm(world.rank(), BOTH, seed);
    let mut belief = Belief::default();
    for round in 0.. {
        if world.size() == 1 {
            break;
        }
        world = next_world(&job, world, round, &mut belief);
    }
    println!("{DONE} {} {}", belief.agreements, belief.shrinks);
    job.leave().unwrap();
}

#[test]
fn a_world_of_two_hosts_agrees_revokes_and_shrinks() {
    if is_member() {
        return agree_revoke_and_shrink();
    }
    let _watchdog = Watchdog::start(2 * RUN_MAX);
    let ended = run_both("hosts::a_world_of_two_hosts_agrees_revokes_and_shrinks", 0);
    let said = ended.map(|job| text(&job)).concat();
    assert_eq!(said.matches(DONE).count(), BOTH - 1, "{said}");
}

#[test]
fn groups_of_a_host_and_across_hosts_are_told_apart() {
    if is_member() {
        return make_groups_at_once();
    }
    let _watchdog = Watchdog::start(2 * RUN_MAX);
    let ended = run_both("hosts::groups_of_a_host_and_across_hosts_are_told_apart", 2);
    let said = ended.map(|job| text(&job)).concat();
    assert_eq!(said.matches(DONE).count(), BOTH, "{said}");
}

/// While all make a group together, the hosts make groups of their own. If hosts counted groups each on its own, one of
/// these would get the context of the common one.
fn make_groups_at_once() {
    let job = Job::join().unwrap();
    let all = world_of_both(&job);
    all.barrier().unwrap();
    let (own, is_near) = (job.world(), std::env::var(SIDE).unwrap() == "near");
    let make = || own.split(Some(0), 0).unwrap().unwrap();
    if is_near {
        (0..AHEAD).for_each(|_| drop(make()));
    }
    let begun = all.start_duplicate().unwrap();
    let groups: Vec<World> = (0..4 * AHEAD).map(|_| make()).collect();
    let (next, last) = ((own.rank() + 1) % EACH, (own.rank() + EACH - 1) % EACH);
    for (number, group) in (0u64..).zip(&groups) {
        group.send(&[number], next, Tag(1)).unwrap();
    }
    let common = begun.finish().unwrap();
    let first = common.rank() - own.rank();
    common.send(&[u64::MAX], first + next, Tag(1)).unwrap();
    assert_eq!(common.receive::<u64>(first + last, Tag(1)).unwrap().0, u64::MAX);
    for (number, group) in (0u64..).zip(&groups) {
        assert_eq!(group.receive::<u64>(last, Tag(1)).unwrap().0, number);
    }
    assert_eq!(common.all_reduce(1u64, Sum).unwrap(), BOTH as u64);
    meet(&all, "over", BOTH);
    println!("{DONE}");
    job.leave().unwrap();
}

#[test]
fn who_is_out_of_step_is_named_across_hosts() {
    if is_member() {
        return be_out_of_step();
    }
    let _watchdog = Watchdog::start(2 * RUN_MAX);
    let ended = run_both("hosts::who_is_out_of_step_is_named_across_hosts", 1);
    let said = ended.map(|job| text(&job)).concat();
    assert_eq!(said.matches(DONE).count(), BOTH, "{said}");
}

/// One gives what nobody takes, on the one host or the other, while the others give something to it.
fn be_out_of_step() {
    let job = Job::join().unwrap();
    let all = world_of_both(&job);
    for (before, odd) in [(0, 5), (3, 1), (9, 4)] {
        let world = all.split(Some(0), 0).unwrap().unwrap();
        let mut done = (0..before).try_for_each(|_| world.barrier());
        done = done.and_then(|()| match world.rank() == odd {
            true => world.gather(&[1u8], &mut [], 0),
            false => world.broadcast(&mut [1u8], 0),
        });
        for _ in 0..MEETINGS {
            done = done.and_then(|()| world.barrier());
        }
        let Err(Error {
            kind: ErrorKind::Mismatch { rank, other, number, ref theirs, ref ours },
            ..
        }) = done
        else {
            panic!("{done:?}")
        };
        assert!((rank == odd) != (other == odd) && number == before, "{done:?}");
        assert!(theirs != ours && format!("{theirs} {ours}").contains("gather"), "{done:?}");
    }
    meet(&all, "over", BOTH);
    println!("{DONE}");
    job.leave().unwrap();
}

fn agree_revoke_and_shrink() {
    let job = Job::join().unwrap();
    let world = world_of_both(&job);
    let rank = world.rank();
    for round in 0..20u32 {
        assert_eq!(world.agree(!(1 << rank) & 0xff | round << 8).unwrap(), 0xc0 | round << 8);
    }
    let group = world.split(Some(0), 0).unwrap().unwrap();
    // Who is near follows from the hosts, and stays in worlds of fewer.
    assert_eq!(group.clusters().unwrap().clusters(), [[0, 1, 2], [3, 4, 5]]);
    for way in ["daisy", "pipeline", "hierarchy:derived", "hypercube"] {
        let preset: landeck::unstable::collectives::Preset = way.parse().unwrap();
        let way = preset.way(landeck::unstable::collectives::Operation::AllReduce);
        assert_eq!(group.via(way).all_reduce(rank as u64, Sum).unwrap(), 15);
    }
    let smaller = revoked_by_one_who_dies(&job, &group);
    assert_eq!(smaller.size(), BOTH - 1);
    assert_eq!(smaller.clusters().unwrap().clusters(), [vec![0, 1], vec![2, 3, 4]]);
    assert_eq!(smaller.all_reduce(1u64, Sum).unwrap(), 5);
    // Those of one host have a board again.
    let here = smaller.split_by_host(0).unwrap();
    assert_eq!(here.agree(1 << here.rank() | 1).unwrap(), 1);
    meet(&smaller, "over", BOTH - 1);
    println!("{DONE}");
    job.leave().unwrap();
}

/// Everybody waits for somebody who says nothing; rank 1 revokes, and dies.
fn revoked_by_one_who_dies(job: &Job, group: &World) -> World {
    let lost = match group.rank() {
        1 => {
            thread::sleep(Duration::from_millis(100));
            group.revoke().unwrap();
            job.drain().unwrap();
            kill_myself()
        }
        4 => group.barrier().unwrap_err(),
        rank => group.receive::<u8>((rank + 2) % BOTH, Tag(1)).unwrap_err(),
    };
    assert!(matches!(lost.kind, ErrorKind::Revoked | ErrorKind::PeerFailed { .. }), "{lost}");
    while !matches!(group.barrier(), Err(Error { kind: ErrorKind::Revoked, .. })) {
        thread::sleep(Duration::from_millis(1));
    }
    let mut smaller = group.shrink().unwrap();
    // Some agree before they know of the death.
    while smaller.size() == BOTH {
        smaller = smaller.shrink().unwrap();
    }
    smaller
}

/// Waits until all of a world of so many have come to this place, with no message: who has left answers
/// nobody any more, and so it is out of reach of who has not found out yet.
fn meet(world: &World, place: &str, count: usize) {
    let directory = PathBuf::from(std::env::var_os(MEETING).unwrap());
    let mark = |rank: usize| directory.join(format!("{place}-{rank}"));
    fs::write(mark(world.rank()), "").unwrap();
    while !(0..count).all(|rank| mark(rank).exists()) {
        // What others still ask this process is answered.
        let _ = world.try_probe(landeck::Any, landeck::Any);
        thread::sleep(Duration::from_millis(1));
    }
}

/// A directory in which the near processes say where they listen.
struct Meeting(PathBuf);

impl Meeting {
    fn new(seed: u64) -> Self {
        let name = format!("landeck-hosts-{}-{seed}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn publish(&self, slot: u32, address: SocketAddr) {
        let unfinished = self.0.join(format!("unfinished-{slot}"));
        fs::write(&unfinished, address.to_string()).unwrap();
        fs::rename(&unfinished, self.0.join(slot.to_string())).unwrap();
    }

    fn find(&self, slot: u32) -> SocketAddr {
        let deadline = Instant::now() + CONNECT_TIME;
        loop {
            if let Ok(text) = fs::read_to_string(self.0.join(slot.to_string())) {
                return text.parse().unwrap();
            }
            assert!(Instant::now() < deadline, "near process {slot} does not say where it listens");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Meeting {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
