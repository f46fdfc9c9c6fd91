//! The channel between hosts: TCP.
//!
//! A process listens, or connects to one that does. Its caller decides which process connects to which, and resolves
//! names: this channel knows addresses only. Each connection begins with a hello in which both sides prove that they
//! know the job's secret. Until then the other side is a stranger with little time and 64 bytes. Afterwards messages
//! follow each other, header and data, as the framing defines. A process that leaves in good order says goodbye behind
//! the last message, and stays until the other hosts have received everything. A connection that ends without a goodbye
//! is a death.
//!
//! The secret keeps strangers out. It does not encrypt or sign the data: on a network that others can read or write,
//! put the job inside a tunnel.
//!
//! | module | content |
//! |---|---|
//! | [`framing`] | from bytes to messages |
//! | `hello`, `proof` | the identity of the other side, and its proof |
//! | `link` | one connection |
//! | `socket` | system calls |
//!
//! Its cost is a descriptor per connection and per listener and one more. Per connection it needs up to
//! [`UNSENT_BYTES_MAX`] while the network accepts no more, and [`STAGING_BYTES`] while a message is incomplete or held
//! by the sink; an idle connection needs no memory.

pub mod framing;
mod hello;
mod link;
mod proof;
mod socket;

use std::collections::{BTreeMap, BTreeSet};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use landeck_channel::{Channel, Peer, SendError, Sink};
use landeck_memory::Bytes;
use landeck_wire::{Header, ProcessId};
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

pub use framing::{DATA_BYTES_MAX, STAGING_BYTES};
pub use hello::HelloError;
pub use link::{LinkEnd, UNSENT_BYTES_MAX};
pub use proof::{Token, TokenError};

use framing::Staging;
use hello::{Hello, NONCE_BYTES, Role};
use link::{Link, Stage};

/// How long a process that connects to us may take to prove its identity.
pub const HELLO_TIME: Duration = Duration::from_secs(5);
/// How long another host may leave data unanswered before it counts as gone.
pub const SILENCE_MAX: Duration = Duration::from_secs(20);
/// The shortest interval between two checks for silence.
const SILENCE_CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// The most connections whose hello is in progress; the oldest is closed for a further one.
const ARRIVALS_MAX: usize = 64;
/// The most connections accepted in one poll.
const ACCEPTS_MAX: u32 = 16;
/// The most events handled in one poll; others wait for the next.
const EVENTS_MAX: usize = 64;
/// The most rounds of the last poll before sleep.
const ROUNDS_MAX: u32 = 64;

/// The reason why the channel cannot do what its caller wants.
#[derive(Debug, thiserror::Error)]
pub enum TcpError {
    /// There is no descriptor or no randomness.
    #[error("the system gives no {what} for TCP connections: {source}")]
    System {
        /// The missing resource.
        what: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}; choose another port (0: any) or address")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: std::io::Error,
    },
    /// No attempt to connect could be made.
    #[error("cannot connect to {address}: {source}; check the address and the network")]
    Connect {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: std::io::Error,
    },
    /// The peer has a connection already.
    #[error("peer {} has a connection already: use it, or forget the peer when it is gone", peer.0)]
    InUse {
        /// The peer.
        peer: Peer,
    },
}

/// The state of the connection to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection<'a> {
    /// It never existed, or was forgotten.
    None,
    /// It is being made, by us or by the other side. Messages are already accepted.
    Opening,
    /// It is open; the other side has proven its identity.
    Open(ProcessId),
    /// It ended.
    Ended(&'a LinkEnd),
}

/// The connections of one process.
pub struct Tcp {
    own: ProcessId,
    token: Token,
    admission: Box<dyn FnMut(ProcessId) -> Option<Peer> + Send>,
    /// The epoll descriptor of all sockets, which a sleeper watches.
    epoll: OwnedFd,
    listeners: Vec<OwnedFd>,
    /// A spare descriptor, so that a connection can be refused when there are no more.
    spare: Option<OwnedFd>,
    /// Connections of strangers.
    arrivals: BTreeMap<u32, Link>,
    next_arrival: u32,
    links: BTreeMap<Peer, Link>,
    /// Links that are not open yet.
    opening: BTreeSet<Peer>,
    /// Links with messages for the sink.
    offering: BTreeSet<Peer>,
    staging: Staging,
    silence_max: Duration,
    silence_checked: Instant,
}

/// The subject of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Listener(u32),
    Arrival(u32),
    Link(Peer),
}

impl Tcp {
    /// Creates the connections of the process `own` of the job with this secret. `admission` is called for each process
    /// that connects: it returns the process's number as a peer, or `None` to refuse it.
    ///
    /// # Errors
    /// [`TcpError::System`].
    pub fn new(
        own: ProcessId,
        token: Token,
        admission: impl FnMut(ProcessId) -> Option<Peer> + Send + 'static,
    ) -> Result<Self, TcpError> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)
            .map_err(|error| TcpError::System { what: "descriptor", source: error.into() })?;
        Ok(Self {
            own,
            token,
            admission: Box::new(admission),
            spare: epoll.try_clone().ok(),
            epoll,
            listeners: Vec::new(),
            arrivals: BTreeMap::new(),
            next_arrival: 0,
            links: BTreeMap::new(),
            opening: BTreeSet::new(),
            offering: BTreeSet::new(),
            staging: Staging::default(),
            silence_max: SILENCE_MAX,
            silence_checked: Instant::now(),
        })
    }

    /// Sets how long another host may leave data unanswered before it counts as gone, instead of [`SILENCE_MAX`]. A
    /// process that is stopped, or does not read, is not silent: its host answers.
    pub fn set_silence_max(&mut self, longest: Duration) {
        self.silence_max = longest;
    }

    /// Listens on an address from now on; returns the bound address, which has the port if that was left open (0).
    ///
    /// # Errors
    /// [`TcpError::Listen`].
    pub fn listen(&mut self, address: SocketAddr) -> Result<SocketAddr, TcpError> {
        let failed = |error: Errno| TcpError::Listen { address, source: error.into() };
        let (listener, bound) = socket::listen(address).map_err(failed)?;
        let key = Key::Listener(self.listeners.len() as u32).to_event_data();
        epoll::add(&self.epoll, &listener, key, EventFlags::IN).map_err(failed)?;
        self.listeners.push(listener);
        Ok(bound)
    }

    /// Begins to connect to the process that listens on an address, which is `peer` from now on. Polls continue this,
    /// for as long as `patience` says; messages are accepted at once.
    ///
    /// # Errors
    /// [`TcpError`]; failures that take time show in [`Tcp::connection`].
    pub fn connect(
        &mut self,
        address: SocketAddr,
        peer: Peer,
        patience: Duration,
    ) -> Result<(), TcpError> {
        if self.links.contains_key(&peer) {
            return Err(TcpError::InUse { peer });
        }
        let hello = self.hello(Role::Connector)?;
        let socket = socket::connect(address)
            .map_err(|error| TcpError::Connect { address, source: error.into() })?;
        let key = Key::Link(peer).to_number();
        let mut link = Link::greeting(key, socket, hello, Instant::now() + patience);
        link.watch(&self.epoll);
        self.links.insert(peer, link);
        self.opening.insert(peer);
        Ok(())
    }

    /// Announces that `peer` will connect to us, within `patience`. Until then it is not gone but late, and messages
    /// for it are accepted.
    ///
    /// # Errors
    /// [`TcpError::InUse`].
    pub fn expect(&mut self, peer: Peer, patience: Duration) -> Result<(), TcpError> {
        if self.links.contains_key(&peer) {
            return Err(TcpError::InUse { peer });
        }
        let key = Key::Link(peer).to_number();
        self.links.insert(peer, Link::awaited(key, Instant::now() + patience));
        self.opening.insert(peer);
        Ok(())
    }

    /// The state of the connection to a peer.
    pub fn connection(&self, peer: Peer) -> Connection<'_> {
        match self.links.get(&peer).map(Link::stage) {
            None => Connection::None,
            Some(Stage::Awaited | Stage::Greeting(_)) => Connection::Opening,
            Some(Stage::Open(process)) => Connection::Open(*process),
            Some(Stage::Ended(end)) => Connection::Ended(end),
        }
    }

    /// Whether the connection to a peer ended with its goodbye, and all its messages were taken.
    pub fn has_left(&self, peer: Peer) -> bool {
        self.links.get(&peer).is_some_and(Link::has_left)
    }

    fn hello(&self, role: Role) -> Result<Hello, TcpError> {
        let mut nonce = [0; NONCE_BYTES];
        proof::fill_random(&mut nonce)
            .map_err(|source| TcpError::System { what: "randomness", source })?;
        Ok(Hello::new(role, self.own, nonce, &self.token))
    }

    /// Handles the sockets' events; returns their number.
    fn look(&mut self) -> usize {
        const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut events = [const { MaybeUninit::<Event>::uninit() }; EVENTS_MAX];
        let (events, _) = match epoll::wait(&self.epoll, &mut events[..], Some(&AT_ONCE)) {
            Ok(events) => events,
            Err(_) => return 0,
        };
        for event in events.iter() {
            let (data, flags) = (event.data, event.flags);
            match Key::from_number(data.u64()) {
                Key::Listener(number) => self.accept(number as usize),
                Key::Arrival(number) => self.go_on_with_arrival(number),
                Key::Link(peer) => self.go_on_with_link(peer, flags),
            }
        }
        self.end_the_late();
        self.end_the_silent();
        events.len()
    }

    fn accept(&mut self, number: usize) {
        for _ in 0..ACCEPTS_MAX {
            let Some(listener) = self.listeners.get(number) else { return };
            match socket::accept(listener.as_fd()) {
                Ok(Some(socket)) => self.welcome(socket),
                Ok(None) => return,
                Err(_) => {
                    // Descriptors are exhausted: the connection is refused, otherwise it would wake this process for
                    // ever.
                    self.spare = None;
                    let _ = socket::accept(listener.as_fd());
                    self.spare = self.epoll.try_clone().ok();
                    return;
                }
            }
        }
    }

    fn welcome(&mut self, socket: OwnedFd) {
        let Ok(hello) = self.hello(Role::Acceptor) else { return };
        while self.arrivals.len() >= ARRIVALS_MAX {
            self.arrivals.pop_first();
        }
        let number = self.next_arrival;
        self.next_arrival = number.wrapping_add(1);
        let key = Key::Arrival(number).to_number();
        let mut link = Link::greeting(key, socket, hello, Instant::now() + HELLO_TIME);
        link.watch(&self.epoll);
        self.arrivals.insert(number, link);
    }

    fn go_on_with_arrival(&mut self, number: u32) {
        let Some(mut link) = self.arrivals.remove(&number) else { return };
        match link.greet() {
            Some(process) => self.admit(link, process),
            None if link.is_ended() => {}
            None => {
                link.watch(&self.epoll);
                self.arrivals.insert(number, link);
            }
        }
    }

    /// Admits a stranger that has proven its identity as a peer, or refuses it.
    fn admit(&mut self, mut link: Link, process: ProcessId) {
        let Some(peer) = (self.admission)(process) else { return };
        let place = self
            .links
            .entry(peer)
            .or_insert_with(|| Link::awaited(Key::Link(peer).to_number(), link.deadline()));
        if !matches!(place.stage(), Stage::Awaited) {
            return;
        }
        link.replace(place);
        link.open(process);
        link.watch(&self.epoll);
        *place = link;
        self.opening.remove(&peer);
    }

    fn go_on_with_link(&mut self, peer: Peer, flags: EventFlags) {
        let Some(link) = self.links.get_mut(&peer) else { return };
        if link.is_opening() {
            if let Some(process) = link.greet() {
                link.open(process);
            }
            if !link.is_opening() {
                self.opening.remove(&peer);
            }
        } else {
            if flags.contains(EventFlags::OUT) {
                link.flush();
            }
            link.read(&mut self.staging);
            self.offering.insert(peer);
        }
        link.watch(&self.epoll);
    }

    /// Ends connections that take too long to open.
    fn end_the_late(&mut self) {
        if self.arrivals.is_empty() && self.opening.is_empty() {
            return;
        }
        let now = Instant::now();
        self.arrivals.retain(|_, link| link.deadline() > now);
        let links = &mut self.links;
        self.opening.retain(|peer| {
            let late = links.get_mut(peer).filter(|link| link.deadline() <= now);
            late.map(|link| link.finish(LinkEnd::TimedOut)).is_none()
        });
    }

    /// Ends the connections to hosts that no longer answer.
    fn end_the_silent(&mut self) {
        if self.links.is_empty() || self.silence_checked.elapsed() < SILENCE_CHECK_INTERVAL {
            return;
        }
        self.silence_checked = Instant::now();
        for link in self.links.values_mut() {
            link.end_if_silent(self.silence_max);
            link.watch(&self.epoll);
        }
    }

    /// Offers arrived messages; returns whether the sink took any.
    fn offer(&mut self, sink: &mut dyn Sink) -> bool {
        let mut any = false;
        for peer in std::mem::take(&mut self.offering) {
            let Some(link) = self.links.get_mut(&peer) else { continue };
            let (taken, held) = link.offer(peer, sink, &mut self.staging);
            link.watch(&self.epoll);
            any |= taken;
            if held {
                self.offering.insert(peer);
            }
        }
        any
    }
}

impl Channel for Tcp {
    fn data_bytes_max(&self) -> usize {
        DATA_BYTES_MAX
    }

    fn try_send(&mut self, to: Peer, header: &Header, data: Bytes<'_>) -> Result<(), SendError> {
        if data.len() > DATA_BYTES_MAX {
            return Err(SendError::TooLong);
        }
        let link = self.links.get_mut(&to).ok_or(SendError::Gone)?;
        let result = link.try_send(header, data);
        link.watch(&self.epoll);
        result
    }

    fn poll(&mut self, sink: &mut dyn Sink) -> bool {
        self.look();
        self.offer(sink)
    }

    fn poll_thoroughly(&mut self, sink: &mut dyn Sink) -> bool {
        let mut any = false;
        for _ in 0..ROUNDS_MAX {
            let events = self.look();
            any |= self.offer(sink);
            if events == 0 {
                break;
            }
        }
        any
    }

    fn is_read_out(&self, peer: Peer) -> bool {
        self.links.get(&peer).is_none_or(Link::is_gone)
    }

    fn leave(&mut self) {
        let deadline = Instant::now() + HELLO_TIME;
        for link in self.links.values_mut() {
            link.hasten(deadline);
            link.leave();
            link.watch(&self.epoll);
        }
    }

    fn forget(&mut self, peer: Peer) {
        if let Some(mut link) = self.links.remove(&peer) {
            link.forget(&mut self.staging);
        }
        self.opening.remove(&peer);
        self.offering.remove(&peer);
    }

    fn wake_descriptors(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.epoll.as_fd()]
    }

    fn has_unsent(&self) -> bool {
        self.links.values().any(Link::has_unsent)
    }
}

impl Key {
    fn to_number(self) -> u64 {
        let (kind, number) = match self {
            Self::Listener(number) => (0, number),
            Self::Arrival(number) => (1, number),
            Self::Link(peer) => (2, peer.0),
        };
        kind << 32 | u64::from(number)
    }

    fn from_number(number: u64) -> Self {
        match number >> 32 {
            0 => Self::Listener(number as u32),
            1 => Self::Arrival(number as u32),
            _ => Self::Link(Peer(number as u32)),
        }
    }

    fn to_event_data(self) -> EventData {
        EventData::new_u64(self.to_number())
    }
}
