//! Relays: the daemons of other hosts, which read and write the regions of their hosts' processes for this one.
//!
//! A process has one connection to the relay of each host whose regions it uses. Its own daemon opens it, as it opens
//! lanes. Requests go in windows, and each has one answer, so long data are on their way in several parts at once.
//!
//! The end of a connection is a suspicion. Whether the owner or its host is gone is the arbiter's word. While there is none,
//! the daemon opens another connection, and the call goes on with its first request that is not answered. The relay does
//! no change twice, because requests are numbered.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use landeck_engine::Shared;
use landeck_joining::address::connect_to_daemon;
use landeck_kernel::Peer;
use landeck_transports::lanes::relay::{RelayEnd, RelayStream};
use landeck_wire::handover::{Handover, RELAY_LANE};
use landeck_wire::relay::{RELAY_WINDOW, RelayOpening, RelayOutcome, RelayRequest};
use landeck_wire::{ControlMessage, Header, Kind, SegmentId};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recvmsg, send};

use crate::error::{Error, ErrorKind, Result};
use crate::peers::far_failure;

/// The bytes of requests that may wait for the network.
const UNSENT_MAX: usize = 256 << 10;
/// How long the daemon may take to open the connection.
const OPEN_TIME: Duration = Duration::from_secs(30);
/// How long a word may take that explains why a connection has ended.
const WORD_TIME: Duration = Duration::from_secs(15);
/// The time between two looks at a silence.
const SILENCE_INTERVAL: Duration = Duration::from_millis(100);
/// A call is given up if so many connections in a row bring no answer, for so long, though each could be opened.
const BARREN_CONNECTIONS: u32 = 6;
const BARREN_TIME: Duration = Duration::from_secs(15);
/// How often a waiting process looks whether the owner is gone, and advances its messages.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// The relays that this process uses, by its own segment and the number of their host.
type Relays = Mutex<HashMap<(u64, u32, u16), Weak<Relay>>>;
static RELAYS: OnceLock<Relays> = OnceLock::new();

/// The relay of one host.
pub(crate) struct Relay {
    host_number: u16,
    link: Mutex<Link>,
}

/// The connection to a relay.
struct Connection {
    stream: RelayStream,
    /// It is broken when it has carried nothing for so long.
    silence: Duration,
    /// When it is looked at again for that.
    look_due: Duration,
}

#[derive(Default)]
struct Link {
    connection: Option<Connection>,
    /// The session that the requests belong to; 0 before the first.
    session: u64,
    /// The number of the last request.
    last: u32,
    /// The process that opened the connection: a child made by fork must not use it.
    pid: u32,
}

/// The reason why a relay did not do everything.
pub(crate) enum RelayError {
    /// It answered one request with this outcome and word.
    Refused(RelayOutcome, u64),
    /// Something else failed.
    Failed(Error),
}

impl Relay {
    /// The relay of the host of a far process.
    pub(crate) fn of(shared: &Shared, owner: Peer) -> Arc<Self> {
        let plan = shared.segment.plan();
        let host_number = shared.segment.far_record(owner.0 - plan.slots()).host_number;
        let key = (plan.host, shared.slot, host_number);
        let mut relays =
            RELAYS.get_or_init(Relays::default).lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(relay) = relays.get(&key).and_then(Weak::upgrade) {
            return relay;
        }
        relays.retain(|_, relay| relay.strong_count() > 0);
        let relay = Arc::new(Self { host_number, link: Mutex::default() });
        relays.insert(key, Arc::downgrade(&relay));
        relay
    }

    /// Sends so many requests about a region of `owner`, which `request` makes with the bytes to write, and hands the
    /// data of their answers to `take`, in order. After the first answer that refuses, no further request is sent.
    pub(crate) fn ask<'a>(
        &self,
        shared: &Shared,
        owner: Peer,
        count: usize,
        mut request: impl FnMut(usize, u32) -> (RelayRequest, &'a [u8]),
        mut take: impl FnMut(usize, &[u8]) -> bool,
    ) -> std::result::Result<(), RelayError> {
        let mut link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        if link.connection.is_none() || link.pid != std::process::id() {
            let session = RandomState::new().build_hasher().finish().max(1);
            let opening = RelayOpening { session, goes_on: false };
            let connection = self.open_in_time(shared, owner, opening, None);
            let connection = Some(connection.map_err(RelayError::Failed)?);
            *link = Link { connection, session, last: 0, pid: std::process::id() };
        }
        // Whatever ends this call early: answers may still come, and the next call begins a session of its own.
        let Some(connection) = link.connection.take() else {
            return Err(RelayError::Failed(self.unreachable(shared, "no connection")));
        };
        let first = link.last.wrapping_add(1);
        let mut exchange = Exchange { connection, first, sent: 0, answered: 0, refused: None };
        let (mut answered, mut answered_at, mut barren) = (0, Instant::now(), 0);
        loop {
            match exchange.advance(count, &mut request, &mut take) {
                Ok(true) => break,
                Ok(false) => {}
                Err(_) if exchange.refused.is_some() => break,
                Err(end @ (RelayEnd::Closed | RelayEnd::System(_) | RelayEnd::Silent(_))) => {
                    if exchange.answered > answered {
                        (answered, answered_at, barren) = (exchange.answered, Instant::now(), 0);
                    }
                    barren += 1;
                    if barren >= BARREN_CONNECTIONS && answered_at.elapsed() >= BARREN_TIME {
                        let why = format!("no connection to it brings an answer: {end}");
                        return Err(RelayError::Failed(self.unreachable(shared, &why)));
                    }
                    let opening = RelayOpening { session: link.session, goes_on: true };
                    let opened = self.open_in_time(shared, owner, opening, Some(&end));
                    exchange.connection = opened.map_err(RelayError::Failed)?;
                    exchange.sent = exchange.answered;
                    continue;
                }
                Err(end) => {
                    let error = self.explain(shared, owner, &end.to_string());
                    return Err(RelayError::Failed(error));
                }
            }
            self.look(shared, owner).map_err(RelayError::Failed)?;
        }
        let Exchange { connection, sent, answered, refused, .. } = exchange;
        if sent == answered {
            link.last = link.last.wrapping_add(sent as u32);
            link.connection = Some(connection);
        }
        refused.map_or(Ok(()), |(outcome, word)| Err(RelayError::Refused(outcome, word)))
    }

    /// Advances this process's messages; an error if the owner or its host is gone.
    fn look(&self, shared: &Shared, owner: Peer) -> Result<()> {
        shared.engine.enter()?.look();
        far_failure(&shared.segment, owner).map_or(Ok(()), |gone| Err(gone.into()))
    }

    /// Waits for the word that explains why a connection has ended.
    pub(crate) fn explain(&self, shared: &Shared, owner: Peer, why: &str) -> Error {
        let until = Instant::now() + WORD_TIME;
        while Instant::now() < until {
            if let Err(gone) = self.look(shared, owner) {
                return gone;
            }
            pause();
        }
        self.unreachable(shared, why)
    }

    /// Has the daemon open a connection, and tries it again until a word explains why there is none, or time is up. The
    /// daemon learns how the one before has ended.
    #[cold]
    fn open_in_time(
        &self,
        shared: &Shared,
        owner: Peer,
        opening: RelayOpening,
        mut before: Option<&RelayEnd>,
    ) -> Result<Connection> {
        let until = Instant::now() + WORD_TIME;
        loop {
            match self.open(shared, owner, opening, before.take()) {
                Err(error) if self.look(shared, owner).is_ok() && Instant::now() < until => {
                    if matches!(error.kind, ErrorKind::NoRelay { .. }) {
                        pause();
                        continue;
                    }
                    return Err(error);
                }
                opened => return opened,
            }
        }
    }

    /// Has the daemon open a connection, and opens a session on it.
    fn open(
        &self,
        shared: &Shared,
        owner: Peer,
        opening: RelayOpening,
        before: Option<&RelayEnd>,
    ) -> Result<Connection> {
        let mut connection = self.connect(shared, owner, before)?;
        let failed = |end: RelayEnd| self.unreachable(shared, &end.to_string());
        let header = opening.header();
        connection.stream.push(&header, &[], &[]).map_err(failed)?;
        let until = Instant::now() + OPEN_TIME;
        while Instant::now() < until {
            connection.stream.flush().map_err(failed)?;
            let answer = connection.stream.first().map_err(failed)?.map(|(answer, _)| answer);
            match answer {
                Some(answer) if answer == header => {
                    connection.stream.consume();
                    return Ok(connection);
                }
                Some(Header::GOODBYE) => {
                    return Err(self.unreachable(shared, "it does not know this process any more"));
                }
                Some(_) => return Err(failed(landeck_channel::BrokenPeer::Form.into())),
                None => {}
            }
            if !connection.stream.fill().map_err(failed)? {
                self.look(shared, owner)?;
                connection.wait().map_err(failed)?;
            }
        }
        Err(self.unreachable(shared, "it does not answer"))
    }

    /// Has the daemon open a connection.
    fn connect(
        &self,
        shared: &Shared,
        owner: Peer,
        before: Option<&RelayEnd>,
    ) -> Result<Connection> {
        let failed = |error: io::Error| self.unreachable(shared, &error.to_string());
        let daemon = connect_to_daemon(SegmentId(shared.segment.plan().host)).map_err(failed)?;
        let slot = shared.slot;
        let incarnation = shared.segment.incarnation(slot);
        let say = |message: &Handover| {
            let sent = send(&daemon, &message.encode(), SendFlags::NOSIGNAL);
            sent.map(drop).map_err(|error| failed(error.into()))
        };
        if let Some(&RelayEnd::Silent(silence)) = before {
            let far = owner.0 - shared.segment.plan().slots();
            say(&Handover::Silent { far, lane: RELAY_LANE, silence })?;
        }
        say(&Handover::Relay { slot, incarnation, host: u32::from(self.host_number) })?;
        let until = Instant::now() + OPEN_TIME;
        let hear = || loop {
            if is_ready(&daemon, PollFlags::IN) {
                break receive(&daemon).map_err(failed);
            }
            self.look(shared, owner)?;
            if Instant::now() >= until {
                return Err(self.unreachable(shared, "the daemon of this host does not answer"));
            }
        };
        let mut heard = hear()?;
        let mut silence = WORD_TIME;
        if let Some((Handover::Welcome { silence_ms }, _)) = heard {
            silence = Duration::from_millis(silence_ms.into());
            heard = hear()?;
        }
        match heard {
            Some((Handover::Lane { keys, .. }, Some(socket))) => RelayStream::new(socket, &keys)
                .map(|stream| Connection { stream, silence, look_due: Duration::ZERO })
                .map_err(|end| self.unreachable(shared, &end.to_string())),
            Some((Handover::Lane { .. }, None)) => {
                Err(self.unreachable(shared, "this process has no room for a descriptor"))
            }
            _ => Err(self.unreachable(shared, "no address of that host is reached from here")),
        }
    }

    #[cold]
    pub(crate) fn unreachable(&self, shared: &Shared, why: &str) -> Error {
        let segment = &shared.segment;
        let far = (0..segment.plan().far).map(|far| segment.far_record(far));
        let record = far.into_iter().find(|record| record.host_number == self.host_number);
        let host =
            record.map_or_else(String::new, |record| segment.host_in_words(record.host_number));
        ErrorKind::NoRelay { host, why: why.to_owned() }.into()
    }
}

/// Requests on their way.
struct Exchange {
    connection: Connection,
    first: u32,
    sent: usize,
    answered: usize,
    refused: Option<(RelayOutcome, u64)>,
}

impl Exchange {
    /// Sends and takes what is possible now; true when everything that was sent is answered and nothing more follows.
    fn advance<'b>(
        &mut self,
        count: usize,
        request: &mut impl FnMut(usize, u32) -> (RelayRequest, &'b [u8]),
        take: &mut impl FnMut(usize, &[u8]) -> bool,
    ) -> std::result::Result<bool, RelayEnd> {
        loop {
            while self.refused.is_none()
                && self.sent < count
                && self.sent - self.answered < RELAY_WINDOW
                && self.connection.stream.unsent() < UNSENT_MAX
            {
                let number = self.first.wrapping_add(self.sent as u32);
                let (asked, bytes) = request(self.sent, number);
                let (header, head) = asked.encode(bytes.len());
                self.connection.stream.push(&header, &head, bytes)?;
                self.sent += 1;
            }
            self.connection.stream.flush()?;
            let before = self.answered;
            self.take_answers(take)?;
            let is_whole = self.sent == count || self.refused.is_some();
            if is_whole && self.answered == self.sent {
                return Ok(true);
            }
            if self.answered == before && !self.connection.stream.fill()? {
                self.connection.wait()?;
                return Ok(false);
            }
        }
    }

    fn take_answers(
        &mut self,
        take: &mut impl FnMut(usize, &[u8]) -> bool,
    ) -> std::result::Result<(), RelayEnd> {
        let stream = &mut self.connection.stream;
        while let Some((header, data)) = stream.first()? {
            let number = self.first.wrapping_add(self.answered as u32);
            let outcome = RelayOutcome::from_tag(header.tag);
            let is_expected = header.kind == Kind::RelayAnswer
                && header.context == number
                && self.answered < self.sent;
            let (true, Some(outcome)) = (is_expected, outcome) else {
                return Err(RelayEnd::Broken(landeck_channel::BrokenPeer::Form));
            };
            if outcome == RelayOutcome::Done {
                if !take(self.answered, data) {
                    return Err(RelayEnd::Broken(landeck_channel::BrokenPeer::Form));
                }
            } else if self.refused.is_none() {
                let word = data.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
                self.refused = Some((outcome, word));
            }
            self.answered += 1;
            stream.consume();
        }
        Ok(())
    }
}

impl Connection {
    /// Waits a moment until something has come, or what waits has room. An error if nothing gets through any more.
    fn wait(&mut self) -> std::result::Result<(), RelayEnd> {
        let mut wanted = PollFlags::IN;
        wanted.set(PollFlags::OUT, self.stream.unsent() > 0);
        is_ready(&self.stream, wanted);
        let now = Duration::from_nanos(landeck_memory::system::now_ns());
        if now < self.look_due {
            return Ok(());
        }
        self.look_due = now + SILENCE_INTERVAL;
        self.stream.look_at_silence(now, self.silence)
    }
}

/// Lets a moment pass.
fn pause() {
    let moment = Timespec { tv_sec: 0, tv_nsec: LOOK_INTERVAL.as_nanos() as i64 };
    let _ = poll(&mut [], Some(&moment));
}

/// Waits a moment until a socket is ready.
fn is_ready(socket: &impl AsFd, wanted: PollFlags) -> bool {
    let moment = Timespec { tv_sec: 0, tv_nsec: LOOK_INTERVAL.as_nanos() as i64 };
    let mut sockets = [PollFd::new(socket, wanted)];
    poll(&mut sockets, Some(&moment)).is_ok_and(|ready| ready > 0)
}

/// The message of the daemon, and the socket beside it; `None` if the daemon has closed its end or sends something else.
fn receive(daemon: &OwnedFd) -> io::Result<Option<(Handover, Option<OwnedFd>)>> {
    let mut bytes = [0; Handover::BYTES_MAX + 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let count = recvmsg(daemon, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)?.bytes;
    let mut socket = None;
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = part {
            socket = socket.or(rights.into_iter().next());
        }
    }
    Ok(Handover::decode(&bytes[..count]).ok().map(|message| (message, socket)))
}

impl std::fmt::Debug for Relay {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Relay").field("host", &self.host_number).finish_non_exhaustive()
    }
}
