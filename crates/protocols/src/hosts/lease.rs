//! A host's side of the heartbeats: how long its view is valid, and when its part of the job ends.
//!
//! The host's view is valid until T after the sending time of the heartbeat that the arbiter's newest echo names. Past
//! that the host *holds*: it accepts no entries of groups with far hosts, takes no names and opens no lanes. At L it
//! ends its part of the job, or at once when the arbiter says that it is excluded.
//!
//! A daemon that was stopped for longer than L holds as soon as it goes on, but it does not end its part before it has
//! looked punctually for a whole T. The arbiter has not called its host lost if the host's kernel answered, and renews
//! the view within that time; otherwise it excludes the host.
//!
//! A daemon that has started again takes the lease over. Its own view is not valid before the arbiter has answered it, and
//! the end of the lease does not move: the processes have run on, and the arbiter counts from its last answer to any run.

use std::collections::VecDeque;
use std::time::Duration;

use landeck_wire::HostIncarnation;
use landeck_wire::heartbeat::Heartbeat;

use super::runs::numbers_before;
use super::timing::{HostTiming, Looks};

/// The reason why a host ends its part of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostEnd {
    /// The arbiter has not answered for the whole lease.
    Expired {
        /// The time since the last heartbeat that the arbiter echoed.
        silent: Duration,
    },
    /// The arbiter has called this incarnation lost.
    Excluded,
}

/// An action for the host's daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseOutput {
    /// Send this heartbeat to the arbiter.
    Send {
        /// Its number.
        number: u64,
        /// Its sealed part.
        heartbeat: Heartbeat,
    },
    /// End the processes of this host's part, and say so to the arbiter. It comes once.
    End(HostEnd),
}

/// The lease of a host, at its daemon.
#[derive(Clone, Debug)]
pub struct Lease {
    timing: HostTiming,
    own: HostIncarnation,
    arbiter: HostIncarnation,
    boot: u128,
    /// The heartbeats that the arbiter may still echo, with their sending times.
    sent: VecDeque<(u64, Duration)>,
    next_number: u64,
    next_beat: Duration,
    /// The newest number of the arbiter's heartbeats.
    heard: u64,
    /// The sending time of the newest heartbeat that the arbiter has echoed.
    renewed: Option<Duration>,
    /// From when the lease counts without such a heartbeat.
    began: Duration,
    looks: Looks,
    end: Option<HostEnd>,
    is_end_told: bool,
}

impl Lease {
    /// Creates the lease of a daemon, which counts from `now`. That must be before the daemon asks to be admitted: the
    /// arbiter counts from its answer, and this host's part must be over when the arbiter calls it gone. The view is not
    /// valid before the arbiter's first echo.
    #[must_use]
    pub fn new(
        timing: HostTiming,
        own: HostIncarnation,
        arbiter: HostIncarnation,
        boot: u128,
        now: Duration,
    ) -> Self {
        Self {
            timing,
            own,
            arbiter,
            boot,
            sent: VecDeque::new(),
            next_number: 1,
            next_beat: now,
            heard: 0,
            renewed: None,
            began: now,
            looks: Looks::new(now),
            end: None,
            is_end_told: false,
        }
    }

    /// The lease of this run of a daemon that has started again. The lease counts from `renewed`: the run before had
    /// that from [`Lease::counts_from`], by the clock that both have.
    #[must_use]
    pub fn resumed(mut self, run: u32, renewed: Duration) -> Self {
        self.looks = Looks::resumed(renewed, self.began);
        (self.next_number, self.began) = (numbers_before(run) + 1, renewed);
        self
    }

    /// The time from which the lease counts: that at which the newest heartbeat was sent that the arbiter has echoed.
    #[must_use]
    pub fn counts_from(&self) -> Duration {
        self.renewed.unwrap_or(self.began)
    }

    /// Takes a heartbeat of the arbiter. An old one, or one of another incarnation, changes nothing.
    pub fn hear(&mut self, number: u64, heartbeat: &Heartbeat) {
        if heartbeat.incarnation != self.arbiter || number <= self.heard {
            return;
        }
        if self.heard == 0 {
            // The arbiter may not have known this host yet when the first heartbeat was sent.
            self.next_beat = Duration::ZERO;
        }
        self.heard = number;
        while let Some(&(sent, at)) = self.sent.front().filter(|(sent, _)| *sent <= heartbeat.echo)
        {
            self.sent.pop_front();
            if sent == heartbeat.echo {
                self.renewed = Some(at);
            }
        }
    }

    /// Takes the arbiter's answer that an incarnation is excluded.
    pub fn excluded(&mut self, incarnation: HostIncarnation) {
        if incarnation == self.own && self.end.is_none() {
            self.end = Some(HostEnd::Excluded);
        }
    }

    /// Looks at the time. `drained` says that the driver has read everything that its sockets held, `applied` is the
    /// number of the last word that this host has applied.
    pub fn look(&mut self, now: Duration, drained: bool, applied: u64) -> Vec<LeaseOutput> {
        self.looks.look(now, drained, self.timing);
        let silent = now.saturating_sub(self.counts_from());
        if self.end.is_none() && silent >= self.timing.lease() && self.looks.may_judge(self.timing)
        {
            self.end = Some(HostEnd::Expired { silent });
        }
        if let Some(end) = self.end {
            let is_told = std::mem::replace(&mut self.is_end_told, true);
            return if is_told { Vec::new() } else { vec![LeaseOutput::End(end)] };
        }
        if now < self.next_beat {
            return Vec::new();
        }
        self.next_beat = now + self.timing.interval();
        vec![self.beat(now, applied)]
    }

    /// The time at which the driver has to look again, at the latest: at once, if this host's part is to end. `None` once it
    /// has ended.
    #[must_use]
    pub fn next_look(&self) -> Option<Duration> {
        if self.end.is_some() {
            return (!self.is_end_told).then_some(Duration::ZERO);
        }
        let ends = self.counts_from() + self.timing.lease();
        Some(self.next_beat.min(ends.max(self.looks.judges_from(self.timing))))
    }

    /// Whether this host may accept entries of groups with far hosts, take names and open lanes.
    #[must_use]
    pub fn is_valid(&self, now: Duration) -> bool {
        self.end.is_none() && self.valid_until().is_some_and(|until| now < until)
    }

    /// The time until which the view is valid. `None` if the arbiter has never answered.
    #[must_use]
    pub fn valid_until(&self) -> Option<Duration> {
        self.renewed.map(|at| at + self.timing.timeout())
    }

    /// The reason of the end of this host's part, if it has ended.
    #[must_use]
    pub const fn end(&self) -> Option<HostEnd> {
        self.end
    }

    fn beat(&mut self, now: Duration, applied: u64) -> LeaseOutput {
        let number = self.next_number;
        self.next_number += 1;
        // An echo of an older heartbeat could not keep this host's part from its end.
        let lease = self.timing.lease();
        while self.sent.front().is_some_and(|(_, at)| *at + lease <= now) {
            self.sent.pop_front();
        }
        self.sent.push_back((number, now));
        let heartbeat =
            Heartbeat { echo: self.heard, incarnation: self.own, word: applied, boot: self.boot };
        LeaseOutput::Send { number, heartbeat }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: HostIncarnation = HostIncarnation(7);
    const ARBITER: HostIncarnation = HostIncarnation(1);

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn lease() -> Lease {
        Lease::new(HostTiming::new(at(3_000)), OWN, ARBITER, 5, at(0))
    }

    fn echo(echo: u64) -> Heartbeat {
        Heartbeat { echo, incarnation: ARBITER, word: 0, boot: 0 }
    }

    #[test]
    fn a_view_is_valid_from_the_sending_of_the_echoed_heartbeat_on() {
        let mut lease = lease();
        assert_eq!((lease.look(at(0), true, 0).len(), lease.is_valid(at(0))), (1, false));
        assert_eq!(
            (lease.look(at(299), true, 0).len(), lease.look(at(300), true, 4).len()),
            (0, 1)
        );
        lease.hear(1, &echo(1));
        assert_eq!(lease.valid_until(), Some(at(3_000)));
        assert!(lease.is_valid(at(2_999)) && !lease.is_valid(at(3_000)));
        lease.hear(2, &Heartbeat { incarnation: OWN, ..echo(2) });
        assert_eq!(lease.valid_until(), Some(at(3_000)), "not from the arbiter");
        lease.hear(3, &echo(2));
        assert_eq!(lease.valid_until(), Some(at(3_300)));
        lease.hear(2, &echo(1));
        lease.hear(4, &echo(99));
        assert_eq!(
            lease.valid_until(),
            Some(at(3_300)),
            "neither an old heartbeat nor one never sent"
        );
    }

    #[test]
    fn at_the_end_of_the_lease_the_part_ends_once() {
        let mut lease = lease();
        let mut ends = Vec::new();
        for now in (0..12_000).step_by(300) {
            let outputs = lease.look(at(now), true, 0);
            ends.extend(
                outputs.iter().filter(|it| matches!(it, LeaseOutput::End(_))).map(|it| (now, *it)),
            );
        }
        let end = HostEnd::Expired { silent: at(10_200) };
        assert_eq!(ends, [(10_200, LeaseOutput::End(end))]);
        assert_eq!(lease.end(), Some(end));
    }

    #[test]
    fn an_excluded_host_ends_at_once_and_only_its_own_incarnation() {
        let mut lease = lease();
        lease.look(at(0), true, 0);
        lease.hear(1, &echo(1));
        lease.excluded(HostIncarnation(6));
        assert!(lease.is_valid(at(1)));
        lease.excluded(OWN);
        assert!(!lease.is_valid(at(1)));
        assert_eq!(lease.next_look(), Some(at(0)), "its end is to be told");
        assert_eq!(lease.look(at(2), true, 0), [LeaseOutput::End(HostEnd::Excluded)]);
        assert_eq!(lease.look(at(900), true, 0), []);
        assert_eq!(lease.next_look(), None);
    }

    /// When a lease ends without an answer, looked at punctually from this time on.
    fn end_from(mut lease: Lease, from: u64) -> u64 {
        let mut looks = (from..30_000).step_by(100);
        let ends = |now: &u64| {
            lease.look(at(*now), true, 0).iter().any(|it| matches!(it, LeaseOutput::End(_)))
        };
        looks.find(ends).unwrap_or_default()
    }

    #[test]
    fn a_daemon_that_starts_again_ends_when_the_run_before_would_have() {
        let again = |now, run| {
            Lease::new(HostTiming::new(at(3_000)), OWN, ARBITER, 5, at(now)).resumed(run, at(500))
        };
        let ends = [600, 5_000, 10_400].map(|now| end_from(again(now, 1), now));
        assert_eq!(ends, [10_500; 3]);
        assert_eq!(end_from(again(12_000, 1), 12_000), 12_000, "also if the run before was late");
        let mut lease = again(2_000, 2);
        let outputs = lease.look(at(2_000), true, 0);
        let first = (2 << 32) + 1;
        assert!(matches!(outputs[..], [LeaseOutput::Send { number, .. }] if number == first));
        lease.hear(7, &echo(first - 1));
        assert!(!lease.is_valid(at(2_001)), "an echo of the run before");
        lease.hear(8, &echo(first));
        assert_eq!((lease.is_valid(at(2_001)), lease.counts_from()), (true, at(2_000)));
    }

    #[test]
    fn a_daemon_that_was_stopped_for_longer_than_its_lease_holds_and_asks_first() {
        let mut lease = lease();
        lease.look(at(0), true, 0);
        lease.hear(1, &echo(1));
        let outputs = lease.look(at(60_000), true, 0);
        assert!(matches!(outputs[..], [LeaseOutput::Send { number: 2, .. }]), "{outputs:?}");
        assert!(!lease.is_valid(at(60_000)));
        lease.hear(2, &echo(2));
        assert!(lease.is_valid(at(60_001)));
    }
}
