//! The verdict of an answer.

use serde::{Deserialize, Serialize};

/// The number of names that a job may publish at a time.
pub const NAMES_MAX: usize = 256;

/// The number of named mailboxes, segments, semaphores and groups that a job may have at a time.
pub const KEPT_MAX: usize = 4096;

/// The verdict on a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Verdict {
    /// The request was granted.
    #[error("granted")]
    Granted,
    /// No slot is free.
    #[error("it has as many guests as it can take; wait until one leaves")]
    Full,
    /// The wanted slot does not belong to the job's processes.
    #[error("it has no process of that number")]
    NoSuchSlot,
    /// The wanted slot has its process.
    #[error("its process of that number has joined already")]
    Taken,
    /// The job is ending.
    #[error("it is ending")]
    Ending,
    /// The asking process is not a living one of the job.
    #[error("the asking process is not a living one of this job")]
    NotAlive,
    /// Another process has the name.
    #[error("another process has the name")]
    InUse,
    /// The job has reached one of its limits.
    #[error(
        "the job has reached its limit of connections, of published names ({NAMES_MAX}), or of named mailboxes, segments, semaphores and groups ({KEPT_MAX}); take some back"
    )]
    TooMany,
    /// The question is invalid there.
    #[error("it does not understand the question; use the same version of Landeck on both sides")]
    Senseless,
    /// There is no such object.
    #[error("there is no such object")]
    Unknown,
    /// There is no memory for the object.
    #[error("there is no memory for it; make it smaller, or raise the limits of the job")]
    NoMemory,
}
