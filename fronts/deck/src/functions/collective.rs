//! Collective operations.

use std::ffi::{CStr, c_char, c_int};
use std::sync::Arc;

use landeck::collectives::Preset;
use landeck::{Message, MessageWorld};
use landeck_c_boundary::string;

use crate::arguments::operation;
use crate::handle::Handle;
use crate::mistake::Mistake;
use crate::objects::group::Group;
use crate::objects::{GROUPS, MESSAGES, message};
use crate::{errors, job};

/// Longest name of an architecture.
const ARCHITECTURE_BYTES_MAX: usize = 4096;

pub(crate) unsafe fn barrier(g: *mut Handle) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let group = unsafe { group(g) }?;
    Ok(group.together()?.world()?.barrier()?)
}

pub(crate) unsafe fn bcast(g: *mut Handle, m: *mut Handle, root: c_int) -> Result<(), Mistake> {
    // SAFETY: the program gave the places of objects.
    let (group, message) = unsafe { (group(g)?, MESSAGES.at("m", m)?) };
    let mut together = group.together()?;
    let root = together.rank_of(root)?;
    let world = together.world()?;
    Ok(world.broadcast(&mut *message.use_alone()?, root)?)
}

pub(crate) unsafe fn scatter(
    g: *mut Handle,
    all: *mut Handle,
    own: *mut Handle,
    root: c_int,
) -> Result<(), Mistake> {
    // SAFETY: the program gave the places of objects.
    let (group, own) = unsafe { (group(g)?, MESSAGES.at("own", own)?) };
    let mut together = group.together()?;
    let root = together.rank_of(root)?;
    let world = together.world()?;
    // SAFETY: as above.
    let all = unsafe { at_root("all", all, world, root) }?;
    // The parts share the memory of the whole, which so may be replaced by one of them.
    let all = all.map(|all| Ok::<_, Mistake>(all.use_alone()?.clone())).transpose()?;
    Ok(world.scatter(&all.unwrap_or_default(), &mut *own.use_alone()?, root)?)
}

pub(crate) unsafe fn gather(
    g: *mut Handle,
    own: *mut Handle,
    all: *mut Handle,
    root: c_int,
) -> Result<(), Mistake> {
    // SAFETY: the program gave the places of objects.
    let (group, own) = unsafe { (group(g)?, MESSAGES.at("own", own)?) };
    let mut together = group.together()?;
    let root = together.rank_of(root)?;
    let world = together.world()?;
    // SAFETY: as above.
    let all = unsafe { at_root("all", all, world, root) }?;
    replaced(&own, all.as_ref(), |own, all| Ok(world.gather(own, all, root)?))
}

pub(crate) unsafe fn gather_any(
    g: *mut Handle,
    own: *mut Handle,
    all: *mut Handle,
    root: c_int,
) -> Result<(), Mistake> {
    // SAFETY: the program gave the places of objects.
    let (group, own) = unsafe { (group(g)?, MESSAGES.at("own", own)?) };
    let mut together = group.together()?;
    let root = together.rank_of(root)?;
    let world = together.world()?;
    // SAFETY: as above.
    let all = unsafe { at_root("all", all, world, root) }?;
    replaced(&own, all.as_ref(), |own, all| {
        if let Some(messages) = world.gather_any(own, root)? {
            *all = joined(&messages);
        }
        Ok(())
    })
}

pub(crate) unsafe fn allgather(
    g: *mut Handle,
    own: *mut Handle,
    all: *mut Handle,
) -> Result<(), Mistake> {
    // SAFETY: the program gave the places of objects.
    let (group, own, all) =
        unsafe { (group(g)?, MESSAGES.at("own", own)?, MESSAGES.at("all", all)?) };
    let mut together = group.together()?;
    let world = together.world()?;
    replaced(&own, Some(&all), |own, all| Ok(world.all_gather(own, all)?))
}

pub(crate) unsafe fn allgather_any(
    g: *mut Handle,
    own: *mut Handle,
    all: *mut Handle,
) -> Result<(), Mistake> {
    // SAFETY: the program gave the places of objects.
    let (group, own, all) =
        unsafe { (group(g)?, MESSAGES.at("own", own)?, MESSAGES.at("all", all)?) };
    let mut together = group.together()?;
    let world = together.world()?;
    replaced(&own, Some(&all), |own, all| {
        *all = joined(&world.all_gather_any(own)?);
        Ok(())
    })
}

pub(crate) unsafe fn reduce(
    g: *mut Handle,
    own: *mut Handle,
    result: *mut Handle,
    op: c_int,
    root: c_int,
) -> Result<(), Mistake> {
    // SAFETY: the program gave the places of objects.
    let (group, own) = unsafe { (group(g)?, MESSAGES.at("own", own)?) };
    let combine = operation(op)?;
    let mut together = group.together()?;
    let root = together.rank_of(root)?;
    let world = together.world()?;
    // SAFETY: as above.
    let result = unsafe { at_root("result", result, world, root) }?;
    replaced(&own, result.as_ref(), |own, result| Ok(world.reduce(own, result, combine, root)?))
}

pub(crate) unsafe fn allreduce(
    g: *mut Handle,
    own: *mut Handle,
    result: *mut Handle,
    op: c_int,
) -> Result<(), Mistake> {
    // SAFETY: the program gave the places of objects.
    let (group, own, result) =
        unsafe { (group(g)?, MESSAGES.at("own", own)?, MESSAGES.at("result", result)?) };
    let combine = operation(op)?;
    let mut together = group.together()?;
    let world = together.world()?;
    replaced(&own, Some(&result), |own, result| Ok(world.all_reduce(own, result, combine)?))
}

pub(crate) unsafe fn use_(g: *mut Handle, architecture: *const c_char) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let group = unsafe { group(g) }?;
    let preset = match architecture.is_null() {
        true => None,
        false => {
            // SAFETY: the program gave a name.
            let name =
                unsafe { string::read("architecture", architecture, ARCHITECTURE_BYTES_MAX) }?;
            Some(preset(name)?)
        }
    };
    group.go_by(preset)
}

fn preset(name: &CStr) -> Result<Preset, Mistake> {
    let parsed = name.to_string_lossy().parse::<Preset>();
    parsed.map_err(|error| Mistake::new(errors::ARCHITECTURE, error.to_string()))
}

/// # Safety
/// Unless null or misaligned, `g` is readable.
unsafe fn group(g: *mut Handle) -> Result<Arc<Group>, Mistake> {
    // SAFETY: the caller's promise.
    let group = unsafe { GROUPS.at("g", g) }?;
    job::check()?;
    Ok(group)
}

/// The message that is used at the root only.
///
/// # Safety
/// At the root, unless null or misaligned, it is readable.
unsafe fn at_root(
    argument: &'static str,
    place: *mut Handle,
    world: &MessageWorld,
    root: usize,
) -> Result<Option<Arc<message::Message>>, Mistake> {
    if world.world().rank() != root {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    unsafe { MESSAGES.at(argument, place) }.map(Some)
}

/// Calls with what a member brings and what it gets, which may be the same message.
fn replaced(
    own: &Arc<message::Message>,
    result: Option<&Arc<message::Message>>,
    call: impl FnOnce(&Message, &mut Message) -> Result<(), Mistake>,
) -> Result<(), Mistake> {
    match result {
        None => call(&*own.use_alone()?, &mut Message::new()),
        Some(result) if Arc::ptr_eq(own, result) => {
            let mut result = result.use_alone()?;
            let own = result.clone();
            call(&own, &mut result)
        }
        Some(result) => {
            let (own, mut result) = (own.use_alone()?, result.use_alone()?);
            call(&own, &mut result)
        }
    }
}

fn joined(messages: &[Message]) -> Message {
    let mut all = Message::new();
    for message in messages {
        all.join(message);
    }
    all
}
