//! Finding this user's jobs on this host, and looking at one without being part of it.
//!
//! A job is asked for its segment at its joining socket, and gives it for reading alone. Where
//! nobody answers, because the process in which the agent lives is stopped or wedged, the segment is
//! found among what the user's processes have open: whoever may end a process may look at it.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use landeck_memory::{Observed, SegmentError};
use landeck_wire::HostId;
use rustix::fs::{Mode, OFlags};

use crate::index::Index;
use crate::socket::{self, Address, JoinError, own_uid};

/// How long an agent has to answer before others are looked at.
const ANSWER_TIME: Duration = Duration::from_millis(250);
/// The name of a segment's file, as the kernel shows it.
const FILE_NAME: &str = "/memfd:landeck (deleted)";

/// A job that is looked at.
#[derive(Debug)]
pub struct ObservedJob {
    /// Its identity.
    pub host: HostId,
    /// Its memory.
    pub segment: Observed,
    /// The process in which its agent lives; none where that did not answer.
    pub agent_pid: Option<u32>,
}

/// Why a job cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// It cannot be reached.
    #[error("job {host} cannot be looked at: {source}")]
    Unreachable {
        /// The job.
        host: HostId,
        /// Why.
        source: JoinError,
    },
    /// What it gave is no segment.
    #[error("job {host} cannot be looked at: {source}")]
    Segment {
        /// The job.
        host: HostId,
        /// Why.
        source: SegmentError,
    },
}

/// This user's jobs on this host, in the order of their identities.
pub fn jobs() -> Vec<HostId> {
    let listed = Index::of_user().map(|index| index.jobs()).unwrap_or_default();
    let sockets = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let all: BTreeSet<u64> =
        listed.into_iter().chain(listening(&sockets, own_uid())).map(|host| host.0).collect();
    all.into_iter().map(HostId).collect()
}

/// The jobs of a user that listen on sockets without files, by the kernel's list of sockets.
fn listening(sockets: &str, uid: u32) -> Vec<HostId> {
    let start = format!("@landeck-{uid}-");
    let names = sockets.lines().filter_map(|line| line.split(' ').next_back());
    let jobs = names.filter_map(|name| name.strip_prefix(&start)?.parse().ok());
    let mut jobs: Vec<HostId> = jobs.collect();
    // A connection has its listener's name.
    jobs.sort_unstable_by_key(|host| host.0);
    jobs.dedup();
    jobs
}

/// Looks at a job.
///
/// # Errors
/// [`ObserveError`]; that nobody is there any more is one of them.
pub fn observe(host: HostId) -> Result<ObservedJob, ObserveError> {
    let asked = socket::observe(&Address::of_job(host), ANSWER_TIME).or_else(|error| {
        // In another network namespace.
        let index = Index::of_user().ok_or(error)?;
        socket::observe(&index.address(host), ANSWER_TIME)
    });
    let error = match asked {
        Ok((file, pid)) => return observed(host, file, Some(pid).filter(|&pid| pid != 0)),
        Err(source) => ObserveError::Unreachable { host, source },
    };
    let open = segments_open_in_processes();
    let found = open.filter_map(|file| observed(host, file, None).ok()).next();
    found.ok_or(error)
}

fn observed(
    host: HostId,
    file: OwnedFd,
    agent_pid: Option<u32>,
) -> Result<ObservedJob, ObserveError> {
    let segment = Observed::open(file).map_err(|source| ObserveError::Segment { host, source })?;
    if segment.plan().host != host.0 {
        let source = SegmentError::NotASegment { what: "it is another job's" };
        return Err(ObserveError::Segment { host, source });
    }
    Ok(ObservedJob { host, segment, agent_pid })
}

/// The segments that processes of this user have open, for reading alone.
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
        let _watchdog = Watchdog::start(Duration::from_secs(60));
        let segment = segment(1);
        let host = HostId(segment.plan().host);
        let agent = serve_in_thread(&segment, 0, None).unwrap();
        assert!(jobs().contains(&host));
        let job = observe(host).unwrap();
        assert_eq!(job.agent_pid, Some(std::process::id()));
        let (_, records) = job.segment.membership();
        assert_eq!(records[0].state, SlotState::Alive);
        assert!(records[1..].iter().all(|record| record.state == SlotState::Free), "not a guest");
        let written = rustix::io::pwrite(job.segment.descriptor(), &[1; 8], 0);
        assert_eq!(written, Err(rustix::io::Errno::BADF), "it cannot be written");
        drop(agent);
        assert!(!jobs().contains(&host));
    }

    #[test]
    fn a_job_whose_agent_does_not_answer_is_found_where_it_is_open() {
        let _watchdog = Watchdog::start(Duration::from_secs(60));
        let segment = segment(2);
        let host = HostId(segment.plan().host);
        let job = observe(host).unwrap();
        assert_eq!((job.agent_pid, job.segment.plan()), (None, segment.plan()));
        drop((segment, job));
        assert!(matches!(observe(host), Err(ObserveError::Unreachable { .. })));
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
        assert_eq!(listening(list, 7), [HostId(0xff)]);
    }
}
