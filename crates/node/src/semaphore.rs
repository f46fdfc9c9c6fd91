//! Semaphores between the processes and threads of a job on one host.
//!
//! A unit that is taken is *held* until its [`Permit`] is dropped. If a process dies while it holds
//! units, every call that waits or begins to wait returns [`SemaphoreError::OwnerDied`]. A process
//! then repairs what the dead process may have left half done, and returns its units with
//! [`Semaphore::recover`].
//!
//! ```no_run
//! # fn main() -> landeck::Result<()> {
//! # let job = landeck::Job::join()?;
//! use landeck::{Error, ErrorKind, ObjectError, SemaphoreError};
//! let file = match job.create_semaphore("file", 1) {
//!     Err(Error { kind: ErrorKind::Object(ObjectError::Taken { .. }), .. }) => {
//!         job.open_semaphore("file")?
//!     }
//!     made => made?,
//! };
//! let permit = match file.take() {
//!     Err(Error { kind: ErrorKind::Semaphore(SemaphoreError::OwnerDied { .. }), .. }) => {
//!         // ... mend the file ...
//!         file.recover()?;
//!         file.take()?
//!     }
//!     taken => taken?,
//! };
//! // ... write to the file ...
//! drop(permit);
//! # Ok(()) }
//! ```
//!
//! A semaphore exists until its last user has dropped it or is gone, even if its creator is gone.

use std::sync::Arc;
use std::time::Duration;

use landeck_joining::objects::{self, Name, Object, ObjectKind, Use, map};
use landeck_kernel::Peer;
use landeck_memory::{GateError, Operation, SharedArea, WaitRecord, fork};
use landeck_objects::semaphore::{SemaphoreWords, Take, UNITS_MAX};
use landeck_wire::ProcessId;

pub use crate::error::SemaphoreError;
use crate::error::{self, Error, ErrorKind, Members, Result};
use crate::job::Job;
use crate::unstable::JobInternals;
use landeck_engine::{Shared, WaitError, deadline_ns};

/// A counting semaphore. A clone is another handle to it. The thread mode of the job determines
/// which threads may use it.
#[derive(Clone)]
pub struct Semaphore(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    words: SemaphoreWords,
    object: Use,
}

/// A unit that this process holds. Dropping it returns the unit to the semaphore.
#[must_use = "a unit that is not kept comes back at once"]
pub struct Permit<'a> {
    semaphore: &'a Semaphore,
}

impl Job {
    /// Creates a semaphore with `units` units under a name.
    ///
    /// # Errors
    /// [`ErrorKind::Object`]: the bytes are not a name, the name is taken, or the agent does not
    /// answer; [`SemaphoreError::TooManyUnits`].
    pub fn create_semaphore(&self, name: impl AsRef<[u8]>, units: u32) -> Result<Semaphore> {
        error::call(&self.shared, "create_semaphore", || {
            let name = Name::new(name).map_err(objects::ObjectError::from)?;
            self.new_semaphore(Some(&name), units)
        })
    }

    /// Creates a semaphore with `units` units without a name: other processes open it by its
    /// number.
    ///
    /// # Errors
    /// As [`Job::create_semaphore`].
    pub fn create_unnamed_semaphore(&self, units: u32) -> Result<Semaphore> {
        error::call(&self.shared, "create_unnamed_semaphore", || self.new_semaphore(None, units))
    }

    /// Opens the semaphore with this name.
    ///
    /// # Errors
    /// [`ErrorKind::Object`]: the bytes are not a name, no semaphore has the name, or the agent
    /// does not answer.
    pub fn open_semaphore(&self, name: impl AsRef<[u8]>) -> Result<Semaphore> {
        error::call(&self.shared, "open_semaphore", || {
            let name = Name::new(name).map_err(objects::ObjectError::from)?;
            let process = self.process();
            Semaphore::of(&self.shared, process, self.open_memory(ObjectKind::Semaphore, &name)?)
        })
    }

    /// Opens the semaphore with this number, which the process received, for example, in a message.
    ///
    /// # Errors
    /// [`ErrorKind::Object`]: the semaphore is gone, or the agent does not answer.
    pub fn open_semaphore_by_number(&self, number: u64) -> Result<Semaphore> {
        error::call(&self.shared, "open_semaphore_by_number", || {
            let process = self.process();
            let opened = objects::open_number(process, ObjectKind::Semaphore, number)?;
            Semaphore::of(&self.shared, process, opened)
        })
    }

    fn new_semaphore(&self, name: Option<&Name>, units: u32) -> Result<Semaphore> {
        if units > UNITS_MAX {
            return Err(SemaphoreError::TooManyUnits { units }.into());
        }
        let process = self.process();
        let (bytes, words) = (SemaphoreWords::bytes(self.segment()), [u64::from(units), 0]);
        let made = objects::make(process, ObjectKind::Semaphore, name, bytes, words)?;
        Semaphore::of(&self.shared, process, made)
    }
}

impl Semaphore {
    fn of(
        shared: &Arc<Shared>,
        process: ProcessId,
        (object, file): (Object, std::os::fd::OwnedFd),
    ) -> Result<Self> {
        let used = Use::new(process, ObjectKind::Semaphore, object.number);
        let area: SharedArea = map(&file, &object)?;
        let words = SemaphoreWords::open(area, &shared.segment, shared.slot, object.words[0]);
        let words = words.ok_or(SemaphoreError::NotASemaphore)?;
        Ok(Self(Arc::new(Inner { shared: shared.clone(), words, object: used })))
    }

    /// Returns the number by which other processes open it. The number may be sent in a message,
    /// and is never reused.
    pub fn number(&self) -> u64 {
        self.0.object.number()
    }

    /// Returns the number of free units, which may change at any moment.
    pub fn units(&self) -> u32 {
        self.0.words.units()
    }

    /// Waits until a unit is free, and takes it.
    ///
    /// # Errors
    /// [`SemaphoreError::OwnerDied`], [`ErrorKind::Ended`], [`ErrorKind::Thread`].
    pub fn take(&self) -> Result<Permit<'_>> {
        self.take_until(None)
    }

    /// Takes a unit as [`Semaphore::take`] does, waiting for at most `time`.
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`], and as [`Semaphore::take`].
    pub fn take_within(&self, time: Duration) -> Result<Permit<'_>> {
        self.take_until(Some(time))
    }

    /// Takes a unit if one is free; returns `None` otherwise.
    ///
    /// # Errors
    /// [`SemaphoreError::OwnerDied`] when no unit is free and a dead process holds one, or when
    /// this process has the slot of a dead holder; [`ErrorKind::Thread`].
    pub fn try_take(&self) -> Result<Option<Permit<'_>>> {
        error::call(&self.0.shared, "take", || {
            let words = self.words()?;
            match words.try_take() {
                Take::Taken => Ok(Some(Permit { semaphore: self })),
                Take::OwnerDied { slot } => Err(self.owner_died(slot)),
                Take::Empty => match words.dead_holder() {
                    Some(slot) => Err(self.owner_died(slot)),
                    None => Ok(None),
                },
            }
        })
    }

    /// Adds units to the semaphore, as a producer does; the calling process need not hold any.
    ///
    /// # Errors
    /// [`SemaphoreError::TooManyUnits`], [`ErrorKind::Thread`].
    pub fn give(&self, units: u32) -> Result<()> {
        match self.words()?.give(units) {
            true => Ok(()),
            false => Err(SemaphoreError::TooManyUnits { units }.into()),
        }
    }

    /// Returns a unit that this process holds by [`Permit::keep`] to the semaphore; false if it
    /// holds none.
    pub fn put_back(&self) -> bool {
        self.release(true)
    }

    /// Consumes a unit that this process holds by [`Permit::keep`]: it does not return to the
    /// semaphore. False if this process holds none.
    pub fn use_up(&self) -> bool {
        self.release(false)
    }

    /// Returns the units of dead processes to the semaphore, and returns their number.
    ///
    /// # Errors
    /// [`ErrorKind::Thread`].
    pub fn recover(&self) -> Result<u32> {
        Ok(self.words()?.recover())
    }

    /// The shared words, for every call that changes them. It refuses a child made by fork, which
    /// would change them in its parent's name.
    fn words(&self) -> Result<&SemaphoreWords> {
        GateError::refuse_children()?;
        Ok(&self.0.words)
    }

    /// Releases a unit; false if this process holds none, as a child made by fork does not.
    fn release(&self, comes_back: bool) -> bool {
        !fork::is_child() && self.0.words.release(comes_back)
    }

    fn take_until(&self, time: Option<Duration>) -> Result<Permit<'_>> {
        error::call(&self.0.shared, "take", || {
            let words = self.words()?;
            if words.try_take() == Take::Taken {
                return Ok(Permit { semaphore: self });
            }
            words.waits(true);
            let taken = self.wait(time);
            words.waits(false);
            match taken {
                Ok(Take::Taken) => Ok(Permit { semaphore: self }),
                Ok(Take::OwnerDied { slot }) => Err(self.owner_died(slot)),
                // A wait ends with something.
                Ok(Take::Empty) => Err(ErrorKind::WouldBlock.into()),
                Err(error) => Err(Error::of_wait(&self.0.shared, error, time, Members::OF_JOB)),
            }
        })
    }

    fn wait(&self, time: Option<Duration>) -> std::result::Result<Take, WaitError> {
        let Inner { shared, words, .. } = &*self.0;
        let record = WaitRecord { operation: Operation::Semaphore, ..WaitRecord::default() };
        let mut generation = None;
        shared.wait_until(&record, deadline_ns(time), |_| match words.try_take() {
            Take::Empty => {
                // Who is dead is worth a look when somebody has died.
                let now = shared.segment.membership_generation();
                let is_new = generation.replace(now) != Some(now);
                let dead = is_new.then(|| words.dead_holder()).flatten();
                dead.map(|slot| Take::OwnerDied { slot })
            }
            took => Some(took),
        })
    }

    #[cold]
    fn owner_died(&self, slot: u32) -> Error {
        let who = Members::OF_JOB.process(Peer(slot), &self.0.shared.segment);
        SemaphoreError::OwnerDied { slot, who }.into()
    }
}

impl Permit<'_> {
    /// Keeps the unit without this permit, until [`Semaphore::put_back`] or the end of the process.
    pub fn keep(self) {
        std::mem::forget(self);
    }

    /// Consumes the unit, as a consumer does: it does not return to the semaphore.
    pub fn spend(self) {
        self.semaphore.release(false);
        std::mem::forget(self);
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.semaphore.release(true);
    }
}

impl std::fmt::Debug for Semaphore {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let number = self.number();
        formatter.debug_struct("Semaphore").field("number", &number).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Permit<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Permit").field("semaphore", self.semaphore).finish()
    }
}
