//! The shells of the chapter `status`. Made by `cargo xtask mpi`.

use super::*;
use crate::functions::status as bodies;

works! {
    fn MPI_Get_count / PMPI_Get_count(status: *const Status, datatype: Handle, count: *mut c_int) on Origin::Nothing =>
    { inside()?; bodies::get_count(status, datatype, CountPlace::short(count)) }
}

works! {
    fn MPI_Get_count_c / PMPI_Get_count_c(status: *const Status, datatype: Handle, count: *mut i64) on Origin::Nothing =>
    { inside()?; bodies::get_count(status, datatype, CountPlace::wide(count)) }
}

works! {
    fn MPI_Get_elements / PMPI_Get_elements(status: *const Status, datatype: Handle, count: *mut c_int) on Origin::Nothing =>
    { inside()?; bodies::get_elements(status, datatype, CountPlace::short(count)) }
}

works! {
    fn MPI_Get_elements_c / PMPI_Get_elements_c(status: *const Status, datatype: Handle, count: *mut i64) on Origin::Nothing =>
    { inside()?; bodies::get_elements(status, datatype, CountPlace::wide(count)) }
}

works! {
    fn MPI_Get_elements_x / PMPI_Get_elements_x(status: *const Status, datatype: Handle, count: *mut i64) on Origin::Nothing =>
    { inside()?; bodies::get_elements_x(status, datatype, count) }
}

works! {
    fn MPI_Status_get_error / PMPI_Status_get_error(status: *const Status, error: *mut c_int) on Origin::Nothing =>
    { inside()?; bodies::status_get_error(status, error) }
}

works! {
    fn MPI_Status_get_source / PMPI_Status_get_source(status: *const Status, source: *mut c_int) on Origin::Nothing =>
    { inside()?; bodies::status_get_source(status, source) }
}

works! {
    fn MPI_Status_get_tag / PMPI_Status_get_tag(status: *const Status, tag: *mut c_int) on Origin::Nothing =>
    { inside()?; bodies::status_get_tag(status, tag) }
}

works! {
    fn MPI_Status_set_cancelled / PMPI_Status_set_cancelled(status: *mut Status, flag: c_int) on Origin::Nothing =>
    { inside()?; bodies::status_set_cancelled(status, flag) }
}

works! {
    fn MPI_Status_set_elements / PMPI_Status_set_elements(status: *mut Status, datatype: Handle, count: c_int) on Origin::Nothing =>
    { inside()?; bodies::status_set_elements(status, datatype, i64::from(count)) }
}

works! {
    fn MPI_Status_set_elements_c / PMPI_Status_set_elements_c(status: *mut Status, datatype: Handle, count: i64) on Origin::Nothing =>
    { inside()?; bodies::status_set_elements(status, datatype, count) }
}

works! {
    fn MPI_Status_set_elements_x / PMPI_Status_set_elements_x(status: *mut Status, datatype: Handle, count: i64) on Origin::Nothing =>
    { inside()?; bodies::status_set_elements_x(status, datatype, count) }
}

works! {
    fn MPI_Status_set_error / PMPI_Status_set_error(status: *mut Status, error: c_int) on Origin::Nothing =>
    { inside()?; bodies::status_set_error(status, error) }
}

works! {
    fn MPI_Status_set_source / PMPI_Status_set_source(status: *mut Status, source: c_int) on Origin::Nothing =>
    { inside()?; bodies::status_set_source(status, source) }
}

works! {
    fn MPI_Status_set_tag / PMPI_Status_set_tag(status: *mut Status, tag: c_int) on Origin::Nothing =>
    { inside()?; bodies::status_set_tag(status, tag) }
}

works! {
    fn MPI_Test_cancelled / PMPI_Test_cancelled(status: *const Status, flag: *mut c_int) on Origin::Nothing =>
    { inside()?; bodies::test_cancelled(status, flag) }
}
