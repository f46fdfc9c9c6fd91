//! The channel that needs no network: endpoints of one process, including the sender itself.
//!
//! Kernels are tested on it, and it is the simplest example of a [`Channel`]: queues of whole messages, with a limit in
//! bytes for each pair of endpoints.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use landeck_memory::Bytes;
use landeck_wire::{HEADER_BYTES, Header, Kind};

use crate::{Channel, Peer, SendError, Sink, Verdict};

/// The longest data of one message.
pub const DATA_BYTES_MAX: usize = 16 * 1024;
/// The most bytes of a part that come to its place at once.
const PIECE_BYTES: usize = 5 * 1024;

/// The connections between endpoints. They are cheap to clone.
#[derive(Clone)]
pub struct Wires {
    shared: Arc<Mutex<Shared>>,
    queue_bytes_max: usize,
}

/// One endpoint.
pub struct Loopback {
    wires: Wires,
    own: Peer,
    has_left: bool,
}

#[derive(Default)]
struct Shared {
    present: BTreeSet<Peer>,
    queues: BTreeMap<Way, Queue>,
    /// Connections of endpoints that ended and that the other end has not forgotten yet.
    ended: BTreeSet<Way>,
}

/// The sender and the receiver.
type Way = (Peer, Peer);

#[derive(Default)]
struct Queue {
    messages: VecDeque<(Header, Vec<u8>)>,
    bytes: usize,
    sequence: u16,
}

impl Wires {
    /// Creates wires without endpoints. `queue_bytes_max` limits the bytes under way from one endpoint to another; one
    /// message of full length always fits.
    pub fn new(queue_bytes_max: usize) -> Self {
        let queue_bytes_max = queue_bytes_max.max(HEADER_BYTES + DATA_BYTES_MAX);
        Self { shared: Arc::default(), queue_bytes_max }
    }

    /// Creates an endpoint, which the others call `own`. An earlier one of this number must have ended, and the others
    /// must have forgotten it.
    pub fn endpoint(&self, own: Peer) -> Loopback {
        self.lock().present.insert(own);
        Loopback { wires: self.clone(), own, has_left: false }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Loopback {
    /// Creates an endpoint that reaches only itself.
    pub fn alone(own: Peer, queue_bytes_max: usize) -> Self {
        Wires::new(queue_bytes_max).endpoint(own)
    }

    fn senders(&self) -> Vec<Peer> {
        let shared = self.wires.lock();
        shared.queues.keys().filter(|way| way.1 == self.own).map(|way| way.0).collect()
    }

    fn take_first(&self, from: Peer) -> Option<(Header, Vec<u8>)> {
        let mut shared = self.wires.lock();
        let queue = shared.queues.get_mut(&(from, self.own))?;
        let (header, data) = queue.messages.pop_front()?;
        queue.bytes -= HEADER_BYTES + data.len();
        Some((header, data))
    }

    fn put_back(&self, from: Peer, header: Header, data: Vec<u8>) {
        let mut shared = self.wires.lock();
        let queue = shared.queues.entry((from, self.own)).or_default();
        queue.bytes += HEADER_BYTES + data.len();
        queue.messages.push_front((header, data));
    }
}

impl Channel for Loopback {
    fn data_bytes_max(&self) -> usize {
        DATA_BYTES_MAX
    }

    fn try_send(&mut self, to: Peer, header: &Header, data: Bytes<'_>) -> Result<(), SendError> {
        if data.len() > DATA_BYTES_MAX {
            return Err(SendError::TooLong);
        }
        let mut shared = self.wires.lock();
        let is_there = shared.present.contains(&to) && !shared.ended.contains(&(to, self.own));
        if self.has_left || !is_there {
            return Err(SendError::Gone);
        }
        let queue = shared.queues.entry((self.own, to)).or_default();
        let bytes = queue.bytes + HEADER_BYTES + data.len();
        if bytes > self.wires.queue_bytes_max {
            return Err(SendError::Full);
        }
        let header = Header { sequence: queue.sequence, ..*header };
        queue.sequence = queue.sequence.wrapping_add(1);
        queue.bytes = bytes;
        queue.messages.push_back((header, data.to_vec()));
        Ok(())
    }

    fn poll(&mut self, sink: &mut dyn Sink) -> bool {
        let mut any = false;
        for from in self.senders() {
            while let Some((header, mut data)) = self.take_first(from) {
                // A part goes to its place in pieces, as a network brings it.
                if header.kind == Kind::Part
                    && !data.is_empty()
                    && let Some(place) = sink.place(from, &header)
                {
                    let piece = place.write(0, Bytes::from(&data[..data.len().min(PIECE_BYTES)]));
                    sink.placed(from, &header, piece);
                    any = true;
                    if piece < data.len() {
                        data.drain(..piece);
                        let rest = Header { length: data.len() as u32, ..header };
                        self.put_back(from, rest, data);
                    }
                    continue;
                }
                if sink.arrive(from, &header, Bytes::from(&data[..])) == Verdict::Held {
                    self.put_back(from, header, data);
                    break;
                }
                any = true;
            }
        }
        any
    }

    fn is_read_out(&self, peer: Peer) -> bool {
        let shared = self.wires.lock();
        let way_back = (peer, self.own);
        let is_ended = !shared.present.contains(&peer) || shared.ended.contains(&way_back);
        is_ended && shared.queues.get(&way_back).is_none_or(|queue| queue.messages.is_empty())
    }

    fn leave(&mut self) {
        self.has_left = true;
    }

    fn forget(&mut self, peer: Peer) {
        let mut shared = self.wires.lock();
        shared.ended.remove(&(peer, self.own));
        shared.queues.remove(&(peer, self.own));
        shared.queues.remove(&(self.own, peer));
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        let own = self.own;
        let mut shared = self.wires.lock();
        shared.present.remove(&own);
        shared.queues.retain(|way, _| way.1 != own);
        shared.ended.retain(|way| way.1 != own);
        let ways: Vec<Way> = shared.present.iter().map(|other| (own, *other)).collect();
        shared.ended.extend(ways);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::Arrivals;

    #[test]
    fn a_process_can_talk_to_itself() {
        let mut own = Loopback::alone(Peer(7), 0);
        let header = Header::user(Kind::Eager, 3, 1, 2);
        own.try_send(Peer(7), &header, Bytes::from(&[1, 2, 3][..])).unwrap();
        assert_eq!(own.try_send(Peer(8), &header, Bytes::EMPTY), Err(SendError::Gone));
        let mut arrivals = Arrivals::default();
        assert!(own.poll(&mut arrivals) && !own.poll(&mut arrivals));
        let arrived = arrivals.take();
        assert_eq!((arrived[0].from, &arrived[0].data[..]), (Peer(7), &[1, 2, 3][..]));
    }

    #[test]
    fn one_message_of_full_length_fits_whatever_the_limit() {
        let mut own = Loopback::alone(Peer(0), 0);
        let header = Header::user(Kind::Eager, DATA_BYTES_MAX as u32, 1, 2);
        let data = vec![5; DATA_BYTES_MAX];
        own.try_send(Peer(0), &header, Bytes::from(&data[..])).unwrap();
        assert_eq!(own.try_send(Peer(0), &header, Bytes::EMPTY), Err(SendError::Full));
    }
}
