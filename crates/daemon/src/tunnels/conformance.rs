//! The conformance suite over tunnels: the processes of [`RelayedHosts`], whose connections to relays are streams of one tunnel.

use std::cell::RefCell;

use landeck_channel::conformance::Network;

use super::tests::Pair;
use crate::relay::conformance::{RelayedHosts, Shifted};

struct TunnelledHosts(RelayedHosts);

impl Network for TunnelledHosts {
    type Channel = Shifted;

    fn connect(count: u32) -> Self {
        let mut hosts = RelayedHosts::with(count);
        let pair = RefCell::new(Pair::new());
        hosts.connect = Box::new(move || pair.borrow_mut().stream());
        Self(hosts)
    }

    fn endpoint(&mut self, number: u32) -> &mut Shifted {
        self.0.endpoint(number)
    }

    fn end(&mut self, number: u32) {
        self.0.end(number);
    }

    fn renew(&mut self, number: u32) {
        self.0.renew(number);
    }
}

landeck_channel::conformance_tests!(TunnelledHosts);
