//! The way of heartbeats: sealed datagrams, and envelopes over the trunk where datagrams do not pass.
//!
//! A heartbeat goes over the trunk as well while no datagram of the other side has come for a second. Where datagrams
//! pass in one direction only, the side that hears them notices that the other one uses the trunk, and does so too.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use landeck_trust::{HeartbeatOpener, HeartbeatSealer, TrustError};
use landeck_wire::HostNumber;
use landeck_wire::handover::Cipher;
use landeck_wire::heartbeat::{DATAGRAM_BYTES, Envelope, Heartbeat};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, getpeername, getsockname, recvfrom, sendto,
};

use crate::addresses::simple;

/// Datagrams count as lost when none came for this long.
const PATIENCE: Duration = Duration::from_secs(1);
/// The datagrams that are read in one turn of the loop.
const DATAGRAMS_PER_TURN: usize = 512;
/// The secrets under which heartbeats are still opened: that of the newest trunk, and those of trunks before.
const SECRETS: usize = 2;
/// Heartbeats need no fast cipher, and every processor has this one.
const CIPHER: Cipher = Cipher::ChaCha20Poly1305;

/// A heartbeat that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeardBeat {
    /// The host that it comes from.
    pub(crate) from: HostNumber,
    /// Its number.
    pub(crate) number: u64,
    /// Its content.
    pub(crate) heartbeat: Heartbeat,
}

/// The socket of datagrams, and the other hosts.
#[derive(Debug)]
pub(crate) struct Heartbeats {
    /// The socket, if the daemon has opened its port.
    socket: Option<DatagramSocket>,
    own: HostNumber,
    peers: BTreeMap<HostNumber, Correspondent>,
}

#[derive(Debug)]
struct DatagramSocket {
    socket: OwnedFd,
    is_version_6: bool,
}

#[derive(Debug)]
struct Correspondent {
    sealer: HeartbeatSealer,
    openers: VecDeque<HeartbeatOpener>,
    address: Option<SocketAddr>,
    /// When a datagram of it has last come; at first, when the trunk was opened.
    datagram_at: Duration,
    /// When a heartbeat of it has last come over the trunk.
    envelope_at: Option<Duration>,
}

impl Heartbeats {
    /// The heartbeats of this host. It has no socket for them yet.
    pub(crate) const fn new(own: HostNumber) -> Self {
        Self { socket: None, own, peers: BTreeMap::new() }
    }

    /// Sends and reads heartbeats over this socket.
    pub(crate) fn use_socket(&mut self, socket: OwnedFd) {
        let is_version_6 = getsockname(&socket)
            .is_ok_and(|address| address.address_family() == AddressFamily::INET6);
        self.socket = Some(DatagramSocket { socket, is_version_6 });
    }

    /// The socket.
    pub(crate) fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.socket.as_ref().map(|datagrams| datagrams.socket.as_fd())
    }

    /// Uses the secret of a new trunk to a host, which runs over this socket, and whose daemon listens on this port.
    ///
    /// # Errors
    /// [`TrustError`].
    pub(crate) fn begin(
        &mut self,
        host: HostNumber,
        secret: &[u8; 32],
        trunk: Option<&OwnedFd>,
        port: Option<u16>,
        now: Duration,
    ) -> Result<(), TrustError> {
        let sealer = HeartbeatSealer::new(secret, self.own, host, CIPHER)?;
        let opener = HeartbeatOpener::new(secret, host, self.own, CIPHER)?;
        let address = trunk.and_then(peer_address).zip(port);
        let address = address.map(|(address, port)| SocketAddr::new(address, port));
        let before = self.peers.remove(&host);
        let mut openers = before.map(|peer| peer.openers).unwrap_or_default();
        openers.push_front(opener);
        openers.truncate(SECRETS);
        let correspondent =
            Correspondent { sealer, openers, address, datagram_at: now, envelope_at: None };
        self.peers.insert(host, correspondent);
        Ok(())
    }

    /// Forgets a host.
    pub(crate) fn end(&mut self, host: HostNumber) {
        self.peers.remove(&host);
    }

    /// Sends a heartbeat as a datagram. Returns its bytes if they are to go over the trunk as well.
    pub(crate) fn send(
        &mut self,
        to: HostNumber,
        number: u64,
        heartbeat: &Heartbeat,
        now: Duration,
    ) -> Option<[u8; DATAGRAM_BYTES]> {
        let peer = self.peers.get_mut(&to)?;
        let datagram = peer.sealer.seal(number, heartbeat).ok()?;
        if let (Some(address), Some(own)) = (peer.address, &self.socket) {
            // A datagram that the kernel does not take is lost as others are.
            let _ = sendto(
                &own.socket,
                &datagram,
                SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
                &of_socket(address, own.is_version_6),
            );
        }
        let is_silent = peer.address.is_none() || now >= peer.datagram_at + PATIENCE;
        let is_deaf = peer.envelope_at.is_some_and(|at| now < at + PATIENCE);
        (is_silent || is_deaf).then_some(datagram)
    }

    /// Reads the datagrams that have come. Returns whether all were read.
    pub(crate) fn read(&mut self, now: Duration, heard: &mut Vec<HeardBeat>) -> bool {
        // One byte more than a heartbeat has, so that longer datagrams are recognised.
        let mut buffer = [0; DATAGRAM_BYTES + 1];
        for _ in 0..DATAGRAMS_PER_TURN {
            let Some(DatagramSocket { socket, .. }) = &self.socket else { return true };
            let (length, address) = match recvfrom(socket, &mut buffer[..], RecvFlags::DONTWAIT) {
                Ok((_, length, address)) => (length.min(buffer.len()), address),
                Err(Errno::AGAIN) => return true,
                // An earlier datagram was refused, or a signal came.
                Err(_) => continue,
            };
            let Some(beat) = self.open(&buffer[..length]) else { continue };
            if let Some(peer) = self.peers.get_mut(&beat.from) {
                peer.datagram_at = now;
                let address = address.and_then(|address| SocketAddr::try_from(address).ok());
                // It is authentic, so answers reach its sender at the address that it came from.
                peer.address = address.map(simple).or(peer.address);
            }
            heard.push(beat);
        }
        false
    }

    /// Takes a heartbeat that came over the trunk of a host.
    pub(crate) fn take_envelope(
        &mut self,
        from: HostNumber,
        bytes: &[u8],
        now: Duration,
    ) -> Option<HeardBeat> {
        if let Some(peer) = self.peers.get_mut(&from) {
            peer.envelope_at = Some(now);
        }
        self.open(bytes).filter(|beat| beat.from == from)
    }

    fn open(&mut self, bytes: &[u8]) -> Option<HeardBeat> {
        let from = Envelope::decode(bytes)?.from;
        let peer = self.peers.get_mut(&from)?;
        let opened = peer.openers.iter_mut().find_map(|opener| opener.open(bytes).ok());
        opened.map(|(number, heartbeat)| HeardBeat { from, number, heartbeat })
    }
}

/// The address of the host that a trunk leads to.
pub(crate) fn peer_address(trunk: &OwnedFd) -> Option<IpAddr> {
    let address = SocketAddr::try_from(getpeername(trunk).ok()??).ok()?;
    Some(simple(address).ip())
}

/// The address in the form that a socket of this version takes.
fn of_socket(address: SocketAddr, is_version_6: bool) -> SocketAddr {
    match address {
        SocketAddr::V4(address) if is_version_6 => {
            SocketAddr::new(address.ip().to_ipv6_mapped().into(), address.port())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::listener::Listener;
    use crate::reactor::Reactor;
    use landeck_wire::HostIncarnation;

    const SECRET: [u8; 32] = [5; 32];

    fn side(own: u16) -> (Heartbeats, u16) {
        let mut reactor = Reactor::new().unwrap();
        let mut listener = Listener::closed(None);
        let mut heartbeats = Heartbeats::new(HostNumber(own));
        heartbeats.use_socket(listener.open(&mut reactor).unwrap());
        (heartbeats, listener.port())
    }

    fn beat(word: u64) -> Heartbeat {
        Heartbeat { echo: 0, incarnation: HostIncarnation(1), word, boot: 9 }
    }

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn datagrams_pass_and_come_once() {
        let _watchdog = landeck_testing::Watchdog::start(Duration::from_secs(60));
        let ((mut one, _), (mut other, port)) = (side(0), side(1));
        one.begin(HostNumber(1), &SECRET, None, None, at(0)).unwrap();
        other.begin(HostNumber(0), &SECRET, None, None, at(0)).unwrap();
        let peer = one.peers.get_mut(&HostNumber(1)).unwrap();
        peer.address = Some(SocketAddr::new(IpAddr::from([127, 0, 0, 1]), port));
        assert_eq!(one.send(HostNumber(1), 1, &beat(7), at(0)), None, "the trunk is not needed");
        let mut heard = Vec::new();
        while heard.is_empty() {
            assert!(other.read(at(5), &mut heard));
        }
        let expected = HeardBeat { from: HostNumber(0), number: 1, heartbeat: beat(7) };
        assert_eq!(heard, [expected]);
        let known = other.peers[&HostNumber(0)].address.unwrap();
        assert_eq!(
            known.ip(),
            IpAddr::from([127, 0, 0, 1]),
            "it answers where the datagram came from"
        );
        let again = one.send(HostNumber(1), 1, &beat(7), at(0));
        assert_eq!(again, None, "no number is used twice");
    }

    #[test]
    fn without_datagrams_heartbeats_take_the_trunk() {
        let ((mut one, _), (mut other, _)) = (side(0), side(1));
        one.begin(HostNumber(1), &SECRET, None, None, at(0)).unwrap();
        other.begin(HostNumber(0), &SECRET, None, None, at(0)).unwrap();
        let bytes = one.send(HostNumber(1), 1, &beat(7), at(0)).unwrap();
        let heard = other.take_envelope(HostNumber(0), &bytes, at(1)).unwrap();
        assert_eq!((heard.number, heard.heartbeat), (1, beat(7)));
        assert_eq!(other.take_envelope(HostNumber(0), &bytes, at(1)), None, "it came before");
        let mut changed = one.send(HostNumber(1), 2, &beat(7), at(0)).unwrap();
        changed[20] ^= 1;
        assert_eq!(other.take_envelope(HostNumber(0), &changed, at(1)), None);
        // The other side used the trunk a moment ago, so it does not hear datagrams.
        other.peers.get_mut(&HostNumber(0)).unwrap().address = Some("127.0.0.1:9".parse().unwrap());
        assert!(other.send(HostNumber(0), 1, &beat(1), at(500)).is_some());
        assert!(
            other.send(HostNumber(0), 2, &beat(1), at(1_600)).is_some(),
            "none came for a second"
        );
    }

    #[test]
    fn heartbeats_of_the_trunk_before_still_open() {
        let ((mut one, _), (mut other, _)) = (side(0), side(1));
        one.begin(HostNumber(1), &SECRET, None, None, at(0)).unwrap();
        other.begin(HostNumber(0), &SECRET, None, None, at(0)).unwrap();
        let old = one.send(HostNumber(1), 1, &beat(7), at(0)).unwrap();
        other.begin(HostNumber(0), &[6; 32], None, None, at(0)).unwrap();
        assert!(other.take_envelope(HostNumber(0), &old, at(1)).is_some());
        other.begin(HostNumber(0), &[7; 32], None, None, at(0)).unwrap();
        let old = one.send(HostNumber(1), 2, &beat(7), at(0)).unwrap();
        assert_eq!(other.take_envelope(HostNumber(0), &old, at(1)), None);
    }
}
