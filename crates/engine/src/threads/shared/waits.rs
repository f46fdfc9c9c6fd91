//! Three waits: of the only thread for its request, of the thread that has the turn, and of the helping thread.

use landeck_memory::waiter::Waiting;
use landeck_memory::{End, LaneRecord, WaitRecord};

use super::{Engine, Helper, Shared};
use crate::OperationId;

/// Asked for the slots any of which can end a wait, once that has lasted for long.
pub(super) type AnyOf<'a> = &'a dyn Fn(&Engine) -> Vec<u32>;

/// The wait of the only thread for one request.
pub(super) struct OneRequest<'a> {
    pub(super) shared: &'a Shared,
    pub(super) engine: &'a mut Engine,
    pub(super) id: OperationId,
    /// The far process that it depends on is gone and read out, which no membership word tells.
    pub(super) is_hopeless: bool,
}

impl Waiting for OneRequest<'_> {
    #[inline]
    fn poll(&mut self) -> bool {
        self.engine.progress_for(self.id);
        self.engine.is_done(self.id) || self.is_hopeless
    }

    fn poll_before_sleep(&mut self) -> bool {
        self.engine.progress_thoroughly();
        self.is_hopeless = self.engine.is_hopeless(self.id);
        let is_over = self.is_hopeless || self.engine.is_done(self.id);
        if !is_over {
            self.shared.let_sockets_wake(&self.engine.endpoint);
        }
        is_over
    }

    fn verdict(&mut self) -> Option<End> {
        self.engine.verdict(self.id)
    }

    fn record(&self) -> WaitRecord {
        self.engine.wait_record(self.id)
    }

    fn members(&self, record: &WaitRecord) -> Vec<u32> {
        self.engine.members_without_board(record.context)
    }

    fn lanes(&mut self, now_ns: u64) -> Vec<LaneRecord> {
        self.engine.endpoint.lanes(now_ns)
    }

    fn prepare_sleep(&mut self) {
        self.engine.fall_asleep(None);
    }
}

/// The wait of the thread that does what is left, while nobody else has the turn.
pub(super) struct Assisting<'a> {
    pub(super) shared: &'a Shared,
    pub(super) helper: &'a Helper,
}

impl Assisting<'_> {
    fn look_after(&mut self, progress: impl FnOnce(&mut Engine) -> bool) -> bool {
        if self.shared.is_awaited() || self.helper.is_ended() {
            return true;
        }
        let Ok(mut engine) = self.shared.engine.enter() else { return true };
        let moved = progress(&mut engine);
        self.shared.call_ready(&engine, moved);
        let (goes_on, ended) = (engine.goes_on(), engine.take_ended_watchers());
        drop(engine);
        drop(ended);
        !goes_on
    }
}

impl Waiting for Assisting<'_> {
    fn poll(&mut self) -> bool {
        self.look_after(Engine::progress_in_pieces)
    }

    fn poll_before_sleep(&mut self) -> bool {
        if self.look_after(Engine::progress_thoroughly) {
            return true;
        }
        let Ok(engine) = self.shared.engine.enter() else { return true };
        self.shared.let_sockets_wake(&engine.endpoint);
        false
    }

    fn verdict(&mut self) -> Option<End> {
        self.shared.engine.enter().ok()?.endpoint.refresh();
        self.shared.call_all();
        None
    }

    /// The process does not wait: it computes.
    fn record(&self) -> WaitRecord {
        WaitRecord::default()
    }

    fn prepare_sleep(&mut self) {
        if let Ok(mut engine) = self.shared.engine.enter() {
            engine.fall_asleep(None);
        }
    }
}

/// The wait of the thread that has the turn, for itself and for those behind it.
pub(super) struct InTurn<'a, T, F> {
    pub(super) shared: &'a Shared,
    pub(super) id: Option<OperationId>,
    pub(super) record: &'a WaitRecord,
    pub(super) any_of: AnyOf<'a>,
    pub(super) found: &'a mut Option<T>,
    pub(super) ready: &'a mut F,
    /// The count of news at the last look.
    pub(super) news: u32,
    /// The far process that it depends on is gone and read out, which no membership word tells.
    pub(super) is_hopeless: bool,
}

impl<T, F: FnMut(&mut Engine) -> Option<T>> InTurn<'_, T, F> {
    fn look_after(&mut self, progress: impl FnOnce(&mut Engine) -> bool) -> bool {
        let is_entered = self.shared.advance_others(&mut self.news, |engine| {
            let moved = progress(engine);
            // The waiter looks again after it has found something; finding it took it away.
            if self.found.is_none() {
                *self.found = (self.ready)(engine);
            }
            moved
        });
        // An engine that cannot be entered ends the wait; the next call says why.
        !is_entered || self.found.is_some()
    }
}

impl<T, F: FnMut(&mut Engine) -> Option<T>> Waiting for InTurn<'_, T, F> {
    fn poll(&mut self) -> bool {
        self.look_after(Engine::progress) || self.is_hopeless
    }

    fn poll_before_sleep(&mut self) -> bool {
        if self.look_after(Engine::progress_thoroughly) {
            return true;
        }
        let Ok(engine) = self.shared.engine.enter() else { return true };
        self.is_hopeless = self.id.is_some_and(|id| engine.is_hopeless(id));
        if !self.is_hopeless {
            self.shared.let_sockets_wake(&engine.endpoint);
        }
        self.is_hopeless
    }

    fn verdict(&mut self) -> Option<End> {
        let mut engine = self.shared.engine.enter().ok()?;
        engine.endpoint.refresh();
        let end = self.id.and_then(|id| engine.verdict(id));
        drop(engine);
        self.shared.call_all();
        end
    }

    fn record(&self) -> WaitRecord {
        match (self.id, self.shared.engine.enter()) {
            (Some(id), Ok(engine)) => engine.wait_record(id),
            _ => *self.record,
        }
    }

    fn any_of(&self) -> Vec<u32> {
        self.shared.engine.enter().map(|engine| (self.any_of)(&engine)).unwrap_or_default()
    }

    fn members(&self, record: &WaitRecord) -> Vec<u32> {
        let engine = self.shared.engine.enter();
        engine.map(|engine| engine.members_without_board(record.context)).unwrap_or_default()
    }

    fn lanes(&mut self, now_ns: u64) -> Vec<LaneRecord> {
        let entered = self.shared.engine.enter();
        entered.map(|mut engine| engine.endpoint.lanes(now_ns)).unwrap_or_default()
    }

    fn prepare_sleep(&mut self) {
        // An engine that cannot be entered ends the wait at its next look.
        if let Ok(mut engine) = self.shared.engine.enter() {
            engine.fall_asleep(None);
        }
    }
}
