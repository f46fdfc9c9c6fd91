//! The steps at the board in a plan that has messages, too.
//!
//! A [`BoardCall`](crate::board_call::BoardCall) walks a plan with steps at the board alone. Here the executor of
//! messages walks the plan, and hands each step at the board to the same [`AtBoard`]. The board sees one step of a
//! member at a time, so such steps are taken in the order in which they begin.

use std::collections::VecDeque;

use landeck_arithmetic::Operator;
use landeck_board::Board;
use landeck_collectives::{Action, Cells, Execution, Plan};
use landeck_kernel::{Area, Endpoint};
use landeck_memory::Buffer;
use landeck_transports::SharedMemory;

use crate::binding::Binding;
use crate::board::{Around, AtBoard, BlockMemory, BoardError, Protocol, Stepped};
use crate::scan_scope::ScanScope;

/// The steps of one operation at the board.
pub(super) struct BoardSteps {
    at: Box<AtBoard>,
    /// Steps that have begun, in this order; the first is at the board.
    begun: VecDeque<u32>,
    /// This member takes part in no further step at the board; for want of memory, or for another reason.
    given_up: Option<ForWantOfMemory>,
}

/// Whether a member has given up because memory is missing.
type ForWantOfMemory = bool;

/// How far the steps got.
pub(super) struct Advanced {
    /// Anything moved.
    pub(super) moved: bool,
    /// The first step that failed, where this member goes on for the sake of the others.
    pub(super) error: Option<BoardError>,
}

/// Whether a step is done at the board.
pub(super) fn is_at_board(action: &Action) -> bool {
    !matches!(
        action,
        Action::Send { .. } | Action::Receive { .. } | Action::Copy { .. } | Action::Combine { .. }
    )
}

impl BoardSteps {
    /// The steps of an operation that has this number and word on the board.
    pub(super) fn new((number, word): (u32, u32), plan: &Plan, is_oversubscribed: bool) -> Self {
        let mut at = Box::<AtBoard>::default();
        at.begin(number, word, 0, Protocol::of_mixed(plan, is_oversubscribed));
        Self { at, begun: VecDeque::new(), given_up: None }
    }

    /// A step may begin.
    pub(super) fn begin(&mut self, step: u32) {
        self.begun.push_back(step);
    }

    /// This member takes part with nothing from now on.
    pub(super) fn give_up(&mut self, for_want_of_memory: ForWantOfMemory) {
        self.given_up.get_or_insert(for_want_of_memory);
    }

    /// Does what can be done now of the steps that have begun.
    ///
    /// # Errors
    /// The [`BoardError`] that ends the operation for the whole group.
    pub(super) fn advance(
        &mut self,
        execution: &mut Execution,
        memory: &Binding,
        operator: Option<&Operator>,
        board: &mut Board,
        endpoint: &mut Endpoint<SharedMemory>,
        allowance: &mut u64,
    ) -> Result<Advanced, BoardError> {
        let mut advanced = Advanced { moved: false, error: None };
        let mut around = Around {
            board,
            memory,
            operator,
            allocate: &mut |bytes| endpoint.allocate_deposit(bytes),
            budget: allowance,
        };
        while let Some(&step) = self.begun.front() {
            let stepped = match self.given_up {
                Some(is_short) => {
                    let has_come =
                        self.at.has_come() || self.at.come_with_nothing(around.board, is_short);
                    if has_come { Stepped::Over } else { Stepped::Waits }
                }
                None => match self.at.step(execution.action(step), &mut around) {
                    Ok(stepped) => stepped,
                    Err(error) => {
                        let error = self.fail(around.board, error)?;
                        advanced.error.get_or_insert(error);
                        continue;
                    }
                },
            };
            match stepped {
                Stepped::Over => {
                    self.begun.pop_front();
                    execution.end(step);
                }
                Stepped::Moved if *around.budget > 0 => {}
                Stepped::Moved => return Ok(Advanced { moved: true, ..advanced }),
                Stepped::Waits => return Ok(advanced),
            }
            advanced.moved = true;
        }
        Ok(advanced)
    }

    /// A step cannot be done. Where the group stays whole the others do not wait for this member, and the operation
    /// goes on.
    ///
    /// # Errors
    /// The [`BoardError`] that ends the operation for the whole group.
    #[cold]
    pub(super) fn fail(
        &mut self,
        board: &mut Board,
        error: BoardError,
    ) -> Result<BoardError, BoardError> {
        if error.leaves_group_whole() || error.is_want_of_memory() {
            self.give_up(error.is_about_memory());
            self.at.leave_step();
            return Ok(error);
        }
        if !self.at.has_come() {
            board.refuse(self.at.number());
        }
        error.give_up(board);
        board.wake();
        Err(error)
    }

    /// The reason why the step at the board can never complete.
    #[cold]
    pub(super) fn verdict(&self, execution: &Execution, board: &Board) -> Option<BoardError> {
        let step = *self.begun.front()?;
        self.at.verdict(execution.action(step), board, ScanScope::All)
    }
}

impl BlockMemory for Binding {
    fn plain(&self, cells: Cells) -> Option<Buffer> {
        Self::area(self, cells).as_buffer()
    }

    fn area(&self, cells: Cells) -> Area {
        Self::area(self, cells)
    }

    fn bytes(&self, cells: Cells) -> usize {
        Self::bytes(self, cells)
    }

    fn has_table(&self) -> bool {
        false
    }
}
