//! The errors of mailboxes.

/// The reason why a mailbox refused a call. No message is lost.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MailboxError {
    /// The owner has dropped the mailbox.
    #[error("the mailbox is gone: {who} has destroyed it; ask for the address of another")]
    Gone {
        /// Its owner, in words.
        who: String,
    },
    /// The owner, on another host, has dropped the mailbox.
    #[error("the mailbox is gone: {who} has destroyed it; ask for the address of another")]
    GoneElsewhere {
        /// Its owner, in words.
        who: String,
        /// The owner's host.
        host: String,
    },
    /// The owner is a guest of the job on another host, and only its ranks are reached there.
    #[error(
        "the owner is a guest of the job on {host}, and from another host only ranks are reached: post to a rank there"
    )]
    GuestElsewhere {
        /// The owner's host.
        host: String,
    },
    /// The mailbox belongs to another job.
    #[error("the mailbox belongs to another job: connect the jobs with a port first")]
    AnotherJob,
    /// The address is not the address of a mailbox.
    #[error("this is not the address of a mailbox: take it from a mailbox, a message or a name")]
    NoAddress,
    /// The next message is longer than the buffer for its values.
    #[error(
        "the next message has {message_bytes} bytes, there is room for {buffer_bytes}: retrieve it into more values, or as a message"
    )]
    TooLong {
        /// Bytes of the message.
        message_bytes: u64,
        /// Bytes of the buffer.
        buffer_bytes: usize,
    },
    /// The next message does not consist of values of this type.
    #[error(
        "the next message holds no plain values of type {asked}: retrieve it as a message, or as what was posted"
    )]
    OtherType {
        /// The type that was asked for.
        asked: &'static str,
    },
    /// No thread of the process receives between calls.
    #[error(
        "no thread of the process receives between its calls: join with `Progress::Thread` to be told of messages"
    )]
    NoProgressThread,
    /// The system provides no descriptor or thread for announcements.
    #[error(
        "the system provides no descriptor or thread to announce messages: {0}; raise the limits"
    )]
    NoDescriptor(std::io::Error),
    /// All numbers for mailboxes are in use.
    #[error("this process has no number left for another mailbox: drop some")]
    TooMany,
}
