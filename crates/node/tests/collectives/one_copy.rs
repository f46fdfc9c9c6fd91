//! Collective operations whose members read each other's memory: what each has then, and that nothing goes through the
//! shared heap.

use landeck::unstable::collectives::{BoardStyle, Way};
use landeck::{Job, Sum, ThreadMode, World};

use crate::support::{in_job, is_member, job_of, run_well};

/// The length of `--one-copy`.
const FROM_BYTES: usize = 64 << 10;
/// Words in a block: at the length, around it, and of several reads.
const AROUND: [usize; 4] =
    [FROM_BYTES / 8, FROM_BYTES / 8 - 1, FROM_BYTES / 8 + 1, (5 << 20) / 8 + 3];

/// Runs a test in jobs of two to five members with the length.
fn in_jobs(test: &str, body: impl FnOnce(&Job)) {
    if is_member() {
        return in_job(0, test, ThreadMode::Single, body);
    }
    for n in 2..=5 {
        run_well(&mut job_of(n, test, &["--one-copy", "64K"]));
    }
}

/// The word number `at` of the block that one member has for another in a round.
fn word(round: usize, from: usize, to: usize, at: usize) -> u64 {
    (((round * 7 + from) * 11 + to) as u64) << 32 | at as u64
}

fn block(round: usize, from: usize, to: usize, length: usize) -> Vec<u64> {
    (0..length).map(|at| word(round, from, to, at)).collect()
}

fn blocks(length: usize, size: usize, of: impl Fn(usize) -> (usize, usize)) -> Vec<u64> {
    (0..size).map(of).flat_map(|(from, to)| block(0, from, to, length)).collect()
}

/// The memory of one member in all five operations, and what is expected there.
struct Round {
    length: usize,
    root: usize,
    whole: Vec<u64>,
    row: Vec<u64>,
    gathered: Vec<u64>,
    scattered: Vec<u64>,
    of_all: Vec<u64>,
    exchanged: Vec<u64>,
}

impl Round {
    fn new(world: &World, length: usize, root: usize) -> Self {
        let (rank, size) = (world.rank(), world.size());
        let whole = if rank == root { block(0, root, 0, length) } else { vec![0; length] };
        let all = vec![0; length * size];
        let at_root = if rank == root { all.clone() } else { Vec::new() };
        Self {
            length,
            root,
            whole,
            row: blocks(length, size, |to| (rank, to)),
            gathered: at_root,
            scattered: vec![0; length],
            of_all: all.clone(),
            exchanged: all,
        }
    }

    fn blocking(&mut self, world: &World) -> landeck::Result<()> {
        let (length, root) = (self.length, self.root);
        let rows = if world.rank() == root { &self.row[..] } else { &[] };
        world.broadcast(&mut self.whole, root)?;
        world.gather(&self.row[..length], &mut self.gathered, root)?;
        world.scatter(rows, &mut self.scattered, root)?;
        world.all_gather(&self.row[..length], &mut self.of_all)?;
        world.all_to_all(&self.row, &mut self.exchanged)
    }

    fn started(&mut self, world: &World) -> landeck::Result<()> {
        let (length, root) = (self.length, self.root);
        let rows = if world.rank() == root { &self.row[..] } else { &[] };
        world.scope(|scope| {
            let mut requests = vec![
                scope.broadcast(&mut self.whole, root)?,
                scope.gather(&self.row[..length], &mut self.gathered, root)?,
                scope.scatter(rows, &mut self.scattered, root)?,
                scope.all_gather(&self.row[..length], &mut self.of_all)?,
                scope.all_to_all(&self.row, &mut self.exchanged)?,
            ];
            // Each member waits in an order of its own.
            requests.rotate_left(world.rank());
            requests.into_iter().try_for_each(|request| request.wait().map(drop))
        })
    }

    fn check(&self, world: &World) {
        let (rank, size, length) = (world.rank(), world.size(), self.length);
        assert_eq!(self.whole, block(0, self.root, 0, length), "broadcast of {length}");
        assert_eq!(self.scattered, block(0, self.root, rank, length), "scatter of {length}");
        let first = blocks(length, size, |from| (from, 0));
        assert_eq!(self.of_all, first, "allgather of {length}");
        let own = blocks(length, size, |from| (from, rank));
        assert_eq!(self.exchanged, own, "alltoall of {length}");
        if rank == self.root {
            assert_eq!(self.gathered, first, "gather of {length}");
        }
    }
}

#[test]
fn each_member_has_what_it_should_and_the_heap_is_not_used() {
    in_jobs("one_copy::each_member_has_what_it_should_and_the_heap_is_not_used", |job| {
        let world = job.world();
        for root in 0..world.size() {
            for length in AROUND {
                world.barrier().unwrap();
                let before = job.heap_in_use().unwrap();
                let mut round = Round::new(&world, length, root);
                round.blocking(&world).unwrap();
                round.check(&world);
                let mut round = Round::new(&world, length, root);
                round.started(&world).unwrap();
                round.check(&world);
                let is_read = length * 8 >= FROM_BYTES;
                let in_use = job.heap_in_use().unwrap();
                assert!(!is_read || in_use <= before, "{in_use} bytes for {length} words");
            }
        }
    });
}

/// Numbers whose sum depends on the order in which they are added.
fn numbers(rank: usize, length: usize) -> Vec<f64> {
    let number = |at: usize| ((rank * 31 + at) % 17) as f64 * 1e15 + 1.0 / (at + rank + 1) as f64;
    (0..length).map(number).collect()
}

/// The bits of all results of reductions, one after the other.
fn reduced(world: &World, length: usize, root: usize) -> landeck::Result<Vec<u64>> {
    let (rank, size) = (world.rank(), world.size());
    let own = numbers(rank, length * size);
    let (mut of_root, mut of_all) = (vec![0.0; own.len()], vec![0.0; own.len()]);
    let (mut part, mut in_place) = (vec![0.0; length], own.clone());
    let at_root = if rank == root { &mut of_root[..] } else { &mut [] };
    world.reduce(&own, at_root, Sum, root)?;
    world.all_reduce_into(&own, &mut of_all, Sum)?;
    world.all_reduce_in_place(&mut in_place, Sum)?;
    world.reduce_scatter_block(&own, &mut part, Sum)?;
    // Blocks that differ: the first member has nearly all.
    let mut counts = vec![length / 3; size];
    counts[0] = own.len() - counts[1..].iter().sum::<usize>();
    let mut uneven = vec![0.0; counts[rank]];
    world.reduce_scatter(&own, &mut uneven, &counts, Sum)?;
    let mut started = own.clone();
    world.scope(|scope| scope.all_reduce_in_place(&mut started, Sum)?.wait().map(drop))?;
    assert!(started == in_place, "a started operation");
    let all = [of_root, of_all, in_place, part, uneven];
    Ok(all.iter().flatten().map(|number| number.to_bits()).collect())
}

#[test]
fn reductions_have_the_same_bits_in_one_copy_and_the_heap_is_not_used() {
    let name = "one_copy::reductions_have_the_same_bits_in_one_copy_and_the_heap_is_not_used";
    in_jobs(name, |job| {
        let world = job.world();
        let board = world.via(Way::Board(BoardStyle::Each));
        for length in [FROM_BYTES / 8, FROM_BYTES / 8 + 1, 300_007] {
            let root = length % world.size();
            world.barrier().unwrap();
            let before = job.heap_in_use().unwrap();
            let read = reduced(&world, length, root).unwrap();
            let in_use = job.heap_in_use().unwrap();
            // Lengths count by octave.
            let is_read = length * 8 >= 2 * FROM_BYTES || world.size().is_power_of_two();
            assert!(!is_read || in_use <= before, "{in_use} bytes for {length} words");
            assert!(read == reduced(&board, length, root).unwrap(), "{length}: other bits");
        }
        let told = world.via(Way::Board(BoardStyle::Told));
        for length in [0, 1, 2, 1_000] {
            let read = reduced(&told, length, 0).unwrap();
            assert!(read == reduced(&board, length, 0).unwrap(), "{length}: other bits");
        }
    });
}

#[test]
fn data_may_change_as_soon_as_their_owner_returns() {
    in_jobs("one_copy::data_may_change_as_soon_as_their_owner_returns", |job| {
        let world = job.world();
        let (rank, size, length) = (world.rank(), world.size(), FROM_BYTES / 8);
        let (mut row, mut exchanged) = (vec![0; length * size], vec![0; length * size]);
        let mut whole = vec![0u64; length];
        for round in 0..200 {
            let root = round % size;
            row.iter_mut().for_each(|word| *word = (round * size + rank) as u64);
            if rank == root {
                whole.fill(round as u64);
            }
            world.broadcast(&mut whole, root).unwrap();
            assert!(whole.iter().all(|&word| word == round as u64), "broadcast {round}");
            world.all_to_all(&row, &mut exchanged).unwrap();
            row.fill(u64::MAX);
            whole.fill(u64::MAX);
            for (from, block) in exchanged.chunks(length).enumerate() {
                let expected = (round * size + from) as u64;
                assert!(block.iter().all(|&word| word == expected), "round {round} from {from}");
            }
        }
    });
}

#[test]
fn threads_and_groups_read_at_once() {
    let name = "one_copy::threads_and_groups_read_at_once";
    if !is_member() {
        return run_well(&mut job_of(4, name, &["--one-copy", "64K"]));
    }
    in_job(4, name, ThreadMode::Multiple, |job| {
        let worlds = [job.world().duplicate().unwrap(), job.world().duplicate().unwrap()];
        std::thread::scope(|threads| {
            for world in &worlds {
                threads.spawn(move || {
                    for number in 0..20 {
                        let mut round = Round::new(world, FROM_BYTES / 8, number % world.size());
                        round.blocking(world).unwrap();
                        round.check(world);
                    }
                });
            }
        });
    });
}
