//! Messages whose data stay on a host.

use crate::machines::stored::{self, StoredReport};

use crate::by_seed;

#[test]
fn messages_that_stay_on_a_host_are_fetched_once() {
    let reports = by_seed(300, stored::run);
    if reports.len() > 1 {
        let sum = |of: fn(&StoredReport) -> u32| reports.iter().map(of).sum::<u32>();
        let (stored, fetched) = (sum(|it| it.stored), sum(|it| it.fetched));
        assert!(stored > 6_000 && fetched > 5_000, "{stored} stored, {fetched} fetched");
        let (survived, left) = (sum(|it| it.survived), sum(|it| it.left));
        assert!(
            survived > 300 && left * 5 < survived,
            "{survived} survived their senders, {left} left"
        );
        let (refused, here) = (sum(|it| it.refused), sum(|it| it.written_here));
        assert!(refused > 5_000 && here > 1_000, "{refused} refused, {here} written here");
        let given_up = [sum(|it| it.given_up[0]), sum(|it| it.given_up[1])];
        let put_back = sum(|it| it.put_back);
        assert!(given_up.iter().all(|it| *it > 400), "{given_up:?} given up");
        assert!(put_back > 400, "{put_back} fetches put back");
        let (restarts, breaks) = (sum(|it| it.restarts), sum(|it| it.breaks));
        assert!(restarts > 2_000 && breaks > 5_000, "{restarts} restarts, {breaks} breaks");
        let deaths = sum(|it| it.deaths);
        assert!(deaths > 500, "{deaths} deaths");
    }
}

#[test]
fn a_seed_gives_one_run() {
    let of = |seed| stored::run(seed).unwrap_or_else(|failure| panic!("\n{failure}"));
    assert_eq!(of(5), of(5));
    assert_ne!(of(5).hash, of(6).hash);
}
