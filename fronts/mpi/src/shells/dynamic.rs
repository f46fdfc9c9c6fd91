//! The shells of the chapter `dynamic`. Made by `cargo xtask mpi`.

use super::*;

unsupported! { fn MPI_Close_port / PMPI_Close_port(port_name: *const c_char) on Origin::Nothing }

unsupported! { fn MPI_Comm_accept / PMPI_Comm_accept(port_name: *const c_char, info: Handle, root: c_int, comm: Handle, newcomm: *mut Handle) on Origin::Communicator(comm) }

unsupported! { fn MPI_Comm_connect / PMPI_Comm_connect(port_name: *const c_char, info: Handle, root: c_int, comm: Handle, newcomm: *mut Handle) on Origin::Communicator(comm) }

unsupported! { fn MPI_Comm_join / PMPI_Comm_join(fd: c_int, intercomm: *mut Handle) on Origin::Nothing }

unsupported! { fn MPI_Comm_spawn / PMPI_Comm_spawn(command: *const c_char, argv: *mut *mut c_char, maxprocs: c_int, info: Handle, root: c_int, comm: Handle, intercomm: *mut Handle, array_of_errcodes: *mut c_int) on Origin::Communicator(comm) }

unsupported! { fn MPI_Comm_spawn_multiple / PMPI_Comm_spawn_multiple(count: c_int, array_of_commands: *mut *mut c_char, array_of_argv: *mut *mut *mut c_char, array_of_maxprocs: *const c_int, array_of_info: *const Handle, root: c_int, comm: Handle, intercomm: *mut Handle, array_of_errcodes: *mut c_int) on Origin::Communicator(comm) }

unsupported! { fn MPI_Lookup_name / PMPI_Lookup_name(service_name: *const c_char, info: Handle, port_name: *mut c_char) on Origin::Nothing }

unsupported! { fn MPI_Open_port / PMPI_Open_port(info: Handle, port_name: *mut c_char) on Origin::Nothing }

unsupported! { fn MPI_Publish_name / PMPI_Publish_name(service_name: *const c_char, info: Handle, port_name: *const c_char) on Origin::Nothing }

unsupported! { fn MPI_Unpublish_name / PMPI_Unpublish_name(service_name: *const c_char, info: Handle, port_name: *const c_char) on Origin::Nothing }
