//! Collective operations that return when this process has done its part.

use std::ffi::{c_int, c_void};

use crate::abi::Handle;
use crate::counts::Counts;
use crate::functions::collective::{combining, each_combining, each_moving, moving, quick};
use crate::mistake::Mistake;
use crate::walk::Walk;

macro_rules! moved {
    ($($name:ident $started:ident $kept:ident($($argument:ident: $type:ty),*);)*) => {$(
        /// See the function of this name in `moving`.
        #[inline]
        #[allow(clippy::too_many_arguments)] // As many as the standard has.
        pub(crate) unsafe fn $name(
            $($argument: $type,)*
            comm: Handle,
        ) -> Result<(), Mistake> {
            // SAFETY: the program keeps what the standard demands of its arguments.
            unsafe { moving::$name($($argument,)* comm)?.move_data() }
        }
    )*};
}

macro_rules! combined {
    ($($name:ident $started:ident $kept:ident($($argument:ident: $type:ty),*);)*) => {$(
        /// See the function of this name in `combining`.
        #[inline]
        #[allow(clippy::too_many_arguments)] // As many as the standard has.
        pub(crate) unsafe fn $name(
            $($argument: $type,)*
            comm: Handle,
        ) -> Result<Walk, Mistake> {
            // SAFETY: the program keeps what the standard demands of its arguments.
            unsafe { combining::$name($($argument,)* comm)?.call() }
        }
    )*};
}

/// All of them, the long way.
mod long {
    use super::*;

    each_moving!(moved);
    each_combining!(combined);
}

pub(crate) use long::{
    allgather, allgatherv, alltoall, alltoallv, alltoallw, exscan, gather, gatherv, reduce,
    reduce_scatter, reduce_scatter_block, scan, scatter, scatterv,
};

/// Waits for everybody.
#[inline]
pub(crate) unsafe fn barrier(comm: Handle) -> Result<(), Mistake> {
    match quick::barrier(comm) {
        // SAFETY: there are no buffers.
        Some(quick) => unsafe { quick.call() },
        // SAFETY: the program keeps what the standard demands of its arguments.
        None => unsafe { long::barrier(comm) },
    }
}

/// The root's items go to all.
#[inline]
pub(crate) unsafe fn bcast(
    buffer: *mut c_void,
    count: i64,
    datatype: Handle,
    root: c_int,
    comm: Handle,
) -> Result<(), Mistake> {
    match quick::bcast(buffer, count, datatype, root, comm) {
        // SAFETY: the program leaves the buffer to this call.
        Some(quick) => unsafe { quick.call() },
        // SAFETY: the program keeps what the standard demands of its arguments.
        None => unsafe { long::bcast(buffer, count, datatype, root, comm) },
    }
}

/// The combination goes to all.
#[inline]
pub(crate) unsafe fn allreduce(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: i64,
    datatype: Handle,
    op: Handle,
    comm: Handle,
) -> Result<Walk, Mistake> {
    match quick::allreduce(sendbuf, recvbuf, count, datatype, op, comm) {
        // SAFETY: the program leaves both buffers to this call.
        Some(quick) => unsafe { quick.call() }.map(|()| Walk::Done),
        // SAFETY: the program keeps what the standard demands of its arguments.
        None => unsafe { long::allreduce(sendbuf, recvbuf, count, datatype, op, comm) },
    }
}
