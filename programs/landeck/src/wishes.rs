//! What a user asks of collective operations.

use landeck::unstable::collectives::{Nearness, Overrides};

/// What is asked of collective operations; none where the environment is to say.
#[derive(Debug, Default)]
pub(crate) struct Wishes {
    /// Which ways they take.
    pub(crate) overrides: Option<Overrides>,
    /// What makes members near.
    pub(crate) nearness: Option<Nearness>,
}
