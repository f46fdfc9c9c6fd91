//! Entries and snapshots that a voter takes from a leader.

use std::time::Duration;

use landeck_wire::HostIncarnation;

use super::election::part;
use super::log::{LogEntry, LogPosition, LogSnapshot};
use super::message::{VoterAnswer, VoterContent};
use super::stored::VoterRecord;
use super::voter::{Voter, VoterOutput};

impl Voter {
    /// Takes the sender as the leader of its term, unless that is over: then the sender learns which one is newer. From here
    /// on this voter votes for nobody else for T + 0.1 s.
    pub(super) fn follows(
        &mut self,
        (from, term): (HostIncarnation, u64),
        sent: Duration,
        (now, random): (Duration, u64),
    ) -> bool {
        if term < self.term() {
            self.dropped.old += 1;
            self.answer(from, sent, VoterAnswer::Differs(self.commit));
            return false;
        }
        let is_second =
            term == self.term() && (self.is_leader() || self.leader.is_some_and(|it| it != from));
        if is_second {
            self.dropped.garbled += 1;
            return false;
        }
        self.step_down(term);
        self.leader = Some(from);
        self.bound_until = now + self.timing.lost_after();
        self.campaign_at = self.bound_until + part(2 * self.timing.interval(), random);
        true
    }

    pub(super) fn answer(&mut self, to: HostIncarnation, sent: Duration, answer: VoterAnswer) {
        self.send(to, self.term(), VoterContent::Answer { sent, answer });
    }

    /// Takes entries behind a position, if the log has that position. Committed entries are never cut.
    pub(super) fn append(
        &mut self,
        before: LogPosition,
        entries: &[LogEntry],
        commit: u64,
    ) -> VoterAnswer {
        let end = before.index + entries.len() as u64;
        let is_covered = before.index < self.log().snapshot().last.index;
        if !is_covered && self.log().position(before.index) != Some(before) {
            return VoterAnswer::Differs(self.commit);
        }
        let is_new = |(at, entry): (u64, &LogEntry)| {
            let index = before.index + 1 + at;
            let is_known = index <= self.commit
                || self.log().position(index).is_some_and(|it| it.term == entry.term);
            !is_known
        };
        if let Some(first) = (0..).zip(entries).position(is_new) {
            let behind = before.index + first as u64;
            self.record(VoterRecord::Append { behind, entries: entries[first..].to_vec() });
        }
        self.commit_to(commit.min(end).max(self.commit));
        VoterAnswer::Stored(end)
    }

    /// Takes a snapshot, unless everything in it is committed here.
    pub(super) fn install(&mut self, snapshot: LogSnapshot) -> VoterAnswer {
        let index = snapshot.last.index;
        if index > self.commit {
            self.act(VoterOutput::Restore { index, state: snapshot.state.clone() });
            self.record(VoterRecord::Snapshot(snapshot));
            self.commit = index;
        }
        VoterAnswer::Stored(index)
    }
}
