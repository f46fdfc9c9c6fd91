//! The processes below this one: finds them and ends them all.
//!
//! This works for a process that adopts the orphans below it (a subreaper). Children of a killed process become its
//! own, so killing children until none is left ends every descendant.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, set_child_subreaper};
use rustix::time::Timespec;

use crate::process::{self, Change};

/// How long a killed process may take to end. Only a process that the kernel cannot interrupt takes longer, as with a
/// dead network disk; it is left to the system's first process.
const PATIENCE: Duration = Duration::from_secs(5);

/// Makes this process adopt every orphan among its descendants.
///
/// # Errors
/// The kernel's error.
pub fn adopt_orphans() -> io::Result<()> {
    // Any non-zero number switches it on.
    Ok(set_child_subreaper(Some(Pid::INIT))?)
}

/// The children of this process, zombies included.
pub fn children() -> Vec<u32> {
    listed_children().unwrap_or_else(scanned_children)
}

/// Kills and reaps every descendant except those in `spared` and below them. Returns whether none was left; a process
/// that cannot be interrupted is waited for only for a while.
pub fn kill_all(spared: &[u32]) -> bool {
    let give_up = Instant::now() + PATIENCE;
    loop {
        let mut doomed = children();
        doomed.retain(|pid| !spared.contains(pid));
        if doomed.is_empty() && (!spared.is_empty() || is_childless()) {
            return true;
        }
        if Instant::now() >= give_up {
            return false;
        }
        for &pid in &doomed {
            // It is our own child and not yet reaped, so the PID means no other process.
            let _ = Pid::from_raw(pid.cast_signed()).map(|pid| kill_process(pid, Signal::KILL));
        }
        for &pid in &doomed {
            reap(pid, give_up);
        }
    }
}

/// Waits for a killed child to end, and reaps it.
fn reap(pid: u32, give_up: Instant) {
    let Some(number) = Pid::from_raw(pid.cast_signed()) else { return };
    if let Ok(pidfd) = pidfd_open(number, PidfdFlags::empty()) {
        wait_for(&pidfd, give_up.saturating_duration_since(Instant::now()));
    }
    // If it did not end, or another thread reaped it, the next round finds out.
    let _ = process::settle(pid, Change::Ended(0));
}

fn wait_for(pidfd: &OwnedFd, patience: Duration) {
    let patience = Timespec::try_from(patience).unwrap_or_default();
    // Interrupted or not, the caller looks again.
    let _ = poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&patience));
}

fn is_childless() -> bool {
    process::look().is_ok_and(|look| look == process::ChildLook::Childless)
}

/// The children as the kernel lists them, if it supports that.
fn listed_children() -> Option<Vec<u32>> {
    let mut found = Vec::new();
    for thread in fs::read_dir("/proc/self/task").ok()? {
        let list = fs::read_to_string(thread.ok()?.path().join("children")).ok()?;
        found.extend(list.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
    }
    Some(found)
}

/// The children, found by asking every process for its parent.
fn scanned_children() -> Vec<u32> {
    let own = std::process::id();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|&pid| parent_of(pid) == Some(own)).collect()
}

/// The parent of a process, as /proc tells it.
pub fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain anything; the state and the parent follow it.
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn both_ways_find_a_child() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        assert!(scanned_children().contains(&child.id()));
        assert!(listed_children().is_none_or(|list| list.contains(&child.id())));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!children().contains(&child.id()));
    }
}
