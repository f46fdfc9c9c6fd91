//! No data go twice to a host: plans over hosts by all architectures, and the ways that the table chooses.

use std::collections::BTreeSet;

use landeck_collectives::{
    Action, Facts, Group, Link, Links, Operation, Plan, Settings, Table, Task, Way, WayRequest,
    plans,
};

use crate::cases::{unclustered, watchdog};

/// Checks that no block goes twice to a host. Blocks with sums are other data each time.
pub(crate) fn come_once(plans: &[Plan], task: &Task, group: &Group, what: &impl Fn() -> String) {
    use Operation::{AllGather, Broadcast, Gather, Scatter};
    if !matches!(task.operation, Broadcast | Scatter | Gather | AllGather) {
        return;
    }
    let hosts = group.hosts().len();
    let mut come = vec![BTreeSet::new(); hosts];
    for plan in plans {
        let host = group.cluster_of(plan.member);
        for step in &plan.steps {
            let Action::Receive { from, cells } = &step.action else { continue };
            if group.cluster_of(*from) == host {
                continue;
            }
            for block in cells.iter().flat_map(|cells| cells.blocks()) {
                let is_new = come[host as usize].insert(block);
                assert!(is_new, "{block} comes twice to host {host}\n{}", what());
            }
        }
    }
    if task.operation == Broadcast {
        let all: usize = come.iter().map(BTreeSet::len).sum();
        assert_eq!(all, (hosts - 1) * plans[0].segments as usize, "{}", what());
    }
}

#[test]
fn no_block_goes_twice_to_a_host_with_one_member() {
    let _watchdog = watchdog();
    for (size, architecture) in
        (1..=11).flat_map(|size| unclustered().into_iter().map(move |of| (size, of)))
    {
        let group = Group::divided(size, size).unwrap();
        for (operation, split) in
            Operation::ALL.into_iter().flat_map(|of| [(of, false), (of, true)])
        {
            let root = if operation.has_root() { size / 2 } else { 0 };
            let way = Way::Messages { architecture: architecture.clone(), release: None, split };
            let task = Task { root, ..Task::new(operation) };
            let what = || format!("{task:?} by {way}, {size} hosts");
            come_once(&plans(&task, &way, &group), &task, &group, &what);
        }
    }
}

/// The placements of eight members: blocks, in turn, and uneven hosts.
const PLACEMENTS: [&[&[u32]]; 4] = [
    &[&[0, 1], &[2, 3], &[4, 5], &[6, 7]],
    &[&[0, 4], &[1, 5], &[2, 6], &[3, 7]],
    &[&[0, 2, 4, 6], &[1, 3, 5, 7]],
    &[&[0, 2, 3, 6, 7], &[1], &[4, 5]],
];

/// A group at these hosts, whose links are alike but for those of host 1, which take `slower` times as long.
fn over_hosts(hosts: &[&[u32]], kib_ps: u64, slower: u64) -> Facts {
    let mut links = Links::default();
    for (low, high) in (0..hosts.len()).flat_map(|high| (0..high).map(move |low| (low, high))) {
        let kib_ps = if low == 1 || high == 1 { kib_ps * slower } else { kib_ps };
        links.set(low, high, Link { latency_ps: 20_000_000, gap_ps: 4_000_000, kib_ps });
    }
    Facts {
        group: Group::of(hosts.iter().map(|host| host.to_vec()).collect()).unwrap(),
        processes: 1,
        processors: 2,
        sharing_hosts: 1,
        has_board: false,
        hosts_have_boards: true,
        board_bytes: 0,
        settings: Settings::default(),
        links,
    }
}

#[test]
fn no_choice_sends_data_twice_to_a_host() {
    use Operation::{AllGather, Broadcast, Gather, Scatter};
    let _watchdog = watchdog();
    let speeds = [(20_000, 1), (300_000, 1), (1_000_000, 1), (1_000_000, 10)];
    for (hosts, (kib_ps, slower)) in
        PLACEMENTS.iter().flat_map(|hosts| speeds.map(|speed| (hosts, speed)))
    {
        let facts = over_hosts(hosts, kib_ps, slower);
        let group = facts.group.clone();
        let table = Table::new(facts);
        for octave in (0..=24).step_by(2) {
            for operation in [Broadcast, Scatter, Gather, AllGather] {
                let choice = table.look_up(&WayRequest::new(operation, 1 << octave));
                let root = if operation.has_root() { octave % 8 } else { 0 };
                let (segments, order) = (choice.segments, choice.order);
                let task = Task { root, segments, order, ..Task::new(operation) };
                let what = || format!("{operation} of 2^{octave} in {hosts:?}: {choice:?}");
                come_once(&plans(&task, &choice.way, &group), &task, &group, &what);
            }
        }
    }
}
