//! What it is simulated on: hosts, and the network between them, as a small text file.
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
//! `[host]` has the figures of `landeck tune`; those that are left out have their usual values. Also
//! `call`, what a call takes before its first step, and `step`, what each copy and combination takes
//! beside its bytes: nothing when they are left out. The network is that of LogGP: `overhead` keeps a processor busy at each end, `latency` passes between
//! the cards, a card sends and receives one message at a time, for `gap` or for as long as its bytes
//! take at `rate`. `copy` is the rate at which a processor moves bytes to and from the card, if it
//! has to; data longer than `eager` are announced first, and go when the receiver has asked for
//! them. Each `[[level]]` is a layer of switches, the one next to the hosts first: `ports` lead
//! down, `uplinks` of `rate` lead to the next level, and passing a switch takes `delay`. A level far
//! above, with a long delay, joins sites.

mod file;
pub mod library;
pub(crate) mod quantity;

pub use file::PlatformError;

use landeck_collectives::{Calibration, CostParameters};

/// Hosts and their network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Platform {
    /// Its name.
    pub name: String,
    /// What it is, in a sentence.
    pub about: String,
    /// What each host can do.
    pub host: Host,
    /// What joins the hosts; none when there is but one.
    pub network: Option<Network>,
}

/// One host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its processors.
    pub processors: u32,
    /// What it can do; the figures of networks are not used.
    pub figures: CostParameters,
    /// More about it; where nothing is said of calls they take nothing.
    pub details: Calibration,
}

/// The network between hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// How many hosts there are.
    pub hosts: u32,
    /// A processor is busy so long with each message it sends, and with each it receives.
    pub overhead_ps: u64,
    /// From card to card, without the switches in between.
    pub latency_ps: u64,
    /// A card begins messages at least so far apart.
    pub gap_ps: u64,
    /// 1 KiB through a card.
    pub kib_ps: u64,
    /// 1 KiB to or from the card, where a processor has to move it; else 0.
    pub copy_kib_ps: u64,
    /// Longer data are announced first. None: never.
    pub eager_bytes: Option<u64>,
    /// Layers of switches, the one next to the hosts first. None at all: one switch for all that
    /// takes no time.
    pub levels: Vec<Level>,
}

/// A layer of switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// How many hosts, or switches of the layer below, are joined by a switch.
    pub ports: u32,
    /// How many ways lead from a switch to the layer above.
    pub uplinks: u32,
    /// How long it takes to pass a switch.
    pub delay_ps: u64,
    /// 1 KiB through one of those ways.
    pub kib_ps: u64,
}

impl Platform {
    /// Reads the text of a platform file.
    ///
    /// # Errors
    /// [`PlatformError`]: it names line, value and cure.
    pub fn parse(name: &str, text: &str) -> Result<Self, PlatformError> {
        file::parse(name, text)
    }

    /// One host that was measured.
    pub fn of_host(name: &str, about: &str, figures: CostParameters, details: Calibration) -> Self {
        let processors = figures.processors.clamp(1, 65_536) as u32;
        let host = Host { processors, figures, details };
        Self { name: name.into(), about: about.into(), host, network: None }
    }

    /// How many hosts there are.
    pub fn hosts(&self) -> u32 {
        self.network.as_ref().map_or(1, |network| network.hosts)
    }
}

/// How long so many bytes take, of which 1,024 take `kib_ps`.
pub(crate) fn bytes_ps(bytes: u64, kib_ps: u64) -> u64 {
    let product = u128::from(bytes) * u128::from(kib_ps) / 1024;
    u64::try_from(product).unwrap_or(u64::MAX)
}
