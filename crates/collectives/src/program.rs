//! A program: the actions of all members as one sequence of statements.
//!
//! Operations are written as one sequential algorithm: a message between two members, then a combination, then the next
//! message. A plan is the projection of that sequence on one member. So a message is sent and received at the same
//! place of one common order, and no plan can deadlock, however little the channels buffer. Concurrency is derived, not
//! written: a step waits for the earlier steps that write what it reads, or that read or write what it writes.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;
use std::ops::Range;

use crate::blocks::Blocks;
use crate::operation::Operation;
use crate::plan::{Action, Cells, Plan, Step, Store};
use crate::plan_symmetry::PlanSymmetry;

/// A sequence of statements about all members, of which some members' plans are kept.
pub struct Program {
    size: u32,
    kept: Kept,
    /// The number of scratch stores that each member has been given.
    scratch: Vec<u32>,
    free: Vec<VecDeque<u32>>,
    /// The number of further holders of parts of a scratch store, by member and store.
    shares: BTreeMap<(u32, u32), u32>,
    /// While statements are about the drivers of hosts alone.
    drivers: Option<Drivers>,
}

/// The drivers of hosts, which statements name by the numbers of their hosts.
pub(crate) struct Drivers {
    /// By host: its driver.
    pub(crate) members: Vec<u32>,
    /// By block of a statement: the blocks that it stands for.
    pub(crate) blocks: Option<Vec<Blocks>>,
}

/// The product of a program: plans, or only their symmetry.
enum Kept {
    Plans(Projections),
    /// The symmetry of the plans, without the plans.
    PlanSymmetry(PlanSymmetry),
}

/// Scratch stores that a member has before the first is used again: the more, the more can go on
/// at once.
const SCRATCH_AT_ONCE: u32 = 4;

impl Program {
    /// Returns the empty program for a group of `size` members. It keeps only the plan of `member`, or those of all
    /// members.
    pub fn new(
        operation: Operation,
        root: u32,
        segments: u32,
        size: u32,
        member: Option<u32>,
    ) -> Self {
        let members = member.map_or(0..size, |member| member..member + 1);
        let members: Vec<u32> = members.collect();
        Self::of_some((operation, root, segments, size), &members, u64::MAX)
    }

    /// Returns an empty program that keeps the plans of these members: of the first of them that fit into `room_bytes`,
    /// of one at least.
    pub(crate) fn of_some(
        (operation, root, segments, size): (Operation, u32, u32, u32),
        members: &[u32],
        room_bytes: u64,
    ) -> Self {
        let project = |&member: &u32| Projection::new(operation, root, segments, size, member);
        let plans = members.iter().map(project).collect();
        Self::keeping(size, Kept::Plans(Projections::new(size, plans, room_bytes)))
    }

    /// Returns an empty program that keeps no plans, only their symmetry.
    pub(crate) fn of_none(likeness: PlanSymmetry) -> Self {
        Self::keeping(likeness.size(), Kept::PlanSymmetry(likeness))
    }

    fn keeping(size: u32, kept: Kept) -> Self {
        let (scratch, free) = (vec![0; size as usize], vec![VecDeque::new(); size as usize]);
        Self { size, kept, scratch, free, shares: BTreeMap::new(), drivers: None }
    }

    /// The number of members.
    pub fn size(&self) -> u32 {
        self.drivers.as_ref().map_or(self.size, |drivers| drivers.members.len() as u32)
    }

    /// Adds statements about the drivers of hosts, which they name by the numbers of the hosts.
    pub(crate) fn among<T>(&mut self, drivers: Drivers, add: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.drivers.replace(drivers);
        let added = add(self);
        self.drivers = before;
        added
    }

    /// Notes which members share a board.
    pub(crate) fn set_boards(&mut self, hosts: &[Vec<u32>]) {
        let Kept::Plans(projections) = &mut self.kept else { return };
        for host in hosts {
            for &member in host {
                if let Some(place) = projections.place(member) {
                    projections.plans[place].plan.board.clone_from(host);
                }
            }
        }
    }

    /// Notes the order in which blocks of members are numbered.
    pub(crate) fn set_order(&mut self, order: &[u32]) {
        let Kept::Plans(projections) = &mut self.kept else { return };
        for projection in &mut projections.plans {
            projection.plan.order = order.to_vec();
        }
    }

    /// The member that a statement names.
    fn named(&self, member: u32) -> u32 {
        self.drivers.as_ref().map_or(member, |drivers| drivers.members[member as usize])
    }

    /// The blocks that a statement names.
    fn named_cells(&self, cells: Vec<Cells>) -> Vec<Cells> {
        let blocks = self.drivers.as_ref().and_then(|drivers| drivers.blocks.as_ref());
        let Some(blocks) = blocks else { return cells };
        let of_host = |store, host: u32| {
            let runs = blocks[host as usize].runs().iter();
            runs.map(move |run| Cells::new(store, run.start, run.len() as u32))
        };
        cells
            .iter()
            .flat_map(|cells| cells.blocks().flat_map(|host| of_host(cells.store, host)))
            .collect()
    }

    /// The member whose plan alone is kept; none when more are.
    pub fn only(&self) -> Option<u32> {
        match &self.kept {
            Kept::Plans(Projections { plans, .. }) => match &plans[..] {
                [only] => Some(only.plan.member),
                _ => None,
            },
            Kept::PlanSymmetry(_) => None,
        }
    }

    /// Whether the program keeps the statements of this member.
    pub fn is_kept(&self, member: u32) -> bool {
        self.keeps(self.named(member))
    }

    fn keeps(&self, member: u32) -> bool {
        match &self.kept {
            Kept::Plans(projections) => projections.place(member).is_some(),
            Kept::PlanSymmetry(_) => true,
        }
    }

    /// Whether the program keeps an end of a message between these members.
    pub(crate) fn concerns(&self, from: u32, to: u32) -> bool {
        self.is_kept(from) || self.is_kept(to)
    }

    /// Blocks go from one member to another, into as many blocks of the same numbers. A message
    /// without blocks is not sent.
    pub fn message(&mut self, from: u32, to: u32, sent: Vec<Cells>, received: Vec<Cells>) {
        let [sent, received] = [sent, received].map(|cells| joined(self.named_cells(cells)));
        if sent.is_empty() {
            return;
        }
        let (from, to) = (self.named(from), self.named(to));
        self.add(from, Action::Send { to, cells: sent });
        self.add(to, Action::Receive { from, cells: received });
    }

    /// A round of messages without data: each says that its sender knows of everything that it had
    /// been told in the rounds before. All of a round are under way at once.
    pub fn words(&mut self, round: &[(u32, u32)]) {
        for &(from, to) in round {
            self.add(self.named(from), Action::Send { to: self.named(to), cells: vec![] });
        }
        for &(from, to) in round {
            self.add(self.named(to), Action::Receive { from: self.named(from), cells: vec![] });
        }
    }

    /// A member copies blocks; not onto themselves.
    pub fn copy(&mut self, member: u32, from: Cells, into: Cells) {
        if from == into || from.count == 0 {
            return;
        }
        for cells in joined(self.named_cells(vec![from])) {
            self.local(member, Action::Copy { from: cells, into: cells.at(into.store) });
        }
    }

    /// A member combines blocks.
    pub fn combine(&mut self, member: u32, left: Cells, right: Cells, into: Cells) {
        for cells in joined(self.named_cells(vec![into])) {
            let (left, right) = (cells.at(left.store), cells.at(right.store));
            self.local(member, Action::Combine { left, right, into: cells });
        }
    }

    /// A member does something, which names members and blocks as they are.
    pub fn local(&mut self, member: u32, action: Action) {
        self.add(self.named(member), action);
    }

    fn add(&mut self, member: u32, action: Action) {
        match &mut self.kept {
            Kept::Plans(projections) => projections.add(member, action),
            Kept::PlanSymmetry(likeness) => likeness.add(member, &action),
        }
    }

    /// A scratch store for a member; any for one whose plan is not kept.
    pub fn scratch(&mut self, member: u32) -> Store {
        let member = self.named(member);
        if !self.keeps(member) {
            return Store::Scratch(0);
        }
        let (made, free) = (&mut self.scratch[member as usize], &mut self.free[member as usize]);
        let again = if *made < SCRATCH_AT_ONCE { None } else { free.pop_front() };
        again.map_or_else(
            || {
                *made += 1;
                Store::Scratch(*made - 1)
            },
            Store::Scratch,
        )
    }

    /// A store of a member has one more that holds a part of it, and that gives it back.
    pub fn share(&mut self, member: u32, store: Store) {
        let member = self.named(member);
        if let Store::Scratch(number) = store
            && self.keeps(member)
        {
            *self.shares.entry((member, number)).or_default() += 1;
        }
    }

    /// Gives a scratch store back; it is free once all holders of a part have done so. Other stores stay.
    pub fn release(&mut self, member: u32, store: Store) {
        let Store::Scratch(number) = store else { return };
        let member = self.named(member);
        if !self.keeps(member) {
            return;
        }
        match self.shares.get_mut(&(member, number)).filter(|shares| **shares > 0) {
            Some(shares) => *shares -= 1,
            None => self.free[member as usize].push_back(number),
        }
    }

    /// The plans that were kept, in the order of members.
    pub fn finish(self) -> Vec<Plan> {
        match self.kept {
            Kept::Plans(Projections { plans, .. }) => {
                plans.into_iter().map(Projection::finish).collect()
            }
            Kept::PlanSymmetry(_) => Vec::new(),
        }
    }

    /// Returns the symmetry of the plans if the program keeps that instead of plans.
    pub(crate) fn likeness(self) -> Option<PlanSymmetry> {
        match self.kept {
            Kept::Plans(_) => None,
            Kept::PlanSymmetry(likeness) => Some(likeness),
        }
    }
}

/// The plans that are being made.
struct Projections {
    /// In the order of members.
    plans: Vec<Projection>,
    /// By member: its place among them.
    places: Vec<Option<NonZeroU32>>,
    /// The approximate bytes of these plans, and their limit.
    bytes: u64,
    room_bytes: u64,
}

impl Projections {
    fn new(size: u32, plans: Vec<Projection>, room_bytes: u64) -> Self {
        let mut places = vec![None; size as usize];
        for (place, projection) in (1..).zip(&plans) {
            places[projection.plan.member as usize] = NonZeroU32::new(place);
        }
        Self { plans, places, bytes: 0, room_bytes }
    }

    fn place(&self, member: u32) -> Option<usize> {
        self.places[member as usize].map(|place| place.get() as usize - 1)
    }

    fn add(&mut self, member: u32, action: Action) {
        let Some(place) = self.place(member) else { return };
        let plan = &mut self.plans[place];
        let before = plan.bytes;
        plan.add(action);
        self.bytes += plan.bytes - before;
        while self.bytes > self.room_bytes && self.plans.len() > 1 {
            self.give_up_some();
        }
    }

    /// Gives up the last ones, one in eight.
    fn give_up_some(&mut self) {
        let kept = self.plans.len() - self.plans.len().div_ceil(8);
        for given_up in self.plans.drain(kept..) {
            self.places[given_up.plan.member as usize] = None;
            self.bytes -= given_up.bytes;
        }
    }
}

/// Joins neighbouring blocks of one store.
fn joined(cells: Vec<Cells>) -> Vec<Cells> {
    let mut joined: Vec<Cells> = Vec::new();
    for next in cells.into_iter().filter(|cells| cells.count > 0) {
        match joined.last_mut() {
            Some(last) if last.store == next.store && last.first + last.count == next.first => {
                last.count += next.count;
            }
            _ => joined.push(next),
        }
    }
    joined
}

/// The plan of one member while it is made.
struct Projection {
    plan: Plan,
    /// By store and first block of a run.
    accesses: BTreeMap<(Store, u32), Access>,
    last_sends: BTreeMap<u32, u32>,
    last_receives: BTreeMap<u32, u32>,
    /// Words that have been received since the last was sent, and the step that sent that.
    words_received: Vec<u32>,
    last_word_sent: Option<u32>,
    /// The last step on the board: those go on one after the other.
    last_on_board: Option<u32>,
    scratch: BTreeMap<u32, Blocks>,
    /// The approximate bytes of this projection.
    bytes: u64,
}

/// The bytes of a step while plans are made and prepared for execution; then of each run of blocks in it, of each step
/// that it waits for, and of each run of blocks that has been touched.
const STEP_BYTES: u64 = 320;
const RUN_BYTES: u64 = 32;
const WAIT_BYTES: u64 = 24;
const ACCESS_BYTES: u64 = 128;

/// The steps that last wrote and read a run of blocks.
#[derive(Clone)]
struct Access {
    /// The block after the last of the run.
    end: u32,
    writer: Option<u32>,
    readers: Vec<u32>,
}

impl Projection {
    fn new(operation: Operation, root: u32, segments: u32, size: u32, member: u32) -> Self {
        let (steps, scratch) = (Vec::new(), Vec::new());
        Self {
            plan: Plan {
                operation,
                size,
                member,
                root,
                segments,
                steps,
                scratch,
                board: Vec::new(),
                order: Vec::new(),
            },
            accesses: BTreeMap::new(),
            last_sends: BTreeMap::new(),
            last_receives: BTreeMap::new(),
            words_received: Vec::new(),
            last_word_sent: None,
            last_on_board: None,
            scratch: BTreeMap::new(),
            bytes: 0,
        }
    }

    fn add(&mut self, action: Action) {
        let number = self.plan.steps.len() as u32;
        let (reads, writes) = footprint(&action);
        let accesses_before = self.accesses.len();
        let mut after = Vec::new();
        for cells in &reads {
            self.each_access(*cells, |access| {
                after.extend(access.writer);
                access.readers.push(number);
            });
        }
        for cells in &writes {
            self.each_access(*cells, |access| {
                after.extend(access.writer.replace(number));
                after.append(&mut access.readers);
            });
        }
        let behind = match &action {
            Action::Send { cells, .. } if cells.is_empty() => {
                // Behind the word sent before it, so after all that this one waited for.
                after.append(&mut self.words_received);
                self.last_word_sent.replace(number)
            }
            Action::Receive { from, cells } if cells.is_empty() => {
                self.words_received.push(number);
                self.last_receives.insert(*from, number)
            }
            Action::Send { to, .. } => self.last_sends.insert(*to, number),
            Action::Receive { from, .. } => self.last_receives.insert(*from, number),
            Action::Copy { .. } | Action::Combine { .. } => None,
            _ => {
                after.extend(self.last_on_board.replace(number));
                self.pass_words_on(number, &action, &mut after);
                None
            }
        };
        after.retain(|&step| step != number);
        after.sort_unstable();
        after.dedup();
        self.bytes += STEP_BYTES
            + RUN_BYTES * (reads.len() + writes.len()) as u64
            + WAIT_BYTES * after.len() as u64
            + ACCESS_BYTES * (self.accesses.len() - accesses_before) as u64;
        self.plan.steps.push(Step { action, after, behind });
    }

    /// A member that waits for all at the board has their words then. A deposit without data passes on all words that have
    /// been received before it.
    fn pass_words_on(&mut self, number: u32, action: &Action, after: &mut Vec<u32>) {
        match action {
            Action::Await => self.words_received.push(number),
            Action::Deposit { cells, .. } if cells.count == 0 => {
                after.extend(&self.words_received);
                after.extend(self.last_word_sent);
            }
            _ => {}
        }
    }

    /// Calls `each` with the accesses of these blocks, run by run; runs are cut where these blocks begin and end.
    fn each_access(&mut self, cells: Cells, mut each: impl FnMut(&mut Access)) {
        let (store, blocks) = (cells.store, cells.blocks());
        if blocks.is_empty() {
            return;
        }
        if let Store::Scratch(number) = store {
            self.scratch.entry(number).or_default().unite(&Blocks::run(blocks.clone()));
        }
        self.cut(store, blocks.start);
        self.cut(store, blocks.end);
        let mut next = blocks.start;
        let mut holes = Vec::new();
        for (&(_, first), access) in self.accesses.range_mut((store, next)..(store, blocks.end)) {
            holes.extend((next < first).then_some(next..first));
            next = access.end;
            each(access);
        }
        holes.extend((next < blocks.end).then_some(next..blocks.end));
        for hole in holes {
            let mut access = Access { end: hole.end, writer: None, readers: Vec::new() };
            each(&mut access);
            self.accesses.insert((store, hole.start), access);
        }
    }

    /// Cuts the run that crosses the start of this block.
    fn cut(&mut self, store: Store, block: u32) {
        let before = self.accesses.range_mut((store, 0)..(store, block)).next_back();
        let Some((_, access)) = before.filter(|(_, access)| access.end > block) else { return };
        let upper = access.clone();
        access.end = block;
        self.accesses.insert((store, block), upper);
    }

    fn finish(mut self) -> Plan {
        let count = self.scratch.keys().next_back().map_or(0, |last| last + 1);
        let room = |number: u32| {
            let runs = self.scratch.get(&number).map_or(&[][..], Blocks::runs);
            let cells =
                |run: &Range<u32>| Cells::new(Store::Scratch(number), run.start, run.len() as u32);
            runs.iter().map(cells).collect()
        };
        self.plan.scratch = (0..count).map(room).collect();
        self.plan
    }
}

/// The blocks that an action reads, and those it writes.
fn footprint(action: &Action) -> (Vec<Cells>, Vec<Cells>) {
    match action {
        Action::Send { cells, .. } => (cells.clone(), vec![]),
        Action::Receive { cells, .. } => (vec![], cells.clone()),
        Action::Copy { from, into } => (vec![*from], vec![*into]),
        Action::Combine { left, right, into } => (vec![*left, *right], vec![*into]),
        Action::Deposit { cells, .. } | Action::Tell { cells, .. } => (vec![*cells], vec![]),
        Action::CombineDeposits { deposited, into, .. } => {
            (vec![into.at(deposited.store)], vec![*into])
        }
        Action::Take { into, .. } | Action::Read { into, .. } | Action::TakeResult { into } => {
            (vec![], vec![*into])
        }
        Action::Resolve { deposited, block } => {
            let own = Cells::new(deposited.store, *block, 1);
            (vec![own], vec![own.at(Store::Output)])
        }
        Action::Await | Action::AwaitReaders { .. } | Action::Together { .. } => (vec![], vec![]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: Cells = Cells::new(Store::Output, 0, 1);

    fn program(size: u32) -> Program {
        Program::new(Operation::Broadcast, 0, 1, size, None)
    }

    #[test]
    fn a_member_that_relays_data_waits_for_them() {
        let mut chain = program(3);
        chain.message(0, 1, vec![OUTPUT], vec![OUTPUT]);
        chain.message(1, 2, vec![OUTPUT], vec![OUTPUT]);
        let plans = chain.finish();
        assert_eq!(plans[1].steps[1].after, [0]);
        assert!(plans[0].steps[0].after.is_empty() && plans[2].steps.len() == 1);
    }

    #[test]
    fn a_reader_keeps_a_writer_waiting_and_both_a_combination() {
        let mut pair = program(2);
        let scratch = Cells::new(Store::Scratch(0), 0, 1);
        pair.message(0, 1, vec![OUTPUT], vec![scratch]);
        pair.message(1, 0, vec![OUTPUT], vec![scratch]);
        pair.combine(0, OUTPUT, scratch, OUTPUT);
        let plan = &pair.finish()[0];
        assert_eq!(plan.steps[2].after, [0, 1]);
        assert_eq!(plan.scratch, [vec![scratch]]);
    }

    #[test]
    fn messages_of_a_pair_begin_in_order() {
        let mut twice = program(2);
        twice.message(0, 1, vec![OUTPUT], vec![OUTPUT]);
        twice.message(0, 1, vec![OUTPUT], vec![Cells::new(Store::Scratch(0), 0, 1)]);
        let plans = twice.finish();
        assert_eq!((plans[0].steps[1].behind, plans[1].steps[1].behind), (Some(0), Some(0)));
        assert!(plans[1].steps[1].after.is_empty());
    }

    #[test]
    fn neighbouring_blocks_are_joined_and_nothing_is_not_sent() {
        let mut few = program(2);
        let cells = [0, 1, 3].map(|block| Cells::new(Store::Output, block, 1));
        few.message(0, 1, cells.to_vec(), cells.to_vec());
        few.message(0, 1, vec![], vec![]);
        let plans = few.finish();
        let Action::Send { cells, .. } = &plans[0].steps[0].action else { panic!("a message") };
        assert_eq!(cells[..], [Cells::new(Store::Output, 0, 2), Cells::new(Store::Output, 3, 1)]);
        assert_eq!(plans[0].steps.len(), 1);
    }

    #[test]
    fn the_words_of_a_round_wait_only_for_those_of_the_rounds_before() {
        let mut barrier = Program::new(Operation::Barrier, 0, 1, 4, Some(0));
        barrier.words(&[(0, 1), (1, 0)]);
        barrier.words(&[(0, 2), (2, 0), (0, 3)]);
        let steps = barrier.finish().remove(0).steps;
        let waits: Vec<_> = steps.iter().map(|step| (&step.after[..], step.behind)).collect();
        let (free, none): (_, &[u32]) = ((&[][..], None), &[]);
        assert_eq!(waits, [free, free, (&[1], Some(0)), (none, Some(2)), free]);
    }

    #[test]
    fn a_step_waits_for_earlier_steps_that_touch_part_of_its_cells() {
        let cells = |first, count| Cells::new(Store::Output, first, count);
        let mut two = program(2);
        two.message(1, 0, vec![cells(2, 4)], vec![cells(2, 4)]);
        two.message(1, 0, vec![cells(8, 2)], vec![cells(8, 2)]);
        two.message(0, 1, vec![cells(0, 3)], vec![cells(0, 3)]);
        two.message(0, 1, vec![cells(5, 4)], vec![cells(5, 4)]);
        two.message(1, 0, vec![cells(4, 2)], vec![cells(4, 2)]);
        let steps = two.finish().remove(0).steps;
        let waits: Vec<&[u32]> = steps.iter().map(|step| &step.after[..]).collect();
        assert_eq!(waits, [&[][..], &[], &[0], &[0, 1], &[0, 3]]);
    }

    #[test]
    fn a_store_is_free_when_all_have_given_their_parts_back() {
        let mut shared = program(1);
        let stores = [(); SCRATCH_AT_ONCE as usize].map(|()| shared.scratch(0));
        shared.share(0, stores[1]);
        shared.release(0, stores[1]);
        assert_eq!(shared.scratch(0), Store::Scratch(SCRATCH_AT_ONCE));
        shared.release(0, stores[1]);
        assert_eq!(shared.scratch(0), stores[1]);
    }

    #[test]
    fn only_the_plan_that_is_asked_for_is_kept() {
        let mut chain = Program::new(Operation::Broadcast, 0, 1, 3, Some(2));
        chain.message(0, 1, vec![OUTPUT], vec![OUTPUT]);
        chain.message(1, 2, vec![OUTPUT], vec![OUTPUT]);
        let plans = chain.finish();
        assert_eq!((plans.len(), plans[0].member, plans[0].steps.len()), (1, 2, 1));
    }
}
