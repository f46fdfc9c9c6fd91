//! Examines what this host offers to jobs and what it lacks, and says what follows from each finding.
//!
//! Whatever can be tried is tried, on this process alone.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use landeck_host::budget::{Limits, fit_segment};
use landeck_host::memory_groups::MemoryGroups;
use landeck_host::report::size;
use landeck_joining::address::Address;
use landeck_joining::index::Index;
use landeck_memory::{ProcessMark, Segment, SegmentPlan, processors, system};
use landeck_wire::SegmentId;
use rustix::process::{PidfdFlags, Resource, getpid, getrlimit, pidfd_open};

/// The finding about one subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostFinding {
    /// The subject.
    pub subject: &'static str,
    /// Whether it is as it should be.
    pub health: Health,
    /// The state that was found.
    pub found: String,
    /// The consequences, and the remedy if something is wrong.
    pub consequence: String,
}

/// Whether something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// Nothing is wrong.
    Good,
    /// Jobs run, but with less than the host could offer.
    Lacking,
    /// Jobs do not run, or only small ones.
    Wrong,
}

impl Health {
    /// The name of this health in the output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Lacking => "lacking",
            Self::Wrong => "wrong",
        }
    }
}

impl HostFinding {
    fn new(
        subject: &'static str,
        health: Health,
        found: impl Into<String>,
        consequence: impl Into<String>,
    ) -> Self {
        Self { subject, health, found: found.into(), consequence: consequence.into() }
    }
}

/// Examines this host, as the user and the limits of this process see it.
pub fn examine() -> Vec<HostFinding> {
    vec![
        kernel(),
        cpus(),
        memory_limit(),
        segment(),
        open_files(),
        socket(),
        index(),
        proc_files(),
        pidfd(),
        barriers(),
        overcommit(),
        foreign_memory(),
        huge_pages(),
        debugger(),
        remote_shell(),
        fabric(),
        mpi_library(),
    ]
}

/// The number of processes in the job whose segment is tried.
const USUAL_PROCESSES: u32 = 4;
/// The number of open files that a launcher needs for each process; `FILES_BESIDE` counts the others.
const FILES_PER_PROCESS: u64 = 5;
const FILES_BESIDE: u64 = 64;

fn kernel() -> HostFinding {
    let names = rustix::system::uname();
    let found = format!(
        "{} {} on {}, Landeck {}",
        names.sysname().to_string_lossy(),
        names.release().to_string_lossy(),
        names.machine().to_string_lossy(),
        env!("CARGO_PKG_VERSION"),
    );
    let is_known = cfg!(all(target_os = "linux", target_arch = "x86_64"));
    let (health, consequence) = match is_known {
        true => (Health::Good, "this is what is tested"),
        false => (Health::Lacking, "not tested there: say what does not work"),
    };
    HostFinding::new("kernel", health, found, consequence)
}

fn cpus() -> HostFinding {
    let (usable, affinity) = (processors::usable(), processors::affinity());
    match processors::quota() {
        Some(quota) if quota < affinity => HostFinding::new(
            "processors",
            Health::Lacking,
            format!("{usable}: the control group allows the time of {quota} of {affinity}"),
            "processes beyond that number take turns and do not poll; bind none of them",
        ),
        _ => HostFinding::new(
            "processors",
            Health::Good,
            format!("{usable}"),
            "`landeck run` starts as many processes where -n is not given; more of them sleep",
        ),
    }
}

fn memory_limit() -> HostFinding {
    const LITTLE: u64 = 512 << 20;
    match MemoryGroups::of_this_process().limit_bytes() {
        None => HostFinding::new("memory", Health::Good, "no limit of a control group", "none"),
        Some(bytes) => HostFinding::new(
            "memory",
            if bytes < LITTLE { Health::Lacking } else { Health::Good },
            format!("{} in this control group", size(bytes)),
            "heaps of jobs are made to fit into half of it; beyond the limit the kernel kills",
        ),
    }
}

/// Whether a job is possible: creates its memory and releases it.
fn segment() -> HostFinding {
    let limits = Limits::of_this_process(&MemoryGroups::of_this_process());
    let made = fit_segment(SegmentPlan::new(0, USUAL_PROCESSES), limits)
        .map_err(|error| error.to_string())
        .and_then(|plan| Segment::create(&plan).map_err(|error| error.to_string()));
    let subject = "shared memory";
    match made {
        Ok(segment) => {
            let bytes = size(segment.plan().total_bytes());
            let found = format!("{bytes} of address space for {USUAL_PROCESSES} processes");
            HostFinding::new(subject, Health::Good, found, "jobs can be started")
        }
        Err(error) => HostFinding::new(subject, Health::Wrong, "cannot be made", error),
    }
}

fn open_files() -> HostFinding {
    let most = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    let processes = most.saturating_sub(FILES_BESIDE) / FILES_PER_PROCESS;
    let found = match most {
        u64::MAX => "no limit".to_owned(),
        _ => format!("at most {most} (ulimit -Hn)"),
    };
    let health = match processes {
        0..16 => Health::Wrong,
        16..1_000 => Health::Lacking,
        _ => Health::Good,
    };
    let consequence = match health {
        Health::Good => "enough for jobs of 1,000 processes".to_owned(),
        _ => format!("a job can have {processes} processes; raise the limit for more"),
    };
    HostFinding::new("open files", health, found, consequence)
}

fn socket() -> HostFinding {
    let own = Address::of_job(SegmentId(u64::from(std::process::id()) | 0xd0c << 32));
    match own.listen() {
        Ok(_) => HostFinding::new("sockets", Health::Good, "a job can be joined", "none"),
        Err(error) => HostFinding::new(
            "sockets",
            Health::Wrong,
            error.to_string(),
            "no job can be started: its processes must find it; allow Unix sockets",
        ),
    }
}

fn index() -> HostFinding {
    match Index::open() {
        Ok(index) => HostFinding::new(
            "index of jobs",
            Health::Good,
            index.directory().display().to_string(),
            "containers that have this directory can join jobs",
        ),
        Err(error) => HostFinding::new("index of jobs", Health::Lacking, "none", error.to_string()),
    }
}

fn proc_files() -> HostFinding {
    match fs::read_to_string("/proc/self/stat") {
        Ok(_) => HostFinding::new("/proc", Health::Good, "mounted", "none"),
        Err(error) => HostFinding::new(
            "/proc",
            Health::Wrong,
            error.to_string(),
            "descriptors and processes cannot be found: mount it (mount -t proc proc /proc)",
        ),
    }
}

fn pidfd() -> HostFinding {
    match pidfd_open(getpid(), PidfdFlags::empty()) {
        Ok(_) => HostFinding::new("pidfd_open", Health::Good, "works", "guests are watched"),
        Err(error) => HostFinding::new(
            "pidfd_open",
            Health::Lacking,
            error.to_string(),
            "a guest that dies is noticed only when its connection closes",
        ),
    }
}

fn barriers() -> HostFinding {
    match system::offers_barriers() {
        true => {
            HostFinding::new("membarrier", Health::Good, "works", "sleepers pay, senders do not")
        }
        false => HostFinding::new(
            "membarrier",
            Health::Lacking,
            "refused",
            "sleeping processes look once a millisecond; allow the call in the container's filter",
        ),
    }
}

fn overcommit() -> HostFinding {
    match setting("/proc/sys/vm/overcommit_memory").as_deref() {
        Some("2") => HostFinding::new(
            "overcommit",
            Health::Lacking,
            "vm.overcommit_memory is 2",
            "address space counts as memory: large jobs may be refused; set it to 0",
        ),
        found => HostFinding::new("overcommit", Health::Good, found.unwrap_or("usual"), "none"),
    }
}

/// Whether processes of a job may read each other's memory. What the kernel forbids to all is tried; what it forbids to
/// processes that are no ancestors of each other is a setting.
fn foreign_memory() -> HostFinding {
    let subject = "process_vm_readv";
    let without =
        "long messages go in two copies, whatever --one-copy says; other MPI libraries get slower";
    if let Err(refused) = ProcessMark::own().check() {
        return HostFinding::new(subject, Health::Lacking, refused.to_string(), without);
    }
    let scope = setting("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_else(|| "0".into());
    match scope.as_str() {
        "0" => {
            let consequence = "long messages can go in one copy (--one-copy)";
            HostFinding::new(subject, Health::Good, "works", consequence)
        }
        "1" => HostFinding::new(
            subject,
            Health::Good,
            "works (kernel.yama.ptrace_scope is 1)",
            "processes with --one-copy let those below their launcher read them",
        ),
        _ => HostFinding::new(
            subject,
            Health::Lacking,
            format!("for root alone (kernel.yama.ptrace_scope is {scope})"),
            without,
        ),
    }
}

fn huge_pages() -> HostFinding {
    let found = setting("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
    let consequence = "none: segments use small pages";
    HostFinding::new(
        "huge pages",
        Health::Good,
        found.unwrap_or_else(|| "unknown".into()),
        consequence,
    )
}

fn debugger() -> HostFinding {
    let scope = setting("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_else(|| "0".into());
    let is_allowed = scope == "0" || rustix::process::geteuid().is_root();
    match in_path("gdb") {
        Some(gdb) if is_allowed => {
            let found = gdb.display().to_string();
            HostFinding::new("debugger", Health::Good, found, "--stacks shows functions and lines")
        }
        Some(_) => HostFinding::new(
            "debugger",
            Health::Lacking,
            format!("gdb may not look at processes (kernel.yama.ptrace_scope is {scope})"),
            "--stacks shows only what the kernel says; set it to 0",
        ),
        None => HostFinding::new(
            "debugger",
            Health::Lacking,
            "no gdb",
            "--stacks shows only what the kernel says; install gdb",
        ),
    }
}

fn remote_shell() -> HostFinding {
    match in_path("ssh") {
        Some(ssh) => HostFinding::new("ssh", Health::Good, ssh.display().to_string(), "none"),
        None => HostFinding::new(
            "ssh",
            Health::Lacking,
            "none",
            "jobs on several hosts need another command (--rsh), Slurm, or --start by-hand; or install an ssh client",
        ),
    }
}

fn fabric() -> HostFinding {
    let found = in_libraries("libfabric.so.1").first().map(|path| path.display().to_string());
    let consequence = "none: fabrics are not used so far";
    HostFinding::new("libfabric", Health::Good, found.unwrap_or_else(|| "none".into()), consequence)
}

/// Finds the library that an MPI program for the standard ABI would load.
fn mpi_library() -> HostFinding {
    let subject = "libmpi_abi";
    let found = in_libraries("libmpi_abi.so.1");
    let Some(first) = found.first() else {
        let consequence = "MPI programs need it: `make install`, or LD_LIBRARY_PATH";
        return HostFinding::new(subject, Health::Lacking, "none", consequence);
    };
    let is_ours = fs::read(first)
        .is_ok_and(|bytes| bytes.windows(LIBRARY_MARK.len()).any(|window| window == LIBRARY_MARK));
    let (health, consequence) = match is_ours {
        true => (Health::Good, "MPI programs get Landeck's"),
        false => (Health::Lacking, "MPI programs get another library, unless told where ours is"),
    };
    HostFinding::new(subject, health, first.display().to_string(), consequence)
}

/// A text that every library of Landeck contains.
const LIBRARY_MARK: &[u8] = b"LANDECK_SEGMENT";

fn setting(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn in_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|directory| directory.join(program)).find(|file| file.is_file())
}

/// Files of this name in the directories where programs look for libraries, in their order, and beside this command.
fn in_libraries(name: &str) -> Vec<PathBuf> {
    let told = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let own = env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent).and_then(Path::parent);
    let usual = [
        "/usr/local/lib",
        "/lib/x86_64-linux-gnu",
        "/usr/lib/x86_64-linux-gnu",
        "/lib64",
        "/usr/lib64",
        "/usr/lib",
    ];
    env::split_paths(&told)
        .chain(beside.map(|prefix| prefix.join("lib")))
        .chain(usual.map(PathBuf::from))
        .map(|directory| directory.join(name))
        .filter(|file| file.is_file())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_runs_these_tests_has_nothing_wrong() {
        let findings = examine();
        let wrong: Vec<_> =
            findings.iter().filter(|finding| finding.health == Health::Wrong).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
        for finding in &findings {
            assert!(!finding.found.is_empty() && !finding.consequence.is_empty(), "{finding:?}");
        }
        let has_ssh = in_path("ssh").is_some();
        let ssh = findings.iter().find(|finding| finding.subject == "ssh").unwrap();
        let (health, word) =
            if has_ssh { (Health::Good, "none") } else { (Health::Lacking, "--rsh") };
        assert!(ssh.health == health && ssh.consequence.contains(word), "{ssh:?}");
        let subjects: std::collections::HashSet<_> =
            findings.iter().map(|finding| finding.subject).collect();
        assert_eq!(subjects.len(), findings.len());
    }
}
