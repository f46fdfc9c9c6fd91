//! A range of packed bytes as strips: blocks of equal length at equal distances on both sides.
//!
//! A cursor returns one piece at a time. But most layouts are regular, and a copy in a tight loop needs to know that.
//! The walk has no state: it starts at any packed byte, and finding that costs a few divisions.

use std::ops::Range;

use crate::path::{place, times};
use crate::tree::{Entry, Facts, Form, Repeat, Tree};
use crate::{Layout, LayoutError};

/// Blocks of equal length at equal distances, in the user's buffer and among the packed bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strip {
    /// The beginning of the first block in the user's buffer, in bytes from the base address.
    pub offset: i64,
    /// The distance from one block to the next in the user's buffer.
    pub stride: i64,
    /// The beginning of the first block among the requested packed bytes.
    pub packed: u64,
    /// The distance from one block to the next among the packed bytes.
    pub packed_stride: u64,
    /// The length of each block.
    pub length: usize,
    /// The number of blocks.
    pub count: u64,
    /// A second block beside each block: members of structures are copied two at a time.
    pub beside: Option<StripsBeside>,
}

/// A block beside each block of a strip, at the same distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StripsBeside {
    /// Its beginning in the user's buffer, relative to the first block's.
    pub offset: i64,
    /// Its beginning among the packed bytes, relative to the first block's.
    pub packed: u64,
    /// Its length.
    pub length: usize,
}

impl Layout {
    /// Calls `each` with strips that cover the range of the packed bytes of `count` items exactly once, in the order
    /// that copies fastest. It allocates nothing.
    ///
    /// # Errors
    /// [`LayoutError::OutOfRange`] if the items do not have these bytes; [`LayoutError::TooLarge`] if they are beyond
    /// 63 bits.
    pub fn strips(
        &self,
        count: u64,
        range: Range<u64>,
        each: impl FnMut(Strip),
    ) -> Result<(), LayoutError> {
        let size_bytes = self.packed_bytes(count)?;
        if range.start > range.end || range.end > size_bytes {
            return Err(LayoutError::OutOfRange { range, size_bytes });
        }
        if range.is_empty() {
            return Ok(());
        }
        // From here on no offset within the items can overflow.
        self.span(count)?;
        let extent = self.extent_bytes()?;
        let mut walk = Walk { layout: self, each };
        let items =
            Row { offset: 0, stride: extent, packed: 0, packed_stride: self.size_bytes(), count };
        if range.end - range.start == size_bytes {
            // The common case needs no divisions.
            walk.row(StripPart::Item, items);
        } else {
            walk.part_of_row(StripPart::Item, items, -(range.start as i64), range);
        }
        Ok(())
    }
}

/// The length below which rows are walked across: one strip for each of their places.
const SHORT_ROW: u64 = 8;
/// The length below which lists are walked across as well.
const SHORT_LIST: u32 = 32;
/// The number of bytes walked across at once, which stay in the nearest cache.
const ACROSS_BYTES: u64 = 16 * 1024;
/// The smallest number of rows walked across at once.
const ACROSS_MIN: u64 = 16;

/// The longest parts that gain from being copied two at a time.
const PAIRED_BYTES_MAX: u64 = 16;

/// A part of the walk: an item, or a node of the table.
#[derive(Clone, Copy)]
enum StripPart {
    Item,
    Node(u32),
}

/// A repeated part.
#[derive(Clone, Copy)]
struct Row {
    offset: i64,
    stride: i64,
    packed: i64,
    packed_stride: u64,
    count: u64,
}

struct Walk<'a, F> {
    layout: &'a Layout,
    each: F,
}

impl<'a, F: FnMut(Strip)> Walk<'a, F> {
    fn facts(&self, part: StripPart) -> &'a Facts {
        match (part, self.layout.tree()) {
            (StripPart::Node(node), Some(tree)) => tree.facts(node),
            _ => self.layout.facts(),
        }
    }

    /// The table and the form of a part; `None` for a run of elements.
    fn form(&self, part: StripPart) -> Option<(&'a Tree, Form)> {
        let tree = self.layout.tree()?;
        let node = match part {
            StripPart::Item => tree.root(),
            StripPart::Node(node) => node,
        };
        Some((tree, tree.form(node)))
    }

    /// Walks some bytes of a part whose first packed byte is `packed`.
    fn part(&mut self, part: StripPart, offset: i64, packed: i64, range: Range<u64>) {
        let facts = self.facts(part);
        if range.start == 0 && range.end == facts.size {
            return self.whole(part, offset, packed);
        }
        if facts.dense {
            let offset = offset.wrapping_add(facts.true_bounds.lower);
            let length = (range.end - range.start) as usize;
            return self.block(offset + range.start as i64, packed + range.start as i64, length);
        }
        match self.form(part) {
            Some((_, Form::Repeat(repeat))) => {
                let row = row_of(&repeat, offset);
                self.part_of_row(StripPart::Node(repeat.child), row, packed, range);
            }
            Some((_, Form::List { first, last })) => {
                self.part_of_list(first..last, offset, packed, range);
            }
            Some((_, Form::Run)) | None => {}
        }
    }

    /// Walks some bytes of a row: the rest of the first part, whole parts, and the beginning of the last.
    fn part_of_row(&mut self, part: StripPart, row: Row, packed: i64, range: Range<u64>) {
        let size = self.facts(part).size;
        let (first, last) = (range.start / size, range.end / size);
        let (before, behind) = (range.start % size, range.end % size);
        let at = |index: u64| row.offset.wrapping_add(times(index, row.stride));
        let packed_at = |index: u64| packed + (index * size) as i64;
        if first == last {
            return self.part(part, at(first), packed_at(first), before..behind);
        }
        let whole = if before == 0 { first } else { first + 1 };
        if before != 0 {
            self.part(part, at(first), packed_at(first), before..size);
        }
        self.row(
            part,
            Row {
                offset: at(whole),
                packed: packed_at(whole),
                packed_stride: size,
                count: last - whole,
                ..row
            },
        );
        if behind != 0 {
            self.part(part, at(last), packed_at(last), 0..behind);
        }
    }

    /// Walks some bytes of a list.
    fn part_of_list(&mut self, list: Range<u32>, offset: i64, packed: i64, range: Range<u64>) {
        let Some(tree) = self.layout.tree() else { return };
        let entries = tree.list(list.start, list.end);
        let first = entries.partition_point(|entry| entry.packed_start <= range.start) - 1;
        for entry in &entries[first..] {
            let start = entry.packed_start;
            if start >= range.end {
                break;
            }
            let end = range.end.min(start + tree.facts(entry.child).size) - start;
            let part = range.start.saturating_sub(start)..end;
            let (offset, packed) = place_of(entry, offset, packed);
            self.part(StripPart::Node(entry.child), offset, packed, part);
        }
    }

    /// Walks all bytes of a part.
    fn whole(&mut self, part: StripPart, offset: i64, packed: i64) {
        let facts = self.facts(part);
        if facts.dense {
            let length = facts.size as usize;
            return self.block(offset.wrapping_add(facts.true_bounds.lower), packed, length);
        }
        match self.form(part) {
            Some((tree, Form::Repeat(repeat))) => {
                let packed_stride = tree.facts(repeat.child).size;
                let row = Row { packed, packed_stride, ..row_of(&repeat, offset) };
                self.row(StripPart::Node(repeat.child), row);
            }
            Some((_, Form::List { first, last })) => {
                let Some(tree) = self.layout.tree() else { return };
                for entry in tree.list(first, last) {
                    let (offset, packed) = place_of(entry, offset, packed);
                    let facts = tree.facts(entry.child);
                    if facts.dense {
                        let offset = offset.wrapping_add(facts.true_bounds.lower);
                        self.block(offset, packed, facts.size as usize);
                    } else {
                        self.whole(StripPart::Node(entry.child), offset, packed);
                    }
                }
            }
            Some((_, Form::Run)) | None => {}
        }
    }

    /// Walks all bytes of a row.
    fn row(&mut self, part: StripPart, row: Row) {
        let facts = self.facts(part);
        if row.count == 0 {
            return;
        }
        if row.count == 1 {
            return self.whole(part, row.offset, row.packed);
        }
        if facts.dense {
            return self.dense_row(facts, row, None);
        }
        match self.form(part) {
            Some((_, Form::Repeat(repeat))) => self.row_of_rows(repeat, row),
            Some((_, Form::List { first, last })) if last - first <= SHORT_LIST => {
                self.row_of_lists(first..last, row, facts.size);
            }
            _ => {
                for index in 0..row.count {
                    self.whole(part, row.at(index), row.packed_at(index));
                }
            }
        }
    }

    /// Walks a row of rows, along the longer ones.
    fn row_of_rows(&mut self, inner: Repeat, row: Row) {
        let child = StripPart::Node(inner.child);
        let packed_stride = self.facts(child).size;
        if inner.count > SHORT_ROW || inner.count >= row.count {
            for index in 0..row.count {
                let inner = row_of(&inner, row.at(index));
                let packed = row.packed_at(index);
                self.row(child, Row { packed, packed_stride, ..inner });
            }
            return;
        }
        for rows in row.slices(packed_stride * inner.count) {
            for index in 0..inner.count {
                let offset = rows.offset.wrapping_add(place(&inner, index));
                let packed = rows.packed + (index * packed_stride) as i64;
                self.row(child, Row { offset, packed, ..rows });
            }
        }
    }

    /// Walks a row of lists: one entry of all lists after the other, or two at once if both are short. Two loads and
    /// two stores in one turn of a loop cost as much as one of each.
    fn row_of_lists(&mut self, list: Range<u32>, row: Row, size: u64) {
        let Some(tree) = self.layout.tree() else { return };
        let entries = tree.list(list.start, list.end);
        if let [first, second] = entries
            && is_short(tree, first)
            && is_short(tree, second)
        {
            return self.pairs(tree, (first, second), row);
        }
        for rows in row.slices(size) {
            let mut entries = entries.iter().peekable();
            while let Some(entry) = entries.next() {
                let second = match is_short(tree, entry) {
                    true => entries.next_if(|next| is_short(tree, next)),
                    false => None,
                };
                match second {
                    Some(second) => self.pairs(tree, (entry, second), rows),
                    None => {
                        let (offset, packed) = place_of(entry, rows.offset, rows.packed);
                        self.row(StripPart::Node(entry.child), Row { offset, packed, ..rows });
                    }
                }
            }
        }
    }

    /// Walks two short entries of each list of a row.
    fn pairs(&mut self, tree: &Tree, (first, second): (&Entry, &Entry), row: Row) {
        let (offset, packed) = place_of(first, row.offset, row.packed);
        let beside = beside_of(tree, first, second);
        self.dense_row(tree.facts(first.child), Row { offset, packed, ..row }, Some(beside));
    }

    /// Walks all bytes of a row of dense parts, with a second block beside each if there is one.
    #[inline]
    fn dense_row(&mut self, facts: &Facts, row: Row, beside: Option<StripsBeside>) {
        (self.each)(Strip {
            offset: row.offset.wrapping_add(facts.true_bounds.lower),
            stride: row.stride,
            packed: row.packed as u64,
            packed_stride: row.packed_stride,
            length: facts.size as usize,
            count: row.count,
            beside,
        });
    }

    #[inline]
    fn block(&mut self, offset: i64, packed: i64, length: usize) {
        let packed = packed as u64;
        (self.each)(Strip {
            offset,
            stride: 0,
            packed,
            packed_stride: 0,
            length,
            count: 1,
            beside: None,
        });
    }
}

impl Row {
    fn at(&self, index: u64) -> i64 {
        self.offset.wrapping_add(times(index, self.stride))
    }

    fn packed_at(&self, index: u64) -> i64 {
        self.packed + (index * self.packed_stride) as i64
    }

    /// Divides the row into slices that stay in the nearest cache when they are walked across.
    fn slices(self, size: u64) -> impl Iterator<Item = Self> {
        let reach = size.max(self.stride.unsigned_abs()).max(1);
        let step = if self.count.saturating_mul(reach) <= ACROSS_BYTES {
            self.count
        } else {
            (ACROSS_BYTES / reach).max(ACROSS_MIN)
        };
        let mut first = 0;
        std::iter::from_fn(move || {
            let count = step.min(self.count - first);
            let slice =
                Self { offset: self.at(first), packed: self.packed_at(first), count, ..self };
            first += count;
            (count > 0).then_some(slice)
        })
    }
}

/// A repetition as a row; the caller sets its places among the packed bytes.
fn row_of(repeat: &Repeat, offset: i64) -> Row {
    Row {
        offset: offset.wrapping_add(repeat.offset),
        stride: repeat.stride,
        packed: 0,
        packed_stride: 0,
        count: repeat.count,
    }
}

/// Whether an entry of a list is one short block.
fn is_short(tree: &Tree, entry: &Entry) -> bool {
    let facts = tree.facts(entry.child);
    facts.dense && facts.size <= PAIRED_BYTES_MAX
}

/// The dense second of two entries of a list, relative to the dense first one.
fn beside_of(tree: &Tree, entry: &Entry, next: &Entry) -> StripsBeside {
    let (first, second) = (tree.facts(entry.child), tree.facts(next.child));
    let start = |entry: &Entry, facts: &Facts| entry.offset.wrapping_add(facts.true_bounds.lower);
    StripsBeside {
        offset: start(next, second).wrapping_sub(start(entry, first)),
        packed: next.packed_start - entry.packed_start,
        length: second.size as usize,
    }
}

/// The place of an entry of a list, in the buffer and among the packed bytes.
fn place_of(entry: &Entry, offset: i64, packed: i64) -> (i64, i64) {
    (offset.wrapping_add(entry.offset), packed + entry.packed_start as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Member};

    fn strips(layout: &Layout, count: u64, range: Range<u64>) -> Vec<Strip> {
        let mut strips = Vec::new();
        layout.strips(count, range, |strip| strips.push(strip)).unwrap();
        strips
    }

    fn bytes(count: u64) -> Layout {
        Layout::elements(Kind::BYTE, count).unwrap()
    }

    #[test]
    fn a_vector_is_one_strip_and_its_ends() {
        let vector = Layout::vector(10, 1, 32, &bytes(8)).unwrap();
        let whole = Strip {
            offset: 0,
            stride: 32,
            packed: 0,
            packed_stride: 8,
            length: 8,
            count: 10,
            beside: None,
        };
        assert_eq!(strips(&vector, 1, 0..80), [whole]);
        let middle = strips(&vector, 1, 3..42);
        let lengths: Vec<_> = middle.iter().map(|strip| (strip.length, strip.count)).collect();
        assert_eq!(lengths, [(5, 1), (8, 4), (2, 1)]);
        assert_eq!(middle[2].offset, 160);
        assert_eq!(middle[2].packed, 37);
    }

    #[test]
    fn structures_are_copied_two_members_at_once() {
        let member = |offset, layout| Member { offset, count: 1, layout };
        let members = [member(0, bytes(4)), member(8, bytes(8)), member(20, bytes(2))];
        let record = Layout::structure(&members).unwrap();
        let strips = strips(&record, 100, 0..1400);
        assert_eq!(strips.len(), 2);
        assert_eq!(strips[0].beside, Some(StripsBeside { offset: 8, packed: 4, length: 8 }));
        assert_eq!((strips[0].packed, strips[0].packed_stride, strips[0].count), (0, 14, 100));
        assert_eq!((strips[1].offset, strips[1].stride, strips[1].count), (20, 22, 100));
        assert_eq!((strips[1].packed, strips[1].length, strips[1].beside), (12, 2, None));
    }

    #[test]
    fn regular_lists_are_strips() {
        let blocks: Vec<_> = (0..50)
            .map(|index| crate::LayoutBlock { offset: 100 + index * 24, count: 2 })
            .collect();
        let indexed = Layout::indexed(&blocks, &bytes(4)).unwrap();
        let strips = strips(&indexed, 1, 0..400);
        assert_eq!(strips.len(), 1);
        assert_eq!((strips[0].offset, strips[0].length, strips[0].count), (100, 8, 50));
    }
}
