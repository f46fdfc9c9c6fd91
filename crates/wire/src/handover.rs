//! The messages between a process and the daemon of its host, each sent whole over a Unix socket (`SOCK_SEQPACKET`).
//!
//! Daemons open lanes: the daemon of one host dials the daemon of another, and both hand the connected socket to their
//! processes, with the keys of the lane. So a process neither dials nor listens, and never sees a key that is not its
//! lane's alone.
//!
//! A far process goes by its place in the segment's table of far processes. A message is at most
//! [`Handover::BYTES_MAX`](ControlMessage::BYTES_MAX) bytes long.
//!
//! The daemon may start again. A process whose socket has ended connects anew, says `Hello` and, with `Has`, which lanes it
//! has, and says again what it waits for. The relay of its host begins anew with the daemon: asked by `RelayRestarted`, the
//! process takes what the one before has laid, says how far each sender may go from there (`Granted`), and repeats
//! `RelayRestarted` behind that.
//!
//! The answer to `Relay` is `Relayed` or `NoRelay`. A `Broken` with the
//! number [`RELAY_LANE`] tells of the connection to the relay of that process's host. `Silent` is a `Broken` of a connection
//! that has carried nothing for as long as `Welcome` allows. `Granted` and `Room` are for the relay of the process's own
//! host: it may bring further frames of a far process, and the process's ring has room again.

use serde::{Deserialize, Serialize};

use crate::control::ControlMessage;

/// The number by which a process reports the connection to a relay in the place of a lane's. No lane has it.
pub const RELAY_LANE: u32 = u32::MAX;

/// The way in which the frames of a lane are protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cipher {
    /// Frames are in clear.
    Plain,
    /// AES-256-GCM.
    Aes256Gcm,
    /// ChaCha20-Poly1305.
    ChaCha20Poly1305,
}

/// The keys of one lane, as one of its two ends has them.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneKeys {
    /// The way in which frames are protected.
    pub cipher: Cipher,
    /// The key of the frames that this end sends.
    pub send: [u8; 32],
    /// The key of the frames that this end receives.
    pub receive: [u8; 32],
}

impl std::fmt::Debug for LaneKeys {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("LaneKeys").field("cipher", &self.cipher).finish_non_exhaustive()
    }
}

/// The silence of a connection that was given up for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneSilence {
    /// How long nothing was acknowledged, in milliseconds.
    pub silent_ms: u32,
    /// The bytes that waited.
    pub unsent_bytes: u64,
    /// It began when the connection did.
    pub is_from_begin: bool,
    /// Several connections in a row have brought nothing over: the process asks for no other one.
    pub is_hopeless: bool,
}

/// A message between a process and its daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Handover {
    /// The process names itself, first of all.
    Hello {
        /// Its slot.
        slot: u32,
        /// Its incarnation.
        incarnation: u32,
        /// The most lanes that it can have; 0 if there is no limit.
        lanes_max: u32,
    },
    /// The process has this lane, or had it and has no later one. An earlier run of the daemon has handed it over.
    Has {
        /// The far process.
        far: u32,
        /// Its incarnation.
        incarnation: u32,
        /// The number of the lane.
        lane: u32,
    },
    /// The process needs a lane.
    Want {
        /// The far process.
        far: u32,
    },
    /// A lane has ended before its peer said goodbye.
    Broken {
        /// The far process.
        far: u32,
        /// Its incarnation.
        incarnation: u32,
        /// The number of the lane, or [`RELAY_LANE`].
        lane: u32,
        /// The system's error; 0 if the stream just ended.
        errno: i32,
    },
    /// Bytes wait on a lane, and none of them was acknowledged for longer than [`Handover::Welcome`] allows: it is broken.
    Silent {
        /// The far process.
        far: u32,
        /// The number of the lane, or [`RELAY_LANE`].
        lane: u32,
        /// The silence, as it was seen.
        silence: LaneSilence,
    },
    /// The process needs numbers for groups.
    Numbers,
    /// The process needs a connection to the relay of another host.
    Relay {
        /// The number of the host.
        host: u32,
    },
    /// The far process may send frames up to this position over the relay of this host.
    Granted {
        /// The far process.
        far: u32,
        /// Its incarnation.
        incarnation: u32,
        /// The position.
        position: u64,
    },
    /// There is room again where the relay of this host lays frames for the process.
    Room,
    /// The relay of this host has started again, and asks how far each sender has come; the process repeats this when it has
    /// said so.
    RelayRestarted,
    /// The process has left its job, and runs on.
    Left,
    /// The socket beside this message is a connection to the relay of another host.
    Relayed {
        /// The number of the host.
        host: u32,
        /// Its keys.
        keys: LaneKeys,
    },
    /// No address leads to the relay of another host.
    NoRelay {
        /// The number of the host.
        host: u32,
    },
    /// The lanes that had come before the process's `Hello` have been handed over.
    Welcome {
        /// A connection that has carried nothing for so long, in milliseconds, is to be given up.
        silence_ms: u32,
    },
    /// The socket beside this message is a lane.
    Lane {
        /// The far process.
        far: u32,
        /// Its incarnation.
        incarnation: u32,
        /// The number of the lane.
        lane: u32,
        /// Its keys.
        keys: LaneKeys,
    },
    /// No lane to the far process can be opened: neither side reaches the other one, or one has as many as it can have.
    Unreachable {
        /// The far process.
        far: u32,
    },
}

impl ControlMessage for Handover {
    const NAME: &'static str = "a message between a process and its daemon";
    const BYTES_MAX: usize = 88;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_their_encoding() {
        let keys = LaneKeys { cipher: Cipher::Aes256Gcm, send: [1; 32], receive: [2; 32] };
        for message in [
            Handover::Hello { slot: 3, incarnation: 9, lanes_max: 512 },
            Handover::Has { far: 7, incarnation: 3, lane: RELAY_LANE - 1 },
            Handover::Want { far: 7 },
            Handover::Broken { far: 7, incarnation: 3, lane: 2, errno: -104 },
            Handover::Numbers,
            Handover::Relay { host: 3 },
            Handover::Lane {
                far: u32::MAX,
                incarnation: u32::MAX,
                lane: u32::MAX,
                keys: keys.clone(),
            },
            Handover::Lane {
                far: 7,
                incarnation: 1,
                lane: 3,
                keys: LaneKeys { cipher: Cipher::Plain, ..keys.clone() },
            },
            Handover::Unreachable { far: u32::MAX },
            Handover::Granted { far: 4, incarnation: 2, position: u64::MAX - 7 },
            Handover::Room,
            Handover::RelayRestarted,
            Handover::Welcome { silence_ms: 2_250 },
            Handover::Silent {
                far: 7,
                lane: RELAY_LANE,
                silence: LaneSilence {
                    silent_ms: 2_251,
                    unsent_bytes: 1 << 40 | 5,
                    is_from_begin: false,
                    is_hopeless: true,
                },
            },
            Handover::Left,
            Handover::Relayed { host: 2, keys },
            Handover::NoRelay { host: 2 },
        ] {
            assert_eq!(Handover::decode(&message.encode()), Ok(message));
        }
    }

    #[test]
    fn other_bytes_are_refused() {
        assert!(Handover::decode(&[1; Handover::BYTES_MAX + 1]).is_err());
        assert!(Handover::decode(&[17]).is_err(), "an unknown message");
        let keys = LaneKeys { cipher: Cipher::ChaCha20Poly1305, send: [1; 32], receive: [2; 32] };
        let mut relayed = Handover::Relayed { host: 2, keys }.encode();
        assert!(Handover::decode(&relayed[..relayed.len() - 1]).is_err(), "a key is cut off");
        relayed[2] += 1;
        assert!(Handover::decode(&relayed).is_err(), "an unknown cipher");
    }

    #[test]
    fn keys_are_not_shown() {
        let keys = LaneKeys { cipher: Cipher::Plain, send: [213; 32], receive: [213; 32] };
        assert!(!format!("{:?}", Handover::Relayed { host: 2, keys }).contains("213"));
    }
}
