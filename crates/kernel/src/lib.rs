//! The kernel: what a process does with messages, whatever carries them.
//!
//! Pure but for the channels it is given: no clock, no thread, no environment, no unsafe. Whoever
//! owns an [`Endpoint`] polls it and waits; the kernel never does.
//!
//! | module | what |
//! |---|---|
//! | [`endpoint`] | send, receive, probe, cancel, progress |
//! | [`request`] | the one kind of pending operation |
//! | [`matching`] | which message goes to which receive |
//! | [`mailboxes`] | contexts that belong to one process |
//! | [`area`] | a user's memory with its layout |
//! | [`failure`] | why an operation cannot complete |

#![forbid(unsafe_code)]

pub mod area;
mod arrival;
mod backlog;
pub mod endpoint;
pub mod failure;
mod held;
mod in_cell;
mod kept;
pub mod mailboxes;
pub mod matching;
mod membership;
mod put_back;
pub mod request;
mod requests;
mod sending;
mod status;
mod succession;
mod transfer;
mod withdrawal;
mod work;

pub use area::Area;
pub use endpoint::{Endpoint, Started};
pub use failure::Failure;
pub use landeck_channel::Peer;
pub use landeck_channel::URGENT_BYTES_MAX;
pub use matching::Wanted;
pub use request::{Completion, Received, RequestId};
pub use status::Status;
