//! The shells of the chapter `info`. Made by `cargo xtask mpi`.

use super::*;
use crate::functions::info as bodies;

works! {
    fn MPI_Info_create / PMPI_Info_create(info: *mut Handle) on Origin::Nothing =>
    bodies::info_create(info)
}

works! {
    fn MPI_Info_create_env / PMPI_Info_create_env(argc: c_int, argv: *mut *mut c_char, info: *mut Handle) on Origin::Nothing =>
    bodies::info_create_env(argc, argv, info)
}

works! {
    fn MPI_Info_delete / PMPI_Info_delete(info: Handle, key: *const c_char) on Origin::Nothing =>
    bodies::info_delete(info, key)
}

works! {
    fn MPI_Info_dup / PMPI_Info_dup(info: Handle, newinfo: *mut Handle) on Origin::Nothing =>
    bodies::info_dup(info, newinfo)
}

works! {
    fn MPI_Info_free / PMPI_Info_free(info: *mut Handle) on Origin::Nothing =>
    bodies::info_free(info)
}

works! {
    fn MPI_Info_get / PMPI_Info_get(info: Handle, key: *const c_char, valuelen: c_int, value: *mut c_char, flag: *mut c_int) on Origin::Nothing =>
    bodies::info_get(info, key, valuelen, value, flag)
}

works! {
    fn MPI_Info_get_nkeys / PMPI_Info_get_nkeys(info: Handle, nkeys: *mut c_int) on Origin::Nothing =>
    bodies::info_get_nkeys(info, nkeys)
}

works! {
    fn MPI_Info_get_nthkey / PMPI_Info_get_nthkey(info: Handle, n: c_int, key: *mut c_char) on Origin::Nothing =>
    bodies::info_get_nthkey(info, n, key)
}

works! {
    fn MPI_Info_get_string / PMPI_Info_get_string(info: Handle, key: *const c_char, buflen: *mut c_int, value: *mut c_char, flag: *mut c_int) on Origin::Nothing =>
    bodies::info_get_string(info, key, buflen, value, flag)
}

works! {
    fn MPI_Info_get_valuelen / PMPI_Info_get_valuelen(info: Handle, key: *const c_char, valuelen: *mut c_int, flag: *mut c_int) on Origin::Nothing =>
    bodies::info_get_valuelen(info, key, valuelen, flag)
}

works! {
    fn MPI_Info_set / PMPI_Info_set(info: Handle, key: *const c_char, value: *const c_char) on Origin::Nothing =>
    bodies::info_set(info, key, value)
}
