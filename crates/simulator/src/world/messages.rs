//! Messages: they are sent, travel, and meet their receives.

use landeck_kernel::Wanted;
use landeck_kernel::matching::{Label, Waiting};

use super::{CONTEXT, Doing, Event, MessageId, News, SimulatedMessage, Stage, TAG, World};
use crate::compact_plans::Path;
use crate::footprint::fits_cell;
use crate::history::{NOTHING, RecordId, What};
use crate::near::Route;
use crate::network::{Passed, Transit};
use crate::time::Time;
use landeck_collectives::Precedence;

impl World {
    /// Begins to send.
    pub(super) fn send(&mut self, from: u32, to: u32, bytes: u64, step: u32, now: Time) {
        let is_near = self.host(from) == self.host(to);
        let is_announced =
            !is_near && self.wires.as_ref().is_some_and(|wires| wires.is_announced(bytes));
        let stage = if is_announced { Stage::Announcement } else { Stage::Whole };
        let (sender, receiver) = (self.host(from), self.host(to));
        let transit = Transit {
            from: sender,
            to: receiver,
            bytes,
            head: now,
            tail: now,
            hop: 0,
            waited_ps: 0,
        };
        let route = self.route(from, to, bytes, step);
        let id = self.keep(SimulatedMessage {
            from,
            to,
            bytes,
            rest_bytes: 0,
            stage,
            sent_by: step,
            received_by: 0,
            transit,
            is_in_cell: route.is_in_cell,
            record: NOTHING,
        });
        (self.sent, self.bytes) = (self.sent + 1, self.bytes + bytes);
        let (span_ps, arrival_ps) = if is_near {
            self.near.send_ps(bytes, route, self.rates(from))
        } else {
            (self.overhead_ps(if is_announced { 0 } else { bytes }), 0)
        };
        let what = match stage {
            Stage::Announcement => What::Handshake { member: from, with: to },
            _ => What::Send { from, to, bytes },
        };
        let doing = if is_near { Doing::SendNear(step) } else { Doing::Send(id) };
        let record = self.busy(from, doing, what, span_ps, NOTHING, now);
        self.messages[id as usize].record = record;
        if is_near {
            let at = now + self.chance.stretched_ps(arrival_ps);
            let at = self.chance.in_order((from, to), at, now);
            self.messages[id as usize].transit.head = at.min(self.history.end_of(record));
            self.events.plan(at, Event::Arrive(id));
        }
    }

    /// The route of a message to a member of the same host. It takes one of its sender's cells if it fits in one.
    fn route(&mut self, from: u32, to: u32, bytes: u64, step: u32) -> Route {
        let is_near = self.host(from) == self.host(to);
        let waits = |path: &Path| path.waits(step) > 0;
        let is_fresh =
            self.members[from as usize].execution.as_ref().is_some_and(|now| waits(now.walk()));
        let place = self.member(from);
        let is_in_cell = is_near && fits_cell(bytes) && place.cells > 0;
        place.cells -= u32::from(is_in_cell);
        let is_again = self.calls_again(from);
        Route {
            is_beside: self.processors.number(from) == self.processors.number(to),
            is_crowded: self.processors.is_shared(from),
            is_in_cell,
            is_fresh,
            is_again,
        }
    }

    /// Whether the member's call follows an equal call directly.
    pub(super) fn calls_again(&self, member: u32) -> bool {
        self.stages.follows_the_same(self.members[member as usize].stage)
    }

    fn keep(&mut self, message: SimulatedMessage) -> MessageId {
        let id = match self.free.pop() {
            Some(id) => {
                self.messages[id as usize] = message;
                id
            }
            None => {
                self.messages.push(message);
                self.messages.len() as MessageId - 1
            }
        };
        let in_flight = (self.messages.len() - self.free.len()) as u32;
        self.most_in_flight = self.most_in_flight.max(in_flight);
        id
    }

    pub(super) fn host(&self, member: u32) -> u32 {
        self.hosts.host(member)
    }

    fn overhead_ps(&self, bytes: u64) -> u64 {
        self.wires.as_ref().map_or(0, |wires| wires.overhead_ps(bytes))
    }

    /// How long a part of announced data keeps a processor busy.
    fn part_ps(&self, bytes: u64) -> u64 {
        self.wires.as_ref().map_or(0, |wires| wires.part_ps(bytes))
    }

    fn receive_ps(&self, message: &SimulatedMessage) -> u64 {
        if message.transit.from != message.transit.to {
            return match message.stage {
                Stage::Data => self.part_ps(message.bytes),
                _ => self.overhead_ps(message.bytes),
            };
        }
        let SimulatedMessage { from, to, bytes, is_in_cell, .. } = *message;
        let is_again = self.calls_again(to);
        let route = Route {
            is_beside: self.processors.number(from) == self.processors.number(to),
            is_crowded: self.processors.is_shared(to),
            is_in_cell,
            is_fresh: false,
            is_again,
        };
        self.near.receive_ps(bytes, route, self.rates(to))
    }

    /// A sender has handed a message over to the network.
    pub(super) fn sent(&mut self, id: MessageId, now: Time) {
        let message = self.messages[id as usize];
        if message.stage == Stage::Whole {
            self.end_step(message.from, message.sent_by);
        }
        let record = self.members[message.from as usize].last;
        self.launch(id, message.stage, record, now);
        if message.stage == Stage::Data && message.rest_bytes > 0 {
            // What has come meanwhile is looked at first.
            let bytes = self.part_of(message.rest_bytes);
            let rest_bytes = message.rest_bytes - bytes;
            let next = self.keep(SimulatedMessage { bytes, rest_bytes, ..message });
            self.hand(message.from, News::Part(next), now);
        }
    }

    fn part_of(&self, bytes: u64) -> u64 {
        self.wires.as_ref().map_or(bytes, |wires| wires.part_of(bytes))
    }

    /// Puts a message onto the network.
    pub(super) fn launch(&mut self, id: MessageId, stage: Stage, record: RecordId, now: Time) {
        let begin = now + self.chance.lost_ps();
        let message = &mut self.messages[id as usize];
        (message.stage, message.record) = (stage, record);
        let (from, to) = message.ends();
        let (from, to) = (self.hosts.host(from), self.hosts.host(to));
        let bytes = match stage {
            Stage::Whole | Stage::Data => message.bytes,
            Stage::Announcement | Stage::Request => 0,
        };
        message.transit =
            Transit { from, to, bytes, head: begin, tail: begin, hop: 0, waited_ps: 0 };
        self.events.plan(begin, Event::Hop(id));
    }

    /// The head of a message reaches a port.
    pub(super) fn hop(&mut self, id: MessageId, now: Time) {
        let Some(wires) = &mut self.wires else { return };
        let message = &mut self.messages[id as usize];
        let transit = &mut message.transit;
        let (is_first, began) = (transit.hop == 0, transit.head);
        match wires.pass(transit) {
            Passed::On(at) => {
                if is_first && message.stage == Stage::Data && message.rest_bytes == 0 {
                    // The last byte leaves the card as long after the first as it arrives later.
                    let gone = began + transit.waited_ps + transit.tail.since(transit.head);
                    let (member, step) = (message.from, message.sent_by);
                    self.events.plan(gone, Event::Gone { member, step });
                }
                if is_first {
                    let span_ps = at.since(began);
                    let late_ps = self.chance.stretched_ps(span_ps) - span_ps;
                    (transit.head, transit.tail) = (at + late_ps, transit.tail + late_ps);
                }
                self.events.plan(transit.head, Event::Hop(id));
            }
            Passed::Arrived(at) => {
                let (from, to) = message.ends();
                let at = self.chance.in_order((from, to), at, now);
                self.events.plan(at, Event::Arrive(id));
            }
        }
    }

    /// A message reaches its receiver.
    pub(super) fn arrive(&mut self, id: MessageId, now: Time) {
        self.note(now, 3, id);
        let message = self.messages[id as usize];
        let (from, to) = message.ends();
        let waited_ps = message.transit.waited_ps;
        self.waited_ps += waited_ps;
        let began = self.history.end_of(message.record).min(now);
        let what = What::Travel { from, to, waited_ps };
        let record = self.history.add(what, began, now, [message.record, NOTHING]);
        self.messages[id as usize].record = record;
        self.hand(to, News::Message(id), now);
    }

    /// A member looks at news. True if that keeps it busy.
    pub(super) fn look_at(&mut self, member: u32, news: News, now: Time) -> bool {
        let id = match news {
            News::Gone(step) => {
                self.end_step(member, step);
                return false;
            }
            News::Death(dead) => {
                let place = self.member(member);
                place.told = place.told.or(Some((dead, now)));
                return false;
            }
            News::Part(id) => {
                let SimulatedMessage { to, bytes, record, .. } = self.messages[id as usize];
                let what = What::Send { from: member, to, bytes };
                self.busy(member, Doing::Send(id), what, self.part_ps(bytes), record, now);
                return true;
            }
            News::Message(id) => id,
        };
        let message = self.messages[id as usize];
        match message.stage {
            Stage::Whole | Stage::Announcement => {
                let label = Label { context: CONTEXT, source: message.from, tag: TAG };
                let place = self.member(member);
                match place.matching.match_arrival(label) {
                    Some(step) => {
                        place.post_next(message.from, step);
                        self.take(member, id, step, now);
                    }
                    None => {
                        place.matching.keep(label, id);
                        return self.keep_busy(member, &message, now);
                    }
                }
            }
            Stage::Request => {
                // It takes a word and sends the data, or their first part.
                let bytes = self.part_of(message.bytes);
                let span_ps = self.overhead_ps(0) + self.part_ps(bytes);
                let what = What::Send { from: member, to: message.to, bytes };
                let rest_bytes = message.bytes - bytes;
                self.messages[id as usize] =
                    SimulatedMessage { stage: Stage::Data, bytes, rest_bytes, ..message };
                self.busy(member, Doing::Send(id), what, span_ps, message.record, now);
            }
            Stage::Data => self.take(member, id, message.received_by, now),
        }
        true
    }

    /// A message that came before its receive keeps its receiver busy; true if it does.
    fn keep_busy(&mut self, member: u32, message: &SimulatedMessage, now: Time) -> bool {
        let is_near = message.transit.from == message.transit.to;
        if !is_near || self.near.keep_ps() == 0 {
            return false;
        }
        let what = What::Receive { to: member, from: message.from, bytes: message.bytes };
        self.busy(member, Doing::Nothing, what, self.near.keep_ps(), message.record, now);
        true
    }

    /// Begins a receive; true if its message is there already.
    pub(super) fn receive(&mut self, member: u32, from: u32, step: u32, now: Time) -> bool {
        let place = self.member(member);
        if let Some(behind) = place.behind.get_mut(&from) {
            *behind += 1;
            return false;
        }
        match place.matching.take(&wanted(from)) {
            Some(Waiting { message: id, .. }) => {
                self.take(member, id, step, now);
                true
            }
            None => {
                place.matching.post(wanted(from), step);
                place.behind.insert(from, 0);
                false
            }
        }
    }

    /// Takes the message of a step, or asks for its data.
    pub(super) fn take(&mut self, member: u32, id: MessageId, step: u32, now: Time) {
        self.messages[id as usize].received_by = step;
        let message = self.messages[id as usize];
        let from = message.from;
        if message.stage == Stage::Announcement {
            let what = What::Handshake { member, with: from };
            let span_ps = 2 * self.overhead_ps(0); // it takes one word and sends another
            self.busy(member, Doing::Ask(id), what, span_ps, message.record, now);
            return;
        }
        let what = What::Receive { to: member, from, bytes: message.bytes };
        let span_ps = self.receive_ps(&message);
        self.busy(member, Doing::Receive(id), what, span_ps, message.record, now);
    }
}

/// The message that a receive from a member asks for.
pub(super) const fn wanted(from: u32) -> Wanted {
    Wanted { context: CONTEXT, source: Some(from), tag: Some(TAG) }
}
