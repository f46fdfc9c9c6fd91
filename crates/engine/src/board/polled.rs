//! An operation at a board that its caller polls: one with short data, or the steps of a plan.

use landeck_board::{Board, Neighbours};
use landeck_collectives::{Operation, Signature};
use landeck_kernel::Endpoint;
use landeck_memory::waiter::Patience;
use landeck_transports::SharedMemory;

use crate::board::BoardError;
use crate::board::call::{BoardCall, BoardProgress};
use crate::board::scan_scope::ScanScope;
use crate::call::Call;
use crate::combine::Combiner;

/// An operation at a board that its caller polls.
pub(crate) trait Polled {
    /// Does what can be done now; true when the operation is complete.
    fn look(
        &mut self,
        board: &mut Board,
        endpoint: &mut Endpoint<SharedMemory>,
        combiner: &mut Combiner,
    ) -> Result<bool, BoardError>;

    /// How far it is: another value after each look that has moved anything.
    fn progress(&self) -> (bool, u32);

    /// Returns why the step at which it stands can never be over, if that is so.
    fn verdict(&self, board: &Board, scope: ScanScope) -> Option<BoardError>;

    /// Ends it after an error, so that no other member waits for this one. None if it goes on until the board has room.
    fn give_up(&mut self, board: &mut Board, error: BoardError) -> Option<BoardError>;

    /// Whether it may wait for room.
    fn awaits_room(&self) -> bool;

    /// The relation of the processes on this processor to this wait.
    fn neighbours(&self, board: &Board, processor: u32) -> Neighbours;

    /// Its number, if it is known in which order members will be roots.
    fn rotation(&self, _board: &Board) -> Option<u32> {
        None
    }

    /// How long its caller stays awake for a group of this size.
    fn patience(&self, size: u32) -> Patience;

    /// The kind of operation.
    fn operation(&self) -> Operation;

    /// The call that the members compare.
    fn signature(&self) -> Signature;

    /// Its number on the board.
    fn number(&self) -> u32;
}

/// A board call whose caller polls it.
pub(crate) struct PolledCall<'a> {
    call: &'a Call,
    pub(crate) board_call: BoardCall,
    /// Looks that have moved something.
    moves: u32,
}

impl<'a> PolledCall<'a> {
    /// A board call that has begun.
    pub(crate) fn new(call: &'a Call, board_call: BoardCall) -> Self {
        Self { call, board_call, moves: 0 }
    }
}

impl Polled for PolledCall<'_> {
    #[inline]
    fn look(
        &mut self,
        board: &mut Board,
        endpoint: &mut Endpoint<SharedMemory>,
        _: &mut Combiner,
    ) -> Result<bool, BoardError> {
        let progress = self.board_call.advance(self.call, board, endpoint, &mut { u64::MAX })?;
        self.moves = self.moves.wrapping_add(u32::from(progress == BoardProgress::Moved));
        Ok(progress == BoardProgress::Complete)
    }

    fn progress(&self) -> (bool, u32) {
        (false, self.moves)
    }

    fn verdict(&self, board: &Board, scope: ScanScope) -> Option<BoardError> {
        self.board_call.verdict(board, scope)
    }

    fn give_up(&mut self, board: &mut Board, error: BoardError) -> Option<BoardError> {
        self.board_call.fail(board, error).err()
    }

    /// Each of its chunks needs room.
    fn awaits_room(&self) -> bool {
        true
    }

    fn neighbours(&self, board: &Board, processor: u32) -> Neighbours {
        self.board_call.neighbours(board, processor)
    }

    fn patience(&self, size: u32) -> Patience {
        Patience::all_moving(size, self.call.moved_bytes())
    }

    fn operation(&self) -> Operation {
        self.call.operation
    }

    fn signature(&self) -> Signature {
        self.board_call.signature()
    }

    fn number(&self) -> u32 {
        self.board_call.number()
    }
}
