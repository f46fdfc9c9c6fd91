//! The user's wishes for collective operations.

use landeck::OneCopy;
use landeck::unstable::collectives::{Nearness, Overrides};

/// The user's wishes for collective operations. The environment decides where there are none.
#[derive(Debug, Default)]
pub(crate) struct Wishes {
    /// The ways of the operations.
    pub(crate) overrides: Option<Overrides>,
    /// The places that make members near.
    pub(crate) nearness: Option<Nearness>,
    /// The length from which data on one host are copied once.
    pub(crate) one_copy: Option<OneCopy>,
}
