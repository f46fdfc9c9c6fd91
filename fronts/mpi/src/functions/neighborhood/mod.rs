//! Collective operations between neighbours: each process tells those to which its edges lead in the
//! topology, and hears from those whose edges lead to it. A function comes in three forms: it returns
//! when it is over, it is started, it is kept to be started any number of times.
//!
//! | module | what |
//! |---|---|
//! | `operations` | the operations: arguments and their checks |
//! | `side` | what a process tells its neighbours, or hears from them |
//! | `asked` | a call whose arguments are checked: done, started, kept |

mod asked;
mod operations;
mod side;

use std::ffi::c_void;

use crate::abi::Handle;
use crate::counts::Counts;
use crate::mistake::Mistake;

/// The three forms of an operation, of its parameters but the last ones, which differ.
macro_rules! forms {
    ($($name:ident $started:ident $kept:ident($($argument:ident: $type:ty),*);)*) => {$(
        /// Returns when it is over. See the function of this name in `operations`.
        #[allow(clippy::too_many_arguments)] // They are the standard's.
        pub(crate) unsafe fn $name($($argument: $type,)* comm: Handle) -> Result<(), Mistake> {
            // SAFETY: the program keeps what the standard demands of its arguments.
            unsafe { operations::$name($($argument,)* comm)?.call() }
        }

        /// Goes on after the call.
        #[allow(clippy::too_many_arguments)] // They are the standard's.
        pub(crate) unsafe fn $started(
            $($argument: $type,)*
            comm: Handle,
            request: *mut Handle,
        ) -> Result<(), Mistake> {
            // SAFETY: the program keeps what the standard demands of its arguments.
            unsafe { operations::$name($($argument,)* comm)?.start(request) }
        }

        /// To be started any number of times.
        #[allow(clippy::too_many_arguments)] // They are the standard's.
        pub(crate) unsafe fn $kept(
            $($argument: $type,)*
            comm: Handle,
            info: Handle,
            request: *mut Handle,
        ) -> Result<(), Mistake> {
            // SAFETY: the program keeps what the standard demands of its arguments.
            unsafe { operations::$name($($argument,)* comm)?.keep(info, request) }
        }
    )*};
}

forms! {
    neighbor_allgather ineighbor_allgather neighbor_allgather_init(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcount: i64, recvtype: Handle);
    neighbor_allgatherv ineighbor_allgatherv neighbor_allgatherv_init(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcounts: Counts, displs: Counts, recvtype: Handle);
    neighbor_alltoall ineighbor_alltoall neighbor_alltoall_init(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcount: i64, recvtype: Handle);
    neighbor_alltoallv ineighbor_alltoallv neighbor_alltoallv_init(sendbuf: *const c_void, sendcounts: Counts, sdispls: Counts, sendtype: Handle, recvbuf: *mut c_void, recvcounts: Counts, rdispls: Counts, recvtype: Handle);
    neighbor_alltoallw ineighbor_alltoallw neighbor_alltoallw_init(sendbuf: *const c_void, sendcounts: Counts, sdispls: *const i64, sendtypes: *const Handle, recvbuf: *mut c_void, recvcounts: Counts, rdispls: *const i64, recvtypes: *const Handle);
}
