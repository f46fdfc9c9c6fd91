//! A job to be started on this host or several, as `landeck run` was asked for it.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use landeck_host::budget::BudgetError;
use landeck_host::environment::Export;
use landeck_host::placement::{BindTo, MapBy, PlacementError};
use landeck_host::say::SayError;
use landeck_hostfile::HostPlacementError;
use landeck_memory::SegmentError;
use landeck_memory::plan::SETTINGS_WORDS;
use landeck_protocols::hosts::BookingOrder;
use landeck_wire::stored::StoreSetting;

use crate::guardian::{GuardianError, OnFailure};
use crate::hosts_options::HostsOptions;
use crate::input::InputTo;
use crate::machine::{MachineError, MachineName};
use crate::output::LineTag;
use crate::program::ProgramError;

/// The default time between asking processes to end and killing them.
pub const GRACE: Duration = Duration::from_secs(10);
/// The exit code of a job that was ended by its time limit.
pub const TIMED_OUT: u8 = 124;
/// The exit code when the launcher itself fails.
pub const LAUNCHER_FAILED: u8 = 125;

/// A job to be started.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The name of the job; `None` is the name of its first program's file.
    pub name: Option<String>,
    /// The programs; their processes get ranks in this order.
    pub programs: Vec<ProgramRequest>,
    /// How processes are distributed over the machine.
    pub map_by: MapBy,
    /// The processors that they are bound to; `None` leaves the choice to the launcher.
    pub bind_to: Option<BindTo>,
    /// Whether to print which process is bound to which processors.
    pub report_bindings: bool,
    /// Whether to print only what would be started.
    pub dry_run: bool,
    /// The tag before each line of output.
    pub tag: LineTag,
    /// The directory for the output, with a file for each rank and stream.
    pub output_directory: Option<PathBuf>,
    /// The time limit of the job.
    pub timeout: Option<Duration>,
    /// Whether to show the stacks of all processes at the timeout.
    pub stacks: bool,
    /// The function that explains at the timeout why the job does not end.
    pub explain: Option<Explain>,
    /// The processes that get the standard input.
    pub stdin: InputTo,
    /// The consequence of a failed process for the others.
    pub on_failure: OnFailure,
    /// Whether processes map memory with another writer read-only.
    pub is_hardened: bool,
    /// The time between asking processes to end and killing them.
    pub grace: Duration,
    /// Whether to summarise a job that ended well.
    pub summary: bool,
    /// The settings of all processes.
    pub settings: [u64; SETTINGS_WORDS],
    /// Where the data of long messages wait, as the settings say: a host that this names must be one of the job's.
    pub store: StoreSetting,
    /// The hosts of the job; `None` is this host alone.
    pub hosts: Option<HostsOptions>,
    /// The machine that stays in which hosts are booked for the job.
    pub machine: Option<MachineWish>,
    /// The function of a launcher's thread that serves named groups, if it is to.
    pub serves_groups: Option<ServeGroups>,
    /// Whether the job goes on without the process that starts it, and without its terminal.
    pub is_detached: bool,
}

/// A wish for hosts of a machine that stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineWish {
    /// The machine.
    pub name: MachineName,
    /// The hosts that come first.
    pub order: BookingOrder,
    /// Whether no other job may use the hosts.
    pub is_exclusive: bool,
    /// Whether to wait for its turn.
    pub waits: bool,
}

/// Serves the named groups of the job with this identity until its end; fails with the reason why it cannot.
pub type ServeGroups = fn(&str) -> Result<(), String>;

/// Explains why the job with this identity is stuck; `None` if it cannot be examined.
pub type Explain = fn(&str) -> Option<Explanation>;

/// The explanation why a job is stuck.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The reason, in a sentence.
    pub verdict: String,
    /// The advice, if there is any.
    pub advice: Option<String>,
}

/// A program of a job.
#[derive(Debug, Clone)]
pub struct ProgramRequest {
    /// Its name or path.
    pub name: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// The number of processes that run it. `None`: as many as there are usable cores, if it is the only program of the
    /// job, else one.
    pub processes: Option<u32>,
    /// Its working directory; `None` is the launcher's.
    pub directory: Option<PathBuf>,
    /// Variables that are set for it.
    pub exports: Vec<Export>,
    /// Whether it inherits the launcher's environment.
    pub inherit: bool,
}

/// The reason why a job was not started, or could not be run to its end.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// A program cannot be started.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A working directory does not exist or cannot be entered.
    #[error("--wdir {}: {}; give a folder that this user may enter", .path.display(), why(source))]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// Processes cannot be placed as asked.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// Ranks cannot be placed on the hosts.
    #[error(transparent)]
    Hosts(#[from] HostPlacementError),
    /// Data shall be stored on a host that the job does not have.
    #[error(
        "--store: the job has no host of that name; it is on {hosts}. Name one of them, or sender"
    )]
    Store {
        /// The hosts of the job.
        hosts: String,
    },
    /// The limits are too small for the job.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// The segment cannot be created.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// The guardian cannot be forked or reached.
    #[error(transparent)]
    Guardian(#[from] GuardianError),
    /// A directory for output files cannot be created.
    #[error(
        "--output-dir {}: {source}. Give another directory, or one that can be made", .path.display()
    )]
    OutputDirectory {
        /// The directory.
        path: PathBuf,
        /// The kernel's error, or what else has that name.
        source: io::Error,
    },
    /// An answer cannot be written.
    #[error(transparent)]
    Say(#[from] SayError),
    /// An output file cannot be created.
    #[error("output file {}: {source}", .path.display())]
    OutputFile {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// Nothing says where the output of a detached job goes.
    #[error(
        "--detach: neither XDG_STATE_HOME nor HOME says where the output goes; set one, or use --output-dir"
    )]
    NoStateDirectory,
    /// A rank that does not exist is to get the standard input.
    #[error("--stdin {rank}: there is no such rank; the job has {processes}, counted from 0")]
    StdinRank {
        /// The rank.
        rank: u32,
        /// The number of processes.
        processes: u32,
    },
    /// The daemon that connects hosts is not installed.
    #[error(
        "landeckd, which connects hosts, is {}; install it beside landeck", missing_in(.folder.as_deref())
    )]
    NoDaemon {
        /// The folder of the launcher, if the system tells it.
        folder: Option<PathBuf>,
    },
    /// The machine does not answer.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The processes are to go to all sites of a machine that has none.
    #[error(
        "--map-by site: {machine} has no sites; start it from a description of its networks that names them, or choose node"
    )]
    NoSites {
        /// The machine.
        machine: MachineName,
    },
    /// The founder's daemon has not begun.
    #[error("the machine was not started; the message of its daemon (landeckd) stands above")]
    MachineNotFounded,
    /// Hosts cannot take part in the job.
    #[error("{text}")]
    Refused {
        /// The exit code.
        exit_code: u8,
        /// The reasons, with the names of the hosts.
        text: String,
    },
    /// The launcher would have to join a job on several hosts.
    #[error(
        "--serve-groups: the launcher serves groups of jobs on one host alone; leave it out, or use one host"
    )]
    ServeGroups,
    /// The arbiter has ended before the job began.
    #[error(
        "the daemon of this host (landeckd) has ended before the job began; its own message says why"
    )]
    ArbiterEnded,
    /// A necessary system call was refused.
    #[error("the launcher cannot {attempt}: {source}")]
    System {
        /// The attempted action.
        attempt: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
}

/// Where the daemon was looked for.
fn missing_in(folder: Option<&Path>) -> String {
    match folder {
        Some(folder) => format!("neither in {} nor in PATH", folder.display()),
        None => "not in PATH, and without /proc nobody knows where landeck itself is".to_owned(),
    }
}

/// The reason why a directory cannot be used, in words.
fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such folder".to_owned(),
        io::ErrorKind::NotADirectory => "this is no folder".to_owned(),
        _ => error.to_string(),
    }
}

impl LaunchError {
    /// The exit code for this error.
    pub fn exit_code(&self) -> u8 {
        match self {
            LaunchError::Program(error) => error.exit_code(),
            LaunchError::Refused { exit_code, .. } => *exit_code,
            _ => LAUNCHER_FAILED,
        }
    }
}

impl ProgramRequest {
    /// A program without arguments that inherits everything.
    pub fn new(name: impl Into<OsString>) -> ProgramRequest {
        ProgramRequest {
            name: name.into(),
            arguments: Vec::new(),
            processes: None,
            directory: None,
            exports: Vec::new(),
            inherit: true,
        }
    }
}

impl Launch {
    /// A job of these programs, with the defaults of `landeck run`.
    pub fn new(programs: Vec<ProgramRequest>) -> Launch {
        Launch {
            name: None,
            programs,
            map_by: MapBy::default(),
            bind_to: None,
            report_bindings: false,
            dry_run: false,
            tag: LineTag::None,
            output_directory: None,
            timeout: None,
            stacks: false,
            explain: None,
            stdin: InputTo::Rank(0),
            on_failure: OnFailure::Abort,
            is_hardened: false,
            grace: GRACE,
            summary: false,
            settings: [0; SETTINGS_WORDS],
            store: StoreSetting::default(),
            hosts: None,
            machine: None,
            serves_groups: None,
            is_detached: false,
        }
    }
}

/// Turns a system error into a [`LaunchError`] with the attempted action.
pub(crate) fn system(attempt: &'static str) -> impl Fn(io::Error) -> LaunchError {
    move |source| LaunchError::System { attempt, source }
}
