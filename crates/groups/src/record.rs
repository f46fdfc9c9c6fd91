//! What is known of a slot of a job: its state, and the process that has it or had it last.

use crate::restarts::Replaced;

/// What is known of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Its state.
    pub state: State,
    /// Which user of the slot is meant; zero before the first.
    pub incarnation: u32,
    /// The process number, while it lives and after.
    pub pid: u32,
    /// Whether it is stopped. A stopped process has not failed.
    pub stopped: bool,
    /// The raw wait status, once it is gone.
    pub status: i32,
    /// Whom it replaces, if it was started again.
    pub replaces: Option<Replaced>,
}

/// The state of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Nobody has had it yet.
    #[default]
    Free,
    /// Its process is to come.
    Reserved,
    /// Its process lives.
    Alive,
    /// Its process ended well.
    Departed,
    /// Its process failed.
    Dead,
}
