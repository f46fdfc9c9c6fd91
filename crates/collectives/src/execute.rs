//! The execution of a plan: a state machine that yields the steps that may begin and is told which are complete.
//!
//! It performs no step itself: its driver sends, receives, copies and combines. A blocking call, a request that goes on
//! in the background, and a simulation drive the same machine.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::plan::{Action, Plan};

/// The order of the steps of a plan. An [`Execution`] needs nothing else, so plans in another form have the same
/// executor.
pub trait Precedence {
    /// The number of steps. Each has a larger number than those that it waits for.
    fn steps(&self) -> u32;

    /// The number of beginnings and ends of other steps for which a step waits.
    fn waits(&self, step: u32) -> u32;

    /// The steps that wait for the end of this one, in rising order.
    fn followers(&self, step: u32) -> impl Iterator<Item = u32>;

    /// The steps that wait for the beginning of this one, in rising order.
    fn next(&self, step: u32) -> impl Iterator<Item = u32>;
}

/// A plan with the successors of each step.
#[derive(Debug)]
pub struct Walk {
    plan: Plan,
    /// Steps that wait for the end of each step.
    followers: Vec<Vec<u32>>,
    /// Steps that wait for the beginning of each step.
    next: Vec<Vec<u32>>,
    waits: Vec<u32>,
}

impl Walk {
    /// Prepares a plan for any number of executions.
    pub fn new(plan: Plan) -> Arc<Self> {
        let count = plan.steps.len();
        let mut walk = Self {
            plan,
            followers: vec![Vec::new(); count],
            next: vec![Vec::new(); count],
            waits: vec![0; count],
        };
        for (number, step) in (0..).zip(&walk.plan.steps) {
            for &before in &step.after {
                walk.followers[before as usize].push(number);
            }
            if let Some(before) = step.behind {
                walk.next[before as usize].push(number);
            }
            walk.waits[number as usize] =
                step.after.len() as u32 + u32::from(step.behind.is_some());
        }
        Arc::new(walk)
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }
}

impl Precedence for Arc<Walk> {
    fn steps(&self) -> u32 {
        self.waits.len() as u32
    }

    fn waits(&self, step: u32) -> u32 {
        self.waits[step as usize]
    }

    fn followers(&self, step: u32) -> impl Iterator<Item = u32> {
        self.followers[step as usize].iter().copied()
    }

    fn next(&self, step: u32) -> impl Iterator<Item = u32> {
        self.next[step as usize].iter().copied()
    }
}

/// One execution of a plan. It keeps state for the steps in progress, none for complete or future ones.
#[derive(Debug)]
pub struct Execution<W = Arc<Walk>> {
    walk: W,
    /// Steps from here on may wait for nothing, and then begin before those that waited.
    unseen: u32,
    /// The number of unsatisfied dependencies of each step that has some satisfied.
    waits: BTreeMap<u32, u32>,
    ready: VecDeque<u32>,
    left: u32,
}

impl<W: Precedence> Execution<W> {
    /// An execution that has not begun.
    pub fn new(walk: W) -> Self {
        let left = walk.steps();
        Self { walk, unseen: 0, waits: BTreeMap::new(), ready: VecDeque::new(), left }
    }

    /// Begins the next ready step. None if no step is ready: then a step must complete first, or all have.
    pub fn begin(&mut self) -> Option<u32> {
        let step = self.free().or_else(|| self.ready.pop_front())?;
        for next in self.walk.next(step) {
            met(&self.walk, &mut self.waits, &mut self.ready, next);
        }
        Some(step)
    }

    /// The next step that waits for nothing.
    fn free(&mut self) -> Option<u32> {
        let mut unseen = self.unseen..self.walk.steps();
        let free = unseen.find(|&step| self.walk.waits(step) == 0);
        self.unseen = unseen.start;
        free
    }

    /// Completes a step that had begun.
    pub fn end(&mut self, step: u32) {
        self.left -= 1;
        for follower in self.walk.followers(step) {
            met(&self.walk, &mut self.waits, &mut self.ready, follower);
        }
    }

    /// Whether all steps are complete.
    pub fn is_over(&self) -> bool {
        self.left == 0
    }

    /// The number of steps with retained state: ready ones that had dependencies, and those with some satisfied.
    pub fn open(&self) -> usize {
        self.waits.len() + self.ready.len()
    }

    /// The plan that is executed, in its walkable form.
    pub fn walk(&self) -> &W {
        &self.walk
    }
}

impl Execution {
    /// The action of a step.
    pub fn action(&self, step: u32) -> &Action {
        &self.walk.plan.steps[step as usize].action
    }
}

/// Counts one satisfied dependency of a step.
fn met<W: Precedence>(
    walk: &W,
    waits: &mut BTreeMap<u32, u32>,
    ready: &mut VecDeque<u32>,
    step: u32,
) {
    let all = walk.waits(step);
    if all > 1 {
        match waits.entry(step) {
            Entry::Vacant(entry) => {
                entry.insert(all - 1);
                return;
            }
            Entry::Occupied(mut entry) => {
                *entry.get_mut() -= 1;
                if *entry.get() > 0 {
                    return;
                }
                entry.remove();
            }
        }
    }
    ready.push_back(step);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::Operation;
    use crate::plan::{Cells, Store};
    use crate::program::Program;

    #[test]
    fn steps_begin_when_what_they_wait_for_is_over() {
        let output = Cells::new(Store::Output, 0, 1);
        let mut program = Program::new(Operation::Broadcast, 0, 1, 3, Some(1));
        program.message(0, 1, vec![output], vec![output]);
        program.message(1, 2, vec![output], vec![output]);
        let mut execution = Execution::new(Walk::new(program.finish().remove(0)));
        assert_eq!((execution.begin(), execution.begin()), (Some(0), None));
        execution.end(0);
        assert!(!execution.is_over());
        assert_eq!(execution.begin(), Some(1));
        assert!(matches!(execution.action(1), Action::Send { to: 2, .. }));
        execution.end(1);
        assert!(execution.is_over());
    }

    #[test]
    fn a_message_begins_behind_the_one_before_it() {
        let mut program = Program::new(Operation::Broadcast, 0, 2, 2, Some(1));
        let cells = |block| vec![Cells::new(Store::Output, block, 1)];
        program.message(0, 1, cells(0), cells(0));
        program.message(0, 1, cells(1), cells(1));
        let mut execution = Execution::new(Walk::new(program.finish().remove(0)));
        assert_eq!(
            (execution.begin(), execution.begin(), execution.begin()),
            (Some(0), Some(1), None)
        );
    }
}
