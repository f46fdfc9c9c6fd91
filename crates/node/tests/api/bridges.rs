//! Two groups that talk to each other.

use landeck::{Any, Bridge, ErrorKind, Job, Sum, Tag, ThreadMode, World};

use crate::support::{in_job, is_member};

/// Ranks 0, 2, 4, ... on one side, the others on the other; who leads is the last of each.
fn connect(job: &Job) -> Bridge {
    let world = job.world();
    let (rank, size) = (world.rank(), world.size());
    let own = world.split(Some(rank as u32 % 2), 0).unwrap().unwrap();
    let last_of = |parity: usize| (0..size).filter(|rank| rank % 2 == parity).max().unwrap();
    let (leader, other) = (own.size() - 1, last_of(1 - rank % 2));
    let leads = own.rank() == leader;
    own.bridge(leader, leads.then_some((&world, other)), Tag(7)).unwrap()
}

/// That messages reach the members on the other side that `theirs` names, by rank of the job.
fn check(bridge: &Bridge, job: &World, theirs: &[usize]) {
    let remote = bridge.remote();
    assert_eq!(remote.size(), theirs.len());
    for to in 0..theirs.len() {
        remote.send(&[job.rank()], to, Tag(1)).unwrap();
        bridge.inside().send(&[job.rank() + 100], to, Tag(1)).unwrap();
    }
    let mut seen = vec![false; theirs.len()];
    for _ in 0..theirs.len() {
        let (value, status) = remote.receive::<usize>(Any, Any).unwrap();
        assert_eq!(value, theirs[status.rank()]);
        assert!(!std::mem::replace(&mut seen[status.rank()], true));
    }
    for (from, rank) in theirs.iter().enumerate() {
        assert_eq!(bridge.inside().receive::<usize>(from, Tag(1)).unwrap().0, rank + 100);
    }
    let local = bridge.local();
    assert_eq!(local.all_reduce(1usize, Sum).unwrap(), local.size());
}

fn other_side(job: &World) -> Vec<usize> {
    (0..job.size()).filter(|rank| rank % 2 != job.rank() % 2).collect()
}

#[test]
fn members_of_two_groups_send_to_each_other() {
    for (n, threads) in
        [(2, ThreadMode::Single), (5, ThreadMode::Single), (5, ThreadMode::Multiple)]
    {
        in_job(n, "bridges::members_of_two_groups_send_to_each_other", threads, |job| {
            let world = job.world();
            let bridge = connect(job);
            for _ in 0..5 {
                check(&bridge, &world, &other_side(&world));
                check(&bridge.duplicate().unwrap(), &world, &other_side(&world));
                check(&connect(job), &world, &other_side(&world));
            }
        });
        if is_member() {
            return;
        }
    }
}

#[test]
fn a_bridge_is_divided_on_both_sides() {
    in_job(6, "bridges::a_bridge_is_divided_on_both_sides", ThreadMode::Single, |job| {
        let world = job.world();
        let (rank, bridge) = (world.rank(), connect(job));
        // Ranks 0, 2 with 1, 3, the latter backwards; 4 has a color of its own, 5 has none.
        let color = [Some(1), Some(1), Some(1), Some(1), Some(2), None][rank];
        let key = if rank % 2 == 1 { -(rank as i64) } else { 0 };
        let part = bridge.split(color, key).unwrap();
        assert_eq!(part.is_some(), rank < 4);
        if let Some(part) = part {
            assert_eq!(part.local().size(), 2);
            check(&part, &world, if rank % 2 == 0 { &[3, 1] } else { &[0, 2] });
        }
        check(&bridge, &world, &other_side(&world));
    });
}

#[test]
fn a_bridge_stands_on_a_world_of_both_groups() {
    let name = "bridges::a_bridge_stands_on_a_world_of_both_groups";
    in_job(5, name, ThreadMode::Single, |job| {
        let world = job.world();
        let bridge = connect(job);
        let both = bridge.merge(world.rank() % 2 == 1).unwrap();
        for _ in 0..3 {
            // All is begun before anything is waited for.
            let worlds = [bridge.local(), &both, &both];
            let [own, both, between] = worlds
                .map(|world| world.start_duplicate().unwrap())
                .map(|making| making.finish().unwrap());
            let copy = Bridge::over(own, both, &between).unwrap();
            drop(between);
            check(&copy, &world, &other_side(&world));
        }
        // A world that this process's group is not in.
        let alone = world.split(Some(world.rank() as u32), 0).unwrap().unwrap();
        assert!(Bridge::over(bridge.local().clone(), both, &alone).is_err());
        check(&bridge, &world, &other_side(&world));
    });
}

#[test]
fn two_groups_become_one() {
    in_job(5, "bridges::two_groups_become_one", ThreadMode::Single, |job| {
        let world = job.world();
        let bridge = connect(job);
        for high in [Some(0), Some(1), None] {
            let is_high = high == Some(world.rank() % 2);
            let merged = bridge.merge(is_high).unwrap();
            let mut ranks = [0; 5];
            merged.all_gather(&[world.rank()], &mut ranks).unwrap();
            let (even_first, odd_first) = ([0, 2, 4, 1, 3], [1, 3, 0, 2, 4]);
            match high {
                Some(0) => assert_eq!(ranks, odd_first),
                Some(_) => assert_eq!(ranks, even_first),
                None => assert!(ranks == even_first || ranks == odd_first, "{ranks:?}"),
            }
            merged.barrier().unwrap();
        }
    });
}

#[test]
fn a_leader_who_does_not_reach_the_other_tells_its_group() {
    in_job(
        3,
        "bridges::a_leader_who_does_not_reach_the_other_tells_its_group",
        ThreadMode::Single,
        |job| {
            let world = job.world();
            let own = world.among(&[world.rank()], Tag(1)).unwrap();
            // Rank 1 leads, and names a rank that is not there.
            match world.rank() {
                0 => {
                    let pair = world.among(&[0, 1], Tag(2)).unwrap();
                    let none = pair.bridge(1, None, Tag(3)).err().unwrap();
                    assert!(matches!(none.kind, ErrorKind::NoBridge { .. }), "{none}");
                }
                1 => {
                    let pair = world.among(&[0, 1], Tag(2)).unwrap();
                    let none = pair.bridge(1, Some((&world, 9)), Tag(3)).err().unwrap();
                    assert!(matches!(none.kind, ErrorKind::NoSuchRank { .. }), "{none}");
                }
                _ => {}
            }
            own.barrier().unwrap();
        },
    );
}
