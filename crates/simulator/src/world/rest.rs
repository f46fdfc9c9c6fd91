//! Waiting members: how long they keep their processor, and what it takes to pass that on.
//!
//! The product's waiter says for how long, here as there: at the board by what the others on the processor
//! are to the wait, for a message by whether polling has paid before (`Spin` of the waiter).

use landeck_collectives::{Details, Figures};
use landeck_memory::board::LOOKED_AT_MAX;
use landeck_memory::waiter;

use super::{Event, Member, World};
use crate::time::Time;

/// Who polls for a while looks at the clock after some polls only, and so by half of those too late.
const LATE_NS: u64 = 250;
/// A look for a message, and the pause behind it.
const POLL_NS: u64 = 25;

/// By how much longer those who share a processor exchange messages than they take turns at a board and than a
/// message takes of both its ends: at a board a wait begins by giving turns away, for a message it first writes down that it
/// waits, and looks at the clock around each of them; and less of all that is in the caches.
pub(super) fn long_ps(figures: &Figures, details: &Details, sharing: u64) -> u64 {
    let switch_ps = Details::of_crowd(&details.switches_ps, sharing);
    let turn_ps = Details::of_crowd(&details.turns_ps, sharing);
    let of_crowd = |measured| Details::of_crowd(measured, sharing);
    let ends_ps = of_crowd(&details.crowd_sends_ps) + of_crowd(&details.crowd_receives_ps);
    switch_ps.saturating_sub(turn_ps).saturating_sub(ends_ps.max(figures.message_ps))
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
            place.is_holding = true;
            place.holds += 1;
            let hold = place.holds;
            self.events.plan(now + hold_ps, Event::Tired { member, hold });
            return;
        }
        self.give(member, now);
    }

    /// A member has kept its processor long enough, if it still waits as it did then.
    pub(super) fn tire(&mut self, member: u32, hold: u32, now: Time) {
        let place = self.member(member);
        if !place.is_holding || place.holds != hold {
            return;
        }
        place.is_holding = false;
        if place.at_board.is_none() {
            place.spin.failed(true);
        }
        self.give(member, now);
    }

    /// A member gives its processor away.
    fn give(&mut self, member: u32, now: Time) {
        let place = self.member(member);
        place.has_given = place.at_board.is_none() && place.execution.is_some();
        let turn = self.processors.leave(member, now);
        self.plan_turn(turn);
    }

    /// How long a member that waits at the board keeps its processor each time it has it: not at all where
    /// one of those who share it is waited for, else as long as [`waiter`] says.
    pub(super) fn keeps_ps(&self, member: u32) -> u64 {
        let place = &self.members[member as usize];
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
        let each = self.processors.mates(member).count() as u32 + 1;
        let hold_ns = match self.processors.mates(member).any(is_behind) {
            true => waiter::behind_ns(each),
            false => waiter::BESIDE_NS + LATE_NS,
        };
        hold_ns * 1000
    }

    /// How long a member that begins to wait for a message polls for it where others want its processor.
    fn polls_ps(&mut self, member: u32) -> u64 {
        let is_shared = self.processors.is_shared(member);
        let place = self.member(member);
        if !is_shared || place.at_board.is_some() || place.execution.is_none() || place.is_gone() {
            return 0;
        }
        place.polls = place.spin.polls();
        u64::from(place.polls) * POLL_NS * 1000
    }
}

impl Member {
    /// Whether it still has its processor when what it waits for comes: it looks all the time.
    pub(super) fn finds_at_once(&mut self) -> bool {
        if !std::mem::take(&mut self.is_holding) {
            return false;
        }
        if self.at_board.is_none() {
            self.spin.paid(self.polls);
        }
        self.is_waiting = false;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::{Calls, Hosts, Setting, Work};
    use crate::stages::Stages;
    use crate::{Faults, Platform};
    use landeck_collectives::architecture::Flat;
    use landeck_collectives::{Figures, Group, Operation, Task, Way};

    #[test]
    fn who_gives_its_processor_away_polls_less_the_next_time() {
        let figures = Figures::default();
        let platform = Platform::of_host("host", "", figures, Details::of(&figures));
        let (faults, group) = (Faults::default(), Group::whole(4).unwrap());
        let (task, way) = (Task::new(Operation::Broadcast), Way::by(Flat));
        let work = Work { task: &task, way: &way, group: &group, bytes: 8 };
        let setting = Setting::new(&platform, &faults);
        let hosts = Hosts::of(&work, &setting).unwrap();
        let mut world = World::new(&setting, hosts, Stages::new(&work, Calls::AtOnce, 1));
        let place = world.member(2);
        place.spin.paid(64);
        (place.is_holding, place.holds) = (true, 3);
        world.tire(2, 2, Time::ZERO);
        assert!(world.member(2).is_holding, "of an earlier wait");
        world.tire(2, 3, Time::ZERO);
        assert!(!world.member(2).is_holding);
        assert_eq!(world.member(2).spin.polls(), 32);
    }
}
