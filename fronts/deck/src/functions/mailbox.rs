//! Mailboxes.

use std::ffi::{c_char, c_int};
use std::os::fd::AsRawFd;

use landeck::Message;
use landeck_c_boundary::pointer;

use crate::arguments::{name, name_or_none, time};
use crate::handle::Handle;
use crate::mistake::Mistake;
use crate::objects::mailbox::Mailbox;
use crate::objects::{MAILBOXES, MESSAGES, VIEWS};
use crate::{errors, job};

/// An event, as the program has it.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Event {
    kind: c_int,
    member: c_int,
    missed: c_int,
    group: u64,
    number: u64,
    after: u64,
    msg: Handle,
    view: Handle,
}

const MESSAGE: c_int = 1;
const VIEW: c_int = 2;
const NOTHING: Handle = Handle(0);

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

pub(crate) unsafe fn event(mb: *mut Handle, e: *mut Event) -> Result<(), Mistake> {
    // SAFETY: the program gave the places of objects.
    unsafe { event_timed(mb, e, -1) }
}

pub(crate) unsafe fn event_timed(
    mb: *mut Handle,
    e: *mut Event,
    timeout_ms: c_int,
) -> Result<(), Mistake> {
    let time = time(timeout_ms)?;
    let next = |mailbox: &mut landeck::Mailbox| match time {
        Some(time) => Ok(mailbox.next_event_within(time)?),
        None => Ok(mailbox.next_event()?),
    };
    // SAFETY: the program gave the places of objects.
    unsafe { fill(mb, e, next) }
}

pub(crate) unsafe fn event_try(mb: *mut Handle, e: *mut Event) -> Result<(), Mistake> {
    let next = |mailbox: &mut landeck::Mailbox| {
        let none = || Mistake::known(errors::WOULDBLOCK, "nothing has happened just now");
        mailbox.try_next_event()?.ok_or_else(none)
    };
    // SAFETY: the program gave the places of objects.
    unsafe { fill(mb, e, next) }
}

/// Fills an event. Its objects are checked before anything is taken from the mailbox.
///
/// # Safety
/// Unless null or misaligned, `mb` is readable, and `e` is readable and writable.
unsafe fn fill(
    mb: *mut Handle,
    e: *mut Event,
    next: impl FnOnce(&mut landeck::Mailbox) -> Result<landeck::MailboxEvent, Mistake>,
) -> Result<(), Mistake> {
    // SAFETY: the caller's promise.
    let (mailbox, mut event) = unsafe { (MAILBOXES.at("mb", mb)?, pointer::read("e", e)?) };
    job::check()?;
    if event.msg == NOTHING {
        // SAFETY: the place is this function's.
        unsafe { MESSAGES.keep("e", &raw mut event.msg, Message::new()) }?;
        // SAFETY: the caller's promise.
        unsafe { pointer::write("e", e, event) }?;
    }
    // SAFETY: the place is this function's.
    let mut message = unsafe { MESSAGES.at("e->msg", &raw const event.msg) }?;
    if event.view != NOTHING {
        VIEWS.of(event.view)?;
    }
    VIEWS.make_room()?;
    match mailbox.as_creator(next)? {
        landeck::MailboxEvent::Message(told) => {
            event.kind = MESSAGE;
            event.member = told.member().map_or(-1, |member| member as c_int);
            event.group = told.group().unwrap_or(0);
            event.number = told.number().unwrap_or(0);
            *message = told.into_message();
        }
        landeck::MailboxEvent::View(view) => {
            event.kind = VIEW;
            event.missed = c_int::from(view.has_missed());
            (event.group, event.number, event.after) = (view.group(), view.number(), view.after());
            if event.view != NOTHING {
                drop(VIEWS.remove(event.view)?);
            }
            event.view = VIEWS.insert(view);
        }
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { pointer::write("e", e, event) }?)
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
