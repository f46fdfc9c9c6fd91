//! Messages.

use std::ffi::{c_char, c_int, c_void};

use landeck::layout::{Family, Kind};
use landeck::{Message, Typed, Upcoming};
use landeck_c_boundary::{pointer, string};

use crate::arguments::{TEXT_BYTES_MAX, count};
use crate::handle::Handle;
use crate::mistake::Mistake;
use crate::objects::mailbox::Mailbox;
use crate::objects::{MAILBOXES, MESSAGES};
use crate::{errors, job};

const NONE: c_int = 0;
const STRING: c_int = 11;
const MBOX: c_int = 12;
const OTHER: c_int = 13;

/// Does something with the type that a number stands for.
macro_rules! with_type {
    ($type:expr, $do:ident $arguments:tt) => {
        match $type {
            1 => $do::<i8> $arguments,
            2 => $do::<i16> $arguments,
            3 => $do::<i32> $arguments,
            4 => $do::<i64> $arguments,
            5 => $do::<u8> $arguments,
            6 => $do::<u16> $arguments,
            7 => $do::<u32> $arguments,
            8 => $do::<u64> $arguments,
            9 => $do::<f32> $arguments,
            10 => $do::<f64> $arguments,
            other => Err(no_type(other)),
        }
    };
}

pub(crate) unsafe fn create(m: *mut Handle, size: usize) -> Result<(), Mistake> {
    pointer::check("m", m, 1)?;
    let made = Message::try_with_capacity(size)?;
    // SAFETY: the program gave the place of an object.
    unsafe { MESSAGES.keep("m", m, made) }
}

pub(crate) unsafe fn destroy(m: *mut Handle) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    unsafe { MESSAGES.remove("m", m) }
}

pub(crate) unsafe fn clear(m: *mut Handle) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    unsafe { MESSAGES.at("m", m) }?.clear();
    Ok(())
}

pub(crate) unsafe fn size(m: *const Handle, bytes: *mut usize) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let size = unsafe { MESSAGES.at("m", m) }?.bytes();
    // SAFETY: the program gave the place of a number.
    Ok(unsafe { pointer::write("bytes", bytes, size) }?)
}

pub(crate) unsafe fn count_(m: *const Handle, values: *mut usize) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let number = unsafe { MESSAGES.at("m", m) }?.len();
    // SAFETY: the program gave the place of a number.
    Ok(unsafe { pointer::write("values", values, number as usize) }?)
}

pub(crate) unsafe fn pack(
    m: *mut Handle,
    kind: c_int,
    data: *const c_void,
    count: usize,
) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let mut message = unsafe { MESSAGES.at("m", m) }?;
    // SAFETY: the program gave so many values of this type.
    unsafe { with_type!(kind, pack_as(&mut message, data, count)) }
}

pub(crate) unsafe fn unpack(
    m: *mut Handle,
    kind: c_int,
    data: *mut c_void,
    count: usize,
) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let mut message = unsafe { MESSAGES.at("m", m) }?;
    // SAFETY: the program gave the place of so many values of this type.
    unsafe { with_type!(kind, unpack_as(&mut message, data, count)) }
}

pub(crate) unsafe fn pack_string(m: *mut Handle, text: *const c_char) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object, and a text.
    let (mut message, text) =
        unsafe { (MESSAGES.at("m", m)?, string::read("text", text, TEXT_BYTES_MAX)?) };
    let not_text = |_| Mistake::known(errors::NOTTEXT, "text is no UTF-8: texts are");
    message.try_pack_text(text.to_str().map_err(not_text)?)?;
    Ok(())
}

pub(crate) unsafe fn unpack_string(
    m: *mut Handle,
    text: *mut c_char,
    room: usize,
    length: *mut usize,
) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let mut message = unsafe { MESSAGES.at("m", m) }?;
    pointer::check("text", text, room)?;
    if !length.is_null() {
        pointer::check("length", length, 1)?;
    }
    if let Upcoming::Text { bytes } = message.upcoming() {
        if !length.is_null() {
            // SAFETY: the program gave the place of a number.
            unsafe { pointer::write("length", length, bytes) }?;
        }
        if bytes >= room {
            let text = format!("the text has {bytes} bytes and its end, there is room for {room}");
            return Err(Mistake::new(errors::ROOM, text));
        }
    }
    let found = message.unpack_text()?;
    // SAFETY: the program gave so many bytes.
    unsafe { string::write("text", text, room, &found) }?;
    Ok(())
}

pub(crate) unsafe fn pack_mbox(m: *mut Handle, mb: *const Handle) -> Result<(), Mistake> {
    // SAFETY: the program gave the places of objects.
    let (mut message, mailbox) = unsafe { (MESSAGES.at("m", m)?, MAILBOXES.at("mb", mb)?) };
    message.try_pack_mailbox(mailbox.outbox()?.address())?;
    Ok(())
}

pub(crate) unsafe fn unpack_mbox(m: *mut Handle, mb: *mut Handle) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let mut message = unsafe { MESSAGES.at("m", m) }?;
    pointer::check("mb", mb, 1)?;
    job::check()?;
    let address = message.unpack_mailbox()?;
    let outbox = job::with(|job| Ok(job.open_mailbox_by_address(address)?))?;
    // SAFETY: the program gave the place of an object.
    unsafe { MAILBOXES.keep("mb", mb, Mailbox::of_others(outbox)) }
}

pub(crate) unsafe fn rewind(m: *mut Handle) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    unsafe { MESSAGES.at("m", m) }?.rewind();
    Ok(())
}

pub(crate) unsafe fn next(
    m: *const Handle,
    kind: *mut c_int,
    count: *mut usize,
) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let upcoming = unsafe { MESSAGES.at("m", m) }?.upcoming();
    let (found, number) = match upcoming {
        Upcoming::Nothing => (NONE, 0),
        Upcoming::Elements { kind, count } => (type_of(kind), count as usize),
        Upcoming::Text { bytes } => (STRING, bytes),
        Upcoming::Mailbox => (MBOX, 1),
        Upcoming::Items => (OTHER, 1),
    };
    pointer::check("count", count, 1)?;
    // SAFETY: the program gave the places of numbers.
    unsafe {
        pointer::write("type", kind, found)?;
        pointer::write("count", count, number)?;
    }
    Ok(())
}

pub(crate) unsafe fn copy(copy: *mut Handle, m: *const Handle) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let mut made = unsafe { MESSAGES.at("m", m) }?.clone();
    made.rewind();
    // SAFETY: the program gave the place of an object.
    unsafe { MESSAGES.keep("copy", copy, made) }
}

pub(crate) unsafe fn part(
    part: *mut Handle,
    m: *const Handle,
    first: usize,
    count: usize,
) -> Result<(), Mistake> {
    let (first, count) = (first as u64, count as u64);
    // SAFETY: the program gave the place of an object.
    let message = unsafe { MESSAGES.at("m", m) }?;
    let made = message.part(first..first.saturating_add(count))?;
    // SAFETY: the program gave the place of an object.
    unsafe { MESSAGES.keep("part", part, made) }
}

pub(crate) unsafe fn split(
    parts: *mut Handle,
    m: *const Handle,
    number: c_int,
) -> Result<(), Mistake> {
    let number = count("count", number)?;
    // SAFETY: the program gave the place of an object.
    let message = unsafe { MESSAGES.at("m", m) }?;
    pointer::check("parts", parts, number)?;
    let made = message.split(number)?;
    for (at, part) in made.into_iter().enumerate() {
        // SAFETY: the program gave the places of so many objects.
        unsafe { MESSAGES.keep("parts", parts.add(at), part) }?;
    }
    Ok(())
}

pub(crate) unsafe fn join(m: *mut Handle, other: *const Handle) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let mut message = unsafe { MESSAGES.at("m", m) }?;
    // SAFETY: the program gave the place of an object.
    let other = unsafe { MESSAGES.at_beside(&message, "other", other) }?;
    // A message can be joined with itself.
    let other = other.as_deref().unwrap_or(&message).clone();
    message.join(&other);
    Ok(())
}

unsafe fn pack_as<T: Typed>(
    message: &mut Message,
    data: *const c_void,
    count: usize,
) -> Result<(), Mistake> {
    // SAFETY: the program gave so many values of this type.
    message.try_pack(unsafe { pointer::slice::<T>("data", data.cast(), count) }?)?;
    Ok(())
}

unsafe fn unpack_as<T: Typed>(
    message: &mut Message,
    data: *mut c_void,
    count: usize,
) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of so many values of this type, which nobody else uses.
    Ok(message.unpack(unsafe { pointer::slice_mut::<T>("data", data.cast(), count) }?)?)
}

/// The number that stands for a kind of values.
fn type_of(kind: Kind) -> c_int {
    match (kind.family(), kind.size_bytes()) {
        (Family::Signed, 1) => 1,
        (Family::Signed, 2) => 2,
        (Family::Signed, 4) => 3,
        (Family::Signed, 8) => 4,
        (Family::Unsigned, 1) => 5,
        (Family::Unsigned, 2) => 6,
        (Family::Unsigned, 4) => 7,
        (Family::Unsigned, 8) => 8,
        (Family::Float, 4) => 9,
        (Family::Float, 8) => 10,
        _ => OTHER,
    }
}

#[cold]
fn no_type(kind: c_int) -> Mistake {
    Mistake::value("type", kind, "give DECK_INT or another of enum deck_type that is a number")
}
