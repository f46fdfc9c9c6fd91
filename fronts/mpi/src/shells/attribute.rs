//! The shells of the chapter `attribute`. Made by `cargo xtask mpi`.

use super::*;
use crate::functions::attribute as bodies;

calls_back! {
    fn MPI_Attr_delete / PMPI_Attr_delete(comm: Handle, keyval: c_int) on Origin::Communicator(comm) =>
    bodies::attr_delete(comm, keyval)
}

works! {
    fn MPI_Attr_get / PMPI_Attr_get(comm: Handle, keyval: c_int, attribute_val: *mut c_void, flag: *mut c_int) on Origin::Communicator(comm) =>
    bodies::attr_get(comm, keyval, attribute_val, flag)
}

calls_back! {
    fn MPI_Attr_put / PMPI_Attr_put(comm: Handle, keyval: c_int, attribute_val: *mut c_void) on Origin::Communicator(comm) =>
    bodies::attr_put(comm, keyval, attribute_val)
}

works! {
    fn MPI_Comm_create_keyval / PMPI_Comm_create_keyval(comm_copy_attr_fn: Callback, comm_delete_attr_fn: Callback, comm_keyval: *mut c_int, extra_state: *mut c_void) on Origin::Nothing =>
    { inside()?; bodies::comm_create_keyval(comm_copy_attr_fn, comm_delete_attr_fn, comm_keyval, extra_state) }
}

calls_back! {
    fn MPI_Comm_delete_attr / PMPI_Comm_delete_attr(comm: Handle, comm_keyval: c_int) on Origin::Communicator(comm) =>
    bodies::comm_delete_attr(comm, comm_keyval)
}

works! {
    fn MPI_Comm_free_keyval / PMPI_Comm_free_keyval(comm_keyval: *mut c_int) on Origin::Nothing =>
    { inside()?; bodies::comm_free_keyval(comm_keyval) }
}

works! {
    fn MPI_Comm_get_attr / PMPI_Comm_get_attr(comm: Handle, comm_keyval: c_int, attribute_val: *mut c_void, flag: *mut c_int) on Origin::Communicator(comm) =>
    bodies::comm_get_attr(comm, comm_keyval, attribute_val, flag)
}

calls_back! {
    fn MPI_Comm_set_attr / PMPI_Comm_set_attr(comm: Handle, comm_keyval: c_int, attribute_val: *mut c_void) on Origin::Communicator(comm) =>
    bodies::comm_set_attr(comm, comm_keyval, attribute_val)
}

works! {
    fn MPI_Keyval_create / PMPI_Keyval_create(copy_fn: Callback, delete_fn: Callback, keyval: *mut c_int, extra_state: *mut c_void) on Origin::Nothing =>
    { inside()?; bodies::keyval_create(copy_fn, delete_fn, keyval, extra_state) }
}

works! {
    fn MPI_Keyval_free / PMPI_Keyval_free(keyval: *mut c_int) on Origin::Nothing =>
    { inside()?; bodies::keyval_free(keyval) }
}

works! {
    fn MPI_Type_create_keyval / PMPI_Type_create_keyval(type_copy_attr_fn: Callback, type_delete_attr_fn: Callback, type_keyval: *mut c_int, extra_state: *mut c_void) on Origin::Nothing =>
    { inside()?; bodies::type_create_keyval(type_copy_attr_fn, type_delete_attr_fn, type_keyval, extra_state) }
}

calls_back! {
    fn MPI_Type_delete_attr / PMPI_Type_delete_attr(datatype: Handle, type_keyval: c_int) on Origin::Nothing =>
    { inside()?; bodies::type_delete_attr(datatype, type_keyval) }
}

works! {
    fn MPI_Type_free_keyval / PMPI_Type_free_keyval(type_keyval: *mut c_int) on Origin::Nothing =>
    { inside()?; bodies::type_free_keyval(type_keyval) }
}

works! {
    fn MPI_Type_get_attr / PMPI_Type_get_attr(datatype: Handle, type_keyval: c_int, attribute_val: *mut c_void, flag: *mut c_int) on Origin::Nothing =>
    { inside()?; bodies::type_get_attr(datatype, type_keyval, attribute_val, flag) }
}

calls_back! {
    fn MPI_Type_set_attr / PMPI_Type_set_attr(datatype: Handle, type_keyval: c_int, attribute_val: *mut c_void) on Origin::Nothing =>
    { inside()?; bodies::type_set_attr(datatype, type_keyval, attribute_val) }
}

works! {
    fn MPI_Win_create_keyval / PMPI_Win_create_keyval(win_copy_attr_fn: Callback, win_delete_attr_fn: Callback, win_keyval: *mut c_int, extra_state: *mut c_void) on Origin::Nothing =>
    { inside()?; bodies::win_create_keyval(win_copy_attr_fn, win_delete_attr_fn, win_keyval, extra_state) }
}

works! {
    fn MPI_Win_delete_attr / PMPI_Win_delete_attr(win: Handle, win_keyval: c_int) on Origin::Nothing =>
    { inside()?; bodies::win_delete_attr(win, win_keyval) }
}

works! {
    fn MPI_Win_free_keyval / PMPI_Win_free_keyval(win_keyval: *mut c_int) on Origin::Nothing =>
    { inside()?; bodies::win_free_keyval(win_keyval) }
}

works! {
    fn MPI_Win_get_attr / PMPI_Win_get_attr(win: Handle, win_keyval: c_int, attribute_val: *mut c_void, flag: *mut c_int) on Origin::Nothing =>
    { inside()?; bodies::win_get_attr(win, win_keyval, attribute_val, flag) }
}

works! {
    fn MPI_Win_set_attr / PMPI_Win_set_attr(win: Handle, win_keyval: c_int, attribute_val: *mut c_void) on Origin::Nothing =>
    { inside()?; bodies::win_set_attr(win, win_keyval, attribute_val) }
}
