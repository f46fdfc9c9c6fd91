//! Other processes that join a running job or look at it. Each of them is a process of its
//! own, started by rank 0, as a person would start it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use landeck::unstable::JobInternals;
use landeck::{Job, Options};
use landeck_host::say::say;

use crate::settings::Settings;
use crate::words::{receive_word, send_word, tags};
use crate::{Bench, Trouble};

/// Jobs that run beside the one that is joined by name.
const OTHER_JOBS: usize = 30;
/// The line of a bystander that has joined its job.
const READY: &str = "ready";

/// Figures that a process measures before it is in a job: true if this was one.
pub(crate) fn measure(settings: &Settings) -> Result<bool, Trouble> {
    match settings.figure.as_str() {
        "guest" => guest(&settings.job)?,
        "bystander" => bystander()?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// How long the call takes that joins this job, in a process that was started for it: by the job's
/// identity, by its name, and by its name while other jobs run.
pub(crate) fn joining(bench: &Bench) -> Result<(), Trouble> {
    bench.needs(bench.world.size() == 1, "exactly 1 process")?;
    let plan = bench.job.segment().plan();
    let (identity, name) = (bench.job.process().segment.to_string(), plan.name.to_string());
    joins(bench, "by identity", &identity)?;
    joins(bench, "by name", &name)?;
    let others = (0..OTHER_JOBS).map(start_bystander).collect::<Result<Vec<_>, _>>()?;
    joins(bench, "by name among 31 jobs", &name)?;
    others.into_iter().try_for_each(|other| ended(&beside("landeck"), other.wait_with_output()))
}

fn joins(bench: &Bench, form: &str, reference: &str) -> Result<(), Trouble> {
    let guest = own_program();
    for _ in 0..bench.settings.batches {
        let mut command = Command::new(&guest);
        command.args(["guest", &format!("job={reference}")]);
        let output = finished(&guest, outside_of_job(&mut command).output())?;
        let text = String::from_utf8_lossy(&output.stdout);
        let time_us = text.trim().parse().map_err(|_| Trouble::Usage(text.into_owned()))?;
        bench.print(form, 0, "us", time_us);
    }
    Ok(())
}

fn guest(job: &str) -> Result<(), Trouble> {
    let start = Instant::now();
    let job = Job::join_running(job, Options::default())?;
    say(&format!("{}\n", start.elapsed().as_secs_f64() * 1e6))?;
    Ok(job.leave()?)
}

/// A job of another name, until its input ends.
fn start_bystander(number: usize) -> Result<Child, Trouble> {
    let launcher = beside("landeck");
    let mut command = Command::new(&launcher);
    command.args(["run", "-n", "1", "--name", &format!("bystander {number}")]);
    command.arg(own_program()).arg("bystander").stdin(Stdio::piped()).stdout(Stdio::piped());
    let not_used = |error| Trouble::NotUsed { path: launcher.clone(), error };
    let mut child = outside_of_job(&mut command).spawn().map_err(not_used)?;
    let mut line = String::new();
    let output = child.stdout.as_mut().map(|output| BufReader::new(output).read_line(&mut line));
    output.transpose().map_err(not_used)?;
    if line.trim() == READY { Ok(child) } else { Err(Trouble::Usage(line)) }
}

fn bystander() -> Result<(), Trouble> {
    let job = Job::join()?;
    say(&format!("{READY}\n"))?;
    // Whatever ends the input ends this.
    let _ = std::io::stdin().read_line(&mut String::new());
    Ok(job.leave()?)
}

/// How long `landeck why` takes, from its start to its end, while all but rank 0 wait for rank 0.
pub(crate) fn why(bench: &Bench) -> Result<(), Trouble> {
    /// Longer than a wait must last to be one.
    const SETTLED: Duration = Duration::from_millis(300);
    let (world, size) = (&bench.world, bench.world.size());
    bench.needs(size >= 2, "at least 2 processes")?;
    if world.rank() > 0 {
        send_word(world, 0, 0, tags::REPORT)?;
        receive_word(world, 0, tags::CONTROL)?;
        return Ok(());
    }
    (1..size).try_for_each(|other| receive_word(world, other, tags::REPORT).map(drop))?;
    thread::sleep(SETTLED);
    let launcher = beside("landeck");
    let identity = bench.job.process().segment.to_string();
    for _ in 0..bench.settings.batches {
        let mut command = Command::new(&launcher);
        let start = Instant::now();
        let output = outside_of_job(&mut command).args(["why", &identity]).output();
        let time = start.elapsed();
        let output = finished(&launcher, output)?;
        if !String::from_utf8_lossy(&output.stdout).contains("receive from rank 0") {
            return Err(
                bench.wrong("another answer of `landeck why` than that all wait for rank 0")
            );
        }
        bench.print("", 0, "ms", time.as_secs_f64() * 1e3);
    }
    Ok((1..size).try_for_each(|other| send_word(world, 0, other, tags::CONTROL))?)
}

/// A process that does not take itself for one of this job.
fn outside_of_job(command: &mut Command) -> &mut Command {
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("LANDECK_")) {
            command.env_remove(name);
        }
    }
    command
}

fn own_program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("landeck-points"))
}

/// Another program of the same build.
fn beside(name: &str) -> PathBuf {
    own_program().with_file_name(name)
}

fn ended(program: &Path, output: std::io::Result<Output>) -> Result<(), Trouble> {
    finished(program, output).map(drop)
}

/// Returns the output of a program that has ended well.
fn finished(program: &Path, output: std::io::Result<Output>) -> Result<Output, Trouble> {
    let path = || program.to_owned();
    let output = output.map_err(|error| Trouble::NotUsed { path: path(), error })?;
    match output.status.success() {
        true => Ok(output),
        false => {
            let words = String::from_utf8_lossy(&output.stderr).into_owned();
            Err(Trouble::NotUsed { path: path(), error: std::io::Error::other(words) })
        }
    }
}
