//! Worlds that only their own members make, that need no world in common, that are made while the
//! program does something else.

use landeck::{Any, Error, ErrorKind, Sum, Tag, ThreadMode, World, raw};

use crate::support::{in_job, is_member};

/// That all members of a world are here, in this order, and can do things together.
fn check(world: &World, job: &World, ranks: &[usize]) {
    let mut found = vec![0; ranks.len()];
    world.all_gather(&[job.rank()], &mut found).unwrap();
    assert_eq!(found, ranks);
    let total = world.all_reduce(1usize, Sum).unwrap();
    assert_eq!(total, ranks.len());
    let next = (world.rank() + 1) % world.size();
    world.send(&[job.rank()], next, Tag(3)).unwrap();
    let (value, status) = world.receive::<usize>(Any, Tag(3)).unwrap();
    assert_eq!(value, ranks[status.rank()]);
    world.barrier().unwrap();
}

#[test]
fn only_the_members_make_their_world() {
    for threads in [ThreadMode::Single, ThreadMode::Multiple] {
        in_job(5, "founding::only_the_members_make_their_world", threads, |job| {
            let world = job.world();
            let groups: [&[usize]; 4] = [&[4, 0, 2], &[1, 3], &[0, 1, 2, 3, 4], &[3]];
            for round in 0..20 {
                let (number, ranks) = (round % 4, groups[round % 4]);
                if ranks.contains(&world.rank()) {
                    let made = world.among(ranks, Tag(number as u32)).unwrap();
                    check(&made, &world, ranks);
                    let named = world.named(ranks, "a name").unwrap();
                    check(&named, &world, ranks);
                    let again = made.among(&(0..ranks.len()).collect::<Vec<_>>(), Tag(0));
                    check(&again.unwrap(), &world, ranks);
                }
            }
            assert!(matches!(
                world.among(&[7], Tag(0)),
                Err(Error { kind: ErrorKind::NoSuchRank { .. }, .. })
            ));
            assert!(matches!(
                world.among(&[1, 1], Tag(0)),
                Err(Error { kind: ErrorKind::RankTwice { rank: 1 }, .. })
            ));
            let other = (world.rank() + 1) % 5;
            assert!(matches!(
                world.among(&[other], Tag(0)),
                Err(Error { kind: ErrorKind::NotAMember, .. })
            ));
            let mut hosts = [0; 5];
            world.all_gather(&[job.process().segment.0], &mut hosts).unwrap();
            let is_here = |rank: &usize| hosts[*rank] == job.process().segment.0;
            let mut here: Vec<usize> = (0..5).filter(is_here).collect();
            check(&world.split_by_host(0).unwrap(), &world, &here);
            here.reverse();
            let key = -(world.rank() as i64);
            check(&world.split_by_host(key).unwrap(), &world, &here);
        });
        if is_member() {
            return;
        }
    }
}

#[test]
fn messages_inside_do_not_meet_those_of_the_world() {
    let name = "founding::messages_inside_do_not_meet_those_of_the_world";
    in_job(2, name, ThreadMode::Single, |job| {
        let world = job.world();
        for world in [&world, &world.duplicate().unwrap()] {
            let (inside, other) = (world.inside().unwrap(), 1 - world.rank());
            inside.send(&[1], other, Tag(0)).unwrap();
            world.send(&[2], other, Tag(0)).unwrap();
            world.barrier().unwrap();
            assert_eq!(world.receive::<i32>(Any, Any).unwrap().0, 2);
            assert_eq!(inside.receive::<i32>(Any, Any).unwrap().0, 1);
            assert_eq!(world.peers(), inside.peers());
        }
    });
}

#[test]
fn threads_make_worlds_at_the_same_time() {
    in_job(3, "founding::threads_make_worlds_at_the_same_time", ThreadMode::Multiple, |job| {
        let world = job.world();
        std::thread::scope(|threads| {
            for thread in 0..3u32 {
                let world = world.clone();
                threads.spawn(move || {
                    for _ in 0..10 {
                        check(&world.among(&[2, 1, 0], Tag(thread)).unwrap(), &world, &[2, 1, 0]);
                        let name = format!("thread {thread}");
                        check(&world.named(&[0, 1, 2], &name).unwrap(), &world, &[0, 1, 2]);
                    }
                });
            }
        });
    });
}

#[test]
fn a_world_is_duplicated_while_others_are_not_there_yet() {
    let name = "founding::a_world_is_duplicated_while_others_are_not_there_yet";
    for threads in [ThreadMode::Single, ThreadMode::Multiple] {
        in_job(3, name, threads, |job| {
            let world = job.world();
            for round in 0..10 {
                if world.rank() == 2 {
                    world.receive::<u8>(0, Tag(1)).unwrap();
                }
                let (first, second) =
                    (world.start_duplicate().unwrap(), world.start_duplicate().unwrap());
                if world.rank() == 0 {
                    let none = raw::find_over(&world, &[Some(first.operation())]).unwrap();
                    assert_eq!(none, None, "rank 2 is not there yet");
                    world.send(&[0u8], 2, Tag(1)).unwrap();
                }
                let both = [Some(first.operation()), Some(second.operation())];
                raw::wait_any(&world, &both).unwrap();
                if round == 9 {
                    // Who does not want it any more may say so.
                    drop((first, second));
                    // Who leaves now would be missed by those who still wait for one of them.
                    world.barrier().unwrap();
                    break;
                }
                let (first, second) = (first.finish().unwrap(), second.finish().unwrap());
                check(&second, &world, &[0, 1, 2]);
                check(&first, &world, &[0, 1, 2]);
            }
        });
        if is_member() {
            return;
        }
    }
}
