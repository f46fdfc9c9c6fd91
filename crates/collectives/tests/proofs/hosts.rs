//! Plans over the boards of hosts and messages between them, for many placements of members.

use std::sync::Arc;

use landeck_collectives::check::prove;
use landeck_collectives::{
    Architecture, Group, Operation, Order, Task, Way, is_derived_over_hosts, plans,
};

use crate::cases::{ORDERS, SEGMENTS, clustered, is_soak, unclustered, watchdog};
use crate::derivation;

/// The placement of so many members: blocks of some, round robin, or as chance has it.
pub(crate) fn placed(size: u32, number: u32) -> Group {
    let hosts = 1 + number / 3 % 5;
    let mut word = u64::from(size * 7_919 + number);
    let key = move |member: u32| {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        match number % 3 {
            0 => member * hosts / size,
            1 => member % hosts,
            _ => (word >> 33) as u32 % hosts,
        }
    };
    let keys: Vec<u32> = (0..size).map(key).collect();
    Group::by(size, |member| keys[member as usize]).unwrap()
}

/// Proves a task, and that its messages are those of the architecture among as many members as there are hosts.
fn proven(architecture: &Arc<dyn Architecture>, split: bool, task: &Task, group: &Group) {
    let way = Way::Hosts { architecture: architecture.clone(), split };
    let plans = plans(task, &way, group);
    let what = || format!("{} by {way}: {task:?}\nin {:?}", task.operation, group.clusters());
    let facts = prove(&plans, task).unwrap_or_else(|fault| panic!("{fault}\n{}", what()));
    let hosts = group.hosts();
    let root = hosts.iter().position(|host| host.contains(&task.root)).unwrap() as u32;
    let has_root = task.operation.has_root();
    let operation = match task.operation {
        Operation::Scan => Operation::ExclusiveScan,
        operation => operation,
    };
    let between = Task { operation, root: if has_root { root } else { 0 }, ..*task };
    let over = Way::Messages { architecture: architecture.clone(), release: None, split };
    let alone = Group::whole(hosts.len() as u32).unwrap();
    if task.operation == Operation::AllToAll {
        // Each member sends one message to each other host.
        assert!(facts.sent.iter().all(|&sent| sent as usize == hosts.len() - 1), "{}", what());
        return;
    }
    let expected = derivation::facts(&between, &over, &alone);
    assert_eq!(facts.messages, expected.messages, "{}", what());
    if task.operation == Operation::Broadcast && !split {
        assert_eq!(facts.messages, (hosts.len() as u64 - 1) * u64::from(task.segments));
    }
    for (member, sent) in (0..).zip(facts.sent) {
        let host = group.cluster_of(member) as usize;
        let driver = if has_root && host as u32 == root { task.root } else { hosts[host][0] };
        assert!(sent == 0 || member == driver, "{member} sends\n{}", what());
    }
}

#[test]
fn operations_over_hosts_whatever_the_placement() {
    let _watchdog = watchdog();
    let sizes = if is_soak() { 1..=24 } else { 1..=11 };
    for (number, architecture) in (0..).zip(clustered().into_iter().chain(unclustered())) {
        for size in sizes.clone() {
            for placement in 0..15 {
                let group = placed(size, placement);
                for operation in Operation::ALL {
                    let pick = (number + size + placement) as usize;
                    let order = if operation.reduces() { ORDERS[pick % 3] } else { Order::Free };
                    let segments =
                        if operation.has_segments() { SEGMENTS[pick / 3 % 3] } else { 1 };
                    let root = if operation.has_root() { pick as u32 * 5 % size } else { 0 };
                    let in_place = pick % 2 == 1;
                    let task = Task { operation, root, segments, order, in_place };
                    if !is_derived_over_hosts(&task, &group) {
                        continue;
                    }
                    for split in [false, true] {
                        proven(&architecture, split, &task, &group);
                    }
                }
            }
        }
    }
}
