//! The plans of all members, kept in little memory.
//!
//! For a step, a simulation needs its duration and its dependencies, but not the addresses of its data. So each plan
//! is stored relative to its member: peers by their distance in ranks, dependent steps by their distance in steps. In
//! that form many parts are equal and are kept once: *stretches* of a few steps, and whole walks. Members with equal
//! plans ([`PlanClass`]) share one walk.
//!
//! Long data cross a board in rounds, as in the product ([`BoardSchedule`]). Each round is an operation of its own
//! there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use landeck_collectives::board_schedule::{BoardGroup, BoardShare, Chunk};
use landeck_collectives::{
    Action, BoardSchedule, Cells, Group, Operation, Plan, PlanClass, Precedence, Readers,
    Step as PlanStep, Task, Walk as Prepared, Way, each_kin, is_derived_over_hosts,
};
use landeck_memory::message_cells::CELL_BYTES;

use crate::footprint::{Footprint, Manner};
use crate::hosts::Sharing;
use crate::load::Sizes;
use crate::near::Ways;

/// Memory for the plans that are made at one time.
pub(crate) const ROOM_BYTES: u64 = 128 << 20;
/// Steps of a stretch: few enough that many stretches are equal, and enough that a walk is a short list.
const STRETCH: usize = 8;

/// One step of a member, as far as it takes time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SimStep {
    /// Sends bytes to a member.
    Send { to: u32, bytes: u64 },
    /// Receives from a member.
    Receive { from: u32 },
    /// Copies bytes.
    Copy { bytes: u64 },
    /// Combines bytes with as many others.
    Combine { bytes: u64 },
    /// Deposits bytes on the board.
    Deposit { bytes: u64 },
    /// Waits until all members have come to the board.
    Await,
    /// Takes the deposit of a member, or the part that it has resolved.
    Take { from: u32, bytes: u64, resolved: bool },
    /// Combines the deposits of the first members.
    CombineDeposits { members: u32, bytes: u64 },
    /// Combines a part of all deposits, and deposits the result.
    Resolve { bytes: u64 },
    /// Combines all deposits together with all other members.
    Together { bytes: u64 },
    /// Takes the result that all have combined together.
    TakeResult { bytes: u64 },
    /// Tells where bytes lie.
    Tell,
    /// Reads bytes in the memory of a member that has told of them, or the part that it has resolved.
    Read { from: u32, bytes: u64, resolved: bool },
    /// Waits until these members have read, after it has read itself.
    AwaitReaders { readers: Readers },
}

/// The walks of all members.
#[derive(Debug, Default)]
pub(crate) struct CompactPlans {
    stretches: Vec<Box<[Step]>>,
    walks: Vec<Walk>,
    /// The walk of each member.
    of: Vec<u32>,
    /// Rounds at the board, or visits there.
    rounds: u32,
    /// The members of each board, and the board of each member; empty where all share one.
    boards: Vec<Vec<u32>>,
    board_of: Vec<u32>,
    sizes: Sizes,
    /// The number of steps of all members, and of the runs of blocks in all their messages but the first of each.
    steps: u64,
    more_runs: u64,
    /// The number of ordered pairs of members between which messages go.
    ways: u64,
}

/// The stretches of one or several members.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Walk {
    stretches: Box<[u32]>,
    steps: u32,
    uses_board: bool,
    /// Private memory for data that the member passes on or combines.
    scratch_bytes: u64,
    touched: Footprint,
    manner: Manner,
}

/// A step as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Step {
    what: What,
    round: u32,
    /// The distance to the other member in ranks, or a number of members.
    member: u32,
    load: Load,
    waits: u32,
    /// The distances to the steps that wait for its end, and to those that wait for its beginning.
    followers: Box<[u32]>,
    next: Box<[u32]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Send,
    Receive,
    Copy,
    Combine,
    Deposit,
    Await,
    Take,
    TakeResolved,
    CombineDeposits,
    Resolve,
    Together,
    TakeResult,
    Tell,
    Read,
    ReadResolved,
    AwaitNobody,
    AwaitReader,
    AwaitReaders,
}

/// The data of a step.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Load {
    Bytes(u64),
    /// Runs of blocks, each from its distance to the member. Their bytes differ between members where the data are
    /// not divided evenly.
    Runs(Box<[(u32, u32)]>),
}

impl CompactPlans {
    /// Makes the plans of a task. `data` are its bytes and the number of members that share a processor.
    pub(crate) fn of(task: &Task, way: &Way, group: &Group, data: (u64, u32)) -> Self {
        let data = (data.0, Sharing::of(data.1));
        Self::made_in(ROOM_BYTES, task, way, group, data, &mut |_| {})
    }

    /// Makes the plans with this much memory at one time. `tell` receives the number of members that have theirs.
    pub(crate) fn made_in(
        room_bytes: u64,
        task: &Task,
        way: &Way,
        group: &Group,
        (bytes, sharing): (u64, Sharing),
        tell: &mut dyn FnMut(u64),
    ) -> Self {
        let size = group.size();
        let schedule = match way {
            Way::Board(style) => {
                let group = BoardGroup {
                    size,
                    is_oversubscribed: sharing.of_processor > 1,
                    handoff_bytes: CELL_BYTES,
                    cache_bytes: sharing.cache_bytes,
                };
                BoardSchedule::of(task.operation, *style, bytes, group)
            }
            _ => BoardSchedule::AT_ONCE,
        };
        let mut making = Making::new(task.operation, bytes, size, schedule);
        let mut members = 0;
        if matches!(way, Way::Hosts { .. }) && is_derived_over_hosts(task, group) {
            making.walks.share_boards(group.hosts());
        }
        each_kin(task, way, group, room_bytes, |kin| {
            making.add(&kin);
            members += 1 + kin.others.len() as u64;
            tell(members);
        });
        making.walks
    }

    /// Rounds in which the data cross the board.
    pub(crate) const fn rounds(&self) -> u32 {
        self.rounds
    }

    fn share_boards(&mut self, boards: Vec<Vec<u32>>) {
        self.board_of = vec![0; self.of.len()];
        for (number, board) in (0..).zip(&boards) {
            board.iter().for_each(|&member| self.board_of[member as usize] = number);
        }
        self.boards = boards;
    }

    /// The members of each board; empty where all share one.
    pub(crate) fn boards(&self) -> &[Vec<u32>] {
        &self.boards
    }

    /// The number of the board that a member uses.
    pub(crate) fn board_of(&self, member: u32) -> u32 {
        self.board_of.get(member as usize).copied().unwrap_or(0)
    }

    /// The number of members.
    pub(crate) fn members(&self) -> u32 {
        self.of.len() as u32
    }

    /// Steps of all members.
    pub(crate) const fn steps(&self) -> u64 {
        self.steps
    }

    /// Whether the plans use the board.
    pub(crate) fn use_board(&self) -> bool {
        self.walks.iter().any(|walk| walk.uses_board)
    }

    /// The pairs of members between which messages go.
    pub(crate) fn ways(&self) -> Ways {
        Ways { used: self.ways, members: self.members().into() }
    }

    /// Runs of blocks in the messages of all members, without the first of each.
    pub(crate) const fn more_runs(&self) -> u64 {
        self.more_runs
    }

    /// Steps and stretches that are kept.
    pub(crate) fn kept(&self) -> u64 {
        let steps: usize = self.stretches.iter().map(|stretch| stretch.len()).sum();
        let stretches: usize = self.walks.iter().map(|walk| walk.stretches.len()).sum();
        (steps + stretches) as u64
    }

    /// The memory that a member touches.
    pub(crate) fn touched(&self, member: u32) -> Footprint {
        self.walk(member).touched
    }

    fn walk(&self, member: u32) -> &Walk {
        &self.walks[self.of[member as usize] as usize]
    }

    fn step(&self, member: u32, step: u32) -> &Step {
        let (stretch, place) = (step as usize / STRETCH, step as usize % STRETCH);
        &self.stretches[self.walk(member).stretches[stretch] as usize][place]
    }

    fn deed(&self, member: u32, step: u32) -> SimStep {
        let step = self.step(member, step);
        let size = self.members();
        let there = || (step.member + member) % size;
        let bytes = match &step.load {
            Load::Bytes(bytes) => *bytes,
            Load::Runs(runs) => {
                let of_run = |&(first, count): &(u32, u32)| {
                    self.sizes.of_circle((first + member) % size, count, size)
                };
                runs.iter().map(of_run).sum()
            }
        };
        match step.what {
            What::Send => SimStep::Send { to: there(), bytes },
            What::Receive => SimStep::Receive { from: there() },
            What::Copy => SimStep::Copy { bytes },
            What::Combine => SimStep::Combine { bytes },
            What::Deposit => SimStep::Deposit { bytes },
            What::Await => SimStep::Await,
            What::Take => SimStep::Take { from: there(), bytes, resolved: false },
            What::TakeResolved => SimStep::Take { from: there(), bytes, resolved: true },
            What::CombineDeposits => SimStep::CombineDeposits { members: step.member, bytes },
            What::Resolve => SimStep::Resolve { bytes },
            What::Together => SimStep::Together { bytes },
            What::TakeResult => SimStep::TakeResult { bytes },
            What::Tell => SimStep::Tell,
            What::Read => SimStep::Read { from: there(), bytes, resolved: false },
            What::ReadResolved => SimStep::Read { from: there(), bytes, resolved: true },
            What::AwaitNobody => SimStep::AwaitReaders { readers: Readers::Nobody },
            What::AwaitReader => SimStep::AwaitReaders { readers: Readers::One(there()) },
            What::AwaitReaders => SimStep::AwaitReaders { readers: Readers::Others },
        }
    }
}

/// The walk of one member.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    walks: Arc<CompactPlans>,
    member: u32,
}

impl Path {
    pub(crate) fn new(walks: &Arc<CompactPlans>, member: u32) -> Self {
        Self { walks: walks.clone(), member }
    }

    /// Returns a step.
    pub(crate) fn deed(&self, step: u32) -> SimStep {
        self.walks.deed(self.member, step)
    }

    /// The round to which a step belongs.
    pub(crate) fn round(&self, step: u32) -> u32 {
        self.walks.step(self.member, step).round
    }

    /// How the member deposits.
    pub(crate) fn manner(&self) -> Manner {
        self.walks.walk(self.member).manner
    }

    /// Private memory for data that the member passes on or combines.
    pub(crate) fn scratch_bytes(&self) -> u64 {
        self.walks.walk(self.member).scratch_bytes
    }

    /// Whether the member uses the board.
    pub(crate) fn uses_board(&self) -> bool {
        self.walks.walk(self.member).uses_board
    }
}

impl Precedence for Path {
    fn steps(&self) -> u32 {
        self.walks.walk(self.member).steps
    }

    fn waits(&self, step: u32) -> u32 {
        self.walks.step(self.member, step).waits
    }

    fn followers(&self, step: u32) -> impl Iterator<Item = u32> {
        self.walks.step(self.member, step).followers.iter().map(move |later| step + later)
    }

    fn next(&self, step: u32) -> impl Iterator<Item = u32> {
        self.walks.step(self.member, step).next.iter().map(move |later| step + later)
    }
}

/// Walks in the making.
struct Making {
    operation: Operation,
    bytes: u64,
    schedule: BoardSchedule,
    walks: CompactPlans,
    stretches: Numbers<Box<[Step]>>,
    lists: Numbers<Walk>,
}

/// Finds the number of an equal thing that is already kept.
type Numbers<T> = BTreeMap<T, u32>;

impl Making {
    fn new(operation: Operation, bytes: u64, size: u32, schedule: BoardSchedule) -> Self {
        let of = vec![0; size as usize];
        let walks = CompactPlans { of, rounds: schedule.chunks, ..CompactPlans::default() };
        let (stretches, lists) = (Numbers::default(), Numbers::default());
        Self { operation, bytes, schedule, walks, stretches, lists }
    }

    fn add(&mut self, kin: &PlanClass) {
        let in_rounds = (self.schedule.chunks > 1)
            .then(|| in_rounds(kin.plan.clone(), self.bytes, self.schedule));
        let (plan, rounds) = in_rounds.unwrap_or_else(|| {
            let visits = if kin.plan.visits() > 1 { visits(&kin.plan) } else { Vec::new() };
            (kin.plan.clone(), visits)
        });
        self.walks.rounds = self.walks.rounds.max(kin.plan.visits());
        let sizes = Sizes::new(self.operation, self.bytes, plan.segments, plan.size);
        self.walks.sizes = sizes;
        let members = 1 + kin.others.len() as u64;
        self.walks.steps += plan.steps.len() as u64 * members;
        self.walks.more_runs += plan.steps.iter().map(more_runs).sum::<u64>() * members;
        self.walks.ways += receivers(&plan) * members;
        let is_uneven = kin.turns_blocks && !kin.others.is_empty() && !sizes.are_even();
        let prepared = Prepared::new(plan);
        let walk = self.walk(&Form { sizes, is_uneven, rounds: &rounds, prepared: &prepared });
        for member in kin.others.iter().chain([&kin.plan.member]) {
            self.walks.of[*member as usize] = walk;
        }
    }

    fn walk(&mut self, form: &Form<'_>) -> u32 {
        let plan = form.prepared.plan();
        let steps: Vec<Step> = (0..plan.steps.len() as u32).map(|step| form.step(step)).collect();
        let stretches = steps
            .chunks(STRETCH)
            .map(|stretch| number(&mut self.stretches, &mut self.walks.stretches, stretch.into()));
        let stretches = stretches.collect();
        let manner = Manner::of(self.operation, plan, self.schedule);
        let walk = Walk {
            stretches,
            steps: steps.len() as u32,
            uses_board: plan.uses_board(),
            scratch_bytes: plan.scratch.iter().map(|cells| form.sizes.of_all(cells)).sum(),
            touched: footprint(plan, &form.sizes, manner, self.schedule),
            manner,
        };
        number(&mut self.lists, &mut self.walks.walks, walk)
    }
}

/// Returns the number of an equal thing that is kept, or keeps this one.
fn number<T: Clone + Ord>(numbers: &mut Numbers<T>, kept: &mut Vec<T>, thing: T) -> u32 {
    if let Some(&number) = numbers.get(&thing) {
        return number;
    }
    let number = kept.len() as u32;
    kept.push(thing.clone());
    numbers.insert(thing, number);
    number
}

/// A numerator and a denominator: the share of the bytes.
type PlanPart = (u64, u64);

/// Each step's visit to the board, with all of its bytes.
fn visits(plan: &Plan) -> Vec<(u32, PlanPart)> {
    let mut deposits = 0u32;
    let visit = |step: &PlanStep| {
        deposits += u32::from(step.action.comes());
        (deposits.saturating_sub(1), (1, 1))
    };
    plan.steps.iter().map(visit).collect()
}

/// Repeats a member's plan for each chunk of an operation at the board. Returns with each step its chunk and its
/// share of the bytes.
fn in_rounds(plan: Plan, bytes: u64, schedule: BoardSchedule) -> (Plan, Vec<(u32, PlanPart)>) {
    let (mut steps, mut of_steps) = (Vec::new(), Vec::new());
    let mut add = |step: &PlanStep, at: u32| {
        let chunk = Chunk::of(schedule, (bytes, 1), at);
        let action = match chunk.share_of(&step.action, &plan) {
            BoardShare::Nothing => return,
            BoardShare::All => step.action.clone(),
            BoardShare::This(action) => action,
        };
        let part = if let Chunk::Part { bytes: part, .. } = chunk { (part, bytes) } else { (1, 1) };
        let after = (steps.len() as u32).checked_sub(1).into_iter().collect();
        steps.push(PlanStep { action, after, ..step.clone() });
        of_steps.push((at, part));
    };
    let is_deposit = |step: &&PlanStep| step.action.comes();
    let mut deposited = 0;
    for at in 0..schedule.chunks {
        for step in plan.steps.iter().filter(is_deposit) {
            while deposited < schedule.chunks.min(at + schedule.ahead.max(1)) {
                add(step, deposited);
                deposited += 1;
            }
        }
        plan.steps.iter().filter(|step| !is_deposit(step)).for_each(|step| add(step, at));
    }
    (Plan { steps, ..plan }, of_steps)
}

/// Brings the steps of a plan into the form that is kept.
struct Form<'a> {
    sizes: Sizes,
    /// Whether other members with this walk have other numbers of bytes.
    is_uneven: bool,
    /// The round of each step and its share of the bytes; empty with one round.
    rounds: &'a [(u32, PlanPart)],
    prepared: &'a Arc<Prepared>,
}

impl Form<'_> {
    fn step(&self, number: u32) -> Step {
        let plan = self.prepared.plan();
        let away = |other: u32| (other + plan.size - plan.member) % plan.size;
        let (what, member, load) = match &plan.steps[number as usize].action {
            Action::Send { to, cells } => (What::Send, away(*to), self.load(cells)),
            Action::Receive { from, .. } => (What::Receive, away(*from), Load::Bytes(0)),
            Action::Copy { from, .. } => (What::Copy, 0, self.load(&[*from])),
            Action::Combine { left, .. } => (What::Combine, 0, self.load(&[*left])),
            Action::Deposit { cells, except } => {
                let load = match except {
                    Some(block) => self.load(&without(*cells, *block)),
                    None => self.load(&[*cells]),
                };
                (What::Deposit, 0, load)
            }
            Action::Await => (What::Await, 0, Load::Bytes(0)),
            Action::Take { from, into, resolved, .. } => {
                let what = if *resolved { What::TakeResolved } else { What::Take };
                (what, away(*from), self.load(&[*into]))
            }
            Action::CombineDeposits { members, into, .. } => {
                (What::CombineDeposits, *members, self.load(&[*into]))
            }
            Action::Resolve { deposited, block } => {
                (What::Resolve, 0, self.load(&[Cells::new(deposited.store, *block, 1)]))
            }
            Action::Together { deposited } => (What::Together, 0, self.load(&[*deposited])),
            Action::TakeResult { into } => (What::TakeResult, 0, self.load(&[*into])),
            Action::Tell { .. } => (What::Tell, 0, Load::Bytes(0)),
            Action::Read { from, into, resolved, .. } => {
                let what = if *resolved { What::ReadResolved } else { What::Read };
                (what, away(*from), self.load(&[*into]))
            }
            Action::AwaitReaders { readers } => {
                let (what, member) = match readers {
                    Readers::Nobody => (What::AwaitNobody, 0),
                    Readers::One(reader) => (What::AwaitReader, away(*reader)),
                    Readers::Others => (What::AwaitReaders, 0),
                };
                (what, member, Load::Bytes(0))
            }
        };
        let (round, part) = self.rounds.get(number as usize).copied().unwrap_or((0, (1, 1)));
        let load = match load {
            Load::Bytes(bytes) => Load::Bytes(bytes * part.0 / part.1.max(1)),
            runs => runs,
        };
        let later =
            |steps: &mut dyn Iterator<Item = u32>| steps.map(|step| step - number).collect();
        Step {
            what,
            round,
            member,
            load,
            waits: self.prepared.waits(number),
            followers: later(&mut self.prepared.followers(number)),
            next: later(&mut self.prepared.next(number)),
        }
    }

    fn load(&self, cells: &[Cells]) -> Load {
        if !self.is_uneven {
            return Load::Bytes(self.sizes.of_all(cells));
        }
        let plan = self.prepared.plan();
        let run = |cells: &Cells| {
            let whole = cells.count == plan.size;
            let first = if whole { 0 } else { cells.first + plan.size - plan.member };
            (first % plan.size, cells.count)
        };
        Load::Runs(cells.iter().filter(|cells| cells.count > 0).map(run).collect())
    }
}

impl Manner {
    fn of(operation: Operation, plan: &Plan, schedule: BoardSchedule) -> Self {
        let takes = |step: &PlanStep| {
            !matches!(step.action, Action::Deposit { .. } | Action::Await | Action::Copy { .. })
        };
        let is_exchange = matches!(operation, Operation::AllGather | Operation::AllToAll);
        Self {
            only_gives: !plan.steps.iter().any(takes),
            hands_over: is_exchange && plan.size == 2 || schedule.ahead > 0,
        }
    }
}

/// The memory that the member of a plan touches.
fn footprint(plan: &Plan, sizes: &Sizes, manner: Manner, schedule: BoardSchedule) -> Footprint {
    let mut own: Vec<Cells> = Vec::new();
    let mut touched = Footprint { members: 1, ..Footprint::default() };
    let mut rings = BTreeSet::new();
    for step in &plan.steps {
        note_own(&step.action, &mut own);
        match &step.action {
            Action::Send { to, cells } => {
                let bytes = sizes.of_all(cells);
                let is_new = Footprint::goes_round_in_a_ring(bytes) && rings.insert(*to);
                touched.send(bytes, !step.after.is_empty(), is_new);
            }
            Action::Receive { cells, .. } => touched.take(sizes.of_all(cells)),
            Action::Deposit { cells, except } => {
                let bytes = match except {
                    Some(block) => sizes.of_all(&without(*cells, *block)),
                    None => sizes.of(*cells),
                };
                touched.deposit(bytes, manner);
            }
            Action::Take { into, .. } | Action::Read { into, .. } | Action::TakeResult { into } => {
                touched.take(sizes.of(*into));
            }
            Action::CombineDeposits { members, into, .. } => {
                touched.taken += u64::from(*members) * sizes.of(*into);
            }
            Action::Resolve { deposited, block } => {
                let result = Cells { first: *block, count: 1, ..*deposited };
                touched.taken += u64::from(plan.size) * sizes.of(result);
            }
            // Each member combines about its share of all deposits.
            Action::Together { deposited } => touched.taken += sizes.of(*deposited),
            Action::Copy { .. }
            | Action::Combine { .. }
            | Action::Await
            | Action::Tell { .. }
            | Action::AwaitReaders { .. } => {}
        }
    }
    if schedule.ahead > 0 {
        // A member deposits its next block where it has taken one.
        touched.places = touched.places / u64::from(schedule.chunks) * u64::from(schedule.ahead);
    }
    Footprint { own: bytes_once(own, sizes), ..touched }
}

/// Adds the blocks of the member's own data that an action touches.
fn note_own(action: &Action, own: &mut Vec<Cells>) {
    match action {
        Action::Send { cells, .. } | Action::Receive { cells, .. } => own.extend(cells),
        Action::Copy { from, into } => own.extend([from, into]),
        Action::Combine { left, right, into } => own.extend([left, right, into]),
        Action::Deposit { cells, .. } | Action::Tell { cells, .. } => own.push(*cells),
        Action::Take { into, .. }
        | Action::Read { into, .. }
        | Action::TakeResult { into }
        | Action::CombineDeposits { into, .. } => own.push(*into),
        Action::Resolve { deposited, block } => {
            own.push(Cells { first: *block, count: 1, ..*deposited });
        }
        Action::Together { .. } | Action::Await | Action::AwaitReaders { .. } => {}
    }
}

/// The bytes of these blocks, each counted once.
fn bytes_once(mut all: Vec<Cells>, sizes: &Sizes) -> u64 {
    all.sort_unstable_by_key(|cells| (cells.store, cells.first));
    let (mut store, mut end, mut bytes) = (None, 0, 0);
    for cells in all {
        let counted = if store == Some(cells.store) { end } else { 0 };
        let first = cells.first.max(counted);
        let behind = cells.first + cells.count;
        bytes += sizes.of(Cells { first, count: behind.saturating_sub(first), ..cells });
        (store, end) = (Some(cells.store), counted.max(behind));
    }
    bytes
}

/// The number of members to which a member sends.
fn receivers(plan: &Plan) -> u64 {
    let to = |step: &PlanStep| match step.action {
        Action::Send { to, .. } => Some(to),
        _ => None,
    };
    plan.steps.iter().filter_map(to).collect::<BTreeSet<u32>>().len() as u64
}

/// The runs of blocks of a message, without the first.
fn more_runs(step: &PlanStep) -> u64 {
    match &step.action {
        Action::Send { cells, .. } | Action::Receive { cells, .. } => cells.len() as u64,
        _ => 1,
    }
    .saturating_sub(1)
}

/// These blocks without one of them.
fn without(cells: Cells, block: u32) -> [Cells; 2] {
    let before = block.saturating_sub(cells.first).min(cells.count);
    let after = cells.count - (before + 1).min(cells.count);
    let end = cells.first + cells.count;
    [Cells { count: before, ..cells }, Cells { first: end - after, count: after, ..cells }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_collectives::{Preset, plans};

    fn made_in(
        room_bytes: u64,
        task: &Task,
        way: &Way,
        group: &Group,
        data: (u64, u32),
    ) -> CompactPlans {
        let mut told = Vec::new();
        let data = (data.0, Sharing::of(data.1));
        let walks =
            CompactPlans::made_in(room_bytes, task, way, group, data, &mut |now| told.push(now));
        assert!(told.is_sorted() && told.last() == Some(&group.size().into()), "{told:?}");
        walks
    }

    /// The expected form of an action.
    fn deed(action: &Action, sizes: &Sizes) -> SimStep {
        match action {
            Action::Send { to, cells } => SimStep::Send { to: *to, bytes: sizes.of_all(cells) },
            Action::Receive { from, .. } => SimStep::Receive { from: *from },
            Action::Copy { from, .. } => SimStep::Copy { bytes: sizes.of(*from) },
            Action::Combine { left, .. } => SimStep::Combine { bytes: sizes.of(*left) },
            Action::Deposit { cells, except } => {
                let one = |block| sizes.of(Cells::new(cells.store, block, 1));
                SimStep::Deposit { bytes: sizes.of(*cells) - except.map_or(0, one) }
            }
            Action::Await => SimStep::Await,
            Action::Take { from, into, resolved, .. } => {
                SimStep::Take { from: *from, bytes: sizes.of(*into), resolved: *resolved }
            }
            Action::CombineDeposits { members, into, .. } => {
                SimStep::CombineDeposits { members: *members, bytes: sizes.of(*into) }
            }
            Action::Resolve { deposited, block } => {
                SimStep::Resolve { bytes: sizes.of(Cells::new(deposited.store, *block, 1)) }
            }
            Action::Together { deposited } => SimStep::Together { bytes: sizes.of(*deposited) },
            Action::TakeResult { into } => SimStep::TakeResult { bytes: sizes.of(*into) },
            Action::Tell { .. } => SimStep::Tell,
            Action::Read { from, into, resolved, .. } => {
                SimStep::Read { from: *from, bytes: sizes.of(*into), resolved: *resolved }
            }
            Action::AwaitReaders { readers } => SimStep::AwaitReaders { readers: *readers },
        }
    }

    #[test]
    fn walks_are_those_of_the_plans() {
        let names = ["flat", "pipeline", "hypercube", "knomial", "butterfly", "ring", "circulant"];
        let split = [
            "ring+split",
            "butterfly+split",
            "board",
            "board:divided",
            "board:together",
            "board:told",
        ];
        for operation in Operation::ALL {
            for name in names.into_iter().chain(split) {
                for (size, bytes) in [(1, 8), (6, 0), (16, 160), (23, 1001)] {
                    let way = name.parse::<Preset>().unwrap().way(operation);
                    let (task, group) = (Task::new(operation), Group::divided(size, 1).unwrap());
                    for room_bytes in [0, ROOM_BYTES] {
                        let walks = made_in(room_bytes, &task, &way, &group, (bytes, 1));
                        let walks = Arc::new(walks);
                        for plan in plans(&task, &way, &group) {
                            let what = format!("{operation} {name} {size}, member {}", plan.member);
                            let sizes = Sizes::new(operation, bytes, plan.segments, size);
                            let path = Path::new(&walks, plan.member);
                            let walk = Prepared::new(plan);
                            assert_eq!(path.steps(), walk.steps(), "{what}");
                            assert_eq!(path.uses_board(), walk.plan().uses_board(), "{what}");
                            for (step, own) in (0..).zip(&walk.plan().steps) {
                                assert_eq!(
                                    path.deed(step),
                                    deed(&own.action, &sizes),
                                    "{what} {step}"
                                );
                                assert_eq!(path.waits(step), walk.waits(step), "{what} {step}");
                                assert!(path.followers(step).eq(walk.followers(step)), "{what}");
                                assert!(path.next(step).eq(walk.next(step)), "{what}");
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn ways_are_counted_once_each() {
        let of = |operation, name: &str| {
            let way = name.parse::<Preset>().unwrap().way(operation);
            let group = Group::whole(8).unwrap();
            CompactPlans::of(&Task::new(operation), &way, &group, (8, 4)).ways().used
        };
        assert_eq!(of(Operation::AllToAll, "flat"), 56);
        assert_eq!(of(Operation::Broadcast, "flat"), 7);
        assert_eq!(of(Operation::AllGather, "ring"), 8, "seven messages each, one way");
        assert_eq!(of(Operation::AllGather, "board"), 0);
    }

    #[test]
    fn equal_plans_are_kept_once() {
        let kept = |operation, name: &str, size: u32, bytes, room_bytes| {
            let way = name.parse::<Preset>().unwrap().way(operation);
            let (task, group) = (Task::new(operation), Group::whole(size).unwrap());
            let walks = made_in(room_bytes, &task, &way, &group, (bytes, 1));
            (walks.kept(), walks.steps())
        };
        // Members of a ring share one walk in a few variants, whether or not bytes are divided evenly.
        let (kept_of_ring, steps) = kept(Operation::AllReduce, "ring+split", 200, 1001, 0);
        assert!(kept_of_ring < 5 * steps / 200, "{kept_of_ring} of {steps}");
        let (kept_of_ring, steps) = kept(Operation::AllGather, "ring", 200, 8, ROOM_BYTES);
        assert!(kept_of_ring < 5 * steps / 200, "{kept_of_ring} of {steps}");
        // Of a butterfly a list of stretches is kept for each member.
        let (kept_of_butterfly, _) = kept(Operation::AllReduce, "butterfly", 1024, 8, ROOM_BYTES);
        assert!(kept_of_butterfly < 6 * 1024, "{kept_of_butterfly}");
    }

    #[test]
    fn a_member_that_passes_on_data_keeps_them_in_memory_of_its_own() {
        let of = |operation, name: &str| {
            let way = name.parse::<Preset>().unwrap().way(operation);
            let group = Group::whole(4).unwrap();
            let walks = Arc::new(CompactPlans::of(&Task::new(operation), &way, &group, (100, 1)));
            [0, 1, 2].map(|member| Path::new(&walks, member).scratch_bytes())
        };
        assert_eq!(of(Operation::Gather, "knomial"), [0, 0, 100], "what member 3 brings");
        assert_eq!(of(Operation::Gather, "flat"), [0; 3]);
        assert_eq!(of(Operation::Gather, "board"), [0; 3]);
    }

    #[test]
    fn blocks_count_once_and_what_is_laid_down_and_taken_as_often() {
        let of = |operation, name: &str, member: u32| {
            let way = name.parse::<Preset>().unwrap().way(operation);
            let group = Group::whole(4).unwrap();
            let touched =
                CompactPlans::of(&Task::new(operation), &way, &group, (100, 1)).touched(member);
            assert_eq!(touched.members, 1);
            [touched.own, touched.laid_down, touched.taken]
        };
        assert_eq!(of(Operation::Broadcast, "flat", 0), [100, 300, 0], "one place, three messages");
        assert_eq!(of(Operation::Broadcast, "flat", 1), [100, 0, 100]);
        assert_eq!(of(Operation::Broadcast, "board", 0), [100, 100, 0]);
        assert_eq!(of(Operation::Gather, "board", 0), [500, 0, 300], "its own and all");
        assert_eq!(of(Operation::Gather, "board", 3), [100, 100, 0]);
        assert_eq!(of(Operation::AllToAll, "board", 2), [800, 300, 300]);
        assert_eq!(of(Operation::AllGather, "ring", 2), [500, 300, 300]);
        assert_eq!(of(Operation::Barrier, "board", 2), [0; 3]);
        let cells = |first, count| Cells::new(landeck_collectives::Store::Output, first, count);
        let sizes = Sizes::new(Operation::Gather, 10, 1, 9);
        let all = vec![cells(4, 2), cells(0, 3), cells(1, 1), cells(2, 1), cells(5, 3)];
        assert_eq!(bytes_once(all, &sizes), 70, "all but one of eight");
    }

    /// The steps of a member in an exchange, each with its chunk.
    fn in_exchange(size: u32, bytes: u64, sharing: u32, member: u32) -> Vec<(u32, SimStep)> {
        let way = "board".parse::<Preset>().unwrap().way(Operation::AllToAll);
        let (task, group) = (Task::new(Operation::AllToAll), Group::whole(size).unwrap());
        let walks = Arc::new(CompactPlans::of(&task, &way, &group, (bytes, sharing)));
        let path = Path::new(&walks, member);
        assert_eq!(path.manner().hands_over, size == 2 || sharing > 1 && bytes == 64 << 10);
        let mut before = None;
        let waits_for_the_one_before =
            |step: u32| path.followers(step).any(|next| next == step + 1);
        let is_one_after_the_other =
            (1..path.steps()).all(|step| waits_for_the_one_before(step - 1));
        assert!(is_one_after_the_other || walks.rounds() == 1, "{size} {bytes} {sharing}");
        let deeds = (0..path.steps()).map(|step| (path.round(step), path.deed(step)));
        deeds.inspect(|now| assert_ne!(before.replace(*now), Some(*now))).collect()
    }

    #[test]
    fn an_exchange_goes_block_by_block_as_in_the_product() {
        const BYTES: u64 = 64 << 10;
        let (size, ahead) = (16, 4);
        let mut taken = BTreeSet::new();
        for member in 0..size {
            let deeds = in_exchange(size, BYTES, 8, member);
            let laid = |deed: &SimStep| *deed == SimStep::Deposit { bytes: BYTES };
            let first = deeds.iter().position(|(_, deed)| !laid(deed)).unwrap();
            assert_eq!(first, ahead, "so many are laid down before the first is taken");
            let laid: Vec<u32> =
                deeds.iter().filter(|(_, deed)| laid(deed)).map(|of| of.0).collect();
            assert_eq!(laid, (0..size - 1).collect::<Vec<_>>(), "one in each round");
            for (round, deed) in deeds {
                if let SimStep::Take { from, bytes, .. } = deed {
                    assert_eq!(((from + 1 + round) % size, bytes), (member, BYTES));
                    assert!(taken.insert((from, member)));
                }
            }
        }
        assert_eq!(taken.len() as u32, size * (size - 1));
        let at_once = in_exchange(size, BYTES, 1, 3);
        assert!(at_once.iter().all(|(round, _)| *round == 0), "each has a processor");
        assert_eq!(in_exchange(size, 8, 8, 3).len(), at_once.len());
    }

    #[test]
    fn a_long_reduction_goes_over_the_board_in_parts() {
        let way = "board:together".parse::<Preset>().unwrap().way(Operation::AllReduce);
        let (task, group) = (Task::new(Operation::AllReduce), Group::whole(8).unwrap());
        let walks = Arc::new(CompactPlans::of(&task, &way, &group, (1 << 20, 4)));
        assert_eq!(walks.rounds(), 4);
        let path = Path::new(&walks, 5);
        let laid = (0..path.steps()).filter_map(|step| match path.deed(step) {
            SimStep::Deposit { bytes } => Some((path.round(step), bytes)),
            _ => None,
        });
        let quarter = 1 << 18;
        assert_eq!(laid.collect::<Vec<_>>(), [0, 1, 2, 3].map(|round| (round, quarter)));
    }

    #[test]
    fn all_blocks_but_one_are_those_around_it() {
        let cells = Cells::new(landeck_collectives::Store::Input, 3, 4);
        let blocks = |block| without(cells, block).map(|cells| cells.blocks());
        assert_eq!(blocks(3), [3..3, 4..7]);
        assert_eq!(blocks(5), [3..5, 6..7]);
        assert_eq!(blocks(6), [3..6, 7..7]);
    }
}
