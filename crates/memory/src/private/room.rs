//! Private memory whose size the program or another process has said. If there is none, that is an
//! error of the call; an ordinary allocation would end the process.

use std::alloc::Layout;

use crate::private::bytes::Bytes;
use crate::private::plain::{Plain, bytes_of_mut};

/// This process gets no memory for so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this process gets no memory for {bytes} bytes more: raise its limit (ulimit -v), free what it does not use, or do it in smaller pieces"
)]
pub struct NoMemory {
    /// How many are wanted.
    pub bytes: usize,
}

impl NoMemory {
    /// For so many values.
    pub const fn for_values<T>(count: usize) -> Self {
        Self { bytes: size_of::<T>().saturating_mul(count) }
    }
}

/// A vector of `count` values of zero bytes. No byte is touched before it is used.
///
/// # Errors
/// [`NoMemory`].
pub fn zeroes<T: Plain>(count: usize) -> Result<Vec<T>, NoMemory> {
    let no_memory = NoMemory::for_values::<T>(count);
    let layout = Layout::array::<T>(count).map_err(|_| no_memory)?;
    if layout.size() == 0 {
        return Ok(vec![crate::private::plain::zero(); count]);
    }
    // SAFETY: the layout is not empty.
    let start = unsafe { std::alloc::alloc_zeroed(layout) }.cast::<T>();
    if start.is_null() {
        return Err(no_memory);
    }
    // SAFETY: the memory has just been allocated for so many values, and all its bytes are zero, which
    // is a value of a plain type.
    Ok(unsafe { Vec::from_raw_parts(start, count, count) })
}

/// An empty list with room for so many values.
///
/// # Errors
/// [`NoMemory`].
pub fn list<T>(count: usize) -> Result<Vec<T>, NoMemory> {
    let mut list = Vec::new();
    list.try_reserve_exact(count).map_err(|_| NoMemory::for_values::<T>(count))?;
    Ok(list)
}

/// Room for so many values more in a list.
///
/// # Errors
/// [`NoMemory`].
#[inline]
pub fn grow<T>(list: &mut Vec<T>, more: usize) -> Result<(), NoMemory> {
    list.try_reserve(more).map_err(|_| NoMemory::for_values::<T>(more))
}

/// Gives a list so many bytes; new ones are zero.
///
/// # Errors
/// [`NoMemory`]; the list is as before.
pub fn resize(list: &mut Vec<u8>, bytes: usize) -> Result<(), NoMemory> {
    grow(list, bytes.saturating_sub(list.len()))?;
    list.resize(bytes, 0);
    Ok(())
}

/// A private copy.
///
/// # Errors
/// [`NoMemory`].
pub fn copy<T: Plain>(bytes: Bytes<'_>) -> Result<Vec<T>, NoMemory> {
    let mut values = zeroes::<T>(bytes.len() / size_of::<T>().max(1))?;
    bytes.copy_to_slice(bytes_of_mut(&mut values));
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_cannot_be_had_is_an_error_with_its_size() {
        let half = usize::MAX / 2;
        for bytes in [half / 4, half, usize::MAX] {
            assert_eq!(zeroes::<u8>(bytes), Err(NoMemory { bytes }));
            assert_eq!(list::<u8>(bytes), Err(NoMemory { bytes }));
            assert_eq!(resize(&mut vec![7], bytes), Err(NoMemory { bytes: bytes - 1 }));
        }
        let most = NoMemory { bytes: usize::MAX };
        assert_eq!((zeroes::<u64>(half), list::<u64>(half)), (Err(most), Err(most)));
        assert_eq!(grow(&mut vec![7u64], half), Err(most));
        let text = NoMemory { bytes: 1 << 50 }.to_string();
        assert!(text.contains("1125899906842624 bytes"), "{text}");
    }

    #[test]
    fn memory_that_is_there_is_what_was_asked_for() {
        assert_eq!(zeroes::<u64>(3), Ok(vec![0; 3]));
        assert_eq!((zeroes::<u64>(0), zeroes::<[u8; 0]>(2)), (Ok(vec![]), Ok(vec![[]; 2])));
        assert!(list::<u64>(5).unwrap().capacity() >= 5);
        let mut list = vec![7];
        resize(&mut list, 3).unwrap();
        assert_eq!(list, [7, 0, 0]);
        resize(&mut list, 1).unwrap();
        assert_eq!(list, [7]);
        assert_eq!(
            copy::<u16>(Bytes::from(&[1, 0, 2, 0][..])),
            Ok(vec![1u16.to_le(), 2u16.to_le()])
        );
    }
}
