//! Memory that the program asks for: of the job's shared heap while there is plenty, else private.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::sync::{Mutex, MutexGuard, PoisonError};

use landeck::Loan;

use crate::job;
use crate::mistake::Mistake;

/// The alignment of every piece in bytes: a line of the processor's caches.
const ALIGNMENT: usize = 64;

/// One piece. Dropped, its memory is free again.
enum Piece {
    Shared(Loan<u8>),
    Private(Vec<MaybeUninit<u8>>),
}

/// The pieces that the program has, by their addresses.
static PIECES: Mutex<BTreeMap<usize, Piece>> = Mutex::new(BTreeMap::new());

/// A new piece, or none if there is no memory. `alignment` is a power of two.
pub(crate) fn allocate(bytes: usize, alignment: usize) -> Result<Option<*mut u8>, Mistake> {
    let alignment = alignment.max(ALIGNMENT);
    // With room for its beginning to be moved; and no two pieces have one address.
    let Some(room) = bytes.max(1).checked_add(alignment - 1) else { return Ok(None) };
    let shared = job::lend_memory(room)?.map(Piece::Shared);
    let Some(mut piece) = shared.or_else(|| Piece::private(room)) else { return Ok(None) };
    let start = piece.start();
    // SAFETY: the room is larger than the piece by as much as this can be.
    let start = unsafe { start.add(start.addr().wrapping_neg() % alignment) };
    pieces().insert(start.addr(), piece);
    Ok(Some(start))
}

/// Frees a piece; false if none begins there.
pub(crate) fn free(address: usize) -> bool {
    let piece = pieces().remove(&address);
    piece.is_some()
}

impl Piece {
    fn private(room: usize) -> Option<Self> {
        let mut own = Vec::new();
        own.try_reserve_exact(room).ok()?;
        Some(Self::Private(own))
    }

    fn start(&mut self) -> *mut u8 {
        match self {
            Self::Shared(loan) => loan.as_mut_ptr(),
            Self::Private(own) => own.as_mut_ptr().cast(),
        }
    }
}

fn pieces() -> MutexGuard<'static, BTreeMap<usize, Piece>> {
    PIECES.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_aligned_and_freed_once() {
        for alignment in [1, 64, 4096] {
            let start = allocate(100, alignment).unwrap().unwrap();
            assert_eq!(start.addr() % alignment.max(ALIGNMENT), 0);
            assert!(!free(start.addr() + 1));
            assert!(free(start.addr()));
            assert!(!free(start.addr()));
        }
    }

    #[test]
    fn no_two_pieces_have_one_address() {
        let [one, other] = [(); 2].map(|()| allocate(0, 1).unwrap().unwrap().addr());
        assert_ne!(one, other);
        assert!(free(one) && free(other));
    }

    #[test]
    fn an_impossible_allocation_is_none() {
        assert_eq!(allocate(usize::MAX, 1).unwrap(), None);
        assert_eq!(allocate(usize::MAX / 2, 1).unwrap(), None);
    }
}
