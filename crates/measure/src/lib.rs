//! Tools of all measurements: the clock, threads on processors of their own, a line that goes to and fro between two of
//! them, memory that begins with a page, and the median of what was found.
//!
//! The launcher's probe, `landeck tune`, `landeck simulate --measured` and the benchmark measure with it. Times are in
//! picoseconds: a copy of 1 KiB takes some ten thousand of them.

#![forbid(unsafe_code)]

pub mod clock;
pub mod line;
mod middle;
mod paged;
pub mod processors;

pub use middle::{Middle, least, mean, median};
pub use paged::{PAGE_BYTES, Paged};
