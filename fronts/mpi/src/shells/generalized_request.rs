//! The shells of the chapter `generalized_request`. Made by `cargo xtask mpi`.

use super::*;
use crate::functions::generalized_request as bodies;

calls_back! {
    fn MPI_Grequest_complete / PMPI_Grequest_complete(request: Handle) on Origin::Nothing =>
    { inside()?; bodies::grequest_complete(request) }
}

works! {
    fn MPI_Grequest_start / PMPI_Grequest_start(query_fn: Callback, free_fn: Callback, cancel_fn: Callback, extra_state: *mut c_void, request: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::grequest_start(query_fn, free_fn, cancel_fn, extra_state, request) }
}
