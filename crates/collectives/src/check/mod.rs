//! Proving plans: that together they do what their task says, and nothing else.
//!
//! The checker executes the finished plans of all members with [`crate::Execution`], independently of their derivation.
//! Blocks hold symbols instead of data: their contributors, and how they were combined. It proves that
//!
//! - every member has what it should have in the end: the right data, each contribution combined
//!   once, in canonical and late order as one exact expression;
//! - in a barrier no member leaves before the word of every member has reached it;
//! - no member receives anything that it has had before;
//! - the two ends of each message agree, and messages between two members cannot be confused;
//! - it ends, whether a send completes at once or only when its message has been received, even when
//!   every member takes its sends, and its receives, one after the other;
//! - no two steps that may be in flight at once are at one block, but for reading;
//! - nothing is read that is not there; inputs are not written; rooms are declared;
//! - at the board each member deposits once, or as often as all members of its host, and takes only what is offered;
//! - a member that tells where its blocks lie neither leaves nor writes them while others read them.
//!
//! The resulting [`Facts`] are compared with the tests' own derivation, which counts the same without making plans.

mod fault;
mod form;
mod grid;
mod messages;
mod port;
mod run;
mod shape;
mod told;
mod values;

pub use fault::{PlanFault, Wait};

use grid::Grid;
use messages::Messages;
use run::Run;
use shape::Shape;

use crate::derive::Task;
use crate::execute::Walk;
use crate::plan::Plan;

/// The cost of plans in numbers that do not depend on a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Messages of all members.
    pub messages: u64,
    /// Blocks in all messages.
    pub blocks: u64,
    /// Messages that each member sends.
    pub sent: Vec<u32>,
    /// Steps when a message takes one, a member sends one and receives one message at a time, in
    /// the order of its plan, and nothing else takes time.
    pub steps: u32,
}

/// Proves the plans of all members of a group.
///
/// # Errors
/// The first [`PlanFault`] found.
pub fn prove(plans: &[Plan], task: &Task) -> Result<Facts, PlanFault> {
    let shape = shape(plans, task)?;
    let grids: Vec<Grid> = plans.iter().map(|plan| Grid::new(&shape, plan)).collect();
    let boards = boards(plans)?;
    for (plan, grid) in plans.iter().zip(&grids) {
        form::check(&shape, plan, grid)?;
    }
    told::check(plans)?;
    let messages = Messages::of(plans)?;
    let walks: Vec<_> = plans.iter().map(|plan| Walk::new(plan.clone())).collect();
    let mut run = Run::new(&shape, (plans, &boards), &grids, &walks, &messages);
    run.finish()?;
    let steps = port::steps(plans, &messages)?;
    let sent = plans.iter().map(|plan| plan.messages_sent() as u32).collect();
    Ok(Facts { messages: messages.count(), blocks: run.blocks_moved, sent, steps })
}

/// The members at each board. All of one board say the same of it, and go there equally often.
fn boards(plans: &[Plan]) -> Result<Vec<Vec<u32>>, PlanFault> {
    let everybody: Vec<u32> = (0..plans.len() as u32).collect();
    let mut boards: Vec<Vec<u32>> = Vec::new();
    for plan in plans {
        let board = if plan.board.is_empty() { &everybody } else { &plan.board };
        let agrees = |&member: &u32| {
            plans.get(member as usize).is_some_and(|other| {
                other.board == plan.board
                    && (plan.board.is_empty() || other.visits() == plan.visits())
            })
        };
        if !board.contains(&plan.member) || !board.is_sorted() || !board.iter().all(agrees) {
            return Err(PlanFault::OtherBoard { member: plan.member });
        }
        if board[0] == plan.member {
            boards.push(board.clone());
        }
    }
    Ok(boards)
}

fn shape(plans: &[Plan], task: &Task) -> Result<Shape, PlanFault> {
    let size = plans.len();
    let segments = plans.first().map_or(1, |plan| plan.segments);
    let order = plans.first().map_or(&[][..], |plan| &plan.order);
    for (place, plan) in plans.iter().enumerate() {
        let is_of_task = plan.operation == task.operation
            && plan.root == task.root
            && plan.segments == segments
            && plan.order == order
            && plan.size as usize == size
            && plan.member as usize == place;
        if !is_of_task {
            return Err(PlanFault::OtherPlan { place, size });
        }
    }
    Ok(Shape { task: *task, size: size as u32, segments, order: order.into() })
}
