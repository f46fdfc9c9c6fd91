//! Batches: many iterations between two looks at the clock, as many as make a batch long enough.
//!
//! Rank 0 decides how many iterations a batch has and tells its followers, the ranks behind it; each
//! of them runs the batch and, if all times count, reports its own, of which the longest counts.

use std::time::{Duration, Instant};

use landeck::Result;

use crate::Bench;
use crate::words::{receive_value, receive_word, send_value, send_word, tags};

/// A measured operation, and the way its batches are run.
pub(crate) struct Batches<'a> {
    pub(crate) bench: &'a Bench,
    pub(crate) form: &'a str,
    pub(crate) bytes: usize,
    /// The ranks 1 to this take part.
    pub(crate) followers: usize,
    /// Whether the time of the slowest counts, or that of rank 0.
    pub(crate) slowest_counts: bool,
    /// The divisor of an iteration's time: 2 for the half of a round trip.
    pub(crate) divisor: f64,
    /// A batch has a multiple of so many iterations.
    pub(crate) step: u64,
}

impl Bench {
    /// Batches of all ranks, of whose times the longest counts.
    pub(crate) fn batches<'a>(&'a self, form: &'a str, bytes: usize) -> Batches<'a> {
        let followers = self.world.size() - 1;
        Batches { bench: self, form, bytes, followers, slowest_counts: true, divisor: 1.0, step: 1 }
    }
}

impl Batches<'_> {
    /// Runs them in rank 0 and its followers; the others must not call.
    pub(crate) fn run(&self, mut batch: impl FnMut(u64) -> Result<Duration>) -> Result<()> {
        if self.bench.world.rank() > 0 {
            return self.follow(&mut batch);
        }
        let stop = Instant::now() + Duration::from_secs_f64(self.bench.settings.limit_s);
        let iterations = self.calibrate(&mut batch)?;
        for _ in 0..self.bench.settings.batches {
            let took = self.lead(&mut batch, iterations)?.as_nanos() as f64 / iterations as f64;
            self.bench.print(self.form, self.bytes, "ns", took / self.divisor);
            if Instant::now() > stop {
                break;
            }
        }
        (1..=self.followers)
            .try_for_each(|other| send_word(&self.bench.world, 0, other, tags::CONTROL))
    }

    fn lead(
        &self,
        batch: &mut impl FnMut(u64) -> Result<Duration>,
        iterations: u64,
    ) -> Result<Duration> {
        for other in 1..=self.followers {
            send_word(&self.bench.world, iterations, other, tags::CONTROL)?;
        }
        let mut longest = batch(iterations)?;
        if self.slowest_counts {
            for other in 1..=self.followers {
                longest =
                    longest.max(Duration::from_secs_f64(receive_value(&self.bench.world, other)?));
            }
        }
        Ok(longest)
    }

    fn follow(&self, batch: &mut impl FnMut(u64) -> Result<Duration>) -> Result<()> {
        loop {
            let iterations = receive_word(&self.bench.world, 0, tags::CONTROL)?;
            if iterations == 0 {
                return Ok(());
            }
            let elapsed = batch(iterations)?;
            if self.slowest_counts {
                send_value(&self.bench.world, elapsed.as_secs_f64(), 0)?;
            }
        }
    }

    /// A batch must be long twice in a row: a single one may have been disturbed.
    fn calibrate(&self, batch: &mut impl FnMut(u64) -> Result<Duration>) -> Result<u64> {
        let stop = Instant::now() + Duration::from_secs_f64(self.bench.settings.limit_s / 2.0);
        let (mut iterations, mut long_enough) = (self.step, 0);
        while long_enough < 2 && Instant::now() < stop {
            let elapsed_ms = self.lead(batch, iterations)?.as_secs_f64() * 1e3;
            if elapsed_ms >= self.bench.settings.batch_ms {
                long_enough += 1;
                continue;
            }
            // At most tenfold: the first batches are slow, because connections are made in them.
            let factor = (1.2 * self.bench.settings.batch_ms / elapsed_ms.max(1e-9)).min(10.0);
            let wanted = (iterations as f64 * factor) as u64 + 1;
            iterations = wanted.next_multiple_of(self.step);
            long_enough = 0;
        }
        Ok(iterations)
    }
}
