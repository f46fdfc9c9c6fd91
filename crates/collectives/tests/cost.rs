//! The modelled cost of a way, against a walk of the plans of all members: the same messages with the same times, but
//! in the order that the plans themselves allow.

// A helper that finds nothing to unwrap is a test that fails.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, VecDeque};

use landeck_collectives::architecture::{Butterfly, Circulant, Flat, Knomial, Ring};
use landeck_collectives::cost::{Load, Scene};
use landeck_collectives::{
    Action, BoardStyle, Cells, CostParameters, Execution, Group, Links, Operation, Order, Plan,
    Task, Walk, Way, plans,
};

/// The times of a message and a combination in nanoseconds, with the usual figures.
struct Times {
    overhead: f64,
    line: f64,
    inwards: f64,
    out: f64,
    ahead: f64,
    reduction: f64,
}

impl Times {
    fn new(figures: &CostParameters) -> Self {
        let line = figures.line_ps as f64 / 1e3;
        let per_byte = |kib_ps: u64| kib_ps as f64 / 1e3 / 1024.0;
        let out = per_byte(figures.one_copy_kib_ps);
        Self {
            overhead: (figures.message_ps as f64 / 1e3 - line) / 2.0,
            line,
            inwards: per_byte(figures.local_copy_kib_ps),
            out,
            ahead: per_byte(figures.two_copy_kib_ps) - out,
            reduction: per_byte(figures.reduction_kib_ps),
        }
    }
}

/// One member of the walk, with a processor of its own.
struct Member {
    execution: Execution,
    clock: f64,
    /// Steps that wait for a message, by its sender.
    wanted: BTreeMap<u32, VecDeque<u32>>,
}

/// Walks the plans of all members; returns when the last is done.
fn walked_ns(plans: Vec<Plan>, block_bytes: f64, times: &Times) -> f64 {
    let mut members: Vec<Member> = plans
        .into_iter()
        .map(|plan| Member {
            execution: Execution::new(Walk::new(plan)),
            clock: 0.0,
            wanted: BTreeMap::new(),
        })
        .collect();
    // When messages from one to another are there, and how long they are.
    let mut sent: BTreeMap<(u32, u32), VecDeque<(f64, f64)>> = BTreeMap::new();
    loop {
        for number in 0..members.len() as u32 {
            begin(&mut members[number as usize], number, block_bytes, times, &mut sent);
        }
        // The message that is there first is received first: nothing sent later comes before it.
        let arrivals = members.iter().zip(0u32..).flat_map(|(member, number)| {
            let sent = &sent;
            member.wanted.iter().filter_map(move |(&from, _)| {
                let &(arrival, _) = sent.get(&(from, number))?.front()?;
                Some((arrival.max(member.clock), from, number))
            })
        });
        let first = arrivals.min_by(|one, other| one.0.total_cmp(&other.0));
        let Some((at, from, to)) = first else { break };
        let (_, bytes) = sent.get_mut(&(from, to)).unwrap().pop_front().unwrap();
        let member = &mut members[to as usize];
        let step = member.wanted.get_mut(&from).unwrap().pop_front().unwrap();
        member.wanted.retain(|_, steps| !steps.is_empty());
        member.clock = at + times.overhead + times.out * bytes;
        member.execution.end(step);
    }
    assert!(members.iter().all(|member| member.execution.is_over()), "all come to their end");
    members.iter().map(|member| member.clock).fold(0.0, f64::max)
}

/// Performs everything that a member can do without another message.
fn begin(
    member: &mut Member,
    number: u32,
    block_bytes: f64,
    times: &Times,
    sent: &mut BTreeMap<(u32, u32), VecDeque<(f64, f64)>>,
) {
    let bytes = |cells: &[Cells]| {
        let bytes = cells.iter().map(|cells| f64::from(cells.count)).sum::<f64>() * block_bytes;
        if bytes <= 48.0 { 0.0 } else { bytes }
    };
    while let Some(step) = member.execution.begin() {
        match member.execution.action(step) {
            Action::Receive { from, .. } => {
                member.wanted.entry(*from).or_default().push_back(step);
                continue;
            }
            Action::Send { to, cells } => {
                let bytes = bytes(cells);
                let arrival = member.clock + times.overhead + times.line + times.ahead * bytes;
                sent.entry((number, *to)).or_default().push_back((arrival, bytes));
                member.clock += times.overhead + times.inwards * bytes;
            }
            Action::Combine { into, .. } => member.clock += times.reduction * bytes(&[*into]),
            Action::Copy { .. } => {} // one's own block: the model leaves it out
            other => panic!("{other} is not of messages"),
        }
        member.execution.end(step);
    }
}

fn blocks(operation: Operation, size: u32, segments: u32) -> u32 {
    match operation {
        Operation::AllToAll => size * size,
        operation if operation.has_segments() => segments,
        Operation::Barrier => 1,
        _ => size,
    }
}

fn compare(operation: Operation, way: &Way, size: u32, bytes: u64) -> (f64, f64) {
    let figures = CostParameters::default();
    let group = Group::whole(size).unwrap();
    let scene = Scene {
        figures: &figures,
        group: &group,
        processes: size,
        processors: size,
        sharing_hosts: 1,
        clusters_are_hosts: false,
        links: &Links::default(),
    };
    let is_split = matches!(way, Way::Messages { split: true, .. });
    let segments = if is_split && operation.has_segments() { size } else { 1 };
    let bytes = if operation == Operation::Barrier { 0 } else { bytes };
    let model = scene.cost_ns(&Load { operation, bytes, segments, order: Order::Free }, way);
    let task = Task { segments, ..Task::new(operation) };
    let block_bytes = bytes as f64 / f64::from(blocks(operation, size, segments));
    (model, walked_ns(plans(&task, way, &group), block_bytes, &Times::new(&figures)))
}

fn is_near(operation: Operation, way: &Way, size: u32, bytes: u64, factor: f64) {
    let (model, walked) = compare(operation, way, size, bytes);
    assert!(
        model <= factor * walked && walked <= factor * model,
        "{operation} by {way}, {size} members, {bytes} B: {model} ns in the model, {walked} walked"
    );
}

const SIZES: [u32; 7] = [2, 3, 4, 7, 8, 16, 23];
const BYTES: [u64; 3] = [8, 4096, 1 << 20];

#[test]
fn one_message_costs_what_was_measured() {
    let figures = CostParameters::default();
    for (bytes, expected_ps) in
        [(8, figures.message_ps), (1 << 20, figures.message_ps + 1024 * figures.two_copy_kib_ps)]
    {
        let (model, walked) = compare(Operation::Broadcast, &Way::by(Flat), 2, bytes);
        let expected = expected_ps as f64 / 1e3;
        assert!((model - expected).abs() < 1.0 && (walked - expected).abs() < 1.0, "{model}");
    }
}

#[test]
fn trees_cost_what_their_plans_cost() {
    for way in [Way::by(Flat), Way::by(Knomial::BINOMIAL), Way::by(Knomial::new(4))] {
        for operation in
            [Operation::Broadcast, Operation::Scatter, Operation::Gather, Operation::Reduce]
        {
            for (size, bytes) in SIZES.into_iter().flat_map(|n| BYTES.map(|bytes| (n, bytes))) {
                is_near(operation, &way, size, bytes, 1.35);
            }
        }
    }
}

#[test]
fn rounds_cost_what_their_plans_cost() {
    let ways = [Way::by(Butterfly), Way::by(Ring), Way::by(Circulant)];
    for way in ways {
        for operation in [Operation::Barrier, Operation::AllGather, Operation::ReduceScatter] {
            for (size, bytes) in SIZES.into_iter().flat_map(|n| BYTES.map(|bytes| (n, bytes))) {
                // A plan need not wait for a round whose messages it does not pass on.
                is_near(operation, &way, size, bytes, 1.7);
            }
        }
    }
}

#[test]
fn whole_and_split_reductions_cost_what_their_plans_cost() {
    for way in [Way::by(Butterfly), Way::split_by(Butterfly), Way::by(Knomial::BINOMIAL)] {
        for (size, bytes) in SIZES.into_iter().flat_map(|n| BYTES.map(|bytes| (n, bytes))) {
            is_near(Operation::AllReduce, &way, size, bytes, 1.5);
        }
    }
}

#[test]
fn exchanges_cost_what_their_plans_cost() {
    for (size, bytes) in [2, 3, 4, 8, 13].into_iter().flat_map(|n| BYTES.map(|bytes| (n, bytes))) {
        is_near(Operation::AllToAll, &Way::by(Flat), size, bytes, 1.5);
        is_near(Operation::AllToAll, &Way::by(Butterfly), size, bytes, 2.0);
    }
}

#[test]
fn the_board_costs_a_word_and_a_line_or_a_rotation() {
    let figures = CostParameters::default();
    let barrier = |size, processors| {
        let group = Group::whole(size).unwrap();
        let scene = Scene {
            figures: &figures,
            group: &group,
            processes: size,
            processors,
            sharing_hosts: 1,
            clusters_are_hosts: false,
            links: &Links::default(),
        };
        let load =
            Load { operation: Operation::Barrier, bytes: 0, segments: 1, order: Order::Free };
        scene.cost_ns(&load, &Way::Board(BoardStyle::Each)) * 1e3
    };
    assert_eq!(barrier(2, 2), (figures.line_ps + figures.deposit_ps) as f64);
    assert_eq!(barrier(32, 2), (16 * (figures.switch_ps + figures.deposit_ps)) as f64);
}

#[test]
fn where_processors_are_shared_each_step_down_costs_a_rotation() {
    let figures = CostParameters::default();
    let group = Group::whole(8).unwrap();
    let scene = Scene {
        figures: &figures,
        group: &group,
        processes: 8,
        processors: 2,
        sharing_hosts: 1,
        clusters_are_hosts: false,
        links: &Links::default(),
    };
    let cost = |way: &Way| {
        let (operation, order) = (Operation::Broadcast, Order::Free);
        scene.cost_ns(&Load { operation, bytes: 8, segments: 1, order }, way)
    };
    let rotation = 4.0 * figures.switch_ps as f64 / 1e3;
    let flat = cost(&Way::by(Flat));
    assert!(flat > rotation && flat < 1.5 * rotation, "{flat}");
    let binomial = cost(&Way::by(Knomial::BINOMIAL));
    assert!(binomial > 3.0 * rotation && binomial < 3.5 * rotation, "{binomial}");
}
