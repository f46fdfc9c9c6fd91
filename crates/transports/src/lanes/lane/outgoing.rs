//! The outgoing half of a lane: what waits for the network, and what is known of what has come.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use landeck_channel::pair::{AHEAD_MAX, Pair, Positions};
use landeck_channel::{BrokenPeer, SendError};
use landeck_memory::Bytes;
use landeck_wire::{HEADER_BYTES, Header, Kind, POSITION_BYTES};
use rustix::io::Errno;

use super::super::burst::{self, Burst, Bursts};
use super::super::framing::{DATA_BYTES_MAX, Spare};
use super::super::sealing::{CannotSeal, Sealing};
use super::super::socket::{self, Moved};
use super::super::unconfirmed::Unconfirmed;
use super::kept::KeptFrame;

/// The outgoing half of a lane.
pub(super) struct Outgoing {
    pub(super) sealing: Sealing,
    /// Bytes that wait, from `begin` on: the rest of what the system did not accept, or the burst that has just ended.
    pub(super) bytes: Vec<u8>,
    pub(super) begin: usize,
    /// The system accepts no more now.
    pub(super) is_blocked: bool,
    /// The messages since the last look, and the number of that.
    pub(super) since_look: u32,
    pub(super) look: u32,
    /// Messages that wait for others, in place of `bytes` while `is_in_burst`.
    pub(super) burst: Option<Arc<Mutex<Burst>>>,
    pub(super) is_in_burst: bool,
    pub(super) unconfirmed: Unconfirmed,
    /// The position that the other side has told of first on this connection.
    pub(super) began_at: Option<u64>,
    /// The position up to which the other side allows to send. Nothing is held back by it yet.
    pub(super) granted: u64,
    /// This side sends nothing new any more.
    pub(super) has_left: bool,
    /// It has said goodbye on this connection, perhaps only to `bytes` so far.
    pub(super) has_said_goodbye: bool,
    /// The reason why nothing can be sent any more, while earlier data of the other side are still read.
    pub(super) mute: Option<Errno>,
}

impl Outgoing {
    pub(super) fn new(sealing: Sealing) -> Self {
        Self {
            sealing,
            bytes: Vec::new(),
            begin: 0,
            is_blocked: false,
            since_look: 0,
            look: 0,
            burst: None,
            is_in_burst: false,
            granted: 0,
            has_left: false,
            has_said_goodbye: false,
            unconfirmed: Unconfirmed::default(),
            began_at: None,
            mute: None,
        }
    }

    #[inline]
    pub(super) fn is_waiting(&self) -> bool {
        self.begin < self.bytes.len() || self.is_in_burst
    }

    /// Whether a message of so many bytes waits for others, if it is sent behind this look.
    #[inline]
    pub(super) fn joins_burst(&mut self, look: u32, bytes: usize) -> bool {
        if self.look != look {
            (self.look, self.since_look) = (look, 0);
        }
        self.since_look = self.since_look.saturating_add(1);
        self.since_look > burst::AT_ONCE && bytes <= burst::MESSAGE_BYTES_MAX
    }

    /// Lets a frame wait for others.
    pub(super) fn wait(
        &mut self,
        socket: &Arc<OwnedFd>,
        header: &Header,
        data: Bytes<'_>,
        (spare, bursts): (&mut Spare, &mut Bursts),
    ) {
        self.append(header, data, spare);
        if self.bytes.len() - self.begin > burst::BYTES_MAX {
            return self.flush(socket, spare);
        }
        let burst = self.burst.get_or_insert_default().clone();
        let mut waiting = burst::lock(&burst);
        (waiting.bytes, waiting.begin) = (std::mem::take(&mut self.bytes), self.begin);
        waiting.socket = Some(socket.clone());
        (self.begin, self.is_in_burst) = (0, true);
        // The thread may just have found nothing, while the bytes were here.
        waiting.is_awaited = waiting.is_awaited || bursts.begin(&burst);
        if !waiting.is_awaited {
            drop(waiting);
            self.flush(socket, spare);
        }
    }

    /// Takes back what waits for others. The thread may have sent some of it.
    #[inline]
    pub(super) fn end_burst(&mut self, spare: &mut Spare) {
        if let (true, Some(burst)) = (std::mem::take(&mut self.is_in_burst), &self.burst) {
            let mut waiting = burst::lock(burst);
            waiting.socket = None;
            (self.bytes, self.begin) = (std::mem::take(&mut waiting.bytes), waiting.begin);
            spare.traffic.sends += std::mem::take(&mut waiting.calls);
            spare.traffic.bytes += std::mem::take(&mut waiting.sent);
            let error = waiting.error.take();
            drop(waiting);
            if let Some(error) = error {
                self.fall_silent();
                self.mute = Some(error);
            }
        }
    }

    pub(super) fn can_append(&self) -> bool {
        !self.is_blocked && !self.has_said_goodbye && self.mute.is_none()
    }

    /// Appends a frame to the bytes that wait.
    pub(super) fn append(&mut self, header: &Header, data: Bytes<'_>, spare: &mut Spare) {
        self.end_burst(spare);
        if self.bytes.capacity() == 0 {
            self.bytes = spare.lend_outgoing();
        }
        spare.count_frame(header);
        self.bytes.extend_from_slice(&header.encode());
        data.append_to(&mut self.bytes);
        if let Err(CannotSeal) = self.sealing.seal_last(&mut self.bytes, data.len()) {
            self.fall_silent();
            self.mute = Some(Errno::KEYREJECTED);
        }
    }

    /// Whether the system would copy data slowly from their place. It lays what it sends into pages, mostly from their
    /// beginnings on, so that one more copy of ours to another place takes less time.
    #[inline]
    pub(super) fn is_slow_from_place(&self, data: Bytes<'_>) -> bool {
        data.are_copied_slowly_to(self.bytes.len() - self.begin + HEADER_BYTES)
    }

    /// Sends a frame in clear from where its data lie, behind what waits, and keeps the rest.
    #[inline]
    pub(super) fn send_from_place(
        &mut self,
        socket: &OwnedFd,
        header: &Header,
        data: Bytes<'_>,
        spare: &mut Spare,
    ) -> Result<(), SendError> {
        self.end_burst(spare);
        let head = header.encode();
        let waiting = &self.bytes[self.begin..];
        let before = waiting.len();
        let moved = match socket::send_parts(socket, waiting, &head, data) {
            Ok(Moved::Bytes(bytes)) => bytes,
            Ok(_) => 0,
            Err(error) => {
                self.fall_silent();
                self.mute = Some(error);
                return Err(SendError::Full);
            }
        };
        spare.count_send(moved);
        if moved >= before {
            spare.count_frame(header);
        }
        if moved == before + head.len() + data.len() {
            if before > 0 {
                self.drained(spare);
            }
            return Ok(());
        }
        if moved < before {
            self.begin += moved;
            self.is_blocked = true;
            return Err(SendError::Full);
        }
        self.drained(spare);
        self.is_blocked = true;
        self.bytes = spare.lend_outgoing();
        let sent = moved - before;
        self.bytes.extend_from_slice(&head[sent.min(head.len())..]);
        data.part(sent.saturating_sub(head.len()), DATA_BYTES_MAX).append_to(&mut self.bytes);
        Ok(())
    }

    /// Sends waiting bytes, as far as the network accepts them.
    pub(super) fn flush(&mut self, socket: &OwnedFd, spare: &mut Spare) {
        self.end_burst(spare);
        while self.is_waiting() {
            match socket::send(socket, &self.bytes[self.begin..]) {
                Ok(Moved::Bytes(bytes)) => {
                    spare.count_send(bytes);
                    self.begin += bytes;
                }
                Ok(_) => {
                    spare.count_send(0);
                    self.is_blocked = true;
                    return;
                }
                Err(error) => {
                    self.fall_silent();
                    self.mute = Some(error);
                    return;
                }
            }
        }
        if self.bytes.capacity() > 0 {
            self.drained(spare);
            if self.has_said_goodbye {
                socket::end_sending(socket);
            }
        }
    }

    /// Gives the memory back, as nothing waits in it.
    pub(super) fn drained(&mut self, spare: &mut Spare) {
        spare.take_back_outgoing(std::mem::take(&mut self.bytes));
        (self.begin, self.is_blocked) = (0, false);
    }

    /// Drops what waits: nothing can be sent any more.
    pub(super) fn fall_silent(&mut self) {
        if let Some(burst) = self.burst.as_ref().filter(|_| self.is_in_burst) {
            let mut waiting = burst::lock(burst);
            (waiting.socket, waiting.bytes) = (None, Vec::new());
        }
        self.is_in_burst = false;
        self.bytes = Vec::new();
        (self.begin, self.is_blocked) = (0, false);
    }

    /// Accepts the other side's word about a position.
    pub(super) fn hear_position(
        &mut self,
        pair: &mut Pair<KeptFrame>,
        header: &Header,
        data: &[u8],
    ) -> Result<(), BrokenPeer> {
        let position: &[u8; POSITION_BYTES] = data.try_into().map_err(|_| BrokenPeer::Form)?;
        let position = u64::from_le_bytes(*position);
        match header.kind {
            Kind::Received => {
                let granted = position.saturating_add(AHEAD_MAX);
                // Positions only grow, and nobody receives what was not sent.
                let heard = pair.told(pair.lane(), Positions { received: position, granted });
                heard.map_err(|_| BrokenPeer::Form)?;
                self.unconfirmed.taken(position);
                self.began_at.get_or_insert(position);
            }
            Kind::Granted if position >= self.granted => self.granted = position,
            _ => return Err(BrokenPeer::Form),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::FIRST;
    use super::*;

    /// A pair that has sent ten frames, four of which were received.
    fn pair() -> Pair<KeptFrame> {
        let mut pair = Pair::new(AHEAD_MAX);
        pair.open(FIRST).unwrap();
        for _ in 0..10 {
            let frame = KeptFrame::new(&Header::user(Kind::Eager, 0, 0, 0), Bytes::EMPTY);
            pair.push(frame, 0).unwrap();
            pair.next_to_send();
        }
        let positions = Positions { received: 4, granted: AHEAD_MAX };
        pair.told(FIRST, positions).unwrap();
        pair
    }

    #[test]
    fn positions_only_grow_and_nobody_receives_what_was_not_sent() {
        for (kind, position, is_right) in [
            (Kind::Received, 4, true),
            (Kind::Received, 10, true),
            (Kind::Received, 3, false),
            (Kind::Received, 11, false),
            (Kind::Received, u64::MAX, false),
            (Kind::Granted, 20, true),
            (Kind::Granted, u64::MAX, true),
            (Kind::Granted, 19, false),
        ] {
            let data = u64::to_le_bytes(position);
            let mut outgoing = Outgoing { granted: 20, ..Outgoing::new(Sealing::Plain) };
            let heard = outgoing.hear_position(&mut pair(), &Header::position(kind), &data);
            assert_eq!(heard.is_ok(), is_right, "{kind:?} {position}");
        }
        let header = Header::position(Kind::Received);
        let short = Outgoing::new(Sealing::Plain).hear_position(&mut pair(), &header, &[0; 7]);
        assert_eq!(short, Err(BrokenPeer::Form));
    }
}
