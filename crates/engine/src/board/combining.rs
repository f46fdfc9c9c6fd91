//! Combining what lies on the board: for oneself, for all in parts, or all together.

use std::ops::Range;

use landeck_arithmetic::Operator;
use landeck_board::{Board, Deposit, Outcome, PIECES_MAX, RESULT_BYTES};
use landeck_collectives::{Cells, Store};
use landeck_memory::{Bytes, NoMemory, room};

use super::deposit::spare_or_new;
use super::told::{ReadParts, combined_bytes};
use super::{
    AT_ONCE_BYTES, Around, AtBoard, BlockMemory, BoardError, LONG_PIECE_BYTES, PIECE_BYTES, Result,
    Stepped, piece_bytes,
};

/// Pieces for each processor, where data are long enough.
const PIECES_EACH: usize = 4;

/// A step that combines a block of several members' deposits.
#[derive(Clone, Copy)]
pub(super) struct Combining {
    /// The first so many members.
    pub(super) members: u32,
    /// All blocks of a deposit.
    pub(super) deposited: Cells,
    /// The block that is combined, where it goes.
    pub(super) into: Cells,
}

impl AtBoard {
    pub(super) fn combine_deposits<M: BlockMemory>(
        &mut self,
        around: &mut Around<'_, M>,
        combining: Combining,
    ) -> Result<Stepped> {
        let Combining { members, deposited, into } = combining;
        if self.see(around.board, members)? != Stepped::Over {
            return Ok(Stepped::Waits);
        }
        let memory = around.memory;
        let operator = around.operator.ok_or(BoardError::NO_OPERATOR)?;
        let length = memory.bytes(into);
        let start = memory.bytes(Cells { count: into.first - deposited.first, ..deposited });
        let total = memory.bytes(deposited);
        let end = self.combinable(around.board, members, total, (start, length))?;
        let budget = if self.protocol.tells { combined_bytes(members) } else { *around.budget };
        let range = self.piece_of(end, length, operator.element_bytes(), budget);
        if range.is_empty() && length > 0 || !self.finds(around.board, members, start, &range)? {
            return Ok(Stepped::Waits);
        }
        self.combine_piece(around, operator, combining, start, &range)?;
        *around.budget = around.budget.saturating_sub(range.len() as u64);
        self.done = range.end;
        if self.done < length {
            return Ok(Stepped::Moved);
        }
        if self.protocol.is_handed_over {
            let own = around.board.own();
            let others = (0..members).filter(|&member| member != own);
            others.for_each(|member| around.board.take_over(member, self.number));
        }
        Ok(Stepped::Over)
    }

    /// Combines these bytes of a block, which begins at `start` of each deposit.
    fn combine_piece<M: BlockMemory>(
        &mut self,
        around: &Around<'_, M>,
        operator: &Operator,
        Combining { members, deposited, into }: Combining,
        start: usize,
        range: &Range<usize>,
    ) -> Result<()> {
        let (memory, board, number) = (around.memory, &*around.board, self.number);
        let own = Own::of(memory, into.at(deposited.store), range)?;
        let place = start + range.start;
        let sources = Sources { board, number, own: &own, read: &self.read_parts, start: place };
        let source = |member| sources.of(member);
        match memory.plain(into) {
            Some(buffer) => {
                let into = buffer.part(range.start, range.len());
                self.combiner.combine_to_buffer(operator, members, source, &into)?;
            }
            None => {
                let into = (&memory.area(into), range.start);
                self.combiner.combine_to_area(operator, members, source, into, range.len())?;
            }
        }
        Ok(())
    }

    /// Reads these bytes of a block in the memory of those who have told of theirs. False if one could not be read.
    #[inline]
    fn finds(
        &mut self,
        board: &mut Board,
        members: u32,
        start: usize,
        range: &Range<usize>,
    ) -> Result<bool> {
        if !self.protocol.tells {
            return Ok(true);
        }
        self.read_others(board, members, (start + range.start, range.len()))
    }

    /// Up to where the data of all these members are there or can be read, from `start` of what each has on.
    fn combinable(
        &self,
        board: &mut Board,
        members: u32,
        total: usize,
        (start, length): (usize, usize),
    ) -> Result<usize> {
        let (mut end, own) = (length, board.own());
        for member in (0..members).filter(|&member| member != own) {
            let told = board.told(member, self.number).filter(|_| self.protocol.tells);
            let (bytes, filled) = match told {
                Some(told) if length > 0 && board.needs_deposit(member, self.number) => {
                    (told.bytes(), 0)
                }
                Some(told) => (told.bytes(), told.bytes()),
                None => match board.deposit(member, self.number)? {
                    Deposit::Inline { bytes } => (bytes.len(), bytes.len()),
                    Deposit::Block { bytes, filled, .. } => (bytes.len(), filled),
                },
            };
            // Longer than expected is as wrong: that member will find ours too short.
            if bytes != total {
                return Err(BoardError::Lengths { member, theirs: bytes, ours: total });
            }
            end = end.min(filled.saturating_sub(start));
            if told.is_some() && filled < bytes {
                break; // One member at a time is asked for its data.
            }
        }
        Ok(end)
    }

    /// The next piece of what can be done: whole elements, unless it is the end.
    fn piece_of(
        &self,
        end: usize,
        length: usize,
        element_bytes: usize,
        budget: u64,
    ) -> Range<usize> {
        let end = end.min(self.done + piece_bytes(budget, length));
        let end = if end == length { end } else { end / element_bytes * element_bytes };
        self.done..end.max(self.done)
    }

    pub(super) fn resolve<M: BlockMemory>(
        &mut self,
        around: &mut Around<'_, M>,
        deposited: Cells,
        block: u32,
    ) -> Result<Stepped> {
        let members = around.board.size();
        if self.see(around.board, members)? != Stepped::Over {
            return Ok(Stepped::Waits);
        }
        let operator = around.operator.ok_or(BoardError::NO_OPERATOR)?;
        let memory = around.memory;
        let cells = Cells::new(deposited.store, block, 1);
        let length = memory.bytes(cells);
        let start = memory.bytes(Cells { count: block - deposited.first, ..deposited });
        let total = memory.bytes(deposited);
        let end = self.combinable(around.board, members, total, (start, length))?;
        let budget = if self.protocol.tells { combined_bytes(members) } else { 0 };
        let range = self.piece_of(end, length, operator.element_bytes(), budget);
        if range.is_empty() && length > 0 || !self.finds(around.board, members, start, &range)? {
            return Ok(Stepped::Waits);
        }
        self.resolve_piece(around, operator, cells, start, &range)?;
        *around.budget = around.budget.saturating_sub(range.len() as u64);
        self.done = range.end;
        around.board.set_resolved(self.number, self.done as u64);
        Ok(if self.done < length { Stepped::Moved } else { Stepped::Over })
    }

    fn resolve_piece<M: BlockMemory>(
        &mut self,
        around: &mut Around<'_, M>,
        operator: &Operator,
        own: Cells,
        start: usize,
        range: &Range<usize>,
    ) -> Result<()> {
        let (number, members) = (self.number, around.board.size());
        let output = own.at(Store::Output);
        let own = Own::of(around.memory, own, range)?;
        let place = start + range.start..start + range.end;
        if let Some(output) = around.memory.plain(output) {
            let output = output.part(range.start, range.len());
            let (board, read) = (&*around.board, &self.read_parts);
            let sources = Sources { board, number, own: &own, read, start: place.start };
            let source = |from| sources.of(from);
            self.combiner.combine_to_buffer(operator, members, source, &output)?;
            return self.lay_down_result(around.board, place, output.bytes());
        }
        let mut packed = room::zeroes(range.len())?;
        let (board, read) = (&*around.board, &self.read_parts);
        let sources = Sources { board, number, own: &own, read, start: place.start };
        self.combiner.combine_to_slice(operator, members, |from| sources.of(from), &mut packed)?;
        around.memory.area(output).write(range.start as u64, Bytes::from(&packed[..]));
        self.lay_down_result(around.board, place, Bytes::from(&packed[..]))
    }

    /// Lays a part of the result down for others: of two members in the cell that the other one gave, else where
    /// this member has kept room for it. A copy takes the place of what others have read there without fetching
    /// it back first, which combining there would.
    fn lay_down_result(
        &mut self,
        board: &mut Board,
        place: Range<usize>,
        result: Bytes<'_>,
    ) -> Result<()> {
        let (number, own) = (self.number, board.own());
        if self.shows_result(self.done + place.len()) || place.is_empty() {
            return Ok(());
        }
        let has_gone_back =
            self.protocol.comes_back && board.put_back(1 - own, number, place.start, result);
        if !has_gone_back {
            let kept = board.kept(number).ok_or(BoardError::Broken(own))?;
            kept.write(place.start, result);
        }
        Ok(())
    }

    pub(super) fn together<M: BlockMemory>(
        &mut self,
        around: &mut Around<'_, M>,
        deposited: Cells,
    ) -> Result<Stepped> {
        let length = around.memory.bytes(deposited);
        if length <= AT_ONCE_BYTES {
            if self.is_last {
                self.is_last = false;
                self.alone(around, length)?;
            }
            return self.outcome(around.board);
        }
        if self.is_last {
            self.is_last = false;
            around.board.open_pieces(self.number);
        }
        let operator = around.operator.ok_or(BoardError::NO_OPERATOR)?;
        let pieces = pieces(length, operator.element_bytes(), around.board.processors());
        if let Some(piece) = around.board.claim_piece(self.number, pieces.count) {
            self.one_piece(around, operator, pieces.range(piece, length), length)?;
            if around.board.finish_piece(self.number, piece, pieces.count) {
                around.board.decide(self.number, Outcome::Done);
            }
            return Ok(Stepped::Moved);
        }
        self.outcome(around.board)
    }

    /// The last to come makes the whole result.
    fn alone<M: BlockMemory>(&mut self, around: &mut Around<'_, M>, length: usize) -> Result<()> {
        let operator = around.operator.ok_or(BoardError::NO_OPERATOR)?;
        let (number, members) = (self.number, around.board.size());
        self.combinable(around.board, members, length, (0, length))?;
        let mut short = [0; RESULT_BYTES];
        let is_short = length <= RESULT_BYTES;
        let mut block = if is_short {
            None
        } else {
            Some(spare_or_new(around.board, around.allocate, length)?)
        };
        let into = match &mut block {
            Some(block) => &mut block[..length],
            None => &mut short[..length],
        };
        let board = &*around.board;
        let source = |member| source_of(board, member, number, 0);
        if length > 0 {
            self.combiner.combine_to_slice(operator, members, source, into)?;
        }
        match block {
            Some(block) => around.board.set_result_block(number, block, length),
            None => around.board.set_result(number, &short[..length]),
        }
        around.board.decide(number, Outcome::Done);
        Ok(())
    }

    /// Combines one piece into this member's own deposit, where nobody else needs it any more.
    fn one_piece<M: BlockMemory>(
        &mut self,
        around: &mut Around<'_, M>,
        operator: &Operator,
        range: Range<usize>,
        total: usize,
    ) -> Result<()> {
        let (number, members, own) = (self.number, around.board.size(), around.board.own());
        self.combinable(around.board, members, total, (range.start, range.len()))?;
        let Some(mut block) = around.board.take_kept(number) else {
            return Err(BoardError::Broken(own));
        };
        let board = &*around.board;
        let source = |member| source_of(board, member, number, range.start);
        let combined =
            self.combiner.combine_to_slice(operator, members, source, &mut block[range.clone()]);
        around.board.put_kept(number, block);
        combined
    }
}

/// A part of this member's own contribution, in one piece.
enum Own<'a> {
    Place(Bytes<'a>),
    Packed(Vec<u8>),
}

impl<'a> Own<'a> {
    #[inline]
    fn of<M: BlockMemory>(
        memory: &'a M,
        cells: Cells,
        range: &Range<usize>,
    ) -> std::result::Result<Self, NoMemory> {
        if let Some(buffer) = memory.plain(cells) {
            return Ok(Self::Place(buffer.bytes().part(range.start, range.len())));
        }
        let area = memory.area(cells);
        if let Some(bytes) = area.one_piece() {
            return Ok(Self::Place(bytes.part(range.start, range.len())));
        }
        let mut packed = room::zeroes(range.len())?;
        area.pack_slice(range.start as u64, &mut packed);
        Ok(Self::Packed(packed))
    }

    #[inline]
    fn bytes(&self) -> Bytes<'_> {
        match self {
            Self::Place(bytes) => *bytes,
            Self::Packed(packed) => Bytes::from(&packed[..]),
        }
    }
}

/// The pieces of a long result: whole elements each but the last.
pub(super) struct Pieces {
    pub(super) count: u32,
    pub(super) bytes: usize,
}

/// The pieces of so many bytes that members on so many processors combine together: some for each of these,
/// and no longer ones than that takes.
pub(super) fn pieces(length: usize, element_bytes: usize, processors: u32) -> Pieces {
    let each = length / (PIECES_EACH * processors.max(1) as usize);
    let least = each.clamp(PIECE_BYTES / 2, LONG_PIECE_BYTES).max(length.div_ceil(PIECES_MAX));
    let bytes = least.next_multiple_of(element_bytes.max(1));
    Pieces { count: length.div_ceil(bytes) as u32, bytes }
}

impl Pieces {
    pub(super) fn range(&self, piece: u32, length: usize) -> Range<usize> {
        let start = (piece as usize * self.bytes).min(length);
        start..length.min(start + self.bytes)
    }
}

/// The bytes of all members that make a part which this member combines: its own from where they lie, those that were read
/// in others' memory, and others from `start` of their deposits on.
struct Sources<'a> {
    board: &'a Board,
    number: u32,
    own: &'a Own<'a>,
    read: &'a ReadParts,
    start: usize,
}

impl<'a> Sources<'a> {
    #[inline]
    fn of(&self, from: u32) -> Result<Bytes<'a>> {
        if from == self.board.own() {
            return Ok(self.own.bytes());
        }
        match self.read.of(from) {
            Some(bytes) => Ok(bytes),
            None => source_of(self.board, from, self.number, self.start),
        }
    }
}

/// A member's bytes from `start` of its deposit on, to be combined.
#[inline]
fn source_of(board: &Board, member: u32, number: u32, start: usize) -> Result<Bytes<'_>> {
    let (Deposit::Inline { bytes } | Deposit::Block { bytes, .. }) =
        board.deposit(member, number)?;
    Ok(bytes.part(start, usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_as_many_as_processors_want_and_neither_short_nor_long() {
        let of = |length, element_bytes, processors| {
            let pieces = pieces(length, element_bytes, processors);
            (pieces.count, pieces.bytes)
        };
        let (short, long) = (PIECE_BYTES / 2, LONG_PIECE_BYTES);
        assert_eq!(of(16 * short, 8, 2), (8, 2 * short), "four for each processor");
        assert_eq!(of(16 * short, 8, 4), (16, short));
        assert_eq!(of(16 * short, 8, 64), (16, short), "shorter ones cost more than they save");
        assert_eq!(of(16 * long, 8, 1), (16, long), "longer ones leave the caches");
        let all = PIECES_MAX * long;
        assert_eq!(of(2 * all, 8, 1), (PIECES_MAX as u32, 2 * long), "there are no more");
        assert_eq!(of(0, 8, 0).0, 0);
    }

    #[test]
    fn pieces_have_whole_elements_and_make_up_all_data() {
        for (length, element_bytes, processors) in [
            (1 << 20, 8, 2),
            (16_400, 16, 2),
            (100_008, 24, 3),
            (9_000_000, 8, 1),
            (20_000, 1, 128),
        ] {
            let pieces = pieces(length, element_bytes, processors);
            assert!(
                pieces.count as usize <= PIECES_MAX && pieces.bytes.is_multiple_of(element_bytes)
            );
            let mut end = 0;
            for piece in 0..pieces.count {
                let range = pieces.range(piece, length);
                assert!(range.start == end && !range.is_empty(), "{length} {piece}");
                end = range.end;
            }
            assert_eq!(end, length);
        }
    }
}
