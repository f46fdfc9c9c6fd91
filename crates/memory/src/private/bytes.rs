//! Bytes of a message while it moves: where they are read from, where they are written to.
//!
//! Memory that another process may write at any time is never a `&[u8]`: [`Bytes`] is a place
//! and a length, and all one can do is copy out of it.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// Readable bytes whose content another process may change while we read: at worst the data are
/// wrong, never the control flow.
#[derive(Clone, Copy)]
pub struct Bytes<'a> {
    start: NonNull<u8>,
    length: usize,
    place: PhantomData<&'a [u8]>,
}

// SAFETY: a `Bytes` is as shareable as the `&[u8]` it stands for.
unsafe impl Send for Bytes<'_> {}
// SAFETY: as above.
unsafe impl Sync for Bytes<'_> {}

impl<'a> Bytes<'a> {
    /// No bytes.
    pub const EMPTY: Bytes<'static> =
        Bytes { start: NonNull::dangling(), length: 0, place: PhantomData };

    /// `length` bytes from `start`.
    ///
    /// # Safety
    /// The range stays mapped and readable for `'a`.
    #[inline]
    pub const unsafe fn from_raw(start: NonNull<u8>, length: usize) -> Self {
        Self { start, length, place: PhantomData }
    }

    /// How many.
    #[inline]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Where they begin.
    #[inline]
    pub const fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Whether the system copies them slowly to memory so many bytes behind the begin of a page, since it uses the
    /// processor's string copy wherever that lies. [`Bytes::copy_to`] knows better.
    #[inline]
    pub fn are_copied_slowly_to(&self, place: usize) -> bool {
        let place = std::ptr::without_provenance(place);
        self.length >= BY_LINES_BYTES_MIN && lies_just_behind(place, self.start.as_ptr())
    }

    /// The part from `offset`, at most `length` bytes of it; cut where these bytes end.
    #[inline]
    #[must_use]
    pub fn part(&self, offset: usize, length: usize) -> Self {
        let offset = offset.min(self.length);
        // SAFETY: the offset was cut to the range, which does not reach around to address zero.
        let start = unsafe { NonNull::new_unchecked(self.start.as_ptr().wrapping_add(offset)) };
        Self { start, length: length.min(self.length - offset), place: PhantomData }
    }

    /// Copies as much as fits into `target`; returns the bytes copied.
    #[inline]
    pub fn copy_to(&self, target: &mut [MaybeUninit<u8>]) -> usize {
        let length = self.length.min(target.len());
        // SAFETY: both ranges are at least `length` long; `target` is exclusively ours.
        unsafe { copy(self.start.as_ptr(), target.as_mut_ptr().cast(), length) };
        length
    }

    /// Copies as much as fits into `target`; returns the bytes copied.
    #[inline]
    pub fn copy_to_slice(&self, target: &mut [u8]) -> usize {
        let length = self.length.min(target.len());
        // SAFETY: both ranges are at least `length` long; `target` is exclusively ours.
        unsafe { copy(self.start.as_ptr(), target.as_mut_ptr(), length) };
        length
    }

    /// A private copy.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut copy = Vec::new();
        self.append_to(&mut copy);
        copy
    }

    /// Copies all of them behind those that `target` has.
    #[inline]
    pub fn append_to(&self, target: &mut Vec<u8>) {
        target.reserve(self.length);
        let length = self.copy_to(target.spare_capacity_mut()).min(self.length);
        // SAFETY: `copy_to` has just initialised this many bytes behind the length.
        unsafe { target.set_len(target.len() + length) };
    }
}

impl<'a> From<&'a [u8]> for Bytes<'a> {
    #[inline]
    fn from(slice: &'a [u8]) -> Self {
        Self { start: NonNull::from(slice).cast(), length: slice.len(), place: PhantomData }
    }
}

/// A user's memory that a request reads from or writes to until it is complete.
///
/// The caller that makes a buffer promises that the memory stays; so making one is unsafe and using one is not.
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the promise given to `Buffer::new` holds for whichever thread completes the request.
unsafe impl Send for Buffer {}

impl Buffer {
    /// No memory.
    pub const EMPTY: Self = Self { start: NonNull::dangling(), length: 0 };

    /// Memory that could not be had: it has a length and no bytes.
    ///
    /// # Safety
    /// Its bytes are only counted: nobody reads or writes any.
    pub const unsafe fn missing(length: usize) -> Self {
        let most = isize::MAX as usize;
        Self { start: NonNull::dangling(), length: if length < most { length } else { most } }
    }

    /// `length` bytes from `start`, for sending from or receiving into.
    ///
    /// # Safety
    /// Until every request with this buffer is complete or dropped by its endpoint, the range
    /// stays mapped; a receiving request's range is written by nobody else, a sending request's
    /// range by nobody at all.
    #[inline]
    pub const unsafe fn new(start: NonNull<u8>, length: usize) -> Self {
        Self { start, length }
    }

    /// How many bytes it has.
    #[inline]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Whether it has none.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Its bytes, to be read. The lifetime is the caller's statement, covered by the promise
    /// given to [`Buffer::new`].
    #[inline]
    pub fn bytes<'a>(&self) -> Bytes<'a> {
        // SAFETY: the promise of `new`: the range stays mapped while requests use it.
        unsafe { Bytes::from_raw(self.start, self.length) }
    }

    /// The part from `offset`, at most `length` bytes of it; cut where the buffer ends.
    #[inline]
    #[must_use]
    pub fn part(&self, offset: usize, length: usize) -> Self {
        let part = self.bytes().part(offset, length);
        Self { start: part.start(), length: part.len() }
    }

    /// Writes `bytes` at `offset`, cut where the buffer ends; says how many were written.
    #[inline]
    pub fn write(&self, offset: usize, bytes: Bytes<'_>) -> usize {
        let offset = offset.min(self.length);
        let length = bytes.len().min(self.length - offset);
        // SAFETY: the range was cut to the buffer, which the promise of `new` keeps writable.
        unsafe { copy(bytes.start.as_ptr(), self.start.as_ptr().add(offset), length) };
        length
    }
}

/// Copies `length` bytes; short ones without a call.
///
/// # Safety
/// Both ranges are valid for `length` bytes. They may not overlap.
#[inline(always)]
pub unsafe fn copy(source: *const u8, target: *mut u8, length: usize) {
    // SAFETY: the caller's promise covers every access below: all lie within `length` bytes.
    unsafe {
        match length {
            0 => {}
            1..=3 => {
                *target = *source;
                *target.add(length / 2) = *source.add(length / 2);
                *target.add(length - 1) = *source.add(length - 1);
            }
            4..=7 => twice::<u32>(source, target, length),
            8..=16 => twice::<u64>(source, target, length),
            17..=32 => twice::<u128>(source, target, length),
            33..=64 => {
                twice::<u128>(source, target, 32);
                twice::<u128>(source.add(length - 32), target.add(length - 32), 32);
            }
            65..=128 => twice::<[u128; 4]>(source, target, length),
            _ => copy_long(source, target, length),
        }
    }
}

/// Lengths from which, and up to which, the processor's own string copy is used where it is fast.
/// It does not read the lines that it is about to write, and asks for those of another core in
/// larger portions than a loop. The library's copy comes to it as well, after work that costs up to
/// a fifth where the cores are far apart; of lengths beyond, the library knows more.
#[cfg(target_arch = "x86_64")]
const STRING_BYTES: std::ops::RangeInclusive<usize> = 4 << 10..=256 << 10;

/// Copies more than a few words.
///
/// # Safety
/// As [`copy`].
#[inline]
unsafe fn copy_long(source: *const u8, target: *mut u8, length: usize) {
    #[cfg(target_arch = "x86_64")]
    if length >= BY_LINES_BYTES_MIN && lies_just_behind(target, source) {
        // SAFETY: both ranges are valid and apart.
        return unsafe { copy_by_lines(source, target, length) };
    } else if STRING_BYTES.contains(&length) && strings::are_fast() {
        // SAFETY: both ranges are valid and apart, and the processor has this copy.
        return unsafe { strings::copy(source, target, length) };
    }
    // SAFETY: both ranges are valid for so many bytes, and no byte is in both.
    unsafe { std::ptr::copy_nonoverlapping(source, target, length) }
}

/// Whether the target lies, within its page, less than half a line behind the source. Then each read of the processor's string
/// copy waits for a write that is none of its business: 64 KiB take 22 us instead of 1.4. Long memory that `malloc` gives
/// begins 16 bytes behind a page, as much behind memory that begins with one. So it is no rare case.
#[inline]
fn lies_just_behind(target: *const u8, source: *const u8) -> bool {
    const PAGE: usize = 4096;
    cfg!(target_arch = "x86_64")
        && (1..32).contains(&(target.addr().wrapping_sub(source.addr()) % PAGE))
}

/// The least bytes for which the library's copy, too, may be the processor's string copy.
const BY_LINES_BYTES_MIN: usize = 2 << 10;

/// Copies a line at a time, each read before it is written.
///
/// # Safety
/// As [`copy`], and `length` is at least one line.
#[cfg(target_arch = "x86_64")]
#[inline(never)]
unsafe fn copy_by_lines(source: *const u8, target: *mut u8, length: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_storeu_si128};
    const LINE: usize = 64;
    let line = |at: usize| {
        // SAFETY: the line at `at` lies within both ranges, as the loop below sees to; the accesses may be unaligned.
        unsafe {
            let (from, to) = (source.add(at).cast::<__m128i>(), target.add(at).cast::<__m128i>());
            let words = [0, 1, 2, 3].map(|word| _mm_loadu_si128(from.add(word)));
            for (word, value) in words.into_iter().enumerate() {
                _mm_storeu_si128(to.add(word), value);
            }
        }
    };
    for at in (0..=length - LINE).step_by(LINE) {
        line(at);
    }
    line(length - LINE);
}

/// The copy that the processor does in one instruction.
#[cfg(target_arch = "x86_64")]
mod strings {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    use std::sync::atomic::{AtomicU8, Ordering};

    const UNKNOWN: u8 = 0;
    const SLOW: u8 = 1;
    const FAST: u8 = 2;

    /// The kind of this processor's string copy. It is asked once, since asking is slow on a virtual machine.
    static KIND: AtomicU8 = AtomicU8::new(UNKNOWN);

    /// Whether the processor says that this copy is fast for long and for short strings.
    #[inline]
    pub(super) fn are_fast() -> bool {
        match KIND.load(Ordering::Relaxed) {
            UNKNOWN => ask(),
            kind => kind == FAST,
        }
    }

    #[cold]
    fn ask() -> bool {
        const LEAF: u32 = 7;
        const LONG_ARE_FAST: u32 = 1 << 9; // in ebx: ERMS
        const SHORT_ARE_FAST: u32 = 1 << 4; // in edx: FSRM
        let is_there = __cpuid(0).eax >= LEAF;
        let are_fast = is_there && {
            let features = __cpuid_count(LEAF, 0);
            features.ebx & LONG_ARE_FAST != 0 && features.edx & SHORT_ARE_FAST != 0
        };
        KIND.store(if are_fast { FAST } else { SLOW }, Ordering::Relaxed);
        are_fast
    }

    /// Copies; whatever is stored afterwards is seen afterwards, as with any copy.
    ///
    /// # Safety
    /// As [`super::copy`].
    #[inline]
    pub(super) unsafe fn copy(source: *const u8, target: *mut u8, length: usize) {
        // SAFETY: both ranges are valid for `length` bytes, as the caller promises; the direction
        // is upwards, as it always is between functions.
        unsafe {
            std::arch::asm!(
                "rep movsb",
                inout("rcx") length => _,
                inout("rdi") target => _,
                inout("rsi") source => _,
                options(nostack, preserves_flags),
            );
        }
    }
}

/// Copies the first and the last `T` of a range; they overlap when it is shorter than two.
///
/// # Safety
/// Both ranges are valid for `length` bytes, and `length` lies between one `T` and two.
#[inline(always)]
unsafe fn twice<T: Copy>(source: *const u8, target: *mut u8, length: usize) {
    let last = length - size_of::<T>();
    // SAFETY: both words lie within the ranges; unaligned accesses are said to be.
    unsafe {
        let first_word = source.cast::<T>().read_unaligned();
        let last_word = source.add(last).cast::<T>().read_unaligned();
        target.cast::<T>().write_unaligned(first_word);
        target.add(last).cast::<T>().write_unaligned(last_word);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_copied_exactly() {
        let source: Vec<u8> = (0..200u8).collect();
        for length in 0..=200 {
            let mut target = vec![0xff; 202];
            assert_eq!(
                Bytes::from(&source[..length]).copy_to_slice(&mut target[1..=length]),
                length
            );
            assert_eq!(target[1..=length], source[..length], "{length}");
            assert_eq!((target[0], target[length + 1]), (0xff, 0xff), "{length} wrote beside");
        }
    }

    #[test]
    fn long_ones_are_copied_exactly_wherever_they_lie_within_their_pages() {
        let source: Vec<u8> = (0..300_000usize).map(|at| (at * 7 + at / 251) as u8).collect();
        let lengths = [65, 2048, 2049, 4095, 4096, 4097, 16_384, 65_536, 262_144, 262_145];
        for length in lengths {
            for (from, to) in [(0, 1), (1, 1), (3, 40), (5, 69), (64, 1), (4096, 4097)] {
                let mut target = vec![0xff; to + length + 1];
                target[to - 1] = 0xaa;
                let bytes = Bytes::from(&source[from..from + length]);
                assert_eq!(bytes.copy_to_slice(&mut target[to..to + length]), length);
                assert!(target[to..to + length] == source[from..from + length], "{length} {from}");
                assert_eq!((target[to - 1], target[to + length]), (0xaa, 0xff), "wrote beside");
            }
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_copy_to_just_behind_its_source_within_a_page_is_exact() {
        const PAGE: usize = 4096;
        let source: Vec<u8> = (0..9_000usize).map(|at| (at * 7 + at / 251) as u8).collect();
        for (length, behind) in [(2048, 1), (2049, 8), (4097, 16), (8_191, 31), (8_192, 16)] {
            let mut target = vec![0xff; length + PAGE + 2];
            let begin = source.as_ptr().addr() + behind;
            let to = 1 + begin.wrapping_sub(target.as_ptr().addr() + 1) % PAGE;
            assert!(lies_just_behind(target[to..].as_ptr(), source.as_ptr()), "{behind}");
            let bytes = Bytes::from(&source[..length]);
            assert_eq!(bytes.copy_to_slice(&mut target[to..to + length]), length);
            assert!(target[to..to + length] == source[..length], "{length} {behind}");
            assert_eq!((target[to - 1], target[to + length]), (0xff, 0xff), "wrote beside");
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_target_just_behind_its_source_is_told_by_the_places_within_pages() {
        let at = |address: usize| std::ptr::without_provenance::<u8>(address);
        let is_behind = |target, source| lies_just_behind(at(target), at(source));
        assert!(is_behind(0x10010, 0x20000) && is_behind(0x1000f, 0x20ff0));
        assert!(!is_behind(0x10000, 0x20000) && !is_behind(0x10020, 0x20000));
        assert!(!is_behind(0x10000, 0x20010));
    }

    #[test]
    fn parts_are_cut_where_the_bytes_end() {
        let source = [1u8, 2, 3, 4];
        let bytes = Bytes::from(&source[..]);
        assert_eq!(bytes.part(1, 2).to_vec(), [2, 3]);
        assert_eq!(bytes.part(3, 9).to_vec(), [4]);
        assert!(bytes.part(9, 9).is_empty());
    }

    #[test]
    fn a_buffer_takes_what_fits() {
        let mut memory = [0u8; 4];
        // SAFETY: `memory` outlives the buffer and nobody else touches it meanwhile.
        let buffer = unsafe { Buffer::new(NonNull::from(&mut memory).cast(), 4) };
        assert_eq!(buffer.write(2, Bytes::from(&[7u8, 8, 9][..])), 2);
        assert_eq!(buffer.write(9, Bytes::from(&[7u8][..])), 0);
        assert_eq!(buffer.bytes().to_vec(), [0, 0, 7, 8]);
    }
}
