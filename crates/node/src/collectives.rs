//! Collective operations of a world. All members call the same operations in the same order; calls
//! that differ are reported with an error that names both of them.
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

pub mod architecture;
pub mod combine;
pub mod element;
pub mod message_world;
pub mod nonblocking;
pub mod persistent;

use std::ops::Range;

use landeck_channel::incast::Incast;
use landeck_collectives::{Operation, Way};
use landeck_kernel::Area;
use landeck_layout::Layout;
use landeck_memory::Buffer;
use landeck_memory::plain::Plain;
use landeck_wire::way::OneCopy;

use crate::collectives::combine::Combine;
use crate::error::{Error, Result};
use crate::settings::one_copy;
use crate::store::{self, Store};
use crate::world::World;
use landeck_engine::{
    Call, CallDescription, Caller, Fault, GroupRef, OperationId, Parts, ValueType, WaitError,
};

/// A part of a buffer that a layout describes: `count` items of the layout, whose offset zero lies
/// `offset_bytes` into the buffer.
#[derive(Clone, Debug)]
pub struct Part {
    /// The layout of one item.
    pub layout: Layout,
    /// The number of items.
    pub count: u64,
    /// The offset of the first item in the buffer, in bytes.
    pub offset_bytes: i64,
}

impl World {
    /// Returns a handle to this world whose collective operations use the given architecture
    /// instead of the one that the tuning table selects. All members must choose the same
    /// architecture.
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

    /// Returns a handle to this world whose reductions produce bit-identical results, whatever the
    /// architecture and the placement of the members.
    #[must_use]
    pub fn reproducible(&self) -> Self {
        let mut world = self.clone();
        world.options.is_reproducible = true;
        world
    }

    /// Sets how many members on other hosts answer this process at once, where many answer one
    /// ([`World::gather`], [`World::reduce`]). Without it, `--incast` of `landeck run` or the
    /// variable LANDECK_INCAST says so for all worlds. Members need not agree. On one host it has
    /// no effect.
    ///
    /// [`Incast::Tokens`] holds for all messages that this process sends to other hosts in this
    /// world, also for those of [`World::send`].
    ///
    /// # Errors
    /// [`ErrorKind::Thread`](crate::ErrorKind::Thread).
    pub fn set_incast(&self, wish: Incast) -> Result<()> {
        self.shared.engine.enter()?.set_incast_of_group(self.context, wish);
        Ok(())
    }

    /// Returns the wish with this name, as [`Job::store_named`](crate::Job::store_named) does.
    ///
    /// # Errors
    /// [`ErrorKind::NoStore`](crate::ErrorKind::NoStore).
    pub fn store_named(&self, name: &str) -> Result<Store> {
        store::named(&self.shared.segment, name)
    }

    /// Sets where the data of long messages wait for their receivers that this process sends in this world. Without it,
    /// `--store` of `landeck run` or the variable LANDECK_STORE says so for all worlds.
    ///
    /// # Errors
    /// [`ErrorKind::NoStore`](crate::ErrorKind::NoStore), [`ErrorKind::Thread`](crate::ErrorKind::Thread).
    pub fn set_store(&self, store: Store) -> Result<()> {
        let store = store::checked(&self.shared.segment, store)?;
        self.shared.engine.enter()?.endpoint.set_store_of(self.context, store);
        Ok(())
    }

    /// Sets from which length on the kernel of the system copies this process's messages on its host
    /// out of its memory, in one copy instead of two. Without it, `--one-copy` of `landeck run` or
    /// the variable LANDECK_ONE_COPY says so for all worlds. Members need not agree, so this does
    /// not hold for collective operations: those follow the option alone, or a way that the program
    /// asks for.
    ///
    /// # Errors
    /// [`ErrorKind::Thread`](crate::ErrorKind::Thread).
    pub fn set_one_copy(&self, wish: OneCopy) -> Result<()> {
        let bytes = one_copy::from(wish, &self.shared.segment).bytes;
        one_copy::allow_readers_of(bytes);
        self.shared.engine.enter()?.set_one_copy_of_group(self.context, bytes);
        Ok(())
    }

    /// Returns a handle to this world whose members compare their calls before each collective
    /// operation (`true`) or do not (`false`). They compare what must agree: counts that must be
    /// equal, value types, reduction operators and architectures. A difference is reported to every
    /// member as [`crate::ErrorKind::Disagreement`], and the world stays usable. Each operation
    /// then costs one barrier more. All members must choose the same setting; `LANDECK_CHECKING=1`,
    /// set where the job is started, enables it for all worlds.
    ///
    /// Members compare their calls on the board of their host. A world without a board compares
    /// nothing, but still reports data lengths that do not fit.
    #[must_use]
    pub fn checking(&self, is_checked: bool) -> Self {
        let mut world = self.clone();
        world.options.is_checked = is_checked;
        world
    }

    /// Waits until all members have called this operation.
    ///
    /// # Errors
    /// [`crate::ErrorKind::PeerFailed`], [`crate::ErrorKind::Mismatch`],
    /// [`crate::ErrorKind::Disagreement`] (where members compare), [`crate::ErrorKind::Revoked`],
    /// [`crate::ErrorKind::Ended`], [`crate::ErrorKind::Thread`].
    pub fn barrier(&self) -> Result<()> {
        self.collective(self.caller::<()>().barrier())
    }

    /// Copies the root's `values` into the `values` of every other member. Returns when this member
    /// has its copy, or, at the root, when `values` may be changed again.
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

    /// Collects the `values` of all members at the root, in the order of ranks. `into` is used at
    /// the root only, where it has room for the values of all members.
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

    /// Distributes the root's values among all members, in the order of ranks. `values` is used at
    /// the root only, and holds `into.len()` values for each member.
    ///
    /// # Errors
    /// As [`World::gather`].
    pub fn scatter<T: Plain>(&self, values: &[T], into: &mut [T], root: usize) -> Result<()> {
        self.with_both(values, into, |input, output| {
            self.collective(self.caller::<T>().scatter(input, output, root))
        })
    }

    /// Collects the `values` of all members at every member, in the order of ranks. `into` has room
    /// for the values of all members.
    ///
    /// # Errors
    /// As [`World::gather`].
    pub fn all_gather<T: Plain>(&self, values: &[T], into: &mut [T]) -> Result<()> {
        self.with_both(values, into, |input, output| {
            self.collective(self.caller::<T>().all_gather(input, output))
        })
    }

    /// Collects the values of all members at every member, in place: each member's own part of
    /// `values` is its contribution, and the other parts are overwritten.
    ///
    /// # Errors
    /// As [`World::gather`].
    pub fn all_gather_in_place<T: Plain>(&self, values: &mut [T]) -> Result<()> {
        self.with_one(values, |data| self.caller::<T>().all_gather_in_place(data))
    }

    /// Exchanges a part with every member: part `r` of `values` goes to rank `r`, which stores it
    /// in `into` as the part of this member's rank. All parts have the same length.
    ///
    /// # Errors
    /// As [`World::gather`].
    pub fn all_to_all<T: Plain>(&self, values: &[T], into: &mut [T]) -> Result<()> {
        self.with_both(values, into, |input, output| {
            self.collective(self.caller::<T>().all_to_all(input, output))
        })
    }

    /// Exchanges a part with every member as [`World::all_to_all`] does, in place: part `r` of
    /// `values` is sent to rank `r` and replaced by the part that rank `r` sends.
    ///
    /// # Errors
    /// As [`World::gather`].
    pub fn all_to_all_in_place<T: Plain>(&self, values: &mut [T]) -> Result<()> {
        self.with_one(values, |data| self.caller::<T>().all_to_all_in_place(data))
    }

    /// Combines the `values` of all members element by element and stores the result at the root.
    /// `into` is used at the root only.
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

    /// Combines one value of each member and returns the result at every member.
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

    /// Combines the `values` of all members element by element and stores the result in `into` at
    /// every member.
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

    /// Combines the `values` of all members element by element, in place: the result replaces
    /// `values` at every member.
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

    /// Combines the `values` of all members and distributes the result: rank `r` gets part `r` in
    /// `into`. All parts are as long as `into`.
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

    /// Combines the `values` of all members and distributes the result in parts of any lengths:
    /// rank `r` gets `counts[r]` values in `into`. All members give the same `counts`.
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

    /// Computes an inclusive scan: rank `r` gets the combined values of ranks 0 to `r` in `into`.
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

    /// Computes an inclusive scan in place: at rank `r`, the combined values of ranks 0 to `r`
    /// replace `values`.
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

    /// Computes an exclusive scan: rank `r` gets the combined values of the ranks below `r` in
    /// `into`. At rank 0 `into` stays unchanged.
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

    /// Computes an exclusive scan in place: at rank `r`, the combined values of the ranks below `r`
    /// replace `values`. At rank 0 `values` stays unchanged.
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

    /// Collects values at the root as [`World::gather`] does, where each member may contribute a
    /// different number of values: the values of rank `r` go to `into[parts[r]]`. `parts` is used
    /// at the root only.
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

    /// Distributes the root's values as [`World::scatter`] does, where each member may get a
    /// different number of values: rank `r` gets `values[parts[r]]`. `parts` is used at the root
    /// only.
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

    /// Collects values at every member as [`World::all_gather`] does, where each member may
    /// contribute a different number of values: the values of rank `r` go to `into[parts[r]]`.
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

    /// Exchanges a part with every member as [`World::all_to_all`] does, with parts of any lengths:
    /// `values[parts[r]]` goes to rank `r`, and the part from rank `r` goes to
    /// `into[into_parts[r]]`.
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

    /// Exchanges a part with every member as [`World::all_to_all`] does, where every part has a
    /// layout of its own: `parts[r]` describes the part for rank `r`, `into_parts[r]` the part from
    /// rank `r`.
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

    /// Runs a call on the memory of input and output; the operation is complete when this returns.
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

    /// Runs a call on the memory of values that the result replaces.
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

    /// Returns a description, or translates its fault.
    pub(crate) fn described<T>(&self, described: std::result::Result<T, Fault>) -> Result<T> {
        described.map_err(|fault| self.fault(fault))
    }

    /// Runs the operation, and returns when this member has done its part.
    #[inline(always)]
    pub(crate) fn collective(&self, asked: CallDescription<'_>) -> Result<()> {
        let operation = asked.operation;
        match self.shared.collective(self.group(), asked) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.failed(operation, *error)),
        }
    }

    /// Begins the operation; returns `None` if it is complete at once.
    pub(crate) fn start(&self, asked: CallDescription<'_>) -> Result<Option<OperationId>> {
        let operation = asked.operation;
        let call = asked.into_call(self.group());
        match call {
            Ok(call) => self.start_call(operation, call.started()),
            Err(fault) => Err(self.failed(operation, WaitError::Collective(fault))),
        }
    }

    /// Begins a prepared call; returns `None` if it is complete at once.
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
