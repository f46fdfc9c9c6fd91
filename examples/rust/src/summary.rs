//! The cost of a run in one line: messages, bytes, time waiting.

use std::time::Duration;

use landeck::unstable::JobInternals;
use landeck::unstable::host::report::{self, Deeds};
use landeck::unstable::memory::Counters;
use landeck::{Job, Result};

use crate::gather::gather;

/// Adds up what all processes have counted until now, at rank 0; the other processes get nothing.
///
/// `4 processes, 2.1 s: 16,000 messages, 131 MB, 3% of the time waiting (most: rank 2, 0.09 s;
/// 0.08 s of it on rank 1)`
///
/// The launcher prints the same line about a whole job when it is asked for (`--summary`). Here it
/// is about a part of the program, without what comes before and after.
///
/// # Errors
/// As [`gather`].
pub fn summary(job: &Job, time: Duration) -> Result<Option<String>> {
    let own = job.counters();
    let segment = job.segment();
    let most = segment.waited_for(job.slot()).first().copied();
    let most =
        most.and_then(|most| Some((u64::from(segment.rank_of_peer(most.peer)?) + 1, most.ns)));
    let (rank_plus_one, ns) = most.unwrap_or_default();
    let row = [own.messages_sent, own.bytes_sent, own.waited_ns, rank_plus_one, ns];
    let rows = gather(&job.world(), row)?;
    Ok(rows.map(|rows| {
        let deeds: Vec<Deeds> = rows.into_iter().map(deeds_of).collect();
        let name = |rank| segment.process_in_words(Some(rank as usize), segment.peer_of_rank(rank));
        report::summary(&deeds, time, name).trim_end().to_owned()
    }))
}

fn deeds_of([messages_sent, bytes_sent, waited_ns, rank_plus_one, ns]: [u64; 5]) -> Deeds {
    let counters = Counters { messages_sent, bytes_sent, waited_ns, ..Counters::default() };
    let rank = rank_plus_one.checked_sub(1).map(|rank| (rank as u32, ns));
    Deeds::new(counters, rank)
}
