//! Daemons that go on when the command that has started them ends.
//!
//! The process that was started forks the daemon and waits until that is ready or has failed. Meanwhile it passes on the
//! daemon's complaints. A daemon that is ready has no terminal, no session of a login and no standard streams.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::process::ExitCode;

use landeck_host::fork::fork_child;
use landeck_host::process;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

/// The last byte of a daemon that is ready.
const READY: u8 = 0;

/// The two sides of a fork.
pub(crate) enum Side {
    /// The daemon.
    Daemon,
    /// The process that was started, whose daemon is ready or has failed.
    Starter(ExitCode),
}

/// Forks the daemon. In the process that was started, this returns when the daemon is ready or has failed.
///
/// # Errors
/// The kernel's error.
pub(crate) fn fork() -> io::Result<Side> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    match fork_child().map_err(io::Error::other)? {
        None => {
            drop(reader);
            rustix::process::setsid()?;
            rustix::stdio::dup2_stderr(&writer)?;
            Ok(Side::Daemon)
        }
        Some(pid) => {
            drop(writer);
            match pass_on(&reader) {
                true => Ok(Side::Starter(ExitCode::SUCCESS)),
                false => {
                    process::wait_for_end(pid)?;
                    Ok(Side::Starter(ExitCode::FAILURE))
                }
            }
        }
    }
}

/// Says that the daemon is ready, and leaves the standard streams.
///
/// # Errors
/// The kernel's error.
pub(crate) fn is_ready() -> io::Result<()> {
    // Nobody reads it if the command was ended.
    let _ = io::stderr().write_all(&[READY]);
    leave_streams()
}

/// Leaves the standard streams.
///
/// # Errors
/// The kernel's error.
pub(crate) fn leave_streams() -> io::Result<()> {
    let nothing = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    rustix::stdio::dup2_stderr(&nothing)?;
    Ok(())
}

/// Passes the complaints of the daemon on until it is ready, or has ended. Returns whether it is ready.
fn pass_on(reader: &OwnedFd) -> bool {
    let mut bytes = [0; 4096];
    loop {
        match rustix::io::read(reader, &mut bytes[..]) {
            Ok(count @ 1..) => {
                let is_ready = bytes[count - 1] == READY;
                let text = &bytes[..count - usize::from(is_ready)];
                // There is no other place for it.
                let _ = io::stderr().write_all(text);
                if is_ready {
                    return true;
                }
            }
            Err(Errno::INTR) => {}
            Ok(0) | Err(_) => return false,
        }
    }
}
