//! One operation over the board of a group: the steps of its plan, one after the other.
//!
//! A board's plan is a line of steps, so no execution has to be kept for it: a place in the plan
//! is enough. A blocking call polls its board call; an operation that goes on holds one.

use std::sync::Arc;

use landeck_board::{Board, Neighbours};
use landeck_channel::Peer;
use landeck_collectives::board_schedule::{BoardShare, CHUNKS_MAX, Chunk};
use landeck_collectives::{Action, BoardSchedule, Cells, Operation, Signature, Walk};
use landeck_kernel::{Endpoint, Failure};
use landeck_transports::SharedMemory;

use crate::board::buffers::CallBuffers;
use crate::board::entry_check::EntryCheck;
use crate::board::scan_scope::ScanScope;
use crate::board::{Around, AtBoard, BlockMemory, BoardError, Protocol, Stepped};
use crate::call::Call;
use crate::call::check::Check;
use crate::combine::CombineError;
use crate::fault::Fault;
use crate::identity::GroupIdentity;
use crate::mismatch::Mismatch;

/// How far a board call got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BoardProgress {
    /// This member has done its part of the operation.
    Complete,
    /// Something was done.
    Moved,
    /// It waits for others.
    Waits,
}

/// One operation over the board.
pub(crate) struct BoardCall {
    at: Box<AtBoard>,
    walk: Arc<Walk>,
    step: usize,
    signature: Signature,
    known_bytes: u64,
    /// In checking mode: after this member has come, and until all have.
    entry_check: Option<EntryCheck>,
    chunks: Chunks,
    /// The chunk under way; none before its first step.
    chunk: Option<Chunk>,
    schedule: BoardSchedule,
    protocol: Protocol,
    check: u32,
    /// The first error, while this member comes to the rest of the chunks: others wait for it there.
    deferred_error: Option<BoardError>,
    /// Blocks of others that have another length than this member expects.
    refused: Option<Box<Refused>>,
}

/// Blocks that are not taken. Where blocks differ in length the others are looked at all the same: more may come
/// with such a block than what lies on the board.
#[derive(Debug)]
struct Refused {
    /// The error of the first.
    error: BoardError,
    blocks: Vec<RefusedBlock>,
}

/// One of them: whose it is, how long it is on the board, and how long it is expected to be there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RefusedBlock {
    pub(crate) member: u32,
    pub(crate) bytes: usize,
    pub(crate) expected_bytes: usize,
}

/// The chunks of a board call, with their numbers and words on the board.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunks {
    /// The number of the first; the others follow.
    first: u32,
    /// The member's words for each.
    words: [u32; CHUNKS_MAX as usize],
    at: u32,
    count: u32,
    /// This member has come to so many of them.
    deposited: u32,
}

impl Chunks {
    /// Begins so many operations at the board.
    #[inline]
    pub(crate) fn begin(board: &mut Board, call: u32, count: u32) -> Self {
        let (first, word) = board.begin(call);
        let mut words = [word; CHUNKS_MAX as usize];
        for later in words.iter_mut().take(count as usize).skip(1) {
            *later = board.begin(call).1;
        }
        Self { first, words, at: 0, count, deposited: 0 }
    }

    /// The number of the one that goes on, and the member's word for it.
    #[inline]
    fn begun(&self) -> (u32, u32) {
        self.of(self.at)
    }

    /// The number of a chunk, and the member's word for it.
    #[inline]
    fn of(&self, chunk: u32) -> (u32, u32) {
        (self.first.wrapping_add(chunk), self.words[chunk as usize % self.words.len()])
    }

    /// Whether this member has come to the one that goes on, ahead of it.
    #[inline]
    fn has_come(&self) -> bool {
        self.at < self.deposited
    }

    /// Goes on to the next one; false when there is none.
    #[inline]
    fn next(&mut self) -> bool {
        self.at += 1;
        self.at < self.count
    }
}

impl Refused {
    /// Notes a block whose length is another one than this member expects.
    #[cold]
    fn note(noted: &mut Option<Box<Self>>, error: BoardError) {
        let BoardError::Lengths { member, theirs: bytes, ours: expected_bytes } = error else {
            return;
        };
        let refused = noted.get_or_insert_with(|| Box::new(Self { error, blocks: Vec::new() }));
        refused.blocks.push(RefusedBlock { member, bytes, expected_bytes });
    }
}

impl BoardCall {
    /// An operation that has its numbers and nothing else yet.
    #[inline]
    pub(crate) fn new(
        mut at: Box<AtBoard>,
        (chunks, schedule): (Chunks, BoardSchedule),
        signature: Signature,
        (walk, protocol): (Arc<Walk>, Protocol),
        (known_bytes, check): (u64, Check),
    ) -> Self {
        let (number, word) = chunks.begun();
        let protocol = protocol.in_chunks(chunks.count > 1);
        let protocol = if schedule.ahead > 0 { protocol.handed_over() } else { protocol };
        at.begin(number, word, check.word(), protocol);
        let entry_check = (check != Check::NONE).then(|| EntryCheck::new(number, word, check));
        let (step, check) = (0, check.word());
        Self {
            at,
            walk,
            step,
            signature,
            known_bytes,
            entry_check,
            chunks,
            chunk: None,
            schedule,
            protocol,
            check,
            deferred_error: None,
            refused: None,
        }
    }

    /// Does what can be done now, moving not much more than `allowance` bytes.
    #[inline]
    pub(crate) fn advance(
        &mut self,
        call: &Call,
        board: &mut Board,
        endpoint: &mut Endpoint<SharedMemory>,
        allowance: &mut u64,
    ) -> Result<BoardProgress, BoardError> {
        if self.deferred_error.is_some() {
            return self.come_to_the_rest(board);
        }
        match self.take_steps(call, board, endpoint, allowance) {
            Ok(BoardProgress::Complete) => self
                .refused
                .as_ref()
                .map_or(Ok(BoardProgress::Complete), |refused| Err(refused.error.clone())),
            Ok(progress) => Ok(progress),
            Err(error) => self.fail(board, error),
        }
    }

    /// The blocks that were not taken.
    #[cold]
    pub(crate) fn refused(&self) -> Vec<RefusedBlock> {
        self.refused.as_ref().map_or_else(Vec::new, |refused| refused.blocks.clone())
    }

    /// Ends the operation after an error, so that nobody waits for this member: at once where the group is
    /// broken; else when this member has come to all chunks, as soon as there is room for that.
    #[cold]
    pub(crate) fn fail(
        &mut self,
        board: &mut Board,
        error: BoardError,
    ) -> Result<BoardProgress, BoardError> {
        if error.leaves_group_whole() || error.is_want_of_memory() {
            self.deferred_error.get_or_insert(error);
            return self.come_to_the_rest(board);
        }
        if !self.at.has_come() {
            board.refuse(self.at.number());
        }
        self.at.leave(board, Some(&error));
        while self.chunks.next() {
            self.begin_chunk();
            board.refuse(self.at.number());
            self.at.leave(board, None);
        }
        error.give_up(board);
        board.wake();
        Err(error)
    }

    #[cold]
    fn come_to_the_rest(&mut self, board: &mut Board) -> Result<BoardProgress, BoardError> {
        let about_memory = self.deferred_error.as_ref().filter(|error| error.is_about_memory());
        let lack = about_memory.map(|error| error.lack(board.own()));
        while self.at.has_come() || self.at.come_with_nothing(board, lack) {
            self.at.leave(board, self.deferred_error.as_ref());
            board.wake();
            if !self.chunks.next() {
                return self.deferred_error.take().map_or(Ok(BoardProgress::Complete), Err);
            }
            self.begin_chunk();
        }
        Ok(BoardProgress::Waits)
    }

    fn begin_chunk(&mut self) {
        let (number, word) = self.chunks.begun();
        self.at.begin(number, word, self.check, self.protocol);
        self.at.set_progress(self.chunks.has_come(), 0);
        (self.step, self.chunk) = (0, None);
    }

    /// Deposits the blocks of the next chunks, as far as there is room. What fails is met again in its own chunk.
    fn come_ahead(
        &mut self,
        call: &Call,
        board: &mut Board,
        endpoint: &mut Endpoint<SharedMemory>,
        allowance: &mut u64,
    ) {
        let (walk, bytes) = (self.walk.clone(), self.known_bytes);
        let (plan, block) = (walk.plan(), (bytes, call.unit_bytes()));
        let mut actions = plan.steps.iter().map(|step| &step.action);
        let Some(deposit) = actions.find(|action| action.comes()) else { return };
        let Chunks { at, count, .. } = self.chunks;
        self.chunks.deposited = self.chunks.deposited.max(at);
        while self.chunks.deposited < count.min(at + self.schedule.ahead) && *allowance > 0 {
            let chunk = Chunk::of(self.schedule, block, self.chunks.deposited);
            let BoardShare::This(action) = chunk.share_of(deposit, plan) else { break };
            let (number, word) = self.chunks.of(self.chunks.deposited);
            self.at.begin(number, word, self.check, self.protocol);
            let mut around = Around {
                board: &mut *board,
                memory: &CallBuffers::of(call, bytes, plan, chunk),
                operator: None,
                allocate: &mut |bytes| endpoint.allocate(bytes),
                // It is deposited as a whole, or not now.
                budget: &mut { u64::MAX },
            };
            if !matches!(self.at.step(&action, &mut around), Ok(Stepped::Over)) {
                break;
            }
            self.chunks.deposited += 1;
            *allowance = allowance.saturating_sub(bytes);
        }
        self.begin_chunk();
    }

    /// Takes the steps of this chunk and of later ones, as far as possible.
    #[inline]
    fn take_steps(
        &mut self,
        call: &Call,
        board: &mut Board,
        endpoint: &mut Endpoint<SharedMemory>,
        allowance: &mut u64,
    ) -> Result<BoardProgress, BoardError> {
        let mut has_moved = false;
        loop {
            if self.schedule.ahead > 0 && self.chunk.is_none() {
                self.come_ahead(call, board, endpoint, allowance);
            }
            match self.take_steps_of_chunk(call, board, endpoint, allowance)? {
                BoardProgress::Complete if self.chunks.next() => self.begin_chunk(),
                BoardProgress::Waits if has_moved => return Ok(BoardProgress::Moved),
                progress => return Ok(progress),
            }
            has_moved = true;
        }
    }

    #[inline]
    fn take_steps_of_chunk(
        &mut self,
        call: &Call,
        board: &mut Board,
        endpoint: &mut Endpoint<SharedMemory>,
        allowance: &mut u64,
    ) -> Result<BoardProgress, BoardError> {
        let plan = self.walk.plan();
        let of_block = (self.known_bytes, call.unit_bytes());
        let chunk = || Chunk::of(self.schedule, of_block, self.chunks.at);
        let chunk = *self.chunk.get_or_insert_with(chunk);
        let buffers = CallBuffers::of(call, self.known_bytes, plan, chunk);
        let mut progress = BoardProgress::Waits;
        let mut around = Around {
            board,
            memory: &buffers,
            operator: call.operator.as_ref(),
            allocate: &mut |bytes| endpoint.allocate_deposit(bytes),
            budget: allowance,
        };
        loop {
            if !are_called(&mut self.entry_check, &mut self.at, around.board)? {
                return Ok(progress);
            }
            let Some(step) = plan.steps.get(self.step) else { break };
            let is_done = self.chunks.has_come() && step.action.comes();
            let share =
                if is_done { BoardShare::Nothing } else { chunk.share_of(&step.action, plan) };
            let action = match &share {
                BoardShare::All => &step.action,
                BoardShare::This(action) => action,
                BoardShare::Nothing => {
                    self.step += 1;
                    continue;
                }
            };
            if let Action::Copy { from, into } = *action {
                keep_own(&buffers, from, into);
                self.step += 1;
                continue;
            }
            let stepped = match self.at.step(action, &mut around) {
                // Other members wait for this one's blocks in the chunks that follow, too.
                Err(error @ BoardError::Lengths { .. })
                    if call.is_varying || self.schedule.ahead > 0 =>
                {
                    Refused::note(&mut self.refused, error);
                    self.at.leave_step();
                    Stepped::Over
                }
                stepped => stepped?,
            };
            match stepped {
                Stepped::Over => {
                    self.step += 1;
                    if let Some(entry_check) = self.entry_check.as_mut().filter(|_| action.comes())
                    {
                        entry_check.begin();
                    }
                }
                Stepped::Moved if *around.budget > 0 => {}
                Stepped::Moved => return Ok(BoardProgress::Moved),
                Stepped::Waits => return Ok(progress),
            }
            progress = BoardProgress::Moved;
        }
        around.board.end(self.at.number());
        Ok(BoardProgress::Complete)
    }

    /// The relation of the processes on this processor to this wait.
    pub(crate) fn neighbours(&self, board: &Board, processor: u32) -> Neighbours {
        match self.walk.plan().steps.get(self.step) {
            Some(step) if self.entry_check.is_none() => {
                self.at.neighbours(&step.action, board, processor)
            }
            _ => Neighbours::Awaited,
        }
    }

    /// After others are gone, or before sleep: why it can never be over.
    #[cold]
    pub(crate) fn verdict(&self, board: &Board, scope: ScanScope) -> Option<BoardError> {
        if let Some(entry_check) = &self.entry_check {
            return entry_check.verdict(board, scope);
        }
        let step = self.walk.plan().steps.get(self.step)?;
        self.at.verdict(&step.action, board, scope)
    }

    /// Its number on the board.
    pub(crate) fn number(&self) -> u32 {
        self.at.number()
    }

    /// The call that the members compare.
    pub(crate) fn signature(&self) -> Signature {
        self.signature
    }

    /// The memory that is left when it is complete, for the next one.
    pub(crate) fn into_inner(mut self) -> Box<AtBoard> {
        self.at.hide();
        self.at
    }
}

/// Whether a roll call, if one has begun, is over; then this member counts itself in.
#[inline]
fn are_called(
    entry_check: &mut Option<EntryCheck>,
    at: &mut AtBoard,
    board: &mut Board,
) -> Result<bool, BoardError> {
    if let Some(begun) = entry_check
        && begun.has_begun()
    {
        if !begun.poll(board)? {
            return Ok(false);
        }
        *entry_check = None;
        at.count(board)?;
        board.wake();
    }
    Ok(true)
}

/// Bytes that stay in the nearest cache while they are read.
const NEAR_BYTES: usize = 32 << 10;

/// A member's own block goes from its input to its output: its end first, since that is in the
/// nearest cache when the block was deposited just before.
#[inline]
fn keep_own(buffers: &CallBuffers<'_>, from: Cells, into: Cells) {
    match (buffers.plain(from), buffers.plain(into)) {
        (Some(from), Some(into)) => {
            for start in (0..from.len()).step_by(NEAR_BYTES).rev() {
                into.write(start, from.bytes().part(start, NEAR_BYTES));
            }
        }
        _ => buffers.area(from).copy_to(&buffers.area(into)),
    }
}

/// The loss for which a member brings nothing at a board: a death or a revocation. A member that lives brings nothing
/// because another one has left.
#[cold]
pub(crate) fn loss_behind(
    endpoint: &Endpoint<SharedMemory>,
    place: &GroupIdentity,
    error: &BoardError,
) -> Option<Failure> {
    let members = &place.members;
    endpoint.failure_of_group(place.context, members).or_else(|| match error {
        BoardError::Gone(member) => {
            let peer = members.get(*member as usize)?;
            let loss = |&peer: &Peer| endpoint.recorded_loss(place.context, peer);
            loss(peer).or_else(|| members.iter().find_map(loss))
        }
        _ => None,
    })
}

/// The fault that a failure at the board is for the caller.
#[cold]
pub(crate) fn fault_of(
    error: BoardError,
    operation: Operation,
    place: &GroupIdentity,
    loss: Option<Failure>,
) -> Fault {
    let peer = |member: u32| place.members.get(member as usize).copied().unwrap_or(Peer(member));
    match error {
        BoardError::Gone(member) => {
            let gone = Failure::PeerGone { peer: peer(member), died: false };
            Fault::Failure(loss.unwrap_or(gone))
        }
        BoardError::Different(difference) => {
            Fault::Mismatch(Mismatch::at_board(difference, place.member))
        }
        BoardError::Lengths { member, theirs, ours } => Fault::Length {
            member,
            operation,
            message_bytes: theirs as u64,
            expected_bytes: ours as u64,
        },
        BoardError::Disagrees { member, theirs, ours } => {
            Fault::Disagreement { member, operation, what: ours.difference(theirs) }
        }
        BoardError::Spoiled(member) => Fault::Spoiled { member, operation },
        BoardError::NoRoom(member) => Fault::NoRoom { member, operation },
        BoardError::Lack { member, lack } => {
            lack.in_group(place.members.len(), member).fault(operation)
        }
        BoardError::Revoked => Fault::Failure(Failure::Revoked),
        BoardError::Broken(member) => Fault::BrokenBoard { member },
        BoardError::Heap(full) => Fault::Heap(full),
        BoardError::NoMemory(no_memory)
        | BoardError::Combine(CombineError::NoMemory(no_memory)) => Fault::NoMemory(no_memory),
        BoardError::Combine(CombineError::Reduction(error)) => Fault::Operator(error),
        BoardError::Combine(CombineError::Panicked) => Fault::Panicked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_board::{Came, Difference, LinesPlace, WINDOW};
    use landeck_collectives::{BoardStyle, Group, Order, Task, Way, plan_of};
    use landeck_memory::heap::HeapFull;
    use landeck_memory::{Segment, SegmentPlan};

    fn boards(segment: &Segment) -> [Board; 2] {
        let lines = [0, 1].map(|slot| LinesPlace::of_world(segment.plan(), slot));
        [0, 1].map(|own| Board::open(segment, segment.plan().world_board(), &lines, own).unwrap())
    }

    /// A barrier of two members, in this number of chunks.
    fn barrier(board: &mut Board, chunks: u32) -> BoardCall {
        let (operation, order) = (Operation::Barrier, Order::Free);
        let task = Task { operation, root: 0, segments: 1, order, in_place: false };
        let plan = plan_of(&task, &Way::Board(BoardStyle::Each), &Group::whole(2).unwrap(), 0);
        let begun = (Chunks::begin(board, 0, chunks), BoardSchedule::AT_ONCE);
        let walk = (Walk::new(plan), Protocol::default());
        BoardCall::new(Box::default(), begun, Signature::default(), walk, (0, Check::NONE))
    }

    #[test]
    fn a_call_that_fails_in_one_chunk_comes_to_the_others_when_there_is_room() {
        let segment = Segment::local(&SegmentPlan { guests: 0, ..SegmentPlan::new(1, 2) });
        let [mut ahead, mut behind] = boards(&segment);
        for _ in 1..WINDOW {
            let number = ahead.begin(0).0;
            ahead.end(number);
        }
        let mut board_call = barrier(&mut ahead, 2);
        let (first, last) = (board_call.chunks.first, board_call.chunks.first + 1);
        assert_eq!(board_call.fail(&mut ahead, BoardError::Spoiled(1)), Ok(BoardProgress::Waits));
        assert!(behind.is_past(0, first) && !behind.is_past(0, last));
        assert!(board_call.verdict(&ahead, ScanScope::All).is_none(), "it waits for room");
        let number = behind.begin(0).0;
        behind.end(number);
        assert_eq!(
            board_call.fail(&mut ahead, BoardError::Spoiled(0)),
            Err(BoardError::Spoiled(1))
        );
        assert!(behind.is_past(0, last) && !behind.refuses(0, last));
        for word in [board_call.chunks.words[0], board_call.chunks.words[1]] {
            let chunks = [first, last].map(|number| behind.came(0, number, word));
            assert!(chunks.contains(&Came::Here), "{chunks:?}");
        }
    }

    #[test]
    fn an_operation_that_fails_is_over_whatever_the_failure() {
        let segment = Segment::local(&SegmentPlan { guests: 0, ..SegmentPlan::new(1, 2) });
        let [mut board, _] = boards(&segment);
        let full = HeapFull { wanted: 1, in_use: 0, limit: 0 };
        let failures = [
            BoardError::Heap(full),
            BoardError::Spoiled(1),
            BoardError::Different(Difference { member: 1, number: 1, theirs: 9, ours: 8 }),
            BoardError::Gone(1),
        ];
        for failure in failures {
            let mut board_call = barrier(&mut board, 1);
            let number = board_call.chunks.first;
            let failed = board_call.fail(&mut board, failure.clone());
            assert_eq!(failed, Err(failure.clone()));
            assert!(board.is_past(0, number), "{failure:?}");
            let refuses = matches!(failure, BoardError::Gone(_) | BoardError::Different(_));
            assert_eq!(board.refuses(0, number), refuses, "{failure:?}");
        }
    }

    #[test]
    fn a_member_that_came_and_failed_by_a_death_comes_to_nothing_more() {
        for (failure, refuses) in [
            (BoardError::Gone(1), true),
            (BoardError::Revoked, true),
            (BoardError::Spoiled(1), false),
        ] {
            let segment = Segment::local(&SegmentPlan { guests: 0, ..SegmentPlan::new(1, 2) });
            let [mut board, other] = boards(&segment);
            let mut board_call = barrier(&mut board, 1);
            let number = board_call.chunks.first;
            board_call.at.set_progress(true, 0);
            drop(board_call.fail(&mut board, failure.clone()));
            assert!(!other.refuses(0, number), "{failure:?}: it has come to this one");
            assert_eq!(other.refuses(0, number + 1), refuses, "{failure:?}");
        }
    }
}
