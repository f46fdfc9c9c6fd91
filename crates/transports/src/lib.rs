//! The real channels: one file per network.
//!
//! | module | network |
//! |---|---|
//! | [`shared_memory`] | the processes of one host, and those of other jobs on it |
//! | [`tcp`] | other hosts |
//!
//! [`wake_thread`] wakes a process that sleeps when something arrives on a socket.

pub mod shared_memory;
pub mod tcp;
pub mod wake_thread;

pub use shared_memory::SharedMemory;
