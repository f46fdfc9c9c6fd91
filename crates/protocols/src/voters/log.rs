//! The log of the voters: a snapshot of everything up to one entry, and the entries behind it.

use landeck_wire::HostIncarnation;
use serde::{Deserialize, Serialize};

use super::quorum::Voters;

/// The place of an entry in the log: later terms come first in any comparison, as in elections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LogPosition {
    /// The term in which its leader wrote it. Zero before the first entry.
    pub term: u64,
    /// Its number, from 1.
    pub index: u64,
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    /// The term in which its leader wrote it.
    pub term: u64,
    /// Its content.
    pub content: LogContent,
}

/// The content of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogContent {
    /// The first entry of a term, with the leader's incarnation. Once it is committed, the leader is the arbiter.
    Begin(HostIncarnation),
    /// The voters that count from here, whether or not this entry is committed.
    Voters(Voters),
    /// A decision of the arbiter, which this log does not read.
    Data(Vec<u8>),
}

/// Everything up to an entry: the state that its decisions make, and what the voters need of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogSnapshot {
    /// The last entry in it.
    pub last: LogPosition,
    /// The newest voters in it.
    pub voters: Voters,
    /// The leader of the newest [`LogContent::Begin`] in it.
    pub arbiter: Option<HostIncarnation>,
    /// The state, which this log does not read.
    pub state: Vec<u8>,
}

/// The log of a voter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoterLog {
    snapshot: LogSnapshot,
    /// The entries behind the snapshot.
    entries: Vec<LogEntry>,
    /// The indexes of those that name voters, in order.
    changes: Vec<u64>,
}

impl VoterLog {
    /// A log that begins with a snapshot.
    pub(super) const fn new(snapshot: LogSnapshot) -> Self {
        Self { snapshot, entries: Vec::new(), changes: Vec::new() }
    }

    /// The snapshot with which the log begins.
    #[must_use]
    pub const fn snapshot(&self) -> &LogSnapshot {
        &self.snapshot
    }

    /// The position of the last entry.
    #[must_use]
    pub fn last(&self) -> LogPosition {
        let index = self.snapshot.last.index + self.entries.len() as u64;
        self.entries
            .last()
            .map_or(self.snapshot.last, |entry| LogPosition { term: entry.term, index })
    }

    /// The entry with an index. `None` in the snapshot and behind the end.
    #[must_use]
    pub fn entry(&self, index: u64) -> Option<&LogEntry> {
        let offset = index.checked_sub(self.snapshot.last.index + 1)?;
        self.entries.get(usize::try_from(offset).ok()?)
    }

    /// The position of an entry, or of the end of the snapshot. `None` before that and behind the end.
    #[must_use]
    pub fn position(&self, index: u64) -> Option<LogPosition> {
        if index == self.snapshot.last.index {
            return Some(self.snapshot.last);
        }
        self.entry(index).map(|entry| LogPosition { term: entry.term, index })
    }

    /// The entries behind an index of the log, `most` of them at most.
    pub fn behind(&self, index: u64, most: usize) -> &[LogEntry] {
        let from = index.saturating_sub(self.snapshot.last.index) as usize;
        let entries = self.entries.get(from..).unwrap_or_default();
        &entries[..entries.len().min(most)]
    }

    /// The voters that count: the newest in the log, committed or not, and without any those of the snapshot.
    #[must_use]
    pub fn voters(&self) -> &Voters {
        self.voters_at(self.last().index)
    }

    /// The index of the entry that names the voters that count. That of the snapshot's end if none behind it does.
    #[must_use]
    pub fn voters_index(&self) -> u64 {
        self.changes.last().copied().unwrap_or(self.snapshot.last.index)
    }

    /// The leader of the newest term that has begun.
    #[must_use]
    pub fn arbiter(&self) -> Option<HostIncarnation> {
        self.arbiter_at(self.last().index)
    }

    /// Whether an incarnation may be needed as a leader: it votes, or does so until a change is committed that is not known to
    /// be. Until then nobody else may have the log that a majority has.
    pub(super) fn may_lead(&self, incarnation: HostIncarnation, commit: u64) -> bool {
        let behind = self.changes.iter().filter(|change| **change > commit);
        let mut voters = behind.map(|change| self.voters_at(*change));
        self.voters_at(commit).contains(incarnation) || voters.any(|it| it.contains(incarnation))
    }

    /// The newest voters up to an index.
    fn voters_at(&self, index: u64) -> &Voters {
        let newest = self.changes.iter().rfind(|change| **change <= index);
        match newest.and_then(|change| self.entry(*change)) {
            Some(LogEntry { content: LogContent::Voters(voters), .. }) => voters,
            _ => &self.snapshot.voters,
        }
    }

    /// The arbiter of the newest term that has begun here, if that is known to be committed. Otherwise its leader may never have
    /// been the arbiter. Every arbiter is in the log of every later leader, so nobody was it since.
    pub(super) fn known_arbiter(&self, commit: u64) -> Option<HostIncarnation> {
        let newest = self.arbiter_at(self.last().index);
        let is_behind = |entry: &LogEntry| matches!(entry.content, LogContent::Begin(_));
        newest.filter(|_| !self.behind(commit, usize::MAX).iter().any(is_behind))
    }

    fn arbiter_at(&self, index: u64) -> Option<HostIncarnation> {
        let up_to = index.saturating_sub(self.snapshot.last.index) as usize;
        let begins = self.entries.iter().take(up_to).rev().find_map(|entry| match entry.content {
            LogContent::Begin(leader) => Some(leader),
            _ => None,
        });
        begins.or(self.snapshot.arbiter)
    }

    /// A snapshot of everything up to an index, with the state that its driver has made of that. `None` if the index is not
    /// behind the snapshot, or behind the end.
    pub(super) fn snapshot_at(&self, index: u64, state: Vec<u8>) -> Option<LogSnapshot> {
        self.entry(index)?;
        let (voters, arbiter) = (self.voters_at(index).clone(), self.arbiter_at(index));
        Some(LogSnapshot { last: self.position(index)?, voters, arbiter, state })
    }

    /// Cuts everything behind an index and appends entries there.
    pub(super) fn replace_behind(&mut self, index: u64, entries: &[LogEntry]) {
        self.entries.truncate(index.saturating_sub(self.snapshot.last.index) as usize);
        self.changes.retain(|change| *change <= index);
        for entry in entries {
            self.entries.push(entry.clone());
            if matches!(entry.content, LogContent::Voters(_)) {
                self.changes.push(self.last().index);
            }
        }
    }

    /// Begins with a snapshot. The entries behind it stay if the log has its last entry; otherwise another leader wrote them,
    /// and they go.
    pub(super) fn begin_with(&mut self, snapshot: LogSnapshot) {
        if self.position(snapshot.last.index) != Some(snapshot.last) {
            *self = Self::new(snapshot);
            return;
        }
        let covered = snapshot.last.index - self.snapshot.last.index;
        self.entries.drain(..covered as usize);
        self.changes.retain(|change| *change > snapshot.last.index);
        self.snapshot = snapshot;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: HostIncarnation = HostIncarnation(1);

    fn data(term: u64) -> LogEntry {
        LogEntry { term, content: LogContent::Data(vec![term as u8]) }
    }

    fn voters(numbers: &[u64]) -> Voters {
        Voters::new(numbers.iter().map(|it| HostIncarnation(*it))).expect("an odd number")
    }

    fn change(term: u64, numbers: &[u64]) -> LogEntry {
        LogEntry { term, content: LogContent::Voters(voters(numbers)) }
    }

    fn log(entries: &[LogEntry]) -> VoterLog {
        let mut log = VoterLog::new(LogSnapshot { voters: voters(&[1]), ..LogSnapshot::default() });
        log.replace_behind(0, entries);
        log
    }

    #[test]
    fn the_newest_voters_count_and_are_cut_with_their_entry() {
        let mut log = log(&[data(1), change(1, &[1, 2, 3]), data(1)]);
        assert_eq!((log.voters(), log.voters_index()), (&voters(&[1, 2, 3]), 2));
        log.replace_behind(1, &[data(2)]);
        assert_eq!((log.voters(), log.voters_index()), (&voters(&[1]), 0));
        assert_eq!(log.last(), LogPosition { term: 2, index: 2 });
    }

    #[test]
    fn a_snapshot_has_the_voters_of_its_end_and_those_behind_it_stay_the_newest() {
        let begin = LogEntry { term: 1, content: LogContent::Begin(ONE) };
        let mut log = log(&[begin, data(1), change(1, &[1, 2, 3])]);
        let snapshot = log.snapshot_at(2, vec![7]).expect("an entry");
        assert_eq!((&snapshot.voters, snapshot.arbiter), (&voters(&[1]), Some(ONE)));
        log.begin_with(snapshot);
        assert_eq!((log.voters(), log.voters_index()), (&voters(&[1, 2, 3]), 3));
        assert_eq!((log.arbiter(), log.position(1), log.behind(2, 9).len()), (Some(ONE), None, 1));
        let further = log.snapshot_at(3, Vec::new()).expect("an entry");
        assert_eq!(further.voters, voters(&[1, 2, 3]));
    }

    #[test]
    fn a_snapshot_of_another_history_takes_the_place_of_the_log() {
        let mut log = log(&[data(1), change(1, &[1, 2, 3]), data(1)]);
        let last = LogPosition { term: 2, index: 2 };
        log.begin_with(LogSnapshot { last, voters: voters(&[1]), ..LogSnapshot::default() });
        assert_eq!((log.last(), log.voters()), (last, &voters(&[1])));
        assert!(log.behind(2, 9).is_empty());
    }
}
