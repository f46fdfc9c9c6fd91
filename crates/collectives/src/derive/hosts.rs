//! Operations over the board of each host and over messages between the hosts' drivers.
//!
//! A *driver* is the member that acts for its host: the root on the root's host, elsewhere the host's first member. The
//! members of a host go to its board, the drivers follow an architecture whose members are the hosts, and the hosts'
//! members go to their boards again where all need a result. So no data go to a host twice.
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
//! In an alltoall every member is a driver: [`exchange`].
//!
//! Members alone on their hosts have no board. Some operations need hosts of consecutive members, because a deposit is a
//! run of consecutive blocks. What is not derived goes over messages between all members.

use std::ops::Range;

use super::{
    Paths, Task, all_gather, all_reduce, barrier, broadcast, gather, know, of, reduce,
    reduce_scatter, scan, scatter,
};
use crate::architecture::Architecture;
use crate::blocks::Blocks;
use crate::group::Group;
use crate::operation::Operation;
use crate::partial::{Order, Partial};
use crate::plan::{Action, Cells, Store};
use crate::program::{Drivers, Program};

mod exchange;
mod started;

/// Whether there are plans of this task over the hosts of a group.
pub(super) fn is_derived(task: &Task, group: &Group) -> bool {
    let hosts = group.hosts();
    let are_runs =
        || hosts.iter().all(|host| (host[host.len() - 1] - host[0]) as usize + 1 == host.len());
    match task.operation {
        Operation::Barrier
        | Operation::Broadcast
        | Operation::Reduce
        | Operation::AllReduce
        | Operation::Gather
        | Operation::AllGather => true,
        Operation::Scatter => are_runs(),
        // In canonical order a host's value cannot stand for its members in every prefix or part.
        Operation::ReduceScatter | Operation::Scan | Operation::ExclusiveScan => {
            task.order == Order::Free && are_runs()
        }
        Operation::AllToAll => are_runs() && exchange::has_few_visits(&hosts),
    }
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
    let Ok(group_of_hosts) = Group::whole(members.len() as u32) else { return };
    let paths = Paths { group: &group_of_hosts, to: architecture, back: architecture, split };
    let between = Task { root: root_host.unwrap_or(0) as u32, ..*task };
    Hosts { program, task, between, members, drivers }.plan(&paths);
}

/// Adds the actions of all members in a started operation, in which these members come last to the boards of their hosts.
pub(super) fn plan_started(program: &mut Program, task: &Task, group: &Group, drivers: Vec<u32>) {
    let members = group.hosts();
    program.set_boards(&members);
    started::plan(&mut Hosts { program, task, between: *task, members, drivers });
}

struct Hosts<'a> {
    program: &'a mut Program,
    task: &'a Task,
    /// The task between the hosts.
    between: Task,
    /// By host: its members, in rising order.
    members: Vec<Vec<u32>>,
    /// By host: its driver.
    drivers: Vec<u32>,
}

/// A value that a driver holds: of so many members from the first on, in a store.
#[derive(Clone, Copy)]
struct Value {
    first: u32,
    length: u32,
    store: Store,
}

impl Hosts<'_> {
    fn plan(mut self, paths: &Paths<'_>) {
        match self.task.operation {
            Operation::Barrier => {
                self.each_host(Self::await_all);
                self.between(|program, _| barrier::plan(program, paths));
                self.each_host(Self::release);
            }
            Operation::Broadcast => {
                self.between(|program, task| broadcast::plan(program, task, paths));
                self.each_host(Self::hand_out);
            }
            Operation::Reduce => {
                let values = self.combined();
                self.between(|program, task| {
                    let own = |program: &mut Program, host: u32, blocks| {
                        held(program, task, host, &values[host as usize], &blocks)
                    };
                    reduce::of_values(program, task, paths, own);
                });
            }
            Operation::AllReduce => {
                let values = self.combined();
                self.between(|program, task| {
                    let own = |program: &mut Program, host: u32, blocks| {
                        held(program, task, host, &values[host as usize], &blocks)
                    };
                    all_reduce::of_values(program, task, paths, own);
                });
                self.each_host(Self::hand_out);
            }
            Operation::Gather => {
                let own = self.gathered();
                let tree = paths.to.tree(paths.group, self.between.root);
                self.between(|program, _| gather::up(program, &tree, &own));
            }
            Operation::AllGather => {
                self.gathered();
                let known = know::own(self.members.len() as u32);
                self.between(|program, _| all_gather::tell(program, &paths.rounds(), known));
                self.each_host(Self::hand_out);
            }
            Operation::Scatter => {
                let stores = self.of_hosts();
                let tree = paths.to.tree(paths.group, self.between.root);
                let own: Vec<Cells> =
                    (0..).zip(&stores).map(|(host, &store)| Cells::new(store, host, 1)).collect();
                self.between(|program, _| scatter::down(program, &tree, &own));
                self.keep_own(self.task.root, Store::Output);
                self.divide(&stores);
            }
            Operation::ReduceScatter => {
                let values = self.combined();
                let stores = self.of_hosts();
                let (order, hosts) = (self.task.order, self.members.len() as u32);
                self.between(|program, _| {
                    let own = |host: u32| {
                        let cells = Cells::new(values[host as usize][0].store, 0, hosts);
                        Partial::own(order, host, cells)
                    };
                    let own = (0..hosts).map(own).collect();
                    let results = reduce_scatter::results(program, &paths.rounds(), own);
                    for ((host, partial), &store) in (0..).zip(results).zip(&stores) {
                        partial.close(program, host, Cells::new(store, host, 1));
                    }
                });
                self.divide(&stores);
            }
            Operation::Scan | Operation::ExclusiveScan => self.scan(paths),
            Operation::AllToAll => exchange::plan(&mut self),
        }
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
    fn divide(&mut self, stores: &[Store]) {
        self.each_host(|hosts, host| {
            let (driver, store) = (hosts.drivers[host], stores[host]);
            let (first, count) = (hosts.members[host][0], hosts.members[host].len() as u32);
            let blocks = Cells::new(store, first, count);
            hosts.program.local(driver, Action::Deposit { cells: blocks, except: Some(driver) });
            if store != Store::Input {
                let own = Cells::new(store, driver, 1);
                hosts.program.copy(driver, own, own.at(Store::Output));
            }
            for member in hosts.others(host) {
                hosts.deposit(member, NOTHING);
                hosts.take(member, driver, blocks, Cells::new(Store::Output, member, 1));
            }
        });
    }

    /// Each member combines the data of its host up to itself, the drivers scan the values of hosts, and each member of a
    /// later host adds what stands for the hosts before it.
    fn scan(&mut self, paths: &Paths<'_>) {
        let is_exclusive = self.task.operation == Operation::ExclusiveScan;
        let data = self.result();
        let values: Vec<Store> = (0..self.members.len()).map(|host| self.prefixes(host)).collect();
        for (&driver, &store) in self.drivers.iter().zip(&values) {
            (1..self.task.segments).for_each(|_| self.program.share(driver, store)); // each gives it back
        }
        let result = |hosts: &mut Self, host: usize| match hosts.members[host].len() {
            1 if is_exclusive => Store::Output,
            _ => hosts.program.scratch(hosts.drivers[host]),
        };
        let stores: Vec<(Store, Store)> =
            (0..values.len()).map(|host| (values[host], result(self, host))).collect();
        self.between.operation = Operation::ExclusiveScan;
        self.between(|program, task| scan::of_values(program, task, paths, &stores));
        for (host, &(_, before)) in stores.iter().enumerate() {
            let (driver, own) = (self.drivers[host], self.own_store(self.drivers[host]));
            match (host, self.members[host].len()) {
                (0, 1) if !is_exclusive => self.program.copy(driver, data.at(own), data),
                (_, 1) if host > 0 && !is_exclusive => {
                    self.program.combine(driver, data.at(before), data.at(own), data);
                }
                (0, _) | (_, 1) => {}
                _ => self.add_before(host, data.at(before)),
            }
        }
    }

    /// The members of a host combine its data up to themselves. Returns the store in which its driver has the value of all.
    fn prefixes(&mut self, host: usize) -> Store {
        let (driver, data) = (self.drivers[host], self.result());
        let (members, own) = (self.members[host].clone(), self.own_store(driver));
        if members.len() == 1 {
            if own == Store::Input {
                return own;
            }
            let copy = self.program.scratch(driver); // combining overwrites it
            self.program.copy(driver, data.at(own), data.at(copy));
            return copy;
        }
        let is_exclusive = self.task.operation == Operation::ExclusiveScan;
        let all = self.program.scratch(driver);
        for (place, &member) in (0..).zip(&members) {
            let deposited = data.at(own);
            self.deposit(member, deposited);
            let mut combine = |members: u32, store| {
                let into = data.at(store);
                let combine = Action::CombineDeposits { members, deposited, into };
                self.program.local(member, combine);
            };
            if place == 0 {
                combine(members.len() as u32, all);
            }
            match (place, is_exclusive) {
                (0, true) => {}
                (0, false) => self.program.copy(member, deposited, data),
                (_, true) => combine(place, Store::Output),
                (_, false) => combine(place + 1, Store::Output),
            }
        }
        all
    }

    /// The members of a host add what stands for the hosts before it, which its driver has.
    fn add_before(&mut self, host: usize, before: Cells) {
        let is_exclusive = self.task.operation == Operation::ExclusiveScan;
        let (driver, data) = (self.drivers[host], self.result());
        self.deposit(driver, before);
        match is_exclusive {
            true => self.program.copy(driver, before, data),
            false => self.program.combine(driver, before, data, data),
        }
        for member in self.others(host) {
            let taken = before.at(self.program.scratch(member));
            self.deposit(member, NOTHING);
            self.take(member, driver, before, taken);
            self.program.combine(member, taken, data, data);
        }
    }

    /// Adds statements about the drivers, which have the numbers of their hosts.
    fn between(&mut self, add: impl FnOnce(&mut Program, &Task)) {
        let blocks = |host: &Vec<u32>| Blocks::of(host.iter().map(|&member| member..member + 1));
        let has_blocks = !self.task.operation.has_segments();
        let blocks = has_blocks.then(|| self.members.iter().map(blocks).collect());
        let drivers = Drivers { members: self.drivers.clone(), blocks };
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

    /// All members of a host take the result from its driver.
    fn hand_out(&mut self, host: usize) {
        let result = self.result();
        self.deposit(self.drivers[host], result);
        for member in self.others(host) {
            self.deposit(member, NOTHING);
            if self.task.operation == Operation::AllGather {
                self.keep_own(member, Store::Output);
                for blocks in [0..member, member + 1..result.count] {
                    self.take(member, self.drivers[host], result, of(Store::Output, &blocks));
                }
            } else {
                self.take(member, self.drivers[host], result, result);
            }
        }
    }

    /// The members of each host bring their data to their drivers. Returns the values that each driver holds then.
    fn combined(&mut self) -> Vec<Vec<Value>> {
        (0..self.members.len()).map(|host| self.combined_of(host)).collect()
    }

    fn combined_of(&mut self, host: usize) -> Vec<Value> {
        let (driver, members) = (self.drivers[host], self.members[host].clone());
        let own = self.own_store(driver);
        if members.len() == 1 {
            return vec![Value { first: driver, length: 1, store: own }];
        }
        for member in self.others(host) {
            self.deposit(member, self.result().at(self.own_store(member)));
        }
        self.deposit(driver, NOTHING);
        let data = self.result();
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

    /// The members of each host bring their blocks to their drivers. Returns where each driver has its host's block.
    fn gathered(&mut self) -> Vec<Cells> {
        (0..self.members.len())
            .map(|host| Cells::new(self.gathered_of(host), host as u32, 1))
            .collect()
    }

    fn gathered_of(&mut self, host: usize) -> Store {
        let driver = self.drivers[host];
        let is_result = self.task.operation == Operation::AllGather || driver == self.task.root;
        let is_alone = self.members[host].len() == 1;
        if is_alone && !is_result {
            return Store::Input;
        }
        let store = if is_result { Store::Output } else { self.program.scratch(driver) };
        self.keep_own(driver, store);
        if is_alone {
            return store;
        }
        for member in self.others(host) {
            self.deposit(member, Cells::new(self.own_store(member), member, 1));
        }
        self.deposit(driver, NOTHING);
        for member in self.others(host) {
            let block = Cells::new(store, member, 1);
            self.take(driver, member, block, block);
        }
        store
    }

    /// A member's own block goes to where its others will be, unless it stands there.
    fn keep_own(&mut self, member: u32, store: Store) {
        let from = Cells::new(self.own_store(member), member, 1);
        self.program.copy(member, from, from.at(store));
    }

    /// The members of a host but its driver.
    fn others(&self, host: usize) -> impl Iterator<Item = u32> + use<> {
        let driver = self.drivers[host];
        self.members[host].clone().into_iter().filter(move |&member| member != driver)
    }

    /// The blocks of the result.
    fn result(&self) -> Cells {
        let has_segments = self.task.operation.has_segments();
        let count = if has_segments { self.task.segments } else { self.program.size() };
        Cells::new(Store::Output, 0, count)
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
    let mut partials = values.iter().map(|value| {
        let cells = of(value.store, blocks);
        (value.store, Partial::of_run(task.order, (value.first, value.length), cells))
    });
    let mut all: Option<Partial> = None;
    for (store, partial) in partials.by_ref() {
        if blocks.end < task.segments {
            program.share(host, store); // the later segments stand there, too
        }
        match &mut all {
            None => all = Some(partial),
            Some(all) => all.join(program, host, partial),
        }
    }
    all.unwrap_or_else(|| Partial::of_run(task.order, (0, 0), NOTHING))
}
