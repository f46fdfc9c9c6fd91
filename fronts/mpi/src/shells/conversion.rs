//! The shells of the chapter `conversion`. Made by `cargo xtask mpi`.

use super::*;
use crate::functions::conversion as bodies;

value! {
    fn MPI_Comm_fromint / PMPI_Comm_fromint(comm: c_int) -> Handle =>
    bodies::comm_fromint(comm)
}

value! {
    fn MPI_Comm_toint / PMPI_Comm_toint(comm: Handle) -> c_int =>
    bodies::comm_toint(comm)
}

value! {
    fn MPI_Errhandler_fromint / PMPI_Errhandler_fromint(errhandler: c_int) -> Handle =>
    bodies::errhandler_fromint(errhandler)
}

value! {
    fn MPI_Errhandler_toint / PMPI_Errhandler_toint(errhandler: Handle) -> c_int =>
    bodies::errhandler_toint(errhandler)
}

value! {
    fn MPI_File_fromint / PMPI_File_fromint(file: c_int) -> Handle =>
    bodies::file_fromint(file)
}

value! {
    fn MPI_File_toint / PMPI_File_toint(file: Handle) -> c_int =>
    bodies::file_toint(file)
}

value! {
    fn MPI_Group_fromint / PMPI_Group_fromint(group: c_int) -> Handle =>
    bodies::group_fromint(group)
}

value! {
    fn MPI_Group_toint / PMPI_Group_toint(group: Handle) -> c_int =>
    bodies::group_toint(group)
}

value! {
    fn MPI_Info_fromint / PMPI_Info_fromint(info: c_int) -> Handle =>
    bodies::info_fromint(info)
}

value! {
    fn MPI_Info_toint / PMPI_Info_toint(info: Handle) -> c_int =>
    bodies::info_toint(info)
}

value! {
    fn MPI_Message_fromint / PMPI_Message_fromint(message: c_int) -> Handle =>
    bodies::message_fromint(message)
}

value! {
    fn MPI_Message_toint / PMPI_Message_toint(message: Handle) -> c_int =>
    bodies::message_toint(message)
}

value! {
    fn MPI_Op_fromint / PMPI_Op_fromint(op: c_int) -> Handle =>
    bodies::op_fromint(op)
}

value! {
    fn MPI_Op_toint / PMPI_Op_toint(op: Handle) -> c_int =>
    bodies::op_toint(op)
}

value! {
    fn MPI_Request_fromint / PMPI_Request_fromint(request: c_int) -> Handle =>
    bodies::request_fromint(request)
}

value! {
    fn MPI_Request_toint / PMPI_Request_toint(request: Handle) -> c_int =>
    bodies::request_toint(request)
}

value! {
    fn MPI_Session_fromint / PMPI_Session_fromint(session: c_int) -> Handle =>
    bodies::session_fromint(session)
}

value! {
    fn MPI_Session_toint / PMPI_Session_toint(session: Handle) -> c_int =>
    bodies::session_toint(session)
}

value! {
    fn MPI_Type_fromint / PMPI_Type_fromint(datatype: c_int) -> Handle =>
    bodies::type_fromint(datatype)
}

value! {
    fn MPI_Type_toint / PMPI_Type_toint(datatype: Handle) -> c_int =>
    bodies::type_toint(datatype)
}

value! {
    fn MPI_Win_fromint / PMPI_Win_fromint(win: c_int) -> Handle =>
    bodies::win_fromint(win)
}

value! {
    fn MPI_Win_toint / PMPI_Win_toint(win: Handle) -> c_int =>
    bodies::win_toint(win)
}
