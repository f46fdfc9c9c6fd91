//! Non-blocking collective operations: the operations of [`crate::collectives`] in a [`Scope`].
//!
//! ```no_run
//! # fn main() -> landeck::Result<()> {
//! # let world = landeck::Job::join()?.world();
//! # let own = [0.0f64; 1000];
//! use landeck::Sum;
//! let mut total = [0.0; 1000];
//! world.scope(|scope| {
//!     let sum = scope.all_reduce_into(&own, &mut total, Sum)?;
//!     // ... compute what needs no total ...
//!     sum.wait()
//! })?;
//! # Ok(()) }
//! ```
//!
//! Members begin the operations of a world in the same order, and may wait for them in any order.
//! Progress is made inside calls of the library, or by a progress thread: see [`crate::Progress`].

use std::ops::Range;

use landeck_collectives::Operation;
use landeck_memory::Buffer;
use landeck_memory::plain::Plain;

use crate::collectives::combine::Combine;
use crate::collectives::{Part, parts_of};
use crate::error::Result;
use crate::scope::{Request, Scope};
use landeck_engine::CallDescription;

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Begins a [`World::barrier`](crate::World::barrier).
    ///
    /// # Errors
    /// As the blocking form; errors after the beginning come with the completion.
    pub fn barrier(&'scope self) -> Result<Request<'scope>> {
        self.begin(self.world().caller::<()>().barrier())
    }

    /// Begins a [`World::broadcast`](crate::World::broadcast).
    ///
    /// # Errors
    /// As the blocking form; errors after the beginning come with the completion.
    pub fn broadcast<T: Plain>(
        &'scope self,
        values: &'env mut [T],
        root: usize,
    ) -> Result<Request<'scope>> {
        let data = self.buffer(values);
        self.begin(self.world().caller::<T>().broadcast(data, root))
    }

    /// Begins a [`World::gather`](crate::World::gather).
    ///
    /// # Errors
    /// As the blocking form; errors after the beginning come with the completion.
    pub fn gather<T: Plain>(
        &'scope self,
        values: &'env [T],
        into: &'env mut [T],
        root: usize,
    ) -> Result<Request<'scope>> {
        let (input, output) = self.buffers(values, into);
        self.begin(self.world().caller::<T>().gather(input, output, root))
    }

    /// Begins a [`World::scatter`](crate::World::scatter).
    ///
    /// # Errors
    /// As the blocking form; errors after the beginning come with the completion.
    pub fn scatter<T: Plain>(
        &'scope self,
        values: &'env [T],
        into: &'env mut [T],
        root: usize,
    ) -> Result<Request<'scope>> {
        let (input, output) = self.buffers(values, into);
        self.begin(self.world().caller::<T>().scatter(input, output, root))
    }

    /// Begins an [`World::all_gather`](crate::World::all_gather).
    ///
    /// # Errors
    /// As the blocking form; errors after the beginning come with the completion.
    pub fn all_gather<T: Plain>(
        &'scope self,
        values: &'env [T],
        into: &'env mut [T],
    ) -> Result<Request<'scope>> {
        let (input, output) = self.buffers(values, into);
        self.begin(self.world().caller::<T>().all_gather(input, output))
    }

    /// Begins an [`World::all_to_all`](crate::World::all_to_all).
    ///
    /// # Errors
    /// As the blocking form; errors after the beginning come with the completion.
    pub fn all_to_all<T: Plain>(
        &'scope self,
        values: &'env [T],
        into: &'env mut [T],
    ) -> Result<Request<'scope>> {
        let (input, output) = self.buffers(values, into);
        self.begin(self.world().caller::<T>().all_to_all(input, output))
    }

    /// Begins a [`World::reduce`](crate::World::reduce).
    ///
    /// # Errors
    /// As the blocking form; errors after the beginning come with the completion.
    pub fn reduce<T: Plain>(
        &'scope self,
        values: &'env [T],
        into: &'env mut [T],
        combine: impl Combine<T>,
        root: usize,
    ) -> Result<Request<'scope>> {
        self.reduction(Operation::Reduce, values, into, combine, root)
    }

    /// Begins an [`World::all_reduce_into`](crate::World::all_reduce_into).
    ///
    /// # Errors
    /// As the blocking form; errors after the beginning come with the completion.
    pub fn all_reduce_into<T: Plain>(
        &'scope self,
        values: &'env [T],
        into: &'env mut [T],
        combine: impl Combine<T>,
    ) -> Result<Request<'scope>> {
        self.reduction(Operation::AllReduce, values, into, combine, 0)
    }

    /// Begins an [`World::all_reduce_in_place`](crate::World::all_reduce_in_place).
    ///
    /// # Errors
    /// As the blocking form; errors after the beginning come with the completion.
    pub fn all_reduce_in_place<T: Plain>(
        &'scope self,
        values: &'env mut [T],
        combine: impl Combine<T>,
    ) -> Result<Request<'scope>> {
        let how = combine.combination()?;
        let data = self.buffer(values);
        self.begin(self.world().caller::<T>().reduction_in_place(Operation::AllReduce, data, &how))
    }

    /// Begins a [`World::reduce_scatter_block`](crate::World::reduce_scatter_block).
    ///
    /// # Errors
    /// As the blocking form; errors after the beginning come with the completion.
    pub fn reduce_scatter_block<T: Plain>(
        &'scope self,
        values: &'env [T],
        into: &'env mut [T],
        combine: impl Combine<T>,
    ) -> Result<Request<'scope>> {
        let how = combine.combination()?;
        let (input, output) = self.buffers(values, into);
        self.begin(self.world().caller::<T>().reduce_scatter_block(input, output, &how))
    }

    /// Begins a [`World::reduce_scatter`](crate::World::reduce_scatter).
    ///
    /// # Errors
    /// As the blocking form; errors after the beginning come with the completion.
    pub fn reduce_scatter<T: Plain>(
        &'scope self,
        values: &'env [T],
        into: &'env mut [T],
        counts: &[usize],
        combine: impl Combine<T>,
    ) -> Result<Request<'scope>> {
        let how = combine.combination()?;
        let (input, output) = self.buffers(values, into);
        let world = self.world();
        let call = world.caller::<T>().reduce_scatter(input, output, counts, size_of::<T>(), &how);
        self.begin(world.described(call)?)
    }

    /// Begins a [`World::scan`](crate::World::scan).
    ///
    /// # Errors
    /// As the blocking form; errors after the beginning come with the completion.
    pub fn scan<T: Plain>(
        &'scope self,
        values: &'env [T],
        into: &'env mut [T],
        combine: impl Combine<T>,
    ) -> Result<Request<'scope>> {
        self.reduction(Operation::Scan, values, into, combine, 0)
    }

    /// Begins an [`World::exclusive_scan`](crate::World::exclusive_scan).
    ///
    /// # Errors
    /// As the blocking form; errors after the beginning come with the completion.
    pub fn exclusive_scan<T: Plain>(
        &'scope self,
        values: &'env [T],
        into: &'env mut [T],
        combine: impl Combine<T>,
    ) -> Result<Request<'scope>> {
        self.reduction(Operation::ExclusiveScan, values, into, combine, 0)
    }

    /// Begins a [`World::gather_varying`](crate::World::gather_varying).
    ///
    /// # Errors
    /// As the blocking form; errors after the beginning come with the completion.
    pub fn gather_varying<T: Plain>(
        &'scope self,
        values: &'env [T],
        into: &'env mut [T],
        parts: &[Range<usize>],
        root: usize,
    ) -> Result<Request<'scope>> {
        let (input, output) = self.buffers(values, into);
        let world = self.world();
        let call = world.caller::<T>().gather_varying(input, parts_of::<T>(output, parts), root);
        self.begin(world.described(call)?)
    }

    /// Begins a [`World::scatter_varying`](crate::World::scatter_varying).
    ///
    /// # Errors
    /// As the blocking form; errors after the beginning come with the completion.
    pub fn scatter_varying<T: Plain>(
        &'scope self,
        values: &'env [T],
        parts: &[Range<usize>],
        into: &'env mut [T],
        root: usize,
    ) -> Result<Request<'scope>> {
        let (input, output) = self.buffers(values, into);
        let world = self.world();
        let call = world.caller::<T>().scatter_varying(parts_of::<T>(input, parts), output, root);
        self.begin(world.described(call)?)
    }

    /// Begins an [`World::all_gather_varying`](crate::World::all_gather_varying).
    ///
    /// # Errors
    /// As the blocking form; errors after the beginning come with the completion.
    pub fn all_gather_varying<T: Plain>(
        &'scope self,
        values: &'env [T],
        into: &'env mut [T],
        parts: &[Range<usize>],
    ) -> Result<Request<'scope>> {
        let (input, output) = self.buffers(values, into);
        let world = self.world();
        let call = world.caller::<T>().all_gather_varying(input, parts_of::<T>(output, parts));
        self.begin(world.described(call)?)
    }

    /// Begins an [`World::all_to_all_varying`](crate::World::all_to_all_varying).
    ///
    /// # Errors
    /// As the blocking form; errors after the beginning come with the completion.
    pub fn all_to_all_varying<T: Plain>(
        &'scope self,
        values: &'env [T],
        parts: &[Range<usize>],
        into: &'env mut [T],
        into_parts: &[Range<usize>],
    ) -> Result<Request<'scope>> {
        let (input, output) = self.buffers(values, into);
        let world = self.world();
        let (input, output) = (parts_of::<T>(input, parts), parts_of::<T>(output, into_parts));
        self.begin(world.described(world.caller::<T>().all_to_all_varying(input, output))?)
    }

    /// Begins an [`World::all_to_all_layouts`](crate::World::all_to_all_layouts).
    ///
    /// # Errors
    /// As the blocking form; errors after the beginning come with the completion.
    pub fn all_to_all_layouts<T: Plain>(
        &'scope self,
        values: &'env [T],
        parts: &[Part],
        into: &'env mut [T],
        into_parts: &[Part],
    ) -> Result<Request<'scope>> {
        let (input, output) = self.buffers(values, into);
        let world = self.world();
        let (input, output) = (world.areas(input, parts)?, world.areas(output, into_parts)?);
        self.begin(world.caller::<T>().all_to_all_areas(input, output))
    }

    fn reduction<T: Plain>(
        &'scope self,
        operation: Operation,
        values: &'env [T],
        into: &'env mut [T],
        combine: impl Combine<T>,
        root: usize,
    ) -> Result<Request<'scope>> {
        let how = combine.combination()?;
        let (input, output) = self.buffers(values, into);
        self.begin(self.world().caller::<T>().reduction(operation, input, output, &how, root))
    }

    /// The memory of an operation's input and output.
    fn buffers<T: Plain>(&'scope self, values: &'env [T], into: &'env mut [T]) -> (Buffer, Buffer) {
        // SAFETY: the values are borrowed for `'env`, and the scope ends before `'env` does: its
        // end waits for the operation or gives it up.
        let input = unsafe { Buffer::of(values) };
        (input, self.buffer(into))
    }

    /// The memory of values that the result replaces.
    fn buffer<T: Plain>(&'scope self, values: &'env mut [T]) -> Buffer {
        // SAFETY: they are borrowed mutably for `'env`, and the scope ends before that, as above.
        unsafe { Buffer::of_mut(values) }
    }

    fn begin(&'scope self, asked: CallDescription<'_>) -> Result<Request<'scope>> {
        Ok(self.collective(self.world().start(asked)?))
    }
}
