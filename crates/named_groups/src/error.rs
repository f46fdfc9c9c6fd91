//! Why a call to a named group fails.

use std::time::Duration;

use landeck_engine::WaitError;
use landeck_joining::objects::ObjectError;
use landeck_memory::{GateError, NoMemory};

use crate::GroupError;
use crate::time_limit::TimeLimit;

/// The result of a call to a named group.
pub type Result<T> = std::result::Result<T, ServiceError>;

/// Why a call to a named group fails. The faces turn each cause into an error kind of their own.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The group refuses the call.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// The agent refuses a name or memory.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// The process has no memory left.
    #[error(transparent)]
    NoMemory(#[from] NoMemory),
    /// The thread may not call.
    #[error(transparent)]
    Thread(#[from] GateError),
    /// The time given has passed.
    #[error("the call did not complete within {0:?}")]
    TimedOut(Duration),
    /// The job is being ended.
    #[error("the job is being ended")]
    Ended,
    /// A call that may not wait would have to.
    #[error("the call would have to wait")]
    WouldBlock,
    /// The wait ended although nothing that it waited for has happened.
    #[error("the wait was given up")]
    WaitGivenUp,
}

impl ServiceError {
    /// The error of a wait under a time limit. A wait of a group has no request, so no request of it fails.
    pub(crate) fn of_wait(error: WaitError, limit: TimeLimit) -> Self {
        match error {
            WaitError::TimedOut => Self::TimedOut(limit.time()),
            WaitError::Ended => Self::Ended,
            WaitError::Gate(error) => error.into(),
            WaitError::Failure(_) | WaitError::Collective(_) => Self::WaitGivenUp,
        }
    }
}
