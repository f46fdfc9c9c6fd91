//! A host is lost at a step of an operation over three hosts: its daemon is killed, or its power is gone. The job ends on
//! the other hosts, in time, and the calls of their processes say so.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use landeck::unstable::objects::crash_point;
use landeck::{ErrorKind, Job};
use landeck_testing::Watchdog;
use landeck_testing::hosts::{Hosts, Wish};
use rustix::process::{Pid, Signal, kill_process};

use crate::across::check;
use crate::killed_drivers::{OPERATIONS, operate};
use crate::support::{is_member, is_soak, job_by, launcher, text};

const HOSTS: usize = 3;
const EACH: usize = 2;
/// The process that is at a step when its host is lost: the first of the last host.
const AT_STEP: usize = EACH * (HOSTS - 1);
const DONE: &str = "survivor ended";
/// The environment variable for the kind of loss, the operation and the step.
const FATE: &str = "LANDECK_TEST_FATE";
/// The time within which the job ends on every living host, as the documentation says.
const ENDS_WITHIN_MS: u64 = 10_000;
/// No process may take longer, however busy the computer is.
const HANGS_AFTER_MS: u64 = 60_000;
/// `--host-timeout` in seconds.
const TIMEOUT: &str = "3";
/// The steps at which each operation is tried in soak.
const STEPS: usize = 6;
const SHORT: [(&str, usize, usize); 3] = [("daemon", 0, 1), ("power", 11, 2), ("daemon", 12, 3)];
/// Ends all processes of a host whose network is silent.
const CUT_POWER: &str = "ip link set eth0 down; kill -s KILL -- -1";

fn kill_daemon() {
    let mut pids = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        let pid = entry.file_name().to_str().and_then(|text| text.parse().ok());
        pids.extend(pid.and_then(Pid::from_raw).filter(|_| name == "landeckd\n"));
    }
    assert_eq!(pids.len(), 1, "{pids:?}");
    kill_process(pids[0], Signal::KILL).unwrap();
}

fn cut_power() {
    let ended = Command::new("/bin/sh").args(["-c", CUT_POWER]).status();
    panic!("this process should be dead: {ended:?}");
}

fn operate_until_the_end() {
    let job = Job::join().unwrap();
    let world = job.world();
    let fate = std::env::var(FATE).unwrap();
    let [kind, operation, step] = fate.split(' ').collect::<Vec<_>>().try_into().unwrap();
    let (operation, step) = (operation.parse().unwrap(), step.parse().unwrap());
    check(&world, 1); // there is a connection between all drivers
    world.barrier().unwrap();
    let begun = Instant::now();
    if world.rank() == AT_STEP {
        crash_point::act_at_step(step, if kind == "daemon" { kill_daemon } else { cut_power });
    }
    let mut done = Ok(());
    while done.is_ok() {
        done = operate(&world, operation); // it has the next steps if this one had fewer
    }
    let error = done.unwrap_err();
    let kind = match error.kind {
        ErrorKind::Ended => "by the end of the job",
        // A neighbour whose call has returned has left before this process looks.
        ErrorKind::PeerFailed { .. } => "by a neighbour's",
        _ => panic!("{error}"),
    };
    println!("{DONE} {kind}: {} ms", begun.elapsed().as_millis());
}

#[test]
fn a_host_lost_at_a_step_ends_the_job_on_the_others() {
    if is_member() {
        return operate_until_the_end();
    }
    let test = "killed_hosts::a_host_lost_at_a_step_ends_the_job_on_the_others";
    let _watchdog = Watchdog::start(Duration::from_secs(if is_soak() { 3_600 } else { 300 }));
    launcher(); // it may have to be built
    let Some(mut hosts) = Hosts::or_skip(test, &Wish::hosts(HOSTS)) else { return };
    let each =
        |kind| (0..OPERATIONS).flat_map(move |one| (0..STEPS).map(move |step| (kind, one, step)));
    let fates: Vec<_> =
        if is_soak() { each("daemon").chain(each("power")).collect() } else { SHORT.to_vec() };
    let mut times = Vec::new();
    for (kind, operation, step) in fates {
        let fate = format!("{kind} {operation} {step}");
        let mut command = job_that_ignores_term(&hosts, test);
        let ended = command.env(FATE, &fate).output().unwrap();
        let said = text(&ended);
        assert_eq!(ended.status.code(), Some(137), "{fate}: {said}");
        // On a busy computer the connection of a pair may be given up before the host is.
        let is_named = said.contains("Host n3 is lost") || said.contains(" on n3 failed while");
        assert!(is_named && !said.contains("panicked"), "{fate}: {said}");
        let own = said.lines().filter_map(|line| {
            line.split_once(DONE)?.1.split_once(": ")?.1.strip_suffix(" ms")?.parse::<u64>().ok()
        });
        let own: Vec<u64> = own.collect();
        assert_eq!(own.len(), AT_STEP, "all others: {fate}: {said}");
        assert!(said.contains("by the end of the job"), "{fate}: {said}");
        times.extend(own);
        // What the daemon of the lost host has left ends with it.
        hosts.kill(HOSTS - 1).unwrap();
        hosts.start(HOSTS - 1).unwrap();
    }
    times.sort_unstable();
    let (median, longest) = (times[times.len() / 2], times[times.len() - 1]);
    println!("calls ended after {median} ms (median), {longest} ms (longest)");
    assert!(median < ENDS_WITHIN_MS && longest < HANGS_AFTER_MS, "{times:?}");
}

/// The processes of a job that ends get SIGTERM. These ignore it, so that their calls return.
fn job_that_ignores_term(hosts: &Hosts, test: &str) -> Command {
    let mut command = hosts.command(0, "/bin/sh");
    command.args(["-c", "trap '' TERM; exec \"$0\" \"$@\""]).arg(launcher());
    let list: Vec<String> = (0..HOSTS).map(|host| format!("{}:{EACH}", hosts.name(host))).collect();
    command.args(["run", "--rsh", "landeck-rsh", "--host", &list.join(",")]);
    let options = ["--timeout", "100", "--on-failure", "notify", "--host-timeout", TIMEOUT];
    job_by(command, HOSTS * EACH, test, &options)
}
