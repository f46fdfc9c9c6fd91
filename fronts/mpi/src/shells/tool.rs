//! The shells of the chapter `tool`. Made by `cargo xtask mpi`.

use super::*;

unsupported! { fn MPI_T_category_changed / PMPI_T_category_changed(update_number: *mut c_int) on Origin::Tool }

unsupported! { fn MPI_T_category_get_categories / PMPI_T_category_get_categories(cat_index: c_int, len: c_int, indices: *mut c_int) on Origin::Tool }

unsupported! { fn MPI_T_category_get_cvars / PMPI_T_category_get_cvars(cat_index: c_int, len: c_int, indices: *mut c_int) on Origin::Tool }

unsupported! { fn MPI_T_category_get_events / PMPI_T_category_get_events(cat_index: c_int, len: c_int, indices: *mut c_int) on Origin::Tool }

unsupported! { fn MPI_T_category_get_index / PMPI_T_category_get_index(name: *const c_char, cat_index: *mut c_int) on Origin::Tool }

unsupported! { fn MPI_T_category_get_info / PMPI_T_category_get_info(cat_index: c_int, name: *mut c_char, name_len: *mut c_int, desc: *mut c_char, desc_len: *mut c_int, num_cvars: *mut c_int, num_pvars: *mut c_int, num_categories: *mut c_int) on Origin::Tool }

unsupported! { fn MPI_T_category_get_num / PMPI_T_category_get_num(num_cat: *mut c_int) on Origin::Tool }

unsupported! { fn MPI_T_category_get_num_events / PMPI_T_category_get_num_events(cat_index: c_int, num_events: *mut c_int) on Origin::Tool }

unsupported! { fn MPI_T_category_get_pvars / PMPI_T_category_get_pvars(cat_index: c_int, len: c_int, indices: *mut c_int) on Origin::Tool }

unsupported! { fn MPI_T_cvar_get_index / PMPI_T_cvar_get_index(name: *const c_char, cvar_index: *mut c_int) on Origin::Tool }

unsupported! { fn MPI_T_cvar_get_info / PMPI_T_cvar_get_info(cvar_index: c_int, name: *mut c_char, name_len: *mut c_int, verbosity: *mut c_int, datatype: *mut Handle, enumtype: *mut Handle, desc: *mut c_char, desc_len: *mut c_int, bind: *mut c_int, scope: *mut c_int) on Origin::Tool }

unsupported! { fn MPI_T_cvar_get_num / PMPI_T_cvar_get_num(num_cvar: *mut c_int) on Origin::Tool }

unsupported! { fn MPI_T_cvar_handle_alloc / PMPI_T_cvar_handle_alloc(cvar_index: c_int, obj_handle: *mut c_void, handle: *mut Handle, count: *mut c_int) on Origin::Tool }

unsupported! { fn MPI_T_cvar_handle_free / PMPI_T_cvar_handle_free(handle: *mut Handle) on Origin::Tool }

unsupported! { fn MPI_T_cvar_read / PMPI_T_cvar_read(handle: Handle, buf: *mut c_void) on Origin::Tool }

unsupported! { fn MPI_T_cvar_write / PMPI_T_cvar_write(handle: Handle, buf: *const c_void) on Origin::Tool }

unsupported! { fn MPI_T_enum_get_info / PMPI_T_enum_get_info(enumtype: Handle, num: *mut c_int, name: *mut c_char, name_len: *mut c_int) on Origin::Tool }

unsupported! { fn MPI_T_enum_get_item / PMPI_T_enum_get_item(enumtype: Handle, indx: c_int, value: *mut c_int, name: *mut c_char, name_len: *mut c_int) on Origin::Tool }

unsupported! { fn MPI_T_event_callback_get_info / PMPI_T_event_callback_get_info(event_registration: Handle, cb_safety: c_int, info_used: *mut Handle) on Origin::Tool }

unsupported! { fn MPI_T_event_callback_set_info / PMPI_T_event_callback_set_info(event_registration: Handle, cb_safety: c_int, info: Handle) on Origin::Tool }

unsupported! { fn MPI_T_event_copy / PMPI_T_event_copy(event_instance: Handle, buffer: *mut c_void) on Origin::Tool }

unsupported! { fn MPI_T_event_get_index / PMPI_T_event_get_index(name: *const c_char, event_index: *mut c_int) on Origin::Tool }

unsupported! { fn MPI_T_event_get_info / PMPI_T_event_get_info(event_index: c_int, name: *mut c_char, name_len: *mut c_int, verbosity: *mut c_int, array_of_datatypes: *mut Handle, array_of_displacements: *mut i64, num_elements: *mut c_int, enumtype: *mut Handle, info: *mut Handle, desc: *mut c_char, desc_len: *mut c_int, bind: *mut c_int) on Origin::Tool }

unsupported! { fn MPI_T_event_get_num / PMPI_T_event_get_num(num_events: *mut c_int) on Origin::Tool }

unsupported! { fn MPI_T_event_get_source / PMPI_T_event_get_source(event_instance: Handle, source_index: *mut c_int) on Origin::Tool }

unsupported! { fn MPI_T_event_get_timestamp / PMPI_T_event_get_timestamp(event_instance: Handle, event_timestamp: *mut i64) on Origin::Tool }

unsupported! { fn MPI_T_event_handle_alloc / PMPI_T_event_handle_alloc(event_index: c_int, obj_handle: *mut c_void, info: Handle, event_registration: *mut Handle) on Origin::Tool }

unsupported! { fn MPI_T_event_handle_free / PMPI_T_event_handle_free(event_registration: Handle, user_data: *mut c_void, free_cb_function: Callback) on Origin::Tool }

unsupported! { fn MPI_T_event_handle_get_info / PMPI_T_event_handle_get_info(event_registration: Handle, info_used: *mut Handle) on Origin::Tool }

unsupported! { fn MPI_T_event_handle_set_info / PMPI_T_event_handle_set_info(event_registration: Handle, info: Handle) on Origin::Tool }

unsupported! { fn MPI_T_event_read / PMPI_T_event_read(event_instance: Handle, element_index: c_int, buffer: *mut c_void) on Origin::Tool }

unsupported! { fn MPI_T_event_register_callback / PMPI_T_event_register_callback(event_registration: Handle, cb_safety: c_int, info: Handle, user_data: *mut c_void, event_cb_function: Callback) on Origin::Tool }

unsupported! { fn MPI_T_event_set_dropped_handler / PMPI_T_event_set_dropped_handler(event_registration: Handle, dropped_cb_function: Callback) on Origin::Tool }

unsupported! { fn MPI_T_finalize / PMPI_T_finalize() on Origin::Tool }

unsupported! { fn MPI_T_init_thread / PMPI_T_init_thread(required: c_int, provided: *mut c_int) on Origin::Tool }

unsupported! { fn MPI_T_pvar_get_index / PMPI_T_pvar_get_index(name: *const c_char, var_class: c_int, pvar_index: *mut c_int) on Origin::Tool }

unsupported! { fn MPI_T_pvar_get_info / PMPI_T_pvar_get_info(pvar_index: c_int, name: *mut c_char, name_len: *mut c_int, verbosity: *mut c_int, var_class: *mut c_int, datatype: *mut Handle, enumtype: *mut Handle, desc: *mut c_char, desc_len: *mut c_int, bind: *mut c_int, readonly: *mut c_int, continuous: *mut c_int, atomic: *mut c_int) on Origin::Tool }

unsupported! { fn MPI_T_pvar_get_num / PMPI_T_pvar_get_num(num_pvar: *mut c_int) on Origin::Tool }

unsupported! { fn MPI_T_pvar_handle_alloc / PMPI_T_pvar_handle_alloc(session: Handle, pvar_index: c_int, obj_handle: *mut c_void, handle: *mut Handle, count: *mut c_int) on Origin::Tool }

unsupported! { fn MPI_T_pvar_handle_free / PMPI_T_pvar_handle_free(session: Handle, handle: *mut Handle) on Origin::Tool }

unsupported! { fn MPI_T_pvar_read / PMPI_T_pvar_read(session: Handle, handle: Handle, buf: *mut c_void) on Origin::Tool }

unsupported! { fn MPI_T_pvar_readreset / PMPI_T_pvar_readreset(session: Handle, handle: Handle, buf: *mut c_void) on Origin::Tool }

unsupported! { fn MPI_T_pvar_reset / PMPI_T_pvar_reset(session: Handle, handle: Handle) on Origin::Tool }

unsupported! { fn MPI_T_pvar_session_create / PMPI_T_pvar_session_create(session: *mut Handle) on Origin::Tool }

unsupported! { fn MPI_T_pvar_session_free / PMPI_T_pvar_session_free(session: *mut Handle) on Origin::Tool }

unsupported! { fn MPI_T_pvar_start / PMPI_T_pvar_start(session: Handle, handle: Handle) on Origin::Tool }

unsupported! { fn MPI_T_pvar_stop / PMPI_T_pvar_stop(session: Handle, handle: Handle) on Origin::Tool }

unsupported! { fn MPI_T_pvar_write / PMPI_T_pvar_write(session: Handle, handle: Handle, buf: *const c_void) on Origin::Tool }

unsupported! { fn MPI_T_source_get_info / PMPI_T_source_get_info(source_index: c_int, name: *mut c_char, name_len: *mut c_int, desc: *mut c_char, desc_len: *mut c_int, ordering: *mut c_int, ticks_per_second: *mut i64, max_ticks: *mut i64, info: *mut Handle) on Origin::Tool }

unsupported! { fn MPI_T_source_get_num / PMPI_T_source_get_num(num_sources: *mut c_int) on Origin::Tool }

unsupported! { fn MPI_T_source_get_timestamp / PMPI_T_source_get_timestamp(source_index: c_int, timestamp: *mut i64) on Origin::Tool }
