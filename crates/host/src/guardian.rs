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

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use landeck_groups::membership::{Input, OnFailure as Policy, Plan};
use landeck_memory::{JobState, Presence, Segment, SlotRecord, SlotState, WaitRecord};
use landeck_wire::{HostId, Slot};
use rustix::event::epoll::EventFlags;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
};

use crate::agent::{self, Agent, Effect};
use crate::descendants;
use crate::process::{self, Change, Image, Look, StartError, Starter, Step};

/// What the guardian is to do.
#[derive(Debug)]
pub struct Order {
    /// The processes, in the order they are started in.
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

/// What a process's death means for the other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// They are ended.
    Abort,
    /// They are told, and go on.
    Notify,
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
    },
    /// A process could not be started.
    NotStarted {
        /// Its slot.
        slot: u32,
        /// The step that failed, and the kernel's answer.
        error: StartError,
    },
    /// A process is gone.
    Ended {
        /// Its slot.
        slot: u32,
        /// The raw wait status.
        status: i32,
        /// Time since the job began.
        at: Duration,
        /// What it waited for when it ended.
        wait: WaitRecord,
        /// How far its program had come with joining and leaving.
        presence: Presence,
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
    /// The last process is gone, and everything that any of them started.
    AllEnded,
    /// The guardian itself is gone; everything below it was killed.
    GuardianGone,
}

/// What the launcher wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Send this signal to every process.
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
        set_segment(&mut start.image, memory);
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
            guard(segment.clone(), order, theirs, began)
        }
        pid => {
            let error = io::Error::last_os_error();
            process::restore_signals(&mask);
            if pid < 0 {
                return Err(refused("be forked")(error));
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
            Message::STARTED => Event::Started { slot, pid: message.number.cast_unsigned() },
            Message::NOT_STARTED => {
                let step = Step::from_number(message.detail as u8)?;
                Event::NotStarted { slot, error: StartError { step, errno: message.number } }
            }
            Message::ENDED => Event::Ended {
                slot,
                status: message.number,
                at: Duration::from_nanos(message.time_ns),
                wait: self.segment.wait_record(slot),
                presence: presence_from(message.detail),
            },
            Message::STOPPED => Event::Stopped { slot },
            Message::CONTINUED => Event::Continued { slot },
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
        for slot in 0..self.segment.plan().processes {
            let record = self.segment.slot_record(slot);
            if !record.state.is_gone() {
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

/// The guardian's life, in the forked process.
fn guard(segment: Segment, order: Order, socket: OwnedFd, began: Instant) -> ! {
    let life = || match Guard::new(segment, &order, socket, began) {
        Ok(guard) => guard.run(order.starts),
        Err(error) => Err(error),
    };
    let code = match catch_unwind(AssertUnwindSafe(life)) {
        Ok(Ok(())) => 0,
        Ok(Err(error)) => {
            eprintln!("landeck: the guardian gives up, and the job ends: {error}");
            1
        }
        Err(_) => 2, // the panic has said what it is
    };
    // SAFETY: ends this process without running what the launcher meant to run at its own end.
    unsafe { libc::_exit(code) }
}

/// The guardian's side.
struct Guard {
    agent: Agent,
    launcher: OwnedFd,
    deaths: OwnedFd,
    starter: Starter,
    began: Instant,
    slots: HashMap<u32, u32>,
    pids: HashMap<u32, u32>,
    /// The process groups of all processes of the job, also of those that ended.
    groups: HashSet<u32>,
    backlog: VecDeque<Message>,
    /// Descriptors that were open at the fork: what of them is the launcher's alone is closed.
    inherited: Vec<RawFd>,
    /// Once no process is left: how long what they started may stay.
    linger_until: Option<Instant>,
    /// When processes that were asked to end are killed, as last known.
    kill_at: Option<Duration>,
    was_killed: bool,
    launcher_gone: bool,
}

/// How long something that a process started may outlive the last process of a job that ended by
/// itself: time for a filter at the end of a pipe to write its last lines.
const LINGER: Duration = Duration::from_millis(250);

const DEATHS: u64 = 0;
const LAUNCHER: u64 = 1;

impl Guard {
    fn new(
        segment: Segment,
        order: &Order,
        launcher: OwnedFd,
        began: Instant,
    ) -> Result<Self, GuardianError> {
        let refused = |attempt| move |source: io::Error| GuardianError::System { attempt, source };
        let inherited = open_descriptors();
        // A key at the terminal is not for the guardian.
        rustix::process::setpgid(None, None)
            .map_err(|errno| refused("make a process group")(errno.into()))?;
        // A name that is not set changes nothing else.
        let _ = rustix::thread::set_name(c"landeck-guard");
        process::reset_signals(&process::handled_signals());
        descendants::adopt_orphans().map_err(refused("adopt orphaned processes"))?;
        let plan = Plan {
            host: HostId(segment.plan().host),
            processes: segment.plan().processes,
            guests: segment.plan().guests,
            on_failure: match order.on_failure {
                OnFailure::Abort => Policy::Abort,
                OnFailure::Notify => Policy::Notify,
            },
            grace: order.grace,
        };
        let agent = Agent::new(segment, plan, began).map_err(refused("open its socket"))?;
        let deaths = child_signals().map_err(refused("watch its children"))?;
        agent.watch(&deaths, DEATHS, EventFlags::IN).map_err(refused("watch its children"))?;
        agent.watch(&launcher, LAUNCHER, EventFlags::IN).map_err(refused("watch the launcher"))?;
        let starter = Starter::new().map_err(refused("prepare to start processes"))?;
        Ok(Self {
            agent,
            launcher,
            deaths,
            starter,
            began,
            slots: HashMap::new(),
            pids: HashMap::new(),
            groups: HashSet::new(),
            backlog: VecDeque::new(),
            inherited,
            linger_until: None,
            kill_at: None,
            was_killed: false,
            launcher_gone: false,
        })
    }

    fn run(mut self, starts: Vec<Start>) -> Result<(), GuardianError> {
        let keep: Vec<RawFd> = self.kept(&starts);
        for start in starts {
            if self.agent.is_running() {
                self.start(&start);
                self.turn(Some(Duration::ZERO))?;
            }
        }
        self.agent.announce();
        self.close_inherited(&keep);
        while !self.is_done() {
            let timeout = self.timeout();
            self.turn(timeout)?;
        }
        descendants::kill_all(&[]);
        self.report(Message { kind: Message::ALL_ENDED, ..Message::default() });
        while !self.backlog.is_empty() && !self.launcher_gone {
            self.turn(None)?;
        }
        Ok(())
    }

    /// One wait, and all that has happened meanwhile.
    fn turn(&mut self, timeout: Option<Duration>) -> Result<(), GuardianError> {
        let attempt = "wait for what happens";
        let ready =
            self.agent.wait(timeout).map_err(|source| GuardianError::System { attempt, source })?;
        for token in ready {
            match token {
                DEATHS => self.look_at_children(),
                _ => self.hear_launcher(),
            }
        }
        self.agent.tell(Input::Tick);
        self.carry_out();
        self.flush_backlog();
        Ok(())
    }

    fn start(&mut self, start: &Start) {
        let slot = start.slot;
        let memory = self.agent.segment().clone();
        match self.starter.start(&start.image, memory.descriptor()) {
            Ok(child) => {
                self.slots.insert(child.pid, slot);
                self.pids.insert(slot, child.pid);
                self.groups.insert(child.pid);
                self.agent.tell(Input::Started { slot: Slot(slot), pid: child.pid });
                let number = child.pid.cast_signed();
                self.report(Message { kind: Message::STARTED, slot, number, ..Message::default() });
            }
            Err(error) => {
                let detail = error.step as u32;
                let kind = Message::NOT_STARTED;
                self.report(Message { kind, slot, number: error.errno, detail, time_ns: 0 });
                self.agent.tell(Input::NotStarted { slot: Slot(slot) });
                self.carry_out();
            }
        }
    }

    fn look_at_children(&mut self) {
        let mut signals = [0; 1024];
        // Only to make it quiet; what happened is asked of the kernel.
        while matches!(rustix::io::read(&self.deaths, &mut signals), Ok(1..)) {}
        while let Ok(Look::Changed(pid, change)) = process::look() {
            if let Some(&slot) = self.slots.get(&pid) {
                self.changed(slot, change);
            }
            if let Change::Ended(_) = change
                && let Some(slot) = self.slots.remove(&pid)
            {
                self.pids.remove(&slot);
            }
            if process::settle(pid, change).is_err() {
                break;
            }
        }
    }

    /// A process of the job changed. An ended one is not reaped yet: its group can be signalled.
    fn changed(&mut self, slot: u32, change: Change) {
        let mut message = Message { slot, ..Message::default() };
        let input = match change {
            Change::Stopped => {
                message.kind = Message::STOPPED;
                Input::Stopped { slot: Slot(slot) }
            }
            Change::Continued => {
                message.kind = Message::CONTINUED;
                Input::Continued { slot: Slot(slot) }
            }
            Change::Ended(status) => {
                let presence = self.agent.segment().presence(slot);
                message.kind = Message::ENDED;
                message.number = status;
                message.detail = presence as u32;
                message.time_ns = self.began.elapsed().as_nanos() as u64;
                Input::Ended { slot: Slot(slot), status, presence: agent::presence_of(presence) }
            }
        };
        self.agent.tell(input);
        self.carry_out();
        self.report(message);
    }

    /// Lets everybody know what changed, then does what follows from it.
    fn carry_out(&mut self) {
        self.kill_at = self.agent.deadline().or(self.kill_at);
        for effect in self.agent.take_effects() {
            match effect {
                Effect::Terminate(slot) => {
                    self.signal(slot, libc::SIGTERM);
                    self.signal(slot, libc::SIGCONT);
                }
                Effect::Kill(slot) => self.signal(slot, libc::SIGKILL),
                Effect::Over => {
                    self.linger_until = Some(self.lingering_end());
                    if self.kill_at.is_some() {
                        self.terminate_adopted();
                    }
                }
            }
        }
    }

    fn signal(&self, slot: u32, signal: i32) {
        if let Some(&pid) = self.pids.get(&slot) {
            process::signal_group(pid, signal);
        }
    }

    /// Asks those to end that left the groups of the processes, and so were not asked with them.
    fn terminate_adopted(&self) {
        for pid in descendants::children() {
            let was_asked = process::group_of(pid).is_none_or(|group| self.groups.contains(&group));
            if !was_asked {
                process::signal_process(pid, libc::SIGTERM);
                process::signal_process(pid, libc::SIGCONT);
            }
        }
    }

    fn lingering_end(&self) -> Instant {
        match self.kill_at {
            _ if self.was_killed => Instant::now(),
            Some(kill_at) => self.began + kill_at,
            None => Instant::now() + LINGER,
        }
    }

    /// Whether nothing is left, or what is left has had its time.
    fn is_done(&self) -> bool {
        let Some(until) = self.linger_until else { return self.launcher_gone };
        self.launcher_gone
            || until <= Instant::now()
            || process::look().is_ok_and(|look| look == Look::Childless)
    }

    fn timeout(&self) -> Option<Duration> {
        let now = self.began.elapsed();
        let kill = self.agent.deadline().map(|kill_at| kill_at.saturating_sub(now));
        let linger = self.linger_until.map(|until| until.saturating_duration_since(Instant::now()));
        kill.into_iter().chain(linger).min()
    }

    fn hear_launcher(&mut self) {
        let mut bytes = [0; Message::BYTES];
        loop {
            match recv(&self.launcher, &mut bytes[..], RecvFlags::DONTWAIT) {
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return,
                Ok((1.., _)) => self.obey(&Message::decode(&bytes)),
                // The launcher is gone.
                Ok(_) | Err(_) => {
                    self.launcher_gone = true;
                    self.kill();
                    return;
                }
            }
        }
    }

    fn obey(&mut self, message: &Message) {
        match message.kind {
            Message::SIGNAL => {
                for &pid in self.slots.keys() {
                    process::signal_group(pid, message.number);
                }
            }
            Message::END => {
                self.agent.tell(Input::End { grace: Duration::from_nanos(message.time_ns) });
                self.carry_out();
            }
            Message::KILL => self.kill(),
            _ => {}
        }
    }

    fn kill(&mut self) {
        self.was_killed = true;
        self.agent.tell(Input::Kill);
        self.carry_out();
        if self.linger_until.is_some() {
            self.linger_until = Some(Instant::now());
        }
    }

    /// Puts an event in line for the launcher. The line is bounded: a launcher that does not listen
    /// is told only the last of a process's stops and continuations.
    fn report(&mut self, message: Message) {
        let is_stop = |kind| kind == Message::STOPPED || kind == Message::CONTINUED;
        if is_stop(message.kind) {
            self.backlog.retain(|old| old.slot != message.slot || !is_stop(old.kind));
        }
        self.backlog.push_back(message);
        self.flush_backlog();
    }

    fn flush_backlog(&mut self) {
        let was_empty = self.backlog.is_empty();
        while let Some(message) = self.backlog.front() {
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match send(&self.launcher, &message.encode(), flags) {
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => break,
                // Sent; or the launcher is gone, which is heard elsewhere.
                Ok(_) | Err(_) => drop(self.backlog.pop_front()),
            }
        }
        let wanted = match self.backlog.is_empty() {
            true if was_empty => return,
            true => EventFlags::IN,
            false => EventFlags::IN | EventFlags::OUT,
        };
        // It was watched before, so this cannot fail for want of anything.
        let _ = self.agent.rewatch(&self.launcher, LAUNCHER, wanted);
    }

    /// Descriptors of before the fork that the guardian itself uses, or that are closed elsewhere.
    fn kept(&self, starts: &[Start]) -> Vec<RawFd> {
        let own = [self.launcher.as_raw_fd()];
        let memory = self.agent.segment().descriptor().map(|fd| fd.as_raw_fd());
        let streams = starts.iter().flat_map(|start| {
            let image = &start.image;
            [&image.stdin, &image.stdout, &image.stderr].map(AsRawFd::as_raw_fd)
        });
        own.into_iter().chain(memory).chain(streams).collect()
    }

    /// Closes what the launcher opened for itself: pipes must end when their other end does.
    fn close_inherited(&mut self, keep: &[RawFd]) {
        for descriptor in std::mem::take(&mut self.inherited) {
            if !keep.contains(&descriptor) {
                // SAFETY: it was open at the fork and is none of the guardian's; the launcher's
                // objects that own it exist here as copies that are never used or dropped.
                unsafe { libc::close(descriptor) };
            }
        }
    }
}

/// What travels between launcher and guardian: always all of it, in one piece.
#[derive(Clone, Copy, Debug, Default)]
struct Message {
    kind: u32,
    slot: u32,
    number: i32,
    detail: u32,
    time_ns: u64,
}

impl Message {
    const BYTES: usize = 24;
    const STARTED: u32 = 1;
    const NOT_STARTED: u32 = 2;
    const ENDED: u32 = 3;
    const STOPPED: u32 = 4;
    const CONTINUED: u32 = 5;
    const ALL_ENDED: u32 = 6;
    const SIGNAL: u32 = 7;
    const END: u32 = 8;
    const KILL: u32 = 9;

    fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&self.kind.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.slot.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.number.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.detail.to_le_bytes());
        bytes[16..].copy_from_slice(&self.time_ns.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; Self::BYTES]) -> Self {
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        Self {
            kind: word(0),
            slot: word(4),
            number: word(8).cast_signed(),
            detail: word(12),
            time_ns: u64::from(word(16)) | u64::from(word(20)) << 32,
        }
    }
}

impl From<Command> for Message {
    fn from(command: Command) -> Self {
        match command {
            Command::Signal(number) => Self { kind: Self::SIGNAL, number, ..Self::default() },
            Command::End { grace } => {
                let time_ns = u64::try_from(grace.as_nanos()).unwrap_or(u64::MAX / 2);
                Self { kind: Self::END, time_ns, ..Self::default() }
            }
            Command::Kill => Self { kind: Self::KILL, ..Self::default() },
        }
    }
}

fn presence_from(number: u32) -> Presence {
    match number {
        1 => Presence::Attached,
        2 => Presence::Finalized,
        _ => Presence::NotAttached,
    }
}

/// Puts the number of the segment's descriptor where the process looks for it.
fn set_segment(image: &mut Image, descriptor: RawFd) {
    image.environment.retain(|text| !text.as_bytes().starts_with(b"LANDECK_SEGMENT="));
    let text = format!("LANDECK_SEGMENT={descriptor}");
    image.environment.extend(std::ffi::CString::new(text));
}

/// A descriptor that is readable when a child has changed. Signals are blocked already.
fn child_signals() -> io::Result<OwnedFd> {
    use std::os::fd::FromRawFd;
    // SAFETY: the mask is initialised before it is read; a new descriptor is nobody else's.
    unsafe {
        let mut mask: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut mask);
        libc::sigaddset(&raw mut mask, libc::SIGCHLD);
        match libc::signalfd(-1, &raw const mask, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            -1 => Err(io::Error::last_os_error()),
            descriptor => Ok(OwnedFd::from_raw_fd(descriptor)),
        }
    }
}

/// How many threads this process has; one where that cannot be found out.
fn thread_count() -> u64 {
    // A directory's links are itself, its name, and its folders.
    std::fs::metadata("/proc/self/task").map_or(1, |folder| folder.nlink().saturating_sub(2))
}

/// What the launcher opened for itself.
fn open_descriptors() -> Vec<RawFd> {
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let listed: Vec<RawFd> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    // The one that the list was read from is in it, and closed by now.
    listed.into_iter().filter(|&descriptor| is_the_launchers(descriptor)).collect()
}

/// Whether a descriptor is open, and not one that is handed on to programs.
fn is_the_launchers(descriptor: RawFd) -> bool {
    // SAFETY: fcntl with F_GETFD reads no memory.
    let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFD) };
    descriptor > 2 && flags >= 0 && flags & libc::FD_CLOEXEC != 0
}
