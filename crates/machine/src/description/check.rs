//! Compares the parts of a description with each other.

use std::collections::{BTreeMap, BTreeSet};

use super::resolve::Lines;
use super::words::list;
use super::{DescribedHost, Description, Errors, Interface};

pub(super) fn check(description: &Description, lines: &Lines, errors: &mut Errors) {
    let mut checker = Checker { description, lines, errors };
    checker.overlaps();
    checker.empty_networks();
    checker.addresses();
    checker.unclear_addresses();
    checker.ports();
    checker.circles();
    checker.gateways();
}

struct Checker<'a> {
    description: &'a Description,
    lines: &'a Lines,
    errors: &'a mut Errors,
}

impl<'a> Checker<'a> {
    /// No address is in two networks.
    fn overlaps(&mut self) {
        let mut nets = Vec::new();
        for (network, lines) in self.description.networks.iter().zip(&self.lines.networks) {
            let own = network.addresses.iter().zip(&lines.addresses);
            nets.extend(own.map(|(net, line)| (*net, *line, network.name.as_str())));
        }
        nets.sort();
        let mut widest = nets.first().copied();
        for (net, line, name) in nets {
            let Some((wide, wide_line, wide_name)) = widest.filter(|it| it.0.contains(&net)) else {
                widest = Some((net, line, name));
                continue;
            };
            if name != wide_name {
                let ((first, one), (last, other)) = match line < wide_line {
                    true => ((line, (net, name)), (wide_line, (wide, wide_name))),
                    false => ((wide_line, (wide, wide_name)), (line, (net, name))),
                };
                let what = format!(
                    "{} of network {} overlaps with {} of network {} (line {first}): an address lies in one network only",
                    other.0, other.1, one.0, one.1
                );
                self.errors.add(last, what);
            }
        }
    }

    /// A network without addresses has hosts that name it.
    fn empty_networks(&mut self) {
        let named: BTreeSet<usize> = self.interfaces().map(|(_, it, _)| it.network).collect();
        for (number, network) in self.description.networks.iter().enumerate() {
            if network.addresses.is_empty() && !named.contains(&number) {
                let what = format!(
                    "no host can be in network {0}: write its `addresses`, or name it in the interfaces of hosts, as in \
                     eth0 = \"{0}\"",
                    network.name
                );
                self.errors.add(self.lines.networks[number].name, what);
            }
        }
    }

    /// No two interfaces have one address.
    fn addresses(&mut self) {
        let mut owners = BTreeMap::new();
        let all: Vec<_> = self.interfaces().collect();
        for (host, interface, line) in all {
            let Some(address) = interface.address else { continue };
            let Some((other_host, other, first)) = owners.get(&address) else {
                owners.insert(address, (&host.name, &interface.name, line));
                continue;
            };
            let what = format!(
                "address {address} of interface {} of host {} is that of interface {other} of host {other_host} (line \
                 {first}): each has its own",
                interface.name, host.name
            );
            self.errors.add(line, what);
        }
    }

    /// An address that lies in no described network tells one interface at most.
    fn unclear_addresses(&mut self) {
        let description = self.description;
        let is_open = |interface: &&(&DescribedHost, &Interface, usize)| {
            let network = &description.networks[interface.1.network];
            interface.1.address.is_none() && network.addresses.is_empty()
        };
        for (number, host) in description.hosts.iter().enumerate() {
            let all: Vec<_> = self.interfaces_of(number).collect();
            let mut open = all.iter().filter(is_open);
            let Some((_, first, _)) = open.next() else { continue };
            let Some((_, other, line)) = open.find(|it| it.1.network != first.network) else {
                continue;
            };
            let what = format!(
                "interfaces {} and {} of host {} have no `address`, and their networks have no `addresses`, so it is not \
                 known which address is in which network: write one of them",
                first.name, other.name, host.name
            );
            self.errors.add(*line, what);
        }
    }

    /// Each port of a switch has one cable, and there are enough ports.
    fn ports(&mut self) {
        let mut cables = BTreeMap::new();
        let mut plugged = vec![0; self.description.switches.len()];
        let all: Vec<_> = self.interfaces().collect();
        for (host, interface, line) in all {
            let Some(number) = interface.switch else { continue };
            let switch = &self.description.switches[number];
            let (name, most) = (&switch.name, switch.ports.unwrap_or(u32::MAX));
            let owner = format!("interface {} of host {}", interface.name, host.name);
            plugged[number] += 1;
            let earlier = interface.port.and_then(|port| cables.insert((number, port), line));
            let port = interface.port.unwrap_or(1);
            if port > most {
                let what = format!("{owner} is at port {port} of switch {name}, which has {most}");
                self.errors.add(line, what + ": correct the port, or `ports` of the switch");
            } else if let Some(first) = earlier {
                let what =
                    format!("{owner} is at port {port} of switch {name}, and so is line {first}");
                self.errors.add(line, what + ": give each interface a port of its own");
            } else if plugged[number] == most.saturating_add(1) {
                let what =
                    format!("{owner} is one too many at switch {name}, which has {most} ports");
                self.errors.add(line, what + ": correct `ports`, or name another switch");
            }
        }
    }

    /// Uplinks lead up.
    fn circles(&mut self) {
        let above = |switch: usize| self.description.switches[switch].uplink.map(|it| it.switch);
        let mut seen_from: Vec<Option<usize>> = vec![None; self.description.switches.len()];
        for start in 0..seen_from.len() {
            let mut next = Some(start);
            while let Some(switch) = next.filter(|switch| seen_from[*switch].is_none()) {
                seen_from[switch] = Some(start);
                next = above(switch);
            }
            let Some(first) = next.filter(|switch| seen_from[*switch] == Some(start)) else {
                continue;
            };
            let rest = core::iter::successors(above(first), |switch| above(*switch));
            let circle: Vec<usize> =
                core::iter::once(first).chain(rest.take_while(|switch| *switch != first)).collect();
            let line = circle.iter().map(|switch| self.lines.uplinks[*switch]).max();
            let named = circle.iter().take(8);
            let names: Vec<_> =
                named.map(|switch| self.description.switches[*switch].name.clone()).collect();
            let what = match names.as_slice() {
                [one] => {
                    format!("the uplink of switch {one} leads to itself: name the switch above")
                }
                _ => format!(
                    "the uplinks of switches {} lead in a circle: take the `uplink` of the highest one out",
                    list(&names)
                ),
            };
            self.errors.add(line.unwrap_or(1), what);
        }
    }

    /// A gateway is in its network and in another one, if its interfaces are described.
    fn gateways(&mut self) {
        for (number, network) in self.description.networks.iter().enumerate() {
            for (gateway, line) in
                network.gateways.iter().zip(&self.lines.networks[number].gateways)
            {
                let host = &self.description.hosts[*gateway];
                let own: BTreeSet<usize> = host.interfaces.iter().map(|it| it.network).collect();
                let (name, network) = (&host.name, &network.name);
                let what = if own.is_empty() || (own.len() > 1 && own.contains(&number)) {
                    continue;
                } else if !own.contains(&number) {
                    format!(
                        "host {name} is a gateway of network {network}, and no interface of it is in {network}"
                    )
                } else {
                    format!(
                        "host {name} is a gateway of network {network}, and is in no other network"
                    )
                };
                let cure = "describe that interface, or take the host out of `gateway`";
                self.errors.add(*line, format!("{what}: {cure}"));
            }
        }
    }

    /// All interfaces with their hosts and lines.
    fn interfaces(&self) -> impl Iterator<Item = (&'a DescribedHost, &'a Interface, usize)> {
        (0..self.description.hosts.len()).flat_map(|host| self.interfaces_of(host))
    }

    fn interfaces_of(
        &self,
        host: usize,
    ) -> impl Iterator<Item = (&'a DescribedHost, &'a Interface, usize)> + use<'a> {
        let (lines, host) = (&self.lines.hosts[host], &self.description.hosts[host]);
        let interfaces = host.interfaces.iter().zip(&lines.interfaces);
        interfaces.map(move |(interface, line)| (host, interface, *line))
    }
}
