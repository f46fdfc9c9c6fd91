//! Whatever is killed, and whatever is too small: nothing is left, and a plain message is said.

use super::*;
use crate::support::{SmallGroup, skipped};
use rustix::process::Signal;

/// Shells that start something themselves, and lose sight of it.
const FAMILY: &str = "sleep 51 & (setsid sleep 52 & ) ; echo ready; wait";

fn assert_nothing_in_shared_memory() {
    let files = landeck_testing::leftovers();
    let files: Vec<&String> = files.iter().filter(|left| left.contains("/dev/shm")).collect();
    assert!(files.is_empty(), "{files:?}");
}

#[test]
fn a_killed_process_ends_the_job() {
    let script = "sleep 51 & (setsid sleep 52 & ) ; echo $$; wait";
    let mut running = start(&mut landeck_run(&["-n", "3", "sh", "-c", script]));
    let pids = [running.line(), running.line(), running.line()];
    send(pids[1].parse().unwrap(), Signal::KILL);
    let ended = running.end();
    assert_eq!(ended.code, Some(137));
    assert!(ended.err.contains("was killed by signal 9 (kill)"), "{}", ended.err);
    assert!(ended.err.contains("The other 2 processes were ended"), "{}", ended.err);
    assert_nothing_in_shared_memory();
}

#[test]
fn a_killed_launcher_leaves_nothing() {
    let running = start_shells(3, &[], FAMILY);
    running.signal(Signal::KILL);
    assert_eq!(running.end().code, None);
    assert_nothing_in_shared_memory();
}

#[test]
fn a_killed_guardian_leaves_nothing() {
    let running = start_shells(3, &[], FAMILY);
    send(running.guardian(), Signal::KILL);
    let ended = running.end();
    assert_eq!(ended.code, Some(137));
    assert!(ended.err.contains("The guardian of the job was killed"), "{}", ended.err);
    assert_nothing_in_shared_memory();
}

#[test]
fn both_killed_at_once_leave_no_process_of_the_job() {
    let running = start_shells(3, &[], "echo ready; exec sleep 50");
    let guardian = running.guardian();
    running.signal(Signal::STOP);
    send(guardian, Signal::KILL);
    running.signal(Signal::KILL);
    running.end();
    assert_nothing_in_shared_memory();
}

#[test]
fn a_job_that_ends_well_leaves_nothing_behind() {
    let ended = run_shells(2, &[], "setsid sleep 53 >/dev/null 2>&1 & exit 0");
    assert_eq!(ended.code, Some(0));
}

#[test]
fn a_process_has_its_streams_and_the_segment() {
    // Descriptors that the test itself has without close-on-exec are passed on to every process.
    let list = ["ls", "-l", "--color=never", "/proc/self/fd"];
    let bare = run_command(Command::new(list[0]).args(&list[1..])).out;
    let mut expected = opened(&bare);
    expected.push("/memfd:".to_owned());
    expected.sort();
    for rank in ["0", "1"] {
        let ended = run(&[&["-n", "2", "--stdin", rank], &list[..]].concat());
        let (one, other) = ended.out.split_at(ended.out.find("\ntotal").unwrap() + 1);
        assert_eq!(opened(one), expected);
        assert_eq!(opened(other), expected);
    }
}

/// The open descriptors in a listing, without numbers and names that differ each time.
fn opened(list: &str) -> Vec<String> {
    let targets = list.lines().filter_map(|line| line.split_once(" -> "));
    let mut kinds: Vec<String> = targets
        .map(|(_, target)| match target.starts_with("/memfd:") {
            true => "/memfd:".to_owned(),
            false => target.chars().filter(|letter| !letter.is_ascii_digit()).collect(),
        })
        .collect();
    kinds.sort();
    kinds
}

/// Runs a job of `n` processes under `ulimit`.
fn run_limited(limit: &str, n: u32) -> Ended {
    let launcher = env!("CARGO_BIN_EXE_landeck");
    let line = format!("ulimit {limit} && exec {launcher} run -n {n} echo hello");
    run_command(Command::new("bash").args(["-c", &line]))
}

#[test]
fn small_limits_are_named() {
    let cases = [
        ("-n 60", "open files", "ulimit -Hn"),
        ("-f 1000", "limit of the file size", "ulimit -f"),
        ("-f 1", "limit of the file size is 1.0 KiB", "ulimit -f"),
        ("-v 100000", "limit of address space", "ulimit -v"),
    ];
    for (limit, words, way) in cases {
        let ended = run_limited(limit, 20);
        assert_eq!(ended.code, Some(125), "{limit}: {}", ended.err);
        assert!(ended.err.starts_with("landeck: 20 processes need "), "{limit}: {}", ended.err);
        assert!(ended.err.contains(words) && ended.err.contains(way), "{limit}: {}", ended.err);
        assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
    }
}

#[test]
fn a_limit_of_processes_is_named() {
    let name = "a_limit_of_processes_is_named";
    if !rustix::process::geteuid().is_root() {
        return skipped(name, "the test is to be another user, and only root can");
    }
    let launcher = env!("CARGO_BIN_EXE_landeck");
    let user = ["--reuid=65533", "--regid=65533", "--clear-groups"];
    let mut command = Command::new("prlimit");
    command.args(["--nproc=1", "setpriv"]).args(user).args([launcher, "run", "-n", "1", "true"]);
    // The figures of root's host are not for others to read.
    command.env("HOME", "/").env_remove("XDG_CACHE_HOME");
    let ended = run_command(&mut command);
    if ended.err.contains("Permission denied") {
        return skipped(name, "other users cannot reach the launcher where it was built");
    }
    assert_eq!(ended.code, Some(125));
    let words = "landeck: the guardian cannot be forked: ";
    assert!(ended.err.starts_with(words) && ended.err.contains("ulimit -u"), "{}", ended.err);
}

#[test]
fn too_many_processes_are_refused() {
    let ended = run(&["-n", "16368", "true", ":", "-n", "16368", "true"]);
    assert_eq!(ended.code, Some(125));
    assert!(ended.err.starts_with("landeck: a job has at most "), "{}", ended.err);
    assert!(ended.err.contains("not 32,736"), "{}", ended.err);
}

#[test]
fn limits_that_suffice_change_nothing_that_is_seen() {
    for limit in ["-Sn 40", "-f 200000", "-v 8000000"] {
        let ended = run_limited(limit, 4);
        assert_eq!(
            (ended.code, ended.out.as_str()),
            (Some(0), "hello\n".repeat(4).as_str()),
            "{limit}"
        );
        assert_eq!(ended.err, "", "{limit}");
    }
}

#[test]
fn running_out_of_memory_is_called_that() {
    let Some(group) = SmallGroup::new(64 << 20) else {
        return skipped("running_out_of_memory_is_called_that", SmallGroup::NONE);
    };
    let launcher = env!("CARGO_BIN_EXE_landeck");
    let hog = "[ $RANK = 1 ] && exec tail /dev/zero; exec sleep 50";
    let line = format!("{} && exec {launcher} run -n 2 sh -c '{hog}'", group.enter());
    let ended = run_command(Command::new("sh").args(["-c", &line]));
    assert_eq!(ended.code, Some(137));
    let words = "memory ran out under the limit of 64.0 MiB of its control group";
    assert!(ended.err.starts_with("rank 1 of 2") && ended.err.contains(words), "{}", ended.err);
}
