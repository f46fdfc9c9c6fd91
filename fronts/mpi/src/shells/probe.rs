//! The shells of the chapter `probe`. Made by `cargo xtask mpi`.

use super::*;

unsupported! { fn MPI_Improbe / PMPI_Improbe(source: c_int, tag: c_int, comm: Handle, flag: *mut c_int, message: *mut Handle, status: *mut Status) on Origin::Communicator(comm) }

unsupported! { fn MPI_Imrecv / PMPI_Imrecv(buf: *mut c_void, count: c_int, datatype: Handle, message: *mut Handle, request: *mut Handle) on Origin::Nothing }

unsupported! { fn MPI_Imrecv_c / PMPI_Imrecv_c(buf: *mut c_void, count: i64, datatype: Handle, message: *mut Handle, request: *mut Handle) on Origin::Nothing }

unsupported! { fn MPI_Iprobe / PMPI_Iprobe(source: c_int, tag: c_int, comm: Handle, flag: *mut c_int, status: *mut Status) on Origin::Communicator(comm) }

unsupported! { fn MPI_Mprobe / PMPI_Mprobe(source: c_int, tag: c_int, comm: Handle, message: *mut Handle, status: *mut Status) on Origin::Communicator(comm) }

unsupported! { fn MPI_Mrecv / PMPI_Mrecv(buf: *mut c_void, count: c_int, datatype: Handle, message: *mut Handle, status: *mut Status) on Origin::Nothing }

unsupported! { fn MPI_Mrecv_c / PMPI_Mrecv_c(buf: *mut c_void, count: i64, datatype: Handle, message: *mut Handle, status: *mut Status) on Origin::Nothing }

unsupported! { fn MPI_Probe / PMPI_Probe(source: c_int, tag: c_int, comm: Handle, status: *mut Status) on Origin::Communicator(comm) }
