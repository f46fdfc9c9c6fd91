//! The board: shared memory in which the members of a group on one host carry out a collective operation.
//!
//! Each member deposits its data where all can read them, publishes its arrival, and takes the data that it
//! needs from the others' deposits. Short data stand in the member's line and the one behind it. Longer data
//! stand in a block of the member's heap, which the line names; it is freed once all members have completed the
//! operation. Data for one other member stand in a handoff buffer, which then belongs to that member. Or a member only
//! tells where its data lie in its own memory, and others read them there. Members may be [`WINDOW`] operations apart.
//!
//! A group's memory consists of two lines for each member and operation of the window, and two more for each
//! member, in its own pages; one page of shared words, from the pool of the leading member; and the deposits.
//!
//! Nothing here waits. Everything read is checked: a scribbled word leads to wrong data, to an operation that
//! never ends (until a member dies or gives up), or to [`BoardBroken`].

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
