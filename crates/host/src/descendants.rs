//! The processes below this one: finding them, and leaving none.
//!
//! For a process that adopts the orphans below it (a subreaper): whatever is killed, its children
//! become ours, so killing children until there are none ends every descendant.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, set_child_subreaper};
use rustix::time::Timespec;

use crate::process::{self, Change};

/// How long a killed process may take to end. Longer takes only one that the kernel cannot
/// interrupt, as with a dead network disk: it is left to the system's first process.
const PATIENCE: Duration = Duration::from_secs(5);

/// Makes this process the one that adopts every orphan among its descendants.
///
/// # Errors
/// What the kernel answered.
pub fn adopt_orphans() -> io::Result<()> {
    // Any number but none switches it on.
    Ok(set_child_subreaper(Some(Pid::INIT))?)
}

/// The children of this process, zombies included.
pub fn children() -> Vec<u32> {
    listed_children().unwrap_or_else(scanned_children)
}

/// Kills and reaps every descendant but those in `spared` and below them. Says whether none was
/// left; one that cannot be interrupted is waited for only a while.
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
            // Our own child, not yet reaped: the number means nobody else.
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
    // Where it did not end, or somebody else reaped it, the next round finds out.
    let _ = process::settle(pid, Change::Ended(0));
}

fn wait_for(pidfd: &OwnedFd, patience: Duration) {
    let patience = Timespec::try_from(patience).unwrap_or_default();
    // Interrupted or not, the caller looks again.
    let _ = poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&patience));
}

fn is_childless() -> bool {
    process::look().is_ok_and(|look| look == process::Look::Childless)
}

/// As the kernel lists them, where it does.
fn listed_children() -> Option<Vec<u32>> {
    let mut found = Vec::new();
    for thread in fs::read_dir("/proc/self/task").ok()? {
        let list = fs::read_to_string(thread.ok()?.path().join("children")).ok()?;
        found.extend(list.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
    }
    Some(found)
}

/// Found by asking every process for its parent.
fn scanned_children() -> Vec<u32> {
    let own = std::process::id();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|&pid| parent_of(pid) == Some(own)).collect()
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything; the state and the parent come after it.
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
