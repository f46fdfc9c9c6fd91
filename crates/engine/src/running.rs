//! One collective operation on its way: a plan's execution, its memory, and the messages that are
//! out.
//!
//! Blocking, non-blocking and persistent calls all drive this. Nothing here waits: a step that
//! cannot go on stays where it is until the next time.

use std::panic::{AssertUnwindSafe, catch_unwind};

use landeck_arithmetic::{Operator, Scratch};
use landeck_board::Board;
use landeck_collectives::{Action, BoardStyle, Cells, Execution, Signature, Way};
use landeck_kernel::{Area, Endpoint, Failure, RequestId, Started, Wanted};
use landeck_memory::{Buffer, Bytes, NoMemory};
use landeck_transports::SharedMemory;

use crate::binding::{Binding, Blocks, Owned, Placement, Sizes};
use crate::board::BoardError;
use crate::board_call::{BoardCall, BoardStep, RefusedBlock, fault_of};
use crate::call::Call;
use crate::check::Check;
use crate::entry_check::EntryCheck;
use crate::fault::Fault;
use crate::group::GroupState;
use crate::group::plans::Prepared;
use crate::identity::GroupIdentity;
use crate::mismatch::{Mismatch, remark};
use crate::oversize::{LongBlock, OversizeBlocks, PLACEHOLDER_BYTES};
use crate::scan_scope::ScanScope;

/// A wait is long after so many looks before sleep: some tenths of a second, unless it is woken for
/// other reasons.
const LONG_LOOKS: u32 = 4;

/// The length of the message that a member without data sends in their place. A receiver that expects so many
/// bytes gets one more.
const NOTHING_BYTES: usize = 239;
static NOTHING: [u8; NOTHING_BYTES + 1] = [0; NOTHING_BYTES + 1];

/// What became of a step.
enum Stepped {
    /// It is over.
    Done,
    /// A message is out.
    Out(RequestId, Message),
}

/// A message that is out.
pub(crate) struct Message {
    peer: u32,
    expected_bytes: u64,
    is_received: bool,
}

/// One collective operation on its way.
pub(crate) struct Running {
    pub(crate) place: GroupIdentity,
    /// The number of the call in its group.
    number: u32,
    signature: Signature,
    pub(super) call: Call,
    execution: Execution,
    pub(super) binding: Binding,
    /// Messages that are out, with their steps; those beside the board have none.
    out: Vec<(Option<u32>, RequestId, Message)>,
    /// A step that has begun, but may not do anything yet.
    held: Option<u32>,
    /// Whether steps have begun since somebody asked.
    has_begun: bool,
    /// What passes through here is being told of; then come the data.
    is_telling: bool,
    pub(super) scratch: Scratch,
    /// Where the operation goes over the board, instead of all that.
    visit: Option<BoardCall>,
    has_visited: bool,
    /// What goes beside the board.
    beside: Option<Box<OversizeBlocks>>,
    /// The number that the operation has on the board; it is given back in the end.
    on_board: Option<u32>,
    /// In checking mode: until all have come, which is told on the board alone.
    entry_check: Option<EntryCheck>,
    /// Looks before sleep since anything moved.
    looks: u32,
    /// What was wrong, while the operation goes on for the sake of the others.
    deferred_error: Option<Fault>,
    /// The memory that there is none of: this member takes part with nothing.
    missing: Option<NoMemory>,
    /// This member has nothing to pass on, since memory is missing here or at a member it depends on.
    is_empty_handed: bool,
    outcome: Option<Result<(), Fault>>,
}

impl Running {
    /// An operation over messages that has not begun. On a board it is announced, so that who calls
    /// something else is found.
    pub(crate) fn by_messages(group: &mut GroupState, call: Call, way: &Way) -> Self {
        let (prepared, segments) = group.plan(&call, way);
        let number = group.next_number;
        let signature = group.count(call.operation, call.root, call.options.is_checked);
        let check = call.check_of(way);
        let identity = (number, signature);
        let mut running = Self::new(&group.place, identity, call, &prepared, segments);
        if let Some(board) = &mut group.board {
            let (number, word) = board.begin(signature.call());
            if check != Check::NONE {
                running.entry_check = Some(EntryCheck::new(number, word, check));
            } else if board.has_room(number) {
                board.come(number, word, 0, Bytes::EMPTY);
            } else if let Some(difference) = board.out_of_step() {
                let mismatch = Mismatch::at_board(difference, group.place.member);
                running.outcome = Some(Err(Fault::Mismatch(mismatch)));
            }
            running.on_board = Some(number);
        }
        running
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
        let (prepared, segments) = group.plan(&call, &Way::Board(style));
        let place = group.place.clone();
        let identity = (group.next_number, Signature::default());
        let mut running = Self::new(&place, identity, call, &prepared, segments);
        let longest = group.longest_on_board(running.call.operation);
        let members = (group.size(), place.member);
        running.beside = OversizeBlocks::out_of(&mut running.call, longest, members);
        running.go_without(running.beside.as_ref().and_then(|beside| beside.missing()));
        let visit = group.board_call(&running.call, style)?;
        (running.signature, running.visit) = (visit.signature(), Some(visit));
        Ok(running)
    }

    /// Notes what is wrong with the call, which takes part all the same.
    #[cold]
    pub(crate) fn blame(&mut self, fault: Fault, kept: Owned) {
        self.deferred_error.get_or_insert(fault);
        self.go_without(kept.missing());
        self.binding.keep(kept);
    }

    /// This member takes part with nothing if memory is missing.
    fn go_without(&mut self, missing: Option<NoMemory>) {
        if let Some(no_memory) = missing {
            self.missing = missing;
            self.is_empty_handed = true;
            self.deferred_error.get_or_insert(Fault::NoMemory(no_memory));
        }
    }

    fn new(
        place: &GroupIdentity,
        (number, signature): (u32, Signature),
        mut call: Call,
        prepared: &Prepared,
        segments: u32,
    ) -> Self {
        let mut kept = None;
        if call.needs_copy() {
            let is_given = !matches!(call.input, Blocks::Nothing);
            let given = if is_given { &call.input } else { &call.output };
            let (owned, copy) = Owned::copy_of(given);
            kept = Some(owned);
            (call.input, call.in_place) = (copy, false);
        }
        let sizes = call.sizes(segments);
        let is_telling = call.is_varying && prepared.relays;
        let (execution, plan) = (Execution::new(prepared.walk.clone()), prepared.walk.plan());
        let size = plan.size;
        let mut binding = if is_telling {
            telling(&call, plan, place.member)
        } else {
            let (input, output) = call.in_segments(segments);
            let input = Placement::input(call.operation, input, size, place.member);
            let output = Placement::output(call.operation, output, size, place.member);
            Binding::new(plan, input, output, &sizes)
        };
        if let Some(owned) = kept {
            binding.keep(owned);
        }
        if call.missing.is_none() && call.operation.reduces() && !is_telling {
            binding.pack();
        }
        let missing = call.missing.or_else(|| binding.missing());
        let mut running = Self {
            place: place.clone(),
            number,
            signature,
            call,
            execution,
            binding,
            out: Vec::new(),
            held: None,
            has_begun: false,
            is_telling,
            scratch: Scratch::new(),
            visit: None,
            has_visited: false,
            beside: None,
            on_board: None,
            entry_check: None,
            looks: 0,
            deferred_error: None,
            missing: None,
            is_empty_handed: false,
            outcome: None,
        };
        running.go_without(missing);
        running
    }

    /// What is called.
    pub(crate) fn signature(&self) -> Signature {
        self.signature
    }

    /// How it ended; none while it goes on.
    #[inline]
    pub(crate) fn outcome(&self) -> Option<&Result<(), Fault>> {
        self.outcome.as_ref()
    }

    /// Whether it goes over messages.
    pub(crate) fn goes_by_messages(&self) -> bool {
        self.visit.is_none()
    }

    /// Its number on the board of its group, if that has one.
    pub(crate) fn number_on_board(&self) -> Option<u32> {
        self.visit.as_ref().map(BoardCall::number).or(self.on_board)
    }

    /// The message it waits for, when it is but one.
    #[inline]
    pub(crate) fn only_request(&self) -> Option<RequestId> {
        match self.out[..] {
            [(_, id, _)] => Some(id),
            _ => None,
        }
    }

    /// Whether steps have begun since this was last asked, and it goes on: what those wait for may have come.
    pub(crate) fn has_begun_more(&mut self) -> bool {
        std::mem::take(&mut self.has_begun) && self.outcome.is_none()
    }

    /// How many bytes to move at once, when so many are wished: steps of messages are not divided.
    #[inline]
    pub(crate) fn piece_of(&self, allowance: u64) -> u64 {
        if self.visit.is_some() { allowance } else { u64::MAX }
    }

    /// Does what can be done now; true when that was anything. At most `allowance` bytes are moved
    /// by steps that begin.
    #[inline]
    pub(crate) fn advance(
        &mut self,
        kernel: &mut Endpoint<SharedMemory>,
        mut board: Option<&mut Board>,
        allowance: &mut u64,
    ) -> bool {
        if let Some(board) = board.as_deref_mut()
            && self.visit.is_some()
        {
            return self.advance_board(kernel, board, allowance);
        }
        let moved =
            self.has_met(kernel, board.as_deref_mut()) && self.advance_messages(kernel, allowance);
        if self.outcome.is_some()
            && let (Some(number), Some(board)) = (self.on_board.take(), board)
        {
            board.end(number);
        }
        moved
    }

    /// Whether the messages may begin.
    #[inline]
    fn has_met(&mut self, kernel: &mut Endpoint<SharedMemory>, board: Option<&mut Board>) -> bool {
        let (Some(entry_check), Some(board)) = (&mut self.entry_check, board) else { return true };
        let met = entry_check.poll(board);
        match met {
            Ok(false) => return false,
            Ok(true) => {}
            Err(error) => {
                self.visited(kernel, Err(error));
            }
        }
        self.entry_check = None;
        true
    }

    /// The steps at the board, and what goes beside it.
    #[inline]
    fn advance_board(
        &mut self,
        kernel: &mut Endpoint<SharedMemory>,
        board: &mut Board,
        allowance: &mut u64,
    ) -> bool {
        let mut moved = self.beside.is_some() && self.advance_beside(kernel);
        if let Some(visit) = &mut self.visit
            && !self.has_visited
        {
            if self.outcome.is_some() {
                // A message beside it failed: somebody is gone, or the group was revoked.
                drop(visit.fail(board, BoardError::Revoked));
                return true;
            }
            let advanced = self.advance_visit(kernel, board, allowance);
            moved |= self.visited(kernel, advanced);
        }
        moved
    }

    /// The next steps at the board; without memory this member comes with nothing.
    #[inline]
    fn advance_visit(
        &mut self,
        kernel: &mut Endpoint<SharedMemory>,
        board: &mut Board,
        allowance: &mut u64,
    ) -> Result<BoardStep, BoardError> {
        match (&mut self.visit, self.missing) {
            (None, _) => Ok(BoardStep::Waits),
            (Some(visit), None) => visit.advance(&self.call, board, kernel, allowance),
            (Some(visit), Some(no_memory)) => visit.fail(board, BoardError::NoMemory(no_memory)),
        }
    }

    /// The messages beside the board.
    #[cold]
    fn advance_beside(&mut self, kernel: &mut Endpoint<SharedMemory>) -> bool {
        let begun = self.beside.as_mut().map(|beside| beside.begin());
        let (given, taken) = begun.unwrap_or_default();
        let mut moved = !(given.is_empty() && taken.is_empty());
        for LongBlock { member, area } in taken {
            if let Stepped::Out(id, message) = self.receive(kernel, member, area) {
                self.out.push((None, id, message));
            }
        }
        for LongBlock { member, area } in given {
            match self.send(kernel, member, area) {
                Ok(Stepped::Out(id, message)) => self.out.push((None, id, message)),
                Ok(Stepped::Done) => {}
                Err(fault) => {
                    self.fail(kernel, fault);
                    return true;
                }
            }
        }
        moved |= self.collect(kernel);
        moved | self.end_beside()
    }

    /// Whether the board's part and all messages beside it are over.
    fn end_beside(&mut self) -> bool {
        let is_over = self.has_visited && self.out.is_empty() && self.outcome.is_none();
        if is_over {
            self.outcome = Some(self.deferred_error.take().map_or(Ok(()), Err));
        }
        is_over
    }

    /// What the board's steps came to.
    fn visited(
        &mut self,
        kernel: &mut Endpoint<SharedMemory>,
        advanced: Result<BoardStep, BoardError>,
    ) -> bool {
        if self.outcome.is_some() {
            return false;
        }
        match advanced {
            Ok(BoardStep::Over) => {
                self.has_visited = true;
                self.end_beside();
            }
            Ok(advanced) => return advanced == BoardStep::Moved,
            Err(BoardError::Lengths { .. }) if self.call.is_varying => self.refuse(kernel),
            // The messages beside the board go on: each has a member that waits for it.
            Err(error) if self.beside.is_some() && error.is_about_memory() => {
                let fault = fault_of(error, self.call.operation, &self.place, None);
                self.deferred_error.get_or_insert(fault);
                self.has_visited = true;
                self.end_beside();
            }
            Err(error) => {
                // Another member may have said who is gone before this process heard of it.
                kernel.refresh_from_records();
                let place = &self.place;
                let death = kernel.failure_of_group(place.context, &place.members);
                let fault = fault_of(error, self.call.operation, place, death);
                self.fail(kernel, fault);
            }
        }
        true
    }

    /// Members have brought blocks of other lengths than this one expects. What comes beside the board is taken
    /// all the same, lest its senders wait for ever; what does not come is not waited for.
    #[cold]
    fn refuse(&mut self, kernel: &mut Endpoint<SharedMemory>) {
        self.has_visited = true;
        self.beside.get_or_insert_default();
        for block in self.visit.as_ref().map_or_else(Vec::new, BoardCall::refused) {
            self.refuse_block(kernel, block);
        }
        self.end_beside();
    }

    #[cold]
    fn refuse_block(&mut self, kernel: &mut Endpoint<SharedMemory>, block: RefusedBlock) {
        let operation = self.call.operation;
        let (member, mut expected_bytes) = (block.member, block.expected_bytes as u64);
        if block.bytes == PLACEHOLDER_BYTES {
            if let Stepped::Out(id, message) = self.receive(kernel, member, Area::EMPTY) {
                self.out.push((None, id, Message { expected_bytes, ..message }));
            }
            return;
        }
        let never_comes = |message: &Message| message.is_received && message.peer == member;
        if let Some(at) = self.out.iter().position(|(_, _, message)| never_comes(message)) {
            let (_, id, message) = self.out.swap_remove(at);
            expected_bytes = message.expected_bytes;
            kernel.abandon(id);
        }
        let message_bytes = block.bytes as u64;
        let fault = Fault::Length { member, operation, message_bytes, expected_bytes };
        self.deferred_error.get_or_insert(fault);
    }

    fn advance_messages(
        &mut self,
        kernel: &mut Endpoint<SharedMemory>,
        allowance: &mut u64,
    ) -> bool {
        let mut moved = false;
        while self.outcome.is_none() {
            let any = self.collect(kernel) | self.begin(kernel, allowance);
            if self.outcome.is_none() && self.execution.is_over() {
                self.end_of_plan();
            } else if !any {
                break;
            }
            moved = true;
        }
        if moved {
            self.looks = 0;
        }
        moved
    }

    /// Before sleep: who has waited for long says so to those it waits for, once.
    #[cold]
    pub(crate) fn remark_if_long(&mut self, kernel: &mut Endpoint<SharedMemory>) {
        self.looks = self.looks.saturating_add(1);
        if self.looks != LONG_LOOKS {
            return;
        }
        let mut awaited: Vec<u32> = self.out.iter().map(|(_, _, message)| message.peer).collect();
        awaited.sort_unstable();
        awaited.dedup();
        for member in awaited {
            remark(kernel, &self.place, member, (self.number, self.signature));
        }
    }

    /// Ends it with a failure; its memory is free.
    #[cold]
    pub(crate) fn fail(&mut self, kernel: &mut Endpoint<SharedMemory>, fault: Fault) {
        self.abandon(kernel);
        self.outcome.get_or_insert(Err(fault));
    }

    /// Gives up what is out.
    pub(crate) fn abandon(&mut self, kernel: &mut Endpoint<SharedMemory>) {
        for (_, id, _) in self.out.drain(..) {
            kernel.abandon(id);
        }
    }

    /// After a change of the membership: what cannot complete without the dead fails. What they
    /// sent before still counts.
    #[cold]
    pub(crate) fn judge(
        &mut self,
        kernel: &mut Endpoint<SharedMemory>,
        mut board: Option<&mut Board>,
    ) {
        if self.outcome.is_some() {
            return;
        }
        if let (Some(visit), Some(board), false) =
            (&mut self.visit, board.as_deref_mut(), self.has_visited)
        {
            let Some(error) = visit.verdict(board, ScanScope::All) else { return };
            // What the gone have brought still counts.
            let mut advanced = self.advance_visit(kernel, board, &mut { u64::MAX });
            if matches!(advanced, Ok(BoardStep::Moved | BoardStep::Waits))
                && let Some(visit) = &mut self.visit
            {
                advanced = visit.fail(board, error);
            }
            self.visited(kernel, advanced);
            return;
        }
        // A receive from who has left in good order ends only by this.
        for &(_, id, _) in &self.out {
            kernel.verdict(id);
        }
        let Some(failure) = kernel.death_among(self.place.context, &self.place.members) else {
            return;
        };
        kernel.progress_thoroughly();
        while self.advance(kernel, board.as_deref_mut(), &mut { u64::MAX }) {
            kernel.progress();
        }
        if self.outcome.is_none() {
            self.fail(kernel, failure.into());
        }
    }

    /// Looks at the messages that are out, and at the steps that wait for something else.
    fn collect(&mut self, kernel: &mut Endpoint<SharedMemory>) -> bool {
        let mut any = false;
        let mut at = 0;
        while at < self.out.len() {
            let (step, id, _) = self.out[at];
            if !kernel.is_done(id) {
                at += 1;
                continue;
            }
            let (_, _, message) = self.out.swap_remove(at);
            any = true;
            let result = kernel.take(id).map_or(Err(Failure::Gone), |ended| ended.result);
            match result.map(|status| status.bytes) {
                Ok(bytes) => self.message_ended(step, &message, bytes),
                Err(Failure::Truncated { message_bytes, .. }) => {
                    self.message_ended(step, &message, message_bytes);
                }
                Err(failure) => {
                    self.fail(kernel, failure.into());
                    return true;
                }
            }
        }
        any
    }

    fn message_ended(&mut self, step: Option<u32>, message: &Message, message_bytes: u64) {
        let Message { peer: member, expected_bytes, is_received } = *message;
        if is_received && message_bytes != expected_bytes {
            let operation = self.call.operation;
            let is_nothing = message_bytes == nothing_instead_of(expected_bytes) as u64;
            self.is_empty_handed |= is_nothing;
            self.deferred_error.get_or_insert(match is_nothing {
                true => Fault::NoRoom { member, operation },
                false => Fault::Length { member, operation, message_bytes, expected_bytes },
            });
        }
        if let Some(step) = step {
            self.execution.end(step);
        }
    }

    /// Begins the steps that may begin.
    fn begin(&mut self, kernel: &mut Endpoint<SharedMemory>, allowance: &mut u64) -> bool {
        let mut any = false;
        while self.outcome.is_none() {
            let Some(step) = self.held.take().or_else(|| self.execution.begin()) else { break };
            let moved_bytes = self.moved_bytes(step);
            if moved_bytes > *allowance {
                self.held = Some(step);
                break;
            }
            *allowance -= moved_bytes;
            (any, self.has_begun) = (true, true);
            match self.step(kernel, step) {
                Ok(Stepped::Done) => self.execution.end(step),
                Ok(Stepped::Out(id, message)) => self.out.push((Some(step), id, message)),
                Err(Fault::Failure(failure)) => self.fail(kernel, failure.into()),
                Err(fault) => {
                    self.deferred_error.get_or_insert(fault);
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

    fn step(&mut self, kernel: &mut Endpoint<SharedMemory>, step: u32) -> Result<Stepped, Fault> {
        match *self.execution.action(step) {
            Action::Send { to, ref cells } => {
                let area = self.binding.message(cells);
                self.send(kernel, to, area)
            }
            Action::Receive { from, ref cells } => {
                let area = self.binding.message(cells);
                Ok(self.receive(kernel, from, area))
            }
            Action::Copy { .. } | Action::Combine { .. } if self.brings_nothing() => {
                Ok(Stepped::Done)
            }
            Action::Copy { from, into } => {
                self.binding.area(from).copy_to(&self.binding.area(into));
                Ok(Stepped::Done)
            }
            Action::Combine { left, right, into } => {
                // Blocks of one store need not lie side by side.
                for block in 0..into.count {
                    let one = |cells: Cells| Cells::new(cells.store, cells.first + block, 1);
                    self.combine(one(left), one(right), one(into))?;
                }
                Ok(Stepped::Done)
            }
            _ => Err(Fault::NoBoard),
        }
    }

    /// Whether what this member sends is nothing but the word that it has nothing. Lengths it tells all the same.
    fn brings_nothing(&self) -> bool {
        self.is_empty_handed && !self.is_telling
    }

    fn send(
        &mut self,
        kernel: &mut Endpoint<SharedMemory>,
        to: u32,
        area: Area,
    ) -> Result<Stepped, Fault> {
        let area = if self.brings_nothing() { in_the_place_of(&area) } else { area };
        let peer = self.place.members[to as usize];
        let id =
            match kernel.send(peer, self.place.collective_context, self.signature.tag(), area)? {
                Started::Complete(_) => return Ok(Stepped::Done),
                Started::Pending(id) => id,
            };
        // Messages of the program's may take all room, and wait for what comes after this operation.
        kernel.offer_if_waiting(id);
        Ok(Stepped::Out(id, Message { peer: to, expected_bytes: 0, is_received: false }))
    }

    fn receive(&mut self, kernel: &mut Endpoint<SharedMemory>, from: u32, area: Area) -> Stepped {
        let source = Some(self.place.members[from as usize].0);
        let tag = Some(self.signature.tag());
        let expected_bytes = area.packed_bytes();
        let area = if self.brings_nothing() { Area::EMPTY } else { area };
        let id =
            kernel.receive(Wanted { context: self.place.collective_context, source, tag }, area);
        Stepped::Out(id, Message { peer: from, expected_bytes, is_received: true })
    }

    fn combine(&mut self, left: Cells, right: Cells, into: Cells) -> Result<Stepped, Fault> {
        let place = |cells| self.binding.area(cells).as_buffer();
        let (Some(left), Some(right), Some(into)) = (place(left), place(right), place(into)) else {
            return Err(Fault::Panicked);
        };
        let length_bytes = left.len().min(right.len()).min(into.len());
        let Some(operator) = &self.call.operator else { return Ok(Stepped::Done) };
        let [left, right, into] = [left, right, into].map(|buffer| buffer.bytes().start().as_ptr());
        let scratch = &mut self.scratch;
        // SAFETY: all three are memory of this operation, which whoever called promised to leave
        // to it, cut to a length that each has; the result lies exactly on one operand or apart.
        guarded(operator, || unsafe {
            operator.combine_raw(left, right, into, length_bytes, scratch).map_err(Fault::from)
        })?;
        Ok(Stepped::Done)
    }

    fn end_of_plan(&mut self) {
        if self.is_telling {
            self.begin_data();
            return;
        }
        self.binding.unpack();
        self.outcome = Some(self.deferred_error.take().map_or(Ok(()), Err));
    }

    /// All lengths are known: now the data, the same way.
    fn begin_data(&mut self) {
        self.is_telling = false;
        let told = Sizes::Told(self.binding.numbers());
        let walk = self.execution.walk().clone();
        let (operation, size, member) = (self.call.operation, walk.plan().size, self.place.member);
        let input = Placement::input(operation, self.call.input.clone(), size, member);
        let output = Placement::output(operation, self.call.output.clone(), size, member);
        let before =
            std::mem::replace(&mut self.binding, Binding::new(walk.plan(), input, output, &told));
        self.binding.keep_all_of(before);
        self.go_without(self.binding.missing());
        self.execution = Execution::new(walk);
    }
}

/// How long the message is that stands for so many bytes that a member does not have.
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

/// Runs what may call a user's function.
pub(super) fn guarded<T>(
    operator: &Operator,
    body: impl FnOnce() -> Result<T, Fault>,
) -> Result<T, Fault> {
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
        let count = blocks.count();
        let owned = Owned::new(count * NUMBER_BYTES);
        for block in 0..count as u32 {
            let bytes = blocks.bytes(block).to_ne_bytes();
            owned.buffer().write(block as usize * NUMBER_BYTES, (&bytes[..]).into());
        }
        let buffer = owned.buffer();
        kept.push(owned);
        Blocks::Equal { buffer, block_bytes: NUMBER_BYTES }
    };
    let (input, output) = (numbers(&call.input), numbers(&call.output));
    let input = Placement::input(call.operation, input, plan.size, member);
    let output = Placement::output(call.operation, output, plan.size, member);
    let mut binding = Binding::new(plan, input, output, &Sizes::Equal(NUMBER_BYTES as u64));
    kept.into_iter().for_each(|owned| binding.keep(owned));
    binding
}
