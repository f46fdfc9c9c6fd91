//! The thread that advances operations which go on while nobody calls, for programs that ask for it.
//!
//! It waits in turn like any caller, and is the last in line: it takes the turn when operations go
//! on and nobody else has it, gives it up at the next look once a caller wants it, and is called
//! again when the last caller has gone and something still goes on. Meanwhile it sleeps.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;

use landeck_memory::waiter::{Doorbell, Follower};
use landeck_transports::wake_thread::without_signals;

use crate::shared::Shared;

/// Who advances operations that go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Progress {
    /// Whoever calls the library, during the call.
    #[default]
    Callers,
    /// A thread of the library's as well, while nobody calls. The thread mode is then multiple,
    /// and functions of the user's that combine values may run in that thread. It pays where it has a
    /// processor that the program does not use.
    Thread,
}

/// What the thread shares with the callers.
#[derive(Default)]
pub(crate) struct Helper {
    follower: Follower,
    /// What it is about to wait for, if nobody calls before its last look.
    awaits: AtomicU32,
    is_ended: AtomicBool,
}

/// It does something.
const NOTHING: u32 = 0;
/// It waits until something is begun.
const BEGINNING: u32 = 1;
/// It waits until the callers leave it the turn.
const TURN: u32 = 2;

/// What became of the thread's look at what goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Assisted {
    /// Nothing goes on any more.
    Idle,
    /// Callers have the turn, or are to have it.
    InTheWay,
}

/// The thread. It ends when this is dropped.
pub(crate) struct ProgressThread {
    helper: Arc<Helper>,
    bell: Doorbell,
    thread: Option<JoinHandle<()>>,
    /// In a child made by fork there is no thread.
    process: u32,
}

impl Helper {
    /// Something was begun that goes on.
    #[inline]
    pub(crate) fn call(&self) {
        if self.awaits.load(Ordering::SeqCst) != NOTHING
            && self.awaits.swap(NOTHING, Ordering::SeqCst) != NOTHING
        {
            self.follower.call();
        }
    }

    /// The callers have left the turn.
    #[inline]
    pub(crate) fn leave_turn(&self) {
        if self.awaits.load(Ordering::SeqCst) == TURN {
            self.call();
        }
    }

    /// It has the turn.
    pub(crate) fn takes_turn(&self) {
        self.awaits.store(NOTHING, Ordering::SeqCst);
    }

    /// Before it gives the turn up, or looks whether it may have it: who leaves it later calls.
    pub(crate) fn awaits_turn(&self) {
        self.awaits.store(TURN, Ordering::SeqCst);
    }

    /// Whether the thread is to end.
    pub(crate) fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Relaxed)
    }

    fn run(&self, shared: &Shared) {
        landeck_memory::processors::follow_parent();
        while !self.is_ended() {
            self.awaits_turn();
            if shared.assist(self) == Assisted::Idle {
                // First says what it waits for, then looks once more.
                self.awaits.store(BEGINNING, Ordering::SeqCst);
                if shared.has_going() {
                    continue;
                }
            }
            if !self.is_ended() {
                self.follower.sleep(None);
            }
        }
    }
}

impl ProgressThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system gives none.
    pub(crate) fn start(
        shared: Arc<Shared>,
        helper: Arc<Helper>,
        bell: Doorbell,
    ) -> io::Result<Self> {
        let own = helper.clone();
        let thread = without_signals(|| {
            let builder = std::thread::Builder::new().name("landeck-progress".to_owned());
            builder.spawn(move || own.run(&shared))
        })?;
        Ok(Self { helper, bell, thread: Some(thread), process: std::process::id() })
    }
}

impl Drop for ProgressThread {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if std::process::id() != self.process {
            std::mem::forget(thread);
            return;
        }
        self.helper.is_ended.store(true, Ordering::SeqCst);
        self.helper.follower.call();
        self.bell.ring_fenced();
        // What it ran of the user's may have panicked; the caller was told.
        let _ = thread.join();
    }
}
