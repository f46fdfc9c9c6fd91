//! Why a mailbox does not do what was asked.

/// Why a mailbox refuses a call. Nothing is lost.
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
    /// The mailbox belongs to another job.
    #[error("the mailbox is one of another job: connect the jobs with a port first")]
    AnotherJob,
    /// No mailbox can have the address.
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
    /// The next message does not consist of values of the type.
    #[error(
        "the next message holds no plain values of type {asked}: retrieve it as a message, or as what was posted"
    )]
    OtherType {
        /// The type that was asked for.
        asked: &'static str,
    },
    /// No thread of the process receives between calls.
    #[error(
        "nobody receives while the program does not call: join with `Progress::Thread` to be told of messages"
    )]
    NoProgressThread,
    /// The system gives no descriptor or thread for announcements.
    #[error("there is no descriptor or thread to tell of messages with: {0}; raise the limits")]
    NoDescriptor(std::io::Error),
    /// All numbers for mailboxes are in use.
    #[error("this process has no number left for a mailbox: drop some")]
    TooMany,
}
