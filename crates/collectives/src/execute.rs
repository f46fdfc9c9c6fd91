//! Walking a plan: a machine that says which steps may begin, and is told which are over.
//!
//! It does nothing itself: whoever drives it sends, receives, copies and combines. A blocking
//! call, a request that goes on in the background, and a simulation drive the same machine.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::plan::{Action, Plan};

/// A plan, with what follows from each step.
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

/// One execution of a plan.
#[derive(Debug)]
pub struct Execution {
    walk: Arc<Walk>,
    waits: Vec<u32>,
    ready: VecDeque<u32>,
    left: u32,
}

impl Execution {
    /// An execution that has not begun.
    pub fn new(walk: Arc<Walk>) -> Self {
        let waits = walk.waits.clone();
        let ready = (0..).zip(&waits).filter_map(|(step, &waits)| (waits == 0).then_some(step));
        Self { ready: ready.collect(), left: waits.len() as u32, waits, walk }
    }

    /// Begins the next step that may begin. None when all such have begun: then some must be over
    /// first, or all are.
    pub fn begin(&mut self) -> Option<u32> {
        let step = self.ready.pop_front()?;
        for &next in &self.walk.next[step as usize] {
            self.waits[next as usize] -= 1;
            if self.waits[next as usize] == 0 {
                self.ready.push_back(next);
            }
        }
        Some(step)
    }

    /// What a step does.
    pub fn action(&self, step: u32) -> &Action {
        &self.walk.plan.steps[step as usize].action
    }

    /// A step that had begun is over.
    pub fn end(&mut self, step: u32) {
        self.left -= 1;
        for &follower in &self.walk.followers[step as usize] {
            self.waits[follower as usize] -= 1;
            if self.waits[follower as usize] == 0 {
                self.ready.push_back(follower);
            }
        }
    }

    /// Whether all steps are over.
    pub fn is_over(&self) -> bool {
        self.left == 0
    }

    /// The plan.
    pub fn walk(&self) -> &Arc<Walk> {
        &self.walk
    }
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
