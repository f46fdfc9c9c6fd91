//! The state of a voter that outlives its daemon, and the records that change it.
//!
//! The driver keeps a copy and writes each record into it before it sends the messages behind the record. After a restart of
//! the daemon the voter goes on from that copy.

use landeck_wire::HostIncarnation;
use serde::{Deserialize, Serialize};

use super::log::{LogEntry, LogPosition, LogSnapshot, VoterLog};
use super::quorum::Voters;

/// The state of a voter that outlives its daemon.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredVoter {
    /// The newest term of which the voter knows.
    pub term: u64,
    /// The candidate that it has voted for in that term.
    pub vote: Option<HostIncarnation>,
    /// Its log.
    pub log: VoterLog,
}

/// A change of that state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VoterRecord {
    /// Another term, or the vote in one.
    Vote {
        /// The term.
        term: u64,
        /// The candidate that has this voter's vote.
        vote: Option<HostIncarnation>,
    },
    /// Entries, in the place of all behind an index.
    Append {
        /// The index.
        behind: u64,
        /// The entries.
        entries: Vec<LogEntry>,
    },
    /// A snapshot, in the place of all that it covers.
    Snapshot(LogSnapshot),
}

impl StoredVoter {
    /// The state of a new machine. All its first voters begin with the same. Its snapshot covers one entry, so no log that
    /// begins from nothing can be taken for this one.
    #[must_use]
    pub fn founded(voters: Voters) -> Self {
        let last = LogPosition { term: 0, index: 1 };
        let snapshot = LogSnapshot { last, voters, ..LogSnapshot::default() };
        Self { log: VoterLog::new(snapshot), ..Self::default() }
    }

    /// The state of a host that boots anew. It learns, and votes once a leader has sent it an entry that says so.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// Changes the state.
    pub fn write(&mut self, record: &VoterRecord) {
        match record {
            VoterRecord::Vote { term, vote } => (self.term, self.vote) = (*term, *vote),
            VoterRecord::Append { behind, entries } => self.log.replace_behind(*behind, entries),
            VoterRecord::Snapshot(snapshot) => self.log.begin_with(snapshot.clone()),
        }
    }
}
