//! Counts messages of operations, from the counters that every process keeps.

use landeck::unstable::JobInternals;
use landeck::{Result, Sum};

use crate::{Bench, Measured};

/// Operations that are counted together.
const COUNTED: u64 = 8;
/// Attempts to see what the counting itself costs; the least of them counts.
const ATTEMPTS: usize = 3;

/// Prints how many messages all processes together send in one of these operations.
pub(crate) fn print_messages(
    bench: &Bench,
    form: &str,
    bytes: usize,
    mut operation: impl FnMut() -> Result<()>,
) -> Result<()> {
    let world = &bench.world;
    world.barrier()?;
    let before = bench.job.counters().messages_sent;
    for _ in 0..COUNTED {
        operation()?;
    }
    let own = bench.job.counters().messages_sent - before;
    let all = world.all_reduce(own, Sum)?;
    if world.rank() == 0 {
        bench.print(form, bytes, "messages", all as f64 / COUNTED as f64);
    }
    Ok(())
}

/// Counts everything that is sent on all hosts while one member calls, servers included.
pub(crate) struct Counting<'a> {
    bench: &'a Bench,
    /// Messages of the barriers around a call.
    barriers: u64,
}

impl<'a> Counting<'a> {
    /// Measures first what the counting costs.
    pub(crate) fn new(bench: &'a Bench) -> Measured<Counting<'a>> {
        let here = bench.world.split_by_host(0)?.size();
        bench.needs(here == 1, "one process on each host")?;
        let mut counting = Counting { bench, barriers: 0 };
        let costs = (0..ATTEMPTS).map(|_| Ok(counting.cost(|| Ok(()))?.0));
        let costs = costs.collect::<Result<Vec<u64>>>()?;
        counting.barriers = costs.into_iter().min().unwrap_or(0);
        Ok(counting)
    }

    /// Returns how many messages the members' parts cost, and the result of this member's part.
    pub(crate) fn cost<T>(&self, part: impl FnOnce() -> Result<T>) -> Result<(u64, T)> {
        let world = &self.bench.world;
        world.barrier()?;
        let before = self.sent_here();
        world.barrier()?;
        let result = part()?;
        world.barrier()?;
        let own = self.sent_here() - before;
        Ok((world.all_reduce(own, Sum)?.saturating_sub(self.barriers), result))
    }

    /// Prints a cost.
    pub(crate) fn print(&self, call: &str, bytes: usize, messages: u64) {
        if self.bench.world.rank() == 0 {
            self.bench.print(call, bytes, "messages", messages as f64);
        }
    }

    /// The number of messages that the process of this host and servers beside it have sent.
    fn sent_here(&self) -> u64 {
        let segment = self.bench.job.segment();
        (0..segment.plan().slots()).map(|slot| segment.counters(slot).messages_sent).sum()
    }
}
