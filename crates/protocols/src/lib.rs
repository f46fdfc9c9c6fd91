//! Views, membership, the door, agreement, flood, the group service, several hosts with their voters and with ordered groups
//! over them, as pure state machines. They decide which processes belong together, which others are admitted, and what members
//! that may die agree on. Time is an argument, and a machine returns its actions instead of performing them.

#![forbid(unsafe_code)]

pub mod agreement;
pub mod door;
mod dropped;
pub mod flood;
pub mod hosts;
pub mod membership;
pub mod order;
mod record;
pub mod restarts;
pub mod service;
pub mod view;
pub mod voters;

pub use dropped::DroppedMessages;
