//! A run of several jobs of a machine to which hosts are added, with hosts that die and return, hosts and founders that
//! refuse, guests that come anywhere, parts that end, and jobs that end at any moment.
//!
//! The decisions are those of [`Growth`] and the founder's book is [`Booking`]. Messages of two hosts arrive in order; those of
//! the bulk class have an order of their own, and other messages overtake them. What is on its way to a host that dies, or
//! from one that is known to be lost, is lost with it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use landeck_protocols::hosts::{
    BookedShare, Booking, BookingOrder, BookingWish, Growth, GrowthOutput, NewHost, Prospect,
};
use landeck_wire::{HostNumber, Incarnation, JobId, ProcessId, SegmentId, Slot};

use super::draw::Draw;
use super::event_log::{EventLog, ProtocolFailure};
use super::growth_parts::{
    Part, PartState, PartsOfJob, all_guests_are_known, guest_can_come, knows_earlier_guests,
    places_agree,
};
use super::host_checks::{Check, ensure};

const FOUNDER: HostNumber = HostNumber::ARBITER;
const HOSTS: u16 = 7;
const JOBS: u64 = 3;
/// The time in which something is wanted and something fails.
const FAULTY: Duration = Duration::from_secs(6);

/// The result of a run in which all properties held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GrowthReport {
    /// The hosts that were added.
    pub(crate) added: usize,
    /// The wishes that were refused.
    pub(crate) refused: usize,
    /// The hosts that were given up on their way.
    pub(crate) given_up: usize,
    /// The guests that came.
    pub(crate) guests: u32,
    /// A number that depends on everything that happened.
    pub(crate) hash: u64,
}

#[derive(Clone, Debug)]
enum Message {
    Word(Word),
    Wanted(NewHost),
    Allowed(NewHost, Result<(), String>),
    GivenUp(HostNumber),
    Came(ProcessId),
    JobOver,
    Check(Vec<NewHost>),
    Checked(Result<(), String>),
    Prepare,
    Prepared(Result<(), String>),
    AddHost(NewHost),
    HostAdded(SegmentId, Vec<ProcessId>),
    Meet(Vec<ProcessId>),
    Start,
    NotStarted,
    Dismiss,
    End,
    Release,
    AllEnded,
    Over,
    PartWanted,
    PartRefused,
}

#[derive(Clone, Copy, Debug)]
enum Word {
    Lost(HostNumber),
    Joined(HostNumber, u32),
    Came(ProcessId),
    JobOver,
}

/// Two hosts in one direction, and whether messages between them are bulk.
type Channel = (HostNumber, HostNumber, bool);

#[derive(Clone, Debug)]
enum Event {
    Begins(JobId),
    Arrives(Channel),
    /// The launcher wants a host.
    Want(JobId, HostNumber),
    /// A process of a host wants to join.
    Visit(JobId, HostNumber),
    /// A daemon looks whether those who want to join can do so.
    LookAtVisitors(HostNumber),
    GuestComes(JobId, HostNumber),
    /// The guardian of a part ends.
    Ends(JobId, HostNumber, SegmentId),
    /// Nothing more comes from a part.
    Over(JobId, HostNumber, SegmentId),
    /// A turn of the conductor's loop is over.
    Turn(JobId),
    JobEnds(JobId),
    Drain(HostNumber),
    Dies(HostNumber),
    IsLost(HostNumber),
    Returns(HostNumber),
}

/// A host. Its incarnation counts from 0.
#[derive(Debug, Default)]
struct Host {
    incarnation: u32,
    is_up: bool,
    /// The hosts that take part, with their incarnations.
    known: BTreeMap<HostNumber, u32>,
    parts: BTreeMap<JobId, Part>,
    /// The jobs that processes here wait to join.
    visited: BTreeSet<JobId>,
}

/// A job, as its conductor has it.
#[derive(Debug)]
struct Job {
    conductor: HostNumber,
    growth: Growth,
    hosts: Vec<NewHost>,
    /// The hosts with a part.
    awaited: BTreeSet<HostNumber>,
    /// Of these, the ones of which one of the two last events has come.
    ended: BTreeSet<HostNumber>,
    over: BTreeSet<HostNumber>,
    /// The hosts that were added and have a part.
    added: BTreeSet<HostNumber>,
    /// The hosts that are wanted.
    open: BTreeSet<HostNumber>,
    /// No host may be added any more.
    is_closed: bool,
    /// The conductor is done, or its host is dead.
    is_over: bool,
}

struct World {
    draw: Draw,
    events: BTreeMap<(Duration, u64), Event>,
    planned: u64,
    now: Duration,
    log: EventLog,
    has_founder: bool,
    hosts: BTreeMap<HostNumber, Host>,
    jobs: BTreeMap<JobId, Job>,
    book: Booking,
    /// The hosts that the founder has allowed, and that were not given up.
    allowed: BTreeSet<(JobId, HostNumber, SegmentId)>,
    channels: BTreeMap<Channel, VecDeque<(JobId, [u32; 2], Message)>>,
    last_arrival: BTreeMap<Channel, Duration>,
    segments: u64,
    report: GrowthReport,
}

/// Runs jobs to which hosts are added.
///
/// # Errors
/// [`ProtocolFailure`] if a property did not hold.
pub(crate) fn run(seed: u64) -> Result<GrowthReport, ProtocolFailure> {
    let mut world = World::new(seed);
    match world.run() {
        Err((property, text)) => Err(world.log.failure(seed, property, text)),
        Ok(()) => Ok(GrowthReport { hash: world.log.hash(), ..world.report }),
    }
}

impl World {
    fn new(seed: u64) -> Self {
        let mut draw = Draw::new(seed);
        let has_founder = draw.permille(850);
        let mut world = Self {
            draw,
            events: BTreeMap::new(),
            planned: 0,
            now: Duration::ZERO,
            log: EventLog::default(),
            has_founder,
            hosts: BTreeMap::new(),
            jobs: BTreeMap::new(),
            book: Booking::default(),
            allowed: BTreeSet::new(),
            channels: BTreeMap::new(),
            last_arrival: BTreeMap::new(),
            segments: 0,
            report: GrowthReport::default(),
        };
        let all: BTreeMap<HostNumber, u32> = (0..HOSTS).map(|host| (HostNumber(host), 0)).collect();
        for &host in all.keys() {
            let known = all.clone();
            world.hosts.insert(host, Host { known, is_up: true, ..Host::default() });
            world.book.add_host(host, 2);
        }
        world.plan_run();
        world
    }

    fn plan_run(&mut self) {
        let jobs = if self.has_founder { JOBS } else { 1 };
        for job in (0..jobs).map(JobId) {
            let first = if job.0 == 0 { Duration::from_millis(1) } else { FAULTY / 2 };
            self.plan(first, Event::Begins(job));
            for _ in 0..10 {
                let [one, two, three] = [(); 3].map(|()| self.any_host());
                self.plan(FAULTY, Event::Want(job, one));
                self.plan(FAULTY, Event::Visit(job, two));
                self.plan(FAULTY, Event::GuestComes(job, three));
            }
            if self.draw.permille(300) {
                self.plan(FAULTY, Event::JobEnds(job));
            }
        }
        for _ in 0..self.draw.below(5) {
            let host = HostNumber(1 + self.draw.below(u64::from(HOSTS) - 1) as u16);
            self.plan(FAULTY, Event::Dies(host));
        }
        if self.draw.permille(300) {
            let host = self.any_host();
            self.plan(FAULTY, Event::Drain(host));
        }
    }

    fn any_host(&mut self) -> HostNumber {
        HostNumber(self.draw.below(HOSTS.into()) as u16)
    }

    /// Plans an event at some moment before `most` from now.
    fn plan(&mut self, most: Duration, event: Event) {
        let at = self.now + self.draw.time(Duration::from_micros(1), most);
        self.plan_at(at, event);
    }

    fn plan_at(&mut self, at: Duration, event: Event) {
        self.planned += 1;
        self.events.insert((at, self.planned), event);
    }

    fn run(&mut self) -> Check {
        self.run_events()?;
        self.at_rest()?;
        let living: Vec<JobId> = self.living().collect();
        for job in living {
            self.plan(FAULTY, Event::JobEnds(job));
        }
        self.run_events()?;
        self.at_end()
    }

    fn run_events(&mut self) -> Check {
        while let Some(((at, _), event)) = self.events.pop_first() {
            self.now = at;
            if !matches!(event, Event::Arrives(_) | Event::Turn(_)) {
                self.log.note(at, format!("{event:?}"));
            }
            self.happen(event)?;
        }
        Ok(())
    }

    fn happen(&mut self, event: Event) -> Check {
        match event {
            Event::Begins(job) => self.begin(job),
            Event::Arrives(channel) => return self.arrive(channel),
            Event::Want(job, host) => return self.want(job, host, false),
            Event::Visit(job, host) => self.visit(job, host),
            Event::LookAtVisitors(host) => self.let_visitors_in(host),
            Event::GuestComes(job, host) => return self.guest_comes(job, host),
            Event::Ends(job, host, segment) => self.part_ends(job, host, segment),
            Event::Over(job, host, segment) => self.part_is_over(job, host, segment),
            Event::Turn(job) => return self.turn(job),
            Event::JobEnds(job) => return self.end(job),
            Event::Drain(host) => self.book.close_host(host),
            Event::Dies(host) => self.die(host),
            Event::IsLost(host) => return self.call_lost(host),
            Event::Returns(host) => self.come_back(host),
        }
        Ok(())
    }

    /// The jobs whose conductors live.
    fn living(&self) -> impl Iterator<Item = JobId> {
        self.jobs.iter().filter(|(_, it)| !it.is_over).map(|(job, _)| *job)
    }

    /// The parts of a job on the hosts that live.
    fn parts(&self, job: JobId) -> PartsOfJob<'_> {
        let up = self.hosts.iter().filter(|(_, host)| host.is_up);
        up.filter_map(|(host, it)| Some((*host, it.parts.get(&job)?))).collect()
    }

    fn new_segment(&mut self) -> SegmentId {
        self.segments += 1;
        SegmentId(self.segments)
    }

    /// A job begins on the hosts that are booked for it.
    fn begin(&mut self, job: JobId) {
        let conductor = if self.has_founder { self.any_host() } else { FOUNDER };
        if !self.hosts[&conductor].is_up {
            return;
        }
        let wish = BookingWish {
            processes: Some(2 + self.draw.below(2) as u32),
            order: BookingOrder::Spread,
            is_exclusive: job.0 > 0 && self.draw.permille(300),
            waits: false,
        };
        let Ok(shares) = self.book.book(job, conductor, wish) else { return };
        let knows = |host: &HostNumber, other: &HostNumber| {
            let Host { incarnation, is_up, .. } = &self.hosts[other];
            *is_up && self.hosts[host].known.get(other) == Some(incarnation)
        };
        let is_there = |host| knows(&conductor, host) && knows(host, &conductor);
        if !shares.iter().all(|share| is_there(&share.host)) {
            return self.book.release(job);
        }
        let hosts: Vec<NewHost> = shares
            .iter()
            .map(|share| NewHost { number: share.host, segment: self.new_segment() })
            .collect();
        for &NewHost { number, segment } in &hosts {
            let part = Part::checked(hosts.clone(), segment, conductor);
            let part = Part { state: PartState::Begun, is_held: false, ..part };
            self.host(number).parts.insert(job, part);
            if self.draw.permille(250) {
                self.plan(FAULTY, Event::Ends(job, number, segment));
            }
        }
        let awaited = hosts.iter().map(|host| host.number).collect();
        let whole = Job {
            conductor,
            growth: Growth::new(self.has_founder),
            hosts,
            awaited,
            ended: BTreeSet::new(),
            over: BTreeSet::new(),
            added: BTreeSet::new(),
            open: BTreeSet::new(),
            is_closed: false,
            is_over: false,
        };
        self.jobs.insert(job, whole);
    }

    fn host(&mut self, host: HostNumber) -> &mut Host {
        self.hosts.entry(host).or_default()
    }

    fn send(&mut self, from: HostNumber, to: HostNumber, job: JobId, message: Message) {
        let is_bulk = matches!(message, Message::Over);
        // A trunk leads to the incarnation that the sender knows, and to none once that is lost.
        let Some(&known) = self.hosts[&from].known.get(&to) else { return };
        let incarnations = [self.hosts[&from].incarnation, known];
        // A trunk breaks now and then, and what it carried comes over the next one.
        let longest = self.draw.pick(&[1, 1, 20, 200, 200, 1_000]);
        let wait = match from == to {
            true => Duration::from_micros(20),
            false => self.draw.time(Duration::from_micros(50), Duration::from_millis(longest)),
        };
        let channel = (from, to, is_bulk);
        let before = self.last_arrival.get(&channel).copied().unwrap_or_default();
        let ahead = self.last_arrival.get(&(from, to, false)).copied().unwrap_or_default();
        // Bulk waits for all that was sent before it, unless the trunk has broken.
        let ahead = if self.draw.permille(900) { ahead } else { Duration::ZERO };
        let at = before.max(ahead).max(self.now + wait);
        self.last_arrival.insert(channel, at);
        self.channels.entry(channel).or_default().push_back((job, incarnations, message));
        self.plan_at(at, Event::Arrives(channel));
    }

    /// Sends a word to all hosts that take part. The founder has applied it.
    fn give_word(&mut self, job: JobId, word: Word) {
        let others: Vec<HostNumber> = self.hosts[&FOUNDER].known.keys().copied().collect();
        for host in others.into_iter().filter(|host| *host != FOUNDER) {
            self.send(FOUNDER, host, job, Message::Word(word));
        }
    }

    /// The first message of a channel arrives, unless one of the two hosts is gone.
    fn arrive(&mut self, channel: Channel) -> Check {
        let (from, to, _) = channel;
        let Some((job, [its, own], message)) =
            self.channels.get_mut(&channel).and_then(VecDeque::pop_front)
        else {
            return Ok(());
        };
        let host = &self.hosts[&to];
        let known = host.known.get(&from).copied();
        let is_new = self.hosts[&from].incarnation == its && known.is_none_or(|known| known < its);
        if host.is_up && host.incarnation == own && is_new && self.hosts[&from].is_up {
            // The trunk opens behind the word on the host.
            let queue = self.channels.entry(channel).or_default();
            queue.push_front((job, [its, own], message));
            self.plan_at(self.now + Duration::from_millis(50), Event::Arrives(channel));
            return Ok(());
        }
        if !host.is_up || host.incarnation != own || known != Some(its) {
            return Ok(());
        }
        self.log.note(self.now, format!("{from:?} to {to:?}, {job}: {message:?}"));
        match message {
            Message::Wanted(_) | Message::GivenUp(_) | Message::Came(_) | Message::JobOver => {
                self.at_founder(from, job, message);
                Ok(())
            }
            Message::Word(word) => {
                self.apply(to, job, word);
                match word {
                    Word::Lost(lost) => self.lose(to, lost),
                    _ => Ok(()),
                }
            }
            Message::Check(_)
            | Message::Prepare
            | Message::AddHost(_)
            | Message::Meet(_)
            | Message::Start
            | Message::Dismiss
            | Message::End
            | Message::Release
            | Message::PartRefused => self.at_host(from, to, job, message),
            _ => self.at_conductor(from, to, job, message),
        }
    }

    /// The founder takes a message.
    fn at_founder(&mut self, from: HostNumber, job: JobId, message: Message) {
        match message {
            Message::Wanted(host) => {
                let outcome = self.book.add_share(job, host.number, false);
                if outcome.is_ok() {
                    self.allowed.insert((job, host.number, host.segment));
                }
                let outcome = outcome.map_err(|_| "it is not free".to_owned());
                self.send(FOUNDER, from, job, Message::Allowed(host, outcome));
            }
            Message::GivenUp(host) => {
                self.book.remove_share(job, host);
                self.allowed.retain(|(of, number, _)| (*of, *number) != (job, host));
            }
            Message::Came(guest) => {
                self.apply(FOUNDER, job, Word::Came(guest));
                self.give_word(job, Word::Came(guest));
            }
            _ => self.forget_job(job),
        }
    }

    fn forget_job(&mut self, job: JobId) {
        self.book.release(job);
        self.apply(FOUNDER, job, Word::JobOver);
        self.give_word(job, Word::JobOver);
    }

    /// A host applies a word.
    fn apply(&mut self, to: HostNumber, job: JobId, word: Word) {
        let host = self.host(to);
        match word {
            Word::Lost(lost) => {
                host.known.remove(&lost);
                let its = host.parts.iter().filter(|(_, part)| part.conductor == lost);
                let its: Vec<(JobId, SegmentId)> =
                    its.map(|(job, part)| (*job, part.segment)).collect();
                its.into_iter().for_each(|(job, segment)| self.part_ends(job, to, segment));
            }
            Word::Joined(joined, incarnation) => drop(host.known.insert(joined, incarnation)),
            Word::Came(guest) => {
                if let Some(part) = host.parts.get_mut(&job) {
                    part.meet(guest);
                }
            }
            Word::JobOver => drop(host.visited.remove(&job)),
        }
    }

    /// A host takes an order of a conductor.
    fn at_host(&mut self, from: HostNumber, own: HostNumber, job: JobId, order: Message) -> Check {
        let refuses = self.draw.permille(60).then(|| "not possible".to_owned()).map_or(Ok(()), Err);
        let host = self.host(own);
        let part = host.parts.get_mut(&job).filter(|part| part.conductor == from);
        match (order, part) {
            (Message::Check(hosts), None) => {
                if let (Ok(()), Some(last)) = (&refuses, hosts.last().copied()) {
                    host.parts.insert(job, Part::checked(hosts, last.segment, from));
                }
                self.send(own, from, job, Message::Checked(refuses));
            }
            (Message::Prepare, Some(part)) if part.state == PartState::Checked => {
                part.state = PartState::Made;
                if refuses.is_err() {
                    host.parts.remove(&job);
                }
                self.send(own, from, job, Message::Prepared(refuses));
            }
            (Message::AddHost(new), Some(part)) if part.state != PartState::Checked => {
                part.hosts.push(new);
                let guests: Vec<ProcessId> = part.here.iter().copied().collect();
                if let Some(added) = self.host(new.number).parts.get_mut(&job) {
                    added.before.extend(guests.iter().map(|guest| (*guest, own)));
                }
                self.send(own, from, job, Message::HostAdded(new.segment, guests));
                return self.check_places(job);
            }
            (Message::Meet(guests), Some(part)) => {
                guests.into_iter().for_each(|guest| part.meet(guest));
            }
            (Message::Start, Some(part)) if part.state == PartState::Made => {
                if refuses.is_err() {
                    self.send(own, from, job, Message::NotStarted);
                    return Ok(());
                }
                part.state = PartState::Begun;
                self.let_visitors_in(own);
                self.plan(Duration::from_millis(100), Event::GuestComes(job, own));
                knows_earlier_guests(&self.parts(job), own)?;
                return self.check_places(job);
            }
            (Message::Dismiss, Some(_)) => drop(host.parts.remove(&job)),
            (Message::End | Message::Release, Some(part)) => {
                part.is_held = false;
                let event = Event::Ends(job, own, part.segment);
                self.plan(Duration::from_millis(500), event);
            }
            (Message::PartRefused, _) => drop(host.visited.remove(&job)),
            _ => {}
        }
        Ok(())
    }

    fn check_places(&self, job: JobId) -> Check {
        let living = self.jobs.get(&job).filter(|it| !it.is_over);
        places_agree(&self.parts(job), living.map(|it| it.hosts.as_slice()))
    }

    /// The guardian of a part ends, and a while later nothing more comes from it.
    fn part_ends(&mut self, job: JobId, host: HostNumber, segment: SegmentId) {
        let part = self.host(host).parts.get_mut(&job);
        let Some(part) = part.filter(|part| part.segment == segment) else { return };
        match part.state {
            PartState::Begun => {
                part.state = PartState::Ended;
                let conductor = part.conductor;
                self.send(host, conductor, job, Message::AllEnded);
                self.plan(Duration::from_millis(300), Event::Over(job, host, segment));
            }
            // It ends with its conductor, and has begun nothing.
            PartState::Checked | PartState::Made => {
                let conductor = part.conductor;
                if !self.hosts[&host].known.contains_key(&conductor) {
                    self.host(host).parts.remove(&job);
                }
            }
            PartState::Ended => {}
        }
    }

    fn part_is_over(&mut self, job: JobId, host: HostNumber, segment: SegmentId) {
        let part = self.host(host).parts.get(&job).filter(|part| part.segment == segment);
        let Some(conductor) = part.map(|part| part.conductor) else { return };
        self.host(host).parts.remove(&job);
        self.send(host, conductor, job, Message::Over);
        if self.hosts[&host].visited.contains(&job) {
            self.send(host, conductor, job, Message::PartWanted);
        }
    }

    /// A process wants to join. Its daemon has learned from the founder which job is meant.
    fn visit(&mut self, job: JobId, host: HostNumber) {
        let Some(it) = self.jobs.get(&job).filter(|it| !it.is_over) else { return };
        let conductor = it.conductor;
        // The founder's answer comes behind the words on the conductor's host.
        let incarnation = self.hosts[&conductor].incarnation;
        let knows_conductor = self.hosts[&host].known.get(&conductor) == Some(&incarnation);
        if self.hosts[&host].is_up && knows_conductor {
            self.host(host).visited.insert(job);
            self.send(host, conductor, job, Message::PartWanted);
            self.plan(Duration::from_millis(1), Event::LookAtVisitors(host));
        }
    }

    fn let_visitors_in(&mut self, host: HostNumber) {
        let Host { visited, parts, .. } = self.host(host);
        visited.retain(|job| !parts.get(job).is_some_and(Part::has_begun));
    }

    fn guest_comes(&mut self, job: JobId, host: HostNumber) -> Check {
        let slot = Slot(self.report.guests);
        let is_up = self.hosts[&host].is_up;
        let part = self.host(host).parts.get_mut(&job).filter(|part| is_up && part.has_begun());
        let Some(part) = part else { return Ok(()) };
        let guest = ProcessId { segment: part.segment, slot, incarnation: Incarnation(1) };
        part.here.insert(guest);
        self.report.guests += 1;
        self.send(host, FOUNDER, job, Message::Came(guest));
        guest_can_come(&self.parts(job), host, guest)
    }

    fn die(&mut self, host: HostNumber) {
        if !self.hosts[&host].is_up {
            return;
        }
        let it = self.host(host);
        (it.is_up, it.parts, it.visited) = (false, BTreeMap::new(), BTreeSet::new());
        self.jobs.values_mut().filter(|it| it.conductor == host).for_each(|it| it.is_over = true);
        self.plan(Duration::from_secs(1), Event::IsLost(host));
    }

    /// The founder calls a host lost. The jobs that it conducts learn of that before the word.
    fn call_lost(&mut self, host: HostNumber) -> Check {
        self.lose(FOUNDER, host)?;
        self.apply(FOUNDER, JobId(0), Word::Lost(host));
        self.book.remove_host(host);
        self.give_word(JobId(0), Word::Lost(host));
        let its = self.jobs.iter().filter(|(_, it)| it.conductor == host);
        let its: Vec<JobId> = its.map(|(job, _)| *job).collect();
        its.into_iter().for_each(|job| self.forget_job(job));
        if self.draw.permille(700) {
            let longest = self.draw.pick(&[20, 1_000]);
            self.plan(Duration::from_millis(longest), Event::Returns(host));
        }
        Ok(())
    }

    /// The next incarnation of a host joins.
    fn come_back(&mut self, host: HostNumber) {
        let incarnation = self.hosts[&host].incarnation + 1;
        self.give_word(JobId(0), Word::Joined(host, incarnation));
        self.apply(FOUNDER, JobId(0), Word::Joined(host, incarnation));
        let known = self.hosts[&FOUNDER].known.clone();
        self.hosts.insert(host, Host { incarnation, is_up: true, known, ..Host::default() });
        self.book.add_host(host, 2);
    }

    /// The conductors on a host learn that another one is lost.
    fn lose(&mut self, on: HostNumber, lost: HostNumber) -> Check {
        let conducted: Vec<JobId> =
            self.living().filter(|job| self.jobs[job].conductor == on).collect();
        for job in conducted {
            self.lose_from(job, lost, "lost")?;
        }
        Ok(())
    }

    fn lose_from(&mut self, job: JobId, host: HostNumber, why: &str) -> Check {
        let Some(it) = self.jobs.get_mut(&job) else { return Ok(()) };
        for set in [&mut it.ended, &mut it.over, &mut it.awaited, &mut it.added] {
            set.remove(&host);
        }
        it.growth.lost(host, why);
        self.grow(job)
    }

    /// A job's conductor takes a message.
    fn at_conductor(
        &mut self,
        from: HostNumber,
        own: HostNumber,
        job: JobId,
        message: Message,
    ) -> Check {
        let Some(it) = self.jobs.get_mut(&job).filter(|it| !it.is_over && it.conductor == own)
        else {
            return Ok(());
        };
        match message {
            Message::Allowed(host, outcome) => it.growth.allowed(host, outcome),
            Message::Checked(answer) | Message::Prepared(answer) => {
                it.growth.answered(from, answer, &it.awaited);
            }
            Message::HostAdded(segment, guests) => {
                let guests = guests.into_iter().map(|guest| (guest, true)).collect();
                it.growth.told(from, segment, guests);
            }
            Message::NotStarted => {
                it.growth.not_started(from, "no guardian");
                return self.lose_from(job, from, "no guardian");
            }
            Message::AllEnded if it.over.remove(&from) => self.take_over(job, from),
            Message::AllEnded => drop(it.ended.insert(from)),
            Message::Over if it.ended.remove(&from) => self.take_over(job, from),
            Message::Over => drop(it.over.insert(from)),
            Message::PartWanted => return self.want(job, from, true),
            _ => {}
        }
        self.grow(job)
    }

    fn take_over(&mut self, job: JobId, host: HostNumber) {
        if let Some(it) = self.jobs.get_mut(&job) {
            it.awaited.remove(&host);
            it.added.remove(&host);
            it.growth.over(host);
        }
    }

    fn want(&mut self, job: JobId, host: HostNumber, waits_there: bool) -> Check {
        let Some(it) = self.jobs.get_mut(&job).filter(|it| !it.is_over) else { return Ok(()) };
        it.open.insert(host);
        it.growth.want(host, waits_there);
        self.grow(job)
    }

    /// The conductor's loop has come to its end: hosts are released, and a job without parts is over.
    fn turn(&mut self, job: JobId) -> Check {
        let Some(it) = self.jobs.get_mut(&job).filter(|it| !it.is_over) else { return Ok(()) };
        if it.growth.release(&it.awaited) {
            it.is_closed = true;
            self.command_all(job, &Message::Release);
            self.grow(job)?;
        }
        let Some(it) = self.jobs.get_mut(&job).filter(|it| it.awaited.is_empty()) else {
            return Ok(());
        };
        it.is_over = true;
        let (conductor, open) = (it.conductor, it.open.clone());
        self.send(conductor, FOUNDER, job, Message::JobOver);
        ensure(open.is_empty(), "each wish has its answer", || {
            format!("job {job} is over, and {open:?} were wanted")
        })
    }

    fn end(&mut self, job: JobId) -> Check {
        let Some(it) = self.jobs.get_mut(&job).filter(|it| !it.is_over) else { return Ok(()) };
        it.growth.close();
        it.is_closed = true;
        self.command_all(job, &Message::End);
        self.grow(job)
    }

    fn command_all(&mut self, job: JobId, command: &Message) {
        let Job { awaited, conductor, .. } = &self.jobs[&job];
        let (all, conductor) = (awaited.clone(), *conductor);
        for host in all {
            self.send(conductor, host, job, command.clone());
        }
    }

    /// Carries out what was decided.
    fn grow(&mut self, job: JobId) -> Check {
        self.plan(Duration::from_millis(1), Event::Turn(job));
        while let Some(output) = self.jobs.get_mut(&job).and_then(|it| it.growth.take()) {
            self.log.note(self.now, format!("job {job}: {output:?}"));
            self.carry_out(job, output)?;
        }
        Ok(())
    }

    fn carry_out(&mut self, job: JobId, output: GrowthOutput) -> Check {
        let Some(it) = self.jobs.get_mut(&job) else { return Ok(()) };
        let own = it.conductor;
        match output {
            GrowthOutput::Look(host) => {
                let seen = self.look(job, host);
                if let Some(it) = self.jobs.get_mut(&job) {
                    it.growth.looked(host, seen);
                }
            }
            GrowthOutput::Ask(host) => self.send(own, FOUNDER, job, Message::Wanted(host)),
            GrowthOutput::Check(host) => {
                let mut hosts = it.hosts.clone();
                hosts.push(host);
                self.send(own, host.number, job, Message::Check(hosts));
            }
            GrowthOutput::Prepare(host) => self.send(own, host.number, job, Message::Prepare),
            GrowthOutput::Place(host) => it.hosts.push(host),
            GrowthOutput::Tell { to, host } => self.send(own, to, job, Message::AddHost(host)),
            GrowthOutput::Begin { host, guests } => {
                let is_closed = it.is_closed;
                it.awaited.insert(host.number);
                it.added.insert(host.number);
                self.report.added += 1;
                let guests = guests.into_iter().map(|(guest, _)| guest).collect();
                self.send(own, host.number, job, Message::Meet(guests));
                self.send(own, host.number, job, Message::Start);
                ensure(!is_closed, "no host comes behind the end", || format!("{host:?}"))?;
                let allowed = self.allowed.contains(&(job, host.number, host.segment));
                ensure(allowed || !self.has_founder, "each host that comes was allowed", || {
                    format!("{host:?} in job {job}")
                })?;
            }
            GrowthOutput::Dismiss(host) => {
                self.report.given_up += 1;
                self.send(own, host, job, Message::Dismiss);
            }
            GrowthOutput::GiveUp(host) => self.send(own, FOUNDER, job, Message::GivenUp(host)),
            GrowthOutput::Refuse(host, _) => self.send(own, host, job, Message::PartRefused),
            GrowthOutput::Answer(host, outcome) => {
                let (was_open, is_there) = (it.open.remove(&host), it.awaited.contains(&host));
                self.report.refused += usize::from(outcome.is_err());
                if outcome.is_err() && self.now < FAULTY && self.draw.permille(300) {
                    let wait = self.draw.pick(&[20, 1_000]);
                    self.plan(Duration::from_millis(wait), Event::Want(job, host));
                }
                ensure(was_open, "no wish has two answers", || format!("{host:?}: {outcome:?}"))?;
                let is_right = outcome.map_or_else(|why| !why.is_empty(), |()| is_there);
                ensure(is_right, "each answer is right", || format!("{host:?} in job {job}"))?;
            }
        }
        Ok(())
    }

    /// The sight of a host that is wanted.
    fn look(&mut self, job: JobId, host: HostNumber) -> Result<Prospect, String> {
        let it = &self.jobs[&job];
        if it.awaited.contains(&host) {
            let is_ending = it.ended.contains(&host) || it.over.contains(&host);
            return Ok(if is_ending { Prospect::Ending } else { Prospect::There });
        }
        if !self.hosts[&it.conductor].known.contains_key(&host) {
            return Err("it is lost".to_owned());
        }
        Ok(Prospect::New(self.new_segment()))
    }

    /// All messages have arrived, and nobody waits for anything.
    fn at_rest(&self) -> Check {
        for (&job, it) in self.jobs.iter().filter(|(_, it)| !it.is_over) {
            let is_alone = it.awaited == it.added;
            ensure(!is_alone, "added hosts that are alone end", || format!("job {job} lives on"))?;
            let parts = self.parts(job);
            let with_part: BTreeSet<HostNumber> = parts.keys().copied().collect();
            ensure(with_part == it.awaited, "a host that is given up has no part", || {
                format!("job {job} has parts on {with_part:?}, and knows of {:?}", it.awaited)
            })?;
            ensure(it.open.is_empty(), "each wish has its answer", || {
                format!("job {job} still waits for {:?}", it.open)
            })?;
            self.check_places(job)?;
            let is_short = |part: &&Part| part.has_begun() && part.hosts != it.hosts;
            let short = parts.values().copied().find(is_short);
            ensure(short.is_none(), "places are the same on all hosts", || {
                format!("{short:?} of job {job} has other hosts than {:?}", it.hosts)
            })?;
            all_guests_are_known(job, &parts)?;
            self.check_book(job, it)?;
        }
        self.check_visitors()
    }

    /// The founder's book has the hosts of a job that were added, and none that was given up.
    fn check_book(&self, job: JobId, it: &Job) -> Check {
        let shares = self.book.jobs().filter(|(other, _)| *other == job);
        let shares: Vec<&BookedShare> = shares.flat_map(|(_, shares)| shares).collect();
        let mut added = it.added.iter();
        let has_all = added.all(|host| shares.iter().any(|share| share.host == *host));
        let mut more = shares.iter().filter(|share| share.processes == 0);
        let has_no_other = more.all(|share| it.added.contains(&share.host));
        ensure(!self.has_founder || has_all && has_no_other, "the book has what was added", || {
            format!("job {job}: {shares:?} are booked, and {:?} were added", it.added)
        })
    }

    fn check_visitors(&self) -> Check {
        let mut up = self.hosts.iter().filter(|(_, host)| host.is_up);
        let waiting = up.find(|(_, host)| !host.visited.is_empty());
        ensure(waiting.is_none(), "nobody waits for ever to join", || {
            format!("{:?}", waiting.map(|(host, it)| (host, &it.visited)))
        })
    }

    /// All jobs are over.
    fn at_end(&self) -> Check {
        let left = self.living().count();
        ensure(left == 0, "added hosts that are alone end", || format!("{left} jobs live on"))?;
        let up = self.hosts.iter().filter(|(_, it)| it.is_up);
        for (host, it) in up {
            ensure(it.parts.is_empty(), "a host that is given up has no part", || {
                format!("{host:?} has {:?}", it.parts)
            })?;
        }
        self.check_visitors()
    }
}
