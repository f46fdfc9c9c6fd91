//! What launcher and daemon share: process start, guardian, output, signals, joining.

pub mod agent;
pub mod agent_thread;
pub mod attach;
pub mod budget;
pub mod cpu_set;
pub mod descendants;
pub mod environment;
pub mod guardian;
pub mod inherited;
pub mod input;
mod job;
pub mod launch;
pub mod memory_groups;
pub mod output;
pub mod placement;
pub mod plan;
pub mod pmi;
pub mod process;
pub mod program;
pub mod report;
pub mod signals;
pub mod socket;
pub mod stacks;
mod terminal;
pub mod tie;
pub mod topology;
mod watch;
