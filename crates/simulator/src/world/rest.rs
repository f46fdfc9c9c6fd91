//! Waiting members: how long they keep their processor, and the time to pass it on.
//!
//! The product's waiter decides how long. At the board it depends on the others on the processor, and for a message
//! on whether polling has paid before (`Spin` of the waiter).

use landeck_board::{LOOKED_AT_MAX, WAITING_KEEP_NS};
use landeck_collectives::{Calibration, CostParameters};

use super::{Event, Member, World};
use crate::time::Time;

/// A polling member looks at the clock after some polls only, so it is late by half of those.
const LATE_NS: u64 = 250;
/// One poll for a message, and the pause after it.
const POLL_NS: u64 = 25;

/// The state of a call's wait for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// The wait has not begun.
    NotYet,
    /// It polls this often at first, and this many polls are left.
    Polls { polls: u32, left: u32 },
    /// Polling has not been enough: it polls once in each of its turns.
    Turns,
}

/// The time to pass on a shared processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turns {
    /// The common part.
    pub(super) pass_ps: u64,
    /// Added after a wait at the board.
    pub(super) board_ps: u64,
    /// Added after a wait for a message.
    pub(super) message_ps: u64,
}

impl Turns {
    /// Turns between exchanges of messages take the measured time without both ends of a message. They are longer
    /// than at a board, since the product first writes down its wait and looks at the clock around each turn. But the
    /// turns measured at a board contain calls, so with few processes those are longer.
    pub(super) fn of(
        figures: &CostParameters,
        details: &Calibration,
        sharing: u64,
        is_over_messages: bool,
    ) -> Self {
        let of_crowd = |measured| Calibration::of_crowd(measured, sharing);
        let turn_ps = of_crowd(&details.turns_ps);
        let ends_ps = of_crowd(&details.crowd_sends_ps) + of_crowd(&details.crowd_receives_ps);
        let exchange_ps =
            of_crowd(&details.switches_ps).saturating_sub(ends_ps.max(figures.message_ps));
        // Less than half of the other one is an error of measurement.
        let exchange_ps = exchange_ps.max(turn_ps / 2);
        let pass_ps = if is_over_messages { turn_ps.min(exchange_ps) } else { turn_ps };
        let (board_ps, message_ps) = (turn_ps - pass_ps, exchange_ps.saturating_sub(pass_ps));
        Self { pass_ps, board_ps, message_ps }
    }
}

impl World {
    /// A member that has nothing to do gives its processor away, or keeps it for a moment.
    pub(super) fn rest(&mut self, member: u32, now: Time) {
        let keeps_ps = self.keeps_ps(member);
        self.processors.dwell(member, keeps_ps);
        let hold_ps = keeps_ps + self.polls_ps(member);
        let place = self.member(member);
        place.is_waiting = true;
        if hold_ps > 0 {
            (place.is_holding, place.holds_since) = (true, now);
            place.holds += 1;
            let hold = place.holds;
            self.events.plan(now + hold_ps, Event::Tired { member, hold });
            return;
        }
        self.give(member, now);
    }

    /// Ends the hold of a member that still waits as it did then.
    pub(super) fn tire(&mut self, member: u32, hold: u32, now: Time) {
        let place = self.member(member);
        if !place.is_holding || place.holds != hold {
            return;
        }
        place.is_holding = false;
        self.give(member, now);
    }

    /// Gives a member's processor away.
    fn give(&mut self, member: u32, now: Time) {
        let turns = self.turns;
        let place = self.member(member);
        place.gave = match (place.at_board, &place.execution) {
            (Some(_), _) => turns.board_ps,
            (None, Some(_)) => turns.message_ps,
            (None, None) => 0,
        };
        if place.at_board.is_none() && place.execution.is_some() {
            place.gives_up_polling();
        }
        let turn = self.processors.leave(member, now);
        self.plan_turn(turn);
    }

    /// How long a member that waits at the board keeps its processor in each turn: not at all if a member that shares
    /// it is waited for or is behind, else as long as the product keeps it ([`WAITING_KEEP_NS`]). A member that waits for
    /// another host looks at its network in each turn.
    pub(super) fn keeps_ps(&self, member: u32) -> u64 {
        let place = &self.members[member as usize];
        let is_over_messages = place.at_board.is_none() && place.execution.is_some();
        if let Some(looks_ps) = self.looks_ps
            && is_over_messages
        {
            let looks = !place.is_gone() && self.processors.is_shared(member);
            return if looks { looks_ps } else { 0 };
        }
        let (Some(step), Some(execution)) = (place.at_board, &place.execution) else { return 0 };
        let is_large = self.stages.members() > LOOKED_AT_MAX;
        if place.dies.is_some() || !self.processors.is_shared(member) || is_large {
            return 0;
        }
        let deed = execution.walk().deed(step);
        let board = self.board_of(member);
        if self.processors.mates(member).any(|mate| board.waits_for(deed, mate)) {
            return 0;
        }
        let of = |place: &Member| (place.stage, place.round);
        let is_behind = |mate: u32| of(&self.members[mate as usize]) < of(place);
        if self.processors.mates(member).any(is_behind) {
            return 0;
        }
        (WAITING_KEEP_NS + LATE_NS) * 1000
    }

    /// How long a member polls for a message on a shared processor. The product's wait covers a whole call: it polls
    /// this often in all before it gives the processor away, and afterwards once in each turn.
    fn polls_ps(&mut self, member: u32) -> u64 {
        let is_shared = self.processors.is_shared(member) && self.looks_ps.is_none();
        let place = self.member(member);
        if !is_shared || place.at_board.is_some() || place.execution.is_none() || place.is_gone() {
            return 0;
        }
        if place.wait == Wait::NotYet {
            let polls = place.spin.polls();
            place.wait = Wait::Polls { polls, left: polls };
        }
        match place.wait {
            Wait::Polls { left, .. } => u64::from(left) * POLL_NS * 1000,
            Wait::NotYet | Wait::Turns => 0,
        }
    }
}

impl Member {
    /// Whether it still holds its processor when a message comes.
    pub(super) fn finds_at_once(&mut self, now: Time) -> bool {
        if !std::mem::take(&mut self.is_holding) {
            return false;
        }
        if let Wait::Polls { left, .. } = &mut self.wait {
            let polled = now.since(self.holds_since) / (POLL_NS * 1000) + 1;
            *left = left.saturating_sub(polled as u32);
        }
        self.is_waiting = false;
        true
    }

    /// Polling did not suffice for the call.
    fn gives_up_polling(&mut self) {
        self.spin.failed(true);
        self.wait = Wait::Turns;
    }

    /// Ends the wait of a call, which teaches the waiter whether polling has paid.
    pub(super) fn ends_wait(&mut self) {
        if let Wait::Polls { polls, .. } = std::mem::replace(&mut self.wait, Wait::NotYet) {
            self.spin.paid(polls);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::four;
    use super::*;
    use landeck_collectives::Operation;

    #[test]
    fn a_member_that_gives_its_processor_away_polls_less_the_next_time() {
        let mut world = four(Operation::Broadcast, "flat", 8);
        let place = world.member(2);
        place.spin.paid(64);
        (place.is_holding, place.holds, place.wait) = (true, 3, Wait::Polls { polls: 64, left: 9 });
        world.tire(2, 2, Time::ZERO);
        assert!(world.member(2).is_holding, "of an earlier wait");
        world.tire(2, 3, Time::ZERO);
        assert!(!world.member(2).is_holding);
        assert_eq!(world.polls_ps(2), 0, "in this call it looks once in each turn");
        world.member(2).ends_wait();
        assert_eq!(world.polls_ps(2), 32 * POLL_NS * 1000);
    }

    #[test]
    fn a_call_polls_so_often_in_all() {
        let mut world = four(Operation::AllGather, "ring", 8);
        world.member(2).spin.paid(64);
        world.rest(2, Time::ZERO);
        assert_eq!(world.member(2).wait, Wait::Polls { polls: 64, left: 64 });
        assert!(world.member(2).finds_at_once(Time::from_ps(10 * POLL_NS * 1000)));
        assert_eq!(world.polls_ps(2), 53 * POLL_NS * 1000, "ten have passed, and one has found it");
        world.member(2).spin.failed(true);
        world.member(2).ends_wait();
        assert_eq!(world.member(2).spin.polls(), 64, "all that the call waits for came meanwhile");
    }

    #[test]
    fn turns_take_what_was_measured_of_what_is_waited_for() {
        let figures = CostParameters { message_ps: 200, ..CostParameters::default() };
        let details = Calibration {
            switches_ps: [900, 1_000, 1_000, 1_000],
            turns_ps: [700, 300, 300, 300],
            crowd_sends_ps: [100; 4],
            crowd_receives_ps: [150; 4],
            ..Calibration::of(&figures)
        };
        let of = |figures, sharing, is_over_messages| {
            let Turns { pass_ps, board_ps, message_ps } =
                Turns::of(figures, &details, sharing, is_over_messages);
            [pass_ps, board_ps, message_ps]
        };
        assert_eq!(of(&figures, 4, true), [300, 0, 1_000 - 300 - 250]);
        let slow = CostParameters { message_ps: 400, ..figures };
        assert_eq!(of(&slow, 4, true), [300, 0, 1_000 - 300 - 400]);
        assert_eq!(of(&figures, 2, true), [900 - 250, 50, 0], "without the calls at a board");
        assert_eq!(of(&figures, 2, false), [700, 0, 0], "nobody there waits for a message");
        let slow = CostParameters { message_ps: 800, ..figures };
        assert_eq!(of(&slow, 2, true), [350, 350, 0], "measured with errors");
    }

    #[test]
    fn a_member_that_waited_for_a_message_goes_on_later_than_one_at_the_board() {
        let mut world = four(Operation::Broadcast, "flat", 8);
        (world.turns.board_ps, world.turns.message_ps) = (3, 5);
        world.give(2, Time::ZERO);
        assert_eq!(world.member(2).gave, 5);
        world.member(2).at_board = Some(0);
        world.give(2, Time::ZERO);
        assert_eq!(world.member(2).gave, 3);
    }
}
