//! The mutants of voters.

use super::list::Mutant;

const ELECTION: &str = "crates/protocols/src/voters/election.rs";
const REPLICATION: &str = "crates/protocols/src/voters/replication.rs";
const FOLLOWING: &str = "crates/protocols/src/voters/following.rs";
const LOG: &str = "crates/protocols/src/voters/log.rs";
const QUORUM: &str = "crates/protocols/src/voters/quorum.rs";
const VOTER: &str = "crates/protocols/src/voters/voter.rs";

pub(super) const VOTER_MUTANTS: &[Mutant] = &[
    Mutant {
        breaks: "one vote in a term (it is forgotten)",
        file: ELECTION,
        line: "self.record(VoterRecord::Vote { term, vote: Some(from) });",
        changed: "let _ = term;",
        test: "voters::",
    },
    Mutant {
        breaks: "one vote in a term (a candidate's own is forgotten)",
        file: ELECTION,
        line: "let (term, vote) = (self.term() + 1, Some(self.own));",
        changed: "let (term, vote) = (self.term() + 1, None);",
        test: "voters::",
    },
    Mutant {
        breaks: "a term begins with a majority (no pre-vote)",
        file: ELECTION,
        line: "self.ask(true, now);",
        changed: "self.record(VoterRecord::Vote { term: self.term() + 1, vote: Some(self.own) });\n            self.ask(false, now);",
        test: "voters::",
    },
    Mutant {
        breaks: "a leader stays (voters forget that they hear it)",
        file: ELECTION,
        line: "let is_bound = now < self.bound_until && self.leader != Some(from);",
        changed: "let is_bound = now < Duration::ZERO && self.leader != Some(from);",
        test: "voters::",
    },
    Mutant {
        breaks: "a given word stays (the longer log is elected, not the newer one)",
        file: ELECTION,
        line: "!self.is_bound(from, now) && last >= self.log().last();",
        changed: "!self.is_bound(from, now) && last.index >= self.log().last().index;",
        test: "protocols units: voters::voter::tests::a_newer_log",
    },
    Mutant {
        breaks: "a connected majority goes on (a voter that a change leaves out does not lead)",
        file: ELECTION,
        line: "if self.log().may_lead(self.own, self.commit) {",
        changed: "if self.log().voters().contains(self.own) {",
        test: "protocols units: voters::voter::tests::a_voter_that_a_change",
    },
    Mutant {
        breaks: "a given word stays (an entry of an old term is committed by count)",
        file: REPLICATION,
        line: "if stored <= self.commit || stored < begin {",
        changed: "if stored <= self.commit || begin == 0 {",
        test: "protocols units: voters::voter::tests::an_entry_of_an_old_term",
    },
    Mutant {
        breaks: "an arbiter without a majority ends within T (it goes on)",
        file: REPLICATION,
        line: "heard.unwrap_or_default().max(leadership.elected)",
        changed: "heard.map_or(now, |_| now).max(leadership.elected)",
        test: "voters::",
    },
    Mutant {
        breaks: "an arbiter without a majority ends within T (time counts from hearing an answer)",
        file: REPLICATION,
        line: "peer.answered = peer.answered.max(Some(sent));",
        changed: "peer.answered = peer.answered.max(Some(now));",
        test: "voters::",
    },
    Mutant {
        breaks: "a majority has what is committed (answers of old terms count)",
        file: REPLICATION,
        line: "if term < self.term() {",
        changed: "if term == 0 {",
        test: "protocols units: voters::voter::tests::an_entry_of_an_old_term",
    },
    Mutant {
        breaks: "no voter before it has caught up",
        file: REPLICATION,
        line: "self.stored_by(host) >= self.commit",
        changed: "self.stored_by(host) < u64::MAX",
        test: "voters::",
    },
    Mutant {
        breaks: "the former arbiter is the last one (a leader that was never the arbiter counts)",
        file: LOG,
        line: "newest.filter(|_| !self.behind(commit, usize::MAX).iter().any(is_behind))",
        changed: "newest.filter(|_| !self.behind(commit, 0).iter().any(is_behind))",
        test: "voters::",
    },
    Mutant {
        breaks: "a connected majority goes on (the end of a change is never written)",
        file: REPLICATION,
        line: "if let Some(settled) = log.voters().settled() {",
        changed: "if let Some(settled) = log.voters().settled().filter(|_| false) {",
        test: "voters::",
    },
    Mutant {
        breaks: "a majority has what is committed (entries are taken behind another one)",
        file: FOLLOWING,
        line: "self.log().position(before.index) != Some(before)",
        changed: "self.log().position(before.index).is_none()",
        test: "voters::",
    },
    Mutant {
        breaks: "one state after an entry (a voter commits what its leader has not sent)",
        file: FOLLOWING,
        line: "self.commit_to(commit.min(end).max(self.commit));",
        changed: "self.commit_to(commit.min(self.log().last().index).max(self.commit));",
        test: "protocols units: voters::voter::tests::a_voter_commits_only",
    },
    Mutant {
        breaks: "one valid arbiter at a time (a voter is bound for less than T)",
        file: FOLLOWING,
        line: "self.bound_until = now + self.timing.lost_after();",
        changed: "self.bound_until = now + self.timing.interval();",
        test: "voters::",
    },
    Mutant {
        breaks: "a majority has what is committed (after a snapshot its voters count, not the newest)",
        file: LOG,
        line: "self.changes.retain(|change| *change > snapshot.last.index);",
        changed: "self.changes.clear();",
        test: "voters::",
    },
    Mutant {
        breaks: "a majority has what is committed (voters that were cut still count)",
        file: LOG,
        line: "self.changes.retain(|change| *change <= index);",
        changed: "self.changes.retain(|change| *change <= index + 1);",
        test: "protocols units: voters::log::",
    },
    Mutant {
        breaks: "one arbiter per term (a majority is anybody)",
        file: QUORUM,
        line: "values.swap_remove((voters.len() - 1) / 2)",
        changed: "values.swap_remove(voters.len() - 1)",
        test: "voters::",
    },
    Mutant {
        breaks: "a given word stays (voters change in one step)",
        file: QUORUM,
        line: "Self { current: self.current.clone(), next: next.current.clone() }",
        changed: "Self { current: next.current.clone(), next: BTreeSet::new() }",
        test: "voters::",
    },
    Mutant {
        breaks: "an even number of voters is refused",
        file: QUORUM,
        line: "count if count.is_multiple_of(2) => Err(VotersError::Even(count)),",
        changed: "count if count == 0 => Err(VotersError::Even(count)),",
        test: "protocols units: even_number_refused",
    },
    Mutant {
        breaks: "voters change after an entry of the term",
        file: VOTER,
        line: "let next = Voters::new(voters.iter().copied())?;\n        self.needs_arbiter(now)?;",
        changed: "let next = Voters::new(voters.iter().copied())?;\n        self.is_leader().then_some(()).ok_or(ProposalError::Changing)?;",
        test: "voters::",
    },
    Mutant {
        breaks: "one change of voters at a time",
        file: VOTER,
        line: "if self.log().voters().is_changing() || self.log().voters_index() > self.commit {",
        changed: "if self.commit == 0 {",
        test: "voters::",
    },
    Mutant {
        breaks: "one vote in a term (a message leaves before its record)",
        file: VOTER,
        line: "records.chain(actions).collect()",
        changed: "actions.into_iter().chain(records).collect()",
        test: "voters::",
    },
    Mutant {
        breaks: "one valid arbiter at a time (a voter that starts again votes at once)",
        file: VOTER,
        line: "let bound_until = if led_alone { now } else { now + timing.lost_after() };",
        changed: "let bound_until = if led_alone { now } else { now.max(timing.interval()) };",
        test: "voters::",
    },
    Mutant {
        breaks: "one valid arbiter at a time (a voter that is left alone leads at once)",
        file: VOTER,
        line: "log.arbiter().is_none_or(|it| it == own);",
        changed: "log.arbiter().is_none_or(|it| it.0 > 0);",
        test: "protocols units: voters::voter::tests::a_voter_that_another",
    },
    Mutant {
        breaks: "nobody else is called lost before T + 0.1 s",
        file: VOTER,
        line: "Some(since.saturating_add(self.timing.lost_after()))",
        changed: "Some(since.saturating_add(self.timing.interval()))",
        test: "protocols units: voters::voter::tests::a_lease_counts",
    },
];
