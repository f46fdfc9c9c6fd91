//! Copying many blocks of one length, in a loop that knows the length.

use std::mem::MaybeUninit;

use crate::private::bytes::{Buffer, Bytes, copy};

/// Where blocks of equal length lie: the first, and how far each is behind the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Where the first block begins.
    pub start: i64,
    /// From one block to the next, in bytes.
    pub stride: i64,
}

/// The shape of a strided copy: blocks of one length, each optionally with a second block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// How long each is, in bytes.
    pub length: usize,
    /// How many there are.
    pub count: u64,
    /// The second block that is copied with each.
    pub beside: Option<Beside>,
}

/// A second block that is copied with each of many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beside {
    /// Where it comes from, in bytes from where the first one does.
    pub from: i64,
    /// Where it goes to, in bytes from where the first one does.
    pub to: i64,
    /// How long it is, in bytes.
    pub length: usize,
}

impl Buffer {
    /// Copies blocks from where `from` says in `bytes` to where `to` says in this buffer. Says false,
    /// and copies nothing, unless all blocks lie within both.
    #[inline]
    pub fn write_blocks(&self, to: Spread, bytes: Bytes<'_>, from: Spread, blocks: Blocks) -> bool {
        // SAFETY: the promise of the buffer's maker keeps it writable.
        unsafe {
            copy_checked(bytes, from, (self.bytes().start().as_ptr(), self.len()), to, blocks)
        }
    }
}

impl Bytes<'_> {
    /// Copies blocks from where `from` says to where `to` says in `room`. Says false, and copies
    /// nothing, unless all blocks lie within both.
    #[inline]
    pub fn copy_blocks(
        &self,
        from: Spread,
        room: &mut [MaybeUninit<u8>],
        to: Spread,
        blocks: Blocks,
    ) -> bool {
        // SAFETY: the room is exclusively ours.
        unsafe { copy_checked(*self, from, (room.as_mut_ptr().cast(), room.len()), to, blocks) }
    }

    /// Copies blocks into initialised memory, with the conditions of [`Bytes::copy_blocks`].
    #[inline]
    pub fn copy_blocks_to_slice(
        &self,
        from: Spread,
        target: &mut [u8],
        to: Spread,
        blocks: Blocks,
    ) -> bool {
        // SAFETY: the target is exclusively ours.
        unsafe { copy_checked(*self, from, (target.as_mut_ptr(), target.len()), to, blocks) }
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
    Blocks { length, count, beside }: Blocks,
) -> bool {
    if count == 0 || length == 0 {
        return true;
    }
    let lie_within = |from: Spread, to: Spread, length| {
        from.lies_within(bytes.len(), length, count) && to.lies_within(room.1, length, count)
    };
    if !lie_within(from, to, length) {
        return false;
    }
    let beside_lies_within = |Beside { from: behind, to: target, length }| {
        let (from, to) = (from.moved(behind), to.moved(target));
        from.zip(to).is_some_and(|(from, to)| lie_within(from, to, length))
    };
    if !beside.is_none_or(beside_lies_within) {
        return false;
    }
    // SAFETY: all blocks lie within the bytes, which their maker's promise keeps readable, and within
    // the room, by the caller's promise.
    unsafe {
        copy_spread((bytes.start().as_ptr(), from), (room.0, to), Blocks { length, count, beside });
    }
    true
}

/// Copies blocks, from the bytes that a spread is about to those that another one is about.
///
/// # Safety
/// Where the blocks come from is readable, and where they go to is writable. They do not overlap.
#[inline(always)]
pub unsafe fn copy_spread(
    (source, from): (*const u8, Spread),
    (target, to): (*mut u8, Spread),
    Blocks { length, count, beside }: Blocks,
) {
    let source = Walker::new(source.cast_mut().wrapping_offset(from.start as isize), from);
    let target = Walker::new(target.wrapping_offset(to.start as isize), to);
    // SAFETY: the caller's promise.
    unsafe {
        match beside {
            None if count == 1 => copy(source.at, target.at, length),
            None => copy_blocks(source, target, length, count),
            Some(beside) => copy_pairs(source, target, length, beside, count),
        }
    }
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

    /// This spread with its start moved by `by` bytes; none on overflow.
    #[inline]
    fn moved(self, by: i64) -> Option<Self> {
        Some(Self { start: self.start.checked_add(by)?, ..self })
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

    /// The address that is `blocks` blocks later.
    #[inline(always)]
    fn after(&self, blocks: isize) -> *mut u8 {
        self.at.wrapping_offset(self.stride.wrapping_mul(blocks))
    }

    /// This walk, moved by `by` bytes.
    #[inline(always)]
    fn moved(self, by: i64) -> Self {
        Self { at: self.at.wrapping_offset(by as isize), ..self }
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
                4 => unsafe { copy_word::<4>(source, target, count) },
                // SAFETY: as above.
                8 => unsafe { copy_word::<8>(source, target, count) },
                // SAFETY: as above; the word is as long as a block at most.
                5 | 7 => unsafe { copy_ends::<4>(source, target, length, count) },
                // SAFETY: as above.
                9..=15 => unsafe { copy_ends::<8>(source, target, length, count) },
                // SAFETY: as above.
                17..=31 => unsafe { copy_ends::<16>(source, target, length, count) },
                // SAFETY: as above.
                _ => unsafe { copy_any(source, target, length, count) },
            }
        };
    }
    by_length!(1 2 3 6 12 16 20 24 32 36 40 48 56 64 72 80 88 96 104 112 120 128);
}

/// As [`copy_blocks`], for a length known when this was compiled.
#[inline(never)]
unsafe fn copy_known<const LENGTH: usize>(mut source: Walker, mut target: Walker, count: u64) {
    for _ in 0..count {
        // SAFETY: each walker stands at a block, as the caller promised.
        unsafe { copy_one::<LENGTH>(source.at, target.at) };
        source.advance();
        target.advance();
    }
}

/// As [`copy_known`], for words that lie one behind the other on one side, as packed ones do: four in a
/// turn, which takes less than three instructions a word.
#[inline(never)]
unsafe fn copy_word<const LENGTH: usize>(source: Walker, target: Walker, count: u64) {
    let dense = |walker: Walker| Walker { stride: LENGTH as isize, ..walker };
    // SAFETY: the caller's promise; no stride is another than it was.
    unsafe {
        if target.stride == LENGTH as isize {
            copy_in_turns::<LENGTH>(source, dense(target), count);
        } else if source.stride == LENGTH as isize {
            copy_in_turns::<LENGTH>(dense(source), target, count);
        } else {
            copy_known::<LENGTH>(source, target, count);
        }
    }
}

/// # Safety
/// As [`copy_blocks`].
#[inline(always)]
unsafe fn copy_in_turns<const LENGTH: usize>(mut source: Walker, mut target: Walker, count: u64) {
    for _ in 0..count / TURN as u64 {
        for index in 0..TURN {
            // SAFETY: that many blocks are left, of those that the caller promised.
            unsafe { copy_one::<LENGTH>(source.after(index), target.after(index)) };
        }
        (source.at, target.at) = (source.after(TURN), target.after(TURN));
    }
    for _ in 0..count % TURN as u64 {
        // SAFETY: as above.
        unsafe { copy_one::<LENGTH>(source.at, target.at) };
        source.advance();
        target.advance();
    }
}

/// Words that are copied in one turn of a loop.
const TURN: isize = 4;

/// As [`copy_known`], for a length of which is known only that its first and its last word, which may overlap,
/// make up the block.
///
/// # Safety
/// As [`copy_blocks`]; no block is shorter than the word, or longer than two.
#[inline(never)]
unsafe fn copy_ends<const WORD: usize>(
    mut source: Walker,
    mut target: Walker,
    length: usize,
    count: u64,
) {
    if target.stride == 0 {
        // SAFETY: the caller's promise.
        return unsafe { copy_any(source, target, length, count) };
    }
    let last = length - WORD;
    // Where the last block ends and not how many there are ends the loop: one whose turns are counted the compiler
    // does eight at a time, and has no registers for so many places.
    let end = target.after(count as isize);
    while target.at != end {
        // SAFETY: each walker stands at a block, as the caller promised, and both words lie within it.
        unsafe { copy_words::<WORD, true>(source.at, target.at, last) };
        source.advance();
        target.advance();
    }
}

/// Copies one block.
///
/// # Safety
/// Both places are valid for it, and do not overlap.
#[inline(always)]
unsafe fn copy_one<const LENGTH: usize>(source: *const u8, target: *mut u8) {
    // SAFETY: the caller's promise; the blocks may lie anywhere.
    unsafe {
        let block = source.cast::<[u8; LENGTH]>().read_unaligned();
        target.cast::<[u8; LENGTH]>().write_unaligned(block);
    }
}

/// Copies the blocks, and what is beside each: in one loop where both are as short as members are.
/// Blocks of a class are copied by the same instructions: one word, or the first and the last word,
/// which overlap.
///
/// # Safety
/// As [`copy_blocks`], for both.
unsafe fn copy_pairs(source: Walker, target: Walker, length: usize, beside: Beside, count: u64) {
    let pairs = Pairs { source, target, length, beside, count };
    // SAFETY: all blocks are valid, says the caller; a class's word is as long as its block at most.
    unsafe {
        match length {
            1 => pairs.copy_with_first::<1, false>(),
            2 => pairs.copy_with_first::<2, false>(),
            3 => pairs.copy_with_first::<2, true>(),
            4 => pairs.copy_with_first::<4, false>(),
            5..=7 => pairs.copy_with_first::<4, true>(),
            8 => pairs.copy_with_first::<8, false>(),
            9..=15 => pairs.copy_with_first::<8, true>(),
            16 => pairs.copy_with_first::<16, false>(),
            _ => pairs.copy_apart(),
        }
    }
}

/// The arguments of [`copy_pairs`]: two walks, the block length, and the second block of each pair.
struct Pairs {
    source: Walker,
    target: Walker,
    length: usize,
    beside: Beside,
    count: u64,
}

impl Pairs {
    /// The class of the first blocks is known: a word, and whether there is a second one.
    ///
    /// # Safety
    /// As [`copy_pairs`]; the first blocks are of this class.
    unsafe fn copy_with_first<const FIRST: usize, const FIRST_TWICE: bool>(self) {
        // SAFETY: as the caller says; a class's word is as long as its block at most.
        unsafe {
            match self.beside.length {
                1 => self.copy_both::<FIRST, FIRST_TWICE, 1, false>(),
                2 => self.copy_both::<FIRST, FIRST_TWICE, 2, false>(),
                3 => self.copy_both::<FIRST, FIRST_TWICE, 2, true>(),
                4 => self.copy_both::<FIRST, FIRST_TWICE, 4, false>(),
                5..=7 => self.copy_both::<FIRST, FIRST_TWICE, 4, true>(),
                8 => self.copy_both::<FIRST, FIRST_TWICE, 8, false>(),
                9..=15 => self.copy_both::<FIRST, FIRST_TWICE, 8, true>(),
                16 => self.copy_both::<FIRST, FIRST_TWICE, 16, false>(),
                _ => self.copy_apart(),
            }
        }
    }

    /// First all blocks, then all that are beside them.
    ///
    /// # Safety
    /// As [`copy_pairs`].
    unsafe fn copy_apart(self) {
        let (source, target) = self.beside();
        // SAFETY: both kinds of blocks are valid, says the caller.
        unsafe {
            copy_blocks(self.source, self.target, self.length, self.count);
            copy_blocks(source, target, self.beside.length, self.count);
        }
    }

    /// Where the second blocks come from, and go to.
    #[inline(always)]
    fn beside(&self) -> (Walker, Walker) {
        (self.source.moved(self.beside.from), self.target.moved(self.beside.to))
    }

    /// The classes of both are known.
    ///
    /// # Safety
    /// As [`copy_pairs`]; the blocks are of these classes.
    unsafe fn copy_both<
        const FIRST: usize,
        const FIRST_TWICE: bool,
        const SECOND: usize,
        const SECOND_TWICE: bool,
    >(
        self,
    ) {
        let (mut source_beside, mut target_beside) = self.beside();
        let Self { mut source, mut target, length, beside, count } = self;
        let (last, last_beside) = (length - FIRST, beside.length - SECOND);
        for _ in 0..count {
            // SAFETY: the words lie within their blocks, wherever those lie.
            unsafe {
                copy_words::<FIRST, FIRST_TWICE>(source.at, target.at, last);
                copy_words::<SECOND, SECOND_TWICE>(source_beside.at, target_beside.at, last_beside);
            }
            source.advance();
            source_beside.advance();
            target.advance();
            target_beside.advance();
        }
    }
}

/// Copies a word, and another one that begins at `last`, if it is to be done twice.
///
/// # Safety
/// Both places are valid for these words, and do not overlap.
#[inline(always)]
unsafe fn copy_words<const WORD: usize, const TWICE: bool>(
    source: *const u8,
    target: *mut u8,
    last: usize,
) {
    // SAFETY: both words are valid at both places, by the caller's promise.
    unsafe {
        copy_one::<WORD>(source, target);
        if TWICE {
            // Not held beside the other one: that would be in memory.
            copy_one::<WORD>(source.add(last), target.add(last));
        }
    }
}

/// As [`copy_blocks`], for any length.
#[inline(never)]
unsafe fn copy_any(mut source: Walker, mut target: Walker, length: usize, count: u64) {
    for _ in 0..count {
        // SAFETY: each walker stands at a block of this length, as the caller promised.
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

    const COUNTS: [u64; 7] = [1, 2, 3, 4, 5, 9, 20];
    /// Between blocks where they come from, and where they go to: none on either side, as packed.
    const GAPS: [(usize, usize); 4] = [(3, 1), (3, 0), (0, 5), (0, 0)];

    #[test]
    fn every_length_and_count_is_copied_exactly() {
        let source: Vec<u8> = (0..250u8).cycle().take(4000).collect();
        for length in
            [1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 28, 29, 31, 33, 40, 64, 65, 100, 128]
        {
            for (count, gaps) in COUNTS.into_iter().flat_map(|it| GAPS.map(|gaps| (it, gaps))) {
                let mut memory = vec![0xff; 4000];
                let (from, to) = (length as i64 + gaps.0 as i64, length as i64 + gaps.1 as i64);
                let target = buffer(&mut memory);
                let from = Spread { start: 5, stride: from };
                let to = Spread { start: 7, stride: to };
                let blocks = Blocks { length, count, beside: None };
                assert!(target.write_blocks(to, Bytes::from(&source[..]), from, blocks));
                let mut expected = vec![0xff; 4000];
                for index in 0..count as usize {
                    let (read, write) =
                        (5 + index * (length + gaps.0), 7 + index * (length + gaps.1));
                    expected[write..write + length].copy_from_slice(&source[read..read + length]);
                }
                assert!(memory == expected, "{length} bytes {count} times, gaps {gaps:?}");
            }
        }
    }

    #[test]
    fn of_blocks_that_go_to_one_place_the_last_stays() {
        let source: Vec<u8> = (0..250u8).collect();
        for length in 1..=40 {
            let mut memory = [0xff; 50];
            let (from, to) = (Spread { start: 0, stride: 41 }, Spread { start: 3, stride: 0 });
            let blocks = Blocks { length, count: 5, beside: None };
            assert!(buffer(&mut memory).write_blocks(to, Bytes::from(&source[..]), from, blocks));
            assert_eq!(memory[3..3 + length], source[164..164 + length], "{length} bytes");
            assert_eq!((memory[2], memory[3 + length]), (0xff, 0xff), "{length} bytes");
        }
    }

    #[test]
    fn blocks_outside_are_refused() {
        let source = [1u8; 16];
        let mut memory = [0u8; 16];
        let mut write = |start, stride, from| {
            let (to, from) = (Spread { start, stride }, Spread { start: from, stride: 4 });
            let blocks = Blocks { length: 4, count: 4, beside: None };
            buffer(&mut memory).write_blocks(to, Bytes::from(&source[..]), from, blocks)
        };
        assert!(write(0, 4, 0) && write(12, -4, 0));
        assert!(!write(1, 4, 0) && !write(11, -4, 0) && !write(0, 5, 0) && !write(0, 4, 1));
        assert!(!write(-1, 4, 0) && !write(0, i64::MAX, 0) && !write(i64::MAX, 4, 0));
    }

    #[test]
    fn every_pair_of_lengths_is_copied_exactly() {
        let source: Vec<u8> = (0..250u8).cycle().take(4000).collect();
        for first in [1, 2, 3, 4, 5, 7, 8, 11, 12, 16, 17, 24, 32, 40] {
            for second in [1, 2, 3, 4, 6, 8, 9, 15, 16, 24, 28, 31, 33, 65] {
                for count in [1u64, 2, 9] {
                    let mut memory = vec![0xff; 4000];
                    let mut expected = memory.clone();
                    // The second lies in front of the first where it comes from, behind it where it goes.
                    let (from, to) = (first + second + 3, first + second + 1);
                    for index in 0..count as usize {
                        let (read, write) = (second + 2 + index * from, index * to);
                        expected[write..write + first].copy_from_slice(&source[read..read + first]);
                        let (read, write) = (read - second - 1, write + first + 1);
                        let block = &source[read..read + second];
                        expected[write..write + second].copy_from_slice(block);
                    }
                    let beside =
                        Beside { from: -(second as i64) - 1, to: first as i64 + 1, length: second };
                    let from = Spread { start: second as i64 + 2, stride: from as i64 };
                    let to = Spread { start: 0, stride: to as i64 };
                    let blocks = Blocks { length: first, count, beside: Some(beside) };
                    let bytes = Bytes::from(&source[..]);
                    assert!(buffer(&mut memory).write_blocks(to, bytes, from, blocks));
                    assert!(memory == expected, "{first} and {second} bytes {count} times");
                }
            }
        }
    }

    #[test]
    fn pairs_outside_are_refused() {
        let source = [1u8; 16];
        let mut memory = [0u8; 16];
        let mut write = |from, to, length| {
            let spread = Spread { start: 4, stride: 2 };
            let blocks = Blocks { length: 1, count: 4, beside: Some(Beside { from, to, length }) };
            buffer(&mut memory).write_blocks(spread, Bytes::from(&source[..]), spread, blocks)
        };
        assert!(write(-4, 5, 1) && write(5, -4, 1) && write(0, 0, 2));
        assert!(!write(-5, 0, 1) && !write(0, -5, 1) && !write(6, 0, 1) && !write(0, 6, 1));
        assert!(!write(5, 0, 2) && !write(i64::MAX, 0, 1) && !write(0, i64::MIN, 1));
    }
}
