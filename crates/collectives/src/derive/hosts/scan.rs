//! Scans over hosts.
//!
//! If each host has consecutive members and the order of combining does not matter, a host's value stands for its members:
//! the members combine up to themselves, the drivers scan the values of hosts, and the members of later hosts add what
//! stands for the hosts before them.
//!
//! Otherwise the drivers tell each other the values of all members, combined only where members with neighbouring ranks
//! are on one host and may be combined in canonical order. Each driver makes the results of its host's members.

use std::collections::VecDeque;

use super::{Hosts, NOTHING, UNITS_AHEAD, know};
use crate::derive::{Paths, scan};
use crate::operation::Operation;
use crate::partial::{Order, Partial};
use crate::plan::{Action, Cells, Store};
use crate::program::Drivers;

/// Adds the actions of all members.
pub(super) fn plan(hosts: &mut Hosts<'_>, paths: &Paths<'_>) {
    if super::tells_all(hosts.task.operation, hosts.task.order, &hosts.members) {
        (0..hosts.units).for_each(|unit| of_all(hosts, unit, paths));
        return;
    }
    let mut scanned = VecDeque::new();
    for unit in 0..hosts.units + UNITS_AHEAD {
        if unit < hosts.units {
            scanned.push_back(of_hosts(hosts, unit, paths));
        }
        if let Some(before) = unit.checked_sub(UNITS_AHEAD)
            && let Some(stores) = scanned.pop_front()
        {
            finish(hosts, before, &stores);
        }
    }
}

/// Whether members are consecutive.
pub(super) fn is_run(members: &[u32]) -> bool {
    (members[members.len() - 1] - members[0]) as usize + 1 == members.len()
}

/// The members of each host combine up to themselves, and the drivers scan the values of hosts. Returns for each host the
/// store in which its driver has what stands for the hosts before it.
fn of_hosts(hosts: &mut Hosts<'_>, unit: u32, paths: &Paths<'_>) -> Vec<Store> {
    let is_exclusive = hosts.task.operation == Operation::ExclusiveScan;
    let count = hosts.members.len();
    let values: Vec<Store> = (0..count).map(|host| prefixes(hosts, unit, host)).collect();
    let result = |hosts: &mut Hosts<'_>, host: usize| match hosts.members[host].len() {
        1 if is_exclusive => Store::Output,
        _ => hosts.program.scratch(hosts.drivers[host]),
    };
    let stores: Vec<(Store, Store)> =
        (0..count).map(|host| (values[host], result(hosts, host))).collect();
    hosts.between.operation = Operation::ExclusiveScan;
    hosts.between(unit, |program, task| scan::of_values(program, task, paths, &stores));
    stores.into_iter().map(|(_, before)| before).collect()
}

/// The members of a host combine its data up to themselves. Returns the store in which its driver has the value of all.
fn prefixes(hosts: &mut Hosts<'_>, unit: u32, host: usize) -> Store {
    let (driver, data) = (hosts.drivers[host], hosts.result(unit));
    let (members, own) = (hosts.members[host].clone(), hosts.own_store(driver));
    if members.len() == 1 {
        if own == Store::Input {
            return own;
        }
        let copy = hosts.program.scratch(driver); // combining overwrites it
        hosts.program.copy(driver, data.at(own), data.at(copy));
        return copy;
    }
    let is_exclusive = hosts.task.operation == Operation::ExclusiveScan;
    let all = hosts.program.scratch(driver);
    for (place, &member) in (0..).zip(&members) {
        let deposited = data.at(own);
        hosts.deposit(member, deposited);
        let mut combine = |members: u32, store| {
            let into = data.at(store);
            let combine = Action::CombineDeposits { members, deposited, into };
            hosts.program.local(member, combine);
        };
        if place == 0 {
            combine(members.len() as u32, all);
        }
        match (place, is_exclusive) {
            (0, true) => {}
            (0, false) => hosts.program.copy(member, deposited, data),
            (_, true) => combine(place, Store::Output),
            (_, false) => combine(place + 1, Store::Output),
        }
    }
    all
}

/// The members of each host but the first add what stands for the hosts before it.
fn finish(hosts: &mut Hosts<'_>, unit: u32, stores: &[Store]) {
    let is_exclusive = hosts.task.operation == Operation::ExclusiveScan;
    let data = hosts.result(unit);
    for (host, &before) in stores.iter().enumerate() {
        let (driver, own) = (hosts.drivers[host], hosts.own_store(hosts.drivers[host]));
        match (host, hosts.members[host].len()) {
            (0, 1) if !is_exclusive => hosts.program.copy(driver, data.at(own), data),
            (_, 1) if host > 0 && !is_exclusive => {
                hosts.program.combine(driver, data.at(before), data.at(own), data);
            }
            (0, _) | (_, 1) => {}
            _ => add_before(hosts, unit, host, data.at(before)),
        }
        hosts.program.release(driver, before);
    }
}

/// The members of a host add what stands for the hosts before it, which its driver has.
fn add_before(hosts: &mut Hosts<'_>, unit: u32, host: usize, before: Cells) {
    let is_exclusive = hosts.task.operation == Operation::ExclusiveScan;
    let (driver, data) = (hosts.drivers[host], hosts.result(unit));
    hosts.deposit(driver, before);
    match is_exclusive {
        true => hosts.program.copy(driver, before, data),
        false => hosts.program.combine(driver, before, data, data),
    }
    for member in hosts.others(host) {
        let taken = before.at(hosts.program.scratch(member));
        hosts.deposit(member, NOTHING);
        hosts.take(member, driver, before, taken);
        hosts.program.combine(member, taken, data, data);
        hosts.program.release(member, taken.store);
    }
}

/// The drivers tell each other the values of all members, and make the results of their hosts' members.
fn of_all(hosts: &mut Hosts<'_>, unit: u32, paths: &Paths<'_>) {
    let count = hosts.members.len();
    let brought: Vec<Vec<(u32, Cells)>> =
        (0..count).map(|host| brought(hosts, unit, host)).collect();
    // By the host of a driver and the host whose values it knows.
    let mut known: Vec<Vec<Option<Partial>>> = vec![vec![None; count]; count];
    for (host, values) in brought.iter().enumerate() {
        known[host][host] = told(hosts, host, values);
    }
    let drivers = Drivers { members: hosts.drivers.clone(), blocks: None };
    hosts.program.among(drivers, |program| {
        know::each_tell(&paths.rounds(), know::own(count as u32), |tell| {
            let (mut sent, mut received) = (Vec::new(), Vec::new());
            for of in tell.blocks.iter() {
                let Some(partial) = &known[tell.from as usize][of as usize] else { continue };
                let arrived = partial.received(program, tell.to);
                sent.extend(partial.cells());
                received.extend(arrived.cells());
                known[tell.to as usize][of as usize] = Some(arrived);
            }
            program.message(tell.from, tell.to, sent, received);
        });
    });
    for (host, (mut known, own)) in known.into_iter().zip(&brought).enumerate() {
        if let Some(copies) = known[host].take()
            && combines(hosts, host)
        {
            copies.release(hosts.program, hosts.drivers[host]);
        }
        results(hosts, unit, host, (known, own));
    }
}

/// The driver of a host takes the values of its members. Returns where it has them, by member in rising order.
fn brought(hosts: &mut Hosts<'_>, unit: u32, host: usize) -> Vec<(u32, Cells)> {
    let (driver, data) = (hosts.drivers[host], hosts.result(unit));
    if hosts.members[host].len() > 1 {
        for member in hosts.others(host) {
            hosts.deposit(member, data.at(hosts.own_store(member)));
        }
        hosts.deposit(driver, NOTHING);
    }
    let mut values = Vec::new();
    for member in hosts.members[host].clone() {
        let own = data.at(hosts.own_store(member));
        if member == driver && own.store == Store::Input {
            values.push((member, own));
            continue;
        }
        let value = data.at(hosts.program.scratch(driver));
        match member == driver {
            true => hosts.program.copy(driver, own, value), // the result goes there
            false => hosts.take(driver, member, data, value),
        }
        values.push((member, value));
    }
    values
}

/// Whether values of this host's members combine before others know them.
fn combines(hosts: &Hosts<'_>, host: usize) -> bool {
    let are_siblings = |pair: &[u32]| pair[0].is_multiple_of(2) && pair[1] == pair[0] + 1;
    hosts.task.order != Order::Late && hosts.members[host].windows(2).any(are_siblings)
}

/// The values that the driver of a host tells others: those of its members, or copies that are combined as far as they may
/// be.
fn told(hosts: &mut Hosts<'_>, host: usize, values: &[(u32, Cells)]) -> Option<Partial> {
    let (driver, combines) = (hosts.drivers[host], combines(hosts, host));
    let order = if hosts.task.order == Order::Late { Order::Late } else { Order::Canonical };
    let mut all: Option<Partial> = None;
    for &(member, cells) in values {
        let own = Partial::own(order, member, cells);
        let own = if combines { own.copied(hosts.program, driver) } else { own };
        match &mut all {
            Some(all) => all.join(hosts.program, driver, own),
            None => all = Some(own),
        }
    }
    all
}

/// The driver of a host combines the values of all members in the order of their ranks. Where that comes to a member of
/// its host, this one gets its result.
fn results(
    hosts: &mut Hosts<'_>,
    unit: u32,
    host: usize,
    (known, own): (Vec<Option<Partial>>, &[(u32, Cells)]),
) {
    let driver = hosts.drivers[host];
    let is_exclusive = hosts.task.operation == Operation::ExclusiveScan;
    let mut values: Vec<(u32, Partial, bool)> =
        known
            .into_iter()
            .flatten()
            .flat_map(Partial::apart)
            .map(|(first, partial)| (first, partial, false))
            .chain(own.iter().map(|&(member, cells)| {
                (member, Partial::own(Order::Canonical, member, cells), true)
            }))
            .collect();
    values.sort_unstable_by_key(|&(first, ..)| first);
    let mut left = own.len();
    let mut running: Option<Partial> = None;
    for (member, partial, is_own) in values {
        if left == 0 {
            partial.release(hosts.program, driver);
            continue;
        }
        if is_own && is_exclusive {
            give(hosts, unit, (driver, member), running.as_ref());
        }
        match &mut running {
            Some(running) => running.join(hosts.program, driver, partial),
            None => running = Some(partial),
        }
        if is_own && !is_exclusive {
            give(hosts, unit, (driver, member), running.as_ref());
        }
        left -= usize::from(is_own);
    }
    if let Some(running) = running {
        running.release(hosts.program, driver);
    }
}

/// A driver gives a member of its host its result: by a message, since no other member takes it.
fn give(hosts: &mut Hosts<'_>, unit: u32, (driver, member): (u32, u32), result: Option<&Partial>) {
    let (Some(result), data) = (result, hosts.result(unit)) else { return };
    if member == driver {
        result.show(hosts.program, driver, data);
        return;
    }
    let place = data.at(hosts.program.scratch(driver));
    result.show(hosts.program, driver, place);
    hosts.program.message(driver, member, vec![place], vec![data]);
    hosts.program.release(driver, place.store);
}
