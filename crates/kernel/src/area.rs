//! A user's memory as a message sees it: packed bytes, wherever they lie.

use landeck_layout::Layout;
use landeck_memory::{Buffer, Bytes};

use crate::Failure;

/// Memory to send from or to receive into: all of a buffer, or the parts that a layout names.
#[derive(Clone, Debug)]
pub struct Area {
    buffer: Buffer,
    /// None for the common case: the bytes of the buffer, one after the other.
    parts: Option<Box<Parts>>,
    packed_bytes: u64,
}

#[derive(Clone, Debug)]
struct Parts {
    layout: Layout,
    count: u64,
    /// Where the layout's offset zero lies in the buffer.
    origin: i64,
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
        let parts = Box::new(Parts { layout: layout.clone(), count, origin });
        Ok(Self { buffer, parts: Some(parts), packed_bytes })
    }

    /// Bytes of a message that fills the area.
    #[inline]
    pub fn packed_bytes(&self) -> u64 {
        self.packed_bytes
    }

    /// The packed bytes in one piece, where they lie in one piece.
    #[inline]
    pub fn one_piece<'a>(&self) -> Option<Bytes<'a>> {
        match &self.parts {
            None => Some(self.buffer.bytes()),
            Some(_) => None,
        }
    }

    /// Writes bytes of the message from packed position `position` on; what does not fit is cut.
    #[inline]
    pub fn write(&self, position: u64, bytes: Bytes<'_>) {
        if self.parts.is_none() {
            self.buffer.write(position as usize, bytes);
        } else {
            let mut done = 0;
            self.each_piece(position, bytes.len(), |offset, length| {
                self.buffer.write(offset, bytes.part(done, length));
                done += length;
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
        let mut full = false;
        self.each_piece(position, usize::MAX, |offset, length| {
            if !full {
                full = take(self.buffer.bytes().part(offset, length)) < length;
            }
        });
    }

    fn each_piece(&self, position: u64, length: usize, mut each: impl FnMut(usize, usize)) {
        let Some(parts) = &self.parts else { return };
        let end = position.saturating_add(length as u64).min(self.packed_bytes);
        let Ok(mut cursor) = parts.layout.cursor(parts.count) else { return };
        if position > end || cursor.restrict(position..end).is_err() {
            return;
        }
        while let Some(piece) = cursor.next_piece(usize::MAX) {
            let Ok(offset) = usize::try_from(parts.origin + piece.offset) else { return };
            each(offset, piece.length);
        }
    }
}
