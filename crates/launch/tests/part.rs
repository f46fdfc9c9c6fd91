//! Tests of the guardian server and of a job's part on one host, with real processes and real kills.
//!
//! Each scenario runs in a process of its own with one thread, like a daemon that forks its server. For this, and for
//! the drivers that are killed, this program starts itself again. Nothing of a scenario may be left after its end.

#![allow(clippy::unwrap_used)] // everything in this file is a test

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command as Program, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use landeck_host::environment::Environment;
use landeck_host::placement::MapBy;
use landeck_host::process;
use landeck_host::report::ProcessFailure;
use landeck_launch::events::Happened;
use landeck_launch::guardian::OnFailure;
use landeck_launch::guardian::server::{self, GuardianServer};
use landeck_launch::input::InputTo;
use landeck_launch::messages::{PartCommand, PartEvent, WINDOW_BYTES, Whereabouts};
use landeck_launch::output::Stream;
use landeck_launch::part::{DescriptorWatch, HostPart, KeptPipe, check};
use landeck_launch::plan::PlannedProgram;
use landeck_launch::spec::{HostSpec, JobSpec, RankSpec};
use landeck_testing::Trail;
use landeck_wire::word::ProcessEnd;
use landeck_wire::{HostNumber, JobId, SegmentId};
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

/// The variable that names the scenario or part that a process plays when this program has started itself.
const PART: &str = "LANDECK_TEST_PART";
/// The time limit of a scenario, and of one wait in it.
const LIMIT: Duration = Duration::from_secs(120);
const PATIENCE: Duration = Duration::from_secs(60);
/// The time after which nothing may be left.
const LEFTOVERS_GONE: Duration = Duration::from_secs(60);
const HERE: HostNumber = HostNumber(1);

const SCENARIOS: [(&str, fn()); 15] = [
    ("two_ranks_run_to_their_end", two_ranks_run_to_their_end),
    ("a_process_knows_its_place", a_process_knows_its_place),
    ("a_failure_ends_the_others_here", a_failure_ends_the_others_here),
    ("input_arrives_whole", input_arrives_whole),
    ("output_waits_for_credit", output_waits_for_credit),
    ("a_closed_stream_is_noticed", a_closed_stream_is_noticed),
    ("commands_are_obeyed", commands_are_obeyed),
    ("a_missing_program_or_folder_is_named", a_missing_program_or_folder_is_named),
    ("a_killed_server_leaves_nothing", a_killed_server_leaves_nothing),
    ("a_killed_guardian_is_told", a_killed_guardian_is_told),
    ("a_killed_driver_leaves_nothing", a_killed_driver_leaves_nothing),
    ("one_server_has_many_jobs", one_server_has_many_jobs),
    ("another_driver_goes_on", another_driver_goes_on),
    ("another_driver_hears_the_end", another_driver_hears_the_end),
    ("only_the_last_question_is_answered", only_the_last_question_is_answered),
];

fn main() -> ExitCode {
    if let Ok(part) = std::env::var(PART) {
        match part.as_str() {
            "driver" => play_driver(),
            _ => SCENARIOS.iter().find(|(name, _)| *name == part).unwrap().1(),
        }
        return ExitCode::SUCCESS;
    }
    let filters: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let wanted = |name: &str| filters.is_empty() || filters.iter().any(|f| name.contains(f));
    let mut failed = 0;
    for (name, _) in SCENARIOS.iter().filter(|(name, _)| wanted(name)) {
        let began = Instant::now();
        let passed = catch_unwind(AssertUnwindSafe(|| supervise(name))).is_ok();
        println!(
            "test {name} ... {} ({:?})",
            if passed { "ok" } else { "FAILED" },
            began.elapsed()
        );
        failed += usize::from(!passed);
    }
    println!("part: {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs one scenario within its time, and checks that it left nothing.
fn supervise(name: &str) {
    let trail = Trail::new();
    let output = trail.run(&mut myself(name), LIMIT);
    trail.assert_gone(LEFTOVERS_GONE);
    print!("{}", String::from_utf8_lossy(&output.stdout));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
}

/// This program in a part.
fn myself(part: &str) -> Program {
    let mut program = Program::new(std::env::current_exe().unwrap());
    program.env(PART, part);
    program
}

/// A job of shell scripts, of which every second rank, the first included, is here.
fn spec(on_failure: OnFailure, scripts: &[&str]) -> JobSpec {
    static JOBS: AtomicU64 = AtomicU64::new(0);
    let first = u64::from(std::process::id()) << 16 | JOBS.fetch_add(16, Ordering::Relaxed);
    let variables = || std::env::vars_os().filter(|(name, _)| name != PART);
    let program = |script: &&str| PlannedProgram {
        file: "/bin/sh".into(),
        arguments: vec!["sh".into(), "-c".into(), script.into()],
        directory: "/".into(),
        environment: Environment::new(variables(), true, &[]),
        processes: 2,
    };
    let host = |number: u16| HostSpec {
        number: HostNumber(number + 1),
        name: format!("n{number}"),
        site: String::new(),
        segment: SegmentId(first | u64::from(number)),
        cores: Vec::new(),
    };
    let rank = |number: u16| RankSpec {
        host: number % 2,
        slot: u32::from(number / 2),
        program: number / 2,
    };
    JobSpec {
        first_address: "10.0.0.1".into(),
        job: JobId(7),
        name: "test".to_owned(),
        programs: scripts.iter().map(program).collect(),
        hosts: (0..2).map(host).collect(),
        ranks: (0..2 * scripts.len() as u16).map(rank).collect(),
        map_by: MapBy::default(),
        bind_to: None,
        report_bindings: false,
        on_failure,
        grace: Duration::from_millis(500),
        is_hardened: false,
        settings: Vec::new(),
        links: Vec::new(),
        shares_processors: false,
        stdin: InputTo::Rank(0),
        is_merged: false,
        ignored: Vec::new(),
        serves_groups: false,
        takes_hosts: false,
    }
}

/// A loop that drives one part, as a daemon does.
struct Driver {
    epoll: OwnedFd,
    part: HostPart,
    events: Vec<PartEvent>,
    /// The pipes that were kept for another driver.
    pipes: BTreeMap<String, (KeptPipe, Option<OwnedFd>)>,
}

struct Descriptors<'a>(&'a OwnedFd);

impl DescriptorWatch for Descriptors<'_> {
    fn watch(
        &mut self,
        what: BorrowedFd<'_>,
        token: u32,
        flags: EventFlags,
    ) -> std::io::Result<()> {
        Ok(epoll::add(self.0, what, EventData::new_u64(token.into()), flags)?)
    }

    fn rewatch(
        &mut self,
        what: BorrowedFd<'_>,
        token: u32,
        flags: EventFlags,
    ) -> std::io::Result<()> {
        Ok(epoll::modify(self.0, what, EventData::new_u64(token.into()), flags)?)
    }

    fn unwatch(&mut self, what: BorrowedFd<'_>) {
        epoll::delete(self.0, what).unwrap();
    }
}

impl Driver {
    fn start(server: &GuardianServer, spec: JobSpec) -> Driver {
        check(&spec, HERE).unwrap();
        let mut part = HostPart::prepare(spec, HERE).unwrap();
        part.start(Some(server)).unwrap();
        let epoll = epoll::create(CreateFlags::CLOEXEC).unwrap();
        Driver { epoll, part, events: Vec::new(), pipes: BTreeMap::new() }
    }

    /// Goes round once.
    fn turn(&mut self, timeout: Duration) {
        self.part.settle(&mut Descriptors(&self.epoll)).unwrap();
        let mut space = [MaybeUninit::<epoll::Event>::uninit(); 16];
        let timeout = Timespec::try_from(timeout).unwrap();
        let ready: Vec<u64> = match epoll::wait(&self.epoll, &mut space[..], Some(&timeout)) {
            Ok((ready, _)) => ready.iter().map(|event| event.data.u64()).collect(),
            Err(_) => Vec::new(),
        };
        ready.into_iter().for_each(|token| self.part.ready(token as u32));
        self.events.extend(std::iter::from_fn(|| self.part.take_event()));
    }

    fn until(&mut self, mut is_enough: impl FnMut(&[PartEvent]) -> bool) {
        let give_up = Instant::now() + PATIENCE;
        while !is_enough(&self.events) {
            assert!(Instant::now() < give_up, "{:?}", self.events);
            let wait = if self.part.is_over() { Duration::ZERO } else { Duration::from_millis(20) };
            self.turn(wait);
        }
    }

    /// Gives the part to another driver, which has what was kept of it: the pipes as they are now. What this one has heard is
    /// forgotten.
    fn succeeded(mut self) -> Driver {
        let dup = |descriptor: BorrowedFd<'_>| descriptor.try_clone_to_owned().unwrap();
        self.keep_pipes();
        let kept = self.part.kept().unwrap().map(dup);
        let (spec, pipes) = (self.part.spec().clone(), std::mem::take(&mut self.pipes));
        drop(self);
        let pipes = pipes.into_values().collect();
        let part = HostPart::resume(spec, HERE, kept, pipes).unwrap();
        let epoll = epoll::create(CreateFlags::CLOEXEC).unwrap();
        Driver { epoll, part, events: Vec::new(), pipes: BTreeMap::new() }
    }

    fn keep_pipes(&mut self) {
        for (kept, pipe) in self.part.unkept_pipes() {
            let pipe = pipe.map(|pipe| pipe.try_clone_to_owned().unwrap());
            self.pipes.insert(format!("{kept:?}"), (kept, pipe));
        }
    }

    fn until_over(&mut self) {
        self.until(|events| events.contains(&PartEvent::Over));
        assert!(self.part.is_over());
    }

    fn until_started(&mut self, count: usize) {
        self.until(|events| started(events).len() == count);
    }

    /// The PID of a rank's process.
    fn pid(&self, rank: u32) -> u32 {
        started(&self.events).into_iter().find(|(own, _)| *own == rank).unwrap().1
    }

    fn output(&self, rank: u32, stream: Stream) -> String {
        let mut all = Vec::new();
        for event in &self.events {
            if let PartEvent::Output { rank: own, stream: at, bytes } = event
                && *own == rank
                && *at == stream
            {
                all.extend(bytes);
            }
        }
        String::from_utf8(all).unwrap()
    }

    /// The failure with which a rank ended, if it failed; `None` if it has not ended.
    fn end(&self, rank: u32) -> Option<Option<ProcessFailure>> {
        self.events.iter().find_map(|event| match event {
            PartEvent::Happened(Happened::Ended { rank: own, failure, .. }) if *own == rank => {
                Some(*failure)
            }
            _ => None,
        })
    }
}

fn started(events: &[PartEvent]) -> Vec<(u32, u32)> {
    let each = events.iter().filter_map(|event| match event {
        PartEvent::Happened(Happened::Started { rank, pid, .. }) => Some((*rank, *pid)),
        _ => None,
    });
    each.collect()
}

fn two_ranks_run_to_their_end() {
    let server = server::fork().unwrap();
    let scripts = ["echo out; echo err >&2", "echo two; exit 3"];
    let mut driver = Driver::start(&server, spec(OnFailure::Notify, &scripts));
    driver.until_over();
    assert_eq!((driver.output(0, Stream::Output).as_str()), "out\n");
    assert_eq!((driver.output(0, Stream::Error).as_str()), "err\n");
    assert_eq!((driver.output(2, Stream::Output).as_str()), "two\n");
    assert_eq!(driver.end(0), Some(None));
    assert_eq!(
        driver.end(2),
        Some(Some(ProcessFailure::Code(3))),
        "ranks are those of the whole job"
    );
    let mut ends: Vec<(u32, ProcessEnd)> = driver
        .events
        .iter()
        .filter_map(|event| match event {
            PartEvent::Gone { process, end } => Some((process.slot.0, *end)),
            _ => None,
        })
        .collect();
    // They end in any order.
    ends.sort_unstable_by_key(|(slot, _)| *slot);
    let pid = driver.pid(2);
    assert_eq!(ends, [(0, ProcessEnd::Left), (1, ProcessEnd::Died { pid, status: 3 << 8 })]);
    let streams = |event: &&PartEvent| matches!(event, PartEvent::OutputEnded { .. });
    assert_eq!(driver.events.iter().filter(streams).count(), 4);
    assert_eq!(driver.events.last(), Some(&PartEvent::Over));
}

fn a_process_knows_its_place() {
    let server = server::fork().unwrap();
    let script = "echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $PMI_LOCAL_RANK $NODE_RANK $MASTER_ADDR";
    let mut driver = Driver::start(&server, spec(OnFailure::Abort, &["true", script]));
    driver.until_over();
    assert_eq!(driver.output(2, Stream::Output), "2 4 1 2 1 0 10.0.0.1\n");
    let wanted = spec(OnFailure::Abort, &["echo $LANDECK_JOB"]);
    let job = wanted.hosts[0].segment.to_string();
    let mut driver = Driver::start(&server, wanted);
    driver.until_over();
    assert_eq!(driver.output(0, Stream::Output).trim(), job);
}

fn a_failure_ends_the_others_here() {
    let server = server::fork().unwrap();
    let mut driver = Driver::start(&server, spec(OnFailure::Abort, &["sleep 300", "exit 7"]));
    let began = Instant::now();
    driver.until_over();
    assert_eq!(driver.end(2), Some(Some(ProcessFailure::Code(7))));
    assert_eq!(driver.end(0), Some(Some(ProcessFailure::Signal(libc::SIGTERM))));
    println!("     the others had ended {:?} after the start", began.elapsed());
}

fn input_arrives_whole() {
    let server = server::fork().unwrap();
    let mut driver = Driver::start(&server, spec(OnFailure::Abort, &["wc -c", "cat"]));
    for _ in 0..20 {
        driver.events.retain(|event| *event != PartEvent::InputTaken);
        driver.part.command(PartCommand::Input(vec![b'x'; 60_000]));
        driver.until(|events| events.contains(&PartEvent::InputTaken));
    }
    driver.part.command(PartCommand::InputEnd);
    driver.until_over();
    assert_eq!(driver.output(0, Stream::Output).trim(), "1200000");
    assert_eq!(driver.output(2, Stream::Output), "", "it reads nothing");
    let mut driver = Driver::start(&server, spec(OnFailure::Abort, &["exec <&-; echo; sleep 300"]));
    driver.until(|events| events.iter().any(|event| matches!(event, PartEvent::Output { .. })));
    // The guardian may close its copy of the stream a moment after the program has closed the other one.
    while !driver.events.contains(&PartEvent::InputUnread) {
        driver.events.retain(|event| *event != PartEvent::InputTaken);
        driver.part.command(PartCommand::Input(vec![b'x'; 10]));
        let heard = [PartEvent::InputTaken, PartEvent::InputUnread];
        driver.until(|events| heard.iter().any(|event| events.contains(event)));
    }
    driver.part.command(PartCommand::Kill);
    driver.until_over();
}

fn output_waits_for_credit() {
    let server = server::fork().unwrap();
    let stream = Stream::Output;
    let script = "echo begun >&2; head -c 3000000 /dev/zero; echo done >&2";
    let mut driver = Driver::start(&server, spec(OnFailure::Abort, &[script]));
    let count = |driver: &Driver| driver.output(0, Stream::Output).len() as u64;
    while count(&driver) < WINDOW_BYTES || driver.output(0, Stream::Error).is_empty() {
        driver.turn(Duration::from_millis(10));
    }
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(500) {
        driver.turn(Duration::from_millis(10));
    }
    assert_eq!(count(&driver), WINDOW_BYTES, "no more than the window");
    assert_eq!(driver.output(0, Stream::Error), "begun\n", "the other stream has its own");
    driver.part.command(PartCommand::Credit { stream, bytes: WINDOW_BYTES });
    driver.until(|_| true);
    driver.part.command(PartCommand::Credit { stream, bytes: 8 * WINDOW_BYTES });
    driver.until_over();
    assert_eq!(
        (count(&driver), driver.output(0, Stream::Error).as_str()),
        (3_000_000, "begun\ndone\n")
    );
}

fn a_closed_stream_is_noticed() {
    let server = server::fork().unwrap();
    let mut driver = Driver::start(&server, spec(OnFailure::Notify, &["exec yes"]));
    driver.until(|events| events.iter().any(|event| matches!(event, PartEvent::Output { .. })));
    driver.part.command(PartCommand::CloseOutput(Stream::Output));
    driver.until_over();
    assert_eq!(driver.end(0), Some(Some(ProcessFailure::Signal(libc::SIGPIPE))));
}

fn commands_are_obeyed() {
    let server = server::fork().unwrap();
    let script = "trap 'echo usr1' USR1; echo ready; while :; do sleep 0.05; done";
    let mut driver = Driver::start(&server, spec(OnFailure::Notify, &[script, "exec sleep 300"]));
    let has = |word: &'static str| {
        move |events: &[PartEvent]| {
            events.iter().any(|event| {
                matches!(event, PartEvent::Output { bytes, .. } if bytes.starts_with(word.as_bytes()))
            })
        }
    };
    driver.until(has("ready"));
    driver.until_started(2);
    driver.part.command(PartCommand::Places { stacks: false });
    driver.until(|events| events.iter().any(|event| matches!(event, PartEvent::Places(_))));
    let places = driver.events.iter().find_map(|event| match event {
        PartEvent::Places(places) => Some(places.clone()),
        _ => None,
    });
    let (rank, pid, stacks) = (2, driver.pid(2), String::new());
    let wait = "is in no call that waits".to_owned();
    assert_eq!(places.unwrap()[1], Whereabouts { rank, pid, wait, stacks });
    driver.part.command(PartCommand::Signal(libc::SIGUSR1));
    driver.until(has("usr1"));
    driver.until(|events| events.iter().any(|event| matches!(event, PartEvent::Gone { .. })));
    assert_eq!(driver.end(2), Some(Some(ProcessFailure::Signal(libc::SIGUSR1))));
    driver.part.command(PartCommand::End { grace: Duration::from_millis(100) });
    driver.until_over();
    let mut driver =
        Driver::start(&server, spec(OnFailure::Notify, &["trap '' TERM; exec sleep 300"]));
    driver.until_started(1);
    driver.part.command(PartCommand::Kill);
    driver.until_over();
    assert_eq!(driver.end(0), Some(Some(ProcessFailure::Signal(libc::SIGKILL))));
}

fn a_missing_program_or_folder_is_named() {
    let refused = |change: fn(&mut JobSpec)| {
        let mut job = spec(OnFailure::Abort, &["true"]);
        change(&mut job);
        check(&job, HERE).unwrap_err()
    };
    let program = refused(|job| job.programs[0].file = "/nowhere/heat".into());
    assert_eq!(program.exit_code, 127);
    assert!(program.text.contains("/nowhere"), "{program:?}");
    let directory = refused(|job| job.programs[0].directory = "/nowhere".into());
    assert!(directory.text.contains("--wdir /nowhere: there is no such folder"), "{directory:?}");
    let other = refused(|job| job.ranks[0].slot = 4);
    assert!(other.text.contains("its part of the job"), "{other:?}");
    assert_eq!(check(&spec(OnFailure::Abort, &["true"]), HERE), Ok(()));
    assert!(check(&spec(OnFailure::Abort, &["true"]), HostNumber(9)).is_err());
}

fn a_killed_server_leaves_nothing() {
    let server = server::fork().unwrap();
    let script = "trap '' TERM; sleep 300 & setsid sleep 301 & wait";
    let mut driver = Driver::start(&server, spec(OnFailure::Abort, &[script, script]));
    driver.until_started(2);
    process::signal_process(server.pid(), libc::SIGKILL);
    let began = Instant::now();
    driver.until_over();
    println!("     over {:?} after the kill of the server", began.elapsed());
    assert!(began.elapsed() < PATIENCE, "nothing of it sleeps to its end");
    assert!(
        HostPart::prepare(spec(OnFailure::Abort, &["true"]), HERE)
            .unwrap()
            .start(Some(&server))
            .is_err()
    );
}

fn a_killed_guardian_is_told() {
    let server = server::fork().unwrap();
    let mut driver = Driver::start(
        &server,
        spec(OnFailure::Abort, &["setsid sleep 301 & sleep 300", "sleep 300"]),
    );
    driver.until_started(2);
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", server.pid()));
    let guardian: u32 = children.unwrap().split_whitespace().next().unwrap().parse().unwrap();
    process::signal_process(guardian, libc::SIGKILL);
    driver.until_over();
    assert!(driver.events.contains(&PartEvent::Happened(Happened::GuardianGone)));
    let gone = |event: &&PartEvent| {
        matches!(event, PartEvent::Gone { end: ProcessEnd::Died { status: libc::SIGKILL, .. }, .. })
    };
    assert_eq!(driver.events.iter().filter(gone).count(), 2, "{:?}", driver.events);
    let mut driver = Driver::start(&server, spec(OnFailure::Abort, &["echo again"]));
    driver.until_over();
    assert_eq!(driver.output(0, Stream::Output), "again\n", "the server goes on");
}

/// Drives a job until it is killed.
fn play_driver() {
    let server = server::fork().unwrap();
    let script = "trap '' TERM HUP; sleep 300 & setsid sleep 301 & wait";
    let mut driver = Driver::start(&server, spec(OnFailure::Abort, &[script, script]));
    driver.until_started(2);
    println!("{} {}", server.pid(), driver.pid(2));
    driver.until_over();
}

fn a_killed_driver_leaves_nothing() {
    for kills_server in [false, true] {
        let trail = Trail::new();
        let mut driver = trail.spawn(myself("driver").stdout(Stdio::piped()));
        let mut line = String::new();
        BufReader::new(driver.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let pids: Vec<u32> = line.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
        assert_eq!(pids.len(), 2, "{line}");
        let began = Instant::now();
        driver.kill().unwrap();
        if kills_server {
            // SAFETY: kill reads no memory; the server is alive or a zombie of nobody who waits.
            unsafe { libc::kill(pids[0].cast_signed(), libc::SIGKILL) };
        }
        driver.wait().unwrap();
        trail.assert_gone(LEFTOVERS_GONE);
        println!("     nothing left {:?} after the kill of the driver", began.elapsed());
    }
}

fn one_server_has_many_jobs() {
    let server = server::fork().unwrap();
    let scripts = vec!["exit 0"; 40];
    let mut drivers = Vec::new();
    for _ in 0..4 {
        drivers.push(Driver::start(&server, spec(OnFailure::Abort, &scripts)));
    }
    for driver in &mut drivers {
        driver.until_over();
        assert_eq!(started(&driver.events).len(), 40);
        assert!((0..80).step_by(2).all(|rank| driver.end(rank) == Some(None)));
    }
}

fn another_driver_goes_on() {
    let server = server::fork().unwrap();
    let scripts = ["echo before; read -r word; echo behind $word; exit 3", "exit 4"];
    let mut driver = Driver::start(&server, spec(OnFailure::Notify, &scripts));
    driver.keep_pipes();
    driver.until(|events| events.iter().any(|it| matches!(it, PartEvent::Output { .. })));
    driver.until(|events| {
        let ended = |stream| PartEvent::OutputEnded { rank: 2, stream };
        events.contains(&ended(Stream::Output)) && events.contains(&ended(Stream::Error))
    });
    driver.until(|events| !ends(events).is_empty());
    let (first, segment) = (driver.pid(0), driver.part.segment().plan().host);
    let mut driver = driver.succeeded();
    driver.until(|events| events.contains(&PartEvent::Stands { asked: 0 }));
    assert_eq!(driver.part.segment().plan().host, segment);
    assert_eq!((driver.pid(0), started(&driver.events).len()), (first, 2));
    assert_eq!((driver.end(0), driver.end(2)), (None, Some(Some(ProcessFailure::Code(4)))));
    let ended = driver.events.iter().filter(|it| matches!(it, PartEvent::OutputEnded { .. }));
    assert_eq!(ended.count(), 2, "{:?}", driver.events);
    driver.part.command(PartCommand::Input(b"it\n".to_vec()));
    driver.part.command(PartCommand::InputEnd);
    driver.until_over();
    assert_eq!(driver.output(0, Stream::Output), "behind it\n");
    assert_eq!(driver.end(0), Some(Some(ProcessFailure::Code(3))));
}

fn another_driver_hears_the_end() {
    let server = server::fork().unwrap();
    let mut driver = Driver::start(&server, spec(OnFailure::Notify, &["exit 5"]));
    driver.keep_pipes();
    driver.until_over();
    let mut driver = driver.succeeded();
    driver.until_over();
    assert_eq!(driver.end(0), Some(Some(ProcessFailure::Code(5))));
    let all_ended = PartEvent::Happened(Happened::AllEnded);
    assert!(driver.events.contains(&all_ended), "{:?}", driver.events);
}

/// The answer to the first question may miss events that come before the second one.
fn only_the_last_question_is_answered() {
    let server = server::fork().unwrap();
    let mut driver = Driver::start(&server, spec(OnFailure::Notify, &["read -r word; exit 5"]));
    driver.until_started(1);
    driver.events.clear();
    driver.part.tell_again(1);
    driver.part.tell_again(2);
    let is_answer = |event: &&PartEvent| matches!(event, PartEvent::Stands { .. });
    driver.until(|events| events.iter().any(|event| is_answer(&event)));
    driver.part.command(PartCommand::InputEnd);
    driver.until_over();
    let answers: Vec<&PartEvent> = driver.events.iter().filter(is_answer).collect();
    assert_eq!(answers, [&PartEvent::Stands { asked: 2 }]);
    assert_eq!(started(&driver.events).len(), 1, "{:?}", driver.events);
    assert_eq!(driver.end(0), Some(Some(ProcessFailure::Code(5))));
    // A part that is over tells its end again, too.
    driver.events.clear();
    driver.part.tell_again(3);
    driver.until_over();
    assert!(driver.events.contains(&PartEvent::Stands { asked: 3 }), "{:?}", driver.events);
    assert_eq!(driver.end(0), Some(Some(ProcessFailure::Code(5))));
}

/// The ends of processes.
fn ends(events: &[PartEvent]) -> Vec<&PartEvent> {
    let is_end = |it: &&PartEvent| matches!(it, PartEvent::Happened(Happened::Ended { .. }));
    events.iter().filter(is_end).collect()
}
