//! Collective operations back to back; the root moves on with each, so that no root runs ahead.

use std::thread;
use std::time::{Duration, Instant};

use landeck::{Maximum, Result, Sum, World};
use landeck_measure::Paged;
use landeck_memory::system::now_ns;

use crate::batches::Batches;
use crate::{Bench, Measured};

/// One of the operations of bench/collectives.c.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Barrier,
    Broadcast,
    BroadcastBarrier,
    Reduce,
    AllReduce,
    ReduceScatter,
    Gather,
    Scatter,
    AllGather,
    AllToAll,
}

impl Operation {
    pub(crate) fn by_name(name: &str) -> Option<Operation> {
        Some(match name {
            "barrier" => Operation::Barrier,
            "broadcast" => Operation::Broadcast,
            "broadcast_barrier" => Operation::BroadcastBarrier,
            "reduce" => Operation::Reduce,
            "allreduce" => Operation::AllReduce,
            "reduce_scatter" => Operation::ReduceScatter,
            "gather" => Operation::Gather,
            "scatter" => Operation::Scatter,
            "allgather" => Operation::AllGather,
            "alltoall" => Operation::AllToAll,
            _ => return None,
        })
    }

    /// One operation with blocks of so many bytes.
    #[inline]
    pub(crate) fn call(
        self,
        world: &World,
        blocks: &mut Blocks,
        root: usize,
        bytes: usize,
    ) -> Result<()> {
        let all = bytes * world.size();
        let (terms, sums) = (&blocks.terms[..bytes / 8], &mut blocks.sums[..bytes / 8]);
        let (outgoing, incoming) = (&blocks.outgoing, &mut blocks.incoming);
        match self {
            Operation::Barrier => world.barrier(),
            Operation::Broadcast => world.broadcast(&mut incoming[..bytes], root),
            Operation::BroadcastBarrier => {
                world.broadcast(&mut incoming[..bytes], root)?;
                world.barrier()
            }
            Operation::Reduce => world.reduce(terms, sums, Sum, root),
            Operation::AllReduce => world.all_reduce_into(terms, sums, Sum),
            Operation::ReduceScatter => {
                world.reduce_scatter_block(&blocks.terms[..all / 8], sums, Sum)
            }
            Operation::Gather => world.gather(&outgoing[..bytes], &mut incoming[..all], root),
            Operation::Scatter => world.scatter(&outgoing[..all], &mut incoming[..bytes], root),
            Operation::AllGather => world.all_gather(&outgoing[..bytes], &mut incoming[..all]),
            Operation::AllToAll => world.all_to_all(&outgoing[..all], &mut incoming[..all]),
        }
    }

    /// Writes anew the data that this process gives to an operation.
    fn renew(self, world: &World, blocks: &mut Blocks, root: usize, bytes: usize, turn: u64) {
        let (value, all) = ((turn % 64) as u8, bytes * world.size());
        match self {
            Operation::Barrier => {}
            Operation::Reduce | Operation::AllReduce => {
                blocks.terms[..bytes / 8].fill(f64::from_ne_bytes([value; 8]));
            }
            Operation::ReduceScatter => {
                blocks.terms[..all / 8].fill(f64::from_ne_bytes([value; 8]));
            }
            Operation::Gather | Operation::AllGather => blocks.outgoing[..bytes].fill(value),
            Operation::AllToAll => blocks.outgoing[..all].fill(value),
            _ if world.rank() != root => {}
            Operation::Scatter => blocks.outgoing[..all].fill(value),
            Operation::Broadcast | Operation::BroadcastBarrier => {
                blocks.incoming[..bytes].fill(value);
            }
        }
    }

    fn has_root(self) -> bool {
        !matches!(
            self,
            Operation::AllReduce
                | Operation::ReduceScatter
                | Operation::AllGather
                | Operation::AllToAll
        )
    }

    /// Whether its root moves on; in a barrier it is the one who comes late while it is checked.
    fn moves(self) -> bool {
        self.has_root() && self != Operation::Barrier
    }
}

/// Every size.
pub(crate) fn measure(bench: &Bench, operation: Operation) -> Measured {
    let mut blocks = Blocks::new(bench);
    let sizes = if operation == Operation::Barrier { &[0][..] } else { &bench.settings.bytes };
    sizes
        .iter()
        .try_for_each(|&bytes| measure_over(bench, &bench.world, &mut blocks, "", operation, bytes))
}

/// Barrier, allreduce and broadcast of 8 bytes, whose figures are drawn from 2 to 1,000 processes.
pub(crate) fn growth(bench: &Bench) -> Measured {
    let mut blocks = Blocks::new(bench);
    let operations = [
        ("barrier", Operation::Barrier, 0),
        ("allreduce", Operation::AllReduce, 8),
        ("broadcast", Operation::Broadcast, 8),
    ];
    operations.into_iter().try_for_each(|(form, operation, bytes)| {
        measure_over(bench, &bench.world, &mut blocks, form, operation, bytes)
    })
}

/// The operation in the manner of a world; the timing goes on in the usual one.
pub(crate) fn measure_over(
    bench: &Bench,
    way: &World,
    blocks: &mut Blocks,
    form: &str,
    operation: Operation,
    bytes: usize,
) -> Measured {
    let size = bench.world.size();
    let roots = if operation.has_root() { size } else { 1 };
    (0..roots).try_for_each(|root| blocks.check(bench, operation, root, bytes))?;
    let step = if operation.moves() { size as u64 } else { 1 };
    let batches = Batches { step, ..bench.batches(form, bytes) };
    let is_new = bench.settings.is_new;
    let batch = |iterations| back_to_back(way, (blocks, is_new), operation, iterations, bytes);
    Ok(batches.run(batch)?)
}

fn back_to_back(
    world: &World,
    (blocks, is_new): (&mut Blocks, bool),
    operation: Operation,
    iterations: u64,
    bytes: usize,
) -> Result<Duration> {
    let size = world.size() as u64;
    world.barrier()?;
    let start = Instant::now();
    for turn in 0..iterations {
        let root = (turn % size) as usize;
        if is_new {
            operation.renew(world, blocks, root, bytes, turn);
        }
        operation.call(world, blocks, root, bytes)?;
    }
    Ok(start.elapsed())
}

/// Room for a block of every rank, and for the terms and sums of the reductions. All is touched by
/// the checks, before anything is timed.
pub(crate) struct Blocks {
    outgoing: Paged<u8>,
    incoming: Paged<u8>,
    pub(crate) terms: Paged<f64>,
    pub(crate) sums: Paged<f64>,
}

impl Blocks {
    pub(crate) fn new(bench: &Bench) -> Blocks {
        let block = bench.settings.largest();
        let (all, offset) = (block * bench.world.size(), bench.settings.offset);
        Blocks {
            outgoing: Paged::new(0, all, offset),
            incoming: Paged::new(0, all, offset),
            terms: Paged::new(0.0, all / 8, offset),
            sums: Paged::new(0.0, block / 8, offset),
        }
    }

    /// One operation of which every place of the result is looked at in every process.
    pub(crate) fn check(
        &mut self,
        bench: &Bench,
        operation: Operation,
        root: usize,
        bytes: usize,
    ) -> Measured {
        let world = &bench.world;
        if operation == Operation::Barrier {
            return check_barrier(bench, root);
        }
        self.prepare(world, operation, root, bytes);
        operation.call(world, self, root, bytes)?;
        if self.is_right(world, operation, root, bytes) {
            Ok(())
        } else {
            Err(bench.wrong("a wrong result"))
        }
    }

    fn prepare(&mut self, world: &World, operation: Operation, root: usize, bytes: usize) {
        let own = world.rank();
        self.incoming[..bytes * world.size()].fill(0);
        self.sums[..bytes / 8].fill(0.0);
        match operation {
            Operation::Barrier => {}
            Operation::Broadcast | Operation::BroadcastBarrier => {
                if own == root {
                    fill(&mut self.incoming[..bytes], root, 0);
                }
            }
            Operation::Reduce | Operation::AllReduce | Operation::ReduceScatter => {
                for (place, term) in self.terms.iter_mut().enumerate() {
                    *term = weight(place) * (own + 1) as f64;
                }
            }
            Operation::Gather | Operation::AllGather => fill(&mut self.outgoing[..bytes], own, 0),
            Operation::Scatter | Operation::AllToAll => {
                for to in 0..world.size() {
                    fill(&mut self.outgoing[to * bytes..][..bytes], own, to);
                }
            }
        }
    }

    fn is_right(&self, world: &World, operation: Operation, root: usize, bytes: usize) -> bool {
        let (own, size) = (world.rank(), world.size());
        let every_block =
            |to| (0..size).all(|from| holds(&self.incoming[from * bytes..][..bytes], from, to));
        match operation {
            Operation::Barrier => true,
            Operation::Broadcast | Operation::BroadcastBarrier => {
                holds(&self.incoming[..bytes], root, 0)
            }
            Operation::Reduce => own != root || self.holds_sums(size, 0, bytes),
            Operation::AllReduce => self.holds_sums(size, 0, bytes),
            Operation::ReduceScatter => self.holds_sums(size, own * (bytes / 8), bytes),
            Operation::Gather => own != root || every_block(0),
            Operation::Scatter => holds(&self.incoming[..bytes], root, own),
            Operation::AllGather => every_block(0),
            Operation::AllToAll => every_block(own),
        }
    }

    /// Checks the sums of all terms from the first one on. They are whole numbers, so they are exact in any order.
    pub(crate) fn holds_sums(&self, size: usize, first: usize, bytes: usize) -> bool {
        let factor = (size * (size + 1) / 2) as f64;
        let sums = self.sums[..bytes / 8].iter().enumerate();
        sums.into_iter().all(|(place, sum)| *sum == weight(first + place) * factor)
    }
}

/// Late ones arrive after a while; nobody may leave before the last has come. All look at one clock.
fn check_barrier(bench: &Bench, late: usize) -> Measured {
    let world = &bench.world;
    // Up to four late ones: their naps add up.
    if !late.is_multiple_of(world.size() / 4 + 1) {
        return Ok(());
    }
    if world.rank() == late {
        thread::sleep(Duration::from_millis(3));
    }
    let arrived_s = now_s();
    world.barrier()?;
    let left_s = now_s();
    if left_s < world.all_reduce(arrived_s, Maximum)? {
        return Err(bench.wrong("leave to go on from a barrier to which not everybody had come"));
    }
    Ok(())
}

pub(crate) fn now_s() -> f64 {
    now_ns() as f64 * 1e-9
}

pub(crate) fn fill(block: &mut [u8], from: usize, to: usize) {
    let bytes = block.len();
    for (place, byte) in block.iter_mut().enumerate() {
        *byte = pattern(place, bytes, from, to);
    }
}

pub(crate) fn holds(block: &[u8], from: usize, to: usize) -> bool {
    let bytes = block.len();
    block.iter().enumerate().all(|(place, byte)| *byte == pattern(place, bytes, from, to))
}

/// A pattern that differs by size, place, sender and receiver; the same in both programs.
fn pattern(place: usize, bytes: usize, from: usize, to: usize) -> u8 {
    (place * 131 + bytes * 7 + from * 89 + to * 37 + 1) as u8
}

fn weight(place: usize) -> f64 {
    (place % 1000 + 1) as f64
}
