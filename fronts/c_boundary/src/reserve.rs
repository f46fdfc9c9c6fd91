//! Memory for small pieces when the system gives none: what a library needs to say that there is no memory,
//! and to go on with what the program already has.
//!
//! Rust ends the process when a small piece cannot be had. A front has its small pieces from here then:
//! from memory that is the library's from the beginning and costs nothing before it is used. While it is
//! used, a front makes no new objects unless there is memory again ([`crate::Table::make_room`]).

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The allocator of every front: the system's, and the reserve behind it.
struct WithReserve;

#[global_allocator]
static ALLOCATOR: WithReserve = WithReserve;

/// Bytes of the reserve.
const BYTES: usize = 1 << 20;
/// Larger pieces do not come from it: their callers can say that there is no memory.
const PIECE_BYTES_MAX: usize = 64 << 10;

#[repr(align(4096))]
struct ReservePlace(UnsafeCell<[u8; BYTES]>);

// SAFETY: each byte belongs to one piece, and only the owner of the piece uses it.
unsafe impl Sync for ReservePlace {}

static PLACE: ReservePlace = ReservePlace(UnsafeCell::new([0; BYTES]));
/// Where the next piece begins.
static NEXT: Mutex<usize> = Mutex::new(0);
/// How many pieces are out.
static PIECES: AtomicUsize = AtomicUsize::new(0);

/// Whether pieces of the reserve are in use.
#[inline(always)]
pub(crate) fn is_in_use() -> bool {
    PIECES.load(Ordering::Relaxed) > 0
}

// SAFETY: pieces come from the system's allocator and go back there, or from the reserve, where no two pieces
// that are out have a byte in common.
unsafe impl GlobalAlloc for WithReserve {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let piece = unsafe { System.alloc(layout) };
        if piece.is_null() { take(layout) } else { piece }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let piece = unsafe { System.alloc_zeroed(layout) };
        if piece.is_null() { take_zeroed(layout) } else { piece }
    }

    #[inline]
    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        if is_of_reserve(piece) {
            return give_back(piece, layout.size());
        }
        // SAFETY: the caller's promise; the piece is the system's.
        unsafe { System.dealloc(piece, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if !is_of_reserve(piece) {
            // SAFETY: the caller's promise; the piece is the system's.
            let moved = unsafe { System.realloc(piece, layout, bytes) };
            if !moved.is_null() {
                return moved;
            }
        }
        // SAFETY: the caller's promise.
        unsafe { move_to_new(piece, layout, bytes) }
    }
}

/// Copies a piece into a new one of another length, and frees the old one.
///
/// # Safety
/// As [`GlobalAlloc::realloc`].
#[cold]
unsafe fn move_to_new(piece: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
    // SAFETY: the caller's promise: so many bytes with this alignment are a layout. Both pieces hold what is
    // copied, and they are apart.
    unsafe {
        let moved = ALLOCATOR.alloc(Layout::from_size_align_unchecked(bytes, layout.align()));
        if !moved.is_null() {
            std::ptr::copy_nonoverlapping(piece, moved, layout.size().min(bytes));
            ALLOCATOR.dealloc(piece, layout);
        }
        moved
    }
}

#[inline(always)]
fn is_of_reserve(piece: *const u8) -> bool {
    piece.addr().wrapping_sub(PLACE.0.get().addr()) < BYTES
}

/// A piece of the reserve; null if it is too large, or nothing is left.
#[cold]
fn take(layout: Layout) -> *mut u8 {
    if layout.size() > PIECE_BYTES_MAX || layout.align() > align_of::<ReservePlace>() {
        return std::ptr::null_mut();
    }
    let mut next = NEXT.lock().unwrap_or_else(PoisonError::into_inner);
    let start = next.next_multiple_of(layout.align());
    // A piece of no bytes is none of the reserve's either.
    let end = start + layout.size().max(1);
    if end > BYTES {
        return std::ptr::null_mut();
    }
    *next = end;
    PIECES.fetch_add(1, Ordering::Relaxed);
    PLACE.0.get().cast::<u8>().wrapping_add(start)
}

#[cold]
fn take_zeroed(layout: Layout) -> *mut u8 {
    let piece = take(layout);
    if !piece.is_null() {
        // SAFETY: the piece has so many bytes and is nobody else's; another one may have used them before.
        unsafe { piece.write_bytes(0, layout.size()) };
    }
    piece
}

/// Takes a piece back. What lies behind all others can be given out again at once, the rest when all is back.
#[cold]
fn give_back(piece: *mut u8, bytes: usize) {
    let mut next = NEXT.lock().unwrap_or_else(PoisonError::into_inner);
    let start = piece.addr() - PLACE.0.get().addr();
    if PIECES.fetch_sub(1, Ordering::Relaxed) == 1 {
        *next = 0;
    } else if start + bytes.max(1) == *next {
        *next = start;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(bytes: usize, align: usize) -> Layout {
        Layout::from_size_align(bytes, align).unwrap()
    }

    #[test]
    fn the_reserve_gives_small_pieces_until_it_is_empty_and_all_of_it_again() {
        let small = layout(100, 64);
        for _ in 0..2 {
            let mut pieces = Vec::new();
            for _ in 0..BYTES / 128 {
                let piece = take_zeroed(small);
                assert!(is_of_reserve(piece) && piece.addr().is_multiple_of(64));
                // SAFETY: the piece has so many bytes.
                unsafe {
                    assert_eq!(std::slice::from_raw_parts(piece, 100), [0; 100]);
                    piece.write_bytes(7, 100);
                }
                pieces.push(piece);
            }
            assert!(is_in_use() && take(small).is_null());
            // The last one can be had again, others when all are back.
            let last = pieces.pop().unwrap();
            give_back(last, 100);
            assert_eq!(take(small), last);
            // SAFETY: it is a piece of this length, which moves to where there is memory.
            unsafe {
                let moved = ALLOCATOR.realloc(last, small, 200);
                assert!(!is_of_reserve(moved));
                assert_eq!(std::slice::from_raw_parts(moved, 100), [7; 100]);
                ALLOCATOR.dealloc(moved, layout(200, 64));
            }
            for piece in pieces {
                // SAFETY: it is a piece of this length.
                unsafe { ALLOCATOR.dealloc(piece, small) };
            }
            assert!(!is_in_use() && take(layout(PIECE_BYTES_MAX + 1, 1)).is_null());
        }
    }
}
