//! The daemon's state, without the jobs: everything that connects hosts, in one place.
//!
//! The hub holds no decision. It passes what comes from descriptors to the machines that decide, and carries out what
//! they say. What concerns jobs waits in the inbox for the next turn of the loop.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::Duration;

use ipnet::IpNet;
use landeck_host::signals::CaughtSignals;
use landeck_joining::address::Address;
use landeck_joining::peer;
use landeck_launch::hosts_options::PortRange;
use landeck_protocols::hosts::{HostEnd, HostTiming, Lease, NameTable};
use landeck_trust::{JoinTokens, KeyPair, ReturnTickets};
use landeck_wire::preamble::Purpose;
use landeck_wire::word::{HostEntry, HostPlace, Word, WordContent};
use landeck_wire::{ControlMessage, HostIncarnation, HostNumber, JobId, MachineId, SegmentId};
use rustix::event::epoll::EventFlags;

use crate::addresses;
use crate::bootstrap::{DaemonOptions, Enrolment, Place};
use crate::calls::listener::Listener;
use crate::clock::BootClock;
use crate::daemon_message::DaemonMessage;
use crate::facts::HostFacts;
use crate::figures;
use crate::gateway::{Gateway, GatewayTools};
use crate::heartbeats::{HeardBeat, Heartbeats};
use crate::job_message::JobMessage;
use crate::journal::{Change, Entry, EntryName, Journal, KeptPlace};
use crate::lanes::{LaneTools, Lanes, LanesEvent};
use crate::links::{LinkMeasurer, LinkTools};
use crate::machine_message::MachineMessage;
use crate::membership::members::{Members, MembersEvent};
use crate::membership::watch::{SilenceWatch, WatchEvent};
use crate::observers::pictures::{PictureTools, Pictures};
use crate::parts::Parts;
use crate::reactor::Reactor;
use crate::relay::Relay;
use crate::trunks::envelope::EnvelopeClass;
use crate::trunks::{Trunks, TrunksEvent};
use crate::{DaemonError, no_port};
use described::Described;
use gateways::Unheard;

mod described;
mod events;
mod gateways;
mod messages;
pub(crate) mod record;

/// The time between two looks at parts that have ended and from which others still fetch data.
const STORING_INTERVAL: Duration = Duration::from_millis(100);
/// The time between two looks at segments that may need numbers for groups. It may be long: processes that find few left
/// ask by themselves.
const NUMBERS_INTERVAL: Duration = Duration::from_secs(1);

/// The time between two looks at the addresses of this host.
const ADDRESSES_INTERVAL: Duration = Duration::from_secs(1);

/// Something for the jobs.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// A message of another daemon, or of this one.
    Message(HostNumber, JobMessage),
    /// A daemon says something to the user; on the arbiter.
    Said(HostNumber, String),
    /// A message about the machine has come.
    Machine(HostNumber, MachineMessage),
    /// The arbiter, which is this host, has given a word.
    Given(Word),
    /// The arbiter, which is this host, says this to the rest of this daemon.
    Own(DaemonMessage),
    /// A word was applied.
    Word(Word),
    /// The arbiter has judged a host. This word is given once the jobs have heard of it: if a job ends by the host's loss,
    /// the word of its end comes first.
    Verdict(WordContent),
    /// A host is connected.
    Up(HostNumber),
    /// The daemon of a host has started again: what was on its way to it or from it is lost.
    Restarted(HostNumber),
    /// This daemon has learned everything that was said before it had a copy of the words.
    Welcomed,
    /// A host is not connected any more, and will not be again.
    Down(HostNumber, String),
}

/// The open port of a daemon, before it belongs to a machine.
#[derive(Debug)]
pub(crate) struct Port {
    /// The descriptors.
    pub(crate) reactor: Reactor,
    /// The port for connections.
    pub(crate) listener: Listener,
    /// The port for datagrams.
    datagrams: Option<OwnedFd>,
    /// The keys of this daemon.
    pub(crate) pair: KeyPair,
    /// The addresses of this host.
    pub(crate) addresses: Vec<IpAddr>,
    /// The networks whose addresses come first.
    pub(crate) networks: Vec<IpNet>,
    /// The clock.
    pub(crate) clock: BootClock,
}

/// The place of a daemon in its machine.
#[derive(Clone, Debug)]
pub(crate) struct Station {
    /// The machine.
    pub(crate) machine: MachineId,
    /// Its options.
    pub(crate) options: DaemonOptions,
    /// The entry of this host.
    pub(crate) own: HostEntry,
    /// The entry of the arbiter. On the arbiter it is that of this host.
    pub(crate) arbiter: HostEntry,
    /// The gateways, as this host has last heard of them.
    pub(crate) gateways: Vec<HostEntry>,
    /// The run of this daemon within its incarnation: 0, and one more each time that it is started again.
    pub(crate) run: u32,
    /// From when the lease of this host counts, if the run before had it, by the clock of all runs.
    pub(crate) leased_from: Option<Duration>,
}

impl Station {
    /// The place of the first run of a daemon.
    pub(crate) fn first(enrolment: Enrolment) -> Self {
        let Enrolment { machine, options, own, arbiter, gateways } = enrolment;
        Self { machine, options, own, arbiter, gateways, run: 0, leased_from: None }
    }

    /// The place, as the next run needs it.
    fn enrolment(&self) -> Enrolment {
        let Self { machine, options, own, arbiter, gateways, .. } = self.clone();
        Enrolment { machine, options, own, arbiter, gateways }
    }
}

/// The reason of the end of a daemon, apart from its jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HubEnd {
    /// It got SIGTERM.
    Asked,
    /// The streams that it was started with have ended before it was connected.
    StreamsEnded,
}

/// The streams that a daemon was started with.
#[derive(Debug)]
struct KeptStreams {
    token: u64,
    input: OwnedFd,
    output: OwnedFd,
    /// Whether daemons of other hosts read the same input.
    is_shared: bool,
}

/// The state of a daemon.
#[derive(Debug)]
pub(crate) struct Hub {
    pub(crate) reactor: Reactor,
    pub(crate) clock: BootClock,
    pub(crate) station: Station,
    pub(crate) members: Members,
    pub(crate) trunks: Trunks,
    pub(crate) lanes: Lanes,
    pub(crate) links: LinkMeasurer,
    pub(crate) parts: Parts,
    pub(crate) relay: Relay,
    /// The jobs whose processes here have ended, while others fetch their data from here.
    pub(crate) storing: Vec<JobId>,
    /// The connections that this host passes on.
    pub(crate) gateway: Gateway,
    /// The names of the jobs; for the arbiter.
    pub(crate) names: NameTable,
    pub(crate) pictures: Pictures,
    pub(crate) inbox: VecDeque<Incoming>,
    /// The things for this host itself that come in the next turn of the loop.
    for_own: VecDeque<Incoming>,
    pub(crate) wake_at: Option<Duration>,
    pub(crate) journal: Journal,
    /// The machine and the options of this daemon, if it is started again.
    place: Option<Place>,
    pub(crate) tokens: JoinTokens,
    /// The return tickets of the hosts; for the founder of a machine that stays.
    pub(crate) tickets: ReturnTickets,
    pub(crate) facts: HostFacts,
    /// The description of the machine; for the arbiter. It places hosts.
    described: Described,
    /// The facts of each host; for the arbiter.
    pub(crate) facts_of: BTreeMap<HostNumber, HostFacts>,
    pair: KeyPair,
    listener: Listener,
    heartbeats: Heartbeats,
    datagrams_token: u64,
    watch: SilenceWatch,
    is_drained: bool,
    holds: bool,
    unheard: Unheard,
    /// When to look at segments that may need numbers for groups.
    pub(crate) numbers_at: Duration,
    networks: Vec<IpNet>,
    /// The addresses of this host at the last look, and when to look again.
    addresses: Vec<IpAddr>,
    addresses_at: Duration,
    /// When each host was last heard that exchanges heartbeats with this one.
    last_heard: BTreeMap<HostNumber, Duration>,
    is_arbiter_down: bool,
    /// The arbiter's daemon has ended in order, and the machine with it.
    pub(crate) has_arbiter_ended: bool,
    signals: Option<(u64, CaughtSignals)>,
    streams: Option<KeptStreams>,
    end: Option<HubEnd>,
}

impl Port {
    /// Makes the keys of this daemon. Its port is not open yet.
    ///
    /// # Errors
    /// The kernel's error, or that of the library of keys.
    pub(crate) fn closed(range: Option<PortRange>, networks: &[IpNet]) -> io::Result<Self> {
        let (reactor, listener) = (Reactor::new()?, Listener::closed(range));
        let pair = KeyPair::generate().map_err(io::Error::other)?;
        let (addresses, clock) = (addresses::here(networks), BootClock);
        let networks = networks.to_vec();
        Ok(Self { reactor, listener, datagrams: None, pair, addresses, networks, clock })
    }

    /// Makes the keys of this daemon, and opens its port.
    ///
    /// # Errors
    /// The kernel's error, or that of the library of keys.
    pub(crate) fn open(range: Option<PortRange>, networks: &[IpNet]) -> io::Result<Self> {
        let mut port = Self::closed(range, networks)?;
        port.datagrams = Some(port.listener.open(&mut port.reactor)?);
        Ok(port)
    }

    /// The port of a daemon that has started again, with the keys and the sockets of the run before: that for connections and
    /// that for datagrams, or none if the port was not open.
    ///
    /// # Errors
    /// The kernel's error, or that of the library of keys.
    pub(crate) fn inherited(
        pair: KeyPair,
        sockets: Vec<OwnedFd>,
        (range, networks): (Option<PortRange>, &[IpNet]),
    ) -> io::Result<Self> {
        let mut port = Self { pair, ..Self::closed(range, networks)? };
        let mut sockets = sockets.into_iter();
        if let Some(connections) = sockets.next() {
            port.listener.go_on(&mut port.reactor, connections)?;
            port.datagrams = sockets.next();
        }
        Ok(port)
    }

    /// Copies of the sockets of an open port for the next run: that for connections and that for datagrams.
    ///
    /// # Errors
    /// The kernel's error.
    #[cfg(test)]
    pub(crate) fn sockets(&self) -> io::Result<Option<[OwnedFd; 2]>> {
        let Some((listener, datagrams)) = self.listener.socket().zip(self.datagrams.as_ref())
        else {
            return Ok(None);
        };
        Ok(Some([listener.try_clone_to_owned()?, datagrams.try_clone()?]))
    }

    /// The entry of this host in a host table.
    pub(crate) fn entry(
        &self,
        host: HostNumber,
        incarnation: HostIncarnation,
        name: String,
    ) -> HostEntry {
        let key = self.pair.hash().0;
        let addresses = with_port(&self.addresses, self.listener.port());
        let cores = HostFacts::here().cores;
        let place = HostPlace::default();
        HostEntry { host, incarnation, name, key, addresses, cores, place }
    }
}

/// The addresses of a daemon that listens on a port.
fn with_port(addresses: &[IpAddr], port: u16) -> Vec<SocketAddr> {
    addresses.iter().map(|address| SocketAddr::new(*address, port)).collect()
}

impl Hub {
    /// The state of a daemon that has found or got its place.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn new(port: Port, station: Station) -> io::Result<Self> {
        let own = station.own.host;
        let (members, events) = match own == HostNumber::ARBITER {
            true => Members::found(station.own.clone()),
            false => (Members::join(own), Vec::new()),
        };
        let mut hub = Self::with_members(port, station, members)?;
        hub.follow(events);
        Ok(hub)
    }

    fn with_members(port: Port, station: Station, members: Members) -> io::Result<Self> {
        let Port { mut reactor, listener, datagrams, pair, addresses, networks, clock } = port;
        let now = clock.now();
        let timing = HostTiming::new(station.options.host_timeout());
        let own = station.own.host;
        let boot = figures::boot_identity();
        let (run, incarnation) = (station.run, station.own.incarnation);
        let watch = match own == HostNumber::ARBITER {
            true => SilenceWatch::of_arbiter(timing, (incarnation, boot)),
            false => {
                let arbiter = station.arbiter.incarnation;
                let lease = Lease::new(timing, incarnation, arbiter, boot, now);
                SilenceWatch::of_host(lease, station.leased_from.map(|from| (run, from)))
            }
        };
        let limits = (timing.lease(), timing.timeout());
        // The streams of the arbiter go on where the run before had them, so they are of one run.
        let run_of_streams = if own == HostNumber::ARBITER { 0 } else { run };
        let of_streams = (own, station.machine, run_of_streams);
        let mut trunks = Trunks::new(of_streams, pair.clone(), addresses, limits);
        trunks.set_place(own, station.own.place.clone());
        for entry in station.gateways.iter().chain([&station.arbiter]) {
            trunks.add_host(&reactor, entry.clone(), now);
        }
        let descriptors = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let undelivered =
            descriptors.map_or(1 << 20, |most| usize::try_from(most / 4).unwrap_or(1 << 20));
        let place = (own, station.machine, run);
        let lanes = Lanes::new(place, station.options.is_plain, timing, undelivered);
        let datagrams_token = reactor.token();
        let facts = HostFacts::here();
        let mut hub = Self {
            reactor,
            clock,
            members,
            trunks,
            lanes,
            links: LinkMeasurer::new(own, station.machine),
            parts: Parts::of_run(run),
            relay: Relay::default(),
            storing: Vec::new(),
            gateway: Gateway::new(timing.silence()),
            names: NameTable::default(),
            pictures: Pictures::of_run(run),
            inbox: VecDeque::new(),
            for_own: VecDeque::new(),
            wake_at: None,
            journal: Journal::none(),
            place: None,
            tokens: JoinTokens::default(),
            tickets: ReturnTickets::default(),
            described: Described::default(),
            facts_of: BTreeMap::from([(own, facts.clone())]),
            facts,
            pair,
            listener,
            heartbeats: Heartbeats::new(own),
            datagrams_token,
            watch,
            is_drained: true,
            holds: false,
            unheard: Unheard::default(),
            numbers_at: now,
            addresses: addresses::here(&networks),
            networks,
            addresses_at: now + ADDRESSES_INTERVAL,
            last_heard: BTreeMap::new(),
            is_arbiter_down: false,
            has_arbiter_ended: false,
            signals: None,
            streams: None,
            end: None,
            station,
        };
        if let Some(datagrams) = datagrams {
            hub.take_datagrams(datagrams)?;
        }
        Ok(hub)
    }

    /// Listens for other hosts, if it does not yet. In the host table the founder's addresses have no port then; it is told to
    /// each host that is admitted.
    ///
    /// # Errors
    /// [`DaemonError`]: none of the ports is free.
    pub(crate) fn open_port(&mut self) -> Result<(), DaemonError> {
        if self.listener.is_open() {
            return Ok(());
        }
        let datagrams =
            self.listener.open(&mut self.reactor).map_err(no_port(self.listener.range()))?;
        self.take_datagrams(datagrams).map_err(no_port(None))?;
        self.keep_place();
        self.tell_addresses();
        Ok(())
    }

    /// Sends and reads datagrams over this socket.
    fn take_datagrams(&mut self, datagrams: OwnedFd) -> io::Result<()> {
        self.reactor.watch(&datagrams, self.datagrams_token, EventFlags::IN)?;
        self.heartbeats.use_socket(datagrams);
        Ok(())
    }

    /// Serves those who look at jobs of this machine that have no part here.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn show_jobs(&mut self, address: &Address) -> io::Result<()> {
        self.pictures.add_machine(&mut self.reactor, address)
    }

    /// Writes this journal from now on, and the place of the daemon first.
    pub(crate) fn keep(&mut self, journal: Journal, place: Place) {
        (self.journal, self.place) = (journal, Some(place));
        self.keep_place();
        if let Some(from) = self.watch.leased_from() {
            self.journal.note_lease(from);
        }
    }

    /// Keeps the place of the daemon for its next run, with its sockets if it has any.
    fn keep_place(&self) {
        let Some(place) = self.place.clone() else { return };
        let (enrolment, key) = (self.station.enrolment(), self.pair.private().to_vec());
        let entry = KeptPlace { enrolment, key, place };
        let sockets = self.listener.socket().into_iter().chain(self.heartbeats.socket()).collect();
        let entry = Entry::Place(Box::new(entry));
        self.journal.write(vec![Change::keep(EntryName::Place, &entry, sockets)]);
    }

    /// Ends when SIGTERM comes.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn heed(&mut self, signals: CaughtSignals) -> io::Result<()> {
        let token = self.reactor.token();
        self.reactor.watch(&signals, token, EventFlags::IN)?;
        self.signals = Some((token, signals));
        Ok(())
    }

    /// Ends when the input ends and there was never a trunk. Makes a trunk of both streams when something comes, unless
    /// other hosts share them.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn keep_streams(
        &mut self,
        input: OwnedFd,
        output: OwnedFd,
        is_shared: bool,
    ) -> io::Result<()> {
        let token = self.reactor.token();
        self.reactor.watch(&input, token, EventFlags::IN)?;
        self.streams = Some(KeptStreams { token, input, output, is_shared });
        Ok(())
    }

    /// The time, by a clock that all runs of the daemon have in common.
    pub(crate) fn now(&self) -> Duration {
        self.clock.now()
    }

    /// This host.
    pub(crate) const fn own(&self) -> HostNumber {
        self.station.own.host
    }

    /// From when the lease of this host counts: the next run of its daemon needs it.
    #[cfg(test)]
    pub(crate) fn leased_from(&self) -> Option<Duration> {
        self.watch.leased_from()
    }

    /// The key of this daemon.
    pub(crate) const fn pair(&self) -> &KeyPair {
        &self.pair
    }

    /// The reason why the daemon must end, if there is one.
    pub(crate) const fn end(&self) -> Option<HubEnd> {
        self.end
    }

    /// When [`Hub::tick`] is due, if nothing else happens before.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        let holding = self.watch.valid_until().filter(|_| !self.holds);
        let numbers = self.parts.jobs().next().map(|_| self.numbers_at);
        [
            self.trunks.deadline(),
            self.lanes.deadline(),
            self.links.deadline(),
            self.gateway.deadline(),
            self.pictures.deadline(),
            (!self.storing.is_empty()).then(|| self.now() + STORING_INTERVAL),
            self.listener.deadline(),
            self.watch.next_look(),
            self.wake_at,
            holding,
            numbers,
            Some(self.addresses_at),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Goes on with a descriptor that is ready.
    pub(crate) fn ready(&mut self, token: u64, flags: EventFlags) {
        let now = self.now();
        if self.listener.is_own(token) {
            let Self { listener, reactor, trunks, .. } = self;
            let ousted = listener.accept(reactor, now, |address| trunks.is_known_address(address));
            ousted.into_iter().for_each(|caller| self.oust(caller));
        } else if self.listener.is_stranger(token) {
            self.call(token);
        } else if self.trunks.has(token) {
            self.trunks.ready(&self.reactor, token, flags, now);
        } else if token == self.datagrams_token {
            let mut heard = Vec::new();
            self.is_drained &= self.heartbeats.read(now, &mut heard);
            heard.into_iter().for_each(|beat| self.heard(beat));
        } else if self.lanes.has(token) {
            self.with_lanes(|lanes, tools| lanes.ready(tools, token, flags));
        } else if self.gateway.has(token) {
            self.with_gateway(|gateway, tools| gateway.ready(tools, token));
        } else if self.links.has(token) {
            self.with_links(|links, tools| links.ready(tools, token));
        } else if self.pictures.has(token) {
            let outgoing = self.with_pictures(|pictures, tools| pictures.ready(tools, token));
            outgoing.iter().for_each(|(to, message)| self.send(*to, message));
        } else if self.signals.as_ref().is_some_and(|(own, _)| *own == token) {
            self.signalled();
        } else if self.streams.as_ref().is_some_and(|streams| streams.token == token) {
            self.streams_ready();
        }
        self.settle();
    }

    /// Does what is due.
    pub(crate) fn tick(&mut self) {
        let now = self.now();
        for caller in self.listener.tick(&self.reactor, now) {
            self.oust(caller);
        }
        if let Some(line) = self.listener.line(now) {
            self.say(line);
        }
        self.trunks.tick(&mut self.reactor, now);
        self.settle();
        self.look();
        let holds = !self.watch.is_valid(now);
        if std::mem::replace(&mut self.holds, holds) != holds {
            self.with_lanes(|lanes, tools| lanes.hold(tools, holds));
        }
        for (from, to) in self.trunks.take_broken() {
            self.send(HostNumber::ARBITER, &DaemonMessage::StepBroken { from, to });
        }
        for host in self.relay.take_narrow() {
            self.trunks.narrow(host);
        }
        self.with_lanes(|lanes, tools| lanes.tick(tools));
        self.with_gateway(Gateway::tick);
        self.with_links(|links, tools| links.go_on(tools));
        self.with_pictures(Pictures::tick);
        self.end_storing();
        if now >= self.numbers_at {
            self.numbers_at = now + NUMBERS_INTERVAL;
            self.ask_numbers();
        }
        if now >= self.addresses_at {
            self.addresses_at = now + ADDRESSES_INTERVAL;
            self.look_at_addresses();
        }
        self.settle();
    }

    /// Tells all hosts if this one has other addresses: it may be in another network now. One without any waits for some.
    fn look_at_addresses(&mut self) {
        let addresses = addresses::here(&self.networks);
        let has_none = addresses.iter().all(IpAddr::is_loopback);
        if self.holds || has_none || addresses == self.addresses {
            return;
        }
        self.addresses.clone_from(&addresses);
        self.trunks.set_own_addresses(addresses);
        if self.listener.is_open() {
            self.tell_addresses();
        }
    }

    /// Tells all hosts where this daemon listens.
    fn tell_addresses(&mut self) {
        let HostEntry { host, incarnation, .. } = self.station.own;
        let addresses = with_port(&self.addresses, self.listener.port());
        self.station.own.addresses.clone_from(&addresses);
        let place = HostPlace::default();
        self.tell(WordContent::HostMoved { host, incarnation, addresses, place });
    }

    /// Asks for a word.
    pub(crate) fn tell(&mut self, content: WordContent) {
        let content = self.placed(content);
        let events = self.members.ask(content);
        self.follow(events);
    }

    /// Ends a job because somebody wants so; on the arbiter.
    pub(crate) fn order_end(&mut self, job: JobId, cause: String) {
        let events = self.members.order_end(job, cause);
        self.follow(events);
    }

    /// Forgets the parts from which nobody fetches data any more.
    fn end_storing(&mut self) {
        let stores = |job: &JobId| {
            self.parts.get(*job).is_some_and(|part| part.segment.stored_messages() != 0)
        };
        let over: Vec<JobId> = self.storing.iter().filter(|job| !stores(job)).copied().collect();
        over.into_iter().for_each(|job| self.remove_part(job));
    }

    /// Forgets the part of a job on this host.
    pub(crate) fn remove_part(&mut self, job: JobId) {
        self.storing.retain(|its| *its != job);
        if let Some(part) = self.parts.remove(job) {
            let segment = part.segment_id();
            self.relay.part_over(segment);
            self.lanes.remove_part(job, &part);
            self.pictures.remove_part(job);
            // What the part still had to say comes before the word that it is over.
            self.settle();
            self.part_removed(segment);
        }
    }

    /// Tells the arbiter that a part of a job is over on this host.
    pub(crate) fn part_removed(&mut self, segment: SegmentId) {
        if self.members.is_arbiter() {
            let events = self.members.part_removed(segment, HostNumber::ARBITER);
            self.follow(events);
        } else {
            self.send(HostNumber::ARBITER, &DaemonMessage::PartRemoved { segment });
        }
    }

    /// Says something to the user: to the launcher by way of the arbiter, so that it stands in no line of a process.
    pub(crate) fn say(&mut self, text: String) {
        match self.members.is_arbiter() {
            true => self.for_own.push_back(Incoming::Said(self.own(), text)),
            false => self.send(HostNumber::ARBITER, &DaemonMessage::Said(text)),
        }
    }

    /// Sends a message of a job to a host. To this host it is delivered in the next turn of the loop.
    pub(crate) fn post(&mut self, to: HostNumber, class: EnvelopeClass, message: JobMessage) {
        if to == self.own() {
            return self.for_own.push_back(Incoming::Message(to, message));
        }
        let now = self.now();
        self.trunks.send(&self.reactor, to, class, &message.encode(), now);
    }

    /// Sends a message about the machine to a daemon. To this host it is delivered in the next turn of the loop.
    pub(crate) fn send_machine(&mut self, to: HostNumber, message: MachineMessage) {
        match to == self.own() {
            true => self.for_own.push_back(Incoming::Machine(to, message)),
            false => self.send(to, &DaemonMessage::Machine(message)),
        }
    }

    /// Sends a message to a daemon. To this host it is delivered in the next turn of the loop.
    pub(crate) fn send(&mut self, to: HostNumber, message: &DaemonMessage) {
        if to == self.own() {
            return self.for_own.push_back(Incoming::Own(message.clone()));
        }
        let now = self.now();
        self.trunks.send(&self.reactor, to, EnvelopeClass::Daemon, &message.encode(), now);
    }

    /// Whether the next turn of the loop has something to do at once.
    pub(crate) fn has_more(&self) -> bool {
        !self.inbox.is_empty() || !self.for_own.is_empty() || self.trunks.has_events()
    }

    /// Takes what has come for the jobs, in order.
    pub(crate) fn take_inbox(&mut self) -> VecDeque<Incoming> {
        std::mem::take(&mut self.inbox)
    }

    /// Sends what has gathered in this turn of the loop: over trunks, and to this host itself. The founder of a machine that
    /// stays records before everything from which that follows.
    pub(crate) fn write_out(&mut self, founder: impl FnOnce() -> Option<Vec<u8>>) {
        self.record_before(founder);
        let now = self.now();
        self.trunks.write_out(&self.reactor, now);
        self.inbox.append(&mut self.for_own);
    }

    /// Ends everything in order. Contents that were not sent yet get a moment.
    pub(crate) fn close(&mut self) {
        const MOMENT: Duration = Duration::from_secs(1);
        let incarnation = self.station.own.incarnation;
        let others: Vec<HostNumber> = match self.members.is_arbiter() {
            true => self
                .members
                .hosts()
                .map(|entry| entry.host)
                .filter(|host| *host != self.own())
                .collect(),
            false => vec![HostNumber::ARBITER],
        };
        for host in others {
            self.send(host, &DaemonMessage::Goodbye { incarnation });
        }
        let until = self.now() + MOMENT;
        let mut ready = Vec::new();
        self.write_out(|| None);
        while self.trunks.has_unconfirmed() && self.now() < until {
            let left = until.saturating_sub(self.now());
            if self.reactor.wait(Some(left), &mut ready).is_err() {
                break;
            }
            let now = self.now();
            for (token, flags) in ready.drain(..) {
                if self.trunks.has(token) {
                    self.trunks.ready(&self.reactor, token, flags, now);
                } else if self.signals.as_ref().is_some_and(|(own, _)| *own == token) {
                    self.signalled();
                } else {
                    // It would be ready again and again.
                    self.ready_at_the_end(token);
                }
            }
            while self.trunks.take_event().is_some() {}
            self.write_out(|| None);
        }
        self.trunks.close(&self.reactor);
        // The last words for hosts behind this one may pass it.
        self.gateway.finish(MOMENT);
    }

    /// Stops watching what nobody reads any more.
    fn ready_at_the_end(&mut self, token: u64) {
        if token == self.datagrams_token {
            let mut heard = Vec::new();
            self.heartbeats.read(self.clock.now(), &mut heard);
        } else if self.listener.is_own(token) {
            let now = self.clock.now();
            let _ = self.listener.accept(&mut self.reactor, now, |_| false);
        }
    }

    /// The time for which the arbiter was not heard, if it is so long that this host holds.
    pub(crate) fn arbiter_silence(&self) -> Option<Duration> {
        let heard = self.last_heard.get(&HostNumber::ARBITER).filter(|_| self.holds)?;
        let silent = self.now().saturating_sub(*heard);
        (silent >= self.station.options.host_timeout()).then_some(silent)
    }

    /// Notes that a host was heard. Others than the arbiter hear each other only when there is something to say.
    fn note_heard(&mut self, host: HostNumber, now: Duration) {
        if self.members.is_arbiter() || host == HostNumber::ARBITER {
            self.last_heard.insert(host, now);
        }
    }

    fn with_pictures<T>(
        &mut self,
        call: impl FnOnce(&mut Pictures, &mut PictureTools<'_>) -> T,
    ) -> T {
        let now = self.clock.now();
        let Self { pictures, reactor, parts, last_heard: heard, .. } = self;
        call(pictures, &mut PictureTools { reactor, parts, heard, now })
    }

    /// Lets the gateway have what it needs of the daemon.
    fn with_gateway<T>(
        &mut self,
        call: impl FnOnce(&mut Gateway, &mut GatewayTools<'_>) -> T,
    ) -> T {
        let now = self.clock.now();
        let Self { gateway, reactor, trunks, .. } = self;
        call(gateway, &mut GatewayTools { reactor, trunks, now })
    }

    /// Lets the links have what they need of the daemon.
    pub(crate) fn with_links<T>(
        &mut self,
        call: impl FnOnce(&mut LinkMeasurer, &mut LinkTools<'_>) -> T,
    ) -> T {
        let Self { links, reactor, trunks, clock, .. } = self;
        call(links, &mut LinkTools { reactor, trunks, clock: *clock })
    }

    pub(crate) fn with_lanes<T>(
        &mut self,
        call: impl FnOnce(&mut Lanes, &mut LaneTools) -> T,
    ) -> T {
        let now = self.clock.now();
        let Self { lanes, reactor, trunks, parts, .. } = self;
        call(lanes, &mut LaneTools { reactor, trunks, parts, now })
    }
}
