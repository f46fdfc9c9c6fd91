//! The modelled cost of a way of doing an operation, on one host or several.
//!
//! Messages are followed along the trees and rounds that the plans are made of, with a clock for
//! each member, as in LogGP: the sender is busy for an overhead and for copying the data in, a line
//! or a network carries them, the receiver is busy for the same overhead and for copying them out.
//! The board has closed forms. Where a host has more processes than processors, a member that must
//! wait is away for a whole rotation: every other process runs once before it looks again; and nothing
//! ends before the processors have done all of the work.
//!
//! The arithmetic is that of plain additions, multiplications and divisions in a fixed order, so
//! the same figures give the same bits in every process.

use crate::architecture::Architecture;
use crate::cost_parameters::CostParameters;
use crate::derive::know::{self, Tell};
use crate::derive::{BoardStyle, Way, all_reduce, hosts, is_split};
use crate::group::Group;
use crate::links::{Link, Links};
use crate::operation::Operation;
use crate::partial::Order;
use crate::rounds::Rounds;
use crate::tree::Tree;

/// Bytes of a message that travel with its header.
const INLINE_BYTES: f64 = 48.0;
/// Bytes of a deposit that stand in its member's line and the one behind it.
const DEPOSIT_INLINE_BYTES: f64 = 112.0;
/// Data up to this are combined by the last member to arrive; longer data by all members present.
const TOGETHER_ALONE_BYTES: f64 = 32.0 * 1024.0;
/// The fraction of a rotation that a member pays if it need not wait for the others: some of their operations are in
/// its window when its turn comes.
const LOOSE: f64 = 0.5;

/// A read of another process's memory, beside its bytes: the call, and what each page of memory takes. On an EPYC 8 bytes
/// took 1.5 us, and 1 MiB 57 us more than a copy.
const READ_CALL_PS: u64 = 1_500_000;
const READ_PAGE_PS: u64 = 200_000;
const PAGE_BYTES: u64 = 4096;

/// The time that a read of so many bytes of another process's memory takes beside their copy, in picoseconds.
#[must_use]
pub const fn read_call_ps(bytes: u64) -> u64 {
    READ_CALL_PS + bytes.div_ceil(PAGE_BYTES).saturating_mul(READ_PAGE_PS)
}

/// The scene of an operation: its hosts and members.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// The cost parameters of each host.
    pub figures: &'a CostParameters,
    /// The members.
    pub group: &'a Group,
    /// Processes of the job on a host; those of the group are among them.
    pub processes: u32,
    /// Processors of a host.
    pub processors: u32,
    /// The hosts that have these processors together, at least 1. They do everything at the same time.
    pub sharing_hosts: u32,
    /// Whether the clusters are hosts of their own, or sites of several hosts.
    pub clusters_are_hosts: bool,
    /// The measured links of the hosts of [`Group::hosts`], in this order.
    pub links: &'a Links,
}

/// The load of an operation, as far as its cost depends on it.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// The operation.
    pub operation: Operation,
    /// Bytes of all its blocks together.
    pub bytes: u64,
    /// Segments of the data, in operations whose blocks are segments.
    pub segments: u32,
    /// The order in which data combine.
    pub order: Order,
}

impl Scene<'_> {
    /// The time from the first member's call to the last member's return, all calling at once, in
    /// nanoseconds.
    pub fn cost_ns(&self, load: &Load, way: &Way) -> f64 {
        if self.group.size() < 2 {
            return self.local_copy(load.bytes as f64);
        }
        match way {
            Way::Board(style) => self.board_ns(load, *style),
            Way::Hosts { architecture, split } => self.over_hosts_ns(load, &**architecture, *split),
            Way::Messages { architecture, release, split } => {
                let there: &dyn Architecture = &**architecture;
                let back: &dyn Architecture = release.as_deref().unwrap_or(there);
                Clocks::new(self).over_messages(load, there, back, *split)
            }
        }
    }

    /// The boards of the hosts, the drivers, and the boards again. Data in units pass all of them once; each further unit
    /// takes as long as the slower of boards and network.
    fn over_hosts_ns(&self, load: &Load, architecture: &dyn Architecture, split: bool) -> f64 {
        let hosts = self.group.hosts();
        let (count, most) = (hosts.len() as u32, hosts.iter().map(Vec::len).max().unwrap_or(1));
        let in_unit = if is_split(load.operation, split) { count } else { 1 };
        let units = (load.segments / in_unit).max(1);
        let all = load.bytes / u64::from(units);
        let size = u64::from(self.group.size());
        let of_host = all * most as u64 / size;
        let values = hosts::values_of(load.operation, load.order, &hosts);
        let told = hosts::tells_all(load.operation, load.order, &hosts);
        let (before, after) = match load.operation {
            Operation::Barrier => (Some((Operation::Barrier, 0)), Some((Operation::Broadcast, 0))),
            Operation::Broadcast => (None, Some((Operation::Broadcast, all))),
            Operation::Reduce => (Some((Operation::Reduce, all)), None),
            Operation::AllReduce => {
                (Some((Operation::Reduce, all)), Some((Operation::Broadcast, all)))
            }
            Operation::Gather => (Some((Operation::Gather, of_host)), None),
            Operation::AllGather => {
                (Some((Operation::Gather, of_host)), Some((Operation::Broadcast, all)))
            }
            Operation::Scatter => (None, Some((Operation::Scatter, of_host))),
            Operation::ReduceScatter => {
                (Some((Operation::Reduce, all)), Some((Operation::Scatter, of_host)))
            }
            Operation::Scan | Operation::ExclusiveScan if told => {
                let of_members = all * most as u64;
                (Some((Operation::Gather, of_members)), Some((Operation::Scatter, of_members)))
            }
            Operation::Scan | Operation::ExclusiveScan => {
                (Some((Operation::Scan, all)), Some((Operation::Broadcast, all)))
            }
            Operation::AllToAll => {
                let visit = Some((Operation::AllToAll, of_host * most as u64 / size));
                (visit, Some((Operation::AllToAll, of_host)))
            }
        };
        let processes = self.processes.max(most as u32);
        let at_board = |visit: Option<(Operation, u64)>| {
            let (Some((operation, bytes)), Ok(group)) = (visit, Group::whole(most as u32)) else {
                return 0.0;
            };
            let scene = Scene { group: &group, processes, clusters_are_hosts: false, ..*self };
            let visit = Load { operation, bytes, segments: 1, order: Order::Free };
            if most > 1 { scene.board_ns(&visit, BoardStyle::Each) } else { 0.0 }
        };
        let group = self.group.hosts_at_sites().map_or_else(|| Group::divided(count, count), Ok);
        let drivers = |bytes| {
            let operation = if told { Operation::AllGather } else { load.operation };
            let load = Load { operation, bytes, segments: 1, order: load.order };
            group.as_ref().map_or(0.0, |group| {
                let scene = Scene { group, processes, clusters_are_hosts: true, ..*self };
                Clocks::new(&scene).over_messages(&load, architecture, architecture, split)
            })
        };
        let between = match load.operation {
            // Each member drives it, by messages to all other hosts whatever the architecture.
            Operation::AllToAll => {
                Clocks::new(self).each_to_hosts(all as f64 / f64::from(self.group.size()).powi(2))
            }
            _ => drivers(all * values * if told { u64::from(count) } else { 1 }),
        };
        let boards = at_board(before) + at_board(after);
        if units == 1 {
            return boards + between;
        }
        boards + between + f64::from(units - 1) * boards.max(between - drivers(0))
    }

    /// The time for which a waiting member is descheduled: all others that share its processor run before it.
    fn rotation(&self) -> f64 {
        let processes = self.processes.max(self.largest_host()) * self.sharing_hosts;
        if processes <= self.processors {
            return 0.0;
        }
        f64::from(processes) / f64::from(self.processors.max(1)) * ns(self.figures.switch_ps)
    }

    fn largest_host(&self) -> u32 {
        if !self.clusters_are_hosts {
            return self.group.size();
        }
        let largest = |hosts: &[Vec<u32>]| hosts.iter().map(Vec::len).max().unwrap_or(1) as u32;
        match self.group.sites().is_empty() {
            true => largest(self.group.clusters()),
            false => largest(&self.group.hosts()),
        }
    }

    /// Processors that work for the group at once.
    fn workers(&self) -> f64 {
        let hosts = match (self.clusters_are_hosts, self.group.sites().is_empty()) {
            (false, _) => 1,
            (true, true) => self.group.clusters().len() as u32,
            (true, false) => self.group.hosts().len() as u32,
        };
        let processors = f64::from(self.processors.max(1)) * f64::from(hosts);
        (processors / f64::from(self.sharing_hosts)).min(f64::from(self.group.size()))
    }

    fn local_copy(&self, bytes: f64) -> f64 {
        bytes * per_byte(self.figures.local_copy_kib_ps)
    }

    fn reduction(&self, bytes: f64) -> f64 {
        bytes * per_byte(self.figures.reduction_kib_ps)
    }

    /// The cost of depositing data on the board.
    fn deposit(&self, bytes: f64) -> f64 {
        let word = ns(self.figures.deposit_ps);
        if bytes <= DEPOSIT_INLINE_BYTES { word } else { word + self.local_copy(bytes) }
    }

    /// The cost of taking data from the board.
    fn take(&self, bytes: f64) -> f64 {
        let line = ns(self.figures.line_ps);
        let copy = bytes * per_byte(self.figures.one_copy_kib_ps);
        if bytes <= DEPOSIT_INLINE_BYTES { line } else { 2.0 * line + copy }
    }

    /// The cost of reading data in another process's memory.
    fn read(&self, bytes: f64) -> f64 {
        let line = ns(self.figures.line_ps);
        let copy = bytes * per_byte(self.figures.one_copy_kib_ps);
        line + copy + ns(read_call_ps(bytes as u64))
    }

    /// The cost of an operation whose members tell where their data lie: so many reads of so many bytes in all, and by the
    /// busiest member, each with `further` work. A member also waits for its readers.
    fn told_ns(&self, (reads, most): (f64, f64), bytes: f64, further: f64) -> f64 {
        let (tell, read) = (self.deposit(0.0), self.read(bytes) + further);
        let size = f64::from(self.group.size());
        let longest = tell + most * read + ns(self.figures.line_ps);
        self.at_board(size * tell + reads * read, longest, 2.0)
    }

    fn told_of(&self, operation: Operation, all: f64) -> f64 {
        let size = f64::from(self.group.size());
        let others = size - 1.0;
        let (share, each) = (all / size, (size * others, others));
        match operation {
            Operation::Broadcast => self.told_ns((others, 1.0), all, 0.0),
            Operation::Gather => self.told_ns((others, others), share, 0.0),
            Operation::Scatter => self.told_ns((others, 1.0), share, 0.0),
            Operation::AllToAll => self.told_ns((size * others, others), share / size, 0.0),
            Operation::Reduce => self.told_ns((others, others), all, self.reduction(all)),
            Operation::ReduceScatter => self.told_ns(each, share, self.reduction(share)),
            // Of each other member, one part to be combined and one that is.
            Operation::AllReduce => {
                let (reads, most) = each;
                self.told_ns((2.0 * reads, 2.0 * most), share, self.reduction(share) / 2.0)
            }
            _ => self.told_ns(each, share, 0.0),
        }
    }

    /// The cost of a deposit and its take by another member, concurrent where both are running.
    fn hand_over(&self, bytes: f64) -> f64 {
        if bytes <= DEPOSIT_INLINE_BYTES || self.rotation() > 0.0 {
            return self.deposit(bytes) + self.take(bytes);
        }
        let word = ns(self.figures.deposit_ps);
        let line = ns(self.figures.line_ps);
        word + 2.0 * line + bytes * per_byte(self.figures.two_copy_kib_ps)
    }

    /// The cost of combining the deposits of so many members, its own included.
    fn combine(&self, members: f64, bytes: f64) -> f64 {
        (members - 1.0) * (ns(self.figures.line_ps) + self.reduction(bytes))
    }

    /// The cost of an operation at the board: the members share `work`, none is done before `longest`, and each waits
    /// `rounds` times for the others.
    fn at_board(&self, work: f64, longest: f64, rounds: f64) -> f64 {
        let arrival = ns(self.figures.line_ps).max(rounds * self.rotation());
        arrival + longest.max(work / self.workers())
    }

    fn board_ns(&self, load: &Load, style: BoardStyle) -> f64 {
        let size = f64::from(self.group.size());
        let others = size - 1.0;
        let all = load.bytes as f64;
        let share = all / size;
        if style.tells(load.operation) {
            return self.told_of(load.operation, all);
        }
        let alike = |each: f64| self.at_board(size * each, each, 1.0);
        match load.operation {
            Operation::Barrier => alike(self.deposit(0.0)),
            Operation::Broadcast => {
                let work = self.deposit(all) + others * self.take(all);
                self.at_board(work, self.hand_over(all), LOOSE)
            }
            Operation::Gather => {
                let takes = others * self.take(share);
                let longest = self.hand_over(share) + (others - 1.0) * self.take(share);
                self.at_board(others * self.deposit(share) + takes, longest, LOOSE)
            }
            Operation::Scatter => {
                let work = self.deposit(all - share) + others * self.take(share);
                let longest = self.deposit((others - 1.0) * share) + self.hand_over(share);
                self.at_board(work, longest, LOOSE)
            }
            Operation::Reduce => {
                let (deposit, combine) = (self.deposit(all), self.combine(size, all));
                self.at_board(others * deposit + combine, deposit + combine, LOOSE)
            }
            Operation::AllGather => alike(self.deposit(share) + others * self.take(share)),
            Operation::AllToAll => {
                let block = share / size;
                alike(self.deposit(others * block) + others * self.take(block))
            }
            Operation::ReduceScatter => alike(self.deposit(all) + self.combine(size, share)),
            Operation::AllReduce => self.all_reduce_at_board(all, style),
            Operation::Scan | Operation::ExclusiveScan => {
                let (deposit, last) = (self.deposit(all), self.combine(size, all));
                self.at_board(size * (deposit + last / 2.0), deposit + last, 1.0)
            }
        }
    }

    fn all_reduce_at_board(&self, all: f64, style: BoardStyle) -> f64 {
        let size = f64::from(self.group.size());
        let deposit = self.deposit(all);
        let combine = self.combine(size, all);
        match style {
            BoardStyle::Each | BoardStyle::Told => {
                self.at_board(size * (deposit + combine), deposit + combine, 1.0)
            }
            BoardStyle::Together => {
                let take = self.take(all);
                let at_once = if all <= TOGETHER_ALONE_BYTES { 1.0 } else { self.workers() };
                let longest = deposit + combine / at_once + take;
                // The member that makes the result polls for it once more before it goes on.
                self.at_board(size * (deposit + take) + combine, longest, 1.0)
                    + ns(self.figures.line_ps)
            }
            BoardStyle::Divided => {
                let part = all / size;
                let parts = self.combine(size, part) + size * self.take(part);
                let each = self.deposit(all - part) + parts;
                self.at_board(size * each, each, 2.0)
            }
        }
    }
}

/// The clocks of the members while messages are followed.
struct Clocks<'a> {
    scene: &'a Scene<'a>,
    clocks: Vec<f64>,
    /// By member: the number of its host.
    host_of: Vec<usize>,
    /// By host: until when its members' messages leave it, and until when messages come to them.
    links_busy: Vec<[f64; 2]>,
    rotation: f64,
    /// The work of all members.
    work: f64,
}

/// The cost of a message.
struct CostMessage {
    /// The sender is busy for so long.
    sending: f64,
    /// The time from the sender's beginning until the data are there.
    arrival: f64,
    /// The receiver is busy for so long.
    receiving: f64,
}

impl<'a> Clocks<'a> {
    fn new(scene: &'a Scene<'a>) -> Self {
        let clocks = vec![0.0; scene.group.size() as usize];
        let mut host_of = vec![0; clocks.len()];
        if scene.clusters_are_hosts {
            for (number, host) in scene.group.hosts().iter().enumerate() {
                host.iter().for_each(|&member| host_of[member as usize] = number);
            }
        }
        let links_busy = vec![[0.0; 2]; clocks.len()];
        Self { scene, clocks, host_of, links_busy, rotation: scene.rotation(), work: 0.0 }
    }

    fn over_messages(
        mut self,
        load: &Load,
        there: &dyn Architecture,
        back: &dyn Architecture,
        split: bool,
    ) -> f64 {
        let group = self.scene.group;
        let bytes = load.bytes as f64;
        let block = bytes / f64::from(group.size());
        let tree = there.tree(group, 0);
        let rounds = || there.rounds(group).unwrap_or_else(|| Rounds::up_and_down(&tree));
        match load.operation {
            Operation::Barrier => match there.rounds(group) {
                Some(rounds) => self.in_rounds(&rounds, |_| 0.0, false),
                None => {
                    self.up(&tree, |_| 0.0, 1, false);
                    self.down(&back.tree(group, 0), |_| 0.0, 1);
                }
            },
            Operation::Broadcast if split => {
                self.down(&tree, |below| below * block, 1);
                self.tell(&rounds(), block);
            }
            Operation::Broadcast => self.down(&back.tree(group, 0), |_| bytes, load.segments),
            Operation::Scatter => self.down(&tree, |below| below * block, 1),
            Operation::Gather => self.up(&tree, |below| below * block, 1, false),
            Operation::Reduce if split => {
                self.give(&rounds(), block);
                self.up(&tree, |below| below * block, 1, false);
            }
            Operation::Reduce => self.up(&tree, |_| bytes, load.segments, true),
            Operation::AllGather => self.tell(&rounds(), block),
            Operation::AllReduce if split => {
                let rounds = rounds();
                self.give(&rounds, block);
                self.tell(&rounds, block);
            }
            Operation::AllReduce => {
                match there.rounds(group).filter(|rounds| all_reduce::adds_up(rounds, group.size()))
                {
                    Some(rounds) => self.in_rounds(&rounds, |_| bytes, true),
                    None => {
                        self.up(&tree, |_| bytes, load.segments, true);
                        self.down(&back.tree(group, 0), |_| bytes, load.segments);
                    }
                }
            }
            Operation::AllToAll => match there.exchange_of(group, 0) {
                Some(_) => self.each_to_each(block / f64::from(group.size())),
                // On the whole way of all rounds, half of all blocks are on it in each.
                None => self.in_rounds(&rounds(), |_| block / 2.0, false),
            },
            Operation::ReduceScatter => self.give(&rounds(), block),
            Operation::Scan | Operation::ExclusiveScan => match there.prefix(group) {
                Some(rounds) => self.in_rounds(&rounds, |_| bytes, true),
                None => {
                    self.up(&tree, |below| below * bytes, 1, false);
                    self.work_at(0, self.scene.combine(f64::from(group.size()), bytes));
                    self.down(&tree, |below| below * bytes, 1);
                }
            },
        }
        self.result()
    }

    /// Returns the time at which the last member is done.
    fn result(self) -> f64 {
        let last = self.clocks.iter().copied().fold(0.0, f64::max);
        last.max(self.work / self.scene.workers())
    }

    fn message(&self, from: u32, to: u32, bytes: f64) -> CostMessage {
        let (scene, figures) = (self.scene, self.scene.figures);
        let group = scene.group;
        let bulk = if bytes <= INLINE_BYTES { 0.0 } else { bytes };
        let (one, other) = (self.host_of[from as usize], self.host_of[to as usize]);
        let are_apart = match group.sites().is_empty() {
            true => group.cluster_of(from) != group.cluster_of(to),
            false => one != other,
        };
        if scene.clusters_are_hosts && are_apart {
            return self.far_message(self.link(one, other), bytes, bulk);
        }
        let line = ns(figures.line_ps);
        let overhead = ((ns(figures.message_ps) - line) / 2.0).max(0.0);
        let out = bulk * per_byte(figures.one_copy_kib_ps);
        let both = bulk * per_byte(figures.two_copy_kib_ps);
        let inwards = scene.local_copy(bulk);
        // On processors of their own both copies go on at once.
        let ahead = if self.rotation > 0.0 { inwards } else { (both - out).max(0.0) };
        let arrival = overhead + line + ahead;
        CostMessage { sending: overhead + inwards, arrival, receiving: overhead + out }
    }

    fn link(&self, one: usize, other: usize) -> Link {
        let measured = self.scene.links.between(one, other);
        measured.unwrap_or_else(|| Link::assumed(self.scene.figures))
    }

    /// A message between hosts. Both ends are busy for a gap; the rest of the latency passes between them.
    fn far_message(&self, link: Link, bytes: f64, bulk: f64) -> CostMessage {
        let overhead = ns(link.gap_ps);
        let carried = bytes * per_byte(link.kib_ps);
        let arrival = (ns(link.latency_ps) - overhead).max(overhead) + carried;
        let receiving = overhead + self.scene.local_copy(bulk);
        CostMessage { sending: overhead + carried, arrival, receiving }
    }

    /// A member sends; returns when the data are there, and how long receiving takes.
    fn send(&mut self, from: u32, to: u32, bytes: f64) -> (f64, f64) {
        let message = self.message(from, to, bytes);
        let (here, there) = (self.host_of[from as usize], self.host_of[to as usize]);
        if here == there {
            let began = self.clocks[from as usize];
            self.work_at(from, message.sending);
            return (began + message.arrival, message.receiving);
        }
        // The members of a host share what connects it.
        let carried = bytes * per_byte(self.link(here, there).kib_ps);
        let began = self.clocks[from as usize].max(self.links_busy[here][0]);
        self.clocks[from as usize] = began;
        self.work_at(from, message.sending);
        self.links_busy[here][0] = began + carried;
        let arrival = (began + message.arrival).max(self.links_busy[there][1] + carried);
        self.links_busy[there][1] = arrival;
        (arrival, message.receiving)
    }

    /// A member receives a message whose data are there at `arrival`.
    fn receive(&mut self, to: u32, arrival: f64, receiving: f64) {
        let clock = &mut self.clocks[to as usize];
        if arrival > *clock {
            // It looks again when its turn comes.
            *clock = arrival + self.rotation;
        }
        self.work_at(to, receiving);
    }

    fn work_at(&mut self, member: u32, time: f64) {
        self.clocks[member as usize] += time;
        self.work += time;
    }

    /// Follows messages down a tree. `bytes` says how much goes to a member with so many members from it downwards.
    fn down(&mut self, tree: &Tree, bytes: impl Fn(f64) -> f64, segments: u32) {
        let below = counts(tree);
        let order = tree.top_down();
        for _ in 0..segments.max(1) {
            for &member in &order {
                for &child in tree.children(member) {
                    let bytes = bytes(below[child as usize]) / f64::from(segments.max(1));
                    let (arrival, receiving) = self.send(member, child, bytes);
                    self.receive(child, arrival, receiving);
                }
            }
        }
    }

    /// Follows messages up a tree, combined on the way or not.
    fn up(&mut self, tree: &Tree, bytes: impl Fn(f64) -> f64, segments: u32, combines: bool) {
        let below = counts(tree);
        let order = tree.bottom_up();
        for _ in 0..segments.max(1) {
            for &member in &order {
                let Some(parent) = tree.parent(member) else { continue };
                let bytes = bytes(below[member as usize]) / f64::from(segments.max(1));
                let (arrival, receiving) = self.send(member, parent, bytes);
                let combining = if combines { self.scene.reduction(bytes) } else { 0.0 };
                self.receive(parent, arrival, receiving + combining);
            }
        }
    }

    /// Follows messages in rounds, with so many bytes in the messages of each round.
    fn in_rounds(&mut self, rounds: &Rounds, bytes: impl Fn(usize) -> f64, combines: bool) {
        for (number, round) in rounds.iter().enumerate() {
            let bytes = bytes(number);
            let pairs = round.iter().map(|&(from, to)| (from, to, bytes));
            self.round(pairs.collect(), combines);
        }
    }

    /// One round: all send, then all receive.
    fn round(&mut self, messages: Vec<(u32, u32, f64)>, combines: bool) {
        let mut arrivals = Vec::with_capacity(messages.len());
        for &(from, to, bytes) in &messages {
            arrivals.push((to, self.send(from, to, bytes), bytes));
        }
        for (to, (arrival, receiving), bytes) in arrivals {
            let combining = if combines { self.scene.reduction(bytes) } else { 0.0 };
            self.receive(to, arrival, receiving + combining);
        }
    }

    /// An allgather: each tells the other what it lacks.
    fn tell(&mut self, rounds: &Rounds, block: f64) {
        for told in told(rounds, self.scene.group.size()) {
            let messages = told.iter().map(|tell| (tell.from, tell.to, bytes_of(tell, block)));
            self.round(messages.collect(), false);
        }
    }

    /// An allgather backwards in time: each gives away what is not its own.
    fn give(&mut self, rounds: &Rounds, block: f64) {
        for told in told(rounds, self.scene.group.size()).iter().rev() {
            let messages = told.iter().map(|tell| (tell.to, tell.from, bytes_of(tell, block)));
            self.round(messages.collect(), true);
        }
    }

    /// Each member sends a block to each other, and receives one.
    fn each_to_each(&mut self, block: f64) {
        if self.scene.clusters_are_hosts {
            return self.between_all_hosts(|own, other, is_own| {
                let count = other.len() - usize::from(is_own);
                ((own[0], other[other.len() - 1]), count, block)
            });
        }
        let group = self.scene.group;
        let others = f64::from(group.size() - 1);
        // The first and the last are the farthest apart.
        let message = self.message(0, group.size() - 1, block);
        for member in 0..group.size() {
            self.work_at(member, others * message.sending + self.rotation);
            self.work -= self.rotation;
            self.receive(member, message.arrival, others * message.receiving);
        }
    }

    /// Each member sends one message to each other host, with its blocks for all members there, and gets one. Returns when
    /// all are done.
    fn each_to_hosts(mut self, block: f64) -> f64 {
        self.between_all_hosts(|own, other, is_own| {
            ((own[0], other[0]), usize::from(!is_own), other.len() as f64 * block)
        });
        self.result()
    }

    /// Each member sends to each host, its own among them, so many messages of so many bytes, and gets as many. The first
    /// numbers say between which members such a message goes. The members of a host share what connects it.
    fn between_all_hosts(
        &mut self,
        messages: impl Fn(&[u32], &[u32], bool) -> ((u32, u32), usize, f64),
    ) {
        let hosts = self.scene.group.hosts();
        for (place, own) in hosts.iter().enumerate() {
            let (mut sending, mut receiving, mut carried, mut arrival) = (0.0, 0.0, 0.0, 0.0_f64);
            for (other_place, other) in hosts.iter().enumerate() {
                let is_own = place == other_place;
                let ((from, to), count, bytes) = messages(own, other, is_own);
                if count > 0 {
                    let (message, count) = (self.message(from, to, bytes), count as f64);
                    sending += count * message.sending;
                    receiving += count * message.receiving;
                    arrival = arrival.max(message.arrival);
                    if !is_own {
                        carried += count * bytes * per_byte(self.link(place, other_place).kib_ps);
                    }
                }
            }
            let last = arrival.max(own.len() as f64 * carried);
            for &member in own {
                self.work_at(member, sending + self.rotation);
                self.work -= self.rotation;
                self.receive(member, last, receiving);
            }
        }
    }
}

/// Members from each member of a tree downwards, itself among them.
fn counts(tree: &Tree) -> Vec<f64> {
    let mut counts = vec![1.0; tree.size() as usize];
    for member in tree.bottom_up() {
        if let Some(parent) = tree.parent(member) {
            counts[parent as usize] += counts[member as usize];
        }
    }
    counts
}

/// The messages of an allgather, round by round.
fn told(rounds: &Rounds, size: u32) -> Vec<Vec<Tell>> {
    know::tells(rounds, know::own(size))
}

fn bytes_of(tell: &Tell, block: f64) -> f64 {
    tell.blocks.len() as f64 * block
}

fn ns(picoseconds: u64) -> f64 {
    picoseconds as f64 / 1e3
}

fn per_byte(kib_ps: u64) -> f64 {
    kib_ps as f64 / 1e3 / 1024.0
}
