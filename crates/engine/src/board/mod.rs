//! One operation at the board: what the board's steps of a plan do.
//!
//! A step is done in pieces: each call does what can be done now and says whether the step is
//! over. Nothing here waits.
//!
//! A member's word decides: a member that has come has brought, or will bring, the data it came with; a member that
//! is gone without coming never will. So all waiting members find the same, whichever member dies when. Operations in
//! which all wait for the last member end by one exchange of the commit word.

use landeck_arithmetic::Operator;
use landeck_board::{Board, Came, Deposit, Leave, Neighbours, NoDeposit, Outcome};
use landeck_collectives::signature::{CALL_BITS, ROOT_BITS};
use landeck_collectives::{Action, Cells};
use landeck_kernel::Area;
use landeck_memory::Buffer;

use crate::board::scan_scope::ScanScope;
use crate::call::check::Check;
use crate::combine::Combiner;

pub(crate) mod buffers;
pub(crate) mod call;
mod combining;
mod deposit;
pub(crate) mod entry_check;
mod error;
pub(crate) mod polled;
mod protocol;
pub(crate) mod scan_scope;
mod take;
mod told;

pub(crate) use deposit::{Allocate, block_for};
pub(crate) use error::BoardError;
pub(crate) use protocol::Protocol;

use combining::Combining;
use told::{OwnData, ReadParts};

// A call has room in the word of a board, which looks for the root where the call has it.
const _: () =
    assert!(CALL_BITS == landeck_board::CALL_BITS && ROOT_BITS == landeck_board::ROOT_BITS);

/// Deposits up to this size are filled before they are announced; results up to this size are made
/// by the last to come alone.
pub(crate) const AT_ONCE_BYTES: usize = 16 << 10;
/// Pieces in which longer data are filled, read and combined.
const PIECE_BYTES: usize = 16 << 10;
/// Pieces of much longer data: telling of a piece costs the transfer of a line.
const LONG_PIECE_BYTES: usize = 32 << 10;
const LONG_BYTES: usize = 128 << 10;
/// Pieces of data whose first piece nobody waits for.
const WHOLE_PIECE_BYTES: usize = 64 << 10;

/// The memory of a member's input and output in an operation.
pub(crate) trait BlockMemory {
    /// Where blocks lie, if it is plain that they lie in one piece; else [`BlockMemory::area`] says it.
    fn plain(&self, cells: Cells) -> Option<Buffer>;
    /// Where blocks lie.
    fn area(&self, cells: Cells) -> Area;
    /// How many bytes they have together.
    fn bytes(&self, cells: Cells) -> usize;
    /// Deposits of several blocks begin with a table of where each block begins: only their
    /// depositor knows how long they are.
    fn has_table(&self) -> bool;
}

/// How far a step got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stepped {
    /// It is over.
    Over,
    /// It has done something and goes on.
    Moved,
    /// It waits for others.
    Waits,
}

type Result<T> = std::result::Result<T, BoardError>;

/// The surroundings of a step.
pub(crate) struct Around<'a, M> {
    pub(crate) board: &'a mut Board,
    pub(crate) memory: &'a M,
    /// In operations that reduce.
    pub(crate) operator: Option<&'a Operator>,
    pub(crate) allocate: Allocate<'a>,
    /// Bytes that may still be moved in this call, more or less.
    pub(crate) budget: &'a mut u64,
}

/// One operation of one member at its board.
#[derive(Default)]
pub(crate) struct AtBoard {
    number: u32,
    signature: u32,
    check: u32,
    protocol: Protocol,
    has_come: bool,
    is_last: bool,
    /// Bytes of the current step that are done.
    done: usize,
    /// The current step takes no bytes: whatever their owner has left undone, nothing is missing.
    takes_nothing: bool,
    /// Members that were seen to have come, in the current step.
    seen: u32,
    combiner: Combiner,
    /// The data of which it has told, and which others may be reading.
    own_data: Option<OwnData>,
    /// The data of others that were read to be combined in the current step.
    read_parts: ReadParts,
}

/// A step that takes a block of another member's data.
#[derive(Clone, Copy)]
struct Taking {
    /// The depositor.
    from: u32,
    /// All blocks of its deposit.
    deposited: Cells,
    /// The block that is taken, where it goes.
    into: Cells,
    /// Whether the block is a result that the depositor has written into its deposit.
    resolved: bool,
}

impl AtBoard {
    /// Begins the operation with this number. `check` is compared between members.
    #[inline]
    pub(crate) fn begin(&mut self, number: u32, signature: u32, check: u32, protocol: Protocol) {
        (self.number, self.signature, self.check) = (number, signature, check);
        (self.protocol, self.has_come, self.is_last) = (protocol, false, false);
        (self.done, self.seen, self.takes_nothing) = (0, 0, false);
        self.read_parts.clear();
        self.hide();
    }

    /// Completes the operation for this member, whether it has done its part or not. Readers of its data learn because of
    /// which error it leaves.
    pub(crate) fn leave(&mut self, board: &mut Board, error: Option<&BoardError>) {
        if self.own_data.is_some() {
            self.hide();
            let reason = error.map_or(Leave::Failed, |error| error.leave(board.own()));
            board.have_left(self.number, reason);
        }
        board.end(self.number);
    }

    /// For an operation that was begun elsewhere: whether this member has come, and how many members
    /// were seen to have come.
    pub(crate) fn set_progress(&mut self, has_come: bool, seen: u32) {
        (self.has_come, self.seen) = (has_come, seen);
    }

    /// Whether this member has come.
    pub(crate) fn has_come(&self) -> bool {
        self.has_come
    }

    /// The operation's number.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Does what can be done of a step now.
    #[inline]
    pub(crate) fn step<M: BlockMemory>(
        &mut self,
        action: &Action,
        around: &mut Around<'_, M>,
    ) -> Result<Stepped> {
        self.takes_nothing = false;
        let stepped = match action {
            Action::Deposit { cells, except } => self.deposit(around, *cells, *except),
            Action::Tell { cells, except } => self.tell(around, *cells, *except),
            Action::Await => self.await_all(around.board),
            &Action::Take { from, deposited, into, resolved } => {
                self.take(around, Taking { from, deposited, into, resolved })
            }
            &Action::Read { from, told, into, resolved } => {
                self.read(around, Taking { from, deposited: told, into, resolved })
            }
            Action::AwaitReaders { readers } => {
                Ok(self.await_readers(around.board, around.memory, *readers))
            }
            &Action::CombineDeposits { members, deposited, into } => {
                self.combine_deposits(around, Combining { members, deposited, into })
            }
            Action::Resolve { deposited, block } => self.resolve(around, *deposited, *block),
            Action::Together { deposited } => self.together(around, *deposited),
            Action::TakeResult { into } => self.take_result(around, *into),
            Action::Send { .. }
            | Action::Receive { .. }
            | Action::Copy { .. }
            | Action::Combine { .. } => Ok(Stepped::Over),
        };
        let stepped = match stepped {
            Ok(Stepped::Waits) if self.own_data.is_some() => self.serve(around),
            stepped => stepped,
        };
        let stepped = stepped.inspect_err(|error| self.spoil(around.board, error))?;
        if stepped == Stepped::Over {
            (self.done, self.seen) = (0, 0);
        }
        Ok(stepped)
    }

    /// Where all wait for what is decided: others are not to wait for what this member cannot do.
    #[cold]
    fn spoil(&self, board: &Board, error: &BoardError) {
        if !self.protocol.counted || !error.leaves_group_whole() {
            return;
        }
        board.decide(self.number, error.outcome(board.own()));
    }

    /// The relation of the processes on this processor to a step that waits.
    pub(crate) fn neighbours(&self, action: &Action, board: &Board, processor: u32) -> Neighbours {
        if let Action::Take { from, resolved: false, .. }
        | Action::Read { from, resolved: false, .. } = *action
            && self.has_come
            && board.came(from, self.number, self.signature) == Came::NotYet
        {
            return board.neighbours_of_root(self.number, processor, from);
        }
        let needed = needed(action, board.size());
        board.neighbours((self.number, self.has_come), processor, |member| {
            if let Action::AwaitReaders { readers } = *action {
                return readers.contains(member) && !self.is_reader_over(board, member);
            }
            needed.contains(&member)
                && match board.came(member, self.number, self.signature) {
                    Came::NotYet => true,
                    Came::Here => self.is_unfinished(action, board, member),
                    Came::Otherwise(_) => false,
                }
        })
    }

    /// Returns why the current step can never complete, if that is so; called after members are
    /// gone, and before sleep. The contributions that a member made before it left still count.
    pub(crate) fn verdict(
        &self,
        action: &Action,
        board: &Board,
        scope: ScanScope,
    ) -> Option<BoardError> {
        board.restate();
        if board.is_revoked() {
            return Some(BoardError::Revoked);
        }
        let error = self.hindrance(action, board, scope)?;
        if !self.has_come && error.leaves_group_whole() {
            return None; // Others miss a member that does not come. Then it finds this again.
        }
        if self.protocol.counted { self.decided(board, error) } else { Some(error) }
    }

    /// Returns what this member sees that keeps the current step from ever being over.
    fn hindrance(&self, action: &Action, board: &Board, scope: ScanScope) -> Option<BoardError> {
        let looked_at = scope.members(board.size(), self.first_awaited(board));
        let different = self.different(board, looked_at.clone());
        // Room is given by everybody.
        let needed = if self.has_come { needed(action, board.size()) } else { 0..board.size() };
        // The only one is looked at in any case.
        let only = needed.clone().filter(|_| needed.len() == 1);
        let missing = only
            .chain(looked_at.clone())
            .filter(|member| *member != board.own() && needed.contains(member))
            .find(|&member| self.never_comes(action, board, member) || self.spoils(board, member));
        let others = looked_at.filter(|&member| member != board.own());
        let overwritten = || self.overwritten(board, others).map(BoardError::Broken);
        let given_up = || self.given_up(action, board);
        different.or(missing.map(BoardError::Gone)).or_else(overwritten).or_else(given_up)
    }

    /// Ends an operation that all members wait for, unless it has ended; returns the error with which it has ended.
    fn decided(&self, board: &Board, error: BoardError) -> Option<BoardError> {
        let verdict = match &error {
            BoardError::Gone(member) => Outcome::Failed(*member),
            BoardError::Broken(_) => Outcome::Spoiled(board.own()),
            BoardError::Spoiled(member) => Outcome::Spoiled(*member),
            BoardError::NoRoom(member) => Outcome::NoRoom(*member),
            _ => Outcome::Different,
        };
        match board.decide(self.number, verdict) {
            Outcome::Failed(member) => Some(BoardError::Gone(member)),
            Outcome::Spoiled(member) => Some(BoardError::Spoiled(member)),
            Outcome::NoRoom(member) => Some(BoardError::NoRoom(member)),
            Outcome::Different => Some(error),
            // Nothing that all wait for is done before this member has come.
            Outcome::Open | Outcome::Done if !self.has_come => Some(error),
            Outcome::Open | Outcome::Done => None,
        }
    }

    /// A member that is past this operation, and whose words say that it neither came nor refused to.
    fn overwritten(&self, board: &Board, mut others: impl Iterator<Item = u32>) -> Option<u32> {
        others.find(|&member| {
            // First whether it is through: what it did before that counts.
            board.is_past(member, self.number)
                && board.came(member, self.number, self.signature) == Came::NotYet
                && !board.refuses(member, self.number)
        })
    }

    /// The first of several members that this one waits for, as far as it knows.
    fn first_awaited(&self, board: &Board) -> u32 {
        if self.protocol.counted { board.own() + 1 } else { self.seen }
    }

    /// The error where a step needs a result or data of a member that has failed: it is past this operation without the
    /// result, or has left before its data were read.
    fn given_up(&self, action: &Action, board: &Board) -> Option<BoardError> {
        let from = match *action {
            Action::Take { from, resolved: true, .. } => from,
            Action::Read { from, .. } => return self.left_undone(action, board, from),
            Action::CombineDeposits { .. } | Action::Resolve { .. } if self.protocol.tells => {
                let others = needed(action, board.size()).filter(|&at| at != board.own());
                return others.into_iter().find_map(|owner| self.left_undone(action, board, owner));
            }
            _ => return None,
        };
        self.is_past_without(action, board, from).then_some(BoardError::Spoiled(from))
    }

    /// The error where a member whose memory this one reads has left before. It waits for its readers unless it fails.
    fn left_undone(&self, action: &Action, board: &Board, owner: u32) -> Option<BoardError> {
        let is_past = || self.is_past_without(action, board, owner);
        self.owner_left(board, owner).or_else(|| is_past().then_some(BoardError::Spoiled(owner)))
    }

    /// Whether a member is past this operation, and what the step needs of it is not there.
    fn is_past_without(&self, action: &Action, board: &Board, member: u32) -> bool {
        // First whether it is through: what it did before that counts.
        let is_past = member != board.own() && board.is_past(member, self.number);
        is_past && self.is_unfinished(action, board, member)
    }

    /// Whether what a member has brought, and a step needs, is not all there. A result that goes on
    /// where this member stands is taken first.
    fn is_unfinished(&self, action: &Action, board: &Board, member: u32) -> bool {
        let is_result_awaited =
            matches!(action, Action::Take { from, resolved: true, .. } if *from == member);
        if self.takes_nothing {
            return false;
        }
        match board.deposit(member, self.number) {
            Ok(Deposit::Inline { .. }) => is_result_awaited,
            Ok(Deposit::Block { bytes, filled, resolved }) => {
                filled < bytes.len() || is_result_awaited && resolved <= self.done
            }
            // Nothing needs no reader, so its owner does not wait.
            Err(NoDeposit::Told { bytes: 0, .. }) => false,
            Err(_) => true,
        }
    }

    /// Somebody who came for something else, or has called something else before.
    fn different(
        &self,
        board: &Board,
        mut members: impl Iterator<Item = u32>,
    ) -> Option<BoardError> {
        let came = |member| board.came(member, self.number, self.signature);
        let mut otherwise = || members.find(|&at| matches!(came(at), Came::Otherwise(_)));
        let found = board.out_of_step().map(BoardError::Different);
        found.or_else(|| Some(BoardError::otherwise(board, otherwise()?)))
    }

    /// Whether a member will never bring what a step needs of it.
    fn never_comes(&self, action: &Action, board: &Board, member: u32) -> bool {
        // First whether it is gone: what it did before that counts.
        let is_gone = board.is_gone(member);
        let refuses = board.refuses(member, self.number);
        match board.came(member, self.number, self.signature) {
            Came::NotYet => is_gone || refuses,
            Came::Here => is_gone && self.is_unfinished(action, board, member),
            Came::Otherwise(_) => false,
        }
    }

    /// Whether a member is gone while nothing is decided, or while this member waits for room. It may have left words
    /// that nobody will set right.
    fn spoils(&self, board: &Board, member: u32) -> bool {
        (self.protocol.counted || !self.has_come) && board.is_gone(member)
    }

    fn await_all(&mut self, board: &mut Board) -> Result<Stepped> {
        if !self.protocol.counted {
            return self.see(board, board.size());
        }
        if self.is_last {
            self.is_last = false;
            board.decide(self.number, Outcome::Done);
        }
        self.outcome(board)
    }

    #[inline]
    fn outcome(&self, board: &Board) -> Result<Stepped> {
        match board.outcome(self.number) {
            Outcome::Done => Ok(Stepped::Over),
            Outcome::Open => Ok(Stepped::Waits),
            Outcome::Failed(member) => Err(BoardError::Gone(member)),
            Outcome::Spoiled(member) => Err(BoardError::Spoiled(member)),
            Outcome::NoRoom(member) => Err(BoardError::NoRoom(member)),
            Outcome::Different => Err(self.whoever_differs(board)),
        }
    }

    /// Over when the first `members` members have come.
    #[inline]
    fn see(&mut self, board: &Board, members: u32) -> Result<Stepped> {
        while self.seen < members {
            if self.seen != board.own() && !self.has_member_come(board, self.seen)? {
                return Ok(Stepped::Waits);
            }
            self.seen += 1;
        }
        Ok(Stepped::Over)
    }

    #[inline]
    fn has_member_come(&self, board: &Board, member: u32) -> Result<bool> {
        match board.came(member, self.number, self.signature) {
            Came::Here => {}
            Came::NotYet => return Ok(false),
            Came::Otherwise(_) => return Err(BoardError::otherwise(board, member)),
        }
        let theirs = board.check(member, self.number);
        if theirs == self.check {
            return Ok(true);
        }
        let (theirs, ours) = (Check::of_word(theirs), Check::of_word(self.check));
        Err(BoardError::Disagrees { member, theirs, ours })
    }
}

/// How many of `length` bytes to move at once while so many may be: at least one piece.
#[inline]
fn piece_bytes(budget: u64, length: usize) -> usize {
    let piece = if length < LONG_BYTES { PIECE_BYTES } else { LONG_PIECE_BYTES };
    usize::try_from(budget).unwrap_or(usize::MAX / 2).clamp(piece, usize::MAX / 2)
}

/// The members whose coming a step needs.
fn needed(action: &Action, size: u32) -> std::ops::Range<u32> {
    match action {
        Action::Take { from, resolved: false, .. } | Action::Read { from, resolved: false, .. } => {
            *from..from + 1
        }
        // A reader that is gone reads nothing more.
        Action::AwaitReaders { .. } => 0..0,
        Action::CombineDeposits { members, .. } => 0..*members,
        _ => 0..size,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_arithmetic::{Element, Operation as Combining, Reduction};
    use landeck_board::LinesPlace;
    use landeck_collectives::{BoardStyle, Group, Operation, Order, Store, Task, Way, plans};
    use landeck_memory::heap::Heap;
    use landeck_memory::{Bytes, Segment, SegmentPlan, SlotRecord, SlotState};

    /// Blocks of equal length in two pieces of memory.
    struct Memory {
        input: Vec<u64>,
        output: Vec<u64>,
        input_first: u32,
        output_first: u32,
        /// Blocks of the output are every so many.
        output_stride: u32,
        block_words: usize,
        has_table: bool,
    }

    impl BlockMemory for Memory {
        fn plain(&self, cells: Cells) -> Option<Buffer> {
            // Odd ones go the way of those that lie anywhere.
            self.area(cells).as_buffer().filter(|_| self.block_words.is_multiple_of(2))
        }

        fn area(&self, cells: Cells) -> Area {
            let (words, first, stride) = match cells.store {
                Store::Output => (&self.output, self.output_first, self.output_stride),
                _ => (&self.input, self.input_first, 1),
            };
            let start = (cells.first - first) as usize / stride as usize * self.block_words;
            let end = start + cells.count as usize * self.block_words;
            // SAFETY: the tests keep the memory as long as its areas are used.
            Area::contiguous(unsafe { Buffer::of(&words[start..end]) })
        }

        fn bytes(&self, cells: Cells) -> usize {
            cells.count as usize * self.block_words * 8
        }

        fn has_table(&self) -> bool {
            self.has_table
        }
    }

    fn boards(members: u32) -> (Segment, Vec<Board>, Vec<Heap>) {
        let plan = SegmentPlan {
            heap_bytes_per_process: 8 << 20,
            guests: 0,
            ..SegmentPlan::new(1, members)
        };
        let segment = Segment::local(&plan);
        let lines: Vec<_> =
            (0..members).map(|slot| LinesPlace::of_world(segment.plan(), slot)).collect();
        let open = |own| Board::open(&segment, segment.plan().world_board(), &lines, own).unwrap();
        let heaps = (0..members).map(|slot| Heap::of(&segment, slot).unwrap()).collect();
        let boards = (0..members).map(open).collect();
        (segment, boards, heaps)
    }

    fn value(member: u32, block: u32, word: usize) -> u64 {
        u64::from(member) * 1_000_003 + u64::from(block) * 1_009 + word as u64
    }

    fn memory(
        operation: Operation,
        size: u32,
        member: u32,
        block_words: usize,
        blocks: u32,
    ) -> Memory {
        let (input_first, input_blocks) = match operation {
            Operation::Gather | Operation::AllGather => (member, 1),
            Operation::AllToAll => (member * size, size),
            Operation::Scatter | Operation::ReduceScatter => (0, size),
            _ => (0, blocks),
        };
        let (output_first, output_stride, output_blocks) = match operation {
            Operation::Gather | Operation::AllGather => (0, 1, size),
            Operation::AllToAll => (member, size, size),
            Operation::Scatter | Operation::ReduceScatter => (member, 1, 1),
            _ => (0, 1, blocks),
        };
        let input = (input_first..input_first + input_blocks)
            .flat_map(|block| (0..block_words).map(move |word| value(member, block, word)));
        let output = vec![0; output_blocks as usize * block_words];
        let mut memory = Memory {
            input: input.collect(),
            output,
            input_first,
            output_first,
            output_stride,
            block_words,
            has_table: matches!(operation, Operation::Scatter | Operation::AllToAll)
                && block_words % 2 == 1,
        };
        if operation == Operation::Broadcast && member == 0 {
            memory.output.copy_from_slice(&memory.input);
        }
        memory
    }

    /// The data of member `member` in the end; none where it has nothing.
    fn expected(
        operation: Operation,
        size: u32,
        member: u32,
        block_words: usize,
        blocks: u32,
    ) -> Option<Vec<u64>> {
        let sum = |members: u32, block, word| {
            (0..members).fold(0u64, |sum, from| sum.wrapping_add(value(from, block, word)))
        };
        let each = |blocks: std::ops::Range<u32>, of: &dyn Fn(u32, usize) -> u64| {
            blocks
                .flat_map(|block| (0..block_words).map(move |word| (block, word)))
                .map(|(block, word)| of(block, word))
                .collect::<Vec<u64>>()
        };
        Some(match operation {
            Operation::Barrier => return None,
            Operation::Broadcast => each(0..blocks, &|block, word| value(0, block, word)),
            Operation::Gather if member != 0 => return None,
            Operation::Gather | Operation::AllGather => {
                each(0..size, &|block, word| value(block, block, word))
            }
            Operation::Scatter => each(member..member + 1, &|block, word| value(0, block, word)),
            Operation::Reduce if member != 0 => return None,
            Operation::Reduce | Operation::AllReduce => {
                each(0..blocks, &|block, word| sum(size, block, word))
            }
            Operation::AllToAll => {
                each(0..size, &|from, word| value(from, from * size + member, word))
            }
            Operation::ReduceScatter => {
                each(member..member + 1, &|block, word| sum(size, block, word))
            }
            Operation::Scan => each(0..blocks, &|block, word| sum(member + 1, block, word)),
            Operation::ExclusiveScan if member == 0 => return None,
            Operation::ExclusiveScan => each(0..blocks, &|block, word| sum(member, block, word)),
        })
    }

    /// All members of one operation, each a step at a time, in an order that `turn` gives.
    fn run(
        operation: Operation,
        style: BoardStyle,
        (boards, heaps): (&mut [Board], &mut [Heap]),
        (block_words, is_crowded): (usize, bool),
        turn: impl Fn(usize) -> usize,
    ) {
        let size = boards.len() as u32;
        let segments = if style.divides(operation) { size } else { 1 };
        let task = Task { segments, order: Order::Canonical, ..Task::new(operation) };
        let plans = plans(&task, &Way::Board(style), &Group::whole(size).unwrap());
        let operator = Operator::from(Reduction::new(Combining::Sum, Element::U64).unwrap());
        let memories: Vec<Memory> = (0..size)
            .map(|member| memory(operation, size, member, block_words, segments))
            .collect();
        let mut members: Vec<(AtBoard, usize)> = plans
            .iter()
            .zip(boards.iter_mut())
            .map(|(plan, board)| {
                let mut at = AtBoard::default();
                at.begin(board.begin(5).0, 5, 0, Protocol::of(operation, plan, is_crowded));
                (at, 0)
            })
            .collect();
        for tries in 0.. {
            if members.iter().zip(&plans).all(|((_, step), plan)| *step == plan.steps.len()) {
                break;
            }
            let steps: Vec<usize> = members.iter().map(|(_, step)| *step).collect();
            assert!(
                tries < 100_000,
                "{operation} {style} with {size} members never ends: {block_words} words, at {steps:?}"
            );
            let member = turn(tries) % members.len();
            let (at, step) = &mut members[member];
            let Some(next) = plans[member].steps.get(*step) else { continue };
            let (heap, memory) = (&mut heaps[member], &memories[member]);
            if let Action::Copy { from, into } = next.action {
                memory.area(from).copy_to(&memory.area(into));
            }
            let mut around = Around {
                board: &mut boards[member],
                memory,
                operator: Some(&operator),
                allocate: &mut |bytes| heap.allocate(bytes),
                budget: &mut { 50_000 },
            };
            if at.step(&next.action, &mut around).unwrap() == Stepped::Over {
                *step += 1;
                if *step == plans[member].steps.len() {
                    around.board.end(at.number());
                }
            }
        }
        for (member, memory) in (0..).zip(&memories) {
            if let Some(expected) = expected(operation, size, member, block_words, segments) {
                assert!(
                    memory.output == expected,
                    "{operation} {style}, member {member} of {size}, {block_words} words"
                );
            }
        }
    }

    #[test]
    fn every_operation_brings_what_it_should_in_any_order_of_members() {
        let styles =
            [BoardStyle::Each, BoardStyle::Divided, BoardStyle::Together, BoardStyle::Told];
        for size in [1, 2, 3, 5, 8] {
            let (_segment, mut boards, mut heaps) = boards(size);
            for (number, operation) in Operation::ALL.into_iter().enumerate() {
                for style in styles {
                    for words in [0, 1, 3, 6, 100, 3_000, 3_001, 20_000] {
                        for protocol in [(words, true), (words, false)] {
                            let at = (&mut boards[..], &mut heaps[..]);
                            run(operation, style, at, protocol, |turn| {
                                turn * 7 + turn / 3 + number
                            });
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_deposit_for_one_peer_lies_in_a_cell_that_becomes_its_own() {
        use Operation::{AllGather, AllReduce, AllToAll, Gather, Reduce, ReduceScatter};
        for operation in [AllGather, AllReduce, AllToAll, ReduceScatter, Gather, Reduce] {
            let (segment, mut boards, mut heaps) = boards(2);
            let each = segment.plan().cells_each();
            for turn in 0..3 * each {
                let at = (&mut boards[..], &mut heaps[..]);
                run(operation, BoardStyle::Each, at, (2_000, true), |turn| turn);
                // The root has all cells in the end: what it takes then lies in blocks.
                let lie_in_blocks = matches!(operation, Gather | Reduce) && turn >= each;
                let kept = boards.iter().any(|board| board.kept_bytes() > 0);
                assert_eq!(kept, lie_in_blocks, "{operation}, {turn}");
            }
        }
    }

    #[test]
    fn data_for_others_only_are_told_in_pieces_unless_members_share_a_processor() {
        let group = Group::whole(2).unwrap();
        let first = |operation, member: usize, is_crowded, budget| {
            let plans = plans(&Task::new(operation), &Way::Board(BoardStyle::Each), &group);
            let protocol = Protocol::of(operation, &plans[member], is_crowded);
            AtBoard { protocol, ..AtBoard::default() }.fill_bytes(100_000, budget)
        };
        assert_eq!(first(Operation::Gather, 1, false, u64::MAX), PIECE_BYTES);
        assert_eq!(first(Operation::Gather, 1, true, u64::MAX), WHOLE_PIECE_BYTES);
        assert_eq!(first(Operation::AllGather, 1, false, u64::MAX), WHOLE_PIECE_BYTES);
        assert_eq!(first(Operation::AllGather, 1, false, 20_000), 20_000, "what may be moved now");
        assert_eq!(first(Operation::AllGather, 1, false, 0), PIECE_BYTES);
    }

    #[test]
    fn a_deposit_too_short_for_its_table_is_broken_and_not_waited_for() {
        let (_segment, mut boards, mut heaps) = boards(2);
        let (number, _) = boards[0].begin(5);
        let block = heaps[0].allocate(64).unwrap();
        boards[0].come_with(number, (5, 0), block, (15, 15));
        let mut at = AtBoard::default();
        at.begin(number, 5, 0, Protocol::default());
        let (deposited, into) = (Cells::new(Store::Input, 0, 2), Cells::new(Store::Output, 1, 1));
        let mut around = Around {
            board: &mut boards[1],
            memory: &memory(Operation::AllToAll, 2, 1, 101, 2),
            operator: None,
            allocate: &mut |bytes| heaps[1].allocate(bytes),
            budget: &mut { u64::MAX },
        };
        let take = Action::Take { from: 0, deposited, into, resolved: false };
        assert_eq!(at.step(&take, &mut around), Err(BoardError::Broken(0)));
    }

    #[test]
    fn in_a_large_group_whoever_waits_near_finds_who_differs_for_all() {
        let (_segment, mut boards, _heaps) = boards(150);
        let (odd, mut ours) = (100, (0, 0));
        for (member, board) in boards.iter_mut().enumerate() {
            let (number, signature) = board.begin(if member == odd { 6 } else { 5 });
            board.come(number, signature, 0, Bytes::EMPTY);
            ours = if member == odd { ours } else { (number, signature) };
        }
        let verdict = |member: usize, scope, protocol| {
            let mut at = AtBoard::default();
            at.begin(ours.0, ours.1, 0, protocol);
            at.set_progress(true, 0);
            at.verdict(&Action::Await, &boards[member], scope)
        };
        let is_odd = |error: Option<BoardError>| match error {
            Some(BoardError::Different(found)) => found.member as usize == odd,
            _ => false,
        };
        let each = Protocol::default();
        assert_eq!(
            verdict(20, ScanScope::Some, each),
            None,
            "it waits for member 0 and those behind"
        );
        assert!(is_odd(verdict(20, ScanScope::All, each)));
        let counted = Protocol::inline(true);
        assert_eq!(
            verdict(20, ScanScope::Some, counted),
            None,
            "member 100 is none of the next 64"
        );
        assert!(is_odd(verdict(50, ScanScope::Some, counted)));
        assert_eq!(boards[20].outcome(ours.0), Outcome::Different, "decided for all");
    }

    #[test]
    fn the_only_one_that_is_needed_is_looked_at_wherever_it_stands() {
        let (segment, boards, _heaps) = boards(150);
        let mut at = AtBoard::default();
        at.begin(1, 5, 0, Protocol::default());
        at.set_progress(true, 0);
        let record = SlotRecord { state: SlotState::Dead, ..SlotRecord::default() };
        segment.set_slot_record(140, record);
        let data = Cells::new(Store::Input, 0, 1);
        let take = |from| Action::Take { from, deposited: data, into: data, resolved: false };
        let gone = Some(BoardError::Gone(140));
        assert_eq!(at.verdict(&take(140), &boards[2], ScanScope::Some), gone);
        assert_eq!(at.verdict(&take(139), &boards[2], ScanScope::Some), None);
    }

    #[test]
    fn a_member_that_refuses_and_is_not_needed_is_not_missed() {
        let (_segment, mut boards, _heaps) = boards(3);
        let mut at = AtBoard::default();
        at.begin(1, 5, 0, Protocol::default());
        at.set_progress(true, 0);
        boards[2].refuse(1);
        boards[2].end(1);
        let data = Cells::new(Store::Input, 0, 1);
        let take = |from| Action::Take { from, deposited: data, into: data, resolved: false };
        assert_eq!(at.verdict(&take(1), &boards[0], ScanScope::All), None);
        assert_eq!(at.verdict(&take(2), &boards[0], ScanScope::All), Some(BoardError::Gone(2)));
    }

    #[test]
    fn a_member_that_waits_for_room_comes_before_it_reports_others_faults() {
        let (_segment, mut boards, _heaps) = boards(3);
        let mut at = AtBoard::default();
        at.begin(1, 5, 0, Protocol::default());
        boards[2].end(1);
        let broken = Some(BoardError::Broken(2));
        for (has_come, verdict) in [(false, None), (true, broken)] {
            at.set_progress(has_come, 0);
            assert_eq!(at.verdict(&Action::Await, &boards[0], ScanScope::All), verdict);
        }
    }

    #[test]
    fn a_member_without_room_in_a_call_said_to_be_done_does_not_await_the_dead() {
        let (segment, mut boards, _heaps) = boards(2);
        let mut at = AtBoard::default();
        let (number, _) = boards[0].begin(5);
        at.begin(number, 5, 0, Protocol::inline(true));
        boards[1].decide(number, Outcome::Done);
        assert_eq!(at.verdict(&Action::Await, &boards[0], ScanScope::All), None, "nobody is dead");
        let record = SlotRecord { state: SlotState::Dead, ..SlotRecord::default() };
        segment.set_slot_record(1, record);
        assert_eq!(
            at.verdict(&Action::Await, &boards[0], ScanScope::All),
            Some(BoardError::Gone(1))
        );
    }

    #[test]
    fn a_member_through_without_its_part_of_a_result_is_not_waited_for() {
        let (_segment, mut boards, mut heaps) = boards(2);
        let number = boards.iter_mut().map(|board| board.begin(5).0).max().unwrap();
        let block = heaps[1].allocate(128).unwrap();
        boards[1].come_with(number, (5, 0), block, (128, 128));
        let mut at = AtBoard::default();
        at.begin(number, 5, 0, Protocol::default());
        at.set_progress(true, 0);
        boards[0].come(number, 5, 0, Bytes::EMPTY);
        let (deposited, into) = (Cells::new(Store::Input, 0, 2), Cells::new(Store::Output, 1, 1));
        let take = Action::Take { from: 1, deposited, into, resolved: true };
        assert_eq!(at.verdict(&take, &boards[0], ScanScope::All), None, "it may be at it");
        boards[1].end(number);
        assert_eq!(at.verdict(&take, &boards[0], ScanScope::All), Some(BoardError::Spoiled(1)));
        boards[1].set_resolved(number, 64);
        assert_eq!(at.verdict(&take, &boards[0], ScanScope::All), None, "it is there");
    }

    #[test]
    fn a_result_of_who_is_gone_since_counts() {
        let (segment, mut boards, mut heaps) = boards(3);
        let number = boards.iter_mut().map(|board| board.begin(5).0).max().unwrap();
        for member in 1..3 {
            let block = heaps[member].allocate(192).unwrap();
            boards[member].come_with(number, (5, 0), block, (192, 192));
        }
        let mut at = AtBoard::default();
        at.begin(number, 5, 0, Protocol::default());
        at.set_progress(true, 0);
        let record = SlotRecord { state: SlotState::Dead, ..SlotRecord::default() };
        segment.set_slot_record(1, record);
        let deposited = Cells::new(Store::Input, 0, 3);
        let take = |from| {
            let into = Cells::new(Store::Output, from, 1);
            Action::Take { from, deposited, into, resolved: true }
        };
        assert_eq!(at.verdict(&take(1), &boards[0], ScanScope::All), Some(BoardError::Gone(1)));
        assert_eq!(
            at.verdict(&take(2), &boards[0], ScanScope::All),
            None,
            "who is gone has brought all"
        );
        boards[1].set_resolved(number, 64);
        assert_eq!(at.verdict(&take(1), &boards[0], ScanScope::All), None);
    }
}
