//! Operations over boards that the caller waits for by polling them, as the endpoint of the process does them.

use landeck_collectives::BoardStyle;
use landeck_kernel::Area;

use super::{Engine, board_fault};
use crate::board::BoardError;
use crate::board::call::{BoardCall, BoardProgress};
use crate::board::scan_scope::ScanScope;
use crate::call::Call;
use crate::fault::Fault;
use crate::judging::judged;
use crate::oversize::long_instead;

impl Engine {
    /// Begins an operation over the board that the caller waits for by polling it.
    ///
    /// # Errors
    /// The [`Fault`] of the call, or [`Fault::NoBoard`].
    #[inline]
    pub(crate) fn begin_board_call(
        &mut self,
        context: u32,
        call: &Call,
        style: BoardStyle,
    ) -> Result<BoardCall, Fault> {
        let Some(group) = self.groups.get_mut(&context) else { return Err(Fault::NotAMember) };
        call.check(group.size(), group.place.member)?;
        group.board_call(call, style)
    }

    /// Does what can be done of a board call, and says in `outcome` how it ended when it is complete. That is
    /// written then and not returned each time: moving it would wait for all that was written
    /// before, to where others poll. Returns whether anything has moved, and the call goes on.
    #[inline]
    pub(crate) fn poll_board_call(
        &mut self,
        context: u32,
        call: &Call,
        board_call: &mut BoardCall,
        outcome: &mut Option<Result<(), Fault>>,
    ) -> bool {
        let Some(group) = self.groups.get_mut(&context) else { return false };
        let Some(board) = group.board.as_mut() else { return false };
        let advanced = board_call.advance(call, board, &mut self.endpoint, &mut { u64::MAX });
        match advanced {
            Ok(BoardProgress::Complete) => *outcome = Some(Ok(())),
            Ok(progress) => {
                self.make_room();
                return progress == BoardProgress::Moved;
            }
            Err(error) => {
                *outcome = Some(Err(self.board_call_fault(context, call, board_call, error)));
            }
        }
        false
    }

    /// For how many nanoseconds a board call that waits keeps its core; not at all without a board.
    pub(crate) fn keep_core_ns(&self, context: u32, board_call: &BoardCall, core: u32) -> u64 {
        let board = self.board_of(context);
        board.map_or(0, |board| board_call.neighbours(board, core).keep_core_ns())
    }

    /// Before sleep, or when members are gone: fails a board call that can never complete.
    #[cold]
    pub(crate) fn judge_board_call(
        &mut self,
        context: u32,
        call: &Call,
        board_call: &mut BoardCall,
        (scope, outcome): (ScanScope, &mut Option<Result<(), Fault>>),
    ) {
        self.endpoint.refresh();
        let Some(group) = self.groups.get_mut(&context) else { return };
        if let Some(mismatch) = group.told_mismatch(&mut self.endpoint) {
            *outcome = Some(Err(Fault::Mismatch(mismatch)));
            return;
        }
        let verdict = |(engine, board_call, _): &(&mut Self, &mut BoardCall, &mut _)| {
            let board = engine.groups.get(&context)?.board.as_ref()?;
            board_call.verdict(board, scope)
        };
        let error = judged(
            &mut (&mut *self, &mut *board_call, &mut *outcome),
            verdict,
            |(engine, board_call, outcome)| {
                engine.poll_board_call(context, call, board_call, outcome)
            },
        );
        let Some(error) = error else { return };
        let board = self.groups.get_mut(&context).and_then(|group| group.board.as_mut());
        if let (None, Some(board)) = (&outcome, board)
            && let Err(error) = board_call.fail(board, error)
        {
            *outcome = Some(Err(self.board_call_fault(context, call, board_call, error)));
        }
    }

    /// The fault of a board call, for the caller. Long blocks in the place of short ones are taken and dropped, lest their
    /// senders wait for ever.
    #[cold]
    fn board_call_fault(
        &mut self,
        context: u32,
        call: &Call,
        board_call: &BoardCall,
        error: BoardError,
    ) -> Fault {
        let Some(group) = self.groups.get_mut(&context) else { return Fault::NoBoard };
        let mut fault = board_fault(&mut self.endpoint, group, call.operation, error);
        let refused = board_call.refused();
        for wanted in long_instead(group, board_call.signature().tag(), &refused, &mut fault) {
            let id = self.endpoint.receive(wanted, Area::EMPTY);
            self.release(id.into());
        }
        fault
    }

    /// A board call is complete, or given up.
    #[inline]
    pub(crate) fn end_board_call(&mut self, context: u32, board_call: BoardCall) {
        if let Some(group) = self.groups.get_mut(&context) {
            group.end_board_call(board_call);
        }
    }
}
