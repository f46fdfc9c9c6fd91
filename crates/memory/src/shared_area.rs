//! Memory of its own, apart from the job's segment: an anonymous file that several processes map.
//! Every word of it may be written by any of them at any time.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::plan::PAGE_BYTES;
use crate::private::bytes::{Bytes, copy};
use crate::private::plain::{Plain, bytes_of, bytes_of_mut};
use crate::system;

/// Most bytes of such memory.
pub const AREA_BYTES_MAX: u64 = 1 << 40;

/// The memory, mapped. A clone is another handle to it; it is unmapped with the last one.
#[derive(Clone)]
pub struct SharedArea(Arc<Mapping>);

struct Mapping {
    start: NonNull<u8>,
    /// Bytes that are meant, and bytes that are mapped.
    bytes: usize,
    mapped: usize,
}

// SAFETY: the memory is used through atomics and raw copies only, by whatever thread.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// Values were to be read or written outside of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "bytes {} to {} were asked for, the shared memory has {bytes}: stay within it", .range.start, .range.end
)]
pub struct OutsideArea {
    /// The bytes asked for.
    pub range: Range<usize>,
    /// How many there are.
    pub bytes: usize,
}

/// Makes the file for so many bytes, all zero, sealed against changes of its size. Its pages are
/// there once they are touched.
///
/// # Errors
/// For no bytes or too many, and what the kernel says.
pub fn file(bytes: u64) -> io::Result<OwnedFd> {
    if bytes == 0 || bytes > AREA_BYTES_MAX {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    system::sealed_file(c"landeck-object", bytes.next_multiple_of(PAGE_BYTES))
}

impl SharedArea {
    /// Maps a file of [`file()`], of which so many bytes are meant.
    ///
    /// # Errors
    /// When it is no such file or has fewer bytes, and what the kernel says.
    pub fn map(file: &OwnedFd, bytes: u64) -> io::Result<Self> {
        let there = system::file_bytes(file.as_fd())?;
        if !system::is_sealed(file.as_fd()) || bytes == 0 || bytes > there || there > AREA_BYTES_MAX
        {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let start = system::map_shared(file.as_fd(), there as usize)?;
        Ok(Self(Arc::new(Mapping { start, bytes: bytes as usize, mapped: there as usize })))
    }

    /// How many bytes it has.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.bytes
    }

    /// Whether it has none. There always are some.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of it, to be copied out of.
    #[inline]
    pub fn bytes(&self) -> Bytes<'_> {
        // SAFETY: so many bytes are mapped while the handle is borrowed.
        unsafe { Bytes::from_raw(self.0.start, self.0.bytes) }
    }

    /// All whole words of it.
    #[inline]
    pub fn words(&self) -> &[AtomicU64] {
        let words = self.0.bytes / size_of::<AtomicU64>();
        // SAFETY: a mapping begins on a page; the words are mapped while the handle is borrowed,
        // and whatever is in them is a value.
        unsafe { std::slice::from_raw_parts(self.0.start.as_ptr().cast(), words) }
    }

    /// Copies values out, from byte `offset` on.
    ///
    /// # Errors
    /// [`OutsideArea`].
    pub fn read<T: Plain>(&self, offset: usize, into: &mut [T]) -> Result<(), OutsideArea> {
        self.check(offset, size_of_val(into))?;
        self.bytes().part(offset, size_of_val(into)).copy_to_slice(bytes_of_mut(into));
        Ok(())
    }

    /// Copies values in, from byte `offset` on.
    ///
    /// # Errors
    /// [`OutsideArea`].
    pub fn write<T: Plain>(&self, offset: usize, values: &[T]) -> Result<(), OutsideArea> {
        let bytes = bytes_of(values);
        self.check(offset, bytes.len())?;
        // SAFETY: the range was just checked to lie within what is mapped; nobody has a reference
        // to it but as atomics and places to copy from.
        unsafe { copy(bytes.as_ptr(), self.0.start.add(offset).as_ptr(), bytes.len()) };
        Ok(())
    }

    /// Copies bytes in, from byte `place` on, cut where the memory ends.
    #[inline]
    pub fn copy_in(&self, place: u64, data: Bytes<'_>) {
        let place = usize::try_from(place).unwrap_or(usize::MAX).min(self.len());
        let length = data.len().min(self.len() - place);
        // SAFETY: the range was just cut to what is mapped; nobody has a reference to it but as
        // atomics and places to copy from, and what it is copied from lies elsewhere.
        unsafe { copy(data.start().as_ptr(), self.0.start.add(place).as_ptr(), length) };
    }

    /// The address of the mapping, for callers that share it with code that takes pointers.
    pub fn as_ptr(&self) -> *mut u8 {
        self.0.start.as_ptr()
    }

    fn check(&self, offset: usize, length: usize) -> Result<(), OutsideArea> {
        let end = offset.saturating_add(length);
        if end > self.len() {
            return Err(OutsideArea { range: offset..end, bytes: self.len() });
        }
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the last handle goes, and with it every borrow of the memory.
        unsafe { system::unmap(self.start, self.mapped) };
    }
}

impl std::fmt::Debug for SharedArea {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SharedArea").field("bytes", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn data_written_through_one_mapping_are_read_through_another() {
        let file = file(100).unwrap();
        let [one, other] = [(); 2].map(|()| SharedArea::map(&file, 100).unwrap());
        one.write(90, &[7u16, 8]).unwrap();
        let mut back = [0u16; 2];
        other.read(90, &mut back).unwrap();
        assert_eq!((back, other.words().len()), ([7, 8], 12));
        one.words()[3].store(5, Ordering::Release);
        assert_eq!(other.clone().words()[3].load(Ordering::Acquire), 5);
        drop(one);
        assert_eq!(other.bytes().len(), 100);
    }

    #[test]
    fn nothing_outside_is_touched() {
        let area = SharedArea::map(&file(10).unwrap(), 10).unwrap();
        for (offset, length) in [(0, 11), (9, 2), (usize::MAX, 1), (11, 0)] {
            let mut bytes = vec![0u8; length];
            assert!(area.read(offset, &mut bytes).is_err(), "{offset} {length}");
            assert!(area.write(offset, &bytes).is_err(), "{offset} {length}");
        }
        let error = area.write(9, &[1u8, 2]).unwrap_err();
        assert_eq!(error, OutsideArea { range: 9..11, bytes: 10 });
        area.write(10, &[0u8; 0]).unwrap();
    }

    #[test]
    fn other_files_and_impossible_sizes_are_refused() {
        assert!(file(0).is_err() && file(AREA_BYTES_MAX + 1).is_err());
        let small = file(10).unwrap();
        assert!(SharedArea::map(&small, PAGE_BYTES + 1).is_err());
        assert!(SharedArea::map(&small, 0).is_err());
        let (reader, _writer) = std::io::pipe().unwrap();
        assert!(SharedArea::map(&reader.into(), 10).is_err());
    }
}
