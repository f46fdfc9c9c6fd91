//! The shells of the chapter `buffer`. Made by `cargo xtask mpi`.

use super::*;

unsupported! { fn MPI_Buffer_attach / PMPI_Buffer_attach(buffer: *mut c_void, size: c_int) on Origin::Nothing }

unsupported! { fn MPI_Buffer_attach_c / PMPI_Buffer_attach_c(buffer: *mut c_void, size: i64) on Origin::Nothing }

unsupported! { fn MPI_Buffer_detach / PMPI_Buffer_detach(buffer_addr: *mut c_void, size: *mut c_int) on Origin::Nothing }

unsupported! { fn MPI_Buffer_detach_c / PMPI_Buffer_detach_c(buffer_addr: *mut c_void, size: *mut i64) on Origin::Nothing }

unsupported! { fn MPI_Buffer_flush / PMPI_Buffer_flush() on Origin::Nothing }

unsupported! { fn MPI_Buffer_iflush / PMPI_Buffer_iflush(request: *mut Handle) on Origin::Nothing }

unsupported! { fn MPI_Comm_attach_buffer / PMPI_Comm_attach_buffer(comm: Handle, buffer: *mut c_void, size: c_int) on Origin::Communicator(comm) }

unsupported! { fn MPI_Comm_attach_buffer_c / PMPI_Comm_attach_buffer_c(comm: Handle, buffer: *mut c_void, size: i64) on Origin::Communicator(comm) }

unsupported! { fn MPI_Comm_detach_buffer / PMPI_Comm_detach_buffer(comm: Handle, buffer_addr: *mut c_void, size: *mut c_int) on Origin::Communicator(comm) }

unsupported! { fn MPI_Comm_detach_buffer_c / PMPI_Comm_detach_buffer_c(comm: Handle, buffer_addr: *mut c_void, size: *mut i64) on Origin::Communicator(comm) }

unsupported! { fn MPI_Comm_flush_buffer / PMPI_Comm_flush_buffer(comm: Handle) on Origin::Communicator(comm) }

unsupported! { fn MPI_Comm_iflush_buffer / PMPI_Comm_iflush_buffer(comm: Handle, request: *mut Handle) on Origin::Communicator(comm) }
