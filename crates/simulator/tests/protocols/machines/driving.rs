//! One started operation over hosts: the last member of a host to come drives it, and members compute while others wait.
//!
//! Members start at random times, and some of them not at all at first. In its start a member does what it can. Some
//! members compute then, and call nothing more until everything else has come to rest. The plans are those of the
//! product, and data are symbols: which member's block they are, once for each time that it was combined.
//!
//! In other runs a host is lost at a random time. Its members do nothing more, and a part of what they have sent does not
//! come. Each other member learns of the loss at a time of its own. It does what it can then, and fails if that is not all.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use landeck_collectives::{
    Action, Cells, Execution, Group, Operation, Order, Store, Task, Walk, plan_of_started,
};

use super::draw::Draw;
use super::event_log::{EventLog, ProtocolFailure};
use super::host_checks::{Check, ensure};

const STARTS_WITHIN: Duration = Duration::from_millis(20);
const DELAY_MAX: Duration = Duration::from_millis(5);
/// The longest time until a member learns of a lost host, beyond the delay of what has come of it.
const LEARNS_WITHIN: Duration = Duration::from_millis(20);
const MEMBERS_MAX: u64 = 7;
const HOSTS_MAX: u64 = 3;

/// The result of a run in which all properties held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DrivingReport {
    /// The messages between hosts.
    pub(crate) messages: usize,
    /// The members that were through while others computed.
    pub(crate) early: usize,
    /// A number that depends on everything that happened.
    pub(crate) hash: u64,
}

/// Blocks of members, in rising order, as a value was combined of them.
type Value = Vec<(u32, u32)>;

/// The result of a run with a lost host in which all properties held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LostHostReport {
    /// The members elsewhere that had all they needed.
    pub(crate) succeeded: usize,
    /// The members elsewhere that failed.
    pub(crate) failed: usize,
    /// A number that depends on everything that happened.
    pub(crate) hash: u64,
}

#[derive(Clone, Debug)]
enum Event {
    Starts(u32),
    Loses(usize),
    Learns(u32),
    Arrives { from: u32, to: u32, values: Vec<Value> },
}

/// A member that has started.
struct Member {
    execution: Execution,
    stores: BTreeMap<(Store, u32), Value>,
    /// Steps that have begun and wait.
    open: VecDeque<u32>,
}

struct World {
    task: Task,
    group: Group,
    hosts: Vec<Vec<u32>>,
    members: BTreeMap<u32, Member>,
    /// By member: what it has laid on the board of its host.
    laid: BTreeMap<u32, BTreeMap<u32, Value>>,
    /// By receiver and host: the values that have come.
    arrived: BTreeMap<(u32, usize), Vec<Value>>,
    /// By receiver and host: the members that have sent to it.
    sent: BTreeMap<(u32, usize), Vec<u32>>,
    busy: BTreeSet<u32>,
    lost: Option<usize>,
    /// The members that know of the loss, and those that have failed by it.
    know: BTreeSet<u32>,
    failed: BTreeSet<u32>,
    events: BTreeMap<(Duration, u64), Event>,
    planned: u64,
    now: Duration,
    draw: Draw,
}

/// Runs one started operation.
///
/// # Errors
/// [`ProtocolFailure`] if a property did not hold.
pub(crate) fn run(seed: u64) -> Result<DrivingReport, ProtocolFailure> {
    let (mut world, mut log) = (World::new(seed), EventLog::default());
    let (task, hosts) = (world.task, world.hosts.clone());
    log.note(world.now, format!("{task:?} on {hosts:?}, {:?} compute", world.busy));
    let failed = |log: &mut EventLog, (property, text)| log.failure(seed, property, text);
    world.start_some();
    world.come_to_rest(&mut log).map_err(|error| failed(&mut log, error))?;
    world.nobody_waits().map_err(|error| failed(&mut log, error))?;
    let early = world.members.values().filter(|member| member.execution.is_over()).count();
    world.start_rest();
    world.come_to_rest(&mut log).map_err(|error| failed(&mut log, error))?;
    world.nobody_waits().map_err(|error| failed(&mut log, error))?;
    world.call_all().map_err(|error| failed(&mut log, error))?;
    world.come_to_rest(&mut log).map_err(|error| failed(&mut log, error))?;
    world.all_have_results().map_err(|error| failed(&mut log, error))?;
    let messages = world.sent.values().map(Vec::len).sum();
    Ok(DrivingReport { messages, early, hash: log.hash() })
}

/// Runs one started operation in which a host is lost.
///
/// # Errors
/// [`ProtocolFailure`] if a property did not hold.
pub(crate) fn run_with_loss(seed: u64) -> Result<LostHostReport, ProtocolFailure> {
    let (mut world, mut log) = (World::new(seed), EventLog::default());
    let (task, hosts) = (world.task, world.hosts.clone());
    log.note(world.now, format!("{task:?} on {hosts:?}, {:?} compute", world.busy));
    let host = world.draw.below(hosts.len() as u64) as usize;
    world.plan(STARTS_WITHIN + DELAY_MAX, Event::Loses(host));
    world.start_rest();
    let checked = world.come_to_rest(&mut log).and_then(|()| {
        world.call_all()?;
        world.come_to_rest(&mut log)?;
        let is_over = |(number, member): (&u32, &Member)| {
            member.execution.is_over() || world.failed.contains(number)
        };
        let elsewhere = || world.members.iter().filter(|(member, _)| !hosts[host].contains(member));
        ensure(elsewhere().all(is_over), "nobody waits for a lost host", || {
            format!("{:?} have failed of {:?}", world.failed, world.members.keys())
        })?;
        world.all_have_results()
    });
    checked.map_err(|(property, text)| log.failure(seed, property, text))?;
    let (failed, here) = (world.failed.len(), world.size() as usize - hosts[host].len());
    Ok(LostHostReport { succeeded: here - failed, failed, hash: log.hash() })
}

impl World {
    fn new(seed: u64) -> Self {
        let mut draw = Draw::new(seed);
        let size = 2 + draw.below(MEMBERS_MAX - 1) as u32;
        let keys: Vec<u32> = (0..size).map(|_| draw.below(HOSTS_MAX) as u32).collect();
        let group = Group::by(size, |member| keys[member as usize])
            .unwrap_or_else(|_| unreachable!("it has two members or more"));
        let operation = draw.pick(&Operation::ALL);
        let root = if operation.has_root() { draw.below(size.into()) as u32 } else { 0 };
        let order = draw.pick(&[Order::Free, Order::Canonical, Order::Late]);
        let order = if operation.reduces() { order } else { Order::Free };
        let task = Task { operation, root, segments: 1, order, in_place: false };
        let busy = (0..size).filter(|_| draw.permille(400)).collect();
        Self {
            task,
            hosts: group.hosts(),
            group,
            members: BTreeMap::new(),
            laid: BTreeMap::new(),
            arrived: BTreeMap::new(),
            sent: BTreeMap::new(),
            busy,
            lost: None,
            know: BTreeSet::new(),
            failed: BTreeSet::new(),
            events: BTreeMap::new(),
            planned: 0,
            now: Duration::ZERO,
            draw,
        }
    }

    fn size(&self) -> u32 {
        self.group.size()
    }

    fn host_of(&self, member: u32) -> usize {
        self.hosts.iter().position(|host| host.contains(&member)).unwrap_or(0)
    }

    /// Whether a member's result depends on the data of another, or on its own.
    fn needs(&self, member: u32, from: u32) -> bool {
        match self.task.operation {
            Operation::Gather | Operation::Reduce => member == self.task.root,
            Operation::Broadcast | Operation::Scatter => from == self.task.root,
            Operation::Scan => from <= member,
            Operation::ExclusiveScan => from < member,
            _ => true,
        }
    }

    fn plan(&mut self, most: Duration, event: Event) {
        let at = self.now + self.draw.time(Duration::from_micros(1), most);
        self.planned += 1;
        self.events.insert((at, self.planned), event);
    }

    fn start_some(&mut self) {
        for member in 0..self.size() {
            if self.draw.permille(800) {
                self.plan(STARTS_WITHIN, Event::Starts(member));
            }
        }
    }

    fn start_rest(&mut self) {
        for member in 0..self.size() {
            if !self.members.contains_key(&member) {
                self.plan(STARTS_WITHIN, Event::Starts(member));
            }
        }
    }

    /// Lets everything happen that happens while the busy members compute.
    fn come_to_rest(&mut self, log: &mut EventLog) -> Check {
        while let Some(((at, _), event)) = self.events.pop_first() {
            self.now = at;
            log.note(at, format!("{event:?}"));
            match event {
                Event::Starts(member) if self.is_lost(member) => {}
                Event::Starts(member) => self.start(member)?,
                Event::Loses(host) => self.lose(host),
                Event::Learns(member) => {
                    self.know.insert(member);
                }
                Event::Arrives { from, to, values } => {
                    self.arrived.insert((to, self.host_of(from)), values);
                }
            }
            let calling: Vec<u32> =
                self.members.keys().copied().filter(|member| !self.busy.contains(member)).collect();
            for member in calling {
                self.advance(member)?;
            }
        }
        Ok(())
    }

    fn is_lost(&self, member: u32) -> bool {
        self.lost == Some(self.host_of(member))
    }

    /// A host is lost, with a part of what its members have sent. The others learn of it when the rest has come.
    fn lose(&mut self, host: usize) {
        self.lost = Some(host);
        for (at, event) in std::mem::take(&mut self.events) {
            let is_from = matches!(event, Event::Arrives { from, .. } if self.is_lost(from));
            if !is_from || self.draw.permille(500) {
                self.events.insert(at, event);
            }
        }
        let others: Vec<u32> = (0..self.size()).filter(|&member| !self.is_lost(member)).collect();
        self.now += DELAY_MAX;
        others.into_iter().for_each(|member| self.plan(LEARNS_WITHIN, Event::Learns(member)));
        self.now -= DELAY_MAX;
    }

    /// A member comes to the board. The last of its host has the plan in which it drives it.
    fn start(&mut self, member: u32) -> Check {
        let host = &self.hosts[self.host_of(member)];
        let have_come = host.iter().filter(|other| self.members.contains_key(other)).count();
        let plan = plan_of_started(&self.task, &self.group, member, have_come + 1 == host.len());
        let numbers = self.size() * self.size();
        let own = |block| ((Store::Input, block), vec![(member, block)]);
        let mut stores: BTreeMap<_, _> = (0..numbers).map(own).collect();
        if self.task.operation == Operation::Broadcast && member == self.task.root {
            stores.insert((Store::Output, 0), vec![(member, 0)]);
        }
        let execution = Execution::new(Walk::new(plan));
        self.members.insert(member, Member { execution, stores, open: VecDeque::new() });
        self.advance(member)
    }

    /// A member does what it can. It fails if it knows of a loss, and that is not all.
    fn advance(&mut self, number: u32) -> Check {
        if self.is_lost(number) || self.failed.contains(&number) {
            return Ok(());
        }
        let Some(mut member) = self.members.remove(&number) else { return Ok(()) };
        let mut result = Ok(());
        loop {
            while let Some(step) = member.execution.begin() {
                member.open.push_back(step);
            }
            let mut any = false;
            for step in std::mem::take(&mut member.open) {
                match result.is_ok() && self.does(number, &mut member, step, &mut result) {
                    true => {
                        member.execution.end(step);
                        any = true;
                    }
                    false => member.open.push_back(step),
                }
            }
            if !any || result.is_err() {
                break;
            }
        }
        if self.know.contains(&number) && !member.execution.is_over() {
            self.failed.insert(number);
        }
        self.members.insert(number, member);
        result
    }

    /// Does a step, if it can be done now.
    fn does(&mut self, number: u32, member: &mut Member, step: u32, result: &mut Check) -> bool {
        let action = member.execution.action(step).clone();
        let values = |member: &Member, cells: Cells| -> Vec<Value> {
            let of = |block| member.stores.get(&(cells.store, block)).cloned().unwrap_or_default();
            cells.blocks().map(of).collect()
        };
        match action {
            Action::Deposit { cells, .. } => {
                let laid = cells.blocks().zip(values(member, cells)).collect();
                self.laid.insert(number, laid);
            }
            Action::Await => {
                let host = &self.hosts[self.host_of(number)];
                return host.iter().all(|other| self.laid.contains_key(other));
            }
            Action::Take { from, into, .. } => {
                let Some(laid) = self.laid.get(&from) else { return false };
                for block in into.blocks() {
                    let value = laid.get(&block).cloned().unwrap_or_default();
                    member.stores.insert((into.store, block), value);
                }
            }
            Action::Copy { from, into } => {
                let values = values(member, from);
                let into = into.blocks().map(|block| (into.store, block));
                member.stores.extend(into.zip(values));
            }
            Action::Combine { left, right, into } => {
                let both = values(member, left).into_iter().zip(values(member, right));
                let combined = both.map(|(mut left, right)| {
                    left.extend(right);
                    left.sort_unstable();
                    left
                });
                let combined: Vec<Value> = combined.collect();
                let into = into.blocks().map(|block| (into.store, block));
                member.stores.extend(into.zip(combined));
            }
            Action::Send { to, cells } => {
                let values = cells.iter().flat_map(|&cells| values(member, cells)).collect();
                let senders = self.sent.entry((to, self.host_of(number))).or_default();
                senders.push(number);
                *result = ensure(senders.len() == 1, "a host is driven once", || {
                    format!("members {senders:?} of one host have sent to member {to}")
                });
                self.plan(DELAY_MAX, Event::Arrives { from: number, to, values });
            }
            Action::Receive { from, cells } => {
                let Some(values) = self.arrived.remove(&(number, self.host_of(from))) else {
                    return false;
                };
                let into =
                    cells.iter().flat_map(|cells| cells.blocks().map(|block| (cells.store, block)));
                member.stores.extend(into.zip(values));
            }
            Action::CombineDeposits { .. }
            | Action::Resolve { .. }
            | Action::Together { .. }
            | Action::Tell { .. }
            | Action::Read { .. }
            | Action::AwaitReaders { .. }
            | Action::TakeResult { .. } => return false,
        }
        true
    }

    /// The members that compute wait now, too.
    fn call_all(&mut self) -> Check {
        self.busy.clear();
        (0..self.size()).try_for_each(|member| self.advance(member))
    }

    /// A member that waits needs one that has not started: one of its own host, or any of another host from which it needs
    /// something.
    fn nobody_waits(&self) -> Check {
        let has_started = |member: &u32| self.members.contains_key(member);
        for (&number, member) in &self.members {
            let own = self.host_of(number);
            let has_all = self.hosts.iter().enumerate().all(|(host, members)| {
                let mut needed =
                    members.iter().filter(|&&from| self.needs(number, from)).peekable();
                match needed.peek() {
                    None => true,
                    Some(_) if host == own => needed.all(has_started),
                    Some(&root)
                        if self.task.operation.has_root()
                            && *root == self.task.root
                            && self.has_one_source() =>
                    {
                        has_started(root)
                    }
                    Some(_) => members.iter().all(has_started),
                }
            });
            let may_wait = self.busy.contains(&number) || !has_all;
            ensure(
                member.execution.is_over() || may_wait,
                "nobody waits for one that computes",
                || format!("member {number} waits in {:?}", member.open),
            )?;
        }
        Ok(())
    }

    fn has_one_source(&self) -> bool {
        matches!(self.task.operation, Operation::Broadcast | Operation::Scatter)
    }

    /// Every member that has not failed is through and has what it should have.
    fn all_have_results(&self) -> Check {
        let has_failed = |number: &u32| self.is_lost(*number) || self.failed.contains(number);
        for (&number, member) in self.members.iter().filter(|(number, _)| !has_failed(number)) {
            ensure(member.execution.is_over(), "the operation ends", || {
                format!("member {number}")
            })?;
            for (block, expected) in self.expected(number) {
                let found = member.stores.get(&(Store::Output, block)).cloned().unwrap_or_default();
                ensure(found == expected, "all data, each once", || {
                    format!("member {number} has {found:?} in block {block}, not {expected:?}")
                })?;
            }
        }
        Ok(())
    }

    /// The blocks of a member's result.
    fn expected(&self, member: u32) -> Vec<(u32, Value)> {
        let size = self.size();
        let needed = || (0..size).filter(|&from| self.needs(member, from));
        let together = |block: u32| vec![(block, needed().map(|from| (from, 0)).collect())];
        match self.task.operation {
            Operation::Barrier => Vec::new(),
            Operation::Broadcast => together(0),
            Operation::Scatter => vec![(member, vec![(self.task.root, member)])],
            Operation::Gather | Operation::AllGather => {
                needed().map(|from| (from, vec![(from, from)])).collect()
            }
            Operation::AllToAll => {
                let block = |from: u32| from * size + member;
                needed().map(|from| (block(from), vec![(from, block(from))])).collect()
            }
            Operation::ReduceScatter => {
                vec![(member, needed().map(|from| (from, member)).collect())]
            }
            Operation::Reduce | Operation::ExclusiveScan if needed().next().is_none() => Vec::new(),
            _ => together(0),
        }
    }
}
