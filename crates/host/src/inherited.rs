//! Descriptors that this process was started with: those that a launcher left open for it and named in
//! the environment, and the standard ones, which a parent may have closed.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, FdFlags, fcntl_getfd, fcntl_setfd};

use crate::say::quoted;

/// The descriptors taken so far: each can be owned once.
static TAKEN: Mutex<BTreeSet<RawFd>> = Mutex::new(BTreeSet::new());

/// Why a number in the environment is no descriptor of ours.
#[derive(Debug, thiserror::Error)]
pub enum InheritError {
    /// It is no number of a descriptor beyond standard input, output and error.
    #[error("{} is not the number of a descriptor", quoted(.0))]
    NotANumber(String),
    /// Nothing is open under the number: a parent closed it, or this is a child of the process
    /// that was meant.
    #[error("descriptor {descriptor} is not open: {error}")]
    NotOpen {
        /// The number.
        descriptor: RawFd,
        /// What the kernel answered.
        error: io::Error,
    },
    /// Something else is open under the number: a parent closed what was meant and opened another.
    #[error("descriptor {0} is open, but it is not what the launcher left there")]
    NotMeant(RawFd),
    /// It was taken before in this process.
    #[error("descriptor {0} was taken before: this process has joined already")]
    AlreadyTaken(RawFd),
}

/// Takes a descriptor that the environment names, if it is what is meant, and keeps it from children
/// at once. Anything else under the number is left as it is: it is somebody else's.
///
/// # Errors
/// [`InheritError`].
pub fn take(
    number: &str,
    is_meant: impl FnOnce(BorrowedFd<'_>) -> bool,
) -> Result<OwnedFd, InheritError> {
    let descriptor: RawFd = number
        .parse()
        .ok()
        .filter(|descriptor| *descriptor > libc::STDERR_FILENO)
        .ok_or_else(|| InheritError::NotANumber(number.to_owned()))?;
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    if taken.contains(&descriptor) {
        return Err(InheritError::AlreadyTaken(descriptor));
    }
    // SAFETY: the number is not negative, so not the niche value; borrowed for calls that answer
    // EBADF when nothing is open under it.
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let not_open = |error: Errno| InheritError::NotOpen { descriptor, error: error.into() };
    let flags = fcntl_getfd(borrowed).map_err(not_open)?;
    if !is_meant(borrowed) {
        return Err(InheritError::NotMeant(descriptor));
    }
    // A launcher leaves it open to whoever is started; who takes it does not. So another copy of
    // this library in the same process has it.
    if flags.contains(FdFlags::CLOEXEC) {
        return Err(InheritError::AlreadyTaken(descriptor));
    }
    fcntl_setfd(borrowed, flags | FdFlags::CLOEXEC).map_err(not_open)?;
    taken.insert(descriptor);
    // SAFETY: the descriptor is open and what the launcher left to this process under the name
    // given, and `TAKEN` says that nobody in this process has taken it before.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Takes the numbers of standard input, output and error where nothing is open under them: else the
/// next descriptors of this library would get them, and the program would write its output into the
/// memory of the job. For the program nothing changes: calls on these numbers fail as on closed ones, and
/// so they are for what it starts.
pub fn reserve_standard() {
    let open = || rustix::fs::open("/dev/null", OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    // The lowest free number is taken each time.
    while let Ok(descriptor) = open() {
        if descriptor.as_raw_fd() > libc::STDERR_FILENO {
            break;
        }
        let _ = descriptor.into_raw_fd();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn a_descriptor_is_taken_once_and_kept_from_children() {
        let (left, _right) = std::os::unix::net::UnixStream::pair().unwrap();
        fcntl_setfd(&left, FdFlags::empty()).unwrap();
        let number = OwnedFd::from(left).into_raw_fd().to_string();
        assert!(matches!(take(&number, |_| false), Err(InheritError::NotMeant(_))));
        let taken = take(&number, |_| true).unwrap();
        assert_eq!(taken.as_raw_fd().to_string(), number);
        assert!(fcntl_getfd(taken.as_fd()).unwrap().contains(FdFlags::CLOEXEC));
        assert!(matches!(take(&number, |_| true), Err(InheritError::AlreadyTaken(_))));
    }

    #[test]
    fn what_is_no_descriptor_is_refused() {
        for number in ["", "-1", "2", "seven", "99999999999"] {
            assert!(matches!(take(number, |_| true), Err(InheritError::NotANumber(_))), "{number}");
        }
        let error = take("1000000", |_| true).unwrap_err();
        assert!(matches!(error, InheritError::NotOpen { .. }), "{error}");
    }
}
