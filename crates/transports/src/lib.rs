//! The real channels: one file per network.
//!
//! | module | network |
//! |---|---|
//! | [`shared_memory`] | the processes of one host, and those of other jobs on it |
//! | [`tcp`] | other hosts |

pub mod shared_memory;
pub mod tcp;

pub use shared_memory::SharedMemory;
