//! A collective operation of the program, its arguments checked, and as the layer below has it.

use std::ffi::c_int;
use std::sync::Arc;

use landeck::World;
use landeck::raw;
use landeck::raw::collective::{self, Data, Prepared};
use landeck::unstable::arithmetic::{Operator, Reduction};
use landeck::unstable::collectives::Operation as Collective;
use landeck::unstable::memory::NoMemory;

use super::side::Side;
use crate::abi::{Handle, PROC_NULL, ROOT};
use crate::arguments::root as root_of;
use crate::mistake::Mistake;
use crate::objects::communicator::Communicator;
use crate::objects::operation::Own;

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

/// The role of a process in an operation with a root.
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
    pub(super) fn asked(&self) -> collective::Asked<'_> {
        let Self { operation, root, input, output, missing, .. } = *self;
        let operator = self.operator.clone();
        collective::Asked { operation, root, input, output, operator, missing }
    }

    /// # Safety
    /// The memory is left to the operation until this returns.
    pub(super) unsafe fn call(&self) -> Result<(), Mistake> {
        // SAFETY: the caller's promise.
        unsafe { collective::call(self.world, &self.asked()) }.map_err(Mistake::from)
    }

    /// # Safety
    /// The memory is left to the operation until it is over.
    pub(super) unsafe fn start(&self) -> Result<raw::Operation, Mistake> {
        // SAFETY: the caller's promise.
        unsafe { collective::start(self.world, &self.asked()) }.map_err(Mistake::from)
    }

    /// # Safety
    /// The memory is left to each operation that is started with it.
    pub(super) unsafe fn prepare(&self) -> Result<Prepared, Mistake> {
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
