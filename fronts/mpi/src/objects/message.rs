//! Messages that were taken out: matched by a probe, and not received yet.

use std::sync::Arc;

use landeck::raw::Held;
use landeck_c_boundary::Table;

use crate::abi::{Handle, MESSAGE_NO_PROC};
use crate::job;
use crate::mistake::Mistake;
use crate::objects::communicator::Communicator;
use crate::objects::kind::Kind;

/// A message that was taken out.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) held: Held,
    pub(crate) communicator: Arc<Communicator>,
}

static TABLE: Table<Message> = Table::new(Kind::Message as u8);

/// Makes sure that there is room for one more.
pub(crate) fn make_room() -> Result<(), Mistake> {
    Ok(TABLE.make_room()?)
}

/// Gives out the handle of a message.
pub(crate) fn keep(message: Message) -> Handle {
    TABLE.insert(message) as Handle
}

/// The message of a handle, as it stays for the call; none for MPI_MESSAGE_NO_PROC.
pub(crate) fn get(argument: &str, handle: Handle) -> Result<Option<&'static Message>, Mistake> {
    job::check_joined()?;
    if handle == MESSAGE_NO_PROC {
        return Ok(None);
    }
    // SAFETY: a program receives a message in one call.
    unsafe { TABLE.get(handle as u64) }
        .map(Some)
        .map_err(|error| Kind::Message.refuse(argument, handle, error))
}

/// Takes a message out of the table: its handle is stale from now on.
pub(crate) fn take(argument: &str, handle: Handle) -> Result<Message, Mistake> {
    let removed = TABLE.remove(handle as u64);
    removed.map_err(|error| Kind::Message.refuse(argument, handle, error))
}

/// The number of a handle, and the handle of a number.
pub(crate) fn table() -> &'static Table<impl Sized> {
    &TABLE
}
