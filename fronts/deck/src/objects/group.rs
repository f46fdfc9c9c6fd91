//! Groups.

use std::sync::{Mutex, MutexGuard, TryLockError};

use landeck::MessageWorld;

use crate::errors;
use crate::mistake::Mistake;

/// A group of the program's.
pub(crate) enum Group {
    /// All processes that the job began with.
    World(Mutex<MessageWorld>),
}

impl Group {
    /// What its members do together, for one thread at a time.
    pub(crate) fn together(&self) -> Result<MutexGuard<'_, MessageWorld>, Mistake> {
        let Self::World(world) = self;
        match world.try_lock() {
            Ok(world) => Ok(world),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {
                let text = "another thread is in a collective operation of this group: a member \
                            does one at a time";
                Err(Mistake::known(errors::BUSY, text))
            }
        }
    }
}
