//! Arguments that many functions have, checked.

use std::ffi::{c_int, c_void};

use landeck_c_boundary::pointer;

use crate::abi::{ANY_SOURCE, ANY_TAG, COMM_SELF, COMM_WORLD, Handle, PROC_NULL};
use crate::communicator::Communicator;
use crate::datatype::Datatype;
use crate::job;
use crate::mistake::Mistake;

/// Memory that a message is read from or written to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub(crate) start: *mut u8,
    pub(crate) bytes: usize,
}

impl Memory {
    /// `count` items of a datatype at a buffer.
    pub(crate) fn new(
        buffer: *const c_void,
        count: c_int,
        datatype: Handle,
    ) -> Result<Self, Mistake> {
        let bytes = count_of(count)? * datatype_of(datatype)?.size_bytes;
        let start = buffer.cast::<u8>().cast_mut();
        pointer::check("buf", start, bytes).map_err(Mistake::Buffer)?;
        Ok(Self { start, bytes })
    }
}

/// The communicator of a handle.
#[inline]
pub(crate) fn communicator(handle: Handle) -> Result<Communicator, Mistake> {
    let job = job::current()?;
    match handle {
        COMM_WORLD => Ok(job.world()),
        COMM_SELF => Ok(job.myself()),
        value => Err(Mistake::Communicator { value }),
    }
}

/// A number of items. It fits, with the size of any predefined datatype, in the address space.
#[inline]
pub(crate) fn count_of(count: c_int) -> Result<usize, Mistake> {
    usize::try_from(count).map_err(|_| Mistake::Count { value: count })
}

/// The datatype of a handle.
#[inline]
pub(crate) fn datatype_of(handle: Handle) -> Result<Datatype, Mistake> {
    Datatype::of(handle).ok_or(Mistake::Datatype { value: handle })
}

/// A rank to send to; none for MPI_PROC_NULL.
#[inline]
pub(crate) fn destination(
    value: c_int,
    communicator: &Communicator,
) -> Result<Option<u32>, Mistake> {
    if value == PROC_NULL {
        return Ok(None);
    }
    rank("dest", value, communicator).map(Some)
}

/// Where a message may come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Nobody,
    Any,
    Rank(u32),
}

/// A rank to receive from.
#[inline]
pub(crate) fn source(value: c_int, communicator: &Communicator) -> Result<Source, Mistake> {
    match value {
        PROC_NULL => Ok(Source::Nobody),
        ANY_SOURCE => Ok(Source::Any),
        value => rank("source", value, communicator).map(Source::Rank),
    }
}

/// The tag of a message.
#[inline]
pub(crate) fn tag(value: c_int) -> Result<u32, Mistake> {
    u32::try_from(value).map_err(|_| Mistake::Tag { value, may_be_any: false })
}

/// The tag of a message to receive; none for any.
#[inline]
pub(crate) fn wanted_tag(value: c_int) -> Result<Option<u32>, Mistake> {
    if value == ANY_TAG {
        return Ok(None);
    }
    u32::try_from(value).map(Some).map_err(|_| Mistake::Tag { value, may_be_any: true })
}

fn rank(argument: &'static str, value: c_int, communicator: &Communicator) -> Result<u32, Mistake> {
    u32::try_from(value).ok().filter(|rank| *rank < communicator.size).ok_or(Mistake::Rank {
        argument,
        value,
        size: communicator.size,
    })
}
