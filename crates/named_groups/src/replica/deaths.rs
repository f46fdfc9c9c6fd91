//! Recording in the log that members, waiting senders and servers are gone.

use landeck_memory::SlotState;
use landeck_protocols::service::{EntryWord, Gone, Phase, WaitingSender};

use crate::error::Result;
use crate::replica::{LocalState, Replica};

impl Replica {
    /// Records deaths in the log if the membership of the job has changed. A stopped server loses its seat, and its
    /// clients ask the next one.
    #[inline]
    pub(crate) fn record_deaths(&self, local: &mut LocalState) -> Result<()> {
        let generation = self.shared.segment.membership_generation();
        match local.deaths_recorded_at == Some(generation) {
            true => Ok(()),
            false => self.append_deaths(local, generation),
        }
    }

    #[cold]
    fn append_deaths(&self, local: &mut LocalState, generation: u32) -> Result<()> {
        local.deaths_recorded_at = Some(generation);
        if self.copy().is_some() {
            return Ok(());
        }
        let members = local.state.members().iter().filter_map(|member| {
            Some(match self.how_it_left(member.slot, member.incarnation)? {
                Gone::Left => EntryWord::Departed(member.seat()),
                _ => EntryWord::Died(member.seat()),
            })
        });
        let held = local.state.held().iter().filter(|held| self.is_gone(held));
        let held = held.map(|held| EntryWord::Release { ticket: held.ticket });
        let server = local.state.server().filter(|server| {
            let who = server.who;
            self.how_it_left(who.slot, who.incarnation).is_some() || self.is_stopped(who.slot)
        });
        let vacate =
            server.map(|server| EntryWord::Vacate { epoch: EntryWord::low_bits(server.epoch) });
        for entry in members.chain(held).chain(vacate).collect::<Vec<_>>() {
            self.append(local, entry, |_| Ok(()))?;
        }
        self.follow_server(local);
        Ok(())
    }

    /// Has this process serve the members of other hosts after a server that is gone, if it is the one to do so.
    fn follow_server(&self, local: &LocalState) {
        let (state, slots) = (&local.state, self.shared.segment.plan().slots());
        let is_due = self.serves_other_hosts()
            && state.phase() != Phase::Ended
            && state.server().is_none()
            && state.epochs() > 0;
        let near = state.members().iter().map(|member| member.slot).filter(|&slot| slot < slots);
        let is_first = near.min().is_none_or(|first| first == self.shared.slot);
        if is_due && is_first && self.shared.segment.rank_of(self.shared.slot).is_some() {
            // Without a server, processes of other hosts are told so.
            let _ = self.take_seat();
        }
    }

    fn is_gone(&self, held: &WaitingSender) -> bool {
        let record = self.shared.segment.slot_record(held.slot);
        record.state.is_gone() || !held.is_of(record.incarnation)
    }

    /// Whether the process of a slot is stopped. A server is a guest with a slot of its own; the first slot of
    /// its process has the flag.
    fn is_stopped(&self, slot: u32) -> bool {
        let segment = &self.shared.segment;
        let pid = segment.slot_record(slot).pid;
        let mut records = (0..segment.plan().slots()).map(|slot| segment.slot_record(slot));
        records.any(|it| it.state == SlotState::Alive && it.pid == pid && it.stopped)
    }

    /// How the process with this incarnation left its place in the job; none while it is there.
    pub(crate) fn how_it_left(&self, slot: u32, incarnation: u32) -> Option<Gone> {
        let record = self.shared.segment.peer_record(slot);
        match record.state {
            _ if record.incarnation != incarnation => Some(Gone::Died),
            SlotState::Departed => Some(Gone::Left),
            SlotState::Dead => Some(Gone::Died),
            _ => None,
        }
    }
}
