//! Machines that stay: their names, the questions to them, and their answers.

use std::fmt;
use std::io;
use std::str::FromStr;

use landeck_joining::address::Address;
use landeck_joining::machines::MachineChoiceError;
pub use landeck_joining::machines::VARIABLE;
use landeck_protocols::hosts::BookingWish;
pub use landeck_protocols::hosts::{BookingOrder, HostLoad, HostPressure, LinkSight};
use landeck_wire::{HostNumber, JobId};
use serde::{Deserialize, Serialize};

use crate::gathering::{AdmissionRefusal, Admitted};

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
    /// The address at which the machine's daemon on this host listens for those who look at its jobs.
    pub fn look_address(&self) -> Address {
        Address::of_looks_at(&self.0)
    }

    /// The address at which the machine's daemon on this host listens.
    pub fn address(&self) -> Address {
        Address::of_machine(&self.0)
    }

    /// Whether a keeper starts its daemon on this host again when that is killed.
    pub fn is_kept(&self) -> bool {
        Address::is_kept(&self.0)
    }

    /// The address that the keeper of its daemon has, so that commands wait for a daemon that was killed.
    pub fn address_of_keeper(&self) -> Address {
        Address::of_keeper_of(&self.0)
    }

    /// The address at which it listens for processes that want to join jobs of the machine.
    pub fn address_of_guests(&self) -> Address {
        Address::of_guests_of(&self.0)
    }
}

/// A question to a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MachineQuestion {
    /// Which hosts and jobs are there?
    Status,
    /// Place hosts in networks and sites by this description.
    Describe {
        /// The content of its file.
        text: String,
    },
    /// By which description are hosts placed?
    Description,
    /// Which routes lead from a host to the others?
    Routes {
        /// The host; `None` for that of the caller.
        from: Option<String>,
    },
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
    /// End a job, as a signal to its launcher does.
    End {
        /// The job.
        job: JobId,
    },
    /// Which job is called so, or has an identity that begins so?
    Find {
        /// The word for the job.
        job: String,
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
    /// Which transitions has the daemon of this host noted?
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
    /// The content of the file of the description; empty if there is none.
    Description(String),
    /// The routes from a host to the others, the best to each first; or why there is no such host.
    Routes(Result<Vec<RouteStatus>, String>),
    /// The daemon was admitted, or not.
    Admitted(Result<Admitted, AdmissionRefusal>),
    /// The hosts of the job, in the order of its ranks; or the reason why it cannot begin now.
    Booked(Result<Vec<BookedHost>, String>),
    /// The job and the host of its launcher, if there is one; or why it is unclear which one is meant.
    Found(Result<Option<(JobId, HostNumber)>, String>),
    /// It was done, or why not.
    Done(Result<(), String>),
    /// The host leaves the machine, unless these jobs are still there; or why it cannot.
    Removing(Result<Vec<JobStatus>, String>),
    /// The notes of the daemon, the oldest first, each with its time by the host's clock in nanoseconds since 1970.
    Log(Vec<(u64, String)>),
    /// The founder is not reached, for this reason, so nothing else is known or done.
    CutOff {
        /// The reason.
        why: String,
    },
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
    /// The links between its hosts that a job has had measured.
    pub links: Vec<LinkStatus>,
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
    /// Its load, about a second old; `None` if it has told none or takes no part.
    pub load: Option<HostLoad>,
    /// Its site; empty if it has none.
    pub site: String,
    /// Whether it passes connections on between its networks.
    pub is_gateway: bool,
    /// The numbers of its networks in the description.
    pub networks: Vec<u16>,
}

/// A route between two hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteStatus {
    /// The host that it begins at.
    pub from: HostNumber,
    /// The host that it leads to.
    pub to: HostNumber,
    /// The gateways, the nearest first; none if both hosts reach each other.
    pub gateways: Vec<HostNumber>,
    /// The time that 1 MiB takes on all its links, as the description says, in nanoseconds.
    pub mib_ns: u64,
    /// The step of it, from one host to the next, on which no connection was opened a moment ago.
    pub broken: Option<(HostNumber, HostNumber)>,
}

/// A link between two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkStatus {
    /// Both hosts.
    pub hosts: (HostNumber, HostNumber),
    /// Its latency, and what else was found.
    pub sight: LinkSight,
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
    /// Its hosts.
    pub hosts: Vec<JobHost>,
    /// The time since it has booked its processors, in milliseconds.
    pub age_ms: u64,
}

/// A host of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobHost {
    /// Its number.
    pub number: HostNumber,
    /// Its name.
    pub name: String,
    /// The processes of the job there.
    pub processes: u32,
}

impl JobStatus {
    /// The names of its hosts, with blanks between them.
    pub fn host_names(&self) -> String {
        let names: Vec<&str> = self.hosts.iter().map(|host| host.name.as_str()).collect();
        names.join(" ")
    }
}

/// A host that a job has booked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BookedHost {
    /// Its number.
    pub number: HostNumber,
    /// Its name.
    pub name: String,
    /// Its site; empty if it has none.
    pub site: String,
    /// The processes there.
    pub processes: u32,
    /// The cores that the job has there for itself, by their numbers on the host; none if the host is oversubscribed.
    pub cores: Vec<u16>,
}

/// The reason why a machine gives no answer.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// None is meant.
    #[error(transparent)]
    Choice(#[from] MachineChoiceError),
    /// A name is impossible.
    #[error(transparent)]
    Name(#[from] MachineNameError),
    /// Its founder is not reached.
    #[error(
        "this host is cut off from {name}, and comes back by itself once the founder is reached: {why}"
    )]
    CutOff {
        /// The machine.
        name: MachineName,
        /// The reason.
        why: String,
    },
    /// Its daemon is another release than this program.
    #[error(
        "the daemon of {name} on this host is release {theirs}, and this command is release {ours}: use the landeck of \
         release {theirs}, or stop the machine with that and start it with this one"
    )]
    Release {
        /// The machine.
        name: MachineName,
        /// The release of its daemon.
        theirs: String,
        /// The release of this program.
        ours: String,
    },
    /// Its daemon serves no further caller.
    #[error("the daemon of {name} on this host serves no further command or launcher: {why}")]
    Refused {
        /// The machine.
        name: MachineName,
        /// The reason.
        why: String,
    },
    /// Its daemon does not answer.
    #[error("the daemon of {name} on this host does not answer: {source}")]
    Silent {
        /// The machine.
        name: MachineName,
        /// The kernel's error.
        source: io::Error,
    },
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
}
