//! The costs that the heads of the architectures and docs/architectures.md name, against plans that
//! are walked: `m` clusters of `k` members, `n` members in all.
#![allow(clippy::unwrap_used)] // tests may

use std::time::Duration;

use landeck_collectives::{Group, Operation, Preset, Task, Timeline, plans};
use landeck_testing::Watchdog;

const TEST_MAX: Duration = Duration::from_secs(120);

/// Steps and messages, from root 0.
fn cost(operation: Operation, name: &str, group: &Group, segments: u32) -> (u32, u32) {
    let way = name.parse::<Preset>().unwrap().way(operation);
    let task = Task { segments, ..Task::new(operation) };
    let timeline = Timeline::of(&plans(&task, &way, group));
    (timeline.steps, timeline.messages.len() as u32)
}

/// The logarithm, rounded up.
fn log(number: u32) -> u32 {
    number.next_power_of_two().ilog2()
}

#[test]
fn clusters_of_one_size() {
    let _watchdog = Watchdog::start(TEST_MAX);
    for (m, k) in (1..=9u32).flat_map(|m| (1..=6u32).map(move |k| (m, k))) {
        let group = Group::divided(m * k, m).unwrap();
        let from_root = |name: &str, steps: u32| {
            let expected = (steps, m * k - 1);
            assert_eq!(cost(Operation::Broadcast, name, &group, 1), expected, "{name} {m} {k}");
        };
        from_root("pipeline", m + k - 2);
        from_root("daisy", m + k - 2);
        from_root("hypercube", log(m) + k - 1);
        if (m + 1).is_power_of_two() {
            from_root("hierarchy", 2 * (log(m + 1) - 1) + k - 1);
        }
        let rounds = if m.is_power_of_two() { log(m) } else { m.ilog2() + 2 };
        let (steps, _) = cost(Operation::Barrier, "hypercube", &group, 1);
        assert_eq!(steps, 2 * (k - 1) + rounds, "hypercube {m} {k}");
        let odd = if m % 2 == 1 && m > 1 { 2 } else { 0 };
        let waves = (2 * (k - 1) + m - 1 + odd, 2 * (m * k - 1));
        assert_eq!(cost(Operation::Barrier, "pipeline", &group, 1), waves, "pipeline {m} {k}");
    }
}

#[test]
fn levels_of_equal_parts() {
    let _watchdog = Watchdog::start(TEST_MAX);
    for (d, l) in [(2u32, 1u32), (2, 2), (2, 3), (3, 1), (3, 2), (4, 2)] {
        let parts = vec![d.to_string(); l as usize].join("x");
        for k in 1..=4 {
            let group = Group::whole(d.pow(l) * k).unwrap();
            let (steps, _) = cost(Operation::Broadcast, &format!("hierarchy:{parts}"), &group, 1);
            assert_eq!(steps, l * (d - 1) + k - 1, "{parts} {k}");
        }
    }
}

#[test]
fn trees_without_clusters() {
    let _watchdog = Watchdog::start(TEST_MAX);
    for n in 2..=64u32 {
        let group = Group::whole(n).unwrap();
        let steps = |name, segments| cost(Operation::Broadcast, name, &group, segments).0;
        assert_eq!((steps("flat", 1), steps("ring", 1), steps("ring", 5)), (n - 1, n - 1, n + 3));
        for name in ["knomial", "knomial:nearest-first", "butterfly", "circulant"] {
            assert_eq!(steps(name, 1), log(n), "{name} {n}");
        }
        // Binary digits behind the first, a one counting twice.
        let place_steps = |place: u32| place.ilog2() + place.count_ones() - 1;
        let binary = (1..=n).map(place_steps).max().unwrap();
        assert_eq!(steps("binary-tree", 1), binary);
        assert!(binary <= 2 * n.ilog2());
    }
    assert_eq!(cost(Operation::Broadcast, "knomial:4", &Group::whole(64).unwrap(), 1).0, 3 * 3);
}

#[test]
fn rounds_without_clusters() {
    let _watchdog = Watchdog::start(TEST_MAX);
    for n in 2..=64u32 {
        let group = Group::whole(n).unwrap();
        let of = |operation, name| cost(operation, name, &group, 1);
        let pairs = if n.is_power_of_two() { log(n) } else { n.ilog2() + 2 };
        assert_eq!(of(Operation::Barrier, "butterfly").0, pairs);
        assert_eq!(of(Operation::AllReduce, "butterfly").0, pairs);
        if n.is_power_of_two() {
            assert_eq!(of(Operation::AllReduce, "butterfly").1, n * log(n));
        }
        assert_eq!(of(Operation::AllGather, "ring"), (n - 1, n * (n - 1)));
        assert_eq!(of(Operation::AllReduce, "ring+split").0, 2 * (n - 1));
        assert_eq!(of(Operation::Barrier, "circulant"), (log(n), n * log(n)));
        assert_eq!(of(Operation::AllGather, "circulant"), (log(n), n * log(n)));
        assert_eq!(of(Operation::Scan, "butterfly").0, log(n));
        assert_eq!(of(Operation::Scan, "circulant").0, log(n));
        assert_eq!(of(Operation::Scan, "ring"), (n - 1, n - 1));
        assert_eq!(of(Operation::Scan, "pipeline"), (n - 1, n - 1));
    }
    for n in 2..=20u32 {
        let group = Group::whole(n).unwrap();
        assert_eq!(cost(Operation::AllToAll, "circulant", &group, 1).0, log(n));
        assert_eq!(cost(Operation::AllToAll, "flat", &group, 1).0, n - 1);
    }
}
