//! The derivation of operations from the trees and rounds of an architecture.
//!
//! | operation | from a tree | from rounds |
//! |---|---|---|
//! | barrier | up and down | each round a word |
//! | broadcast | down | scatter, then allgather |
//! | scatter | down | |
//! | gather | up | |
//! | reduce | up | reduce-scatter, then gather |
//! | allgather | | each tells the other what it lacks |
//! | allreduce | up and down | each adds what the other has; or reduce-scatter, then allgather |
//! | reduce-scatter | | allgather backwards in time |
//! | alltoall | | each piece takes the way its sender's data take in an allgather |
//! | scan | gather, then scatter | each adds what lies directly before its own |
//!
//! An architecture without rounds has those that go up its tree and down again.

mod all_gather;
pub(crate) mod all_reduce;
mod all_to_all;
mod barrier;
mod board;
mod broadcast;
mod gather;
pub(crate) mod hosts;
pub(crate) mod know;
mod reduce;
mod reduce_scatter;
mod scan;
mod scatter;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::architecture::Architecture;
use crate::blocks::Blocks;
use crate::group::Group;
use crate::operation::Operation;
use crate::partial::Order;
use crate::plan::{Cells, Plan, Store};
use crate::program::Program;
use crate::rounds::Rounds;

pub use board::BoardStyle;

/// A task: an operation with its root, segments and order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Task {
    /// The operation.
    pub operation: Operation,
    /// Its root; 0 where it has none.
    pub root: u32,
    /// Segments of the data, in operations whose blocks are segments; at least 1.
    pub segments: u32,
    /// The order in which data combine, in operations that reduce.
    pub order: Order,
    /// Whether a member's own contribution stands in its output already (for operations with a
    /// root: the root's).
    pub in_place: bool,
}

impl Task {
    /// One segment, in free order, not in place, root 0.
    pub const fn new(operation: Operation) -> Self {
        Self { operation, root: 0, segments: 1, order: Order::Free, in_place: false }
    }
}

/// A way of doing an operation.
#[derive(Clone)]
pub enum Way {
    /// Over messages.
    Messages {
        /// The architecture.
        architecture: Arc<dyn Architecture>,
        /// The architecture of the way back, in operations that go up and down; none for the same one.
        release: Option<Arc<dyn Architecture>>,
        /// Whether long data are divided among the members on the way: broadcast as scatter and
        /// allgather, reduce as reduce-scatter and gather, allreduce as reduce-scatter and
        /// allgather.
        split: bool,
    },
    /// Over the board of a host.
    Board(BoardStyle),
    /// Over the board of each host, and over messages between one member of each host.
    Hosts {
        /// The architecture between the hosts, which are its members.
        architecture: Arc<dyn Architecture>,
        /// Whether long data are divided among the hosts, as in [`Way::Messages`].
        split: bool,
    },
}

impl Way {
    /// Returns the way over messages with undivided data and the same way back.
    pub fn by(architecture: impl Architecture + 'static) -> Self {
        Self::Messages { architecture: Arc::new(architecture), release: None, split: false }
    }

    /// Returns the way over the board of each host and an architecture between the hosts, with undivided data.
    pub fn between_hosts(architecture: impl Architecture + 'static) -> Self {
        Self::Hosts { architecture: Arc::new(architecture), split: false }
    }

    /// Returns the way over messages with long data divided among the members.
    pub fn split_by(architecture: impl Architecture + 'static) -> Self {
        Self::Messages { architecture: Arc::new(architecture), release: None, split: true }
    }
}

impl<A: Architecture + 'static> From<A> for Way {
    fn from(architecture: A) -> Self {
        Self::by(architecture)
    }
}

impl fmt::Debug for Way {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl fmt::Display for Way {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Messages { architecture, release, split } => {
                formatter.write_str(&architecture.name())?;
                if let Some(release) = release {
                    write!(formatter, ", back by {}", release.name())?;
                }
                if *split { formatter.write_str(", split") } else { Ok(()) }
            }
            Self::Board(style) => write!(formatter, "board ({style})"),
            Self::Hosts { architecture, split } => {
                write!(formatter, "{} between hosts", architecture.name())?;
                if *split { formatter.write_str(", split") } else { Ok(()) }
            }
        }
    }
}

/// The plan of one member.
pub fn plan_of(task: &Task, way: &Way, group: &Group, member: u32) -> Plan {
    program(task, way, group, Some(member)).remove(0)
}

/// The plans of all members.
pub fn plans(task: &Task, way: &Way, group: &Group) -> Vec<Plan> {
    program(task, way, group, None)
}

fn program(task: &Task, way: &Way, group: &Group, member: Option<u32>) -> Vec<Plan> {
    let segments = segments(task, way, group);
    let mut program = Program::new(task.operation, task.root, segments, group.size(), member);
    fill(&mut program, task, way, group);
    program.finish()
}

/// The plans of the first of these members: of as many as have room in so many bytes, of one at least.
pub(crate) fn plans_of(
    task: &Task,
    way: &Way,
    group: &Group,
    members: &[u32],
    room_bytes: u64,
) -> Vec<Plan> {
    let segments = segments(task, way, group);
    let what = (task.operation, task.root, segments, group.size());
    let mut program = Program::of_some(what, members, room_bytes);
    fill(&mut program, task, way, group);
    program.finish()
}

/// Adds the actions of all members to a program.
pub(crate) fn fill(program: &mut Program, task: &Task, way: &Way, group: &Group) {
    let task = &Task { segments: segments(task, way, group), ..*task };
    match way {
        Way::Board(style) => board::plan(program, task, *style),
        Way::Messages { architecture, release, split } => {
            let back = release.as_ref().unwrap_or(architecture);
            let paths = Paths { group, to: &**architecture, back: &**back, split: *split };
            over_messages(program, task, &paths);
        }
        Way::Hosts { architecture, split } => {
            hosts::plan(program, task, group, (&**architecture, *split));
        }
    }
}

/// Whether a way over hosts has plans of this task in this group.
pub fn is_derived_over_hosts(task: &Task, group: &Group) -> bool {
    hosts::is_derived(task, group)
}

/// The plan of one member for a started operation over hosts: the one in which it comes last to the board of its host and
/// drives it, or the one in which another member does. Both begin with the same deposit, if the host has a board. A message
/// of another host's first member may come from any member there, but for the root's in a broadcast and a scatter.
pub fn plan_of_started(task: &Task, group: &Group, member: u32, drives: bool) -> Plan {
    let is_driver =
        |host: &&Vec<u32>, one: u32| !host.contains(&member) || drives == (one == member);
    let driver =
        |host: Vec<u32>| host.iter().copied().find(|&one| is_driver(&&host, one)).unwrap_or(member);
    let drivers = group.hosts().into_iter().map(driver).collect();
    started(task, group, drivers, Some(member)).remove(0)
}

/// The plans of all members for a started operation, in which these members come last, one on each host.
pub fn plans_of_started(task: &Task, group: &Group, drivers: &[u32]) -> Vec<Plan> {
    started(task, group, drivers.to_vec(), None)
}

fn started(task: &Task, group: &Group, drivers: Vec<u32>, member: Option<u32>) -> Vec<Plan> {
    let task = &Task { segments: 1, ..*task };
    let mut program = Program::new(task.operation, task.root, 1, group.size(), member);
    hosts::plan_started(&mut program, task, group, drivers);
    program.finish()
}

/// Returns the number of segments into which the data are cut: one for each member if each gets or makes a part of
/// them; over hosts a multiple of their number then.
pub fn segments(task: &Task, way: &Way, group: &Group) -> u32 {
    match way {
        Way::Hosts { .. } if is_divided(task, way) => {
            task.segments.max(1).next_multiple_of(group.hosts().len() as u32)
        }
        Way::Hosts { .. } => task.segments.max(1),
        _ if is_divided(task, way) => group.size(),
        _ if task.operation.has_blocks_in_segments() => 1,
        _ => task.segments.max(1),
    }
}

/// Whether blocks belong to members, so that block `m` is to member `m` what another is to its own.
pub(crate) fn turns_blocks(task: &Task, way: &Way) -> bool {
    // In an alltoall two members have something to do with each block.
    let of_members = !task.operation.has_segments() && task.operation != Operation::AllToAll;
    of_members || is_divided(task, way)
}

fn is_divided(task: &Task, way: &Way) -> bool {
    match way {
        Way::Messages { split, .. } | Way::Hosts { split, .. } => is_split(task.operation, *split),
        Way::Board(style) => style.divides(task.operation),
    }
}

/// Whether long data of this operation are divided where a way is split.
pub(crate) fn is_split(operation: Operation, split: bool) -> bool {
    split && matches!(operation, Operation::Broadcast | Operation::Reduce | Operation::AllReduce)
}

/// The architectures of the way there and back.
struct Paths<'a> {
    group: &'a Group,
    to: &'a dyn Architecture,
    back: &'a dyn Architecture,
    split: bool,
}

impl Paths<'_> {
    fn rounds(&self) -> Rounds {
        self.to
            .rounds(self.group)
            .unwrap_or_else(|| Rounds::up_and_down(&self.to.tree(self.group, 0)))
    }
}

fn over_messages(program: &mut Program, task: &Task, paths: &Paths<'_>) {
    match task.operation {
        Operation::Barrier => barrier::plan(program, paths),
        Operation::Broadcast => broadcast::plan(program, task, paths),
        Operation::Gather => gather::plan(program, task, &paths.to.tree(paths.group, task.root)),
        Operation::Scatter => scatter::plan(program, task, &paths.to.tree(paths.group, task.root)),
        Operation::Reduce => reduce::plan(program, task, paths),
        Operation::AllGather => all_gather::plan(program, task, &paths.rounds()),
        Operation::AllReduce => all_reduce::plan(program, task, paths),
        Operation::AllToAll => all_to_all::plan(program, paths),
        Operation::ReduceScatter => reduce_scatter::plan(program, task, paths),
        Operation::Scan | Operation::ExclusiveScan => scan::plan(program, task, paths),
    }
}

/// One block of the input.
const fn input(block: u32) -> Cells {
    Cells::new(Store::Input, block, 1)
}

/// One block of the output.
const fn output(block: u32) -> Cells {
    Cells::new(Store::Output, block, 1)
}

/// Blocks of one store.
fn each(store: Store, blocks: &Blocks) -> Vec<Cells> {
    blocks.runs().iter().map(|run| of(store, run)).collect()
}

/// Returns the blocks of one store, with `own` in the place of the block of its number.
fn each_but(store: Store, blocks: &Blocks, own: Cells) -> Vec<Cells> {
    let mut cells = Vec::new();
    for run in blocks.runs() {
        let (before, after) = match run.contains(&own.first) {
            true => (run.start..own.first, own.first + 1..run.end),
            false => (run.clone(), 0..0),
        };
        cells.extend((!before.is_empty()).then(|| of(store, &before)));
        cells.extend(run.contains(&own.first).then_some(own));
        cells.extend((!after.is_empty()).then(|| of(store, &after)));
    }
    cells
}

fn of(store: Store, run: &Range<u32>) -> Cells {
    Cells::new(store, run.start, run.len() as u32)
}
