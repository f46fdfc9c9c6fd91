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
use super::role::{Leadership, Role};
use super::stored::{StoredVoter, VoterRecord};
use crate::DroppedMessages;
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

/// The absence of a majority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MajorityLoss {
    /// The time at which a majority was heard last.
    pub since: Duration,
    /// The voters that have been silent for T.
    pub silent: Vec<HostIncarnation>,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::voters::{LogPosition, VoterAnswer};

    const T: Duration = Duration::from_secs(1);

    fn host(number: u64) -> HostIncarnation {
        HostIncarnation(number)
    }

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn founded(voters: &[u64]) -> StoredVoter {
        let voters = Voters::new(voters.iter().map(|it| host(*it)));
        StoredVoter::founded(voters.expect("an odd number"))
    }

    fn voter(own: u64, voters: &[u64]) -> Voter {
        Voter::new(host(own), HostTiming::new(T), founded(voters), at(0))
    }

    fn from(number: u64, term: u64, content: VoterContent) -> VoterMessage {
        VoterMessage { from: host(number), to: host(1), term, content }
    }

    fn vote(number: u64, term: u64, is_pre: bool) -> VoterMessage {
        from(number, term, VoterContent::Vote { is_pre, is_granted: true })
    }

    fn stored(number: u64, sent: Duration, index: u64) -> VoterMessage {
        from(number, 1, VoterContent::Answer { sent, answer: VoterAnswer::Stored(index) })
    }

    fn heartbeat(number: u64, term: u64) -> VoterMessage {
        let before = LogPosition { term: 0, index: 1 };
        let content = VoterContent::Append { sent: at(7), before, entries: Vec::new(), commit: 1 };
        from(number, term, content)
    }

    /// Voter 1 of three, which leads term 1 since 1.1 s and is the arbiter.
    fn arbiter() -> Voter {
        let mut voter = voter(1, &[1, 2, 3]);
        voter.look(at(1_100), 0);
        voter.hear(vote(2, 1, true), at(1_100), 0);
        voter.hear(vote(2, 1, false), at(1_100), 0);
        voter.hear(stored(2, at(1_100), 2), at(1_150), 0);
        voter
    }

    #[test]
    fn a_voter_alone_is_the_arbiter_at_once() {
        let mut voter = voter(1, &[1]);
        let outputs = voter.look(at(0), 0);
        assert!(outputs.contains(&VoterOutput::Begins { term: 1, former: None }), "{outputs:?}");
        let outputs = voter.propose(vec![7], at(9)).expect("an arbiter");
        assert!(matches!(outputs[0], VoterOutput::Record(VoterRecord::Append { behind: 2, .. })));
        assert_eq!(outputs[1], VoterOutput::Apply { index: 3, data: vec![7] });
        assert_eq!((voter.is_arbiter(at(99_000)), voter.majority_loss(at(99_000))), (true, None));
    }

    #[test]
    fn a_lease_counts_from_sending_and_ends_after_t() {
        let mut voter = arbiter();
        assert_eq!(voter.arbiter_until(at(1_150)), Some(at(2_100)));
        assert_eq!(voter.judges_from(), Some(at(1_150) + T + at(100)));
        voter.look(at(1_400), 0);
        voter.hear(stored(2, at(1_400), 2), at(2_050), 0);
        assert_eq!(voter.arbiter_until(at(2_050)), Some(at(2_400)));
        assert!(voter.is_arbiter(at(2_399)) && !voter.is_arbiter(at(2_400)));
        let refused = voter.propose(vec![1], at(2_400)).unwrap_err();
        assert_eq!(refused, ProposalError::NotArbiter { arbiter: Some(host(1)) });
        assert_eq!(voter.look(at(2_400), 0)[0], VoterOutput::Ends { term: 1 });
        assert!(!voter.is_leader());
    }

    #[test]
    fn without_a_majority_the_silent_voters_are_named() {
        let mut voter = arbiter();
        assert_eq!(voter.majority_loss(at(2_000)), None);
        voter.look(at(3_000), 0);
        let loss = voter.majority_loss(at(3_000)).expect("nobody answers");
        assert_eq!(loss, MajorityLoss { since: at(1_150), silent: vec![host(2), host(3)] });
        voter.hear(vote(3, 2, true), at(3_100), 0);
        assert_eq!(voter.majority_loss(at(3_100)), None);
    }

    #[test]
    fn a_voter_that_hears_a_leader_votes_for_that_one_alone() {
        let mut voter = voter(1, &[1, 2, 3]);
        voter.hear(heartbeat(2, 4), at(100), 0);
        let ask = |number, term| {
            let last = LogPosition { term: 0, index: 1 };
            from(number, term, VoterContent::Ask { is_pre: false, last })
        };
        let granted = |outputs: &[VoterOutput]| {
            outputs.iter().any(|output| match output {
                VoterOutput::Send(VoterMessage { content, .. }) => {
                    *content == VoterContent::Vote { is_pre: false, is_granted: true }
                }
                _ => false,
            })
        };
        assert!(!granted(&voter.hear(ask(3, 9), at(1_100), 0)));
        assert_eq!(voter.term(), 4, "nor does it take the term");
        assert!(granted(&voter.clone().hear(ask(2, 9), at(1_100), 0)), "its leader asks anew");
        assert!(granted(&voter.hear(ask(3, 9), at(1_200), 0)));
        assert_eq!(voter.stored().vote, Some(host(3)));
    }

    #[test]
    fn a_vote_is_recorded_before_it_is_given() {
        let mut voter = voter(1, &[1, 2, 3]);
        let last = LogPosition { term: 0, index: 1 };
        let ask = from(2, 1, VoterContent::Ask { is_pre: false, last });
        let outputs = voter.hear(ask, at(1_100), 0);
        let vote = VoterRecord::Vote { term: 1, vote: Some(host(2)) };
        let at_end = outputs.len() - 1;
        assert!(outputs[..at_end].contains(&VoterOutput::Record(vote)), "{outputs:?}");
        assert!(matches!(outputs[at_end], VoterOutput::Send(_)));
    }

    #[test]
    fn what_no_voter_can_have_said_is_dropped_and_counted() {
        let mut voter = arbiter();
        let to_another = VoterMessage { to: host(9), ..vote(2, 1, true) };
        let second_leader = heartbeat(2, 1);
        let huge = vote(2, u64::MAX, false);
        let never_sent = stored(2, at(9_000), 2);
        let never_written = stored(2, at(1_150), 99);
        for message in [to_another, second_leader, huge, never_sent, never_written] {
            assert_eq!(voter.hear(message, at(1_160), 0), []);
        }
        voter.hear(stored(8, at(1_100), 2), at(1_160), 0);
        let old = VoterMessage { term: 0, ..stored(2, at(1_100), 2) };
        voter.hear(old, at(1_160), 0);
        assert_eq!(voter.dropped(), DroppedMessages { garbled: 5, old: 1, foreign: 1 });
        assert_eq!((voter.term(), voter.is_arbiter(at(1_160))), (1, true));
    }

    #[test]
    fn voters_change_one_change_at_a_time_to_hosts_that_have_the_log() {
        let mut voter = arbiter();
        let wanted = |hosts: &[u64]| hosts.iter().map(|it| host(*it)).collect::<BTreeSet<_>>();
        let now = at(1_200);
        let even = voter.change_voters(&wanted(&[1, 2]), now);
        assert_eq!(even, Err(ProposalError::Voters(VotersError::Even(2))));
        let unknown = voter.change_voters(&wanted(&[1, 2, 4]), now);
        assert_eq!(unknown, Err(ProposalError::Behind(host(4))));
        assert_eq!(voter.change_voters(&wanted(&[3]), now), Err(ProposalError::Silent));
        voter.teach(wanted(&[4]));
        voter.look(now, 0);
        voter.hear(stored(4, now, 2), now, 0);
        assert!(voter.change_voters(&wanted(&[1, 2, 4]), now).is_ok());
        let second = voter.change_voters(&wanted(&[1]), now);
        assert_eq!(second, Err(ProposalError::Changing));
        voter.hear(stored(2, now, 3), now, 0);
        assert_eq!(voter.log().voters(), founded(&[1, 2, 4]).log.voters());
    }

    /// Entries of a leader, behind a position.
    fn entries(number: u64, (term, index): (u64, u64), new: &[LogEntry]) -> VoterMessage {
        let before = LogPosition { term, index };
        let (term, entries) = (new.last().map_or(term, |entry| entry.term), new.to_vec());
        let content = VoterContent::Append { sent: at(7), before, entries, commit: 1 };
        from(number, term, content)
    }

    fn data(term: u64) -> LogEntry {
        LogEntry { term, content: LogContent::Data(vec![9]) }
    }

    fn says(outputs: &[VoterOutput], is_it: impl Fn(&VoterContent) -> bool) -> bool {
        let is_said = |output: &VoterOutput| match output {
            VoterOutput::Send(VoterMessage { content, .. }) => is_it(content),
            _ => false,
        };
        outputs.iter().any(is_said)
    }

    #[test]
    fn a_newer_log_is_elected_not_a_longer_one() {
        let mut voter = voter(1, &[1, 2, 3]);
        voter.hear(entries(2, (0, 1), &[data(5)]), at(0), 0);
        let granted = |voter: &mut Voter, term, index| {
            let last = LogPosition { term, index };
            let ask = from(3, 6, VoterContent::Ask { is_pre: true, last });
            let outputs = voter.hear(ask, at(1_200), 0);
            says(&outputs, |it| *it == VoterContent::Vote { is_pre: true, is_granted: true })
        };
        assert!(!granted(&mut voter, 4, 9) && !granted(&mut voter, 5, 1));
        assert!(granted(&mut voter, 5, 2));
    }

    #[test]
    fn an_entry_of_an_old_term_is_committed_by_one_of_the_own_term() {
        let mut voter = voter(1, &[1, 2, 3]);
        voter.hear(entries(2, (0, 1), &[data(1)]), at(0), 0);
        voter.look(at(1_200), 0);
        voter.hear(vote(3, 2, true), at(1_200), 0);
        voter.hear(vote(3, 2, false), at(1_200), 0);
        assert!(voter.is_leader());
        let answer = |index| VoterMessage { term: 2, ..stored(3, at(1_200), index) };
        voter.hear(answer(2), at(1_210), 0);
        assert_eq!(voter.commit(), 1, "another leader may still cut it");
        voter.hear(VoterMessage { term: 1, ..answer(3) }, at(1_210), 0);
        assert_eq!((voter.commit(), voter.dropped().old), (1, 1), "the answer to an old leader");
        voter.hear(answer(3), at(1_210), 0);
        assert_eq!(voter.commit(), 3);
    }

    #[test]
    fn a_voter_commits_only_entries_that_its_leader_has() {
        let mut voter = voter(1, &[1, 2, 3]);
        voter.hear(entries(2, (0, 1), &[data(1)]), at(0), 0);
        let before = LogPosition { term: 0, index: 1 };
        let content = VoterContent::Append { sent: at(7), before, entries: Vec::new(), commit: 2 };
        voter.hear(from(3, 2, content), at(2_000), 0);
        assert_eq!(voter.commit(), 1);
    }

    #[test]
    fn a_voter_that_a_change_leaves_out_leads_until_that_is_committed() {
        let mut voter = voter(1, &[1, 2, 3]);
        let (all, left) = (founded(&[1, 2, 3]), founded(&[2]));
        let (all, left) = (all.log.voters().clone(), left.log.voters().clone());
        let change = [all.changing_to(&left), left];
        let change = change.map(|it| LogEntry { term: 1, content: LogContent::Voters(it) });
        voter.hear(entries(3, (0, 1), &change), at(0), 0);
        let outputs = voter.look(at(1_200), 0);
        assert!(says(&outputs, |it| matches!(it, VoterContent::Ask { is_pre: true, .. })));
        voter.hear(vote(2, 2, true), at(1_200), 0);
        voter.hear(vote(2, 2, false), at(1_200), 0);
        assert!(voter.is_leader());
        let begun = VoterMessage { term: 2, ..stored(2, at(1_200), 4) };
        let outputs = voter.hear(begun, at(1_210), 0);
        assert_eq!(
            (outputs.last(), voter.is_leader()),
            (Some(&VoterOutput::Ends { term: 2 }), false)
        );
        let outputs = voter.look(at(9_000), 0);
        assert_eq!(outputs, [], "it is committed");
    }

    #[test]
    fn a_voter_that_another_one_has_led_is_not_alone() {
        let mut stored = founded(&[1]);
        let begin = |leader| LogEntry { term: 1, content: LogContent::Begin(host(leader)) };
        stored.write(&VoterRecord::Append { behind: 1, entries: vec![begin(2)] });
        let leads = |stored: &StoredVoter, now| {
            let mut voter = Voter::new(host(1), HostTiming::new(T), stored.clone(), at(0));
            voter.look(now, 0);
            voter.is_leader()
        };
        assert!(!leads(&stored, at(1_099)) && leads(&stored, at(1_100)));
        stored.write(&VoterRecord::Append { behind: 1, entries: vec![begin(1)] });
        assert!(leads(&stored, at(0)));
    }
}
