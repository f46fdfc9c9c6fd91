//! The place of a host: which networks it is in, with which addresses, behind which switches.

use core::net::IpAddr;

use landeck_wire::word::{HostPlace, NetworkPlace, PhysicalLink};

use super::{DescribedNetwork, Description, Interface, USUAL_NS_PER_KIB};

impl Description {
    /// The place of a host of this name with these addresses, best first.
    ///
    /// Its described interfaces come first, and then the networks in which its addresses lie. An interface whose address is not
    /// described has the addresses that lie in its network. If the addresses of that network are not described either, it has
    /// those that lie in no network. The site is that of the first network that has one.
    #[must_use]
    pub fn place(&self, host: &str, addresses: &[IpAddr]) -> HostPlace {
        let number = self.hosts.iter().position(|described| described.name == host);
        let interfaces = number.map_or(&[][..], |number| &self.hosts[number].interfaces);
        let addresses: Vec<IpAddr> = addresses.iter().map(IpAddr::to_canonical).collect();
        let mut order: Vec<usize> = interfaces.iter().map(|interface| interface.network).collect();
        let found = self.networks.iter().enumerate();
        let found = found.filter(|(_, network)| addresses.iter().any(|it| network.holds(*it)));
        order.extend(found.map(|(number, _)| number));
        let order = each_once(order);
        let site = order.iter().find_map(|network| self.networks.get(*network)?.site.clone());
        let is_gateway = number.is_some_and(|number| {
            self.networks.iter().any(|network| network.gateways.contains(&number))
        });
        let networks = order.iter().filter_map(|network| {
            Some(NetworkPlace {
                network: u16::try_from(*network).ok()?,
                addresses: self.addresses(*network, interfaces, &addresses)?,
                links: self
                    .links(interfaces.iter().find(|interface| interface.network == *network)),
            })
        });
        HostPlace { site: site.unwrap_or_default(), is_gateway, networks: networks.collect() }
    }

    /// The switch of this number, and those above it up to the root.
    pub fn switches_from(&self, switch: usize) -> impl Iterator<Item = usize> + use<'_> {
        let above = |switch: &usize| Some(self.switches.get(*switch)?.uplink?.switch);
        // A circle of uplinks has no root.
        core::iter::successors(Some(switch), above).take(self.switches.len())
    }

    /// The addresses of a host in a network.
    fn addresses(
        &self,
        number: usize,
        interfaces: &[Interface],
        addresses: &[IpAddr],
    ) -> Option<Vec<IpAddr>> {
        let network = self.networks.get(number)?;
        let own = || interfaces.iter().filter(|interface| interface.network == number);
        let takes_rest =
            network.addresses.is_empty() && own().any(|interface| interface.address.is_none());
        let is_free = |address: &IpAddr| {
            interfaces.iter().all(|interface| interface.address != Some(*address))
                && !self.networks.iter().any(|network| network.holds(*address))
        };
        let found = addresses.iter().copied();
        let found = found.filter(|it| network.holds(*it) || takes_rest && is_free(it));
        Some(each_once(own().filter_map(|interface| interface.address).chain(found).collect()))
    }

    /// The links from an interface up to the root.
    fn links(&self, interface: Option<&Interface>) -> Vec<PhysicalLink> {
        let first = interface.and_then(|interface| interface.switch);
        let first = first.filter(|switch| *switch < self.switches.len());
        let port = first.map_or(USUAL_NS_PER_KIB, |switch| self.switches[switch].ns_per_kib);
        let own = interface.and_then(|interface| interface.ns_per_kib);
        let cable = link(first, own.unwrap_or(port));
        let switches = first.into_iter().flat_map(|switch| self.switches_from(switch));
        let uplinks = switches.filter_map(|switch| self.switches.get(switch)?.uplink);
        let uplinks = uplinks.map(|uplink| link(Some(uplink.switch), uplink.ns_per_kib));
        core::iter::once(cable).chain(uplinks).collect()
    }
}

impl DescribedNetwork {
    /// Whether an address lies in the described addresses of this network.
    #[must_use]
    pub fn holds(&self, address: IpAddr) -> bool {
        self.addresses.iter().any(|net| net.contains(&address))
    }
}

fn link(switch: Option<usize>, ns_per_kib: u32) -> PhysicalLink {
    PhysicalLink { switch: switch.and_then(|switch| u16::try_from(switch).ok()), ns_per_kib }
}

fn each_once<T: PartialEq + Copy>(list: Vec<T>) -> Vec<T> {
    let mut once = Vec::with_capacity(list.len());
    for value in list {
        if !once.contains(&value) {
            once.push(value);
        }
    }
    once
}
