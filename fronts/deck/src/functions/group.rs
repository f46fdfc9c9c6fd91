//! Groups.

use std::ffi::{c_char, c_int};
use std::time::Duration;

use landeck::unstable::JobInternals;
use landeck::{GroupOptions, MessageWorld, ServedBy, WhenFull, raw};
use landeck_c_boundary::pointer;

use crate::arguments::{count, name, time};
use crate::handle::Handle;
use crate::mistake::Mistake;
use crate::objects::group::{Group, left};
use crate::objects::{GROUPS, MAILBOXES, MESSAGES};
use crate::recent::Used;
use crate::{errors, job, sized};

/// How a group is made, as C has it. A new option is added at the end and leaves no gap, so that every version has
/// a size of its own.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Options {
    size: usize,
    bytes: usize,
    messages: c_int,
    persistent: c_int,
    when_full: c_int,
    evict_ms: c_int,
    served_by: c_int,
    server_node: c_int,
}

// SAFETY: the struct is of C and begins with its size; whatever its bytes are, its fields are numbers.
unsafe impl sized::Options for Options {
    const FIRST_BYTES: usize = 2 * size_of::<usize>() + 6 * size_of::<c_int>();
    const INITIALISER: &'static str = "DECK_GROUP_OPTIONS_INIT";
}

pub(crate) unsafe fn create(
    g: *mut Handle,
    g_name: *const c_char,
    min: c_int,
) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object, and a name.
    unsafe { make(g, g_name, min, GroupOptions::default()) }
}

pub(crate) unsafe fn create_with(
    g: *mut Handle,
    g_name: *const c_char,
    min: c_int,
    options: *const Options,
) -> Result<(), Mistake> {
    // SAFETY: the program gave options.
    let options = unsafe { sized::read("options", options) }?;
    // SAFETY: the program gave the place of an object, and a name.
    unsafe { make(g, g_name, min, options.understood()?) }
}

pub(crate) unsafe fn open(g: *mut Handle, name_of_it: *const c_char) -> Result<(), Mistake> {
    pointer::check("g", g, 1)?;
    // SAFETY: the program gave a name.
    let name = unsafe { name("name", name_of_it) }?;
    let group = job::with(|job| Ok(job.open_group(name)?))?;
    // SAFETY: the program gave the place of an object.
    unsafe { GROUPS.keep("g", g, Group::named(group, None)) }
}

pub(crate) unsafe fn join(
    g: *mut Handle,
    mb: *mut Handle,
    name_of_it: *const c_char,
) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object, which may be none yet.
    let before = unsafe { pointer::read("g", g) }?;
    // SAFETY: the program gave the place of an object.
    let mailbox = unsafe { MAILBOXES.at("mb", mb) }?;
    // SAFETY: the program gave a name.
    let name = unsafe { name("name", name_of_it) }?;
    let opened = job::with(|job| Ok(job.open_group(name)?))?;
    // An object of this group that is no member becomes one; anything else may be of nothing.
    let known = GROUPS.of(before).ok();
    let known = known.as_deref().and_then(|known| known.as_named().ok());
    let known = known.filter(|named| named.group.number() == opened.number());
    let group = known.map_or(opened, |named| named.group.clone());
    let member = mailbox.as_creator(|mailbox| Ok(group.join(mailbox)?))?;
    let member = match known {
        Some(named) => named.take_in(member),
        None => Some(member),
    };
    let Some(member) = member else { return Ok(()) };
    // SAFETY: the program gave the place of an object.
    unsafe { GROUPS.keep("g", g, Group::named(group, Some(member))) }
}

pub(crate) unsafe fn leave(g: *mut Handle) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let group = unsafe { named(g) }?;
    let membership = group.as_named()?.give_away()?.ok_or_else(left)?;
    Ok(membership.member.leave()?)
}

pub(crate) unsafe fn bcast(g: *mut Handle, msg: *const Handle) -> Result<(), Mistake> {
    // SAFETY: the program gave the places of objects.
    unsafe { bcast_timed(g, msg, -1) }
}

pub(crate) unsafe fn bcast_timed(
    g: *mut Handle,
    msg: *const Handle,
    timeout_ms: c_int,
) -> Result<(), Mistake> {
    // SAFETY: the program gave the places of objects.
    let (group, message) = unsafe { (named(g)?, MESSAGES.at("msg", msg)?) };
    let time = time(timeout_ms)?;
    let named = group.as_named()?;
    let group = &named.group;
    Ok(match (named.seat(), time) {
        (Some(seat), None) => raw::group::broadcast(group, seat, &message),
        (Some(seat), Some(time)) => raw::group::broadcast_within(group, seat, &message, time),
        (None, None) => group.broadcast(&message),
        (None, Some(time)) => group.broadcast_within(&message, time),
    }?)
}

pub(crate) unsafe fn bcast_try(g: *mut Handle, msg: *const Handle) -> Result<(), Mistake> {
    // SAFETY: the program gave the places of objects.
    let (group, message) = unsafe { (named(g)?, MESSAGES.at("msg", msg)?) };
    let named = group.as_named()?;
    Ok(match named.seat() {
        Some(seat) => raw::group::try_broadcast(&named.group, seat, &message),
        None => named.group.try_broadcast(&message),
    }?)
}

pub(crate) unsafe fn bcast_others(g: *mut Handle, msg: *const Handle) -> Result<(), Mistake> {
    // SAFETY: the program gave the places of objects.
    let (group, message) = unsafe { (named(g)?, MESSAGES.at("msg", msg)?) };
    let named = group.as_named()?;
    let seat = named.seat().ok_or_else(left)?;
    Ok(raw::group::broadcast_to_others(&named.group, seat, &message)?)
}

pub(crate) unsafe fn bcast_wait(g: *mut Handle) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    unsafe { bcast_wait_timed(g, -1) }
}

pub(crate) unsafe fn bcast_wait_timed(g: *mut Handle, timeout_ms: c_int) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let group = unsafe { named(g) }?;
    let group = &group.as_named()?.group;
    Ok(match time(timeout_ms)? {
        Some(time) => group.wait_delivered_within(time),
        None => group.wait_delivered(),
    }?)
}

pub(crate) unsafe fn sync(g: *mut Handle) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    unsafe { sync_timed(g, -1) }
}

pub(crate) unsafe fn sync_timed(g: *mut Handle, timeout_ms: c_int) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let group = unsafe { named(g) }?;
    let time = time(timeout_ms)?;
    let mut membership = group.as_named()?.alone()?;
    let member = &mut membership.as_mut().ok_or_else(left)?.member;
    match time {
        Some(time) => Ok(member.sync_within(time)?),
        None => Ok(member.sync()?),
    }
}

pub(crate) unsafe fn id(g: *const Handle, id: *mut c_int) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let group = unsafe { named(g) }?;
    let number = match &*group {
        Group::World(_) => job::node()?,
        Group::Named(named) => named.seat().ok_or_else(left)?.id as c_int,
    };
    // SAFETY: the program gave the place of a number.
    Ok(unsafe { pointer::write("id", id, number) }?)
}

pub(crate) unsafe fn number(g: *const Handle, number: *mut u64) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let group = unsafe { named(g) }?;
    let value = group.as_named()?.group.number();
    // SAFETY: the program gave the place of a number.
    Ok(unsafe { pointer::write("number", number, value) }?)
}

pub(crate) unsafe fn view(
    g: *const Handle,
    ids: *mut c_int,
    room: c_int,
    members: *mut c_int,
) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let group = unsafe { named(g) }?;
    let room = count("room", room)?;
    // SAFETY: the program gave room for so many numbers.
    let ids = unsafe { pointer::slice_mut("ids", ids, room) }?;
    let numbers: Vec<c_int> = match &*group {
        Group::World(_) => {
            let size = job::with(|job| Ok(job.segment().plan().ranks as c_int))?;
            (0..size).collect()
        }
        Group::Named(named) => {
            let view = named.group.view()?;
            view.members.iter().map(|member| member.id as c_int).collect()
        }
    };
    for (place, number) in ids.iter_mut().zip(&numbers) {
        *place = *number;
    }
    // SAFETY: the program gave the place of a number.
    Ok(unsafe { pointer::write("members", members, numbers.len() as c_int) }?)
}

pub(crate) unsafe fn destroy(g: *mut Handle) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    unsafe { destroy_timed(g, -1) }
}

pub(crate) unsafe fn destroy_timed(g: *mut Handle, timeout_ms: c_int) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let (group, handle) = unsafe { (named(g)?, pointer::read("g", g)?) };
    let time = time(timeout_ms)?;
    let named = group.as_named()?;
    let ended = match time {
        Some(time) => named.group.destroy_within(time),
        None => named.group.destroy(),
    };
    // Whoever destroyed it, this object leads to nothing any more.
    let _ = GROUPS.remove(handle);
    Ok(ended?)
}

pub(crate) unsafe fn close(g: *mut Handle) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let (group, handle) = unsafe { (named(g)?, pointer::read("g", g)?) };
    if let Group::Named(named) = &*group {
        drop(named.give_away()?);
    }
    drop(GROUPS.remove(handle)?);
    Ok(())
}

pub(crate) unsafe fn world(g: *mut Handle) -> Result<(), Mistake> {
    pointer::check("g", g, 1)?;
    job::node()?;
    if job::is_second() {
        let text = "MPI was initialised first and is this process in MPI_COMM_WORLD: what all do \
                    together is called there";
        return Err(Mistake::known(errors::NOTMEMBER, text));
    }
    let world = job::with(|job| Ok(job.world()))?;
    let group = Group::world(MessageWorld::new(world));
    // SAFETY: the program gave the place of an object.
    unsafe { GROUPS.keep("g", g, group) }
}

pub(crate) unsafe fn rank(g: *mut Handle, rank: *mut c_int) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let group = unsafe { named(g) }?;
    let number = group.last_together()?.world()?.world().rank();
    // SAFETY: the program gave the place of a number.
    Ok(unsafe { pointer::write("rank", rank, number as c_int) }?)
}

pub(crate) unsafe fn size(g: *mut Handle, members: *mut c_int) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let group = unsafe { named(g) }?;
    let number = group.last_together()?.world()?.world().size();
    // SAFETY: the program gave the place of a number.
    Ok(unsafe { pointer::write("members", members, number as c_int) }?)
}

impl Options {
    /// Returns the options as the Rust API has them.
    fn understood(&self) -> Result<GroupOptions, Mistake> {
        let mut options = GroupOptions::default().persistent(self.persistent != 0);
        match u32::try_from(self.messages) {
            Ok(0) => {}
            Ok(messages) => options = options.messages(messages),
            Err(_) => return Err(Mistake::value("messages", self.messages, "give 1 to 65,536")),
        }
        if self.bytes != 0 {
            options = options.bytes(self.bytes as u64);
        }
        Ok(options.when_full(self.when_full()?).served_by(self.server()?))
    }

    fn when_full(&self) -> Result<WhenFull, Mistake> {
        match (self.when_full, u64::try_from(self.evict_ms)) {
            (0, _) => Ok(WhenFull::Hold),
            (1, Ok(time_ms)) => Ok(WhenFull::Evict(Duration::from_millis(time_ms))),
            (2, _) => Ok(WhenFull::Refuse),
            (1, Err(_)) => Err(Mistake::value("evict_ms", self.evict_ms, "give milliseconds")),
            (other, _) => {
                let choice = "give DECK_HOLD, DECK_EVICT or DECK_REFUSE";
                Err(Mistake::value("when_full", other, choice))
            }
        }
    }

    fn server(&self) -> Result<ServedBy, Mistake> {
        match self.served_by {
            0 => Ok(ServedBy::Nobody),
            1 => Ok(ServedBy::Creator),
            2 => job::place_of(self.server_node),
            3 => Ok(ServedBy::Launcher),
            other => {
                let choice = "give DECK_NOBODY, DECK_CREATOR, DECK_NODE or DECK_LAUNCHER";
                Err(Mistake::value("served_by", other, choice))
            }
        }
    }
}

/// # Safety
/// Unless null or misaligned, `g` is writable; `g_name` as a name.
unsafe fn make(
    g: *mut Handle,
    g_name: *const c_char,
    min: c_int,
    options: GroupOptions,
) -> Result<(), Mistake> {
    pointer::check("g", g, 1)?;
    // SAFETY: the caller's promise.
    let name = unsafe { name("g_name", g_name) }?;
    let options = options.minimum(count("min", min)? as u32);
    let group = job::with(|job| Ok(job.create_group(name, options)?))?;
    // SAFETY: the caller's promise.
    unsafe { GROUPS.keep("g", g, Group::named(group, None)) }
}

/// # Safety
/// Unless null or misaligned, `g` is readable.
unsafe fn named(g: *const Handle) -> Result<Used<Group>, Mistake> {
    // SAFETY: the caller's promise.
    let group = unsafe { GROUPS.at("g", g) }?;
    job::check()?;
    Ok(group)
}
