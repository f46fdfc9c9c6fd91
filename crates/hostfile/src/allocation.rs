//! The hosts of an allocation, as Slurm, PBS, LSF and SGE describe it in the environment of a job's script.

use crate::host_list::{
    HOSTS_MAX, HostFault, HostListError, HostRequest, Sum, check_name, excerpt, number,
};
use std::fmt;

/// The longest name of a host with ranges, in bytes.
const NAME_BYTES_MAX: usize = 255;
/// The longest number in a range, in digits.
const DIGITS_MAX: usize = 18;

/// A system that gives hosts to jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchSystem {
    /// Slurm.
    Slurm,
    /// PBS and Torque.
    Pbs,
    /// LSF.
    Lsf,
    /// SGE and its descendants.
    Sge,
}

/// The hosts that such a system has given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    /// The system.
    pub system: BatchSystem,
    /// The hosts with their slots.
    pub hosts: Vec<HostRequest>,
}

/// The reason why an allocation is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AllocationError {
    /// A variable is wrong.
    #[error(
        "{variable}, which {system} sets: {fault}. Name the hosts with --host, or only this one with \
         --host localhost"
    )]
    Variable {
        /// The variable.
        variable: &'static str,
        /// The system.
        system: BatchSystem,
        /// The fault.
        fault: HostListError,
    },
    /// A file is wrong.
    #[error(
        "{path}, which {system} names in {variable}: {fault}. Name the hosts with --host, or only this one \
         with --host localhost"
    )]
    File {
        /// The file.
        path: String,
        /// The variable that names it.
        variable: &'static str,
        /// The system.
        system: BatchSystem,
        /// The fault.
        fault: HostListError,
    },
    /// A file cannot be read.
    #[error(
        "{path}, which {system} names in {variable}, cannot be read: {reason}. Name the hosts with --host, or \
         only this one with --host localhost"
    )]
    Unreadable {
        /// The file.
        path: String,
        /// The variable that names it.
        variable: &'static str,
        /// The system.
        system: BatchSystem,
        /// The reason.
        reason: String,
    },
}

/// The variables with the nodes of a Slurm job; the older one comes second.
const NODES: [&str; 2] = ["SLURM_JOB_NODELIST", "SLURM_NODELIST"];
/// The variable with the number of tasks on each node of a Slurm job.
const TASKS: &str = "SLURM_TASKS_PER_NODE";
/// The variables that name a file, with the parser of that file.
const FILES: [(&str, BatchSystem, Parser); 3] = [
    ("PBS_NODEFILE", BatchSystem::Pbs, from_names),
    ("LSB_DJOB_HOSTFILE", BatchSystem::Lsf, from_names),
    ("PE_HOSTFILE", BatchSystem::Sge, from_sge),
];

type Parser = fn(&str) -> Result<Vec<HostRequest>, HostListError>;

/// The allocation in which a process runs; `None` if it runs in none. `variable` looks a variable up, and `read`
/// returns the content of a file or the reason why it has none.
///
/// # Errors
/// [`AllocationError`] names the variable or the file.
pub fn current(
    variable: impl Fn(&str) -> Option<String>,
    read: impl Fn(&str) -> Result<String, String>,
) -> Result<Option<Allocation>, AllocationError> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let nodes = NODES.into_iter().find_map(|name| Some((name, set(name)?)));
    if let Some((name, nodes)) = nodes {
        let system = BatchSystem::Slurm;
        let wrong = |variable| move |fault| AllocationError::Variable { variable, system, fault };
        let names = node_names(&nodes).map_err(wrong(name))?;
        let hosts = with_tasks(names, set(TASKS).as_deref()).map_err(wrong(TASKS))?;
        return Ok(Some(Allocation { system, hosts }));
    }
    for (variable, system, parse) in FILES {
        let Some(path) = set(variable) else { continue };
        return match read(&path) {
            Err(reason) => Err(AllocationError::Unreadable { path, variable, system, reason }),
            Ok(text) => match parse(&text) {
                Ok(hosts) => Ok(Some(Allocation { system, hosts })),
                Err(fault) => Err(AllocationError::File { path, variable, system, fault }),
            },
        };
    }
    Ok(None)
}

/// Whether the environment is that of an allocation.
pub fn is_inside(variable: impl Fn(&str) -> bool) -> bool {
    NODES.into_iter().chain(FILES.map(|(name, ..)| name)).any(variable)
}

/// Parses Slurm's list of nodes and its number of tasks on each, as in `n[1-3,07-09],m5` and `2(x3),1(x4)`. Without
/// the latter each node has one slot.
///
/// # Errors
/// [`HostListError`].
pub fn from_slurm(nodes: &str, tasks: Option<&str>) -> Result<Vec<HostRequest>, HostListError> {
    with_tasks(node_names(nodes)?, tasks)
}

/// Parses a file with a host in each line, which repeats a host for each of its slots, as PBS and LSF write it.
///
/// # Errors
/// [`HostListError`] with the number of the line.
pub fn from_names(text: &str) -> Result<Vec<HostRequest>, HostListError> {
    let mut sum = Sum::default();
    for (at, line) in text.lines().enumerate() {
        let name = line.trim();
        if name.is_empty() {
            continue;
        }
        let host = check_name(name).and_then(|()| sum.add(host(name.to_owned(), 1)));
        host.map_err(|fault| fault.in_line(at + 1))?;
    }
    sum.any()
}

/// Parses SGE's file of hosts: name, slots, queue and processors in each line.
///
/// # Errors
/// [`HostListError`] with the number of the line.
pub fn from_sge(text: &str) -> Result<Vec<HostRequest>, HostListError> {
    let mut sum = Sum::default();
    for (at, line) in text.lines().enumerate() {
        let mut words = line.split_whitespace();
        let Some(name) = words.next() else { continue };
        let slots = words.next().unwrap_or_default();
        let added = check_name(name).and_then(|()| {
            let slots = number(slots).ok_or_else(|| HostFault::Slots(excerpt(slots)))?;
            sum.add(host(name.to_owned(), slots))
        });
        added.map_err(|fault| fault.in_line(at + 1))?;
    }
    sum.any()
}

fn host(name: String, slots: u32) -> HostRequest {
    HostRequest::new(name, slots)
}

/// Gives each node its number of tasks.
fn with_tasks(names: Vec<String>, tasks: Option<&str>) -> Result<Vec<HostRequest>, HostListError> {
    let counts = match tasks {
        None => vec![1; names.len()],
        Some(tasks) => task_counts(tasks).map_err(HostFault::of_list)?,
    };
    if counts.len() != names.len() {
        let (counts, hosts) = (counts.len(), names.len());
        return Err(HostFault::CountsDiffer { counts, hosts }.of_list());
    }
    let mut sum = Sum::default();
    for (name, slots) in names.into_iter().zip(counts) {
        sum.add(host(name, slots)).map_err(HostFault::of_list)?;
    }
    sum.any()
}

/// The numbers in `2(x3),1`: here 2, 2, 2 and 1.
fn task_counts(text: &str) -> Result<Vec<u32>, HostFault> {
    let mut counts = Vec::new();
    for entry in text.split(',') {
        let wrong = || HostFault::Counts(excerpt(entry));
        let (count, times) = match entry.trim().split_once("(x") {
            None => (entry.trim(), 1),
            Some((count, rest)) => {
                let times = rest.strip_suffix(')').and_then(number).ok_or_else(wrong)?;
                (count, times as usize)
            }
        };
        let count = number(count).ok_or_else(wrong)?;
        if counts.len() + times > HOSTS_MAX {
            return Err(HostFault::Hosts);
        }
        counts.extend(std::iter::repeat_n(count, times));
    }
    Ok(counts)
}

/// A part of a name with ranges.
enum NamePart<'a> {
    Text(&'a str),
    Ranges(Vec<Range>),
}

/// Numbers from `first` to `last`, with at least `width` digits.
struct Range {
    first: u64,
    last: u64,
    width: usize,
}

impl Range {
    /// The number of numbers.
    fn count(&self) -> u64 {
        self.last - self.first + 1
    }
}

/// The names in `n[1-3,07-09],m5`. All ranges are counted before any name is made.
fn node_names(text: &str) -> Result<Vec<String>, HostListError> {
    let mut names = Vec::new();
    for (at, entry) in entries(text).into_iter().enumerate() {
        let entry = entry.trim();
        let made = name_parts(entry).and_then(|parts| {
            let room = (HOSTS_MAX - names.len()) as u64;
            if count(&parts).is_none_or(|count| count > room) {
                return Err(HostFault::Hosts);
            }
            if bytes(&parts) > NAME_BYTES_MAX {
                return Err(HostFault::Name(excerpt(entry)));
            }
            let first = names.len();
            expand(&parts, &mut String::new(), &mut names);
            names[first..].iter().try_for_each(|name| check_name(name))
        });
        made.map_err(|fault| fault.in_entry(at + 1))?;
    }
    Ok(names)
}

/// The entries between the commas outside brackets.
fn entries(text: &str) -> Vec<&str> {
    let mut is_within = false;
    let between = |letter: char| {
        is_within = (is_within || letter == '[') && letter != ']';
        letter == ',' && !is_within
    };
    text.split(between).collect()
}

/// The parts of one entry.
fn name_parts(entry: &str) -> Result<Vec<NamePart<'_>>, HostFault> {
    let wrong = || HostFault::Ranges(excerpt(entry));
    let (mut parts, mut rest) = (Vec::new(), entry);
    while let Some((text, behind)) = rest.split_once('[') {
        let (ranges, behind) = behind.split_once(']').ok_or_else(wrong)?;
        parts.push(NamePart::Text(text));
        let ranges = ranges.split(',').map(range).collect::<Option<Vec<Range>>>();
        parts.push(NamePart::Ranges(ranges.ok_or_else(wrong)?));
        rest = behind;
    }
    parts.push(NamePart::Text(rest));
    Ok(parts)
}

/// The numbers in `7`, `1-3` or `07-09`.
fn range(text: &str) -> Option<Range> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |digits: &str| {
        let is_plain = (1..=DIGITS_MAX).contains(&digits.len())
            && digits.bytes().all(|digit| digit.is_ascii_digit());
        is_plain.then(|| digits.parse::<u64>().ok())?
    };
    let (width, first, last) = (first.len(), number(first)?, number(last)?);
    (first <= last).then_some(Range { first, last, width })
}

/// The number of names of these parts; `None` if it is beyond all bounds.
fn count(parts: &[NamePart<'_>]) -> Option<u64> {
    parts.iter().try_fold(1_u64, |names, part| match part {
        NamePart::Text(_) => Some(names),
        NamePart::Ranges(ranges) => {
            let each = ranges.iter().try_fold(0_u64, |sum, range| sum.checked_add(range.count()));
            names.checked_mul(each?)
        }
    })
}

/// The length of the longest name at most.
fn bytes(parts: &[NamePart<'_>]) -> usize {
    let of_part = |part: &NamePart<'_>| match part {
        NamePart::Text(text) => text.len(),
        NamePart::Ranges(ranges) => {
            let digits = |range: &Range| range.width.max(range.last.to_string().len());
            ranges.iter().map(digits).max().unwrap_or(0)
        }
    };
    parts.iter().map(of_part).sum()
}

/// Makes all names of these parts; the last range varies fastest.
fn expand(parts: &[NamePart<'_>], name: &mut String, names: &mut Vec<String>) {
    let Some((part, rest)) = parts.split_first() else {
        names.push(name.clone());
        return;
    };
    let length = name.len();
    match part {
        NamePart::Text(text) => {
            name.push_str(text);
            expand(rest, name, names);
            name.truncate(length);
        }
        NamePart::Ranges(ranges) => {
            for range in ranges {
                for number in range.first..=range.last {
                    name.push_str(&format!("{number:0width$}", width = range.width));
                    expand(rest, name, names);
                    name.truncate(length);
                }
            }
        }
    }
}

impl fmt::Display for BatchSystem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            BatchSystem::Slurm => "Slurm",
            BatchSystem::Pbs => "PBS",
            BatchSystem::Lsf => "LSF",
            BatchSystem::Sge => "SGE",
        })
    }
}
