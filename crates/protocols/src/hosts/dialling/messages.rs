//! The messages of two daemons about lanes, and what a daemon is told to do.

use landeck_wire::{HostNumber, ProcessId};
use serde::{Deserialize, Serialize};

/// A message between the two daemons of a pair, over their trunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DialMessage {
    /// The process on the sender's host.
    pub from: ProcessId,
    /// The process on the receiver's host.
    pub to: ProcessId,
    /// The content.
    pub content: DialContent,
}

/// The content of a message between two daemons about a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DialContent {
    /// The sender wants a lane with a number above this one.
    Ask {
        /// The highest number that the sender knows. Lanes up to it are dead.
        after: u32,
    },
    /// The sender has tried all addresses: it is the receiver's turn to dial.
    Turn {
        /// The highest number that the sender knows. Lanes up to it are dead.
        after: u32,
    },
    /// The sender has accepted this lane.
    Accepted {
        /// The number of the lane.
        lane: u32,
    },
    /// The sender holds, and has refused this lane. It will ask.
    Later {
        /// The number of the lane.
        lane: u32,
    },
    /// Both sides have tried all addresses.
    Unreachable,
}

/// An action for the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DialOutput {
    /// Connect to an address of a host, and answer its challenge with the preamble of this lane.
    Dial {
        /// The process of this host.
        own: ProcessId,
        /// The process that the lane leads to.
        far: ProcessId,
        /// Its host.
        host: HostNumber,
        /// The number of the lane.
        lane: u32,
        /// The place of the address in the host's entry.
        address: usize,
    },
    /// Stop dialling this lane, and close its socket.
    Cancel {
        /// The process of this host.
        own: ProcessId,
        /// The other process.
        far: ProcessId,
        /// The number of the lane.
        lane: u32,
    },
    /// Hand the lane's socket to the process of this host.
    HandOver {
        /// The process of this host.
        own: ProcessId,
        /// The other process.
        far: ProcessId,
        /// The number of the lane.
        lane: u32,
    },
    /// Tell the process of this host to close a lane that it has, unread.
    Close {
        /// The process of this host.
        own: ProcessId,
        /// The other process.
        far: ProcessId,
        /// The number of the lane.
        lane: u32,
    },
    /// Close the connection that has arrived for this lane.
    Refuse {
        /// The process of this host.
        own: ProcessId,
        /// The other process.
        far: ProcessId,
        /// The number of the lane.
        lane: u32,
    },
    /// Send a message over the trunk.
    Send {
        /// The host that it leads to.
        to: HostNumber,
        /// The message.
        message: DialMessage,
    },
    /// Tell the process of this host that no address of either side leads to the other process.
    Unreachable {
        /// The process of this host.
        own: ProcessId,
        /// The other process.
        far: ProcessId,
    },
}
