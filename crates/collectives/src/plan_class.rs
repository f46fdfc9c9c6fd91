//! The plans of large groups, made for some members at a time.
//!
//! A plan takes a few hundred bytes for each step, so the plans of all members would dominate the memory of a
//! simulation. Only as many are made at once as have room. Members whose plans are equal up to rotation
//! (`plan_symmetry`) are handed out together, with one plan for all of them.

use crate::derive::{self, Task, Way};
use crate::group::Group;
use crate::plan::{Cells, Plan};
use crate::plan_symmetry::{PlanSymmetry, turned};
use crate::program::Program;

/// A class of members whose plans are one plan, turned.
#[derive(Debug)]
pub struct PlanClass {
    /// The plan of one of them.
    pub plan: Plan,
    /// The others.
    pub others: Vec<u32>,
    /// Whether blocks belong to members, and turn with them.
    pub turns_blocks: bool,
}

impl PlanClass {
    /// Returns the member in the place of `other` in the plan of `member`, which belongs to this class.
    pub fn turned(&self, other: u32, member: u32) -> u32 {
        turned(other, self.by(member), self.plan.size)
    }

    /// Returns the blocks in the place of `cells` in the plan of `member`: one run, or two.
    pub fn turned_cells(&self, cells: Cells, member: u32) -> [Cells; 2] {
        let (size, none) = (self.plan.size, Cells::new(cells.store, 0, 0));
        if !self.turns_blocks || cells.count == size || member == self.plan.member {
            return [cells, none];
        }
        let first = turned(cells.first, self.by(member), size);
        let count = cells.count.min(size - first);
        [Cells { first, count, ..cells }, Cells { first: 0, count: cells.count - count, ..cells }]
    }

    fn by(&self, member: u32) -> u32 {
        member + self.plan.size - self.plan.member
    }
}

/// Makes the plans of all members, for as many at a time as have room in so many bytes (for one at least),
/// and hands each out once.
pub fn each_kin(
    task: &Task,
    way: &Way,
    group: &Group,
    room_bytes: u64,
    mut each: impl FnMut(PlanClass),
) {
    let turns_blocks = derive::turns_blocks(task, way);
    let everybody: Vec<u32> = (0..group.size()).collect();
    let mut plans = derive::plans_of(task, way, group, &everybody, room_bytes);
    if plans.len() == everybody.len() {
        for plan in plans {
            each(PlanClass { plan, others: Vec::new(), turns_blocks });
        }
        return;
    }
    let all = match way {
        // Turned, a member of one host would be one of another.
        Way::Hosts { .. } => everybody.iter().map(|&member| vec![member]).collect(),
        _ => {
            let mut program = Program::of_none(PlanSymmetry::new(group.size(), turns_blocks));
            derive::fill(&mut program, task, way, group);
            program.likeness().map_or_else(Vec::new, |likeness| likeness.kin())
        }
    };
    let mut numbers = vec![0; everybody.len()];
    for (number, kin) in all.iter().enumerate() {
        kin.iter().for_each(|&member| numbers[member as usize] = number);
    }
    let mut all: Vec<Option<Vec<u32>>> = all.into_iter().map(Some).collect();
    let mut next = 0;
    loop {
        let made = plans.len();
        for plan in plans {
            let Some(mut others) = all[numbers[plan.member as usize]].take() else { continue };
            next = next.max(plan.member as usize + 1);
            others.retain(|&member| member != plan.member);
            each(PlanClass { plan, others, turns_blocks });
        }
        let is_missing = |member: &u32| {
            let kin = all[numbers[*member as usize]].as_ref();
            kin.is_some_and(|kin| kin.first() == Some(member))
        };
        // More than have room are projected in vain.
        let missing = everybody[next..].iter().copied().filter(is_missing);
        let missing: Vec<u32> = missing.take(made + made / 4 + 1).collect();
        if missing.is_empty() {
            return;
        }
        plans = derive::plans_of(task, way, group, &missing, room_bytes);
    }
}
