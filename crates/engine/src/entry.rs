//! The two entries of collective calls: [`Shared::collective`] waits, [`Shared::start`] does not.
//!
//! Each asks for the route of its call once ([`crate::route`]), and then walks that route.

use std::time::Duration;

use landeck_collectives::BoardStyle;
use landeck_memory::gate::Entry;
use landeck_memory::{Operation, ThreadMode, WaitRecord, Waiter};

use crate::board::polled::PolledCall;
use crate::call::Call;
use crate::engine::Ready;
use crate::fault::Fault;
use crate::identity::GroupRef;
use crate::inline::InlineCollective;
use crate::operation::CallDescription;
use crate::route::{Polling, Route};
use crate::threads::board_wait::{Stage, failed, turned_away};
use crate::threads::shared::{Shared, deadline_ns, why};
use crate::wait_error::Ended;
use crate::{Engine, OperationId, WaitError};

/// The longest time for which a member that has found a mismatch waits until the others are told.
const TELL_TIME: Duration = Duration::from_secs(1);

impl Shared {
    /// Does a collective operation and returns when this member has done its part.
    ///
    /// # Errors
    /// The fault of the operation; [`WaitError`], as all waits.
    #[inline(always)]
    pub fn collective(
        &self,
        of: GroupRef<'_>,
        asked: CallDescription<'_>,
    ) -> Result<(), Box<WaitError>> {
        let ended = match self.engine.mode() {
            ThreadMode::Single => self.collective_alone(of, asked),
            ThreadMode::Multiple => self.collective_in_turn(of, asked),
        };
        ended.map_err(|error| self.until_told(error))
    }

    /// Behind a mismatch: waits until the word of it has left for the members of other hosts, since the program may call
    /// nothing for long, and they wait.
    #[cold]
    #[inline(never)]
    fn until_told(&self, error: Box<WaitError>) -> Box<WaitError> {
        if matches!(*error, WaitError::Collective(Fault::Mismatch(_))) {
            let record = WaitRecord { operation: Operation::Wait, ..WaitRecord::default() };
            let has_left = |engine: &mut Engine| (!engine.endpoint.has_words()).then_some(());
            // A member that cannot be told in that time is not there, or has no path.
            let _ = self.wait_until(&record, deadline_ns(Some(TELL_TIME)), has_left);
        }
        error
    }

    /// Begins a collective operation, which moves at most `allowance` bytes for now. None when it is complete at once.
    ///
    /// # Errors
    /// The fault of the call, or of an operation that failed at once; [`WaitError::Gate`].
    pub fn start(
        &self,
        of: GroupRef<'_>,
        call: Call,
        allowance: u64,
    ) -> Result<Option<OperationId>, Box<WaitError>> {
        let mut engine = self.engine.enter().map_err(turned_away)?;
        let started = engine.start(of, call, allowance).map_err(failed)?;
        Ok(started.map(OperationId::Collective))
    }

    /// Does an operation as the only thread of the process.
    #[inline(never)]
    fn collective_alone(&self, of: GroupRef<'_>, asked: CallDescription<'_>) -> Ended {
        let mut inline = asked.inline(of);
        let mut engine = self.engine.enter().map_err(turned_away)?;
        let mut ready = engine.ready(of).map_err(failed)?;
        match ready.route(of, &asked, inline.as_mut(), Polling::Alone) {
            Route::Inline { inline, style } => {
                ready.group.begin_inline(inline, style);
                let mut waiter = self.turn.enter().map_err(turned_away)?;
                let mut stage = Stage::of(inline);
                let end = self.wait_at_board_alone(&mut waiter, ready, &mut stage);
                match stage.ended() {
                    Some(ended) => ended,
                    None if stage.lacks_room => {
                        drop(engine);
                        self.wait_at_board_with_turn(&mut waiter, of, &mut stage)
                    }
                    None => Err(Box::new(why(&engine, None, end))),
                }
            }
            Route::PolledBoard(style) => self.poll_board_call(engine, of, asked, style),
            route => {
                let started = start_by(&mut engine, of, asked, route)?;
                drop(engine);
                self.wait_started(started)
            }
        }
    }

    /// Does an operation where other threads of the process may wait, too.
    #[inline(never)]
    fn collective_in_turn(&self, of: GroupRef<'_>, asked: CallDescription<'_>) -> Ended {
        let mut inline = asked.inline(of);
        // A call that has no inline form goes on in the table: it needs the turn to wait, and not to begin.
        let turn = match inline {
            Some(_) => self.turn.try_enter_in_turn().map_err(turned_away)?,
            None => None,
        };
        let Some(mut waiter) = turn else {
            let call = asked.into_call(of).map_err(failed)?;
            let started = self.start(of, call, u64::MAX)?;
            return self.wait_started(started);
        };
        let started = self.begin_with_turn(&mut waiter, of, asked, inline.as_mut());
        drop(waiter);
        self.call_next();
        self.wait_started(started?)
    }

    /// Does an operation with short data as the thread that has the turn. An operation that goes on in the table is
    /// begun, and waited for behind that.
    #[inline]
    fn begin_with_turn(
        &self,
        waiter: &mut Waiter,
        of: GroupRef<'_>,
        asked: CallDescription<'_>,
        inline: Option<&mut InlineCollective<'_>>,
    ) -> Result<Option<OperationId>, Box<WaitError>> {
        let mut engine = self.engine.enter_in_turn().map_err(turned_away)?;
        let mut ready = engine.ready(of).map_err(failed)?;
        match ready.route(of, &asked, inline, Polling::WithTurn) {
            Route::Inline { inline, style } => {
                ready.group.begin_inline(inline, style);
                let mut stage = Stage::of(inline);
                self.look_first(waiter, ready, &mut stage);
                drop(engine);
                let ended = stage.ended();
                ended
                    .unwrap_or_else(|| self.wait_at_board_with_turn(waiter, of, &mut stage))
                    .map(|()| None)
            }
            route => start_by(&mut engine, of, asked, route),
        }
    }

    /// Does an operation over the board as the only thread, which polls the steps of its plan.
    #[inline(never)]
    fn poll_board_call<'s>(
        &'s self,
        mut engine: Entry<'s, Engine>,
        of: GroupRef<'_>,
        asked: CallDescription<'_>,
        style: BoardStyle,
    ) -> Ended {
        let call = asked.into_call(of).map_err(failed)?;
        let Some(ready) = engine.group_of_context(of.context) else {
            return Err(failed(Fault::NotAMember));
        };
        call.check(of.size(), ready.group.place.member).map_err(failed)?;
        let board_call = ready.group.board_call(&call, style).map_err(failed)?;
        let mut polled = PolledCall::new(&call, board_call);
        let mut waiter = self.turn.enter().map_err(turned_away)?;
        let mut stage = Stage::of(&mut polled);
        self.look_first(&mut waiter, ready, &mut stage);
        let mut ended = match stage.ended() {
            Some(ended) => ended,
            None => {
                drop(engine);
                let ended = self.wait_at_board_with_turn(&mut waiter, of, &mut stage);
                engine = self.engine.enter().map_err(turned_away)?;
                ended
            }
        };
        engine.end_board_call(of.context, polled.board_call, &mut ended);
        ended
    }

    /// Waits for an operation that goes on in the table; none was complete at once.
    fn wait_started(&self, started: Option<OperationId>) -> Ended {
        match started {
            None => Ok(()),
            Some(id) => self.wait_or_abandon(id, None).map(drop).map_err(Box::new),
        }
    }
}

impl Ready<'_> {
    /// The route of a call.
    #[inline(always)]
    fn route<'i, 'a>(
        &mut self,
        of: GroupRef<'_>,
        asked: &CallDescription<'_>,
        inline: Option<&'i mut InlineCollective<'a>>,
        polling: Polling,
    ) -> Route<'i, 'a> {
        let mut facts = asked.facts(of, || self.group.longest_on_board(asked.operation));
        if facts.request.bytes.is_none() && self.group.hosts_have_boards() {
            facts.request.bytes = asked.mean_bytes(self.group.size());
        }
        self.group.route(facts, inline, polling, self.is_idle)
    }
}

/// Begins an operation that goes on in the table. None when it is complete at once.
#[inline(never)]
fn start_by(
    engine: &mut Engine,
    of: GroupRef<'_>,
    asked: CallDescription<'_>,
    route: Route<'_, '_>,
) -> Result<Option<OperationId>, Box<WaitError>> {
    let call = asked.into_call(of).map_err(failed)?;
    let started = engine.start_by(&route.way(), of.context, call, u64::MAX).map_err(failed)?;
    Ok(started.map(OperationId::Collective))
}
