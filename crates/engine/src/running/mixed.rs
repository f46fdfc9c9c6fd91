//! The steps at the board in a plan that has messages, too.
//!
//! A [`BoardCall`](crate::board::call::BoardCall) walks a plan with steps at the board alone. Here the executor of
//! messages walks the plan, and hands each step at the board to the same [`AtBoard`]. The board sees one step of a
//! member at a time, so such steps are taken in the order in which they begin.
//!
//! A plan over hosts may go to the board twice. Each visit is an operation of its own there, with a number and a word, and
//! all members of the host make equally many. A deposit begins the next visit, and ends the one before for this member.

use std::collections::VecDeque;
use std::sync::Arc;

use landeck_arithmetic::Operator;
use landeck_board::{Board, Came};
use landeck_collectives::{Action, Cells, Execution, Plan};
use landeck_kernel::{Area, Endpoint};
use landeck_memory::Buffer;
use landeck_transports::SharedMemory;

use crate::binding::Binding;
use crate::board::scan_scope::ScanScope;
use crate::board::{Around, AtBoard, BlockMemory, BoardError, Protocol, Stepped};
use crate::fault::Fault;
use crate::group::host_boards::{CallsAtBoard, rank_of};
use crate::lack::Lack;

/// The steps of one operation at the board.
pub(crate) struct BoardSteps {
    at: Box<AtBoard>,
    /// The number and the word of each visit.
    visits: Vec<(u32, u32)>,
    /// The visit that goes on; all before it are over for this member.
    visit: usize,
    protocol: Protocol,
    /// The ranks of the members at the board by their places there, and its calls; none where these are the group's.
    names: Option<Box<(Arc<[u32]>, CallsAtBoard)>>,
    /// This member takes nothing more of any visit.
    has_left: bool,
    /// Steps that have begun, in this order; the first is at the board.
    begun: VecDeque<u32>,
    /// The step that was at the board last.
    last: Option<u32>,
    /// The rank of this member.
    own: u32,
    /// This member takes part in no further step at the board.
    given_up: Option<Lack>,
}

/// How far the steps got.
pub(crate) struct Advanced {
    /// Anything moved.
    pub(crate) moved: bool,
    /// The first step that failed, where this member goes on for the sake of the others.
    pub(crate) error: Option<BoardError>,
    /// Steps that are over and were not done.
    pub(crate) lost: Vec<u32>,
}

/// Whether a step is done at the board.
pub(crate) fn is_at_board(action: &Action) -> bool {
    !matches!(
        action,
        Action::Send { .. } | Action::Receive { .. } | Action::Copy { .. } | Action::Combine { .. }
    )
}

impl BoardSteps {
    /// The steps of an operation that has these numbers and words on the board, one of each for each visit.
    pub(crate) fn new(
        visits: Vec<(u32, u32)>,
        names: Option<(Arc<[u32]>, CallsAtBoard)>,
        plan: &Plan,
        is_oversubscribed: bool,
    ) -> Self {
        let own = plan.member;
        let protocol = Protocol::of_mixed(plan, is_oversubscribed);
        let mut at = Box::<AtBoard>::default();
        if let Some(&(number, word)) = visits.first() {
            at.begin(number, word, 0, protocol);
        }
        let (begun, given_up) = (VecDeque::new(), None);
        let (visit, has_left, last, names) = (0, false, None, names.map(Box::new));
        Self { at, visits, visit, protocol, names, has_left, begun, last, own, given_up }
    }

    /// The members that this one may wait for at the board, itself among them.
    pub(crate) fn awaited(&self) -> &[u32] {
        match &self.names {
            Some(names) if !self.begun.is_empty() => &names.0,
            _ => &[],
        }
    }

    /// The member that the step at the board waits for: whose data it takes, or the first that has not come.
    #[cold]
    pub(crate) fn awaited_member(&self, execution: &Execution, board: &Board) -> Option<u32> {
        let ranks = &self.names.as_deref()?.0;
        let &(number, word) = self.visits.get(self.visit)?;
        let is_missing =
            |place: &u32| *place != board.own() && board.came(*place, number, word) == Came::NotYet;
        let place = match *execution.action(*self.begun.front()?) {
            Action::Take { from, .. } | Action::Read { from, .. } => from,
            _ => (0..board.size()).find(is_missing)?,
        };
        Some(rank_of(ranks, place))
    }

    /// The next step belongs to the next visit if it is a deposit and this member has made one in this visit.
    fn turn_to_visit_of(&mut self, action: &Action, board: &mut Board) {
        let is_next = action.comes() && self.at.has_come();
        let Some(&(number, word)) = self.visits.get(self.visit + 1).filter(|_| is_next) else {
            return;
        };
        board.end(self.at.number());
        self.visit += 1;
        self.at.begin(number, word, 0, self.protocol);
    }

    /// The operation has ended for this member: it needs nothing more at the board. After a death or a revocation it
    /// comes to no further visit, and says so.
    pub(crate) fn leave(&mut self, board: &mut Board, outcome: Option<&Result<(), Fault>>) {
        if std::mem::replace(&mut self.has_left, true) {
            return;
        }
        let come_to = self.visit + usize::from(self.at.has_come());
        let ended = match outcome {
            // All are told of it by messages. A visit that was ended without coming there would look overwritten.
            Some(Err(Fault::Mismatch(_))) => self.visit..come_to,
            Some(Err(Fault::Failure(_))) => {
                self.refuse_rest(board);
                self.visit..self.visits.len()
            }
            _ => self.visit..self.visits.len(),
        };
        for &(number, _) in self.visits.get(ended).unwrap_or(&[]) {
            board.end(number);
        }
    }

    /// This member comes to no visit any more to which it has not come.
    fn refuse_rest(&self, board: &mut Board) {
        let first = self.visit + usize::from(self.at.has_come());
        match self.visits.get(first) {
            Some(&(number, _)) => board.refuse(number),
            None => board.wake(),
        }
    }

    /// An error with the rank of the member that it names.
    pub(crate) fn named(&self, error: BoardError) -> BoardError {
        let Some((ranks, calls)) = self.names.as_deref() else { return error };
        let rank = |member| rank_of(ranks, member);
        match error {
            BoardError::Gone(member) => BoardError::Gone(rank(member)),
            BoardError::Spoiled(member) => BoardError::Spoiled(rank(member)),
            BoardError::NoRoom(member) => BoardError::NoRoom(rank(member)),
            BoardError::Lack { member, lack } => BoardError::Lack { member: rank(member), lack },
            BoardError::Broken(member) => BoardError::Broken(rank(member)),
            BoardError::Different(found) => BoardError::Different(calls.named(ranks, found)),
            BoardError::Disagrees { member, theirs, ours } => {
                BoardError::Disagrees { member: rank(member), theirs, ours }
            }
            BoardError::Lengths { member, theirs, ours } => {
                BoardError::Lengths { member: rank(member), theirs, ours }
            }
            error => error,
        }
    }

    /// Whether a step has begun that is not over.
    #[inline]
    pub(crate) fn goes_on(&self) -> bool {
        !self.begun.is_empty()
    }

    /// A step may begin.
    pub(crate) fn begin(&mut self, step: u32) {
        self.begun.push_back(step);
    }

    /// The number and the word of the visit to which this member has come, with all of its deposit.
    pub(crate) fn come(&self) -> Option<(u32, u32)> {
        let has_come = self.at.has_come() && self.begun.is_empty();
        self.visits.get(self.visit).copied().filter(|_| has_come)
    }

    /// This member takes part with nothing from now on.
    pub(crate) fn give_up(&mut self, lack: Lack) {
        self.given_up.get_or_insert(lack);
    }

    /// Does what can be done now of the steps that have begun.
    ///
    /// # Errors
    /// The [`BoardError`] that ends the operation for the whole group.
    pub(crate) fn advance(
        &mut self,
        execution: &mut Execution,
        memory: &Binding,
        operator: Option<&Operator>,
        board: &mut Board,
        endpoint: &mut Endpoint<SharedMemory>,
        allowance: &mut u64,
    ) -> Result<Advanced, BoardError> {
        let mut advanced = Advanced { moved: false, error: None, lost: Vec::new() };
        let mut around = Around {
            board,
            memory,
            operator,
            allocate: &mut |bytes| endpoint.allocate_deposit(bytes),
            budget: allowance,
        };
        while let Some(&step) = self.begun.front() {
            if self.last.replace(step) != Some(step) {
                self.turn_to_visit_of(execution.action(step), around.board);
            }
            let stepped = match self.given_up {
                Some(_) => {
                    let has_come = self.at.has_come()
                        || self.at.come_with_nothing(around.board, self.given_up);
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
                    if self.given_up.is_some() {
                        advanced.lost.push(step);
                    }
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
    pub(crate) fn fail(
        &mut self,
        board: &mut Board,
        error: BoardError,
    ) -> Result<BoardError, BoardError> {
        if error.leaves_group_whole() || error.is_want_of_memory() {
            self.give_up(self.named(error.clone()).lack(self.own));
            self.at.leave_step();
            return Ok(error);
        }
        // In a group over hosts all are told of a difference by messages, which a refusal would overtake.
        if self.names.is_none() || !matches!(error, BoardError::Different(_)) {
            self.refuse_rest(board);
        }
        error.give_up(board);
        board.wake();
        Err(error)
    }

    /// The reason why the step at the board can never complete.
    #[cold]
    pub(crate) fn verdict(&self, execution: &Execution, board: &Board) -> Option<BoardError> {
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
