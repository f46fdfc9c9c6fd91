//! Whether there is memory, asked before it is needed. Most objects of a program are made of many small
//! pieces, and a program may make any number of them, or name any number of blocks or requests in one
//! call. A small piece that cannot be had ends the process; so a call that begins such work asks for
//! all of it first, and refuses the work if there is none.

use thiserror::Error;

/// This process gets no memory for what a call would make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "this process gets no memory for what the call makes, about {bytes} bytes: free what it does not use, or raise its limit (ulimit -v)"
)]
pub struct NoRoom {
    /// How much it is, about.
    pub bytes: usize,
}

/// The least that is asked for: the allocator takes small pieces from portions of its own.
const LEAST_BYTES: usize = 1 << 20;
/// So little is not asked for: objects leave that much free.
const LITTLE_BYTES: usize = 64 << 10;

/// That there is memory for so many things of so many bytes each.
///
/// # Errors
/// [`NoRoom`].
#[inline]
pub fn for_many(count: usize, bytes_each: usize) -> Result<(), NoRoom> {
    let bytes = count.saturating_mul(bytes_each);
    if bytes <= LITTLE_BYTES { Ok(()) } else { for_bytes(bytes) }
}

/// That there is memory for so many bytes.
#[cold]
pub(crate) fn for_bytes(bytes: usize) -> Result<(), NoRoom> {
    let bytes = bytes.max(LEAST_BYTES);
    let (access, kind) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: the mapping is a new one, which nobody knows of and which goes again at once.
    let is_there = unsafe {
        let start =
            libc::mmap(std::ptr::null_mut(), bytes, access, kind | libc::MAP_NORESERVE, -1, 0);
        start != libc::MAP_FAILED && libc::munmap(start, bytes) == 0
    };
    if is_there { Ok(()) } else { Err(NoRoom { bytes }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_impossible_request_is_refused_and_a_small_one_is_not_asked_about() {
        assert_eq!(for_many(1 << 50, 64), Err(NoRoom { bytes: 1 << 56 }));
        assert_eq!(for_many(usize::MAX, 2), Err(NoRoom { bytes: usize::MAX }));
        assert_eq!((for_many(0, 64), for_many(1 << 20, 64)), (Ok(()), Ok(())));
    }
}
