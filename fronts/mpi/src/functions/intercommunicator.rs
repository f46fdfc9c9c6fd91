//! Intercommunicators: two groups that talk to each other.

use std::ffi::{c_char, c_int};
use std::sync::Arc;

use landeck_c_boundary::pointer;

use crate::abi::{ERR_COMM, ERR_GROUP, Handle};
use crate::arguments::{give, tag as tag_of};
use crate::functions::communicator_creation::{check_member, name_of, only_one_group, ranks_of};
use crate::job;
use crate::mistake::Mistake;
use crate::objects::communicator::{self, Communicator, Remote};
use crate::objects::error_handler;
use crate::objects::group;
use crate::objects::info;
use crate::objects::kind::Kind;

/// Whether it is one.
pub(crate) unsafe fn comm_test_inter(comm: Handle, flag: *mut c_int) -> Result<(), Mistake> {
    let communicator = communicator::get("comm", comm)?;
    // SAFETY: the program says that it is writable.
    unsafe { give("flag", flag, c_int::from(communicator.remote.is_some())) }
}

/// How many processes the other side has.
pub(crate) unsafe fn comm_remote_size(comm: Handle, size: *mut c_int) -> Result<(), Mistake> {
    let remote = remote_of("comm", communicator::get("comm", comm)?)?;
    // SAFETY: the program says that it is writable.
    unsafe { give("size", size, remote.group.size() as c_int) }
}

/// The processes of the other side.
pub(crate) unsafe fn comm_remote_group(comm: Handle, group: *mut Handle) -> Result<(), Mistake> {
    let remote = remote_of("comm", communicator::get("comm", comm)?)?;
    pointer::check("group", group, 1)?;
    // SAFETY: checked above; the program says that it is writable.
    unsafe { give("group", group, group::keep(Arc::clone(&remote.group))?) }
}

/// Makes one of two communicators, whose leaders have one in common.
pub(crate) unsafe fn intercomm_create(
    local_comm: Handle,
    local_leader: c_int,
    peer_comm: Handle,
    remote_leader: c_int,
    tag: c_int,
    newintercomm: *mut Handle,
) -> Result<(), Mistake> {
    let communicator = communicator::get("local_comm", local_comm)?;
    only_one_group(communicator)?;
    let leader = leader_of("local_leader", local_leader, communicator.size)?;
    let tag = tag_of(tag)?;
    pointer::check("newintercomm", newintercomm, 1)?;
    let other = match communicator.rank as usize == leader {
        false => None,
        true => {
            let (between, size) = communicator::get("peer_comm", peer_comm)?.messages();
            Some((between, leader_of("remote_leader", remote_leader, size)?))
        }
    };
    let bridge = communicator.world.bridge(leader, other, tag)?;
    let made = communicator::keep(communicator.child_across(bridge));
    // SAFETY: checked above; the program says that it is writable.
    unsafe { give("newintercomm", newintercomm, made) }
}

/// Makes one of two groups, whose members alone call this.
#[allow(clippy::too_many_arguments)] // They are the standard's.
pub(crate) unsafe fn intercomm_create_from_groups(
    local_group: Handle,
    local_leader: c_int,
    remote_group: Handle,
    remote_leader: c_int,
    stringtag: *const c_char,
    info: Handle,
    errhandler: Handle,
    newintercomm: *mut Handle,
) -> Result<(), Mistake> {
    let local = group::get("local_group", local_group)?;
    let leader = leader_of("local_leader", local_leader, local.size())?;
    // SAFETY: the program gives a text, or it is refused.
    let name = unsafe { name_of("stringtag", stringtag)? };
    let hints = info::snapshot_or_empty("info", info)?;
    error_handler::reaction("errhandler", errhandler, Kind::Communicator)?;
    pointer::check("newintercomm", newintercomm, 1)?;
    check_member("local_group", &local)?;
    let other = match local.rank == Some(leader as u32) {
        false => None,
        true => {
            let remote = group::get("remote_group", remote_group)?;
            let leader = leader_of("remote_leader", remote_leader, remote.size())?;
            Some(job::rank_of(remote.members[leader])?)
        }
    };
    let bridge = job::everybody()?.bridge_named(&ranks_of(&local)?, leader, other, &name)?;
    let made = Communicator::across(bridge, local.session.clone());
    made.error_handler.set("errhandler", errhandler)?;
    made.set_hints(hints);
    // SAFETY: checked above; the program says that it is writable.
    unsafe { give("newintercomm", newintercomm, communicator::keep(made)) }
}

/// MPI_Intercomm_merge: a communicator of both groups; the group with `high` comes second.
pub(crate) unsafe fn intercomm_merge(
    intercomm: Handle,
    high: c_int,
    newintracomm: *mut Handle,
) -> Result<(), Mistake> {
    let communicator = communicator::get("intercomm", intercomm)?;
    let remote = remote_of("intercomm", communicator)?;
    pointer::check("newintracomm", newintracomm, 1)?;
    let world = remote.bridge.merge(high != 0)?;
    let made = communicator::keep(communicator.child(world));
    // SAFETY: checked above; the program says that it is writable.
    unsafe { give("newintracomm", newintracomm, made) }
}

/// The other side, which an intercommunicator has.
fn remote_of<'a>(argument: &str, communicator: &'a Communicator) -> Result<&'a Remote, Mistake> {
    communicator.remote.as_ref().ok_or_else(|| {
        let text = format!("{argument} is a communicator of one group; it has no remote one");
        Mistake::new(ERR_COMM, text)
    })
}

fn leader_of(argument: &str, rank: c_int, size: u32) -> Result<usize, Mistake> {
    if size == 0 {
        let text = format!("{argument} is {rank}, but the group is empty");
        return Err(Mistake::new(ERR_GROUP, text));
    }
    let place = usize::try_from(rank).ok().filter(|rank| *rank < size as usize);
    place.ok_or_else(|| Mistake::rank(argument, rank, size))
}
