//! The input of a run of several hosts.

use std::time::Duration;

use super::draw::Draw;

/// The mean time between two faults of one kind; zero if there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FaultRates {
    /// A link is cut in both directions.
    pub(crate) cut: Duration,
    /// A link is cut in one direction.
    pub(crate) one_way_cut: Duration,
    /// A daemon is stopped, and goes on later.
    pub(crate) freeze: Duration,
    /// A host is paused with its clock.
    pub(crate) pause: Duration,
    /// A host is started anew, or its daemon alone.
    pub(crate) restart: Duration,
    /// A trunk breaks, and is opened again.
    pub(crate) reset: Duration,
    /// A daemon is killed, and started again as the next run of its incarnation.
    pub(crate) kill: Duration,
    /// The daemon of the arbiter is killed, and goes on from its record.
    pub(crate) kill_arbiter: Duration,
}

/// The input of a run of several hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostsSetting {
    /// The seed of all random numbers.
    pub(crate) seed: u64,
    /// The number of hosts, with the arbiter's.
    pub(crate) hosts: usize,
    /// T.
    pub(crate) timeout: Duration,
    /// The datagrams, of a thousand, that are lost.
    pub(crate) loss_permille: u32,
    /// The datagrams, of a thousand, that arrive twice.
    pub(crate) twice_permille: u32,
    /// The longest time that a datagram takes.
    pub(crate) delay_max: Duration,
    /// The mean time between two ends of processes of one host.
    pub(crate) process_ends: Duration,
    /// The faults.
    pub(crate) faults: FaultRates,
    /// The longest time until a killed daemon is there again. Up to T/2, only daemons of other hosts than the arbiter's are killed whose view is valid, so their
    /// hosts are not lost.
    pub(crate) kill_pause: Duration,
    /// The length of the time with faults. A time of rest follows.
    pub(crate) length: Duration,
}

impl HostsSetting {
    /// Hosts that lose datagrams, and nothing else.
    #[must_use]
    pub(crate) fn lossy(seed: u64, loss_permille: u32, length: Duration) -> Self {
        Self {
            seed,
            hosts: 3,
            timeout: Duration::from_secs(3),
            loss_permille,
            twice_permille: 10,
            delay_max: Duration::from_millis(20),
            process_ends: Duration::from_secs(600),
            faults: FaultRates::default(),
            kill_pause: Duration::from_millis(1_500),
            length,
        }
    }

    /// A setting that follows from a seed: each kind of fault is there or not, and T is between 0.5 s and a minute.
    #[must_use]
    pub(crate) fn drawn(seed: u64) -> Self {
        let mut draw = Draw::new(seed ^ 0x5e77_1465);
        let timeout_ms = draw.pick(&[500, 1_000, 3_000, 3_000, 10_000, 60_000]);
        let timeout = Duration::from_millis(timeout_ms);
        let lease = Duration::from_secs(10).max(3 * timeout);
        let mut rate = |mean: Duration| match draw.below(2) {
            0 => Duration::ZERO,
            _ => draw.about(mean),
        };
        let faults = FaultRates {
            cut: rate(4 * lease),
            one_way_cut: rate(4 * lease),
            freeze: rate(3 * lease),
            pause: rate(5 * lease),
            restart: rate(8 * lease),
            reset: rate(2 * lease),
            kill: rate(2 * lease),
            kill_arbiter: rate(2 * lease),
        };
        Self {
            seed,
            hosts: 2 + draw.below(4) as usize,
            timeout,
            loss_permille: draw.pick(&[0, 10, 50]),
            twice_permille: draw.pick(&[0, 20, 200]),
            delay_max: draw.pick(&[1, 10, 50].map(Duration::from_millis)),
            process_ends: draw.about(lease / 2),
            faults,
            kill_pause: draw.pick(&[timeout / 2, timeout, lease]),
            length: 20 * lease,
        }
    }
}
