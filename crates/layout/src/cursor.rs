//! A cursor: a place in the packed bytes of a message, which returns the pieces of the user's buffer.

use std::ops::Range;

use crate::path::{Path, Stop};
use crate::{Layout, LayoutError};

/// A run of bytes in the user's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its beginning, in bytes from the base address, which may lie behind it.
    pub offset: i64,
    /// Its length in bytes.
    pub length: usize,
}

/// A place in the packed bytes of some items.
///
/// It starts and stops at any byte: a pipeline fills one chunk, keeps the cursor, and continues with the next. A step
/// allocates nothing, and the size of the cursor depends only on the depth of the layout.
#[derive(Clone, Debug)]
pub struct Cursor {
    layout: Layout,
    count: u64,
    path: Path,
    /// The rest of the run of bytes that the cursor is in.
    run: Run,
    position: u64,
    end: u64,
    size_bytes: u64,
}

/// The rest of the run of bytes that a cursor is in.
#[derive(Clone, Copy, Debug)]
struct Run {
    offset: i64,
    length: u64,
}

impl Layout {
    /// Creates a cursor over all packed bytes of `count` items.
    ///
    /// # Errors
    /// [`LayoutError::TooLarge`] beyond 63 bits.
    pub fn cursor(&self, count: u64) -> Result<Cursor, LayoutError> {
        Cursor::new(self, count)
    }

    /// The piece of the buffer that holds `count` items, if they are contiguous; then no cursor is needed.
    pub fn single_piece(&self, count: u64) -> Option<Piece> {
        let dense = self.facts().dense && (count <= 1 || self.next_follows());
        let length = self.facts().size.checked_mul(count)?;
        if length == 0 {
            return Some(Piece { offset: 0, length: 0 });
        }
        dense.then_some(Piece {
            offset: self.facts().true_bounds.lower,
            length: usize::try_from(length).ok()?,
        })
    }

    /// Whether the bytes of the next item follow this one's.
    fn next_follows(&self) -> bool {
        self.facts().bounds.extent() == i64::try_from(self.facts().size).ok()
    }
}

impl Cursor {
    /// Creates a cursor over all packed bytes of `count` items.
    pub(crate) fn new(layout: &Layout, count: u64) -> Result<Self, LayoutError> {
        let size_bytes = layout.packed_bytes(count)?;
        // From here on no offset within the items can overflow.
        layout.span(count)?;
        let mut cursor = Self {
            layout: layout.clone(),
            count,
            path: Path::new(|facts| facts.dense),
            run: Run { offset: 0, length: 0 },
            position: 0,
            end: size_bytes,
            size_bytes,
        };
        cursor.enter(0);
        Ok(cursor)
    }

    /// Restricts the cursor to a range of packed bytes and goes to its start.
    ///
    /// # Errors
    /// [`LayoutError::OutOfRange`] if the items do not have these bytes.
    pub fn restrict(&mut self, range: Range<u64>) -> Result<(), LayoutError> {
        if range.start > range.end || range.end > self.size_bytes {
            return Err(LayoutError::OutOfRange { range, size_bytes: self.size_bytes });
        }
        self.end = range.end;
        self.enter(range.start);
        Ok(())
    }

    /// The position of the next packed byte.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The number of packed bytes that are left.
    pub fn remaining(&self) -> u64 {
        self.end - self.position
    }

    /// Returns the next piece, at most `limit` bytes of it; `None` at the end or if `limit` is zero.
    pub fn next_piece(&mut self, limit: usize) -> Option<Piece> {
        let wanted = self.remaining().min(limit as u64);
        if wanted == 0 {
            return None;
        }
        if self.run.length == 0 {
            let stop = self.path.next(&self.layout)?;
            self.run = run_at(&stop);
        }
        let length = self.run.length.min(wanted);
        let piece = Piece { offset: self.run.offset, length: length as usize };
        self.run.offset += length as i64;
        self.run.length -= length;
        self.position += length;
        Some(piece)
    }

    /// Moves the cursor to a packed byte.
    fn enter(&mut self, position: u64) {
        self.position = position;
        self.run = if position == self.size_bytes {
            Run { offset: 0, length: 0 }
        } else if let Some(piece) = self.layout.single_piece(self.count) {
            Run { offset: piece.offset + position as i64, length: piece.length as u64 - position }
        } else {
            run_at(&self.path.go_to(&self.layout, self.count, position))
        };
    }
}

impl Iterator for Cursor {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        self.next_piece(usize::MAX)
    }
}

/// The bytes that are left of a dense part.
fn run_at(stop: &Stop) -> Run {
    Run {
        offset: stop
            .base
            .wrapping_add(stop.facts.true_bounds.lower)
            .wrapping_add(stop.within as i64),
        length: stop.facts.size - stop.within,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, LayoutBlock};

    #[test]
    fn a_contiguous_message_is_one_piece() {
        let run = Layout::elements(Kind::BYTE, 100).unwrap();
        let mut cursor = run.cursor(3).unwrap();
        assert_eq!(cursor.next(), Some(Piece { offset: 0, length: 300 }));
        assert_eq!(cursor.next(), None);
        cursor.restrict(17..50).unwrap();
        assert_eq!(cursor.next_piece(20), Some(Piece { offset: 17, length: 20 }));
        assert_eq!(cursor.next_piece(20), Some(Piece { offset: 37, length: 13 }));
        assert_eq!(cursor.remaining(), 0);
    }

    #[test]
    fn a_cursor_starts_in_the_middle_of_a_block() {
        let blocks = [LayoutBlock { offset: 10, count: 4 }, LayoutBlock { offset: 0, count: 2 }];
        let indexed = Layout::indexed(&blocks, &Layout::element(Kind::BYTE)).unwrap();
        let mut cursor = indexed.cursor(2).unwrap();
        cursor.restrict(3..9).unwrap();
        let pieces: Vec<_> = cursor.collect();
        let expected = [(13, 1), (0, 2), (24, 3)].map(|(offset, length)| Piece { offset, length });
        assert_eq!(pieces, expected);
    }

    #[test]
    fn a_range_beyond_the_end_is_refused() {
        let mut cursor = Layout::elements(Kind::BYTE, 8).unwrap().cursor(1).unwrap();
        let error = cursor.restrict(4..9).unwrap_err();
        assert_eq!(error, LayoutError::OutOfRange { range: 4..9, size_bytes: 8 });
        assert_eq!(
            error.to_string(),
            "packed bytes 4..9 were asked for, but the items have 8 packed bytes"
        );
        cursor.restrict(8..8).unwrap();
        assert_eq!(cursor.next(), None);
    }

    #[test]
    fn nothing_has_no_pieces() {
        let nothing = Layout::structure(&[]).unwrap();
        assert_eq!(nothing.cursor(5).unwrap().next(), None);
        assert_eq!(Layout::element(Kind::BYTE).cursor(0).unwrap().next(), None);
    }
}
