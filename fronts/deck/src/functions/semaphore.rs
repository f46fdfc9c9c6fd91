//! Semaphores.

use std::ffi::{c_char, c_int};

use landeck_c_boundary::pointer;

use crate::arguments::{count, name, time};
use crate::handle::Handle;
use crate::mistake::Mistake;
use crate::objects::SEMAPHORES;
use crate::{errors, job};

pub(crate) unsafe fn create(
    s: *mut Handle,
    name_of_it: *const c_char,
    units: c_int,
) -> Result<(), Mistake> {
    pointer::check("s", s, 1)?;
    // SAFETY: the program gave a name.
    let name = unsafe { name("name", name_of_it) }?;
    let units = count("units", units)?;
    let made = job::with(|job| Ok(job.create_semaphore(name, units as u32)?))?;
    // SAFETY: the program gave the place of an object.
    unsafe { SEMAPHORES.keep("s", s, made) }
}

pub(crate) unsafe fn fetch(s: *mut Handle, name_of_it: *const c_char) -> Result<(), Mistake> {
    pointer::check("s", s, 1)?;
    // SAFETY: the program gave a name.
    let name = unsafe { name("name", name_of_it) }?;
    let found = job::with(|job| Ok(job.open_semaphore(name)?))?;
    // SAFETY: the program gave the place of an object.
    unsafe { SEMAPHORES.keep("s", s, found) }
}

pub(crate) unsafe fn p(s: *mut Handle) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    unsafe { p_timed(s, -1) }
}

pub(crate) unsafe fn p_timed(s: *mut Handle, timeout_ms: c_int) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let semaphore = unsafe { SEMAPHORES.at("s", s) }?;
    let time = time(timeout_ms)?;
    job::check()?;
    match time {
        Some(time) => semaphore.take_within(time)?.keep(),
        None => semaphore.take()?.keep(),
    }
    Ok(())
}

pub(crate) unsafe fn p_try(s: *mut Handle) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let semaphore = unsafe { SEMAPHORES.at("s", s) }?;
    job::check()?;
    match semaphore.try_take()? {
        Some(permit) => permit.keep(),
        None => return Err(Mistake::known(errors::WOULDBLOCK, "no unit is there just now")),
    }
    Ok(())
}

pub(crate) unsafe fn v(s: *mut Handle) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let semaphore = unsafe { SEMAPHORES.at("s", s) }?;
    job::check()?;
    if !semaphore.put_back() {
        semaphore.give(1)?;
    }
    Ok(())
}

pub(crate) unsafe fn spend(s: *mut Handle) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let semaphore = unsafe { SEMAPHORES.at("s", s) }?;
    job::check()?;
    match semaphore.use_up() {
        true => Ok(()),
        false => Err(Mistake::known(errors::UNITS, "this process holds no unit of the semaphore")),
    }
}

pub(crate) unsafe fn value(s: *const Handle, units: *mut c_int) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let semaphore = unsafe { SEMAPHORES.at("s", s) }?;
    job::check()?;
    // SAFETY: the program gave the place of a number.
    Ok(unsafe { pointer::write("units", units, semaphore.units() as c_int) }?)
}

pub(crate) unsafe fn recover(s: *mut Handle, units: *mut c_int) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let semaphore = unsafe { SEMAPHORES.at("s", s) }?;
    job::check()?;
    if !units.is_null() {
        pointer::check("units", units, 1)?;
    }
    let recovered = semaphore.recover()?;
    if !units.is_null() {
        // SAFETY: the program gave the place of a number.
        unsafe { pointer::write("units", units, recovered as c_int) }?;
    }
    Ok(())
}

pub(crate) unsafe fn destroy(s: *mut Handle) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let handle = unsafe { pointer::read("s", s) }?;
    SEMAPHORES.of(handle)?;
    job::check()?;
    drop(SEMAPHORES.remove(handle)?);
    Ok(())
}
