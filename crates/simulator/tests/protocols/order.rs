//! Ordered groups over hosts.

use crate::machines::order::{self, OrderReport, OrderSetting};

use crate::by_seed;

#[test]
fn groups_with_all_faults_keep_all_properties() {
    let reports = by_seed(200, |seed| order::run(&OrderSetting::drawn(seed)));
    if reports.len() > 1 {
        let sum = |of: fn(&OrderReport) -> u32| reports.iter().map(of).sum::<u32>();
        println!(
            "takeovers {} losses {} views {} messages {} answers {} survivors {} stops {} stale {}",
            sum(|it| it.takeovers),
            sum(|it| it.losses),
            sum(|it| it.views),
            sum(|it| it.messages),
            sum(|it| it.answers),
            sum(|it| it.survivors),
            sum(|it| it.stops),
            sum(|it| it.stale as u32),
        );
    }
}
