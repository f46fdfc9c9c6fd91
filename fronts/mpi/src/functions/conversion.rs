//! Handles as integers, and back. Predefined handles are their own numbers; those given out here
//! have negative ones.

use std::ffi::c_int;

use landeck_c_boundary::Table;

use crate::abi::{FILE_NULL, Handle, WIN_NULL};
use crate::objects::request::{OF_NOBODY, SENT};
use crate::objects::{
    communicator, datatype, error_handler, group, info, message, operation, request, session,
};

/// Predefined handles are smaller.
const PREDEFINED_END: Handle = 0x400;
/// The numbers of requests that lead to no place of the table.
const NUMBERS_OF_REQUESTS: [(Handle, c_int); 2] = [(SENT, 0x401), (OF_NOBODY, 0x402)];

fn number<T>(table: &Table<T>, handle: Handle) -> c_int {
    if handle < PREDEFINED_END { handle as c_int } else { table.number(handle as u64) }
}

fn handle<T>(table: &Table<T>, number: c_int) -> Handle {
    match Handle::try_from(number) {
        Ok(predefined) => predefined,
        Err(_) => table.of_number(number) as Handle,
    }
}

/// The number of a communicator.
pub(crate) fn comm_toint(comm: Handle) -> c_int {
    number(communicator::table(), comm)
}

/// The communicator of a number.
pub(crate) fn comm_fromint(comm: c_int) -> Handle {
    handle(communicator::table(), comm)
}

/// The number of an error handler.
pub(crate) fn errhandler_toint(errhandler: Handle) -> c_int {
    number(error_handler::table(), errhandler)
}

/// The error handler of a number.
pub(crate) fn errhandler_fromint(errhandler: c_int) -> Handle {
    handle(error_handler::table(), errhandler)
}

/// The number of a group.
pub(crate) fn group_toint(group: Handle) -> c_int {
    number(group::table(), group)
}

/// The group of a number.
pub(crate) fn group_fromint(group: c_int) -> Handle {
    handle(group::table(), group)
}

/// The number of an info object.
pub(crate) fn info_toint(info: Handle) -> c_int {
    number(info::table(), info)
}

/// The info object of a number.
pub(crate) fn info_fromint(info: c_int) -> Handle {
    handle(info::table(), info)
}

/// The number of an operation.
pub(crate) fn op_toint(op: Handle) -> c_int {
    number(operation::table(), op)
}

/// The operation of a number.
pub(crate) fn op_fromint(op: c_int) -> Handle {
    handle(operation::table(), op)
}

/// The number of a request.
pub(crate) fn request_toint(request: Handle) -> c_int {
    let immediate = NUMBERS_OF_REQUESTS.iter().find(|(handle, _)| *handle == request);
    immediate.map_or_else(|| number(request::table(), request), |(_, number)| *number)
}

/// The request of a number.
pub(crate) fn request_fromint(request: c_int) -> Handle {
    let immediate = NUMBERS_OF_REQUESTS.iter().find(|(_, number)| *number == request);
    immediate.map_or_else(|| handle(request::table(), request), |(handle, _)| *handle)
}

/// The number of a session.
pub(crate) fn session_toint(session: Handle) -> c_int {
    number(session::table(), session)
}

/// The session of a number.
pub(crate) fn session_fromint(session: c_int) -> Handle {
    handle(session::table(), session)
}

/// The number of a datatype.
pub(crate) fn type_toint(datatype: Handle) -> c_int {
    number(datatype::table(), datatype)
}

/// The datatype of a number.
pub(crate) fn type_fromint(datatype: c_int) -> Handle {
    handle(datatype::table(), datatype)
}

/// The number of a message.
pub(crate) fn message_toint(message: Handle) -> c_int {
    number(message::table(), message)
}

/// The message of a number.
pub(crate) fn message_fromint(message: c_int) -> Handle {
    handle(message::table(), message)
}

/// The number of a window.
pub(crate) fn win_toint(win: Handle) -> c_int {
    c_int::try_from(win).unwrap_or(WIN_NULL as c_int)
}

/// The window of a number: those of the library are all there are.
pub(crate) fn win_fromint(win: c_int) -> Handle {
    Handle::try_from(win).unwrap_or(WIN_NULL)
}

/// The number of a file.
pub(crate) fn file_toint(file: Handle) -> c_int {
    c_int::try_from(file).unwrap_or(FILE_NULL as c_int)
}

/// The file of a number: those of the library are all there are.
pub(crate) fn file_fromint(file: c_int) -> Handle {
    Handle::try_from(file).unwrap_or(FILE_NULL)
}
