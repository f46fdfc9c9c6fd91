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

mod conversation;
mod guard;
mod message;
pub mod server;
mod told;

use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use landeck_host::descendants;
use landeck_host::fork::{ForkError, fork_child};
use landeck_host::process::{self, Image, StartError, Streams};
use landeck_memory::{Presence, Segment, WaitRecord};
use landeck_protocols::door::{StartAnswer, StartWish};
pub use landeck_protocols::membership::{OnFailure, Refusal};
pub use landeck_protocols::restarts::Restart;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

use conversation::{Conversation, Heard};
use guard::Forker;
pub(crate) use guard::child_signals;
pub use told::ToldEvents;

use crate::parcel;

/// The orders for the guardian. The streams do not travel with the rest, since descriptors are passed beside it.
#[derive(Debug, Serialize, Deserialize)]
pub struct GuardianOrder {
    /// The processes, in the order of their start. A slot below their number is a rank.
    pub starts: Vec<Start>,
    /// The standard streams of each process.
    #[serde(skip)]
    pub streams: Vec<Streams>,
    /// Whether the job here lasts without a process until [`Command::Release`]: its processes are on other hosts.
    pub is_held: bool,
    /// The consequence of a process's death for the others.
    pub on_failure: OnFailure,
    /// The time between SIGTERM and SIGKILL if the job is ended because of a failure.
    pub grace: Duration,
    /// Signals that the processes ignore, since their launcher was started to ignore them, as by `nohup`.
    pub ignored: Vec<i32>,
}

/// One process of the job.
#[derive(Debug, Serialize, Deserialize)]
pub struct Start {
    /// Its slot in the segment.
    pub slot: u32,
    /// The image to start. Its environment is complete except for `LANDECK_SEGMENT`, which [`fork`] sets.
    pub image: Image,
}

/// An event of the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
        /// The raw wait status; [`landeck_memory::SlotRecord::UNKNOWN_STATUS`] if only its parent knows it.
        status: i32,
        /// Time since the job began.
        at: Duration,
        /// The wait that it was in when it ended.
        #[serde(skip)]
        wait: WaitRecord,
        /// How far its program had come with joining and leaving.
        #[serde(with = "message::presence")]
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
    /// A process wants to have another one started. [`Command::AnswerStart`] answers, once.
    StartAsked {
        /// The number of the question.
        request: u64,
        /// The wish.
        wish: Box<StartWish>,
    },
    /// There is no slot for a process that [`Guardian::start_process`] was to start.
    NotAdded {
        /// Its number.
        rank: u32,
        /// The reason.
        why: Refusal,
    },
    /// A process that was started while the job ran has joined.
    Joined {
        /// Its slot.
        slot: u32,
    },
    /// The last process has ended, and so has everything that any of them started.
    AllEnded,
    /// Everything that counts was told again, but that all have ended.
    AllTold,
    /// The guardian itself has died; everything below it was killed.
    GuardianGone,
}

/// A command of the launcher.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// End with the last process from now on ([`GuardianOrder::is_held`]).
    Release,
    /// Start one more process. Its image and its streams come beside the command.
    Start {
        /// Its number, which is no rank.
        rank: u32,
    },
    /// Answer a process that wanted to have another one started.
    AnswerStart {
        /// The number of its question.
        request: u64,
        /// The answer.
        answer: StartAnswer,
    },
    /// Tell everything again that counts, with [`Event::AllTold`] behind it: another daemon has the place of one that was
    /// killed, or what this one has told is lost.
    TellAgain {
        /// The number of the question, which none before has had. What comes before the answer is passed over.
        asked: u64,
    },
}

impl Command {
    /// Whether also a guardian that was stopped must obey at once.
    const fn must_be_obeyed(&self) -> bool {
        !matches!(self, Self::Signal(_))
    }
}

/// The reason why there is no guardian, or why it cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum GuardianError {
    /// The segment is private memory of this process.
    #[error("the guardian needs a segment that other processes can attach, not a local one")]
    LocalSegment,
    /// This process cannot be forked.
    #[error("the guardian cannot be forked: {0}")]
    Fork(#[from] ForkError),
    /// A necessary system call was refused.
    #[error("the guardian cannot {attempt}: {source}")]
    System {
        /// The attempted action.
        attempt: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
}

/// The end of the conversation with a guardian that the launcher or daemon has: events come from it, commands go to it.
/// Dropping this ends everything that is left of the job on this host: the forker of the guardian kills it at once, and
/// the guardian of a server sees the end of the conversation.
#[derive(Debug)]
pub struct Guardian {
    conversation: Conversation,
    /// The guardian itself. That of a server is known as soon as it has named itself.
    process: Option<GuardianProcess>,
    /// Children that this process had before it forked the guardian; they are not part of the job. `None` if a server
    /// has forked it.
    spared: Option<Vec<u32>>,
    state: State,
    /// The times that it was asked to tell again.
    questions: u32,
}

#[derive(Debug)]
struct GuardianProcess {
    pid: u32,
    /// Without this, a guardian that was stopped obeys only when somebody continues it.
    descriptor: Option<OwnedFd>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Another daemon has its place of one that was killed: events before those that are told again are passed over.
    AskedAgain(u64),
    Present,
    /// It has reported the end of everything and is leaving.
    Finished,
    /// It has ended; the process that forked it has reaped it.
    Gone,
}

/// Forks the guardian, which starts the processes. Call this while the process has one thread.
///
/// This process then adopts the orphans among its descendants.
///
/// # Errors
/// [`GuardianError`]; nothing was started in that case. A process that cannot be started is an event.
pub fn fork(segment: &Segment, mut order: GuardianOrder) -> Result<Guardian, GuardianError> {
    let refused = |attempt| move |source: io::Error| GuardianError::System { attempt, source };
    tell_segment(segment, &mut order)?;
    let (ours, theirs) = pair().map_err(|errno| refused("make a pair of sockets")(errno.into()))?;
    descendants::adopt_orphans().map_err(refused("adopt orphaned processes"))?;
    let spared = descendants::children();
    let began = Instant::now();
    match fork_child()? {
        None => {
            drop(ours);
            guard::guard(segment.clone(), order, theirs, began, Forker::Launcher)
        }
        Some(pid) => {
            let mut guardian = Guardian::new(ours, segment.clone());
            (guardian.process, guardian.spared) = (Some(GuardianProcess::new(pid)), Some(spared));
            Ok(guardian)
        }
    }
}

/// Runs the guardian in a process that a server has forked, and never returns.
///
/// # Errors
/// [`GuardianError::LocalSegment`] if the segment has no descriptor.
pub(crate) fn guard_for(
    server: u32,
    segment: Segment,
    mut order: GuardianOrder,
    socket: OwnedFd,
) -> Result<Infallible, GuardianError> {
    tell_segment(&segment, &mut order)?;
    guard::guard(segment, order, socket, Instant::now(), Forker::Server(server))
}

/// A pair of sockets for the conversation with a guardian.
pub(crate) fn pair() -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

/// Tells the processes of an order under which number they inherit the segment's descriptor.
fn tell_segment(segment: &Segment, order: &mut GuardianOrder) -> Result<(), GuardianError> {
    let memory = segment.descriptor().ok_or(GuardianError::LocalSegment)?.as_raw_fd();
    for start in &mut order.starts {
        guard::set_variable(&mut start.image, "LANDECK_SEGMENT", &memory.to_string());
    }
    Ok(())
}

impl GuardianProcess {
    fn new(pid: u32) -> Self {
        let process = Pid::from_raw(pid.cast_signed());
        let descriptor = process.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        Self { pid, descriptor }
    }
}

impl Guardian {
    /// The guardian at the other end of this socket, which watches over the processes of this segment.
    pub(crate) const fn new(socket: OwnedFd, segment: Segment) -> Self {
        let conversation = Conversation::new(socket, segment);
        Self { conversation, process: None, spared: None, state: State::Present, questions: 0 }
    }

    /// The guardian that another daemon has talked to before at this end of the conversation. It tells everything again that
    /// counts, in the place of what that daemon has not read.
    ///
    /// # Errors
    /// [`GuardianError::System`] if the guardian cannot be asked.
    pub(crate) fn resumed(socket: OwnedFd, segment: Segment) -> Result<Self, GuardianError> {
        let mut guardian = Self::new(socket, segment);
        guardian.ask_again()?;
        Ok(guardian)
    }

    /// Has the guardian tell everything again that counts, in the place of what comes before that.
    ///
    /// # Errors
    /// [`GuardianError::System`] if the guardian cannot be asked.
    pub(crate) fn ask_again(&mut self) -> Result<(), GuardianError> {
        if self.state != State::Gone {
            self.questions += 1;
            let asked = u64::from(std::process::id()) << 32 | u64::from(self.questions);
            self.state = State::AskedAgain(asked);
            self.send(Command::TellAgain { asked })?;
        }
        Ok(())
    }

    /// The descriptor that is readable when [`Guardian::next_event`] has something to report.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.conversation.descriptor()
    }

    /// The PID of the guardian, once it is known.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(|process| process.pid)
    }

    /// Whether it has ended amid its work.
    pub(crate) fn is_gone(&self) -> bool {
        self.state == State::Gone
    }

    /// Returns the next event, if there is one, without waiting. After [`Event::AllEnded`] or [`Event::GuardianGone`]
    /// nothing more comes.
    ///
    /// # Errors
    /// [`GuardianError::System`] if the guardian can no longer be heard.
    pub fn next_event(&mut self) -> Result<Option<Event>, GuardianError> {
        while matches!(self.state, State::Present | State::AskedAgain(_)) {
            match self.conversation.hear()? {
                Heard::Nothing => return Ok(None),
                Heard::End => {
                    self.clean_up();
                    return Ok(Some(Event::GuardianGone));
                }
                Heard::Present(pid) => {
                    self.process = Some(GuardianProcess::new(pid));
                }
                Heard::Again { pid, asked } if self.state == State::AskedAgain(asked) => {
                    self.process = Some(GuardianProcess::new(pid));
                    self.state = State::Present;
                }
                Heard::Again { .. } => {}
                Heard::Event(_) if self.state != State::Present => {}
                Heard::Event(event) => {
                    if event == Event::AllEnded {
                        self.state = State::Finished;
                    }
                    return Ok(Some(event));
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
        if command.must_be_obeyed() {
            // Somebody may have stopped it.
            self.signal(Signal::CONT);
        }
        self.conversation.say(&command, &[])
    }

    /// Has the guardian start one more process with this number, which is no rank. Events tell what becomes of it.
    ///
    /// # Errors
    /// [`GuardianError::System`] if the guardian cannot be told.
    pub fn start_process(
        &mut self,
        rank: u32,
        image: &Image,
        streams: &Streams,
    ) -> Result<(), GuardianError> {
        let refused = |source| GuardianError::System { attempt: "be told what to start", source };
        let data = parcel::file_of(image).map_err(refused)?;
        self.signal(Signal::CONT);
        let beside: Vec<BorrowedFd<'_>> =
            std::iter::once(&data).chain(streams).map(AsFd::as_fd).collect();
        self.conversation.say(&Command::Start { rank }, &beside)
    }

    /// Signals the guardian. One that has ended needs no signal.
    fn signal(&self, signal: Signal) {
        let process = self.process.as_ref().and_then(|process| process.descriptor.as_ref());
        let _ = process.map(|process| pidfd_send_signal(process, signal));
    }

    /// Tells guests the end of a guardian that ended amid its work. Its forker reaps it, and kills everything that it
    /// left.
    fn clean_up(&mut self) {
        let before = std::mem::replace(&mut self.state, State::Gone);
        let was_at_work = matches!(before, State::Present | State::AskedAgain(_));
        if let (Some(spared), Some(process)) = (&self.spared, &self.process) {
            // If waiting fails, another thread has reaped it.
            let _ = process::wait_for_end(process.pid);
            descendants::kill_all(spared);
        }
        if was_at_work {
            self.conversation.close_membership();
        }
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        if self.spared.is_none() || self.state == State::Gone {
            return;
        }
        if let Some(process) = self.process.as_ref().filter(|_| self.state == State::Present) {
            // It is our own child, not reaped yet.
            process::signal_process(process.pid, libc::SIGKILL);
        }
        self.clean_up();
    }
}
