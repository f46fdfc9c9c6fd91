//! What the membership is told, and what its driver is to do then.

use std::time::Duration;

use landeck_wire::{ProcessId, Slot};

use crate::record::Record;
use crate::restarts::Restart;

/// What happened.
#[derive(Clone, Copy, Debug)]
pub enum Input {
    /// The process of a reserved slot runs.
    Started {
        /// Its slot.
        slot: Slot,
        /// Its process number.
        pid: u32,
    },
    /// The process of a reserved slot cannot be started.
    NotStarted {
        /// Its slot.
        slot: Slot,
    },
    /// A process, or a guest, is no more.
    Ended {
        /// Its slot.
        slot: Slot,
        /// The raw wait status; zero where it is not known, as for guests.
        status: i32,
        /// How far it had come.
        presence: Presence,
    },
    /// The process of a slot that has joined is not the one that was started, but one below it.
    Found {
        /// Its slot.
        slot: Slot,
        /// Its process number.
        pid: u32,
    },
    /// A process was stopped.
    Stopped {
        /// Its slot.
        slot: Slot,
    },
    /// A stopped process goes on.
    Continued {
        /// Its slot.
        slot: Slot,
    },
    /// Somebody wants to join. [`Output::Admit`] or [`Output::Refuse`] answers.
    Asked {
        /// The driver's name for the question.
        request: u64,
        /// The reserved slot it is the process of; none for a guest.
        wanted: Option<Slot>,
        /// Its process number.
        pid: u32,
    },
    /// The job is to end: its processes are asked to, and killed after the grace time.
    End {
        /// Time between the two.
        grace: Duration,
    },
    /// The job's processes are to be killed.
    Kill,
    /// No process is started again from now on.
    NoRestarts,
    /// Time has passed.
    Tick,
}

/// How far a process had come with joining and leaving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It never joined.
    NotAttached,
    /// It joined, and said no goodbye.
    Attached,
    /// It said goodbye.
    Finalized,
    /// It ended the whole job, and itself.
    Aborted,
}

/// What the driver is to do, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Write this record where all can read it.
    SetRecord {
        /// Of this slot.
        slot: Slot,
        /// The whole record.
        record: Record,
    },
    /// Say everywhere that the job ends: waits end.
    SetEnding,
    /// Make everybody look at the records again.
    Announce,
    /// There is a new view; [`super::Membership::view`] is it.
    NewView,
    /// Ask the process of this slot, and what it started, to end.
    Terminate {
        /// The slot.
        slot: Slot,
    },
    /// Kill the process of this slot, and what is left of what it started.
    Kill {
        /// The slot.
        slot: Slot,
    },
    /// Let this one in.
    Admit {
        /// The driver's name for the question.
        request: u64,
        /// Who it is from now on.
        process: ProcessId,
    },
    /// Do not let this one in.
    Refuse {
        /// The driver's name for the question.
        request: u64,
        /// Why.
        why: Refusal,
    },
    /// The failed process of this slot will be started again.
    WillRestart {
        /// The slot that it had.
        slot: Slot,
        /// When, and how often it was before.
        restart: Restart,
    },
    /// Start the process of a rank again, in this slot.
    Start {
        /// The slot, which is reserved for it.
        slot: Slot,
        /// The rank that it was started as at first.
        rank: u32,
        /// Which new start it is: 1 is the first.
        number: u32,
    },
    /// The job ends because the guest of this slot has ended it.
    GuestAborted {
        /// The slot.
        slot: Slot,
    },
    /// No process of the job is left, and none will come.
    Over,
}

/// Why somebody may not join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Every slot has a living process, or is for one that is to come, or somebody may need what the
    /// last one left there.
    Full,
    /// The slot it wants is not one of the job's processes.
    NoSuchSlot,
    /// The slot it wants has, or had, its process.
    Taken,
    /// The job is ending.
    Ending,
}
