//! The pictures of a job's other hosts, for which an observer asks the daemon of its own host.
//!
//! Each daemon listens at an abstract Unix socket for each part of a job ([`look_socket_name`]). An observer sends a
//! [`LookRequest`], the daemon asks the other daemons, and answers with one [`LookAnswer`] for each of those hosts and a
//! last one. Both ends are of one release, so the messages need no version besides its name.

use std::io;
use std::time::{Duration, Instant};

use landeck_host::message_stream::MessageStream;
use landeck_joining::address::Address;
use landeck_wire::{HostNumber, JobId, ProcessId, SegmentId};
use serde::{Deserialize, Serialize};

use crate::host_picture::HostPicture;
use crate::picture::{MissingHost, MissingPicture};

/// How long a daemon waits for the picture of another host.
pub const PICTURE_TIME: Duration = Duration::from_secs(1);
/// How long it waits for stacks, for which another host asks a debugger.
pub const STACKS_TIME: Duration = Duration::from_secs(35);
/// How long an observer waits for stacks.
const STACKS_ANSWER_TIME: Duration = Duration::from_secs(36);
/// How long an observer waits for the daemon of its own host, which itself waits for others.
const ANSWER_TIME: Duration = Duration::from_millis(1_500);
/// How long it waits for a daemon that was silent before.
const SECOND_ANSWER_TIME: Duration = Duration::from_millis(100);
/// The release of this program.
const RELEASE: &str = env!("CARGO_PKG_VERSION");

/// The name of the abstract socket at which observers reach the daemon of a segment.
pub fn look_socket_name(segment: SegmentId) -> String {
    format!("landeckd-{}-{segment}-look", rustix::process::geteuid().as_raw())
}

/// The content of an observer's question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LookWish {
    /// Pictures without the kernel's figures and the boards.
    Glance,
    /// Whole pictures.
    Pictures,
    /// The stacks of these processes.
    Stacks(Vec<ProcessId>),
    /// The logs of all daemons of the job, that of this host as well.
    Logs,
}

/// A line of a daemon's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// The time by the clock of its host, in nanoseconds since 1970.
    pub at_ns: u64,
    /// Its text.
    pub text: String,
}

/// An observer's question about a job's other hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LookRequest {
    /// The release of the observer.
    pub release: String,
    /// The number of the request, which its answers repeat.
    pub number: u32,
    /// The job, at the socket of a machine; that of a part stands for its job.
    pub job: Option<LookedAt>,
    /// The content.
    pub wish: LookWish,
}

/// A job of a machine that has no part on the observer's host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LookedAt {
    /// The job.
    pub job: JobId,
    /// The numbers and names of its hosts.
    pub hosts: Vec<(HostNumber, String)>,
}

impl LookRequest {
    /// Whether an observer of another release asks, whose answers may have another form.
    pub fn is_of_other_release(&self) -> bool {
        self.release != RELEASE
    }
}

/// A part of the daemon's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum LookAnswer {
    /// The picture of one host, or the reason why it is missing.
    Host {
        /// The number of the request.
        request: u32,
        /// The picture.
        outcome: Box<Result<HostPicture, MissingHost>>,
    },
    /// The stacks of processes of one host.
    Stacks {
        /// The number of the request.
        request: u32,
        /// The stacks.
        texts: Vec<(ProcessId, String)>,
    },
    /// The log of the daemon of one host.
    Log {
        /// The number of the request.
        request: u32,
        /// The name of the host.
        host: String,
        /// Its lines, the oldest first.
        lines: Vec<LogLine>,
    },
    /// The request is answered.
    Complete {
        /// The number of the request.
        request: u32,
    },
}

/// An observer's connection to the daemon of its host.
#[derive(Debug)]
pub struct FarPictures {
    address: Address,
    job: Option<LookedAt>,
    stream: Option<MessageStream<LookAnswer, LookRequest>>,
    last_request: u32,
    /// When the daemon was first asked without an answer.
    silent_since: Option<Instant>,
}

/// The answers of one request.
#[derive(Debug, Default)]
pub struct FarAnswers {
    /// The pictures that have come.
    pub pictures: Vec<HostPicture>,
    /// The hosts that have sent none.
    pub missing: Vec<MissingHost>,
    /// The stacks that have come.
    pub stacks: Vec<(ProcessId, String)>,
    /// The logs that have come, with the names of their hosts.
    pub logs: Vec<(String, Vec<LogLine>)>,
    /// How long the daemon of this host has been silent, if it has not answered the whole request.
    pub own_daemon_silent: Option<Duration>,
}

impl FarPictures {
    /// Prepares to ask about the job with this segment.
    pub fn new(segment: SegmentId) -> Self {
        Self::at(Address::Abstract(look_socket_name(segment)), None)
    }

    /// Prepares to ask about a job that has no part on this host, at the socket of its machine.
    pub fn in_machine(address: Address, job: LookedAt) -> Self {
        Self::at(address, Some(job))
    }

    const fn at(address: Address, job: Option<LookedAt>) -> Self {
        Self { address, job, stream: None, last_request: 0, silent_since: None }
    }

    /// Asks for the pictures of all other hosts, and waits a limited time for them.
    pub fn ask(&mut self, is_glance: bool) -> FarAnswers {
        self.send(if is_glance { LookWish::Glance } else { LookWish::Pictures }, ANSWER_TIME)
    }

    /// Asks for the stacks of processes on other hosts, and waits a limited time for them.
    pub fn ask_for_stacks(&mut self, processes: Vec<ProcessId>) -> FarAnswers {
        self.send(LookWish::Stacks(processes), STACKS_ANSWER_TIME)
    }

    /// Asks for the logs of all daemons of the job, and waits a limited time for them.
    pub fn ask_for_logs(&mut self) -> FarAnswers {
        self.send(LookWish::Logs, ANSWER_TIME)
    }

    fn send(&mut self, wish: LookWish, patience: Duration) -> FarAnswers {
        let patience = if self.silent_since.is_some() { SECOND_ANSWER_TIME } else { patience };
        let began = Instant::now();
        let mut answers = FarAnswers::default();
        self.last_request = self.last_request.wrapping_add(1);
        if self.stream.as_ref().is_none_or(MessageStream::has_ended) {
            self.stream = self.connect().ok();
        }
        let number = self.last_request;
        if let Some(stream) = &mut self.stream {
            let (release, job) = (RELEASE.to_owned(), self.job.clone());
            stream.send(&LookRequest { release, number, job, wish });
            if receive(stream, number, began + patience, &mut answers) {
                self.silent_since = None;
                return answers;
            }
        }
        let since = *self.silent_since.get_or_insert(began);
        answers.own_daemon_silent = Some(since.elapsed());
        answers
    }

    fn connect(&self) -> io::Result<MessageStream<LookAnswer, LookRequest>> {
        MessageStream::new(self.address.connect_stream()?)
    }
}

/// Takes the answers to a request. True if the last one has come.
fn receive(
    stream: &mut MessageStream<LookAnswer, LookRequest>,
    number: u32,
    until: Instant,
    answers: &mut FarAnswers,
) -> bool {
    while let Some(answer) = stream.wait_next(Some(until)) {
        match answer {
            LookAnswer::Host { request, outcome } if request == number => match *outcome {
                Ok(picture) => answers.pictures.push(picture),
                Err(missing) => answers.missing.push(missing),
            },
            LookAnswer::Stacks { request, texts } if request == number => {
                answers.stacks.extend(texts);
            }
            LookAnswer::Log { request, host, lines } if request == number => {
                answers.logs.push((host, lines));
            }
            LookAnswer::Complete { request } if request == number => return true,
            // It belongs to an earlier request, whose time was over.
            LookAnswer::Host { .. }
            | LookAnswer::Stacks { .. }
            | LookAnswer::Log { .. }
            | LookAnswer::Complete { .. } => {}
        }
    }
    false
}

/// The hosts that this host's picture names and that no answer speaks of, because the daemon of this host is silent.
pub(crate) fn not_asked(
    own: &HostPicture,
    answers: &FarAnswers,
    silent: Duration,
) -> Vec<MissingHost> {
    let silent_ms = u64::try_from(silent.as_millis()).unwrap_or(u64::MAX);
    let is_known = |number: u16| {
        answers.pictures.iter().any(|picture| picture.number == number)
            || answers.missing.iter().any(|missing| missing.number == number)
    };
    let mut missing: Vec<MissingHost> = Vec::new();
    for number in own.far.iter().map(|far| far.host_number) {
        if is_known(number) || missing.iter().any(|known| known.number == number) {
            continue;
        }
        let name = own.host_names.iter().find(|(known, _)| *known == number);
        missing.push(MissingHost {
            number,
            name: name.map_or_else(|| format!("host {number}"), |(_, name)| name.clone()),
            why: MissingPicture::NotAsked { silent_ms },
        });
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;
    use landeck_testing::Watchdog;
    use rustix::net::accept;
    use std::os::fd::OwnedFd;

    fn listener(segment: SegmentId) -> OwnedFd {
        let listener = Address::Abstract(look_socket_name(segment)).listen_for_streams().unwrap();
        rustix::io::ioctl_fionbio(&listener, false).unwrap();
        listener
    }

    fn segment(number: u64) -> SegmentId {
        SegmentId(u64::from(std::process::id()) << 32 | number)
    }

    fn next(stream: &mut MessageStream<LookRequest, LookAnswer>) -> Option<LookRequest> {
        stream.wait_next(None)
    }

    #[test]
    fn an_observer_gets_an_answer_for_each_host() {
        let _watchdog = Watchdog::start(Duration::from_secs(60));
        let listener = listener(segment(1));
        let daemon = std::thread::spawn(move || {
            let mut stream = MessageStream::new(accept(&listener).unwrap()).unwrap();
            for _ in 0..2 {
                let LookRequest { number: request, .. } = next(&mut stream).unwrap();
                let host =
                    |request, outcome| LookAnswer::Host { request, outcome: Box::new(outcome) };
                stream.send(&host(request - 1, Ok(samples::two_hosts().remove(0))));
                stream.send(&host(request, Ok(samples::two_hosts().remove(1))));
                let why = MissingPicture::Silent { silent_ms: 1_000 };
                let silent = MissingHost { number: 2, name: "n3".to_owned(), why };
                stream.send(&host(request, Err(silent)));
                stream.send(&LookAnswer::Complete { request });
            }
        });
        let mut far = FarPictures::new(segment(1));
        for is_glance in [true, false] {
            let answers = far.ask(is_glance);
            assert_eq!(answers.pictures, [samples::two_hosts().remove(1)]);
            assert_eq!(answers.missing[0].name, "n3");
            assert_eq!(answers.own_daemon_silent, None);
        }
        daemon.join().unwrap();
    }

    #[test]
    fn a_silent_daemon_costs_a_limited_time_once() {
        let _watchdog = Watchdog::start(Duration::from_secs(60));
        let _listener = listener(segment(2));
        let mut far = FarPictures::new(segment(2));
        let began = Instant::now();
        assert!(far.ask(true).own_daemon_silent.unwrap() >= ANSWER_TIME);
        let again = Instant::now();
        let answers = far.ask(true);
        assert!(answers.own_daemon_silent.unwrap() >= again - began, "since the first question");
        let own = &samples::two_hosts()[0];
        let missing = not_asked(own, &answers, Duration::from_secs(2));
        assert_eq!((missing.len(), missing[0].name.as_str()), (1, "n2"));
        assert!(FarPictures::new(segment(3)).ask(true).own_daemon_silent.is_some(), "none listens");
    }
}
