//! Figures of messages between two, and of what it costs to be there.

use super::Limit::{self, BeyondForm, BeyondPending, OfBestPeer, OfForm, OfLine, OfOwnTwo, Value};
use super::{Axis, Figure, Limits, Method, Target, Who, no_rule, part};
use crate::candidate::{Candidate, Program};
use crate::sample::Point;

/// In the order in which they are measured.
pub(super) const FIGURES: &[Figure] = &[
    Figure {
        name: "round",
        title: "Half of a round trip, two processes",
        parts: &[part(2, &["round", "bytes=8,1024,16384,65536,1048576,4194304"])],
        program: Program::Points,
        method: Method::Inside,
        who: Who::Everybody,
        has_floor: false,
        targets: &[
            target(2, 8, Some(OfBestPeer(1.0)), Some(OfBestPeer(0.8))),
            target(2, 1 << 10, None, Some(OfBestPeer(0.8))),
            target(2, 16 << 10, None, Some(OfBestPeer(0.8))),
            target(2, 64 << 10, None, Some(OfBestPeer(1.0))),
            target(2, 1 << 20, None, Some(OfBestPeer(1.0))),
            target(2, 4 << 20, None, Some(OfBestPeer(1.0))),
        ],
        rule: no_rule,
        axis: Axis::Bytes,
    },
    Figure {
        name: "loan",
        title: "Half of a round trip by loan, two processes",
        parts: &[part(2, &["loan", "bytes=8,1024,65536,1048576,4194304"])],
        program: Program::Points,
        method: Method::Inside,
        who: Who::OursAnd(Candidate::Iceoryx2),
        has_floor: false,
        targets: &[
            target(2, 8, None, Some(OfLine(2.5))),
            target(2, 1 << 10, None, Some(OfLine(2.5))),
            target(2, 64 << 10, None, Some(OfLine(2.5))),
            target(2, 1 << 20, None, Some(OfLine(2.5))),
            target(2, 4 << 20, None, Some(OfLine(2.5))),
        ],
        rule: no_rule,
        axis: Axis::Bytes,
    },
    Figure {
        name: "mailbox",
        title: "Half of a round trip of 8 B through named mailboxes, two processes",
        parts: &[part(2, &["mailbox"])],
        program: Program::Points,
        method: Method::Inside,
        who: Who::OursAnd(Candidate::Queues),
        has_floor: false,
        targets: &[
            form("values", BeyondForm("matched", 20.0)),
            form("messages", BeyondForm("matched", 20.0)),
        ],
        rule: no_rule,
        axis: Axis::Strips,
    },
    Figure {
        name: "put",
        title: "Half of a round trip of 8 B put into the other's memory with a notification",
        parts: &[part(2, &["put"])],
        program: Program::Points,
        method: Method::Inside,
        who: Who::Ours,
        has_floor: false,
        targets: &[form("put", BeyondForm("matched", 20.0))],
        rule: no_rule,
        axis: Axis::Strips,
    },
    Figure {
        name: "urgent",
        title: "Half of a round trip of 8 B past as much as the receiver takes",
        parts: &[part(2, &["urgent"])],
        program: Program::Points,
        method: Method::Inside,
        who: Who::Ours,
        has_floor: false,
        targets: &[form("urgent", Value(2_000.0))],
        rule: no_rule,
        axis: Axis::Strips,
    },
    Figure {
        name: "stream",
        title: "One message of a stream, two processes",
        parts: &[part(2, &["stream", "bytes=8"])],
        program: Program::Points,
        method: Method::Inside,
        who: Who::Everybody,
        has_floor: false,
        // 30 million messages a second.
        targets: &[target(2, 8, None, Some(Value(33.3)))],
        rule: no_rule,
        axis: Axis::Strips,
    },
    Figure {
        name: "crowd",
        title: "Half of a round trip of 8 B while all others wait in a receive",
        parts: &[
            part(2, &["crowd"]),
            part(4, &["crowd"]),
            part(8, &["crowd"]),
            part(16, &["crowd"]),
            part(32, &["crowd"]),
        ],
        program: Program::Points,
        method: Method::Inside,
        who: Who::Everybody,
        has_floor: false,
        targets: &[
            target(4, 8, Some(OfOwnTwo(1.5)), Some(OfOwnTwo(1.1))),
            target(8, 8, Some(OfOwnTwo(1.5)), Some(OfOwnTwo(1.1))),
            target(16, 8, Some(OfOwnTwo(1.5)), Some(OfOwnTwo(1.1))),
            target(32, 8, Some(OfOwnTwo(1.5)), Some(OfOwnTwo(1.1))),
        ],
        rule: no_rule,
        axis: Axis::Processes,
    },
    Figure {
        name: "pairs",
        title: "Half of a round trip of 8 B in n/2 pairs at once",
        parts: &[
            part(4, &["pairs", "batch_ms=20"]),
            part(8, &["pairs", "batch_ms=20"]),
            part(16, &["pairs", "batch_ms=40"]),
            part(32, &["pairs", "batch_ms=80"]),
        ],
        program: Program::Points,
        method: Method::Inside,
        who: Who::Everybody,
        has_floor: false,
        targets: &[
            target(4, 8, None, Some(Value(1_300.0))),
            target(8, 8, None, Some(Value(2_600.0))),
            target(16, 8, None, Some(Value(5_500.0))),
            target(32, 8, None, Some(Value(11_000.0))),
        ],
        rule: no_rule,
        axis: Axis::Processes,
    },
    Figure {
        name: "start",
        title: "Start and end of n processes that join and leave",
        parts: &[part(2, &["join"]), part(32, &["join"])],
        program: Program::Points,
        method: Method::WallClock,
        who: Who::Everybody,
        has_floor: false,
        targets: &[
            target(2, 0, Some(Value(10.0)), Some(Value(4.0))),
            target(32, 0, Some(Value(50.0)), Some(Value(25.0))),
        ],
        rule: no_rule,
        axis: Axis::Processes,
    },
    Figure {
        name: "counting",
        title: "Half of a round trip of 8 B, and with eight more counts of each message",
        parts: &[part(2, &["counting"])],
        program: Program::Points,
        method: Method::Inside,
        who: Who::Ours,
        has_floor: false,
        // An eighth of the difference is to be less than a hundredth of 80 ns.
        targets: &[form("counted", BeyondForm("matched", 6.4))],
        rule: no_rule,
        axis: Axis::Strips,
    },
    Figure {
        name: "joining",
        title: "A process joins a running job, from the call to its return",
        parts: &[part(1, &["joining"])],
        program: Program::Points,
        method: Method::Inside,
        who: Who::Ours,
        has_floor: false,
        targets: &[Target { n: 1, bytes: 0, ..form("by", Value(2_000.0)) }],
        rule: no_rule,
        axis: Axis::Strips,
    },
    Figure {
        name: "why",
        title: "`landeck why`, from its start to its end, while all processes wait for one",
        parts: &[part(1_000, &["why"])],
        program: Program::Points,
        method: Method::Inside,
        who: Who::Ours,
        has_floor: false,
        targets: &[Target { n: 1_000, bytes: 0, ..form("", Value(50.0)) }],
        rule: no_rule,
        axis: Axis::Strips,
    },
    Figure {
        name: "wait",
        title: "Processor time of a process that waits 1.5 s in a receive",
        parts: &[part(2, &["wait"])],
        program: Program::Points,
        method: Method::Inside,
        who: Who::Everybody,
        has_floor: false,
        targets: &[target(2, 8, None, Some(Value(0.2)))],
        rule: no_rule,
        axis: Axis::Strips,
    },
    Figure {
        name: "memory",
        title: "Proportional share of memory of a process that has joined, beyond a bare program",
        parts: &[part(2, &["memory"]), part(32, &["memory"])],
        program: Program::Points,
        method: Method::BeyondBare,
        who: Who::Everybody,
        has_floor: false,
        targets: &[target(32, 0, None, Some(Value(1_536.0)))],
        rule: no_rule,
        axis: Axis::Strips,
    },
    Figure {
        name: "shared",
        title: "Shared memory of a job of 1,000 processes that talk to their neighbours",
        parts: &[part(1_000, &["shared"])],
        program: Program::Points,
        method: Method::Inside,
        who: Who::Ours,
        has_floor: false,
        targets: &[target(1_000, 0, None, Some(Value(150.0)))],
        rule: no_rule,
        axis: Axis::Strips,
    },
    Figure {
        name: "threads",
        title: "Half of a round trip and an allreduce of 8 B, when one thread may call MPI and when several may",
        parts: &[part(2, &["threads", "level=single"]), part(2, &["threads", "level=multiple"])],
        program: Program::Points,
        method: Method::Inside,
        who: Who::Mpi,
        has_floor: false,
        targets: &[
            goal_of("round, multiple", BeyondForm("round, single", 15.0)),
            goal_of("allreduce, multiple", BeyondForm("allreduce, single", 15.0)),
        ],
        rule: no_rule,
        axis: Axis::Strips,
    },
    Figure {
        name: "packing",
        title: "MPI_Pack beside the same written by hand",
        parts: &[part(1, &["packing"])],
        program: Program::Points,
        method: Method::Inside,
        who: Who::Mpi,
        has_floor: false,
        targets: &[],
        rule: by_hand_rule,
        axis: Axis::Strips,
    },
    Figure {
        name: "matching",
        title: "One receive among many pending ones",
        parts: &[part(2, &["matching", "pending=256,10000"])],
        program: Program::Points,
        method: Method::Inside,
        who: Who::Everybody,
        has_floor: false,
        targets: &[
            Target {
                n: 2,
                bytes: 8,
                pending: 10_000,
                form: "unexpected",
                on_processors: None,
                must: None,
                goal: Some(Value(60.0)),
            },
            Target {
                n: 2,
                bytes: 8,
                pending: 10_000,
                form: "posted",
                on_processors: None,
                must: None,
                goal: Some(BeyondPending(256, 15.0)),
            },
        ],
        rule: no_rule,
        axis: Axis::Strips,
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
    let (must, goal) = (None, Some(goal));
    Target { n: 2, bytes: 8, pending: 0, form, on_processors: None, must, goal }
}

const fn form(form: &'static str, must: Limit) -> Target {
    let (must, goal) = (Some(must), None);
    Target { n: 2, bytes: 8, pending: 0, form, on_processors: None, must, goal }
}

const fn target(n: u32, bytes: u64, must: Option<Limit>, goal: Option<Limit>) -> Target {
    Target { n, bytes, pending: 0, form: "", on_processors: None, must, goal }
}
