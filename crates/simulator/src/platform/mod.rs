//! Platforms: hosts and the network between them, as a small text file.
//!
//! ```toml
//! about = "64 hosts of 2 processors on one switch"
//!
//! [host]
//! processors = 2
//! message = "400 ns"
//!
//! [network]
//! hosts = 64
//! overhead = "1 us"
//! latency = "5 us"
//! gap = "500 ns"
//! rate = "10 Gb/s"
//!
//! [[level]]
//! ports = 64
//! delay = "500 ns"
//! ```
//!
//! `[host]` has the figures of `landeck tune`; missing ones have their usual values. Two more are 0 if they are
//! missing: `call`, the time of a call before its first step, and `step`, the time of each copy and combination
//! beside its bytes.
//!
//! The network follows LogGP. `overhead` keeps a processor busy at each end, and `latency` passes between the cards.
//! A card sends and receives one message at a time, for `gap` or for as long as its bytes take at `rate`. `copy` is
//! the rate at which a processor moves bytes to and from the card, if it has to. Data longer than `eager` are
//! announced first, and go when the receiver has asked for them. `part` cuts announced data into parts, which the
//! processors at both ends move one by one while others travel; `part_copy` is their rate where it is not `copy`.
//!
//! Hosts that are namespaces of one computer have `shared_processors`: so many, for the processes of all hosts together.
//! A process that waits passes its processor on, and the next one has its `turn`.
//!
//! Each `[[level]]` is a layer of switches, the one next to the hosts first: `ports` lead down, `uplinks` of `rate`
//! lead to the next level, and passing a switch takes `delay`. A level far above, with a long delay, joins sites.
//!
//! Each `[[link]]` names two `hosts`, numbered from 0, between which `latency` and `rate` are others. So
//! `landeck tune --hosts` writes what it has measured.

mod count;
mod file;
pub mod library;

pub use file::PlatformError;

use landeck_collectives::{Calibration, CostParameters, Links};

/// Hosts and the network between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Platform {
    /// Its name.
    pub name: String,
    /// Its description in one sentence.
    pub about: String,
    /// The cost parameters of each host.
    pub host: Host,
    /// The network; none on a single host.
    pub network: Option<SimulatedNetwork>,
}

/// One host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its processors.
    pub processors: u32,
    /// Its cost parameters; those of networks are not used.
    pub figures: CostParameters,
    /// Its calibration. In a platform file, calls take no time unless the file says so.
    pub details: Calibration,
}

/// The network between hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulatedNetwork {
    /// The number of hosts.
    pub hosts: u32,
    /// How long a processor is busy with each message that it sends or receives.
    pub overhead_ps: u64,
    /// The time from card to card, without the switches between them.
    pub latency_ps: u64,
    /// The least time between the beginnings of two messages of a card.
    pub gap_ps: u64,
    /// 1 KiB through a card.
    pub kib_ps: u64,
    /// 1 KiB to or from the card, if a processor moves it; else 0.
    pub copy_kib_ps: u64,
    /// The time to copy 1 KiB for a part of announced data, beside which others travel; none: as for other data.
    pub part_copy_kib_ps: Option<u64>,
    /// Longer data are announced first; none: no data are.
    pub eager_bytes: Option<u64>,
    /// Announced data follow in parts of this length, which a processor moves one by one; none: all at once.
    pub part_bytes: Option<u64>,
    /// The processors that all hosts share; none: each has its own.
    pub shared: Option<SharedProcessors>,
    /// The layers of switches, the one next to the hosts first. None: one switch that takes no time.
    pub levels: Vec<Level>,
    /// The pairs of hosts with another latency, from card to card, and another rate. Their gaps have no influence.
    pub links: Links,
}

/// The processors of hosts that are namespaces of one computer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedProcessors {
    /// The processors of all hosts together.
    pub processors: u32,
    /// A turn of a process that waits for a message from another host.
    pub turn_ps: u64,
}

/// A layer of switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// Hosts, or switches of the layer below, at each switch.
    pub ports: u32,
    /// Ways from a switch to the layer above.
    pub uplinks: u32,
    /// The time to pass a switch.
    pub delay_ps: u64,
    /// 1 KiB through one of those ways.
    pub kib_ps: u64,
}

impl Platform {
    /// Parses a platform file.
    ///
    /// # Errors
    ///
    /// [`PlatformError`], which names line, value and cure.
    pub fn parse(name: &str, text: &str) -> Result<Self, PlatformError> {
        file::parse(name, text)
    }

    /// A single host with measured figures.
    pub fn of_host(name: &str, about: &str, figures: CostParameters, details: Calibration) -> Self {
        let processors = figures.processors.clamp(1, 65_536) as u32;
        let host = Host { processors, figures, details };
        Self { name: name.into(), about: about.into(), host, network: None }
    }

    /// The number of hosts.
    pub fn hosts(&self) -> u32 {
        self.network.as_ref().map_or(1, |network| network.hosts)
    }
}

/// The time of some bytes, given the time of 1 KiB.
pub(crate) fn bytes_ps(bytes: u64, kib_ps: u64) -> u64 {
    let product = u128::from(bytes) * u128::from(kib_ps) / 1024;
    u64::try_from(product).unwrap_or(u64::MAX)
}
