//! The user's options for a job over several hosts.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use ipnet::IpNet;
use landeck_hostfile::{HostRequest, RanksBy};
use landeck_protocols::hosts::BookingOrder;
use serde::{Deserialize, Serialize};

/// The default time that a host may be silent.
pub const HOST_TIMEOUT: Duration = Duration::from_secs(3);
/// The shortest and the longest time that a host may be silent.
pub const HOST_TIMEOUT_RANGE: [Duration; 2] =
    [Duration::from_millis(500), Duration::from_secs(3600)];

/// The hosts of a job, and how they are reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostsOptions {
    /// The hosts, in the order in which ranks are placed on them.
    pub list: Vec<HostRequest>,
    /// The order in which hosts take ranks.
    pub map_by: RanksBy,
    /// The number of processes on each host; `None` is its number of slots.
    pub per_host: Option<u32>,
    /// The command that starts a program on another host, with its own arguments.
    pub rsh: Vec<String>,
    /// The folder in which Landeck is installed on the other hosts; `None` is the launcher's.
    pub remote_prefix: Option<PathBuf>,
    /// The time that a host may be silent before it counts as lost.
    pub host_timeout: Duration,
    /// The ports for everything that listens; `None` leaves the choice to the kernel.
    pub ports: Option<PortRange>,
    /// The networks that hosts use first, the preferred one first. Without any, all are tried.
    pub networks: Vec<IpNet>,
    /// Whether messages travel unencrypted.
    pub is_plain: bool,
    /// The way in which the daemons of other hosts are started.
    pub start: HostStart,
}

/// A way to start the daemon of another host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HostStart {
    /// The command in [`HostsOptions::rsh`] for each host.
    #[default]
    Ssh,
    /// One `srun` for all hosts of an allocation.
    Slurm,
    /// The user starts `landeckd join` on each host.
    ByHand,
}

impl HostsOptions {
    /// A job on these hosts, with the defaults of `landeck run`.
    pub fn new(list: Vec<HostRequest>) -> HostsOptions {
        HostsOptions {
            list,
            map_by: RanksBy::default(),
            per_host: None,
            rsh: vec!["ssh".to_owned()],
            remote_prefix: None,
            host_timeout: HOST_TIMEOUT,
            ports: None,
            networks: Vec::new(),
            is_plain: false,
            start: HostStart::default(),
        }
    }
}

/// The order in which the hosts of a job take ranks, if they are chosen in this order.
pub const fn ranks_by(order: BookingOrder) -> RanksBy {
    match order {
        BookingOrder::Spread => RanksBy::Node,
        BookingOrder::Fill | BookingOrder::Load | BookingOrder::Site => RanksBy::Slot,
    }
}

/// Ports from the first to the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortRange {
    /// The first port, not 0.
    pub first: u16,
    /// The last port, not below the first.
    pub last: u16,
}

/// The error for a text that is no range of ports.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("two ports are wanted, from 1 to 65535, the lower one first, such as 40000-40100")]
pub struct PortRangeError;

impl FromStr for PortRange {
    type Err = PortRangeError;

    /// Parses `40000-40100`. A single port is `40000-40000`: `5` may be meant as a number of ports.
    fn from_str(text: &str) -> Result<PortRange, PortRangeError> {
        let (first, last) = text.split_once('-').ok_or(PortRangeError)?;
        let port = |digits: &str| digits.trim().parse::<u16>().map_err(|_| PortRangeError);
        let (first, last) = (port(first)?, port(last)?);
        match first > 0 && first <= last {
            true => Ok(PortRange { first, last }),
            false => Err(PortRangeError),
        }
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}", self.first, self.last)
    }
}

/// The error for a text that is no IP network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a network is wanted as address/bits, such as 10.1.0.0/16 or fd00::/8")]
pub struct NetworkError;

/// Parses `10.1.0.0/16`; an address alone is a network of one.
///
/// # Errors
/// [`NetworkError`].
pub fn network(text: &str) -> Result<IpNet, NetworkError> {
    let alone = |_| text.parse::<IpAddr>().map(IpNet::from);
    text.parse().or_else(alone).map_err(|_| NetworkError)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_ports_are_read() {
        assert_eq!("40000-40100".parse(), Ok(PortRange { first: 40_000, last: 40_100 }));
        assert_eq!("7-7".parse::<PortRange>().unwrap().to_string(), "7-7");
        assert_eq!("5".parse::<PortRange>(), Err(PortRangeError));
        for text in ["", "0-3", "9-3", "1-65536", "1-2-3", "a-b", "-3"] {
            assert_eq!(text.parse::<PortRange>(), Err(PortRangeError), "{text}");
        }
    }

    #[test]
    fn networks_are_read() {
        let contains = |text: &str, address: &str| {
            network(text).unwrap().contains(&address.parse::<IpAddr>().unwrap())
        };
        assert!(contains("10.1.2.3/16", "10.1.0.0"), "any address names its network");
        assert!(contains("0.0.0.0/0", "9.9.9.9") && !contains("0.0.0.0/0", "::1"));
        assert!(contains("10.0.0.7", "10.0.0.7") && !contains("10.0.0.7", "10.0.0.6"));
        assert!(contains("fd00::/8", "fd12::1") && !contains("fd00::/8", "fe80::1"));
        for text in ["", "10.0.0.0/33", "fd00::/129", "eth0", "10.0.0.0/", "10.0.0.0/-1"] {
            assert_eq!(network(text), Err(NetworkError), "{text}");
        }
    }
}
