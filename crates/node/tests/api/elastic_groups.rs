//! Collective operations of groups while their members change: which operation a join or a leave counts from.

use std::time::Duration;

use landeck::{GroupOptions, Member, Sum, Tag, ThreadMode};

use crate::support::in_job;
use crate::support::named_groups::group;

const LONG: Duration = Duration::from_secs(100);

/// Goes on to the next operation, and adds up one of each: whether the members have changed, and how many
/// there are.
fn operate(member: &mut Member) -> (bool, u64) {
    let has_changed = member.advance().unwrap();
    (has_changed, member.world().unwrap().all_reduce(1u64, Sum).unwrap())
}

/// Rank 2 joins while rank 0 is in an operation to which rank 1 comes only afterwards.
#[test]
fn a_join_counts_from_an_operation_that_nobody_has_begun() {
    let name = "elastic_groups::a_join_counts_from_an_operation_that_nobody_has_begun";
    in_job(3, name, ThreadMode::Single, |job| {
        let world = job.world();
        let rank = world.rank();
        let group = group(job, "elastic", GroupOptions::default().minimum(2));
        let mut inbox = job.create_mailbox().unwrap();
        if rank == 1 {
            // After rank 0, so that numbers and ranks are the same.
            world.receive::<u8>(0, Tag(1)).unwrap();
        }
        if rank == 2 {
            world.receive::<u8>(0, Tag(2)).unwrap();
        }
        let mut member = group.join(&mut inbox).unwrap();
        assert_eq!(member.id() as usize, rank);
        match rank {
            0 => {
                world.send(&[0u8], 1, Tag(1)).unwrap();
                group.wait_started().unwrap();
                assert_eq!(operate(&mut member), (true, 2));
                assert!(!member.advance().unwrap(), "nobody came or went");
                world.send(&[0u8], 2, Tag(2)).unwrap();
                assert_eq!(member.world().unwrap().all_reduce(1u64, Sum).unwrap(), 2);
            }
            1 => {
                assert_eq!(operate(&mut member), (true, 2));
                world.receive::<u8>(2, Tag(3)).unwrap();
                assert_eq!(group.view().unwrap().members.len(), 3, "it has joined");
                assert_eq!(operate(&mut member), (false, 2));
            }
            _ => world.send(&[0u8], 1, Tag(3)).unwrap(),
        }
        assert_eq!(operate(&mut member), (true, 3), "told before the first operation of three");
        assert_eq!(member.world_ids(), [0, 1, 2]);
        if rank == 1 {
            member.leave().unwrap();
        } else {
            let view = group.view().unwrap();
            if view.members.len() == 3 {
                group.next_view_within(view.number, LONG).unwrap();
            }
            assert_eq!(operate(&mut member), (true, 2), "told before the first one without it");
            assert_eq!(member.world_ids(), [0, 2]);
        }
        world.barrier().unwrap();
    });
}
