//! Voters of a machine.

use crate::machines::voters::VotersReport;
use crate::machines::voters_faults;

use crate::by_seed;

#[test]
fn voters_under_all_faults_keep_one_log() {
    let reports = by_seed(200, voters_faults::run);
    if reports.len() > 1 {
        let sum = |of: fn(&VotersReport) -> u32| reports.iter().map(of).sum::<u32>();
        let all = reports.iter().fold(VotersReport::default(), |all, it| VotersReport {
            committed: all.committed + it.committed,
            dropped: [0, 1, 2].map(|kind| all.dropped[kind] + it.dropped[kind]),
            ..all
        });
        let (arbiters, lost) = (sum(|it| it.arbiters), sum(|it| it.former_lost));
        println!(
            "{arbiters} {lost} {all:?} ch {} re {} st {} in {} bo {} ref {} beh {}",
            sum(|it| it.changes),
            sum(|it| it.restored),
            sum(|it| it.stops),
            sum(|it| it.stops_inside),
            sum(|it| it.boots),
            sum(|it| it.refused),
            sum(|it| it.behind)
        );
    }
}

#[test]
fn a_seed_gives_one_run() {
    let of = |seed| voters_faults::run(seed).unwrap_or_else(|failure| panic!("\n{failure}"));
    assert_eq!(of(5), of(5));
    assert_ne!(of(5).hash, of(6).hash);
}
