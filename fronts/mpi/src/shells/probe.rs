//! The shells of the chapter `probe`. Made by `cargo xtask mpi`.

use super::*;
use crate::functions::probe as bodies;

works! {
    fn MPI_Improbe / PMPI_Improbe(source: c_int, tag: c_int, comm: Handle, flag: *mut c_int, message: *mut Handle, status: *mut Status) on Origin::Communicator(comm) =>
    bodies::improbe(source, tag, comm, flag, message, status)
}

works! {
    fn MPI_Imrecv / PMPI_Imrecv(buf: *mut c_void, count: c_int, datatype: Handle, message: *mut Handle, request: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::imrecv(buf, i64::from(count), datatype, message, request) }
}

works! {
    fn MPI_Imrecv_c / PMPI_Imrecv_c(buf: *mut c_void, count: i64, datatype: Handle, message: *mut Handle, request: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::imrecv(buf, count, datatype, message, request) }
}

works! {
    fn MPI_Iprobe / PMPI_Iprobe(source: c_int, tag: c_int, comm: Handle, flag: *mut c_int, status: *mut Status) on Origin::Communicator(comm) =>
    bodies::iprobe(source, tag, comm, flag, status)
}

works! {
    fn MPI_Mprobe / PMPI_Mprobe(source: c_int, tag: c_int, comm: Handle, message: *mut Handle, status: *mut Status) on Origin::Communicator(comm) =>
    bodies::mprobe(source, tag, comm, message, status)
}

works! {
    fn MPI_Mrecv / PMPI_Mrecv(buf: *mut c_void, count: c_int, datatype: Handle, message: *mut Handle, status: *mut Status) on Origin::Nothing =>
    { inside()?; bodies::mrecv(buf, i64::from(count), datatype, message, status) }
}

works! {
    fn MPI_Mrecv_c / PMPI_Mrecv_c(buf: *mut c_void, count: i64, datatype: Handle, message: *mut Handle, status: *mut Status) on Origin::Nothing =>
    { inside()?; bodies::mrecv(buf, count, datatype, message, status) }
}

works! {
    fn MPI_Probe / PMPI_Probe(source: c_int, tag: c_int, comm: Handle, status: *mut Status) on Origin::Communicator(comm) =>
    bodies::probe(source, tag, comm, status)
}
