//! Errors: what failed, which process caused it, and what the program can do.

use std::fmt;
use std::time::Duration;

use landeck_channel::Peer;
use landeck_kernel::Failure;
use landeck_memory::process_names::process_in_words;
use landeck_memory::{JobState, Segment, SlotRecord, SlotState};
use landeck_wire::{ProcessId, Tag};

use crate::message::MessageError;
use landeck_engine::context::NUMBERS;
use landeck_engine::{Fault, Shared, WaitError};
use landeck_named_groups::ServiceError;

mod mailbox;
mod names;
mod semaphore;
mod thread;

pub use mailbox::MailboxError;
pub(crate) use names::{Members, Numbering};
pub use semaphore::SemaphoreError;
pub use thread::{THREAD_NAME_BYTES_MAX, ThreadError};

// The causes that the errors below carry.
pub use landeck_arithmetic::ReductionError;
pub use landeck_collectives::GroupError as ClustersError;
pub use landeck_joining::attach::AttachError;
pub use landeck_joining::objects::ObjectError;
pub use landeck_joining::socket::{JoinError, PublishError, StartOnError, StartRefusal};
pub use landeck_memory::heap::{HeapFull, LendError};
pub use landeck_memory::shared_area::OutsideArea;
pub use landeck_memory::{GateError, NoMemory, SegmentError};
pub use landeck_named_groups::GroupError;
pub use landeck_objects::region::AccessError;

/// The result of a call.
pub type Result<T> = std::result::Result<T, Error>;

/// The error of a call: its kind, and, if known, the call and the rank of the process. A program
/// matches on the kind:
///
/// ```no_run
/// # fn main() -> landeck::Result<()> {
/// # let world = landeck::Job::join()?.world();
/// use landeck::{Error, ErrorKind};
/// match world.barrier() {
///     Err(Error { kind: ErrorKind::PeerFailed { .. }, .. }) => println!("going on without it"),
///     other => other?,
/// }
/// # Ok(()) }
/// ```
#[non_exhaustive]
pub struct Error {
    /// The kind of the error.
    pub kind: ErrorKind,
    /// The name of the call that the program made; for a collective operation its name in plans and
    /// figures.
    pub call: Option<&'static str>,
    /// The rank of this process in the world of the call; for a call without a world, in the first
    /// world of the job.
    pub rank: Option<usize>,
}

impl Error {
    /// Adds the call and the rank that the error comes from.
    #[cold]
    pub(crate) fn of_call(self, call: &'static str, rank: Option<usize>) -> Self {
        Self { call: Some(call), rank, ..self }
    }

    /// The error of a call whose wait failed; `timeout` is the time that it was to wait.
    pub(crate) fn of_wait(
        shared: &Shared,
        error: WaitError,
        timeout: Option<Duration>,
        members: Members<'_>,
    ) -> Self {
        let kind = match error {
            WaitError::Failure(failure) => ErrorKind::of(failure, &shared.segment, members),
            WaitError::Collective(fault) => ErrorKind::of_fault(fault, &shared.segment, members),
            WaitError::TimedOut => ErrorKind::TimedOut(timeout.unwrap_or_default()),
            WaitError::Ended => ErrorKind::Ended,
            WaitError::Gate(error) => error.into(),
        };
        Self { rank: shared.rank(), ..kind.into() }
    }
}

/// Runs the body of a call that belongs to no world, and adds the call to its errors.
#[inline(always)]
pub(crate) fn call<T>(
    shared: &Shared,
    name: &'static str,
    call: impl FnOnce() -> Result<T>,
) -> Result<T> {
    call().map_err(|error| in_call(shared, name, error))
}

/// Adds the call to an error; the call belongs to no world.
#[cold]
pub(crate) fn in_call(shared: &Shared, call: &'static str, error: Error) -> Error {
    error.of_call(call, shared.rank())
}

impl<T> From<T> for Error
where
    ErrorKind: From<T>,
{
    fn from(cause: T) -> Self {
        Self { kind: cause.into(), call: None, rank: None }
    }
}

impl From<ServiceError> for ErrorKind {
    #[cold]
    fn from(error: ServiceError) -> Self {
        match error {
            ServiceError::Group(error) => error.into(),
            ServiceError::Object(error) => error.into(),
            ServiceError::NoMemory(error) => error.into(),
            ServiceError::Thread(error) => error.into(),
            ServiceError::TimedOut(time) => Self::TimedOut(time),
            ServiceError::Ended => Self::Ended,
            ServiceError::WouldBlock => Self::WouldBlock,
            ServiceError::WaitGivenUp => Self::RequestGone,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(rank) = self.rank {
            write!(formatter, "rank {rank}: ")?;
        }
        match self.call {
            Some(call) if !self.kind.names_its_call() => write!(formatter, "{call}: ")?,
            _ => {}
        }
        self.kind.fmt(formatter)
    }
}

/// Prints the text of [`Display`](fmt::Display), since `main` and `unwrap` print the debug form.
impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.kind.source()
    }
}

/// The kind of an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The process cannot find its job.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The calling thread may not call the library now.
    #[error(transparent)]
    Thread(#[from] GateError),
    /// The progress thread cannot be started.
    #[error("the progress thread cannot be started: {0}; allow more threads, or join without it")]
    ProgressThread(std::io::Error),
    /// The shared heap has no room.
    #[error(transparent)]
    Heap(#[from] HeapFull),
    /// Another job's segment cannot be attached.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// A name cannot be published.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// Another job cannot be reached.
    #[error(transparent)]
    Connect(#[from] JoinError),
    /// A process was not started in the job, or has not joined it.
    #[error(transparent)]
    Start(#[from] StartOnError),
    /// A message does not contain what the call asked for.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// A mailbox refused the call.
    #[error(transparent)]
    Mailbox(#[from] MailboxError),
    /// A named group refused the call.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// A semaphore refused the call.
    #[error(transparent)]
    Semaphore(#[from] SemaphoreError),
    /// A thread could not be started, or ended without a result.
    #[error(transparent)]
    Threads(#[from] ThreadError),
    /// A read or a write reaches beyond the end of a shared segment.
    #[error(transparent)]
    OutsideSegment(#[from] OutsideArea),
    /// The memory of another process cannot be accessed.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// A loan cannot be sent to these processes.
    #[error(transparent)]
    Lend(#[from] LendError),
    /// An urgent message is too long.
    #[error(
        "the urgent message has {bytes} bytes, more than the {most} allowed: send a normal message, or several"
    )]
    UrgentTooLong {
        /// Bytes of the message.
        bytes: usize,
        /// The longest urgent message, in bytes.
        most: usize,
    },
    /// The agent of the job refused a request about an object.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// A process that the call depends on has died or left.
    #[error("{who} {how}: the call cannot complete without it. Go on without it, or end the job")]
    PeerFailed {
        /// Its rank in the world of the call; `None` for a process of another job.
        rank: Option<usize>,
        /// Which process, in words.
        who: String,
        /// How it ended, in words.
        how: String,
    },
    /// The job has ranks on other hosts, and the daemon of this host, which connects them, cannot be reached.
    #[error(
        "landeckd, which connects this host to the other hosts of the job, cannot be reached ({0}): start the job again"
    )]
    NoDaemon(std::io::Error),
    /// The daemon of another host, which accesses the regions there, cannot be reached.
    #[error(
        "the daemon of {host} cannot be reached ({why}), so its regions cannot be used: let the hosts reach each other, or \
         send messages"
    )]
    NoRelay {
        /// The host.
        host: String,
        /// The reason.
        why: String,
    },
    /// The daemon of another host, which accesses the regions there, has started again while this call was under way.
    #[error(
        "the daemon of {host} has started again, and nobody knows whether the one before has done this: look at the region, \
         and repeat the call if it was not done"
    )]
    MaybeDone {
        /// The host.
        host: String,
    },
    /// The data of the message were stored on a host that is lost, or that has lost them. The message is gone.
    #[error(
        "the message from {who} is lost: its data were stored on {host}, which is lost or does not have them any more. Have it \
         sent again, or store data elsewhere (--store)"
    )]
    StoreLost {
        /// The sender of the message, in words.
        who: String,
        /// The host.
        host: String,
    },
    /// No data can be stored on that host: it is none of the job's hosts, or no process of the job is there.
    #[error(
        "{host} is no host of this job on which data can be stored: name one with a process of the job"
    )]
    NoStore {
        /// The host, as the program has named it.
        host: String,
    },
    /// A process violated the protocol.
    #[error("{who} is broken ({what}): nothing more is received from it")]
    PeerBroken {
        /// Which process, in words.
        who: String,
        /// The violation, in words.
        what: String,
    },
    /// The message was longer than the buffer; the bytes that fit were received.
    #[error(
        "the message{from} with tag {} has {message_bytes} bytes, the buffer {buffer_bytes}: the rest is lost; receive into a larger one", tag.0
    )]
    Truncated {
        /// The rank of its sender in the world of the call; `None` for a process of another job.
        rank: Option<usize>,
        /// Its tag.
        tag: Tag,
        /// Bytes of the message.
        message_bytes: u64,
        /// Bytes of the buffer.
        buffer_bytes: u64,
        /// The words ` from rank 3 on n1` for its sender; empty for a process of another job.
        from: String,
    },
    /// The length of the message is not a multiple of the length of a value.
    #[error(
        "the message has {message_bytes} bytes, which is not a multiple of the {value_bytes} bytes of a value: use the same type at sender and receiver"
    )]
    WrongType {
        /// Bytes of the message.
        message_bytes: u64,
        /// Bytes of a value.
        value_bytes: usize,
    },
    /// The deadline passed before the call was complete; nothing was lost.
    #[error(
        "the call did not complete within {0:?}, and nothing is lost: wait longer, or see with `landeck why` what the others do"
    )]
    TimedOut(Duration),
    /// The call could not complete without waiting.
    #[error("the call would have to wait: its peer has not received what was sent before")]
    WouldBlock,
    /// The world was revoked by one of its members.
    #[error(
        "the world was revoked by one of its members{dead}: make a new one with the remaining members"
    )]
    Revoked {
        /// The words about members that have died, such as `, of which rank 3 (pid 411) was killed by signal 9`; empty
        /// if none has.
        dead: String,
    },
    /// The job is being ended.
    #[error("the job is being ended")]
    Ended,
    /// The world has no such rank.
    #[error("rank {rank} is not in this world of {size}: ranks go from 0 to {}", size - 1)]
    NoSuchRank {
        /// The rank that was named.
        rank: usize,
        /// The number of members.
        size: usize,
    },
    /// The request was completed or given up before.
    #[error("the request was completed or given up before")]
    RequestGone,
    /// A layout describes bytes outside its buffer.
    #[error("the layout describes bytes outside the buffer of {buffer_bytes} bytes")]
    OutsideBuffer {
        /// Bytes of the buffer.
        buffer_bytes: usize,
    },
    /// The process has no memory for what the call needs.
    #[error(transparent)]
    NoMemory(#[from] NoMemory),
    /// Members of a group called different operations.
    #[error(
        "{} called {theirs}, {} called {ours}, as operation {number} of this world: all members call the same operations in the same order; this world is out of step, make a new one",
        .who[0], .who[1]
    )]
    Mismatch {
        /// The rank of the one member.
        rank: usize,
        /// The call of that member, in words.
        theirs: String,
        /// The rank of the other member; this process, if it found the mismatch.
        other: usize,
        /// The call of the other member, in words.
        ours: String,
        /// The number of the operation in the world, counted from 0.
        number: u32,
        /// The one and the other member, in words.
        who: Box<[String; 2]>,
    },
    /// The data of a member in a collective operation have a different length than expected.
    #[error(
        "{operation}: the data that came from {who} have {message_bytes} bytes, this process expects {expected_bytes}: give the same counts and types on all members"
    )]
    LengthMismatch {
        /// The operation.
        operation: &'static str,
        /// The rank that the data came from.
        rank: usize,
        /// Bytes that came.
        message_bytes: u64,
        /// Bytes that this process expects.
        expected_bytes: u64,
        /// That member, in words.
        who: String,
    },
    /// The data of a member in a collective operation have a different length than another member expects, on which
    /// the result of this process depends.
    #[error(
        "{operation}: the data that came from {} have {message_bytes} bytes, {} expects {expected_bytes} and has nothing to pass on: give the same counts and types on all members",
        who[0], who[1]
    )]
    LengthMismatchElsewhere {
        /// The operation.
        operation: &'static str,
        /// The rank that the data came from.
        rank: usize,
        /// The rank that expects another length.
        by: usize,
        /// Bytes that came.
        message_bytes: u64,
        /// Bytes that the other rank expects.
        expected_bytes: u64,
        /// Both members, in words.
        who: Box<[String; 2]>,
    },
    /// Members differ in what must agree in a collective operation. It is reported only where
    /// members compare their calls: see [`World::checking`](crate::World::checking).
    #[error(
        "{operation}: {who} {what}: give the same counts, types, operations and ways on all members"
    )]
    Disagreement {
        /// The operation.
        operation: &'static str,
        /// The rank that differs from this process.
        rank: usize,
        /// The difference, in words.
        what: String,
        /// That member, in words.
        who: String,
    },
    /// A member could not do its part in a collective operation, so the result is lost.
    #[error(
        "{operation}: {who} could not do its part, and its own error says why: the result is lost, the world stays usable"
    )]
    Spoiled {
        /// The operation.
        operation: &'static str,
        /// The member.
        rank: usize,
        /// That member, in words.
        who: String,
    },
    /// A member had no memory for its part in a collective operation, neither in its shared heap
    /// nor of its own; or a member that it forwards data for had none.
    #[error(
        "{operation}: {who}, or a rank whose data it forwards, had no memory for its part, and the error there says how much is missing: free memory there; the world stays usable"
    )]
    PeerHeapFull {
        /// The operation.
        operation: &'static str,
        /// The member.
        rank: usize,
        /// That member, in words.
        who: String,
    },
    /// A buffer does not fit a collective operation.
    #[error(
        "{operation}: the {which} has {buffer_bytes} bytes where {needed_bytes} are needed: make it as long as that"
    )]
    WrongLength {
        /// The operation.
        operation: &'static str,
        /// The buffer, in words.
        which: &'static str,
        /// Bytes of the buffer.
        buffer_bytes: u64,
        /// Bytes that are needed.
        needed_bytes: u64,
    },
    /// The number of blocks in a collective operation differs from the number of members.
    #[error(
        "{operation}: the {which} has {given} blocks, the world {size} members: give one block for each member"
    )]
    WrongCount {
        /// The operation.
        operation: &'static str,
        /// The buffer, in words.
        which: &'static str,
        /// The number of blocks given.
        given: usize,
        /// How many members there are.
        size: usize,
    },
    /// The data cannot be combined.
    #[error(transparent)]
    Reduction(#[from] ReductionError),
    /// The reduction function of the user panicked.
    #[error("the function that combines two values panicked: the result of the reduction is lost")]
    OperatorPanicked,
    /// The chosen architecture needs a board, and the world has none.
    #[error(
        "this world has no board: choose another architecture, or leave the choice to the table"
    )]
    NoBoard,
    /// A member's words on the board of its world are corrupt.
    #[error("{who} has overwritten its words in shared memory: its process is broken")]
    BrokenBoard {
        /// The rank.
        rank: usize,
        /// That member, in words.
        who: String,
    },
    /// This process is not a member of the world.
    #[error("this process is no member of the world: only members call its collective operations")]
    NotAMember,
    /// The member that names a new world has no number for it.
    #[error(
        "there is no number for another world: the job has used up all {NUMBERS}, or landeckd has brought none for 10 s. Try again, or start the job anew"
    )]
    TooManyGroups,
    /// Another member gave up the making of a world, because of something that concerns it alone.
    #[error("rank {rank}{host} gave up the making of this world: its own error says why")]
    GivenUp {
        /// The rank.
        rank: usize,
        /// The words ` on n1` for the host of that rank; empty if the job has one host.
        host: String,
    },
    /// A rank was named twice.
    #[error("rank {rank} is named twice: name each member of the new world once")]
    RankTwice {
        /// The rank.
        rank: usize,
    },
    /// The clusters do not divide the world.
    #[error("the clusters that rank 0 gave do not divide this world: {0}")]
    Clusters(ClustersError),
    /// Two groups cannot be connected.
    #[error("these two groups cannot be connected: {what}")]
    NoBridge {
        /// The reason, and the remedy.
        what: &'static str,
    },
    /// The other members have agreed that this process is gone.
    #[error(
        "the other members of this world no longer reach this process and have agreed that it is gone: look after the network between the hosts, and end this process or go on with worlds of its own host"
    )]
    Excluded,
    /// Some members called `agree`, others `shrink`.
    #[error(
        "some members of this world called agree, others shrink: call the same in the same order; nothing was agreed"
    )]
    OutOfStep,
    /// The handshake between two jobs failed.
    #[error(
        "the process behind the name \"{name}\" failed the handshake ({what}): try again, or restart its job"
    )]
    Handshake {
        /// The name.
        name: String,
        /// The fault, in words.
        what: &'static str,
    },
}

impl ErrorKind {
    /// Returns whether the text begins with the operation.
    fn names_its_call(&self) -> bool {
        matches!(
            self,
            Self::LengthMismatch { .. }
                | Self::LengthMismatchElsewhere { .. }
                | Self::Disagreement { .. }
                | Self::Spoiled { .. }
                | Self::PeerHeapFull { .. }
                | Self::WrongLength { .. }
                | Self::WrongCount { .. }
        )
    }

    /// Translates a failure of the messaging kernel into the terms of a world's members.
    pub(crate) fn of(failure: Failure, segment: &Segment, members: Members<'_>) -> Self {
        match failure {
            // A process that is gone may have ended because of that.
            Failure::PeerGone { .. } if is_ending_on_several_hosts(segment) => Self::Ended,
            Failure::PeerGone { peer, died } => {
                let (rank, who) = (members.rank(peer, segment), members.process(peer, segment));
                Self::PeerFailed { rank, who, how: end(died, peer, segment) }
            }
            Failure::PeerBroken { peer, what } => {
                Self::PeerBroken { who: members.process(peer, segment), what: what.to_string() }
            }
            Failure::Truncated { peer, tag, message_bytes, buffer_bytes } => {
                let (rank, tag) = (members.rank(peer, segment), Tag(tag));
                let from = rank.map(|_| format!(" from {}", members.sender(peer, segment)));
                let from = from.unwrap_or_default();
                Self::Truncated { rank, tag, message_bytes, buffer_bytes, from }
            }
            Failure::Revoked => Self::Revoked { dead: members.dead(segment) },
            Failure::OutsideBuffer { buffer_bytes } => Self::OutsideBuffer { buffer_bytes },
            Failure::Gone => Self::RequestGone,
            Failure::NoMemory(no_memory) => no_memory.into(),
            Failure::StoreLost { peer, host } => Self::StoreLost {
                who: members.sender(peer, segment),
                host: segment.host_in_words(host),
            },
        }
    }
}

impl ErrorKind {
    /// The error for the process of a peer that is gone; its place may belong to another process by now.
    pub(crate) fn process_gone(segment: &Segment, process: ProcessId, peer: Peer) -> Self {
        let record = segment.peer_record(peer.0);
        if record.incarnation == process.incarnation.0 {
            let died = record.state == SlotState::Dead;
            return Self::of(Failure::PeerGone { peer, died }, segment, Members::OF_JOB);
        }
        let is_first = process.incarnation.0 <= 1;
        let rank = segment.rank_of_peer(peer.0).filter(|_| is_first).map(|rank| rank as usize);
        let on_host = segment.on_host(peer.0);
        let who = process_in_words(rank, process.slot.0, &on_host, SlotRecord::default());
        Self::PeerFailed { rank, who, how: "is gone, and another process has its place".to_owned() }
    }

    /// Translates a fault of a collective operation.
    pub(crate) fn of_fault(fault: Fault, segment: &Segment, members: Members<'_>) -> Self {
        let who = |member: u32| members.member(member as usize, segment);
        match fault {
            Fault::Failure(failure) => Self::of(failure, segment, members),
            Fault::Mismatch(mismatch) => Self::Mismatch {
                rank: mismatch.first as usize,
                theirs: mismatch.first_calls.to_string(),
                other: mismatch.second as usize,
                ours: mismatch.second_calls.to_string(),
                number: mismatch.second_calls.number(),
                who: Box::new([who(mismatch.first), who(mismatch.second)]),
            },
            Fault::Length { member, operation, message_bytes, expected_bytes } => {
                let (operation, rank) = (operation.as_str(), member as usize);
                let who = who(member);
                Self::LengthMismatch { operation, rank, message_bytes, expected_bytes, who }
            }
            Fault::LengthElsewhere { member, by, operation, message_bytes, expected_bytes } => {
                Self::LengthMismatchElsewhere {
                    operation: operation.as_str(),
                    rank: member as usize,
                    by: by as usize,
                    message_bytes,
                    expected_bytes,
                    who: Box::new([who(member), who(by)]),
                }
            }
            Fault::Disagreement { member, operation, what } => {
                let (operation, rank) = (operation.as_str(), member as usize);
                Self::Disagreement { operation, rank, what, who: who(member) }
            }
            Fault::NoRoom { member, operation } => {
                let (operation, rank) = (operation.as_str(), member as usize);
                Self::PeerHeapFull { operation, rank, who: who(member) }
            }
            Fault::Spoiled { member, operation } => {
                let (operation, rank) = (operation.as_str(), member as usize);
                Self::Spoiled { operation, rank, who: who(member) }
            }
            Fault::Buffer { operation, which, buffer_bytes, needed_bytes } => {
                let operation = operation.as_str();
                Self::WrongLength { operation, which, buffer_bytes, needed_bytes }
            }
            Fault::Counts { operation, which, given, size } => {
                let (operation, size) = (operation.as_str(), size as usize);
                Self::WrongCount { operation, which, given, size }
            }
            Fault::Operator(error) => Self::Reduction(error),
            Fault::Panicked => Self::OperatorPanicked,
            Fault::NoSuchRoot { root, size } => {
                Self::NoSuchRank { rank: root as usize, size: size as usize }
            }
            Fault::NoBoard => Self::NoBoard,
            Fault::BrokenBoard { member } => {
                Self::BrokenBoard { rank: member as usize, who: who(member) }
            }
            Fault::Heap(full) => Self::Heap(full),
            Fault::NoMemory(no_memory) => no_memory.into(),
            Fault::Excluded => Self::Excluded,
            Fault::NotAMember => Self::NotAMember,
        }
    }
}

/// Whether a segment's job is on several hosts and is being ended. Then its calls fail because of that, since its processes
/// learn at different times which others are gone.
fn is_ending_on_several_hosts(segment: &Segment) -> bool {
    segment.knows_other_hosts() && segment.job_state() == JobState::Ending
}

/// Describes how the process of a peer ended.
fn end(died: bool, peer: Peer, segment: &Segment) -> String {
    let far = peer.0.checked_sub(segment.plan().slots()).map(|far| segment.far_record(far));
    match far {
        Some(record) if died && record.is_host_lost => "was lost with its host".to_owned(),
        Some(record) if died && record.state == SlotState::Free => {
            "cannot be reached any more".to_owned()
        }
        Some(record) => how(died, &record.as_slot()),
        None => how(died, &segment.slot_record(peer.0)),
    }
}

/// Describes how a process ended, from its raw wait status.
fn how(died: bool, record: &SlotRecord) -> String {
    if !died {
        return "has left the job".to_owned();
    }
    if record.status == SlotRecord::UNKNOWN_STATUS {
        return "ended without leaving the job".to_owned();
    }
    let signal = record.status & 0x7f;
    if signal != 0 {
        return format!("was killed by signal {signal}");
    }
    format!("ended with exit code {} without leaving the job", record.status >> 8 & 0xff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_memory::FarRecord;
    use landeck_memory::{FarProcess, JobName, SegmentPlan};

    #[test]
    fn a_death_is_told_with_rank_process_and_cause() {
        let segment =
            Segment::local(&SegmentPlan { heap_bytes_per_process: 0, ..SegmentPlan::new(1, 2) });
        let record =
            SlotRecord { state: SlotState::Dead, pid: 4711, status: 9, ..SlotRecord::default() };
        segment.set_slot_record(1, record);
        let failure = Failure::PeerGone { peer: Peer(1), died: true };
        let text = |members| ErrorKind::of(failure.clone(), &segment, members).to_string();
        let in_job = text(Members::OF_JOB);
        assert!(in_job.starts_with("rank 1 (pid 4711) was killed by signal 9:"), "{in_job}");
        let peers = [Peer(1), Peer(0)];
        for (numbering, name) in [
            (Numbering::Own, "rank 1 (rank 0 of this world, pid 4711)"),
            (Numbering::OtherGroup, "rank 1 (rank 0 of the other group, pid 4711)"),
            (Numbering::Joint, "rank 1 (pid 4711)"),
        ] {
            let derived = text(Members::new(&peers, numbering));
            assert!(derived.starts_with(&format!("{name} was killed by signal 9:")), "{derived}");
        }
        let revoked = |peers: &[Peer]| {
            let members = Members::new(peers, Numbering::Own);
            ErrorKind::of(Failure::Revoked, &segment, members).to_string()
        };
        let said = revoked(&[Peer(0), Peer(1)]);
        let dead = "its members, of which rank 1 (pid 4711) was killed by signal 9: make a new one";
        assert!(said.contains(dead), "{said}");
        assert!(revoked(&[Peer(0)]).contains("one of its members: make a new one"));
    }

    #[test]
    fn a_death_on_another_host_is_told_with_its_host() {
        let plan = SegmentPlan { heap_bytes_per_process: 0, ..SegmentPlan::new(1, 2) };
        let segment = Segment::local(&SegmentPlan { ranks: 4, far: 4, hosts: 5, ..plan });
        let process = FarProcess { host: 2, slot: 1, incarnation: 1 };
        let record = FarRecord {
            process,
            host_number: 4,
            state: SlotState::Dead,
            pid: 411,
            status: 9,
            ..FarRecord::default()
        };
        segment.set_far_record(3, record);
        let peer = Peer(segment.plan().slots() + 3);
        let peers = [Peer(0), Peer(1), Peer(2), peer];
        let members = Members::new(&peers, Numbering::Own);
        let text = |died| {
            let failure = Failure::PeerGone { peer, died };
            ErrorKind::of(failure, &segment, members).to_string()
        };
        assert!(text(true).starts_with("rank 3 on host 4 (pid 411) was killed by signal 9:"));
        segment.set_host_name(4, JobName::new("n2"));
        assert!(text(true).starts_with("rank 3 on n2 (pid 411) was killed by signal 9:"));
        assert!(text(false).starts_with("rank 3 on n2 (pid 411) has left the job"));
        segment.set_far_record(3, FarRecord { is_host_lost: true, ..record });
        assert!(text(true).starts_with("rank 3 on n2 (pid 411) was lost with its host"));
    }

    #[test]
    fn the_end_of_a_job_on_several_hosts_comes_before_ends_of_its_processes() {
        let plan = SegmentPlan { heap_bytes_per_process: 0, ..SegmentPlan::new(1, 2) };
        let here = Segment::local(&plan);
        let over_hosts = Segment::local(&SegmentPlan { ranks: 3, far: 1, hosts: 2, ..plan });
        let is_ended = |segment: &Segment, peer| {
            let failure = Failure::PeerGone { peer: Peer(peer), died: true };
            matches!(ErrorKind::of(failure, segment, Members::OF_JOB), ErrorKind::Ended)
        };
        assert!(!is_ended(&over_hosts, 1));
        here.set_job_state(JobState::Ending);
        over_hosts.set_job_state(JobState::Ending);
        let far = over_hosts.plan().slots();
        assert!(is_ended(&over_hosts, 1) && is_ended(&over_hosts, far) && !is_ended(&here, 1));
    }

    #[test]
    fn an_error_names_rank_and_call_once_and_is_debugged_as_it_is_displayed() {
        let revoked = Error::from(ErrorKind::Revoked { dead: String::new() });
        assert!(revoked.to_string().starts_with("the world was revoked"), "{revoked}");
        let revoked = revoked.of_call("barrier", Some(2));
        assert!(format!("{revoked:?}").starts_with("rank 2: barrier: the world was"), "{revoked}");
        let gather = "gather";
        let count = ErrorKind::WrongCount { operation: gather, which: "output", given: 3, size: 2 };
        let count = Error::from(count).of_call(gather, Some(0)).to_string();
        assert!(count.starts_with("rank 0: gather: the output has 3 blocks"), "{count}");
        let guest = Error::from(GateError::Reentered).of_call("post", None).to_string();
        assert!(guest.starts_with("post: a call was made from inside"), "{guest}");
    }
}
