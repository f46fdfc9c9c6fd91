//! The joining socket, which gives a job's segment to a process that did not inherit it.
//!
//! The agent of a job listens on an abstract Unix socket, `landeck-<uid>-<host identity>`, and on one more for each
//! name that a process of the job publishes, `landeck-<uid>-name-<name>`. These have no file, and disappear with the
//! agent. One more socket has a file, in the user's index ([`crate::index`]). Both ends check that the other is the
//! same user. A connection carries one question and one answer, whose bytes [`landeck_protocols::door`] defines. A process
//! that was let in keeps the connection for as long as it stays.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use landeck_memory::{GateError, passing};
use landeck_protocols::door::{
    Answer, Name, ObjectAnswer, ObjectQuestion, PartAnswer, Question, Reply, StartAnswer,
    WISH_BYTES_MAX,
};
pub use landeck_protocols::door::{
    NAME_BYTES_MAX, NameError, Published, StartRefusal, StartWish, Verdict,
};
use landeck_wire::{ControlMessage, ProcessId, SegmentId, Slot};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{RecvFlags, SendFlags};

use crate::address::{Address, dial, own_uid, remaining, uninterrupted};
use crate::index::Index;
use crate::peer;

/// How long a process waits for an agent's answer; a stopped agent gives none.
pub const AGENT_TIME: Duration = Duration::from_secs(10);

/// The result of joining.
#[derive(Debug)]
pub struct Joined {
    /// The job's segment, unchecked: [`landeck_memory::Segment::attach`] checks it.
    pub segment: OwnedFd,
    /// The identity of the joiner from now on.
    pub process: ProcessId,
    /// The connection to the agent. Keep it open while staying; to leave, say goodbye in the segment and close it. It
    /// becomes readable only when the agent and with it the job has ended.
    pub connection: OwnedFd,
}

/// The reason why a question got no proper answer.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// A child made by fork asks: the answer would belong to its parent.
    #[error(transparent)]
    Forked(#[from] GateError),
    /// There is no such socket: there never was one, or its job has ended.
    #[error("nobody listens at {address}: the job has ended, or runs in another network namespace")]
    NobodyThere {
        /// The address.
        address: String,
    },
    /// Another user listens there.
    #[error(
        "user {uid} listens at {address}, which is meant for another user: nothing was sent; \
         ask the administrator who that is"
    )]
    Stranger {
        /// The address.
        address: String,
        /// The user.
        uid: u32,
    },
    /// No answer came in time.
    #[error(
        "no answer from {address} within {timeout:?}: its job may be stopped; \
         continue it, or wait longer"
    )]
    Silent {
        /// The address.
        address: String,
        /// How long the answer was awaited.
        timeout: Duration,
    },
    /// The answer has an unknown form.
    #[error("{address} answers in an unknown form: use the same version of Landeck on both sides")]
    Garbled {
        /// The address.
        address: String,
    },
    /// The kernel refused a system call.
    #[error("cannot talk to {address}: {source}")]
    System {
        /// The address.
        address: String,
        /// The kernel's error.
        source: io::Error,
    },
}

impl ExchangeError {
    /// The error for an answer of an unknown form.
    pub(crate) fn garbled(address: &Address) -> Self {
        Self::Garbled { address: address.to_string() }
    }
}

/// The reason why a process was not let into a job.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// The agent could not be reached.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// Nothing is published under the name.
    #[error(
        "nothing is published as \"{name}\": start the job that publishes it first, \
         or check the spelling"
    )]
    NoSuchName {
        /// The name.
        name: String,
    },
    /// The text cannot be a name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The agent refused.
    #[error("cannot join the job: {0}")]
    Refused(Verdict),
}

/// The reason why a name was not published, or not taken back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The agent could not be reached.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// Another process has the name.
    #[error("the name \"{name}\" is taken by process {pid}: choose another, or wait until it ends")]
    InUse {
        /// The name.
        name: String,
        /// The PID of the process that published it.
        pid: u32,
    },
    /// The text cannot be a name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The agent refused.
    #[error("the name \"{name}\" is not published: {verdict}")]
    Refused {
        /// The name.
        name: String,
        /// The reason.
        verdict: Verdict,
    },
}

/// The reason why a process was not started in a running job, or has not joined it.
#[derive(Debug, thiserror::Error)]
pub enum StartOnError {
    /// The agent could not be reached.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// The launcher or the agent refused.
    #[error(transparent)]
    Refused(#[from] StartRefusal),
}

/// Joins the job of a host as a guest.
///
/// # Errors
/// [`JoinError`].
pub fn join(host: SegmentId, timeout: Duration) -> Result<Joined, JoinError> {
    at_job(host, |address| {
        join_at(address, Question::Join { wanted: None }, timeout).map(|(_, joined)| joined)
    })
}

/// Lets the agent watch this process, which replaces one that was started above it. Keep the connection for as long as
/// this process stays.
///
/// # Errors
/// [`JoinError`].
pub(crate) fn be_found(process: ProcessId, timeout: Duration) -> Result<OwnedFd, JoinError> {
    at_job(process.segment, |address| {
        let exchanged = exchange(address, &Question::Found { process }, timeout)?;
        match exchanged.answer.verdict {
            Verdict::Granted => Ok(exchanged.connection),
            verdict => Err(JoinError::Refused(verdict)),
        }
    })
}

/// Has the agent look at what this process, whose identity is given, says of itself: that it has left, or takes part
/// again. Its answer comes when that is written.
///
/// # Errors
/// [`JoinError`].
pub(crate) fn say_presence(process: ProcessId, timeout: Duration) -> Result<(), JoinError> {
    at_job(process.segment, |address| {
        match exchange(address, &Question::Presence { process }, timeout)?.answer.verdict {
            Verdict::Granted => Ok(()),
            verdict => Err(JoinError::Refused(verdict)),
        }
    })
}

/// Tells the agent that this process, whose identity is given, has said something of itself. It waits for no answer:
/// the agent looks when it comes to it. Without an agent nobody is told.
pub(crate) fn tell_presence(process: ProcessId, timeout: Duration) {
    let question = Question::Presence { process }.encode();
    // An agent that cannot be reached sees the end of the process.
    let _ = at_job(process.segment, |address| {
        let connection = connect(own_uid(), address, Instant::now() + timeout, timeout)?;
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let sent = rustix::net::send(&connection, &question, flags);
        let address = || address.to_string();
        sent.map_err(|errno| ExchangeError::System { address: address(), source: errno.into() })?;
        Ok(())
    });
}

/// Asks the agent of a job. If its socket is in another network namespace, the file in the index leads to it.
fn at_job<T>(
    host: SegmentId,
    ask: impl Fn(&Address) -> Result<T, JoinError>,
) -> Result<T, JoinError> {
    let is_not_there =
        |error: &JoinError| matches!(error, JoinError::Exchange(ExchangeError::NobodyThere { .. }));
    match ask(&Address::of_job(host)) {
        Err(error) if is_not_there(&error) => {
            let entry = Index::of_user().and_then(|index| index.address(host));
            match entry.map(|entry| ask(&entry)) {
                None => Err(error),
                Some(Err(other)) if is_not_there(&other) => Err(error),
                Some(answer) => answer,
            }
        }
        answer => answer,
    }
}

/// Joins the job of a host as the process of a slot that was reserved for it.
///
/// # Errors
/// [`JoinError`].
pub fn join_as(host: SegmentId, slot: Slot, timeout: Duration) -> Result<Joined, JoinError> {
    let question = Question::Join { wanted: Some(slot) };
    join_at(&Address::of_job(host), question, timeout).map(|(_, joined)| joined)
}

/// Joins, as a guest, the job in which a name is published.
///
/// # Errors
/// [`JoinError`].
pub fn connect_name(name: &str, timeout: Duration) -> Result<(Published, Joined), JoinError> {
    let address = Address::of_public_name(&Name::new(name)?);
    join_at(&address, Question::Join { wanted: None }, timeout)
        .map_err(|error| unknown_name(name, error))
}

/// Reads what is published under a name.
///
/// # Errors
/// [`JoinError`].
pub fn look_up(name: &str, timeout: Duration) -> Result<Published, JoinError> {
    let address = Address::of_public_name(&Name::new(name)?);
    let outcome = exchange(&address, &Question::LookUp, timeout).map_err(JoinError::from);
    let exchanged = outcome.map_err(|error| unknown_name(name, error))?;
    match exchanged.answer.verdict {
        Verdict::Granted => Ok(exchanged.answer.published),
        verdict => Err(JoinError::Refused(verdict)),
    }
}

/// The segment of the job whose agent listens there, read-only, and the PID of the agent. The caller does not become
/// part of the job.
pub(crate) fn observe(address: &Address, timeout: Duration) -> Result<(OwnedFd, u32), JoinError> {
    let Exchanged { answer, passed, connection } = exchange(address, &Question::Observe, timeout)?;
    match (answer.verdict, passed) {
        (Verdict::Granted, Some(segment)) => {
            Ok((segment, peer::credentials(&connection).map_or(0, |own| own.1)))
        }
        (Verdict::Granted, None) => Err(ExchangeError::garbled(address).into()),
        (verdict, _) => Err(JoinError::Refused(verdict)),
    }
}

/// The part on this host of a job that runs on other hosts of a machine of this user. It is made if there is none. `None`: no
/// machine has such a job.
///
/// # Errors
/// [`PartError`], if no machine has the part and one of them cannot say so.
pub(crate) fn part_of(job: &str, timeout: Duration) -> Result<Option<SegmentId>, PartError> {
    let machines = Address::machine_names();
    let mut none = Ok(None);
    for machine in machines {
        match part_in(&machine, job, timeout) {
            Ok(None) => {}
            Ok(found) => return Ok(found),
            error => none = error,
        }
    }
    none
}

/// The part on this host of a job of a machine. A job without a name is the machine's own one, which begins when it is first
/// asked for.
pub(crate) fn part_in(
    machine: &str,
    job: &str,
    timeout: Duration,
) -> Result<Option<SegmentId>, PartError> {
    let address = Address::of_guests_of(machine);
    let question = Question::Part { job: job.to_owned() };
    match reply_as(own_uid(), &address, &question, timeout)? {
        (Reply::Part(PartAnswer::There(segment)), ..) => Ok(Some(segment)),
        (Reply::Part(PartAnswer::Unknown), ..) => Ok(None),
        (Reply::Part(PartAnswer::Refused(why)), ..) => {
            Err(PartError::Refused { job: job.to_owned(), machine: machine.to_owned(), why })
        }
        _ => Err(ExchangeError::garbled(&address).into()),
    }
}

/// The reason why a machine has no part of a job on this host.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PartError {
    /// The machine's daemon could not be reached.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// The job cannot come to this host.
    #[error("job {job} of machine {machine} cannot be joined on this host: {why}")]
    Refused {
        /// The job.
        job: String,
        /// The machine.
        machine: String,
        /// The reason.
        why: String,
    },
}

/// Publishes a name for a process of the host's job. It lasts as long as the process lives, or until it is taken back.
///
/// # Errors
/// [`PublishError`].
pub fn publish(
    process: ProcessId,
    name: &str,
    context: u32,
    timeout: Duration,
) -> Result<(), PublishError> {
    let text = Name::new(name)?;
    let question = Question::Publish { process, context, name: text };
    let exchanged = exchange(&Address::of_job(process.segment), &question, timeout)?;
    let in_use = |pid| PublishError::InUse { name: name.to_owned(), pid };
    match exchanged.answer.verdict {
        Verdict::Granted => Ok(()),
        Verdict::InUse if exchanged.answer.published.pid != 0 => {
            Err(in_use(exchanged.answer.published.pid))
        }
        // Another job has the name; only that job's agent knows which process.
        Verdict::InUse => match look_up(name, timeout) {
            Ok(published) => Err(in_use(published.pid)),
            Err(JoinError::Exchange(error)) => Err(error.into()),
            Err(_) => Err(PublishError::Refused { name: name.to_owned(), verdict: Verdict::InUse }),
        },
        verdict => Err(PublishError::Refused { name: name.to_owned(), verdict }),
    }
}

/// Takes back a name that the process has published.
///
/// # Errors
/// [`PublishError`].
pub fn unpublish(process: ProcessId, name: &str, timeout: Duration) -> Result<(), PublishError> {
    let question = Question::Unpublish { process, name: Name::new(name)? };
    let exchanged = exchange(&Address::of_job(process.segment), &question, timeout)?;
    match exchanged.answer.verdict {
        Verdict::Granted => Ok(()),
        verdict => Err(PublishError::Refused { name: name.to_owned(), verdict }),
    }
}

/// Has the launcher of the asking process's job start a process, and waits until it has joined. `timeout` is the time
/// for the answer; the wish says how long joining may take.
///
/// # Errors
/// [`StartOnError`].
pub fn start(wish: StartWish, timeout: Duration) -> Result<(ProcessId, u32), StartOnError> {
    let address = Address::of_job(wish.asker.segment);
    let question = Question::Start(Box::new(wish));
    let length = question.encode().len();
    if length > WISH_BYTES_MAX {
        return Err(StartRefusal::TooLong(length).into());
    }
    match reply_as(own_uid(), &address, &question, timeout)? {
        (Reply::Start(StartAnswer::Joined { process, pid }), ..) => Ok((process, pid)),
        (Reply::Start(StartAnswer::Refused(refusal)), ..) => Err(refusal.into()),
        (Reply::Plain(Answer { verdict: Verdict::TooMany, .. }), ..) => {
            Err(StartRefusal::TooMany.into())
        }
        _ => Err(ExchangeError::garbled(&address).into()),
    }
}

/// Sends an answer, with a descriptor if there is one. The socket never blocks; an answer that does not fit means a
/// peer that asks without reading.
pub(crate) fn send_answer(
    connection: &OwnedFd,
    answer: &[u8],
    passed: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let passed: Vec<_> = passed.into_iter().collect();
    Ok(passing::pass(connection, answer, &passed, SendFlags::DONTWAIT)?)
}

/// The outcome of one question.
struct Exchanged {
    answer: Answer,
    passed: Option<OwnedFd>,
    connection: OwnedFd,
}

fn join_at(
    address: &Address,
    question: Question,
    timeout: Duration,
) -> Result<(Published, Joined), JoinError> {
    let Exchanged { answer, passed, connection } = exchange(address, &question, timeout)?;
    match (answer.verdict, passed) {
        (Verdict::Granted, Some(segment)) => {
            Ok((answer.published, Joined { segment, process: answer.joined, connection }))
        }
        (Verdict::Granted, None) => Err(ExchangeError::garbled(address).into()),
        (verdict, _) => Err(JoinError::Refused(verdict)),
    }
}

fn unknown_name(name: &str, error: JoinError) -> JoinError {
    match error {
        JoinError::Exchange(ExchangeError::NobodyThere { .. }) => {
            JoinError::NoSuchName { name: name.to_owned() }
        }
        other => other,
    }
}

fn exchange(
    address: &Address,
    question: &Question,
    timeout: Duration,
) -> Result<Exchanged, ExchangeError> {
    exchange_as(own_uid(), address, question, timeout)
}

/// Asks a question and trusts only an answer of `trusted_uid`.
fn exchange_as(
    trusted_uid: u32,
    address: &Address,
    question: &Question,
    timeout: Duration,
) -> Result<Exchanged, ExchangeError> {
    match reply_as(trusted_uid, address, question, timeout)? {
        (Reply::Plain(answer), passed, connection) => Ok(Exchanged { answer, passed, connection }),
        (Reply::Object(_) | Reply::Start(_) | Reply::Part(_), ..) => {
            Err(ExchangeError::garbled(address))
        }
    }
}

/// Asks a question about an object; returns the answer, and its descriptor if it has one.
pub(crate) fn exchange_about(
    address: &Address,
    question: &ObjectQuestion,
    timeout: Duration,
) -> Result<(ObjectAnswer, Option<OwnedFd>), ExchangeError> {
    match reply_as(own_uid(), address, &Question::Object(question.clone()), timeout)? {
        (Reply::Object(answer), passed, _) => Ok((answer, passed)),
        (Reply::Plain(_) | Reply::Start(_) | Reply::Part(_), ..) => {
            Err(ExchangeError::garbled(address))
        }
    }
}

fn reply_as(
    trusted_uid: u32,
    address: &Address,
    question: &Question,
    timeout: Duration,
) -> Result<(Reply, Option<OwnedFd>, OwnedFd), ExchangeError> {
    let give_up = Instant::now() + timeout;
    let connection = connect(trusted_uid, address, give_up, timeout)?;
    let asked = ask(&connection, &question.encode(), give_up);
    let (bytes, passed) = asked.map_err(|error| failed(address, timeout, error))?;
    if bytes.is_empty() {
        return Err(ExchangeError::NobodyThere { address: address.to_string() });
    }
    let reply = Reply::decode(&bytes).map_err(|_| ExchangeError::garbled(address))?;
    Ok((reply, passed, connection))
}

/// Connects to an agent of `trusted_uid`.
fn connect(
    trusted_uid: u32,
    address: &Address,
    give_up: Instant,
    timeout: Duration,
) -> Result<OwnedFd, ExchangeError> {
    GateError::refuse_children()?;
    let failed = |error| failed(address, timeout, error);
    let connection = dial(address, give_up).map_err(failed)?;
    let (uid, _) = peer::credentials(&connection).map_err(failed)?;
    if uid != trusted_uid {
        return Err(ExchangeError::Stranger { address: address.to_string(), uid });
    }
    Ok(connection)
}

/// The error for a system call at a connection to an agent.
fn failed(address: &Address, timeout: Duration, source: io::Error) -> ExchangeError {
    let address = address.to_string();
    match source.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            ExchangeError::Silent { address, timeout }
        }
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => {
            ExchangeError::NobodyThere { address }
        }
        _ => ExchangeError::System { address, source },
    }
}

/// Sends a question and waits for the answer. An empty answer means that the other end has closed.
fn ask(
    connection: &OwnedFd,
    question: &[u8],
    give_up: Instant,
) -> io::Result<(Vec<u8>, Option<OwnedFd>)> {
    match uninterrupted(|| Ok(rustix::net::send(connection, question, SendFlags::NOSIGNAL)?)) {
        Ok(_) => {}
        // It may have answered nevertheless, without having read the question.
        Err(error) if is_closed(&error) => {}
        Err(error) => return Err(error),
    }
    let mut answer = [0; Reply::BYTES_MAX + 1];
    let (count, passed) = uninterrupted(|| {
        set_socket_timeout(connection, Timeout::Recv, Some(remaining(give_up)?))?;
        match passing::receive(connection, &mut answer, RecvFlags::empty()) {
            // It closed without having read. The kernel reports that once, before data that it may have sent.
            Err(Errno::CONNRESET) => Err(io::ErrorKind::Interrupted.into()),
            received => Ok(received?),
        }
    })?;
    Ok((answer[..count].to_vec(), passed.into_iter().next()))
}

fn is_closed(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::is_listened_to;

    /// An answer comes at once where processors are free.
    const PATIENCE: Duration = Duration::from_secs(100);

    #[test]
    fn names_are_bounded_and_printable() {
        let longer = "n".repeat(NAME_BYTES_MAX + 1);
        for name in ["", "a\nb", "a\0b", &longer] {
            let error = look_up(name, Duration::from_secs(1)).unwrap_err();
            assert!(matches!(error, JoinError::Name(_)), "{error}");
        }
    }

    #[test]
    fn nobody_there_is_said_at_once() {
        let error = join(SegmentId(u64::from(std::process::id())), PATIENCE).unwrap_err();
        assert!(matches!(error, JoinError::Exchange(ExchangeError::NobodyThere { .. })), "{error}");
        let error = look_up("never published by anybody", PATIENCE).unwrap_err();
        assert!(matches!(error, JoinError::NoSuchName { .. }), "{error}");
    }

    #[test]
    fn another_users_socket_is_not_talked_to() {
        let address = Address::Abstract(format!("landeck-test-stranger-{}", std::process::id()));
        let _listener = address.listen().unwrap();
        let timeout = PATIENCE;
        let outcome = exchange_as(own_uid() + 1, &address, &Question::LookUp, timeout);
        assert!(matches!(outcome, Err(ExchangeError::Stranger { .. })));
    }

    #[test]
    fn a_path_of_any_length_is_an_address() {
        let base = std::env::temp_dir().join(format!("landeck-test-path-{}", std::process::id()));
        let directory = base.join("d".repeat(120));
        std::fs::create_dir_all(&directory).unwrap();
        for directory in [&base, &directory] {
            let address = Address::File(directory.join("socket"));
            assert!(matches!(
                exchange(&address, &Question::LookUp, PATIENCE),
                Err(ExchangeError::NobodyThere { .. })
            ));
            let listener = address.listen().unwrap();
            assert!(is_listened_to(&address));
            drop(listener);
            // A child that another test is starting holds it open until it executes its program.
            while is_listened_to(&address) {
                std::thread::yield_now();
            }
        }
        std::fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn silence_ends_at_the_deadline() {
        let address = Address::Abstract(format!("landeck-test-silent-{}", std::process::id()));
        let _listener = address.listen().unwrap();
        let timeout = Duration::from_millis(30);
        let outcome = exchange(&address, &Question::LookUp, timeout);
        assert!(matches!(outcome, Err(ExchangeError::Silent { .. })));
    }
}
