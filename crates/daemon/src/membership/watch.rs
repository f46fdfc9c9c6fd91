//! The judges of silence: the arbiter's detectors, one for each other host, or a host's lease.

use std::collections::BTreeMap;
use std::time::Duration;

use landeck_protocols::hosts::{Detector, DetectorOutput, HostEnd, HostTiming, Lease, LeaseOutput};
use landeck_wire::heartbeat::Heartbeat;
use landeck_wire::{HostIncarnation, HostNumber};

/// Something that follows from silence or from a heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WatchEvent {
    /// Send this heartbeat.
    Beat {
        /// The host that it goes to.
        to: HostNumber,
        /// Its number.
        number: u64,
        /// Its content.
        heartbeat: Heartbeat,
    },
    /// A host is lost.
    Lost {
        /// The host.
        host: HostNumber,
        /// Its incarnation.
        incarnation: HostIncarnation,
        /// The time since its view was renewed.
        silent: Duration,
    },
    /// A host is gone.
    Gone {
        /// The host.
        host: HostNumber,
        /// Its incarnation.
        incarnation: HostIncarnation,
    },
    /// A host is to learn that this incarnation is excluded.
    Exclude {
        /// The host.
        host: HostNumber,
        /// The incarnation.
        incarnation: HostIncarnation,
    },
    /// This host's lease has ended.
    Ended(HostEnd),
}

/// The judges of one daemon.
#[derive(Debug)]
pub(crate) enum SilenceWatch {
    /// Those of the arbiter.
    Arbiter {
        /// The times.
        timing: HostTiming,
        /// The arbiter's incarnation and the boot identity of its host.
        own: (HostIncarnation, u128),
        /// One for each other host.
        detectors: BTreeMap<HostNumber, Detector>,
    },
    /// That of another host.
    Host(Lease),
}

impl SilenceWatch {
    /// The judges of the arbiter, which is this incarnation of its daemon on a host with this boot identity.
    pub(crate) const fn of_arbiter(timing: HostTiming, own: (HostIncarnation, u128)) -> Self {
        Self::Arbiter { timing, own, detectors: BTreeMap::new() }
    }

    /// The arbiter's detectors, one for each other host; `None` on another host.
    pub(crate) const fn detectors(&self) -> Option<&BTreeMap<HostNumber, Detector>> {
        match self {
            Self::Arbiter { detectors, .. } => Some(detectors),
            Self::Host(_) => None,
        }
    }

    /// Goes on with the detectors of the arbiter's daemon before this run of it.
    pub(crate) fn go_on(&mut self, kept: BTreeMap<HostNumber, Detector>, run: u32, now: Duration) {
        if let Self::Arbiter { detectors, .. } = self {
            *detectors =
                kept.into_iter().map(|(host, one)| (host, one.resumed(run, now))).collect();
        }
    }

    /// The judge of another host. A daemon that has started again has its run, and the time from which the run before had the
    /// lease.
    pub(crate) fn of_host(lease: Lease, resumed: Option<(u32, Duration)>) -> Self {
        Self::Host(match resumed {
            Some((run, leased_from)) => lease.resumed(run, leased_from),
            None => lease,
        })
    }

    /// From when the lease of this host counts; `None` on the arbiter, which has none.
    pub(crate) fn leased_from(&self) -> Option<Duration> {
        match self {
            Self::Arbiter { .. } => None,
            Self::Host(lease) => Some(lease.counts_from()),
        }
    }

    /// Watches a host that has joined.
    pub(crate) fn add(&mut self, host: HostNumber, incarnation: HostIncarnation, now: Duration) {
        let Self::Arbiter { timing, own, detectors } = self else { return };
        let next = match detectors.get(&host) {
            Some(known) if known.incarnation() == incarnation => return,
            Some(known) => known.succeeded_by(incarnation, now),
            None => Detector::new(*timing, host, incarnation, *own, now),
        };
        detectors.insert(host, next);
    }

    /// Whether an incarnation of a host is watched, or was.
    pub(crate) fn knows(&self, host: HostNumber, incarnation: HostIncarnation) -> bool {
        match self {
            Self::Arbiter { detectors, .. } => {
                detectors.get(&host).is_some_and(|known| known.incarnation() == incarnation)
            }
            Self::Host(_) => false,
        }
    }

    /// Takes a heartbeat.
    pub(crate) fn hear(
        &mut self,
        from: HostNumber,
        number: u64,
        heartbeat: &Heartbeat,
        now: Duration,
    ) -> Vec<WatchEvent> {
        match self {
            Self::Arbiter { detectors, .. } => {
                let heard = detectors.get_mut(&from).map(|one| one.hear(number, heartbeat, now));
                of_detector(from, heard.unwrap_or_default())
            }
            Self::Host(lease) => {
                if from == HostNumber::ARBITER {
                    lease.hear(number, heartbeat);
                }
                Vec::new()
            }
        }
    }

    /// Notes when the kernel of a host has last answered on the trunk to this incarnation of its daemon.
    pub(crate) fn kernel_answers(
        &mut self,
        host: HostNumber,
        incarnation: HostIncarnation,
        at: Duration,
    ) {
        if let Self::Arbiter { detectors, .. } = self
            && let Some(detector) = detectors.get_mut(&host)
        {
            detector.kernel_answers(incarnation, at);
        }
    }

    /// Takes a host's word that nothing of it runs any more.
    pub(crate) fn said_gone(
        &mut self,
        host: HostNumber,
        incarnation: HostIncarnation,
        now: Duration,
    ) -> Vec<WatchEvent> {
        match self {
            Self::Arbiter { detectors, .. } => {
                let said = detectors.get_mut(&host).map(|one| one.said_gone(incarnation, now));
                of_detector(host, said.unwrap_or_default())
            }
            Self::Host(_) => Vec::new(),
        }
    }

    /// Takes the arbiter's answer that an incarnation is excluded.
    pub(crate) fn excluded(&mut self, incarnation: HostIncarnation) {
        if let Self::Host(lease) = self {
            lease.excluded(incarnation);
        }
    }

    /// Whether the arbiter doubts that a host lives, or has called it lost.
    pub(crate) fn doubts(&self, host: HostNumber, now: Duration) -> bool {
        match self {
            Self::Arbiter { detectors, .. } => {
                detectors.get(&host).is_some_and(|detector| detector.is_in_doubt(now))
            }
            Self::Host(_) => false,
        }
    }

    /// Looks at the time.
    pub(crate) fn look(&mut self, now: Duration, drained: bool, word: u64) -> Vec<WatchEvent> {
        match self {
            Self::Arbiter { detectors, .. } => {
                let each = detectors.iter_mut();
                each.flat_map(|(host, one)| of_detector(*host, one.look(now, drained, word)))
                    .collect()
            }
            Self::Host(lease) => {
                let each = lease.look(now, drained, word).into_iter();
                each.map(|output| match output {
                    LeaseOutput::Send { number, heartbeat } => {
                        WatchEvent::Beat { to: HostNumber::ARBITER, number, heartbeat }
                    }
                    LeaseOutput::End(end) => WatchEvent::Ended(end),
                })
                .collect()
            }
        }
    }

    /// The time of the next look.
    pub(crate) fn next_look(&self) -> Option<Duration> {
        match self {
            Self::Arbiter { detectors, .. } => {
                detectors.values().filter_map(Detector::next_look).min()
            }
            Self::Host(lease) => lease.next_look(),
        }
    }

    /// Whether this host may open lanes and accept new things from other hosts.
    pub(crate) fn is_valid(&self, now: Duration) -> bool {
        match self {
            Self::Arbiter { .. } => true,
            Self::Host(lease) => lease.is_valid(now),
        }
    }

    /// When [`SilenceWatch::is_valid`] may change by time alone.
    pub(crate) fn valid_until(&self) -> Option<Duration> {
        match self {
            Self::Arbiter { .. } => None,
            Self::Host(lease) => lease.valid_until(),
        }
    }
}

fn of_detector(host: HostNumber, outputs: Vec<DetectorOutput>) -> Vec<WatchEvent> {
    let each = outputs.into_iter().map(|output| match output {
        DetectorOutput::Send { number, heartbeat } => {
            WatchEvent::Beat { to: host, number, heartbeat }
        }
        DetectorOutput::Lost { incarnation, silent } => {
            WatchEvent::Lost { host, incarnation, silent }
        }
        DetectorOutput::Gone { incarnation } => WatchEvent::Gone { host, incarnation },
        DetectorOutput::Exclude { incarnation } => WatchEvent::Exclude { host, incarnation },
    });
    each.collect()
}
