//! A drawn machine of several networks, the faults of its steps and gateways, and every simple path through it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use landeck_machine::routes::{GATEWAYS_MAX, NS_PER_KIB};
use landeck_wire::HostNumber;
use landeck_wire::word::{HostPlace, NetworkPlace, PhysicalLink};

use super::draw::Draw;

/// The network of a host that no description places: all hosts are in it.
const ANY: u16 = 255;
/// The most gateways of a machine whose paths are many.
const GATEWAYS_DRAWN_MAX: usize = 6;
/// The time of a gateway in the cost of a path.
const GATEWAY_NS: u64 = 100_000;

/// The hosts of a drawn machine, by their numbers.
#[derive(Debug)]
pub(super) struct DrawnMachine {
    pub(super) places: Vec<HostPlace>,
    /// Whether each host has a network in common with the next one alone.
    pub(super) is_line: bool,
    /// The time of 1 MiB from one host to another one in a common network.
    steps: Vec<Vec<Option<u64>>>,
}

impl DrawnMachine {
    /// Draws hosts that share a few networks, or stand in a line of many.
    pub(super) fn new(draw: &mut Draw) -> Self {
        let is_line = draw.permille(100);
        let hosts = if is_line { 9 + draw.below(4) } else { 3 + draw.below(10) } as u16;
        let networks = 1 + draw.below(5) as u16;
        let mut places: Vec<HostPlace> = Vec::new();
        for host in 0..hosts {
            let gateways = places.iter().filter(|place| place.is_gateway).count();
            let is_gateway = is_line || (gateways < GATEWAYS_DRAWN_MAX && draw.permille(550));
            let mut own = BTreeSet::new();
            match is_line {
                true => own.extend([host, host + 1]),
                false => {
                    let most = if is_gateway || draw.permille(150) { 3 } else { 1 };
                    own.extend((0..most).map(|_| draw.below(networks.into()) as u16));
                }
            }
            if draw.permille(10) {
                own.clear();
            }
            let networks = own.into_iter().map(|network| attachment(host, network, draw)).collect();
            places.push(HostPlace { site: String::new(), is_gateway, networks });
        }
        let time = |a: &HostPlace, b: &HostPlace| step_ns(a, b).map(|ns| u64::from(ns) * 1_024);
        let steps = places.iter().map(|a| places.iter().map(|b| time(a, b)).collect()).collect();
        Self { places, is_line, steps }
    }

    pub(super) fn hosts(&self) -> impl Iterator<Item = HostNumber> + use<> {
        (0..self.places.len() as u16).map(HostNumber)
    }

    pub(super) fn place(&self, host: HostNumber) -> &HostPlace {
        &self.places[usize::from(host.0)]
    }

    /// The networks in which two hosts reach each other while nothing is broken.
    pub(super) fn common(&self, a: HostNumber, b: HostNumber) -> Vec<u16> {
        let of = |host| self.place(host).networks.iter().map(|one| one.network);
        if of(a).next().is_none() || of(b).next().is_none() {
            return vec![ANY];
        }
        of(a).filter(|network| of(b).any(|other| other == *network)).collect()
    }

    /// The time of 1 MiB from one host to the next one, if they have a network in common.
    pub(super) fn step_ns(&self, (a, b): (HostNumber, HostNumber)) -> Option<u64> {
        self.steps[usize::from(a.0)][usize::from(b.0)]
    }

    /// The cost of a path, if each host has a network in common with the next one.
    pub(super) fn cost(&self, path: &[HostNumber]) -> Option<u64> {
        let steps: Option<u64> = path.windows(2).map(|pair| self.step_ns((pair[0], pair[1]))).sum();
        steps.map(|steps| steps + GATEWAY_NS * (path.len() as u64 - 2))
    }

    /// Shows every path over at most 8 gateways and over allowed steps that has no loop, with its cost.
    pub(super) fn each_path(
        &self,
        (from, to): (HostNumber, HostNumber),
        allowed: &dyn Fn((HostNumber, HostNumber)) -> bool,
        show: &mut dyn FnMut(&[HostNumber], u64),
    ) {
        let mut path = vec![from];
        self.extend((&mut path, 0), to, allowed, show);
    }

    fn extend(
        &self,
        (path, cost): (&mut Vec<HostNumber>, u64),
        to: HostNumber,
        allowed: &dyn Fn((HostNumber, HostNumber)) -> bool,
        show: &mut dyn FnMut(&[HostNumber], u64),
    ) {
        let at = path[path.len() - 1];
        for next in self.hosts() {
            let is_end = next == to;
            let may_pass = self.place(next).is_gateway && path.len() <= GATEWAYS_MAX;
            if path.contains(&next) || !(is_end || may_pass) || !allowed((at, next)) {
                continue;
            }
            let Some(step) = self.step_ns((at, next)) else { continue };
            path.push(next);
            match is_end {
                true => show(path, cost + step),
                false => self.extend((&mut *path, cost + step + GATEWAY_NS), to, allowed, show),
            }
            path.pop();
        }
    }

    /// Whether there is a path over at most 8 gateways and over allowed steps.
    pub(super) fn has_path(
        &self,
        (from, to): (HostNumber, HostNumber),
        allowed: impl Fn((HostNumber, HostNumber)) -> bool,
    ) -> bool {
        let mut reached = BTreeSet::from([from]);
        for _ in 0..=GATEWAYS_MAX {
            let from_any = |next: &HostNumber| {
                reached.iter().any(|at| {
                    at != next && self.step_ns((*at, *next)).is_some() && allowed((*at, *next))
                })
            };
            if from_any(&to) {
                return true;
            }
            let gateways = self.hosts().filter(|host| self.place(*host).is_gateway);
            let more: Vec<HostNumber> = gateways.filter(from_any).collect();
            reached.extend(more);
        }
        false
    }
}

/// The address of a host in a network.
pub(super) fn address(host: HostNumber, network: u16) -> IpAddr {
    [10, network as u8, 0, host.0 as u8].into()
}

/// The address of a host that no description places, or at which another one that none places reaches it.
pub(super) fn any_address(host: HostNumber) -> IpAddr {
    address(host, ANY)
}

/// The network of an address.
pub(super) fn network_of(address: IpAddr) -> u16 {
    match address {
        IpAddr::V4(address) => address.octets()[1].into(),
        IpAddr::V6(_) => ANY,
    }
}

fn attachment(host: u16, network: u16, draw: &mut Draw) -> NetworkPlace {
    let speeds = [NS_PER_KIB / 10, NS_PER_KIB, NS_PER_KIB, 10 * NS_PER_KIB];
    let has_switch = draw.permille(500);
    let switch = |number: u64| has_switch.then_some((4 * u64::from(network) + number) as u16);
    let mut links =
        vec![PhysicalLink { switch: switch(draw.below(2)), ns_per_kib: draw.pick(&speeds) }];
    if has_switch {
        links.push(PhysicalLink { switch: switch(3), ns_per_kib: draw.pick(&speeds) });
    }
    NetworkPlace { network, addresses: vec![address(HostNumber(host), network)], links }
}

/// The time of 1 KiB between two hosts: in their fastest network, on the slowest link below the nearest common switch.
fn step_ns(a: &HostPlace, b: &HostPlace) -> Option<u32> {
    if a.networks.is_empty() || b.networks.is_empty() {
        return Some(NS_PER_KIB);
    }
    let slowest = |links: &[PhysicalLink]| links.iter().map(|link| link.ns_per_kib).max();
    let mut best = None;
    for (one, other) in a.networks.iter().flat_map(|one| b.networks.iter().map(move |b| (one, b))) {
        if one.network != other.network {
            continue;
        }
        let all = (one.links.len(), other.links.len());
        let pairs = (0..all.0).flat_map(|up| (0..all.1).map(move |down| (up, down)));
        let meet = |(up, down): &(usize, usize)| {
            let switch = one.links[*up].switch;
            switch.is_some() && switch == other.links[*down].switch
        };
        let below = pairs.filter(meet).min().map_or(all, |(up, down)| (up + 1, down + 1));
        let time = slowest(&one.links[..below.0]).max(slowest(&other.links[..below.1]));
        best = [best, time].into_iter().flatten().min();
    }
    best
}

/// The answer to an attempt to connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It comes.
    Well,
    /// A refusal comes at once.
    Refused,
    /// Nothing comes.
    Silence,
}

/// A step from one host to another one in a network.
pub(super) type Step = (HostNumber, HostNumber, u16);

/// The steps that are cut, each in its direction, and the gateways that are stopped or full.
#[derive(Debug, Default)]
pub(super) struct Faults {
    pub(super) cuts: BTreeMap<Step, Answer>,
    pub(super) stopped: BTreeMap<HostNumber, Answer>,
    pub(super) full: BTreeSet<HostNumber>,
    /// Since when steps are well that were cut.
    healed: BTreeMap<Step, Duration>,
    /// Since when gateways are well that were not.
    returned: BTreeMap<HostNumber, Duration>,
}

impl Faults {
    pub(super) fn heal(&mut self, step: Step, now: Duration) {
        if self.cuts.remove(&step).is_some() {
            self.healed.insert(step, now);
        }
    }

    pub(super) fn restore(&mut self, gateway: HostNumber, now: Duration) {
        let was_full = self.full.remove(&gateway);
        if self.stopped.remove(&gateway).is_some() || was_full {
            self.returned.insert(gateway, now);
        }
    }

    /// The answer at one host to a connection from another one. It needs both directions.
    pub(super) fn answer(&self, (from, to, network): Step) -> Answer {
        let (there, back) =
            (self.cuts.get(&(from, to, network)), self.cuts.get(&(to, from, network)));
        // A refusal that does not come back is silence.
        let stopped = self.stopped.get(&to);
        match (there, back, stopped) {
            (Some(answer), None, _) | (None, None, Some(answer)) => *answer,
            (None, None, None) => Answer::Well,
            _ => Answer::Silence,
        }
    }

    /// Whether two hosts have reached each other since this time in this network.
    fn is_well_since(&self, (from, to, network): Step, since: Duration) -> bool {
        [(from, to, network), (to, from, network)].iter().all(|step| {
            !self.cuts.contains_key(step) && self.healed.get(step).is_none_or(|at| *at <= since)
        })
    }

    /// Whether a path leads from one host to another whose steps and gateways have been well since this time.
    pub(super) fn has_path_since(
        &self,
        machine: &DrawnMachine,
        ends: (HostNumber, HostNumber),
        since: Duration,
    ) -> bool {
        let is_well = |host: HostNumber| {
            !self.stopped.contains_key(&host)
                && (host == ends.1 || !self.full.contains(&host))
                && (host == ends.1 || self.returned.get(&host).is_none_or(|at| *at <= since))
        };
        machine.has_path(ends, |(from, to)| {
            let mut networks = machine.common(from, to).into_iter();
            is_well(to) && networks.any(|network| self.is_well_since((from, to, network), since))
        })
    }
}
