//! The agent of a job: drives its membership and its door, writes the membership's decisions into the segment, and owns
//! the sockets and the memory that the door refers to.
//!
//! The agent is a role, not a program. The guardian plays it for the jobs of our launcher. If another launcher or none
//! started the processes, the first process plays it in a thread ([`crate::agent_thread`]), and the others are watched
//! through their connections.

use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use landeck_memory::{JobState, Segment};
use landeck_protocols::door::{self, Door, StartAnswer, StartWish, Visitor};
use landeck_protocols::membership::{
    Input, LastPresence, Membership, MembershipPlan, Output, Record, Refusal, State,
};
use landeck_protocols::restarts::Restart;
use landeck_wire::{ProcessId, Slot};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::Timespec;

use self::record::written;
use self::sockets::Sockets;
use crate::address::{Address, own_uid};
use crate::index::Index;

mod record;
mod sockets;
mod vacancy;
mod visits;

/// A thing that the driver of an agent is to do to processes, in the order given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Ask the process of this slot to end.
    Terminate(u32),
    /// Kill the process of this slot.
    Kill(u32),
    /// The process that has just failed will be started again.
    WillRestart(Restart),
    /// Start the process of a rank again, or one that was added.
    Start {
        /// In this slot.
        slot: u32,
        /// The rank that it had at first, or its number.
        rank: u32,
        /// Which new start it is; 0 if it was added.
        number: u32,
    },
    /// There is no slot for a process that was to be added.
    NotAdded {
        /// Its number.
        rank: u32,
        /// The reason.
        why: Refusal,
    },
    /// A process wants to have another one started. [`Agent::answer_start`] answers, once.
    StartAsked {
        /// The number of the question.
        request: u64,
        /// The wish.
        wish: Box<StartWish>,
    },
    /// The process of this slot has said that it takes part.
    Joined(u32),
    /// This guest has ended the job.
    GuestAborted(u32),
    /// A process that joined below the one that was started has ended. The membership does not know of it yet.
    Lost {
        /// The process that ended.
        process: ProcessId,
        /// Its raw wait status, if known.
        status: Option<i32>,
    },
    /// No process of the job is left.
    Over,
}

/// An agent without the processes, which belong to its driver.
pub struct Agent {
    segment: Segment,
    membership: Membership,
    began: Instant,
    epoll: OwnedFd,
    door: Door,
    sockets: Sockets,
    /// The generation of the membership at which the process of a slot ended or left.
    gone_since: HashMap<Slot, u32>,
    effects: Vec<Effect>,
    unannounced: bool,
    /// The job ends, and the segment does not say so yet.
    unwritten_end: bool,
}

/// The first token of the agent; smaller ones are the driver's.
const DRIVER_TOKENS: u64 = 16;
impl Agent {
    /// The agent of a segment's job, before any process runs. Times are counted from `began`.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn new(segment: Segment, plan: MembershipPlan, began: Instant) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let socket = Address::of_job(plan.host).listen()?;
        // Without an entry the job is found all the same, but not from a container.
        let name = &segment.plan().name;
        let entry = Index::of_user().and_then(|index| index.enter(plan.host, name).ok());
        let mut agent = Self {
            segment,
            membership: Membership::new(plan),
            began,
            epoll,
            door: Door::new(plan.host, plan.processes + plan.guests, own_uid()),
            sockets: Sockets::new(socket, entry),
            gone_since: HashMap::new(),
            effects: Vec::new(),
            unannounced: false,
            unwritten_end: false,
        };
        agent.watch_doors()?;
        let begin = agent.membership.begin();
        agent.perform(begin);
        agent.announce();
        Ok(agent)
    }

    /// The segment of the job.
    pub const fn segment(&self) -> &Segment {
        &self.segment
    }

    /// Whether the job runs and is not ending.
    pub fn is_running(&self) -> bool {
        self.membership.is_running()
    }

    /// When [`Input::Tick`] is due, counted from `began`.
    pub fn deadline(&self) -> Option<Duration> {
        self.membership.deadline()
    }

    /// When processes that were asked to end are killed, counted from `began`.
    pub const fn kill_at(&self) -> Option<Duration> {
        self.membership.kill_at()
    }

    /// The rank as which the process of a slot was first started; `None` for guests.
    pub fn rank_of(&self, slot: u32) -> Option<u32> {
        self.membership.rank_of(Slot(slot))
    }

    /// Watches a descriptor of the driver's. The token must be less than 16.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn watch(&self, descriptor: &impl AsFd, token: u64, what: EventFlags) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, descriptor, EventData::new_u64(token), what)?)
    }

    /// Changes the events for which a descriptor is watched.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn rewatch(&self, descriptor: &impl AsFd, token: u64, what: EventFlags) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, descriptor, EventData::new_u64(token), what)?)
    }

    /// Tells the membership what happened and writes what follows. All of it is announced at once except the start of a
    /// process, its goodbye and the end of the job. Many processes start together, and nobody waits for a start. Many
    /// leave together, so that is announced once behind all that have come. For the end see [`Agent::write_end`].
    pub fn tell(&mut self, input: Input) {
        let now = self.began.elapsed();
        if self.membership.gives_away(now, &input) {
            self.look_for_vacancy();
        }
        let outputs = self.membership.handle(now, input);
        self.perform(outputs);
        let may_wait = matches!(input, Input::Started { .. } | Input::Left { .. });
        if !may_wait && !self.unwritten_end {
            self.announce();
        }
    }

    /// Writes that the job ends, if it does. The driver calls this each time after it has carried out the effects. A
    /// process that is to end thus gets its signal before its calls fail, so it ends by the signal and not by its own
    /// reaction to the failure.
    pub fn write_end(&mut self) {
        if std::mem::take(&mut self.unwritten_end) {
            self.segment.set_job_state(JobState::Ending);
            self.announce();
        }
    }

    /// Announces what was written and not yet announced.
    pub fn announce(&mut self) {
        if std::mem::take(&mut self.unannounced) {
            self.segment.announce_membership();
        }
    }

    /// Takes the effects that the driver is to carry out since its last call.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Answers a process that wanted to have another one started. It may have gone.
    pub fn answer_start(&mut self, request: u64, answer: &StartAnswer) {
        self.tell_door(door::Input::Started { visitor: Visitor(request), answer });
    }

    /// Whether a slot is not given away only because other processes may need what is in it. They look at that when the
    /// membership is announced again, which this does if asked.
    pub fn is_slot_coming(&mut self, announces: bool) -> bool {
        let is_coming = self.membership.keeps_any();
        self.unannounced |= is_coming && announces;
        is_coming
    }

    /// Waits until something happens or the timeout passes. Returns the tokens of the driver's descriptors that are
    /// ready; the joining socket has been served.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<Vec<u64>> {
        const EVENTS: usize = 64;
        let now = self.began.elapsed();
        let own = self.own_deadline(now).map(|at| at.saturating_sub(now));
        let timeout = timeout.into_iter().chain(own).min();
        // A time too long for the kernel counts as no limit.
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
        if !self.unwritten_end {
            self.announce();
        }
        self.open_doors();
        self.tell_door(door::Input::Tick);
        Ok(for_driver)
    }

    /// Whether this incarnation of the process lives.
    pub fn is_alive(&self, process: ProcessId) -> bool {
        self.membership.is_alive(process)
    }

    /// Whether another process than that of `slot` lives; guests do not count.
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
                Output::Admit { request, process } => {
                    self.tell_door(door::Input::Admitted { visitor: Visitor(request), process });
                }
                Output::Refuse { request, why } => {
                    self.tell_door(door::Input::Refused { visitor: Visitor(request), why });
                }
                Output::WillRestart { restart, .. } => {
                    self.effects.push(Effect::WillRestart(restart));
                }
                Output::Start { slot, rank, number } => {
                    self.effects.push(Effect::Start { slot: slot.0, rank, number });
                }
                Output::NotAdded { rank, why } => self.effects.push(Effect::NotAdded { rank, why }),
                Output::GuestAborted { slot } => self.effects.push(Effect::GuestAborted(slot.0)),
                Output::Over => self.effects.push(Effect::Over),
            }
        }
    }

    fn set_record(&mut self, slot: Slot, record: Record) {
        let before = self.segment.slot_record(slot.0);
        let is_next_user = written(record).tenancy() != before.tenancy();
        let comes = matches!(record.state, State::Alive | State::Reserved);
        if comes && record.incarnation > 1 && is_next_user {
            self.segment.clear_slot(slot.0);
        }
        self.segment.set_slot_record(slot.0, written(record));
        if matches!(record.state, State::Departed | State::Dead) {
            // The announcement that follows has the next generation.
            self.gone_since.insert(slot, self.segment.membership_generation().wrapping_add(1));
        }
        if matches!(record.state, State::Left | State::Departed | State::Dead) {
            self.tell_door(door::Input::Ended { process: self.membership.process(slot) });
        }
    }
}

/// Translates the word that a process wrote about itself into the membership's type.
pub fn presence_of(presence: landeck_memory::Presence) -> LastPresence {
    match presence {
        landeck_memory::Presence::NotAttached => LastPresence::NotAttached,
        landeck_memory::Presence::Attached | landeck_memory::Presence::Helping => {
            LastPresence::Attached
        }
        landeck_memory::Presence::Finalized => LastPresence::Finalized,
        landeck_memory::Presence::Aborted(_) => LastPresence::Aborted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent_thread::{AgentError, serve_in_thread, start_thread};
    use crate::socket::{self, ExchangeError, JoinError, PublishError, Verdict};
    use landeck_memory::{SegmentPlan, SlotState};
    use landeck_protocols::door::{Answer, Reply};
    use landeck_protocols::membership::OnFailure;
    use landeck_testing::Watchdog;
    use landeck_wire::{ControlMessage, Incarnation, SegmentId};
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::net::{
        AddressFamily, RecvFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv, send,
        socket_with,
    };
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

    pub(super) fn host(segment: &Segment) -> SegmentId {
        SegmentId(segment.plan().host)
    }

    pub(super) fn process(segment: &Segment, slot: u32) -> ProcessId {
        ProcessId { segment: host(segment), slot: Slot(slot), incarnation: Incarnation(1) }
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
    fn a_process_that_has_left_says_so_and_may_come_back() {
        let _watchdog = limited();
        let segment = segment(2);
        let _agent = serve_in_thread(&segment, 0, None).unwrap();
        let joined = socket::join_as(host(&segment), Slot(1), PATIENCE).unwrap();
        segment.set_presence(1, landeck_memory::Presence::Finalized);
        socket::tell_presence(process(&segment, 1), PATIENCE);
        wait_for(&segment, 1, SlotState::Left);
        let generation = segment.membership_generation();
        segment.set_presence(1, landeck_memory::Presence::Attached);
        socket::say_presence(process(&segment, 1), PATIENCE).unwrap();
        let record = segment.slot_record(1);
        assert_eq!((record.state, record.incarnation), (SlotState::Alive, 2));
        assert_eq!((record.tenancy(), segment.rank_of(1)), (1, Some(1)));
        assert_ne!(
            segment.membership_generation(),
            generation,
            "it is announced before it is answered"
        );
        let presence = segment.presence(1);
        assert_eq!(presence, landeck_memory::Presence::Attached, "its memory is what it was");
        let refused = socket::say_presence(process(&segment, 1), PATIENCE);
        let not_alive = matches!(refused, Err(JoinError::Refused(Verdict::NotAlive)));
        assert!(not_alive, "the one that it was is over: {refused:?}");
        drop(joined.connection);
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
        // A child that another test is starting holds the socket until it executes its program.
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

    fn plan(segment: &Segment) -> MembershipPlan {
        MembershipPlan {
            host: host(segment),
            processes: 1,
            guests: GUESTS,
            keeps_ranks: false,
            is_held: false,
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
        agent.door = Door::new(host(&segment), 1 + GUESTS, own_uid() + 1);
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
        for nonsense in [&b"hello"[..], &[0xff; door::Question::BYTES_MAX], &[7; 4000]] {
            let socket = connected(&segment);
            send(&socket, nonsense, rustix::net::SendFlags::NOSIGNAL).unwrap();
            let mut answer = [0; 64];
            let (length, _) = recv(&socket, &mut answer[..], RecvFlags::empty()).unwrap();
            let senseless = Reply::Plain(Answer::bare(Verdict::Senseless));
            assert_eq!(Reply::decode(&answer[..length]), Ok(senseless));
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
        let most = segment.plan().slots() as usize + door::VISITORS_BEYOND_SLOTS;
        // The agent sends visitors away that ask nothing for two seconds, and a busy machine may take longer here.
        let give_up = Instant::now() + PATIENCE;
        let idle = loop {
            let idle: Vec<OwnedFd> = (0..most).map(|_| connected(&segment)).collect();
            let refused = socket::join(host(&segment), PATIENCE);
            if matches!(refused, Err(JoinError::Refused(Verdict::TooMany))) {
                break idle;
            }
            assert!(Instant::now() < give_up, "{refused:?}");
        };
        drop(idle);
        while let Err(error) = socket::join(host(&segment), PATIENCE) {
            assert!(Instant::now() < give_up, "{error}");
        }
    }

    #[test]
    fn a_process_that_asks_nothing_is_sent_away() {
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
