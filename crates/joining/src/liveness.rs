//! The tie between a process that came over the joining socket and the agent that let it in.
//!
//! The agent never sends anything on this connection after its answer, but the end of it says that the agent has ended.
//! Nobody keeps the membership then, so the job is over: a thread that only waits for this ends the job for all its
//! processes. Several may notice, and write the same word.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use landeck_host::process;
use landeck_memory::{JobState, Segment};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{Shutdown, shutdown};

/// A process's connection to its agent. Dropping it closes the connection, by which the agent notices that the process
/// has left.
#[derive(Debug)]
pub struct LivenessConnection {
    connection: Arc<OwnedFd>,
    is_leaving: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// The process that has the thread; a fork of it does not have it.
    pid: u32,
}

impl LivenessConnection {
    /// Watches the connection on behalf of all users of the segment.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn new(connection: OwnedFd, segment: &Segment) -> io::Result<Self> {
        let connection = Arc::new(connection);
        let is_leaving = Arc::new(AtomicBool::new(false));
        let watched = (connection.clone(), is_leaving.clone(), segment.clone());
        // Signals to the program are for the program's own threads.
        let mask = process::block_all_signals()?;
        let thread = std::thread::Builder::new()
            .name("landeck-tie".into())
            .spawn(move || watch(&watched.0, &watched.1, &watched.2));
        process::restore_signals(&mask);
        Ok(Self { connection, is_leaving, thread: Some(thread?), pid: std::process::id() })
    }
}

impl Drop for LivenessConnection {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if self.pid != std::process::id() {
            // In a forked child: the connection and the thread belong to the parent.
            std::mem::forget(thread);
            return;
        }
        self.is_leaving.store(true, Ordering::Release);
        // Wakes the thread; a connection that is already closed has woken it.
        let _ = shutdown(&*self.connection, Shutdown::Both);
        // The thread does nothing that could fail.
        let _ = thread.join();
    }
}

/// Waits for the end of the connection.
fn watch(connection: &OwnedFd, is_leaving: &AtomicBool, segment: &Segment) {
    let mut polled = [PollFd::new(connection, PollFlags::IN | PollFlags::RDHUP)];
    while let Ok(0) | Err(rustix::io::Errno::INTR) = poll(&mut polled, None) {}
    let is_over = segment.job_state() == JobState::Ending;
    if !is_over && !is_leaving.load(Ordering::Acquire) {
        segment.set_job_state(JobState::Ending);
        segment.announce_membership();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_memory::SegmentPlan;
    use landeck_testing::Watchdog;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    fn tied() -> (Watchdog, Segment, UnixStream, LivenessConnection) {
        let watchdog = Watchdog::start(Duration::from_secs(200));
        let plan = SegmentPlan { heap_bytes_per_process: 0, ..SegmentPlan::new(7, 2) };
        let segment = Segment::local(&plan);
        let (ours, theirs) = UnixStream::pair().unwrap();
        let tie = LivenessConnection::new(ours.into(), &segment).unwrap();
        (watchdog, segment, theirs, tie)
    }

    #[test]
    fn the_job_ends_with_its_agent() {
        let (_watchdog, segment, agent, mut tie) = tied();
        let generation = segment.membership_generation();
        drop(agent);
        tie.thread.take().unwrap().join().unwrap();
        assert_eq!(segment.job_state(), JobState::Ending);
        assert_ne!(segment.membership_generation(), generation);
    }

    #[test]
    fn a_process_that_leaves_ends_nothing() {
        let (_watchdog, segment, agent, tie) = tied();
        drop(tie);
        assert_eq!(segment.job_state(), JobState::Running);
        let mut byte = [0];
        assert_eq!(std::io::Read::read(&mut &agent, &mut byte).unwrap(), 0);
    }
}
