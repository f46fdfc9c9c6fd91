//! A machine that stays: its launchers and commands, the processors of its jobs, and daemons that outlive their shells.

pub(crate) mod callers;
pub(crate) mod detached;
mod founder;
mod load;
mod logout;
pub(crate) mod standing;
