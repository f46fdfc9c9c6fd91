//! The system calls of this crate: anonymous files, mappings, futexes, memory barriers.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// The seals of a job's segment: nobody shrinks it under our feet or grows it.
const SEGMENT_SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// Makes an anonymous file of this size, sparse, sealed against changes of its size.
pub(crate) fn sealed_file(name: &CStr, bytes: u64) -> io::Result<OwnedFd> {
    // SAFETY: the name is a C string; the call touches no other memory of ours.
    let raw =
        unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
    if raw < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just gave us this descriptor and nobody else has it.
    let file = unsafe { OwnedFd::from_raw_fd(raw) };
    let size =
        libc::off_t::try_from(bytes).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))?;
    let _quiet = FileSizeSignal::ignore();
    // SAFETY: a call on our own descriptor without pointers.
    check(unsafe { libc::ftruncate(file.as_raw_fd(), size) })?;
    // SAFETY: as above.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, SEGMENT_SEALS) })?;
    Ok(file)
}

/// Whether the file carries the seals of [`sealed_file`].
pub(crate) fn is_sealed(file: BorrowedFd<'_>) -> bool {
    // SAFETY: a query on a borrowed descriptor without pointers.
    let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
    seals >= 0 && seals & SEGMENT_SEALS == SEGMENT_SEALS
}

/// Beyond `RLIMIT_FSIZE` the kernel sends a signal that kills; the error alone is what we want.
struct FileSizeSignal(libc::sighandler_t);

impl FileSizeSignal {
    fn ignore() -> Self {
        // SAFETY: ignoring a signal installs no handler of ours.
        Self(unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) })
    }
}

impl Drop for FileSizeSignal {
    fn drop(&mut self) {
        // SAFETY: puts back the disposition that was there before.
        unsafe { libc::signal(libc::SIGXFSZ, self.0) };
    }
}

/// The bytes of a file.
pub(crate) fn file_bytes(file: BorrowedFd<'_>) -> io::Result<u64> {
    let status = rustix::fs::fstat(file)?;
    u64::try_from(status.st_size).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

/// Maps a whole file, shared and writable, without reserving memory for it.
pub(crate) fn map_shared(file: BorrowedFd<'_>, bytes: usize) -> io::Result<NonNull<u8>> {
    // SAFETY: a new mapping at an address of the kernel's choice disturbs no existing memory.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_NORESERVE,
            file.as_fd().as_raw_fd(),
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(start.cast()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))
}

/// Replaces a mapping of [`map_shared`] by a copy of this process's own: what is written to it from now on
/// stays here.
///
/// # Safety
/// So many bytes of this file are mapped at `start`, from the file's beginning on.
pub(crate) unsafe fn map_copy(
    start: NonNull<u8>,
    file: BorrowedFd<'_>,
    bytes: usize,
) -> io::Result<()> {
    // SAFETY: the same bytes are at the same place afterwards, as the caller promises.
    let copied = unsafe {
        libc::mmap(
            start.as_ptr().cast(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_FIXED | libc::MAP_NORESERVE,
            file.as_raw_fd(),
            0,
        )
    };
    if copied == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Changes whether pages of a mapping of [`map_shared`] can be written.
///
/// # Safety
/// The range is of such a mapping, and nothing writes there that is not meant to end the process.
pub(crate) unsafe fn protect(start: NonNull<u8>, bytes: usize, writable: bool) -> io::Result<()> {
    let access = if writable { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
    // SAFETY: as the caller promises.
    match unsafe { libc::mprotect(start.as_ptr().cast(), bytes, access) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Takes a mapping of [`map_shared`] away.
///
/// # Safety
/// Nothing may point into the mapping any more.
pub(crate) unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller promises that nobody uses the mapping.
    unsafe { libc::munmap(start.as_ptr().cast(), bytes) };
}

/// Gives the pages of a range of a file back; they read as zeroes afterwards.
pub(crate) fn punch_hole(file: BorrowedFd<'_>, offset: u64, bytes: u64) -> io::Result<()> {
    let mode = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
    Ok(rustix::fs::fallocate(file, mode, offset, bytes)?)
}

/// Sleeps while the word has this value, at most for the time given. Wakes for any reason.
pub(crate) fn futex_wait(word: &AtomicU32, value: u32, timeout: Duration) {
    let timeout = libc::timespec {
        tv_sec: timeout.as_secs().min(1 << 30) as libc::time_t,
        tv_nsec: timeout.subsec_nanos().into(),
    };
    // SAFETY: the word lives as long as the borrow; the kernel only reads it; the timeout is ours.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, &raw const timeout);
    }
}

/// Wakes at most this many sleepers on the word.
pub(crate) fn futex_wake(word: &AtomicU32, sleepers: i32) {
    // SAFETY: the kernel uses the address as a key; it does not write to it.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, sleepers) };
}

/// Lets others run. The one call of it stands in the waiter.
pub(crate) fn yield_processor() {
    // SAFETY: no arguments, no memory.
    unsafe { libc::sched_yield() };
}

/// How this thread is scheduled; none where the kernel does not say it.
fn scheduling() -> Option<libc::sched_attr> {
    const BYTES: u32 = size_of::<libc::sched_attr>() as u32;
    let mut scheduling = std::mem::MaybeUninit::<libc::sched_attr>::zeroed();
    // SAFETY: the kernel writes as many bytes as it is told at most, and they are there.
    let status =
        unsafe { libc::syscall(libc::SYS_sched_getattr, 0, scheduling.as_mut_ptr(), BYTES, 0) };
    // SAFETY: it has numbers alone, which may all be zero.
    (status == 0).then(|| unsafe { scheduling.assume_init() })
}

/// How long this thread's slices of a processor are, in nanoseconds; none where it may not choose that (only from
/// Linux 6.12 on, and as a usual task).
pub(crate) fn slice_ns() -> Option<u64> {
    let is_usual = |scheduling: &libc::sched_attr| {
        scheduling.sched_policy == libc::SCHED_OTHER as u32 && scheduling.sched_runtime > 0
    };
    scheduling().filter(is_usual).map(|scheduling| scheduling.sched_runtime)
}

/// Makes them so long; false where that is refused.
pub(crate) fn set_slice_ns(slice_ns: u64) -> bool {
    let Some(scheduling) = scheduling() else { return false };
    let scheduling = libc::sched_attr { sched_runtime: slice_ns, ..scheduling };
    // SAFETY: the kernel reads what is there, whose size it has said itself.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const scheduling, 0) == 0 }
}

/// A system call that does nothing: what entering the kernel costs.
pub(crate) fn shortest_call() {
    // SAFETY: no arguments, no memory.
    unsafe { libc::getppid() };
}

/// The processor that the calling thread runs on at this moment, if that can be known.
#[inline]
pub(crate) fn processor() -> Option<u32> {
    // The C library's call: rustix reads the kernel's page for it, which valgrind takes away.
    // SAFETY: no arguments, no memory.
    u32::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// The processors that the calling thread may run on.
pub(crate) fn allowed_processors() -> Vec<u32> {
    let Ok(mask) = rustix::thread::sched_getaffinity(None) else { return Vec::new() };
    let is_allowed = |&processor: &u32| mask.is_set(processor as usize);
    (0..rustix::thread::CpuSet::MAX_CPU as u32).filter(is_allowed).collect()
}

/// Moves the calling thread to a processor of its affinity mask. The mask is the same afterwards.
pub(crate) fn move_to_processor(processor: u32) {
    let Ok(mask) = rustix::thread::sched_getaffinity(None) else { return };
    if processor as usize >= rustix::thread::CpuSet::MAX_CPU || !mask.is_set(processor as usize) {
        return;
    }
    let mut alone = rustix::thread::CpuSet::new();
    alone.set(processor as usize);
    if rustix::thread::sched_setaffinity(None, &alone).is_ok() {
        // What was allowed a moment ago still is.
        let _ = rustix::thread::sched_setaffinity(None, &mask);
    }
}

/// A number that only this thread has while it lives, and that is not zero: the address of its control
/// block, which is in a register. In a library, thread-local memory would cost a call.
#[inline(always)]
#[allow(unreachable_code, reason = "one way for each architecture, and one for all others")]
pub(crate) fn this_thread() -> usize {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let block: usize;
        // SAFETY: by the psABI the first word of a thread's control block is its own address.
        unsafe {
            std::arch::asm!("mov {}, fs:[0]", out(reg) block, options(nostack, preserves_flags, pure, readonly));
        }
        return block;
    }
    thread_local!(static MARK: u8 = const { 0 });
    MARK.with(|mark| std::ptr::from_ref(mark) as usize)
}

const MEMBARRIER_GLOBAL_EXPEDITED: libc::c_int = 1 << 1;
const MEMBARRIER_REGISTER_GLOBAL_EXPEDITED: libc::c_int = 1 << 2;

/// Asks that [`barrier_everywhere`] of any process also orders this one. False where the kernel
/// or a seccomp filter does not offer it.
pub(crate) fn register_for_barriers() -> bool {
    // SAFETY: no pointers.
    unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0 }
}

/// Whether the kernel offers barriers that order all processors at once, which makes waking cheap for callers.
pub fn offers_barriers() -> bool {
    register_for_barriers()
}

/// A full barrier on every processor that runs a registered process.
pub fn barrier_everywhere() -> bool {
    // SAFETY: no pointers.
    unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_GLOBAL_EXPEDITED, 0, 0) == 0 }
}

/// Nanoseconds of the monotonic clock, the same for all processes of a host.
pub fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills the structure that we own.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_file_keeps_its_size() {
        let file = sealed_file(c"landeck-test", 8192).unwrap();
        assert!(is_sealed(file.as_fd()));
        assert_eq!(file_bytes(file.as_fd()).unwrap(), 8192);
        assert!(rustix::fs::ftruncate(&file, 4096).is_err());
        assert!(rustix::fs::ftruncate(&file, 16384).is_err());
    }

    #[test]
    fn a_thread_that_moves_keeps_its_mask() {
        let mask = rustix::thread::sched_getaffinity(None).unwrap();
        let allowed = allowed_processors();
        assert_eq!(allowed.len(), mask.count() as usize);
        for &processor in allowed.iter().chain(&[u32::MAX]) {
            move_to_processor(processor);
            assert_eq!(rustix::thread::sched_getaffinity(None).unwrap(), mask);
        }
        assert!(allowed.contains(&processor().unwrap()));
    }

    #[test]
    fn waiting_on_another_value_returns_at_once() {
        let word = AtomicU32::new(1);
        futex_wait(&word, 0, Duration::from_secs(60));
        futex_wake(&word, 1);
    }
}
