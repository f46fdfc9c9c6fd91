//! kill -9 of one rank in the middle of each operation, while the others stay: every one of them is told at once. So are
//! those that miss a neighbour which has left.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::{Launcher, Library, RUN_LIMIT, command, launcher, program};
use landeck_testing::deaths::{self, DeathPlace};
use landeck_testing::hosts::{Hosts, Wish};
use landeck_testing::{Trail, Watchdog, jobs};

/// How long the test may take, with compiling.
const LIMIT: Duration = Duration::from_secs(1_000);

/// A job of so many processes that go on without those that fail.
fn job(place: DeathPlace<'_>, processes: u64, program: &Path) -> Command {
    // The number of a process on another host is another process here, so the place is explicit.
    let mut job = match place {
        DeathPlace::Here => jobs::run_here(launcher()),
        DeathPlace::Over(hosts) => jobs::run_on(hosts, launcher(), processes as usize),
    };
    job.args(["--on-failure", "notify", "-n", &processes.to_string()]).arg(program);
    let usual = command(Launcher::LandeckHere, Library::Ours, 1, program);
    job.envs(usual.get_envs().filter_map(|(name, value)| Some((name, value?))));
    job
}

fn kill_in_each_operation(place: DeathPlace<'_>) {
    let program = program("deaths");
    let names = &mut command(Launcher::None, Library::Ours, 1, &program);
    let job = |processes: u64| job(place, processes, &program);
    deaths::kill_in_each_operation(names, place, job, |text, pid| {
        text.contains(&format!("pid {pid}) was killed by signal 9"))
    });
}

#[test]
fn the_others_are_told_of_a_death_in_every_operation_while_all_of_them_stay() {
    let _watchdog = Watchdog::start(LIMIT);
    kill_in_each_operation(DeathPlace::Here);
}

#[test]
fn the_others_are_told_over_hosts_as_well() {
    let _watchdog = Watchdog::start(LIMIT);
    let wish = Wish::hosts(2);
    if let Some(hosts) = Hosts::or_skip("the_others_are_told_over_hosts_as_well", &wish) {
        kill_in_each_operation(DeathPlace::Over(&hosts));
    }
}

#[test]
fn all_members_are_told_of_a_neighbour_that_has_left_while_all_of_them_stay() {
    const PROCESSES: usize = 6;
    let _watchdog = Watchdog::start(LIMIT);
    let trail = Trail::new();
    let mut job = job(DeathPlace::Here, PROCESSES as u64, &program("departed_neighbour"));
    let mut launcher = trail.spawn(job.stdout(Stdio::piped()).stderr(Stdio::null()));
    let output = BufReader::new(launcher.stdout.take().expect("it is piped"));
    let told = output.lines().take(PROCESSES - 1).map(|line| line.expect("it is text"));
    let told: Vec<String> = told.collect();
    trail.kill();
    let _ = launcher.wait();
    trail.assert_gone(Duration::from_secs(60));
    let is_right =
        |text: &String| text.contains(": rank 1 (pid") && text.contains("has left the job");
    assert!(told.len() == PROCESSES - 1 && told.iter().all(is_right), "{told:#?}");
}

#[test]
fn errors_in_statuses_and_other_communicators_name_the_dead_as_the_user_knows_it() {
    let _watchdog = Watchdog::start(LIMIT);
    let output = Trail::new().run(&mut job(DeathPlace::Here, 4, &program("names")), RUN_LIMIT);
    let (said, errors) = (text(&output.stdout), text(&output.stderr));
    for rank in 0..3 {
        let line = format!("names: rank {rank} was told who died");
        assert!(said.lines().any(|said| said == line), "{line}: {said}\n{errors}");
    }
}

fn text(output: &[u8]) -> String {
    String::from_utf8_lossy(output).into_owned()
}
