//! Drawn groups of any size: any members in any clusters in any order, and another way back.

use std::collections::{BTreeMap, VecDeque};

use landeck_collectives::{Action, Execution, Group, Operation, Plan, Walk, Way, plan_of, plans};
use proptest::prelude::*;

use crate::cases::{SIZE_MAX, case, clustered, is_soak, proven, unclustered};

/// Walks all plans with sends that complete only when their message has been received.
fn ends_with_synchronous_sends(plans: Vec<Plan>) -> bool {
    let mut members: Vec<Execution> =
        plans.into_iter().map(|plan| Execution::new(Walk::new(plan))).collect();
    let mut sends: BTreeMap<(u32, u32), VecDeque<u32>> = BTreeMap::new();
    let mut receives = sends.clone();
    let mut goes_on = true;
    while std::mem::take(&mut goes_on) {
        for member in 0..members.len() as u32 {
            while let Some(step) = members[member as usize].begin() {
                goes_on = true;
                match *members[member as usize].action(step) {
                    Action::Send { to, .. } => {
                        sends.entry((member, to)).or_default().push_back(step);
                    }
                    Action::Receive { from, .. } => {
                        receives.entry((from, member)).or_default().push_back(step);
                    }
                    _ => members[member as usize].end(step),
                }
            }
        }
        for (&(from, to), sent) in &mut sends {
            let Some(received) = receives.get_mut(&(from, to)) else { continue };
            while !sent.is_empty() && !received.is_empty() {
                goes_on = true;
                members[from as usize].end(sent.pop_front().unwrap());
                members[to as usize].end(received.pop_front().unwrap());
            }
        }
    }
    members.iter().all(Execution::is_over)
}

/// Any group of 1 to 64: any members in any clusters, in any order.
fn any_group() -> impl Strategy<Value = Group> {
    (1..=SIZE_MAX).prop_flat_map(|size| {
        let members: Vec<u32> = (0..size).collect();
        let clusters = proptest::collection::vec(0..size.isqrt(), size as usize);
        (Just(members).prop_shuffle(), clusters).prop_map(|(members, of)| {
            let mut clusters = vec![Vec::new(); members.len()];
            members.iter().zip(of).for_each(|(&member, of)| clusters[of as usize].push(member));
            clusters.retain(|cluster| !cluster.is_empty());
            Group::of(clusters).unwrap()
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if is_soak() { 20_000 } else { 400 }, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn any_group_whatsoever(group in any_group(), picks in any::<[u32; 4]>(), back in any::<bool>()) {
        let all: Vec<_> = clustered().into_iter().chain(unclustered()).collect();
        let chosen = |pick: u32| all[pick as usize % all.len()].clone();
        let operation = Operation::ALL[picks[0] as usize % 11];
        let root = if operation.has_root() { picks[1] % group.size() } else { 0 };
        let (way, task) = case(&chosen(picks[2]), operation, root, picks[3] % 18, picks[3] % 5 == 0);
        let way = match way {
            Way::Messages { architecture, split, .. } if back => {
                Way::Messages { architecture, release: Some(chosen(picks[3])), split }
            }
            way => way,
        };
        proven(&task, &way, &group);
        // A member that makes only its own plan makes the same.
        let member = picks[3] % group.size();
        let all = plans(&task, &way, &group);
        prop_assert_eq!(&plan_of(&task, &way, &group, member), &all[member as usize]);
        prop_assert!(ends_with_synchronous_sends(all));
    }
}
