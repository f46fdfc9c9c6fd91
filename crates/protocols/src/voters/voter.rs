//! A voter: its time, its role and its driver's calls.
//!
//! The driver calls [`Voter::look`] at [`Voter::next_look`] at the latest, and [`Voter::hear`] for each message. It performs the
//! outputs in their order, and before it goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use landeck_wire::HostIncarnation;

use super::log::{LogContent, LogEntry, VoterLog};
use super::message::{VoterContent, VoterMessage};
use super::quorum::{Voters, VotersError};
use super::replication::Leadership;
use super::stored::{StoredVoter, VoterRecord};
use crate::hosts::timing::HostTiming;

/// An action for the driver of a voter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VoterOutput {
    /// Write this into the copy that outlives the daemon. All records of a call come first.
    Record(VoterRecord),
    /// Send this.
    Send(VoterMessage),
    /// Apply this entry: it is committed. Entries come in their order, each once per run of the daemon.
    Apply {
        /// Its index.
        index: u64,
        /// Its data.
        data: Vec<u8>,
    },
    /// Take this state instead of all entries up to an index.
    Restore {
        /// The index.
        index: u64,
        /// The state that was given to [`Voter::compact`].
        state: Vec<u8>,
    },
    /// This host is the arbiter from now on. All entries that an arbiter before it has committed are applied. Its own view is
    /// valid until [`Voter::arbiter_until`] and no longer, whatever the former arbiter has renewed.
    Begins {
        /// The term.
        term: u64,
        /// The arbiter before it, where this voter is certain of it. Its own host's view is over: that may be called lost at once.
        former: Option<HostIncarnation>,
    },
    /// This host is the arbiter no more.
    Ends {
        /// The term that ends.
        term: u64,
    },
}

/// The error of a decision that this host cannot take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProposalError {
    /// This host is not the arbiter.
    #[error("this host is not the arbiter. Ask the arbiter, or wait until there is one.")]
    NotArbiter {
        /// The arbiter, as far as this voter knows.
        arbiter: Option<HostIncarnation>,
    },
    /// The voters are changing already.
    #[error("the voters are changing already. Wait until that change is committed.")]
    Changing,
    /// A voter to be has not stored everything that is committed.
    #[error("incarnation {:x} cannot vote before it has the whole log. Let it learn first.", .0.0)]
    Behind(HostIncarnation),
    /// No majority of the voters to be has answered for T, so that nothing would be decided any more.
    #[error("a majority of these voters is silent. Name voters that answer.")]
    Silent,
    /// There cannot be so many voters.
    #[error(transparent)]
    Voters(#[from] VotersError),
}

/// The messages that a voter has dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DroppedMessages {
    /// Messages that no voter can have sent to this incarnation.
    pub garbled: u64,
    /// Messages of an old term.
    pub old: u64,
    /// Answers and votes of hosts that have no part in the log any more.
    pub foreign: u64,
}

/// The absence of a majority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MajorityLoss {
    /// The time at which a majority was heard last.
    pub since: Duration,
    /// The voters that have been silent for T.
    pub silent: Vec<HostIncarnation>,
}

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

/// A voter, or a host that learns the log and may become one.
#[derive(Clone, Debug)]
pub struct Voter {
    pub(super) own: HostIncarnation,
    pub(super) timing: HostTiming,
    pub(super) stored: StoredVoter,
    pub(super) role: Role,
    /// The leader that this voter has heard last, in its term.
    pub(super) leader: Option<HostIncarnation>,
    /// Until then this voter votes for nobody but that leader.
    pub(super) bound_until: Duration,
    /// When it becomes a candidate.
    pub(super) campaign_at: Duration,
    /// The index up to which entries are committed, as far as this voter knows.
    pub(super) commit: u64,
    /// The hosts that a leader here teaches its log, besides the voters.
    pub(super) learners: BTreeSet<HostIncarnation>,
    /// When each voter was heard last.
    heard: BTreeMap<HostIncarnation, Duration>,
    began: Duration,
    pub(super) dropped: DroppedMessages,
    records: Vec<VoterRecord>,
    actions: Vec<VoterOutput>,
}

impl Voter {
    /// Creates the voter of a daemon that starts, or starts again. Its driver has restored the state of the snapshot in
    /// `stored`; all entries behind it that are committed are given again.
    ///
    /// The run before may have heard a leader just now. So this one votes for nobody for T + 0.1 s, unless it alone can have led.
    #[must_use]
    pub fn new(
        own: HostIncarnation,
        timing: HostTiming,
        stored: StoredVoter,
        now: Duration,
    ) -> Self {
        let log = &stored.log;
        let led_alone = log.voters().is_alone(own) && log.arbiter().is_none_or(|it| it == own);
        let bound_until = if led_alone { now } else { now + timing.lost_after() };
        let commit = log.snapshot().last.index;
        Self {
            own,
            timing,
            stored,
            role: Role::Follower,
            leader: None,
            bound_until,
            campaign_at: bound_until,
            commit,
            learners: BTreeSet::new(),
            heard: BTreeMap::new(),
            began: now,
            dropped: DroppedMessages::default(),
            records: Vec::new(),
            actions: Vec::new(),
        }
    }

    /// Looks at the time. `random` is a number that the driver has drawn.
    pub fn look(&mut self, now: Duration, random: u64) -> Vec<VoterOutput> {
        self.end_lease(now, random);
        match &self.role {
            Role::Leader(leadership) if now >= leadership.next_beat => self.beat(now),
            Role::Leader(_) => {}
            _ if now >= self.campaign_at => self.campaign(now, random),
            _ => {}
        }
        self.outputs()
    }

    /// The time at which the driver has to look again, at the latest.
    #[must_use]
    pub fn next_look(&self) -> Duration {
        match &self.role {
            Role::Leader(leadership) => leadership.next_beat.min(self.lease_until(Duration::MAX)),
            _ => self.campaign_at,
        }
    }

    /// Takes a message. One that is garbled, of an old term, or of a host without a part in the log is dropped and counted.
    pub fn hear(&mut self, message: VoterMessage, now: Duration, random: u64) -> Vec<VoterOutput> {
        self.end_lease(now, random);
        let VoterMessage { from, to, term, .. } = message;
        if to != self.own || from == self.own || !message.is_sound() {
            self.dropped.garbled += 1;
            return self.outputs();
        }
        if self.log().voters().contains(from) {
            self.heard.insert(from, now);
        }
        match message.content {
            VoterContent::Ask { is_pre, last } => {
                self.asked((from, term), (is_pre, last), (now, random));
            }
            VoterContent::Vote { is_pre, is_granted } => {
                self.voted((from, term), (is_pre, is_granted), now);
            }
            VoterContent::Append { sent, before, entries, commit } => {
                if self.follows((from, term), sent, (now, random)) {
                    let answer = self.append(before, &entries, commit);
                    self.answer(from, sent, answer);
                }
            }
            VoterContent::Install { sent, snapshot } => {
                if self.follows((from, term), sent, (now, random)) {
                    let answer = self.install(snapshot);
                    self.answer(from, sent, answer);
                }
            }
            VoterContent::Answer { sent, answer } => {
                self.answered((from, term), (sent, answer), (now, random));
            }
        }
        self.outputs()
    }

    /// Decides something. It is an entry of the log, and counts when it comes back to be applied.
    ///
    /// # Errors
    /// [`ProposalError::NotArbiter`] if this host is not the arbiter.
    pub fn propose(
        &mut self,
        data: Vec<u8>,
        now: Duration,
    ) -> Result<Vec<VoterOutput>, ProposalError> {
        self.needs_arbiter(now)?;
        self.append_own(LogContent::Data(data));
        self.replicate(now);
        Ok(self.outputs())
    }

    /// Begins to change the voters. Those that come have learned the log before ([`Voter::teach`]).
    ///
    /// # Errors
    /// [`ProposalError`] if this host is not the arbiter, voters are changing already, their number is even or above 5, or
    /// a new one has not stored everything that is committed, or a majority of them is silent.
    pub fn change_voters(
        &mut self,
        voters: &BTreeSet<HostIncarnation>,
        now: Duration,
    ) -> Result<Vec<VoterOutput>, ProposalError> {
        let next = Voters::new(voters.iter().copied())?;
        self.needs_arbiter(now)?;
        if self.log().voters().is_changing() || self.log().voters_index() > self.commit {
            return Err(ProposalError::Changing);
        }
        let mut new = next.iter().filter(|voter| !self.log().voters().contains(*voter));
        if let Some(behind) = new.find(|voter| !self.has_caught_up(*voter)) {
            return Err(ProposalError::Behind(behind));
        }
        let change = self.log().voters().changing_to(&next);
        let heard = self.heard_among(&change, now);
        if heard.is_none_or(|at| at + self.timing.timeout() <= now) {
            return Err(ProposalError::Silent);
        }
        self.append_own(LogContent::Voters(change));
        self.replicate(now);
        Ok(self.outputs())
    }

    /// Names the hosts that learn the log without a vote. A leader sends it to them from its next heartbeat on.
    pub fn teach(&mut self, learners: BTreeSet<HostIncarnation>) {
        self.learners = learners;
        self.meet_peers();
    }

    /// Shortens the log: `state` is what all entries up to `index` make. Nothing happens if one of them is not committed, or the
    /// log begins behind them.
    pub fn compact(&mut self, index: u64, state: Vec<u8>) -> Vec<VoterOutput> {
        if index <= self.commit
            && let Some(snapshot) = self.log().snapshot_at(index, state)
        {
            self.record(VoterRecord::Snapshot(snapshot));
        }
        self.outputs()
    }

    /// Whether this host is the arbiter: it may decide and echo heartbeats.
    #[must_use]
    pub fn is_arbiter(&self, now: Duration) -> bool {
        self.arbiter_until(now).is_some_and(|until| now < until)
    }

    /// The time until which this host is the arbiter, if nobody answers any more. `None` if it is not.
    #[must_use]
    pub fn arbiter_until(&self, now: Duration) -> Option<Duration> {
        let Role::Leader(leadership) = &self.role else { return None };
        leadership.arbiter_since?;
        Some(self.lease_until(now))
    }

    /// The time from which this arbiter may call hosts lost, besides that of the arbiter before it: the views that the latter
    /// has renewed are over. `None` if this host is not the arbiter.
    #[must_use]
    pub fn judges_from(&self) -> Option<Duration> {
        match &self.role {
            Role::Leader(Leadership { arbiter_since: Some(since), .. }) => {
                Some(since.saturating_add(self.timing.lost_after()))
            }
            _ => None,
        }
    }

    /// The time since which no majority was heard, and which voters are silent. `None` while this voter hears a leader or a
    /// majority, or has not listened for T.
    #[must_use]
    pub fn majority_loss(&self, now: Duration) -> Option<MajorityLoss> {
        let timeout = self.timing.timeout();
        let heard = |voter: HostIncarnation| match self.heard.get(&voter) {
            _ if voter == self.own => now,
            at => at.copied().unwrap_or(self.began),
        };
        let follows = self.leader.is_some() && now < self.bound_until;
        let since = self.log().voters().majority(heard).filter(|at| *at + timeout <= now)?;
        let silent = self.log().voters().iter().filter(|it| heard(*it) + timeout <= now).collect();
        (!follows && !self.is_arbiter(now)).then_some(MajorityLoss { since, silent })
    }

    /// The newest term of which this voter knows.
    #[must_use]
    pub const fn term(&self) -> u64 {
        self.stored.term
    }

    /// Whether this voter leads its term. It is the arbiter once it has committed an entry of that.
    #[must_use]
    pub const fn is_leader(&self) -> bool {
        matches!(self.role, Role::Leader(_))
    }

    /// The leader that this voter has heard last in its term.
    #[must_use]
    pub const fn leader(&self) -> Option<HostIncarnation> {
        self.leader
    }

    /// The index up to which entries are committed, as far as this voter knows.
    #[must_use]
    pub const fn commit(&self) -> u64 {
        self.commit
    }

    /// The state that outlives the daemon, as the records have made it.
    #[must_use]
    pub const fn stored(&self) -> &StoredVoter {
        &self.stored
    }

    /// The log.
    #[must_use]
    pub const fn log(&self) -> &VoterLog {
        &self.stored.log
    }

    /// The messages that were dropped.
    #[must_use]
    pub const fn dropped(&self) -> DroppedMessages {
        self.dropped
    }
}

/// Parts that all roles use.
impl Voter {
    fn needs_arbiter(&self, now: Duration) -> Result<(), ProposalError> {
        match self.is_arbiter(now) {
            true => Ok(()),
            false => Err(ProposalError::NotArbiter { arbiter: self.leader }),
        }
    }

    /// Changes the state that outlives the daemon.
    pub(super) fn record(&mut self, record: VoterRecord) {
        self.stored.write(&record);
        self.records.push(record);
    }

    pub(super) fn append_own(&mut self, content: LogContent) {
        let entries = vec![LogEntry { term: self.term(), content }];
        self.record(VoterRecord::Append { behind: self.log().last().index, entries });
        self.meet_peers();
    }

    pub(super) fn act(&mut self, action: VoterOutput) {
        self.actions.push(action);
    }

    pub(super) fn send(&mut self, to: HostIncarnation, term: u64, content: VoterContent) {
        self.act(VoterOutput::Send(VoterMessage { from: self.own, to, term, content }));
    }

    /// Everything that a call has brought: records first, so that no message says what is not stored.
    fn outputs(&mut self) -> Vec<VoterOutput> {
        let records = std::mem::take(&mut self.records).into_iter().map(VoterOutput::Record);
        let actions = std::mem::take(&mut self.actions);
        records.chain(actions).collect()
    }

    /// Commits everything up to an index, and has it applied.
    pub(super) fn commit_to(&mut self, index: u64) {
        for index in self.commit + 1..=index {
            if let Some(LogEntry { content: LogContent::Data(data), .. }) = self.log().entry(index)
            {
                let data = data.clone();
                self.act(VoterOutput::Apply { index, data });
            }
            self.commit = index;
        }
    }

    /// Leads and stands for election no more. A newer term begins without a vote.
    pub(super) fn step_down(&mut self, term: u64) {
        if let Role::Leader(Leadership { arbiter_since: Some(_), .. }) = self.role {
            self.act(VoterOutput::Ends { term: self.term() });
        }
        self.role = Role::Follower;
        if term > self.term() || self.leader == Some(self.own) {
            self.leader = None;
        }
        if term > self.term() {
            self.record(VoterRecord::Vote { term, vote: None });
        }
    }
}
