//! Each fault is found: plans that are right, each broken in one way.
#![allow(clippy::unwrap_used)] // tests may

use landeck_collectives::architecture::{Flat, Knomial};
use landeck_collectives::check::{Facts, PlanFault, Wait, prove};
use landeck_collectives::{
    Action, BoardStyle, Cells, Group, Operation, Order, Plan, Program, Readers, Step, Store, Task,
    Way, plans,
};

const SCRATCH: Store = Store::Scratch(0);

/// The right plans of a task for three members by the flat architecture.
fn flat(task: &Task) -> Vec<Plan> {
    plans(task, &Way::by(Flat), &Group::whole(3).unwrap())
}

fn on_board(task: &Task, style: BoardStyle) -> Vec<Plan> {
    plans(task, &Way::Board(style), &Group::whole(3).unwrap())
}

fn block(store: Store, number: u32) -> Cells {
    Cells::new(store, number, 1)
}

/// Returns the fault that `prove` finds in the plans after `change`; before it they are right.
fn broken(task: &Task, mut plans: Vec<Plan>, change: impl Fn(&mut [Plan])) -> PlanFault {
    assert!(prove(&plans, task).is_ok());
    change(&mut plans);
    prove(&plans, task).unwrap_err()
}

/// Proves the plans of a program written by hand, as it stands.
fn written(task: &Task, size: u32, write: impl Fn(&mut Program)) -> Result<Facts, PlanFault> {
    let mut program = Program::new(task.operation, task.root, 1, size, None);
    write(&mut program);
    prove(&program.finish(), task)
}

fn step(action: Action) -> Step {
    Step { action, after: vec![], behind: None }
}

const BROADCAST: Task = Task::new(Operation::Broadcast);
const REDUCE: Task = Task::new(Operation::Reduce);
const GATHER: Task = Task::new(Operation::Gather);
const ALL_REDUCE: Task = Task::new(Operation::AllReduce);
const OUTPUT: Cells = Cells::new(Store::Output, 0, 1);
const INPUT: Cells = Cells::new(Store::Input, 0, 1);

#[test]
fn plans_of_something_else() {
    let fault = broken(&BROADCAST, flat(&BROADCAST), |plans| plans.swap(1, 2));
    assert_eq!(fault, PlanFault::OtherPlan { place: 1, size: 3 });
    let other = Task { root: 1, ..BROADCAST };
    assert_eq!(prove(&flat(&BROADCAST), &other), Err(PlanFault::OtherPlan { place: 0, size: 3 }));
}

#[test]
fn a_step_that_waits_for_a_later_one() {
    let fault = broken(&BROADCAST, flat(&BROADCAST), |plans| plans[0].steps[0].after = vec![1]);
    assert_eq!(fault, PlanFault::WaitsForLater { member: 0, step: 0, before: 1 });
}

#[test]
fn a_message_to_nobody_else() {
    for peer in [0, 3] {
        let fault = broken(&BROADCAST, flat(&BROADCAST), |plans| {
            plans[0].steps[1].action = Action::Send { to: peer, cells: vec![OUTPUT] };
        });
        assert_eq!(fault, PlanFault::NoPeer { member: 0, step: 1, peer });
    }
}

#[test]
fn a_written_input() {
    let copy = Action::Copy { from: OUTPUT, into: INPUT };
    let fault = broken(&REDUCE, flat(&REDUCE), |plans| plans[0].steps.push(step(copy.clone())));
    assert_eq!(fault, PlanFault::InputWritten { member: 0, step: 5, block: 0 });
}

#[test]
fn blocks_without_room() {
    let fault = broken(&REDUCE, flat(&REDUCE), |plans| plans[0].scratch.clear());
    assert_eq!(fault, PlanFault::NoRoom { member: 0, step: 0, store: SCRATCH, block: 0 });
    let fault = broken(&GATHER, flat(&GATHER), |plans| {
        let into = block(Store::Output, 1);
        let from = block(Store::Input, 1);
        plans[1].steps.push(step(Action::Copy { from, into })); // only the root has an output
    });
    assert_eq!(fault, PlanFault::NoRoom { member: 1, step: 1, store: Store::Output, block: 1 });
}

#[test]
fn blocks_of_different_numbers() {
    let fault = broken(&GATHER, flat(&GATHER), |plans| {
        let from = block(Store::Input, 0);
        plans[0].steps[0].action = Action::Copy { from, into: block(Store::Output, 1) };
    });
    assert_eq!(fault, PlanFault::OtherBlock { member: 0, step: 0 });
}

#[test]
fn steps_at_one_block_at_once() {
    // Without its wait the combination reads while the message is still coming.
    let fault = broken(&REDUCE, flat(&REDUCE), |plans| plans[0].steps[1].after.clear());
    let race =
        |first, second| PlanFault::Race { member: 0, first, second, store: SCRATCH, block: 0 };
    assert_eq!(fault, race(0, 1));
}

#[test]
fn messages_that_may_begin_in_either_order() {
    let task = Task { segments: 2, ..BROADCAST };
    let fault = broken(&task, flat(&task), |plans| plans[1].steps[1].behind = None);
    assert_eq!(fault, PlanFault::NoOrder { member: 1, first: 0, second: 1, peer: 0 });
}

#[test]
fn a_wait_is_seen_through_others() {
    let mut plans = flat(&REDUCE);
    plans[0].steps[2].after = vec![1];
    plans[0].steps[3].after = vec![2]; // which waits for step 1
    assert_eq!(prove(&plans, &REDUCE).map(|facts| facts.messages), Ok(2));
}

#[test]
fn ends_that_differ() {
    let task = Task { segments: 2, ..BROADCAST };
    let fault = broken(&task, flat(&task), |plans| {
        let cells = vec![block(Store::Output, 1)];
        plans[1].steps[0].action = Action::Receive { from: 0, cells };
        plans[1].steps[1].after = vec![0];
    });
    let (sent, received) = (vec![0], vec![1]);
    let differ =
        PlanFault::EndsDiffer { from: 0, sent_at: 0, to: 1, received_at: 0, sent, received };
    assert_eq!(fault, differ);
}

#[test]
fn messages_without_another_end() {
    let fault = broken(&BROADCAST, flat(&BROADCAST), |plans| plans[2].steps.clear());
    assert_eq!(fault, PlanFault::NotReceived { from: 0, to: 2, step: 1 });
    let fault = broken(&BROADCAST, flat(&BROADCAST), |plans| plans[0].steps.truncate(1));
    assert_eq!(fault, PlanFault::NotSent { from: 0, to: 2, step: 0 });
}

#[test]
fn members_that_wait_for_each_other() {
    let task = Task::new(Operation::AllGather);
    let group = Group::whole(2).unwrap();
    let fault = broken(&task, plans(&task, &Way::by(Knomial::BINOMIAL), &group), |plans| {
        for plan in plans {
            plan.steps.swap(1, 2); // both receive first,
            plan.steps[2].after = vec![0, 1]; // and send afterwards
            plan.steps[1].after = vec![];
            let peer = 1 - plan.member;
            let cells = |number| vec![block(Store::Output, number)];
            plan.steps[1].action = Action::Receive { from: peer, cells: cells(peer) };
            plan.steps[2].action = Action::Send { to: peer, cells: cells(plan.member) };
        }
    });
    let wait = |member| Wait { member, step: 1, peer: Some(1 - member) };
    assert_eq!(fault, PlanFault::Deadlock(vec![wait(0), wait(1)]));
    assert!(fault.to_string().contains("member 0 (step 1) waits for 1; member 1"), "{fault}");
}

#[test]
fn a_deadlock_that_only_eager_sends_hide() {
    // Both wait for the end of their send before they receive.
    let result = written(&Task::new(Operation::Barrier), 2, |program| {
        program.words(&[(0, 1), (1, 0)]);
    });
    assert!(result.is_ok());
    let mut program = Program::new(Operation::Barrier, 0, 1, 2, None);
    program.words(&[(0, 1), (1, 0)]);
    let mut plans = program.finish();
    for plan in &mut plans {
        plan.steps[1].after = vec![0];
    }
    let wait = |member| Wait { member, step: 0, peer: Some(1 - member) };
    let fault = prove(&plans, &Task::new(Operation::Barrier)).unwrap_err();
    assert_eq!(fault, PlanFault::Deadlock(vec![wait(0), wait(1)]));
}

#[test]
fn a_deadlock_of_members_who_take_one_message_at_a_time() {
    // 0 sends to 1 before it sends to 2; 1 receives from 2 before it receives from 0; and 2 sends to
    // 1 what it has from 0.
    let send = |to, after: &[u32]| Step {
        after: after.to_vec(),
        ..step(Action::Send { to, cells: vec![] })
    };
    let receive = |from| step(Action::Receive { from, cells: vec![] });
    let task = Task::new(Operation::Barrier);
    let mut plans = Program::new(task.operation, 0, 1, 3, None).finish();
    plans[0].steps = vec![send(1, &[]), send(2, &[]), receive(1), receive(2)];
    plans[1].steps = vec![receive(2), receive(0), send(0, &[0, 1]), send(2, &[0, 1])];
    plans[2].steps = vec![receive(0), send(1, &[0]), receive(1), send(0, &[])];
    let wait = |member, peer| Wait { member, step: 0, peer: Some(peer) };
    let all = vec![wait(0, 1), wait(1, 2), Wait { member: 2, step: 0, peer: Some(0) }];
    assert_eq!(prove(&plans, &task), Err(PlanFault::Deadlock(all)));
    plans[0].steps.swap(0, 1);
    assert!(prove(&plans, &task).is_ok());
}

#[test]
fn a_block_read_before_anything_is_there() {
    let result = written(&REDUCE, 2, |program| {
        program.message(1, 0, vec![INPUT], vec![OUTPUT]);
        program.combine(0, OUTPUT, block(SCRATCH, 0), OUTPUT);
    });
    assert_eq!(result, Err(PlanFault::Empty { member: 0, step: 1, store: SCRATCH, block: 0 }));
}

#[test]
fn a_value_told_twice_is_a_fault() {
    let result = written(&BROADCAST, 2, |program| {
        program.message(0, 1, vec![OUTPUT], vec![OUTPUT]);
        program.message(0, 1, vec![OUTPUT], vec![OUTPUT]);
    });
    let value = "block 0 of 0".to_owned();
    assert_eq!(result, Err(PlanFault::Twice { member: 1, step: 1, value }));
}

#[test]
fn a_contribution_counted_twice_is_a_fault() {
    let result = written(&REDUCE, 2, |program| {
        program.message(1, 0, vec![INPUT], vec![OUTPUT]);
        program.combine(0, INPUT, OUTPUT, OUTPUT);
        program.combine(0, INPUT, OUTPUT, OUTPUT);
    });
    assert_eq!(result, Err(PlanFault::CountedTwice { member: 0, step: 2, contributor: 0 }));
}

#[test]
fn a_value_combined_too_early_is_a_fault() {
    let early = flat_chain(Order::Canonical);
    let task = Task { order: Order::Late, ..REDUCE };
    let value = "block 0 of (1 2)".to_owned();
    assert_eq!(prove(&early, &task), Err(PlanFault::Early { member: 1, step: 2, value }));
}

/// Member 2 tells 1, which combines and tells 0, which combines.
fn flat_chain(order: Order) -> Vec<Plan> {
    let task = Task { order, ..REDUCE };
    let mut program = Program::new(task.operation, 0, 1, 3, None);
    let scratch = block(SCRATCH, 0);
    program.message(2, 1, vec![INPUT], vec![scratch]);
    program.combine(1, INPUT, scratch, scratch);
    program.message(1, 0, vec![scratch], vec![OUTPUT]);
    program.combine(0, INPUT, OUTPUT, OUTPUT);
    program.finish()
}

#[test]
fn another_order_than_the_canonical() {
    assert!(prove(&flat_chain(Order::Free), &REDUCE).is_ok());
    let task = Task { order: Order::Canonical, ..REDUCE };
    let has = "block 0 of (0 (1 2))".to_owned();
    let wanted = "block 0 of ((0 1) 2)".to_owned();
    let fault = PlanFault::WrongResult { member: 0, block: 0, has, wanted };
    assert_eq!(prove(&flat_chain(Order::Canonical), &task), Err(fault));
}

#[test]
fn a_result_that_is_not_there() {
    let fault = broken(&BROADCAST, flat(&BROADCAST), |plans| {
        plans[0].steps.truncate(1);
        plans[2].steps.clear();
    });
    let (has, wanted) = ("nothing".to_owned(), "block 0 of 0".to_owned());
    assert_eq!(fault, PlanFault::WrongResult { member: 2, block: 0, has, wanted });
}

#[test]
fn a_barrier_that_lets_somebody_go() {
    let result = written(&Task::new(Operation::Barrier), 3, |program| {
        program.words(&[(0, 1), (1, 2), (2, 0)]);
    });
    assert_eq!(result, Err(PlanFault::LeavesEarly { member: 0, missing: 1 }));
    // In a round after it words pass on what they have heard.
    let result = written(&Task::new(Operation::Barrier), 3, |program| {
        program.words(&[(0, 1), (1, 2), (2, 0)]);
        program.words(&[(0, 1), (1, 2), (2, 0)]);
    });
    assert_eq!(result.map(|facts| facts.steps), Ok(2));
}

#[test]
fn deposits() {
    let task = ALL_REDUCE;
    let right = || on_board(&task, BoardStyle::Each);
    let fault = broken(&task, right(), |plans| {
        let again = plans[1].steps[0].clone();
        plans[1].steps.push(again);
    });
    assert_eq!(fault, PlanFault::AtBoardTwice { member: 1, first: 1, second: 2 });
    let fault = broken(&task, right(), |plans| {
        let again = Step { after: vec![1], ..plans[1].steps[0].clone() };
        plans[1].steps.push(again);
    });
    assert_eq!(fault, PlanFault::DepositsTwice { member: 1, step: 2 });
    let fault = broken(&task, right(), |plans| plans[1].board = vec![0, 1]);
    assert_eq!(fault, PlanFault::OtherBoard { member: 0 });
    let fault = broken(&task, right(), |plans| {
        plans[1].steps.remove(0);
        plans[1].steps[0].after.clear();
    });
    assert_eq!(fault, PlanFault::NoDeposit { member: 1, step: 0 });
    let fault = broken(&task, right(), |plans| {
        plans[2].steps[0].action =
            Action::Deposit { cells: Cells::new(Store::Input, 0, 0), except: None };
    });
    let (deposited, awaited) = (Cells::new(Store::Input, 0, 0), INPUT);
    assert_eq!(fault, PlanFault::OtherDeposit { member: 0, step: 1, from: 2, deposited, awaited });
}

#[test]
fn a_block_that_nobody_offers_is_a_fault() {
    let task = Task::new(Operation::Scatter);
    let fault = broken(&task, on_board(&task, BoardStyle::Each), |plans| {
        let cells = Cells::new(Store::Input, 0, 3);
        plans[0].steps[0].action = Action::Deposit { cells, except: Some(1) };
    });
    assert_eq!(fault, PlanFault::NotOffered { member: 1, step: 1, from: 0, block: 1 });
}

/// The step with which a member leaves, by its number, and its readers from now on.
fn leave_with(plan: &mut Plan, readers: Readers) -> u32 {
    let leaves = |step: &Step| matches!(step.action, Action::AwaitReaders { .. });
    let at = plan.steps.iter().position(leaves).unwrap();
    plan.steps[at].action = Action::AwaitReaders { readers };
    at as u32
}

#[test]
fn a_member_that_leaves_before_its_readers_have_read() {
    use Operation::{AllReduce, AllToAll, Gather, Reduce, ReduceScatter};
    let others = [AllToAll, AllReduce, ReduceScatter, Reduce].map(Task::new);
    for operation in [BROADCAST, GATHER].into_iter().chain(others) {
        let is_of_root = matches!(operation.operation, Gather | Reduce);
        let owner = if is_of_root { 1 } else { 0 };
        let fault = broken(&operation, on_board(&operation, BoardStyle::Told), |plans| {
            leave_with(&mut plans[owner as usize], Readers::Nobody);
        });
        let is_it = |member, reader| matches!(fault, PlanFault::LeavesReader { member: m, reader: r, .. } if (m, r) == (member, reader));
        assert!(is_it(owner, 1 - owner), "{fault}");
    }
    let fault = broken(&BROADCAST, on_board(&BROADCAST, BoardStyle::Told), |plans| {
        leave_with(&mut plans[0], Readers::One(1));
    });
    assert_eq!(fault, PlanFault::LeavesReader { member: 0, reader: 2, step: 1 });
    let fault = broken(&BROADCAST, on_board(&BROADCAST, BoardStyle::Told), |plans| {
        drop(plans[0].steps.pop());
    });
    assert_eq!(fault, PlanFault::LeavesReader { member: 0, reader: 1, step: 1 });
}

#[test]
fn a_reader_that_does_not_say_when_it_has_read() {
    let told = || on_board(&BROADCAST, BoardStyle::Told);
    let fault = broken(&BROADCAST, told(), |plans| drop(plans[2].steps.pop()));
    let wait = Wait { member: 0, step: 1, peer: None };
    assert_eq!(fault, PlanFault::Deadlock(vec![wait]));
    let fault = broken(&BROADCAST, told(), |plans| {
        plans[1].steps.swap(1, 2);
        plans[1].steps[1].after = vec![0];
        plans[1].steps[2].after = vec![1];
    });
    assert_eq!(fault, PlanFault::ReadsLate { member: 1, step: 2 });
}

#[test]
fn a_block_that_is_written_while_others_read_it() {
    let task = Task { in_place: true, ..Task::new(Operation::AllGather) };
    let fault = broken(&task, on_board(&task, BoardStyle::Told), |plans| {
        let into = block(Store::Output, 0);
        let told = block(Store::Output, 1);
        plans[0].steps[1].action = Action::Read { from: 1, told, into, resolved: false };
    });
    assert_eq!(
        fault,
        PlanFault::WrittenWhileTold { member: 0, step: 1, store: Store::Output, block: 0 }
    );
}

#[test]
fn a_part_that_is_written_while_others_combine_or_read_it() {
    let in_place = Task { in_place: true, ..ALL_REDUCE };
    let told = || on_board(&in_place, BoardStyle::Told);
    let written = |fault, member, step, block| {
        let store = Store::Output;
        assert_eq!(fault, PlanFault::WrittenWhileTold { member, step, store, block });
    };
    // Its part of the result takes the place of what another member still combines.
    let fault = broken(&in_place, told(), |plans| {
        let (deposited, into) = (Cells::new(Store::Output, 0, 3), block(Store::Output, 2));
        plans[0].steps[2].action = Action::Read { from: 1, told: deposited, into, resolved: true };
    });
    written(fault, 0, 2, 2);
    // Its part of the result is written again while others read it.
    let fault = broken(&in_place, told(), |plans| {
        let (deposited, into) = (Cells::new(Store::Output, 0, 3), block(Store::Output, 1));
        plans[1].steps[2].action = Action::Read { from: 2, told: deposited, into, resolved: true };
    });
    written(fault, 1, 2, 1);
}

#[test]
fn members_that_wait_at_the_board_for_ever_are_a_fault() {
    let fault = broken(&ALL_REDUCE, on_board(&ALL_REDUCE, BoardStyle::Together), |plans| {
        plans[2].steps.clear();
    });
    let wait = |member| Wait { member, step: 1, peer: None };
    assert_eq!(fault, PlanFault::Deadlock(vec![wait(0), wait(1)]));
}
