//! Groups.

use std::ffi::c_int;
use std::sync::Mutex;

use landeck::MessageWorld;
use landeck_c_boundary::pointer;

use crate::handle::Handle;
use crate::mistake::Mistake;
use crate::objects::GROUPS;
use crate::objects::group::Group;
use crate::{errors, job};

pub(crate) unsafe fn world(g: *mut Handle) -> Result<(), Mistake> {
    pointer::check("g", g, 1)?;
    job::node()?;
    if job::is_second() {
        let text = "MPI was initialised first and is this process in MPI_COMM_WORLD: what all do \
                    together is called there";
        return Err(Mistake::known(errors::NOTMEMBER, text));
    }
    let world = job::with(|job| Ok(job.world()))?;
    let group = Group::World(Mutex::new(MessageWorld::new(world)));
    // SAFETY: the program gave the place of an object.
    unsafe { GROUPS.keep("g", g, group) }
}

pub(crate) unsafe fn rank(g: *mut Handle, rank: *mut c_int) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let group = unsafe { GROUPS.at("g", g) }?;
    let number = group.together()?.world().rank();
    // SAFETY: the program gave the place of a number.
    Ok(unsafe { pointer::write("rank", rank, number as c_int) }?)
}

pub(crate) unsafe fn size(g: *mut Handle, members: *mut c_int) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let group = unsafe { GROUPS.at("g", g) }?;
    let number = group.together()?.world().size();
    // SAFETY: the program gave the place of a number.
    Ok(unsafe { pointer::write("members", members, number as c_int) }?)
}
