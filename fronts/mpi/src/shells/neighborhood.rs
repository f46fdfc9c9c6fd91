//! The shells of the chapter `neighborhood`. Made by `cargo xtask mpi`.

use super::*;
use crate::functions::neighborhood as bodies;

works! {
    fn MPI_Ineighbor_allgather / PMPI_Ineighbor_allgather(sendbuf: *const c_void, sendcount: c_int, sendtype: Handle, recvbuf: *mut c_void, recvcount: c_int, recvtype: Handle, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::ineighbor_allgather(sendbuf, i64::from(sendcount), sendtype, recvbuf, i64::from(recvcount), recvtype, comm, request)
}

works! {
    fn MPI_Ineighbor_allgather_c / PMPI_Ineighbor_allgather_c(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcount: i64, recvtype: Handle, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::ineighbor_allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request)
}

works! {
    fn MPI_Ineighbor_allgatherv / PMPI_Ineighbor_allgatherv(sendbuf: *const c_void, sendcount: c_int, sendtype: Handle, recvbuf: *mut c_void, recvcounts: *const c_int, displs: *const c_int, recvtype: Handle, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::ineighbor_allgatherv(sendbuf, i64::from(sendcount), sendtype, recvbuf, Counts::short(recvcounts), Counts::short(displs), recvtype, comm, request)
}

works! {
    fn MPI_Ineighbor_allgatherv_c / PMPI_Ineighbor_allgatherv_c(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcounts: *const i64, displs: *const i64, recvtype: Handle, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::ineighbor_allgatherv(sendbuf, sendcount, sendtype, recvbuf, Counts::wide(recvcounts), Counts::wide(displs), recvtype, comm, request)
}

works! {
    fn MPI_Ineighbor_alltoall / PMPI_Ineighbor_alltoall(sendbuf: *const c_void, sendcount: c_int, sendtype: Handle, recvbuf: *mut c_void, recvcount: c_int, recvtype: Handle, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::ineighbor_alltoall(sendbuf, i64::from(sendcount), sendtype, recvbuf, i64::from(recvcount), recvtype, comm, request)
}

works! {
    fn MPI_Ineighbor_alltoall_c / PMPI_Ineighbor_alltoall_c(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcount: i64, recvtype: Handle, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::ineighbor_alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request)
}

works! {
    fn MPI_Ineighbor_alltoallv / PMPI_Ineighbor_alltoallv(sendbuf: *const c_void, sendcounts: *const c_int, sdispls: *const c_int, sendtype: Handle, recvbuf: *mut c_void, recvcounts: *const c_int, rdispls: *const c_int, recvtype: Handle, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::ineighbor_alltoallv(sendbuf, Counts::short(sendcounts), Counts::short(sdispls), sendtype, recvbuf, Counts::short(recvcounts), Counts::short(rdispls), recvtype, comm, request)
}

works! {
    fn MPI_Ineighbor_alltoallv_c / PMPI_Ineighbor_alltoallv_c(sendbuf: *const c_void, sendcounts: *const i64, sdispls: *const i64, sendtype: Handle, recvbuf: *mut c_void, recvcounts: *const i64, rdispls: *const i64, recvtype: Handle, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::ineighbor_alltoallv(sendbuf, Counts::wide(sendcounts), Counts::wide(sdispls), sendtype, recvbuf, Counts::wide(recvcounts), Counts::wide(rdispls), recvtype, comm, request)
}

works! {
    fn MPI_Ineighbor_alltoallw / PMPI_Ineighbor_alltoallw(sendbuf: *const c_void, sendcounts: *const c_int, sdispls: *const i64, sendtypes: *const Handle, recvbuf: *mut c_void, recvcounts: *const c_int, rdispls: *const i64, recvtypes: *const Handle, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::ineighbor_alltoallw(sendbuf, Counts::short(sendcounts), sdispls, sendtypes, recvbuf, Counts::short(recvcounts), rdispls, recvtypes, comm, request)
}

works! {
    fn MPI_Ineighbor_alltoallw_c / PMPI_Ineighbor_alltoallw_c(sendbuf: *const c_void, sendcounts: *const i64, sdispls: *const i64, sendtypes: *const Handle, recvbuf: *mut c_void, recvcounts: *const i64, rdispls: *const i64, recvtypes: *const Handle, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::ineighbor_alltoallw(sendbuf, Counts::wide(sendcounts), sdispls, sendtypes, recvbuf, Counts::wide(recvcounts), rdispls, recvtypes, comm, request)
}

works! {
    fn MPI_Neighbor_allgather / PMPI_Neighbor_allgather(sendbuf: *const c_void, sendcount: c_int, sendtype: Handle, recvbuf: *mut c_void, recvcount: c_int, recvtype: Handle, comm: Handle) on Origin::Communicator(comm) =>
    bodies::neighbor_allgather(sendbuf, i64::from(sendcount), sendtype, recvbuf, i64::from(recvcount), recvtype, comm)
}

works! {
    fn MPI_Neighbor_allgather_c / PMPI_Neighbor_allgather_c(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcount: i64, recvtype: Handle, comm: Handle) on Origin::Communicator(comm) =>
    bodies::neighbor_allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
}

works! {
    fn MPI_Neighbor_allgather_init / PMPI_Neighbor_allgather_init(sendbuf: *const c_void, sendcount: c_int, sendtype: Handle, recvbuf: *mut c_void, recvcount: c_int, recvtype: Handle, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::neighbor_allgather_init(sendbuf, i64::from(sendcount), sendtype, recvbuf, i64::from(recvcount), recvtype, comm, info, request)
}

works! {
    fn MPI_Neighbor_allgather_init_c / PMPI_Neighbor_allgather_init_c(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcount: i64, recvtype: Handle, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::neighbor_allgather_init(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, info, request)
}

works! {
    fn MPI_Neighbor_allgatherv / PMPI_Neighbor_allgatherv(sendbuf: *const c_void, sendcount: c_int, sendtype: Handle, recvbuf: *mut c_void, recvcounts: *const c_int, displs: *const c_int, recvtype: Handle, comm: Handle) on Origin::Communicator(comm) =>
    bodies::neighbor_allgatherv(sendbuf, i64::from(sendcount), sendtype, recvbuf, Counts::short(recvcounts), Counts::short(displs), recvtype, comm)
}

works! {
    fn MPI_Neighbor_allgatherv_c / PMPI_Neighbor_allgatherv_c(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcounts: *const i64, displs: *const i64, recvtype: Handle, comm: Handle) on Origin::Communicator(comm) =>
    bodies::neighbor_allgatherv(sendbuf, sendcount, sendtype, recvbuf, Counts::wide(recvcounts), Counts::wide(displs), recvtype, comm)
}

works! {
    fn MPI_Neighbor_allgatherv_init / PMPI_Neighbor_allgatherv_init(sendbuf: *const c_void, sendcount: c_int, sendtype: Handle, recvbuf: *mut c_void, recvcounts: *const c_int, displs: *const c_int, recvtype: Handle, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::neighbor_allgatherv_init(sendbuf, i64::from(sendcount), sendtype, recvbuf, Counts::short(recvcounts), Counts::short(displs), recvtype, comm, info, request)
}

works! {
    fn MPI_Neighbor_allgatherv_init_c / PMPI_Neighbor_allgatherv_init_c(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcounts: *const i64, displs: *const i64, recvtype: Handle, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::neighbor_allgatherv_init(sendbuf, sendcount, sendtype, recvbuf, Counts::wide(recvcounts), Counts::wide(displs), recvtype, comm, info, request)
}

works! {
    fn MPI_Neighbor_alltoall / PMPI_Neighbor_alltoall(sendbuf: *const c_void, sendcount: c_int, sendtype: Handle, recvbuf: *mut c_void, recvcount: c_int, recvtype: Handle, comm: Handle) on Origin::Communicator(comm) =>
    bodies::neighbor_alltoall(sendbuf, i64::from(sendcount), sendtype, recvbuf, i64::from(recvcount), recvtype, comm)
}

works! {
    fn MPI_Neighbor_alltoall_c / PMPI_Neighbor_alltoall_c(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcount: i64, recvtype: Handle, comm: Handle) on Origin::Communicator(comm) =>
    bodies::neighbor_alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
}

works! {
    fn MPI_Neighbor_alltoall_init / PMPI_Neighbor_alltoall_init(sendbuf: *const c_void, sendcount: c_int, sendtype: Handle, recvbuf: *mut c_void, recvcount: c_int, recvtype: Handle, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::neighbor_alltoall_init(sendbuf, i64::from(sendcount), sendtype, recvbuf, i64::from(recvcount), recvtype, comm, info, request)
}

works! {
    fn MPI_Neighbor_alltoall_init_c / PMPI_Neighbor_alltoall_init_c(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, recvbuf: *mut c_void, recvcount: i64, recvtype: Handle, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::neighbor_alltoall_init(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, info, request)
}

works! {
    fn MPI_Neighbor_alltoallv / PMPI_Neighbor_alltoallv(sendbuf: *const c_void, sendcounts: *const c_int, sdispls: *const c_int, sendtype: Handle, recvbuf: *mut c_void, recvcounts: *const c_int, rdispls: *const c_int, recvtype: Handle, comm: Handle) on Origin::Communicator(comm) =>
    bodies::neighbor_alltoallv(sendbuf, Counts::short(sendcounts), Counts::short(sdispls), sendtype, recvbuf, Counts::short(recvcounts), Counts::short(rdispls), recvtype, comm)
}

works! {
    fn MPI_Neighbor_alltoallv_c / PMPI_Neighbor_alltoallv_c(sendbuf: *const c_void, sendcounts: *const i64, sdispls: *const i64, sendtype: Handle, recvbuf: *mut c_void, recvcounts: *const i64, rdispls: *const i64, recvtype: Handle, comm: Handle) on Origin::Communicator(comm) =>
    bodies::neighbor_alltoallv(sendbuf, Counts::wide(sendcounts), Counts::wide(sdispls), sendtype, recvbuf, Counts::wide(recvcounts), Counts::wide(rdispls), recvtype, comm)
}

works! {
    fn MPI_Neighbor_alltoallv_init / PMPI_Neighbor_alltoallv_init(sendbuf: *const c_void, sendcounts: *const c_int, sdispls: *const c_int, sendtype: Handle, recvbuf: *mut c_void, recvcounts: *const c_int, rdispls: *const c_int, recvtype: Handle, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::neighbor_alltoallv_init(sendbuf, Counts::short(sendcounts), Counts::short(sdispls), sendtype, recvbuf, Counts::short(recvcounts), Counts::short(rdispls), recvtype, comm, info, request)
}

works! {
    fn MPI_Neighbor_alltoallv_init_c / PMPI_Neighbor_alltoallv_init_c(sendbuf: *const c_void, sendcounts: *const i64, sdispls: *const i64, sendtype: Handle, recvbuf: *mut c_void, recvcounts: *const i64, rdispls: *const i64, recvtype: Handle, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::neighbor_alltoallv_init(sendbuf, Counts::wide(sendcounts), Counts::wide(sdispls), sendtype, recvbuf, Counts::wide(recvcounts), Counts::wide(rdispls), recvtype, comm, info, request)
}

works! {
    fn MPI_Neighbor_alltoallw / PMPI_Neighbor_alltoallw(sendbuf: *const c_void, sendcounts: *const c_int, sdispls: *const i64, sendtypes: *const Handle, recvbuf: *mut c_void, recvcounts: *const c_int, rdispls: *const i64, recvtypes: *const Handle, comm: Handle) on Origin::Communicator(comm) =>
    bodies::neighbor_alltoallw(sendbuf, Counts::short(sendcounts), sdispls, sendtypes, recvbuf, Counts::short(recvcounts), rdispls, recvtypes, comm)
}

works! {
    fn MPI_Neighbor_alltoallw_c / PMPI_Neighbor_alltoallw_c(sendbuf: *const c_void, sendcounts: *const i64, sdispls: *const i64, sendtypes: *const Handle, recvbuf: *mut c_void, recvcounts: *const i64, rdispls: *const i64, recvtypes: *const Handle, comm: Handle) on Origin::Communicator(comm) =>
    bodies::neighbor_alltoallw(sendbuf, Counts::wide(sendcounts), sdispls, sendtypes, recvbuf, Counts::wide(recvcounts), rdispls, recvtypes, comm)
}

works! {
    fn MPI_Neighbor_alltoallw_init / PMPI_Neighbor_alltoallw_init(sendbuf: *const c_void, sendcounts: *const c_int, sdispls: *const i64, sendtypes: *const Handle, recvbuf: *mut c_void, recvcounts: *const c_int, rdispls: *const i64, recvtypes: *const Handle, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::neighbor_alltoallw_init(sendbuf, Counts::short(sendcounts), sdispls, sendtypes, recvbuf, Counts::short(recvcounts), rdispls, recvtypes, comm, info, request)
}

works! {
    fn MPI_Neighbor_alltoallw_init_c / PMPI_Neighbor_alltoallw_init_c(sendbuf: *const c_void, sendcounts: *const i64, sdispls: *const i64, sendtypes: *const Handle, recvbuf: *mut c_void, recvcounts: *const i64, rdispls: *const i64, recvtypes: *const Handle, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::neighbor_alltoallw_init(sendbuf, Counts::wide(sendcounts), sdispls, sendtypes, recvbuf, Counts::wide(recvcounts), rdispls, recvtypes, comm, info, request)
}
