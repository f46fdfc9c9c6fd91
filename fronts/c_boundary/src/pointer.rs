//! Pointers from C: checked for what can be checked before they are used.

use thiserror::Error;

/// Why a pointer cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PointerError {
    /// It is null.
    #[error("{argument} is a null pointer; pass the address of the data")]
    Null {
        /// The argument it was passed as.
        argument: &'static str,
    },
    /// It does not fit the type it should point to.
    #[error("{argument} is {address:#x}, which is no multiple of {alignment}: it points elsewhere")]
    Misaligned {
        /// The argument it was passed as.
        argument: &'static str,
        /// Where it points.
        address: usize,
        /// The number that the address must be a multiple of.
        alignment: usize,
    },
    /// So many elements do not fit into an address space.
    #[error(
        "{argument} cannot have {count} elements of {size_bytes} bytes: the largest memory holds {}", largest(*size_bytes)
    )]
    TooLong {
        /// The argument it was passed as.
        argument: &'static str,
        /// How many elements there should be.
        count: usize,
        /// The size of one.
        size_bytes: usize,
    },
}

/// How many elements of this size fit into the largest object that there can be.
fn largest(size_bytes: usize) -> usize {
    isize::MAX as usize / size_bytes.max(1)
}

/// Checks that a pointer may point to `count` values of its type. A null pointer may, to none.
///
/// # Errors
/// [`PointerError`].
#[inline]
pub fn check<T>(
    argument: &'static str,
    pointer: *const T,
    count: usize,
) -> Result<(), PointerError> {
    if count == 0 {
        return Ok(());
    }
    if pointer.is_null() {
        return Err(PointerError::Null { argument });
    }
    if !pointer.is_aligned() {
        let (address, alignment) = (pointer.addr(), align_of::<T>());
        return Err(PointerError::Misaligned { argument, address, alignment });
    }
    let size_bytes = size_of::<T>();
    let end = count.checked_mul(size_bytes).and_then(|bytes| pointer.addr().checked_add(bytes));
    if end.is_none_or(|end| isize::try_from(end).is_err()) {
        return Err(PointerError::TooLong { argument, count, size_bytes });
    }
    Ok(())
}

/// Writes a result where the caller wants it.
///
/// # Errors
/// [`PointerError`].
///
/// # Safety
/// Unless null or misaligned, the pointer is writable as a `T`.
#[inline]
pub unsafe fn write<T>(
    argument: &'static str,
    pointer: *mut T,
    value: T,
) -> Result<(), PointerError> {
    check(argument, pointer, 1)?;
    // SAFETY: checked above as far as it can be; the rest is the caller's promise.
    unsafe { pointer.write(value) };
    Ok(())
}

/// Reads a plain value that the caller passes by address.
///
/// # Errors
/// [`PointerError`].
///
/// # Safety
/// Unless null or misaligned, the pointer is readable as a `T` and holds one.
#[inline]
pub unsafe fn read<T: Copy>(argument: &'static str, pointer: *const T) -> Result<T, PointerError> {
    check(argument, pointer, 1)?;
    // SAFETY: checked above as far as it can be; the rest is the caller's promise.
    Ok(unsafe { pointer.read() })
}

/// The array that a pointer and a count describe.
///
/// # Errors
/// [`PointerError`].
///
/// # Safety
/// Unless null or misaligned, the pointer leads to `count` values that nobody writes during `'a`.
pub unsafe fn slice<'a, T>(
    argument: &'static str,
    pointer: *const T,
    count: usize,
) -> Result<&'a [T], PointerError> {
    check(argument, pointer, count)?;
    if count == 0 {
        return Ok(&[]);
    }
    // SAFETY: checked above as far as it can be; the rest is the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// The writable array that a pointer and a count describe.
///
/// # Errors
/// [`PointerError`].
///
/// # Safety
/// Unless null or misaligned, the pointer leads to `count` values that nobody else uses during `'a`.
pub unsafe fn slice_mut<'a, T>(
    argument: &'static str,
    pointer: *mut T,
    count: usize,
) -> Result<&'a mut [T], PointerError> {
    check(argument, pointer, count)?;
    if count == 0 {
        return Ok(&mut []);
    }
    // SAFETY: checked above as far as it can be; the rest is the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer, count) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_are_checked_before_use() {
        let mut values = [1i32, 2, 3];
        let pointer = values.as_mut_ptr();
        // SAFETY: the pointers below lead to `values`, or are refused before they are used.
        unsafe {
            assert_eq!(read("x", pointer), Ok(1));
            write("x", pointer, 9).unwrap();
            assert_eq!(slice("x", pointer, 3).unwrap(), [9, 2, 3]);
            slice_mut("x", pointer, 3).unwrap()[2] = 4;
            assert_eq!(slice::<i32>("x", std::ptr::null(), 0), Ok(&[][..]));
            assert_eq!(
                read::<i32>("x", std::ptr::null()),
                Err(PointerError::Null { argument: "x" })
            );
            let crooked = pointer.wrapping_byte_add(1);
            let error = write("x", crooked, 1).unwrap_err();
            assert!(matches!(error, PointerError::Misaligned { alignment: 4, .. }), "{error}");
            let error = slice("x", pointer, usize::MAX / 2).unwrap_err();
            assert!(matches!(error, PointerError::TooLong { size_bytes: 4, .. }), "{error}");
            assert!(error.to_string().ends_with("the largest memory holds 2305843009213693951"));
        }
        assert_eq!(values, [9, 2, 4]);
    }
}
