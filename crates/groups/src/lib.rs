//! Which processes belong together, which others they let in, and what members that may die agree on:
//! views, membership, the door, agreement, flood and the group service as pure machines. Time is an argument, and what a machine wants
//! done it says; it does nothing itself.

#![forbid(unsafe_code)]

pub mod agreement;
pub mod door;
pub mod flood;
pub mod membership;
mod record;
pub mod restarts;
pub mod service;
pub mod view;
