//! Lanes: the connections of processes on different hosts, which the daemons open and hand over.
//!
//! [`landeck_protocols::hosts::Dialling`] decides which side dials, and when a lane is handed over. This file carries that
//! out: it dials, checks preambles, keeps sockets until their processes have said hello, and takes the reports of
//! processes whose lanes broke.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::fd::OwnedFd;
use std::time::Duration;

use landeck_collectives::settings::Settings;
use landeck_protocols::door::ObjectQuestion;
use landeck_protocols::hosts::{DialMessage, DialOutput, Dialling, HostReach, HostTiming};
use landeck_transports::lanes::lanes_max;
use landeck_trust::lane::verify;
use landeck_trust::{LaneEnd, lane_keys};
use landeck_wire::handover::{Cipher, Handover, LaneKeys};
use landeck_wire::preamble::{CHALLENGE_BYTES, Preamble, Purpose};
use landeck_wire::word::{LaterProcess, ProcessEnd};
use landeck_wire::{ControlMessage, HostNumber, JobId, MachineId, ProcessId};
use rustix::event::epoll::EventFlags;
use rustix::net::{RecvFlags, recv};
use tracing::info;

use crate::calls::dial::{Challenged, Dial};
use crate::calls::listener::Caller;
use crate::daemon_message::DaemonMessage;
use crate::parts::Parts;
use crate::process_socket::ProcessSocket;
use crate::reactor::Reactor;
use crate::relay::RelayCaller;
use crate::trunks::envelope::EnvelopeClass;
use crate::trunks::{NoWay, Trunks};

mod leavers;
mod names;
mod processes;
mod relays;
mod tunnels;

pub(crate) use tunnels::BegunStream;

use processes::ExplainedBy;

/// A lane of a process of this host: the process, the far one, and the lane's number.
type LaneName = (ProcessId, ProcessId, u32);

/// The parts of the daemon that lanes need.
pub(crate) struct LaneTools<'a> {
    /// The descriptors.
    pub(crate) reactor: &'a mut Reactor,
    /// The trunks: their secrets, and what is sent over them.
    pub(crate) trunks: &'a mut Trunks,
    /// The parts of jobs.
    pub(crate) parts: &'a Parts,
    /// The time.
    pub(crate) now: Duration,
}

/// Something that the daemon must do.
#[derive(Debug)]
pub(crate) enum LanesEvent {
    /// A process asks for group numbers.
    NumbersWanted,
    /// A process asks about the names of its job.
    NameAsked {
        /// The job.
        job: JobId,
        /// The PID of the process.
        pid: u32,
        /// The number of the request.
        request: u64,
        /// The question.
        question: ObjectQuestion,
    },
    /// A process of this host lets a process elsewhere send over the relay up to a position.
    Granted {
        /// The process of this host.
        receiver: ProcessId,
        /// The process elsewhere.
        source: ProcessId,
        /// The position.
        position: u64,
    },
    /// A process of this host has room for what the relay holds.
    HasRoom {
        /// The process.
        process: ProcessId,
    },
    /// A process of this host wants the relay here.
    RelayCalled(Box<RelayCaller>),
    /// A process of this host has said how far each sender may go that used the relay of an earlier run of the daemon.
    RelayTold {
        /// The process.
        process: ProcessId,
    },
    /// A process of this host has left and runs on, or a guest has ended. The guardian reports only the ends of the
    /// processes that it has started.
    Ended {
        /// The job.
        job: JobId,
        /// The process.
        process: ProcessId,
        /// How it has ended.
        end: ProcessEnd,
    },
    /// A process of this host takes part with which the job did not begin.
    Came {
        /// The job.
        job: JobId,
        /// The process.
        process: ProcessId,
        /// Its kind.
        kind: LaterProcess,
    },
    /// A process of this host takes part again, as this incarnation.
    Returned {
        /// The job.
        job: JobId,
        /// The process, as it is now.
        process: ProcessId,
    },
    /// The daemon of a host has done in a tunnel what no daemon does, or has begun a stream that it may not.
    Refused {
        /// The host.
        host: HostNumber,
        /// The reason.
        why: &'static str,
    },
    /// Two processes have had no connection for T, and no word says why: the job cannot go on.
    PairBroken {
        /// The job.
        job: JobId,
        /// The host of the process elsewhere.
        far: HostNumber,
        /// The cause, in a sentence for people.
        cause: String,
    },
}

/// The reason why a caller is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallRefusal {
    /// It counts among the refused connections, for this reason.
    Counted(&'static str),
    /// The caller is a process of the job, so it does not count: the job has ended here, the word that the caller has left or
    /// returned is under way, or the process called for has as many lanes as it can have.
    Known,
}

impl From<&'static str> for CallRefusal {
    fn from(why: &'static str) -> Self {
        Self::Counted(why)
    }
}

/// A connection that may become a lane, or a tunnel.
#[derive(Debug)]
struct Connected {
    socket: OwnedFd,
    keys: LaneKeys,
    /// The random bytes of the side that was called.
    challenge: [u8; CHALLENGE_BYTES],
    /// The token under which its end is watched, on the side that dialled.
    token: Option<u64>,
}

/// A lane whose process has not said hello.
#[derive(Debug)]
struct Undelivered {
    far: ProcessId,
    lane: u32,
    connected: Connected,
}

/// A lane that waits for a secret of this host and another one.
#[derive(Clone, Copy, Debug)]
struct AwaitedSecret {
    name: LaneName,
    host: HostNumber,
    /// The way on which it is dialled.
    way: usize,
    /// The host that is not connected: that of the far process, or a gateway.
    missing: HostNumber,
}

#[derive(Debug)]
struct DialOfLane {
    dial: Dial,
    name: LaneName,
    host: HostNumber,
}

/// A process of this host that has connected.
#[derive(Debug)]
struct Resident {
    job: JobId,
    socket: ProcessSocket,
    /// The process, once it has said hello.
    process: Option<ProcessId>,
    /// The most lanes that it can have; 0 if there is no limit.
    lanes_max: u32,
}

/// A report that no word has explained yet.
#[derive(Clone, Debug, PartialEq, Eq)]
struct BrokenReport {
    job: JobId,
    own: ProcessId,
    /// The process elsewhere, and its place.
    far: ProcessId,
    place: u32,
    what: String,
    /// When the arbiter is told, for the first time or again.
    due: Duration,
    /// When a connection is tried again.
    again: Duration,
    explained_by: ExplainedBy,
}

/// The lanes of this host.
#[derive(Debug)]
pub(crate) struct Lanes {
    own: HostNumber,
    machine: MachineId,
    is_plain: bool,
    /// T: how long a report waits for a word.
    timeout: Duration,
    /// A connection that has carried nothing for so long is broken.
    silence: Duration,
    undelivered_max: usize,
    machine_of_lanes: Dialling,
    listeners: HashMap<u64, (JobId, OwnedFd)>,
    residents: HashMap<u64, Resident>,
    /// The connection of each process that has said hello.
    tokens: HashMap<ProcessId, u64>,
    dials: HashMap<u64, DialOfLane>,
    connected: HashMap<LaneName, Connected>,
    /// The lanes whose other end may close before they are confirmed.
    offered: HashMap<u64, LaneName>,
    undelivered: BTreeMap<ProcessId, Vec<Undelivered>>,
    awaited: Vec<AwaitedSecret>,
    reports: Vec<BrokenReport>,
    /// The lanes that were asked for before the word on their far processes: the connection, and the place.
    early: BTreeSet<(u64, u32)>,
    names: names::NamesAsked,
    leaving: leavers::Leavers,
    /// The processes for which the relay of an earlier run has laid messages, and which have not said how many came.
    untold: BTreeSet<ProcessId>,
    relays: relays::RelayDials,
    /// The lanes that this host has dialled over gateways, with these.
    passed: BTreeMap<LaneName, Vec<HostNumber>>,
    tunnels: tunnels::HostTunnels,
    /// The hosts to which the last connection could not be opened.
    unconnected: BTreeSet<HostNumber>,
    /// The hosts none of whose addresses was reached, and which reached none of this host, with the time of that.
    unreached: BTreeMap<HostNumber, Duration>,
    events: Vec<LanesEvent>,
}

impl Lanes {
    /// The lanes of a host without jobs, in this run of its daemon.
    pub(crate) fn new(
        (own, machine, run): (HostNumber, MachineId, u32),
        is_plain: bool,
        timing: HostTiming,
        undelivered_max: usize,
    ) -> Self {
        let timeout = timing.timeout();
        Self {
            own,
            machine,
            is_plain,
            timeout,
            silence: timing.silence(),
            undelivered_max,
            machine_of_lanes: Dialling::of_run(timeout, run),
            listeners: HashMap::new(),
            residents: HashMap::new(),
            tokens: HashMap::new(),
            dials: HashMap::new(),
            connected: HashMap::new(),
            offered: HashMap::new(),
            undelivered: BTreeMap::new(),
            awaited: Vec::new(),
            reports: Vec::new(),
            early: BTreeSet::new(),
            names: names::NamesAsked::default(),
            leaving: leavers::Leavers::default(),
            untold: BTreeSet::new(),
            relays: relays::RelayDials::of_run(run),
            passed: BTreeMap::new(),
            tunnels: tunnels::HostTunnels::new(own, timing.silence()),
            unconnected: BTreeSet::new(),
            unreached: BTreeMap::new(),
            events: Vec::new(),
        }
    }

    /// The lanes of another run of the daemon, which knows nothing.
    #[cfg(test)]
    pub(crate) fn of_run(&self, run: u32) -> Self {
        let timing = HostTiming::new(self.timeout);
        Self::new((self.own, self.machine, run), self.is_plain, timing, self.undelivered_max)
    }

    /// Takes the events since the last call.
    pub(crate) fn take_events(&mut self) -> Vec<LanesEvent> {
        std::mem::take(&mut self.events)
    }

    /// Adds a host of the host table, or says anew how many ways lead to it.
    pub(crate) fn add_host(&mut self, host: HostNumber, ways: usize) {
        if host != self.own {
            self.machine_of_lanes.set_host(host, HostReach::Both, ways);
        }
    }

    /// Takes a caller whose preamble announces a lane or a tunnel.
    ///
    /// # Errors
    /// [`CallRefusal`].
    pub(crate) fn called(
        &mut self,
        tools: &mut LaneTools,
        caller: Caller,
    ) -> Result<(), CallRefusal> {
        let secret = self.verified(tools, &caller)?;
        let (preamble, host) = (&caller.preamble, caller.preamble.from);
        let (own, far, lane) = (preamble.wanted, preamble.own, preamble.lane);
        if self.undelivered_count() >= self.undelivered_max {
            return Err("too many lanes wait for their processes".into());
        }
        if self.has_all_lanes(tools.parts, own, far) {
            return Err(CallRefusal::Known);
        }
        let cipher = self.cipher(tools.trunks, host);
        let keys = lane_keys(&secret, &caller.challenge, preamble, cipher, LaneEnd::Acceptor);
        let _ = tools.reactor.unwatch(&caller.socket);
        let (socket, challenge) = (caller.socket, caller.challenge);
        let connected = Connected { socket, keys, challenge, token: None };
        self.connected.insert((own, far, lane), connected);
        let outputs = self.machine_of_lanes.arrived(own, far, host, lane);
        self.perform(tools, outputs, None);
        Ok(())
    }

    /// Checks the preamble of a caller that is a process or a daemon elsewhere; returns the secret of the two hosts.
    ///
    /// # Errors
    /// [`CallRefusal`].
    fn verified(&self, tools: &LaneTools, caller: &Caller) -> Result<[u8; 32], CallRefusal> {
        let secret = self.secret_of(tools.trunks, caller)?;
        match caller.preamble.purpose {
            Purpose::Tunnel => self.check_tunnel(&caller.preamble)?,
            _ => self.check_processes(tools, &caller.preamble)?,
        }
        Ok(secret)
    }

    /// Checks that both processes of a preamble are those of a job.
    ///
    /// # Errors
    /// [`CallRefusal`].
    fn check_processes(&self, tools: &LaneTools, preamble: &Preamble) -> Result<(), CallRefusal> {
        let host = preamble.from;
        let part = tools.parts.get(preamble.job).ok_or(CallRefusal::Known)?;
        let place = part.place(preamble.own).ok_or_else(|| match part.has_slot(preamble.own) {
            true => CallRefusal::Known,
            false => "its process is none of the job".into(),
        })?;
        if preamble.wanted.segment != part.segment_id() || part.host_of(place) != host {
            return Err("its process is none of the job".into());
        }
        if preamble.is_plain != self.is_plain {
            return Err("its frames are protected in another way than here".into());
        }
        Ok(())
    }

    /// Checks that a caller comes from the host that its preamble names; returns the secret of the two hosts.
    ///
    /// # Errors
    /// The reason why it does not.
    pub(crate) fn secret_of(
        &self,
        trunks: &Trunks,
        caller: &Caller,
    ) -> Result<[u8; 32], &'static str> {
        let secret = self.secret_for(trunks, &caller.preamble)?;
        match verify(&secret, &caller.challenge, &caller.bytes) {
            true => Ok(secret),
            false => Err("its code is wrong"),
        }
    }

    /// The secret of the two hosts under which the code of a preamble is made.
    ///
    /// # Errors
    /// The reason why there is none.
    fn secret_for(&self, trunks: &Trunks, preamble: &Preamble) -> Result<[u8; 32], &'static str> {
        if preamble.machine != self.machine || preamble.to != self.own {
            return Err("it is meant for another machine or host");
        }
        let secret = trunks.secret(preamble.from, preamble.key_generation);
        secret.copied().ok_or("its code is made under a secret that this host does not have")
    }

    /// A message of another daemon has come.
    pub(crate) fn heard(&mut self, tools: &mut LaneTools, from: HostNumber, message: DialMessage) {
        let outputs = self.machine_of_lanes.heard(from, message);
        self.perform(tools, outputs, None);
    }

    /// The trunk to a host is new: its secret can be used.
    pub(crate) fn host_up(&mut self, tools: &mut LaneTools, host: HostNumber) {
        for AwaitedSecret { name: (own, far, lane), host, way: address, .. } in self.awaiting(host)
        {
            self.perform(tools, vec![DialOutput::Dial { own, far, host, lane, address }], None);
        }
        let outputs = self.machine_of_lanes.trunk_renewed(host);
        self.perform(tools, outputs, None);
        self.relay_host_up(tools, host);
    }

    /// Takes the lanes that wait for the secret of this host and another one.
    fn awaiting(&mut self, missing: HostNumber) -> Vec<AwaitedSecret> {
        self.awaited.extract_if(.., |waiting| waiting.missing == missing).collect()
    }

    /// The daemon of a host has started again, as this run. It knows only those lanes that its processes tell it, and what was
    /// said to the one before may be lost.
    pub(crate) fn host_restarted(&mut self, tools: &mut LaneTools, host: HostNumber, run: u32) {
        self.unreached.remove(&host);
        self.machine_of_lanes.restarted(host, run);
        let outputs = self.machine_of_lanes.trunk_renewed(host);
        self.perform(tools, outputs, None);
    }

    /// No trunk to a host could be opened.
    pub(crate) fn host_down(&mut self, tools: &mut LaneTools, host: HostNumber) {
        self.unconnected.insert(host);
        for AwaitedSecret { name: (own, far, lane), host: to, .. } in self.awaiting(host) {
            let outputs = self.machine_of_lanes.dial_failed(own, far, lane);
            // All ways need the secret of the far process's host; those over other gateways do not need this one.
            self.perform(tools, outputs, (to == host).then_some(host));
        }
        self.relay_host_down(tools, host);
    }

    /// A host is lost.
    pub(crate) fn host_lost(&mut self, tools: &mut LaneTools, host: HostNumber) {
        self.awaited.retain(|waiting| ![waiting.host, waiting.missing].contains(&host));
        let outputs = self.machine_of_lanes.host_lost(host);
        self.perform(tools, outputs, None);
        self.leave_gateway(tools, host);
        self.relay_host_down(tools, host);
        self.tunnel_host_lost(tools, host);
    }

    /// Notes over which gateways a lane leads. Those before it of the same processes are over.
    fn note_gateways(&mut self, name: LaneName, hosts: &[HostNumber]) {
        self.passed.retain(|(own, far, _), _| (*own, *far) != (name.0, name.1));
        if let [_, gateways @ .., _] = hosts
            && !gateways.is_empty()
        {
            self.passed.insert(name, gateways.to_vec());
        }
    }

    /// A gateway passes nothing on: lanes over it are dialled anew, on other ways if there are some. The processes give up the
    /// lanes before for them, and resume.
    pub(crate) fn leave_gateway(&mut self, tools: &mut LaneTools, gateway: HostNumber) {
        let over = self.passed.iter().filter(|(_, gateways)| gateways.contains(&gateway));
        for (own, far, lane) in over.map(|(name, _)| *name).collect::<Vec<_>>() {
            self.passed.remove(&(own, far, lane));
            let part = tools.parts.with_segment(own.segment).map(|(_, part)| part);
            let of_process = part.and_then(|part| Some(part.host_of(part.place(far)?)));
            let of_daemon = tunnels::is_daemon(own).then(|| tunnels::host_of(far));
            let Some(host) = of_process.or(of_daemon) else { continue };
            self.machine_of_lanes.broken(own, far, lane);
            let outputs = self.machine_of_lanes.want(own, far, host);
            self.perform(tools, outputs, None);
        }
    }

    /// Forgets a job that is over on all hosts.
    pub(crate) fn job_over(&mut self, job: JobId) {
        self.machine_of_lanes.job_over(job);
    }

    /// A process of a job has ended, here or elsewhere.
    pub(crate) fn process_ended(&mut self, tools: &mut LaneTools, job: JobId, process: ProcessId) {
        self.undelivered.remove(&process);
        self.passed.retain(|(own, far, _), _| ![*own, *far].contains(&process));
        self.awaited.retain(|waiting| waiting.name.0 != process && waiting.name.1 != process);
        let its = self.offered.values().filter(|name| name.1 == process).copied();
        for name in its.collect::<Vec<_>>() {
            self.confirm_used(tools, name);
        }
        let outputs = self.machine_of_lanes.process_ended(job, process);
        self.perform(tools, outputs, None);
    }

    /// Whether this host holds: opens no lanes.
    pub(crate) fn hold(&mut self, tools: &mut LaneTools, holds: bool) {
        let outputs = self.machine_of_lanes.hold(holds);
        self.perform(tools, outputs, None);
    }

    /// Whether a token is one of the lanes'.
    pub(crate) fn has(&self, token: u64) -> bool {
        self.dials.contains_key(&token)
            || self.relays.has(token)
            || self.tunnels.has(token)
            || self.offered.contains_key(&token)
            || self.listeners.contains_key(&token)
            || self.residents.contains_key(&token)
    }

    /// Goes on with a descriptor that is ready.
    pub(crate) fn ready(&mut self, tools: &mut LaneTools, token: u64, flags: EventFlags) {
        if self.listeners.contains_key(&token) {
            self.accept(tools, token);
        } else if self.residents.contains_key(&token) {
            self.resident_ready(tools, token, flags);
        } else if self.dials.contains_key(&token) {
            self.dialled(tools, token);
        } else if self.relays.has(token) {
            self.relay_ready(tools, token);
        } else if self.tunnels.has(token) {
            self.tunnels_ready(tools);
        } else if let Some(&name) = self.offered.get(&token)
            && !self.confirm_used(tools, name)
        {
            // The other side has closed the connection before it confirmed the lane.
            self.offered.remove(&token);
            self.connected.remove(&name);
            let (own, far, lane) = name;
            let outputs = self.machine_of_lanes.dial_failed(own, far, lane);
            self.perform(tools, outputs, None);
        }
    }

    /// Confirms an offered lane on which the far process has sent something: its end, or the word of it, may come before
    /// the other daemon's confirmation. A daemon that refuses a lane sends nothing.
    fn confirm_used(&mut self, tools: &mut LaneTools, name: LaneName) -> bool {
        let is_used = self.connected.get(&name).is_some_and(|one| {
            let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
            matches!(recv(&one.socket, &mut [0u8; 1][..], flags), Ok((1.., _)))
        });
        if is_used {
            let (own, far, lane) = name;
            let outputs = self.machine_of_lanes.accepted(own, far, lane);
            self.perform(tools, outputs, None);
        }
        is_used
    }

    /// Does what is due.
    pub(crate) fn tick(&mut self, tools: &mut LaneTools) {
        let now = tools.now;
        let late = self.dials.iter().filter(|(_, one)| now >= one.dial.deadline());
        for token in late.map(|(token, _)| *token).collect::<Vec<_>>() {
            self.dial_failed(tools, token);
        }
        self.look_at_relays(tools);
        self.look_at_streams(tools);
        let outputs = self.machine_of_lanes.look(now);
        self.perform(tools, outputs, None);
        self.judge_reports(tools);
        self.look_at_leavers(tools);
    }

    /// When [`Lanes::tick`] is due.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        let dials = self.dials.values().map(|one| one.dial.deadline());
        let relays = self.relays.deadline().into_iter().chain(self.tunnels.deadline());
        let reports = self.reports.iter().map(|one| match one.explained_by {
            ExplainedBy::Word => one.due,
            ExplainedBy::Lane | ExplainedBy::Relay => one.due.min(one.again),
        });
        let others = self.machine_of_lanes.next_look().into_iter().chain(self.leaving.due());
        dials.chain(relays).chain(reports).chain(others).min()
    }

    fn cipher(&self, trunks: &Trunks, host: HostNumber) -> Cipher {
        if self.is_plain { Cipher::Plain } else { trunks.cipher(host) }
    }

    /// Carries out what the machine of lanes decides. Dials to `unreached` fail at once.
    fn perform(
        &mut self,
        tools: &mut LaneTools,
        outputs: Vec<DialOutput>,
        unreached: Option<HostNumber>,
    ) {
        let mut queue = std::collections::VecDeque::from(outputs);
        while let Some(output) = queue.pop_front() {
            match output {
                DialOutput::Dial { own, far, host, lane, .. }
                    if unreached == Some(host) || self.has_all_lanes(tools.parts, own, far) =>
                {
                    queue.extend(self.machine_of_lanes.dial_failed(own, far, lane));
                }
                DialOutput::Dial { own, far, host, lane, address } => {
                    queue.extend(self.dial(tools, (own, far, lane), (host, address)));
                }
                DialOutput::Cancel { own, far, lane } | DialOutput::Refuse { own, far, lane } => {
                    self.cancel(tools.reactor, (own, far, lane));
                }
                DialOutput::HandOver { own, far, lane } => self.hand_over(tools, (own, far, lane)),
                DialOutput::Close { far, lane, .. } if tunnels::is_daemon(far) => {
                    self.end_tunnel(tools, (tunnels::host_of(far), lane));
                }
                DialOutput::Close { own, far, lane } => {
                    // A process that has the lane closes it when it gets the next one, whose number is higher.
                    if let Some(kept) = self.undelivered.get_mut(&own) {
                        kept.retain(|one| one.far != far || one.lane != lane);
                    }
                }
                DialOutput::Send { to, message } => {
                    let content = DaemonMessage::Dial(message).encode();
                    tools.trunks.send(
                        tools.reactor,
                        to,
                        EnvelopeClass::Daemon,
                        &content,
                        tools.now,
                    );
                }
                DialOutput::Unreachable { own, far } => {
                    info!("lanes of {own} to {far}: none can be opened");
                    self.unreachable(tools, own, far);
                }
            }
        }
    }

    /// Begins to dial a lane, once this host has the secrets for that: with the other host, and with the gateways on the way.
    fn dial(
        &mut self,
        tools: &mut LaneTools,
        name: LaneName,
        (host, way): (HostNumber, usize),
    ) -> Vec<DialOutput> {
        let token = tools.reactor.token();
        let begun = match tools.trunks.newest_secret(host) {
            Some(_) => tools.trunks.begin_dial(tools.reactor, token, (host, way), tools.now),
            None => Err(NoWay::Unknown(host)),
        };
        match begun {
            Ok(dial) => drop(self.dials.insert(token, DialOfLane { dial, name, host })),
            Err(NoWay::Unknown(missing)) => {
                self.awaited.push(AwaitedSecret { name, host, way, missing });
                tools.trunks.want(missing, tools.now);
            }
            Err(NoWay::Over | NoWay::Failed(_)) => {
                self.unconnected.insert(host);
                return self.machine_of_lanes.dial_failed(name.0, name.1, name.2);
            }
        }
        Vec::new()
    }

    fn dialled(&mut self, tools: &mut LaneTools, token: u64) {
        let Some(one) = self.dials.get_mut(&token) else { return };
        match one.dial.go_on(tools.reactor, token) {
            Ok(false) => {}
            Ok(true) => {
                let Some(DialOfLane { dial, name, host }) = self.dials.remove(&token) else {
                    return;
                };
                self.unconnected.remove(&host);
                tools.trunks.dial_succeeded_on(&dial);
                self.note_gateways(name, dial.hosts());
                let (own, far, lane) = name;
                let outputs = match self.answer(tools, token, dial, name, host) {
                    Some(connected) => {
                        self.connected.insert(name, connected);
                        self.offered.insert(token, name);
                        self.machine_of_lanes.dialled(own, far, lane, tools.now)
                    }
                    None => self.machine_of_lanes.dial_failed(own, far, lane),
                };
                self.perform(tools, outputs, None);
            }
            Err(_) => self.dial_failed(tools, token),
        }
    }

    /// Answers a challenge with the preamble of a lane.
    fn answer(
        &self,
        tools: &LaneTools,
        token: u64,
        dial: Dial,
        (own, far, lane): LaneName,
        host: HostNumber,
    ) -> Option<Connected> {
        let (purpose, job) = match tunnels::is_daemon(own) {
            true => (Purpose::Tunnel, JobId(0)),
            false => (Purpose::Lane, tools.parts.with_segment(own.segment)?.0),
        };
        let (key_generation, secret) = tools.trunks.newest_secret(host)?;
        let challenged = dial.challenged();
        let preamble = Preamble {
            purpose,
            machine: self.machine,
            job,
            wanted: far,
            own,
            lane,
            key_generation,
            to: host,
            from: self.own,
            is_plain: self.is_plain,
            is_passed: false,
        };
        let cipher = self.cipher(tools.trunks, host);
        let keys = challenged.prove(&preamble, secret, cipher).ok()?;
        // Frames of the other process may come at once. They are its own, so only the end is watched for.
        tools.reactor.rewatch(&challenged.socket, token, EventFlags::RDHUP).ok()?;
        let Challenged { socket, challenge, .. } = challenged;
        Some(Connected { socket, keys, challenge, token: Some(token) })
    }

    fn dial_failed(&mut self, tools: &mut LaneTools, token: u64) {
        if let Some(one) = self.dials.remove(&token) {
            tools.trunks.dial_failed_on(&one.dial, tools.now);
            self.unconnected.insert(one.host);
            let (own, far, lane) = one.name;
            let outputs = self.machine_of_lanes.dial_failed(own, far, lane);
            self.perform(tools, outputs, None);
        }
    }

    fn cancel(&mut self, reactor: &Reactor, name: LaneName) {
        self.dials.retain(|_, one| one.name != name);
        self.awaited.retain(|waiting| waiting.name != name);
        if let Some(connected) = self.connected.remove(&name) {
            self.stop_watching(reactor, &connected);
        }
    }

    fn stop_watching(&mut self, reactor: &Reactor, connected: &Connected) {
        if let Some(token) = connected.token {
            self.offered.remove(&token);
            let _ = reactor.unwatch(&connected.socket);
        }
    }

    fn hand_over(&mut self, tools: &mut LaneTools, name: LaneName) {
        let (own, far, lane) = name;
        let Some(connected) = self.connected.remove(&name) else { return };
        self.stop_watching(tools.reactor, &connected);
        if tunnels::is_daemon(own) {
            return self.begin_tunnel(tools, (tunnels::host_of(far), lane), connected);
        }
        info!("lane {lane} of {own} to {far}: open");
        match self.tokens.get(&own).copied() {
            Some(token) => self.deliver(tools, token, own, Undelivered { far, lane, connected }),
            None => {
                // The process may compute for hours before it looks.
                let kept = self.undelivered.entry(own).or_default();
                kept.retain(|one| one.far != far);
                kept.push(Undelivered { far, lane, connected });
            }
        }
    }

    fn deliver(&mut self, tools: &LaneTools, token: u64, own: ProcessId, lane: Undelivered) {
        let place =
            tools.parts.with_segment(own.segment).and_then(|(_, part)| part.place(lane.far));
        let Some(far) = place else { return };
        self.drop_reports(own, far);
        let Connected { socket, keys, .. } = lane.connected;
        let incarnation = lane.far.incarnation.0;
        let message = Handover::Lane { far, incarnation, lane: lane.lane, keys };
        self.tell(tools.reactor, token, &message, Some(socket));
    }

    fn unreachable(&mut self, tools: &LaneTools, own: ProcessId, far: ProcessId) {
        if tunnels::is_daemon(far) {
            return self.no_tunnel(tools, tunnels::host_of(far));
        }
        let Some((job, part)) = tools.parts.with_segment(own.segment) else { return };
        let Some(place) = part.place(far) else { return };
        // Where a connection was opened, one of the two processes has as many lanes as it can have.
        let host = part.host_of(place);
        if self.unconnected.contains(&host) {
            self.unreached.insert(host, tools.now);
        }
        // A process that has said hello takes the relay, or reports that it cannot.
        if let Some(token) = self.tokens.get(&own).copied() {
            return self.tell(tools.reactor, token, &Handover::Unreachable { far: place }, None);
        }
        let what = processes::NO_ADDRESS.to_owned();
        let (due, again) = self.times_of_report(tools.now);
        let explained_by = ExplainedBy::Lane;
        self.report(BrokenReport { job, own, far, place, what, due, again, explained_by });
    }

    /// Whether a process of this host can have no lane to a further one. Until it says how many it can have, that is what its
    /// job's settings say, or what this daemon could have.
    fn has_all_lanes(&self, parts: &Parts, own: ProcessId, far: ProcessId) -> bool {
        let said = self.tokens.get(&own).and_then(|token| self.residents.get(token));
        let most = match (said, parts.with_segment(own.segment)) {
            (Some(resident), _) => resident.lanes_max,
            (None, Some((_, part))) => {
                lanes_max(Settings::from_words(&part.segment.plan().settings).lanes_max())
            }
            (None, None) => 0,
        };
        most > 0 && self.machine_of_lanes.lanes_besides(own, far) >= most as usize
    }

    fn undelivered_count(&self) -> usize {
        let kept: usize = self.undelivered.values().map(Vec::len).sum();
        let waiting: usize = self.residents.values().map(|one| one.socket.waiting_sockets()).sum();
        kept + waiting + self.connected.len()
    }
}
