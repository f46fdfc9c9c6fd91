//! The shells of the chapter `persistent`. Made by `cargo xtask mpi`.

use super::*;
use crate::functions::persistent as bodies;

works! {
    fn MPI_Bsend_init / PMPI_Bsend_init(buf: *const c_void, count: c_int, datatype: Handle, dest: c_int, tag: c_int, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::bsend_init(buf, i64::from(count), datatype, dest, tag, comm, request)
}

works! {
    fn MPI_Bsend_init_c / PMPI_Bsend_init_c(buf: *const c_void, count: i64, datatype: Handle, dest: c_int, tag: c_int, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::bsend_init(buf, count, datatype, dest, tag, comm, request)
}

works! {
    fn MPI_Recv_init / PMPI_Recv_init(buf: *mut c_void, count: c_int, datatype: Handle, source: c_int, tag: c_int, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::recv_init(buf, i64::from(count), datatype, source, tag, comm, request)
}

works! {
    fn MPI_Recv_init_c / PMPI_Recv_init_c(buf: *mut c_void, count: i64, datatype: Handle, source: c_int, tag: c_int, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::recv_init(buf, count, datatype, source, tag, comm, request)
}

works! {
    fn MPI_Rsend_init / PMPI_Rsend_init(buf: *const c_void, count: c_int, datatype: Handle, dest: c_int, tag: c_int, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::rsend_init(buf, i64::from(count), datatype, dest, tag, comm, request)
}

works! {
    fn MPI_Rsend_init_c / PMPI_Rsend_init_c(buf: *const c_void, count: i64, datatype: Handle, dest: c_int, tag: c_int, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::rsend_init(buf, count, datatype, dest, tag, comm, request)
}

works! {
    fn MPI_Send_init / PMPI_Send_init(buf: *const c_void, count: c_int, datatype: Handle, dest: c_int, tag: c_int, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::send_init(buf, i64::from(count), datatype, dest, tag, comm, request)
}

works! {
    fn MPI_Send_init_c / PMPI_Send_init_c(buf: *const c_void, count: i64, datatype: Handle, dest: c_int, tag: c_int, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::send_init(buf, count, datatype, dest, tag, comm, request)
}

works! {
    fn MPI_Ssend_init / PMPI_Ssend_init(buf: *const c_void, count: c_int, datatype: Handle, dest: c_int, tag: c_int, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::ssend_init(buf, i64::from(count), datatype, dest, tag, comm, request)
}

works! {
    fn MPI_Ssend_init_c / PMPI_Ssend_init_c(buf: *const c_void, count: i64, datatype: Handle, dest: c_int, tag: c_int, comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::ssend_init(buf, count, datatype, dest, tag, comm, request)
}

works! {
    fn MPI_Start / PMPI_Start(request: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::start(request) }
}

works! {
    fn MPI_Startall / PMPI_Startall(count: c_int, array_of_requests: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::startall(count, array_of_requests) }
}
