//! Placements against a model that asks for every rank which hosts have room.

use super::{host, limited};
use landeck_hostfile::placement::processes_of;
use landeck_hostfile::{HostPlacement, HostPlacementError, HostRequest, RanksBy};
use proptest::prelude::*;

/// The hosts of the ranks as letters: "aabba".
fn placed(hosts: &[HostRequest], by: RanksBy, per_host: Option<u32>, ranks: u32) -> String {
    let placement = HostPlacement::new(hosts, by, per_host, ranks).unwrap();
    placement.places().iter().map(|place| hosts[place.host].name.as_str()).collect()
}

/// Examples of the manual pages of Open MPI's `mpirun` ("By slot", "By node", "ppr") with two hosts of four slots.
#[test]
fn the_examples_of_open_mpi() {
    let hosts = [host("a", 4), host("b", 4)];
    assert_eq!(placed(&hosts, RanksBy::Slot, None, 6), "aaaabb");
    assert_eq!(placed(&hosts, RanksBy::Node, None, 6), "ababab");
    assert_eq!(placed(&hosts, RanksBy::Slot, Some(2), 4), "aabb");
    let uneven = [host("a", 1), host("b", 3)];
    assert_eq!(placed(&uneven, RanksBy::Node, None, 4), "abbb");
    assert_eq!(placed(&uneven, RanksBy::Slot, None, 4), "abbb");
}

/// Examples of MPICH's page "Using the Hydra Process Manager": hosts fill up in their order, and it begins again.
#[test]
fn the_examples_of_hydra() {
    let hosts = [host("d", 1), host("f", 1), host("s", 1), host("t", 1)];
    assert_eq!(placed(&hosts, RanksBy::Slot, None, 8), "dfstdfst");
    assert_eq!(placed(&hosts, RanksBy::Slot, Some(2), 10), "ddffssttdd");
    let hosts = [host("d", 2), host("f", 3), host("s", 1)];
    assert_eq!(placed(&hosts, RanksBy::Slot, None, 8), "ddfffsdd");
}

/// The distributions block and cyclic of the manual page of `srun`.
#[test]
fn the_examples_of_slurm() {
    let hosts = [host("a", 2), host("b", 2), host("c", 2)];
    assert_eq!(placed(&hosts, RanksBy::Slot, None, 6), "aabbcc");
    assert_eq!(placed(&hosts, RanksBy::Node, None, 6), "abcabc");
}

#[test]
fn without_a_number_a_program_gets_all_slots() {
    let hosts = [host("a", 2), host("b", 3)];
    assert_eq!(processes_of(&[None], &hosts, None), Ok(vec![5]));
    assert_eq!(processes_of(&[None], &hosts, Some(4)), Ok(vec![8]));
    assert_eq!(processes_of(&[Some(9)], &hosts, Some(4)), Ok(vec![9]));
    assert_eq!(processes_of(&[Some(2), None], &hosts, None), Ok(vec![2, 1]));
    let error = processes_of(&[Some(1 << 20), Some(1)], &hosts, None).unwrap_err();
    assert_eq!(error, HostPlacementError::Ranks { wanted: (1 << 20) + 1 });
}

#[test]
fn oversubscribed_hosts_are_named() {
    let hosts = [host("a", 2), host("b", 1), host("c", 4)];
    let note = |per_host, ranks| {
        HostPlacement::new(&hosts, RanksBy::Slot, per_host, ranks).unwrap().note(&hosts)
    };
    assert_eq!(note(None, 7), None);
    assert_eq!(note(None, 8).unwrap(), "oversubscribed: a (3 processes, 2 slots)");
    let two = "oversubscribed: a (4 processes, 2 slots), b (2 processes, 1 slot)";
    assert_eq!(note(None, 10).unwrap(), two);
    assert_eq!(note(Some(3), 9), None, "as asked");
    let many: Vec<HostRequest> = (0..7).map(|at| host(&format!("n{at}"), 1)).collect();
    let placement = HostPlacement::new(&many, RanksBy::Node, None, 13).unwrap();
    assert!(placement.note(&many).unwrap().ends_with("n3 (2 processes, 1 slot) and 2 more"));
}

#[test]
fn only_limits_refuse_ranks() {
    let hosts = [limited("a", 1, 2), limited("b", 1, 1)];
    assert_eq!(placed(&hosts, RanksBy::Slot, None, 3), "aba");
    let refused = |hosts: &[HostRequest], per_host, ranks| {
        HostPlacement::new(hosts, RanksBy::Slot, per_host, ranks).unwrap_err().to_string()
    };
    let error = refused(&hosts, None, 4);
    assert!(error.starts_with("4 processes do not fit: max_slots permits 3 in all"), "{error}");
    let error = refused(&hosts, Some(2), 2);
    assert!(
        error.starts_with("2 processes on each host do not fit: host b has max_slots=1"),
        "{error}"
    );
    assert!(refused(&[], None, 1).starts_with("the list names no host"));
    let open = [limited("a", 1, 1), host("b", 1)];
    assert_eq!(placed(&open, RanksBy::Node, None, 5), "abbbb");
}

/// A host of a million ranks, while all others are full, takes no longer than the ranks themselves.
#[test]
fn full_hosts_cost_nothing() {
    let mut hosts: Vec<HostRequest> =
        (0..65_534).map(|at| limited(&format!("n{at}"), 1, 1)).collect();
    hosts.push(host("open", 1));
    let placement = HostPlacement::new(&hosts, RanksBy::Slot, None, 1 << 20).unwrap();
    assert_eq!(placement.counts()[65_534], (1 << 20) - 65_534);
}

proptest! {
    /// The placement agrees with a model that looks at all hosts for every rank.
    #[test]
    fn placement_agrees_with_the_model(
        hosts in prop::collection::vec((1_u32..5, prop::option::of(0_u32..4)), 1..6),
        by_node in any::<bool>(),
        per_host in prop::option::of(1_u32..4),
        ranks in 1_u32..40,
    ) {
        let hosts: Vec<HostRequest> = hosts
            .into_iter()
            .enumerate()
            .map(|(at, (slots, extra))| HostRequest {
                max_slots: extra.map(|extra| slots + extra),
                ..HostRequest::new(format!("n{at}"), slots)
            })
            .collect();
        let by = if by_node { RanksBy::Node } else { RanksBy::Slot };
        let result = HostPlacement::new(&hosts, by, per_host, ranks);
        let Some(wanted) = model(&hosts, by_node, per_host, ranks) else {
            prop_assert!(result.is_err());
            return Ok(());
        };
        let placement = result.unwrap();
        let found: Vec<(usize, u32)> =
            placement.places().iter().map(|place| (place.host, place.slot)).collect();
        prop_assert_eq!(&found, &wanted);
        prop_assert_eq!(placement.ranks(), ranks);
        for at in 0..hosts.len() {
            let here: Vec<u32> = placement.ranks_on(at).collect();
            prop_assert_eq!(here.len(), placement.counts()[at] as usize);
            for (slot, rank) in here.into_iter().enumerate() {
                let place = placement.place_of(rank).unwrap();
                prop_assert_eq!((place.host, place.slot as usize), (at, slot));
            }
        }
    }
}

/// For every rank: the first host, or the next in turn, that has room in this round; a new round if none has.
fn model(
    hosts: &[HostRequest],
    by_node: bool,
    per_host: Option<u32>,
    ranks: u32,
) -> Option<Vec<(usize, u32)>> {
    let limit = |at: usize| hosts[at].max_slots.unwrap_or(u32::MAX);
    if per_host.is_some_and(|each| (0..hosts.len()).any(|at| limit(at) < each)) {
        return None;
    }
    let (mut total, mut round, mut next) = (vec![0; hosts.len()], vec![0; hosts.len()], 0);
    let mut places = Vec::new();
    for _ in 0..ranks {
        let has_room = |at: usize, round: &[u32], total: &[u32]| {
            round[at] < per_host.unwrap_or(hosts[at].slots) && total[at] < limit(at)
        };
        if !(0..hosts.len()).any(|at| has_room(at, &round, &total)) {
            round.fill(0);
            next = 0;
        }
        let from = if by_node { next } else { 0 };
        let turn = (0..hosts.len()).map(|step| (from + step) % hosts.len());
        let at = turn.into_iter().find(|at| has_room(*at, &round, &total))?;
        places.push((at, total[at]));
        total[at] += 1;
        round[at] += 1;
        next = at + 1;
    }
    Some(places)
}
