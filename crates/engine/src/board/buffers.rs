//! The memory of a member's input and output in one operation, as the board's steps see it.

use landeck_collectives::board_schedule::Chunk;
use landeck_collectives::{Cells, Operation, Plan, Store};
use landeck_kernel::Area;
use landeck_memory::Buffer;

use crate::binding::{Blocks, first_and_stride};
use crate::board::BlockMemory;
use crate::call::Call;

/// The memory of one call, as the board's steps see it.
pub(crate) struct CallBuffers<'a> {
    call: &'a Call,
    size: u32,
    member: u32,
    segments: u32,
    /// Bytes that all members know alike.
    known_bytes: u64,
    chunk: Chunk,
}

impl<'a> CallBuffers<'a> {
    /// The memory of a call, as its plan divides it, in one of its chunks; `known_bytes` is
    /// [`Call::known_bytes`].
    #[inline]
    pub(crate) fn of(call: &'a Call, known_bytes: u64, plan: &Plan, chunk: Chunk) -> Self {
        let Plan { size, member, segments, .. } = *plan;
        Self { call, size, member, segments, known_bytes, chunk }
    }

    /// Where a segment begins, in operations whose blocks are segments.
    #[inline]
    fn start(&self, segment: u32) -> u64 {
        let (start, bytes) = match self.chunk {
            Chunk::Part { start, bytes } => (start, bytes),
            _ => (0, self.known_bytes),
        };
        start + self.call.cut_of(bytes, self.segments).start(segment)
    }

    /// Where these segments begin, and their bytes together.
    #[inline]
    fn segments_of(&self, cells: Cells) -> (u64, u64) {
        let start = self.start(cells.first);
        (start, self.start(cells.first + cells.count) - start)
    }

    #[inline]
    fn blocks(&self, store: Store) -> &Blocks {
        if store == Store::Output { &self.call.output } else { &self.call.input }
    }

    /// Which block of the call's the first of these is. None where it has no such block.
    #[inline]
    fn number(&self, cells: Cells) -> Option<u32> {
        let is_output = cells.store == Store::Output;
        let (first, stride) =
            first_and_stride(self.call.operation, is_output, self.size, self.member);
        Some(cells.first.checked_sub(first)? / stride)
    }
}

impl CallBuffers<'_> {
    #[inline]
    fn plain_of_all(&self, cells: Cells) -> Option<Buffer> {
        match self.blocks(cells.store) {
            Blocks::Whole(area, _) if self.segments > 1 => {
                let (start, bytes) = self.segments_of(cells);
                Some(area.as_buffer()?.part(start as usize, bytes as usize))
            }
            blocks => blocks.plain(self.number(cells)?, cells.count),
        }
    }

    #[inline]
    fn area_of_all(&self, cells: Cells) -> Area {
        match self.blocks(cells.store) {
            Blocks::Whole(area, _) if self.segments > 1 => {
                let (start, bytes) = self.segments_of(cells);
                area.part(start, bytes)
            }
            blocks => {
                self.number(cells).map_or(Area::EMPTY, |first| blocks.area(first, cells.count))
            }
        }
    }
}

impl BlockMemory for CallBuffers<'_> {
    #[inline]
    fn plain(&self, cells: Cells) -> Option<Buffer> {
        match self.chunk {
            Chunk::Whole | Chunk::Block { .. } => self.plain_of_all(cells),
            // Segments are cut from what the chunk has.
            Chunk::Part { .. } if self.segments > 1 => self.plain_of_all(cells),
            Chunk::Part { start, bytes } => {
                let one = self.plain_of_all(cells).filter(|_| cells.count == 1)?;
                Some(one.part(start as usize, bytes as usize))
            }
        }
    }

    fn area(&self, cells: Cells) -> Area {
        match self.chunk {
            Chunk::Whole | Chunk::Block { .. } => self.area_of_all(cells),
            Chunk::Part { .. } if self.segments > 1 => self.area_of_all(cells),
            Chunk::Part { start, bytes } => {
                let part = |block| Cells::new(cells.store, block, 1);
                let part = |block| self.area_of_all(part(block)).part(start, bytes);
                Area::joined(cells.blocks().map(part))
            }
        }
    }

    #[inline]
    fn bytes(&self, cells: Cells) -> usize {
        let bytes = if let (Chunk::Part { bytes, .. }, 1) = (self.chunk, self.segments) {
            bytes.saturating_mul(u64::from(cells.count))
        } else if self.call.is_varying {
            self.area(cells).packed_bytes()
        } else if self.call.operation == Operation::ReduceScatter {
            self.call.input.area(cells.first, cells.count).packed_bytes()
        } else if !self.call.operation.has_segments() {
            self.known_bytes.saturating_mul(u64::from(cells.count))
        } else if self.segments == 1 {
            if cells.count > 0 { self.known_bytes } else { 0 }
        } else {
            self.start(cells.first + cells.count) - self.start(cells.first)
        };
        bytes as usize
    }

    #[inline]
    fn has_table(&self) -> bool {
        self.call.is_varying
            && matches!(self.call.operation, Operation::Scatter | Operation::AllToAll)
    }
}
