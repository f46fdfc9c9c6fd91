//! A communicator: ranks, and messages between them.

use landeck::raw;
use landeck::world::{From, Tagged};
use landeck::{Tag, World};

use crate::abi::{Handle, Status};
use crate::arguments::{Memory, Source};
use crate::job::JobFailure;
use crate::mistake::Mistake;
use crate::request;

/// A communicator. A plain value: the world behind it lives as long as the process.
#[derive(Clone, Copy)]
pub(crate) struct Communicator {
    world: &'static World,
    pub(crate) rank: u32,
    pub(crate) size: u32,
}

impl Communicator {
    #[inline]
    pub(crate) fn new(world: &'static World) -> Self {
        let (rank, size) = (world.rank() as u32, world.size() as u32);
        Self { world, rank, size }
    }

    /// The world in which its messages travel.
    pub(crate) fn messages(&self) -> &'static World {
        self.world
    }

    /// Sends.
    ///
    /// # Safety
    /// The memory is readable during the call.
    #[inline]
    pub(crate) unsafe fn send(&self, to: u32, tag: u32, memory: Memory) -> Result<(), Mistake> {
        // SAFETY: the caller keeps these bytes readable until this call returns.
        unsafe { raw::send(self.world, memory.start, memory.bytes, to as usize, Tag(tag)) }
            .map_err(failure)
    }

    /// Receives.
    ///
    /// # Safety
    /// The memory is writable during the call, and nobody else uses it.
    #[inline]
    pub(crate) unsafe fn receive(
        &self,
        from: Source,
        tag: Option<u32>,
        memory: Memory,
    ) -> Result<Status, Mistake> {
        let (from, tag) = wanted(from, tag);
        // SAFETY: the caller keeps these bytes writable and to us alone until this call returns.
        unsafe { raw::receive(self.world, memory.start, memory.bytes, from, tag) }
            .map(|status| status_of(&status))
            .map_err(failure)
    }

    /// Starts to send and gives the request.
    ///
    /// # Safety
    /// The memory stays readable and unchanged until the request is complete.
    pub(crate) unsafe fn start_send(
        &self,
        to: u32,
        tag: u32,
        memory: Memory,
    ) -> Result<Handle, Mistake> {
        // SAFETY: the caller keeps these bytes readable until the request is over.
        unsafe { raw::start_send(self.world, memory.start, memory.bytes, to as usize, Tag(tag)) }
            .map(|operation| request::keep(operation, *self))
            .map_err(failure)
    }

    /// Starts to receive and gives the request.
    ///
    /// # Safety
    /// The memory stays writable until the request is complete, and nobody else uses it.
    pub(crate) unsafe fn start_receive(
        &self,
        from: Source,
        tag: Option<u32>,
        memory: Memory,
    ) -> Result<Handle, Mistake> {
        let (from, tag) = wanted(from, tag);
        // SAFETY: the caller keeps these bytes writable and to us alone until the request is over.
        unsafe { raw::start_receive(self.world, memory.start, memory.bytes, from, tag) }
            .map(|operation| request::keep(operation, *self))
            .map_err(failure)
    }
}

/// What the program gets to know of a message.
pub(crate) fn status_of(status: &landeck::Status) -> Status {
    // Ranks and tags are not negative as C's integers: `arguments` refused those.
    Status::of_message(
        status.rank() as i32,
        status.tag().0 as i32,
        status.bytes(),
        status.is_cancelled(),
    )
}

fn wanted(from: Source, tag: Option<u32>) -> (From, Tagged) {
    let from = match from {
        Source::Rank(rank) => From::from(rank as usize),
        Source::Any | Source::Nobody => From::from(landeck::Any),
    };
    let tag = tag.map_or_else(|| Tagged::from(landeck::Any), |tag| Tagged::from(Tag(tag)));
    (from, tag)
}

/// What a failure of the job means to a call.
pub(crate) fn failure(error: landeck::Error) -> Mistake {
    Mistake::Job(JobFailure::from(error))
}
