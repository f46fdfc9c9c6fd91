//! Figures of what the papers on DECK measured: DECK over Landeck beside MPI's operations; and of named groups,
//! which no peer has.

use super::Limit::{OfBestPeer, Value};
use super::{Axis, Figure, LONG_BATCHES, Limits, Who, figure, part, target};
use crate::candidate::Program;
use crate::sample::Point;

/// The papers' sizes, in whole doubles.
const OF_2000: &str = "bytes=8,1024,32768";
const OF_2003: &str = "bytes=104,10240";

/// One launch for each number of processes.
macro_rules! parts {
    [$figure:literal, $sizes:expr; $($n:literal),*] => {
        &[$(part($n, &[$figure, $sizes, LONG_BATCHES])),*]
    };
}

/// In the order in which they are measured.
pub(super) const FIGURES: &[Figure] = &[
    Figure {
        title: "DECK: broadcast to a group and synchronisation; MPI: broadcast and barrier",
        parts: parts!["deck_sync", OF_2000; 2, 4, 8],
        ..operation("deck_sync")
    },
    Figure {
        title: "DECK: scatter, then gather, the root moves on",
        parts: parts!["deck_scatter_gather", OF_2003; 2, 4, 8, 20],
        ..operation("deck_scatter_gather")
    },
    Figure {
        title: "DECK: reduce, the sum of doubles, the root moves on",
        parts: parts!["deck_reduce", OF_2003; 2, 4, 8, 20],
        ..operation("deck_reduce")
    },
    Figure {
        title: "DECK: barrier",
        parts: parts!["deck_barrier", "bytes=8"; 2, 4, 8, 20],
        ..operation("deck_barrier")
    },
    Figure {
        title: "Groups with a server: a join while another process broadcasts a gigabyte",
        parts: &[part(3, &["group_join_served"])],
        targets: &[target(3, 1 << 30, Some(Value(1e6)), None)],
        who: Who::Ours,
        ..figure("group_join_served")
    },
    Figure {
        title: "Named groups: synchronisations one after the other, the first and the last 500 of 5,000",
        parts: &[part(2, &["group_rounds"]), part(8, &["group_rounds"])],
        who: Who::Ours,
        ..figure("group_rounds")
    },
];

/// The settings that all figures of operations share.
const fn operation(name: &'static str) -> Figure {
    Figure { program: Program::Deck, rule, axis: Axis::Processes, ..figure(name) }
}

/// With a processor for each process never slower than the best peer, with fewer always faster.
fn rule(point: &Point, processors: u32) -> Limits {
    let (must, goal) = if point.n > processors { (0.8, 0.5) } else { (1.0, 0.8) };
    Limits { must: Some(OfBestPeer(must)), goal: Some(OfBestPeer(goal)) }
}
