//! Requests to the relay of another host, which reads and writes the memory of its host's processes, and its answers.
//!
//! A request is a frame of a kind of its own. The number of the request is its context, and the operation is its tag:
//!
//! ```text
//!  data of a request   0  slot of the owner (32) | its incarnation (32)
//!                      8  place of the region in the owner's heap
//!                     16  number of the region
//!                     24  first byte of the region that is meant
//!                     32  two operands
//!                     48  bytes to write
//! ```
//!
//! An answer has the number of its request as context and a [`RelayOutcome`] as tag. Its data are the bytes that were
//! read, or one word. The relay answers requests in their order.
//!
//! Requests travel over the process's connection for messages to that relay ([`crate::relayed`]). A process numbers its
//! requests to a relay from 0 on. Over another connection it sends those again whose answers have not come. The relay does
//! no change twice: it has the last [`RELAY_WINDOW`] answers. A relay that has started again has none: it repeats what can be
//! repeated, and gives the others up ([`RelayOutcome::Unknown`]). So a process says how many requests it has sent before, as
//! the context of its [`Header::RELAY_OPEN`].

use crate::header::{Header, Kind};
use crate::preamble::{long, word};

/// The length of a request without bytes to write.
pub const RELAY_REQUEST_BYTES: usize = 48;
/// The most bytes of a region that one request reads or writes: a frame's, but for a line.
pub const RELAY_PART_BYTES: usize = 64 * 1024 - 64;

/// The most requests of a process to one relay that may be on their way at once.
pub const RELAY_WINDOW: usize = 16;

/// The operation of the relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayOperation {
    /// It writes the bytes of the request.
    Put {
        /// It notifies the owner then.
        notifies: bool,
    },
    /// It reads so many bytes.
    Get {
        /// Their number.
        bytes: u64,
    },
    /// It looks how long the region is.
    Look,
    /// It adds to a word.
    Add(u64),
    /// It replaces a word.
    Swap(u64),
    /// It replaces a word that has an expected value.
    CompareSwap {
        /// The expected value.
        expected: u64,
        /// The new value.
        new: u64,
    },
}

/// A request, without the bytes to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayRequest {
    /// The slot of the region's owner.
    pub slot: u32,
    /// The owner's incarnation.
    pub incarnation: u32,
    /// The place of the region in the owner's heap.
    pub place: u64,
    /// The number of the region.
    pub number: u64,
    /// The first byte of the region that is meant.
    pub offset: u64,
    /// The operation.
    pub operation: RelayOperation,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum RelayOutcome {
    /// It was done.
    Done = 0,
    /// There is no such region (any more).
    Gone = 1,
    /// The owner has ended, or another process has its slot.
    OwnerGone = 2,
    /// The access leaves the region. The word of the answer is the region's length.
    Outside = 3,
    /// The word is no whole word of the region.
    Unaligned = 4,
    /// The kernel does not map the region's pages for writing. The word of the answer is its error.
    Unmapped = 5,
    /// The request has a form that no process of this release sends.
    Senseless = 6,
    /// The relay has started again, and the one before may have done this. It cannot be done twice.
    Unknown = 7,
    /// There is no room to store so much.
    NoRoom = 8,
}

impl RelayOutcome {
    /// The outcome with this number.
    #[must_use]
    pub const fn from_tag(tag: u32) -> Option<Self> {
        Some(match tag {
            0 => Self::Done,
            1 => Self::Gone,
            2 => Self::OwnerGone,
            3 => Self::Outside,
            4 => Self::Unaligned,
            5 => Self::Unmapped,
            6 => Self::Senseless,
            7 => Self::Unknown,
            8 => Self::NoRoom,
            _ => return None,
        })
    }
}

impl RelayRequest {
    /// Encodes the request under its number, which the answer repeats. So many bytes to write follow.
    #[must_use]
    pub fn encode(&self, number: u32, data_bytes: usize) -> (Header, [u8; RELAY_REQUEST_BYTES]) {
        let (kind, tag, operands) = match self.operation {
            RelayOperation::Put { notifies } => (Kind::RelayPut, u32::from(notifies), [0, 0]),
            RelayOperation::Get { bytes } => (Kind::RelayGet, 0, [bytes, 0]),
            RelayOperation::Look => (Kind::RelayWord, 0, [0, 0]),
            RelayOperation::Add(number) => (Kind::RelayWord, 1, [number, 0]),
            RelayOperation::Swap(number) => (Kind::RelayWord, 2, [number, 0]),
            RelayOperation::CompareSwap { expected, new } => (Kind::RelayWord, 3, [expected, new]),
        };
        let owner = u64::from(self.slot) | u64::from(self.incarnation) << 32;
        let words = [owner, self.place, self.number, self.offset, operands[0], operands[1]];
        let mut bytes = [0; RELAY_REQUEST_BYTES];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let length = (RELAY_REQUEST_BYTES + data_bytes) as u32;
        (Header::user(kind, length, number, tag), bytes)
    }

    /// Decodes a request and the bytes to write; `None` if no process sends such a frame.
    #[must_use]
    pub fn decode<'a>(header: &Header, data: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (head, rest) = data.split_at_checked(RELAY_REQUEST_BYTES)?;
        let [first, second] = [long(head, 32), long(head, 40)];
        let operation = match (header.kind, header.tag) {
            (Kind::RelayPut, tag @ (0 | 1)) => RelayOperation::Put { notifies: tag == 1 },
            (Kind::RelayGet, 0) => RelayOperation::Get { bytes: first },
            (Kind::RelayWord, 0) => RelayOperation::Look,
            (Kind::RelayWord, 1) => RelayOperation::Add(first),
            (Kind::RelayWord, 2) => RelayOperation::Swap(first),
            (Kind::RelayWord, 3) => RelayOperation::CompareSwap { expected: first, new: second },
            _ => return None,
        };
        let is_put = matches!(operation, RelayOperation::Put { .. });
        let is_long = |bytes: u64| bytes > RELAY_PART_BYTES as u64;
        if matches!(operation, RelayOperation::Get { bytes } if is_long(bytes)) {
            return None;
        }
        if rest.len() > RELAY_PART_BYTES || !is_put && !rest.is_empty() {
            return None;
        }
        let request = Self {
            slot: word(head, 0),
            incarnation: word(head, 4),
            place: long(head, 8),
            number: long(head, 16),
            offset: long(head, 24),
            operation,
        };
        Some((request, rest))
    }

    /// The header of the answer to a request, with so many bytes of data.
    #[must_use]
    pub const fn answer(request: u32, outcome: RelayOutcome, data_bytes: usize) -> Header {
        Header::user(Kind::RelayAnswer, data_bytes as u32, request, outcome as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(operation: RelayOperation) -> RelayRequest {
        let (slot, incarnation) = (3, 9);
        let (place, number, offset) = (1 << 40, 7, u64::MAX);
        RelayRequest { slot, incarnation, place, number, offset, operation }
    }

    #[test]
    fn requests_survive_their_encoding() {
        for operation in [
            RelayOperation::Put { notifies: false },
            RelayOperation::Put { notifies: true },
            RelayOperation::Get { bytes: 77 },
            RelayOperation::Look,
            RelayOperation::Add(8),
            RelayOperation::Swap(u64::MAX),
            RelayOperation::CompareSwap { expected: 1, new: 2 },
        ] {
            let data: &[u8] = match operation {
                RelayOperation::Put { .. } => &[1, 2, 3],
                _ => &[],
            };
            let (header, head) = request(operation).encode(5, data.len());
            let bytes = [&head[..], data].concat();
            assert_eq!((header.length as usize, header.context), (bytes.len(), 5));
            assert_eq!(RelayRequest::decode(&header, &bytes), Some((request(operation), data)));
        }
    }

    #[test]
    fn a_relay_request_that_no_process_sends_is_refused() {
        let (header, bytes) = request(RelayOperation::Look).encode(5, 0);
        assert!(RelayRequest::decode(&header, &bytes[1..]).is_none(), "too short");
        assert!(RelayRequest::decode(&header, &[&bytes[..], &[0]].concat()).is_none(), "more");
        assert!(RelayRequest::decode(&Header { tag: 4, ..header }, &bytes).is_none());
        assert!(RelayRequest::decode(&Header { kind: Kind::Eager, ..header }, &bytes).is_none());
        let (put, head) = request(RelayOperation::Put { notifies: false }).encode(5, 0);
        let long = [&head[..], &[0; RELAY_PART_BYTES + 1]].concat();
        assert!(RelayRequest::decode(&put, &long).is_none(), "more than a part");
        let (get, head) =
            request(RelayOperation::Get { bytes: RELAY_PART_BYTES as u64 + 1 }).encode(5, 0);
        assert!(RelayRequest::decode(&get, &head).is_none(), "more than a part");
        assert_eq!(RelayOutcome::from_tag(9), None);
        let outcomes = (0..9).map(|tag| RelayOutcome::from_tag(tag).map(|it| it as u32));
        assert!(outcomes.eq((0..9).map(Some)));
    }
}
