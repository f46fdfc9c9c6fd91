//! The facts of a call that decide its route.

use landeck_collectives::{Way, WayRequest};

/// The facts of a call that decide its route.
pub(crate) struct CallFacts<'c> {
    /// The way that the call asks for, whatever the table says.
    pub(crate) way: Option<&'c Way>,
    /// The question for the table.
    pub(crate) request: WayRequest,
    /// The plan's steps at the board are enough: no memory is missing or set aside, no block goes beside the board,
    /// and the member does not contradict itself.
    pub(crate) fits_board_call: bool,
}
