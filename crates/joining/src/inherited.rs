//! Descriptors that this process was started with: those that a launcher left open for it and named in the environment,
//! and the standard ones, which a parent may have closed.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, PoisonError};

use landeck_host::say::quoted;
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, FdFlags, fcntl_getfd, fcntl_setfd};

/// The descriptors taken so far; each can be owned only once.
static TAKEN: Mutex<BTreeSet<RawFd>> = Mutex::new(BTreeSet::new());

/// The reason why a number in the environment is no descriptor for this process.
#[derive(Debug, thiserror::Error)]
pub enum InheritError {
    /// It is not the number of a descriptor beyond standard input, output and error.
    #[error("{} is not the number of a descriptor", quoted(.0))]
    NotANumber(String),
    /// Nothing is open under the number: a parent closed it, or this is a child of the process that was meant.
    #[error("descriptor {descriptor} is not open: {error}")]
    NotOpen {
        /// The number.
        descriptor: RawFd,
        /// The kernel's error.
        error: io::Error,
    },
    /// Something else is open under the number: a parent closed the descriptor and opened another.
    #[error("descriptor {0} is open, but it is not the one that the launcher left")]
    NotMeant(RawFd),
    /// It was taken before in this process.
    #[error("descriptor {0} was taken before: this process has joined already")]
    AlreadyTaken(RawFd),
}

/// Takes a descriptor that the environment names, if it is the right one, and sets its close-on-exec flag at once, so
/// that no child inherits it. Anything else under the number is left alone: it has another owner.
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
    // A launcher leaves the descriptor open across exec, and the process that takes it does not. So a set flag means
    // that another copy of this library in this process has taken it.
    if flags.contains(FdFlags::CLOEXEC) {
        return Err(InheritError::AlreadyTaken(descriptor));
    }
    fcntl_setfd(borrowed, flags | FdFlags::CLOEXEC).map_err(not_open)?;
    taken.insert(descriptor);
    // SAFETY: the descriptor is open and is the one that the launcher left to this process under the given name, and
    // `TAKEN` says that nothing in this process has taken it before.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Occupies the numbers of standard input, output and error if nothing is open under them. Otherwise the next
/// descriptors of this library would get them, and the program would write its output into the memory of the job. For
/// the program nothing changes: calls on these numbers fail as on closed ones, and its children find them closed.
pub fn reserve_standard() {
    let open = || rustix::fs::open("/dev/null", OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    // Each open takes the lowest free number.
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
    fn a_number_that_is_no_descriptor_is_refused() {
        for number in ["", "-1", "2", "seven", "99999999999"] {
            assert!(matches!(take(number, |_| true), Err(InheritError::NotANumber(_))), "{number}");
        }
        let error = take("1000000", |_| true).unwrap_err();
        assert!(matches!(error, InheritError::NotOpen { .. }), "{error}");
    }
}
