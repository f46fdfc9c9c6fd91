//! Finds this user's jobs on this host, and looks at one without being part of it.
//!
//! A job is asked for its segment at its joining socket, and gives it read-only. If nobody answers, because the agent's
//! process is stopped or wedged, the segment is found among the open files of the user's processes: a user who may end
//! a process may also look at it.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use landeck_host::descendants::parent_of;
use landeck_host::say::quoted;
use landeck_memory::{JobName, Observed, SegmentError};
use landeck_wire::{JobId, SegmentId};
use rustix::fs::{Mode, OFlags};

use crate::address::{Address, own_uid};
use crate::index::Index;
use crate::socket::{self, JoinError};

/// How long an agent has to answer before the open files are searched.
const ANSWER_TIME: Duration = Duration::from_millis(250);
/// The name of the launcher's file, and how many processes are between it and the agent at most.
const LAUNCHER: &str = "landeck";
const ABOVE_MAX: usize = 4;
/// The name of a segment's file, as the kernel shows it.
const FILE_NAME: &str = "/memfd:landeck (deleted)";

/// A job under observation.
#[derive(Debug)]
pub struct ObservedJob {
    /// The identity of the segment: that of the job's part on this host, if it has one here.
    pub host: SegmentId,
    /// Whether this part of the job runs on this host. Hosts that share the directory of the index see the other parts too.
    pub is_here: bool,
    /// Its memory.
    pub segment: Observed,
    /// The PID of the agent's process; `None` if it did not answer or cannot be seen.
    pub agent_pid: Option<u32>,
    /// Whether the job's PIDs are valid here. They are not if the job runs in a container whose processes cannot be
    /// seen from here.
    pub agent_is_seen: bool,
}

impl ObservedJob {
    /// The identity of the job, which is the same on all its hosts.
    pub const fn id(&self) -> JobId {
        JobId(self.segment.plan().job)
    }

    /// The PID of the launcher, whose end ends the job: the nearest process above the agent that runs `landeck`. `None`
    /// under other launchers, on hosts that it does not run on, and where it cannot be seen.
    pub fn launcher_pid(&self) -> Option<u32> {
        let above = std::iter::successors(self.agent_pid, |&pid| parent_of(pid));
        above.skip(1).take(ABOVE_MAX).find(|&pid| runs_launcher(pid))
    }
}

/// Whether a process runs `landeck`, by whatever name it was called.
fn runs_launcher(pid: u32) -> bool {
    let file = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    // A replaced file has " (deleted)" behind its name.
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.split(' ').next() == Some(LAUNCHER)
}

/// The reason why a job cannot be observed.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// The job cannot be reached.
    #[error("job {host} cannot be observed: {source}")]
    Unreachable {
        /// The job.
        host: SegmentId,
        /// The reason.
        source: JoinError,
    },
    /// The job's answer is no segment.
    #[error("job {host} cannot be observed: {source}")]
    Segment {
        /// The job.
        host: SegmentId,
        /// The reason.
        source: SegmentError,
    },
}

/// The reason why no job is found for a name.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// There is no job at all.
    #[error("no job of this user runs on this host; start one with `landeck run`")]
    NoJob,
    /// The given name is empty.
    #[error("the name of the job is empty; give a name or an identity that `landeck ps` shows")]
    Empty,
    /// No job has this name.
    #[error("no job is called {}: {}", quoted(reference), listed("there is", .jobs))]
    Unknown {
        /// The name that was given.
        reference: String,
        /// The jobs that run.
        jobs: Vec<(JobId, String)>,
    },
    /// Several jobs fit the name, or no name was given and several jobs run.
    #[error("{}", listed("say which job is meant:", .jobs))]
    Several {
        /// The jobs that fit.
        jobs: Vec<(JobId, String)>,
    },
    /// The job was found, but cannot be observed.
    #[error(transparent)]
    Observe(#[from] ObserveError),
}

fn listed(what: &str, jobs: &[(JobId, String)]) -> String {
    let jobs: Vec<String> = jobs.iter().map(|(job, name)| format!("{name} ({job})")).collect();
    format!("{what} {}", jobs.join(", "))
}

/// Finds the job with this name, or whose identity begins so: that of the job, or of its segment on this host. `None`
/// means the only job that runs.
///
/// # Errors
/// [`FindError`].
pub fn find(reference: Option<&str>) -> Result<ObservedJob, FindError> {
    if reference == Some("") {
        return Err(FindError::Empty);
    }
    if let Some(host) = reference.and_then(|reference| reference.parse::<SegmentId>().ok()) {
        let error = match observe(host) {
            Ok(job) => return Ok(job),
            Err(error) => error,
        };
        // On several hosts the job has an identity of its own.
        let mut all = jobs().into_iter();
        return all.find(|job| job.id().0 == host.0).ok_or(FindError::Observe(error));
    }
    if let Some(reference) = reference {
        let mut meant = candidates(reference);
        meant.retain(|job| is_called(job, reference));
        let mut meant = one_part_of_each(meant);
        if meant.len() == 1 {
            return Ok(meant.swap_remove(0));
        }
    }
    // None or several fit: the answer then lists all jobs.
    find_among(parts(), reference)
}

/// This user's jobs on this host, each once, however many parts of it are seen.
pub fn jobs() -> Vec<ObservedJob> {
    one_part_of_each(parts())
}

/// The parts of this user's jobs that are seen from here.
fn parts() -> Vec<ObservedJob> {
    segments().into_iter().filter_map(|host| observe(host).ok()).collect()
}

/// One part of each job: that on this host, if there is one.
fn one_part_of_each(parts: Vec<ObservedJob>) -> Vec<ObservedJob> {
    let mut each: Vec<ObservedJob> = Vec::new();
    for part in parts {
        match each.iter_mut().find(|known| known.id() == part.id()) {
            Some(known) if part.is_here && !known.is_here => *known = part,
            Some(_) => {}
            None => each.push(part),
        }
    }
    each
}

/// The jobs that may have this name: by the index, which requires contacting none of them, and the jobs that it does
/// not list.
fn candidates(reference: &str) -> Vec<ObservedJob> {
    let listed = Index::of_user().map(|index| index.listed()).unwrap_or_default();
    let sockets = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let mut hosts = listening(&sockets, own_uid());
    hosts.retain(|host| listed.iter().all(|listed| listed.host != *host));
    let may_be = listed.iter().filter(|listed| listed.may_be(reference) && listed.is_there());
    hosts.extend(may_be.map(|listed| listed.host));
    hosts.into_iter().filter_map(|host| observe(host).ok()).collect()
}

fn is_called(job: &ObservedJob, reference: &str) -> bool {
    job.segment.plan().name == JobName::new(reference)
        || job.id().to_string().starts_with(reference)
        || job.host.to_string().starts_with(reference)
}

fn find_among(parts: Vec<ObservedJob>, reference: Option<&str>) -> Result<ObservedJob, FindError> {
    let names = |jobs: &[ObservedJob]| {
        jobs.iter().map(|job| (job.id(), job.segment.plan().name.to_string())).collect()
    };
    let is_meant = |job: &ObservedJob| reference.is_none_or(|reference| is_called(job, reference));
    if parts.is_empty() {
        return Err(FindError::NoJob);
    }
    let (meant, others): (Vec<_>, Vec<_>) = parts.into_iter().partition(is_meant);
    let mut meant = one_part_of_each(meant);
    match meant.len() {
        1 => Ok(meant.swap_remove(0)),
        0 => Err(FindError::Unknown {
            reference: reference.unwrap_or_default().to_owned(),
            jobs: names(&one_part_of_each(others)),
        }),
        _ => Err(FindError::Several { jobs: names(&meant) }),
    }
}

/// The segments of this user's jobs that are seen from here, in the order of their identities.
fn segments() -> Vec<SegmentId> {
    let listed = Index::of_user().map(|index| index.jobs()).unwrap_or_default();
    let sockets = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let all: BTreeSet<u64> =
        listed.into_iter().chain(listening(&sockets, own_uid())).map(|host| host.0).collect();
    all.into_iter().map(SegmentId).collect()
}

/// The jobs of a user that listen on sockets without files, by the kernel's list of sockets.
fn listening(sockets: &str, uid: u32) -> Vec<SegmentId> {
    let start = format!("@landeck-{uid}-");
    let names = sockets.lines().filter_map(|line| line.split(' ').next_back());
    let jobs = names.filter_map(|name| name.strip_prefix(&start)?.parse().ok());
    let mut jobs: Vec<SegmentId> = jobs.collect();
    // A connection has the name of its listener, so names repeat.
    jobs.sort_unstable_by_key(|host| host.0);
    jobs.dedup();
    jobs
}

/// Observes a job.
///
/// # Errors
/// [`ObserveError`]; also if the job has ended.
pub fn observe(host: SegmentId) -> Result<ObservedJob, ObserveError> {
    let error = match socket::observe(&Address::of_job(host), ANSWER_TIME) {
        Ok((file, pid)) => return observed(host, true, file, Some(pid)),
        Err(error) => error,
    };
    // The job may be in another network namespace.
    let entry = Index::of_user().and_then(|index| index.address(host)).ok_or(error);
    let source = match entry.and_then(|entry| socket::observe(&entry, ANSWER_TIME)) {
        Ok((file, pid)) => return observed(host, false, file, Some(pid)),
        Err(source) => source,
    };
    let open = segments_open_in_processes();
    let found = open.filter_map(|file| observed(host, true, file, None).ok()).next();
    found.ok_or(ObserveError::Unreachable { host, source })
}

fn observed(
    host: SegmentId,
    is_here: bool,
    file: OwnedFd,
    agent_pid: Option<u32>,
) -> Result<ObservedJob, ObserveError> {
    let segment = Observed::open(file).map_err(|source| ObserveError::Segment { host, source })?;
    if segment.plan().host != host.0 {
        let source = SegmentError::NotASegment { what: "it is another job's" };
        return Err(ObserveError::Segment { host, source });
    }
    let agent_is_seen = agent_pid != Some(0);
    let agent_pid = agent_pid.filter(|&pid| pid != 0);
    Ok(ObservedJob { host, is_here, segment, agent_pid, agent_is_seen })
}

/// The segments that processes of this user have open, read-only.
fn segments_open_in_processes() -> impl Iterator<Item = OwnedFd> {
    let entries = |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten();
    let processes = entries(PathBuf::from("/proc")).filter(|entry| {
        entry.file_name().as_encoded_bytes().first().is_some_and(u8::is_ascii_digit)
    });
    let descriptors = processes.flat_map(move |process| entries(process.path().join("fd")));
    let segments = descriptors.filter(|entry| {
        fs::read_link(entry.path()).is_ok_and(|target| target.as_os_str() == FILE_NAME)
    });
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    segments.filter_map(move |entry| rustix::fs::open(entry.path(), flags, Mode::empty()).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent_thread::serve_in_thread;
    use landeck_memory::{Segment, SegmentPlan, SlotState};
    use landeck_testing::Watchdog;

    fn segment(number: u64) -> Segment {
        let host = u64::from(std::process::id()) << 32 | number | 1 << 31;
        Segment::create(&SegmentPlan { guests: 2, ..SegmentPlan::new(host, 1) }).unwrap()
    }

    #[test]
    fn a_job_is_found_and_looked_at_while_it_lives() {
        let _watchdog = Watchdog::start(Duration::from_secs(200));
        let segment = segment(1);
        let host = SegmentId(segment.plan().host);
        let agent = serve_in_thread(&segment, 0, None).unwrap();
        assert!(segments().contains(&host));
        let job = observe(host).unwrap();
        assert_eq!(job.agent_pid, Some(std::process::id()));
        let (_, records) = job.segment.membership();
        assert_eq!(records[0].state, SlotState::Alive);
        assert!(records[1..].iter().all(|record| record.state == SlotState::Free), "not a guest");
        let written = rustix::io::pwrite(job.segment.descriptor(), &[1; 8], 0);
        assert_eq!(written, Err(rustix::io::Errno::BADF), "it cannot be written");
        drop(agent);
        // A child that another test is starting holds the socket until it executes its program.
        while segments().contains(&host) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_job_whose_agent_does_not_answer_is_found_where_it_is_open() {
        let _watchdog = Watchdog::start(Duration::from_secs(200));
        let segment = segment(2);
        let host = SegmentId(segment.plan().host);
        let job = observe(host).unwrap();
        assert_eq!((job.agent_pid, job.segment.plan()), (None, segment.plan()));
        drop((segment, job));
        // A child that another test is starting holds it open until it executes its program.
        let ended = std::iter::repeat_with(|| observe(host)).find_map(Result::err).unwrap();
        assert!(matches!(ended, ObserveError::Unreachable { .. }), "{ended}");
    }

    #[test]
    fn a_job_is_found_by_its_name_and_the_first_digits_of_its_identity() {
        let _watchdog = Watchdog::start(Duration::from_secs(200));
        let named = |number, name| {
            let plan = segment(number).plan().clone();
            let plan = SegmentPlan { name: JobName::new(name), ..plan };
            Segment::create(&plan).unwrap()
        };
        let id = std::process::id();
        let (own, twins) = (format!("find {id}"), format!("twins {id}"));
        let all = [named(3, &own), named(4, &twins), named(5, &twins)];
        let _agents = all.each_ref().map(|one| serve_in_thread(one, 0, None).unwrap());
        let host = SegmentId(all[0].plan().host);
        let digits = host.to_string();
        for reference in [&own, &digits, &digits[..15]] {
            match find(Some(reference)) {
                Ok(job) => assert_eq!(job.host, host),
                // All identities of this process begin alike.
                Err(error) => {
                    assert!(matches!(error, FindError::Several { .. }), "{error}");
                    assert_eq!(reference.len(), 15);
                }
            }
        }
        let error = find(Some(&twins)).unwrap_err();
        assert!(matches!(&error, FindError::Several { jobs } if jobs.len() == 2), "{error}");
        let job = SegmentId(segment(6).plan().host);
        let own_of_parts = format!("parts {id}");
        let plan = SegmentPlan { job: job.0, ranks: 3, ..named(7, &own_of_parts).plan().clone() };
        let part_plan = plan.clone();
        let part = Segment::create(&plan).unwrap();
        let _agent = serve_in_thread(&part, 0, None).unwrap();
        let found = find(Some(&job.to_string())).unwrap();
        assert_eq!((found.id().0, found.host.0), (job.0, plan.host), "a part of a job on hosts");
        assert_eq!(find(Some(&SegmentId(plan.host).to_string())).unwrap().id().0, job.0);
        // Another part of the same job, as hosts that share the index see it: the job is one job.
        let plan = SegmentPlan { job: job.0, ranks: 3, ..named(8, &own_of_parts).plan().clone() };
        let other = Segment::create(&plan).unwrap();
        let _other_agent = serve_in_thread(&other, 0, None).unwrap();
        for reference in [&job.to_string(), &job.to_string()[..15], &own_of_parts] {
            match find(Some(reference)) {
                Ok(found) => assert_eq!(found.id().0, job.0),
                Err(error) => assert!(reference.len() == 15, "{error}"),
            }
        }
        let listed = super::jobs().into_iter().filter(|listed| listed.id().0 == job.0);
        assert_eq!(listed.count(), 1);
        // That of this host is shown, in whatever order they are found.
        let part = |plan: &SegmentPlan, is_here| ObservedJob {
            is_here,
            ..observe(SegmentId(plan.host)).unwrap()
        };
        for are_here in [[false, true], [true, false]] {
            let both = [&part_plan, &plan].into_iter().zip(are_here);
            let each = one_part_of_each(both.map(|(plan, is_here)| part(plan, is_here)).collect());
            assert!(each.len() == 1 && each[0].is_here, "{are_here:?}");
        }
        let error = find(Some("nobody is called so")).unwrap_err();
        assert!(matches!(error, FindError::Unknown { .. }), "{error}");
    }

    #[test]
    fn sockets_of_jobs_are_told_from_others() {
        let list = "Num RefCount Protocol Flags Type St Inode Path\n\
            0: 00000002 00000000 00010000 0005 01 1 @landeck-7-00000000000000ff\n\
            0: 00000003 00000000 00000000 0005 03 2 @landeck-7-00000000000000ff\n\
            0: 00000002 00000000 00010000 0005 01 3 @landeck-7-name-x\n\
            0: 00000002 00000000 00010000 0005 01 4 @landeck-70-00000000000000fe\n\
            0: 00000002 00000000 00010000 0001 01 5 /run/x\n\
            0: 00000002 00000000 00000000 0002 01 6\n";
        assert_eq!(listening(list, 7), [SegmentId(0xff)]);
    }
}
