//! The candidates that are measured: Landeck over its own interface and behind MPI's, its peers, and programs without
//! message passing.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::thread;

use crate::cluster::Cluster;

/// The program in C that measures a figure over MPI; over Landeck's own interface one program knows all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Points,
    Collectives,
    /// The work of collectives.c over MPI; over Landeck it is DECK's program.
    Deck,
}

/// One of those who are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Candidate {
    Landeck,
    LandeckMpi,
    /// Landeck behind MPI with `--plain`: messages between hosts are not sealed.
    LandeckPlain,
    /// Landeck behind MPI in a machine that stands: `landeck vm start`.
    LandeckMachine,
    /// Another installation of Landeck, to compare with: `--against`.
    OtherLandeck,
    /// The other installation of Landeck, behind MPI.
    OtherLandeckMpi,
    Mpich,
    MpichThrottled,
    OpenMpi,
    IntelMpi,
    /// Message queues of POSIX.
    Queues,
    /// Loans of iceoryx2.
    Iceoryx2,
    /// A program without message passing.
    Bare,
    /// A barrier of one shared counter, without message passing.
    Counter,
    /// A TCP connection between two hosts, without message passing.
    Sockets,
}

use Candidate::{
    Bare, Counter, Iceoryx2, IntelMpi, Landeck, LandeckMachine, LandeckMpi, LandeckPlain, Mpich,
    MpichThrottled, OpenMpi, OtherLandeck, OtherLandeckMpi, Queues, Sockets,
};

/// In the order of the tables.
pub(crate) const ALL: [Candidate; 15] = [
    Landeck,
    LandeckPlain,
    LandeckMpi,
    LandeckMachine,
    OtherLandeck,
    OtherLandeckMpi,
    OpenMpi,
    IntelMpi,
    Mpich,
    MpichThrottled,
    Queues,
    Iceoryx2,
    Bare,
    Counter,
    Sockets,
];

impl Candidate {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Landeck => "landeck",
            LandeckMpi => "landeck-mpi",
            LandeckPlain => "landeck-plain",
            LandeckMachine => "landeck-machine",
            OtherLandeck => "other",
            OtherLandeckMpi => "other-mpi",
            Mpich => "mpich",
            MpichThrottled => "mpich-throttled",
            OpenMpi => "ompi",
            IntelMpi => "impi",
            Queues => "queues",
            Iceoryx2 => "iceoryx2",
            Bare => "bare",
            Counter => "counter",
            Sockets => "sockets",
        }
    }

    /// For people, in plots and lists.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Landeck => "Landeck",
            LandeckMpi => "Landeck behind MPI",
            LandeckPlain => "Landeck, --plain",
            LandeckMachine => "Landeck in a machine",
            OtherLandeck => "the other Landeck",
            OtherLandeckMpi => "the other Landeck behind MPI",
            Mpich => "MPICH 5.0.2",
            MpichThrottled => "MPICH, throttled",
            OpenMpi => "Open MPI 5.0.11",
            IntelMpi => "Intel MPI 2021.18",
            Queues => "POSIX message queues",
            Iceoryx2 => "iceoryx2 0.10.0",
            Bare => "bare program",
            Counter => "shared counter",
            Sockets => "raw sockets",
        }
    }

    /// The name under which bench/peers.sh and `--peers` know it.
    pub(crate) fn peer(self) -> Option<&'static str> {
        match self {
            Mpich | MpichThrottled => Some("mpich"),
            OpenMpi => Some("ompi"),
            IntelMpi => Some("impi"),
            Queues => Some("queues"),
            Iceoryx2 => Some("iceoryx2"),
            Landeck | LandeckMpi | LandeckPlain | LandeckMachine | OtherLandeck
            | OtherLandeckMpi | Bare | Counter | Sockets => None,
        }
    }

    /// The candidate of this build that does the same: an installation of Landeck is measured like this one.
    pub(crate) fn of_this_build(self) -> Candidate {
        match self {
            OtherLandeck => Landeck,
            OtherLandeckMpi => LandeckMpi,
            same => same,
        }
    }

    /// The candidate that does the same in the other installation.
    pub(crate) fn of_the_other(self) -> Option<Candidate> {
        match self {
            Landeck => Some(OtherLandeck),
            LandeckMpi => Some(OtherLandeckMpi),
            _ => None,
        }
    }

    /// Whether its program starts its own processes, and knows one figure only.
    pub(crate) fn starts_itself(self) -> bool {
        matches!(self, Counter | Queues | Iceoryx2 | Sockets)
    }

    /// Whether it is measured over hosts.
    pub(crate) fn is_over_hosts(self) -> bool {
        self.is_for_hosts()
            || matches!(self, Landeck | LandeckMpi | OpenMpi | IntelMpi | Mpich | MpichThrottled)
    }

    /// Whether it is measured over hosts alone.
    pub(crate) fn is_for_hosts(self) -> bool {
        matches!(self, LandeckPlain | LandeckMachine | Sockets)
    }

    pub(crate) fn is_peer(self) -> bool {
        self.peer().is_some()
    }
}

/// Where the programs are.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// The root of the source tree.
    pub(crate) root: PathBuf,
    /// The folder that bench/peers.sh builds into.
    pub(crate) peers: PathBuf,
    /// Landeck's own programs, release build.
    pub(crate) programs: PathBuf,
    /// The prefix of another installation of Landeck.
    pub(crate) other: Option<PathBuf>,
    /// The hosts that jobs are spread over, if they are.
    pub(crate) cluster: Option<Rc<Cluster>>,
    /// That may be used here.
    pub(crate) processors: u32,
}

impl Places {
    /// The source tree that this program was built from.
    pub(crate) fn of_this_build() -> Places {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let root = root.canonicalize().unwrap_or(root);
        let beside_this =
            std::env::current_exe().ok().and_then(|program| Some(program.parent()?.to_owned()));
        let programs = beside_this.unwrap_or_else(|| root.join("target/release"));
        let processors = thread::available_parallelism().map_or(1, |count| count.get() as u32);
        let peers = root.join("bench-peers");
        Places { peers, programs, root, other: None, cluster: None, processors }
    }

    /// The files that must exist before the candidate can be measured.
    pub(crate) fn needs(&self, candidate: Candidate) -> Vec<PathBuf> {
        match candidate {
            Landeck | OtherLandeck => vec![self.launcher(candidate), self.points(candidate)],
            LandeckMpi | LandeckPlain | LandeckMachine | OtherLandeckMpi => vec![
                self.launcher(candidate),
                self.libraries(candidate).join("libmpi_abi.so.1"),
                self.points(candidate),
                self.program(candidate, Program::Collectives),
            ],
            Bare => vec![self.peers.join("bare"), self.peers.join("nothing")],
            Counter | Queues | Iceoryx2 | Sockets => vec![self.points(candidate)],
            peer => vec![
                self.launcher(peer),
                self.points(peer),
                self.program(peer, Program::Collectives),
            ],
        }
    }

    /// The first file that is not there, of those that the candidate needs.
    pub(crate) fn missing(&self, candidate: Candidate) -> Option<PathBuf> {
        self.needs(candidate).into_iter().find(|path| !path.exists())
    }

    /// The measuring program of the candidate.
    pub(crate) fn program(&self, candidate: Candidate, program: Program) -> PathBuf {
        match (program, candidate.of_this_build(), candidate.peer()) {
            (Program::Deck, Landeck, _) => self.peers.join("deck"),
            (
                Program::Collectives | Program::Deck,
                LandeckMpi | LandeckPlain | LandeckMachine,
                _,
            ) => self.peers.join("collectives.abi"),
            (Program::Collectives | Program::Deck, _, Some(peer)) => {
                self.peers.join(format!("collectives.{peer}"))
            }
            _ => self.points(candidate),
        }
    }

    /// bench/papers.c, which runs over any MPI.
    pub(crate) fn papers(&self, candidate: Candidate) -> PathBuf {
        self.peers.join(format!("papers.{}", candidate.peer().unwrap_or("abi")))
    }

    /// The program for messages between two processes, and for figures without MPI.
    pub(crate) fn points(&self, candidate: Candidate) -> PathBuf {
        match candidate {
            Landeck | OtherLandeck => self.commands(candidate).join("landeck-points"),
            LandeckMpi | LandeckPlain | LandeckMachine | OtherLandeckMpi => {
                self.peers.join("points.abi")
            }
            Bare => self.peers.join("nothing"),
            Counter => self.peers.join("counter"),
            Queues => self.peers.join("queues"),
            Iceoryx2 => self.peers.join("loans"),
            Sockets => self.peers.join("sockets"),
            peer => self.peers.join(format!("points.{}", peer.peer().unwrap_or_default())),
        }
    }

    /// Starts `program` in n processes, each on a processor of its own if there are enough.
    /// A bare program has no launcher and is not started here; some are their own.
    pub(crate) fn command(
        &self,
        candidate: Candidate,
        n: u32,
        program: &Path,
        arguments: &[String],
    ) -> Command {
        let mut command = Command::new(self.launcher(candidate));
        let own_processor = n <= self.processors;
        match candidate {
            Landeck | LandeckMpi | LandeckPlain | LandeckMachine | OtherLandeck
            | OtherLandeckMpi => {
                command.arg("run").args(["-n", &n.to_string()]);
                if own_processor {
                    command.args(["--bind-to", "core"]);
                }
            }
            OpenMpi => {
                command.args(["--allow-run-as-root", "-n", &n.to_string()]);
                command.args(if own_processor {
                    &["--bind-to", "core"][..]
                } else {
                    &["--oversubscribe"][..]
                });
            }
            IntelMpi | Bare | Counter | Queues | Iceoryx2 | Sockets => {
                command.args(["-n", &n.to_string()]);
            }
            Mpich | MpichThrottled => {
                command.args(["-n", &n.to_string()]);
                if own_processor {
                    command.args(["-bind-to", "core"]);
                }
            }
        }
        if !candidate.starts_itself() {
            command.arg(program);
        }
        command.args(arguments);
        self.set_environment(candidate, &mut command);
        command
    }

    /// Sets the variables that the candidate needs anywhere, and takes away those that would change it.
    pub(crate) fn set_environment(&self, candidate: Candidate, command: &mut Command) {
        for (name, _) in std::env::vars_os() {
            if name
                .to_str()
                .is_some_and(|name| PEER_VARIABLES.iter().any(|prefix| name.starts_with(prefix)))
            {
                command.env_remove(name);
            }
        }
        match candidate {
            Landeck | LandeckMpi | LandeckPlain | LandeckMachine | OtherLandeck
            | OtherLandeckMpi => {
                command.env("LD_LIBRARY_PATH", self.libraries(candidate));
            }
            MpichThrottled => {
                command.env("MPIR_CVAR_CH4_PROGRESS_THROTTLE", "1");
                command.env("MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT", "1");
            }
            IntelMpi => {
                command.env("I_MPI_ROOT", self.peers.join("venv-impi"));
            }
            Mpich | OpenMpi | Bare | Counter | Queues | Iceoryx2 | Sockets => {}
        }
    }

    pub(crate) fn launcher(&self, candidate: Candidate) -> PathBuf {
        match candidate.peer() {
            _ if candidate.starts_itself() => self.points(candidate),
            Some(peer) => self.peers.join(format!("venv-{peer}/bin/mpiexec")),
            None => self.commands(candidate).join("landeck"),
        }
    }

    /// The folder of Landeck's commands.
    fn commands(&self, candidate: Candidate) -> PathBuf {
        match self.other_of(candidate) {
            Some(prefix) => prefix.join("bin"),
            None => self.programs.clone(),
        }
    }

    /// The folder of the library of Landeck that the candidate's programs find.
    fn libraries(&self, candidate: Candidate) -> PathBuf {
        let library = match candidate {
            LandeckMpi | LandeckPlain | LandeckMachine => self.front(),
            _ => self.deck(),
        };
        match self.other_of(candidate) {
            Some(prefix) => prefix.join("lib"),
            None => library.parent().unwrap_or(&self.programs).to_owned(),
        }
    }

    /// The prefix of a candidate of another installation. Without one nothing is there.
    fn other_of(&self, candidate: Candidate) -> Option<&Path> {
        let is_other = candidate.of_this_build() != candidate;
        is_other.then(|| self.other.as_deref().unwrap_or(Path::new("/nonexistent")))
    }

    /// The daemon that connects the hosts of a job.
    pub(crate) fn daemon(&self) -> PathBuf {
        self.programs.join("landeckd")
    }

    /// The library of Landeck that carries MPI's standard binary interface, as it is built.
    pub(crate) fn built_front(&self) -> PathBuf {
        self.programs.join("libmpi_abi.so")
    }

    /// The MPI library under the name that programs look for, in a folder without other libraries.
    pub(crate) fn front(&self) -> PathBuf {
        self.peers.join("front/libmpi_abi.so.1")
    }

    /// The library of Landeck that carries DECK, as it is built.
    pub(crate) fn built_deck(&self) -> PathBuf {
        self.programs.join("libdeck.so")
    }

    /// The DECK library under the name that programs look for.
    pub(crate) fn deck(&self) -> PathBuf {
        self.peers.join("front-deck/libdeck.so.1")
    }
}

/// Settings left in the environment would make another comparison than the one that is printed.
const PEER_VARIABLES: [&str; 8] =
    ["MPIR_", "OMPI_", "PRTE_", "PMIX_", "PMI_", "I_MPI_", "FI_", "UCX_"];

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Places {
        Places {
            root: "/r".into(),
            peers: "/r/bench-peers".into(),
            programs: "/r/target/release".into(),
            other: Some("/opt/before".into()),
            cluster: None,
            processors: 2,
        }
    }

    fn words(candidate: Candidate, n: u32) -> String {
        let command = places().command(candidate, n, Path::new("p"), &["join".to_owned()]);
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        words.map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn binds_processes_with_processors_of_their_own_and_lets_more_move() {
        assert_eq!(words(Landeck, 2), "/r/target/release/landeck run -n 2 --bind-to core p join");
        assert_eq!(words(Landeck, 4), "/r/target/release/landeck run -n 4 p join");
        assert_eq!(
            words(OpenMpi, 4),
            "/r/bench-peers/venv-ompi/bin/mpiexec --allow-run-as-root -n 4 --oversubscribe p join"
        );
        assert_eq!(words(OtherLandeck, 4), "/opt/before/bin/landeck run -n 4 p join");
        assert_eq!(words(Counter, 4), "/r/bench-peers/counter -n 4 join");
        assert_eq!(words(Iceoryx2, 2), "/r/bench-peers/loans -n 2 join");
    }
}
