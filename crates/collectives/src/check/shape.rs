//! The blocks that each member has at the beginning of an operation, and those it must have at its end.

use crate::derive::Task;
use crate::operation::Operation;

/// A task in a group.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) task: Task,
    pub(super) size: u32,
    /// The segments of the plans.
    pub(super) segments: u32,
    /// The members in the order of their blocks; empty where that is the order of the members.
    pub(super) order: Box<[u32]>,
}

/// The content that a block must have in the end: the data of one member, or the combined data of the first `members`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Of(u32),
    Combined { members: u32 },
}

impl Shape {
    /// Blocks have numbers below this.
    pub(super) fn numbers(&self) -> u32 {
        match self.task.operation {
            Operation::Barrier => 0,
            Operation::AllToAll => self.size * self.size,
            operation if operation.has_segments() => self.segments,
            operation if operation.has_blocks_in_segments() => self.size * self.segments,
            _ => self.size,
        }
    }

    /// The member to which the block in this place belongs.
    fn member_of(&self, place: u32) -> u32 {
        let place = place % self.size;
        self.order.get(place as usize).copied().unwrap_or(place)
    }

    /// Whether a member's own contribution stands in its output.
    pub(super) fn is_in_place(&self, member: u32) -> bool {
        let has_root = self.task.operation.has_root();
        self.task.in_place
            && self.task.operation != Operation::AllToAll
            && (!has_root || member == self.task.root)
    }

    /// Whether a member has this block in its input.
    pub(super) fn has_input(&self, member: u32, block: u32) -> bool {
        let brings = match self.task.operation {
            Operation::Barrier | Operation::Broadcast => false,
            Operation::Scatter => return member == self.task.root && block < self.numbers(),
            Operation::Gather | Operation::AllGather => {
                block < self.numbers() && self.member_of(block) == member
            }
            Operation::AllToAll => return self.member_of(block / self.size) == member,
            _ => block < self.numbers(),
        };
        brings && !self.is_in_place(member)
    }

    /// Whether a member has room for this block in its output.
    pub(super) fn has_output(&self, member: u32, block: u32) -> bool {
        let (is_root, known) = (member == self.task.root, block < self.numbers());
        match self.task.operation {
            Operation::Barrier => false,
            Operation::Gather | Operation::Reduce => is_root && known,
            Operation::Scatter | Operation::AllToAll => known && self.member_of(block) == member,
            Operation::ReduceScatter => {
                known && (self.task.in_place || self.member_of(block) == member)
            }
            _ => known,
        }
    }

    /// Whether this block of its output holds a member's own data at the beginning.
    pub(super) fn output_is_own(&self, member: u32, block: u32) -> bool {
        match self.task.operation {
            Operation::Broadcast => member == self.task.root,
            Operation::Gather | Operation::Scatter | Operation::AllGather => {
                self.member_of(block) == member && self.is_in_place(member)
            }
            _ => self.is_in_place(member),
        }
    }

    /// Returns the content that a block of a member's output must have in the end; none if it does not matter.
    pub(super) fn wanted(&self, member: u32, block: u32) -> Option<Wanted> {
        let (root, size) = (self.task.root, self.size);
        if !self.has_output(member, block) {
            return None;
        }
        let combined = |members| Some(Wanted::Combined { members });
        match self.task.operation {
            Operation::Barrier => None,
            Operation::Broadcast | Operation::Scatter => Some(Wanted::Of(root)),
            Operation::Gather | Operation::AllGather => Some(Wanted::Of(self.member_of(block))),
            Operation::AllToAll => Some(Wanted::Of(self.member_of(block / size))),
            Operation::Reduce | Operation::AllReduce => combined(size),
            Operation::ReduceScatter if self.member_of(block) == member => combined(size),
            Operation::ReduceScatter => None,
            Operation::Scan => combined(member + 1),
            Operation::ExclusiveScan if member > 0 => combined(member),
            Operation::ExclusiveScan => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(operation: Operation, in_place: bool) -> Shape {
        let task = Task { in_place, root: 1, ..Task::new(operation) };
        Shape { task, size: 3, segments: 1 + u32::from(operation.has_segments()), order: [].into() }
    }

    #[test]
    fn blocks_belong_to_members_in_their_order_segment_by_segment() {
        let gather = shape(Operation::Gather, false);
        let turned = Shape { segments: 2, order: [0, 2, 1].into(), ..gather };
        let own = |member| {
            (0..turned.numbers())
                .filter(|&block| turned.has_input(member, block))
                .collect::<Vec<_>>()
        };
        assert_eq!([0, 1, 2].map(own), [[0, 3], [2, 5], [1, 4]]);
        assert_eq!(turned.wanted(1, 4), Some(Wanted::Of(2)));
    }

    #[test]
    fn only_the_root_of_a_gather_in_place_brings_nothing() {
        let gather = shape(Operation::Gather, true);
        assert_eq!([0, 1, 2].map(|member| gather.has_input(member, member)), [true, false, true]);
        assert!(gather.output_is_own(1, 1) && !gather.output_is_own(1, 0));
        assert_eq!(gather.wanted(1, 2), Some(Wanted::Of(2)));
        assert_eq!(gather.wanted(0, 0), None);
    }

    #[test]
    fn rows_go_out_and_columns_come_in() {
        let all_to_all = shape(Operation::AllToAll, false);
        assert!(all_to_all.has_input(1, 5) && !all_to_all.has_input(1, 6));
        assert_eq!(all_to_all.wanted(1, 7), Some(Wanted::Of(2)));
        assert_eq!(all_to_all.wanted(0, 7), None);
    }

    #[test]
    fn a_scan_stops_at_its_member() {
        let scan = shape(Operation::ExclusiveScan, false);
        assert_eq!((scan.wanted(0, 1), scan.numbers()), (None, 2));
        assert_eq!(scan.wanted(2, 1), Some(Wanted::Combined { members: 2 }));
    }
}
