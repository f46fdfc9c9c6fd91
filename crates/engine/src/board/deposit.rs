//! Coming to the board, with data or without.

use std::ops::Range;

use landeck_board::{Board, Coming, Deposit, INLINE_BYTES, Outcome};
use landeck_collectives::Cells;
use landeck_memory::heap::{Block, HeapFull};
use landeck_memory::{Buffer, Bytes};

use super::{
    AT_ONCE_BYTES, Around, AtBoard, BlockMemory, BoardError, PIECE_BYTES, Result, Stepped,
    WHOLE_PIECE_BYTES, piece_bytes,
};
use crate::call::check::Check;
use crate::lack::Lack;

/// Shorter deposits are not laid in a cell.
const CELL_BYTES_MIN: usize = 2 << 10;

impl AtBoard {
    /// Comes without data: this member has failed before it could bring them, for want of memory as may be.
    /// False when there is no room yet.
    #[cold]
    pub(crate) fn come_with_nothing(&mut self, board: &mut Board, lack: Option<Lack>) -> bool {
        if !board.has_room(self.number) {
            return false;
        }
        self.has_come = true;
        let said = (self.signature, self.check);
        match lack {
            Some(lack) => board.come_without(self.number, said, lack.to_words()),
            None => board.come(self.number, self.signature, self.check, Bytes::EMPTY),
        }
        if self.protocol.is_counted() && board.count(self.number, self.signature) == Coming::Last {
            let own = board.own();
            let outcome = match lack {
                Some(Lack::Memory { .. }) => Outcome::NoRoom(own),
                _ => Outcome::Spoiled(own),
            };
            board.decide(self.number, outcome);
        }
        board.wake();
        true
    }

    pub(super) fn deposit<M: BlockMemory>(
        &mut self,
        around: &mut Around<'_, M>,
        cells: Cells,
        except: Option<u32>,
    ) -> Result<Stepped> {
        if !self.has_come {
            if !around.board.has_room(self.number) || !self.come(around, cells, except)? {
                return Ok(Stepped::Waits);
            }
            self.has_come = true;
        } else {
            self.fill(around, cells, except)?;
            around.board.set_filled(self.number, self.done as u64);
        }
        if self.done < deposit_bytes(around.memory, cells) {
            return Ok(Stepped::Moved);
        }
        self.has_deposited(around.board)
    }

    /// This member has come, with all of its data or the place of them.
    pub(super) fn has_deposited(&mut self, board: &mut Board) -> Result<Stepped> {
        // A member that counts while others call something else spoils later operations.
        if self.check == Check::NONE.word() {
            self.count(board)?;
        }
        board.wake();
        Ok(Stepped::Over)
    }

    /// Says that this member has come, with its data or the first of them. False when there is no
    /// memory for them yet.
    #[inline]
    fn come<M: BlockMemory>(
        &mut self,
        around: &mut Around<'_, M>,
        cells: Cells,
        except: Option<u32>,
    ) -> Result<bool> {
        let bytes = deposit_bytes(around.memory, cells);
        let (number, signature, check) = (self.number, self.signature, self.check);
        if bytes <= INLINE_BYTES && !self.protocol.in_block {
            let mut data = [0; INLINE_BYTES];
            if bytes > 0 {
                lay_out(around.memory, cells, except, 0, target_in(&mut data[..bytes]));
            }
            around.board.come(number, signature, check, Bytes::from(&data[..bytes]));
            self.done = bytes;
            return Ok(true);
        }
        let first =
            if bytes <= AT_ONCE_BYTES { bytes } else { self.fill_bytes(bytes, *around.budget) };
        let (memory, said) = (around.memory, (signature, check));
        let lay = |target: Buffer| lay_out(memory, cells, except, 0, target);
        let comes_back = self.protocol.comes_back;
        let has_come = if (self.protocol.is_handed_over || comes_back) && bytes >= CELL_BYTES_MIN {
            around.board.come_in_cell(number, said, (bytes, first, comes_back), lay)
        } else {
            false
        };
        if has_come {
            self.done = first;
            *around.budget = around.budget.saturating_sub(first as u64);
            return Ok(true);
        }
        let Some(mut block) = self.block_of(around, bytes)? else {
            return Ok(false);
        };
        lay_out(around.memory, cells, except, 0, target_in(&mut block[..first]));
        self.done = first;
        *around.budget = around.budget.saturating_sub(first as u64);
        around.board.come_with(number, said, block, (bytes, self.done));
        Ok(true)
    }

    fn block_of<M: BlockMemory>(
        &self,
        around: &mut Around<'_, M>,
        bytes: usize,
    ) -> Result<Option<Block>> {
        if self.protocol.is_chunk
            && let Some(block) = around.board.last_spare(bytes)
        {
            return Ok(Some(block));
        }
        block_for(around.board, around.allocate, bytes)
    }

    /// Puts the next bytes into the block.
    pub(super) fn fill<M: BlockMemory>(
        &mut self,
        around: &mut Around<'_, M>,
        cells: Cells,
        except: Option<u32>,
    ) -> Result<()> {
        let (bytes, own) = (deposit_bytes(around.memory, cells), around.board.own());
        let Some(kept) = around.board.kept(self.number) else {
            return Err(BoardError::Broken(own));
        };
        let end = bytes.min(self.done + self.fill_bytes(bytes, *around.budget));
        let target = kept.part(self.done, end - self.done);
        lay_out(around.memory, cells, except, self.done, target);
        *around.budget = around.budget.saturating_sub((end - self.done) as u64);
        self.done = end;
        Ok(())
    }

    /// How many of `bytes` bytes are filled before others are told of them.
    pub(super) fn fill_bytes(&self, bytes: usize, budget: u64) -> usize {
        if !self.protocol.is_whole {
            return piece_bytes(0, bytes);
        }
        let allowed = usize::try_from(budget).unwrap_or(usize::MAX);
        allowed.clamp(PIECE_BYTES, WHOLE_PIECE_BYTES).min(bytes)
    }

    /// Counts this member in, where all wait for the last to come.
    #[inline]
    pub(crate) fn count(&mut self, board: &Board) -> Result<()> {
        if !self.protocol.counted {
            return Ok(());
        }
        match board.count(self.number, self.signature) {
            Coming::NotLast => {}
            Coming::Last => self.is_last = true,
            Coming::Different => return Err(self.whoever_differs(board)),
        }
        Ok(())
    }

    pub(super) fn whoever_differs(&self, board: &Board) -> BoardError {
        self.different(board, 0..board.size()).unwrap_or(BoardError::Broken(board.own()))
    }
}

/// Memory of this process's heap.
pub(crate) type Allocate<'a> = &'a mut dyn FnMut(usize) -> std::result::Result<Block, HeapFull>;

/// A block for a deposit: one of those used before, or a new one. None while what others still read, on
/// any board of this process, takes the room.
pub(crate) fn block_for(
    board: &mut Board,
    allocate: Allocate<'_>,
    bytes: usize,
) -> Result<Option<Block>> {
    match spare_or_new(board, allocate, bytes) {
        Ok(block) => {
            if board.room().is_awaited() {
                board.room().was_found();
            }
            Ok(Some(block))
        }
        Err(_) if board.room().await_more() => Ok(None),
        Err(full) => Err(full.into()),
    }
}

/// A block for a deposit, now or not at all.
pub(super) fn spare_or_new(
    board: &mut Board,
    allocate: Allocate<'_>,
    bytes: usize,
) -> std::result::Result<Block, HeapFull> {
    if let Some(block) = board.spare(bytes) {
        return Ok(block);
    }
    if let Ok(block) = allocate(bytes) {
        return Ok(block);
    }
    board.collect();
    match board.spare(bytes) {
        Some(block) => Ok(block),
        None => allocate(bytes),
    }
}

/// Bytes of a deposit, its table included.
#[inline]
fn deposit_bytes<M: BlockMemory>(memory: &M, cells: Cells) -> usize {
    table_bytes(memory, cells) + memory.bytes(cells)
}

/// A table has a word for the end of each block.
#[inline]
pub(super) fn table_bytes<M: BlockMemory>(memory: &M, cells: Cells) -> usize {
    if memory.has_table() && cells.count > 1 { cells.count as usize * 8 } else { 0 }
}

/// Returns memory of this call as the target of a deposit.
pub(super) fn target_in(memory: &mut [u8]) -> Buffer {
    // SAFETY: the callers write to it at once, while they still borrow the memory.
    unsafe { Buffer::of_mut(memory) }
}

/// Writes the bytes from `position` on of what is deposited: the table, then the blocks.
fn lay_out<M: BlockMemory>(
    memory: &M,
    cells: Cells,
    except: Option<u32>,
    position: usize,
    target: Buffer,
) {
    let table = table_bytes(memory, cells);
    if position < table {
        let ends = table_of(memory, cells);
        target.write(0, Bytes::from(&ends[..]).part(position, target.len()));
    }
    let hole = except.map(|block| {
        let start = table + memory.bytes(Cells { count: block - cells.first, ..cells });
        start..start + memory.bytes(Cells::new(cells.store, block, 1))
    });
    let end = position + target.len();
    match memory.plain(cells) {
        Some(buffer) => each_around(hole, position.max(table), end, |range| {
            let bytes = buffer.bytes().part(range.start - table, range.len());
            target.write(range.start - position, bytes);
        }),
        None => {
            let area = memory.area(cells);
            each_around(hole, position.max(table), end, |range| {
                let place = target.part(range.start - position, range.len());
                area.pack_to((range.start - table) as u64, &place);
            });
        }
    }
}

/// The ranges between two positions and outside a hole.
#[inline]
fn each_around(
    hole: Option<Range<usize>>,
    mut at: usize,
    end: usize,
    mut each: impl FnMut(Range<usize>),
) {
    while at < end {
        let next = match &hole {
            Some(hole) if at >= hole.start && at < hole.end => {
                at = hole.end;
                continue;
            }
            Some(hole) if at < hole.start => end.min(hole.start),
            _ => end,
        };
        each(at..next);
        at = next;
    }
}

fn table_of<M: BlockMemory>(memory: &M, cells: Cells) -> Vec<u8> {
    let end = |count| memory.bytes(Cells { count, ..cells }) as u64;
    (1..=cells.count).flat_map(|count| end(count).to_ne_bytes()).collect()
}

/// Where a block begins in somebody's deposit, and how long it is.
pub(super) fn place_of<M: BlockMemory>(
    memory: &M,
    deposit: &Deposit<'_>,
    member: u32,
    deposited: Cells,
    into: Cells,
) -> Result<(usize, usize)> {
    let (Deposit::Inline { bytes } | Deposit::Block { bytes, .. }) = deposit;
    let bytes = bytes.len();
    if memory.has_table() && deposited.count > 1 {
        return place_by_table(deposit, bytes, member, deposited, into, memory.bytes(into));
    }
    place_among(memory, bytes, member, deposited, into)
}

/// Where a block begins among the blocks of a member, which have so many bytes together, and how long it is.
pub(super) fn place_among<M: BlockMemory>(
    memory: &M,
    bytes: usize,
    member: u32,
    deposited: Cells,
    into: Cells,
) -> Result<(usize, usize)> {
    let ours = memory.bytes(into);
    if deposited.count == 1 {
        let theirs = bytes;
        return if bytes == ours {
            Ok((0, ours))
        } else {
            Err(BoardError::Lengths { member, theirs, ours })
        };
    }
    let start = memory.bytes(Cells { count: into.first - deposited.first, ..deposited });
    if memory.bytes(deposited) != bytes {
        let theirs = bytes;
        return Err(BoardError::Lengths { member, theirs, ours: memory.bytes(deposited) });
    }
    Ok((start, ours))
}

fn place_by_table(
    deposit: &Deposit<'_>,
    bytes: usize,
    member: u32,
    deposited: Cells,
    into: Cells,
    ours: usize,
) -> Result<(usize, usize)> {
    let (index, count) = ((into.first - deposited.first) as usize, deposited.count as usize);
    let end_of = |index: usize| {
        let mut word = [0; 8];
        copy_out(deposit, index * 8, &mut word);
        u64::from_ne_bytes(word)
    };
    let start = if index == 0 { 0 } else { end_of(index - 1) };
    let theirs = end_of(index).saturating_sub(start) as usize;
    let begin = (count as u64 * 8).saturating_add(start);
    if begin.saturating_add(theirs as u64) > bytes as u64 {
        return Err(BoardError::Broken(member));
    }
    if theirs != ours {
        return Err(BoardError::Lengths { member, theirs, ours });
    }
    Ok((begin as usize, ours))
}

/// Copies bytes of a deposit out.
fn copy_out(deposit: &Deposit<'_>, start: usize, target: &mut [u8]) {
    let (Deposit::Inline { bytes } | Deposit::Block { bytes, .. }) = deposit;
    bytes.part(start, target.len()).copy_to_slice(target);
}
