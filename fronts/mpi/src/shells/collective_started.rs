//! The shells of the chapter `collective_started`. Made by `cargo xtask mpi`.

use super::*;
use crate::functions::collective_started as bodies;

works! {
    fn MPI_Iallgather / PMPI_Iallgather(sendbuf: *const c_void, sendcount: c_int, sendtype: Handle, recvbuf: *mut c_void, recvcount: c_int, recvtype: Handle, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::iallgather(sendbuf, i64::from(sendcount), sendtype, recvbuf, i64::from(recvcount), recvtype, comm, request)
}

works! {
    fn MPI_Iallgather_c / PMPI_Iallgather_c(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcount: i64, recvtype: Handle, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::iallgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request)
}

works! {
    fn MPI_Iallgatherv / PMPI_Iallgatherv(sendbuf: *const c_void, sendcount: c_int, sendtype: Handle, recvbuf: *mut c_void, recvcounts: *const c_int, displs: *const c_int, recvtype: Handle, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::iallgatherv(sendbuf, i64::from(sendcount), sendtype, recvbuf, Counts::short(recvcounts), Counts::short(displs), recvtype, comm, request)
}

works! {
    fn MPI_Iallgatherv_c / PMPI_Iallgatherv_c(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcounts: *const i64, displs: *const i64, recvtype: Handle, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::iallgatherv(sendbuf, sendcount, sendtype, recvbuf, Counts::wide(recvcounts), Counts::wide(displs), recvtype, comm, request)
}

works! {
    fn MPI_Iallreduce / PMPI_Iallreduce(sendbuf: *const c_void, recvbuf: *mut c_void, count: c_int, datatype: Handle, op: Handle, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::iallreduce(sendbuf, recvbuf, i64::from(count), datatype, op, comm, request)
}

works! {
    fn MPI_Iallreduce_c / PMPI_Iallreduce_c(sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: Handle, op: Handle, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::iallreduce(sendbuf, recvbuf, count, datatype, op, comm, request)
}

works! {
    fn MPI_Ialltoall / PMPI_Ialltoall(sendbuf: *const c_void, sendcount: c_int, sendtype: Handle, recvbuf: *mut c_void, recvcount: c_int, recvtype: Handle, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::ialltoall(sendbuf, i64::from(sendcount), sendtype, recvbuf, i64::from(recvcount), recvtype, comm, request)
}

works! {
    fn MPI_Ialltoall_c / PMPI_Ialltoall_c(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcount: i64, recvtype: Handle, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::ialltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request)
}

works! {
    fn MPI_Ialltoallv / PMPI_Ialltoallv(sendbuf: *const c_void, sendcounts: *const c_int, sdispls: *const c_int, sendtype: Handle, recvbuf: *mut c_void, recvcounts: *const c_int, rdispls: *const c_int, recvtype: Handle, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::ialltoallv(sendbuf, Counts::short(sendcounts), Counts::short(sdispls), sendtype, recvbuf, Counts::short(recvcounts), Counts::short(rdispls), recvtype, comm, request)
}

works! {
    fn MPI_Ialltoallv_c / PMPI_Ialltoallv_c(sendbuf: *const c_void, sendcounts: *const i64, sdispls: *const i64, sendtype: Handle, recvbuf: *mut c_void, recvcounts: *const i64, rdispls: *const i64, recvtype: Handle, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::ialltoallv(sendbuf, Counts::wide(sendcounts), Counts::wide(sdispls), sendtype, recvbuf, Counts::wide(recvcounts), Counts::wide(rdispls), recvtype, comm, request)
}

works! {
    fn MPI_Ialltoallw / PMPI_Ialltoallw(sendbuf: *const c_void, sendcounts: *const c_int, sdispls: *const c_int, sendtypes: *const Handle, recvbuf: *mut c_void, recvcounts: *const c_int, rdispls: *const c_int, recvtypes: *const Handle, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::ialltoallw(sendbuf, Counts::short(sendcounts), Counts::short(sdispls), sendtypes, recvbuf, Counts::short(recvcounts), Counts::short(rdispls), recvtypes, comm, request)
}

works! {
    fn MPI_Ialltoallw_c / PMPI_Ialltoallw_c(sendbuf: *const c_void, sendcounts: *const i64, sdispls: *const i64, sendtypes: *const Handle, recvbuf: *mut c_void, recvcounts: *const i64, rdispls: *const i64, recvtypes: *const Handle, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::ialltoallw(sendbuf, Counts::wide(sendcounts), Counts::wide(sdispls), sendtypes, recvbuf, Counts::wide(recvcounts), Counts::wide(rdispls), recvtypes, comm, request)
}

works! {
    fn MPI_Ibarrier / PMPI_Ibarrier(comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::ibarrier(comm, request)
}

works! {
    fn MPI_Ibcast / PMPI_Ibcast(buffer: *mut c_void, count: c_int, datatype: Handle, root: c_int, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::ibcast(buffer, i64::from(count), datatype, root, comm, request)
}

works! {
    fn MPI_Ibcast_c / PMPI_Ibcast_c(buffer: *mut c_void, count: i64, datatype: Handle, root: c_int, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::ibcast(buffer, count, datatype, root, comm, request)
}

works! {
    fn MPI_Iexscan / PMPI_Iexscan(sendbuf: *const c_void, recvbuf: *mut c_void, count: c_int, datatype: Handle, op: Handle, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::iexscan(sendbuf, recvbuf, i64::from(count), datatype, op, comm, request)
}

works! {
    fn MPI_Iexscan_c / PMPI_Iexscan_c(sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: Handle, op: Handle, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::iexscan(sendbuf, recvbuf, count, datatype, op, comm, request)
}

works! {
    fn MPI_Igather / PMPI_Igather(sendbuf: *const c_void, sendcount: c_int, sendtype: Handle, recvbuf: *mut c_void, recvcount: c_int, recvtype: Handle, root: c_int, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::igather(sendbuf, i64::from(sendcount), sendtype, recvbuf, i64::from(recvcount), recvtype, root, comm, request)
}

works! {
    fn MPI_Igather_c / PMPI_Igather_c(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcount: i64, recvtype: Handle, root: c_int, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::igather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, request)
}

works! {
    fn MPI_Igatherv / PMPI_Igatherv(sendbuf: *const c_void, sendcount: c_int, sendtype: Handle, recvbuf: *mut c_void, recvcounts: *const c_int, displs: *const c_int, recvtype: Handle, root: c_int, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::igatherv(sendbuf, i64::from(sendcount), sendtype, recvbuf, Counts::short(recvcounts), Counts::short(displs), recvtype, root, comm, request)
}

works! {
    fn MPI_Igatherv_c / PMPI_Igatherv_c(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcounts: *const i64, displs: *const i64, recvtype: Handle, root: c_int, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::igatherv(sendbuf, sendcount, sendtype, recvbuf, Counts::wide(recvcounts), Counts::wide(displs), recvtype, root, comm, request)
}

works! {
    fn MPI_Ireduce / PMPI_Ireduce(sendbuf: *const c_void, recvbuf: *mut c_void, count: c_int, datatype: Handle, op: Handle, root: c_int, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::ireduce(sendbuf, recvbuf, i64::from(count), datatype, op, root, comm, request)
}

works! {
    fn MPI_Ireduce_c / PMPI_Ireduce_c(sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: Handle, op: Handle, root: c_int, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::ireduce(sendbuf, recvbuf, count, datatype, op, root, comm, request)
}

works! {
    fn MPI_Ireduce_scatter / PMPI_Ireduce_scatter(sendbuf: *const c_void, recvbuf: *mut c_void, recvcounts: *const c_int, datatype: Handle, op: Handle, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::ireduce_scatter(sendbuf, recvbuf, Counts::short(recvcounts), datatype, op, comm, request)
}

works! {
    fn MPI_Ireduce_scatter_block / PMPI_Ireduce_scatter_block(sendbuf: *const c_void, recvbuf: *mut c_void, recvcount: c_int, datatype: Handle, op: Handle, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::ireduce_scatter_block(sendbuf, recvbuf, i64::from(recvcount), datatype, op, comm, request)
}

works! {
    fn MPI_Ireduce_scatter_block_c / PMPI_Ireduce_scatter_block_c(sendbuf: *const c_void, recvbuf: *mut c_void, recvcount: i64, datatype: Handle, op: Handle, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::ireduce_scatter_block(sendbuf, recvbuf, recvcount, datatype, op, comm, request)
}

works! {
    fn MPI_Ireduce_scatter_c / PMPI_Ireduce_scatter_c(sendbuf: *const c_void, recvbuf: *mut c_void, recvcounts: *const i64, datatype: Handle, op: Handle, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::ireduce_scatter(sendbuf, recvbuf, Counts::wide(recvcounts), datatype, op, comm, request)
}

works! {
    fn MPI_Iscan / PMPI_Iscan(sendbuf: *const c_void, recvbuf: *mut c_void, count: c_int, datatype: Handle, op: Handle, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::iscan(sendbuf, recvbuf, i64::from(count), datatype, op, comm, request)
}

works! {
    fn MPI_Iscan_c / PMPI_Iscan_c(sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: Handle, op: Handle, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::iscan(sendbuf, recvbuf, count, datatype, op, comm, request)
}

works! {
    fn MPI_Iscatter / PMPI_Iscatter(sendbuf: *const c_void, sendcount: c_int, sendtype: Handle, recvbuf: *mut c_void, recvcount: c_int, recvtype: Handle, root: c_int, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::iscatter(sendbuf, i64::from(sendcount), sendtype, recvbuf, i64::from(recvcount), recvtype, root, comm, request)
}

works! {
    fn MPI_Iscatter_c / PMPI_Iscatter_c(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcount: i64, recvtype: Handle, root: c_int, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::iscatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, request)
}

works! {
    fn MPI_Iscatterv / PMPI_Iscatterv(sendbuf: *const c_void, sendcounts: *const c_int, displs: *const c_int, sendtype: Handle, recvbuf: *mut c_void, recvcount: c_int, recvtype: Handle, root: c_int, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::iscatterv(sendbuf, Counts::short(sendcounts), Counts::short(displs), sendtype, recvbuf, i64::from(recvcount), recvtype, root, comm, request)
}

works! {
    fn MPI_Iscatterv_c / PMPI_Iscatterv_c(sendbuf: *const c_void, sendcounts: *const i64, displs: *const i64, sendtype: Handle, recvbuf: *mut c_void, recvcount: i64, recvtype: Handle, root: c_int, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::iscatterv(sendbuf, Counts::wide(sendcounts), Counts::wide(displs), sendtype, recvbuf, recvcount, recvtype, root, comm, request)
}
