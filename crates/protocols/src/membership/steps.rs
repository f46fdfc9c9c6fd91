//! The events of the membership, and the actions of its driver.

use std::time::Duration;

use landeck_wire::{ProcessId, Slot};
use serde::{Deserialize, Serialize};

use crate::record::Record;
use crate::restarts::Restart;

/// An event for the membership.
#[derive(Clone, Copy, Debug)]
pub enum Input {
    /// The process of a reserved slot runs.
    Started {
        /// Its slot.
        slot: Slot,
        /// Its PID.
        pid: u32,
    },
    /// The process of a reserved slot cannot be started.
    NotStarted {
        /// Its slot.
        slot: Slot,
    },
    /// A process or a guest has ended.
    Ended {
        /// Its slot.
        slot: Slot,
        /// The raw wait status; zero if it is not known, as for guests.
        status: i32,
        /// The word that it wrote about itself.
        presence: LastPresence,
    },
    /// A process has said goodbye, and runs on.
    Left {
        /// Its slot.
        slot: Slot,
    },
    /// A process that had left takes part again.
    Returned {
        /// Its slot.
        slot: Slot,
    },
    /// The process that joined in a slot is not the one that was started, but one below it.
    Found {
        /// Its slot.
        slot: Slot,
        /// Its PID.
        pid: u32,
    },
    /// A process was stopped.
    Stopped {
        /// Its slot.
        slot: Slot,
    },
    /// A stopped process continues.
    Continued {
        /// Its slot.
        slot: Slot,
    },
    /// A process wants to join. [`Output::Admit`] or [`Output::Refuse`] answers.
    Asked {
        /// The driver's number for the question.
        request: u64,
        /// The reserved slot of the process; `None` for a guest.
        wanted: Option<Slot>,
        /// Its PID.
        pid: u32,
    },
    /// One more process of the job is to be started. [`Output::Start`] with the number 0, or [`Output::NotAdded`] answers.
    Add {
        /// Its number: no rank of this host, and that of no process that lives.
        rank: u32,
    },
    /// The job here ends with its last process from now on ([`super::MembershipPlan::is_held`]).
    Release,
    /// The job is to end: its processes are asked to end, and killed after the grace time.
    End {
        /// The time between the two.
        grace: Duration,
    },
    /// The job's processes are to be killed.
    Kill,
    /// No process is started again from now on.
    NoRestarts,
    /// Time has passed.
    Tick,
}

/// How far a process has come with joining and leaving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastPresence {
    /// It never joined.
    NotAttached,
    /// It joined, and has not said goodbye.
    Attached,
    /// It said goodbye.
    Finalized,
    /// It ended the whole job, and itself.
    Aborted,
}

/// An action for the driver, which carries out all in the given order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Write this record where all can read it.
    SetRecord {
        /// The slot.
        slot: Slot,
        /// The whole record.
        record: Record,
    },
    /// Say everywhere that the job ends, so that waits end.
    SetEnding,
    /// Make all processes look at the records again.
    Announce,
    /// A new view exists: [`super::Membership::view`].
    NewView,
    /// Ask the process of this slot and its children to end.
    Terminate {
        /// The slot.
        slot: Slot,
    },
    /// Kill the process of this slot and what is left of its children.
    Kill {
        /// The slot.
        slot: Slot,
    },
    /// Admit the process that asked.
    Admit {
        /// The driver's number for the question.
        request: u64,
        /// Its identity from now on.
        process: ProcessId,
    },
    /// Refuse the process that asked.
    Refuse {
        /// The driver's number for the question.
        request: u64,
        /// The reason.
        why: Refusal,
    },
    /// The failed process of this slot will be started again.
    WillRestart {
        /// The slot that it had.
        slot: Slot,
        /// When it is started again, and the number of that restart.
        restart: Restart,
    },
    /// Start the process of a rank again, in this slot, or one more process.
    Start {
        /// The slot, which is reserved for it.
        slot: Slot,
        /// The rank as which it was first started, or the number of the added process.
        rank: u32,
        /// The number of the restart: 1 is the first, and 0 an added process.
        number: u32,
    },
    /// There is no slot for one more process.
    NotAdded {
        /// Its number.
        rank: u32,
        /// The reason.
        why: Refusal,
    },
    /// The job ends because the guest of this slot has ended it.
    GuestAborted {
        /// The slot.
        slot: Slot,
    },
    /// No process of the job is left, and none will come.
    Over,
}

/// The reason why a process may not join.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// Every slot has a living process, is reserved, or has contents that other processes may need.
    Full,
    /// The wanted slot does not belong to the job's processes.
    NoSuchSlot,
    /// The wanted slot has or had its process.
    Taken,
    /// The job is ending.
    Ending,
}
