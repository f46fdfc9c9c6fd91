//! A leader's side: its peers, its lease, and what is committed.
//!
//! A peer has one message under way, with everything that it lacks up to a limit; a heartbeat repeats it. The leader's lease runs
//! until T after the sending of the newest messages that a majority has answered.

use std::collections::BTreeMap;
use std::time::Duration;

use landeck_wire::HostIncarnation;

use super::election::part;
use super::log::LogContent;
use super::message::{VoterAnswer, VoterContent};
use super::quorum::Voters;
use super::role::{Leadership, Peer, Role};
use super::voter::{Voter, VoterOutput};

/// The most entries in a message.
const ENTRIES_MAX: usize = 256;

impl Voter {
    pub(super) fn lead(&mut self, now: Duration) {
        let begin = self.log().last().index + 1;
        self.role = Role::Leader(Leadership {
            elected: now,
            begin,
            former: self.log().known_arbiter(self.commit).filter(|it| *it != self.own),
            arbiter_since: None,
            next_beat: now,
            peers: BTreeMap::new(),
        });
        self.leader = Some(self.own);
        self.append_own(LogContent::Begin(self.own));
        self.beat(now);
        self.commit_stored(now);
    }

    /// Sends to all peers, whether or not they have answered.
    pub(super) fn beat(&mut self, now: Duration) {
        let interval = self.timing.interval();
        let Role::Leader(leadership) = &mut self.role else { return };
        leadership.next_beat = now + interval;
        leadership.peers.values_mut().for_each(|peer| peer.under_way = None);
        let peers: Vec<_> = leadership.peers.keys().copied().collect();
        peers.into_iter().for_each(|peer| self.send_to(peer, now));
    }

    /// Sends what is new to all peers that wait for nothing, and commits what this host has alone.
    pub(super) fn replicate(&mut self, now: Duration) {
        self.commit_stored(now);
        let last = self.log().last().index;
        let commit = self.commit;
        let Role::Leader(leadership) = &self.role else { return };
        let lacks = |peer: &Peer| peer.next <= last || peer.told < commit;
        let peers: Vec<_> = leadership
            .peers
            .iter()
            .filter(|(_, peer)| peer.under_way.is_none() && lacks(peer))
            .map(|(incarnation, _)| *incarnation)
            .collect();
        peers.into_iter().for_each(|peer| self.send_to(peer, now));
    }

    fn send_to(&mut self, to: HostIncarnation, now: Duration) {
        let commit = self.commit;
        let Role::Leader(leadership) = &mut self.role else { return };
        let Some(peer) = leadership.peers.get_mut(&to) else { return };
        (peer.under_way, peer.told) = (Some(now), commit);
        let before = peer.next - 1;
        let content = match self.log().position(before) {
            Some(before) => {
                let entries = self.log().behind(before.index, ENTRIES_MAX).to_vec();
                VoterContent::Append { sent: now, before, entries, commit }
            }
            None => VoterContent::Install { sent: now, snapshot: self.log().snapshot().clone() },
        };
        self.send(to, self.term(), content);
    }

    /// Has a peer for each other voter and learner.
    pub(super) fn meet_peers(&mut self) {
        let Role::Leader(leadership) = &mut self.role else { return };
        let log = &self.stored.log;
        let next = log.last().index + 1;
        let (learners, own) = (&self.learners, self.own);
        leadership.peers.retain(|it, _| log.voters().contains(*it) || learners.contains(it));
        for peer in log.voters().iter().chain(learners.iter().copied()).filter(|it| *it != own) {
            let new = Peer { next, stored: 0, answered: None, under_way: None, told: 0 };
            leadership.peers.entry(peer).or_insert(new);
        }
    }

    pub(super) fn answered(
        &mut self,
        (from, term): (HostIncarnation, u64),
        (sent, answer): (Duration, VoterAnswer),
        (now, random): (Duration, u64),
    ) {
        if term > self.term() {
            // A candidate that failed has begun a newer term. The voters here still follow this host: it asks them at once.
            self.campaign_at = now + part(self.timing.interval() / 10, random);
            self.step_down(term);
            return;
        }
        let last = self.log().last().index;
        if term < self.term() {
            self.dropped.old += 1;
            return;
        }
        let Role::Leader(leadership) = &mut self.role else { return };
        let Some(peer) = leadership.peers.get_mut(&from) else {
            self.dropped.foreign += 1;
            return;
        };
        let index = match answer {
            VoterAnswer::Stored(index) | VoterAnswer::Differs(index) => index,
        };
        if sent > now || index > last && matches!(answer, VoterAnswer::Stored(_)) {
            self.dropped.garbled += 1;
            return;
        }
        peer.answered = peer.answered.max(Some(sent));
        let is_newest = peer.under_way == Some(sent);
        match answer {
            VoterAnswer::Stored(index) => {
                peer.stored = peer.stored.max(index);
                peer.next = peer.next.max(index + 1);
            }
            VoterAnswer::Differs(index) if is_newest => peer.next = index.min(last) + 1,
            VoterAnswer::Differs(_) => {}
        }
        if is_newest {
            peer.under_way = None;
        }
        self.replicate(now);
    }

    /// Whether a host has stored everything that is committed.
    pub(super) fn has_caught_up(&self, host: HostIncarnation) -> bool {
        self.stored_by(host) >= self.commit
    }

    fn stored_by(&self, host: HostIncarnation) -> u64 {
        match &self.role {
            _ if host == self.own => self.log().last().index,
            Role::Leader(leadership) => leadership.peers.get(&host).map_or(0, |it| it.stored),
            _ => 0,
        }
    }

    /// Commits what a majority has stored. Entries of older terms are only committed by one of this term behind them.
    fn commit_stored(&mut self, now: Duration) {
        let Role::Leader(leadership) = &self.role else { return };
        let begin = leadership.begin;
        let stored = self.log().voters().majority(|voter| self.stored_by(voter)).unwrap_or(0);
        if stored <= self.commit || stored < begin {
            return;
        }
        self.commit_to(stored);
        self.become_arbiter(now);
        self.settle_voters(now);
    }

    fn become_arbiter(&mut self, now: Duration) {
        let term = self.term();
        let Role::Leader(leadership) = &mut self.role else { return };
        if leadership.arbiter_since.is_some() {
            return;
        }
        leadership.arbiter_since = Some(now);
        let former = leadership.former;
        self.act(VoterOutput::Begins { term, former });
    }

    /// Ends a change of voters once it is committed. A leader that votes no more tells of the end and steps down.
    fn settle_voters(&mut self, now: Duration) {
        let log = self.log();
        if self.commit < log.voters_index() {
            return;
        }
        if let Some(settled) = log.voters().settled() {
            self.append_own(LogContent::Voters(settled));
            self.commit_stored(now);
        } else if !log.voters().contains(self.own) {
            self.beat(now);
            self.step_down(self.term());
        }
    }

    /// The sending time of the newest messages that a majority of these voters has answered. This host answers itself now.
    pub(super) fn heard_among(&self, voters: &Voters, now: Duration) -> Option<Duration> {
        let Role::Leader(leadership) = &self.role else { return None };
        let answered = |voter| match leadership.peers.get(&voter) {
            Some(peer) => peer.answered,
            None => (voter == self.own).then_some(now),
        };
        voters.majority(answered).flatten()
    }

    /// The end of the lease of a leader that hears nothing more. It begins with the election.
    pub(super) fn lease_until(&self, now: Duration) -> Duration {
        let Role::Leader(leadership) = &self.role else { return Duration::ZERO };
        let heard = self.heard_among(self.log().voters(), now);
        heard.unwrap_or_default().max(leadership.elected).saturating_add(self.timing.timeout())
    }

    /// A leader that no majority has answered for T steps down: it decides and echoes nothing.
    pub(super) fn end_lease(&mut self, now: Duration, random: u64) {
        if self.is_leader() && now >= self.lease_until(now) {
            self.step_down(self.term());
            self.campaign_at = now + part(2 * self.timing.interval(), random);
        }
    }
}
