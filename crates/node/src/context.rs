//! The contexts that every job has from its beginning.

use landeck_wire::ContextId;

/// The context of the first world, the same in every job.
pub(crate) const WORLD_CONTEXT: u32 = ContextId::WORLD.0;
/// The context of groups that are made under a name: nothing is said there but that.
pub(crate) const NAMES_CONTEXT: u32 = ContextId::new((1 << (ContextId::INDEX_BITS - 1)) - 1, 1).0;
