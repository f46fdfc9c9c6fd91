//! Common places: where whoever is the root lays long data down for several others who share processors.
//!
//! Blocks are a member's own. Where members are the root by turns, each lays its data in a block of its own, and
//! as many blocks are in use as there are members: those of many members leave the caches before they are
//! written again. A common place is the one of an operation's number, whoever its root is, so few are in use,
//! and all of them stay near.
//!
//! A place is an operation's when all are over with the one that had it before, which the root looks at before it
//! comes. Nothing is given and nothing comes back. Only one member lays down in such an operation. Where two say
//! that they are its root, which is an error that both are told of, both write there, and what others take may
//! be of either. The places are the first world's, and their memory the job's, so a death changes nothing.

use std::ops::RangeInclusive;
use std::ptr::NonNull;

use landeck_memory::bytes::Bytes;
use landeck_memory::plan::{COMMON_BYTES, COMMON_PLACES};
use landeck_memory::segment::Segment;

use super::Board;
use crate::words::IN_COMMON;

/// Bytes of what lies in common places. Shorter data stay in the caches wherever they lie.
pub const COMMON_LENGTHS: RangeInclusive<usize> = 256 << 10..=COMMON_BYTES as usize;

/// What a member has to do with the common places.
#[derive(Default)]
pub(crate) struct Common {
    /// How many there are: none, or [`COMMON_PLACES`].
    places: u32,
    /// Operations under way in which this member is the root, with the bytes of its data.
    open: Vec<(u32, usize)>,
}

impl Common {
    /// Those of the board with shared words at this place.
    pub(crate) fn of(segment: &Segment, shared: u64) -> Self {
        let is_of_world = shared == segment.plan().world_board();
        let places = if is_of_world { segment.plan().common_places() } else { 0 };
        Self { places, open: Vec::new() }
    }

    /// Bytes of the data that this member lays there in an operation.
    #[inline]
    pub(crate) fn length_of(&self, number: u32) -> Option<usize> {
        self.open.iter().find(|open| open.0 == number).map(|open| open.1)
    }

    /// This member is over with an operation.
    #[inline]
    pub(crate) fn end(&mut self, number: u32) {
        if !self.open.is_empty() {
            self.open.retain(|open| open.0 != number);
        }
    }
}

impl Board {
    /// Whether so many bytes of the one member that lays something down lie in a common place.
    #[inline]
    pub fn has_common_place(&self, bytes: usize) -> bool {
        self.common.places > 0 && COMMON_LENGTHS.contains(&bytes)
    }

    /// Whether this member may lay data in the common place of an operation: all are over with the one that had
    /// it before.
    #[inline]
    pub fn has_room_in_common(&mut self, number: u32) -> bool {
        self.is_within(number, COMMON_PLACES)
    }

    /// Comes to an operation with `length` bytes in its common place, if that is where they lie and
    /// [`Board::has_room_in_common`] has said so: `lay` puts the first `filled` of them there. Only for the one
    /// member that lays anything down in it. False, and nothing has happened, where there is no such place.
    #[inline]
    pub fn come_in_common(
        &mut self,
        number: u32,
        (signature, check): (u32, u32),
        (length, filled): (usize, usize),
        lay: impl FnOnce(&mut [u8]),
    ) -> bool {
        if !self.has_common_place(length) {
            return false;
        }
        let Some(room) = self.common_room(number, length) else { return false };
        lay(&mut room[..filled.min(length)]);
        self.common.open.push((number, length));
        let place = number % COMMON_PLACES;
        self.come_where(number, (signature, check), (IN_COMMON, place.into()), (length, filled));
        true
    }

    /// Where this member's data of an operation lie in its common place.
    #[inline]
    pub(crate) fn common_room(&mut self, number: u32, length: usize) -> Option<&mut [u8]> {
        let place = self.common_place(number % COMMON_PLACES)?;
        let length = length.min(COMMON_BYTES as usize);
        // SAFETY: the place lies in the segment, which stays mapped while `self` is borrowed. It is this member's
        // to write, as the root of its operation, and others read it as `Bytes` alone; nothing is read through
        // this slice.
        Some(unsafe { std::slice::from_raw_parts_mut(place.as_ptr(), length) })
    }

    /// The first bytes of the common place with this number.
    pub(crate) fn common_bytes(&self, place: u64, length: u64) -> Option<Bytes<'_>> {
        let place = self.common_place(u32::try_from(place).ok()?);
        let place = place.filter(|_| length <= COMMON_BYTES)?;
        // SAFETY: the range was just checked to be of a common place in the segment, which stays mapped while
        // `self` is borrowed.
        Some(unsafe { Bytes::from_raw(place, length as usize) })
    }

    #[inline]
    fn common_place(&self, place: u32) -> Option<NonNull<u8>> {
        let plan = self.segment().plan();
        let there = || self.segment().place(plan.common_place(place), COMMON_BYTES);
        (place < self.common.places).then(there)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::NoDeposit;
    use crate::fixture::boards;
    use crate::{Came, Deposit, LinesPlace};

    const SIGNATURE: u32 = 3;
    const BYTES: usize = 300_000;

    fn begin(boards: &mut [Board]) -> u32 {
        boards.iter_mut().map(|board| board.begin(SIGNATURE).0).max().unwrap()
    }

    /// The root lays its data down, half of them at first, and what the others see is returned.
    fn lay(boards: &mut [Board], root: usize, number: u32, value: u8) -> (usize, Vec<u8>) {
        assert!(boards[root].has_room_in_common(number));
        let half = |target: &mut [u8]| target.fill(value);
        let board = &mut boards[root];
        assert!(board.come_in_common(number, (SIGNATURE, 0), (BYTES, BYTES / 2), half));
        board.kept(number).unwrap()[BYTES / 2..].fill(value);
        board.set_filled(number, BYTES as u64);
        let other = &boards[(root + 1) % boards.len()];
        assert_eq!(other.came(root as u32, number, SIGNATURE), Came::Here);
        let Ok(Deposit::Block { bytes, filled, .. }) = other.deposit(root as u32, number) else {
            panic!("they lie in a common place")
        };
        assert_eq!((bytes.len(), filled), (BYTES, BYTES));
        (bytes.start().as_ptr().addr(), bytes.to_vec())
    }

    #[test]
    fn roots_by_turns_use_the_same_few_places() {
        let (_segment, mut boards) = boards(3);
        let mut places = Vec::new();
        for value in 0..20 {
            let number = begin(&mut boards);
            let (place, there) = lay(&mut boards, usize::from(value) % 3, number, value);
            assert!(there.iter().all(|&byte| byte == value));
            places.push(place);
            boards.iter_mut().for_each(|board| board.end(number));
            assert!(boards.iter_mut().all(|board| board.kept(number).is_none()), "it is over");
        }
        let few = COMMON_PLACES as usize;
        assert!(places.iter().skip(few).zip(&places).all(|(later, before)| later == before));
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), few);
        assert!(places.windows(2).all(|two| two[1] - two[0] >= COMMON_BYTES as usize));
    }

    #[test]
    fn a_place_is_written_again_when_all_are_over_with_what_was_there() {
        let (_segment, mut boards) = boards(3);
        let mut there = Vec::new();
        for value in 0..COMMON_PLACES as u8 {
            let number = begin(&mut boards);
            there.push((number, lay(&mut boards, 0, number, value).1));
            boards[..2].iter_mut().for_each(|board| board.end(number));
        }
        let next = begin(&mut boards);
        assert!(!boards[0].has_room_in_common(next) && !boards[1].has_room_in_common(next));
        for (number, expected) in there {
            let Ok(Deposit::Block { bytes, .. }) = boards[2].deposit(0, number) else { panic!() };
            assert_eq!(bytes.to_vec(), expected, "it is still there for who is behind");
        }
        boards[2].end(next - COMMON_PLACES);
        assert!(boards[1].has_room_in_common(next) && !boards[1].has_room_in_common(next + 1));
    }

    #[test]
    fn short_and_longer_data_and_those_of_other_groups_have_no_place() {
        let (segment, mut three) = boards(3);
        let (shortest, longest) = COMMON_LENGTHS.into_inner();
        assert!([shortest, longest].iter().all(|&bytes| three[0].has_common_place(bytes)));
        let number = begin(&mut three);
        for bytes in [shortest - 1, longest + 1] {
            let never = |_: &mut [u8]| panic!("they lie elsewhere");
            assert!(!three[0].come_in_common(number, (SIGNATURE, 0), (bytes, 0), never));
            assert_eq!(three[1].came(0, number, SIGNATURE), Came::NotYet);
        }
        let lines: Vec<LinesPlace> =
            (0..3).map(|slot| LinesPlace::of_world(segment.plan(), slot)).collect();
        let page = segment.plan().world_board() + landeck_memory::plan::BOARD_BYTES;
        let other = Board::open(&segment, page, &lines, 0).unwrap();
        assert!(!other.has_common_place(BYTES));
        let (_segment, two) = boards(2);
        assert!(!two[0].has_common_place(BYTES));
    }

    #[test]
    fn a_place_that_cannot_be_is_an_error() {
        let (_segment, mut boards) = boards(3);
        let number = begin(&mut boards);
        lay(&mut boards, 0, number, 1);
        for (word, value) in [(0, u64::from(COMMON_PLACES)), (0, u64::MAX), (1, COMMON_BYTES + 1)] {
            let line = boards[0].own_line(number);
            let said = line.data[word].swap(value, Ordering::Relaxed);
            let found = boards[1].deposit(0, number).err();
            assert!(matches!(found, Some(NoDeposit::Broken(broken)) if broken.member == 0));
            boards[0].own_line(number).data[word].store(said, Ordering::Relaxed);
        }
        assert!(boards[1].deposit(0, number).is_ok());
    }
}
