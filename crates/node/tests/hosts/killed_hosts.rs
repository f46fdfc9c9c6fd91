//! A host is killed while members on it stand at a step of an operation over three hosts: by a loss of power, after which
//! the host is silent, or by a crash of all its processes at once. The job ends, and all calls of survivors that fail say so;
//! or it goes on without that host (`--on-failure notify`), and such calls name a process that was lost with it.
//!
//! A job loses one host. So several groups of it are each in an operation of their own when that happens: their members on
//! the last host stop at the steps where they are to be killed, and the last of them to come there kills the host.

use std::fs::{self, File};
use std::process::Command;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use landeck::unstable::objects::crash_point;
use landeck::{Error, ErrorKind, Job, Maximum, World};
use landeck_testing::Watchdog;
use landeck_testing::hosts::{Hosts, Wish};

use crate::killed_drivers::{OPERATIONS, operate};
use crate::support::{Survivors, is_member, is_soak, job_by, launcher, stay_until_told, text};

const HOSTS: usize = 3;
/// Groups of a job, each with its own operation.
const GROUPS: usize = 8;
/// Members of each group on each host.
const MEMBERS: usize = 2;
const EACH: usize = GROUPS * MEMBERS;
const SURVIVORS: usize = EACH * (HOSTS - 1);
/// The steps that each operation has in its usual way for one of the two members on the host that is killed, at most. If the
/// other one has fewer, its next run has the others. Another way, which measured links may ask for, can have more. A test
/// finds all of them.
const STEPS: [usize; OPERATIONS] = [5, 2, 5, 6, 13, 3, 4, 13, 14, 1, 8, 9, 10, 3, 3, 10];
/// A short run has one of so many jobs, and one way to kill a host in each.
const SHORT_RUN: usize = 3;
/// How much later than the first member the second one on that host calls: so it drives the operations that are started.
const LATER: Duration = Duration::from_millis(5);
const DONE: &str = "survivor done";
/// The environment variable for the command that kills a host, and for the operation and the step of each group.
const FATES: &str = "LANDECK_TEST_FATES";
/// The environment variable for the consequence of a lost host.
const CONSEQUENCE: &str = "LANDECK_TEST_CONSEQUENCE";
const ABORT: &str = "abort";
const NOTIFY: &str = "notify";
/// `--host-timeout` in seconds, and how many times as long a call may take on a busy computer.
const TIMEOUT_S: u64 = 2;
const MARGIN: u64 = 20;
/// More calls than a member on the killed host begins: it comes to a step in each.
const CALLS: usize = 16;
/// The attempts to find the steps of an operation. The member that calls last drives it if it is started, and has more steps.
const ATTEMPTS: usize = 20;
/// Calls of a survivor after the one that has failed first.
const FURTHER_CALLS: usize = 10;
/// The commands that kill the host on which they run. The first one also silences its kernel.
const KILLS: [&str; 2] = ["ip link set eth0 down; kill -s KILL -- -1", "kill -s KILL -- -1"];
/// The directory in which each group that has come to its step has a file. It is the host's own, and new with the host.
const AT_STEPS: &str = "/tmp/at-steps";

/// The group of this process, and the command that kills its host.
static FATE: OnceLock<(usize, &str)> = OnceLock::new();

/// Stays at a step until all groups have come to theirs. Then the host is killed, and this process with it.
fn wait_for_other_groups_and_die() {
    let &(group, kill) = FATE.get().unwrap();
    fs::create_dir_all(AT_STEPS).unwrap();
    File::create(format!("{AT_STEPS}/{group}")).unwrap();
    while fs::read_dir(AT_STEPS).unwrap().count() < GROUPS {
        thread::sleep(Duration::from_millis(1));
    }
    let ended = Command::new("/bin/sh").args(["-c", kill]).status();
    panic!("this process should be dead: {ended:?}");
}

/// The command that kills the host, and the operation and the step of each group.
fn fates() -> (&'static str, Vec<(usize, usize)>) {
    let text = std::env::var(FATES).unwrap();
    let mut numbers = text.split(' ').map(|number| number.parse::<usize>().unwrap());
    let kill = KILLS[numbers.next().unwrap()];
    let rest: Vec<usize> = numbers.collect();
    (kill, rest.chunks(2).map(|pair| (pair[0], pair[1])).collect())
}

fn operate_until_the_end() {
    let job = Job::join().unwrap();
    let (rank, (kill, fates)) = (job.world().rank(), fates());
    let group = rank % GROUPS;
    let (operation, step) = fates[group];
    let world = job.world().split(Some(group as u32), 0).unwrap().unwrap();
    let further = world.duplicate().unwrap(); // members fail in different calls, and this world is in step
    let is_victim = rank >= SURVIVORS;
    operate(&world, operation).unwrap();
    // A slow member may still be in it when a host is killed.
    let mut outcome = world.barrier();
    if is_victim {
        FATE.set((group, kill)).unwrap();
        crash_point::act_at_step(step as u64, wait_for_other_groups_and_die);
    }
    let begun = Instant::now();
    let later = if rank >= SURVIVORS + GROUPS { LATER } else { Duration::ZERO };
    for _ in 0..CALLS {
        thread::sleep(later);
        outcome = outcome.and_then(|()| operate(&world, operation));
    }
    // Some may have what they need in all of these. The next operation needs all members.
    let error = outcome.and_then(|()| world.barrier()).unwrap_err();
    let goes_on = std::env::var(CONSEQUENCE).unwrap() == NOTIFY;
    let is_told = |error: &Error| match error.kind {
        ErrorKind::Ended => !goes_on,
        ErrorKind::PeerFailed { rank: Some(rank), .. } => goes_on && rank >= world.size() - MEMBERS,
        ErrorKind::Revoked { .. } => goes_on,
        _ => false,
    };
    assert!(is_told(&error), "{operation}, step {step}: {error}");
    if goes_on {
        // Others may wait for this member in a later call.
        world.revoke().unwrap();
    }
    for _ in 0..FURTHER_CALLS {
        // A call that waits for nobody may still succeed.
        let outcome = operate(&further, operation);
        assert!(
            outcome.as_ref().err().is_none_or(is_told),
            "{operation}, step {step}: {outcome:?}"
        );
    }
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(MARGIN * TIMEOUT_S), "{operation}, step {step}: {took:?}");
    println!("{DONE}");
    stay_until_told(SURVIVORS);
}

/// The steps that this process begins in one run of an operation.
fn steps_of(world: &World, operation: usize) -> usize {
    const MANY: u64 = 1 << 32;
    let is_second = world.rank() == world.size() - 1;
    world.barrier().unwrap();
    thread::sleep(if is_second { LATER } else { Duration::ZERO });
    crash_point::act_at_step(MANY, || ());
    operate(world, operation).unwrap();
    (MANY - crash_point::steps_left()) as usize
}

/// How often the links are measured for the table of steps.
const MEASUREMENTS: usize = 4;

/// One of the two members on the host that would be killed comes to each step of the table.
fn find_steps() {
    let job = Job::join().unwrap();
    let world = job.world();
    let is_victim = world.rank() >= world.size() - MEMBERS;
    for (operation, steps) in STEPS.into_iter().enumerate() {
        let mut most = 0;
        for _ in 0..ATTEMPTS {
            let own = steps_of(&world, operation) * usize::from(is_victim);
            most = most.max(world.all_reduce(own as u64, Maximum).unwrap() as usize);
            if most >= steps {
                break;
            }
        }
        assert!(most >= steps, "operation {operation} has {most} steps, and the table {steps}");
    }
    job.leave().unwrap();
}

#[test]
fn operations_have_the_steps_at_which_a_host_is_killed() {
    let test = "killed_hosts::operations_have_the_steps_at_which_a_host_is_killed";
    if is_member() {
        return find_steps();
    }
    launcher(); // it may have to be built
    let _watchdog = Watchdog::start(Duration::from_secs(300));
    let Some(hosts) = Hosts::or_skip(test, &Wish::hosts(HOSTS)) else { return };
    // The plan follows from the links as they were measured, and a busy computer may lead to one with fewer steps.
    let run = || job(&hosts, (MEMBERS, test), "exec", &[]).output().unwrap();
    let mut ended = run();
    for _ in 1..MEASUREMENTS {
        if ended.status.success() {
            break;
        }
        ended = run();
    }
    assert!(ended.status.success(), "{}", text(&ended));
}

/// All operations with all their steps. The groups of a job have neighbours in this list, and the last job begins anew.
fn all_fates() -> Vec<(usize, usize)> {
    let each = STEPS.iter().enumerate();
    let mut all: Vec<_> = each
        .flat_map(|(operation, &steps)| (0..steps).map(move |step| (operation, step)))
        .collect();
    let missing = all.len().next_multiple_of(GROUPS) - all.len();
    all.extend_from_within(..missing);
    all
}

#[test]
fn all_survivors_of_a_killed_host_learn_that_the_job_ends() {
    lose_hosts("all_survivors_of_a_killed_host_learn_that_the_job_ends", ABORT);
}

#[test]
fn all_survivors_of_a_killed_host_learn_which_processes_are_lost() {
    lose_hosts("all_survivors_of_a_killed_host_learn_which_processes_are_lost", NOTIFY);
}

/// Runs jobs whose last host is killed, each at other steps.
fn lose_hosts(test: &str, consequence: &str) {
    if is_member() {
        return operate_until_the_end();
    }
    let test = &format!("killed_hosts::{test}");
    launcher(); // it may have to be built
    let _watchdog = Watchdog::start(Duration::from_secs(if is_soak() { 3_600 } else { 300 }));
    let Some(mut hosts) = Hosts::or_skip(test, &Wish::hosts(HOSTS)) else { return };
    for (number, fates) in all_fates().chunks(GROUPS).enumerate() {
        for kill in 0..KILLS.len() {
            if is_soak() || number % SHORT_RUN == 0 && kill == number / SHORT_RUN % KILLS.len() {
                lose_a_host(&mut hosts, (test, consequence), kill, fates);
            }
        }
    }
}

/// Runs a job whose last host is killed.
fn lose_a_host(
    hosts: &mut Hosts,
    (test, consequence): (&str, &str),
    kill: usize,
    fates: &[(usize, usize)],
) {
    let fates: Vec<String> = fates.iter().map(|(one, step)| format!(" {one} {step}")).collect();
    let fates = format!("{kill}{}", fates.concat());
    let mut command = job_that_ignores_term(hosts, test, consequence);
    let _survivors = Survivors::of(&mut command);
    let ended = command.env(FATES, &fates).env(CONSEQUENCE, consequence).output().unwrap();
    let said = text(&ended);
    assert_eq!(ended.status.code(), Some(137), "{fates}: {said}");
    assert!(said.contains("Host n3 is lost") && !said.contains("panicked"), "{fates}: {said}");
    assert_eq!(said.matches(DONE).count(), SURVIVORS, "{fates}: {said}");
    hosts.kill(HOSTS - 1).unwrap();
    hosts.start(HOSTS - 1).unwrap();
}

/// The processes of a job that ends get SIGTERM. These ignore it, so that their calls return.
fn job_that_ignores_term(hosts: &Hosts, test: &str, consequence: &str) -> Command {
    let timeout = TIMEOUT_S.to_string();
    let options = ["--on-failure", consequence, "--grace", "60", "--host-timeout", &timeout];
    job(hosts, (EACH, test), "trap '' TERM; exec", &options)
}

/// A job with so many processes on each host. A shell starts its launcher by these words.
fn job(hosts: &Hosts, (each, test): (usize, &str), words: &str, options: &[&str]) -> Command {
    let mut command = hosts.command(0, "/bin/sh");
    command.args(["-c", &format!("{words} \"$0\" \"$@\"")]).arg(launcher());
    let list: Vec<String> = (0..HOSTS).map(|host| format!("{}:{each}", hosts.name(host))).collect();
    command.args(["run", "--rsh", "landeck-rsh", "--host", &list.join(","), "--timeout", "100"]);
    // The usual way of an exchange depends on the processors that hosts share.
    command.args(["--collectives", "alltoall=hosts:flat"]);
    job_by(command, HOSTS * each, test, options)
}
