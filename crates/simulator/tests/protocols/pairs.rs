//! Positions of a pair.

use crate::machines::pairs;

use crate::by_seed;

#[test]
fn lanes_that_break_lose_nothing_and_repeat_nothing() {
    let reports = by_seed(40, pairs::run);
    assert!(reports.iter().all(|report| report.frames == 8_000 && report.lanes > 5));
}

#[test]
fn a_seed_gives_one_run() {
    let of = |seed| pairs::run(seed).unwrap_or_else(|failure| panic!("\n{failure}"));
    assert_eq!(of(5), of(5));
    assert_ne!(of(5).hash, of(6).hash);
}
