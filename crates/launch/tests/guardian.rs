//! Tests of the guardian with real processes and real kills.
//!
//! Each scenario runs in a process of its own with one thread, like a launcher that forks its guardian. For this, and
//! for every other part that a scenario needs, this program starts itself again. Nothing of a scenario may be left
//! after its end.

#![allow(clippy::unwrap_used)] // everything in this file is a test

use std::ffi::CString;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command as Program, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use landeck_host::descendants;
use landeck_host::fork::ForkError;
use landeck_host::process::{self, Image, StartStep};
use landeck_joining::attach;
use landeck_joining::socket::{self, ExchangeError, JoinError, PublishError, Verdict};
use landeck_launch::guardian::{
    self, Command, Event, Guardian, GuardianError, GuardianOrder, OnFailure, Start,
};
use landeck_memory::{JobState, Presence, Segment, SegmentPlan, SlotState};
use landeck_testing::{Random, Trail, seed};
use landeck_wire::{Incarnation, ProcessId, SegmentId, Slot};

/// The variable that names the part which a process plays when this program has started itself.
const PART: &str = "LANDECK_TEST_PART";
/// The time limit of a scenario: far longer than it takes, even on a loaded machine.
const LIMIT: Duration = Duration::from_secs(200);
/// How long a scenario waits for one event.
const PATIENCE: Duration = Duration::from_secs(100);
/// The time after which nothing may be left. The product promises a second on processors of its own.
const LEFTOVERS_GONE: Duration = Duration::from_secs(60);
/// How long a launcher has to end by itself after one process of its job was killed; not every kill ends the job.
const ENDED_BY_ITSELF: Duration = Duration::from_secs(1);

/// How many scenarios run at the same time.
const AT_A_TIME: usize = 3;

const SCENARIOS: [(&str, fn()); 31] = [
    ("statuses_come_back", statuses_come_back),
    (
        "attached_processes_are_judged_by_their_goodbye",
        attached_processes_are_judged_by_their_goodbye,
    ),
    ("a_program_that_cannot_start_is_named", a_program_that_cannot_start_is_named),
    ("a_failure_ends_the_others", a_failure_ends_the_others),
    ("a_process_that_does_not_end_is_killed", a_process_that_does_not_end_is_killed),
    ("notify_lets_the_others_go_on", notify_lets_the_others_go_on),
    ("a_death_stands_in_the_segment_at_once", a_death_stands_in_the_segment_at_once),
    ("a_stopped_process_is_shown", a_stopped_process_is_shown),
    ("a_signal_comes_exactly_once", a_signal_comes_exactly_once),
    ("an_end_leaves_time_and_then_kills", an_end_leaves_time_and_then_kills),
    ("the_shells_command_has_its_grace_time", the_shells_command_has_its_grace_time),
    ("daemons_do_not_stay", daemons_do_not_stay),
    ("a_killed_launcher_leaves_nothing", || killed_leaves_nothing("launcher")),
    ("a_killed_guardian_leaves_nothing", || killed_leaves_nothing("guardian")),
    ("a_killed_process_leaves_nothing", || killed_leaves_nothing("process")),
    ("random_kills_leave_nothing", random_kills_leave_nothing),
    ("a_stopped_guardian_still_ends_its_job", a_stopped_guardian_still_ends_its_job),
    ("a_stopped_guardian_is_an_error_for_who_asks", a_stopped_guardian_is_an_error_for_who_asks),
    ("the_guardian_keeps_no_pipe_of_the_launcher", the_guardian_keeps_no_pipe_of_the_launcher),
    ("children_of_before_are_spared", children_of_before_are_spared),
    ("a_launcher_with_threads_is_refused", a_launcher_with_threads_is_refused),
    (
        "a_launcher_that_does_not_listen_holds_nobody_up",
        a_launcher_that_does_not_listen_holds_nobody_up,
    ),
    ("a_failed_process_is_started_again_as_another", a_failed_process_is_started_again_as_another),
    ("a_new_start_that_fails_is_tried_again", a_new_start_that_fails_is_tried_again),
    ("random_kills_are_made_good", random_kills_are_made_good),
    ("a_death_below_a_shell_is_seen_at_once", a_death_below_a_shell_is_seen_at_once),
    (
        "a_process_that_has_left_below_a_shell_is_no_loss",
        a_process_that_has_left_below_a_shell_is_no_loss,
    ),
    ("an_abort_ends_the_job_under_every_policy", an_abort_ends_the_job_under_every_policy),
    ("closed_streams_stay_closed", closed_streams_stay_closed),
    ("a_guests_death_frees_its_slot", a_guests_death_frees_its_slot),
    ("names_end_with_their_owner", names_end_with_their_owner),
];

fn main() -> ExitCode {
    if let Ok(part) = std::env::var(PART) {
        play(&part);
        return ExitCode::SUCCESS;
    }
    let filters: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let wanted = |name: &str| filters.is_empty() || filters.iter().any(|f| name.contains(f));
    let scenarios: Vec<&str> =
        SCENARIOS.iter().map(|(name, _)| *name).filter(|name| wanted(name)).collect();
    let (next, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    // Most of a scenario is waiting, so a few run at a time.
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some(name) = scenarios.get(next.fetch_add(1, Ordering::Relaxed)) {
                    failed.fetch_add(usize::from(!told(name)), Ordering::Relaxed);
                }
            });
        }
    });
    let failed = failed.into_inner();
    println!("guardian: {} passed, {failed} failed", scenarios.len() - failed);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs one scenario, and says how it ended.
fn told(name: &str) -> bool {
    let began = Instant::now();
    let passed = supervise(name);
    println!("test {name} ... {} ({:?})", if passed { "ok" } else { "FAILED" }, began.elapsed());
    passed
}

/// Plays the part for which another process started this one.
fn play(part: &str) {
    match part {
        "job" => play_job(),
        "member" => play_member(),
        "joined" => play_joined(),
        "guest" => play_guest(),
        _ => match SCENARIOS.iter().find(|(name, _)| *name == part) {
            Some((_, scenario)) => scenario(),
            None => panic!("no part is called {part}"),
        },
    }
}

/// Runs one scenario within its time, and checks that it left nothing.
fn supervise(name: &str) -> bool {
    let run = || {
        let trail = Trail::new();
        let output = trail.run(&mut myself(name), LIMIT);
        trail.assert_gone(LEFTOVERS_GONE);
        let (out, err) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        print!("{out}");
        assert!(output.status.success(), "{}: {err}", output.status);
    };
    catch_unwind(AssertUnwindSafe(run)).is_ok()
}

fn statuses_come_back() {
    let mut job = Job::start(OnFailure::Notify, &["exit 0", "exit 3", "kill -11 $$"]);
    let events = job.until_all_ended();
    for (slot, status, state) in
        [(0, 0, SlotState::Departed), (1, 3 << 8, SlotState::Dead), (2, 11, SlotState::Dead)]
    {
        assert_eq!(ended(&events, slot).map(|status| status & !0x80), Some(status));
        let record = job.segment.slot_record(slot);
        assert_eq!((record.state, record.incarnation), (state, 1));
        let started = Event::Started { slot, pid: record.pid, rank: slot, restart: 0 };
        assert!(events.contains(&started));
    }
    assert_eq!(job.segment.job_state(), JobState::Ending, "guests must notice the end");
}

fn attached_processes_are_judged_by_their_goodbye() {
    let me = std::env::current_exe().unwrap();
    let member = |what: &str| format!("{PART}=member exec {} {what}", me.display());
    let scripts = [member("finalize"), member("attach"), member("nothing")];
    let mut job = Job::start(OnFailure::Notify, &scripts.each_ref().map(String::as_str));
    let events = job.until_all_ended();
    for (slot, state) in [(0, SlotState::Departed), (1, SlotState::Dead), (2, SlotState::Departed)]
    {
        assert_eq!(ended(&events, slot), Some(0));
        assert_eq!(job.segment.slot_record(slot).state, state, "slot {slot}");
    }
    let says = |slot, wanted| {
        events.iter().any(|event| {
            matches!(event, Event::Ended { slot: s, presence, .. } if *s == slot && *presence == wanted)
        })
    };
    assert!(says(0, Presence::Finalized) && says(1, Presence::Attached));
}

/// A script that runs this program as a member of the job, and then does something else.
fn below_a_shell(what: &str, then: &str) -> String {
    let me = std::env::current_exe().unwrap();
    format!("{PART}=joined {} {what}; {then}", me.display())
}

fn a_death_below_a_shell_is_seen_at_once() {
    for on_failure in [OnFailure::Notify, OnFailure::Abort] {
        let scripts = [&below_a_shell("wait", "sleep 300"), "sleep 300"];
        let mut job = Job::start(on_failure, &scripts);
        let member: u32 = job.read_lines(1)[0].parse().unwrap();
        let is_member =
            |event: &Event| matches!(event, Event::Started { pid, .. } if *pid == member);
        assert!(!job.events.iter().any(is_member), "the shell was started");
        assert_eq!(job.pid(0), member, "the process that has joined has the place");
        process::signal_process(member, libc::SIGKILL);
        let began = Instant::now();
        job.wait_for_state(0, SlotState::Dead);
        println!("     dead {:?} after the kill, below a shell", began.elapsed());
        assert_eq!(job.segment.slot_record(0).status, libc::SIGKILL);
        job.until(|events| ended(events, 0).is_some());
        let is_told = |event: &Event| matches!(event, Event::Ended { slot: 0, pid, status: libc::SIGKILL, .. } if *pid == member);
        assert!(job.events.iter().any(is_told), "{:?}", job.events);
        if on_failure == OnFailure::Notify {
            assert_eq!(job.segment.job_state(), JobState::Running);
            job.guardian.send(Command::End { grace: GRACE }).unwrap();
        }
        let events = job.until_all_ended();
        let ends = events.iter().filter(|event| matches!(event, Event::Ended { .. })).count();
        assert_eq!(ends, 2, "the end of the shell is no second one: {events:?}");
    }
}

fn a_process_that_has_left_below_a_shell_is_no_loss() {
    let leaves = below_a_shell("leave", "echo gone; read line; exit 5");
    let mut job = Job::start(OnFailure::Notify, &[&leaves]);
    assert_eq!(job.read_lines(2)[1], "gone");
    let events = job.until_all_ended();
    assert_eq!(ended(&events, 0), Some(5 << 8), "the shell's end counts: {events:?}");
}

fn an_abort_ends_the_job_under_every_policy() {
    let restart = OnFailure::Restart { times: 3, then_abort: false };
    for on_failure in [OnFailure::Abort, OnFailure::Notify, restart] {
        for then in ["exit $?", "sleep 300"] {
            let scripts = ["sleep 300", &below_a_shell("abort", then)];
            let mut job = Job::with(order(on_failure, &scripts));
            let events = job.until_all_ended();
            assert_eq!(ended(&events, 0), Some(libc::SIGTERM), "{on_failure:?}: {events:?}");
            let is_told = |event: &&Event| {
                matches!(
                    event,
                    Event::Ended { slot: 1, presence: Presence::Aborted(3), again: None, .. }
                )
            };
            assert_eq!(events.iter().filter(is_told).count(), 1, "{on_failure:?}: {events:?}");
        }
    }
}

/// Checks that in a process without standard streams no descriptor of the library gets their numbers.
fn closed_streams_stay_closed() {
    let stderr = std::os::fd::AsFd::as_fd(&std::io::stderr()).try_clone_to_owned().unwrap();
    // SAFETY: nothing in this process owns these numbers.
    (0..3).for_each(|number| drop(unsafe { OwnedFd::from_raw_fd(number) }));
    let attachment = attach::attach(|| Ok([0; landeck_memory::plan::SETTINGS_WORDS])).unwrap();
    let answers = [0, 1, 2].map(|number| {
        let place = std::fs::read_link(format!("/proc/self/fd/{number}")).unwrap();
        // SAFETY: the bytes are there.
        let written = unsafe { libc::write(number, b"x".as_ptr().cast(), 1) };
        (place, written, std::io::Error::last_os_error().raw_os_error())
    });
    let _ = attachment.leave();
    // SAFETY: number 2 is the library's placeholder.
    unsafe { libc::dup2(std::os::fd::AsRawFd::as_raw_fd(&stderr), 2) };
    for answer in answers {
        assert_eq!(answer, ("/dev/null".into(), -1, Some(libc::EBADF)));
    }
}

fn a_program_that_cannot_start_is_named() {
    let mut order = order(OnFailure::Abort, &["sleep 300", "true", "sleep 300"]);
    order.starts[1].image.program = c"/nowhere/program".into();
    let mut job = Job::with(order);
    let events = job.until_all_ended();
    let named = events.iter().any(|event| {
        matches!(event, Event::NotStarted { slot: 1, error, again: None, .. }
            if error.step == StartStep::Execute && error.errno == libc::ENOENT)
    });
    assert!(named, "{events:?}");
    assert_eq!(ended(&events, 0), Some(libc::SIGTERM));
    let started = events.iter().filter(|event| matches!(event, Event::Started { .. })).count();
    assert_eq!(started, 1, "nothing is started after a failure: {events:?}");
}

fn a_failure_ends_the_others() {
    let mut job = Job::start(OnFailure::Abort, &["sleep 300"; 3]);
    process::signal_process(job.pid(1), libc::SIGKILL);
    let events = job.until_all_ended();
    let first = events.iter().find(|event| matches!(event, Event::Ended { .. }));
    assert!(
        matches!(first, Some(Event::Ended { slot: 1, status: libc::SIGKILL, .. })),
        "the cause comes first: {events:?}"
    );
    for slot in [0, 2] {
        assert_eq!(ended(&events, slot), Some(libc::SIGTERM));
    }
}

fn a_process_that_does_not_end_is_killed() {
    let stubborn = "trap '' TERM; echo ready; while :; do sleep 300; done";
    let mut job = Job::start(OnFailure::Abort, &[stubborn, "sleep 300"]);
    job.read_lines(1);
    let began = Instant::now();
    process::signal_process(job.pid(1), libc::SIGKILL);
    let events = job.until_all_ended();
    assert_eq!(ended(&events, 0), Some(libc::SIGKILL));
    assert!(began.elapsed() >= GRACE, "it had its time");
}

fn notify_lets_the_others_go_on() {
    let mut job = Job::start(OnFailure::Notify, &["exit 1", "sleep 300"]);
    job.until(|events| ended(events, 0).is_some());
    assert_eq!(job.segment.job_state(), JobState::Running);
    assert_ne!(job.segment.slot_record(0).state, SlotState::Alive);
    process::signal_process(job.pid(1), libc::SIGKILL);
    let events = job.until_all_ended();
    assert_eq!(ended(&events, 1), Some(libc::SIGKILL));
}

const RESTART: OnFailure = OnFailure::Restart { times: 3, then_abort: true };

fn a_failed_process_is_started_again_as_another() {
    let script = "echo $LANDECK_SLOT $LANDECK_RESTART; exec sleep 300";
    let mut job = Job::start(RESTART, &[script, script]);
    job.read_lines(2);
    for (number, slot, incarnation) in [(1, 2, 1), (2, 3, 1), (3, 2, 2)] {
        let last = if number == 1 { 1 } else { 4 - slot + 1 };
        process::signal_process(job.pid(last), libc::SIGKILL);
        assert_eq!(job.read_lines(1), [format!("{slot} {number}")]);
        job.until(|events| are_started(events, 2 + number));
        let record = job.segment.slot_record(slot);
        assert_eq!((record.state, record.incarnation), (SlotState::Alive, incarnation));
        let (pid, restart) = (record.pid, number as u32);
        let started = Event::Started { slot, pid, rank: 1, restart };
        assert_eq!(job.events.last(), Some(&started));
        assert_eq!(job.segment.slot_record(1).state, SlotState::Dead, "who died stays dead");
    }
    process::signal_process(job.pid(2), libc::SIGKILL);
    let events = job.until_all_ended();
    assert_eq!(ended(&events, 0), Some(libc::SIGTERM), "it was started again often enough");
}

fn a_new_start_that_fails_is_tried_again() {
    let path = std::env::temp_dir().join(format!("landeck-guardian-{}", std::process::id()));
    std::fs::copy("/bin/sh", &path).unwrap();
    // After its end the file to start no longer exists.
    let script = format!("rm {}; exit 1", path.display());
    let mut order = order(RESTART, &[&script, "exit 0"]);
    order.starts[0].image.program = CString::new(path.to_str().unwrap()).unwrap();
    let mut job = Job::with(order);
    let failed_starts = |events: &[Event]| {
        let numbers = events.iter().filter_map(|event| match event {
            Event::NotStarted { rank: 0, again, .. } => Some(again.map(|again| again.number)),
            _ => None,
        });
        numbers.collect::<Vec<_>>()
    };
    let events = job.until_all_ended();
    assert_eq!(failed_starts(&events), [Some(2), Some(3), None], "{events:?}");
}

fn random_kills_are_made_good() {
    let mut job = Job::start(
        OnFailure::Restart { times: 50, then_abort: true },
        &["exec sleep 300", "exec sleep 300"],
    );
    let mut random = Random::new(seed());
    for round in 0..12 {
        // All processes may have been killed while their successors are still to come.
        let living = |slot: &u32| job.segment.slot_record(*slot).state == SlotState::Alive;
        let candidates = || (0..job.segment.plan().slots()).filter(living).collect::<Vec<u32>>();
        let some = std::iter::repeat_with(candidates).inspect(|_| pause(1));
        let living = some.take(20_000).find(|living| !living.is_empty()).unwrap();
        let victim = *random.pick(&living);
        process::signal_process(job.pid(victim), libc::SIGKILL);
        job.until(|events| {
            events.iter().filter(|event| matches!(event, Event::Ended { .. })).count() > round
        });
        pause(random.below(250));
    }
    job.until(|events| are_started(events, 2 + 12));
    job.guardian.send(Command::Kill).unwrap();
    job.until_all_ended();
}

fn a_death_stands_in_the_segment_at_once() {
    let mut job = Job::start(OnFailure::Notify, &["sleep 300", "sleep 300"]);
    let before = job.segment.membership_generation();
    process::signal_process(job.pid(0), libc::SIGKILL);
    let began = Instant::now();
    while job.segment.slot_record(0).state != SlotState::Dead
        || job.segment.membership_generation() == before
    {
        assert!(began.elapsed() < PATIENCE, "the death was not seen");
        std::thread::yield_now();
    }
    println!("     dead and announced {:?} after the kill", began.elapsed());
    assert_eq!(job.segment.slot_record(0).status, libc::SIGKILL);
    assert_eq!(job.segment.slot_record(1).state, SlotState::Alive);
    job.guardian.send(Command::Kill).unwrap();
    job.until_all_ended();
}

fn a_stopped_process_is_shown() {
    let mut job = Job::start(OnFailure::Abort, &["sleep 300", "sleep 300"]);
    process::signal_process(job.pid(1), libc::SIGSTOP);
    job.until(|events| events.contains(&Event::Stopped { slot: 1 }));
    let record = job.segment.slot_record(1);
    assert!(record.stopped && record.state == SlotState::Alive);
    assert_eq!(job.segment.job_state(), JobState::Running);
    process::signal_process(job.pid(1), libc::SIGCONT);
    job.until(|events| events.contains(&Event::Continued { slot: 1 }));
    assert!(!job.segment.slot_record(1).stopped);
    process::signal_process(job.pid(1), libc::SIGSTOP);
    job.until(|events| events.last() == Some(&Event::Stopped { slot: 1 }));
    job.guardian.send(Command::End { grace: PATIENCE }).unwrap();
    let events = job.until_all_ended();
    assert_eq!(ended(&events, 1), Some(libc::SIGTERM), "a stopped process is asked as well");
}

fn a_signal_comes_exactly_once() {
    let script =
        "trap 'echo got' USR1; trap 'exit 4' USR2; echo ready; while :; do sleep 0.01; done";
    let mut job = Job::start(OnFailure::Notify, &[script, script]);
    job.read_lines(2);
    job.guardian.send(Command::Signal(libc::SIGUSR1)).unwrap();
    assert_eq!(job.read_lines(2), ["got", "got"]);
    pause(50);
    job.guardian.send(Command::Signal(libc::SIGUSR2)).unwrap();
    let events = job.until_all_ended();
    // The signal may have ended `sleep`; then the shell got it too.
    assert_eq!((ended(&events, 0), ended(&events, 1)), (Some(4 << 8), Some(4 << 8)));
    assert_eq!(job.rest(), "", "no signal came twice");
}

fn an_end_leaves_time_and_then_kills() {
    let tidy = "trap 'sleep 0.1; exit 9' TERM; echo ready; while :; do sleep 0.01; done";
    let stubborn = "trap '' TERM; echo ready; while :; do sleep 0.01; done";
    let mut job = Job::start(OnFailure::Abort, &[tidy, stubborn]);
    job.read_lines(2);
    job.guardian.send(Command::End { grace: 2 * GRACE }).unwrap();
    let events = job.until_all_ended();
    assert_eq!(ended(&events, 0), Some(9 << 8));
    assert_eq!(ended(&events, 1), Some(libc::SIGKILL));
}

fn the_shells_command_has_its_grace_time() {
    let inner =
        "trap 'sleep 0.2; echo tidied; exit' TERM; echo ready; while :; do sleep 0.01; done";
    let mut job = Job::start(OnFailure::Abort, &[&format!("sh -c \"{inner}\"; true")]);
    job.read_lines(1);
    job.guardian.send(Command::End { grace: PATIENCE }).unwrap();
    job.until_all_ended();
    assert_eq!(job.rest(), "tidied\n", "though the shell itself was gone at once");
}

fn daemons_do_not_stay() {
    let daemon = "setsid sh -c 'sleep 300 & exec sleep 300' & sleep 300 & exit 0";
    let mut job = Job::start(OnFailure::Abort, &[daemon, daemon]);
    job.until_all_ended();
    process::wait_for_end(job.guardian.pid().unwrap()).unwrap();
    assert_eq!(descendants::children(), [], "orphans would be this process's children now");
}

fn killed_leaves_nothing(victim: &str) {
    let trail = Trail::new();
    let (mut launcher, pids) = spawn_job(&trail);
    let pid = match victim {
        "launcher" => launcher.id(),
        "guardian" => pids[0],
        _ => pids[2],
    };
    process::signal_process(pid, libc::SIGKILL);
    let began = Instant::now();
    reap_within(&mut launcher, LEFTOVERS_GONE);
    trail.assert_gone(LEFTOVERS_GONE.saturating_sub(began.elapsed()));
    println!("     nothing left {:?} after the kill of the {victim}", began.elapsed());
}

fn random_kills_leave_nothing() {
    let mut random = Random::new(seed());
    for _ in 0..100 {
        let trail = Trail::new();
        let mut command = myself("job");
        let mut launcher =
            trail.spawn(command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()));
        let begun = Instant::now();
        let delay = Duration::from_micros(random.below(15_000));
        while begun.elapsed() < delay {
            std::thread::yield_now();
        }
        let mut candidates = trail.processes();
        candidates.retain(|(_, name)| name != "sleep" && name != "setsid");
        if !candidates.is_empty() {
            // The PID could belong to another process only if it was reused within these microseconds.
            process::signal_process(random.pick(&candidates).0, libc::SIGKILL);
        }
        // The kill of a shell that is about to become `sleep` does not end the job; then the launcher is killed next.
        if wait_for_end(&mut launcher, ENDED_BY_ITSELF).is_none() {
            process::signal_process(launcher.id(), libc::SIGKILL);
        }
        reap_within(&mut launcher, LEFTOVERS_GONE);
        trail.assert_gone(LEFTOVERS_GONE);
    }
}

fn a_stopped_guardian_still_ends_its_job() {
    let mut job = Job::start(OnFailure::Abort, &["sleep 300", "sleep 300"]);
    process::signal_process(job.guardian.pid().unwrap(), libc::SIGSTOP);
    job.guardian.send(Command::Kill).unwrap();
    let events = job.until_all_ended();
    assert_eq!((ended(&events, 0), ended(&events, 1)), (Some(9), Some(9)));
}

fn a_stopped_guardian_is_an_error_for_who_asks() {
    let time = Duration::from_millis(50);
    let name = format!("test of a stop {}", std::process::id());
    let mut job = Job::start(OnFailure::Abort, &["sleep 300"]);
    let owner = ProcessId { segment: job.host(), slot: Slot(0), incarnation: Incarnation(1) };
    socket::publish(owner, &name, 77, PATIENCE).unwrap();
    process::signal_process(job.guardian.pid().unwrap(), libc::SIGSTOP);
    wait_until_stopped(job.guardian.pid().unwrap());
    let is_silent = |error: &ExchangeError| matches!(error, ExchangeError::Silent { .. });
    let joins = [
        socket::join(job.host(), time).map(drop),
        socket::join_as(job.host(), Slot(0), time).map(drop),
        socket::connect_name(&name, time).map(drop),
        socket::look_up(&name, time).map(drop),
    ];
    for refused in joins {
        assert!(
            matches!(&refused, Err(JoinError::Exchange(error)) if is_silent(error)),
            "{refused:?}"
        );
    }
    for refused in [socket::publish(owner, "other", 7, time), socket::unpublish(owner, &name, time)]
    {
        let says = matches!(&refused, Err(PublishError::Exchange(error)) if is_silent(error));
        assert!(says, "{refused:?}");
    }
    process::signal_process(job.guardian.pid().unwrap(), libc::SIGCONT);
    // Guests that did not wait for their answer may hold their places for a moment.
    let give_up = Instant::now() + PATIENCE;
    while let Err(error) = socket::join(job.host(), PATIENCE) {
        assert!(matches!(error, JoinError::Refused(Verdict::Full)), "{error}");
        assert!(Instant::now() < give_up, "there is no place again");
        pause(1);
    }
    job.guardian.send(Command::Kill).unwrap();
    job.until_all_ended();
}

fn the_guardian_keeps_no_pipe_of_the_launcher() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let mut job = Job::start(OnFailure::Abort, &["sleep 300"]);
    drop(reader);
    let give_up = Instant::now() + PATIENCE;
    while writer.write(b"x").is_ok() {
        assert!(Instant::now() < give_up, "somebody else could still read it");
        pause(1);
    }
    job.guardian.send(Command::Kill).unwrap();
    job.until_all_ended();
}

fn children_of_before_are_spared() {
    let mut before = Program::new("sleep").arg("300").spawn().unwrap();
    let mut job = Job::start(OnFailure::Abort, &["setsid sleep 300 & sleep 300"]);
    process::signal_process(job.guardian.pid().unwrap(), libc::SIGKILL);
    job.until(|events| events.contains(&Event::GuardianGone));
    assert_eq!(job.guardian.next_event().unwrap(), None, "nothing comes after that");
    assert_eq!(descendants::children(), [before.id()]);
    assert!(before.try_wait().unwrap().is_none(), "it lives");
    assert_eq!(job.segment.job_state(), JobState::Ending, "guests must notice");
    assert_eq!(job.segment.slot_record(0).state, SlotState::Dead);
    before.kill().unwrap();
    before.wait().unwrap();
}

fn a_launcher_with_threads_is_refused() {
    let (ended, wait) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || wait.recv());
    let refused = guardian::fork(&segment(1), order(OnFailure::Abort, &["true"]));
    assert!(matches!(refused, Err(GuardianError::Fork(ForkError::Threads(2)))));
    drop(ended);
    let _ = thread.join();
}

fn a_launcher_that_does_not_listen_holds_nobody_up() {
    let scripts = vec!["exit 0"; 400];
    let mut job = Job::with(order(OnFailure::Notify, &scripts));
    let began = Instant::now();
    while (0..400).any(|slot| job.segment.slot_record(slot).state != SlotState::Departed) {
        assert!(began.elapsed() < PATIENCE, "the guardian waits for the launcher");
        pause(5);
    }
    let events = job.until_all_ended();
    assert!((0..400).all(|slot| ended(&events, slot) == Some(0)));
}

fn a_guests_death_frees_its_slot() {
    let mut job = Job::start(OnFailure::Abort, &["sleep 300"]);
    let [(mut first, answer), (_second, other)] = [(); GUESTS as usize].map(|()| spawn_guest(&job));
    assert_eq!((answer.as_str(), other.as_str()), ("1 1", "2 1"));
    let refused = socket::join(job.host(), PATIENCE);
    assert!(matches!(refused, Err(JoinError::Refused(Verdict::Full))));
    first.kill().unwrap();
    first.wait().unwrap();
    job.wait_for_state(1, SlotState::Dead);
    assert_eq!(job.segment.slot_record(0).state, SlotState::Alive, "a guest's death ends nobody");
    let (mut again, answer) = spawn_guest(&job);
    assert_eq!(answer, "1 2", "the same slot, another incarnation");
    drop(again.stdin.take()); // it says goodbye
    again.wait().unwrap();
    job.wait_for_state(1, SlotState::Departed);
    job.guardian.send(Command::Kill).unwrap();
    job.until_all_ended();
}

fn names_end_with_their_owner() {
    let time = PATIENCE;
    let name = format!("test {}", std::process::id());
    let mut job = Job::start(OnFailure::Notify, &["sleep 300", "sleep 300"]);
    let owner = |slot: u32| ProcessId {
        segment: job.host(),
        slot: Slot(slot),
        incarnation: Incarnation(1),
    };
    let (first, second) = (owner(0), owner(1));
    socket::publish(first, &name, 77, time).unwrap();
    let found = socket::look_up(&name, time).unwrap();
    assert_eq!((found.process, found.pid, found.context), (first, job.pid(0), 77));
    match socket::publish(second, &name, 78, time) {
        Err(PublishError::InUse { pid, .. }) => assert_eq!(pid, job.pid(0)),
        other => panic!("{other:?}"),
    }
    let (published, joined) = socket::connect_name(&name, time).unwrap();
    assert_eq!(published, found);
    assert_eq!(joined.process.slot, Slot(2));
    assert_eq!(Segment::attach(joined.segment).unwrap().plan(), job.segment.plan());
    drop(joined.connection);
    assert!(socket::unpublish(second, &name, time).is_err(), "it is not its own");
    process::signal_process(job.pid(0), libc::SIGKILL);
    job.wait_for_state(0, SlotState::Dead);
    assert!(matches!(socket::look_up(&name, time), Err(JoinError::NoSuchName { .. })));
    assert!(matches!(socket::publish(first, &name, 1, time), Err(PublishError::Refused { .. })));
    socket::publish(second, &name, 78, time).unwrap();
    socket::unpublish(second, &name, time).unwrap();
    assert!(matches!(socket::look_up(&name, time), Err(JoinError::NoSuchName { .. })));
    job.guardian.send(Command::Kill).unwrap();
    job.until_all_ended();
}

/// A job whose launcher is this process.
struct Job {
    guardian: Guardian,
    segment: Segment,
    output: BufReader<File>,
    events: Vec<Event>,
}

/// Short, but long enough for an orderly end on a loaded machine.
const GRACE: Duration = Duration::from_secs(3);
const GUESTS: u32 = 2;

impl Job {
    /// Starts shell scripts, and waits until all have started.
    fn start(on_failure: OnFailure, scripts: &[&str]) -> Self {
        let mut job = Self::with(order(on_failure, scripts));
        job.until(|events| are_started(events, scripts.len()));
        job
    }

    fn with(mut order: GuardianOrder) -> Self {
        let (reader, writer) = std::io::pipe().unwrap();
        for [_, stdout, _] in &mut order.streams {
            *stdout = writer.try_clone().unwrap().into();
        }
        drop(writer);
        let segment = segment(order.starts.len() as u32);
        let job = CString::new(format!("LANDECK_JOB={}", SegmentId(segment.plan().host))).unwrap();
        order.starts.iter_mut().for_each(|start| start.image.environment.push(job.clone()));
        let guardian = guardian::fork(&segment, order).unwrap();
        let output = BufReader::new(File::from(OwnedFd::from(reader)));
        Self { guardian, segment, output, events: Vec::new() }
    }

    /// Takes events until those so far satisfy the condition.
    fn until(&mut self, is_wanted: impl Fn(&[Event]) -> bool) {
        let give_up = Instant::now() + PATIENCE;
        while !is_wanted(&self.events) {
            match self.guardian.next_event().unwrap() {
                Some(event) => self.events.push(event),
                None => {
                    assert!(Instant::now() < give_up, "only these came: {:?}", self.events);
                    pause(1);
                }
            }
        }
    }

    fn until_all_ended(&mut self) -> Vec<Event> {
        self.until(|events| events.contains(&Event::AllEnded));
        self.events.clone()
    }

    fn wait_for_state(&self, slot: u32, state: SlotState) {
        let give_up = Instant::now() + PATIENCE;
        while self.segment.slot_record(slot).state != state {
            assert!(Instant::now() < give_up, "{:?}", self.segment.slot_record(slot));
            pause(1);
        }
    }

    fn pid(&self, slot: u32) -> u32 {
        self.segment.slot_record(slot).pid
    }

    fn host(&self) -> SegmentId {
        SegmentId(self.segment.plan().host)
    }

    /// The next lines of the processes, whichever writes them.
    fn read_lines(&mut self, count: usize) -> Vec<String> {
        let mut line = || {
            let mut line = String::new();
            self.output.read_line(&mut line).unwrap();
            line.trim_end().to_owned()
        };
        (0..count).map(|_| line()).collect()
    }

    /// The output from now to the end of all processes.
    fn rest(&mut self) -> String {
        let mut text = String::new();
        self.output.read_to_string(&mut text).unwrap();
        text
    }
}

fn order(on_failure: OnFailure, scripts: &[&str]) -> GuardianOrder {
    let null = || OwnedFd::from(File::options().read(true).write(true).open("/dev/null").unwrap());
    let environment: Vec<CString> = std::env::vars()
        .filter(|(name, _)| name != PART)
        .map(|(name, value)| CString::new(format!("{name}={value}")).unwrap())
        .collect();
    let start = |(slot, script): (u32, &&str)| Start {
        slot,
        image: Image {
            program: c"/bin/sh".into(),
            arguments: vec![c"sh".into(), c"-c".into(), CString::new(*script).unwrap()],
            environment: [format!("LANDECK_SLOT={slot}")]
                .into_iter()
                .map(|text| CString::new(text).unwrap())
                .chain(environment.iter().cloned())
                .collect(),
            directory: c"/".into(),
            cpus: None,
        },
    };
    let stderr = || std::os::fd::AsFd::as_fd(&std::io::stderr()).try_clone_to_owned().unwrap();
    let streams = scripts.iter().map(|_| [null(), null(), stderr()]).collect();
    let starts = (0..).zip(scripts).map(start).collect();
    GuardianOrder { starts, streams, is_held: false, on_failure, grace: GRACE, ignored: Vec::new() }
}

fn segment(processes: u32) -> Segment {
    let mut host = [0; 8];
    rustix::rand::getrandom(&mut host, rustix::rand::GetRandomFlags::empty()).unwrap();
    let host = u64::from_ne_bytes(host);
    let plan = SegmentPlan { guests: GUESTS, ..SegmentPlan::new(host, processes) };
    Segment::create(&plan).unwrap()
}

fn are_started(events: &[Event], count: usize) -> bool {
    events.iter().filter(|event| matches!(event, Event::Started { .. })).count() == count
}

fn ended(events: &[Event], slot: u32) -> Option<i32> {
    events.iter().find_map(|event| match event {
        Event::Ended { slot: s, status, .. } if *s == slot => Some(*status),
        _ => None,
    })
}

/// A command that starts this program in another part.
fn myself(part: &str) -> Program {
    let mut command = Program::new(std::env::current_exe().unwrap());
    command.env(PART, part);
    command
}

/// Starts another launcher, whose processes have children and daemons. Returns it, and the PIDs of its guardian and its
/// processes.
fn spawn_job(trail: &Trail) -> (Child, Vec<u32>) {
    let mut command = myself("job");
    let mut launcher = trail.spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let mut line = String::new();
    BufReader::new(launcher.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let pids = line.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
    (launcher, pids)
}

/// The part "job": prints the PIDs when all processes have started, and ends with its processes.
fn play_job() {
    let script = "sleep 300 & setsid sleep 300 & wait";
    let mut job = Job::with(order(OnFailure::Abort, &[script; 3]));
    let is_over = |events: &[Event]| {
        events.iter().any(|event| matches!(event, Event::AllEnded | Event::GuardianGone))
    };
    job.until(|events| is_over(events) || are_started(events, 3));
    let processes = (0..3).map(|slot| job.pid(slot));
    let pids: Vec<String> = std::iter::once(job.guardian.pid().unwrap())
        .chain(processes)
        .map(|pid| pid.to_string())
        .collect();
    println!("{}", pids.join(" "));
    job.until(is_over);
}

/// The part "member": a process of a job that joins as its argument says, and ends.
fn play_member() {
    let number = |name: &str| std::env::var(name).unwrap().parse::<u32>().unwrap();
    // SAFETY: the number is that of the inherited segment, which nothing else in this process owns.
    let memory = unsafe { OwnedFd::from_raw_fd(number("LANDECK_SEGMENT").cast_signed()) };
    let (segment, slot) = (Segment::attach(memory).unwrap(), number("LANDECK_SLOT"));
    match std::env::args().nth(1).as_deref() {
        Some("finalize") => segment.set_presence(slot, Presence::Finalized),
        Some("attach") => segment.set_presence(slot, Presence::Attached),
        _ => {}
    }
}

/// The part "joined": a process of a job that joins as programs do, and prints its PID.
fn play_joined() {
    let mut attachment = attach::from_environment().unwrap().unwrap();
    println!("{}", std::process::id());
    std::io::stdout().flush().unwrap();
    match std::env::args().nth(1).as_deref() {
        Some("leave") => attachment.leave().unwrap(),
        Some("abort") => {
            attachment.abort(3, "").unwrap();
            std::process::exit(3);
        }
        _ => pause(300_000),
    }
}

/// The part "guest": joins the given job, prints its identity there, and leaves when its input ends.
fn play_guest() {
    let host: SegmentId = std::env::args().nth(1).unwrap().parse().unwrap();
    let joined = socket::join(host, PATIENCE).unwrap();
    let slot = joined.process.slot.0;
    let segment = Segment::attach(joined.segment).unwrap();
    assert_eq!(segment.presence(slot), Presence::NotAttached, "nothing is left of the last guest");
    segment.set_presence(slot, Presence::Attached);
    println!("{slot} {}", joined.process.incarnation.0);
    std::io::stdout().flush().unwrap();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    segment.set_presence(slot, Presence::Finalized);
}

/// Starts a guest. Returns it, and the slot and incarnation that it prints.
fn spawn_guest(job: &Job) -> (Child, String) {
    let mut command = myself("guest");
    command.arg(job.host().to_string()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut guest = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(guest.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (guest, line.trim_end().to_owned())
}

/// Waits until SIGSTOP has stopped a process.
fn wait_until_stopped(pid: u32) {
    let give_up = Instant::now() + PATIENCE;
    let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    while !state().rsplit(')').next().unwrap().starts_with(" T") {
        assert!(Instant::now() < give_up, "{}", state());
        pause(1);
    }
}

fn wait_for_end(child: &mut Child, limit: Duration) -> Option<std::process::ExitStatus> {
    let give_up = Instant::now() + limit;
    loop {
        let status = child.try_wait().unwrap();
        if status.is_some() || Instant::now() >= give_up {
            return status;
        }
        pause(1);
    }
}

fn reap_within(child: &mut Child, limit: Duration) {
    if wait_for_end(child, limit).is_none() {
        child.kill().unwrap();
        child.wait().unwrap();
        panic!("the launcher was still there after {limit:?}");
    }
}

/// Lets other processes run for a moment, between two looks at something that gives no notice.
fn pause(milliseconds: u64) {
    let limit = rustix::time::Timespec::try_from(Duration::from_millis(milliseconds)).unwrap();
    let _ = rustix::event::poll(&mut [], Some(&limit));
}
