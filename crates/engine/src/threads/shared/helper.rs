//! The words that the helping thread shares with the callers: what it waits for, and that it is to end.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use landeck_memory::waiter::Follower;

use crate::Shared;

/// The threads that advance operations which go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Progress {
    /// The thread that calls the library, during the call.
    #[default]
    Callers,
    /// A thread of the library's as well, while nobody calls. The thread mode is then multiple,
    /// and functions of the user's that combine values may run in that thread. It pays where it has a
    /// processor that the program does not use.
    Thread,
}

/// The words that the helping thread shares with the callers.
#[derive(Default)]
pub(crate) struct Helper {
    follower: Follower,
    /// The event it is about to wait for, if nobody calls before its last look.
    awaits: AtomicU32,
    is_ended: AtomicBool,
}

/// It does something.
const NOTHING: u32 = 0;
/// It waits until something is begun.
const BEGINNING: u32 = 1;
/// It waits until the callers leave it the turn.
const TURN: u32 = 2;

/// The result of the thread's look at the operations that go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Assisted {
    /// Nothing goes on any more.
    Idle,
    /// Callers have the turn, or are to have it.
    InTheWay,
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

    /// Called before it gives the turn up, or looks whether it may have it: a thread that leaves the turn later calls.
    pub(crate) fn awaits_turn(&self) {
        self.awaits.store(TURN, Ordering::SeqCst);
    }

    /// Whether the thread is to end.
    pub(crate) fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Relaxed)
    }

    /// Has the thread end.
    pub(crate) fn end(&self) {
        self.is_ended.store(true, Ordering::SeqCst);
        self.follower.call();
    }

    /// The thread's body.
    pub(crate) fn run(&self, shared: &Shared) {
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
