//! Turns the names of drafts into numbers.

use core::net::IpAddr;
use std::collections::BTreeMap;

use super::draft::{At, Draft, HostDraft, InterfaceDraft, NetworkDraft, SwitchDraft};
use super::words::unknown_name;
use super::{
    DescribedHost, DescribedNetwork, Description, Errors, Interface, Switch, USUAL_NS_PER_KIB,
    Uplink,
};

/// The lines in which the parts of a description stand.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// Those of the uplinks, or of the switches that have none.
    pub(super) uplinks: Vec<usize>,
    pub(super) networks: Vec<NetworkLines>,
    pub(super) hosts: Vec<HostLines>,
}

/// The lines of a network.
#[derive(Debug)]
pub(super) struct NetworkLines {
    pub(super) name: usize,
    pub(super) addresses: Vec<usize>,
    pub(super) gateways: Vec<usize>,
}

/// The lines of a host.
#[derive(Debug)]
pub(super) struct HostLines {
    pub(super) name: usize,
    pub(super) interfaces: Vec<usize>,
}

/// The numbers of names.
struct Names<'a> {
    kind: &'static str,
    numbers: BTreeMap<&'a str, usize>,
}

struct Resolver<'a> {
    draft: &'a Draft,
    switches: Names<'a>,
    networks: Names<'a>,
    hosts: Names<'a>,
    errors: &'a mut Errors,
}

/// The description, if all names in it are described.
pub(super) fn resolve(draft: &Draft, errors: &mut Errors) -> Option<(Description, Lines)> {
    let mut resolver = Resolver {
        draft,
        switches: Names::of("switch", draft.switches.iter().map(|switch| &switch.name)),
        networks: Names::of("network", draft.networks.iter().map(|network| &network.name)),
        hosts: Names::of("host", draft.hosts.iter().map(|host| &host.name)),
        errors,
    };
    let description = Description {
        switches: draft.switches.iter().map(|switch| resolver.switch(switch)).collect(),
        networks: draft.networks.iter().map(|network| resolver.network(network)).collect(),
        hosts: draft.hosts.iter().map(|host| resolver.host(host)).collect(),
    };
    resolver.errors.is_empty().then(|| (description, Lines::of(draft)))
}

impl<'a> Names<'a> {
    fn of(kind: &'static str, names: impl Iterator<Item = &'a At<String>>) -> Self {
        Self { kind, numbers: names.map(|name| name.value.as_str()).zip(0..).collect() }
    }

    /// The number of a name, which must be described.
    fn get(&self, name: &At<String>, errors: &mut Errors) -> Option<usize> {
        let number = self.numbers.get(name.value.as_str()).copied();
        if number.is_none() {
            let names = self.numbers.keys().copied();
            errors.add(name.line, unknown_name(self.kind, &name.value, names));
        }
        number
    }
}

impl Resolver<'_> {
    fn switch(&mut self, draft: &SwitchDraft) -> Switch {
        let ns_per_kib = draft.rate.as_ref().map_or(USUAL_NS_PER_KIB, |rate| rate.value);
        if let (None, Some(rate)) = (&draft.uplink, &draft.uplink_rate) {
            let what = format!(
                "switch {} has an `uplink-rate` and no `uplink`: name the switch above, or take the rate out",
                draft.name.value
            );
            self.errors.add(rate.line, what);
        }
        let above = draft.uplink.as_ref().and_then(|above| self.switches.get(above, self.errors));
        let uplink_rate = draft.uplink_rate.as_ref().map_or(ns_per_kib, |rate| rate.value);
        let uplink = above.map(|switch| Uplink { switch, ns_per_kib: uplink_rate });
        let (name, ports) = (draft.name.value.clone(), draft.ports.as_ref().map(|it| it.value));
        Switch { name, ports, ns_per_kib, uplink }
    }

    fn network(&mut self, draft: &NetworkDraft) -> DescribedNetwork {
        let mut gateways = Vec::new();
        for host in &draft.gateways {
            gateways.extend(self.hosts.get(host, self.errors));
        }
        DescribedNetwork {
            name: draft.name.value.clone(),
            addresses: draft.addresses.iter().map(|net| net.value).collect(),
            site: draft.site.as_ref().map(|site| site.value.clone()),
            gateways,
        }
    }

    fn host(&mut self, draft: &HostDraft) -> DescribedHost {
        let name = &draft.name.value;
        let interfaces = draft.interfaces.iter();
        let interfaces = interfaces.filter_map(|interface| self.interface(name, interface));
        DescribedHost { name: name.clone(), interfaces: interfaces.collect() }
    }

    fn interface(&mut self, host: &str, draft: &InterfaceDraft) -> Option<Interface> {
        let name = draft.name.value.clone();
        let network = self.network_of(host, draft);
        let switch = match &draft.switch {
            Some(switch) => Some(self.switches.get(switch, self.errors)?),
            None => None,
        };
        if let (None, Some(port)) = (switch, &draft.port) {
            let what = format!("interface {name} of host {host} has a `port` and no `switch`");
            self.errors.add(port.line, what + ": name its switch, or take the port out");
        }
        Some(Interface {
            name,
            network: network?,
            address: draft.address.as_ref().map(|address| address.value),
            switch,
            port: draft.port.as_ref().map(|port| port.value),
            ns_per_kib: draft.rate.as_ref().map(|rate| rate.value),
        })
    }

    /// The network of an interface: the named one, or that in which its address lies.
    fn network_of(&mut self, host: &str, draft: &InterfaceDraft) -> Option<usize> {
        let owner = format!("interface {} of host {host}", draft.name.value);
        let named = match &draft.network {
            Some(network) => Some(self.networks.get(network, self.errors)?),
            None => None,
        };
        let Some(At { line, value: address }) = &draft.address else {
            if named.is_none() {
                let cure = "write its `network`, or an `address` that lies in one";
                let what = format!("{owner} is in no network: {cure}");
                self.errors.add(draft.name.line, what);
            }
            return named;
        };
        let found = self.network_with(*address);
        let what = match (named, found) {
            (None, None) => {
                let cure = "write its `network`, or describe the `addresses` of that network";
                format!("address {address} of {owner} lies in no network: {cure}")
            }
            (Some(named), Some(found)) if named != found => {
                let [named, found] = [named, found].map(|it| &self.draft.networks[it].name.value);
                let cure = format!("write `network = \"{found}\"`, or another address");
                format!(
                    "address {address} of {owner} lies in network {found}, not in {named}: {cure}"
                )
            }
            (Some(named), None) if !self.draft.networks[named].addresses.is_empty() => {
                let named = &self.draft.networks[named].name.value;
                let cure = "correct it, or add it to the `addresses` of the network";
                format!("address {address} of {owner} lies not in network {named}: {cure}")
            }
            _ => return named.or(found),
        };
        self.errors.add(*line, what);
        None
    }

    fn network_with(&self, address: IpAddr) -> Option<usize> {
        let holds = |network: &NetworkDraft| {
            network.addresses.iter().any(|net| net.value.contains(&address))
        };
        self.draft.networks.iter().position(holds)
    }
}

impl Lines {
    fn of(draft: &Draft) -> Self {
        let uplink = |switch: &SwitchDraft| {
            switch.uplink.as_ref().map_or(switch.name.line, |uplink| uplink.line)
        };
        let network = |network: &NetworkDraft| NetworkLines {
            name: network.name.line,
            addresses: network.addresses.iter().map(|net| net.line).collect(),
            gateways: network.gateways.iter().map(|gateway| gateway.line).collect(),
        };
        let host = |host: &HostDraft| HostLines {
            name: host.name.line,
            interfaces: host.interfaces.iter().map(|interface| interface.name.line).collect(),
        };
        Self {
            uplinks: draft.switches.iter().map(uplink).collect(),
            networks: draft.networks.iter().map(network).collect(),
            hosts: draft.hosts.iter().map(host).collect(),
        }
    }
}
