//! Shared segments.

use std::ffi::{c_char, c_void};

use landeck_c_boundary::pointer;

use crate::arguments::name;
use crate::handle::Handle;
use crate::job;
use crate::mistake::Mistake;
use crate::objects::SEGMENTS;

pub(crate) unsafe fn create(
    g: *mut Handle,
    name_of_it: *const c_char,
    bytes: usize,
) -> Result<(), Mistake> {
    pointer::check("g", g, 1)?;
    // SAFETY: the program gave a name.
    let name = unsafe { name("name", name_of_it) }?;
    let made = job::with(|job| Ok(job.create_segment(name, bytes as u64)?))?;
    // SAFETY: the program gave the place of an object.
    unsafe { SEGMENTS.keep("g", g, made) }
}

pub(crate) unsafe fn fetch(g: *mut Handle, name_of_it: *const c_char) -> Result<(), Mistake> {
    pointer::check("g", g, 1)?;
    // SAFETY: the program gave a name.
    let name = unsafe { name("name", name_of_it) }?;
    let found = job::with(|job| Ok(job.open_segment(name)?))?;
    // SAFETY: the program gave the place of an object.
    unsafe { SEGMENTS.keep("g", g, found) }
}

pub(crate) unsafe fn address(
    g: *const Handle,
    start: *mut *mut c_void,
    bytes: *mut usize,
) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let segment = unsafe { SEGMENTS.at("g", g) }?;
    job::check()?;
    pointer::check("start", start, 1)?;
    if !bytes.is_null() {
        // SAFETY: the program gave the place of a number.
        unsafe { pointer::write("bytes", bytes, segment.len()) }?;
    }
    // SAFETY: the program gave the place of an address.
    Ok(unsafe { pointer::write("start", start, segment.as_ptr().cast()) }?)
}

pub(crate) unsafe fn destroy(g: *mut Handle) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let handle = unsafe { pointer::read("g", g) }?;
    SEGMENTS.of(handle)?;
    job::check()?;
    drop(SEGMENTS.remove(handle)?);
    Ok(())
}
