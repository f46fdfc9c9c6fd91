//! Data in one copy: owners that die while they are read, and readers that lose the right to read.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use landeck::unstable::collectives::{BoardStyle, Way};
use landeck::unstable::memory::system::now_ns;
use landeck::{ErrorKind, Job, OneCopy, Sum, Tag, ThreadMode, World};
use landeck_testing::{Random, seed};
use rustix::process::{Pid, Signal, kill_process};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};

use crate::limits::{exchange, refuse};
use crate::support::{in_enduring_job, in_job, is_member};

const ROUNDS: u32 = 5;
const FROM: OneCopy = OneCopy::From(16 << 10);

#[test]
fn a_reader_that_loses_the_right_to_read_loses_no_message() {
    let name = "one_copy::a_reader_that_loses_the_right_to_read_loses_no_message";
    in_job(2, name, ThreadMode::Single, |job| {
        let world = job.world();
        world.set_one_copy(FROM).unwrap();
        let before = job.heap_in_use().unwrap();
        exchange(job, 1 << 16, 5);
        assert_eq!(job.heap_in_use().unwrap(), before, "nothing went through the heap");
        if world.rank() == 1 {
            refuse(&[libc::SYS_process_vm_readv]);
        }
        exchange(job, 1 << 16, 5);
    });
}

#[test]
fn only_what_the_guardian_has_started_may_read() {
    let name = "one_copy::only_what_the_guardian_has_started_may_read";
    in_job(2, name, ThreadMode::Single, |job| {
        let guardian: u32 = std::env::var("LANDECK_GUARDIAN").unwrap().parse().unwrap();
        // Every other tracer would end this process.
        allow_one_tracer(u64::from(guardian));
        let world = job.world();
        world.set_one_copy(FROM).unwrap();
        exchange(job, 1 << 16, 5);
    });
}

/// Kills this process when it names another process that may read it.
fn allow_one_tracer(allowed: u64) {
    let is = |at, operator, value| {
        SeccompCondition::new(at, SeccompCmpArgLen::Qword, operator, value).unwrap()
    };
    let option = is(0, SeccompCmpOp::Eq, libc::PR_SET_PTRACER as u64);
    let other = SeccompRule::new(vec![option, is(1, SeccompCmpOp::Ne, allowed)]).unwrap();
    let rules = BTreeMap::from([(libc::SYS_prctl, vec![other])]);
    let architecture = std::env::consts::ARCH.try_into().unwrap();
    let kill = SeccompAction::KillProcess;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, kill, architecture).unwrap();
    let program: BpfProgram = filter.try_into().unwrap();
    apply_filter(&program).unwrap();
}

#[test]
fn a_sender_that_dies_while_it_is_read_is_named() {
    let name = "one_copy::a_sender_that_dies_while_it_is_read_is_named";
    for _ in 0..if is_member() { 1 } else { ROUNDS } {
        in_enduring_job(2, name, 137, |job| take_part(&job));
    }
}

fn take_part(job: &Job) {
    let world = job.world();
    world.set_one_copy(FROM).unwrap();
    let mut data = vec![0u8; 8 << 20];
    if world.rank() == 0 {
        world.send(&[std::process::id()], 1, Tag(1)).unwrap();
        for number in (0..=u8::MAX).cycle() {
            data.fill(number);
            world.send(&data, 1, Tag(2)).unwrap();
        }
    }
    let mut pid = [0u32];
    world.receive_into(&mut pid, 0, Tag(1)).unwrap();
    // The clock has enough randomness for the moment, and the seed says nothing about it.
    let moment = Random::new(seed() ^ now_ns()).below(30_000);
    let killer = thread::spawn(move || {
        thread::sleep(Duration::from_micros(moment));
        kill_process(Pid::from_raw(pid[0].cast_signed()).unwrap(), Signal::KILL).unwrap();
    });
    let mut messages = (0..=u8::MAX).cycle();
    let error = loop {
        let number = messages.next().unwrap();
        match world.receive_into(&mut data, 0, Tag(2)) {
            Ok(_) => assert!(data.iter().all(|&byte| byte == number), "message {number}"),
            Err(error) => break error,
        }
    };
    killer.join().unwrap();
    assert!(matches!(error.kind, ErrorKind::PeerFailed { .. }), "{error}");
    println!("survivor done");
}

/// The operations of members that read each other's blocks of so many words; `mark` is in all of them.
fn operations(world: &World, length: usize, mark: u64) -> landeck::Result<()> {
    let (rank, size) = (world.rank(), world.size());
    let is_of =
        |block: &[u64], from: usize| block.iter().all(|&word| word == mark << 8 | from as u64);
    let own = vec![mark << 8 | rank as u64; length * size];
    let mut whole = own[..length].to_vec();
    world.broadcast(&mut whole, 0)?;
    assert!(is_of(&whole, 0), "broadcast {mark}");
    let mut all = vec![0; length * size];
    world.all_gather(&own[..length], &mut all)?;
    assert!(all.chunks(length).enumerate().all(|(from, block)| is_of(block, from)), "{mark}");
    all.fill(0);
    world.all_to_all(&own, &mut all)?;
    assert!(all.chunks(length).enumerate().all(|(from, block)| is_of(block, from)), "{mark}");
    let sum = (0..size).map(|from| mark << 8 | from as u64).sum::<u64>();
    let is_sum = |block: &[u64]| block.iter().all(|&word| word == sum);
    world.all_reduce_into(&own, &mut all, Sum)?;
    assert!(is_sum(&all), "allreduce {mark}");
    let mut in_place = own.clone();
    world.all_reduce_in_place(&mut in_place, Sum)?;
    assert!(is_sum(&in_place), "allreduce in place {mark}");
    world.reduce_scatter_block(&own, &mut whole, Sum)?;
    assert!(is_sum(&whole), "reduce-scatter {mark}");
    let root = mark as usize % size;
    all.fill(0);
    world.reduce(&own, if rank == root { &mut all } else { &mut [] }, Sum, root)?;
    assert!(rank != root || is_sum(&all), "reduce {mark}");
    Ok(())
}

#[test]
fn a_member_that_loses_the_right_to_read_gets_all_data() {
    let name = "one_copy::a_member_that_loses_the_right_to_read_gets_all_data";
    in_job(3, name, ThreadMode::Single, |job| {
        let world = job.world().via(Way::Board(BoardStyle::Told));
        let before = job.heap_in_use().unwrap();
        (0..5).for_each(|mark| operations(&world, 20_000, mark).unwrap());
        assert_eq!(job.heap_in_use().unwrap(), before, "nothing went through the heap");
        if world.rank() == 1 {
            refuse(&[libc::SYS_process_vm_readv]);
        }
        (5..10).for_each(|mark| operations(&world, 20_000, mark).unwrap());
        let lie_on_board = job.heap_in_use().unwrap() > before;
        assert_eq!(lie_on_board, world.rank() != 1, "others can read what rank 1 has");
    });
}

#[test]
fn members_none_of_which_may_read_get_all_data() {
    let name = "one_copy::members_none_of_which_may_read_get_all_data";
    in_job(3, name, ThreadMode::Single, |job| {
        refuse(&[libc::SYS_process_vm_readv]);
        let world = job.world().via(Way::Board(BoardStyle::Told));
        (0..5).for_each(|mark| operations(&world, 20_000, mark).unwrap());
    });
}

#[test]
fn an_owner_that_dies_while_others_read_its_data_is_named() {
    let name = "one_copy::an_owner_that_dies_while_others_read_its_data_is_named";
    for _ in 0..if is_member() { 1 } else { ROUNDS } {
        in_enduring_job(3, name, 137, |job| read_until_one_dies(&job));
    }
}

fn read_until_one_dies(job: &Job) {
    let world = job.world().via(Way::Board(BoardStyle::Told));
    if world.rank() == 0 {
        // The clock has enough randomness for the moment, and the seed says nothing about it.
        let moment = Random::new(seed() ^ now_ns()).below(30_000);
        thread::spawn(move || {
            thread::sleep(Duration::from_micros(moment));
            crate::support::kill_myself();
        });
    }
    let mut marks = 0..;
    let error = loop {
        if let Err(error) = operations(&world, 100_000, marks.next().unwrap()) {
            break error;
        }
    };
    assert!(matches!(error.kind, ErrorKind::PeerFailed { rank: Some(0), .. }), "{error}");
    println!("survivor done");
}
