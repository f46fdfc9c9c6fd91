//! Parts of long messages, which are read straight into the memory of their receive.
//!
//! A place is used in the call that asked for it, and never later: the receive that it belongs to may end between two
//! calls. A part in clear may come in several such pieces, of which the sink learns one by one. A sealed one means
//! nothing before it is whole. So its rest is left in the system until all of it is there, and then read and opened at
//! once.

use std::os::fd::OwnedFd;

use landeck_channel::{Peer, Sink};
use landeck_memory::{Buffer, Bytes};
use landeck_wire::{HEADER_BYTES, Header, Kind};
use rustix::io::Errno;

use super::super::framing::Spare;
use super::super::sealing::{Opening, TAG_BYTES};
use super::super::socket::{self, Moved};
use super::{Incoming, REST_BYTES_MAX};

/// The most bytes that are read where a part is expected, so that most of its data are left for their place.
const SIP_BYTES: usize = 2 * 1024;
/// Looks in which nothing more has come of a sealed part, after which it is read without a place.
const LOOKS_IN_VAIN: u32 = 32;

/// What is known of the part that is coming.
#[derive(Default)]
pub(super) struct Parts {
    /// The rest of a part in clear whose header and first bytes have left the staging memory.
    pub(super) rest: Option<Header>,
    /// The next frame may be a part.
    pub(super) are_expected: bool,
    /// The most bytes of a sealed part that were seen in the system, and the looks since then.
    unread: usize,
    looks: u32,
}

impl Parts {
    /// Forgets the part that is coming.
    pub(super) fn clear(&mut self) {
        *self = Self { are_expected: self.are_expected, ..Self::default() };
    }

    /// Whether a part whose rest is not there yet should be left in the system.
    fn wait_for_more(&mut self, unread: usize) -> bool {
        if unread > self.unread {
            (self.unread, self.looks) = (unread, 0);
        }
        self.looks += 1;
        self.looks <= LOOKS_IN_VAIN
    }
}

impl Incoming {
    /// The first frame and the place of its data, if that is a part of which something is still to come.
    #[inline]
    pub(super) fn place<S: Sink + ?Sized>(
        &mut self,
        from: Peer,
        sink: &mut S,
    ) -> Option<(Header, Buffer)> {
        if self.is_complete {
            return None;
        }
        let header = match self.parts.rest {
            Some(rest) if self.framing.staged().len() < rest.length as usize => rest,
            Some(_) => return None,
            None => self.framing.begun(&self.opening).filter(|first| self.is_next_part(first))?,
        };
        let place = sink.place(from, &header)?;
        (place.len() == header.length as usize).then_some((header, place))
    }

    fn is_next_part(&self, header: &Header) -> bool {
        header.kind == Kind::Part && header.sequence == self.received as u16
    }

    /// Reads into the staging memory.
    #[inline]
    pub(super) fn read_staged(
        &mut self,
        socket: &OwnedFd,
        spare: &mut Spare,
    ) -> Result<Moved, Errno> {
        let sips = self.parts.are_expected && self.framing.is_empty();
        let room = self.framing.room(spare);
        let most = if sips { room.len().min(SIP_BYTES) } else { room.len() };
        if most == 0 {
            return Ok(Moved::Bytes(0));
        }
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
        from: Peer,
        (header, place): (Header, Buffer),
        sink: &mut S,
        spare: &mut Spare,
    ) -> (Result<Moved, Errno>, bool) {
        let placed = match self.opening {
            Opening::Plain => self.read_in_clear(socket, &header, place, spare),
            Opening::Sealed(_) => self.read_sealed(socket, &header, place, spare),
        };
        match placed {
            Ok((moved, bytes)) => {
                if bytes > 0 {
                    sink.placed(from, &header, bytes);
                    self.count_placed(&header, bytes);
                }
                (Ok(moved), bytes > 0)
            }
            // The program gave memory that it does not have, and faults when the data are copied there.
            Err(Errno::FAULT) => (self.read_staged(socket, spare), false),
            Err(error) => (Err(error), false),
        }
    }

    fn count_placed(&mut self, header: &Header, bytes: usize) {
        let length = header.length - bytes as u32;
        self.unreported_bytes += bytes as u64;
        self.parts.clear();
        if length > 0 {
            self.parts.rest = Some(Header { length, ..*header });
        } else {
            self.received += 1;
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

    /// Moves a sealed part to its place and opens it there, if all of it has come; returns its length then, else zero.
    fn read_sealed(
        &mut self,
        socket: &OwnedFd,
        header: &Header,
        place: Buffer,
        spare: &mut Spare,
    ) -> Result<(Moved, usize), Errno> {
        let length = header.length as usize;
        let before = self.framing.staged().len() - HEADER_BYTES;
        let missing = (length + TAG_BYTES).saturating_sub(before);
        let unread = socket::unread(socket);
        if unread < missing && self.parts.wait_for_more(unread) {
            return Ok((Moved::Bytes(0), 0));
        }
        let Some(head) = self.framing.staged().first_chunk::<HEADER_BYTES>().copied() else {
            return Ok((Moved::Bytes(0), 0));
        };
        if unread < missing || before >= length {
            return Ok((self.read_staged(socket, spare)?, 0));
        }
        let left = place.part(before, usize::MAX);
        let mut tail = [0; TAG_BYTES + HEADER_BYTES];
        let moved = socket::receive_to(socket, left, &mut tail)?;
        let Moved::Bytes(bytes) = moved else { return Ok((moved, 0)) };
        let placed = bytes.min(left.len());
        let tail = &tail[..bytes - placed];
        let Some((tag, next)) = tail.split_first_chunk::<TAG_BYTES>() else {
            // The system gave less than it said. What it gave joins the rest of the frame.
            self.framing.append(left.part(0, placed).bytes(), spare);
            self.framing.append(Bytes::from(tail), spare);
            return Ok((moved, 0));
        };
        place.write(0, Bytes::from(&self.framing.staged()[HEADER_BYTES..]));
        if let Err(fault) = self.opening.open_apart(&head, place, tag) {
            self.fault = Some(fault);
            return Ok((moved, 0));
        }
        self.framing.skip(HEADER_BYTES + before);
        self.framing.append(Bytes::from(next), spare);
        Ok((moved, length))
    }

    /// The rest of a part that has no place any more, if all of it is in the staging memory.
    #[inline]
    pub(super) fn rest_of_part(&self) -> Option<(Header, &[u8])> {
        let rest = self.parts.rest?;
        debug_assert!(rest.length as usize <= REST_BYTES_MAX);
        self.framing.staged().get(..rest.length as usize).map(|data| (rest, data))
    }
}
