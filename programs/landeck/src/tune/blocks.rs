//! Measures for each operation from which length on it is faster if members read each other's blocks where they lie.
//!
//! The data are written before each operation and read after it, as programs do ([`super::one_copy`] says why).

use super::instruments::{report, share_of};
use landeck::{Result, Sum, World};
use landeck_collectives::{BoardStyle, CostParameters, Operation, Way};
use std::hint::black_box;
use std::time::Instant;

/// The most members that measure.
pub(super) const MEMBERS_MAX: u32 = 4;
const LENGTHS_KIB: [u64; 4] = [16, 64, 256, 1_024];
const WORDS_PER_KIB: usize = 128;
const BATCHES: usize = 7;
const CALLS: usize = 4;
/// The distance of words that are read: one in each cache line.
const LINE_WORDS: usize = 8;
/// Blocks are read where they lie where that needs at most so much of the usual time, and longer ones need no more time.
const SHARE_MAX: f64 = 0.9;

/// Reports the length of each operation.
pub(super) fn report_lengths(world: &World) -> Result<()> {
    for operation in BoardStyle::TELLING {
        let kib = from_kib(world, operation)?;
        report(world, &name_of(operation), kib as f64);
    }
    Ok(())
}

/// The name of an operation's figure.
fn name_of(operation: Operation) -> String {
    format!("told_{operation}_from_kib").replace('-', "_")
}

fn from_kib(world: &World, operation: Operation) -> Result<u64> {
    let told = world.via(Way::Board(BoardStyle::Told));
    let mut shares = Vec::with_capacity(LENGTHS_KIB.len());
    for kib in LENGTHS_KIB.into_iter().rev() {
        let mut data = Data::of(operation, kib, world.size());
        let share = share_of([world, &told], BATCHES, |world| data.batch_s(world))?;
        shares.push((kib, share));
        if share > 1.0 {
            break;
        }
    }
    Ok(shortest(&shares))
}

/// The shortest length that gains, given the shares of the usual time, the longest length first.
fn shortest(shares: &[(u64, f64)]) -> u64 {
    let loses_nowhere = shares.iter().take_while(|(_, share)| *share <= 1.0);
    let gains = loses_nowhere.filter(|(_, share)| *share <= SHARE_MAX);
    gains.last().map_or(CostParameters::NO_LENGTH_KIB, |(kib, _)| *kib)
}

/// The buffers of a member, and the words of one block.
struct Data {
    operation: Operation,
    block: usize,
    own: Vec<u64>,
    others: Vec<u64>,
}

impl Data {
    /// Buffers for an operation whose members read so much of each other.
    fn of(operation: Operation, kib: u64, size: usize) -> Self {
        use Operation::{AllGather, Broadcast, Gather, Reduce};
        let block = kib as usize * WORDS_PER_KIB;
        let own = match operation {
            Broadcast | Gather | AllGather | Reduce => block,
            _ => block * size,
        };
        Self { operation, block, own: vec![0; own], others: vec![0; block * size] }
    }

    /// The time of some calls.
    fn batch_s(&mut self, world: &World) -> Result<f64> {
        self.call(world, 0)?; // it touches the memory
        world.barrier()?;
        let began = Instant::now();
        for number in 0..CALLS {
            self.call(world, number)?;
        }
        world.barrier()?;
        Ok(began.elapsed().as_secs_f64())
    }

    /// One operation with data that are written before and read afterwards.
    fn call(&mut self, world: &World, number: usize) -> Result<()> {
        let Self { operation, block, own, others } = self;
        let root = number % world.size();
        own.fill(black_box(number as u64));
        match operation {
            Operation::Broadcast => world.broadcast(own, root)?,
            Operation::Gather => world.gather(own, others, root)?,
            Operation::Scatter => world.scatter(own, &mut others[..*block], root)?,
            Operation::AllGather => world.all_gather(own, others)?,
            Operation::AllToAll => world.all_to_all(own, others)?,
            Operation::Reduce => world.reduce(own, &mut others[..*block], Sum, root)?,
            Operation::AllReduce => world.all_reduce_in_place(own, Sum)?,
            Operation::ReduceScatter => {
                world.reduce_scatter_block(own, &mut others[..*block], Sum)?;
            }
            Operation::Barrier | Operation::Scan | Operation::ExclusiveScan => {}
        }
        for data in [own, others] {
            black_box(data.iter().step_by(LINE_WORDS).fold(0, |sum: u64, word| sum ^ word));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_length_gains_and_no_longer_one_loses() {
        let none = CostParameters::NO_LENGTH_KIB;
        let of = |shares: [f64; 4]| {
            let lengths = LENGTHS_KIB.into_iter().rev();
            shortest(&lengths.zip(shares).collect::<Vec<_>>())
        };
        assert_eq!(of([0.8, 0.7, 0.5, 0.6]), 16);
        assert_eq!(of([0.99, 0.97, 0.5, 0.95]), 64, "longer ones lose nothing");
        assert_eq!(of([1.01, 0.5, 0.5, 0.5]), none, "the longest loses");
        assert_eq!(of([0.8, 1.2, 0.5, 0.5]), 1_024);
        assert_eq!(of([0.95, 0.95, 0.95, 0.95]), none);
    }

    #[test]
    fn every_operation_has_a_figure() {
        for operation in BoardStyle::TELLING {
            assert!(CostParameters::default().set(&name_of(operation), 16), "{operation}");
        }
    }
}
