//! Persistent collective operations: prepared once, started any number of times.
//!
//! A persistent operation owns its memory, so it may be in progress while the program does anything
//! else, without a scope. Access to its values waits until it is complete.
//!
//! ```no_run
//! # fn main() -> landeck::Result<()> {
//! # let world = landeck::Job::join()?.world();
//! use landeck::{Persistent, Sum};
//! let mut sum = Persistent::all_reduce(&world, vec![0.0f64; 1000], Sum)?;
//! for step in 0..100 {
//!     sum.input_mut()?[0] = f64::from(step);
//!     sum.start()?;
//!     // ... compute what needs no sum ...
//!     println!("{}", sum.output()?[0]);
//! }
//! # Ok(()) }
//! ```

use landeck_collectives::Operation;
use landeck_memory::Buffer;
use landeck_memory::plain::{Plain, zero};

use crate::collectives::combine::{Combination, Combine};
use crate::error::{Error, Result};
use crate::world::World;
use landeck_engine::{CallDescription, Caller, OperationId, WaitError};

/// A persistent collective operation and its memory. Dropping it gives up an operation in progress.
pub struct Persistent<T: Plain> {
    world: World,
    form: Form,
    /// The input; empty if the operation works in place.
    input: Vec<T>,
    output: Vec<T>,
    going: Option<OperationId>,
}

/// The operation, with its root or operator.
#[derive(Clone)]
enum Form {
    Barrier,
    Broadcast(usize),
    Gather(usize),
    Scatter(usize),
    AllGather,
    AllToAll,
    Reduction(Operation, Combination, usize),
    ReduceScatter(Combination),
}

impl Form {
    /// The name of the operation in errors.
    fn name(&self) -> &'static str {
        let operation = match self {
            Self::Barrier => Operation::Barrier,
            Self::Broadcast(_) => Operation::Broadcast,
            Self::Gather(_) => Operation::Gather,
            Self::Scatter(_) => Operation::Scatter,
            Self::AllGather => Operation::AllGather,
            Self::AllToAll => Operation::AllToAll,
            Self::Reduction(operation, ..) => *operation,
            Self::ReduceScatter(_) => Operation::ReduceScatter,
        };
        operation.as_str()
    }

    fn describe<'a>(
        &'a self,
        caller: Caller<'a>,
        input: Buffer,
        output: Buffer,
    ) -> CallDescription<'a> {
        match self {
            Self::Barrier => caller.barrier(),
            Self::Broadcast(root) => caller.broadcast(output, *root),
            Self::Gather(root) => caller.gather(input, output, *root),
            Self::Scatter(root) => caller.scatter(input, output, *root),
            Self::AllGather => caller.all_gather(input, output),
            Self::AllToAll => caller.all_to_all(input, output),
            Self::Reduction(operation, how, root) => {
                caller.reduction(*operation, input, output, how, *root)
            }
            Self::ReduceScatter(how) => caller.reduce_scatter_block(input, output, how),
        }
    }
}

impl Persistent<u8> {
    /// Prepares a [`World::barrier`].
    pub fn barrier(world: &World) -> Self {
        Self::new(world, Form::Barrier, Vec::new(), 0)
    }
}

impl<T: Plain> Persistent<T> {
    /// Prepares a [`World::broadcast`] from `root`: the root's values replace those of the other
    /// members. The values are input and output at once.
    pub fn broadcast(world: &World, values: Vec<T>, root: usize) -> Self {
        let mut made = Self::new(world, Form::Broadcast(root), Vec::new(), 0);
        made.output = values;
        made
    }

    /// Prepares a [`World::gather`] to `root`; the output is empty at all other members.
    pub fn gather(world: &World, values: Vec<T>, root: usize) -> Self {
        let room = if world.rank() == root { values.len() * world.size() } else { 0 };
        Self::new(world, Form::Gather(root), values, room)
    }

    /// Prepares a [`World::scatter`] from `root`, of `each` values to each member. `values` is used
    /// at the root only, and holds `each` values for each member.
    pub fn scatter(world: &World, values: Vec<T>, each: usize, root: usize) -> Self {
        Self::new(world, Form::Scatter(root), values, each)
    }

    /// Prepares a [`World::all_gather`].
    pub fn all_gather(world: &World, values: Vec<T>) -> Self {
        let room = values.len() * world.size();
        Self::new(world, Form::AllGather, values, room)
    }

    /// Prepares a [`World::all_to_all`].
    pub fn all_to_all(world: &World, values: Vec<T>) -> Self {
        let room = values.len();
        Self::new(world, Form::AllToAll, values, room)
    }

    /// Prepares a [`World::reduce`] to `root`; the output is empty at all other members.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Reduction`].
    pub fn reduce(
        world: &World,
        values: Vec<T>,
        combine: impl Combine<T>,
        root: usize,
    ) -> Result<Self> {
        let room = if world.rank() == root { values.len() } else { 0 };
        let form = Form::Reduction(Operation::Reduce, combine.combination()?, root);
        Ok(Self::new(world, form, values, room))
    }

    /// Prepares a [`World::all_reduce_into`].
    ///
    /// # Errors
    /// [`crate::ErrorKind::Reduction`].
    pub fn all_reduce(world: &World, values: Vec<T>, combine: impl Combine<T>) -> Result<Self> {
        Self::reduction(world, Operation::AllReduce, values, combine)
    }

    /// Prepares a [`World::scan`].
    ///
    /// # Errors
    /// [`crate::ErrorKind::Reduction`].
    pub fn scan(world: &World, values: Vec<T>, combine: impl Combine<T>) -> Result<Self> {
        Self::reduction(world, Operation::Scan, values, combine)
    }

    /// Prepares a [`World::exclusive_scan`].
    ///
    /// # Errors
    /// [`crate::ErrorKind::Reduction`].
    pub fn exclusive_scan(world: &World, values: Vec<T>, combine: impl Combine<T>) -> Result<Self> {
        Self::reduction(world, Operation::ExclusiveScan, values, combine)
    }

    /// Prepares a [`World::reduce_scatter_block`]; the parts have `values.len()` divided by the
    /// number of members.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Reduction`].
    pub fn reduce_scatter_block(
        world: &World,
        values: Vec<T>,
        combine: impl Combine<T>,
    ) -> Result<Self> {
        let room = values.len() / world.size().max(1);
        Ok(Self::new(world, Form::ReduceScatter(combine.combination()?), values, room))
    }

    fn reduction(
        world: &World,
        operation: Operation,
        values: Vec<T>,
        combine: impl Combine<T>,
    ) -> Result<Self> {
        let room = values.len();
        let form = Form::Reduction(operation, combine.combination()?, 0);
        Ok(Self::new(world, form, values, room))
    }

    fn new(world: &World, form: Form, input: Vec<T>, room: usize) -> Self {
        Self { world: world.clone(), form, input, output: vec![zero(); room], going: None }
    }

    /// Starts the operation, after waiting until its last run is complete. All members start the
    /// operations of a world in the same order.
    ///
    /// # Errors
    /// As the method of [`World`], for this run or the last one.
    pub fn start(&mut self) -> Result<()> {
        self.wait()?;
        // SAFETY: the memory is this operation's own: nobody gets at it before the operation is
        // over, and it goes only after that, or never.
        let (input, output) =
            unsafe { (Buffer::of(&self.input), Buffer::of_mut(&mut self.output)) };
        let asked = self.form.describe(self.world.caller::<T>(), input, output);
        self.going = self.world.start(asked)?;
        self.world.shared.goes_on();
        Ok(())
    }

    /// Makes progress, and returns whether the operation is complete or was not started.
    ///
    /// # Errors
    /// As [`Persistent::start`].
    pub fn test(&mut self) -> Result<bool> {
        let Some(id) = self.going else { return Ok(true) };
        match self.world.shared.test(id) {
            Ok(None) => Ok(false),
            ended => {
                self.going = None;
                ended.map(|_| true).map_err(|error| self.error(error))
            }
        }
    }

    /// Waits until the operation is complete; returns at once if it was not started.
    ///
    /// # Errors
    /// As [`Persistent::start`].
    pub fn wait(&mut self) -> Result<()> {
        let Some(id) = self.going.take() else { return Ok(()) };
        let ended = self.world.shared.wait_or_abandon(id, None);
        ended.map(drop).map_err(|error| self.error(error))
    }

    /// The error of the operation, with its name.
    #[cold]
    fn error(&self, error: WaitError) -> Error {
        self.world.in_call(self.form.name(), self.world.error(error, None))
    }

    /// Returns the input of this member for the next run, after waiting until the last run is
    /// complete.
    ///
    /// # Errors
    /// As [`Persistent::start`].
    pub fn input_mut(&mut self) -> Result<&mut [T]> {
        self.wait()?;
        let is_in_place = matches!(self.form, Form::Broadcast(_));
        Ok(if is_in_place { &mut self.output } else { &mut self.input })
    }

    /// Returns the output of this member, after waiting until the last run is complete.
    ///
    /// # Errors
    /// As [`Persistent::start`].
    pub fn output(&mut self) -> Result<&[T]> {
        self.wait()?;
        Ok(&self.output)
    }
}

impl<T: Plain> Drop for Persistent<T> {
    fn drop(&mut self) {
        let Some(id) = self.going.take() else { return };
        match self.world.shared.engine.enter() {
            Ok(mut engine) => engine.abandon(id),
            // The operation cannot be given up from here: its memory stays for good.
            Err(_) => {
                std::mem::forget(std::mem::take(&mut self.input));
                std::mem::forget(std::mem::take(&mut self.output));
            }
        }
    }
}

impl<T: Plain> std::fmt::Debug for Persistent<T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Persistent").field("goes_on", &self.going.is_some()).finish()
    }
}
