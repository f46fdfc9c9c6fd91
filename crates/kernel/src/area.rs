//! A user's memory in the form of a message: packed bytes, wherever they lie.

use std::mem::MaybeUninit;
use std::sync::Arc;

use landeck_layout::{Layout, Strip};
use landeck_memory::heap::Block;
use landeck_memory::{Beside, Blocks, Buffer, Bytes, Spread};
use landeck_wire::way::Extent;

use crate::failure::Failure;
use crate::status::Status;

/// Memory to send from or to receive into: a whole buffer, the parts that a layout names, or several areas one after
/// the other.
#[derive(Clone, Debug)]
pub struct Area {
    buffer: Buffer,
    /// The parts; `None` in the common case, the contiguous bytes of the buffer.
    parts: Option<Box<Parts>>,
    packed_bytes: u64,
}

#[derive(Clone, Debug)]
enum Parts {
    /// Packed bytes of items in the buffer.
    Items(Items),
    /// Other areas, one after the other.
    Joined(Vec<Area>),
    /// The contiguous bytes of the buffer, which lie in a block that goes with the last area in it.
    Owned(Arc<Block>),
}

#[derive(Clone, Debug)]
struct Items {
    layout: Layout,
    count: u64,
    /// The position of the layout's offset zero in the buffer.
    origin: i64,
    /// The first packed byte that belongs to the area.
    first: u64,
}

impl Area {
    /// The area of a message without data.
    pub const EMPTY: Self = Self { buffer: Buffer::EMPTY, parts: None, packed_bytes: 0 };

    /// Creates the area of a whole buffer.
    #[inline]
    pub fn contiguous(buffer: Buffer) -> Self {
        Self { buffer, parts: None, packed_bytes: buffer.len() as u64 }
    }

    /// Creates the area of a whole block, which it keeps.
    pub fn of_block(block: Block) -> Self {
        let (buffer, packed_bytes) = (block.buffer(), block.len() as u64);
        Self { buffer, parts: Some(Box::new(Parts::Owned(Arc::new(block)))), packed_bytes }
    }

    /// Creates the area of `count` items of a layout, whose offset zero lies `origin` bytes into the buffer.
    ///
    /// # Errors
    /// [`Failure::OutsideBuffer`] if an item would lie outside the buffer.
    pub fn with_layout(
        buffer: Buffer,
        origin: i64,
        layout: &Layout,
        count: u64,
    ) -> Result<Self, Failure> {
        let outside = Failure::OutsideBuffer { buffer_bytes: buffer.len() };
        let packed_bytes = layout.packed_bytes(count).map_err(|_| outside.clone())?;
        let span = layout.span(count).map_err(|_| outside.clone())?;
        let fits = packed_bytes == 0
            || (origin.checked_add(span.lower).is_some_and(|first| first >= 0)
                && origin.checked_add(span.upper).is_some_and(|end| end <= buffer.len() as i64));
        if !fits {
            return Err(outside);
        }
        let items = Items { layout: layout.clone(), count, origin, first: 0 };
        Ok(Self { buffer, parts: Some(Box::new(Parts::Items(items))), packed_bytes })
    }

    /// Joins several areas, one after the other.
    pub fn joined(areas: impl IntoIterator<Item = Self>) -> Self {
        let mut joined: Vec<Self> =
            areas.into_iter().filter(|area| area.packed_bytes != 0).collect();
        if joined.len() < 2 {
            return joined.pop().unwrap_or(Self::EMPTY);
        }
        let packed_bytes = joined.iter().map(Self::packed_bytes).sum();
        let parts = Some(Box::new(Parts::Joined(joined)));
        Self { buffer: Buffer::EMPTY, parts, packed_bytes }
    }

    /// The packed bytes from `first`, at most `length`; cut where the area ends.
    #[must_use]
    pub fn part(&self, first: u64, length: u64) -> Self {
        let first = first.min(self.packed_bytes);
        let packed_bytes = length.min(self.packed_bytes - first);
        match self.parts.as_deref() {
            None => Self::contiguous(self.buffer.part(first as usize, packed_bytes as usize)),
            Some(Parts::Items(items)) => {
                let items = Items { first: items.first + first, ..items.clone() };
                let parts = Some(Box::new(Parts::Items(items)));
                Self { buffer: self.buffer, parts, packed_bytes }
            }
            Some(Parts::Owned(block)) => {
                let parts = Some(Box::new(Parts::Owned(block.clone())));
                let buffer = self.buffer.part(first as usize, packed_bytes as usize);
                Self { buffer, parts, packed_bytes }
            }
            Some(Parts::Joined(areas)) => {
                let mut parts = Vec::new();
                each_within(areas, first, packed_bytes, |area, first, length| {
                    parts.push(area.part(first, length));
                    true
                });
                Self::joined(parts)
            }
        }
    }

    /// Whether the area keeps a block.
    pub(crate) fn is_of_block(&self) -> bool {
        matches!(self.parts.as_deref(), Some(Parts::Owned(_)))
    }

    /// The number of bytes of a message that fills the area.
    #[inline]
    pub fn packed_bytes(&self) -> u64 {
        self.packed_bytes
    }

    /// The failure of a receive whose message is longer than the area.
    pub(crate) fn truncates(&self, status: Status) -> Failure {
        let Status { peer, tag, bytes: message_bytes, .. } = status;
        Failure::Truncated { peer, tag, message_bytes, buffer_bytes: self.packed_bytes }
    }

    /// Whether the area is a whole buffer, and thus owns nothing.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.parts.is_none()
    }

    /// The buffer, if the area is a whole one.
    #[inline]
    pub fn as_buffer(&self) -> Option<Buffer> {
        match self.parts.as_deref() {
            None | Some(Parts::Owned(_)) => Some(self.buffer),
            Some(Parts::Items(_) | Parts::Joined(_)) => None,
        }
    }

    /// The packed bytes in one piece, if they are contiguous.
    #[inline]
    pub fn one_piece<'a>(&self) -> Option<Bytes<'a>> {
        self.as_buffer().map(|buffer| buffer.bytes())
    }

    /// Copies packed bytes into another area, as many as both have. The areas must not overlap.
    pub fn copy_to(&self, target: &Self) {
        let length = self.packed_bytes.min(target.packed_bytes);
        if let Some(bytes) = self.one_piece() {
            target.write(0, bytes.part(0, length as usize));
        } else if let Some(buffer) = target.as_buffer() {
            self.pack_to(0, &buffer.part(0, length as usize));
        } else {
            let mut position = 0;
            while position < length {
                let mut between = [0; BETWEEN_BYTES];
                let most = between.len().min((length - position) as usize);
                self.pack_slice(position, &mut between[..most]);
                target.write(position, Bytes::from(&between[..most]));
                position += most as u64;
            }
        }
    }

    /// Writes bytes of the message from packed position `position` on; bytes beyond the area are dropped.
    #[inline]
    pub fn write(&self, position: u64, bytes: Bytes<'_>) {
        if self.parts.is_none() {
            self.buffer.write(position as usize, bytes);
        } else {
            self.each_strip_of(position, bytes.len() as u64, 0, &mut |buffer, strip| {
                buffer.write_blocks(placed(&strip), bytes, packed(&strip), into(&strip));
            });
        }
    }

    /// Packs bytes of the message from packed position `position` on into `room`; returns how many.
    pub fn pack(&self, position: u64, room: &mut [MaybeUninit<u8>]) -> usize {
        self.each_strip(position, room.len() as u64, &mut |bytes, strip| {
            bytes.copy_blocks(placed(&strip), room, packed(&strip), out_of(&strip));
        })
    }

    /// Packs at most `most` bytes of the message from packed position `position` on, and appends them to `target`.
    pub fn append_to(&self, position: u64, most: usize, target: &mut Vec<u8>) {
        let left = self.packed_bytes.saturating_sub(position);
        let (before, length) = (target.len(), left.min(most as u64) as usize);
        target.resize(before + length, 0);
        self.pack_slice(position, &mut target[before..]);
    }

    /// Packs bytes of the message from packed position `position` on into `target`, as far as the area reaches.
    pub fn pack_slice(&self, position: u64, target: &mut [u8]) {
        self.each_strip(position, target.len() as u64, &mut |bytes, strip| {
            let (from, to) = (placed(&strip), packed(&strip));
            bytes.copy_blocks_to_slice(from, target, to, out_of(&strip));
        });
    }

    /// Packs bytes of the message from packed position `position` on into all of `target`, as far as there are any.
    pub fn pack_to(&self, position: u64, target: &Buffer) {
        self.each_strip(position, target.len() as u64, &mut |bytes, strip| {
            target.write_blocks(packed(&strip), bytes, placed(&strip), out_of(&strip));
        });
    }

    /// The number of packed bytes and the mean length of their places. Of data that lie scattered the first 64 KiB are
    /// looked at.
    pub(crate) fn extent(&self) -> Extent {
        let bytes = self.packed_bytes;
        if self.as_buffer().is_some() {
            return Extent::whole(bytes);
        }
        let mean = |length: u64| length / self.place_count(length).max(1);
        let tried = bytes.min(TRIED_BYTES);
        let place_bytes = mean(tried);
        let is_decided = place_bytes < Extent::PLACE_BYTES_MIN || tried == bytes;
        Extent { bytes, place_bytes: if is_decided { place_bytes } else { mean(bytes) } }
    }

    /// The number of places of the first packed bytes.
    fn place_count(&self, length: u64) -> u64 {
        let mut count = 0;
        self.each_strip_of(0, length, 0, &mut |_: &Buffer, strip| {
            count += strip.count * if strip.beside.is_some() { 2 } else { 1 };
        });
        count
    }

    /// The places of a range of packed bytes in the order of the message, if they are at most `most`.
    pub(crate) fn places(&self, position: u64, length: u64, most: usize) -> Option<Vec<Buffer>> {
        let mut blocks: Vec<(u64, Buffer)> = Vec::new();
        let mut are_too_many = false;
        self.each_strip_of(position, length, 0, &mut |buffer: &Buffer, strip| {
            // Blocks that are written one after the other may be packed in another order, and join only then.
            are_too_many |= strip.count > 2 * most as u64 || blocks.len() > 4 * most;
            for at in (0..strip.count).take_while(|_| !are_too_many) {
                let offset = strip.offset + strip.stride * at as i64;
                let packed = strip.packed + strip.packed_stride * at;
                let mut push = |offset: i64, packed, length| {
                    blocks.push((packed, buffer.part(offset as usize, length)));
                };
                push(offset, packed, strip.length);
                if let Some(beside) = strip.beside {
                    push(offset + beside.offset, packed + beside.packed, beside.length);
                }
            }
        });
        if are_too_many {
            return None;
        }
        blocks.sort_unstable_by_key(|&(packed, _)| packed);
        let places: Vec<Buffer> = blocks.into_iter().map(|(_, place)| place).collect();
        (places.len() <= most).then_some(places)
    }

    /// Calls `each` with strips that contain the packed bytes from `position` on, at most `length`; returns the number
    /// of these bytes.
    fn each_strip(
        &self,
        position: u64,
        length: u64,
        each: &mut impl FnMut(Bytes<'_>, Strip),
    ) -> usize {
        let length = length.min(self.packed_bytes.saturating_sub(position));
        self.each_strip_of(position, length, 0, &mut |buffer: &Buffer, strip| {
            each(buffer.bytes(), strip);
        });
        length as usize
    }

    /// Calls `each` with the strips of a range of packed bytes. The strips' packed positions begin at `before`.
    fn each_strip_of<F: FnMut(&Buffer, Strip)>(
        &self,
        position: u64,
        length: u64,
        before: u64,
        each: &mut F,
    ) {
        let length = length.min(self.packed_bytes.saturating_sub(position));
        match self.parts.as_deref() {
            None | Some(Parts::Owned(_)) => {
                each(&self.buffer, block(position as i64, before, length as usize));
            }
            Some(Parts::Items(items)) => {
                let first = items.first + position;
                let walked = items.layout.strips(items.count, first..first + length, |strip| {
                    let offset = items.origin + strip.offset;
                    each(&self.buffer, Strip { offset, packed: before + strip.packed, ..strip });
                });
                debug_assert_eq!(walked, Ok(()), "the area has these bytes");
            }
            Some(Parts::Joined(areas)) => {
                let mut before = before;
                each_within(areas, position, length, |area, first, length| {
                    area.each_strip_of(first, length, before, each);
                    before += length;
                    true
                });
            }
        }
    }
}

/// The first bytes of a message whose places are counted before all are.
const TRIED_BYTES: u64 = 64 << 10;
/// The size of the buffer between two layouts.
const BETWEEN_BYTES: usize = 4096;

/// A strip of one block.
pub fn block(offset: i64, packed: u64, length: usize) -> Strip {
    Strip { offset, stride: 0, packed, packed_stride: 0, length, count: 1, beside: None }
}

/// The positions of a strip's blocks in the user's buffer.
fn placed(strip: &Strip) -> Spread {
    Spread { start: strip.offset, stride: strip.stride }
}

/// The positions of a strip's blocks among the packed bytes.
fn packed(strip: &Strip) -> Spread {
    Spread { start: strip.packed as i64, stride: strip.packed_stride as i64 }
}

/// The blocks of a strip for a copy out of the user's buffer.
pub fn out_of(strip: &Strip) -> Blocks {
    let beside = strip.beside.map(|beside| Beside {
        from: beside.offset,
        to: beside.packed as i64,
        length: beside.length,
    });
    Blocks { length: strip.length, count: strip.count, beside }
}

/// The blocks of a strip for a copy into the user's buffer.
pub fn into(strip: &Strip) -> Blocks {
    let blocks = out_of(strip);
    let turned = |beside: Beside| Beside { from: beside.to, to: beside.from, ..beside };
    Blocks { beside: blocks.beside.map(turned), ..blocks }
}

/// Calls `each` with the areas that have packed bytes of a range, and with the range of each, as long as it returns
/// true.
fn each_within(
    areas: &[Area],
    first: u64,
    length: u64,
    mut each: impl FnMut(&Area, u64, u64) -> bool,
) -> bool {
    let (mut start, end) = (0, first + length);
    for area in areas {
        let (from, until) = (first.max(start), end.min(start + area.packed_bytes));
        if from < until && !each(area, from - start, until - from) {
            return false;
        }
        start += area.packed_bytes;
    }
    true
}
