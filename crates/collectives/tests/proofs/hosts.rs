//! Plans over the boards of hosts and messages between them, for many placements of members.

use std::sync::Arc;

use landeck_collectives::architecture::Flat;
use landeck_collectives::check::prove;
use landeck_collectives::{Action, Architecture, Group, Operation, Order, Step, Task, Way, plans};

use crate::cases::{ORDERS, SEGMENTS, clustered, is_soak, unclustered, watchdog};
use crate::derivation;
use crate::once::come_once;

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

/// Proves a task, and that the messages between hosts are those of the architecture among as many members as there are
/// hosts, once for each unit of the data.
fn proven(architecture: &Arc<dyn Architecture>, split: bool, task: &Task, group: &Group) {
    let way = Way::Hosts { architecture: architecture.clone(), split };
    let plans = plans(task, &way, group);
    let what = || format!("{} by {way}: {task:?}\nin {:?}", task.operation, group.clusters());
    prove(&plans, task).unwrap_or_else(|fault| panic!("{fault}\n{}", what()));
    come_once(&plans, task, group, &what);
    let hosts = group.hosts();
    let has_root = task.operation.has_root();
    let root = hosts.iter().position(|host| host.contains(&task.root)).unwrap() as u32;
    let driver = |host: usize| {
        if has_root && host as u32 == root { task.root } else { hosts[host][0] }
    };
    let mut between = 0;
    for plan in &plans {
        let host = group.cluster_of(plan.member);
        let goes_away = |step: &&Step| match step.action {
            Action::Send { to, .. } => group.cluster_of(to) != host,
            _ => false,
        };
        let sent = plan.steps.iter().filter(goes_away).count();
        if task.operation == Operation::AllToAll {
            // Each member sends one message to each other host.
            assert_eq!(sent, hosts.len() - 1, "{}", what());
            continue;
        }
        let is_driver = plan.member == driver(host as usize);
        assert!(sent == 0 || is_driver, "{} sends\n{}", plan.member, what());
        between += sent as u64;
    }
    if task.operation != Operation::AllToAll {
        let units = match is_divided(task.operation, split) {
            true => plans[0].segments / hosts.len() as u32,
            false => plans[0].segments,
        };
        let expected = of_drivers(architecture, split, task, group, root);
        assert_eq!(between, expected * u64::from(units), "{}", what());
    }
}

fn is_divided(operation: Operation, split: bool) -> bool {
    use Operation::{AllReduce, Broadcast, Reduce};
    split && matches!(operation, Broadcast | Reduce | AllReduce)
}

/// The messages of one unit between the drivers.
fn of_drivers(
    architecture: &Arc<dyn Architecture>,
    split: bool,
    task: &Task,
    group: &Group,
    root: u32,
) -> u64 {
    let hosts = group.hosts();
    if task.operation == Operation::Broadcast && !split {
        return hosts.len() as u64 - 1;
    }
    let are_runs = hosts.iter().all(|host| host.is_sorted_by(|one, next| one + 1 == *next));
    let operation = match task.operation {
        Operation::Scan | Operation::ExclusiveScan if task.order != Order::Free || !are_runs => {
            Operation::AllGather
        }
        Operation::Scan => Operation::ExclusiveScan,
        operation => operation,
    };
    let root = if operation.has_root() { root } else { 0 };
    let order = if operation.reduces() { task.order } else { Order::Free };
    let between = Task { operation, root, segments: 1, order, in_place: task.in_place };
    let over = Way::Messages { architecture: architecture.clone(), release: None, split };
    let alone = Group::whole(hosts.len() as u32).unwrap();
    derivation::facts(&between, &over, &alone).messages
}

#[test]
fn operations_over_hosts_whatever_the_placement() {
    let _watchdog = watchdog();
    let sizes = if is_soak() { 1..=24 } else { 1..=11 };
    for (number, architecture) in (0..).zip(clustered().into_iter().chain(unclustered())) {
        for size in sizes.clone() {
            // Of large groups a test takes every second number of hosts, the others by the next architecture.
            let is_proven = |placement: &u32| {
                is_soak() || size <= 6 || (number + size + placement / 3).is_multiple_of(2)
            };
            for placement in (0..15).filter(is_proven) {
                let group = placed(size, placement);
                for operation in Operation::ALL {
                    let pick = (number + size + placement) as usize;
                    let order = if operation.reduces() { ORDERS[pick % 3] } else { Order::Free };
                    let may_divide = operation.has_segments() || operation.has_blocks_in_segments();
                    let segments = if may_divide { SEGMENTS[pick / 3 % 3] } else { 1 };
                    let root = if operation.has_root() { pick as u32 * 5 % size } else { 0 };
                    let in_place = pick % 2 == 1;
                    let task = Task { operation, root, segments, order, in_place };
                    for split in [false, true] {
                        proven(&architecture, split, &task, &group);
                    }
                }
            }
        }
    }
}

#[test]
fn operations_over_hosts_at_several_sites() {
    let _watchdog = watchdog();
    for (number, architecture) in (0..).zip(clustered().into_iter().chain(unclustered())) {
        for (size, placement) in (2..=11).flat_map(|size| (0..15).map(move |it| (size, it))) {
            let group = placed(size, placement);
            let hosts: Vec<u32> = (0..size).map(|member| group.cluster_of(member)).collect();
            // Hosts beside each other, or in turn.
            let sites = 1 + (number + size) % 3;
            let site = |host: u32| if placement % 2 == 0 { host / sites } else { host % sites };
            let of_members = hosts.iter().map(|&host| site(host)).collect();
            let group = group.with_levels(vec![hosts]).with_sites(of_members);
            let operation = Operation::ALL[(number + size + placement) as usize % 11];
            let pick = (number + 3 * size + placement) as usize;
            let order = if operation.reduces() { ORDERS[pick % 3] } else { Order::Free };
            let may_divide = operation.has_segments() || operation.has_blocks_in_segments();
            let segments = if may_divide { SEGMENTS[pick / 3 % 3] } else { 1 };
            let root = if operation.has_root() { pick as u32 * 5 % size } else { 0 };
            let task = Task { operation, root, segments, order, in_place: pick % 2 == 1 };
            for split in [false, true] {
                let way = Way::Hosts { architecture: architecture.clone(), split };
                let plans = plans(&task, &way, &group);
                let what = || format!("{way}: {task:?}\nin {group:?}");
                prove(&plans, &task).unwrap_or_else(|fault| panic!("{fault}\n{}", what()));
                come_once(&plans, &task, &group, &what);
            }
        }
    }
}

#[test]
fn an_exchange_between_many_hosts_goes_to_each_board_often() {
    let _watchdog = watchdog();
    let architecture: Arc<dyn Architecture> = Arc::new(Flat);
    for (hosts, each) in [(12, 2), (20, 3)] {
        let size = hosts * each;
        for group in [Group::divided(size, hosts), Group::by(size, |member| member % hosts)] {
            let task = Task::new(Operation::AllToAll);
            proven(&architecture, false, &task, &group.unwrap());
        }
    }
}
