//! Whether each host of a description reaches each other one.

use std::collections::{BTreeMap, BTreeSet};

use super::resolve::Lines;
use super::words::list;
use super::{Description, Errors};

/// The most names that an error repeats.
const NAMED_MAX: usize = 5;

/// The parts of the machine that a host is in: each part is named by one of its networks.
type Parts = BTreeSet<usize>;

/// Tells which hosts do not reach others. Nothing is known if the interfaces of some host are found when it joins.
pub(super) fn check(description: &Description, lines: &Lines, errors: &mut Errors) {
    if description.hosts.iter().any(|host| host.interfaces.is_empty()) {
        return;
    }
    let mut joined = JoinedNetworks::of(description);
    let mut hosts: BTreeMap<Parts, Vec<usize>> = BTreeMap::new();
    for (number, host) in description.hosts.iter().enumerate() {
        let parts = host.interfaces.iter().map(|interface| joined.part(interface.network));
        hosts.entry(parts.collect()).or_default().push(number);
    }
    // Most hosts are taken to be right, and the others are told.
    let most = hosts.iter().max_by_key(|(_, hosts)| (hosts.len(), core::cmp::Reverse(hosts[0])));
    let most = most.map(|(parts, _)| parts);
    for (parts, own) in hosts.iter().filter(|(parts, _)| Some(*parts) != most) {
        let mut apart = hosts.iter().filter(|(others, _)| parts.is_disjoint(others));
        let Some((_, other)) = apart.next() else { continue };
        let is_alone = apart.count() + 2 == hosts.len();
        let joins = |others: &&Parts| !others.is_disjoint(parts) && !others.is_subset(parts);
        let bridge = hosts.keys().find(joins).map(|others| hosts[others][0]);
        let cure = cure(description, bridge);
        let what = describe(description, own, (!is_alone).then_some(other[0]));
        let what = format!("{what}; {cure}");
        errors.add(lines.hosts[own[0]].name, what);
    }
}

/// The remedy: the host that is in networks of both parts passes connections on.
fn cure(description: &Description, bridge: Option<usize>) -> String {
    let Some(host) = bridge.map(|host| &description.hosts[host]) else {
        return "describe a host that is in both, and name it as a `gateway`".to_owned();
    };
    let network = host.interfaces.first().map_or(0, |interface| interface.network);
    let network = &description.networks[network].name;
    format!(
        "write `gateway = \"{}\"` in [network.{network}] to let that host join its networks",
        host.name
    )
}

/// The error that these hosts do not reach another one, or none at all.
fn describe(description: &Description, own: &[usize], other: Option<usize>) -> String {
    let name = |host: usize| description.hosts[host].name.clone();
    let networks: BTreeSet<usize> = own
        .iter()
        .flat_map(|host| &description.hosts[*host].interfaces)
        .map(|it| it.network)
        .collect();
    let networks: Vec<String> = networks
        .iter()
        .take(NAMED_MAX)
        .map(|number| description.networks[*number].name.clone())
        .collect();
    let hosts: Vec<String> = own.iter().take(NAMED_MAX).map(|host| name(*host)).collect();
    let more = if own.len() > NAMED_MAX { " and others" } else { "" };
    let (host, is) = if own.len() == 1 { ("host", "is") } else { ("hosts", "are") };
    let (hosts, in_networks) = (list(&hosts) + more, list(&networks));
    let network = if networks.len() == 1 { "network" } else { "networks" };
    match other {
        None => format!(
            "{host} {hosts} {is} reached from nowhere: no gateway joins {network} {in_networks} to the others"
        ),
        Some(other) => format!(
            "{host} {hosts} and host {} do not reach each other: no gateway leads from {network} {in_networks} to it",
            name(other)
        ),
    }
}

/// The networks as gateways join them.
struct JoinedNetworks {
    /// Another network of the same part, or the network itself.
    next: Vec<usize>,
}

impl JoinedNetworks {
    fn of(description: &Description) -> Self {
        let mut joined = Self { next: (0..description.networks.len()).collect() };
        for gateway in description.networks.iter().flat_map(|network| &network.gateways) {
            let mut own = description.hosts[*gateway].interfaces.iter().map(|it| it.network);
            let Some(first) = own.next() else { continue };
            for other in own {
                let (one, other) = (joined.part(first), joined.part(other));
                joined.next[other] = one;
            }
        }
        joined
    }

    /// The network by which the part is named that a network is in.
    fn part(&mut self, network: usize) -> usize {
        let mut at = network;
        while self.next[at] != at {
            self.next[at] = self.next[self.next[at]];
            at = self.next[at];
        }
        at
    }
}
