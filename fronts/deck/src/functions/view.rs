//! Views of groups, as events tell them.

use std::ffi::c_int;

use landeck::{Gone, ViewMember};
use landeck_c_boundary::pointer;

use crate::arguments::count;
use crate::handle::Handle;
use crate::job;
use crate::mistake::Mistake;
use crate::objects::VIEWS;

pub(crate) unsafe fn members(
    v: *const Handle,
    ids: *mut c_int,
    room: c_int,
    members: *mut c_int,
) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let view = unsafe { VIEWS.at("v", v) }?;
    job::check()?;
    // SAFETY: the program gave room for so many numbers, and the place of one.
    unsafe {
        write_all("ids", ids, room, view.members().iter().map(number_of))?;
        write_count("members", members, view.members().len())
    }
}

pub(crate) unsafe fn joined(
    v: *const Handle,
    ids: *mut c_int,
    room: c_int,
    joined: *mut c_int,
) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let view = unsafe { VIEWS.at("v", v) }?;
    job::check()?;
    // SAFETY: the program gave room for so many numbers, and the place of one.
    unsafe {
        write_all("ids", ids, room, view.joined().iter().map(number_of))?;
        write_count("joined", joined, view.joined().len())
    }
}

pub(crate) unsafe fn departed(
    v: *const Handle,
    ids: *mut c_int,
    causes: *mut c_int,
    room: c_int,
    departed: *mut c_int,
) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let view = unsafe { VIEWS.at("v", v) }?;
    job::check()?;
    let gone = view.departed();
    // SAFETY: the program gave room for so many numbers, twice, and the place of one.
    unsafe {
        write_all("ids", ids, room, gone.iter().map(|(member, _)| number_of(member)))?;
        write_all("causes", causes, room, gone.iter().map(|(_, how)| cause(*how)))?;
        write_count("departed", departed, gone.len())
    }
}

pub(crate) unsafe fn destroy(v: *mut Handle) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let handle = unsafe { pointer::read("v", v) }?;
    job::check()?;
    VIEWS.remove(handle).map(drop)
}

fn number_of(member: &ViewMember) -> c_int {
    member.id as c_int
}

fn cause(how: Gone) -> c_int {
    match how {
        Gone::Left => 1,
        Gone::Died => 2,
        Gone::Evicted => 3,
        Gone::HostLost => 4,
    }
}

/// Writes numbers, as far as there is room.
///
/// # Safety
/// Unless null or misaligned, `place` has room for so many.
unsafe fn write_all(
    argument: &'static str,
    place: *mut c_int,
    room: c_int,
    numbers: impl Iterator<Item = c_int>,
) -> Result<(), Mistake> {
    let room = count("room", room)?;
    // SAFETY: the caller's promise.
    let places = unsafe { pointer::slice_mut(argument, place, room) }?;
    places.iter_mut().zip(numbers).for_each(|(place, number)| *place = number);
    Ok(())
}

/// # Safety
/// Unless null or misaligned, `place` is writable.
unsafe fn write_count(
    argument: &'static str,
    place: *mut c_int,
    number: usize,
) -> Result<(), Mistake> {
    // SAFETY: the caller's promise.
    Ok(unsafe { pointer::write(argument, place, number as c_int) }?)
}
