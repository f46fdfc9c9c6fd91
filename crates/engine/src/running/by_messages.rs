//! The steps of a plan over messages, as an operation in the table walks them.
//!
//! Nothing here waits: a step that cannot go on stays where it is until the next time. A plan may have steps at the
//! board between its messages, which go to [`BoardSteps`].

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use landeck_arithmetic::{Operator, Scratch};
use landeck_board::{Board, Coming};
use landeck_collectives::{Action, Cells, Execution, Signature};
use landeck_kernel::{Area, Endpoint};
use landeck_memory::Bytes;
use landeck_transports::SharedMemory;

use crate::binding::{Binding, Blocks, Owned, Placement, Sizes};
use crate::board::entry_check::EntryCheck;
use crate::call::Call;
use crate::call::check::Check;
use crate::fault::Fault;
use crate::group::GroupState;
use crate::group::driving::{Direct, Driving};
use crate::group::host_boards::LocalBoard;
use crate::group::plans::Prepared;
use crate::judging::judged;
use crate::lack::Lack;
use crate::mismatch::Mismatch;
use crate::running::mixed::{BoardSteps, is_at_board};
use crate::running::state::{Ended, OperationState, Stepped};

#[cfg(test)]
mod tests;

/// The steps of one operation over messages.
pub(crate) struct MessageSteps {
    execution: Execution,
    binding: Binding,
    /// A step that has begun, but may not do anything yet.
    held: Option<u32>,
    /// Whether steps have begun since somebody asked.
    has_begun: bool,
    scratch: Scratch,
    /// The number that the operation has on the board of all members; it is given back in the end.
    number_on_board: Option<u32>,
    /// The number that it has on the board of this host where it has no step there; it is given back in the end.
    announced: Option<u32>,
    /// In checking mode: until all have come, which is told on the board alone.
    entry_check: Option<EntryCheck>,
    /// The steps at the board, where the plan has any.
    board_steps: Option<BoardSteps>,
    /// The last look has moved something: further steps may begin at the next one.
    has_moved: bool,
    /// In a started operation that goes directly to all members of other hosts.
    driving: Option<Box<Driving>>,
    /// Steps that are over, or have begun, without the data that they were to have.
    lost: BTreeSet<u32>,
}

impl MessageSteps {
    /// Binds a call to its plan. On a board the operation is announced, so that a member that calls something else is
    /// found.
    pub(crate) fn begin(
        group: &mut GroupState,
        call: Call,
        prepared: &Prepared,
        segments: u32,
        check: Check,
    ) -> (OperationState, Self) {
        let form = group.form_told(&call, prepared);
        let root_or_rounds = group.root_or_rounds(&call, segments);
        let signature = group.count_call(&call, root_or_rounds, form);
        let (mut state, steps) = Self::begin_as(signature, group, call, prepared, segments, check);
        state.form = form;
        (state, steps)
    }

    /// Binds a started call that goes directly to all members of other hosts to its plan.
    pub(crate) fn begin_directly(
        group: &mut GroupState,
        call: Call,
        direct: Direct,
    ) -> (OperationState, Self) {
        let signature = group.count_direct(&call);
        let (mut state, mut steps) =
            Self::begin_as(signature, group, call, &direct.plan, 1, Check::NONE);
        state.is_direct = true;
        steps.driving = direct.driving.map(Box::new);
        if steps.is_open()
            && let (Some(at), Some(deposit)) = (&mut steps.board_steps, steps.execution.begin())
        {
            begins_step();
            at.begin(deposit);
        }
        (state, steps)
    }

    fn begin_as(
        signature: Signature,
        group: &mut GroupState,
        mut call: Call,
        prepared: &Prepared,
        segments: u32,
        check: Check,
    ) -> (OperationState, Self) {
        let copied = call.set_aside();
        let (plan, is_telling) = (prepared.walk.plan(), call.is_varying && prepared.relays);
        let mut binding = match is_telling {
            true => telling(&call, plan, group.place.member),
            false => bound(&call, plan, segments),
        };
        if call.missing.is_none() && call.operation.reduces() && !is_telling {
            binding.pack();
        }
        let missing = call.missing.or_else(|| copied.as_ref()?.missing());
        let mut state = OperationState::new(&group.place, signature, call);
        state.is_telling = is_telling;
        state.go_without(missing.or_else(|| binding.missing()));
        if let Some(copied) = copied {
            state.keep(copied);
        }
        let mut steps = Self {
            execution: Execution::new(prepared.walk.clone()),
            binding,
            held: None,
            has_begun: false,
            scratch: Scratch::new(),
            number_on_board: None,
            announced: None,
            entry_check: None,
            board_steps: None,
            has_moved: true,
            driving: None,
            lost: BTreeSet::new(),
        };
        steps.come_to_board(&mut state, group, prepared, check);
        (state, steps)
    }

    /// Gives the operation its number on the board, if the group has one.
    fn come_to_board(
        &mut self,
        state: &mut OperationState,
        group: &mut GroupState,
        prepared: &Prepared,
        check: Check,
    ) {
        let (is_oversubscribed, member) = (group.is_oversubscribed(), group.place.member);
        let plan = prepared.walk.plan();
        if let Some(local) = &mut group.local {
            self.come_to_board_of_host(state, local, prepared, is_oversubscribed);
            return;
        }
        let Some(board) = &mut group.board else { return };
        let (number, word) = board.begin(state.signature.call());
        self.number_on_board = Some(number);
        if prepared.uses_board {
            let visits = vec![(number, word)];
            let mut steps = BoardSteps::new(visits, None, plan, is_oversubscribed);
            if let Some(lack) = state.lack() {
                steps.give_up(lack);
            }
            self.board_steps = Some(steps);
        } else if check != Check::NONE {
            self.entry_check = Some(EntryCheck::new(number, word, check));
        } else if board.has_room(number) {
            board.come(number, word, 0, Bytes::EMPTY);
        } else if let Some(difference) = board.out_of_step() {
            state.end_with(Fault::Mismatch(Mismatch::at_board(difference, member)));
        }
    }

    /// In a group over hosts: gives the operation its numbers on the board of this host. An operation with no step there
    /// is announced there, too, so that members of a host have their calls in one order.
    fn come_to_board_of_host(
        &mut self,
        state: &mut OperationState,
        local: &mut LocalBoard,
        prepared: &Prepared,
        is_oversubscribed: bool,
    ) {
        let (plan, call) = (prepared.walk.plan(), state.signature.call());
        if prepared.uses_board {
            let visits = local.begin(state.signature.number(), call, plan.visits());
            let names = Some(local.names());
            let mut steps = BoardSteps::new(visits, names, plan, is_oversubscribed);
            if let Some(lack) = state.lack() {
                steps.give_up(lack);
            }
            self.board_steps = Some(steps);
            return;
        }
        for (number, word) in local.begin(state.signature.number(), call, 1) {
            self.announced = Some(number);
            if local.board.has_room(number) {
                local.board.come(number, word, 0, Bytes::EMPTY);
            } else if let Some(difference) = local.board.out_of_step() {
                let found = Mismatch::at_board(local.named(difference), state.place.member);
                state.end_with(Fault::Mismatch(found));
            }
        }
    }

    /// Its number on the board of all members.
    pub(crate) fn number_on_board(&self) -> Option<u32> {
        self.number_on_board
    }

    /// Whether nothing but messages can move it: no step waits at the board, and none can begin now.
    #[inline]
    pub(crate) fn waits_for_messages_alone(&self) -> bool {
        self.board_steps.as_ref().is_none_or(|steps| !self.has_moved && !steps.goes_on())
    }

    /// Whether steps have begun since this was last asked.
    pub(crate) fn take_has_begun(&mut self) -> bool {
        std::mem::take(&mut self.has_begun)
    }

    /// Does what can be done now. At most `allowance` bytes are moved by steps that begin.
    #[inline]
    pub(crate) fn advance(
        &mut self,
        state: &mut OperationState,
        endpoint: &mut Endpoint<SharedMemory>,
        mut board: Option<&mut Board>,
        allowance: &mut u64,
    ) -> bool {
        let moved = self.have_all_come(state, endpoint, board.as_deref_mut())
            && self.advance_steps(state, endpoint, board.as_deref_mut(), allowance);
        if state.has_ended()
            && let Some(board) = board
        {
            self.leave_board(state, board);
        }
        moved
    }

    /// The operation has ended: this member needs nothing more at the board.
    pub(crate) fn leave_board(&mut self, state: &OperationState, board: &mut Board) {
        let number = self.number_on_board.take().or(self.announced.take());
        match (&mut self.board_steps, number) {
            (Some(steps), _) => steps.leave(board, state.outcome()),
            (None, Some(number)) => board.end(number),
            (None, None) => {}
        }
    }

    /// The member that this one waits for at the board of its host, if a step waits there.
    pub(crate) fn awaited_member(&self, board: &Board) -> Option<u32> {
        self.board_steps.as_ref()?.awaited_member(&self.execution, board)
    }

    /// The members that this one may wait for at the board of its host.
    pub(crate) fn awaited_at_board(&self) -> &[u32] {
        self.board_steps.as_ref().map_or(&[], BoardSteps::awaited)
    }

    /// Whether the steps may begin: in checking mode all members come first.
    #[inline]
    fn have_all_come(
        &mut self,
        state: &mut OperationState,
        endpoint: &mut Endpoint<SharedMemory>,
        board: Option<&mut Board>,
    ) -> bool {
        let (Some(entry_check), Some(board)) = (&mut self.entry_check, board) else { return true };
        match entry_check.poll(board) {
            Ok(false) => return false,
            Ok(true) => {}
            Err(error) => state.fail_at_board(endpoint, error),
        }
        self.entry_check = None;
        true
    }

    /// Whether this member has not come to the board of its host, and may drive the host.
    fn is_open(&self) -> bool {
        self.driving.as_ref().is_some_and(|driving| driving.is_open())
    }

    /// In a started operation: comes to the board of the host before anything else. The last of the host to come drives it,
    /// by another plan that begins with the same deposit. False while this member has not come.
    fn has_claimed(
        &mut self,
        state: &mut OperationState,
        endpoint: &mut Endpoint<SharedMemory>,
        board: Option<&mut Board>,
        allowance: &mut u64,
    ) -> bool {
        let Some(board) = board.filter(|_| self.is_open()) else { return true };
        self.advance_at_board(state, endpoint, Some(&mut *board), allowance);
        let come = self.board_steps.as_ref().and_then(BoardSteps::come);
        let (Some((number, word)), Some(driving)) = (come, &mut self.driving) else { return false };
        // One that comes last to members who called something else finds that out in their deposits.
        let is_last = board.count(number, word) != Coming::NotLast;
        if let Some(prepared) = driving.close(is_last) {
            let mut binding = bound(&state.call, prepared.walk.plan(), 1);
            if state.call.missing.is_none() && state.call.operation.reduces() {
                binding.pack();
            }
            state.go_without(binding.missing());
            self.binding = binding;
            self.execution = Execution::new(prepared.walk);
            if let Some(deposit) = self.execution.begin() {
                self.execution.end(deposit);
            }
        }
        true
    }

    fn advance_steps(
        &mut self,
        state: &mut OperationState,
        endpoint: &mut Endpoint<SharedMemory>,
        mut board: Option<&mut Board>,
        allowance: &mut u64,
    ) -> bool {
        let mut moved = false;
        if !self.has_claimed(state, endpoint, board.as_deref_mut(), allowance) {
            return false;
        }
        while !state.has_ended() {
            let mut any = self.collect(state, endpoint);
            any |= self.begin_steps(state, endpoint, allowance);
            any |= self.advance_at_board(state, endpoint, board.as_deref_mut(), allowance);
            if !state.has_ended() && self.execution.is_over() {
                self.end_of_plan(state);
            } else if !any {
                break;
            }
            moved = true;
            // Messages go on between the steps at the board. A started operation that goes directly moves all that it can:
            // its caller may compute from now on.
            let has_messages = !state.is_direct && !state.has_no_message();
            if self.board_steps.is_some() && (*allowance == 0 || has_messages) {
                break;
            }
        }
        if moved {
            state.note_move();
        }
        self.has_moved = moved;
        moved
    }

    /// The steps at the board that have begun.
    fn advance_at_board(
        &mut self,
        state: &mut OperationState,
        endpoint: &mut Endpoint<SharedMemory>,
        board: Option<&mut Board>,
        allowance: &mut u64,
    ) -> bool {
        let (Some(steps), Some(board)) = (&mut self.board_steps, board) else { return false };
        if state.has_ended() {
            return false;
        }
        if let Some(lack) = state.lack().filter(|_| state.brings_nothing()) {
            steps.give_up(lack);
        }
        let (execution, binding) = (&mut self.execution, &self.binding);
        let operator = state.call.operator.as_ref();
        match steps.advance(execution, binding, operator, board, endpoint, allowance) {
            Ok(advanced) => {
                self.lost.extend(advanced.lost);
                if let Some(error) = advanced.error {
                    state.lack_at_board(steps.named(error));
                }
                advanced.moved
            }
            Err(error) => {
                state.fail_at_board(endpoint, steps.named(error));
                true
            }
        }
    }

    /// After a change of the membership: fails if the step at the board can never complete.
    #[cold]
    pub(crate) fn judge_at_board(
        &mut self,
        state: &mut OperationState,
        endpoint: &mut Endpoint<SharedMemory>,
        board: &mut Board,
    ) {
        self.judge_step(state, endpoint, board);
        if state.has_ended() {
            self.leave_board(state, board);
        }
    }

    #[cold]
    fn judge_step(
        &mut self,
        state: &mut OperationState,
        endpoint: &mut Endpoint<SharedMemory>,
        board: &mut Board,
    ) {
        let error = judged(
            &mut (&mut *self, &mut *board),
            |(all, board)| all.board_steps.as_ref()?.verdict(&all.execution, board),
            |(all, board)| {
                all.advance_steps(state, endpoint, Some(&mut **board), &mut { u64::MAX })
                    && !state.has_ended()
            },
        );
        let (Some(error), Some(steps)) = (error, &mut self.board_steps) else { return };
        if state.has_ended() {
            return;
        }
        match steps.fail(board, error) {
            Ok(error) => state.lack_at_board(steps.named(error)),
            Err(error) => state.fail_at_board(endpoint, steps.named(error)),
        }
    }

    /// Takes the messages that have ended. True when there were any.
    #[inline]
    fn collect(
        &mut self,
        state: &mut OperationState,
        endpoint: &mut Endpoint<SharedMemory>,
    ) -> bool {
        let (mut any, mut at) = (false, 0);
        while let Some(ended) = state.take_ended(endpoint, &mut at) {
            any = true;
            if ended.is_otherwise() {
                self.came_otherwise(state, &ended);
            }
            if let Some(step) = ended.step {
                self.execution.end(step);
            }
        }
        any || state.has_ended()
    }

    /// A message is not what a step was to receive.
    #[cold]
    fn came_otherwise(&mut self, state: &mut OperationState, ended: &Ended) {
        let area = match ended.step.map(|step| (step, self.execution.action(step))) {
            Some((step, Action::Receive { cells, .. })) if !state.brings_nothing() => {
                self.lost.insert(step);
                self.binding.message(cells)
            }
            _ => Area::EMPTY,
        };
        state.came_otherwise(ended, &area);
    }

    /// Whether a step has not the data that it passes on or combines: a step before it has not had them.
    #[inline]
    fn is_lost(&self, step: u32) -> bool {
        !self.lost.is_empty() && self.depends_on_lost(step)
    }

    #[cold]
    fn depends_on_lost(&self, step: u32) -> bool {
        let is_source = matches!(
            self.execution.action(step),
            Action::Receive { .. }
                | Action::Take { .. }
                | Action::Read { .. }
                | Action::TakeResult { .. }
        );
        let after = &self.execution.walk().plan().steps[step as usize].after;
        !is_source && after.iter().any(|before| self.lost.contains(before))
    }

    /// Begins the steps that may begin.
    fn begin_steps(
        &mut self,
        state: &mut OperationState,
        endpoint: &mut Endpoint<SharedMemory>,
        allowance: &mut u64,
    ) -> bool {
        let mut any = false;
        while !state.has_ended() {
            let Some(step) = self.held.take().or_else(|| self.execution.begin()) else { break };
            begins_step();
            let is_lost = self.is_lost(step);
            if is_lost {
                self.lost.insert(step);
            }
            if let Some(board_steps) = &mut self.board_steps
                && is_at_board(self.execution.action(step))
            {
                if let Some(lack) = state.lack().filter(|_| is_lost) {
                    // What it would lay down has not come to it.
                    board_steps.give_up(lack);
                }
                board_steps.begin(step);
                continue;
            }
            let moved_bytes = self.moved_bytes(step);
            if moved_bytes > *allowance {
                self.held = Some(step);
                break;
            }
            *allowance -= moved_bytes;
            (any, self.has_begun) = (true, true);
            match self.step(state, endpoint, step, is_lost) {
                Ok(Stepped::Done) => self.execution.end(step),
                Ok(Stepped::Out(id, message)) => state.await_message(Some(step), id, message),
                Err(Fault::Failure(failure)) => state.fail(endpoint, failure.into()),
                Err(fault) => {
                    state.defer(fault);
                    state.lacks(Lack::Part { member: state.place.member });
                    self.lost.insert(step);
                    self.execution.end(step);
                }
            }
        }
        any
    }

    /// Bytes that a step may move when it begins.
    fn moved_bytes(&self, step: u32) -> u64 {
        match self.execution.action(step) {
            Action::Send { cells, .. } | Action::Receive { cells, .. } => {
                cells.iter().map(|&cells| self.binding.area(cells).packed_bytes()).sum()
            }
            Action::Copy { into, .. } | Action::Combine { into, .. } => {
                self.binding.area(*into).packed_bytes()
            }
            _ => 0,
        }
    }

    fn step(
        &mut self,
        state: &mut OperationState,
        endpoint: &mut Endpoint<SharedMemory>,
        step: u32,
        is_lost: bool,
    ) -> Result<Stepped, Fault> {
        match *self.execution.action(step) {
            Action::Send { to, ref cells } => {
                state.send(endpoint, to, self.binding.message(cells), is_lost)
            }
            Action::Receive { from, ref cells } => {
                let area = self.binding.message(cells);
                Ok(match &self.driving {
                    Some(driving) => state.receive_of(endpoint, step, driving.senders(from), &area),
                    None => state.receive(endpoint, from, area),
                })
            }
            Action::Copy { .. } | Action::Combine { .. } if is_lost || state.brings_nothing() => {
                Ok(Stepped::Done)
            }
            Action::Copy { from, into } => {
                self.binding.area(from).copy_to(&self.binding.area(into));
                Ok(Stepped::Done)
            }
            Action::Combine { left, right, into } => {
                let Some(operator) = &state.call.operator else { return Ok(Stepped::Done) };
                // Blocks of one store need not lie side by side.
                for block in 0..into.count {
                    let one = |cells: Cells| Cells::new(cells.store, cells.first + block, 1);
                    self.combine(operator, one(left), one(right), one(into))?;
                }
                Ok(Stepped::Done)
            }
            _ => Err(Fault::NoBoard),
        }
    }

    fn combine(
        &mut self,
        operator: &Operator,
        left: Cells,
        right: Cells,
        into: Cells,
    ) -> Result<(), Fault> {
        let place = |cells| self.binding.area(cells).as_buffer();
        let (Some(left), Some(right), Some(into)) = (place(left), place(right), place(into)) else {
            return Err(Fault::Panicked);
        };
        let length_bytes = left.len().min(right.len()).min(into.len());
        let [left, right, into] = [left, right, into].map(|buffer| buffer.bytes().start().as_ptr());
        let scratch = &mut self.scratch;
        // SAFETY: all three are memory of this operation, which the caller promised to leave
        // to it, cut to a length that each has; the result lies exactly on one operand or apart.
        guarded(operator, || unsafe {
            operator.combine_raw(left, right, into, length_bytes, scratch).map_err(Fault::from)
        })
    }

    fn end_of_plan(&mut self, state: &mut OperationState) {
        if state.is_telling {
            self.begin_data(state);
            return;
        }
        self.binding.unpack();
        state.complete();
    }

    /// All lengths are known: now the data, the same way.
    fn begin_data(&mut self, state: &mut OperationState) {
        state.is_telling = false;
        let told = Sizes::Told(self.binding.numbers());
        let walk = self.execution.walk().clone();
        let (plan, call) = (walk.plan(), &state.call);
        let input = Placement::input(call.operation, call.input.clone(), plan.size, plan.member);
        let output = Placement::output(call.operation, call.output.clone(), plan.size, plan.member);
        let before = std::mem::replace(&mut self.binding, Binding::new(plan, input, output, told));
        self.binding.keep_all_of(before);
        state.go_without(self.binding.missing());
        self.execution = Execution::new(walk);
        self.lost.clear();
    }
}

/// A step is about to begin: tests kill the process here.
#[inline]
fn begins_step() {
    #[cfg(debug_assertions)]
    landeck_objects::crash_point::begins_step();
}

/// The stores of a plan for the data of a call.
fn bound(call: &Call, plan: &landeck_collectives::Plan, segments: u32) -> Binding {
    let (input, output) = call.in_segments(segments);
    if plan.renumbers_blocks() {
        let cut = call.cut_of(call.known_bytes(), segments);
        let [input, output] = [(input, false), (output, true)]
            .map(|(blocks, is_output)| Placement::renumbered(plan, blocks, is_output, cut));
        return Binding::new(plan, input, output, call.sizes_in(plan, cut));
    }
    let input = Placement::input(call.operation, input, plan.size, plan.member);
    let output = Placement::output(call.operation, output, plan.size, plan.member);
    Binding::new(plan, input, output, call.sizes(segments))
}

/// Runs what may call a user's function.
fn guarded<T>(operator: &Operator, body: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    if operator.reduction().is_some() {
        return body();
    }
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(Err(Fault::Panicked))
}

/// The stores of a plan that tells how long each block is: a number in the place of each.
fn telling(call: &Call, plan: &landeck_collectives::Plan, member: u32) -> Binding {
    const NUMBER_BYTES: usize = 8;
    let mut kept = Vec::new();
    let mut numbers = |blocks: &Blocks| {
        let count = blocks.count() as u32;
        let owned = Owned::new(count as usize * NUMBER_BYTES);
        for block in 0..count {
            let bytes = blocks.bytes(block).to_ne_bytes();
            owned.buffer().write(block as usize * NUMBER_BYTES, (&bytes[..]).into());
        }
        let buffer = owned.buffer();
        kept.push(owned);
        Blocks::Equal { buffer, block_bytes: NUMBER_BYTES, count }
    };
    let (input, output) = (numbers(&call.input), numbers(&call.output));
    let input = Placement::input(call.operation, input, plan.size, member);
    let output = Placement::output(call.operation, output, plan.size, member);
    let mut binding = Binding::new(plan, input, output, Sizes::Equal(NUMBER_BYTES as u64));
    kept.into_iter().for_each(|owned| binding.keep(owned));
    binding
}
