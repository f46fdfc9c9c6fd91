//! The choice for members at several sites, between which messages go slowly.
//!
//! A message between sites takes longer than all others together, so the model of costs is not asked: whatever the data, each
//! operation takes the cube of sites, in which one member of each site tells those of the others. Between two sites that is one
//! message for each operation and direction, and each byte passes once.

use std::sync::Arc;

use super::Table;
use super::class::Class;
use crate::architecture::{Architecture, Flat, Hypercube};
use crate::derive::Way;
use crate::operation::Operation;

impl Table {
    /// The way of this class. Members that forward must know the sizes. In an alltoall each byte passes once either way, so
    /// long blocks go straight, and no member of a site holds those of all.
    pub(super) fn over_sites(&self, class: Class) -> Way {
        if class.octave.is_none() || self.goes_straight(class) {
            return Way::by(Flat);
        }
        let cube: Arc<dyn Architecture> = Arc::new(Hypercube::default());
        let over_hosts = Way::Hosts { architecture: cube.clone(), split: false };
        // Over the boards of hosts each member sends to each host in an alltoall.
        let may = class.operation != Operation::AllToAll && self.can(&over_hosts, class);
        match may {
            true => over_hosts,
            false => Way::Messages { architecture: cube, release: None, split: false },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::check::prove;
    use crate::choose::{Facts, WayRequest};
    use crate::derive::{Task, plans};
    use crate::nearness::{MemberPlace, Nearness};
    use crate::plan::{Action, Plan};

    /// A job at sites with so many hosts, with so many members on each host: in the order of the hosts, or round all hosts.
    fn facts(sites: &[u16], each: u16, goes_round: bool, hosts_have_boards: bool) -> Facts {
        let hosts = (1..).zip(sites).flat_map(|(site, &hosts)| vec![site; usize::from(hosts)]);
        let hosts: Vec<(u64, u16)> = (1..).zip(hosts).collect();
        let place = |&(host, site)| MemberPlace { site, host, cache: 0 };
        let places: Vec<MemberPlace> = match goes_round {
            true => (0..each).flat_map(|_| hosts.iter().map(place)).collect(),
            false => hosts.iter().flat_map(|host| vec![place(host); usize::from(each)]).collect(),
        };
        let group = Nearness::default().group(&places).unwrap();
        Facts { group, processes: 1, hosts_have_boards, ..crate::choose::tests::facts(1, 2, false) }
    }

    /// The messages from one site to another, and the blocks that each of them carries in all.
    fn crossings(plans: &[Plan], sites: &[u32]) -> BTreeMap<(u32, u32), (usize, u32)> {
        let mut between = BTreeMap::new();
        for (plan, from) in plans.iter().zip(sites) {
            for step in &plan.steps {
                let Action::Send { to, cells } = &step.action else { continue };
                let to = sites[*to as usize];
                if to != *from {
                    let (messages, blocks) = between.entry((*from, to)).or_insert((0, 0));
                    *messages += 1;
                    *blocks += cells.iter().map(|cells| cells.count).sum::<u32>();
                }
            }
        }
        between
    }

    /// Checks one operation from one root: proves it, and counts the messages between two sites. Data in segments pass in as
    /// many messages.
    fn check(facts: &Facts, operation: Operation, (root, bytes): (u32, u64)) {
        let choice = Table::new(facts.clone()).look_up(&WayRequest::new(operation, bytes));
        let (segments, order) = (choice.segments, choice.order);
        let task = Task { root, segments, order, ..Task::new(operation) };
        let plans = plans(&task, &choice.way, &facts.group);
        let sites = facts.group.sites();
        let what = format!("{operation} of {bytes} B from {root} by {choice:?} at {sites:?}");
        prove(&plans, &task).unwrap_or_else(|fault| panic!("{fault}: {what}"));
        let between = crossings(&plans, sites);
        let messages: BTreeMap<(u32, u32), usize> =
            between.iter().map(|(pair, (messages, _))| (*pair, *messages)).collect();
        let units = match operation {
            Operation::Barrier => 1,
            _ => segments as usize,
        };
        let root_site = sites[root as usize];
        let other = 3 - root_site;
        let expected = match operation {
            Operation::Broadcast | Operation::Scatter => vec![((root_site, other), units)],
            Operation::Reduce | Operation::Gather => vec![((other, root_site), units)],
            _ => vec![((1, 2), units), ((2, 1), units)],
        };
        assert_eq!(messages, expected.into_iter().collect(), "{what}");
        if operation == Operation::Broadcast {
            assert_eq!(between[&(root_site, other)].1, segments, "each byte once: {what}");
        }
    }

    #[test]
    fn one_message_of_each_operation_passes_between_two_sites_in_each_direction() {
        for (one, other) in [(1, 1), (2, 2), (2, 3), (3, 2), (4, 4), (1, 4)] {
            for (each, goes_round) in [(1, false), (2, false), (2, true), (3, true)] {
                for boards in [false, each > 1] {
                    let facts = facts(&[one, other], each, goes_round, boards);
                    let size = facts.group.size();
                    for operation in Operation::ALL {
                        let roots = if operation.has_root() { size } else { 1 };
                        for root in 0..roots {
                            for bytes in [0, 8, 4 << 10] {
                                check(&facts, operation, (root, bytes));
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn each_byte_of_long_data_passes_once() {
        use Operation::{AllReduce, Broadcast, Reduce};
        for boards in [false, true] {
            let facts = facts(&[2, 3], 2, false, boards);
            for operation in [Broadcast, Reduce, AllReduce] {
                check(&facts, operation, (3, 16 << 20));
            }
        }
    }

    #[test]
    fn blocks_of_unknown_or_great_length_go_straight() {
        let table = Table::new(facts(&[2, 2], 2, false, true));
        let way = |request| table.look_up(&request).way.to_string();
        let unknown = |operation| WayRequest { bytes: None, ..WayRequest::new(operation, 0) };
        for operation in [Operation::Gather, Operation::Scatter, Operation::AllToAll] {
            assert_eq!(way(unknown(operation)), "flat");
        }
        assert_eq!(way(WayRequest::new(Operation::AllToAll, 1 << 20)), "flat");
        assert_eq!(way(WayRequest::new(Operation::AllToAll, 8)), "hypercube");
        assert_eq!(way(WayRequest::new(Operation::AllReduce, 8)), "hypercube between hosts");
    }

    #[test]
    fn a_wish_of_the_user_counts_more_than_the_sites() {
        let settings = crate::settings::Settings {
            overrides: "broadcast=flat".parse().unwrap(),
            ..Default::default()
        };
        let table = Table::new(Facts { settings, ..facts(&[2, 2], 2, false, true) });
        assert_eq!(
            table.look_up(&WayRequest::new(Operation::Broadcast, 8)).way.to_string(),
            "flat"
        );
    }

    #[test]
    fn three_sites_meet_as_a_cube() {
        let facts = facts(&[2, 1, 2], 2, false, true);
        let table = Table::new(facts.clone());
        for (operation, expected) in
            [(Operation::Broadcast, 2), (Operation::Gather, 2), (Operation::AllReduce, 4)]
        {
            let choice = table.look_up(&WayRequest::new(operation, 8));
            let task = Task { order: choice.order, ..Task::new(operation) };
            let plans = plans(&task, &choice.way, &facts.group);
            let between = crossings(&plans, facts.group.sites());
            let messages: usize = between.values().map(|(messages, _)| messages).sum();
            assert_eq!(messages, expected, "{operation}");
            assert!(between.values().all(|(messages, _)| *messages == 1), "{operation}");
        }
    }
}
