//! Parts of long messages in clear, which are read straight into the memory of their receive.
//!
//! A place is used in the call that asked for it, and never later: the receive that it belongs to may end between two
//! calls. A part may come in several such pieces, of which the sink learns one by one. A sealed part means nothing
//! before it is whole, and it is opened in the staging memory: opening it in its place was no faster.

use std::os::fd::OwnedFd;

use landeck_channel::pair::Pair;
use landeck_channel::{BrokenPeer, Peer, Sink};
use landeck_memory::{Buffer, Bytes};
use landeck_wire::{HEADER_BYTES, Header, Kind};
use rustix::io::Errno;

use super::super::framing::Spare;
use super::super::sealing::Opening;
use super::super::socket::{self, Moved};
use super::kept::KeptFrame;
use super::{Incoming, REST_BYTES_MAX};

/// The most bytes that are read where a part is expected, so that most of its data are left for their place.
const SIP_BYTES: usize = 2 * 1024;

/// The part that is coming, and whether others are expected.
#[derive(Default)]
pub(super) struct Parts {
    /// The rest of a part in clear whose header and first bytes have left the staging memory.
    pub(super) rest: Option<Header>,
    /// The length of the whole part of which `rest` is left.
    whole: u32,
    /// The first bytes of the next part that the sink already has. They came on an earlier lane.
    skipped: u32,
    /// The next frame may be a part.
    pub(super) are_expected: bool,
}

impl Parts {
    /// The lane has ended: its next one brings the part that is coming from its beginning.
    pub(super) fn begin_again(&mut self) {
        if let Some(rest) = self.rest.take() {
            self.skipped = self.whole - rest.length;
        }
    }
}

impl Incoming {
    /// The first frame and the place of its data, if that is a part of which something is still to come.
    #[inline]
    pub(super) fn place<S: Sink + ?Sized>(
        &mut self,
        pair: &Pair<KeptFrame>,
        from: Peer,
        sink: &mut S,
    ) -> Option<(Header, Buffer)> {
        let is_staged = self.parts.skipped > 0 || matches!(self.opening, Opening::Sealed(_));
        if self.is_complete || is_staged {
            return None;
        }
        let header = match self.parts.rest {
            Some(rest) if self.framing.staged().len() < rest.length as usize => rest,
            Some(_) => return None,
            None => self.framing.begun(&self.opening).filter(|it| is_next_part(pair, it))?,
        };
        let place = sink.place(from, &header)?;
        (place.len() == header.length as usize).then_some((header, place))
    }

    /// Passes over the first bytes of a part that the sink already has. Returns whether the frames can be offered now.
    #[cold]
    pub(super) fn skip(&mut self, pair: &Pair<KeptFrame>) -> Result<bool, BrokenPeer> {
        let Some(header) = self.framing.header()? else { return Ok(false) };
        if matches!(header.kind, Kind::Received | Kind::Granted) {
            return Ok(true);
        }
        let skipped = self.parts.skipped;
        if !is_next_part(pair, &header) || header.length <= skipped {
            return Err(BrokenPeer::Form);
        }
        let bytes = HEADER_BYTES + skipped as usize;
        if self.framing.staged().len() < bytes {
            return Ok(false);
        }
        self.framing.skip(bytes);
        self.parts.rest = Some(Header { length: header.length - skipped, ..header });
        (self.parts.whole, self.parts.skipped) = (header.length, 0);
        Ok(true)
    }

    /// Whether the first part that comes is to be passed over in part.
    #[inline]
    pub(super) fn skips(&self) -> bool {
        self.parts.skipped > 0
    }

    /// Reads into the staging memory.
    #[inline]
    pub(super) fn read_staged(
        &mut self,
        socket: &OwnedFd,
        spare: &mut Spare,
    ) -> Result<Moved, Errno> {
        let sips = self.parts.are_expected
            && self.framing.is_empty()
            && matches!(self.opening, Opening::Plain);
        let room = self.framing.room(spare);
        let most = if sips { room.len().min(SIP_BYTES) } else { room.len() };
        if most == 0 {
            return Ok(Moved::Bytes(0));
        }
        spare.traffic.receives += 1;
        let moved = socket::receive(socket, &mut room[..most])?;
        if let Moved::Bytes(bytes) = moved {
            self.framing.filled(bytes);
        }
        Ok(moved)
    }

    /// Reads a part into its place; also returns whether the sink has learned of any data.
    pub(super) fn read_to<S: Sink + ?Sized>(
        &mut self,
        socket: &OwnedFd,
        (pair, from): (&mut Pair<KeptFrame>, Peer),
        (header, place): (Header, Buffer),
        sink: &mut S,
        spare: &mut Spare,
    ) -> (Result<Moved, Errno>, bool) {
        match self.read_in_clear(socket, &header, place, spare) {
            Ok((moved, bytes)) => {
                if bytes > 0 {
                    sink.placed(from, &header, bytes);
                    self.count_placed(pair, &header, bytes);
                }
                (Ok(moved), bytes > 0)
            }
            // The program gave memory that it does not have, and faults when the data are copied there.
            Err(Errno::FAULT) => (self.read_staged(socket, spare), false),
            Err(error) => (Err(error), false),
        }
    }

    fn count_placed(&mut self, pair: &mut Pair<KeptFrame>, header: &Header, bytes: usize) {
        let length = header.length - bytes as u32;
        if self.parts.rest.is_none() {
            self.parts.whole = header.length;
        }
        self.unreported_bytes += bytes as u64;
        self.parts.rest = (length > 0).then_some(Header { length, ..*header });
        if length == 0 {
            self.count(pair, header);
        }
    }

    /// Moves bytes of a part in clear to its place, first those that were read before; returns how many.
    fn read_in_clear(
        &mut self,
        socket: &OwnedFd,
        header: &Header,
        place: Buffer,
        spare: &mut Spare,
    ) -> Result<(Moved, usize), Errno> {
        let head = if self.parts.rest.is_some() { 0 } else { HEADER_BYTES };
        let staged = &self.framing.staged()[head..];
        let before = place.write(0, Bytes::from(staged));
        let mut next = [0; HEADER_BYTES];
        let left = place.part(before, usize::MAX);
        spare.traffic.receives += 1;
        let moved = match socket::receive_to(socket, left, &mut next) {
            // What was read before is there in any case, and the next look finds the error again.
            Err(_) if before > 0 => Moved::Later,
            moved => moved?,
        };
        let bytes = if let Moved::Bytes(bytes) = moved { bytes } else { 0 };
        let placed = bytes.min(left.len());
        if before + placed > 0 {
            self.framing.skip(head + before);
            self.framing.append(Bytes::from(&next[..bytes - placed]), spare);
        }
        debug_assert!(before + placed <= header.length as usize);
        Ok((moved, before + placed))
    }

    /// The rest of a part that has no place any more, if all of it is in the staging memory.
    #[inline]
    pub(super) fn rest_of_part(&self) -> Option<(Header, &[u8])> {
        let rest = self.parts.rest?;
        debug_assert!(rest.length as usize <= REST_BYTES_MAX);
        self.framing.staged().get(..rest.length as usize).map(|data| (rest, data))
    }
}

fn is_next_part(pair: &Pair<KeptFrame>, header: &Header) -> bool {
    header.kind == Kind::Part && header.sequence == pair.positions().received as u16
}
