//! A machine that stays: its launchers and commands, the processors of its jobs, and daemons that outlive their shells.

pub(crate) mod callers;
pub(crate) mod founder;
mod helper;
pub(crate) mod keeper;
mod listening;
mod load;
mod logout;
mod own_job;
pub(crate) mod returning;
pub(crate) mod standing;
pub(crate) mod ticket;
mod visitors;
