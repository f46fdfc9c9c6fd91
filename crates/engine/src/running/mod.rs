//! One collective operation that goes on in the table: a started call, or a blocking one whose caller does not poll
//! the board itself.
//!
//! Non-blocking and persistent calls, all plans over messages, and calls in thread mode multiple drive this. Nothing
//! here waits: a step that cannot go on stays where it is until the next time. The [`OperationState`] is what all
//! operations have; their steps are those of a board call or those of a plan over messages.

use landeck_board::Board;
use landeck_collectives::{BoardStyle, Signature, Way};
use landeck_kernel::{Endpoint, Failure, RequestId};
use landeck_transports::SharedMemory;

use crate::binding::Owned;
use crate::call::Call;
use crate::fault::Fault;
use crate::group::GroupState;
use crate::identity::GroupIdentity;
use crate::running::at_board::StartedBoardCall;
use crate::running::by_messages::MessageSteps;
use crate::running::state::OperationState;

mod at_board;
mod by_messages;
mod mixed;
pub(crate) mod state;

/// One collective operation that goes on.
pub(crate) struct Running {
    state: OperationState,
    steps: Steps,
}

/// The steps that are left.
#[allow(clippy::large_enum_variant)] // The table boxes the operation as a whole.
enum Steps {
    /// A plan's steps at the board alone.
    Board(StartedBoardCall),
    /// A plan over messages, perhaps with steps at the board in between.
    Messages(MessageSteps),
}

impl Running {
    /// An operation over messages that has not begun.
    pub(crate) fn by_messages(group: &mut GroupState, call: Call, way: &Way) -> Self {
        if let Some(direct) = group.direct(&call) {
            let (state, steps) = MessageSteps::begin_directly(group, call, direct);
            return Self { state, steps: Steps::Messages(steps) };
        }
        let way = &group.without_whole_board(&call, way);
        let (prepared, segments) = group.plan(&call, way);
        let check = call.check_of(way);
        let (state, steps) = MessageSteps::begin(group, call, &prepared, segments, check);
        Self { state, steps: Steps::Messages(steps) }
    }

    /// An operation over the board that has not begun.
    ///
    /// # Errors
    /// [`Fault::NoBoard`].
    pub(crate) fn at_board(
        group: &mut GroupState,
        call: Call,
        style: BoardStyle,
    ) -> Result<Self, Fault> {
        let (state, steps) = StartedBoardCall::begin(group, call, style)?;
        Ok(Self { state, steps: Steps::Board(steps) })
    }

    /// Notes a fault of the call, which takes part all the same with other memory in the place of its own.
    #[cold]
    pub(crate) fn blame(&mut self, fault: Fault, kept: Owned) {
        self.state.defer(fault);
        self.state.go_without(kept.missing());
        self.state.keep(kept);
    }

    /// The group of the operation.
    pub(crate) fn place(&self) -> &GroupIdentity {
        &self.state.place
    }

    /// The call that the members compare.
    pub(crate) fn signature(&self) -> Signature {
        self.state.signature
    }

    /// How it ended; none while it goes on.
    #[inline]
    pub(crate) fn outcome(&self) -> Option<&Result<(), Fault>> {
        self.state.outcome()
    }

    /// Whether it goes over messages.
    pub(crate) fn goes_by_messages(&self) -> bool {
        matches!(self.steps, Steps::Messages(_))
    }

    /// Its number on the board of its group, if that has one.
    pub(crate) fn number_on_board(&self) -> Option<u32> {
        match &self.steps {
            Steps::Board(steps) => Some(steps.number()),
            Steps::Messages(steps) => steps.number_on_board(),
        }
    }

    /// The message it waits for, when it is but one, and nothing else can move it.
    #[inline]
    pub(crate) fn only_request(&self) -> Option<RequestId> {
        match &self.steps {
            Steps::Messages(steps) if !steps.waits_for_messages_alone() => None,
            _ => self.state.only_request(),
        }
    }

    /// The process that it waits for at the board of its host, in a group over hosts.
    #[cold]
    pub(crate) fn awaited_at_board(&self, board: &Board) -> Option<u32> {
        let Steps::Messages(steps) = &self.steps else { return None };
        let member = steps.awaited_member(board)?;
        self.state.place.members.get(member as usize).map(|peer| peer.0)
    }

    /// Whether the call that starts it moves all that it can: others may wait for it while this member computes.
    pub(crate) fn starts_whole(&self) -> bool {
        self.state.is_direct
    }

    /// Whether steps have begun since this was last asked, and it goes on: the messages that they wait for may have come.
    pub(crate) fn has_begun_more(&mut self) -> bool {
        match &mut self.steps {
            Steps::Board(_) => false,
            Steps::Messages(steps) => steps.take_has_begun() && !self.state.has_ended(),
        }
    }

    /// Bytes to move at once, when so many are wished: steps of messages are not divided.
    #[inline]
    pub(crate) fn piece_of(&self, allowance: u64) -> u64 {
        if self.goes_by_messages() { u64::MAX } else { allowance }
    }

    /// Does what can be done now; true when that was anything. At most `allowance` bytes are moved
    /// by steps that begin.
    #[inline]
    pub(crate) fn advance(
        &mut self,
        endpoint: &mut Endpoint<SharedMemory>,
        board: Option<&mut Board>,
        allowance: &mut u64,
    ) -> bool {
        let state = &mut self.state;
        match (&mut self.steps, board) {
            (Steps::Messages(steps), board) => steps.advance(state, endpoint, board, allowance),
            (Steps::Board(steps), Some(board)) => steps.advance(state, endpoint, board, allowance),
            (Steps::Board(_), None) => {
                state.fail(endpoint, Fault::NoBoard);
                true
            }
        }
    }

    /// Before sleep: a member that has waited for long tells those it waits for which call it is in.
    #[cold]
    pub(crate) fn remark_if_long(&mut self, endpoint: &mut Endpoint<SharedMemory>) {
        let at_board = match &self.steps {
            Steps::Messages(steps) => steps.awaited_at_board(),
            Steps::Board(_) => &[],
        };
        self.state.remark_if_long(endpoint, at_board);
    }

    /// Ends it with a failure; its memory is free.
    #[cold]
    pub(crate) fn fail(&mut self, endpoint: &mut Endpoint<SharedMemory>, fault: Fault) {
        self.state.fail(endpoint, fault);
    }

    /// Gives up all its messages.
    pub(crate) fn abandon(&mut self, endpoint: &mut Endpoint<SharedMemory>) {
        self.state.abandon(endpoint);
    }

    /// After a change of the membership: fails if it cannot complete without the dead. What they sent before still
    /// counts.
    #[cold]
    pub(crate) fn judge(
        &mut self,
        endpoint: &mut Endpoint<SharedMemory>,
        mut board: Option<&mut Board>,
    ) {
        if self.state.has_ended() {
            return;
        }
        let state = &mut self.state;
        match (&mut self.steps, board.as_deref_mut()) {
            (Steps::Board(steps), Some(board)) if steps.is_at_board() => {
                steps.judge(state, endpoint, board);
                return;
            }
            (Steps::Messages(steps), Some(board)) => steps.judge_at_board(state, endpoint, board),
            _ => {}
        }
        self.state.judge_messages(endpoint);
        let place = &self.state.place;
        let Some(failure) = endpoint.death_among(place.context, &place.members) else {
            return;
        };
        endpoint.progress_thoroughly();
        while self.advance(endpoint, board.as_deref_mut(), &mut { u64::MAX }) {
            endpoint.progress();
        }
        if !self.state.has_ended() {
            self.give_up(endpoint, board, failure);
        }
    }

    /// Ends it with a failure, and says so at the board of this host.
    #[cold]
    pub(crate) fn give_up(
        &mut self,
        endpoint: &mut Endpoint<SharedMemory>,
        board: Option<&mut Board>,
        failure: Failure,
    ) {
        self.fail(endpoint, failure.into());
        if let (Steps::Messages(steps), Some(board)) = (&mut self.steps, board) {
            steps.leave_board(&self.state, board);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use landeck_board::{LinesPlace, WINDOW};
    use landeck_channel::Peer;
    use landeck_collectives::{Action, Cells, Operation, Plan, Step, Store, Walk};
    use landeck_memory::{Buffer, Bytes, Segment, SegmentPlan, SlotRecord, SlotState, ThreadMode};

    use super::*;
    use crate::binding::Blocks;
    use crate::call::check::Check;
    use crate::call::options::CallOptions;
    use crate::context::WORLD_CONTEXT;
    use crate::engine::Ready;
    use crate::group::plans::Prepared;
    use crate::identity::GroupRef;
    use crate::threads::shared::{Progress, Shared};

    /// An allgather of two members in which the block of member 0 goes over the board, and that of member 1 goes as a
    /// message, once the other one is there, and over the board as well.
    fn mixed_plan(member: u32) -> Prepared {
        let block = |store, block| Cells::new(store, block, 1);
        let step = |action, after: &[u32]| Step { action, after: after.to_vec(), behind: None };
        let own = |into| {
            let from = block(Store::Input, member);
            step(Action::Copy { from, into: block(Store::Output, into) }, &[])
        };
        let steps = match member {
            0 => vec![
                step(Action::Deposit { cells: block(Store::Input, 0), except: None }, &[]),
                own(0),
                step(Action::Receive { from: 1, cells: vec![block(Store::Output, 1)] }, &[]),
                step(
                    Action::Take {
                        from: 1,
                        deposited: block(Store::Input, 1),
                        into: block(Store::Output, 1),
                        resolved: false,
                    },
                    &[0],
                ),
            ],
            _ => vec![
                step(Action::Deposit { cells: block(Store::Input, 1), except: None }, &[]),
                own(1),
                step(
                    Action::Take {
                        from: 0,
                        deposited: block(Store::Input, 0),
                        into: block(Store::Output, 0),
                        resolved: false,
                    },
                    &[0],
                ),
                step(Action::Send { to: 0, cells: vec![block(Store::Output, 1)] }, &[1, 2]),
            ],
        };
        let operation = Operation::AllGather;
        let (scratch, board, order) = (Vec::new(), Vec::new(), Vec::new());
        let (size, root, segments) = (2, 0, 1);
        let plan = Plan { operation, size, member, root, segments, steps, scratch, board, order };
        Prepared { uses_board: plan.uses_board(), relays: false, form: 0, walk: Walk::new(plan) }
    }

    /// Two processes of one segment.
    fn processes() -> [Shared; 2] {
        let segment = Segment::local(&SegmentPlan { guests: 0, ..SegmentPlan::new(1, 2) });
        [0, 1]
            .map(|slot| Shared::new(&segment, slot, ThreadMode::Single, Progress::Callers).unwrap())
    }

    fn call(input: &[u8], output: &mut [u8]) -> Call {
        let block_bytes = input.len();
        // SAFETY: the tests keep the memory until the operation is complete.
        let (input, buffer) = unsafe { (Buffer::of(input), Buffer::of_mut(output)) };
        let call = Call::new(Operation::AllGather, &CallOptions::default());
        let output = Blocks::Equal { buffer, block_bytes, count: 2 };
        Call { input: Blocks::of(input), output, ..call }
    }

    fn advance(process: &Shared, of: GroupRef<'_>, running: &mut Running) {
        let mut engine = process.engine.enter().unwrap();
        let Ready { group, endpoint, .. } = engine.ready(of).unwrap();
        endpoint.progress();
        running.advance(endpoint, group.board.as_mut(), &mut { u64::MAX });
    }

    #[test]
    fn a_plan_may_have_steps_at_the_board_between_its_messages() {
        for (block_bytes, first) in [(8, 0), (8, 1), (100_000, 0), (100_000, 1)] {
            let (processes, members) = (processes(), [Peer(0), Peer(1)].into());
            let group = |rank| GroupRef { context: WORLD_CONTEXT, members: &members, rank };
            let inputs = [vec![7u8; block_bytes], vec![9u8; block_bytes]];
            let mut outputs = [0, 1].map(|_| vec![0u8; 2 * block_bytes]);
            let mut running = Vec::new();
            for (rank, output) in outputs.iter_mut().enumerate() {
                let mut engine = processes[rank].engine.enter().unwrap();
                let state = engine.ready(group(rank)).unwrap().group;
                let (call, plan) = (call(&inputs[rank], output), mixed_plan(rank as u32));
                let (state, steps) = MessageSteps::begin(state, call, &plan, 1, Check::NONE);
                running.push(Running { state, steps: Steps::Messages(steps) });
            }
            // Member 0 waits for a message and at the board: looks for the message alone would see a deposit late. That holds
            // from the first look on, behind which further steps begin.
            // Member 1 waits for a deposit before it sends.
            for _ in 0..3 {
                advance(&processes[first], group(first), &mut running[first]);
                assert!(running[first].outcome().is_none());
                assert!(running[first].only_request().is_none());
            }
            for _ in 0..1000 {
                for (rank, running) in running.iter_mut().enumerate() {
                    advance(&processes[rank], group(rank), running);
                }
            }
            assert!(running.iter().all(|one| matches!(one.outcome(), Some(Ok(())))));
            let expected = [vec![7u8; block_bytes], vec![9u8; block_bytes]].concat();
            assert!(outputs.iter().all(|output| *output == expected), "{block_bytes} B");
        }
    }

    #[test]
    fn a_plan_with_steps_at_a_board_that_is_not_there_says_so() {
        let segment = Segment::local(&SegmentPlan { guests: 0, ..SegmentPlan::new(1, 2) });
        let members: Arc<[Peer]> = [Peer(0), Peer(1)].into();
        let plan = SegmentPlan::new(1, 2);
        let mut group =
            GroupState::new(5, members, 1, &plan, &crate::group::places::Places::default(), None)
                .unwrap();
        let (input, mut output) = ([1u8; 8], [0u8; 16]);
        let process = Shared::new(&segment, 1, ThreadMode::Single, Progress::Callers).unwrap();
        let mut engine = process.engine.enter().unwrap();
        let call = call(&input, &mut output);
        let (state, steps) = MessageSteps::begin(&mut group, call, &mixed_plan(1), 1, Check::NONE);
        let mut running = Running { state, steps: Steps::Messages(steps) };
        running.advance(&mut engine.endpoint, None, &mut { u64::MAX });
        assert!(running.outcome().is_none_or(|outcome| matches!(outcome, Err(Fault::NoBoard))));
        running.abandon(&mut engine.endpoint);
    }

    /// The third member dies behind all that this one may need of it before it comes. Returns how the call of this member
    /// ends, once it was judged and the first member has brought its data. `begin` begins it.
    fn outcome_beside_a_death(
        begin: impl FnOnce(&mut GroupState, Call) -> Running,
        judge: impl FnOnce(&mut Running, &mut Endpoint<SharedMemory>, &mut Board),
    ) -> (Option<Result<(), Fault>>, [u8; 8]) {
        let segment = Segment::local(&SegmentPlan { guests: 0, ..SegmentPlan::new(1, 3) });
        let lines: Vec<_> =
            (0..3).map(|member| LinesPlace::of_world(segment.plan(), member)).collect();
        let place = segment.plan().world_board();
        let open = |own| Board::open(&segment, place, &lines, own).unwrap();
        let [mut root, mut dying] = [open(0), open(2)];
        let process = Shared::new(&segment, 1, ThreadMode::Single, Progress::Callers).unwrap();
        let members: Arc<[Peer]> = (0..3).map(Peer).collect();
        let of = GroupRef { context: WORLD_CONTEXT, members: &members, rank: 1 };
        let mut engine = process.engine.enter().unwrap();
        let Ready { group, endpoint, .. } = engine.ready(of).unwrap();
        let board = group.board.as_mut().unwrap();
        for _ in 0..WINDOW {
            let number = board.begin(0).0;
            board.end(number);
        }
        let mut data = [0; 8];
        // SAFETY: the array outlives the operation, and nobody else uses it meanwhile.
        let buffer = unsafe { Buffer::of_mut(&mut data) };
        let call = Call::new(Operation::Broadcast, &CallOptions::default());
        let mut running = begin(group, Call { output: Blocks::of(buffer), ..call });
        let board = group.board.as_mut().unwrap();
        running.advance(endpoint, Some(board), &mut { u64::MAX });
        for other in [&mut root, &mut dying] {
            let number = other.begin(0).0;
            other.end(number);
        }
        let record = SlotRecord { state: SlotState::Dead, incarnation: 1, ..SlotRecord::default() };
        segment.set_slot_record(2, record);
        segment.announce_membership();
        // This member needs the dead for room, and there is room.
        endpoint.refresh();
        judge(&mut running, endpoint, board);
        for _ in 1..WINDOW {
            let number = root.begin(0).0;
            root.end(number);
        }
        let (number, word) = root.begin(running.signature().call());
        root.come(number, word, 0, Bytes::from(&[7u8; 8][..]));
        running.advance(endpoint, Some(board), &mut { u64::MAX });
        (running.outcome().cloned(), data)
    }

    #[test]
    fn a_death_that_hinders_one_step_of_a_started_call_is_no_verdict_on_the_next() {
        let begin = |group: &mut _, call| Running::at_board(group, call, BoardStyle::Each).unwrap();
        let judge = |running: &mut Running, endpoint: &mut _, board: &mut _| {
            running.judge(endpoint, Some(board));
        };
        let (outcome, data) = outcome_beside_a_death(begin, judge);
        assert!(matches!(outcome, Some(Ok(()))), "{outcome:?}");
        assert_eq!(data, [7; 8]);
    }

    #[test]
    fn a_death_that_hinders_one_step_between_messages_is_no_verdict_on_the_next() {
        let begin = |group: &mut GroupState, call: Call| {
            let (prepared, _) = group.plan(&call, &Way::Board(BoardStyle::Each));
            let (state, steps) = MessageSteps::begin(group, call, &prepared, 1, Check::NONE);
            Running { state, steps: Steps::Messages(steps) }
        };
        // A death among the members ends the messages of the operation, whatever the steps at the board need.
        let judge = |running: &mut Running, endpoint: &mut _, board: &mut _| {
            let Steps::Messages(steps) = &mut running.steps else { return };
            steps.judge_at_board(&mut running.state, endpoint, board);
        };
        let (outcome, data) = outcome_beside_a_death(begin, judge);
        assert!(matches!(outcome, Some(Ok(()))), "{outcome:?}");
        assert_eq!(data, [7; 8]);
    }
}
