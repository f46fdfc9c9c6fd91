//! Words that are used in turn for numbers that only grow: the log itself, and the broadcasts.

use landeck_memory::sync::{AtomicU64, Ordering};

/// The content of a place in the ring, for a given lap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Nothing yet.
    Empty,
    /// This value.
    There(u32),
    /// It was overwritten since.
    Overwritten,
}

/// Words that are used in turn: place `n` is the word of number `n`, then of `n` plus how many there
/// are, a power of two. A word names the number that it was written for.
pub(crate) struct Lap<'a>(pub(crate) &'a [AtomicU64]);

impl<'a> Lap<'a> {
    #[inline]
    pub(crate) fn look(&self, number: u64) -> Look {
        let word = self.word(number).load(Ordering::Acquire);
        let ahead = ((word >> 32) as u32).wrapping_sub(tag(number)) as i32;
        match ahead {
            0 => Look::There(word as u32),
            1.. if word != 0 => Look::Overwritten,
            _ => Look::Empty,
        }
    }

    /// Writes the value of a number, unless a process has. The caller knows that the word's value of the lap before is
    /// needed no more.
    #[inline]
    pub(crate) fn set(&self, number: u64, value: u32) -> bool {
        let word = self.word(number);
        let seen = word.load(Ordering::Acquire);
        let before = match number.checked_sub(self.0.len() as u64) {
            None => 0,
            Some(before) => tag(before),
        };
        let new = u64::from(tag(number)) << 32 | u64::from(value);
        let is_set = (seen >> 32) as u32 == before
            && word.compare_exchange(seen, new, Ordering::SeqCst, Ordering::Acquire).is_ok();
        super::stored();
        is_set
    }

    /// Writes the value of a number, whatever the word holds; for the only writer of these words.
    pub(crate) fn put(&self, number: u64, value: u32) {
        let new = u64::from(tag(number)) << 32 | u64::from(value);
        self.word(number).store(new, Ordering::SeqCst);
    }

    #[inline]
    pub(crate) fn word(&self, number: u64) -> &'a AtomicU64 {
        // A division would take as long as the exchange of a word.
        &self.0[number as usize & (self.0.len() - 1)]
    }
}

fn tag(number: u64) -> u32 {
    (number + 1) as u32
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_of_one_round() {
        let words: Vec<AtomicU64> = (0..4).map(|_| AtomicU64::new(0)).collect();
        let lap = Lap(&words);
        assert_eq!(lap.look(2), Look::Empty);
        assert!(lap.set(2, 7) && !lap.set(2, 8));
        assert_eq!((lap.look(2), lap.look(6)), (Look::There(7), Look::Empty));
        assert!(!lap.set(10, 1), "a round is left out");
        assert!(lap.set(6, 9));
        assert_eq!((lap.look(2), lap.look(6)), (Look::Overwritten, Look::There(9)));
        assert_eq!(Lap(&words).look(3), Look::Empty);
        assert_eq!(Lap(&words).look(1 << 31 | 3), Look::Empty, "however far from zero that is");
    }

    #[test]
    fn rounds_are_told_apart_when_the_numbers_wrap() {
        let words: Vec<AtomicU64> = (0..4).map(|_| AtomicU64::new(0)).collect();
        let last = u64::from(u32::MAX) - 2;
        words[(last % 4) as usize].store(u64::from(tag(last)) << 32, Ordering::Relaxed);
        let lap = Lap(&words);
        assert!(lap.set(last + 4, 5));
        assert_eq!((lap.look(last), lap.look(last + 4)), (Look::Overwritten, Look::There(5)));
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use landeck_memory::sync::Data;
    use loom::sync::Arc;
    use loom::thread;

    struct Memory {
        log: Vec<AtomicU64>,
        broadcasts: Vec<AtomicU64>,
        cells: [Data<u32>; 2],
    }

    /// Appends the entry in a cell; a process that finds its place taken helps the faster one.
    fn append(memory: &Memory, cell: u32) -> u64 {
        // SAFETY: no process reads the cell before it is accepted.
        memory.cells[cell as usize].with_mut(|cell_data| unsafe { *cell_data = cell + 70 });
        let (log, broadcasts) = (Lap(&memory.log), Lap(&memory.broadcasts));
        for place in 0.. {
            match log.look(place) {
                Look::There(other) => {
                    broadcasts.set(place, other);
                }
                _ if log.set(place, cell) => return place,
                _ => match log.look(place) {
                    Look::There(other) => {
                        broadcasts.set(place, other);
                    }
                    other => panic!("the place is neither free nor taken: {other:?}"),
                },
            }
        }
        unreachable!("there are places")
    }

    /// Two processes append at once and die right after, before they announce the place. The accepted entries have an
    /// order, and the process that appends next has put them among the broadcasts, with all that was written before.
    #[test]
    fn an_accepted_entry_is_among_the_broadcasts_in_any_schedule() {
        landeck_memory::sync::model(|| {
            let words = || (0..4).map(|_| AtomicU64::new(0)).collect();
            let cells = [Data::new(0), Data::new(0)];
            let memory = Arc::new(Memory { log: words(), broadcasts: words(), cells });
            let theirs = memory.clone();
            let other = thread::spawn(move || append(&theirs, 1));
            let own = append(&memory, 0);
            let broadcasts = Lap(&memory.broadcasts);
            for number in 0..own {
                let Look::There(cell) = broadcasts.look(number) else {
                    panic!("{number} is missing")
                };
                // SAFETY: it was accepted, so no process writes it any more.
                let data = memory.cells[cell as usize].with(|data| unsafe { *data });
                assert_eq!(data, cell + 70);
            }
            let places = [own, other.join().unwrap()];
            assert!(places == [0, 1] || places == [1, 0], "{places:?}");
        });
    }
}
