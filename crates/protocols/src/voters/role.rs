//! The role of a voter in its term.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use landeck_wire::HostIncarnation;

/// The role of a voter in its term.
#[derive(Clone, Debug)]
pub(super) enum Role {
    /// It follows a leader, or waits for one.
    Follower,
    /// It asks for votes, or only whether it would get them.
    Candidate { is_pre: bool, granted: BTreeSet<HostIncarnation> },
    /// It leads.
    Leader(Leadership),
}

/// The state of a leader.
#[derive(Clone, Debug)]
pub(super) struct Leadership {
    /// When it was elected.
    pub(super) elected: Duration,
    /// The index of its first entry.
    pub(super) begin: u64,
    /// The arbiter before it, where that is certain.
    pub(super) former: Option<HostIncarnation>,
    /// When it became the arbiter: that entry was committed.
    pub(super) arbiter_since: Option<Duration>,
    pub(super) next_beat: Duration,
    pub(super) peers: BTreeMap<HostIncarnation, Peer>,
}

/// A leader's knowledge of a voter or learner.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    /// The index of the next entry to send.
    pub(super) next: u64,
    /// The index up to which it has stored the log.
    pub(super) stored: u64,
    /// The sending time of the newest message that it has answered.
    pub(super) answered: Option<Duration>,
    /// The sending time of the message under way.
    pub(super) under_way: Option<Duration>,
    /// The commit index that it was told last.
    pub(super) told: u64,
}
