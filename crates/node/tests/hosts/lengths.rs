//! Members that call an operation with other lengths than the rest. What a member passes on is what it has received, or
//! the word that it has nothing, and why: nobody gets data that nobody sent, and success with them.

use landeck::{Error, ErrorKind, Job, Persistent, Result, Sum, World};

use crate::across::in_both_placements;
use crate::job::{EACH, RANKS, on_hosts};

const OPERATIONS: [&str; 5] = ["broadcast", "allreduce", "gather", "scatter", "allgather"];
/// Operations in which all meet, after which all have found out who is out of step.
const MEETINGS: usize = 20;
const FORMS: [&str; 3] = ["blocking", "started", "persistent"];

/// The value at a place of the data of a rank.
fn value(rank: usize, at: usize) -> u32 {
    (1_000_000 * (rank + 1) + at % 997) as u32
}

fn values(rank: usize, count: usize) -> Vec<u32> {
    (0..count).map(|at| value(rank, at)).collect()
}

/// Calls an operation with root 0 in one of the forms, with this length of a block. Returns the result.
fn call(world: &World, operation: &str, form: &str, count: usize) -> Result<Vec<u32>> {
    let (rank, size) = (world.rank(), world.size());
    let (own, all) = (values(rank, count), values(rank, size * count));
    let at_root = |length| if rank == 0 { length } else { 0 };
    if form == "persistent" {
        let mut operation = match operation {
            "broadcast" => Persistent::broadcast(world, own, 0),
            "allreduce" => Persistent::all_reduce(world, own, Sum)?,
            "gather" => Persistent::gather(world, own, 0),
            "scatter" => Persistent::scatter(world, all, count, 0),
            _ => Persistent::all_gather(world, own),
        };
        operation.start()?;
        operation.wait()?;
        return Ok(operation.output().unwrap().to_vec());
    }
    let length = match operation {
        "gather" => at_root(size * count),
        "allgather" => size * count,
        _ => count,
    };
    let mut into = if operation == "broadcast" { own.clone() } else { vec![0; length] };
    let result = match (operation, form) {
        ("broadcast", "blocking") => world.broadcast(&mut into, 0),
        ("allreduce", "blocking") => world.all_reduce_into(&own, &mut into, Sum),
        ("gather", "blocking") => world.gather(&own, &mut into, 0),
        ("scatter", "blocking") => world.scatter(&all, &mut into, 0),
        (_, "blocking") => world.all_gather(&own, &mut into),
        _ => world
            .scope(|scope| {
                let begun = match operation {
                    "broadcast" => scope.broadcast(&mut into, 0)?,
                    "allreduce" => scope.all_reduce_into(&own, &mut into, Sum)?,
                    "gather" => scope.gather(&own, &mut into, 0)?,
                    "scatter" => scope.scatter(&all, &mut into, 0)?,
                    _ => scope.all_gather(&own, &mut into)?,
                };
                begun.wait()
            })
            .map(drop),
    };
    result.map(|()| into)
}

/// Whether the lengths are to blame in the words of this error, or those out of step for that reason.
fn is_about_lengths(error: &Error) -> bool {
    matches!(
        error.kind,
        ErrorKind::LengthMismatch { .. }
            | ErrorKind::LengthMismatchElsewhere { .. }
            | ErrorKind::Spoiled { .. }
            | ErrorKind::Mismatch { .. }
    )
}

/// The data of a member in the end if all is as the root and its own call say.
fn expected(world: &World, operation: &str, count: usize) -> Option<Vec<u32>> {
    match operation {
        "broadcast" => Some(values(0, count)),
        "scatter" => {
            let all = values(0, world.size() * count);
            Some(all[world.rank() * count..][..count].to_vec())
        }
        _ => None,
    }
}

/// One member calls with another length than the rest.
fn check_one_other(
    job: &Job,
    operation: &str,
    form: &str,
    (usual, other): (usize, usize),
    odd: usize,
) {
    let world = job.world().duplicate().unwrap();
    let rank = world.rank();
    let count = if rank == odd { other } else { usual };
    let what = || format!("{operation} {form} {usual} {other} of {odd} at {rank}");
    let result = call(&world, operation, form, count);
    // Those whose calls go by different ways find out when they meet again.
    let met = (0..MEETINGS).try_for_each(|_| world.barrier());
    let result = result.and_then(|into| met.map(|()| into));
    let must_fail = match operation {
        "broadcast" | "scatter" => rank != 0 && (odd == 0 || odd == rank),
        "gather" => rank == 0,
        _ => true,
    };
    match result {
        Err(error) => assert!(is_about_lengths(&error), "{}: {error}", what()),
        Ok(_) if must_fail => panic!("{} succeeds", what()),
        Ok(into) => {
            let expected = expected(&world, operation, count);
            assert!(expected.is_none_or(|expected| expected == into), "{}", what());
        }
    }
    job.world().barrier().unwrap();
}

#[test]
fn nobody_gets_what_nobody_sent() {
    in_both_placements("lengths::nobody_gets_what_nobody_sent", EACH, |job| {
        for (number, lengths) in
            [(2, 10), (10, 2), (10, 20_000), (100_000, 2)].into_iter().enumerate()
        {
            for (at, operation) in OPERATIONS.into_iter().enumerate() {
                for odd in 0..RANKS {
                    let form = FORMS[(number + at + odd) % FORMS.len()];
                    check_one_other(job, operation, form, lengths, odd);
                }
            }
        }
    });
}

#[test]
fn a_mistake_that_is_passed_on_keeps_its_cause() {
    in_both_placements("lengths::a_mistake_that_is_passed_on_keeps_its_cause", EACH, |job| {
        let world = job.world();
        let count = if world.rank() == RANKS - 1 { 20 } else { 10 };
        let mut into = vec![0u32; count];
        let error = world.all_reduce_into(&values(0, count), &mut into, Sum).unwrap_err();
        let is_named = matches!(
            error.kind,
            ErrorKind::LengthMismatch { .. } | ErrorKind::LengthMismatchElsewhere { .. }
        );
        assert!(is_named && error.to_string().contains("80"), "{error}");
        assert_eq!(world.all_reduce(1u32, Sum).unwrap(), RANKS as u32, "the world goes on");
    });
}

/// Lengths so far apart that the members have different plans: a part of them would wait for messages that never come.
#[test]
fn nobody_waits_for_a_part_that_others_do_not_send() {
    on_hosts("lengths::nobody_waits_for_a_part_that_others_do_not_send", |job| {
        for (operation, odd) in
            [("broadcast", EACH), ("broadcast", 0), ("gather", EACH), ("scatter", 1)]
        {
            for lengths in [(10, 2_000_000), (2_000_000, 10)] {
                check_one_other(job, operation, "blocking", lengths, odd);
            }
        }
    });
}

#[test]
fn members_that_make_different_groups_find_out() {
    on_hosts("lengths::members_that_make_different_groups_find_out", |job| {
        let world = job.world().duplicate().unwrap();
        let error = match world.rank() {
            1 => world.split(Some(0), 0).err(),
            _ => world.duplicate().err(),
        };
        let error = error.unwrap();
        let ErrorKind::Mismatch { theirs, ours, .. } = &error.kind else { panic!("{error}") };
        let mut calls = [theirs.as_str(), ours.as_str()];
        calls.sort_unstable();
        assert_eq!(calls, ["duplicate", "split"], "{error}");
        job.world().barrier().unwrap();
    });
}
