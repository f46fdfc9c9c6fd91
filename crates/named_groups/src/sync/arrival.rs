//! Arriving at a synchronisation: on the roll while the members stay the same, otherwise in the log.
//!
//! The roll ([`Roll`]) is one word. It is open for one view of the group and one round of the log, the next one there.
//! The member that sets the last bit completes the synchronisation for all, and the log does not change.
//!
//! - The first member to arrive opens a settled roll, if no member is awaited in the log and no death is to be told. It
//!   has read the roll before it folded the log, so it knows the entries with which the roll was settled.
//! - A process that is about to change the members, or to end the group, closes the roll first. The members that have
//!   arrived by then have arrived at the log's round. Any process that needs to know writes that into the log, one
//!   member after the other. It appends no entry for a member that has arrived in the log already, or after that
//!   round. Then the roll is settled.
//! - Such a change may be accepted just after a member has opened the roll again. Both went on at once, so no process
//!   can tell their order; the next change finds an open roll. The process whose change was accepted closes the roll
//!   again, so the members that wait there go on in the log. If it dies in between, they find that at their next look
//!   at the log: when the membership changes, and before they sleep.

use landeck_objects::group_log::{Roll, WaitsFor};
use landeck_protocols::service::{GroupEntry, Outcome, Phase, Seat, State};

use crate::error::Result;
use crate::replica::{ATTEMPTS, Accepted, LocalState, Replica};
use crate::time_limit::TimeLimit;

/// A member's arrival at a synchronisation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SyncArrival {
    /// The round of the log; for a member on the roll, the round if the roll is closed.
    round: u64,
    on_roll: Option<RollTurn>,
    /// All other members had arrived before, so the synchronisation is complete.
    pub(crate) is_last: bool,
    /// How many members take part.
    pub(crate) members: u32,
    /// The log's position and the next broadcast's number at the arrival. Awaited members may append there meanwhile.
    pub(crate) next: NextEntries,
}

/// Where the next entry and the next broadcast will be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NextEntries {
    pub(crate) place: u64,
    pub(crate) broadcast: u64,
}

impl NextEntries {
    fn of(local: &LocalState) -> Self {
        Self { place: local.state.position(), broadcast: local.state.broadcasts() }
    }
}

/// A turn of the roll.
#[derive(Clone, Copy, Debug)]
struct RollTurn {
    number: u8,
    view: u64,
}

/// The state of a member's synchronisation by the roll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RollStatus {
    /// All members have arrived.
    Complete,
    /// Some members have yet to arrive.
    Pending,
    /// The roll is closed, or has gone on; only the log knows.
    Unknown,
}

/// The result of an attempt to arrive.
enum ArrivalAttempt {
    Arrived(SyncArrival),
    NotStarted,
    /// Another process has changed the roll or the log first.
    Retry,
}

/// The roll as a member exchanges it.
#[derive(Clone, Copy)]
struct RollExchange {
    /// The roll as it was read.
    seen: Roll,
    /// An open roll that replaces it; the same where that is open already.
    open: Roll,
    /// The bits of all members.
    members: u32,
}

/// How a synchronisation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncOutcome {
    /// All members have arrived.
    Complete,
    /// All members have arrived. This one died meanwhile, or since the synchronisation before.
    MemberDied(u32),
}

impl SyncOutcome {
    /// The outcome of a round of the log; `died` is the member that died in it.
    pub(crate) fn of(died: Option<u32>) -> Self {
        died.map_or(Self::Complete, Self::MemberDied)
    }
}

impl Replica {
    /// Arrives at a synchronisation, once the group has started.
    pub(crate) fn arrive(&self, seat: Seat, limit: TimeLimit) -> Result<SyncArrival> {
        if let Some(arrival) = self.arrive_at_known_roll(seat)? {
            return Ok(arrival);
        }
        for _ in 0..ATTEMPTS {
            let roll = self.log.roll_to_exchange();
            match self.with(|local| self.try_to_arrive(local, roll, seat))? {
                ArrivalAttempt::Arrived(arrival) => return Ok(arrival),
                ArrivalAttempt::NotStarted => self.wait_started(limit)?,
                ArrivalAttempt::Retry => {}
            }
        }
        Err(self.broken("its roll does not take a member"))
    }

    /// Arrives on a roll that is open for the members that this process knows. An open roll means that those are the
    /// members still. So this does not read the log's next line, where awaited members may write.
    #[inline]
    fn arrive_at_known_roll(&self, seat: Seat) -> Result<Option<SyncArrival>> {
        self.with_known(|local| {
            let state = &local.state;
            let is_member = state.phase() == Phase::Open
                && state.has_started()
                && !goes_on_in_log(state)
                && state.member(seat).is_some();
            // The roll has few bits of the view's number: an old state could take another view for its own.
            let is_recent = self.log.snapshot_place() <= state.position();
            let members =
                local.roll_members.of(state, self.own_segment()).filter(|_| is_member && is_recent);
            let Some(members) = members else { return Ok(None) };
            let roll = self.log.roll_to_exchange();
            if !is_open_for(roll, state) {
                return Ok(None);
            }
            let exchange = RollExchange { seen: roll, open: roll, members };
            let arrival = self.exchange_roll(local, exchange, seat);
            if arrival.is_some_and(|arrival| !arrival.is_last) {
                self.reserve_cell(local);
            }
            Ok(arrival)
        })
    }

    /// Arrives on the roll or in the log. `roll` was read before the log was folded.
    fn try_to_arrive(
        &self,
        local: &mut LocalState,
        roll: Roll,
        seat: Seat,
    ) -> Result<ArrivalAttempt> {
        self.check_open(&local.state)?;
        if local.state.member(seat).is_none() {
            return Err(self.no_member(seat.id));
        }
        if !local.state.has_started() {
            return Ok(ArrivalAttempt::NotStarted);
        }
        match local.roll_members.of(&local.state, self.own_segment()) {
            Some(members) if !goes_on_in_log(&local.state) => {
                self.arrive_on_roll(local, roll, seat, members)
            }
            _ => self.arrive_in_log(local, roll, seat),
        }
    }

    fn arrive_on_roll(
        &self,
        local: &mut LocalState,
        roll: Roll,
        seat: Seat,
        members: u32,
    ) -> Result<ArrivalAttempt> {
        let open = if is_open_for(roll, &local.state) {
            roll
        } else if roll.is_settled() {
            roll.opened(local.state.view(), local.state.rounds())
        } else {
            self.close_roll(local)?;
            return Ok(ArrivalAttempt::Retry);
        };
        let arrival = self.exchange_roll(local, RollExchange { seen: roll, open, members }, seat);
        Ok(arrival.map_or(ArrivalAttempt::Retry, ArrivalAttempt::Arrived))
    }

    /// Exchanges the roll for an open one with this member on it. None when another process was first.
    #[inline]
    fn exchange_roll(
        &self,
        local: &LocalState,
        RollExchange { seen, open, members }: RollExchange,
        seat: Seat,
    ) -> Option<SyncArrival> {
        let new = open.with(seat.id);
        let is_last = new.who() & members == members;
        if !self.log.exchange_roll(seen, if is_last { new.over() } else { new }) {
            return None;
        }
        if is_last {
            self.wake(WaitsFor::Others);
        }
        let turn = RollTurn { number: open.turn(), view: local.state.view() };
        Some(SyncArrival {
            round: local.state.rounds(),
            on_roll: Some(turn),
            is_last,
            members: members.count_ones(),
            next: NextEntries::of(local),
        })
    }

    fn arrive_in_log(
        &self,
        local: &mut LocalState,
        roll: Roll,
        seat: Seat,
    ) -> Result<ArrivalAttempt> {
        if !roll.is_settled() {
            self.close_roll(local)?;
            return Ok(ArrivalAttempt::Retry);
        }
        match self.accept(local, GroupEntry::Sync(seat), None)? {
            Some(Accepted { outcome: Outcome::Come(round), .. }) => {
                let (members, next) = (local.state.members().len() as u32, NextEntries::of(local));
                let arrival = SyncArrival { round, on_roll: None, is_last: false, members, next };
                Ok(ArrivalAttempt::Arrived(arrival))
            }
            Some(_) => Err(self.no_member(seat.id)),
            None => Ok(ArrivalAttempt::Retry),
        }
    }

    /// Closes the roll, and writes into the log which members have arrived there.
    #[cold]
    pub(crate) fn close_roll(&self, local: &mut LocalState) -> Result<()> {
        for _ in 0..ATTEMPTS {
            let roll = self.log.roll();
            if roll.is_settled() {
                // The entries with which it was settled are behind the folded ones.
                return self.fold(local);
            }
            if roll.is_open() {
                self.log.exchange_roll(roll, roll.closed());
                continue;
            }
            self.fold(local)?;
            match next_to_log(&local.state, roll) {
                // If another entry was accepted first, the next turn of the loop looks again.
                Some(seat) => drop(self.accept(local, GroupEntry::Sync(seat), None)?),
                None => drop(self.log.exchange_roll(roll, roll.settled())),
            }
        }
        Err(self.broken("its roll cannot be closed"))
    }

    /// Closes a roll that was opened for other members than the group has now.
    pub(crate) fn close_stale_roll(&self, local: &mut LocalState) -> Result<()> {
        let roll = self.log.roll();
        let is_open = local.state.phase() == Phase::Open;
        let is_stale = roll.is_open() && !(is_open && roll.is_of_view(local.state.view()));
        if is_stale { self.close_roll(local) } else { Ok(()) }
    }

    /// The state of a member's synchronisation by the roll.
    #[inline]
    pub(crate) fn roll_status(&self, arrival: &SyncArrival) -> RollStatus {
        let Some(turn) = arrival.on_roll else { return RollStatus::Unknown };
        let roll = self.log.roll();
        if !roll.is_of_view(turn.view) {
            RollStatus::Unknown
        } else if roll.turn() == turn.number.wrapping_add(1) {
            RollStatus::Complete
        } else if roll.turn() == turn.number && roll.is_open() {
            RollStatus::Pending
        } else {
            RollStatus::Unknown
        }
    }

    /// The outcome of a synchronisation by the log and the roll together; none while it goes on.
    pub(crate) fn sync_outcome(
        &self,
        local: &mut LocalState,
        seat: Seat,
        arrival: &SyncArrival,
    ) -> Result<Option<SyncOutcome>> {
        let roll = self.log.roll();
        self.fold(local)?;
        if local.state.ended(arrival.round).is_none()
            && let Some(turn) = arrival.on_roll
        {
            if roll.turn() != turn.number {
                return Ok(Some(SyncOutcome::Complete));
            }
            let is_pending = roll.is_open() && roll.is_of_view(local.state.view());
            if !is_pending && !roll.is_settled() {
                self.close_roll(local)?;
            }
        }
        self.round_outcome(local, seat, arrival.round)
    }

    /// Whether a synchronisation waits for member `id`.
    pub(crate) fn is_awaited(&self, local: &LocalState, arrival: &SyncArrival, id: u32) -> bool {
        match self.roll_status(arrival) {
            RollStatus::Pending => !is_on_roll(self.log.roll(), id),
            _ => local.state.awaited().any(|awaited| awaited == id),
        }
    }
}

/// Whether members arrive in the log: a synchronisation goes on there, or the next one tells of a death.
fn goes_on_in_log(state: &State) -> bool {
    state.is_syncing() || state.has_untold_death()
}

fn is_open_for(roll: Roll, state: &State) -> bool {
    roll.is_open() && roll.is_of_view(state.view()) && roll.is_of_round(state.rounds())
}

fn is_on_roll(roll: Roll, id: u32) -> bool {
    roll.who() & 1u32.checked_shl(id).unwrap_or(0) != 0
}

/// A member that is on a closed roll and has not arrived at the log's round, which goes on.
fn next_to_log(state: &State, roll: Roll) -> Option<Seat> {
    if state.phase() != Phase::Open || !roll.is_of_round(state.rounds()) {
        return None;
    }
    let has_to_arrive = |id| !state.is_syncing() || state.awaited().any(|awaited| awaited == id);
    let mut members = state.members().iter();
    let next = members.find(|member| is_on_roll(roll, member.id) && has_to_arrive(member.id));
    next.map(|member| member.seat())
}
