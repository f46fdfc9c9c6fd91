//! The process at the other end of a connection.

use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Whether the connection has nothing to read after all.
pub(crate) fn is_quiet(connection: &OwnedFd) -> bool {
    recv(connection, &mut [0; 1][..], RecvFlags::DONTWAIT | RecvFlags::PEEK)
        .is_err_and(|errno| errno == Errno::AGAIN || errno == Errno::INTR)
}

/// The pidfd of the process that connected; `None` on older kernels, which only know its PID.
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
        // SAFETY: this is a new descriptor that has no other owner.
        return Some(unsafe { OwnedFd::from_raw_fd(pidfd) });
    }
    pidfd_open(Pid::from_raw(pid.cast_signed())?, PidfdFlags::empty()).ok()
}

/// The user ID and the PID of the other end of a Unix socket.
///
/// # Errors
/// The kernel's error.
pub fn credentials(connection: &OwnedFd) -> io::Result<(u32, u32)> {
    // rustix cannot express the PID zero, which a process in another namespace has.
    let mut credentials = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut bytes = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `bytes` bytes to the structure of that size.
    let answer = unsafe {
        libc::getsockopt(
            connection.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut credentials).cast(),
            &raw mut bytes,
        )
    };
    if answer != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((credentials.uid, credentials.pid.cast_unsigned()))
}

/// The time since the kernel at the other end of a TCP connection last acknowledged anything, or sent data.
pub fn kernel_silence(connection: &OwnedFd) -> Option<Duration> {
    let mut information = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut bytes = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `bytes` bytes to the structure of that size.
    let answer = unsafe {
        libc::getsockopt(
            connection.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            information.as_mut_ptr().cast(),
            &raw mut bytes,
        )
    };
    if answer != 0 {
        return None;
    }
    // SAFETY: all bytes were zero before the kernel wrote some of them, and zeros are valid in all fields.
    let information = unsafe { information.assume_init() };
    let last = information.tcpi_last_ack_recv.min(information.tcpi_last_data_recv);
    Some(Duration::from_millis(u64::from(last)))
}

/// The raw wait status of a process that has ended, as far as the kernel tells it to a process that is not its parent.
/// Before Linux 6.15 that is only possible until the parent has reaped it. If `pidfd` is no pidfd, only that way is
/// tried.
pub(crate) fn end_status(pidfd: &OwnedFd, pid: u32) -> Option<i32> {
    // The parent may reap it between the two looks elsewhere.
    reaped_status(pidfd).or_else(|| zombie_status(pid)).or_else(|| reaped_status(pidfd))
}

/// The status that the kernel keeps of a process that was reaped.
fn reaped_status(pidfd: &OwnedFd) -> Option<i32> {
    /// The first version of `struct pidfd_info`.
    #[repr(C)]
    #[derive(Default)]
    struct Info {
        mask: u64,
        control_group: u64,
        numbers: [u32; 11],
        exit_code: i32,
    }
    const GET_INFO: libc::Ioctl = 0xc040_ff0b_u32 as libc::Ioctl;
    const EXIT: u64 = 1 << 3;
    let mut info = Info { mask: EXIT, ..Info::default() };
    // SAFETY: the kernel writes at most the bytes whose number the request contains: those of `Info`.
    let answer = unsafe { libc::ioctl(pidfd.as_raw_fd(), GET_INFO, &raw mut info) };
    (answer == 0 && info.mask & EXIT != 0).then_some(info.exit_code)
}

/// The status of a process that has ended and is not reaped yet.
fn zombie_status(pid: u32) -> Option<i32> {
    /// The index of the exit code, counted from the state, the first field behind the name.
    const EXIT_CODE: usize = 49;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    fields.next().filter(|state| *state == "Z")?;
    fields.nth(EXIT_CODE - 1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};
    use std::process::Command;

    #[test]
    fn how_a_process_ended_is_known_while_it_is_a_zombie() {
        let _watchdog = landeck_testing::Watchdog::start(std::time::Duration::from_secs(200));
        for (script, status) in [("exit 7", 7 << 8), ("kill -9 $$", 9)] {
            let mut child = Command::new("sh").args(["-c", script]).spawn().unwrap();
            let number = Pid::from_raw(child.id().cast_signed()).unwrap();
            let pidfd = pidfd_open(number, PidfdFlags::empty()).unwrap();
            while let Err(rustix::io::Errno::INTR) =
                poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], None)
            {}
            assert_eq!(end_status(&pidfd, child.id()), Some(status));
            child.wait().unwrap();
            // Older kernels keep nothing.
            assert!(reaped_status(&pidfd).is_none_or(|kept| kept == status));
            assert_eq!(zombie_status(child.id()), None);
        }
        assert_eq!(zombie_status(std::process::id()), None, "this process runs");
    }
}
