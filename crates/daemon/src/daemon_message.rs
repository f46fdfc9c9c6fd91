//! The messages between daemons, apart from those of jobs.

use std::net::IpAddr;

use landeck_diagnosis::HostPicture;
use landeck_diagnosis::far::LogLine;
use landeck_protocols::door::{ObjectAnswer, ObjectQuestion};
use landeck_protocols::hosts::{DialMessage, NumberBlock, Snapshot};
use landeck_wire::word::{Word, WordContent};
use landeck_wire::{ControlMessage, HostIncarnation, HostNumber, JobId, ProcessId, SegmentId};
use serde::{Deserialize, Serialize};

use crate::bootstrap::Enrolment;
use crate::facts::HostFacts;
use crate::machine_message::MachineMessage;
use crate::trunks::envelope::CONTENT_BYTES_MAX;

/// A message between two daemons.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum DaemonMessage {
    /// A host that is no member shows the secret of its token.
    Join {
        /// The secret.
        secret: [u8; 16],
        /// The name that it goes by.
        name: String,
        /// The incarnation of its daemon.
        incarnation: HostIncarnation,
        /// The port of its daemon.
        port: u16,
        /// Its addresses.
        addresses: Vec<IpAddr>,
        /// Its facts.
        facts: HostFacts,
    },
    /// A host that was a member shows the secret of its return ticket. Nothing of its earlier incarnation runs any more.
    Return {
        /// Its number.
        host: HostNumber,
        /// The secret.
        secret: [u8; 16],
        /// The incarnation of its daemon.
        incarnation: HostIncarnation,
        /// The port of its daemon.
        port: u16,
        /// Its addresses.
        addresses: Vec<IpAddr>,
        /// Its facts.
        facts: HostFacts,
    },
    /// The arbiter gives the word first that its earlier incarnation is gone: it is to ask again.
    StillThere,
    /// The arbiter has admitted it.
    Admitted(Box<Enrolment>),
    /// The arbiter refuses it.
    Refused {
        /// The reason.
        why: String,
    },
    /// The arbiter tells a host that has just joined everything that was said before.
    Welcome(Snapshot),
    /// A daemon says something to the user.
    Said(String),
    /// About the machine, if it is one that stays.
    Machine(MachineMessage),
    /// The arbiter gives a word.
    Word(Word),
    /// The arbiter has called this incarnation lost.
    Excluded {
        /// The incarnation.
        incarnation: HostIncarnation,
    },
    /// A host asks for all words from this number on.
    Resend {
        /// The number.
        from: u64,
    },
    /// A host asks the arbiter for a word.
    Ask(WordContent),
    /// A process of the sender's host has had no connection to one of another host for T, and no word says why.
    PairBroken {
        /// The job of both.
        job: JobId,
        /// The other host.
        far: HostNumber,
        /// The cause of the job's end, in a sentence for people.
        cause: String,
    },
    /// A host has a part of a job from now on.
    PartAdded {
        /// The job.
        job: JobId,
        /// The segment of the part.
        segment: SegmentId,
    },
    /// A part of a job is over on the sender's host.
    PartRemoved {
        /// The segment of the part.
        segment: SegmentId,
    },
    /// The sender, whose daemon has started again, has these parts and no others.
    PartsKept {
        /// Their segments.
        segments: Vec<SegmentId>,
    },
    /// The daemon of a host has started again, as the arbiter has noticed. Messages of the receiver for it that came to the
    /// arbiter before this are lost, and those of the daemon before.
    Restarted {
        /// The host.
        host: HostNumber,
        /// The run of its daemon.
        run: u32,
    },
    /// A host needs numbers for the groups of a job.
    NumbersWanted {
        /// The job.
        job: JobId,
        /// The number of the request, which is repeated with it.
        request: u64,
    },
    /// The arbiter has leased numbers, or says why not.
    Numbers {
        /// The job.
        job: JobId,
        /// The request.
        request: u64,
        /// The numbers.
        outcome: Result<NumberBlock, String>,
    },
    /// A process of the sender's host asks about the names of its job.
    NameAsked {
        /// The job.
        job: JobId,
        /// The PID of the process.
        pid: u32,
        /// The number of the request, which is repeated with its answer.
        request: u64,
        /// The question.
        question: ObjectQuestion,
    },
    /// The arbiter answers a question about names.
    NameAnswered {
        /// The request.
        request: u64,
        /// The answer.
        answer: ObjectAnswer,
    },
    /// An observer wants the picture of a job on this host.
    PictureWanted {
        /// The job.
        job: JobId,
        /// The number of the request.
        request: u64,
        /// Whether the kernel's figures and the boards are not needed.
        is_glance: bool,
    },
    /// The picture of the job; `None` if it has no part here.
    Picture {
        /// The request.
        request: u64,
        /// The picture.
        picture: Box<Option<HostPicture>>,
    },
    /// An observer wants the stacks of processes on this host.
    StacksWanted {
        /// The job.
        job: JobId,
        /// The number of the request.
        request: u64,
        /// The processes.
        processes: Vec<ProcessId>,
    },
    /// The stacks, of those processes that were found.
    Stacks {
        /// The request.
        request: u64,
        /// The stacks.
        texts: Vec<(ProcessId, String)>,
    },
    /// An observer wants the log of this daemon.
    LogWanted {
        /// The number of the request.
        request: u64,
    },
    /// The log.
    Log {
        /// The request.
        request: u64,
        /// Its lines, the oldest first.
        lines: Vec<LogLine>,
    },
    /// No connection could be opened from a host to another one, as the sender has found.
    StepBroken {
        /// The host that it begins at.
        from: HostNumber,
        /// The host that it leads to.
        to: HostNumber,
    },
    /// The arbiter does not hear a host that it reaches over the receiver: does the kernel there answer?
    KernelWanted {
        /// The host.
        host: HostNumber,
    },
    /// The answer of a gateway: the kernel of a host has last answered so long ago.
    KernelAnswers {
        /// The host.
        host: HostNumber,
        /// The time since then, in milliseconds.
        silent_ms: u64,
    },
    /// The arbiter does not hear a gateway: connections take other ways.
    GatewaySilent {
        /// The gateway.
        gateway: HostNumber,
    },
    /// Long packets do not pass between both hosts, as the sender has found.
    Narrow,
    /// About lanes between processes of both hosts.
    Dial(DialMessage),
    /// The daemon ends in order. Nothing of its host's parts runs any more.
    Goodbye {
        /// The incarnation that ends.
        incarnation: HostIncarnation,
    },
}

impl ControlMessage for DaemonMessage {
    const NAME: &'static str = "a message";
    const BYTES_MAX: usize = CONTENT_BYTES_MAX;
}
