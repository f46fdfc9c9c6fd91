//! Why a mailbox does not do what was asked.

/// Why a mailbox does not do what was asked. Nothing is lost.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MailboxError {
    /// The owner has dropped the mailbox.
    #[error(
        "the mailbox is gone: process {slot} (pid {pid}) has destroyed it; ask for the address of another"
    )]
    Gone {
        /// The slot of its owner.
        slot: u32,
        /// The owner's process number.
        pid: u32,
    },
    /// It belongs to another job.
    #[error("the mailbox is one of another job: connect the jobs with a port first")]
    AnotherJob,
    /// The address is none that a mailbox can have.
    #[error("this is no address of a mailbox: take it from a mailbox, a message or a name")]
    NoAddress,
    /// The next message is longer than the values that it is retrieved into.
    #[error(
        "the next message has {message_bytes} bytes, there is room for {buffer_bytes}: retrieve it into more values, or as a message"
    )]
    TooLong {
        /// Bytes of the message.
        message_bytes: u64,
        /// Bytes of the values.
        buffer_bytes: usize,
    },
    /// The next message is no values of one type, or of another.
    #[error(
        "the next message holds no plain values of type {asked}: retrieve it as a message, or as what was posted"
    )]
    OtherType {
        /// The type that was asked for.
        asked: &'static str,
    },
    /// Nobody would tell of what comes.
    #[error(
        "nobody receives while the program does not call: join with `Progress::Thread` to be told of messages"
    )]
    NoProgressThread,
    /// The system gives no descriptor or thread to tell with.
    #[error("there is no descriptor or thread to tell of messages with: {0}; raise the limits")]
    NoDescriptor(std::io::Error),
    /// All numbers for mailboxes are in use.
    #[error("this process has no number left for a mailbox: drop some")]
    TooMany,
}
