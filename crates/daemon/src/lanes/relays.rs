//! Connections to relays: dialled to those of other hosts for processes of this host, and taken from processes elsewhere. For
//! data that stay on this host, its processes have connections to the relay here.
//!
//! They need no agreement of both daemons, as lanes do: a relay serves every process of the job, and a process that finds
//! its connection closed asks again.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use landeck_collectives::settings::Settings;
use landeck_memory::Segment;
use landeck_trust::{LaneEnd, lane_keys};
use landeck_wire::handover::{Cipher, Handover, LaneKeys};
use landeck_wire::preamble::{CHALLENGE_BYTES, Preamble, Purpose};
use landeck_wire::way::PathWish;
use landeck_wire::{HostNumber, ProcessId, SegmentId};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
};

use super::{CallRefusal, LaneTools, Lanes, LanesEvent};
use crate::calls::dial::Dial;
use crate::calls::listener::Caller;
use crate::relay::RelayCaller;
use crate::trunks::NoWay;

/// The byte with which the other daemon confirms that its relay has taken a connection.
const CONFIRMED: [u8; 1] = [1];

/// The bytes that wait for a process, for a tunnel or for the relay on one stream, if the system allows so many.
const SOCKET_BYTES: usize = 1 << 20;

/// A run of the daemon has so many bits of numbers for connections. Numbers are compared as far as they are half of all apart.
const RUN_SHIFT: u32 = 24;

/// The connections that are being opened.
#[derive(Debug, Default)]
pub(super) struct RelayDials {
    dials: HashMap<u64, (Dial, Wish)>,
    offered: HashMap<u64, OfferedRelay>,
    /// The wishes that wait for the secret of this host and another one.
    awaited: Vec<(HostNumber, Wish)>,
    /// The number of the last one. A relay serves a process over no connection with a lower number than before.
    last: u32,
}

/// A connection whose preamble was sent.
#[derive(Debug)]
struct OfferedRelay {
    wish: Wish,
    socket: OwnedFd,
    keys: LaneKeys,
    deadline: Duration,
}

/// A process's wish for a relay.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    /// The process's connection to this daemon.
    pub(super) resident: u64,
    pub(super) own: ProcessId,
    /// A process of the other host, which names its segment.
    there: ProcessId,
    pub(super) host: HostNumber,
    /// The way that is tried next.
    way: usize,
}

/// Whether the messages of a job go over tunnels.
pub(super) fn goes_over_tunnels(segment: &Segment) -> bool {
    let [first, ..] = Settings::from_words(&segment.plan().settings).paths;
    PathWish::from_number(first as u8) == Some(PathWish::Daemons)
}

impl RelayDials {
    /// Those of this run of a daemon. It numbers them above those of the run before.
    pub(super) fn of_run(run: u32) -> Self {
        Self { last: run << RUN_SHIFT, ..Self::default() }
    }

    /// Whether a token is one of theirs.
    pub(super) fn has(&self, token: u64) -> bool {
        self.dials.contains_key(&token) || self.offered.contains_key(&token)
    }

    /// When the next of them is late.
    pub(super) fn deadline(&self) -> Option<Duration> {
        let dials = self.dials.values().map(|(dial, _)| dial.deadline());
        dials.chain(self.offered.values().map(|one| one.deadline)).min()
    }

    /// Forgets the wishes of a segment's processes.
    pub(super) fn forget(&mut self, segment: SegmentId) {
        self.dials.retain(|_, (_, wish)| wish.own.segment != segment);
        self.offered.retain(|_, one| one.wish.own.segment != segment);
        self.awaited.retain(|(_, wish)| wish.own.segment != segment);
    }

    /// Whether a connection of a process to a host's relay is being opened.
    fn is_under_way(&self, own: ProcessId, host: HostNumber) -> bool {
        let dials = self.dials.values().map(|(_, wish)| wish);
        let offered = self.offered.values().map(|one| &one.wish);
        let awaited = self.awaited.iter().map(|(_, wish)| wish);
        let mut wishes = dials.chain(offered).chain(awaited);
        wishes.any(|it| (it.own, it.host) == (own, host))
    }
}

impl Lanes {
    /// A process wants the relay of a host. `Err` if no process asks so.
    pub(super) fn relay_wanted(
        &mut self,
        tools: &mut LaneTools,
        (resident, own): (u64, ProcessId),
        host: u32,
    ) -> Result<(), ()> {
        let Some(one) = self.residents.get(&resident) else { return Ok(()) };
        let part = tools.parts.get(one.job).ok_or(())?;
        let host = u16::try_from(host).map(HostNumber).map_err(drop)?;
        if host == self.own {
            let segment = part.segment.clone();
            return self.hand_own_relay(tools, (resident, own), segment).map_err(drop);
        }
        let is_there = |far: &u32| part.host_of(*far) == host;
        let far = (0..part.far.len() as u32).find(is_there).ok_or(())?;
        let there = part.far[far as usize];
        let is_under_way =
            self.relays.is_under_way(own, host) || self.tunnels.is_under_way(own, host);
        let wish = Wish { resident, own, there, host, way: 0 };
        match goes_over_tunnels(&part.segment) {
            _ if is_under_way => {}
            true => self.tunnel_wanted(tools, wish),
            false => self.dial_relay(tools, wish),
        }
        Ok(())
    }

    /// Connects a process to the relay of this host.
    fn hand_own_relay(
        &mut self,
        tools: &LaneTools,
        (resident, process): (u64, ProcessId),
        segment: Segment,
    ) -> io::Result<()> {
        let (its, socket) = stream_ends()?;
        let keys = LaneKeys { cipher: Cipher::Plain, send: [0; 32], receive: [0; 32] };
        self.relays.last = self.relays.last.wrapping_add(1);
        let (host, number, silence) = (self.own, self.relays.last, self.silence);
        let caller = RelayCaller {
            socket,
            keys: keys.clone(),
            process,
            far: None,
            segment,
            host,
            number,
            silence,
        };
        self.events.push(LanesEvent::RelayCalled(Box::new(caller)));
        self.tell(
            tools.reactor,
            resident,
            &Handover::Relayed { host: host.0.into(), keys },
            Some(its),
        );
        Ok(())
    }

    /// Tries again to open a connection to a relay, for a process whose last one broke.
    pub(super) fn try_relay(&mut self, tools: &mut LaneTools, own: ProcessId, host: HostNumber) {
        if let Some(resident) = self.tokens.get(&own).copied() {
            // It is known: a report has come from it.
            let _ = self.relay_wanted(tools, (resident, own), host.0.into());
        }
    }

    /// Dials a relay's host on the next way. A host that no lane has reached a moment ago has no relay either: it is the
    /// same port.
    fn dial_relay(&mut self, tools: &mut LaneTools, mut wish: Wish) {
        let unreached = self.unreached.get(&wish.host);
        if unreached.is_some_and(|at| tools.now < *at + self.timeout / 2) {
            return self.refuse_relay(tools, wish);
        }
        loop {
            let token = tools.reactor.token();
            let begun = match tools.trunks.newest_secret(wish.host) {
                Some(_) => {
                    let way = (wish.host, wish.way);
                    tools.trunks.begin_dial(tools.reactor, token, way, tools.now)
                }
                None => Err(NoWay::Unknown(wish.host)),
            };
            if let Err(NoWay::Unknown(missing)) = begun {
                tools.trunks.want(missing, tools.now);
                return self.relays.awaited.push((missing, wish));
            }
            wish.way += 1;
            match begun {
                Ok(dial) => return drop(self.relays.dials.insert(token, (dial, wish))),
                Err(NoWay::Over) => return self.refuse_relay(tools, wish),
                Err(_) => {}
            }
        }
    }

    pub(super) fn refuse_relay(&mut self, tools: &LaneTools, wish: Wish) {
        let host = u32::from(wish.host.0);
        self.tell(tools.reactor, wish.resident, &Handover::NoRelay { host }, None);
    }

    /// Goes on with a connection to a relay that is ready.
    pub(super) fn relay_ready(&mut self, tools: &mut LaneTools, token: u64) {
        let Some(offered) = self.relays.offered.get(&token) else {
            return self.relay_dialled(tools, token);
        };
        let mut byte = [0; CONFIRMED.len()];
        match recv(&offered.socket, &mut byte[..], RecvFlags::DONTWAIT) {
            Ok((_, count)) if count > 0 && byte == CONFIRMED => self.relay_confirmed(tools, token),
            Err(Errno::AGAIN | Errno::INTR) => {}
            _ => self.relay_failed(tools, token),
        }
    }

    fn relay_confirmed(&mut self, tools: &mut LaneTools, token: u64) {
        let Some(offered) = self.relays.offered.remove(&token) else { return };
        let OfferedRelay { wish, socket, keys, .. } = offered;
        let _ = tools.reactor.unwatch(&socket);
        self.hand_relay(tools, wish, keys, socket);
    }

    /// Hands a connection to a relay to its process.
    pub(super) fn hand_relay(
        &mut self,
        tools: &LaneTools,
        wish: Wish,
        keys: LaneKeys,
        socket: OwnedFd,
    ) {
        let host = u32::from(wish.host.0);
        self.drop_relay_reports(tools, wish.own, wish.host);
        let message = Handover::Relayed { host, keys };
        self.tell(tools.reactor, wish.resident, &message, Some(socket));
    }

    fn relay_dialled(&mut self, tools: &mut LaneTools, token: u64) {
        let Some((dial, _)) = self.relays.dials.get_mut(&token) else { return };
        match dial.go_on(tools.reactor, token) {
            Ok(false) => {}
            Ok(true) => {
                let Some((dial, wish)) = self.relays.dials.remove(&token) else { return };
                tools.trunks.dial_succeeded_on(&dial);
                match self.answer_relay(tools, token, dial, wish) {
                    Some(offered) => {
                        self.relays.offered.insert(token, offered);
                    }
                    None => self.dial_relay(tools, wish),
                }
            }
            Err(_) => self.relay_failed(tools, token),
        }
    }

    fn relay_failed(&mut self, tools: &mut LaneTools, token: u64) {
        let dialled = self.relays.dials.remove(&token).map(|(dial, wish)| {
            tools.trunks.dial_failed_on(&dial, tools.now);
            wish
        });
        let offered = || self.relays.offered.remove(&token).map(|one| one.wish);
        if let Some(wish) = dialled.or_else(offered) {
            self.dial_relay(tools, wish);
        }
    }

    /// Answers a challenge with the preamble of a relay.
    fn answer_relay(
        &mut self,
        tools: &LaneTools,
        token: u64,
        dial: Dial,
        wish: Wish,
    ) -> Option<OfferedRelay> {
        let (deadline, challenged) = (dial.deadline(), dial.challenged());
        let (preamble, secret) = self.relay_preamble(tools, wish)?;
        let cipher = self.cipher(tools.trunks, wish.host);
        let keys = challenged.prove(&preamble, &secret, cipher).ok()?;
        tools.reactor.rewatch(&challenged.socket, token, EventFlags::IN).ok()?;
        Some(OfferedRelay { wish, socket: challenged.socket, keys, deadline })
    }

    /// The preamble of the next connection to a relay for a wish, and the secret of the two hosts.
    pub(super) fn relay_preamble(
        &mut self,
        tools: &LaneTools,
        wish: Wish,
    ) -> Option<(Preamble, [u8; 32])> {
        let (job, _) = tools.parts.with_segment(wish.own.segment)?;
        let (key_generation, secret) = tools.trunks.newest_secret(wish.host)?;
        self.relays.last = self.relays.last.wrapping_add(1);
        let lane = self.relays.last;
        let preamble = Preamble {
            purpose: Purpose::Relay,
            machine: self.machine,
            job,
            wanted: wish.there,
            own: wish.own,
            lane,
            key_generation,
            to: wish.host,
            from: self.own,
            is_plain: self.is_plain,
            is_passed: false,
        };
        Some((preamble, *secret))
    }

    /// The trunk to a host is new.
    pub(super) fn relay_host_up(&mut self, tools: &mut LaneTools, host: HostNumber) {
        for wish in self.awaited_relays(host) {
            self.dial_relay(tools, wish);
        }
    }

    /// No trunk to a host could be opened, or the host is lost. Other ways may need no such one.
    pub(super) fn relay_host_down(&mut self, tools: &mut LaneTools, host: HostNumber) {
        for wish in self.awaited_relays(host) {
            match wish.host == host {
                true => self.refuse_relay(tools, wish),
                false => self.dial_relay(tools, Wish { way: wish.way + 1, ..wish }),
            }
        }
    }

    fn awaited_relays(&mut self, host: HostNumber) -> Vec<Wish> {
        let awaited = self.relays.awaited.extract_if(.., |(missing, _)| *missing == host);
        awaited.map(|(_, wish)| wish).collect()
    }

    /// Gives up connections that take too long.
    pub(super) fn look_at_relays(&mut self, tools: &mut LaneTools) {
        let dials = self.relays.dials.iter().map(|(token, (dial, _))| (*token, dial.deadline()));
        let offered = self.relays.offered.iter().map(|(token, one)| (*token, one.deadline));
        let late = dials.chain(offered).filter(|(_, deadline)| tools.now >= *deadline);
        for token in late.map(|(token, _)| token).collect::<Vec<_>>() {
            self.relay_failed(tools, token);
        }
    }

    /// Takes a caller that wants this host's relay.
    ///
    /// # Errors
    /// [`CallRefusal`].
    pub(crate) fn relay_called(
        &mut self,
        tools: &mut LaneTools,
        caller: Caller,
    ) -> Result<RelayCaller, CallRefusal> {
        let secret = self.verified(tools, &caller)?;
        // A refused connection ends without this byte.
        send(&caller.socket, &CONFIRMED, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
            .map_err(|_| "its connection has ended")?;
        let _ = tools.reactor.unwatch(&caller.socket);
        self.relay_caller(tools, &caller.preamble, (&secret, &caller.challenge), caller.socket)
    }

    /// The client of this host's relay that a preamble with a right code names.
    ///
    /// # Errors
    /// [`CallRefusal`].
    pub(super) fn relay_caller(
        &self,
        tools: &LaneTools,
        preamble: &Preamble,
        (secret, challenge): (&[u8; 32], &[u8; CHALLENGE_BYTES]),
        socket: OwnedFd,
    ) -> Result<RelayCaller, CallRefusal> {
        let part = tools.parts.get(preamble.job).ok_or(CallRefusal::Known)?;
        let far = Some(part.place(preamble.own).ok_or("its process is none of the job")?);
        let (host, process, number) = (preamble.from, preamble.own, preamble.lane);
        let cipher = self.cipher(tools.trunks, host);
        let keys = lane_keys(secret, challenge, preamble, cipher, LaneEnd::Acceptor);
        let (segment, silence) = (part.segment.clone(), self.silence);
        Ok(RelayCaller { socket, keys, process, far, segment, host, number, silence })
    }
}

/// The two ends of a stream on this host: that of the tunnel or the relay, and that of a process or the relay.
pub(super) fn stream_ends() -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let ends = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    for end in [&ends.0, &ends.1] {
        // What the system does not allow, it lowers. A process may compute when all that it has sent has its place there.
        let _ = set_socket_send_buffer_size(end, SOCKET_BYTES);
    }
    Ok(ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relay_takes_the_connections_of_the_next_run_for_newer_ones() {
        let first_of = |run| RelayDials::of_run(run).last + 1;
        let is_newer = |run: u32| first_of(run + 1).wrapping_sub(first_of(run)).cast_signed() > 0;
        assert!((0..600).all(is_newer), "also when numbers begin anew");
    }
}
