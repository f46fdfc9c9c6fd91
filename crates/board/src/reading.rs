//! Reading deposits on the board.

use std::sync::atomic::Ordering;

use landeck_memory::bytes::Bytes;

use super::handle::{Board, BoardBroken};
use super::words::{IN_CELL, IN_HEAP, Line, NOTHING, TOLD};
use super::{INLINE_BYTES, RESULT_BYTES};

/// A deposit, as a member reads it.
#[derive(Clone, Copy)]
pub enum Deposit<'a> {
    /// Short data.
    Inline {
        /// The data.
        bytes: Bytes<'a>,
    },
    /// Data in a block or a cell.
    Block {
        /// The data.
        bytes: Bytes<'a>,
        /// How many of them are present, from the start.
        filled: usize,
        /// How many bytes of a result have been put into the place kept for it.
        resolved: usize,
    },
}

/// The reason why a member has no readable deposit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoDeposit {
    /// Its line names an impossible place.
    Broken(BoardBroken),
    /// This member has come without its data.
    Nothing {
        /// The member.
        member: u32,
        /// Its words about the reason.
        why: [u64; 3],
    },
    /// This member has only told where its data lie.
    Told {
        /// The member.
        member: u32,
        /// How many bytes it has told of.
        bytes: u64,
    },
}

impl Board {
    /// Prefetches the line behind a member's, where the rest of longer data will stand.
    #[inline]
    pub fn foresee(&self, member: u32, number: u32) {
        self.long_line(member, number).prefetch_behind();
    }

    /// Prefetches a member's line, which will be read soon. If the member has come already, the line is on its way
    /// meanwhile; if not, it mostly is in this cache, from an earlier operation.
    #[inline]
    pub fn foresee_line(&self, member: u32, number: u32) {
        self.long_line(member, number).prefetch();
    }

    /// A member's deposit; valid only after it came.
    ///
    /// # Errors
    /// [`NoDeposit`].
    #[inline]
    pub fn deposit(&self, member: u32, number: u32) -> Result<Deposit<'_>, NoDeposit> {
        let long = self.long_line(member, number);
        match long.line.about.load(Ordering::Relaxed) as u32 as usize {
            bytes @ ..=INLINE_BYTES => Ok(Deposit::Inline { bytes: long.inline(bytes) }),
            _ => self.read_block(&long.line, member).map_err(|broken| absent(&long.line, broken)),
        }
    }

    #[inline]
    fn read_block(&self, line: &Line, member: u32) -> Result<Deposit<'_>, BoardBroken> {
        let where_it_lies = line.about.load(Ordering::Relaxed) as u32;
        // The place of data that were told of is written before how many are there.
        let [filled, place, length, resolved] =
            [2, 0, 1, 3].map(|at: usize| line.data[at].load(Ordering::Acquire));
        let bytes = match where_it_lies {
            TOLD if filled == 0 => None,
            IN_HEAP | TOLD => self.heap_bytes(member, place, length),
            IN_CELL => self.cell_bytes(place, length),
            _ => None,
        };
        let bytes = bytes.ok_or(BoardBroken { member })?;
        let filled = filled.min(length) as usize;
        let resolved = resolved.min(length) as usize;
        Ok(Deposit::Block { bytes, filled, resolved })
    }

    /// Bytes in the heap of a member.
    pub(super) fn heap_bytes(&self, member: u32, offset: u64, length: u64) -> Option<Bytes<'_>> {
        let (plan, slot) = (self.segment().plan(), self.slot_of(member)?);
        let (start, end) = (plan.heap(slot), plan.heap(slot + 1));
        let fits = (start..end).contains(&offset)
            && offset.is_multiple_of(64)
            && offset.checked_add(length).is_some_and(|last| last <= end);
        if !fits {
            return None;
        }
        let place = self.segment().place(offset, 8);
        // SAFETY: the range was just checked to lie within the member's heap in the segment, which
        // stays mapped while `self` is borrowed.
        Some(unsafe { Bytes::from_raw(place, length as usize) })
    }

    /// The result, after the operation is decided to be done.
    ///
    /// # Errors
    /// [`BoardBroken`].
    #[inline]
    pub fn result(&self, number: u32) -> Result<Deposit<'_>, BoardBroken> {
        let commit = &self.epoch(number).commit;
        let about = commit.about.load(Ordering::Relaxed);
        match about as u32 as usize {
            bytes @ ..=RESULT_BYTES => Ok(Deposit::Inline { bytes: commit.inline(bytes) }),
            _ => self.read_block(commit, (about >> 32) as u32),
        }
    }
}

/// Why there is no block.
#[cold]
fn absent(line: &Line, broken: BoardBroken) -> NoDeposit {
    match line.about.load(Ordering::Relaxed) as u32 {
        NOTHING => {
            let why = [0, 1, 2].map(|at: usize| line.data[at].load(Ordering::Relaxed));
            NoDeposit::Nothing { member: broken.member, why }
        }
        TOLD => {
            NoDeposit::Told { member: broken.member, bytes: line.data[1].load(Ordering::Relaxed) }
        }
        _ => NoDeposit::Broken(broken),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::boards;
    use super::super::{Came, LINES_BYTES, WINDOW};
    use super::*;

    #[test]
    fn data_of_every_length_that_fits_stand_in_the_line_and_the_one_behind_it() {
        let (segment, mut boards) = boards(2);
        let data: Vec<u8> = (1..=INLINE_BYTES as u8).collect();
        for length in 0..=INLINE_BYTES {
            let (number, signature) = boards[1].begin(1);
            assert!(boards[1].has_room(number));
            boards[0].foresee(1, number);
            boards[1].come(number, signature, 5, Bytes::from(&data[..length]));
            let Ok(Deposit::Inline { bytes }) = boards[0].deposit(1, number) else {
                panic!("{length} bytes in the line")
            };
            assert_eq!((bytes.to_vec(), boards[0].check(1, number)), (data[..length].to_vec(), 5));
            boards.iter_mut().for_each(|board| board.end(number));
        }
        let (number, signature) = boards[1].begin(1);
        let behind = segment.plan().world_lines(1) + LINES_BYTES;
        segment.long(behind).store(7, Ordering::Relaxed);
        for line in 0..WINDOW as u32 {
            boards[1].come(number + line, signature, 0, Bytes::from(&[9; 200][..]));
        }
        let Ok(Deposit::Inline { bytes }) = boards[0].deposit(1, number) else { panic!("cut") };
        assert_eq!(bytes.to_vec(), [9; INLINE_BYTES]);
        assert_eq!(segment.long(behind).load(Ordering::Relaxed), 7, "nothing beside the lines");
    }

    #[test]
    fn data_that_are_laid_down_in_pieces_stand_there_as_one() {
        let (segment, mut boards) = boards(2);
        let data: Vec<u8> = (1..=INLINE_BYTES as u8).collect();
        let behind = segment.plan().world_lines(1) + LINES_BYTES;
        segment.long(behind).store(7, Ordering::Relaxed);
        for cut in 0..=INLINE_BYTES {
            let (number, signature) = boards[1].begin(1);
            assert!(boards[1].has_room(number));
            boards[1].lay(number, cut, Bytes::from(&[&data[cut..], &[9; 200]].concat()[..]));
            boards[1].lay(number, 0, Bytes::from(&data[..cut]));
            boards[1].lay(number, INLINE_BYTES + cut, Bytes::from(&[8; 8][..]));
            assert_eq!(boards[0].came(1, number, signature), Came::NotYet);
            boards[1].come_with_laid(number, signature, 5, INLINE_BYTES);
            assert_eq!(boards[0].came(1, number, signature), Came::Here);
            let Ok(Deposit::Inline { bytes }) = boards[0].deposit(1, number) else {
                panic!("it stands in the line")
            };
            assert_eq!((bytes.to_vec(), boards[0].check(1, number)), (data.clone(), 5));
            boards.iter_mut().for_each(|board| board.end(number));
        }
        assert_eq!(segment.long(behind).load(Ordering::Relaxed), 7, "nothing beside the lines");
    }

    #[test]
    fn a_result_of_every_length_that_fits_stands_in_its_line() {
        let (_segment, boards) = boards(2);
        let data: Vec<u8> = (1..=RESULT_BYTES as u8).collect();
        for length in 0..=RESULT_BYTES {
            let number = length as u32 + 1;
            boards[0].set_result(number, &data[..length]);
            let Ok(Deposit::Inline { bytes }) = boards[1].result(number) else {
                panic!("{length} bytes in the line")
            };
            assert_eq!(bytes.to_vec(), data[..length]);
        }
        boards[0].set_result(9, &[1; INLINE_BYTES]);
        let Ok(Deposit::Inline { bytes }) = boards[1].result(9) else { panic!("cut") };
        assert_eq!(bytes.len(), RESULT_BYTES);
    }
}
