//! What a run has cost, in one line: messages, bytes, time waiting.

use std::time::Duration;

use landeck::host::report;
use landeck::memory::Counters;
use landeck::{Job, Result};

use crate::gather::gather;

/// Adds up what all processes have counted until now, at rank 0; the other processes get nothing.
///
/// `4 processes, 2.1 s: 16,000 messages, 131 MB, 3% of the time waiting (most: rank 2, 0.09 s,
/// longest on rank 1)`
///
/// The launcher prints the same line about a whole job when it is asked for (`--summary`). Here it
/// is about a part of the program, without what comes before and after.
///
/// # Errors
/// As [`gather`].
pub fn summary(job: &Job, time: Duration) -> Result<Option<String>> {
    let own = job.counters()?;
    let row = [own.messages_sent, own.bytes_sent, own.waited_ns, own.longest_wait_peer_plus_one];
    let rows = gather(&job.world(), row)?;
    Ok(rows.map(|rows| {
        let counters: Vec<Counters> = rows.into_iter().map(counters_of).collect();
        report::summary(&counters, time).trim_end().to_owned()
    }))
}

fn counters_of(
    [messages_sent, bytes_sent, waited_ns, longest_wait_peer_plus_one]: [u64; 4],
) -> Counters {
    Counters {
        messages_sent,
        bytes_sent,
        waited_ns,
        longest_wait_peer_plus_one,
        ..Counters::default()
    }
}
