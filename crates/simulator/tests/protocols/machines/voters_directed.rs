//! Runs of voters in which certain faults meet. All properties of the other runs hold in them.

use std::collections::BTreeSet;
use std::time::Duration;

use landeck_protocols::voters::Voter;

use super::draw::Draw;
use super::event_log::ProtocolFailure;
use super::host_checks::{Check, ensure};
use super::voters::{Event, World};
use super::voters_network::pairs;

/// T.
const TIMEOUT: Duration = Duration::from_secs(1);
/// In a machine whose voters know of no leader, there is an arbiter within this time: nobody votes for T + 0.1 s, and then
/// candidates keep out of each other's way.
const ELECTION_MAX: Duration = Duration::from_millis(2_200);
/// A leader without a majority steps down within T. Then the others vote.
const CHANGE_MAX: Duration = TIMEOUT.saturating_add(ELECTION_MAX);

/// Runs a case to its end.
fn run(
    seed: u64,
    (hosts, voters): (usize, usize),
    case: impl FnOnce(&mut World) -> Check,
) -> Result<(), ProtocolFailure> {
    let mut world = World::new(Draw::new(seed), hosts, voters, TIMEOUT);
    world.plan(Duration::ZERO, Event::Probe);
    let check = case(&mut world);
    world.finish(seed, check).map(|_| ())
}

impl World {
    fn run_for(&mut self, time: Duration) -> Check {
        self.run_until(self.now + time)
    }

    fn arbiter(&self) -> Option<usize> {
        (0..self.hosts.len()).find(|host| self.is_arbiter(*host))
    }

    /// Runs until there is an arbiter, which must not take longer than this.
    fn arbiter_within(&mut self, most: Duration) -> Result<usize, (&'static str, String)> {
        let end = self.now + most;
        while self.now < end && self.arbiter().is_none() {
            self.run_for(TIMEOUT / 50)?;
        }
        self.arbiter().ok_or_else(|| ("an election ends in time", format!("{most:?}")))
    }

    /// The hosts with the arbiter first.
    fn in_order(&self, arbiter: usize) -> Vec<usize> {
        let others = (0..self.hosts.len()).filter(|host| *host != arbiter);
        [arbiter].into_iter().chain(others).collect()
    }

    /// Leaves only links between hosts of which this holds, by their places in an order.
    fn leave(&mut self, order: &[usize], is_left: impl Fn(usize, usize) -> bool) {
        let place = |host: usize| order.iter().position(|it| *it == host).unwrap_or(0);
        let is_whole = |one: usize, other: usize| is_left(one.min(other), one.max(other));
        let cuts = pairs(order.len()).filter(|(from, to)| !is_whole(place(*from), place(*to)));
        self.cut(cuts.collect());
    }

    fn voter(&self, host: usize) -> Result<&Voter, (&'static str, String)> {
        self.hosts[host].voter.as_ref().ok_or_else(|| ("a host runs", host.to_string()))
    }

    fn stop_now(&mut self, host: usize) {
        self.stopped(host);
        self.hosts[host].planned = None;
    }

    /// The arbiter changes, and the next one stays, whichever hosts ask for votes meanwhile.
    fn changes_and_stays(&mut self, former: usize) -> Check {
        self.run_for(TIMEOUT + TIMEOUT / 20)?;
        let has_ended = !self.is_arbiter(former);
        ensure(has_ended, "a leader without a majority ends within T", || former.to_string())?;
        let next = self.arbiter_within(CHANGE_MAX)?;
        let term = self.voter(next)?.term();
        self.run_for(20 * TIMEOUT)?;
        let stays = self.is_arbiter(next) && self.voter(next)?.term() == term;
        ensure(stays, "a leader with a majority stays", || format!("{next}, term {term}"))
    }
}

/// A leader reaches one voter alone, which is the bridge between it and the others.
pub(crate) fn bridge(seed: u64) -> Result<(), ProtocolFailure> {
    run(seed, (5, 5), |world| {
        let arbiter = world.arbiter_within(ELECTION_MAX)?;
        let order = world.in_order(arbiter);
        world.leave(&order, |one, _| one > 0);
        world.leave(&order, |one, other| one > 0 || other == 1);
        world.changes_and_stays(arbiter)
    })
}

/// The voters stand in a line, with the leader at its end.
pub(crate) fn chain(seed: u64) -> Result<(), ProtocolFailure> {
    run(seed, (5, 5), |world| {
        let arbiter = world.arbiter_within(ELECTION_MAX)?;
        let order = world.in_order(arbiter);
        world.leave(&order, |one, other| other - one == 1);
        world.changes_and_stays(arbiter)
    })
}

/// A voter that was cut off comes back: the leader stays, in its term.
pub(crate) fn cut_off_and_back(seed: u64) -> Result<(), ProtocolFailure> {
    run(seed, (3, 3), |world| {
        let arbiter = world.arbiter_within(ELECTION_MAX)?;
        let term = world.voter(arbiter)?.term();
        let order = world.in_order(arbiter);
        world.leave(&order, |_, other| other == 1);
        world.run_for(10 * TIMEOUT)?;
        let loss =
            world.voter(order[2])?.majority_loss(world.hosts[order[2]].clock.shows(world.now));
        let silent = loss.map(|it| it.silent).unwrap_or_default();
        let expected = [order[0], order[1]].map(|host| world.hosts[host].incarnation);
        ensure(
            silent == expected.into_iter().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>(),
            "the silent voters are named",
            || format!("{silent:?}"),
        )?;
        world.cut(BTreeSet::new());
        world.run_for(5 * TIMEOUT)?;
        let stays = world.is_arbiter(arbiter) && world.voter(arbiter)?.term() == term;
        ensure(stays, "a leader with a majority stays", || format!("term {term}"))
    })
}

/// The voters that have just heard the arbiter start again within T, while it is cut off.
pub(crate) fn restart_within_timeout(seed: u64) -> Result<(), ProtocolFailure> {
    run(seed, (3, 3), |world| {
        let arbiter = world.arbiter_within(ELECTION_MAX)?;
        world.run_for(TIMEOUT)?;
        let order = world.in_order(arbiter);
        world.leave(&order, |one, _| one > 0);
        for host in [order[1], order[2]] {
            world.stop_now(host);
            world.start(host);
        }
        world.run_for(TIMEOUT + TIMEOUT / 20)?;
        let next = world.arbiter_within(CHANGE_MAX)?;
        // The checkers have seen that no two arbiters' views overlapped.
        ensure(next != arbiter, "another one leads", || format!("{next}"))
    })
}

/// A change of voters reaches some of the hosts, and then the arbiter's host stops.
pub(crate) fn half_told_change(seed: u64) -> Result<(), ProtocolFailure> {
    // Two bits of the seed's number say when the arbiter stops, and four say which hosts are told.
    let told = |place: usize| seed >> place & 1 == 1;
    run(seed, (5, 3), |world| {
        let arbiter = world.arbiter_within(ELECTION_MAX)?;
        world.teach(arbiter)?;
        world.run_for(TIMEOUT)?;
        let order = world.in_order(arbiter);
        let learners: Vec<usize> = (3..5).collect();
        world.leave(&order, |one, other| one > 0 || told(other));
        let voters = [arbiter, learners[0], learners[1]];
        let wanted = voters.map(|host| world.hosts[host].incarnation).into_iter().collect();
        world.propose_at(arbiter)?;
        world.change_voters(arbiter, &wanted)?;
        world.propose_at(arbiter)?;
        world.run_for(Duration::from_millis([1, 4, 8, 300][(seed >> 5 & 3) as usize]))?;
        world.stop_now(arbiter);
        world.run_for(TIMEOUT)?;
        world.cut(BTreeSet::new());
        world.start(arbiter);
        world.arbiter_within(CHANGE_MAX)?;
        // That one may end a change in which it loses its vote.
        world.run_for(TIMEOUT)?;
        let next = world.arbiter_within(CHANGE_MAX)?;
        world.propose_at(next)?;
        world.run_for(TIMEOUT)?;
        let voter = world.voter(next)?;
        ensure(voter.commit() == voter.log().last().index, "the next arbiter decides", || {
            format!("{} of {:?}", voter.commit(), voter.log().last())
        })
    })
}

/// The log is shortened up to an entry in front of a change of voters that is not committed.
pub(crate) fn snapshot_over_uncommitted_change(seed: u64) -> Result<(), ProtocolFailure> {
    run(seed, (5, 3), |world| {
        let arbiter = world.arbiter_within(ELECTION_MAX)?;
        world.teach(arbiter)?;
        (0..5).try_for_each(|_| world.propose_at(arbiter))?;
        world.run_for(TIMEOUT)?;
        let others: Vec<usize> = (0..3).filter(|host| *host != arbiter).collect();
        // The change reaches one of the voters, none of the next ones.
        let order = [arbiter, others[0], others[1], 3, 4];
        world.leave(&order, |_, other| other == 1);
        let wanted =
            [arbiter, 3, 4].map(|host| world.hosts[host].incarnation).into_iter().collect();
        world.change_voters(arbiter, &wanted)?;
        world.run_for(TIMEOUT / 10)?;
        let is_changing = world.voter(others[0])?.log().voters().is_changing();
        ensure(is_changing, "a voter has the change", || others[0].to_string())?;
        [arbiter, others[0]].into_iter().try_for_each(|host| world.compact(host))?;
        let before = world.voter(arbiter)?.commit();
        world.propose_at(arbiter)?;
        world.run_for(TIMEOUT / 10)?;
        let commit = world.voter(arbiter)?.commit();
        ensure(commit == before, "the newest voters count", || format!("{before}, {commit}"))?;
        // A voter that lacks all of that gets the snapshot, and the change behind it.
        world.stop_now(others[0]);
        world.leave(&order, |one, _| one != 1);
        world.start(others[0]);
        let next = world.arbiter_within(CHANGE_MAX)?;
        world.run_for(2 * TIMEOUT)?;
        world.cut(BTreeSet::new());
        world.run_for(2 * TIMEOUT)?;
        let next = world.arbiter().unwrap_or(next);
        world.propose_at(next)?;
        world.run_for(TIMEOUT)?;
        let voters: BTreeSet<_> = world.voter(next)?.log().voters().iter().collect();
        ensure(voters == wanted, "the change ends", || format!("{voters:?}"))
    })
}
