//! Operations over boards that the caller waits for by polling them, as the endpoint of the process does them.

use std::sync::Arc;

use landeck_channel::Peer;
use landeck_collectives::Way;
use landeck_kernel::Area;

use super::{Engine, board_fault};
use crate::board::BoardError;
use crate::board_call::{BoardCall, BoardStep};
use crate::call::Call;
use crate::fault::Fault;
use crate::oversize::{has_long_blocks, long_instead};
use crate::scan_scope::ScanScope;

impl Engine {
    /// Begins an operation over the board that the caller waits for by polling it; none when the
    /// call takes another way.
    #[inline]
    pub(crate) fn visit(
        &mut self,
        context: u32,
        members: &Arc<[Peer]>,
        member: usize,
        call: &Call,
    ) -> Result<Option<BoardCall>, Fault> {
        let group = self.ready(context, members, member)?;
        match call.check(group.size(), group.place.member) {
            Err(Fault::Buffer { .. }) if call.is_varying => return Ok(None),
            checked => checked?,
        }
        match group.way(call) {
            Way::Board(style) if !call.needs_copy() && call.missing.is_none() => {
                let longest = group.longest_on_board(call.operation);
                match has_long_blocks(call, longest) {
                    false => group.visit(call, style).map(Some),
                    true => Ok(None),
                }
            }
            _ => Ok(None),
        }
    }

    /// Does what can be done of a visit, and says in `outcome` how it ended when it is over. That is
    /// written then and not returned each time: moving it would wait for all that was written
    /// before, to where others poll.
    #[inline]
    pub(crate) fn poll_visit(
        &mut self,
        context: u32,
        call: &Call,
        visit: &mut BoardCall,
        outcome: &mut Option<Result<(), Fault>>,
    ) {
        let Some(group) = self.groups.get_mut(&context) else { return };
        let Some(board) = group.board.as_mut() else { return };
        let advanced = visit.advance(call, board, &mut self.endpoint, &mut { u64::MAX });
        match advanced {
            Ok(BoardStep::Over) => *outcome = Some(Ok(())),
            Ok(_) => self.make_room(),
            Err(error) => {
                *outcome = Some(Err(self.visit_fault(context, call, visit, error)));
            }
        }
    }

    /// For how many nanoseconds a visit that waits keeps its core; not at all without a board.
    pub(crate) fn keep_core_ns(&self, context: u32, visit: &BoardCall, core: u32) -> u64 {
        self.board_of(context).map_or(0, |board| visit.neighbours(board, core).keep_core_ns())
    }

    /// Before sleep, or when members are gone: if a visit can never be over, why.
    #[cold]
    pub(crate) fn judge_visit(
        &mut self,
        context: u32,
        call: &Call,
        visit: &mut BoardCall,
        (sight, outcome): (ScanScope, &mut Option<Result<(), Fault>>),
    ) {
        self.endpoint.refresh();
        let Some(group) = self.groups.get_mut(&context) else { return };
        if let Some(mismatch) = group.told_mismatch(&mut self.endpoint) {
            *outcome = Some(Err(Fault::Mismatch(mismatch)));
            return;
        }
        let Some(error) = group.board.as_ref().and_then(|board| visit.verdict(board, sight)) else {
            return;
        };
        // What the gone have brought still counts.
        self.poll_visit(context, call, visit, outcome);
        let board = self.groups.get_mut(&context).and_then(|group| group.board.as_mut());
        if let (None, Some(board)) = (&outcome, board)
            && let Err(error) = visit.fail(board, error)
        {
            *outcome = Some(Err(self.visit_fault(context, call, visit, error)));
        }
    }

    /// What is wrong, for the caller. Long blocks in the place of short ones are taken and dropped, lest their
    /// senders wait for ever.
    #[cold]
    fn visit_fault(
        &mut self,
        context: u32,
        call: &Call,
        visit: &BoardCall,
        error: BoardError,
    ) -> Fault {
        let Some(group) = self.groups.get_mut(&context) else { return Fault::NoBoard };
        let mut fault = board_fault(&mut self.endpoint, group, call.operation, error);
        let refused = visit.refused();
        for wanted in long_instead(group, visit.signature().tag(), &refused, &mut fault) {
            let id = self.endpoint.receive(wanted, Area::EMPTY);
            self.release(id.into());
        }
        fault
    }

    /// A visit is over, or given up.
    #[inline]
    pub(crate) fn end_visit(&mut self, context: u32, visit: BoardCall) {
        if let Some(group) = self.groups.get_mut(&context) {
            group.end_visit(visit);
        }
    }
}
