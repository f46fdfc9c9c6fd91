//! The processes of this host that need lanes: their sockets, questions and reports.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use landeck_host::report::size;
use landeck_memory::process_names::process_in_words;
use landeck_memory::{Presence, SlotState};
use landeck_transports::lanes::silence::may_be_of_long_packets;
use landeck_wire::handover::{Handover, LaneSilence, RELAY_LANE};
use landeck_wire::word::{LaterProcess, ProcessEnd};
use landeck_wire::{HostNumber, Incarnation, JobId, ProcessId, SegmentId, Slot};
use rustix::event::epoll::EventFlags;
use tracing::info;

use super::relays::goes_over_tunnels;
use super::{BrokenReport, LaneTools, Lanes, LanesEvent, Resident};

use crate::calls::dial::DIAL_TIME;
use crate::parts::PartOfHost;
use crate::process_socket::{FromProcess, ProcessSocket, listen_for};
use crate::reactor::Reactor;

/// The system error with which a process reports that no way leads to another one, and what it means.
const UNREACHABLE: i32 = rustix::io::Errno::HOSTUNREACH.raw_os_error();
/// The time added where a connection got no answer: an address that is no more takes one dial, and the next one another.
const NO_ANSWER_TIME: Duration = Duration::from_millis(2 * DIAL_TIME.as_millis() as u64);
/// The system error of a connection whose other end gives no answer.
const TIMED_OUT: i32 = rustix::io::Errno::TIMEDOUT.raw_os_error();
/// The system error with which a process reports that the other one sends what no process sends.
const BROKEN_PEER: i32 = rustix::io::Errno::PROTO.raw_os_error();
pub(super) const NO_ADDRESS: &str = "no address of either host leads to the other one. They need a common network, or a \
     firewall must let their ports through, for TCP and UDP: --port-range names ports";
/// How often, within T, a lane is tried again that broke and could not be opened at once, and a report is told again that
/// has not ended its job.
const TRIES: u32 = 8;
/// The things that explain a report, besides a word: with one of them the job goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExplainedBy {
    /// Nothing.
    Word,
    /// Another lane of the pair.
    Lane,
    /// Another connection to the relay of the far process's host.
    Relay,
}

/// The connections that are accepted in one turn of the loop.
const ACCEPTS_PER_TURN: usize = 64;

impl Lanes {
    /// Listens for the processes of a part.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn add_part(
        &mut self,
        reactor: &mut Reactor,
        job: JobId,
        part: &PartOfHost,
    ) -> io::Result<()> {
        self.listen(reactor, job, listen_for(part.segment_id())?)
    }

    /// Goes on with the processes of a part that an earlier run of this daemon had. They connect again where that has
    /// listened, and say which lanes they have.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn resume_part(
        &mut self,
        reactor: &mut Reactor,
        job: JobId,
        part: &PartOfHost,
        listener: OwnedFd,
    ) -> io::Result<()> {
        // Their words will not come again.
        for process in part.gone_processes() {
            self.machine_of_lanes.process_ended(job, process);
        }
        self.leaving.resume(job, part);
        self.untold.extend(part.relay_receivers());
        self.listen(reactor, job, listener)
    }

    /// The processes of a segment that have not said how many messages the relay of an earlier run has laid for them.
    pub(crate) fn untold(&self, segment: SegmentId) -> Vec<ProcessId> {
        self.untold.iter().copied().filter(|process| process.segment == segment).collect()
    }

    /// The listening socket for the processes of a part.
    pub(crate) fn listener_of(&self, job: JobId) -> Option<BorrowedFd<'_>> {
        let mut listeners = self.listeners.values();
        listeners.find(|(of, _)| *of == job).map(|(_, listener)| listener.as_fd())
    }

    fn listen(&mut self, reactor: &mut Reactor, job: JobId, listener: OwnedFd) -> io::Result<()> {
        let token = reactor.token();
        reactor.watch(&listener, token, EventFlags::IN)?;
        self.listeners.insert(token, (job, listener));
        Ok(())
    }

    /// Forgets the processes of a part that is over. The ends of guests that have no word yet are told: nobody else does.
    pub(crate) fn remove_part(&mut self, job: JobId, part: &PartOfHost) {
        let segment = part.segment_id();
        let residents = self.residents.values().filter(|one| one.job == job);
        let connected: Vec<ProcessId> = residents.filter_map(|one| one.process).collect();
        connected.into_iter().for_each(|process| self.leaving.add(job, process, false));
        self.events.extend(self.leaving.ends_of_guests(job, part));
        self.listeners.retain(|_, (of, _)| *of != job);
        self.residents.retain(|_, one| one.job != job);
        self.tokens.retain(|process, _| process.segment != segment);
        self.undelivered.retain(|process, _| process.segment != segment);
        self.untold.retain(|process| process.segment != segment);
        self.connected.retain(|(own, _, _), _| own.segment != segment);
        self.offered.retain(|_, (own, _, _)| own.segment != segment);
        self.dials.retain(|_, one| one.name.0.segment != segment);
        self.awaited.retain(|one| one.name.0.segment != segment);
        self.reports.retain(|report| report.job != job);
        self.passed.retain(|(own, _, _), _| own.segment != segment);
        self.leaving.forget(job);
        self.relays.forget(segment);
        self.tunnels.forget(segment);
    }

    pub(super) fn accept(&mut self, tools: &mut LaneTools, token: u64) {
        let Some((job, listener)) = self.listeners.get(&token) else { return };
        let job = *job;
        for _ in 0..ACCEPTS_PER_TURN {
            match ProcessSocket::accept(listener) {
                Ok(None) => {}
                Ok(Some(socket)) => {
                    let token = tools.reactor.token();
                    if tools.reactor.watch(&socket, token, EventFlags::IN).is_ok() {
                        self.residents
                            .insert(token, Resident { job, socket, process: None, lanes_max: 0 });
                    }
                }
                Err(_) => return,
            }
        }
    }

    pub(super) fn resident_ready(&mut self, tools: &mut LaneTools, token: u64, flags: EventFlags) {
        let Some(one) = self.residents.get_mut(&token) else { return };
        let mut messages = Vec::new();
        let is_well = match flags.contains(EventFlags::OUT) {
            true => one.socket.flush(tools.reactor, token),
            false => Ok(()),
        };
        let is_well = is_well.and_then(|()| one.socket.read(&mut messages));
        for message in messages {
            let taken = match message {
                FromProcess::Handover(message) => self.asked(tools, token, &message),
                FromProcess::Name(question) => self.name_asked(tools, token, question),
            };
            if taken.is_err() {
                return self.leave(token);
            }
        }
        if is_well.is_err() {
            self.leave(token);
        }
    }

    /// The welcome of a process.
    pub(super) fn welcome(&self) -> Handover {
        Handover::Welcome {
            silence_ms: u32::try_from(self.silence.as_millis()).unwrap_or(u32::MAX),
        }
    }

    /// Sends a message to a process, which has gone if that is not possible.
    pub(super) fn tell(
        &mut self,
        reactor: &Reactor,
        token: u64,
        message: &Handover,
        socket: Option<OwnedFd>,
    ) {
        let told = self
            .residents
            .get_mut(&token)
            .map(|one| one.socket.send(reactor, token, message, socket));
        if told == Some(Err(())) {
            self.leave(token);
        }
    }

    pub(super) fn leave(&mut self, token: u64) {
        self.early.retain(|(early, _)| *early != token);
        if let Some(gone) = self.residents.remove(&token)
            && let Some(process) = gone.process
            && self.tokens.get(&process) == Some(&token)
        {
            self.tokens.remove(&process);
            // It may have ended before its goodbye was read.
            let mut rest = Vec::new();
            let _ = gone.socket.read(&mut rest);
            let is_goodbye = |it: &FromProcess| matches!(it, FromProcess::Handover(Handover::Left));
            self.leaving.add(gone.job, process, rest.iter().any(is_goodbye));
        }
    }

    /// Takes a message of a process. `Err` if no process sends such a one.
    fn asked(&mut self, tools: &mut LaneTools, token: u64, message: &Handover) -> Result<(), ()> {
        let Some(one) = self.residents.get_mut(&token) else { return Ok(()) };
        let (job, process) = (one.job, one.process);
        let part = tools.parts.get(job).ok_or(())?;
        match (message, process) {
            (Handover::Hello { slot, incarnation, lanes_max }, None) => {
                let is_right = *slot < part.segment.plan().slots()
                    && part.segment.incarnation(*slot) == *incarnation;
                if !is_right {
                    return Err(());
                }
                let (slot, incarnation) = (Slot(*slot), Incarnation(*incarnation));
                let process = ProcessId { segment: part.segment_id(), slot, incarnation };
                one.process = Some(process);
                one.lanes_max = *lanes_max;
                self.tokens.insert(process, token);
                self.leaving.connected(process);
                for lane in self.undelivered.remove(&process).unwrap_or_default() {
                    self.deliver(tools, token, process, lane);
                }
                self.tell(tools.reactor, token, &self.welcome(), None);
                if self.untold.contains(&process) {
                    self.tell(tools.reactor, token, &Handover::RelayRestarted, None);
                }
                self.note_return(tools, job, process);
            }
            (Handover::Has { far, incarnation, lane }, Some(own)) => {
                return self.lane_told(tools, (job, own), (*far, *incarnation, *lane));
            }
            (Handover::Want { far }, Some(own)) => {
                let process = *part.far.get(*far as usize).ok_or(())?;
                if part.segment.far_record(*far).state == SlotState::Free {
                    // Another process has named it, and the word that it takes part is under way.
                    self.early.insert((token, *far));
                } else if !part.is_over(*far) {
                    let host = part.host_of(*far);
                    if self.has_all_lanes(tools.parts, own, process) {
                        self.tell(tools.reactor, token, &Handover::Unreachable { far: *far }, None);
                        return Ok(());
                    }
                    let outputs = self.machine_of_lanes.want(own, process, host);
                    self.perform(tools, outputs, None);
                }
            }
            (Handover::Granted { far, incarnation, position }, Some(receiver)) => {
                let source = *part.far.get(*far as usize).ok_or(())?;
                let position = *position;
                // It may have returned since.
                if source.incarnation.0 == *incarnation {
                    self.events.push(LanesEvent::Granted { receiver, source, position });
                }
            }
            (Handover::RelayRestarted, Some(process)) if self.untold.remove(&process) => {
                self.events.push(LanesEvent::RelayTold { process });
            }
            (Handover::Room, Some(process)) => self.events.push(LanesEvent::HasRoom { process }),
            (Handover::Broken { far, incarnation, lane, errno }, Some(own)) => {
                let there = part.far.get(*far as usize).ok_or(())?;
                // It may have returned since.
                if there.incarnation.0 == *incarnation {
                    return self.lane_broken(tools, (job, own), (*far, *lane, *errno));
                }
            }
            (Handover::Silent { far, lane, silence }, Some(own)) => {
                return self.lane_silent(tools, (job, own), (*far, *lane), silence);
            }
            (Handover::Relay { host }, Some(own)) => {
                return self.relay_wanted(tools, (token, own), *host);
            }
            (Handover::Left, Some(process)) => self.leaving.add(job, process, true),
            (Handover::Numbers, Some(_)) => self.events.push(LanesEvent::NumbersWanted),
            _ => return Err(()),
        }
        Ok(())
    }

    /// Takes a process's word that an earlier run of this daemon has handed over a lane to it. `Err` if there is no such lane.
    fn lane_told(
        &mut self,
        tools: &mut LaneTools,
        (job, own): (JobId, ProcessId),
        (far, incarnation, lane): (u32, u32, u32),
    ) -> Result<(), ()> {
        let part = tools.parts.get(job).ok_or(())?;
        let there = *part.far.get(far as usize).ok_or(())?;
        if matches!(lane, 0 | RELAY_LANE) || there.incarnation.0 < incarnation {
            return Err(());
        }
        // It may have returned since.
        if there.incarnation.0 == incarnation {
            let outputs = self.machine_of_lanes.has(own, there, part.host_of(far), lane);
            self.perform(tools, outputs, None);
        }
        Ok(())
    }

    /// A process of another host takes part: lanes to it may have been asked for.
    pub(crate) fn process_came(&mut self, tools: &mut LaneTools, process: ProcessId) {
        let place = |token: u64| {
            let job = self.residents.get(&token)?.job;
            tools.parts.get(job)?.place(process)
        };
        let its = self.early.iter().filter(|(token, far)| place(*token) == Some(*far));
        for (token, far) in its.copied().collect::<Vec<_>>() {
            self.early.remove(&(token, far));
            // Its table has the place.
            let _ = self.asked(tools, token, &Handover::Want { far });
        }
    }

    /// Asks for the word that a process takes part, if the job did not begin with it, or that it has returned, behind the
    /// word that it was away.
    fn note_return(&mut self, tools: &mut LaneTools, job: JobId, process: ProcessId) {
        let Some(part) = tools.parts.get(job) else { return };
        let record = part.segment.slot_record(process.slot.0);
        let has_returned = record.returns > 0;
        if !has_returned && process.slot.0 >= part.segment.plan().processes {
            let kind = match part.segment.presence(process.slot.0) {
                Presence::Helping => LaterProcess::Helper,
                _ if record.replaces.is_none() => LaterProcess::Guest,
                _ => LaterProcess::Started,
            };
            self.events.push(LanesEvent::Came { job, process, kind });
        }
        let Some(before) = process.before().filter(|_| has_returned) else { return };
        if let Some(token) = self.tokens.get(&before).copied() {
            // Its goodbye may not have been read.
            self.resident_ready(tools, token, EventFlags::IN);
        }
        self.leaving.drop(before);
        // An earlier run may not have heard that it was away. The arbiter gives each word once.
        self.events.push(LanesEvent::Ended { job, process: before, end: ProcessEnd::Away });
        self.events.push(LanesEvent::Returned { job, process });
    }

    /// Takes a process's report that a lane, or its connection to a relay, has ended. `Err` if no process reports so.
    fn lane_broken(
        &mut self,
        tools: &LaneTools,
        who: (JobId, ProcessId),
        (far, lane, errno): (u32, u32, i32),
    ) -> Result<(), ()> {
        let what = match errno {
            0 => "the connection ended without a goodbye".to_owned(),
            UNREACHABLE => NO_ADDRESS.to_owned(),
            number => io::Error::from_raw_os_error(number).to_string(),
        };
        let explained_by = match lane {
            _ if errno == BROKEN_PEER => ExplainedBy::Word,
            RELAY_LANE => ExplainedBy::Relay,
            0 if errno != UNREACHABLE => ExplainedBy::Word,
            _ => ExplainedBy::Lane,
        };
        // The system may have noticed a silence first, or the daemon that of a tunnel.
        let is_of_tunnel = explained_by == ExplainedBy::Relay
            && tools.parts.get(who.0).is_some_and(|part| goes_over_tunnels(&part.segment));
        let had_no_answer = errno == TIMED_OUT || is_of_tunnel;
        let more = if had_no_answer { NO_ANSWER_TIME } else { Duration::ZERO };
        self.broken(tools, who, (far, lane), what, (explained_by, more))
    }

    /// Takes a process's report that a lane, or a connection to a relay, has carried nothing. `Err` if no process reports so.
    fn lane_silent(
        &mut self,
        tools: &mut LaneTools,
        (job, own): (JobId, ProcessId),
        (far, lane): (u32, u32),
        silence: &LaneSilence,
    ) -> Result<(), ()> {
        let part = tools.parts.get(job).ok_or(())?;
        part.far.get(far as usize).ok_or(())?;
        if may_be_of_long_packets(silence) {
            tools.trunks.narrow(part.host_of(far));
        }
        let (explained_by, more) = match lane {
            _ if silence.is_hopeless => (ExplainedBy::Word, Duration::ZERO),
            RELAY_LANE => (ExplainedBy::Relay, NO_ANSWER_TIME),
            _ => (ExplainedBy::Lane, NO_ANSWER_TIME),
        };
        self.broken(tools, (job, own), (far, lane), silence_in_words(silence), (explained_by, more))
    }

    /// Takes a process's report that a lane, or its connection to a relay, is broken, which something may explain for so much
    /// longer than T. `Err` if no process reports so.
    fn broken(
        &mut self,
        tools: &LaneTools,
        (job, own): (JobId, ProcessId),
        (place, lane): (u32, u32),
        what: String,
        (explained_by, more): (ExplainedBy, Duration),
    ) -> Result<(), ()> {
        let part = tools.parts.get(job).ok_or(())?;
        let far = *part.far.get(place as usize).ok_or(())?;
        let is_relay = lane == RELAY_LANE;
        let kind = if is_relay { "relay" } else { "lane" };
        info!("{kind} {lane} of {own} to {far}: broken: {what}");
        if !is_relay {
            self.machine_of_lanes.broken(own, far, lane);
        }
        // Another lane may be there already: the other process was the first to notice.
        let has_next = lane > 0
            && !is_relay
            && explained_by != ExplainedBy::Word
            && self.machine_of_lanes.open_lane(own, far).is_some();
        if !has_next {
            let (due, again) = self.times_of_report(tools.now);
            let due = due + more;
            self.report(BrokenReport { job, own, far, place, what, due, again, explained_by });
        }
        Ok(())
    }

    /// When a report is told to the arbiter, and when a lane is tried again for it.
    pub(super) fn times_of_report(&self, now: Duration) -> (Duration, Duration) {
        (now + self.timeout, now + self.timeout / TRIES)
    }

    pub(super) fn report(&mut self, report: BrokenReport) {
        let name = |one: &BrokenReport| (one.own, one.far, one.explained_by);
        if !self.reports.iter().any(|known| name(known) == name(&report)) {
            self.reports.push(report);
        }
    }

    /// A process has another lane: the break of the one before needs no explanation.
    pub(super) fn drop_reports(&mut self, own: ProcessId, place: u32) {
        let name = (own, place, ExplainedBy::Lane);
        self.reports.retain(|one| (one.own, one.place, one.explained_by) != name);
    }

    /// A process has another connection to the relay of a host.
    pub(super) fn drop_relay_reports(
        &mut self,
        tools: &LaneTools,
        own: ProcessId,
        host: HostNumber,
    ) {
        self.reports.retain(|one| !one.is_of_relay(tools, own, host));
    }

    /// Where no connection could be opened for one that broke, tries it again.
    fn try_again(&mut self, tools: &mut LaneTools) {
        let now = tools.now;
        let mut wanted = Vec::new();
        let by_word = ExplainedBy::Word;
        let is_due = |it: &&mut BrokenReport| it.explained_by != by_word && now >= it.again;
        for report in self.reports.iter_mut().filter(is_due) {
            report.again = now + self.timeout / TRIES;
            let Some(part) = tools.parts.get(report.job) else { continue };
            let far = part.far.get(report.place as usize).copied();
            if let Some(far) = far.filter(|_| !part.is_over(report.place)) {
                wanted.push((report.own, far, part.host_of(report.place), report.explained_by));
            }
        }
        for (own, far, host, explained_by) in wanted {
            if explained_by == ExplainedBy::Relay {
                self.try_relay(tools, own, host);
                continue;
            }
            let outputs = self.machine_of_lanes.want(own, far, host);
            self.perform(tools, outputs, None);
        }
    }

    /// A report that a word has explained is dropped. One that none has explained in time is told to the arbiter, again and
    /// again, since the arbiter ends no job by it while it doubts that the other host lives.
    pub(super) fn judge_reports(&mut self, tools: &mut LaneTools) {
        let now = tools.now;
        self.try_again(tools);
        let mut reports = std::mem::take(&mut self.reports);
        reports.retain_mut(|report| {
            let Some(part) = tools.parts.get(report.job) else { return false };
            let slot = report.own.slot.0;
            let own_is_over = part.segment.incarnation(slot) != report.own.incarnation.0
                || part.segment.slot_record(slot).state.is_gone();
            let is_other = part.far.get(report.place as usize) != Some(&report.far);
            if own_is_over || is_other || part.is_ending() || part.is_over(report.place) {
                return false;
            }
            if now >= report.due {
                report.due = now + self.timeout / TRIES;
                let (far, cause) = (part.host_of(report.place), cause(part, report, self.own));
                self.events.push(LanesEvent::PairBroken { job: report.job, far, cause });
            }
            true
        });
        self.reports = reports;
    }
}

impl BrokenReport {
    /// Whether another connection of a process to the relay of a host explains it.
    fn is_of_relay(&self, tools: &LaneTools, own: ProcessId, host: HostNumber) -> bool {
        let is_there = || {
            let part = tools.parts.get(self.job);
            part.is_some_and(|part| part.host_of(self.place) == host)
        };
        self.explained_by == ExplainedBy::Relay && self.own == own && is_there()
    }
}

/// A silence as the cause of a break.
fn silence_in_words(silence: &LaneSilence) -> String {
    let LaneSilence { silent_ms, unsent_bytes, is_hopeless, .. } = *silence;
    let seconds = f64::from(silent_ms) / 1e3;
    let ones_before = if is_hopeless { ", as the ones before it" } else { "" };
    format!(
        "it has carried nothing for {seconds:.1} s{ones_before}, and {} wait",
        size(unsent_bytes)
    )
}

/// The cause of a job's end in a sentence that names both ends.
fn cause(part: &PartOfHost, report: &BrokenReport, own_host: HostNumber) -> String {
    let segment = &part.segment;
    let rank = |peer: u32| segment.rank_of_peer(peer).map(|rank| rank as usize);
    let (slot, far) = (report.own.slot.0, segment.plan().slots() + report.place);
    let on_own = format!(" on {}", segment.host_in_words(own_host.0));
    format!(
        "the connection of {} to {} failed while both processes and hosts live: {}",
        process_in_words(rank(slot), slot, &on_own, segment.slot_record(slot)),
        segment.process_in_words(rank(far), far),
        report.what
    )
}
