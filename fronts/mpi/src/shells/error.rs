//! The shells of the chapter `error`. Made by `cargo xtask mpi`.

use super::*;
use crate::functions::error as bodies;

works! {
    fn MPI_Add_error_class / PMPI_Add_error_class(errorclass: *mut c_int) on Origin::Nothing =>
    bodies::add_error_class(errorclass)
}

works! {
    fn MPI_Add_error_code / PMPI_Add_error_code(errorclass: c_int, errorcode: *mut c_int) on Origin::Nothing =>
    bodies::add_error_code(errorclass, errorcode)
}

works! {
    fn MPI_Add_error_string / PMPI_Add_error_string(errorcode: c_int, string: *const c_char) on Origin::Nothing =>
    bodies::add_error_string(errorcode, string)
}

calls_back! {
    fn MPI_Comm_call_errhandler / PMPI_Comm_call_errhandler(comm: Handle, errorcode: c_int) on Origin::Communicator(comm) =>
    bodies::comm_call_errhandler(comm, errorcode)
}

works! {
    fn MPI_Comm_create_errhandler / PMPI_Comm_create_errhandler(comm_errhandler_fn: Callback, errhandler: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::comm_create_errhandler(comm_errhandler_fn, errhandler) }
}

works! {
    fn MPI_Comm_get_errhandler / PMPI_Comm_get_errhandler(comm: Handle, errhandler: *mut Handle) on Origin::Communicator(comm) =>
    bodies::comm_get_errhandler(comm, errhandler)
}

works! {
    fn MPI_Comm_set_errhandler / PMPI_Comm_set_errhandler(comm: Handle, errhandler: Handle) on Origin::Communicator(comm) =>
    bodies::comm_set_errhandler(comm, errhandler)
}

works! {
    fn MPI_Errhandler_free / PMPI_Errhandler_free(errhandler: *mut Handle) on Origin::Nothing =>
    bodies::errhandler_free(errhandler)
}

works! {
    fn MPI_Error_class / PMPI_Error_class(errorcode: c_int, errorclass: *mut c_int) on Origin::Nothing =>
    bodies::error_class(errorcode, errorclass)
}

works! {
    fn MPI_Error_string / PMPI_Error_string(errorcode: c_int, string: *mut c_char, resultlen: *mut c_int) on Origin::Nothing =>
    bodies::error_string(errorcode, string, resultlen)
}

unsupported! { fn MPI_File_call_errhandler / PMPI_File_call_errhandler(fh: Handle, errorcode: c_int) on Origin::File }

works! {
    fn MPI_File_create_errhandler / PMPI_File_create_errhandler(file_errhandler_fn: Callback, errhandler: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::file_create_errhandler(file_errhandler_fn, errhandler) }
}

unsupported! { fn MPI_File_get_errhandler / PMPI_File_get_errhandler(file: Handle, errhandler: *mut Handle) on Origin::File }

unsupported! { fn MPI_File_set_errhandler / PMPI_File_set_errhandler(file: Handle, errhandler: Handle) on Origin::File }

works! {
    fn MPI_Remove_error_class / PMPI_Remove_error_class(errorclass: c_int) on Origin::Nothing =>
    bodies::remove_error_class(errorclass)
}

works! {
    fn MPI_Remove_error_code / PMPI_Remove_error_code(errorcode: c_int) on Origin::Nothing =>
    bodies::remove_error_code(errorcode)
}

works! {
    fn MPI_Remove_error_string / PMPI_Remove_error_string(errorcode: c_int) on Origin::Nothing =>
    bodies::remove_error_string(errorcode)
}

unsupported! { fn MPI_Win_call_errhandler / PMPI_Win_call_errhandler(win: Handle, errorcode: c_int) on Origin::Nothing }

works! {
    fn MPI_Win_create_errhandler / PMPI_Win_create_errhandler(win_errhandler_fn: Callback, errhandler: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::win_create_errhandler(win_errhandler_fn, errhandler) }
}

unsupported! { fn MPI_Win_get_errhandler / PMPI_Win_get_errhandler(win: Handle, errhandler: *mut Handle) on Origin::Nothing }

unsupported! { fn MPI_Win_set_errhandler / PMPI_Win_set_errhandler(win: Handle, errhandler: Handle) on Origin::Nothing }
