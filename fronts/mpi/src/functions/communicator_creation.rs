//! Making communicators of others, and freeing them.

use std::ffi::{c_char, c_int};
use std::sync::{Arc, Mutex};

use landeck::raw::Operation;
use landeck::{BridgeDuplication, Duplication};
use landeck_c_boundary::pointer;

use crate::abi::{
    COMM_NULL, COMM_TYPE_HW_GUIDED, COMM_TYPE_HW_UNGUIDED, COMM_TYPE_RESOURCE_GUIDED,
    COMM_TYPE_SHARED, ERR_ARG, ERR_COMM, ERR_GROUP, Handle, INFO_ENV, INFO_NULL, MAX_STRINGTAG_LEN,
    UNDEFINED,
};
use crate::arguments::{give, tag as tag_of, text};
use crate::functions::group::places_in;
use crate::mistake::Mistake;
use crate::objects::communicator::{self, Communicator};
use crate::objects::group::{self, Group};
use crate::objects::info::{self, Info};
use crate::objects::kind::Kind;
use crate::objects::process_set::ProcessSet;
use crate::objects::request::{self, Pending, Request};
use crate::objects::{attributes, error_handler};
use crate::walk::Walk;
use crate::{hardware, job};

/// A copy with messages of its own; the attributes are copied as their keys say, the hints too.
pub(crate) unsafe fn comm_dup(comm: Handle, newcomm: *mut Handle) -> Result<Walk, Mistake> {
    let hints = communicator::get("comm", comm)?.hints();
    // SAFETY: the program says that the place is writable.
    unsafe { duplicate(comm, hints, newcomm) }
}

/// MPI_Comm_dup_with_info: a copy with hints of its own.
pub(crate) unsafe fn comm_dup_with_info(
    comm: Handle,
    info: Handle,
    newcomm: *mut Handle,
) -> Result<Walk, Mistake> {
    communicator::get("comm", comm)?;
    let hints = info::snapshot_or_empty("info", info)?;
    // SAFETY: the program says that the place is writable.
    unsafe { duplicate(comm, hints, newcomm) }
}

/// Begins to make a copy, which is there when the request is complete.
pub(crate) unsafe fn comm_idup(
    comm: Handle,
    newcomm: *mut Handle,
    request: *mut Handle,
) -> Result<(), Mistake> {
    let hints = communicator::get("comm", comm)?.hints();
    // SAFETY: the program says that both places are writable, the first until the end.
    unsafe { start_duplicate(comm, hints, newcomm, request) }
}

/// MPI_Comm_idup_with_info: a non-blocking copy with hints of its own.
pub(crate) unsafe fn comm_idup_with_info(
    comm: Handle,
    info: Handle,
    newcomm: *mut Handle,
    request: *mut Handle,
) -> Result<(), Mistake> {
    communicator::get("comm", comm)?;
    let hints = info::snapshot_or_empty("info", info)?;
    // SAFETY: the program says that both places are writable, the first until the end.
    unsafe { start_duplicate(comm, hints, newcomm, request) }
}

/// A communicator of the members of a group, which all members of this one give alike; on an
/// intercommunicator each side gives a group of its own.
pub(crate) unsafe fn comm_create(
    comm: Handle,
    group: Handle,
    newcomm: *mut Handle,
) -> Result<(), Mistake> {
    let communicator = communicator::get("comm", comm)?;
    let ranks = ranks_in("group", &*group::get("group", group)?, &communicator.group)?;
    pointer::check("newcomm", newcomm, 1)?;
    let made = match &communicator.remote {
        None => communicator.world.subset(&ranks)?.map(|world| communicator.child(world)),
        Some(remote) => {
            let place = ranks.iter().position(|rank| *rank == communicator.rank as usize);
            let bridge = remote.bridge.split(place.map(|_| 0), place.unwrap_or(0) as i64)?;
            bridge.map(|bridge| communicator.child_across(bridge))
        }
    };
    // SAFETY: checked above; the program says that it is writable.
    unsafe { give("newcomm", newcomm, made.map_or(COMM_NULL, communicator::keep)) }
}

/// MPI_Comm_create_group: a communicator of the members of a group; only they call it.
pub(crate) unsafe fn comm_create_group(
    comm: Handle,
    group: Handle,
    tag: c_int,
    newcomm: *mut Handle,
) -> Result<(), Mistake> {
    let communicator = communicator::get("comm", comm)?;
    only_one_group(communicator)?;
    let group = group::get("group", group)?;
    let ranks = ranks_in("group", &group, &communicator.group)?;
    let tag = tag_of(tag)?;
    pointer::check("newcomm", newcomm, 1)?;
    let made = match group.rank {
        None => COMM_NULL,
        Some(_) => {
            let world = communicator.world.among(&ranks, tag)?;
            communicator::keep(communicator.child(world))
        }
    };
    // SAFETY: checked above; the program says that it is writable.
    unsafe { give("newcomm", newcomm, made) }
}

/// MPI_Comm_create_from_group: a communicator of the members of a group; only they call it, and they need no other
/// communicator.
pub(crate) unsafe fn comm_create_from_group(
    group: Handle,
    stringtag: *const c_char,
    info: Handle,
    errhandler: Handle,
    newcomm: *mut Handle,
) -> Result<(), Mistake> {
    let group = group::get("group", group)?;
    // SAFETY: the program gives a text, or it is refused.
    let name = unsafe { name_of("stringtag", stringtag)? };
    let hints = info::snapshot_or_empty("info", info)?;
    error_handler::reaction("errhandler", errhandler, Kind::Communicator)?;
    pointer::check("newcomm", newcomm, 1)?;
    let made = match group.members.is_empty() {
        true => COMM_NULL,
        false => {
            check_member("group", &group)?;
            let world = job::everybody()?.named(&ranks_of(&group)?, &format!("group {name}"))?;
            let made = Communicator::new(world, group.session.clone());
            made.error_handler.set("errhandler", errhandler)?;
            made.set_hints(hints);
            communicator::keep(made)
        }
    };
    // SAFETY: checked above; the program says that it is writable.
    unsafe { give("newcomm", newcomm, made) }
}

/// Divides a communicator by colors.
pub(crate) unsafe fn comm_split(
    comm: Handle,
    color: c_int,
    key: c_int,
    newcomm: *mut Handle,
) -> Result<(), Mistake> {
    let communicator = communicator::get("comm", comm)?;
    pointer::check("newcomm", newcomm, 1)?;
    let color = match color {
        UNDEFINED => None,
        color => Some(u32::try_from(color).map_err(|_| {
            let text = format!("color is {color}; it must be 0 or more, or MPI_UNDEFINED");
            Mistake::new(ERR_ARG, text)
        })?),
    };
    let made = divided(communicator, color, key)?;
    // SAFETY: checked above; the program says that it is writable.
    unsafe { give("newcomm", newcomm, made.map_or(COMM_NULL, communicator::keep)) }
}

/// Divides a communicator by what its processes share.
pub(crate) unsafe fn comm_split_type(
    comm: Handle,
    split_type: c_int,
    key: c_int,
    info: Handle,
    newcomm: *mut Handle,
) -> Result<(), Mistake> {
    let communicator = communicator::get("comm", comm)?;
    pointer::check("newcomm", newcomm, 1)?;
    let hints = info::snapshot_or_empty("info", info)?;
    let made = match sharing(split_type, &hints)? {
        Sharing::Nothing => divided(communicator, None, key)?,
        Sharing::Host => of_host(communicator, key)?,
        // No part of a host is known that some processes have in common and others have not.
        Sharing::PartOfHost => {
            of_host(communicator, key)?.filter(|made| made.size < communicator.size)
        }
        Sharing::Hardware(number) => {
            // Other hosts have the same numbers.
            let same = divided(communicator, Some(number), key)?;
            same.map_or(Ok(None), |same| of_host(&same, key))?
        }
        Sharing::Set(set) => {
            divided(communicator, Some(set.color(job::rank_of(job::own_peer()?)?)), key)?
        }
    };
    // The program learns what its processes have in common.
    if made.is_some()
        && split_type == COMM_TYPE_HW_UNGUIDED
        && ![INFO_NULL, INFO_ENV].contains(&info)
    {
        info::locked("info", info)?.set(RESOURCE_TYPE, SHARED_MEMORY);
    }
    // SAFETY: checked above; the program says that it is writable.
    unsafe { give("newcomm", newcomm, made.map_or(COMM_NULL, communicator::keep)) }
}

/// Frees a communicator: its attributes are deleted; what goes on in it ends well.
pub(crate) unsafe fn comm_free(comm: *mut Handle) -> Result<Walk, Mistake> {
    // SAFETY: the program gives the address of a handle, or it is refused.
    let handle = unsafe { pointer::read("comm", comm)? };
    let communicator = communicator::get("comm", handle)?;
    if communicator.is_predefined() {
        return Err(Kind::Communicator.refuse_predefined("comm", handle));
    }
    let put_back = |list| communicator.attributes.replace(list);
    attributes::delete(handle, communicator.attributes.take_all(), put_back, move || {
        communicator::free("comm", handle)?;
        // SAFETY: read above; the program says that it is writable too.
        unsafe { give("comm", comm, COMM_NULL) }
    })
}

/// MPI_Comm_disconnect: frees the communicator when all members of the own group have called it, so no member sends
/// any more.
pub(crate) unsafe fn comm_disconnect(comm: *mut Handle) -> Result<Walk, Mistake> {
    // SAFETY: the program gives the address of a handle, or it is refused.
    let handle = unsafe { pointer::read("comm", comm)? };
    let communicator = communicator::get("comm", handle)?;
    if !communicator.is_predefined() {
        communicator.world.barrier()?;
    }
    // SAFETY: as above.
    unsafe { comm_free(comm) }
}

/// Refuses an intercommunicator.
pub(crate) fn only_one_group(communicator: &Communicator) -> Result<(), Mistake> {
    match communicator.remote {
        None => Ok(()),
        Some(_) => Err(Mistake::new(
            ERR_COMM,
            "comm is an intercommunicator; this function wants one of a single group",
        )),
    }
}

/// The name under which processes meet.
pub(super) unsafe fn name_of(
    argument: &'static str,
    name: *const c_char,
) -> Result<String, Mistake> {
    // SAFETY: as the caller says.
    unsafe { text(argument, name, MAX_STRINGTAG_LEN as usize - 1) }
}

/// Refuses a group without this process.
pub(super) fn check_member(argument: &str, group: &Group) -> Result<(), Mistake> {
    match group.rank {
        Some(_) => Ok(()),
        None => Err(Mistake::new(
            ERR_GROUP,
            format_args!("{argument} does not contain this process; only its members call this"),
        )),
    }
}

/// The ranks that the members of a group have among all processes of the job.
pub(super) fn ranks_of(group: &Group) -> Result<Vec<usize>, Mistake> {
    group.members.iter().map(|&peer| job::rank_of(peer)).collect()
}

const RESOURCE_TYPE: &str = "mpi_hw_resource_type";
const SHARED_MEMORY: &str = "mpi_shared_memory";
const SET_NAME: &str = "mpi_pset_name";

/// The property that the processes of a new communicator share.
enum Sharing {
    /// The process is in none.
    Nothing,
    Host,
    PartOfHost,
    /// The one of this number, of some kind of hardware.
    Hardware(u32),
    Set(ProcessSet),
}

fn sharing(split_type: c_int, hints: &Info) -> Result<Sharing, Mistake> {
    let guided = match hints.get(RESOURCE_TYPE) {
        Some(SHARED_MEMORY) => Some(Sharing::Host),
        Some(kind) => hardware::single_of(kind).map(Sharing::Hardware),
        None => None,
    };
    Ok(match split_type {
        UNDEFINED => Sharing::Nothing,
        COMM_TYPE_SHARED => Sharing::Host,
        COMM_TYPE_HW_GUIDED => guided.unwrap_or(Sharing::Nothing),
        COMM_TYPE_HW_UNGUIDED => Sharing::PartOfHost,
        COMM_TYPE_RESOURCE_GUIDED => {
            let set = hints.get(SET_NAME).and_then(ProcessSet::of_name);
            guided.or(set.map(Sharing::Set)).unwrap_or(Sharing::Nothing)
        }
        other => {
            let text = format!("split_type is {other}; use one of the MPI_COMM_TYPE_ constants");
            return Err(Mistake::new(ERR_ARG, text));
        }
    })
}

/// The part of a communicator that gives the same color, as a communicator.
pub(super) fn divided(
    communicator: &Communicator,
    color: Option<u32>,
    key: c_int,
) -> Result<Option<Communicator>, Mistake> {
    let key = i64::from(key);
    Ok(match &communicator.remote {
        None => communicator.world.split(color, key)?.map(|world| communicator.child(world)),
        Some(remote) => {
            let bridge = remote.bridge.split(color, key)?;
            bridge.map(|bridge| communicator.child_across(bridge))
        }
    })
}

/// The part of a communicator that is on this process's host.
fn of_host(communicator: &Communicator, key: c_int) -> Result<Option<Communicator>, Mistake> {
    let key = i64::from(key);
    Ok(match &communicator.remote {
        None => Some(communicator.child(communicator.world.split_by_host(key)?)),
        Some(remote) => {
            let bridge = remote.bridge.split_by_host(key)?;
            bridge.map(|bridge| communicator.child_across(bridge))
        }
    })
}

/// The ranks that the members of a group have in another one.
fn ranks_in(argument: &str, group: &Group, whole: &Group) -> Result<Vec<usize>, Mistake> {
    let places = places_in(whole);
    let rank = |(rank, member)| {
        places.get(member).copied().ok_or_else(|| {
            let text = format!("rank {rank} of {argument} is no member of comm's group");
            Mistake::new(ERR_GROUP, text)
        })
    };
    group.members.iter().enumerate().map(rank).collect()
}

/// Where the handle of a copy goes when it is there.
struct HandleOut(*mut Handle);

// SAFETY: it is the program's to say which thread writes there: the one that completes the request.
unsafe impl Send for HandleOut {}
// SAFETY: as above.
unsafe impl Sync for HandleOut {}

impl HandleOut {
    /// # Safety
    /// It is writable.
    unsafe fn write(&self, handle: Handle) {
        // SAFETY: as the caller says.
        unsafe { self.0.write(handle) }
    }
}

unsafe fn duplicate(comm: Handle, hints: Info, newcomm: *mut Handle) -> Result<Walk, Mistake> {
    pointer::check("newcomm", newcomm, 1)?;
    let communicator = communicator::get("comm", comm)?;
    let made = match &communicator.remote {
        None => communicator.child(communicator.world.duplicate()?),
        Some(remote) => communicator.child_across(remote.bridge.duplicate()?),
    };
    let made = made.into_copy_of(communicator, hints);
    attributes::copy(comm, communicator.attributes.snapshot(), move |copies| {
        made.attributes.replace(copies);
        // SAFETY: checked above; as the caller says, and the call goes on.
        unsafe { give("newcomm", newcomm, communicator::keep(made)) }
    })
}

/// A copy of a communicator that is being made.
enum Copying {
    Own(Box<Duplication>),
    Across(Box<BridgeDuplication>),
}

impl Copying {
    fn start(communicator: &Communicator) -> Result<Self, Mistake> {
        Ok(match &communicator.remote {
            None => Self::Own(Box::new(communicator.world.start_duplicate()?)),
            Some(remote) => Self::Across(Box::new(remote.bridge.start_duplicate()?)),
        })
    }

    fn operation(&self) -> Operation {
        match self {
            Self::Own(world) => world.operation(),
            Self::Across(bridge) => bridge.operation(),
        }
    }

    fn finish(self, parent: &Communicator) -> Result<Communicator, Mistake> {
        Ok(match self {
            Self::Own(world) => parent.child(world.finish_waited()?),
            Self::Across(bridge) => parent.child_across(bridge.finish_waited()?),
        })
    }
}

unsafe fn start_duplicate(
    comm: Handle,
    hints: Info,
    newcomm: *mut Handle,
    request: *mut Handle,
) -> Result<(), Mistake> {
    pointer::check("newcomm", newcomm, 1)?;
    pointer::check("request", request, 1)?;
    let communicator = communicator::get("comm", comm)?;
    let copying = Copying::start(communicator)?;
    let operation = copying.operation();
    let place = HandleOut(newcomm);
    let (parent, snapshot) = (Arc::clone(communicator), communicator.attributes.snapshot());
    let finish = attributes::copying(comm, snapshot, move |copies| {
        let made = copying.finish(&parent)?.into_copy_of(&parent, hints);
        made.attributes.replace(copies);
        // SAFETY: checked above; as the caller says, until the request is complete.
        unsafe { place.write(communicator::keep(made)) };
        Ok(())
    });
    let pending = Pending {
        operation,
        communicator: Arc::clone(communicator),
        rest: Mutex::new(Some(Box::new(finish))),
    };
    // SAFETY: checked above; the program says that it is writable.
    unsafe { give("request", request, request::keep(Request::Collective(pending))) }
}
