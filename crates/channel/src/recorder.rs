//! A channel that counts the messages of another one, so that a test can state how many messages of which kind an
//! operation may cost.

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;

use landeck_memory::{Bytes, Segment};
use landeck_wire::{Header, Kind};

use crate::{BrokenPeer, Channel, Peer, SendError, Sink, Verdict};

/// A number of messages and the bytes of their data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// The number of messages.
    pub messages: u64,
    /// Bytes of their data, headers not counted.
    pub data_bytes: u64,
}

/// Counts by peer and by kind of message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    counts: BTreeMap<(Peer, u8), Count>,
}

/// A channel with records of the messages that it accepted and delivered.
pub struct Recorder<C> {
    inner: C,
    sent: Record,
    arrived: Record,
}

impl Record {
    /// The messages of one kind that passed between us and one peer.
    pub fn of(&self, peer: Peer, kind: Kind) -> Count {
        self.counts.get(&(peer, kind as u8)).copied().unwrap_or_default()
    }

    /// The messages of one kind that passed between us and all peers.
    pub fn of_kind(&self, kind: Kind) -> Count {
        self.sum(|key| key.1 == kind as u8)
    }

    /// The messages of all kinds that passed between us and one peer.
    pub fn of_peer(&self, peer: Peer) -> Count {
        self.sum(|key| key.0 == peer)
    }

    /// All messages that passed.
    pub fn total(&self) -> Count {
        self.sum(|_| true)
    }

    fn sum(&self, wanted: impl Fn(&(Peer, u8)) -> bool) -> Count {
        let counts = self.counts.iter().filter(|(key, _)| wanted(key)).map(|(_, count)| *count);
        counts.fold(Count::default(), Count::plus)
    }

    fn add(&mut self, peer: Peer, header: &Header, data: &Bytes<'_>) {
        let count = self.counts.entry((peer, header.kind as u8)).or_default();
        *count = count.plus(Count { messages: 1, data_bytes: data.len() as u64 });
    }
}

impl Count {
    fn plus(self, other: Self) -> Self {
        Self {
            messages: self.messages + other.messages,
            data_bytes: self.data_bytes + other.data_bytes,
        }
    }
}

impl<C: Channel> Recorder<C> {
    /// Records the messages that pass through `inner` from now on.
    pub fn new(inner: C) -> Self {
        Self { inner, sent: Record::default(), arrived: Record::default() }
    }

    /// The messages that the channel accepted.
    pub fn sent(&self) -> &Record {
        &self.sent
    }

    /// The messages that the sink took.
    pub fn arrived(&self) -> &Record {
        &self.arrived
    }

    /// Resets all counts to zero.
    pub fn clear(&mut self) {
        self.sent = Record::default();
        self.arrived = Record::default();
    }

    /// The channel itself.
    pub fn inner(&mut self) -> &mut C {
        &mut self.inner
    }
}

/// The caller's sink, with a record of the messages that it takes.
struct Counting<'a, S: ?Sized> {
    sink: &'a mut S,
    arrived: &'a mut Record,
}

impl<S: Sink + ?Sized> Sink for Counting<'_, S> {
    fn arrive(&mut self, from: Peer, header: &Header, data: Bytes<'_>) -> Verdict {
        let verdict = self.sink.arrive(from, header, data);
        if verdict == Verdict::Taken {
            self.arrived.add(from, header, &data);
        }
        verdict
    }

    fn append_part(
        &mut self,
        to: Peer,
        header: &Header,
        behind: u64,
        target: &mut Vec<u8>,
    ) -> bool {
        self.sink.append_part(to, header, behind, target)
    }

    fn broken(&mut self, from: Peer, what: BrokenPeer) {
        self.sink.broken(from, what);
    }
}

impl<C: Channel> Channel for Recorder<C> {
    fn data_bytes_max(&self) -> usize {
        self.inner.data_bytes_max()
    }

    fn heap_segment(&self, peer: Peer) -> Option<&Segment> {
        self.inner.heap_segment(peer)
    }

    fn try_send(&mut self, to: Peer, header: &Header, data: Bytes<'_>) -> Result<(), SendError> {
        self.inner.try_send(to, header, data)?;
        self.sent.add(to, header, &data);
        Ok(())
    }

    fn sent_mark(&self, peer: Peer) -> u64 {
        self.inner.sent_mark(peer)
    }

    fn is_received(&self, peer: Peer, mark: u64) -> bool {
        self.inner.is_received(peer, mark)
    }

    fn poll(&mut self, sink: &mut dyn Sink) -> bool {
        self.inner.poll(&mut Counting { sink, arrived: &mut self.arrived })
    }

    fn poll_into<S: Sink>(&mut self, sink: &mut S) -> bool {
        self.inner.poll_into(&mut Counting { sink, arrived: &mut self.arrived })
    }

    fn poll_peer_into<S: Sink>(&mut self, peer: Peer, sink: &mut S) -> bool {
        self.inner.poll_peer_into(peer, &mut Counting { sink, arrived: &mut self.arrived })
    }

    fn poll_thoroughly(&mut self, sink: &mut dyn Sink) -> bool {
        self.inner.poll_thoroughly(&mut Counting { sink, arrived: &mut self.arrived })
    }

    fn nudge(&mut self, peer: Peer) {
        self.inner.nudge(peer);
    }

    fn is_read_out(&self, peer: Peer) -> bool {
        self.inner.is_read_out(peer)
    }

    fn ask_for_group_numbers(&mut self) {
        self.inner.ask_for_group_numbers();
    }

    fn tell_departure(&mut self) {
        self.inner.tell_departure();
    }

    fn leave(&mut self) {
        self.inner.leave();
    }

    fn forget(&mut self, peer: Peer) {
        self.inner.forget(peer);
    }

    fn wake_descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.inner.wake_descriptors()
    }

    fn has_unsent(&self) -> bool {
        self.inner.has_unsent()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::Arrivals;
    use crate::loopback::Loopback;

    #[test]
    fn messages_are_counted_by_peer_and_kind() {
        let own = Peer(0);
        let mut channel = Recorder::new(Loopback::alone(own, 0));
        let send = |channel: &mut Recorder<Loopback>, to, kind, data: &[u8]| {
            channel.try_send(to, &Header::user(kind, data.len() as u32, 1, 2), Bytes::from(data))
        };
        send(&mut channel, own, Kind::Eager, &[1, 2, 3]).unwrap();
        send(&mut channel, own, Kind::Eager, &[4]).unwrap();
        send(&mut channel, own, Kind::Control, &[]).unwrap();
        assert!(send(&mut channel, Peer(1), Kind::Eager, &[]).is_err(), "not counted");
        let eager = Count { messages: 2, data_bytes: 4 };
        assert_eq!(channel.sent().of(own, Kind::Eager), eager);
        assert_eq!(channel.sent().of_kind(Kind::Control), Count { messages: 1, data_bytes: 0 });
        assert_eq!(channel.sent().of_peer(Peer(1)), Count::default());
        assert_eq!(channel.arrived().total(), Count::default());

        let mut arrivals = Arrivals::default();
        arrivals.hold(own, true);
        channel.poll(&mut arrivals);
        assert_eq!(channel.arrived().total(), Count::default(), "held is not arrived");
        arrivals.hold(own, false);
        channel.poll_into(&mut arrivals);
        assert_eq!(channel.arrived(), channel.sent());
        channel.clear();
        assert_eq!(channel.sent().total(), Count::default());
    }
}
