//! The record of a slot of a job: its state, and the process that has it or had it last.

use crate::restarts::ReplacedProcess;

/// The record of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Its state.
    pub state: State,
    /// The incarnation: how often the slot was given away; zero before the first time.
    pub incarnation: u32,
    /// The PID, while it lives and after.
    pub pid: u32,
    /// Whether it is stopped. A stopped process has not failed.
    pub stopped: bool,
    /// The raw wait status, once it has ended.
    pub status: i32,
    /// The process that it replaces, if it was started again.
    pub replaces: Option<ReplacedProcess>,
    /// How often a process that had left came back to its slot. Each time is an incarnation of its own.
    pub returns: u32,
}

/// The state of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// No process has had it yet.
    #[default]
    Free,
    /// It waits for its process.
    Reserved,
    /// Its process lives.
    Alive,
    /// Its process has left, and runs on. It may come back.
    Left,
    /// Its process ended well.
    Departed,
    /// Its process failed.
    Dead,
}
