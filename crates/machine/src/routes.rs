//! The routes between the hosts of a machine.
//!
//! Two hosts reach each other in a network that both are in. A route from one host to another leads over the gateways in
//! between. The host that opens a connection names each of them, so no route has a loop, and no gateway decides anything. A
//! host that finds a step broken takes another route for a while, without asking anybody: where the arbiter is behind that
//! step, nobody could be asked.

use core::net::IpAddr;
use std::collections::BTreeMap;
use std::time::Duration;

use landeck_wire::HostNumber;
use landeck_wire::word::{HostPlace, NetworkPlace, PhysicalLink};

/// The most gateways on a route.
pub const GATEWAYS_MAX: usize = 8;
/// The most routes between two hosts that are tried.
const ROUTES_MAX: usize = 8;
/// The time that 1 KiB takes on a link that nothing is known of: that of 1 Gb/s.
pub const NS_PER_KIB: u32 = 8_192;
/// The cost of a gateway, beside those of its links: the time of so many KiB at 1 Gb/s.
const GATEWAY_NS: u64 = 100_000;
/// The bytes by which routes are compared, in KiB.
const COMPARED_KIB: u64 = 1_024;
/// A step that was found broken counts as that for so long.
const BROKEN_TIME: Duration = Duration::from_secs(10);
/// The cost of a gateway that an earlier route of the list has: more than any route costs otherwise.
const AVOIDED: u64 = 1 << 40;

/// A route from one host to another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route {
    /// The gateways, the nearest first; none if both hosts reach each other.
    pub gateways: Vec<HostNumber>,
    /// The time that 1 MiB takes on all its links, one after the other, in nanoseconds.
    pub mib_ns: u64,
    /// The first step of it, from one host to the next, that was found broken a moment ago; both ends, if it is not known
    /// which step it is.
    pub broken: Option<(HostNumber, HostNumber)>,
}

/// The places of the hosts of a machine, and the steps between them that one host has found broken.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    places: BTreeMap<HostNumber, HostPlace>,
    /// The steps, from one host to the next, and when each was found broken.
    broken: BTreeMap<(HostNumber, HostNumber), Duration>,
    /// The gateways that were found silent, and when.
    silent: BTreeMap<HostNumber, Duration>,
    /// The routes on which nothing came any more, and when that was found: all hosts of each.
    mute: BTreeMap<Vec<HostNumber>, Duration>,
}

/// The best way to a host for so many steps: its cost, and the host before.
type Best = BTreeMap<HostNumber, (u64, HostNumber)>;

impl Routes {
    /// Adds a host, or says anew where it is.
    pub fn set(&mut self, host: HostNumber, place: HostPlace) {
        self.places.insert(host, place);
        self.renew(host);
    }

    /// Forgets which steps from and to a host were broken.
    pub fn renew(&mut self, host: HostNumber) {
        self.broken.retain(|(from, to), _| ![from, to].contains(&&host));
        self.mute.retain(|hosts, _| !hosts.contains(&host));
        self.silent.remove(&host);
    }

    /// Removes a host.
    pub fn remove(&mut self, host: HostNumber) {
        self.places.remove(&host);
        self.renew(host);
    }

    /// The place of a host; an empty one if it is not known.
    #[must_use]
    pub fn place(&self, host: HostNumber) -> Option<&HostPlace> {
        self.places.get(&host)
    }

    /// The gateways.
    pub fn gateways(&self) -> impl Iterator<Item = HostNumber> {
        self.places.iter().filter(|(_, place)| place.is_gateway).map(|(host, _)| *host)
    }

    /// A connection from one host could not be opened to the next one.
    pub fn found_broken(&mut self, from: HostNumber, to: HostNumber, now: Duration) {
        self.broken.insert((from, to), now);
    }

    /// A gateway passes nothing on at the moment.
    pub fn found_silent(&mut self, gateway: HostNumber, now: Duration) {
        self.silent.insert(gateway, now);
    }

    /// Nothing comes any more on a connection over these hosts, and it is not known which of them is the reason.
    pub fn found_mute(&mut self, hosts: Vec<HostNumber>, now: Duration) {
        self.mute.insert(hosts, now);
    }

    /// A connection over these hosts was opened: each reaches the next one.
    pub fn found_well(&mut self, hosts: &[HostNumber]) {
        for step in hosts.windows(2) {
            self.broken.remove(&(step[0], step[1]));
        }
    }

    /// The routes between two hosts, the fastest first, whether or not a step is broken. They share as few gateways as they can.
    /// Where each has had a broken step, one more follows whose steps have not been broken for the longest time. So there is a
    /// route without a broken step if there can be one, and all are tried in time, however many steps are broken. None if no
    /// network and no gateway joins the hosts.
    #[must_use]
    pub fn between(&self, from: HostNumber, to: HostNumber, now: Duration) -> Vec<Route> {
        let mut found = self.apart(from, to, now);
        found.sort_by_key(|route| route.mib_ns);
        if found.iter().all(|route| self.was_broken(from, route, to)) {
            // It is the last one, so that a caller that tries one route after the other skips none when this one changes.
            let other = self.longest_unbroken((from, to));
            let new = other.filter(|other| found.iter().all(|one| one.gateways != *other));
            found.extend(new.map(|gateways| self.route(from, gateways, to, now)));
        }
        found
    }

    /// Routes each of which shares as few gateways with those before as it can.
    fn apart(&self, from: HostNumber, to: HostNumber, now: Duration) -> Vec<Route> {
        let mut found: Vec<Route> = Vec::new();
        while found.len() < ROUTES_MAX {
            let uses = |host: HostNumber| {
                let before = found.iter().filter(|route| route.gateways.contains(&host)).count();
                // The hosts themselves are a step, which the next route avoids.
                let is_direct = host == to && found.iter().any(|route| route.gateways.is_empty());
                before as u64 + u64::from(is_direct)
            };
            let next = self.best((from, to), |(last, host)| match (host == to, last == from) {
                (true, false) => Some(0),
                _ => Some(uses(host)),
            });
            match next.filter(|next| found.iter().all(|one| one.gateways != *next)) {
                Some(gateways) => found.push(self.route(from, gateways, to, now)),
                None => break,
            }
        }
        found
    }

    /// The gateways of the route whose steps have not been found broken for the longest time.
    fn longest_unbroken(&self, ends: (HostNumber, HostNumber)) -> Option<Vec<HostNumber>> {
        let mut times: Vec<Duration> = self.broken.values().copied().collect();
        times.sort_unstable();
        let since = |time: Option<&Duration>| {
            self.best(ends, |step| (self.broken.get(&step) <= time).then_some(0))
        };
        let at = times.partition_point(|time| since(Some(time)).is_none());
        since(None).or_else(|| since(times.get(at)))
    }

    /// The gateways of the best route, where `uses` says how often a step from one host to another is to be avoided; `None`
    /// if always.
    fn best(
        &self,
        (from, to): (HostNumber, HostNumber),
        uses: impl Fn((HostNumber, HostNumber)) -> Option<u64>,
    ) -> Option<Vec<HostNumber>> {
        let steps: Vec<HostNumber> =
            self.gateways().filter(|host| *host != to).chain([to]).collect();
        let mut layers: Vec<Best> = vec![BTreeMap::from([(from, (0, from))])];
        let mut cheapest = BTreeMap::from([(from, 0)]);
        while layers.len() <= GATEWAYS_MAX + 1 {
            let mut next = Best::new();
            for (&at, &(cost, _)) in layers.last()? {
                for &step in steps.iter().filter(|step| at != to && **step != at) {
                    let Some(ns_per_kib) = self.step(at, step) else { continue };
                    let Some(avoided) = uses((at, step)) else { continue };
                    let gateway = if step == to { 0 } else { GATEWAY_NS };
                    let link = u64::from(ns_per_kib) * COMPARED_KIB;
                    let cost = cost + link + gateway + AVOIDED * avoided;
                    // A way with more steps is of use where it costs less. So none comes twice to a host.
                    if cheapest.get(&step).is_none_or(|least| cost < *least) {
                        cheapest.insert(step, cost);
                        next.insert(step, (cost, at));
                    }
                }
            }
            if next.is_empty() {
                break;
            }
            layers.push(next);
        }
        // A way with fewer steps wins among equals.
        let ends = layers.iter().enumerate().skip(1);
        let best = ends.filter_map(|(steps, layer)| Some((layer.get(&to)?.0, steps))).min();
        let (_, steps) = best?;
        let mut gateways = Vec::new();
        let mut at = to;
        for layer in layers[1..=steps].iter().rev() {
            at = layer.get(&at)?.1;
            gateways.push(at);
        }
        gateways.pop(); // the host itself
        gateways.reverse();
        Some(gateways)
    }

    /// The route over these gateways.
    fn route(
        &self,
        from: HostNumber,
        gateways: Vec<HostNumber>,
        to: HostNumber,
        now: Duration,
    ) -> Route {
        let last = to;
        let hosts = [&[from][..], &gateways, &[to]].concat();
        let steps = || hosts.iter().zip(&hosts[1..]);
        let link = |(a, b): (&HostNumber, &HostNumber)| {
            u64::from(self.step(*a, *b).unwrap_or(NS_PER_KIB)) * COMPARED_KIB
        };
        let mib_ns = steps().map(link).sum::<u64>() + GATEWAY_NS * gateways.len() as u64;
        let is_broken = |step: &(HostNumber, HostNumber)| {
            // A silent host may be silent on another way alone.
            self.is_broken(*step, now) || (step.1 != last && self.is_silent(step.1, now))
        };
        let broken = steps().map(|(a, b)| (*a, *b)).find(is_broken);
        let is_mute = is_recent(self.mute.get(&hosts), now);
        let broken = broken.or(is_mute.then_some((from, to)));
        Route { gateways, mib_ns, broken }
    }

    /// Whether a step of a route was found broken, and not found well since then.
    fn was_broken(&self, from: HostNumber, route: &Route, to: HostNumber) -> bool {
        let hosts = [&[from][..], &route.gateways, &[to]].concat();
        hosts.windows(2).any(|step| self.broken.contains_key(&(step[0], step[1])))
    }

    fn is_broken(&self, step: (HostNumber, HostNumber), now: Duration) -> bool {
        is_recent(self.broken.get(&step), now)
    }

    fn is_silent(&self, gateway: HostNumber, now: Duration) -> bool {
        is_recent(self.silent.get(&gateway), now)
    }

    /// The time that 1 KiB takes between two hosts that reach each other, in nanoseconds.
    fn step(&self, from: HostNumber, to: HostNumber) -> Option<u32> {
        let (from, to) = (self.places.get(&from)?, self.places.get(&to)?);
        if from.networks.is_empty() || to.networks.is_empty() {
            return Some(NS_PER_KIB);
        }
        common(from, to).map(|(one, other)| slowest(one, other)).min()
    }

    /// The addresses of a host at which another one reaches it, those in the fastest common network first. `None` if
    /// nothing is known of the networks of one of them: then it may have any.
    #[must_use]
    pub fn addresses(&self, from: HostNumber, to: HostNumber) -> Option<Vec<IpAddr>> {
        let (from, to) = (self.places.get(&from)?, self.places.get(&to)?);
        if from.networks.is_empty() || to.networks.is_empty() {
            return None;
        }
        let mut all: Vec<_> =
            common(from, to).map(|(one, other)| (slowest(one, other), &other.addresses)).collect();
        all.sort_by_key(|(ns_per_kib, _)| *ns_per_kib);
        Some(all.into_iter().flat_map(|(_, addresses)| addresses).copied().collect())
    }

    /// The hosts of the machine by their distance from one: first those that it reaches itself, then those behind a gateway
    /// among them, and so on. Hosts that no route leads to are in none.
    #[must_use]
    pub fn waves(&self, from: HostNumber) -> Vec<Vec<HostNumber>> {
        let mut waves: Vec<Vec<HostNumber>> = Vec::new();
        for &host in self.places.keys().filter(|host| **host != from) {
            let routes = self.between(from, host, Duration::ZERO);
            let Some(steps) = routes.iter().map(|route| route.gateways.len()).min() else {
                continue;
            };
            waves.resize(waves.len().max(steps + 1), Vec::new());
            waves[steps].push(host);
        }
        waves
    }
}

/// Whether a fault that was found at this time still counts.
fn is_recent(at: Option<&Duration>, now: Duration) -> bool {
    at.is_some_and(|at| now < *at + BROKEN_TIME)
}

/// The attachments of two hosts to each network that both are in.
fn common<'a>(
    from: &'a HostPlace,
    to: &'a HostPlace,
) -> impl Iterator<Item = (&'a NetworkPlace, &'a NetworkPlace)> {
    from.networks.iter().flat_map(|one| {
        to.networks
            .iter()
            .filter(|other| other.network == one.network)
            .map(move |other| (one, other))
    })
}

/// The time that 1 KiB takes on the slowest link between two hosts in a network: on the way up to the first switch that both
/// ways meet at, and down again.
fn slowest(one: &NetworkPlace, other: &NetworkPlace) -> u32 {
    let meets = |link: &&PhysicalLink| {
        link.switch.is_some() && other.links.iter().any(|down| down.switch == link.switch)
    };
    let meeting = one.links.iter().find(meets).and_then(|link| link.switch);
    let up_to_meeting = |links: &[PhysicalLink]| {
        let at = links.iter().position(|link| meeting.is_some() && link.switch == meeting);
        let links = &links[..at.map_or(links.len(), |at| at + 1)];
        links.iter().map(|link| link.ns_per_kib).max().unwrap_or(NS_PER_KIB)
    };
    up_to_meeting(&one.links).max(up_to_meeting(&other.links))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAST: u32 = 819;

    fn at(networks: &[(u16, u32)], is_gateway: bool) -> HostPlace {
        let attachment = |&(network, ns_per_kib): &(u16, u32)| NetworkPlace {
            network,
            addresses: vec![[10, 77, network as u8, 1].into()],
            links: vec![PhysicalLink { switch: None, ns_per_kib }],
        };
        let networks = networks.iter().map(attachment).collect();
        HostPlace { site: String::new(), is_gateway, networks }
    }

    /// Two sites of two hosts, the inner ones of which meet.
    fn lab() -> Routes {
        let mut routes = Routes::default();
        let networks: [(&[(u16, u32)], bool); 4] = [
            (&[(1, NS_PER_KIB)], false),
            (&[(1, NS_PER_KIB), (0, NS_PER_KIB)], true),
            (&[(0, NS_PER_KIB), (2, NS_PER_KIB)], true),
            (&[(2, NS_PER_KIB)], false),
        ];
        for (number, (networks, is_gateway)) in networks.into_iter().enumerate() {
            routes.set(HostNumber(number as u16), at(networks, is_gateway));
        }
        routes
    }

    fn gateways(routes: &Routes, from: u16, to: u16) -> Vec<Vec<u16>> {
        let all = routes.between(HostNumber(from), HostNumber(to), Duration::from_secs(5));
        all.into_iter().map(|route| route.gateways.iter().map(|host| host.0).collect()).collect()
    }

    #[test]
    fn a_route_leads_over_the_gateways_in_between() {
        let mut routes = lab();
        assert_eq!(gateways(&routes, 0, 3), [[1, 2]]);
        assert_eq!(gateways(&routes, 3, 0), [[2, 1]]);
        assert_eq!(gateways(&routes, 0, 2), [[1]]);
        assert_eq!(gateways(&routes, 0, 1), [[0u16; 0]]);
        assert_eq!(
            routes.waves(HostNumber(0)),
            [1, 2, 3].map(|host| vec![HostNumber(host)]),
            "the distances"
        );
        routes.set(HostNumber(2), at(&[(0, FAST), (2, FAST)], false));
        assert_eq!(gateways(&routes, 0, 3), [[0u16; 0]; 0], "nobody passes on");
    }

    #[test]
    fn a_host_that_nothing_is_known_of_is_reached_by_all() {
        let mut routes = lab();
        routes.set(HostNumber(4), HostPlace::default());
        assert_eq!(gateways(&routes, 0, 4)[0], [0u16; 0]);
        assert_eq!(gateways(&routes, 4, 3)[0], [0u16; 0]);
        assert_eq!(routes.addresses(HostNumber(4), HostNumber(3)), None);
        assert_eq!(gateways(&routes, 0, 9), [[0u16; 0]; 0], "there is no such host");
    }

    #[test]
    fn the_faster_way_wins_even_over_a_gateway() {
        let mut routes = Routes::default();
        let slow = 10 * NS_PER_KIB;
        routes.set(HostNumber(0), at(&[(0, slow), (1, FAST)], false));
        routes.set(HostNumber(1), at(&[(1, FAST), (2, FAST)], true));
        routes.set(HostNumber(2), at(&[(0, slow), (2, FAST)], false));
        assert_eq!(gateways(&routes, 0, 2), [vec![1], vec![]]);
        routes.set(HostNumber(2), at(&[(0, slow), (2, 20 * slow)], false));
        assert_eq!(gateways(&routes, 0, 2), [vec![], vec![1]]);
    }

    #[test]
    fn a_broken_step_is_known_for_a_while() {
        let mut routes = lab();
        let two = at(&[(1, NS_PER_KIB), (0, NS_PER_KIB)], true);
        routes.set(HostNumber(5), two);
        assert_eq!(gateways(&routes, 0, 3), [[1, 2], [5, 2]], "equals in the order of numbers");
        routes.found_broken(HostNumber(1), HostNumber(2), Duration::from_secs(1));
        let broken = |routes: &Routes, now| {
            let all = routes.between(HostNumber(0), HostNumber(3), Duration::from_secs(now));
            all.iter().map(|route| route.broken.is_some()).collect::<Vec<_>>()
        };
        assert_eq!(broken(&routes, 10), [true, false]);
        assert_eq!(broken(&routes, 11), [false, false], "it may be well again");
        routes.found_well(&[0, 1, 2, 3].map(HostNumber));
        assert_eq!(broken(&routes, 10), [false, false]);
        routes.remove(HostNumber(1));
        assert_eq!(gateways(&routes, 0, 3), [[5, 2]]);
    }

    #[test]
    fn where_each_route_was_broken_another_one_follows() {
        let mut routes = Routes::default();
        let networks: [&[(u16, u32)]; 6] = [
            &[(0, FAST)],
            &[(0, FAST), (1, FAST)],
            &[(0, FAST), (1, FAST)],
            &[(1, FAST), (2, FAST)],
            &[(1, FAST), (2, FAST)],
            &[(2, FAST)],
        ];
        for (host, networks) in (0..).zip(networks) {
            routes.set(HostNumber(host), at(networks, true));
        }
        let mut found = vec![vec![1, 3], vec![2, 4]];
        assert_eq!(gateways(&routes, 0, 5), found);
        let mut broken = |from, to, second| {
            let at = Duration::from_secs(second);
            routes.found_broken(HostNumber(from), HostNumber(to), at);
            gateways(&routes, 0, 5)
        };
        assert_eq!(broken(1, 3, 1), found, "one is left");
        found.push(vec![2, 3]);
        assert_eq!(broken(2, 4, 2), found);
        found[2] = vec![1, 4];
        assert_eq!(broken(2, 3, 3), found);
        assert_eq!(broken(1, 4, 4), found[..2], "the first two were broken before the others");
    }

    #[test]
    fn further_routes_avoid_the_gateways_of_those_before() {
        let mut routes = Routes::default();
        routes.set(HostNumber(0), at(&[(0, FAST)], false));
        routes.set(HostNumber(1), at(&[(0, FAST), (1, FAST)], true));
        (2..8).for_each(|host| routes.set(HostNumber(host), at(&[(1, FAST), (2, FAST)], true)));
        routes.set(HostNumber(8), at(&[(0, 100 * FAST), (2, 100 * FAST)], true));
        routes.set(HostNumber(9), at(&[(2, FAST)], false));
        let found = gateways(&routes, 0, 9);
        assert_eq!(found[0], [1, 2]);
        assert!(found.contains(&vec![8]), "the slow one is not forgotten: {found:?}");
    }

    #[test]
    fn no_route_is_longer_than_eight_gateways() {
        let mut routes = Routes::default();
        for host in 0..12 {
            routes.set(HostNumber(host), at(&[(host, FAST), (host + 1, FAST)], true));
        }
        assert_eq!(gateways(&routes, 0, 9), [[1, 2, 3, 4, 5, 6, 7, 8]]);
        assert_eq!(gateways(&routes, 0, 10), [[0u16; 0]; 0]);
    }

    #[test]
    fn two_hosts_meet_at_the_first_common_switch() {
        let link = |switch, ns_per_kib| PhysicalLink { switch: Some(switch), ns_per_kib };
        let with = |links: &[PhysicalLink]| {
            let networks =
                vec![NetworkPlace { network: 0, addresses: Vec::new(), links: links.to_vec() }];
            HostPlace { site: String::new(), is_gateway: false, networks }
        };
        let mut routes = Routes::default();
        routes.set(HostNumber(0), with(&[link(1, 10), link(0, 500)]));
        routes.set(HostNumber(1), with(&[link(1, 20), link(0, 500)]));
        routes.set(HostNumber(2), with(&[link(2, 30), link(0, 400)]));
        let step = |from, to| routes.step(HostNumber(from), HostNumber(to));
        assert_eq!((step(0, 1), step(0, 2), step(2, 1)), (Some(20), Some(500), Some(500)));
    }
}
