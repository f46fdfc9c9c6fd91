//! A board call that goes on in the table of operations, with the blocks that are too long for the board.

use landeck_board::Board;
use landeck_collectives::BoardStyle;
use landeck_kernel::{Area, Endpoint};
use landeck_transports::SharedMemory;

use crate::board::BoardError;
use crate::board::call::{BoardCall, BoardProgress, RefusedBlock};
use crate::board::scan_scope::ScanScope;
use crate::call::Call;
use crate::fault::Fault;
use crate::group::GroupState;
use crate::judging::judged;
use crate::oversize::{LongBlock, OversizeBlocks, PLACEHOLDER_BYTES};
use crate::running::state::{Message, OperationState, Stepped};

/// A board call that goes on.
pub(crate) struct StartedBoardCall {
    board_call: BoardCall,
    /// The board's part is complete; messages beside it may go on.
    is_complete: bool,
    /// The blocks that go beside the board.
    beside: Option<Box<OversizeBlocks>>,
}

impl StartedBoardCall {
    /// Begins an operation at the board.
    ///
    /// # Errors
    /// [`Fault::NoBoard`].
    pub(crate) fn begin(
        group: &mut GroupState,
        mut call: Call,
        style: BoardStyle,
    ) -> Result<(OperationState, Self), Fault> {
        let members = (group.size(), group.place.member);
        let copied = call.set_aside();
        let longest = group.longest_on_board(call.operation);
        let beside = OversizeBlocks::out_of(&mut call, longest, members);
        let board_call = group.board_call(&call, style)?;
        let missing = call.missing.or_else(|| copied.as_ref()?.missing());
        let signature = board_call.signature();
        let mut state = OperationState::new(&group.place, signature, call);
        state.go_without(missing);
        state.go_without(beside.as_ref().and_then(|beside| beside.missing()));
        if let Some(copied) = copied {
            state.keep(copied);
        }
        Ok((state, Self { board_call, is_complete: false, beside }))
    }

    /// Its number on the board.
    pub(crate) fn number(&self) -> u32 {
        self.board_call.number()
    }

    /// Does what can be done now: the steps at the board, and the messages beside it.
    #[inline]
    pub(crate) fn advance(
        &mut self,
        state: &mut OperationState,
        endpoint: &mut Endpoint<SharedMemory>,
        board: &mut Board,
        allowance: &mut u64,
    ) -> bool {
        let mut moved = self.beside.is_some() && self.advance_beside(state, endpoint);
        if !self.is_complete {
            if state.has_ended() {
                // A message beside it failed: somebody is gone, or the group was revoked.
                drop(self.board_call.fail(board, BoardError::Revoked));
                return true;
            }
            let advanced = self.advance_at_board(state, endpoint, board, allowance);
            moved |= self.advanced(state, endpoint, advanced);
        }
        moved
    }

    /// The next steps at the board; without memory this member comes with nothing.
    #[inline]
    fn advance_at_board(
        &mut self,
        state: &OperationState,
        endpoint: &mut Endpoint<SharedMemory>,
        board: &mut Board,
        allowance: &mut u64,
    ) -> Result<BoardProgress, BoardError> {
        match state.missing {
            None => self.board_call.advance(&state.call, board, endpoint, allowance),
            Some(no_memory) => self.board_call.fail(board, BoardError::NoMemory(no_memory)),
        }
    }

    /// The messages beside the board.
    #[cold]
    fn advance_beside(
        &mut self,
        state: &mut OperationState,
        endpoint: &mut Endpoint<SharedMemory>,
    ) -> bool {
        let begun = self.beside.as_mut().map(|beside| beside.begin());
        let (given, taken) = begun.unwrap_or_default();
        let mut moved = !(given.is_empty() && taken.is_empty());
        for LongBlock { member, area } in taken {
            if let Stepped::Out(id, message) = state.receive(endpoint, member, area) {
                state.await_message(None, id, message);
            }
        }
        for LongBlock { member, area } in given {
            match state.send(endpoint, member, area, false) {
                Ok(Stepped::Out(id, message)) => state.await_message(None, id, message),
                Ok(Stepped::Done) => {}
                Err(fault) => {
                    state.fail(endpoint, fault);
                    return true;
                }
            }
        }
        let mut at = 0;
        while let Some(ended) = state.take_ended(endpoint, &mut at) {
            moved = true;
            if ended.is_otherwise() {
                state.came_otherwise(&ended, &Area::EMPTY);
            }
        }
        moved |= state.has_ended();
        moved | self.end_beside(state)
    }

    /// Ends the operation if the board's part and all messages beside it are complete.
    fn end_beside(&mut self, state: &mut OperationState) -> bool {
        let is_complete = self.is_complete && state.has_no_message() && !state.has_ended();
        if is_complete {
            state.complete();
        }
        is_complete
    }

    /// Takes what the steps at the board came to. True when anything moved.
    fn advanced(
        &mut self,
        state: &mut OperationState,
        endpoint: &mut Endpoint<SharedMemory>,
        advanced: Result<BoardProgress, BoardError>,
    ) -> bool {
        if state.has_ended() {
            return false;
        }
        match advanced {
            Ok(BoardProgress::Complete) => {
                self.is_complete = true;
                self.end_beside(state);
            }
            Ok(advanced) => return advanced == BoardProgress::Moved,
            Err(BoardError::Lengths { .. }) if state.call.is_varying => {
                self.refuse(state, endpoint);
            }
            // The messages beside the board go on: each has a member that waits for it.
            Err(error) if self.beside.is_some() && error.is_about_memory() => {
                state.defer_at_board(error);
                self.is_complete = true;
                self.end_beside(state);
            }
            Err(error) => state.fail_at_board(endpoint, error),
        }
        true
    }

    /// Members have brought blocks of other lengths than this one expects. What comes beside the board is taken
    /// all the same, lest its senders wait for ever; what does not come is not waited for.
    #[cold]
    fn refuse(&mut self, state: &mut OperationState, endpoint: &mut Endpoint<SharedMemory>) {
        self.is_complete = true;
        self.beside.get_or_insert_default();
        for block in self.board_call.refused() {
            refuse_block(state, endpoint, block);
        }
        self.end_beside(state);
    }

    /// After a change of the membership: fails if it cannot complete without the dead. What they brought before still
    /// counts.
    #[cold]
    pub(crate) fn judge(
        &mut self,
        state: &mut OperationState,
        endpoint: &mut Endpoint<SharedMemory>,
        board: &mut Board,
    ) {
        let mut advanced = Ok(BoardProgress::Waits);
        let error = judged(
            &mut (&mut *self, &mut *board),
            |(steps, board)| steps.board_call.verdict(board, ScanScope::All),
            |(steps, board)| {
                advanced = steps.advance_at_board(state, endpoint, board, &mut { u64::MAX });
                matches!(advanced, Ok(BoardProgress::Moved))
            },
        );
        let Some(error) = error else { return };
        if matches!(advanced, Ok(BoardProgress::Waits)) {
            advanced = self.board_call.fail(board, error);
        }
        self.advanced(state, endpoint, advanced);
    }

    /// Whether the board's part goes on.
    pub(crate) fn is_at_board(&self) -> bool {
        !self.is_complete
    }
}

#[cold]
fn refuse_block(
    state: &mut OperationState,
    endpoint: &mut Endpoint<SharedMemory>,
    block: RefusedBlock,
) {
    let operation = state.call.operation;
    let (member, mut expected_bytes) = (block.member, block.expected_bytes as u64);
    if block.bytes == PLACEHOLDER_BYTES {
        if let Stepped::Out(id, message) = state.receive(endpoint, member, Area::EMPTY) {
            state.await_message(None, id, Message { expected_bytes, ..message });
        }
        return;
    }
    if let Some(bytes) = state.abandon_receive_from(endpoint, member) {
        expected_bytes = bytes;
    }
    let message_bytes = block.bytes as u64;
    state.defer(Fault::Length { member, operation, message_bytes, expected_bytes });
}
