//! The messages of jobs between daemons. A job's conductor is the daemon on its launcher's host.

use landeck_launch::messages::{PartCommand, PartEvent, PartRefusal};
use landeck_launch::spec::{HostLink, HostSpec, JobSpec};
use landeck_protocols::hosts::LinkSight;
use landeck_wire::{ControlMessage, HostNumber, JobId, ProcessId, SegmentId};
use serde::{Deserialize, Serialize};

use crate::figures::OwnFigures;
use crate::links::MeasuringSecret;
use crate::trunks::envelope::CONTENT_BYTES_MAX;

/// A message of a job between two daemons.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct JobMessage {
    /// The job.
    pub(crate) job: JobId,
    /// Its content.
    pub(crate) content: JobContent,
}

/// The content of a message of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum JobContent {
    /// From the conductor: say whether this part of the job is possible.
    Check(Box<JobSpec>),
    /// The answer, with what ways depend on at this host.
    Checked(Result<OwnFigures, PartRefusal>),
    /// From the conductor: measure the links between these hosts.
    Measure {
        /// The secret of all of them.
        secret: MeasuringSecret,
        /// The hosts.
        hosts: Vec<HostNumber>,
    },
    /// The answer: the findings of this host about others.
    Measured(Vec<(HostNumber, LinkSight)>),
    /// From the conductor: make everything that the part needs, and start nothing.
    Prepare {
        /// The settings of all processes.
        settings: Vec<u64>,
        /// The links that were measured.
        links: Vec<HostLink>,
        /// Whether hosts of the job share processors.
        shares_processors: bool,
    },
    /// The answer.
    Prepared(Result<(), PartRefusal>),
    /// From the conductor: start the processes.
    Start,
    /// From the conductor: give the guests of this host, which is added to the job, their places.
    AddHost(HostSpec),
    /// The answer.
    HostAdded {
        /// The segment of the host that is added.
        segment: SegmentId,
        /// The processes that this host has in slots for guests, each with whether it is a guest.
        guests: Vec<(ProcessId, bool)>,
    },
    /// From the conductor to a host that is added: the processes that have come in slots for guests on all others.
    Meet(Vec<(ProcessId, bool)>),
    /// From the conductor: the job is impossible, so forget what was checked or prepared.
    Dismiss,
    /// The guardian was not started.
    NotStarted(PartRefusal),
    /// From the conductor: a command of the launcher, or one that follows from a failure elsewhere.
    Command(PartCommand),
    /// From the conductor that takes the place of one that was killed: tell everything again.
    TellAgain {
        /// The number that the answer has.
        asked: u64,
    },
    /// An event of the part. Output and the last event travel as bulk.
    Event(PartEvent),
    /// To the conductor: this host has no part of the job any more, for this reason.
    PartLost(String),
    /// From the conductor: the last event of the part has come.
    OverTaken,
    /// To the conductor: a process of this host wants to join the job, so have a part made here. The answer is the part, or
    /// that it was refused.
    PartWanted,
    /// From the conductor: there is no part, for this reason.
    PartRefused(String),
    /// To the conductor: `landeck end` on this host wants the end of the job.
    EndWanted {
        /// The name of the host.
        host: String,
    },
    /// A text.
    #[cfg(test)]
    Text(String),
}

impl ControlMessage for JobMessage {
    const NAME: &'static str = "a message of a job";
    const BYTES_MAX: usize = CONTENT_BYTES_MAX;
}
