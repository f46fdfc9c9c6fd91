//! Starting, ending, errors in words.

use std::ffi::{c_char, c_int, c_uint};

use landeck::Progress;
use landeck::unstable::JobInternals;
use landeck_c_boundary::{pointer, string};

use crate::arguments::TEXT_BYTES_MAX;
use crate::mistake::Mistake;
use crate::{entry, errors, job};

/// A thread receives while the program does not call.
const PROGRESS: c_uint = 1;

pub(crate) unsafe fn init(_argc: *mut c_int, _argv: *mut *mut *mut c_char) -> Result<(), Mistake> {
    job::start(Progress::Callers)
}

pub(crate) unsafe fn init_flags(
    _argc: *mut c_int,
    _argv: *mut *mut *mut c_char,
    flags: c_uint,
) -> Result<(), Mistake> {
    match flags {
        0 => job::start(Progress::Callers),
        PROGRESS => job::start(Progress::Thread),
        _ => Err(Mistake::value("flags", flags, "give 0 or DECK_PROGRESS")),
    }
}

pub(crate) fn done() -> Result<(), Mistake> {
    job::finish()
}

pub(crate) unsafe fn node(node: *mut c_int) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of a number.
    Ok(unsafe { pointer::write("node", node, job::node()?) }?)
}

pub(crate) unsafe fn node_num(nodes: *mut c_int) -> Result<(), Mistake> {
    let number = job::with(|job| Ok(job.segment().plan().processes as c_int))?;
    // SAFETY: the program gave the place of a number.
    Ok(unsafe { pointer::write("nodes", nodes, number) }?)
}

pub(crate) unsafe fn abort(code: c_int, text: *const c_char) -> Result<(), Mistake> {
    if text.is_null() {
        return job::abort(code, None);
    }
    // SAFETY: the program gave a text.
    let text = unsafe { string::read("text", text, TEXT_BYTES_MAX) }?;
    job::abort(code, Some(&text.to_string_lossy()))
}

pub(crate) fn strerror(error: c_int) -> *const c_char {
    let known = errors::ALL.iter().find(|(number, _, _)| *number == error);
    known.map_or(c"there is no error with this number", |(_, _, text)| text).as_ptr()
}

pub(crate) fn error_name(error: c_int) -> *const c_char {
    let known = errors::ALL.iter().find(|(number, _, _)| *number == error);
    known.map_or(c"no error of DECK", |(_, name, _)| name).as_ptr()
}

pub(crate) fn error_text() -> *const c_char {
    entry::last_text()
}
