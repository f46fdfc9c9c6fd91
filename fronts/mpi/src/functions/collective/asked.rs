//! A collective operation of the program, its arguments checked: done at once, started, or kept to be
//! started any number of times.

use std::ffi::c_int;
use std::sync::{Arc, Mutex};

use landeck::World;
use landeck::raw;
use landeck::raw::collective::{self, Data, Prepared};
use landeck::unstable::arithmetic::{Operator, Reduction};
use landeck::unstable::collectives::Operation as Collective;
use landeck::unstable::memory::NoMemory;
use landeck_c_boundary::pointer;

use super::between;
use super::fold::{self, Fold, Shared};
use super::side::Side;
use crate::abi::{Handle, PROC_NULL, ROOT};
use crate::arguments::{give, root as root_of};
use crate::mistake::Mistake;
use crate::objects::communicator::Communicator;
use crate::objects::info;
use crate::objects::operation::Own;
use crate::objects::request::{self, Pending, Persistent, Request, Started};
use crate::walk::Walk;

/// A collective operation.
pub(crate) struct Asked {
    pub(crate) communicator: &'static Arc<Communicator>,
    pub(crate) operation: Collective,
    pub(crate) role: Role,
    pub(crate) input: Side,
    pub(crate) output: Side,
    pub(crate) combines: Combines,
    /// The first item of the result that this process gets, where it gets a part.
    pub(crate) result_from: u64,
}

/// What a process is in an operation with a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It has no root.
    Member,
    Root,
    /// The root is this rank, of the other group if there is one.
    RootIs(usize),
    /// The root is in this group, which has no part in it otherwise.
    Bystander,
}

/// How data combine.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Combines {
    Not,
    Predefined(Reduction),
    Own(Own, Handle),
}

impl Role {
    /// Of this process, in a call with this root.
    #[inline]
    pub(super) fn of(communicator: &Communicator, root: c_int) -> Result<Self, Mistake> {
        let far = communicator.remote.is_some();
        match root {
            ROOT if far => Ok(Self::Root),
            PROC_NULL if far => Ok(Self::Bystander),
            root => {
                let root = root_of(root, communicator.messages().1)?;
                let is_own = !far && root == communicator.rank as usize;
                Ok(if is_own { Self::Root } else { Self::RootIs(root) })
            }
        }
    }

    fn root(self, communicator: &Communicator) -> usize {
        match self {
            Self::Member | Self::Bystander => 0,
            Self::Root => communicator.rank as usize,
            Self::RootIs(root) => root,
        }
    }
}

/// A collective operation as the layer below does it, and what is left to do when it is over.
pub(super) struct Below<'a> {
    pub(super) world: &'a World,
    pub(super) operation: Collective,
    pub(super) root: usize,
    pub(super) input: Data<'a>,
    pub(super) output: Data<'a>,
    pub(super) operator: Option<Operator>,
    /// The memory for the values that there is none of.
    pub(super) missing: Option<NoMemory>,
}

impl Below<'_> {
    fn asked(&self) -> collective::Asked<'_> {
        let Self { operation, root, input, output, missing, .. } = *self;
        let operator = self.operator.clone();
        collective::Asked { operation, root, input, output, operator, missing }
    }

    /// # Safety
    /// The memory is left to the operation until this returns.
    unsafe fn call(&self) -> Result<(), Mistake> {
        // SAFETY: the caller's promise.
        unsafe { collective::call(self.world, &self.asked()) }.map_err(Mistake::from)
    }

    /// # Safety
    /// The memory is left to the operation until it is over.
    unsafe fn start(&self) -> Result<raw::Operation, Mistake> {
        // SAFETY: the caller's promise.
        unsafe { collective::start(self.world, &self.asked()) }.map_err(Mistake::from)
    }

    /// # Safety
    /// The memory is left to each operation that is started with it.
    unsafe fn prepare(&self) -> Result<Prepared, Mistake> {
        // SAFETY: the caller's promise.
        unsafe { collective::prepare(self.world, &self.asked()) }.map_err(Mistake::from)
    }
}

impl Asked {
    /// One without root, and without data so far.
    #[inline]
    pub(super) fn new(communicator: &'static Arc<Communicator>, operation: Collective) -> Self {
        Self {
            communicator,
            operation,
            role: Role::Member,
            input: Side::Nothing,
            output: Side::Nothing,
            combines: Combines::Not,
            result_from: 0,
        }
    }

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

    /// What is to be done with the values when the layer below has brought them together.
    fn fold(&self) -> Result<Option<Shared>, Mistake> {
        Ok(Fold::of(self)?.map(|fold| Arc::new(Mutex::new(fold))))
    }

    /// As one operation of the layer below.
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

    /// As the layer below has it, among the members of one group.
    #[inline]
    pub(super) fn plain(&self) -> Below<'_> {
        Below {
            world: &self.communicator.world,
            operation: self.operation,
            root: self.role.root(self.communicator),
            input: self.input.data(),
            output: self.output.data(),
            operator: match self.combines {
                Combines::Predefined(reduction) => Some(reduction.into()),
                _ => None,
            },
            missing: None,
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
