//! Starts a job: creates everything that its processes need, then starts them.

use crate::budget::{Limits, fit_segment, make_room_for_descriptors};
use crate::cpu_set::CpuSet;
use crate::environment::Identity;
use crate::file;
use crate::guardian::{self, OnFailure, Order, Start};
use crate::input::Input;
use crate::launch::{Launch, LaunchError, system};
use crate::memory_groups::MemoryGroups;
use crate::output::{Output, Stream, Tag, pipe};
use crate::plan::{Plan, PlannedProgram};
use crate::process::Image;
use crate::signals::Signals;
use crate::standard_output;
use crate::witness::Witness;
use landeck_memory::plan::{GUESTS, SLOTS_MAX};
use landeck_memory::{JobName, Segment, SegmentPlan, system as clock};
use landeck_wire::SegmentId;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// A started job, with everything that its end needs.
pub(crate) struct Started {
    pub(crate) witness: Witness,
    pub(crate) guardian: guardian::Guardian,
    pub(crate) signals: Signals,
    pub(crate) output: Output,
    pub(crate) input: Option<Input>,
}

impl Launch {
    /// Creates everything that the job needs, and starts it.
    pub(crate) fn start(&self, plan: &Plan) -> Result<Started, LaunchError> {
        let processes = plan.processes();
        let (stdout, stderr) = own_streams().map_err(system("use its own standard output"))?;
        let mut output = Output::new(processes as usize, stdout, stderr);
        self.make_room(processes, &output)?;
        let groups = MemoryGroups::of_this_process();
        let usual =
            SegmentPlan { cpus: plan.cpus, ..SegmentPlan::new(random_number()?, processes) };
        let segment = create_segment(
            SegmentPlan {
                settings: self.settings,
                name: JobName::new(&self.name_of(&plan.programs)),
                is_hardened: self.is_hardened,
                serves_groups: self.serves_groups.is_some(),
                ..usual
            },
            self.on_failure,
            &groups,
        )?;
        (0..).zip(plan.caches()).for_each(|(slot, cache)| segment.set_cache(slot, cache));
        let signals = Signals::catch().map_err(system("catch signals"))?;
        let (input, stdins) = Input::open(io::stdin().as_fd(), processes, self.stdin)
            .map_err(system("open standard input for the processes"))?;
        self.output_directory.as_deref().map_or(Ok(()), make_directory)?;
        let mut starts = Vec::with_capacity(processes as usize);
        let job = SegmentId(segment.plan().host).to_string();
        for ((rank, program), stdin) in plan.ranks().zip(stdins) {
            let (stdout, stderr) = match &self.output_directory {
                Some(directory) => output_files(&mut output, directory, rank, processes)?,
                None => pipes(&mut output, rank, self.tag_text(plan, rank))
                    .map_err(system("open pipes for the processes"))?,
            };
            let stdout_name = standard_output::name_of(&stdout);
            let identity = Identity {
                rank,
                processes,
                slot: rank,
                local_processes: processes,
                job: &job,
                stdout: stdout_name.as_deref(),
                node: None,
            };
            let cpus = plan.placement.cpus[rank as usize].clone();
            let image = image_of(program, identity, cpus, [stdin, stdout, stderr]);
            starts.push(Start { slot: rank, image });
        }
        let witness = Witness::new(segment.clone(), &(0..processes).collect::<Vec<u32>>(), groups);
        let order = Order { starts, on_failure: self.on_failure, grace: self.grace };
        let guardian = guardian::fork(&segment, order)?;
        Ok(Started { witness, guardian, signals, output, input })
    }

    /// The name of the job: that of its first program's file, if the user gave none.
    pub(crate) fn name_of(&self, programs: &[PlannedProgram]) -> String {
        let file = programs.first().and_then(|program| program.file.file_name());
        let usual = || file.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        self.name.clone().unwrap_or_else(usual)
    }

    fn make_room(&self, processes: u32, output: &Output) -> Result<(), LaunchError> {
        // Open at the fork: standard input, each pipe with both of its ends, and each file.
        let (each, hint) = match &self.output_directory {
            Some(_) => (7, ""),
            None if output.is_merged() => (4, ""),
            None => (5, ", or send both streams to one place (2>&1)"),
        };
        Ok(make_room_for_descriptors(processes, u64::from(processes) * each + 64, hint)?)
    }

    fn tag_text(&self, plan: &Plan, rank: u32) -> String {
        self.tag.text(rank, plan.processes(), &plan.host)
    }
}

impl Tag {
    /// The tag before the lines of a process on this host.
    pub(crate) fn text(self, rank: u32, processes: u32, host: &str) -> String {
        let width = digits(processes - 1);
        match self {
            Tag::None => String::new(),
            Tag::Rank => format!("[{rank:>width$}] "),
            Tag::Host => format!("[{rank:>width$}@{host}] "),
        }
    }
}

/// Creates a segment that fits into the limits of this process.
pub(crate) fn create_segment(
    usual: SegmentPlan,
    on_failure: OnFailure,
    groups: &MemoryGroups,
) -> Result<Segment, LaunchError> {
    let guests = slots_for_more(usual.processes, on_failure);
    let limits = Limits::of_this_process(groups);
    let fitted = fit_segment(SegmentPlan { guests, ..usual }, limits)?;
    Ok(Segment::create(&SegmentPlan { began_ns: clock::now_ns(), ..fitted })?)
}

/// The number of slots beyond those of the ranks: for guests, and for restarted processes, each of which leaves its
/// first slot to its predecessor.
fn slots_for_more(processes: u32, on_failure: OnFailure) -> u32 {
    let again = match on_failure {
        OnFailure::Restart { .. } => processes,
        OnFailure::Abort | OnFailure::Notify => 0,
    };
    (GUESTS + again).min(SLOTS_MAX.saturating_sub(processes))
}

/// The image of a process of a program, with its three standard streams in order.
pub(crate) fn image_of(
    program: &PlannedProgram,
    identity: Identity<'_>,
    cpus: Option<CpuSet>,
    [stdin, stdout, stderr]: [OwnedFd; 3],
) -> Image {
    Image {
        program: c_string(program.file.as_os_str().as_bytes()),
        arguments: arguments(program),
        environment: program.environment.of_process(identity),
        directory: program.directory.clone(),
        cpus,
        stdin,
        stdout,
        stderr,
    }
}

pub(crate) fn own_streams() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok((io::stdout().as_fd().try_clone_to_owned()?, io::stderr().as_fd().try_clone_to_owned()?))
}

/// Standard output and standard error of a process whose output goes through the launcher.
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

/// Creates the directory for output files, unless it exists.
pub(crate) fn make_directory(path: &Path) -> Result<(), LaunchError> {
    file::make_directory(path)
        .map_err(|source| LaunchError::OutputDirectory { path: path.to_owned(), source })
}

/// Standard output and standard error of a process with output files of its own. The output still goes through the
/// launcher, which notices a full disk.
fn output_files(
    output: &mut Output,
    directory: &Path,
    rank: u32,
    processes: u32,
) -> Result<(OwnedFd, OwnedFd), LaunchError> {
    let mut open = |stream: Stream| -> Result<OwnedFd, LaunchError> {
        let (name, file) = open_output_file(directory, rank, processes, stream)?;
        let (reader, writer) = pipe().map_err(system("open pipes for the processes"))?;
        output.add_with_file(rank as usize, reader, file, name);
        Ok(writer)
    };
    Ok((open(Stream::Output)?, open(Stream::Error)?))
}

/// Opens the file for a stream of a process; returns its name in messages as well.
pub(crate) fn open_output_file(
    directory: &Path,
    rank: u32,
    processes: u32,
    stream: Stream,
) -> Result<(String, OwnedFd), LaunchError> {
    let width = digits(processes - 1);
    let ending = match stream {
        Stream::Output => "stdout",
        Stream::Error => "stderr",
    };
    let path = directory.join(format!("rank-{rank:0width$}.{ending}"));
    let name = path.display().to_string();
    let file = output_file(&path).map_err(|source| LaunchError::OutputFile { path, source })?;
    Ok((name, file.into()))
}

/// Opens a file for output. A named pipe is refused: the launcher would wait for its reader even after the end of the
/// job.
fn output_file(path: &Path) -> io::Result<File> {
    // Opened for reading as well: opening a named pipe for writing only would wait for its reader.
    let file = File::options().create(true).truncate(true).read(true).write(true).open(path)?;
    match file.metadata()?.file_type().is_fifo() {
        true => Err(io::Error::other("this is a named pipe, and a file is wanted; remove it")),
        false => Ok(file),
    }
}

fn arguments(program: &PlannedProgram) -> Vec<CString> {
    program.arguments.iter().map(|argument| c_string(argument.as_bytes())).collect()
}

/// Converts bytes to a text of C. Arguments and paths come from the command line, which contains no zero byte, so
/// nothing is cut.
fn c_string(bytes: &[u8]) -> CString {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    CString::new(&bytes[..end]).unwrap_or_default()
}

pub(crate) fn random_number() -> Result<u64, LaunchError> {
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
}
