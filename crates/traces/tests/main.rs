//! Seeded runs of a model group: the traces of a group that keeps its promises hold, and those of one that breaks a promise
//! do not.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)] // tests may

mod model;

use landeck_testing::{Watchdog, seed};
use landeck_traces::{GroupTrace, Property, check};
use model::{Fault, Model};
use std::time::{Duration, Instant};

/// No test may take longer.
const TEST_MAX: Duration = Duration::from_secs(300);
/// Runs of the group that keeps its promises.
const RUNS: u64 = 2_000;
/// Runs in which a broken promise has to show.
const RUNS_BROKEN: u64 = 2_000;

#[test]
fn a_group_that_keeps_its_promises_holds() {
    let _watchdog = Watchdog::start(TEST_MAX);
    let (first, began) = (seed(), Instant::now());
    let (mut events, mut judged) = (0, std::collections::BTreeSet::new());
    for seed in (0..RUNS).map(|run| first.wrapping_add(run)) {
        let traces = Model::run(seed, None);
        let report = check(&traces);
        assert!(report.holds(), "LANDECK_SEED={seed}\n{report}\n{}", text(&traces));
        judged.extend(report.judged);
        events += traces.iter().map(|trace| trace.events.len()).sum::<usize>();
    }
    let missing: Vec<_> = Property::ALL.iter().filter(|it| !judged.contains(it)).collect();
    assert!(missing.is_empty(), "no run shows {missing:?}");
    let rate = RUNS as f64 / began.elapsed().as_secs_f64();
    println!("{RUNS} runs, {events} events, {rate:.0} runs a second");
}

#[test]
fn traces_survive_their_text() {
    let _watchdog = Watchdog::start(TEST_MAX);
    let first = seed();
    for seed in (0..100).map(|run| first.wrapping_add(run)) {
        for trace in Model::run(seed, None) {
            let read = GroupTrace::decode(&trace.source, trace.encode().as_bytes());
            assert_eq!(read, Ok(trace), "LANDECK_SEED={seed}");
        }
    }
}

#[test]
fn each_broken_promise_is_found() {
    let _watchdog = Watchdog::start(TEST_MAX);
    let first = seed();
    for (fault, property) in Fault::ALL {
        let mut seeds = (0..RUNS_BROKEN).map(|run| first.wrapping_add(run));
        let is_found = |seed| {
            let report = check(&Model::run(seed, Some(fault)));
            report.violations.iter().any(|violation| violation.property == property)
        };
        assert!(seeds.any(is_found), "{fault:?} does not show as {property:?}");
    }
}

fn text(traces: &[GroupTrace]) -> String {
    traces.iter().map(GroupTrace::encode).collect()
}
