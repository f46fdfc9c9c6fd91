//! A run of one pair of processes whose lanes break: nothing is lost, nothing comes twice.

use std::collections::VecDeque;
use std::time::Duration;

use landeck_channel::pair::{KEPT_MAX, LaneError, Pair, Positions};

use super::draw::Draw;
use super::event_log::{EventLog, ProtocolFailure};
use super::host_checks::{Check, ensure};
use landeck_simulator::{Events, Time};

/// The frames of each side before the last lane.
const FRAMES: u64 = 4_000;
/// The largest frame.
const FRAME_BYTES: u64 = 64 << 10;
/// The frames that each side grants.
const GRANT: u64 = 40;

/// The result of a run in which all properties held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PairReport {
    /// The frames that arrived.
    pub(crate) frames: u64,
    /// The lanes that were opened.
    pub(crate) lanes: u32,
    /// A number that depends on everything that happened.
    pub(crate) hash: u64,
}

#[derive(Clone, Copy, Debug)]
enum Parcel {
    Frame { low: u16, number: u64 },
    Positions(Positions),
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A side pushes, sends, and tells its positions.
    Work(usize),
    Arrive {
        side: usize,
        lane: u32,
        parcel: Parcel,
    },
    /// A new lane comes to a side.
    Open {
        side: usize,
        lane: u32,
    },
    /// A side sees that a lane has ended.
    Closed {
        side: usize,
        lane: u32,
    },
    Break,
    /// A side tries to leave the lane for another path.
    Leave(usize),
}

struct Side {
    pair: Pair<u64>,
    pushed: u64,
    received: u64,
    /// Whether positions have changed since they were told.
    tells: bool,
    /// The parcels of lanes that this side has not opened yet.
    early: VecDeque<(u32, Parcel)>,
    last_arrival: Duration,
}

struct World {
    seed: u64,
    draw: Draw,
    events: Events<Event>,
    now: Duration,
    log: EventLog,
    sides: [Side; 2],
    lane: u32,
    is_last: bool,
    first: u64,
}

/// Runs a pair over lanes that break.
///
/// # Errors
/// [`ProtocolFailure`] if a property did not hold.
pub(crate) fn run(seed: u64) -> Result<PairReport, ProtocolFailure> {
    let mut draw = Draw::new(seed);
    let first = draw.pick(&[0, 65_000, u64::from(u32::MAX) - 500]);
    let side = || Side {
        pair: Pair::at(first, GRANT),
        pushed: 0,
        received: 0,
        tells: false,
        early: VecDeque::new(),
        last_arrival: Duration::ZERO,
    };
    let sides = [side(), side()];
    let (events, log) = (Events::default(), EventLog::default());
    let mut world = World {
        seed,
        draw,
        events,
        now: Duration::ZERO,
        log,
        sides,
        lane: 0,
        is_last: false,
        first,
    };
    world.renew();
    (0..2).for_each(|side| world.plan(Duration::ZERO, Event::Work(side)));
    world.plan(Duration::from_millis(5), Event::Break);
    world.plan(Duration::from_millis(7), Event::Leave(0));
    let end = Duration::from_secs(600);
    while let Some((at, event)) = world.events.pop() {
        world.now = Duration::from_nanos(at.ps() / 1_000);
        let check = world.happen(event);
        if let Err((property, text)) = check {
            return Err(world.log.failure(seed, property, text));
        }
        if world.is_done() || world.now > end {
            break;
        }
    }
    match world.at_rest() {
        Err((property, text)) => Err(world.log.failure(world.seed, property, text)),
        Ok(()) => {
            let frames = world.sides.iter().map(|side| side.received).sum();
            Ok(PairReport { frames, lanes: world.lane, hash: world.log.hash() })
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
            && self.sides.iter().all(|side| side.pushed >= FRAMES && side.pair.may_change_path())
    }

    fn happen(&mut self, event: Event) -> Check {
        match event {
            Event::Work(side) => self.work(side),
            Event::Arrive { side, lane, parcel } => {
                if lane > self.sides[side].pair.lane() {
                    self.sides[side].early.push_back((lane, parcel));
                    return Ok(());
                }
                self.arrive(side, lane, parcel)
            }
            Event::Open { side, lane } => self.open(side, lane),
            Event::Closed { side, lane } => {
                self.sides[side].pair.close(lane);
                Ok(())
            }
            Event::Break => {
                self.break_lane();
                Ok(())
            }
            Event::Leave(side) => self.leave(side),
        }
    }

    fn work(&mut self, at: usize) -> Check {
        let wait = self.delay();
        self.plan(wait, Event::Work(at));
        let pushes = self.draw.below(6);
        for _ in 0..pushes {
            let is_long = self.draw.permille(300);
            let keeps = if is_long { 0 } else { self.draw.below(FRAME_BYTES) as usize };
            let side = &mut self.sides[at];
            if side.pushed < FRAMES && side.pair.push(side.pushed, keeps).is_ok() {
                side.pushed += 1;
            }
        }
        let kept = self.sides[at].pair.kept_bytes();
        ensure(kept <= KEPT_MAX, "a pair keeps at most 256 KiB", || {
            format!("{kept} bytes are kept")
        })?;
        let sends = self.draw.below(6);
        for _ in 0..sends {
            let side = &mut self.sides[at];
            let lane = side.pair.lane();
            let Some((position, &number)) = side.pair.next_to_send() else { break };
            self.send(at, lane, Parcel::Frame { low: position as u16, number });
        }
        let tells = self.draw.permille(400);
        let side = &mut self.sides[at];
        if tells && side.tells {
            side.tells = false;
            side.pair.grant(GRANT);
            let (lane, positions) = (side.pair.lane(), side.pair.positions());
            self.send(at, lane, Parcel::Positions(positions));
        }
        Ok(())
    }

    fn send(&mut self, from: usize, lane: u32, parcel: Parcel) {
        let arrival = self.now + self.delay();
        let side = &mut self.sides[from];
        side.last_arrival = side.last_arrival.max(arrival);
        let after = side.last_arrival - self.now;
        // A lane that has ended carries nothing.
        if lane == self.lane {
            self.plan(after, Event::Arrive { side: 1 - from, lane, parcel });
        }
    }

    fn arrive(&mut self, at: usize, lane: u32, parcel: Parcel) -> Check {
        // What was on its way on a lane that has ended is lost now and then; else its end may still read it.
        if lane < self.lane && self.draw.permille(500) {
            return Ok(());
        }
        self.log.note(self.now, format!("to side {at} on lane {lane}: {parcel:?}"));
        let first = self.first;
        let side = &mut self.sides[at];
        let taken = match parcel {
            Parcel::Frame { low, number } => side.pair.arrive(lane, low).map(|position| {
                side.tells = true;
                let expected = side.received;
                side.received += 1;
                ensure(
                    number == expected && position == first + number,
                    "no frame is lost or twice",
                    || {
                        format!(
                            "side {at} received frame {number} at {position}, not frame {expected}"
                        )
                    },
                )
            }),
            Parcel::Positions(positions) => side.pair.told(lane, positions).map(|_| Ok(())),
        };
        match taken {
            Ok(check) => check,
            Err(LaneError::Old { .. }) => Ok(()),
            Err(error @ LaneError::Position { .. }) => {
                // Behind a frame that was lost with its lane nothing follows.
                let is_over = lane < self.lane;
                ensure(is_over, "no frame is lost or twice", || format!("side {at}: {error}"))
            }
        }
    }

    /// Ends the lane, and has both sides get the next one.
    fn renew(&mut self) {
        let ended = self.lane;
        self.lane += 1;
        let lane = self.lane;
        self.log.note(self.now, format!("lane {lane}"));
        for side in 0..2 {
            let sees_end = self.draw.permille(500);
            if sees_end && ended > 0 {
                let wait = self.delay();
                self.plan(wait, Event::Closed { side, lane: ended });
            }
            let wait = self.delay() * 3;
            self.plan(wait, Event::Open { side, lane });
        }
    }

    fn break_lane(&mut self) {
        let is_enough = self.sides.iter().all(|side| side.pushed >= FRAMES);
        self.is_last |= is_enough;
        if !self.is_last {
            self.renew();
            let wait = self.draw.about(Duration::from_millis(8));
            self.plan(wait, Event::Break);
        }
    }

    fn open(&mut self, at: usize, lane: u32) -> Check {
        let side = &mut self.sides[at];
        let newest = side.pair.lane();
        match side.pair.open(lane) {
            Ok(positions) => {
                ensure(lane > newest, "a lane with a lower number is refused", || {
                    format!("side {at} took lane {lane} after lane {newest}")
                })?;
                self.send(at, lane, Parcel::Positions(positions));
            }
            Err(error) => {
                ensure(lane <= newest, "a wanted lane comes", || error.to_string())?;
            }
        }
        let early = std::mem::take(&mut self.sides[at].early);
        for (lane, parcel) in early {
            self.happen(Event::Arrive { side: at, lane, parcel })?;
        }
        Ok(())
    }

    fn leave(&mut self, at: usize) -> Check {
        let other = self.draw.below(2) as usize;
        let wait = self.draw.about(Duration::from_millis(3));
        self.plan(wait, Event::Leave(other));
        if self.is_last || !self.sides[at].pair.leave_lane() {
            return Ok(());
        }
        let (pushed, received) = (self.sides[at].pushed, self.sides[1 - at].received);
        self.renew();
        ensure(pushed == received, "a pair changes its path when all is received", || {
            format!("side {at} left its lane with {received} of {pushed} frames received")
        })
    }

    fn at_rest(&self) -> Check {
        for (at, side) in self.sides.iter().enumerate() {
            let other = &self.sides[1 - at];
            ensure(
                side.pushed == FRAMES && other.received == FRAMES,
                "no frame is lost or twice",
                || {
                    format!(
                        "side {at} has pushed {} of {FRAMES}, {} have arrived",
                        side.pushed, other.received
                    )
                },
            )?;
        }
        Ok(())
    }
}
