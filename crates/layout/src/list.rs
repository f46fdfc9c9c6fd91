//! Builds lists of items at any offsets, in the form that is walked fastest.
//!
//! Adjacent items become one dense part, and items of one layout at equal distances become a repetition. So an index
//! list that happens to be regular is as fast as a vector.

use std::ops::Range;
use std::sync::Arc;

use crate::tree::{Entry, Facts, Form, Repeat, Tree, number};
use crate::{Layout, LayoutError};

/// The longest list that is dissolved when it is put into another.
const SPLICED_ENTRIES: u32 = 16;
/// The shortest row of equal distances that becomes a repetition within a list.
const ROW_MIN: usize = 4;

/// `count` items, one behind the other, at `offset` bytes from the base address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayoutBlock {
    /// The base address of the first item.
    pub offset: i64,
    /// The number of items.
    pub count: u64,
}

/// A block with a layout of its own: one member of a structure.
#[derive(Clone, Debug)]
pub struct Member {
    /// The base address of the first item.
    pub offset: i64,
    /// The number of items.
    pub count: u64,
    /// The layout of each item.
    pub layout: Layout,
}

impl Layout {
    /// Creates the layout of blocks of one item at any offsets, packed in the given order.
    ///
    /// # Errors
    /// [`LayoutError::TooLarge`] beyond 63 bits, [`LayoutError::TooManyParts`] beyond 32 bits.
    pub fn indexed(blocks: &[LayoutBlock], item: &Self) -> Result<Self, LayoutError> {
        let mut list = ListBuilder::new();
        for run in merged(blocks, item)? {
            list.add(run.offset, &Self::contiguous(run.count, item)?)?;
        }
        list.finish()
    }

    /// Creates the layout of members with layouts of their own at any offsets, packed in the given order.
    ///
    /// # Errors
    /// [`LayoutError::TooLarge`] beyond 63 bits, [`LayoutError::TooManyParts`] beyond 32 bits.
    pub fn structure(members: &[Member]) -> Result<Self, LayoutError> {
        let mut list = ListBuilder::new();
        for member in members {
            list.add(member.offset, &Self::contiguous(member.count, &member.layout)?)?;
        }
        list.finish()
    }
}

/// The blocks without the empty ones; adjacent ones become one.
fn merged(blocks: &[LayoutBlock], item: &Layout) -> Result<Vec<LayoutBlock>, LayoutError> {
    let extent = item.extent_bytes()?;
    let mut runs: Vec<LayoutBlock> = Vec::with_capacity(blocks.len());
    for block in blocks.iter().filter(|block| block.count > 0) {
        if let Some(last) = runs.last_mut()
            && end_of(last, extent) == Some(block.offset)
            && let Some(count) = last.count.checked_add(block.count)
        {
            last.count = count;
        } else {
            runs.push(*block);
        }
    }
    Ok(runs)
}

/// The place of an item that would follow a block.
fn end_of(block: &LayoutBlock, extent: i64) -> Option<i64> {
    i64::try_from(block.count).ok()?.checked_mul(extent)?.checked_add(block.offset)
}

/// Collects the entries of a list and its facts.
pub(crate) struct ListBuilder {
    tree: Tree,
    entries: Vec<Entry>,
    /// The layout that was copied last, and the index of its parts: equal neighbours are copied once.
    last_copied: Option<(Layout, u32)>,
    facts: Facts,
}

impl ListBuilder {
    /// Creates a list without entries.
    pub(crate) fn new() -> Self {
        Self { tree: Tree::new(), entries: Vec::new(), last_copied: None, facts: Facts::EMPTY }
    }

    /// Appends an item at this offset. If the item has no bytes, only its bounds count; if it is empty, nothing does.
    pub(crate) fn add(&mut self, offset: i64, item: &Layout) -> Result<(), LayoutError> {
        let packed_start = self.facts.size;
        let facts = item.facts();
        if !facts.is_nothing() {
            self.facts = self.facts.followed_by(&facts.moved(offset)?)?;
        }
        if facts.size == 0 {
            return Ok(());
        }
        let child = self.place(item)?;
        self.entries.push(Entry { offset, packed_start, child });
        number(self.entries.len()).map(drop)
    }

    /// Completes the list as a layout.
    pub(crate) fn finish(mut self) -> Result<Layout, LayoutError> {
        if self.entries.is_empty() {
            return Ok(Layout::from_parts(self.facts, None));
        }
        let facts = self.facts;
        self.splice()?;
        self.join_neighbours()?;
        self.join_rows()?;
        match self.entries[..] {
            [entry] => self.finish_one(entry),
            _ => {
                self.tree.push_list(&mut self.entries, facts)?;
                Ok(Layout::from_parts(facts, Some(self.tree.finish())))
            }
        }
    }

    /// Replaces short lists that occur once by their entries, so that structures of structures do not nest.
    fn splice(&mut self) -> Result<(), LayoutError> {
        let entries = std::mem::take(&mut self.entries);
        for (index, entry) in entries.iter().enumerate() {
            let is_child = |other: Option<&Entry>| other.is_some_and(|it| it.child == entry.child);
            let is_shared =
                is_child(entries.get(index + 1)) || index > 0 && is_child(entries.get(index - 1));
            match self.tree.form(entry.child) {
                Form::List { first, last }
                    if last - first <= SPLICED_ENTRIES
                        && !is_shared
                        && !self.tree.facts(entry.child).dense =>
                {
                    self.entries.extend(self.tree.list(first, last).iter().map(|part| Entry {
                        // This only wraps if a base address lies beyond 63 bits; no byte does.
                        offset: entry.offset.wrapping_add(part.offset),
                        packed_start: entry.packed_start + part.packed_start,
                        child: part.child,
                    }));
                }
                _ => self.entries.push(*entry),
            }
        }
        number(self.entries.len()).map(drop)
    }

    /// Completes a list of one entry, which is that entry at another place.
    fn finish_one(mut self, entry: Entry) -> Result<Layout, LayoutError> {
        let child = *self.tree.facts(entry.child);
        let facts = self.facts;
        let repeat = match self.tree.form(entry.child) {
            Form::Repeat(repeat) => {
                Repeat { offset: repeat.offset.wrapping_add(entry.offset), ..repeat }
            }
            Form::Run if entry.offset == 0 && child.true_bounds.lower == 0 => {
                return Ok(Layout::from_parts(facts, None));
            }
            _ => Repeat { offset: entry.offset, count: 1, stride: 0, child: entry.child },
        };
        self.tree.push(Form::Repeat(repeat), facts)?;
        Ok(Layout::from_parts(facts, Some(self.tree.finish())))
    }

    /// Joins adjacent dense entries into one dense entry.
    fn join_neighbours(&mut self) -> Result<(), LayoutError> {
        let entries = std::mem::take(&mut self.entries);
        let mut start = 0;
        for index in 1..=entries.len() {
            if index < entries.len() && self.follows(&entries[index - 1], &entries[index]) {
                continue;
            }
            if index - start == 1 {
                self.entries.push(entries[start]);
            } else {
                let joined = self.join(&entries, start..index)?;
                self.entries.push(joined);
            }
            start = index;
        }
        Ok(())
    }

    /// Joins several adjacent entries into one dense entry.
    fn join(&mut self, entries: &[Entry], range: Range<usize>) -> Result<Entry, LayoutError> {
        let (offset, packed_start) =
            (entries[range.start].offset, entries[range.start].packed_start);
        let mut facts = Facts::EMPTY;
        let mut parts = Vec::with_capacity(range.len());
        for entry in &entries[range] {
            let part = Entry {
                offset: entry.offset.wrapping_sub(offset),
                packed_start: entry.packed_start - packed_start,
                child: entry.child,
            };
            facts = facts.followed_by(&self.tree.facts(entry.child).moved(part.offset)?)?;
            parts.push(part);
        }
        let child = if facts.uniform.is_some() {
            self.place_run(facts)?
        } else {
            self.tree.push_list(&mut parts, facts)?
        };
        Ok(Entry { offset, packed_start, child })
    }

    /// The index of a run of elements, which is shared with the entry before if that is equal.
    fn place_run(&mut self, facts: Facts) -> Result<u32, LayoutError> {
        match self.entries.last() {
            Some(entry)
                if *self.tree.facts(entry.child) == facts
                    && matches!(self.tree.form(entry.child), Form::Run) =>
            {
                Ok(entry.child)
            }
            _ => self.tree.push(Form::Run, facts),
        }
    }

    /// Whether the bytes of an entry lie exactly behind those of another.
    fn follows(&self, before: &Entry, entry: &Entry) -> bool {
        let (first, second) = (self.tree.facts(before.child), self.tree.facts(entry.child));
        first.dense
            && second.dense
            && before.offset.wrapping_add(first.true_bounds.upper)
                == entry.offset.wrapping_add(second.true_bounds.lower)
    }

    /// Joins entries with one child at equal distances into a repetition.
    fn join_rows(&mut self) -> Result<(), LayoutError> {
        let entries = std::mem::take(&mut self.entries);
        let mut start = 0;
        while start < entries.len() {
            let length = row_length(&entries[start..]);
            if length >= ROW_MIN || length == entries.len() && length > 1 {
                let row = self.join_row(&entries[start..start + length])?;
                self.entries.push(row);
                start += length;
            } else {
                self.entries.push(entries[start]);
                start += 1;
            }
        }
        Ok(())
    }

    fn join_row(&mut self, row: &[Entry]) -> Result<Entry, LayoutError> {
        let (first, count) = (row[0], row.len() as u64);
        let stride = row[1].offset.wrapping_sub(first.offset);
        let facts = self.tree.facts(first.child).repeated(count, stride)?;
        let repeat = Repeat { offset: 0, count, stride, child: first.child };
        let child = self.tree.push(Form::Repeat(repeat), facts)?;
        Ok(Entry { child, ..first })
    }

    /// The index of this item's parts in the table.
    fn place(&mut self, item: &Layout) -> Result<u32, LayoutError> {
        if let Some((last, index)) = &self.last_copied
            && same_parts(last, item)
        {
            return Ok(*index);
        }
        let index = item.copy_into(&mut self.tree)?;
        self.last_copied = Some((item.clone(), index));
        Ok(index)
    }
}

/// The number of entries from the first on that have its child and equal distances.
fn row_length(entries: &[Entry]) -> usize {
    let Some([first, second]) = entries.first_chunk() else { return entries.len() };
    let stride = second.offset.wrapping_sub(first.offset);
    let goes_on = |pair: &&[Entry]| {
        pair[0].child == pair[1].child && pair[1].offset.wrapping_sub(pair[0].offset) == stride
    };
    1 + entries.windows(2).take_while(goes_on).count()
}

/// Whether two layouts have the same parts in the table; their outer bounds do not matter there.
fn same_parts(left: &Layout, right: &Layout) -> bool {
    match (left.tree(), right.tree()) {
        (Some(left), Some(right)) => Arc::ptr_eq(left, right),
        (None, None) => left.facts() == right.facts(),
        _ => false,
    }
}
