//! Waiting for the other members of a synchronisation.
//!
//! A waiting member knows the awaited members and their processors. As at the board of collective operations, it keeps
//! its processor where no member beside it is awaited. It announces that it waits only when it falls asleep, so
//! the last member to arrive has nothing to wake while all are awake.

use landeck_board::{LOOKED_AT_MAX, Neighbours};
use landeck_engine::{Engine, why};
use landeck_memory::waiter::{Patience, Waiting};
use landeck_memory::{End, Operation, WaitRecord};
use landeck_objects::group_log::WaitsFor;
use landeck_protocols::service::Seat;

use crate::error::{Result, ServiceError};
use crate::replica::{LocalState, Replica, WaitNotice};
use crate::sync::arrival::{RollStatus, SyncArrival, SyncOutcome};
use crate::time_limit::TimeLimit;

/// The endpoint is polled once in so many polls of the roll.
const POLLS_PER_PROGRESS: u32 = 32;

/// The wait of a member that has arrived, in the thread that has the turn.
struct SyncWait<'a> {
    replica: &'a Replica,
    seat: Seat,
    arrival: SyncArrival,
    polls: u32,
    outcome: Option<Result<SyncOutcome>>,
    /// Set when the thread first falls asleep.
    notice: Option<WaitNotice<'a>>,
    /// The count of notices from other processes at the last look.
    news: u32,
}

impl Replica {
    /// Waits for the other members of a synchronisation.
    pub(crate) fn wait_for_others(
        &self,
        seat: Seat,
        arrival: SyncArrival,
        limit: TimeLimit,
    ) -> Result<SyncOutcome> {
        if arrival.is_last || self.roll_status(&arrival) == RollStatus::Complete {
            return Ok(SyncOutcome::Complete);
        }
        let Some(mut waiter) = self.shared.turn.try_enter_in_turn()? else {
            return self.wait_for_others_behind(seat, arrival, limit);
        };
        let news = self.shared.segment.news(self.shared.slot);
        let mut wait =
            SyncWait { replica: self, seat, arrival, polls: 0, outcome: None, notice: None, news };
        let end = waiter.wait(&mut wait, limit.deadline_ns());
        if wait.notice.is_some() {
            self.shared.engine.enter()?.wake_up();
        }
        let outcome = wait.outcome.take();
        drop(wait);
        drop(waiter);
        self.shared.call_next();
        outcome.unwrap_or_else(|| {
            let error = why(&*self.shared.engine.enter()?, None, end);
            Err(ServiceError::of_wait(error, limit))
        })
    }

    /// Waits for the other members while another thread of this process has the turn.
    fn wait_for_others_behind(
        &self,
        seat: Seat,
        arrival: SyncArrival,
        limit: TimeLimit,
    ) -> Result<SyncOutcome> {
        let peer = |local: &LocalState| self.first_awaited(local, &arrival);
        self.wait(limit, peer, |local| self.sync_outcome(local, seat, &arrival))
    }

    /// The slot of a member that has not arrived.
    fn first_awaited(&self, local: &LocalState, arrival: &SyncArrival) -> Option<u32> {
        let mut members = local.state.members().iter();
        let awaited = members.find(|member| self.is_awaited(local, arrival, member.id));
        self.peer(&local.state, awaited?.process)
    }
}

impl SyncWait<'_> {
    #[inline]
    fn poll_roll(&mut self) {
        match self.replica.roll_status(&self.arrival) {
            RollStatus::Complete => {
                let next = self.arrival.next;
                self.replica.log.foresee(next.place, next.broadcast);
                self.outcome = Some(self.replica.fold_only().map(|()| SyncOutcome::Complete));
            }
            RollStatus::Pending => {}
            RollStatus::Unknown => self.look_at_log(),
        }
    }

    fn look_at_log(&mut self) {
        if self.outcome.is_none() {
            let Self { replica, seat, arrival, .. } = *self;
            let outcome = replica.with(|local| replica.sync_outcome(local, seat, &arrival));
            self.outcome = outcome.transpose();
        }
    }

    /// Whether members on this processor are awaited.
    fn neighbours_on(&self, local: &LocalState, processor: u32) -> Neighbours {
        let shared = &self.replica.shared;
        let is_beside =
            |slot| slot != shared.slot && shared.segment.processor(slot) == Some(processor);
        let members = local.state.members().iter();
        let mut beside = members.filter(|member| is_beside(member.process.slot.into()));
        match beside.any(|member| self.replica.is_awaited(local, &self.arrival, member.id)) {
            true => Neighbours::Awaited,
            false => Neighbours::Waiting,
        }
    }
}

impl Waiting for SyncWait<'_> {
    const HAS_YIELD_POLICY: bool = true;

    fn keep_core_ns(&self, core: u32) -> u64 {
        if self.arrival.members > LOOKED_AT_MAX {
            return 0;
        }
        let neighbours = self.replica.with(|local| Ok(self.neighbours_on(local, core)));
        neighbours.map_or(0, Neighbours::keep_core_ns)
    }

    fn patience(&self) -> Patience {
        Patience::all_of(self.arrival.members)
    }

    #[inline]
    fn poll(&mut self) -> bool {
        if self.outcome.is_none() {
            self.poll_roll();
            self.polls += 1;
        }
        let is_complete = self.outcome.is_some();
        let shared = &self.replica.shared;
        if !is_complete && (shared.is_awaited() || self.polls.is_multiple_of(POLLS_PER_PROGRESS)) {
            shared.advance_others(&mut self.news, Engine::progress);
        }
        is_complete
    }

    fn poll_before_sleep(&mut self) -> bool {
        let shared = &self.replica.shared;
        shared.advance_others(&mut self.news, Engine::progress_thoroughly);
        self.look_at_log();
        if self.outcome.is_none()
            && let Ok(engine) = shared.engine.enter()
        {
            shared.let_sockets_wake(&engine.endpoint);
        }
        self.outcome.is_some()
    }

    fn verdict(&mut self) -> Option<End> {
        self.replica.shared.engine.enter().ok()?.endpoint.refresh();
        self.replica.shared.call_all();
        self.look_at_log();
        self.outcome.as_ref().map(|_| End::PeerFailed)
    }

    fn record(&self) -> WaitRecord {
        let peer = self.replica.with(|local| Ok(self.replica.first_awaited(local, &self.arrival)));
        let peer = peer.unwrap_or_default();
        WaitRecord { operation: Operation::Group, peer, ..WaitRecord::default() }
    }

    fn prepare_sleep(&mut self) {
        let replica = self.replica;
        self.notice.get_or_insert_with(|| WaitNotice::begin(&replica.log, WaitsFor::Others));
        if let Ok(mut engine) = replica.shared.engine.enter() {
            engine.fall_asleep(None);
        }
    }
}
