//! The state that all handles of one process share: its engine, and the turn to wait.
//!
//! In thread mode multiple one thread at a time waits for all: it polls and, when there is
//! nothing to do, sleeps on the process's word. The other threads follow: they sleep until it
//! finds their requests complete, or until it leaves and calls the next of them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use landeck_channel::Peer;
use landeck_collectives::Settings;
use landeck_kernel::{Area, Completion, Endpoint, Failure, RequestId, Started, Status, Wanted};
use landeck_memory::system::now_ns;
use landeck_memory::waiter::{Doorbell, Follower};
use landeck_memory::{
    Bytes, End, Gate, GateError, JobState, Operation, Segment, ThreadMode, WaitRecord, Waiter,
};
use landeck_transports::SharedMemory;
use landeck_transports::wake_thread::WakeThread;
use landeck_wire::{Incarnation, ProcessId, SegmentId, Slot};

use crate::engine::START_BYTES;
use crate::mismatch::Mismatch;
use crate::signals::SignalId;
use crate::{Engine, OperationId, WaitError};

mod helper;
mod waits;

use helper::Assisted;
pub(crate) use helper::Helper;
pub use helper::Progress;
use waits::{AnyOf, Assisting, InTurn, OneRequest};

/// How often a process that leaves looks whether its goodbye has arrived on other hosts.
const ARRIVED_LOOK_NS: u64 = 1_000_000;

/// The state that all handles of one process share.
pub struct Shared {
    /// The shared memory of this host.
    pub segment: Segment,
    /// The slot of this process.
    pub slot: u32,
    /// Members compare what must agree in collective operations, unless a world says otherwise.
    pub is_checked: bool,
    /// The engine, for one thread at a time.
    pub engine: Gate<Engine>,
    /// The waiter of the process, for the thread that waits for all.
    pub turn: Gate<Waiter>,
    followers: Mutex<Vec<(Option<OperationId>, Arc<Follower>)>>,
    follower_count: AtomicUsize,
    /// Wakes the thread that has the turn and sleeps.
    bell: Doorbell,
    /// None until the first sleep of a process with sockets.
    wake_thread: Mutex<Option<WakeThread>>,
    /// The thread that advances operations while nobody calls, where one was asked for.
    pub(crate) helper: Option<Arc<Helper>>,
}

impl Shared {
    /// The state of a new process. None when its slot or the segment does not have what a process needs.
    pub fn new(segment: &Segment, slot: u32, mode: ThreadMode, progress: Progress) -> Option<Self> {
        let near = SharedMemory::new(segment, slot)?;
        let settings = Settings::from_words(&segment.plan().settings);
        let mut waiter = Waiter::new(segment, slot);
        if let Some(sharing) = settings.sharing {
            waiter.share_processors(sharing.hosts);
        }
        Some(Self {
            segment: segment.clone(),
            slot,
            is_checked: settings.is_checked,
            engine: Gate::new(
                mode,
                Engine::new(segment, slot, Endpoint::new(near, segment, slot)?),
            ),
            turn: Gate::new(mode, waiter),
            followers: Mutex::default(),
            follower_count: AtomicUsize::new(0),
            bell: Doorbell::of(segment, slot)?,
            wake_thread: Mutex::default(),
            helper: (progress == Progress::Thread).then(Arc::default),
        })
    }

    /// Sends a message and returns when its memory may be used again.
    ///
    /// # Errors
    /// [`WaitError`], as all waits.
    #[inline]
    pub fn send(&self, to: Peer, context: u32, tag: u32, area: Area) -> Result<(), WaitError> {
        let mut engine = self.engine.enter()?;
        if let Some(bytes) = area.one_piece()
            && engine.endpoint.send_now(to, context, tag, bytes)
        {
            return Ok(());
        }
        drop(engine);
        self.send_slow(to, context, tag, area)
    }

    /// Sends what could not go at once in one piece.
    #[inline(never)]
    fn send_slow(&self, to: Peer, context: u32, tag: u32, area: Area) -> Result<(), WaitError> {
        let mut engine = self.engine.enter()?;
        let started =
            engine.endpoint.send_slow(to, context, tag, area).map_err(WaitError::Failure)?;
        drop(engine);
        match started {
            Started::Complete(_) => Ok(()),
            Started::Pending(id) => self.wait_or_abandon(id.into(), None).map(|_| ()),
        }
    }

    /// Receives into an area.
    ///
    /// # Errors
    /// [`WaitError`], as all waits; [`WaitError::TimedOut`] after the deadline.
    #[inline]
    pub fn receive(
        &self,
        wanted: Wanted,
        area: Area,
        deadline_ns: Option<u64>,
    ) -> Result<Status, WaitError> {
        let mut status = Status::NONE;
        let found = self
            .receive_at_once(|engine| engine.endpoint.receive_now(&wanted, &area, &mut status))?;
        if let Some(result) = found {
            return result.map(|()| status).map_err(|failure| WaitError::Failure(*failure));
        }
        let id = self.engine.enter()?.endpoint.receive(wanted, area);
        self.wait_or_abandon(id.into(), deadline_ns)?.result.map_err(WaitError::Failure)
    }

    /// Begins to receive into an area. A process with one thread looks first for what has come. Where there are
    /// several threads, what has come may be for another one.
    ///
    /// # Errors
    /// [`GateError`] when this thread may not call.
    #[inline]
    pub fn begin_receive(&self, wanted: Wanted, area: Area) -> Result<Started, GateError> {
        let mut engine = self.engine.enter()?;
        Ok(match self.engine.mode() {
            ThreadMode::Single => engine.endpoint.begin_receive(wanted, area),
            ThreadMode::Multiple => Started::Pending(engine.endpoint.receive(wanted, area)),
        })
    }

    /// Receives into an area if the message comes before long and the area has room for it. Any other message is
    /// kept. True if it came: then `status` describes it.
    ///
    /// # Errors
    /// [`GateError`] when this thread may not call.
    #[inline(never)]
    pub fn receive_whole_now(
        &self,
        wanted: &Wanted,
        area: &Area,
        status: &mut Status,
    ) -> Result<bool, GateError> {
        let found = self.receive_at_once(|engine| {
            engine.endpoint.receive_whole_now(wanted, area, status).then_some(())
        });
        Ok(found?.is_some())
    }

    /// Receives a message of any length.
    ///
    /// # Errors
    /// [`WaitError`], as all waits.
    pub fn receive_own(&self, wanted: Wanted) -> Result<Completion, WaitError> {
        let found = self.receive_at_once(|engine| engine.endpoint.receive_own_now(&wanted))?;
        if let Some(completion) = found {
            return Ok(completion);
        }
        let id = self.engine.enter()?.endpoint.receive_own(wanted);
        self.wait_or_abandon(id.into(), None)
    }

    /// Receives a message of any length, unless `hopeless` finds why it is no longer waited for. Memory and message
    /// are free afterwards, whatever happens.
    ///
    /// # Errors
    /// The failure that `hopeless` finds; [`WaitError`], as all waits.
    pub fn receive_own_unless(
        &self,
        wanted: Wanted,
        mut hopeless: impl FnMut(&mut Engine) -> Option<Failure>,
    ) -> Result<Completion, WaitError> {
        let mut engine = self.engine.enter()?;
        let id = OperationId::from(engine.endpoint.receive_own(wanted));
        let record = engine.wait_record(id);
        drop(engine);
        let ready = |engine: &mut Engine| {
            engine.take(id).or_else(|| {
                let failure = hopeless(engine)?;
                // The look that has found the reason may have brought the message.
                Some(engine.take(id).unwrap_or(Err(WaitError::Failure(failure))))
            })
        };
        let received =
            self.wait_for(Some(id), &record, None, ready, &nobody).and_then(|ended| ended);
        if received.is_err() {
            self.engine.enter()?.abandon(id);
        }
        received
    }

    /// The first step of a wait for something that others write to memory: looks a few times.
    ///
    /// # Errors
    /// [`GateError`] when this thread may not call.
    #[inline]
    pub fn spin_once(&self, is_there: impl FnMut() -> bool) -> Result<bool, GateError> {
        let Some(mut waiter) = self.turn.try_enter()? else { return Ok(false) };
        let found = waiter.look(is_there);
        drop(waiter);
        self.call_next();
        Ok(found)
    }

    /// The first step of a receive: looks a few times for its message.
    #[inline(always)]
    fn receive_at_once<T>(
        &self,
        take: impl FnMut(&mut Engine) -> Option<T>,
    ) -> Result<Option<T>, GateError> {
        match self.engine.mode() {
            ThreadMode::Single => self.receive_now(take),
            ThreadMode::Multiple => self.receive_in_turn(take),
        }
    }

    /// The first step of a receive that is alone.
    #[inline(always)]
    fn receive_now<T>(
        &self,
        mut take: impl FnMut(&mut Engine) -> Option<T>,
    ) -> Result<Option<T>, GateError> {
        let mut engine = self.engine.enter()?;
        let mut result = None;
        if engine.is_quiet() {
            self.turn.enter()?.look(|| {
                result = take(&mut engine);
                result.is_some() || !engine.is_quiet()
            });
        }
        Ok(result)
    }

    /// The first step of a receive where other threads may come in between; nothing if one of them has the turn. Apart,
    /// lest a process with one thread pay for it.
    #[inline(never)]
    fn receive_in_turn<T>(
        &self,
        mut take: impl FnMut(&mut Engine) -> Option<T>,
    ) -> Result<Option<T>, GateError> {
        let Some(mut waiter) = self.turn.try_enter()? else { return Ok(None) };
        let mut result = None;
        waiter.look(|| {
            // An engine that cannot be entered ends the look; the next call says why.
            let Ok(mut engine) = self.engine.enter() else { return true };
            if !engine.is_quiet() {
                return true;
            }
            result = take(&mut engine);
            result.is_some()
        });
        drop(waiter);
        self.call_next();
        Ok(result)
    }

    /// The first step of a wait: what is known of a message that has ended well after a few looks at
    /// most. None when it takes more.
    #[inline]
    pub fn ended_well(&self, id: OperationId) -> Option<Status> {
        let OperationId::Message(message) = id else { return None };
        // An engine that cannot be entered ends the wait; the next step says why.
        let mut engine = self.engine.enter().ok()?;
        let status = engine.endpoint.take_well(message);
        if status.is_some() {
            return status;
        }
        match self.engine.mode() {
            ThreadMode::Single => self.ended_alone(&mut engine, message),
            ThreadMode::Multiple => {
                drop(engine);
                self.ended_in_turn(message)
            }
        }
    }

    /// The first step of a wait of the only thread for a message that is not complete yet.
    #[inline(never)]
    fn ended_alone(&self, engine: &mut Engine, message: RequestId) -> Option<Status> {
        let mut status = None;
        self.turn.enter().ok()?.look(|| {
            engine.progress_for_message(message);
            status = engine.endpoint.take_well(message);
            status.is_some() || engine.is_done(message.into())
        });
        status
    }

    /// The first step of a wait where threads wait for each other and a message may be for another one: looks a few
    /// times, if no other thread has the turn.
    #[inline(never)]
    fn ended_in_turn(&self, message: RequestId) -> Option<Status> {
        let mut waiter = self.turn.try_enter().ok()??;
        let mut status = None;
        waiter.look(|| {
            let Ok(mut engine) = self.engine.enter() else { return true };
            let moved = engine.progress();
            status = engine.endpoint.take_well(message);
            self.call_ready(&engine, moved);
            status.is_some()
        });
        drop(waiter);
        self.call_next();
        status
    }

    /// Waits for an operation. Whatever happens, it is complete afterwards and its memory is free.
    ///
    /// # Errors
    /// The failure of the operation; [`WaitError`], as all waits.
    #[inline]
    pub fn wait_or_abandon(
        &self,
        id: OperationId,
        deadline_ns: Option<u64>,
    ) -> Result<Completion, WaitError> {
        let mut deadline_ns = deadline_ns;
        loop {
            let waited = self.wait(id, deadline_ns);
            let Err(error) = waited else { return waited };
            let mut engine = self.engine.enter()?;
            // Another thread may have brought its message in since.
            let goes_on = match error {
                WaitError::Failure(_) => engine.give_up(id),
                // Parts of a message that are still to come name this request, which is the kernel's from now on.
                WaitError::TimedOut if engine.put_back(id) => return Err(error),
                WaitError::TimedOut => {
                    deadline_ns = None;
                    true
                }
                _ => false,
            };
            if !goes_on {
                engine.abandon(id);
                return Err(error);
            }
        }
    }

    /// Waits for a request. After an error other than its own failure it goes on.
    #[inline]
    pub(crate) fn wait(
        &self,
        id: OperationId,
        deadline_ns: Option<u64>,
    ) -> Result<Completion, WaitError> {
        match self.engine.mode() {
            ThreadMode::Single => self.wait_alone(id, deadline_ns),
            ThreadMode::Multiple => self.wait_in_turn(id, deadline_ns),
        }
    }

    #[inline]
    fn wait_alone(
        &self,
        id: OperationId,
        deadline_ns: Option<u64>,
    ) -> Result<Completion, WaitError> {
        let mut engine = self.engine.enter()?;
        if let Some(ended) = engine.take(id) {
            return ended;
        }
        let mut waiter = self.turn.enter()?;
        let mut request = OneRequest { shared: self, engine: &mut engine, id, is_hopeless: false };
        let end = waiter.wait(&mut request, deadline_ns);
        engine.wake_up();
        match engine.take(id) {
            Some(ended) => ended,
            None => Err(why(&engine, Some(id), end)),
        }
    }

    fn wait_in_turn(
        &self,
        id: OperationId,
        deadline_ns: Option<u64>,
    ) -> Result<Completion, WaitError> {
        let record = WaitRecord { operation: Operation::Wait, ..WaitRecord::default() };
        self.wait_for(Some(id), &record, deadline_ns, |engine| engine.take(id), &nobody)?
    }

    /// Waits until `ready` finds something. It is called with the engine entered, after progress.
    ///
    /// # Errors
    /// [`WaitError`], as all waits.
    pub fn wait_until<T>(
        &self,
        record: &WaitRecord,
        deadline_ns: Option<u64>,
        ready: impl FnMut(&mut Engine) -> Option<T>,
    ) -> Result<T, WaitError> {
        self.wait_for(None, record, deadline_ns, ready, &nobody)
    }

    /// Waits until `ready` finds something that any of several processes can bring. Once the wait has lasted for
    /// long, `any_of` says which processes these are.
    ///
    /// # Errors
    /// [`WaitError`], as all waits.
    pub fn wait_until_any<T>(
        &self,
        record: &WaitRecord,
        ready: impl FnMut(&mut Engine) -> Option<T>,
        any_of: AnyOf<'_>,
    ) -> Result<T, WaitError> {
        self.wait_for(None, record, None, ready, any_of)
    }

    /// Waits in turn with the other threads: with the turn, or behind the thread that has it.
    fn wait_for<T>(
        &self,
        id: Option<OperationId>,
        record: &WaitRecord,
        deadline_ns: Option<u64>,
        mut ready: impl FnMut(&mut Engine) -> Option<T>,
        any_of: AnyOf<'_>,
    ) -> Result<T, WaitError> {
        let mut follower = None;
        let result = loop {
            if let Some(found) = self.look(&mut ready)? {
                break Ok(found);
            }
            if let Some(mut waiter) = self.turn.try_enter()? {
                let known = (record, any_of);
                break self.wait_with_turn(&mut waiter, id, known, deadline_ns, &mut ready);
            }
            match &follower {
                // First join the followers, then look once more whether it is our turn: a thread that leaves the turn
                // after that calls us.
                None => {
                    follower = Some(self.follow(id));
                    // The thread with the turn, which may sleep, has not looked at this request yet: a
                    // send without room asks for room in the last look before sleep.
                    self.bell.ring();
                }
                Some(own) => {
                    own.sleep(deadline_ns);
                    if let Some(end) = self.verdict(id, deadline_ns)? {
                        break self.conclude(id, end, &mut ready);
                    }
                }
            }
        };
        if let Some(own) = follower {
            self.unfollow(&own);
        }
        self.call_next();
        result
    }

    fn wait_with_turn<T>(
        &self,
        waiter: &mut Waiter,
        id: Option<OperationId>,
        (record, any_of): (&WaitRecord, AnyOf<'_>),
        deadline_ns: Option<u64>,
        ready: &mut impl FnMut(&mut Engine) -> Option<T>,
    ) -> Result<T, WaitError> {
        let mut found = None;
        let found_place = &mut found;
        let mut turn = InTurn {
            shared: self,
            id,
            record,
            any_of,
            found: found_place,
            ready,
            news: self.segment.news(self.slot),
            is_hopeless: false,
        };
        let end = waiter.wait(&mut turn, deadline_ns);
        let mut engine = self.engine.enter()?;
        engine.wake_up();
        drop(engine);
        match found {
            Some(found) => Ok(found),
            None => self.conclude(id, end, ready),
        }
    }

    /// The verdict of the waiter, for a thread behind it.
    fn verdict(
        &self,
        id: Option<OperationId>,
        deadline_ns: Option<u64>,
    ) -> Result<Option<End>, WaitError> {
        if self.segment.job_state() == JobState::Ending {
            return Ok(Some(End::Ended));
        }
        if deadline_ns.is_some_and(|deadline| now_ns() >= deadline) {
            return Ok(Some(End::TimedOut));
        }
        let mut engine = self.engine.enter()?;
        engine.endpoint.refresh();
        Ok(id.and_then(|id| engine.verdict(id)))
    }

    fn conclude<T>(
        &self,
        id: Option<OperationId>,
        end: End,
        ready: &mut impl FnMut(&mut Engine) -> Option<T>,
    ) -> Result<T, WaitError> {
        let mut engine = self.engine.enter()?;
        match ready(&mut engine) {
            Some(found) => Ok(found),
            None => Err(why(&engine, id, end)),
        }
    }

    fn look<T>(
        &self,
        ready: &mut impl FnMut(&mut Engine) -> Option<T>,
    ) -> Result<Option<T>, WaitError> {
        let mut engine = self.engine.enter()?;
        if let Some(found) = ready(&mut engine) {
            return Ok(Some(found));
        }
        if engine.progress() {
            // A message may be for another thread, and what it left undone (room given back, replies)
            // is for the thread with the turn, which may be asleep by now.
            self.call_ready(&engine, true);
            self.bell.ring();
        }
        Ok(ready(&mut engine))
    }

    fn followers(&self) -> MutexGuard<'_, Vec<(Option<OperationId>, Arc<Follower>)>> {
        self.followers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn follow(&self, id: Option<OperationId>) -> Arc<Follower> {
        let follower = Arc::new(Follower::default());
        let mut followers = self.followers();
        followers.push((id, follower.clone()));
        self.follower_count.store(followers.len(), Ordering::SeqCst);
        follower
    }

    fn unfollow(&self, own: &Arc<Follower>) {
        let mut followers = self.followers();
        followers.retain(|(_, follower)| !Arc::ptr_eq(follower, own));
        self.follower_count.store(followers.len(), Ordering::SeqCst);
    }

    /// Calls the followers who may go on: those whose requests are over, and, when something
    /// moved, those who wait for something else.
    pub fn call_ready(&self, engine: &Engine, moved: bool) {
        if self.follower_count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let may_go_on = |id: &Option<OperationId>| id.map_or(moved, |id| engine.is_done(id));
        let followers = self.followers();
        followers.iter().filter(|(id, _)| may_go_on(id)).for_each(|(_, follower)| follower.call());
    }

    /// Advances all that goes on, for a thread that has the turn and waits for something else, and calls the threads that
    /// may go on. `news` is the count of notices from other processes at the last look. False if the engine cannot be
    /// entered.
    pub fn advance_others(
        &self,
        news: &mut u32,
        progress: impl FnOnce(&mut Engine) -> bool,
    ) -> bool {
        let Ok(mut engine) = self.engine.enter() else { return false };
        let moved = progress(&mut engine);
        let now = self.segment.news(self.slot);
        let is_news = std::mem::replace(news, now) != now;
        self.call_ready(&engine, moved || is_news);
        true
    }

    /// Has arrivals on sockets wake this process, which has found nothing and is about to sleep.
    pub fn let_sockets_wake(&self, engine: &Endpoint<SharedMemory>) {
        let Some(network) = engine.network() else { return };
        let mut thread = self.wake_thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let descriptors = network.wake_descriptors();
            let bell = Doorbell::of(&self.segment, self.slot).filter(|_| !descriptors.is_empty());
            *thread = bell.and_then(|bell| WakeThread::start(bell, &descriptors).ok());
        }
        // Without a thread a sleeper looks by itself, some times a second.
        if let Some(thread) = &*thread {
            let _ = thread.arm();
        }
    }

    /// Ends the thread that wakes for sockets; the next sleep starts one for those there are then.
    pub fn forget_wake_thread(&self) {
        *self.wake_thread.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Calls all threads that wait behind the one with the turn.
    pub fn call_all(&self) {
        self.followers().iter().for_each(|(_, follower)| follower.call());
    }

    /// Calls the thread that is to have the turn next: one of those that wait, or else the helping thread.
    #[inline]
    pub fn call_next(&self) {
        if self.is_awaited() || self.helper.is_some() {
            self.call_follower_or_helper();
        }
    }

    #[inline(never)]
    fn call_follower_or_helper(&self) {
        if !self.call_follower()
            && let Some(helper) = &self.helper
        {
            helper.leave_turn();
        }
    }

    fn call_follower(&self) -> bool {
        let is_awaited = self.is_awaited();
        if is_awaited && let Some((_, follower)) = self.followers().first() {
            follower.call();
        }
        is_awaited
    }

    /// Whether somebody waits for the turn.
    pub fn is_awaited(&self) -> bool {
        self.follower_count.load(Ordering::SeqCst) != 0
    }

    /// Whether a thread advances operations while nobody calls.
    pub fn has_helper(&self) -> bool {
        self.helper.is_some()
    }

    /// An operation was begun that goes on after the call.
    #[inline]
    pub fn goes_on(&self) {
        if let Some(helper) = &self.helper {
            helper.call();
        }
    }

    /// Bytes that the call which starts a non-blocking operation moves at most: where a thread
    /// does the rest, none that can wait.
    pub fn start_bytes(&self) -> u64 {
        if self.helper.is_some() { 0 } else { START_BYTES }
    }

    /// Drops the watchers that have ended: what they keep may enter the engine.
    pub fn drop_ended_watchers(&self) {
        let ended = self.engine.enter().map(|mut engine| engine.take_ended_watchers());
        drop(ended);
    }

    /// Whether something was begun that is not over.
    pub(crate) fn has_going(&self) -> bool {
        self.engine.enter().is_ok_and(|engine| engine.goes_on())
    }

    /// The thread's part: advances what goes on until a caller wants the turn, or nothing is left.
    pub(crate) fn assist(&self, helper: &Helper) -> Assisted {
        if !self.has_going() {
            return Assisted::Idle;
        }
        let Ok(Some(mut waiter)) = self.turn.try_enter() else { return Assisted::InTheWay };
        helper.takes_turn();
        let end = waiter.wait(&mut Assisting { shared: self, helper }, None);
        if let Ok(mut engine) = self.engine.enter() {
            engine.wake_up();
        }
        helper.awaits_turn();
        drop(waiter);
        match self.call_follower() || end != End::Ready {
            true => Assisted::InTheWay,
            false => Assisted::Idle,
        }
    }

    /// Looks at one operation: its completion if it has ended.
    ///
    /// # Errors
    /// The failure of the operation; [`WaitError::Gate`].
    pub fn test(&self, id: OperationId) -> Result<Option<Completion>, WaitError> {
        let mut engine = self.engine.enter()?;
        if !engine.is_done(id) {
            engine.look();
            engine.verdict(id);
        }
        engine.take(id).transpose()
    }

    /// Ends an operation that the program ends itself, and wakes the threads that wait for it. False when there is no
    /// such operation (any more).
    ///
    /// # Errors
    /// [`GateError`] when this thread may not call.
    pub fn end_signal(&self, id: SignalId) -> Result<bool, GateError> {
        let mut engine = self.engine.enter()?;
        let is_there = engine.signals.end(id);
        self.call_ready(&engine, true);
        drop(engine);
        self.bell.ring_fenced();
        Ok(is_there)
    }

    /// Waits until everything that was sent has left this process's hands.
    ///
    /// # Errors
    /// [`WaitError`], as all waits; [`WaitError::TimedOut`] after the deadline.
    pub fn drain(&self, deadline_ns: Option<u64>) -> Result<(), WaitError> {
        let record = WaitRecord { operation: Operation::Leave, ..WaitRecord::default() };
        self.wait_until(&record, deadline_ns, |engine| {
            (!engine.endpoint.has_unfinished_sends()).then_some(())
        })
    }

    /// Receives no message of other hosts from now on, waits until what was sent is out of this process's hands, and says
    /// goodbye to the peers that are reached over a network.
    ///
    /// # Errors
    /// [`WaitError`], as all waits.
    pub fn take_leave(&self) -> Result<(), WaitError> {
        self.engine.enter()?.endpoint.receive_no_more();
        self.drain(None)?;
        self.say_goodbye()
    }

    /// Says goodbye to the peers that are reached over a network, and waits until that has arrived on their hosts. A
    /// connection that is closed earlier may lose what was sent last.
    ///
    /// # Errors
    /// [`WaitError`], as all waits.
    fn say_goodbye(&self) -> Result<(), WaitError> {
        if !self.engine.enter()?.endpoint.say_goodbye() {
            return Ok(());
        }
        loop {
            // No descriptor says that the last byte has arrived.
            match self.drain(Some(now_ns() + ARRIVED_LOOK_NS)) {
                Err(WaitError::TimedOut) => {}
                ended => return ended,
            }
        }
    }

    /// Tells the daemon of this host over the network that this process has left: then other hosts hear of it at once, and
    /// not only when the process ends. False if it has no network.
    pub fn tell_departure(&self) -> bool {
        let Ok(mut engine) = self.engine.enter() else { return false };
        engine.endpoint.network_mut().map(|network| network.tell_departure()).is_some()
    }

    /// Before it leaves: that members of a world are out of step, if nobody here was told so.
    pub fn unnoticed_mismatch(&self) -> Option<Mismatch> {
        // A thread that is still inside a call is told by that.
        self.engine.enter().ok()?.unnoticed_mismatch()
    }

    /// Sends if there is room now.
    ///
    /// # Errors
    /// [`WaitError::Failure`], [`WaitError::Gate`].
    pub fn try_send(
        &self,
        to: Peer,
        context: u32,
        tag: u32,
        data: &[u8],
    ) -> Result<bool, WaitError> {
        let mut engine = self.engine.enter()?;
        engine.progress();
        engine.try_send(to, context, tag, (Bytes::from(data), None)).map_err(WaitError::Failure)
    }

    /// The identity of this process.
    pub fn process(&self) -> ProcessId {
        ProcessId {
            segment: SegmentId(self.segment.plan().host),
            slot: Slot(self.slot),
            incarnation: Incarnation(self.segment.slot_record(self.slot).incarnation),
        }
    }

    /// This process's rank in the job's first world; none for a guest.
    pub fn rank(&self) -> Option<usize> {
        self.segment.rank_of(self.slot).map(|rank| rank as usize)
    }
}

/// Why a wait found nothing.
pub fn why(engine: &Engine, id: Option<OperationId>, end: End) -> WaitError {
    match end {
        End::TimedOut => WaitError::TimedOut,
        End::Ended => WaitError::Ended,
        End::Ready | End::PeerFailed | End::Revoked | End::Cancelled => {
            let failure = id.and_then(|id| engine.failure_of_pending(id));
            WaitError::Failure(failure.unwrap_or(Failure::Gone))
        }
    }
}

/// When a wait that begins now for so long is over.
pub fn deadline_ns(time: Option<Duration>) -> Option<u64> {
    time.map(|time| now_ns().saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
}

/// Nobody in particular can end a wait.
fn nobody(_: &Engine) -> Vec<u32> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_memory::SegmentPlan;
    use landeck_testing::Watchdog;
    use std::time::Duration;

    /// Enters the engine when it goes, as a mailbox of a group's server does.
    struct Enters(Arc<Shared>);

    impl Drop for Enters {
        fn drop(&mut self) {
            drop(self.0.engine.enter().unwrap());
        }
    }

    #[test]
    fn state_that_a_watcher_keeps_may_enter_the_engine_when_the_watcher_ends() {
        let _watchdog = Watchdog::start(Duration::from_secs(60));
        let segment = Segment::local(&SegmentPlan { guests: 0, ..SegmentPlan::new(1, 1) });
        let shared = Shared::new(&segment, 0, ThreadMode::Multiple, Progress::Callers).unwrap();
        let shared = Arc::new(shared);
        let kept = Enters(Arc::clone(&shared));
        let watcher = Box::new(move || {
            let _kept = &kept;
            false
        });
        shared.engine.enter().unwrap().watch(watcher);
        assert_eq!(Arc::strong_count(&shared), 2, "it is not dropped inside");
        shared.drop_ended_watchers();
        assert_eq!(Arc::strong_count(&shared), 1);
    }
}
