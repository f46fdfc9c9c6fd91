//! The process at the other end of a connection.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Whether nothing is to be read from a connection after all.
pub(crate) fn is_quiet(connection: &OwnedFd) -> bool {
    recv(connection, &mut [0; 1][..], RecvFlags::DONTWAIT | RecvFlags::PEEK)
        .is_err_and(|errno| errno == Errno::AGAIN || errno == Errno::INTR)
}

/// The process at the other end, as it was when it connected. Older kernels only know its number.
pub(crate) fn pidfd(connection: &OwnedFd, pid: u32) -> Option<OwnedFd> {
    let mut pidfd: libc::c_int = -1;
    let mut bytes = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `bytes` bytes to the integer of that size.
    let answer = unsafe {
        libc::getsockopt(
            connection.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERPIDFD,
            (&raw mut pidfd).cast(),
            &raw mut bytes,
        )
    };
    if answer == 0 && pidfd >= 0 {
        // SAFETY: a new descriptor, which nobody else knows.
        return Some(unsafe { OwnedFd::from_raw_fd(pidfd) });
    }
    pidfd_open(Pid::from_raw(pid.cast_signed())?, PidfdFlags::empty()).ok()
}
