//! The shells of the chapter `collective_persistent`. Made by `cargo xtask mpi`.

use super::*;
use crate::functions::collective_persistent as bodies;

works! {
    fn MPI_Allgather_init / PMPI_Allgather_init(sendbuf: *const c_void, sendcount: c_int, sendtype: Handle, recvbuf: *mut c_void, recvcount: c_int, recvtype: Handle, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::allgather_init(sendbuf, i64::from(sendcount), sendtype, recvbuf, i64::from(recvcount), recvtype, comm, info, request)
}

works! {
    fn MPI_Allgather_init_c / PMPI_Allgather_init_c(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcount: i64, recvtype: Handle, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::allgather_init(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, info, request)
}

works! {
    fn MPI_Allgatherv_init / PMPI_Allgatherv_init(sendbuf: *const c_void, sendcount: c_int, sendtype: Handle, recvbuf: *mut c_void, recvcounts: *const c_int, displs: *const c_int, recvtype: Handle, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::allgatherv_init(sendbuf, i64::from(sendcount), sendtype, recvbuf, Counts::short(recvcounts), Counts::short(displs), recvtype, comm, info, request)
}

works! {
    fn MPI_Allgatherv_init_c / PMPI_Allgatherv_init_c(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcounts: *const i64, displs: *const i64, recvtype: Handle, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::allgatherv_init(sendbuf, sendcount, sendtype, recvbuf, Counts::wide(recvcounts), Counts::wide(displs), recvtype, comm, info, request)
}

works! {
    fn MPI_Allreduce_init / PMPI_Allreduce_init(sendbuf: *const c_void, recvbuf: *mut c_void, count: c_int, datatype: Handle, op: Handle, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::allreduce_init(sendbuf, recvbuf, i64::from(count), datatype, op, comm, info, request)
}

works! {
    fn MPI_Allreduce_init_c / PMPI_Allreduce_init_c(sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: Handle, op: Handle, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::allreduce_init(sendbuf, recvbuf, count, datatype, op, comm, info, request)
}

works! {
    fn MPI_Alltoall_init / PMPI_Alltoall_init(sendbuf: *const c_void, sendcount: c_int, sendtype: Handle, recvbuf: *mut c_void, recvcount: c_int, recvtype: Handle, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::alltoall_init(sendbuf, i64::from(sendcount), sendtype, recvbuf, i64::from(recvcount), recvtype, comm, info, request)
}

works! {
    fn MPI_Alltoall_init_c / PMPI_Alltoall_init_c(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcount: i64, recvtype: Handle, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::alltoall_init(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, info, request)
}

works! {
    fn MPI_Alltoallv_init / PMPI_Alltoallv_init(sendbuf: *const c_void, sendcounts: *const c_int, sdispls: *const c_int, sendtype: Handle, recvbuf: *mut c_void, recvcounts: *const c_int, rdispls: *const c_int, recvtype: Handle, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::alltoallv_init(sendbuf, Counts::short(sendcounts), Counts::short(sdispls), sendtype, recvbuf, Counts::short(recvcounts), Counts::short(rdispls), recvtype, comm, info, request)
}

works! {
    fn MPI_Alltoallv_init_c / PMPI_Alltoallv_init_c(sendbuf: *const c_void, sendcounts: *const i64, sdispls: *const i64, sendtype: Handle, recvbuf: *mut c_void, recvcounts: *const i64, rdispls: *const i64, recvtype: Handle, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::alltoallv_init(sendbuf, Counts::wide(sendcounts), Counts::wide(sdispls), sendtype, recvbuf, Counts::wide(recvcounts), Counts::wide(rdispls), recvtype, comm, info, request)
}

works! {
    fn MPI_Alltoallw_init / PMPI_Alltoallw_init(sendbuf: *const c_void, sendcounts: *const c_int, sdispls: *const c_int, sendtypes: *const Handle, recvbuf: *mut c_void, recvcounts: *const c_int, rdispls: *const c_int, recvtypes: *const Handle, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::alltoallw_init(sendbuf, Counts::short(sendcounts), Counts::short(sdispls), sendtypes, recvbuf, Counts::short(recvcounts), Counts::short(rdispls), recvtypes, comm, info, request)
}

works! {
    fn MPI_Alltoallw_init_c / PMPI_Alltoallw_init_c(sendbuf: *const c_void, sendcounts: *const i64, sdispls: *const i64, sendtypes: *const Handle, recvbuf: *mut c_void, recvcounts: *const i64, rdispls: *const i64, recvtypes: *const Handle, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::alltoallw_init(sendbuf, Counts::wide(sendcounts), Counts::wide(sdispls), sendtypes, recvbuf, Counts::wide(recvcounts), Counts::wide(rdispls), recvtypes, comm, info, request)
}

works! {
    fn MPI_Barrier_init / PMPI_Barrier_init(comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::barrier_init(comm, info, request)
}

works! {
    fn MPI_Bcast_init / PMPI_Bcast_init(buffer: *mut c_void, count: c_int, datatype: Handle, root: c_int, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::bcast_init(buffer, i64::from(count), datatype, root, comm, info, request)
}

works! {
    fn MPI_Bcast_init_c / PMPI_Bcast_init_c(buffer: *mut c_void, count: i64, datatype: Handle, root: c_int, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::bcast_init(buffer, count, datatype, root, comm, info, request)
}

works! {
    fn MPI_Exscan_init / PMPI_Exscan_init(sendbuf: *const c_void, recvbuf: *mut c_void, count: c_int, datatype: Handle, op: Handle, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::exscan_init(sendbuf, recvbuf, i64::from(count), datatype, op, comm, info, request)
}

works! {
    fn MPI_Exscan_init_c / PMPI_Exscan_init_c(sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: Handle, op: Handle, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::exscan_init(sendbuf, recvbuf, count, datatype, op, comm, info, request)
}

works! {
    fn MPI_Gather_init / PMPI_Gather_init(sendbuf: *const c_void, sendcount: c_int, sendtype: Handle, recvbuf: *mut c_void, recvcount: c_int, recvtype: Handle, root: c_int, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::gather_init(sendbuf, i64::from(sendcount), sendtype, recvbuf, i64::from(recvcount), recvtype, root, comm, info, request)
}

works! {
    fn MPI_Gather_init_c / PMPI_Gather_init_c(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcount: i64, recvtype: Handle, root: c_int, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::gather_init(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, info, request)
}

works! {
    fn MPI_Gatherv_init / PMPI_Gatherv_init(sendbuf: *const c_void, sendcount: c_int, sendtype: Handle, recvbuf: *mut c_void, recvcounts: *const c_int, displs: *const c_int, recvtype: Handle, root: c_int, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::gatherv_init(sendbuf, i64::from(sendcount), sendtype, recvbuf, Counts::short(recvcounts), Counts::short(displs), recvtype, root, comm, info, request)
}

works! {
    fn MPI_Gatherv_init_c / PMPI_Gatherv_init_c(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcounts: *const i64, displs: *const i64, recvtype: Handle, root: c_int, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::gatherv_init(sendbuf, sendcount, sendtype, recvbuf, Counts::wide(recvcounts), Counts::wide(displs), recvtype, root, comm, info, request)
}

works! {
    fn MPI_Reduce_init / PMPI_Reduce_init(sendbuf: *const c_void, recvbuf: *mut c_void, count: c_int, datatype: Handle, op: Handle, root: c_int, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::reduce_init(sendbuf, recvbuf, i64::from(count), datatype, op, root, comm, info, request)
}

works! {
    fn MPI_Reduce_init_c / PMPI_Reduce_init_c(sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: Handle, op: Handle, root: c_int, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::reduce_init(sendbuf, recvbuf, count, datatype, op, root, comm, info, request)
}

works! {
    fn MPI_Reduce_scatter_block_init / PMPI_Reduce_scatter_block_init(sendbuf: *const c_void, recvbuf: *mut c_void, recvcount: c_int, datatype: Handle, op: Handle, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::reduce_scatter_block_init(sendbuf, recvbuf, i64::from(recvcount), datatype, op, comm, info, request)
}

works! {
    fn MPI_Reduce_scatter_block_init_c / PMPI_Reduce_scatter_block_init_c(sendbuf: *const c_void, recvbuf: *mut c_void, recvcount: i64, datatype: Handle, op: Handle, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::reduce_scatter_block_init(sendbuf, recvbuf, recvcount, datatype, op, comm, info, request)
}

works! {
    fn MPI_Reduce_scatter_init / PMPI_Reduce_scatter_init(sendbuf: *const c_void, recvbuf: *mut c_void, recvcounts: *const c_int, datatype: Handle, op: Handle, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::reduce_scatter_init(sendbuf, recvbuf, Counts::short(recvcounts), datatype, op, comm, info, request)
}

works! {
    fn MPI_Reduce_scatter_init_c / PMPI_Reduce_scatter_init_c(sendbuf: *const c_void, recvbuf: *mut c_void, recvcounts: *const i64, datatype: Handle, op: Handle, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::reduce_scatter_init(sendbuf, recvbuf, Counts::wide(recvcounts), datatype, op, comm, info, request)
}

works! {
    fn MPI_Scan_init / PMPI_Scan_init(sendbuf: *const c_void, recvbuf: *mut c_void, count: c_int, datatype: Handle, op: Handle, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::scan_init(sendbuf, recvbuf, i64::from(count), datatype, op, comm, info, request)
}

works! {
    fn MPI_Scan_init_c / PMPI_Scan_init_c(sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: Handle, op: Handle, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::scan_init(sendbuf, recvbuf, count, datatype, op, comm, info, request)
}

works! {
    fn MPI_Scatter_init / PMPI_Scatter_init(sendbuf: *const c_void, sendcount: c_int, sendtype: Handle, recvbuf: *mut c_void, recvcount: c_int, recvtype: Handle, root: c_int, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::scatter_init(sendbuf, i64::from(sendcount), sendtype, recvbuf, i64::from(recvcount), recvtype, root, comm, info, request)
}

works! {
    fn MPI_Scatter_init_c / PMPI_Scatter_init_c(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcount: i64, recvtype: Handle, root: c_int, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::scatter_init(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, info, request)
}

works! {
    fn MPI_Scatterv_init / PMPI_Scatterv_init(sendbuf: *const c_void, sendcounts: *const c_int, displs: *const c_int, sendtype: Handle, recvbuf: *mut c_void, recvcount: c_int, recvtype: Handle, root: c_int, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::scatterv_init(sendbuf, Counts::short(sendcounts), Counts::short(displs), sendtype, recvbuf, i64::from(recvcount), recvtype, root, comm, info, request)
}

works! {
    fn MPI_Scatterv_init_c / PMPI_Scatterv_init_c(sendbuf: *const c_void, sendcounts: *const i64, displs: *const i64, sendtype: Handle, recvbuf: *mut c_void, recvcount: i64, recvtype: Handle, root: c_int, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::scatterv_init(sendbuf, Counts::wide(sendcounts), Counts::wide(displs), sendtype, recvbuf, recvcount, recvtype, root, comm, info, request)
}
