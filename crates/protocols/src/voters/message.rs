//! The messages between voters, and which of them are garbled.

use std::time::Duration;

use landeck_wire::HostIncarnation;
use serde::{Deserialize, Serialize};

use super::log::{LogContent, LogEntry, LogPosition, LogSnapshot};

/// Terms and indexes above this are garbled: no machine lives so long, and nothing is added to them.
const NUMBER_MAX: u64 = u64::MAX / 4;

/// A message from one voter or learner to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoterMessage {
    /// The incarnation that sends it.
    pub from: HostIncarnation,
    /// The incarnation that it is for. The next one of that host takes nothing from it.
    pub to: HostIncarnation,
    /// The sender's term. In a pre-vote the term that the candidate would begin.
    pub term: u64,
    /// Its content.
    pub content: VoterContent,
}

/// The content of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VoterContent {
    /// A candidate asks for a vote.
    Ask {
        /// Whether it only wants to know if it would get it (a *pre-vote*). That binds nobody.
        is_pre: bool,
        /// The end of its log.
        last: LogPosition,
    },
    /// The answer to that.
    Vote {
        /// Whether it answers a pre-vote.
        is_pre: bool,
        /// Whether the candidate has the vote.
        is_granted: bool,
    },
    /// A leader sends entries. Without any it is a heartbeat.
    Append {
        /// The time on the leader's clock. The answer repeats it.
        sent: Duration,
        /// The position in front of the entries.
        before: LogPosition,
        /// The entries.
        entries: Vec<LogEntry>,
        /// The index up to which the leader has committed.
        commit: u64,
    },
    /// A leader sends a snapshot, as it no longer has the entries that a peer lacks.
    Install {
        /// The time on the leader's clock. The answer repeats it.
        sent: Duration,
        /// The snapshot.
        snapshot: LogSnapshot,
    },
    /// The answer to both.
    Answer {
        /// The time in the leader's message.
        sent: Duration,
        /// The result.
        answer: VoterAnswer,
    },
}

/// A follower's answer to entries or a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VoterAnswer {
    /// It has stored the leader's log up to this index.
    Stored(u64),
    /// Its log is another one in front of the entries. Up to this index it is surely the leader's.
    Differs(u64),
}

impl VoterMessage {
    /// Whether a voter can have sent this.
    pub(super) fn is_sound(&self) -> bool {
        let is_small = |number: u64| number <= NUMBER_MAX;
        let is_position = |it: LogPosition| it.term <= self.term && is_small(it.index);
        is_small(self.term)
            && match &self.content {
                VoterContent::Ask { last, .. } => is_position(*last),
                VoterContent::Vote { .. } => true,
                VoterContent::Append { before, entries, commit, .. } => {
                    is_position(*before)
                        && is_small(*commit)
                        && are_sound(before.term, entries, self.term)
                }
                VoterContent::Install { snapshot, .. } => {
                    is_position(snapshot.last) && snapshot.voters.is_sound()
                }
                VoterContent::Answer { answer, .. } => match answer {
                    VoterAnswer::Stored(index) | VoterAnswer::Differs(index) => is_small(*index),
                },
            }
    }
}

/// Whether entries behind one of this term may be in one log: terms only grow, up to the leader's own.
fn are_sound(mut term: u64, entries: &[LogEntry], newest: u64) -> bool {
    entries.iter().all(|entry| {
        let is_in_order = (term..=newest).contains(&entry.term);
        term = entry.term;
        let are_voters_sound = match &entry.content {
            LogContent::Voters(voters) => voters.is_sound(),
            LogContent::Begin(_) | LogContent::Data(_) => true,
        };
        is_in_order && are_voters_sound
    })
}
