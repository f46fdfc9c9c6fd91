//! Blocks that others read in a member's memory: the member waits for its readers, and writes nothing there meanwhile.

use super::fault::Fault;
use super::form::{footprint, is_over_before};
use crate::plan::{Action, Cells, Plan, Readers};

/// The blocks of which a member tells in a visit to the board.
struct Told {
    /// The number of the step.
    step: u32,
    cells: Cells,
    /// The step with which it ends, and the readers that it waits for there.
    end: Option<(u32, Readers)>,
}

/// Checks the plans of all members.
pub(super) fn check(plans: &[Plan]) -> Result<(), Fault> {
    if !plans.iter().any(Plan::tells) {
        return Ok(());
    }
    let told: Vec<Vec<Option<Told>>> = plans.iter().map(visits).collect();
    for (plan, own) in plans.iter().zip(&told) {
        own.iter().flatten().try_for_each(|one| stays(plan, one))?;
        reads(plan, own, &told)?;
    }
    Ok(())
}

/// By visit, the blocks of which a member tells.
fn visits(plan: &Plan) -> Vec<Option<Told>> {
    let mut visits: Vec<Option<Told>> = Vec::new();
    for (step, at) in (0..).zip(&plan.steps) {
        match &at.action {
            Action::Tell { cells } => visits.push(Some(Told { step, cells: *cells, end: None })),
            Action::Deposit { .. } => visits.push(None),
            Action::AwaitReaders { readers } => {
                if let Some(Some(told)) = visits.last_mut() {
                    told.end.get_or_insert((step, *readers));
                }
            }
            _ => {}
        }
    }
    visits
}

/// No step writes the blocks between the two ends.
fn stays(plan: &Plan, told: &Told) -> Result<(), Fault> {
    let member = plan.member;
    for (step, at) in (0..).zip(&plan.steps) {
        let (_, writes) = footprint(member, &at.action);
        let is_told = |block: &u32| told.cells.blocks().contains(block);
        let in_store = writes.iter().filter(|cells| cells.store == told.cells.store);
        let Some(block) = in_store.flat_map(|cells| cells.blocks()).find(is_told) else { continue };
        let is_before = is_over_before(plan, step, told.step);
        let is_behind = told.end.is_some_and(|(end, _)| is_over_before(plan, end, step));
        if !is_before && !is_behind {
            let store = told.cells.store;
            return Err(Fault::WrittenWhileTold { member, step, store, block });
        }
    }
    Ok(())
}

/// The members whose blocks this one reads wait for it, and it reads nothing after it has said that it has.
fn reads(plan: &Plan, own: &[Option<Told>], all: &[Vec<Option<Told>>]) -> Result<(), Fault> {
    let reader = plan.member;
    let mut visits = 0_usize;
    for (step, at) in (0..).zip(&plan.steps) {
        visits += usize::from(at.action.comes());
        let Action::Read { from, .. } = at.action else { continue };
        let Some(visit) = visits.checked_sub(1) else { continue }; // found where the plans run
        let end_of = |told: &[Option<Told>]| told.get(visit)?.as_ref()?.end;
        if end_of(own).is_some_and(|(end, _)| end < step) {
            return Err(Fault::ReadsLate { member: reader, step });
        }
        let waits = all.get(from as usize).and_then(|told| end_of(told));
        if !waits.is_some_and(|(_, readers)| readers.contains(reader)) {
            return Err(Fault::LeavesReader { member: from, reader, step });
        }
    }
    Ok(())
}
