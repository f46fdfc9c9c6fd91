//! Connections that carry nothing.

use crate::machines::silences;

use crate::by_seed;

#[test]
fn a_connection_is_given_up_when_it_carries_nothing_and_only_then() {
    let reports = by_seed(400, silences::run);
    if reports.len() > 1 {
        let given_up = reports.iter().filter(|report| report.is_given_up).count();
        let stops: u32 = reports.iter().map(|report| report.stops).sum();
        assert!(given_up > 200 && stops > 400, "{given_up} of {}, {stops} stops", reports.len());
    }
}

#[test]
fn a_seed_gives_one_run() {
    let of = |seed| silences::run(seed).unwrap_or_else(|failure| panic!("\n{failure}"));
    assert_eq!(of(5), of(5));
    assert_ne!(of(5).hash, of(6).hash);
}
