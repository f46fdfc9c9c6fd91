//! The errors of semaphores.

use landeck_objects::semaphore::UNITS_MAX;

/// The reason why a semaphore refused a call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SemaphoreError {
    /// A process died while it held units.
    #[error(
        "{who} is gone and held a unit of the semaphore: repair what it left half done, and call `recover`"
    )]
    OwnerDied {
        /// The slot of that process.
        slot: u32,
        /// That process in words, with the process number of the one that has its slot now.
        who: String,
    },
    /// There would be more units than a semaphore can have.
    #[error("a semaphore has at most {UNITS_MAX} units: {units} more are too many")]
    TooManyUnits {
        /// The number of units that the call would have added.
        units: u32,
    },
    /// The memory under this name is not a semaphore of this job.
    #[error("the memory under this name is not a semaphore of this job: another version made it")]
    NotASemaphore,
}
