//! The consequences of the membership for an endpoint: it ends operations that cannot complete without processes that
//! are gone.

use landeck_board::{is_revoked, needs_of_first_world};
use landeck_channel::{Channel, Peer};
use landeck_memory::{End, FarProcess, SlotState};

use super::Endpoint;
use crate::failure::Failure;
use crate::matching::Wanted;
use crate::membership::{Board, Membership};
use crate::request::RequestId;
use crate::work::Work;

/// How a receive reacts to a sender that has left in good order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Patience {
    /// It stays pending: it may still be cancelled.
    OfLooks,
    /// It fails: otherwise it would wait for ever.
    OfWaits,
}

impl<N: Channel> Endpoint<N> {
    /// Sets the members of a context: the processes that have these slots, or had them last.
    pub fn set_members(&mut self, context: u32, members: Vec<Peer>) {
        self.refresh();
        self.core.membership.succession.begin(context, std::iter::empty());
        self.core.pacing.set(context, None);
        self.core.one_copies.forget(context);
        self.core.membership.set_members(context, members);
    }

    /// Sets the members of a context. If the process of a slot is gone, its next process is meant.
    pub fn await_members(&mut self, context: u32, members: Vec<Peer>) {
        self.refresh();
        let Membership { gone, succession, .. } = &mut self.core.membership;
        let of_gone = members.iter().map(|peer| peer.0).filter(|slot| gone.contains_key(slot));
        succession.begin(context, of_gone);
        self.core.membership.set_members(context, members);
    }

    /// Makes a context a joint one: everything in it ends with the first death among its members.
    pub fn make_joint(&mut self, context: u32) {
        self.core.membership.joint.entry(context).or_default();
    }

    /// Sets the place of the shared words that tell of a context's revocation, and the context that is revoked with it.
    pub fn set_board(&mut self, context: u32, collective_context: u32, place: u64) {
        self.core.membership.boards.insert(context, Board { place, collective_context });
        // It may be revoked already, so the next look must find a change.
        self.core.membership.revocations = self.core.membership.revocations.wrapping_sub(1);
    }

    /// The place of the shared words of a context's board, if it was set.
    pub fn board_of(&self, context: u32) -> Option<u64> {
        self.core.membership.boards.get(&context).map(|board| board.place)
    }

    /// Forgets a context: its kept messages are dropped.
    pub fn forget_context(&mut self, context: u32) {
        self.core.membership.forget_members(context);
        self.core.membership.revoked.remove(&context);
        self.core.membership.boards.remove(&context);
        self.core.membership.succession.forget(context);
        self.discard(|in_context, _| in_context == context);
    }

    /// Revokes a context here: every operation in it ends.
    pub fn revoke(&mut self, context: u32) {
        self.core.membership.revoked.insert(context);
        let doomed: Vec<RequestId> = self
            .core
            .requests
            .pending()
            .filter(|&id| self.core.requests.get(id).and_then(Work::context) == Some(context))
            .collect();
        for id in doomed {
            self.core.end(id, Work::failed(Failure::Revoked));
        }
        self.discard(|in_context, _| in_context == context);
    }

    /// Sets the context in which a process that has left is waited for until it ends: it may come back, and is meant as
    /// what it is then.
    pub fn wait_for_leavers_in(&mut self, context: u32) {
        self.core.membership.patient_context = Some(context);
    }

    /// Acknowledges all deaths: receives from any source continue without the dead.
    pub fn acknowledge_failures(&mut self) -> Vec<Peer> {
        self.refresh();
        let mut dead: Vec<Peer> = self.core.membership.unacknowledged.drain().map(Peer).collect();
        dead.sort_unstable();
        dead
    }

    /// The peers that are known to have died, in order.
    pub fn failed_peers(&mut self) -> Vec<Peer> {
        self.refresh();
        let died = self.core.membership.gone.iter().filter(|&(_, &died)| died);
        let mut dead: Vec<Peer> = died.map(|(&slot, _)| Peer(slot)).collect();
        dead.sort_unstable();
        dead
    }

    /// The number of these peers that are known to have died and are acknowledged.
    pub fn acknowledged_among(&self, peers: &[Peer]) -> u32 {
        let Membership { gone, unacknowledged, .. } = &self.core.membership;
        let is_acknowledged = |peer: &&Peer| {
            gone.get(&peer.0).is_some_and(|&died| died) && !unacknowledged.contains(&peer.0)
        };
        peers.iter().filter(is_acknowledged).count() as u32
    }

    /// Checks whether the membership words or revocations have changed, and if so ends operations that cannot complete.
    #[inline]
    pub fn refresh(&mut self) {
        let Membership { generation, revocations, .. } = self.core.membership;
        if self.core.segment.membership_generation() != generation
            || self.core.segment.revocations(self.core.slot) != revocations
        {
            self.refresh_changed();
        }
    }

    /// Checks the membership words even if no change has been counted yet. A process's record says a moment earlier
    /// that it is gone, and boards go by the record.
    #[cold]
    pub fn refresh_from_records(&mut self) {
        self.refresh_changed();
    }

    /// Records new revocations. A revoker that dies tells the others only by its death, so every change of the
    /// membership leads here as well.
    fn note_revocations(&mut self) {
        self.core.membership.revocations = self.core.segment.revocations(self.core.slot);
        let Membership { boards, revoked, segment, .. } = &self.core.membership;
        let is_new = |&(context, board): &(&u32, &Board)| {
            !revoked.contains(context) && is_revoked(segment, board.place)
        };
        let new: Vec<_> =
            boards.iter().filter(is_new).map(|(&context, &board)| (context, board)).collect();
        for (context, board) in new {
            self.revoke(context);
            self.revoke(board.collective_context);
        }
    }

    #[cold]
    fn refresh_changed(&mut self) {
        self.core.membership.changes += 1;
        self.note_revocations();
        let generation = self.core.segment.membership_generation();
        let mut changed = false;
        for slot in 0..self.core.segment.plan().slots() {
            changed |= self.refresh_slot(slot);
        }
        self.meet_hosts();
        for far in 0..self.far_peers {
            changed |= self.refresh_far_record(far);
        }
        // Any other value has the next look see everything.
        let is_behind = std::mem::take(&mut self.core.membership.is_behind);
        self.core.membership.generation = generation.wrapping_sub(u32::from(is_behind));
        if changed || !self.core.membership.broken.is_empty() {
            self.fail_hopeless();
        }
        self.let_slots_go(generation);
    }

    /// Releases the slots of processes from which nothing is needed any more, and publishes how far this process has
    /// looked: then others may get the slots.
    fn let_slots_go(&self, generation: u32) {
        let core = &self.core;
        let slots = core.segment.plan().slots();
        for &slot in core.membership.gone.keys().filter(|&&peer| peer < slots) {
            let is_needed =
                core.is_kept_in(slot) || needs_of_first_world(&core.segment, core.slot, slot);
            core.segment.release_vacant(core.slot, slot, is_needed);
        }
        core.segment.set_seen(core.slot, generation);
    }

    /// Updates the knowledge of one slot; returns whether its process is newly gone.
    fn refresh_slot(&mut self, slot: u32) -> bool {
        if slot == self.core.slot {
            return false;
        }
        let record = self.core.segment.slot_record(slot);
        let (known, known_tenancy) = self.core.membership.known[slot as usize];
        let is_next = known != 0 && record.incarnation != known;
        if record.incarnation != known {
            self.core.membership.known[slot as usize] = (record.incarnation, record.tenancy());
            let is_same_process = record.tenancy() == known_tenancy;
            match is_same_process {
                _ if known == 0 => self.core.one_copies.renew(slot),
                true => self.come_back(slot),
                false => {
                    self.core.one_copies.renew(slot);
                    self.succeed(slot);
                }
            }
            self.near.forget_before(Peer(slot), record.tenancy());
        }
        if !record.state.is_gone() {
            return is_next;
        }
        if self.core.membership.gone.contains_key(&slot) {
            let has_ended = record.state.has_ended() && self.core.membership.lose_for_good(slot);
            if has_ended {
                self.core.heap.reclaim_from(slot);
            }
            return is_next || has_ended;
        }
        // The messages that it sent before it went still count, and are no more than its ring holds.
        self.core.keeps_all = true;
        while self.near.poll_peer_into(Peer(slot), &mut self.core) {}
        self.core.keeps_all = false;
        let (died, has_ended) = (record.state == SlotState::Dead, record.state.has_ended());
        self.core.membership.lose(slot, died, !has_ended);
        if has_ended {
            self.core.heap.reclaim_from(slot);
        }
        true
    }

    /// Updates the knowledge of one far record; returns whether its process is newly gone.
    fn refresh_far_record(&mut self, far: u32) -> bool {
        let record = self.core.segment.far_record(far);
        if record.state == SlotState::Free {
            return false;
        }
        let peer = self.first_far + far;
        let before = self.core.membership.far_processes[far as usize];
        let is_next = before != record.process && before != FarProcess::default();
        if is_next && self.holds_before(Peer(peer), record.process.incarnation) {
            return false;
        }
        self.core.membership.far_processes[far as usize] = record.process;
        if is_next {
            self.core.membership.leavers.retain(|&leaver| leaver != peer);
            self.core.chunks.forget(Peer(peer));
            self.come_back(peer);
            if let Some(network) = &mut self.far {
                network.forget_before(Peer(peer), record.process.incarnation);
            }
        }
        if !record.state.is_gone() {
            return is_next;
        }
        if self.core.membership.gone.contains_key(&peer) {
            return is_next || record.state.has_ended() && self.core.membership.lose_for_good(peer);
        }
        // A lane that the process has used may still wait to be taken over.
        if let Some(network) = &mut self.far {
            network.poll_thoroughly(&mut self.core);
        }
        if self.note_gone_if_read_out(peer) {
            return true;
        }
        let leavers = &mut self.core.membership.leavers;
        if !leavers.contains(&peer) {
            leavers.push(peer);
        }
        is_next
    }

    /// Whether messages of a far process from before its return are not taken yet. Then the next look sees the return.
    fn holds_before(&mut self, peer: Peer, incarnation: u32) -> bool {
        let Some(network) = &mut self.far else { return false };
        network.poll_thoroughly(&mut self.core);
        let holds = network.holds_before(peer, incarnation);
        self.core.membership.is_behind |= holds;
        holds
    }

    /// Looks again at far processes whose end is recorded and whose messages may still have been arriving; returns
    /// whether one is newly gone.
    #[inline]
    pub(crate) fn look_at_leavers(&mut self) -> bool {
        !self.core.membership.leavers.is_empty() && self.note_leavers()
    }

    #[cold]
    fn note_leavers(&mut self) -> bool {
        let leavers = std::mem::take(&mut self.core.membership.leavers);
        let count = leavers.len();
        let left = leavers.into_iter().filter(|&peer| !self.note_gone_if_read_out(peer)).collect();
        self.core.membership.leavers = left;
        let is_changed = self.core.membership.leavers.len() != count;
        if is_changed {
            self.core.membership.changes += 1;
            self.fail_hopeless();
        }
        is_changed
    }

    /// Records that a far process is gone, as its record says, if nothing more can arrive from it.
    fn note_gone_if_read_out(&mut self, peer: u32) -> bool {
        if !self.far.as_ref().is_none_or(|network| network.is_read_out(Peer(peer))) {
            return false;
        }
        let state = self.core.segment.peer_record(peer).state;
        self.core.membership.lose(peer, state == SlotState::Dead, !state.has_ended());
        self.core.chunks.forget(Peer(peer));
        // Nothing of this process's waits for it any more.
        if let Some(network) = &mut self.far {
            network.forget(Peer(peer));
        }
        true
    }

    /// Ends every request that depends on a process that is gone.
    pub(super) fn fail_hopeless(&mut self) {
        if !self.core.membership.joint.is_empty() {
            self.take_what_has_arrived();
        }
        if self.core.is_busy() {
            self.advance(); // a transfer whose data are all there completes
        }
        let pending: Vec<RequestId> = self.core.requests.pending().collect();
        for id in pending {
            self.fail_if_hopeless(id, Patience::OfLooks);
        }
    }

    fn fail_if_hopeless(&mut self, id: RequestId, patience: Patience) {
        let Some(work) = self.core.requests.get(id) else { return };
        let Some(failure) = self.core.membership.failure_of_work(work) else { return };
        if let Some(context) = work.context().filter(|&context| self.is_joint(context)) {
            self.core.end(id, Work::failed(failure.clone()));
            self.end_jointly(context, failure);
            return;
        }
        let is_posted = matches!(work, Work::Posted { .. });
        if !(is_posted && patience == Patience::OfLooks && failure.is_departure()) {
            self.core.end(id, Work::failed(failure));
        }
    }

    /// The failure of a group: its context was revoked, or a member is gone.
    #[inline(always)]
    pub fn failure_of_group(&self, context: u32, members: &[Peer]) -> Option<Failure> {
        let membership = &self.core.membership;
        if membership.nobody_is_gone() && membership.revoked.is_empty() {
            return None;
        }
        self.failure_of_some(context, members)
    }

    #[cold]
    fn failure_of_some(&self, context: u32, members: &[Peer]) -> Option<Failure> {
        if self.core.membership.revoked.contains(&context) {
            return Some(Failure::Revoked);
        }
        self.death_among(context, members)
    }

    /// The incarnation of a peer, as far as this process has seen it.
    pub fn known_incarnation(&self, peer: Peer) -> u32 {
        let Membership { known, far_processes, segment, .. } = &self.core.membership;
        match peer.0.checked_sub(self.first_far) {
            _ if peer.0 == self.core.slot => segment.incarnation(peer.0),
            Some(far) => far_processes.get(far as usize).map_or(0, |process| process.incarnation),
            None => known[peer.0 as usize].0,
        }
    }

    /// Whether a peer is known to be gone; if so, whether it died.
    pub fn is_gone(&self, peer: Peer) -> Option<bool> {
        self.core.membership.gone.get(&peer.0).copied()
    }

    /// The reason why nothing more comes from a member of a context, as its record says, although messages of it may
    /// still arrive.
    pub fn recorded_loss(&self, context: u32, member: Peer) -> Option<Failure> {
        self.core.membership.failure_of(context, member).or_else(|| {
            let state = self.core.segment.peer_record(member.0).state;
            let died = state == SlotState::Dead;
            state.is_gone().then_some(Failure::PeerGone { peer: member, died })
        })
    }

    /// The failure by a member of a context that has died or is broken, if there is one. A member that has left in good
    /// order had done everything that others wait for.
    pub fn death_among(&self, context: u32, members: &[Peer]) -> Option<Failure> {
        self.core.membership.death_among(context, members)
    }

    /// The verdict for a waiting process after a change of the membership. A request that cannot complete is ended,
    /// except that a receive from any source continues once the dead are acknowledged.
    pub fn verdict(&mut self, id: RequestId) -> Option<End> {
        self.refresh();
        self.look_at_leavers();
        self.fail_if_hopeless(id, Patience::OfWaits);
        if self.is_done(id) {
            return None;
        }
        let failure = self.failure_of_pending(id)?;
        if failure.is_departure() {
            // No process is left that could send, so there is nothing to acknowledge.
            self.progress_thoroughly();
            if !self.is_done(id) {
                self.core.end(id, Work::failed(failure));
            }
            return None;
        }
        Some(End::PeerFailed)
    }

    /// The verdict for a process that only tests a request. In contrast to [`Endpoint::verdict`], a receive from a
    /// process that has left in good order stays pending, and can be cancelled. That is no failure.
    pub fn verdict_of_look(&mut self, id: RequestId) -> Option<End> {
        self.refresh();
        self.look_at_leavers();
        self.fail_if_hopeless(id, Patience::OfLooks);
        let failure = self.failure_of_pending(id)?;
        (!failure.is_departure()).then_some(End::PeerFailed)
    }

    /// Whether a pending receive from any source may never complete.
    pub fn is_hopeless(&self, id: RequestId) -> bool {
        self.failure_of_pending(id).is_some()
    }

    /// The reason why a pending receive may never complete.
    pub fn failure_of_pending(&self, id: RequestId) -> Option<Failure> {
        match self.core.requests.get(id) {
            Some(Work::Posted { wanted, .. }) => self.failure_of_wanted(wanted),
            _ => None,
        }
    }

    /// The reason why a wanted message may never come.
    pub fn failure_of_wanted(&self, wanted: &Wanted) -> Option<Failure> {
        let membership = &self.core.membership;
        if membership.revoked.contains(&wanted.context) {
            return Some(Failure::Revoked);
        }
        match wanted.source {
            Some(source) => {
                let end = membership.joint_end(wanted.context);
                end.or_else(|| membership.failure_of(wanted.context, Peer(source)))
            }
            None => membership.failure_of_anybody(wanted.context, self.core.slot),
        }
    }

    pub(super) fn discard(&mut self, doomed: impl Fn(u32, u32) -> bool) {
        let core = &mut self.core;
        let mut dropped = Vec::new();
        core.matching.discard(
            |label| doomed(label.context, label.source),
            |label, kept| dropped.push((label, kept)),
        );
        for (label, kept) in dropped {
            core.let_go(label, &kept);
            core.uncount_kept(label.source, kept.cost_bytes());
        }
    }
}
