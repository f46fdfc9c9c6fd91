//! Little memory, few descriptors, refused system calls, no /dev/shm: a program runs all the same,
//! or it is told in plain words what it lacks.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

use landeck::{ErrorKind, Job, OneCopy, Tag, ThreadMode};
use landeck_testing::{Random, Trail, Watchdog, seed};
use rustix::io::Errno;
use rustix::thread::{MembarrierCommand, membarrier};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};

use crate::support::{
    GONE_WITHIN, RUN_MAX, SmallGroup, in_job, is_member, job_of, run_well, skipped, text,
};

/// Set where the system calls are refused.
const FILTER: &str = "LANDECK_TEST_FILTER";

#[test]
fn refused_system_calls_are_lived_without() {
    let name = "limits::refused_system_calls_are_lived_without";
    if is_member() {
        return in_job(2, name, ThreadMode::Single, |job| {
            assert_eq!(membarrier(MembarrierCommand::GlobalExpedited), Err(Errno::PERM));
            wake_each_other(job);
            job.world().set_one_copy(OneCopy::From(16 << 10)).unwrap();
            exchange(job, 1 << 18, 10);
        });
    }
    if std::env::var_os(FILTER).is_some() {
        refuse(&[libc::SYS_process_vm_readv, libc::SYS_process_vm_writev, libc::SYS_membarrier]);
        panic!("cannot start the launcher: {}", job_of(2, name, &[]).exec());
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([name, "--exact", "--nocapture", "--test-threads=1"]).env(FILTER, "1");
    run_well(&mut command);
}

#[test]
fn nothing_needs_dev_shm() {
    let name = "limits::nothing_needs_dev_shm";
    if is_member() {
        return in_job(3, name, ThreadMode::Single, |job| {
            assert!(std::fs::write("/dev/shm/landeck-probe", "").is_err(), "it is covered");
            exchange(job, 1 << 18, 10);
        });
    }
    let cover = "mount -t tmpfs -o ro,size=4k none /dev/shm";
    let mut alone = Command::new("unshare");
    alone.args(["--mount", "sh", "-c"]);
    let possible = alone.arg(cover).output();
    if !possible.is_ok_and(|output| output.status.success()) {
        return skipped(name, "no file system can be mounted here (needs root)");
    }
    let mut alone = Command::new("unshare");
    alone.args(["--mount", "sh", "-c", &format!("{cover} && exec \"$0\" \"$@\"")]);
    run_well(&mut then(alone, &job_of(3, name, &[])));
}

#[test]
fn a_job_fits_into_64_mebibytes() {
    let name = "limits::a_job_fits_into_64_mebibytes";
    if is_member() {
        return in_job(4, name, ThreadMode::Single, |job| exchange(job, 1 << 18, 20));
    }
    let Some(group) = SmallGroup::new(64 << 20) else { return skipped(name, SmallGroup::NONE) };
    run_well(&mut then(shell(&group.enter()), &job_of(4, name, &[])));
}

#[test]
fn the_shared_heap_is_smaller_than_the_memory_group() {
    let name = "limits::the_shared_heap_is_smaller_than_the_memory_group";
    if is_member() {
        return in_job(2, name, ThreadMode::Single, |job| {
            let mut loans = Vec::new();
            let full = loop {
                match job.loan::<u64>(1 << 18) {
                    Ok(mut loan) => {
                        loan.fill(1);
                        loans.push(loan);
                    }
                    Err(full) => break full,
                }
            };
            assert!(matches!(full.kind, ErrorKind::Heap(_)), "{full}");
            drop(loans);
            exchange(job, 1 << 18, 5);
        });
    }
    let Some(group) = SmallGroup::new(64 << 20) else { return skipped(name, SmallGroup::NONE) };
    run_well(&mut then(shell(&group.enter()), &job_of(2, name, &[])));
}

#[test]
fn a_process_with_too_little_address_space_is_told_so() {
    let name = "limits::a_process_with_too_little_address_space_is_told_so";
    if is_member() {
        let error = Job::join().expect_err("there is no room for the segment");
        eprintln!("Error: {error}");
        std::process::exit(1);
    }
    let ended = run(&mut job_under("ulimit -v 1000000", name));
    let told = text(&ended);
    assert_eq!(ended.status.code(), Some(1), "{told}");
    let words = "the kernel gives no shared memory of ";
    assert!(told.contains(words) && told.contains("ulimit -v"), "{told}");
    assert!(!told.contains("panicked"), "{told}");
}

#[test]
fn limits_that_suffice_change_nothing_in_a_process() {
    let name = "limits::limits_that_suffice_change_nothing_in_a_process";
    if is_member() {
        return in_job(3, name, ThreadMode::Single, |job| exchange(job, 1 << 16, 10));
    }
    // As many descriptors as are open, and files as long as a page.
    for limit in ["ulimit -n 5", "ulimit -f 4", "ulimit -v 8000000", "ulimit -l 0"] {
        let ended = run(&mut job_under(limit, name));
        assert!(ended.status.success(), "{limit}: {}", text(&ended));
    }
}

/// Refuses system calls to this thread and all it starts.
pub(crate) fn refuse(calls: &[i64]) {
    let rules: BTreeMap<i64, Vec<_>> = calls.iter().map(|&call| (call, Vec::new())).collect();
    let refused = SeccompAction::Errno(Errno::PERM.raw_os_error() as u32);
    let architecture = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, architecture).unwrap();
    let program: BpfProgram = filter.try_into().unwrap();
    apply_filter(&program).unwrap();
}

/// Two processes that are asleep, or just about to be, when something comes for them.
fn wake_each_other(job: &Job) {
    let world = job.world();
    let other = 1 - world.rank();
    let mut random = Random::new(seed());
    let mut into = [0u32];
    for round in 0..300u32 {
        if round % 2 == world.rank() as u32 {
            thread::sleep(Duration::from_micros(random.below(3_000)));
            world.send(&[round], other, Tag(1)).unwrap();
        } else {
            let soon = Duration::from_secs(100);
            world.receive_into_within(&mut into, other, Tag(1), soon).unwrap();
            assert_eq!(into, [round]);
        }
    }
    // Where others compute, what is waited for may always be there by the time this runs again.
    while job.counters().sleeps == 0 {
        let moment = Duration::from_millis(20);
        assert!(world.receive_into_within(&mut into, other, Tag(3), moment).is_err());
    }
    world.barrier().unwrap();
}

/// Messages of three lengths around the ring of processes, the longest of `most` values.
pub(crate) fn exchange(job: &Job, most: usize, rounds: u64) {
    let world = job.world();
    let (rank, size) = (world.rank(), world.size());
    let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
    for round in 0..rounds {
        for length in [1, most / 256, most] {
            let mut into = vec![0; length];
            let values = vec![round << 8 | rank as u64; length];
            let (to, from) = ((next, Tag(2)), (previous, Tag(2)));
            world.send_receive(&values, to, &mut into, from).unwrap();
            assert_eq!(into, vec![round << 8 | previous as u64; length]);
        }
    }
}

/// Runs a job that need not end well, but leaves nothing.
fn run(command: &mut Command) -> Output {
    let _watchdog = Watchdog::start(2 * RUN_MAX);
    let trail = Trail::new();
    let ended = trail.run(command, RUN_MAX);
    trail.assert_gone(GONE_WITHIN);
    ended
}

/// A shell that does something and becomes whatever it is given.
fn shell(first: &str) -> Command {
    let mut command = Command::new("bash");
    command.args(["-c", &format!("{first} && exec \"$0\" \"$@\"")]);
    command
}

/// Has one command start another.
fn then(mut first: Command, second: &Command) -> Command {
    first.arg(second.get_program()).args(second.get_args());
    first
}

/// A job of three in which a shell does something before each process.
fn job_under(first: &str, test: &str) -> Command {
    let plain = job_of(3, test, &[]);
    let program = std::env::current_exe().unwrap();
    let arguments: Vec<_> = plain.get_args().collect();
    let place = arguments.iter().position(|argument| *argument == program).unwrap();
    let (launcher, program) = arguments.split_at(place);
    let shell = shell(first);
    let mut command = Command::new(plain.get_program());
    command.args(launcher).arg(shell.get_program()).args(shell.get_args()).args(program);
    command
}
