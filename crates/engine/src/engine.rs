//! The endpoint of a process with everything that goes on in it: messages, and the collective
//! operations that are made of them. One table each, one progress for both.

use std::sync::Arc;

use landeck_board::{Board, Room};
use landeck_channel::{Channel, Peer};
use landeck_collectives::{Operation, Way};
use landeck_kernel::mailboxes::FIRST_MAILBOX;
use landeck_kernel::{Area, Completion, Endpoint, Failure, RequestId, Started, Status};
use landeck_memory::system::now_ns;
use landeck_memory::{Bytes, End, Operation as Waited, Segment, WaitRecord};
use landeck_objects::region::Withdrawn;
use landeck_transports::SharedMemory;
use landeck_wire::ContextId;
use landeck_wire::stored::StoreWish;

use crate::WaitError;
use crate::board::BoardError;
use crate::board::call::{fault_of, loss_behind};
use crate::call::Call;
use crate::context::{WORLD_CONTEXT, collective_context, contexts_beside, founding_of_names};
use crate::fault::Fault;
use crate::group::GroupState;
use crate::group::places::Places;
use crate::group::table::{GroupTable, group_of};
use crate::identity::GroupRef;
use crate::route::Polling;
use crate::running::Running;
use crate::signals::{SignalId, Signals};
use crate::streams::{MessageSink, Streams};
use crate::table::{CollectiveId, Table};
use landeck_channel::incast::Incast;

mod board_calls;
mod departures;
mod groups;
mod message_agreement;
mod mismatches;

use groups::GroupMemory;
pub use groups::{Founding, Reservation};
use message_agreement::MessageAgreements;

/// An operation that goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperationId {
    /// A message.
    Message(RequestId),
    /// A collective operation.
    Collective(CollectiveId),
    /// An operation that the program ends itself.
    Signal(SignalId),
}

impl From<RequestId> for OperationId {
    #[inline]
    fn from(id: RequestId) -> Self {
        Self::Message(id)
    }
}

/// A group that can begin its next operation.
pub(crate) struct Ready<'e> {
    /// The group.
    pub(crate) group: &'e mut GroupState,
    /// The endpoint of the process.
    pub(crate) endpoint: &'e mut Endpoint<SharedMemory>,
    /// No other operation goes on in the table.
    pub(crate) is_idle: bool,
}

/// Bytes that the call which starts a non-blocking operation moves at most.
pub(crate) const START_BYTES: u64 = 32 << 10;
/// Of so many looks in vain one is thorough.
const LOOKS_PER_THOROUGH_LOOK: u32 = 1 << 14;
/// A synchronous message of this process to itself takes about half of them, each turn of a ring one.
const ROUNDS_PER_LOOK: u32 = 8;

/// Looks whether something has come; false when nothing will any more. It runs within the endpoint,
/// which it does not call.
pub(crate) type Watcher = Box<dyn FnMut() -> bool + Send>;

/// The members of the first world, in the order of their ranks on all hosts.
pub fn first_world(segment: &Segment) -> Arc<[Peer]> {
    (0..segment.plan().ranks).map(|rank| Peer(segment.peer_of_rank(rank))).collect()
}

/// An endpoint with its collective operations.
pub struct Engine {
    segment: Segment,
    places: Places,
    /// The cache that this process is bound to, where nobody has said it: found out when it is needed.
    own_cache: Option<u16>,
    /// Its messages, and what it knows of the other processes.
    pub endpoint: Endpoint<SharedMemory>,
    running: Table,
    groups: GroupTable,
    /// The bytes that the boards of all groups keep for others.
    room: Arc<Room>,
    /// Groups on whose boards it says that this process sleeps.
    asleep_on: Vec<u32>,
    estate: GroupMemory,
    /// The groups without a board, as far as they agree and revoke.
    message_agreements: MessageAgreements,
    /// The operations that the program ends itself.
    pub signals: Signals,
    /// Numbers the mailboxes of this process.
    pub(crate) last_mailbox: u32,
    /// Numbers the regions of this process.
    pub last_region: u64,
    /// Regions that are gone for all, while somebody still accesses them.
    pub withdrawn: Vec<Withdrawn>,
    /// Callbacks that run when other processes have written to shared memory. One that returns false is removed.
    watchers: Vec<Watcher>,
    /// The watchers that have ended. Their memory may enter the engine when it is dropped, so that happens elsewhere.
    ended_watchers: Vec<Watcher>,
    /// The contexts whose messages are taken as they come.
    streams: Streams,
    /// Operations that go on and that nobody will ask for.
    released: Vec<OperationId>,
    /// Threads that wait for an agreement.
    agreeing: usize,
    /// Looks of those who do not wait.
    looks: u32,
}

impl Engine {
    /// The engine of a process: this endpoint of its, and no operation yet.
    pub fn new(segment: &Segment, slot: u32, mut endpoint: Endpoint<SharedMemory>) -> Self {
        // A world that spans hosts has no board.
        if !segment.plan().world_spans_hosts() {
            let beside = collective_context(WORLD_CONTEXT);
            endpoint.set_board(WORLD_CONTEXT, beside, segment.plan().world_board());
        }
        // Others may get the slots of those who leave.
        let world: Arc<[Peer]> = first_world(segment);
        for context in contexts_beside(WORLD_CONTEXT) {
            endpoint.set_members(context, world.to_vec());
        }
        endpoint.wait_for_leavers_in(founding_of_names());
        let mut engine = Self {
            segment: segment.clone(),
            places: Places::in_segment(segment),
            own_cache: None,
            endpoint,
            running: Table::default(),
            groups: GroupTable::default(),
            room: Arc::default(),
            asleep_on: Vec::new(),
            estate: GroupMemory::new(segment, slot),
            message_agreements: MessageAgreements::default(),
            signals: Signals::default(),
            // Not where the slot's last process began: its addresses must not fit ours.
            last_mailbox: now_ns() as u32,
            last_region: now_ns() << 8 | u64::from(slot & 0xff),
            withdrawn: Vec::new(),
            watchers: Vec::new(),
            ended_watchers: Vec::new(),
            streams: Streams::default(),
            released: Vec::new(),
            agreeing: 0,
            looks: 0,
        };
        if segment.plan().world_spans_hosts() && segment.rank_of(slot).is_some() {
            engine.watch_over(WORLD_CONTEXT, &world, Peer(slot));
        }
        engine
    }

    /// Sends bytes if that is possible without waiting. Returns false otherwise: then nothing is sent. Long data for
    /// another host are copied into a block of this process's heap first, from where they follow, or go to a store.
    ///
    /// # Errors
    /// The errors of [`Endpoint::send`].
    pub fn try_send(
        &mut self,
        to: Peer,
        context: u32,
        tag: u32,
        (data, store): (Bytes<'_>, Option<StoreWish>),
    ) -> Result<bool, Failure> {
        let is_far = to.0 >= self.segment.plan().slots();
        let is_long = |network: &dyn Channel| data.len() > network.data_bytes_max();
        if !is_far || !self.endpoint.network().is_some_and(is_long) {
            return self.endpoint.try_send(to, context, tag, data);
        }
        let Ok(mut block) = self.endpoint.allocate(data.len()) else { return Ok(false) };
        data.copy_to_slice(&mut block);
        let started = match store {
            Some(store) => {
                self.endpoint.send_stored(to, context, tag, (Area::of_block(block), store))?
            }
            None => self.endpoint.send_loan(to, context, tag, block)?,
        };
        if let Started::Pending(id) = started {
            self.release(id.into());
        }
        Ok(true)
    }

    /// Sets the pace of many-to-one steps of one group.
    pub fn set_incast_of_group(&mut self, context: u32, wish: Incast) {
        self.endpoint.set_incast_of(collective_context(context), Some(wish));
    }

    /// Sets the length from which the messages and the collective operations of one group are copied once on this host.
    pub fn set_one_copy_of_group(&mut self, context: u32, bytes: u64) {
        for context in [context, collective_context(context)] {
            self.endpoint.set_one_copy_from_in(context, bytes);
        }
    }

    /// Opens a mailbox: its context, which no other of this process has.
    pub fn new_mailbox(&mut self) -> u32 {
        loop {
            self.last_mailbox = self.last_mailbox.wrapping_add(1);
            let context = FIRST_MAILBOX | self.last_mailbox;
            if self.endpoint.open_mailbox(context) {
                return context;
            }
        }
    }

    /// The group of a handle.
    fn group(&mut self, of: GroupRef<'_>) -> Result<&mut GroupState, Fault> {
        group_of(&self.segment, &self.places, &self.room, &mut self.groups, of)
    }

    /// Keeps a group that this process is a member of from now on.
    fn keep_group(&mut self, context: u32, mut group: GroupState) {
        if let Some(board) = group.any_board_mut() {
            board.share_room(&self.room);
        }
        self.groups.insert(context, group);
    }

    /// If a deposit waits for room, reclaims on every board the deposits that all their readers have finished.
    #[inline]
    pub(crate) fn make_room(&mut self) {
        if self.room.is_awaited() {
            self.collect_all();
        }
    }

    #[cold]
    fn collect_all(&mut self) {
        // In lines of what all have forgotten, others may be on the board of another group by now.
        self.reclaim_all();
        let groups = self.groups.values_mut().chain(self.estate.forgotten_groups());
        for group in groups {
            let (context, members) = (group.place.context, group.place.members.clone());
            let Some(board) = group.any_board_mut() else { continue };
            board.collect();
            if self.endpoint.failure_of_group(context, &members).is_some() {
                // The deposits that gone members were to read do not come back.
                board.share_room(&Arc::default());
            }
        }
    }

    /// Why a group can do nothing any more, if that is so.
    #[inline(always)]
    fn failure_in(&mut self, context: u32, members: &[Peer]) -> Option<Failure> {
        self.endpoint.refresh();
        let failure = self.endpoint.failure_of_group(context, members)?;
        Some(self.failure_by_now(context, members, failure))
    }

    #[cold]
    fn failure_by_now(&mut self, context: u32, members: &[Peer], failure: Failure) -> Failure {
        if self.message_agreements.are_idle() {
            return failure;
        }
        // A process whose calls all fail at once hears of a revocation all the same.
        self.endpoint.progress();
        self.advance_agreements();
        self.endpoint.failure_of_group(context, members).unwrap_or(failure)
    }

    /// The group of a handle, ready for its next operation.
    ///
    /// # Errors
    /// The [`Fault`] that makes the group useless.
    #[inline(always)]
    pub(crate) fn ready(&mut self, of: GroupRef<'_>) -> Result<Ready<'_>, Fault> {
        let failure = self.failure_in(of.context, of.members);
        // The fields one by one: the group is looked up once.
        let group = group_of(&self.segment, &self.places, &self.room, &mut self.groups, of)?;
        let group = group.ready(failure, &self.endpoint)?;
        Ok(Ready { group, endpoint: &mut self.endpoint, is_idle: self.running.is_idle() })
    }

    /// Whether a group can begin another operation. If not, the others learn that this member does not come to it.
    ///
    /// # Errors
    /// The [`Fault`] that makes the group useless.
    pub fn is_ready(&mut self, of: GroupRef<'_>) -> Result<(), Fault> {
        self.ready(of).map(drop)
    }

    /// A group that this process knows, whether it can begin another operation or not.
    #[inline]
    pub(crate) fn group_of_context(&mut self, context: u32) -> Option<Ready<'_>> {
        let group = self.groups.get_mut(&context)?;
        Some(Ready { group, endpoint: &mut self.endpoint, is_idle: self.running.is_idle() })
    }

    /// Says on all boards where something goes on, and on that of `context`, that this process is
    /// about to sleep: then others wake it.
    #[cold]
    pub fn fall_asleep(&mut self, context: Option<u32>) {
        if !self.asleep_on.is_empty() {
            return;
        }
        let running = self.running.active().iter().filter_map(|&id| self.running.get(id));
        self.asleep_on = running.map(|running| running.place().context).chain(context).collect();
        if self.room.is_awaited() {
            let keeping = |(of, group): (u32, &GroupState)| group.keeps().then_some(of);
            // A board that this process has forgotten tells it in any case.
            self.asleep_on.extend(self.groups.iter().filter_map(keeping));
        }
        for context in &self.asleep_on {
            if let Some(board) = self.board_of(*context) {
                board.sleeps(true);
            }
        }
    }

    /// Takes back the announcement on all boards that this process sleeps.
    #[inline]
    pub fn wake_up(&mut self) {
        let mut contexts = std::mem::take(&mut self.asleep_on);
        for context in contexts.drain(..) {
            if let Some(board) = self.board_of(context) {
                board.wakes(true);
            }
        }
        self.asleep_on = contexts; // its memory serves again
    }

    /// The board of a group that this process is a member of, or of the group's members on this host.
    fn board_of(&self, context: u32) -> Option<&Board> {
        self.groups.get(&context)?.any_board()
    }

    /// Begins a collective operation that goes on in the table, and moves at most `allowance` bytes for now. None when
    /// it is complete at once.
    ///
    /// # Errors
    /// Any [`Fault`]: of the group, of the call, or of an operation that failed at once.
    pub(crate) fn start(
        &mut self,
        of: GroupRef<'_>,
        call: Call,
        allowance: u64,
    ) -> Result<Option<CollectiveId>, Fault> {
        let Ready { group, is_idle, .. } = self.ready(of)?;
        let way = group.route(group.facts(&call), None, Polling::Never, is_idle).way();
        self.start_by(&way, of.context, call, allowance)
    }

    /// Begins a collective operation whose way is known, as [`Engine::start`].
    ///
    /// # Errors
    /// As [`Engine::start`].
    pub(crate) fn start_by(
        &mut self,
        way: &Way,
        context: u32,
        mut call: Call,
        mut allowance: u64,
    ) -> Result<Option<CollectiveId>, Fault> {
        let Some(group) = self.groups.get_mut(&context) else { return Err(Fault::NotAMember) };
        let checked = call.check(group.size(), group.place.member);
        let blame = match checked {
            Err(fault @ Fault::Buffer { .. }) if call.is_varying => {
                let kept = call.without_own(group.place.member);
                if call.check(group.size(), group.place.member).is_err() {
                    return Err(fault);
                }
                Some((fault, kept))
            }
            checked => checked.map(|()| None)?,
        };
        let mut running = match way {
            Way::Board(style) => Running::at_board(group, call, *style)?,
            way => Running::by_messages(group, call, way),
        };
        if let Some((fault, kept)) = blame {
            running.blame(fault, kept);
        }
        if running.starts_whole() {
            allowance = u64::MAX;
        }
        running.advance(&mut self.endpoint, group.any_board_mut(), &mut allowance);
        match running.outcome() {
            Some(Ok(())) if running.goes_by_messages() => self.in_step(context).map(|()| None),
            Some(Ok(())) => Ok(None),
            Some(Err(fault)) => {
                let fault = fault.clone();
                self.spread_departure(context, running.signature(), &fault);
                Err(self.explained(context, fault))
            }
            None => Ok(Some(self.running.insert(Box::new(running)))),
        }
    }

    /// Frees regions that nobody accesses any more.
    pub fn free_withdrawn(&mut self) {
        let segment = &self.segment;
        self.withdrawn.retain(|withdrawn| !withdrawn.is_free(segment));
    }

    /// Whether no operation goes on, and the endpoint is quiet ([`Endpoint::is_quiet`]).
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.endpoint.is_quiet() && self.running.is_idle()
    }

    /// Makes progress for a caller that does not wait, while anything moves, but not for ever: a message of this
    /// process to itself is complete after one look. Every 16,384th look is thorough, so a program that only tests
    /// still makes full progress.
    #[inline]
    pub fn look(&mut self) {
        self.looks = self.looks.wrapping_add(1);
        let is_thorough = self.looks.is_multiple_of(LOOKS_PER_THOROUGH_LOOK);
        for _ in 0..ROUNDS_PER_LOOK {
            let moved = if is_thorough { self.progress_thoroughly() } else { self.progress() };
            if !moved {
                break;
            }
        }
    }

    /// Makes progress; true when anything moved.
    #[inline]
    pub fn progress(&mut self) -> bool {
        let any = self.endpoint.progress();
        if self.running.is_idle() { any } else { self.advance_all(u64::MAX) | any }
    }

    /// Makes progress in pieces where that can be, so that others may come in between; true when anything moved.
    pub(crate) fn progress_in_pieces(&mut self) -> bool {
        self.have_watched();
        self.endpoint.progress() | self.advance_all(START_BYTES)
    }

    /// Whether something was begun that is not over.
    pub(crate) fn goes_on(&self) -> bool {
        !self.running.is_idle()
            || !self.endpoint.is_idle()
            || self.endpoint.has_watched_mailboxes()
            || !self.watchers.is_empty()
            || !self.streams.is_empty()
    }

    /// Has somebody look from now on, before this process sleeps and while its thread does what is
    /// left.
    pub fn watch(&mut self, watcher: Watcher) {
        self.watchers.push(watcher);
        self.have_watched();
    }

    /// Gives the messages of a mailbox to a sink as they come, whenever the watchers look. The mailbox has no other
    /// receiver.
    pub fn stream(&mut self, context: u32, sink: MessageSink) {
        self.streams.add(context, sink);
        self.have_watched();
    }

    /// Ends the stream of a mailbox.
    pub fn end_stream(&mut self, context: u32) {
        self.streams.end(context, &mut self.endpoint);
    }

    /// Has all watchers look now.
    #[inline]
    pub fn have_watched(&mut self) {
        if !self.streams.is_empty() {
            self.streams.take(&mut self.endpoint);
        }
        if !self.watchers.is_empty() {
            let ended = self.watchers.extract_if(.., |watcher| !watcher());
            self.ended_watchers.extend(ended);
        }
    }

    /// The watchers that have ended, to be dropped by a caller that has left the kernel.
    pub(crate) fn take_ended_watchers(&mut self) -> Vec<Watcher> {
        std::mem::take(&mut self.ended_watchers)
    }

    /// Makes progress where it can help an operation; again where steps of it begin, whose messages may be there.
    pub fn progress_for(&mut self, id: OperationId) {
        for _ in 0..ROUNDS_PER_LOOK {
            let request = match id {
                OperationId::Message(id) => Some(id),
                OperationId::Collective(id) => self.running.get(id).and_then(Running::only_request),
                OperationId::Signal(_) => None,
            };
            match request {
                Some(request) => self.progress_for_message(request),
                None => _ = self.progress(),
            }
            let OperationId::Collective(id) = id else { return };
            if !self.running.get_mut(id).is_some_and(Running::has_begun_more) {
                return;
            }
        }
    }

    /// Makes progress where it can help a message, once.
    #[inline(always)]
    pub fn progress_for_message(&mut self, id: RequestId) {
        self.endpoint.progress_for(id);
        if !self.running.is_idle() {
            self.advance_all(u64::MAX);
        }
    }

    /// The last look before sleep, and everything given out that others may wait for.
    pub fn progress_thoroughly(&mut self) -> bool {
        self.make_room();
        self.have_watched();
        // A thread that waits for an agreement looks by itself.
        let mut any = self.endpoint.progress_thoroughly() | (self.agreeing != 0);
        if !self.message_agreements.are_idle() {
            any |= self.advance_agreements();
        }
        self.forget_released();
        if self.running.is_idle() {
            return any;
        }
        let mut advanced = false;
        while self.advance_all(u64::MAX) {
            // A step that begins may find a message that came before, of which nobody tells again.
            advanced = true;
            self.endpoint.progress_thoroughly();
        }
        for id in self.running.active().to_vec() {
            self.judge(id);
        }
        self.look_for_mismatches();
        any | advanced
    }

    #[cold]
    #[inline(never)]
    fn advance_all(&mut self, allowance: u64) -> bool {
        self.make_room();
        let mut moved = false;
        let mut at = 0;
        while let Some(&id) = self.running.active().get(at) {
            at += 1;
            if let Some(running) = self.running.get_mut(id) {
                let group = self.groups.get_mut(&running.place().context);
                let board = group.and_then(GroupState::any_board_mut);
                let mut allowance = running.piece_of(allowance);
                moved |= running.advance(&mut self.endpoint, board, &mut allowance);
            }
        }
        if moved {
            self.retire();
        }
        moved
    }

    /// Whether an operation has ended (or is not there).
    #[inline]
    pub fn is_done(&self, id: OperationId) -> bool {
        match id {
            OperationId::Message(id) => self.endpoint.is_done(id),
            OperationId::Collective(id) => {
                self.running.get(id).is_none_or(|running| running.outcome().is_some())
            }
            OperationId::Signal(id) => self.signals.is_over(id).unwrap_or(true),
        }
    }

    /// Takes the result of an operation that has ended; the operation is no more. None when it
    /// goes on.
    #[inline]
    pub fn take(&mut self, id: OperationId) -> Option<Result<Completion, WaitError>> {
        match id {
            OperationId::Message(id) => {
                let completion = self.endpoint.take(id)?;
                Some(match completion.result {
                    Ok(_) => Ok(completion),
                    Err(failure) => Err(WaitError::Failure(failure)),
                })
            }
            OperationId::Collective(id) => self.take_collective(id),
            OperationId::Signal(id) => self.take_signal(id),
        }
    }

    fn take_signal(&mut self, id: SignalId) -> Option<Result<Completion, WaitError>> {
        match self.signals.is_over(id) {
            None => Some(Err(WaitError::Failure(Failure::Gone))),
            Some(false) => None,
            Some(true) => {
                self.signals.remove(id);
                let status = Status { peer: Peer(u32::MAX), tag: 0, bytes: 0, cancelled: false };
                Some(Ok(Completion { result: Ok(status), data: None }))
            }
        }
    }

    /// Grows with everything that may have ended an operation, or made one hopeless.
    #[inline]
    pub fn changes(&self) -> u64 {
        let messages = self.endpoint.changes();
        messages.wrapping_add(self.running.endings()).wrapping_add(self.signals.endings())
    }

    /// Leaves an operation to itself: nobody will ask for it.
    pub fn release(&mut self, id: OperationId) {
        self.released.push(id);
        self.forget_released();
    }

    fn forget_released(&mut self) {
        let mut released = std::mem::take(&mut self.released);
        // How they ended is nobody's business any more.
        released.retain(|&id| self.take(id).is_none());
        self.released = released;
    }

    fn take_collective(&mut self, id: CollectiveId) -> Option<Result<Completion, WaitError>> {
        let Some(running) = self.running.get(id) else {
            return Some(Err(WaitError::Failure(Failure::Gone)));
        };
        let outcome = running.outcome()?.clone();
        let peer = running.place().members[running.place().member as usize];
        let (tag, context) = (running.signature().tag(), running.place().context);
        let by_messages = running.goes_by_messages();
        self.running.remove(id);
        let status = Status { peer, tag, bytes: 0, cancelled: false };
        let outcome = match outcome {
            Ok(()) if by_messages => self.in_step(context),
            outcome => outcome,
        };
        Some(match outcome {
            Ok(()) => Ok(Completion { result: Ok(status), data: None }),
            Err(fault) => Err(WaitError::Collective(self.explained(context, fault))),
        })
    }

    /// Why somebody is gone, if it said so before: a mismatch that it has found. One that was found
    /// here is told to all.
    #[cold]
    fn explained(&mut self, context: u32, fault: Fault) -> Fault {
        let Some(group) = self.groups.get_mut(&context) else { return fault };
        match fault {
            Fault::Failure(Failure::PeerGone { .. }) => {
                let told = group.told_mismatch(&mut self.endpoint);
                told.map(Fault::Mismatch).unwrap_or_else(|| {
                    // Those that did not need the dead may wait for this member at the board.
                    group.refuse();
                    fault
                })
            }
            Fault::Mismatch(mismatch) => {
                group.note_mismatch(&mut self.endpoint, mismatch);
                fault
            }
            _ => fault,
        }
    }

    /// Cancels a message that has not begun; collective operations go on.
    pub fn cancel(&mut self, id: OperationId) {
        if let OperationId::Message(id) = id {
            self.endpoint.cancel(id);
        }
    }

    /// Gives up a message that has not begun. True when the operation is still to be waited for.
    pub fn give_up(&mut self, id: OperationId) -> bool {
        match id {
            OperationId::Message(id) => self.endpoint.give_up(id),
            OperationId::Collective(id) => self.running.get(id).is_some(),
            OperationId::Signal(id) => self.signals.is_over(id).is_some(),
        }
    }

    /// Gives up an operation whose time is over; what has begun to come is the next receive's. False when it
    /// is still to be waited for. Otherwise the caller forgets its number.
    pub fn put_back(&mut self, id: OperationId) -> bool {
        match id {
            OperationId::Message(id) => self.endpoint.put_back(id),
            other => {
                let goes_on = self.give_up(other);
                if !goes_on {
                    self.abandon(other);
                }
                !goes_on
            }
        }
    }

    /// Ends an operation whatever it is doing, with no result: its memory may go.
    pub fn abandon(&mut self, id: OperationId) {
        match id {
            OperationId::Message(id) => self.endpoint.abandon(id),
            OperationId::Collective(id) => {
                if let Some(mut running) = self.running.remove(id) {
                    running.abandon(&mut self.endpoint);
                }
            }
            OperationId::Signal(id) => self.signals.remove(id),
        }
    }

    /// For a thread that waits, after a change of the membership: can this operation still complete?
    pub fn verdict(&mut self, id: OperationId) -> Option<End> {
        match id {
            OperationId::Message(id) => self.endpoint.verdict(id),
            OperationId::Collective(id) => {
                self.endpoint.refresh();
                self.judge(id);
                None
            }
            OperationId::Signal(_) => None,
        }
    }

    /// For a thread that looks and may do something else. A collective operation cannot be cancelled, so it makes no
    /// difference there.
    pub fn verdict_of_look(&mut self, id: OperationId) -> Option<End> {
        match id {
            OperationId::Message(id) => self.endpoint.verdict_of_look(id),
            other => self.verdict(other),
        }
    }

    fn judge(&mut self, id: CollectiveId) {
        if let Some(running) = self.running.get_mut(id) {
            let group = self.groups.get_mut(&running.place().context);
            running.judge(&mut self.endpoint, group.and_then(GroupState::any_board_mut));
            let context = running.place().context;
            self.retire();
            self.heed_alarms(context);
        }
    }

    /// Whether an operation may never complete and nobody will tell it so.
    pub fn is_hopeless(&self, id: OperationId) -> bool {
        match id {
            OperationId::Message(id) => self.endpoint.is_hopeless(id),
            OperationId::Collective(_) | OperationId::Signal(_) => false,
        }
    }

    /// The reason why an operation may never complete.
    pub fn failure_of_pending(&self, id: OperationId) -> Option<Failure> {
        match id {
            OperationId::Message(id) => self.endpoint.failure_of_pending(id),
            OperationId::Collective(_) | OperationId::Signal(_) => None,
        }
    }

    /// The slots any of which can end one of these operations; empty where that is not known.
    pub fn any_of(&self, operations: impl Iterator<Item = OperationId>) -> Vec<u32> {
        let mut slots = Vec::new();
        for operation in operations {
            let OperationId::Message(id) = operation else { return Vec::new() };
            let Some(peer) = self.endpoint.wait_record(id).peer else { return Vec::new() };
            slots.push(peer);
        }
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    /// The members of the group of a context, for readers from outside; empty if they know them: from the group's
    /// board, or as the first world.
    pub fn members_without_board(&self, context: u32) -> Vec<u32> {
        let context = ContextId(context).of_group();
        let group = self.groups.get(&context.0).filter(|_| context != ContextId::WORLD);
        let group = group.filter(|group| group.board.is_none());
        group.map_or_else(Vec::new, |group| group.place.members.iter().map(|peer| peer.0).collect())
    }

    /// The record of a wait for this operation, for readers from outside.
    pub fn wait_record(&self, id: OperationId) -> WaitRecord {
        match id {
            OperationId::Message(id) => self.endpoint.wait_record(id),
            OperationId::Collective(id) => {
                let Some(running) = self.running.get(id) else { return WaitRecord::default() };
                let request = running.only_request();
                let record = request.map(|id| self.endpoint.wait_record(id)).unwrap_or_default();
                let context = running.place().context;
                let at_board = || running.awaited_at_board(self.board_of(context)?);
                WaitRecord {
                    operation: Waited::Collective,
                    peer: record.peer.or_else(at_board),
                    tag: Some(running.signature().tag()),
                    context,
                    bytes: record.bytes,
                    since_ns: 0,
                    board: self.endpoint.board_of(context).unwrap_or(0),
                    number: running.number_on_board().unwrap_or(0),
                    way: record.way,
                }
            }
            OperationId::Signal(_) => {
                WaitRecord { operation: Waited::Wait, ..WaitRecord::default() }
            }
        }
    }

    /// Revokes a context here, and its collective operations.
    pub fn revoke(&mut self, context: u32) {
        self.endpoint.revoke(context);
        self.endpoint.revoke(collective_context(context));
        // Those that wait at the board of a host hear of it by messages, as members on other hosts do.
        self.fail_all(context, &Failure::Revoked.into());
    }

    fn fail_all(&mut self, context: u32, fault: &Fault) {
        for id in self.running.active().to_vec() {
            if let Some(running) = self.running.get_mut(id)
                && running.place().context == context
            {
                running.fail(&mut self.endpoint, fault.clone());
            }
        }
        self.running.retire();
    }

    /// Looks whether members called other operations than this one: then the messages of theirs
    /// wait here, and nobody will ask for them.
    #[cold]
    fn look_for_mismatches(&mut self) {
        for id in self.running.active().to_vec() {
            let Some(running) = self.running.get(id) else { continue };
            let context = running.place().context;
            let Some(group) = self.groups.get_mut(&context) else { continue };
            if let Some(mismatch) = group.look_for_mismatch(&mut self.endpoint) {
                group.mismatch = Some(mismatch);
                group.tell_all(&mut self.endpoint, &mismatch);
                self.fail_all(context, &Fault::Mismatch(mismatch));
            } else if group.departure.is_some() {
                self.end_without_leaver(context);
            } else if let Some(running) = self.running.get_mut(id) {
                running.remark_if_long(&mut self.endpoint);
            }
        }
    }
}

/// The fault that a failure at the board of a group is for the caller.
#[cold]
pub(crate) fn board_fault(
    endpoint: &mut Endpoint<SharedMemory>,
    group: &mut GroupState,
    operation: Operation,
    error: BoardError,
) -> Fault {
    // Another member may have said on the board who is gone before this process heard of it.
    endpoint.refresh_from_records();
    let loss = loss_behind(endpoint, &group.place, &error);
    let fault = fault_of(error, operation, &group.place, loss);
    if let Fault::Mismatch(mismatch) = fault {
        group.note_mismatch(endpoint, mismatch);
    }
    fault
}
