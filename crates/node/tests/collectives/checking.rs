//! Checking mode: every disagreement is reported at every member, no member hangs, and the world
//! stays usable.

use landeck::unstable::collectives::architecture::{Butterfly, Flat, Ring};
use landeck::unstable::collectives::{BoardStyle, Way};
use landeck::{Error, ErrorKind, Job, Maximum, Result, Sum, ThreadMode, User, World};

use crate::support::{in_job, is_member, job_of, run_well};

/// One call of a member, which differs from the others' calls if the flag is set.
type Call = fn(&World, bool) -> Result<()>;

/// The difference as it is reported to the other members, and the call.
const CALLS: &[(&str, Call)] = &[
    ("other counts", |world, differs| world.broadcast(&mut vec![0u8; 9 - usize::from(differs)], 0)),
    ("other counts", |world, differs| {
        let mut values = vec![1u64; 100_000 + usize::from(differs)];
        world.all_reduce_in_place(&mut values, Sum)
    }),
    ("other counts", |world, differs| {
        let counts = if differs { [2, 1, 3] } else { [1, 2, 3] };
        let mut own = vec![0u32; counts[world.rank()]];
        world.reduce_scatter(&[1u32; 6], &mut own, &counts, Sum)
    }),
    ("other counts", |world, differs| {
        let parts = if differs { [0..1, 1..3, 3..6] } else { [0..3, 3..5, 5..6] };
        let own = vec![1u32; parts[world.rank()].len()];
        world.all_gather_varying(&own, &mut [0; 6], &parts)
    }),
    ("another type", |world, differs| match differs {
        true => world.all_gather(&[1.0f32], &mut [0.0; 3]),
        false => world.all_gather(&[1u32], &mut [0; 3]),
    }),
    ("values of", |world, differs| match differs {
        true => world.all_reduce(1.0f64, Sum).map(drop),
        false => world.all_reduce(1u64, Sum).map(drop),
    }),
    ("combines by", |world, differs| match differs {
        true => world.reduce(&[1u64], &mut [0], Maximum, 0),
        false => world.reduce(&[1u64], &mut [0], Sum, 0),
    }),
    ("function of the user's", |world, differs| match differs {
        true => world.scan(&[1u64], &mut [0], User::commutative(|left, right| left + right)),
        false => world.scan(&[1u64], &mut [0], User::ordered(|left, right| left + right)),
    }),
    ("another way", |world, differs| match differs {
        true => world.via(Ring).barrier(),
        false => world.barrier(),
    }),
    ("another way", |world, differs| match differs {
        true => world.via(Way::Board(BoardStyle::Together)).all_reduce(1u64, Sum).map(drop),
        false => world.all_reduce(1u64, Sum.reproducible()).map(drop),
    }),
];

/// More than operations that may be under way: nothing is left of those that failed.
const ROUNDS: usize = 12;

fn all_are_named(job: &Job, world: &World) {
    let ways = [None, Some(Way::by(Flat)), Some(Way::by(Butterfly))];
    for way in &ways {
        let world = way.clone().map_or_else(|| world.clone(), |way| world.via(way));
        for (round, (difference, call)) in (0..ROUNDS).zip(CALLS.iter().cycle()) {
            let odd = round % world.size();
            let ended = call(&world, world.rank() == odd);
            let error = ended.unwrap_err();
            let ErrorKind::Disagreement { rank, what, .. } = &error.kind else { panic!("{error}") };
            assert!(what.contains(difference), "{difference}: {error}");
            assert!(*rank != world.rank(), "{error}");
            assert!(*rank == odd || world.rank() == odd, "{error}");
            call(&world, false).unwrap_or_else(|error| panic!("{difference}: {error}"));
        }
        while_others_go_on(&world);
    }
    job.world().checking(false).barrier().unwrap();
}

/// Non-blocking operations report a disagreement too.
fn while_others_go_on(world: &World) {
    let long = vec![1u64; 50_000 + usize::from(world.rank() == 1)];
    let (mut sums, mut largest) = (long.clone(), [world.rank()]);
    let ended = world.scope(|scope| {
        // The last to come knows it at once.
        let sum = scope.all_reduce_into(&long, &mut sums, Sum);
        scope.all_reduce_in_place(&mut largest, Maximum)?.wait()?;
        sum?.wait()
    });
    assert!(matches!(ended, Err(Error { kind: ErrorKind::Disagreement { .. }, .. })), "{ended:?}");
    assert_eq!(largest, [world.size() - 1]);
}

#[test]
fn every_disagreement_is_named_at_every_member() {
    for threads in [ThreadMode::Single, ThreadMode::Multiple] {
        let name = "checking::every_disagreement_is_named_at_every_member";
        in_job(3, name, threads, |job| all_are_named(job, &job.world().checking(true)));
        if is_member() {
            return;
        }
    }
}

#[test]
fn a_member_that_does_not_compare_is_out_of_step() {
    let name = "checking::a_member_that_does_not_compare_is_out_of_step";
    in_job(3, name, ThreadMode::Single, |job| {
        let meeting = job.world().duplicate().unwrap();
        let world = job.world().checking(job.world().rank() != 1);
        let error = (0..2).find_map(|_| world.all_reduce(1u64, Sum).err()).unwrap();
        let ErrorKind::Mismatch { rank, other, .. } = error.kind else { panic!("{error}") };
        assert!(rank == 1 || other == 1, "{error}");
        assert!(error.to_string().contains("allreduce in checking mode"), "{error}");
        // Who leaves is out of reach of those that have not found out yet.
        meeting.barrier().unwrap();
    });
}

#[test]
fn the_launcher_makes_all_members_of_its_job_compare() {
    if is_member() {
        // The mode is the job's, whatever a process has in its environment.
        let job = Job::join().unwrap();
        all_are_named(&job, &job.world());
        return job.leave().unwrap();
    }
    let name = "checking::the_launcher_makes_all_members_of_its_job_compare";
    run_well(job_of(3, name, &[]).env(landeck::settings::CHECKING, "1"));
}
