//! Every fault is reported with its cause, and no member hangs.

use landeck::unstable::JobInternals;
use landeck::unstable::collectives::architecture::{Butterfly, Daisy, Flat, Knomial};
use landeck::unstable::collectives::{BoardStyle, Way};
use landeck::{Error, ErrorKind, Sum, ThreadMode, User, World};

use crate::support::{in_job, is_member};

fn ways() -> Vec<Way> {
    vec![Way::by(Flat), Way::by(Daisy), Way::by(Knomial::BINOMIAL), Way::by(Butterfly)]
}

#[test]
fn a_member_calling_another_operation_is_named() {
    in_job(4, "faults::a_member_calling_another_operation_is_named", ThreadMode::Single, |job| {
        for (number, way) in (0..).zip(ways()) {
            let world = world_of_all(job, 40 + number).via(way);
            // Who is still in the first one may be told there.
            let result = world.barrier().and_then(|()| match world.rank() {
                2 => world.broadcast(&mut [0u8; 4], 1),
                _ => world.barrier(),
            });
            // A member whose part does not depend on the one out of step may be through already.
            if let Err(error) = result {
                assert_named(&error, &[2]);
            } else {
                assert_named(&world.barrier().unwrap_err(), &[2]);
            }
        }
        meet_before_leaving(job);
    });
}

#[test]
fn a_member_that_only_tests_its_request_finds_a_mismatch_as_well() {
    let name = "faults::a_member_that_only_tests_its_request_finds_a_mismatch_as_well";
    in_job(2, name, ThreadMode::Single, |job| {
        let world = world_of_all(job, 60).via(Flat);
        let (mut own, mut all) = ([1u8], [0u8; 2]);
        // Each waits for the other, and nobody sends anything.
        let error = world.scope(|scope| {
            let mut request = match world.rank() {
                0 => scope.gather(&own, &mut all, 0)?,
                _ => scope.broadcast(&mut own, 0)?,
            };
            while request.test()?.is_none() {}
            Ok(())
        });
        assert_named(&error.unwrap_err(), &[0, 1]);
        meet_before_leaving(job);
    });
}

#[test]
fn a_member_that_names_another_root_is_named() {
    in_job(3, "faults::a_member_that_names_another_root_is_named", ThreadMode::Single, |job| {
        for (number, way) in (0..).zip(ways()) {
            let world = world_of_all(job, 50 + number).via(way);
            let root = usize::from(world.rank() == 1);
            let mut all = [0u8; 3];
            let result = world.gather(&[1u8], &mut all, root);
            let error = match result {
                Err(error) => error,
                Ok(()) => world.barrier().unwrap_err(),
            };
            assert_named(&error, &[0, 1, 2]);
            let text = error.to_string();
            assert!(text.contains("gather with root 0"), "{text}");
            assert!(text.contains("gather with root 1"), "{text}");
        }
        meet_before_leaving(job);
    });
}

/// Meets before leaving, since a process that left can no longer help others to find the mismatch.
fn meet_before_leaving(job: &landeck::Job) {
    job.world().barrier().unwrap();
}

fn assert_named(error: &Error, ranks: &[usize]) {
    match error.kind {
        ErrorKind::Mismatch { rank, other, .. } => {
            assert!(ranks.contains(&rank) || ranks.contains(&other), "{error}");
        }
        _ => panic!("{error}"),
    }
}

fn world_of_all(job: &landeck::Job, index: u32) -> World {
    job.world_of(1 << 20 | index, job.world().peers()).unwrap()
}

#[test]
fn data_of_another_length_are_named_and_the_group_goes_on() {
    let name = "faults::data_of_another_length_are_named_and_the_group_goes_on";
    in_job(3, name, ThreadMode::Single, |job| {
        let asked = ways().into_iter().chain([Way::Board(BoardStyle::Each)]).map(Some);
        // More often than operations may be under way.
        for way in asked.chain((0..10).map(|_| None)) {
            let world = job.world();
            let world = way.map_or_else(|| world.clone(), |way| world.via(way));
            let rank = world.rank();
            let mut data = vec![rank as u8; if rank == 2 { 5 } else { 9 }];
            let result = world.broadcast(&mut data, 0);
            if rank == 2 {
                let error = result.unwrap_err();
                let ErrorKind::LengthMismatch { message_bytes, expected_bytes, .. } = error.kind
                else {
                    panic!("{error}")
                };
                assert_eq!((message_bytes, expected_bytes), (9, 5));
            } else {
                result.unwrap();
            }
            assert_eq!(world.all_reduce(1u32, Sum).unwrap(), 3);
        }
    });
}

#[test]
fn a_buffer_that_does_not_fit_is_refused_before_anything_begins() {
    let name = "faults::a_buffer_that_does_not_fit_is_refused_before_anything_begins";
    in_job(2, name, ThreadMode::Single, |job| {
        let world = job.world();
        let short = world.all_gather(&[1u32, 2], &mut [0u32; 3]).unwrap_err();
        assert!(
            matches!(short.kind, ErrorKind::WrongLength { buffer_bytes: 12, needed_bytes: 16, .. }),
            "{short}"
        );
        let few =
            world.all_to_all_varying(&[1u8], &[0..1, 1..1, 1..1], &mut [0u8; 2], &[0..1, 1..2]);
        assert!(
            matches!(few, Err(Error { kind: ErrorKind::WrongCount { given: 3, size: 2, .. }, .. })),
            "{few:?}"
        );
        let beyond = world.all_gather_varying(&[1u8], &mut [0u8; 2], &[0..1, 1..9]);
        assert!(
            matches!(
                beyond,
                Err(Error { kind: ErrorKind::WrongLength { needed_bytes: 9, .. }, .. })
            ),
            "{beyond:?}"
        );
        let nobody = world.broadcast(&mut [0u8], 2);
        assert!(
            matches!(nobody, Err(Error { kind: ErrorKind::NoSuchRank { rank: 2, size: 2 }, .. })),
            "{nobody:?}"
        );
        let bits = world.all_reduce(1.5f64, landeck::BitAnd);
        assert!(matches!(bits, Err(Error { kind: ErrorKind::Reduction(_), .. })), "{bits:?}");
        assert_eq!(world.all_reduce(1u32, Sum).unwrap(), 2);
    });
}

#[test]
fn a_function_that_panics_loses_the_result_and_nothing_else() {
    let name = "faults::a_function_that_panics_loses_the_result_and_nothing_else";
    in_job(2, name, ThreadMode::Single, |job| {
        let world = job.world();
        let panics = User::commutative(|_: u32, _: u32| panic!("as the test wants"));
        let lost = world.all_reduce(1, panics.via(Butterfly));
        assert!(matches!(lost, Err(Error { kind: ErrorKind::OperatorPanicked, .. })), "{lost:?}");
        assert_eq!(world.all_reduce(1u32, Sum).unwrap(), 2);
    });
}

#[test]
fn an_operator_that_panics_at_one_member_is_told_to_all() {
    let name = "faults::an_operator_that_panics_at_one_member_is_told_to_all";
    in_job(3, name, ThreadMode::Single, |job| {
        let world = job.world().via(Way::Board(BoardStyle::Together));
        for length in [1, 100, 5_000, 100_000].into_iter().cycle().take(20) {
            let mut values = vec![1u32; length];
            let panics = User::commutative(|_: u32, _: u32| panic!("as the test wants"));
            let lost = world.all_reduce_in_place(&mut values, panics);
            let is_own = match lost {
                Err(Error { kind: ErrorKind::OperatorPanicked, .. }) => 1u32,
                Err(Error { kind: ErrorKind::Spoiled { rank, .. }, .. })
                    if rank != world.rank() =>
                {
                    0
                }
                _ => panic!("{lost:?}"),
            };
            assert!(world.all_reduce(is_own, Sum).unwrap() > 0);
        }
    });
}

#[test]
fn a_revoked_world_does_nothing_more() {
    for n in [2, 3] {
        in_job(n, "faults::a_revoked_world_does_nothing_more", ThreadMode::Single, |job| {
            let world = world_of_all(job, 9);
            world.barrier().unwrap();
            // Who is still in that barrier would be told of the revocation there.
            job.world().barrier().unwrap();
            world.revoke().unwrap();
            assert!(matches!(world.barrier(), Err(Error { kind: ErrorKind::Revoked { .. }, .. })));
            job.world().barrier().unwrap();
        });
        if is_member() {
            return;
        }
    }
}
