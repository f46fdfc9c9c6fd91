//! The shells of the chapter `communicator`. Made by `cargo xtask mpi`.

use super::*;
use crate::functions::communicator as bodies;

works! {
    fn MPI_Comm_compare / PMPI_Comm_compare(comm1: Handle, comm2: Handle, result: *mut c_int) on Origin::Communicator(comm1) =>
    bodies::comm_compare(comm1, comm2, result)
}

works! {
    fn MPI_Comm_get_info / PMPI_Comm_get_info(comm: Handle, info_used: *mut Handle) on Origin::Communicator(comm) =>
    bodies::comm_get_info(comm, info_used)
}

works! {
    fn MPI_Comm_get_name / PMPI_Comm_get_name(comm: Handle, comm_name: *mut c_char, resultlen: *mut c_int) on Origin::Communicator(comm) =>
    bodies::comm_get_name(comm, comm_name, resultlen)
}

works! {
    fn MPI_Comm_get_parent / PMPI_Comm_get_parent(parent: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::comm_get_parent(parent) }
}

works! {
    fn MPI_Comm_group / PMPI_Comm_group(comm: Handle, group: *mut Handle) on Origin::Communicator(comm) =>
    bodies::comm_group(comm, group)
}

works! {
    fn MPI_Comm_rank / PMPI_Comm_rank(comm: Handle, rank: *mut c_int) on Origin::Communicator(comm) =>
    bodies::comm_rank(comm, rank)
}

works! {
    fn MPI_Comm_set_info / PMPI_Comm_set_info(comm: Handle, info: Handle) on Origin::Communicator(comm) =>
    bodies::comm_set_info(comm, info)
}

works! {
    fn MPI_Comm_set_name / PMPI_Comm_set_name(comm: Handle, comm_name: *const c_char) on Origin::Communicator(comm) =>
    bodies::comm_set_name(comm, comm_name)
}

works! {
    fn MPI_Comm_size / PMPI_Comm_size(comm: Handle, size: *mut c_int) on Origin::Communicator(comm) =>
    bodies::comm_size(comm, size)
}
