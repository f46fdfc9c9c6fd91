//! Mailboxes.

use std::ffi::{c_char, c_int};
use std::os::fd::AsRawFd;

use landeck_c_boundary::pointer;

use crate::arguments::{name, name_or_none, time};
use crate::handle::Handle;
use crate::mistake::Mistake;
use crate::objects::mailbox::Mailbox;
use crate::objects::{MAILBOXES, MESSAGES};
use crate::{errors, job};

pub(crate) unsafe fn create(mb: *mut Handle, name_of_it: *const c_char) -> Result<(), Mistake> {
    pointer::check("mb", mb, 1)?;
    // SAFETY: the program gave a name, or none.
    let name = unsafe { name_or_none("name", name_of_it) }?;
    MAILBOXES.make_room()?;
    let (mailbox, outbox) = job::with(|job| {
        let mut mailbox = job.create_mailbox()?;
        if let Some(name) = name {
            mailbox.register(name)?;
        }
        let outbox = job.open_mailbox_by_address(mailbox.address())?;
        Ok((mailbox, outbox))
    })?;
    let handle = Mailbox::of_this_thread(mailbox, outbox);
    // SAFETY: the program gave the place of an object.
    Ok(unsafe { pointer::write("mb", mb, handle) }?)
}

pub(crate) unsafe fn fetch(mb: *mut Handle, name_of_it: *const c_char) -> Result<(), Mistake> {
    pointer::check("mb", mb, 1)?;
    // SAFETY: the program gave a name.
    let name = unsafe { name("name", name_of_it) }?;
    let outbox = job::with(|job| Ok(job.open_mailbox(name)?))?;
    // SAFETY: the program gave the place of an object.
    unsafe { MAILBOXES.keep("mb", mb, Mailbox::of_others(outbox)) }
}

pub(crate) unsafe fn store(mb: *mut Handle, place: *const c_char) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let mailbox = unsafe { MAILBOXES.at("mb", mb) }?;
    // SAFETY: the program gave a text.
    let place = unsafe { name("place", place) }?;
    let store = job::with(|job| Ok(job.store_named(&String::from_utf8_lossy(place))?))?;
    mailbox.set_store(store)
}

pub(crate) unsafe fn post(mb: *mut Handle, m: *const Handle) -> Result<(), Mistake> {
    // SAFETY: the program gave the places of objects.
    unsafe { post_timed(mb, m, -1) }
}

pub(crate) unsafe fn post_timed(
    mb: *mut Handle,
    m: *const Handle,
    timeout_ms: c_int,
) -> Result<(), Mistake> {
    // SAFETY: the program gave the places of objects.
    let (mailbox, message) = unsafe { (MAILBOXES.at("mb", mb)?, MESSAGES.at("m", m)?) };
    let time = time(timeout_ms)?;
    job::check()?;
    match time {
        Some(time) => mailbox.outbox()?.post_within(&message, time)?,
        None => mailbox.outbox()?.post(&message)?,
    }
    Ok(())
}

pub(crate) unsafe fn post_try(mb: *mut Handle, m: *const Handle) -> Result<(), Mistake> {
    // SAFETY: the program gave the places of objects.
    let (mailbox, message) = unsafe { (MAILBOXES.at("mb", mb)?, MESSAGES.at("m", m)?) };
    job::check()?;
    Ok(mailbox.outbox()?.try_post(&message)?)
}

pub(crate) unsafe fn retrv(mb: *mut Handle, m: *mut Handle) -> Result<(), Mistake> {
    // SAFETY: the program gave the places of objects.
    unsafe { retrv_timed(mb, m, -1) }
}

pub(crate) unsafe fn retrv_timed(
    mb: *mut Handle,
    m: *mut Handle,
    timeout_ms: c_int,
) -> Result<(), Mistake> {
    // SAFETY: the program gave the places of objects.
    let (mailbox, mut message) = unsafe { (MAILBOXES.at("mb", mb)?, MESSAGES.at("m", m)?) };
    let time = time(timeout_ms)?;
    job::check()?;
    mailbox.as_creator(|mailbox| {
        match time {
            Some(time) => *message = mailbox.retrieve_within(time)?,
            None => mailbox.retrieve_into(&mut message)?,
        }
        Ok(())
    })
}

pub(crate) unsafe fn retrv_try(mb: *mut Handle, m: *mut Handle) -> Result<(), Mistake> {
    // SAFETY: the program gave the places of objects.
    let (mailbox, mut message) = unsafe { (MAILBOXES.at("mb", mb)?, MESSAGES.at("m", m)?) };
    job::check()?;
    mailbox.as_creator(|mailbox| {
        match mailbox.try_retrieve()? {
            Some(found) => *message = found,
            None => return Err(Mistake::known(errors::WOULDBLOCK, "no message is there just now")),
        }
        Ok(())
    })
}

pub(crate) unsafe fn descriptor(mb: *mut Handle, descriptor: *mut c_int) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let mailbox = unsafe { MAILBOXES.at("mb", mb) }?;
    job::check()?;
    pointer::check("descriptor", descriptor, 1)?;
    let number = mailbox.as_creator(|mailbox| Ok(mailbox.descriptor()?.as_raw_fd()))?;
    // SAFETY: the program gave the place of a number.
    Ok(unsafe { pointer::write("descriptor", descriptor, number) }?)
}

pub(crate) unsafe fn destroy(mb: *mut Handle) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let handle = unsafe { pointer::read("mb", mb) }?;
    MAILBOXES.of(handle)?.check_destroyer()?;
    job::check()?;
    MAILBOXES.remove(handle)?.destroy(handle);
    Ok(())
}
