//! The machines of several hosts, by seed.
//!
//! A failing run prints its seed and its last events. `LANDECK_SEED` set to that seed repeats this run alone.
//! `LANDECK_SOAK=1` runs more seeds, and a million simulated seconds without a false loss.

mod carried;
mod driving;
mod growth;
mod hosts;
mod incast;
mod lanes;
mod machines;
mod names;
mod order;
mod pairs;
mod routes;
mod silences;
mod stored;
mod voters;

use crate::machines::ProtocolFailure;
use landeck_testing::{Random, seed};

/// Whether this is the long form.
fn is_soak() -> bool {
    std::env::var_os("LANDECK_SOAK").is_some()
}

/// Runs seeds, and shows the first failure. With `LANDECK_SEED` set that seed alone runs.
fn by_seed<R>(runs: u64, run: impl Fn(u64) -> Result<R, ProtocolFailure>) -> Vec<R> {
    let is_replay = std::env::var_os("LANDECK_SEED").is_some();
    let first = seed();
    let mut random = Random::new(first);
    let runs = match is_replay {
        true => 1,
        false => runs * if is_soak() { 40 } else { 1 },
    };
    let seeds = (0..runs).map(|number| if number == 0 { first } else { random.bits() });
    seeds.map(|seed| run(seed).unwrap_or_else(|failure| panic!("\n{failure}"))).collect()
}
