//! Figures of a machine that stands, and the limits of jobs in it beside those that make a machine of their own.

use super::Limit::Value;
use super::{Beside, Figure, FigurePart, Method, Most, Target, Who, figure, target};
use crate::candidate::Candidate;
use crate::sample::Point;

/// The form of whole launches of `true` on two hosts.
pub(super) const STARTS: &str = "`true`, whole launches";
/// The form of the processor share of a daemon, which is that of the founder's, too.
pub(crate) const SHARE: &str = "processor share";
/// The form of the resident memory of a daemon, as above.
pub(crate) const MEMORY: &str = "resident memory";

/// So many processes join and leave a machine of eight hosts.
pub(crate) const MANY: u32 = 1_000;

/// In the order in which they are measured.
pub(super) const FIGURES: &[Figure] = &[
    Figure {
        name: "machine_add",
        title: "A host added to a new machine, beyond a remote shell that starts `true`",
        parts: &[FigurePart::spread(2, 2)],
        method: Method::HostAdded,
        targets: &[target(2, 0, Some(Value(1_000.0)), Some(Value(300.0)))],
        ..IN_MACHINE
    },
    Figure {
        name: "machine_join",
        title: "Start and end of 1,000 processes in a machine of eight hosts",
        parts: &[
            FigurePart {
                arguments: &["join"],
                form: Some("they join and leave"),
                ..FigurePart::spread(MANY, 8)
            },
            FigurePart { runs_true: true, form: Some("`true`"), ..FigurePart::spread(MANY, 8) },
        ],
        method: Method::WholeLaunches,
        targets: &[Target {
            form: "they join",
            ..target(MANY, 0, Some(Value(5_000.0)), Some(Value(2_000.0)))
        }],
        ..IN_MACHINE
    },
    Figure {
        name: "machine_rest",
        title: "The daemons of a machine of eight hosts at rest, after many jobs",
        parts: &[FigurePart { runs_true: true, ..FigurePart::spread(8, 8) }],
        method: Method::AtRest,
        targets: &[
            Target { form: SHARE, ..target(8, 0, Some(Value(0.5)), Some(Value(0.2))) },
            Target { form: MEMORY, ..target(8, 0, Some(Value(40.0)), Some(Value(20.0))) },
        ],
        ..IN_MACHINE
    },
];

const IN_MACHINE: Figure = Figure { who: Who::InMachine, ..figure("") };

/// A job in a machine that stands, beside one that makes a machine of its own.
pub(super) fn besides(figure: &Figure, point: &Point) -> Vec<Beside> {
    if !figure.is_over_hosts() || figure.who == Who::InMachine {
        return Vec::new();
    }
    let limit = |most, must| Beside {
        judged: Candidate::LandeckMachine,
        other: Candidate::LandeckMpi,
        most: Most::Times(most),
        must,
        words: ["in a machine", "outside"],
    };
    match point.form.as_str() {
        STARTS => vec![limit(0.5, true), limit(0.2, false)],
        _ => vec![limit(1.05, true)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_in_a_machine_are_judged_by_others_than_its_messages() {
        let most = |name: &str, form: &str| {
            let point =
                Point { figure: name.into(), form: form.into(), n: 4, bytes: 0, pending: 0 };
            let besides = Figure::by_name(name).unwrap().besides(&point).into_iter();
            besides.map(|beside| beside.most).collect::<Vec<_>>()
        };
        assert_eq!(most("hosts_start", STARTS), [Most::Times(0.5), Most::Times(0.2)]);
        assert_eq!(most("hosts_kill", ""), [Most::Times(1.05)]);
        assert_eq!(most("machine_join", "`true`"), []);
        assert_eq!(most("start", ""), []);
    }
}
