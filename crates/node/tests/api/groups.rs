//! Worlds made of members of a world.

use std::time::{Duration, Instant};

use landeck::unstable::collectives::Group;
use landeck::unstable::collectives::architecture::Hierarchy;
use landeck::{Error, ErrorKind, Job, Sum, Tag, ThreadMode, World};
use landeck_testing::Watchdog;

use crate::support::{NOTICED_WITHIN, RUN_MAX, in_job};

/// All members are there, in this order of their ranks in the first world, and can do things.
fn check(job: &Job, world: &World, ranks: &[usize]) {
    let (mut all, first) = (vec![0; ranks.len()], job.world().rank());
    world.all_gather(&[first], &mut all).unwrap();
    assert_eq!(all, ranks);
    assert_eq!(ranks[world.rank()], first);
    let (next, size) = ((world.rank() + 1) % world.size(), world.size());
    let received = world
        .scope(|scope| {
            let mut from = [usize::MAX];
            scope.send(&ranks[world.rank()..=world.rank()], next, Tag(7))?.wait()?;
            let before = (world.rank() + size - 1) % size;
            world.receive_into(&mut from, before, Tag(7))?;
            Ok((from[0], ranks[before]))
        })
        .unwrap();
    assert_eq!(received.0, received.1);
}

#[test]
fn colors_divide_and_keys_order() {
    let _watchdog = Watchdog::start(2 * RUN_MAX);
    in_job(5, "groups::colors_divide_and_keys_order", ThreadMode::Single, |job| {
        let world = job.world();
        let rank = world.rank();
        for _ in 0..20 {
            let halves = world.split(Some(rank as u32 % 2), 0).unwrap().unwrap();
            check(job, &halves, if rank % 2 == 0 { &[0, 2, 4] } else { &[1, 3] });
            let reversed = world.split(Some(0), -(rank as i64)).unwrap().unwrap();
            check(job, &reversed, &[4, 3, 2, 1, 0]);
            let alone = reversed.split(Some(rank as u32), 0).unwrap().unwrap();
            check(job, &alone, &[rank]);
            let some = halves.split((rank != 2).then_some(9), 0).unwrap();
            match (rank, &some) {
                (2, None) => {}
                (0 | 4, Some(some)) => check(job, some, &[0, 4]),
                (1 | 3, Some(some)) => check(job, some, &[1, 3]),
                (_, some) => panic!("rank {rank}: {:?}", some.is_some()),
            }
            check(job, &world.duplicate().unwrap(), &[0, 1, 2, 3, 4]);
            assert_eq!(halves.agree(6 | 1 << (8 + halves.rank())).unwrap(), 6, "it has a board");
        }
    });
}

#[test]
fn a_subset_is_made_of_those_who_are_named() {
    let _watchdog = Watchdog::start(2 * RUN_MAX);
    in_job(5, "groups::a_subset_is_made_of_those_who_are_named", ThreadMode::Single, |job| {
        let world = job.world();
        let some = world.subset(&[3, 0, 4]).unwrap();
        assert_eq!(some.is_some(), [0, 3, 4].contains(&world.rank()));
        if let Some(some) = &some {
            check(job, some, &[3, 0, 4]);
        }
        let mine: &[usize] = if world.rank() < 2 { &[1, 0] } else { &[2, 3, 4] };
        check(job, &world.subset(mine).unwrap().unwrap(), mine);
        assert!(matches!(
            world.subset(&[5]),
            Err(Error { kind: ErrorKind::NoSuchRank { rank: 5, size: 5 }, .. })
        ));
        assert!(matches!(
            world.subset(&[1, 1]),
            Err(Error { kind: ErrorKind::RankTwice { rank: 1 }, .. })
        ));
        assert!(world.subset(&[]).unwrap().is_none());
    });
}

#[test]
fn clusters_are_those_of_rank_0_and_stay_with_duplicates() {
    let _watchdog = Watchdog::start(2 * RUN_MAX);
    let name = "groups::clusters_are_those_of_rank_0_and_stay_with_duplicates";
    in_job(4, name, ThreadMode::Single, |job| {
        let world = job.world();
        let odd = Group::of(vec![vec![1, 3], vec![2, 0]]).unwrap();
        let given = if world.rank() == 0 { odd } else { Group::whole(1).unwrap() };
        let clustered = world.with_clusters(&given).unwrap();
        for world in [&clustered, &clustered.duplicate().unwrap()] {
            check(job, world, &[0, 1, 2, 3]);
            let by_clusters = world.via(Hierarchy::tree_of(2).unwrap());
            assert_eq!(by_clusters.all_reduce(1u64 << world.rank(), Sum).unwrap(), 15);
        }
        let none = world.with_clusters(&Group::whole(3).unwrap()).map(|_| ());
        assert!(matches!(none, Err(Error { kind: ErrorKind::Clusters(_), .. })), "{none:?}");
        check(job, &world, &[0, 1, 2, 3]);
    });
}

#[test]
fn a_thousand_groups_live_at_once_in_the_memory_that_the_document_says() {
    const GROUPS: u64 = 1_000;
    let _watchdog = Watchdog::start(2 * RUN_MAX);
    let name = "groups::a_thousand_groups_live_at_once_in_the_memory_that_the_document_says";
    in_job(4, name, ThreadMode::Single, |job| {
        let world = job.world();
        let before = job.heap_in_use().unwrap();
        let groups: Vec<World> = (0..GROUPS).map(|_| world.duplicate().unwrap()).collect();
        for group in groups.iter().step_by(97) {
            check(job, group, &[0, 1, 2, 3]);
        }
        for group in &groups {
            assert_eq!(group.agree(7).unwrap(), 7, "every one has a board");
        }
        let lines = world.all_reduce(job.heap_in_use().unwrap() - before, Sum).unwrap();
        let bytes = lines + GROUPS * landeck::unstable::board::SHARED_BYTES;
        assert!(bytes < 16 << 20, "{bytes} bytes");
        drop(groups);
        world.barrier().unwrap();
        // Freed by all: making another one finds it out.
        for _ in 0..GROUPS {
            world.duplicate().unwrap();
        }
        world.barrier().unwrap();
        let left = job.heap_in_use().unwrap().saturating_sub(before);
        assert!(left < 64 << 10, "{left} bytes of groups that nobody has any more");
    });
}

#[test]
fn groups_come_and_go_without_leaving_anything() {
    let _watchdog = Watchdog::start(2 * RUN_MAX);
    let name = "groups::groups_come_and_go_without_leaving_anything";
    in_job(2, name, ThreadMode::Single, |job| {
        let world = job.world();
        world.duplicate().unwrap().agree(1).unwrap();
        let before = job.heap_in_use().unwrap();
        for round in 0..10_000u64 {
            let group = world.duplicate().unwrap();
            if round % 16 == 0 {
                assert_eq!(group.all_reduce(round, Sum).unwrap(), 2 * round);
                assert_eq!(group.agree(5).unwrap(), 5, "it has a board");
            }
        }
        let left = job.heap_in_use().unwrap().saturating_sub(before);
        assert!(left < 64 << 10, "{left} bytes");
    });
}

#[test]
fn threads_make_groups_of_different_worlds_at_once() {
    const THREADS: usize = 3;
    let _watchdog = Watchdog::start(2 * RUN_MAX);
    let name = "groups::threads_make_groups_of_different_worlds_at_once";
    in_job(3, name, ThreadMode::Multiple, |job| {
        let worlds: Vec<World> = (0..THREADS).map(|_| job.world().duplicate().unwrap()).collect();
        std::thread::scope(|scope| {
            for (number, world) in worlds.iter().enumerate() {
                scope.spawn(move || {
                    for round in 0..100 {
                        let group = world.split(Some(0), 0).unwrap().unwrap();
                        let own = number as u64 * 1_000 + round;
                        assert_eq!(group.all_reduce(own, Sum).unwrap(), 3 * own);
                        assert_eq!(group.agree(own as u32).unwrap(), own as u32);
                    }
                });
            }
        });
    });
}

#[test]
fn a_revoked_world_ends_what_goes_on_in_it_and_what_comes_and_nothing_else() {
    let _watchdog = Watchdog::start(2 * RUN_MAX);
    let name = "groups::a_revoked_world_ends_what_goes_on_in_it_and_what_comes_and_nothing_else";
    in_job(4, name, ThreadMode::Single, |job| {
        let first = job.world();
        let world = first.duplicate().unwrap();
        first.barrier().unwrap();
        let began = Instant::now();
        let error = match world.rank() {
            0 => {
                std::thread::sleep(Duration::from_millis(150));
                world.revoke().unwrap();
                world.barrier().unwrap_err()
            }
            1 => world.barrier().unwrap_err(),
            2 => world.receive::<u8>(1, Tag(1)).unwrap_err(),
            _ => world.send(&vec![0u8; 64 << 20], 0, Tag(3)).unwrap_err(),
        };
        assert!(matches!(error.kind, ErrorKind::Revoked { .. }), "{error}");
        assert!(began.elapsed() < NOTICED_WITHIN);
        let later = [
            world.send(&[1u8], (world.rank() + 1) % 4, Tag(2)).unwrap_err(),
            world.receive::<u8>(landeck::Any, Tag(2)).unwrap_err(),
            world.barrier().unwrap_err(),
            world.duplicate().map(|_| ()).unwrap_err(),
            world.try_probe(landeck::Any, landeck::Any).unwrap_err(),
        ];
        assert!(
            later.iter().all(|error| matches!(error.kind, ErrorKind::Revoked { .. })),
            "{later:?}"
        );
        // Others go on, and so does what is made for that.
        check(job, &first, &[0, 1, 2, 3]);
        assert_eq!(world.agree(64 | 1 << world.rank()).unwrap(), 64);
        let again = world.shrink().unwrap();
        check(job, &again, &[0, 1, 2, 3]);
    });
}

#[test]
fn whoever_agrees_while_others_shrink_is_told() {
    let _watchdog = Watchdog::start(2 * RUN_MAX);
    let name = "groups::whoever_agrees_while_others_shrink_is_told";
    in_job(3, name, ThreadMode::Single, |job| {
        let world = job.world();
        let told = match world.rank() {
            0 => world.agree(1).map(|_| ()),
            _ => world.shrink().map(|_| ()),
        };
        assert!(matches!(told, Err(Error { kind: ErrorKind::OutOfStep, .. })), "{told:?}");
        check(job, &world.shrink().unwrap(), &[0, 1, 2]);
    });
}

#[test]
fn threads_in_a_revoked_world_are_told_and_others_are_not() {
    let _watchdog = Watchdog::start(2 * RUN_MAX);
    let name = "groups::threads_in_a_revoked_world_are_told_and_others_are_not";
    in_job(2, name, ThreadMode::Multiple, |job| {
        let (group, other) = (job.world().duplicate().unwrap(), job.world().duplicate().unwrap());
        if group.rank() == 1 {
            std::thread::sleep(Duration::from_millis(100));
            group.revoke().unwrap();
            std::thread::sleep(Duration::from_millis(100));
            other.send(&[7u8], 0, Tag(1)).unwrap();
            // Whoever waits for one that leaves may be told of that instead.
            other.receive::<u8>(0, Tag(2)).unwrap();
            return;
        }
        let began = Instant::now();
        let is_told = |error: Error| {
            assert!(matches!(error.kind, ErrorKind::Revoked { .. }), "{error}");
            assert!(began.elapsed() < NOTICED_WITHIN);
        };
        std::thread::scope(|scope| {
            scope.spawn(|| is_told(group.barrier().unwrap_err()));
            scope.spawn(|| is_told(group.receive::<u8>(1, Tag(1)).unwrap_err()));
            scope.spawn(|| {
                let mut into = [0u8];
                let ended = group.scope(|scope| scope.receive_into(&mut into, 1, Tag(2))?.wait());
                is_told(ended.unwrap_err());
            });
            scope.spawn(|| assert_eq!(other.receive::<u8>(1, Tag(1)).unwrap().0, 7));
        });
        other.send(&[0u8], 1, Tag(2)).unwrap();
    });
}
