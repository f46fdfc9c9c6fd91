//! The fill word in front of a handoff buffer's data: how many of its bytes are present.
//!
//! The sender sets the word to the bytes present, before it announces the buffer and after each piece. The receiver
//! copies out the bytes present, and owns the buffer once all are there. So one word says both that data may be read
//! and that the sender writes there no more.

use crate::sync::{AtomicU64, Ordering};

/// The word.
#[derive(Clone, Copy)]
pub(crate) struct Filled<'a>(pub(crate) &'a AtomicU64);

impl Filled<'_> {
    /// Records that `bytes` bytes are present; all of them were written before.
    #[inline]
    pub(crate) fn set(self, bytes: u64) {
        self.0.store(bytes, Ordering::Release);
    }

    /// How many of the message's `bytes` are present; all of these can be read.
    #[inline]
    pub(crate) fn of(self, bytes: u64) -> u64 {
        self.0.load(Ordering::Acquire).min(bytes)
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use crate::sync::Data;
    use loom::sync::Arc;
    use loom::thread;

    /// A handoff buffer of two one-byte pieces, and the ring's word that announces a message in it.
    struct Cell {
        filled: AtomicU64,
        pieces: [Data<u8>; 2],
        told: AtomicU64,
    }

    impl Cell {
        fn put(&self, piece: usize, value: u8) {
            // SAFETY: loom itself finds out whether anybody else is there.
            self.pieces[piece].with_mut(|place| unsafe { *place = value });
        }

        fn get(&self, piece: usize) -> u8 {
            // SAFETY: as above.
            self.pieces[piece].with(|place| unsafe { *place })
        }

        /// Sends a message of two pieces, both filled in after the message is announced.
        fn send(&self, value: u8) {
            Filled(&self.filled).set(0);
            self.told.store(u64::from(value), Ordering::Release);
            for piece in 0..2 {
                self.put(piece, value);
                Filled(&self.filled).set(piece as u64 + 1);
            }
        }
    }

    /// The receiver reads only bytes that are present, and owns the buffer once all are: it writes its answer there
    /// while the sender may still be on its way out. Each side polls a fixed number of times, so that the model ends.
    #[test]
    fn a_cell_goes_from_hand_to_hand_in_any_schedule() {
        crate::sync::model(|| {
            let cell = Arc::new(Cell {
                filled: AtomicU64::new(9),
                pieces: [Data::new(0), Data::new(0)],
                told: AtomicU64::new(0),
            });
            let theirs = cell.clone();
            let receiver = thread::spawn(move || {
                if theirs.told.load(Ordering::Acquire) != 1 {
                    return false;
                }
                let mut there = 0;
                for _ in 0..2 {
                    there = Filled(&theirs.filled).of(2);
                    assert!((0..there as usize).all(|piece| theirs.get(piece) == 1));
                }
                if there == 2 {
                    theirs.send(2);
                }
                there == 2
            });
            cell.send(1);
            if cell.told.load(Ordering::Acquire) == 2 {
                let there = Filled(&cell.filled).of(2);
                assert!((0..there as usize).all(|piece| cell.get(piece) == 2));
            }
            if receiver.join().unwrap() {
                assert_eq!((cell.get(0), cell.get(1)), (2, 2));
            }
        });
    }
}
