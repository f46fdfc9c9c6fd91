//! The messages between a daemon and the founder's about their machine, if it is one that stays.

use std::collections::BTreeSet;

use landeck_launch::machine::{MachineAnswer, MachineQuestion};
use landeck_protocols::hosts::{HostLoad, LinkSight, NewHost};
use landeck_wire::{HostNumber, JobId};
use serde::{Deserialize, Serialize};

/// A message between a daemon and the founder's about their machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum MachineMessage {
    /// A caller of the sender's host asks.
    Asked {
        /// The number of the request, which is repeated with its answer.
        request: u64,
        /// The question.
        question: MachineQuestion,
    },
    /// The founder answers.
    Answered {
        /// The request.
        request: u64,
        /// The answer.
        answer: MachineAnswer,
    },
    /// A job that the sender has conducted is over, or was never started.
    JobOver(JobId),
    /// The sender's daemon has started again, and conducts these jobs alone: it ends them.
    Conducts(BTreeSet<JobId>),
    /// The sender wants to add a host to a job that it conducts.
    HostWanted {
        /// The job.
        job: JobId,
        /// The host.
        host: NewHost,
    },
    /// The founder's answer; else the reason why not.
    HostAllowed {
        /// The job.
        job: JobId,
        /// The host.
        host: NewHost,
        /// Whether it may be added.
        outcome: Result<(), String>,
    },
    /// A host that the founder has allowed was not added to a job.
    HostGivenUp {
        /// The job.
        job: JobId,
        /// The host.
        host: HostNumber,
    },
    /// So many processes of a job that the sender conducts are on a host that was added to it.
    Processes {
        /// The job.
        job: JobId,
        /// The host.
        host: HostNumber,
        /// Their number.
        processes: u32,
    },
    /// The sender has no return ticket: one that was under way is lost with its daemon, which has started again.
    TicketWanted,
    /// The secret of the receiver's next return ticket.
    Ticket([u8; 16]),
    /// The load of the sender's host.
    Load(HostLoad),
    /// The founder has the receiver start a helper of its host in this job, the machine's own.
    HelperWanted(JobId),
    /// A host has found these links, as a job has needed that the sender conducts.
    Links {
        /// The host.
        host: HostNumber,
        /// The other host of each link, and what the link does.
        found: Vec<(HostNumber, LinkSight)>,
    },
    /// The founder has the receiver's host leave the machine.
    Leave,
}
