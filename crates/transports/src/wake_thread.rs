//! A thread that wakes a process when something arrives on a socket.
//!
//! A process sleeps on one word in its segment, and shared memory wakes it there. Sockets cannot. So a process with
//! sockets has this thread, from its first sleep on, which only rings the process's bell. It receives nothing and knows
//! nothing of messages.
//!
//! The process arms the thread each time it has found nothing and is about to sleep ([`WakeThread::arm`]). One arrival
//! rings once. Then the descriptors are left alone until they are armed again, so that a busy process is not disturbed.
//! Arming a descriptor that is already readable rings at once, so no arrival after the last look is missed.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread::JoinHandle;

use landeck_memory::waiter::Doorbell;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

/// The stack of the thread, which calls nothing that needs more.
const STACK_BYTES: usize = 64 * 1024;
/// The key of the event that ends the thread.
const STOP: u64 = u64::MAX;

/// The thread. Dropping this ends it.
pub struct WakeThread {
    epoll: OwnedFd,
    descriptors: Vec<OwnedFd>,
    stop: OwnedFd,
    thread: Option<JoinHandle<()>>,
    /// The process that has the thread; a forked child has none, and the descriptors are its parent's.
    process: u32,
}

impl WakeThread {
    /// Starts the thread, with nothing armed. `bell` rings when one of the descriptors is readable.
    ///
    /// # Errors
    /// If the system gives no descriptors or no thread.
    pub fn start(bell: Doorbell, descriptors: &[BorrowedFd<'_>]) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &stop, EventData::new_u64(STOP), EventFlags::IN)?;
        let descriptors: Vec<OwnedFd> = descriptors
            .iter()
            .map(|descriptor| descriptor.try_clone_to_owned())
            .collect::<io::Result<_>>()?;
        for descriptor in &descriptors {
            epoll::add(&epoll, descriptor, EventData::new_u64(0), EventFlags::ONESHOT)?;
        }
        let watched = epoll.try_clone()?;
        let body = move || ring_when_readable(&watched, &bell);
        let thread = without_signals(|| {
            let builder = std::thread::Builder::new().name("landeck-wake".to_owned());
            builder.stack_size(STACK_BYTES).spawn(body)
        })?;
        let process = std::process::id();
        Ok(Self { epoll, descriptors, stop, thread: Some(thread), process })
    }

    /// Lets the bell ring once, at the next arrival, or at once if something is there already.
    ///
    /// # Errors
    /// If the system has no memory for it.
    pub fn arm(&self) -> io::Result<()> {
        let flags = EventFlags::IN | EventFlags::ONESHOT;
        for descriptor in &self.descriptors {
            epoll::modify(&self.epoll, descriptor, EventData::new_u64(0), flags)?;
        }
        Ok(())
    }
}

impl Drop for WakeThread {
    fn drop(&mut self) {
        if std::process::id() != self.process {
            std::mem::forget(self.thread.take());
            return;
        }
        // This cannot fail: the counter is far from its limit.
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn ring_when_readable(epoll: &OwnedFd, bell: &Doorbell) {
    let mut events: Vec<Event> = Vec::with_capacity(16);
    loop {
        events.clear();
        let room = rustix::buffer::spare_capacity(&mut events);
        match epoll::wait(epoll.as_fd(), room, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return, // impossible, since the descriptor is ours
        }
        if events.iter().any(|event| event.data.u64() == STOP) {
            return;
        }
        if !events.is_empty() {
            bell.ring_fenced();
        }
    }
}

/// Calls `start` with all signals blocked, which the threads that it starts inherit: signals are for the program's own
/// threads.
pub fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    let mut before = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: both sets are local memory; the calls write whole sets and keep no pointer.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let result = start();
    // SAFETY: the first call has filled `before`.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_memory::waiter::Waiting;
    use landeck_memory::{End, Segment, SegmentPlan, WaitRecord, Waiter};
    use landeck_testing::Watchdog;
    use std::io::{PipeReader, Read, Write};
    use std::time::Duration;

    fn watchdog() -> Watchdog {
        Watchdog::start(Duration::from_secs(200))
    }

    fn segment() -> Segment {
        Segment::local(&SegmentPlan { heap_bytes_per_process: 0, ..SegmentPlan::new(1, 2) })
    }

    /// Waits for bytes in a pipe as an endpoint waits for messages on sockets.
    struct Bytes<'a> {
        pipe: &'a mut PipeReader,
        wake: &'a WakeThread,
        wanted: usize,
        sleeps: u32,
    }

    impl Waiting for Bytes<'_> {
        fn poll(&mut self) -> bool {
            self.wanted == 0
        }

        fn poll_before_sleep(&mut self) -> bool {
            self.sleeps += 1;
            let mut byte = [0];
            while self.wanted > 0
                && rustix::io::ioctl_fionread(&*self.pipe).is_ok_and(|bytes| bytes > 0)
            {
                self.pipe.read_exact(&mut byte).unwrap();
                self.wanted -= 1;
            }
            if self.wanted > 0 {
                self.wake.arm().unwrap();
            }
            self.wanted == 0
        }

        fn verdict(&mut self) -> Option<End> {
            None
        }

        fn record(&self) -> WaitRecord {
            WaitRecord::default()
        }
    }

    #[test]
    fn a_sleeper_is_woken_by_each_arrival() {
        let _watchdog = watchdog();
        let segment = segment();
        let (mut pipe, mut writer) = std::io::pipe().unwrap();
        let bell = Doorbell::of(&segment, 0).unwrap();
        let wake = WakeThread::start(bell, &[pipe.as_fd()]).unwrap();
        let (done, next) = std::sync::mpsc::channel();
        let sender = std::thread::spawn(move || {
            for round in 0..200u32 {
                if round % 4 == 0 {
                    std::thread::sleep(Duration::from_millis(3)); // it sleeps by then
                }
                writer.write_all(&[1]).unwrap();
                next.recv().unwrap();
            }
        });
        let mut waiter = Waiter::new(&segment, 0);
        let mut sleeps = 0;
        for _ in 0..200 {
            let mut bytes = Bytes { pipe: &mut pipe, wake: &wake, wanted: 1, sleeps: 0 };
            assert_eq!(waiter.wait(&mut bytes, None), End::Ready);
            sleeps += bytes.sleeps;
            done.send(()).unwrap();
        }
        sender.join().unwrap();
        assert!(sleeps >= 200, "each wait looked before it slept");
    }

    /// Waits in vain, and arms the thread once.
    struct Never<'a> {
        wake: Option<&'a WakeThread>,
        looks: u32,
    }

    impl Waiting for Never<'_> {
        fn poll(&mut self) -> bool {
            false
        }

        fn poll_before_sleep(&mut self) -> bool {
            self.looks += 1;
            if let Some(wake) = self.wake.take() {
                wake.arm().unwrap();
            }
            false
        }

        fn verdict(&mut self) -> Option<End> {
            None
        }

        fn record(&self) -> WaitRecord {
            WaitRecord::default()
        }
    }

    #[test]
    fn an_unarmed_thread_does_not_ring_and_bytes_already_there_ring_at_once() {
        let _watchdog = watchdog();
        let segment = segment();
        let (pipe, mut writer) = std::io::pipe().unwrap();
        let bell = Doorbell::of(&segment, 0).unwrap();
        let wake = WakeThread::start(bell, &[pipe.as_fd()]).unwrap();
        writer.write_all(&[1]).unwrap();
        let mut waiter = Waiter::new(&segment, 0);
        let mut looks = |wake| {
            let mut never = Never { wake, looks: 0 };
            let deadline_ns = landeck_memory::system::now_ns() + 40_000_000;
            assert_eq!(waiter.wait(&mut never, Some(deadline_ns)), End::TimedOut);
            never.looks
        };
        let alone = looks(None);
        // The thread may get no processor within one wait.
        let rang = (0..100).any(|_| looks(Some(&wake)) > alone);
        assert!(rang, "the byte that was there woke nobody");
    }

    #[test]
    fn it_ends_with_its_owner() {
        let _watchdog = watchdog();
        let threads = || {
            let tasks = std::fs::read_dir("/proc/self/task").unwrap();
            let name = |task: &std::fs::DirEntry| {
                std::fs::read_to_string(task.path().join("comm")).unwrap_or_default()
            };
            tasks.flatten().filter(|task| name(task) == "landeck-wake\n").count()
        };
        let segment = segment();
        let (pipe, _writer) = std::io::pipe().unwrap();
        for _ in 0..20 {
            let bell = Doorbell::of(&segment, 0).unwrap();
            let wake = WakeThread::start(bell, &[pipe.as_fd()]).unwrap();
            wake.arm().unwrap();
            drop(wake);
        }
        // Other tests of this process may have one each, and a thread that ends is still listed for a moment.
        while threads() > 2 {
            std::thread::yield_now();
        }
    }
}
