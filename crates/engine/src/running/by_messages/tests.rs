//! Plans over hosts for blocks that differ in length, walked for all members in memory.
//!
//! Each message must have the length that its receiver expects, and each deposit the length that those who take of it
//! expect. Each member must have its result in the end, and each block must have gone once to each host.

use std::collections::VecDeque;
use std::sync::Arc;

use landeck_arithmetic::Operation::Sum;
use landeck_arithmetic::{Element, Reduction};
use landeck_collectives::architecture::{Butterfly, Flat};
use landeck_collectives::{
    Action, Architecture, Cells, Group, Operation, Order, Plan, Task, Way, plans, plans_of_started,
};
use landeck_kernel::Area;
use landeck_memory::{Buffer, Bytes};

use super::bound;
use crate::binding::{Binding, Blocks, Owned};
use crate::call::Call;
use crate::call::options::CallOptions;

/// The length of an element.
const WORD: usize = 8;

/// A member with its data, and how far it is in its plan.
struct Member {
    plan: Plan,
    binding: Binding,
    /// The memory that the binding leads to.
    _input: Vec<u64>,
    output: Vec<u64>,
    next: usize,
    /// Its deposits, one of each visit to the board.
    laid: Vec<Vec<u8>>,
}

/// All members of a group, with the messages between them.
struct Members {
    members: Vec<Member>,
    /// By receiver: messages with their senders.
    sent: Vec<VecDeque<(u32, Vec<u8>)>>,
    /// The bytes that went from host to host.
    between_bytes: usize,
    group: Group,
}

/// The value of an element: of which member, of which block, in which place.
fn value(member: usize, block: usize, place: usize) -> u64 {
    (member * 1_000_003 + block * 10_007 + place) as u64
}

fn packed(area: &Area) -> Vec<u8> {
    let owned = Owned::new(area.packed_bytes() as usize);
    area.copy_to(&Area::contiguous(owned.buffer()));
    owned.buffer().bytes().to_vec()
}

fn sum(one: &[u8], other: &[u8]) -> Vec<u8> {
    let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap());
    let pairs = one.chunks(WORD).zip(other.chunks(WORD));
    pairs.flat_map(|(one, other)| word(one).wrapping_add(word(other)).to_ne_bytes()).collect()
}

/// The memory of a member: in an allgather one block and room for all; in a reduce-scatter all blocks and room for one.
fn member(plan: Plan, task: &Task, lengths: &[usize]) -> Member {
    let own = plan.member as usize;
    let total: usize = lengths.iter().sum();
    let starts = (0..lengths.len()).map(|at| lengths[..at].iter().sum::<usize>() * WORD);
    let places = starts.zip(lengths).map(|(start, length)| (start, length * WORD)).collect();
    let gathers = task.operation == Operation::AllGather;
    let block = |of: usize| (0..lengths[of]).map(move |place| value(own, of, place));
    let (mut input, mut output): (Vec<u64>, Vec<u64>) = match gathers {
        true => (block(own).collect(), vec![0; total]),
        false => ((0..lengths.len()).flat_map(block).collect(), vec![0; lengths[own]]),
    };
    if gathers && task.in_place {
        let start: usize = lengths[..own].iter().sum();
        output[start..start + lengths[own]].copy_from_slice(&input);
        input.fill(u64::MAX);
    }
    // SAFETY: both vectors stay as they are as long as the binding is used, and nobody looks at them meanwhile.
    let (given, taken) =
        unsafe { (Buffer::of_mut(&mut input[..]), Buffer::of_mut(&mut output[..])) };
    let call = Call::new(task.operation, &CallOptions::default());
    let (input_blocks, output_blocks) = match gathers {
        true => (Blocks::of(given), Blocks::Placed(taken, places)),
        false => (Blocks::Placed(given, places), Blocks::of(taken)),
    };
    let call = Call {
        input: input_blocks,
        output: output_blocks,
        operator: (!gathers).then(|| Reduction::new(Sum, Element::U64).unwrap().into()),
        in_place: task.in_place,
        is_varying: gathers,
        ..call
    };
    let binding = bound(&call, &plan, plan.segments);
    Member { plan, binding, _input: input, output, next: 0, laid: Vec::new() }
}

impl Members {
    fn walk(&mut self) {
        while self.members.iter().any(|member| member.next < member.plan.steps.len()) {
            let mut any = false;
            for at in 0..self.members.len() {
                while self.step(at) {
                    self.members[at].next += 1;
                    any = true;
                }
            }
            assert!(any, "nobody goes on");
        }
    }

    fn area(&self, at: usize, cells: Cells) -> Area {
        self.members[at].binding.area(cells)
    }

    /// Does the next step of a member. False if it waits, or there is none.
    fn step(&mut self, at: usize) -> bool {
        let member = &self.members[at];
        let Some(step) = member.plan.steps.get(member.next) else { return false };
        match step.action.clone() {
            Action::Send { to, cells } => {
                let bytes = packed(&member.binding.message(&cells));
                let host = |member: usize| self.group.cluster_of(member as u32);
                self.between_bytes += if host(at) == host(to as usize) { 0 } else { bytes.len() };
                self.sent[to as usize].push_back((at as u32, bytes));
            }
            Action::Receive { from, cells } => {
                let of = |(sender, _): &(u32, Vec<u8>)| *sender == from;
                let Some(found) = self.sent[at].iter().position(of) else { return false };
                let (_, bytes) = self.sent[at].remove(found).unwrap();
                let area = member.binding.message(&cells);
                assert_eq!(area.packed_bytes(), bytes.len() as u64, "from {from} to {at}");
                area.write(0, Bytes::from(&bytes[..]));
            }
            Action::Copy { from, into } => self.area(at, from).copy_to(&self.area(at, into)),
            Action::Combine { left, right, into } => {
                let sum = sum(&packed(&self.area(at, left)), &packed(&self.area(at, right)));
                self.area(at, into).write(0, Bytes::from(&sum[..]));
            }
            Action::Deposit { cells, .. } => {
                let bytes = packed(&self.area(at, cells));
                assert_eq!(member.binding.bytes(cells), bytes.len(), "the deposit of {at}");
                self.members[at].laid.push(bytes);
            }
            Action::Take { from, deposited, into, .. } => {
                let Some(bytes) = self.found(at, from, deposited, into) else { return false };
                self.area(at, into).write(0, Bytes::from(&bytes[..]));
            }
            Action::CombineDeposits { members, deposited, into } => {
                let of_all = (0..member.plan.size).collect();
                let board = &member.plan.board;
                let here: Vec<u32> = if board.is_empty() { of_all } else { board.clone() };
                let mut all = vec![0; member.binding.bytes(into)];
                for from in here.into_iter().take(members as usize) {
                    let bytes = match from as usize == at {
                        true => Some(packed(&self.area(at, deposited))),
                        false => self.found(at, from, deposited, into),
                    };
                    let Some(bytes) = bytes else { return false };
                    all = sum(&all, &bytes);
                }
                self.area(at, into).write(0, Bytes::from(&all[..]));
            }
            other => panic!("{other}"),
        }
        true
    }

    /// Some blocks of the deposit that another member has made in this member's visit.
    fn found(&self, at: usize, from: u32, deposited: Cells, into: Cells) -> Option<Vec<u8>> {
        let memory = &self.members[at].binding;
        let visit = self.members[at].laid.len() - 1;
        let bytes = self.members[from as usize].laid.get(visit)?;
        assert_eq!(memory.bytes(deposited), bytes.len(), "{at} takes from {from}");
        let before = Cells { count: into.first - deposited.first, ..deposited };
        let start = memory.bytes(before);
        Some(bytes[start..start + memory.bytes(into)].to_vec())
    }
}

/// Walks these plans and compares what members have in the end.
fn check(plans: Vec<Plan>, task: &Task, group: &Group, lengths: &[usize], goes_once: bool) {
    let what = || format!("{task:?} of {lengths:?}\nin {:?}", group.hosts());
    let size = lengths.len();
    let members: Vec<Member> = plans.into_iter().map(|plan| member(plan, task, lengths)).collect();
    let sent = (0..size).map(|_| VecDeque::new()).collect();
    let mut all = Members { members, sent, between_bytes: 0, group: group.clone() };
    all.walk();
    for (at, member) in all.members.iter().enumerate() {
        let expected: Vec<u64> = match task.operation {
            Operation::AllGather => (0..size)
                .flat_map(|of| (0..lengths[of]).map(move |place| value(of, of, place)))
                .collect(),
            _ => (0..lengths[at])
                .map(|place| (0..size).map(|of| value(of, at, place)).sum())
                .collect(),
        };
        assert_eq!(member.output, expected, "{at}: {}", what());
    }
    let total_bytes: usize = lengths.iter().sum::<usize>() * WORD;
    if goes_once {
        assert_eq!(all.between_bytes, (group.hosts().len() - 1) * total_bytes, "{}", what());
    }
}

/// So many members on hosts: in blocks, in turn, or as chance has it.
fn placed(size: u32, number: u32, random: &mut landeck_testing::Random) -> Group {
    let hosts = 1 + number / 3 % 4;
    let keys: Vec<u32> = (0..size)
        .map(|member| match number % 3 {
            0 => member * hosts / size,
            1 => member % hosts,
            _ => random.below(u64::from(hosts)) as u32,
        })
        .collect();
    Group::by(size, |member| keys[member as usize]).unwrap()
}

/// Lengths of blocks: of some members nothing, of one much, or of nobody anything.
fn lengths(size: u32, number: u32, random: &mut landeck_testing::Random) -> Vec<usize> {
    let length = |member: u32| match number % 4 {
        0 => 0,
        1 => {
            if member == size / 2 {
                0
            } else {
                1 + random.below(9) as usize
            }
        }
        2 => {
            if member == size / 2 {
                700
            } else {
                member as usize % 3
            }
        }
        _ => random.below(40) as usize,
    };
    (0..size).map(length).collect()
}

#[test]
fn blocks_of_different_lengths_come_whole_and_go_once_to_each_host() {
    let _watchdog = landeck_testing::Watchdog::start(std::time::Duration::from_secs(120));
    let mut random = landeck_testing::Random::new(landeck_testing::seed());
    let architectures: [Arc<dyn Architecture>; 2] = [Arc::new(Butterfly), Arc::new(Flat)];
    for (size, number) in (1..=9).flat_map(|size| (0..12).map(move |number| (size, number))) {
        let group = placed(size, number, &mut random);
        for operation in [Operation::AllGather, Operation::ReduceScatter] {
            let lengths = lengths(size, number + size, &mut random);
            let in_place = operation == Operation::AllGather && number % 2 == 1;
            for segments in [1, 4] {
                let (root, order) = (0, Order::Free);
                let task = Task { operation, root, segments, order, in_place };
                for architecture in &architectures {
                    let way = Way::Hosts { architecture: architecture.clone(), split: false };
                    check(plans(&task, &way, &group), &task, &group, &lengths, true);
                }
            }
            if group.hosts().len() > 1 {
                let (root, segments, order) = (0, 1, Order::Free);
                let task = Task { operation, root, segments, order, in_place };
                let last = |host: Vec<u32>| host[number as usize % host.len()];
                let drivers: Vec<u32> = group.hosts().into_iter().map(last).collect();
                let plans = plans_of_started(&task, &group, &drivers);
                check(plans, &task, &group, &lengths, false);
            }
        }
    }
}
