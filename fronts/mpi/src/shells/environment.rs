//! The shells of the chapter `environment`. Made by `cargo xtask mpi`.

use super::*;
use crate::functions::environment as bodies;

works! {
    fn MPI_Abort / PMPI_Abort(comm: Handle, errorcode: c_int) on Origin::Communicator(comm) =>
    bodies::abort(comm, errorcode)
}

works! {
    fn MPI_Alloc_mem / PMPI_Alloc_mem(size: i64, info: Handle, baseptr: *mut c_void) on Origin::Nothing =>
    { inside()?; bodies::alloc_mem(size, info, baseptr) }
}

calls_back! {
    fn MPI_Finalize / PMPI_Finalize() on Origin::Nothing =>
    { inside()?; bodies::finalize() }
}

works! {
    fn MPI_Finalized / PMPI_Finalized(flag: *mut c_int) on Origin::Nothing =>
    bodies::finalized(flag)
}

works! {
    fn MPI_Free_mem / PMPI_Free_mem(base: *mut c_void) on Origin::Nothing =>
    { inside()?; bodies::free_mem(base) }
}

works! {
    fn MPI_Get_hw_resource_info / PMPI_Get_hw_resource_info(hw_info: *mut Handle) on Origin::Nothing =>
    bodies::get_hw_resource_info(hw_info)
}

works! {
    fn MPI_Get_library_version / PMPI_Get_library_version(version: *mut c_char, resultlen: *mut c_int) on Origin::Nothing =>
    bodies::get_library_version(version, resultlen)
}

works! {
    fn MPI_Get_processor_name / PMPI_Get_processor_name(name: *mut c_char, resultlen: *mut c_int) on Origin::Nothing =>
    { inside()?; bodies::get_processor_name(name, resultlen) }
}

works! {
    fn MPI_Get_version / PMPI_Get_version(version: *mut c_int, subversion: *mut c_int) on Origin::Nothing =>
    bodies::get_version(version, subversion)
}

works! {
    fn MPI_Init / PMPI_Init(argc: *mut c_int, argv: *mut *mut *mut c_char) on Origin::Nothing =>
    bodies::init(argc, argv)
}

works! {
    fn MPI_Init_thread / PMPI_Init_thread(argc: *mut c_int, argv: *mut *mut *mut c_char, required: c_int, provided: *mut c_int) on Origin::Nothing =>
    bodies::init_thread(argc, argv, required, provided)
}

works! {
    fn MPI_Initialized / PMPI_Initialized(flag: *mut c_int) on Origin::Nothing =>
    bodies::initialized(flag)
}

works! {
    fn MPI_Is_thread_main / PMPI_Is_thread_main(flag: *mut c_int) on Origin::Nothing =>
    { inside()?; bodies::is_thread_main(flag) }
}

works! {
    fn MPI_Pcontrol / PMPI_Pcontrol(level: c_int) on Origin::Nothing =>
    bodies::pcontrol(level)
}

works! {
    fn MPI_Query_thread / PMPI_Query_thread(provided: *mut c_int) on Origin::Nothing =>
    { inside()?; bodies::query_thread(provided) }
}

value! {
    fn MPI_Wtick / PMPI_Wtick() -> f64 =>
    bodies::wtick()
}

value! {
    fn MPI_Wtime / PMPI_Wtime() -> f64 =>
    bodies::wtime()
}
