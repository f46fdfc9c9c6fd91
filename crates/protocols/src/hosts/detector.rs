//! The arbiter's side of the heartbeats with one host: when the host is lost, and when it is gone.
//!
//! A heartbeat of the host *confirms* the link if its echo names a newer heartbeat of the arbiter than before. The
//! arbiter echoes the newest confirming heartbeat. So a host that reaches the arbiter and does not hear it is not
//! renewed, and a cut in one direction is as good as one in both.
//!
//! The arbiter *renews* a host's view when it sends a new echo. The host counts from the sending of the heartbeat that
//! is echoed, which was earlier. So its view has ended when the arbiter calls it lost, T + 0.1 s after the renewal.

use std::time::Duration;

use landeck_wire::heartbeat::Heartbeat;
use landeck_wire::{HostIncarnation, HostNumber};
use serde::{Deserialize, Serialize};

use super::runs::numbers_before;
use super::timing::{HostTiming, Looks};

/// The former incarnations of a host that are remembered.
const FORMER_MAX: usize = 64;

/// A host as its detector sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostSight {
    /// Its heartbeats echo.
    Up,
    /// Its daemon does not answer, but its kernel does. It is not lost.
    DaemonSilent,
    /// It has been called lost.
    Lost,
    /// It has been called gone.
    Gone,
}

/// An action for the arbiter's daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DetectorOutput {
    /// Send this heartbeat to the host.
    Send {
        /// Its number.
        number: u64,
        /// Its sealed part.
        heartbeat: Heartbeat,
    },
    /// Give the word that the host is lost.
    Lost {
        /// The incarnation that is lost.
        incarnation: HostIncarnation,
        /// The time since its last renewal.
        silent: Duration,
    },
    /// Give the word that the host is gone.
    Gone {
        /// The incarnation that is gone.
        incarnation: HostIncarnation,
    },
    /// Answer the host that this incarnation is excluded.
    Exclude {
        /// The incarnation.
        incarnation: HostIncarnation,
    },
}

/// The detector of one host, at the arbiter.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Detector {
    timing: HostTiming,
    host: HostNumber,
    /// The arbiter's own incarnation and boot identity, for its heartbeats.
    own: (HostIncarnation, u128),
    incarnation: HostIncarnation,
    former: Vec<HostIncarnation>,
    boot: Option<u128>,
    next_number: u64,
    next_beat: Duration,
    /// The newest number of the host's heartbeats.
    heard: u64,
    /// The newest echo in them.
    echoed: u64,
    /// The newest heartbeat that confirmed the link.
    confirmed: u64,
    /// The echo that was sent last, and when it was new.
    renewed: (u64, Duration),
    /// When the host's kernel last answered.
    answered: Duration,
    looks: Looks,
    sight: HostSight,
}

impl Detector {
    /// Creates the detector of a host that has just been admitted.
    #[must_use]
    pub fn new(
        timing: HostTiming,
        host: HostNumber,
        incarnation: HostIncarnation,
        own: (HostIncarnation, u128),
        now: Duration,
    ) -> Self {
        Self {
            timing,
            host,
            own,
            incarnation,
            former: Vec::new(),
            boot: None,
            next_number: 1,
            next_beat: now,
            heard: 0,
            echoed: 0,
            confirmed: 0,
            renewed: (0, now),
            answered: now,
            looks: Looks::new(now),
            sight: HostSight::Up,
        }
    }

    /// Begins anew with the next incarnation of this host, which has just been admitted.
    #[must_use]
    pub fn succeeded_by(&self, incarnation: HostIncarnation, now: Duration) -> Self {
        let mut former = self.former.clone();
        former.push(self.incarnation);
        let forgotten = former.len().saturating_sub(FORMER_MAX);
        former.drain(..forgotten);
        Self { former, ..Self::new(self.timing, self.host, incarnation, self.own, now) }
    }

    /// Goes on as this run of the arbiter's daemon, which was started again, from what the run before has kept. That may have
    /// renewed the host's view until now.
    #[must_use]
    pub fn resumed(mut self, run: u32, now: Duration) -> Self {
        self.next_number = numbers_before(run) + 1;
        if self.is_living() {
            self.renewed.1 = now;
        }
        self
    }

    /// The host as it is seen now.
    #[must_use]
    pub const fn sight(&self) -> HostSight {
        self.sight
    }

    /// The number of the host.
    #[must_use]
    pub const fn host(&self) -> HostNumber {
        self.host
    }

    /// The incarnation that is watched.
    #[must_use]
    pub const fn incarnation(&self) -> HostIncarnation {
        self.incarnation
    }

    /// When the host's view was last renewed.
    #[must_use]
    pub const fn renewed(&self) -> Duration {
        self.renewed.1
    }

    /// Whether the host may not live: it has been called lost, or its view was last renewed more than half of T ago.
    #[must_use]
    pub fn is_in_doubt(&self, now: Duration) -> bool {
        !self.is_living() || now.saturating_sub(self.renewed.1) > self.timing.doubted_after()
    }

    /// Takes a heartbeat of the host. One of an incarnation that is lost, gone or former is answered.
    pub fn hear(
        &mut self,
        number: u64,
        heartbeat: &Heartbeat,
        now: Duration,
    ) -> Vec<DetectorOutput> {
        let other = heartbeat.incarnation;
        if other != self.incarnation {
            let mut outputs = vec![DetectorOutput::Exclude { incarnation: other }];
            if !self.former.contains(&other) {
                outputs.extend(self.rebooted(heartbeat.boot, now));
            }
            return outputs;
        }
        if !self.is_living() {
            return vec![DetectorOutput::Exclude { incarnation: other }];
        }
        let outputs = self.rebooted(heartbeat.boot, now);
        if outputs.is_empty() && number > self.heard {
            if self.heard == 0 {
                // The view of a host is valid, and its lanes open, once its first heartbeat is answered.
                self.next_beat = now;
            }
            self.boot = Some(heartbeat.boot);
            self.heard = number;
            self.sight = HostSight::Up;
            if heartbeat.echo > self.echoed && heartbeat.echo < self.next_number {
                self.echoed = heartbeat.echo;
                self.confirmed = number;
            }
        }
        outputs
    }

    /// Takes the boot identity that a daemon on this host has shown: another one than before means that the host has
    /// been started anew, so nothing of the old incarnation runs any more.
    pub fn rebooted(&mut self, boot: u128, now: Duration) -> Vec<DetectorOutput> {
        match self.boot {
            Some(known) if known != boot => self.lose(now).into_iter().chain(self.gone()).collect(),
            _ => Vec::new(),
        }
    }

    /// Records that the host's kernel answered at this time: its TCP acknowledgements on the trunk of this incarnation
    /// show it. The kernel also answers on the trunk of a later daemon, which says nothing about this one.
    pub fn kernel_answers(&mut self, incarnation: HostIncarnation, at: Duration) {
        if incarnation == self.incarnation {
            self.answered = self.answered.max(at);
        }
    }

    /// Records that the host said that its part has ended.
    pub fn said_gone(
        &mut self,
        incarnation: HostIncarnation,
        now: Duration,
    ) -> Vec<DetectorOutput> {
        if incarnation != self.incarnation {
            return Vec::new();
        }
        self.lose(now).into_iter().chain(self.gone()).collect()
    }

    /// Looks at the time. `drained` says that the driver has read everything that its sockets held. `word` is the
    /// number of the last word that the arbiter has given.
    pub fn look(&mut self, now: Duration, drained: bool, word: u64) -> Vec<DetectorOutput> {
        self.looks.look(now, drained, self.timing);
        let mut outputs = Vec::new();
        let silent = now.saturating_sub(self.renewed.1);
        if self.looks.may_judge(self.timing) {
            let answer = now.saturating_sub(self.answered);
            if self.is_living() && silent >= self.timing.lost_after() {
                if answer >= self.timing.lost_after() {
                    outputs.extend(self.lose(now));
                } else {
                    self.sight = HostSight::DaemonSilent;
                }
            }
            if self.sight == HostSight::Lost && silent.min(answer) >= self.timing.gone_after() {
                outputs.extend(self.gone());
            }
        }
        if self.is_living() && now >= self.next_beat {
            self.next_beat = now + self.timing.interval();
            outputs.push(self.beat(now, word));
        }
        outputs
    }

    /// The time at which the driver has to look again, at the latest. `None` if the host is gone.
    #[must_use]
    pub fn next_look(&self) -> Option<Duration> {
        let since = self.renewed.1.max(self.answered);
        let judged = |after| (since + after).max(self.looks.judges_from(self.timing));
        match self.sight {
            HostSight::Up | HostSight::DaemonSilent => {
                Some(self.next_beat.min(judged(self.timing.lost_after())))
            }
            // Without punctual looks nothing is judged.
            HostSight::Lost => {
                Some(self.looks.due(self.timing).min(judged(self.timing.gone_after())))
            }
            HostSight::Gone => None,
        }
    }

    const fn is_living(&self) -> bool {
        matches!(self.sight, HostSight::Up | HostSight::DaemonSilent)
    }

    fn lose(&mut self, now: Duration) -> Option<DetectorOutput> {
        let is_first = self.is_living();
        let silent = now.saturating_sub(self.renewed.1);
        is_first.then(|| {
            self.sight = HostSight::Lost;
            DetectorOutput::Lost { incarnation: self.incarnation, silent }
        })
    }

    fn gone(&mut self) -> Option<DetectorOutput> {
        (self.sight != HostSight::Gone).then(|| {
            self.sight = HostSight::Gone;
            DetectorOutput::Gone { incarnation: self.incarnation }
        })
    }

    fn beat(&mut self, now: Duration, word: u64) -> DetectorOutput {
        let number = self.next_number;
        self.next_number += 1;
        if self.confirmed > self.renewed.0 {
            self.renewed = (self.confirmed, now);
        }
        let (incarnation, boot) = self.own;
        let heartbeat = Heartbeat { echo: self.renewed.0, incarnation, word, boot };
        DetectorOutput::Send { number, heartbeat }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: HostIncarnation = HostIncarnation(7);

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn detector() -> Detector {
        let own = (HostIncarnation(1), 4);
        Detector::new(HostTiming::new(at(3_000)), HostNumber(2), HOST, own, at(0))
    }

    fn beat(echo: u64) -> Heartbeat {
        Heartbeat { echo, incarnation: HOST, word: 0, boot: 9 }
    }

    /// Looks when that is due, from one time to another, and returns everything but heartbeats with its time.
    fn looks(detector: &mut Detector, from: u64, to: u64) -> Vec<(u64, DetectorOutput)> {
        let mut verdicts = Vec::new();
        let mut now = from;
        while now <= to {
            let outputs = detector.look(at(now), true, 0);
            let verdict = |it: &&DetectorOutput| !matches!(it, DetectorOutput::Send { .. });
            verdicts.extend(outputs.iter().filter(verdict).map(|it| (now, *it)));
            let next = detector.next_look().map_or(now + 300, |next| next.as_millis() as u64);
            now = next.max(now + 1);
        }
        verdicts
    }

    #[test]
    fn a_silent_host_is_lost_after_the_timeout_and_gone_after_the_lease() {
        let mut detector = detector();
        detector.look(at(0), true, 0);
        detector.hear(1, &beat(1), at(100));
        let verdicts = looks(&mut detector, 300, 20_000);
        let lost = DetectorOutput::Lost { incarnation: HOST, silent: at(3_100) };
        let gone = DetectorOutput::Gone { incarnation: HOST };
        assert_eq!(verdicts, [(3_400, lost), (11_300, gone)], "renewed at 300");
        let answer = detector.hear(2, &beat(2), at(20_001));
        assert_eq!(answer, [DetectorOutput::Exclude { incarnation: HOST }]);
        assert_eq!((detector.sight(), detector.next_look()), (HostSight::Gone, None));
    }

    #[test]
    fn a_host_is_in_doubt_from_half_of_the_timeout_on() {
        let mut detector = detector();
        detector.look(at(0), true, 0);
        detector.hear(1, &beat(1), at(100));
        looks(&mut detector, 300, 3_300);
        let doubts = [300, 1_800, 1_801, 3_300].map(|now| detector.is_in_doubt(at(now)));
        assert_eq!(doubts, [false, false, true, true], "renewed at 300");
        looks(&mut detector, 3_400, 3_400);
        assert_eq!((detector.sight(), detector.is_in_doubt(at(3_400))), (HostSight::Lost, true));
        let mut answers = self::detector();
        looks(&mut answers, 0, 1_600);
        answers.hear(1, &beat(1), at(1_650));
        assert!(answers.is_in_doubt(at(1_700)), "not renewed yet");
        looks(&mut answers, 1_800, 1_800);
        assert!(!answers.is_in_doubt(at(1_800)));
    }

    #[test]
    fn a_host_that_does_not_hear_is_not_renewed() {
        let mut detector = detector();
        detector.look(at(0), true, 0);
        detector.hear(1, &beat(1), at(100));
        let mut lost = Vec::new();
        for step in 1..20 {
            lost.extend(looks(&mut detector, step * 300, step * 300));
            detector.hear(step + 1, &beat(1), at(step * 300 + 50));
        }
        assert!(matches!(lost[..], [(3_600, DetectorOutput::Lost { .. })]), "{lost:?}");
    }

    #[test]
    fn the_next_run_of_a_daemon_goes_on_and_the_run_before_is_not_heard_again() {
        let mut detector = detector();
        detector.look(at(0), true, 0);
        detector.hear(9, &beat(1), at(100));
        looks(&mut detector, 300, 2_100);
        assert_eq!(detector.hear((1 << 32) + 1, &beat(0), at(2_200)), []);
        detector.hear((1 << 32) + 2, &beat(4), at(2_300));
        assert_eq!(detector.hear(10, &beat(5), at(2_350)), [], "it comes late");
        let echo = detector.look(at(2_400), true, 0);
        assert!(
            matches!(echo[..], [DetectorOutput::Send { heartbeat, .. }] if heartbeat.echo == (1 << 32) + 2)
        );
        assert_eq!(
            (detector.renewed(), looks(&mut detector, 2_700, 5_400)),
            (at(2_400), Vec::new())
        );
    }

    #[test]
    fn a_kernel_that_answers_keeps_its_host() {
        let mut detector = detector();
        looks(&mut detector, 0, 3_000);
        detector.kernel_answers(HOST, at(2_900));
        detector.kernel_answers(HostIncarnation(8), at(3_500));
        assert_eq!(looks(&mut detector, 3_100, 5_700), []);
        assert_eq!(detector.sight(), HostSight::DaemonSilent);
        let lost = looks(&mut detector, 6_000, 6_000);
        assert!(matches!(lost[..], [(6_000, DetectorOutput::Lost { .. })]), "{lost:?}");
        let gone = looks(&mut detector, 6_001, 14_000);
        assert_eq!(
            gone,
            [(13_900, DetectorOutput::Gone { incarnation: HOST })],
            "by its last answer"
        );
    }

    #[test]
    fn an_arbiter_that_was_late_needs_a_whole_timeout_of_looks() {
        let mut detector = detector();
        looks(&mut detector, 0, 900);
        let verdicts = looks(&mut detector, 7_000, 10_000);
        assert!(matches!(verdicts[..], [(10_000, DetectorOutput::Lost { .. })]), "{verdicts:?}");
    }

    #[test]
    fn a_reboot_is_seen_at_once_and_former_incarnations_are_excluded() {
        let mut detector = detector();
        detector.hear(1, &beat(0), at(10));
        let new = Heartbeat { incarnation: HostIncarnation(8), boot: 10, ..beat(0) };
        let outputs = detector.hear(1, &new, at(500));
        assert!(
            matches!(
                outputs[..],
                [
                    DetectorOutput::Exclude { incarnation: HostIncarnation(8) },
                    DetectorOutput::Lost { incarnation: HOST, .. },
                    DetectorOutput::Gone { incarnation: HOST }
                ]
            ),
            "{outputs:?}"
        );
        let mut next = detector.succeeded_by(HostIncarnation(8), at(600));
        assert_eq!(next.hear(1, &new, at(700)), []);
        let old = next.hear(9, &beat(3), at(800));
        assert_eq!(old, [DetectorOutput::Exclude { incarnation: HOST }]);
        assert_eq!(next.sight(), HostSight::Up, "an old heartbeat is no reboot");
        assert_eq!(next.said_gone(HOST, at(900)), []);
        assert_eq!(next.said_gone(HostIncarnation(8), at(900)).len(), 2);
    }
}
