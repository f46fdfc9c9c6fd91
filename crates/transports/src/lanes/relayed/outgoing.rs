//! The outgoing direction of a pair over a relay.

use landeck_channel::BrokenPeer;
use landeck_channel::pair::{Pair, Positions};
use landeck_memory::FarProcess;
use landeck_wire::relayed::{RELAYED_URGENT_MORE, RelayedPiece};
use landeck_wire::{Class, Header};

use super::super::relay::{RelayEnd, RelayStream};
use super::UNSENT_MAX;

/// The outgoing direction of a pair.
pub(super) struct Outgoing {
    pub(super) process: FarProcess,
    pub(super) host: u16,
    /// The pieces, urgent messages included. They are granted [`RELAYED_URGENT_MORE`] further than ordered ones may go.
    pub(super) pair: Pair<KeptPiece>,
    /// The number of ordered pieces sent.
    sequence: u16,
    /// The message that is not sent to its end.
    pub(super) rest: Option<Rest>,
}

/// A piece that was sent: its frame, and the data of that.
pub(super) struct KeptPiece {
    frame: Header,
    data: Vec<u8>,
}

/// A message with pieces that are not sent.
pub(super) struct Rest {
    pub(super) header: Header,
    pub(super) data: Vec<u8>,
    pub(super) at: usize,
}

impl Outgoing {
    pub(super) fn new(process: FarProcess, (host, connection): (u16, u32), window: u64) -> Self {
        let mut pair = Pair::new(window + RELAYED_URGENT_MORE);
        // It is the first.
        let _ = pair.open(connection);
        Self { process, host, pair, sequence: 0, rest: None }
    }

    /// Whether the receiver has granted a further piece of a class.
    pub(super) fn is_granted(&self, class: Class) -> bool {
        let beside = if class == Class::Urgent { 0 } else { RELAYED_URGENT_MORE };
        self.pair.ahead() > beside
    }

    /// Nobody needs the pieces any more: the receiver is gone.
    pub(super) fn drop_all(&mut self) {
        (self.pair, self.rest) = (Pair::at(self.pair.pushed(), 0), None);
    }

    /// Appends pieces again that the relay does not have.
    pub(super) fn push_again(&mut self, stream: &mut RelayStream) -> Result<(), RelayEnd> {
        while self.pair.is_behind() && stream.unsent() < UNSENT_MAX && self.push_next(stream)? {}
        Ok(())
    }

    /// Appends the next piece; false if there is none.
    fn push_next(&mut self, stream: &mut RelayStream) -> Result<bool, RelayEnd> {
        let Some((position, piece)) = self.pair.next_to_send() else { return Ok(false) };
        let frame = Header { sequence: position as u16, ..piece.frame };
        stream.push(&frame, &piece.data, &[])?;
        Ok(true)
    }

    /// Appends a piece that is granted, behind all others.
    pub(super) fn push(
        &mut self,
        stream: &mut RelayStream,
        header: &Header,
        piece: &[u8],
    ) -> Result<(), RelayEnd> {
        let message = Header { sequence: self.sequence, ..*header };
        let receiver = (self.process.slot, self.process.incarnation);
        let frame = RelayedPiece::frame(header.class, piece.len(), receiver);
        let data = [&message.encode()[..], piece].concat();
        let _ = self.pair.push(KeptPiece { frame, data }, 0);
        if header.class != Class::Urgent {
            self.sequence = self.sequence.wrapping_add(1);
        }
        self.push_next(stream).map(drop)
    }

    /// Appends further pieces of the message that is not sent to its end, as far as they are granted.
    pub(super) fn push_rest(
        &mut self,
        stream: &mut RelayStream,
        piece_max: usize,
    ) -> Result<(), RelayEnd> {
        if self.pair.is_behind() {
            return Ok(());
        }
        let Some(mut rest) = self.rest.take() else { return Ok(()) };
        while self.is_granted(rest.header.class)
            && rest.at < rest.data.len()
            && stream.unsent() < UNSENT_MAX
        {
            let end = rest.data.len().min(rest.at + piece_max);
            let pushed = self.push(stream, &rest.header, &rest.data[rest.at..end]);
            rest.at = end;
            if pushed.is_err() {
                self.rest = Some(rest);
                return pushed;
            }
        }
        if rest.at < rest.data.len() {
            self.rest = Some(rest);
        }
        Ok(())
    }

    /// Takes the relay's word how many pieces came, and how far this process may send.
    pub(super) fn hear(&mut self, received: u64, granted: u64) -> Result<(), BrokenPeer> {
        let told = self.pair.told(self.pair.lane(), Positions { received, granted });
        told.map(drop).map_err(|_| BrokenPeer::Form)
    }

    /// Takes a grant. A receiver grants a window beyond what it has taken, and the relay may have more.
    pub(super) fn hear_grant(&mut self, position: u64, window: u64) -> Result<(), BrokenPeer> {
        let taken = position.saturating_sub(window).max(self.pair.received_there());
        self.hear(taken, position.saturating_add(RELAYED_URGENT_MORE))
    }
}
