//! A tiny daemon, which hands lanes over to channels in this process.
#![allow(dead_code, reason = "each test program uses a part of it")]
#![expect(clippy::unwrap_used, reason = "a test")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::IoSlice;
use std::io::{ErrorKind, Result as IoResult};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use landeck_transports::Lanes;
use landeck_wire::ControlMessage;
use landeck_wire::handover::{Cipher, Handover, LaneKeys};
use rustix::net::{
    self, AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    SocketFlags, SocketType,
};

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The daemon of all channels of a test. Channel `n` is far process `n` to the others.
pub(crate) struct TestDaemon {
    cipher: Cipher,
    sockets: Vec<Option<OwnedFd>>,
    /// The number of the last lane of each pair.
    lanes: BTreeMap<(u32, u32), u32>,
    /// The pairs that have a lane: both may ask for it at once.
    connected: BTreeSet<(u32, u32)>,
    heard: Vec<(u32, Handover)>,
}

/// The place where a channel connects when its daemon has ended.
#[derive(Clone, Default)]
pub(crate) struct Meeting(Arc<Mutex<Met>>);

#[derive(Default)]
struct Met {
    /// The channel's end of the next connection.
    next: Option<OwnedFd>,
    attempts: u32,
}

impl Meeting {
    fn connect(&self) -> IoResult<OwnedFd> {
        let mut met = self.0.lock().unwrap();
        met.attempts += 1;
        met.next.take().ok_or_else(|| ErrorKind::ConnectionRefused.into())
    }

    /// How often the channel has tried to connect.
    pub(crate) fn attempts(&self) -> u32 {
        self.0.lock().unwrap().attempts
    }
}

impl TestDaemon {
    pub(crate) fn new(count: u32, cipher: Cipher) -> Self {
        let sockets = (0..count).map(|_| None).collect();
        Self {
            cipher,
            sockets,
            lanes: BTreeMap::new(),
            connected: BTreeSet::new(),
            heard: Vec::new(),
        }
    }

    /// Creates a channel, all of whose earlier lanes have been handed over.
    pub(crate) fn channel(&mut self, number: u32) -> Lanes {
        let channel = self.newcomer(number);
        self.hand(number, &Handover::Welcome { silence_ms: 60_000 }, None);
        channel
    }

    /// Creates a channel that its daemon has not welcomed yet.
    pub(crate) fn newcomer(&mut self, number: u32) -> Lanes {
        let (daemon, process) = daemon_pair();
        self.sockets[number as usize] = Some(daemon);
        Lanes::new(process, number, 0, 0, self.sockets.len() as u32).unwrap()
    }

    /// Creates a channel that connects anew when its daemon has ended.
    pub(crate) fn lasting(&mut self, number: u32) -> (Lanes, Meeting) {
        let (mut channel, meeting) = (self.channel(number), Meeting::default());
        let place = meeting.clone();
        channel.reconnect_by(move || place.connect());
        (channel, meeting)
    }

    /// Plays the next run of a daemon that has died: it listens to a channel, and knows nothing.
    pub(crate) fn restart(&mut self, number: u32, meeting: &Meeting) {
        let (daemon, process) = daemon_pair();
        meeting.0.lock().unwrap().next = Some(process);
        self.sockets[number as usize] = Some(daemon);
    }

    /// Forgets a channel, or plays a daemon that has died.
    pub(crate) fn end(&mut self, number: u32) {
        self.sockets[number as usize] = None;
        self.connected.retain(|(one, other)| *one != number && *other != number);
    }

    /// Hears all channels, and connects those that want a lane.
    pub(crate) fn serve(&mut self) {
        for number in 0..self.sockets.len() as u32 {
            while let Some(message) = self.hear(number) {
                if let Handover::Want { far } = message
                    && !self.connected.contains(&(number.min(far), number.max(far)))
                {
                    self.connect(number, far);
                }
                self.heard.push((number, message));
            }
        }
    }

    fn hear(&self, number: u32) -> Option<Handover> {
        let socket = self.sockets[number as usize].as_ref()?;
        let mut bytes = [0; Handover::BYTES_MAX];
        match net::recv(socket, &mut bytes[..], RecvFlags::DONTWAIT) {
            Ok((_, count @ 1..)) => Some(Handover::decode(&bytes[..count]).unwrap()),
            _ => None,
        }
    }

    /// The messages of the channels since the last call.
    pub(crate) fn heard(&mut self) -> Vec<(u32, Handover)> {
        self.serve();
        std::mem::take(&mut self.heard)
    }

    /// Connects two channels, if both are there.
    pub(crate) fn connect(&mut self, one: u32, other: u32) {
        let is_there = |number: u32| self.sockets[number as usize].is_some();
        if !is_there(one) || !is_there(other) {
            return;
        }
        let pair = (one.min(other), one.max(other));
        self.connected.insert(pair);
        let lane = self.lanes.entry(pair).or_default();
        *lane += 1;
        let (lane, (first, second)) = (*lane, tcp_pair());
        let keys = keys(self.cipher);
        let turned = LaneKeys { send: keys.receive, receive: keys.send, ..keys.clone() };
        self.hand(
            one,
            &Handover::Lane { far: other, incarnation: 0, lane, keys },
            Some(first.as_fd()),
        );
        let to_other = Handover::Lane { far: one, incarnation: 0, lane, keys: turned };
        self.hand(other, &to_other, Some(second.as_fd()));
    }

    /// Connects a channel with the test itself, which plays its peer `far`.
    pub(crate) fn possess(&mut self, number: u32, far: u32, lane: u32) -> TcpStream {
        let (mine, theirs) = tcp_pair();
        let message = Handover::Lane { far, incarnation: 0, lane, keys: keys(self.cipher) };
        self.hand(number, &message, Some(theirs.as_fd()));
        mine.into()
    }

    /// Gives the channels 0 and 1 a lane to each other whose cable is in the test's hands: returns its two ends.
    pub(crate) fn cable(&mut self, lane: u32) -> [TcpStream; 2] {
        let keys = keys(self.cipher);
        let turned = LaneKeys { send: keys.receive, receive: keys.send, ..keys.clone() };
        [(0, 1, keys), (1, 0, turned)].map(|(number, far, keys)| {
            let (mine, theirs) = tcp_pair();
            self.hand(
                number,
                &Handover::Lane { far, incarnation: 0, lane, keys },
                Some(theirs.as_fd()),
            );
            mine.into()
        })
    }

    /// Sends a message to a channel.
    pub(crate) fn hand(&self, to: u32, message: &Handover, descriptor: Option<BorrowedFd<'_>>) {
        self.hand_bytes(to, &message.encode(), descriptor);
    }

    /// Sends bytes to a channel.
    pub(crate) fn hand_bytes(&self, to: u32, bytes: &[u8], descriptor: Option<BorrowedFd<'_>>) {
        let socket = self.sockets[to as usize].as_ref().unwrap();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptors: Vec<BorrowedFd<'_>> = descriptor.into_iter().collect();
        if !descriptors.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
        }
        let parts = [IoSlice::new(bytes)];
        net::sendmsg(socket, &parts, &mut control, SendFlags::NOSIGNAL).unwrap();
    }
}

/// The keys of every lane, as the end that asked for it has them.
pub(crate) fn keys(cipher: Cipher) -> LaneKeys {
    LaneKeys { cipher, send: [1; 32], receive: [2; 32] }
}

/// Two ends of a connection of a process and its daemon.
fn daemon_pair() -> (OwnedFd, OwnedFd) {
    let flags = SocketFlags::CLOEXEC;
    net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap()
}

/// Two ends of a connection on this host.
pub(crate) fn tcp_pair() -> (OwnedFd, OwnedFd) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let other = listener.accept().unwrap().0;
    (one.into(), other.into())
}

pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
    }
}
