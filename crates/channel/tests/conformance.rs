//! The conformance suite over the channels that need no network.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test")]

use landeck_channel::conformance::Network;
use landeck_channel::faulty::{Arriving, Faulty, Rule, Sending};
use landeck_channel::loopback::{Loopback, Wires};
use landeck_channel::recorder::Recorder;
use landeck_channel::{Channel, Peer};
use landeck_testing::Random;
use landeck_wire::Header;

const QUEUE_BYTES_MAX: usize = 64 * 1024;

/// Loopback endpoints, perhaps wrapped in another channel.
struct Endpoints<C> {
    wires: Wires,
    endpoints: Vec<Option<C>>,
}

/// Wraps a channel around a loopback endpoint.
trait Around: Channel {
    fn around(inner: Loopback, number: u32) -> Self;
}

impl Around for Loopback {
    fn around(inner: Loopback, _: u32) -> Self {
        inner
    }
}

impl Around for Recorder<Loopback> {
    fn around(inner: Loopback, _: u32) -> Self {
        Recorder::new(inner)
    }
}

impl Around for Faulty<Loopback, Sometimes> {
    fn around(inner: Loopback, number: u32) -> Self {
        Faulty::new(inner, Sometimes(Random::new(u64::from(number))))
    }
}

/// Refuses one message in five and delays one in five.
struct Sometimes(Random);

impl Rule for Sometimes {
    fn sending(&mut self, _: Peer, _: &Header) -> Sending {
        if self.0.once_in(5) { Sending::Refuse } else { Sending::Pass }
    }

    fn arriving(&mut self, _: Peer, _: &Header) -> Arriving {
        if self.0.once_in(5) { Arriving::Delay(self.0.below(8) as u32) } else { Arriving::Pass }
    }
}

impl<C: Around> Network for Endpoints<C> {
    type Channel = C;

    fn connect(count: u32) -> Self {
        let wires = Wires::new(QUEUE_BYTES_MAX);
        let endpoint = |number| Some(C::around(wires.endpoint(Peer(number)), number));
        Self { endpoints: (0..count).map(endpoint).collect(), wires: wires.clone() }
    }

    fn endpoint(&mut self, number: u32) -> &mut C {
        self.endpoints[number as usize].as_mut().unwrap()
    }

    fn end(&mut self, number: u32) {
        self.endpoints[number as usize] = None;
    }

    fn renew(&mut self, number: u32) {
        let endpoint = C::around(self.wires.endpoint(Peer(number)), number);
        self.endpoints[number as usize] = Some(endpoint);
    }
}

mod loopback {
    landeck_channel::conformance_tests!(super::Endpoints<super::Loopback>);
}

mod recorder {
    landeck_channel::conformance_tests!(super::Endpoints<super::Recorder<super::Loopback>>);
}

mod faulty {
    landeck_channel::conformance_tests!(
        super::Endpoints<super::Faulty<super::Loopback, super::Sometimes>>
    );
}
