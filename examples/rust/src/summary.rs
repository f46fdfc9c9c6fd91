//! What a run has cost: messages, bytes, time waiting.

use std::fmt;
use std::time::Duration;

use indicatif::HumanCount;
use landeck::{Job, Result};

use crate::gather::gather;

/// What the processes of a job have counted until now, added up.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// How many processes there are.
    pub processes: usize,
    /// How long the work took.
    pub time: Duration,
    /// Messages that all processes have sent.
    pub messages: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// How long all processes have waited, added up.
    pub waited: Duration,
    /// Who waited longest, if anybody has.
    pub longest: Option<Longest>,
}

/// The process that waited longest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Longest {
    /// Its rank.
    pub rank: usize,
    /// How long it has waited in all.
    pub waited: Duration,
    /// The rank that its longest wait was for.
    pub on: Option<usize>,
}

/// What one process sends to rank 0: messages, bytes, nanoseconds waiting, and the rank that the
/// longest wait was for, plus one.
type Row = [u64; 4];

impl Summary {
    /// Adds up at rank 0; the other processes get nothing.
    ///
    /// # Errors
    /// As [`gather`].
    pub fn collect(job: &Job, time: Duration) -> Result<Option<Self>> {
        let own = job.counters()?;
        let row: Row = [
            own.messages_sent,
            own.bytes_sent,
            own.waited_ns,
            own.longest_wait_peer_plus_one, // slots are ranks in the first world of a job
        ];
        Ok(gather(&job.world(), row)?.map(|rows| Self::of(&rows, time)))
    }

    fn of(rows: &[Row], time: Duration) -> Self {
        let sum = |column: usize| rows.iter().map(|row| row[column]).sum();
        let longest = rows.iter().enumerate().max_by_key(|(_, row)| row[2]);
        let longest = longest.filter(|(_, row)| row[2] > 0).map(|(rank, row)| Longest {
            rank,
            waited: Duration::from_nanos(row[2]),
            on: (row[3] as usize).checked_sub(1),
        });
        Self {
            processes: rows.len(),
            time,
            messages: sum(0),
            bytes: sum(1),
            waited: Duration::from_nanos(sum(2)),
            longest,
        }
    }

    /// The share of their time that the processes have spent waiting, in percent.
    pub fn waited_percent(&self) -> f64 {
        let total = self.time.as_secs_f64() * self.processes as f64;
        100.0 * self.waited.as_secs_f64() / total.max(f64::MIN_POSITIVE)
    }
}

/// `4 processes, 2.1 s: 16,000 messages, 131 MB, 3% of the time waiting (most: rank 2, 0.09 s on
/// rank 1)`
impl fmt::Display for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.processes == 1 { "" } else { "es" };
        write!(
            formatter,
            "{} process{plural}, {:.1} s: {} messages, {}, {:.0}% of the time waiting",
            self.processes,
            self.time.as_secs_f64(),
            HumanCount(self.messages),
            bytes_text(self.bytes),
            self.waited_percent(),
        )?;
        let Some(longest) = self.longest else { return Ok(()) };
        write!(formatter, " (most: rank {}, {:.2} s", longest.rank, longest.waited.as_secs_f64())?;
        match longest.on {
            Some(rank) => write!(formatter, " on rank {rank})"),
            None => write!(formatter, ")"),
        }
    }
}

/// Bytes in the unit that leaves a short number.
fn bytes_text(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.0} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.0} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_of_all_processes_become_one_line() {
        let rows = [
            [4_000, 40_000_000, 20_000_000, 2],
            [4_000, 40_000_000, 40_000_000, 3],
            [8_000, 51_000_000, 90_000_000, 2],
        ];
        let summary = Summary::of(&rows, Duration::from_millis(2_100));
        assert_eq!(
            summary.to_string(),
            "3 processes, 2.1 s: 16,000 messages, 131 MB, 2% of the time waiting \
             (most: rank 2, 0.09 s on rank 1)"
        );
    }

    #[test]
    fn one_process_waits_for_nobody() {
        let summary = Summary::of(&[[0, 0, 0, 0]], Duration::from_secs(1));
        assert_eq!(
            summary.to_string(),
            "1 process, 1.0 s: 0 messages, 0 B, 0% of the time waiting"
        );
    }
}
