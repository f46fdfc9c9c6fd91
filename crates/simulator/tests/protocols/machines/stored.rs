//! A run of processes that store messages on hosts, where their receivers fetch them, over connections that break.
//!
//! The machines are those of a process ([`Storing`], [`Fetching`], [`RelayRequests`]) and of a host (`stored_host`). A connection
//! ends at any frame: of what was under way a first part still comes. Relays start again, and processes die or stand still.
//! Their words of stored messages to their receivers are not lost.

use std::collections::VecDeque;
use std::time::Duration;

use landeck_channel::relay_requests::RelayRequests;
use landeck_kernel::stored::{Fetching, FetchingState, StoredData, Storing, StoringState, free};
use landeck_simulator::{Events, Time};
use landeck_wire::relay::RelayOutcome;
use landeck_wire::{Header, Incarnation, ProcessId, SegmentId, Slot};

use super::draw::Draw;
use super::event_log::{EventLog, ProtocolFailure};
use super::host_checks::{Check, ensure};
use super::stored_checks::{self, Numbers, Sent, SentState};
use super::stored_host::StoreHost;

/// The time in which faults happen and messages begin, and that in which everything is to come to its end.
const FAULTY: Duration = Duration::from_secs(3);
const CALM: Duration = Duration::from_secs(2);
/// The processes end then, and have ended within this time.
const ENDING: Duration = Duration::from_secs(1);
/// A process sees within this time that its connection has gone, or that none comes.
const NOTICE_MAX: Duration = Duration::from_millis(20);
/// A host hears within this time that a process is gone.
const GONE_MAX: Duration = Duration::from_millis(60);
/// A relay starts again within this time.
const DOWN_MAX: Duration = Duration::from_millis(30);
/// A process goes on within this time, or stands still for up to a longer one.
const STEP_MAX: Duration = Duration::from_millis(8);
const STILL_MAX: Duration = Duration::from_millis(120);
/// The most messages that a process stores at once, and fetches.
const STORED_AT_ONCE: usize = 3;
const FETCHED_AT_ONCE: usize = 2;

/// The result of a run in which all properties held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoredReport {
    /// The messages that were stored, and those that were fetched.
    pub(crate) stored: u32,
    pub(crate) fetched: u32,
    /// The messages that were fetched after their senders had ended.
    pub(crate) survived: u32,
    /// The messages for which there was no room.
    pub(crate) refused: u32,
    /// The messages that their senders gave up halfway, and those that their receivers did not fetch.
    pub(crate) given_up: [u32; 2],
    /// The fetches that were put back halfway.
    pub(crate) put_back: u32,
    /// The messages that a process wrote into the store itself.
    pub(crate) written_here: u32,
    /// The runs of relays that ended, and the connections that broke.
    pub(crate) restarts: u32,
    pub(crate) breaks: u32,
    /// The processes that died before the end.
    pub(crate) deaths: u32,
    /// The sealed messages of dead senders that no receiver knew of when all was quiet.
    pub(crate) left: u32,
    /// A number that depends on everything that happened.
    pub(crate) hash: u64,
}

#[derive(Clone, Debug)]
enum Parcel {
    /// A process opens its connection, and has sent so many requests before.
    Open(u32),
    /// The relay serves it.
    Opened,
    /// A request, or an answer.
    Frame(Header, Vec<u8>),
}

#[derive(Clone, Debug)]
enum Event {
    /// A process begins.
    Come,
    /// A process goes on with everything.
    Work(usize),
    Dial {
        process: usize,
        host: usize,
    },
    /// The relay has not answered, or the process sees that its connection has gone.
    Silent(usize),
    Arrive {
        connection: usize,
        to: End,
        parcel: Parcel,
    },
    Fault,
    /// The next run of a relay begins.
    Start(usize),
    /// A host hears that a process is gone.
    Ended {
        process: usize,
        host: usize,
    },
    Quiet,
    Over,
}

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Process,
    Relay,
}

#[derive(Debug)]
struct Connection {
    process: usize,
    host: usize,
    is_cut: bool,
    /// Whether nothing comes to an end any more.
    is_lost: [bool; 2],
    last_arrival: [Duration; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Runs,
    /// It begins nothing, and ends when it has nothing to store.
    Ends,
    Gone,
    Died,
}

/// The way of a process to a host.
#[derive(Debug, Default)]
struct Link {
    requests: RelayRequests,
    connection: Option<usize>,
    is_open: bool,
}

#[derive(Debug)]
struct Process {
    id: ProcessId,
    life: Life,
    /// Its host, if data are stored there.
    here: Option<usize>,
    links: Vec<Link>,
    storing: Vec<(usize, Storing)>,
    /// The stored messages of which it has not told yet.
    untold: VecDeque<usize>,
    /// The messages of which it knows.
    told: Vec<usize>,
    fetching: Vec<(usize, Fetching)>,
}

impl Process {
    const fn is_gone(&self) -> bool {
        matches!(self.life, Life::Gone | Life::Died)
    }

    fn is_idle(&self) -> bool {
        self.has_stored() && self.told.is_empty() && self.fetching.is_empty()
    }

    /// Whether it has nothing to store, and no relay has anything to do for it: also a message that it gave up is freed.
    fn has_stored(&self) -> bool {
        let mut links = self.links.iter();
        self.storing.is_empty()
            && self.untold.is_empty()
            && !links.any(|link| link.requests.has_unanswered())
    }
}

/// The data of a message, and the store if its process is on that host.
struct Data<'a> {
    sent: &'a Sent,
    here: Option<&'a mut StoreHost>,
    written: &'a mut u32,
    check: Check,
}

impl StoredData for Data<'_> {
    fn write_here(&mut self, place: u64) -> bool {
        let Some(here) = &mut self.here else { return false };
        let data = self.sent.data(0, self.sent.bytes as usize);
        self.check = stored_checks::place_is_its_own(&here.store, self.sent, place);
        here.data[place as usize..][..data.len()].copy_from_slice(data);
        *self.written += 1;
        true
    }

    fn append(&mut self, position: u64, bytes: usize, to: &mut Vec<u8>) {
        to.extend_from_slice(self.sent.data(position, bytes));
    }
}

struct World {
    draw: Draw,
    events: Events<Event>,
    now: Duration,
    log: EventLog,
    hosts: Vec<StoreHost>,
    numbers: Vec<Numbers>,
    processes: Vec<Process>,
    connections: Vec<Connection>,
    sent: Vec<Sent>,
    /// The processes that are still to go away early. Most are followed by others.
    leavers: u64,
    /// In so many of a thousand steps a receiver begins to fetch.
    eagerness: u32,
    report: StoredReport,
}

/// Runs processes that store and fetch.
///
/// # Errors
/// [`ProtocolFailure`] if a property did not hold.
pub(crate) fn run(seed: u64) -> Result<StoredReport, ProtocolFailure> {
    let mut world = World::new(seed);
    let mut check = Ok(());
    while let (Ok(()), Some((at, event))) = (&check, world.events.pop()) {
        world.now = Duration::from_nanos(at.ps() / 1_000);
        let is_over = matches!(event, Event::Over);
        check = world.happen(event);
        if is_over {
            break;
        }
    }
    match check {
        Err((property, text)) => Err(world.log.failure(seed, property, text)),
        Ok(()) => Ok(StoredReport { hash: world.log.hash(), ..world.report }),
    }
}

impl World {
    fn new(seed: u64) -> Self {
        let mut draw = Draw::new(seed);
        let hosts: Vec<_> =
            (0..draw.pick(&[1, 1, 2, 3])).map(|_| StoreHost::new(&mut draw)).collect();
        let leavers = 1 + draw.below(12);
        let eagerness = draw.pick(&[10, 40, 100, 400]);
        let mut world = Self {
            draw,
            events: Events::default(),
            now: Duration::ZERO,
            log: EventLog::default(),
            numbers: hosts.iter().map(|_| Numbers::default()).collect(),
            hosts,
            processes: Vec::new(),
            connections: Vec::new(),
            sent: Vec::new(),
            leavers,
            eagerness,
            report: StoredReport::default(),
        };
        for _ in 0..2 + world.draw.below(4) {
            world.come();
        }
        world.plan(Duration::from_millis(20), Event::Fault);
        world.plan(FAULTY + CALM, Event::Quiet);
        world.plan(FAULTY + CALM + ENDING, Event::Over);
        world
    }

    /// A process begins.
    fn come(&mut self) {
        let process = self.processes.len();
        let hosts = self.hosts.len();
        let (slot, incarnation) = (Slot(process as u32), Incarnation(1));
        self.processes.push(Process {
            id: ProcessId { segment: SegmentId(7), slot, incarnation },
            life: Life::Runs,
            here: self.draw.permille(400).then(|| self.draw.below(hosts as u64) as usize),
            links: (0..hosts).map(|_| Link::default()).collect(),
            storing: Vec::new(),
            untold: VecDeque::new(),
            told: Vec::new(),
            fetching: Vec::new(),
        });
        self.plan(Duration::ZERO, Event::Work(process));
        (0..hosts).for_each(|host| self.plan(Duration::ZERO, Event::Dial { process, host }));
    }

    fn plan(&mut self, after: Duration, event: Event) {
        let at = self.now + after;
        self.events.plan(Time::from_ps(at.as_nanos() as u64 * 1_000), event);
    }

    /// Plans an event before so much time has gone.
    fn plan_within(&mut self, most: Duration, event: Event) {
        let after = self.draw.time(most / 50, most);
        self.plan(after, event);
    }

    fn note(&mut self, text: String) {
        self.log.note(self.now, text);
    }

    fn is_faulty(&self) -> bool {
        self.now < FAULTY
    }

    fn happen(&mut self, event: Event) -> Check {
        match event {
            Event::Come => self.come(),
            Event::Work(process) => return self.work(process),
            Event::Dial { process, host } => self.dial(process, host),
            Event::Silent(connection) => self.silent(connection),
            Event::Arrive { connection, to, parcel } => {
                return self.arrive(connection, to, parcel);
            }
            Event::Fault => self.fault(),
            Event::Start(host) => {
                self.note(format!("the relay of host {host} starts again"));
                self.hosts[host].start();
                return self.look_at(host);
            }
            Event::Ended { process, host } => {
                self.note(format!("host {host} hears that process {process} is gone"));
                self.hosts[host].ended(self.processes[process].id);
                return self.look_at(host);
            }
            Event::Quiet => return self.quiet(),
            Event::Over => return self.over(),
        }
        Ok(())
    }
}

/// Connections and what they carry.
impl World {
    fn dial(&mut self, process: usize, host: usize) {
        if self.processes[process].is_gone() {
            return;
        }
        let number = self.connections.len();
        let (is_lost, last_arrival) = ([false; 2], [self.now; 2]);
        self.connections.push(Connection { process, host, is_cut: false, is_lost, last_arrival });
        let link = &mut self.processes[process].links[host];
        (link.connection, link.is_open) = (Some(number), false);
        let asked = link.requests.sent();
        self.send(number, End::Relay, Parcel::Open(asked));
        self.plan(NOTICE_MAX, Event::Silent(number));
    }

    fn send(&mut self, number: usize, to: End, parcel: Parcel) {
        let delay = self.draw.time(Duration::from_micros(50), Duration::from_millis(2));
        let connection = &mut self.connections[number];
        connection.is_lost[to as usize] |= connection.is_cut;
        if connection.is_lost[to as usize] {
            return;
        }
        let last = &mut connection.last_arrival[to as usize];
        *last = (*last).max(self.now + delay);
        let after = *last - self.now;
        self.plan(after, Event::Arrive { connection: number, to, parcel });
    }

    fn arrive(&mut self, number: usize, to: End, parcel: Parcel) -> Check {
        let is_lost = self.draw.permille(200);
        let connection = &mut self.connections[number];
        // Behind a byte that is lost nothing comes.
        connection.is_lost[to as usize] |= connection.is_cut && is_lost;
        let Connection { process, host, .. } = *connection;
        if connection.is_lost[to as usize] {
            return Ok(());
        }
        match to {
            End::Relay => self.arrive_at_relay(number, (process, host), parcel),
            End::Process => self.arrive_at_process(number, (process, host), parcel),
        }
    }

    fn arrive_at_relay(
        &mut self,
        number: usize,
        (process, at): (usize, usize),
        parcel: Parcel,
    ) -> Check {
        let (host, id) = (&mut self.hosts[at], self.processes[process].id);
        let lane = lane(number);
        match parcel {
            Parcel::Open(asked) if host.open(id, lane, asked) => {
                self.send(number, End::Process, Parcel::Opened);
            }
            Parcel::Frame(header, data) if host.serves(id, lane) => {
                let (header, data) = match host.answer(id, &header, &data) {
                    Ok(answer) => answer,
                    Err(broken) => {
                        return ensure(false, "a relay takes each request", || {
                            format!("{broken:?}: {header:?} of process {process}")
                        });
                    }
                };
                let outcome = RelayOutcome::from_tag(header.tag);
                let request = header.context;
                self.note(format!("host {at}, process {process}: {request} is {outcome:?}"));
                self.send(number, End::Process, Parcel::Frame(header, data));
                return self.look_at(at);
            }
            _ => {}
        }
        Ok(())
    }

    fn arrive_at_process(
        &mut self,
        number: usize,
        (process, host): (usize, usize),
        parcel: Parcel,
    ) -> Check {
        let link = &mut self.processes[process].links[host];
        if link.connection != Some(number) {
            return Ok(());
        }
        match parcel {
            Parcel::Opened => {
                link.is_open = true;
                link.requests.connected(lane(number));
                self.send_requests(process, host);
            }
            Parcel::Frame(header, data) => {
                let answered = link.requests.answer(&header, &data);
                ensure(answered.is_ok(), "a process takes each answer", || format!("{header:?}"))?;
            }
            Parcel::Open(_) => {}
        }
        Ok(())
    }

    fn send_requests(&mut self, process: usize, host: usize) {
        let Some(number) = self.processes[process].links[host].connection else { return };
        while let Some((header, data)) = self.processes[process].links[host].requests.next_to_send()
        {
            let frame = Parcel::Frame(*header, data.to_vec());
            self.send(number, End::Relay, frame);
        }
    }

    /// A process sees the end of a connection, or that it does not open.
    fn silent(&mut self, number: usize) {
        let Connection { process, host, is_cut, .. } = self.connections[number];
        let link = &mut self.processes[process].links[host];
        if link.connection != Some(number) || link.is_open && !is_cut {
            return;
        }
        self.connections[number].is_cut = true;
        link.connection = None;
        link.requests.disconnected();
        self.plan_within(NOTICE_MAX, Event::Dial { process, host });
    }

    fn cut(&mut self, number: usize) {
        let connection = &mut self.connections[number];
        if !std::mem::replace(&mut connection.is_cut, true) {
            self.plan_within(NOTICE_MAX, Event::Silent(number));
        }
    }
}

/// A process.
impl World {
    fn work(&mut self, process: usize) -> Check {
        if self.processes[process].is_gone() {
            return Ok(());
        }
        let most = if self.draw.permille(120) { STILL_MAX } else { STEP_MAX };
        self.plan_within(most, Event::Work(process));
        if self.is_faulty() && self.processes[process].life == Life::Runs {
            self.begin(process);
        }
        self.store(process)?;
        self.tell(process);
        self.begin_fetching(process);
        self.fetch(process)?;
        (0..self.hosts.len()).for_each(|host| self.send_requests(process, host));
        let it = &self.processes[process];
        if it.life == Life::Ends && it.has_stored() {
            self.end(process, Life::Gone);
        }
        Ok(())
    }

    /// Begins to store a message, or does not.
    fn begin(&mut self, sender: usize) {
        let is_full = self.processes[sender].storing.len() == STORED_AT_ONCE;
        if is_full || !self.draw.permille(150) {
            return;
        }
        let receiver = self.any();
        let host = match self.processes[sender].here.filter(|_| self.draw.permille(700)) {
            Some(here) => here,
            None => self.draw.below(self.hosts.len() as u64) as usize,
        };
        let sent = Sent::new(sender, (receiver, host), &mut self.draw);
        let storing = Storing::new(self.processes[receiver].id, sent.bytes);
        self.note(format!("process {sender} stores message {}: {sent:?}", self.sent.len()));
        self.processes[sender].storing.push((self.sent.len(), storing));
        self.sent.push(sent);
    }

    /// A process that runs, or any one.
    fn any(&mut self) -> usize {
        let all = self.processes.iter().enumerate();
        let running: Vec<usize> =
            all.filter(|(_, it)| !it.is_gone()).map(|(number, _)| number).collect();
        match running.is_empty() || self.draw.permille(50) {
            true => self.draw.below(self.processes.len() as u64) as usize,
            false => self.draw.pick(&running),
        }
    }

    fn store(&mut self, sender: usize) -> Check {
        let all = std::mem::take(&mut self.processes[sender].storing);
        for (number, mut storing) in all {
            if self.is_faulty() && self.draw.permille(20) {
                self.note(format!("process {sender} gives message {number} up"));
                self.report.given_up[0] += 1;
                self.sent[number].state = SentState::Refused;
                storing.give_up();
            }
            let writes_here = self.draw.permille(700);
            let sent = &mut self.sent[number];
            let it = &mut self.processes[sender];
            let (host, is_here) = (&mut self.hosts[sent.host], it.here == Some(sent.host));
            let here = (is_here && writes_here).then_some(host);
            let written = &mut self.report.written_here;
            let requests = &mut it.links[sent.host].requests;
            let mut data = Data { sent, here, written, check: Ok(()) };
            let state = storing.advance(requests, &mut data);
            data.check?;
            match state {
                StoringState::Waits => it.storing.push((number, storing)),
                StoringState::Stored { number: stored, .. } => {
                    stored_checks::is_wanted(sent)?;
                    sent.number = Some(stored);
                    it.untold.push_back(number);
                    self.report.stored += 1;
                    self.note(format!("message {number} is stored as {stored:#x}"));
                }
                StoringState::Refused(outcome) => {
                    sent.state = SentState::Refused;
                    self.report.refused += u32::from(outcome == RelayOutcome::NoRoom);
                    self.note(format!("message {number} is not stored: {outcome:?}"));
                }
            }
        }
        Ok(())
    }

    /// Tells receivers of messages, in their order.
    fn tell(&mut self, sender: usize) {
        while self.draw.permille(600)
            && let Some(number) = self.processes[sender].untold.pop_front()
        {
            let receiver = self.sent[number].receiver;
            self.note(format!("process {receiver} is told of message {number}"));
            self.sent[number].state = SentState::Told;
            self.processes[receiver].told.push(number);
        }
    }

    /// Begins to fetch a message, or does not want it.
    fn begin_fetching(&mut self, receiver: usize) {
        let chance = if self.is_faulty() { self.eagerness } else { 600 };
        let it = &mut self.processes[receiver];
        let is_full = it.fetching.len() == FETCHED_AT_ONCE;
        if it.told.is_empty() || is_full || !self.draw.permille(chance) {
            return;
        }
        let at = self.draw.below(it.told.len() as u64) as usize;
        let (number, is_wanted) = (it.told[at], !self.draw.permille(100));
        let sent = &mut self.sent[number];
        let Some(stored) = sent.number else { return };
        if is_wanted {
            it.fetching.push((number, Fetching::new(stored, sent.bytes)));
        } else if free(stored, &mut it.links[sent.host].requests) {
            sent.state = SentState::GivenUp;
            self.report.given_up[1] += 1;
        } else {
            return;
        }
        it.told.swap_remove(at);
        self.note(format!("process {receiver} wants message {number}: {is_wanted}"));
    }

    fn fetch(&mut self, receiver: usize) -> Check {
        let all = std::mem::take(&mut self.processes[receiver].fetching);
        for (number, mut fetching) in all {
            let is_put_back = self.is_faulty() && self.draw.permille(60);
            let sent = &mut self.sent[number];
            let it = &mut self.processes[receiver];
            let requests = &mut it.links[sent.host].requests;
            if is_put_back {
                fetching.waiting().for_each(|request| requests.forget(request));
                it.told.push(number);
                self.report.put_back += 1;
                self.note(format!("message {number} is put back"));
                continue;
            }
            let (mut come, mut check) = (fetching.come(), Ok(()));
            let state = fetching.advance(requests, &mut |position, data| {
                let part = stored_checks::part_is_next(sent, come, (position, data));
                check = std::mem::replace(&mut check, Ok(())).and(part);
                come += data.len() as u64;
            });
            check?;
            stored_checks::is_not_refused(sent, state)?;
            match state {
                FetchingState::Waits => it.fetching.push((number, fetching)),
                FetchingState::Fetched => {
                    stored_checks::message_comes_once(sent, come)?;
                    sent.state = SentState::Fetched;
                    self.report.fetched += 1;
                    let is_over = self.processes[sent.sender].is_gone();
                    self.report.survived += u32::from(is_over);
                    self.note(format!("message {number} is fetched"));
                }
                FetchingState::Refused(_) => {}
            }
        }
        Ok(())
    }

    fn end(&mut self, process: usize, how: Life) {
        self.note(format!("process {process} ends: {how:?}"));
        self.processes[process].life = how;
        for host in 0..self.hosts.len() {
            if let Some(number) = self.processes[process].links[host].connection.take() {
                self.cut(number);
            }
            self.plan_within(GONE_MAX, Event::Ended { process, host });
        }
        if self.is_faulty() && self.draw.permille(900) {
            self.plan_within(GONE_MAX, Event::Come);
        }
    }
}

/// Faults.
impl World {
    fn fault(&mut self) {
        if !self.is_faulty() {
            return;
        }
        self.plan_within(Duration::from_millis(60), Event::Fault);
        match self.draw.below(20) {
            0..3 => {
                let host = self.draw.below(self.hosts.len() as u64) as usize;
                self.stop_relay(host);
            }
            3..5 if self.leavers > 0 => {
                self.leavers -= 1;
                let process = self.any();
                if self.draw.permille(600) && !self.processes[process].is_gone() {
                    self.report.deaths += 1;
                    self.end(process, Life::Died);
                } else if self.processes[process].life == Life::Runs {
                    self.processes[process].life = Life::Ends;
                }
            }
            _ => self.break_connection(),
        }
    }

    fn break_connection(&mut self) {
        let process = self.draw.below(self.processes.len() as u64) as usize;
        let host = self.draw.below(self.hosts.len() as u64) as usize;
        let link = &self.processes[process].links[host];
        if let Some(number) = link.connection.filter(|_| link.is_open) {
            self.note(format!("process {process} and host {host} are apart"));
            self.report.breaks += 1;
            self.cut(number);
        }
    }

    fn stop_relay(&mut self, host: usize) {
        if !self.hosts[host].is_up {
            return;
        }
        self.note(format!("the relay of host {host} stops"));
        self.report.restarts += 1;
        self.hosts[host].stop();
        for number in 0..self.connections.len() {
            if self.connections[number].host == host {
                self.connections[number].is_lost[End::Relay as usize] = true;
                self.cut(number);
            }
        }
        self.plan_within(DOWN_MAX, Event::Start(host));
    }
}

/// Checks.
impl World {
    /// The store of a host is as it may be, between any two events.
    fn look_at(&mut self, host: usize) -> Check {
        let store = &self.hosts[host].store;
        stored_checks::quota_holds(store)?;
        self.numbers[host].name_one_message(store)?;
        let told = self.sent.iter().filter(|sent| {
            let is_wanted = sent.host == host && sent.state == SentState::Told;
            is_wanted && !self.processes[sent.receiver].is_gone()
        });
        stored_checks::told_messages_are_there(store, told)
    }

    /// The process with this identity.
    fn life(&self, id: ProcessId) -> Life {
        self.processes[id.slot.0 as usize].life
    }

    /// Everything has come to its end.
    fn quiet(&mut self) -> Check {
        for (number, process) in self.processes.iter_mut().enumerate() {
            ensure(process.is_gone() || process.is_idle(), "what is stored is fetched", || {
                format!("process {number} is not idle: {process:?}")
            })?;
            if process.life == Life::Runs {
                process.life = Life::Ends;
            }
        }
        for (number, host) in self.hosts.iter().enumerate() {
            let is_known = |stored: u64| {
                let mut known = self.sent.iter().filter(|sent| sent.state != SentState::Untold);
                known.any(|sent| sent.host == number && sent.number == Some(stored))
            };
            self.report.left += stored_checks::nothing_is_left(
                &host.store,
                is_known,
                |id| self.life(id) == Life::Died,
                |id| matches!(self.life(id), Life::Died | Life::Gone),
            )?;
        }
        Ok(())
    }

    /// All processes are gone.
    fn over(&mut self) -> Check {
        for process in &self.processes {
            ensure(process.is_gone(), "a process that has nothing to store ends", || {
                format!("{process:?}")
            })?;
        }
        for host in &self.hosts {
            stored_checks::nothing_is_left(&host.store, |_| true, |_| true, |_| true)?;
        }
        Ok(())
    }
}

/// The number of a connection for its ends.
const fn lane(connection: usize) -> u32 {
    connection as u32 + 1
}
