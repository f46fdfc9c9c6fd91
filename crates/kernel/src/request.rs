//! The one kind of pending operation, and its completion.

use landeck_memory::heap::Borrowed;

use crate::failure::Failure;
use crate::status::Status;

/// A pending operation of one endpoint. A stale identifier is recognised by its generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl RequestId {
    /// The request as one number, for storing it in a handle.
    pub fn to_bits(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    /// The request of [`RequestId::to_bits`].
    pub fn from_bits(bits: u64) -> Self {
        Self { index: bits as u32, generation: (bits >> 32) as u32 }
    }
}

/// Data that were received without a buffer of the user's.
#[derive(Debug)]
pub enum Received {
    /// A private copy.
    Private(Vec<u8>),
    /// The sender's own bytes, read in place until dropped.
    Borrowed {
        /// The block that contains them.
        block: Borrowed,
        /// Their number of bytes.
        length: usize,
    },
}

/// The end of an operation, with its data if the receive had no buffer.
#[derive(Debug)]
pub struct Completion {
    /// The status of the message, or the failure.
    pub result: Result<Status, Failure>,
    /// The data, if they were received without a buffer of the user's.
    pub data: Option<Received>,
}
