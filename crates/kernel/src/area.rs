//! A user's memory as a message sees it: packed bytes, wherever they lie.

use std::mem::MaybeUninit;

use landeck_layout::Layout;
use landeck_memory::{Buffer, Bytes};

use crate::Failure;

/// Memory to send from or to receive into: all of a buffer, the parts that a layout names, or
/// several areas one after the other.
#[derive(Clone, Debug)]
pub struct Area {
    buffer: Buffer,
    /// None for the common case: the bytes of the buffer, one after the other.
    parts: Option<Box<Parts>>,
    packed_bytes: u64,
}

#[derive(Clone, Debug)]
enum Parts {
    /// Packed bytes of items in the buffer.
    Items(Items),
    /// Other areas, one after the other.
    Joined(Vec<Area>),
}

#[derive(Clone, Debug)]
struct Items {
    layout: Layout,
    count: u64,
    /// Where the layout's offset zero lies in the buffer.
    origin: i64,
    /// The first packed byte that belongs to the area.
    first: u64,
}

impl Area {
    /// No memory: a message without data.
    pub const EMPTY: Self = Self { buffer: Buffer::EMPTY, parts: None, packed_bytes: 0 };

    /// All bytes of a buffer.
    #[inline]
    pub fn contiguous(buffer: Buffer) -> Self {
        Self { buffer, parts: None, packed_bytes: buffer.len() as u64 }
    }

    /// `count` items of a layout. The layout's offset zero lies `origin` bytes into the buffer.
    ///
    /// # Errors
    /// [`Failure::OutsideBuffer`] when an item would lie outside the buffer.
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

    /// Several areas, one after the other.
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

    /// The packed bytes from `first`, at most `length` of them; cut where the area ends.
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

    /// Bytes of a message that fills the area.
    #[inline]
    pub fn packed_bytes(&self) -> u64 {
        self.packed_bytes
    }

    /// The buffer, where the area is all of one.
    #[inline]
    pub fn as_buffer(&self) -> Option<Buffer> {
        match &self.parts {
            None => Some(self.buffer),
            Some(_) => None,
        }
    }

    /// The packed bytes in one piece, where they lie in one piece.
    #[inline]
    pub fn one_piece<'a>(&self) -> Option<Bytes<'a>> {
        self.as_buffer().map(|buffer| buffer.bytes())
    }

    /// Copies packed bytes into another area, as many as both have. They do not overlap.
    pub fn copy_to(&self, target: &Self) {
        let mut position = 0;
        self.read(0, |bytes| {
            target.write(position, bytes);
            position += bytes.len() as u64;
            if position < target.packed_bytes { bytes.len() } else { 0 }
        });
    }

    /// Writes bytes of the message from packed position `position` on; what does not fit is cut.
    #[inline]
    pub fn write(&self, position: u64, bytes: Bytes<'_>) {
        if self.parts.is_none() {
            self.buffer.write(position as usize, bytes);
        } else {
            let mut done = 0;
            self.each_piece(position, bytes.len() as u64, |buffer, offset, length| {
                buffer.write(offset, bytes.part(done, length));
                done += length;
                true
            });
        }
    }

    /// Calls `take` with the bytes from packed position `position` on, piece by piece, until it
    /// takes less than it was given.
    pub fn read(&self, position: u64, mut take: impl FnMut(Bytes<'_>) -> usize) {
        if self.parts.is_none() {
            take(self.buffer.bytes().part(position as usize, usize::MAX));
            return;
        }
        self.each_piece(position, u64::MAX, |buffer, offset, length| {
            take(buffer.bytes().part(offset, length)) == length
        });
    }

    /// Packs bytes of the message from packed position `position` on into `room`; says how many.
    pub fn pack(&self, position: u64, room: &mut [MaybeUninit<u8>]) -> usize {
        let mut packed = 0;
        self.each_piece(position, room.len() as u64, |buffer, offset, length| {
            packed += buffer.bytes().part(offset, length).copy_to(&mut room[packed..]);
            true
        });
        packed
    }

    /// Packs at most `most` bytes of the message from packed position `position` on behind those
    /// that `target` has.
    pub fn append_to(&self, position: u64, most: usize, target: &mut Vec<u8>) {
        self.each_piece(position, most as u64, |buffer, offset, length| {
            buffer.bytes().part(offset, length).append_to(target);
            true
        });
    }

    /// Calls `each` with one piece after the other, as long as it says so.
    fn each_piece(
        &self,
        position: u64,
        length: u64,
        mut each: impl FnMut(&Buffer, usize, usize) -> bool,
    ) {
        self.each_piece_of(position, length, &mut each);
    }

    fn each_piece_of(
        &self,
        position: u64,
        length: u64,
        each: &mut dyn FnMut(&Buffer, usize, usize) -> bool,
    ) -> bool {
        let length = length.min(self.packed_bytes.saturating_sub(position));
        if length == 0 {
            return true;
        }
        match self.parts.as_deref() {
            None => each(&self.buffer, position as usize, length as usize),
            Some(Parts::Items(items)) => {
                let first = items.first + position;
                items.each_piece(first..first + length, |offset, length| {
                    each(&self.buffer, offset, length)
                })
            }
            Some(Parts::Joined(areas)) => {
                each_within(areas, position, length, |area, first, length| {
                    area.each_piece_of(first, length, each)
                })
            }
        }
    }
}

impl Items {
    fn each_piece(
        &self,
        range: std::ops::Range<u64>,
        mut each: impl FnMut(usize, usize) -> bool,
    ) -> bool {
        let Ok(mut cursor) = self.layout.cursor(self.count) else { return false };
        if cursor.restrict(range).is_err() {
            return false;
        }
        while let Some(piece) = cursor.next_piece(usize::MAX) {
            let Ok(offset) = usize::try_from(self.origin + piece.offset) else { return false };
            if !each(offset, piece.length) {
                return false;
            }
        }
        true
    }
}

/// Calls `each` with the areas that have packed bytes of a range, and which of theirs, as long as
/// it says so.
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
