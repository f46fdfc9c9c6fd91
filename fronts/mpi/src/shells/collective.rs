//! The shells of the chapter `collective`. Made by `cargo xtask mpi`.

use super::*;
use crate::functions::collective as bodies;

works! {
    fn MPI_Allgather / PMPI_Allgather(sendbuf: *const c_void, sendcount: c_int, sendtype: Handle, recvbuf: *mut c_void, recvcount: c_int, recvtype: Handle, comm: Handle) on Origin::Communicator(comm) =>
    bodies::allgather(sendbuf, i64::from(sendcount), sendtype, recvbuf, i64::from(recvcount), recvtype, comm)
}

works! {
    fn MPI_Allgather_c / PMPI_Allgather_c(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcount: i64, recvtype: Handle, comm: Handle) on Origin::Communicator(comm) =>
    bodies::allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
}

works! {
    fn MPI_Allgatherv / PMPI_Allgatherv(sendbuf: *const c_void, sendcount: c_int, sendtype: Handle, recvbuf: *mut c_void, recvcounts: *const c_int, displs: *const c_int, recvtype: Handle, comm: Handle) on Origin::Communicator(comm) =>
    bodies::allgatherv(sendbuf, i64::from(sendcount), sendtype, recvbuf, Counts::short(recvcounts), Counts::short(displs), recvtype, comm)
}

works! {
    fn MPI_Allgatherv_c / PMPI_Allgatherv_c(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcounts: *const i64, displs: *const i64, recvtype: Handle, comm: Handle) on Origin::Communicator(comm) =>
    bodies::allgatherv(sendbuf, sendcount, sendtype, recvbuf, Counts::wide(recvcounts), Counts::wide(displs), recvtype, comm)
}

calls_back! {
    fn MPI_Allreduce / PMPI_Allreduce(sendbuf: *const c_void, recvbuf: *mut c_void, count: c_int, datatype: Handle, op: Handle, comm: Handle) on Origin::Communicator(comm) =>
    bodies::allreduce(sendbuf, recvbuf, i64::from(count), datatype, op, comm)
}

calls_back! {
    fn MPI_Allreduce_c / PMPI_Allreduce_c(sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: Handle, op: Handle, comm: Handle) on Origin::Communicator(comm) =>
    bodies::allreduce(sendbuf, recvbuf, count, datatype, op, comm)
}

works! {
    fn MPI_Alltoall / PMPI_Alltoall(sendbuf: *const c_void, sendcount: c_int, sendtype: Handle, recvbuf: *mut c_void, recvcount: c_int, recvtype: Handle, comm: Handle) on Origin::Communicator(comm) =>
    bodies::alltoall(sendbuf, i64::from(sendcount), sendtype, recvbuf, i64::from(recvcount), recvtype, comm)
}

works! {
    fn MPI_Alltoall_c / PMPI_Alltoall_c(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcount: i64, recvtype: Handle, comm: Handle) on Origin::Communicator(comm) =>
    bodies::alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
}

works! {
    fn MPI_Alltoallv / PMPI_Alltoallv(sendbuf: *const c_void, sendcounts: *const c_int, sdispls: *const c_int, sendtype: Handle, recvbuf: *mut c_void, recvcounts: *const c_int, rdispls: *const c_int, recvtype: Handle, comm: Handle) on Origin::Communicator(comm) =>
    bodies::alltoallv(sendbuf, Counts::short(sendcounts), Counts::short(sdispls), sendtype, recvbuf, Counts::short(recvcounts), Counts::short(rdispls), recvtype, comm)
}

works! {
    fn MPI_Alltoallv_c / PMPI_Alltoallv_c(sendbuf: *const c_void, sendcounts: *const i64, sdispls: *const i64, sendtype: Handle, recvbuf: *mut c_void, recvcounts: *const i64, rdispls: *const i64, recvtype: Handle, comm: Handle) on Origin::Communicator(comm) =>
    bodies::alltoallv(sendbuf, Counts::wide(sendcounts), Counts::wide(sdispls), sendtype, recvbuf, Counts::wide(recvcounts), Counts::wide(rdispls), recvtype, comm)
}

works! {
    fn MPI_Alltoallw / PMPI_Alltoallw(sendbuf: *const c_void, sendcounts: *const c_int, sdispls: *const c_int, sendtypes: *const Handle, recvbuf: *mut c_void, recvcounts: *const c_int, rdispls: *const c_int, recvtypes: *const Handle, comm: Handle) on Origin::Communicator(comm) =>
    bodies::alltoallw(sendbuf, Counts::short(sendcounts), Counts::short(sdispls), sendtypes, recvbuf, Counts::short(recvcounts), Counts::short(rdispls), recvtypes, comm)
}

works! {
    fn MPI_Alltoallw_c / PMPI_Alltoallw_c(sendbuf: *const c_void, sendcounts: *const i64, sdispls: *const i64, sendtypes: *const Handle, recvbuf: *mut c_void, recvcounts: *const i64, rdispls: *const i64, recvtypes: *const Handle, comm: Handle) on Origin::Communicator(comm) =>
    bodies::alltoallw(sendbuf, Counts::wide(sendcounts), Counts::wide(sdispls), sendtypes, recvbuf, Counts::wide(recvcounts), Counts::wide(rdispls), recvtypes, comm)
}

works! {
    fn MPI_Barrier / PMPI_Barrier(comm: Handle) on Origin::Communicator(comm) =>
    bodies::barrier(comm)
}

works! {
    fn MPI_Bcast / PMPI_Bcast(buffer: *mut c_void, count: c_int, datatype: Handle, root: c_int, comm: Handle) on Origin::Communicator(comm) =>
    bodies::bcast(buffer, i64::from(count), datatype, root, comm)
}

works! {
    fn MPI_Bcast_c / PMPI_Bcast_c(buffer: *mut c_void, count: i64, datatype: Handle, root: c_int, comm: Handle) on Origin::Communicator(comm) =>
    bodies::bcast(buffer, count, datatype, root, comm)
}

calls_back! {
    fn MPI_Exscan / PMPI_Exscan(sendbuf: *const c_void, recvbuf: *mut c_void, count: c_int, datatype: Handle, op: Handle, comm: Handle) on Origin::Communicator(comm) =>
    bodies::exscan(sendbuf, recvbuf, i64::from(count), datatype, op, comm)
}

calls_back! {
    fn MPI_Exscan_c / PMPI_Exscan_c(sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: Handle, op: Handle, comm: Handle) on Origin::Communicator(comm) =>
    bodies::exscan(sendbuf, recvbuf, count, datatype, op, comm)
}

works! {
    fn MPI_Gather / PMPI_Gather(sendbuf: *const c_void, sendcount: c_int, sendtype: Handle, recvbuf: *mut c_void, recvcount: c_int, recvtype: Handle, root: c_int, comm: Handle) on Origin::Communicator(comm) =>
    bodies::gather(sendbuf, i64::from(sendcount), sendtype, recvbuf, i64::from(recvcount), recvtype, root, comm)
}

works! {
    fn MPI_Gather_c / PMPI_Gather_c(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcount: i64, recvtype: Handle, root: c_int, comm: Handle) on Origin::Communicator(comm) =>
    bodies::gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm)
}

works! {
    fn MPI_Gatherv / PMPI_Gatherv(sendbuf: *const c_void, sendcount: c_int, sendtype: Handle, recvbuf: *mut c_void, recvcounts: *const c_int, displs: *const c_int, recvtype: Handle, root: c_int, comm: Handle) on Origin::Communicator(comm) =>
    bodies::gatherv(sendbuf, i64::from(sendcount), sendtype, recvbuf, Counts::short(recvcounts), Counts::short(displs), recvtype, root, comm)
}

works! {
    fn MPI_Gatherv_c / PMPI_Gatherv_c(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcounts: *const i64, displs: *const i64, recvtype: Handle, root: c_int, comm: Handle) on Origin::Communicator(comm) =>
    bodies::gatherv(sendbuf, sendcount, sendtype, recvbuf, Counts::wide(recvcounts), Counts::wide(displs), recvtype, root, comm)
}

calls_back! {
    fn MPI_Reduce / PMPI_Reduce(sendbuf: *const c_void, recvbuf: *mut c_void, count: c_int, datatype: Handle, op: Handle, root: c_int, comm: Handle) on Origin::Communicator(comm) =>
    bodies::reduce(sendbuf, recvbuf, i64::from(count), datatype, op, root, comm)
}

calls_back! {
    fn MPI_Reduce_c / PMPI_Reduce_c(sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: Handle, op: Handle, root: c_int, comm: Handle) on Origin::Communicator(comm) =>
    bodies::reduce(sendbuf, recvbuf, count, datatype, op, root, comm)
}

calls_back! {
    fn MPI_Reduce_scatter / PMPI_Reduce_scatter(sendbuf: *const c_void, recvbuf: *mut c_void, recvcounts: *const c_int, datatype: Handle, op: Handle, comm: Handle) on Origin::Communicator(comm) =>
    bodies::reduce_scatter(sendbuf, recvbuf, Counts::short(recvcounts), datatype, op, comm)
}

calls_back! {
    fn MPI_Reduce_scatter_block / PMPI_Reduce_scatter_block(sendbuf: *const c_void, recvbuf: *mut c_void, recvcount: c_int, datatype: Handle, op: Handle, comm: Handle) on Origin::Communicator(comm) =>
    bodies::reduce_scatter_block(sendbuf, recvbuf, i64::from(recvcount), datatype, op, comm)
}

calls_back! {
    fn MPI_Reduce_scatter_block_c / PMPI_Reduce_scatter_block_c(sendbuf: *const c_void, recvbuf: *mut c_void, recvcount: i64, datatype: Handle, op: Handle, comm: Handle) on Origin::Communicator(comm) =>
    bodies::reduce_scatter_block(sendbuf, recvbuf, recvcount, datatype, op, comm)
}

calls_back! {
    fn MPI_Reduce_scatter_c / PMPI_Reduce_scatter_c(sendbuf: *const c_void, recvbuf: *mut c_void, recvcounts: *const i64, datatype: Handle, op: Handle, comm: Handle) on Origin::Communicator(comm) =>
    bodies::reduce_scatter(sendbuf, recvbuf, Counts::wide(recvcounts), datatype, op, comm)
}

calls_back! {
    fn MPI_Scan / PMPI_Scan(sendbuf: *const c_void, recvbuf: *mut c_void, count: c_int, datatype: Handle, op: Handle, comm: Handle) on Origin::Communicator(comm) =>
    bodies::scan(sendbuf, recvbuf, i64::from(count), datatype, op, comm)
}

calls_back! {
    fn MPI_Scan_c / PMPI_Scan_c(sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: Handle, op: Handle, comm: Handle) on Origin::Communicator(comm) =>
    bodies::scan(sendbuf, recvbuf, count, datatype, op, comm)
}

works! {
    fn MPI_Scatter / PMPI_Scatter(sendbuf: *const c_void, sendcount: c_int, sendtype: Handle, recvbuf: *mut c_void, recvcount: c_int, recvtype: Handle, root: c_int, comm: Handle) on Origin::Communicator(comm) =>
    bodies::scatter(sendbuf, i64::from(sendcount), sendtype, recvbuf, i64::from(recvcount), recvtype, root, comm)
}

works! {
    fn MPI_Scatter_c / PMPI_Scatter_c(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcount: i64, recvtype: Handle, root: c_int, comm: Handle) on Origin::Communicator(comm) =>
    bodies::scatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm)
}

works! {
    fn MPI_Scatterv / PMPI_Scatterv(sendbuf: *const c_void, sendcounts: *const c_int, displs: *const c_int, sendtype: Handle, recvbuf: *mut c_void, recvcount: c_int, recvtype: Handle, root: c_int, comm: Handle) on Origin::Communicator(comm) =>
    bodies::scatterv(sendbuf, Counts::short(sendcounts), Counts::short(displs), sendtype, recvbuf, i64::from(recvcount), recvtype, root, comm)
}

works! {
    fn MPI_Scatterv_c / PMPI_Scatterv_c(sendbuf: *const c_void, sendcounts: *const i64, displs: *const i64, sendtype: Handle, recvbuf: *mut c_void, recvcount: i64, recvtype: Handle, root: c_int, comm: Handle) on Origin::Communicator(comm) =>
    bodies::scatterv(sendbuf, Counts::wide(sendcounts), Counts::wide(displs), sendtype, recvbuf, recvcount, recvtype, root, comm)
}
