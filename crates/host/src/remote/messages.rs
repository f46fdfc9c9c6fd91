//! The messages between launcher, arbiter and the parts of a job, and the stream between launcher and arbiter.

use std::collections::VecDeque;
use std::io;
use std::marker::PhantomData;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use landeck_wire::word::ProcessEnd;
use landeck_wire::{HostNumber, ProcessId};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::spec::JobSpec;
use super::start::StartWay;
use crate::output::Stream;
use crate::witness::Happened;

/// The bytes of each stream that a host may send before the launcher has accepted any.
pub const WINDOW_BYTES: u64 = 1 << 20;
/// The number of processes that a message lists one by one.
pub(crate) const LISTED_MAX: usize = 64;
/// The longest message of the stream: far above an environment and a block of output.
const MESSAGE_BYTES_MAX: usize = 64 << 20;

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
    /// The answer to [`PartCommand::Places`], for each process that runs.
    Places(Vec<Whereabouts>),
    /// A text for the user.
    Said(String),
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
    /// The job. Its hosts have no numbers yet.
    pub spec: JobSpec,
    /// How daemons on other hosts are started.
    pub way: StartWay,
    /// The options of the machine that is made for the job.
    pub options: MachineOptions,
}

/// The options of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineOptions {
    /// The time that a host may be silent before it counts as lost, in milliseconds.
    pub host_timeout_ms: u64,
    /// Whether messages travel unencrypted.
    pub is_plain: bool,
    /// The first and the last port for everything that listens; `None` leaves the choice to the kernel.
    pub ports: Option<(u16, u16)>,
    /// The networks that hosts use first, each by an address and the number of common bits.
    pub networks: Vec<(IpAddr, u8)>,
}

/// A message of the launcher to its arbiter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToArbiter {
    /// Start this job. It comes first, and once.
    Start(Box<HostsRequest>),
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
    /// A host takes no part any more, and everything of the job there has ended or will.
    HostLost {
        /// The host.
        host: HostNumber,
        /// The reason, in words.
        why: String,
    },
    /// The job cannot go on and is ended. The text says why.
    CutOff(String),
}

/// One end of a stream of messages over a socket. `In` comes, `Out` goes.
#[derive(Debug)]
pub struct MessageStream<In, Out> {
    socket: OwnedFd,
    came: Vec<u8>,
    unsent: VecDeque<u8>,
    has_ended: bool,
    kinds: PhantomData<(In, Out)>,
}

impl<In: DeserializeOwned, Out: Serialize> MessageStream<In, Out> {
    /// The stream over this socket.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn new(socket: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        let (came, unsent) = (Vec::new(), VecDeque::new());
        Ok(Self { socket, came, unsent, has_ended: false, kinds: PhantomData })
    }

    /// The socket.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Whether messages wait for room in the socket.
    pub fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Whether the other end is closed.
    pub const fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Sends a message, or keeps it until there is room.
    pub fn send(&mut self, message: &Out) {
        // A message of plain values can always be encoded.
        let bytes = postcard::to_stdvec(message).unwrap_or_default();
        self.unsent.extend((bytes.len() as u32).to_le_bytes());
        self.unsent.extend(bytes);
        self.flush();
    }

    /// Sends as much as there is room for.
    pub fn flush(&mut self) {
        while !self.unsent.is_empty() && !self.has_ended {
            let (first, _) = self.unsent.as_slices();
            match send(&self.socket, first, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => self.has_ended = true,
            }
        }
    }

    /// Reads what has come, without waiting.
    pub fn read(&mut self) {
        let mut block = vec![0; 64 * 1024];
        // Bounded, so that other descriptors get their turn.
        for _ in 0..16 {
            match recv(&self.socket, &mut block[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => self.has_ended = true,
                Ok((count, _)) => {
                    self.came.extend_from_slice(&block[..count]);
                    continue;
                }
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => {}
                Err(_) => self.has_ended = true,
            }
            return;
        }
    }

    /// The next whole message that has come. After a message that cannot be understood, the stream counts as ended.
    pub fn take_next(&mut self) -> Option<In> {
        let head: [u8; 4] = self.came.get(..4)?.try_into().ok()?;
        let length = u32::from_le_bytes(head) as usize;
        if length > MESSAGE_BYTES_MAX {
            self.has_ended = true;
            return None;
        }
        let message = postcard::from_bytes(self.came.get(4..4 + length)?);
        self.came.drain(..4 + length);
        self.has_ended |= message.is_err();
        message.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    #[test]
    fn messages_come_whole_and_in_order() {
        let (one, other) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
                .unwrap();
        let mut arbiter = MessageStream::<ToArbiter, ArbiterReport>::new(one).unwrap();
        let mut launcher = MessageStream::<ArbiterReport, ToArbiter>::new(other).unwrap();
        let output = |byte: u8| ArbiterReport::Event {
            host: HostNumber(2),
            event: PartEvent::Output { rank: 3, stream: Stream::Error, bytes: vec![byte; 100_000] },
        };
        (0..20).for_each(|byte| arbiter.send(&output(byte)));
        assert!(arbiter.has_unsent(), "more than a socket takes");
        let mut came = Vec::new();
        while came.len() < 20 {
            launcher.read();
            came.extend(std::iter::from_fn(|| launcher.take_next()));
            arbiter.flush();
        }
        assert!((0..).zip(&came).all(|(byte, message)| *message == output(byte)));
        drop(arbiter);
        launcher.read();
        assert!(launcher.has_ended() && launcher.take_next().is_none());
    }

    #[test]
    fn rubbish_ends_the_stream() {
        let (one, other) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
                .unwrap();
        let mut stream = MessageStream::<ToArbiter, ArbiterReport>::new(one).unwrap();
        for rubbish in [[255; 8], [4, 0, 0, 0, 255, 255, 255, 255]] {
            send(&other, &rubbish, SendFlags::NOSIGNAL).unwrap();
            stream.read();
            stream.has_ended = false;
            assert!(stream.take_next().is_none() && stream.has_ended());
            stream.came.clear();
        }
    }
}
