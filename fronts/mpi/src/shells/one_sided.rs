//! The shells of the chapter `one_sided`. Made by `cargo xtask mpi`.

use super::*;

unsupported! { fn MPI_Accumulate / PMPI_Accumulate(origin_addr: *const c_void, origin_count: c_int, origin_datatype: Handle, target_rank: c_int, target_disp: i64, target_count: c_int, target_datatype: Handle, op: Handle, win: Handle) on Origin::Nothing }

unsupported! { fn MPI_Accumulate_c / PMPI_Accumulate_c(origin_addr: *const c_void, origin_count: i64, origin_datatype: Handle, target_rank: c_int, target_disp: i64, target_count: i64, target_datatype: Handle, op: Handle, win: Handle) on Origin::Nothing }

unsupported! { fn MPI_Compare_and_swap / PMPI_Compare_and_swap(origin_addr: *const c_void, compare_addr: *const c_void, result_addr: *mut c_void, datatype: Handle, target_rank: c_int, target_disp: i64, win: Handle) on Origin::Nothing }

unsupported! { fn MPI_Fetch_and_op / PMPI_Fetch_and_op(origin_addr: *const c_void, result_addr: *mut c_void, datatype: Handle, target_rank: c_int, target_disp: i64, op: Handle, win: Handle) on Origin::Nothing }

unsupported! { fn MPI_Get / PMPI_Get(origin_addr: *mut c_void, origin_count: c_int, origin_datatype: Handle, target_rank: c_int, target_disp: i64, target_count: c_int, target_datatype: Handle, win: Handle) on Origin::Nothing }

unsupported! { fn MPI_Get_accumulate / PMPI_Get_accumulate(origin_addr: *const c_void, origin_count: c_int, origin_datatype: Handle, result_addr: *mut c_void, result_count: c_int, result_datatype: Handle, target_rank: c_int, target_disp: i64, target_count: c_int, target_datatype: Handle, op: Handle, win: Handle) on Origin::Nothing }

unsupported! { fn MPI_Get_accumulate_c / PMPI_Get_accumulate_c(origin_addr: *const c_void, origin_count: i64, origin_datatype: Handle, result_addr: *mut c_void, result_count: i64, result_datatype: Handle, target_rank: c_int, target_disp: i64, target_count: i64, target_datatype: Handle, op: Handle, win: Handle) on Origin::Nothing }

unsupported! { fn MPI_Get_c / PMPI_Get_c(origin_addr: *mut c_void, origin_count: i64, origin_datatype: Handle, target_rank: c_int, target_disp: i64, target_count: i64, target_datatype: Handle, win: Handle) on Origin::Nothing }

unsupported! { fn MPI_Put / PMPI_Put(origin_addr: *const c_void, origin_count: c_int, origin_datatype: Handle, target_rank: c_int, target_disp: i64, target_count: c_int, target_datatype: Handle, win: Handle) on Origin::Nothing }

unsupported! { fn MPI_Put_c / PMPI_Put_c(origin_addr: *const c_void, origin_count: i64, origin_datatype: Handle, target_rank: c_int, target_disp: i64, target_count: i64, target_datatype: Handle, win: Handle) on Origin::Nothing }

unsupported! { fn MPI_Raccumulate / PMPI_Raccumulate(origin_addr: *const c_void, origin_count: c_int, origin_datatype: Handle, target_rank: c_int, target_disp: i64, target_count: c_int, target_datatype: Handle, op: Handle, win: Handle, request: *mut Handle) on Origin::Nothing }

unsupported! { fn MPI_Raccumulate_c / PMPI_Raccumulate_c(origin_addr: *const c_void, origin_count: i64, origin_datatype: Handle, target_rank: c_int, target_disp: i64, target_count: i64, target_datatype: Handle, op: Handle, win: Handle, request: *mut Handle) on Origin::Nothing }

unsupported! { fn MPI_Rget / PMPI_Rget(origin_addr: *mut c_void, origin_count: c_int, origin_datatype: Handle, target_rank: c_int, target_disp: i64, target_count: c_int, target_datatype: Handle, win: Handle, request: *mut Handle) on Origin::Nothing }

unsupported! { fn MPI_Rget_accumulate / PMPI_Rget_accumulate(origin_addr: *const c_void, origin_count: c_int, origin_datatype: Handle, result_addr: *mut c_void, result_count: c_int, result_datatype: Handle, target_rank: c_int, target_disp: i64, target_count: c_int, target_datatype: Handle, op: Handle, win: Handle, request: *mut Handle) on Origin::Nothing }

unsupported! { fn MPI_Rget_accumulate_c / PMPI_Rget_accumulate_c(origin_addr: *const c_void, origin_count: i64, origin_datatype: Handle, result_addr: *mut c_void, result_count: i64, result_datatype: Handle, target_rank: c_int, target_disp: i64, target_count: i64, target_datatype: Handle, op: Handle, win: Handle, request: *mut Handle) on Origin::Nothing }

unsupported! { fn MPI_Rget_c / PMPI_Rget_c(origin_addr: *mut c_void, origin_count: i64, origin_datatype: Handle, target_rank: c_int, target_disp: i64, target_count: i64, target_datatype: Handle, win: Handle, request: *mut Handle) on Origin::Nothing }

unsupported! { fn MPI_Rput / PMPI_Rput(origin_addr: *const c_void, origin_count: c_int, origin_datatype: Handle, target_rank: c_int, target_disp: i64, target_count: c_int, target_datatype: Handle, win: Handle, request: *mut Handle) on Origin::Nothing }

unsupported! { fn MPI_Rput_c / PMPI_Rput_c(origin_addr: *const c_void, origin_count: i64, origin_datatype: Handle, target_rank: c_int, target_disp: i64, target_count: i64, target_datatype: Handle, win: Handle, request: *mut Handle) on Origin::Nothing }

unsupported! { fn MPI_Win_allocate / PMPI_Win_allocate(size: i64, disp_unit: c_int, info: Handle, comm: Handle, baseptr: *mut c_void, win: *mut Handle) on Origin::Communicator(comm) }

unsupported! { fn MPI_Win_allocate_c / PMPI_Win_allocate_c(size: i64, disp_unit: i64, info: Handle, comm: Handle, baseptr: *mut c_void, win: *mut Handle) on Origin::Communicator(comm) }

unsupported! { fn MPI_Win_allocate_shared / PMPI_Win_allocate_shared(size: i64, disp_unit: c_int, info: Handle, comm: Handle, baseptr: *mut c_void, win: *mut Handle) on Origin::Communicator(comm) }

unsupported! { fn MPI_Win_allocate_shared_c / PMPI_Win_allocate_shared_c(size: i64, disp_unit: i64, info: Handle, comm: Handle, baseptr: *mut c_void, win: *mut Handle) on Origin::Communicator(comm) }

unsupported! { fn MPI_Win_attach / PMPI_Win_attach(win: Handle, base: *mut c_void, size: i64) on Origin::Nothing }

unsupported! { fn MPI_Win_complete / PMPI_Win_complete(win: Handle) on Origin::Nothing }

unsupported! { fn MPI_Win_create / PMPI_Win_create(base: *mut c_void, size: i64, disp_unit: c_int, info: Handle, comm: Handle, win: *mut Handle) on Origin::Communicator(comm) }

unsupported! { fn MPI_Win_create_c / PMPI_Win_create_c(base: *mut c_void, size: i64, disp_unit: i64, info: Handle, comm: Handle, win: *mut Handle) on Origin::Communicator(comm) }

unsupported! { fn MPI_Win_create_dynamic / PMPI_Win_create_dynamic(info: Handle, comm: Handle, win: *mut Handle) on Origin::Communicator(comm) }

unsupported! { fn MPI_Win_detach / PMPI_Win_detach(win: Handle, base: *const c_void) on Origin::Nothing }

unsupported! { fn MPI_Win_fence / PMPI_Win_fence(assert: c_int, win: Handle) on Origin::Nothing }

unsupported! { fn MPI_Win_flush / PMPI_Win_flush(rank: c_int, win: Handle) on Origin::Nothing }

unsupported! { fn MPI_Win_flush_all / PMPI_Win_flush_all(win: Handle) on Origin::Nothing }

unsupported! { fn MPI_Win_flush_local / PMPI_Win_flush_local(rank: c_int, win: Handle) on Origin::Nothing }

unsupported! { fn MPI_Win_flush_local_all / PMPI_Win_flush_local_all(win: Handle) on Origin::Nothing }

unsupported! { fn MPI_Win_free / PMPI_Win_free(win: *mut Handle) on Origin::Nothing }

unsupported! { fn MPI_Win_get_group / PMPI_Win_get_group(win: Handle, group: *mut Handle) on Origin::Nothing }

unsupported! { fn MPI_Win_get_info / PMPI_Win_get_info(win: Handle, info_used: *mut Handle) on Origin::Nothing }

unsupported! { fn MPI_Win_get_name / PMPI_Win_get_name(win: Handle, win_name: *mut c_char, resultlen: *mut c_int) on Origin::Nothing }

unsupported! { fn MPI_Win_lock / PMPI_Win_lock(lock_type: c_int, rank: c_int, assert: c_int, win: Handle) on Origin::Nothing }

unsupported! { fn MPI_Win_lock_all / PMPI_Win_lock_all(assert: c_int, win: Handle) on Origin::Nothing }

unsupported! { fn MPI_Win_post / PMPI_Win_post(group: Handle, assert: c_int, win: Handle) on Origin::Nothing }

unsupported! { fn MPI_Win_set_info / PMPI_Win_set_info(win: Handle, info: Handle) on Origin::Nothing }

unsupported! { fn MPI_Win_set_name / PMPI_Win_set_name(win: Handle, win_name: *const c_char) on Origin::Nothing }

unsupported! { fn MPI_Win_shared_query / PMPI_Win_shared_query(win: Handle, rank: c_int, size: *mut i64, disp_unit: *mut c_int, baseptr: *mut c_void) on Origin::Nothing }

unsupported! { fn MPI_Win_shared_query_c / PMPI_Win_shared_query_c(win: Handle, rank: c_int, size: *mut i64, disp_unit: *mut i64, baseptr: *mut c_void) on Origin::Nothing }

unsupported! { fn MPI_Win_start / PMPI_Win_start(group: Handle, assert: c_int, win: Handle) on Origin::Nothing }

unsupported! { fn MPI_Win_sync / PMPI_Win_sync(win: Handle) on Origin::Nothing }

unsupported! { fn MPI_Win_test / PMPI_Win_test(win: Handle, flag: *mut c_int) on Origin::Nothing }

unsupported! { fn MPI_Win_unlock / PMPI_Win_unlock(rank: c_int, win: Handle) on Origin::Nothing }

unsupported! { fn MPI_Win_unlock_all / PMPI_Win_unlock_all(win: Handle) on Origin::Nothing }

unsupported! { fn MPI_Win_wait / PMPI_Win_wait(win: Handle) on Origin::Nothing }
