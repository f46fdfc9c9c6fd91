//! The board: where the members of a group on one host do a collective operation.
//!
//! Each member lays what it brings where all can read it, says that it has come, and takes what it
//! needs from where it lies. Short data stand in the line that says it and the one behind it; longer
//! ones in a block of the member's heap, which the line names and which is freed when everybody is over
//! with the operation; where one other member takes them, in a cell that becomes that one's. Members may be
//! [`WINDOW`] operations apart.
//!
//! Memory of a group: for each member two lines for each operation of the window and two more, in its
//! own pages; one page of shared words, from the pool of the member that leads; and what is
//! deposited.
//!
//! Nothing here waits. Everything read is checked: a scribbled word leads to wrong data, to an
//! operation that never ends (until somebody dies or gives up), or to [`BoardBroken`].

// The model checker's build leaves out what it has no models of.
#![cfg_attr(loom, allow(dead_code, unreachable_pub))]

mod agreement;
mod words;

#[cfg(not(loom))]
mod ahead;
#[cfg(not(loom))]
mod deposits;
#[cfg(all(test, not(loom)))]
mod fixture;
#[cfg(not(loom))]
mod handle;
#[cfg(not(loom))]
mod history;
#[cfg(not(loom))]
mod need;
#[cfg(not(loom))]
mod neighbours;
#[cfg(not(loom))]
mod outcome;
#[cfg(not(loom))]
mod place;
#[cfg(not(loom))]
mod pool;
#[cfg(not(loom))]
mod reading;
#[cfg(not(loom))]
mod room;
#[cfg(not(loom))]
mod roster;
#[cfg(not(loom))]
mod standing;
#[cfg(not(loom))]
mod ticket;

pub use agreement::{Offer, Part};
pub use words::{INLINE_BYTES, LINES_BYTES, PIECES_MAX, RESULT_BYTES, SHARED_BYTES, WINDOW};

#[cfg(not(loom))]
pub use {
    handle::*,
    history::{CALL_BITS, ROOT_BITS},
    need::needs_of_first_world,
    neighbours::{LOOKED_AT_MAX, Neighbours, WAITING_KEEP_NS},
    outcome::{Coming, Outcome},
    place::{LinesPlace, is_revoked},
    pool::BoardPool,
    reading::{Deposit, NoDeposit},
    room::Room,
    roster::roster_bytes,
    standing::{Roster, Standing, roster_of, standing_of},
};
