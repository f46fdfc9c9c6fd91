//! This machine and its processes: how one is started and ended, its limits and processors, what its user is told.

pub mod budget;
pub mod cpu_set;
pub mod descendants;
pub mod detached;
pub mod environment;
pub mod figures;
pub mod file;
pub mod fork;
pub mod memory_groups;
pub mod message_stream;
pub mod placement;
pub mod private_directory;
pub mod probed;
pub mod process;
pub mod process_figures;
pub mod report;
pub mod say;
pub mod service;
pub mod signals;
pub mod standard_output;
pub mod start_signals;
pub mod topology;
