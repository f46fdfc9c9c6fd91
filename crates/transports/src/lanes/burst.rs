//! Bursts: short messages that leave in one system call.
//!
//! The first messages of a lane behind a look leave at once. Further ones wait for each other, until their process looks
//! again, or until they are many. Their program may compute on without a further call, so nothing waits for longer than
//! [`LONGEST`]: a thread sends it then. A process whose messages come in no bursts has no such thread.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::socket::{self, Moved};
use crate::wake_thread::without_signals;

/// The messages of a lane that leave at once behind a look. The thread costs as much as some of them.
pub(super) const AT_ONCE: u32 = 3;
/// The longest message that waits for others.
pub(super) const MESSAGE_BYTES_MAX: usize = 4 * 1024;
/// The most bytes that wait for each other.
pub(super) const BYTES_MAX: usize = 16 * 1024;
/// The longest time that a message waits for others.
const LONGEST: Duration = Duration::from_micros(50);
/// The stack of the thread, which calls nothing that needs more.
const STACK_BYTES: usize = 64 * 1024;

/// The bytes of one lane that wait for others, whole frames in their order.
#[derive(Debug, Default)]
pub(super) struct Burst {
    /// Where they go; `None` while the lane has them itself.
    pub(super) socket: Option<Arc<OwnedFd>>,
    pub(super) bytes: Vec<u8>,
    /// The bytes before this place have left.
    pub(super) begin: usize,
    /// The thread is going to look at it.
    pub(super) is_awaited: bool,
    /// The system calls of the thread, and the bytes that they have sent.
    pub(super) calls: u64,
    pub(super) sent: u64,
    /// The system refuses them.
    pub(super) error: Option<Errno>,
}

/// The bursts of a process's lanes, and the thread that sends those for which nobody calls.
#[derive(Default)]
pub(super) struct Bursts {
    thread: Option<BurstThread>,
    /// The system gives no thread, so nothing may wait.
    has_none: bool,
}

struct BurstThread {
    waiting: Arc<Waiting>,
    thread: Option<JoinHandle<()>>,
    /// The process that has the thread; a forked child has none.
    process: u32,
}

/// The lanes whose bursts the thread is going to look at.
#[derive(Debug, Default)]
struct Waiting {
    lanes: Mutex<Lanes>,
    /// The first of them has begun, or the thread is to end.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Lanes {
    begun: Vec<Arc<Mutex<Burst>>>,
    /// When the first of them began.
    since: Option<Instant>,
    has_ended: bool,
}

/// Locks what no thread panics with.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Burst {
    /// Sends the bytes, as far as the network accepts them.
    fn send(&mut self) {
        let Some(socket) = &self.socket else { return };
        while self.begin < self.bytes.len() {
            self.calls += 1;
            match socket::send(socket, &self.bytes[self.begin..]) {
                Ok(Moved::Bytes(bytes)) => {
                    self.begin += bytes;
                    self.sent += bytes as u64;
                }
                Ok(_) => return, // the lane goes on with the rest
                Err(error) => return self.error = Some(error),
            }
        }
    }
}

impl Bursts {
    /// Has the thread look at a burst in time. False if there is no thread.
    pub(super) fn begin(&mut self, burst: &Arc<Mutex<Burst>>) -> bool {
        if self.thread.is_none() && !self.has_none {
            self.thread = BurstThread::start().ok();
            self.has_none = self.thread.is_none();
        }
        let Some(thread) = &self.thread else { return false };
        let mut lanes = lock(&thread.waiting.lanes);
        lanes.begun.push(burst.clone());
        if lanes.since.is_none() {
            lanes.since = Some(Instant::now());
            thread.waiting.changed.notify_one();
        }
        true
    }
}

impl BurstThread {
    fn start() -> io::Result<Self> {
        let waiting = Arc::new(Waiting::default());
        let its = waiting.clone();
        let thread = without_signals(|| {
            let builder = std::thread::Builder::new().name("landeck-burst".to_owned());
            builder.stack_size(STACK_BYTES).spawn(move || its.send_in_time())
        })?;
        Ok(Self { waiting, thread: Some(thread), process: std::process::id() })
    }
}

impl Waiting {
    fn send_in_time(&self) {
        // The system would add its usual 50 us to each wait; if it cannot be told, messages wait for so much longer.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1_000));
        let is_empty = |lanes: &mut Lanes| lanes.since.is_none() && !lanes.has_ended;
        loop {
            let lanes = lock(&self.lanes);
            let lanes =
                self.changed.wait_while(lanes, is_empty).unwrap_or_else(PoisonError::into_inner);
            let left = LONGEST.saturating_sub(lanes.since.map_or(LONGEST, |it| it.elapsed()));
            let (mut lanes, _) = self
                .changed
                .wait_timeout_while(lanes, left, |lanes| !lanes.has_ended)
                .unwrap_or_else(PoisonError::into_inner);
            if lanes.has_ended {
                return;
            }
            let Lanes { begun, .. } = std::mem::take(&mut *lanes);
            drop(lanes);
            for burst in &begun {
                let mut burst = lock(burst);
                burst.is_awaited = false;
                burst.send();
            }
        }
    }
}

impl Drop for BurstThread {
    fn drop(&mut self) {
        if std::process::id() != self.process {
            std::mem::forget(self.thread.take());
            return;
        }
        lock(&self.waiting.lanes).has_ended = true;
        self.waiting.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_burst_leaves_without_a_further_call() {
        let _watchdog = landeck_testing::Watchdog::start(Duration::from_secs(60));
        let (here, mut there) = UnixStream::pair().unwrap();
        let socket = Some(Arc::new(OwnedFd::from(here)));
        let mut bursts = Bursts::default();
        for round in 0..100u8 {
            let bytes = vec![round; 1 + usize::from(round)];
            let burst = Burst { socket: socket.clone(), bytes, begin: 1, ..Burst::default() };
            let burst = Arc::new(Mutex::new(burst));
            assert!(bursts.begin(&burst));
            let mut read = vec![0; usize::from(round)];
            there.read_exact(&mut read).unwrap();
            assert!(read.iter().all(|byte| *byte == round), "{read:?}");
            assert_eq!(lock(&burst).sent, u64::from(round), "they count as traffic");
        }
    }

    #[test]
    fn a_burst_that_its_lane_has_itself_is_no_longer_awaited() {
        let _watchdog = landeck_testing::Watchdog::start(Duration::from_secs(60));
        let burst = Arc::new(Mutex::new(Burst { is_awaited: true, ..Burst::default() }));
        let mut bursts = Bursts::default();
        assert!(bursts.begin(&burst));
        while lock(&burst).is_awaited {
            std::thread::yield_now();
        }
    }

    #[test]
    fn an_error_stays_for_the_lane() {
        let (here, there) = UnixStream::pair().unwrap();
        drop(there);
        let socket = Some(Arc::new(OwnedFd::from(here)));
        let mut burst = Burst { socket, bytes: vec![1], ..Burst::default() };
        burst.send();
        assert_eq!((burst.error, burst.begin, burst.calls), (Some(Errno::PIPE), 0, 1));
        burst.socket = None;
        burst.send();
        assert_eq!(burst.calls, 1, "the lane has it itself");
    }
}
