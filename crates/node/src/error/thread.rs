//! The errors of threads.

use std::io;

/// The longest name of a thread that the system shows, in bytes.
pub const THREAD_NAME_BYTES_MAX: usize = 15;

/// The reason why a thread was not started, or ended without a result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ThreadError {
    /// The text cannot be the name of a thread.
    #[error(
        "\"{}\" cannot be the name of a thread: use 1 to {THREAD_NAME_BYTES_MAX} bytes without control characters", name.escape_debug()
    )]
    Name {
        /// The text.
        name: String,
    },
    /// The limit on running threads is reached.
    #[error(
        "thread \"{name}\" would exceed the limit of {most} threads: join one, or raise the limit"
    )]
    TooMany {
        /// Its name.
        name: String,
        /// The limit.
        most: usize,
    },
    /// The system did not start the thread.
    #[error(
        "the system did not start thread \"{name}\": {source}; allow more (ulimit -u, the limits of the control group), or use fewer"
    )]
    System {
        /// Its name.
        name: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The thread panicked.
    #[error("thread \"{name}\" has panicked: {message}")]
    Panicked {
        /// Its name.
        name: String,
        /// The message of the panic.
        message: String,
    },
}
