//! The state of an operation that goes on, whatever its steps are: its call, its messages on their way, missing memory,
//! and how it ends.

use std::sync::Arc;

use landeck_collectives::{Operation, Signature};
use landeck_kernel::{Area, Endpoint, Failure, RequestId, Started, Wanted};
use landeck_memory::{Buffer, NoMemory};
use landeck_transports::SharedMemory;

use crate::binding::Owned;
use crate::board::BoardError;
use crate::board_call::{fault_of, loss_behind};
use crate::call::Call;
use crate::fault::Fault;
use crate::identity::GroupIdentity;
use crate::mismatch::remark;

/// A wait is long after so many looks before sleep: some tenths of a second, unless it is woken for
/// other reasons.
const LONG_LOOKS: u32 = 4;

/// The length of the message that a member without data sends in their place. A receiver that expects so many
/// bytes gets one more.
const NOTHING_BYTES: usize = 239;
static NOTHING: [u8; NOTHING_BYTES + 1] = [0; NOTHING_BYTES + 1];

/// A message on its way.
pub(super) struct Message {
    /// The other member.
    pub(super) peer: u32,
    /// The length of a message that is received.
    pub(super) expected_bytes: u64,
    pub(super) is_received: bool,
}

/// The result of a step.
pub(super) enum Stepped {
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

/// The state of an operation that goes on.
pub(crate) struct OperationState {
    pub(super) place: Arc<GroupIdentity>,
    pub(super) signature: Signature,
    pub(super) call: Call,
    in_flight: Vec<InFlight>,
    /// Memory in the place of the caller's: only kept.
    kept: Vec<Owned>,
    /// The messages tell the lengths of blocks; the data follow.
    pub(super) is_telling: bool,
    /// It was started, and goes directly to all members of other hosts.
    pub(super) is_direct: bool,
    /// The first fault, while the operation goes on for the sake of the others.
    deferred_error: Option<Fault>,
    /// The memory that there is none of: this member takes part with nothing.
    pub(super) missing: Option<NoMemory>,
    /// This member has nothing to pass on, since memory is missing here or at a member it depends on.
    is_empty_handed: bool,
    /// Looks before sleep since anything moved.
    looks: u32,
    outcome: Option<Result<(), Fault>>,
}

impl OperationState {
    /// The state of an operation that has not begun.
    pub(super) fn new(place: &Arc<GroupIdentity>, signature: Signature, call: Call) -> Self {
        Self {
            place: place.clone(),
            signature,
            call,
            in_flight: Vec::new(),
            kept: Vec::new(),
            is_telling: false,
            is_direct: false,
            deferred_error: None,
            missing: None,
            is_empty_handed: false,
            looks: 0,
            outcome: None,
        }
    }

    /// How it ended; none while it goes on.
    #[inline]
    pub(super) fn outcome(&self) -> Option<&Result<(), Fault>> {
        self.outcome.as_ref()
    }

    /// Whether it has ended.
    #[inline]
    pub(super) fn has_ended(&self) -> bool {
        self.outcome.is_some()
    }

    /// Keeps memory that stands in the place of the caller's.
    pub(super) fn keep(&mut self, owned: Owned) {
        self.kept.push(owned);
    }

    /// Notes a fault, while the operation goes on for the sake of the others.
    pub(super) fn defer(&mut self, fault: Fault) {
        self.deferred_error.get_or_insert(fault);
    }

    /// This member takes part with nothing if memory is missing.
    pub(super) fn go_without(&mut self, missing: Option<NoMemory>) {
        if let Some(no_memory) = missing {
            self.missing = missing;
            self.is_empty_handed = true;
            self.defer(Fault::NoMemory(no_memory));
        }
    }

    /// All steps are complete.
    pub(super) fn complete(&mut self) {
        self.outcome = Some(self.deferred_error.take().map_or(Ok(()), Err));
    }

    /// Ends it with a fault before it has begun.
    #[cold]
    pub(super) fn end_with(&mut self, fault: Fault) {
        self.outcome = Some(Err(fault));
    }

    /// This member has nothing to pass on from now on.
    #[cold]
    pub(super) fn go_empty_handed(&mut self) {
        self.is_empty_handed = true;
    }

    /// Ends it with a failure; its memory is free.
    #[cold]
    pub(super) fn fail(&mut self, endpoint: &mut Endpoint<SharedMemory>, fault: Fault) {
        self.abandon(endpoint);
        self.outcome.get_or_insert(Err(fault));
    }

    /// Ends it with a failure at the board.
    #[cold]
    pub(super) fn fail_at_board(
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

    /// Notes a failure at the board, while the operation goes on for the sake of the others.
    pub(super) fn defer_at_board(&mut self, error: BoardError) {
        let fault = fault_of(error, self.call.operation, &self.place, None);
        self.defer(fault);
    }

    /// Gives up all messages.
    pub(super) fn abandon(&mut self, endpoint: &mut Endpoint<SharedMemory>) {
        for one in self.in_flight.drain(..) {
            if one.step.is_none() {
                self.place.told.forget(one.message.peer);
            }
            endpoint.abandon(one.id);
        }
    }

    /// Whether no message is on its way.
    pub(super) fn has_no_message(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// The message it waits for, when it is but one.
    #[inline]
    pub(super) fn only_request(&self) -> Option<RequestId> {
        match self.in_flight[..] {
            [InFlight { id, .. }] => Some(id),
            _ => None,
        }
    }

    /// Whether what this member sends is nothing but the word that it has nothing. Lengths it tells all the same.
    pub(super) fn brings_nothing(&self) -> bool {
        self.is_empty_handed && !self.is_telling
    }

    /// Something moved, so the wait is not long.
    pub(super) fn note_move(&mut self) {
        self.looks = 0;
    }

    /// Before sleep: a member that has waited for long tells those it waits for which call it is in, once: by messages,
    /// or at the board of its host.
    #[cold]
    pub(super) fn remark_if_long(
        &mut self,
        endpoint: &mut Endpoint<SharedMemory>,
        at_board: &[u32],
    ) {
        self.looks = self.looks.saturating_add(1);
        if self.looks != LONG_LOOKS {
            return;
        }
        let mut awaited: Vec<u32> = self.in_flight.iter().map(|one| one.message.peer).collect();
        awaited.extend(at_board.iter().filter(|&&member| member != self.place.member));
        awaited.sort_unstable();
        awaited.dedup();
        for member in awaited {
            remark(endpoint, &self.place, member, self.signature);
        }
    }

    /// Asks the endpoint for each message whether it can still complete. A receive from a process that has left in
    /// good order ends only by this.
    pub(super) fn judge_messages(&mut self, endpoint: &mut Endpoint<SharedMemory>) {
        for one in &self.in_flight {
            endpoint.verdict(one.id);
        }
    }

    /// Sends data, or the word that this member has none.
    pub(super) fn send(
        &mut self,
        endpoint: &mut Endpoint<SharedMemory>,
        to: u32,
        area: Area,
    ) -> Result<Stepped, Fault> {
        let area = if self.brings_nothing() { in_the_place_of(&area) } else { area };
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
    pub(super) fn receive(
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
    pub(super) fn receive_of(
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
    pub(super) fn await_message(&mut self, step: Option<u32>, id: RequestId, message: Message) {
        self.in_flight.push(InFlight { step, id, message });
    }

    /// Gives up the receive from a member; the length that it expected.
    pub(super) fn abandon_receive_from(
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

    /// Takes the messages that have ended, and tells of the steps that they complete. True when there were any.
    pub(super) fn collect(
        &mut self,
        endpoint: &mut Endpoint<SharedMemory>,
        mut end_step: impl FnMut(u32),
    ) -> bool {
        let mut any = false;
        let mut at = 0;
        while at < self.in_flight.len() {
            let id = self.in_flight[at].id;
            if !endpoint.is_done(id) {
                at += 1;
                continue;
            }
            let InFlight { step, message, .. } = self.in_flight.swap_remove(at);
            any = true;
            let result = endpoint.take(id).map_or(Err(Failure::Gone), |ended| ended.result);
            let has_others = |step| self.in_flight.iter().any(|one| one.step == Some(step));
            if let Some(step) = step.filter(|&step| message.is_received && has_others(step)) {
                if matches!(result, Err(ref failure) if !matches!(failure, Failure::Truncated { .. }))
                {
                    continue; // It may come from another member.
                }
                self.abandon_others(endpoint, step);
                at = 0;
            }
            match result.map(|status| status.bytes) {
                Ok(bytes) => self.message_ended(&message, bytes),
                Err(Failure::Truncated { message_bytes, .. }) => {
                    self.message_ended(&message, message_bytes);
                }
                Err(failure) => {
                    self.fail(endpoint, failure.into());
                    return true;
                }
            }
            if let Some(step) = step {
                end_step(step);
            }
        }
        any
    }

    fn message_ended(&mut self, message: &Message, message_bytes: u64) {
        let Message { peer: member, expected_bytes, is_received } = *message;
        if is_received && message_bytes != expected_bytes {
            let operation = self.call.operation;
            let is_nothing = message_bytes == nothing_instead_of(expected_bytes) as u64;
            self.is_empty_handed |= is_nothing;
            self.defer(match is_nothing {
                true => Fault::NoRoom { member, operation },
                false => Fault::Length { member, operation, message_bytes, expected_bytes },
            });
        }
    }
}

/// The length of the message that stands for so many bytes which a member does not have.
fn nothing_instead_of(bytes: u64) -> usize {
    NOTHING_BYTES + usize::from(bytes == NOTHING_BYTES as u64)
}

/// The message in the place of data that a member does not have. Data of no bytes are always there.
fn in_the_place_of(area: &Area) -> Area {
    let bytes = area.packed_bytes();
    // SAFETY: the bytes are there for good, and are only read.
    let nothing = unsafe { Buffer::of(&NOTHING[..]) };
    match bytes {
        0 => Area::EMPTY,
        _ => Area::contiguous(nothing.part(0, nothing_instead_of(bytes))),
    }
}
