//! The shells of the chapter `intercommunicator`. Made by `cargo xtask mpi`.

use super::*;
use crate::functions::intercommunicator as bodies;

works! {
    fn MPI_Comm_remote_group / PMPI_Comm_remote_group(comm: Handle, group: *mut Handle) on Origin::Communicator(comm) =>
    bodies::comm_remote_group(comm, group)
}

works! {
    fn MPI_Comm_remote_size / PMPI_Comm_remote_size(comm: Handle, size: *mut c_int) on Origin::Communicator(comm) =>
    bodies::comm_remote_size(comm, size)
}

works! {
    fn MPI_Comm_test_inter / PMPI_Comm_test_inter(comm: Handle, flag: *mut c_int) on Origin::Communicator(comm) =>
    bodies::comm_test_inter(comm, flag)
}

works! {
    fn MPI_Intercomm_create / PMPI_Intercomm_create(local_comm: Handle, local_leader: c_int, peer_comm: Handle, remote_leader: c_int, tag: c_int, newintercomm: *mut Handle) on Origin::Communicator(local_comm) =>
    bodies::intercomm_create(local_comm, local_leader, peer_comm, remote_leader, tag, newintercomm)
}

works! {
    fn MPI_Intercomm_create_from_groups / PMPI_Intercomm_create_from_groups(local_group: Handle, local_leader: c_int, remote_group: Handle, remote_leader: c_int, stringtag: *const c_char, info: Handle, errhandler: Handle, newintercomm: *mut Handle) on Origin::Handler(Kind::Communicator, errhandler) =>
    { inside()?; bodies::intercomm_create_from_groups(local_group, local_leader, remote_group, remote_leader, stringtag, info, errhandler, newintercomm) }
}

works! {
    fn MPI_Intercomm_merge / PMPI_Intercomm_merge(intercomm: Handle, high: c_int, newintracomm: *mut Handle) on Origin::Communicator(intercomm) =>
    bodies::intercomm_merge(intercomm, high, newintracomm)
}
