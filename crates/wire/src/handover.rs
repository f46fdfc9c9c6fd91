//! The messages between a process and the daemon of its host, each sent whole over a Unix socket (`SOCK_SEQPACKET`).
//!
//! Daemons open lanes: the daemon of one host dials the daemon of another, and both hand the connected socket to their
//! processes, with the keys of the lane. So a process neither dials nor listens, and never sees a key that is not its
//! lane's alone.
//!
//! ```text
//!  from the process  1 Hello   slot (32) | incarnation (32) | most lanes (32; 0: no limit)
//!                    2 Want    far process (32)
//!                    3 Broken  far process (32) | lane (32) | system error (32)
//!                    4 Numbers
//!                    7 Relay   slot (32) | incarnation (32) | host number (32)
//!                   10 Granted far process (32) | position (64)
//!                   11 Room
//!                   13 Silent  far process (32) | lane (32) | flags (32) | silence (32) | unsent bytes (64)
//!                   14 Left
//!  from the daemon   5 Lane    far process (32) | lane (32) | cipher (32) | key to send (256) | key to receive (256)
//!                              with the socket beside it
//!                    6 Unreachable  far process (32)
//!                    8 Relayed host number (32) | 0 (32) | cipher (32) | keys as those of a lane, socket beside it
//!                    9 NoRelay host number (32)
//!                   12 Welcome silence (32)
//! ```
//!
//! A far process goes by its place in the segment's table of far processes. Every message has the same length.
//!
//! `Relay` comes first on a connection of its own, without `Hello`, for the regions of that host. The answer is a `Lane`,
//! or `Unreachable`, with the number of the host in the place of a far process. A `Welcome` comes before, and a `Silent` may
//! go before the question. Behind a `Hello` it is for messages, and
//! the answer is `Relayed` or `NoRelay`. A `Broken` with the number [`RELAY_LANE`] tells of the connection to the relay of
//! that process's host. `Silent` is a `Broken` of a connection that has carried nothing for as long as `Welcome` allows, in
//! milliseconds; its flags say that it did so from its beginning (1), and that others before it did (2). `Granted` and `Room` are for the relay of the process's own host: it may bring
//! further frames of a far process, and the process's ring has room again.

use crate::preamble::word;

/// The length of every message.
pub const HANDOVER_BYTES: usize = 88;

/// The number by which a process reports the connection to a relay in the place of a lane's. No lane has it.
pub const RELAY_LANE: u32 = u32::MAX;

/// The way in which the frames of a lane are protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Cipher {
    /// Frames are in clear.
    Plain = 0,
    /// AES-256-GCM.
    Aes256Gcm = 1,
    /// ChaCha20-Poly1305.
    ChaCha20Poly1305 = 2,
}

/// The keys of one lane, as one of its two ends has them.
#[derive(Clone, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
#[derive(Clone, Debug, PartialEq, Eq)]
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
        /// Its slot.
        slot: u32,
        /// Its incarnation.
        incarnation: u32,
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

impl Handover {
    /// Encodes the message.
    #[must_use]
    pub fn encode(&self) -> [u8; HANDOVER_BYTES] {
        let mut bytes = [0; HANDOVER_BYTES];
        let mut put = |words: &[u32]| {
            for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
                place.copy_from_slice(&word.to_le_bytes());
            }
        };
        match self {
            Self::Hello { slot, incarnation, lanes_max } => {
                put(&[1, *slot, *incarnation, *lanes_max]);
            }
            Self::Want { far } => put(&[2, *far]),
            Self::Broken { far, incarnation, lane, errno } => {
                put(&[3, *far, *lane, errno.cast_unsigned(), *incarnation]);
            }
            Self::Silent { far, lane, silence } => {
                let LaneSilence { silent_ms, unsent_bytes, is_from_begin, is_hopeless } = *silence;
                let flags = u32::from(is_from_begin) | u32::from(is_hopeless) << 1;
                let (low, high) = (unsent_bytes as u32, (unsent_bytes >> 32) as u32);
                put(&[13, *far, *lane, flags, silent_ms, low, high]);
            }
            Self::Numbers => put(&[4]),
            Self::Lane { far, incarnation, lane, keys } => {
                put(&[5, *far, *lane, keys.cipher as u32]);
                put_keys(&mut bytes, keys);
                bytes[80..84].copy_from_slice(&incarnation.to_le_bytes());
            }
            Self::Relayed { host, keys } => {
                put(&[8, *host, 0, keys.cipher as u32]);
                put_keys(&mut bytes, keys);
            }
            Self::NoRelay { host } => put(&[9, *host]),
            Self::Granted { far, incarnation, position } => {
                put(&[10, *far, *position as u32, (*position >> 32) as u32, *incarnation]);
            }
            Self::Room => put(&[11]),
            Self::Welcome { silence_ms } => put(&[12, *silence_ms]),
            Self::Left => put(&[14]),
            Self::Unreachable { far } => put(&[6, *far]),
            Self::Relay { slot, incarnation, host } => put(&[7, *slot, *incarnation, *host]),
        }
        bytes
    }

    /// Decodes a message; `None` if no process and no daemon writes such bytes.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != HANDOVER_BYTES {
            return None;
        }
        let [first, second, third] = [4, 8, 12].map(|at| word(bytes, at));
        let key = |at: usize| std::array::from_fn(|byte| bytes[at + byte]);
        Some(match word(bytes, 0) {
            1 => Self::Hello { slot: first, incarnation: second, lanes_max: third },
            2 => Self::Want { far: first },
            3 => Self::Broken {
                far: first,
                incarnation: word(bytes, 16),
                lane: second,
                errno: third.cast_signed(),
            },
            4 => Self::Numbers,
            message @ (5 | 8) => {
                let cipher = match third {
                    0 => Cipher::Plain,
                    1 => Cipher::Aes256Gcm,
                    2 => Cipher::ChaCha20Poly1305,
                    _ => return None,
                };
                let keys = LaneKeys { cipher, send: key(16), receive: key(48) };
                match message {
                    5 => {
                        Self::Lane { far: first, incarnation: word(bytes, 80), lane: second, keys }
                    }
                    _ => Self::Relayed { host: first, keys },
                }
            }
            6 => Self::Unreachable { far: first },
            7 => Self::Relay { slot: first, incarnation: second, host: third },
            9 => Self::NoRelay { host: first },
            10 => {
                let position = u64::from(second) | u64::from(third) << 32;
                Self::Granted { far: first, incarnation: word(bytes, 16), position }
            }
            11 => Self::Room,
            12 => Self::Welcome { silence_ms: first },
            13 if third < 4 => {
                let [silent_ms, low, high] = [16, 20, 24].map(|at| word(bytes, at));
                let unsent_bytes = u64::from(low) | u64::from(high) << 32;
                let (is_from_begin, is_hopeless) = (third & 1 != 0, third & 2 != 0);
                let silence = LaneSilence { silent_ms, unsent_bytes, is_from_begin, is_hopeless };
                Self::Silent { far: first, lane: second, silence }
            }
            14 => Self::Left,
            _ => return None,
        })
    }
}

fn put_keys(bytes: &mut [u8; HANDOVER_BYTES], keys: &LaneKeys) {
    bytes[16..48].copy_from_slice(&keys.send);
    bytes[48..80].copy_from_slice(&keys.receive);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_their_encoding() {
        let keys = LaneKeys { cipher: Cipher::Aes256Gcm, send: [1; 32], receive: [2; 32] };
        for message in [
            Handover::Hello { slot: 3, incarnation: 9, lanes_max: 512 },
            Handover::Want { far: 7 },
            Handover::Broken { far: 7, incarnation: 3, lane: 2, errno: -104 },
            Handover::Numbers,
            Handover::Relay { slot: 1, incarnation: 2, host: 3 },
            Handover::Lane { far: 7, incarnation: 2, lane: 3, keys: keys.clone() },
            Handover::Lane {
                far: 7,
                incarnation: 1,
                lane: 3,
                keys: LaneKeys { cipher: Cipher::Plain, ..keys.clone() },
            },
            Handover::Unreachable { far: u32::MAX },
            Handover::Granted { far: 4, incarnation: 2, position: u64::MAX - 7 },
            Handover::Room,
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
            assert_eq!(Handover::decode(&message.encode()), Some(message));
        }
    }

    #[test]
    fn other_bytes_are_refused() {
        assert_eq!(Handover::decode(&[1; 87]), None);
        assert_eq!(Handover::decode(&[9; HANDOVER_BYTES]), None);
        let mut lane = Handover::Want { far: 0 }.encode();
        (lane[0], lane[12]) = (5, 3);
        assert_eq!(Handover::decode(&lane), None, "an unknown cipher");
    }
}
