//! Figures of messages between two, and of what it costs to be there.

use super::Limit::{self, BeyondForm, BeyondPending, OfBestPeer, OfForm, OfLine, OfOwnTwo, Value};
use super::{Axis, Figure, Limits, Method, Target, Who, figure, part, target};
use crate::candidate::Candidate;
use crate::sample::Point;

/// In the order in which they are measured.
pub(super) const FIGURES: &[Figure] = &[
    Figure {
        title: "Half of a round trip, two processes",
        parts: &[part(2, &["round", "bytes=8,1024,16384,65536,1048576,4194304"])],
        targets: &[
            target(2, 8, Some(OfBestPeer(1.0)), Some(OfBestPeer(0.8))),
            target(2, 1 << 10, None, Some(OfBestPeer(0.8))),
            target(2, 16 << 10, None, Some(OfBestPeer(0.8))),
            target(2, 64 << 10, None, Some(OfBestPeer(1.0))),
            target(2, 1 << 20, None, Some(OfBestPeer(1.0))),
            target(2, 4 << 20, None, Some(OfBestPeer(1.0))),
        ],
        axis: Axis::Bytes,
        ..figure("round")
    },
    Figure {
        title: "Half of a round trip by loan, two processes",
        parts: &[part(2, &["loan", "bytes=8,1024,65536,1048576,4194304"])],
        who: Who::OursAnd(Candidate::Iceoryx2),
        targets: &[
            target(2, 8, None, Some(OfLine(2.5))),
            target(2, 1 << 10, None, Some(OfLine(2.5))),
            target(2, 64 << 10, None, Some(OfLine(2.5))),
            target(2, 1 << 20, None, Some(OfLine(2.5))),
            target(2, 4 << 20, None, Some(OfLine(2.5))),
        ],
        axis: Axis::Bytes,
        ..figure("loan")
    },
    Figure {
        title: "Half of a round trip of 8 B through named mailboxes, two processes",
        parts: &[part(2, &["mailbox"])],
        who: Who::OursAnd(Candidate::Queues),
        targets: &[
            form("values", BeyondForm("matched", 20.0)),
            form("messages", BeyondForm("matched", 20.0)),
        ],
        ..figure("mailbox")
    },
    Figure {
        title: "Half of a round trip of 8 B put into the other's memory with a notification",
        parts: &[part(2, &["put"])],
        who: Who::Ours,
        targets: &[form("put", BeyondForm("matched", 20.0))],
        ..figure("put")
    },
    Figure {
        title: "Half of a round trip of 8 B past as much as the receiver takes",
        parts: &[part(2, &["urgent"])],
        who: Who::Ours,
        targets: &[form("urgent", Value(2_000.0))],
        ..figure("urgent")
    },
    Figure {
        title: "One message of a stream, two processes",
        parts: &[part(2, &["stream", "bytes=8,65536"])],
        targets: &[
            // 30 million messages a second.
            target(2, 8, None, Some(Value(33.3))),
            target(2, 64 << 10, Some(OfBestPeer(1.1)), Some(OfBestPeer(0.9))),
        ],
        ..figure("stream")
    },
    Figure {
        title: "Half of a round trip of 8 B while all others wait in a receive",
        parts: &[
            part(2, &["crowd"]),
            part(4, &["crowd"]),
            part(8, &["crowd"]),
            part(16, &["crowd"]),
            part(32, &["crowd"]),
        ],
        targets: &[
            target(4, 8, Some(OfOwnTwo(1.5)), Some(OfOwnTwo(1.1))),
            target(8, 8, Some(OfOwnTwo(1.5)), Some(OfOwnTwo(1.1))),
            target(16, 8, Some(OfOwnTwo(1.5)), Some(OfOwnTwo(1.1))),
            target(32, 8, Some(OfOwnTwo(1.5)), Some(OfOwnTwo(1.1))),
        ],
        axis: Axis::Processes,
        ..figure("crowd")
    },
    Figure {
        title: "Two processes exchange long messages while six wait in a barrier",
        parts: &[part(8, &["beside", "bytes=65536,1048576,4194304", "batch_ms=20"])],
        who: Who::Mpi,
        targets: &[
            target(8, 64 << 10, Some(OfBestPeer(1.1)), Some(OfBestPeer(0.9))),
            target(8, 1 << 20, Some(OfBestPeer(1.1)), Some(OfBestPeer(0.9))),
            target(8, 4 << 20, Some(OfBestPeer(1.1)), Some(OfBestPeer(0.9))),
        ],
        ..figure("beside")
    },
    Figure {
        title: "Half of a round trip of 8 B in n/2 pairs at once",
        parts: &[
            part(4, &["pairs", "batch_ms=20"]),
            part(8, &["pairs", "batch_ms=20"]),
            part(16, &["pairs", "batch_ms=40"]),
            part(32, &["pairs", "batch_ms=80"]),
        ],
        targets: &[
            target(4, 8, None, Some(Value(1_300.0))),
            target(8, 8, None, Some(Value(2_600.0))),
            target(16, 8, None, Some(Value(5_500.0))),
            target(32, 8, None, Some(Value(11_000.0))),
        ],
        axis: Axis::Processes,
        ..figure("pairs")
    },
    Figure {
        title: "Start and end of n processes that join and leave",
        parts: &[part(2, &["join"]), part(32, &["join"])],
        method: Method::WallClock,
        targets: &[
            target(2, 0, Some(Value(10.0)), Some(Value(4.0))),
            target(32, 0, Some(Value(50.0)), Some(Value(25.0))),
        ],
        axis: Axis::Processes,
        ..figure("start")
    },
    Figure {
        title: "Half of a round trip of 8 B, and with eight more counts of each message",
        parts: &[part(2, &["counting"])],
        who: Who::Ours,
        // An eighth of the difference is to be less than a hundredth of 80 ns.
        targets: &[form("counted", BeyondForm("matched", 6.4))],
        ..figure("counting")
    },
    Figure {
        title: "A process joins a running job, from the call to its return",
        parts: &[part(1, &["joining"])],
        who: Who::Ours,
        targets: &[Target { n: 1, bytes: 0, ..form("by", Value(2_000.0)) }],
        ..figure("joining")
    },
    Figure {
        title: "`landeck why`, from its start to its end, while all processes wait for one",
        parts: &[part(1_000, &["why"])],
        who: Who::Ours,
        targets: &[Target { n: 1_000, bytes: 0, ..form("", Value(50.0)) }],
        ..figure("why")
    },
    Figure {
        title: "Processor time of a process that waits 1.5 s in a receive",
        parts: &[part(2, &["wait"])],
        targets: &[target(2, 8, None, Some(Value(0.2)))],
        ..figure("wait")
    },
    Figure {
        title: "Proportional share of memory of a process that has joined, beyond a bare program",
        parts: &[part(2, &["memory"]), part(32, &["memory"])],
        method: Method::BeyondBare,
        targets: &[target(32, 0, None, Some(Value(1_536.0)))],
        ..figure("memory")
    },
    Figure {
        title: "Shared memory of a job of 1,000 processes that talk to their neighbours",
        parts: &[part(1_000, &["shared"])],
        who: Who::Ours,
        targets: &[target(1_000, 0, None, Some(Value(150.0)))],
        ..figure("shared")
    },
    Figure {
        title: "Half of a round trip and an allreduce of 8 B, when one thread may call MPI and when several may",
        parts: &[part(2, &["threads", "level=single"]), part(2, &["threads", "level=multiple"])],
        who: Who::Mpi,
        targets: &[
            goal_of("round, multiple", BeyondForm("round, single", 15.0)),
            goal_of("allreduce, multiple", BeyondForm("allreduce, single", 15.0)),
        ],
        ..figure("threads")
    },
    Figure {
        title: "MPI_Pack beside the same written by hand",
        parts: &[part(1, &["packing"])],
        who: Who::Mpi,
        rule: by_hand_rule,
        ..figure("packing")
    },
    Figure {
        title: "One receive among many pending ones",
        parts: &[part(2, &["matching", "pending=256,10000"])],
        targets: &[
            Target { pending: 10_000, ..goal_of("unexpected", Value(60.0)) },
            Target { pending: 10_000, ..goal_of("posted", BeyondPending(256, 15.0)) },
        ],
        ..figure("matching")
    },
];

/// At least 0.9 of the rate of what is written by hand.
fn by_hand_rule(point: &Point, _: u32) -> Limits {
    let is_packed = !point.form.starts_with(BY_HAND);
    Limits { must: None, goal: is_packed.then_some(OfForm(BY_HAND, 1.0 / 0.9)) }
}

/// How forms begin in which no library packs.
const BY_HAND: &str = "by hand: ";

const fn goal_of(form: &'static str, goal: Limit) -> Target {
    Target { form, ..target(2, 8, None, Some(goal)) }
}

const fn form(form: &'static str, must: Limit) -> Target {
    Target { form, ..target(2, 8, Some(must), None) }
}
