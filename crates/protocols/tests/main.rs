//! The pure machines in simulated groups.

mod agreement;
mod door;
mod membership;
mod service;
