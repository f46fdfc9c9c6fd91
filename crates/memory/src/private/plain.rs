//! Values that are their bytes: what can be sent as it lies in memory.

use std::ptr::NonNull;

use crate::private::bytes::Buffer;

/// A type whose every bit pattern is a value, without padding and without pointers: all numbers, and arrays of them.
///
/// `bool` and `char` are not plain, because not every byte is a `bool` and not every number a `char`: a process
/// could receive one that Rust does not allow to exist. Send `u8` and `u32` instead, and convert:
///
/// ```
/// let (flag, letter) = (u8::from(true), u32::from('x'));
/// assert_eq!((flag != 0, char::from_u32(letter)), (true, Some('x')));
/// ```
///
/// ```compile_fail,E0277
/// landeck_memory::plain::bytes_of(&[true]);
/// ```
///
/// ```compile_fail,E0277
/// landeck_memory::plain::bytes_of(&['x']);
/// ```
///
/// # Safety
/// All of that holds.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be sent as it lies in memory",
    label = "some bit patterns are no `{Self}`, or it has padding or pointers",
    note = "instead of `bool` send `u8`: `u8::from(flag)`, and `byte != 0` where it is received",
    note = "instead of `char` send `u32`: `u32::from(letter)`, and `char::from_u32` where it is received",
    note = "a `#[repr(C)]` struct of numbers without padding may be sent once it has an `unsafe impl Plain`"
)]
pub unsafe trait Plain: Copy + Send + Sync + 'static {}

macro_rules! plain {
    ($($number:ty)*) => {
        // SAFETY: numbers have no padding and no invalid bit patterns.
        $(unsafe impl Plain for $number {})*
    };
}

plain!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64);

// SAFETY: an array is its items, one after the other.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

/// The bytes of values.
pub fn bytes_of<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: plain values have no padding, so every byte is initialised.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// The bytes of values, to be written.
pub fn bytes_of_mut<T: Plain>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: as above, and whatever is written is a value.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}

/// A value of zero bytes.
pub fn zero<T: Plain>() -> T {
    // SAFETY: every bit pattern is a value.
    unsafe { std::mem::zeroed() }
}

impl Buffer {
    /// The memory of values that are to be sent.
    ///
    /// # Safety
    /// As [`Buffer::new`]: the values stay, unchanged, until the requests are complete.
    #[inline]
    pub unsafe fn of<T: Plain>(values: &[T]) -> Self {
        // SAFETY: the caller's promise; the memory is only read for sending.
        unsafe { Self::new(NonNull::from(values).cast(), size_of_val(values)) }
    }

    /// The memory of values that are to be received.
    ///
    /// # Safety
    /// As [`Buffer::new`]: the values stay and nobody else uses them until the requests are complete.
    #[inline]
    pub unsafe fn of_mut<T: Plain>(values: &mut [T]) -> Self {
        // SAFETY: the caller's promise; plain values may be written byte by byte.
        unsafe { Self::new(NonNull::from(&mut *values).cast(), size_of_val(values)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_their_bytes_are_the_same_memory() {
        let mut values = [[1u16, 2], [3, 0x0405]];
        assert_eq!(bytes_of(&values).len(), 8);
        bytes_of_mut(&mut values)[0] = 9;
        assert_eq!(values[0][0], u16::from_le_bytes([9, 0]));
        assert_eq!(zero::<[f64; 2]>(), [0.0, 0.0]);
    }
}
