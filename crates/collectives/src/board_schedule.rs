//! The schedule of data over the board of a host: all at once, or chunk by chunk.
//!
//! On oversubscribed processors each member deposits and takes all of its data before the next one gets the
//! processor. What all members have deposited by then stays in the caches only while it is little. So an operation
//! with much data goes in *chunks*, which use the same memory again and again. A chunk costs a turn of all members.
//!
//! In a reduction a chunk is a part of the data. In an exchange between all members whose blocks fit into handoff
//! buffers, a chunk is one block for one other member, which deposits its own next block where it has read this one.
//!
//! Each chunk is an operation of the board, and the chunks of a call have consecutive numbers. The call's signature
//! contains the number of chunks, so members whose lengths imply different numbers are reported as a mismatch.

use std::ops::{Range, RangeInclusive};

use crate::derive::BoardStyle;
use crate::operation::Operation;
use crate::plan::{Action, Cells, Plan, Store};

/// Most chunks of one operation: each takes a number on the board.
pub const CHUNKS_MAX: u32 = 31;
/// Most chunks where each is a part of the data.
const PARTS_MAX: u64 = 8;
/// An exchange between all members goes block by block if its blocks are so long: with shorter ones a chunk costs
/// more than it saves, and longer ones are not deposited in one piece.
const BLOCK_BYTES: RangeInclusive<u64> = 32 << 10..=64 << 10;
/// A member deposits at least so much in a chunk of a reduction.
const CHUNK_BYTES_MIN: u64 = 128 << 10;
/// A chunk has whole lines of each block.
const LINE_BYTES: u64 = 64;

/// The facts of a group that all members know.
#[derive(Clone, Copy, Debug)]
pub struct BoardGroup {
    /// The number of members.
    pub size: u32,
    /// Members share processors.
    pub is_oversubscribed: bool,
    /// The size of a handoff buffer; 0 where there are none.
    pub handoff_bytes: u64,
    /// The size of the last cache of a processor.
    pub cache_bytes: u64,
}

impl BoardGroup {
    /// Whether an exchange between all members with blocks of this length goes block by block.
    fn goes_block_by_block(self, block: u64) -> bool {
        let fits = BLOCK_BYTES.contains(&block) && block <= self.handoff_bytes;
        fits && (3..=CHUNKS_MAX + 1).contains(&self.size)
    }

    /// The target for the bytes that all members deposit in a chunk and the one before it.
    fn chunk_bytes(self) -> u64 {
        self.cache_bytes / 8
    }
}

/// The schedule of an operation over the board. All members compute the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoardSchedule {
    /// The number of chunks, at least one.
    pub chunks: u32,
    /// Each chunk is one block for one other member, and a member deposits so many blocks before it takes the first: as
    /// many as stay in the caches, since with fewer the processor changes hands more often. 0 where chunks are parts.
    pub ahead: u32,
}

impl BoardSchedule {
    /// All data at once.
    pub const AT_ONCE: Self = Self { chunks: 1, ahead: 0 };

    /// Returns the schedule of an operation in a group. `block` is the number of bytes that one member has for
    /// another or for all, as far as all members know it alike; 0 where lengths vary, which goes at once.
    pub fn of(operation: Operation, style: BoardStyle, block: u64, group: BoardGroup) -> Self {
        match (operation, style) {
            (Operation::AllReduce, BoardStyle::Divided)
                if group.size == 2 && group.handoff_bytes > 0 =>
            {
                Self::in_handoff_buffers(block, group.handoff_bytes)
            }
            (Operation::AllReduce, BoardStyle::Together) if group.is_oversubscribed => {
                Self::in_parts(block, group)
            }
            (Operation::AllToAll, _)
                if group.is_oversubscribed && group.goes_block_by_block(block) =>
            {
                let chunks = group.size - 1;
                let ahead = group.chunk_bytes() / block.saturating_mul(group.size.into());
                Self { chunks, ahead: ahead.clamp(1, chunks.into()) as u32 }
            }
            _ => Self::AT_ONCE,
        }
    }

    /// Each chunk fills a handoff buffer, if there are chunks enough.
    fn in_handoff_buffers(block: u64, handoff_bytes: u64) -> Self {
        let chunks = block.div_ceil(handoff_bytes);
        let chunks = if chunks <= u64::from(CHUNKS_MAX) { chunks.max(1) } else { 1 };
        Self { chunks: chunks as u32, ..Self::AT_ONCE }
    }

    /// Each member deposits `block` bytes and takes as many. Up to three quarters of the cache they stay there
    /// anyway.
    fn in_parts(block: u64, group: BoardGroup) -> Self {
        let deposited = block.saturating_mul(u64::from(group.size)).saturating_mul(2);
        let chunks = match deposited.saturating_mul(2) > group.cache_bytes / 4 * 3 {
            true => (deposited / group.chunk_bytes().max(1)).min(block / CHUNK_BYTES_MIN),
            false => 1,
        };
        Self { chunks: chunks.clamp(1, PARTS_MAX) as u32, ..Self::AT_ONCE }
    }
}

/// One of the chunks of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// The only one.
    Whole,
    /// These bytes of the data.
    Part {
        /// Their first byte.
        start: u64,
        /// Their number.
        bytes: u64,
    },
    /// The block for one other member.
    Block {
        /// The distance in ranks from this member to that one, modulo the size of the group.
        behind: u32,
    },
}

impl Chunk {
    /// Returns chunk `at` of a schedule. A block has so many bytes, of which so many are never cut.
    pub fn of(schedule: BoardSchedule, block: (u64, u64), at: u32) -> Self {
        match schedule {
            BoardSchedule { chunks: 1, .. } => Self::Whole,
            BoardSchedule { ahead: 1.., .. } => Self::Block { behind: at + 1 },
            BoardSchedule { chunks, .. } => {
                let range = part_of(block, at, chunks);
                Self::Part { start: range.start, bytes: range.end - range.start }
            }
        }
    }

    /// Returns the share of this chunk in a step of the plan.
    #[inline]
    pub fn share_of(self, action: &Action, plan: &Plan) -> BoardShare {
        let Self::Block { behind } = self else { return BoardShare::All };
        let (size, member) = (plan.size, plan.member);
        match *action {
            Action::Deposit { cells, .. } => {
                let block = cells.first + (member + behind) % size;
                let cells = Cells { first: block, count: 1, ..cells };
                BoardShare::This(Action::Deposit { cells, except: None })
            }
            Action::Take { from, into, resolved, .. } if (from + behind) % size == member => {
                let deposited = Cells::new(Store::Input, into.first, 1);
                BoardShare::This(Action::Take { from, deposited, into, resolved })
            }
            Action::Take { .. } => BoardShare::Nothing,
            _ if behind == 1 => BoardShare::All,
            _ => BoardShare::Nothing,
        }
    }
}

/// The share of a chunk in a step of the plan.
#[derive(Debug, PartialEq, Eq)]
pub enum BoardShare {
    /// Nothing of it.
    Nothing,
    /// All of it.
    All,
    /// This step in its place.
    This(Action),
}

/// Returns the range of a block's bytes that one of so many chunks has.
fn part_of((block_bytes, unit_bytes): (u64, u64), at: u32, chunks: u32) -> Range<u64> {
    let unit_bytes = unit_bytes.saturating_mul(LINE_BYTES);
    let cut = DepositCut { total_bytes: block_bytes, unit_bytes, segments: chunks };
    cut.start(at)..cut.start(at + 1)
}

/// The cut of one piece of data into segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DepositCut {
    /// The size of the data.
    pub total_bytes: u64,
    /// The size of a unit, which is never cut.
    pub unit_bytes: u64,
    /// The number of segments.
    pub segments: u32,
}

impl DepositCut {
    /// The first byte of a segment.
    pub fn start(&self, segment: u32) -> u64 {
        let units = self.total_bytes / self.unit_bytes.max(1);
        if segment >= self.segments {
            return self.total_bytes;
        }
        let before = u128::from(units) * u128::from(segment) / u128::from(self.segments.max(1));
        before as u64 * self.unit_bytes.max(1)
    }

    /// The length of a segment in bytes.
    pub fn bytes(&self, segment: u32) -> u64 {
        self.start(segment.saturating_add(1)) - self.start(segment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Group, Task, Way, plan_of};

    const HANDOFF_BYTES: u64 = 64 << 10;

    fn group(size: u32, is_oversubscribed: bool) -> BoardGroup {
        BoardGroup { size, is_oversubscribed, handoff_bytes: HANDOFF_BYTES, cache_bytes: 32 << 20 }
    }

    fn schedule(operation: Operation, bytes: u64, group: BoardGroup) -> BoardSchedule {
        let together = operation == Operation::AllReduce;
        let style = if together { BoardStyle::Together } else { BoardStyle::Each };
        BoardSchedule::of(operation, style, bytes, group)
    }

    #[test]
    fn a_long_reduction_of_an_oversubscribed_group_goes_in_as_many_parts_as_the_cache_wants() {
        let chunks = |size, bytes| {
            let schedule = schedule(Operation::AllReduce, bytes, group(size, true));
            assert_eq!(schedule.ahead, 0);
            schedule.chunks
        };
        assert_eq!((chunks(7, 1 << 20), chunks(8, 1 << 20)), (3, 4));
        assert_eq!(u64::from(chunks(32, 1 << 20)), PARTS_MAX);
        assert_eq!(u64::from(chunks(32, 4 << 20)), PARTS_MAX);
        assert_eq!(chunks(64, 200 << 10), 1, "too little of each");
        assert_eq!(chunks(5, 1 << 20), 1, "all of it stays in the cache");
        let with = |cache_bytes| {
            let group = BoardGroup { cache_bytes, ..group(8, true) };
            schedule(Operation::AllReduce, 1 << 20, group).chunks
        };
        assert_eq!([64 << 20, 16 << 20, 0].map(with), [1, 8, 8]);
    }

    #[test]
    fn an_exchange_of_blocks_that_fit_into_handoff_buffers_goes_block_by_block() {
        let of = |size, bytes| schedule(Operation::AllToAll, bytes, group(size, true));
        for (size, bytes, ahead) in [
            (3, 64 << 10, 2),
            (8, 64 << 10, 7),
            (16, 64 << 10, 4),
            (32, 64 << 10, 2),
            (32, 32 << 10, 4),
        ] {
            assert_eq!(of(size, bytes), BoardSchedule { chunks: size - 1, ahead });
        }
        let others = [(2, 64 << 10), (33, 64 << 10), (4, (32 << 10) - 1), (4, (64 << 10) + 1)];
        assert!(others.into_iter().all(|(size, bytes)| of(size, bytes) == BoardSchedule::AT_ONCE));
        let without = BoardGroup { handoff_bytes: 0, ..group(16, true) };
        let schedule = schedule(Operation::AllToAll, 64 << 10, without);
        assert_eq!(schedule, BoardSchedule::AT_ONCE);
    }

    #[test]
    fn other_operations_and_lengths_that_vary_go_at_once() {
        for (operation, bytes) in [(Operation::AllReduce, 1 << 20), (Operation::AllToAll, 64 << 10)]
        {
            let of =
                |bytes, is_oversubscribed| schedule(operation, bytes, group(16, is_oversubscribed));
            assert_ne!(of(bytes, true), BoardSchedule::AT_ONCE, "{operation}");
            assert_eq!(of(0, true), BoardSchedule::AT_ONCE, "{operation} varying");
            assert_eq!(of(bytes, false), BoardSchedule::AT_ONCE, "{operation} with processors");
        }
        for (operation, style) in [
            (Operation::AllReduce, BoardStyle::Each),
            (Operation::AllReduce, BoardStyle::Divided),
            (Operation::Gather, BoardStyle::Each),
            (Operation::AllGather, BoardStyle::Each),
        ] {
            let schedule = BoardSchedule::of(operation, style, 1 << 20, group(16, true));
            assert_eq!(schedule, BoardSchedule::AT_ONCE, "{operation}");
        }
    }

    #[test]
    fn a_divided_reduction_of_two_fills_handoff_buffers_as_far_as_there_are_chunks() {
        let of = |bytes, group| {
            BoardSchedule::of(Operation::AllReduce, BoardStyle::Divided, bytes, group).chunks
        };
        let (buffer, most) = (HANDOFF_BYTES, u64::from(CHUNKS_MAX));
        let bytes = [0, 1, buffer, buffer + 1, 2 * buffer, most * buffer, most * buffer + 1];
        assert_eq!(bytes.map(|bytes| of(bytes, group(2, false))), [1, 1, 1, 2, 2, CHUNKS_MAX, 1]);
        assert_eq!(of(2 * buffer, BoardGroup { handoff_bytes: 0, ..group(2, false) }), 1);
        assert_eq!(of(2 * buffer, group(3, false)), 1);
    }

    #[test]
    fn parts_are_whole_lines_of_whole_elements_and_make_up_the_block() {
        for (block, unit, of) in [(1 << 20, 8, 4), (100_000, 24, 7), (130, 1, 8), (0, 1, 2)] {
            let mut end = 0;
            for at in 0..of {
                let part = part_of((block, unit), at, of);
                assert_eq!((part.start, part.start % (unit * LINE_BYTES)), (end, 0));
                end = part.end;
            }
            assert_eq!(end, block);
        }
    }

    #[test]
    fn a_chunk_of_a_reduction_has_its_part_and_all_steps_of_the_plan() {
        let task = Task::new(Operation::AllReduce);
        let plan = plan_of(&task, &Way::Board(BoardStyle::Together), &Group::whole(8).unwrap(), 3);
        let chunk = |at, chunks| {
            Chunk::of(BoardSchedule { chunks, ..BoardSchedule::AT_ONCE }, (1 << 20, 8), at)
        };
        assert_eq!(chunk(0, 1), Chunk::Whole);
        let quarter = 1 << 18;
        for at in 0..4 {
            let chunk = chunk(at, 4);
            assert_eq!(chunk, Chunk::Part { start: u64::from(at) * quarter, bytes: quarter });
            assert!(
                plan.steps
                    .iter()
                    .all(|step| chunk.share_of(&step.action, &plan) == BoardShare::All)
            );
        }
    }

    #[test]
    fn each_chunk_of_an_exchange_takes_the_block_that_it_deposits_and_every_block_goes_once() {
        let task = Task::new(Operation::AllToAll);
        for size in [3, 5, 16, 32] {
            let group = Group::whole(size).unwrap();
            let plan = |member| plan_of(&task, &Way::Board(BoardStyle::Each), &group, member);
            let plans: Vec<Plan> = (0..size).map(plan).collect();
            let mut taken = 0;
            let mut kept = vec![0; size as usize];
            for at in 0..size - 1 {
                let schedule = BoardSchedule { chunks: size - 1, ahead: 1 };
                let chunk = Chunk::of(schedule, (64 << 10, 1), at);
                let deposited: Vec<Cells> =
                    plans.iter().map(|plan| deposited(chunk, plan)).collect();
                for plan in &plans {
                    for action in shares(chunk, plan) {
                        match action {
                            Action::Copy { .. } => kept[plan.member as usize] += 1,
                            Action::Take { from, deposited: expected, into, resolved } => {
                                assert_eq!(expected, deposited[from as usize], "{size} {at}");
                                assert_eq!(into.first, from * size + plan.member);
                                assert_eq!((into.first, resolved), (expected.first, false));
                                taken += 1;
                            }
                            _ => {}
                        }
                    }
                }
            }
            assert_eq!(taken, size * (size - 1));
            assert!(kept.iter().all(|&times| times == 1), "each keeps its own once: {kept:?}");
        }
    }

    fn shares(chunk: Chunk, plan: &Plan) -> Vec<Action> {
        let share = |action: &Action| match chunk.share_of(action, plan) {
            BoardShare::Nothing => None,
            BoardShare::All => Some(action.clone()),
            BoardShare::This(action) => Some(action),
        };
        plan.steps.iter().filter_map(|step| share(&step.action)).collect()
    }

    /// Returns the block that a member deposits in a chunk.
    fn deposited(chunk: Chunk, plan: &Plan) -> Cells {
        let deposits = shares(chunk, plan).into_iter().filter_map(|action| match action {
            Action::Deposit { cells, except } => {
                assert_eq!((cells.count, except), (1, None));
                Some(cells)
            }
            _ => None,
        });
        let deposits: Vec<Cells> = deposits.collect();
        let [deposit] = deposits[..] else { panic!("{} deposits", deposits.len()) };
        deposit
    }
}
