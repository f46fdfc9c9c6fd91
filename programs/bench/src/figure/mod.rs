//! The figures: their launches, and the limits that they must reach.

mod collectives;
mod deck;
mod hosts;
pub(crate) mod machine;
mod messages;

use crate::candidate::{Candidate, Program};
use crate::sample::Point;

/// One figure: a table, a file of results and plots.
#[derive(Debug)]
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// One launch for each part, in every round, for every candidate.
    pub(crate) parts: &'static [FigurePart],
    /// Which of the measuring programs knows it.
    pub(crate) program: Program,
    pub(crate) method: Method,
    pub(crate) who: Who,
    /// Whether the shared counter, or between hosts the raw sockets, are the floor of all of its points.
    pub(crate) has_floor: bool,
    pub(crate) targets: &'static [Target],
    /// The limits of a point for which there is no target.
    pub(crate) rule: Rule,
    pub(crate) axis: Axis,
}

/// A launch: so many processes, measuring this.
#[derive(Debug)]
pub(crate) struct FigurePart {
    pub(crate) n: u32,
    pub(crate) arguments: &'static [&'static str],
    /// The hosts that the processes are spread over.
    pub(crate) hosts: u32,
    /// The form of its points, where the program does not know it.
    pub(crate) form: Option<&'static str>,
    /// Whether processes of it are killed, and the others go on.
    pub(crate) kills: bool,
    /// So many processes more on the first host.
    pub(crate) extra: u32,
    /// So many loops without end run beside the job.
    pub(crate) busy: u32,
    /// Where the values come from, if not as in the other parts of the figure.
    pub(crate) method: Option<Method>,
    /// Whether the processes are those of `true`.
    pub(crate) runs_true: bool,
}

/// The candidates that can run a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// Landeck and all who speak MPI.
    Everybody,
    /// Candidates that speak MPI: Landeck's own interface has no such operation.
    Mpi,
    /// Landeck alone.
    Ours,
    /// Landeck, and one that can do nothing else.
    OursAnd(Candidate),
    /// Candidates that speak MPI, over hosts. This one of ours is judged.
    OverHosts(Candidate),
    /// Landeck alone, over hosts.
    OursOverHosts,
    /// Landeck alone, over hosts, through its own interface.
    OwnOverHosts,
    /// Landeck alone, in a machine that stands, through its own interface.
    InMachine,
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
    /// The wall clock of whole launches, each less that of a remote shell just before it.
    BeyondRemoteShell,
    /// The wall clock of whole launches on the first host, after one that does not count.
    WholeLaunches,
    /// The time in which a host is added to a new machine, less that of a remote shell just before it.
    HostAdded,
    /// The use of processor and memory by the daemons of a machine, after many jobs of the part.
    AtRest,
    /// Like `Inside`, in several launches that count as one.
    Repeated,
}

/// The horizontal axis of a plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Axis {
    Bytes,
    Processes,
    /// No axis: one strip for each point.
    Strips,
}

/// The limits that some points of Landeck must and should reach.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) n: u32,
    pub(crate) bytes: u64,
    /// Of the pending messages; 0 where there are none.
    pub(crate) pending: u64,
    /// The prefix of the form.
    pub(crate) form: &'static str,
    /// Holds only where there are so many processors.
    pub(crate) on_processors: Option<u32>,
    pub(crate) must: Option<Limit>,
    pub(crate) goal: Option<Limit>,
}

/// The limits that a point must and should reach on a machine with so many processors.
pub(crate) type Rule = fn(&Point, u32) -> Limits;

/// The upper limits of one point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limits {
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
    /// So many times the best peer, or so many times the shared counter, whichever is more.
    OfBestPeerOrFloor { peer: f64, floor: f64 },
    /// So many times Landeck's own value with two processes in the same figure.
    OfOwnTwo(f64),
    /// Landeck's own value with so many processes, times as many as there are now by then.
    AsProcessesSince(u32),
    /// So many times the half round trip of a cache line.
    OfLine(f64),
    /// So much more than Landeck's own value of the same form with this many pending.
    BeyondPending(u64, f64),
    /// So much more than Landeck's own value of another form.
    BeyondForm(&'static str, f64),
    /// So many times Landeck's own value of another form.
    TimesForm(&'static str, f64),
    /// So many times Landeck's own value of the form that is called so and then like this one.
    OfForm(&'static str, f64),
}

/// A limit of one of our candidates beside another one at a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Beside {
    pub(crate) judged: Candidate,
    pub(crate) other: Candidate,
    pub(crate) most: Most,
    /// Whether it is a must; a goal otherwise.
    pub(crate) must: bool,
    /// The judged one and the other one, for people.
    pub(crate) words: [&'static str; 2],
}

/// The most that one candidate may take beside another one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Most {
    /// So many nanoseconds more.
    MoreNs(f64),
    /// So many times as long.
    Times(f64),
}

impl Target {
    fn concerns(&self, point: &Point, processors: u32) -> bool {
        self.n == point.n
            && self.bytes == point.bytes
            && self.pending == point.pending
            && point.form.starts_with(self.form)
            && self.on_processors.is_none_or(|wanted| wanted == processors)
    }
}

impl Figure {
    /// Every figure, in the order in which they are measured.
    pub(crate) fn all() -> impl Iterator<Item = &'static Figure> {
        let of_one_host = messages::FIGURES.iter().chain(collectives::FIGURES).chain(deck::FIGURES);
        of_one_host.chain(hosts::FIGURES).chain(machine::FIGURES)
    }

    /// Whether it needs several hosts.
    pub(crate) fn is_over_hosts(&self) -> bool {
        matches!(
            self.who,
            Who::OverHosts(_) | Who::OursOverHosts | Who::OwnOverHosts | Who::InMachine
        )
    }

    /// Where the values of a part come from.
    pub(crate) fn method_of(&self, part: &FigurePart) -> Method {
        part.method.unwrap_or(self.method)
    }

    /// The hosts that its jobs are on.
    pub(crate) fn hosts(&self) -> u32 {
        self.parts.iter().map(|part| part.hosts).max().unwrap_or(1)
    }

    /// Whether a table says what its operations send.
    pub(crate) fn counts_traffic(&self) -> bool {
        self.is_over_hosts() && self.program == Program::Collectives
    }

    pub(crate) fn by_name(name: &str) -> Option<&'static Figure> {
        Figure::all().find(|figure| figure.name == name)
    }

    /// The candidate of ours that is judged.
    pub(crate) fn own(&self) -> Candidate {
        match self.who {
            Who::Mpi | Who::OursOverHosts => Candidate::LandeckMpi,
            Who::OverHosts(judged) => judged,
            Who::InMachine => Candidate::LandeckMachine,
            _ => Candidate::Landeck,
        }
    }

    /// The limits of ways of ours beside other ones at a point.
    pub(crate) fn besides(&self, point: &Point) -> Vec<Beside> {
        let small = (point.n == 2 && point.bytes <= 8).then(|| self.beside_of_words()).flatten();
        small.into_iter().chain(machine::besides(self, point)).collect()
    }

    /// The time that one way of ours may add to another one for words between two processes.
    fn beside_of_words(&self) -> Option<Beside> {
        let through_mpi = |most_ns| Beside {
            judged: Candidate::LandeckMpi,
            other: Candidate::Landeck,
            most: Most::MoreNs(most_ns),
            must: false,
            words: ["through MPI", "without"],
        };
        match (self.name, self.who) {
            ("hosts_round", _) => Some(Beside {
                other: Candidate::LandeckPlain,
                words: ["sealed", "plain"],
                ..through_mpi(1_500.0)
            }),
            ("round", Who::Everybody) => Some(through_mpi(12.0)),
            (
                "barrier" | "broadcast" | "allreduce" | "reduce" | "reduce_scatter" | "gather"
                | "scatter" | "allgather" | "alltoall",
                Who::Everybody,
            ) => Some(through_mpi(15.0)),
            _ => None,
        }
    }

    /// The limits of a point: those of its target, or else those of the rule.
    pub(crate) fn limits(&self, point: &Point, processors: u32) -> Limits {
        let rule = (self.rule)(point, processors);
        match self.targets.iter().find(|target| target.concerns(point, processors)) {
            Some(target) => {
                Limits { must: target.must.or(rule.must), goal: target.goal.or(rule.goal) }
            }
            None => rule,
        }
    }
}

impl FigurePart {
    /// So many processes, evenly on so many hosts, in blocks.
    pub(crate) const fn spread(n: u32, hosts: u32) -> FigurePart {
        FigurePart {
            n,
            arguments: &[],
            hosts,
            form: None,
            kills: false,
            extra: 0,
            busy: 0,
            method: None,
            runs_true: false,
        }
    }
}

const fn part(n: u32, arguments: &'static [&'static str]) -> FigurePart {
    FigurePart { arguments, ..FigurePart::spread(n, 1) }
}

/// The form of most figures.
const fn figure(name: &'static str) -> Figure {
    Figure {
        name,
        title: "",
        parts: &[],
        program: Program::Points,
        method: Method::Inside,
        who: Who::Everybody,
        has_floor: false,
        targets: &[],
        rule: no_rule,
        axis: Axis::Strips,
    }
}

const fn target(n: u32, bytes: u64, must: Option<Limit>, goal: Option<Limit>) -> Target {
    Target { n, bytes, pending: 0, form: "", on_processors: None, must, goal }
}

/// More processes than processors take turns: a batch sees many of them.
const LONG_BATCHES: &str = "batch_ms=20";

/// A rule without limits: the figure reports a cost.
fn no_rule(_: &Point, _: u32) -> Limits {
    Limits { must: None, goal: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(figure: &str, form: &str, n: u32, bytes: u64, pending: u64) -> Point {
        Point { figure: figure.into(), form: form.into(), n, bytes, pending }
    }

    fn limits(point: &Point, processors: u32) -> Limits {
        Figure::by_name(&point.figure).unwrap().limits(point, processors)
    }

    #[test]
    fn names_find_their_figure() {
        for figure in Figure::all() {
            assert_eq!(Figure::by_name(figure.name).unwrap().title, figure.title);
        }
        assert!(Figure::by_name("nothing").is_none());
    }

    #[test]
    fn a_target_concerns_its_point_only() {
        let goal = |form, n| limits(&point("matching", form, n, 8, 10_000), 2).goal;
        assert_eq!(goal("posted first, any", 2), Some(Limit::BeyondPending(256, 15.0)));
        assert_eq!(goal("unexpected, any", 2), Some(Limit::Value(60.0)));
        assert_eq!(goal("unexpected, any", 4), None);
    }

    #[test]
    fn a_target_stands_above_the_rule_where_it_was_made() {
        let barrier = point("barrier", "", 8, 0, 0);
        let rule = Limit::OfBestPeerOrFloor { peer: 0.5, floor: 1.25 };
        assert_eq!(limits(&barrier, 2).must, Some(Limit::OfBestPeer(0.8)));
        assert_eq!(limits(&barrier, 2).goal, Some(Limit::Value(6_000.0)));
        assert_eq!(limits(&barrier, 4).goal, Some(rule));
    }

    #[test]
    fn with_a_processor_for_each_process_the_rule_is_harder() {
        let small = limits(&point("reduce", "", 4, 8, 0), 4);
        assert_eq!(small.must, Some(Limit::OfBestPeer(1.0)));
        assert_eq!(small.goal, Some(Limit::OfBestPeer(0.8)));
        assert_eq!(limits(&point("reduce", "", 4, 65_536, 0), 4).goal, None);
    }

    #[test]
    fn between_hosts_plain_messages_are_judged_and_seals_may_add_little() {
        let figure = Figure::by_name("hosts_round").unwrap();
        let small = point("hosts_round", "", 2, 8, 0);
        assert_eq!(figure.own(), Candidate::LandeckPlain);
        assert_eq!(limits(&small, 2).must, Some(Limit::OfBestPeer(1.0)));
        let judged_so = |point: &Point| {
            let besides = figure.besides(point).into_iter();
            besides.map(|beside| (beside.judged, beside.most)).collect::<Vec<_>>()
        };
        let in_a_machine = (Candidate::LandeckMachine, Most::Times(1.05));
        let sealed = (Candidate::LandeckMpi, Most::MoreNs(1_500.0));
        assert_eq!(judged_so(&small), [sealed, in_a_machine]);
        assert_eq!(judged_so(&Point { bytes: 1_024, ..small }), [in_a_machine]);
    }

    #[test]
    fn neighbours_of_a_job_on_two_hosts_are_judged_by_those_of_one() {
        let goal = |form| limits(&point("hosts_neighbours", form, 4, 8, 0), 2).goal;
        assert_eq!(goal("job on two hosts"), Some(Limit::TimesForm("job on one host", 1.05)));
        assert_eq!(goal("job on one host"), None);
    }

    #[test]
    fn beyond_the_tables_time_grows_with_the_processes() {
        let growth = |n| limits(&point("growth", "allreduce", n, 8, 0), 2).goal;
        assert_eq!(growth(1_000), Some(Limit::AsProcessesSince(64)));
        assert_eq!(growth(64), None);
    }
}
