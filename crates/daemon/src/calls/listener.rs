//! The port of the daemon: accepts connections, challenges them, and reads their preambles.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use landeck_launch::hosts_options::PortRange;
use landeck_wire::preamble::{CHALLENGE_BYTES, PREAMBLE_BYTES, Preamble, PreambleError};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::sockopt::{set_ipv6_v6only, set_socket_reuseaddr, set_tcp_nodelay};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, acceptfrom_with, bind,
    getsockname, listen, recv, send, socket_with,
};

use crate::addresses::simple;
use crate::calls::places::Places;
use crate::calls::refusals::Refusals;
use crate::random;
use crate::reactor::Reactor;

/// The number of connections that are accepted in one turn of the loop.
const ACCEPTS_PER_TURN: usize = 64;
/// The time without accepting after the process ran out of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// The port of the daemon.
#[derive(Debug)]
pub(crate) struct Listener {
    range: Option<PortRange>,
    open: Option<OpenPort>,
    strangers: HashMap<u64, Stranger>,
    places: Places,
    refusals: Refusals,
    paused_until: Option<Duration>,
}

/// A port that is listened on.
#[derive(Debug)]
struct OpenPort {
    socket: OwnedFd,
    token: u64,
    port: u16,
}

/// A connection whose preamble has not come.
#[derive(Debug)]
struct Stranger {
    socket: OwnedFd,
    address: SocketAddr,
    /// Whether the address stands in the host table.
    is_known: bool,
    challenge: [u8; CHALLENGE_BYTES],
    bytes: [u8; PREAMBLE_BYTES],
    filled: usize,
}

/// A connection whose preamble has come. Its code is not checked. It keeps its place among the strangers, under its
/// token, until [`Listener::recognised`] or [`Listener::refused`] is called.
#[derive(Debug)]
pub(crate) struct Caller {
    /// The token under which the socket is watched.
    pub(crate) token: u64,
    /// The connection.
    pub(crate) socket: OwnedFd,
    /// The other end.
    pub(crate) address: SocketAddr,
    /// The random bytes that were sent.
    pub(crate) challenge: [u8; CHALLENGE_BYTES],
    /// The preamble as it came.
    pub(crate) bytes: [u8; PREAMBLE_BYTES],
    /// The preamble.
    pub(crate) preamble: Preamble,
}

impl Listener {
    /// A port of this range that is not listened on yet.
    pub(crate) fn closed(range: Option<PortRange>) -> Self {
        Self {
            range,
            open: None,
            strangers: HashMap::new(),
            places: Places::default(),
            refusals: Refusals::default(),
            paused_until: None,
        }
    }

    /// Listens on all addresses, for connections and for datagrams on one port. Returns the socket for datagrams.
    ///
    /// # Errors
    /// The kernel's error; no port of the range is free.
    pub(crate) fn open(&mut self, reactor: &mut Reactor) -> io::Result<OwnedFd> {
        const TRIES: usize = 64;
        let ports: Vec<u16> = match self.range {
            Some(PortRange { first, last }) => (first..=last).collect(),
            None => vec![0; TRIES],
        };
        let mut error = io::Error::from(Errno::ADDRINUSE);
        for port in ports {
            match open_at(port) {
                Ok((socket, datagrams, port)) => {
                    let token = reactor.token();
                    reactor.watch(&socket, token, EventFlags::IN)?;
                    self.open = Some(OpenPort { socket, token, port });
                    return Ok(datagrams);
                }
                Err(other) => error = other,
            }
        }
        Err(error)
    }

    /// Listens with the socket of the run before of this daemon. Connections that have come meanwhile wait there.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn go_on(&mut self, reactor: &mut Reactor, socket: OwnedFd) -> io::Result<()> {
        let port = SocketAddr::try_from(getsockname(&socket)?)?.port();
        let token = reactor.token();
        reactor.watch(&socket, token, EventFlags::IN)?;
        self.open = Some(OpenPort { socket, token, port });
        Ok(())
    }

    /// The listening socket, if there is one.
    pub(crate) fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.open.as_ref().map(|open| open.socket.as_fd())
    }

    /// Whether it is listened on.
    pub(crate) const fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// The ports that may be used.
    pub(crate) const fn range(&self) -> Option<PortRange> {
        self.range
    }

    /// The port; 0 before it is open.
    pub(crate) fn port(&self) -> u16 {
        self.open.as_ref().map_or(0, |open| open.port)
    }

    /// Whether the token is that of the listening socket.
    pub(crate) fn is_own(&self, token: u64) -> bool {
        self.open.as_ref().is_some_and(|open| open.token == token)
    }

    /// Whether the token is that of a stranger.
    pub(crate) fn is_stranger(&self, token: u64) -> bool {
        self.strangers.contains_key(&token)
    }

    /// Accepts the connections that wait. `is_known` tells whether an address stands in the host table. Returns the
    /// callers that lost their place to newer strangers.
    pub(crate) fn accept(
        &mut self,
        reactor: &mut Reactor,
        now: Duration,
        is_known: impl Fn(IpAddr) -> bool,
    ) -> Vec<u64> {
        let mut ousted = Vec::new();
        for _ in 0..ACCEPTS_PER_TURN {
            let Some(open) = &self.open else { break };
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let (socket, address) = match acceptfrom_with(&open.socket, flags) {
                Ok((socket, Some(address))) => (socket, address),
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    let _ = reactor.unwatch(&open.socket);
                    self.paused_until = Some(now + PAUSE);
                    break;
                }
                Err(Errno::AGAIN) => break,
                // The connection ended before it was accepted, or a signal came.
                Ok((_, None)) | Err(_) => continue,
            };
            let Ok(address) = SocketAddr::try_from(address).map(simple) else { continue };
            let token = reactor.token();
            let is_known = is_known(address.ip());
            let Ok(stranger) = Stranger::greet(socket, address, is_known) else { continue };
            if reactor.watch(&stranger.socket, token, EventFlags::IN).is_err() {
                continue;
            }
            self.strangers.insert(token, stranger);
            if let Some(gone) = self.places.enter(token, is_known, now) {
                match self.strangers.remove(&gone) {
                    Some(gone) => self.count(&gone, "others came, and it had proven nothing"),
                    None => ousted.push(gone),
                }
            }
        }
        ousted
    }

    /// Reads what a stranger has sent. Returns it as a caller when its preamble is whole.
    pub(crate) fn read(&mut self, token: u64) -> Option<Caller> {
        let stranger = self.strangers.get_mut(&token)?;
        // Not a byte more than the preamble is read: what follows belongs to the process or to the session.
        let rest = &mut stranger.bytes[stranger.filled..];
        let end = match recv(&stranger.socket, rest, RecvFlags::DONTWAIT) {
            Ok((0, _)) if stranger.filled == 0 => Some("it said nothing and ended"),
            Ok((0, _)) => Some("it ended within its preamble"),
            Ok((count, _)) => {
                stranger.filled += count;
                None
            }
            Err(Errno::AGAIN | Errno::INTR) => return None,
            Err(_) if stranger.filled == 0 => Some("it said nothing and broke"),
            Err(_) => Some("it broke within its preamble"),
        };
        if let Some(why) = end {
            self.end(token, why);
            return None;
        }
        self.places.heard(token);
        let stranger = self.strangers.get(&token)?;
        let begins_right = stranger.filled < MAGIC.len() || stranger.bytes[..MAGIC.len()] == *MAGIC;
        if begins_right && stranger.filled < PREAMBLE_BYTES {
            return None;
        }
        match Preamble::decode(&stranger.bytes) {
            Ok(preamble) => {
                let Stranger { socket, address, challenge, bytes, .. } =
                    self.strangers.remove(&token)?;
                Some(Caller { token, socket, address, challenge, bytes, preamble })
            }
            Err(error) => {
                let why = match error {
                    PreambleError::Stranger => "it does not begin as a connection of Landeck does",
                    PreambleError::Version { .. } => {
                        "it speaks another version of the protocol: install one release on all hosts"
                    }
                    PreambleError::Field => "its preamble has a field that no daemon writes",
                };
                self.end(token, why);
                None
            }
        }
    }

    /// Frees the place of a caller that has proven who it is, whether or not it is served.
    pub(crate) fn recognised(&mut self, token: u64) {
        self.places.leave(token);
    }

    /// Frees the place of a caller whose connection is ended, and counts that.
    pub(crate) fn refused(&mut self, token: u64, why: &'static str, from: impl std::fmt::Display) {
        self.places.leave(token);
        self.refusals.count(why, from);
    }

    /// Counts something that was refused within a connection of another daemon.
    pub(crate) fn refused_in_tunnel(&mut self, why: &'static str, from: impl std::fmt::Display) {
        self.refusals.count(why, from);
    }

    /// Ends the strangers whose time is over. Returns the callers among them.
    pub(crate) fn tick(&mut self, reactor: &Reactor, now: Duration) -> Vec<u64> {
        if self.paused_until.is_some_and(|until| now >= until)
            && let Some(open) = &self.open
        {
            self.paused_until = None;
            let _ = reactor.watch(&open.socket, open.token, EventFlags::IN);
        }
        let mut callers = Vec::new();
        for late in self.places.take_late(now) {
            match self.strangers.remove(&late) {
                Some(late) => self.count(&late, "it did not prove who it is in time"),
                None => callers.push(late),
            }
        }
        callers
    }

    /// The line about refused connections that is due now.
    pub(crate) fn line(&mut self, now: Duration) -> Option<String> {
        self.refusals.line(now)
    }

    /// When [`Listener::tick`] is due.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        self.places.deadline().into_iter().chain(self.paused_until).min()
    }

    fn end(&mut self, token: u64, why: &'static str) {
        self.places.leave(token);
        if let Some(gone) = self.strangers.remove(&token) {
            self.count(&gone, why);
        }
    }

    /// Counts a stranger that was refused. A connection of a host of the machine that has said nothing is none: that host
    /// has given it up, as when the process ends for which it was made.
    fn count(&mut self, gone: &Stranger, why: &'static str) {
        if gone.filled > 0 || !gone.is_known {
            self.refusals.count(why, gone.address);
        }
    }
}

/// The first bytes of each preamble. Whatever begins otherwise is not waited for.
const MAGIC: &[u8; 4] = b"LDK1";

impl Stranger {
    fn greet(socket: OwnedFd, address: SocketAddr, is_known: bool) -> io::Result<Self> {
        let challenge = random::bytes()?;
        let _ = set_tcp_nodelay(&socket, true);
        // The buffer of a new socket has room for it.
        if send(&socket, &challenge, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)? != challenge.len()
        {
            return Err(io::ErrorKind::WriteZero.into());
        }
        let bytes = [0; PREAMBLE_BYTES];
        Ok(Self { socket, address, is_known, challenge, bytes, filled: 0 })
    }
}

/// A listening socket and one for datagrams on a port; any free one for port 0.
fn open_at(port: u16) -> io::Result<(OwnedFd, OwnedFd, u16)> {
    const BACKLOG: i32 = 4096;
    let stream = bound(SocketType::STREAM, port)?;
    listen(&stream, BACKLOG)?;
    let address = SocketAddr::try_from(getsockname(&stream)?)?;
    let datagrams = bound(SocketType::DGRAM, address.port())?;
    Ok((stream, datagrams, address.port()))
}

/// A socket bound on all addresses of both versions; of version 4 only where the host has no version 6.
fn bound(kind: SocketType, port: u16) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let both = || {
        let socket = socket_with(AddressFamily::INET6, kind, flags, None)?;
        set_ipv6_v6only(&socket, false)?;
        if kind == SocketType::STREAM && port != 0 {
            set_socket_reuseaddr(&socket, true)?;
        }
        bind(&socket, &SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port))?;
        Ok(socket)
    };
    match both() {
        Err(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL) => {
            let socket = socket_with(AddressFamily::INET, kind, flags, None)?;
            if kind == SocketType::STREAM && port != 0 {
                set_socket_reuseaddr(&socket, true)?;
            }
            bind(&socket, &SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port))?;
            Ok(socket)
        }
        other => Ok(other?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::TcpStream;

    /// Lets a caller that sends this connect and end, and returns the line about it.
    fn line_about(is_known: bool, bytes: &[u8]) -> Option<String> {
        let mut reactor = Reactor::new().unwrap();
        let mut listener = Listener::closed(None);
        let _datagrams = listener.open(&mut reactor).unwrap();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, listener.port()));
        let mut caller = TcpStream::connect(address).unwrap();
        caller.write_all(bytes).unwrap();
        let mut ready = Vec::new();
        reactor.wait(None, &mut ready).unwrap();
        assert_eq!(listener.accept(&mut reactor, Duration::ZERO, |_| is_known), []);
        drop(caller);
        while !listener.strangers.is_empty() {
            ready.clear();
            reactor.wait(None, &mut ready).unwrap();
            let strangers = ready.iter().filter(|(token, _)| !listener.is_own(*token));
            for (token, _) in strangers.collect::<Vec<_>>() {
                assert!(listener.read(*token).is_none());
            }
        }
        listener.line(Duration::ZERO)
    }

    #[test]
    fn a_host_of_the_machine_may_give_up_a_connection() {
        assert_eq!(line_about(true, b""), None);
        assert!(line_about(false, b"").unwrap().contains("said nothing"));
        for is_known in [false, true] {
            let line = line_about(is_known, b"GET / HTTP/1.1").unwrap();
            assert!(line.contains("does not begin as a connection of Landeck"), "{line}");
            assert!(line_about(is_known, b"LDK1").unwrap().contains("within its preamble"));
        }
    }
}
