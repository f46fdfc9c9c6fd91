//! The group service: what a named group is, as a fold of its log.
//!
//! Everything that happens to a group is an [`Entry`] of its log; whoever has an entry accepted has
//! done what it says, and nobody else takes part. [`State`] is what follows from the entries so far:
//! each process that uses the group folds them for itself and comes to the same. Since a log that is
//! kept for ever would need memory for ever, a state can be written down ([`State::to_words`]) and
//! read again by whoever comes later.
//!
//! - A member has the smallest number that is free, and keeps it.
//! - The group has *started* once there were as many members as its minimum; that stays so.
//! - A round of synchronisation begins with the first that comes to it, and is of those who are
//!   members then. It is over when all of them have come, left or died; if one died, all who took
//!   part are told which. Who joined later takes part in the next one.
//! - A group whose last member has gone is over, unless it is persistent.
//! - A group that is being destroyed lets those broadcasts finish that were held when that began.
//! - A *cut* says which members a numbered collective operation has. Whoever comes to that number
//!   first makes it; later joins and leaves count for later numbers.
//!
//! - A group may have a *server*: a seat that one process has at a time. Clients ask it, and it has
//!   accepted what they ask for ([`Asking`], with the number of the request). What follows is the
//!   same as if they had done it themselves. When it is gone, whoever sees that says so, and another
//!   process takes the seat: that is the next *epoch*.
//!
//! Entries that mean nothing any more (of a member that is gone, a cut that was made) change
//! nothing: so everybody who sees a death may say so.

mod entry;
mod snapshot;
mod state;

pub use entry::{Ask, Asking, Entry, EntryWord, Held, Joining, Seat, Serving};
pub use snapshot::SNAPSHOT_WORDS_MAX;
pub use state::{Cut, Gone, MemberRecord, Outcome, Phase, Rules, Server, State};

/// Most members of a group.
pub const MEMBERS_MAX: usize = 1 << 10;
/// Most broadcasts of a group that are held at once.
pub const HELD_MAX: usize = 256;
