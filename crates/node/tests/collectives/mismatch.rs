//! Members that call different operations, or name different roots: always named, with what each
//! called and where in the order, whoever waits for whom.

use std::time::Duration;

use landeck::unstable::JobInternals;
use landeck::unstable::collectives::architecture::Flat;
use landeck::unstable::collectives::{BoardStyle, Operation, Preset, Way};
use landeck::{Error, ErrorKind, Job, Maximum, Result, Sum, Tag, ThreadMode, World};

use crate::support::{in_job, is_member, is_soak, job_of, run_well};

/// An operation and its root.
type Called = (Operation, usize);

/// Operations in which all meet, after which all have found out: as many as members may be apart.
const MEETINGS: usize = 20;

/// Each operation against each other one, each root against another, by every kind of way, blocking
/// and not, between any number of members: all of them are told who called what, and which call it
/// was, at the latest when they have met.
#[test]
fn whatever_two_call_in_each_others_place_is_named() {
    for n in [2, 3, 4, 5] {
        let name = "mismatch::whatever_two_call_in_each_others_place_is_named";
        in_job(n, name, ThreadMode::Single, |job| {
            let world = job.world();
            // A job over hosts has a board on each.
            let hosts = world.all_reduce(job.process().segment.0, Maximum).unwrap();
            let is_over_hosts = world.all_reduce(u32::from(hosts != job.process().segment.0), Sum);
            let board = if is_over_hosts.unwrap() > 0 { "hosts:flat" } else { "board" };
            let all = [board, "butterfly", "flat", "knomial", "daisy", "ring"];
            for way in &all[..if is_soak() { all.len() } else { 2 }] {
                for (turn, (first, second)) in pairs(world.size()).into_iter().enumerate() {
                    // Without soak, some of them for each number of members.
                    if !is_soak() && turn % 4 != world.size() % 4 {
                        continue;
                    }
                    for form in [Form::Blocking, Form::Going, Form::Checked] {
                        one_is_out_of_step(&world, way, form, first, second);
                    }
                }
            }
            meet_before_leaving(job);
        });
        if is_member() {
            return;
        }
    }
}

/// How members call.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    Blocking,
    Going,
    Checked,
}

fn one_is_out_of_step(world: &World, way: &str, form: Form, first: Called, second: Called) {
    let preset: Preset = way.parse().unwrap();
    let odd = (first.0 as usize + second.0 as usize + second.1) % world.size();
    let group = world.duplicate().unwrap().checking(form == Form::Checked);
    // Where in the order it happens.
    let before = (first.0 as usize + odd) % 4;
    let barrier = group.via(preset.way(Operation::Barrier));
    // Who is still there may be told by those who have found it.
    let mut done = (0..before).try_for_each(|_| barrier.barrier());
    let (operation, root) = if world.rank() == odd { second } else { first };
    let own = group.via(preset.way(operation));
    done = done.and_then(|()| match form {
        Form::Going => going(&own, operation, root),
        _ => call(&own, operation, root),
    });
    for _ in 0..if way == "board" { 1 } else { MEETINGS } {
        done = done.and_then(|()| barrier.barrier());
    }
    let what = format!("{way}, {form:?}, {odd} calls {second:?}, the others {first:?}: {done:?}");
    let Err(Error { kind: ErrorKind::Mismatch { rank, theirs, other, ours, number, .. }, .. }) =
        done
    else {
        panic!("{what}")
    };
    assert_eq!(number as usize, before, "{what}");
    let (usual, odd_one) = if rank == odd { (ours, theirs) } else { (theirs, ours) };
    assert!((rank == odd) != (other == odd), "{what}");
    let checked = if form == Form::Checked { " in checking mode" } else { "" };
    assert_eq!((usual, odd_one), (said(first, checked), said(second, checked)), "{what}");
}

/// As a message has it.
fn said((operation, root): Called, checked: &str) -> String {
    let root = if operation.has_root() { format!(" with root {root}") } else { String::new() };
    format!("{operation}{root}{checked}")
}

/// The call of most members, and the different call of one.
fn pairs(size: usize) -> Vec<(Called, Called)> {
    let mut pairs = Vec::new();
    let last = size - 1;
    for first in Operation::ALL {
        for second in Operation::ALL.into_iter().filter(|&second| second != first) {
            let root = usize::from(second.has_root() && first.has_root());
            pairs.push(((first, 0), (second, root)));
        }
        if first.has_root() {
            pairs.extend([((first, 0), (first, 1)), ((first, last), (first, 0))]);
        }
    }
    pairs
}

fn call(world: &World, operation: Operation, root: usize) -> Result<()> {
    let (mut many, mut one) = (vec![1u64; world.size()], [0u64; 1]);
    let (own, given) = ([world.rank() as u64], vec![1u64; world.size()]);
    match operation {
        Operation::Barrier => world.barrier(),
        Operation::Broadcast => world.broadcast(&mut one, root),
        Operation::Gather => world.gather(&own, &mut many, root),
        Operation::Scatter => world.scatter(&given, &mut one, root),
        Operation::Reduce => world.reduce(&own, &mut one, Sum, root),
        Operation::AllGather => world.all_gather(&own, &mut many),
        Operation::AllReduce => world.all_reduce_into(&own, &mut one, Sum),
        Operation::AllToAll => world.all_to_all(&given, &mut many),
        Operation::ReduceScatter => world.reduce_scatter_block(&given, &mut one, Sum),
        Operation::Scan => world.scan(&own, &mut one, Sum),
        Operation::ExclusiveScan => world.exclusive_scan(&own, &mut one, Sum),
    }
}

fn going(world: &World, operation: Operation, root: usize) -> Result<()> {
    let (mut many, mut one) = (vec![1u64; world.size()], [0u64; 1]);
    let (own, given) = ([world.rank() as u64], vec![1u64; world.size()]);
    world.scope(|scope| {
        let request = match operation {
            Operation::Barrier => scope.barrier(),
            Operation::Broadcast => scope.broadcast(&mut one, root),
            Operation::Gather => scope.gather(&own, &mut many, root),
            Operation::Scatter => scope.scatter(&given, &mut one, root),
            Operation::Reduce => scope.reduce(&own, &mut one, Sum, root),
            Operation::AllGather => scope.all_gather(&own, &mut many),
            Operation::AllReduce => scope.all_reduce_into(&own, &mut one, Sum),
            Operation::AllToAll => scope.all_to_all(&given, &mut many),
            Operation::ReduceScatter => scope.reduce_scatter_block(&given, &mut one, Sum),
            Operation::Scan => scope.scan(&own, &mut one, Sum),
            Operation::ExclusiveScan => scope.exclusive_scan(&own, &mut one, Sum),
        }?;
        request.wait().map(drop)
    })
}

/// Members that make a group tell each other of themselves, all in the same words. What they make is compared.
#[test]
fn members_that_make_different_groups_find_out() {
    let name = "mismatch::members_that_make_different_groups_find_out";
    in_job(3, name, ThreadMode::Single, |job| {
        type Making = fn(&World) -> Result<()>;
        let makes: [(&str, Making); 4] = [
            ("split", |world| world.split(Some(0), 0).map(drop)),
            ("duplicate", |world| world.duplicate().map(drop)),
            ("started duplicate", |world| world.start_duplicate()?.finish().map(drop)),
            ("subset", |world| world.subset(&[0, 1, 2]).map(drop)),
        ];
        for (first, second) in
            (0..makes.len()).flat_map(|one| (0..one).map(move |other| (one, other)))
        {
            let world = job.world().duplicate().unwrap();
            let odd = (first + second) % world.size();
            let (called, make) = makes[if world.rank() == odd { first } else { second }];
            let mut done = make(&world);
            for _ in 0..MEETINGS {
                done = done.and_then(|()| world.barrier());
            }
            let error = done.unwrap_err();
            let ErrorKind::Mismatch { theirs, ours, .. } = &error.kind else { panic!("{error}") };
            let mut said = [theirs.as_str(), ours.as_str()];
            let mut expected = [makes[first].0, makes[second].0];
            said.sort_unstable();
            expected.sort_unstable();
            assert_eq!(said, expected, "{called}: {error}");
        }
        meet_before_leaving(job);
    });
}

/// A root goes on giving, and a leaf gives what nobody takes: neither ever waits for the other.
#[test]
fn members_that_never_wait_for_each_other_find_a_mismatch_within_a_window() {
    let name = "mismatch::members_that_never_wait_for_each_other_find_a_mismatch_within_a_window";
    for n in [2, 3, 4] {
        in_job(n, name, ThreadMode::Single, |job| {
            for odd in [1, job.world().size() - 1] {
                for before in 0..10 {
                    let world = job.world().duplicate().unwrap();
                    // Who is still there may be told by those who have found it.
                    let mut done = (0..before).try_for_each(|_| world.broadcast(&mut [1u8], 0));
                    for _ in 0..17 {
                        done = done.and_then(|()| match world.rank() == odd {
                            true => world.gather(&[1u8], &mut [], 0),
                            false => world.broadcast(&mut [1u8], 0),
                        });
                    }
                    assert_named(&done.unwrap_err(), odd, before);
                }
            }
            meet_before_leaving(job);
        });
        if is_member() {
            return;
        }
    }
}

/// A mismatch over messages, where a root is not held back, is found by the member that received
/// the stray message.
#[test]
fn a_message_that_nobody_asks_for_is_found_by_its_receiver() {
    let name = "mismatch::a_message_that_nobody_asks_for_is_found_by_its_receiver";
    in_job(3, name, ThreadMode::Single, |job| {
        // A late member may find a stray message there already.
        for (before, late) in [(0, 3), (1, 0), (2, 1), (3, 2), (5, 3)] {
            let world = world_of_all(job, 100 + before).via(Flat);
            // Who is still there may be told by those who have found it.
            let mut done = (0..before).try_for_each(|_| world.barrier());
            if world.rank() == late {
                std::thread::sleep(Duration::from_millis(50));
            }
            done = done.and_then(|()| match world.rank() {
                2 => world.gather(&[1u8], &mut [], 0),
                _ => world.broadcast(&mut [1u8], 0),
            });
            for _ in 0..MEETINGS {
                done = done.and_then(|()| world.barrier());
            }
            assert_named(&done.unwrap_err(), 2, before);
        }
        meet_before_leaving(job);
    });
}

/// A mismatch that no call has reported is reported on leaving, to at least one of the members
/// concerned and to no member of a group without a mismatch.
#[test]
fn a_mismatch_that_nobody_noticed_is_named_when_members_leave() {
    let name = "mismatch::a_mismatch_that_nobody_noticed_is_named_when_members_leave";
    if !is_member() {
        run_well(&mut job_of(3, name, &[]));
        return run_well(job_of(3, name, &[]).env("LANDECK_TEST_MESSAGES", "1"));
    }
    let job = Job::join().unwrap();
    let (world, meeting) = (job.world(), job.world().duplicate().unwrap());
    let world = match std::env::var_os("LANDECK_TEST_MESSAGES") {
        Some(_) => world.via(Flat),
        None => world.via(Way::Board(BoardStyle::Each)),
    };
    // Who is still there may be told by those who have found it.
    let called = world.barrier().and_then(|()| match world.rank() {
        2 => world.gather(&[1u8], &mut [], 0),
        _ => world.broadcast(&mut [1u8], 0),
    });
    meeting.barrier().unwrap();
    let rank = world.rank();
    drop((world, meeting));
    let was_called = called.is_ok();
    match called.and(job.leave()) {
        Err(error) => {
            assert_named(&error, 2, 2);
            assert!(!was_called || error.call == Some("leave"), "{error}");
        }
        Ok(()) => assert_ne!(rank, 0, "the root has what nobody should have sent"),
    }
}

/// The calls that the tag of a message tells apart.
const SPAN_CALLS: u32 = 8_192;

/// Members that wait for nobody come to other operations, a whole span of calls after the one that a member waits in: that
/// is no mismatch. A mismatch there has its whole number.
#[test]
fn calls_a_whole_span_later_are_no_mismatch() {
    let name = "mismatch::calls_a_whole_span_later_are_no_mismatch";
    in_job(4, name, ThreadMode::Single, |job| {
        let (world, rank) = (world_of_all(job, 100).via(Flat), job.world().rank());
        let (mut gathered, mut byte) = ([0; 4], [0u8]);
        if rank == 1 || rank == 2 {
            world.gather(&[rank as u8], &mut [], 0).unwrap();
        } else {
            // All that the others send before comes before this.
            job.world().receive_into(&mut byte, 2, Tag(1)).unwrap();
            // So the root waits in the call.
            std::thread::sleep(Duration::from_millis(if rank == 3 { 200 } else { 0 }));
            world.gather(&[rank as u8], &mut gathered[..if rank == 0 { 4 } else { 0 }], 0).unwrap();
        }
        assert!(rank != 0 || gathered == [0, 1, 2, 3]);
        (1..SPAN_CALLS).for_each(|_| world.broadcast(&mut byte, 1).unwrap());
        world.broadcast(&mut byte, 2).unwrap();
        if rank == 2 {
            [0, 3].into_iter().for_each(|to| job.world().send(&byte, to, Tag(1)).unwrap());
        }
        let mut done = match rank {
            3 => world.gather(&[1u8], &mut [], 0),
            _ => world.broadcast(&mut byte, 0),
        };
        for _ in 0..MEETINGS {
            done = done.and_then(|()| world.barrier());
        }
        assert_named(&done.unwrap_err(), 3, SPAN_CALLS + 1);
        meet_before_leaving(job);
    });
}

/// Meets before leaving, since a process that left can no longer help others to find the mismatch.
fn meet_before_leaving(job: &Job) {
    job.world().barrier().unwrap();
}

fn world_of_all(job: &Job, index: u32) -> World {
    job.world_of(1 << 20 | index, job.world().peers()).unwrap()
}

fn assert_named(error: &Error, odd: usize, which: u32) {
    let ErrorKind::Mismatch { rank, other, number, .. } = error.kind else { panic!("{error}") };
    assert!((rank == odd) != (other == odd) && number == which, "{error}");
}
