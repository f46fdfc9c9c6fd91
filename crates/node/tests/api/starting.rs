//! Processes that are started while their job runs.

use std::process::Command;
use std::time::Duration;

use landeck::{
    Error, ErrorKind, Executable, Group, GroupOptions, HostOfJob, Job, Member, Options,
    StartOnError, StartRefusal, StartedProcess, Sum, ThreadMode,
};
use landeck_testing::{Trail, Watchdog};

use crate::support::named_groups::group;
use crate::support::{
    GONE_WITHIN, RUN_MAX, in_enduring_job_with, in_job, is_member, job_of, kill_myself, launcher,
    text,
};

const LONG: Duration = Duration::from_secs(100);

/// This test as a program.
fn this(test: &str) -> Executable {
    let program = Executable::new(std::env::current_exe().unwrap()).join_within(LONG);
    program.arguments([test, "--exact", "--nocapture", "--test-threads=1"])
}

/// A shell with a script.
fn shell(script: &str) -> Executable {
    Executable::new("sh").arguments(["-c", script]).join_within(Duration::from_millis(1))
}

fn own_host(job: &Job) -> HostOfJob {
    job.hosts().into_iter().find(HostOfJob::is_own).unwrap()
}

fn start(job: &Job, program: &Executable) -> StartedProcess {
    job.start_on(&own_host(job), program).unwrap()
}

fn refusal(job: &Job, program: &Executable) -> StartRefusal {
    match job.start_on(&own_host(job), program) {
        Err(Error { kind: ErrorKind::Start(StartOnError::Refused(refusal)), .. }) => refusal,
        other => panic!("{other:?}"),
    }
}

/// Whether this process is one that was started.
fn is_started(job: &Job) -> bool {
    job.world().rank() == usize::MAX
}

/// Takes part in operations until this many members do.
fn grow_to(member: &mut Member, members: u32) {
    loop {
        member.advance().unwrap();
        let world = member.world().unwrap();
        if world.all_reduce(1u32, Sum).unwrap() == members {
            return;
        }
    }
}

fn join_and_grow(job: &Job, group: &Group, members: u32) {
    let mut inbox = job.create_mailbox().unwrap();
    let mut member = group.join(&mut inbox).unwrap();
    grow_to(&mut member, members);
    member.sync().unwrap();
    member.leave().unwrap();
}

#[test]
fn started_processes_take_part_in_the_next_operation_of_a_grown_group() {
    let name = "starting::started_processes_take_part_in_the_next_operation_of_a_grown_group";
    in_job(2, name, ThreadMode::Single, |job| {
        if is_started(job) {
            assert_eq!(std::env::var("GREETING").as_deref(), Ok("hello"));
            assert!(std::env::var_os("RANK").is_none(), "it has no rank");
            return join_and_grow(job, &job.open_group("grown").unwrap(), 4);
        }
        let group = group(job, "grown", GroupOptions::default().minimum(2));
        let mut inbox = job.create_mailbox().unwrap();
        let mut member = group.join(&mut inbox).unwrap();
        grow_to(&mut member, 2);
        let known = job.hosts();
        assert_eq!((known.len(), known[0].processes()), (1, 2));
        // No process starts before the other one has looked.
        job.world().barrier().unwrap();
        if job.world().rank() == 0 {
            let program = this(name).variable("GREETING", "hello");
            let first = start(job, &program);
            let second = start(job, &program);
            assert_eq!([first, second].map(|it| it.process().slot.0), [2, 3]);
            assert_ne!(first.pid(), second.pid());
        } else {
            let hosts = job.hosts_after_within(&known, LONG).unwrap();
            assert!(hosts[0].processes() > 2, "{hosts:?}");
        }
        grow_to(&mut member, 4);
        member.sync().unwrap();
        member.leave().unwrap();
    });
}

#[test]
fn a_start_that_is_not_possible_is_refused_by_name_and_the_job_goes_on() {
    let name = "starting::a_start_that_is_not_possible_is_refused_by_name_and_the_job_goes_on";
    in_job(1, name, ThreadMode::Single, |job| {
        let refused = refusal(job, &Executable::new("./no-such-program"));
        assert!(matches!(&refused, StartRefusal::Program(why) if why.contains("not found")));
        let nowhere = shell("true").directory("/no/such/folder");
        assert!(matches!(refusal(job, &nowhere), StartRefusal::Program(_)));
        let long = shell("true").argument("x".repeat(1 << 16));
        assert!(matches!(refusal(job, &long), StartRefusal::TooLong(65_536..)));
        assert_eq!(refusal(job, &shell("true").variable("A=B", "")), StartRefusal::Text);
        assert_eq!(refusal(job, &shell("true").argument("a\0b")), StartRefusal::Text);
        let ended = refusal(job, &shell("exit 0").join_within(LONG));
        assert!(
            matches!(&ended, StartRefusal::Ended { how, .. } if how == "ended with exit code 0")
        );
        // It stays a process of the job, which ends with it.
        let late = refusal(job, &shell("sleep 0.3"));
        assert!(matches!(late, StartRefusal::NotJoined { waited_ms: 1, .. }), "{late}");
    });
}

#[test]
fn ten_thousand_wishes_leave_a_job_as_it_was() {
    let name = "starting::ten_thousand_wishes_leave_a_job_as_it_was";
    in_job(1, name, ThreadMode::Single, |job| {
        for number in 0..10_000 {
            let refused = refusal(job, &Executable::new("/no/such/program"));
            assert!(matches!(refused, StartRefusal::Program(_)), "{number}: {refused}");
        }
        // Slots of processes that have ended are given again.
        for number in 0..40 {
            let refused = refusal(job, &shell("exit 0").join_within(LONG));
            assert!(matches!(refused, StartRefusal::Ended { .. }), "{number}: {refused}");
        }
    });
}

/// Runs a job of one process whose launcher says something.
fn run_and_hear(test: &str, options: &[&str], code: i32, expected: &[&str]) {
    let _watchdog = Watchdog::start(2 * RUN_MAX);
    let trail = Trail::new();
    let ended = trail.run(&mut job_of(1, test, options), RUN_MAX);
    let said = text(&ended);
    assert_eq!(ended.status.code(), Some(code), "{said}");
    expected.iter().for_each(|part| assert!(said.contains(part), "{part}: {said}"));
    trail.assert_gone(GONE_WITHIN);
}

#[test]
fn a_job_has_room_for_so_many_and_ends_all_of_them() {
    let name = "starting::a_job_has_room_for_so_many_and_ends_all_of_them";
    if !is_member() {
        return run_and_hear(name, &[], 9, &["enough"]);
    }
    let job = Job::join().unwrap();
    for number in 0..16 {
        let refused = refusal(&job, &shell("exec sleep 1000"));
        assert!(matches!(refused, StartRefusal::NotJoined { .. }), "{number}: {refused}");
    }
    assert_eq!(refusal(&job, &shell("exec sleep 1000")), StartRefusal::NoSlot);
    let listed = Command::new(launcher()).args(["ps", &job.process().segment.to_string()]).output();
    let listed = text(&listed.unwrap());
    for name in ["rank 0", "started 0", "started 15"] {
        assert!(listed.contains(name), "{name}: {listed}");
    }
    println!("enough");
    job.abort(9, "it has seen enough")
}

#[test]
fn output_and_failure_of_a_started_process_are_told_with_its_name() {
    let name = "starting::output_and_failure_of_a_started_process_are_told_with_its_name";
    if !is_member() {
        let expected = [
            "[started 0] good day",
            "started process 0, sh (pid ",
            "ended with exit code 7",
            "Its last lines: \"good day\"",
            "The other process was ended (--on-failure abort). Exit code 7.",
        ];
        return run_and_hear(name, &["--tag"], 7, &expected);
    }
    let job = Job::join().unwrap();
    let refused = refusal(&job, &shell("echo good day; exit 7").join_within(LONG));
    assert!(matches!(&refused, StartRefusal::Ended { how, .. } if how == "ended with exit code 7"));
    std::thread::sleep(LONG);
}

#[test]
fn a_guest_starts_processes_too() {
    let name = "starting::a_guest_starts_processes_too";
    in_job(1, name, ThreadMode::Single, |job| {
        let identity = job.process().segment.to_string();
        let guest = std::thread::spawn(move || {
            let guest = Job::join_running(&identity, Options::default()).unwrap();
            let known = guest.hosts();
            assert_eq!((known.len(), known[0].processes()), (1, 1), "guests are not counted");
            let refused = refusal(&guest, &shell("exit 0").join_within(LONG));
            assert!(matches!(refused, StartRefusal::Ended { .. }), "{refused}");
            guest.leave().unwrap();
        });
        guest.join().unwrap();
    });
}

#[test]
fn a_process_that_dies_while_it_asks_harms_nobody() {
    let name = "starting::a_process_that_dies_while_it_asks_harms_nobody";
    let threads = ThreadMode::Multiple;
    in_enduring_job_with(2, name, threads, 137, |job| {
        let wait_for = |processes: u32| {
            let mut hosts = job.hosts();
            while hosts[0].processes() != processes {
                hosts = job.hosts_after_within(&hosts, LONG).unwrap();
            }
        };
        if job.world().rank() == 1 {
            let (waits, host) = (shell("sleep 1").join_within(LONG), own_host(&job));
            std::thread::scope(|scope| {
                scope.spawn(|| job.start_on(&host, &waits).unwrap());
                wait_for(3);
                kill_myself();
            });
        }
        wait_for(1);
        // The launcher and the agent have forgotten the question.
        let refused = refusal(&job, &shell("exit 0").join_within(LONG));
        assert!(matches!(refused, StartRefusal::Ended { .. }), "{refused}");
        println!("survivor done");
        job.leave().unwrap();
    });
}
