//! The trunks of this daemon: which hosts are connected, dialling them, renewing what broke, and what travels.
//!
//! A link to the arbiter is always wanted, and so is each link of the arbiter; one between two ordinary hosts is opened
//! at first need. A host dials the arbiter at once. The arbiter dials a host that has not come after a moment, since one
//! of both directions may be closed.

pub(crate) mod envelope;
pub(crate) mod link;
pub(crate) mod trunk;
mod ways;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::Duration;

use landeck_transports::lanes::silence::SilenceLooks;
use landeck_trust::{KeyHash, KeyPair, Session, TrustError};
use landeck_wire::handover::Cipher;
use landeck_wire::preamble::Preamble;
use landeck_wire::word::{HostEntry, HostPlace};
use landeck_wire::{HostIncarnation, HostNumber, MachineId};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::sockopt::{
    set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl,
    set_tcp_user_timeout,
};

use crate::calls::dial::Dial;
use crate::calls::listener::Caller;
use crate::reactor::Reactor;
use crate::trunks::envelope::EnvelopeClass;
use crate::trunks::link::{Attempt, KeptLink, Link, Parcel};
use crate::trunks::trunk::{Trunk, TrunkError};
pub(crate) use crate::trunks::ways::NoWay;
use crate::trunks::ways::Ways;

/// The label of the secret of two hosts.
const SECRET_LABEL: &[u8] = b"landeck lanes 1";
/// The arbiter gives a host this long to dial first.
const COURTESY: Duration = Duration::from_millis(300);
/// Streams of ssh are used when no port was reached for this long.
const STREAMS_AFTER: Duration = Duration::from_secs(4);
/// A connection whose probe has carried nothing for so long has failed. It is less than the time for streams.
const PROBE_TIME: Duration = Duration::from_millis(2_500);
/// The other name of a trunk over the streams of ssh or of what is used instead.
pub(crate) const SHELL: &str = "the remote shell (ssh)";
/// The time between two looks at silences.
const SILENCE_INTERVAL: Duration = Duration::from_millis(200);
/// The kernel asks the other one this often whether it is there.
const KEEPALIVE: Duration = Duration::from_secs(1);

/// An event of the trunks.
#[derive(Debug)]
pub(crate) enum TrunksEvent {
    /// A host is connected, for the first time or again.
    Up(HostNumber),
    /// The daemon of a host has started again as this run. What was on its way in either direction is lost. [`TrunksEvent::Up`]
    /// follows.
    Restarted(HostNumber, u32),
    /// A host is not connected any more, and will not be again.
    Down(HostNumber, String),
    /// Long packets do not pass between this host and another one.
    Narrow(HostNumber),
    /// A content for this host has come.
    Content {
        /// The host that it comes from.
        from: HostNumber,
        /// The kind of content.
        class: EnvelopeClass,
        /// The content, without its number.
        content: Vec<u8>,
    },
    /// A caller has proven who it is, and needs its place among the strangers no more.
    Recognised(u64),
    /// A caller was refused.
    Refused(u64, &'static str, SocketAddr),
    /// A caller that is no member has shown its key, and sends this.
    Guest {
        /// The token of its trunk.
        trunk: u64,
        /// Its key.
        key: KeyHash,
        /// The content.
        content: Vec<u8>,
    },
}

/// The use of a trunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// It connects this host with another one, and the host `by` has dialled.
    Link { host: HostNumber, by: HostNumber },
    /// It admits a caller that is no member yet.
    Guest,
}

#[derive(Debug)]
struct Carried {
    trunk: Trunk,
    serves: Use,
    /// Gateways pass it on, so the other end of its socket is one of them.
    is_passed: bool,
    /// If this side has dialled it, the hosts that it leads over, from this one on.
    hosts: Vec<HostNumber>,
    /// When something has come last.
    heard_at: Duration,
    /// The address of a caller that still has a place among the strangers.
    stranger: Option<SocketAddr>,
    key: Option<KeyHash>,
    /// Another name for the other end.
    address: String,
    looks: SilenceLooks,
    /// It ends behind what it has, which is the answer to a guest.
    is_answered: bool,
}

impl Carried {
    fn direct_socket(&self) -> Option<&OwnedFd> {
        self.trunk.socket().filter(|_| !self.is_passed)
    }

    /// Whether heartbeats go over it, as no datagrams pass gateways. So something comes again and again.
    fn carries_heartbeats(&self, own: HostNumber) -> bool {
        let is_of_arbiter = |host| [own, host].contains(&HostNumber::ARBITER);
        self.is_passed && matches!(self.serves, Use::Link { host, .. } if is_of_arbiter(host))
    }
}

/// The trunks of a daemon.
#[derive(Debug)]
pub(crate) struct Trunks {
    own: HostNumber,
    /// The run of this daemon.
    run: u32,
    machine: MachineId,
    pair: KeyPair,
    own_addresses: Vec<IpAddr>,
    ways: Ways,
    /// How long a link without a trunk is kept.
    lease: Duration,
    /// The time after which a connection without an answer has failed.
    silence: Duration,
    links: BTreeMap<HostNumber, Link>,
    trunks: HashMap<u64, Carried>,
    /// The trunk that a second descriptor belongs to.
    outputs: HashMap<u64, u64>,
    dials: HashMap<u64, (HostNumber, Dial)>,
    /// Streams that become a trunk if no port is reached.
    streams: BTreeMap<HostNumber, (OwnedFd, OwnedFd, Duration)>,
    /// When it is looked next whether trunks carry what they are given.
    look_due: Duration,
    admits_guests: bool,
    /// The trunks that something was put into, or whose links have something.
    unwritten: BTreeSet<u64>,
    events: VecDeque<TrunksEvent>,
}

impl Trunks {
    /// The trunks of this run of a daemon, which knows no other host.
    pub(crate) fn new(
        (own, machine, run): (HostNumber, MachineId, u32),
        pair: KeyPair,
        own_addresses: Vec<IpAddr>,
        (lease, silence): (Duration, Duration),
    ) -> Self {
        Self {
            own,
            run,
            machine,
            pair,
            own_addresses,
            ways: Ways::default(),
            lease,
            silence,
            links: BTreeMap::new(),
            trunks: HashMap::new(),
            outputs: HashMap::new(),
            dials: HashMap::new(),
            streams: BTreeMap::new(),
            look_due: Duration::ZERO,
            admits_guests: false,
            unwritten: BTreeSet::new(),
            events: VecDeque::new(),
        }
    }

    /// The next event.
    pub(crate) fn take_event(&mut self) -> Option<TrunksEvent> {
        self.events.pop_front()
    }

    /// Whether callers that are no members may show a token.
    pub(crate) const fn admit_guests(&mut self, admits: bool) {
        self.admits_guests = admits;
    }

    /// Adds a host of the host table, in the place of an earlier incarnation of it.
    pub(crate) fn add_host(&mut self, reactor: &Reactor, entry: HostEntry, now: Duration) {
        let host = entry.host;
        if host == self.own || self.incarnation(host) == Some(entry.incarnation) {
            return;
        }
        self.remove_host(reactor, host);
        let first = if self.own == HostNumber::ARBITER { now + COURTESY } else { now };
        self.set_place(host, entry.place.clone());
        let mut link = Link::new(entry, self.run, first, now);
        // Connections pass a gateway under the secret of it and this host.
        link.is_wanted = [self.own, host].contains(&HostNumber::ARBITER) || self.is_gateway(host);
        self.links.insert(host, link);
    }

    /// The links, as the next run of a founder's daemon needs them.
    pub(crate) fn kept(&self) -> Vec<KeptLink<'_>> {
        self.links.values().map(Link::kept).collect()
    }

    /// Goes on with the links of the run before. Both streams of each go on where they were, so the other hosts notice nothing
    /// but a trunk that breaks.
    pub(crate) fn go_on(&mut self, kept: Vec<KeptLink<'_>>, now: Duration) {
        for kept in kept {
            let mut link = Link::resumed(kept, now + COURTESY, now);
            link.is_wanted = true;
            self.set_place(link.entry.host, link.entry.place.clone());
            self.links.insert(link.entry.host, link);
        }
    }

    /// A host has other addresses, and another place with them.
    pub(crate) fn host_moved(
        &mut self,
        host: HostNumber,
        addresses: Vec<SocketAddr>,
        place: HostPlace,
    ) {
        self.set_place(host, place);
        if let Some(link) = self.links.get_mut(&host) {
            link.moved(addresses);
        }
    }

    /// This host has other addresses, from which others are reached.
    pub(crate) fn set_own_addresses(&mut self, addresses: Vec<IpAddr>) {
        self.own_addresses = addresses;
    }

    /// Ends everything with a host that belongs to the machine no more.
    pub(crate) fn remove_host(&mut self, reactor: &Reactor, host: HostNumber) {
        self.links.remove(&host);
        self.ways.routes.remove(host);
        self.streams.remove(&host);
        self.dials.retain(|_, (to, _)| *to != host);
        let its = self
            .trunks
            .iter()
            .filter(|(_, one)| matches!(one.serves, Use::Link { host: of, .. } if of == host));
        for token in its.map(|(token, _)| *token).collect::<Vec<_>>() {
            if let Some(mut gone) = self.forget(token) {
                gone.trunk.close(reactor);
            }
        }
    }

    /// Whether an address is one of a host of the host table.
    pub(crate) fn is_known_address(&self, address: IpAddr) -> bool {
        let mut all = self.links.values().flat_map(|link| &link.entry.addresses);
        all.any(|known| known.ip().to_canonical() == address)
    }

    /// Notes that long packets do not pass between this host and another one, as this host has found. Further connections
    /// use short ones.
    pub(crate) fn narrow(&mut self, host: HostNumber) {
        if self.keep_short(host) {
            self.events.push_back(TrunksEvent::Narrow(host));
        }
    }

    /// Uses short packets for further connections to a host; returns whether that is new.
    pub(crate) fn keep_short(&mut self, host: HostNumber) -> bool {
        let link = self.links.get_mut(&host);
        link.is_some_and(|link| !std::mem::replace(&mut link.is_narrow, true))
    }

    /// Whether connections to a host use short packets alone.
    pub(crate) fn is_narrow(&self, host: HostNumber) -> bool {
        self.links.get(&host).is_some_and(|link| link.is_narrow)
    }

    /// The incarnation of the daemon that a host's trunk leads to.
    pub(crate) fn incarnation(&self, host: HostNumber) -> Option<HostIncarnation> {
        self.links.get(&host).map(|link| link.entry.incarnation)
    }

    /// The socket of the trunk to a host, if its other end is that host: no remote shell and no gateway is in between.
    pub(crate) fn socket(&self, host: HostNumber) -> Option<&OwnedFd> {
        self.trunks.get(&self.links.get(&host)?.trunk()?)?.direct_socket()
    }

    /// Opens a trunk to a host if there is none. Where it was given up a moment ago, it is given up again at once: a message
    /// that no lane can carry then takes the relay, which needs the same trunk.
    pub(crate) fn want(&mut self, host: HostNumber, now: Duration) {
        let Some(link) = self.links.get_mut(&host).filter(|link| !link.is_wanted) else { return };
        match link.was_given_up(self.silence / 2, now) {
            true => self.events.push_back(TrunksEvent::Down(host, link.complaint())),
            false => link.want(now),
        }
    }

    /// The newest secret of this host and another one, with its generation.
    pub(crate) fn newest_secret(&self, host: HostNumber) -> Option<(u32, &[u8; 32])> {
        self.links.get(&host)?.newest_secret()
    }

    /// The secret of this host and another one of this generation.
    pub(crate) fn secret(&self, host: HostNumber, generation: u32) -> Option<&[u8; 32]> {
        self.links.get(&host)?.secret(generation)
    }

    /// The cipher of sealed lanes to a host.
    pub(crate) fn cipher(&self, host: HostNumber) -> Cipher {
        self.links.get(&host).map_or(Cipher::ChaCha20Poly1305, Link::cipher)
    }

    /// Whether a trunk to a host was ever open.
    pub(crate) fn was_up(&self, host: HostNumber) -> bool {
        self.links.get(&host).is_some_and(Link::was_up)
    }

    /// The failures of the last attempts to reach a host.
    pub(crate) fn complaint(&self, host: HostNumber) -> String {
        self.links.get(&host).map(Link::complaint).unwrap_or_default()
    }

    /// The words about a host that does not answer, if the connection to it depends on the remote shell.
    pub(crate) fn dependence(&self, host: HostNumber) -> Option<String> {
        let link = self.links.get(&host)?;
        let Some(token) = link.trunk() else {
            return link.has_lost_shell().then(|| link.complaint());
        };
        let is_shell = self.trunks.get(&token)?.trunk.socket().is_none();
        is_shell.then(|| {
            format!("its only connection is that of {SHELL}: none of its ports was reached")
        })
    }

    /// The bytes of bulk on the way to a host that are not confirmed.
    #[cfg(test)]
    pub(crate) fn unsent_bulk(&self, to: HostNumber) -> usize {
        self.links.get(&self.carrier(to)).map_or(0, Link::unsent_bulk)
    }

    /// Keeps two streams that lead to a host, in case no port is reached.
    pub(crate) fn add_streams(
        &mut self,
        host: HostNumber,
        input: OwnedFd,
        output: OwnedFd,
        now: Duration,
    ) {
        self.streams.insert(host, (input, output, now + STREAMS_AFTER));
    }

    /// Makes a trunk of streams whose other side has begun one. `early` was read before.
    ///
    /// # Errors
    /// [`TrunkError`].
    pub(crate) fn accept_streams(
        &mut self,
        reactor: &mut Reactor,
        host: HostNumber,
        streams: (OwnedFd, OwnedFd),
        early: &[u8],
        now: Duration,
    ) -> Result<(), TrunkError> {
        let key = self.links.get(&host).map(|link| KeyHash(link.entry.key));
        let session = match key {
            Some(key) => Session::accept_from(&self.pair, key)?,
            None => return Err(TrunkError::Order),
        };
        let trunk = Trunk::over_streams(reactor, streams, session, (self.own, host), now)?;
        let by = (None, SHELL.to_owned());
        let token = self.keep((trunk, false), Use::Link { host, by: host }, by, now);
        let mut events = Vec::new();
        let taken = self.trunks.get_mut(&token).map(|one| one.trunk.take_early(early, &mut events));
        self.digest(reactor, token, events, taken.unwrap_or(Ok(())), now);
        Ok(())
    }

    /// Takes a caller whose preamble announces a trunk.
    pub(crate) fn called(&mut self, caller: Caller, now: Duration) {
        let Caller { token, socket, address, preamble, .. } = caller;
        let (session, serves) = match self.session_for(&preamble) {
            Ok(found) => found,
            Err(why) => return self.events.push_back(TrunksEvent::Refused(token, why, address)),
        };
        let peer = preamble.from;
        self.tune(&socket, false);
        let trunk = Trunk::over_socket(socket, token, session, (self.own, peer), now);
        let by = (Some(address), address.to_string());
        self.keep((trunk, preamble.is_passed), serves, by, now);
    }

    fn session_for(&self, preamble: &Preamble) -> Result<(Session, Use), &'static str> {
        let library = |_: TrustError| "the TLS library of this daemon does not work";
        if preamble.from == HostNumber::NONE && self.admits_guests {
            return Ok((Session::accept(&self.pair).map_err(library)?, Use::Guest));
        }
        if preamble.machine != self.machine || preamble.to != self.own {
            return Err("it is meant for another machine or host");
        }
        let host = preamble.from;
        let link = self.links.get(&host).ok_or("its host is no member of the machine")?;
        let session = Session::accept_from(&self.pair, KeyHash(link.entry.key)).map_err(library)?;
        Ok((session, Use::Link { host, by: host }))
    }

    /// Whether a token belongs to a trunk or to a dial of one.
    pub(crate) fn has(&self, token: u64) -> bool {
        let trunk = self.outputs.get(&token).copied().unwrap_or(token);
        self.trunks.contains_key(&trunk) || self.dials.contains_key(&token)
    }

    /// Goes on with a descriptor that is ready.
    pub(crate) fn ready(
        &mut self,
        reactor: &Reactor,
        token: u64,
        flags: EventFlags,
        now: Duration,
    ) {
        if self.dials.contains_key(&token) {
            return self.dialled(reactor, token, now);
        }
        let output = self.outputs.get(&token).copied();
        let token = output.unwrap_or(token);
        let Some(one) = self.trunks.get_mut(&token) else { return };
        let mut events = Vec::new();
        let outcome = match output {
            Some(_) if flags.intersects(EventFlags::ERR | EventFlags::HUP) => {
                Err(TrunkError::Ended)
            }
            Some(_) => Ok(()),
            None if flags.intersects(EventFlags::IN | EventFlags::ERR | EventFlags::HUP) => {
                one.heard_at = now;
                one.trunk.read(&mut events)
            }
            None => Ok(()),
        };
        self.digest(reactor, token, events, outcome, now);
    }

    /// Sends a content to a host: over its own trunk if this is the arbiter or the host is, otherwise over the arbiter.
    /// A content for a host that has no link is lost with it.
    pub(crate) fn send(
        &mut self,
        reactor: &Reactor,
        to: HostNumber,
        class: EnvelopeClass,
        content: &[u8],
        now: Duration,
    ) {
        let parcel =
            Parcel { source: self.own, destination: to, class, hops: 0, content: content.into() };
        self.post(reactor, parcel, now);
    }

    /// Sends a content that need not arrive, if the host is connected.
    pub(crate) fn send_unnumbered(&mut self, to: HostNumber, class: EnvelopeClass, content: &[u8]) {
        let Some(token) = self.links.get(&to).and_then(Link::trunk) else { return };
        if let Some(one) = self.trunks.get_mut(&token).filter(|one| one.trunk.has_room()) {
            one.trunk.put_own(class, content);
            self.unwritten.insert(token);
        }
    }

    /// Ends the trunk of a caller that has lost its place.
    pub(crate) fn oust(
        &mut self,
        reactor: &Reactor,
        caller: u64,
        error: &TrunkError,
        now: Duration,
    ) {
        if self.trunks.get(&caller).is_some_and(|one| one.stranger.is_some()) {
            self.end(reactor, caller, error, now);
        }
    }

    /// Gives up a host that has said goodbye.
    pub(crate) fn leave(
        &mut self,
        reactor: &Reactor,
        host: HostNumber,
        why: String,
        now: Duration,
    ) {
        if self.links.contains_key(&host) {
            self.give_up(reactor, host, why, now);
        }
    }

    /// Whether some host that is connected has not confirmed everything.
    pub(crate) fn has_unconfirmed(&self) -> bool {
        self.links.values().any(|link| link.trunk().is_some() && link.has_unconfirmed())
    }

    /// Answers a caller that is no member, and ends its connection behind the answer.
    pub(crate) fn answer_guest(&mut self, trunk: u64, content: &[u8]) {
        if let Some(one) = self.trunks.get_mut(&trunk) {
            one.trunk.put_own(EnvelopeClass::Daemon, content);
            one.is_answered = true;
            self.unwritten.insert(trunk);
        }
    }

    fn post(&mut self, reactor: &Reactor, parcel: Parcel, now: Duration) {
        let carrier = self.carrier(parcel.destination);
        let Some(link) = self.links.get_mut(&carrier) else { return };
        let is_bounded = link.push(parcel);
        match (link.trunk(), is_bounded) {
            (Some(token), true) => drop(self.unwritten.insert(token)),
            (None, true) => {}
            (_, false) => {
                let why = "it confirms nothing of what was sent to it".to_owned();
                self.give_up(reactor, carrier, why, now);
            }
        }
    }

    /// The host over whose trunk contents for a host travel.
    const fn carrier(&self, to: HostNumber) -> HostNumber {
        match self.own.0 == HostNumber::ARBITER.0 {
            true => to,
            false => HostNumber::ARBITER,
        }
    }

    /// Does what is due: dials, and ends what takes too long.
    pub(crate) fn tick(&mut self, reactor: &mut Reactor, now: Duration) {
        let late: Vec<u64> = self
            .dials
            .iter()
            .filter(|(_, (_, dial))| now >= dial.deadline())
            .map(|(token, _)| *token)
            .collect();
        for token in late {
            self.dial_failed(token, "no answer".into(), false, now);
        }
        let late: Vec<u64> = self
            .trunks
            .iter()
            .filter(|(_, one)| one.trunk.deadline().is_some_and(|deadline| now >= deadline))
            .map(|(token, _)| *token)
            .collect();
        for token in late {
            let error = self.trunks[&token].trunk.late();
            self.end(reactor, token, &error, now);
        }
        for token in self.silent_trunks(now) {
            self.leave_way_of(token, now);
            let error = TrunkError::System(Errno::TIMEDOUT.into());
            self.end(reactor, token, &error, now);
        }
        let due: Vec<HostNumber> = self.links.keys().copied().collect();
        for host in due {
            self.tend(reactor, host, now);
        }
    }

    /// The open trunks that have carried nothing for too long. A daemon that is stopped reads nothing, but its system answers.
    fn silent_trunks(&mut self, now: Duration) -> Vec<u64> {
        if now < self.look_due {
            return Vec::new();
        }
        self.look_due = now + SILENCE_INTERVAL.min(self.silence / 20);
        let limit = self.silence.max(PROBE_TIME);
        let (own, mute) = (self.own, self.silence * 2 / 5);
        let open = self.trunks.iter_mut().filter(|(_, one)| one.trunk.is_open());
        let silent = open.filter_map(|(token, one)| {
            let is_mute = one.carries_heartbeats(own) && now >= one.heard_at + mute;
            let is_silent = one.looks.look(one.trunk.socket()?, now, limit).is_some();
            (is_mute || is_silent).then_some(*token)
        });
        silent.collect()
    }

    /// When [`Trunks::tick`] is due.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        let dials = self.dials.values().map(|(_, dial)| dial.deadline());
        let trunks = self.trunks.values().filter_map(|one| one.trunk.deadline());
        let links = self.links.values().filter(|link| link.is_wanted && link.trunk().is_none());
        let links = links.flat_map(|link| {
            let next = match link.attempt {
                Attempt::Pause(until) => {
                    (!self.ways(link.entry.host, until).is_empty()).then_some(until)
                }
                Attempt::Dial(_) | Attempt::Opening(_) => None,
            };
            next.into_iter().chain(link.hopeless_at(self.patience(link)))
        });
        // Streams that are not needed have no time: it would be over soon, and the loop would never sleep again.
        let given_up = self.links.values().filter(|link| self.is_gateway(link.entry.host));
        let retries = given_up.filter_map(Link::retry_at);
        let awaited = |host: &HostNumber| self.links.get(host).is_some_and(awaits_streams);
        let streams = self.streams.iter().filter(|(host, _)| awaited(host));
        let streams = streams.map(|(_, (_, _, at))| *at);
        dials.chain(trunks).chain(links).chain(retries).chain(streams).min()
    }

    /// Whether something happened that nobody has taken yet.
    pub(crate) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Whether something waits for [`Trunks::write_out`].
    pub(crate) fn has_unwritten(&self) -> bool {
        !self.unwritten.is_empty()
    }

    /// Ends all trunks in order.
    pub(crate) fn close(&mut self, reactor: &Reactor) {
        for one in self.trunks.values_mut() {
            one.trunk.close(reactor);
        }
    }

    fn tend(&mut self, reactor: &mut Reactor, host: HostNumber, now: Duration) {
        let is_gateway = self.is_gateway(host);
        let Some(link) = self.links.get_mut(&host) else { return };
        if is_gateway && link.retry_at().is_some_and(|at| now >= at) {
            link.want(now);
        }
        if !link.is_wanted || link.trunk().is_some() {
            return;
        }
        let Some(link) = self.links.get(&host) else { return };
        let patience = self.patience(link);
        let Some(link) = self.links.get_mut(&host) else { return };
        let is_over = |(_, _, at): &(OwnedFd, OwnedFd, Duration)| now >= *at;
        let streams_due = self.streams.get(&host).is_some_and(is_over) && awaits_streams(link);
        if streams_due {
            return self.begin_streams(reactor, host, now);
        }
        if link.is_hopeless(patience, now) {
            let why = link.complaint();
            return self.give_up(reactor, host, why, now);
        }
        let is_due = matches!(link.attempt, Attempt::Pause(until) if now >= until);
        if is_due {
            self.dial(reactor, host, now);
        }
    }

    /// Begins an attempt to open a trunk.
    fn dial(&mut self, reactor: &mut Reactor, host: HostNumber, now: Duration) {
        let Some(at) = self.links.get(&host).map(|link| link.next_way) else { return };
        let ways = self.ways(host, now);
        let token = reactor.token();
        let begun = self.begin_dial(reactor, token, (host, at), now);
        let Some(link) = self.links.get_mut(&host) else { return };
        match begun {
            Ok(dial) => {
                link.attempt = Attempt::Dial(token);
                self.dials.insert(token, (host, dial));
            }
            Err(NoWay::Unknown(gateway)) => {
                // The trunk to the gateway is opened first, which then ends this pause.
                link.failed(
                    format!("host {} is not connected yet", gateway.0),
                    false,
                    ways.len(),
                    now,
                );
                self.want(gateway, now);
            }
            Err(NoWay::Over) => {
                if !ways.is_empty() {
                    link.next_way = 0;
                }
            }
            Err(NoWay::Failed(error)) => {
                let is_refusal = error.kind() == io::ErrorKind::ConnectionRefused;
                let address = ways[at].address;
                link.failed(format!("{address}: {error}"), is_refusal, ways.len(), now);
            }
        }
    }

    /// How long a link may be without a trunk. The life of a host depends on that to the arbiter, so it is kept as long as a
    /// lease; messages of a pair wait for one between two others, so that is given up after T once every address has failed.
    fn patience(&self, link: &Link) -> Duration {
        let is_of_arbiter = [self.own, link.entry.host].contains(&HostNumber::ARBITER);
        if link.is_unreached() && !is_of_arbiter { self.silence } else { self.lease }
    }

    fn begin_streams(&mut self, reactor: &mut Reactor, host: HostNumber, now: Duration) {
        let Some((input, output, _)) = self.streams.remove(&host) else { return };
        let Some(link) = self.links.get_mut(&host) else { return };
        let key = KeyHash(link.entry.key);
        let begun =
            Session::connect(&self.pair, key).map_err(TrunkError::from).and_then(|session| {
                Ok(Trunk::over_streams(reactor, (input, output), session, (self.own, host), now)?)
            });
        match begun {
            Ok(trunk) => {
                if let Attempt::Dial(token) = link.attempt {
                    self.dials.remove(&token);
                }
                link.attempt = Attempt::Opening(trunk.token());
                let serves = Use::Link { host, by: self.own };
                self.keep((trunk, false), serves, (None, SHELL.to_owned()), now);
            }
            Err(error) => link.failed(format!("{SHELL}: {error}"), false, 1, now),
        }
    }

    fn dialled(&mut self, reactor: &Reactor, token: u64, now: Duration) {
        let Some((_, dial)) = self.dials.get_mut(&token) else { return };
        match dial.go_on(reactor, token) {
            Ok(false) => return,
            Ok(true) => {}
            Err(error) => {
                let is_refusal = error.kind() == io::ErrorKind::ConnectionRefused;
                return self.dial_failed(token, error.to_string(), is_refusal, now);
            }
        }
        let Some((host, dial)) = self.dials.remove(&token) else { return };
        self.dial_succeeded_on(&dial);
        let ways = self.ways(host, now).len();
        let Some(link) = self.links.get_mut(&host) else { return };
        let hosts = dial.hosts().to_vec();
        let challenged = dial.challenged();
        let is_passed = challenged.is_passed;
        let preamble = Preamble::trunk(self.machine, self.own, host);
        let preamble = Preamble { is_passed, ..preamble }.encode();
        let key = KeyHash(link.entry.key);
        let session = challenged
            .answer(&preamble)
            .map_err(|error| error.to_string())
            .and_then(|()| Session::connect(&self.pair, key).map_err(|error| error.to_string()));
        let session = match session {
            Ok(session) => session,
            Err(why) => {
                return link.failed(format!("{}: {why}", challenged.address), false, ways, now);
            }
        };
        link.attempt = Attempt::Opening(token);
        let address = challenged.address.to_string();
        self.tune(&challenged.socket, false);
        let trunk = Trunk::over_socket(challenged.socket, token, session, (self.own, host), now);
        let serves = Use::Link { host, by: self.own };
        let token = self.keep((trunk, is_passed), serves, (None, address), now);
        if let Some(one) = self.trunks.get_mut(&token) {
            one.hosts = hosts;
        }
    }

    fn dial_failed(&mut self, token: u64, why: String, is_refusal: bool, now: Duration) {
        let Some((host, dial)) = self.dials.remove(&token) else { return };
        self.dial_failed_on(&dial, now);
        let (ways, why) = (self.ways(host, now).len(), self.failure(&dial, &why));
        if let Some(link) = self.links.get_mut(&host)
            && link.attempt == Attempt::Dial(token)
        {
            link.failed(why, is_refusal, ways, now);
        }
    }

    fn keep(
        &mut self,
        (trunk, is_passed): (Trunk, bool),
        serves: Use,
        (stranger, address): (Option<SocketAddr>, String),
        now: Duration,
    ) -> u64 {
        let [token, output] = trunk.tokens();
        if output != token {
            self.outputs.insert(output, token);
        }
        let looks = SilenceLooks::default();
        let (key, is_answered) = (None, false);
        let carried = Carried {
            trunk,
            serves,
            is_passed,
            hosts: Vec::new(),
            heard_at: now,
            stranger,
            key,
            address,
            looks,
            is_answered,
        };
        self.trunks.insert(token, carried);
        self.unwritten.insert(token);
        token
    }

    fn forget(&mut self, token: u64) -> Option<Carried> {
        let gone = self.trunks.remove(&token)?;
        self.outputs.retain(|_, trunk| *trunk != token);
        Some(gone)
    }

    fn leave_place(&mut self, token: u64, gone: &Carried) {
        if gone.stranger.is_some() {
            self.events.push_back(TrunksEvent::Recognised(token));
        }
    }

    /// Sets what makes a dead connection fail, and the kernels of both sides show that they are there. A trunk that is not
    /// open yet fails early, as another one may use short packets; an open one is looked at.
    fn tune(&self, socket: &OwnedFd, is_open: bool) {
        // A kernel that lacks one of them notices later.
        let _ = set_socket_keepalive(socket, true);
        let _ = set_tcp_keepidle(socket, KEEPALIVE);
        let _ = set_tcp_keepintvl(socket, KEEPALIVE);
        let _ = set_tcp_keepcnt(socket, u32::try_from(self.silence.as_secs()).unwrap_or(3).max(2));
        let limit = if is_open { Duration::ZERO } else { PROBE_TIME }; // zero is no limit
        let _ = set_tcp_user_timeout(socket, limit.as_millis() as u32);
    }
}

/// Whether a link takes streams as soon as their time has come.
fn awaits_streams(link: &Link) -> bool {
    let is_opening = matches!(link.attempt, Attempt::Opening(_));
    link.is_wanted && link.trunk().is_none() && link.is_unreached() && !is_opening
}

mod traffic;
