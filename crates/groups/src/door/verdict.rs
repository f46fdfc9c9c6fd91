//! The verdict of an answer, in one byte.

/// The number of names that a job may publish at a time.
pub const NAMES_MAX: usize = 256;

/// The number of named mailboxes, segments, semaphores and groups that a job may have at a time.
pub const KEPT_MAX: usize = 4096;

/// The verdict on a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[repr(u8)]
pub enum Verdict {
    /// The request was granted.
    #[error("granted")]
    Granted = 0,
    /// No slot is free.
    #[error("it has as many guests as it can take; wait until one leaves")]
    Full = 1,
    /// The wanted slot does not belong to the job's processes.
    #[error("it has no process of that number")]
    NoSuchSlot = 2,
    /// The wanted slot has its process.
    #[error("its process of that number has joined already")]
    Taken = 3,
    /// The job is ending.
    #[error("it is ending")]
    Ending = 4,
    /// The asking process is not a living one of the job.
    #[error("the asking process is not a living one of this job")]
    NotAlive = 5,
    /// Another process has the name.
    #[error("another process has the name")]
    InUse = 6,
    /// The job has reached one of its limits.
    #[error(
        "the job has reached its limit of connections, of published names ({NAMES_MAX}), or of named mailboxes, segments, semaphores and groups ({KEPT_MAX}); take some back"
    )]
    TooMany = 7,
    /// The question is invalid there.
    #[error("it does not understand the question; use the same version of Landeck on both sides")]
    Senseless = 8,
    /// There is no such object.
    #[error("there is no such object")]
    Unknown = 9,
    /// There is no memory for the object.
    #[error("there is no memory for it; make it smaller, or raise the limits of the job")]
    NoMemory = 10,
}

impl Verdict {
    /// All verdicts.
    pub const ALL: [Self; 11] = [
        Self::Granted,
        Self::Full,
        Self::NoSuchSlot,
        Self::Taken,
        Self::Ending,
        Self::NotAlive,
        Self::InUse,
        Self::TooMany,
        Self::Senseless,
        Self::Unknown,
        Self::NoMemory,
    ];

    /// The verdict of this byte.
    pub(super) fn from_bits(bits: u8) -> Option<Self> {
        Self::ALL.get(usize::from(bits)).copied()
    }
}
