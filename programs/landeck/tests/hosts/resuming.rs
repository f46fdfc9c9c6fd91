//! Lanes and relays whose connections are reset again and again under load: everything arrives once, whole and in order.
//!
//! Two processes on two hosts give each other numbered messages of all kinds, in which each word follows from the number. A
//! thread of each resets its connections meanwhile, and says what the process was in. `LANDECK_SOAK=1` makes a thousand
//! resets. That a lane goes on wherever in a frame it breaks is tested byte by byte in `transports/tests/lane_breaks.rs`.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use landeck::{Job, Region, RegionAddress, RemoteRegion, SendMode, Tag, World};
use landeck_testing::Random;
use rustix::net::{Shutdown, connect_unspec, shutdown, sockopt};

use super::members::is_member;
use super::suspicions::lanes;
use super::*;

/// The variable for the number of resets of each process, and for the seed.
const RESETS: &str = "LANDECK_TEST_RESETS";
pub(super) const SEED: &str = "LANDECK_TEST_SEED";
/// The resets of both processes together, and in soak.
const ALL: usize = 60;
const ALL_SOAK: usize = 1_000;
/// The longest pause between two resets, in microseconds.
const PAUSE_US: u64 = 15_000;
/// The words of a long message.
const LONG: usize = (1 << 20) / 8 + 3;

/// The thing that a process is in.
#[derive(Clone, Copy)]
enum Phase {
    /// No call.
    Idle,
    /// Short messages, whose frames are a header and some data.
    Short,
    /// Messages of several KiB, whose frames are longer than what a socket takes at once.
    Eager,
    /// A long message that is offered, and whose receive is not posted yet.
    Offered,
    /// A long message in each direction.
    Long,
    /// A synchronous send, which waits for its receive.
    Synchronous,
    /// Requests about the other's region.
    Region,
    /// The time in which the last connection is gone and the next one is not there.
    Redial,
}

const PHASES: [&str; 8] =
    ["idle", "short", "eager", "offered", "long", "synchronous", "region", "redial"];

static NOW: AtomicUsize = AtomicUsize::new(Phase::Idle as usize);
static DONE: AtomicBool = AtomicBool::new(false);

fn enter(phase: Phase) {
    NOW.store(phase as usize, Ordering::Relaxed);
}

/// Resets the connections of this process so many times, and prints how often it was in which phase.
fn reset_lanes(count: usize, mut random: Random) {
    let mut hits = [0; PHASES.len()];
    let mut left = count;
    while left > 0 {
        thread::sleep(Duration::from_micros(random.below(PAUSE_US)));
        let mut phase = NOW.load(Ordering::Relaxed);
        let mut open = lanes();
        if open.is_empty() {
            // As soon as the next one is there.
            phase = Phase::Redial as usize;
            while open.is_empty() {
                thread::sleep(Duration::from_micros(50));
                open = lanes();
            }
        }
        for lane in open {
            // The owner may close it at the same time.
            let _ = match random.below(4) {
                0 => shutdown(&lane, Shutdown::Write),
                1 => shutdown(&lane, Shutdown::Both),
                2 => connect_unspec(&lane),
                _ => sockopt::set_socket_linger(&lane, Some(Duration::ZERO))
                    .and_then(|()| connect_unspec(&lane)),
            };
        }
        hits[phase] += 1;
        left -= 1;
    }
    let words = hits.iter().zip(PHASES).map(|(hits, phase)| format!(" {hits} {phase}"));
    println!("resets{}.", words.collect::<String>());
    DONE.store(true, Ordering::Release);
}

/// The words of a message.
fn words(number: u64, from: usize, length: usize) -> Vec<u64> {
    let first = (number << 8 | from as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (0..length as u64).map(|at| first.wrapping_add(at.wrapping_mul(0x1_0000_0001))).collect()
}

/// The conversation of two processes.
struct Talk<'a> {
    world: &'a World,
    own: usize,
    other: usize,
    number: u64,
    random: Random,
    /// The other's region, and the changes that were made there.
    region: RemoteRegion,
    changes: u64,
}

/// The bytes of a region: a counter, a word that is put with a notification, and data.
const REGION_BYTES: usize = 64 + 8 * LONG;

/// Opens the region of the other process.
fn open_region(job: &Job, own: &Region, other: usize) -> RemoteRegion {
    let mut words = [0u64; 4];
    let (to, from) = ((other, Tag(2)), (other, Tag(2)));
    job.world().send_receive(&own.address().to_words(), to, &mut words, from).unwrap();
    job.open_region(RegionAddress::from_words(words)).unwrap()
}

impl Talk<'_> {
    /// A message of this length in each direction.
    fn exchange(&mut self, length: usize) {
        let (sent, mut got) = (words(self.number, self.own, length), vec![0; length]);
        let (to, from) = ((self.other, Tag(3)), (self.other, Tag(3)));
        self.world.send_receive(&sent, to, &mut got, from).unwrap();
        assert!(got == words(self.number, self.other, length), "message {}", self.number);
        self.number += 1;
    }

    /// A window of messages in each direction, as many as come without a wait.
    fn window(&mut self, count: u64, length: usize) {
        let numbers = self.number..self.number + count;
        for number in numbers.clone() {
            self.world.send(&words(number, self.own, length), self.other, Tag(4)).unwrap();
        }
        let mut got = vec![0; length];
        for number in numbers {
            self.world.receive_into(&mut got, self.other, Tag(4)).unwrap();
            assert!(got == words(number, self.other, length), "message {number}");
        }
        self.number += count;
    }

    /// A long message in each direction, which waits for its receive for a moment.
    fn late(&mut self) {
        let (sent, mut got) = (words(self.number, self.own, LONG), vec![0; LONG]);
        self.world
            .scope(|scope| {
                let request = scope.send(&sent, self.other, Tag(5))?;
                thread::sleep(Duration::from_micros(self.random.below(3_000)));
                self.world.receive_into(&mut got, self.other, Tag(5))?;
                request.wait()?;
                Ok(())
            })
            .unwrap();
        assert!(got == words(self.number, self.other, LONG), "message {}", self.number);
        self.number += 1;
    }

    fn synchronous(&mut self) {
        let (sent, mut got) = (words(self.number, self.own, 100), vec![0; 100]);
        let (world, other) = (self.world, self.other);
        if self.own == 0 {
            world.send_in(SendMode::Synchronous, &sent, other, Tag(6)).unwrap();
        }
        world.receive_into(&mut got, other, Tag(6)).unwrap();
        if self.own == 1 {
            world.send_in(SendMode::Synchronous, &sent, other, Tag(6)).unwrap();
        }
        assert!(got == words(self.number, other, 100), "message {}", self.number);
        self.number += 1;
    }

    fn urgent(&mut self) {
        let (sent, mut got) = (words(self.number, self.own, 4), vec![0; 4]);
        self.world.send_urgent(&sent, self.other, Tag(7)).unwrap();
        self.world.receive_into(&mut got, self.other, Tag(7)).unwrap();
        assert_eq!(got, words(self.number, self.other, 4), "message {}", self.number);
        self.number += 1;
    }

    fn loan(&mut self, job: &Job) {
        let mut loan = job.loan::<u64>(3_000).unwrap();
        loan.copy_from_slice(&words(self.number, self.own, 3_000));
        self.world.send_loan(loan, self.other, Tag(8)).unwrap();
        let (got, _) = self.world.receive_loan::<u64>(self.other, Tag(8)).unwrap();
        let expected = words(self.number, self.other, 3_000);
        let is_right = expected.iter().enumerate().all(|(at, word)| got.get(at) == Some(*word));
        assert!(got.len() == 3_000 && is_right, "message {}", self.number);
        self.number += 1;
    }

    /// Changes of the other's region, each done once, and long data there and back.
    fn changes(&mut self, count: u64) {
        for _ in 0..count {
            assert_eq!(self.region.fetch_add(0, 1).unwrap(), self.changes);
            self.region.put_and_notify(8, &[self.changes]).unwrap();
            self.changes += 1;
        }
        let data = words(self.number, self.own, LONG);
        self.region.put(64, &data).unwrap();
        let mut got = vec![0u64; LONG];
        self.region.get(64, &mut got).unwrap();
        assert!(got == data, "region {}", self.number);
        self.number += 1;
    }

    /// Whether both have made their resets.
    fn is_over(&mut self) -> bool {
        let (own, mut other) = ([u8::from(DONE.load(Ordering::Acquire))], [0]);
        let (to, from) = ((self.other, Tag(9)), (self.other, Tag(9)));
        self.world.send_receive(&own, to, &mut other, from).unwrap();
        own == [1] && other == [1]
    }
}

/// A process whose lane is reset.
fn talk_and_reset() {
    converse(|seed| {
        let count = std::env::var(RESETS).unwrap().parse().unwrap();
        reset_lanes(count, Random::new(seed));
    });
}

/// A process that talks until its input ends.
pub(super) fn talk_until_told() {
    converse(|_| {
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        DONE.store(true, Ordering::Release);
    });
}

/// Talks with the other process until both are done with what they do beside that. It gets a seed.
fn converse(beside: impl FnOnce(u64) + Send + 'static) {
    let job = Job::join().unwrap();
    let world = job.world();
    let own = world.rank();
    let seed: u64 = std::env::var(SEED).unwrap().parse().unwrap();
    let region = job.create_region(REGION_BYTES).unwrap();
    let mut talk = Talk {
        region: open_region(&job, &region, 1 - own),
        changes: 0,
        world: &world,
        own,
        other: 1 - own,
        number: 0,
        random: Random::new(seed.wrapping_add(7)),
    };
    talk.exchange(1);
    let beside = thread::spawn(move || beside(seed.wrapping_add(own as u64)));
    let mut rounds = 0;
    while !talk.is_over() {
        enter(Phase::Short);
        (0..20).for_each(|length| talk.exchange(1 + length % 7));
        talk.window(200, 2);
        talk.urgent();
        enter(Phase::Eager);
        talk.window(20, 900);
        talk.exchange(8_000);
        talk.loan(&job);
        enter(Phase::Offered);
        talk.late();
        enter(Phase::Long);
        (0..3).for_each(|_| talk.exchange(LONG));
        enter(Phase::Synchronous);
        talk.synchronous();
        enter(Phase::Region);
        talk.changes(20);
        enter(Phase::Idle);
        thread::sleep(Duration::from_micros(talk.random.below(2_000)));
        rounds += 1;
        if own == 0 {
            println!("round {rounds}.");
        }
    }
    beside.join().unwrap();
    talk.exchange(1); // the other has made its last change
    assert_eq!(region.notifications().unwrap(), talk.changes);
    let mut counter = [0u64];
    region.read(0, &mut counter).unwrap();
    assert_eq!(counter, [talk.changes]);
    talk.exchange(1);
    println!("whole: {} messages", talk.number);
    job.leave().unwrap();
}

/// Runs two processes whose lane is reset, and counts the phases.
fn reset_under_load(test: &str, options: &[&str]) {
    let Some(cluster) = Cluster::pair(test) else { return };
    let all = if is_soak() { ALL_SOAK } else { ALL };
    let mut command = cluster.members(test, "n1:1,n2:1", options);
    command.env(RESETS, (all / 2).to_string()).env(SEED, landeck_testing::seed().to_string());
    let ended = run_within(&mut command, if is_soak() { RUN_MAX * 10 } else { RUN_MAX });
    ended.assert(0, &[]);
    assert_eq!(ended.out.matches("whole: ").count(), 2, "{ended:?}");
    let mut hits = [0; PHASES.len()];
    for line in ended.out.lines().filter_map(|line| line.split_once("resets ")?.1.strip_suffix('.'))
    {
        for (place, count) in hits.iter_mut().zip(line.split(' ').step_by(2)) {
            *place += count.parse::<usize>().unwrap();
        }
    }
    let words = hits.iter().zip(PHASES).map(|(hits, phase)| format!(" {hits} {phase}"));
    println!("{all} resets:{}; {:?}", words.collect::<String>(), ended.took);
    assert_eq!(hits.iter().sum::<usize>(), all, "{ended:?}");
    if is_soak() {
        assert!(hits.iter().all(|hits| *hits > 0), "a phase was never hit: {hits:?}");
    }
    cluster.assert_nothing_left();
}

#[test]
fn a_lane_that_is_reset_under_load_loses_and_repeats_nothing() {
    let test = "resuming::a_lane_that_is_reset_under_load_loses_and_repeats_nothing";
    if is_member() {
        return talk_and_reset();
    }
    reset_under_load(test, &["--plain"]);
}

#[test]
fn a_sealed_lane_that_is_reset_under_load_loses_and_repeats_nothing() {
    let test = "resuming::a_sealed_lane_that_is_reset_under_load_loses_and_repeats_nothing";
    if is_member() {
        return talk_and_reset();
    }
    reset_under_load(test, &[]);
}

#[test]
fn a_relay_whose_connection_is_reset_under_load_loses_and_repeats_nothing() {
    let test = "resuming::a_relay_whose_connection_is_reset_under_load_loses_and_repeats_nothing";
    if is_member() {
        return talk_and_reset();
    }
    reset_under_load(test, &["--path", "relay"]);
}

#[test]
fn connections_that_are_reset_under_load_lose_and_repeat_nothing_that_stays() {
    let test = "resuming::connections_that_are_reset_under_load_lose_and_repeat_nothing_that_stays";
    if is_member() {
        return talk_and_reset();
    }
    // One fetches over lanes and connections to relays, the other stores over them.
    for store in ["sender", "n2"] {
        reset_under_load(test, &["--store", store]);
    }
}
