//! The process beside the daemon of a machine that stays: it starts the daemon again when that was killed.
//!
//! It has forked the guardian server, so processes outlive a daemon. It holds the daemon's [journal](crate::journal), with which
//! the next run goes on in the place of the last one. When it is killed itself, the daemon gets SIGTERM.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use landeck_host::fork::fork_child;
use landeck_host::say::complain;
use landeck_host::{descendants, detached, process, signals, start_signals};
use landeck_launch::guardian::server::{self, GuardianServer};
use landeck_launch::machine::MachineName;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, getppid, pidfd_open, set_parent_process_death_signal,
};

use crate::journal::{Entries, Journal, KeptJournal};

/// A daemon that was killed so often within a minute stays away.
const STARTS_MAX: usize = 3;
const MINUTE: Duration = Duration::from_secs(60);
/// The name of the process, as `ps` shows it.
const NAME: &std::ffi::CStr = c"landeck-keeper";
/// The exit code of a daemon that has lost its founder, and comes back by its ticket.
pub(crate) const COMES_BACK: u8 = 75;

/// A run of a daemon.
#[derive(Debug)]
pub(crate) struct Run {
    /// The guardian server.
    pub(crate) server: GuardianServer,
    /// The journal that this run writes.
    pub(crate) journal: Journal,
    /// The journal of the run before.
    pub(crate) left: Entries,
    /// The number of runs before this one.
    pub(crate) number: u32,
    /// The end of the run before, in words.
    pub(crate) end_before: Option<String>,
    /// From when the lease of this host counts, if there was a run before.
    pub(crate) leased_from: Option<Duration>,
    /// The record that the run before has written, if it was a founder's.
    pub(crate) record: Option<Vec<u8>>,
    /// The host comes back by its ticket.
    pub(crate) returns: bool,
}

impl Run {
    /// The only run of a daemon without a keeper.
    pub(crate) fn only(server: GuardianServer) -> Self {
        Self {
            server,
            journal: Journal::none(),
            left: Entries::default(),
            number: 0,
            end_before: None,
            leased_from: None,
            record: None,
            returns: false,
        }
    }
}

/// The keeper of one daemon.
struct Keeper<'a> {
    machine: &'a MachineName,
    /// When runs were killed within the last minute.
    kills: Vec<Instant>,
    /// The next run comes back by the ticket of this host.
    returns: bool,
    /// Whether the keeper leaves the standard streams, once there is a run.
    leaves: bool,
}

/// The consequence of the end of an incarnation.
enum Next {
    /// This process is the daemon.
    Run(Run),
    /// The host comes back.
    Returns,
    /// The daemon has ended with this code.
    Ended(u8),
}

/// Forks the daemon of a host, and keeps it. Returns the run in the daemon. In the keeper it returns the exit code of the daemon
/// once that has ended by itself, or stays away. `returns` says whether the host comes back by its ticket, for somebody who
/// waits for the keeper; otherwise the keeper leaves the standard streams.
///
/// # Errors
/// The error of a step: of the kernel, of the guardian server.
pub(crate) fn keep(machine: &MachineName, returns: bool) -> io::Result<Result<Run, u8>> {
    let mut keeper = Keeper { machine, kills: Vec::new(), returns, leaves: !returns };
    loop {
        match keeper.see_an_incarnation()? {
            Next::Run(run) => return Ok(Ok(run)),
            Next::Ended(code) => return Ok(Err(code)),
            Next::Returns => keeper.returns = true,
        }
    }
}

impl Keeper<'_> {
    /// Forks one run after the other, until everything of the host's incarnation has ended.
    fn see_an_incarnation(&mut self) -> io::Result<Next> {
        // Guardians are forked by a process that has neither keys nor sockets.
        let server = server::fork_detached().map_err(io::Error::other)?;
        let (mut left, mut leased_from, mut end_before) = (Entries::default(), None, None);
        let (mut record, mut marker) = (None, None);
        for number in 0.. {
            let (journal, kept) = Journal::pair()?;
            let Some(daemon) = fork_kept()? else {
                drop((kept, marker));
                let _ = rustix::thread::set_name(crate::NAME);
                let (server, returns) = (server.inherited(), self.returns);
                return Ok(Next::Run(Run {
                    server,
                    journal,
                    left,
                    number,
                    end_before,
                    leased_from,
                    record,
                    returns,
                }));
            };
            drop(journal);
            self.begin_to_keep()?;
            kept.says_that_it_keeps()?;
            let status = see_its_end(daemon, &kept, &mut left, || self.mark(&mut marker))?;
            leased_from = kept.leased_from().or(leased_from);
            // A run that was killed before it has written one has decided nothing.
            record = kept.record().or(record);
            end_before = Some(end_in_words(status));
            descendants::kill_all(&[server.pid()]);
            if !was_killed(status) {
                return Ok(match exit_code(status) {
                    COMES_BACK => Next::Returns,
                    code => Next::Ended(code),
                });
            }
            self.kills.retain(|at: &Instant| at.elapsed() < MINUTE);
            if self.kills.len() >= STARTS_MAX {
                break;
            }
            self.kills.push(Instant::now());
            if !left.has_place() {
                return Ok(Next::Returns);
            }
        }
        // With the server the processes end that the daemon has started.
        Ok(Next::Ended(1))
    }

    /// Lets commands know that this machine has a daemon here, also in the moment in which that was killed. A keeper before may
    /// have the name still.
    fn mark(&self, marker: &mut Option<OwnedFd>) {
        if marker.is_none() {
            *marker = self.machine.address_of_keeper().listen_for_streams().ok();
        }
    }

    /// Becomes a keeper, once the first run is there.
    fn begin_to_keep(&mut self) -> io::Result<()> {
        // It is a name alone.
        let _ = rustix::thread::set_name(NAME);
        crate::guard_keys();
        crate::raise_descriptors();
        if std::mem::take(&mut self.leaves) {
            // The process that was started ends soon, and waits for the daemon alone.
            set_parent_process_death_signal(None)?;
            detached::leave_input_and_output()?;
            rustix::stdio::dup2_stderr(io::stdout())?;
        }
        start_signals::take_over();
        Ok(())
    }
}

/// Keeps the journal of a run until that has ended. Returns its raw wait status. A journal that this process has no room for is
/// dropped: the daemon is not started again then. `on_change` is called with each change.
fn see_its_end(
    daemon: u32,
    kept: &KeptJournal,
    entries: &mut Entries,
    mut on_change: impl FnMut(),
) -> io::Result<i32> {
    let pid = Pid::from_raw(daemon.cast_signed()).ok_or(io::ErrorKind::InvalidInput)?;
    let ended = pidfd_open(pid, PidfdFlags::empty())?;
    // What was written before the end is read before the end counts.
    while wait_for(&kept.changes, &ended)? {
        match entries.take(&kept.changes) {
            Ok(true) => on_change(),
            Ok(false) => break,
            Err(error) => {
                complain(format_args!("the keeper of landeckd drops its journal: {error}"));
                *entries = Entries::default();
                // Nobody reads further changes.
                let _ = shutdown(&kept.changes, Shutdown::Both);
                break;
            }
        }
    }
    process::wait_for_end(daemon)
}

/// Waits for the daemon to write, or to end. Returns whether there is something to read.
fn wait_for(writes: &OwnedFd, ended: &OwnedFd) -> io::Result<bool> {
    let mut polled = [writes, ended].map(|it| PollFd::new(it, PollFlags::IN));
    loop {
        match poll(&mut polled, None) {
            Ok(_) => return Ok(!polled[0].revents().is_empty()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Says that the kept daemon is ready, once its keeper does not end with the process that was started. The daemon still ends with
/// its keeper.
///
/// # Errors
/// The kernel's error.
pub(crate) fn is_ready(journal: &Journal) -> io::Result<()> {
    journal.wait_for_keeper()?;
    detached::is_ready("", None)?;
    Ok(set_parent_process_death_signal(Some(Signal::TERM))?)
}

/// Whether a process with this raw wait status was ended by a signal or a panic, and not by its own decision.
fn was_killed(status: i32) -> bool {
    const PANIC: u8 = 101;
    status & 0x7f != 0 || exit_code(status) == PANIC
}

/// The end of a process with this raw wait status, in words.
fn end_in_words(status: i32) -> String {
    match status & 0x7f {
        0 => format!("ended with exit code {}", exit_code(status)),
        signal => format!("was killed by signal {signal} ({})", signals::name(signal).0),
    }
}

/// The exit code; that of a failure for a process that was killed.
fn exit_code(status: i32) -> u8 {
    match status & 0x7f {
        0 => u8::try_from(status >> 8 & 0xff).unwrap_or(1),
        _ => 1,
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_daemon_that_was_killed_is_started_again() {
        let (code, signal) = (|code: i32| code << 8, |signal: i32| signal);
        assert!(was_killed(signal(9)) && was_killed(signal(6)) && was_killed(code(101)));
        assert!(!was_killed(code(0)) && !was_killed(code(1)));
        assert_eq!([code(0), code(75), signal(9)].map(exit_code), [0, COMES_BACK, 1]);
        assert_eq!(end_in_words(signal(9)), "was killed by signal 9 (SIGKILL)");
        assert_eq!(end_in_words(code(101)), "ended with exit code 101");
    }
}
