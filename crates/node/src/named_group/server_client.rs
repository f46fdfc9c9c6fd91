//! Where a server's replies come, and what is sent there and back.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use landeck_kernel::{Peer, Received, Wanted};
use landeck_memory::Bytes;

use crate::error::Result;
use landeck_engine::{Engine, OperationId, Shared};

/// Stands beside the number of the request in a message that was asked for.
pub(super) const REQUEST_BIT: u64 = 1 << 32;
/// What a request is, above its number in the tag.
pub(super) const ASK: u32 = 1;
pub(super) const BROADCAST: u32 = 2;
pub(super) const HELD_BROADCAST: u32 = 3;

/// Replies of which nobody asks any more, before they are forgotten.
const HEARD_MAX: usize = 64;

/// Where replies come, and whose turn it is to ask.
pub(crate) struct ServerClient {
    shared: Arc<Shared>,
    pub(super) context: u32,
    pub(super) is_asking: AtomicBool,
    heard: Mutex<Vec<u32>>,
}

impl ServerClient {
    pub(super) fn open(shared: &Arc<Shared>) -> Result<Self> {
        let context = open_context(shared)?;
        let (is_asking, heard) = (AtomicBool::new(false), Mutex::default());
        Ok(Self { shared: shared.clone(), context, is_asking, heard })
    }

    /// Takes the replies that have come.
    pub(super) fn hear(&self, kernel: &mut Engine) {
        let wanted = Wanted { context: self.context, source: None, tag: None };
        while let Some(status) = kernel.probe(wanted) {
            let id = kernel.receive_own(wanted);
            if kernel.take(OperationId::from(id)).is_none() {
                kernel.abandon(id.into());
            }
            let mut heard = self.heard();
            if heard.len() == HEARD_MAX {
                heard.remove(0);
            }
            heard.push(status.tag);
        }
    }

    pub(super) fn has_heard(&self, number: u32) -> bool {
        self.heard().contains(&number)
    }

    fn heard(&self) -> MutexGuard<'_, Vec<u32>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ServerClient {
    fn drop(&mut self) {
        if let Ok(mut kernel) = self.shared.kernel.enter() {
            kernel.close_mailbox(self.context);
        }
    }
}

/// A mailbox without a mark: only who is told of it posts there.
pub(super) fn open_context(shared: &Shared) -> Result<u32> {
    let mut kernel = shared.kernel.enter()?;
    let context = kernel.new_mailbox();
    kernel.set_members(context, vec![Peer(shared.slot)]);
    Ok(context)
}

/// The bytes of a message that was received.
pub(crate) fn bytes_of(received: &Received) -> Bytes<'_> {
    match received {
        Received::Private(bytes) => Bytes::from(&bytes[..]),
        Received::Borrowed { block, length } => block.piece(0, *length),
    }
}
