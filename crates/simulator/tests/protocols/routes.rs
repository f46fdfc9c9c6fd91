//! Routes over gateways.

use crate::machines::routes::{self, RoutesReport};

use crate::by_seed;

#[test]
fn pairs_behind_gateways_are_connected_where_a_path_is_well() {
    let reports = by_seed(300, routes::run);
    if reports.len() > 1 {
        let sum = |of: fn(&RoutesReport) -> u32| reports.iter().map(of).sum::<u32>();
        let (all, passed) = (sum(|it| it.connections[0]), sum(|it| it.connections[1]));
        assert!(all > 1_000 && passed > 500, "{all} connections, {passed} over gateways");
        let (faults, failures) = (sum(|it| it.faults), sum(|it| it.failures));
        assert!(faults > 2_000 && failures > 2_000, "{faults} faults, {failures} failures");
    }
}

#[test]
fn a_seed_gives_one_run() {
    let of = |seed| routes::run(seed).unwrap_or_else(|failure| panic!("\n{failure}"));
    assert_eq!(of(5), of(5));
    assert_ne!(of(5).hash, of(6).hash);
}
