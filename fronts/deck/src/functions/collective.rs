//! Collective operations.

use std::ffi::{CStr, c_char, c_int};

use landeck::unstable::collectives::Preset;
use landeck::{Incast, Message, MessageWorld};
use landeck_c_boundary::string;

use crate::arguments::operation;
use crate::handle::Handle;
use crate::mistake::Mistake;
use crate::objects::group::Group;
use crate::objects::message::InUse;
use crate::objects::{GROUPS, MESSAGES};
use crate::recent::Used;
use crate::{errors, job};

/// Longest name of a pace.
const PACE_BYTES_MAX: usize = 64;
/// Longest name of an architecture.
const ARCHITECTURE_BYTES_MAX: usize = 4096;

pub(crate) unsafe fn barrier(g: *mut Handle) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let group = unsafe { group(g) }?;
    Ok(group.together()?.world()?.barrier()?)
}

pub(crate) unsafe fn bcast(g: *mut Handle, m: *mut Handle, root: c_int) -> Result<(), Mistake> {
    // SAFETY: the program gave the places of objects.
    let (group, mut message) = unsafe { (group(g)?, MESSAGES.at("m", m)?) };
    let mut together = group.together()?;
    let root = together.rank_of(root)?;
    let world = together.world()?;
    Ok(world.broadcast(&mut message, root)?)
}

pub(crate) unsafe fn scatter(
    g: *mut Handle,
    all: *const Handle,
    own: *mut Handle,
    root: c_int,
) -> Result<(), Mistake> {
    // SAFETY: the program gave the places of objects.
    let (group, mut own) = unsafe { (group(g)?, MESSAGES.at("own", own)?) };
    let mut together = group.together()?;
    let root = together.rank_of(root)?;
    let world = together.world()?;
    if world.world().rank() != root {
        return Ok(world.scatter(&Message::new(), &mut own, root)?);
    }
    // SAFETY: the program gave the place of an object.
    let all = unsafe { MESSAGES.at_beside(&own, "all", all) }?;
    match all {
        Some(all) => Ok(world.scatter(&all, &mut own, root)?),
        None => {
            let all = own.clone();
            Ok(world.scatter(&all, &mut own, root)?)
        }
    }
}

pub(crate) unsafe fn gather(
    g: *mut Handle,
    own: *const Handle,
    all: *mut Handle,
    root: c_int,
) -> Result<(), Mistake> {
    // SAFETY: the program gave the places of objects.
    unsafe {
        to_root(g, own, ("all", all), root, |world, own, all, root| world.gather(own, all, root))
    }
}

pub(crate) unsafe fn gather_any(
    g: *mut Handle,
    own: *const Handle,
    all: *mut Handle,
    root: c_int,
) -> Result<(), Mistake> {
    let gather = |world: &mut MessageWorld, own: &Message, all: &mut Message, root| {
        if let Some(messages) = world.gather_any(own, root)? {
            *all = joined(&messages);
        }
        Ok(())
    };
    // SAFETY: the program gave the places of objects.
    unsafe { to_root(g, own, ("all", all), root, gather) }
}

pub(crate) unsafe fn allgather(
    g: *mut Handle,
    own: *const Handle,
    all: *mut Handle,
) -> Result<(), Mistake> {
    // SAFETY: the program gave the places of objects.
    unsafe { to_all(g, own, ("all", all), |world, own, all| world.all_gather(own, all)) }
}

pub(crate) unsafe fn allgather_any(
    g: *mut Handle,
    own: *const Handle,
    all: *mut Handle,
) -> Result<(), Mistake> {
    let gather = |world: &mut MessageWorld, own: &Message, all: &mut Message| {
        *all = joined(&world.all_gather_any(own)?);
        Ok(())
    };
    // SAFETY: the program gave the places of objects.
    unsafe { to_all(g, own, ("all", all), gather) }
}

pub(crate) unsafe fn reduce(
    g: *mut Handle,
    own: *const Handle,
    result: *mut Handle,
    op: c_int,
    root: c_int,
) -> Result<(), Mistake> {
    let combine = operation(op)?;
    let reduce = |world: &mut MessageWorld, own: &Message, result: &mut Message, root| {
        world.reduce(own, result, combine, root)
    };
    // SAFETY: the program gave the places of objects.
    unsafe { to_root(g, own, ("result", result), root, reduce) }
}

pub(crate) unsafe fn allreduce(
    g: *mut Handle,
    own: *const Handle,
    result: *mut Handle,
    op: c_int,
) -> Result<(), Mistake> {
    let combine = operation(op)?;
    let reduce = |world: &mut MessageWorld, own: &Message, result: &mut Message| {
        world.all_reduce(own, result, combine)
    };
    // SAFETY: the program gave the places of objects.
    unsafe { to_all(g, own, ("result", result), reduce) }
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

pub(crate) unsafe fn pace(g: *mut Handle, pace: *const c_char) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let group = unsafe { group(g) }?;
    // SAFETY: the program gave a name.
    let name = unsafe { string::read("pace", pace, PACE_BYTES_MAX) }?.to_string_lossy();
    let wish = Incast::from_words(&name);
    group.set_pace(wish.ok_or_else(|| Mistake::value("pace", &name, Incast::WORDS))?)
}

fn preset(name: &CStr) -> Result<Preset, Mistake> {
    let parsed = name.to_string_lossy().parse::<Preset>();
    parsed.map_err(|error| Mistake::new(errors::ARCHITECTURE, error.to_string()))
}

/// # Safety
/// Unless null or misaligned, `g` is readable.
#[inline(always)]
unsafe fn group(g: *mut Handle) -> Result<Used<Group>, Mistake> {
    // SAFETY: the caller's promise.
    let group = unsafe { GROUPS.at("g", g) }?;
    job::check()?;
    Ok(group)
}

/// Runs an operation to which each member brings a message, and of which the root alone gets one: the argument with
/// that name.
///
/// # Safety
/// Unless null or misaligned, `g` and `own` are readable, and so is the result at the root.
unsafe fn to_root(
    g: *mut Handle,
    own: *const Handle,
    (argument, result): (&'static str, *mut Handle),
    root: c_int,
    call: impl FnOnce(&mut MessageWorld, &Message, &mut Message, usize) -> landeck::Result<()>,
) -> Result<(), Mistake> {
    // SAFETY: the caller's promise.
    let (group, own) = unsafe { (group(g)?, MESSAGES.at("own", own)?) };
    let mut together = group.together()?;
    let root = together.rank_of(root)?;
    let world = together.world()?;
    if world.world().rank() != root {
        return Ok(call(world, &own, &mut Message::new(), root)?);
    }
    // SAFETY: as above.
    let result = unsafe { MESSAGES.at_beside(&own, argument, result) }?;
    replaced(own, result, |own, result| Ok(call(world, own, result, root)?))
}

/// Runs an operation to which each member brings a message, and of which each member gets one: the argument with
/// that name.
///
/// # Safety
/// Unless null or misaligned, `g`, `own` and the result are readable.
unsafe fn to_all(
    g: *mut Handle,
    own: *const Handle,
    (argument, result): (&'static str, *mut Handle),
    call: impl FnOnce(&mut MessageWorld, &Message, &mut Message) -> landeck::Result<()>,
) -> Result<(), Mistake> {
    // SAFETY: the caller's promise.
    let (group, own) = unsafe { (group(g)?, MESSAGES.at("own", own)?) };
    // SAFETY: as above.
    let result = unsafe { MESSAGES.at_beside(&own, argument, result) }?;
    let mut together = group.together()?;
    let world = together.world()?;
    replaced(own, result, |own, result| Ok(call(world, own, result)?))
}

/// Calls with what a member brings and what it gets; none where that is the same message.
#[inline(always)]
fn replaced(
    mut own: InUse<'_>,
    result: Option<InUse<'_>>,
    call: impl FnOnce(&Message, &mut Message) -> Result<(), Mistake>,
) -> Result<(), Mistake> {
    match result {
        Some(mut result) => call(&own, &mut result),
        None => {
            let brought = own.clone();
            call(&brought, &mut own)
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
