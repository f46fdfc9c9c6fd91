//! A job that is to be started on this host: what `landeck run` was asked for.

use crate::budget::BudgetError;
use crate::environment::Export;
use crate::guardian::{GuardianError, OnFailure};
use crate::input::InputTo;
use crate::output::Tag;
use crate::placement::{BindTo, MapBy, PlacementError};
use crate::program::ProgramError;
use crate::say::SayError;
use landeck_memory::SegmentError;
use landeck_memory::plan::SETTINGS_WORDS;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// The time between asking processes to end and killing them, if nobody says otherwise.
pub const GRACE: Duration = Duration::from_secs(10);
/// The exit code of a job that was ended by its time limit.
pub const TIMED_OUT: u8 = 124;
/// The exit code when the launcher itself fails.
pub const LAUNCHER_FAILED: u8 = 125;

/// A job to be started.
#[derive(Debug, Clone)]
pub struct Launch {
    /// What the job is called; `None` is the name of its first program's file.
    pub name: Option<String>,
    /// The programs; their processes get ranks in this order.
    pub programs: Vec<Program>,
    /// How processes are dealt out.
    pub map_by: MapBy,
    /// What they are bound to; `None` leaves it to the launcher.
    pub bind_to: Option<BindTo>,
    /// Whether to say which process is bound to what.
    pub report_bindings: bool,
    /// Whether only to say what would be started.
    pub dry_run: bool,
    /// What stands before each line of output.
    pub tag: Tag,
    /// Where the output goes, a file for each rank and stream.
    pub output_directory: Option<PathBuf>,
    /// When the job is ended.
    pub timeout: Option<Duration>,
    /// Whether to show the stacks of all processes then.
    pub stacks: bool,
    /// What tells why the job does not end, when the time is over.
    pub explain: Option<Explain>,
    /// Who gets the standard input.
    pub stdin: InputTo,
    /// What a failed process means for the others.
    pub on_failure: OnFailure,
    /// Whether processes map what others write for reading alone.
    pub is_hardened: bool,
    /// Time between asking processes to end and killing them.
    pub grace: Duration,
    /// Whether to say what a job has done that ended well.
    pub summary: bool,
    /// What all processes compute with.
    pub settings: [u64; SETTINGS_WORDS],
    /// What a thread of the launcher does to serve named groups, if it is to.
    pub serves_groups: Option<ServeGroups>,
}

/// Serves the named groups of the job with this identity, to its end; says what keeps it from that.
pub type ServeGroups = fn(&str) -> Result<(), String>;

/// Tells why the job with this identity does not go on; `None` where it cannot be looked at.
pub type Explain = fn(&str) -> Option<Explanation>;

/// Why a job does not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The reason, in a sentence.
    pub verdict: String,
    /// What to do now, where that is known.
    pub advice: Option<String>,
}

/// A program of a job.
#[derive(Debug, Clone)]
pub struct Program {
    /// Its name or path.
    pub name: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// How many processes run it. `None`: as many as there are usable cores, if it is the only
    /// program of the job, else one.
    pub processes: Option<u32>,
    /// Where it starts; `None` is where the launcher is.
    pub directory: Option<PathBuf>,
    /// Variables that are set for it.
    pub exports: Vec<Export>,
    /// Whether it inherits the launcher's environment.
    pub inherit: bool,
}

/// Why a job was not started, or could not be seen to its end.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// A program cannot be started.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A working directory is not there.
    #[error("--wdir {}: {}; give a folder that this user may enter", .path.display(), why(source))]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the kernel says.
        source: io::Error,
    },
    /// Processes cannot be placed as asked.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// The limits are too small.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// There is no shared memory.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// There is no guardian.
    #[error(transparent)]
    Guardian(#[from] GuardianError),
    /// A directory for output files cannot be made.
    #[error(
        "--output-dir {}: {source}. Give another directory, or one that can be made", .path.display()
    )]
    OutputDirectory {
        /// The directory.
        path: PathBuf,
        /// What the kernel says, or what stands there instead.
        source: io::Error,
    },
    /// What was asked for cannot be said.
    #[error(transparent)]
    Say(#[from] SayError),
    /// An output file cannot be made.
    #[error("output file {}: {source}", .path.display())]
    OutputFile {
        /// The file.
        path: PathBuf,
        /// What the kernel says.
        source: io::Error,
    },
    /// A rank that does not exist is to get the standard input.
    #[error("--stdin {rank}: there is no such rank; the job has {processes}, counted from 0")]
    StdinRank {
        /// The rank.
        rank: u32,
        /// How many there are.
        processes: u32,
    },
    /// A system call that the launcher cannot do without was refused.
    #[error("the launcher cannot {attempt}: {source}")]
    System {
        /// What was attempted.
        attempt: &'static str,
        /// What the kernel says.
        source: io::Error,
    },
}

/// Why a directory cannot be used, in words.
fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such folder".to_owned(),
        io::ErrorKind::NotADirectory => "this is no folder".to_owned(),
        _ => error.to_string(),
    }
}

impl LaunchError {
    /// The exit code for it.
    pub fn exit_code(&self) -> u8 {
        match self {
            LaunchError::Program(error) => error.exit_code(),
            _ => LAUNCHER_FAILED,
        }
    }
}

impl Program {
    /// A program without arguments that inherits everything.
    pub fn new(name: impl Into<OsString>) -> Program {
        Program {
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
    pub fn new(programs: Vec<Program>) -> Launch {
        Launch {
            name: None,
            programs,
            map_by: MapBy::default(),
            bind_to: None,
            report_bindings: false,
            dry_run: false,
            tag: Tag::None,
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
            serves_groups: None,
        }
    }
}

/// An error of the system, with what was attempted.
pub(crate) fn system(attempt: &'static str) -> impl Fn(io::Error) -> LaunchError {
    move |source| LaunchError::System { attempt, source }
}
