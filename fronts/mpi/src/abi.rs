//! The values and types of the standard ABI that this library uses.
//!
//! All handles are as wide as a pointer. Predefined ones are small constants, below the first page;
//! those given out here are larger.

use std::ffi::{c_int, c_void};

/// The width of a handle, and of the addresses that some constants stand for.
pub(crate) type Handle = usize;

const _: () = assert!(size_of::<usize>() == 8, "handles hold 64 bits");

/// A function of the program that combines: `inoutvec[i] = invec[i] op inoutvec[i]`. It may jump or
/// throw.
pub(crate) type UserFunction =
    unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, *mut c_int, *mut Handle);

/// What a receive tells of its message.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) source: c_int,
    pub(crate) tag: c_int,
    pub(crate) error: c_int,
    /// The number of bytes, low half first; whether it was cancelled; two unused.
    pub(crate) internal: [c_int; 5],
}

impl Status {
    /// The status of a message.
    pub(crate) fn of_message(source: c_int, tag: c_int, bytes: u64, cancelled: bool) -> Self {
        let halves = [bytes as u32 as c_int, (bytes >> 32) as c_int];
        let internal = [halves[0], halves[1], c_int::from(cancelled), 0, 0];
        Self { source, tag, error: SUCCESS, internal }
    }

    /// The status of what had no message.
    pub(crate) fn empty() -> Self {
        Self::of_message(ANY_SOURCE, ANY_TAG, 0, false)
    }

    /// The status of a receive from nobody.
    pub(crate) fn of_nobody() -> Self {
        Self::of_message(PROC_NULL, ANY_TAG, 0, false)
    }
}

pub(crate) const COMM_WORLD: Handle = 0x101;
pub(crate) const COMM_SELF: Handle = 0x102;

pub(crate) const REQUEST_NULL: Handle = 0x180;
/// A send that was complete when it was started. Not of the ABI, which leaves such values to us.
pub(crate) const REQUEST_SENT: Handle = 0x1000;
/// A receive from nobody.
pub(crate) const REQUEST_OF_NOBODY: Handle = 0x1001;

pub(crate) const OP_NULL: Handle = 0x20;

pub(crate) const IN_PLACE: usize = 1;

pub(crate) const ANY_SOURCE: c_int = -1;
pub(crate) const ANY_TAG: c_int = -2;
pub(crate) const PROC_NULL: c_int = -3;

pub(crate) const THREAD_SINGLE: c_int = 0;
pub(crate) const THREAD_FUNNELED: c_int = 1024;
pub(crate) const THREAD_SERIALIZED: c_int = 2048;
pub(crate) const THREAD_MULTIPLE: c_int = 4096;

pub(crate) const SUCCESS: c_int = 0;

/// The classes of errors that occur here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum ErrorClass {
    Buffer = 1,
    Count = 2,
    Type = 3,
    Tag = 4,
    Communicator = 5,
    Rank = 6,
    Request = 7,
    Operation = 10,
    Argument = 13,
    Truncate = 15,
    Other = 16,
    Internal = 17,
    NoMemory = 39,
    ProcessAborted = 58,
}

impl ErrorClass {
    /// The number that the program gets.
    pub(crate) fn code(self) -> c_int {
        self as c_int
    }

    /// The name in `mpi.h`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Buffer => "MPI_ERR_BUFFER",
            Self::Count => "MPI_ERR_COUNT",
            Self::Type => "MPI_ERR_TYPE",
            Self::Tag => "MPI_ERR_TAG",
            Self::Communicator => "MPI_ERR_COMM",
            Self::Rank => "MPI_ERR_RANK",
            Self::Request => "MPI_ERR_REQUEST",
            Self::Operation => "MPI_ERR_OP",
            Self::Argument => "MPI_ERR_ARG",
            Self::Truncate => "MPI_ERR_TRUNCATE",
            Self::Other => "MPI_ERR_OTHER",
            Self::Internal => "MPI_ERR_INTERN",
            Self::NoMemory => "MPI_ERR_NO_MEM",
            Self::ProcessAborted => "MPI_ERR_PROC_ABORTED",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_has_the_form_of_the_abi() {
        assert_eq!((size_of::<Status>(), align_of::<Status>()), (32, 4));
        let status = Status::of_message(3, 7, 5 << 32 | 9, true);
        assert_eq!(status.internal, [9, 5, 1, 0, 0]);
        assert_eq!(Status::of_nobody().source, PROC_NULL);
    }
}
