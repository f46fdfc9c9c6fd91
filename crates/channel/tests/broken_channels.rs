//! Checks that the conformance suite notices faults: each kind of faulty channel fails a test.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test")]

use landeck_channel::conformance::{self, Network};
use landeck_channel::loopback::{Loopback, Wires};
use landeck_channel::{BrokenPeer, Channel, Peer, SendError, Sink, Verdict};
use landeck_memory::{Buffer, Bytes};
use landeck_testing::Watchdog;
use landeck_wire::Header;
use std::time::Duration;

/// The faults, as numbers of [`Wrong`].
const LOSES: u8 = 0;
const REPEATS: u8 = 1;
const SWAPS: u8 = 2;
const CUTS: u8 = 3;
const SENDS_WHAT_IT_REFUSES: u8 = 4;
const FORGETS_NOTHING: u8 = 5;
const DROPS_WHAT_IS_HELD: u8 = 6;
const TAKES_WITHOUT_END: u8 = 7;
const READS_OUT_THE_LIVING: u8 = 8;
const UNDERCOUNTS_PLACED: u8 = 9;

/// A loopback endpoint that is faulty now and then.
struct Wrong<const HOW: u8> {
    inner: Loopback,
    sends: u32,
    back: Option<(Header, Vec<u8>)>,
}

impl<const HOW: u8> Channel for Wrong<HOW> {
    fn data_bytes_max(&self) -> usize {
        self.inner.data_bytes_max()
    }

    fn try_send(&mut self, to: Peer, header: &Header, data: Bytes<'_>) -> Result<(), SendError> {
        self.sends += 1;
        let now = self.sends.is_multiple_of(7);
        match HOW {
            LOSES if now => Ok(()),
            REPEATS if now => {
                self.inner.try_send(to, header, data)?;
                self.inner.try_send(to, header, data)
            }
            SWAPS if now => {
                self.back = Some((*header, data.to_vec()));
                Ok(())
            }
            CUTS if now => {
                let data = data.part(0, data.len().saturating_sub(1));
                self.inner.try_send(to, &Header { length: data.len() as u32, ..*header }, data)
            }
            SENDS_WHAT_IT_REFUSES if now => {
                self.inner.try_send(to, header, data)?;
                Err(SendError::Full)
            }
            TAKES_WITHOUT_END => {
                let _ = self.inner.try_send(to, header, data);
                Ok(())
            }
            _ => {
                self.inner.try_send(to, header, data)?;
                self.back.take().map_or(Ok(()), |(header, data)| {
                    self.inner.try_send(to, &header, Bytes::from(&data[..]))
                })
            }
        }
    }

    fn poll(&mut self, sink: &mut dyn Sink) -> bool {
        match HOW {
            DROPS_WHAT_IS_HELD => self.inner.poll(&mut Hasty(sink)),
            UNDERCOUNTS_PLACED => self.inner.poll(&mut Undercounting(sink)),
            _ => self.inner.poll(sink),
        }
    }

    fn is_read_out(&self, peer: Peer) -> bool {
        HOW == READS_OUT_THE_LIVING || self.inner.is_read_out(peer)
    }

    fn leave(&mut self) {
        self.inner.leave();
    }

    fn forget(&mut self, peer: Peer) {
        if HOW != FORGETS_NOTHING {
            self.inner.forget(peer);
        }
    }
}

/// Takes messages that the caller's sink holds.
struct Hasty<'a>(&'a mut dyn Sink);

impl Sink for Hasty<'_> {
    fn arrive(&mut self, from: Peer, header: &Header, data: Bytes<'_>) -> Verdict {
        let _ = self.0.arrive(from, header, data);
        Verdict::Taken
    }

    fn broken(&mut self, from: Peer, what: BrokenPeer) {
        self.0.broken(from, what);
    }
}

/// Says less than has come to places.
struct Undercounting<'a>(&'a mut dyn Sink);

impl Sink for Undercounting<'_> {
    fn arrive(&mut self, from: Peer, header: &Header, data: Bytes<'_>) -> Verdict {
        self.0.arrive(from, header, data)
    }

    fn place(&mut self, from: Peer, header: &Header) -> Option<Buffer> {
        self.0.place(from, header)
    }

    fn placed(&mut self, from: Peer, header: &Header, bytes: usize) {
        self.0.placed(from, header, bytes.saturating_sub(1));
    }

    fn broken(&mut self, from: Peer, what: BrokenPeer) {
        self.0.broken(from, what);
    }
}

struct Endpoints<const HOW: u8>(Wires, Vec<Option<Wrong<HOW>>>);

impl<const HOW: u8> Network for Endpoints<HOW> {
    type Channel = Wrong<HOW>;

    fn connect(count: u32) -> Self {
        let mut network = Self(Wires::new(1 << 16), (0..count).map(|_| None).collect());
        (0..count).for_each(|number| network.renew(number));
        network
    }

    fn endpoint(&mut self, number: u32) -> &mut Wrong<HOW> {
        self.1[number as usize].as_mut().unwrap()
    }

    fn end(&mut self, number: u32) {
        self.1[number as usize] = None;
    }

    fn renew(&mut self, number: u32) {
        let inner = self.0.endpoint(Peer(number));
        self.1[number as usize] = Some(Wrong { inner, sends: 0, back: None });
    }
}

fn watchdog() -> Watchdog {
    Watchdog::start(Duration::from_secs(120))
}

#[test]
#[should_panic(expected = "another header was due")]
fn a_lost_message_is_noticed() {
    let _watchdog = watchdog();
    conformance::messages_arrive_in_order::<Endpoints<LOSES>>();
}

#[test]
#[should_panic(expected = "another header was due")]
fn a_repeated_message_is_noticed() {
    let _watchdog = watchdog();
    conformance::messages_arrive_in_order::<Endpoints<REPEATS>>();
}

#[test]
#[should_panic(expected = "another header was due")]
fn swapped_messages_are_noticed() {
    let _watchdog = watchdog();
    conformance::messages_arrive_in_order::<Endpoints<SWAPS>>();
}

#[test]
#[should_panic(expected = "another header was due")]
fn a_cut_message_is_noticed() {
    let _watchdog = watchdog();
    conformance::every_length_arrives_whole::<Endpoints<CUTS>>();
}

#[test]
#[should_panic(expected = "another header was due")]
fn a_message_that_was_refused_and_arrives_is_noticed() {
    let _watchdog = watchdog();
    conformance::full_loses_nothing::<Endpoints<SENDS_WHAT_IT_REFUSES>>();
}

#[test]
#[should_panic(expected = "another header was due")]
fn a_held_message_that_is_dropped_is_noticed() {
    let _watchdog = watchdog();
    conformance::a_sink_that_holds_stops_only_its_peer::<Endpoints<DROPS_WHAT_IS_HELD>>();
}

#[test]
#[should_panic(expected = "without an end")]
fn a_channel_without_a_limit_is_noticed() {
    let _watchdog = watchdog();
    conformance::full_loses_nothing::<Endpoints<TAKES_WITHOUT_END>>();
}

#[test]
#[should_panic(expected = "cannot send to 1: there is no path to the peer")]
fn a_peer_that_is_not_forgotten_is_noticed() {
    let _watchdog = watchdog();
    conformance::a_place_can_be_used_again::<Endpoints<FORGETS_NOTHING>>();
}

#[test]
#[should_panic(expected = "lives, and is read out")]
fn a_living_peer_that_is_read_out_is_noticed() {
    let _watchdog = watchdog();
    conformance::a_peer_that_leaves_or_dies_is_read_out::<Endpoints<READS_OUT_THE_LIVING>>();
}

#[test]
#[should_panic(expected = "a place was asked for another part")]
fn data_that_are_counted_wrongly_in_their_place_are_noticed() {
    let _watchdog = watchdog();
    conformance::places_change_nothing::<Endpoints<UNDERCOUNTS_PLACED>>();
}
