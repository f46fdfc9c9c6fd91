//! kill -9 of whoever, at any moment: the run ends, the survivors know, nothing is left.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use landeck::unstable::memory::system::now_ns;
use landeck_testing::{Random, Trail, Watchdog, seed};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::support::{
    GONE_WITHIN, NOTICED_WITHIN, RUN_MAX, SmallGroup, Survivors, is_member, is_soak, job_of,
    names_left_by, run_each, skipped,
};
use crate::traffic;

const ROUNDS: u64 = 200;
const ROUNDS_SOAK: u64 = 2_000;
/// On the average; a round takes a tenth of it on an idle machine.
const ROUND_MAX: Duration = Duration::from_secs(6);
/// More memory than a round ever has: its group only counts what is left.
const GROUP_BYTES: u64 = 8 << 30;
const PAGE_BYTES: usize = 4096;
/// Between two looks for somebody to kill.
const LOOK_EVERY: Duration = Duration::from_micros(200);

const TEST: &str = "kills::random_kills_are_survived_as_the_job_says";

#[test]
fn random_kills_are_survived_as_the_job_says() {
    if is_member() {
        return traffic::take_part();
    }
    let rounds = if is_soak() { ROUNDS_SOAK } else { ROUNDS };
    let _watchdog = Watchdog::start(ROUND_MAX * rounds as u32 + RUN_MAX);
    let seed = seed();
    if SmallGroup::new(GROUP_BYTES).is_none() {
        skipped("the memory that killed jobs leave", SmallGroup::NONE);
    }
    let usual = (0..5).map(|_| length_of_an_unharmed_run(seed)).min().unwrap();
    let began = Instant::now();
    let mut tally = [0; OUTCOMES.len()];
    for outcome in run_each(rounds, |number| Round::draw(seed, number).run(usual)) {
        tally[outcome as usize] += 1;
    }
    let counts: Vec<String> =
        OUTCOMES.iter().zip(tally).map(|(what, count)| format!("{count} {what}")).collect();
    println!(
        "{rounds} kills in {:?}, moments over {usual:?}: {}",
        began.elapsed(),
        counts.join(", ")
    );
    assert!(tally[Outcome::Noticed as usize] > 0, "some kills hit where they hurt");
}

/// The outcome of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// Survivors went on, and reported calls that the death had ended.
    Noticed,
    /// Survivors went on, and no call needed the dead process.
    NotNeeded,
    /// The whole job ended.
    Ended,
    /// The job had ended before the kill.
    TooLate,
}

const OUTCOMES: [&str; 4] = ["noticed by survivors", "not needed", "ended the job", "too late"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Process,
    Launcher,
    Guardian,
}

/// One job, its victim, and the moment of the kill.
#[derive(Debug)]
#[allow(dead_code)] // some of it is only told
struct Round {
    number: u64,
    processes: usize,
    on_failure: &'static str,
    with_threads: bool,
    traffic: u64,
    victim: Victim,
    /// The number that selects the process.
    which: u64,
    /// In thousandths of the time of an unharmed run.
    moment_permille: u64,
}

/// The process that was killed, and the time of the kill.
struct Killed {
    pid: u32,
    at_ns: u64,
}

/// The exit status and the output of a run.
struct Story {
    status: ExitStatus,
    out: String,
    err: String,
}

impl Round {
    fn draw(seed: u64, number: u64) -> Round {
        let mut random = Random::new(seed.wrapping_add(number << 32));
        let process = Victim::Process;
        Round {
            number,
            processes: 2 + random.below(5) as usize,
            on_failure: if random.once_in(3) { "abort" } else { "notify" },
            with_threads: random.once_in(4),
            traffic: random.bits(),
            victim: *random.pick(&[process, process, process, Victim::Launcher, Victim::Guardian]),
            which: random.bits(),
            moment_permille: random.below(1_000),
        }
    }

    fn run(&self, usual: Duration) -> Outcome {
        let _told = ToldInPanic(self);
        let trail = Trail::new();
        let (out, err) = (output_file(), output_file());
        let mut command = job_of(self.processes, TEST, &["--on-failure", self.on_failure]);
        let group = SmallGroup::new(GROUP_BYTES);
        if let Some(group) = &group {
            command = group.inside(&command);
        }
        command.env(traffic::SEED, self.traffic.to_string()).stdin(Stdio::null());
        command.stdout(out.try_clone().unwrap()).stderr(err.try_clone().unwrap());
        if self.with_threads {
            command.env(traffic::THREADS, "1");
        }
        let _survivors = Survivors::of(&mut command);
        let launcher = trail.spawn(&mut command);
        thread::sleep(usual * self.moment_permille as u32 / 1_000);
        let killed = self.kill(&trail, launcher.id());
        let status = trail.finish(launcher, RUN_MAX).status;
        trail.assert_gone(GONE_WITHIN);
        let story = Story { status, out: text_of(out), err: text_of(err) };
        // What it has said is in memory of this test, which was filled by the job.
        let said = [&story.out, &story.err].map(|text| text.len().next_multiple_of(PAGE_BYTES));
        group.inspect(|group| group.assert_left(said.iter().sum::<usize>() as u64));
        self.judge(killed.as_ref(), &story)
    }

    /// Kills the victim as soon as it is there. None when the job is over before.
    fn kill(&self, trail: &Trail, launcher: u32) -> Option<Killed> {
        loop {
            let found = match self.victim {
                Victim::Launcher => Some(launcher),
                Victim::Guardian => children(trail, launcher).first().copied(),
                Victim::Process => {
                    let guardian = children(trail, launcher).first().copied();
                    let processes = guardian.map_or(Vec::new(), |pid| children(trail, pid));
                    let place = self.which % processes.len().max(1) as u64;
                    processes.get(place as usize).copied()
                }
            };
            if let Some(killed) = found.and_then(|pid| kill(trail, pid)) {
                return Some(killed);
            }
            if parent(launcher).is_none() || is_zombie(launcher) {
                return None;
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    fn judge(&self, killed: Option<&Killed>, story: &Story) -> Outcome {
        assert!(!story.tells("panicked"), "somebody failed: {story}");
        for job in story.jobs() {
            let left = names_left_by(&job);
            assert!(left.is_empty(), "{left:?}: {story}");
        }
        let Some(killed) = killed.filter(|_| story.status.code() != Some(0)) else {
            let all_done = story.count_done() == self.processes;
            assert!(story.status.code() == Some(0) && all_done, "nobody was hit: {story}");
            return Outcome::TooLate;
        };
        if self.victim == Victim::Launcher {
            assert_eq!(story.status.signal(), Some(9), "{story}");
            return Outcome::Ended;
        }
        assert_eq!(
            story.status.code(),
            Some(137),
            "{killed_pid} was killed: {story}",
            killed_pid = killed.pid
        );
        if self.victim == Victim::Guardian || self.on_failure == "abort" {
            return Outcome::Ended;
        }
        self.judge_survivors(killed, story)
    }

    fn judge_survivors(&self, killed: &Killed, story: &Story) -> Outcome {
        assert!(story.count_done() >= self.processes - 1, "the others go on: {story}");
        let mut outcome = Outcome::NotNeeded;
        for loss in story.losses() {
            outcome = Outcome::Noticed;
            let mut words = loss.splitn(3, ' ');
            let mut next = || words.next().unwrap();
            let (began_ns, ended_ns): (u64, u64) =
                (next().parse().unwrap(), next().parse().unwrap());
            let error = next();
            let who = format!("(pid {}) was killed by signal 9", killed.pid);
            assert!(error.contains(&who), "{error} names another: {story}");
            let waited = Duration::from_nanos(ended_ns.saturating_sub(began_ns.max(killed.at_ns)));
            assert!(waited < NOTICED_WITHIN, "noticed after {waited:?}: {story}");
        }
        outcome
    }
}

impl Story {
    fn tells(&self, what: &str) -> bool {
        self.out.contains(what) || self.err.contains(what)
    }

    fn lines_after(&self, first_word: &str) -> impl Iterator<Item = &str> {
        let lines = self.out.lines();
        lines.filter_map(move |line| line.strip_prefix(first_word)?.strip_prefix(' '))
    }

    fn jobs(&self) -> BTreeSet<String> {
        self.lines_after(traffic::JOB).map(str::to_owned).collect()
    }

    fn losses(&self) -> impl Iterator<Item = &str> {
        self.lines_after(traffic::LOST)
    }

    fn count_done(&self) -> usize {
        self.out.lines().filter(|&line| line == traffic::DONE).count()
    }
}

impl std::fmt::Display for Story {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}\n{}\n{}", self.status, self.out, self.err)
    }
}

/// Says which round it was when it fails.
struct ToldInPanic<'a>(&'a Round);

impl Drop for ToldInPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("in {:?}", self.0);
        }
    }
}

fn length_of_an_unharmed_run(seed: u64) -> Duration {
    let began = Instant::now();
    let trail = Trail::new();
    let mut command = job_of(4, TEST, &[]);
    let _survivors = Survivors::of(&mut command);
    let ended = trail.run(command.env(traffic::SEED, seed.to_string()), RUN_MAX);
    assert!(ended.status.success(), "{}", crate::support::text(&ended));
    began.elapsed()
}

/// A file without a name: unlike a pipe, its end waits for nobody.
fn output_file() -> OwnedFd {
    memfd_create(c"output", MemfdFlags::CLOEXEC).unwrap()
}

fn text_of(file: OwnedFd) -> String {
    let mut file = File::from(file);
    let mut bytes = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Kills a process if it is still one of the trail's.
fn kill(trail: &Trail, pid: u32) -> Option<Killed> {
    let pidfd = pidfd_open(Pid::from_raw(pid as i32)?, PidfdFlags::empty()).ok()?;
    let is_ours = trail.processes().iter().any(|(ours, _)| *ours == pid);
    let at_ns = now_ns();
    let killed = is_ours && pidfd_send_signal(&pidfd, Signal::KILL).is_ok();
    killed.then_some(Killed { pid, at_ns })
}

fn children(trail: &Trail, of: u32) -> Vec<u32> {
    let processes = trail.processes().into_iter().map(|(pid, _)| pid);
    processes.filter(|&pid| parent(pid) == Some(of)).collect()
}

fn parent(pid: u32) -> Option<u32> {
    stat_field(pid, 1)?.parse().ok()
}

fn is_zombie(pid: u32) -> bool {
    stat_field(pid, 0).is_none_or(|state| state == "Z")
}

/// A field of /proc/PID/stat, counted from the state, which follows the name.
fn stat_field(pid: u32, place: usize) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(place).map(str::to_owned)
}
