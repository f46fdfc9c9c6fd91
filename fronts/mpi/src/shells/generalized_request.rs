//! The shells of the chapter `generalized_request`. Made by `cargo xtask mpi`.

use super::*;

unsupported! { fn MPI_Grequest_complete / PMPI_Grequest_complete(request: Handle) on Origin::Nothing }

unsupported! { fn MPI_Grequest_start / PMPI_Grequest_start(query_fn: Callback, free_fn: Callback, cancel_fn: Callback, extra_state: *mut c_void, request: *mut Handle) on Origin::Nothing }
