//! The shared heap: blocks whose reference travels instead of their bytes.
//!
//! Each process owns one arena in the segment and allocates in it; others read there what it
//! lends them. One mechanism serves three uses:
//!
//! | use | window of the block | filled when lent |
//! |---|---|---|
//! | loan: the data are in the heap already | all of it | all of it |
//! | whole buffer: copy in while the reader copies out | all of it | nothing |
//! | two-copy pipeline | a part; goes round like a ring | nothing |
//!
//! The owner allocates a [`Block`], writes to it, lends it ([`Heap::lend`]) and sends each reader
//! its [`BlockRange`]. The reader opens it ([`Borrowed`]), copies out, and gives it back by dropping
//! it. A block is free again when the owner's handle and all readers have given it back, or
//! have died ([`Heap::reclaim_from`]).
//!
//! A block may also be given away whole, to one reader ([`Heap::give`]): that one has the owner's bit,
//! and gives it back with one store and no entry on the return stack. The owner looks itself whether
//! what it gave away came back, a few blocks at a time and before it needs one ([`Heap::prepare`]).
//!
//! The owner keeps its knowledge of the arena (free ranges, each block's readers) in private memory.
//! The segment holds only the control lines of each block (`control.rs`; in a hardened job outside the
//! heap, which other processes only read there) and the head of the return stack (`returns.rs`). If these
//! are damaged, a block is lost or a reader gets wrong data, and no more than that.

mod control;
mod returns;

#[cfg(not(loom))]
mod block;
#[cfg(not(loom))]
mod borrowed;
#[cfg(not(loom))]
mod mark;
#[cfg(not(loom))]
mod owner;
#[cfg(not(loom))]
mod space;

pub use control::READERS_MAX;
#[cfg(not(loom))]
pub use {
    block::{Block, Given, Lent},
    borrowed::{BlockRangeError, Borrowed},
    mark::{Mark, MarkView},
    owner::{Heap, HeapFull, LendError},
};

/// The place of a lent block: plain values that travel in a message. The receiver trusts none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRange {
    /// The slot whose heap the block is in.
    pub owner: u32,
    /// The use of the block that is meant.
    pub generation: u32,
    /// Where the data begin, in bytes from the start of the owner's heap: a multiple of 64, plus
    /// the number of the reader that this place is for.
    pub offset: u64,
    /// Bytes of room for data. A transfer of more goes round in it.
    pub window: u64,
}

#[cfg(all(test, not(loom)))]
#[expect(clippy::duplicate_mod, reason = "the same tests, of both places of control lines")]
#[path = "tests.rs"]
mod tests_apart;

#[cfg(all(test, not(loom)))]
#[expect(clippy::duplicate_mod, reason = "the same tests, of both places of control lines")]
#[path = "tests.rs"]
mod tests_in_front;
