//! How much data go over the board of a host: at once or in rounds.
//!
//! Where members share processors, each lays down and takes all of its data before the next one has
//! the processor. What all of them have laid down until the first one takes of it stays in the caches
//! only while it is little. So an operation with much data is done in rounds, in places that are used
//! again round after round: of a reduction each round has a part of the data, of an exchange between
//! all the blocks for some of the others. A round costs a turn of all members.
//!
//! Of an exchange between all with blocks that fit into cells each round has one block for one other member: who
//! takes it lays down its next one in its place. A member lays down some blocks before it takes the first, as
//! many as stay in the caches: the fewer of them, the more often the processor is given away.
//!
//! The rounds are operations of their own on the board, with consecutive numbers. What is called says
//! how many there are, so members whose lengths differ so much that they go in other rounds meet as
//! ones that called something else.

use std::ops::{Range, RangeInclusive};

use crate::derive::BoardStyle;
use crate::operation::Operation;
use crate::plan::{Action, Cells, Plan, Store};

/// Most rounds of one operation: it takes a number on the board for each.
pub const ROUNDS_MAX: u32 = 31;
/// Most of them where each has a part of the data.
const PARTS_MAX: u64 = 8;
/// An exchange between all goes block by block where one has so many bytes: with less a round costs more than it
/// saves, and what is more is not laid down in one piece.
const BLOCK_BYTES: RangeInclusive<u64> = 32 << 10..=64 << 10;
/// What a member lays down in a round of a reduction is not less than this.
const ROUND_BYTES_MIN: u64 = 128 << 10;
/// What all members lay down in a round, the one before it included, is to be about this.
const ROUND_BYTES_OF_ALL: u64 = 4 << 20;
/// The last cache of a processor is taken for so large. Up to three quarters of it everything stays
/// there, however it goes.
const CACHE_BYTES: u64 = 32 << 20;
const CACHED_BYTES: u64 = CACHE_BYTES / 4 * 3;
/// From here on what all members take cannot stay there.
const STREAMED_BYTES: u64 = CACHE_BYTES / 2 * 3;
/// A round has whole lines of each block.
const LINE_BYTES: u64 = 64;

/// The group that an operation is of, as all its members know it.
#[derive(Clone, Copy, Debug)]
pub struct GroupOf {
    /// Members.
    pub size: u32,
    /// Members share processors.
    pub is_crowded: bool,
    /// What one member lays down for one other can lie in a cell of so many bytes; 0 where there are none.
    pub cell_bytes: u64,
}

impl GroupOf {
    /// Whether an exchange between all with blocks of so many bytes goes in rounds of one block each.
    fn goes_block_by_block(self, block: u64) -> bool {
        let fits = BLOCK_BYTES.contains(&block) && block <= self.cell_bytes;
        fits && (3..=ROUNDS_MAX + 1).contains(&self.size)
    }
}

/// How an operation goes over the board. All members find the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoardSchedule {
    /// In so many rounds, at least one.
    pub rounds: u32,
    /// Each round has one block for one other member, and so many are laid down before the first is taken; 0
    /// where that is not so.
    pub ahead: u32,
}

impl BoardSchedule {
    /// All at once.
    pub const AT_ONCE: Self = Self { rounds: 1, ahead: 0 };

    /// That of an operation in a group. A `block` has so many bytes: what all members know alike of what one has
    /// for another or for all; nothing where lengths vary, so that goes at once.
    pub fn of(operation: Operation, style: BoardStyle, block: u64, group: GroupOf) -> Self {
        let members = u64::from(group.size);
        match (operation, style) {
            (Operation::AllReduce, BoardStyle::Divided)
                if group.size == 2 && group.cell_bytes > 0 =>
            {
                Self::in_cells(block, group.cell_bytes)
            }
            _ if !group.is_crowded => Self::AT_ONCE,
            (Operation::AllReduce, BoardStyle::Together) => {
                Self::in_rounds(block, members, block / ROUND_BYTES_MIN)
            }
            (Operation::AllToAll, _) if group.goes_block_by_block(block) => {
                let ahead = ROUND_BYTES_OF_ALL / block.saturating_mul(members);
                let rounds = group.size - 1;
                Self { rounds, ahead: (ahead as u32).clamp(1, rounds), ..Self::AT_ONCE }
            }
            // What each member sees once fills the caches anyway where it is so much.
            (Operation::AllToAll, _) if all_of(block, members) <= STREAMED_BYTES => {
                Self::in_rounds(block.saturating_mul(members), members, members - 1)
            }
            _ => Self::AT_ONCE,
        }
    }

    /// Where each round has as many bytes as a cell, if there are rounds enough.
    fn in_cells(block: u64, cell_bytes: u64) -> Self {
        let rounds = block.div_ceil(cell_bytes);
        let rounds = if rounds <= u64::from(ROUNDS_MAX) { rounds.max(1) } else { 1 };
        Self { rounds: rounds as u32, ..Self::AT_ONCE }
    }

    /// Where each member lays down, and takes, so many bytes.
    fn in_rounds(given: u64, members: u64, rounds_max: u64) -> Self {
        let laid_down = given.saturating_mul(members).saturating_mul(2);
        let rounds = match laid_down.saturating_mul(2) > CACHED_BYTES {
            true => (laid_down / ROUND_BYTES_OF_ALL).min(rounds_max),
            false => 1,
        };
        Self { rounds: rounds.clamp(1, PARTS_MAX) as u32, ..Self::AT_ONCE }
    }
}

/// What all members take where each has a block for, or of, everybody.
fn all_of(block: u64, members: u64) -> u64 {
    block.saturating_mul(members).saturating_mul(members)
}

/// One of the rounds of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// There is one.
    Only,
    /// It has these bytes of each block, from a start on.
    Part(u64, u64),
    /// It has the blocks for so many others: the first of them so far behind this member.
    Others(u32, u32),
}

impl Chunk {
    /// One of so many rounds of an operation, in a group of so many members. A block has so many bytes, of which
    /// so many are never cut.
    pub fn of(
        operation: Operation,
        block: (u64, u64),
        size: u32,
        (at, rounds): (u32, u32),
    ) -> Self {
        match operation {
            _ if rounds == 1 => Self::Only,
            Operation::AllToAll => {
                let first = |at: u32| 1 + at * (size - 1) / rounds;
                Self::Others(first(at), first(at + 1) - first(at))
            }
            _ => {
                let range = part_of(block, at, rounds);
                Self::Part(range.start, range.end - range.start)
            }
        }
    }

    /// What this round has of a step of the plan: nothing, all of it, or the step that this is.
    #[inline]
    pub fn share_of(self, action: &Action, plan: &Plan) -> Share {
        let Self::Others(first, count) = self else { return Share::All };
        let (size, member) = (plan.size, plan.member);
        match *action {
            Action::Deposit { cells, .. } => {
                let block = cells.first + (member + first) % size;
                let cells = Cells { first: block, count, ..cells };
                Share::This(Action::Deposit { cells, except: None })
            }
            Action::Take { from, into, resolved, .. } => {
                let behind = (member + size - from) % size;
                if !(first..first + count).contains(&behind) {
                    return Share::Nothing;
                }
                // Ours is so many blocks behind the first that is there.
                let deposited = Cells::new(Store::Input, into.first - (behind - first), count);
                Share::This(Action::Take { from, deposited, into, resolved })
            }
            _ if first == 1 => Share::All,
            _ => Share::Nothing,
        }
    }
}

/// What a round has of a step.
#[derive(Debug, PartialEq, Eq)]
pub enum Share {
    /// Nothing of it.
    Nothing,
    /// All of it.
    All,
    /// What this does.
    This(Action),
}

/// Which bytes of a block one of so many rounds has.
fn part_of((block_bytes, unit_bytes): (u64, u64), at: u32, rounds: u32) -> Range<u64> {
    let unit_bytes = unit_bytes.saturating_mul(LINE_BYTES);
    let cut = Cut { total_bytes: block_bytes, unit_bytes, segments: rounds };
    cut.start(at)..cut.start(at + 1)
}

/// How one piece of data is cut into segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// All of it.
    pub total_bytes: u64,
    /// What is never cut.
    pub unit_bytes: u64,
    /// Into so many.
    pub segments: u32,
}

impl Cut {
    /// Where a segment begins.
    pub fn start(&self, segment: u32) -> u64 {
        let units = self.total_bytes / self.unit_bytes.max(1);
        if segment >= self.segments {
            return self.total_bytes;
        }
        let before = u128::from(units) * u128::from(segment) / u128::from(self.segments.max(1));
        before as u64 * self.unit_bytes.max(1)
    }

    /// How long it is.
    pub fn bytes(&self, segment: u32) -> u64 {
        self.start(segment.saturating_add(1)) - self.start(segment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Group, Order, Task, Way, plan_of};

    const CELL_BYTES: u64 = 64 << 10;

    fn group(size: u32, is_crowded: bool) -> GroupOf {
        GroupOf { size, is_crowded, cell_bytes: CELL_BYTES }
    }

    fn course(
        operation: Operation,
        size: u32,
        block_bytes: u64,
        is_crowded: bool,
    ) -> BoardSchedule {
        let together = operation == Operation::AllReduce;
        let style = if together { BoardStyle::Together } else { BoardStyle::Each };
        BoardSchedule::of(operation, style, block_bytes, group(size, is_crowded))
    }

    #[test]
    fn much_data_of_members_that_share_processors_go_in_rounds() {
        let rounds = |operation, size, bytes| course(operation, size, bytes, true).rounds;
        assert_eq!(rounds(Operation::AllReduce, 8, 1 << 20), 4);
        assert_eq!(u64::from(rounds(Operation::AllReduce, 32, 1 << 20)), PARTS_MAX);
        assert_eq!(rounds(Operation::AllReduce, 64, 200 << 10), 1, "too little of each");
        assert_eq!(rounds(Operation::AllReduce, 5, 1 << 20), 1, "all of it stays in a cache");
        assert_eq!(rounds(Operation::AllToAll, 8, 128 << 10), 4);
        assert_eq!(rounds(Operation::AllToAll, 3, 4 << 20), 2, "one for each of the others");
        assert_eq!(rounds(Operation::AllToAll, 32, 128 << 10), 1, "no cache holds what goes");
        assert_eq!(rounds(Operation::AllToAll, 1, 64 << 20), 1);
        assert_eq!(rounds(Operation::Barrier, 32, 0), 1);
        assert_eq!(u64::from(rounds(Operation::AllReduce, 32, 4 << 20)), PARTS_MAX);
        assert_eq!(rounds(Operation::AllReduce, 7, 1 << 20), 3, "as many as the caches want");
        for operation in [Operation::AllReduce, Operation::AllToAll, Operation::AllGather] {
            let of = |is_crowded| course(operation, 16, 128 << 10, is_crowded);
            assert_eq!(of(false), BoardSchedule::AT_ONCE, "{operation}");
        }
    }

    #[test]
    fn an_exchange_between_all_goes_block_by_block_where_these_fit_into_cells() {
        let of = |size, bytes| {
            let course = course(Operation::AllToAll, size, bytes, true);
            (course.rounds, course.ahead)
        };
        assert_eq!(
            (of(3, 64 << 10), of(8, 64 << 10)),
            ((2, 2), (7, 7)),
            "all of them stay in a cache"
        );
        assert_eq!((of(16, 64 << 10), of(32, 64 << 10)), ((15, 4), (31, 2)));
        assert_eq!((of(16, 32 << 10), of(32, 32 << 10)), ((15, 8), (31, 4)));
        let others = [(2, 64 << 10), (33, 64 << 10), (4, (32 << 10) - 1), (4, (64 << 10) + 1)];
        assert!(others.into_iter().all(|(size, bytes)| of(size, bytes).1 == 0));
        assert_eq!(course(Operation::AllToAll, 4, 64 << 10, false), BoardSchedule::AT_ONCE);
        let without = GroupOf { cell_bytes: 0, ..group(16, true) };
        let course = BoardSchedule::of(Operation::AllToAll, BoardStyle::Each, 64 << 10, without);
        assert_eq!((course.rounds, course.ahead), (8, 0));
    }

    #[test]
    fn what_is_not_known_alike_and_what_all_combine_by_itself_goes_at_once() {
        for (operation, style, bytes) in [
            (Operation::AllReduce, BoardStyle::Together, 1 << 20),
            (Operation::AllToAll, BoardStyle::Each, 64 << 10),
        ] {
            let course = |bytes| BoardSchedule::of(operation, style, bytes, group(16, true));
            assert_ne!(course(bytes), BoardSchedule::AT_ONCE, "{operation}");
            assert_eq!(course(0), BoardSchedule::AT_ONCE, "{operation} varying");
        }
        for (operation, style) in [
            (Operation::AllReduce, BoardStyle::Each),
            (Operation::AllReduce, BoardStyle::Divided),
            (Operation::Gather, BoardStyle::Each),
        ] {
            let course = BoardSchedule::of(operation, style, 1 << 20, group(16, true));
            assert_eq!(course, BoardSchedule::AT_ONCE, "{operation}");
        }
    }

    #[test]
    fn what_two_divide_goes_in_cells_as_far_as_there_are_rounds() {
        let of = |bytes, group| {
            BoardSchedule::of(Operation::AllReduce, BoardStyle::Divided, bytes, group).rounds
        };
        let cell = CELL_BYTES;
        let most = u64::from(ROUNDS_MAX);
        let bytes = [0, 1, cell, cell + 1, 2 * cell, most * cell, most * cell + 1];
        assert_eq!(bytes.map(|bytes| of(bytes, group(2, false))), [1, 1, 1, 2, 2, ROUNDS_MAX, 1]);
        assert_eq!(of(2 * cell, GroupOf { cell_bytes: 0, ..group(2, false) }), 1);
        assert_eq!(of(2 * cell, group(3, false)), 1);
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
    fn a_round_of_a_reduction_has_its_part_and_all_steps_of_the_plan() {
        let task = Task::new(Operation::AllReduce);
        let plan = plan_of(&task, &Way::Board(BoardStyle::Together), &Group::whole(8).unwrap(), 3);
        let round = |at| Chunk::of(Operation::AllReduce, (1 << 20, 8), 8, at);
        assert_eq!(round((0, 1)), Chunk::Only);
        let quarter = 1 << 18;
        for at in 0..4 {
            let round = round((at, 4));
            assert_eq!(round, Chunk::Part(u64::from(at) * quarter, quarter));
            assert!(
                plan.steps.iter().all(|step| round.share_of(&step.action, &plan) == Share::All)
            );
        }
    }

    /// Of every member: which block of whom each round lays down, and takes.
    #[test]
    fn what_a_round_lays_down_is_what_it_takes_and_every_block_goes_once() {
        let (operation, order) = (Operation::AllToAll, Order::Free);
        let task = Task { operation, root: 0, segments: 1, order, in_place: false };
        for (size, rounds) in [(2, 1), (5, 2), (9, 8), (16, 8), (32, 5), (32, 31)] {
            let group = Group::whole(size).unwrap();
            let plan = |member| plan_of(&task, &Way::Board(BoardStyle::Each), &group, member);
            let plans: Vec<Plan> = (0..size).map(plan).collect();
            let mut taken = 0;
            let mut kept = vec![0; size as usize];
            for at in 0..rounds {
                let round = Chunk::of(operation, (0, 1), size, (at, rounds));
                assert_eq!(round == Chunk::Only, rounds == 1);
                let laid = plans.iter().map(|plan| laid_down(round, plan)).collect::<Vec<_>>();
                if let Chunk::Others(_, count) = round {
                    assert!(laid.iter().all(|blocks| blocks.len() == count as usize));
                }
                for plan in &plans {
                    for action in shares(round, plan) {
                        if matches!(action, Action::Copy { .. }) {
                            kept[plan.member as usize] += 1;
                        }
                        let Action::Take { from, deposited, into, resolved } = action else {
                            continue;
                        };
                        let place = (into.first - deposited.first) as usize;
                        assert_eq!((into.first, resolved), (from * size + plan.member, false));
                        assert_eq!(deposited.count as usize, laid[from as usize].len());
                        assert_eq!(laid[from as usize][place], into.first, "{size} {rounds} {at}");
                        taken += 1;
                    }
                }
            }
            assert_eq!(taken, size * (size - 1));
            assert!(kept.iter().all(|&times| times == 1), "each keeps its own once: {kept:?}");
        }
    }

    fn shares(round: Chunk, plan: &Plan) -> Vec<Action> {
        let share = |action: &Action| match round.share_of(action, plan) {
            Share::Nothing => None,
            Share::All => Some(action.clone()),
            Share::This(action) => Some(action),
        };
        plan.steps.iter().filter_map(|step| share(&step.action)).collect()
    }

    fn laid_down(round: Chunk, plan: &Plan) -> Vec<u32> {
        let (size, row) = (plan.size, plan.member * plan.size);
        let wrap = |block: u32| row + (block - row) % size;
        let deposits = shares(round, plan).into_iter().filter_map(|action| match action {
            Action::Deposit { cells, .. } => {
                assert!((row..row + size).contains(&cells.first), "it begins within the row");
                Some(cells.blocks().map(wrap).collect::<Vec<_>>())
            }
            _ => None,
        });
        deposits.flatten().collect()
    }
}
