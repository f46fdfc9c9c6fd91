//! The measuring of the links between the hosts of a job, before its first process starts.
//!
//! [`landeck_protocols::hosts::Measuring`] decides which hosts measure each other when, and [`LinkProbe`] what they send. This
//! file carries that out: it dials the partner of a round or takes its call, under a secret that the arbiter has given to
//! all hosts of the job. A conversation takes milliseconds, and the loop of the daemon stands still meanwhile: so its other
//! work lengthens no round trip.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use landeck_protocols::hosts::{LinkProbe, LinkSight, Measuring, MeasuringTurn, ProbeStep};
use landeck_trust::lane::verify;
use landeck_wire::handover::Cipher;
use landeck_wire::preamble::{Preamble, Purpose};
use landeck_wire::{HostNumber, MachineId};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, getpeername, recv, send, sockopt};

use crate::addresses::simple;
use crate::calls::dial::{Challenged, Dial};
use crate::calls::listener::Caller;
use crate::clock::BootClock;
use crate::figures::LinkFindings;
use crate::reactor::Reactor;
use crate::trunks::Trunks;

/// The secret of all hosts that measure their links.
pub(crate) type MeasuringSecret = [u8; 32];

/// The most calls that wait for their round.
const CALLS_MAX: usize = landeck_protocols::hosts::measuring::HOSTS_MAX;
/// How long a call waits for its round.
const CALL_TIME: Duration = Duration::from_secs(1);
/// The bytes that are sent or received at once.
const BUFFER_BYTES: usize = 64 << 10;

/// The parts of the daemon that measuring needs.
pub(crate) struct LinkTools<'a> {
    /// The descriptors.
    pub(crate) reactor: &'a mut Reactor,
    /// The addresses of hosts.
    pub(crate) trunks: &'a Trunks,
    /// The clock.
    pub(crate) clock: BootClock,
}

/// The links of this host.
#[derive(Debug)]
pub(crate) struct LinkMeasurer {
    own: HostNumber,
    machine: MachineId,
    ongoing: Option<Ongoing>,
    /// The dials whose round is over. They end in order, so that the other side counts no stranger.
    late: Vec<DialOfRound>,
    /// The calls whose round has not come, and when they came. Their codes are not checked.
    calls: Vec<(Duration, Caller)>,
    found: Option<Vec<(HostNumber, LinkSight)>>,
    /// The findings of the jobs that this daemon has conducted. Their hosts need not be measured again.
    pub(crate) known: LinkFindings,
}

#[derive(Debug)]
struct Ongoing {
    rounds: Measuring,
    secret: MeasuringSecret,
    hosts: Vec<HostNumber>,
    dial: Option<DialOfRound>,
    buffer: Vec<u8>,
}

/// The call of this host in a round.
#[derive(Debug)]
struct DialOfRound {
    round: usize,
    partner: HostNumber,
    /// The ways that were not tried, in reverse order.
    ways: Vec<usize>,
    /// The connection that is being opened, with its token.
    current: Option<(u64, Dial)>,
}

impl LinkMeasurer {
    /// A host that has measured nothing.
    pub(crate) fn new(own: HostNumber, machine: MachineId) -> Self {
        Self {
            own,
            machine,
            ongoing: None,
            late: Vec::new(),
            calls: Vec::new(),
            found: None,
            known: LinkFindings::default(),
        }
    }

    /// Begins to measure the links to these hosts, of which this one is one.
    pub(crate) fn begin(
        &mut self,
        tools: &mut LinkTools<'_>,
        secret: MeasuringSecret,
        hosts: Vec<HostNumber>,
    ) {
        let place = hosts.iter().position(|host| *host == self.own).unwrap_or(hosts.len());
        let rounds = Measuring::new(place, hosts.len(), tools.clock.now());
        let buffer = vec![0; BUFFER_BYTES];
        self.ongoing = Some(Ongoing { rounds, secret, hosts, dial: None, buffer });
        self.go_on(tools);
    }

    /// Takes the findings, when all rounds are over.
    pub(crate) const fn take_found(&mut self) -> Option<Vec<(HostNumber, LinkSight)>> {
        self.found.take()
    }

    /// Takes a caller whose preamble announces a measurement. It may be early: this host may not know the secret yet. `Err`
    /// is the reason why it was refused.
    pub(crate) fn called(
        &mut self,
        tools: &mut LinkTools<'_>,
        caller: Caller,
    ) -> Result<(), &'static str> {
        self.forget_old_calls(tools.clock.now());
        if self.calls.len() >= CALLS_MAX {
            return Err("too many hosts want to measure links");
        }
        // What it sends before its round would be ready all the time.
        let _ = tools.reactor.unwatch(&caller.socket);
        self.calls.push((tools.clock.now(), caller));
        self.go_on(tools);
        Ok(())
    }

    /// Whether a token is that of a dial.
    pub(crate) fn has(&self, token: u64) -> bool {
        let dial = self.ongoing.as_ref().and_then(|ongoing| ongoing.dial.as_ref());
        dial.into_iter().chain(&self.late).any(|dial| dial.is_of(token))
    }

    /// When [`LinkMeasurer::go_on`] is due.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        let oldest = self.calls.iter().map(|(came, _)| *came + CALL_TIME).min();
        self.ongoing.as_ref().map_or(oldest, |ongoing| Some(ongoing.rounds.until()))
    }

    /// Goes on with the dial that is ready.
    pub(crate) fn ready(&mut self, tools: &mut LinkTools<'_>, token: u64) {
        if let Some(late) = self.late.iter().position(|dial| dial.is_of(token)) {
            let mut dial = self.late.swap_remove(late);
            // Without the secret the other side drops it.
            match dial.go_on(tools, (self.machine, self.own), &[0; 32]) {
                Some(_) => {}
                None if dial.current.is_some() => self.late.push(dial),
                None => {}
            }
            return;
        }
        let Some(ongoing) = &mut self.ongoing else { return };
        let Some(dial) = &mut ongoing.dial else { return };
        let challenged = dial.go_on(tools, (self.machine, self.own), &ongoing.secret);
        if let Some(challenged) = challenged
            && dial.round == ongoing.rounds.round()
        {
            ongoing.converse(&challenged.socket, true, tools.clock);
        }
        self.go_on(tools);
    }

    /// Forgets calls that are too old. The other host was behind, and does not need this one any more.
    fn forget_old_calls(&mut self, now: Duration) {
        self.calls.retain(|(came, _)| now < *came + CALL_TIME);
    }

    /// Does what can be done now.
    pub(crate) fn go_on(&mut self, tools: &mut LinkTools<'_>) {
        self.forget_old_calls(tools.clock.now());
        while let Some(ongoing) = &mut self.ongoing {
            let turn = ongoing.rounds.turn(tools.clock.now());
            let round = ongoing.rounds.round();
            let late = ongoing.dial.take_if(|dial| dial.round != round);
            self.late.extend(late.filter(|dial| dial.current.is_some()));
            match turn {
                MeasuringTurn::Call(place) => {
                    if !ongoing.is_dialling(place, tools) {
                        ongoing.rounds.found(LinkSight::default());
                        continue;
                    }
                    return;
                }
                MeasuringTurn::Await(place) => {
                    let (round, partner) = (ongoing.rounds.round(), ongoing.hosts[place]);
                    let is_its = |(_, caller): &(Duration, Caller)| {
                        let preamble = &caller.preamble;
                        (preamble.machine, preamble.to) == (self.machine, self.own)
                            && (preamble.from, preamble.lane) == (partner, round as u32)
                            && verify(&ongoing.secret, &caller.challenge, &caller.bytes)
                    };
                    let Some(call) = self.calls.iter().position(is_its) else { return };
                    let (_, caller) = self.calls.remove(call);
                    ongoing.converse(&caller.socket, false, tools.clock);
                }
                MeasuringTurn::Over => {
                    let of = |&(place, sight): &(usize, LinkSight)| (ongoing.hosts[place], sight);
                    self.found = Some(ongoing.rounds.sights().iter().map(of).collect());
                    let unfinished = ongoing.dial.take().filter(|dial| dial.current.is_some());
                    self.late.extend(unfinished);
                    self.ongoing = None;
                }
            }
        }
    }
}

impl DialOfRound {
    fn is_of(&self, token: u64) -> bool {
        self.current.as_ref().is_some_and(|(own, _)| *own == token)
    }

    /// Goes on with the connection. Returns it when the preamble was sent.
    fn go_on(
        &mut self,
        tools: &LinkTools<'_>,
        (machine, own): (MachineId, HostNumber),
        secret: &MeasuringSecret,
    ) -> Option<Challenged> {
        let (token, mut current) = self.current.take()?;
        match current.go_on(tools.reactor, token) {
            Ok(false) => self.current = Some((token, current)),
            Ok(true) => {
                let preamble = Preamble {
                    purpose: Purpose::Measure,
                    lane: self.round as u32,
                    ..Preamble::trunk(machine, own, self.partner)
                };
                let challenged = current.challenged();
                // What follows has no keys.
                let is_sent = challenged.prove(&preamble, secret, Cipher::Plain).is_ok();
                return is_sent.then_some(challenged);
            }
            Err(_) => {}
        }
        None
    }
}

impl Ongoing {
    /// Begins to call the partner of this round, unless that is going on. False if it is not to be reached.
    fn is_dialling(&mut self, place: usize, tools: &mut LinkTools<'_>) -> bool {
        let (round, partner) = (self.rounds.round(), self.hosts[place]);
        let dial = match &mut self.dial {
            Some(dial) if dial.round == round => dial,
            other => {
                let ways = ways_to(partner, tools.trunks, tools.clock.now());
                other.insert(DialOfRound { round, partner, ways, current: None })
            }
        };
        while dial.current.is_none() {
            let Some(way) = dial.ways.pop() else { return false };
            let (token, now) = (tools.reactor.token(), tools.clock.now());
            let begun = tools.trunks.begin_dial(tools.reactor, token, (partner, way), now);
            dial.current = begun.ok().map(|begun| (token, begun));
        }
        true
    }

    /// Measures over a connection, and notes the findings.
    fn converse(&mut self, socket: &OwnedFd, is_caller: bool, clock: BootClock) {
        let until = self.rounds.until();
        let mut probe = LinkProbe::new(is_caller, clock.now());
        while clock.now() < until {
            let wanted = match probe.step() {
                ProbeStep::Over => break,
                ProbeStep::Send { piece_bytes } => {
                    let piece = &self.buffer[..piece_bytes.min(BUFFER_BYTES)];
                    match send(socket, piece, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                        Ok(bytes) => {
                            probe.sent(bytes, clock.now());
                            continue;
                        }
                        Err(Errno::INTR) => continue,
                        Err(Errno::AGAIN) => PollFlags::OUT,
                        Err(_) => break,
                    }
                }
                ProbeStep::Receive { bytes } => {
                    let room = &mut self.buffer[..bytes.min(BUFFER_BYTES)];
                    match recv(socket, room, RecvFlags::DONTWAIT) {
                        Ok((bytes @ 1.., _)) => {
                            probe.received(bytes, clock.now());
                            continue;
                        }
                        Err(Errno::INTR) => continue,
                        Err(Errno::AGAIN) => PollFlags::IN,
                        Ok(_) | Err(_) => break,
                    }
                }
            };
            let left = Timespec::try_from(until.saturating_sub(clock.now()));
            // Interrupted or not, the next look tells.
            let _ = poll(&mut [PollFd::new(socket, wanted)], left.ok().as_ref());
        }
        self.rounds.found(probe.sight(clock.now()));
        if probe.step() != ProbeStep::Over {
            // On a slow link the rest would be in the way of the next round: it goes with the connection.
            let _ = sockopt::set_socket_linger(socket, Some(Duration::ZERO));
        }
    }
}

/// The ways to a host in reverse order: that of its trunk, then the others.
fn ways_to(host: HostNumber, trunks: &Trunks, now: Duration) -> Vec<usize> {
    let peer = trunks.socket(host).and_then(|socket| getpeername(socket).ok().flatten());
    let peer = peer.and_then(|address| SocketAddr::try_from(address).ok()).map(simple);
    let ways = trunks.ways(host, now);
    let is_of_trunk = |way: &usize| peer.is_some_and(|peer| peer.ip() == ways[*way].address.ip());
    let mut order: Vec<usize> = (0..ways.len()).rev().collect();
    order.sort_by_key(is_of_trunk);
    order
}
