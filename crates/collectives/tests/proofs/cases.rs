//! The cases that are proven of each group: architectures, operations, ways and tasks.

use std::sync::Arc;
use std::time::Duration;

use landeck_collectives::architecture::{
    BinaryTree, Butterfly, Circulant, Daisy, Flat, Hierarchy, Hypercube, Knomial, Pipeline, Ring,
    Seated,
};
use landeck_collectives::check::{Facts, prove};
use landeck_collectives::{Architecture, BoardStyle, Group, Operation, Order, Task, Way, plans};
use landeck_testing::Watchdog;

use crate::derivation;

pub(crate) const SIZE_MAX: u32 = 64;
pub(crate) const ORDERS: [Order; 3] = [Order::Free, Order::Canonical, Order::Late];
pub(crate) const SEGMENTS: [u32; 3] = [1, 2, 5];
pub(crate) const STYLES: [BoardStyle; 4] =
    [BoardStyle::Each, BoardStyle::Divided, BoardStyle::Together, BoardStyle::Told];

pub(crate) fn is_soak() -> bool {
    std::env::var_os("LANDECK_SOAK").is_some()
}

/// One of so many parts of equal size.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    /// Its number, from 0.
    pub(crate) number: u64,
    pub(crate) of: u64,
}

impl Part {
    pub(crate) const ALL: Self = Self { number: 0, of: 1 };

    /// Whether the item with this number is in it.
    pub(crate) fn has(self, number: u64) -> bool {
        number % self.of == self.number
    }
}

/// The part that `LANDECK_PART` asks for: `1/24` to `24/24`.
pub(crate) fn part() -> Option<Part> {
    let text = std::env::var("LANDECK_PART").ok()?;
    let (number, of) = text.split_once('/').expect("LANDECK_PART is of the form 3/24");
    let (number, of): (u64, u64) = (number.parse().unwrap(), of.parse().unwrap());
    assert!((1..=of).contains(&number), "LANDECK_PART={text}: there is no such part");
    Some(Part { number: number - 1, of })
}

/// A limit with room for a machine that does other things, too.
pub(crate) fn watchdog() -> Watchdog {
    Watchdog::start(Duration::from_secs(if is_soak() { 3_600 } else { 400 }))
}

fn architecture(architecture: impl Architecture + 'static) -> Arc<dyn Architecture> {
    Arc::new(architecture)
}

/// The architectures that depend on clusters.
pub(crate) fn clustered() -> Vec<Arc<dyn Architecture>> {
    vec![
        architecture(Pipeline),
        architecture(Daisy),
        architecture(Hierarchy::BINARY),
        architecture(Hierarchy::with_parents(vec![0, 1, 1, 0, 4]).unwrap()),
        architecture(Hypercube::default()),
    ]
}

/// The architectures that do not depend on clusters, or not much.
pub(crate) fn unclustered() -> Vec<Arc<dyn Architecture>> {
    let hosts = (0..SIZE_MAX).map(|member| member % 3).collect();
    let caches = (0..SIZE_MAX / 2).map(|member| member * 7 % 5).collect(); // not for everybody
    vec![
        architecture(Flat),
        architecture(Hierarchy::of_parts(vec![2, 3, 4]).unwrap()),
        architecture(Hierarchy::nested(vec![hosts, caches])),
        architecture(BinaryTree),
        architecture(Knomial::BINOMIAL),
        architecture(Knomial::NEAREST_FIRST),
        architecture(Knomial::new(4)),
        architecture(Butterfly),
        architecture(Ring),
        architecture(Circulant),
        architecture(Seated::new(Arc::new(Butterfly), vec![4, 2, 0, 1, 3], true).unwrap()),
        architecture(Seated::new(Arc::new(Ring), vec![2, 0, 1, 3], true).unwrap()),
    ]
}

/// A way and a task that nothing but the number of the case decides.
pub(crate) fn case(
    architecture: &Arc<dyn Architecture>,
    operation: Operation,
    root: u32,
    number: u32,
    split: bool,
) -> (Way, Task) {
    let pick = number as usize;
    let order = if operation.reduces() { ORDERS[pick % 3] } else { Order::Free };
    let segments = if operation.has_segments() { SEGMENTS[pick / 3 % 3] } else { 1 };
    let in_place = number % 2 == 1;
    let way = Way::Messages { architecture: architecture.clone(), release: None, split };
    (way, Task { operation, root, segments, order, in_place })
}

/// All ways and tasks for an operation that differ from each other. Divided data take long to prove
/// in large groups, and most of it is the same from every root: there from one root.
pub(crate) fn all_cases(
    architecture: &Arc<dyn Architecture>,
    operation: Operation,
    root: u32,
    size: u32,
) -> Vec<(Way, Task)> {
    use Operation::{AllReduce, AllToAll, Barrier, Broadcast, Reduce};
    let divides = matches!(operation, Broadcast | Reduce | AllReduce)
        && (size <= 16 || root == size / 2 || operation == AllReduce);
    let has_places = !matches!(operation, Barrier | Broadcast | AllToAll);
    let numbers = (0..18).filter(|number| has_places || number % 2 == 0);
    let mut cases: Vec<(Way, Task)> = numbers
        .flat_map(|number| [(number, false), (number, true)])
        .filter(|&(_, split)| divides || !split)
        .map(|(number, split)| case(architecture, operation, root, number, split))
        .collect();
    cases.sort_by_key(|(way, task)| format!("{way} {task:?}"));
    cases.dedup_by_key(|(way, task)| format!("{way} {task:?}"));
    cases
}

/// Proves a case, and compares what it costs with what is derived.
pub(crate) fn proven(task: &Task, way: &Way, group: &Group) -> Facts {
    let what = || format!("{} by {way}: {task:?}\nin {:?}", task.operation, group.clusters());
    match prove(&plans(task, way, group), task) {
        Ok(facts) => {
            assert_eq!(facts, derivation::facts(task, way, group), "{}", what());
            facts
        }
        Err(fault) => panic!("{fault}\n{}", what()),
    }
}

/// Proves one case of an operation, or in a soak all.
pub(crate) fn prove_one(
    architecture: &Arc<dyn Architecture>,
    group: &Group,
    operation: Operation,
    root: u32,
    number: u32,
) {
    if is_soak() {
        for (way, task) in all_cases(architecture, operation, root, group.size()) {
            proven(&task, &way, group);
        }
        return;
    }
    let split_every = if group.size() <= 16 { 5 } else { 41 };
    let split = (number / 2).is_multiple_of(split_every);
    let (way, task) = case(architecture, operation, root, number, split);
    proven(&task, &way, group);
}

pub(crate) fn operations(with_root: bool) -> impl Iterator<Item = Operation> {
    Operation::ALL.into_iter().filter(move |operation| operation.has_root() == with_root)
}
