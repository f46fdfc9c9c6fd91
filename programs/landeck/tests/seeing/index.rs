//! The index of jobs: the remains of a killed job are removed at the next look.

use super::*;
use std::fs::read_dir;

#[test]
fn the_entry_of_a_killed_job_goes_when_anybody_looks() {
    if is_member() {
        return take_part(|_, _| stay());
    }
    let job = Watched::start(2, "index::the_entry_of_a_killed_job_goes_when_anybody_looks");
    let said = job.until_said(&["ps"], "rank 1");
    let launcher = job.child.as_ref().unwrap().id();
    assert!(said.contains(&format!("launcher pid {launcher}, agent pid ")), "{said}");
    let entries = || read_dir(job.runtime.join("landeck")).unwrap().count();
    assert_eq!(entries(), 1);
    // No process is left to clean up: all are stopped before the first is killed. The launcher comes last, because
    // the system wakes stopped processes when the parent of their group has ended.
    let mut processes: Vec<u32> = job.trail.processes().into_iter().map(|(pid, _)| pid).collect();
    processes.sort_by_key(|&pid| pid == launcher);
    for signal in [Signal::STOP, Signal::KILL] {
        for &pid in &processes {
            let _ = kill_process(Pid::from_raw(pid as i32).unwrap(), signal);
        }
        while signal == Signal::STOP && !processes.iter().all(|&pid| is_halted(pid)) {
            std::thread::yield_now();
        }
    }
    job.trail.assert_gone(support::GONE_WITHIN);
    assert_eq!(entries(), 1, "nobody has looked");
    let said = support::text(&job.landeck(&["why"]));
    assert!(said.contains("no job"), "{said}");
    assert_eq!(entries(), 0);
}

#[test]
fn the_entry_of_a_killed_guardian_goes_with_its_launcher() {
    if is_member() {
        return take_part(|_, _| stay());
    }
    let mut job = Watched::start(2, "index::the_entry_of_a_killed_guardian_goes_with_its_launcher");
    job.until_said(&["ps"], "rank 1");
    let entries = || read_dir(job.runtime.join("landeck")).unwrap().count();
    assert_eq!(entries(), 1);
    let is_guardian = |pid: &u32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.trim_end() == "landeck-guard"
    };
    let mut processes = job.trail.processes().into_iter().map(|(pid, _)| pid);
    let guardian = processes.find(is_guardian).unwrap();
    kill_process(Pid::from_raw(guardian as i32).unwrap(), Signal::KILL).unwrap();
    let ended = job.child.take().unwrap().wait().unwrap();
    assert_eq!((ended.code(), entries()), (Some(137), 0));
}

/// Whether a process does nothing at present, because of a signal, or any more.
fn is_halted(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, fields)| fields.starts_with(['T', 'Z', 'X']))
}

#[test]
fn a_job_is_found_without_an_index() {
    if is_member() {
        return take_part(|_, _| stay());
    }
    let job = Watched::start(1, "index::a_job_is_found_without_an_index");
    job.until_said(&["ps"], "rank 0");
    let mut command = Command::new(env!("CARGO_BIN_EXE_landeck"));
    let nowhere = job.runtime.join("elsewhere");
    std::fs::create_dir(&nowhere).unwrap();
    command.env("XDG_RUNTIME_DIR", nowhere).args(["ps", &job.name]);
    let said = support::text(&command.output().unwrap());
    assert!(said.contains("rank 0"), "{said}");
    job.end();
}
