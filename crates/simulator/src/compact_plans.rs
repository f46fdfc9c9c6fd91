//! What all members walk, in little memory.
//!
//! A simulation needs of a step how long it takes and what it waits for, not where its data lie. So each
//! plan is brought into a form that says that from its member's place: peers by how many places further they
//! stand, waiting steps by how many steps later they come. In that form much is equal, and is kept once:
//! *stretches* of a few steps, and whole walks. Members whose plans are alike ([`PlanClass`]) have one walk.
//!
//! Much data go over a board in rounds, as in the product ([`BoardSchedule`]); each is an operation of its own there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use landeck_collectives::board_schedule::{BoardGroup, Chunk, Share};
use landeck_collectives::{
    Action, BoardSchedule, Cells, Group, Operation, Plan, PlanClass, Precedence, Step as PlanStep,
    Task, Walk as Prepared, Way, each_kin,
};
use landeck_memory::message_cells::CELL_BYTES;

use crate::footprint::{Footprint, Manner};
use crate::hosts::Sharing;
use crate::load::Sizes;
use crate::near::Ways;

/// So much the plans take that are made at a time.
pub(crate) const ROOM_BYTES: u64 = 128 << 20;
/// Steps of a stretch: few enough that many are equal, and so many that a walk is a short list.
const STRETCH: usize = 8;

/// What a step does, as far as that takes time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SimStep {
    /// It sends so many bytes to this member.
    Send { to: u32, bytes: u64 },
    /// It receives from this member.
    Receive { from: u32 },
    /// It copies so many bytes.
    Copy { bytes: u64 },
    /// It combines so many bytes with as many.
    Combine { bytes: u64 },
    /// It lays so many bytes on the board.
    Deposit { bytes: u64 },
    /// It waits until all have come to the board.
    Await,
    /// It takes what this member has laid down, or has resolved.
    Take { from: u32, bytes: u64, resolved: bool },
    /// It combines what the first so many members have laid down.
    CombineDeposits { members: u32, bytes: u64 },
    /// It combines a part of what all have laid down, and lays that down.
    Resolve { bytes: u64 },
    /// It combines with all others what all have laid down.
    Together { bytes: u64 },
    /// It takes the result of that.
    TakeResult { bytes: u64 },
}

/// The walks of all members.
#[derive(Debug, Default)]
pub(crate) struct CompactPlans {
    stretches: Vec<Box<[Step]>>,
    walks: Vec<Walk>,
    /// By member: its walk.
    of: Vec<u32>,
    /// At the board.
    rounds: u32,
    sizes: Sizes,
    /// Steps of all members; and in all their messages the runs of blocks but the first.
    steps: u64,
    more_runs: u64,
    /// From how many members to how many others messages go.
    ways: u64,
}

/// A list of stretches.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Walk {
    stretches: Box<[u32]>,
    steps: u32,
    uses_board: bool,
    /// What it keeps in memory of its own.
    scratch_bytes: u64,
    touched: Footprint,
    manner: Manner,
}

/// A step as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Step {
    what: What,
    round: u32,
    /// A member, as the places from this one to it; or how many members.
    member: u32,
    load: Load,
    waits: u32,
    /// So many steps later come those that wait for its end, and for its beginning.
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
}

/// How many bytes a step is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Load {
    Bytes(u64),
    /// Those of these blocks, each run from so many places further than the member. Which bytes that are
    /// differs from member to member where the data are not divided evenly.
    Runs(Box<[(u32, u32)]>),
}

impl CompactPlans {
    /// Those of this task. `bytes` are those of the data; of those who go to a board so many share a processor.
    pub(crate) fn of(task: &Task, way: &Way, group: &Group, data: (u64, u32)) -> Self {
        let data = (data.0, Sharing::of(data.1));
        Self::made_in(ROOM_BYTES, task, way, group, data, &mut |_| {})
    }

    /// The same, in so much memory for plans. `tell` is told how many members have theirs.
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
        each_kin(task, way, group, room_bytes, |kin| {
            making.add(&kin);
            members += 1 + kin.others.len() as u64;
            tell(members);
        });
        making.walks
    }

    /// In so many rounds it goes over the board.
    pub(crate) const fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Members.
    pub(crate) fn members(&self) -> u32 {
        self.of.len() as u32
    }

    /// Steps of all members.
    pub(crate) const fn steps(&self) -> u64 {
        self.steps
    }

    /// Whether members go to the board.
    pub(crate) fn use_board(&self) -> bool {
        self.walks.iter().any(|walk| walk.uses_board)
    }

    /// From members to others messages go these ways.
    pub(crate) fn ways(&self) -> Ways {
        Ways { used: self.ways, members: self.members().into() }
    }

    /// In the messages of all members the runs of blocks but the first.
    pub(crate) const fn more_runs(&self) -> u64 {
        self.more_runs
    }

    /// Steps and stretches that are kept.
    pub(crate) fn kept(&self) -> u64 {
        let steps: usize = self.stretches.iter().map(|stretch| stretch.len()).sum();
        let stretches: usize = self.walks.iter().map(|walk| walk.stretches.len()).sum();
        (steps + stretches) as u64
    }

    /// What a member touches.
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
        }
    }
}

/// What one member walks.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    walks: Arc<CompactPlans>,
    member: u32,
}

impl Path {
    pub(crate) fn new(walks: &Arc<CompactPlans>, member: u32) -> Self {
        Self { walks: walks.clone(), member }
    }

    /// What a step does.
    pub(crate) fn deed(&self, step: u32) -> SimStep {
        self.walks.deed(self.member, step)
    }

    /// The round that a step is of.
    pub(crate) fn round(&self, step: u32) -> u32 {
        self.walks.step(self.member, step).round
    }

    /// How it lays down what it brings to the board.
    pub(crate) fn manner(&self) -> Manner {
        self.walks.walk(self.member).manner
    }

    /// What it keeps in memory of its own.
    pub(crate) fn scratch_bytes(&self) -> u64 {
        self.walks.walk(self.member).scratch_bytes
    }

    /// Whether it goes to the board.
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

/// Walks while they are made.
struct Making {
    operation: Operation,
    bytes: u64,
    schedule: BoardSchedule,
    walks: CompactPlans,
    stretches: Numbers<Box<[Step]>>,
    lists: Numbers<Walk>,
}

/// The numbers of things that are kept once.
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
        let (plan, rounds) = in_rounds.unwrap_or_else(|| (kin.plan.clone(), Vec::new()));
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
            touched: touched(plan, form, (manner, self.schedule)),
            manner,
        };
        number(&mut self.lists, &mut self.walks.walks, walk)
    }
}

/// The number of a thing among those that are kept, each once.
fn number<T: Clone + Ord>(numbers: &mut Numbers<T>, kept: &mut Vec<T>, thing: T) -> u32 {
    if let Some(&number) = numbers.get(&thing) {
        return number;
    }
    let number = kept.len() as u32;
    kept.push(thing.clone());
    numbers.insert(thing, number);
    number
}

/// So many of so many bytes.
type Part = (u64, u64);

/// The plan of a member for the rounds of an operation at the board, as it takes them; of each step the round, and the
/// part of the bytes that it has.
fn in_rounds(plan: Plan, bytes: u64, schedule: BoardSchedule) -> (Plan, Vec<(u32, Part)>) {
    let (mut steps, mut of_steps) = (Vec::new(), Vec::new());
    let mut add = |step: &PlanStep, at: u32| {
        let chunk = Chunk::of(schedule, (bytes, 1), at);
        let action = match chunk.share_of(&step.action, &plan) {
            Share::Nothing => return,
            Share::All => step.action.clone(),
            Share::This(action) => action,
        };
        let part = if let Chunk::Part { bytes: part, .. } = chunk { (part, bytes) } else { (1, 1) };
        let after = (steps.len() as u32).checked_sub(1).into_iter().collect();
        steps.push(PlanStep { action, after, ..step.clone() });
        of_steps.push((at, part));
    };
    let is_deposit = |step: &&PlanStep| matches!(step.action, Action::Deposit { .. });
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
    /// Of each step, where there are several: the round, and which part of the bytes it has.
    rounds: &'a [(u32, Part)],
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

/// What the member of a plan touches.
fn touched(plan: &Plan, form: &Form<'_>, (manner, schedule): (Manner, BoardSchedule)) -> Footprint {
    let sizes = &form.sizes;
    let mut own: Vec<Cells> = Vec::new();
    let mut touched = Footprint { members: 1, ..Footprint::default() };
    let mut rings = BTreeSet::new();
    for step in &plan.steps {
        match &step.action {
            Action::Send { to, cells } => {
                own.extend(cells);
                let bytes = sizes.of_all(cells);
                let is_new = Footprint::goes_round_in_a_ring(bytes) && rings.insert(*to);
                touched.send(bytes, !step.after.is_empty(), is_new);
            }
            Action::Receive { cells, .. } => {
                own.extend(cells);
                touched.take(sizes.of_all(cells));
            }
            Action::Copy { from, into } => own.extend([from, into]),
            Action::Combine { left, right, into } => own.extend([left, right, into]),
            Action::Deposit { cells, except } => {
                own.push(*cells);
                let bytes = match except {
                    Some(block) => sizes.of_all(&without(*cells, *block)),
                    None => sizes.of(*cells),
                };
                touched.deposit(bytes, manner);
            }
            Action::Await => {}
            Action::Take { into, .. } | Action::TakeResult { into } => {
                own.push(*into);
                touched.take(sizes.of(*into));
            }
            Action::CombineDeposits { members, into, .. } => {
                own.push(*into);
                touched.taken += u64::from(*members) * sizes.of(*into);
            }
            Action::Resolve { deposited, block } => {
                let result = Cells { first: *block, count: 1, ..*deposited };
                own.push(result);
                touched.taken += u64::from(plan.size) * sizes.of(result);
            }
            // Of what all have each of them combines about its part.
            Action::Together { deposited } => touched.taken += sizes.of(*deposited),
        }
    }
    if schedule.ahead > 0 {
        // A member deposits its next block where it has taken one.
        touched.places = touched.places / u64::from(schedule.chunks) * u64::from(schedule.ahead);
    }
    Footprint { own: bytes_once(own, sizes), ..touched }
}

/// How many bytes these blocks have, each counted once.
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

/// To how many others a member sends.
fn receivers(plan: &Plan) -> u64 {
    let to = |step: &PlanStep| match step.action {
        Action::Send { to, .. } => Some(to),
        _ => None,
    };
    plan.steps.iter().filter_map(to).collect::<BTreeSet<u32>>().len() as u64
}

/// The runs of blocks of a message, but the first.
fn more_runs(step: &PlanStep) -> u64 {
    match &step.action {
        Action::Send { cells, .. } | Action::Receive { cells, .. } => cells.len() as u64,
        _ => 1,
    }
    .saturating_sub(1)
}

/// All of these blocks but one.
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

    /// What member `member` of these plans does in a step.
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
        }
    }

    #[test]
    fn walks_are_those_of_the_plans() {
        let names = ["flat", "pipeline", "hypercube", "knomial", "butterfly", "ring", "circulant"];
        let split = ["ring+split", "butterfly+split", "board", "board:divided", "board:together"];
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
    fn what_is_equal_is_kept_once() {
        let kept = |operation, name: &str, size: u32, bytes, room_bytes| {
            let way = name.parse::<Preset>().unwrap().way(operation);
            let (task, group) = (Task::new(operation), Group::whole(size).unwrap());
            let walks = made_in(room_bytes, &task, &way, &group, (bytes, 1));
            (walks.kept(), walks.steps())
        };
        // Of a ring what one member does, in some variants, whether or not bytes are divided evenly.
        let (kept_of_ring, steps) = kept(Operation::AllReduce, "ring+split", 200, 1001, 0);
        assert!(kept_of_ring < 5 * steps / 200, "{kept_of_ring} of {steps}");
        let (kept_of_ring, steps) = kept(Operation::AllGather, "ring", 200, 8, ROOM_BYTES);
        assert!(kept_of_ring < 5 * steps / 200, "{kept_of_ring} of {steps}");
        // Of a butterfly a list of some stretches for each member.
        let (kept_of_butterfly, _) = kept(Operation::AllReduce, "butterfly", 1024, 8, ROOM_BYTES);
        assert!(kept_of_butterfly < 6 * 1024, "{kept_of_butterfly}");
    }

    #[test]
    fn who_passes_on_what_others_bring_keeps_it_in_memory_of_its_own() {
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

    /// What a member does in an exchange of so many bytes, of whom so many share a processor: deeds with their rounds.
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
