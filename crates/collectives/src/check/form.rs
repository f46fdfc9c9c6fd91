//! Static checks of one plan: the blocks that its steps access, and the order in which they may be in flight.

use std::collections::BTreeMap;

use super::fault::PlanFault;
use super::grid::Grid;
use super::shape::Shape;
use crate::plan::{Action, Cells, Plan, Readers, Store};

/// Checks one plan.
pub(super) fn check(shape: &Shape, plan: &Plan, grid: &Grid) -> Result<(), PlanFault> {
    let mut form = Form {
        shape,
        plan,
        grid,
        accesses: (0..grid.len()).map(|_| Access::default()).collect(),
        sends: BTreeMap::new(),
        receives: BTreeMap::new(),
        last_at_board: None,
    };
    (0..plan.steps.len() as u32).try_for_each(|step| form.step(step))
}

/// The blocks that a step reads, and those it writes.
pub(super) fn footprint(member: u32, action: &Action) -> (Vec<Cells>, Vec<Cells>) {
    match action {
        Action::Send { cells, .. } => (cells.clone(), vec![]),
        Action::Receive { cells, .. } => (vec![], cells.clone()),
        Action::Copy { from, into } => (vec![*from], vec![*into]),
        Action::Combine { left, right, into } => (vec![*left, *right], vec![*into]),
        Action::Deposit { cells, except } | Action::Tell { cells, except } => match except {
            None => (vec![*cells], vec![]),
            Some(block) => (without(*cells, *block), vec![]),
        },
        Action::Take { into, .. } | Action::Read { into, .. } | Action::TakeResult { into } => {
            (vec![], vec![*into])
        }
        Action::CombineDeposits { members, deposited, into } => {
            let own = into.at(deposited.store);
            ((member < *members).then_some(own).into_iter().collect(), vec![*into])
        }
        Action::Resolve { deposited, block } => {
            let own = Cells::new(deposited.store, *block, 1);
            (vec![own], vec![own.at(Store::Output)])
        }
        Action::Await | Action::AwaitReaders { .. } | Action::Together { .. } => (vec![], vec![]),
    }
}

fn without(cells: Cells, block: u32) -> Vec<Cells> {
    let single = |block| Cells::new(cells.store, block, 1);
    cells.blocks().filter(|&other| other != block).map(single).collect()
}

struct Form<'a> {
    shape: &'a Shape,
    plan: &'a Plan,
    grid: &'a Grid,
    accesses: Vec<Access>,
    /// The last step that sends to a member, and the last that receives from it.
    sends: BTreeMap<u32, u32>,
    receives: BTreeMap<u32, u32>,
    /// The last step at the board.
    last_at_board: Option<u32>,
}

/// The steps that last wrote and read a block.
#[derive(Default)]
struct Access {
    writer: Option<u32>,
    readers: Vec<u32>,
}

impl Form<'_> {
    fn step(&mut self, step: u32) -> Result<(), PlanFault> {
        let plan = self.plan;
        let member = plan.member;
        let this = &plan.steps[step as usize];
        let mut waited_for = this.after.iter().copied().chain(this.behind);
        if let Some(before) = waited_for.find(|&before| before >= step) {
            return Err(PlanFault::WaitsForLater { member, step, before });
        }
        if !is_of_like_blocks(&this.action) {
            return Err(PlanFault::OtherBlock { member, step });
        }
        self.peer(step, &this.action)?;
        self.visit(step, &this.action)?;
        let (reads, writes) = footprint(member, &this.action);
        for cells in writes.iter().filter(|cells| cells.count > 0) {
            if cells.store == Store::Input {
                return Err(PlanFault::InputWritten { member, step, block: cells.first });
            }
        }
        reads.iter().try_for_each(|&cells| self.touch(step, cells, false))?;
        writes.iter().try_for_each(|&cells| self.touch(step, cells, true))
    }

    fn peer(&mut self, step: u32, action: &Action) -> Result<(), PlanFault> {
        let member = self.plan.member;
        let (last, peer) = match *action {
            Action::Send { to, .. } => (self.sends.insert(to, step), to),
            Action::Receive { from, .. } => (self.receives.insert(from, step), from),
            Action::Take { from: peer, .. }
            | Action::Read { from: peer, .. }
            | Action::AwaitReaders { readers: Readers::One(peer) } => {
                let is_there = peer < self.shape.size;
                return if is_there {
                    Ok(())
                } else {
                    Err(PlanFault::NoPeer { member, step, peer })
                };
            }
            _ => return Ok(()),
        };
        if peer == member || peer >= self.shape.size {
            return Err(PlanFault::NoPeer { member, step, peer });
        }
        match last {
            Some(first) if !begins_before(self.plan, first, step) => {
                Err(PlanFault::NoOrder { member, first, second: step, peer })
            }
            _ => Ok(()),
        }
    }

    /// Which visit to the board a step belongs to follows from the order of such steps.
    fn visit(&mut self, step: u32, action: &Action) -> Result<(), PlanFault> {
        let is_local = matches!(action, Action::Copy { .. } | Action::Combine { .. });
        if is_local || matches!(action, Action::Send { .. } | Action::Receive { .. }) {
            return Ok(());
        }
        let member = self.plan.member;
        match self.last_at_board.replace(step) {
            Some(first) if !is_over_before(self.plan, first, step) => {
                Err(PlanFault::AtBoardTwice { member, first, second: step })
            }
            _ => Ok(()),
        }
    }

    fn touch(&mut self, step: u32, cells: Cells, writes: bool) -> Result<(), PlanFault> {
        let member = self.plan.member;
        let store = cells.store;
        for block in cells.blocks() {
            let Some(place) = self.grid.place(store, block) else {
                return Err(PlanFault::NoRoom { member, step, store, block });
            };
            let access = &mut self.accesses[place];
            let readers: &[u32] = if writes { &access.readers } else { &[] };
            let mut others = access.writer.iter().chain(readers).copied();
            let at_once =
                others.find(|&other| other != step && !is_over_before(self.plan, other, step));
            if let Some(first) = at_once {
                return Err(PlanFault::Race { member, first, second: step, store, block });
            }
            if writes {
                *access = Access { writer: Some(step), readers: Vec::new() };
            } else {
                access.readers.push(step);
            }
        }
        Ok(())
    }
}

/// Blocks are copied and combined onto blocks of the same numbers.
fn is_of_like_blocks(action: &Action) -> bool {
    let are_like = |one: &Cells, other: &Cells| one.blocks() == other.blocks();
    match action {
        Action::Copy { from, into } => are_like(from, into),
        Action::Combine { left, right, into } => are_like(left, right) && are_like(left, into),
        _ => true,
    }
}

/// Whether one step is always complete before the other begins.
pub(super) fn is_over_before(plan: &Plan, first: u32, second: u32) -> bool {
    plan.steps[second as usize].after.contains(&first)
        || search(plan, second, |step| plan.steps[step as usize].after.contains(&first))
}

/// Whether one step begins before the other does.
fn begins_before(plan: &Plan, first: u32, second: u32) -> bool {
    plan.steps[second as usize].behind == Some(first)
        || search(plan, second, |step| {
            step == first || plan.steps[step as usize].behind == Some(first)
        })
}

/// Whether `is_found` holds for this step or for any that it waits for, directly or not.
fn search(plan: &Plan, from: u32, is_found: impl Fn(u32) -> bool) -> bool {
    let mut seen = vec![false; from as usize + 1];
    let mut open = vec![from];
    while let Some(step) = open.pop() {
        if is_found(step) {
            return true;
        }
        let this = &plan.steps[step as usize];
        for before in this.after.iter().copied().chain(this.behind) {
            if !std::mem::replace(&mut seen[before as usize], true) {
                open.push(before);
            }
        }
    }
    false
}
