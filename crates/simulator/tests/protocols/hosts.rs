//! Leases, detectors and words.

use std::time::Duration;

use crate::machines::{FaultRates, HostsSetting, hosts};

use crate::{by_seed, is_soak};

/// A setting with one kind of fault, and T = 3 s.
fn with(seed: u64, faults: FaultRates) -> HostsSetting {
    let length = Duration::from_secs(1_500);
    HostsSetting {
        faults,
        process_ends: Duration::from_secs(20),
        ..HostsSetting::lossy(seed, 20, length)
    }
}

#[test]
fn hosts_with_all_faults_keep_all_properties() {
    let reports = by_seed(150, |seed| hosts::run(&HostsSetting::drawn(seed)));
    if reports.len() > 1 {
        assert!(reports.iter().map(|report| report.losses).sum::<u64>() > 100, "hosts were lost");
        assert!(
            reports.iter().map(|report| report.words).sum::<usize>() > 3_000,
            "words were given"
        );
    }
}

#[test]
fn sixty_four_hosts_keep_all_properties() {
    let faults = FaultRates {
        cut: Duration::from_secs(20),
        kill: Duration::from_secs(5),
        kill_arbiter: Duration::from_secs(30),
        restart: Duration::from_secs(30),
        reset: Duration::from_secs(5),
        ..FaultRates::default()
    };
    let setting = |seed| HostsSetting {
        hosts: 64,
        process_ends: Duration::from_secs(60),
        length: Duration::from_secs(300),
        ..with(seed, faults)
    };
    by_seed(2, |seed| hosts::run(&setting(seed)));
}

#[test]
fn cut_hosts_are_lost_in_time_and_believe_nothing() {
    let rate = Duration::from_secs(60);
    let reports = by_seed(60, |seed| {
        hosts::run(&with(seed, FaultRates { cut: rate, ..FaultRates::default() }))
    });
    assert!(reports.iter().all(|report| report.losses > 0));
}

#[test]
fn a_cut_in_one_direction_is_a_cut() {
    let faults = FaultRates { one_way_cut: Duration::from_secs(60), ..FaultRates::default() };
    let reports = by_seed(15, |seed| hosts::run(&with(seed, faults)));
    assert!(reports.iter().all(|report| report.losses > 0));
}

#[test]
fn stopped_daemons_are_not_lost() {
    let faults = FaultRates { freeze: Duration::from_secs(40), ..FaultRates::default() };
    let reports = by_seed(15, |seed| hosts::run(&with(seed, faults)));
    assert!(reports.iter().all(|report| report.losses == 0));
}

#[test]
fn killed_daemons_that_are_there_again_in_time_are_not_lost() {
    let (kill, reset) = (Duration::from_secs(10), Duration::from_secs(20));
    let faults = FaultRates { kill, reset, ..FaultRates::default() };
    let setting = |seed| HostsSetting {
        process_ends: Duration::from_secs(3),
        loss_permille: 0,
        delay_max: Duration::from_millis(100),
        kill_pause: Duration::from_millis(500),
        ..with(seed, faults)
    };
    let reports = by_seed(15, |seed| hosts::run(&setting(seed)));
    assert!(reports.iter().all(|report| report.losses == 0));
}

#[test]
fn killed_daemons_of_hosts_that_are_cut_off_do_not_prolong_their_leases() {
    let (kill, cut) = (Duration::from_secs(3), Duration::from_secs(60));
    let faults = FaultRates { kill, cut, ..FaultRates::default() };
    let setting = |seed| HostsSetting { kill_pause: Duration::from_secs(3), ..with(seed, faults) };
    let reports = by_seed(15, |seed| hosts::run(&setting(seed)));
    assert!(reports.iter().all(|report| report.losses > 0));
}

#[test]
fn a_killed_arbiter_that_is_there_again_in_time_ends_nothing() {
    let (kill_arbiter, reset) = (Duration::from_secs(5), Duration::from_secs(20));
    let faults = FaultRates { kill_arbiter, reset, ..FaultRates::default() };
    let setting = |seed| HostsSetting {
        // The record is old while there is no word.
        process_ends: Duration::from_secs(if seed % 2 == 0 { 3 } else { 600 }),
        kill_pause: Duration::from_millis(500),
        ..with(seed, faults)
    };
    let reports = by_seed(15, |seed| hosts::run(&setting(seed)));
    assert!(reports.iter().all(|report| report.losses == 0));
    // One that comes back late has not heard of hosts that were cut off meanwhile.
    let (kill_arbiter, cut) = (Duration::from_secs(30), Duration::from_secs(60));
    let faults = FaultRates { kill_arbiter, cut, ..FaultRates::default() };
    let setting = |seed| HostsSetting { kill_pause: Duration::from_secs(8), ..with(seed, faults) };
    let reports = by_seed(15, |seed| hosts::run(&setting(seed)));
    assert!(reports.iter().all(|report| report.losses > 0));
}

#[test]
fn trunks_that_break_and_hosts_that_start_anew_lose_no_word() {
    let (reset, restart) = (Duration::from_secs(2), Duration::from_secs(100));
    let faults = FaultRates { reset, restart, ..FaultRates::default() };
    // Words are slow and many, so that some are on their way when a trunk breaks.
    let setting = |seed| HostsSetting {
        process_ends: Duration::from_secs(3),
        delay_max: Duration::from_millis(200),
        length: Duration::from_secs(600),
        ..with(seed, faults)
    };
    by_seed(15, |seed| hosts::run(&setting(seed)));
}

#[test]
fn paused_hosts_are_lost_and_return_as_others() {
    let faults = FaultRates { pause: Duration::from_secs(60), ..FaultRates::default() };
    by_seed(15, |seed| hosts::run(&with(seed, faults)));
}

/// The seconds without a loss, and how many seeds share them.
const CALM_SECONDS: u64 = 20_000;
const CALM_SECONDS_SOAK: u64 = 1_000_000;
const CALM_RUNS: u64 = 8;

#[test]
fn no_host_is_lost_at_five_percent_loss() {
    let seconds = if is_soak() { CALM_SECONDS_SOAK } else { CALM_SECONDS } / CALM_RUNS;
    let seed = landeck_testing::seed();
    let losses = |run: u64| {
        let seed = seed.wrapping_add(run << 32);
        let setting = HostsSetting::lossy(seed, 50, Duration::from_secs(seconds));
        hosts::run(&setting).unwrap_or_else(|failure| panic!("\n{failure}")).losses
    };
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    std::thread::scope(|scope| {
        for first in 0..threads {
            scope.spawn(move || {
                let own = (first..CALM_RUNS).step_by(threads as usize);
                own.for_each(|run| assert_eq!(losses(run), 0));
            });
        }
    });
}

#[test]
fn a_seed_gives_one_run() {
    let of = |seed| {
        hosts::run(&HostsSetting::drawn(seed)).unwrap_or_else(|failure| panic!("\n{failure}"))
    };
    assert_eq!(of(5), of(5));
    assert_ne!(of(5).hash, of(6).hash);
}
