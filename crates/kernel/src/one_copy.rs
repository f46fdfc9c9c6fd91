//! Long messages in one copy: the kernel of the system copies the data out of the sender's memory into the receiver's.
//!
//! Such a message is an offer that also tells where the data lie (`Told`). Its receiver reads them when it has met its
//! receive, and answers [`Kind::Done`]; then the send is complete. A receiver that may not read answers
//! [`Kind::Accept`], and the data follow in parts as with any offer. So cancelling, matched probes, synchronous sends and
//! messages that are put back are those of offers.
//!
//! A read counts only if the sender's mark was unchanged after it. A send that ends before the answer retracts the mark,
//! so nobody takes for whole what the sender's program has written since.

use landeck_channel::{BrokenPeer, Channel, Peer, SendError};
use landeck_memory::{ProcessMark, ReadRefused};
use landeck_wire::way::{Extent, MessageWay, OneCopy, OneCopySource, Receiver};
use landeck_wire::{Header, Kind};

use crate::area::Area;
use crate::arrival::Core;
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::mailboxes::FIRST_MAILBOX;
use crate::reading::{Reading, takes_one_copy};
use crate::request::RequestId;
use crate::status::Status;
use crate::told::Told;
use crate::transfer::{Collecting, Reply, Target, encode_pair};
use crate::work::Work;

/// The tag of an acceptance whose sender cannot read the offered data where they lie.
const CANNOT_READ: u32 = 1;

impl<N: Channel> Endpoint<N> {
    /// Sets the length from which messages on this host are copied once, out of this process's memory.
    pub fn set_one_copy_from(&mut self, bytes: u64) {
        self.core.one_copies.set(None, Some(bytes));
    }

    /// Sets that length for one context.
    pub fn set_one_copy_from_in(&mut self, context: u32, bytes: u64) {
        self.core.one_copies.set(Some(context), Some(bytes));
    }

    /// The receiver of a message, for the choice of its way. Messages of mailboxes are not told of: nobody would say that
    /// such a mailbox is gone.
    #[inline]
    pub(crate) fn near_receiver(&self, to: Peer, context: u32) -> Receiver {
        let in_message = self.near.data_bytes_max() as u64;
        let one_copy_from = match self.core.one_copies.is_on {
            true => self.one_copy_from(to, context),
            false => OneCopy::NEVER,
        };
        Receiver::Near { in_message, one_copy_from }
    }

    /// The data of a send, for the choice of its way: their places count where messages may be read.
    #[inline]
    pub(crate) fn extent_of(&self, area: &Area) -> Extent {
        match self.core.one_copies.is_on {
            true => area.extent(),
            false => Extent::whole(area.packed_bytes()),
        }
    }

    /// The number of the way of a message in a context, with the source that decides from which length on it is copied
    /// once.
    #[cold]
    pub(crate) fn number_of_way(&self, way: MessageWay, context: u32) -> u8 {
        let Core { segment, slot, one_copies, .. } = &self.core;
        way.number_with(match one_copies.from.contains_key(&context) {
            true => OneCopySource::Asked,
            false => OneCopySource::from_number(segment.one_copy_source(*slot)),
        })
    }

    #[inline(never)]
    fn one_copy_from(&self, to: Peer, context: u32) -> u64 {
        let (core, copies) = (&self.core, &self.core.one_copies);
        let plan = core.segment.plan();
        let is_neighbour = to.0 < plan.slots()
            && to.0 != core.slot
            && self.near.heap_segment(to).is_some_and(|its| its.plan().host == plan.host);
        if !is_neighbour || context >= FIRST_MAILBOX || copies.refused.contains(&to.0) {
            return OneCopy::NEVER;
        }
        copies.from.get(&context).copied().unwrap_or(copies.usual_from)
    }

    /// Offers a message and tells where its data lie; `None` if they lie in too many places, or the channel cannot carry
    /// so long an offer.
    pub(crate) fn start_told_offer(
        &mut self,
        id: RequestId,
        to: Peer,
        header: Header,
        area: &Area,
    ) -> Option<Work> {
        let told = Told::of(area)?;
        let mut offer = encode_pair(area.packed_bytes(), id.to_bits()).to_vec();
        told.encode_to(&mut offer);
        let header_out = Header { kind: Kind::Offer, length: offer.len() as u32, ..header };
        let area = area.clone();
        match self.try_channel(to, &header_out, (&offer[..]).into()) {
            Ok(()) => {
                let (context, tag) = (header.context, header.tag);
                let (is_standard, is_told) = (false, true);
                Some(Work::Offered { to, context, area, tag, is_standard, is_told })
            }
            Err(SendError::Gone) => Some(Work::failed(self.gone(to))),
            Err(SendError::Full) => Some(Work::Queued { to, header, area, loan: None }),
            Err(SendError::TooLong) => None,
        }
    }

    /// Makes one step of a receive that reads; returns whether it moved, and whether it continues.
    pub(crate) fn move_reading(&mut self, id: RequestId) -> (bool, bool) {
        let Core { requests, one_copies, .. } = &mut self.core;
        let Some(Work::Reading(reading)) = requests.get_mut(id) else { return (false, false) };
        let before = reading.position;
        if let Err(refused) = reading.advance(&mut one_copies.between) {
            self.core.read_otherwise(id, refused);
            // The answer goes now: perhaps this process does not look again for long.
            self.send_replies();
            return (true, false);
        }
        if !reading.is_read() {
            return (true, true);
        }
        let (from, send, moved) = (reading.status.peer, reading.send, reading.position != before);
        // The receive is complete when the sender's memory is free: whoever receives may not look again for long.
        let data = encode_pair(send, 0);
        let header = Header::user(Kind::Done, data.len() as u32, 0, 0);
        if self.try_channel(from, &header, (&data[..]).into()) == Err(SendError::Full) {
            return (moved, true);
        }
        let Some(work) = self.core.requests.get_mut(id) else { return (true, false) };
        if let Work::Reading(Reading { target, status, .. }) = std::mem::replace(work, Work::Free) {
            self.core.requests.put(id, Work::Done(target.complete(status)));
        }
        (true, false)
    }
}

impl Core {
    /// Begins to read an offered message for its receive. False if the data are to come in parts.
    pub(crate) fn read_offer(
        &mut self,
        id: RequestId,
        status: Status,
        (send, told): (u64, Told),
        number: u64,
    ) -> bool {
        let takes =
            |work: &Work| matches!(work, Work::Posted { target, .. } if takes_one_copy(target));
        if self.cannot_read(status.peer) || !self.requests.get(id).is_some_and(takes) {
            return false;
        }
        self.count_received(status.bytes);
        let Some(work) = self.requests.get_mut(id) else { return true };
        let Work::Posted { target, wanted } = std::mem::replace(work, Work::Free) else {
            return true;
        };
        let reading = Reading::new(wanted.context, target, status, (send, told), number);
        *work = Work::Reading(reading);
        self.active.push(id);
        true
    }

    /// Whether this process was refused a read of that one's memory for good.
    pub(crate) fn cannot_read(&self, peer: Peer) -> bool {
        self.one_copies.unreadable.contains(&peer.0)
    }

    /// Receives a message in parts that could not be read, from its beginning. The sender's end, if that was the reason,
    /// ends the receive. Memory that the sender no longer has ends it now.
    #[cold]
    fn read_otherwise(&mut self, id: RequestId, refused: ReadRefused) {
        let Some(work) = self.requests.get_mut(id) else { return };
        let Work::Reading(reading) = std::mem::replace(work, Work::Free) else { return };
        let Reading { context, mut target, status, send, number, .. } = reading;
        let peer = status.peer;
        if let ReadRefused::Unmapped { .. } = refused {
            let what = BrokenPeer::Unmapped;
            self.requests.put(id, Work::failed(Failure::PeerBroken { peer, what }));
            return self.answer_offer(peer, Kind::Done, 0, (send, 0));
        }
        let is_lasting = !matches!(refused, ReadRefused::Retracted { .. });
        if is_lasting {
            self.one_copies.unreadable.insert(peer.0);
        }
        if let Target::Own(own) = &mut target {
            own.clear();
        }
        let (position, named) = (0, id);
        let collecting = Collecting { context, target, status, position, send, named, number };
        self.requests.put(id, Work::Collecting(collecting));
        self.ask_for_parts(peer, send, id, is_lasting);
    }

    /// Asks for the parts of a message; says whether this process cannot read any.
    pub(crate) fn ask_for_parts(
        &mut self,
        from: Peer,
        send: u64,
        id: RequestId,
        cannot_read: bool,
    ) {
        let tag = if cannot_read { CANNOT_READ } else { 0 };
        self.answer_offer(from, Kind::Accept, tag, (send, id.to_bits()));
    }

    fn answer_offer(&mut self, to: Peer, kind: Kind, tag: u32, (send, receive): (u64, u64)) {
        let data = encode_pair(send, receive);
        self.replies.push(Reply::new(to, Header::user(kind, data.len() as u32, 0, tag), &data));
    }

    /// Notes that the sender of an acceptance cannot read this process's memory, if it says so.
    #[inline]
    pub(crate) fn note_reader(&mut self, from: Peer, acceptance: &Header) {
        if acceptance.tag == CANNOT_READ {
            self.one_copies.refused.insert(from.0);
        }
    }

    /// A send that was told of ends before its receiver has answered.
    #[cold]
    pub(crate) fn retract_told(&self) {
        ProcessMark::retract();
    }
}
