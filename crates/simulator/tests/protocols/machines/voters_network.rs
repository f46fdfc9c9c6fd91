//! The links between simulated voters: which are cut, since when, and which voters reach each other.

use std::collections::BTreeSet;
use std::time::Duration;

use super::draw::Draw;

/// The cuts between hosts. Each cut is one way.
#[derive(Debug)]
pub(super) struct Network {
    hosts: usize,
    cuts: BTreeSet<(usize, usize)>,
    /// When a link, or a host as the link to itself, last changed.
    changed: Vec<Vec<Duration>>,
    /// The hosts that do not run, or stand still.
    down: BTreeSet<usize>,
}

impl Network {
    pub(super) fn new(hosts: usize) -> Self {
        let changed = vec![vec![Duration::ZERO; hosts]; hosts];
        Self { hosts, cuts: BTreeSet::new(), changed, down: BTreeSet::new() }
    }

    pub(super) fn passes(&self, from: usize, to: usize) -> bool {
        !self.cuts.contains(&(from, to))
    }

    /// Sets the links that are cut, and leaves all others whole.
    pub(super) fn set(&mut self, cuts: BTreeSet<(usize, usize)>, now: Duration) {
        for &(from, to) in self.cuts.symmetric_difference(&cuts) {
            self.changed[from.min(to)][from.max(to)] = now;
        }
        self.cuts = cuts;
    }

    /// A host runs, or does not.
    pub(super) fn set_up(&mut self, host: usize, is_up: bool, now: Duration) {
        let has_changed = if is_up { self.down.remove(&host) } else { self.down.insert(host) };
        if has_changed {
            self.changed[host][host] = now;
        }
    }

    pub(super) fn is_up(&self, host: usize) -> bool {
        !self.down.contains(&host)
    }

    /// Since when two hosts have reached each other. `None` if they do not.
    pub(super) fn together_since(&self, one: usize, other: usize) -> Option<Duration> {
        let are_up = self.is_up(one) && self.is_up(other);
        let is_whole = self.passes(one, other) && self.passes(other, one);
        let changes = [(one, one), (other, other), (one.min(other), one.max(other))];
        let since = changes.map(|(from, to)| self.changed[from][to]).into_iter().max();
        since.filter(|_| are_up && is_whole)
    }

    /// Whether all of some hosts run and reach each other.
    pub(super) fn are_together(&self, hosts: &[usize]) -> bool {
        let links = |one: &usize| hosts.iter().all(|other| self.passes(*one, *other));
        hosts.iter().all(|host| self.is_up(*host) && links(host))
    }

    /// Draws a kind of cut.
    pub(super) fn draw(&self, draw: &mut Draw) -> BTreeSet<(usize, usize)> {
        let hosts = self.hosts;
        let any = draw.below(hosts as u64) as usize;
        let half = draw.bits();
        let kind = draw.below(7);
        let mut order: Vec<usize> = (0..hosts).collect();
        order.sort_by_key(|_| draw.bits());
        let place = |host: usize| order.iter().position(|it| *it == host).unwrap_or(0);
        let is_cut = |from: usize, to: usize| match kind {
            0 => [from, to].contains(&any),
            1 => from == any,
            2 => to == any,
            3 => (half >> from) & 1 != (half >> to) & 1,
            // A bridge: two halves that only one host reaches.
            4 => ![from, to].contains(&any) && (half >> from) & 1 != (half >> to) & 1,
            // A chain.
            5 => place(from).abs_diff(place(to)) > 1,
            _ => (half >> (from * hosts + to)) & 3 == 0,
        };
        pairs(hosts).filter(|(from, to)| is_cut(*from, *to)).collect()
    }
}

/// All directions between hosts.
pub(super) fn pairs(hosts: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..hosts)
        .flat_map(move |from| (0..hosts).filter(move |to| *to != from).map(move |to| (from, to)))
}
