//! Alltoall over hosts: every member is a driver.
//!
//! The members of a host exchange their blocks at its board. Each member sends one message to each other host, with its
//! blocks for all members there: its receivers are these members in turn. They deposit what they have received, each the
//! blocks of one sender in a visit, and each member takes its block of every deposit. So a member sends as many messages as
//! there are other hosts, and not as many as there are other members.

use super::{Hosts, NOTHING};
use crate::plan::{Action, Cells, Store};

/// The most visits to a board. Beyond that many hosts, messages between all members are hardly more than the visits.
const VISITS_MAX: usize = 64;

/// Whether the members of each host have all blocks after few visits to its board.
pub(super) fn has_few_visits(hosts: &[Vec<u32>]) -> bool {
    let size: usize = hosts.iter().map(Vec::len).sum();
    hosts
        .iter()
        .all(|host| host.len() == 1 || (size - host.len()).div_ceil(host.len()) < VISITS_MAX)
}

/// Adds the actions of all members.
pub(super) fn plan(hosts: &mut Hosts<'_>) {
    let size = hosts.program.size();
    for member in 0..size {
        let place = hosts.places[member as usize];
        let own = Cells::new(Store::Input, place * size + place, 1);
        hosts.program.copy(member, own, own.at(Store::Output));
    }
    let received: Vec<Vec<Received>> =
        (0..hosts.members.len()).map(|host| from_elsewhere(hosts, host)).collect();
    hosts.each_host(|hosts, host| {
        at_home(hosts, host);
        let members = hosts.members[host].clone();
        for visit in received[host].chunks(members.len()) {
            one_visit(hosts, &members, visit);
        }
    });
}

/// The blocks of a sender for all members of another host, at the member that has received them.
#[derive(Clone, Copy)]
struct Received {
    receiver: u32,
    cells: Cells,
}

/// Members elsewhere send their blocks for a host, each to the next member there.
fn from_elsewhere(hosts: &mut Hosts<'_>, host: usize) -> Vec<Received> {
    let (size, members) = (hosts.program.size(), hosts.members[host].clone());
    let (first, count) = (hosts.places[members[0] as usize], members.len() as u32);
    let mut received = Vec::new();
    // The senders of the next host first: so not all begin with the same host.
    let elsewhere = (1..hosts.members.len()).map(|by| (host + by) % hosts.members.len());
    let senders: Vec<u32> = elsewhere.flat_map(|other| hosts.members[other].clone()).collect();
    for (sender, &receiver) in senders.into_iter().zip(members.iter().cycle()) {
        let row = hosts.places[sender as usize] * size;
        let sent = Cells::new(Store::Input, row + first, count);
        let store = if count > 1 { hosts.program.scratch(receiver) } else { Store::Output };
        let cells = sent.at(store);
        hosts.program.message(sender, receiver, vec![sent], vec![cells]);
        received.push(Received { receiver, cells });
    }
    received
}

/// The members of a host exchange their own blocks at its board.
fn at_home(hosts: &mut Hosts<'_>, host: usize) {
    let (size, members) = (hosts.program.size(), hosts.members[host].clone());
    let places = hosts.places[members[0] as usize]..;
    let row =
        |place: u32| Cells::new(Store::Input, place * size + places.start, members.len() as u32);
    for (place, &member) in places.clone().zip(&members) {
        let deposit = Action::Deposit { cells: row(place), except: Some(place * size + place) };
        hosts.program.local(member, deposit);
    }
    for (place, &member) in places.clone().zip(&members) {
        for (other, &from) in places.clone().zip(&members).filter(|&(_, &from)| from != member) {
            let block = Cells::new(Store::Output, other * size + place, 1);
            hosts.take(member, from, row(other), block);
        }
    }
}

/// Some members of a host deposit what they have received, and all take their blocks of it.
fn one_visit(hosts: &mut Hosts<'_>, members: &[u32], visit: &[Received]) {
    for &member in members {
        let own = visit.iter().find(|received| received.receiver == member);
        hosts.deposit(member, own.map_or(NOTHING, |received| received.cells));
    }
    for (place, &member) in (0..).zip(members) {
        for &Received { receiver, cells } in visit {
            let block = Cells::new(Store::Output, cells.first + place, 1);
            match receiver == member {
                true => hosts.program.copy(member, block.at(cells.store), block),
                false => hosts.take(member, receiver, cells, block),
            }
        }
    }
}
