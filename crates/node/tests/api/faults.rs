//! Deaths, stops and ends, as programs see them.

use std::time::{Duration, Instant};

use landeck::unstable::JobInternals;
use landeck::{Any, Error, ErrorKind, Job, Tag};
use landeck_testing::{Trail, Watchdog};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{
    GONE_WITHIN, NOTICED_WITHIN, RUN_MAX, in_enduring_job, is_member, job_of, kill_myself, text,
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
        let words = format!("rank {}: receive: rank 2 (pid ", world.rank());
        assert!(format!("{error:?}").starts_with(&words), "{error}");
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
