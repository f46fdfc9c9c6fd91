//! Jobs in which one process is killed from outside while the others stay.
//!
//! A survivor that ends after its error wakes those that still wait, and so hides that nothing told them. Here each
//! survivor reports its error and then neither calls the library again nor ends.
//!
//! The program is started with the name of an operation, the number of the process that will be killed, and `meanwhile`
//! or `later`; with `later` the others begin the operation only when they know of the death. Without arguments it
//! prints the names of its operations. Each process writes two lines to standard output, each in one piece: `in NUMBER
//! PID` when it has done the operation once, and `told NUMBER TIME KIND TEXT` when it has failed. TIME is the monotonic
//! clock in nanoseconds, KIND is `dead` if the error is of the kind for a dead process, and TEXT is the error's text.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::time::{ClockId, clock_gettime};

use crate::hosts::Hosts;
use crate::program::succeed;
use crate::{Random, Trail, seed};

/// The time within which survivors must be told. On free processors they are told within 100 ms, over hosts within 1 s.
/// The limit leaves room for processes that wait for seconds behind others that compute.
const TOLD_WITHIN: Duration = Duration::from_secs(30);
/// The longest time between the beginning of all processes and the kill, in microseconds.
const KILLED_WITHIN_US: u64 = 20_000;
/// How long a job may take to begin.
const BEGUN_WITHIN: Duration = Duration::from_secs(60);
/// How long processes may stay after the end of their job.
const GONE_WITHIN: Duration = Duration::from_secs(60);

/// The number of kills in each operation.
const ROUNDS: u64 = 2;
/// The number of kills in each operation if the variable `LANDECK_SOAK` is set.
const ROUNDS_SOAK: u64 = 30;
/// The number of kills in each operation over hosts, where a job takes longer to start.
const ROUNDS_OVER_HOSTS: u64 = 1;

/// How the names of operations end that are tried on one host alone.
const ON_ONE_HOST: &str = " (one host)";

/// Where the processes of the jobs are.
#[derive(Debug, Clone, Copy)]
pub enum DeathPlace<'a> {
    /// On this host.
    Here,
    /// On these hosts, each of which has as many processes as the others, in the order of their numbers.
    Over(&'a Hosts),
}

impl DeathPlace<'_> {
    /// Kills a process of a job of so many; `pid` is its PID on its own host.
    fn kill(self, processes: u64, number: u64, pid: u32) -> Result<(), String> {
        let DeathPlace::Over(hosts) = self else {
            let process = Pid::from_raw(pid as i32).ok_or("the victim has no number")?;
            return kill_process(process, Signal::KILL).map_err(|error| error.to_string());
        };
        let host = number / processes.div_ceil(hosts.count() as u64);
        succeed(hosts.command(host as usize, "kill").args(["-KILL", &pid.to_string()]));
        Ok(())
    }
}

/// Kills one process in each operation of a program, several times: in jobs of 4 and 8, in the middle or before.
/// `names` prints the operations. `job` creates the command of a job of so many processes at the place, without the
/// program's arguments. The variable `LANDECK_OPERATION` restricts the test to one operation.
///
/// `is_right` judges a survivor's text, given the PID of the dead process. The times after which survivors were told
/// are printed.
///
/// # Panics
/// If a survivor was told too late, never, or something else. Each such kill is printed then, and the seed.
pub fn kill_in_each_operation(
    names: &mut Command,
    place: DeathPlace<'_>,
    job: impl Fn(u64) -> Command,
    is_right: impl Fn(&str, u32) -> bool,
) {
    let seed = seed();
    let rounds = match place {
        _ if std::env::var_os("LANDECK_SOAK").is_some() => ROUNDS_SOAK,
        DeathPlace::Here => ROUNDS,
        DeathPlace::Over(_) => ROUNDS_OVER_HOSTS,
    };
    let wanted = std::env::var("LANDECK_OPERATION").ok();
    let named = String::from_utf8_lossy(&succeed(names).stdout).into_owned();
    let is_wanted = |name: &&str| {
        (matches!(place, DeathPlace::Here) || !name.ends_with(ON_ONE_HOST))
            && wanted.as_deref().is_none_or(|only| only == *name)
    };
    let mut faults = Vec::new();
    let mut times = Vec::new();
    for (number, operation) in named.lines().filter(is_wanted).enumerate() {
        for round in 0..rounds {
            let mut random = Random::new(seed.wrapping_add((number as u64) << 32 | round));
            let (processes, when) = [(4, "meanwhile"), (8, "meanwhile"), (4, "later")]
                [(seed.wrapping_add(number as u64 + round) % 3) as usize];
            let victim = random.below(processes);
            let after = Duration::from_micros(random.below(KILLED_WITHIN_US));
            let mut command = job(processes);
            command.arg(operation);
            let kill = Kill { processes, victim, after, when };
            match kill.run(place, &mut command, &is_right) {
                Ok(last) => times.push((last, operation)),
                Err(fault) => faults.push(format!("{operation}, {kill:?}: {fault}")),
            }
        }
    }
    print_times(place, &mut times);
    assert!(faults.is_empty(), "seed {seed}: {}", faults.join("\n"));
}

/// Prints after which time the last survivor of a kill was told: the median, how many were late, and the slowest.
fn print_times(place: DeathPlace<'_>, times: &mut [(Duration, &str)]) {
    let on_time = match place {
        DeathPlace::Here => Duration::from_millis(100),
        DeathPlace::Over(_) => Duration::from_secs(1),
    };
    times.sort();
    let Some((median, _)) = times.get(times.len() / 2) else { return };
    let late = times.iter().filter(|(time, _)| *time > on_time).count();
    let slowest: Vec<_> = times.iter().rev().take(3).collect();
    println!(
        "{} kills; the last survivor was told after {median:?}, in {late} of them after more than {on_time:?}; \
         slowest: {slowest:?}",
        times.len(),
    );
}

/// One kill: the victim among the processes, the time after all have begun, and when the others do the operation.
#[derive(Debug)]
struct Kill {
    processes: u64,
    victim: u64,
    after: Duration,
    when: &'static str,
}

impl Kill {
    /// Runs the job until the last survivor has reported; returns after which time that was told. An error says what
    /// was wrong, with what the job wrote to standard error.
    fn run(
        &self,
        place: DeathPlace<'_>,
        command: &mut Command,
        is_right: &impl Fn(&str, u32) -> bool,
    ) -> Result<Duration, String> {
        let trail = Trail::new();
        command.args([&self.victim.to_string(), self.when]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut launcher = trail.spawn(command);
        let lines = lines_of(launcher.stdout.take());
        let errors = lines_of(launcher.stderr.take());
        let found = self.watch(place, &lines, is_right);
        trail.kill();
        let _ = launcher.wait();
        trail.assert_gone(GONE_WITHIN);
        found.map_err(|fault| format!("{fault}\n{}", errors.iter().collect::<Vec<_>>().join("\n")))
    }

    fn watch(
        &self,
        place: DeathPlace<'_>,
        lines: &Receiver<String>,
        is_right: &impl Fn(&str, u32) -> bool,
    ) -> Result<Duration, String> {
        let pid = self.wait_for_all(lines)?;
        thread::sleep(self.after);
        let (killed, killed_ns) = (Instant::now(), now_ns());
        place.kill(self.processes, self.victim, pid)?;
        let mut last = Duration::ZERO;
        let mut silent: Vec<u64> = (0..self.processes).filter(|at| *at != self.victim).collect();
        while !silent.is_empty() {
            let left = (2 * TOLD_WITHIN).saturating_sub(killed.elapsed());
            let line = lines.recv_timeout(left).map_err(|_| format!("never told: {silent:?}"))?;
            let told = Told::of(&line).ok_or_else(|| format!("no such line: {line}"))?;
            silent.retain(|at| *at != told.number);
            let waited = Duration::from_nanos(told.at_ns.saturating_sub(killed_ns));
            last = last.max(waited);
            if waited > TOLD_WITHIN {
                return Err(format!("told after {waited:?}: {line}"));
            }
            if told.kind != "dead" || !is_right(told.text, pid) {
                return Err(format!("told something else: {line}"));
            }
        }
        Ok(last)
    }

    /// Waits until all processes have done the operation once; returns the victim's PID.
    fn wait_for_all(&self, lines: &Receiver<String>) -> Result<u32, String> {
        let mut pid = None;
        for _ in 0..self.processes {
            let line = lines.recv_timeout(BEGUN_WITHIN).map_err(|_| "the job did not begin")?;
            let words: Vec<&str> = line.split(' ').collect();
            let ["in", number, its_pid] = words[..] else {
                return Err(format!("too early: {line}"));
            };
            if number.parse() == Ok(self.victim) {
                pid = its_pid.parse().ok();
            }
        }
        pid.ok_or_else(|| "the victim did not begin".to_owned())
    }
}

/// The report of a survivor.
struct Told<'a> {
    number: u64,
    at_ns: u64,
    kind: &'a str,
    text: &'a str,
}

impl<'a> Told<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let mut words = line.strip_prefix("told ")?.splitn(4, ' ');
        let (number, at_ns) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(Self { number, at_ns, kind: words.next()?, text: words.next()? })
    }
}

fn lines_of(output: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, lines) = channel();
    let output = output.map(BufReader::new);
    thread::spawn(move || {
        for line in output.into_iter().flat_map(BufRead::lines).map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
