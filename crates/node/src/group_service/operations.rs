//! How far a member has come in the operations of its group.

use crate::world::World;

/// How far a member has come in the group's operations.
#[derive(Default)]
pub(super) struct Operations {
    /// The number of the last; zero before the first.
    pub(super) number: u64,
    /// The cut that the world was made by.
    pub(super) cut: u64,
    pub(super) world: Option<World>,
    /// The members' numbers, in the order of their ranks there.
    pub(super) ids: Vec<u32>,
}
