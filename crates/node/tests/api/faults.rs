//! Deaths, stops and ends, as programs see them.

use std::time::{Duration, Instant};

use landeck::unstable::JobInternals;
use landeck::{
    Any, Error, ErrorKind, Job, Options, Persistent, Region, RegionAddress, Repeated, SendMode,
    Sum, Tag, ThreadMode, World,
};
use landeck_testing::{Trail, Watchdog};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{
    GONE_WITHIN, NOTICED_WITHIN, RUN_MAX, in_enduring_job, in_job, is_member, job_of, kill_myself,
    text,
};

#[test]
fn calls_that_need_the_dead_say_who_died_and_others_go_on() {
    let name = "faults::calls_that_need_the_dead_say_who_died_and_others_go_on";
    in_enduring_job(4, name, 137, |job| {
        let world = job.world();
        // Who is not there yet has not died.
        world.barrier().unwrap();
        if world.rank() == 2 {
            world.send(&[1u8], 0, Tag(1)).unwrap();
            std::thread::sleep(Duration::from_millis(50));
            kill_myself();
        }
        if world.rank() == 0 {
            world.receive::<u8>(2, Tag(1)).unwrap();
        }
        let began = Instant::now();
        let error = world.receive::<u8>(2, Tag(2)).unwrap_err();
        assert!(began.elapsed() < NOTICED_WITHIN);
        let ErrorKind::PeerFailed { rank, how, .. } = &error.kind else { panic!("{error}") };
        assert_eq!((*rank, how.as_str()), (Some(2), "was killed by signal 9"));
        // The name of its host comes first on another one.
        let (start, text) = (format!("rank {}: receive: rank 2 ", world.rank()), error.to_string());
        assert!(text.starts_with(&start) && text.contains("(pid "), "{text}");
        assert!(matches!(
            world.send(&[1u8], 2, Tag(3)),
            Err(Error { kind: ErrorKind::PeerFailed { .. }, .. })
        ));
        let error = world.barrier().unwrap_err();
        assert_eq!((error.call, error.rank), (Some("barrier"), Some(world.rank())), "{error}");
        // A receive from anybody is told once; after that the others go on.
        let told = world.receive::<u8>(Any, Tag(4)).unwrap_err();
        assert!(matches!(told.kind, ErrorKind::PeerFailed { rank: Some(2), .. }), "{told}");
        assert_eq!(job.acknowledge_failures().unwrap(), [2]);
        let others: Vec<usize> =
            [0, 1, 3].into_iter().filter(|&rank| rank != world.rank()).collect();
        for &other in &others {
            world.send(&[world.rank() as u8], other, Tag(5)).unwrap();
        }
        for _ in &others {
            let (from, status) = world.receive::<u8>(Any, Tag(5)).unwrap();
            assert_eq!(usize::from(from), status.rank());
        }
        println!("survivor done");
        job.leave().unwrap();
    });
}

#[test]
fn a_sender_that_dies_in_the_middle_is_named() {
    let name = "faults::a_sender_that_dies_in_the_middle_is_named";
    in_enduring_job(2, name, 137, |job| {
        let world = job.world();
        if world.rank() == 1 {
            let huge = vec![1u8; 64 << 20];
            let result: landeck::Result<()> = world.scope(|scope| {
                let _sending = scope.send(&huge, 0, Tag(1))?;
                kill_myself()
            });
            panic!("{result:?}");
        }
        let mut into = vec![0u8; 64 << 20];
        let error = world.receive_into(&mut into, 1, Tag(1)).unwrap_err();
        assert!(matches!(error.kind, ErrorKind::PeerFailed { rank: Some(1), .. }), "{error}");
        println!("survivor done");
        job.leave().unwrap();
    });
}

#[test]
fn a_stopped_process_fails_nobody() {
    let name = "faults::a_stopped_process_fails_nobody";
    if !is_member() {
        let _watchdog = Watchdog::start(2 * RUN_MAX);
        let trail = Trail::new();
        let ended = trail.run(&mut job_of(3, name, &[]), RUN_MAX);
        assert!(ended.status.success(), "{}", text(&ended));
        return trail.assert_gone(GONE_WITHIN);
    }
    let job = Job::join().unwrap();
    let world = job.world();
    match world.rank() {
        1 => {
            world.send(&[std::process::id()], 0, Tag(1)).unwrap();
            assert_eq!(world.receive::<u8>(0, Tag(3)).unwrap().0, 9);
            world.send(&[1u8], 0, Tag(4)).unwrap();
        }
        0 => {
            let pid = world.receive::<u32>(1, Tag(1)).unwrap().0;
            let pid = Pid::from_raw(pid as i32).unwrap();
            kill_process(pid, Signal::STOP).unwrap();
            let stopped =
                world.receive_into_within(&mut [0u8], 1, Tag(2), Duration::from_millis(300));
            assert!(
                matches!(stopped, Err(Error { kind: ErrorKind::TimedOut(_), .. })),
                "{stopped:?}"
            );
            // It is shown, before long.
            while !job.segment().slot_record(1).stopped {
                std::thread::sleep(Duration::from_millis(1));
            }
            // The others go on meanwhile.
            world.send(&[5u8], 2, Tag(5)).unwrap();
            assert_eq!(world.receive::<u8>(2, Tag(6)).unwrap().0, 6);
            world.send(&[9u8], 1, Tag(3)).unwrap();
            kill_process(pid, Signal::CONT).unwrap();
            world.receive::<u8>(1, Tag(4)).unwrap();
        }
        _ => {
            assert_eq!(world.receive::<u8>(0, Tag(5)).unwrap().0, 5);
            world.send(&[6u8], 0, Tag(6)).unwrap();
        }
    }
    job.leave().unwrap();
}

#[test]
fn one_who_left_well_is_told_from_one_who_died() {
    let name = "faults::one_who_left_well_is_told_from_one_who_died";
    in_enduring_job(2, name, 0, |job| {
        let world = job.world();
        if world.rank() == 1 {
            return job.leave().unwrap();
        }
        let error = world.receive::<u8>(1, Tag(1)).unwrap_err();
        let ErrorKind::PeerFailed { how, .. } = &error.kind else { panic!("{error}") };
        assert_eq!(how, "has left the job");
        println!("survivor done");
        job.leave().unwrap();
    });
}

#[test]
fn an_error_names_the_call_that_it_comes_from() {
    let name = "faults::an_error_names_the_call_that_it_comes_from";
    in_enduring_job(2, name, 137, |job| {
        let world = job.world();
        let mut region = job.create_region(8).unwrap();
        if world.rank() == 1 {
            world.send(&region.address().to_words(), 0, Tag(1)).unwrap();
            world.receive::<u8>(0, Tag(2)).unwrap();
            kill_myself();
        }
        own_calls_are_named(&job, &mut region);
        calls_that_need_the_dead_are_named(&job, &world);
        println!("survivor done");
        job.leave().unwrap();
    });
}

/// Asserts that a call has failed whose error has this name, and the rank of the process.
fn assert_call<T>(result: landeck::Result<T>, call: &str) {
    let Err(error) = result else { panic!("{call} succeeds") };
    assert_eq!((error.call, error.rank), (Some(call), Some(0)), "{error}");
    let words = format!("rank 0: {call}: ");
    assert!(error.to_string().starts_with(&words), "{error}");
}

fn own_calls_are_named(job: &Job, region: &mut Region) {
    let moment = Duration::from_millis(1);
    assert_call(region.read(8, &mut [0u8]), "read");
    assert_call(region.write(8, &[0u8]), "write");
    assert_call(region.word(1).map(drop), "word");
    assert_call(region.wait_notified_within(1, moment), "wait_notified");
    let remote = job.open_region(region.address()).unwrap();
    assert_call(remote.put(8, &[0u8]), "put");
    assert_call(remote.put_and_notify(8, &[0u8]), "put_and_notify");
    assert_call(remote.get(8, &mut [0u8]), "get");
    assert_call(remote.fetch_add(8, 1), "fetch_add");
    assert_call(remote.swap(8, 1), "swap");
    assert_call(remote.compare_swap(8, 0, 1), "compare_swap");
    let mut inbox = job.create_mailbox().unwrap();
    assert_call(inbox.register(""), "register");
    assert_call(inbox.unregister("nobody's"), "unregister");
    assert_call(job.loan::<u8>(usize::MAX >> 1), "loan");
    // A process that does not join has no rank.
    let joined =
        [(Job::join(), "join"), (Job::join_running("?", Options::default()), "join_running")];
    for (joined, call) in joined {
        let error = joined.expect_err("no such job");
        assert_eq!((error.call, error.rank), (Some(call), None), "{error}");
    }
}

fn calls_that_need_the_dead_are_named(job: &Job, world: &World) {
    let words = world.receive(1, Tag(1)).unwrap().0;
    let remote = job.open_region(RegionAddress::from_words(words)).unwrap();
    let mut sum = Persistent::all_reduce(world, vec![1u8], Sum).unwrap();
    let mut receive = Repeated::<u8>::receive(world, 1, 1, Tag(3));
    sum.start().unwrap();
    receive.start().unwrap();
    let copy = world.start_duplicate().unwrap();
    world.send(&[1u8], 1, Tag(2)).unwrap();
    assert_call(receive.wait(), "receive");
    assert_call(sum.wait(), "allreduce");
    assert_call(copy.finish(), "duplicate");
    assert_call(remote.get(0, &mut [0u8]), "get");
    let mut send = Repeated::send(world, SendMode::Standard, vec![1u8], 1, Tag(4));
    assert_call(send.start(), "send");
}

#[test]
fn jobs_and_worlds_are_printed_with_what_tells_them_apart() {
    let name = "faults::jobs_and_worlds_are_printed_with_what_tells_them_apart";
    in_job(2, name, ThreadMode::Single, |job| {
        let world = job.world();
        let rank = world.rank();
        assert_eq!(format!("{world:?}"), format!("World {{ rank: Some({rank}), size: 2, .. }}"));
        let own = world.split(Some(rank as u32), 0).unwrap();
        assert_eq!(format!("{own:?}"), "Some(World { rank: Some(0), size: 1, .. })");
        let (slot, job) = (format!("slot: Slot({})", job.slot()), format!("{job:?}"));
        assert!(job.starts_with("Job { process: ProcessId {") && job.contains(&slot), "{job}");
    });
}
