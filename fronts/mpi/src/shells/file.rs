//! The shells of the chapter `file`. Made by `cargo xtask mpi`.

use super::*;

unsupported! { fn MPI_File_close / PMPI_File_close(fh: *mut Handle) on Origin::File }

unsupported! { fn MPI_File_delete / PMPI_File_delete(filename: *const c_char, info: Handle) on Origin::Nothing }

unsupported! { fn MPI_File_get_amode / PMPI_File_get_amode(fh: Handle, amode: *mut c_int) on Origin::File }

unsupported! { fn MPI_File_get_atomicity / PMPI_File_get_atomicity(fh: Handle, flag: *mut c_int) on Origin::File }

unsupported! { fn MPI_File_get_byte_offset / PMPI_File_get_byte_offset(fh: Handle, offset: i64, disp: *mut i64) on Origin::File }

unsupported! { fn MPI_File_get_group / PMPI_File_get_group(fh: Handle, group: *mut Handle) on Origin::File }

unsupported! { fn MPI_File_get_info / PMPI_File_get_info(fh: Handle, info_used: *mut Handle) on Origin::File }

unsupported! { fn MPI_File_get_position / PMPI_File_get_position(fh: Handle, offset: *mut i64) on Origin::File }

unsupported! { fn MPI_File_get_position_shared / PMPI_File_get_position_shared(fh: Handle, offset: *mut i64) on Origin::File }

unsupported! { fn MPI_File_get_size / PMPI_File_get_size(fh: Handle, size: *mut i64) on Origin::File }

unsupported! { fn MPI_File_get_type_extent / PMPI_File_get_type_extent(fh: Handle, datatype: Handle, extent: *mut i64) on Origin::File }

unsupported! { fn MPI_File_get_type_extent_c / PMPI_File_get_type_extent_c(fh: Handle, datatype: Handle, extent: *mut i64) on Origin::File }

unsupported! { fn MPI_File_get_view / PMPI_File_get_view(fh: Handle, disp: *mut i64, etype: *mut Handle, filetype: *mut Handle, datarep: *mut c_char) on Origin::File }

unsupported! { fn MPI_File_iread / PMPI_File_iread(fh: Handle, buf: *mut c_void, count: c_int, datatype: Handle, request: *mut Handle) on Origin::File }

unsupported! { fn MPI_File_iread_all / PMPI_File_iread_all(fh: Handle, buf: *mut c_void, count: c_int, datatype: Handle, request: *mut Handle) on Origin::File }

unsupported! { fn MPI_File_iread_all_c / PMPI_File_iread_all_c(fh: Handle, buf: *mut c_void, count: i64, datatype: Handle, request: *mut Handle) on Origin::File }

unsupported! { fn MPI_File_iread_at / PMPI_File_iread_at(fh: Handle, offset: i64, buf: *mut c_void, count: c_int, datatype: Handle, request: *mut Handle) on Origin::File }

unsupported! { fn MPI_File_iread_at_all / PMPI_File_iread_at_all(fh: Handle, offset: i64, buf: *mut c_void, count: c_int, datatype: Handle, request: *mut Handle) on Origin::File }

unsupported! { fn MPI_File_iread_at_all_c / PMPI_File_iread_at_all_c(fh: Handle, offset: i64, buf: *mut c_void, count: i64, datatype: Handle, request: *mut Handle) on Origin::File }

unsupported! { fn MPI_File_iread_at_c / PMPI_File_iread_at_c(fh: Handle, offset: i64, buf: *mut c_void, count: i64, datatype: Handle, request: *mut Handle) on Origin::File }

unsupported! { fn MPI_File_iread_c / PMPI_File_iread_c(fh: Handle, buf: *mut c_void, count: i64, datatype: Handle, request: *mut Handle) on Origin::File }

unsupported! { fn MPI_File_iread_shared / PMPI_File_iread_shared(fh: Handle, buf: *mut c_void, count: c_int, datatype: Handle, request: *mut Handle) on Origin::File }

unsupported! { fn MPI_File_iread_shared_c / PMPI_File_iread_shared_c(fh: Handle, buf: *mut c_void, count: i64, datatype: Handle, request: *mut Handle) on Origin::File }

unsupported! { fn MPI_File_iwrite / PMPI_File_iwrite(fh: Handle, buf: *const c_void, count: c_int, datatype: Handle, request: *mut Handle) on Origin::File }

unsupported! { fn MPI_File_iwrite_all / PMPI_File_iwrite_all(fh: Handle, buf: *const c_void, count: c_int, datatype: Handle, request: *mut Handle) on Origin::File }

unsupported! { fn MPI_File_iwrite_all_c / PMPI_File_iwrite_all_c(fh: Handle, buf: *const c_void, count: i64, datatype: Handle, request: *mut Handle) on Origin::File }

unsupported! { fn MPI_File_iwrite_at / PMPI_File_iwrite_at(fh: Handle, offset: i64, buf: *const c_void, count: c_int, datatype: Handle, request: *mut Handle) on Origin::File }

unsupported! { fn MPI_File_iwrite_at_all / PMPI_File_iwrite_at_all(fh: Handle, offset: i64, buf: *const c_void, count: c_int, datatype: Handle, request: *mut Handle) on Origin::File }

unsupported! { fn MPI_File_iwrite_at_all_c / PMPI_File_iwrite_at_all_c(fh: Handle, offset: i64, buf: *const c_void, count: i64, datatype: Handle, request: *mut Handle) on Origin::File }

unsupported! { fn MPI_File_iwrite_at_c / PMPI_File_iwrite_at_c(fh: Handle, offset: i64, buf: *const c_void, count: i64, datatype: Handle, request: *mut Handle) on Origin::File }

unsupported! { fn MPI_File_iwrite_c / PMPI_File_iwrite_c(fh: Handle, buf: *const c_void, count: i64, datatype: Handle, request: *mut Handle) on Origin::File }

unsupported! { fn MPI_File_iwrite_shared / PMPI_File_iwrite_shared(fh: Handle, buf: *const c_void, count: c_int, datatype: Handle, request: *mut Handle) on Origin::File }

unsupported! { fn MPI_File_iwrite_shared_c / PMPI_File_iwrite_shared_c(fh: Handle, buf: *const c_void, count: i64, datatype: Handle, request: *mut Handle) on Origin::File }

unsupported! { fn MPI_File_open / PMPI_File_open(comm: Handle, filename: *const c_char, amode: c_int, info: Handle, fh: *mut Handle) on Origin::Communicator(comm) }

unsupported! { fn MPI_File_preallocate / PMPI_File_preallocate(fh: Handle, size: i64) on Origin::File }

unsupported! { fn MPI_File_read / PMPI_File_read(fh: Handle, buf: *mut c_void, count: c_int, datatype: Handle, status: *mut Status) on Origin::File }

unsupported! { fn MPI_File_read_all / PMPI_File_read_all(fh: Handle, buf: *mut c_void, count: c_int, datatype: Handle, status: *mut Status) on Origin::File }

unsupported! { fn MPI_File_read_all_begin / PMPI_File_read_all_begin(fh: Handle, buf: *mut c_void, count: c_int, datatype: Handle) on Origin::File }

unsupported! { fn MPI_File_read_all_begin_c / PMPI_File_read_all_begin_c(fh: Handle, buf: *mut c_void, count: i64, datatype: Handle) on Origin::File }

unsupported! { fn MPI_File_read_all_c / PMPI_File_read_all_c(fh: Handle, buf: *mut c_void, count: i64, datatype: Handle, status: *mut Status) on Origin::File }

unsupported! { fn MPI_File_read_all_end / PMPI_File_read_all_end(fh: Handle, buf: *mut c_void, status: *mut Status) on Origin::File }

unsupported! { fn MPI_File_read_at / PMPI_File_read_at(fh: Handle, offset: i64, buf: *mut c_void, count: c_int, datatype: Handle, status: *mut Status) on Origin::File }

unsupported! { fn MPI_File_read_at_all / PMPI_File_read_at_all(fh: Handle, offset: i64, buf: *mut c_void, count: c_int, datatype: Handle, status: *mut Status) on Origin::File }

unsupported! { fn MPI_File_read_at_all_begin / PMPI_File_read_at_all_begin(fh: Handle, offset: i64, buf: *mut c_void, count: c_int, datatype: Handle) on Origin::File }

unsupported! { fn MPI_File_read_at_all_begin_c / PMPI_File_read_at_all_begin_c(fh: Handle, offset: i64, buf: *mut c_void, count: i64, datatype: Handle) on Origin::File }

unsupported! { fn MPI_File_read_at_all_c / PMPI_File_read_at_all_c(fh: Handle, offset: i64, buf: *mut c_void, count: i64, datatype: Handle, status: *mut Status) on Origin::File }

unsupported! { fn MPI_File_read_at_all_end / PMPI_File_read_at_all_end(fh: Handle, buf: *mut c_void, status: *mut Status) on Origin::File }

unsupported! { fn MPI_File_read_at_c / PMPI_File_read_at_c(fh: Handle, offset: i64, buf: *mut c_void, count: i64, datatype: Handle, status: *mut Status) on Origin::File }

unsupported! { fn MPI_File_read_c / PMPI_File_read_c(fh: Handle, buf: *mut c_void, count: i64, datatype: Handle, status: *mut Status) on Origin::File }

unsupported! { fn MPI_File_read_ordered / PMPI_File_read_ordered(fh: Handle, buf: *mut c_void, count: c_int, datatype: Handle, status: *mut Status) on Origin::File }

unsupported! { fn MPI_File_read_ordered_begin / PMPI_File_read_ordered_begin(fh: Handle, buf: *mut c_void, count: c_int, datatype: Handle) on Origin::File }

unsupported! { fn MPI_File_read_ordered_begin_c / PMPI_File_read_ordered_begin_c(fh: Handle, buf: *mut c_void, count: i64, datatype: Handle) on Origin::File }

unsupported! { fn MPI_File_read_ordered_c / PMPI_File_read_ordered_c(fh: Handle, buf: *mut c_void, count: i64, datatype: Handle, status: *mut Status) on Origin::File }

unsupported! { fn MPI_File_read_ordered_end / PMPI_File_read_ordered_end(fh: Handle, buf: *mut c_void, status: *mut Status) on Origin::File }

unsupported! { fn MPI_File_read_shared / PMPI_File_read_shared(fh: Handle, buf: *mut c_void, count: c_int, datatype: Handle, status: *mut Status) on Origin::File }

unsupported! { fn MPI_File_read_shared_c / PMPI_File_read_shared_c(fh: Handle, buf: *mut c_void, count: i64, datatype: Handle, status: *mut Status) on Origin::File }

unsupported! { fn MPI_File_seek / PMPI_File_seek(fh: Handle, offset: i64, whence: c_int) on Origin::File }

unsupported! { fn MPI_File_seek_shared / PMPI_File_seek_shared(fh: Handle, offset: i64, whence: c_int) on Origin::File }

unsupported! { fn MPI_File_set_atomicity / PMPI_File_set_atomicity(fh: Handle, flag: c_int) on Origin::File }

unsupported! { fn MPI_File_set_info / PMPI_File_set_info(fh: Handle, info: Handle) on Origin::File }

unsupported! { fn MPI_File_set_size / PMPI_File_set_size(fh: Handle, size: i64) on Origin::File }

unsupported! { fn MPI_File_set_view / PMPI_File_set_view(fh: Handle, disp: i64, etype: Handle, filetype: Handle, datarep: *const c_char, info: Handle) on Origin::File }

unsupported! { fn MPI_File_sync / PMPI_File_sync(fh: Handle) on Origin::File }

unsupported! { fn MPI_File_write / PMPI_File_write(fh: Handle, buf: *const c_void, count: c_int, datatype: Handle, status: *mut Status) on Origin::File }

unsupported! { fn MPI_File_write_all / PMPI_File_write_all(fh: Handle, buf: *const c_void, count: c_int, datatype: Handle, status: *mut Status) on Origin::File }

unsupported! { fn MPI_File_write_all_begin / PMPI_File_write_all_begin(fh: Handle, buf: *const c_void, count: c_int, datatype: Handle) on Origin::File }

unsupported! { fn MPI_File_write_all_begin_c / PMPI_File_write_all_begin_c(fh: Handle, buf: *const c_void, count: i64, datatype: Handle) on Origin::File }

unsupported! { fn MPI_File_write_all_c / PMPI_File_write_all_c(fh: Handle, buf: *const c_void, count: i64, datatype: Handle, status: *mut Status) on Origin::File }

unsupported! { fn MPI_File_write_all_end / PMPI_File_write_all_end(fh: Handle, buf: *const c_void, status: *mut Status) on Origin::File }

unsupported! { fn MPI_File_write_at / PMPI_File_write_at(fh: Handle, offset: i64, buf: *const c_void, count: c_int, datatype: Handle, status: *mut Status) on Origin::File }

unsupported! { fn MPI_File_write_at_all / PMPI_File_write_at_all(fh: Handle, offset: i64, buf: *const c_void, count: c_int, datatype: Handle, status: *mut Status) on Origin::File }

unsupported! { fn MPI_File_write_at_all_begin / PMPI_File_write_at_all_begin(fh: Handle, offset: i64, buf: *const c_void, count: c_int, datatype: Handle) on Origin::File }

unsupported! { fn MPI_File_write_at_all_begin_c / PMPI_File_write_at_all_begin_c(fh: Handle, offset: i64, buf: *const c_void, count: i64, datatype: Handle) on Origin::File }

unsupported! { fn MPI_File_write_at_all_c / PMPI_File_write_at_all_c(fh: Handle, offset: i64, buf: *const c_void, count: i64, datatype: Handle, status: *mut Status) on Origin::File }

unsupported! { fn MPI_File_write_at_all_end / PMPI_File_write_at_all_end(fh: Handle, buf: *const c_void, status: *mut Status) on Origin::File }

unsupported! { fn MPI_File_write_at_c / PMPI_File_write_at_c(fh: Handle, offset: i64, buf: *const c_void, count: i64, datatype: Handle, status: *mut Status) on Origin::File }

unsupported! { fn MPI_File_write_c / PMPI_File_write_c(fh: Handle, buf: *const c_void, count: i64, datatype: Handle, status: *mut Status) on Origin::File }

unsupported! { fn MPI_File_write_ordered / PMPI_File_write_ordered(fh: Handle, buf: *const c_void, count: c_int, datatype: Handle, status: *mut Status) on Origin::File }

unsupported! { fn MPI_File_write_ordered_begin / PMPI_File_write_ordered_begin(fh: Handle, buf: *const c_void, count: c_int, datatype: Handle) on Origin::File }

unsupported! { fn MPI_File_write_ordered_begin_c / PMPI_File_write_ordered_begin_c(fh: Handle, buf: *const c_void, count: i64, datatype: Handle) on Origin::File }

unsupported! { fn MPI_File_write_ordered_c / PMPI_File_write_ordered_c(fh: Handle, buf: *const c_void, count: i64, datatype: Handle, status: *mut Status) on Origin::File }

unsupported! { fn MPI_File_write_ordered_end / PMPI_File_write_ordered_end(fh: Handle, buf: *const c_void, status: *mut Status) on Origin::File }

unsupported! { fn MPI_File_write_shared / PMPI_File_write_shared(fh: Handle, buf: *const c_void, count: c_int, datatype: Handle, status: *mut Status) on Origin::File }

unsupported! { fn MPI_File_write_shared_c / PMPI_File_write_shared_c(fh: Handle, buf: *const c_void, count: i64, datatype: Handle, status: *mut Status) on Origin::File }

unsupported! { fn MPI_Register_datarep / PMPI_Register_datarep(datarep: *const c_char, read_conversion_fn: Callback, write_conversion_fn: Callback, dtype_file_extent_fn: Callback, extra_state: *mut c_void) on Origin::Nothing }

unsupported! { fn MPI_Register_datarep_c / PMPI_Register_datarep_c(datarep: *const c_char, read_conversion_fn: Callback, write_conversion_fn: Callback, dtype_file_extent_fn: Callback, extra_state: *mut c_void) on Origin::Nothing }
