//! Ordered groups over hosts.

use std::time::Duration;

use crate::machines::order::{self, Act, HomeSight, OrderReport, OrderSetting, STEPS, Step};

use crate::by_seed;

fn ran(setting: &OrderSetting) -> OrderReport {
    order::run(setting).unwrap_or_else(|failure| panic!("\n{failure}"))
}

/// The home of the first group when the faults end.
fn home(report: &OrderReport) -> HomeSight {
    report.sights[0].unwrap_or_else(|| panic!("no home is open: {report:?}"))
}

#[test]
fn groups_with_all_faults_keep_all_properties() {
    let reports = by_seed(200, |seed| order::run(&OrderSetting::drawn(seed)));
    if reports.len() > 1 {
        let sum = |of: fn(&OrderReport) -> u32| reports.iter().map(of).sum::<u32>();
        let (takeovers, losses) = (sum(|it| it.takeovers), sum(|it| it.losses));
        assert!(
            takeovers > 120 && 2 * losses < takeovers,
            "{takeovers} takeovers, {losses} losses"
        );
        let (views, stops) = (sum(|it| it.views), sum(|it| it.stops));
        assert!(views > 300 && stops > 20, "{views} views, {stops} stops at steps");
        let (messages, answers) = (sum(|it| it.messages), sum(|it| it.answers));
        assert!(messages > 60_000 && answers > 20_000, "{messages} messages, {answers} answers");
        let survivors = sum(|it| it.survivors);
        assert!(survivors > 600, "{survivors} survivors");
    }
}

/// The home ends, and so does a host at each step of the change to the next home.
#[test]
fn half_told_change() {
    let takeover = [Step::Ask, Step::Report, Step::Fetch, Step::Feed, Step::Stored, Step::View];
    for step in takeover {
        for (is_before, count) in [(true, 1), (false, 1), (true, 2), (false, 2)] {
            by_seed(3, |seed| {
                let setting = OrderSetting::calm(seed, 5).at(1_000, Act::Crash(1, 400));
                order::run(&setting.stop(1_000, step, count, is_before))
            });
        }
    }
}

#[test]
fn a_hundred_join_during_ten_changes_of_home() {
    let reports = by_seed(3, |seed| {
        let mut setting = OrderSetting {
            late_hosts: (6, Duration::from_secs(3)),
            length: Duration::from_secs(6),
            pause: Duration::from_millis(150),
            ..OrderSetting::calm(seed, 10)
        };
        for join in 0..100 {
            setting = setting.at(400 + 45 * join, Act::Join(1 + join as usize % 9));
        }
        for change in 0..7 {
            setting = setting.at(700 + 600 * change, Act::Move(1 + change as usize % 4));
        }
        for (at, host) in [(1_500, 1), (2_900, 2), (4_300, 3)] {
            setting = setting.at(at, Act::Crash(host, 200));
        }
        order::run(&setting)
    });
    assert!(reports.iter().all(|it| it.takeovers >= 6 && it.losses == 0), "{reports:?}");
}

#[test]
fn the_home_sleeps_and_wakes() {
    for (pause, is_moved) in [(300, false), (1_500, true)] {
        let reports = by_seed(5, |seed| {
            let setting = OrderSetting::calm(seed, 4).at(1_000, Act::Pause(1));
            order::run(&setting.at(1_000 + pause, Act::Resume(1)))
        });
        assert!(reports.iter().all(|it| (home(it).host != 1) == is_moved), "{reports:?}");
    }
}

#[test]
fn restart_within_the_timeout() {
    let reports = by_seed(5, |seed| {
        let setting = OrderSetting::calm(seed, 4).at(1_000, Act::Crash(1, 50));
        order::run(&setting.at(2_000, Act::Crash(2, 50)))
    });
    assert!(reports.iter().all(|it| it.takeovers > 0 && home(it).counted == 3), "{reports:?}");
}

/// The home and a holder do not reach each other; all others reach both.
#[test]
fn bridge() {
    let goes_on = |it: &OrderReport| home(it).host == 1 && home(it).lag < 40;
    let reports =
        by_seed(5, |seed| order::run(&OrderSetting::calm(seed, 4).cut(1, 3, 1_000, 3_990)));
    assert!(reports.iter().all(goes_on), "{reports:?}");
    for (from, to) in [(1, 3), (3, 1)] {
        let one_way = |seed| OrderSetting::calm(seed, 4).at(1_000, Act::Cut(from, to));
        let reports = by_seed(3, |seed| order::run(&one_way(seed)));
        assert!(reports.iter().all(goes_on), "{reports:?}");
    }
}

/// Each host reaches its neighbours and the arbiter.
#[test]
fn chain() {
    let reports = by_seed(5, |seed| {
        let mut setting = OrderSetting::calm(seed, 5).at(1_800, Act::Crash(1, 300));
        for (one, other) in [(1, 3), (1, 4), (2, 4)] {
            setting = setting.cut(one, other, 1_000, 3_990);
        }
        order::run(&setting)
    });
    assert!(reports.iter().all(|it| it.losses == 0 && home(it).lag < 40), "{reports:?}");
}

/// A host ends at each step, early and late, before and after it: each request takes effect once.
#[test]
fn repeat_at_every_step() {
    for step in STEPS {
        for (is_before, count) in [(true, 1), (false, 1), (true, 7), (false, 7)] {
            by_seed(1, |seed| {
                let setting = OrderSetting {
                    late_hosts: (1, Duration::from_secs(2)),
                    twice_permille: 200,
                    ..OrderSetting::calm(seed, 4)
                };
                order::run(&setting.stop(900, step, count, is_before))
            });
        }
    }
}

#[test]
fn views_and_messages_are_one_stream() {
    let reports = by_seed(3, |seed| {
        let mut setting = OrderSetting {
            delay_max: Duration::from_millis(40),
            loss_permille: 50,
            pause: Duration::from_millis(20),
            ..OrderSetting::calm(seed, 5)
        };
        for change in 0..20 {
            let host = 1 + change as usize % 4;
            let act = if change % 5 == 4 { Act::Leave(host, 200) } else { Act::Die(host) };
            setting = setting.at(600 + 150 * change, act);
        }
        order::run(&setting)
    });
    assert!(reports.iter().all(|it| it.losses == 0 && it.entries > 300), "{reports:?}");
}

/// A stopped holder fills the window: the home names it, and goes on when it does.
#[test]
fn a_slow_holder_is_named() {
    let reports = by_seed(3, |seed| {
        let pause = Duration::from_millis(4);
        let setting = OrderSetting { pause, ..OrderSetting::calm(seed, 4) };
        let setting = (0..30).fold(setting, |all, _| all.at(900, Act::Join(2)));
        order::run(&setting.at(1_000, Act::Freeze(3)))
    });
    assert!(reports.iter().all(|it| home(it).slow == Some(3)), "{reports:?}");
}

/// The former home reaches a holder that has not heard of the next one, and feeds it: that holder's report is worth nothing
/// before it has.
#[test]
fn a_holder_without_the_word_reports_nothing() {
    by_seed(5, |seed| {
        let setting = OrderSetting::calm(seed, 4).cut(1, 0, 1_000, 3_900);
        let cut = [Act::Cut(1, 2), Act::Cut(1, 3)];
        let setting = cut.into_iter().fold(setting, |all, act| all.at(1_200, act));
        let setting = setting.at(1_580, Act::Cut(0, 3)).at(1_640, Act::Mend(1, 3));
        order::run(&setting.at(1_950, Act::Mend(0, 3)))
    });
}

#[test]
fn holders_come_while_the_home_ends() {
    by_seed(80, |seed| {
        let setting = OrderSetting {
            late_hosts: (2, Duration::from_millis(500)),
            loss_permille: 250,
            delay_max: Duration::from_millis(20),
            length: Duration::from_secs(2),
            ..OrderSetting::calm(seed, 5)
        };
        order::run(&setting.at(300 + seed % 500, Act::Crash(1, 300)))
    });
}

#[test]
fn a_holder_comes_to_count_while_messages_flow() {
    let reports = by_seed(3, |seed| {
        let setting = OrderSetting {
            late_hosts: (1, Duration::from_secs(1)),
            pause: Duration::from_millis(5),
            delay_max: Duration::from_millis(30),
            ..OrderSetting::calm(seed, 4)
        };
        order::run(&setting)
    });
    assert!(reports.iter().all(|it| home(it).counted == 3), "{reports:?}");
}

/// The first group waits for the report of a stopped host; the second one, which that host does not hold, goes on.
#[test]
fn no_group_waits_for_the_repair_of_another() {
    let reports = by_seed(3, |seed| {
        let only = Some((3, 1));
        let setting = OrderSetting { groups: 2, only, ..OrderSetting::calm(seed, 5) };
        order::run(&setting.at(1_000, Act::Freeze(3)).at(1_200, Act::Crash(1, 400)))
    });
    for report in reports {
        assert!(report.sights[0].is_none(), "{report:?}");
        assert!(report.sights[1].is_some_and(|it| it.host != 1 && it.lag < 40), "{report:?}");
    }
}

#[test]
fn a_seed_gives_one_run() {
    let of = |seed| ran(&OrderSetting::drawn(seed));
    assert_eq!(of(5), of(5));
    assert_ne!(of(5).hash, of(6).hash);
}
