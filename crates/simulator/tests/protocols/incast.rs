//! Many senders and one receiver, with and without grants.

use std::time::Duration;

use crate::machines::incast::{IncastReport, IncastSetting, run};
use landeck_channel::grants::{CREDIT_BYTES, GrantLimits};

use crate::by_seed;

const GIGABIT: u64 = 125_000_000;

/// The time before data fill the port: a message begins up to 100 us late, then its first grant and its first packet
/// are under way, and at the end the last piece may come alone.
const BEGIN: Duration = Duration::from_micros(300);

const SETTING: IncastSetting = IncastSetting {
    senders: 24,
    bytes: 800_000,
    port_rate: GIGABIT,
    port_bytes: CREDIT_BYTES,
    limits: Some(GrantLimits::credit(CREDIT_BYTES)),
    grows: false,
    look_max: Duration::ZERO,
    stops: false,
    short_until: Duration::ZERO,
};

fn of(seeds: u64, setting: IncastSetting) -> Vec<IncastReport> {
    by_seed(seeds, |seed| run(seed, setting))
}

#[test]
fn credit_fills_the_port_and_loses_nothing() {
    for senders in [1, 4, 8, 12, 16, 24] {
        for bytes in [80_000, 800_000] {
            for port_rate in [GIGABIT / 10, GIGABIT] {
                let reports = of(2, IncastSetting { senders, bytes, port_rate, ..SETTING });
                for report in reports {
                    assert_eq!(report.drops, 0, "{senders} x {bytes} at {port_rate}: {report:?}");
                    let filled = report.time.saturating_sub(BEGIN).as_secs_f64();
                    assert!(
                        report.goodput * report.time.as_secs_f64() > 0.9 * filled,
                        "{senders} x {bytes} at {port_rate}: {report:?}"
                    );
                }
            }
        }
    }
}

/// Parts are short enough that a sender has its next grant before it has sent the last one. With grants of 32 KiB, each
/// in one part, the port is filled to 80%.
#[test]
fn processes_that_look_late_fill_the_port() {
    let look_max = Duration::from_millis(8);
    let (bytes, port_rate) = (1_600_000, GIGABIT / 10);
    for senders in [4, 8, 12] {
        for report in of(2, IncastSetting { senders, bytes, port_rate, look_max, ..SETTING }) {
            assert!(report.goodput > 0.83, "{senders} senders: {report:?}");
        }
    }
}

#[test]
fn without_grants_the_port_drops_and_time_is_lost() {
    for report in of(4, IncastSetting { limits: None, ..SETTING }) {
        assert!(report.drops > 100 && report.goodput < 0.8, "{report:?}");
    }
}

/// A network of 20 Gb/s, whose port holds much, and processes that look late.
const FAST: IncastSetting = IncastSetting {
    port_rate: 20 * GIGABIT,
    port_bytes: 64 << 20,
    look_max: Duration::from_micros(200),
    ..SETTING
};

#[test]
fn a_credit_that_grows_costs_no_time_where_the_port_is_fast() {
    let mean = |reports: Vec<IncastReport>| {
        reports.iter().map(|report| report.goodput).sum::<f64>() / reports.len() as f64
    };
    for senders in [4, 8, 24] {
        let bytes = 96_000_000 / u64::from(senders);
        let all_at_once = IncastSetting { senders, bytes, limits: None, ..FAST };
        let none = mean(of(3, all_at_once));
        let limits = SETTING.limits;
        let fixed = mean(of(3, IncastSetting { limits, ..all_at_once }));
        let grown = mean(of(3, IncastSetting { limits, grows: true, ..all_at_once }));
        assert!(fixed < 0.7 * none, "{senders} senders, {none} without grants: {fixed}");
        assert!(grown > 0.9 * none, "{senders} senders, {none} without grants: {grown}");
    }
}

#[test]
fn a_credit_that_grows_stays_small_where_the_port_is_slow() {
    for port_rate in [GIGABIT / 10, GIGABIT] {
        let setting = IncastSetting { port_rate, ..SETTING };
        for report in of(3, IncastSetting { grows: true, ..setting }) {
            assert_eq!(report.drops, 0, "{port_rate}: {report:?}");
            assert!(report.goodput > 0.9, "{port_rate}: {report:?}");
        }
    }
}

/// The port drops what is more than the usual credit, though it is fast: then the credit grows rarely.
#[test]
fn a_credit_that_grows_loses_little_where_the_port_is_fast_and_small() {
    let port_bytes = CREDIT_BYTES;
    let setting = IncastSetting { bytes: 8_000_000, port_bytes, ..FAST };
    let packets = u64::from(setting.senders) * setting.bytes / 1_448;
    for grown in of(3, IncastSetting { grows: true, ..setting }) {
        assert!(grown.drops < packets / 50, "{grown:?}");
    }
    for none in of(1, IncastSetting { limits: None, ..setting }) {
        assert!(none.drops > packets / 10, "{none:?}");
    }
}

#[test]
fn senders_that_stop_keep_no_others_waiting() {
    let setting = IncastSetting { stops: true, port_bytes: 16 * CREDIT_BYTES, ..SETTING };
    of(40, setting);
    of(10, IncastSetting { senders: 8, ..setting });
}

#[test]
fn a_long_message_arrives_beside_a_stream_of_short_ones() {
    let short_until = Duration::from_secs(4);
    let (bytes, port_rate) = (400_000, GIGABIT / 10);
    of(4, IncastSetting { senders: 3, bytes, port_rate, short_until, ..SETTING });
}

#[test]
fn a_seed_gives_one_run_of_senders() {
    let of = |seed| run(seed, SETTING).unwrap_or_else(|failure| panic!("\n{failure}"));
    assert_eq!(of(5), of(5));
    assert_ne!(of(5).hash, of(6).hash);
}
