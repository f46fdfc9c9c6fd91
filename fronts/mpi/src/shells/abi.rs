//! The shells of the chapter `abi`. Made by `cargo xtask mpi`.

use super::*;
use crate::functions::abi as bodies;

works! {
    fn MPI_Abi_get_fortran_booleans / PMPI_Abi_get_fortran_booleans(logical_size: c_int, logical_true: *mut c_void, logical_false: *mut c_void, is_set: *mut c_int) on Origin::Nothing =>
    bodies::abi_get_fortran_booleans(logical_size, logical_true, logical_false, is_set)
}

works! {
    fn MPI_Abi_get_fortran_info / PMPI_Abi_get_fortran_info(info: *mut Handle) on Origin::Nothing =>
    bodies::abi_get_fortran_info(info)
}

works! {
    fn MPI_Abi_get_info / PMPI_Abi_get_info(info: *mut Handle) on Origin::Nothing =>
    bodies::abi_get_info(info)
}

works! {
    fn MPI_Abi_get_version / PMPI_Abi_get_version(abi_major: *mut c_int, abi_minor: *mut c_int) on Origin::Nothing =>
    bodies::abi_get_version(abi_major, abi_minor)
}

unsupported! { fn MPI_Abi_set_fortran_booleans / PMPI_Abi_set_fortran_booleans(logical_size: c_int, logical_true: *mut c_void, logical_false: *mut c_void) on Origin::Nothing }

unsupported! { fn MPI_Abi_set_fortran_info / PMPI_Abi_set_fortran_info(info: Handle) on Origin::Nothing }
