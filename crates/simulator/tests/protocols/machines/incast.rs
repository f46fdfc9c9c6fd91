//! Many senders and one receiver behind a port with a small buffer.
//!
//! The port carries packets at one rate, and drops those that find its buffer full. A sender repeats a lost packet after
//! 200 ms, and has at most 64 KiB that the receiver has not acknowledged, as TCP. The receiver makes its grants by
//! [`Grants`]; without them every sender sends at once. It counts a part of a message when the part is whole. Processes
//! may look late, senders may stop for a while, and short messages may come all the time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use landeck_channel::credit::GrowingCredit;
use landeck_channel::grants::{CREDIT_PLACES, GrantLimits, Grants, PIECE_BYTES};

use super::draw::Draw;
use super::event_log::{EventLog, ProtocolFailure};
use super::host_checks::{Check, ensure};
use landeck_simulator::{Events, Time};

/// The data of a packet.
const PACKET_BYTES: u64 = 1_448;
/// The longest part of a message that is granted whole.
const PART_BYTES: u64 = 64 << 10;
/// A sender has at most so many bytes that are not acknowledged.
const SENDER_WINDOW: u64 = 64 << 10;
/// A lost packet is sent again after this time.
const RETRY: Duration = Duration::from_millis(200);
/// The longest way of a packet or a grant beside the port.
const WAY_MAX: Duration = Duration::from_micros(60);
/// Where senders stop, the port may be idle for so long: then the receiver takes those under way as stalled. The next ones
/// may have stopped too.
const IDLE_MAX_STOPPED: Duration = Duration::from_millis(60);
/// The end of a run that comes to no other one.
const END: Duration = Duration::from_secs(60);
/// A message must not wait longer than this for each of its pieces while shorter ones come.
const PIECE_WAIT_MAX: Duration = Duration::from_millis(150);

/// One setting of senders, port and grants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IncastSetting {
    /// The number of senders.
    pub(crate) senders: u32,
    /// The bytes of each sender's message, at most; at least half of them.
    pub(crate) bytes: u64,
    /// The bytes that the port moves in a second.
    pub(crate) port_rate: u64,
    /// The bytes that the port holds.
    pub(crate) port_bytes: u64,
    /// The limits of the grants. Without them every sender sends at once.
    pub(crate) limits: Option<GrantLimits>,
    /// The limits are those of a credit that grows.
    pub(crate) grows: bool,
    /// A process looks at what has come after this time at most.
    pub(crate) look_max: Duration,
    /// Some senders stop for a while.
    pub(crate) stops: bool,
    /// Short messages come all the time, a little more than the port can carry, until so long after the beginning.
    pub(crate) short_until: Duration,
}

/// The result of a run in which all properties held.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct IncastReport {
    /// The time until all messages had arrived.
    pub(crate) time: Duration,
    /// The packets that the port dropped.
    pub(crate) drops: u64,
    /// The grants.
    pub(crate) grants: u64,
    /// The part of the time in which the port carried data for the first time.
    pub(crate) goodput: f64,
    /// A number that depends on everything that happened.
    pub(crate) hash: u64,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    sender: usize,
    offset: u64,
    bytes: u64,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A sender has a message, of which the receiver learns.
    Add(usize),
    /// A grant comes to its sender.
    Granted {
        sender: usize,
        upto: u64,
    },
    /// An acknowledgement comes to its sender.
    Acknowledged {
        sender: usize,
        upto: u64,
    },
    /// A packet comes to the port.
    Enter(Packet),
    /// A packet comes to the receiver's host.
    Arrive(Packet),
    /// The receiver finds whole parts.
    Found {
        sender: usize,
        bytes: u64,
    },
    Stop(usize),
    Resume(usize),
    /// The receiver's time to look again.
    Wake,
    /// The next of the short messages.
    Short,
}

#[derive(Default)]
struct Sender {
    total: u64,
    is_added: bool,
    is_stopped: bool,
    has_stopped: bool,
    added: Duration,
    /// The position up to which it may send, as it knows.
    may: u64,
    sent: u64,
    acknowledged: u64,
    free_at: Duration,
    /// The end of the last part that it has begun, and the ends of those that have not come whole.
    parted: u64,
    parts: VecDeque<u64>,
    /// The position up to which all parts have come whole.
    whole: u64,
    /// The position up to which the receiver granted.
    granted: u64,
    /// The position up to which all has arrived, and the packets behind.
    received: u64,
    apart: BTreeMap<u64, u64>,
    /// The packets that came out of order since the receiver last looked.
    disorder: u64,
}

struct World {
    seed: u64,
    setting: IncastSetting,
    draw: Draw,
    events: Events<Event>,
    now: Duration,
    log: EventLog,
    senders: Vec<Sender>,
    /// The senders whose message has not arrived.
    open: BTreeSet<usize>,
    receiver: Option<Grants<usize>>,
    credit: Option<GrowingCredit>,
    /// The greatest limits so far.
    most: Option<GrantLimits>,
    /// The time at which the receiver looks again.
    wakes_at: Option<Duration>,
    queued_bytes: u64,
    port_free: Duration,
    /// Since when the port carries nothing while a sender that is not stopped has something.
    idle_since: Option<Duration>,
    drops: u64,
    grants: u64,
    bytes: u64,
}

/// Runs a many-to-one step.
///
/// # Errors
/// [`ProtocolFailure`] if a property did not hold.
pub(crate) fn run(seed: u64, setting: IncastSetting) -> Result<IncastReport, ProtocolFailure> {
    let mut world = World {
        seed,
        setting,
        draw: Draw::new(seed),
        events: Events::default(),
        now: Duration::ZERO,
        log: EventLog::default(),
        senders: Vec::new(),
        open: BTreeSet::new(),
        receiver: setting.limits.map(Grants::new),
        credit: setting.grows.then(GrowingCredit::default),
        most: setting.limits,
        wakes_at: None,
        queued_bytes: 0,
        port_free: Duration::ZERO,
        idle_since: None,
        drops: 0,
        grants: 0,
        bytes: 0,
    };
    world.begin();
    let mut check = Ok(());
    while let Some((at, event)) = world.events.pop() {
        world.now = Duration::from_nanos(at.ps() / 1_000);
        check = world.happen(event);
        if check.is_err() || world.is_done() || world.now > END {
            break;
        }
    }
    if let Err((property, text)) = check.and_then(|()| world.at_end()) {
        return Err(world.log.failure(world.seed, property, text));
    }
    let time = world.now;
    let goodput = world.bytes as f64 / setting.port_rate as f64 / time.as_secs_f64();
    let (drops, grants, hash) = (world.drops, world.grants, world.log.hash());
    Ok(IncastReport { time, drops, grants, goodput, hash })
}

impl World {
    fn begin(&mut self) {
        for sender in 0..self.setting.senders as usize {
            let total = self.setting.bytes / 2 + self.draw.below(self.setting.bytes / 2 + 1);
            self.senders.push(Sender { total, ..Sender::default() });
            self.open.insert(sender);
            let wait = self.draw.time(Duration::ZERO, Duration::from_micros(100));
            self.plan(wait, Event::Add(sender));
            if self.setting.stops && self.draw.permille(500) {
                let wait = self.draw.time(Duration::ZERO, Duration::from_millis(40));
                self.plan(wait, Event::Stop(sender));
                let rest = self.draw.time(Duration::from_millis(1), Duration::from_secs(2));
                self.plan(wait + rest, Event::Resume(sender));
            }
        }
        if self.setting.short_until > Duration::ZERO {
            self.plan(Duration::from_millis(1), Event::Short);
        }
    }

    fn plan(&mut self, after: Duration, event: Event) {
        self.plan_at(self.now + after, event);
    }

    fn plan_at(&mut self, at: Duration, event: Event) {
        self.events.plan(Time::from_ps(at.as_nanos() as u64 * 1_000), event);
    }

    fn way(&mut self) -> Duration {
        self.draw.time(WAY_MAX / 4, WAY_MAX)
    }

    fn look(&mut self) -> Duration {
        self.draw.time(Duration::ZERO, self.setting.look_max)
    }

    fn is_done(&self) -> bool {
        self.now >= self.setting.short_until && self.open.is_empty()
    }

    fn happen(&mut self, event: Event) -> Check {
        match event {
            Event::Add(at) => {
                let (now, sender) = (self.now, &mut self.senders[at]);
                (sender.is_added, sender.added) = (true, now);
                let total = sender.total;
                if self.receiver.is_none() {
                    (sender.may, sender.granted) = (total, total);
                    self.send(at);
                }
                self.begin_step();
                if let Some(receiver) = &mut self.receiver {
                    receiver.add(at, total, now);
                }
            }
            Event::Granted { sender: at, upto } => {
                let sender = &mut self.senders[at];
                sender.may = sender.may.max(upto);
                self.send(at);
            }
            Event::Acknowledged { sender: at, upto } => {
                let sender = &mut self.senders[at];
                sender.acknowledged = sender.acknowledged.max(upto);
                self.send(at);
            }
            Event::Enter(packet) => self.enter(packet)?,
            Event::Arrive(packet) => self.arrive(packet)?,
            Event::Found { sender, bytes } => {
                self.count_credit(sender, bytes);
                if let Some(receiver) = &mut self.receiver {
                    receiver.received(sender, bytes, self.now);
                }
                self.end_step();
            }
            Event::Stop(at) => {
                (self.senders[at].is_stopped, self.senders[at].has_stopped) = (true, true);
            }
            Event::Resume(at) => {
                self.senders[at].is_stopped = false;
                self.send(at);
            }
            Event::Wake => self.wakes_at = None,
            Event::Short => self.add_short(),
        }
        self.grant()?;
        self.note_idle();
        Ok(())
    }

    /// A message is about to come by grants.
    fn begin_step(&mut self) {
        if let (Some(credit), Some(receiver)) = (&mut self.credit, &self.receiver)
            && receiver.is_empty()
        {
            credit.begin(self.now);
        }
    }

    fn end_step(&mut self) {
        if let (Some(credit), Some(receiver)) = (&mut self.credit, &self.receiver)
            && receiver.is_empty()
        {
            credit.end(self.now);
        }
    }

    /// Counts bytes for a credit that grows.
    fn count_credit(&mut self, sender: usize, bytes: u64) {
        let (Some(credit), Some(receiver)) = (&mut self.credit, &mut self.receiver) else { return };
        let disorder = std::mem::take(&mut self.senders[sender].disorder);
        if credit.received(bytes, disorder, receiver.has_waiting(), self.now) {
            let limits = credit.limits();
            receiver.set_limits(limits);
            self.most = self.most.map(|most| if limits.bytes > most.bytes { limits } else { most });
        }
    }

    fn open(&self) -> impl Iterator<Item = &Sender> {
        self.open.iter().map(|at| &self.senders[*at])
    }

    /// Has the receiver make its grants.
    fn grant(&mut self) -> Check {
        let Some(mut receiver) = self.receiver.take() else { return Ok(()) };
        while let Some((at, upto)) = receiver.next(self.now) {
            self.grants += 1;
            self.log.note(self.now, format!("sender {at} may send up to {upto}"));
            self.senders[at].granted = upto;
            let way = self.way() + self.look();
            self.plan(way, Event::Granted { sender: at, upto });
        }
        if let Some(at) = receiver.wake_at()
            && self.wakes_at.is_none_or(|planned| planned < self.now)
        {
            self.wakes_at = Some(at);
            self.plan_at(at.max(self.now + Duration::from_millis(1)), Event::Wake);
        }
        self.receiver = Some(receiver);
        self.check_ahead()
    }

    /// Senders that have stopped or wait for a lost packet may keep what they were granted, and others get as much.
    fn check_ahead(&self) -> Check {
        if self.drops > 0 {
            return Ok(());
        }
        let Some(GrantLimits { bytes: Some(most), places: most_places }) = self.most else {
            return Ok(());
        };
        let steady = || self.open().filter(|sender| !sender.has_stopped);
        let places = steady().filter(|sender| sender.granted > sender.received).count();
        ensure(
            places as u32 <= most_places,
            "no more senders than the limit are under way",
            || format!("{places} of {most_places}"),
        )?;
        let ahead: u64 = steady().map(|sender| sender.granted - sender.received).sum();
        ensure(ahead <= most, "no more than the limit is granted and not received", || {
            format!("{ahead} bytes of {most}")
        })
    }

    /// Sends what may be sent.
    fn send(&mut self, at: usize) {
        let rate = self.setting.port_rate;
        loop {
            let sender = &mut self.senders[at];
            let window = sender.may.min(sender.acknowledged + SENDER_WINDOW);
            let bytes = PACKET_BYTES.min(sender.may - sender.sent);
            if sender.is_stopped || bytes == 0 || sender.sent + bytes > window {
                return;
            }
            let offset = sender.sent;
            if offset == sender.parted {
                let rest = sender.may - offset;
                let is_granted_in_parts = sender.may < sender.total;
                let most = if is_granted_in_parts { (rest / 2).max(PIECE_BYTES) } else { rest };
                sender.parted += most.min(PART_BYTES).min(rest);
                sender.parts.push_back(sender.parted);
            }
            // A packet ends with its part.
            let bytes = bytes.min(sender.parted - offset);
            sender.sent += bytes;
            // Every sender's cable has the rate of the port.
            sender.free_at = sender.free_at.max(self.now) + carried(bytes, rate);
            let free_at = sender.free_at;
            let packet = Packet { sender: at, offset, bytes };
            self.plan_at(free_at + WAY_MAX / 4, Event::Enter(packet));
        }
    }

    fn enter(&mut self, packet: Packet) -> Check {
        let Packet { bytes, .. } = packet;
        if self.queued_bytes + bytes > self.setting.port_bytes {
            self.drops += 1;
            self.plan(RETRY, Event::Enter(packet));
            return Ok(());
        }
        if let Some(since) = self.idle_since.take()
            && self.setting.limits.is_some()
            && self.drops == 0
        {
            let stopped = self.senders.iter().filter(|sender| sender.has_stopped).count() as u32;
            let times = stopped.div_ceil(CREDIT_PLACES).max(1);
            let most = if self.setting.stops { times * IDLE_MAX_STOPPED } else { 4 * WAY_MAX }
                + 3 * self.setting.look_max;
            let idle = self.now - since;
            ensure(idle <= most, "the port is not idle while something can be granted", || {
                format!("it was idle for {idle:?}")
            })?;
        }
        self.queued_bytes += bytes;
        self.port_free = self.port_free.max(self.now) + carried(bytes, self.setting.port_rate);
        self.plan_at(self.port_free, Event::Arrive(packet));
        Ok(())
    }

    fn arrive(&mut self, Packet { sender: at, offset, bytes }: Packet) -> Check {
        self.queued_bytes -= bytes;
        self.bytes += bytes;
        let sender = &mut self.senders[at];
        let before = sender.received;
        sender.disorder += u64::from(offset != before);
        sender.apart.insert(offset, bytes);
        while let Some(bytes) = sender.apart.remove(&sender.received) {
            sender.received += bytes;
        }
        let (new, upto) = (sender.received - before, sender.received);
        if sender.received == sender.total {
            self.open.remove(&at);
        }
        let whole = sender.whole;
        while let Some(&end) = sender.parts.front()
            && end <= upto
        {
            sender.whole = end;
            sender.parts.pop_front();
        }
        let found = sender.whole - whole;
        if found > 0 {
            let look = self.look();
            self.plan(look, Event::Found { sender: at, bytes: found });
        }
        if new > 0 {
            let way = self.way();
            self.plan(way, Event::Acknowledged { sender: at, upto });
        }
        self.check_waiting(at)
    }

    /// A message that did not stop has arrived in time, however many shorter ones came.
    fn check_waiting(&self, at: usize) -> Check {
        let sender = &self.senders[at];
        if sender.received < sender.total || sender.has_stopped || self.setting.limits.is_none() {
            return Ok(());
        }
        let pieces = sender.total.div_ceil(32 << 10) as u32;
        let most = Duration::from_millis(500) + PIECE_WAIT_MAX * pieces;
        let time = self.now - sender.added;
        ensure(time <= most, "no message starves", || {
            format!("message {at} of {} bytes took {time:?}, more than {most:?}", sender.total)
        })
    }

    /// One more short message. They all together are a little more than the port can carry.
    fn add_short(&mut self) {
        const BYTES: u64 = 16 << 10;
        let at = self.senders.len();
        self.senders.push(Sender { total: BYTES, ..Sender::default() });
        self.open.insert(at);
        self.plan(Duration::ZERO, Event::Add(at));
        let wait = carried(BYTES, self.setting.port_rate) * 49 / 50;
        if self.now + wait < self.setting.short_until {
            self.plan(wait, Event::Short);
        }
    }

    fn note_idle(&mut self) {
        let has_work = |sender: &Sender| sender.is_added && !sender.is_stopped;
        if self.queued_bytes > 0 || !self.open().any(has_work) {
            self.idle_since = None;
        } else if self.idle_since.is_none() {
            self.idle_since = Some(self.now);
        }
    }

    fn at_end(&self) -> Check {
        let wrong = self.senders.iter().position(|sender| sender.received != sender.total);
        ensure(wrong.is_none(), "every message arrives", || format!("not that of {wrong:?}"))
    }
}

/// The time in which so many bytes are carried.
fn carried(bytes: u64, rate: u64) -> Duration {
    Duration::from_nanos(bytes * 1_000_000_000 / rate)
}
