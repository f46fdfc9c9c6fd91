//! How members come to an operation at the board.

use landeck_collectives::{Action, Operation, Plan};

/// How members come to an operation: all find the same from the plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Protocol {
    /// The last to come knows it by a counter, and the commit word says how the operation ends.
    /// With few members everybody looks at everybody's word instead.
    pub(super) counted: bool,
    /// Members tell where their data lie, and read or combine those of others there.
    pub(super) tells: bool,
    /// Each member makes a part of the result for all.
    pub(super) resolves: bool,
    /// Even short data are deposited in a block: a result is to take their place.
    pub(super) in_block: bool,
    /// The deposit is announced when it is complete, not piece by piece: all members deposit before they take, or a member
    /// that takes shares the processor of the one that deposits. Otherwise others copy pieces out while this member copies
    /// the next ones in.
    pub(super) is_whole: bool,
    /// One of several chunks: the place that was used last is used again.
    pub(super) is_chunk: bool,
    /// One other member takes the deposit, and nobody else: it may lie in a cell.
    pub(super) is_handed_over: bool,
    /// One other member takes the deposit and makes a part of the result of it, which comes back in the cell: each
    /// writes only where it has just read.
    pub(super) comes_back: bool,
}

impl Protocol {
    /// The protocol of an operation whose data fit in a line.
    pub(crate) fn inline(counted: bool) -> Self {
        Self { counted, ..Self::default() }
    }

    /// The protocol of an operation without a plan, from its style and the number of members.
    #[inline]
    pub(crate) fn of_inline(is_together: bool, awaits: bool, size: u32, is_crowded: bool) -> Self {
        Self::inline(is_together || (awaits && size > few(is_crowded)))
    }

    /// Whether those who come are counted.
    pub(crate) fn is_counted(self) -> bool {
        self.counted
    }

    /// The protocol of a plan of an operation.
    pub(crate) fn of(operation: Operation, plan: &Plan, is_crowded: bool) -> Self {
        let any = |what: fn(&Action) -> bool| plan.steps.iter().any(|step| what(&step.action));
        let tells = plan.tells();
        let together = any(|action| matches!(action, Action::Together { .. }));
        let awaits = any(|action| matches!(action, Action::Await));
        let resolves = any(|action| matches!(action, Action::Resolve { .. }));
        Self {
            tells,
            resolves,
            counted: together || (awaits && plan.size > few(is_crowded)),
            in_block: tells || resolves,
            is_whole: is_crowded
                || any(|action| {
                    matches!(action, Action::Take { .. } | Action::CombineDeposits { .. })
                }),
            is_chunk: false,
            is_handed_over: !tells
                && is_handed_over(
                    operation,
                    plan.size,
                    any(|action| matches!(action, Action::CombineDeposits { .. })),
                ),
            comes_back: !tells && plan.size == 2 && resolves,
        }
    }

    /// The protocol of a plan that has messages between its steps at the board. The members of a host have different steps
    /// in it, so nobody is counted: all look at each other's words.
    pub(crate) fn of_mixed(plan: &Plan, is_crowded: bool) -> Self {
        let alone = Self::of(plan.operation, plan, is_crowded);
        Self { counted: false, is_handed_over: false, comes_back: false, ..alone }
    }

    /// The protocol of one of several chunks, or of the only one.
    pub(crate) fn in_chunks(self, is_chunk: bool) -> Self {
        Self { is_chunk, ..self }
    }

    /// The protocol of a chunk in which one other member takes each deposit.
    pub(crate) fn handed_over(self) -> Self {
        Self { is_handed_over: true, ..self }
    }
}

/// Whether what each member lays down is taken by one other, all of it; by combining it, as may be.
fn is_handed_over(operation: Operation, size: u32, combines: bool) -> bool {
    use Operation::{AllGather, AllReduce, AllToAll, Broadcast, Gather, Reduce, ReduceScatter};
    match operation {
        Gather | Reduce => true,
        Broadcast | Operation::Scatter | AllGather | AllToAll | ReduceScatter => size == 2,
        AllReduce => size == 2 && combines,
        _ => false,
    }
}

/// So few members look at each other's words.
#[inline]
const fn few(is_crowded: bool) -> u32 {
    if is_crowded { 2 } else { 4 }
}
