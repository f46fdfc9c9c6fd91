//! The calls that the daemon offers to the jobs on its host, and those that it makes to them.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use landeck_launch::machine::LinkStatus;
use landeck_machine::routes::Route;
use landeck_memory::Segment;
use landeck_protocols::hosts::{LinkSight, WordFollower};
use landeck_trust::{JoinToken, KeyHash, TrustError};
use landeck_wire::word::{HostEntry, Word, WordContent};
use landeck_wire::{HostIncarnation, HostNumber, JobId, ProcessId, SegmentId};
use rustix::event::epoll::EventFlags;
use rustix::net::{getpeername, getsockname};

use crate::DaemonError;
use crate::bootstrap::{DaemonOptions, Enrolment};
use crate::daemon_message::DaemonMessage;
use crate::facts::HostFacts;
use crate::figures::LinkFindings;
use crate::hub::Hub;
use crate::job_message::{JobContent, JobMessage};
use crate::join::FounderWay;
use crate::journal::Journal;
use crate::lanes::Lanes;
use crate::links::MeasuringSecret;
use crate::machine_message::MachineMessage;
use crate::parts::{PartOfHost, far_processes};
use crate::reactor::{JOB_TOKENS, Reactor};
#[cfg(test)]
use crate::relay::Relay;
use crate::trunks::envelope::EnvelopeClass;

/// The daemon, as the jobs of its host see it.
pub(crate) struct Context<'a> {
    hub: &'a mut Hub,
}

/// The jobs of a host, as the daemon's loop sees them.
pub(crate) trait JobHandler {
    /// A message of a job has come from another daemon, or from this one.
    fn message(&mut self, context: &mut Context<'_>, from: HostNumber, message: JobMessage);
    /// A daemon says something to the user; on the arbiter.
    fn said(&mut self, context: &mut Context<'_>, from: HostNumber, text: String);
    /// A message about the machine has come from another daemon, or from this one.
    fn machine(&mut self, context: &mut Context<'_>, from: HostNumber, message: MachineMessage);
    /// The arbiter, which is this host, has given a word.
    fn given(&mut self, _: &mut Context<'_>, _: &Word) {}
    /// A word was applied on this host.
    fn word(&mut self, context: &mut Context<'_>, word: &Word);
    /// A descriptor that the jobs watch is ready.
    fn ready(&mut self, context: &mut Context<'_>, token: u64, events: EventFlags);
    /// A turn of the loop is over.
    fn tick(&mut self, context: &mut Context<'_>);
    /// A host is connected: its trunk is open, for the first time or again.
    fn host_up(&mut self, context: &mut Context<'_>, host: HostNumber);
    /// The daemon of a host has started again, and its parts run on. What was on its way to it or from it is lost: messages to
    /// it that were sent before this, and those of the daemon before that have not come.
    fn host_restarted(&mut self, _: &mut Context<'_>, _: HostNumber) {}
    /// This daemon has a copy of the words now, and knows the hosts. If it has started again, it takes the parts up in this
    /// call that it has: those that it has not then are over for the arbiter.
    fn welcomed(&mut self, _: &mut Context<'_>) {}
    /// A host is not connected any more: its trunk ended and could not be renewed.
    fn host_down(&mut self, context: &mut Context<'_>, host: HostNumber, why: String);
    /// The arbiter, which is this host, has judged that a host is lost, as it was silent for `silent_ms` milliseconds. The
    /// words that this call asks for come before the word that the host is lost.
    fn host_lost(&mut self, context: &mut Context<'_>, host: HostNumber, silent_ms: u64);
    /// Everything that the founder of a machine that stays knows of hosts and jobs, if this host has founded it. The next run of
    /// its daemon gets it.
    fn founder(&self) -> Option<Vec<u8>> {
        None
    }
    /// The exit code of the daemon, once it is to end.
    fn is_over(&self) -> Option<u8>;
}

impl<'a> Context<'a> {
    /// The jobs' sight of a daemon.
    pub(crate) const fn new(hub: &'a mut Hub) -> Self {
        Self { hub }
    }

    /// The time, by a clock that goes on while the host sleeps. All runs of the daemon have it in common.
    pub(crate) fn now(&self) -> Duration {
        self.hub.now()
    }

    /// From when the lease of this host counts: the next run of its daemon needs it.
    #[cfg(test)]
    pub(crate) fn leased_from(&self) -> Option<Duration> {
        self.hub.leased_from()
    }

    /// Says what the arbiter may not have heard of the run before of this daemon, if there was one. The parts are taken up that
    /// are left of it.
    pub(crate) fn resumed(&mut self) {
        if self.run() > 0 {
            self.hub.resumed();
        }
    }

    /// The run of this daemon within its incarnation.
    pub(crate) fn run(&self) -> u32 {
        self.hub.station.run
    }

    /// The number of this host.
    pub(crate) fn own_host(&self) -> HostNumber {
        self.hub.own()
    }

    /// The options of the machine.
    pub(crate) fn options(&self) -> DaemonOptions {
        self.hub.station.options
    }

    /// The facts of this host.
    pub(crate) fn facts(&self) -> &HostFacts {
        &self.hub.facts
    }

    /// The entry of this host, before the word on it is applied too.
    pub(crate) fn own_entry(&self) -> &HostEntry {
        &self.hub.station.own
    }

    /// The entry of a host in the host table, whether or not it still takes part.
    pub(crate) fn host(&self, number: HostNumber) -> Option<&HostEntry> {
        self.hub.members.host(number)
    }

    /// The address at which other hosts reach a host: that of its trunk, else its first one.
    pub(crate) fn address_of(&self, host: HostNumber) -> Option<IpAddr> {
        let hub = &*self.hub;
        let of_trunk = match host == hub.own() {
            true => {
                let mut others =
                    hub.members.hosts().filter_map(|entry| hub.trunks.socket(entry.host));
                others.next().and_then(|socket| getsockname(socket).ok())
            }
            false => hub.trunks.socket(host).and_then(|socket| getpeername(socket).ok().flatten()),
        };
        let of_trunk = of_trunk.and_then(|address| SocketAddr::try_from(address).ok());
        let entry = if host == hub.own() { Some(self.own_entry()) } else { self.host(host) };
        let first = || entry.and_then(|entry| entry.addresses.first().copied());
        of_trunk.or_else(first).map(|address| address.ip().to_canonical())
    }

    /// The addresses that lead to the founder, best first.
    pub(crate) fn ways_to_founder(&self) -> Vec<FounderWay> {
        let hub = &*self.hub;
        let ways = hub.trunks.ways(HostNumber::ARBITER, hub.clock.now());
        let mut all: Vec<FounderWay> = Vec::new();
        let known = ways.iter().map(|way| (way.address, way.hosts.len() > 2));
        // It was reached at the first of these, whatever it thinks of its addresses.
        let first = self.arbiter_entry().addresses.iter().map(|address| (*address, false));
        for (address, is_gateway) in known.chain(first) {
            if all.iter().all(|one| one.address != address) {
                all.push(FounderWay { address, is_gateway });
            }
        }
        all
    }

    /// The routes between two hosts, the best first.
    pub(crate) fn routes(&self, from: HostNumber, to: HostNumber) -> Vec<Route> {
        self.hub.trunks.routes(from, to, self.hub.clock.now())
    }

    /// The hosts that take part.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = &HostEntry> {
        self.hub.members.hosts()
    }

    /// The cores of a host, as it has said when it was admitted.
    pub(crate) fn cores(&self, host: HostNumber) -> u16 {
        let own = Some(self.own_entry()).filter(|own| own.host == host);
        own.or_else(|| self.host(host)).map_or(1, |entry| entry.cores.max(1))
    }

    /// The facts of a host, as it has said when it was admitted; for the arbiter.
    pub(crate) fn facts_of(&self, host: HostNumber) -> Option<&HostFacts> {
        self.hub.facts_of.get(&host)
    }

    /// Notes the facts of a host that was admitted.
    pub(crate) fn note_facts(&mut self, host: HostNumber, facts: HostFacts) {
        self.hub.facts_of.insert(host, facts);
    }

    /// Sends a message about the machine to a daemon.
    pub(crate) fn send_machine(&mut self, to: HostNumber, message: MachineMessage) {
        self.hub.send_machine(to, message);
    }

    /// Sends a message of a job to a host. It arrives once and in order, also when trunks are renewed on the way. To this host it
    /// is delivered in the next turn of the loop.
    pub(crate) fn send(&mut self, to: HostNumber, job: JobId, content: JobContent) {
        self.hub.post(to, EnvelopeClass::Job, JobMessage { job, content });
    }

    /// Sends output or input to a host: in order among themselves, and never before other messages.
    pub(crate) fn send_bulk(&mut self, to: HostNumber, job: JobId, content: JobContent) {
        self.hub.post(to, EnvelopeClass::Bulk, JobMessage { job, content });
    }

    /// Opens a trunk to a host, if there is none.
    #[cfg(test)]
    pub(crate) fn want_trunk(&mut self, host: HostNumber) {
        let now = self.now();
        self.hub.trunks.want(host, now);
    }

    /// Everything that words have said.
    #[cfg(test)]
    pub(crate) fn snapshot(&self) -> landeck_protocols::hosts::Snapshot {
        self.hub.members.snapshot()
    }

    /// The bytes of output and input on the way to a host that it has not confirmed.
    #[cfg(test)]
    pub(crate) fn unsent_bulk(&self, to: HostNumber) -> usize {
        self.hub.trunks.unsent_bulk(to)
    }

    /// Asks the arbiter for a word; the arbiter gives it.
    pub(crate) fn tell(&mut self, content: WordContent) {
        self.hub.tell(content);
    }

    /// Ends a job because somebody wants so, whatever it has survived; on the arbiter.
    pub(crate) fn order_end(&mut self, job: JobId, cause: String) {
        self.hub.order_end(job, cause);
    }

    /// Watches a descriptor. Its token must be at least 2^32.
    ///
    /// # Errors
    /// The kernel's error; for files it is EPERM, since they are always ready.
    pub(crate) fn watch(
        &mut self,
        descriptor: BorrowedFd<'_>,
        token: u64,
        wanted: EventFlags,
    ) -> io::Result<()> {
        debug_assert!(token >= JOB_TOKENS, "smaller tokens are the daemon's");
        self.hub.reactor.watch(descriptor, token, wanted)
    }

    /// Changes the events for which a descriptor is watched.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn rewatch(
        &mut self,
        descriptor: BorrowedFd<'_>,
        token: u64,
        wanted: EventFlags,
    ) -> io::Result<()> {
        self.hub.reactor.rewatch(descriptor, token, wanted)
    }

    /// Ends the watch of a descriptor.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn unwatch(&mut self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        self.hub.reactor.unwatch(descriptor)
    }

    /// The words that were applied on this host.
    pub(crate) fn words(&self) -> &WordFollower {
        self.hub.members.words()
    }

    /// The cause of the end of a job, if a word has ended it and it is not over.
    pub(crate) fn cause_of_end(&self, job: JobId) -> Option<String> {
        self.hub.members.words().cause_of_end(job).map(str::to_owned)
    }

    /// Calls [`JobHandler::tick`] at this time at the latest. The earliest wish that lies ahead counts.
    pub(crate) fn wake_at(&mut self, at: Duration) {
        self.hub.wake_at = Some(self.hub.wake_at.map_or(at, |known| known.min(at)));
    }

    /// Adds the part of a job on this host. From now on words reach the far records of its segment, and its processes
    /// get lanes and numbers for groups. The segment's far records name the processes and their hosts already.
    ///
    /// # Errors
    /// The kernel's error: the socket for the processes cannot be opened.
    pub(crate) fn add_part(
        &mut self,
        job: JobId,
        segment: Segment,
        far: Vec<ProcessId>,
    ) -> io::Result<()> {
        self.take_part(job, segment, far, |lanes, reactor, part| lanes.add_part(reactor, job, part))
    }

    /// Goes on with a part of the run before: its segment, and the listening socket for its processes.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn resume_part(
        &mut self,
        job: JobId,
        segment: Segment,
        listener: OwnedFd,
    ) -> io::Result<()> {
        let far = far_processes(&segment);
        self.take_part(job, segment.clone(), far, |lanes, reactor, part| {
            lanes.resume_part(reactor, job, part, listener)
        })?;
        let untold = self.hub.lanes.untold(SegmentId(segment.plan().host));
        self.hub.relay.resume(segment, untold);
        Ok(())
    }

    fn take_part(
        &mut self,
        job: JobId,
        segment: Segment,
        far: Vec<ProcessId>,
        listen: impl FnOnce(&mut Lanes, &mut Reactor, &PartOfHost) -> io::Result<()>,
    ) -> io::Result<()> {
        let hub = &mut *self.hub;
        let host = SegmentId(segment.plan().host);
        if hub.storing.contains(&job) {
            hub.remove_part(job);
        }
        hub.parts.add(job, segment, far, hub.members.words());
        // The new segment has none yet.
        hub.numbers_at = Duration::ZERO;
        if let Some(part) = hub.parts.get(job)
            && let Err(error) = listen(&mut hub.lanes, &mut hub.reactor, part)
        {
            hub.parts.remove(job);
            return Err(error);
        }
        // A job runs without observers too.
        let _ = hub.pictures.add_part(&mut hub.reactor, job, host);
        if hub.members.is_arbiter() {
            hub.members.part_added(job, host, HostNumber::ARBITER);
        } else {
            hub.send(HostNumber::ARBITER, &DaemonMessage::PartAdded { job, segment: host });
        }
        Ok(())
    }

    /// The listening socket for the processes of a part.
    pub(crate) fn listener_of(&self, job: JobId) -> Option<BorrowedFd<'_>> {
        self.hub.lanes.listener_of(job)
    }

    /// The journal of this daemon.
    pub(crate) fn journal(&self) -> &Journal {
        &self.hub.journal
    }

    /// Adds the places of the guests of one more host of a job, behind all others of its segment here.
    pub(crate) fn add_far_guests(&mut self, job: JobId, guests: Vec<ProcessId>) {
        self.hub.parts.add_far(job, guests);
    }

    /// Takes processes that have come on other hosts before this host had a part of their job, each with whether it is a guest.
    pub(crate) fn meet(&mut self, job: JobId, guests: &[(ProcessId, bool)]) {
        self.hub.parts.meet_all(job, guests, self.hub.members.words());
    }

    /// Begins to measure the links between these hosts, of which this one is one.
    pub(crate) fn measure_links(&mut self, secret: MeasuringSecret, hosts: Vec<HostNumber>) {
        self.hub.with_links(|links, tools| links.begin(tools, secret, hosts));
    }

    /// The links that the jobs have found that this daemon has conducted.
    pub(crate) fn known_links(&mut self) -> &mut LinkFindings {
        &mut self.hub.links.known
    }

    /// Fills in the links of hosts that reach each other over gateways, where they were not found, by those in between.
    pub(crate) fn compose_links(&mut self, hosts: &[HostNumber]) {
        for (at, &from) in hosts.iter().enumerate() {
            for &to in &hosts[at + 1..] {
                let route = self.routes(from, to).into_iter().next();
                if let Some(route) = route.filter(|route| !route.gateways.is_empty()) {
                    let path = [&[from][..], &route.gateways, &[to]].concat();
                    self.hub.links.known.compose(&path);
                }
            }
        }
    }

    /// The links between hosts that take part whose latency is known here.
    pub(crate) fn links(&self) -> Vec<LinkStatus> {
        let hosts: Vec<HostNumber> = self.hosts().map(|entry| entry.host).collect();
        let found = self.hub.links.known.between(&hosts);
        found.map(|(hosts, sight)| LinkStatus { hosts, sight }).collect()
    }

    /// Takes the findings about links, when all of them were measured or their time is over.
    pub(crate) fn take_links(&mut self) -> Option<Vec<(HostNumber, LinkSight)>> {
        self.hub.links.take_found()
    }

    /// The processes of a job's part on this host have ended. The part is forgotten when nobody fetches data from here any more.
    pub(crate) fn part_ended(&mut self, job: JobId) {
        let part = self.hub.parts.get(job);
        match part.is_some_and(|part| part.segment.stored_messages() != 0) {
            true => self.hub.storing.push(job),
            false => self.hub.remove_part(job),
        }
    }

    /// Forgets the part of a job on this host.
    pub(crate) fn remove_part(&mut self, job: JobId) {
        self.hub.remove_part(job);
    }

    /// Listens for other hosts, if this daemon does not yet.
    ///
    /// # Errors
    /// [`DaemonError`]: none of the ports is free.
    pub(crate) fn open_port(&mut self) -> Result<(), DaemonError> {
        self.hub.open_port()
    }

    /// Admits a host to the machine, and makes the word that says so; for the arbiter. Returns its number.
    pub(crate) fn admit(
        &mut self,
        name: String,
        key: KeyHash,
        incarnation: HostIncarnation,
        addresses: Vec<SocketAddr>,
        cores: u16,
    ) -> HostNumber {
        self.hub.admit(name, key, incarnation, addresses, cores)
    }

    /// Places hosts by this description from now on.
    ///
    /// # Errors
    /// The errors of its lines, in one text.
    pub(crate) fn describe(&mut self, text: String) -> Result<(), String> {
        self.hub.describe(text)
    }

    /// The content of the description by which hosts are placed; empty if there is none.
    pub(crate) fn description(&self) -> &str {
        self.hub.description()
    }

    /// Whether a way leads from this host to one of this name with these addresses, over gateways that are there.
    pub(crate) fn has_way_to(&self, name: &str, addresses: &[IpAddr]) -> bool {
        self.hub.has_way_to(name, addresses)
    }

    /// The connections that this host passes on.
    #[cfg(test)]
    pub(crate) fn passed_on(&self) -> usize {
        self.hub.gateway.count()
    }

    /// Everything that a host learns when it is admitted.
    pub(crate) fn enrolment(&self, host: HostNumber) -> Option<Enrolment> {
        self.hub.enrolment(host)
    }

    /// Keeps the streams of a daemon that was started by ssh, in case none of its ports is reached within seconds. The
    /// streams begin behind the two lines that both sides have exchanged.
    pub(crate) fn add_stdio_trunk(
        &mut self,
        host: HostNumber,
        child_output: OwnedFd,
        child_input: OwnedFd,
    ) {
        let now = self.now();
        self.hub.trunks.add_streams(host, child_output, child_input, now);
    }

    /// The failures of the last attempts to reach a host.
    pub(crate) fn complaint(&self, host: HostNumber) -> String {
        self.hub.trunks.complaint(host)
    }

    /// The words about a host that does not answer, if the connection to it depends on the remote shell.
    pub(crate) fn dependence(&self, host: HostNumber) -> Option<String> {
        self.hub.trunks.dependence(host)
    }

    /// When the trunks have something to do, if nothing happens before.
    #[cfg(test)]
    pub(crate) fn trunks_deadline(&self) -> Option<Duration> {
        self.hub.trunks.deadline()
    }

    /// Plays that this daemon has started again, as far as its lanes and its relay know: they go on with the processes of a part.
    #[cfg(test)]
    pub(crate) fn begin_lanes_again(&mut self, job: JobId, run: u32) {
        let hub = &mut *self.hub;
        let listener = hub.lanes.listener_of(job).expect("its socket");
        let kept = listener.try_clone_to_owned().expect("a descriptor");
        hub.reactor.unwatch(listener).expect("it was watched");
        hub.lanes = hub.lanes.of_run(run);
        for host in hub.members.hosts() {
            hub.lanes.add_host(host.host, hub.trunks.ways(host.host, hub.clock.now()).len());
        }
        hub.relay = Relay::default();
        let part = hub.parts.remove(job).expect("a part");
        self.resume_part(job, part.segment, kept).expect("it listens");
    }

    /// Plays that the daemon of a host has started again, as far as the lanes here know.
    #[cfg(test)]
    pub(crate) fn lanes_restarted(&mut self, host: HostNumber, run: u32) {
        self.hub.with_lanes(|lanes, tools| lanes.host_restarted(tools, host, run));
    }

    /// The reasons why streams of a host are refused.
    #[cfg(test)]
    pub(crate) fn whys_of_streams(&self, host: HostNumber) -> Vec<Option<&'static str>> {
        self.hub.lanes.whys_of_streams(&self.hub.trunks, host)
    }

    /// Gives a host its next return ticket; for the founder of a machine that stays.
    ///
    /// # Errors
    /// [`TrustError::Randomness`].
    pub(crate) fn issue_ticket(&mut self, host: HostNumber) -> Result<[u8; 16], TrustError> {
        self.hub.trunks.admit_guests(true);
        self.hub.tickets.issue(host)
    }

    /// Makes the return tickets of a host void.
    pub(crate) fn void_ticket(&mut self, host: HostNumber) {
        self.hub.tickets.void(host);
    }

    /// The entry of the arbiter, before the word on it is applied too.
    pub(crate) fn arbiter_entry(&self) -> &HostEntry {
        &self.hub.station.arbiter
    }

    /// The time for which the arbiter was not heard, if it is so long that this host holds.
    pub(crate) fn arbiter_silence(&self) -> Option<Duration> {
        self.hub.arbiter_silence()
    }

    /// Whether the arbiter's daemon has ended in order.
    pub(crate) fn has_arbiter_ended(&self) -> bool {
        self.hub.has_arbiter_ended
    }

    /// Issues a token, by which one host joins by hand within 15 minutes.
    ///
    /// # Errors
    /// [`TrustError::Randomness`].
    pub(crate) fn issue_token(&mut self) -> Result<JoinToken, TrustError> {
        let now_ns = u64::try_from(self.now().as_nanos()).unwrap_or(u64::MAX);
        let none = SocketAddr::from(([127, 0, 0, 1], 0));
        let address = self.hub.station.own.addresses.first().copied().unwrap_or(none);
        let founder = self.hub.pair().hash();
        self.hub.trunks.admit_guests(true);
        self.hub.tokens.issue(now_ns, address, founder)
    }
}
