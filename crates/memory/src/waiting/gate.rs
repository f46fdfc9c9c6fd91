//! The gate of an endpoint: it admits one thread at a time, or one thread only.
//!
//! The mode is fixed when the gate is made. In mode single a call costs a look at which thread it
//! is; in mode multiple, one lock, and little more than that look as long as the thread that made the
//! gate is the only one that enters. After a fork the child's calls are refused: its parent's
//! endpoint is not its own.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::processes::fork;
use crate::system;
pub use crate::waiting::biased_lock::Bias;
use crate::waiting::biased_lock::{BiasedLock, Way};
use crate::waiting::lock::Lock;

/// The threads that may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadMode {
    /// Only the thread that joined.
    Single,
    /// Any thread, at any time.
    Multiple,
}

/// Why a call was turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GateError {
    /// Another thread called in mode single.
    #[error(
        "this thread did not join the job and the job was joined in thread mode single: join in mode multiple"
    )]
    WrongThread,
    /// A call from inside a call.
    #[error("a call was made from inside another call of the same endpoint: return from it first")]
    Reentered,
    /// A child made by fork called.
    #[error(
        "this process was made by fork and is no member of the job: let its parent call, or run another program here (exec)"
    )]
    Forked,
}

impl GateError {
    /// Turns away a child made by fork: for calls that pass no gate.
    ///
    /// # Errors
    /// [`GateError::Forked`].
    #[inline(always)]
    pub fn refuse_children() -> Result<(), Self> {
        if fork::is_child() { Err(Self::Forked) } else { Ok(()) }
    }
}

/// A value that threads enter in turn.
pub struct Gate<T> {
    mode: ThreadMode,
    owner: usize,
    /// Of the owner, in mode single.
    alone: Lock,
    /// Of all threads, in mode multiple.
    lock: BiasedLock,
    value: UnsafeCell<T>,
}

// SAFETY: `enter` gives out one exclusive entry at a time, whatever the thread.
unsafe impl<T: Send> Sync for Gate<T> {}

/// The right to use the value, until dropped.
#[clippy::has_significant_drop]
pub struct Entry<'a, T> {
    gate: &'a Gate<T>,
    /// None in mode single.
    way: Option<Way>,
}

impl Bias {
    /// For the calling thread, if the kernel offers what it takes.
    pub fn of_this_thread() -> Self {
        Self::of(system::register_for_barriers().then(system::this_thread))
    }
}

impl<T> Gate<T> {
    /// A gate in this mode; its owner in mode single is the calling thread.
    pub fn new(mode: ThreadMode, value: T) -> Self {
        let favour = match mode {
            ThreadMode::Single => Bias::of(None),
            ThreadMode::Multiple => Bias::of_this_thread(),
        };
        Self::with(mode, Arc::new(favour), value)
    }

    /// A gate in mode multiple that shares a favour with others: entering costs its thread no exchange,
    /// until another one enters any of them.
    pub fn favouring(favour: &Arc<Bias>, value: T) -> Self {
        Self::with(ThreadMode::Multiple, favour.clone(), value)
    }

    fn with(mode: ThreadMode, favour: Arc<Bias>, value: T) -> Self {
        fork::watch();
        let (owner, lock) = (system::this_thread(), BiasedLock::new(favour));
        Self { mode, owner, alone: Lock::new(), lock, value: UnsafeCell::new(value) }
    }

    /// The mode.
    pub fn mode(&self) -> ThreadMode {
        self.mode
    }

    /// Whether one thread alone has wanted to enter so far, as far as can be told.
    #[inline]
    pub fn is_of_one_thread(&self) -> bool {
        self.mode == ThreadMode::Single || self.lock.is_favouring()
    }

    /// Enters; in mode multiple, after the thread that is inside.
    ///
    /// # Errors
    /// [`GateError`].
    #[inline]
    pub fn enter(&self) -> Result<Entry<'_, T>, GateError> {
        GateError::refuse_children()?;
        let way = match self.mode {
            ThreadMode::Single => self.enter_alone()?,
            ThreadMode::Multiple => self.enter_with_others(),
        };
        Ok(Entry { gate: self, way })
    }

    /// Enters if no thread is inside.
    ///
    /// # Errors
    /// [`GateError::WrongThread`], [`GateError::Forked`].
    #[inline]
    pub fn try_enter(&self) -> Result<Option<Entry<'_, T>>, GateError> {
        GateError::refuse_children()?;
        let way = match self.mode {
            ThreadMode::Single => match self.enter_alone() {
                Err(GateError::Reentered) => return Ok(None),
                other => other?,
            },
            ThreadMode::Multiple => match self.try_enter_with_others() {
                None => return Ok(None),
                way => way,
            },
        };
        Ok(Some(Entry { gate: self, way }))
    }

    /// As [`Gate::enter`] where the mode most often is multiple: the thread that is favoured calls nothing.
    ///
    /// # Errors
    /// [`GateError`].
    #[inline(always)]
    pub fn enter_in_turn(&self) -> Result<Entry<'_, T>, GateError> {
        match self.enter_favoured() {
            Some(entry) => Ok(entry),
            None => self.enter_otherwise(),
        }
    }

    #[inline(never)]
    fn enter_otherwise(&self) -> Result<Entry<'_, T>, GateError> {
        self.enter()
    }

    /// As [`Gate::try_enter`] where the mode most often is multiple.
    ///
    /// # Errors
    /// [`GateError::WrongThread`], [`GateError::Forked`].
    #[inline(always)]
    pub fn try_enter_in_turn(&self) -> Result<Option<Entry<'_, T>>, GateError> {
        match self.enter_favoured() {
            None => self.try_enter_otherwise(),
            entry => Ok(entry),
        }
    }

    #[inline(never)]
    fn try_enter_otherwise(&self) -> Result<Option<Entry<'_, T>>, GateError> {
        self.try_enter()
    }

    /// None where this takes more: nobody is favoured in mode single.
    #[inline(always)]
    fn enter_favoured(&self) -> Option<Entry<'_, T>> {
        let is_favoured = !fork::is_child() && self.lock.enter_favoured(system::this_thread());
        // An entry leaves when it is dropped, so none is made for a thread that is not inside.
        is_favoured.then(|| Entry { gate: self, way: Some(Way::Favoured) })
    }

    /// Apart from its caller, which stays short for mode single.
    #[inline(never)]
    fn enter_with_others(&self) -> Option<Way> {
        Some(self.lock.take(system::this_thread()))
    }

    #[inline(never)]
    fn try_enter_with_others(&self) -> Option<Way> {
        self.lock.try_take(system::this_thread())
    }

    #[inline(never)]
    fn leave_to_others(&self) {
        self.lock.give(Way::ForAll);
    }

    #[inline]
    fn enter_alone(&self) -> Result<Option<Way>, GateError> {
        if system::this_thread() != self.owner {
            return Err(GateError::WrongThread);
        }
        if self.alone.take_alone() { Ok(None) } else { Err(GateError::Reentered) }
    }
}

impl<T> Drop for Entry<'_, T> {
    #[inline]
    fn drop(&mut self) {
        match self.way {
            None => self.gate.alone.give_alone(),
            Some(Way::Favoured) => self.gate.lock.give(Way::Favoured),
            Some(Way::ForAll) => self.gate.leave_to_others(),
        }
    }
}

impl<T> Deref for Entry<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the entry is exclusive until dropped.
        unsafe { &*self.gate.value.get() }
    }
}

impl<T> DerefMut for Entry<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the entry is exclusive until dropped.
        unsafe { &mut *self.gate.value.get() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn single_lets_its_thread_in_and_no_other() {
        let gate = Arc::new(Gate::new(ThreadMode::Single, 1));
        *gate.enter().unwrap() += 1;
        let entry = gate.enter().unwrap();
        assert!(matches!(gate.enter(), Err(GateError::Reentered)));
        drop(entry);
        assert_eq!(*gate.enter().unwrap(), 2);
        let other = gate.clone();
        let refused =
            std::thread::spawn(move || matches!(other.enter(), Err(GateError::WrongThread)));
        assert!(refused.join().unwrap());
    }

    #[test]
    fn a_thread_that_is_turned_away_leaves_the_gate_as_it_is() {
        for mode in [ThreadMode::Single, ThreadMode::Multiple] {
            let gate = Gate::new(mode, ());
            let entry = gate.try_enter().unwrap();
            assert!(entry.is_some());
            assert!(gate.try_enter().unwrap().is_none());
            assert!(gate.try_enter().unwrap().is_none());
            drop(entry);
            assert!(gate.try_enter().unwrap().is_some());
        }
    }

    #[test]
    fn a_thread_that_is_not_favoured_does_not_come_in_beside_the_favourite() {
        let gate = Gate::new(ThreadMode::Multiple, ());
        let entry = gate.enter_in_turn().unwrap();
        let comes_in = || gate.try_enter_in_turn().unwrap().is_some();
        assert!(!comes_in(), "not a second time");
        std::thread::scope(|scope| assert!(!scope.spawn(comes_in).join().unwrap()));
        assert!(!comes_in(), "the favour has ended meanwhile");
        drop(entry);
        std::thread::scope(|scope| assert!(scope.spawn(comes_in).join().unwrap()));
        assert!(comes_in());
    }

    #[test]
    fn multiple_lets_all_in_one_after_the_other() {
        let gate = Arc::new(Gate::new(ThreadMode::Multiple, 0u64));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let gate = gate.clone();
                std::thread::spawn(move || (0..10_000).for_each(|_| *gate.enter().unwrap() += 1))
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(*gate.enter().unwrap(), 40_000);
    }
}
