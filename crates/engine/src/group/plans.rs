//! Plans that were made, kept for the next call of the same.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use landeck_collectives::{
    Action, Group, Operation, Plan, Task, Walk, Way, form_of, plan_of, plan_of_started,
};
use landeck_kernel::matching::KeyHasher;

/// A plan ready to be walked any number of times.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub(crate) walk: Arc<Walk>,
    /// Members pass on blocks whose lengths only others know, where blocks differ in length.
    pub(crate) relays: bool,
    /// The plan has steps at the board.
    pub(crate) uses_board: bool,
    /// A number for all that decides the plans of the members; 0 if it is not told.
    pub(crate) form: u32,
}

/// The plans of one member, by task and way.
#[derive(Default)]
pub(crate) struct Plans {
    by_task: HashMap<Key, Vec<(Way, Prepared)>, BuildHasherDefault<KeyHasher>>,
    /// Those of started operations, by task and by whether the member drives its host.
    started: HashMap<(Key, bool), Prepared, BuildHasherDefault<KeyHasher>>,
    count: usize,
}

/// A task in a few numbers.
type Key = (u32, u32, u32);

/// So many are kept; then all are forgotten.
const PLANS_MAX: usize = 256;

impl Plans {
    /// The plan for a task, made if it was not asked for before.
    pub(crate) fn of(&mut self, task: &Task, way: &Way, group: &Group, member: u32) -> &Prepared {
        if self.count >= PLANS_MAX && self.find(task, way).is_none() {
            *self = Self::default();
        }
        let found = self.find(task, way);
        let plans = self.by_task.entry(key(task)).or_default();
        let at = found.unwrap_or_else(|| {
            self.count += 1;
            plans.push((way.clone(), prepare(task, way, group, member)));
            plans.len() - 1
        });
        &plans[at].1
    }

    /// The plan for a started operation that goes directly, made if it was not asked for before.
    pub(crate) fn of_started(
        &mut self,
        task: &Task,
        drives: bool,
        group: &Group,
        member: u32,
    ) -> Prepared {
        if self.started.len() >= PLANS_MAX {
            self.started.clear();
        }
        let make = || prepared(plan_of_started(task, group, member, drives), false);
        self.started.entry((key(task), drives)).or_insert_with(make).clone()
    }

    fn find(&self, task: &Task, way: &Way) -> Option<usize> {
        self.by_task.get(&key(task))?.iter().position(|(known, _)| are_same(known, way))
    }
}

fn prepare(task: &Task, way: &Way, group: &Group, member: u32) -> Prepared {
    let form = form_of(way, task.segments, task.order);
    Prepared { form, ..prepared(plan_of(task, way, group, member), relays(task, way, group)) }
}

fn prepared(mut plan: Plan, relays: bool) -> Prepared {
    name_places(&mut plan);
    let uses_board = plan.uses_board();
    Prepared { walk: Walk::new(plan), relays, uses_board, form: 0 }
}

/// Names other members at the board of a host by their places there, as the board does.
fn name_places(plan: &mut Plan) {
    let place_of: Vec<Option<u32>> =
        (0..plan.size).map(|member| plan.place_on_board(member)).collect();
    for step in &mut plan.steps {
        if let Action::Take { from, .. } | Action::Read { from, .. } = &mut step.action
            && let Some(place) = place_of[*from as usize]
        {
            *from = place;
        }
    }
}

/// Whether some member passes on what is another's. All members must find the same.
fn relays(task: &Task, way: &Way, group: &Group) -> bool {
    let Way::Messages { architecture, .. } = way else { return false };
    match task.operation {
        Operation::Gather | Operation::Scatter => {
            architecture.tree(group, task.root).depths().into_iter().any(|depth| depth > 1)
        }
        Operation::AllToAll => architecture.exchange(group).is_none(),
        _ => false,
    }
}

fn key(task: &Task) -> Key {
    let form = task.operation as u32 | (task.order as u32) << 8 | u32::from(task.in_place) << 16;
    (form, task.root, task.segments)
}

/// Whether two ways are the same. Architectures of the same name are: it has their parameters.
fn are_same(one: &Way, other: &Way) -> bool {
    match (one, other) {
        (Way::Board(one), Way::Board(other)) => one == other,
        (
            Way::Hosts { architecture: one, split: one_split },
            Way::Hosts { architecture: other, split: other_split },
        ) => one_split == other_split && (Arc::ptr_eq(one, other) || one.name() == other.name()),
        (
            Way::Messages { architecture: one, release: one_back, split: one_split },
            Way::Messages { architecture: other, release: other_back, split: other_split },
        ) => {
            one_split == other_split
                && (Arc::ptr_eq(one, other) || one.name() == other.name())
                && match (one_back, other_back) {
                    (None, None) => true,
                    (Some(one), Some(other)) => {
                        Arc::ptr_eq(one, other) || one.name() == other.name()
                    }
                    _ => false,
                }
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_collectives::architecture::{Flat, Knomial};

    #[test]
    fn a_plan_is_made_once_and_all_are_bounded() {
        let group = Group::whole(3).unwrap();
        let mut plans = Plans::default();
        let task = Task::new(Operation::Barrier);
        let first = plans.of(&task, &Way::by(Flat), &group, 0).walk.clone();
        assert!(Arc::ptr_eq(&first, &plans.of(&task, &Way::by(Flat), &group, 0).walk));
        let way = Way::by(Knomial::BINOMIAL);
        assert!(!Arc::ptr_eq(&first, &plans.of(&task, &way, &group, 0).walk));
        for segments in 1..=PLANS_MAX as u32 {
            plans.of(&Task { segments, ..task }, &way, &group, 0);
        }
        assert!(plans.count <= PLANS_MAX, "{}", plans.count);
    }

    #[test]
    fn every_member_knows_whether_plans_relay_data() {
        let group = Group::whole(4).unwrap();
        let relays = |operation, way| relays(&Task::new(operation), &way, &group);
        assert!(relays(Operation::Gather, Way::by(Knomial::BINOMIAL)));
        assert!(!relays(Operation::Gather, Way::by(Flat)));
        assert!(!relays(Operation::AllToAll, Way::by(Flat)));
        assert!(relays(Operation::AllToAll, Way::by(Knomial::BINOMIAL)));
    }
}
