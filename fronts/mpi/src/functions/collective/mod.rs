//! Collective operations: what their arguments say, and those that return when this process has done
//! its part. The chapters of those that are started and of those that are kept use the same.
//!
//! | module | what |
//! |---|---|
//! | `moving` | operations that move data: arguments and their checks |
//! | `combining` | operations that combine them |
//! | `side` | what the program brings, or gets |
//! | `blocking` | the functions that return when this process has done its part |
//! | `quick` | the short way of the most usual calls |
//! | `asked` | a call whose arguments are checked, and as the layer below has it |
//! | `doing` | it is done, started, or kept to be started |
//! | `fold` | combining what was brought together, with the program's functions |
//! | `between` | operations of two groups |

mod asked;
mod between;
mod blocking;
pub(crate) mod combining;
mod doing;
mod fold;
pub(crate) mod moving;
mod quick;
mod side;

pub(crate) use blocking::*;
pub(crate) use fold::Combination;

/// Hands the operations that move data to a macro: the names of the three forms and the parameters
/// that they share, but for the communicator, which is the last of them.
macro_rules! each_moving {
    ($form:ident) => { $form! {
        barrier ibarrier barrier_init();
        bcast ibcast bcast_init(buffer: *mut c_void, count: i64, datatype: Handle, root: c_int);
        gather igather gather_init(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcount: i64, recvtype: Handle, root: c_int);
        gatherv igatherv gatherv_init(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcounts: Counts, displs: Counts, recvtype: Handle, root: c_int);
        scatter iscatter scatter_init(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcount: i64, recvtype: Handle, root: c_int);
        scatterv iscatterv scatterv_init(sendbuf: *const c_void, sendcounts: Counts, displs: Counts, sendtype: Handle, recvbuf: *mut c_void, recvcount: i64, recvtype: Handle, root: c_int);
        allgather iallgather allgather_init(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcount: i64, recvtype: Handle);
        allgatherv iallgatherv allgatherv_init(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcounts: Counts, displs: Counts, recvtype: Handle);
        alltoall ialltoall alltoall_init(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcount: i64, recvtype: Handle);
        alltoallv ialltoallv alltoallv_init(sendbuf: *const c_void, sendcounts: Counts, sdispls: Counts, sendtype: Handle, recvbuf: *mut c_void, recvcounts: Counts, rdispls: Counts, recvtype: Handle);
        alltoallw ialltoallw alltoallw_init(sendbuf: *const c_void, sendcounts: Counts, sdispls: Counts, sendtypes: *const Handle, recvbuf: *mut c_void, recvcounts: Counts, rdispls: Counts, recvtypes: *const Handle);
    } };
}
pub(crate) use each_moving;

/// Hands the operations that combine data to a macro, in the form of [`each_moving`].
macro_rules! each_combining {
    ($form:ident) => { $form! {
        reduce ireduce reduce_init(sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: Handle, op: Handle, root: c_int);
        allreduce iallreduce allreduce_init(sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: Handle, op: Handle);
        scan iscan scan_init(sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: Handle, op: Handle);
        exscan iexscan exscan_init(sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: Handle, op: Handle);
        reduce_scatter ireduce_scatter reduce_scatter_init(sendbuf: *const c_void, recvbuf: *mut c_void, recvcounts: Counts, datatype: Handle, op: Handle);
        reduce_scatter_block ireduce_scatter_block reduce_scatter_block_init(sendbuf: *const c_void, recvbuf: *mut c_void, recvcount: i64, datatype: Handle, op: Handle);
    } };
}
pub(crate) use each_combining;
