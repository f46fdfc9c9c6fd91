//! Starting, ending, errors in words.

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::io::Write;

use landeck::Progress;
use landeck::unstable::JobInternals;
use landeck::unstable::memory::fork;
use landeck_c_boundary::{pointer, string};

use crate::arguments::TEXT_BYTES_MAX;
use crate::mistake::Mistake;
use crate::objects::group;
use crate::{entry, errors, job};

const MAJOR: c_int = number(env!("CARGO_PKG_VERSION_MAJOR"));
const MINOR: c_int = number(env!("CARGO_PKG_VERSION_MINOR"));
const PATCH: c_int = number(env!("CARGO_PKG_VERSION_PATCH"));

/// Longest path of a source file that is written.
const PATH_BYTES_MAX: usize = 4096;

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
    job::check()?;
    group::leave_all();
    job::finish()
}

pub(crate) unsafe fn node(node: *mut c_int) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of a number.
    Ok(unsafe { pointer::write("node", node, job::node()?) }?)
}

pub(crate) unsafe fn node_num(nodes: *mut c_int) -> Result<(), Mistake> {
    let number = job::with(|job| Ok(job.segment().plan().ranks as c_int))?;
    // SAFETY: the program gave the place of a number.
    Ok(unsafe { pointer::write("nodes", nodes, number) }?)
}

pub(crate) unsafe fn version(
    major: *mut c_int,
    minor: *mut c_int,
    patch: *mut c_int,
) -> Result<(), Mistake> {
    for (argument, place) in [("major", major), ("minor", minor), ("patch", patch)] {
        pointer::check(argument, place, 1)?;
    }
    // SAFETY: the program gave the places of numbers.
    unsafe {
        pointer::write("major", major, MAJOR)?;
        pointer::write("minor", minor, MINOR)?;
        pointer::write("patch", patch, PATCH)?;
    }
    Ok(())
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

pub(crate) unsafe fn check(error: c_int, file: *const c_char, line: c_int) {
    if error != errors::OK {
        // SAFETY: the program gave the name of its source file.
        unsafe { end(error, file, line) }
    }
}

#[cold]
unsafe fn end(error: c_int, file: *const c_char, line: c_int) -> ! {
    // SAFETY: the caller's promise.
    let file = unsafe { string::read("file", file, PATH_BYTES_MAX) };
    let file = file.map_or("?".into(), CStr::to_string_lossy);
    let name = error_name(error);
    let text = if entry::last_code() == error { error_text() } else { strerror(error) };
    // SAFETY: these are texts of this library, which stay.
    let (name, text) = unsafe { (CStr::from_ptr(name), CStr::from_ptr(text)) };
    let said = format!("{} ({})", text.to_string_lossy(), name.to_string_lossy());
    if fork::is_child() {
        fork::say(&format!("{file}:{line}: {said}"));
        fork::end_child(1)
    }
    let node = job::node().map_or_else(|_| String::new(), |node| format!("node {node}: "));
    // Standard error may be closed; the process ends all the same.
    let _ = writeln!(std::io::stderr(), "{file}:{line}: {node}{said}");
    // The program's handlers may leave in any way, so this frame owns nothing by now.
    drop((file, said, node));
    std::process::exit(1)
}

/// A part of the version.
const fn number(digits: &str) -> c_int {
    match c_int::from_str_radix(digits, 10) {
        Ok(number) => number,
        Err(_) => panic!("a version has numbers"),
    }
}
