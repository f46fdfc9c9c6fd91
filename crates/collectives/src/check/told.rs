//! Blocks that others read in a member's memory: the member waits for its readers, and writes nothing there meanwhile.

use super::fault::PlanFault;
use super::form::{footprint, is_over_before};
use crate::plan::{Action, Cells, Plan, Readers, Store};

/// The blocks of which a member tells in a visit to the board.
struct Told {
    /// The number of the step.
    step: u32,
    cells: Cells,
    except: Option<u32>,
    /// The step with which it ends, and the readers that it waits for there.
    end: Option<(u32, Readers)>,
}

/// Checks the plans of all members.
pub(super) fn check(plans: &[Plan]) -> Result<(), PlanFault> {
    if !plans.iter().any(Plan::tells) {
        return Ok(());
    }
    let told: Vec<Vec<Option<Told>>> = plans.iter().map(visits).collect();
    for (plan, own) in plans.iter().zip(&told) {
        for (visit, one) in own.iter().enumerate() {
            one.iter().try_for_each(|one| stays(plans, plan, visit, one))?;
        }
        reads(plan, own, &told)?;
    }
    Ok(())
}

/// By visit, the blocks of which a member tells.
fn visits(plan: &Plan) -> Vec<Option<Told>> {
    let mut visits: Vec<Option<Told>> = Vec::new();
    for (step, at) in (0..).zip(&plan.steps) {
        match &at.action {
            &Action::Tell { cells, except } => {
                visits.push(Some(Told { step, cells, except, end: None }));
            }
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

/// No step writes the blocks between the two ends, but for results that are made of them.
fn stays(plans: &[Plan], plan: &Plan, visit: usize, told: &Told) -> Result<(), PlanFault> {
    let member = plan.member;
    for (step, at) in (0..).zip(&plan.steps) {
        let (_, writes) = footprint(member, &at.action);
        let is_left = |&(store, block): &(Store, u32)| {
            let is_own_result = told.except == Some(block);
            told.shows(plan, &at.action, store, block)
                && (is_own_result || !replaces(plans, plan, visit, &at.action, block))
        };
        let written = writes.iter().flat_map(|cells| cells.blocks().map(|at| (cells.store, at)));
        let Some((store, block)) = written.into_iter().find(is_left) else { continue };
        let is_before = is_over_before(plan, step, told.step);
        let is_behind = told.end.is_some_and(|(end, _)| is_over_before(plan, end, step));
        if !is_before && !is_behind {
            return Err(PlanFault::WrittenWhileTold { member, step, store, block });
        }
    }
    Ok(())
}

impl Told {
    /// Whether others may be reading a block while this action writes it.
    fn shows(&self, plan: &Plan, action: &Action, store: Store, block: u32) -> bool {
        if self.except != Some(block) {
            return store == self.cells.store && self.cells.blocks().contains(&block);
        }
        let makes =
            |action: &Action| matches!(action, Action::Resolve { block: of, .. } if *of == block);
        let is_result = plan.steps.iter().any(|step| makes(&step.action));
        is_result && store == Store::Output && !makes(action)
    }
}

/// Whether an action puts a result in the place of this member's block: the member that made it of that block was the only
/// one to read it, and has read as much of it as there is of the result.
fn replaces(plans: &[Plan], plan: &Plan, visit: usize, action: &Action, block: u32) -> bool {
    let Action::Read { from: maker, resolved: true, .. } = *action else { return false };
    let others = plans.iter().filter(|other| ![plan.member, maker].contains(&other.member));
    let reads =
        |other: &Plan| steps_of(other, visit).any(|action| reads_block(action, plan.member, block));
    !others.into_iter().any(reads)
}

/// The steps of a visit to the board.
fn steps_of(plan: &Plan, visit: usize) -> impl Iterator<Item = &Action> {
    let mut visits = 0;
    plan.steps.iter().map(|step| &step.action).filter(move |action| {
        visits += usize::from(action.comes());
        visits == visit + 1
    })
}

/// Whether an action reads a block in the memory of another member.
fn reads_block(action: &Action, owner: u32, block: u32) -> bool {
    match action {
        Action::Read { from, into, resolved: false, .. } => {
            *from == owner && into.blocks().contains(&block)
        }
        Action::CombineDeposits { members, into, .. } => {
            owner < *members && into.blocks().contains(&block)
        }
        Action::Resolve { block: of, .. } => *of == block,
        _ => false,
    }
}

/// The members whose blocks this one reads wait for it, and it reads nothing after it has said that it has.
fn reads(plan: &Plan, own: &[Option<Told>], all: &[Vec<Option<Told>>]) -> Result<(), PlanFault> {
    let reader = plan.member;
    let mut visits = 0_usize;
    for (step, at) in (0..).zip(&plan.steps) {
        visits += usize::from(at.action.comes());
        let Some(visit) = visits.checked_sub(1) else { continue }; // found where the plans run
        for from in owners(plan, &at.action, visit, all) {
            let end_of = |told: &[Option<Told>]| told.get(visit)?.as_ref()?.end;
            if end_of(own).is_some_and(|(end, _)| end < step) {
                return Err(PlanFault::ReadsLate { member: reader, step });
            }
            let waits = all.get(from as usize).and_then(|told| end_of(told));
            if !waits.is_some_and(|(_, readers)| readers.contains(reader)) {
                return Err(PlanFault::LeavesReader { member: from, reader, step });
            }
        }
    }
    Ok(())
}

/// The members in whose memory an action reads: those that have told of their blocks, where it combines.
fn owners(plan: &Plan, action: &Action, visit: usize, all: &[Vec<Option<Told>>]) -> Vec<u32> {
    let members = match action {
        Action::Read { from, .. } => return vec![*from],
        Action::CombineDeposits { members, .. } => *members,
        Action::Resolve { .. } => plan.size,
        _ => return Vec::new(),
    };
    let tells = |member: &u32| all[*member as usize].get(visit).is_some_and(Option::is_some);
    (0..members.min(plan.size)).filter(|&member| member != plan.member).filter(tells).collect()
}
