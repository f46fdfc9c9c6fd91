//! Members that hear of a death, and members that fail because of it.
//!
//! As in the product, the host of the dead member hears of it first, and the others when a word could have reached
//! them. A member in an operation over messages then takes what has come and gives up. A member at the board gives up
//! only if it waits for something that cannot come.

use super::{Event, News, World};
use crate::compact_plans::SimStep;
use crate::fault::Death;
use crate::report::Outcome;
use crate::time::Time;

/// The death because of which a member gave up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lost {
    pub(super) at: Time,
    pub(super) heard: Time,
    pub(super) dead: u32,
}

impl World {
    /// Ends a member.
    pub(super) fn die(&mut self, member: u32, now: Time) {
        self.note(now, 4, member);
        let place = self.member(member);
        place.dies = place.dies.or(Some(now));
        if std::mem::take(&mut place.is_holding) {
            let turn = self.processors.leave(member, now);
            self.plan_turn(turn);
        }
        let home = self.host(member);
        // The process that watches the others needs a processor to see it.
        let seen = now + self.figures.switch_ps;
        for host in 0..self.hosts.count {
            let way_ps = match &self.wires {
                Some(wires) if host != home => wires.word_ps(home, host),
                _ => 0,
            };
            self.events.plan(seen + way_ps, Event::Notice { host, dead: member });
        }
    }

    /// Tells the members of a host of a death.
    pub(super) fn notice(&mut self, host: u32, dead: u32, now: Time) {
        for member in self.hosts.members(host, self.stages.members()) {
            self.hand(member, News::Death(dead), now);
        }
    }

    /// A member can do nothing for now. Makes it give up if it never can, and returns whether it did.
    pub(super) fn give_up(&mut self, member: u32, now: Time) -> bool {
        let place = &self.members[member as usize];
        let (Some((dead, heard)), Some(execution)) = (place.told, &place.execution) else {
            return false;
        };
        if let Some(step) = place.at_board {
            let deed = execution.walk().deed(step);
            let board = self.board_of(member);
            let needed: Vec<u32> =
                (0..self.stages.members()).filter(|&other| board.waits_for(deed, other)).collect();
            let is_gone = |&&other: &&u32| self.members[other as usize].is_gone();
            let gone: Vec<u32> = needed.iter().filter(is_gone).copied().collect();
            if gone.is_empty() {
                return false;
            }
            if matches!(deed, SimStep::AwaitReaders { .. }) {
                // A reader that is gone reads nothing more.
                gone.into_iter().for_each(|reader| self.board(member).have_read(reader));
                self.wake_at_board(now);
                return false;
            }
        }
        self.note(now, 5, member);
        let place = self.member(member);
        place.execution = None;
        place.at_board = None;
        place.news.clear();
        place.lost = Some(Lost { at: now, heard, dead });
        self.wake_at_board(now);
        true
    }

    /// The outcome of each member.
    pub(super) fn outcomes(&self) -> Vec<Outcome> {
        let outcome = |member: &super::Member| match (member.end, member.lost, member.dies) {
            (Some(end), _, _) => Outcome::Done(end),
            (None, Some(Lost { at, heard, dead }), _) => Outcome::Failed { at, heard, dead },
            (None, None, Some(at)) => Outcome::Died(at),
            (None, None, None) => Outcome::Never,
        };
        self.members.iter().map(outcome).collect()
    }

    /// Plans the deaths.
    pub(super) fn plan_deaths(&mut self, deaths: &[Death]) {
        let known = deaths.iter().filter(|death| death.member < self.stages.members());
        for &Death { member, at } in known {
            self.events.plan(at, Event::Death(member));
        }
    }
}
