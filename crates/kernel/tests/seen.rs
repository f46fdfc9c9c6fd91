//! The messages that have come to the process that a test plays.

use landeck_channel::{BrokenPeer, Sink, Verdict};
use landeck_kernel::Peer;
use landeck_memory::Bytes;
use landeck_wire::Header;

/// The messages that have come.
#[derive(Default)]
pub(crate) struct Seen(pub(crate) Vec<(Header, Vec<u8>)>);

impl Sink for Seen {
    fn arrive(&mut self, _from: Peer, header: &Header, data: Bytes<'_>) -> Verdict {
        self.0.push((*header, data.to_vec()));
        Verdict::Taken
    }

    fn broken(&mut self, from: Peer, what: BrokenPeer) {
        panic!("{from:?}: {what}");
    }
}
