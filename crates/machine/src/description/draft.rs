//! The tables of a file before their names are looked up, and the lines in which they stand.

use core::net::IpAddr;

use ipnet::IpNet;

/// A value and the line that it stands in.
#[derive(Clone, Debug)]
pub(super) struct At<T> {
    pub(super) line: usize,
    pub(super) value: T,
}

/// The places in a text at which lines begin.
pub(super) struct LineStarts {
    starts: Vec<usize>,
}

impl LineStarts {
    pub(super) fn of(text: &str) -> Self {
        let after = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self { starts: core::iter::once(0).chain(after.map(|(at, _)| at + 1)).collect() }
    }

    /// The line of a place, counted from 1.
    pub(super) fn line(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at).max(1)
    }
}

/// All tables of a file.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) switches: Vec<SwitchDraft>,
    pub(super) networks: Vec<NetworkDraft>,
    pub(super) hosts: Vec<HostDraft>,
}

/// A switch.
#[derive(Debug)]
pub(super) struct SwitchDraft {
    pub(super) name: At<String>,
    pub(super) ports: Option<At<u32>>,
    pub(super) rate: Option<At<u32>>,
    pub(super) uplink: Option<At<String>>,
    pub(super) uplink_rate: Option<At<u32>>,
}

/// A network.
#[derive(Debug)]
pub(super) struct NetworkDraft {
    pub(super) name: At<String>,
    pub(super) addresses: Vec<At<IpNet>>,
    pub(super) site: Option<At<String>>,
    pub(super) gateways: Vec<At<String>>,
}

/// A host.
#[derive(Debug)]
pub(super) struct HostDraft {
    pub(super) name: At<String>,
    pub(super) interfaces: Vec<InterfaceDraft>,
}

/// An interface of a host.
#[derive(Debug)]
pub(super) struct InterfaceDraft {
    pub(super) name: At<String>,
    pub(super) network: Option<At<String>>,
    pub(super) address: Option<At<IpAddr>>,
    pub(super) switch: Option<At<String>>,
    pub(super) port: Option<At<u32>>,
    pub(super) rate: Option<At<u32>>,
}
