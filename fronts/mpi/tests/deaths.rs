//! kill -9 of one rank in the middle of each operation, while the others stay: every one of them is told at once.
//!
//! A survivor that ends after its error would wake those that still wait, and so hide that they were not told.

#[allow(dead_code)] // the other tests use the rest
mod support;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use landeck_testing::program::succeed;
use landeck_testing::{Random, Trail, Watchdog, seed};
use support::{Launcher, Library, command, program};

/// How long one test may take, with compiling.
const LIMIT: Duration = Duration::from_secs(1_000);
/// Kills of each operation.
const ROUNDS: u64 = 2;
const ROUNDS_SOAK: u64 = 20;
/// The others are told within 100 ms where processors are free. The test allows thirty times that: ten for the limit,
/// and the rest for processes that wait behind others that compute.
const TOLD_WITHIN: Duration = Duration::from_secs(3);
/// The kill comes so long after all have begun, at most.
const KILLED_WITHIN_US: u64 = 20_000;
/// How long a job may take to begin.
const BEGUN_WITHIN: Duration = Duration::from_secs(60);
/// How long processes may stay after the end of their job.
const GONE_WITHIN: Duration = Duration::from_secs(10);

#[test]
fn the_others_are_told_of_a_death_in_every_operation_while_all_of_them_stay() {
    let _watchdog = Watchdog::start(LIMIT);
    let program = program("deaths");
    let seed = seed();
    let rounds = if std::env::var_os("LANDECK_SOAK").is_some() { ROUNDS_SOAK } else { ROUNDS };
    let wanted = std::env::var("LANDECK_OPERATION").ok();
    let named =
        String::from_utf8(succeed(&mut command(Launcher::None, Library::Ours, 1, &program)).stdout)
            .unwrap();
    let operations =
        named.lines().filter(|name| wanted.as_deref().is_none_or(|only| only == *name));
    let mut faults = Vec::new();
    for (number, operation) in operations.enumerate() {
        for round in 0..rounds {
            let mut random = Random::new(seed.wrapping_add((number as u64) << 32 | round));
            let processes = if round % 2 == 0 { 4 } else { 8 };
            let victim = random.below(processes);
            let after = Duration::from_micros(random.below(KILLED_WITHIN_US));
            if let Err(fault) = kill_one(&program, operation, processes, victim, after) {
                let about =
                    format!("{operation}, rank {victim} of {processes} killed after {after:?}");
                println!("{about}: {fault}");
                faults.push(about);
            }
        }
    }
    assert!(faults.is_empty(), "seed {seed}: {faults:#?}");
}

/// Runs a job in which one rank is killed; an error says what was wrong with what the others were told.
fn kill_one(
    program: &Path,
    operation: &str,
    processes: u64,
    victim: u64,
    after: Duration,
) -> Result<(), String> {
    let trail = Trail::new();
    let usual = command(Launcher::Landeck, Library::Ours, processes as u32, program);
    let mut job = Command::new(usual.get_program());
    job.args(["run", "--on-failure", "notify"]).args(usual.get_args().skip(1));
    job.envs(usual.get_envs().filter_map(|(name, value)| Some((name, value?))));
    job.args([operation, &victim.to_string()]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut launcher = trail.spawn(&mut job);
    let lines = lines_of(&mut launcher);
    let found = tell(&lines, processes, victim, after);
    trail.kill();
    launcher.wait().unwrap();
    trail.assert_gone(GONE_WITHIN);
    found
}

fn lines_of(launcher: &mut Child) -> Receiver<String> {
    let (sender, lines) = channel();
    let output = BufReader::new(launcher.stdout.take().unwrap());
    thread::spawn(move || {
        for line in output.lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

fn tell(
    lines: &Receiver<String>,
    processes: u64,
    victim: u64,
    after: Duration,
) -> Result<(), String> {
    let mut pid = 0;
    for _ in 0..processes {
        let line = lines.recv_timeout(BEGUN_WITHIN).map_err(|_| "the job did not begin")?;
        let words: Vec<&str> = line.split(' ').collect();
        let ["in", rank, its_pid] = words[..] else { return Err(format!("too early: {line}")) };
        if rank.parse() == Ok(victim) {
            pid = its_pid.parse().unwrap();
        }
    }
    thread::sleep(after);
    let killed = Instant::now();
    let killed_ns = landeck::memory::system::now_ns();
    kill(pid);
    let mut silent: Vec<u64> = (0..processes).filter(|&rank| rank != victim).collect();
    while !silent.is_empty() {
        let left = (TOLD_WITHIN + TOLD_WITHIN).saturating_sub(killed.elapsed());
        let line = lines.recv_timeout(left).map_err(|_| format!("never told: {silent:?}"))?;
        let mut words = line.splitn(5, ' ');
        let (Some("told"), Some(rank), Some(told_ns), Some(class), Some(text)) =
            (words.next(), words.next(), words.next(), words.next(), words.next())
        else {
            return Err(format!("no such line was awaited: {line}"));
        };
        silent.retain(|&other| rank.parse() != Ok(other));
        let waited =
            Duration::from_nanos(told_ns.parse::<u64>().unwrap().saturating_sub(killed_ns));
        if waited > TOLD_WITHIN {
            return Err(format!("rank {rank} was told after {waited:?}: {text}"));
        }
        // A status of several has no more than the class.
        let names_the_dead = text.contains(&format!("(pid {pid}) was killed by signal 9"))
            || text == "MPI_ERR_PROC_ABORTED: a process that is gone";
        if class != "dead" || !names_the_dead {
            return Err(format!("rank {rank} was told something else: {class} {text}"));
        }
    }
    Ok(())
}

fn kill(pid: u32) {
    succeed(Command::new("kill").args(["-9", &pid.to_string()]));
}
