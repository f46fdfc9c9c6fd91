//! Sessions: beginning and end, their sets of processes, their error handlers.

use std::ffi::{c_char, c_int};

use landeck_c_boundary::{pointer, string};

use crate::abi::{
    Callback, ERR_ARG, Handle, MAX_PSET_NAME_LEN, SESSION_NULL, THREAD_FUNNELED, THREAD_MULTIPLE,
    THREAD_SERIALIZED, THREAD_SINGLE,
};
use crate::arguments::{give, text};
use crate::functions::error::create;
use crate::job;
use crate::mistake::Mistake;
use crate::objects::info::{self, Info};
use crate::objects::kind::Kind;
use crate::objects::process_set::{self, ProcessSet};
use crate::objects::session::{self, Session};
use crate::objects::{error_handler, group};
use crate::origin;
use crate::walk::Walk;

/// Begins a session. The hint `thread_level` may ask for a thread level.
pub(crate) unsafe fn session_init(
    info: Handle,
    errhandler: Handle,
    session: *mut Handle,
) -> Result<(), Mistake> {
    let hints = info::snapshot_or_empty("info", info)?;
    error_handler::reaction("errhandler", errhandler, Kind::Session)?;
    pointer::check("session", session, 1)?;
    let level = match hints.get(LEVEL) {
        None => THREAD_SINGLE,
        Some(name) => level_of(name)?,
    };
    let provided = job::join(level)?;
    let mut known = Info::default();
    let name = LEVELS.iter().find(|(level, _)| *level == provided).map_or("", |(_, name)| name);
    known.set(LEVEL, name);
    let made = Session::new(known);
    made.error_handler.set("errhandler", errhandler)?;
    // SAFETY: checked above; the program says that it is writable.
    unsafe { give("session", session, session::keep(made)?) }
}

/// Ends a session.
pub(crate) unsafe fn session_finalize(session: *mut Handle) -> Result<(), Mistake> {
    // SAFETY: the program gives the address of a handle, or it is refused.
    let handle = unsafe { pointer::read("session", session)? };
    session::get("session", handle)?;
    let freed = session::free("session", handle)?;
    // SAFETY: read above; the program says that it is writable too.
    unsafe { give("session", session, SESSION_NULL)? };
    // Groups and communicators may have it for longer, but its buffer is the program's again.
    freed.buffer.flush().and(job::leave_at_exit())
}

/// MPI_Session_get_info: the facts about a session, which are its thread level.
pub(crate) unsafe fn session_get_info(
    session: Handle,
    info_used: *mut Handle,
) -> Result<(), Mistake> {
    let session = session::get("session", session)?;
    pointer::check("info_used", info_used, 1)?;
    // SAFETY: checked above; the program says that it is writable.
    unsafe { give("info_used", info_used, info::keep(session.info.clone())?) }
}

/// How many sets of processes there are.
pub(crate) unsafe fn session_get_num_psets(
    session: Handle,
    info: Handle,
    npset_names: *mut c_int,
) -> Result<(), Mistake> {
    session::get("session", session)?;
    info::snapshot_or_empty("info", info)?;
    // SAFETY: the program says that it is writable.
    unsafe { give("npset_names", npset_names, process_set::ALL.len() as c_int) }
}

/// The name of a set, as far as there is room, and how much room it needs with its end.
pub(crate) unsafe fn session_get_nth_pset(
    session: Handle,
    info: Handle,
    n: c_int,
    pset_len: *mut c_int,
    pset_name: *mut c_char,
) -> Result<(), Mistake> {
    session::get("session", session)?;
    info::snapshot_or_empty("info", info)?;
    let found = usize::try_from(n).ok().and_then(|n| process_set::ALL.get(n));
    let name = found.map(|set| set.name()).ok_or_else(|| {
        let count = process_set::ALL.len();
        Mistake::new(ERR_ARG, format_args!("n is {n}, but there are {count} sets, counted from 0"))
    })?;
    // SAFETY: the program says that it is readable and writable, and that it has so much room.
    unsafe {
        let room = usize::try_from(pointer::read("pset_len", pset_len)?).unwrap_or_default();
        string::write("pset_name", pset_name, room, name)?;
        give("pset_len", pset_len, name.len() as c_int + 1)
    }
}

/// MPI_Session_get_pset_info: the facts about a process set, which are its size.
pub(crate) unsafe fn session_get_pset_info(
    session: Handle,
    pset_name: *const c_char,
    info: *mut Handle,
) -> Result<(), Mistake> {
    let session = session::get("session", session)?;
    // SAFETY: the program gives a text, or it is refused.
    let set = unsafe { set_of(pset_name)? };
    pointer::check("info", info, 1)?;
    let mut known = Info::default();
    known.set("mpi_size", &set.group(session)?.size().to_string());
    // SAFETY: checked above; the program says that it is writable.
    unsafe { give("info", info, info::keep(known)?) }
}

/// The processes of a set.
pub(crate) unsafe fn group_from_session_pset(
    session: Handle,
    pset_name: *const c_char,
    newgroup: *mut Handle,
) -> Result<(), Mistake> {
    let session = session::get("session", session)?;
    // SAFETY: the program gives a text, or it is refused.
    let set = unsafe { set_of(pset_name)? };
    pointer::check("newgroup", newgroup, 1)?;
    let made = set.group(session)?;
    // SAFETY: checked above; the program says that it is writable.
    unsafe { give("newgroup", newgroup, group::keep(made)?) }
}

/// Makes a handler for sessions.
pub(crate) unsafe fn session_create_errhandler(
    session_errhandler_fn: Callback,
    errhandler: *mut Handle,
) -> Result<(), Mistake> {
    // SAFETY: the program gives a function of this type, and a writable place.
    unsafe { create(("session_errhandler_fn", session_errhandler_fn), Kind::Session, errhandler) }
}

/// Sets the handler of a session.
pub(crate) unsafe fn session_set_errhandler(
    session: Handle,
    errhandler: Handle,
) -> Result<(), Mistake> {
    session::get("session", session)?.error_handler.set("errhandler", errhandler)
}

/// The handler of a session, as one more handle to it.
pub(crate) unsafe fn session_get_errhandler(
    session: Handle,
    errhandler: *mut Handle,
) -> Result<(), Mistake> {
    let session = session::get("session", session)?;
    pointer::check("errhandler", errhandler, 1)?;
    // SAFETY: checked above; the program says that it is writable.
    unsafe { give("errhandler", errhandler, session.error_handler.handle()) }
}

/// Calls the handler of a session with a code of the program.
pub(crate) unsafe fn session_call_errhandler(
    session: Handle,
    errorcode: c_int,
) -> Result<Walk, Mistake> {
    let reaction = session::get("session", session)?.error_handler.reaction();
    Ok(origin::call_handler("MPI_Session_call_errhandler", reaction, session, errorcode))
}

/// The hint that asks for a thread level.
const LEVEL: &str = "thread_level";
const LEVELS: [(c_int, &str); 4] = [
    (THREAD_SINGLE, "MPI_THREAD_SINGLE"),
    (THREAD_FUNNELED, "MPI_THREAD_FUNNELED"),
    (THREAD_SERIALIZED, "MPI_THREAD_SERIALIZED"),
    (THREAD_MULTIPLE, "MPI_THREAD_MULTIPLE"),
];

fn level_of(name: &str) -> Result<c_int, Mistake> {
    let found = LEVELS.iter().find(|(_, own)| *own == name).map(|(level, _)| *level);
    found.ok_or_else(|| {
        let text =
            format!("info has the {LEVEL} \"{name}\"; use the name of an MPI_THREAD_ constant");
        Mistake::new(ERR_ARG, text)
    })
}

unsafe fn set_of(name: *const c_char) -> Result<ProcessSet, Mistake> {
    // SAFETY: as the caller says.
    let name = unsafe { text("pset_name", name, MAX_PSET_NAME_LEN as usize - 1)? };
    ProcessSet::of_name(&name).ok_or_else(|| {
        let known = process_set::ALL.map(ProcessSet::name).join(" and ");
        Mistake::new(ERR_ARG, format_args!("pset_name is \"{name}\"; the sets are {known}"))
    })
}
