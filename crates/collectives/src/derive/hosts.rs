//! Operations over the board of each host and over messages between the hosts' drivers.
//!
//! A *driver* is the member that acts for its host: the root on the root's host, elsewhere the host's first member. The
//! members of a host go to its board, the drivers follow an architecture whose members are the hosts, and the hosts'
//! members go to their boards again where all need a result. So no data go to a host twice. Hosts at several sites are
//! clusters for the architecture, one for each site.
//!
//! | operation | at the board | between the drivers | at the board |
//! |---|---|---|---|
//! | barrier | the driver waits for all | barrier | the driver releases all |
//! | broadcast | | broadcast | all take the driver's data |
//! | reduce | the driver combines | reduce | |
//! | allreduce | the driver combines | allreduce | all take the driver's data |
//! | gather | the driver takes | gather | |
//! | allgather | the driver takes | allgather | all take the driver's data |
//! | scatter | | scatter | each takes its block |
//! | reduce-scatter | the driver combines | reduce-scatter | each takes its block |
//! | scan | each combines, up to itself; the driver, all | exclusive scan | each adds the driver's data |
//!
//! In an alltoall every member is a driver: [`exchange`]. A scan whose order counts, or whose hosts have no consecutive
//! members, has another form: [`scan`].
//!
//! Long data go in *units*, one behind the other: while one is between the drivers, others are at the boards. A unit is a
//! segment of the data, as many segments as there are hosts if these divide the data, or a segment of each member's block.
//! Each unit has visits to the board of its own. The members of a host have consecutive blocks in the order of
//! [`Plan::order`](crate::Plan), since a deposit is a run of blocks.
//!
//! Members alone on their hosts have no board. What is not derived goes over messages between all members.

use std::ops::Range;

use super::{
    Paths, Task, all_gather, all_reduce, barrier, broadcast, gather, know, of, reduce,
    reduce_scatter, scatter,
};
use crate::architecture::Architecture;
use crate::blocks::Blocks;
use crate::group::Group;
use crate::operation::Operation;
use crate::partial::{Order, Partial};
use crate::plan::{Action, Cells, Store};
use crate::program::{Drivers, Program};

mod exchange;
mod scan;
mod started;

/// So many units are at the boards before the members take the result of the first.
const UNITS_AHEAD: u32 = 2;

/// Whether there are plans of this task over the hosts of a group.
pub(super) fn is_derived(task: &Task, group: &Group) -> bool {
    task.operation != Operation::AllToAll || exchange::has_few_visits(&group.hosts())
}

/// Adds the actions of all members. An operation that is not derived goes over messages between all members.
pub(super) fn plan(
    program: &mut Program,
    task: &Task,
    group: &Group,
    (architecture, split): (&dyn Architecture, bool),
) {
    if !is_derived(task, group) {
        let paths = Paths { group, to: architecture, back: architecture, split };
        super::over_messages(program, task, &paths);
        return;
    }
    let members = group.hosts();
    let has_root = task.operation.has_root();
    let root_host = members.iter().position(|host| has_root && host.contains(&task.root));
    let drivers = members
        .iter()
        .enumerate()
        .map(|(number, host)| if Some(number) == root_host { task.root } else { host[0] });
    let drivers = drivers.collect();
    program.set_boards(&members);
    let whole = || Group::whole(members.len() as u32).ok();
    let Some(group_of_hosts) = group.hosts_at_sites().or_else(whole) else { return };
    let paths = Paths { group: &group_of_hosts, to: architecture, back: architecture, split };
    let in_unit = match task.operation.has_segments() {
        true if super::is_split(task.operation, split) => members.len() as u32,
        true => 1,
        false => program.size(),
    };
    let units = match task.operation {
        operation if operation.has_segments() => task.segments / in_unit,
        operation if operation.has_blocks_in_segments() => task.segments,
        _ => 1,
    };
    let between = Task { root: root_host.unwrap_or(0) as u32, segments: in_unit, ..*task };
    let mut hosts =
        Hosts { program, task, between, members, drivers, places: Vec::new(), in_unit, units };
    hosts.number_blocks();
    hosts.plan(&paths);
}

/// The most values that a driver has for its host's members: several if these may not be combined there.
pub(crate) fn values_of(operation: Operation, order: Order, hosts: &[Vec<u32>]) -> u64 {
    let is_one =
        !operation.reduces() || order == Order::Free && !tells_all(operation, order, hosts);
    let values = |members: &Vec<u32>| match order {
        _ if is_one => 1,
        Order::Late => members.len(),
        Order::Free | Order::Canonical => aligned_runs(members),
    };
    hosts.iter().map(values).max().unwrap_or(1) as u64
}

/// Whether the drivers tell each other the values of all members.
pub(crate) fn tells_all(operation: Operation, order: Order, hosts: &[Vec<u32>]) -> bool {
    let is_scan = matches!(operation, Operation::Scan | Operation::ExclusiveScan);
    is_scan && (order != Order::Free || !hosts.iter().all(|host| scan::is_run(host)))
}

/// The number of aligned runs of members, whose lengths are powers of two.
fn aligned_runs(members: &[u32]) -> usize {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &member in members {
        runs.push((member, 1));
        while let [.., (first, length), next] = runs[..]
            && next == (first + length, length)
            && first.is_multiple_of(2 * length)
        {
            runs.pop();
            runs.pop();
            runs.push((first, 2 * length));
        }
    }
    runs.len()
}

/// Adds the actions of all members in a started operation, in which these members come last to the boards of their hosts.
pub(super) fn plan_started(program: &mut Program, task: &Task, group: &Group, drivers: Vec<u32>) {
    let members = group.hosts();
    program.set_boards(&members);
    let in_unit = if task.operation.has_segments() { task.segments } else { program.size() };
    let places = (0..program.size()).collect();
    let units = 1;
    let between = *task;
    started::plan(&mut Hosts { program, task, between, members, drivers, places, in_unit, units });
}

struct Hosts<'a> {
    program: &'a mut Program,
    task: &'a Task,
    /// The task between the hosts, for one unit.
    between: Task,
    /// By host: its members, in rising order.
    members: Vec<Vec<u32>>,
    /// By host: its driver.
    drivers: Vec<u32>,
    /// By member: its place among the blocks of members.
    places: Vec<u32>,
    /// The number of blocks in a unit, and the number of units.
    in_unit: u32,
    units: u32,
}

/// A value that a driver holds: of so many members from the first on, in a store.
#[derive(Clone, Copy)]
struct Value {
    first: u32,
    length: u32,
    store: Store,
}

impl Hosts<'_> {
    /// Numbers the blocks of members so that those of a host follow each other.
    fn number_blocks(&mut self) {
        let order = self.members.concat();
        self.places = vec![0; order.len()];
        (0..).zip(&order).for_each(|(place, &member)| self.places[member as usize] = place);
        let are_of_members =
            !self.task.operation.has_segments() && self.task.operation != Operation::Barrier;
        if are_of_members && !order.is_sorted() {
            self.program.set_order(&order);
        }
    }

    fn plan(mut self, paths: &Paths<'_>) {
        match self.task.operation {
            Operation::Barrier => {
                self.each_host(Self::await_all);
                self.between(0, |program, _| barrier::plan(program, paths));
                self.each_host(Self::release);
            }
            Operation::Broadcast => {
                for unit in 0..self.units {
                    self.between(unit, |program, task| broadcast::plan(program, task, paths));
                    self.hand_out(unit);
                }
            }
            Operation::Reduce => {
                for unit in 0..self.units {
                    let values = self.combined(unit);
                    self.between(unit, |program, task| {
                        let own = |program: &mut Program, host: u32, blocks| {
                            held(program, task, host, &values[host as usize], &blocks)
                        };
                        reduce::of_values(program, task, paths, own);
                    });
                }
            }
            Operation::AllReduce => self.staggered(
                |hosts, unit| {
                    let values = hosts.combined(unit);
                    hosts.between(unit, |program, task| {
                        let own = |program: &mut Program, host: u32, blocks| {
                            held(program, task, host, &values[host as usize], &blocks)
                        };
                        all_reduce::of_values(program, task, paths, own);
                    });
                },
                Self::hand_out,
            ),
            Operation::Gather => self.gather(paths),
            Operation::AllGather => {
                let stores = self.gathering();
                self.staggered(
                    |hosts, unit| {
                        hosts.gathered(unit, &stores);
                        let known = know::own(hosts.members.len() as u32);
                        hosts.between(unit, |program, _| {
                            all_gather::tell(program, &paths.rounds(), known);
                        });
                    },
                    Self::hand_out,
                );
            }
            Operation::Scatter => self.scatter(paths),
            Operation::ReduceScatter => self.reduce_scatter(paths),
            Operation::Scan | Operation::ExclusiveScan => scan::plan(&mut self, paths),
            Operation::AllToAll => exchange::plan(&mut self),
        }
    }

    /// Does one thing for each unit, and another one for each, some units later.
    fn staggered(
        &mut self,
        mut first: impl FnMut(&mut Self, u32),
        mut second: impl FnMut(&mut Self, u32),
    ) {
        for unit in 0..self.units + UNITS_AHEAD {
            if unit < self.units {
                first(self, unit);
            }
            if let Some(before) = unit.checked_sub(UNITS_AHEAD) {
                second(self, before);
            }
        }
    }

    fn gather(&mut self, paths: &Paths<'_>) {
        let stores = self.gathering();
        let tree = paths.to.tree(paths.group, self.between.root);
        for unit in 0..self.units {
            let own = self.gathered(unit, &stores);
            self.between(unit, |program, _| gather::up(program, &tree, &own));
        }
    }

    fn scatter(&mut self, paths: &Paths<'_>) {
        let stores = self.of_hosts();
        let tree = paths.to.tree(paths.group, self.between.root);
        let own: Vec<Cells> =
            (0..).zip(&stores).map(|(host, &store)| Cells::new(store, host, 1)).collect();
        for unit in 0..self.units {
            self.between(unit, |program, _| scatter::down(program, &tree, &own));
            self.keep_own(unit, self.task.root, Store::Output);
            self.divide(unit, &stores);
        }
    }

    fn reduce_scatter(&mut self, paths: &Paths<'_>) {
        let stores = self.of_hosts();
        let hosts = self.members.len() as u32;
        self.staggered(
            |this, unit| {
                let values = this.combined(unit);
                this.between(unit, |program, task| {
                    let own = (0..hosts)
                        .map(|host| held(program, task, host, &values[host as usize], &(0..hosts)))
                        .collect();
                    let results = reduce_scatter::results(program, &paths.rounds(), own);
                    for ((host, partial), &store) in (0..).zip(results).zip(&stores) {
                        partial.close(program, host, Cells::new(store, host, 1));
                    }
                });
            },
            |this, unit| this.divide(unit, &stores),
        );
    }

    /// The store in which each driver has the blocks of its host before they are divided. A member alone has its result.
    fn of_hosts(&mut self) -> Vec<Store> {
        let store = |host: usize| match (self.members[host].len(), self.drivers[host]) {
            (1, _) => Store::Output,
            (_, driver)
                if self.task.operation == Operation::Scatter && driver == self.task.root =>
            {
                Store::Input
            }
            (_, driver) => self.program.scratch(driver),
        };
        (0..self.members.len()).map(store).collect()
    }

    /// The members of each host take their blocks from its driver.
    fn divide(&mut self, unit: u32, stores: &[Store]) {
        self.each_host(|hosts, host| {
            let (driver, store) = (hosts.drivers[host], stores[host]);
            let blocks = hosts.blocks_of(unit, host).at(store);
            let own = hosts.block_of(unit, driver).at(store);
            let deposit = Action::Deposit { cells: blocks, except: Some(own.first) };
            hosts.program.local(driver, deposit);
            if store != Store::Input {
                hosts.program.copy(driver, own, own.at(Store::Output));
            }
            for member in hosts.others(host) {
                hosts.deposit(member, NOTHING);
                hosts.take(member, driver, blocks, hosts.block_of(unit, member));
            }
        });
    }

    /// Adds statements about the drivers, which have the numbers of their hosts.
    fn between(&mut self, unit: u32, add: impl FnOnce(&mut Program, &Task)) {
        let first = unit * self.in_unit;
        let blocks = match self.task.operation.has_segments() {
            true => (first..first + self.in_unit).map(Blocks::one).collect(),
            false => (0..self.members.len())
                .map(|host| Blocks::run(self.blocks_of(unit, host).blocks()))
                .collect(),
        };
        let drivers = Drivers { members: self.drivers.clone(), blocks: Some(blocks) };
        let task = &self.between;
        self.program.among(drivers, |program| add(program, task));
    }

    /// Has each host do something at its board. A host with one member has none.
    fn each_host(&mut self, mut act: impl FnMut(&mut Self, usize)) {
        for host in 0..self.members.len() {
            if self.members[host].len() > 1 {
                act(self, host);
            }
        }
    }

    /// The driver learns that all members of its host have come.
    fn await_all(&mut self, host: usize) {
        self.others(host).for_each(|member| self.deposit(member, NOTHING));
        self.deposit(self.drivers[host], NOTHING);
        self.program.local(self.drivers[host], Action::Await);
    }

    /// All members of a host learn that its driver goes on.
    fn release(&mut self, host: usize) {
        self.deposit(self.drivers[host], NOTHING);
        for member in self.others(host) {
            self.deposit(member, NOTHING);
            self.take(member, self.drivers[host], NOTHING, NOTHING);
        }
    }

    /// All members take a unit of the result from the driver of their host.
    fn hand_out(&mut self, unit: u32) {
        self.each_host(|hosts, host| {
            let (result, driver) = (hosts.result(unit), hosts.drivers[host]);
            hosts.deposit(driver, result);
            for member in hosts.others(host) {
                hosts.deposit(member, NOTHING);
                if hosts.task.operation != Operation::AllGather {
                    hosts.take(member, driver, result, result);
                    continue;
                }
                hosts.keep_own(unit, member, Store::Output);
                let own = hosts.block_of(unit, member).first;
                for blocks in [result.first..own, own + 1..result.first + result.count] {
                    hosts.take(member, driver, result, of(Store::Output, &blocks));
                }
            }
        });
    }

    /// The members of each host bring their data to their drivers. Returns the values that each driver holds then.
    fn combined(&mut self, unit: u32) -> Vec<Vec<Value>> {
        (0..self.members.len()).map(|host| self.combined_of(unit, host)).collect()
    }

    fn combined_of(&mut self, unit: u32, host: usize) -> Vec<Value> {
        let (driver, members) = (self.drivers[host], self.members[host].clone());
        let own = self.own_store(driver);
        if members.len() == 1 {
            return vec![Value { first: driver, length: 1, store: own }];
        }
        for member in self.others(host) {
            self.deposit(member, self.result(unit).at(self.own_store(member)));
        }
        self.deposit(driver, NOTHING);
        let data = self.result(unit);
        if self.task.order == Order::Free || self.task.order == Order::Canonical && is_run(&members)
        {
            let operation = self.task.operation;
            let is_result = operation == Operation::AllReduce
                || operation == Operation::Reduce && driver == self.task.root;
            let store = if is_result { Store::Output } else { self.program.scratch(driver) };
            let length = members.len() as u32;
            let (deposited, into) = (data.at(own), data.at(store));
            let combine = Action::CombineDeposits { members: length, deposited, into };
            self.program.local(driver, combine);
            return vec![Value { first: members[0], length, store }];
        }
        let value = |member| {
            let store = if member == driver { own } else { self.program.scratch(driver) };
            if member != driver {
                self.take(driver, member, data, data.at(store));
            }
            Value { first: member, length: 1, store }
        };
        members.iter().copied().map(value).collect()
    }

    /// The stores in which the drivers have the blocks of their hosts.
    fn gathering(&mut self) -> Vec<Store> {
        let store = |host: usize| {
            let driver = self.drivers[host];
            let has_result =
                self.task.operation == Operation::AllGather || driver == self.task.root;
            match self.members[host].len() {
                _ if has_result => Store::Output,
                1 => Store::Input,
                _ => self.program.scratch(driver),
            }
        };
        (0..self.members.len()).map(store).collect()
    }

    /// The members of each host bring their blocks to their drivers. Returns where each driver has its host's block.
    fn gathered(&mut self, unit: u32, stores: &[Store]) -> Vec<Cells> {
        for (host, &store) in stores.iter().enumerate() {
            let driver = self.drivers[host];
            if store != Store::Input {
                self.keep_own(unit, driver, store);
            }
            if self.members[host].len() == 1 {
                continue;
            }
            for member in self.others(host) {
                self.deposit(member, self.block_of(unit, member).at(self.own_store(member)));
            }
            self.deposit(driver, NOTHING);
            for member in self.others(host) {
                let block = self.block_of(unit, member).at(store);
                self.take(driver, member, block, block);
            }
        }
        (0..).zip(stores).map(|(host, &store)| Cells::new(store, host, 1)).collect()
    }

    /// A member's own block goes to where its others will be, unless it stands there.
    fn keep_own(&mut self, unit: u32, member: u32, store: Store) {
        let from = self.block_of(unit, member).at(self.own_store(member));
        self.program.copy(member, from, from.at(store));
    }

    /// A unit of a member's block.
    fn block_of(&self, unit: u32, member: u32) -> Cells {
        Cells::new(Store::Output, unit * self.in_unit + self.places[member as usize], 1)
    }

    /// A unit of the blocks of a host's members.
    fn blocks_of(&self, unit: u32, host: usize) -> Cells {
        let members = &self.members[host];
        Cells { count: members.len() as u32, ..self.block_of(unit, members[0]) }
    }

    /// The members of a host but its driver.
    fn others(&self, host: usize) -> impl Iterator<Item = u32> + use<> {
        let driver = self.drivers[host];
        self.members[host].clone().into_iter().filter(move |&member| member != driver)
    }

    /// The blocks of a unit of the result.
    fn result(&self, unit: u32) -> Cells {
        Cells::new(Store::Output, unit * self.in_unit, self.in_unit)
    }

    /// The store in which a member has its own data.
    fn own_store(&self, member: u32) -> Store {
        let has_root = self.task.operation.has_root();
        let is_in_place = self.task.in_place && (!has_root || member == self.task.root);
        if is_in_place { Store::Output } else { Store::Input }
    }

    fn deposit(&mut self, member: u32, cells: Cells) {
        self.program.local(member, Action::Deposit { cells, except: None });
    }

    fn take(&mut self, member: u32, from: u32, deposited: Cells, into: Cells) {
        if into.count > 0 || deposited.count == 0 {
            self.program.local(member, Action::Take { from, deposited, into, resolved: false });
        }
    }
}

/// No blocks.
const NOTHING: Cells = Cells::new(Store::Input, 0, 0);

/// Whether these members are one aligned run, whose value may stand for them in canonical order.
fn is_run(members: &[u32]) -> bool {
    let (first, length) = (members[0], members.len() as u32);
    members[members.len() - 1] - first + 1 == length
        && length.is_power_of_two()
        && first.is_multiple_of(length)
}

/// The values of a host for some blocks, combined as far as they may be.
fn held(
    program: &mut Program,
    task: &Task,
    host: u32,
    values: &[Value],
    blocks: &Range<u32>,
) -> Partial {
    let partial = |value: &Value| {
        Partial::of_run(task.order, (value.first, value.length), of(value.store, blocks))
    };
    let mut partials = values.iter().map(partial);
    let mut all = partials.next().unwrap_or_else(|| Partial::of_run(task.order, (0, 0), NOTHING));
    partials.for_each(|partial| all.join(program, host, partial));
    all
}
