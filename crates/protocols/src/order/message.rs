//! Messages between the holders of a group.
//!
//! Each carries the epoch of its sender. The contents of entries and requests travel beside them: the driver reads them
//! from the copy, and writes them where it is told to.

use super::fold::{OrderFold, OrderParty, RequestShape};
use super::words::HolderId;

/// A message from one holder to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderMessage {
    /// The sender's epoch.
    pub epoch: u64,
    /// The content.
    pub content: OrderContent,
}

/// The content of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderContent {
    /// Entries of the log; none tells only what is stable. Answered with [`Self::Stored`].
    Feed {
        /// The position of the first one.
        from: u64,
        /// Their number.
        count: u32,
        /// The position before which everything is stable.
        stable: u64,
    },
    /// The state of the log at a position, for a copy without it. Answered with [`Self::Stored`].
    Begin {
        /// The position.
        at: u64,
        /// The position before which everything is stable.
        stable: u64,
        /// The state.
        fold: OrderFold,
    },
    /// The sender has stored everything before this position; 0 if its copy has not begun in this epoch.
    Stored(u64),
    /// The home asks for a report.
    Ask,
    /// The sender stores nothing of earlier epochs than the message's any more, and has so much.
    Report(CopyReport),
    /// The home asks the longest copy for entries from this position on; `None` if it lacks the beginning.
    Fetch(Option<u64>),
    /// Requests of a party, for the home.
    Requests {
        /// The party.
        party: OrderParty,
        /// The number of the first request.
        first: u64,
        /// The oldest unanswered one.
        oldest: u64,
        /// The requests in the order of their numbers.
        asked: Vec<RequestShape>,
        /// The number of the party's last request, if it has died.
        died_after: Option<u64>,
    },
    /// The home has no room, since this holder lags.
    Full(HolderId),
}

/// The copy of a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyReport {
    /// The number of its entries.
    pub length: u64,
    /// Whether it has everything before them.
    pub is_complete: bool,
}
