//! The faults of voters by seed, and what must hold about time: who leads, for how long, and who goes on.

use std::collections::BTreeSet;
use std::time::Duration;

use landeck_protocols::voters::{
    LogContent, Voter, VoterAnswer, VoterContent, VoterMessage, Voters,
};
use landeck_wire::HostIncarnation;

use super::draw::Draw;
use super::event_log::ProtocolFailure;
use super::host_checks::{Check, ensure};
use super::voters::{Event, VotersReport, World, host_of};

/// The times in which faults happen, in which cuts stay as they are, and in which all is well again: in host timeouts.
const FAULTY: u32 = 16;
const CUT: u32 = 10;
const WELL: u32 = 10;

/// Runs voters under faults of all kinds.
///
/// # Errors
/// [`ProtocolFailure`] if a property did not hold.
pub(crate) fn run(seed: u64) -> Result<VotersReport, ProtocolFailure> {
    let mut draw = Draw::new(seed);
    let hosts = 3 + draw.below(4) as usize;
    let voters = draw.pick(&[1, 3, 3, if hosts < 5 { 3 } else { 5 }]);
    let timeout = Duration::from_millis(draw.pick(&[500, 500, 1_000]));
    let mut world = World::new(draw, hosts, voters, timeout);
    world.quality.loss_permille = world.draw.pick(&[0, 20, 60]);
    world.quality.twice_permille = world.draw.pick(&[0, 50]);
    world.quality.delay_max = Duration::from_millis(world.draw.pick(&[2, 10, 40]));
    world.stale_permille = world.draw.pick(&[0, 0, 10, 40]);
    world.stop_permille = world.draw.pick(&[0, 1, 3]);
    for event in [Event::Propose, Event::Manage, Event::Probe, Event::Fault] {
        world.plan_within(timeout / 2, event);
    }
    world.plan(FAULTY * timeout, Event::Calm);
    world.plan((FAULTY + CUT) * timeout, Event::Heal);
    let end = (FAULTY + CUT + WELL) * timeout;
    world.changes_until = end - 7 * timeout;
    world.plan(end, Event::Over);
    let check = world.run_until(end + timeout);
    world.finish(seed, check)
}

/// Faults.
impl World {
    pub(super) fn fault(&mut self) -> Check {
        if self.is_calm {
            return Ok(());
        }
        let most = self.draw.pick(&[1, 2, 4]) * self.timing.timeout();
        self.plan_within(most, Event::Fault);
        let host = self.draw.below(self.hosts.len() as u64) as usize;
        match self.draw.below(10) {
            0..4 => {
                let is_healed = self.draw.permille(300);
                let cuts =
                    if is_healed { BTreeSet::new() } else { self.network.draw(&mut self.draw) };
                self.cut(cuts);
            }
            4 | 5 if self.hosts[host].voter.is_some() => self.stopped(host),
            6 if self.may_forget(host) => self.boot(host),
            7 => self.freeze(host, false),
            8 => self.freeze(host, true),
            _ => return self.garble(host),
        }
        Ok(())
    }

    pub(super) fn cut(&mut self, cuts: BTreeSet<(usize, usize)>) {
        self.see_majorities();
        self.note(format!("cut: {cuts:?}"));
        self.network.set(cuts, self.now);
        self.see_majorities();
    }

    /// A daemon stands still, with or without the clock of its host.
    fn freeze(&mut self, host: usize, pauses: bool) {
        let it = &mut self.hosts[host];
        if it.voter.is_none() || it.frozen.is_some() || it.is_paused {
            return;
        }
        it.frozen = Some(Vec::new());
        if pauses {
            it.clock.pause(self.now);
            (it.is_paused, it.unproven_until) = (true, Duration::MAX);
        }
        self.see_majorities();
        self.note(format!("host {host} stands still, its clock too: {pauses}"));
        self.network.set_up(host, false, self.now);
        self.plan_within(3 * self.timing.timeout(), Event::Thaw(host));
    }

    pub(super) fn thaw(&mut self, host: usize) -> Check {
        let it = &mut self.hosts[host];
        if std::mem::take(&mut it.is_paused) {
            it.clock.resume(self.now);
            it.unproven_until = self.now + 2 * self.timing.timeout();
        }
        let Some(waiting) = it.frozen.take() else { return Ok(()) };
        it.planned = None;
        self.note(format!("host {host} goes on, {} messages wait", waiting.len()));
        self.network.set_up(host, true, self.now);
        self.plan_look(host);
        for message in waiting {
            self.step(host, |voter, now, random| voter.hear(message, now, random))?;
        }
        Ok(())
    }

    /// Whether a host may boot anew without taking a majority's memory along: of all voters that may count.
    fn may_forget(&self, host: usize) -> bool {
        let left =
            |it: HostIncarnation| host_of(it) != host && self.hosts[host_of(it)].incarnation == it;
        let stays = |voters: &Voters| voters.majority(left) != Some(false);
        self.hosts.iter().all(|it| {
            let Some(stored) = self.checks.disks.get(&it.incarnation) else { return true };
            let log = &stored.log;
            let all = log.behind(log.snapshot().last.index, usize::MAX).iter();
            let named = all.filter_map(|entry| match &entry.content {
                LogContent::Voters(voters) => Some(voters),
                _ => None,
            });
            named.chain([&log.snapshot().voters]).all(stays)
        })
    }

    /// A host hears something that no voter says to it.
    fn garble(&mut self, host: usize) -> Check {
        let from = self.hosts[self.draw.below(self.hosts.len() as u64) as usize].incarnation;
        let Some(voter) = &self.hosts[host].voter else { return Ok(()) };
        let (to, term, last) = (self.hosts[host].incarnation, voter.term(), voter.log().last());
        let sent = Duration::MAX;
        let answer = VoterAnswer::Stored(last.index + 1);
        let (term, content) = match self.draw.below(4) {
            0 => (u64::MAX, VoterContent::Ask { is_pre: false, last }),
            1 => (term, VoterContent::Answer { sent, answer }),
            2 => (term, VoterContent::Install { sent, snapshot: Default::default() }),
            _ => {
                let entries = voter.log().behind(0, 9).iter().rev().cloned().collect();
                let commit = u64::MAX;
                (term, VoterContent::Append { sent, before: last, entries, commit })
            }
        };
        let message = VoterMessage { from, to, term, content };
        self.step(host, |voter, now, random| voter.hear(message, now, random))
    }

    /// No more faults. Some cuts stay.
    pub(super) fn calm(&mut self) -> Check {
        self.is_calm = true;
        self.stop_permille = 0;
        let cuts = self.network.draw(&mut self.draw);
        self.cut(cuts);
        Ok(())
    }

    pub(super) fn heal(&mut self) -> Check {
        self.cut(BTreeSet::new());
        Ok(())
    }

    /// All is well for long: there is one arbiter, and all hosts have everything.
    pub(super) fn over(&mut self) -> Check {
        let arbiters: Vec<usize> =
            (0..self.hosts.len()).filter(|it| self.is_arbiter(*it)).collect();
        ensure(arbiters.len() == 1, "a connected majority goes on", || {
            format!("{arbiters:?}{}", self.standing())
        })?;
        let Some(voter) = &self.hosts[arbiters[0]].voter else { return Ok(()) };
        let voters = voter.log().voters();
        let commit = voter.commit();
        let recent = commit.saturating_sub(12);
        for voter in self.hosts.iter().filter(|it| voters.contains(it.incarnation)) {
            let has = voter.voter.as_ref().map_or(0, Voter::commit);
            ensure(has >= recent, "all voters have everything", || {
                format!("{:?} has {has} of {commit}", voter.incarnation)
            })?;
        }
        Ok(())
    }
}

/// Properties of time.
impl World {
    pub(super) fn is_arbiter(&self, host: usize) -> bool {
        let it = &self.hosts[host];
        let now = it.clock.shows(self.now);
        it.frozen.is_none() && it.voter.as_ref().is_some_and(|voter| voter.is_arbiter(now))
    }

    /// The value that a majority of a host's voters has reached.
    fn majority_of<T: Ord>(&self, host: usize, of: impl Fn(HostIncarnation) -> T) -> Option<T> {
        self.hosts[host].voter.as_ref()?.log().voters().majority(of)
    }

    /// Remembers which hosts reach each other and a majority now.
    fn see_majorities(&mut self) {
        for host in 0..self.hosts.len() {
            for other in 0..self.hosts.len() {
                if self.network.passes(host, other) {
                    self.asked[host][other] = self.now;
                }
                // An answer may come late, but not to what was never sent.
                if self.network.passes(other, host) && self.hosts[other].voter.is_some() {
                    self.met[host][other] = self.asked[host][other];
                }
            }
            // The later, the less; a link that is cut is the least.
            let together = |it: HostIncarnation| match host_of(it) {
                other if self.hosts[other].incarnation != it => None,
                other => self.network.together_since(host, other).map(std::cmp::Reverse),
            };
            let since = self.majority_of(host, together).flatten();
            self.steady_since[host] =
                since.map(|since| since.0.max(self.steady_since[host].unwrap_or(self.now)));
        }
    }

    pub(super) fn probe(&mut self) -> Check {
        self.see_majorities();
        let timeout = self.timing.timeout();
        for host in 0..self.hosts.len() {
            let met = self.majority_of(host, |it| self.met[host][host_of(it)]);
            let alone = self.now.saturating_sub(met.unwrap_or_default());
            // Its clock may be slow.
            let is_late = alone > timeout + timeout / 100 + self.timing.interval();
            let is_proven = self.hosts[host].unproven_until <= self.now;
            ensure(
                !(is_late && is_proven && self.is_arbiter(host)),
                "an arbiter without a majority ends within T",
                || format!("host {host} has met no majority for {alone:?}:{}", self.standing()),
            )?;
        }
        self.majority_goes_on()
    }

    /// Hosts that reach each other for long, and of which the voters are a majority, have an arbiter.
    fn majority_goes_on(&mut self) -> Check {
        let (count, timeout) = (self.hosts.len(), self.timing.timeout());
        if self.now.saturating_sub(self.arbiter_seen) < timeout {
            self.without_arbiter.clear();
            return Ok(());
        }
        for subset in 1_u32..1 << count {
            let hosts: Vec<usize> = (0..count).filter(|it| subset >> it & 1 == 1).collect();
            if !self.are_majority(&hosts) {
                self.without_arbiter.remove(&subset);
                continue;
            }
            let since = *self.without_arbiter.entry(subset).or_insert(self.now);
            let is_long = since + 6 * timeout + Duration::from_millis(500) < self.now;
            ensure(!is_long, "a connected majority goes on", || {
                format!("hosts {hosts:?} have no arbiter since {since:?}:{}", self.standing())
            })?;
        }
        Ok(())
    }

    /// Whether hosts reach each other, and are a majority of the voters by the logs of all of them.
    fn are_majority(&self, hosts: &[usize]) -> bool {
        let has = |it: HostIncarnation| {
            hosts.contains(&host_of(it)) && self.hosts[host_of(it)].incarnation == it
        };
        let votes = |host: &usize| self.majority_of(*host, has).is_none_or(|has| has);
        self.network.are_together(hosts)
            && hosts.iter().all(votes)
            && hosts.iter().any(|it| self.counts(*it))
    }

    /// The state of each voter, for a failure's text.
    fn standing(&self) -> String {
        let voters = self.hosts.iter().filter_map(|it| it.voter.as_ref());
        let text = |it: &Voter| {
            let (log, term) = (it.log(), it.term());
            let voters: Vec<u64> = log.voters().iter().map(|it| it.0).collect();
            let (leads, commit) = (it.is_leader(), it.commit());
            format!(
                "\n  term {term}, leads: {leads}, {:?}, commit {commit}, {voters:?}",
                log.last()
            )
        };
        voters.map(text).collect()
    }

    /// Whether a host is a voter by its own log.
    fn counts(&self, host: usize) -> bool {
        let it = &self.hosts[host];
        it.voter.as_ref().is_some_and(|voter| voter.log().voters().contains(it.incarnation))
    }

    /// Another arbiter begins: the one before it has not reached a majority for some time, or votes no more.
    pub(super) fn begins(&mut self, host: usize, former: Option<HostIncarnation>) -> Check {
        let Some(last) = self.last_arbiter.filter(|last| *last != host) else { return Ok(()) };
        let is_known = former == Some(self.hosts[last].incarnation);
        let since = self.steady_since[last].filter(|_| is_known && self.counts(last));
        let long = 4 * self.timing.timeout();
        ensure(since.is_none_or(|since| since + long > self.now), "a leader stays", || {
            format!("host {last} has reached a majority since {since:?}")
        })
    }
}

/// A driver's random cuts are those of `voters_network`.
#[cfg(test)]
mod tests {
    use super::super::voters_network::Network;
    use super::*;

    #[test]
    fn each_kind_of_cut_leaves_links() {
        let (network, mut draw) = (Network::new(5), Draw::new(1));
        let cuts: Vec<usize> = (0..99).map(|_| network.draw(&mut draw).len()).collect();
        assert!(cuts.iter().all(|it| *it < 20) && cuts.iter().any(|it| *it > 0));
    }
}
