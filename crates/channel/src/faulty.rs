//! A channel with the faults of real ones: it refuses, delays, and loses connections. A [`Rule`] decides when; with a
//! seeded rule a failure can be replayed.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::BorrowedFd;

use landeck_memory::{Bytes, Segment};
use landeck_wire::Header;

use crate::{BrokenPeer, Channel, Peer, SendError, Sink, Verdict};

/// The fate of a message that is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// It is sent.
    Pass,
    /// It is refused with [`SendError::Full`].
    Refuse,
    /// The connection ends in front of the message, in both directions.
    Cut,
}

/// The fate of a message that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arriving {
    /// The sink gets it.
    Pass,
    /// The message and those behind it from the same peer are delayed for so many more polls.
    Delay(u32),
    /// The connection ends in front of the message, in both directions.
    Cut,
}

/// Decides which faults occur.
pub trait Rule: Send {
    /// Called for each message to be sent.
    fn sending(&mut self, _to: Peer, _header: &Header) -> Sending {
        Sending::Pass
    }

    /// Called once for each message that arrives.
    fn arriving(&mut self, _from: Peer, _header: &Header) -> Arriving {
        Arriving::Pass
    }
}

/// A channel whose messages are subject to a rule.
pub struct Faulty<C, R> {
    inner: C,
    rule: R,
    state: State,
}

/// The effects of the rule so far.
#[derive(Default)]
struct State {
    polls: u64,
    /// The poll in which the first message of a peer passes; the rule has been asked about it.
    passes_at: BTreeMap<Peer, u64>,
    cut: BTreeSet<Peer>,
}

impl<C: Channel, R: Rule> Faulty<C, R> {
    /// Puts `rule` between `inner` and its user.
    pub fn new(inner: C, rule: R) -> Self {
        Self { inner, rule, state: State::default() }
    }

    /// The rule, for changes.
    pub fn rule(&mut self) -> &mut R {
        &mut self.rule
    }

    /// Ends the connection to a peer, in both directions.
    pub fn cut(&mut self, peer: Peer) {
        self.state.cut(peer);
    }

    fn next_poll(&mut self) -> (&mut C, &mut R, &mut State) {
        self.state.polls += 1;
        (&mut self.inner, &mut self.rule, &mut self.state)
    }
}

impl State {
    fn cut(&mut self, peer: Peer) {
        self.cut.insert(peer);
        self.passes_at.remove(&peer);
    }

    /// Whether a message passes in this poll; asks the rule when it is seen for the first time.
    fn passes(&mut self, rule: &mut impl Rule, from: Peer, header: &Header) -> bool {
        let polls = self.polls;
        let at = *self.passes_at.entry(from).or_insert_with(|| match rule.arriving(from, header) {
            Arriving::Pass => polls,
            Arriving::Delay(more) => polls + u64::from(more),
            Arriving::Cut => u64::MAX,
        });
        if at == u64::MAX {
            self.cut(from);
        }
        at <= polls
    }
}

/// The caller's sink behind the rule.
struct Gate<'a, S: ?Sized, R> {
    sink: &'a mut S,
    rule: &'a mut R,
    state: &'a mut State,
}

impl<S: Sink + ?Sized, R: Rule> Sink for Gate<'_, S, R> {
    fn arrive(&mut self, from: Peer, header: &Header, data: Bytes<'_>) -> Verdict {
        if self.state.cut.contains(&from) {
            return Verdict::Taken;
        }
        if !self.state.passes(self.rule, from, header) {
            let is_cut = self.state.cut.contains(&from);
            return if is_cut { Verdict::Taken } else { Verdict::Held };
        }
        let verdict = self.sink.arrive(from, header, data);
        if verdict == Verdict::Taken {
            self.state.passes_at.remove(&from);
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
        if !self.state.cut.contains(&from) {
            self.sink.broken(from, what);
        }
    }
}

impl<C: Channel, R: Rule> Channel for Faulty<C, R> {
    fn data_bytes_max(&self) -> usize {
        self.inner.data_bytes_max()
    }

    fn heap_segment(&self, peer: Peer) -> Option<&Segment> {
        self.inner.heap_segment(peer)
    }

    fn try_send(&mut self, to: Peer, header: &Header, data: Bytes<'_>) -> Result<(), SendError> {
        if self.state.cut.contains(&to) {
            return Err(SendError::Gone);
        }
        if data.len() > self.data_bytes_max() {
            return Err(SendError::TooLong);
        }
        match self.rule.sending(to, header) {
            Sending::Pass => self.inner.try_send(to, header, data),
            Sending::Refuse => Err(SendError::Full),
            Sending::Cut => {
                self.cut(to);
                Err(SendError::Gone)
            }
        }
    }

    fn sent_mark(&self, peer: Peer) -> u64 {
        self.inner.sent_mark(peer)
    }

    fn is_received(&self, peer: Peer, mark: u64) -> bool {
        self.inner.is_received(peer, mark)
    }

    fn poll(&mut self, sink: &mut dyn Sink) -> bool {
        let (inner, rule, state) = self.next_poll();
        inner.poll(&mut Gate { sink, rule, state })
    }

    fn poll_into<S: Sink>(&mut self, sink: &mut S) -> bool {
        let (inner, rule, state) = self.next_poll();
        inner.poll_into(&mut Gate { sink, rule, state })
    }

    fn poll_peer_into<S: Sink>(&mut self, peer: Peer, sink: &mut S) -> bool {
        let (inner, rule, state) = self.next_poll();
        inner.poll_peer_into(peer, &mut Gate { sink, rule, state })
    }

    fn poll_thoroughly(&mut self, sink: &mut dyn Sink) -> bool {
        let (inner, rule, state) = self.next_poll();
        inner.poll_thoroughly(&mut Gate { sink, rule, state })
    }

    fn nudge(&mut self, peer: Peer) {
        self.inner.nudge(peer);
    }

    fn is_read_out(&self, peer: Peer) -> bool {
        self.state.cut.contains(&peer) || self.inner.is_read_out(peer)
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
        self.state.cut.remove(&peer);
        self.state.passes_at.remove(&peer);
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
    use landeck_wire::Kind;

    const OWN: Peer = Peer(0);

    /// The rule's answers, the last one first; afterwards everything passes.
    #[derive(Default)]
    struct Script {
        sending: Vec<Sending>,
        arriving: Vec<Arriving>,
    }

    impl Rule for Script {
        fn sending(&mut self, _: Peer, _: &Header) -> Sending {
            self.sending.pop().unwrap_or(Sending::Pass)
        }

        fn arriving(&mut self, _: Peer, _: &Header) -> Arriving {
            self.arriving.pop().unwrap_or(Arriving::Pass)
        }
    }

    fn channel(script: Script) -> Faulty<Loopback, Script> {
        Faulty::new(Loopback::alone(OWN, 0), script)
    }

    fn send(channel: &mut impl Channel, tag: u32) -> Result<(), SendError> {
        channel.try_send(OWN, &Header::user(Kind::Eager, 0, 1, tag), Bytes::EMPTY)
    }

    fn tags(arrivals: &mut Arrivals) -> Vec<u32> {
        arrivals.take().iter().map(|arrival| arrival.header.tag).collect()
    }

    #[test]
    fn a_refused_message_is_not_sent() {
        let mut channel = channel(Script { sending: vec![Sending::Refuse], ..Script::default() });
        assert_eq!(send(&mut channel, 1), Err(SendError::Full));
        send(&mut channel, 2).unwrap();
        let mut arrivals = Arrivals::default();
        channel.poll(&mut arrivals);
        assert_eq!(tags(&mut arrivals), [2]);
    }

    #[test]
    fn a_delayed_message_arrives_later_and_in_order() {
        let mut channel =
            channel(Script { arriving: vec![Arriving::Delay(2)], ..Script::default() });
        send(&mut channel, 1).unwrap();
        send(&mut channel, 2).unwrap();
        let mut arrivals = Arrivals::default();
        assert!(!channel.poll(&mut arrivals) && !channel.poll(&mut arrivals));
        assert!(channel.poll_thoroughly(&mut arrivals));
        assert_eq!(tags(&mut arrivals), [1, 2]);
    }

    #[test]
    fn after_a_cut_nothing_passes_until_the_peer_is_forgotten() {
        for script in [
            Script { sending: vec![Sending::Cut, Sending::Pass], ..Script::default() },
            Script { arriving: vec![Arriving::Cut], ..Script::default() },
        ] {
            let mut channel = channel(script);
            send(&mut channel, 1).unwrap();
            let _ = send(&mut channel, 2);
            let mut arrivals = Arrivals::default();
            channel.poll(&mut arrivals);
            assert!(channel.is_read_out(OWN));
            assert_eq!(send(&mut channel, 3), Err(SendError::Gone));
            assert_eq!(tags(&mut arrivals), []);
            channel.forget(OWN);
            send(&mut channel, 4).unwrap();
            channel.poll(&mut arrivals);
            assert_eq!(tags(&mut arrivals), [4]);
        }
    }
}
