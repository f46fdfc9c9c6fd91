//! Collective operations that are made ready once and then begun any number of times.
//!
//! A persistent operation owns its memory, so it may go on while the program does anything else,
//! without a scope: whoever wants to see or change the values waits for it first.
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

use crate::combine::{Combination, Combine};
use crate::error::{Error, Result};
use crate::world::World;
use landeck_engine::{CallDescription, Caller, OperationId, WaitError};

/// A collective operation with its memory, to be begun any number of times.
pub struct Persistent<T: Plain> {
    world: World,
    form: Form,
    /// Without any where the operation is done in place.
    input: Vec<T>,
    output: Vec<T>,
    going: Option<OperationId>,
}

/// Which operation.
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
    /// The name that errors give the operation.
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
    /// [`World::barrier`].
    pub fn barrier(world: &World) -> Self {
        Self::new(world, Form::Barrier, Vec::new(), 0)
    }
}

impl<T: Plain> Persistent<T> {
    /// [`World::broadcast`]: the values go out from the root and replace those of the others.
    /// They are input and output at once.
    pub fn broadcast(world: &World, values: Vec<T>, root: usize) -> Self {
        let mut made = Self::new(world, Form::Broadcast(root), Vec::new(), 0);
        made.output = values;
        made
    }

    /// [`World::gather`]; the output has room at the root only.
    pub fn gather(world: &World, values: Vec<T>, root: usize) -> Self {
        let room = if world.rank() == root { values.len() * world.size() } else { 0 };
        Self::new(world, Form::Gather(root), values, room)
    }

    /// [`World::scatter`] of so many values to each member; the input is used at the root only,
    /// and holds as many for each.
    pub fn scatter(world: &World, values: Vec<T>, each: usize, root: usize) -> Self {
        Self::new(world, Form::Scatter(root), values, each)
    }

    /// [`World::all_gather`].
    pub fn all_gather(world: &World, values: Vec<T>) -> Self {
        let room = values.len() * world.size();
        Self::new(world, Form::AllGather, values, room)
    }

    /// [`World::all_to_all`].
    pub fn all_to_all(world: &World, values: Vec<T>) -> Self {
        let room = values.len();
        Self::new(world, Form::AllToAll, values, room)
    }

    /// [`World::reduce`]; the output has room at the root only.
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

    /// [`World::all_reduce_into`].
    ///
    /// # Errors
    /// [`crate::ErrorKind::Reduction`].
    pub fn all_reduce(world: &World, values: Vec<T>, combine: impl Combine<T>) -> Result<Self> {
        Self::reduction(world, Operation::AllReduce, values, combine)
    }

    /// [`World::scan`].
    ///
    /// # Errors
    /// [`crate::ErrorKind::Reduction`].
    pub fn scan(world: &World, values: Vec<T>, combine: impl Combine<T>) -> Result<Self> {
        Self::reduction(world, Operation::Scan, values, combine)
    }

    /// [`World::exclusive_scan`].
    ///
    /// # Errors
    /// [`crate::ErrorKind::Reduction`].
    pub fn exclusive_scan(world: &World, values: Vec<T>, combine: impl Combine<T>) -> Result<Self> {
        Self::reduction(world, Operation::ExclusiveScan, values, combine)
    }

    /// [`World::reduce_scatter_block`].
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

    /// Begins it, after the time before is over. Members begin their operations in the same order.
    ///
    /// # Errors
    /// As the method of [`World`], of this time or the one before.
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

    /// Whether it is over. Makes progress.
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

    /// Waits until it is over; at once when it was not begun.
    ///
    /// # Errors
    /// As [`Persistent::start`].
    pub fn wait(&mut self) -> Result<()> {
        let Some(id) = self.going.take() else { return Ok(()) };
        let ended = self.world.shared.wait_or_abandon(id, None);
        ended.map(drop).map_err(|error| self.error(error))
    }

    /// Why the operation failed, which is named.
    #[cold]
    fn error(&self, error: WaitError) -> Error {
        self.world.in_call(self.form.name(), self.world.error(error, None))
    }

    /// What this member brings, to be changed; after the time before is over.
    ///
    /// # Errors
    /// As [`Persistent::start`].
    pub fn input_mut(&mut self) -> Result<&mut [T]> {
        self.wait()?;
        let is_in_place = matches!(self.form, Form::Broadcast(_));
        Ok(if is_in_place { &mut self.output } else { &mut self.input })
    }

    /// What this member has of it, once it is over.
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
        match self.world.shared.kernel.enter() {
            Ok(mut kernel) => kernel.abandon(id),
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
