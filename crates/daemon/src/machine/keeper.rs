//! The process beside the daemon of a machine that stays: it starts the daemon again when that was killed.
//!
//! The daemon then comes back to its machine by its return ticket. The founder's daemon cannot: the machine ends with it, so
//! it has no keeper. The keeper holds no key and no socket. When it is killed itself, the daemon gets SIGTERM.

use std::io;
use std::time::{Duration, Instant};

use landeck_host::fork::fork_child;
use landeck_host::{descendants, detached, process, start_signals};
use landeck_launch::machine::MachineName;
use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

/// A daemon that was killed so often within a minute stays away.
const STARTS_MAX: usize = 3;
const MINUTE: Duration = Duration::from_secs(60);
/// The name of the process, as `ps` shows it.
const NAME: &std::ffi::CStr = c"landeck-keeper";

/// Forks the daemon of a machine, and keeps it. Returns `None` in the daemon, and in the keeper the exit code of the daemon
/// once that has ended by itself.
///
/// # Errors
/// The kernel's error.
pub(crate) fn keep(machine: &MachineName) -> io::Result<Option<u8>> {
    descendants::adopt_orphans()?;
    let Some(mut daemon) = fork_kept()? else { return Ok(None) };
    // It is a name alone.
    let _ = rustix::thread::set_name(NAME);
    // The process that was started ends soon, and waits for the daemon alone.
    set_parent_process_death_signal(None)?;
    detached::leave_input_and_output()?;
    rustix::stdio::dup2_stderr(io::stdout())?;
    start_signals::take_over();
    let mut starts = Vec::new();
    loop {
        let status = process::wait_for_end(daemon)?;
        if !was_killed(status) {
            return Ok(Some(u8::try_from(status >> 8 & 0xff).unwrap_or(1)));
        }
        end_rest();
        starts.retain(|at: &Instant| at.elapsed() < MINUTE);
        if starts.len() >= STARTS_MAX {
            return Ok(Some(1));
        }
        starts.push(Instant::now());
        match fork_kept()? {
            Some(next) => daemon = next,
            None => return Err(crate::again(machine)),
        }
    }
}

/// Says that the kept daemon is ready. It still ends with its keeper.
///
/// # Errors
/// The kernel's error.
pub(crate) fn is_ready() -> io::Result<()> {
    detached::is_ready("", None)?;
    Ok(set_parent_process_death_signal(Some(Signal::TERM))?)
}

/// Whether a process with this raw wait status was ended by a signal or a panic, and not by its own decision.
fn was_killed(status: i32) -> bool {
    const PANIC: i32 = 101;
    status & 0x7f != 0 || status >> 8 & 0xff == PANIC
}

/// Forks a process that gets SIGTERM when this one ends; `None` in the child.
fn fork_kept() -> io::Result<Option<u32>> {
    let keeper = getpid();
    let child = fork_child().map_err(io::Error::other)?;
    if child.is_none() {
        set_parent_process_death_signal(Some(Signal::TERM))?;
        if getppid() != Some(keeper) {
            return Err(io::Error::other("the process that keeps the daemon has ended"));
        }
    }
    Ok(child)
}

/// Waits until nothing runs any more that the killed daemon has started. Guardians end their processes, and then themselves.
fn end_rest() {
    loop {
        let left = descendants::children();
        let Some(&first) = left.first() else { return };
        // Somebody may have stopped them. The PIDs are valid: they are children of this process, not reaped yet.
        left.iter().for_each(|&pid| process::signal_process(pid, Signal::CONT.as_raw()));
        if process::wait_for_end(first).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_daemon_that_was_killed_is_started_again() {
        let (code, signal) = (|code: i32| code << 8, |signal: i32| signal);
        assert!(was_killed(signal(9)) && was_killed(signal(6)) && was_killed(code(101)));
        assert!(!was_killed(code(0)) && !was_killed(code(1)));
    }
}
