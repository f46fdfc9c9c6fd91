//! Error handlers, and the classes, codes and texts of errors.

use std::ffi::{c_char, c_int};

use landeck_c_boundary::pointer;

use crate::abi::{
    Callback, ERR_ARG, ERR_LASTCODE, ERRHANDLER_NULL, ErrorFunction, Handle, MAX_ERROR_STRING,
    function,
};
use crate::arguments::{give, give_text, text};
use crate::mistake::Mistake;
use crate::objects::error_code;
use crate::objects::kind::Kind;
use crate::objects::{communicator, error_handler};
use crate::origin;
use crate::walk::Walk;

/// Makes a handler for communicators.
pub(crate) unsafe fn comm_create_errhandler(
    comm_errhandler_fn: Callback,
    errhandler: *mut Handle,
) -> Result<(), Mistake> {
    // SAFETY: the program gives a function of this type, and a writable place.
    unsafe { create(("comm_errhandler_fn", comm_errhandler_fn), Kind::Communicator, errhandler) }
}

/// Makes a handler for windows.
pub(crate) unsafe fn win_create_errhandler(
    win_errhandler_fn: Callback,
    errhandler: *mut Handle,
) -> Result<(), Mistake> {
    // SAFETY: the program gives a function of this type, and a writable place.
    unsafe { create(("win_errhandler_fn", win_errhandler_fn), Kind::Window, errhandler) }
}

/// Makes a handler for files.
pub(crate) unsafe fn file_create_errhandler(
    file_errhandler_fn: Callback,
    errhandler: *mut Handle,
) -> Result<(), Mistake> {
    // SAFETY: the program gives a function of this type, and a writable place.
    unsafe { create(("file_errhandler_fn", file_errhandler_fn), Kind::File, errhandler) }
}

/// Makes a handler for a kind of objects.
///
/// # Safety
/// The callback is an error handler of that kind, or null; the place is writable.
pub(crate) unsafe fn create(
    (argument, callback): (&'static str, Callback),
    kind: Kind,
    errhandler: *mut Handle,
) -> Result<(), Mistake> {
    pointer::check("errhandler", errhandler, 1)?;
    // SAFETY: as the caller says.
    let function = unsafe { function::<ErrorFunction>(callback) }.ok_or_else(|| {
        Mistake::new(ERR_ARG, format_args!("{argument} is a null pointer; pass a function"))
    })?;
    // SAFETY: as the caller says.
    unsafe { give("errhandler", errhandler, error_handler::create(function, kind)?) }
}

/// Sets the handler of a communicator.
pub(crate) unsafe fn comm_set_errhandler(comm: Handle, errhandler: Handle) -> Result<(), Mistake> {
    communicator::get("comm", comm)?.error_handler.set("errhandler", errhandler)
}

/// The handler of a communicator, as one more handle to it.
pub(crate) unsafe fn comm_get_errhandler(
    comm: Handle,
    errhandler: *mut Handle,
) -> Result<(), Mistake> {
    let communicator = communicator::get("comm", comm)?;
    pointer::check("errhandler", errhandler, 1)?;
    // SAFETY: checked above; the program says that it is writable.
    unsafe { give("errhandler", errhandler, communicator.error_handler.handle()) }
}

/// Calls the handler of a communicator with a code of the program.
pub(crate) unsafe fn comm_call_errhandler(comm: Handle, errorcode: c_int) -> Result<Walk, Mistake> {
    let reaction = communicator::get("comm", comm)?.error_handler.reaction();
    Ok(origin::call_handler("MPI_Comm_call_errhandler", reaction, comm, errorcode))
}

/// Frees a handler; objects that have it keep it.
pub(crate) unsafe fn errhandler_free(errhandler: *mut Handle) -> Result<(), Mistake> {
    // SAFETY: the program gives the address of a handle, or it is refused.
    let handle = unsafe { pointer::read("errhandler", errhandler)? };
    error_handler::free("errhandler", handle)?;
    // SAFETY: read above; the program says that it is writable too.
    unsafe { give("errhandler", errhandler, ERRHANDLER_NULL) }
}

/// The class of a code.
pub(crate) unsafe fn error_class(errorcode: c_int, errorclass: *mut c_int) -> Result<(), Mistake> {
    let class = error_code::class("errorcode", errorcode)?;
    // SAFETY: the program says that it is writable.
    unsafe { give("errorclass", errorclass, class) }
}

/// The text of a code: that of this thread's last mistake, if it had this code or left it in a status. A code of the program has
/// the text that the program gave it.
pub(crate) unsafe fn error_string(
    errorcode: c_int,
    string: *mut c_char,
    resultlen: *mut c_int,
) -> Result<(), Mistake> {
    let general = error_code::text("errorcode", errorcode)?;
    let last = if errorcode > ERR_LASTCODE { None } else { origin::last_text(errorcode) };
    let text = last.unwrap_or(general);
    let length = ("resultlen", resultlen);
    // SAFETY: the program has so much room.
    unsafe { give_text(("string", string), MAX_ERROR_STRING, &text, length) }
}

/// A new class.
pub(crate) unsafe fn add_error_class(errorclass: *mut c_int) -> Result<(), Mistake> {
    pointer::check("errorclass", errorclass, 1)?;
    // SAFETY: checked above; the program says that it is writable.
    unsafe { give("errorclass", errorclass, error_code::add_class()) }
}

/// A new code of a class.
pub(crate) unsafe fn add_error_code(
    errorclass: c_int,
    errorcode: *mut c_int,
) -> Result<(), Mistake> {
    pointer::check("errorcode", errorcode, 1)?;
    let code = error_code::add_code("errorclass", errorclass)?;
    // SAFETY: checked above; the program says that it is writable.
    unsafe { give("errorcode", errorcode, code) }
}

/// The text of a class or code of the program.
pub(crate) unsafe fn add_error_string(
    errorcode: c_int,
    string: *const c_char,
) -> Result<(), Mistake> {
    // SAFETY: the program gives a text, or it is refused.
    let text = unsafe { text("string", string, MAX_ERROR_STRING as usize - 1)? };
    error_code::set_text("errorcode", errorcode, text)
}

/// Removes a class of the program, which has no codes.
pub(crate) unsafe fn remove_error_class(errorclass: c_int) -> Result<(), Mistake> {
    error_code::remove("errorclass", errorclass, true)
}

/// Removes a code of the program.
pub(crate) unsafe fn remove_error_code(errorcode: c_int) -> Result<(), Mistake> {
    error_code::remove("errorcode", errorcode, false)
}

/// Removes the text of a class or code of the program.
pub(crate) unsafe fn remove_error_string(errorcode: c_int) -> Result<(), Mistake> {
    error_code::set_text("errorcode", errorcode, String::new())
}
