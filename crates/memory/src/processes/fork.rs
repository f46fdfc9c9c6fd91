//! Children that this process makes by fork: they are no members of its job, and nothing that they do
//! reaches the job.
//!
//! A child has its parent's memory and descriptors, so whatever it does would pass for its parent's: units
//! of semaphores that it gives back, names that it takes, destructors that it runs. Two things prevent that.
//! Calls are refused where [`is_child`] says so. And the segments of jobs (`keep_from_children`) are the
//! child's own copies from the fork on, so that what destructors and the program write there stays in the
//! child.
//!
//! `vfork`, `posix_spawn`, `system` and `popen` run no handler of this file and need none: their children
//! run another program at once.

use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use crate::system;

static IS_CHILD: AtomicBool = AtomicBool::new(false);
/// The mappings that child processes get copies of.
static KEPT: Mutex<Vec<Mapping>> = Mutex::new(Vec::new());

thread_local! {
    /// The lock of [`KEPT`], which the thread that forks holds meanwhile: so the child finds it whole.
    static HELD: RefCell<Option<MutexGuard<'static, Vec<Mapping>>>> = const { RefCell::new(None) };
}

/// A shared mapping of a whole file.
struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
    file: RawFd,
    /// The device and the inode of the file: its descriptor may have been closed and given out again.
    identity: (u64, u64),
}

// SAFETY: the address is that of a mapping of the process, which any thread may replace by a copy.
unsafe impl Send for Mapping {}

/// Whether this process is a child, made by fork, of one that was in a job by this library.
#[inline(always)]
pub fn is_child() -> bool {
    IS_CHILD.load(Ordering::Relaxed)
}

/// Ends this child without the handlers that its parent registered.
#[cold]
pub fn end_child(exit_code: i32) -> ! {
    // The lowest 8 bits are what the parent sees, and 0 would tell it that all went well.
    let exit_code = if exit_code & 0xff == 0 { 1 } else { exit_code };
    // SAFETY: the call does not return, and nothing runs after it.
    unsafe { libc::_exit(exit_code) }
}

/// Writes a line to standard error past the lock of the standard library, which another thread may have
/// held at the fork.
#[cold]
pub fn say(line: &str) {
    // SAFETY: whatever is open as standard error is what is meant, and it is not closed here.
    let mut file = ManuallyDrop::new(unsafe { File::from_raw_fd(libc::STDERR_FILENO) });
    // Nobody is left to tell that it is closed.
    let _ = file.write_all(format!("{line}\n").as_bytes());
}

/// Has [`is_child`] tell children from this process from now on.
pub(crate) fn watch() {
    static HANDLERS: Once = Once::new();
    HANDLERS.call_once(|| {
        // SAFETY: the handlers are functions of this library, which is never unloaded.
        unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    });
}

/// Gives children copies of a shared mapping of a file, until [`forget`] is called.
pub(crate) fn keep_from_children(start: NonNull<u8>, bytes: usize, file: BorrowedFd<'_>) {
    watch();
    // A file that cannot be asked for its identity is not replaced.
    let Some(identity) = identity(file) else { return };
    kept().push(Mapping { start, bytes, file: file.as_raw_fd(), identity });
}

/// Forgets a mapping that goes.
pub(crate) fn forget(start: NonNull<u8>) {
    kept().retain(|mapping| mapping.start != start);
}

fn kept() -> MutexGuard<'static, Vec<Mapping>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

fn identity(file: BorrowedFd<'_>) -> Option<(u64, u64)> {
    rustix::fs::fstat(file).ok().map(|status| (status.st_dev, status.st_ino))
}

impl Mapping {
    /// Replaces it by a copy. Where the kernel refuses that, calls are refused all the same.
    fn copy(&self) {
        // SAFETY: the number is not negative; the calls answer an error when nothing is open under it.
        let file = unsafe { BorrowedFd::borrow_raw(self.file) };
        if identity(file) == Some(self.identity) {
            // SAFETY: the mapping is one of this file from its beginning on, as its owner said.
            let _ = unsafe { system::map_copy(self.start, file.as_fd(), self.bytes) };
        }
    }
}

extern "C" fn before() {
    // A thread that is ending has no such place; its children are told from it all the same.
    let _ = HELD.try_with(|held| *held.borrow_mut() = Some(kept()));
}

extern "C" fn in_parent() {
    let _ = HELD.try_with(|held| held.borrow_mut().take());
}

extern "C" fn in_child() {
    IS_CHILD.store(true, Ordering::Relaxed);
    let held = HELD.try_with(|held| held.borrow_mut().take());
    if let Ok(Some(mut kept)) = held {
        // A child of this child goes on from this one's copies.
        kept.drain(..).for_each(|mapping| mapping.copy());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::SegmentPlan;
    use crate::segment::Segment;

    /// Runs this in a child and says how it ended.
    fn status_in_child(body: impl FnOnce() -> i32) -> i32 {
        watch();
        // SAFETY: the child makes system calls and writes to its memory, and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: as above; a child that hangs is ended by the alarm.
            unsafe {
                libc::alarm(20);
                libc::_exit(body());
            }
        }
        let mut status = 0;
        // SAFETY: the status is memory of ours.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        status
    }

    #[test]
    fn a_child_knows_that_it_is_one_and_so_does_its_child() {
        assert!(!is_child());
        let status =
            status_in_child(|| i32::from(!is_child()) + status_in_child(|| i32::from(!is_child())));
        assert_eq!(status, 0);
        assert!(!is_child());
    }

    #[test]
    fn writes_of_a_child_to_a_segment_stay_in_the_child() {
        let plan = SegmentPlan { heap_bytes_per_process: 0, ..SegmentPlan::new(1, 2) };
        let segment = Segment::create(&plan).unwrap();
        segment.keep_from_children();
        let news = segment.news(1);
        let status = status_in_child(|| {
            segment.tell_news(1);
            let own = i32::from(segment.news(1) != news + 1);
            own + status_in_child(|| i32::from(segment.news(1) != news + 1))
        });
        assert_eq!((status, segment.news(1)), (0, news));
        segment.tell_news(1);
        assert_eq!(segment.news(1), news + 1, "the parent's is shared as before");
    }

    #[test]
    fn a_segment_that_is_gone_is_nothing_to_a_child() {
        let plan = SegmentPlan { heap_bytes_per_process: 0, ..SegmentPlan::new(1, 1) };
        let segment = Segment::create(&plan).unwrap();
        segment.keep_from_children();
        let start = segment.bytes().start();
        drop(segment);
        assert!(kept().iter().all(|mapping| mapping.start != start));
    }

    #[test]
    fn a_child_that_is_ended_never_looks_successful() {
        for (code, seen) in [(0, 1), (3, 3), (256, 1), (257, 1)] {
            assert_eq!(status_in_child(|| end_child(code)) >> 8, seen, "{code}");
        }
    }
}
