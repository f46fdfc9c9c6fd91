//! The hosts of simulated groups: looks, words, holders and parties.

use std::collections::BTreeMap;
use std::time::Duration;

use landeck_protocols::hosts::{Lease, LeaseOutput};
use landeck_protocols::order::{
    GroupChange, GroupStanding, GroupWord, Holder, OrderContent, OrderEntry, OrderLevel,
    OrderOutput, OrderParty, RequestShape,
};
use landeck_wire::heartbeat::Heartbeat;
use landeck_wire::{HostIncarnation, HostNumber};

use super::held::{Content, CopyLog, Held, Request};
use super::setting::Step;
use super::{ARBITER, Event, Inbound, Packet, World};
use crate::machines::host_checks::ensure;

/// A driver's look is late by less than this.
const LATENESS: Duration = Duration::from_millis(2);

impl World {
    pub(super) fn start_lease(&mut self, node: usize) {
        if node > 0 {
            let local = self.local(node);
            let current = &self.nodes[node];
            let own = HostIncarnation(current.incarnation);
            let lease = Lease::new(self.timing, own, ARBITER, current.boot, local);
            self.nodes[node].lease = Some(lease);
        }
    }

    pub(super) fn plan_look(&mut self, node: usize) {
        let next = self.local(node) + self.timing.interval();
        let late = self.draw.time(Duration::ZERO, LATENESS);
        let at = self.nodes[node].clock.moment_of(next, self.now) + late;
        self.nodes[node].generation += 1;
        let generation = self.nodes[node].generation;
        self.plan(at, Event::Look { node, generation });
    }

    pub(super) fn look(&mut self, node: usize, drained: bool) {
        if node == 0 {
            self.look_arbiter(drained);
        } else {
            self.look_lease(node, drained);
        }
        if self.runs(node) {
            self.want(node);
            let groups: Vec<u32> = self.nodes[node].held.keys().copied().collect();
            for group in groups {
                self.drive(node, group, |holder, now| holder.look(now, drained));
            }
        }
        if self.nodes[node].is_up {
            self.plan_look(node);
        }
    }

    fn look_lease(&mut self, node: usize, drained: bool) {
        let local = self.local(node);
        let current = &mut self.nodes[node];
        let (incarnation, boot) = (current.incarnation, current.boot);
        let applied = current.applied.unwrap_or(0);
        let Some(lease) = &mut current.lease else { return };
        let outputs = lease.look(local, drained, applied);
        // Heartbeats are sealed with what the welcome brings.
        let is_welcome = current.applied.is_some();
        if !is_welcome {
            self.post(node, 0, Inbound::Hello { host: node, incarnation, boot });
        }
        for output in outputs {
            match output {
                LeaseOutput::Send { .. } if !is_welcome => {}
                LeaseOutput::Send { number, heartbeat } => {
                    let sealed_for = incarnation;
                    self.post(node, 0, Inbound::Beat { host: node, sealed_for, number, heartbeat });
                }
                LeaseOutput::End(end) => {
                    self.note(format!("host {node} ends its part: {end:?}"));
                    self.crash(node, 500);
                }
            }
        }
    }

    pub(super) fn heard_arbiter(
        &mut self,
        node: usize,
        sealed_for: u64,
        number: u64,
        heartbeat: &Heartbeat,
    ) {
        let current = &mut self.nodes[node];
        if current.incarnation == sealed_for
            && let Some(lease) = &mut current.lease
        {
            lease.hear(number, heartbeat);
        }
    }

    pub(super) fn excluded(&mut self, node: usize, incarnation: u64) {
        if let Some(lease) = &mut self.nodes[node].lease {
            lease.excluded(HostIncarnation(incarnation));
        }
    }

    pub(super) fn welcomed(
        &mut self,
        node: usize,
        incarnation: u64,
        (number, standings): (u64, BTreeMap<u32, GroupStanding>),
    ) {
        let current = &mut self.nodes[node];
        if current.incarnation == incarnation && current.applied.is_none() {
            (current.applied, current.standings) = (Some(number), standings);
        }
    }

    pub(super) fn take_words(&mut self, node: usize, words: &[GroupWord]) {
        for word in words {
            let current = &mut self.nodes[node];
            if current.applied.is_none_or(|applied| word.number != applied + 1) {
                continue;
            }
            current.applied = Some(word.number);
            let standing = current.standings.entry(word.group).or_default();
            standing.apply(word);
            if current.held.contains_key(&word.group) {
                self.drive(node, word.group, |holder, now| holder.word(word, now));
            }
            self.begin_holder(node, word);
        }
    }

    /// Begins to hold a group that a word has registered this host for.
    fn begin_holder(&mut self, node: usize, word: &GroupWord) {
        let (GroupChange::Created(id) | GroupChange::Registered(id)) = word.change else { return };
        let local = self.local(node);
        let current = &mut self.nodes[node];
        if id.host != HostNumber(node as u16) {
            return;
        }
        let Some(standing) = current.standings.get(&word.group) else { return };
        let machine = Holder::new(id, standing.clone(), self.timing, local);
        current.held.insert(word.group, Held::new(machine, word.group));
        self.add_party(node, word.group);
        self.drive(node, word.group, |holder, now| holder.look(now, true));
    }

    /// Asks the arbiter for what the host wants: to hold the groups, or to hold one no more.
    fn want(&mut self, node: usize) {
        let current = &self.nodes[node];
        if current.applied.is_none() {
            return;
        }
        let (host, incarnation, wants) = (node, current.incarnation, current.wants);
        let number = HostNumber(node as u16);
        for group in 1..=self.setting.groups as u32 {
            let current = &self.nodes[node];
            let standing = current.standings.get(&group);
            let is_lost = standing.is_some_and(|it| it.is_lost);
            let is_other = self.setting.only.is_some_and(|(of, it)| of == node && it != group);
            let wants = wants && !is_other;
            // Groups are numbered by their first words, so the first one comes first.
            let may_begin = group == 1 || current.standings.contains_key(&(group - 1));
            let registered = standing.and_then(|it| it.holder_on(number));
            let leaving = current.leaving.get(&group).copied();
            if let Some(holder) = leaving.filter(|holder| registered == Some(*holder)) {
                self.post(node, 0, Inbound::NoProcess { host, incarnation, holder, group });
            } else if wants && registered.is_none() && !is_lost && may_begin {
                self.post(node, 0, Inbound::Register { host, incarnation, group });
            }
        }
    }

    pub(super) fn take_packet(&mut self, node: usize, group: u32, packet: Packet) {
        let Packet { from, to, message, entries, log } = packet;
        let is_it = |held: &Held| held.machine.id() == to;
        if !self.nodes[node].held.get(&group).is_some_and(is_it) {
            return;
        }
        self.drive_with(node, group, log, |holder, now| {
            holder.receive(from, message, &entries, now)
        });
    }

    pub(super) fn drive(
        &mut self,
        node: usize,
        group: u32,
        act: impl FnOnce(&mut Holder, Duration) -> Vec<OrderOutput>,
    ) {
        self.drive_with(node, group, None, act);
    }

    /// Drives a holder, and carries out what it says.
    fn drive_with(
        &mut self,
        node: usize,
        group: u32,
        log: Option<CopyLog>,
        act: impl FnOnce(&mut Holder, Duration) -> Vec<OrderOutput>,
    ) {
        let local = self.local(node);
        let current = &mut self.nodes[node];
        let valid_until = match &current.lease {
            Some(lease) => lease.valid_until().filter(|_| lease.end().is_none()),
            None => Some(Duration::MAX),
        };
        let Some(held) = current.held.get_mut(&group) else { return };
        held.machine.renewed(valid_until.unwrap_or(Duration::ZERO));
        let before = (held.machine.stable(), held.machine.length());
        let outputs = act(&mut held.machine, local);
        let is_moved = before != (held.machine.stable(), held.machine.length());
        let mut log = log;
        for output in outputs {
            let step = step_of(&output);
            let stop = step.and_then(|step| self.stop_at(step, node));
            if stop.is_some_and(|stop| stop.is_before) {
                return self.stop(node, stop.map_or(0, |stop| stop.back_ms));
            }
            self.carry_out(node, group, output, &mut log);
            if let Some(stop) = stop {
                return self.stop(node, stop.back_ms);
            }
        }
        if is_moved {
            self.check_stable(node, group);
        }
    }

    fn carry_out(
        &mut self,
        node: usize,
        group: u32,
        output: OrderOutput,
        log: &mut Option<CopyLog>,
    ) {
        let Some(held) = self.nodes[node].held.get_mut(&group) else { return };
        match output {
            OrderOutput::Send { to, message } => {
                let entries = match &message.content {
                    OrderContent::Feed { from, count, .. } => {
                        let (from, count) = (*from as usize, *count as usize);
                        held.log.entries.get(from..from + count).unwrap_or_default().to_vec()
                    }
                    _ => Vec::new(),
                };
                let log = match &message.content {
                    OrderContent::Begin { .. } => Some(held.log.clone()),
                    _ => None,
                };
                let from = held.machine.id();
                let packet = Box::new(Packet { from, to, message, entries, log });
                self.post(node, usize::from(to.host.0), Inbound::Order(group, packet));
            }
            OrderOutput::Stored { position, entry } => {
                let (is_next, is_home) = (position == held.log.len(), held.machine.is_open());
                held.log.push(entry.clone());
                let check = ensure(is_next, "entries are stored in order", || {
                    format!("host {node} stores {entry:?} at {position}")
                });
                self.check(check);
                if is_home {
                    self.check_accepted(node);
                }
                if let OrderEntry::View { epoch, .. } = entry {
                    self.check_view(node, (group, epoch), position);
                }
            }
            OrderOutput::Begun { at } => {
                let log = log.take().unwrap_or_default();
                let is_whole = log.len() == at;
                held.begin(log, &self.requests);
                let check = ensure(is_whole, "a state has everything before it", || {
                    format!("host {node} begins at {at}")
                });
                self.check(check);
            }
            OrderOutput::Deliver { from, to } => self.deliver(node, group, from..to),
            OrderOutput::Answer(answer) => {
                let key = (group, answer.party, answer.number);
                let before = self
                    .requests
                    .get_mut(&key)
                    .map(|it| std::mem::replace(&mut it.is_answered, true));
                self.checks.answers += 1;
                let check = ensure(before == Some(false), "a request is answered once", || {
                    format!("{key:?} has two answers")
                });
                self.check(check);
            }
            OrderOutput::Report { epoch, report } => {
                let (host, incarnation) = (node, self.nodes[node].incarnation);
                self.post(node, 0, Inbound::Report { host, incarnation, group, epoch, report });
            }
            OrderOutput::Evicted(cause) => {
                self.note(format!("host {node} is put out of group {group}: {cause:?}"));
                self.end_holder(node, group);
            }
            OrderOutput::GroupLost => self.end_holder(node, group),
        }
    }

    fn deliver(&mut self, node: usize, group: u32, positions: std::ops::Range<u64>) {
        for position in positions {
            let Some(held) = self.nodes[node].held.get_mut(&group) else { return };
            held.deliver(position, &self.requests);
            self.checks.messages += 1;
            let is_safe = matches!(
                held.log.entries.get(position as usize),
                Some(OrderEntry::Request {
                    asked: RequestShape { level: OrderLevel::Safe, .. },
                    ..
                })
            );
            if is_safe {
                self.check_safe(node, group, position);
            }
        }
    }

    // ---- parties

    pub(super) fn add_party(&mut self, node: usize, group: u32) {
        let Some(held) = self.nodes[node].held.get_mut(&group) else { return };
        let party = held.add_party();
        self.ask(node, group, party, Content::Join);
    }

    pub(super) fn plan_send(&mut self, node: usize) {
        let wait = self.draw.about(self.setting.pause);
        self.plan(self.now + wait, Event::Send { node });
    }

    /// A party of this host sends a message, as long as there are faults.
    pub(super) fn party_sends(&mut self, node: usize) {
        if self.is_healed {
            return;
        }
        self.plan_send(node);
        let group = 1 + self.draw.below(self.setting.groups as u64) as u32;
        let Some(held) = self.nodes[node].held.get(&group).filter(|_| self.runs(node)) else {
            return;
        };
        let parties = held.parties.clone();
        if !parties.is_empty() {
            let party = self.draw.pick(&parties);
            self.ask(node, group, party, Content::Message);
        }
    }

    fn ask(&mut self, node: usize, group: u32, party: OrderParty, content: Content) {
        let level = if self.draw.permille(400) { OrderLevel::Safe } else { OrderLevel::Total };
        let bytes = self.draw.pick(&[0, 100, 1_000, 20_000]);
        let Some(held) = self.nodes[node].held.get(&group) else { return };
        // Nobody here has seen anything of a copy that is not complete.
        let seen = if held.machine.is_complete() { held.machine.delivered() } else { 0 };
        // The entry may come at once, so the content is known before.
        let number = held.machine.next_number(party);
        let request = Request { content, level, seen, is_answered: false };
        let former = self.requests.insert((group, party, number), request);
        let mut is_full = false;
        self.drive(node, group, |holder, now| {
            match holder.ask(party, RequestShape { bytes, level }, now) {
                Ok((_, outputs)) => outputs,
                Err(_) => {
                    is_full = true;
                    Vec::new()
                }
            }
        });
        if is_full {
            self.requests.remove(&(group, party, number));
            former.map(|former| self.requests.insert((group, party, number), former));
        }
    }
}

/// The step of the protocol that an output is part of.
fn step_of(output: &OrderOutput) -> Option<Step> {
    match output {
        OrderOutput::Stored { entry, .. } => match entry {
            OrderEntry::View { .. } => Some(Step::View),
            OrderEntry::Holder(_) => Some(Step::Holder),
            OrderEntry::Request { .. } => Some(Step::Accept),
            _ => None,
        },
        OrderOutput::Send { message, .. } => match &message.content {
            OrderContent::Feed { .. } => Some(Step::Feed),
            OrderContent::Stored(_) => Some(Step::Stored),
            OrderContent::Ask => Some(Step::Ask),
            OrderContent::Report(_) => Some(Step::Report),
            OrderContent::Fetch(_) => Some(Step::Fetch),
            OrderContent::Begin { .. } => Some(Step::Begin),
            OrderContent::Requests { .. } => Some(Step::Requests),
            _ => None,
        },
        _ => None,
    }
}
