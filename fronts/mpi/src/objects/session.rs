//! Sessions: another way to use the library than from MPI_Init to MPI_Finalize.

use std::sync::Arc;

use landeck_c_boundary::Table;

use crate::abi::{ERRORS_ARE_FATAL, Handle};
use crate::job;
use crate::mistake::Mistake;
use crate::objects::buffer;
use crate::objects::error_handler::{Reaction, Slot};
use crate::objects::info::Info;
use crate::objects::kind::Kind;

/// A session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) error_handler: Slot,
    pub(crate) info: Info,
    pub(crate) buffer: buffer::Slot,
}

static TABLE: Table<Arc<Session>> = Table::new(Kind::Session as u8);

impl Session {
    pub(crate) fn new(info: Info) -> Self {
        let error_handler = Slot::new(Kind::Session, ERRORS_ARE_FATAL);
        Self { error_handler, info, buffer: buffer::Slot::new() }
    }
}

/// Gives out the handle of a session. The caller has joined the job for it ([`job::join`]).
pub(crate) fn keep(session: Session) -> Result<Handle, Mistake> {
    TABLE.make_room()?;
    Ok(TABLE.insert(Arc::new(session)) as Handle)
}

/// The session of a handle; borrowed for the call.
pub(crate) fn get(argument: &str, handle: Handle) -> Result<&'static Arc<Session>, Mistake> {
    job::check_joined()?;
    // SAFETY: a program frees an object when no other call of its uses it.
    unsafe { TABLE.get(handle as u64) }
        .map_err(|error| Kind::Session.refuse(argument, handle, error))
}

/// Takes a session out of the table.
pub(crate) fn free(argument: &str, handle: Handle) -> Result<Arc<Session>, Mistake> {
    let removed = TABLE.remove(handle as u64);
    removed.map_err(|error| Kind::Session.refuse(argument, handle, error))
}

/// Returns the reaction of a session's error handler; none if there is no such session.
pub(crate) fn reaction(handle: Handle) -> Option<Reaction> {
    // SAFETY: as in `get`, whose words to children made by fork this is to pass on.
    let session = job::is_joined().then(|| unsafe { TABLE.get(handle as u64) }.ok()).flatten();
    session.map(|session| session.error_handler.reaction())
}

/// The number of a handle, and the handle of a number.
pub(crate) fn table() -> &'static Table<impl Sized> {
    &TABLE
}
