//! A timeline: the plans of all members executed together, step by step.
//!
//! In a step each member sends one message and receives one, in the order of its plan and as soon as it can; local work
//! takes no time. On the board each member performs one action in a step.

use std::collections::VecDeque;

use crate::execute::{Execution, Walk};
use crate::plan::{Action, Cells, Plan};

/// The events of all members by step. Steps count from 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// The number of steps.
    pub steps: u32,
    /// The messages, in the order of steps.
    pub messages: Vec<DrawnMessage>,
    /// Combinations of data, in the order of steps.
    pub combinations: Vec<DrawnCombination>,
    /// The actions at the board, in the order of steps.
    pub board: Vec<AtBoard>,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrawnMessage {
    /// The step in which it is sent and received.
    pub step: u32,
    /// The sender.
    pub from: u32,
    /// The receiver.
    pub to: u32,
    /// The blocks in it, as the sender has them.
    pub cells: Vec<Cells>,
}

/// A combination of data by a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrawnCombination {
    /// The step after which it happens; 0 before the first.
    pub step: u32,
    /// The member.
    pub member: u32,
}

/// An action of a member at the board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtBoard {
    /// The step.
    pub step: u32,
    /// The member.
    pub member: u32,
    /// The action.
    pub action: Action,
}

impl Timeline {
    /// Returns the timeline of all these members executing their plans.
    ///
    /// # Panics
    /// When the plans do not belong together.
    pub fn of(plans: &[Plan]) -> Self {
        let mut walkers: Vec<Walker> = plans.iter().map(Walker::new).collect();
        let boards = plans.iter().map(|plan| plan.board.clone()).collect();
        let reads = |plan: &Plan| plan.steps.iter().filter(|step| may_read(&step.action)).count();
        let to_read = plans.iter().map(reads).collect();
        let deposits = vec![0; plans.len()];
        let mut board = Board { deposits, boards, to_read, ..Board::default() };
        let mut timeline = Self::default();
        loop {
            for (member, walker) in (0..).zip(&mut walkers) {
                let combinations = walker.begin();
                let done = DrawnCombination { step: timeline.steps, member };
                timeline.combinations.extend(vec![done; combinations]);
            }
            let over = walkers.iter().all(|walker| walker.execution.is_over());
            if over {
                return timeline;
            }
            let step = timeline.steps + 1;
            let happened =
                timeline.send(step, &mut walkers) + timeline.look(&mut walkers, &mut board);
            assert!(happened > 0, "these plans do not belong together: nobody can go on");
            timeline.steps = step;
        }
    }

    /// The messages that can be sent and received now.
    fn send(&mut self, step: u32, walkers: &mut [Walker]) -> usize {
        let is_expected = |from: u32, to: u32| walkers[to as usize].next_sender() == Some(from);
        let next = (0..).zip(walkers.iter()).filter_map(|(from, walker)| {
            let to = walker.next_receiver()?;
            is_expected(from, to).then_some((from, to))
        });
        let sent: Vec<(u32, u32)> = next.collect();
        for &(from, to) in &sent {
            let sender = &mut walkers[from as usize];
            if let Some((send, _)) = sender.sends.pop_front() {
                if let Action::Send { cells, .. } = sender.execution.action(send) {
                    self.messages.push(DrawnMessage { step, from, to, cells: cells.clone() });
                }
                sender.execution.end(send);
            }
            let receiver = &mut walkers[to as usize];
            if let Some((receive, _)) = receiver.receives.pop_front() {
                receiver.execution.end(receive);
            }
        }
        sent.len()
    }

    /// Performs one action at the board for each member whose action need not wait.
    fn look(&mut self, walkers: &mut [Walker], board: &mut Board) -> usize {
        let step = self.steps + 1;
        let before = board.clone();
        let mut done = 0;
        for (member, walker) in (0..).zip(walkers) {
            let Some(&first) = walker.at_board.front() else { continue };
            let action = walker.execution.action(first).clone();
            if before.allows(member, &action) {
                board.note(member, &action);
                walker.at_board.pop_front();
                walker.execution.end(first);
                self.board.push(AtBoard { step, member, action });
                done += 1;
            }
        }
        done
    }
}

/// One member.
struct Walker {
    execution: Execution,
    /// Its incomplete sends and their receivers, in the order of its plan.
    sends: VecDeque<(u32, u32)>,
    /// Its incomplete receives and their senders, in the order of its plan.
    receives: VecDeque<(u32, u32)>,
    has_begun: Vec<bool>,
    at_board: VecDeque<u32>,
}

impl Walker {
    fn new(plan: &Plan) -> Self {
        let steps = || (0..).zip(&plan.steps);
        let sends = steps().filter_map(|(number, step)| match step.action {
            Action::Send { to, .. } => Some((number, to)),
            _ => None,
        });
        let receives = steps().filter_map(|(number, step)| match step.action {
            Action::Receive { from, .. } => Some((number, from)),
            _ => None,
        });
        Self {
            execution: Execution::new(Walk::new(plan.clone())),
            sends: sends.collect(),
            receives: receives.collect(),
            has_begun: vec![false; plan.steps.len()],
            at_board: VecDeque::new(),
        }
    }

    /// Begins all ready steps and performs the local ones; returns the number of combinations.
    fn begin(&mut self) -> usize {
        let mut combinations = 0;
        while let Some(step) = self.execution.begin() {
            self.has_begun[step as usize] = true;
            match self.execution.action(step) {
                Action::Send { .. } | Action::Receive { .. } => {}
                Action::Copy { .. } => self.execution.end(step),
                Action::Combine { .. } => {
                    combinations += 1;
                    self.execution.end(step);
                }
                _ => self.at_board.push_back(step),
            }
        }
        combinations
    }

    /// The member to which it can send now.
    fn next_receiver(&self) -> Option<u32> {
        self.next_of(&self.sends)
    }

    /// The member from which it can receive now.
    fn next_sender(&self) -> Option<u32> {
        self.next_of(&self.receives)
    }

    fn next_of(&self, messages: &VecDeque<(u32, u32)>) -> Option<u32> {
        let &(step, other) = messages.front()?;
        self.has_begun[step as usize].then_some(other)
    }
}

/// Whether a member may read others' memory with an action.
const fn may_read(action: &Action) -> bool {
    matches!(action, Action::Read { .. } | Action::CombineDeposits { .. } | Action::Resolve { .. })
}

/// The actions of all members at the board so far.
#[derive(Clone, Default)]
struct Board {
    /// By member: the members that share its board; all where there are none.
    boards: Vec<Vec<u32>>,
    /// Deposits of each member: its visits to the board.
    deposits: Vec<u32>,
    /// The blocks that each member still reads in others' memory.
    to_read: Vec<usize>,
    resolved: Vec<u32>,
    together: usize,
}

impl Board {
    fn allows(&self, member: u32, action: &Action) -> bool {
        // The others have come if they have done so in this visit.
        let visit = self.deposits[member as usize];
        let has_come = |other: u32| self.deposits[other as usize] >= visit.max(1);
        let everybody: Vec<u32> = (0..self.deposits.len() as u32).collect();
        let board = &self.boards[member as usize];
        let board = if board.is_empty() { &everybody } else { board };
        let all = |members: usize| board.iter().take(members).all(|&other| has_come(other));
        match action {
            Action::Take { from, resolved: true, .. }
            | Action::Read { from, resolved: true, .. } => self.resolved.contains(from),
            Action::Take { from, .. } | Action::Read { from, .. } => has_come(*from),
            Action::AwaitReaders { readers } => {
                let others = everybody.iter().filter(|&&other| other != member);
                let mut readers = others.filter(|&&other| readers.contains(other));
                readers.all(|&reader| self.to_read[reader as usize] == 0)
            }
            Action::CombineDeposits { members, .. } => all(*members as usize),
            Action::Await | Action::Resolve { .. } | Action::Together { .. } => {
                all(self.deposits.len())
            }
            Action::TakeResult { .. } => self.together == self.deposits.len(),
            _ => true,
        }
    }

    fn note(&mut self, member: u32, action: &Action) {
        self.to_read[member as usize] -= usize::from(may_read(action));
        match action {
            Action::Deposit { .. } | Action::Tell { .. } => self.deposits[member as usize] += 1,
            Action::Resolve { .. } => self.resolved.push(member),
            Action::Together { .. } => self.together += 1,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::architecture::{Butterfly, Flat, Ring};
    use crate::derive::{BoardStyle, Task, Way, plans};
    use crate::group::Group;
    use crate::operation::Operation;
    use crate::plan::{Readers, Store};

    fn timeline(operation: Operation, way: Way, size: u32) -> Timeline {
        Timeline::of(&plans(&Task::new(operation), &way, &Group::whole(size).unwrap()))
    }

    #[test]
    fn one_message_in_and_one_out_in_a_step() {
        let gather = timeline(Operation::Gather, Way::by(Flat), 5);
        assert_eq!((gather.steps, gather.messages.len()), (4, 4));
        let ring = timeline(Operation::AllGather, Way::by(Ring), 6);
        assert_eq!((ring.steps, ring.messages.len()), (5, 30));
        for step in 1..=5 {
            let in_step = || ring.messages.iter().filter(move |message| message.step == step);
            let mut receivers: Vec<u32> = in_step().map(|message| message.to).collect();
            receivers.sort_unstable();
            assert!(receivers.into_iter().eq(0..6));
        }
    }

    #[test]
    fn combinations_follow_what_they_combine() {
        let butterfly = timeline(Operation::AllReduce, Way::by(Butterfly), 4);
        let steps: Vec<u32> = butterfly.combinations.iter().map(|done| done.step).collect();
        assert_eq!(steps, [1, 1, 1, 1, 2, 2, 2, 2]);
    }

    #[test]
    fn segments_follow_each_other() {
        let task = Task { segments: 4, ..Task::new(Operation::Broadcast) };
        let plans = plans(&task, &Way::by(Ring), &Group::whole(5).unwrap());
        assert_eq!(Timeline::of(&plans).steps, 5 - 2 + 4);
    }

    #[test]
    fn at_the_board_everybody_does_one_thing_in_a_step() {
        for (style, steps) in
            [(BoardStyle::Each, 2), (BoardStyle::Divided, 2 + 2), (BoardStyle::Together, 3)]
        {
            let board = timeline(Operation::AllReduce, Way::Board(style), 3);
            assert!(board.board[..3].iter().all(|at| matches!(at.action, Action::Deposit { .. })));
            assert_eq!((board.steps, board.messages.len()), (steps, 0), "{style}");
        }
        let barrier = timeline(Operation::Barrier, Way::Board(BoardStyle::Each), 3);
        assert_eq!((barrier.steps, barrier.board.len()), (2, 6));
    }

    #[test]
    fn at_the_board_nobody_takes_what_is_not_there() {
        let cells = Cells::new(Store::Output, 0, 1);
        let take = |from, resolved| Action::Take { from, deposited: cells, into: cells, resolved };
        let boards = vec![Vec::new(); 3];
        let deposits = vec![1, 0, 1];
        let to_read = vec![1, 0, 0];
        let board = Board { boards, deposits, to_read, resolved: vec![2], together: 2 };
        assert!(board.allows(0, &take(0, false)) && board.allows(0, &take(2, true)));
        assert!(!board.allows(0, &take(1, false)) && !board.allows(0, &take(0, true)));
        let await_readers = |readers| Action::AwaitReaders { readers };
        assert!(board.allows(2, &await_readers(Readers::One(1))));
        assert!(!board.allows(2, &await_readers(Readers::Others)));
        assert!(board.allows(0, &await_readers(Readers::Others)), "it has read itself");
        let combine = |members| Action::CombineDeposits { members, deposited: cells, into: cells };
        assert!(board.allows(0, &combine(1)) && !board.allows(0, &combine(2)));
        assert!(!board.allows(0, &Action::Await));
        assert!(!board.allows(0, &Action::TakeResult { into: cells }));
        let all = Board { deposits: vec![1, 1, 1], together: 3, ..board };
        assert!(
            all.allows(0, &Action::Await) && all.allows(0, &Action::TakeResult { into: cells })
        );
    }
}
