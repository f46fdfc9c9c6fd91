//! Who learns of a death, and who cannot go on without the dead.
//!
//! As in the product: the host of the dead hears of it first, the others when a word could have reached
//! them. Who is in an operation over messages then takes what has come and gives up; on the board
//! only who waits for something that cannot come.

use super::{Event, News, World};
use crate::fault::Death;
use crate::report::Outcome;
use crate::time::Time;

/// Why a member gave up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lost {
    pub(super) at: Time,
    pub(super) heard: Time,
    pub(super) dead: u32,
}

impl World {
    /// A member ends.
    pub(super) fn die(&mut self, member: u32, now: Time) {
        self.note(now, 4, member);
        let place = self.member(member);
        place.dies = place.dies.or(Some(now));
        if std::mem::take(&mut place.is_holding) {
            let turn = self.processors.leave(member, now);
            self.plan_turn(turn);
        }
        let home = self.host(member);
        // Whoever watches the processes needs a processor to see it.
        let seen = now + self.figures.switch_ps;
        for host in 0..self.hosts.count {
            let way_ps = match &self.wires {
                Some(wires) if host != home => wires.word_ps(home, host),
                _ => 0,
            };
            self.events.plan(seen + way_ps, Event::Notice { host, dead: member });
        }
    }

    /// A host hears of a death: so do its members.
    pub(super) fn notice(&mut self, host: u32, dead: u32, now: Time) {
        for member in self.hosts.members(host, self.stages.members()) {
            self.hand(member, News::Death(dead), now);
        }
    }

    /// A member that can do nothing more for now: whether it never can, and so gives up.
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
            let is_gone = |&other: &u32| self.members[other as usize].is_gone();
            if !needed.iter().any(is_gone) {
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

    /// What became of each member.
    pub(super) fn outcomes(&self) -> Vec<Outcome> {
        let outcome = |member: &super::Member| match (member.end, member.lost, member.dies) {
            (Some(end), _, _) => Outcome::Done(end),
            (None, Some(Lost { at, heard, dead }), _) => Outcome::Failed { at, heard, dead },
            (None, None, Some(at)) => Outcome::Died(at),
            (None, None, None) => Outcome::Never,
        };
        self.members.iter().map(outcome).collect()
    }

    /// Plans the deaths that are to be.
    pub(super) fn plan_deaths(&mut self, deaths: &[Death]) {
        let known = deaths.iter().filter(|death| death.member < self.stages.members());
        for &Death { member, at } in known {
            self.events.plan(at, Event::Death(member));
        }
    }
}
