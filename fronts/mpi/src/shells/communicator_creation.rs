//! The shells of the chapter `communicator_creation`. Made by `cargo xtask mpi`.

use super::*;
use crate::functions::communicator_creation as bodies;

works! {
    fn MPI_Comm_create / PMPI_Comm_create(comm: Handle, group: Handle, newcomm: *mut Handle) on Origin::Communicator(comm) =>
    bodies::comm_create(comm, group, newcomm)
}

works! {
    fn MPI_Comm_create_from_group / PMPI_Comm_create_from_group(group: Handle, stringtag: *const c_char, info: Handle, errhandler: Handle, newcomm: *mut Handle) on Origin::Handler(Kind::Communicator, errhandler) =>
    { inside()?; bodies::comm_create_from_group(group, stringtag, info, errhandler, newcomm) }
}

works! {
    fn MPI_Comm_create_group / PMPI_Comm_create_group(comm: Handle, group: Handle, tag: c_int, newcomm: *mut Handle) on Origin::Communicator(comm) =>
    bodies::comm_create_group(comm, group, tag, newcomm)
}

calls_back! {
    fn MPI_Comm_disconnect / PMPI_Comm_disconnect(comm: *mut Handle) on Origin::CommunicatorAt(comm) =>
    { inside()?; bodies::comm_disconnect(comm) }
}

calls_back! {
    fn MPI_Comm_dup / PMPI_Comm_dup(comm: Handle, newcomm: *mut Handle) on Origin::Communicator(comm) =>
    bodies::comm_dup(comm, newcomm)
}

calls_back! {
    fn MPI_Comm_dup_with_info / PMPI_Comm_dup_with_info(comm: Handle, info: Handle, newcomm: *mut Handle) on Origin::Communicator(comm) =>
    bodies::comm_dup_with_info(comm, info, newcomm)
}

calls_back! {
    fn MPI_Comm_free / PMPI_Comm_free(comm: *mut Handle) on Origin::CommunicatorAt(comm) =>
    { inside()?; bodies::comm_free(comm) }
}

works! {
    fn MPI_Comm_idup / PMPI_Comm_idup(comm: Handle, newcomm: *mut Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::comm_idup(comm, newcomm, request)
}

works! {
    fn MPI_Comm_idup_with_info / PMPI_Comm_idup_with_info(comm: Handle, info: Handle, newcomm: *mut Handle, request: *mut Handle) on Origin::Communicator(comm) =>
    bodies::comm_idup_with_info(comm, info, newcomm, request)
}

works! {
    fn MPI_Comm_split / PMPI_Comm_split(comm: Handle, color: c_int, key: c_int, newcomm: *mut Handle) on Origin::Communicator(comm) =>
    bodies::comm_split(comm, color, key, newcomm)
}

works! {
    fn MPI_Comm_split_type / PMPI_Comm_split_type(comm: Handle, split_type: c_int, key: c_int, info: Handle, newcomm: *mut Handle) on Origin::Communicator(comm) =>
    bodies::comm_split_type(comm, split_type, key, info, newcomm)
}
