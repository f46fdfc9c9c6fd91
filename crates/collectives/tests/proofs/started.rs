//! Plans of started operations over hosts, whichever members come last to the boards of their hosts.

use landeck_collectives::check::prove;
use landeck_collectives::{
    Action, Group, Operation, Order, Plan, Task, plan_of_started, plans_of_started,
};

use crate::cases::{ORDERS, is_soak, watchdog};
use crate::hosts::placed;

/// The members that need something of another host: each gets one message of its driver.
fn expected_messages(task: &Task, group: &Group) -> u64 {
    let hosts = group.hosts();
    let needs = |member: u32, host: &Vec<u32>| match task.operation {
        Operation::Broadcast | Operation::Scatter => host.contains(&task.root),
        Operation::Gather | Operation::Reduce => member == task.root,
        Operation::Scan | Operation::ExclusiveScan => host.iter().any(|&from| from < member),
        _ => true,
    };
    let of_host = |host: &Vec<u32>| {
        (0..group.size()).filter(|member| !host.contains(member) && needs(*member, host)).count()
    };
    hosts.iter().map(|host| of_host(host) as u64).sum()
}

/// The plan with the first member of a host in the place of whichever member sends for it.
fn without_senders(plan: &Plan, hosts: &[Vec<u32>]) -> Plan {
    let mut plan = plan.clone();
    for step in &mut plan.steps {
        if let Action::Receive { from, .. } = &mut step.action {
            *from = hosts.iter().find(|host| host.contains(from)).unwrap()[0];
        }
    }
    plan
}

fn proven(task: &Task, group: &Group, pick: u32) {
    let hosts = group.hosts();
    let last = |(number, host): (usize, &Vec<u32>)| {
        host[(pick as usize / (number + 1) + number) % host.len()]
    };
    let drivers: Vec<u32> = hosts.iter().enumerate().map(last).collect();
    let plans = plans_of_started(task, group, &drivers);
    let what = || format!("{task:?}\nin {hosts:?}, driven by {drivers:?}");
    let facts = prove(&plans, task).unwrap_or_else(|fault| panic!("{fault}\n{}", what()));
    assert_eq!(facts.messages, expected_messages(task, group), "{}", what());
    let has_root_alone = matches!(task.operation, Operation::Broadcast | Operation::Scatter);
    for (member, plan) in (0..).zip(&plans) {
        let drives = drivers.contains(&member);
        let [own, other] =
            [drives, !drives].map(|drives| plan_of_started(task, group, member, drives));
        let is_same = without_senders(&own, &hosts) == without_senders(plan, &hosts);
        assert!(is_same, "{member}: {own:?}\n{plan:?}\n{}", what());
        let host = hosts.iter().find(|host| host.contains(&member)).unwrap();
        if host.len() > 1 && !has_root_alone {
            let first = |plan: &Plan| plan.steps[0].clone();
            assert!(matches!(first(plan).action, Action::Deposit { .. }), "{}", what());
            assert_eq!(first(&own), first(&other), "{}", what());
            assert_eq!((own.visits(), other.visits()), (1, 1));
        }
    }
}

#[test]
fn started_operations_over_hosts_whoever_comes_last() {
    let _watchdog = watchdog();
    let sizes = if is_soak() { 2..=20 } else { 2..=9 };
    for size in sizes {
        for placement in 0..15 {
            let group = placed(size, placement);
            if group.hosts().len() < 2 {
                continue;
            }
            for operation in Operation::ALL {
                for pick in 0..6 {
                    let number = pick + size + placement;
                    let order =
                        if operation.reduces() { ORDERS[number as usize % 3] } else { Order::Free };
                    let root = if operation.has_root() { number * 5 % size } else { 0 };
                    let in_place = number % 2 == 1;
                    let task = Task { operation, root, segments: 1, order, in_place };
                    proven(&task, &group, pick * 7 + size);
                }
            }
        }
    }
}
