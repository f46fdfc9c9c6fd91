//! Identities, the message header, and their encoding.
//!
//! This crate is pure: values and bytes, no clock, no thread, no socket. Everything that crosses a boundary between
//! processes is named and encoded here, once.
//!
//! | module | content |
//! |---|---|
//! | [`control`] | messages that are Rust values of one release |
//! | [`identity`] | hosts, processes, mailboxes, members, contexts |
//! | [`header`] | the 16 bytes in front of every message |
//! | [`descriptor`] | references to data that did not travel with their header |
//! | [`preamble`] | the first bytes of a connection between two daemons |
//! | [`heartbeat`] | the datagram between the arbiter and another host |
//! | [`word`] | what all hosts learn in one order |
//! | [`handover`] | the messages between a process and its daemon |
//! | [`relay`] | requests to the relay of another host, and its answers |
//! | [`relayed`] | messages over the relay of another host |
//! | [`stored`] | data that stay on a host: requests to its relay, and the word that tells of them |
//! | [`way`] | which channel a message takes |

#![forbid(unsafe_code)]

pub mod control;
pub mod descriptor;
pub mod handover;
pub mod header;
pub mod heartbeat;
pub mod identity;
pub mod preamble;
pub mod relay;
pub mod relayed;
pub mod stored;
pub mod tunnel;
pub mod way;
pub mod word;

pub use control::{ControlError, ControlMessage};
pub use descriptor::{REFERENCE_BYTES, Reference, ReferenceError};
pub use header::{Class, Flags, HEADER_BYTES, Header, HeaderError, Kind, POSITION_BYTES};
pub use identity::{
    ContextId, HostIncarnation, HostNumber, Incarnation, JobId, MachineId, MailboxId, MemberId,
    ProcessId, SegmentId, Slot, Tag,
};
