//! Why there is no thread, or nothing of it.

use std::io;

/// Most bytes of a thread's name, which the system shows.
pub const THREAD_NAME_BYTES_MAX: usize = 15;

/// Why there is no thread, or nothing of it.
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
    /// There are as many as there may be.
    #[error(
        "thread \"{name}\" would be one more than the {most} there may be: join one, or raise the limit"
    )]
    TooMany {
        /// Its name.
        name: String,
        /// How many there may be.
        most: usize,
    },
    /// The system gives none.
    #[error(
        "the system gives no thread \"{name}\": {source}; allow more (ulimit -u, the limits of the control group), or use fewer"
    )]
    System {
        /// Its name.
        name: String,
        /// What the system says.
        source: io::Error,
    },
    /// It has panicked.
    #[error("thread \"{name}\" has panicked: {message}")]
    Panicked {
        /// Its name.
        name: String,
        /// What it said.
        message: String,
    },
}
