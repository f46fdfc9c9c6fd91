//! Asking for votes and giving them.
//!
//! A candidate asks first whether it would get the votes (a *pre-vote*), so a voter that was cut off begins no new term. A
//! voter that hears a leader gives no vote, and takes no newer term from the one that asks.

use std::collections::BTreeSet;
use std::time::Duration;

use landeck_wire::HostIncarnation;

use super::log::LogPosition;
use super::message::VoterContent;
use super::role::Role;
use super::stored::VoterRecord;
use super::voter::Voter;

/// A part of a time, as large as the number that was drawn.
pub(super) fn part(of: Duration, random: u64) -> Duration {
    Duration::from_nanos(((of.as_nanos() * u128::from(random)) >> 64) as u64)
}

impl Voter {
    /// The time that candidates wait for votes, and by which they keep out of each other's way.
    fn patience(&self, random: u64) -> Duration {
        self.timing.interval() + part(2 * self.timing.interval(), random)
    }

    /// Asks whether it would be elected, if it votes at all. Its own vote counts only if the newest voters have it.
    pub(super) fn campaign(&mut self, now: Duration, random: u64) {
        self.leader = None;
        self.campaign_at = now + self.patience(random);
        if self.log().may_lead(self.own, self.commit) {
            self.ask(true, now);
        }
    }

    fn ask(&mut self, is_pre: bool, now: Duration) {
        self.role = Role::Candidate { is_pre, granted: BTreeSet::from([self.own]) };
        let term = self.term() + u64::from(is_pre);
        let last = self.log().last();
        let others: Vec<_> = self.log().voters().iter().filter(|it| *it != self.own).collect();
        for voter in others {
            self.send(voter, term, VoterContent::Ask { is_pre, last });
        }
        self.count_votes(now);
    }

    /// With a majority of pre-votes it begins a term, with a majority of votes it leads.
    fn count_votes(&mut self, now: Duration) {
        let Role::Candidate { is_pre, granted } = &self.role else { return };
        if self.log().voters().majority(|voter| granted.contains(&voter)) != Some(true) {
            return;
        }
        match is_pre {
            true => {
                let (term, vote) = (self.term() + 1, Some(self.own));
                self.record(VoterRecord::Vote { term, vote });
                self.ask(false, now);
            }
            false => self.lead(now),
        }
    }

    /// Whether this voter gives no vote to a host now: it leads, or its view of another leader may be valid.
    fn is_bound(&self, from: HostIncarnation, now: Duration) -> bool {
        let is_bound = now < self.bound_until && self.leader != Some(from);
        is_bound || matches!(self.role, Role::Leader(_))
    }

    pub(super) fn asked(
        &mut self,
        (from, term): (HostIncarnation, u64),
        (is_pre, last): (bool, LogPosition),
        (now, random): (Duration, u64),
    ) {
        let is_willing = !self.is_bound(from, now) && last >= self.log().last();
        if is_pre {
            let is_granted = is_willing && term > self.term();
            let term = if is_granted { term } else { self.term() };
            self.send(from, term, VoterContent::Vote { is_pre, is_granted });
            return;
        }
        if term > self.term() && !self.is_bound(from, now) {
            self.step_down(term);
        }
        let is_free = self.stored.vote.is_none_or(|vote| vote == from);
        let is_granted = is_willing && is_free && term == self.term();
        if is_granted {
            self.step_down(term);
            self.record(VoterRecord::Vote { term, vote: Some(from) });
            self.campaign_at = self.campaign_at.max(now + self.patience(random));
        }
        self.send(from, self.term(), VoterContent::Vote { is_pre, is_granted });
    }

    pub(super) fn voted(
        &mut self,
        (from, term): (HostIncarnation, u64),
        (was_pre, is_granted): (bool, bool),
        now: Duration,
    ) {
        if !(was_pre && is_granted) && term > self.term() {
            self.step_down(term);
            return;
        }
        let own_term = self.term();
        let Role::Candidate { is_pre, granted } = &mut self.role else { return };
        if term != own_term + u64::from(*is_pre) || was_pre != *is_pre || !is_granted {
            self.dropped.old += u64::from(term < own_term);
            return;
        }
        granted.insert(from);
        self.count_votes(now);
    }
}
