//! A run of one connection that is looked at: its network is cut for a while or for good, packets are lost, and its receiver
//! does not read at times.

use std::time::Duration;

use landeck_channel::silence::{ConnectionSight, Silence};

use super::draw::Draw;
use super::event_log::{EventLog, ProtocolFailure};
use super::host_checks::{Check, ensure};

/// A connection is given up after this time.
const LIMIT: Duration = Duration::from_millis(2_250);
/// The step of the clock, which is also the time there and back.
const STEP: Duration = Duration::from_millis(10);
/// The first time without an answer after which something is sent again, and the longest.
const RETRY_MIN: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(5);
/// The longest time between two looks.
const LOOK_MAX: Duration = Duration::from_millis(1_200);
/// The bytes that the receiver's system keeps, and those that the sender's does.
const WINDOW: u64 = 1_000;
const QUEUE: u64 = 5_000;
const LENGTH: Duration = Duration::from_secs(400);

/// The result of a run in which all properties held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SilenceReport {
    /// The bytes that were acknowledged.
    pub(crate) bytes: u64,
    /// How often the receiver had read nothing for longer than the limit.
    pub(crate) stops: u32,
    /// Whether the connection was given up in the end.
    pub(crate) is_given_up: bool,
    /// A number that depends on everything that happened.
    pub(crate) hash: u64,
}

struct World {
    draw: Draw,
    log: EventLog,
    now: Duration,
    silence: Silence,
    /// The bytes that were given to the sender's system, that it has sent, and that were acknowledged.
    given: u64,
    sent: u64,
    acknowledged: u64,
    /// The bytes that the receiver has read.
    read: u64,
    /// The window's end, as the sender knows it.
    window_end: u64,
    retry: Duration,
    retry_due: Option<Duration>,
    /// When something was last sent that needs an answer, and when an answer last came.
    asked_at: Duration,
    answered_at: Duration,
    /// The times that something was sent since then.
    unanswered: u32,
    /// The last packet was lost.
    was_lost: bool,
    /// The receiver reads from then on, and the sender writes.
    reads_from: Duration,
    writes_from: Duration,
    /// Since when bytes wait.
    waits_since: Option<Duration>,
    cut: (Duration, Duration),
    /// The last time at which the network was cut.
    was_cut_at: Option<Duration>,
    /// The time at which the connection is cut for good.
    dies_at: Duration,
    look_due: Duration,
    stops: u32,
}

/// Runs a connection until it is given up, or to the end of the run.
///
/// # Errors
/// [`ProtocolFailure`] if a property did not hold.
pub(crate) fn run(seed: u64) -> Result<SilenceReport, ProtocolFailure> {
    let mut draw = Draw::new(seed);
    let dies_at = if draw.permille(700) { draw.time(Duration::ZERO, LENGTH / 2) } else { LENGTH };
    let mut world = World {
        draw,
        log: EventLog::default(),
        now: Duration::ZERO,
        silence: Silence::default(),
        given: 0,
        sent: 0,
        acknowledged: 0,
        read: 0,
        window_end: WINDOW,
        retry: RETRY_MIN,
        retry_due: None,
        asked_at: Duration::ZERO,
        answered_at: Duration::ZERO,
        unanswered: 0,
        was_lost: false,
        reads_from: Duration::ZERO,
        writes_from: Duration::ZERO,
        waits_since: None,
        cut: (LENGTH, LENGTH),
        was_cut_at: None,
        dies_at,
        look_due: Duration::ZERO,
        stops: 0,
    };
    let mut is_given_up = false;
    while world.now < LENGTH && !is_given_up {
        match world.step() {
            Ok(ends) => is_given_up = ends,
            Err((property, text)) => return Err(world.log.failure(seed, property, text)),
        }
    }
    let World { acknowledged: bytes, stops, log, .. } = world;
    Ok(SilenceReport { bytes, stops, is_given_up, hash: log.hash() })
}

impl World {
    fn is_cut(&self) -> bool {
        self.now >= self.dies_at || (self.cut.0..self.cut.1).contains(&self.now)
    }

    /// Lets the clock go on; returns whether the connection is given up.
    fn step(&mut self) -> Result<bool, (&'static str, String)> {
        self.now += STEP;
        self.disturb();
        self.work();
        self.carry();
        let waits = self.given > self.acknowledged;
        self.waits_since = waits.then(|| self.waits_since.unwrap_or(self.now));
        if self.now < self.look_due {
            return self.in_time().map(|()| false);
        }
        let is_late = self.draw.permille(50);
        self.look_due = self.now + if is_late { LOOK_MAX } else { Duration::from_millis(100) };
        let sight = self.sight();
        self.silence.look(self.now, &sight);
        let Some(silent) = self.silence.longer_than(LIMIT, self.now) else {
            return self.in_time().map(|()| false);
        };
        self.log.note(self.now, format!("given up after {silent:?}: {sight:?}"));
        // What was sent in a cut is sent again some time behind its end.
        let is_right =
            self.was_cut_at.is_some_and(|at| self.now < at + 2 * RETRY_MAX + LIMIT + LOOK_MAX);
        ensure(is_right, "a connection that carries is not given up", || {
            format!("silent for {silent:?}, and cut last at {:?}", self.was_cut_at)
        })?;
        Ok(true)
    }

    /// Cuts the network for a moment, and lets the receiver stop.
    fn disturb(&mut self) {
        if self.is_cut() {
            self.was_cut_at = Some(self.now);
        }
        if self.now > self.cut.1 || self.cut.0 == LENGTH {
            let begin = self.now + self.draw.about(Duration::from_secs(20));
            self.cut = (begin, begin + self.draw.time(STEP, Duration::from_millis(1_500)));
        }
        if self.now > self.reads_from && self.draw.permille(1) {
            let time = self.draw.about(Duration::from_secs(10));
            self.reads_from = self.now + time;
            self.stops += u32::from(time > LIMIT);
            self.log.note(self.now, format!("the receiver stops for {time:?}"));
        }
    }

    /// The programs write and read.
    fn work(&mut self) {
        if self.now > self.writes_from && self.draw.permille(1) {
            self.writes_from = self.now + self.draw.about(Duration::from_secs(5));
        }
        if self.now >= self.writes_from && self.draw.permille(30) {
            let room = QUEUE - (self.given - self.acknowledged);
            self.given += self.draw.below(2 * WINDOW).min(room);
        }
        if self.now >= self.reads_from {
            self.read = self.acknowledged;
        }
    }

    /// The sender's system sends, and sends again what has no answer.
    fn carry(&mut self) {
        let is_due = self.retry_due.is_some_and(|due| self.now >= due);
        let is_idle = self.sent == self.acknowledged;
        let can_send = is_idle && self.sent < self.given && self.sent < self.window_end;
        // The receiver's word that its window is open again.
        let opens = self.now >= self.reads_from && self.window_end < self.read + WINDOW;
        if opens && !self.is_cut() {
            self.window_end = self.read + WINDOW;
            (self.retry, self.retry_due) = (RETRY_MIN, None);
        }
        if self.acknowledged == self.given {
            (self.retry, self.retry_due) = (RETRY_MIN, None);
            return;
        }
        if !(is_due || can_send) {
            let _ = self.retry_due.get_or_insert(self.now + self.retry);
            return;
        }
        self.sent = self.given.min(self.window_end);
        self.asked_at = self.now;
        self.unanswered += 1;
        // One may be lost, but not the next one as well.
        self.was_lost = !self.was_lost && self.draw.permille(10);
        if !self.is_cut() && !self.was_lost {
            self.unanswered = 0;
            let before = self.acknowledged;
            (self.answered_at, self.acknowledged) = (self.now, self.sent);
            self.window_end = self.window_end.max(self.read + WINDOW);
            let is_closed = self.acknowledged == before;
            self.retry = if is_closed { (2 * self.retry).min(RETRY_MAX) } else { RETRY_MIN };
        } else {
            self.retry = (2 * self.retry).min(RETRY_MAX);
        }
        self.retry_due = Some(self.now + self.retry);
    }

    fn sight(&self) -> ConnectionSight {
        ConnectionSight {
            waiting_bytes: self.given - self.acknowledged,
            acknowledged_bytes: self.acknowledged,
            is_window_open: self.window_end > self.acknowledged,
            is_asked: self.unanswered >= 2,
            answer_age: self.now - self.answered_at,
        }
    }

    /// A connection that is cut for good, and on which bytes wait, is given up before this has lasted for too long.
    fn in_time(&self) -> Check {
        let since = self.waits_since.map(|since| since.max(self.dies_at));
        // Between two questions whether the window is open nothing can be known.
        let most = LIMIT + 2 * LOOK_MAX + 2 * RETRY_MAX;
        let is_late = since.is_some_and(|since| self.now > since + most);
        ensure(!is_late, "a connection that carries nothing is given up in time", || {
            format!("cut at {:?}, bytes wait since {since:?}: {:?}", self.dies_at, self.sight())
        })
    }
}
