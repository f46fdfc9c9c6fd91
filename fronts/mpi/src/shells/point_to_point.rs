//! The shells of the chapter `point_to_point`. Made by `cargo xtask mpi`.

use super::*;
use crate::functions::point_to_point as bodies;

works! {
    fn MPI_Bsend / PMPI_Bsend(buf: *const c_void, count: c_int, datatype: Handle, dest: c_int, tag: c_int, comm: Handle) on Origin::Communicator(comm) =>
    bodies::bsend(buf, i64::from(count), datatype, dest, tag, comm)
}

works! {
    fn MPI_Bsend_c / PMPI_Bsend_c(buf: *const c_void, count: i64, datatype: Handle, dest: c_int, tag: c_int, comm: Handle) on Origin::Communicator(comm) =>
    bodies::bsend(buf, count, datatype, dest, tag, comm)
}

works! {
    fn MPI_Ibsend / PMPI_Ibsend(buf: *const c_void, count: c_int, datatype: Handle, dest: c_int, tag: c_int, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::ibsend(buf, i64::from(count), datatype, dest, tag, comm, request)
}

works! {
    fn MPI_Ibsend_c / PMPI_Ibsend_c(buf: *const c_void, count: i64, datatype: Handle, dest: c_int, tag: c_int, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::ibsend(buf, count, datatype, dest, tag, comm, request)
}

works! {
    fn MPI_Irecv / PMPI_Irecv(buf: *mut c_void, count: c_int, datatype: Handle, source: c_int, tag: c_int, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::irecv(buf, i64::from(count), datatype, source, tag, comm, request)
}

works! {
    fn MPI_Irecv_c / PMPI_Irecv_c(buf: *mut c_void, count: i64, datatype: Handle, source: c_int, tag: c_int, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::irecv(buf, count, datatype, source, tag, comm, request)
}

works! {
    fn MPI_Irsend / PMPI_Irsend(buf: *const c_void, count: c_int, datatype: Handle, dest: c_int, tag: c_int, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::irsend(buf, i64::from(count), datatype, dest, tag, comm, request)
}

works! {
    fn MPI_Irsend_c / PMPI_Irsend_c(buf: *const c_void, count: i64, datatype: Handle, dest: c_int, tag: c_int, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::irsend(buf, count, datatype, dest, tag, comm, request)
}

works! {
    fn MPI_Isend / PMPI_Isend(buf: *const c_void, count: c_int, datatype: Handle, dest: c_int, tag: c_int, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::isend(buf, i64::from(count), datatype, dest, tag, comm, request)
}

works! {
    fn MPI_Isend_c / PMPI_Isend_c(buf: *const c_void, count: i64, datatype: Handle, dest: c_int, tag: c_int, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::isend(buf, count, datatype, dest, tag, comm, request)
}

works! {
    fn MPI_Isendrecv / PMPI_Isendrecv(sendbuf: *const c_void, sendcount: c_int, sendtype: Handle, dest: c_int, sendtag: c_int, recvbuf: *mut c_void, recvcount: c_int, recvtype: Handle, source: c_int, recvtag: c_int, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::isendrecv(sendbuf, i64::from(sendcount), sendtype, dest, sendtag, recvbuf, i64::from(recvcount), recvtype, source, recvtag, comm, request)
}

works! {
    fn MPI_Isendrecv_c / PMPI_Isendrecv_c(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, dest: c_int, sendtag: c_int, recvbuf: *mut c_void, recvcount: i64, recvtype: Handle, source: c_int, recvtag: c_int, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::isendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm, request)
}

works! {
    fn MPI_Isendrecv_replace / PMPI_Isendrecv_replace(buf: *mut c_void, count: c_int, datatype: Handle, dest: c_int, sendtag: c_int, source: c_int, recvtag: c_int, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::isendrecv_replace(buf, i64::from(count), datatype, dest, sendtag, source, recvtag, comm, request)
}

works! {
    fn MPI_Isendrecv_replace_c / PMPI_Isendrecv_replace_c(buf: *mut c_void, count: i64, datatype: Handle, dest: c_int, sendtag: c_int, source: c_int, recvtag: c_int, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::isendrecv_replace(buf, count, datatype, dest, sendtag, source, recvtag, comm, request)
}

works! {
    fn MPI_Issend / PMPI_Issend(buf: *const c_void, count: c_int, datatype: Handle, dest: c_int, tag: c_int, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::issend(buf, i64::from(count), datatype, dest, tag, comm, request)
}

works! {
    fn MPI_Issend_c / PMPI_Issend_c(buf: *const c_void, count: i64, datatype: Handle, dest: c_int, tag: c_int, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::issend(buf, count, datatype, dest, tag, comm, request)
}

works! {
    fn MPI_Recv / PMPI_Recv(buf: *mut c_void, count: c_int, datatype: Handle, source: c_int, tag: c_int, comm: Handle, status: *mut Status) on Origin::Communicator(comm) =>
    bodies::recv(buf, i64::from(count), datatype, source, tag, comm, status)
}

works! {
    fn MPI_Recv_c / PMPI_Recv_c(buf: *mut c_void, count: i64, datatype: Handle, source: c_int, tag: c_int, comm: Handle, status: *mut Status) on Origin::Communicator(comm) =>
    bodies::recv(buf, count, datatype, source, tag, comm, status)
}

works! {
    fn MPI_Rsend / PMPI_Rsend(buf: *const c_void, count: c_int, datatype: Handle, dest: c_int, tag: c_int, comm: Handle) on Origin::Communicator(comm) =>
    bodies::rsend(buf, i64::from(count), datatype, dest, tag, comm)
}

works! {
    fn MPI_Rsend_c / PMPI_Rsend_c(buf: *const c_void, count: i64, datatype: Handle, dest: c_int, tag: c_int, comm: Handle) on Origin::Communicator(comm) =>
    bodies::rsend(buf, count, datatype, dest, tag, comm)
}

works! {
    fn MPI_Send / PMPI_Send(buf: *const c_void, count: c_int, datatype: Handle, dest: c_int, tag: c_int, comm: Handle) on Origin::Communicator(comm) =>
    bodies::send(buf, i64::from(count), datatype, dest, tag, comm)
}

works! {
    fn MPI_Send_c / PMPI_Send_c(buf: *const c_void, count: i64, datatype: Handle, dest: c_int, tag: c_int, comm: Handle) on Origin::Communicator(comm) =>
    bodies::send(buf, count, datatype, dest, tag, comm)
}

works! {
    fn MPI_Sendrecv / PMPI_Sendrecv(sendbuf: *const c_void, sendcount: c_int, sendtype: Handle, dest: c_int, sendtag: c_int, recvbuf: *mut c_void, recvcount: c_int, recvtype: Handle, source: c_int, recvtag: c_int, comm: Handle, status: *mut Status) on Origin::Communicator(comm) =>
    bodies::sendrecv(sendbuf, i64::from(sendcount), sendtype, dest, sendtag, recvbuf, i64::from(recvcount), recvtype, source, recvtag, comm, status)
}

works! {
    fn MPI_Sendrecv_c / PMPI_Sendrecv_c(sendbuf: *const c_void, sendcount: i64, sendtype: Handle, dest: c_int, sendtag: c_int, recvbuf: *mut c_void, recvcount: i64, recvtype: Handle, source: c_int, recvtag: c_int, comm: Handle, status: *mut Status) on Origin::Communicator(comm) =>
    bodies::sendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm, status)
}

works! {
    fn MPI_Sendrecv_replace / PMPI_Sendrecv_replace(buf: *mut c_void, count: c_int, datatype: Handle, dest: c_int, sendtag: c_int, source: c_int, recvtag: c_int, comm: Handle, status: *mut Status) on Origin::Communicator(comm) =>
    bodies::sendrecv_replace(buf, i64::from(count), datatype, dest, sendtag, source, recvtag, comm, status)
}

works! {
    fn MPI_Sendrecv_replace_c / PMPI_Sendrecv_replace_c(buf: *mut c_void, count: i64, datatype: Handle, dest: c_int, sendtag: c_int, source: c_int, recvtag: c_int, comm: Handle, status: *mut Status) on Origin::Communicator(comm) =>
    bodies::sendrecv_replace(buf, count, datatype, dest, sendtag, source, recvtag, comm, status)
}

works! {
    fn MPI_Ssend / PMPI_Ssend(buf: *const c_void, count: c_int, datatype: Handle, dest: c_int, tag: c_int, comm: Handle) on Origin::Communicator(comm) =>
    bodies::ssend(buf, i64::from(count), datatype, dest, tag, comm)
}

works! {
    fn MPI_Ssend_c / PMPI_Ssend_c(buf: *const c_void, count: i64, datatype: Handle, dest: c_int, tag: c_int, comm: Handle) on Origin::Communicator(comm) =>
    bodies::ssend(buf, count, datatype, dest, tag, comm)
}
