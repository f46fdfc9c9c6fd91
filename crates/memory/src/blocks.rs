//! Copying many blocks of one length, in a loop that knows the length.

use std::mem::MaybeUninit;

use crate::bytes::{Buffer, Bytes, copy};

/// Where blocks of equal length lie: the first, and how far each is behind the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Where the first block begins.
    pub start: i64,
    /// From one block to the next, in bytes.
    pub stride: i64,
}

impl Buffer {
    /// Copies `count` blocks of `length` bytes, from where `from` says in `bytes` to where `to` says
    /// in this buffer. Says false, and copies nothing, unless all blocks lie within both.
    #[inline]
    pub fn write_blocks(
        &self,
        to: Spread,
        bytes: Bytes<'_>,
        from: Spread,
        length: usize,
        count: u64,
    ) -> bool {
        // SAFETY: the promise of whoever made the buffer keeps it writable.
        unsafe {
            copy_checked(
                bytes,
                from,
                (self.bytes().start().as_ptr(), self.len()),
                to,
                length,
                count,
            )
        }
    }
}

impl Bytes<'_> {
    /// Copies `count` blocks of `length` bytes, from where `from` says to where `to` says in `room`.
    /// Says false, and copies nothing, unless all blocks lie within both.
    #[inline]
    pub fn copy_blocks(
        &self,
        from: Spread,
        room: &mut [MaybeUninit<u8>],
        to: Spread,
        length: usize,
        count: u64,
    ) -> bool {
        // SAFETY: the room is exclusively ours.
        unsafe {
            copy_checked(*self, from, (room.as_mut_ptr().cast(), room.len()), to, length, count)
        }
    }

    /// The same into memory that has been written to before.
    #[inline]
    pub fn copy_blocks_to_slice(
        &self,
        from: Spread,
        target: &mut [u8],
        to: Spread,
        length: usize,
        count: u64,
    ) -> bool {
        // SAFETY: the target is exclusively ours.
        unsafe { copy_checked(*self, from, (target.as_mut_ptr(), target.len()), to, length, count) }
    }
}

/// Copies the blocks if all lie within both.
///
/// # Safety
/// The room is valid for writes. It does not overlap the bytes.
#[inline]
unsafe fn copy_checked(
    bytes: Bytes<'_>,
    from: Spread,
    room: (*mut u8, usize),
    to: Spread,
    length: usize,
    count: u64,
) -> bool {
    if count == 0 || length == 0 {
        return true;
    }
    if !from.lies_within(bytes.len(), length, count) || !to.lies_within(room.1, length, count) {
        return false;
    }
    // SAFETY: all blocks lie within the bytes, which their maker's promise keeps readable, and within
    // the room, by the caller's promise.
    unsafe {
        let source = bytes.start().as_ptr().add(from.start as usize);
        let target = room.0.add(to.start as usize);
        if count == 1 {
            copy(source, target, length);
        } else {
            copy_blocks(Walker::new(source, from), Walker::new(target, to), length, count);
        }
    }
    true
}

impl Spread {
    /// Whether so many blocks lie within so many bytes.
    #[inline]
    fn lies_within(&self, bytes: usize, length: usize, count: u64) -> bool {
        if count == 1 {
            let end = usize::try_from(self.start).ok().and_then(|start| start.checked_add(length));
            return end.is_some_and(|end| end <= bytes);
        }
        let last = i64::try_from(count - 1)
            .ok()
            .and_then(|steps| steps.checked_mul(self.stride))
            .and_then(|reach| reach.checked_add(self.start));
        let (Some(last), Ok(room)) = (last, i64::try_from(bytes)) else { return false };
        let Some(room) = i64::try_from(length).ok().and_then(|it| room.checked_sub(it)) else {
            return false;
        };
        self.start.min(last) >= 0 && self.start.max(last) <= room
    }
}

/// A place that goes from block to block.
#[derive(Clone, Copy)]
struct Walker {
    at: *mut u8,
    stride: isize,
}

impl Walker {
    fn new(at: *mut u8, spread: Spread) -> Self {
        Self { at, stride: spread.stride as isize }
    }

    #[inline(always)]
    fn advance(&mut self) {
        self.at = self.at.wrapping_offset(self.stride);
    }
}

/// Copies the blocks.
///
/// # Safety
/// All places that both walkers come to are valid for `length` bytes. They may not overlap.
unsafe fn copy_blocks(source: Walker, target: Walker, length: usize, count: u64) {
    macro_rules! by_length {
        ($($known:literal)*) => {
            match length {
                // SAFETY: the caller's promise.
                $($known => unsafe { copy_known::<$known>(source, target, count) },)*
                // SAFETY: as above.
                _ => unsafe { copy_any(source, target, length, count) },
            }
        };
    }
    by_length!(1 2 3 4 6 8 12 16 20 24 28 32 36 40 48 56 64 72 80 88 96 104 112 120 128);
}

/// As [`copy_blocks`], for a length known when this was compiled.
unsafe fn copy_known<const LENGTH: usize>(mut source: Walker, mut target: Walker, count: u64) {
    for _ in 0..count {
        // SAFETY: the caller's promise; the blocks may lie anywhere.
        unsafe {
            let block = source.at.cast::<[u8; LENGTH]>().read_unaligned();
            target.at.cast::<[u8; LENGTH]>().write_unaligned(block);
        }
        source.advance();
        target.advance();
    }
}

/// As [`copy_blocks`], for any length.
unsafe fn copy_any(mut source: Walker, mut target: Walker, length: usize, count: u64) {
    for _ in 0..count {
        // SAFETY: the caller's promise.
        unsafe { copy(source.at, target.at, length) };
        source.advance();
        target.advance();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::ptr::NonNull;

    use super::*;

    fn buffer(memory: &mut [u8]) -> Buffer {
        // SAFETY: the tests keep the memory as long as the buffer and use nothing else meanwhile.
        unsafe { Buffer::new(NonNull::from(&mut *memory).cast(), memory.len()) }
    }

    #[test]
    fn every_length_and_count_is_copied_exactly() {
        let source: Vec<u8> = (0..250u8).cycle().take(4000).collect();
        for length in [1, 2, 3, 4, 5, 7, 8, 12, 16, 24, 33, 40, 64, 65, 100, 128] {
            for count in [1u64, 2, 3, 4, 5, 9, 20] {
                let mut memory = vec![0xff; 4000];
                let (from, to) = (length as i64 + 3, length as i64 + 1);
                let target = buffer(&mut memory);
                let from = Spread { start: 5, stride: from };
                let to = Spread { start: 7, stride: to };
                assert!(target.write_blocks(to, Bytes::from(&source[..]), from, length, count));
                let mut expected = vec![0xff; 4000];
                for index in 0..count as usize {
                    let (read, write) = (5 + index * (length + 3), 7 + index * (length + 1));
                    expected[write..write + length].copy_from_slice(&source[read..read + length]);
                }
                assert!(memory == expected, "{length} bytes {count} times");
            }
        }
    }

    #[test]
    fn blocks_outside_are_refused() {
        let source = [1u8; 16];
        let mut memory = [0u8; 16];
        let mut write = |start, stride, from| {
            let (to, from) = (Spread { start, stride }, Spread { start: from, stride: 4 });
            buffer(&mut memory).write_blocks(to, Bytes::from(&source[..]), from, 4, 4)
        };
        assert!(write(0, 4, 0) && write(12, -4, 0));
        assert!(!write(1, 4, 0) && !write(11, -4, 0) && !write(0, 5, 0) && !write(0, 4, 1));
        assert!(!write(-1, 4, 0) && !write(0, i64::MAX, 0) && !write(i64::MAX, 4, 0));
    }
}
