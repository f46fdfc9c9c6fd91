//! One way to wait for what others write, and turns among the threads of a process.

pub(crate) mod biased_lock;
#[cfg(not(loom))]
pub mod gate;
#[cfg(not(loom))]
pub(crate) mod ladder;
pub(crate) mod lock;
#[cfg(not(loom))]
pub(crate) mod placement;
#[cfg(not(loom))]
pub mod scheduler_order;
#[cfg(not(loom))]
pub mod waiter;
