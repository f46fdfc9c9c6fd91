//! A network for tests, whose looks are counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use landeck_channel::loopback::Loopback;
use landeck_channel::{Channel, SendError, Sink};
use landeck_kernel::Peer;
use landeck_memory::Bytes;
use landeck_wire::Header;

/// A network that counts how often it is looked at.
pub(crate) struct CountingNetwork {
    pub(crate) inner: Loopback,
    pub(crate) polls: Arc<AtomicU32>,
}

impl Channel for CountingNetwork {
    fn data_bytes_max(&self) -> usize {
        self.inner.data_bytes_max()
    }

    fn try_send(&mut self, to: Peer, header: &Header, data: Bytes<'_>) -> Result<(), SendError> {
        self.inner.try_send(to, header, data)
    }

    fn poll(&mut self, sink: &mut dyn Sink) -> bool {
        self.polls.fetch_add(1, Ordering::Relaxed);
        self.inner.poll(sink)
    }

    fn is_read_out(&self, peer: Peer) -> bool {
        self.inner.is_read_out(peer)
    }

    fn leave(&mut self) {}

    fn forget(&mut self, _peer: Peer) {}
}
