//! The messages between launcher, arbiter and the parts of a job.

use std::time::Duration;

use ipnet::IpNet;
use landeck_protocols::door::{StartAnswer, StartRefusal, StartWish};
use landeck_wire::word::ProcessEnd;
use landeck_wire::{HostNumber, JobId, ProcessId};
use serde::{Deserialize, Serialize};

use crate::events::Happened;
use crate::hosts_options::PortRange;
use crate::machine::{MachineAnswer, MachineQuestion};
use crate::output::Stream;
use crate::remote_start::StartWay;
use crate::spec::{HostSpec, JobSpec};

/// The bytes of each stream that a host may send before the launcher has accepted any.
pub const WINDOW_BYTES: u64 = 1 << 20;
/// The number of processes that a message lists one by one.
pub(crate) const LISTED_MAX: usize = 64;

/// An event of a part of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PartEvent {
    /// Something has happened to the processes.
    Happened(Happened),
    /// A process has ended, in the form that all hosts must learn.
    Gone {
        /// The process.
        process: ProcessId,
        /// Its end.
        end: ProcessEnd,
    },
    /// A process has written.
    Output {
        /// Its rank.
        rank: u32,
        /// The stream.
        stream: Stream,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// A stream of a process has ended.
    OutputEnded {
        /// Its rank.
        rank: u32,
        /// The stream.
        stream: Stream,
    },
    /// The processes have taken the last block of input.
    InputTaken,
    /// No process reads its input any more.
    InputUnread,
    /// A process of this host wants to have another one started. [`PartCommand::AnswerStart`] answers, once.
    StartAsked {
        /// The number of the question.
        request: u64,
        /// The rank of the process that asks, or its number if it was started while the job ran; none for a guest.
        rank: Option<u32>,
        /// The wish.
        wish: Box<StartWish>,
    },
    /// A process was not started. Its streams end too.
    NotAdded {
        /// Its number.
        rank: u32,
        /// The reason.
        refusal: StartRefusal,
    },
    /// A process that was started while the job ran has joined.
    Joined {
        /// Its number.
        rank: u32,
        /// Its identity.
        process: ProcessId,
        /// Its PID.
        pid: u32,
    },
    /// The answer to [`PartCommand::Places`], for each process that runs.
    Places(Vec<Whereabouts>),
    /// A text for the user.
    Said(String),
    /// Another daemon drives the part from now on, in the place of one that was killed. The events before this one may have come
    /// before; what was under way in the daemon is lost.
    ///
    /// Or the conductor was killed, and has asked the part to tell everything again.
    Stands {
        /// The number of that question; zero if the part has another daemon.
        asked: u64,
    },
    /// Nothing more will come.
    Over,
}

/// Where a process is in its program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Whereabouts {
    /// Its rank.
    pub rank: u32,
    /// The PID of the process that joined, which may be below the one that was started.
    pub pid: u32,
    /// The wait that it is in, in words.
    pub wait: String,
    /// Its stacks, if they were asked for: lines that end.
    pub stacks: String,
}

impl PartEvent {
    /// Whether the event belongs to the stream of output, which may be long.
    pub const fn is_bulk(&self) -> bool {
        matches!(self, Self::Output { .. } | Self::OutputEnded { .. } | Self::Over)
    }
}

/// A command for a part of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PartCommand {
    /// Send this signal to every process.
    Signal(i32),
    /// Ask every process to end, and kill the rest after the grace time.
    End {
        /// The time between the two.
        grace: Duration,
    },
    /// Kill every process.
    Kill,
    /// End with the last process from now on: the part is one that was added while the job ran.
    Release,
    /// Pass a block of input on; the last one must have been taken.
    Input(Vec<u8>),
    /// End the input.
    InputEnd,
    /// Send so many more bytes of a stream, of all processes together.
    Credit {
        /// The stream.
        stream: Stream,
        /// The number of bytes.
        bytes: u64,
    },
    /// Close these streams: nobody reads them.
    CloseOutput(Stream),
    /// Start one more process. Events tell what becomes of it.
    Start {
        /// Its number: no rank, and that of no process that lives.
        rank: u32,
        /// The rank whose program's environment and directory it gets.
        like: u32,
        /// The program.
        wish: Box<StartWish>,
    },
    /// Answer a process that wanted to have another one started.
    AnswerStart {
        /// The number of its question.
        request: u64,
        /// The answer.
        answer: StartAnswer,
    },
    /// Say where the processes are.
    Places {
        /// Whether with their stacks.
        stacks: bool,
    },
}

/// The reason why a part of a job is not possible on its host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartRefusal {
    /// The exit code of the launcher.
    pub exit_code: u8,
    /// The reason and the cure, in words.
    pub text: String,
}

/// A job as the launcher asks its arbiter for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostsRequest {
    /// The job. Its hosts have no numbers yet, if a machine is made for it.
    pub spec: JobSpec,
    /// The machine that is made for the job; `None`: its hosts are booked in one that stays.
    pub machine: Option<NewMachine>,
}

/// A machine to be made for a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewMachine {
    /// How daemons on other hosts are started.
    pub way: StartWay,
    /// The options of the machine.
    pub options: MachineOptions,
}

/// The options of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineOptions {
    /// The time that a host may be silent before it counts as lost, in milliseconds.
    pub host_timeout_ms: u64,
    /// Whether messages travel unencrypted.
    pub is_plain: bool,
    /// The ports for everything that listens; `None` leaves the choice to the kernel.
    pub ports: Option<PortRange>,
    /// The networks that hosts use first.
    pub networks: Vec<IpNet>,
}

/// A message of the launcher to its arbiter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToArbiter {
    /// A question to a machine that stays. Questions come before a job.
    Ask(MachineQuestion),
    /// Start this job. It comes once.
    Start(Box<HostsRequest>),
    /// Go on with this job, which runs: the daemon that has conducted it was killed. It comes in the place of
    /// [`ToArbiter::Start`], and the daemon ends the conversation if it knows nothing of the job.
    Resume {
        /// The job.
        job: JobId,
        /// The hosts whose parts are not over, as the launcher knows.
        hosts: Vec<HostNumber>,
        /// The number by which the launcher knows the answers of the parts, from one on. No earlier one was as high.
        asked: u64,
    },
    /// Add this host of the machine to the job. [`ArbiterReport::HostAdded`] answers.
    AddHost(HostNumber),
    /// A command for the parts on all hosts, or on one.
    Command {
        /// The host; `None` means all.
        host: Option<HostNumber>,
        /// The command.
        command: PartCommand,
    },
}

/// A message of the arbiter to its launcher.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ArbiterReport {
    /// The answer to a question.
    Answered(MachineAnswer),
    /// A text for the user, such as a token for `landeckd join`.
    Said(String),
    /// The job is impossible, and nothing was started. The texts name their hosts.
    Refused {
        /// The exit code of the launcher.
        exit_code: u8,
        /// The reasons.
        texts: Vec<String>,
    },
    /// The hosts are known; processes are started next.
    Settled(Box<JobSpec>),
    /// An event of the part on a host.
    Event {
        /// The host.
        host: HostNumber,
        /// The event.
        event: PartEvent,
    },
    /// The answer to [`ToArbiter::AddHost`].
    HostAdded {
        /// The host.
        host: HostNumber,
        /// The host as it is in the job, or the reason why it was not added.
        outcome: Result<HostSpec, String>,
    },
    /// A host takes no part any more, and everything of the job there has ended or will.
    HostLost {
        /// The host.
        host: HostNumber,
        /// The reason, in words.
        why: String,
    },
    /// The job cannot go on and is ended. The text says why.
    CutOff(String),
    /// `landeck end` on this host wants the end of the job.
    EndWanted {
        /// The name of the host.
        host: String,
    },
}
