//! The length of the plan of one member of a large group: where the architecture needs no more, as many steps, cells
//! and dependencies as there are members, times a small number.

use landeck_collectives::architecture::{Butterfly, Circulant, Flat, Hierarchy, Knomial};
use landeck_collectives::{
    Action, BoardStyle, Group, GroupError, Operation, Order, Plan, Task, Way, plan_of,
};

const SIZE: u32 = 1_000;
/// A member that is no leader, no root and no corner.
const MEMBER: u32 = 437;

/// Steps, their cells, and what they wait for.
fn lengths(plan: &Plan) -> (usize, usize, usize) {
    let cells = |action: &Action| match action {
        Action::Send { cells, .. } | Action::Receive { cells, .. } => cells.len(),
        _ => 1,
    };
    let count = |of: &dyn Fn(&landeck_collectives::Step) -> usize| plan.steps.iter().map(of).sum();
    (plan.steps.len(), count(&|step| cells(&step.action)), count(&|step| step.after.len()))
}

#[test]
fn plans_of_a_large_group_are_as_long_as_their_data_are_many() -> Result<(), GroupError> {
    use Operation::{AllToAll, ReduceScatter};
    let board = || Way::Board(BoardStyle::Each);
    let cases: [(Operation, Way, usize); 9] = [
        (AllToAll, board(), 1),
        (ReduceScatter, board(), 1),
        (AllToAll, Flat.into(), 2),
        (AllToAll, Knomial::BINOMIAL.into(), 2),
        (ReduceScatter, Flat.into(), 1),
        (ReduceScatter, Hierarchy::BINARY.into(), 1),
        // In the canonical order a member passes on up to ten values of each block.
        (ReduceScatter, Butterfly.into(), 24),
        (ReduceScatter, Circulant.into(), 12),
        // What a member relays there: half of all blocks in each of ten rounds.
        (AllToAll, Butterfly.into(), 20),
    ];
    let group = Group::whole(SIZE)?;
    for (operation, way, per_member) in cases {
        let orders = [Order::Free, Order::Canonical];
        for order in orders.into_iter().take(if operation == AllToAll { 1 } else { 2 }) {
            let task = Task { order, ..Task::new(operation) };
            let (steps, cells, after) = lengths(&plan_of(&task, &way, &group, MEMBER));
            let most = per_member * SIZE as usize + 20;
            println!(
                "{operation} by {way}, {order:?}: {steps} steps, {cells} cells, {after} waits"
            );
            assert!(steps.max(cells).max(after) <= most, "{operation} by {way}: more than {most}");
        }
    }
    Ok(())
}
