//! The guardian's side of the guardian: its life in the forked process.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use landeck_host::descendants;
use landeck_host::environment::GUARDIAN_VARIABLE;
use landeck_host::process::{self, Change, ChildLook, Image, Starter, Streams};
use landeck_host::say::complain;
use landeck_joining::agent::{self, Agent, Effect};
use landeck_memory::{Presence, Segment, SlotRecord, WaitRecord, passing};
use landeck_protocols::membership::{Input, MembershipPlan, OnFailure};
use landeck_protocols::restarts::Restart;
use landeck_wire::{ControlMessage, ProcessId, SegmentId, Slot};
use rustix::event::epoll::EventFlags;
use rustix::event::poll;
use rustix::net::{RecvFlags, SendFlags, send};
use rustix::process::Signal;
use rustix::time::Timespec;

use super::message::Report;
use super::told::ToldEvents;
use super::{Command, Event, GuardianError, GuardianOrder, Refusal, Start};
use crate::parcel::value_in;

/// Runs the guardian in the forked process and never returns.
pub(super) fn guard(
    segment: Segment,
    order: GuardianOrder,
    socket: OwnedFd,
    began: Instant,
    forker: Forker,
) -> ! {
    let life = || match Guard::new(segment, &order, socket, began, forker) {
        Ok(guard) => guard.run(order.starts, order.streams),
        Err(error) => Err(error),
    };
    let code = match catch_unwind(AssertUnwindSafe(life)) {
        Ok(Ok(())) => 0,
        Ok(Err(error)) => {
            complain(format_args!("landeck: the guardian gives up, and the job ends: {error}"));
            1
        }
        Err(_) => 2, // the panic has printed its message
    };
    // SAFETY: ends this process without running what the launcher meant to run at its own end.
    unsafe { libc::_exit(code) }
}

/// The process that forked a guardian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forker {
    /// The launcher, which also talks to it.
    Launcher,
    /// A server with this PID, while a daemon talks to it. Its end ends the job as the daemon's does.
    Server(u32),
}

/// The state of the guardian.
struct Guard {
    agent: Agent,
    /// The conversation with the launcher, or with the daemon.
    launcher: OwnedFd,
    forker: Forker,
    deaths: OwnedFd,
    starter: Starter,
    began: Instant,
    slots: HashMap<u32, u32>,
    pids: HashMap<u32, u32>,
    /// The process groups of all processes of the job, also of those that ended.
    groups: HashSet<u32>,
    /// The image of each rank, as long as it may be started again, and of each process that is to be added.
    images: HashMap<u32, (Image, Streams)>,
    /// The processes that wait for a slot whose contents others may need, and until when.
    waiting: Vec<(u32, Instant)>,
    restarts: bool,
    backlog: VecDeque<Report>,
    /// The events that the next daemon must hear again; `None` for a launcher, with which the job ends.
    told: Option<ToldEvents>,
    /// Descriptors that were open at the fork; those that belong to the launcher alone are closed.
    inherited: Vec<RawFd>,
    /// Once no process is left: until when their own children may stay.
    linger_until: Option<Instant>,
    /// When processes that were asked to end are killed, as last known.
    kill_at: Option<Duration>,
    was_killed: bool,
    launcher_gone: bool,
}

/// How long a child of a process may outlive the last process of a job that ended by itself. That gives a filter at the
/// end of a pipe time to write its last lines.
const LINGER: Duration = Duration::from_millis(250);

/// The longest grace, as no clock runs so long.
const GRACE_MAX: Duration = Duration::from_secs(u32::MAX as u64);

/// How long a process that is to be added waits for a slot whose contents others may need, as a guest does.
const VACANCY_TIME: Duration = Duration::from_millis(500);
const VACANCY_LOOK: Duration = Duration::from_millis(1);

const DEATHS: u64 = 0;
const LAUNCHER: u64 = 1;

impl Guard {
    fn new(
        segment: Segment,
        order: &GuardianOrder,
        launcher: OwnedFd,
        began: Instant,
        forker: Forker,
    ) -> Result<Self, GuardianError> {
        let refused = |attempt| move |source: io::Error| GuardianError::System { attempt, source };
        let inherited = open_descriptors();
        // Keys pressed at the terminal must not signal the guardian.
        rustix::process::setpgid(None, None)
            .map_err(|errno| refused("make a process group")(errno.into()))?;
        // If the name cannot be set, nothing else changes.
        let _ = rustix::thread::set_name(c"landeck-guard");
        process::reset_signals(&process::handled_signals());
        descendants::adopt_orphans().map_err(refused("adopt orphaned processes"))?;
        if let Forker::Server(_) = forker {
            // The signal wakes the loop, which then looks for its parent.
            rustix::process::set_parent_process_death_signal(Some(Signal::CHILD))
                .map_err(|errno| refused("watch its server")(errno.into()))?;
        }
        let plan = MembershipPlan {
            host: SegmentId(segment.plan().host),
            processes: segment.plan().processes,
            guests: segment.plan().guests,
            keeps_ranks: segment.plan().has_host_tables(),
            is_held: order.is_held,
            on_failure: order.on_failure,
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
            forker,
            deaths,
            starter,
            began,
            slots: HashMap::new(),
            pids: HashMap::new(),
            groups: HashSet::new(),
            images: HashMap::new(),
            waiting: Vec::new(),
            restarts: matches!(order.on_failure, OnFailure::Restart { .. }),
            backlog: VecDeque::new(),
            told: matches!(forker, Forker::Server(_)).then(ToldEvents::default),
            inherited,
            linger_until: None,
            kill_at: None,
            was_killed: false,
            launcher_gone: false,
        })
    }

    fn run(mut self, starts: Vec<Start>, streams: Vec<Streams>) -> Result<(), GuardianError> {
        // Each process that is started gets a copy of the descriptors that are open here, so these are closed before.
        let keep = self.kept(&streams);
        self.close_inherited(&keep);
        if let Forker::Server(_) = self.forker {
            self.queue(Report::Present { pid: std::process::id() });
            self.look_for_server();
        }
        let own = std::process::id().to_string();
        for (mut start, streams) in starts.into_iter().zip(streams) {
            if self.agent.is_running() {
                set_variable(&mut start.image, GUARDIAN_VARIABLE, &own);
                self.start(start.slot, start.slot, 0, (start.image, streams));
                self.turn(Some(Duration::ZERO))?;
            }
        }
        self.agent.announce();
        while !self.is_done() {
            let timeout = self.timeout();
            self.turn(timeout)?;
        }
        descendants::kill_all(&[]);
        if !self.launcher_gone {
            self.report(Event::AllEnded);
        } // else the end of the conversation says that the processes were killed
        // A daemon that is killed now may not have passed everything on, so its successor asks for it.
        let may_be_asked_again = self.told.is_some();
        while (may_be_asked_again || !self.backlog.is_empty()) && !self.launcher_gone {
            self.turn(None)?;
        }
        Ok(())
    }

    /// Waits once, then handles everything that has happened.
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
        for (rank, until) in std::mem::take(&mut self.waiting) {
            self.add(rank, Some(until));
        }
        self.agent.tell(Input::Tick);
        self.carry_out();
        self.flush_backlog();
        Ok(())
    }

    /// Starts the process of a rank in a slot, and keeps its image as long as the rank may be started again.
    fn start(&mut self, slot: u32, rank: u32, restart: u32, image: (Image, Streams)) {
        let memory = self.agent.segment().clone();
        let started = self.starter.start(&image.0, &image.1, memory.descriptor());
        if self.restarts && rank < memory.plan().processes {
            self.images.insert(rank, image);
        }
        match started {
            Ok(child) => {
                self.slots.insert(child.pid, slot);
                self.pids.insert(slot, child.pid);
                self.groups.insert(child.pid);
                self.agent.tell(Input::Started { slot: Slot(slot), pid: child.pid });
                self.report(Event::Started { slot, pid: child.pid, rank, restart });
            }
            Err(error) => {
                self.agent.tell(Input::NotStarted { slot: Slot(slot) });
                let again = self.carry_out();
                self.report(Event::NotStarted { slot, rank, error, again });
            }
        }
    }

    /// Starts a failed process again, in a slot that nothing is left in.
    fn start_again(&mut self, slot: u32, rank: u32, number: u32) {
        let Some(mut image) = self.images.remove(&rank) else { return };
        set_variable(&mut image.0, "LANDECK_SLOT", &slot.to_string());
        if number > 0 {
            set_variable(&mut image.0, "LANDECK_RESTART", &number.to_string());
        }
        self.start(slot, rank, number, image);
        self.agent.announce();
    }

    /// Takes the image and the streams of one more process, which came beside a command, and starts it.
    fn take_start(&mut self, rank: u32, beside: Vec<OwnedFd>) {
        let mut beside = beside.into_iter();
        let mut next = || beside.next();
        let image = next().and_then(|data| value_in::<Image>(data).ok());
        let (Some(mut image), Some(stdin), Some(stdout), Some(stderr)) =
            (image, next(), next(), next())
        else {
            // The system has dropped descriptors for which this process has no room.
            return self.report(Event::NotAdded { rank, why: Refusal::Full });
        };
        let memory = self.agent.segment().descriptor().map(|memory| memory.as_raw_fd());
        set_variable(&mut image, "LANDECK_SEGMENT", &memory.unwrap_or(-1).to_string());
        set_variable(&mut image, GUARDIAN_VARIABLE, &std::process::id().to_string());
        self.images.insert(rank, (image, [stdin, stdout, stderr]));
        self.add(rank, None);
    }

    /// Adds a process whose image is there. One that has waited for a slot waits at most until then.
    fn add(&mut self, rank: u32, until: Option<Instant>) {
        self.agent.tell(Input::Add { rank });
        self.carry_out();
        // What is started or refused for good has no image any more.
        if self.images.contains_key(&rank) {
            let now = Instant::now();
            let is_coming = self.agent.is_slot_coming(until.is_none());
            let until = until.unwrap_or(now + VACANCY_TIME);
            match is_coming && now < until {
                true => self.waiting.push((rank, until)),
                false => self.not_added(rank, Refusal::Full),
            }
        }
    }

    fn not_added(&mut self, rank: u32, why: Refusal) {
        self.images.remove(&rank);
        self.report(Event::NotAdded { rank, why });
    }

    fn look_at_children(&mut self) {
        let mut signals = [0; 1024];
        // Reading only silences the descriptor; the kernel is asked what happened.
        while matches!(rustix::io::read(&self.deaths, &mut signals), Ok(1..)) {}
        self.look_for_server();
        while let Ok(ChildLook::Changed(pid, change)) = process::look() {
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

    /// Kills the job if the server that forked this guardian has ended.
    fn look_for_server(&mut self) {
        let Forker::Server(server) = self.forker else { return };
        let parent = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get());
        if parent != Some(server.cast_signed()) && !self.launcher_gone {
            self.launcher_gone = true;
            self.kill();
        }
    }

    /// Handles a change of a process of the job. A process that ended is not reaped yet, so its group can still be
    /// signalled.
    fn changed(&mut self, slot: u32, change: Change) {
        let (event, input) = match change {
            Change::Stopped => (Event::Stopped { slot }, Input::Stopped { slot: Slot(slot) }),
            Change::Continued => (Event::Continued { slot }, Input::Continued { slot: Slot(slot) }),
            Change::Ended(status) => return self.ended(slot, status),
        };
        self.agent.tell(input);
        self.carry_out();
        self.report(event);
    }

    /// Handles the end of the process of a slot.
    fn ended(&mut self, slot: u32, status: i32) {
        let (segment, at) = (self.agent.segment(), self.began.elapsed());
        let (presence, pid) = (segment.presence(slot), segment.slot_record(slot).pid);
        let (rank, last) = (self.agent.rank_of(slot), agent::presence_of(presence));
        self.agent.tell(Input::Ended { slot: Slot(slot), status, presence: last });
        let again = self.carry_out();
        if let (None, Some(rank)) = (again, rank) {
            self.images.remove(&rank); // its ends of the pipes go with it
        }
        let wait = WaitRecord::default(); // the other end reads it
        self.report(Event::Ended { slot, pid, status, at, wait, presence, again });
    }

    /// Handles the end of a process that joined below the one that was started. This counts as the end of the slot's
    /// process: the one that was started is only a remainder, and its own end says nothing.
    fn lost(&mut self, process: ProcessId, status: Option<i32>) {
        let slot = process.slot.0;
        let Some(&started) = self.pids.get(&slot) else { return };
        if !self.agent.is_alive(process) {
            return;
        }
        let status = status.or_else(|| status_soon(started)).unwrap_or(SlotRecord::UNKNOWN_STATUS);
        self.slots.remove(&started);
        self.ended(slot, status);
        self.pids.remove(&slot);
    }

    /// Carries out the effects of the agent's last input. Returns the restart that follows, if any.
    fn carry_out(&mut self) -> Option<Restart> {
        self.kill_at = self.agent.kill_at().or(self.kill_at);
        let mut again = None;
        for effect in self.agent.take_effects() {
            match effect {
                Effect::Terminate(slot) => {
                    self.signal(slot, libc::SIGTERM);
                    self.signal(slot, libc::SIGCONT);
                }
                Effect::Kill(slot) => self.signal(slot, libc::SIGKILL),
                Effect::WillRestart(restart) => again = Some(restart),
                Effect::Lost { process, status } => self.lost(process, status),
                Effect::GuestAborted(slot) => self.report_abort(slot),
                Effect::Start { slot, rank, number } => self.start_again(slot, rank, number),
                // It may wait for a slot.
                Effect::NotAdded { why: Refusal::Full, .. } => {}
                Effect::NotAdded { rank, why } => self.not_added(rank, why),
                Effect::StartAsked { request, wish } => {
                    self.report(Event::StartAsked { request, wish });
                }
                Effect::Joined(slot) => {
                    if self.agent.segment().slot_record(slot).is_added() {
                        self.report(Event::Joined { slot });
                    }
                }
                Effect::Over => {
                    self.linger_until = Some(self.lingering_end());
                    if self.kill_at.is_some() {
                        self.terminate_adopted();
                    }
                }
            }
        }
        self.agent.write_end();
        again
    }

    /// Reports that the guest of a slot has ended the job.
    fn report_abort(&mut self, slot: u32) {
        let segment = self.agent.segment();
        let Presence::Aborted(code) = segment.presence(slot) else { return };
        let (pid, at) = (segment.slot_record(slot).pid, self.began.elapsed());
        self.report(Event::GuestAborted { pid, code, at });
    }

    fn signal(&self, slot: u32, signal: i32) {
        if let Some(&pid) = self.pids.get(&slot) {
            process::signal_group(pid, signal);
        }
    }

    /// Asks those processes to end that left the process groups of the job, and so were not asked with them.
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

    /// Whether nothing is left, or the time for what is left has passed.
    fn is_done(&self) -> bool {
        let Some(until) = self.linger_until else { return self.launcher_gone };
        self.launcher_gone
            || until <= Instant::now()
            || process::look().is_ok_and(|look| look == ChildLook::Childless)
    }

    fn timeout(&self) -> Option<Duration> {
        let now = self.began.elapsed();
        let own = self.agent.deadline().map(|at| at.saturating_sub(now));
        let linger = self.linger_until.map(|until| until.saturating_duration_since(Instant::now()));
        let vacancy = (!self.waiting.is_empty()).then_some(VACANCY_LOOK);
        own.into_iter().chain(linger).chain(vacancy).min()
    }

    fn hear_launcher(&mut self) {
        let mut bytes = [0; Command::BYTES_MAX + 1];
        loop {
            match passing::receive(&self.launcher, &mut bytes[..], RecvFlags::DONTWAIT) {
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return,
                Ok((length @ 1.., beside)) => {
                    if let Ok(command) = Command::decode(&bytes[..length]) {
                        self.obey(command, beside);
                    }
                }
                // The launcher has ended.
                Ok(_) | Err(_) => {
                    self.launcher_gone = true;
                    self.kill();
                    return;
                }
            }
        }
    }

    fn obey(&mut self, command: Command, beside: Vec<OwnedFd>) {
        if let Some(told) = &mut self.told {
            told.obeyed(&command);
        }
        match command {
            Command::Signal(signal) => {
                if ends_a_job(signal) {
                    self.agent.tell(Input::NoRestarts);
                }
                for &pid in self.slots.keys() {
                    process::signal_group(pid, signal);
                }
            }
            Command::End { grace } => {
                self.agent.tell(Input::End { grace: grace.min(GRACE_MAX) });
                self.carry_out();
            }
            Command::Kill => self.kill(),
            Command::Release => {
                self.agent.tell(Input::Release);
                self.carry_out();
            }
            Command::Start { rank } => self.take_start(rank, beside),
            Command::AnswerStart { request, answer } => self.agent.answer_start(request, &answer),
            Command::TellAgain { asked } => {
                self.queue(Report::Again { pid: std::process::id(), asked });
                let again = self.told.as_ref().map_or_else(Vec::new, ToldEvents::again);
                again.into_iter().for_each(|event| self.queue(Report::Event(event)));
            }
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

    /// Queues an event for the launcher. The queue is bounded: for a launcher that does not listen, only the last stop
    /// or continuation of each process is kept.
    fn report(&mut self, event: Event) {
        if let Event::Stopped { slot } | Event::Continued { slot } = event {
            let old = [Event::Stopped { slot }, Event::Continued { slot }].map(Report::Event);
            self.backlog.retain(|report| !old.contains(report));
        }
        if let Some(told) = &mut self.told {
            told.note(&event);
        }
        self.queue(Report::Event(event));
    }

    fn queue(&mut self, report: Report) {
        self.backlog.push_back(report);
        self.flush_backlog();
    }

    fn flush_backlog(&mut self) {
        let was_empty = self.backlog.is_empty();
        while let Some(report) = self.backlog.front() {
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match send(&self.launcher, &report.encode(), flags) {
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => break,
                // Sent; or the launcher has ended, which another descriptor reports.
                Ok(_) | Err(_) => drop(self.backlog.pop_front()),
            }
        }
        let wanted = match self.backlog.is_empty() {
            true if was_empty => return,
            true => EventFlags::IN,
            false => EventFlags::IN | EventFlags::OUT,
        };
        // It was watched before, so this needs no memory that could be lacking.
        let _ = self.agent.rewatch(&self.launcher, LAUNCHER, wanted);
    }

    /// Descriptors from before the fork that the guardian itself uses, or that are closed elsewhere.
    fn kept(&self, streams: &[Streams]) -> HashSet<RawFd> {
        let own = [self.launcher.as_raw_fd()];
        let memory = self.agent.segment().descriptor().map(|fd| fd.as_raw_fd());
        let streams = streams.as_flattened().iter().map(AsRawFd::as_raw_fd);
        own.into_iter().chain(memory).chain(streams).collect()
    }

    /// Closes descriptors that the launcher opened for itself: a pipe must end when its other end does.
    fn close_inherited(&mut self, keep: &HashSet<RawFd>) {
        for descriptor in std::mem::take(&mut self.inherited) {
            if !keep.contains(&descriptor) {
                // SAFETY: it was open at the fork and is none of the guardian's; the launcher's
                // objects that own it exist here as copies that are never used or dropped.
                unsafe { libc::close(descriptor) };
            }
        }
    }
}

/// The status of a child that may be about to end, such as a shell that passes on its command's status. It is the next
/// best answer if the kernel does not report the command's own.
fn status_soon(child: u32) -> Option<i32> {
    const LOOKS: u32 = 20;
    let moment = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
    (0..LOOKS).find_map(|_| {
        let status = process::end_of(child).ok().flatten();
        if status.is_none() {
            let _ = poll(&mut [], Some(&moment));
        }
        status
    })
}

/// Whether a signal says that the user wants the job to end.
const fn ends_a_job(signal: i32) -> bool {
    matches!(signal, libc::SIGINT | libc::SIGQUIT | libc::SIGTERM | libc::SIGHUP)
}

/// Sets a variable in the environment of an image.
pub(super) fn set_variable(image: &mut Image, name: &str, value: &str) {
    let beginning = format!("{name}=");
    image.environment.retain(|text| !text.as_bytes().starts_with(beginning.as_bytes()));
    image.environment.extend(std::ffi::CString::new(beginning + value));
}

/// A descriptor that is readable when a child has changed. Signals are blocked already.
pub(crate) fn child_signals() -> io::Result<OwnedFd> {
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

/// The descriptors that the launcher opened for itself.
fn open_descriptors() -> Vec<RawFd> {
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let listed: Vec<RawFd> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    // The descriptor of the directory itself is in the list and closed by now.
    listed.into_iter().filter(|&descriptor| is_the_launchers(descriptor)).collect()
}

/// Whether a descriptor is open and not meant to be inherited by programs.
fn is_the_launchers(descriptor: RawFd) -> bool {
    // SAFETY: fcntl with F_GETFD reads no memory.
    let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFD) };
    descriptor > 2 && flags >= 0 && flags & libc::FD_CLOEXEC != 0
}
