//! The one kind of pending operation, and how it ends.

use landeck_memory::heap::Borrowed;

use crate::failure::Failure;
use crate::status::Status;

/// A pending operation of one endpoint. A stale one is recognised by its generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl RequestId {
    /// The request as one number, for those who must put it into a handle.
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
        /// The block they are in.
        block: Borrowed,
        /// How many they are.
        length: usize,
    },
}

/// How an operation ended, with the data where it brought any of its own.
#[derive(Debug)]
pub struct Completion {
    /// What is known of the message.
    pub result: Result<Status, Failure>,
    /// The data, when they were received without a buffer of the user's.
    pub data: Option<Received>,
}
