//! How far a member has come in the collective operations of its group.

use crate::error::Result;
use crate::world::World;

/// How far a member has come in the collective operations of its group.
#[derive(Default)]
pub(super) struct Operations {
    /// The number of the last operation; zero before the first.
    pub(super) number: u64,
    /// The first operation of the world's participants.
    pub(super) world_since: u64,
    pub(super) world: Option<World>,
    /// The members' numbers, in the order of their ranks there.
    pub(super) ids: Vec<u32>,
}

impl Operations {
    /// Fails if a participant of the world has died, and no operation of the world has told of it.
    pub(super) fn tell_of(&self, died: Option<u32>) -> Result<()> {
        let rank = died.and_then(|died| self.ids.iter().position(|&id| id == died));
        let untold =
            self.world.as_ref().zip(rank).and_then(|(world, rank)| world.untold_death(rank));
        untold.map_or(Ok(()), Err)
    }
}
