//! Starting a job on this host and seeing it to its end: what `landeck run` does.

use crate::budget::{BudgetError, Limits, fit_segment, make_room_for_descriptors};
use crate::environment::{Export, Identity};
use crate::file;
use crate::guardian::{self, GuardianError, OnFailure, Order, Start};
use crate::input::{Input, InputTo};
use crate::job::Job;
use crate::memory_groups::MemoryGroups;
use crate::output::{Output, Stream, Tag, pipe};
use crate::placement::{BindTo, MapBy, PlacementError};
use crate::plan::{Plan, PlannedProgram};
use crate::process::Image;
use crate::program::ProgramError;
use crate::say::{SayError, say};
use crate::signals::Signals;
use crate::standard_output;
use landeck_memory::plan::{GUESTS, SETTINGS_WORDS, SLOTS_MAX};
use landeck_memory::{JobName, Segment, SegmentError, SegmentPlan, system as clock};
use landeck_wire::HostId;
use std::ffi::{CString, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
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

    /// Starts the job, sees it to its end and returns the exit code for it: that of the process
    /// that failed first (128 and the signal, if one killed it), 124 after a timeout, 125 where nothing
    /// failed but output is lost, else 0.
    ///
    /// To be called while this process has one thread. Its signals are caught from then on.
    ///
    /// # Errors
    /// When there can be no such job: nothing was started then. A process that cannot be started
    /// is part of the job's end.
    pub fn run(&self) -> Result<u8, LaunchError> {
        let plan = Plan::new(self)?;
        if let InputTo::Rank(rank) = self.stdin
            && rank >= plan.processes()
        {
            return Err(LaunchError::StdinRank { rank, processes: plan.processes() });
        }
        if self.dry_run {
            say(&plan.text())?;
            return Ok(0);
        }
        Job::run(self, &plan, self.start(&plan)?)
    }

    /// Makes all that the job needs, and starts it.
    fn start(&self, plan: &Plan) -> Result<Started, LaunchError> {
        let processes = plan.processes();
        let (stdout, stderr) = own_streams().map_err(system("use its own standard output"))?;
        let mut output = Output::new(processes as usize, stdout, stderr);
        self.make_room(processes, &output)?;
        let groups = MemoryGroups::of_this_process();
        let limits = Limits::of_this_process(&groups);
        let (cpus, guests) = (plan.cpus, self.slots_for_more(processes));
        let usual = SegmentPlan { cpus, guests, ..SegmentPlan::new(random_number()?, processes) };
        let usual = fit_segment(usual, limits)?;
        let (settings, began_ns) = (self.settings, clock::now_ns());
        let name = self.job_name(plan);
        let segment = Segment::create(&SegmentPlan {
            settings,
            name,
            began_ns,
            is_hardened: self.is_hardened,
            serves_groups: self.serves_groups.is_some(),
            ..usual
        })?;
        (0..).zip(plan.caches()).for_each(|(slot, cache)| segment.set_cache(slot, cache));
        let signals = Signals::catch().map_err(system("catch signals"))?;
        let (input, stdins) = Input::open(io::stdin().as_fd(), processes, self.stdin)
            .map_err(system("open standard input for the processes"))?;
        self.output_directory.as_deref().map_or(Ok(()), make_directory)?;
        let mut starts = Vec::with_capacity(processes as usize);
        let job = HostId(segment.plan().host).to_string();
        for ((rank, program), stdin) in plan.ranks().zip(stdins) {
            let (stdout, stderr) = match &self.output_directory {
                Some(directory) => output_files(&mut output, directory, rank, processes)?,
                None => pipes(&mut output, rank, self.tag_text(plan, rank))
                    .map_err(system("open pipes for the processes"))?,
            };
            let stdout_name = standard_output::name_of(&stdout);
            let identity = Identity { rank, processes, job: &job, stdout: stdout_name.as_deref() };
            let image = Image {
                program: c_string(program.file.as_os_str().as_bytes()),
                arguments: arguments(program),
                environment: program.environment.of_process(identity),
                directory: program.directory.clone(),
                cpus: plan.placement.cpus[rank as usize].clone(),
                stdin,
                stdout,
                stderr,
            };
            starts.push(Start { slot: rank, image });
        }
        let out_of_memory_kills = groups.out_of_memory_kills();
        let order = Order { starts, on_failure: self.on_failure, grace: self.grace };
        let guardian = guardian::fork(&segment, order)?;
        Ok(Started { segment, guardian, signals, output, input, groups, out_of_memory_kills })
    }

    /// Slots beyond those of the ranks: for guests, and for processes that are started again, of
    /// which each leaves its first slot to its predecessor.
    fn slots_for_more(&self, processes: u32) -> u32 {
        let again = match self.on_failure {
            OnFailure::Restart { .. } => processes,
            OnFailure::Abort | OnFailure::Notify => 0,
        };
        (GUESTS + again).min(SLOTS_MAX.saturating_sub(processes))
    }

    fn job_name(&self, plan: &Plan) -> JobName {
        let file = plan.programs.first().and_then(|program| program.file.file_name());
        let usual = || file.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        JobName::new(&self.name.clone().unwrap_or_else(usual))
    }

    fn make_room(&self, processes: u32, output: &Output) -> Result<(), LaunchError> {
        // What is open at the fork: standard input, each pipe with both of its ends, and each file.
        let (each, hint) = match &self.output_directory {
            Some(_) => (7, ""),
            None if output.is_merged() => (4, ""),
            None => (5, ", or send both streams to one place (2>&1)"),
        };
        Ok(make_room_for_descriptors(processes, u64::from(processes) * each + 64, hint)?)
    }

    fn tag_text(&self, plan: &Plan, rank: u32) -> String {
        let width = digits(plan.processes() - 1);
        match self.tag {
            Tag::None => String::new(),
            Tag::Rank => format!("[{rank:>width$}] "),
            Tag::Host => format!("[{rank:>width$}@{}] ", plan.host),
        }
    }
}

/// A job that has been started, with all that its end needs.
pub(crate) struct Started {
    pub(crate) segment: Segment,
    pub(crate) guardian: guardian::Guardian,
    pub(crate) signals: Signals,
    pub(crate) output: Output,
    pub(crate) input: Option<Input>,
    pub(crate) groups: MemoryGroups,
    pub(crate) out_of_memory_kills: u64,
}

/// An error of the system, with what was attempted.
pub(crate) fn system(attempt: &'static str) -> impl Fn(io::Error) -> LaunchError {
    move |source| LaunchError::System { attempt, source }
}

fn own_streams() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok((io::stdout().as_fd().try_clone_to_owned()?, io::stderr().as_fd().try_clone_to_owned()?))
}

/// Standard output and standard error of a process that writes to us.
fn pipes(output: &mut Output, rank: u32, tag: String) -> io::Result<(OwnedFd, OwnedFd)> {
    let process = rank as usize;
    let (reader, stdout) = output.open(Stream::Output)?;
    if output.is_merged() {
        output.add(process, Stream::Output, reader, tag);
        let stderr = stdout.try_clone()?;
        return Ok((stdout, stderr));
    }
    output.add(process, Stream::Output, reader, tag.clone());
    let (reader, stderr) = output.open(Stream::Error)?;
    output.add(process, Stream::Error, reader, tag);
    Ok((stdout, stderr))
}

/// Makes the directory for output files, if it is not there.
fn make_directory(path: &Path) -> Result<(), LaunchError> {
    file::make_directory(path)
        .map_err(|source| LaunchError::OutputDirectory { path: path.to_owned(), source })
}

/// Standard output and standard error of a process whose output goes into files of its own: by way of
/// the launcher, which sees what a full disk does not take.
fn output_files(
    output: &mut Output,
    directory: &Path,
    rank: u32,
    processes: u32,
) -> Result<(OwnedFd, OwnedFd), LaunchError> {
    let width = digits(processes - 1);
    let mut open = |stream: &str| -> Result<OwnedFd, LaunchError> {
        let path = directory.join(format!("rank-{rank:0width$}.{stream}"));
        let file = output_file(&path)
            .map_err(|source| LaunchError::OutputFile { path: path.clone(), source })?;
        let (reader, writer) = pipe().map_err(system("open pipes for the processes"))?;
        let name = path.display().to_string();
        output.add_with_file(rank as usize, reader, file.into(), name);
        Ok(writer)
    };
    Ok((open("stdout")?, open("stderr")?))
}

/// Opens a file for output. A named pipe is refused: the launcher would wait for its reader, though the
/// job is over.
fn output_file(path: &Path) -> io::Result<File> {
    // For reading as well: to open a named pipe for writing alone waits for its reader.
    let file = File::options().create(true).truncate(true).read(true).write(true).open(path)?;
    match file.metadata()?.file_type().is_fifo() {
        true => Err(io::Error::other("this is a named pipe, and a file is wanted; remove it")),
        false => Ok(file),
    }
}

fn arguments(program: &PlannedProgram) -> Vec<CString> {
    program.arguments.iter().map(|argument| c_string(argument.as_bytes())).collect()
}

/// Arguments and paths come from the command line, where no zero byte can be: nothing is cut.
fn c_string(bytes: &[u8]) -> CString {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    CString::new(&bytes[..end]).unwrap_or_default()
}

fn random_number() -> Result<u64, LaunchError> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty())
        .map_err(|error| system("get random numbers")(error.into()))?;
    Ok(u64::from_ne_bytes(bytes))
}

fn digits(number: u32) -> usize {
    number.checked_ilog10().unwrap_or(0) as usize + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_digits() {
        assert_eq!([0, 9, 10, 999, 1000].map(digits), [1, 1, 2, 3, 4]);
    }

    #[test]
    fn a_rank_that_does_not_exist_gets_no_input() {
        let program = Program { processes: Some(2), ..Program::new("true") };
        let launch = Launch { stdin: InputTo::Rank(2), ..Launch::new(vec![program]) };
        let error = launch.run().unwrap_err();
        assert_eq!(error.exit_code(), LAUNCHER_FAILED);
        assert!(error.to_string().starts_with("--stdin 2: there is no such rank"), "{error}");
    }
}
