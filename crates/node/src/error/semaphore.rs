//! Why a semaphore does not do what was asked.

use landeck_objects::semaphore::UNITS_MAX;

/// Why a semaphore does not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SemaphoreError {
    /// Somebody died that held units.
    #[error(
        "process {slot} (pid {pid}) is no more and held a unit of the semaphore: put right what it left half done, and call `recover`"
    )]
    OwnerDied {
        /// Its slot.
        slot: u32,
        /// Its process number, or that of who has its place now.
        pid: u32,
    },
    /// There would be more units than a semaphore can have.
    #[error("a semaphore has at most {UNITS_MAX} units: {units} more are too many")]
    TooManyUnits {
        /// How many were to be added.
        units: u32,
    },
    /// The memory of the semaphore is none.
    #[error("the memory under this name is no semaphore of this job: another version made it")]
    NotASemaphore,
}
