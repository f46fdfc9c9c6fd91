//! Voters of a machine.

use crate::machines::ProtocolFailure;
use crate::machines::voters::VotersReport;
use crate::machines::{voters_directed, voters_faults};

use crate::by_seed;

#[test]
fn voters_under_all_faults_keep_one_log() {
    let reports = by_seed(200, voters_faults::run);
    if reports.len() > 1 {
        let sum = |of: fn(&VotersReport) -> u64| reports.iter().map(of).sum::<u64>();
        let (arbiters, lost) = (sum(|it| it.arbiters.into()), sum(|it| it.former_lost.into()));
        assert!(arbiters > 600 && lost > 300, "{arbiters} arbiters, {lost} after lost ones");
        let (committed, terms) = (sum(|it| it.committed), sum(|it| it.term));
        assert!(committed > 40_000 && terms > 600, "{committed} entries, {terms} terms");
        let (changes, restored) = (sum(|it| it.changes.into()), sum(|it| it.restored.into()));
        assert!(changes > 1_000 && restored > 1_000, "{changes} changes, {restored} restored");
        let (stops, inside) = (sum(|it| it.stops.into()), sum(|it| it.stops_inside.into()));
        let boots = sum(|it| it.boots.into());
        assert!(stops > 400 && inside > 50 && boots > 100, "{stops} {inside} {boots}");
        let dropped = [0, 1, 2].map(|kind| reports.iter().map(|it| it.dropped[kind]).sum::<u64>());
        assert!(dropped.iter().all(|it| *it > 0), "{dropped:?} dropped");
        let (refused, behind) = (sum(|it| it.refused.into()), sum(|it| it.behind.into()));
        assert!(refused > 200 && behind > 20, "{refused} refused, {behind} behind");
    }
}

#[test]
fn a_seed_gives_one_run() {
    let of = |seed| voters_faults::run(seed).unwrap_or_else(|failure| panic!("\n{failure}"));
    assert_eq!(of(5), of(5));
    assert_ne!(of(5).hash, of(6).hash);
}

/// Runs a case with so many seeds.
fn each(seeds: u64, case: impl Fn(u64) -> Result<(), ProtocolFailure>) {
    (0..seeds).for_each(|seed| case(seed).unwrap_or_else(|failure| panic!("\n{failure}")));
}

#[test]
fn bridge() {
    each(20, voters_directed::bridge);
}

#[test]
fn chain() {
    each(20, voters_directed::chain);
}

#[test]
fn cut_off_and_back() {
    each(20, voters_directed::cut_off_and_back);
}

#[test]
fn restart_within_timeout() {
    each(20, voters_directed::restart_within_timeout);
}

#[test]
fn half_told_change() {
    each(128, voters_directed::half_told_change);
}

#[test]
fn snapshot_over_an_uncommitted_change_of_voters() {
    each(20, voters_directed::snapshot_over_uncommitted_change);
}
