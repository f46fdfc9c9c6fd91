//! The shells of the chapter `partitioned`. Made by `cargo xtask mpi`.

use super::*;

unsupported! { fn MPI_Parrived / PMPI_Parrived(request: Handle, partition: c_int, flag: *mut c_int) on Origin::Nothing }

unsupported! { fn MPI_Pready / PMPI_Pready(partition: c_int, request: Handle) on Origin::Nothing }

unsupported! { fn MPI_Pready_list / PMPI_Pready_list(length: c_int, array_of_partitions: *const c_int, request: Handle) on Origin::Nothing }

unsupported! { fn MPI_Pready_range / PMPI_Pready_range(partition_low: c_int, partition_high: c_int, request: Handle) on Origin::Nothing }

unsupported! { fn MPI_Precv_init / PMPI_Precv_init(buf: *mut c_void, partitions: c_int, count: c_int, datatype: Handle, dest: c_int, tag: c_int, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) }

unsupported! { fn MPI_Precv_init_c / PMPI_Precv_init_c(buf: *mut c_void, partitions: c_int, count: i64, datatype: Handle, dest: c_int, tag: c_int, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) }

unsupported! { fn MPI_Psend_init / PMPI_Psend_init(buf: *const c_void, partitions: c_int, count: c_int, datatype: Handle, dest: c_int, tag: c_int, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) }

unsupported! { fn MPI_Psend_init_c / PMPI_Psend_init_c(buf: *const c_void, partitions: c_int, count: i64, datatype: Handle, dest: c_int, tag: c_int, comm: Handle, info: Handle, request: *mut Handle) on Origin::Communicator(comm) }
