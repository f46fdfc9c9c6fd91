//! Private memory of another process of this host, which the kernel reads for this one: the one place for that.
//!
//! A process tells another one where its data lie, together with its [`ProcessMark`]: its number, and the address and
//! value of a random word of its own. Each read of the data ends with a read of this word. So a process that is another
//! one than the number says (in a container, or one that came later) is never taken for the sender.
//!
//! A process whose data may be used again before the reader has said that it is done retracts its mark: the word
//! changes, and a read that was in progress finds that.

use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use crate::private::bytes::Buffer;

/// The word that others read. Zero until the first use.
static WORD: AtomicU64 = AtomicU64::new(0);
/// The places of each process in one system call.
const PLACES_AT_ONCE: usize = 64;
/// The bytes of a mark's word.
const WORD_BYTES: usize = size_of::<u64>();

/// The identity of a process whose memory is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessMark {
    /// The number of the process.
    pub pid: u32,
    /// The address of its word.
    pub address: u64,
    /// The value of its word.
    pub word: u64,
}

/// Bytes of another process's memory. Nothing of it is trusted: the kernel checks the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteBytes {
    /// Where they begin.
    pub address: u64,
    /// Their number.
    pub length: u64,
}

/// The reason why the memory of another process was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadRefused {
    /// The kernel does not let this process read there.
    #[error("the kernel refuses to read the memory of process {pid}: {}", io::Error::from_raw_os_error(*errno))]
    NotAllowed {
        /// The process.
        pid: u32,
        /// The number of the error.
        errno: i32,
    },
    /// No process with this mark is there.
    #[error("process {pid} is not there any more, or is another one")]
    NotThere {
        /// The process.
        pid: u32,
    },
    /// The process has retracted its mark.
    #[error("process {pid} has taken back what it said about its memory")]
    Retracted {
        /// The process.
        pid: u32,
    },
    /// The process is there, and has no memory at the address.
    #[error("process {pid} has no memory at the address that it told")]
    Unmapped {
        /// The process.
        pid: u32,
    },
}

impl ProcessMark {
    /// The mark of this process.
    #[must_use]
    pub fn own() -> Self {
        let mut word = WORD.load(Ordering::Relaxed);
        if word == 0 {
            // Another thread may be the first.
            let made = WORD.compare_exchange(0, random(), Ordering::Relaxed, Ordering::Relaxed);
            word = made.map_or_else(|there| there, |_| WORD.load(Ordering::Relaxed));
        }
        Self { pid: std::process::id(), address: WORD.as_ptr().addr() as u64, word }
    }

    /// Retracts the mark of this process. What it has told of its memory until now is not read any more, or is known to be
    /// worthless.
    pub fn retract() {
        // The word stays odd, and so is never zero.
        WORD.fetch_add(2, Ordering::Relaxed);
        // Whatever the program writes to its memory afterwards is seen after the word.
        fence(Ordering::SeqCst);
    }

    /// Whether this process can read the memory of the marked one: reads the word.
    ///
    /// # Errors
    /// [`ReadRefused`].
    pub fn check(&self) -> Result<(), ReadRefused> {
        self.read(&[], 0, &[])
    }

    /// Fills `targets`, one after the other, with the bytes of `places` from byte number `skip` on. There may be many of
    /// both: one system call gets up to 64 of each.
    ///
    /// # Errors
    /// [`ReadRefused`]. Then the targets have any content.
    pub fn read(
        &self,
        places: &[RemoteBytes],
        skip: u64,
        targets: &[Buffer],
    ) -> Result<(), ReadRefused> {
        let (mut remote, mut local) = (Cursor::new(places, skip), Cursor::new(targets, 0));
        let mut left: usize = targets.iter().map(Buffer::len).sum();
        loop {
            let (mut vectors, wanted) = Vectors::next(&local, &remote, left);
            let is_last = wanted == left;
            let mut word = 0u64;
            if is_last {
                vectors.add((&raw mut word).cast(), place(self.address, WORD_BYTES));
            }
            let read = vectors.read(self.pid).map_err(|errno| self.refusal(errno))?;
            if is_last && read == wanted + WORD_BYTES {
                // The word was read after the data.
                fence(Ordering::Acquire);
                return if word == self.word { Ok(()) } else { Err(self.other_word(word)) };
            }
            // The kernel ends a call at 2 GiB, and where memory is missing.
            let of_data = read.min(wanted);
            if of_data == 0 || (is_last && of_data == wanted) {
                return Err(self.refusal(libc::EFAULT));
            }
            remote.advance(of_data as u64);
            local.advance(of_data as u64);
            left -= of_data;
        }
    }

    /// Fills a slice, as [`ProcessMark::read`].
    ///
    /// # Errors
    /// [`ReadRefused`].
    pub fn read_to_slice(
        &self,
        places: &[RemoteBytes],
        skip: u64,
        target: &mut [u8],
    ) -> Result<(), ReadRefused> {
        // SAFETY: the slice is exclusively ours until this call returns, and the buffer does not outlive it.
        let buffer =
            unsafe { Buffer::new(std::ptr::NonNull::from(&mut *target).cast(), target.len()) };
        self.read(places, skip, &[buffer])
    }

    fn other_word(&self, word: u64) -> ReadRefused {
        // A process counts its word up; another one has another word.
        match word.wrapping_sub(self.word) {
            1..=RETRACTIONS_MAX => ReadRefused::Retracted { pid: self.pid },
            _ => ReadRefused::NotThere { pid: self.pid },
        }
    }

    #[cold]
    fn refusal(&self, errno: i32) -> ReadRefused {
        let pid = self.pid;
        match errno {
            libc::ESRCH => ReadRefused::NotThere { pid },
            libc::EFAULT => match self.reads_word() {
                Some(word) if word == self.word => ReadRefused::Unmapped { pid },
                // Memory that is not there any more because its owner has taken back what it said.
                Some(word) => self.other_word(word),
                None => ReadRefused::NotThere { pid },
            },
            errno => ReadRefused::NotAllowed { pid, errno },
        }
    }

    /// The word, if the process has memory there that looks like one.
    fn reads_word(&self) -> Option<u64> {
        let (mut word, mut vectors) = (0u64, Vectors::EMPTY);
        vectors.add((&raw mut word).cast(), place(self.address, WORD_BYTES));
        let is_read = vectors.read(self.pid) == Ok(WORD_BYTES);
        let is_there = is_read && word.wrapping_sub(self.word) <= RETRACTIONS_MAX;
        is_there.then_some(word)
    }
}

/// The most that a word has grown since it was told.
const RETRACTIONS_MAX: u64 = 1 << 40;

/// The ancestor whose descendants may read this process; 0 for none.
static READERS: AtomicU32 = AtomicU32::new(0);

/// Names the process whose descendants [`allow_readers`] admits: an ancestor that this process has in common with the other
/// processes of its job. Without one, and with 0, it admits nobody.
pub fn name_readers(ancestor: u32) {
    READERS.store(ancestor, Ordering::Relaxed);
}

/// Lets the named ancestor and its descendants read the memory of this process, where the kernel's module "yama" restricts
/// that to the process's own ancestors. They must belong to its user all the same. Elsewhere nothing happens, nor for the
/// number of no process. The kernel keeps one number, the last that anything in this process has set.
pub fn allow_readers() {
    let ancestor = libc::c_ulong::from(READERS.load(Ordering::Relaxed));
    // SAFETY: a call without pointers, about this process alone.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, ancestor, 0, 0, 0) };
}

/// A place of either process.
trait Place {
    fn length(&self) -> u64;
    fn vector(&self, within: u64, length: usize) -> libc::iovec;
}

impl Place for RemoteBytes {
    fn length(&self) -> u64 {
        self.length
    }

    fn vector(&self, within: u64, length: usize) -> libc::iovec {
        place(self.address.wrapping_add(within), length)
    }
}

impl Place for Buffer {
    fn length(&self) -> u64 {
        self.len() as u64
    }

    fn vector(&self, within: u64, length: usize) -> libc::iovec {
        let part = self.part(within as usize, length);
        libc::iovec { iov_base: part.bytes().start().as_ptr().cast(), iov_len: part.len() }
    }
}

/// The places that are still to be copied.
struct Cursor<'a, P> {
    places: &'a [P],
    /// The bytes of the first place that are done.
    within: u64,
}

impl<'a, P: Place> Cursor<'a, P> {
    fn new(places: &'a [P], skip: u64) -> Self {
        let mut cursor = Self { places, within: 0 };
        cursor.advance(skip);
        cursor
    }

    /// Writes the next places, with at most `most` bytes; returns how many there are, and their bytes.
    fn fill(&self, vectors: &mut [libc::iovec], most: usize) -> (usize, usize) {
        let (mut count, mut bytes, mut within) = (0, 0, self.within);
        for one in self.places {
            let length = (one.length() - within).min((most - bytes) as u64) as usize;
            if bytes == most || count == vectors.len() {
                break;
            }
            vectors[count] = one.vector(within, length);
            (count, bytes, within) = (count + 1, bytes + length, 0);
        }
        (count, bytes)
    }

    fn advance(&mut self, bytes: u64) {
        self.within += bytes;
        while let Some(first) = self.places.first()
            && self.within >= first.length()
        {
            self.within -= first.length();
            self.places = &self.places[1..];
        }
    }
}

/// The vectors of one system call: as many bytes of this process as of the other one.
struct Vectors {
    local: [libc::iovec; PLACES_AT_ONCE + 1],
    remote: [libc::iovec; PLACES_AT_ONCE + 1],
    locals: usize,
    remotes: usize,
}

impl Vectors {
    const EMPTY: Self = Self {
        local: [EMPTY; PLACES_AT_ONCE + 1],
        remote: [EMPTY; PLACES_AT_ONCE + 1],
        locals: 0,
        remotes: 0,
    };

    /// The vectors of the next places, and their bytes, at most `most`.
    fn next(
        local: &Cursor<'_, Buffer>,
        remote: &Cursor<'_, RemoteBytes>,
        most: usize,
    ) -> (Self, usize) {
        let mut vectors = Self::EMPTY;
        let (_, room) = local.fill(&mut vectors.local[..PLACES_AT_ONCE], most);
        let (remotes, bytes) = remote.fill(&mut vectors.remote[..PLACES_AT_ONCE], room);
        let (locals, _) = local.fill(&mut vectors.local[..PLACES_AT_ONCE], bytes);
        (vectors.locals, vectors.remotes) = (locals, remotes);
        (vectors, bytes)
    }

    /// Adds a place of the other process, and the one of this process that its bytes go to.
    fn add(&mut self, target: *mut libc::c_void, source: libc::iovec) {
        self.local[self.locals] = libc::iovec { iov_base: target, iov_len: source.iov_len };
        self.remote[self.remotes] = source;
        (self.locals, self.remotes) = (self.locals + 1, self.remotes + 1);
    }

    /// Reads from a process; returns how many bytes, or the number of the error.
    fn read(&self, pid: u32) -> Result<usize, i32> {
        // SAFETY: the kernel writes to the local places alone, and no more than their lengths. Each lies in a buffer, which
        // the promise of `Buffer::new` keeps writable, or is a word of the caller's. Of the other process it only reads,
        // whatever the addresses are.
        let read = unsafe {
            libc::process_vm_readv(
                pid.cast_signed(),
                self.local.as_ptr(),
                self.locals as libc::c_ulong,
                self.remote.as_ptr(),
                self.remotes as libc::c_ulong,
                0,
            )
        };
        let errno = || io::Error::last_os_error().raw_os_error().unwrap_or(0);
        usize::try_from(read).map_err(|_| errno())
    }
}

const EMPTY: libc::iovec = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };

/// A place of another process: the address means nothing in this one.
fn place(address: u64, length: usize) -> libc::iovec {
    libc::iovec { iov_base: std::ptr::without_provenance_mut(address as usize), iov_len: length }
}

/// An odd number that no other process has.
fn random() -> u64 {
    let mut bytes = [0; 8];
    let flags = rustix::rand::GetRandomFlags::empty();
    let filled = rustix::rand::getrandom(&mut bytes[..], flags).unwrap_or(0);
    let random = u64::from_le_bytes(bytes);
    // Without random bytes the number of the process and the place of a variable have to do.
    let other = u64::from(std::process::id()) << 32 ^ (&raw const bytes).addr() as u64;
    (if filled == bytes.len() { random } else { other }) | 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    fn of(bytes: &[u8]) -> RemoteBytes {
        RemoteBytes { address: bytes.as_ptr().addr() as u64, length: bytes.len() as u64 }
    }

    /// The mark is for the whole process: while one test retracts it, no other one reads.
    static TURN: Mutex<()> = Mutex::new(());

    fn turn() -> MutexGuard<'static, ()> {
        TURN.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[test]
    fn places_are_read_one_after_the_other_from_any_byte_on() {
        let _turn = turn();
        let data: Vec<u8> = (0..20_000u32).map(|at| (at * 7) as u8).collect();
        let places: Vec<RemoteBytes> = data.chunks(150).rev().map(of).collect();
        let packed: Vec<u8> = data.chunks(150).rev().flatten().copied().collect();
        let mark = ProcessMark::own();
        for (skip, length) in [(0, 20_000), (1, 19_999), (149, 2), (151, 0), (9_700, 5_000)] {
            let mut target = vec![0; length];
            mark.read_to_slice(&places, skip as u64, &mut target).unwrap();
            assert_eq!(target, packed[skip..skip + length], "{length} bytes from {skip}");
        }
    }

    #[test]
    fn places_of_both_sides_may_be_many_and_of_any_length() {
        let _turn = turn();
        let data: Vec<u8> = (0..50_000u32).map(|at| (at * 7) as u8).collect();
        let mark = ProcessMark::own();
        for (from, to, skip) in [(150, 70, 0), (70, 150, 33), (1, 999, 49_000), (50_000, 3, 1)] {
            let places: Vec<RemoteBytes> = data.chunks(from).rev().map(of).collect();
            let packed: Vec<u8> = data.chunks(from).rev().flatten().copied().collect();
            let mut target = vec![0xff; 2 * data.len()];
            let targets: Vec<Buffer> = target[..2 * (data.len() - skip)]
                .chunks_mut(2 * to)
                .map(|room| {
                    let length = room.len() / 2;
                    // SAFETY: the vector is used again only after the read.
                    unsafe { Buffer::new(std::ptr::NonNull::from(room).cast(), length) }
                })
                .collect();
            mark.read(&places, skip as u64, &targets).unwrap();
            let mut left = &packed[skip..];
            for room in target[..2 * (data.len() - skip)].chunks(2 * to) {
                let (filled, between) = room.split_at(room.len() / 2);
                assert_eq!(filled, &left[..filled.len()], "{from} to {to} from {skip}");
                assert!(between.iter().all(|&byte| byte == 0xff), "{from} to {to} from {skip}");
                left = &left[filled.len()..];
            }
            assert!(left.is_empty());
        }
    }

    #[test]
    fn a_read_says_why_it_is_refused() {
        let _turn = turn();
        let mark = ProcessMark::own();
        let (pid, mut target) = (mark.pid, [0; 8]);
        let nowhere = RemoteBytes { address: 64, length: 8 };
        let mut read = |mark: ProcessMark| mark.read_to_slice(&[nowhere], 0, &mut target);
        assert_eq!(read(mark), Err(ReadRefused::Unmapped { pid }));
        let other = ProcessMark { word: mark.word ^ 1 << 62, ..mark };
        assert_eq!((other.check(), read(other)), twice(ReadRefused::NotThere { pid }));
        let nobody = ProcessMark { pid: 0x7fff_fff0, ..mark };
        assert_eq!(
            (nobody.check(), read(nobody)),
            twice(ReadRefused::NotThere { pid: nobody.pid })
        );
        let too_long = RemoteBytes { length: u64::MAX, ..of(&[7; 8]) };
        assert!(mark.read_to_slice(&[too_long], 1 << 40, &mut target).is_err());
    }

    fn twice(refused: ReadRefused) -> (Result<(), ReadRefused>, Result<(), ReadRefused>) {
        (Err(refused), Err(refused))
    }

    #[test]
    fn a_retracted_mark_is_noticed() {
        let _turn = turn();
        let (mark, data, mut target) = (ProcessMark::own(), [7; 8], [0; 8]);
        mark.read_to_slice(&[of(&data)], 0, &mut target).unwrap();
        ProcessMark::retract();
        let refused = ReadRefused::Retracted { pid: mark.pid };
        assert_eq!(mark.read_to_slice(&[of(&data)], 0, &mut target), Err(refused));
        let released = RemoteBytes { address: 64, length: 8 };
        assert_eq!(mark.read_to_slice(&[released], 0, &mut target), Err(refused));
        assert_eq!(ProcessMark::own().check(), Ok(()));
    }
}
