//! The signals that the launcher gets, and their meaning for the job.
//!
//! | signal | meaning |
//! |---|---|
//! | INT | passed on; twice within [`TWICE_MAX`]: everything is killed |
//! | TERM, HUP | the job is ended: SIGTERM, the grace time, SIGKILL |
//! | QUIT, USR1, USR2, WINCH | passed on |
//! | TSTP | passed on, then the launcher stops as well |
//! | CONT | passed on |
//!
//! A signal that was ignored when the launcher started stays ignored, as under `nohup`.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use crate::start_signals::is_ignored;

/// Two interrupts within this time kill the job.
pub const TWICE_MAX: Duration = Duration::from_secs(2);

const CAUGHT: [i32; 9] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGWINCH,
    libc::SIGTSTP,
    libc::SIGCONT,
];

/// The value that comes with the SIGTERM of [`end_by_command`].
const BY_COMMAND: usize = 0x6c61_6e64;

/// The launcher's signals, caught in a descriptor.
#[derive(Debug)]
pub struct CaughtSignals {
    descriptor: OwnedFd,
}

/// A signal that has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaughtSignal {
    /// Its number.
    pub number: i32,
    /// Whether `landeck end` has sent it, by [`end_by_command`].
    pub is_by_command: bool,
}

/// The consequence of a signal for the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaction {
    /// Every process gets the signal too.
    Forward(i32),
    /// The processes are asked to end, and killed after the grace time.
    End,
    /// The processes are killed.
    Kill,
    /// The processes are stopped, then the launcher.
    Suspend,
}

/// Decides on the reaction to signals.
#[derive(Debug, Default)]
pub struct SignalConduct {
    interrupted_at: Option<Instant>,
}

impl CaughtSignals {
    /// Blocks the signals and catches them from now on, until the process ends.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn catch() -> io::Result<CaughtSignals> {
        // SAFETY: the set is initialised by sigemptyset before it is read; all arguments point to it.
        let descriptor = unsafe {
            let mut set = MaybeUninit::<libc::sigset_t>::uninit();
            libc::sigemptyset(set.as_mut_ptr());
            for signal in CAUGHT.into_iter().filter(|&signal| !is_ignored(signal)) {
                libc::sigaddset(set.as_mut_ptr(), signal);
            }
            let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
            let descriptor = libc::signalfd(-1, set.as_ptr(), flags);
            // A file that becomes too large must be an error of the write, as a full disk is.
            libc::sigaddset(set.as_mut_ptr(), libc::SIGXFSZ);
            libc::sigprocmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
            descriptor
        };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and has no other owner.
        Ok(CaughtSignals { descriptor: unsafe { OwnedFd::from_raw_fd(descriptor) } })
    }

    /// The next signal that has come; `None` if there is none.
    pub fn next(&self) -> Option<CaughtSignal> {
        let mut information = MaybeUninit::<libc::signalfd_siginfo>::uninit();
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the kernel writes at most `size` bytes there.
        let count = unsafe {
            libc::read(self.descriptor.as_raw_fd(), information.as_mut_ptr().cast(), size)
        };
        if usize::try_from(count) != Ok(size) {
            return None;
        }
        // SAFETY: the kernel has written all of it.
        let came = unsafe { information.assume_init() };
        let is_by_command = came.ssi_code == libc::SI_QUEUE && came.ssi_ptr == BY_COMMAND as u64;
        Some(CaughtSignal { number: i32::try_from(came.ssi_signo).ok()?, is_by_command })
    }
}

impl AsFd for CaughtSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl SignalConduct {
    /// The reaction to a signal that came at `now`.
    pub fn react(&mut self, signal: i32, now: Instant) -> Reaction {
        match signal {
            libc::SIGINT => {
                let last = self.interrupted_at.replace(now);
                match last.is_some_and(|last| now.duration_since(last) <= TWICE_MAX) {
                    true => Reaction::Kill,
                    false => Reaction::Forward(signal),
                }
            }
            libc::SIGTERM | libc::SIGHUP => Reaction::End,
            libc::SIGTSTP => Reaction::Suspend,
            _ => Reaction::Forward(signal),
        }
    }
}

/// Sends SIGTERM to a launcher, which learns that `landeck end` has done it.
///
/// # Errors
/// The kernel's error: there is no such process, or it is another user's.
pub fn end_by_command(launcher: u32) -> io::Result<()> {
    let pid = libc::pid_t::try_from(launcher).map_err(io::Error::other)?;
    let value = libc::sigval { sival_ptr: std::ptr::without_provenance_mut(BY_COMMAND) };
    // SAFETY: the kernel passes the value on and reads nothing there.
    match unsafe { libc::sigqueue(pid, libc::SIGTERM, value) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Stops this process as the terminal's stop key would, until it is continued.
pub fn stop_self() {
    // SAFETY: raise has no preconditions; SIGSTOP cannot be caught.
    unsafe { libc::raise(libc::SIGSTOP) };
}

/// The name of a signal, and its usual meaning.
pub fn name(signal: i32) -> (&'static str, &'static str) {
    match signal {
        libc::SIGHUP => ("SIGHUP", "hangup"),
        libc::SIGINT => ("SIGINT", "interrupt"),
        libc::SIGQUIT => ("SIGQUIT", "quit"),
        libc::SIGILL => ("SIGILL", "illegal instruction"),
        libc::SIGTRAP => ("SIGTRAP", "trap"),
        libc::SIGABRT => ("SIGABRT", "abort"),
        libc::SIGBUS => ("SIGBUS", "bus error"),
        libc::SIGFPE => ("SIGFPE", "arithmetic error"),
        libc::SIGKILL => ("SIGKILL", "kill"),
        libc::SIGUSR1 => ("SIGUSR1", "user signal 1"),
        libc::SIGSEGV => ("SIGSEGV", "segmentation fault"),
        libc::SIGUSR2 => ("SIGUSR2", "user signal 2"),
        libc::SIGPIPE => ("SIGPIPE", "nobody reads the pipe"),
        libc::SIGALRM => ("SIGALRM", "alarm"),
        libc::SIGTERM => ("SIGTERM", "termination"),
        libc::SIGXCPU => ("SIGXCPU", "processor time limit"),
        libc::SIGXFSZ => ("SIGXFSZ", "file size limit"),
        libc::SIGSYS => ("SIGSYS", "forbidden system call"),
        _ => ("signal", "unnamed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_interrupt_soon_after_the_first_kills() {
        let mut conduct = SignalConduct::default();
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let forward = Reaction::Forward(libc::SIGINT);
        assert_eq!(conduct.react(libc::SIGINT, at(0)), forward);
        assert_eq!(conduct.react(libc::SIGINT, at(3)), forward);
        assert_eq!(conduct.react(libc::SIGINT, at(5)), Reaction::Kill);
    }

    #[test]
    fn every_signal_has_its_meaning() {
        let mut conduct = SignalConduct::default();
        let mut react = |signal| conduct.react(signal, Instant::now());
        assert_eq!(react(libc::SIGTERM), Reaction::End);
        assert_eq!(react(libc::SIGHUP), Reaction::End);
        assert_eq!(react(libc::SIGTSTP), Reaction::Suspend);
        for signal in [libc::SIGUSR1, libc::SIGUSR2, libc::SIGWINCH, libc::SIGCONT, libc::SIGQUIT] {
            assert_eq!(react(signal), Reaction::Forward(signal));
        }
    }

    #[test]
    fn signals_have_names() {
        assert_eq!(name(libc::SIGSEGV), ("SIGSEGV", "segmentation fault"));
        assert_eq!(name(63).1, "unnamed");
    }
}
