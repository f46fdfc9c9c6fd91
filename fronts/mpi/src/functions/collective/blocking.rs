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
        #[inline(never)]
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
        #[inline(never)]
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
    allgatherv, alltoallv, alltoallw, exscan, gatherv, reduce_scatter, reduce_scatter_block, scan,
    scatterv,
};

/// Those that have a short way, by that if it can be.
macro_rules! either_way {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty = $done:expr;)*) => {$(
        /// See the function of this name in `moving` or `combining`.
        #[inline]
        #[allow(clippy::too_many_arguments)] // As many as the standard has.
        pub(crate) unsafe fn $name($($argument: $type),*) -> Result<$result, Mistake> {
            if let Some(quick) = quick::$name($($argument),*)
                // SAFETY: the program leaves the buffers to this call.
                && unsafe { quick.call() }?
            {
                return Ok($done);
            }
            // SAFETY: the program keeps what the standard demands of its arguments.
            unsafe { long::$name($($argument),*) }
        }
    )*};
}

either_way! {
    barrier(comm: Handle) -> () = ();
    bcast(buffer: *mut c_void, count: i64, datatype: Handle, root: c_int, comm: Handle) -> () = ();
    gather(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcount: i64, recvtype: Handle, root: c_int, comm: Handle) -> () = ();
    scatter(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcount: i64, recvtype: Handle, root: c_int, comm: Handle) -> () = ();
    allgather(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcount: i64, recvtype: Handle, comm: Handle) -> () = ();
    alltoall(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcount: i64, recvtype: Handle, comm: Handle) -> () = ();
    reduce(sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: Handle, op: Handle, root: c_int, comm: Handle) -> Walk = Walk::Done;
    allreduce(sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: Handle, op: Handle, comm: Handle) -> Walk = Walk::Done;
}
