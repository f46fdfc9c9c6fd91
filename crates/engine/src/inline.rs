//! Operations with short data in one piece: the steps of their plans without a plan.
//!
//! Data that fit in a line of the board are deposited there, somewhat longer ones in a block. Other members cannot
//! tell this route from a [`BoardCall`](crate::board::call::BoardCall): in one operation some members may take the
//! one and some the other. Nothing is bound, kept or looked up here, because for eight bytes all of that would take
//! longer than the operation.

use std::cell::Cell;

use landeck_arithmetic::Operator;
use landeck_board::{
    Board, Came, Coming, Deposit, INLINE_BYTES, Neighbours, Outcome, RESULT_BYTES,
};
use landeck_collectives::{Action, BoardStyle, Cells, Operation, Signature, Store};
use landeck_kernel::Endpoint;
use landeck_memory::waiter::Patience;
use landeck_memory::{Buffer, Bytes};
use landeck_transports::SharedMemory;

use crate::board::polled::Polled;
use crate::board::scan_scope::ScanScope;
use crate::board::{AT_ONCE_BYTES, Allocate, AtBoard, BoardError, Protocol, block_for};
use crate::call::data::{MessageData, known_bytes_of_pieces};
use crate::combine::Combiner;
use crate::identity::GroupRef;

/// Bytes that are laid down of a row of blocks, one for each of `size`: of two, those for the other one.
#[inline]
fn row_bytes(all: usize, size: usize) -> usize {
    if size == 2 { all / 2 } else { all }
}

/// Bytes of what stands in front of the blocks of messages.
pub const HEAD_BYTES: usize = 8;

/// Most bytes of messages that are laid down at once where members share processors: nobody takes them
/// before the root gives its processor away.
const CROWDED_BYTES: usize = 256 << 10;

/// The lengths of an operation with short data.
#[derive(Clone, Copy)]
struct Lengths {
    block_bytes: usize,
    deposit_bytes: usize,
}

/// One operation with short data.
pub(crate) struct InlineCollective<'a> {
    pub(crate) operation: Operation,
    pub(crate) root: u32,
    /// The data that this member brings, in one piece; in a broadcast the data themselves.
    input: Buffer,
    /// The place of the result, in one piece. It may be the input, in broadcasts and reductions.
    output: Buffer,
    /// Bytes of one block: of all data, or of what one member has for or from another.
    pub(crate) block_bytes: usize,
    /// Bytes of the longest thing that a member lays down.
    deposit_bytes: usize,
    pub(crate) operator: Option<&'a Operator>,
    /// The word in front of each block of a message on the board: the root's, which comes to the others.
    head: Option<&'a Cell<u64>>,
    number: u32,
    signature: u32,
    style: BoardStyle,
    is_counted: bool,
    has_come: bool,
    is_last: bool,
    /// This member's own block is in its place.
    has_own: bool,
    seen: u32,
}

impl<'a> InlineCollective<'a> {
    /// An operation of a group that has no number yet. None when its data are too long, or do not fit each other,
    /// or when it has no inline form.
    #[inline(always)]
    pub(crate) fn new(
        operation: Operation,
        root: u32,
        input: Buffer,
        output: Buffer,
        operator: Option<&'a Operator>,
        group: GroupRef<'_>,
    ) -> Option<Self> {
        let (size, is_root) = (group.members.len(), group.rank == root as usize);
        let (first, last) = (input.len(), output.len());
        let block_bytes = known_bytes_of_pieces(operation, (first, last), size);
        let (deposit_bytes, fits) = match operation {
            Operation::Barrier => (0, true),
            Operation::Broadcast => (last, true),
            Operation::Reduce => (first, !is_root || first == last),
            Operation::AllReduce => (first, first == last),
            Operation::Gather => (first, !is_root || first * size == last),
            Operation::AllGather => (first, first * size == last),
            Operation::Scatter => (row_bytes(last * size, size), !is_root || first == last * size),
            Operation::AllToAll => {
                (row_bytes(first, size), first == last && first.is_multiple_of(size))
            }
            _ => return None,
        };
        let lengths = Lengths { block_bytes, deposit_bytes };
        let inline = || Self::unbegun(operation, root, input, output, lengths, operator);
        (deposit_bytes <= AT_ONCE_BYTES && fits).then(inline)
    }

    #[inline(always)]
    fn unbegun(
        operation: Operation,
        root: u32,
        input: Buffer,
        output: Buffer,
        lengths: Lengths,
        operator: Option<&'a Operator>,
    ) -> Self {
        Self {
            operation,
            root,
            input,
            output,
            block_bytes: lengths.block_bytes,
            deposit_bytes: lengths.deposit_bytes,
            operator,
            head: None,
            number: 0,
            signature: 0,
            style: BoardStyle::Each,
            is_counted: false,
            has_come: false,
            is_last: false,
            has_own: false,
            seen: 0,
        }
    }

    /// A broadcast or a scatter of a message, whose blocks stand on the board behind a word each. They are deposited
    /// from where they lie, and taken to where they are to be. None as with [`InlineCollective::new`].
    #[inline(always)]
    pub(crate) fn of_message(
        operation: Operation,
        root: u32,
        message: &MessageData<'a>,
        group: GroupRef<'_>,
    ) -> Option<Self> {
        let MessageData { head, room_bytes, input, output, .. } = *message;
        let (size, block_bytes) = (group.members.len(), HEAD_BYTES + room_bytes);
        let (is_root, own) = (group.rank == root as usize, output.len());
        let (deposit_bytes, fits_root) = match operation {
            Operation::Broadcast => (block_bytes, own == 0 && input.len() <= room_bytes),
            Operation::Scatter => {
                let all = row_bytes(block_bytes.checked_mul(size)?, size);
                (all, own <= room_bytes && input.len() == own * size)
            }
            _ => return None,
        };
        let fits = if is_root { fits_root } else { own == room_bytes };
        let lengths = Lengths { block_bytes, deposit_bytes };
        let inline = || Self {
            head: Some(head),
            ..Self::unbegun(operation, root, input, output, lengths, None)
        };
        (deposit_bytes <= CROWDED_BYTES && fits).then(inline)
    }

    /// Whether it can be done in this style.
    #[inline]
    pub(crate) fn has_style(&self, style: BoardStyle) -> bool {
        style == BoardStyle::Each
            || self.deposit_bytes <= RESULT_BYTES && !style.tells(self.operation)
    }

    /// Whether its data can be laid down at once, of which so many bytes have room on the board.
    #[inline]
    pub(crate) fn fits(&self, board_bytes: u64, is_crowded: bool) -> bool {
        self.deposit_bytes <= AT_ONCE_BYTES
            || (is_crowded && self.deposit_bytes as u64 <= board_bytes)
    }

    /// In a group of two, prefetches the peer's lines if this member will read them; otherwise leaves them in the
    /// writer's cache.
    #[inline]
    fn foresee(&self, board: &Board) {
        let looks = match self.operation {
            Operation::Broadcast | Operation::Scatter => !self.is_root(board),
            Operation::Reduce | Operation::Gather => self.is_root(board),
            _ => !self.is_counted,
        };
        if board.size() == 2 && looks {
            let other = 1 - board.own();
            board.foresee_line(other, self.number);
            if self.deposit_bytes > RESULT_BYTES {
                board.foresee(other, self.number);
            }
        }
    }

    /// Gives it its number, and the facts that all members find alike.
    #[inline]
    pub(crate) fn begin(
        &mut self,
        number: u32,
        signature: u32,
        style: BoardStyle,
        protocol: Protocol,
    ) {
        (self.number, self.signature, self.style) = (number, signature, style);
        self.is_counted = protocol.is_counted();
    }

    /// Does what can be done now; true when the operation is complete.
    #[inline]
    pub(crate) fn poll(
        &mut self,
        board: &mut Board,
        allocate: Allocate<'_>,
        combiner: &mut Combiner,
    ) -> Result<bool, BoardError> {
        match self.go_on(board, allocate, combiner) {
            Ok(is_over) => {
                if is_over {
                    board.end(self.number);
                }
                Ok(is_over)
            }
            Err(error) => Err(self.lost(board, error)),
        }
    }

    #[inline]
    fn go_on(
        &mut self,
        board: &mut Board,
        allocate: Allocate<'_>,
        combiner: &mut Combiner,
    ) -> Result<bool, BoardError> {
        Ok((self.has_come || self.come(board, allocate)?) && self.step(board, combiner)?)
    }

    #[inline]
    fn step(&mut self, board: &mut Board, combiner: &mut Combiner) -> Result<bool, BoardError> {
        Ok(match self.operation {
            Operation::Broadcast => self.is_root(board) || self.take(board)?,
            Operation::Reduce if !self.is_root(board) => true,
            Operation::Reduce => self.combine(board, combiner)?,
            Operation::AllReduce if self.style == BoardStyle::Each => {
                self.combine(board, combiner)?
            }
            Operation::AllReduce => self.together(board, combiner)?,
            Operation::Gather if !self.is_root(board) => true,
            Operation::Gather | Operation::AllGather | Operation::AllToAll => {
                self.collect(board)?
            }
            Operation::Scatter if self.is_root(board) => {
                let bytes = self.output.len();
                let own = board.own() as usize * bytes;
                self.output.write(0, self.input.bytes().part(own, bytes));
                true
            }
            Operation::Scatter => self.take(board)?,
            _ => self.await_all(board)?,
        })
    }

    /// Ends the operation after an error, so that no other member waits for this one.
    #[cold]
    pub(crate) fn lost(&self, board: &mut Board, error: BoardError) -> BoardError {
        if error.leaves_group_whole() {
            if self.is_counted {
                board.decide(self.number, error.outcome(board.own()));
            }
        } else if matches!(error, BoardError::Heap(_)) {
            // Others find that it brings too little.
            let lack = error.lack(board.own());
            self.at_board().come_with_nothing(board, Some(lack));
        } else {
            if !self.has_come {
                board.refuse(self.number);
            }
            error.give_up(board);
        }
        board.end(self.number);
        board.wake();
        error
    }

    /// This operation as one that goes by a plan.
    fn at_board(&self) -> AtBoard {
        let mut at = AtBoard::default();
        at.begin(self.number, self.signature, 0, Protocol::inline(self.is_counted));
        at.set_progress(self.has_come, self.seen);
        at
    }

    /// The step of the plan that it is at.
    fn action(&self, board: &Board) -> Action {
        let data = Cells::new(Store::Input, 0, 1);
        let into = data.at(Store::Output);
        match self.operation {
            Operation::Broadcast | Operation::Scatter => {
                Action::Take { from: self.root, deposited: data, into, resolved: false }
            }
            Operation::AllReduce if self.style != BoardStyle::Each => {
                Action::Together { deposited: data }
            }
            Operation::Barrier => Action::Await,
            _ => Action::CombineDeposits { members: board.size(), deposited: data, into },
        }
    }

    #[inline]
    fn is_root(&self, board: &Board) -> bool {
        board.own() == self.root
    }

    /// Lays down what this member brings. False when there is no room yet.
    #[inline]
    fn come(&mut self, board: &mut Board, allocate: Allocate<'_>) -> Result<bool, BoardError> {
        if !board.has_room(self.number) {
            return Ok(false);
        }
        self.foresee(board);
        let brings = match self.operation {
            Operation::Broadcast | Operation::Scatter => self.is_root(board),
            Operation::Reduce | Operation::Gather => !self.is_root(board),
            _ => true,
        };
        let head = if brings { self.head } else { None };
        let data = if brings { self.laid_down(board) } else { self.input.bytes().part(0, 0) };
        let bytes = if head.is_some() { self.deposit_bytes } else { data.len() };
        if bytes > INLINE_BYTES {
            let Some(mut block) = block_for(board, allocate, bytes)? else { return Ok(false) };
            match head {
                None => drop(data.copy_to_slice(&mut block)),
                Some(head) => self.lay_behind(head.get(), board, &mut block),
            }
            board.come_with(self.number, (self.signature, 0), block, (bytes, bytes));
        } else if let Some(head) = head {
            self.lay_inline(head.get(), board);
            board.come_with_laid(self.number, self.signature, 0, bytes);
        } else {
            board.come(self.number, self.signature, 0, data);
        }
        self.has_come = true;
        if self.is_counted {
            match board.count(self.number, self.signature) {
                Coming::NotLast => {}
                Coming::Last => self.is_last = true,
                Coming::Different => return Err(self.whoever_differs(board)),
            }
        } else {
            board.wake();
        }
        Ok(true)
    }

    #[cold]
    fn whoever_differs(&self, board: &Board) -> BoardError {
        self.verdict(board, ScanScope::All).unwrap_or(BoardError::Broken(board.own()))
    }

    #[inline]
    fn has_member_come(&self, board: &Board, member: u32) -> Result<bool, BoardError> {
        if self.deposit_bytes > RESULT_BYTES {
            board.foresee(member, self.number);
        }
        match board.came(member, self.number, self.signature) {
            Came::Here => Ok(true),
            Came::NotYet => Ok(false),
            Came::Otherwise(_) => Err(BoardError::otherwise(board, member)),
        }
    }

    #[inline]
    fn have_all_come(&mut self, board: &Board) -> Result<bool, BoardError> {
        while self.seen < board.size() {
            if self.seen != board.own() && !self.has_member_come(board, self.seen)? {
                return Ok(false);
            }
            self.seen += 1;
        }
        Ok(true)
    }

    #[inline]
    fn await_all(&mut self, board: &Board) -> Result<bool, BoardError> {
        if !self.is_counted {
            return self.have_all_come(board);
        }
        if self.is_last {
            self.is_last = false;
            board.decide(self.number, Outcome::Done);
        }
        self.is_decided(board)
    }

    #[inline]
    fn is_decided(&self, board: &Board) -> Result<bool, BoardError> {
        match board.outcome(self.number) {
            Outcome::Done => Ok(true),
            Outcome::Open => Ok(false),
            Outcome::Failed(member) => Err(BoardError::Gone(member)),
            Outcome::Spoiled(member) => Err(BoardError::Spoiled(member)),
            Outcome::NoRoom(member) => Err(BoardError::NoRoom(member)),
            Outcome::Different => Err(self.whoever_differs(board)),
        }
    }

    /// Where this member's block lies in what one has for all.
    #[inline]
    fn own_place(&self, board: &Board) -> usize {
        board.own() as usize * self.block_bytes
    }

    /// Whether this member has a block for each of two: each lays down the other's alone.
    #[inline]
    fn is_for_the_other(&self, board: &Board) -> bool {
        board.size() == 2 && matches!(self.operation, Operation::Scatter | Operation::AllToAll)
    }

    /// This member's data as they lie on the board.
    #[inline]
    fn laid_down(&self, board: &Board) -> Bytes<'_> {
        let all = self.input.bytes();
        match self.is_for_the_other(board) {
            true => all.part(self.block_bytes - self.own_place(board), self.block_bytes),
            false => all,
        }
    }

    /// Lays down the blocks of a message, each behind its head.
    #[inline]
    fn lay_behind(&self, head: u64, board: &Board, target: &mut [u8]) {
        let all = self.input.bytes();
        let parts = if self.operation == Operation::Scatter { board.size() as usize } else { 1 };
        let bytes = all.len() / parts;
        let first = if self.is_for_the_other(board) { 1 - board.own() as usize } else { 0 };
        for (at, block) in target.chunks_exact_mut(self.block_bytes).enumerate() {
            let (front, room) = block.split_at_mut(HEAD_BYTES);
            front.copy_from_slice(&head.to_ne_bytes());
            let copied = all.part((first + at) * bytes, bytes).copy_to_slice(room);
            room[copied..].fill(0);
        }
    }

    /// Lays down the blocks of a message, each behind its head, on this member's lines, with no copy in between. Data
    /// that are read right after they were written in other pieces wait until all earlier writes have left the
    /// processor.
    #[inline]
    fn lay_inline(&self, head: u64, board: &mut Board) {
        let (all, head) = (self.input.bytes(), head.to_ne_bytes());
        // A scattering root has as much room for its own block as a block has bytes.
        let (parts, bytes) = match self.operation {
            Operation::Scatter => (board.size() as usize, self.output.len()),
            _ => (1, all.len()),
        };
        let (first, laid) = match self.is_for_the_other(board) {
            true => (1 - board.own() as usize, 1),
            false => (0, parts),
        };
        for at in 0..laid {
            let start = at * self.block_bytes;
            board.lay(self.number, start, Bytes::from(&head[..]));
            board.lay(self.number, start + HEAD_BYTES, all.part((first + at) * bytes, bytes));
            let filled = HEAD_BYTES + bytes;
            if filled < self.block_bytes {
                let nothing = &[0; INLINE_BYTES][..self.block_bytes - filled];
                board.lay(self.number, start + filled, Bytes::from(nothing));
            }
        }
    }

    /// Where the block for this member begins in what another one has laid down, and how many there are.
    #[inline]
    fn place_on_board(&self, board: &Board) -> (usize, u32) {
        match self.operation {
            Operation::Scatter | Operation::AllToAll if !self.is_for_the_other(board) => {
                (self.own_place(board), board.size())
            }
            _ => (0, 1),
        }
    }

    /// Takes this member's block of what the root has laid down.
    #[inline]
    fn take(&self, board: &Board) -> Result<bool, BoardError> {
        if !self.has_member_come(board, self.root)? {
            return Ok(false);
        }
        let place = self.place_on_board(board);
        let deposit = self.deposit_of(board, self.root, place.1)?;
        // A root that goes by a plan tells of long data while it lays them down.
        if let Deposit::Block { bytes, filled, .. } = &deposit
            && *filled < bytes.len()
        {
            return Ok(false);
        }
        self.write(&deposit, self.root, place, 0)?;
        Ok(true)
    }

    /// A member's deposit, of which this member takes one of `parts` blocks.
    #[inline]
    fn deposit_of<'b>(
        &self,
        board: &'b Board,
        member: u32,
        parts: u32,
    ) -> Result<Deposit<'b>, BoardError> {
        let deposit = board.deposit(member, self.number);
        deposit.map_err(|no| BoardError::from(no).expecting(self.block_bytes * parts as usize))
    }

    /// Takes a block of each member in turn.
    #[inline]
    fn collect(&mut self, board: &Board) -> Result<bool, BoardError> {
        let place = self.place_on_board(board);
        if !self.has_own {
            self.has_own = true;
            let is_divided = self.operation == Operation::AllToAll;
            let start = if is_divided { self.own_place(board) } else { 0 };
            let own = self.input.bytes().part(start, self.block_bytes);
            self.output.write(self.own_place(board), own);
        }
        while self.seen < board.size() {
            let (member, target) = (self.seen, self.seen as usize * self.block_bytes);
            if member != board.own() {
                if !self.has_member_come(board, member)? {
                    return Ok(false);
                }
                let deposit = self.deposit_of(board, member, place.1)?;
                self.write(&deposit, member, place, target)?;
            }
            self.seen += 1;
        }
        Ok(true)
    }

    /// Puts one of `parts` blocks of a member, which begins at `place`, to `target` in the output.
    #[inline]
    fn write(
        &self,
        deposit: &Deposit<'_>,
        member: u32,
        (place, parts): (usize, u32),
        target: usize,
    ) -> Result<(), BoardError> {
        let ours = self.block_bytes * parts as usize;
        let theirs = match deposit {
            Deposit::Inline { bytes } | Deposit::Block { bytes, .. } if bytes.len() == ours => {
                let block = bytes.part(place, self.block_bytes);
                match self.head {
                    None => drop(self.output.write(target, block)),
                    Some(head) => {
                        let mut word = [0; HEAD_BYTES];
                        block.part(0, HEAD_BYTES).copy_to_slice(&mut word);
                        head.set(u64::from_ne_bytes(word));
                        self.output.write(target, block.part(HEAD_BYTES, self.block_bytes));
                    }
                }
                return Ok(());
            }
            Deposit::Inline { bytes } | Deposit::Block { bytes, .. } => bytes.len(),
        };
        Err(BoardError::Lengths { member, theirs, ours })
    }

    /// Combines what all have brought, for this member.
    fn combine(&mut self, board: &Board, combiner: &mut Combiner) -> Result<bool, BoardError> {
        if !self.have_all_come(board)? {
            return Ok(false);
        }
        let own = self.input.bytes();
        let (number, ours) = (self.number, self.input.len());
        let source = |member| {
            if member == board.own() {
                return Ok(own);
            }
            short_source(board, member, number, ours)
        };
        let operator = self.operator.ok_or(BoardError::NO_OPERATOR)?;
        if ours > 0 {
            combiner.combine_to_buffer(operator, board.size(), source, &self.output)?;
        }
        Ok(true)
    }

    fn alone(&self, board: &Board, combiner: &mut Combiner) -> Result<(), BoardError> {
        let (number, ours) = (self.number, self.input.len());
        let operator = self.operator.ok_or(BoardError::NO_OPERATOR)?;
        let mut result = [0; RESULT_BYTES];
        let source = |member| short_source(board, member, number, ours);
        if ours > 0 {
            combiner.combine_to_slice(operator, board.size(), source, &mut result[..ours])?;
        }
        board.set_result(number, &result[..ours]);
        board.decide(number, Outcome::Done);
        Ok(())
    }

    /// The last to come combines for all.
    fn together(&mut self, board: &Board, combiner: &mut Combiner) -> Result<bool, BoardError> {
        if self.is_last {
            self.is_last = false;
            self.alone(board, combiner)?;
        }
        if !self.is_decided(board)? {
            return Ok(false);
        }
        self.write(&board.result(self.number)?, board.own(), (0, 1), 0)?;
        Ok(true)
    }
}

impl Polled for InlineCollective<'_> {
    #[inline]
    fn look(
        &mut self,
        board: &mut Board,
        endpoint: &mut Endpoint<SharedMemory>,
        combiner: &mut Combiner,
    ) -> Result<bool, BoardError> {
        self.poll(board, &mut |bytes| endpoint.allocate_deposit(bytes), combiner)
    }

    /// Whether this member has come, and how many members were seen to have come.
    fn progress(&self) -> (bool, u32) {
        (self.has_come, self.seen)
    }

    /// As [`AtBoard::verdict`].
    #[cold]
    fn verdict(&self, board: &Board, scope: ScanScope) -> Option<BoardError> {
        self.at_board().verdict(&self.action(board), board, scope)
    }

    fn give_up(&mut self, board: &mut Board, error: BoardError) -> Option<BoardError> {
        Some(self.lost(board, error))
    }

    #[inline]
    fn awaits_room(&self) -> bool {
        !self.has_come
    }

    fn neighbours(&self, board: &Board, processor: u32) -> Neighbours {
        if self.has_come && matches!(self.operation, Operation::Broadcast | Operation::Scatter) {
            return board.neighbours_of_root(self.number, processor, self.root);
        }
        board.neighbours((self.number, self.has_come), processor, |member| {
            board.came(member, self.number, self.signature) == Came::NotYet
        })
    }

    fn rotation(&self, board: &Board) -> Option<u32> {
        let has_root = matches!(
            self.operation,
            Operation::Broadcast | Operation::Scatter | Operation::Gather | Operation::Reduce
        );
        (has_root && board.rotates(self.number)).then_some(self.number)
    }

    fn patience(&self, size: u32) -> Patience {
        Patience::all_of(size)
    }

    fn operation(&self) -> Operation {
        self.operation
    }

    fn signature(&self) -> Signature {
        Signature::of_tag(self.signature)
    }

    fn number(&self) -> u32 {
        self.number
    }
}

/// A member's short data, as long as ours.
#[inline]
fn short_source(
    board: &Board,
    member: u32,
    number: u32,
    ours: usize,
) -> Result<Bytes<'_>, BoardError> {
    let theirs = match board.deposit(member, number)? {
        Deposit::Inline { bytes } | Deposit::Block { bytes, .. } if bytes.len() == ours => {
            return Ok(bytes);
        }
        Deposit::Inline { bytes } | Deposit::Block { bytes, .. } => bytes.len(),
    };
    Err(BoardError::Lengths { member, theirs, ours })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lack::Lack;
    use landeck_board::LinesPlace;
    use landeck_channel::Peer;
    use landeck_memory::heap::{Heap, HeapFull};
    use landeck_memory::{Segment, SegmentPlan};

    /// The inline form of an operation with the same memory on both sides.
    fn short(
        operation: Operation,
        root: u32,
        data: Buffer,
        (size, rank): (u32, usize),
    ) -> InlineCollective<'static> {
        let members = (0..size).map(Peer).collect();
        let group = GroupRef { context: 0, members: &members, rank };
        InlineCollective::new(operation, root, data, data, None, group).unwrap()
    }

    #[test]
    fn an_operation_that_fails_is_over_whatever_the_failure() {
        let segment = Segment::local(&SegmentPlan { guests: 0, ..SegmentPlan::new(1, 2) });
        let lines = [0, 1].map(|slot| LinesPlace::of_world(segment.plan(), slot));
        let open = |own| Board::open(&segment, segment.plan().world_board(), &lines, own).unwrap();
        let (mut own, other) = (open(0), open(1));
        for failure in [Outcome::Failed(1), Outcome::Different, Outcome::Spoiled(1)] {
            let (number, _) = own.begin(5);
            let mut inline = short(Operation::Barrier, 0, Buffer::EMPTY, (2, 0));
            inline.begin(number, 5, BoardStyle::Each, Protocol::inline(true));
            other.decide(number, failure);
            assert!(!other.is_past(0, number));
            let allocate = &mut |_| unreachable!("no data");
            assert!(inline.poll(&mut own, allocate, &mut Combiner::default()).is_err());
            assert!(other.is_past(0, number), "{failure:?}");
        }
    }

    #[test]
    fn a_member_that_waits_where_roots_move_on_has_a_place_in_their_order() {
        let plan = SegmentPlan { guests: 0, cpus: 2, ..SegmentPlan::new(1, 5) };
        let segment = Segment::local(&plan);
        let lines: Vec<_> =
            (0..5).map(|member| LinesPlace::of_world(segment.plan(), member)).collect();
        let mut board = Board::open(&segment, segment.plan().world_board(), &lines, 0).unwrap();
        let mut rotation = |operation, roots: [u32; 3]| {
            let call = |root| (operation as u32) << 14 | root;
            let number = roots.map(|root| board.begin(call(root)).0)[2];
            let mut inline = short(operation, roots[2], Buffer::EMPTY, (5, 0));
            inline.begin(number, 0, BoardStyle::Each, Protocol::inline(false));
            inline.rotation(&board).map(|found| found == number)
        };
        use Operation::{AllGather, Broadcast, Gather, Reduce, Scatter};
        for operation in [Broadcast, Gather, Reduce, Scatter] {
            assert_eq!(rotation(operation, [2, 3, 4]), Some(true), "{operation:?}");
            assert_eq!(rotation(operation, [2, 2, 2]), None, "{operation:?}");
        }
        assert_eq!(rotation(AllGather, [2, 3, 4]), None);
    }

    #[test]
    fn longer_data_go_through_a_block_and_one_that_there_is_no_room_for_spoils_the_operation() {
        let segment = Segment::local(&SegmentPlan { guests: 0, ..SegmentPlan::new(1, 2) });
        let lines = [0, 1].map(|slot| LinesPlace::of_world(segment.plan(), slot));
        let open = |own| Board::open(&segment, segment.plan().world_board(), &lines, own).unwrap();
        let mut heap = Heap::of(&segment, 0).unwrap();
        let full = HeapFull { wanted: 1, in_use: 0, limit: 0 };
        let (mut root, mut leaf, mut combiner) = (open(0), open(1), Combiner::default());
        let (mut own, mut theirs) = ([7u8; 1000], [0u8; 1000]);
        for has_room in [true, false] {
            let begin = |board: &mut Board, bytes: &mut [u8], member| {
                // SAFETY: both arrays outlive the operation, and nobody else uses them meanwhile.
                let data = unsafe { Buffer::of_mut(bytes) };
                let mut inline = short(Operation::Broadcast, 0, data, (2, member));
                inline.begin(board.begin(5).0, 5, BoardStyle::Each, Protocol::inline(false));
                inline
            };
            let mut first = begin(&mut root, &mut own, 0);
            let mut second = begin(&mut leaf, &mut theirs, 1);
            let nothing = &mut |_| Err(full);
            assert_eq!(second.poll(&mut leaf, nothing, &mut combiner), Ok(false));
            let room = &mut |bytes| if has_room { heap.allocate(bytes) } else { Err(full) };
            root.collect();
            let sent = first.poll(&mut root, room, &mut combiner);
            let got = second.poll(&mut leaf, nothing, &mut combiner);
            if has_room {
                assert_eq!((sent, got), (Ok(true), Ok(true)));
                assert_eq!(theirs, own);
            } else {
                let full = BoardError::Heap(full);
                let lack = Lack::Memory { member: 0 };
                assert_eq!((sent, got), (Err(full), Err(BoardError::Lack { member: 0, lack })));
            }
            theirs.fill(0);
            root.collect();
            while root.spare(1000).is_some() {}
        }
    }

    #[test]
    fn counting_members_do_not_wait_for_one_without_memory_for_its_data() {
        let segment = Segment::local(&SegmentPlan { guests: 0, ..SegmentPlan::new(1, 2) });
        let lines = [0, 1].map(|slot| LinesPlace::of_world(segment.plan(), slot));
        let open = |own| Board::open(&segment, segment.plan().world_board(), &lines, own).unwrap();
        let (mut poor, mut other) = (open(0), open(1));
        let (number, word) = other.begin(5);
        other.come(number, word, 0, Bytes::EMPTY);
        assert_eq!(other.count(number, word), Coming::NotLast);
        let mut data = [7u8; 1000];
        // SAFETY: the array outlives the operation, and nobody else uses it meanwhile.
        let data = unsafe { Buffer::of_mut(&mut data) };
        let mut inline = short(Operation::AllReduce, 0, data, (2, 0));
        let (number, word) = poor.begin(5);
        inline.begin(number, word, BoardStyle::Each, Protocol::inline(true));
        let full = HeapFull { wanted: 1, in_use: 0, limit: 0 };
        let lost = inline.poll(&mut poor, &mut |_| Err(full), &mut Combiner::default());
        assert_eq!(lost, Err(BoardError::Heap(full)));
        assert_eq!(other.outcome(number), Outcome::NoRoom(0));
    }

    #[test]
    fn a_member_that_never_came_and_finds_the_group_broken_refuses() {
        let segment = Segment::local(&SegmentPlan { guests: 0, ..SegmentPlan::new(1, 2) });
        let lines = [0, 1].map(|slot| LinesPlace::of_world(segment.plan(), slot));
        let mut board = Board::open(&segment, segment.plan().world_board(), &lines, 0).unwrap();
        let (number, _) = board.begin(5);
        let mut inline = short(Operation::Barrier, 0, Buffer::EMPTY, (2, 0));
        inline.begin(number, 5, BoardStyle::Each, Protocol::inline(true));
        assert_eq!(inline.lost(&mut board, BoardError::Gone(1)), BoardError::Gone(1));
        assert!(board.is_past(0, number) && board.refuses(0, number));
    }
}
