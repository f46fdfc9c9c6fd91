//! Started operations over hosts: the last member of a host to come drives it, and everything goes directly to whoever
//! needs it.
//!
//! A member that has started an operation may compute before it waits. So nobody passes on what others have brought,
//! except at the moment at which it comes itself:
//!
//! 1. Each member lays its data on the board of its host.
//! 2. The *last* of a host to come finds all data of its host there. It is the driver of this operation: it sends what
//!    the members of other hosts need, to each of them one message.
//! 3. Each member takes what it needs from the board of its host and from the drivers' messages.
//!
//! In a broadcast and a scatter the root drives: its data go to all members of other hosts, and to its board.
//!
//! Which member comes last is known only then. A member has two plans that begin alike, with its deposit: one in which it
//! drives its host, and one in which another does.

use super::{Hosts, NOTHING};
use crate::operation::Operation;
use crate::partial::Partial;
use crate::plan::{Action, Cells, Store};

/// Adds the actions of all members.
pub(super) fn plan(hosts: &mut Hosts<'_>) {
    let mut started = Started { stores: vec![Vec::new(); hosts.program.size() as usize], hosts };
    match started.hosts.task.operation {
        Operation::Barrier => started.barrier(),
        Operation::Broadcast | Operation::Scatter => started.root_to_all(),
        _ => {
            started.bring();
            started.send();
            started.combine();
        }
    }
}

struct Started<'a, 'h> {
    hosts: &'a mut Hosts<'h>,
    /// By member: where it has the data of others and its own.
    stores: Vec<Vec<(u32, Store)>>,
}

impl Started<'_, '_> {
    fn barrier(&mut self) {
        self.hosts.each_host(|hosts, host| {
            for member in hosts.members[host].clone() {
                hosts.deposit(member, NOTHING);
                hosts.program.local(member, Action::Await);
            }
        });
        let words: Vec<(u32, u32)> = (0..self.hosts.members.len())
            .flat_map(|host| self.elsewhere(host).map(move |to| (host, to)).collect::<Vec<_>>())
            .map(|(host, to)| (self.hosts.drivers[host], to))
            .collect();
        self.hosts.program.words(&words);
    }

    /// The root's data go to its board and to each member of another host.
    fn root_to_all(&mut self) {
        let (root, size) = (self.hosts.task.root, self.hosts.program.size());
        let is_scatter = self.hosts.task.operation == Operation::Scatter;
        let all = match is_scatter {
            true => Cells::new(Store::Input, 0, size),
            false => self.hosts.result(0),
        };
        let Some(home) = self.hosts.members.iter().position(|host| host.contains(&root)) else {
            return;
        };
        let share = |member: u32| match is_scatter {
            true => Cells::new(Store::Output, member, 1),
            false => all,
        };
        if self.hosts.members[home].len() > 1 {
            let except = is_scatter.then_some(root);
            self.hosts.program.local(root, Action::Deposit { cells: all, except });
            for member in self.hosts.members[home].clone().into_iter().filter(|&one| one != root) {
                self.hosts.deposit(member, NOTHING);
                self.hosts.take(member, root, all, share(member));
            }
        }
        for member in self.elsewhere(home).collect::<Vec<_>>() {
            let cells = share(member);
            self.hosts.program.message(root, member, vec![cells.at(all.store)], vec![cells]);
        }
        if is_scatter {
            self.hosts.keep_own(0, root, Store::Output);
        }
    }

    /// Each member lays its data on the board of its host, and takes from there what it needs or passes on.
    fn bring(&mut self) {
        self.hosts.each_host(|hosts, host| {
            for member in hosts.members[host].clone() {
                let is_needed = is_needed_elsewhere(hosts, host)
                    || hosts.members[host]
                        .iter()
                        .any(|&other| other != member && needs(hosts, other, member));
                let cells = if is_needed { laid(hosts, member) } else { NOTHING };
                hosts.deposit(member, cells);
            }
        });
        for host in 0..self.hosts.members.len() {
            let passes_on = is_needed_elsewhere(self.hosts, host);
            for member in self.hosts.members[host].clone() {
                let is_driver = passes_on && member == self.hosts.drivers[host];
                for from in self.hosts.members[host].clone() {
                    self.take(member, from, is_driver);
                }
            }
        }
    }

    /// A member takes the data of a member of its host, as far as it needs them or passes them on.
    fn take(&mut self, member: u32, from: u32, passes_on: bool) {
        let is_needed = needs(self.hosts, member, from);
        if !is_needed && !passes_on {
            return;
        }
        let (all, own) = (laid(self.hosts, from), share(self.hosts, from, member));
        let reduces = self.hosts.task.operation.reduces();
        if member == from {
            if is_needed && !reduces {
                let own = own.at(all.store);
                self.hosts.program.copy(member, own, own.at(Store::Output));
            }
            self.stores[member as usize].push((from, all.store));
            return;
        }
        let is_exchange = self.hosts.task.operation == Operation::AllToAll;
        let store = match is_needed && !reduces && !(passes_on && is_exchange) {
            true => Store::Output,
            false => self.hosts.program.scratch(member),
        };
        let taken = if passes_on { all } else { own };
        self.hosts.take(member, from, all, taken.at(store));
        if is_needed && !reduces {
            self.hosts.program.copy(member, own.at(store), own.at(Store::Output));
        }
        self.stores[member as usize].push((from, store));
    }

    /// Each driver sends the data of its host to each member of another host that needs them.
    fn send(&mut self) {
        for host in 0..self.hosts.members.len() {
            let driver = self.hosts.drivers[host];
            for member in self.elsewhere(host).collect::<Vec<_>>() {
                let reduces = self.hosts.task.operation.reduces();
                let (mut sent, mut received) = (Vec::new(), Vec::new());
                for from in self.hosts.members[host].clone() {
                    if !needs(self.hosts, member, from) {
                        continue;
                    }
                    let store =
                        if reduces { self.hosts.program.scratch(member) } else { Store::Output };
                    let cells = share(self.hosts, from, member);
                    sent.push(cells.at(self.store(driver, from)));
                    received.push(cells.at(store));
                    self.stores[member as usize].push((from, store));
                }
                self.hosts.program.message(driver, member, sent, received);
            }
        }
    }

    /// Each member combines what it has, in the order of members.
    fn combine(&mut self) {
        let task = self.hosts.task;
        if !task.operation.reduces() {
            return;
        }
        for member in 0..self.hosts.program.size() {
            let mut all: Option<Partial> = None;
            for from in 0..self.hosts.program.size() {
                if !needs(self.hosts, member, from) {
                    continue;
                }
                let cells = share(self.hosts, from, member).at(self.store(member, from));
                let own = Partial::own(task.order, from, cells);
                match &mut all {
                    None => all = Some(own),
                    Some(all) => all.join(self.hosts.program, member, own),
                }
            }
            if let Some(all) = all {
                let result = share(self.hosts, member, member).at(Store::Output);
                all.close(self.hosts.program, member, result);
            }
        }
    }

    /// Where a member has the data of another, or its own.
    fn store(&self, member: u32, from: u32) -> Store {
        let known = self.stores[member as usize].iter().find(|(of, _)| *of == from);
        known.map_or(laid(self.hosts, from).store, |(_, store)| *store)
    }

    /// The members of other hosts.
    fn elsewhere(&self, host: usize) -> impl Iterator<Item = u32> + use<> {
        let here = self.hosts.members[host].clone();
        (0..self.hosts.program.size()).filter(move |member| !here.contains(member))
    }
}

/// Whether a member's result depends on the data of another, or on its own.
fn needs(hosts: &Hosts<'_>, member: u32, from: u32) -> bool {
    match hosts.task.operation {
        Operation::Gather | Operation::Reduce => member == hosts.task.root,
        Operation::Scan => from <= member,
        Operation::ExclusiveScan => from < member,
        _ => true,
    }
}

/// Whether a member of another host needs the data of this one.
fn is_needed_elsewhere(hosts: &Hosts<'_>, host: usize) -> bool {
    let here = &hosts.members[host];
    (0..hosts.program.size())
        .filter(|member| !here.contains(member))
        .any(|member| here.iter().any(|&from| needs(hosts, member, from)))
}

/// The data of a member, where it has them.
fn laid(hosts: &Hosts<'_>, member: u32) -> Cells {
    let size = hosts.program.size();
    match hosts.task.operation {
        Operation::AllToAll => Cells::new(Store::Input, member * size, size),
        Operation::ReduceScatter => Cells::new(hosts.own_store(member), 0, size),
        Operation::Gather | Operation::AllGather => Cells::new(hosts.own_store(member), member, 1),
        _ => Cells::new(hosts.own_store(member), 0, 1),
    }
}

/// The blocks of a member's data that another needs.
fn share(hosts: &Hosts<'_>, from: u32, member: u32) -> Cells {
    let all = laid(hosts, from);
    match hosts.task.operation {
        Operation::AllToAll => Cells::new(all.store, all.first + member, 1),
        Operation::ReduceScatter => Cells::new(all.store, member, 1),
        _ => all,
    }
}
