//! Waiting at the board: blocking calls of collective operations in thread mode single.
//!
//! With several threads, and where operations do not block, they go on in the engine's table; the
//! only thread of a process polls the board itself.

use std::sync::Arc;

use landeck_channel::Peer;
use landeck_kernel::Endpoint;
use landeck_memory::board::Board;
use landeck_memory::waiter::{Neighbours, Patience, Waiting};
use landeck_memory::{End, Operation, ThreadMode, WaitRecord};
use landeck_transports::SharedMemory;

use crate::collective::Fault;
use crate::collective::board::BoardError;
use crate::collective::brief::Brief;
use crate::collective::call::Call;
use crate::collective::circle::Circle;
use crate::collective::engine::board_fault;
use crate::collective::visit::Visit;
use crate::shared::{Kernel, Shared, WaitError, why};

impl Shared {
    /// Does an operation with short data; false when it must go another way.
    #[inline]
    pub(crate) fn brief(
        &self,
        context: u32,
        members: &Arc<[Peer]>,
        member: usize,
        mut brief: Brief<'_>,
    ) -> Result<bool, WaitError> {
        if self.kernel.mode() == ThreadMode::Multiple {
            return Ok(false);
        }
        let mut kernel = self.kernel.enter()?;
        let begun = kernel.brief(context, members, member, &mut brief);
        let Some((circle, endpoint)) = begun.map_err(WaitError::Collective)? else {
            return Ok(false);
        };
        let mut waiter = self.turn.enter()?;
        let mut meeting = Meeting {
            shared: self,
            circle,
            endpoint,
            brief,
            polls: 0,
            outcome: None,
            is_asleep: false,
            awaits_room: false,
        };
        let end = waiter.wait(&mut meeting, None);
        meeting.wake_up();
        match meeting.outcome {
            Some(Ok(())) => Ok(true),
            Some(Err(fault)) => Err(WaitError::Collective(fault)),
            None => Err(why(&kernel, None, end)),
        }
    }

    /// Does an operation over the board, if that is its way; none when it is not. Only in thread
    /// mode single: with several threads an operation goes on in the table.
    #[inline]
    pub(crate) fn visit(
        &self,
        context: u32,
        members: &Arc<[Peer]>,
        member: usize,
        call: &Call,
    ) -> Result<Option<()>, WaitError> {
        if self.kernel.mode() == ThreadMode::Multiple {
            return Ok(None);
        }
        let mut kernel = self.kernel.enter()?;
        let visit = kernel.visit(context, members, member, call).map_err(WaitError::Collective)?;
        let Some(visit) = visit else { return Ok(None) };
        let mut waiter = self.turn.enter()?;
        let mut visiting = Visiting {
            shared: self,
            kernel: &mut kernel,
            context,
            call,
            visit,
            polls: 0,
            outcome: None,
        };
        let end = waiter.wait(&mut visiting, None);
        let Visiting { visit, outcome, .. } = visiting;
        kernel.wake_up();
        kernel.end_visit(context, visit);
        match outcome {
            Some(outcome) => outcome.map(Some).map_err(WaitError::Collective),
            None => Err(why(&kernel, None, end)),
        }
    }
}

/// The wait of the only thread for the others, for short data, while nothing else goes on.
struct Meeting<'a> {
    shared: &'a Shared,
    circle: &'a mut Circle,
    endpoint: &'a mut Endpoint<SharedMemory>,
    brief: Brief<'a>,
    polls: u32,
    outcome: Option<Result<(), Fault>>,
    is_asleep: bool,
    /// When it fell asleep.
    awaits_room: bool,
}

impl Meeting<'_> {
    #[inline]
    fn look(&mut self) {
        let Some(board) = &mut self.circle.board else { return };
        let endpoint = &mut *self.endpoint;
        let allocate = &mut |bytes| endpoint.allocate(bytes);
        match self.brief.poll(board, allocate, &mut self.circle.combiner) {
            Ok(false) => {}
            Ok(true) => self.outcome = Some(Ok(())),
            Err(error) => self.fail(error),
        }
    }

    #[cold]
    fn fail(&mut self, error: BoardError) {
        let (operation, signature) = (self.brief.operation, self.brief.signature());
        let fault = board_fault(self.endpoint, self.circle, operation, signature, error);
        self.outcome = Some(Err(fault));
    }

    /// Looks why it can never be over, at the words of all members.
    #[cold]
    fn judge(&mut self) {
        self.endpoint.refresh();
        if self.outcome.is_none()
            && let Some(mismatch) = self.circle.told_mismatch(self.endpoint)
        {
            self.outcome = Some(Err(Fault::Mismatch(mismatch)));
        }
        let Some(board) = &self.circle.board else { return };
        if self.outcome.is_none()
            && let Some(error) = self.brief.verdict(board)
        {
            // What the gone have brought still counts.
            self.look();
            if self.outcome.is_none()
                && let Some(board) = &mut self.circle.board
            {
                let error = self.brief.lost(board, error);
                self.fail(error);
            }
        }
    }

    #[inline]
    fn wake_up(&mut self) {
        if self.is_asleep
            && let Some(board) = &self.circle.board
        {
            board.wakes(self.awaits_room);
        }
    }
}

impl Waiting for Meeting<'_> {
    const KNOWS_WHOM: bool = true;

    fn neighbours(&self, processor: u32) -> Neighbours {
        let board = self.circle.board.as_ref();
        board.map_or(Neighbours::Awaited, |board| self.brief.neighbours(board, processor))
    }

    fn patience(&self) -> Patience {
        Patience::all_of(self.circle.size())
    }

    #[inline]
    fn poll(&mut self) -> bool {
        if self.outcome.is_none() {
            self.look();
            self.polls += 1;
            if self.polls.is_multiple_of(POLLS_PER_PROGRESS) {
                self.endpoint.progress();
            }
        }
        self.outcome.is_some()
    }

    fn poll_before_sleep(&mut self) -> bool {
        self.endpoint.progress_thoroughly();
        if !self.poll() {
            self.judge();
        }
        if self.outcome.is_none() {
            self.shared.let_sockets_wake(self.endpoint);
        }
        self.outcome.is_some()
    }

    /// Asked at the beginning of every wait: the words of all are looked at only when something
    /// has happened to the group.
    fn verdict(&mut self) -> Option<End> {
        self.endpoint.refresh();
        let place = &self.circle.place;
        let is_revoked = self.circle.board.as_ref().is_some_and(Board::is_revoked);
        if is_revoked || self.endpoint.failure_of_group(place.context, &place.members).is_some() {
            self.judge();
        }
        self.outcome.as_ref().map(|_| End::PeerFailed)
    }

    fn record(&self) -> WaitRecord {
        let tag = Some(self.brief.signature().tag());
        let (context, number) = (self.circle.place.context, self.brief.number());
        let board = self.endpoint.board_of(context).unwrap_or(0);
        let operation = Operation::Collective;
        WaitRecord { operation, tag, context, board, number, ..WaitRecord::default() }
    }

    fn prepare_sleep(&mut self) {
        if !self.is_asleep
            && let Some(board) = &self.circle.board
        {
            self.awaits_room = !self.brief.has_come();
            board.sleeps(self.awaits_room);
            self.is_asleep = true;
        }
    }
}

/// The wait of the only thread for the others at the board.
struct Visiting<'a> {
    shared: &'a Shared,
    kernel: &'a mut Kernel,
    context: u32,
    call: &'a Call,
    visit: Visit,
    polls: u32,
    outcome: Option<Result<(), Fault>>,
}

impl Visiting<'_> {
    #[cold]
    fn judge(&mut self) {
        if self.outcome.is_none() {
            let (call, visit) = (self.call, &mut self.visit);
            self.kernel.judge_visit(self.context, call, visit, &mut self.outcome);
        }
    }
}

impl Waiting for Visiting<'_> {
    const KNOWS_WHOM: bool = true;

    fn neighbours(&self, processor: u32) -> Neighbours {
        self.kernel.neighbours(self.context, &self.visit, processor)
    }

    fn patience(&self) -> Patience {
        Patience::all_of(self.visit.size())
    }

    #[inline]
    fn poll(&mut self) -> bool {
        if self.outcome.is_none() {
            self.kernel.poll_visit(self.context, self.call, &mut self.visit, &mut self.outcome);
        }
        self.polls += 1;
        if self.outcome.is_none() && self.polls.is_multiple_of(POLLS_PER_PROGRESS) {
            self.kernel.progress();
        }
        self.outcome.is_some()
    }

    fn poll_before_sleep(&mut self) -> bool {
        self.kernel.progress_thoroughly();
        if !self.poll() {
            self.judge();
        }
        if self.outcome.is_none() {
            self.shared.let_sockets_wake(self.kernel);
        }
        self.outcome.is_some()
    }

    /// As that of a [`Meeting`].
    fn verdict(&mut self) -> Option<End> {
        if self.kernel.is_group_broken(self.context) {
            self.judge();
        }
        self.outcome.as_ref().map(|_| End::PeerFailed)
    }

    fn record(&self) -> WaitRecord {
        let tag = Some(self.visit.signature().tag());
        let (operation, context) = (Operation::Collective, self.context);
        let board = self.kernel.board_of(context).unwrap_or(0);
        let number = self.visit.number();
        WaitRecord { operation, tag, context, board, number, ..WaitRecord::default() }
    }

    fn prepare_sleep(&mut self) {
        self.kernel.fall_asleep(Some(self.context));
    }
}

/// In so many polls the messages are looked at once.
const POLLS_PER_PROGRESS: u32 = 32;
