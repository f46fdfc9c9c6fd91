//! The user's wishes for collective operations.

use landeck::unstable::collectives::{Nearness, Overrides};

/// The user's wishes for collective operations. The environment decides where there are none.
#[derive(Debug, Default)]
pub(crate) struct Wishes {
    /// The ways of the operations.
    pub(crate) overrides: Option<Overrides>,
    /// The places that make members near.
    pub(crate) nearness: Option<Nearness>,
}
