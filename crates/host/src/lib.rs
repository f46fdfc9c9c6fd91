//! What launcher and daemon share: process start, guardian, output, signals, joining.

pub mod control_groups;
pub mod cpu_set;
pub mod inherited;
pub mod placement;
pub mod pmi;
pub mod process;
pub mod topology;
