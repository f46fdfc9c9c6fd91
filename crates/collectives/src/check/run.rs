//! The execution of all plans together, with symbolic contents.
//!
//! The order of the members makes no difference: no two steps that may be in flight at once conflict on a block, and
//! the messages of two members are matched in a fixed order. So one run shows the contents of all. Here a send
//! completes at once; [`super::port`] shows that the plans also end if a send completes only with its receive.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::fault::{PlanFault, Wait};
use super::grid::Grid;
use super::messages::Messages;
use super::shape::{Shape, Wanted};
use super::values::{NOTHING, Seen, Value, Values};
use crate::execute::{Execution, Walk};
use crate::operation::Operation;
use crate::partial::Order;
use crate::plan::{Action, Cells, Plan, Store};

mod board;

use board::Board;

/// All members at work.
pub(super) struct Run<'a> {
    pub(super) shape: &'a Shape,
    pub(super) plans: &'a [Plan],
    pub(super) values: Values,
    boards: Vec<Board>,
    grids: &'a [Grid],
    messages: &'a Messages,
    members: Vec<Member>,
    /// In late order, the only combined values that may travel: the results.
    results: Option<BTreeSet<Value>>,
    /// The data of the first members combined, by their number and the block.
    complete: BTreeMap<(u32, u32), Value>,
    /// Blocks that have been received.
    pub(super) blocks_moved: u64,
    /// The members that may go on.
    busy: Vec<u32>,
}

struct Member {
    execution: Execution,
    cells: Vec<Value>,
    /// The contents that it has had.
    seen: Seen,
    /// The steps in flight.
    open: Vec<u32>,
    /// The message that has arrived for each receive, by step.
    arrived: Vec<Option<CheckedMessage>>,
    /// In a barrier, by step: the members whose word has surely reached this one when the step begins, and when it
    /// completes.
    heard: Vec<Heard>,
}

struct CheckedMessage {
    values: Vec<Value>,
    heard: Vec<bool>,
}

#[derive(Clone, Default)]
struct Heard {
    at_begin: Vec<bool>,
    by_it: Vec<bool>,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        shape: &'a Shape,
        (plans, at_boards): (&'a [Plan], &[Vec<u32>]),
        grids: &'a [Grid],
        walks: &[Arc<Walk>],
        messages: &'a Messages,
    ) -> Self {
        let size = plans.len() as u32;
        let is_free = shape.task.order == Order::Free;
        let mut run = Self {
            shape,
            plans,
            values: Values::new(size, shape.numbers(), is_free),
            boards: Board::of_all(plans, at_boards),
            grids,
            messages,
            members: Vec::new(),
            results: None,
            complete: BTreeMap::new(),
            blocks_moved: 0,
            busy: (0..size).rev().collect(),
        };
        run.members = (0..).zip(walks).map(|(member, walk)| run.member(member, walk)).collect();
        run
    }

    /// Runs until no step can go on. Then all steps must be complete, and every result in its place.
    pub(super) fn finish(&mut self) -> Result<(), PlanFault> {
        self.note_results();
        loop {
            while let Some(member) = self.busy.pop() {
                self.go_on(member)?;
            }
            if !self.board_goes_on()? {
                break;
            }
        }
        let is_over = |member: &Member| member.execution.is_over();
        if !self.members.iter().all(is_over) {
            return Err(PlanFault::Deadlock(self.waits()));
        }
        (0..self.shape.size).try_for_each(|member| self.result(member))
    }

    fn member(&self, member: u32, walk: &Arc<Walk>) -> Member {
        let count = walk.plan().steps.len();
        let grid = &self.grids[member as usize];
        let mut cells = vec![NOTHING; grid.len()];
        let mut seen = Seen::default();
        for block in 0..self.shape.numbers() {
            let data = self.values.of(member, block);
            let input = Some(Store::Input).filter(|_| self.shape.has_input(member, block));
            let output = Some(Store::Output).filter(|_| self.shape.output_is_own(member, block));
            for store in input.into_iter().chain(output) {
                if let Some(place) = grid.place(store, block) {
                    cells[place] = data;
                    seen.add(data);
                }
            }
        }
        let heard = if self.is_barrier() { count } else { 0 };
        Member {
            execution: Execution::new(walk.clone()),
            cells,
            seen,
            open: Vec::new(),
            arrived: (0..count).map(|_| None).collect(),
            heard: vec![Heard::default(); heard],
        }
    }

    fn is_barrier(&self) -> bool {
        self.shape.task.operation == Operation::Barrier
    }

    fn note_results(&mut self) {
        if self.shape.task.order != Order::Late {
            return;
        }
        let mut results = BTreeSet::new();
        for member in 0..self.shape.size {
            for block in 0..self.shape.numbers() {
                results.extend(self.wanted(member, block));
            }
        }
        self.results = Some(results);
    }

    fn go_on(&mut self, member: u32) -> Result<(), PlanFault> {
        while let Some(step) = self.members[member as usize].execution.begin() {
            self.begin(member, step)?;
        }
        Ok(())
    }

    fn begin(&mut self, member: u32, step: u32) -> Result<(), PlanFault> {
        self.members[member as usize].open.push(step);
        self.hear_at_begin(member, step);
        let action = &self.plans[member as usize].steps[step as usize].action;
        match action {
            Action::Send { to, cells } => self.send(member, step, *to, cells),
            Action::Receive { .. } => self.receive(member, step),
            Action::Copy { from, into } => {
                let values = self.read(member, step, *from)?;
                self.write(member, *into, values);
                self.end(member, step);
                Ok(())
            }
            Action::Combine { left, right, into } => {
                let pairs = self.read(member, step, *left)?.into_iter();
                let pairs: Vec<_> = pairs.zip(self.read(member, step, *right)?).collect();
                let mut values = Vec::with_capacity(pairs.len());
                for (left, right) in pairs {
                    values.push(self.combine(member, step, left, right)?);
                }
                self.write(member, *into, values);
                self.end(member, step);
                Ok(())
            }
            _ => self.try_on_board(member, step).map(|_| ()),
        }
    }

    /// Completes a step.
    fn end(&mut self, member: u32, step: u32) {
        let place = &mut self.members[member as usize];
        place.open.retain(|&open| open != step);
        place.execution.end(step);
    }

    fn send(&mut self, from: u32, step: u32, to: u32, cells: &[Cells]) -> Result<(), PlanFault> {
        let mut values = Vec::new();
        for &cells in cells {
            values.extend(self.read(from, step, cells)?);
        }
        if let Some(results) = &self.results {
            let is_early =
                |value: &&Value| !self.values.is_data(**value) && !results.contains(*value);
            if let Some(&value) = values.iter().find(is_early) {
                let value = self.values.text(value);
                return Err(PlanFault::Early { member: from, step, value });
            }
        }
        let heard = self.said(from, step);
        let received_at = self.messages.other_end(from, step);
        self.members[to as usize].arrived[received_at as usize] =
            Some(CheckedMessage { values, heard });
        self.end(from, step);
        if self.members[to as usize].open.contains(&received_at) {
            self.receive(to, received_at)?;
            self.busy.push(to);
        }
        Ok(())
    }

    /// Completes a receive that has begun, if its message has arrived.
    fn receive(&mut self, to: u32, step: u32) -> Result<(), PlanFault> {
        let Some(message) = self.members[to as usize].arrived[step as usize].take() else {
            return Ok(());
        };
        let Action::Receive { cells, .. } = &self.plans[to as usize].steps[step as usize].action
        else {
            return Ok(());
        };
        self.blocks_moved += message.values.len() as u64;
        for &value in &message.values {
            if !self.members[to as usize].seen.add(value) {
                let value = self.values.text(value);
                return Err(PlanFault::Twice { member: to, step, value });
            }
        }
        let mut values = message.values.into_iter();
        for &cells in cells {
            let arrived = values.by_ref().take(cells.count as usize).collect();
            self.write(to, cells, arrived);
        }
        if let Some(heard) = self.members[to as usize].heard.get_mut(step as usize) {
            heard.by_it = message.heard;
        }
        self.end(to, step);
        Ok(())
    }

    /// The contents of some blocks of a member; all have one.
    pub(super) fn read(
        &self,
        member: u32,
        step: u32,
        cells: Cells,
    ) -> Result<Vec<Value>, PlanFault> {
        let row = &self.members[member as usize].cells;
        let mut values = Vec::with_capacity(cells.count as usize);
        for (block, place) in self.grids[member as usize].places(cells) {
            if row[place] == NOTHING {
                return Err(PlanFault::Empty { member, step, store: cells.store, block });
            }
            values.push(row[place]);
        }
        Ok(values)
    }

    pub(super) fn write(&mut self, member: u32, cells: Cells, values: Vec<Value>) {
        let row = &mut self.members[member as usize].cells;
        for ((_, place), value) in self.grids[member as usize].places(cells).zip(values) {
            row[place] = value;
        }
    }

    fn combine(
        &mut self,
        member: u32,
        step: u32,
        left: Value,
        right: Value,
    ) -> Result<Value, PlanFault> {
        let value = self
            .values
            .combine(left, right)
            .map_err(|contributor| PlanFault::CountedTwice { member, step, contributor })?;
        self.members[member as usize].seen.add(value);
        Ok(value)
    }

    fn try_on_board(&mut self, member: u32, step: u32) -> Result<bool, PlanFault> {
        let is_over = board::try_step(self, member, step)?;
        if is_over {
            let said = board::said(self, member, step);
            if let Some(heard) = self.members[member as usize].heard.get_mut(step as usize) {
                heard.by_it = said;
            }
            self.end(member, step);
            self.busy.push(member);
        }
        Ok(is_over)
    }

    /// Tries all steps that wait at the board; returns whether one of them is complete now.
    fn board_goes_on(&mut self) -> Result<bool, PlanFault> {
        let mut goes_on = false;
        for member in 0..self.shape.size {
            for step in self.members[member as usize].open.clone() {
                let action = &self.plans[member as usize].steps[step as usize].action;
                let is_message = matches!(action, Action::Send { .. } | Action::Receive { .. });
                goes_on |= !is_message && self.try_on_board(member, step)?;
            }
        }
        Ok(goes_on)
    }

    /// The steps in flight when no step can go on, each with the member it waits for.
    fn waits(&self) -> Vec<Wait> {
        let mut waits = Vec::new();
        for (member, place) in (0..).zip(&self.members) {
            for &step in &place.open {
                let peer = match self.plans[member as usize].steps[step as usize].action {
                    Action::Send { to, .. } => Some(to),
                    Action::Receive { from, .. }
                    | Action::Take { from, .. }
                    | Action::Read { from, .. } => Some(from),
                    _ => None,
                };
                waits.push(Wait { member, step, peer });
            }
        }
        waits
    }

    fn result(&mut self, member: u32) -> Result<(), PlanFault> {
        if self.is_barrier() {
            let heard = self.heard_in_all(member);
            let missing = (0..).zip(heard).find_map(|(other, heard)| (!heard).then_some(other));
            return missing
                .map_or(Ok(()), |missing| Err(PlanFault::LeavesEarly { member, missing }));
        }
        for block in 0..self.shape.numbers() {
            let Some(wanted) = self.wanted(member, block) else { continue };
            let place = self.grids[member as usize].place(Store::Output, block);
            let has = place.map_or(NOTHING, |place| self.members[member as usize].cells[place]);
            if has != wanted {
                let (has, wanted) = (self.values.text(has), self.values.text(wanted));
                return Err(PlanFault::WrongResult { member, block, has, wanted });
            }
        }
        Ok(())
    }

    fn wanted(&mut self, member: u32, block: u32) -> Option<Value> {
        let values = &mut self.values;
        match self.shape.wanted(member, block) {
            None => None,
            Some(Wanted::Of(of)) => Some(values.of(of, block)),
            Some(Wanted::Combined { members }) => {
                let numbers = self.shape.numbers();
                let all = self.complete.entry((members, block)).or_insert_with(|| {
                    values.canonical(0..members, &|of| of * numbers + block).unwrap_or(NOTHING)
                });
                Some(*all)
            }
        }
    }

    fn hear_at_begin(&mut self, member: u32, step: u32) {
        if !self.is_barrier() {
            return;
        }
        let this = &self.plans[member as usize].steps[step as usize];
        let heard = &mut self.members[member as usize].heard;
        let mut at_begin = vec![false; self.shape.size as usize];
        at_begin[member as usize] = true;
        for &before in &this.after {
            unite(&mut at_begin, &heard[before as usize].at_begin);
            unite(&mut at_begin, &heard[before as usize].by_it);
        }
        if let Some(before) = this.behind {
            unite(&mut at_begin, &heard[before as usize].at_begin);
        }
        heard[step as usize].at_begin = at_begin;
    }

    /// The content of a message of a barrier: the members whose words have surely reached its sender.
    fn said(&self, member: u32, step: u32) -> Vec<bool> {
        let heard = self.members[member as usize].heard.get(step as usize);
        heard.map(|heard| heard.at_begin.clone()).unwrap_or_default()
    }

    fn heard_in_all(&self, member: u32) -> Vec<bool> {
        let mut all = vec![false; self.shape.size as usize];
        all[member as usize] = true;
        for heard in &self.members[member as usize].heard {
            unite(&mut all, &heard.by_it);
        }
        all
    }
}

fn unite(all: &mut [bool], others: &[bool]) {
    all.iter_mut().zip(others).for_each(|(own, other)| *own |= other);
}
