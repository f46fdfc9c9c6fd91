//! The group service: the state of a named group, as a fold of its log.
//!
//! Everything that happens to a group is an [`GroupEntry`] of its log. A process that appends an entry has done what it
//! says; no other process takes part. [`State`] is the result of the entries so far: each process that uses the group
//! folds them for itself and gets the same result. A log that is kept for ever would need memory for ever. So a state
//! can be written down ([`State::to_words`]), and processes that come later read it.
//!
//! - A member has the smallest free number, and keeps it.
//! - The group has *started* once it had as many members as its minimum; that never changes back.
//! - A round of synchronisation begins when the first member comes to it, and consists of the members at that time. It
//!   is complete when all of them have come, left or died. If a member has died since the round before, all participants
//!   are told which: one, if several have. Members that joined later take part in the next round.
//! - The last changes of the members are remembered, so that each member can be told the views in their places among the
//!   messages ([`State::view_after`]). A lost host is one view ([`GroupEntry::HostGone`]).
//! - A group ends with its last member, unless it is persistent.
//! - While a group is being destroyed, broadcasts that were already held may finish.
//! - A *cut* determines the members of a numbered collective operation. The first process that comes to that number
//!   makes it; later joins and leaves count for later numbers.
//!
//! - A group may have a *server*: a seat that one process holds at a time. Clients send requests to it, and it appends
//!   them to the log ([`Asking`], with the number of the request). The effect is as if the clients had appended them.
//!   When the server has ended, any process that sees that appends this fact, and another process takes the seat: that
//!   is the next *epoch*.
//!
//! Entries without a meaning any more (of a member that has gone, or a cut that was already made) change nothing. So
//! every process that sees a death may append it.

mod changes;
mod cut;
mod entry;
mod member;
mod snapshot;
mod state;

pub use changes::{CHANGES_MAX, ChangedMember, Gone, MemberChange, View};
pub use cut::{Cut, CutMember};
pub use entry::{Ask, Asking, GroupEntry, Joining, Party, Seat, Serving, WaitingSender};
pub use member::MemberRecord;
pub use snapshot::SNAPSHOT_WORDS_MAX;
pub use state::{Outcome, Phase, Rules, Server, State};

/// The largest number of members of a group.
pub const MEMBERS_MAX: usize = 1 << 10;
/// The largest number of hosts of a group.
pub const HOSTS_MAX: usize = 1 << 10;
/// The largest number of broadcasts of a group that are held at once.
pub const HELD_MAX: usize = 256;
