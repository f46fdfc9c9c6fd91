//! The network: cards and ports of switches, each of which carries one message at a time.
//!
//! A message has a head and a tail. At a port the head waits for the end of the message before it. The tail follows
//! at the rate of the bytes, from the port before or through this one. So a message on an idle network takes the
//! latency once and its bytes once (LogGP), and messages that meet queue up.

use crate::platform::{Level, SimulatedNetwork, bytes_ps};
use crate::time::Time;

/// A message under way between two hosts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transit {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) bytes: u64,
    /// When its first byte and its last byte are at the next port.
    pub(crate) head: Time,
    pub(crate) tail: Time,
    /// The number of ports that it has passed.
    pub(crate) hop: u8,
    /// How long it has queued so far.
    pub(crate) waited_ps: u64,
}

/// The state of a message after a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passed {
    /// Its head reaches the next port at this moment.
    On(Time),
    /// Its last byte leaves the last port at this moment.
    Arrived(Time),
}

/// The network, and when each port is free.
#[derive(Debug)]
pub(crate) struct Wires {
    network: SimulatedNetwork,
    /// When each port is free: sending cards, receiving cards, then the ways up and down of each layer.
    free: Vec<Time>,
    hosts: u32,
    /// The first port of each layer.
    layers: Vec<Layer>,
}

#[derive(Clone, Copy, Debug)]
struct Layer {
    level: Level,
    /// Hosts below one of its switches.
    below: u64,
    first_up: usize,
    first_down: usize,
}

/// A port and the way behind it.
struct Port {
    number: usize,
    kib_ps: u64,
    is_card: bool,
    /// The time from here to the next port; none after the last.
    onwards_ps: Option<u64>,
}

impl Wires {
    /// An idle network between hosts.
    pub(crate) fn new(network: &SimulatedNetwork, hosts: u32) -> Self {
        let mut layers = Vec::new();
        let (mut ports, mut below) = (2 * hosts as usize, 1u64);
        for &level in &network.levels {
            below *= u64::from(level.ports);
            let ways = u64::from(hosts).div_ceil(below) as usize * level.uplinks as usize;
            layers.push(Layer { level, below, first_up: ports, first_down: ports + ways });
            ports += 2 * ways;
        }
        Self { network: network.clone(), free: vec![Time::ZERO; ports], hosts, layers }
    }

    /// How long a processor is busy with a message at either end.
    pub(crate) fn overhead_ps(&self, bytes: u64) -> u64 {
        self.network.overhead_ps + bytes_ps(bytes, self.network.copy_kib_ps)
    }

    /// How long a processor is busy with a part of announced data at either end.
    pub(crate) fn part_ps(&self, bytes: u64) -> u64 {
        let kib_ps = self.network.part_copy_kib_ps.unwrap_or(self.network.copy_kib_ps);
        self.network.overhead_ps + bytes_ps(bytes, kib_ps)
    }

    /// The latency and the time of 1 KiB between two hosts.
    fn link(&self, from: u32, to: u32) -> (u64, u64) {
        let link = self.network.links.between(from as usize, to as usize);
        let usual = (self.network.latency_ps, self.network.kib_ps);
        link.map_or(usual, |link| (link.latency_ps, link.kib_ps))
    }

    /// How long a word takes from one host to another on an idle network.
    pub(crate) fn word_ps(&self, from: u32, to: u32) -> u64 {
        let climb = self.climb(from, to);
        let way_up = self.layers.iter().take(climb).map(|layer| 2 * layer.level.delay_ps);
        let top_ps = self.layers.get(climb).map_or(0, |layer| layer.level.delay_ps);
        2 * self.network.overhead_ps + self.link(from, to).0 + way_up.sum::<u64>() + top_ps
    }

    /// Whether a message of this length is announced first.
    pub(crate) fn is_announced(&self, bytes: u64) -> bool {
        self.network.eager_bytes.is_some_and(|eager| bytes > eager)
    }

    /// The length of the parts in which so many announced bytes follow.
    pub(crate) fn part_of(&self, bytes: u64) -> u64 {
        self.network.part_bytes.map_or(bytes, |part| part.min(bytes))
    }

    /// Passes a message through its next port at the time of its head.
    pub(crate) fn pass(&mut self, transit: &mut Transit) -> Passed {
        let port = self.port(transit);
        let start = transit.head.max(self.free[port.number]);
        transit.waited_ps += start.since(transit.head);
        let end = (start + bytes_ps(transit.bytes, port.kib_ps)).max(transit.tail);
        let gap_ps = if port.is_card { self.network.gap_ps } else { 0 };
        self.free[port.number] = end.max(start + gap_ps);
        transit.hop += 1;
        match port.onwards_ps {
            Some(onwards_ps) => {
                (transit.head, transit.tail) = (start + onwards_ps, end + onwards_ps);
                Passed::On(transit.head)
            }
            None => Passed::Arrived(end),
        }
    }

    /// The number of layers that a message climbs above the first.
    fn climb(&self, from: u32, to: u32) -> usize {
        let is_common =
            |layer: &Layer| u64::from(from) / layer.below == u64::from(to) / layer.below;
        self.layers.iter().position(is_common).unwrap_or(0)
    }

    fn port(&self, transit: &Transit) -> Port {
        let (network, hop) = (&self.network, usize::from(transit.hop));
        let climb = self.climb(transit.from, transit.to);
        let (latency_ps, kib_ps) = self.link(transit.from, transit.to);
        let card = |number: u32, onwards_ps| Port {
            number: number as usize,
            kib_ps,
            is_card: true,
            onwards_ps,
        };
        if hop == 0 {
            let delay_ps = network.levels.first().map_or(0, |level| level.delay_ps);
            return card(transit.from, Some(latency_ps + delay_ps));
        }
        if hop > 2 * climb {
            return card(self.hosts + transit.to, None);
        }
        let is_up = hop <= climb;
        let number = if is_up { hop - 1 } else { 2 * climb - hop };
        let layer = &self.layers[number];
        let (host, first, next) = if is_up {
            (transit.from, layer.first_up, number + 1)
        } else {
            (transit.to, layer.first_down, number)
        };
        let switch = (u64::from(host) / layer.below) as usize;
        let uplinks = layer.level.uplinks as usize;
        // Routes are fixed by the receiver, so that messages to neighbours take different ways.
        let way = transit.to as usize % uplinks;
        Port {
            number: first + switch * uplinks + way,
            kib_ps: layer.level.kib_ps,
            is_card: false,
            onwards_ps: Some(self.layers[next].level.delay_ps),
        }
    }
}

#[cfg(test)]
mod tests {
    use landeck_collectives::{Link, Links};

    use super::*;

    fn network(levels: Vec<Level>) -> SimulatedNetwork {
        SimulatedNetwork {
            hosts: 8,
            overhead_ps: 10,
            latency_ps: 100,
            gap_ps: 7,
            kib_ps: 1024, // a byte takes 1 ps
            copy_kib_ps: 0,
            part_copy_kib_ps: None,
            eager_bytes: Some(50),
            part_bytes: None,
            shared: None,
            levels,
            links: Links::default(),
        }
    }

    fn levels() -> Vec<Level> {
        let leaf = Level { ports: 2, uplinks: 1, delay_ps: 5, kib_ps: 2048 };
        vec![leaf, Level { ports: 4, uplinks: 1, delay_ps: 9, kib_ps: 1024 }]
    }

    fn transit(from: u32, to: u32, bytes: u64, at: u64) -> Transit {
        let at = Time::from_ps(at);
        Transit { from, to, bytes, head: at, tail: at, hop: 0, waited_ps: 0 }
    }

    /// The arrival times of messages that are sent one after the other.
    fn arrivals<const N: usize>(wires: &mut Wires, messages: [Transit; N]) -> [u64; N] {
        messages.map(|mut message| {
            loop {
                if let Passed::Arrived(at) = wires.pass(&mut message) {
                    return at.ps();
                }
            }
        })
    }

    #[test]
    fn an_idle_network_takes_the_latency_and_the_bytes_once() {
        let mut wires = Wires::new(&network(vec![]), 8);
        assert_eq!(arrivals(&mut wires, [transit(0, 5, 40, 0)]), [140]);
    }

    #[test]
    fn a_link_of_its_own_has_another_latency_and_rate() {
        let mut network = network(vec![]);
        network.links.set(5, 0, Link { latency_ps: 1_000, gap_ps: 9, kib_ps: 10_240 });
        let mut wires = Wires::new(&network, 8);
        let both = [transit(0, 5, 40, 0), transit(0, 6, 40, 0)];
        assert_eq!(arrivals(&mut wires, both), [1_400, 540], "the card is busy for so long");
        assert_eq!((wires.word_ps(0, 5), wires.word_ps(1, 5)), (1_020, 120));
    }

    #[test]
    fn cards_send_and_receive_one_message_at_a_time() {
        let mut wires = Wires::new(&network(vec![]), 8);
        let twice = [transit(0, 5, 40, 0), transit(0, 6, 40, 0), transit(1, 5, 40, 10)];
        assert_eq!(arrivals(&mut wires, twice), [140, 180, 180]);
        let mut wires = Wires::new(&network(vec![]), 8);
        let short = [transit(0, 5, 1, 0), transit(0, 6, 1, 0)];
        assert_eq!(arrivals(&mut wires, short), [101, 108], "the gap");
    }

    #[test]
    fn a_message_that_climbs_passes_more_switches_and_slower_links() {
        let mut wires = Wires::new(&network(levels()), 8);
        assert_eq!(arrivals(&mut wires, [transit(0, 1, 40, 0)]), [145]);
        // Two leaves and a core switch, at half the rate.
        assert_eq!(arrivals(&mut wires, [transit(2, 4, 40, 0)]), [100 + 5 + 9 + 5 + 80]);
    }

    #[test]
    fn ways_between_switches_are_shared() {
        let mut wires = Wires::new(&network(levels()), 8);
        let both = [transit(0, 4, 40, 0), transit(1, 6, 40, 0)];
        assert_eq!(arrivals(&mut wires, both), [199, 279]);
    }

    #[test]
    fn long_data_are_announced() {
        let wires = Wires::new(&network(vec![]), 8);
        assert!(wires.is_announced(51) && !wires.is_announced(50));
        assert_eq!(wires.overhead_ps(1000), 10);
    }
}
