//! The conformance suite over relays: processes on hosts of their own, all played by one thread, and a relay on each.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use landeck_channel::conformance::Network;
use landeck_channel::relay_requests::RelayRequests;
use landeck_channel::{BrokenPeer, Channel, Peer, SendError, Sink, Verdict};
use landeck_memory::{Bytes, FarProcess, FarRecord, Segment, SegmentPlan, SlotRecord, SlotState};
use landeck_transports::Lanes;
use landeck_wire::handover::{Cipher, Handover, LaneKeys};
use landeck_wire::way::PathWish;
use landeck_wire::{ControlMessage, Header, HostNumber, Incarnation, ProcessId, SegmentId, Slot};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
    SocketType, recv, send, sendmsg, socketpair,
};

use super::{Relay, RelayCaller};

/// The number of the next connection.
static NUMBER: AtomicU32 = AtomicU32::new(1);

/// The host of one process.
pub(crate) struct TestHost {
    pub(super) segment: Segment,
    pub(super) relay: Relay,
    /// The daemon's end of the process's socket.
    daemon: Option<OwnedFd>,
}

/// Hosts with one process each. Process `n` has far record `n` in all other segments.
pub(crate) struct RelayedHosts {
    pub(super) hosts: Vec<TestHost>,
    /// Makes the two ends of a connection to a relay: that of a process, and that of the relay.
    pub(crate) connect: Box<dyn Fn() -> (OwnedFd, OwnedFd)>,
    channels: Vec<Option<Shifted>>,
}

/// A channel whose far process `n` is peer `n`, as the suite wants it. The slots of the segment come before them.
pub(crate) struct Shifted(pub(super) Lanes, u32);

struct ShiftedSink<'a>(&'a mut dyn Sink, u32);

impl Sink for ShiftedSink<'_> {
    fn arrive(&mut self, from: Peer, header: &Header, data: Bytes<'_>) -> Verdict {
        self.0.arrive(Peer(from.0 - self.1), header, data)
    }

    fn broken(&mut self, from: Peer, what: BrokenPeer) {
        self.0.broken(Peer(from.0.wrapping_sub(self.1)), what);
    }
}

impl Shifted {
    pub(super) fn peer(&self, peer: Peer) -> Peer {
        Peer(peer.0.saturating_add(self.1))
    }
}

impl Channel for Shifted {
    fn data_bytes_max(&self) -> usize {
        self.0.data_bytes_max()
    }

    fn try_send(&mut self, to: Peer, header: &Header, data: Bytes<'_>) -> Result<(), SendError> {
        let to = self.peer(to);
        self.0.try_send(to, header, data)
    }

    fn poll(&mut self, sink: &mut dyn Sink) -> bool {
        self.0.poll(&mut ShiftedSink(sink, self.1))
    }

    fn poll_peer_into<S: Sink>(&mut self, peer: Peer, sink: &mut S) -> bool {
        let peer = self.peer(peer);
        self.0.poll_peer_into(peer, &mut ShiftedSink(sink, self.1))
    }

    fn poll_thoroughly(&mut self, sink: &mut dyn Sink) -> bool {
        self.0.poll_thoroughly(&mut ShiftedSink(sink, self.1))
    }

    fn is_read_out(&self, peer: Peer) -> bool {
        self.0.is_read_out(self.peer(peer))
    }

    fn leave(&mut self) {
        self.0.leave();
    }

    fn forget(&mut self, peer: Peer) {
        let peer = self.peer(peer);
        self.0.forget(peer);
    }

    fn relay_requests(&mut self, owner: Peer) -> Option<&mut RelayRequests> {
        let owner = self.peer(owner);
        self.0.relay_requests(owner)
    }

    // Without descriptors that wake: the relay wakes its receivers in memory.

    fn has_unsent(&self) -> bool {
        self.0.has_unsent()
    }
}

pub(super) fn id(host: u32, incarnation: u32) -> ProcessId {
    ProcessId {
        segment: SegmentId(u64::from(host) + 1),
        slot: Slot(0),
        incarnation: Incarnation(incarnation),
    }
}

impl RelayedHosts {
    pub(crate) fn with(count: u32) -> Self {
        let host = |number: u32| {
            let plan = SegmentPlan::new(u64::from(number) + 1, 1);
            let plan = SegmentPlan { heap_bytes_per_process: 1 << 20, guests: 0, ..plan };
            let plan = SegmentPlan { ranks: count.max(2), far: count, hosts: count, ..plan };
            let (segment, relay) = (Segment::local(&plan), Relay::started());
            TestHost { segment, relay, daemon: None }
        };
        let hosts: Vec<TestHost> = (0..count).map(host).collect();
        let channels = (0..count).map(|_| None).collect();
        let mut all = Self { hosts, channels, connect: Box::new(tcp_pair) };
        (0..count).for_each(|number| all.begin(number));
        all
    }

    fn incarnation(&self, number: u32) -> u32 {
        self.hosts[number as usize].segment.incarnation(0)
    }

    /// Writes the state of a process into the segments of all hosts.
    fn set_state(&self, number: u32, state: SlotState, incarnation: u32) {
        for (host, one) in (0..).zip(&self.hosts) {
            if host == number {
                let record = SlotRecord { state, incarnation, ..SlotRecord::default() };
                one.segment.set_slot_record(0, record);
            }
            let process = FarProcess { host: u64::from(number) + 1, slot: 0, incarnation };
            let host_number = number as u16;
            let record = FarRecord { process, host_number, state, ..FarRecord::default() };
            one.segment.set_far_record(number, record);
        }
    }

    fn begin(&mut self, number: u32) {
        let incarnation = self.incarnation(number) + 1;
        self.set_state(number, SlotState::Alive, incarnation);
        let (family, flags) = (AddressFamily::UNIX, SocketFlags::CLOEXEC);
        let (daemon, process) = socketpair(family, SocketType::SEQPACKET, flags, None).unwrap();
        let host = &mut self.hosts[number as usize];
        host.daemon = Some(daemon);
        let lanes = Lanes::with_relays(process, &host.segment, 0, PathWish::Relay, 0).unwrap();
        self.channels[number as usize] = Some(Shifted(lanes, host.segment.plan().slots()));
    }

    /// The channel of a process. The daemons do nothing meanwhile.
    pub(super) fn channel(&mut self, number: u32) -> &mut Shifted {
        self.channels[number as usize].as_mut().unwrap()
    }

    /// Does what the daemons would do.
    pub(super) fn serve(&self) {
        for number in 0..self.hosts.len() as u32 {
            while let Some(message) = self.hear(number) {
                self.heard(number, &message);
            }
        }
    }

    pub(super) fn hear(&self, number: u32) -> Option<Handover> {
        let socket = self.hosts[number as usize].daemon.as_ref()?;
        let mut bytes = [0; Handover::BYTES_MAX];
        match recv(socket, &mut bytes[..], RecvFlags::DONTWAIT) {
            Ok((_, count @ 1..)) => Some(Handover::decode(&bytes[..count]).unwrap()),
            _ => None,
        }
    }

    pub(super) fn heard(&self, number: u32, message: &Handover) {
        let own = id(number, self.incarnation(number));
        let relay = &self.hosts[number as usize].relay;
        match *message {
            Handover::Relay { host } => {
                let (mine, theirs) = (self.connect)();
                self.serve_relay(host, number, theirs, own);
                let message = Handover::Relayed { host, keys: keys(false) };
                self.hand(number, &message, mine.as_fd());
            }
            Handover::Granted { far, position, .. } => {
                relay.granted(own, id(far, self.incarnation(far)), position);
            }
            Handover::Room => relay.has_room(own),
            Handover::RelayRestarted => relay.told(own),
            Handover::Hello { .. } => self.tell(number, &Handover::Welcome { silence_ms: 60_000 }),
            _ => {}
        }
    }

    pub(super) fn tell(&self, number: u32, message: &Handover) {
        let socket = self.hosts[number as usize].daemon.as_ref().unwrap();
        send(socket, &message.encode(), SendFlags::NOSIGNAL).unwrap();
    }

    /// Gives the relay of a host a connection of a process.
    pub(super) fn serve_relay(&self, host: u32, from: u32, socket: OwnedFd, process: ProcessId) {
        let segment = self.hosts[host as usize].segment.clone();
        let keys = keys(true);
        let (far, number) = (from, NUMBER.fetch_add(1, Ordering::Relaxed));
        let silence = Duration::from_secs(60);
        let caller = RelayCaller {
            host: HostNumber(from as u16),
            socket,
            keys,
            process,
            far: Some(far),
            segment,
            number,
            silence,
        };
        self.hosts[host as usize].relay.serve_here(caller);
    }

    pub(super) fn hand(&self, to: u32, message: &Handover, descriptor: BorrowedFd<'_>) {
        let socket = self.hosts[to as usize].daemon.as_ref().unwrap();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptors = [descriptor];
        assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
        let bytes = message.encode();
        sendmsg(socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL).unwrap();
    }
}

/// Waits until something is so.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let give_up = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < give_up, "waited in vain until {what}");
        std::thread::yield_now();
    }
}

/// The keys of a connection, as its process or its relay has them.
pub(super) fn keys(is_relay: bool) -> LaneKeys {
    let (send, receive) = ([1; 32], [2; 32]);
    let cipher = Cipher::Aes256Gcm;
    match is_relay {
        false => LaneKeys { cipher, send, receive },
        true => LaneKeys { cipher, send: receive, receive: send },
    }
}

/// Two ends of a connection on this host.
pub(crate) fn tcp_pair() -> (OwnedFd, OwnedFd) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let other = listener.accept().unwrap().0;
    other.set_nonblocking(true).unwrap();
    (one.into(), other.into())
}

impl Network for RelayedHosts {
    type Channel = Shifted;

    fn connect(count: u32) -> Self {
        Self::with(count)
    }

    fn endpoint(&mut self, number: u32) -> &mut Shifted {
        self.serve();
        self.channels[number as usize].as_mut().unwrap()
    }

    fn end(&mut self, number: u32) {
        self.serve();
        self.channels[number as usize] = None;
        let incarnation = self.incarnation(number);
        self.set_state(number, SlotState::Dead, incarnation);
        self.hosts.iter().for_each(|host| host.relay.process_ended(id(number, incarnation)));
        self.hosts[number as usize].daemon = None;
    }

    fn renew(&mut self, number: u32) {
        self.begin(number);
    }
}

landeck_channel::conformance_tests!(RelayedHosts);
