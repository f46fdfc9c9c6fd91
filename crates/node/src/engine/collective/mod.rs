//! Collective operations: plans of [`landeck_collectives`], driven over the kernel.
//!
//! | module | what |
//! |---|---|
//! | [`operations`] | the endpoint with all operations that go on: messages and collectives; the groups of a process: how one comes to be, agrees, is revoked and is forgotten |
//! | [`group`] | what a process knows of a group for its collective operations |
//! | [`groups`] | all of its groups |
//! | [`place`] | who takes part, and where their messages go |
//! | [`holdings`] | the memory that a group is made of |
//! | [`plans`] | plans that were made, kept |
//! | [`call`] | what any front asks for |
//! | [`calls`] | the same for memory in one piece |
//! | [`binding`] | where the blocks of a plan's stores lie in memory |
//! | [`running`] | one operation on its way |
//! | [`brief`] | one operation with short data at the board |
//! | [`visit`] | one operation over the board of a host |
//! | [`board`] | what the board's steps of a plan do |
//! | [`hands`] | what a member brings to its board |
//! | [`beside`] | blocks too long for the board, which go as messages beside it |
//! | [`check`] | what members compare in checking mode |
//! | [`value_type`] | the type of a call's values, as a number |
//! | [`entry_check`] | all have come for the same, before a checked operation |
//! | [`combine`] | combining data wherever they lie |
//! | [`table`] | the operations that go on |
//! | [`fault`] | why one did not end well |
//! | [`wait_error`] | how a wait for one went wrong |
//! | [`mismatch`] | members that called different operations |

pub(crate) mod binding;
pub(crate) mod board;
pub(crate) mod board_call;
pub(crate) mod call;
mod call_buffers;
pub(crate) mod calls;
pub(crate) mod check;
mod combine;
mod entry_check;
pub(crate) mod fault;
pub(crate) mod group_state;
mod group_table;
mod holdings;
pub(crate) mod inline;
pub(crate) mod mismatch;
pub(crate) mod operations;
mod oversize;
mod place;
mod plans;
mod running;
pub(crate) mod scan_scope;
mod table;
pub(crate) mod value_type;
mod wait_error;

pub(crate) use fault::Fault;
pub(crate) use operations::Engine;
pub use operations::OperationId;
pub(crate) use wait_error::WaitError;
