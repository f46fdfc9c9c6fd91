//! The guardian: the parent of a job's processes, and the agent of the job.
//!
//! The launcher forks it before anything else. It starts the processes, sees every death at once,
//! writes it where all can read it, and ends the others when that was ordered. Launcher and
//! guardian watch each other: when either is gone, the other kills what is below it, so nothing
//! of a job outlives the two. Where both are killed at the same moment, the kernel kills the
//! processes (their parent-death signal); only what those started may stay.
//!
//! Each process leads a process group of its own. A signal goes to the group: exactly once to the
//! process, and to what it started (a shell script's command, say). A key that the terminal turns
//! into a signal reaches the launcher alone, which forwards it.
//!
//! Where processes are started again after a failure, the guardian keeps what they are started
//! with; the time between is one more deadline of its only loop.

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

/// What the guardian is to do.
#[derive(Debug)]
pub struct Order {
    /// The processes, in the order they are started in: a slot below their number is a rank.
    pub starts: Vec<Start>,
    /// What a process's death means for the others.
    pub on_failure: OnFailure,
    /// Time that processes have between SIGTERM and SIGKILL when the job is ended for a failure.
    pub grace: Duration,
}

/// One process of the job.
#[derive(Debug)]
pub struct Start {
    /// Its slot in the segment.
    pub slot: u32,
    /// What is started. Its environment is complete but for `LANDECK_SEGMENT`, which [`fork`] sets.
    pub image: Image,
}

/// What happened to the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A process runs its program.
    Started {
        /// Its slot.
        slot: u32,
        /// Its process number.
        pid: u32,
        /// The rank it was started as at first, which is another number than the slot if it was
        /// started again.
        rank: u32,
        /// Which new start it is; 0 is the first of all.
        restart: u32,
    },
    /// A process could not be started.
    NotStarted {
        /// Its slot.
        slot: u32,
        /// The rank it was to be started as at first.
        rank: u32,
        /// The step that failed, and the kernel's answer.
        error: StartError,
        /// When it is tried again, if it is.
        again: Option<Restart>,
    },
    /// A process is gone.
    Ended {
        /// Its slot.
        slot: u32,
        /// Its process number: not the one that was started, if it joined below that.
        pid: u32,
        /// The raw wait status; [`SlotRecord::UNKNOWN_STATUS`] where only its parent knows it.
        status: i32,
        /// Time since the job began.
        at: Duration,
        /// What it waited for when it ended.
        wait: WaitRecord,
        /// How far its program had come with joining and leaving.
        presence: Presence,
        /// When it is started again, if it is.
        again: Option<Restart>,
    },
    /// A process was stopped.
    Stopped {
        /// Its slot.
        slot: u32,
    },
    /// A stopped process goes on.
    Continued {
        /// Its slot.
        slot: u32,
    },
    /// A guest has ended the job.
    GuestAborted {
        /// Its process number.
        pid: u32,
        /// The exit code that it wants.
        code: u8,
        /// Time since the job began.
        at: Duration,
    },
    /// The last process is gone, and everything that any of them started.
    AllEnded,
    /// The guardian itself is gone; everything below it was killed.
    GuardianGone,
}

/// What the launcher wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Send this signal to every process. After INT, QUIT, TERM and HUP, nobody is started again.
    Signal(i32),
    /// Ask every process to end (SIGTERM), and kill after the grace time.
    End {
        /// Time between the two.
        grace: Duration,
    },
    /// Kill every process.
    Kill,
}

/// Why there is no guardian, or it cannot be talked to.
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
    /// There can be no more processes.
    #[error(
        "the guardian cannot be forked: {0}. Is there a limit of processes (ulimit -u, pids.max of the \
         control group)? Raise it, or end other processes"
    )]
    Fork(io::Error),
    /// A system call that the guardian cannot do without was refused.
    #[error("the guardian cannot {attempt}: {source}")]
    System {
        /// What was attempted.
        attempt: &'static str,
        /// What the kernel answered.
        source: io::Error,
    },
}

/// The launcher's end: events come from it, commands go to it. When it is dropped, everything
/// that is left of the job is killed.
#[derive(Debug)]
pub struct Guardian {
    socket: OwnedFd,
    pid: u32,
    segment: Segment,
    /// Children that this process had before: none of the job.
    spared: Vec<u32>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Present,
    /// It has said that all is over, and is leaving.
    Finished,
    /// It was waited for.
    Reaped,
}

/// Forks the guardian, which starts the processes. To be called while this process has one thread.
///
/// This process becomes the one that adopts the orphans among its descendants.
///
/// # Errors
/// [`GuardianError`]; nothing was started then. A process that cannot be started is an event.
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
    // SAFETY: this process has one thread, so the child's copy of memory has no lock that is held
    // by somebody who does not exist there.
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
    /// Readable when [`Guardian::next_event`] has something to say.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The guardian's process number.
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// What happened, if anything; never waits for it. After [`Event::AllEnded`] or
    /// [`Event::GuardianGone`] nothing more comes.
    ///
    /// # Errors
    /// [`GuardianError::System`] when the guardian cannot be heard any more.
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
                // Reset: it was killed with commands unread. That is said once, before its last
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

    /// Tells the guardian what to do. Where it is gone already, an event says so.
    ///
    /// # Errors
    /// [`GuardianError::System`] when the command cannot be sent.
    pub fn send(&mut self, command: Command) -> Result<(), GuardianError> {
        use rustix::io::Errno;
        if self.state != State::Reaped && !matches!(command, Command::Signal(_)) {
            // Somebody may have stopped it; it is our own child, not reaped yet.
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

    /// Reaps the guardian, and kills what it left.
    fn clean_up(&mut self) {
        let was_at_work = self.state == State::Present;
        // Where it cannot be waited for, somebody else has done so.
        let _ = process::wait_for_end(self.pid);
        self.state = State::Reaped;
        descendants::kill_all(&self.spared);
        if was_at_work {
            self.close_membership();
        }
    }

    /// Tells guests, who live on, that the job is over: the guardian cannot any more.
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
            // Our own child, not reaped yet.
            process::signal_process(self.pid, libc::SIGKILL);
        }
        if self.state != State::Reaped {
            self.clean_up();
        }
    }
}

/// How many threads this process has; one where that cannot be found out.
fn thread_count() -> u64 {
    // A directory's links are itself, its name, and its folders.
    std::fs::metadata("/proc/self/task").map_or(1, |folder| folder.nlink().saturating_sub(2))
}
