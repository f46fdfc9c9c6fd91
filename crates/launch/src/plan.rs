//! The resolved form of a launch: every process with its program, directory, host and processors.
//!
//! All mistakes in a launch are found here, before anything is started or connected. The processors of other hosts are
//! known only once their daemons have started.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use landeck_host::budget::check_processes;
use landeck_host::cpu_set::CpuSet;
use landeck_host::environment::Environment;
use landeck_host::placement::{
    BindTo, CpuPlacement, MapBy, PlacementError, PlacementRequest, Reason, levels_needed, place,
    threads_asked,
};
use landeck_host::topology::{CpuLevel, Topology, cache_word};
use landeck_hostfile::placement::processes_of;
use landeck_hostfile::{HostPlacement, HostRequest, RankPlace, RanksBy};
use landeck_memory::processors;
use serde::{Deserialize, Serialize};

use crate::hosts_options::HostsOptions;
use crate::program;
use crate::request::{Launch, LaunchError, ProgramRequest};

/// A resolved launch.
#[derive(Debug, Clone)]
pub struct LaunchPlan {
    /// The programs, in the order of their ranks. For several hosts, files and directories are absolute paths.
    pub programs: Vec<PlannedProgram>,
    /// The hosts that have ranks.
    pub hosts: Vec<HostRequest>,
    /// The host and slot of each rank.
    pub places: HostPlacement,
    /// How the hosts get their parts.
    pub way: PartsWay,
}

/// How the hosts of a job get their parts.
#[derive(Debug, Clone)]
pub enum PartsWay {
    /// The launcher has the only part, whose ranks have these processors.
    Here(CpuPlacement),
    /// Daemons have one each, and connect the hosts as these options say.
    Daemons(Box<HostsOptions>),
}

/// A program with everything that its processes share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedProgram {
    /// The file.
    #[serde(with = "path_bytes")]
    pub file: PathBuf,
    /// The arguments, beginning with the name as the user gave it.
    pub arguments: Vec<OsString>,
    /// Its working directory.
    #[serde(with = "path_bytes")]
    pub directory: PathBuf,
    /// Its environment.
    pub environment: Environment,
    /// The number of processes that run it.
    pub processes: u32,
}

/// The form in which a path travels: its bytes, which need not be text.
mod path_bytes {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::ffi::OsString;
    use std::path::{Path, PathBuf};

    pub(super) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        path.as_os_str().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        OsString::deserialize(from).map(PathBuf::from)
    }
}

impl LaunchPlan {
    /// Resolves a launch.
    ///
    /// # Errors
    /// If a program, a directory or the processors asked for do not exist, or the processes do not fit on the hosts.
    pub fn new(launch: &Launch) -> Result<LaunchPlan, LaunchError> {
        match &launch.hosts {
            Some(options) => Self::on_hosts(launch, options),
            None => Self::on_this_host(launch),
        }
    }

    fn on_this_host(launch: &Launch) -> Result<LaunchPlan, LaunchError> {
        let default = match launch.programs.as_slice() {
            [one] if one.processes.is_none() => usable_cores(),
            _ => 1,
        };
        let programs = launch.programs.iter().map(|program| resolve(program, default));
        let programs = programs.collect::<Result<Vec<PlannedProgram>, LaunchError>>()?;
        check_processes(programs.iter().map(|program| u64::from(program.processes)).sum())?;
        let processes = programs.iter().map(|program| program.processes).sum();
        let free = threads_of(&programs);
        let here = placement_here(&[], processes, launch.map_by, launch.bind_to, free)?;
        let hosts = vec![HostRequest::new(own_name(), processes)];
        let places = HostPlacement::new(&hosts, RanksBy::Slot, None, processes)?;
        Ok(LaunchPlan { programs, hosts, places, way: PartsWay::Here(here) })
    }

    fn on_hosts(launch: &Launch, options: &HostsOptions) -> Result<LaunchPlan, LaunchError> {
        let asked: Vec<Option<u32>> =
            launch.programs.iter().map(|program| program.processes).collect();
        let numbers = processes_of(&asked, &options.list, options.per_host)?;
        let ranks = numbers.iter().sum();
        let places = HostPlacement::new(&options.list, options.map_by, options.per_host, ranks)?;
        let (places, hosts) = places.without_idle(&options.list);
        for &processes in places.counts() {
            check_processes(processes.into())?;
        }
        let mut programs = Vec::with_capacity(numbers.len());
        for (program, processes) in launch.programs.iter().zip(numbers) {
            let mut planned = resolve(program, processes)?;
            planned.file = absolute(planned.file)?;
            planned.directory = absolute(planned.directory)?;
            planned.environment = planned.environment.for_other_hosts(&program.exports);
            programs.push(planned);
        }
        let way = PartsWay::Daemons(Box::new(options.clone()));
        Ok(LaunchPlan { programs, hosts, places, way })
    }

    /// The number of processes.
    pub fn processes(&self) -> u32 {
        self.places.ranks()
    }

    /// Every rank with its place and its program, in order.
    pub fn ranks(&self) -> impl Iterator<Item = (u32, RankPlace, &PlannedProgram)> {
        let each = self.programs.iter();
        let programs = each.flat_map(|program| (0..program.processes).map(move |_| program));
        let places = self.places.places().iter().copied();
        (0..).zip(places.zip(programs)).map(|(rank, (place, program))| (rank, place, program))
    }

    /// A description of what would be started where.
    pub fn text(&self) -> String {
        let mut text = self.headline();
        for (rank, place, program) in self.ranks() {
            let host = &self.hosts[place.host].name;
            let whereabouts = match &self.way {
                PartsWay::Here(here) => {
                    let cpus = here.cpus[rank as usize].as_ref();
                    cpus.map_or_else(String::new, |cpus| format!("{}, ", cpus.in_words()))
                }
                PartsWay::Daemons(_) => format!("host {host}, slot {}, ", place.slot),
            };
            let directory = program.directory.display();
            text += &format!("rank {rank}: {whereabouts}in {directory}: ");
            text += &with_arguments(program);
            text.push('\n');
        }
        if let Some(note) = self.places.note(&self.hosts) {
            text += &format!("Note: {note}.\n");
        }
        text
    }

    fn headline(&self) -> String {
        let processes = count(self.processes());
        match (&self.way, self.hosts.as_slice()) {
            (PartsWay::Here(here), [host, ..]) => {
                format!("{processes} on host {}. {}\n", host.name, binding_text(here))
            }
            (_, hosts) => format!(
                "{processes} on {} host{}. Nothing was connected: cores and bindings are not known yet.\n",
                hosts.len(),
                if hosts.len() == 1 { "" } else { "s" }
            ),
        }
    }
}

/// The name of this host.
pub(crate) fn own_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The reason to bind no process that lies in the environments of these programs: a variable asks for several threads.
pub(crate) fn threads_of<'a>(
    programs: impl IntoIterator<Item = &'a PlannedProgram>,
) -> Option<Reason> {
    let asked = programs.into_iter().find_map(|program| {
        threads_asked(|name| program.environment.get(name)?.to_str().map(str::to_owned))
    });
    asked.map(Reason::Threads)
}

/// An absolute path, since the daemons of other hosts start in another directory.
fn absolute(path: PathBuf) -> Result<PathBuf, LaunchError> {
    std::path::absolute(&path).map_err(|source| LaunchError::Directory { path, source })
}

/// Places so many processes on this host. `booked` has the numbers of the cores that their job has for itself, counted from 0:
/// no process leaves them. Without any, all cores are theirs. `free` is the reason to bind none where the user does not say.
///
/// # Errors
/// If the processors asked for do not exist.
pub fn placement_here(
    booked: &[u16],
    processes: u32,
    map_by: MapBy,
    bind_to: Option<BindTo>,
    free: Option<Reason>,
) -> Result<CpuPlacement, PlacementError> {
    let all = CpuSet::of_this_thread().unwrap_or_default();
    let own = Some(cores_of(&all, booked)).filter(|own| !own.is_empty());
    let usable = own.as_ref().unwrap_or(&all);
    let processors = (processors::usable() as usize).min(usable.count().max(1));
    let request =
        PlacementRequest { processes: processes as usize, map_by, bind_to, processors, free };
    let mut placement = place(&request, &Topology::read(usable, &levels_needed(&request)))?;
    for cpus in &mut placement.cpus {
        *cpus = cpus.take().or_else(|| own.clone());
    }
    Ok(placement)
}

/// The processors of these cores among all usable ones. Without cores nothing is read.
fn cores_of(all: &CpuSet, numbers: &[u16]) -> CpuSet {
    if numbers.is_empty() {
        return CpuSet::default();
    }
    let cores = Topology::read(all, &[CpuLevel::Core]).cores;
    let own = numbers.iter().filter_map(|&core| cores.get(usize::from(core)));
    own.flat_map(CpuSet::iter).collect()
}

/// The word for the last-level cache that each process is bound to, in the form of
/// [`Segment::cache_of`](landeck_memory::Segment::cache_of).
pub fn caches_of(placement: &CpuPlacement) -> Vec<u16> {
    placement.cpus.iter().map(|cpus| cpus.as_ref().map_or(0, cache_word)).collect()
}

/// The cores of this host that this user's processes can keep busy.
pub fn usable_cores() -> u32 {
    let usable = CpuSet::of_this_thread().unwrap_or_default();
    let cores = Topology::read(&usable, &[CpuLevel::Core]).cores.len();
    u32::try_from(cores).unwrap_or(u32::MAX).clamp(1, processors::usable())
}

/// Finds a program, which `default` processes run if it does not say, and its directory on this host.
fn resolve(program: &ProgramRequest, default: u32) -> Result<PlannedProgram, LaunchError> {
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
pub(crate) fn binding_text(placement: &CpuPlacement) -> String {
    let CpuPlacement { bind_to, reason, .. } = placement;
    match bind_to {
        BindTo::None => format!("No process is bound: {reason}."),
        _ => format!("Each process is bound to {bind_to}: {reason}."),
    }
}

/// A program's file and its arguments, quoted as for a shell.
fn with_arguments(program: &PlannedProgram) -> String {
    let mut text = program.file.display().to_string();
    for argument in &program.arguments[1..] {
        text += &format!(" {}", quoted(&argument.to_string_lossy()));
    }
    text
}

/// A number of processes in words.
fn count(processes: u32) -> String {
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
    use landeck_hostfile::host_list::{from_file, from_words};

    fn launch(programs: &[(&str, Option<u32>)]) -> Launch {
        let program = |(name, processes): &(&str, Option<u32>)| ProgramRequest {
            processes: *processes,
            ..ProgramRequest::new(*name)
        };
        Launch::new(programs.iter().map(program).collect())
    }

    #[test]
    fn ranks_follow_the_programs() {
        let launch = launch(&[("sh", Some(2)), ("true", Some(1)), ("ls", None)]);
        let plan = LaunchPlan::new(&launch).unwrap();
        assert_eq!(plan.processes(), 4);
        let names: Vec<_> = plan.ranks().map(|(_, _, program)| &program.arguments[0]).collect();
        assert_eq!(names, ["sh", "sh", "true", "ls"]);
    }

    #[test]
    fn a_single_program_gets_the_usable_cores() {
        let plan = LaunchPlan::new(&launch(&[("true", None)])).unwrap();
        assert!(plan.processes() >= 1 && plan.processes() <= processors::usable());
    }

    #[test]
    fn a_missing_program_or_folder_is_found_before_anything_starts() {
        let code = |launch: &Launch| LaunchPlan::new(launch).unwrap_err().exit_code();
        assert_eq!(code(&launch(&[("no-such-program", Some(1))])), 127);
        assert_eq!(code(&launch(&[("/etc/passwd", Some(1))])), 126);
        let mut elsewhere = launch(&[("true", Some(1))]);
        elsewhere.programs[0].directory = Some("/no/such/directory".into());
        assert!(
            LaunchPlan::new(&elsewhere).unwrap_err().to_string().contains("/no/such/directory")
        );
    }

    #[test]
    fn the_plan_can_be_read() {
        let mut launch = launch(&[("sh", Some(1))]);
        launch.programs[0].arguments = vec!["-c".into(), "echo it's".into()];
        let text = LaunchPlan::new(&launch).unwrap().text();
        assert!(text.starts_with("1 process on host "), "{text}");
        assert!(text.contains(r"sh -c 'echo it'\''s'"), "{text}");
        assert!(text.contains("No process is bound: a single process"), "{text}");
    }

    fn on_hosts(
        programs: &[(&str, Option<u32>)],
        options: &HostsOptions,
    ) -> Result<LaunchPlan, LaunchError> {
        let mut launch = launch(programs);
        launch.programs.iter_mut().for_each(|program| program.arguments = vec!["it's".into()]);
        LaunchPlan::new(&Launch { hosts: Some(options.clone()), ..launch })
    }

    fn options(hosts: &str) -> HostsOptions {
        HostsOptions::new(from_words(hosts).unwrap())
    }

    #[test]
    fn ranks_of_several_programs_go_over_one_list() {
        let node_by_node = HostsOptions { map_by: RanksBy::Node, ..options("a:2,b") };
        let plan = on_hosts(&[("sh", Some(2)), ("true", None)], &node_by_node).unwrap();
        let ranks: Vec<_> = plan
            .ranks()
            .map(|(rank, place, program)| {
                let name = program.arguments[0].to_str().unwrap();
                (rank, plan.hosts[place.host].name.as_str(), place.slot, name)
            })
            .collect();
        assert_eq!(ranks, [(0, "a", 0, "sh"), (1, "b", 0, "sh"), (2, "a", 1, "true")]);
        assert!(plan.programs.iter().all(|program| program.directory.is_absolute()));
    }

    #[test]
    fn hosts_without_a_rank_take_no_part() {
        let mut options = HostsOptions::new(from_file("a max_slots=1\nb\nc:2\nd").unwrap());
        options.list[1].max_slots = Some(0);
        let plan = on_hosts(&[("true", Some(3))], &options).unwrap();
        let names: Vec<&str> = plan.hosts.iter().map(|host| host.name.as_str()).collect();
        assert_eq!((names, plan.places.counts()), (vec!["a", "c"], &[1, 2][..]));
        let places: Vec<_> = plan.ranks().map(|(_, place, _)| (place.host, place.slot)).collect();
        assert_eq!(places, [(0, 0), (1, 0), (1, 1)]);
    }

    #[test]
    fn the_plan_for_hosts_can_be_read() {
        let text = on_hosts(&[("sh", None)], &options("a:2,b")).unwrap().text();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("3 processes on 2 hosts. Nothing was connected: "), "{text}");
        assert!(lines[1].starts_with("rank 0: host a, slot 0, in /"), "{text}");
        assert!(lines[3].starts_with("rank 2: host b, slot 0, in /"), "{text}");
        assert!(lines[3].ends_with(r"/sh 'it'\''s'"), "{text}");
        assert_eq!(lines.len(), 4);
        let text = on_hosts(&[("sh", Some(4))], &options("a:2,b")).unwrap().text();
        assert!(text.ends_with("Note: oversubscribed: a (3 processes, 2 slots).\n"), "{text}");
    }

    #[test]
    fn mistakes_are_found_before_anything_is_connected() {
        let refused =
            |programs: &[_], options: &HostsOptions| on_hosts(programs, options).unwrap_err();
        let error = refused(&[("no-such-program", None)], &options("a,b"));
        assert_eq!(error.exit_code(), 127);
        let limited = HostsOptions::new(from_file("a max_slots=1\nb max_slots=1").unwrap());
        let error = refused(&[("sh", Some(3))], &limited);
        assert!(error.to_string().contains("max_slots permits 2 in all"), "{error}");
        let error = refused(&[("sh", None)], &options("a:65535,b"));
        assert!(error.to_string().contains("16,368 processes on one host, not 65,535"), "{error}");
    }
}
