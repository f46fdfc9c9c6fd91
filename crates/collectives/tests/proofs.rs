//! The proof: the plans of every architecture and operation, for every size up to 64 and every
//! root, do what they should (`check`) at exactly the cost that is derived without them
//! (`derivation`); with clusters, for every division of up to 12 members into consecutive
//! clusters, every division at all of up to 7 (in a soak of up to 12), and drawn ones above.
//!
//! Orders, segments, splitting and places change from case to case, so that all meet all. With
//! `LANDECK_SOAK=1` every case is proven with all of them (divided data in groups above 16 from one
//! root only).
#![allow(clippy::unwrap_used)] // tests may

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use landeck_collectives::architecture::{
    BinaryTree, Butterfly, Circulant, Daisy, Flat, Hierarchy, Hypercube, Knomial, Pipeline, Ring,
};
use landeck_collectives::check::prove;
use landeck_collectives::{
    Action, Architecture, BoardStyle, Execution, Group, Operation, Order, Plan, Task, Walk, Way,
    derivation, plan_of, plans,
};
use landeck_testing::Watchdog;
use proptest::prelude::*;

const SIZE_MAX: u32 = 64;
const ORDERS: [Order; 3] = [Order::Free, Order::Canonical, Order::Late];
const SEGMENTS: [u32; 3] = [1, 2, 5];
const STYLES: [BoardStyle; 3] = [BoardStyle::Each, BoardStyle::Divided, BoardStyle::Together];

fn is_soak() -> bool {
    std::env::var_os("LANDECK_SOAK").is_some()
}

/// A limit with room for a machine that does other things, too.
fn watchdog() -> Watchdog {
    Watchdog::start(Duration::from_secs(if is_soak() { 3_600 } else { 400 }))
}

fn architecture(architecture: impl Architecture + 'static) -> Arc<dyn Architecture> {
    Arc::new(architecture)
}

/// Those that look at clusters.
fn clustered() -> Vec<Arc<dyn Architecture>> {
    vec![
        architecture(Pipeline),
        architecture(Daisy),
        architecture(Hierarchy::BINARY),
        architecture(Hierarchy::with_parents(vec![0, 1, 1, 0, 4]).unwrap()),
        architecture(Hypercube::default()),
    ]
}

/// Those that do not, or not much.
fn unclustered() -> Vec<Arc<dyn Architecture>> {
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
    ]
}

/// A way and a task that nothing but the number of the case decides.
fn case(
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
fn all_cases(
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

fn proven(task: &Task, way: &Way, group: &Group) {
    let what = || format!("{} by {way}: {task:?}\nin {:?}", task.operation, group.clusters());
    match prove(&plans(task, way, group), task) {
        Ok(facts) => assert_eq!(facts, derivation::facts(task, way, group), "{}", what()),
        Err(fault) => panic!("{fault}\n{}", what()),
    }
}

/// Proves one case of an operation, or in a soak all.
fn prove_one(
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

fn operations(with_root: bool) -> impl Iterator<Item = Operation> {
    Operation::ALL.into_iter().filter(move |operation| operation.has_root() == with_root)
}

/// Operations with a root from every root, and all others.
fn prove_all(architecture: &Arc<dyn Architecture>, group: &Group, number: u32) {
    for root in 0..group.size() {
        for operation in operations(true) {
            prove_one(architecture, group, operation, root, number + root);
        }
    }
    for operation in operations(false) {
        prove_one(architecture, group, operation, 0, number);
    }
}

fn every_size(architectures: &[Arc<dyn Architecture>]) {
    let _watchdog = watchdog();
    for (number, architecture) in (0..).zip(architectures) {
        for size in 1..=SIZE_MAX {
            let group = Group::divided(size, 1 + size % 7).unwrap();
            prove_all(architecture, &group, number + size);
        }
    }
}

#[test]
fn every_size_and_root_by_architectures_of_clusters() {
    every_size(&clustered());
}

#[test]
fn every_size_and_root_by_the_others() {
    every_size(&unclustered());
}

#[test]
fn every_size_and_root_on_the_board() {
    let _watchdog = watchdog();
    for size in 1..=SIZE_MAX {
        let group = Group::whole(size).unwrap();
        for operation in Operation::ALL {
            let roots = if operation.has_root() { size } else { 6 };
            for number in 0..roots {
                let root = if operation.has_root() { number } else { 0 };
                let order = ORDERS[number as usize % 2]; // it is late in any case
                let segments = SEGMENTS[(number + size) as usize % 3];
                let task = Task {
                    operation,
                    root,
                    segments,
                    order,
                    in_place: (number / 2).is_multiple_of(2),
                };
                proven(&task, &Way::Board(STYLES[number as usize % 3]), &group);
            }
        }
    }
}

/// All ways to write a number as a sum in order: the lengths of consecutive clusters.
fn compositions(size: u32) -> impl Iterator<Item = Vec<u32>> {
    (0..1u32 << (size - 1)).map(move |cuts| {
        let mut lengths = vec![1];
        for at in 0..size - 1 {
            match lengths.last_mut() {
                Some(last) if cuts >> at & 1 == 0 => *last += 1,
                _ => lengths.push(1),
            }
        }
        lengths
    })
}

/// All divisions into clusters, of which the lowest member leads: everybody joins the cluster of
/// somebody before it, or founds one.
struct Divisions {
    /// The cluster of each member; empty after the last division.
    of: Vec<u32>,
}

impl Divisions {
    fn new(size: u32) -> Self {
        Self { of: vec![0; size as usize] }
    }

    /// To the next division: the last member that can changes to the next cluster, and all behind
    /// it go back to the first.
    fn step(&mut self) {
        let clusters_before = |at: usize| self.of[..at].iter().max().map_or(0, |last| last + 1);
        match (1..self.of.len()).rev().find(|&at| self.of[at] < clusters_before(at)) {
            Some(at) => {
                self.of[at] += 1;
                self.of[at + 1..].fill(0);
            }
            None => self.of.clear(),
        }
    }
}

impl Iterator for Divisions {
    type Item = Vec<Vec<u32>>;

    fn next(&mut self) -> Option<Self::Item> {
        let count = self.of.iter().max()? + 1;
        let mut clusters = vec![Vec::new(); count as usize];
        (0..).zip(&self.of).for_each(|(member, &of)| clusters[of as usize].push(member));
        self.step();
        Some(clusters)
    }

    /// Those in between are not made.
    fn nth(&mut self, number: usize) -> Option<Self::Item> {
        (0..number).for_each(|_| self.step());
        self.next()
    }
}

/// Every root once, each with another operation; and one operation without a root.
fn prove_some(architecture: &Arc<dyn Architecture>, group: &Group, number: u32) {
    let (rooted, others): (Vec<_>, Vec<_>) =
        (operations(true).collect(), operations(false).collect());
    for root in 0..group.size() {
        let operation = rooted[(root + number) as usize % rooted.len()];
        prove_one(architecture, group, operation, root, number / 4 + root);
    }
    let operation = others[number as usize % others.len()];
    prove_one(architecture, group, operation, 0, number / 7);
}

#[test]
fn every_division_into_consecutive_clusters_up_to_twelve() {
    let _watchdog = watchdog();
    for architecture in clustered() {
        for size in 1..=12 {
            for (number, lengths) in (0..).zip(compositions(size)) {
                let group = Group::of_lengths(&lengths).unwrap();
                if size <= 7 {
                    prove_all(&architecture, &group, number);
                } else {
                    prove_some(&architecture, &group, number);
                }
            }
        }
    }
}

#[test]
fn every_division_at_all_up_to_seven() {
    let _watchdog = watchdog();
    for architecture in clustered() {
        for size in 1..=7 {
            for (number, clusters) in (0..).zip(Divisions::new(size)) {
                prove_some(&architecture, &Group::of(clusters).unwrap(), number);
            }
        }
    }
}

/// Operations that go every way of an architecture: up its trees, down, and through its rounds. The
/// others go the same ways with more to prove about their data.
const WAYS: [Operation; 5] = {
    use Operation::{AllGather, Barrier, Broadcast, Gather, Scatter};
    [Barrier, Broadcast, Gather, Scatter, AllGather]
};

/// One case for each division and architecture: the next operation, root and form each time. In a
/// soak the millions of divisions above ten meet some operations only.
fn prove_next(architectures: &[Arc<dyn Architecture>], clusters: Vec<Vec<u32>>, number: u32) {
    let group = Group::of(clusters).unwrap();
    for (number, architecture) in (number..).zip(architectures) {
        let few = is_soak() && group.size() > 10;
        let operations = if few { &WAYS[..] } else { &Operation::ALL };
        let operation = operations[number as usize % operations.len()];
        let root = if operation.has_root() { number / 11 % group.size() } else { 0 };
        let (way, task) = case(architecture, operation, root, number / 5, number.is_multiple_of(7));
        proven(&task, &way, &group);
    }
}

/// 5,033,429 divisions in a soak; else one of so many of each size.
const SAMPLES: [(u32, usize); 5] = [(8, 2), (9, 11), (10, 61), (11, 347), (12, 2_081)];

#[test]
fn divisions_at_all_of_eight_to_twelve() {
    let _watchdog = watchdog();
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    let (architectures, count) = (clustered(), AtomicU32::new(0));
    let prove_share = |thread: usize| {
        for (size, sample) in SAMPLES {
            let sample = if is_soak() { 1 } else { sample };
            let (first, stride) = (thread * sample, threads * sample);
            let own = Divisions::new(size).skip(first).step_by(stride);
            for (number, clusters) in (first..).step_by(stride).zip(own) {
                prove_next(&architectures, clusters, number as u32);
                count.fetch_add(1, Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let prove_share = &prove_share;
            scope.spawn(move || prove_share(thread));
        }
    });
    let expected = if is_soak() { 4_140 + 21_147 + 115_975 + 678_570 + 4_213_597 } else { 9_876 };
    assert_eq!(count.load(Relaxed), expected);
}

#[test]
fn divisions_are_as_many_as_there_are() {
    let count = |size| Divisions::new(size).count();
    assert_eq!([1, 2, 3, 4, 7, 8, 9].map(count), [1, 2, 5, 15, 877, 4_140, 21_147]); // Bell's numbers
    let mut all: Vec<_> = Divisions::new(6).collect();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 203);
}

/// Walks all plans with sends that are over only when their message has been received.
fn ends_with_synchronous_sends(plans: Vec<Plan>) -> bool {
    let mut members: Vec<Execution> =
        plans.into_iter().map(|plan| Execution::new(Walk::new(plan))).collect();
    let mut sends: BTreeMap<(u32, u32), VecDeque<u32>> = BTreeMap::new();
    let mut receives = sends.clone();
    let mut goes_on = true;
    while std::mem::take(&mut goes_on) {
        for member in 0..members.len() as u32 {
            while let Some(step) = members[member as usize].begin() {
                goes_on = true;
                match *members[member as usize].action(step) {
                    Action::Send { to, .. } => {
                        sends.entry((member, to)).or_default().push_back(step);
                    }
                    Action::Receive { from, .. } => {
                        receives.entry((from, member)).or_default().push_back(step);
                    }
                    _ => members[member as usize].end(step),
                }
            }
        }
        for (&(from, to), sent) in &mut sends {
            let Some(received) = receives.get_mut(&(from, to)) else { continue };
            while !sent.is_empty() && !received.is_empty() {
                goes_on = true;
                members[from as usize].end(sent.pop_front().unwrap());
                members[to as usize].end(received.pop_front().unwrap());
            }
        }
    }
    members.iter().all(Execution::is_over)
}

/// Any group of 1 to 64: any members in any clusters, in any order.
fn any_group() -> impl Strategy<Value = Group> {
    (1..=SIZE_MAX).prop_flat_map(|size| {
        let members: Vec<u32> = (0..size).collect();
        let clusters = proptest::collection::vec(0..size.isqrt(), size as usize);
        (Just(members).prop_shuffle(), clusters).prop_map(|(members, of)| {
            let mut clusters = vec![Vec::new(); members.len()];
            members.iter().zip(of).for_each(|(&member, of)| clusters[of as usize].push(member));
            clusters.retain(|cluster| !cluster.is_empty());
            Group::of(clusters).unwrap()
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if is_soak() { 20_000 } else { 400 }, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn any_group_whatsoever(group in any_group(), picks in any::<[u32; 4]>(), back in any::<bool>()) {
        let all: Vec<_> = clustered().into_iter().chain(unclustered()).collect();
        let chosen = |pick: u32| all[pick as usize % all.len()].clone();
        let operation = Operation::ALL[picks[0] as usize % 11];
        let root = if operation.has_root() { picks[1] % group.size() } else { 0 };
        let (way, task) = case(&chosen(picks[2]), operation, root, picks[3] % 18, picks[3] % 5 == 0);
        let way = match way {
            Way::Messages { architecture, split, .. } if back => {
                Way::Messages { architecture, release: Some(chosen(picks[3])), split }
            }
            way => way,
        };
        proven(&task, &way, &group);
        // A member that makes only its own plan makes the same.
        let member = picks[3] % group.size();
        let all = plans(&task, &way, &group);
        prop_assert_eq!(&plan_of(&task, &way, &group, member), &all[member as usize]);
        prop_assert!(ends_with_synchronous_sends(all));
    }
}
