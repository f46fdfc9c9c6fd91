//! Lanes of two daemons.

use crate::machines::lanes;

use crate::by_seed;

#[test]
fn a_pair_has_one_lane_and_gets_what_it_wants() {
    let reports = by_seed(400, lanes::run);
    if reports.len() > 1 {
        let ends: usize = reports.iter().map(|report| report.ends).sum();
        assert!(ends > 5_000, "only {ends} ends of lanes");
        let restarts: u32 = reports.iter().map(|report| report.restarts).sum();
        assert!(restarts > 1_000, "only {restarts} daemons started again");
    }
}

#[test]
fn a_seed_gives_one_run() {
    let of = |seed| lanes::run(seed).unwrap_or_else(|failure| panic!("\n{failure}"));
    assert_eq!(of(5), of(5));
    assert_ne!(of(5).hash, of(6).hash);
}
