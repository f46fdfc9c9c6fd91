//! The types and constants of the ABI.
//!
//! All handles are as wide as a pointer. Predefined ones are small constants, below the first page;
//! those given out here are larger than 2^32. `MPI_Aint`, `MPI_Count` and `MPI_Offset` are `i64`.

#[rustfmt::skip]
mod constants;

use std::ffi::{c_int, c_void};

pub(crate) use constants::*;

/// The width of a handle, and of the addresses that some constants stand for.
pub(crate) type Handle = usize;

const _: () = assert!(size_of::<usize>() == 8, "handles hold 64 bits");

/// A function of the program as it comes in, or one of the small numbers that stand for functions
/// of the library. [`function`] makes it callable.
pub(crate) type Callback = *const c_void;

/// Combines: `inoutvec[i] = invec[i] op inoutvec[i]`.
pub(crate) type UserFunction =
    unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, *mut c_int, *mut Handle);
/// A function of the program that combines values, with large counts.
pub(crate) type UserFunctionLarge =
    unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, *mut i64, *mut Handle);
/// Is told of an error on an object.
pub(crate) type ErrorFunction = unsafe extern "C-unwind" fn(*mut Handle, *mut c_int, ...);
/// Copies an attribute to a new object.
pub(crate) type CopyFunction = unsafe extern "C-unwind" fn(
    Handle,
    c_int,
    *mut c_void,
    *mut c_void,
    *mut c_void,
    *mut c_int,
) -> c_int;
/// Takes leave of an attribute.
pub(crate) type DeleteFunction =
    unsafe extern "C-unwind" fn(Handle, c_int, *mut c_void, *mut c_void) -> c_int;
/// Says what became of a generalized request.
pub(crate) type QueryFunction = unsafe extern "C-unwind" fn(*mut c_void, *mut Status) -> c_int;
/// Frees what belongs to a generalized request.
pub(crate) type FreeFunction = unsafe extern "C-unwind" fn(*mut c_void) -> c_int;
/// Cancels a generalized request.
pub(crate) type CancelFunction = unsafe extern "C-unwind" fn(*mut c_void, c_int) -> c_int;

/// The function behind a callback; none for null and for the constants that stand for functions.
///
/// # Safety
/// Any other callback is the address of a function of type `F`.
pub(crate) unsafe fn function<F: Copy>(callback: Callback) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<Callback>()) };
    if callback.addr() <= LARGEST_CONSTANT_CALLBACK {
        return None;
    }
    // SAFETY: the caller says that it is the address of such a function.
    Some(unsafe { std::mem::transmute_copy(&callback) })
}

const LARGEST_CONSTANT_CALLBACK: usize = COMM_DUP_FN;

/// A status: the sender, tag and length of a received message.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) source: c_int,
    pub(crate) tag: c_int,
    pub(crate) error: c_int,
    /// The number of bytes, low half first; whether it was cancelled; two unused.
    internal: [c_int; 5],
}

impl Status {
    /// The status of a message.
    #[inline]
    pub(crate) fn of_message(source: c_int, tag: c_int, bytes: u64, cancelled: bool) -> Self {
        let halves = [bytes as u32 as c_int, (bytes >> 32) as c_int];
        let internal = [halves[0], halves[1], c_int::from(cancelled), 0, 0];
        Self { source, tag, error: SUCCESS, internal }
    }

    /// The status of what had no message.
    #[inline]
    pub(crate) fn empty() -> Self {
        Self::of_message(ANY_SOURCE, ANY_TAG, 0, false)
    }

    /// The status of a receive from nobody.
    pub(crate) fn of_nobody() -> Self {
        Self::of_message(PROC_NULL, ANY_TAG, 0, false)
    }

    /// Writes it where the program wants it. The field of the error is left as it is, unless this is
    /// an empty status.
    ///
    /// # Safety
    /// The place is writable.
    #[inline]
    pub(crate) unsafe fn write_to(self, place: *mut Self) {
        // SAFETY: as the caller says.
        unsafe {
            (&raw mut (*place).source).write(self.source);
            (&raw mut (*place).tag).write(self.tag);
            (&raw mut (*place).internal).write(self.internal);
            if self.source == ANY_SOURCE {
                (&raw mut (*place).error).write(SUCCESS);
            }
        }
    }

    /// The length of the message.
    pub(crate) fn bytes(&self) -> u64 {
        u64::from(self.internal[0] as u32) | u64::from(self.internal[1] as u32) << 32
    }

    /// Sets the length of the message.
    pub(crate) fn set_bytes(&mut self, bytes: u64) {
        self.internal[0] = bytes as u32 as c_int;
        self.internal[1] = (bytes >> 32) as c_int;
    }

    /// Whether the operation was cancelled before there was a message.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.internal[2] != 0
    }

    /// Sets whether it was cancelled.
    pub(crate) fn set_cancelled(&mut self, cancelled: bool) {
        self.internal[2] = c_int::from(cancelled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_has_the_form_of_the_abi() {
        assert_eq!((size_of::<Status>(), align_of::<Status>()), (32, 4));
        let mut status = Status::of_message(3, 7, 5 << 32 | 9, true);
        assert_eq!(status.internal, [9, 5, 1, 0, 0]);
        assert_eq!((status.bytes(), status.is_cancelled()), (5 << 32 | 9, true));
        status.set_bytes(1 << 33 | 1 << 31);
        status.set_cancelled(false);
        assert_eq!((status.bytes(), status.is_cancelled()), (1 << 33 | 1 << 31, false));
        assert_eq!(Status::of_nobody().source, PROC_NULL);
    }

    #[test]
    fn small_numbers_are_no_functions() {
        // SAFETY: none of these is called.
        unsafe {
            assert!(function::<FreeFunction>(std::ptr::null()).is_none());
            assert!(function::<FreeFunction>(COMM_DUP_FN as Callback).is_none());
            assert!(function::<FreeFunction>(small_numbers_are_no_functions as Callback).is_some());
        }
    }
}
