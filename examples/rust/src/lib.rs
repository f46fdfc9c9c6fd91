//! The parts of the example programs. The programs themselves, in `src/bin`, are short and
//! best read first.
//!
//! | module | what |
//! |---|---|
//! | [`heat`] | the heat equation: plate, blocks, halo exchange, picture |
//! | [`nsection`] | root finding: functions, intervals, the exchange of what was found |
//! | [`program`] | how every example starts and ends: options, messages, exit codes |
//! | [`gather`] | one value of every process, at rank 0 |
//! | [`progress`] | how far a program is, on a terminal or in a file |
//! | [`summary`] | what a run has cost: messages, bytes, time waiting |
#![forbid(unsafe_code)]

pub mod gather;
pub mod heat;
pub mod nsection;
pub mod program;
pub mod progress;
pub mod summary;

#[cfg(doctest)]
mod book;
