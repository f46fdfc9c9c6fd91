//! Arguments that many functions have.

use std::ffi::{c_char, c_int};
use std::time::Duration;

use landeck::thread::THREAD_NAME_BYTES_MAX;
use landeck::unstable::arithmetic::Operation;
use landeck::unstable::joining::objects::NAME_BYTES_MAX;
use landeck_c_boundary::{StringError, pointer, string};

use crate::errors;
use crate::mistake::Mistake;
use crate::words::OPERATIONS;

/// Longest text that is looked at for its end.
pub(crate) const TEXT_BYTES_MAX: usize = 1 << 30;

/// A name, as bytes: whether it can be one is seen where it is used.
///
/// # Safety
/// Unless null, the pointer leads to a string, or to 65 readable bytes.
pub(crate) unsafe fn name<'a>(
    argument: &'static str,
    start: *const c_char,
) -> Result<&'a [u8], Mistake> {
    // SAFETY: the caller's promise.
    unsafe { name_within(argument, start, NAME_BYTES_MAX) }
}

/// A name, or `None` for a null pointer.
///
/// # Safety
/// As [`name`].
pub(crate) unsafe fn name_or_none<'a>(
    argument: &'static str,
    start: *const c_char,
) -> Result<Option<&'a [u8]>, Mistake> {
    if start.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    unsafe { name(argument, start) }.map(Some)
}

/// The name of a thread, or none for a null pointer. The system keeps 15 bytes of it: a longer one is
/// refused, for two that differ behind those would become one.
///
/// # Safety
/// Unless null, the pointer leads to a string, or to 16 readable bytes.
pub(crate) unsafe fn thread_name<'a>(
    argument: &'static str,
    start: *const c_char,
) -> Result<Option<&'a str>, Mistake> {
    if start.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { name_within(argument, start, THREAD_NAME_BYTES_MAX) }?;
    let lossy = String::from_utf8_lossy(bytes);
    let (code, what) = match std::str::from_utf8(bytes) {
        Ok("") => (errors::NAMEEMPTY, "is empty"),
        Ok(name) if name.contains(char::is_control) => {
            (errors::NAMECONTROL, "has a control character in it")
        }
        Ok(name) => return Ok(Some(name)),
        Err(_) => (errors::NAMEUTF8, "is no UTF-8"),
    };
    let text = format!(
        "{argument} is \"{}\", which {what}: give a thread a name of 1 to {THREAD_NAME_BYTES_MAX} bytes \
         that can be read, or a null pointer for none",
        lossy.escape_debug()
    );
    Err(Mistake::new(code, text))
}

/// # Safety
/// Unless null, the pointer leads to a string, or to one readable byte more than `most`.
unsafe fn name_within<'a>(
    argument: &'static str,
    start: *const c_char,
    most: usize,
) -> Result<&'a [u8], Mistake> {
    // SAFETY: the caller's promise.
    match unsafe { string::read(argument, start, most) } {
        Ok(name) => Ok(name.to_bytes()),
        Err(StringError::Pointer(error)) => Err(error.into()),
        Err(StringError::TooLong { .. }) => {
            // SAFETY: no byte so far was the end, so as many are readable.
            let bytes = unsafe { pointer::slice(argument, start.cast(), most) }?;
            let start = String::from_utf8_lossy(bytes);
            let text = format!(
                "{argument} begins with \"{}\" and has more than {most} bytes: give it 1 to {most}",
                start.escape_debug()
            );
            Err(Mistake::new(errors::NAMELONG, text))
        }
    }
}

/// A time in milliseconds; none where there is no limit.
pub(crate) fn time(timeout_ms: c_int) -> Result<Option<Duration>, Mistake> {
    match u64::try_from(timeout_ms) {
        Ok(time) => Ok(Some(Duration::from_millis(time))),
        Err(_) if timeout_ms == -1 => Ok(None),
        Err(_) => {
            Err(Mistake::value("timeout_ms", timeout_ms, "give milliseconds, or -1 for no limit"))
        }
    }
}

/// How values are combined.
pub(crate) fn operation(op: c_int) -> Result<Operation, Mistake> {
    let known = usize::try_from(op).ok().and_then(|op| OPERATIONS.get(op.checked_sub(1)?));
    let choice = "give DECK_SUM or another of enum deck_op";
    known.map(|&(_, operation)| operation).ok_or_else(|| Mistake::value("op", op, choice))
}

/// A count that is not negative.
pub(crate) fn count(argument: &str, value: c_int) -> Result<usize, Mistake> {
    usize::try_from(value).map_err(|_| Mistake::value(argument, value, "it must be 0 or more"))
}
