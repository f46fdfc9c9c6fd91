//! Figures of a job on two hosts, and of collective operations on four and eight.

use super::Limit::{OfBestPeer, TimesForm, Value};
use super::machine::STARTS;
use super::{Axis, Figure, FigurePart, Limits, Method, Target, Who, figure, target};
use crate::candidate::{Candidate, Program};
use crate::sample::Point;

/// The form of a job on one host, beside which one on two hosts stands.
const ON_ONE_HOST: &str = "job on one host";

/// The form of a job that has the processors for itself.
const QUIET: &str = "no loops";

/// In the order in which they are measured.
pub(super) const FIGURES: &[Figure] = &[
    Figure {
        name: "hosts_round",
        title: "Half of a round trip between two hosts, TCP",
        parts: &[over_both(2, &["round", "bytes=8,1024,65536,1048576"])],
        who: Who::OverHosts(Candidate::LandeckPlain),
        has_floor: true,
        targets: &[message(8), message(1 << 10), message(64 << 10), message(1 << 20)],
        axis: Axis::Bytes,
        ..POINTS
    },
    Figure {
        name: "hosts_stream",
        title: "One of 64 messages under way between two hosts, TCP",
        parts: &[over_both(2, &["stream", "bytes=8,65536,1048576"])],
        who: Who::OverHosts(Candidate::LandeckPlain),
        targets: &[
            target(2, 8, Some(OfBestPeer(0.8)), Some(OfBestPeer(0.3))),
            target(2, 64 << 10, Some(OfBestPeer(1.2)), Some(OfBestPeer(1.0))),
            target(2, 1 << 20, Some(OfBestPeer(1.2)), Some(OfBestPeer(1.0))),
        ],
        axis: Axis::Bytes,
        ..POINTS
    },
    Figure {
        name: "hosts_neighbours",
        title: "Half of a round trip of 8 B between two neighbours, while two others wait in a receive",
        parts: &[
            FigurePart { hosts: 1, form: Some(ON_ONE_HOST), ..over_both(4, &["crowd"]) },
            FigurePart { form: Some("job on two hosts"), ..over_both(4, &["crowd"]) },
        ],
        who: Who::OursOverHosts,
        targets: &[Target {
            form: "job on two",
            ..target(4, 8, Some(TimesForm(ON_ONE_HOST, 1.1)), Some(TimesForm(ON_ONE_HOST, 1.05)))
        }],
        ..POINTS
    },
    Figure {
        name: "hosts_urgent",
        title: "Half of a round trip of 8 B between two hosts under bulk on the same pair",
        parts: &[over_both(2, &["urgent", "batches=5", "iterations=200"])],
        who: Who::OwnOverHosts,
        targets: &[
            Target {
                form: "urgent",
                ..target(2, 8, Some(Value(5_000_000.0)), Some(Value(2_000_000.0)))
            },
            Target {
                form: "busy receiver, urgent",
                ..target(2, 8, Some(Value(5_000_000.0)), Some(Value(2_000_000.0)))
            },
        ],
        ..POINTS
    },
    Figure {
        name: "hosts_start",
        title: "Start and end of 4 processes on two hosts, beyond a remote shell that starts `true`; and whole launches",
        parts: &[
            over_both(4, &["join"]),
            FigurePart {
                method: Some(Method::WholeLaunches),
                runs_true: true,
                form: Some(STARTS),
                ..over_both(4, &[])
            },
        ],
        method: Method::BeyondRemoteShell,
        who: Who::OverHosts(Candidate::LandeckMpi),
        targets: &[
            Target { form: STARTS, ..target(4, 0, None, None) },
            target(4, 0, Some(Value(150.0)), Some(Value(50.0))),
        ],
        ..POINTS
    },
    Figure {
        name: "hosts_kill",
        title: "From the end of a killed process until a receive from it fails on the other host",
        parts: &[FigurePart { kills: true, ..over_both(4, &["kill"]) }],
        method: Method::Repeated,
        who: Who::OursOverHosts,
        targets: &[target(4, 0, Some(Value(100.0)), Some(Value(20.0)))],
        ..POINTS
    },
    Figure {
        name: "hosts_rest",
        title: "Processor time of a host's daemon while the processes of the job sleep",
        parts: &[over_both(2, &["rest", "wait_ms=5000"])],
        who: Who::OursOverHosts,
        targets: &[Target { form: "host", ..target(2, 0, Some(Value(0.5)), Some(Value(0.2))) }],
        ..POINTS
    },
    Figure {
        name: "hosts_collectives",
        title: "Collective operations over two hosts",
        parts: &[over_both(2, &["four", "bytes=8,1024,65536,1048576"]), over_both(4, OF_MANY)],
        rule: operation_rule,
        ..OPERATIONS
    },
    Figure {
        name: "hosts_allgather",
        title: "Allgather over two hosts",
        parts: &[
            over_both(2, &["allgather", "bytes=8,65536,1048576"]),
            over_both(4, &["allgather", "bytes=8,65536,1048576", "batch_ms=20"]),
        ],
        rule: operation_rule,
        ..OPERATIONS
    },
    Figure {
        name: "hosts_busy",
        title: "Allgather of 1 MiB over two hosts, beside six loops without end",
        parts: &[
            FigurePart { form: Some(QUIET), ..over_both(4, OF_BUSY) },
            FigurePart { form: Some("six loops"), busy: 6, ..over_both(4, OF_BUSY) },
        ],
        targets: &[Target {
            form: "six loops",
            ..target(4, 1 << 20, Some(TimesForm(QUIET, 2.0)), Some(OfBestPeer(1.0)))
        }],
        ..OPERATIONS
    },
    Figure {
        name: "hosts_collectives_4",
        title: "Collective operations over four hosts",
        parts: &[FigurePart { hosts: 4, ..over_both(4, OF_MANY) }],
        ..OPERATIONS
    },
    Figure {
        name: "hosts_collectives_8",
        title: "Collective operations over eight hosts",
        parts: &[FigurePart { hosts: 8, ..over_both(8, OF_MANY) }],
        ..OPERATIONS
    },
];

/// The allgather beside busy loops, and without them.
const OF_BUSY: &[&str] = &["allgather", "bytes=1048576", "batch_ms=20"];

/// The operations over more hosts than there are processors: ratios count, and what goes over the network.
const OF_MANY: &[&str] = &["four", "bytes=8,1024,65536,1048576", "batch_ms=20"];
const OPERATIONS: Figure = Figure {
    program: Program::Collectives,
    who: Who::OverHosts(Candidate::LandeckPlain),
    ..POINTS
};

/// The common form of most of them.
const POINTS: Figure = Figure { who: Who::OursOverHosts, ..figure("") };

/// Half of the processes on each of two hosts.
const fn over_both(n: u32, arguments: &'static [&'static str]) -> FigurePart {
    FigurePart { arguments, ..FigurePart::spread(n, 2) }
}

const fn message(bytes: u64) -> Target {
    target(2, bytes, Some(OfBestPeer(1.0)), Some(OfBestPeer(0.8)))
}

/// Every operation beside its peers.
fn operation_rule(_: &Point, _: u32) -> Limits {
    Limits { must: Some(OfBestPeer(1.0)), goal: Some(OfBestPeer(0.8)) }
}
