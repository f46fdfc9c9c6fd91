//! Recording in the log that members, waiting senders and servers are gone.

use std::collections::BTreeSet;

use landeck_memory::SlotState;
use landeck_protocols::service::{Gone, GroupEntry, Party, Phase, State};

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
        for host in self.lost_hosts(&local.state) {
            self.append(local, GroupEntry::HostGone(host), |_| Ok(()))?;
        }
        let state = &local.state;
        let members = state.members().iter().filter_map(|member| {
            Some(match self.how_party_left(state, member.process)? {
                Gone::Left => GroupEntry::Departed(member.seat()),
                _ => GroupEntry::Died(member.seat()),
            })
        });
        let held = state.held().iter().filter(|held| self.is_gone(state, held.process));
        let held = held.map(|held| GroupEntry::Release { ticket: held.ticket });
        let server = state.server().filter(|server| {
            let process = server.who.process;
            self.how_party_left(state, process).is_some() || self.is_stopped(process.slot.into())
        });
        let vacate = server.map(|server| GroupEntry::Vacate { epoch: server.epoch });
        for entry in members.chain(held).chain(vacate).collect::<Vec<_>>() {
            self.append(local, entry, |_| Ok(()))?;
        }
        self.follow_server(local);
        Ok(())
    }

    /// The numbers of lost hosts that members are on.
    fn lost_hosts(&self, state: &State) -> BTreeSet<u16> {
        let segment = &self.shared.segment;
        let is_lost = |process: Party| {
            let far = self.peer(state, process)?.checked_sub(segment.plan().slots())?;
            let record = segment.far_record(far);
            let is_its_own = record.process.incarnation == process.incarnation;
            (is_its_own && record.is_host_lost).then_some(())
        };
        let lost = state.members().iter().filter(|member| is_lost(member.process).is_some());
        lost.map(|member| member.process.host).collect()
    }

    /// Has this process serve the members of other hosts after a server that is gone, if it is the one to do so.
    fn follow_server(&self, local: &LocalState) {
        let state = &local.state;
        let is_due = self.serves_other_hosts()
            && state.phase() != Phase::Ended
            && state.server().is_none()
            && state.epochs() > 0;
        let near = state.members().iter().filter(|it| self.is_near(state, it.process));
        let first = near.map(|member| u32::from(member.process.slot)).min();
        let is_first = first.is_none_or(|first| first == self.shared.slot);
        if is_due && is_first && self.shared.segment.rank_of(self.shared.slot).is_some() {
            // Without a server, processes of other hosts are told so.
            let _ = self.take_seat();
        }
    }

    fn is_gone(&self, state: &State, process: Party) -> bool {
        self.peer(state, process).is_some_and(|peer| {
            let record = self.shared.segment.peer_record(peer);
            record.state.is_gone() || record.incarnation != process.incarnation
        })
    }

    /// Whether the process of a slot is stopped. A server is a guest with a slot of its own; the first slot of
    /// its process has the flag.
    fn is_stopped(&self, slot: u32) -> bool {
        let segment = &self.shared.segment;
        let pid = segment.slot_record(slot).pid;
        let mut records = (0..segment.plan().slots()).map(|slot| segment.slot_record(slot));
        records.any(|it| it.state == SlotState::Alive && it.pid == pid && it.stopped)
    }

    /// How a process left its place in the job; none while it is there, or is not known here yet.
    fn how_party_left(&self, state: &State, process: Party) -> Option<Gone> {
        self.how_it_left(self.peer(state, process)?, process.incarnation)
    }

    /// How the process with this incarnation left its place in the job; none while it is there.
    pub(crate) fn how_it_left(&self, peer: u32, incarnation: u32) -> Option<Gone> {
        let record = self.shared.segment.peer_record(peer);
        match record.state {
            _ if record.incarnation != incarnation => Some(Gone::Died),
            SlotState::Departed => Some(Gone::Left),
            SlotState::Dead => Some(Gone::Died),
            _ => None,
        }
    }
}
