//! How a wait for an operation went wrong.

use landeck_kernel::Failure;
use landeck_memory::GateError;

use crate::Fault;

/// How a wait for a request went wrong.
#[derive(Debug)]
pub enum WaitError {
    /// The request failed, or cannot complete.
    Failure(Failure),
    /// The collective operation did not end well.
    Collective(Fault),
    /// The deadline passed; the request goes on.
    TimedOut,
    /// The job is being ended.
    Ended,
    /// The thread may not call.
    Gate(GateError),
}

impl From<GateError> for WaitError {
    fn from(error: GateError) -> Self {
        Self::Gate(error)
    }
}

/// The end of a call. A failure has memory of its own, so that the answer is one word: one that was written to
/// memory would be copied at each step back to the caller.
pub(crate) type Ended = Result<(), Box<WaitError>>;
