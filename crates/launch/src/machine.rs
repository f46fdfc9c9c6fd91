//! The machines of this user, as commands and launchers reach them: the daemon on this host answers for its machine.
//!
//! A machine has a name. Its daemons listen at an abstract Unix socket with that name on each host, and only their user may
//! ask. A daemon that does not number the words of its machine passes the question on to the one that does, the founder's.

use std::fmt;
use std::io;
use std::str::FromStr;
use std::time::{Duration, Instant};

use landeck_host::message_stream::MessageStream;
use landeck_joining::address::Address;
use landeck_protocols::hosts::BookingWish;
use landeck_wire::{HostNumber, JobId};
use serde::{Deserialize, Serialize};

use crate::gathering::{AdmissionRefusal, Admitted};
use crate::messages::{ArbiterReport, ToArbiter};

/// The variable that names a machine.
pub const VARIABLE: &str = "LANDECK_MACHINE";
/// How long a machine has to answer.
const ANSWER_TIME: Duration = Duration::from_secs(15);
/// How long a machine has to end. Its jobs have ten seconds of it.
const END_TIME: Duration = Duration::from_secs(60);
/// How long a command waits that asks again.
const ASK_AGAIN: Duration = Duration::from_millis(50);
/// The longest name of a machine.
const NAME_BYTES_MAX: usize = 40;

/// The name of a machine: letters, digits, `-`, `_` and `.`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineName(String);

/// The error for a text that is no name of a machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no name of a machine: use up to {NAME_BYTES_MAX} letters, digits and -_. beginning with a letter or digit"
)]
pub struct MachineNameError(String);

impl FromStr for MachineName {
    type Err = MachineNameError;

    fn from_str(text: &str) -> Result<Self, MachineNameError> {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        let begins = text.starts_with(|letter: char| letter.is_ascii_alphanumeric());
        match begins && text.len() <= NAME_BYTES_MAX && text.chars().all(is_plain) {
            true => Ok(Self(text.to_owned())),
            false => Err(MachineNameError(text.to_owned())),
        }
    }
}

impl fmt::Display for MachineName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl MachineName {
    /// The address at which the machine's daemon on this host listens.
    pub fn address(&self) -> Address {
        Address::of_machine(&self.0)
    }
}

/// A question to a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MachineQuestion {
    /// Which hosts and jobs are there?
    Status,
    /// Admit the daemon that has introduced itself by this line, and is on one of these hosts.
    Admit {
        /// The names of the hosts.
        names: Vec<String>,
        /// The line.
        line: String,
    },
    /// Give processors to a job, whose launcher asks.
    Book {
        /// The job.
        job: JobId,
        /// Its name.
        name: String,
        /// The processors.
        wish: BookingWish,
    },
    /// Let no further job come to a host.
    Drain {
        /// The host.
        host: String,
        /// The reason, for people.
        reason: String,
    },
    /// Let jobs come to a host again.
    Resume {
        /// The host.
        host: String,
    },
    /// Take a host out of the machine, when no job is there.
    Remove {
        /// The host.
        host: String,
        /// Whether the jobs there are ended first.
        ends_jobs: bool,
    },
    /// What has the daemon of this host noted?
    Log,
    /// End the machine.
    Stop {
        /// Whether its jobs are ended first. Otherwise it stays while there are any.
        ends_jobs: bool,
    },
}

/// The answer of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MachineAnswer {
    /// The hosts and jobs.
    Status(Box<MachineStatus>),
    /// The daemon was admitted, or not.
    Admitted(Result<Admitted, AdmissionRefusal>),
    /// The hosts of the job, in the order of its ranks; or the reason why it cannot begin now.
    Booked(Result<Vec<BookedHost>, String>),
    /// It was done, or why not.
    Done(Result<(), String>),
    /// The host leaves the machine, unless these jobs are still there; or why it cannot.
    Removing(Result<Vec<JobStatus>, String>),
    /// The notes of the daemon, the oldest first, each with its time by the host's clock in nanoseconds since 1970.
    Log(Vec<(u64, String)>),
    /// The machine ends, or stays because of these jobs. A conversation ends when the daemon has ended.
    Stopping(Result<(), Vec<JobStatus>>),
}

/// The state of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineStatus {
    /// Its name.
    pub name: MachineName,
    /// The release of its daemons.
    pub release: String,
    /// Its hosts, the founder's first.
    pub hosts: Vec<HostStatus>,
    /// Its jobs, the oldest first.
    pub jobs: Vec<JobStatus>,
}

/// The state of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostStatus {
    /// Its number.
    pub number: HostNumber,
    /// Its name.
    pub name: String,
    /// Its standing.
    pub state: HostState,
    /// The time since it has that state, in milliseconds.
    pub since_ms: u64,
    /// Its cores.
    pub cores: u16,
    /// The processes of jobs there.
    pub processes: u32,
    /// The reason for the state, if there is one.
    pub why: String,
}

/// The standing of a host in a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostState {
    /// It was admitted, and its daemon is not connected yet.
    Joining,
    /// It takes part.
    Up,
    /// It takes part, and no further job comes there.
    Draining,
    /// It does not answer.
    Lost,
    /// Nothing of it runs any more.
    Gone,
}

impl HostState {
    /// Whether the host takes part.
    pub const fn is_up(self) -> bool {
        matches!(self, Self::Up | Self::Draining)
    }

    /// The word for people and for JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Joining => "joining",
            Self::Up => "up",
            Self::Draining => "draining",
            Self::Lost => "lost",
            Self::Gone => "gone",
        }
    }
}

/// The state of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobStatus {
    /// The job.
    pub job: JobId,
    /// Its name.
    pub name: String,
    /// The hosts with their processes.
    pub hosts: Vec<(String, u32)>,
    /// The time since it has booked its processors, in milliseconds.
    pub age_ms: u64,
}

impl fmt::Display for JobStatus {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<&str> = self.hosts.iter().map(|(host, _)| host.as_str()).collect();
        write!(out, "{} on {}", self.name, hosts.join(" "))
    }
}

/// A host that a job has booked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BookedHost {
    /// Its number.
    pub number: HostNumber,
    /// Its name.
    pub name: String,
    /// The processes there.
    pub processes: u32,
    /// The cores that the job has there for itself, by their numbers on the host; none if the host is oversubscribed.
    pub seats: Vec<u16>,
}

/// The reason why a machine gives no answer.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// No machine of this user has a daemon on this host.
    #[error("no machine of this user is on this host; landeck vm start makes one")]
    None,
    /// There are several.
    #[error("this host is in several machines ({}): name one with --machine or {VARIABLE}", .0.join(", "))]
    Several(Vec<String>),
    /// None has this name.
    #[error("no machine {name} of this user is on this host{}", there_are(.there))]
    Unknown {
        /// The name.
        name: String,
        /// The names of those that there are.
        there: Vec<String>,
    },
    /// A name is impossible.
    #[error(transparent)]
    Name(#[from] MachineNameError),
    /// Its daemon does not answer.
    #[error("the daemon of {name} on this host does not answer: {source}")]
    Silent {
        /// The machine.
        name: MachineName,
        /// The kernel's error.
        source: io::Error,
    },
}

fn there_are(names: &[String]) -> String {
    match names {
        [] => String::new(),
        names => format!(" (there is {})", names.join(", ")),
    }
}

/// The machine that is meant: the one with this name, or the only one on this host.
///
/// # Errors
/// [`MachineError`] if there is none, or if it is unclear which one is meant.
pub fn find(name: Option<&str>) -> Result<MachineName, MachineError> {
    let there = Address::machine_names();
    match name {
        Some(name) => {
            let name = name.parse::<MachineName>()?;
            match there.contains(&name.0) {
                true => Ok(name),
                false => Err(MachineError::Unknown { name: name.0, there }),
            }
        }
        None => match there.as_slice() {
            [] => Err(MachineError::None),
            [only] => Ok(only.parse::<MachineName>()?),
            _ => Err(MachineError::Several(there)),
        },
    }
}

/// A conversation with the daemon of a machine on this host.
#[derive(Debug)]
pub struct MachineCall {
    name: MachineName,
    stream: MessageStream<ArbiterReport, ToArbiter>,
}

impl MachineCall {
    /// Calls the daemon of a machine.
    ///
    /// # Errors
    /// [`MachineError::Silent`].
    pub fn begin(name: MachineName) -> Result<Self, MachineError> {
        let stream = name.address().connect_stream().and_then(MessageStream::new);
        match stream {
            Ok(stream) => Ok(Self { name, stream }),
            Err(source) => Err(MachineError::Silent { name, source }),
        }
    }

    /// The machine.
    pub const fn name(&self) -> &MachineName {
        &self.name
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// [`MachineError::Silent`].
    pub fn ask(&mut self, question: MachineQuestion) -> Result<MachineAnswer, MachineError> {
        self.stream.send(&ToArbiter::Ask(question));
        let until = Instant::now() + ANSWER_TIME;
        while let Some(report) = self.stream.wait_next(Some(until)) {
            if let ArbiterReport::Answered(answer) = report {
                return Ok(answer);
            }
        }
        let kind = match self.stream.has_ended() {
            true => io::ErrorKind::ConnectionReset,
            false => io::ErrorKind::TimedOut,
        };
        Err(MachineError::Silent { name: self.name.clone(), source: kind.into() })
    }

    /// Asks which hosts and jobs are there.
    ///
    /// # Errors
    /// [`MachineError::Silent`].
    pub fn status(&mut self) -> Result<MachineStatus, MachineError> {
        match self.ask(MachineQuestion::Status)? {
            MachineAnswer::Status(status) => Ok(*status),
            _ => Err(self.confused()),
        }
    }

    /// Books processors for a job, and waits for them if that is wished. They are free again when this conversation ends, or the job that it starts.
    ///
    /// # Errors
    /// [`MachineError::Silent`]. The inner error is the reason why the job cannot begin now.
    pub fn book(
        &mut self,
        job: JobId,
        name: String,
        wish: BookingWish,
    ) -> Result<Result<Vec<BookedHost>, String>, MachineError> {
        loop {
            match self.ask(MachineQuestion::Book { job, name: name.clone(), wish })? {
                // It has its place in the order of those that wait, as long as this conversation lasts.
                MachineAnswer::Booked(Err(_)) if wish.waits => std::thread::sleep(ASK_AGAIN),
                MachineAnswer::Booked(outcome) => return Ok(outcome),
                _ => return Err(self.confused()),
            }
        }
    }

    /// Ends the machine, and waits until its daemon on this host has ended.
    ///
    /// # Errors
    /// [`MachineError::Silent`]. The inner error has the jobs because of which it stays.
    pub fn stop(mut self, ends_jobs: bool) -> Result<Result<(), Vec<JobStatus>>, MachineError> {
        match self.ask(MachineQuestion::Stop { ends_jobs })? {
            MachineAnswer::Stopping(Ok(())) => {
                let until = Some(Instant::now() + END_TIME);
                while self.stream.wait_next(until).is_some() {}
                Ok(Ok(()))
            }
            MachineAnswer::Stopping(stays) => Ok(stays),
            _ => Err(self.confused()),
        }
    }

    /// Asks for something that is done or not.
    ///
    /// # Errors
    /// [`MachineError::Silent`]. The inner error is the reason why it was not done.
    pub fn ask_to(
        &mut self,
        question: MachineQuestion,
    ) -> Result<Result<(), String>, MachineError> {
        match self.ask(question)? {
            MachineAnswer::Done(outcome) => Ok(outcome),
            _ => Err(self.confused()),
        }
    }

    /// Asks for the notes of the daemon on this host.
    ///
    /// # Errors
    /// [`MachineError::Silent`].
    pub fn log(&mut self) -> Result<Vec<(u64, String)>, MachineError> {
        match self.ask(MachineQuestion::Log)? {
            MachineAnswer::Log(lines) => Ok(lines),
            _ => Err(self.confused()),
        }
    }

    /// Takes a host out of the machine, and waits until no job is there and it has left. `waits` gets the jobs that are
    /// waited for, once.
    ///
    /// # Errors
    /// [`MachineError::Silent`]. The inner error is the reason why the host cannot be removed.
    pub fn remove(
        &mut self,
        host: &str,
        ends_jobs: bool,
        waits: impl FnOnce(&[JobStatus]),
    ) -> Result<Result<(), String>, MachineError> {
        let mut waits = Some(waits);
        loop {
            let question = MachineQuestion::Remove { host: host.to_owned(), ends_jobs };
            match self.ask(question)? {
                MachineAnswer::Removing(Ok(jobs)) if jobs.is_empty() => break,
                MachineAnswer::Removing(Ok(jobs)) => {
                    if let Some(waits) = waits.take() {
                        waits(&jobs);
                    }
                }
                MachineAnswer::Removing(Err(why)) => return Ok(Err(why)),
                _ => return Err(self.confused()),
            }
            std::thread::sleep(ASK_AGAIN);
        }
        while self.status()?.hosts.iter().any(|known| known.name == host) {
            std::thread::sleep(ASK_AGAIN);
        }
        Ok(Ok(()))
    }

    /// The stream, behind the questions: it is that of a launcher now.
    pub(crate) fn into_stream(self) -> MessageStream<ArbiterReport, ToArbiter> {
        self.stream
    }

    /// The error for an answer to another question.
    pub fn confused(&self) -> MachineError {
        MachineError::Silent { name: self.name.clone(), source: io::ErrorKind::InvalidData.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_machines_are_short_and_plain() {
        for name in ["lab", "lab-2", "a.b_c", "7"] {
            assert_eq!(name.parse::<MachineName>().unwrap().to_string(), name);
        }
        for name in ["", "-x", "a b", "a/b", "é", &"a".repeat(41)] {
            assert!(name.parse::<MachineName>().is_err(), "{name}");
        }
    }

    #[test]
    fn a_machine_is_found_by_its_name_or_by_being_alone() {
        let own = format!("t{}", std::process::id());
        assert!(matches!(find(Some(&own)), Err(MachineError::Unknown { .. })));
        let name: MachineName = own.parse().unwrap();
        let listener = name.address().listen_for_streams().unwrap();
        assert_eq!(find(Some(&own)).unwrap(), name);
        match find(None) {
            Ok(only) => assert_eq!(only, name),
            Err(MachineError::Several(names)) => assert!(names.contains(&own)),
            Err(error) => panic!("{error}"),
        }
        drop(listener);
        assert!(MachineCall::begin(name).is_err());
    }
}
