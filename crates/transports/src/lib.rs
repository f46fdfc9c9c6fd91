//! The real channels: one file per network.
//!
//! | module | network |
//! |---|---|
//! | [`shared_memory`] | the processes of one host, and those of other jobs on it |
//! | [`lanes`] | other hosts |
//!
//! [`wake_thread`] wakes a process that sleeps when something arrives on a socket.

pub mod lanes;
pub mod shared_memory;
pub mod wake_thread;

pub use lanes::Lanes;
pub use shared_memory::SharedMemory;
