//! The threads of a process: what they share, how they wait in turn, and the one that helps them.

pub(crate) mod board_wait;
pub(crate) mod progress;
pub(crate) mod shared;
