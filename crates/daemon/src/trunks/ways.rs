//! The ways to another host: its own addresses, or those of a gateway that passes connections on.
//!
//! [`landeck_machine::routes`] decides over which gateways. A way that has failed a moment ago is left out while there is
//! another one, so that lanes and trunks take the next gateway at once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use landeck_machine::routes::{Route, Routes};
use landeck_wire::preamble::Preamble;
use landeck_wire::word::HostPlace;
use landeck_wire::{ControlMessage, HostNumber};

use super::{Trunks, Use};
use crate::addresses::in_order;
use crate::calls::dial::{DIAL_TIME, Dial, Pass};
use crate::heartbeats::peer_address;
use crate::reactor::Reactor;
use crate::trunks::envelope::EnvelopeClass;
use crate::trunks::link::Link;

/// An address that did not answer is left out for so long.
const LEFT_OUT_TIME: Duration = Duration::from_secs(10);

/// A way to open a connection to a host.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    /// The address to connect to: that of the host, or of the first gateway.
    pub(crate) address: SocketAddr,
    /// This host, the gateways, and the host that is called.
    pub(crate) hosts: Vec<HostNumber>,
    /// It has failed a moment ago, or a step of it has.
    is_broken: bool,
}

/// The reason why no connection is begun on a way.
#[derive(Debug)]
pub(crate) enum NoWay {
    /// There is no further way.
    Over,
    /// This gateway and this host have no secret yet.
    Unknown(HostNumber),
    /// The kernel refuses the connection, or the way has failed a moment ago.
    Failed(io::Error),
}

/// The knowledge of this host about its ways.
#[derive(Debug, Default)]
pub(super) struct Ways {
    /// The places of all hosts, and the steps that were found broken.
    pub(super) routes: Routes,
    /// The addresses that did not answer, and when.
    silent: BTreeMap<SocketAddr, Duration>,
    /// The steps that were found broken since the last look.
    found_broken: BTreeSet<(HostNumber, HostNumber)>,
}

impl Ways {
    fn is_silent(&self, address: SocketAddr, now: Duration) -> bool {
        self.silent.get(&address).is_some_and(|at| now < *at + LEFT_OUT_TIME)
    }

    fn has_gateways(&self) -> bool {
        self.routes.gateways().next().is_some()
    }
}

impl Trunks {
    /// Says where a host is: this one, or another one.
    pub(crate) fn set_place(&mut self, host: HostNumber, place: HostPlace) {
        self.ways.routes.set(host, place);
    }

    /// Whether a host passes connections on.
    pub(crate) fn is_gateway(&self, host: HostNumber) -> bool {
        self.ways.routes.place(host).is_some_and(|place| place.is_gateway)
    }

    /// Whether this host passes connections on.
    pub(crate) fn is_own_gateway(&self) -> bool {
        self.is_gateway(self.own)
    }

    /// A host is connected: it is reached, and if it is a gateway, hosts behind it can be.
    pub(super) fn is_reached(&mut self, host: HostNumber, now: Duration) {
        if self.socket(host).is_some() {
            self.ways.routes.found_well(&[self.own, host]);
            for address in self.addresses(host) {
                self.ways.silent.remove(&address);
            }
        }
        if self.is_gateway(host) {
            self.links.values_mut().for_each(|link| link.hurry(now));
        }
    }

    /// The ways to a host, the best first.
    pub(crate) fn ways(&self, host: HostNumber, now: Duration) -> Vec<Way> {
        let mut ways = Vec::new();
        if !self.ways.has_gateways() {
            let hosts = vec![self.own, host];
            let way = |address| Way { address, hosts: hosts.clone(), is_broken: false };
            return self.addresses(host).into_iter().map(way).collect();
        }
        for route in self.ways.routes.between(self.own, host, now) {
            let hosts = [&[self.own][..], &route.gateways, &[host]].concat();
            for address in self.addresses(hosts[1]) {
                let is_broken = route.broken.is_some() || self.ways.is_silent(address, now);
                ways.push(Way { address, hosts: hosts.clone(), is_broken });
            }
        }
        ways
    }

    /// The most ways to a host, as long as no host comes or goes: where all have failed, another one may follow.
    pub(crate) fn ways_max(&self, host: HostNumber, now: Duration) -> usize {
        self.ways(host, now).len() + usize::from(self.ways.has_gateways())
    }

    /// The way to a host that the next connection takes.
    pub(crate) fn taken_way(&self, host: HostNumber, now: Duration) -> Option<Way> {
        let mut ways = self.ways(host, now);
        let at = ways.iter().position(|way| !way.is_broken).unwrap_or(0);
        (at < ways.len()).then(|| ways.swap_remove(at))
    }

    /// The addresses of a host, in the order in which they are dialled: of those in networks that both hosts are in, if that
    /// is known.
    pub(crate) fn addresses(&self, host: HostNumber) -> Vec<SocketAddr> {
        let Some(all) = self.links.get(&host).map(|link| &link.entry.addresses) else {
            return Vec::new();
        };
        let ordered = in_order(&self.own_addresses, all);
        let Some(reached) = self.ways.routes.addresses(self.own, host) else { return ordered };
        let of = |address: &IpAddr| ordered.iter().find(|known| known.ip() == *address).copied();
        reached.iter().filter_map(of).collect()
    }

    /// Whether a way leads to a host at this place.
    pub(crate) fn has_way_to(&self, place: HostPlace, now: Duration) -> bool {
        let mut routes = self.ways.routes.clone();
        routes.set(HostNumber::NONE, place);
        !routes.between(self.own, HostNumber::NONE, now).is_empty()
    }

    /// Begins to open a connection to a host on one of its ways, counted from 0.
    ///
    /// # Errors
    /// [`NoWay`].
    pub(crate) fn begin_dial(
        &self,
        reactor: &Reactor,
        token: u64,
        (host, at): (HostNumber, usize),
        now: Duration,
    ) -> Result<Dial, NoWay> {
        let ways = self.ways(host, now);
        let way = ways.get(at).ok_or(NoWay::Over)?;
        if way.is_broken && ways.iter().any(|other| !other.is_broken) {
            let text = "it was not reached on this way a moment ago";
            return Err(NoWay::Failed(io::Error::new(io::ErrorKind::HostUnreachable, text)));
        }
        let passes = self.passes(&way.hosts)?;
        // Where there is another way, a pair must not be without a connection for T because of this one.
        let is_urgent = self.ways.has_gateways() && ways.len() > 1;
        let time = if is_urgent { DIAL_TIME.min(self.silence / 2) } else { DIAL_TIME };
        let is_narrow = way.hosts[1..].iter().any(|host| self.is_narrow(*host));
        let to = (way.address, is_narrow);
        let over = (way.hosts.clone(), passes);
        Dial::begin(reactor, token, to, over, (now, time)).map_err(NoWay::Failed)
    }

    /// Begins to open a connection to a host that this one reaches without a gateway, at the address that has not failed for the
    /// longest time. `at` counts the tries from 0; there are as many as addresses.
    ///
    /// # Errors
    /// [`NoWay`].
    pub(crate) fn begin_direct(
        &self,
        reactor: &Reactor,
        token: u64,
        (host, at): (HostNumber, usize),
        now: Duration,
    ) -> Result<Dial, NoWay> {
        let addresses = self.addresses(host);
        // The caller waits: the address comes first that has not failed, or whose failure is the oldest.
        let first = addresses.iter().min_by_key(|address| self.ways.silent.get(*address));
        let address = *first.filter(|_| at < addresses.len()).ok_or(NoWay::Over)?;
        let to = (address, self.is_narrow(host));
        let hosts = (vec![self.own, host], VecDeque::new());
        let time = DIAL_TIME.min(self.silence / 2);
        Dial::begin(reactor, token, to, hosts, (now, time)).map_err(NoWay::Failed)
    }

    /// The requests to the gateways between the first and the last of these hosts.
    fn passes(&self, hosts: &[HostNumber]) -> Result<VecDeque<Pass>, NoWay> {
        let steps = hosts.windows(2).skip(1);
        let pass = |step: &[HostNumber]| {
            let secret = self.newest_secret(step[0]).ok_or(NoWay::Unknown(step[0]));
            secret.map(|(generation, secret)| {
                let hosts = (self.own, step[0], step[1]);
                let preamble = Preamble::pass(self.machine, hosts, generation);
                Pass { preamble, secret: *secret }
            })
        };
        steps.map(pass).collect()
    }

    /// Notes that a connection was not opened.
    pub(crate) fn dial_failed_on(&mut self, dial: &Dial, now: Duration) {
        if !self.ways.has_gateways() {
            return;
        }
        let (from, to) = dial.step();
        self.ways.found_broken.insert((from, to));
        let is_first = from == self.own;
        if is_first {
            self.ways.silent.insert(dial.address(), now);
        }
        // A host may have addresses that were not tried.
        let is_silent = |address: &SocketAddr| self.ways.is_silent(*address, now);
        if !is_first || self.addresses(to).iter().all(is_silent) {
            self.ways.routes.found_broken(from, to, now);
        }
    }

    /// A trunk carries nothing any more: other ways than its own come first.
    pub(super) fn leave_way_of(&mut self, token: u64, now: Duration) {
        let Some(one) = self.trunks.get(&token).filter(|one| one.is_passed) else { return };
        let Use::Link { host, .. } = one.serves else { return };
        if !one.hosts.is_empty() {
            return self.ways.routes.found_mute(one.hosts.clone(), now);
        }
        // The other side has dialled it. The nearest gateway is known by its address.
        let address = one.trunk.socket().and_then(peer_address);
        let nearest = address.map_or(Vec::new(), |address| self.at(address));
        for route in self.ways.routes.between(self.own, host, now) {
            if route.gateways.first().is_some_and(|first| nearest.contains(first)) {
                let hosts = [&[self.own][..], &route.gateways, &[host]].concat();
                self.ways.routes.found_mute(hosts, now);
            }
        }
    }

    /// A host is not heard, and its kernel has answered at this time: its daemon is waited for.
    pub(crate) fn wait_for(&mut self, host: HostNumber, answered: Duration) {
        if let Some(link) = self.links.get_mut(&host) {
            link.wait(answered);
        }
    }

    /// The hosts with this address.
    fn at(&self, address: IpAddr) -> Vec<HostNumber> {
        let has = |link: &&Link| link.entry.addresses.iter().any(|known| known.ip() == address);
        self.links.values().filter(has).map(|link| link.entry.host).collect()
    }

    /// A gateway passes nothing on at the moment.
    pub(crate) fn gateway_silent(&mut self, gateway: HostNumber, now: Duration) {
        self.ways.routes.found_silent(gateway, now);
    }

    /// A host is lost: nothing passes it, and nothing reaches it.
    pub(crate) fn host_lost(&mut self, host: HostNumber) {
        self.ways.routes.remove(host);
    }

    /// Takes the steps that this host has found broken since the last call.
    pub(crate) fn take_broken(&mut self) -> BTreeSet<(HostNumber, HostNumber)> {
        std::mem::take(&mut self.ways.found_broken)
    }

    /// A host has found a step broken.
    pub(crate) fn note_broken(&mut self, (from, to): (HostNumber, HostNumber), now: Duration) {
        self.ways.routes.found_broken(from, to, now);
    }

    /// The last gateways on the ways to a host: they reach it themselves.
    pub(crate) fn last_gateways_to(&self, host: HostNumber, now: Duration) -> BTreeSet<HostNumber> {
        let routes = self.ways.routes.between(self.own, host, now);
        routes.iter().filter_map(|route| route.gateways.last().copied()).collect()
    }

    /// Sends something without a meaning to a host that is connected, so that its kernel answers.
    pub(crate) fn nudge(&mut self, host: HostNumber) {
        if let Some(receipt) = self.links.get(&host).map(Link::receipt) {
            self.send_unnumbered(host, EnvelopeClass::Receipt, &receipt.encode());
        }
    }

    /// The routes between two hosts, as this host knows them, the best first.
    pub(crate) fn routes(&self, from: HostNumber, to: HostNumber, now: Duration) -> Vec<Route> {
        self.ways.routes.between(from, to, now)
    }

    /// Notes that a connection was opened.
    pub(crate) fn dial_succeeded_on(&mut self, dial: &Dial) {
        self.ways.silent.remove(&dial.address());
        self.ways.routes.found_well(dial.hosts());
    }

    /// The failure of a connection in words.
    pub(super) fn failure(&self, dial: &Dial, why: &str) -> String {
        let name = |host: &HostNumber| match self.links.get(host) {
            Some(link) => link.entry.name.clone(),
            None => "this host".to_owned(),
        };
        match dial.hosts() {
            [_, _] => format!("{}: {why}", dial.address()),
            hosts => {
                let gateways: Vec<String> = hosts[1..hosts.len() - 1].iter().map(name).collect();
                let (from, to) = dial.step();
                let step = format!("from {} to {}", name(&from), name(&to));
                format!("through {}, {step}: {why}", gateways.join(", "))
            }
        }
    }
}
