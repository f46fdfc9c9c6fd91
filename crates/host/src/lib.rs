//! What launcher and daemon share: process start, guardian, output, signals, joining.

pub mod cpu_set;
pub mod process;
