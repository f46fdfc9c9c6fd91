//! A private copy of a member's lines, to restore them if another process overwrites them.

use std::sync::atomic::Ordering;

use super::Board;

/// A line's content without its data.
#[derive(Clone, Copy, Default)]
pub(crate) struct Stated {
    pub(crate) has_come: bool,
    pub(crate) number: u32,
    pub(crate) signature: u32,
    /// Bytes in the block, if there is one, and of the result there.
    pub(crate) block: Option<(u64, u64)>,
}

impl Board {
    /// Restores this member's progress and arrivals if another process has overwritten them, since members may wait
    /// for them. Members are woken only then: sleeping members call this now and then, and would keep each other awake.
    #[cold]
    pub fn restate(&self) {
        let lines = self.own_lines();
        // A member that has ended nothing yet says nothing of it.
        let progress = lines.progress.load(Ordering::Relaxed);
        let mut is_as_stated = progress == self.progress() || progress == 0 && self.over == 1;
        for stated in self.stated.iter().filter(|stated| stated.has_come) {
            let line = self.own_line(stated.number);
            is_as_stated &= line.published(stated.number) == Some(stated.signature);
            if let Some((filled, resolved)) = stated.block {
                let [there, result] = [2, 3].map(|at: usize| line.data[at].load(Ordering::Relaxed));
                is_as_stated &= (there, result) == (filled, resolved);
            }
        }
        is_as_stated &= self.are_readers_stated();
        if !is_as_stated {
            self.overwrite();
        }
    }

    fn overwrite(&self) {
        self.own_lines().progress.store(self.progress(), Ordering::Release);
        for stated in self.stated.iter().filter(|stated| stated.has_come) {
            let line = self.own_line(stated.number);
            if let Some((filled, resolved)) = stated.block {
                line.data[2].store(filled, Ordering::Release);
                line.data[3].store(resolved, Ordering::Release);
            }
            line.publish(stated.number, stated.signature);
        }
        self.restate_readers();
        self.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::boards;
    use crate::{Came, Deposit};
    use landeck_memory::bytes::Bytes;
    use landeck_memory::heap::Heap;

    const SIGNATURE: u32 = 5;

    #[test]
    fn an_overwritten_line_is_stated_again() {
        let (segment, mut boards) = boards(2);
        let mut heap = Heap::of(&segment, 0).unwrap();
        let (number, _) = boards[0].begin(SIGNATURE);
        let block = heap.allocate(100).unwrap();
        boards[0].come_with(number, (SIGNATURE, 0), block, (100, 0));
        boards[0].set_filled(number, 80);
        let line = boards[0].own_line(number);
        line.publish(0, 0);
        line.data[2].store(0, Ordering::Relaxed);
        boards[0].own_lines().progress.store(9, Ordering::Relaxed);
        boards[0].restate();
        assert_eq!(boards[1].came(0, number, SIGNATURE), Came::Here);
        let deposit = boards[1].deposit(0, number);
        assert!(matches!(deposit, Ok(Deposit::Block { filled: 80, .. })));
        assert_eq!(boards[0].own_lines().progress.load(Ordering::Relaxed) as u32, number);
    }

    #[test]
    fn sleepers_are_woken_only_by_what_was_overwritten() {
        let (segment, mut boards) = boards(2);
        let (number, _) = boards[0].begin(SIGNATURE);
        boards[0].come(number, SIGNATURE, 0, Bytes::EMPTY);
        boards[1].sleeps(false);
        let word = segment.sleep_word(1);
        for overwritten in [false, true] {
            landeck_memory::sleep_word::raise(word);
            if overwritten {
                boards[0].own_line(number).publish(0, 0);
            }
            boards[0].restate();
            assert_eq!(word.load(Ordering::Relaxed) == 0, overwritten);
        }
    }
}
