//! The return stack of a heap: the last holder of a block pushes it, the owner takes them all.
//!
//! Its head is one word in the owner's shared page (byte 512), the links lie in the blocks'
//! control lines. Words carry a block's number plus one; zero is the end. The stack is only the
//! quick way by which the owner learns that a block came back: whether it did stands in the
//! block's holders, so an entry that is lost or false does no harm.
//!
//! R. K. Treiber's stack (1986). Entries leave it only all together, so it has no ABA problem.

use crate::sync::{AtomicU32, Ordering};

/// Attempts of a push. When others win so often, the block is left to the owner's sweep.
const PUSHES: u32 = 1000;

/// Puts block `number` on the stack. `link` is the word of that block.
#[inline]
pub(super) fn push(head: &AtomicU32, number: u32, link: &AtomicU32) {
    let mut first = head.load(Ordering::Relaxed);
    for _ in 0..PUSHES {
        link.store(first, Ordering::Relaxed);
        let entry = number.wrapping_add(1);
        match head.compare_exchange(first, entry, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return,
            Err(other) => first = other,
        }
    }
}

/// Takes everything off the stack; the number on top, whose link leads to the next.
#[inline]
pub(super) fn take(head: &AtomicU32) -> Option<u32> {
    if head.load(Ordering::Relaxed) == 0 {
        return None;
    }
    head.swap(0, Ordering::Acquire).checked_sub(1)
}

/// The entry below the one with this link.
#[inline]
pub(super) fn below(link: &AtomicU32) -> Option<u32> {
    link.load(Ordering::Relaxed).checked_sub(1)
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use crate::heap::control::{Holders, OWNER};
    use crate::sync::Data;
    use loom::sync::Arc;
    use loom::thread;

    const BLOCKS: usize = 2;

    struct Block {
        link: AtomicU32,
        holders: Holders,
        data: Data<u32>,
    }

    struct Heap {
        head: AtomicU32,
        blocks: [Block; BLOCKS],
    }

    impl Heap {
        fn with_blocks_lent_to(readers: u32) -> Self {
            let block = |()| {
                let holders = Holders::none();
                holders.hand_out(1, OWNER | readers);
                Block { link: AtomicU32::new(0), holders, data: Data::new(7) }
            };
            Self { head: AtomicU32::new(0), blocks: [(); BLOCKS].map(block) }
        }

        fn give_back(&self, number: usize, holder: u32) {
            let block = &self.blocks[number];
            // SAFETY: a holder may read; the checker would notice a writer.
            block.data.with(|data| assert_eq!(unsafe { *data }, 7));
            if block.holders.give_back(1, holder) {
                push(&self.head, number as u32, &block.link);
            }
        }

        /// Takes the blocks that came back, in the owner's way, and uses them anew.
        fn collect(&self, returned: &mut [u32]) {
            let mut next = take(&self.head);
            while let Some(number) = next {
                let block = &self.blocks[number as usize];
                next = below(&block.link);
                assert_eq!(block.holders.who(1, u32::MAX), 0);
                // SAFETY: nobody holds the block; the checker would notice if somebody did.
                block.data.with_mut(|data| unsafe { *data = 0 });
                returned[number as usize] += 1;
            }
        }
    }

    /// Two readers and the owner's own handles: each block comes back once, when all are done.
    #[test]
    fn every_block_comes_back_once_in_every_schedule() {
        crate::sync::model(|| {
            let heap = Arc::new(Heap::with_blocks_lent_to(0b11));
            let readers = [0b01, 0b10].map(|reader| {
                let heap = heap.clone();
                thread::spawn(move || (0..BLOCKS).for_each(|at| heap.give_back(at, reader)))
            });
            let mut returned = [0; BLOCKS];
            for number in 0..BLOCKS {
                heap.give_back(number, OWNER);
                heap.collect(&mut returned);
                crate::sync::pause();
            }
            for reader in readers {
                reader.join().unwrap();
            }
            heap.collect(&mut returned);
            assert_eq!(returned, [1; BLOCKS]);
        });
    }
}
