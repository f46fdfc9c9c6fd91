//! The program whose processes are killed: steps of every kind of exchange, the same in every
//! process, drawn from a seed. Who loses its partner says so and goes on with the others.

use std::cell::RefCell;
use std::collections::BTreeSet;

use landeck::unstable::memory::system::now_ns;
use landeck::{Any, Error, ErrorKind, Job, Options, Result, Tag, ThreadMode, World};
use landeck_testing::Random;

use crate::support::stay_until_told;

/// Steps of one thread.
const STEPS: u32 = 60;
/// Threads beside the first, in thread mode multiple.
const FURTHER_THREADS: u32 = 2;

/// The line with which a process says that it has gone through all of its steps.
pub(crate) const DONE: &str = "all steps are done";
/// The first word of the line that names the job.
pub(crate) const JOB: &str = "job";
/// The first word of the line about a call that a death has ended: when the call began, when it
/// ended (nanoseconds of the monotonic clock), what it says.
pub(crate) const LOST: &str = "lost";

/// Environment variables that say what to do.
pub(crate) const SEED: &str = "LANDECK_TEST_TRAFFIC";
pub(crate) const THREADS: &str = "LANDECK_TEST_THREADS";

/// The part of one process.
pub(crate) fn take_part() {
    let seed = std::env::var(SEED).unwrap().parse().unwrap();
    let with_threads = std::env::var_os(THREADS).is_some();
    let threads = if with_threads { ThreadMode::Multiple } else { ThreadMode::Single };
    // On a line of its own: the test harness has begun one.
    println!("\n{JOB} {}", std::env::var("LANDECK_JOB").unwrap());
    let job = or_end(Job::join_with(Options { threads, ..Options::default() }));
    let walker = |thread| {
        let (job, world) = (&job, job.world());
        Walker { job, world, seed, thread, dead: RefCell::default() }
    };
    std::thread::scope(|scope| {
        if with_threads {
            (1..=FURTHER_THREADS).for_each(|thread| {
                let walker = walker(thread);
                scope.spawn(move || walker.walk());
            });
        }
        walker(0).walk();
    });
    println!("{DONE}");
    stay_until_told(job.world().size() - 1);
    or_end(job.leave());
}

/// One thread of a process.
struct Walker<'a> {
    job: &'a Job,
    world: World,
    seed: u64,
    thread: u32,
    /// Ranks that receives from anybody go on without.
    dead: RefCell<BTreeSet<usize>>,
}

/// A step of the traffic, known to all processes.
struct Step {
    tag: Tag,
    /// The key from which the values are derived.
    key: u64,
    length: usize,
    /// From 1 to the number of processes less one.
    distance: usize,
    root: usize,
    probes: bool,
}

impl Walker<'_> {
    fn walk(&self) {
        let size = self.world.size() as u64;
        let mut random = Random::new(self.seed.wrapping_add(u64::from(self.thread)));
        // Only one thread receives from anybody: to take note of a death is for all threads.
        let kinds = if self.thread == 0 { 4 } else { 3 };
        for number in 0..STEPS {
            let step = Step {
                tag: Tag(self.thread << 16 | number),
                key: random.bits(),
                length: draw_length(&mut random),
                distance: 1 + random.below(size - 1) as usize,
                root: random.below(size) as usize,
                probes: random.once_in(2),
            };
            match random.below(kinds) {
                0 => self.shift(&step),
                1 => self.trade(&step),
                2 => self.lend(&step),
                _ => self.gather(&step),
            }
        }
    }

    /// Everybody sends to somebody and receives from somebody at once.
    fn shift(&self, step: &Step) {
        let (to, from) = self.neighbours(step);
        let values = step.values(self.world.rank());
        let mut into = vec![0; step.length];
        let received = self.world.scope(|scope| {
            let receive = scope.receive_into(&mut into, from, step.tag)?;
            let send = self.attempt(to, || scope.send(&values, to, step.tag));
            let received = self.attempt(from, || receive.wait());
            if let Some(send) = send {
                self.attempt(to, || send.wait());
            }
            Ok(received)
        });
        if or_end(received).is_some() {
            step.check(&into, from);
        }
    }

    /// Two and two send and receive one after the other.
    fn trade(&self, step: &Step) {
        let partner = self.world.rank() ^ 1;
        if partner >= self.world.size() {
            return;
        }
        let values = step.values(self.world.rank());
        let send = || self.attempt(partner, || self.world.send(&values, partner, step.tag));
        if partner > self.world.rank() {
            send();
        }
        if step.probes {
            self.attempt(partner, || self.world.probe(partner, step.tag));
        }
        let receive = || self.world.receive_vec::<u64>(partner, step.tag);
        if let Some((values, _)) = self.attempt(partner, receive) {
            step.check(&values, partner);
        }
        if partner < self.world.rank() {
            send();
        }
    }

    /// As a shift, with memory that is given away.
    fn lend(&self, step: &Step) {
        let (to, from) = self.neighbours(step);
        let mut loan = or_end(self.job.loan::<u64>(step.length));
        loan.copy_from_slice(&step.values(self.world.rank()));
        self.attempt(to, || self.world.send_loan(loan, to, step.tag));
        let receive = || self.world.receive_loan::<u64>(from, step.tag);
        if let Some((loaned, _)) = self.attempt(from, receive) {
            step.check(&loaned.to_vec(), from);
        }
    }

    /// Everybody sends to one, who takes what comes.
    fn gather(&self, step: &Step) {
        let (root, rank) = (step.root, self.world.rank());
        if rank != root {
            let values = step.values(rank);
            self.attempt(root, || self.world.send(&values, root, step.tag));
            return;
        }
        let mut expected: BTreeSet<usize> = (0..self.world.size()).filter(|&r| r != rank).collect();
        expected.retain(|rank| !self.dead.borrow().contains(rank));
        while !expected.is_empty() {
            let began_ns = now_ns();
            match self.world.receive_vec::<u64>(Any, step.tag) {
                Ok((values, status)) => {
                    step.check(&values, status.rank());
                    // The dead may have sent this before, which nobody waits for any more.
                    let is_dead = self.dead.borrow().contains(&status.rank());
                    assert!(expected.remove(&status.rank()) || is_dead, "{status:?} once");
                }
                Err(error @ Error { kind: ErrorKind::PeerFailed { rank: Some(rank), .. }, .. }) => {
                    tell_loss(began_ns, &error);
                    let dead = or_end(self.job.acknowledge_failures());
                    assert!(dead.contains(&rank), "{rank} is among the dead: {dead:?}");
                    expected.retain(|rank| !dead.contains(rank));
                    self.dead.borrow_mut().extend(dead);
                }
                Err(error) => end(&error),
            }
        }
    }

    fn neighbours(&self, step: &Step) -> (usize, usize) {
        let (rank, size) = (self.world.rank(), self.world.size());
        ((rank + step.distance) % size, (rank + size - step.distance) % size)
    }

    /// Makes a call that depends on one process. None when that is gone.
    fn attempt<T>(&self, peer: usize, call: impl FnOnce() -> Result<T>) -> Option<T> {
        let began_ns = now_ns();
        match call() {
            Ok(value) => Some(value),
            Err(error @ Error { kind: ErrorKind::PeerFailed { rank, .. }, .. }) => {
                assert_eq!(rank, Some(peer), "{error}");
                tell_loss(began_ns, &error);
                None
            }
            Err(error) => end(&error),
        }
    }
}

impl Step {
    fn values(&self, rank: usize) -> Vec<u64> {
        (0..self.length as u64).map(|at| self.value(rank, at)).collect()
    }

    fn value(&self, rank: usize, at: u64) -> u64 {
        self.key.wrapping_add(at << 8 | rank as u64)
    }

    fn check(&self, values: &[u64], from: usize) {
        assert_eq!(values.len(), self.length, "from rank {from}");
        let are_right = values.iter().zip(0..).all(|(&value, at)| value == self.value(from, at));
        assert!(are_right, "values from rank {from} are wrong");
    }
}

/// Values of 8 bytes: a few, 1 to 16 KiB, 64 to 512 KiB.
fn draw_length(random: &mut Random) -> usize {
    let (least, most) =
        *random.pick(&[(0, 6), (0, 6), (128, 2_048), (128, 2_048), (8_192, 65_536)]);
    (least + random.below(most - least + 1)) as usize
}

fn tell_loss(began_ns: u64, error: &Error) {
    println!("{LOST} {began_ns} {} {error}", now_ns());
}

fn or_end<T>(result: Result<T>) -> T {
    result.unwrap_or_else(|error| end(&error))
}

/// As a program ends that returns its error from `main`.
fn end(error: &Error) -> ! {
    eprintln!("Error: {error}");
    std::process::exit(1)
}
