//! Data that stay on a host: requests to the relay that stores them, and the word that tells the receiver of them.
//!
//! A message is a header and its data (paper: header and data apart). The header, an offer, goes to the receiver. The data
//! may stay on the sender's host or on a third one. There the relay of the host stores them, and the receiver fetches them
//! when the message meets its receive. A request is a frame of a kind of its own. The number of the request is its context,
//! and the operation is its tag:
//!
//! ```text
//!  data of a request   Store  segment of the receiver | its slot (32) | its incarnation (32) | bytes of the message
//!                      Put    number of the stored message | first byte that is meant | then the bytes
//!                      Seal   number
//!                      Get    number | first byte | bytes
//!                      Free   number
//!                      Look   nothing
//!                      padded to 32 bytes
//!  data of an answer   Store  number | place in the data of the store
//!                      Get    the bytes
//!                      Look   bytes of room | load in hundredths of a task for each processor | available memory in KiB
//! ```
//!
//! Otherwise they are as the requests about regions ([`crate::relay`]): in the same series, answered in order, and no change
//! is made twice. All of them may be repeated: a repeated [`Store`](StoredRequest::Store) finds its message by its number.

use crate::header::{Header, Kind};
use crate::identity::{HostNumber, Incarnation, ProcessId, SegmentId, Slot};
use crate::preamble::{long, word};
use crate::relay::RELAY_PART_BYTES;

/// The length of a request without bytes to write.
pub const STORED_REQUEST_BYTES: usize = 32;
/// The length of a [`StoredNotice`].
pub const STORED_NOTICE_BYTES: usize = 40;

/// The wish for the place where the data of long messages wait for their receivers (`--store`; paper: message storage
/// policy). Messages that fit into one frame travel whole in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StoreWish {
    /// They go to the receiver's host, when the receiver takes them.
    #[default]
    Receiver,
    /// They stay on the sender's host.
    Sender,
    /// They go to the receiver, or stay on the sender's host if the receiver is late.
    Auto,
    /// They stay on the least loaded host of the job, another one than those of sender and receiver if there is any.
    LeastLoaded,
    /// They stay on this host.
    Host(HostNumber),
}

impl StoreWish {
    /// The names of the wishes for no host by name, as users write them.
    pub const NAMES: [&str; 4] = ["receiver", "sender", "auto", "least-loaded"];
    const ALL: [Self; 4] = [Self::Receiver, Self::Sender, Self::Auto, Self::LeastLoaded];
    const HOST_BIT: u32 = 8;

    /// The wish with this name; `None` for the name of a host.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().position(|its| *its == name).map(|number| Self::ALL[number])
    }

    /// The wish as a word of 24 bits.
    #[must_use]
    pub fn to_word(self) -> u32 {
        match self {
            Self::Host(host) => Self::ALL.len() as u32 | u32::from(host.0) << Self::HOST_BIT,
            wish => Self::ALL.iter().position(|its| *its == wish).unwrap_or(0) as u32,
        }
    }

    /// The wish in such a word, which may be anything.
    #[must_use]
    pub fn from_word(word: u32) -> Self {
        match Self::ALL.get((word & 0xff) as usize) {
            Some(wish) => *wish,
            None if word & 0xff == Self::ALL.len() as u32 => {
                Self::Host(HostNumber((word >> Self::HOST_BIT) as u16))
            }
            None => Self::default(),
        }
    }
}

/// A [`StoreWish`] in the settings of a job, where a host has no number yet: the place of its number has a hash of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreSetting {
    /// A wish for no host by name.
    Wish(StoreWish),
    /// The wish for the host whose name has this hash, of 56 bits.
    Named(u64),
}

impl StoreSetting {
    const NAMED: u64 = 0xff;

    /// The setting that a user writes: a name of [`StoreWish::NAMES`], or that of a host.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        StoreWish::from_name(text).map_or_else(|| Self::Named(hash_of(text)), Self::Wish)
    }

    /// The setting as a word.
    #[must_use]
    pub fn to_word(self) -> u64 {
        match self {
            Self::Wish(wish) => wish.to_word().into(),
            Self::Named(hash) => Self::NAMED | hash << 8,
        }
    }

    /// The setting in such a word, which may be anything.
    #[must_use]
    pub fn from_word(word: u64) -> Self {
        match word & 0xff {
            Self::NAMED => Self::Named(word >> 8),
            _ => Self::Wish(StoreWish::from_word(word as u32)),
        }
    }

    /// Whether it means the host of this name.
    #[must_use]
    pub fn names(self, host: &str) -> bool {
        self == Self::Named(hash_of(host))
    }
}

impl Default for StoreSetting {
    fn default() -> Self {
        Self::Wish(StoreWish::default())
    }
}

/// A hash of a text, of 56 bits (FNV-1a).
fn hash_of(text: &str) -> u64 {
    let add = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, add) >> 8
}

/// A request to the relay of a host about data that it stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredRequest {
    /// It makes room for a message to a process of the job. The sender is the process that asks.
    Store {
        /// The receiver.
        receiver: ProcessId,
        /// The length of the message.
        bytes: u64,
    },
    /// It writes the bytes of the request into a message that is not sealed.
    Put {
        /// The number of the stored message.
        number: u64,
        /// The first byte that is meant.
        offset: u64,
    },
    /// The message is whole, and survives its sender from now on.
    Seal {
        /// The number of the stored message.
        number: u64,
    },
    /// It reads bytes, for the receiver.
    Get {
        /// The number of the stored message.
        number: u64,
        /// The first byte that is meant.
        offset: u64,
        /// Their number.
        bytes: u64,
    },
    /// The receiver has it, or its sender gives it up before it is sealed.
    Free {
        /// The number of the stored message.
        number: u64,
    },
    /// It tells the room and the load of its host.
    Look,
}

impl StoredRequest {
    /// Encodes the request under its number, which the answer repeats. So many bytes to write follow.
    #[must_use]
    pub fn encode(&self, request: u32, data_bytes: usize) -> (Header, [u8; STORED_REQUEST_BYTES]) {
        let (tag, words) = match *self {
            Self::Store { receiver: ProcessId { segment, slot, incarnation }, bytes } => {
                (0, [segment.0, u64::from(slot.0) | u64::from(incarnation.0) << 32, bytes])
            }
            Self::Put { number, offset } => (1, [number, offset, 0]),
            Self::Seal { number } => (2, [number, 0, 0]),
            Self::Get { number, offset, bytes } => (3, [number, offset, bytes]),
            Self::Free { number } => (4, [number, 0, 0]),
            Self::Look => (5, [0; 3]),
        };
        let length = (STORED_REQUEST_BYTES + data_bytes) as u32;
        (Header::user(Kind::RelayStored, length, request, tag), bytes_of(&words))
    }

    /// Decodes a request and the bytes to write; `None` if no process sends such a frame.
    #[must_use]
    pub fn decode<'a>(header: &Header, data: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (head, rest) = data.split_at_checked(STORED_REQUEST_BYTES)?;
        let number = long(head, 0);
        let request = match (header.kind, header.tag) {
            (Kind::RelayStored, 0) => {
                let (slot, incarnation) = (Slot(word(head, 8)), Incarnation(word(head, 12)));
                let receiver = ProcessId { segment: SegmentId(number), slot, incarnation };
                Self::Store { receiver, bytes: long(head, 16) }
            }
            (Kind::RelayStored, 1) => Self::Put { number, offset: long(head, 8) },
            (Kind::RelayStored, 2) => Self::Seal { number },
            (Kind::RelayStored, 3) => {
                Self::Get { number, offset: long(head, 8), bytes: long(head, 16) }
            }
            (Kind::RelayStored, 4) => Self::Free { number },
            (Kind::RelayStored, 5) => Self::Look,
            _ => return None,
        };
        let most = if matches!(request, Self::Put { .. }) { RELAY_PART_BYTES } else { 0 };
        let is_long = matches!(request, Self::Get { bytes, .. } if bytes > RELAY_PART_BYTES as u64);
        (rest.len() <= most && !is_long).then_some((request, rest))
    }

    /// Whether the relay reads, so that it can do so again.
    #[must_use]
    pub const fn reads(&self) -> bool {
        matches!(self, Self::Get { .. } | Self::Look)
    }
}

/// The word of a sender to its receiver that the data of an offered message are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredNotice {
    /// The send, as the offer has named it.
    pub send: u64,
    /// Where the data are.
    pub stored: StoredPlace,
    /// Their length.
    pub length: u64,
}

/// Where the data of a message are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StoredPlace {
    /// The host.
    pub host: HostNumber,
    /// The number of the stored message on that host.
    pub number: u64,
    /// Where they begin in the data of the store.
    pub place: u64,
}

impl StoredNotice {
    /// Encodes the notice.
    #[must_use]
    pub fn encode(&self) -> [u8; STORED_NOTICE_BYTES] {
        let StoredPlace { host, number, place } = self.stored;
        bytes_of(&[self.send, number, place, self.length, host.0.into()])
    }

    /// Decodes a notice; `None` if no process sends such a one.
    #[must_use]
    pub fn decode(data: &[u8; STORED_NOTICE_BYTES]) -> Option<Self> {
        let [send, number, place, length, host] = [0, 8, 16, 24, 32].map(|at| long(data, at));
        let host = HostNumber(u16::try_from(host).ok()?);
        Some(Self { send, stored: StoredPlace { host, number, place }, length })
    }
}

/// The bytes of some words, and zeros behind them.
fn bytes_of<const BYTES: usize>(words: &[u64]) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver() -> ProcessId {
        ProcessId { segment: SegmentId(7), slot: Slot(3), incarnation: Incarnation(u32::MAX) }
    }

    #[test]
    fn requests_about_stored_data_survive_their_encoding() {
        for request in [
            StoredRequest::Store { receiver: receiver(), bytes: u64::MAX },
            StoredRequest::Put { number: 1 << 40, offset: 9 },
            StoredRequest::Seal { number: 1 },
            StoredRequest::Get { number: 2, offset: u64::MAX, bytes: RELAY_PART_BYTES as u64 },
            StoredRequest::Free { number: 3 },
            StoredRequest::Look,
        ] {
            let data: &[u8] = match request {
                StoredRequest::Put { .. } => &[1, 2, 3],
                _ => &[],
            };
            let (header, head) = request.encode(5, data.len());
            let bytes = [&head[..], data].concat();
            assert_eq!((header.length as usize, header.context), (bytes.len(), 5));
            assert_eq!(StoredRequest::decode(&header, &bytes), Some((request, data)));
        }
    }

    #[test]
    fn a_stored_request_that_no_process_sends_is_refused() {
        let (header, bytes) = StoredRequest::Look.encode(5, 0);
        assert!(StoredRequest::decode(&header, &bytes[1..]).is_none(), "too short");
        assert!(StoredRequest::decode(&header, &[&bytes[..], &[0]].concat()).is_none(), "more");
        assert!(StoredRequest::decode(&Header { tag: 6, ..header }, &bytes).is_none());
        assert!(
            StoredRequest::decode(&Header { kind: Kind::RelayGet, ..header }, &bytes).is_none()
        );
        let (put, head) = StoredRequest::Put { number: 1, offset: 0 }.encode(5, 0);
        let long = [&head[..], &[0; RELAY_PART_BYTES + 1]].concat();
        assert!(StoredRequest::decode(&put, &long).is_none(), "more than a part");
        let bytes = RELAY_PART_BYTES as u64 + 1;
        let (get, head) = StoredRequest::Get { number: 1, offset: 0, bytes }.encode(5, 0);
        assert!(StoredRequest::decode(&get, &head).is_none(), "more than a part");
    }

    #[test]
    fn wishes_survive_their_words_and_have_names() {
        let named = StoreWish::NAMES.map(|name| StoreWish::from_name(name).expect("a name"));
        assert_eq!((named, StoreWish::from_name("n1")), (StoreWish::ALL, None));
        let hosts = [0, 7, u16::MAX].map(|number| StoreWish::Host(HostNumber(number)));
        for wish in named.into_iter().chain(hosts) {
            assert!(wish.to_word() < 1 << 24);
            assert_eq!(StoreWish::from_word(wish.to_word()), wish);
        }
        assert_eq!(StoreWish::from_word(u32::MAX), StoreWish::Receiver);
        for text in ["sender", "n1", "n2", ""] {
            let setting = StoreSetting::from_text(text);
            assert_eq!(StoreSetting::from_word(setting.to_word()), setting);
            assert_eq!(setting.names(text), text != "sender", "{text}");
            assert!(!setting.names("n3"));
        }
        assert_eq!(StoreSetting::from_word(0), StoreSetting::default());
    }

    #[test]
    fn notices_survive_their_encoding() {
        let stored = StoredPlace { host: HostNumber(u16::MAX), number: 1 << 50, place: 4096 };
        let notice = StoredNotice { send: u64::MAX, stored, length: 9 };
        let mut bytes = notice.encode();
        assert_eq!(StoredNotice::decode(&bytes), Some(notice));
        bytes[34] = 1;
        assert_eq!(StoredNotice::decode(&bytes), None, "no host has this number");
    }
}
