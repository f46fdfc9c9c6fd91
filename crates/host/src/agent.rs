//! The agent of a job: drives its membership, writes the verdicts into the segment, and answers at
//! the joining socket.
//!
//! A role, not a program. The guardian plays it for the jobs of our launcher. Where another
//! launcher, or nobody, started the processes, the first of them plays it in a thread
//! ([`crate::agent_thread`]); the others are watched through their connections.

use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use landeck_groups::membership::{
    Input, Membership, Output, Plan, Presence, Record, Refusal, State,
};
use landeck_groups::restarts::Restart;
use landeck_memory::{JobState, Segment, SlotRecord};
use landeck_wire::{HostId, ProcessId, Slot};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketFlags, accept_with, recv};
use rustix::time::Timespec;

use self::names::Name;
use self::record::written;
use self::vacancy::VACANCY_LOOK;
use crate::address::{Address, own_uid};
use crate::index::{Entry, Index};
use crate::keeper::Keeper;
use crate::objects;
use crate::peer;
use crate::socket::{Answer, Question, Verdict};

mod below;
pub(crate) mod names;
mod record;
mod vacancy;

/// What the driver of an agent is to do to processes, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Ask the process of this slot to end.
    Terminate(u32),
    /// Kill the process of this slot.
    Kill(u32),
    /// The process that failed just now will be started again.
    WillRestart(Restart),
    /// Start the process of a rank again.
    Start {
        /// In this slot.
        slot: u32,
        /// The rank that it had at first.
        rank: u32,
        /// Which new start it is.
        number: u32,
    },
    /// This guest has ended the job.
    GuestAborted(u32),
    /// A process is gone that joined in the place of the one that was started, with this raw wait
    /// status, if it is known. The membership knows nothing of it yet.
    Lost {
        /// Who.
        process: ProcessId,
        /// How it ended.
        status: Option<i32>,
    },
    /// No process of the job is left.
    Over,
}

/// An agent without the processes: those are its driver's.
pub(crate) struct Agent {
    segment: Segment,
    membership: Membership,
    began: Instant,
    trusted_uid: u32,
    epoll: OwnedFd,
    door: OwnedFd,
    /// The same in the user's index, where there is one.
    entry: Option<Entry>,
    watched: HashMap<u64, Watched>,
    connections: HashMap<u64, Connection>,
    names: HashMap<u64, Name>,
    keeper: Keeper,
    /// Since which generation of the membership the processes of slots are gone.
    gone_since: HashMap<Slot, u32>,
    last_token: u64,
    effects: Vec<Effect>,
    unannounced: bool,
    /// The job ends, which stands nowhere yet.
    unwritten_end: bool,
    doors_shut_until: Option<Instant>,
}

/// What an own token of the epoll descriptor stands for.
#[derive(Clone, Copy)]
enum Watched {
    /// The joining socket.
    Door,
    /// The same in the index.
    Entry,
    /// The socket of a published name.
    NameDoor,
    /// A connection, or the process at its other end: both mean the connection of this token.
    Connection(u64),
}

struct Connection {
    socket: OwnedFd,
    pid: u32,
    /// The name at whose socket it came in.
    name: Option<u64>,
    standing: Standing,
}

enum Standing {
    /// It has not asked yet, and has until then.
    Asking { until: Instant },
    /// It has asked to join, and waits for a slot that somebody may still need; until then.
    Waiting { until: Instant },
    /// It was let in. The process is watched as well where that is possible: its connection may
    /// be open in a child that it forked.
    Inside { process: ProcessId, watch: Option<(u64, OwnedFd)> },
    /// It has joined in the place of the process that was started, and is watched besides. Where that
    /// is possible, what stands for its connection is the process itself.
    Below { process: ProcessId },
}

/// Tokens below are the driver's.
const DRIVER_TOKENS: u64 = 16;
/// Time for a question, once connected.
const QUESTION_TIME: Duration = Duration::from_secs(2);
/// How long nobody is let in after descriptors ran out.
const SHUT_TIME: Duration = Duration::from_millis(100);
/// Connections beyond one for each slot.
const CONNECTIONS_BEYOND_SLOTS: usize = 32;

impl Agent {
    /// The agent of a segment's job, before any process runs. Times are counted from `began`.
    pub(crate) fn new(segment: Segment, plan: Plan, began: Instant) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let door = Address::of_job(plan.host).listen()?;
        // Without an entry the job is found all the same, but not from a container.
        let name = &segment.plan().name;
        let entry = Index::of_user().and_then(|index| index.enter(plan.host, name).ok());
        let mut agent = Self {
            segment,
            membership: Membership::new(plan),
            began,
            trusted_uid: own_uid(),
            epoll,
            door,
            entry,
            watched: HashMap::new(),
            connections: HashMap::new(),
            names: HashMap::new(),
            keeper: Keeper::default(),
            gone_since: HashMap::new(),
            last_token: DRIVER_TOKENS,
            effects: Vec::new(),
            unannounced: false,
            unwritten_end: false,
            doors_shut_until: None,
        };
        let token = agent.new_token(Watched::Door);
        agent.watch(&agent.door, token, EventFlags::IN)?;
        let token = agent.new_token(Watched::Entry);
        if let Some(entry) = &agent.entry {
            agent.watch(entry.socket(), token, EventFlags::IN)?;
        }
        let begin = agent.membership.begin();
        agent.perform(begin);
        agent.announce();
        Ok(agent)
    }

    pub(crate) const fn segment(&self) -> &Segment {
        &self.segment
    }

    /// Whether the job is not ending.
    pub(crate) fn is_running(&self) -> bool {
        self.membership.is_running()
    }

    /// When [`Input::Tick`] is due, since `began`.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        self.membership.deadline()
    }

    /// When processes that were asked to end are killed, since `began`.
    pub(crate) const fn kill_at(&self) -> Option<Duration> {
        self.membership.kill_at()
    }

    /// The rank that the process of a slot was started as at first; none for guests.
    pub(crate) fn rank_of(&self, slot: u32) -> Option<u32> {
        self.membership.rank_of(Slot(slot))
    }

    /// Watches a descriptor of the driver's. The token is less than 16.
    pub(crate) fn watch(
        &self,
        descriptor: &impl AsFd,
        token: u64,
        what: EventFlags,
    ) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, descriptor, EventData::new_u64(token), what)?)
    }

    /// Changes what a descriptor is watched for.
    pub(crate) fn rewatch(
        &self,
        descriptor: &impl AsFd,
        token: u64,
        what: EventFlags,
    ) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, descriptor, EventData::new_u64(token), what)?)
    }

    /// Tells the membership what happened, and writes what follows. All is announced at once but the
    /// start of a process and the end of the job: starts come in crowds, and wake nobody who waits for
    /// them; for the end see [`Agent::write_end`].
    pub(crate) fn tell(&mut self, input: Input) {
        if matches!(input, Input::Asked { .. } | Input::Tick) {
            self.look_for_vacancy();
        }
        let outputs = self.membership.handle(self.began.elapsed(), input);
        self.perform(outputs);
        if !matches!(input, Input::Started { .. }) && !self.unwritten_end {
            self.announce();
        }
    }

    /// Writes that the job ends, if it does. The driver calls this after each time that it has carried
    /// out the effects: a process that is to end has its signal before its calls fail, so it ends by
    /// the signal and not by what it makes of the failure.
    pub(crate) fn write_end(&mut self) {
        if std::mem::take(&mut self.unwritten_end) {
            self.segment.set_job_state(JobState::Ending);
            self.announce();
        }
    }

    /// Announces what was written and not yet announced.
    pub(crate) fn announce(&mut self) {
        if std::mem::take(&mut self.unannounced) {
            self.segment.announce_membership();
        }
    }

    /// What the driver is to do since it was asked last.
    pub(crate) fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Waits until something happens, or for so long. Returns the tokens of the driver's
    /// descriptors that are ready; the joining socket was served.
    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<Vec<u64>> {
        const EVENTS: usize = 64;
        let now = Instant::now();
        let own = self.own_deadline().map(|at| at.saturating_duration_since(now));
        let timeout = timeout.into_iter().chain(own).min();
        // A time too long for the kernel is as good as none.
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let mut space = [MaybeUninit::<epoll::Event>::uninit(); EVENTS];
        let ready: Vec<u64> = match epoll::wait(&self.epoll, &mut space[..], timeout.as_ref()) {
            Ok((events, _)) => events.iter().map(|event| event.data.u64()).collect(),
            Err(Errno::INTR) => Vec::new(),
            Err(errno) => return Err(errno.into()),
        };
        let (for_driver, own): (Vec<u64>, Vec<u64>) =
            ready.into_iter().partition(|&token| token < DRIVER_TOKENS);
        for token in own {
            self.serve(token);
        }
        self.expire();
        Ok(for_driver)
    }

    /// Whether a process other than that of `slot`, guests not counted, lives.
    pub(crate) fn has_other_processes(&self, slot: u32) -> bool {
        let lives = |other| self.membership.record(Slot(other)).state == State::Alive;
        let is_ours = |other| self.membership.rank_of(Slot(other)).is_some();
        (0..self.segment.plan().slots())
            .any(|other| other != slot && is_ours(other) && lives(other))
    }

    fn perform(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::SetRecord { slot, record } => self.set_record(slot, record),
                Output::SetEnding => self.unwritten_end = true,
                Output::Announce => self.unannounced = true,
                Output::NewView => {}
                Output::Terminate { slot } => self.effects.push(Effect::Terminate(slot.0)),
                Output::Kill { slot } => self.effects.push(Effect::Kill(slot.0)),
                Output::Admit { request, process } => self.admit(request, process),
                Output::Refuse { request, why: Refusal::Full } => self.defer(request),
                Output::Refuse { request, why } => self.refuse(request, verdict_of(why)),
                Output::WillRestart { restart, .. } => {
                    self.effects.push(Effect::WillRestart(restart));
                }
                Output::Start { slot, rank, number } => {
                    self.effects.push(Effect::Start { slot: slot.0, rank, number });
                }
                Output::GuestAborted { slot } => self.effects.push(Effect::GuestAborted(slot.0)),
                Output::Over => self.effects.push(Effect::Over),
            }
        }
    }

    fn set_record(&mut self, slot: Slot, record: Record) {
        let is_next_user = record.incarnation != self.segment.slot_record(slot.0).incarnation;
        let comes = matches!(record.state, State::Alive | State::Reserved);
        if comes && record.incarnation > 1 && is_next_user {
            self.segment.clear_slot(slot.0);
        }
        self.segment.set_slot_record(slot.0, written(record));
        if matches!(record.state, State::Departed | State::Dead) {
            // It is announced next.
            self.gone_since.insert(slot, self.segment.membership_generation().wrapping_add(1));
            self.drop_names(|published| published.process.slot == slot);
            self.keeper.forget(slot);
        }
    }

    fn serve(&mut self, token: u64) {
        match self.watched.get(&token) {
            Some(&door @ (Watched::Door | Watched::Entry | Watched::NameDoor)) => {
                self.accept_all(door, token);
            }
            Some(&Watched::Connection(connection)) => self.serve_connection(connection, token),
            None => {} // closed by what came before it in this round
        }
    }

    fn accept_all(&mut self, watched: Watched, token: u64) {
        let name = matches!(watched, Watched::NameDoor).then_some(token);
        loop {
            let Some(door) = self.door_of(watched, token) else { return };
            match accept_with(door, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(socket) => self.receive(socket, name),
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(Errno::AGAIN) => return,
                // No descriptors or memory: asking again at once would only burn time.
                Err(_) => {
                    self.shut_doors(Some(Instant::now() + SHUT_TIME));
                    return;
                }
            }
        }
    }

    /// The socket that a token stands for, if it stands for one that is listened at.
    fn door_of(&self, watched: Watched, token: u64) -> Option<&OwnedFd> {
        match watched {
            Watched::Door => Some(&self.door),
            Watched::Entry => self.entry.as_ref().map(Entry::socket),
            Watched::NameDoor => self.names.get(&token).map(|name| &name.door),
            Watched::Connection(_) => None,
        }
    }

    /// Takes a new connection in, unless it is a stranger's or one too many.
    fn receive(&mut self, socket: OwnedFd, name: Option<u64>) {
        let Ok((uid, pid)) = peer::credentials(&socket) else { return };
        if uid != self.trusted_uid {
            return;
        }
        let most = self.segment.plan().slots() as usize + CONNECTIONS_BEYOND_SLOTS;
        if self.connections.len() >= most {
            // It is told if it listens, and forgotten in any case.
            let _ = Answer::bare(self.host(), Verdict::TooMany).send(&socket, None);
            return;
        }
        let token = self.next_token();
        self.watched.insert(token, Watched::Connection(token));
        if self.watch(&socket, token, EventFlags::IN).is_err() {
            self.watched.remove(&token);
            return;
        }
        let standing = Standing::Asking { until: Instant::now() + QUESTION_TIME };
        self.connections.insert(token, Connection { socket, pid, name, standing });
    }

    /// Something came from a connection, or its process ended (then `token` is another).
    fn serve_connection(&mut self, connection: u64, token: u64) {
        let Some(found) = self.connections.get(&connection) else { return };
        if !matches!(found.standing, Standing::Asking { .. }) {
            // Who is inside, or waits to be, has nothing to say: it is gone, or broken.
            if token != connection || !peer::is_quiet(&found.socket) {
                self.close(connection);
            }
            return;
        }
        let mut bytes = [0; objects::QUESTION_BYTES + 1];
        match recv(&found.socket, &mut bytes[..], RecvFlags::DONTWAIT) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            Ok((length @ 1.., _)) => {
                let name = found.name;
                if let Some(question) = objects::Question::decode(&bytes[..length], self.host()) {
                    return self.answer_about_object(connection, question);
                }
                match Question::decode(&bytes[..length], self.host()) {
                    Some(question) => self.answer(connection, name, question),
                    None => self.refuse(connection, Verdict::Senseless),
                }
            }
            Ok(_) | Err(_) => self.close(connection),
        }
    }

    fn answer(&mut self, connection: u64, name: Option<u64>, question: Question) {
        let Some(pid) = self.connections.get(&connection).map(|found| found.pid) else { return };
        match (question, name) {
            (Question::Join { wanted }, None) => {
                self.tell(Input::Asked { request: connection, wanted, pid });
            }
            (Question::Join { wanted: None }, Some(_)) => {
                self.tell(Input::Asked { request: connection, wanted: None, pid });
            }
            (Question::Observe, None) => self.show(connection),
            (Question::Found { process }, None) => self.watch_below(connection, process),
            (Question::LookUp, Some(token)) => match self.names.get(&token) {
                Some(name) => {
                    let bare = Answer::bare(self.host(), Verdict::Granted);
                    self.reply(connection, &Answer { published: name.published, ..bare });
                }
                None => self.close(connection), // as if it had come too late
            },
            (Question::Publish { process, context, name }, None) => {
                let answer = self.publish(process, context, name);
                self.reply(connection, &answer);
            }
            (Question::Unpublish { process, name }, None) => {
                let verdict = self.unpublish(process, &name);
                self.refuse(connection, verdict);
            }
            _ => self.refuse(connection, Verdict::Senseless),
        }
    }

    /// Lets somebody look at the segment: gives it a descriptor that cannot be written.
    fn show(&mut self, connection: u64) {
        let shown = self.segment.descriptor().and_then(|file| read_only(file).ok());
        match (shown, self.connections.get(&connection)) {
            (Some(file), Some(found)) => {
                let answer = Answer::bare(self.host(), Verdict::Granted);
                // Who does not take its answer asked in vain.
                let _ = answer.send(&found.socket, Some(file.as_fd()));
                self.close(connection);
            }
            _ => self.refuse(connection, Verdict::TooMany),
        }
    }

    fn answer_about_object(&mut self, connection: u64, question: objects::Question) {
        let process = question.process;
        let is_here = process.slot.0 < self.segment.plan().slots();
        let (answer, memory) = if is_here && self.membership.is_alive(process) {
            let pid = self.membership.record(process.slot).pid;
            self.keeper.answer(question, pid)
        } else {
            (objects::Answer::bare(process.host, Verdict::NotAlive), None)
        };
        if let Some(found) = self.connections.get(&connection) {
            // Who does not take its answer asked in vain.
            let _ = answer.send(&found.socket, memory);
        }
        self.close(connection);
    }

    fn admit(&mut self, connection: u64, process: ProcessId) {
        let Some(found) = self.connections.get(&connection) else { return };
        let mut answer = Answer::bare(self.host(), Verdict::Granted);
        answer.joined = process;
        if let Some(name) = found.name.and_then(|token| self.names.get(&token)) {
            answer.published = name.published;
        }
        let sent = answer.send(&found.socket, self.segment.descriptor());
        let watch = self.watch_peer(connection);
        if let Some(found) = self.connections.get_mut(&connection) {
            found.standing = Standing::Inside { process, watch };
        }
        if sent.is_err() {
            self.close(connection);
        }
    }

    /// Watches the process at the other end of a connection, where the kernel lets us.
    fn watch_peer(&mut self, connection: u64) -> Option<(u64, OwnedFd)> {
        let found = self.connections.get(&connection)?;
        let pidfd = peer::pidfd(&found.socket, found.pid)?;
        let token = self.new_token(Watched::Connection(connection));
        if self.watch(&pidfd, token, EventFlags::IN).is_err() {
            self.watched.remove(&token);
            return None;
        }
        Some((token, pidfd))
    }

    /// Answers with a verdict alone, and closes.
    fn refuse(&mut self, connection: u64, verdict: Verdict) {
        self.reply(connection, &Answer::bare(self.host(), verdict));
    }

    /// Answers, and closes.
    fn reply(&mut self, connection: u64, answer: &Answer) {
        if let Some(found) = self.connections.get(&connection) {
            // Who does not take its answer asked in vain.
            let _ = answer.send(&found.socket, None);
        }
        self.close(connection);
    }

    /// Closes a connection; who was inside by it is gone.
    fn close(&mut self, connection: u64) {
        self.watched.remove(&connection);
        let Some(closed) = self.connections.remove(&connection) else { return };
        let (process, watch) = match closed.standing {
            Standing::Inside { process, watch } => (process, watch),
            Standing::Below { process } => return self.lose(process, closed.pid, &closed.socket),
            Standing::Asking { .. } | Standing::Waiting { .. } => return,
        };
        if let Some((token, _pidfd)) = watch {
            self.watched.remove(&token);
        }
        if self.membership.is_alive(process) {
            let presence = presence_of(self.segment.presence(process.slot.0));
            // Its parent knows how it ended, and is not asked; a goodbye is as good as a zero.
            let status = match presence {
                Presence::Attached | Presence::Aborted => SlotRecord::UNKNOWN_STATUS,
                Presence::NotAttached | Presence::Finalized => 0,
            };
            self.tell(Input::Ended { slot: process.slot, status, presence });
        }
    }

    /// Closes what has not asked in time, and opens the doors again when it is time.
    fn expire(&mut self) {
        let now = Instant::now();
        if self.doors_shut_until.is_some_and(|until| until <= now) {
            self.shut_doors(None);
        }
        let is_late = |connection: &Connection| match connection.standing {
            Standing::Asking { until } => until <= now,
            Standing::Waiting { .. } | Standing::Inside { .. } | Standing::Below { .. } => false,
        };
        let late: Vec<u64> = self
            .connections
            .iter()
            .filter(|(_, connection)| is_late(connection))
            .map(|(&token, _)| token)
            .collect();
        for connection in late {
            self.close(connection);
        }
        self.ask_again();
    }

    /// Shuts the doors until then, or opens them.
    fn shut_doors(&mut self, until: Option<Instant>) {
        let what = if until.is_some() { EventFlags::empty() } else { EventFlags::IN };
        for (&token, watched) in &self.watched {
            let Some(door) = self.door_of(*watched, token) else { continue };
            // It is watched already: this cannot fail for want of anything.
            let _ = self.rewatch(door, token, what);
        }
        self.doors_shut_until = until;
    }

    fn own_deadline(&self) -> Option<Instant> {
        let asking = self.connections.values().filter_map(|connection| match connection.standing {
            Standing::Asking { until } => Some(until),
            Standing::Waiting { .. } => Some(Instant::now() + VACANCY_LOOK),
            Standing::Inside { .. } | Standing::Below { .. } => None,
        });
        asking.chain(self.doors_shut_until).min()
    }

    fn host(&self) -> HostId {
        HostId(self.segment.plan().host)
    }

    fn new_token(&mut self, watched: Watched) -> u64 {
        let token = self.next_token();
        self.watched.insert(token, watched);
        token
    }

    fn next_token(&mut self) -> u64 {
        self.last_token += 1;
        self.last_token
    }
}

/// Another descriptor of a file, for reading alone.
fn read_only(file: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}

/// A process's own word, as the membership takes it.
pub(crate) fn presence_of(presence: landeck_memory::Presence) -> Presence {
    match presence {
        landeck_memory::Presence::NotAttached => Presence::NotAttached,
        landeck_memory::Presence::Attached => Presence::Attached,
        landeck_memory::Presence::Finalized => Presence::Finalized,
        landeck_memory::Presence::Aborted(_) => Presence::Aborted,
    }
}

fn verdict_of(why: Refusal) -> Verdict {
    match why {
        Refusal::Full => Verdict::Full,
        Refusal::NoSuchSlot => Verdict::NoSuchSlot,
        Refusal::Taken => Verdict::Taken,
        Refusal::Ending => Verdict::Ending,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent_thread::{AgentError, serve_in_thread, start_thread};
    use crate::socket::{self, ExchangeError, JoinError, PublishError};
    use landeck_groups::membership::OnFailure;
    use landeck_memory::{SegmentPlan, SlotState};
    use landeck_testing::Watchdog;
    use landeck_wire::Incarnation;
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, connect, send, socket_with};
    use std::sync::atomic::{AtomicU64, Ordering};

    pub(super) const PATIENCE: Duration = Duration::from_secs(100);
    pub(super) const GUESTS: u32 = 2;

    pub(super) fn limited() -> Watchdog {
        Watchdog::start(Duration::from_secs(200))
    }

    pub(super) fn segment(processes: u32) -> Segment {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let host = u64::from(std::process::id()) << 32 | number;
        let plan = SegmentPlan { guests: GUESTS, ..SegmentPlan::new(host, processes) };
        Segment::create(&plan).unwrap()
    }

    pub(super) fn host(segment: &Segment) -> HostId {
        HostId(segment.plan().host)
    }

    pub(super) fn process(segment: &Segment, slot: u32) -> ProcessId {
        ProcessId { host: host(segment), slot: Slot(slot), incarnation: Incarnation(1) }
    }

    pub(super) fn wait_for(segment: &Segment, slot: u32, state: SlotState) {
        let give_up = Instant::now() + PATIENCE;
        while segment.slot_record(slot).state != state {
            assert!(Instant::now() < give_up, "slot {slot}: {:?}", segment.slot_record(slot));
            let moment = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
            let _ = poll(&mut [], Some(&moment));
        }
    }

    /// A connection to the agent of a segment, without a question.
    fn connected(segment: &Segment) -> OwnedFd {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        let name = format!("landeck-{}-{}", own_uid(), host(segment));
        connect(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap()).unwrap();
        socket
    }

    fn wait_readable(socket: &OwnedFd) {
        let limit = Timespec::try_from(PATIENCE).unwrap();
        assert_eq!(poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&limit)), Ok(1));
    }

    #[test]
    fn a_guest_joins_leaves_and_makes_room() {
        let _watchdog = limited();
        let segment = segment(1);
        let _agent = serve_in_thread(&segment, 0, None).unwrap();
        assert_eq!(segment.slot_record(0).pid, std::process::id());
        let joined = socket::join(host(&segment), PATIENCE).unwrap();
        let theirs = Segment::attach(joined.segment).unwrap();
        assert_eq!(theirs.slot_record(1).state, SlotState::Alive);
        theirs.set_presence(1, landeck_memory::Presence::Finalized);
        drop(joined.connection);
        wait_for(&segment, 1, SlotState::Departed);
        let second = socket::join(host(&segment), PATIENCE).unwrap();
        let third = socket::join(host(&segment), PATIENCE).unwrap();
        let slots = [second.process, third.process].map(|p| (p.slot.0, p.incarnation.0));
        assert_eq!(slots, [(2, 1), (1, 2)]);
        let presence = segment.presence(1);
        assert_eq!(presence, landeck_memory::Presence::NotAttached, "nothing is left of the first");
        let refused = socket::join(host(&segment), PATIENCE);
        assert!(matches!(refused, Err(JoinError::Refused(Verdict::Full))), "{refused:?}");
    }

    #[test]
    fn members_take_their_slots_and_the_agent_leaves_last() {
        let _watchdog = limited();
        let segment = segment(3);
        let agent = serve_in_thread(&segment, 0, None).unwrap();
        let join_as = |slot| socket::join_as(host(&segment), Slot(slot), PATIENCE);
        let (first, second) = (join_as(1).unwrap(), join_as(2).unwrap());
        assert_eq!(first.process, process(&segment, 1));
        assert!(matches!(join_as(1), Err(JoinError::Refused(Verdict::Taken))));
        assert!(matches!(join_as(3), Err(JoinError::Refused(Verdict::NoSuchSlot))));
        segment.set_presence(1, landeck_memory::Presence::Attached);
        drop(first.connection);
        wait_for(&segment, 1, SlotState::Dead);
        assert_eq!(segment.slot_record(2).state, SlotState::Alive);
        let finishing = std::thread::spawn(move || agent.finish());
        segment.set_presence(2, landeck_memory::Presence::Finalized);
        assert_eq!(segment.job_state(), JobState::Running, "one is left");
        drop(second.connection);
        finishing.join().unwrap();
        assert_eq!(segment.slot_record(2).state, SlotState::Departed);
        assert_eq!(segment.job_state(), JobState::Ending);
    }

    #[test]
    fn an_agent_that_goes_is_seen_by_who_is_inside() {
        let _watchdog = limited();
        let segment = segment(1);
        let agent = serve_in_thread(&segment, 0, None).unwrap();
        let joined = socket::join(host(&segment), PATIENCE).unwrap();
        drop(agent);
        wait_readable(&joined.connection);
        assert_eq!(segment.job_state(), JobState::Ending);
        // A child that another test starts has the socket until it becomes its program.
        let late = || socket::join(host(&segment), Duration::from_secs(1));
        while !matches!(late(), Err(JoinError::Exchange(ExchangeError::NobodyThere { .. }))) {}
    }

    #[test]
    fn a_launcher_that_goes_is_seen_by_who_is_inside_and_nobody_is_waited_for() {
        let _watchdog = limited();
        let segment = segment(2);
        let (launcher, own) = std::os::unix::net::UnixStream::pair().unwrap();
        let agent = serve_in_thread(&segment, 0, Some(own.into())).unwrap();
        let joined = socket::join_as(host(&segment), Slot(1), PATIENCE).unwrap();
        std::io::Write::write_all(&mut &launcher, b"cmd=set\n").unwrap();
        assert_eq!(segment.job_state(), JobState::Running, "what is said is not the end");
        let generation = segment.membership_generation();
        drop(launcher);
        let give_up = Instant::now() + PATIENCE;
        while segment.membership_generation() == generation {
            assert!(Instant::now() < give_up);
            let moment = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
            let _ = poll(&mut [], Some(&moment));
        }
        assert_eq!(segment.job_state(), JobState::Ending);
        agent.finish();
        drop(joined.connection);
    }

    fn plan(segment: &Segment) -> Plan {
        Plan {
            host: host(segment),
            processes: 1,
            guests: GUESTS,
            on_failure: OnFailure::Notify,
            grace: Duration::ZERO,
        }
    }

    #[test]
    fn a_process_has_its_signal_before_its_calls_fail() {
        let _watchdog = limited();
        for (input, effect) in
            [(Input::End { grace: PATIENCE }, Effect::Terminate(0)), (Input::Kill, Effect::Kill(0))]
        {
            let segment = segment(1);
            let mut agent = Agent::new(segment.clone(), plan(&segment), Instant::now()).unwrap();
            agent.tell(Input::Started { slot: Slot(0), pid: 4711 });
            let generation = segment.membership_generation();
            agent.tell(input);
            let seen = (segment.job_state(), segment.membership_generation());
            assert_eq!(seen, (JobState::Running, generation), "{input:?}: nobody is woken yet");
            assert_eq!(agent.take_effects(), [effect]);
            agent.write_end();
            assert_eq!(segment.job_state(), JobState::Ending);
            assert_ne!(segment.membership_generation(), generation);
        }
    }

    #[test]
    fn another_user_is_let_in_nowhere() {
        let _watchdog = limited();
        let segment = segment(1);
        let mut agent = Agent::new(segment.clone(), plan(&segment), Instant::now()).unwrap();
        agent.trusted_uid = own_uid() + 1;
        let _agent = start_thread(agent, 0, None).unwrap();
        let refused = socket::join(host(&segment), PATIENCE);
        assert!(matches!(refused, Err(JoinError::Exchange(ExchangeError::NobodyThere { .. }))));
    }

    #[test]
    fn a_name_is_one_jobs_at_a_time() {
        let _watchdog = limited();
        let (one, two) = (segment(1), segment(1));
        let _agents = [&one, &two].map(|segment| serve_in_thread(segment, 0, None).unwrap());
        let name = format!("agent test {}", std::process::id());
        socket::publish(process(&one, 0), &name, 5, PATIENCE).unwrap();
        for other in [&one, &two] {
            let taken = socket::publish(process(other, 0), &name, 6, PATIENCE);
            let named =
                matches!(taken, Err(PublishError::InUse { pid, .. }) if pid == std::process::id());
            assert!(named, "{taken:?}");
        }
        let (published, joined) = socket::connect_name(&name, PATIENCE).unwrap();
        assert_eq!((published.process, published.context), (process(&one, 0), 5));
        assert_eq!(joined.process, process(&one, 1));
        socket::unpublish(process(&one, 0), &name, PATIENCE).unwrap();
        socket::publish(process(&two, 0), &name, 6, PATIENCE).unwrap();
        assert_eq!(socket::look_up(&name, PATIENCE).unwrap().context, 6);
    }

    #[test]
    fn only_the_living_publish() {
        let _watchdog = limited();
        let segment = segment(2);
        let _agent = serve_in_thread(&segment, 0, None).unwrap();
        let name = format!("nobody's {}", std::process::id());
        let later = ProcessId { incarnation: Incarnation(2), ..process(&segment, 0) };
        for stranger in [process(&segment, 1), process(&segment, 99), later] {
            let refused = socket::publish(stranger, &name, 5, PATIENCE);
            let not_alive =
                matches!(refused, Err(PublishError::Refused { verdict: Verdict::NotAlive, .. }));
            assert!(not_alive, "{refused:?}");
        }
    }

    #[test]
    fn nonsense_is_answered_and_forgotten() {
        let _watchdog = limited();
        let segment = segment(1);
        let _agent = serve_in_thread(&segment, 0, None).unwrap();
        for nonsense in [&b"hello"[..], &[0xff; objects::QUESTION_BYTES], &[7; 4000]] {
            let socket = connected(&segment);
            send(&socket, nonsense, rustix::net::SendFlags::NOSIGNAL).unwrap();
            let mut answer = [0; 64];
            let (length, _) = recv(&socket, &mut answer[..], RecvFlags::empty()).unwrap();
            assert_eq!((length, answer[4]), (40, Verdict::Senseless as u8));
        }
        let joined = socket::join(host(&segment), PATIENCE).unwrap();
        send(&joined.connection, b"chatter", rustix::net::SendFlags::NOSIGNAL).unwrap();
        wait_for(&segment, 1, SlotState::Departed);
    }

    #[test]
    fn connections_are_bounded_and_room_comes_back() {
        let _watchdog = limited();
        let segment = segment(1);
        let _agent = serve_in_thread(&segment, 0, None).unwrap();
        let most = segment.plan().slots() as usize + CONNECTIONS_BEYOND_SLOTS;
        let idle: Vec<OwnedFd> = (0..most).map(|_| connected(&segment)).collect();
        let refused = socket::join(host(&segment), PATIENCE);
        assert!(matches!(refused, Err(JoinError::Refused(Verdict::TooMany))), "{refused:?}");
        drop(idle);
        let give_up = Instant::now() + PATIENCE;
        while let Err(error) = socket::join(host(&segment), PATIENCE) {
            assert!(Instant::now() < give_up, "{error}");
        }
    }

    #[test]
    fn who_asks_nothing_is_sent_away() {
        let _watchdog = limited();
        let segment = segment(1);
        let _agent = serve_in_thread(&segment, 0, None).unwrap();
        let socket = connected(&segment);
        wait_readable(&socket);
        assert_eq!(recv(&socket, &mut [0; 8][..], RecvFlags::empty()).unwrap().0, 0);
    }

    #[test]
    fn a_local_segment_has_no_agent() {
        let plan = SegmentPlan { heap_bytes_per_process: 0, ..SegmentPlan::new(1, 1) };
        let refused = serve_in_thread(&Segment::local(&plan), 0, None);
        assert!(matches!(refused, Err(AgentError::LocalSegment)));
    }
}
