//! A run of one direction that a pair carries over connections that break, in its two uses besides lanes: relayed messages,
//! whose receipts are grants, and the contents of trunks, whose old trunk is read until the new one is open.

use std::time::Duration;

use landeck_channel::pair::{AHEAD_MAX, LaneError, Pair, Positions};

use super::draw::Draw;
use super::event_log::{EventLog, ProtocolFailure};
use super::host_checks::{Check, ensure};
use landeck_simulator::{Events, Time};

/// The frames before the last connection.
const FRAMES: u64 = 4_000;
/// The frames that the receiver of relayed messages grants beyond what it has taken.
const WINDOW: u64 = 12;
/// The contents that come at once while there is no trunk.
const BURST: u64 = AHEAD_MAX + 100;
/// The connections before the last one, at least.
const CONNECTIONS: u32 = 10;
const ONCE: &str = "no frame is lost or twice";

/// The use of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// A process sends to a relay, which lays what comes for a receiver.
    Relayed,
    /// A daemon sends to another one.
    Trunk,
}

/// The result of a run in which all properties held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CarriedReport {
    /// The frames that arrived.
    pub(crate) frames: u64,
    /// The connections that were opened.
    pub(crate) connections: u32,
    /// A number that depends on everything that happened.
    pub(crate) hash: u64,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// The sender pushes and sends.
    Send,
    /// The receiver takes what lies there, and tells.
    Take,
    /// A frame comes to the other end.
    Frame {
        connection: u32,
        position: u64,
    },
    /// The sender hears what was received and granted. The first words of a connection open it.
    Word {
        connection: u32,
        received: u64,
        granted: u64,
    },
    /// The other end takes a connection.
    Open(u32),
    Break,
}

struct World {
    usage: Use,
    draw: Draw,
    events: Events<Event>,
    now: Duration,
    log: EventLog,
    sender: Pair<u64>,
    other: Pair<()>,
    pushed: u64,
    /// The frames that the receiver of relayed messages has taken from its memory.
    taken: u64,
    told: u64,
    connection: u32,
    is_last: bool,
    /// When the last frame and the last word come.
    arrivals: [Duration; 2],
}

/// Runs a direction over connections that break.
///
/// # Errors
/// [`ProtocolFailure`] if a property did not hold.
pub(crate) fn run(usage: Use, seed: u64) -> Result<CarriedReport, ProtocolFailure> {
    let (sender, other) = match usage {
        Use::Relayed => (Pair::new(WINDOW), Pair::new(WINDOW)),
        Use::Trunk => (Pair::unlimited(), Pair::unlimited()),
    };
    let mut world = World {
        usage,
        draw: Draw::new(seed),
        events: Events::default(),
        now: Duration::ZERO,
        log: EventLog::default(),
        sender,
        other,
        pushed: 0,
        taken: 0,
        told: 0,
        connection: 0,
        is_last: false,
        arrivals: [Duration::ZERO; 2],
    };
    world.renew();
    for event in [Event::Send, Event::Take] {
        world.plan(Duration::ZERO, event);
    }
    world.plan(Duration::from_millis(5), Event::Break);
    while let Some((at, event)) = world.events.pop() {
        world.now = Duration::from_nanos(at.ps() / 1_000);
        if let Err((property, text)) = world.happen(event) {
            return Err(world.log.failure(seed, property, text));
        }
        if world.is_done() || world.now > Duration::from_secs(600) {
            break;
        }
    }
    let (frames, pushed) = (world.other.positions().received, world.pushed);
    let is_whole = ensure(world.is_done(), ONCE, || format!("{frames} of {pushed} have come"));
    match is_whole {
        Err((property, text)) => Err(world.log.failure(seed, property, text)),
        Ok(()) => {
            Ok(CarriedReport { frames, connections: world.connection, hash: world.log.hash() })
        }
    }
}

impl World {
    fn plan(&mut self, after: Duration, event: Event) {
        let at = self.now + after;
        self.events.plan(Time::from_ps(at.as_nanos() as u64 * 1_000), event);
    }

    fn delay(&mut self) -> Duration {
        self.draw.time(Duration::from_micros(10), Duration::from_micros(300))
    }

    fn is_done(&self) -> bool {
        self.is_last
            && self.other.positions().received == self.pushed
            && (self.usage == Use::Relayed || self.sender.may_change_path())
    }

    fn happen(&mut self, event: Event) -> Check {
        match event {
            Event::Send => self.send(),
            Event::Take => {
                self.take();
                Ok(())
            }
            Event::Frame { connection, position } => self.frame(connection, position),
            Event::Word { connection, received, granted } => {
                self.word(connection, received, granted)
            }
            Event::Open(connection) => {
                self.open(connection);
                Ok(())
            }
            Event::Break => {
                self.is_last |= self.pushed >= FRAMES && self.connection > CONNECTIONS;
                if !self.is_last {
                    self.renew();
                    let wait = self.draw.about(Duration::from_millis(8));
                    self.plan(wait, Event::Break);
                }
                Ok(())
            }
        }
    }

    /// Ends the connection. The other end takes the next one before the sender hears of it.
    fn renew(&mut self) {
        self.connection += 1;
        self.log.note(self.now, format!("connection {}", self.connection));
        let wait = self.delay() * 3;
        self.plan(wait, Event::Open(self.connection));
    }

    fn send(&mut self) -> Check {
        let wait = self.delay();
        self.plan(wait, Event::Send);
        let may_burst = self.usage == Use::Trunk && self.sender.lane() < self.connection;
        let is_burst = may_burst && self.pushed < BURST && self.draw.permille(20);
        let pushes = match (self.is_last, is_burst) {
            (true, _) => 0,
            (false, true) => BURST,
            (false, false) => self.draw.below(6),
        };
        for _ in 0..pushes {
            let is_taken = self.sender.push(self.pushed, 0).is_ok();
            ensure(
                is_taken || self.usage == Use::Relayed,
                "a trunk's content never waits",
                || format!("content {} is refused", self.pushed),
            )?;
            self.pushed += u64::from(is_taken);
        }
        let kept = self.pushed - self.sender.received_there();
        ensure(kept <= WINDOW || self.usage == Use::Trunk, "a window is kept at most", || {
            format!("{kept} pieces are kept")
        })?;
        let sends = if self.usage == Use::Trunk { 400 } else { self.draw.below(6) };
        for _ in 0..sends {
            let connection = self.sender.lane();
            let Some((position, &number)) = self.sender.next_to_send() else { break };
            ensure(position == number, ONCE, || format!("frame {number} goes as {position}"))?;
            self.travel(0, connection, Event::Frame { connection, position });
        }
        Ok(())
    }

    /// An event comes to the other end of a connection, in its order, if that carries anything.
    fn travel(&mut self, direction: usize, connection: u32, event: Event) {
        let arrival = (self.now + self.delay()).max(self.arrivals[direction]);
        self.arrivals[direction] = arrival;
        // A trunk may be renewed before it has ended, and what it carries comes.
        let carries = connection == self.connection
            || self.usage == Use::Trunk && connection + 1 == self.connection;
        if carries {
            self.plan(arrival - self.now, event);
        }
    }

    /// The receiver takes pieces, and tells how far it has come.
    fn take(&mut self) {
        let wait = self.delay();
        self.plan(wait, Event::Take);
        let received = self.other.positions().received;
        self.taken = received.min(self.taken + self.draw.below(6));
        let (connection, tells) = (self.other.lane(), self.draw.permille(400));
        if connection == 0 || !tells {
            return;
        }
        match self.usage {
            Use::Relayed if self.other.grant(self.taken + WINDOW - received) => {
                let granted = self.taken + WINDOW;
                self.tell(connection, self.taken, granted);
            }
            Use::Relayed => {}
            Use::Trunk if received > self.told => {
                self.told = received;
                self.tell(connection, received, u64::MAX);
            }
            Use::Trunk => {}
        }
    }

    fn tell(&mut self, connection: u32, received: u64, granted: u64) {
        self.travel(1, connection, Event::Word { connection, received, granted });
    }

    /// The other end says where to go on. A relay closes the older connection unread; a daemon reads its older trunk until
    /// something comes over this one.
    fn open(&mut self, connection: u32) {
        let Positions { received, granted } = self.other.positions();
        if self.usage == Use::Relayed && self.other.open(connection).is_err() {
            return;
        }
        self.tell(connection, received, granted);
    }

    fn frame(&mut self, connection: u32, position: u64) -> Check {
        self.log.note(self.now, format!("frame {position} on connection {connection}"));
        let before = self.other.positions().received;
        if self.usage == Use::Trunk {
            let _ = self.other.open(connection);
            if connection < self.other.lane() {
                return Ok(());
            }
            if position < before {
                // The sender has not heard how far the receiver is.
                self.told = 0;
                return Ok(());
            }
        }
        let arrived = match self.usage {
            Use::Relayed => self.other.arrive(connection, position as u16),
            Use::Trunk => self.other.arrive_at(connection, position),
        };
        match arrived {
            Ok(found) => ensure(found == before && position == before, ONCE, || {
                format!("frame {position} came as {found}, not {before}")
            }),
            Err(LaneError::Old { .. }) => Ok(()),
            Err(error @ LaneError::Position { .. }) => ensure(false, ONCE, || error.to_string()),
        }
    }

    fn word(&mut self, connection: u32, received: u64, granted: u64) -> Check {
        if connection < self.sender.lane() {
            return Ok(());
        }
        self.log.note(self.now, format!("{received}, {granted} on connection {connection}"));
        let is_first = self.sender.open(connection).is_ok();
        // A receiver has taken less than the relay, and a receipt may be older than one before.
        let received = match (self.usage, is_first) {
            (Use::Relayed, true) => received,
            _ => received.max(self.sender.received_there()),
        };
        let told = self.sender.told(connection, Positions { received, granted });
        ensure(told.is_ok(), "a receipt can be", || format!("{told:?}"))
    }
}
