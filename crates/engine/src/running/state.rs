//! The state of an operation that goes on, whatever its steps are: its call, its messages on their way, missing memory,
//! and how it ends.

use std::sync::Arc;

use landeck_collectives::{Operation, Signature};
use landeck_kernel::{Area, Endpoint, Failure, RequestId, Started, Wanted};
use landeck_memory::NoMemory;
use landeck_transports::SharedMemory;

use crate::binding::Owned;
use crate::board::BoardError;
use crate::board::call::{fault_of, loss_behind};
use crate::call::Call;
use crate::fault::Fault;
use crate::identity::GroupIdentity;
use crate::lack::Lack;
use crate::mismatch::remark;

/// A wait is long after so many looks before sleep: some tenths of a second, unless it is woken for
/// other reasons.
const LONG_LOOKS: u32 = 4;

/// A message on its way.
#[derive(Clone, Copy)]
pub(crate) struct Message {
    /// The other member.
    pub(crate) peer: u32,
    /// The length of a message that is received.
    pub(crate) expected_bytes: u64,
    pub(crate) is_received: bool,
}

/// The result of a step.
pub(crate) enum Stepped {
    /// It is complete.
    Done,
    /// A message is on its way.
    Out(RequestId, Message),
}

/// A message on its way, with the step that it completes; messages beside the board complete none.
struct InFlight {
    step: Option<u32>,
    id: RequestId,
    message: Message,
}

/// A message that has ended, with the step that it completes and its length.
pub(crate) struct Ended {
    pub(crate) step: Option<u32>,
    message: Message,
    bytes: u64,
}

impl Ended {
    /// Whether what was received is not what was expected.
    pub(crate) fn is_otherwise(&self) -> bool {
        self.message.is_received && self.bytes != self.message.expected_bytes
    }
}

/// The state of an operation that goes on.
pub(crate) struct OperationState {
    pub(crate) place: Arc<GroupIdentity>,
    pub(crate) signature: Signature,
    pub(crate) call: Call,
    in_flight: Vec<InFlight>,
    /// Memory in the place of the caller's: only kept.
    kept: Vec<Owned>,
    /// The messages tell the lengths of blocks; the data follow.
    pub(crate) is_telling: bool,
    /// The number of its way, of which its signature has room for a few bits.
    pub(crate) form: u32,
    /// It was started, and goes directly to all members of other hosts.
    pub(crate) is_direct: bool,
    /// The first fault, while the operation goes on for the sake of the others.
    deferred_error: Option<Fault>,
    /// The memory that there is none of: this member takes part with nothing.
    pub(crate) missing: Option<NoMemory>,
    /// Why this member has nothing to pass on of what it lacks, and the memory of the messages that say so.
    lack: Option<(Lack, Owned)>,
    /// Looks before sleep since anything moved.
    looks: u32,
    outcome: Option<Result<(), Fault>>,
}

impl OperationState {
    /// The state of an operation that has not begun.
    pub(crate) fn new(place: &Arc<GroupIdentity>, signature: Signature, call: Call) -> Self {
        Self {
            place: place.clone(),
            signature,
            call,
            in_flight: Vec::new(),
            kept: Vec::new(),
            is_telling: false,
            form: 0,
            is_direct: false,
            deferred_error: None,
            missing: None,
            lack: None,
            looks: 0,
            outcome: None,
        }
    }

    /// How it ended; none while it goes on.
    #[inline]
    pub(crate) fn outcome(&self) -> Option<&Result<(), Fault>> {
        self.outcome.as_ref()
    }

    /// Whether it has ended.
    #[inline]
    pub(crate) fn has_ended(&self) -> bool {
        self.outcome.is_some()
    }

    /// Keeps memory that stands in the place of the caller's.
    pub(crate) fn keep(&mut self, owned: Owned) {
        self.kept.push(owned);
    }

    /// Notes a fault, while the operation goes on for the sake of the others.
    pub(crate) fn defer(&mut self, fault: Fault) {
        self.deferred_error.get_or_insert(fault);
    }

    /// This member takes part with nothing if memory is missing.
    pub(crate) fn go_without(&mut self, missing: Option<NoMemory>) {
        if let Some(no_memory) = missing {
            self.missing = missing;
            self.lacks(Lack::Memory { member: self.place.member });
            self.defer(Fault::NoMemory(no_memory));
        }
    }

    /// All steps are complete.
    pub(crate) fn complete(&mut self) {
        self.outcome = Some(self.deferred_error.take().map_or(Ok(()), Err));
    }

    /// Ends it with a fault before it has begun.
    #[cold]
    pub(crate) fn end_with(&mut self, fault: Fault) {
        self.outcome = Some(Err(fault));
    }

    /// Notes why this member lacks data that others need of it. The first reason is told.
    #[cold]
    pub(crate) fn lacks(&mut self, lack: Lack) {
        self.lack.get_or_insert_with(|| (lack, lack.frame()));
    }

    /// The first reason why this member lacks data.
    pub(crate) fn lack(&self) -> Option<Lack> {
        self.lack.as_ref().map(|(lack, _)| *lack)
    }

    /// Ends it with a failure; its memory is free.
    #[cold]
    pub(crate) fn fail(&mut self, endpoint: &mut Endpoint<SharedMemory>, fault: Fault) {
        self.abandon(endpoint);
        self.outcome.get_or_insert(Err(fault));
    }

    /// Ends it with a failure at the board.
    #[cold]
    pub(crate) fn fail_at_board(
        &mut self,
        endpoint: &mut Endpoint<SharedMemory>,
        error: BoardError,
    ) {
        // Another member may have said who is gone before this process heard of it.
        endpoint.refresh_from_records();
        let place = &self.place;
        let loss = loss_behind(endpoint, place, &error);
        let fault = fault_of(error, self.call.operation, place, loss);
        self.fail(endpoint, fault);
    }

    /// Notes a failure at the board, for which this member lacks data, while the operation goes on for the sake of the
    /// others.
    #[cold]
    pub(crate) fn lack_at_board(&mut self, error: BoardError) {
        self.lacks(error.lack(self.place.member));
        self.defer_at_board(error);
    }

    /// Notes a failure at the board, while the operation goes on for the sake of the others.
    pub(crate) fn defer_at_board(&mut self, error: BoardError) {
        let fault = fault_of(error, self.call.operation, &self.place, None);
        self.defer(fault);
    }

    /// Gives up all messages.
    pub(crate) fn abandon(&mut self, endpoint: &mut Endpoint<SharedMemory>) {
        for one in self.in_flight.drain(..) {
            if one.step.is_none() {
                self.place.told.forget(one.message.peer);
            }
            endpoint.abandon(one.id);
        }
    }

    /// Whether no message is on its way.
    pub(crate) fn has_no_message(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// The message it waits for, when it is but one.
    #[inline]
    pub(crate) fn only_request(&self) -> Option<RequestId> {
        match self.in_flight[..] {
            [InFlight { id, .. }] => Some(id),
            _ => None,
        }
    }

    /// Whether all that this member sends is the word that it has nothing, for want of memory. Lengths it tells all the
    /// same.
    pub(crate) fn brings_nothing(&self) -> bool {
        self.missing.is_some() && !self.is_telling
    }

    /// Something moved, so the wait is not long.
    pub(crate) fn note_move(&mut self) {
        self.looks = 0;
    }

    /// Before sleep: a member that has waited for long tells those it waits for which call it is in, by messages or at the
    /// board of its host. It tells them again when it has waited twice as long.
    #[cold]
    pub(crate) fn remark_if_long(
        &mut self,
        endpoint: &mut Endpoint<SharedMemory>,
        at_board: &[u32],
    ) {
        self.looks = self.looks.saturating_add(1);
        if self.looks < LONG_LOOKS || !self.looks.is_power_of_two() {
            return;
        }
        let mut awaited: Vec<u32> = self.in_flight.iter().map(|one| one.message.peer).collect();
        awaited.extend(at_board.iter().filter(|&&member| member != self.place.member));
        awaited.sort_unstable();
        awaited.dedup();
        for member in awaited {
            remark(endpoint, &self.place, member, (self.signature, self.form));
        }
    }

    /// Asks the endpoint for each message whether it can still complete. A receive from a process that has left in
    /// good order ends only by this.
    pub(crate) fn judge_messages(&mut self, endpoint: &mut Endpoint<SharedMemory>) {
        for one in &self.in_flight {
            endpoint.verdict(one.id);
        }
    }

    /// Sends data, or in their place the word that this member has none, and why.
    pub(crate) fn send(
        &mut self,
        endpoint: &mut Endpoint<SharedMemory>,
        to: u32,
        area: Area,
        is_lost: bool,
    ) -> Result<Stepped, Fault> {
        let area = match &self.lack {
            Some((lack, frame)) if is_lost || self.brings_nothing() => {
                lack.message(frame.buffer(), area.packed_bytes())
            }
            _ => area,
        };
        let peer = self.place.members[to as usize];
        let context = self.place.collective_context;
        self.tell_span(endpoint, to)?;
        let started = match self.call.operation {
            // The members of a whole group answer one, who knows best when their data may come.
            Operation::Gather | Operation::Reduce if !self.is_direct => {
                let senders = self.place.members.len() as u32 - 1;
                endpoint.send_of_many(peer, context, self.signature.tag(), (area, senders))?
            }
            _ => endpoint.send(peer, context, self.signature.tag(), area)?,
        };
        let id = match started {
            Started::Complete(_) => return Ok(Stepped::Done),
            Started::Pending(id) => id,
        };
        // Messages of the program's may take all room, and wait for what comes after this operation.
        endpoint.offer_if_waiting(id);
        Ok(Stepped::Out(id, Message { peer: to, expected_bytes: 0, is_received: false }))
    }

    /// Tells a member the span of this call, if the last message to it was of another one.
    #[inline]
    fn tell_span(&mut self, endpoint: &mut Endpoint<SharedMemory>, to: u32) -> Result<(), Fault> {
        let GroupIdentity { members, collective_context, told, .. } = &*self.place;
        let span = told.to_tell(to, members.len(), self.signature);
        let Some(tag) = span.map(Signature::span_tag) else { return Ok(()) };
        let peer = members[to as usize];
        if let Started::Pending(id) = endpoint.send(peer, *collective_context, tag, Area::EMPTY)? {
            let message = Message { peer: to, expected_bytes: 0, is_received: false };
            self.await_message(None, id, message);
        }
        Ok(())
    }

    /// Receives data, or drops them where this member takes part with nothing.
    pub(crate) fn receive(
        &mut self,
        endpoint: &mut Endpoint<SharedMemory>,
        from: u32,
        area: Area,
    ) -> Stepped {
        let source = Some(self.place.members[from as usize].0);
        let tag = Some(self.signature.tag());
        let expected_bytes = area.packed_bytes();
        let area = if self.brings_nothing() { Area::EMPTY } else { area };
        let wanted = Wanted { context: self.place.collective_context, source, tag };
        let id = endpoint.receive(wanted, area);
        Stepped::Out(id, Message { peer: from, expected_bytes, is_received: true })
    }

    /// Receives data that one of these members sends, and nobody knows which. Members do not differ in what they may send.
    pub(crate) fn receive_of(
        &mut self,
        endpoint: &mut Endpoint<SharedMemory>,
        step: u32,
        senders: &[u32],
        area: &Area,
    ) -> Stepped {
        let mut received = Stepped::Done;
        for &from in senders {
            if let Stepped::Out(id, message) = received {
                self.await_message(Some(step), id, message);
            }
            received = self.receive(endpoint, from, area.clone());
        }
        received
    }

    /// One of several members has sent: nothing comes of the others.
    fn abandon_others(&mut self, endpoint: &mut Endpoint<SharedMemory>, step: u32) {
        let of_step = |one: &mut InFlight| one.step == Some(step);
        for other in self.in_flight.extract_if(.., of_step) {
            endpoint.abandon(other.id);
        }
    }

    /// Keeps a message on its way, with the step that it completes.
    pub(crate) fn await_message(&mut self, step: Option<u32>, id: RequestId, message: Message) {
        self.in_flight.push(InFlight { step, id, message });
    }

    /// Gives up the receive from a member; the length that it expected.
    pub(crate) fn abandon_receive_from(
        &mut self,
        endpoint: &mut Endpoint<SharedMemory>,
        member: u32,
    ) -> Option<u64> {
        let never_comes = |one: &InFlight| one.message.is_received && one.message.peer == member;
        let at = self.in_flight.iter().position(never_comes)?;
        let one = self.in_flight.swap_remove(at);
        endpoint.abandon(one.id);
        Some(one.message.expected_bytes)
    }

    /// Takes the next message that has ended, from this place among those on their way on. None where there is none, or
    /// one has failed, with which the operation ends.
    pub(crate) fn take_ended(
        &mut self,
        endpoint: &mut Endpoint<SharedMemory>,
        at: &mut usize,
    ) -> Option<Ended> {
        while *at < self.in_flight.len() {
            let id = self.in_flight[*at].id;
            if !endpoint.is_done(id) {
                *at += 1;
                continue;
            }
            let InFlight { step, message, .. } = self.in_flight.swap_remove(*at);
            let result = endpoint.take(id).map_or(Err(Failure::Gone), |ended| ended.result);
            let has_others = |step| self.in_flight.iter().any(|one| one.step == Some(step));
            if let Some(step) = step.filter(|&step| message.is_received && has_others(step)) {
                if matches!(result, Err(ref failure) if !matches!(failure, Failure::Truncated { .. }))
                {
                    continue; // It may come from another member.
                }
                self.abandon_others(endpoint, step);
                *at = 0;
            }
            match result.map(|status| status.bytes) {
                Ok(bytes) | Err(Failure::Truncated { message_bytes: bytes, .. }) => {
                    return Some(Ended { step, message, bytes });
                }
                Err(failure) => {
                    self.fail(endpoint, failure.into());
                    return None;
                }
            }
        }
        None
    }

    /// A message is not what was expected: its sender lacks the data, or they have another length. `area` is where they
    /// were received.
    #[cold]
    pub(crate) fn came_otherwise(&mut self, ended: &Ended, area: &Area) {
        let Ended { bytes: message_bytes, message, .. } = *ended;
        let Message { peer: member, expected_bytes, .. } = message;
        let operation = self.call.operation;
        let said = Lack::in_message(area, message_bytes, expected_bytes, member);
        match said.map(|lack| lack.in_group(self.place.members.len(), member)) {
            Some(lack) => {
                self.defer(lack.fault(operation));
                self.lacks(lack);
            }
            None => {
                self.defer(Fault::Length { member, operation, message_bytes, expected_bytes });
                let by = self.place.member;
                self.lacks(Lack::Length { member, by, message_bytes, expected_bytes });
            }
        }
    }
}
