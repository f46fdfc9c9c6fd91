//! Tunnels as the daemon's loop has them: opened as lanes are, and streams on them for processes that want a relay.
//!
//! A tunnel is a lane of two daemons: [`landeck_protocols::hosts::Dialling`] decides which of them dials, and both agree on
//! one. The thread of [`crate::tunnels`] has its connection then. A stream begins with the preamble of a relay, whose code
//! covers a challenge for this stream alone. The other loop checks it as it checks that of a relay's own connection.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use landeck_trust::lane::{preamble_code, stream_challenge, verify};
use landeck_trust::{LaneEnd, lane_keys};
use landeck_wire::handover::LaneKeys;
use landeck_wire::preamble::{CHALLENGE_BYTES, PREAMBLE_BYTES, Preamble, Purpose, set_code};
use landeck_wire::{HostNumber, Incarnation, JobId, ProcessId, SegmentId, Slot};
use rustix::event::epoll::EventFlags;
use tracing::info;

use super::relays::{Wish, stream_ends};
use super::{CallRefusal, Connected, LaneTools, Lanes, LanesEvent};
use crate::calls::dial::DIAL_TIME;
use crate::relay::RelayCaller;
use crate::trunks::Trunks;
use crate::tunnels::{StreamName, TunnelEvent, Tunnels};

/// The slot of a daemon among the ends of lanes, which no process has.
const DAEMON: Slot = Slot(u32::MAX);

/// The daemon of a host, as the end of a tunnel.
const fn daemon_of(host: HostNumber) -> ProcessId {
    let segment = SegmentId(host.0 as u64);
    ProcessId { segment, slot: DAEMON, incarnation: Incarnation(0) }
}

/// Whether the end of a lane is a daemon, so that the lane is a tunnel.
pub(super) fn is_daemon(end: ProcessId) -> bool {
    end.slot == DAEMON
}

/// The host of a daemon.
pub(super) const fn host_of(daemon: ProcessId) -> HostNumber {
    HostNumber(daemon.segment.0 as u16)
}

/// A stream that another daemon has begun. It waits for its answer.
#[derive(Debug)]
pub(crate) struct BegunStream {
    /// Its name.
    pub(crate) name: StreamName,
    preamble: Box<[u8; PREAMBLE_BYTES]>,
}

/// A preamble whose code is right, with the secret of the two hosts and the challenge of its stream.
pub(crate) type ProvenStream = (Preamble, ([u8; 32], [u8; CHALLENGE_BYTES]));

/// A tunnel that is open.
#[derive(Debug)]
struct OpenTunnel {
    number: u32,
    challenge: [u8; CHALLENGE_BYTES],
    /// The number of this side's next stream.
    next: u32,
}

/// A stream of this side that is not accepted yet.
#[derive(Debug)]
struct OfferedStream {
    wish: Wish,
    socket: OwnedFd,
    keys: LaneKeys,
    deadline: Duration,
}

/// The tunnels of this host.
#[derive(Debug)]
pub(super) struct HostTunnels {
    thread: Tunnels,
    /// The token under which the thread's bell is watched.
    token: Option<u64>,
    open: BTreeMap<HostNumber, OpenTunnel>,
    /// The wishes that wait for a tunnel.
    awaited: Vec<Wish>,
    offered: HashMap<StreamName, OfferedStream>,
    begun: Vec<BegunStream>,
}

impl HostTunnels {
    /// No tunnel. One is broken when it has carried nothing for so long.
    pub(super) fn new(own: HostNumber, silence: Duration) -> Self {
        Self {
            thread: Tunnels::new(own, silence),
            token: None,
            open: BTreeMap::new(),
            awaited: Vec::new(),
            offered: HashMap::new(),
            begun: Vec::new(),
        }
    }

    /// Whether a token is that of the thread's bell.
    pub(super) fn has(&self, token: u64) -> bool {
        self.token == Some(token)
    }

    /// Forgets the wishes of a segment's processes.
    pub(super) fn forget(&mut self, segment: SegmentId) {
        self.awaited.retain(|wish| wish.own.segment != segment);
        self.offered.retain(|_, one| one.wish.own.segment != segment);
    }

    /// When the next of the streams that are not accepted is late.
    pub(super) fn deadline(&self) -> Option<Duration> {
        self.offered.values().map(|one| one.deadline).min()
    }

    /// Whether a stream of a process to a host is being opened.
    pub(super) fn is_under_way(&self, own: ProcessId, host: HostNumber) -> bool {
        let offered = self.offered.values().map(|one| &one.wish);
        offered.chain(&self.awaited).any(|it| (it.own, it.host) == (own, host))
    }

    fn awaiting(&mut self, host: HostNumber) -> Vec<Wish> {
        self.awaited.extract_if(.., |wish| wish.host == host).collect()
    }

    /// Takes the streams that were offered over a tunnel, or over any one of a host.
    fn take_offered(&mut self, host: HostNumber, tunnel: Option<u32>) -> Vec<Wish> {
        let is_its = |name: &StreamName, _: &mut OfferedStream| {
            name.0 == host && tunnel.is_none_or(|tunnel| tunnel == name.1)
        };
        self.offered.extract_if(is_its).map(|(_, one)| one.wish).collect()
    }
}

impl Lanes {
    /// A process wants the relay of a host, over the tunnel to that host.
    pub(super) fn tunnel_wanted(&mut self, tools: &mut LaneTools, wish: Wish) {
        if self.tunnels.open.contains_key(&wish.host) {
            return self.offer_stream(tools, wish);
        }
        self.tunnels.awaited.push(wish);
        let (own, far) = (daemon_of(self.own), daemon_of(wish.host));
        let outputs = self.machine_of_lanes.want(own, far, wish.host);
        self.perform(tools, outputs, None);
    }

    /// Checks the preamble of a tunnel.
    ///
    /// # Errors
    /// The reason why it is none.
    pub(super) fn check_tunnel(&self, preamble: &Preamble) -> Result<(), &'static str> {
        let Preamble { own, wanted, from, job, .. } = *preamble;
        match (own, wanted, job) == (daemon_of(from), daemon_of(self.own), JobId(0)) {
            true => Ok(()),
            false => Err("its preamble has a field that no daemon writes"),
        }
    }

    /// A connection of this daemon and another one is a tunnel.
    pub(super) fn begin_tunnel(
        &mut self,
        tools: &mut LaneTools,
        (host, number): (HostNumber, u32),
        connected: Connected,
    ) {
        if let Err(error) = self.start_tunnels(tools) {
            info!("tunnel to host {}: {error}", host.0);
            self.machine_of_lanes.broken(daemon_of(self.own), daemon_of(host), number);
            return self.no_tunnel(tools, host);
        }
        info!("tunnel {number} to host {}: open", host.0);
        for wish in self.tunnels.take_offered(host, None) {
            self.tunnels.awaited.push(wish);
        }
        let Connected { socket, challenge, .. } = connected;
        let next = if self.own < host { 1 } else { 2 };
        self.tunnels.open.insert(host, OpenTunnel { number, challenge, next });
        self.tunnels.thread.begin((host, number), socket);
        for wish in self.tunnels.awaiting(host) {
            self.offer_stream(tools, wish);
        }
    }

    fn start_tunnels(&mut self, tools: &mut LaneTools) -> io::Result<()> {
        if let Some(bell) = self.tunnels.thread.start()? {
            let token = tools.reactor.token();
            tools.reactor.watch(bell, token, EventFlags::IN)?;
            self.tunnels.token = Some(token);
        }
        Ok(())
    }

    /// Begins a stream for a process. It is the process's when the other side has accepted it.
    fn offer_stream(&mut self, tools: &LaneTools, wish: Wish) {
        if self.try_offer_stream(tools, wish).is_none() {
            self.refuse_relay(tools, wish);
        }
    }

    fn try_offer_stream(&mut self, tools: &LaneTools, wish: Wish) -> Option<()> {
        let (preamble, secret) = self.relay_preamble(tools, wish)?;
        let tunnel = self.tunnels.open.get_mut(&wish.host)?;
        let name = (wish.host, tunnel.number, tunnel.next);
        tunnel.next = tunnel.next.checked_add(2)?;
        let challenge = stream_challenge(&secret, &tunnel.challenge, (name.1, name.2));
        let mut bytes = preamble.encode();
        let code = preamble_code(&secret, &challenge, &bytes);
        set_code(&mut bytes, &code);
        let cipher = self.cipher(tools.trunks, wish.host);
        let keys = lane_keys(&secret, &challenge, &preamble, cipher, LaneEnd::Dialler);
        let (own, socket) = stream_ends().ok()?;
        self.tunnels.thread.open(name, bytes, own);
        let deadline = tools.now + DIAL_TIME;
        self.tunnels.offered.insert(name, OfferedStream { wish, socket, keys, deadline });
        Some(())
    }

    /// No tunnel to a host can be had.
    pub(super) fn no_tunnel(&mut self, tools: &LaneTools, host: HostNumber) {
        for wish in self.tunnels.awaiting(host) {
            self.refuse_relay(tools, wish);
        }
    }

    /// A host is lost, and its streams with it.
    pub(super) fn tunnel_host_lost(&mut self, tools: &LaneTools, host: HostNumber) {
        if let Some(tunnel) = self.tunnels.open.remove(&host) {
            self.tunnels.thread.end((host, tunnel.number));
        }
        self.no_tunnel(tools, host);
        for wish in self.tunnels.take_offered(host, None) {
            self.refuse_relay(tools, wish);
        }
    }

    /// A tunnel is given up for the next one.
    pub(super) fn end_tunnel(&mut self, tools: &LaneTools, tunnel: (HostNumber, u32)) {
        self.tunnels.thread.end(tunnel);
        self.tunnel_ended(tools, tunnel);
    }

    fn tunnel_ended(&mut self, tools: &LaneTools, (host, number): (HostNumber, u32)) {
        self.tunnels.open.retain(|of, one| (*of, one.number) != (host, number));
        for wish in self.tunnels.take_offered(host, Some(number)) {
            self.refuse_relay(tools, wish);
        }
    }

    /// Gives up streams that the other daemon does not accept in time: its loop may stand still. The process asks again.
    pub(super) fn look_at_streams(&mut self, tools: &LaneTools) {
        let is_late = |_: &StreamName, one: &mut OfferedStream| tools.now >= one.deadline;
        let late: Vec<Wish> =
            self.tunnels.offered.extract_if(is_late).map(|(_, one)| one.wish).collect();
        late.into_iter().for_each(|wish| self.refuse_relay(tools, wish));
    }

    /// Takes what the thread has to say.
    pub(super) fn tunnels_ready(&mut self, tools: &mut LaneTools) {
        for event in self.tunnels.thread.take_events() {
            match event {
                TunnelEvent::Opened { name, preamble } => {
                    self.tunnels.begun.push(BegunStream { name, preamble });
                }
                TunnelEvent::Accepted(name) => {
                    if let Some(OfferedStream { wish, socket, keys, .. }) =
                        self.tunnels.offered.remove(&name)
                    {
                        self.hand_relay(tools, wish, keys, socket);
                    }
                }
                TunnelEvent::Refused(name) => {
                    if let Some(one) = self.tunnels.offered.remove(&name) {
                        self.refuse_relay(tools, one.wish);
                    }
                }
                TunnelEvent::Broken { host, tunnel, fault, is_narrow } => {
                    let what = fault.unwrap_or("the connection has ended");
                    info!("tunnel {tunnel} to host {}: broken: {what}", host.0);
                    if is_narrow {
                        tools.trunks.narrow(host);
                    }
                    self.machine_of_lanes.broken(daemon_of(self.own), daemon_of(host), tunnel);
                    self.tunnel_ended(tools, (host, tunnel));
                    self.events.extend(fault.map(|why| LanesEvent::Refused { host, why }));
                }
            }
        }
    }

    /// Takes the streams that other daemons have begun. Each waits for its answer.
    pub(crate) fn take_begun(&mut self) -> Vec<BegunStream> {
        std::mem::take(&mut self.tunnels.begun)
    }

    /// Checks the code of a stream's preamble.
    ///
    /// # Errors
    /// The reason why it is refused.
    pub(crate) fn prove_stream(
        &self,
        trunks: &Trunks,
        stream: &BegunStream,
    ) -> Result<ProvenStream, &'static str> {
        let (host, number, its) = stream.name;
        let preamble = Preamble::decode(&stream.preamble).ok();
        let is_its = |it: &Preamble| it.from == host && it.purpose == Purpose::Relay;
        let preamble = preamble.filter(is_its).ok_or("its stream is none to a relay")?;
        let secret = self.secret_for(trunks, &preamble)?;
        let tunnel = self.tunnels.open.get(&host).filter(|tunnel| tunnel.number == number);
        let tunnel = tunnel.ok_or("its tunnel has ended")?;
        let challenge = stream_challenge(&secret, &tunnel.challenge, (number, its));
        match verify(&secret, &challenge, &stream.preamble) {
            true => Ok((preamble, (secret, challenge))),
            false => Err("the code of its stream is wrong"),
        }
    }

    /// Accepts a stream whose code is right. Returns the client of this host's relay.
    ///
    /// # Errors
    /// [`CallRefusal`].
    pub(crate) fn accept_stream(
        &mut self,
        tools: &LaneTools,
        stream: &BegunStream,
        (preamble, (secret, challenge)): &ProvenStream,
    ) -> Result<RelayCaller, CallRefusal> {
        self.check_processes(tools, preamble)?;
        let (own, socket) = stream_ends().map_err(|_| CallRefusal::Known)?;
        let caller = self.relay_caller(tools, preamble, (secret, challenge), socket)?;
        self.tunnels.thread.answer(stream.name, Some(own));
        Ok(caller)
    }

    /// Refuses a stream.
    pub(crate) fn refuse_stream(&self, stream: &BegunStream) {
        self.tunnels.thread.answer(stream.name, None);
    }
}

#[cfg(test)]
impl Lanes {
    /// The reasons why streams of a host are refused that begin with preambles which are right, for another stream, changed,
    /// for another tunnel, for another purpose, of another host, and under another secret.
    pub(crate) fn whys_of_streams(
        &self,
        trunks: &Trunks,
        host: HostNumber,
    ) -> Vec<Option<&'static str>> {
        let tunnel = &self.tunnels.open[&host];
        let (key_generation, secret) = trunks.newest_secret(host).expect("a secret");
        let trunk = Preamble::trunk(self.machine, host, self.own);
        let right = Preamble { purpose: Purpose::Relay, key_generation, ..trunk };
        let number = tunnel.number;
        let challenge = stream_challenge(secret, &tunnel.challenge, (number, 7));
        let why = |preamble: Preamble, change: u8, (number, stream)| {
            let mut bytes = preamble.encode();
            let code = preamble_code(secret, &challenge, &bytes);
            set_code(&mut bytes, &code);
            bytes[PREAMBLE_BYTES - 1] ^= change;
            let begun = BegunStream { name: (host, number, stream), preamble: Box::new(bytes) };
            self.prove_stream(trunks, &begun).err()
        };
        vec![
            why(right, 0, (number, 7)),
            why(right, 0, (number, 9)),
            why(right, 1, (number, 7)),
            why(right, 0, (number + 1, 7)),
            why(Preamble { purpose: Purpose::Lane, ..right }, 0, (number, 7)),
            why(Preamble { from: self.own, ..right }, 0, (number, 7)),
            why(Preamble { key_generation: key_generation + 9, ..right }, 0, (number, 7)),
        ]
    }
}
