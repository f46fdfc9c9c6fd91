//! Counts what connections between hosts carry in collective operations, and their system calls.

use landeck::Sum;
use landeck::unstable::JobInternals;

use crate::collective::{Blocks, Operation};
use crate::{Bench, Trouble};

/// So often each process is the root of a counted operation.
const TURNS: usize = 2;
const COUNTED: [(&str, Operation); 4] = [
    ("barrier", Operation::Barrier),
    ("broadcast", Operation::Broadcast),
    ("allreduce", Operation::AllReduce),
    ("alltoall", Operation::AllToAll),
];

/// Prints what all processes together cost in one operation, for each operation and size.
pub(crate) fn measure(bench: &Bench) -> Result<(), Trouble> {
    let mut blocks = Blocks::new(bench);
    for (name, operation) in COUNTED {
        let none = [0];
        let sizes = if operation == Operation::Barrier { &none[..] } else { &bench.settings.bytes };
        for &bytes in sizes {
            count(bench, &mut blocks, (name, operation), bytes)?;
        }
    }
    Ok(())
}

fn count(
    bench: &Bench,
    blocks: &mut Blocks,
    (name, operation): (&str, Operation),
    bytes: usize,
) -> Result<(), Trouble> {
    let (world, size) = (&bench.world, bench.world.size());
    // Connections are made before anything is counted.
    (0..size).try_for_each(|root| operation.call(world, blocks, root, bytes))?;
    world.barrier()?;
    let before = bench.job.traffic()?;
    world.barrier()?;
    let middle = bench.job.traffic()?;
    for turn in 0..TURNS * size {
        operation.call(world, blocks, turn % size, bytes)?;
    }
    world.barrier()?; // nothing waits to be sent behind it
    let own = bench.job.traffic()?.since(middle).since(middle.since(before));
    let counts = [
        ("frames", own.frames),
        ("reports", own.reports),
        ("bytes", own.bytes),
        ("sends", own.sends),
        ("receives", own.receives),
        ("looks", own.looks),
    ];
    let mut sums = counts.map(|(_, count)| count);
    world.all_reduce_in_place(&mut sums, Sum)?;
    if world.rank() == 0 {
        for ((unit, _), sum) in counts.into_iter().zip(sums) {
            let each = sum as f64 / (TURNS * size) as f64;
            bench.print(name, bytes, unit, each);
        }
    }
    Ok(())
}
