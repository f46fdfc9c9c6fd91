//! The measuring of links: which hosts measure each other when, what they send, and what follows from the times.
//!
//! Hosts are numbered by their places in a list that all of them have. In each round a host has one partner at most, so
//! no measurement disturbs another one at the same host. The host with the lower place calls. Both sides follow one
//! script (`SCRIPT`): the caller's pings, a burst of short messages, long data in one direction and then in the other. The
//! bytes say nothing; only their times count. So a side needs nothing of the other but its bytes.
//!
//! A round has a time of its own ([`round_time`]). A side whose time is over keeps what it has found until then. If all pairs have met
//! before the time of all rounds is over, they meet once more, and the least of each figure counts: other work on a host
//! only makes figures larger.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The most hosts that measure each other. In a larger job none do.
pub const HOSTS_MAX: usize = 32;
/// The least time that a round may take.
const ROUND: Duration = Duration::from_millis(7);
/// The time of all rounds of eight hosts. Fewer hosts have as much: on a busy host a partner may be late.
const ROUNDS: Duration = Duration::from_millis(49);

const PINGS: usize = 5;
const SHORT_BYTES: usize = 64;
const BURST: usize = 16;
const LONG_BYTES: usize = 256 << 10;

/// The number of rounds in which all of these hosts meet each other.
pub const fn rounds(hosts: usize) -> usize {
    (hosts + hosts % 2).saturating_sub(1)
}

/// The most time of each of these rounds.
pub fn round_time(hosts: usize) -> Duration {
    ROUND.max(ROUNDS / rounds(hosts).max(1) as u32)
}

/// The partner of a host in a round, if it has one.
pub fn partner(place: usize, hosts: usize, round: usize) -> Option<usize> {
    let ring = rounds(hosts);
    if place >= hosts || round >= ring {
        return None;
    }
    // The places whose sum is the round meet. The one that would meet itself meets the last place, which is not in the
    // ring; with an odd number of hosts nobody is there.
    let partner = match place {
        place if place == ring => (0..ring).find(|&other| 2 * other % ring == round)?,
        place if 2 * place % ring == round => ring,
        place => (round + ring - place) % ring,
    };
    (partner < hosts && partner != place).then_some(partner)
}

/// A message of the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MeasuringMessage {
    is_callers: bool,
    /// The number of pieces that are sent one by one.
    pieces: usize,
    bytes: usize,
    aim: Aim,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aim {
    Nothing,
    /// Its arrival ends a round trip.
    Latency,
    /// Its arrival ends a round trip of a burst.
    Gap,
    /// Its bytes are long data.
    Rate,
}

const fn short(is_callers: bool, aim: Aim) -> MeasuringMessage {
    MeasuringMessage { is_callers, pieces: 1, bytes: SHORT_BYTES, aim }
}

const fn long(is_callers: bool) -> MeasuringMessage {
    MeasuringMessage { is_callers, pieces: 1, bytes: LONG_BYTES, aim: Aim::Rate }
}

/// Everything that is sent, in order. The sides take turns.
const SCRIPT: [MeasuringMessage; 2 * PINGS + 4] = {
    let mut script = [short(true, Aim::Nothing); 2 * PINGS + 4];
    let mut ping = 0;
    while ping < PINGS {
        script[2 * ping + 1] = short(false, Aim::Latency);
        ping += 1;
    }
    let burst = BURST * SHORT_BYTES;
    script[2 * PINGS] =
        MeasuringMessage { is_callers: true, pieces: BURST, bytes: burst, aim: Aim::Nothing };
    script[2 * PINGS + 1] = short(false, Aim::Gap);
    script[2 * PINGS + 2] = long(true);
    script[2 * PINGS + 3] = long(false);
    script
};

/// The findings of one side about a link, in picoseconds; `None` for what its time did not suffice for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkSight {
    /// Half of the shortest round trip.
    pub latency_ps: Option<u64>,
    /// The time for each message of the burst.
    pub gap_ps: Option<u64>,
    /// 1 KiB of the long data that came in.
    pub kib_ps: Option<u64>,
}

impl LinkSight {
    /// Joins the findings of both sides: the slower one of each figure counts.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        // None is less than each time.
        Self {
            latency_ps: self.latency_ps.max(other.latency_ps),
            gap_ps: self.gap_ps.max(other.gap_ps),
            kib_ps: self.kib_ps.max(other.kib_ps),
        }
    }

    /// Joins the findings of one side at two times: the lesser one of each figure counts.
    fn least(self, other: Self) -> Self {
        let least = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
        Self {
            latency_ps: least(self.latency_ps, other.latency_ps),
            gap_ps: least(self.gap_ps, other.gap_ps),
            kib_ps: least(self.kib_ps, other.kib_ps),
        }
    }

    /// The figures as words: latency, gap, and 1 KiB. Those that were not found are 0.
    pub fn to_words(self) -> [u64; 3] {
        [self.latency_ps, self.gap_ps, self.kib_ps].map(Option::unwrap_or_default)
    }
}

/// The next step of a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeStep {
    /// Send so many bytes. Each piece is sent by itself.
    Send {
        /// The bytes of a piece.
        piece_bytes: usize,
    },
    /// Receive so many bytes at most.
    Receive {
        /// The bytes.
        bytes: usize,
    },
    /// Nothing is left.
    Over,
}

/// One side of a measurement of a link.
#[derive(Clone, Debug)]
pub struct LinkProbe {
    is_caller: bool,
    /// The number of the current message.
    message: usize,
    /// The bytes of it that were sent or have come.
    bytes: usize,
    /// When the message before was complete.
    since: Duration,
    /// When the message before that was: where a round trip began.
    before: Duration,
    /// When long data came, and how many bytes had come by then.
    arrivals: Vec<(Duration, usize)>,
    round_trip: Option<Duration>,
    sight: LinkSight,
}

impl LinkProbe {
    /// A side that begins now.
    pub const fn new(is_caller: bool, now: Duration) -> Self {
        Self {
            is_caller,
            message: 0,
            bytes: 0,
            since: now,
            before: now,
            arrivals: Vec::new(),
            round_trip: None,
            sight: LinkSight { latency_ps: None, gap_ps: None, kib_ps: None },
        }
    }

    /// The next step.
    pub fn step(&self) -> ProbeStep {
        let Some(message) = SCRIPT.get(self.message) else { return ProbeStep::Over };
        let left = message.bytes - self.bytes;
        match message.is_callers == self.is_caller {
            true => {
                let piece = message.bytes / message.pieces;
                ProbeStep::Send { piece_bytes: left.min(piece - self.bytes % piece) }
            }
            false => ProbeStep::Receive { bytes: left },
        }
    }

    /// So many bytes were sent.
    pub fn sent(&mut self, bytes: usize, now: Duration) {
        self.passed(bytes, now);
    }

    /// So many bytes have come.
    pub fn received(&mut self, bytes: usize, now: Duration) {
        let Some(message) = SCRIPT.get(self.message) else { return };
        if message.aim == Aim::Rate {
            self.arrivals.push((now, self.bytes + bytes));
        }
        self.passed(bytes, now);
    }

    fn passed(&mut self, bytes: usize, now: Duration) {
        let Some(message) = SCRIPT.get(self.message) else { return };
        self.bytes += bytes;
        if self.bytes < message.bytes {
            return;
        }
        let is_own = message.is_callers == self.is_caller;
        match message.aim {
            Aim::Latency if !is_own => {
                let trip = now.saturating_sub(self.before);
                let least = self.round_trip.map_or(trip, |known| known.min(trip));
                self.round_trip = Some(least);
                self.sight.latency_ps = Some(picoseconds(least / 2));
            }
            Aim::Gap if !is_own => {
                let more =
                    now.saturating_sub(self.before).saturating_sub(self.round_trip.unwrap_or(now));
                // A gap that is longer than the latency is a pause of a processor.
                // Behind a disturbed latency the burst may seem to take no time.
                let gap_ps = picoseconds(more / (BURST as u32 - 1));
                let latency_ps = self.sight.latency_ps.unwrap_or(gap_ps);
                self.sight.gap_ps = Some(gap_ps.clamp(latency_ps.div_ceil(32), latency_ps));
            }
            Aim::Rate if !is_own => self.sight.kib_ps = self.kib_ps(now),
            _ => {}
        }
        (self.message, self.bytes) = (self.message + 1, 0);
        (self.before, self.since) = (self.since, now);
    }

    /// The findings so far, if nothing more comes.
    pub fn sight(&self, now: Duration) -> LinkSight {
        let is_incoming = SCRIPT.get(self.message).is_some_and(|message| {
            message.aim == Aim::Rate && message.is_callers != self.is_caller
        });
        match is_incoming {
            true => LinkSight { kib_ps: self.kib_ps(now), ..self.sight },
            false => self.sight,
        }
    }

    /// The time of 1 KiB of the long data. The second half of what has come counts: the first one comes faster than the
    /// link, where queues on the way are empty at first, or slower, where TCP begins slowly. It is counted from the last
    /// arrival before it: a side that was paused there finds much of it at once.
    fn kib_ps(&self, now: Duration) -> Option<u64> {
        let &(last_at, all) = self.arrivals.last()?;
        let is_whole = all >= LONG_BYTES;
        let end = if is_whole { last_at } else { now };
        let is_first_half = |&&(_, bytes): &&(Duration, usize)| 2 * bytes < all;
        let first_half = self.arrivals.iter().rev().find(is_first_half);
        let (from, before) = first_half.copied().unwrap_or((self.since, 0));
        let time_ps = u128::from(picoseconds(end.saturating_sub(from)));
        u64::try_from(time_ps * 1024 / (all - before) as u128).ok().map(|kib_ps| kib_ps.max(1))
    }
}

fn picoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).map_or(u64::MAX, |ns| ns.saturating_mul(1000)).max(1)
}

/// The part of a host in a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasuringTurn {
    /// It calls this host.
    Call(usize),
    /// This host calls.
    Await(usize),
    /// All rounds are over.
    Over,
}

/// One host's measuring of its links to all others.
#[derive(Clone, Debug)]
pub struct Measuring {
    place: usize,
    hosts: usize,
    round: usize,
    began: Duration,
    sights: Vec<(usize, LinkSight)>,
}

impl Measuring {
    /// The measuring of the host with this place in the list, which begins now.
    pub const fn new(place: usize, hosts: usize, now: Duration) -> Self {
        Self { place, hosts, round: 0, began: now, sights: Vec::new() }
    }

    /// Passes rounds without a partner, and those whose time is over. Returns what to do.
    pub fn turn(&mut self, now: Duration) -> MeasuringTurn {
        while self.round < 2 * rounds(self.hosts) {
            match self.partner() {
                Some(other) if now < self.until() => {
                    return match self.place < other {
                        true => MeasuringTurn::Call(other),
                        false => MeasuringTurn::Await(other),
                    };
                }
                _ => self.round += 1,
            }
        }
        MeasuringTurn::Over
    }

    /// The number of the round.
    pub const fn round(&self) -> usize {
        self.round
    }

    fn partner(&self) -> Option<usize> {
        partner(self.place, self.hosts, self.round % rounds(self.hosts).max(1))
    }

    /// When the current round is over. Rounds that were quick leave their time to later ones.
    pub fn until(&self) -> Duration {
        let rounds = (self.round + 1).min(rounds(self.hosts)) as u32;
        self.began + round_time(self.hosts) * rounds
    }

    /// Ends the round with these findings about the partner.
    pub fn found(&mut self, sight: LinkSight) {
        if let Some(other) = self.partner() {
            match self.sights.iter_mut().find(|(known, _)| *known == other) {
                Some((_, known)) => *known = known.least(sight),
                None => self.sights.push((other, sight)),
            }
        }
        self.round += 1;
    }

    /// The findings, by the places of partners.
    pub fn sights(&self) -> &[(usize, LinkSight)] {
        &self.sights
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    #[test]
    fn every_host_meets_every_other_one_once() {
        for hosts in 2..=HOSTS_MAX {
            let mut met = vec![vec![0; hosts]; hosts];
            for round in 0..rounds(hosts) {
                for (place, row) in met.iter_mut().enumerate() {
                    let Some(other) = partner(place, hosts, round) else { continue };
                    assert_eq!(partner(other, hosts, round), Some(place), "{hosts} in {round}");
                    row[other] += 1;
                }
            }
            for (place, row) in met.iter().enumerate() {
                let right = (0..hosts).all(|other| row[other] == u32::from(other != place));
                assert!(right, "{hosts} hosts, {place}: {row:?}");
            }
        }
        for hosts in 2..=8 {
            assert!(round_time(hosts) * rounds(hosts) as u32 <= Duration::from_millis(50));
        }
        assert_eq!(round_time(HOSTS_MAX), ROUND);
        assert_eq!([partner(0, 1, 0), partner(0, 2, 1), partner(5, 2, 0)], [None; 3]);
    }

    /// A modelled link in one direction: a queue that passes some bytes at once and all others at a rate.
    struct Pipe {
        latency: Duration,
        ns_per_kib: u64,
        bucket: usize,
        free_at: Duration,
    }

    impl Pipe {
        /// The arrivals of a message that is sent at a time, in packets.
        fn carry(&mut self, bytes: usize, at: Duration) -> Vec<(Duration, usize)> {
            const PACKET: usize = 16 << 10;
            let mut left = bytes;
            let mut arrivals = Vec::new();
            while left > 0 {
                let packet = left.min(PACKET);
                left -= packet;
                let start = self.free_at.max(at);
                let quick = packet.min(self.bucket);
                self.bucket -= quick;
                let time = Duration::from_nanos((packet - quick) as u64 * self.ns_per_kib / 1024);
                // The sender's own work for a packet.
                self.free_at = start + time + us(1);
                arrivals.push((self.free_at + self.latency, packet));
            }
            arrivals
        }
    }

    /// Runs both sides until one has nothing to do before its time is over. Returns both findings, and when they ended.
    fn measured(pipes: [(u64, u64, usize); 2]) -> (LinkSight, Duration) {
        let mut pipes = pipes.map(|(latency_us, ns_per_kib, bucket)| Pipe {
            latency: us(latency_us),
            ns_per_kib,
            bucket,
            free_at: Duration::ZERO,
        });
        let mut sides =
            [LinkProbe::new(true, Duration::ZERO), LinkProbe::new(false, Duration::ZERO)];
        let (mut clocks, mut coming) = ([Duration::ZERO; 2], [Vec::new(), Vec::new()]);
        loop {
            let mut is_still = true;
            for side in 0..2 {
                let now = clocks[side];
                match sides[side].step() {
                    ProbeStep::Send { piece_bytes } if now < ROUND => {
                        coming[1 - side].extend(pipes[side].carry(piece_bytes, now));
                        clocks[side] += us(1);
                        sides[side].sent(piece_bytes, clocks[side]);
                        is_still = false;
                    }
                    ProbeStep::Receive { .. } if !coming[side].is_empty() => {
                        let (at, bytes) = coming[side].remove(0);
                        if at < ROUND {
                            clocks[side] = now.max(at);
                            sides[side].received(bytes, clocks[side]);
                            is_still = false;
                        }
                    }
                    _ => {}
                }
            }
            if is_still {
                let is_over = sides.iter().all(|side| side.step() == ProbeStep::Over);
                let end = if is_over { clocks[0].max(clocks[1]) } else { ROUND };
                return (sides[0].sight(end).with(sides[1].sight(end)), end);
            }
        }
    }

    fn is_near(found_ps: Option<u64>, true_ps: u64) -> bool {
        found_ps.is_some_and(|found| found.abs_diff(true_ps) * 2 <= true_ps)
    }

    #[test]
    fn a_modelled_link_is_found() {
        for (latency_us, ns_per_kib, bucket) in
            [(20, 300, 0), (20, 1_000, 0), (300, 1_000, 0), (50, 8_000, 128 << 10), (5, 150, 0)]
        {
            let (sight, end) = measured([(latency_us, ns_per_kib, bucket); 2]);
            let about = format!("{latency_us} us, {ns_per_kib} ns: {sight:?} at {end:?}");
            assert!(is_near(sight.latency_ps, latency_us * 1_000_000), "{about}");
            assert!(is_near(sight.kib_ps, ns_per_kib * 1000), "{about}");
            assert!(sight.gap_ps.is_some() && end <= ROUND, "{about}");
        }
    }

    #[test]
    fn the_slower_direction_counts() {
        for pipes in [[(20, 300, 0), (20, 3_000, 0)], [(20, 3_000, 0), (20, 300, 0)]] {
            let (sight, end) = measured(pipes);
            assert!(is_near(sight.kib_ps, 3_000_000), "{sight:?} at {end:?}");
        }
    }

    #[test]
    fn a_link_for_which_the_time_does_not_suffice_is_known_to_be_slow() {
        // 10 MB/s: behind the bucket some 64 KiB pass in the time.
        let (sight, end) = measured([(20, 100_000, 64 << 10); 2]);
        assert_eq!(end, ROUND);
        assert!(is_near(sight.kib_ps, 100_000_000), "{sight:?}");
        // Nothing but the connection was there in time.
        let (sight, _) = measured([(8_000, 100, 0); 2]);
        assert_eq!(sight, LinkSight::default(), "no figure is guessed");
        let (sight, _) = measured([(1_000, 100, 0); 2]);
        assert!(is_near(sight.latency_ps, 1_000_000_000) && sight.kib_ps.is_none());
    }

    #[test]
    fn a_pause_of_the_receiver_does_not_make_a_link_fast() {
        let mut side =
            LinkProbe { message: 2 * PINGS + 2, ..LinkProbe::new(false, Duration::ZERO) };
        for at in [1_000, 9_000, 9_010, 9_020] {
            side.received(LONG_BYTES / 4, us(at));
        }
        let kib_ps = side.sight(us(9_020)).kib_ps;
        assert!(is_near(kib_ps, 8_000_000_000 / 192), "{kib_ps:?}");
    }

    #[test]
    fn rounds_end_by_their_time_and_leave_it_to_later_ones() {
        let (mut one, time) = (Measuring::new(0, 4, us(100)), round_time(4));
        let first = partner(0, 4, 0).unwrap();
        assert_eq!(one.turn(us(100)), MeasuringTurn::Call(first));
        one.found(LinkSight { gap_ps: Some(3), ..LinkSight::default() });
        assert_eq!(one.until(), us(100) + 2 * time);
        assert_ne!(one.turn(us(200)), MeasuringTurn::Call(first));
        let again = |latency_ps| LinkSight { latency_ps, gap_ps: Some(4), kib_ps: None };
        one.found(again(Some(9)));
        one.found(again(Some(8)));
        assert_eq!(one.turn(us(300)), MeasuringTurn::Call(first), "there is time for once more");
        assert_eq!(one.until(), us(100) + 3 * time);
        one.found(again(Some(7)));
        assert_eq!(one.turn(us(100) + 3 * time), MeasuringTurn::Over);
        let least = LinkSight { latency_ps: Some(7), gap_ps: Some(3), kib_ps: None };
        assert_eq!((one.sights().len(), one.sights()[0]), (3, (first, least)));
        let mut last = Measuring::new(3, 4, us(0));
        assert!(matches!(last.turn(us(1)), MeasuringTurn::Await(_)));
        let mut alone = Measuring::new(0, 1, us(0));
        assert_eq!(alone.turn(us(0)), MeasuringTurn::Over);
        // Of three hosts one has no partner in each round.
        let mut of_three = Measuring::new(0, 3, us(0));
        assert!(matches!(of_three.turn(us(0)), MeasuringTurn::Call(_)));
    }
}
