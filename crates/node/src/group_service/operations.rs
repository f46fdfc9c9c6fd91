//! How far a member has come in the collective operations of its group.

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
