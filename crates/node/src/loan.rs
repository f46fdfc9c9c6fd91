//! Zero-copy messages: memory whose reference is sent instead of its bytes.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use landeck_channel::Peer;
use landeck_kernel::Started;
use landeck_memory::heap::Block;
use landeck_memory::plain::Plain;
use landeck_memory::{Bytes, room};
use landeck_wire::Tag;

use crate::error::{ErrorKind, Result};
use crate::world::{Source, Status, TagFilter, World};
use landeck_engine::{Shared, WaitError};
use landeck_kernel::Received;

/// Memory of the shared heap, owned by this process until it is sent.
pub struct Loan<T> {
    block: Block,
    count: usize,
    values: PhantomData<T>,
}

impl<T: Plain> Loan<T> {
    pub(crate) fn new(shared: &Shared, count: usize) -> Result<Self> {
        let bytes = count.saturating_mul(size_of::<T>());
        let block = shared.engine.enter()?.endpoint.allocate(bytes)?;
        Ok(Self { block, count, values: PhantomData })
    }

    /// Returns the block.
    pub(crate) fn into_block(self) -> Block {
        self.block
    }

    pub(crate) fn send(self, world: &World, to: Peer, tag: Tag) -> Result<()> {
        let started =
            world.shared.engine.enter()?.endpoint.send_loan(to, world.context, tag.0, self.block);
        let finished = match started {
            Ok(Started::Complete(_)) => Ok(()),
            Ok(Started::Pending(id)) => world.shared.wait_or_abandon(id.into(), None).map(|_| ()),
            Err(failure) => Err(WaitError::Failure(failure)),
        };
        finished.map_err(|error| world.error(error, None))
    }
}

impl World {
    /// Sends a loan without copying it: only its reference travels, and the receiver owns the
    /// memory.
    ///
    /// # Errors
    /// As [`World::send`].
    pub fn send_loan<T: Plain>(&self, loan: Loan<T>, to: usize, tag: impl Into<Tag>) -> Result<()> {
        self.call("send", || {
            let peer = self.peer(to)?;
            loan.send(self, peer, tag.into())
        })
    }

    /// Waits for a message and receives it without copying if possible: a loan, or a message in the
    /// shared heap, is read in place; any other message is copied.
    ///
    /// # Errors
    /// As [`World::receive_into`], and [`ErrorKind::WrongType`].
    pub fn receive_loan<T: Plain>(
        &self,
        from: impl Into<Source>,
        tag: impl Into<TagFilter>,
    ) -> Result<(Loaned<T>, Status)> {
        self.call("receive", || {
            let wanted = self.wanted(from.into(), tag.into())?;
            let completion =
                self.shared.receive_own(wanted).map_err(|error| self.error(error, None))?;
            let status = self.status(&completion)?;
            Ok((Loaned::new(completion.data)?, status))
        })
    }

    /// Waits for a message of any length and returns a copy of its values.
    ///
    /// # Errors
    /// As [`World::receive_into`], [`ErrorKind::WrongType`], and [`ErrorKind::NoMemory`]; then the message is lost.
    pub fn receive_vec<T: Plain>(
        &self,
        from: impl Into<Source>,
        tag: impl Into<TagFilter>,
    ) -> Result<(Vec<T>, Status)> {
        self.call("receive", || {
            let (loaned, status) = self.receive_loan::<u8>(from, tag)?;
            let (bytes, value_bytes) = (loaned.bytes(), size_of::<T>().max(1));
            if bytes.len() % value_bytes != 0 {
                return Err(
                    ErrorKind::WrongType { message_bytes: status.bytes(), value_bytes }.into()
                );
            }
            Ok((room::copy(bytes)?, status))
        })
    }
}

impl<T: Plain> Deref for Loan<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the block has this many bytes, is aligned to a line, and is ours alone.
        unsafe { std::slice::from_raw_parts(self.block.as_ptr().cast(), self.count) }
    }
}

impl<T: Plain> DerefMut for Loan<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: the block has this many bytes, is aligned to a line, and is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.block.as_mut_ptr().cast(), self.count) }
    }
}

/// A received message, read in place where possible. Dropping it returns the memory to its sender.
pub struct Loaned<T> {
    data: Option<Received>,
    values: PhantomData<T>,
}

impl<T: Plain> Loaned<T> {
    pub(crate) fn new(data: Option<Received>) -> Result<Self> {
        let loaned = Self { data, values: PhantomData };
        let (message_bytes, value_bytes) = (loaned.bytes().len() as u64, size_of::<T>());
        if message_bytes % value_bytes.max(1) as u64 != 0 {
            return Err(ErrorKind::WrongType { message_bytes, value_bytes }.into());
        }
        Ok(loaned)
    }

    /// Returns its bytes. They are read by copying only, since they lie in memory that the sender
    /// could still reach.
    pub fn bytes(&self) -> Bytes<'_> {
        match &self.data {
            None => Bytes::EMPTY,
            Some(Received::Private(own)) => Bytes::from(&own[..]),
            Some(Received::Borrowed { block, length }) => block.piece(0, *length),
        }
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.bytes().len() / size_of::<T>().max(1)
    }

    /// Returns whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the message is read in place; otherwise it was copied.
    pub fn is_in_place(&self) -> bool {
        matches!(self.data, Some(Received::Borrowed { .. }))
    }

    /// Returns one value; `None` beyond the end.
    pub fn get(&self, index: usize) -> Option<T> {
        let mut value = [landeck_memory::plain::zero()];
        let part = self.bytes().part(index.checked_mul(size_of::<T>())?, size_of::<T>());
        let copied = part.copy_to_slice(landeck_memory::plain::bytes_of_mut(&mut value));
        (copied == size_of::<T>() && index < self.len()).then_some(value[0])
    }

    /// Returns a private copy of the values.
    pub fn to_vec(&self) -> Vec<T> {
        let mut values = vec![landeck_memory::plain::zero(); self.len()];
        self.bytes().copy_to_slice(landeck_memory::plain::bytes_of_mut(&mut values));
        values
    }
}

impl<T: Plain> Loaned<T> {
    /// Returns the values in place.
    ///
    /// # Safety
    /// The sending process no longer writes to them. This holds for every process that uses only
    /// this API, since it gives a loan away when it sends it.
    pub unsafe fn as_slice(&self) -> &[T] {
        let bytes = self.bytes();
        // SAFETY: the range is mapped and aligned to a line, plain values have no invalid bit
        // patterns, and the caller vouches for the sender.
        unsafe { std::slice::from_raw_parts(bytes.start().cast().as_ptr(), self.len()) }
    }
}
