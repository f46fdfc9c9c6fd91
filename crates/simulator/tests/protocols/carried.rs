//! Positions of a pair that carries relayed messages, or contents of trunks.

use crate::machines::carried::{self, Use};

use crate::by_seed;

#[test]
fn relayed_messages_whose_connections_break_come_once() {
    let reports = by_seed(40, |seed| carried::run(Use::Relayed, seed));
    assert!(reports.iter().all(|report| report.frames >= 4_000 && report.connections > 10));
}

#[test]
fn contents_of_trunks_that_are_renewed_come_once() {
    let reports = by_seed(40, |seed| carried::run(Use::Trunk, seed));
    assert!(reports.iter().all(|report| report.frames >= 4_000 && report.connections > 10));
}

#[test]
fn a_seed_gives_one_run() {
    let of =
        |seed| carried::run(Use::Relayed, seed).unwrap_or_else(|failure| panic!("\n{failure}"));
    assert_eq!(of(5), of(5));
    assert_ne!(of(5).hash, of(6).hash);
}
