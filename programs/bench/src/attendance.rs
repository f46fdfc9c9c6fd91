//! The candidates that take part in a launch, and the reasons why others are left out.

use crate::candidate::Candidate::{
    self, Bare, Counter, Iceoryx2, Landeck, LandeckMachine, LandeckMpi, LandeckPlain, Mpich,
    MpichThrottled, Queues, Sockets,
};
use crate::candidate::Program;
use crate::figure::{Figure, FigurePart, Method, Who};

/// The part of a candidate in a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attendance {
    TakesPart,
    /// It has nothing to do with the figure.
    HasNoPart,
    /// It would belong here; the words say why it is not.
    LeftOut(&'static str),
}

use Attendance::{HasNoPart, LeftOut, TakesPart};

/// More processes of a peer take minutes to start and gigabytes to hold.
const PEER_PROCESSES_MAX: u32 = 64;

/// In a launch of a part on so many processors; `in_machine` says whether jobs over hosts run in a machine as well.
pub(crate) fn attendance(
    candidate: Candidate,
    figure: &Figure,
    part: &FigurePart,
    processors: u32,
    in_machine: bool,
) -> Attendance {
    let n = part.n;
    let is_whole = part.method == Some(Method::WholeLaunches);
    let crowded = n > processors;
    let collective = figure.program != Program::Points;
    if candidate.is_for_hosts() && !figure.is_over_hosts() {
        return HasNoPart;
    }
    match candidate.of_this_build() {
        LandeckMachine if figure.who == Who::InMachine || is_whole => TakesPart,
        _ if figure.who == Who::InMachine => HasNoPart,
        // What runs through Landeck's own interface has no other candidate of ours beside it.
        LandeckMachine if figure.who == Who::OwnOverHosts => HasNoPart,
        // There is no remote shell in its starts.
        LandeckMachine if figure.method == Method::BeyondRemoteShell => HasNoPart,
        LandeckMachine if in_machine => TakesPart,
        LandeckMachine => HasNoPart,
        Landeck if figure.who == Who::OwnOverHosts => TakesPart,
        _ if figure.who == Who::OwnOverHosts => HasNoPart,
        Landeck if figure.who == Who::Mpi || figure.is_over_hosts() => HasNoPart,
        Landeck => TakesPart,
        // Seals cost messages; a start without them is no other one.
        LandeckPlain if figure.own() != LandeckPlain => HasNoPart,
        LandeckPlain | LandeckMpi if figure.is_over_hosts() => TakesPart,
        Sockets if !figure.has_floor => HasNoPart,
        Sockets => TakesPart,
        candidate if figure.who == Who::OursAnd(candidate) => TakesPart,
        Queues | Iceoryx2 => HasNoPart,
        _ if !matches!(figure.who, Who::Everybody | Who::Mpi | Who::OverHosts(_)) => HasNoPart,
        Bare | Counter if figure.is_over_hosts() => HasNoPart,
        Bare if figure.method == Method::Inside => HasNoPart,
        Counter if !figure.has_floor => HasNoPart,
        Bare | Counter => TakesPart,
        // Only there is it another comparison than MPICH as shipped.
        MpichThrottled if !crowded || figure.method == Method::BeyondRemoteShell => HasNoPart,
        Mpich if collective && crowded => LeftOut(
            "as shipped it never gives up its processor, so that each operation takes whole time slices of the scheduler; mpich-throttled stands for it",
        ),
        _ if n > PEER_PROCESSES_MAX => LeftOut("peers are measured with up to 64 processes"),
        _ => TakesPart,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(candidate: Candidate, figure: &str, n: u32) -> Attendance {
        let part = FigurePart::spread(n, 1);
        attendance(candidate, Figure::by_name(figure).unwrap(), &part, 2, false)
    }

    #[test]
    fn mpich_is_throttled_only_in_a_crowd() {
        assert_eq!(of(Mpich, "barrier", 2), TakesPart);
        assert_eq!(of(MpichThrottled, "barrier", 2), HasNoPart);
        assert!(matches!(of(Mpich, "barrier", 4), LeftOut(_)));
        assert_eq!(of(MpichThrottled, "barrier", 4), TakesPart);
        assert_eq!(of(Mpich, "crowd", 4), TakesPart);
    }

    #[test]
    fn a_figure_that_only_mpi_has_is_measured_through_mpi() {
        for figure in ["threads", "packing"] {
            assert_eq!(of(Landeck, figure, 2), HasNoPart);
            assert_eq!(of(Candidate::LandeckMpi, figure, 2), TakesPart);
            assert_eq!(of(Mpich, figure, 2), TakesPart);
        }
    }

    #[test]
    fn only_what_costs_little_grows_beyond_the_tables() {
        assert_eq!(of(Landeck, "growth", 1_000), TakesPart);
        assert_eq!(of(Counter, "growth", 1_000), TakesPart);
        assert!(matches!(of(Candidate::OpenMpi, "growth", 128), LeftOut(_)));
    }

    #[test]
    fn floors_belong_to_their_figures() {
        assert_eq!(of(Counter, "round", 2), HasNoPart);
        assert_eq!(of(Bare, "barrier", 2), HasNoPart);
        assert_eq!(of(Bare, "memory", 2), TakesPart);
        assert_eq!(of(Candidate::OpenMpi, "loan", 2), HasNoPart);
        assert_eq!((of(Iceoryx2, "loan", 2), of(Iceoryx2, "round", 2)), (TakesPart, HasNoPart));
        assert_eq!((of(Queues, "mailbox", 2), of(Queues, "loan", 2)), (TakesPart, HasNoPart));
    }

    #[test]
    fn over_hosts_ours_stand_beside_all_who_speak_mpi_and_the_floor() {
        for candidate in [LandeckPlain, LandeckMpi, Candidate::OpenMpi, Mpich, Sockets] {
            assert_eq!(of(candidate, "hosts_round", 2), TakesPart);
        }
        for candidate in [Landeck, Bare, Counter, Queues, MpichThrottled] {
            assert_eq!(of(candidate, "hosts_round", 2), HasNoPart);
        }
        assert_eq!(of(LandeckPlain, "round", 2), HasNoPart);
        assert_eq!(of(Sockets, "round", 2), HasNoPart);
        assert_eq!(of(LandeckPlain, "hosts_start", 4), HasNoPart);
        assert_eq!(
            (of(LandeckMpi, "hosts_kill", 4), of(Mpich, "hosts_kill", 4)),
            (TakesPart, HasNoPart)
        );
        assert!(matches!(of(Mpich, "hosts_collectives", 4), LeftOut(_)));
    }

    #[test]
    fn a_machine_takes_part_in_its_own_figures_and_elsewhere_if_it_is_asked_for() {
        let of = |figure: &str, part: usize, in_machine| {
            let figure = Figure::by_name(figure).unwrap();
            attendance(LandeckMachine, figure, &figure.parts[part], 2, in_machine)
        };
        for (figure, part, always) in [
            ("machine_add", 0, true),
            ("machine_join", 1, true),
            ("hosts_start", 1, true),
            ("hosts_round", 0, false),
        ] {
            assert_eq!(of(figure, part, true), TakesPart);
            assert_eq!(of(figure, part, false), if always { TakesPart } else { HasNoPart });
        }
        assert_eq!(of("hosts_urgent", 0, true), HasNoPart);
        assert_eq!((of("hosts_start", 0, true), of("round", 0, true)), (HasNoPart, HasNoPart));
        let join = &Figure::by_name("machine_join").unwrap().parts[0];
        let figure = Figure::by_name("machine_join").unwrap();
        assert_eq!(attendance(LandeckMpi, figure, join, 2, true), HasNoPart);
    }

    #[test]
    fn the_front_of_mpi_runs_what_its_peers_run() {
        for figure in ["round", "barrier", "allreduce"] {
            assert_eq!(of(Candidate::LandeckMpi, figure, 2), TakesPart);
            assert_eq!(of(Candidate::LandeckMpi, figure, 32), TakesPart);
        }
    }
}
