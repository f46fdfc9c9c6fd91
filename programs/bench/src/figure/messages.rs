//! What is measured: the figures, their launches, and what they must reach.

use crate::sample::Point;

/// One figure: a table, a file of results and a plot.
#[derive(Debug)]
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// One launch for each part, in every round, for every candidate.
    pub(crate) parts: &'static [Part],
    pub(crate) method: Method,
    /// Whether only Landeck can do this at all.
    pub(crate) ours_only: bool,
    pub(crate) targets: &'static [Target],
    pub(crate) axis: Axis,
}

/// A launch: so many processes, measuring this.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) n: u32,
    pub(crate) arguments: &'static [&'static str],
}

/// Where the values come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// The program prints one value for each batch; the launch counts by their median.
    Inside,
    /// The program prints one value for each process; the launch counts by their mean, less that
    /// of as many bare programs.
    BeyondBare,
    /// The wall clock of whole launches, beside that of as many bare programs.
    WallClock,
}

/// What runs along the plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Axis {
    Bytes,
    Processes,
    /// No axis: one strip for each point.
    Strips,
}

/// What a point of Landeck's must reach, and what it should.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) n: u32,
    pub(crate) bytes: u64,
    /// Of the pending messages; 0 where there are none.
    pub(crate) pending: u64,
    /// What the form begins with.
    pub(crate) form: &'static str,
    pub(crate) must: Option<Limit>,
    pub(crate) goal: Option<Limit>,
}

/// An upper limit of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Limit {
    /// In the unit of the figure.
    Value(f64),
    /// So many times the best peer.
    OfBestPeer(f64),
    /// So many times Landeck's own value with two processes in the same figure.
    OfOwnTwo(f64),
    /// So many times the half round trip of a cache line.
    OfLine(f64),
    /// So much more than Landeck's own value of the same form with this many pending.
    BeyondPending(u64, f64),
}

use Limit::{BeyondPending, OfBestPeer, OfLine, OfOwnTwo, Value};

impl Target {
    pub(crate) fn concerns(&self, point: &Point) -> bool {
        self.n == point.n
            && self.bytes == point.bytes
            && self.pending == point.pending
            && point.form.starts_with(self.form)
    }
}

impl Figure {
    pub(crate) fn by_name(name: &str) -> Option<&'static Figure> {
        ALL.iter().find(|figure| figure.name == name)
    }

    pub(crate) fn target(&self, point: &Point) -> Option<&Target> {
        self.targets.iter().find(|target| target.concerns(point))
    }
}

const fn part(n: u32, arguments: &'static [&'static str]) -> Part {
    Part { n, arguments }
}

const fn target(n: u32, bytes: u64, must: Option<Limit>, goal: Option<Limit>) -> Target {
    Target { n, bytes, pending: 0, form: "", must, goal }
}

/// Every figure, in the order in which they are measured.
pub(crate) const ALL: &[Figure] = &[
    Figure {
        name: "round",
        title: "Half of a round trip, two processes",
        parts: &[part(2, &["round", "bytes=8,1024,16384,65536,1048576,4194304"])],
        method: Method::Inside,
        ours_only: false,
        targets: &[
            target(2, 8, Some(OfBestPeer(1.0)), Some(OfBestPeer(0.8))),
            target(2, 1 << 10, None, Some(OfBestPeer(0.8))),
            target(2, 16 << 10, None, Some(OfBestPeer(0.8))),
            target(2, 64 << 10, None, Some(OfBestPeer(1.0))),
            target(2, 1 << 20, None, Some(OfBestPeer(1.0))),
            target(2, 4 << 20, None, Some(OfBestPeer(1.0))),
        ],
        axis: Axis::Bytes,
    },
    Figure {
        name: "loan",
        title: "Half of a round trip by loan, two processes",
        parts: &[part(2, &["loan", "bytes=8,1024,65536,1048576,4194304"])],
        method: Method::Inside,
        ours_only: true,
        targets: &[
            target(2, 8, None, Some(OfLine(2.5))),
            target(2, 1 << 10, None, Some(OfLine(2.5))),
            target(2, 64 << 10, None, Some(OfLine(2.5))),
            target(2, 1 << 20, None, Some(OfLine(2.5))),
            target(2, 4 << 20, None, Some(OfLine(2.5))),
        ],
        axis: Axis::Bytes,
    },
    Figure {
        name: "stream",
        title: "One message of a stream, two processes",
        parts: &[part(2, &["stream", "bytes=8"])],
        method: Method::Inside,
        ours_only: false,
        // 30 million messages a second.
        targets: &[target(2, 8, None, Some(Value(33.3)))],
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
        method: Method::Inside,
        ours_only: false,
        targets: &[
            target(4, 8, Some(OfOwnTwo(1.5)), Some(OfOwnTwo(1.1))),
            target(8, 8, Some(OfOwnTwo(1.5)), Some(OfOwnTwo(1.1))),
            target(16, 8, Some(OfOwnTwo(1.5)), Some(OfOwnTwo(1.1))),
            target(32, 8, Some(OfOwnTwo(1.5)), Some(OfOwnTwo(1.1))),
        ],
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
        method: Method::Inside,
        ours_only: false,
        targets: &[
            target(4, 8, None, Some(Value(1_300.0))),
            target(8, 8, None, Some(Value(2_600.0))),
            target(16, 8, None, Some(Value(5_500.0))),
            target(32, 8, None, Some(Value(11_000.0))),
        ],
        axis: Axis::Processes,
    },
    Figure {
        name: "start",
        title: "Start and end of n processes that join and leave",
        parts: &[part(2, &["join"]), part(32, &["join"])],
        method: Method::WallClock,
        ours_only: false,
        targets: &[
            target(2, 0, Some(Value(10.0)), Some(Value(4.0))),
            target(32, 0, Some(Value(50.0)), Some(Value(25.0))),
        ],
        axis: Axis::Processes,
    },
    Figure {
        name: "wait",
        title: "Processor time of a process that waits 1.5 s in a receive",
        parts: &[part(2, &["wait"])],
        method: Method::Inside,
        ours_only: false,
        targets: &[target(2, 8, None, Some(Value(0.2)))],
        axis: Axis::Strips,
    },
    Figure {
        name: "memory",
        title: "Proportional share of memory of a process that has joined, beyond a bare program",
        parts: &[part(2, &["memory"]), part(32, &["memory"])],
        method: Method::BeyondBare,
        ours_only: false,
        targets: &[target(32, 0, None, Some(Value(1_536.0)))],
        axis: Axis::Strips,
    },
    Figure {
        name: "shared",
        title: "Shared memory of a job of 1,000 processes that talk to their neighbours",
        parts: &[part(1_000, &["shared"])],
        method: Method::Inside,
        ours_only: true,
        targets: &[target(1_000, 0, None, Some(Value(150.0)))],
        axis: Axis::Strips,
    },
    Figure {
        name: "matching",
        title: "One receive among many pending ones",
        parts: &[part(2, &["matching", "pending=256,10000"])],
        method: Method::Inside,
        ours_only: false,
        targets: &[
            Target {
                n: 2,
                bytes: 8,
                pending: 10_000,
                form: "unexpected",
                must: None,
                goal: Some(Value(60.0)),
            },
            Target {
                n: 2,
                bytes: 8,
                pending: 10_000,
                form: "posted",
                must: None,
                goal: Some(BeyondPending(256, 15.0)),
            },
        ],
        axis: Axis::Strips,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_find_their_figure() {
        for figure in ALL {
            assert_eq!(Figure::by_name(figure.name).unwrap().name, figure.name);
        }
        assert!(Figure::by_name("nothing").is_none());
    }

    #[test]
    fn a_target_concerns_its_point_only() {
        let point = |n, form: &str| Point {
            figure: "matching".into(),
            form: form.into(),
            n,
            bytes: 8,
            pending: 10_000,
        };
        let matching = Figure::by_name("matching").unwrap();
        assert_eq!(
            matching.target(&point(2, "posted first, any")).unwrap().goal,
            Some(BeyondPending(256, 15.0))
        );
        assert_eq!(matching.target(&point(2, "unexpected, any")).unwrap().goal, Some(Value(60.0)));
        assert!(matching.target(&point(4, "unexpected, any")).is_none());
    }
}
