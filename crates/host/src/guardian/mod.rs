//! The guardian: the parent of a job's processes, and the agent of the job.
//!
//! The launcher forks it before anything else. It starts the processes, sees every death at once, writes it where all
//! can read it, and ends the others if so ordered. Launcher and guardian watch each other: if one dies, the other kills
//! everything below it, so nothing of a job outlives both. If both are killed at the same moment, the kernel kills the
//! processes (their parent-death signal); only their own children may stay.
//!
//! Each process leads a process group of its own. A signal goes to the group: exactly once to the process, and to its
//! own children, such as the command of a shell script. A key that the terminal turns into a signal reaches only the
//! launcher, which forwards it.
//!
//! With restarts, the guardian keeps the image of each rank. The delay before a restart is one more deadline of its
//! only loop.

mod guard;
mod message;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

pub use landeck_groups::membership::OnFailure;
pub use landeck_groups::restarts::Restart;
use landeck_memory::{JobState, Presence, Segment, SlotRecord, SlotState, WaitRecord};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
};

use crate::descendants;
use crate::process::{self, Image, StartError, Step};
use message::Message;

/// The orders for the guardian.
#[derive(Debug)]
pub struct Order {
    /// The processes, in the order of their start. A slot below their number is a rank.
    pub starts: Vec<Start>,
    /// The consequence of a process's death for the others.
    pub on_failure: OnFailure,
    /// The time between SIGTERM and SIGKILL if the job is ended because of a failure.
    pub grace: Duration,
}

/// One process of the job.
#[derive(Debug)]
pub struct Start {
    /// Its slot in the segment.
    pub slot: u32,
    /// The image to start. Its environment is complete except for `LANDECK_SEGMENT`, which [`fork`] sets.
    pub image: Image,
}

/// An event of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A process runs its program.
    Started {
        /// Its slot.
        slot: u32,
        /// Its PID.
        pid: u32,
        /// The rank as which it was first started. After a restart this differs from the slot.
        rank: u32,
        /// The number of the restart; 0 is the first start.
        restart: u32,
    },
    /// A process could not be started.
    NotStarted {
        /// Its slot.
        slot: u32,
        /// The rank as which it was first to be started.
        rank: u32,
        /// The step that failed, and the kernel's answer.
        error: StartError,
        /// When the start is tried again, if at all.
        again: Option<Restart>,
    },
    /// A process has ended.
    Ended {
        /// Its slot.
        slot: u32,
        /// Its PID: that of the process that joined, if it joined below the one that was started.
        pid: u32,
        /// The raw wait status; [`SlotRecord::UNKNOWN_STATUS`] if only its parent knows it.
        status: i32,
        /// Time since the job began.
        at: Duration,
        /// The wait that it was in when it ended.
        wait: WaitRecord,
        /// How far its program had come with joining and leaving.
        presence: Presence,
        /// When it is started again, if at all.
        again: Option<Restart>,
    },
    /// A process was stopped.
    Stopped {
        /// Its slot.
        slot: u32,
    },
    /// A stopped process continues.
    Continued {
        /// Its slot.
        slot: u32,
    },
    /// A guest has ended the job.
    GuestAborted {
        /// Its PID.
        pid: u32,
        /// The exit code that it asked for.
        code: u8,
        /// Time since the job began.
        at: Duration,
    },
    /// The last process has ended, and so has everything that any of them started.
    AllEnded,
    /// The guardian itself has died; everything below it was killed.
    GuardianGone,
}

/// A command of the launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Send this signal to every process. After INT, QUIT, TERM and HUP, no process is started again.
    Signal(i32),
    /// Ask every process to end (SIGTERM), and kill the rest after the grace time.
    End {
        /// The time between the two.
        grace: Duration,
    },
    /// Kill every process.
    Kill,
}

/// The reason why there is no guardian, or why it cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum GuardianError {
    /// The process has several threads: the guardian would inherit their locks.
    #[error(
        "the guardian cannot be forked: the launcher has {0} threads; fork it before starting any"
    )]
    Threads(u64),
    /// The segment is private memory of this process.
    #[error("the guardian needs a segment that other processes can attach, not a local one")]
    LocalSegment,
    /// The kernel allows no more processes.
    #[error(
        "the guardian cannot be forked: {0}. Is there a limit of processes (ulimit -u, pids.max of the \
         control group)? Raise it, or end other processes"
    )]
    Fork(io::Error),
    /// A necessary system call was refused.
    #[error("the guardian cannot {attempt}: {source}")]
    System {
        /// The attempted action.
        attempt: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
}

/// The launcher's end of the conversation: events come from the guardian, commands go to it. Dropping this kills
/// everything that is left of the job.
#[derive(Debug)]
pub struct Guardian {
    socket: OwnedFd,
    pid: u32,
    segment: Segment,
    /// Children that this process had before; they are not part of the job.
    spared: Vec<u32>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Present,
    /// It has reported the end of everything and is leaving.
    Finished,
    /// The launcher has reaped it.
    Reaped,
}

/// Forks the guardian, which starts the processes. Call this while the process has one thread.
///
/// This process then adopts the orphans among its descendants.
///
/// # Errors
/// [`GuardianError`]; nothing was started in that case. A process that cannot be started is an event.
pub fn fork(segment: &Segment, mut order: Order) -> Result<Guardian, GuardianError> {
    let refused = |attempt| move |source: io::Error| GuardianError::System { attempt, source };
    let threads = thread_count();
    if threads > 1 {
        return Err(GuardianError::Threads(threads));
    }
    let memory = segment.descriptor().ok_or(GuardianError::LocalSegment)?.as_raw_fd();
    for start in &mut order.starts {
        guard::set_variable(&mut start.image, "LANDECK_SEGMENT", &memory.to_string());
    }
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
        .map_err(|errno| refused("make a pair of sockets")(errno.into()))?;
    descendants::adopt_orphans().map_err(refused("adopt orphaned processes"))?;
    let spared = descendants::children();
    let began = Instant::now();
    let mask = process::block_all_signals().map_err(refused("block signals"))?;
    // SAFETY: this process has one thread, so no other thread can hold a lock in the child's copy of memory.
    match unsafe { libc::fork() } {
        0 => {
            drop(ours);
            guard::guard(segment.clone(), order, theirs, began)
        }
        pid => {
            let error = io::Error::last_os_error();
            process::restore_signals(&mask);
            if pid < 0 {
                return Err(GuardianError::Fork(error));
            }
            let segment = segment.clone();
            let pid = pid.cast_unsigned();
            Ok(Guardian { socket: ours, pid, segment, spared, state: State::Present })
        }
    }
}

impl Guardian {
    /// The descriptor that is readable when [`Guardian::next_event`] has something to report.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The PID of the guardian.
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns the next event, if there is one, without waiting. After [`Event::AllEnded`] or [`Event::GuardianGone`]
    /// nothing more comes.
    ///
    /// # Errors
    /// [`GuardianError::System`] if the guardian can no longer be heard.
    pub fn next_event(&mut self) -> Result<Option<Event>, GuardianError> {
        let mut bytes = [0; Message::BYTES];
        while self.state == State::Present {
            match recv(&self.socket, &mut bytes[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => {
                    self.clean_up();
                    return Ok(Some(Event::GuardianGone));
                }
                Ok(_) => {
                    let Some(event) = self.event(&Message::decode(&bytes)) else { continue };
                    if event == Event::AllEnded {
                        self.state = State::Finished;
                    }
                    return Ok(Some(event));
                }
                Err(rustix::io::Errno::AGAIN) => return Ok(None),
                // Reset: the guardian was killed with commands unread. The kernel reports that once, before its last
                // events.
                Err(rustix::io::Errno::INTR | rustix::io::Errno::CONNRESET) => {}
                Err(errno) => {
                    let attempt = "be heard by the launcher";
                    return Err(GuardianError::System { attempt, source: errno.into() });
                }
            }
        }
        Ok(None)
    }

    /// Sends a command to the guardian. If the guardian has already ended, an event says so.
    ///
    /// # Errors
    /// [`GuardianError::System`] if the command cannot be sent.
    pub fn send(&mut self, command: Command) -> Result<(), GuardianError> {
        use rustix::io::Errno;
        if self.state != State::Reaped && !matches!(command, Command::Signal(_)) {
            // Somebody may have stopped it. The PID is valid: it is our own child, not reaped yet.
            process::signal_process(self.pid, libc::SIGCONT);
        }
        loop {
            match send(&self.socket, &Message::from(command).encode(), SendFlags::NOSIGNAL) {
                Ok(_) | Err(Errno::PIPE | Errno::CONNRESET) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => {
                    let attempt = "be told what to do";
                    return Err(GuardianError::System { attempt, source: errno.into() });
                }
            }
        }
    }

    fn event(&self, message: &Message) -> Option<Event> {
        let slot = message.slot;
        Some(match message.kind {
            Message::STARTED => Event::Started {
                slot,
                pid: message.number.cast_unsigned(),
                rank: message.detail,
                restart: message.restart,
            },
            Message::NOT_STARTED => {
                let step = Step::from_number(message.detail as u8)?;
                let error = StartError { step, errno: message.number };
                let rank = message.time_ns as u32;
                Event::NotStarted { slot, rank, error, again: message.again() }
            }
            Message::ENDED => Event::Ended {
                slot,
                pid: self.segment.slot_record(slot).pid,
                status: message.number,
                at: Duration::from_nanos(message.time_ns),
                wait: self.segment.wait_record(slot),
                presence: Presence::from_bits(message.detail),
                again: message.again(),
            },
            Message::STOPPED => Event::Stopped { slot },
            Message::CONTINUED => Event::Continued { slot },
            Message::GUEST_ABORTED => Event::GuestAborted {
                pid: message.number.cast_unsigned(),
                code: message.detail as u8,
                at: Duration::from_nanos(message.time_ns),
            },
            Message::ALL_ENDED => Event::AllEnded,
            _ => return None,
        })
    }

    /// Reaps the guardian, and kills everything that it left.
    fn clean_up(&mut self) {
        let was_at_work = self.state == State::Present;
        // If waiting fails, another thread has reaped it.
        let _ = process::wait_for_end(self.pid);
        self.state = State::Reaped;
        descendants::kill_all(&self.spared);
        if was_at_work {
            self.close_membership();
        }
    }

    /// Tells guests, which live on, that the job has ended: the guardian no longer can.
    fn close_membership(&self) {
        for slot in 0..self.segment.plan().slots() {
            let record = self.segment.slot_record(slot);
            let is_ours = self.segment.rank_of(slot).is_some() || record.replaces.is_some();
            if is_ours && !record.state.is_gone() {
                let (state, status) = (SlotState::Dead, libc::SIGKILL);
                let record = SlotRecord { state, status, stopped: false, ..record };
                self.segment.set_slot_record(slot, record);
            }
        }
        self.segment.set_job_state(JobState::Ending);
        self.segment.announce_membership();
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        if self.state == State::Present {
            // It is our own child, not reaped yet.
            process::signal_process(self.pid, libc::SIGKILL);
        }
        if self.state != State::Reaped {
            self.clean_up();
        }
    }
}

/// The number of threads of this process; one if that cannot be found out.
fn thread_count() -> u64 {
    // The links of a directory are itself, its name, and its subdirectories.
    std::fs::metadata("/proc/self/task").map_or(1, |folder| folder.nlink().saturating_sub(2))
}
