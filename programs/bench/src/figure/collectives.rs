//! Figures of the collective operations, how fast they must be, and how they grow.

use super::Limit::{AsProcessesSince, OfBestPeer, OfBestPeerOrFloor, Value};
use super::{Axis, Figure, LONG_BATCHES, Limits, Target, Who, figure, no_rule, part, target};
use crate::candidate::Program;
use crate::sample::Point;

/// Bytes of a block, as the measuring programs read them; barriers have none.
const TINY: &str = "bytes=8";
const SMALL: &str = "bytes=8,65536";
const LARGE: &str = "bytes=8,65536,1048576";
const GROUP: &str = "bytes=1,1024,8192,32768";
const HUGE: &str = "bytes=1048576";

/// A turn of a thousand takes milliseconds, and the first operation of a batch also waits for those who
/// wake from what was before it: a batch is to have many.
const LONGEST_BATCHES: &str = "batch_ms=200";

/// One launch for each number of processes, with the sizes behind it.
macro_rules! parts {
    [$figure:literal: $($n:literal $sizes:expr),*] => {
        parts![$figure, LONG_BATCHES: $($n $sizes),*]
    };
    [$figure:literal, $batches:ident: $($n:literal $sizes:expr),*] => {
        &[$(part($n, &[$figure, $sizes, $batches])),*]
    };
}

/// In the order in which they are measured.
pub(super) const FIGURES: &[Figure] = &[
    Figure {
        title: "Barrier",
        parts: parts!["barrier": 2 TINY, 4 TINY, 8 TINY, 16 TINY, 32 TINY, 64 TINY],
        targets: &[
            goal(2, 0, 0.095),
            goal(4, 0, 2.6),
            goal(8, 0, 6.0),
            goal(16, 0, 13.0),
            goal(32, 0, 28.0),
            goal(64, 0, 60.0),
        ],
        ..operation("barrier")
    },
    Figure {
        title: "Allreduce, the sum of doubles",
        parts: parts!["allreduce": 2 LARGE, 4 SMALL, 8 LARGE, 16 SMALL, 32 LARGE],
        targets: &[
            goal(2, 8, 0.11),
            goal(4, 8, 3.0),
            goal(8, 8, 6.9),
            goal(16, 8, 15.0),
            goal(32, 8, 32.0),
            goal(2, 64 << 10, 2.7),
            goal(8, 64 << 10, 40.0),
            goal(32, 64 << 10, 200.0),
            goal(2, 1 << 20, 38.0),
            goal(8, 1 << 20, 270.0),
            goal(32, 1 << 20, 3_500.0),
        ],
        ..operation("allreduce")
    },
    Figure {
        title: "Broadcast, the root moves on",
        parts: parts!["broadcast": 2 LARGE, 4 SMALL, 8 LARGE, 16 SMALL, 32 LARGE],
        targets: &[
            goal(2, 8, 0.1),
            goal(8, 8, 1.9),
            goal(32, 8, 12.0),
            goal(2, 64 << 10, 1.7),
            goal(8, 64 << 10, 14.0),
            goal(32, 64 << 10, 60.0),
            goal(2, 1 << 20, 26.0),
            goal(8, 1 << 20, 150.0),
            goal(32, 1 << 20, 530.0),
        ],
        ..operation("broadcast")
    },
    Figure {
        title: "Broadcast and barrier, the root moves on",
        parts: parts!["broadcast_barrier": 2 TINY, 4 TINY, 8 TINY, 16 TINY, 32 TINY],
        targets: &[goal(8, 8, 7.0), goal(32, 8, 32.0)],
        ..operation("broadcast_barrier")
    },
    Figure {
        title: "Named groups: broadcast to all and synchronisation, the sender moves on (MPI: broadcast and barrier)",
        parts: parts!["group": 2 GROUP, 4 GROUP, 8 GROUP],
        ..operation("group")
    },
    Figure {
        title: "Named groups: a join or a leave, all processes at once",
        parts: parts!["group_members": 8 TINY],
        targets: &[target(8, 0, Some(Value(10_000.0)), None)],
        who: Who::Ours,
        has_floor: false,
        rule: no_rule,
        ..operation("group_members")
    },
    Figure {
        title: "Named groups: a join while another process broadcasts a gigabyte",
        parts: parts!["group_join": 2 TINY],
        targets: &[target(2, 1 << 30, Some(Value(1_000_000.0)), None)],
        who: Who::Ours,
        has_floor: false,
        rule: no_rule,
        ..operation("group_join")
    },
    Figure {
        title: "Reduce, the sum of doubles, the root moves on",
        parts: parts!["reduce": 2 SMALL, 4 SMALL, 8 SMALL, 16 SMALL, 32 SMALL],
        ..operation("reduce")
    },
    Figure {
        title: "Reduce-scatter, the sums of doubles",
        parts: parts!["reduce_scatter": 2 LARGE, 4 SMALL, 8 LARGE, 16 SMALL, 32 SMALL],
        ..operation("reduce_scatter")
    },
    Figure {
        title: "Gather, the root moves on",
        parts: parts!["gather": 2 SMALL, 4 SMALL, 8 SMALL, 16 SMALL, 32 SMALL],
        ..operation("gather")
    },
    Figure {
        title: "Scatter, the root moves on",
        parts: parts!["scatter": 2 SMALL, 4 SMALL, 8 SMALL, 16 SMALL, 32 SMALL],
        ..operation("scatter")
    },
    Figure {
        title: "Allgather",
        parts: parts!["allgather": 2 SMALL, 4 SMALL, 8 SMALL, 16 SMALL, 32 SMALL],
        ..operation("allgather")
    },
    Figure {
        title: "Alltoall",
        parts: parts!["alltoall": 2 SMALL, 4 SMALL, 8 SMALL, 16 SMALL, 32 SMALL],
        ..operation("alltoall")
    },
    Figure {
        title: "Barrier, allreduce and broadcast of 8 B, from 2 to 1,000 processes",
        parts: parts!["growth", LONGEST_BATCHES: 2 TINY, 4 TINY, 8 TINY, 16 TINY, 32 TINY, 64 TINY, 128 TINY, 256 TINY, 512 TINY, 1_000 TINY],
        rule: growth_rule,
        ..operation("growth")
    },
    Figure {
        title: "Allreduce with the same bits whatever the architecture, and without",
        parts: parts!["reproducible": 2 LARGE, 4 LARGE, 7 SMALL],
        who: Who::Ours,
        has_floor: false,
        rule: no_rule,
        ..operation("reproducible")
    },
    Figure {
        title: "Allreduce beside a computation that takes as long: the share not hidden by it",
        parts: parts!["overlap": 2 HUGE],
        has_floor: false,
        rule: overlap_rule,
        axis: Axis::Strips,
        ..operation("overlap")
    },
    Figure {
        title: "The call that starts an allreduce beside a computation",
        parts: parts!["overlap_call": 2 HUGE],
        has_floor: false,
        rule: call_rule,
        axis: Axis::Strips,
        ..operation("overlap_call")
    },
];

/// The settings that all figures of operations share.
const fn operation(name: &'static str) -> Figure {
    Figure {
        program: Program::Collectives,
        has_floor: true,
        rule: operation_rule,
        axis: Axis::Processes,
        ..figure(name)
    }
}

/// The goals of two processors, in microseconds; they stand above the rule.
const fn goal(n: u32, bytes: u64, goal_us: f64) -> Target {
    Target { on_processors: Some(2), ..target(n, bytes, None, Some(Value(goal_us * 1e3))) }
}

/// Every operation beside its peers: with a processor for each process never slower, and small
/// blocks faster; with fewer processors always faster, as the switches of processes allow it.
fn operation_rule(point: &Point, processors: u32) -> Limits {
    const SMALL_BYTES: u64 = 16 << 10;
    if point.n > processors {
        let goal = OfBestPeerOrFloor { peer: 0.5, floor: 1.25 };
        return Limits { must: Some(OfBestPeer(0.8)), goal: Some(goal) };
    }
    let goal = (point.bytes <= SMALL_BYTES).then_some(OfBestPeer(0.8));
    Limits { must: Some(OfBestPeer(1.0)), goal }
}

/// Up to 64 processes the figures of the operations say what is wanted.
fn growth_rule(point: &Point, _: u32) -> Limits {
    const TABLES_END: u32 = 64;
    Limits { must: None, goal: (point.n > TABLES_END).then_some(AsProcessesSince(TABLES_END)) }
}

/// Nobody can hide what nobody has a processor for.
fn overlap_rule(point: &Point, processors: u32) -> Limits {
    Limits { must: None, goal: (processors > point.n).then_some(Value(20.0)) }
}

/// A call that starts an operation moves no data worth mentioning.
fn call_rule(_: &Point, _: u32) -> Limits {
    Limits { must: Some(Value(5_000.0)), goal: None }
}
