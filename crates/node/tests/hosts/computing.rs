//! Members that compute between the start of a collective operation over two hosts and their wait for it.
//!
//! The member that computes calls nothing of the library until all others have said that they are through. They say it by
//! files. So an operation that needs that member once more never ends, and the limit of the job ends the test.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use landeck::{Job, Persistent, Plain, Sum, Tag, World};
use landeck_testing::Watchdog;
use landeck_testing::hosts::{Hosts, Wish};

use crate::job::command;
use crate::support::{is_member, launcher, shared_file, text};

/// Elements of eight bytes: few lie in a line of a board, more in a block.
const LENGTHS: [usize; 2] = [3, 60];

/// Runs a test of this program in jobs of two and three ranks on each of two hosts, in blocks and in turn.
fn in_jobs(test: &str, body: impl FnOnce(&Meeting)) {
    if is_member() {
        let job = Job::join().unwrap();
        body(&Meeting::of(&job));
        return job.leave().unwrap();
    }
    let _watchdog = Watchdog::start(Duration::from_secs(300));
    launcher(); // it may have to be built
    let Some(hosts) = Hosts::or_skip(test, &Wish::hosts(2)) else { return };
    for (each, options) in [(2, &[][..]), (3, &["--map-by", "node"])] {
        let ended = command(&hosts, each, test, options).output().unwrap();
        assert!(ended.status.success(), "{options:?}: {}", text(&ended));
    }
}

/// The members of a job, who can say something to each other without the library.
struct Meeting {
    world: World,
    folder: PathBuf,
}

/// The member that computes, and whether it starts before all others, or after them.
#[derive(Clone, Copy, Debug)]
struct Busy {
    rank: usize,
    is_first: bool,
}

impl Meeting {
    fn of(job: &Job) -> Self {
        let folder = shared_file(job, "computing");
        fs::create_dir_all(&folder).unwrap();
        let world = job.world();
        // Each process has connections to all others: none is opened while somebody computes.
        let (rank, size) = (world.rank(), world.size());
        for by in 1..size {
            let (to, from) = ((rank + by) % size, (rank + size - by) % size);
            world.send(&[rank], to, Tag(1)).unwrap();
            assert_eq!(world.receive::<usize>(from, Tag(1)).unwrap().0, from);
        }
        Self { world, folder }
    }

    fn say(&self, what: &str) {
        fs::write(self.folder.join(format!("{what}.{}", self.world.rank())), "").unwrap();
    }

    fn hear(&self, what: &str, from: impl Iterator<Item = usize>) {
        for rank in from {
            let path = self.folder.join(format!("{what}.{rank}"));
            while !path.exists() {
                thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// Starts an operation and waits for it. The busy member computes in between.
    fn with<R>(&self, what: &str, busy: Busy, start: impl FnOnce() -> R, wait: impl FnOnce(R)) {
        let what = format!("{what}.{}.{}", busy.rank, busy.is_first);
        let [started, through] = ["started", "through"].map(|end| format!("{what}.{end}"));
        let is_busy = self.world.rank() == busy.rank;
        let others = || (0..self.world.size()).filter(|&rank| rank != busy.rank);
        match busy.is_first {
            true if !is_busy => self.hear(&started, [busy.rank].into_iter()),
            false if is_busy => self.hear(&started, others()),
            _ => {}
        }
        let going = start();
        self.say(&started);
        if is_busy {
            self.hear(&through, others());
        }
        wait(going);
        self.say(&through);
    }

    /// Each member in turn computes, and starts first or last.
    fn each_in_turn(&self, mut round: impl FnMut(Busy)) {
        for rank in 0..self.world.size() {
            for is_first in [true, false] {
                round(Busy { rank, is_first });
            }
        }
        self.world.barrier().unwrap();
        if self.world.rank() == 0 {
            fs::remove_dir_all(&self.folder).unwrap();
        }
    }
}

fn values(rank: usize, length: usize) -> Vec<u64> {
    (0..length as u64).map(|at| at * 7 + rank as u64 * rank as u64).collect()
}

fn sum(of: impl Iterator<Item = usize>, length: usize) -> Vec<u64> {
    of.fold(vec![0; length], |sum, rank| {
        sum.iter().zip(values(rank, length)).map(|(one, other)| one + other).collect()
    })
}

/// The blocks of a member for all others.
fn row(rank: usize, size: usize, length: usize) -> Vec<u64> {
    values(rank, size * length)
}

fn block(from: usize, to: usize, (size, length): (usize, usize)) -> Vec<u64> {
    row(from, size, length)[to * length..(to + 1) * length].to_vec()
}

/// Begins an operation in a scope, and waits for it while a member computes.
macro_rules! with_busy {
    ($meeting:ident, $what:literal, $busy:ident, |$scope:ident| $begin:expr) => {
        $meeting
            .world
            .scope(|$scope| {
                let wait = |request: landeck::Request<'_>| _ = request.wait().unwrap();
                $meeting.with($what, $busy, || $begin.unwrap(), wait);
                Ok(())
            })
            .unwrap();
    };
}

#[test]
fn nobody_waits_for_a_member_that_computes() {
    in_jobs("computing::nobody_waits_for_a_member_that_computes", |meeting| {
        meeting.each_in_turn(|busy| {
            rooted(meeting, busy);
            not_rooted(meeting, busy);
        });
    });
}

/// The root is the busy member, or the one behind it.
fn rooted(meeting: &Meeting, busy: Busy) {
    let (rank, size) = (meeting.world.rank(), meeting.world.size());
    let length = LENGTHS[busy.rank % 2];
    let (root, own) = ((busy.rank + usize::from(busy.is_first)) % size, values(rank, length));
    let at_root = |length: usize| vec![0; if rank == root { length } else { 0 }];
    let mut sent = if rank == root { own.clone() } else { vec![0; length] };
    with_busy!(meeting, "broadcast", busy, |scope| scope.broadcast(&mut sent, root));
    assert_eq!(sent, values(root, length), "{busy:?}");
    let (given, mut part) = (row(root, size, length), vec![0; length]);
    let given = if rank == root { &given[..] } else { &[] };
    with_busy!(meeting, "scatter", busy, |scope| scope.scatter(given, &mut part, root));
    assert_eq!(part, block(root, rank, (size, length)), "{busy:?}");
    let mut gathered = at_root(size * length);
    with_busy!(meeting, "gather", busy, |scope| scope.gather(&own, &mut gathered, root));
    let all: Vec<u64> = (0..size).flat_map(|rank| values(rank, length)).collect();
    assert!(rank != root || gathered == all, "{busy:?}");
    let mut reduced = at_root(length);
    with_busy!(meeting, "reduce", busy, |scope| scope.reduce(&own, &mut reduced, Sum, root));
    assert!(rank != root || reduced == sum(0..size, length), "{busy:?}");
}

fn not_rooted(meeting: &Meeting, busy: Busy) {
    let (rank, size) = (meeting.world.rank(), meeting.world.size());
    let length = LENGTHS[busy.rank % 2];
    let (own, blocks) = (values(rank, length), row(rank, size, length));
    with_busy!(meeting, "barrier", busy, |scope| scope.barrier());
    let mut all = vec![0; size * length];
    with_busy!(meeting, "allgather", busy, |scope| scope.all_gather(&own, &mut all));
    let expected: Vec<u64> = (0..size).flat_map(|rank| values(rank, length)).collect();
    assert_eq!(all, expected, "{busy:?}");
    let mut reduced = own.clone();
    with_busy!(meeting, "allreduce", busy, |scope| scope.all_reduce_in_place(&mut reduced, Sum));
    assert_eq!(reduced, sum(0..size, length), "{busy:?}");
    let mut exchanged = vec![0; size * length];
    with_busy!(meeting, "alltoall", busy, |scope| scope.all_to_all(&blocks, &mut exchanged));
    let expected: Vec<u64> = (0..size).flat_map(|from| block(from, rank, (size, length))).collect();
    assert_eq!(exchanged, expected, "{busy:?}");
    let mut part = vec![0; length];
    with_busy!(meeting, "reduce-scatter", busy, |scope| {
        scope.reduce_scatter_block(&blocks, &mut part, Sum)
    });
    let expected = (0..size).fold(vec![0; length], |sum: Vec<u64>, from| {
        let added = block(from, rank, (size, length));
        sum.iter().zip(added).map(|(one, other)| one + other).collect()
    });
    assert_eq!(part, expected, "{busy:?}");
    let mut prefix = vec![0; length];
    with_busy!(meeting, "scan", busy, |scope| scope.scan(&own, &mut prefix, Sum));
    assert_eq!(prefix, sum(0..rank + 1, length), "{busy:?}");
    let mut before = vec![7; length];
    with_busy!(meeting, "exclusive-scan", busy, |scope| {
        scope.exclusive_scan(&own, &mut before, Sum)
    });
    let expected = if rank == 0 { vec![7; length] } else { sum(0..rank, length) };
    assert_eq!(before, expected, "{busy:?}");
}

#[test]
fn nobody_waits_in_a_repeated_operation_for_a_member_that_computes() {
    let test = "computing::nobody_waits_in_a_repeated_operation_for_a_member_that_computes";
    in_jobs(test, |meeting| {
        let (world, rank) = (&meeting.world, meeting.world.rank());
        let mut barrier = Persistent::barrier(world);
        let mut sums = Persistent::all_reduce(world, values(rank, 60), Sum).unwrap();
        let last = world.size() - 1;
        let mut sent = Persistent::broadcast(world, values(rank, 3), last);
        meeting.each_in_turn(|busy| {
            repeated(meeting, "barrier", busy, &mut barrier);
            repeated(meeting, "allreduce", busy, &mut sums);
            assert_eq!(sums.output().unwrap(), sum(0..world.size(), 60), "{busy:?}");
            repeated(meeting, "broadcast", busy, &mut sent);
            assert_eq!(sent.output().unwrap(), values(last, 3), "{busy:?}");
        });
    });
}

fn repeated<T: Plain>(meeting: &Meeting, what: &str, busy: Busy, operation: &mut Persistent<T>) {
    let start = || {
        operation.start().unwrap();
        operation
    };
    meeting.with(what, busy, start, |operation| operation.wait().unwrap());
}
