//! The resolved form of a launch: every process with its program, directory and processors.
//!
//! All mistakes in a launch are found here, before anything is started.

use crate::budget::check_processes;
use crate::cpu_set::CpuSet;
use crate::environment::Environment;
use crate::launch::{Launch, LaunchError, Program};
use crate::placement::{
    BindTo, MapBy, Placement, PlacementError, PlacementRequest, Reason, levels_needed, place,
    threads_asked,
};
use crate::program;
use crate::topology::{Level, Topology, cache_word};
use landeck_memory::processors;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A resolved launch.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The name of this host.
    pub host: String,
    /// The programs, in the order of their ranks.
    pub programs: Vec<PlannedProgram>,
    /// The processors of each rank.
    pub placement: Placement,
    /// The number of processors that the job can keep busy.
    pub cpus: u32,
}

/// A program with everything that its processes share.
#[derive(Debug, Clone)]
pub struct PlannedProgram {
    /// The file.
    pub file: PathBuf,
    /// The arguments, beginning with the name as the user gave it.
    pub arguments: Vec<OsString>,
    /// Its working directory.
    pub directory: PathBuf,
    /// Its environment.
    pub environment: Environment,
    /// The number of processes that run it.
    pub processes: u32,
}

impl Plan {
    /// Resolves a launch.
    ///
    /// # Errors
    /// If a program, a directory or the processors asked for do not exist.
    pub fn new(launch: &Launch) -> Result<Plan, LaunchError> {
        let usable = CpuSet::of_this_thread().unwrap_or_default();
        let cpus = processors::usable();
        let default = match launch.programs.as_slice() {
            [one] if one.processes.is_none() => usable_cores(&usable, cpus),
            _ => 1,
        };
        let programs = launch.programs.iter().map(|program| resolve(program, default));
        let programs = programs.collect::<Result<Vec<PlannedProgram>, LaunchError>>()?;
        check_processes(programs.iter().map(|program| u64::from(program.processes)).sum())?;
        let mut plan = Plan {
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            programs,
            placement: Placement::nowhere(),
            cpus,
        };
        let threads = plan.programs.iter().find_map(|program| {
            threads_asked(|name| program.environment.get(name)?.to_str().map(str::to_owned))
        });
        let free = threads.map(Reason::Threads);
        plan.placement = placement_here(plan.processes(), launch.map_by, launch.bind_to, free)?;
        Ok(plan)
    }

    /// The number of processes.
    pub fn processes(&self) -> u32 {
        self.programs.iter().map(|program| program.processes).sum()
    }

    /// Every rank with its program, in order.
    pub fn ranks(&self) -> impl Iterator<Item = (u32, &PlannedProgram)> {
        let each = self.programs.iter();
        (0..).zip(each.flat_map(|program| (0..program.processes).map(move |_| program)))
    }

    /// The word for the last-level cache that each rank is bound to, in the form of
    /// [`Segment::cache_of`](landeck_memory::Segment::cache_of).
    pub fn caches(&self) -> Vec<u16> {
        caches_of(&self.placement)
    }

    /// A description of what would be started where.
    pub fn text(&self) -> String {
        let mut text = format!("{} on host {}", count(self.processes()), self.host);
        text += &format!(". {}\n", self.binding());
        for (rank, program) in self.ranks() {
            text += &format!("rank {rank}: ");
            if let Some(cpus) = &self.placement.cpus[rank as usize] {
                text += &format!("{}, ", cpus.in_words());
            }
            text += &format!("in {}: {}\n", program.directory.display(), with_arguments(program));
        }
        text
    }

    /// A description of which rank is bound to which processors.
    pub fn bindings(&self) -> String {
        let mut text = format!("{}\n", self.binding());
        for (rank, cpus) in self.placement.cpus.iter().enumerate() {
            if let Some(cpus) = cpus {
                text += &format!("rank {rank} is bound to {}\n", cpus.in_words());
            }
        }
        text
    }

    fn binding(&self) -> String {
        binding_text(&self.placement)
    }
}

/// Places so many processes on this host. `free` is the reason to bind none where the user does not say.
///
/// # Errors
/// If the processors asked for do not exist.
pub fn placement_here(
    processes: u32,
    map_by: MapBy,
    bind_to: Option<BindTo>,
    free: Option<Reason>,
) -> Result<Placement, PlacementError> {
    let usable = CpuSet::of_this_thread().unwrap_or_default();
    let processors = processors::usable() as usize;
    let request =
        PlacementRequest { processes: processes as usize, map_by, bind_to, processors, free };
    place(&request, &Topology::read(&usable, &levels_needed(&request)))
}

/// The word for the last-level cache that each process is bound to, in the form of
/// [`Segment::cache_of`](landeck_memory::Segment::cache_of).
pub fn caches_of(placement: &Placement) -> Vec<u16> {
    placement.cpus.iter().map(|cpus| cpus.as_ref().map_or(0, cache_word)).collect()
}

/// The default number of processes: one for each core that the job can keep busy.
fn usable_cores(usable: &CpuSet, cpus: u32) -> u32 {
    let cores = Topology::read(usable, &[Level::Core]).cores.len();
    u32::try_from(cores).unwrap_or(u32::MAX).clamp(1, cpus)
}

/// Finds a program, which `default` processes run if it does not say, and its directory on this host.
pub(crate) fn resolve(program: &Program, default: u32) -> Result<PlannedProgram, LaunchError> {
    let directory = match &program.directory {
        None => PathBuf::from("."),
        Some(directory) => {
            let refuse = |source| LaunchError::Directory { path: directory.clone(), source };
            let whole = std::path::absolute(directory).map_err(refuse)?;
            check_directory_named(&whole, directory)?;
            whole
        }
    };
    let environment = Environment::new(std::env::vars_os(), program.inherit, &program.exports);
    let search = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let from = program.directory.is_some().then_some(directory.as_path());
    let file = program::find(&program.name, from, &search)?;
    let arguments = std::iter::once(&program.name).chain(&program.arguments);
    Ok(PlannedProgram {
        file,
        arguments: arguments.cloned().collect(),
        directory,
        environment,
        processes: program.processes.unwrap_or(default),
    })
}

/// Checks that this user may start processes in a directory.
///
/// # Errors
/// [`LaunchError::Directory`].
pub(crate) fn check_directory(directory: &Path) -> Result<(), LaunchError> {
    check_directory_named(directory, directory)
}

/// Checks a directory, which errors call `name`.
fn check_directory_named(directory: &Path, name: &Path) -> Result<(), LaunchError> {
    let refuse = |source| LaunchError::Directory { path: name.to_owned(), source };
    match std::fs::metadata(directory).map_err(refuse)?.is_dir() {
        true => Ok(()),
        false => Err(refuse(std::io::ErrorKind::NotADirectory.into())),
    }
}

/// A sentence about the binding of all processes.
pub(crate) fn binding_text(placement: &Placement) -> String {
    let Placement { bind_to, reason, .. } = placement;
    match bind_to {
        BindTo::None => format!("No process is bound: {reason}."),
        _ => format!("Each process is bound to {bind_to}: {reason}."),
    }
}

/// A program's file and its arguments, quoted as for a shell.
pub(crate) fn with_arguments(program: &PlannedProgram) -> String {
    let mut text = program.file.display().to_string();
    for argument in &program.arguments[1..] {
        text += &format!(" {}", quoted(&argument.to_string_lossy()));
    }
    text
}

/// A number of processes in words.
pub(crate) fn count(processes: u32) -> String {
    if processes == 1 { "1 process".to_owned() } else { format!("{processes} processes") }
}

/// Quotes an argument as for a shell.
fn quoted(argument: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_./=:,+@%".contains(letter);
    match !argument.is_empty() && argument.chars().all(is_plain) {
        true => argument.to_owned(),
        false => format!("'{}'", argument.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(programs: &[(&str, Option<u32>)]) -> Launch {
        let program = |(name, processes): &(&str, Option<u32>)| Program {
            processes: *processes,
            ..Program::new(*name)
        };
        Launch::new(programs.iter().map(program).collect())
    }

    #[test]
    fn ranks_follow_the_programs() {
        let launch = launch(&[("sh", Some(2)), ("true", Some(1)), ("ls", None)]);
        let plan = Plan::new(&launch).unwrap();
        assert_eq!(plan.processes(), 4);
        let names: Vec<_> = plan.ranks().map(|(_, program)| &program.arguments[0]).collect();
        assert_eq!(names, ["sh", "sh", "true", "ls"]);
    }

    #[test]
    fn a_single_program_gets_the_usable_cores() {
        let plan = Plan::new(&launch(&[("true", None)])).unwrap();
        assert!(plan.processes() >= 1 && plan.processes() <= processors::usable());
    }

    #[test]
    fn a_missing_program_or_folder_is_found_before_anything_starts() {
        let code = |launch: &Launch| Plan::new(launch).unwrap_err().exit_code();
        assert_eq!(code(&launch(&[("no-such-program", Some(1))])), 127);
        assert_eq!(code(&launch(&[("/etc/passwd", Some(1))])), 126);
        let mut elsewhere = launch(&[("true", Some(1))]);
        elsewhere.programs[0].directory = Some("/no/such/directory".into());
        assert!(Plan::new(&elsewhere).unwrap_err().to_string().contains("/no/such/directory"));
    }

    #[test]
    fn the_plan_can_be_read() {
        let mut launch = launch(&[("sh", Some(1))]);
        launch.programs[0].arguments = vec!["-c".into(), "echo it's".into()];
        let text = Plan::new(&launch).unwrap().text();
        assert!(text.starts_with("1 process on host "), "{text}");
        assert!(text.contains(r"sh -c 'echo it'\''s'"), "{text}");
        assert!(text.contains("No process is bound: a single process"), "{text}");
    }
}
