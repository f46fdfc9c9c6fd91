//! Processes of this machine as the kernel shows them, and its processors.

#[cfg(not(loom))]
pub mod fork;
#[cfg(not(loom))]
pub mod passing;
#[cfg(not(loom))]
pub mod process_memory;
#[cfg(not(loom))]
pub mod processors;
