//! A collective operation that the program has asked for is done at once, started, or kept to be started
//! any number of times.

use std::sync::{Arc, Mutex};

use landeck::World;
use landeck::raw;
use landeck::raw::collective;
use landeck::unstable::memory::NoMemory;
use landeck_c_boundary::pointer;

use super::asked::{Asked, Below, Combines};
use super::between;
use super::fold::{self, Fold, Shared};
use crate::abi::Handle;
use crate::arguments::give;
use crate::mistake::Mistake;
use crate::objects::communicator::Communicator;
use crate::objects::info;
use crate::objects::request::{self, Pending, Persistent, Request, Started};
use crate::walk::Walk;

impl Asked {
    /// Does it without calling the program back.
    #[inline]
    pub(super) unsafe fn move_data(&self) -> Result<(), Mistake> {
        if self.communicator.remote.is_some() {
            // SAFETY: the program leaves the memory to this call.
            return unsafe { self.call() }.map(drop);
        }
        // SAFETY: as above.
        unsafe { self.plain().call() }
    }

    /// Does it.
    #[inline]
    pub(super) unsafe fn call(&self) -> Result<Walk, Mistake> {
        if matches!(self.combines, Combines::Own(..)) || self.communicator.remote.is_some() {
            // SAFETY: the program leaves the memory to this call.
            return unsafe { self.call_in_parts() };
        }
        // SAFETY: as above.
        unsafe { self.plain().call()? };
        Ok(Walk::Done)
    }

    #[inline(never)]
    unsafe fn call_in_parts(&self) -> Result<Walk, Mistake> {
        if let Some(folding) = fold::in_segments(self)? {
            return Ok(folding);
        }
        let folds = self.fold()?;
        // SAFETY: the program leaves the memory to this call.
        self.below(folds.as_ref(), |below| unsafe { below.call() })?;
        Ok(match folds {
            None => Walk::Done,
            Some(folds) => Walk::new(move || fold::step(&folds)),
        })
    }

    /// Starts it, and gives the program a request.
    pub(crate) unsafe fn start(&self, request: *mut Handle) -> Result<(), Mistake> {
        pointer::check("request", request, 1)?;
        if let Err(no_room) = request::make_room() {
            self.start_without_request()?;
            return Err(no_room);
        }
        let folds = self.fold()?;
        // SAFETY: the program leaves the memory to the operation until the request is complete.
        let operation = self.below(folds.as_ref(), |below| unsafe { below.start() })?;
        let pending = pending(operation, self.communicator, folds);
        // SAFETY: the program says that it is writable.
        unsafe { give("request", request, request::keep(Request::Collective(pending))) }
    }

    /// Takes part in it with nothing, since there is no memory for a request: nobody waits for this member, and
    /// nothing of the program's is touched.
    #[cold]
    fn start_without_request(&self) -> Result<(), Mistake> {
        let folds = self.fold()?;
        let started = self.below(folds.as_ref(), |below| {
            let nothing =
                collective::Asked { missing: Some(NoMemory { bytes: 0 }), ..below.asked() };
            // SAFETY: an operation without memory touches none of the program's once it has begun.
            unsafe { collective::start(below.world, &nothing) }.map_err(Mistake::from)
        });
        match started {
            Ok(operation @ raw::Operation::Pending(_)) => {
                Ok(raw::release(world_of(self.communicator), operation)?)
            }
            // It says that there is no memory, which the caller says.
            _ => Ok(()),
        }
    }

    /// Keeps it, to be started any number of times, in any order beside others. All members call this, in
    /// the same order.
    pub(crate) unsafe fn keep(&self, hints: Handle, request: *mut Handle) -> Result<(), Mistake> {
        info::snapshot_or_empty("info", hints)?;
        pointer::check("request", request, 1)?;
        // The others wait for this member here, whatever it has no memory for.
        let world = world_of_kept(self.communicator)?;
        request::make_room()?;
        let folds = self.fold()?;
        if let Some(no_memory) = folds.as_ref().and_then(|folds| fold::lock(folds).missing()) {
            return Err(no_memory.into());
        }
        // SAFETY: the program leaves the memory to each operation that is started.
        let prepared = self.below(folds.as_ref(), |below| unsafe { below.prepare() })?;
        let own = Arc::clone(self.communicator);
        let begin = move || {
            if let Some(folds) = &folds {
                fold::begin_again(folds);
            }
            // SAFETY: as was promised when it was made; one at a time, else it is refused.
            let operation = unsafe { collective::start_prepared(&world, &prepared)? };
            Ok(Started::Pending(pending(operation, &own, folds.clone())))
        };
        let (begin, active) = (Box::new(begin), Mutex::new(None));
        let communicator = Arc::clone(self.communicator);
        let kept = Persistent { communicator, is_message: false, begin, active };
        let handle = request::keep(Request::Persistent(Arc::new(kept)));
        // SAFETY: the program says that it is writable.
        unsafe { give("request", request, handle) }
    }

    /// The combination of the values, once the layer below has collected them.
    fn fold(&self) -> Result<Option<Shared>, Mistake> {
        Ok(Fold::of(self)?.map(|fold| Arc::new(Mutex::new(fold))))
    }

    /// Hands the call to the layer below as one operation.
    fn below<R>(
        &self,
        folds: Option<&Shared>,
        use_it: impl FnOnce(&Below<'_>) -> Result<R, Mistake>,
    ) -> Result<R, Mistake> {
        match (&self.communicator.remote, folds) {
            (Some(remote), folds) => between::exchange(self, remote, folds, use_it),
            (None, Some(folds)) => fold::collect(self, folds, use_it),
            (None, None) => use_it(&self.plain()),
        }
    }
}

/// The world in which the collective operations of a communicator go on.
fn world_of(communicator: &Communicator) -> &World {
    match &communicator.remote {
        None => &communicator.world,
        Some(remote) => remote.both(),
    }
}

/// The world in which an operation goes on that is kept. Members of a world begin its operations in one
/// order, so each that is kept has a world of its own: then its starts are counted apart from all others.
fn world_of_kept(communicator: &Communicator) -> Result<World, Mistake> {
    let world = world_of(communicator);
    if communicator.hints().get(STRICT_ORDER) == Some("true") {
        return Ok(world.clone());
    }
    Ok(world.duplicate()?)
}

/// The hint of a communicator by which the program vouches for the order of all starts.
const STRICT_ORDER: &str = "mpi_assert_strict_persistent_collective_ordering";

fn pending(
    operation: raw::Operation,
    communicator: &Arc<Communicator>,
    folds: Option<Shared>,
) -> Pending {
    let rest = folds.map(|folds| -> request::Rest { Box::new(move || fold::step(&folds)) });
    Pending {
        // What a collective operation says of itself is nothing.
        operation,
        communicator: Arc::clone(communicator),
        rest: Mutex::new(rest),
    }
}
