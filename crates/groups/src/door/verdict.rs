//! The answer to a question in one byte.

/// Names that a job may publish at a time.
pub const NAMES_MAX: usize = 256;

/// Mailboxes with names, segments, semaphores and groups that a job may have at a time.
pub const KEPT_MAX: usize = 4096;

/// The short form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[repr(u8)]
pub enum Verdict {
    /// Yes.
    #[error("granted")]
    Granted = 0,
    /// No slot is free.
    #[error("it has as many guests as it can take; wait until one leaves")]
    Full = 1,
    /// The wanted slot is not one of the job's.
    #[error("it has no process of that number")]
    NoSuchSlot = 2,
    /// The wanted slot has its process.
    #[error("its process of that number has joined already")]
    Taken = 3,
    /// The job ends.
    #[error("it is ending")]
    Ending = 4,
    /// The process that asks is none of the job's living ones.
    #[error("the process that asks is none of the job's living ones")]
    NotAlive = 5,
    /// The name is somebody else's.
    #[error("the name is another process's")]
    InUse = 6,
    /// The job has published all it can.
    #[error(
        "the job has as many as it can of connections, of published names ({NAMES_MAX}), or of mailboxes with names, segments, semaphores and groups ({KEPT_MAX}); take some back"
    )]
    TooMany = 7,
    /// The question has no sense there.
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
    /// All of them.
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

    /// The verdict that this byte stands for.
    pub(super) fn from_bits(bits: u8) -> Option<Self> {
        Self::ALL.get(usize::from(bits)).copied()
    }
}
