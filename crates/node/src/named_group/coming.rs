//! Coming to a synchronisation: on the roll while the members stay the same, else in the log.
//!
//! The roll ([`Roll`]) is one word. It is open for one view of the group and one round of the log, the one
//! that comes next there; whoever sets the last bit has ended the synchronisation for all, and the log
//! knows nothing of it.
//!
//! - Who comes first opens a roll that is settled, if nobody is awaited in the log. It has looked at
//!   the roll before it folded the log, so what was settled is known to it.
//! - Who is about to change the members, or to end the group, closes the roll first. Who has come by then
//!   has come to the log's round. That is written into the log by whoever needs to know, for one member
//!   after the other: an entry for a member that has come already, or after that round, is not appended. Then
//!   the roll is settled.
//! - Such a change may be accepted just after somebody has opened the roll again. Nobody can tell which of
//!   the two was first, as both went on at once; the next change finds an open roll. Whoever had it
//!   accepted closes the roll again, so those who wait there go on in the log. Should it die
//!   in between, they find that at their next look at the log: when the membership changes, and before
//!   they sleep.

use landeck_groups::service::{EntryWord, Outcome, Phase, Seat, State};
use landeck_objects::group_log::{Roll, WaitsFor};

use super::live::{ATTEMPTS, Live, Mirror};
use crate::error::Result;

/// To what a member has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Come {
    /// The round of the log; for who has come on the roll, should that be closed.
    round: u64,
    on_roll: Option<Turn>,
    /// All others had come before: it is over.
    pub(super) is_last: bool,
    /// How many members there were.
    pub(super) members: u32,
    /// Where the next entry of the log will stand, and the number of the next broadcast: whoever is
    /// awaited has perhaps sent it meanwhile.
    pub(super) next: (u64, u64),
}

/// A turn of the roll.
#[derive(Clone, Copy, Debug)]
struct Turn {
    number: u8,
    view: u64,
}

/// What the roll says of a member's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// All have come.
    Over,
    /// Some are to come yet.
    GoesOn,
    /// Nothing: the log knows.
    Nothing,
}

/// What came of trying to come.
enum Tried {
    Come(Come),
    NotStarted,
    /// Somebody was faster.
    Again,
}

impl Live {
    /// Comes to the synchronisation, once the group has started.
    pub(crate) fn come(&self, seat: Seat, deadline_ns: Option<u64>) -> Result<Come> {
        if let Some(come) = self.come_at_once(seat)? {
            return Ok(come);
        }
        for _ in 0..ATTEMPTS {
            let roll = self.log.roll_to_exchange();
            match self.with(|mirror| self.try_to_come(mirror, roll, seat))? {
                Tried::Come(come) => return Ok(come),
                Tried::NotStarted => self.wait_started(deadline_ns)?,
                Tried::Again => {}
            }
        }
        Err(self.broken("its roll does not take a member"))
    }

    /// The same on a roll that is open for the members that are known here. Then they are the members still,
    /// whatever else the log has by now. Nobody looks there meanwhile: those who are awaited write there.
    #[inline]
    fn come_at_once(&self, seat: Seat) -> Result<Option<Come>> {
        self.with_what_is_known(|mirror| {
            let state = &mirror.state;
            let is_member = state.phase() == Phase::Open
                && state.has_started()
                && !state.is_syncing()
                && state.member(seat).is_some();
            // Who has not looked for so long could take another view for this one.
            let is_recent = self.log.snapshot_place() <= state.position();
            let everybody = mirror.everybody.of(state).filter(|_| is_member && is_recent);
            let Some(everybody) = everybody else { return Ok(None) };
            let roll = self.log.roll_to_exchange();
            if !(roll.is_open()
                && roll.is_of_view(state.view())
                && roll.is_of_round(state.rounds()))
            {
                return Ok(None);
            }
            let come = self.come_on_open_roll(mirror, roll, (roll, seat), everybody);
            if come.is_some_and(|come| !come.is_last) {
                self.set_cell_aside(mirror);
            }
            Ok(come)
        })
    }

    /// The same, where `roll` was looked at before the log was folded.
    fn try_to_come(&self, mirror: &mut Mirror, roll: Roll, seat: Seat) -> Result<Tried> {
        self.check_open(&mirror.state)?;
        if mirror.state.member(seat).is_none() {
            return Err(self.no_member(seat.id));
        }
        if !mirror.state.has_started() {
            return Ok(Tried::NotStarted);
        }
        match mirror.everybody.of(&mirror.state) {
            Some(everybody) if !mirror.state.is_syncing() => {
                self.come_on_roll(mirror, roll, seat, everybody)
            }
            _ => self.come_in_log(mirror, roll, seat),
        }
    }

    fn come_on_roll(
        &self,
        mirror: &mut Mirror,
        roll: Roll,
        seat: Seat,
        everybody: u32,
    ) -> Result<Tried> {
        let (view, round) = (mirror.state.view(), mirror.state.rounds());
        let open = if roll.is_open() && roll.is_of_view(view) && roll.is_of_round(round) {
            roll
        } else if roll.is_settled() {
            roll.opened(view, round)
        } else {
            self.close_roll(mirror)?;
            return Ok(Tried::Again);
        };
        let come = self.come_on_open_roll(mirror, roll, (open, seat), everybody);
        Ok(come.map_or(Tried::Again, Tried::Come))
    }

    /// Exchanges a roll for one that is open, with this member on it. None when somebody was faster.
    #[inline]
    fn come_on_open_roll(
        &self,
        mirror: &Mirror,
        seen: Roll,
        (open, seat): (Roll, Seat),
        everybody: u32,
    ) -> Option<Come> {
        let come = open.with(seat.id);
        let is_last = come.who() & everybody == everybody;
        if !self.log.exchange_roll(seen, if is_last { come.over() } else { come }) {
            return None;
        }
        if is_last {
            self.wake(WaitsFor::Others);
        }
        let (view, round) = (mirror.state.view(), mirror.state.rounds());
        let (on_roll, members) = (Some(Turn { number: open.turn(), view }), everybody.count_ones());
        Some(Come { round, on_roll, is_last, members, next: next_of(mirror) })
    }

    fn come_in_log(&self, mirror: &mut Mirror, roll: Roll, seat: Seat) -> Result<Tried> {
        if !roll.is_settled() {
            self.close_roll(mirror)?;
            return Ok(Tried::Again);
        }
        match self.accept(mirror, EntryWord::Sync(seat), None)? {
            Some((_, Outcome::Come(round))) => {
                let (members, next) = (mirror.state.members().len() as u32, next_of(mirror));
                Ok(Tried::Come(Come { round, on_roll: None, is_last: false, members, next }))
            }
            Some(_) => Err(self.no_member(seat.id)),
            None => Ok(Tried::Again),
        }
    }

    /// Closes the roll, and writes into the log who has come there.
    #[cold]
    pub(super) fn close_roll(&self, mirror: &mut Mirror) -> Result<()> {
        for _ in 0..ATTEMPTS {
            let roll = self.log.roll();
            if roll.is_settled() {
                // What it was settled with is behind what is known here.
                return self.fold(mirror);
            }
            if roll.is_open() {
                self.log.exchange_roll(roll, roll.closed());
                continue;
            }
            self.fold(mirror)?;
            match next_to_log(&mirror.state, roll) {
                // Where another entry was accepted instead, this is looked at again.
                Some(seat) => drop(self.accept(mirror, EntryWord::Sync(seat), None)?),
                None => drop(self.log.exchange_roll(roll, roll.settled())),
            }
        }
        Err(self.broken("its roll cannot be closed"))
    }

    /// Closes a roll that was opened for other members than there are now.
    pub(super) fn close_stale_roll(&self, mirror: &mut Mirror) -> Result<()> {
        let roll = self.log.roll();
        let is_open = mirror.state.phase() == Phase::Open;
        let is_stale = roll.is_open() && !(is_open && roll.is_of_view(mirror.state.view()));
        if is_stale { self.close_roll(mirror) } else { Ok(()) }
    }

    /// What the roll says of it.
    #[inline]
    pub(super) fn said_of(&self, come: &Come) -> Said {
        let Some(turn) = come.on_roll else { return Said::Nothing };
        let roll = self.log.roll();
        if !roll.is_of_view(turn.view) {
            Said::Nothing
        } else if roll.turn() == turn.number.wrapping_add(1) {
            Said::Over
        } else if roll.turn() == turn.number && roll.is_open() {
            Said::GoesOn
        } else {
            Said::Nothing
        }
    }

    /// How it ended, by the log and the roll together: none while it goes on; else who died in it.
    pub(super) fn how_it_ended(
        &self,
        mirror: &mut Mirror,
        seat: Seat,
        come: &Come,
    ) -> Result<Option<Option<u32>>> {
        let roll = self.log.roll();
        self.fold(mirror)?;
        if mirror.state.ended(come.round).is_none()
            && let Some(turn) = come.on_roll
        {
            if roll.turn() != turn.number {
                return Ok(Some(None));
            }
            let goes_on = roll.is_open() && roll.is_of_view(mirror.state.view());
            if !goes_on && !roll.is_settled() {
                self.close_roll(mirror)?;
            }
        }
        self.how_round_ended(mirror, seat, come.round)
    }

    /// How a round of the log ended: none while it goes on; else who died in it.
    pub(crate) fn how_round_ended(
        &self,
        mirror: &Mirror,
        seat: Seat,
        round: u64,
    ) -> Result<Option<Option<u32>>> {
        if let Some(died) = mirror.state.ended(round) {
            return Ok(Some(died));
        }
        self.check_goes_on(&mirror.state)?;
        match mirror.state.member(seat) {
            None => Err(self.no_member(seat.id)),
            Some(_) => Ok(None),
        }
    }

    /// Whether a member is waited for by who has come.
    pub(super) fn is_awaited(&self, mirror: &Mirror, come: &Come, id: u32) -> bool {
        match self.said_of(come) {
            Said::GoesOn => self.log.roll().who() & 1u32.checked_shl(id).unwrap_or(0) == 0,
            _ => mirror.state.awaited().any(|awaited| awaited == id),
        }
    }
}

fn next_of(mirror: &Mirror) -> (u64, u64) {
    (mirror.state.position(), mirror.state.broadcasts())
}

/// Who is on a closed roll and has not come to the log's round, which has not ended yet.
fn next_to_log(state: &State, roll: Roll) -> Option<Seat> {
    if state.phase() != Phase::Open || !roll.is_of_round(state.rounds()) {
        return None;
    }
    let has_to_come = |id| !state.is_syncing() || state.awaited().any(|awaited| awaited == id);
    let is_there = |id: u32| roll.who() & 1u32.checked_shl(id).unwrap_or(0) != 0;
    let mut members = state.members().iter();
    members.find(|member| is_there(member.id) && has_to_come(member.id)).map(|it| it.seat())
}
