//! The return stack of a heap: the last holder of a block pushes it, the owner takes them all.
//!
//! Its head is one word in the owner's shared page (byte 512), the links lie in the blocks'
//! control lines. Words carry a block's number plus one; zero is the end. The stack is only the
//! quick way by which the owner learns that a block came back: whether it did stands in the
//! block's holders, so an entry that is lost or false does no harm.
//!
//! R. K. Treiber's stack (1986); since entries leave it only all together, no entry can return
//! to its top behind somebody's back.

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
    use loom::sync::Arc;
    use loom::thread;

    const BLOCKS: u32 = 2;

    struct Heap {
        head: AtomicU32,
        links: Vec<AtomicU32>,
        holders: Vec<Holders>,
    }

    impl Heap {
        fn give_back(&self, number: u32, holder: u32) {
            if self.holders[number as usize].give_back(1, holder) {
                push(&self.head, number, &self.links[number as usize]);
            }
        }

        /// The blocks that came back, in the owner's way.
        fn collect(&self, returned: &mut [u32]) {
            let mut next = take(&self.head);
            while let Some(number) = next {
                next = below(&self.links[number as usize]);
                assert_eq!(self.holders[number as usize].who(1, u32::MAX), 0);
                returned[number as usize] += 1;
            }
        }
    }

    /// Two readers of two blocks and the owner's own handles: each block comes back once.
    #[test]
    fn every_block_comes_back_once_in_every_schedule() {
        loom::model(|| {
            let heap = Arc::new(Heap {
                head: AtomicU32::new(0),
                links: (0..BLOCKS).map(|_| AtomicU32::new(0)).collect(),
                holders: (0..BLOCKS).map(|_| Holders::none()).collect(),
            });
            for holders in &heap.holders {
                holders.hand_out(1, OWNER | 0b11);
            }
            let readers: Vec<_> = [0b01, 0b10]
                .map(|reader| {
                    let heap = heap.clone();
                    thread::spawn(move || (0..BLOCKS).for_each(|at| heap.give_back(at, reader)))
                })
                .into();
            let mut returned = [0; BLOCKS as usize];
            heap.give_back(0, OWNER);
            heap.collect(&mut returned);
            heap.give_back(1, OWNER);
            for reader in readers {
                reader.join().unwrap();
            }
            heap.collect(&mut returned);
            assert_eq!(returned, [1; BLOCKS as usize]);
        });
    }
}
