//! Groups of this host whose servers are gone. The helper of a machine finds them, and serves them from then on.

use std::sync::Arc;

use landeck_engine::Shared;
use landeck_joining::objects::{self, ObjectError, ObjectKind};
use landeck_protocols::service::Phase;
use landeck_wire::ProcessId;

use crate::error::Result;
use crate::replica::Replica;
use crate::server_handle::ServerHandle;

/// Has this process serve all groups whose logs lie on this host and that no process serves.
///
/// # Errors
/// [`crate::ServiceError::Object`]: the agent does not answer.
pub fn serve_orphans(shared: &Arc<Shared>, server_handle: &Arc<ServerHandle>) -> Result<()> {
    let process = shared.process();
    let mut last = 0;
    while let Some((object, name)) = objects::next_group(process, last)? {
        last = object.number;
        let memory = match objects::open_number(process, ObjectKind::Group, object.number) {
            Err(ObjectError::Gone { .. }) => continue,
            memory => memory?,
        };
        let maker = memory.0.owner;
        // A group that is broken, or whose name another one has got, is told to those that ask for it.
        if let Ok(replica) = Replica::open(shared, server_handle, &name, memory)
            && replica.is_orphaned(maker).unwrap_or(false)
        {
            let _ = replica.take_seat();
        }
    }
    Ok(())
}

impl Replica {
    /// Whether the group goes on without a server. As long as nobody has served it, its maker is about to.
    fn is_orphaned(&self, maker: ProcessId) -> Result<bool> {
        let has_maker = || self.how_it_left(maker.slot.0, maker.incarnation.0).is_none();
        self.with(|local| {
            let state = &local.state;
            let is_free = state.phase() != Phase::Ended && state.server().is_none();
            Ok(is_free && (state.epochs() > 0 || !has_maker()))
        })
    }
}
