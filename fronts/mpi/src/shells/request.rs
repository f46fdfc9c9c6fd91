//! The shells of the chapter `request`. Made by `cargo xtask mpi`.

use super::*;
use crate::functions::request as bodies;

calls_back! {
    fn MPI_Cancel / PMPI_Cancel(request: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::cancel(request) }
}

calls_back! {
    fn MPI_Request_free / PMPI_Request_free(request: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::request_free(request) }
}

calls_back! {
    fn MPI_Request_get_status / PMPI_Request_get_status(request: Handle, flag: *mut c_int, status: *mut Status) on Origin::Nothing =>
    { inside()?; bodies::request_get_status(request, flag, status) }
}

calls_back! {
    fn MPI_Request_get_status_all / PMPI_Request_get_status_all(count: c_int, array_of_requests: *const Handle, flag: *mut c_int, array_of_statuses: *mut Status) on Origin::Nothing =>
    { inside()?; bodies::request_get_status_all(count, array_of_requests, flag, array_of_statuses) }
}

calls_back! {
    fn MPI_Request_get_status_any / PMPI_Request_get_status_any(count: c_int, array_of_requests: *const Handle, indx: *mut c_int, flag: *mut c_int, status: *mut Status) on Origin::Nothing =>
    { inside()?; bodies::request_get_status_any(count, array_of_requests, indx, flag, status) }
}

calls_back! {
    fn MPI_Request_get_status_some / PMPI_Request_get_status_some(incount: c_int, array_of_requests: *const Handle, outcount: *mut c_int, array_of_indices: *mut c_int, array_of_statuses: *mut Status) on Origin::Nothing =>
    { inside()?; bodies::request_get_status_some(incount, array_of_requests, outcount, array_of_indices, array_of_statuses) }
}

calls_back! {
    fn MPI_Test / PMPI_Test(request: *mut Handle, flag: *mut c_int, status: *mut Status) on Origin::Nothing =>
    { inside()?; bodies::test(request, flag, status) }
}

calls_back! {
    fn MPI_Testall / PMPI_Testall(count: c_int, array_of_requests: *mut Handle, flag: *mut c_int, array_of_statuses: *mut Status) on Origin::Nothing =>
    { inside()?; bodies::testall(count, array_of_requests, flag, array_of_statuses) }
}

calls_back! {
    fn MPI_Testany / PMPI_Testany(count: c_int, array_of_requests: *mut Handle, indx: *mut c_int, flag: *mut c_int, status: *mut Status) on Origin::Nothing =>
    { inside()?; bodies::testany(count, array_of_requests, indx, flag, status) }
}

calls_back! {
    fn MPI_Testsome / PMPI_Testsome(incount: c_int, array_of_requests: *mut Handle, outcount: *mut c_int, array_of_indices: *mut c_int, array_of_statuses: *mut Status) on Origin::Nothing =>
    { inside()?; bodies::testsome(incount, array_of_requests, outcount, array_of_indices, array_of_statuses) }
}

calls_back! {
    fn MPI_Wait / PMPI_Wait(request: *mut Handle, status: *mut Status) on Origin::Nothing =>
    { inside()?; bodies::wait(request, status) }
}

calls_back! {
    fn MPI_Waitall / PMPI_Waitall(count: c_int, array_of_requests: *mut Handle, array_of_statuses: *mut Status) on Origin::Nothing =>
    { inside()?; bodies::waitall(count, array_of_requests, array_of_statuses) }
}

calls_back! {
    fn MPI_Waitany / PMPI_Waitany(count: c_int, array_of_requests: *mut Handle, indx: *mut c_int, status: *mut Status) on Origin::Nothing =>
    { inside()?; bodies::waitany(count, array_of_requests, indx, status) }
}

calls_back! {
    fn MPI_Waitsome / PMPI_Waitsome(incount: c_int, array_of_requests: *mut Handle, outcount: *mut c_int, array_of_indices: *mut c_int, array_of_statuses: *mut Status) on Origin::Nothing =>
    { inside()?; bodies::waitsome(incount, array_of_requests, outcount, array_of_indices, array_of_statuses) }
}
