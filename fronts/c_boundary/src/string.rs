//! Strings from and to C, with a limit on both ways.

use std::ffi::{CStr, c_char};

use thiserror::Error;

use crate::pointer::{self, PointerError};

/// Why a string cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum StringError {
    /// The pointer cannot be used.
    #[error(transparent)]
    Pointer(#[from] PointerError),
    /// It has no end within the limit.
    #[error("{argument} is longer than {limit} bytes, or it does not end; end it with a zero byte")]
    TooLong {
        /// The argument it was passed as.
        argument: &'static str,
        /// How long it may be.
        limit: usize,
    },
}

/// The string at a pointer, at most `limit` bytes long without its end.
///
/// # Errors
/// [`StringError`].
///
/// # Safety
/// Unless null, the pointer leads to a string that ends with a zero byte and does not change during
/// `'a`, or to `limit + 1` readable bytes.
pub unsafe fn read<'a>(
    argument: &'static str,
    pointer: *const c_char,
    limit: usize,
) -> Result<&'a CStr, StringError> {
    pointer::check(argument, pointer, 1)?;
    let length = (0..=limit)
        // SAFETY: all bytes before this one are no end, so it is part of the string or within the
        // limit; the caller says that both are readable.
        .find(|index| unsafe { *pointer.add(*index) } == 0)
        .ok_or(StringError::TooLong { argument, limit })?;
    // SAFETY: as above; the byte at `length` is zero and the first one.
    let bytes = unsafe { std::slice::from_raw_parts(pointer.cast::<u8>(), length + 1) };
    CStr::from_bytes_with_nul(bytes).map_err(|_| StringError::TooLong { argument, limit })
}

/// The beginning of the string at a pointer: at most `limit` bytes, cut off between letters.
///
/// # Errors
/// [`PointerError`].
///
/// # Safety
/// As [`read`].
pub unsafe fn read_start(
    argument: &'static str,
    pointer: *const c_char,
    limit: usize,
) -> Result<String, PointerError> {
    pointer::check(argument, pointer, 1)?;
    // SAFETY: all bytes before this one are no end, so it is part of the string or within the limit; the
    // caller says that both are readable.
    let length = (0..limit).find(|index| unsafe { *pointer.add(*index) } == 0).unwrap_or(limit);
    // SAFETY: as above.
    let bytes = unsafe { std::slice::from_raw_parts(pointer.cast::<u8>(), length) };
    let mut text = String::from_utf8_lossy(bytes).into_owned();
    // The last letter may have been cut in two, and what stands for it is longer.
    text.truncate(cut(&text, limit));
    Ok(text)
}

/// Writes a text and its end into `capacity` bytes and returns how many bytes it has without its
/// end. What does not fit is cut off between letters; so is what follows a zero byte.
///
/// # Errors
/// [`PointerError`].
///
/// # Safety
/// Unless null, the pointer leads to `capacity` writable bytes.
pub unsafe fn write(
    argument: &'static str,
    pointer: *mut c_char,
    capacity: usize,
    text: &str,
) -> Result<usize, PointerError> {
    if capacity == 0 {
        return Ok(0);
    }
    let text = text.split('\0').next().unwrap_or_default();
    let length = cut(text, capacity - 1);
    // SAFETY: the caller says that so many bytes are writable; any byte is a `u8`.
    let target = unsafe { pointer::slice_mut(argument, pointer.cast::<u8>(), capacity) }?;
    target[..length].copy_from_slice(&text.as_bytes()[..length]);
    target[length] = 0;
    Ok(length)
}

/// The last place at or before `limit` that lies between two letters.
fn cut(text: &str, limit: usize) -> usize {
    (0..=limit.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_string_is_cut_off_between_letters() {
        let text = c"l\u{f6}nger";
        // SAFETY: the string ends with a zero byte.
        let start = |limit| unsafe { read_start("name", text.as_ptr(), limit) }.unwrap();
        assert_eq!(
            [start(1), start(3), start(7), start(100)],
            ["l", "l\u{f6}", "l\u{f6}nger", "l\u{f6}nger"]
        );
        assert!(start(2).len() <= 2 && start(0).is_empty());
        // SAFETY: a null pointer is refused.
        assert!(unsafe { read_start("name", std::ptr::null(), 1) }.is_err());
    }

    #[test]
    fn a_string_is_read_up_to_its_limit() {
        let text = c"inbox";
        // SAFETY: the pointers lead to strings, or are refused.
        unsafe {
            assert_eq!(read("name", text.as_ptr(), 5), Ok(text));
            let error = read("name", text.as_ptr(), 4).unwrap_err();
            assert_eq!(error, StringError::TooLong { argument: "name", limit: 4 });
            assert!(matches!(read("name", std::ptr::null(), 4), Err(StringError::Pointer(_))));
        }
    }

    #[test]
    fn a_text_is_cut_between_letters() {
        let mut buffer = [1u8; 6];
        let pointer = buffer.as_mut_ptr().cast::<c_char>();
        // SAFETY: the buffer has six bytes.
        unsafe {
            assert_eq!(write("out", pointer, 6, "abcdefgh"), Ok(5));
            assert_eq!(CStr::from_ptr(pointer).to_bytes(), b"abcde");
            assert_eq!(write("out", pointer, 6, "abcdäö"), Ok(4));
            assert_eq!(CStr::from_ptr(pointer).to_bytes(), b"abcd");
            assert_eq!(write("out", pointer, 6, "a\0b"), Ok(1));
            assert_eq!(write("out", std::ptr::null_mut(), 0, "a"), Ok(0));
            assert!(write("out", std::ptr::null_mut(), 6, "a").is_err());
        }
    }
}
