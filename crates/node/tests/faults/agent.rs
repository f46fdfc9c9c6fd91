//! An agent that is stopped: who needs it has an error when its time is over, everything else goes on.

use std::os::unix::process::parent_id;
use std::thread;
use std::time::{Duration, Instant};

use landeck::unstable::joining::objects::{self, Name, ObjectKind};
use landeck::unstable::joining::socket::{self, AGENT_TIME, ExchangeError};
use landeck::{ErrorKind, Job, ObjectError};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{RUN_MAX, is_member, is_soak, job_of, run_well, skipped};

const TEST: &str = "agent::a_call_that_needs_a_stopped_agent_fails_after_ten_seconds";

/// The kinds of questions, each with the time that it took to be refused.
fn refusals(job: &Job) -> Vec<(Duration, String)> {
    let (host, process) = (job.process().segment, job.process());
    let name = Name::new("of nobody").unwrap();
    let timed = |refused: &dyn Fn() -> String| {
        let began = Instant::now();
        let said = refused();
        (began.elapsed(), said)
    };
    thread::scope(|scope| {
        let others = [
            scope.spawn(|| timed(&|| socket::join(host, AGENT_TIME).unwrap_err().to_string())),
            scope.spawn(|| {
                timed(&|| socket::publish(process, "x", 1, AGENT_TIME).unwrap_err().to_string())
            }),
            scope.spawn(|| {
                let kind = ObjectKind::Semaphore;
                timed(&|| {
                    objects::make(process, kind, Some(&name), 128, [1, 0]).unwrap_err().to_string()
                })
            }),
        ];
        let mine = timed(&|| {
            let error = job.open_mailbox("of nobody").map(drop).unwrap_err();
            let is_silent = matches!(
                error.kind,
                ErrorKind::Object(ObjectError::Exchange(ExchangeError::Silent { .. }))
            );
            assert!(is_silent, "{error}");
            error.to_string()
        });
        others.map(|other| other.join().unwrap()).into_iter().chain([mine]).collect()
    })
}

/// It takes the time that is promised, so it is for those who have it.
#[test]
fn a_call_that_needs_a_stopped_agent_fails_after_ten_seconds() {
    if !is_member() {
        return match is_soak() {
            true => run_well(&mut job_of(2, TEST, &[])),
            false => skipped(TEST, "it takes ten seconds"),
        };
    }
    let job = Job::join().unwrap();
    let world = job.world();
    world.barrier().unwrap();
    let guardian = Pid::from_raw(parent_id() as i32).unwrap();
    if world.rank() == 0 {
        kill_process(guardian, Signal::STOP).unwrap();
    }
    for round in 0..1_000u64 {
        let mut word = [round * (1 - world.rank() as u64)];
        world.broadcast(&mut word, 0).unwrap();
        assert_eq!(word, [round]);
    }
    if world.rank() == 0 {
        let said = refusals(&job);
        kill_process(guardian, Signal::CONT).unwrap();
        for (took, said) in said {
            assert!(AGENT_TIME <= took && took < RUN_MAX, "{took:?}: {said}");
            assert!(said.contains("no answer from") && said.contains("within 10s"), "{said}");
        }
    }
    world.barrier().unwrap();
    let name = format!("of {}", world.rank());
    job.create_mailbox().unwrap().register(name).unwrap();
    job.leave().unwrap();
}
