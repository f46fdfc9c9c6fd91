//! The shells of the chapter `buffer`. Made by `cargo xtask mpi`.

use super::*;
use crate::functions::buffer as bodies;

works! {
    fn MPI_Buffer_attach / PMPI_Buffer_attach(buffer: *mut c_void, size: c_int) on Origin::Nothing =>
    { inside()?; bodies::buffer_attach(buffer, i64::from(size)) }
}

works! {
    fn MPI_Buffer_attach_c / PMPI_Buffer_attach_c(buffer: *mut c_void, size: i64) on Origin::Nothing =>
    { inside()?; bodies::buffer_attach(buffer, size) }
}

works! {
    fn MPI_Buffer_detach / PMPI_Buffer_detach(buffer_addr: *mut c_void, size: *mut c_int) on Origin::Nothing =>
    { inside()?; bodies::buffer_detach(buffer_addr, CountPlace::short(size)) }
}

works! {
    fn MPI_Buffer_detach_c / PMPI_Buffer_detach_c(buffer_addr: *mut c_void, size: *mut i64) on Origin::Nothing =>
    { inside()?; bodies::buffer_detach(buffer_addr, CountPlace::wide(size)) }
}

works! {
    fn MPI_Buffer_flush / PMPI_Buffer_flush() on Origin::Nothing =>
    { inside()?; bodies::buffer_flush() }
}

works! {
    fn MPI_Buffer_iflush / PMPI_Buffer_iflush(request: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::buffer_iflush(request) }
}

works! {
    fn MPI_Comm_attach_buffer / PMPI_Comm_attach_buffer(comm: Handle, buffer: *mut c_void, size: c_int) on Origin::Communicator(comm) =>
    bodies::comm_attach_buffer(comm, buffer, i64::from(size))
}

works! {
    fn MPI_Comm_attach_buffer_c / PMPI_Comm_attach_buffer_c(comm: Handle, buffer: *mut c_void, size: i64) on Origin::Communicator(comm) =>
    bodies::comm_attach_buffer(comm, buffer, size)
}

works! {
    fn MPI_Comm_detach_buffer / PMPI_Comm_detach_buffer(comm: Handle, buffer_addr: *mut c_void, size: *mut c_int) on Origin::Communicator(comm) =>
    bodies::comm_detach_buffer(comm, buffer_addr, CountPlace::short(size))
}

works! {
    fn MPI_Comm_detach_buffer_c / PMPI_Comm_detach_buffer_c(comm: Handle, buffer_addr: *mut c_void, size: *mut i64) on Origin::Communicator(comm) =>
    bodies::comm_detach_buffer(comm, buffer_addr, CountPlace::wide(size))
}

works! {
    fn MPI_Comm_flush_buffer / PMPI_Comm_flush_buffer(comm: Handle) on Origin::Communicator(comm) =>
    bodies::comm_flush_buffer(comm)
}

works! {
    fn MPI_Comm_iflush_buffer / PMPI_Comm_iflush_buffer(comm: Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::comm_iflush_buffer(comm, request)
}

works! {
    fn MPI_Session_attach_buffer / PMPI_Session_attach_buffer(session: Handle, buffer: *mut c_void, size: c_int) on Origin::Session(session) =>
    bodies::session_attach_buffer(session, buffer, i64::from(size))
}

works! {
    fn MPI_Session_attach_buffer_c / PMPI_Session_attach_buffer_c(session: Handle, buffer: *mut c_void, size: i64) on Origin::Session(session) =>
    bodies::session_attach_buffer(session, buffer, size)
}

works! {
    fn MPI_Session_detach_buffer / PMPI_Session_detach_buffer(session: Handle, buffer_addr: *mut c_void, size: *mut c_int) on Origin::Session(session) =>
    bodies::session_detach_buffer(session, buffer_addr, CountPlace::short(size))
}

works! {
    fn MPI_Session_detach_buffer_c / PMPI_Session_detach_buffer_c(session: Handle, buffer_addr: *mut c_void, size: *mut i64) on Origin::Session(session) =>
    bodies::session_detach_buffer(session, buffer_addr, CountPlace::wide(size))
}

works! {
    fn MPI_Session_flush_buffer / PMPI_Session_flush_buffer(session: Handle) on Origin::Session(session) =>
    bodies::session_flush_buffer(session)
}

works! {
    fn MPI_Session_iflush_buffer / PMPI_Session_iflush_buffer(session: Handle, request: *mut Handle) on Origin::Session(session) =>
    bodies::session_iflush_buffer(session, request)
}
