//! Messages in a handoff buffer, called a cell here: see [`landeck_memory::message_cells`].

use landeck_channel::{BrokenPeer, Channel, Peer, Verdict};
use landeck_memory::message_cells::CELL_BYTES;
use landeck_memory::{Bytes, InCell};
use landeck_wire::{Header, Kind};

use crate::arrival::Core;
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::kept::Kept;
use crate::matching::Label;
use crate::request::RequestId;
use crate::status::Status;
use crate::transfer::{Draining, Source, decode_pair, encode_pair};
use crate::work::Work;

impl<N: Channel> Endpoint<N> {
    /// Sends a message in a cell. Returns false without any effect if this process has no cell, the message does not
    /// fit, the peer has other memory, or its channel is full.
    #[inline(never)]
    pub(crate) fn sends_in_cell(&mut self, to: Peer, header: &Header, bytes: Bytes<'_>) -> bool {
        let home = &self.core.segment;
        let shares = |segment: &landeck_memory::Segment| segment.plan().host == home.plan().host;
        if bytes.len() as u64 > CELL_BYTES || !self.near.heap_segment(to).is_some_and(shares) {
            return false;
        }
        let Some(filling) = self.core.cells.begin(bytes) else { return false };
        let place = filling.place();
        let data = encode_pair(place.cell.into(), place.bytes.into());
        let header = Header { kind: Kind::InCell, length: data.len() as u32, ..*header };
        if self.near.try_send(to, &header, (&data[..]).into()).is_err() {
            self.core.cells.give_up(filling);
            return false;
        }
        if self.core.cells.finish(filling, bytes) {
            self.near.nudge(to);
        }
        true
    }
}

impl Core {
    /// Decodes the announcement of a message in a cell. Nothing of it is trusted yet.
    #[inline]
    pub(crate) fn told_of_cell(data: Bytes<'_>) -> Option<InCell> {
        let (cell, bytes) = decode_pair(data)?;
        // A number that is too large identifies no cell.
        let word = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        Some(InCell { cell: word(cell), bytes: word(bytes) })
    }

    pub(crate) fn arrive_in_cell(&mut self, label: Label, data: Bytes<'_>) -> Verdict {
        // A peer without a slot here shares no memory.
        let is_near = label.source < self.segment.plan().slots();
        let Some(place) = Self::told_of_cell(data).filter(|_| is_near) else {
            self.membership.mark_broken(Peer(label.source), BrokenPeer::Reference);
            return Verdict::Taken;
        };
        match self.matching.match_arrival(label) {
            Some(id) => {
                let (peer, tag, bytes) = (Peer(label.source), label.tag, place.bytes.into());
                let (status, number) =
                    (Status { peer, tag, bytes, cancelled: false }, self.matching.number());
                self.receive_in_cell(id, status, place, number);
                Verdict::Taken
            }
            None => self.keep(label, Kept::InCell(place)),
        }
    }

    /// Hands a message in a cell to its receive.
    pub(crate) fn receive_in_cell(
        &mut self,
        id: RequestId,
        status: Status,
        place: InCell,
        number: u64,
    ) {
        self.count_received(status.bytes);
        let Some(work) = self.requests.get_mut(id) else { return };
        let Work::Posted { target, wanted } = std::mem::replace(work, Work::Free) else { return };
        if !self.cells.is_possible(place) {
            let failure = Failure::PeerBroken { peer: status.peer, what: BrokenPeer::Reference };
            return self.requests.put(id, Work::failed(failure));
        }
        let (context, source) = (wanted.context, Source::Cell(place));
        let mut draining =
            Draining { context, source, target, status, position: 0, is_whole: true, number };
        draining.advance(&self.cells);
        let is_complete = draining.is_complete();
        self.requests.put(id, Work::Draining(draining));
        match is_complete {
            true => self.complete_transfer(id),
            false => self.active.push(id),
        }
    }
}
