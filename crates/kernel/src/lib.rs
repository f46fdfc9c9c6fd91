//! The kernel handles the messages of a process, whatever carries them.
//!
//! It is pure except for its channels: no clock, no thread, no environment, no unsafe. The owner of an [`Endpoint`]
//! polls it and waits; the kernel never waits.
//!
//! | module | content |
//! |---|---|
//! | [`endpoint`] | send, receive, probe, cancel, progress |
//! | [`request`] | the one kind of pending operation |
//! | [`matching`] | which receive gets which message |
//! | [`mailboxes`] | contexts that belong to one process |
//! | [`stored`] | messages whose data stay on a host |
//! | [`area`] | a user's memory with its layout |
//! | [`failure`] | the reasons why an operation cannot complete |

#![forbid(unsafe_code)]

pub mod area;
mod arrival;
mod backlog;
mod budget;
mod chunks;
mod copied;
pub mod endpoint;
pub mod failure;
mod kept;
pub mod mailboxes;
pub mod matching;
mod membership;
mod one_copy;
mod pacing;
mod reading;
pub mod request;
mod requests;
mod status;
pub mod stored;
mod stores;
mod succession;
mod told;
mod transfer;
mod work;

pub use area::Area;
pub use endpoint::{Endpoint, NetworkOpener, Started};
pub use failure::Failure;
pub use landeck_channel::Peer;
pub use landeck_channel::URGENT_BYTES_MAX;
pub use matching::Wanted;
pub use request::{Completion, Received, RequestId};
pub use status::Status;
