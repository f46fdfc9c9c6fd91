//! Hosts with voters: clocks, disks, messages that are lost, doubled and late, and a driver as the daemon's.
//!
//! Each host has a clock of its own, a disk that outlives its daemon, and the state that committed entries make. A step of a
//! host is one call of its machine; the host may stop between any two outputs of it. `voters_faults` breaks links and hosts,
//! `voters_checks` has the properties.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use landeck_protocols::hosts::HostTiming;
use landeck_protocols::voters::{
    ProposalError, StoredVoter, Voter, VoterMessage, VoterOutput, VoterRecord, Voters,
};
use landeck_simulator::{Events, Time};
use landeck_wire::HostIncarnation;

use super::clock::HostClock;
use super::draw::Draw;
use super::event_log::{EventLog, ProtocolFailure};
use super::host_checks::{Check, ensure};
use super::link::Quality;
use super::voters_checks::{VoterChecks, views_do_not_overlap};
use super::voters_network::Network;

/// A driver looks this late at most.
const LATE_MAX: Duration = Duration::from_millis(4);
/// Places of hosts in the numbers of incarnations.
const PLACES: u64 = 16;

/// The result of a run in which all properties held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct VotersReport {
    /// The times that a host became the arbiter, and those in which it called the former one's host lost.
    pub(crate) arbiters: u32,
    pub(crate) former_lost: u32,
    /// The entries that were committed, and the newest term.
    pub(crate) committed: u64,
    pub(crate) term: u64,
    /// The changes of voters, and the snapshots that were sent.
    pub(crate) changes: u32,
    pub(crate) restored: u32,
    /// The daemons that stopped, of these between two outputs, and the hosts that booted anew.
    pub(crate) stops: u32,
    pub(crate) stops_inside: u32,
    pub(crate) boots: u32,
    /// The messages that were dropped: garbled, old, foreign.
    pub(crate) dropped: [u64; 3],
    /// The decisions that were refused, and the voters that had not caught up.
    pub(crate) refused: u32,
    pub(crate) behind: u32,
    /// A number that depends on everything that happened.
    pub(crate) hash: u64,
}

#[derive(Clone, Debug)]
pub(super) enum Event {
    Look(usize),
    Arrive(usize, VoterMessage),
    Propose,
    Manage,
    Probe,
    Fault,
    Start(usize),
    Thaw(usize),
    Calm,
    Heal,
    Over,
}

/// A host with a voter.
#[derive(Debug)]
pub(super) struct VoterHost {
    pub(super) incarnation: HostIncarnation,
    boots: u64,
    pub(super) clock: HostClock,
    pub(super) voter: Option<Voter>,
    /// The moment of the next planned look.
    pub(super) planned: Option<Duration>,
    /// The messages that came while the daemon stood still.
    pub(super) frozen: Option<Vec<VoterMessage>>,
    /// The state, and the index up to which entries are in it.
    state: u64,
    applied: u64,
    /// The time until which this host's own view as the arbiter is valid. It outlives the daemon.
    valid_until: Option<Duration>,
    pub(super) is_paused: bool,
    /// Until then the clock proves nothing, as it has stood still.
    pub(super) unproven_until: Duration,
    is_arbiter: bool,
}

/// The hosts of a run.
pub(super) struct World {
    pub(super) draw: Draw,
    pub(super) events: Events<Event>,
    pub(super) now: Duration,
    pub(super) log: EventLog,
    pub(super) timing: HostTiming,
    pub(super) quality: Quality,
    /// So many of a thousand messages come very late.
    pub(super) stale_permille: u32,
    /// So many of a thousand steps end in the middle.
    pub(super) stop_permille: u32,
    pub(super) hosts: Vec<VoterHost>,
    pub(super) network: Network,
    pub(super) checks: VoterChecks,
    /// The host that was the arbiter last, and when there was one.
    pub(super) last_arbiter: Option<usize>,
    pub(super) arbiter_seen: Duration,
    /// Sets of hosts that are a majority without an arbiter, with the time since which they are.
    pub(super) without_arbiter: BTreeMap<u32, Duration>,
    /// When each host could last send to each other one, and the newest such time from which it may have an answer.
    pub(super) asked: Vec<Vec<Duration>>,
    pub(super) met: Vec<Vec<Duration>>,
    /// Since when each host has reached a majority all the time.
    pub(super) steady_since: Vec<Option<Duration>>,
    /// Whether faults happen no more, and until when the voters change.
    pub(super) is_calm: bool,
    pub(super) changes_until: Duration,
    proposed: u64,
    pub(super) report: VotersReport,
}

pub(super) fn host_of(incarnation: HostIncarnation) -> usize {
    ((incarnation.0 - 1) % PLACES) as usize
}

const fn incarnation(host: usize, boots: u64) -> HostIncarnation {
    HostIncarnation(boots * PLACES + host as u64 + 1)
}

/// The state after one more entry.
fn fold(state: u64, data: &[u8]) -> u64 {
    data.iter().fold(state, |state, byte| (state ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

impl World {
    /// Hosts, the first of which are the voters of a new machine. The others learn.
    pub(super) fn new(mut draw: Draw, hosts: usize, voters: usize, timeout: Duration) -> Self {
        let (few, some) = (Duration::from_micros(200), Duration::from_millis(3));
        let quality =
            Quality { loss_permille: 0, twice_permille: 0, delay_min: few, delay_max: some };
        let first = Voters::new((0..voters).map(|host| incarnation(host, 0)));
        let founded = first.unwrap_or_default();
        let timing = HostTiming::new(timeout);
        let mut checks = VoterChecks::new(founded.clone());
        let founded = StoredVoter::founded(founded);
        let mut make = |host: usize| {
            let offset = draw.time(Duration::from_secs(1), Duration::from_secs(9_000));
            let (rate, is_fast) = (draw.below(200) as u32, draw.permille(500));
            let clock = HostClock::new(Duration::ZERO, offset, rate, is_fast);
            let stored = if host < voters { founded.clone() } else { StoredVoter::empty() };
            let own = incarnation(host, 0);
            checks.disks.insert(own, stored.clone());
            VoterHost {
                incarnation: own,
                boots: 0,
                clock,
                voter: Some(Voter::new(own, timing, stored, clock.shows(Duration::ZERO))),
                planned: None,
                frozen: None,
                state: 0,
                applied: 0,
                valid_until: None,
                is_paused: false,
                unproven_until: Duration::ZERO,
                is_arbiter: false,
            }
        };
        let all: Vec<_> = (0..hosts).map(&mut make).collect();
        let mut world = Self {
            draw,
            events: Events::default(),
            now: Duration::ZERO,
            log: EventLog::default(),
            timing,
            quality,
            stale_permille: 0,
            stop_permille: 0,
            hosts: all,
            network: Network::new(hosts),
            checks,
            last_arbiter: None,
            arbiter_seen: Duration::ZERO,
            without_arbiter: BTreeMap::new(),
            asked: vec![vec![Duration::ZERO; hosts]; hosts],
            met: vec![vec![Duration::ZERO; hosts]; hosts],
            steady_since: vec![None; hosts],
            is_calm: false,
            changes_until: Duration::MAX,
            proposed: 0,
            report: VotersReport::default(),
        };
        (0..hosts).for_each(|host| world.plan_look(host));
        world
    }

    pub(super) fn plan(&mut self, after: Duration, event: Event) {
        let at = self.now + after;
        self.events.plan(Time::from_ps(at.as_nanos() as u64 * 1_000), event);
    }

    pub(super) fn plan_within(&mut self, most: Duration, event: Event) {
        let after = self.draw.time(most / 20, most);
        self.plan(after, event);
    }

    pub(super) fn note(&mut self, text: String) {
        self.log.note(self.now, text);
    }

    /// Lets everything happen up to a moment.
    pub(super) fn run_until(&mut self, end: Duration) -> Check {
        while let Some((at, event)) = self.events.pop() {
            self.now = Duration::from_nanos(at.ps() / 1_000);
            if self.now > end {
                self.events.plan(at, event);
                break;
            }
            if matches!(event, Event::Over) {
                return self.over();
            }
            self.happen(event)?;
        }
        self.now = end;
        Ok(())
    }

    fn happen(&mut self, event: Event) -> Check {
        match event {
            Event::Look(host) if self.hosts[host].planned == Some(self.now) => {
                self.hosts[host].planned = None;
                self.step(host, |voter, now, random| voter.look(now, random))
            }
            Event::Look(_) => Ok(()),
            Event::Arrive(host, message) => self.arrive(host, message),
            Event::Propose => {
                self.plan_within(Duration::from_millis(120), Event::Propose);
                self.propose()
            }
            Event::Manage => {
                self.plan_within(Duration::from_millis(300), Event::Manage);
                self.manage()
            }
            Event::Probe => {
                self.plan(self.timing.interval(), Event::Probe);
                self.probe()
            }
            Event::Fault => self.fault(),
            Event::Start(host) => {
                self.start(host);
                Ok(())
            }
            Event::Thaw(host) => self.thaw(host),
            Event::Calm => self.calm(),
            Event::Heal => self.heal(),
            Event::Over => Ok(()),
        }
    }

    fn arrive(&mut self, host: usize, message: VoterMessage) -> Check {
        if let Some(waiting) = &mut self.hosts[host].frozen {
            waiting.push(message);
            return Ok(());
        }
        self.step(host, |voter, now, random| voter.hear(message, now, random))
    }

    /// One call of a host's machine, with everything that follows from it.
    pub(super) fn step(
        &mut self,
        host: usize,
        call: impl FnOnce(&mut Voter, Duration, u64) -> Vec<VoterOutput>,
    ) -> Check {
        let it = &mut self.hosts[host];
        let local = it.clock.shows(self.now);
        if it.frozen.is_some() {
            return Ok(());
        }
        let Some(mut voter) = it.voter.take() else { return Ok(()) };
        let (commit, voters) = (voter.commit(), voter.log().voters().clone());
        let outputs = call(&mut voter, local, self.draw.bits());
        if let Some(leader) = Some(&voter).filter(|it| it.is_leader()) {
            for output in &outputs {
                if let VoterOutput::Record(VoterRecord::Append { entries, .. }) = output {
                    self.checks.change_begins((leader, &voters), entries)?;
                }
            }
        }
        let stops_at = self.draw.permille(self.stop_permille).then(|| {
            let count = outputs.len() as u64;
            self.draw.below(count + 1) as usize
        });
        for (number, output) in outputs.into_iter().enumerate() {
            if stops_at == Some(number) {
                self.report.stops_inside += 1;
                self.stopped(host);
                return Ok(());
            }
            self.perform(host, output)?;
        }
        self.checks.commits(&voter, commit)?;
        if voter.is_leader() {
            self.checks.leads(&voter, self.hosts[host].incarnation)?;
        }
        let is_arbiter = voter.is_arbiter(local);
        if is_arbiter {
            self.hosts[host].valid_until = voter.arbiter_until(local);
            self.arbiter_seen = self.now;
        }
        self.hosts[host].voter = Some(voter);
        self.plan_look(host);
        let is_proven = self.hosts[host].unproven_until <= self.now;
        if is_arbiter && is_proven { self.views_do_not_overlap(host) } else { Ok(()) }
    }

    fn perform(&mut self, host: usize, output: VoterOutput) -> Check {
        let own = self.hosts[host].incarnation;
        match output {
            VoterOutput::Record(record) => self.checks.stores(own, &record)?,
            VoterOutput::Send(message) => {
                self.checks.says(&message)?;
                self.send(host, message);
            }
            VoterOutput::Apply { index, data } => {
                let it = &mut self.hosts[host];
                let is_next = index > it.applied;
                (it.state, it.applied) = (fold(it.state, &data), index);
                let state = it.state;
                ensure(is_next, "each entry is applied once", || format!("{index} at {own:?}"))?;
                self.checks.applies(index, state)?;
            }
            VoterOutput::Restore { index, state } => {
                let bytes = state.try_into().unwrap_or_default();
                let it = &mut self.hosts[host];
                (it.state, it.applied) = (u64::from_le_bytes(bytes), index);
                self.report.restored += 1;
            }
            VoterOutput::Begins { term, former } => {
                self.note(format!("host {host} is the arbiter of term {term}, after {former:?}"));
                self.hosts[host].is_arbiter = true;
                self.report.arbiters += 1;
                self.report.former_lost += u32::from(former.is_some());
                self.checks.begins(own, term, former)?;
                self.begins(host, former)?;
                self.last_arbiter = Some(host);
            }
            VoterOutput::Ends { term } => {
                self.note(format!("host {host} ends term {term}"));
                let it = &mut self.hosts[host];
                ensure(it.is_arbiter, "an arbiter ends that has begun", || format!("{host}"))?;
                (it.is_arbiter, it.valid_until) = (false, None);
            }
        }
        Ok(())
    }

    fn send(&mut self, from: usize, message: VoterMessage) {
        let to = host_of(message.to);
        if to >= self.hosts.len() || !self.network.passes(from, to) {
            return;
        }
        for at in self.quality.datagram(self.now, &mut self.draw) {
            let is_stale = self.draw.permille(self.stale_permille);
            let late = self.draw.time(Duration::ZERO, 3 * self.timing.timeout());
            let after = at - self.now + if is_stale { late } else { Duration::ZERO };
            self.plan(after, Event::Arrive(to, message.clone()));
        }
    }

    pub(super) fn plan_look(&mut self, host: usize) {
        let late = self.draw.time(Duration::ZERO, LATE_MAX);
        let it = &mut self.hosts[host];
        let Some(voter) = &it.voter else { return };
        let at = it.clock.moment_of(voter.next_look(), self.now);
        if it.planned.is_none_or(|planned| at < planned) {
            it.planned = Some(at + late);
            self.events
                .plan(Time::from_ps((at + late).as_nanos() as u64 * 1_000), Event::Look(host));
        }
    }

    fn views_do_not_overlap(&self, arbiter: usize) -> Check {
        let left = |(host, it): (usize, &VoterHost)| {
            let until = it.valid_until.filter(|_| it.unproven_until <= self.now)?;
            Some((host, until.saturating_sub(it.clock.shows(self.now))))
        };
        let valid = self.hosts.iter().enumerate().filter_map(left);
        views_do_not_overlap(arbiter, self.now, valid)
    }
}

/// The driver's own calls.
impl World {
    /// A host that leads decides something, or tries to.
    fn propose(&mut self) -> Check {
        let Some(host) = self.any_leader() else { return Ok(()) };
        self.propose_at(host)
    }

    pub(super) fn propose_at(&mut self, host: usize) -> Check {
        self.proposed += 1;
        let data = self.proposed.to_le_bytes().to_vec();
        self.decide(host, |voter, now| voter.propose(data, now))
    }

    pub(super) fn decide(
        &mut self,
        host: usize,
        call: impl FnOnce(&mut Voter, Duration) -> Result<Vec<VoterOutput>, ProposalError>,
    ) -> Check {
        let mut error = None;
        self.step(host, |voter, now, _| {
            call(voter, now).unwrap_or_else(|refusal| {
                error = Some(refusal);
                Vec::new()
            })
        })?;
        match error {
            Some(ProposalError::Behind(_)) => self.report.behind += 1,
            Some(_) => self.report.refused += 1,
            None => {}
        }
        Ok(())
    }

    pub(super) fn any_leader(&mut self) -> Option<usize> {
        let leads = |host: &usize| {
            let it = &self.hosts[*host];
            it.frozen.is_none() && it.voter.as_ref().is_some_and(Voter::is_leader)
        };
        let leaders: Vec<usize> = (0..self.hosts.len()).filter(leads).collect();
        (!leaders.is_empty()).then(|| self.draw.pick(&leaders))
    }

    /// Leaders teach all hosts and change the voters; any host shortens its log.
    fn manage(&mut self) -> Check {
        let any = self.draw.below(self.hosts.len() as u64) as usize;
        if self.draw.permille(300) {
            self.compact(any)?;
        }
        let Some(host) = self.any_leader() else { return Ok(()) };
        self.teach(host)?;
        let wanted = self.wanted_voters(host);
        if self.now < self.changes_until && self.draw.permille(300) {
            self.change_voters(host, &wanted)?;
            if self.draw.permille(400) {
                self.compact(host)?;
            }
        }
        Ok(())
    }

    pub(super) fn teach(&mut self, host: usize) -> Check {
        let all: BTreeSet<_> = self.hosts.iter().map(|it| it.incarnation).collect();
        self.step(host, |voter, _, _| {
            voter.teach(all);
            Vec::new()
        })
    }

    pub(super) fn change_voters(
        &mut self,
        host: usize,
        wanted: &BTreeSet<HostIncarnation>,
    ) -> Check {
        self.note(format!("host {host} wants the voters {wanted:?}"));
        self.decide(host, |voter, now| voter.change_voters(wanted, now))
    }

    pub(super) fn compact(&mut self, host: usize) -> Check {
        let (index, state) = (self.hosts[host].applied, self.hosts[host].state);
        self.step(host, |voter, _, _| voter.compact(index, state.to_le_bytes().to_vec()))
    }

    /// The voters of the host that leads, without those that are over, and one more or less to a number that is odd.
    fn wanted_voters(&mut self, host: usize) -> BTreeSet<HostIncarnation> {
        let Some(voter) = &self.hosts[host].voter else { return BTreeSet::new() };
        let current: BTreeSet<_> = voter.log().voters().iter().collect();
        let mut all: Vec<_> = self.hosts.iter().map(|it| it.incarnation).collect();
        // Voters of now first, so that most changes are small.
        let move_all = self.draw.permille(400);
        all.sort_by_key(|it| (!current.contains(it) && !move_all, self.draw.bits()));
        let most = all.len().min(5);
        let counts: Vec<usize> = (0..=most).filter(|count| count % 2 == 1).collect();
        let count = if self.draw.permille(50) { 2 } else { self.draw.pick(&counts) };
        all.into_iter().take(count).collect()
    }
}

/// Daemons that stop and start.
impl World {
    /// A daemon stops. What it has recorded stays.
    pub(super) fn stopped(&mut self, host: usize) {
        self.note(format!("host {host}: its daemon stops"));
        self.report.stops += 1;
        self.count_dropped(host);
        let it = &mut self.hosts[host];
        (it.voter, it.planned, it.is_arbiter) = (None, None, false);
        it.frozen = None;
        self.network.set_up(host, false, self.now);
        self.plan_within(self.timing.timeout(), Event::Start(host));
    }

    pub(super) fn start(&mut self, host: usize) {
        let it = &mut self.hosts[host];
        if it.voter.is_some() {
            return;
        }
        let stored = self.checks.disks.get(&it.incarnation).cloned().unwrap_or_default();
        let snapshot = stored.log.snapshot();
        let state = snapshot.state.clone().try_into().unwrap_or_default();
        (it.state, it.applied) = (u64::from_le_bytes(state), snapshot.last.index);
        it.voter = Some(Voter::new(it.incarnation, self.timing, stored, it.clock.shows(self.now)));
        it.planned = None;
        self.network.set_up(host, true, self.now);
        self.note(format!("host {host}: its daemon starts"));
        self.plan_look(host);
    }

    /// A host boots anew: nothing of it is left, and its next incarnation is another voter.
    pub(super) fn boot(&mut self, host: usize) {
        self.note(format!("host {host} boots anew"));
        self.report.boots += 1;
        self.count_dropped(host);
        let it = &mut self.hosts[host];
        it.boots += 1;
        it.incarnation = incarnation(host, it.boots);
        (it.voter, it.frozen, it.valid_until, it.is_arbiter) = (None, None, None, false);
        self.network.set_up(host, false, self.now);
        self.plan_within(2 * self.timing.timeout(), Event::Start(host));
    }

    fn count_dropped(&mut self, host: usize) {
        if let Some(voter) = &self.hosts[host].voter {
            let dropped = voter.dropped();
            let counts = [dropped.garbled, dropped.old, dropped.foreign];
            self.report.dropped.iter_mut().zip(counts).for_each(|(all, one)| *all += one);
        }
    }

    /// The report of a run that has ended.
    pub(super) fn finish(
        mut self,
        seed: u64,
        check: Check,
    ) -> Result<VotersReport, ProtocolFailure> {
        check.map_err(|(property, text)| self.log.failure(seed, property, text))?;
        (0..self.hosts.len()).for_each(|host| self.count_dropped(host));
        let term = self.hosts.iter().filter_map(|it| it.voter.as_ref()).map(Voter::term).max();
        Ok(VotersReport {
            committed: self.checks.last_committed().index,
            changes: self.checks.changes,
            term: term.unwrap_or(0),
            hash: self.log.hash(),
            ..self.report
        })
    }
}
