//! What the members of a world do together. All members call the same operations in the same
//! order; who calls something else is told so by name.
//!
//! ```no_run
//! # fn main() -> landeck::Result<()> {
//! use landeck::{Job, Sum};
//!
//! let job = Job::join()?;
//! let world = job.world();
//! let sum = world.all_reduce(world.rank() as u64, Sum)?;
//! let mut settings = [0.0f64; 4];
//! world.broadcast(&mut settings, 0)?;
//! world.barrier()?;
//! # Ok(()) }
//! ```

use std::ops::Range;

use landeck_collectives::{Operation, Way};
use landeck_kernel::Area;
use landeck_layout::Layout;
use landeck_memory::Buffer;
use landeck_memory::plain::Plain;

use crate::combine::Combine;
use crate::error::{Error, Result};
use crate::world::World;
use landeck_engine::{
    Call, CallDescription, Caller, Fault, GroupRef, OperationId, Parts, ValueType, WaitError,
};

/// Data that lie as a layout says: `count` items of it, its offset zero `offset_bytes` into the
/// buffer.
#[derive(Clone, Debug)]
pub struct Part {
    /// What an item looks like.
    pub layout: Layout,
    /// How many items there are.
    pub count: u64,
    /// Where the first begins.
    pub offset_bytes: i64,
}

impl World {
    /// The same world, whose collective operations go by this architecture, whatever the table
    /// says. All members must want the same.
    ///
    /// ```no_run
    /// # fn main() -> landeck::Result<()> {
    /// # let world = landeck::Job::join()?.world();
    /// use landeck::architecture::Flat;
    /// world.via(Flat).barrier()?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn via(&self, way: impl Into<Way>) -> Self {
        let mut world = self.clone();
        world.options.way = Some(way.into());
        world
    }

    /// The same world, whose reductions give the same bits whatever the architecture and the
    /// placement.
    #[must_use]
    pub fn reproducible(&self) -> Self {
        let mut world = self.clone();
        world.options.is_reproducible = true;
        world
    }

    /// The same world, whose members compare what must agree in their collective operations before
    /// each of them, or do not: counts where they must be equal, the types of the values, what
    /// reductions combine by, and the way. Who differs is told of by [`crate::ErrorKind::Disagreement`], at
    /// every member, and the world goes on. Each operation takes as long as a barrier more. All
    /// members must want the same; `LANDECK_CHECKING=1`, where the job is started, does it for all
    /// worlds.
    ///
    /// Members compare on the board of their host. In a world without one nothing is compared, and
    /// lengths of data that do not fit are told of as always.
    #[must_use]
    pub fn checking(&self, is_checked: bool) -> Self {
        let mut world = self.clone();
        world.options.is_checked = is_checked;
        world
    }

    /// Returns when all members have called it.
    ///
    /// # Errors
    /// [`crate::ErrorKind::PeerFailed`], [`crate::ErrorKind::Mismatch`], [`crate::ErrorKind::Disagreement`] (where members compare),
    /// [`crate::ErrorKind::Revoked`], [`crate::ErrorKind::Ended`], [`crate::ErrorKind::Thread`].
    pub fn barrier(&self) -> Result<()> {
        self.collective(self.caller::<()>().barrier())
    }

    /// The root's values go to everybody.
    ///
    /// ```no_run
    /// # fn main() -> landeck::Result<()> {
    /// # let world = landeck::Job::join()?.world();
    /// let mut values = if world.rank() == 2 { [1.5, 2.5] } else { [0.0, 0.0] };
    /// world.broadcast(&mut values, 2)?;
    /// assert_eq!(values, [1.5, 2.5]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`World::barrier`], [`crate::ErrorKind::NoSuchRank`], [`crate::ErrorKind::LengthMismatch`].
    pub fn broadcast<T: Plain>(&self, values: &mut [T], root: usize) -> Result<()> {
        // SAFETY: the operation is over when the call returns; the values are borrowed until then.
        let data = unsafe { Buffer::of_mut(values) };
        self.collective(self.caller::<T>().broadcast(data, root))
    }

    /// Everybody's values go to the root, in the order of ranks. `into` is used there only, and
    /// has room for all.
    ///
    /// ```no_run
    /// # fn main() -> landeck::Result<()> {
    /// # let world = landeck::Job::join()?.world();
    /// let mut all = vec![0; if world.rank() == 0 { 2 * world.size() } else { 0 }];
    /// world.gather(&[world.rank(), 7], &mut all, 0)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`World::broadcast`], and [`crate::ErrorKind::WrongLength`].
    pub fn gather<T: Plain>(&self, values: &[T], into: &mut [T], root: usize) -> Result<()> {
        self.with_both(values, into, |input, output| {
            self.collective(self.caller::<T>().gather(input, output, root))
        })
    }

    /// The root's values are divided among all, in the order of ranks. `values` is used there
    /// only, and holds for each member as many as `into` has room for.
    ///
    /// # Errors
    /// As [`World::gather`].
    pub fn scatter<T: Plain>(&self, values: &[T], into: &mut [T], root: usize) -> Result<()> {
        self.with_both(values, into, |input, output| {
            self.collective(self.caller::<T>().scatter(input, output, root))
        })
    }

    /// Everybody's values go to everybody, in the order of ranks.
    ///
    /// # Errors
    /// As [`World::gather`].
    pub fn all_gather<T: Plain>(&self, values: &[T], into: &mut [T]) -> Result<()> {
        self.with_both(values, into, |input, output| {
            self.collective(self.caller::<T>().all_gather(input, output))
        })
    }

    /// The same where everybody's own values stand in their place already.
    ///
    /// # Errors
    /// As [`World::gather`].
    pub fn all_gather_in_place<T: Plain>(&self, values: &mut [T]) -> Result<()> {
        self.with_one(values, |data| self.caller::<T>().all_gather_in_place(data))
    }

    /// Everybody has something for everybody: part `r` of `values` goes to rank `r`, where it
    /// becomes the part of this member's rank of `into`. All parts are equally long.
    ///
    /// # Errors
    /// As [`World::gather`].
    pub fn all_to_all<T: Plain>(&self, values: &[T], into: &mut [T]) -> Result<()> {
        self.with_both(values, into, |input, output| {
            self.collective(self.caller::<T>().all_to_all(input, output))
        })
    }

    /// The same on values that those of the others replace.
    ///
    /// # Errors
    /// As [`World::gather`].
    pub fn all_to_all_in_place<T: Plain>(&self, values: &mut [T]) -> Result<()> {
        self.with_one(values, |data| self.caller::<T>().all_to_all_in_place(data))
    }

    /// Everybody's values are combined, place by place; the root has the result. `into` is used
    /// there only.
    ///
    /// # Errors
    /// As [`World::gather`], [`crate::ErrorKind::Reduction`], [`crate::ErrorKind::OperatorPanicked`].
    pub fn reduce<T: Plain>(
        &self,
        values: &[T],
        into: &mut [T],
        combine: impl Combine<T>,
        root: usize,
    ) -> Result<()> {
        self.reduction(Operation::Reduce, values, into, combine, root)
    }

    /// Everybody's values are combined into one; everybody has it.
    ///
    /// ```no_run
    /// # fn main() -> landeck::Result<()> {
    /// # let world = landeck::Job::join()?.world();
    /// use landeck::architecture::Daisy;
    /// use landeck::{Maximum, Sum, User};
    /// let steps = world.all_reduce(17u32, Maximum)?;
    /// let total = world.all_reduce(0.25f64, Sum.via(Daisy))?;
    /// let last = world.all_reduce(world.rank(), User::ordered(|_, right| right))?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`World::reduce`].
    pub fn all_reduce<T: Plain>(&self, value: T, combine: impl Combine<T>) -> Result<T> {
        let mut value = [value];
        self.all_reduce_in_place(&mut value, combine)?;
        Ok(value[0])
    }

    /// Everybody's values are combined, place by place; everybody has the result.
    ///
    /// # Errors
    /// As [`World::reduce`].
    pub fn all_reduce_into<T: Plain>(
        &self,
        values: &[T],
        into: &mut [T],
        combine: impl Combine<T>,
    ) -> Result<()> {
        self.reduction(Operation::AllReduce, values, into, combine, 0)
    }

    /// The same on values that the result replaces.
    ///
    /// # Errors
    /// As [`World::reduce`].
    pub fn all_reduce_in_place<T: Plain>(
        &self,
        values: &mut [T],
        combine: impl Combine<T>,
    ) -> Result<()> {
        self.reduction_in_place(Operation::AllReduce, values, combine)
    }

    /// Everybody's values are combined, and the result is divided among all: rank `r` has the part
    /// of that number. All parts are as long as `into`.
    ///
    /// # Errors
    /// As [`World::reduce`].
    pub fn reduce_scatter_block<T: Plain>(
        &self,
        values: &[T],
        into: &mut [T],
        combine: impl Combine<T>,
    ) -> Result<()> {
        self.call(Operation::ReduceScatter.as_str(), || {
            let how = combine.combination()?;
            self.with_both(values, into, |input, output| {
                self.collective(self.caller::<T>().reduce_scatter_block(input, output, &how))
            })
        })
    }

    /// The same with parts of any lengths: `counts` says how many values go to each rank, alike on
    /// all members.
    ///
    /// # Errors
    /// As [`World::reduce`], and [`crate::ErrorKind::WrongCount`].
    pub fn reduce_scatter<T: Plain>(
        &self,
        values: &[T],
        into: &mut [T],
        counts: &[usize],
        combine: impl Combine<T>,
    ) -> Result<()> {
        self.call(Operation::ReduceScatter.as_str(), || {
            let how = combine.combination()?;
            self.with_both(values, into, |input, output| {
                let call =
                    self.caller::<T>().reduce_scatter(input, output, counts, size_of::<T>(), &how);
                self.collective(self.described(call)?)
            })
        })
    }

    /// Rank `r` has the combined values of the ranks 0 to `r`.
    ///
    /// # Errors
    /// As [`World::reduce`].
    pub fn scan<T: Plain>(
        &self,
        values: &[T],
        into: &mut [T],
        combine: impl Combine<T>,
    ) -> Result<()> {
        self.reduction(Operation::Scan, values, into, combine, 0)
    }

    /// The same on values that the result replaces.
    ///
    /// # Errors
    /// As [`World::reduce`].
    pub fn scan_in_place<T: Plain>(
        &self,
        values: &mut [T],
        combine: impl Combine<T>,
    ) -> Result<()> {
        self.reduction_in_place(Operation::Scan, values, combine)
    }

    /// Rank `r` has the combined values of the ranks before it; on rank 0 `into` stays as it is.
    ///
    /// # Errors
    /// As [`World::reduce`].
    pub fn exclusive_scan<T: Plain>(
        &self,
        values: &[T],
        into: &mut [T],
        combine: impl Combine<T>,
    ) -> Result<()> {
        self.reduction(Operation::ExclusiveScan, values, into, combine, 0)
    }

    /// The same on values that the result replaces.
    ///
    /// # Errors
    /// As [`World::reduce`].
    pub fn exclusive_scan_in_place<T: Plain>(
        &self,
        values: &mut [T],
        combine: impl Combine<T>,
    ) -> Result<()> {
        self.reduction_in_place(Operation::ExclusiveScan, values, combine)
    }

    /// As [`World::gather`], where each member may bring another number of values: `parts` says
    /// which of `into` they become. It is used at the root only.
    ///
    /// ```no_run
    /// # fn main() -> landeck::Result<()> {
    /// # let world = landeck::Job::join()?.world();
    /// let own = vec![world.rank(); world.rank()];
    /// let (mut all, parts) = ([0; 3], [0..0, 0..1, 1..3]); // of three members
    /// world.gather_varying(&own, &mut all, &parts, 0)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`World::gather`], and [`crate::ErrorKind::WrongCount`].
    pub fn gather_varying<T: Plain>(
        &self,
        values: &[T],
        into: &mut [T],
        parts: &[Range<usize>],
        root: usize,
    ) -> Result<()> {
        self.with_both(values, into, |input, output| {
            let call = self.caller::<T>().gather_varying(input, parts_of::<T>(output, parts), root);
            self.collective(self.described(call)?)
        })
    }

    /// As [`World::scatter`], where each member may get another number of values: `parts` says
    /// which. It is used at the root only.
    ///
    /// # Errors
    /// As [`World::gather_varying`].
    pub fn scatter_varying<T: Plain>(
        &self,
        values: &[T],
        parts: &[Range<usize>],
        into: &mut [T],
        root: usize,
    ) -> Result<()> {
        self.with_both(values, into, |input, output| {
            let call =
                self.caller::<T>().scatter_varying(parts_of::<T>(input, parts), output, root);
            self.collective(self.described(call)?)
        })
    }

    /// As [`World::all_gather`], where each member may bring another number of values: `parts`
    /// says which of `into` they become.
    ///
    /// # Errors
    /// As [`World::gather_varying`].
    pub fn all_gather_varying<T: Plain>(
        &self,
        values: &[T],
        into: &mut [T],
        parts: &[Range<usize>],
    ) -> Result<()> {
        self.with_both(values, into, |input, output| {
            let call = self.caller::<T>().all_gather_varying(input, parts_of::<T>(output, parts));
            self.collective(self.described(call)?)
        })
    }

    /// As [`World::all_to_all`], with parts of any lengths.
    ///
    /// # Errors
    /// As [`World::gather_varying`].
    pub fn all_to_all_varying<T: Plain>(
        &self,
        values: &[T],
        parts: &[Range<usize>],
        into: &mut [T],
        into_parts: &[Range<usize>],
    ) -> Result<()> {
        self.with_both(values, into, |input, output| {
            let (input, output) = (parts_of::<T>(input, parts), parts_of::<T>(output, into_parts));
            let call = self.caller::<T>().all_to_all_varying(input, output);
            self.collective(self.described(call)?)
        })
    }

    /// As [`World::all_to_all`], where each part lies as a layout of its own says.
    ///
    /// # Errors
    /// As [`World::gather_varying`], and [`crate::ErrorKind::OutsideBuffer`].
    pub fn all_to_all_layouts<T: Plain>(
        &self,
        values: &[T],
        parts: &[Part],
        into: &mut [T],
        into_parts: &[Part],
    ) -> Result<()> {
        self.with_both(values, into, |input, output| {
            let (input, output) = (self.areas(input, parts)?, self.areas(output, into_parts)?);
            self.collective(self.caller::<T>().all_to_all_areas(input, output))
        })
    }

    fn reduction<T: Plain>(
        &self,
        operation: Operation,
        values: &[T],
        into: &mut [T],
        combine: impl Combine<T>,
        root: usize,
    ) -> Result<()> {
        self.call(operation.as_str(), || {
            let how = combine.combination()?;
            self.with_both(values, into, |input, output| {
                self.collective(self.caller::<T>().reduction(operation, input, output, &how, root))
            })
        })
    }

    fn reduction_in_place<T: Plain>(
        &self,
        operation: Operation,
        values: &mut [T],
        combine: impl Combine<T>,
    ) -> Result<()> {
        self.call(operation.as_str(), || {
            let how = combine.combination()?;
            // SAFETY: the operation is over when the call returns; the values are borrowed until then.
            let data = unsafe { Buffer::of_mut(values) };
            self.collective(self.caller::<T>().reduction_in_place(operation, data, &how))
        })
    }

    /// Makes a call on the memory of input and output, which is complete in the end.
    fn with_both<T: Plain>(
        &self,
        values: &[T],
        into: &mut [T],
        call: impl FnOnce(Buffer, Buffer) -> Result<()>,
    ) -> Result<()> {
        // SAFETY: both are borrowed until this returns, and the operation is over by then.
        let (input, output) = unsafe { (Buffer::of(values), Buffer::of_mut(into)) };
        call(input, output)
    }

    /// Makes a call on the memory of values that the result replaces.
    fn with_one<'a, T: Plain>(
        &'a self,
        values: &mut [T],
        describe: impl FnOnce(Buffer) -> CallDescription<'a>,
    ) -> Result<()> {
        // SAFETY: they are borrowed mutably until this returns, and the operation is over by then.
        let data = unsafe { Buffer::of_mut(values) };
        self.collective(describe(data))
    }

    pub(crate) fn areas(&self, buffer: Buffer, parts: &[Part]) -> Result<Vec<Area>> {
        let area = |part: &Part| {
            Area::with_layout(buffer, part.offset_bytes, &part.layout, part.count)
                .map_err(|failure| self.error(WaitError::Failure(failure), None))
        };
        parts.iter().map(area).collect()
    }

    /// The group of its collective operations.
    #[inline(always)]
    pub(crate) fn group(&self) -> GroupRef<'_> {
        GroupRef { context: self.context, members: &self.members, rank: self.rank() }
    }

    /// Describes calls on values of this type.
    #[inline(always)]
    pub(crate) fn caller<T>(&self) -> Caller<'_> {
        let options = &self.options;
        let value_type =
            if options.is_checked { ValueType::of::<T>() } else { ValueType::default() };
        Caller { rank: self.rank(), options, value_type }
    }

    /// A description that may be at fault.
    pub(crate) fn described<T>(&self, described: std::result::Result<T, Fault>) -> Result<T> {
        described.map_err(|fault| self.fault(fault))
    }

    /// Does it, and returns when this member has done its part.
    #[inline(always)]
    pub(crate) fn collective(&self, asked: CallDescription<'_>) -> Result<()> {
        let operation = asked.operation;
        match self.shared.collective(self.group(), asked) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.failed(operation, *error)),
        }
    }

    /// Begins it; none when it is complete at once.
    pub(crate) fn start(&self, asked: CallDescription<'_>) -> Result<Option<OperationId>> {
        let operation = asked.operation;
        let call = asked.into_call(self.group());
        match call {
            Ok(call) => self.start_call(operation, call),
            Err(fault) => Err(self.failed(operation, WaitError::Collective(fault))),
        }
    }

    /// Begins a call that is made already; none when it is complete at once.
    pub(crate) fn start_call(
        &self,
        operation: Operation,
        call: Call,
    ) -> Result<Option<OperationId>> {
        let started = self.shared.start(self.group(), call, self.shared.start_bytes());
        started.map_err(|error| self.failed(operation, *error))
    }

    /// The error of an operation that failed.
    #[cold]
    fn failed(&self, operation: Operation, error: WaitError) -> Error {
        self.in_call(operation.as_str(), self.error(error, None))
    }

    #[cold]
    pub(crate) fn fault(&self, fault: Fault) -> Error {
        self.error(WaitError::Collective(fault), None)
    }
}

pub(crate) fn parts_of<T>(buffer: Buffer, ranges: &[Range<usize>]) -> Parts<'_> {
    Parts { buffer, ranges, item_bytes: size_of::<T>() }
}
