//! Waiting at the board: blocking calls of collective operations, which poll it themselves.
//!
//! A call with short data in a process with one thread keeps the endpoint while it waits, if nothing else goes on. Every
//! other wait enters the engine with each look, and looks after the other threads and the operations in the table.

use landeck_board::Board;
use landeck_kernel::Endpoint;
use landeck_memory::scheduler_order::SchedulerOrder;
use landeck_memory::waiter::{Patience, Waiting};
use landeck_memory::{End, GateError, LaneRecord, Operation, WaitRecord, Waiter};
use landeck_transports::SharedMemory;

use crate::Engine;
use crate::Fault;
use crate::WaitError;
use crate::board::BoardError;
use crate::board::polled::Polled;
use crate::board::scan_scope::ScanScope;
use crate::engine::{Ready, board_fault};
use crate::group::GroupState;
use crate::identity::GroupRef;
use crate::judging::judged;
use crate::threads::shared::{Shared, why};
use crate::wait_error::Ended;

impl Shared {
    /// Waits for an operation with short data that has begun, as the only thread, while nothing else goes on.
    #[inline(always)]
    pub(crate) fn wait_at_board_alone(
        &self,
        waiter: &mut Waiter,
        ready: Ready<'_>,
        stage: &mut Stage<'_, impl Polled>,
    ) -> End {
        let Ready { group, endpoint, .. } = ready;
        let mut wait = BoardWait { shared: self, group, endpoint, stage };
        let end = waiter.wait(&mut wait, None);
        wait.wake_up();
        end
    }

    /// Looks first for an operation that has begun, which often completes it. If nothing else goes on, this thread keeps
    /// the endpoint for the first step of the wait, until another thread wants it.
    #[inline(always)]
    pub(crate) fn look_first(
        &self,
        waiter: &mut Waiter,
        ready: Ready<'_>,
        stage: &mut Stage<'_, impl Polled>,
    ) {
        let Ready { group, endpoint, is_idle } = ready;
        let mut wait = BoardWait { shared: self, group, endpoint, stage };
        wait.look();
        let is_undisturbed = || is_idle && self.engine.is_of_one_thread();
        if wait.stage.outcome.is_none() && is_undisturbed() && !waiter.is_oversubscribed() {
            waiter.look(|| wait.poll() || !is_undisturbed());
        }
    }

    /// Waits for an operation as the thread that has the turn, and looks after all that goes on besides.
    pub(crate) fn wait_at_board_with_turn(
        &self,
        waiter: &mut Waiter,
        of: GroupRef<'_>,
        stage: &mut Stage<'_, impl Polled>,
    ) -> Ended {
        let (context, size) = (of.context, of.size());
        let news = self.segment.news(self.slot);
        let mut wait =
            SharedBoardWait { shared: self, context, size, stage, news, has_slept: false };
        let end = waiter.wait(&mut wait, None);
        let has_slept = wait.has_slept;
        match stage.ended() {
            Some(ended) if !has_slept => ended,
            ended => {
                let mut engine = self.engine.enter().map_err(turned_away)?;
                engine.wake_up();
                ended.unwrap_or_else(|| Err(Box::new(why(&engine, None, end))))
            }
        }
    }
}

#[cold]
pub(crate) fn failed(fault: Fault) -> Box<WaitError> {
    Box::new(WaitError::Collective(fault))
}

#[cold]
pub(crate) fn turned_away(error: GateError) -> Box<WaitError> {
    Box::new(error.into())
}

/// The wait of the only thread for the others, while nothing else goes on.
struct BoardWait<'a, 'b, P> {
    shared: &'a Shared,
    group: &'a mut GroupState,
    endpoint: &'a mut Endpoint<SharedMemory>,
    stage: &'a mut Stage<'b, P>,
}

/// How far the wait for an operation is.
pub(crate) struct Stage<'a, P> {
    polled: &'a mut P,
    polls: u32,
    /// How often it was about to sleep.
    sleeps: u32,
    /// Written when it has ended, and not returned by each look: moving it would wait for all that was written before, to
    /// where others poll.
    outcome: Option<Result<(), Box<Fault>>>,
    is_asleep: bool,
    /// When it fell asleep.
    awaits_room: bool,
    /// Deposits on other boards of this process have to come back first, which takes all of the engine.
    pub(crate) lacks_room: bool,
}

impl<'a, P> Stage<'a, P> {
    #[inline(always)]
    pub(crate) fn of(polled: &'a mut P) -> Self {
        let (is_asleep, awaits_room, lacks_room) = (false, false, false);
        Self { polled, polls: 0, sleeps: 0, outcome: None, is_asleep, awaits_room, lacks_room }
    }

    /// How the operation ended, for its caller; none if it goes on.
    #[inline(always)]
    pub(crate) fn ended(&mut self) -> Option<Ended> {
        Some(self.outcome.take()?.map_err(|fault| failed(*fault)))
    }
}

impl<P: Polled> BoardWait<'_, '_, P> {
    #[inline]
    fn look(&mut self) {
        let Some(board) = &mut self.group.board else { return };
        match self.stage.polled.look(board, self.endpoint, &mut self.group.combiner) {
            Ok(false) => {
                self.stage.lacks_room =
                    self.stage.polled.awaits_room() && board.room().is_awaited();
            }
            Ok(true) => self.stage.outcome = Some(Ok(())),
            Err(error) => self.fail(error),
        }
    }

    #[cold]
    fn fail(&mut self, error: BoardError) {
        let operation = self.stage.polled.operation();
        let fault = board_fault(self.endpoint, self.group, operation, error);
        self.stage.outcome = Some(Err(Box::new(fault)));
    }

    /// Looks why it can never be over.
    #[cold]
    fn judge(&mut self, scope: ScanScope) {
        self.endpoint.refresh();
        if self.stage.outcome.is_none()
            && let Some(mismatch) = self.group.told_mismatch(self.endpoint)
        {
            self.stage.outcome = Some(Err(Box::new(Fault::Mismatch(mismatch))));
        }
        if let Some(error) = judged(self, |wait| wait.hindrance(scope), Self::moves)
            && self.stage.outcome.is_none()
            && let Some(board) = &mut self.group.board
        {
            let failed = self.stage.polled.give_up(board, error);
            failed.into_iter().for_each(|error| self.fail(error));
        }
    }

    /// The reason why the step at which it is can never be over.
    #[cold]
    fn hindrance(&self, scope: ScanScope) -> Option<BoardError> {
        let board = self.group.board.as_ref().filter(|_| self.stage.outcome.is_none())?;
        self.stage.polled.verdict(board, scope)
    }

    /// Whether a look has brought it on.
    #[cold]
    fn moves(&mut self) -> bool {
        let before = self.stage.polled.progress();
        self.look();
        self.stage.polled.progress() != before
    }

    #[cold]
    fn judge_before_sleep(&mut self) {
        self.stage.sleeps = self.stage.sleeps.wrapping_add(1);
        self.judge(ScanScope::before_sleep(self.stage.sleeps));
    }

    #[inline]
    fn wake_up(&mut self) {
        if self.stage.is_asleep
            && let Some(board) = &self.group.board
        {
            board.wakes(self.stage.awaits_room);
        }
    }
}

impl<P: Polled> Waiting for BoardWait<'_, '_, P> {
    const HAS_YIELD_POLICY: bool = true;

    fn keep_core_ns(&self, core: u32) -> u64 {
        let board = self.group.board.as_ref();
        board.map_or(0, |board| self.stage.polled.neighbours(board, core).keep_core_ns())
    }

    fn order_turns(&self, order: &mut SchedulerOrder, core: u32) {
        let board = self.group.board.as_ref();
        match board.and_then(|board| Some((board, self.stage.polled.rotation(board)?))) {
            Some((board, number)) => order.arrange(number, || board.turn_position(number, core)),
            None => order.restore(),
        }
    }

    fn patience(&self) -> Patience {
        self.stage.polled.patience(self.group.size())
    }

    #[inline]
    fn poll(&mut self) -> bool {
        if self.stage.outcome.is_none() {
            self.look();
            self.stage.polls += 1;
            if self.stage.polls.is_multiple_of(POLLS_PER_PROGRESS) {
                self.endpoint.progress();
            }
        }
        self.stage.outcome.is_some() || self.stage.lacks_room
    }

    fn poll_before_sleep(&mut self) -> bool {
        self.endpoint.progress_thoroughly();
        if !self.poll() {
            self.judge_before_sleep();
        }
        if self.stage.outcome.is_none() {
            self.shared.let_sockets_wake(self.endpoint);
        }
        self.stage.outcome.is_some()
    }

    /// Asked at the beginning of every wait: the words of all are looked at only when something
    /// has happened to the group.
    fn verdict(&mut self) -> Option<End> {
        self.endpoint.refresh();
        let place = &self.group.place;
        let is_revoked = self.group.board.as_ref().is_some_and(Board::is_revoked);
        if is_revoked || self.endpoint.failure_of_group(place.context, &place.members).is_some() {
            self.judge(ScanScope::All);
        }
        self.stage.outcome.as_ref().map(|_| End::PeerFailed)
    }

    fn record(&self) -> WaitRecord {
        let tag = Some(self.stage.polled.signature().tag());
        let (context, number) = (self.group.place.context, self.stage.polled.number());
        let board = self.endpoint.board_of(context).unwrap_or(0);
        let operation = Operation::Collective;
        WaitRecord { operation, tag, context, board, number, ..WaitRecord::default() }
    }

    fn lanes(&mut self, now_ns: u64) -> Vec<LaneRecord> {
        self.endpoint.lanes(now_ns)
    }

    fn prepare_sleep(&mut self) {
        if !self.stage.is_asleep
            && let Some(board) = &self.group.board
        {
            self.stage.awaits_room = self.stage.polled.awaits_room();
            board.sleeps(self.stage.awaits_room);
            self.stage.is_asleep = true;
        }
    }
}

/// The wait of the thread that has the turn for the others of a group, while it looks after the threads behind it and the
/// operations in the table.
struct SharedBoardWait<'a, 'b, P> {
    shared: &'a Shared,
    context: u32,
    size: u32,
    stage: &'a mut Stage<'b, P>,
    /// The count of news at the last look.
    news: u32,
    /// Whether it has said on all boards that it sleeps.
    has_slept: bool,
}

impl<P: Polled> SharedBoardWait<'_, '_, P> {
    /// Does something as the only thread would, which has the endpoint. None when it cannot be entered:
    /// that ends the wait, and the next call says why.
    #[inline]
    fn alone<R>(&mut self, work: impl FnOnce(&mut BoardWait<'_, '_, P>) -> R) -> Option<R> {
        let mut engine = self.shared.engine.enter_in_turn().ok()?;
        let Ready { group, endpoint, .. } = engine.group_of_context(self.context)?;
        let stage = &mut *self.stage;
        Some(work(&mut BoardWait { shared: self.shared, group, endpoint, stage }))
    }

    /// Whether the operation is over, after one look at the board.
    #[inline]
    fn is_over(&mut self) -> bool {
        let is_over = self.alone(|wait| {
            if wait.stage.outcome.is_none() {
                wait.look();
            }
            wait.stage.outcome.is_some()
        });
        if self.stage.lacks_room
            && let Ok(mut engine) = self.shared.engine.enter()
        {
            engine.make_room();
        }
        is_over != Some(false)
    }
}

impl<P: Polled> Waiting for SharedBoardWait<'_, '_, P> {
    const HAS_YIELD_POLICY: bool = true;

    fn keep_core_ns(&self, core: u32) -> u64 {
        let Ok(mut engine) = self.shared.engine.enter() else { return 0 };
        let board =
            engine.group_of_context(self.context).and_then(|ready| ready.group.board.as_ref());
        board.map_or(0, |board| self.stage.polled.neighbours(board, core).keep_core_ns())
    }

    fn patience(&self) -> Patience {
        self.stage.polled.patience(self.size)
    }

    #[inline]
    fn poll(&mut self) -> bool {
        if self.is_over() {
            return true;
        }
        self.stage.polls += 1;
        if self.shared.is_awaited() || self.stage.polls.is_multiple_of(POLLS_PER_PROGRESS) {
            self.shared.advance_others(&mut self.news, Engine::progress);
        }
        false
    }

    fn poll_before_sleep(&mut self) -> bool {
        self.shared.advance_others(&mut self.news, Engine::progress_thoroughly);
        if self.is_over() {
            return true;
        }
        let is_over = self.alone(|wait| {
            wait.judge_before_sleep();
            if wait.stage.outcome.is_none() {
                wait.shared.let_sockets_wake(wait.endpoint);
            }
            wait.stage.outcome.is_some()
        });
        is_over != Some(false)
    }

    fn verdict(&mut self) -> Option<End> {
        self.shared.call_all();
        self.alone(|wait| wait.verdict())?
    }

    fn record(&self) -> WaitRecord {
        let tag = Some(self.stage.polled.signature().tag());
        let (context, number) = (self.context, self.stage.polled.number());
        let engine = self.shared.engine.enter();
        let board = engine.ok().and_then(|engine| engine.endpoint.board_of(context)).unwrap_or(0);
        let operation = Operation::Collective;
        WaitRecord { operation, tag, context, board, number, ..WaitRecord::default() }
    }

    fn lanes(&mut self, now_ns: u64) -> Vec<LaneRecord> {
        self.alone(|wait| wait.lanes(now_ns)).unwrap_or_default()
    }

    /// On all boards, for the other threads' operations too.
    fn prepare_sleep(&mut self) {
        self.has_slept = true;
        if let Ok(mut engine) = self.shared.engine.enter() {
            engine.fall_asleep(Some(self.context));
        }
    }
}

/// In so many polls the messages are looked at once.
const POLLS_PER_PROGRESS: u32 = 32;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use landeck_board::LinesPlace;
    use landeck_channel::Peer;
    use landeck_collectives::{BoardStyle, Operation};
    use landeck_memory::{Buffer, Bytes, Segment, SegmentPlan, SlotRecord, SlotState, ThreadMode};

    use super::*;
    use crate::binding::Blocks;
    use crate::board::polled::PolledCall;
    use crate::call::Call;
    use crate::call::options::CallOptions;
    use crate::context::WORLD_CONTEXT;
    use crate::inline::InlineCollective;
    use crate::threads::shared::Progress;

    fn set_state(segment: &Segment, slot: u32, state: SlotState) {
        let record = SlotRecord { state, incarnation: 1, ..SlotRecord::default() };
        segment.set_slot_record(slot, record);
        segment.announce_membership();
    }

    /// A broadcast of three members at member 1, by its inline form or by a plan, in which member 2 is dead.
    fn heeds_its_own_step_alone(is_inline: bool) {
        let segment = Segment::local(&SegmentPlan { guests: 0, ..SegmentPlan::new(1, 3) });
        (0..3).for_each(|slot| set_state(&segment, slot, SlotState::Alive));
        let lines: Vec<_> =
            (0..3).map(|member| LinesPlace::of_world(segment.plan(), member)).collect();
        let mut root = Board::open(&segment, segment.plan().world_board(), &lines, 0).unwrap();
        let leaf = Shared::new(&segment, 1, ThreadMode::Single, Progress::Callers).unwrap();
        let members: Arc<[Peer]> = (0..3).map(Peer).collect();
        let of = GroupRef { context: WORLD_CONTEXT, members: &members, rank: 1 };
        let mut data = [0u8; 8];
        // SAFETY: the array outlives the operation, and nobody else uses it meanwhile.
        let buffer = unsafe { Buffer::of_mut(&mut data) };
        let mut engine = leaf.engine.enter().unwrap();
        let ready = engine.ready(of).unwrap();
        if is_inline {
            let inline = InlineCollective::new(Operation::Broadcast, 0, buffer, buffer, None, of);
            let mut inline = inline.unwrap();
            ready.group.begin_inline(&mut inline, BoardStyle::Each);
            judge(&leaf, ready, &segment, &mut root, inline);
        } else {
            let call = Call::new(Operation::Broadcast, &CallOptions::default());
            let call = Call { output: Blocks::of(buffer), ..call };
            let board_call = ready.group.board_call(&call, BoardStyle::Each).unwrap();
            judge(&leaf, ready, &segment, &mut root, PolledCall::new(&call, board_call));
        }
        assert_eq!(data, [7; 8]);
    }

    /// A leaf that has no room yet needs all members, who give it. Room comes before the second look.
    fn judge(
        leaf: &Shared,
        Ready { group, endpoint, .. }: Ready<'_>,
        segment: &Segment,
        root: &mut Board,
        mut polled: impl Polled,
    ) {
        let (number, word) = root.begin(polled.signature().call());
        set_state(segment, 2, SlotState::Dead);
        let mut stage = Stage::of(&mut polled);
        let mut wait = BoardWait { shared: leaf, group, endpoint, stage: &mut stage };
        assert!(wait.hindrance(ScanScope::All).is_some());
        wait.judge(ScanScope::All);
        assert!(wait.stage.outcome.is_none(), "a leaf needs its root alone");
        root.come(number, word, 0, Bytes::from(&[7u8; 8][..]));
        wait.look();
        assert!(matches!(stage.outcome, Some(Ok(()))));
    }

    #[test]
    fn a_death_that_hinders_one_step_is_no_verdict_on_the_next() {
        heeds_its_own_step_alone(true);
        heeds_its_own_step_alone(false);
    }
}
