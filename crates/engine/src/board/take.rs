//! Taking from the board what others have laid there.

use std::ops::Range;

use landeck_arithmetic::Operator;
use landeck_board::Deposit;
use landeck_collectives::Cells;
use landeck_memory::Bytes;

use super::combining::pieces;
use super::deposit::{place_of, table_bytes};
use super::{
    AT_ONCE_BYTES, Around, AtBoard, BlockMemory, BoardError, Result, Stepped, Taking, piece_bytes,
};

/// Where a block lies in a deposit.
struct Found {
    start: usize,
    length: usize,
    /// Bytes of it that are there by now.
    there: usize,
}

impl AtBoard {
    pub(super) fn take<M: BlockMemory>(
        &mut self,
        around: &mut Around<'_, M>,
        taking: Taking,
    ) -> Result<Stepped> {
        let Taking { from, into, resolved, .. } = taking;
        self.takes_nothing = resolved && around.memory.bytes(into) == 0;
        if from != around.board.own() && !self.has_member_come(around.board, from)? {
            return Ok(Stepped::Waits);
        }
        let memory = around.memory;
        let deposit = around.board.deposit(from, self.number);
        let deposit = deposit.map_err(|no| BoardError::from(no).expecting(memory.bytes(into)))?;
        let Some(Found { start, length, there }) = find(memory, &deposit, taking)? else {
            return Ok(Stepped::Waits);
        };
        let end = there.min(self.done + piece_bytes(*around.budget, length));
        if end <= self.done && length > 0 {
            return Ok(Stepped::Waits);
        }
        // A result made of this member's data lies where those were deposited.
        let came_back = around.board.coming_back(self.number).filter(|_| resolved);
        write(memory, into, came_back.unwrap_or(bytes_of(&deposit)), start, self.done..end);
        *around.budget = around.budget.saturating_sub((end - self.done) as u64);
        self.done = end;
        if end < length {
            return Ok(Stepped::Moved);
        }
        if self.protocol.is_handed_over {
            around.board.take_over(from, self.number);
        } else if resolved {
            around.board.take_back(self.number);
        }
        Ok(Stepped::Over)
    }

    /// Leaves a step that cannot be done, for the next one.
    pub(crate) fn leave_step(&mut self) {
        (self.done, self.seen) = (0, 0);
    }

    pub(super) fn take_result<M: BlockMemory>(
        &mut self,
        around: &mut Around<'_, M>,
        into: Cells,
    ) -> Result<Stepped> {
        let (memory, length) = (around.memory, around.memory.bytes(into));
        let board = &*around.board;
        if length <= AT_ONCE_BYTES {
            write(memory, into, bytes_of(&board.result(self.number)?), 0, 0..length);
            return Ok(Stepped::Over);
        }
        let element_bytes = around.operator.map_or(1, Operator::element_bytes);
        let pieces = pieces(length, element_bytes, board.processors());
        let end = length.min(self.done + piece_bytes(*around.budget, length));
        while self.done < end {
            let range = pieces.range((self.done / pieces.bytes) as u32, length);
            let owner = board.piece_owner(self.number, (range.start / pieces.bytes) as u32)?;
            let deposit = board.deposit(owner, self.number)?;
            write(memory, into, bytes_of(&deposit), 0, range.clone());
            *around.budget = around.budget.saturating_sub(range.len() as u64);
            self.done = range.end;
        }
        Ok(if self.done == length { Stepped::Over } else { Stepped::Moved })
    }
}

/// Finds a block in a deposit; none while the table that says where it lies is not there.
fn find<M: BlockMemory>(
    memory: &M,
    deposit: &Deposit<'_>,
    Taking { from, deposited, into, resolved }: Taking,
) -> Result<Option<Found>> {
    let table = table_bytes(memory, deposited);
    if let Deposit::Block { bytes, filled, .. } = deposit
        && *filled < table
    {
        // A deposit that is too short for a table will never have it.
        let is_broken = bytes.len() < table;
        return if is_broken { Err(BoardError::Broken(from)) } else { Ok(None) };
    }
    let (start, length) = place_of(memory, deposit, from, deposited, into)?;
    let there = match *deposit {
        Deposit::Inline { .. } => length,
        Deposit::Block { resolved: bytes, .. } if resolved => bytes.min(length),
        Deposit::Block { filled, .. } => filled.saturating_sub(start).min(length),
    };
    Ok(Some(Found { start, length, there }))
}

/// All bytes of a deposit.
#[inline]
fn bytes_of<'a>(deposit: &Deposit<'a>) -> Bytes<'a> {
    let (Deposit::Inline { bytes } | Deposit::Block { bytes, .. }) = *deposit;
    bytes
}

/// Writes the bytes `range` of a block, which begins at `start` of what was laid down, to where they belong
/// among this member's.
#[inline]
fn write<M: BlockMemory>(
    memory: &M,
    into: Cells,
    bytes: Bytes<'_>,
    start: usize,
    range: Range<usize>,
) {
    let bytes = bytes.part(start + range.start, range.len());
    match memory.plain(into) {
        Some(buffer) => {
            buffer.write(range.start, bytes);
        }
        None => memory.area(into).write(range.start as u64, bytes),
    }
}
