//! Keys of hosts, the TLS of trunks, the seals of lanes and heartbeats, and tokens.
//!
//! This crate has no socket, no thread and no clock: bytes and times are arguments. It is not pure, because keys and
//! secrets are random. What it protects against stands in `docs/threats.md`.
//!
//! | module | content |
//! |---|---|
//! | [`key`] | the key pair of a daemon |
//! | [`key_hash`] | the hash by which a host knows the key of another |
//! | [`session`] | the TLS of a trunk, as bytes in and bytes out |
//! | [`lane`] | the code of a preamble, the keys of a lane, the seal of its frames |
//! | [`datagram`] | the seal of heartbeats |
//! | [`token`] | admission by hand: one line that lets one host in |
//! | [`ticket`] | hosts that come back: a secret that lets the host in again that has it |
//! | [`error`] | what can fail, and what to do then |

#![forbid(unsafe_code)]

mod crypto;
pub mod datagram;
pub mod error;
pub mod key;
pub mod key_hash;
pub mod lane;
pub mod session;
pub mod ticket;
pub mod token;
mod verifier;

pub use datagram::{HeartbeatOpener, HeartbeatSealer};
pub use error::{JoinRefusal, JoinTokenError, TrustError};
pub use key::KeyPair;
pub use key_hash::KeyHash;
pub use lane::{LaneEnd, Opener, Sealer, cipher_here, common_cipher, lane_keys};
pub use session::Session;
pub use ticket::ReturnTickets;
pub use token::{JoinToken, JoinTokens};
