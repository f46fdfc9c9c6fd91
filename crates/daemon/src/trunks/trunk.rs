//! One connection of two daemons: a TLS session over a socket, or over two pipes where no port is reached.
//!
//! A trunk is *open* when both sides have shown their keys, 64 KiB have passed in both directions, and both sides know
//! which numbered contents the other has. Small packets pass where long ones are lost, so a handshake proves too
//! little.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use landeck_trust::{KeyHash, Session, TrustError};
use landeck_wire::{ControlMessage, HostNumber};
use rustix::event::epoll::EventFlags;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{Errno, read, write};
use rustix::net::{SendFlags, send};
use serde::{Deserialize, Serialize};

use crate::reactor::Reactor;
use crate::trunks::envelope::{Envelope, EnvelopeClass, EnvelopeError, Splitter};

/// The length of the probe.
pub(crate) const PROBE_BYTES: usize = 64 << 10;
/// The time from the beginning of a trunk until it is open.
pub(crate) const OPENING_TIME: Duration = Duration::from_secs(5);
/// The unsent bytes above which a trunk takes no more contents.
const UNSENT_BYTES_MAX: usize = 256 << 10;
/// The bytes that are read in one turn of the loop.
const READ_BYTES_PER_TURN: usize = 1 << 20;

/// The descriptors of a trunk.
#[derive(Debug)]
pub(crate) enum TrunkWire {
    /// A TCP connection.
    Socket(OwnedFd),
    /// Two pipes.
    Streams {
        /// Where bytes come from.
        input: OwnedFd,
        /// Where bytes go.
        output: OwnedFd,
    },
}

/// The state of both numbered streams, as one side has received them from one run of the other side's daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Receipt {
    /// The number of the last content of control that was received.
    pub(crate) control: u64,
    /// The number of the last content of bulk that was received.
    pub(crate) bulk: u64,
    /// The generation that this side proposes for the secret of the two hosts; the larger proposal counts.
    pub(crate) generation: u32,
    /// Whether this side's processor has instructions for AES.
    pub(crate) has_aes: bool,
    /// The run of this side's daemon.
    pub(crate) run: u32,
    /// The run of the other side's daemon that both numbers are about; 0 if this side knows none.
    pub(crate) of_run: u32,
}

impl ControlMessage for Receipt {
    const NAME: &'static str = "a receipt";
    const BYTES_MAX: usize = 40;
}

/// An event of a trunk, in the order in which they come.
#[derive(Debug)]
pub(crate) enum TrunkEvent {
    /// The handshake is complete, and the other side has this key.
    Authenticated(KeyHash),
    /// The trunk is open. The other side has received this much, and both agree on the generation.
    Open(Receipt),
    /// An envelope has come.
    Came(Envelope, Vec<u8>),
}

/// The reason why a trunk has ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TrunkError {
    /// The other side has ended it, in order or not.
    #[error("the other side ended the connection")]
    Ended,
    /// The kernel says so.
    #[error("{0}")]
    System(#[from] io::Error),
    /// The session failed.
    #[error("{0}")]
    Trust(#[from] TrustError),
    /// The stream is not made of envelopes.
    #[error("{0}")]
    Envelope(#[from] EnvelopeError),
    /// An envelope stands where none may.
    #[error("the other side broke the order of a trunk's beginning")]
    Order,
    /// A daemon has begun it that has been started again since.
    #[error("a daemon has begun it that has ended, and has been started again")]
    FormerRun,
    /// The handshake was not complete in time.
    #[error("the handshake took longer than {} s", OPENING_TIME.as_secs())]
    Handshake,
    /// The probe did not pass in time.
    #[error(
        "short packets pass, and {} KiB did not within {} s: check the MTU on the way",
        PROBE_BYTES >> 10,
        OPENING_TIME.as_secs()
    )]
    Probe,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Handshake,
    /// The key of the other side is known, and nothing was sent yet.
    Known,
    Probing {
        /// The other side has confirmed this side's probe.
        is_confirmed: bool,
        /// The other side's probe has come.
        has_come: bool,
        receipt: Option<Receipt>,
    },
    Open,
}

/// A connection of two daemons.
#[derive(Debug)]
pub(crate) struct Trunk {
    wire: TrunkWire,
    token: u64,
    output_token: u64,
    /// Whether the reactor waits for room.
    waits_for_room: bool,
    session: Session,
    splitter: Splitter,
    phase: Phase,
    deadline: Duration,
    own: HostNumber,
    peer: HostNumber,
    /// The generation that this side proposes for the secret.
    proposed: u32,
}

impl Trunk {
    /// Begins a trunk over a connected socket, which is watched under the token already.
    pub(crate) fn over_socket(
        socket: OwnedFd,
        token: u64,
        session: Session,
        hosts: (HostNumber, HostNumber),
        now: Duration,
    ) -> Self {
        Self::new(TrunkWire::Socket(socket), (token, token), session, hosts, now)
    }

    /// Begins a trunk over two pipes. The input is watched from now on.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn over_streams(
        reactor: &mut Reactor,
        (input, output): (OwnedFd, OwnedFd),
        session: Session,
        hosts: (HostNumber, HostNumber),
        now: Duration,
    ) -> io::Result<Self> {
        for stream in [&input, &output] {
            fcntl_setfl(stream, fcntl_getfl(stream)? | OFlags::NONBLOCK)?;
        }
        let tokens = (reactor.token(), reactor.token());
        reactor.watch(&input, tokens.0, EventFlags::IN)?;
        reactor.watch(&output, tokens.1, EventFlags::empty())?;
        Ok(Self::new(TrunkWire::Streams { input, output }, tokens, session, hosts, now))
    }

    fn new(
        wire: TrunkWire,
        (token, output_token): (u64, u64),
        session: Session,
        (own, peer): (HostNumber, HostNumber),
        now: Duration,
    ) -> Self {
        Self {
            wire,
            token,
            output_token,
            waits_for_room: false,
            session,
            splitter: Splitter::default(),
            phase: Phase::Handshake,
            deadline: now + OPENING_TIME,
            own,
            peer,
            proposed: 0,
        }
    }

    /// The token of the trunk, by which others name it.
    pub(crate) const fn token(&self) -> u64 {
        self.token
    }

    /// The tokens under which its descriptors are watched.
    pub(crate) const fn tokens(&self) -> [u64; 2] {
        [self.token, self.output_token]
    }

    /// The socket, if it runs over one.
    pub(crate) const fn socket(&self) -> Option<&OwnedFd> {
        match &self.wire {
            TrunkWire::Socket(socket) => Some(socket),
            TrunkWire::Streams { .. } => None,
        }
    }

    /// Whether the trunk is open.
    pub(crate) fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// Whether this error shows that long packets do not pass: short ones did, and the probe did not.
    pub(crate) fn is_narrow(&self, error: &TrunkError) -> bool {
        let is_probe = matches!(self.phase, Phase::Probing { .. });
        is_probe
            && match error {
                TrunkError::Probe => true,
                TrunkError::System(error) => error.kind() == io::ErrorKind::TimedOut,
                _ => false,
            }
    }

    /// When the trunk counts as failed.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        (!self.is_open()).then_some(self.deadline)
    }

    /// The error of a trunk that is not open in time.
    pub(crate) fn late(&self) -> TrunkError {
        match self.phase {
            Phase::Handshake | Phase::Known => TrunkError::Handshake,
            Phase::Probing { .. } | Phase::Open => TrunkError::Probe,
        }
    }

    /// A secret that both sides have.
    ///
    /// # Errors
    /// [`TrustError::NotOpen`].
    pub(crate) fn export(&self, label: &[u8]) -> Result<[u8; 32], TrustError> {
        self.session.export(label, &[])
    }

    /// Believes the other side's key from now on: sends the probe, and says what this side has received.
    pub(crate) fn believe(&mut self, receipt: Receipt, now: Duration) {
        self.phase = Phase::Probing { is_confirmed: false, has_come: false, receipt: None };
        self.deadline = now + OPENING_TIME;
        self.proposed = receipt.generation;
        self.put_own(EnvelopeClass::Probe, &vec![0; PROBE_BYTES]);
        self.put_own(EnvelopeClass::Receipt, &receipt.encode());
    }

    /// Whether the trunk takes more contents now.
    pub(crate) fn has_room(&self) -> bool {
        self.is_open() && self.session.unsent_bytes() < UNSENT_BYTES_MAX
    }

    /// Sends an envelope that needs no number, between the two daemons themselves.
    pub(crate) fn put_own(&mut self, class: EnvelopeClass, content: &[u8]) {
        let length = content.len() as u32;
        let (source, destination) = (self.own, self.peer);
        self.put(&Envelope { source, destination, class, hops: 0, length }, &[content]);
    }

    /// Sends an envelope whose content consists of these parts.
    pub(crate) fn put(&mut self, envelope: &Envelope, parts: &[&[u8]]) {
        let mut bytes = envelope.encode().to_vec();
        parts.iter().for_each(|part| bytes.extend_from_slice(part));
        self.session.send(&bytes);
    }

    /// Takes bytes that were read before the trunk began.
    ///
    /// # Errors
    /// [`TrunkError`].
    pub(crate) fn take_early(
        &mut self,
        bytes: &[u8],
        events: &mut Vec<TrunkEvent>,
    ) -> Result<(), TrunkError> {
        self.take(bytes, events)
    }

    /// Reads what has come.
    ///
    /// # Errors
    /// [`TrunkError`]: the trunk is over. The events before that still count.
    pub(crate) fn read(&mut self, events: &mut Vec<TrunkEvent>) -> Result<(), TrunkError> {
        let mut buffer = vec![0; 64 << 10];
        let mut total = 0;
        while total < READ_BYTES_PER_TURN {
            let input = match &self.wire {
                TrunkWire::Socket(socket) => socket,
                TrunkWire::Streams { input, .. } => input,
            };
            match read(input, &mut buffer[..]) {
                Ok(0) => return Err(TrunkError::Ended),
                Ok(count) => {
                    total += count;
                    self.take(&buffer[..count], events)?;
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error).into()),
            }
        }
        if self.session.has_peer_closed() { Err(TrunkError::Ended) } else { Ok(()) }
    }

    fn take(&mut self, bytes: &[u8], events: &mut Vec<TrunkEvent>) -> Result<(), TrunkError> {
        self.session.receive(bytes)?;
        if self.phase == Phase::Handshake
            && let Some(key) = self.session.peer_key()
        {
            self.phase = Phase::Known;
            events.push(TrunkEvent::Authenticated(key));
        }
        let mut plain = Vec::new();
        self.session.take_received(&mut plain);
        self.splitter.push(&plain);
        while let Some((envelope, content)) = self.splitter.next()? {
            events.push(TrunkEvent::Came(envelope, content));
        }
        Ok(())
    }

    /// Judges an envelope that has come: those of the beginning are the trunk's own. Returns the others, and the event
    /// that the trunk is open.
    ///
    /// # Errors
    /// [`TrunkError::Order`].
    pub(crate) fn judge(
        &mut self,
        envelope: Envelope,
        content: Vec<u8>,
    ) -> Result<Option<TrunkEvent>, TrunkError> {
        let Phase::Probing { is_confirmed, has_come, receipt } = &mut self.phase else {
            // A probe behind the beginning is answered too: it may measure something one day.
            return match envelope.class {
                EnvelopeClass::Probe => Ok(None),
                _ => Ok(Some(TrunkEvent::Came(envelope, content))),
            };
        };
        match envelope.class {
            EnvelopeClass::Probe if content.is_empty() => *is_confirmed = true,
            EnvelopeClass::Probe if content.len() == PROBE_BYTES => {
                *has_come = true;
                self.put_own(EnvelopeClass::Probe, &[]);
            }
            EnvelopeClass::Receipt if receipt.is_none() => {
                *receipt = Some(Receipt::decode(&content).map_err(|_| TrunkError::Order)?);
            }
            _ => return Err(TrunkError::Order),
        }
        if let Phase::Probing { is_confirmed: true, has_come: true, receipt: Some(receipt) } =
            self.phase
        {
            self.phase = Phase::Open;
            let generation = receipt.generation.max(self.proposed);
            return Ok(Some(TrunkEvent::Open(Receipt { generation, ..receipt })));
        }
        Ok(None)
    }

    /// Writes what the kernel takes now, and waits for room if it does not take all.
    ///
    /// # Errors
    /// [`TrunkError::System`], or the reason that the other side gave before it reset the connection.
    pub(crate) fn write(&mut self, reactor: &Reactor) -> Result<(), TrunkError> {
        while !self.session.output().is_empty() {
            let bytes = self.session.output();
            let written = match &self.wire {
                TrunkWire::Socket(socket) => {
                    send(socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
                }
                TrunkWire::Streams { output, .. } => write(output, bytes),
            };
            match written {
                Ok(count) => self.session.sent(count),
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(self.unread_reason(io::Error::from(error).into())),
            }
        }
        let waits = !self.session.output().is_empty();
        if waits != self.waits_for_room {
            self.waits_for_room = waits;
            let room = if waits { EventFlags::OUT } else { EventFlags::empty() };
            match &self.wire {
                TrunkWire::Socket(socket) => {
                    reactor.rewatch(socket, self.token, EventFlags::IN | room)?;
                }
                TrunkWire::Streams { output, .. } => {
                    reactor.rewatch(output, self.output_token, room)?;
                }
            }
        }
        Ok(())
    }

    /// The other side's reason to end the trunk, if it lies unread behind this failure of a write. A side that refuses
    /// says why and closes; what it has not read resets the connection.
    fn unread_reason(&mut self, failure: TrunkError) -> TrunkError {
        match self.read(&mut Vec::new()) {
            Err(reason @ TrunkError::Trust(_)) => reason,
            _ => failure,
        }
    }

    /// Ends the trunk in order, as far as the kernel takes that now.
    pub(crate) fn close(&mut self, reactor: &Reactor) {
        self.session.close();
        let _ = self.write(reactor);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use landeck_trust::KeyPair;

    use super::*;

    #[test]
    fn the_reason_of_a_side_that_refuses_is_read_where_a_write_fails() {
        let [own, other, admitted] = [0; 3].map(|_| KeyPair::generate().unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let dialled = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut refusing, _) = listener.accept().unwrap();
        let mut theirs = Session::accept_from(&other, admitted.hash()).unwrap();
        dialled.set_nonblocking(true).unwrap();
        let reactor = Reactor::new().unwrap();
        reactor.watch(&dialled, 1, EventFlags::IN).unwrap();
        let session = Session::connect(&own, other.hash()).unwrap();
        let hosts = (HostNumber(1), HostNumber(0));
        let mut trunk = Trunk::over_socket(dialled.into(), 1, session, hosts, Duration::ZERO);
        let mut buffer = [0; 4096];
        let mut events = Vec::new();
        let refusal = loop {
            trunk.write(&reactor).unwrap();
            let count = refusing.read(&mut buffer).unwrap();
            let outcome = theirs.receive(&buffer[..count]);
            if outcome.is_err() {
                // More comes from the side that dialled while the other one refuses it.
                trunk.put_own(EnvelopeClass::Probe, &[0; 64]);
                trunk.write(&reactor).unwrap();
            }
            refusing.write_all(theirs.output()).unwrap();
            theirs.sent(theirs.output().len());
            if let Err(refusal) = outcome {
                break refusal;
            }
            while events.is_empty() {
                trunk.read(&mut events).unwrap();
            }
        };
        assert!(matches!(refusal, TrustError::WrongKey { .. }), "{refusal}");
        drop(refusing);
        let why = loop {
            trunk.put_own(EnvelopeClass::Probe, &[0; 64]);
            if let Err(why) = trunk.write(&reactor) {
                break why;
            }
        };
        assert!(matches!(why, TrunkError::Trust(TrustError::Refused(_))), "{why}");
    }

    #[test]
    fn the_longest_receipt_survives_its_encoding() {
        let (control, bulk, generation) = (u64::MAX, u64::MAX, u32::MAX);
        let (run, of_run) = (u32::MAX, u32::MAX);
        let receipt = Receipt { control, bulk, generation, has_aes: true, run, of_run };
        assert_eq!(Receipt::decode(&receipt.encode()), Ok(receipt));
        assert!(Receipt::decode(&[2; 32]).is_err());
    }
}
