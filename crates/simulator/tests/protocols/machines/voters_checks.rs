//! The properties of voters, a checker each.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use landeck_protocols::voters::{
    LogContent, LogEntry, LogPosition, StoredVoter, Voter, VoterContent, VoterMessage, VoterRecord,
    Voters,
};
use landeck_wire::HostIncarnation;

use super::host_checks::{Check, ensure};

/// The observations of a run.
#[derive(Debug, Default)]
pub(super) struct VoterChecks {
    /// The state that each incarnation has stored, also after its end.
    pub(super) disks: BTreeMap<HostIncarnation, StoredVoter>,
    /// The leader of each term.
    leaders: BTreeMap<u64, HostIncarnation>,
    /// Those that became the arbiter.
    arbiters: BTreeMap<u64, HostIncarnation>,
    /// Each entry that was ever stored, with the term of the one before it.
    entries: BTreeMap<LogPosition, (LogEntry, u64)>,
    /// The voters of the new machine.
    founded: Voters,
    /// The term of each committed entry.
    committed: BTreeMap<u64, u64>,
    /// The term in which each was committed, which may be a later one.
    committed_in: BTreeMap<u64, u64>,
    /// The state after each applied entry.
    folded: BTreeMap<u64, u64>,
    votes: BTreeMap<(HostIncarnation, u64), HostIncarnation>,
    pre_votes: BTreeMap<(HostIncarnation, u64), BTreeSet<HostIncarnation>>,
    /// The changes of voters that were begun.
    pub(super) changes: u32,
}

/// Whether a log has an entry. A snapshot has all that it covers.
fn has(stored: &StoredVoter, at: LogPosition) -> bool {
    let log = &stored.log;
    at.index < log.snapshot().last.index || log.position(at.index) == Some(at)
}

impl VoterChecks {
    /// The checks of a machine that begins with these voters.
    pub(super) fn new(founded: Voters) -> Self {
        Self { founded, ..Self::default() }
    }

    /// The last committed entry.
    pub(super) fn last_committed(&self) -> LogPosition {
        let last = self.committed.last_key_value();
        last.map_or(LogPosition { term: 0, index: 1 }, |(index, term)| LogPosition {
            term: *term,
            index: *index,
        })
    }

    /// A record is written: what it does to votes and the log.
    pub(super) fn stores(&mut self, own: HostIncarnation, record: &VoterRecord) -> Check {
        match record {
            VoterRecord::Vote { term, vote } if *vote == Some(own) => {
                self.votes_once(own, *term, own)?;
                self.term_begins(own, *term)?;
            }
            VoterRecord::Append { behind, entries } => self.logs_match(own, *behind, entries)?,
            VoterRecord::Vote { .. } | VoterRecord::Snapshot(_) => {}
        }
        self.disks.entry(own).or_default().write(record);
        Ok(())
    }

    /// No two logs differ before an entry that both have.
    fn logs_match(&mut self, own: HostIncarnation, behind: u64, entries: &[LogEntry]) -> Check {
        let log = &self.disks.entry(own).or_default().log;
        let Some(mut before) = log.position(behind) else {
            return ensure(false, "logs match", || format!("{own:?} writes behind {behind}"));
        };
        for entry in entries {
            let at = LogPosition { term: entry.term, index: before.index + 1 };
            let new = (entry.clone(), before.term);
            let known = self.entries.entry(at).or_insert_with(|| new.clone());
            ensure(*known == new, "logs match", || format!("{at:?} is {known:?} and {new:?}"))?;
            before = at;
        }
        Ok(())
    }

    /// A leader that changes the voters has committed an entry of its term, and the new voters have all that is committed.
    pub(super) fn change_begins(
        &mut self,
        (leader, before): (&Voter, &Voters),
        entries: &[LogEntry],
    ) -> Check {
        let is_change = |entry: &&LogEntry| match &entry.content {
            LogContent::Voters(voters) => voters.is_changing(),
            _ => false,
        };
        let Some(LogEntry { term, content: LogContent::Voters(voters) }) =
            entries.iter().find(is_change)
        else {
            return Ok(());
        };
        self.changes += 1;
        let is_committed = self.committed.values().any(|it| it == term);
        ensure(is_committed, "voters change after an entry of the term", || {
            format!("term {term}: {:?} is committed", self.last_committed())
        })?;
        ensure(!before.is_changing(), "one change of voters at a time", || format!("{before:?}"))?;
        let Some(term) = self.committed.get(&leader.commit()) else { return Ok(()) };
        let at = LogPosition { term: *term, index: leader.commit() };
        for new in voters.iter().filter(|voter| !before.contains(*voter)) {
            let has_all = self.disks.get(&new).is_some_and(|stored| has(stored, at));
            ensure(has_all, "no voter before it has caught up", || {
                format!("{new:?} votes, without {at:?}")
            })?;
        }
        Ok(())
    }

    /// A message is sent.
    pub(super) fn says(&mut self, message: &VoterMessage) -> Check {
        let VoterMessage { from, to, term, content } = message;
        match content {
            VoterContent::Vote { is_pre: false, is_granted: true } => {
                self.votes_once(*from, *term, *to)
            }
            // A candidate votes for itself.
            VoterContent::Ask { is_pre: false, .. } => self.votes_once(*from, *term, *from),
            VoterContent::Vote { is_pre: true, is_granted: true } => {
                self.pre_votes.entry((*to, *term)).or_default().insert(*from);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// No voter votes twice in a term, also after a restart.
    fn votes_once(&mut self, voter: HostIncarnation, term: u64, to: HostIncarnation) -> Check {
        let first = *self.votes.entry((voter, term)).or_insert(to);
        ensure(first == to, "one vote in a term", || {
            format!("{voter:?} votes for {first:?} and {to:?} in term {term}")
        })
    }

    /// A candidate begins a term that a majority would let it lead.
    fn term_begins(&self, own: HostIncarnation, term: u64) -> Check {
        let known = self.pre_votes.get(&(own, term));
        let would = |it| it == own || known.is_some_and(|known| known.contains(&it));
        let end = self.disks.get(&own).map(|it| it.log.last()).unwrap_or_default();
        let (voters, _) = self.voters_by(end);
        let has_majority = voters.majority(would);
        ensure(has_majority == Some(true), "a term begins with a majority", || {
            format!("{own:?} begins term {term} with {known:?} of {voters:?}")
        })
    }

    /// A voter leads: it is the only one in its term, and has everything that was committed in earlier ones.
    pub(super) fn leads(&mut self, voter: &Voter, own: HostIncarnation) -> Check {
        let term = voter.term();
        if self.leaders.get(&term) == Some(&own) {
            return Ok(());
        }
        let first = *self.leaders.entry(term).or_insert(own);
        ensure(first == own, "one arbiter per term", || {
            format!("{first:?} and {own:?} in {term}")
        })?;
        let is_earlier = |index: &u64| self.committed_in.get(index).is_some_and(|it| *it < term);
        for (index, term) in self.committed.iter().filter(|(index, _)| is_earlier(index)) {
            let at = LogPosition { term: *term, index: *index };
            ensure(has(voter.stored(), at), "a given word stays", || {
                format!("{own:?} leads {} without {at:?}", voter.term())
            })?;
        }
        Ok(())
    }

    /// A leader becomes the arbiter: nobody but the one before it is called lost at once.
    pub(super) fn begins(
        &mut self,
        own: HostIncarnation,
        term: u64,
        former: Option<HostIncarnation>,
    ) -> Check {
        let before = self.arbiters.range(..term).next_back().map(|(_, it)| *it);
        self.arbiters.insert(term, own);
        ensure(former.is_none() || former == before, "the former arbiter is the last one", || {
            format!("{own:?} begins term {term} after {former:?}, not after {before:?}")
        })
    }

    /// A voter has committed everything up to a position: it is the same entry everywhere, and a majority has it if this is
    /// the leader.
    pub(super) fn commits(&mut self, voter: &Voter, from: u64) -> Check {
        if voter.commit() == from {
            return Ok(());
        }
        let (voters, since) = self.voters_by(voter.log().last());
        let voters = voters.clone();
        for index in from + 1..=voter.commit() {
            let Some(at) = voter.log().position(index) else { continue };
            let term = *self.committed.entry(index).or_insert(at.term);
            self.committed_in.entry(index).or_insert(voter.term());
            ensure(term == at.term, "a given word stays", || {
                format!("entry {index} is committed in terms {term} and {}", at.term)
            })?;
            // The end of a change is decided by the voters that it leaves, and entries in front of it by both.
            if voter.is_leader() && (voters.is_changing() || index >= since) {
                let stores = |it| self.disks.get(&it).is_some_and(|stored| has(stored, at));
                let are_enough = voters.majority(stores) == Some(true);
                ensure(are_enough, "a majority has what is committed", || {
                    format!("{at:?} of {voters:?}")
                })?;
            }
        }
        Ok(())
    }

    /// The newest voters in the log with this end, with their index, whatever the voter itself has kept of it.
    fn voters_by(&self, mut end: LogPosition) -> (&Voters, u64) {
        while let Some((entry, before)) = self.entries.get(&end) {
            if let LogContent::Voters(voters) = &entry.content {
                return (voters, end.index);
            }
            end = LogPosition { term: *before, index: end.index - 1 };
        }
        (&self.founded, 1)
    }

    /// A state is made by entries up to an index: the same at every host.
    pub(super) fn applies(&mut self, index: u64, state: u64) -> Check {
        let first = *self.folded.entry(index).or_insert(state);
        ensure(first == state, "one state after an entry", || {
            format!("entry {index} makes {first:x} and {state:x}")
        })
    }
}

/// A former arbiter's own view is over when another one begins.
pub(super) fn views_do_not_overlap(
    arbiter: usize,
    now: Duration,
    valid: impl Iterator<Item = (usize, Duration)>,
) -> Check {
    let mut others = valid.filter(|(host, left)| *host != arbiter && !left.is_zero());
    let other = others.next();
    ensure(other.is_none(), "one valid arbiter at a time", || {
        format!("host {arbiter} is the arbiter at {now:?}, and {other:?} has that time left")
    })
}
