//! The shells of the chapter `session`. Made by `cargo xtask mpi`.

use super::*;
use crate::functions::session as bodies;

works! {
    fn MPI_Group_from_session_pset / PMPI_Group_from_session_pset(session: Handle, pset_name: *const c_char, newgroup: *mut Handle) on Origin::Session(session) =>
    bodies::group_from_session_pset(session, pset_name, newgroup)
}

calls_back! {
    fn MPI_Session_call_errhandler / PMPI_Session_call_errhandler(session: Handle, errorcode: c_int) on Origin::Session(session) =>
    bodies::session_call_errhandler(session, errorcode)
}

works! {
    fn MPI_Session_create_errhandler / PMPI_Session_create_errhandler(session_errhandler_fn: Callback, errhandler: *mut Handle) on Origin::Nothing =>
    bodies::session_create_errhandler(session_errhandler_fn, errhandler)
}

works! {
    fn MPI_Session_finalize / PMPI_Session_finalize(session: *mut Handle) on Origin::SessionAt(session) =>
    { inside()?; bodies::session_finalize(session) }
}

works! {
    fn MPI_Session_get_errhandler / PMPI_Session_get_errhandler(session: Handle, errhandler: *mut Handle) on Origin::Session(session) =>
    bodies::session_get_errhandler(session, errhandler)
}

works! {
    fn MPI_Session_get_info / PMPI_Session_get_info(session: Handle, info_used: *mut Handle) on Origin::Session(session) =>
    bodies::session_get_info(session, info_used)
}

works! {
    fn MPI_Session_get_nth_pset / PMPI_Session_get_nth_pset(session: Handle, info: Handle, n: c_int, pset_len: *mut c_int, pset_name: *mut c_char) on Origin::Session(session) =>
    bodies::session_get_nth_pset(session, info, n, pset_len, pset_name)
}

works! {
    fn MPI_Session_get_num_psets / PMPI_Session_get_num_psets(session: Handle, info: Handle, npset_names: *mut c_int) on Origin::Session(session) =>
    bodies::session_get_num_psets(session, info, npset_names)
}

works! {
    fn MPI_Session_get_pset_info / PMPI_Session_get_pset_info(session: Handle, pset_name: *const c_char, info: *mut Handle) on Origin::Session(session) =>
    bodies::session_get_pset_info(session, pset_name, info)
}

works! {
    fn MPI_Session_init / PMPI_Session_init(info: Handle, errhandler: Handle, session: *mut Handle) on Origin::Handler(Kind::Session, errhandler) =>
    bodies::session_init(info, errhandler, session)
}

works! {
    fn MPI_Session_set_errhandler / PMPI_Session_set_errhandler(session: Handle, errhandler: Handle) on Origin::Session(session) =>
    bodies::session_set_errhandler(session, errhandler)
}
