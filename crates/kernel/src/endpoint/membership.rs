//! What an endpoint makes of the membership: what cannot complete without those that are gone ends.

use landeck_board::{is_revoked, needs_of_first_world};
use landeck_channel::{Channel, Peer};
use landeck_memory::End;

use super::Endpoint;
use crate::failure::Failure;
use crate::matching::Wanted;
use crate::membership::{Board, Membership};
use crate::request::RequestId;
use crate::work::Work;

/// The number of no context: nobody was ever lost there.
const NO_CONTEXT: u32 = u32::MAX;

/// How a receive takes it that its sender has left in good order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Patience {
    /// It stays: it may still be cancelled.
    OfLooks,
    /// It fails: who waits for it would wait for ever.
    OfWaits,
}

impl<N: Channel> Endpoint<N> {
    /// Says who the members of a context are: the processes that have these slots, or had them last.
    pub fn set_members(&mut self, context: u32, members: Vec<Peer>) {
        self.refresh();
        self.core.membership.succession.begin(context, std::iter::empty());
        self.core.membership.contexts.insert(context, members);
    }

    /// The same, but where a slot's process is gone its next one is meant.
    pub fn await_members(&mut self, context: u32, members: Vec<Peer>) {
        self.refresh();
        let Membership { gone, succession, contexts, .. } = &mut self.core.membership;
        let of_gone = members.iter().map(|peer| peer.0).filter(|slot| gone.contains_key(slot));
        succession.begin(context, of_gone);
        contexts.insert(context, members);
    }

    /// Says where the shared words are that tell of a context's revocation, and which context is
    /// revoked with it.
    pub fn set_board(&mut self, context: u32, twin: u32, place: u64) {
        self.core.membership.boards.insert(context, Board { place, twin });
        // It may be revoked already.
        self.core.membership.revocations = self.core.membership.revocations.wrapping_sub(1);
    }

    /// Where the shared words of a context's board are, if that was said.
    pub fn board_of(&self, context: u32) -> Option<u64> {
        self.core.membership.boards.get(&context).map(|board| board.place)
    }

    /// Forgets a context: its kept messages are dropped.
    pub fn forget_context(&mut self, context: u32) {
        self.core.membership.contexts.remove(&context);
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
            .filter(|&id| match self.core.requests.get(id) {
                Some(Work::Posted { wanted, .. }) => wanted.context == context,
                Some(Work::Queued { header, .. }) => header.context == context,
                Some(Work::Offered { context: of_send, .. }) => *of_send == context,
                Some(Work::Filling(filling)) => filling.context == context,
                Some(Work::Draining(draining)) => draining.context == context,
                Some(Work::Collecting(collecting)) => collecting.context == context,
                _ => false,
            })
            .collect();
        for id in doomed {
            self.core.end(id, Work::failed(Failure::Revoked));
        }
        self.discard(|in_context, _| in_context == context);
    }

    /// Takes note of the dead: receives from anybody go on without them.
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

    /// How many of these peers are known to have died, and are acknowledged.
    pub fn acknowledged_among(&self, peers: &[Peer]) -> u32 {
        let Membership { gone, unacknowledged, .. } = &self.core.membership;
        let is_acknowledged = |peer: &&Peer| {
            gone.get(&peer.0).is_some_and(|&died| died) && !unacknowledged.contains(&peer.0)
        };
        peers.iter().filter(is_acknowledged).count() as u32
    }

    /// Looks at the membership words, and at what was revoked, if they have changed, and ends what
    /// cannot complete.
    #[inline]
    pub fn refresh(&mut self) {
        let Membership { generation, revocations, .. } = self.core.membership;
        if self.core.segment.membership_generation() != generation
            || self.core.segment.revocations(self.core.slot) != revocations
        {
            self.refresh_changed();
        }
    }

    /// The same, also where no change has been counted yet: a process's record says that it is gone a moment before
    /// that, and boards go by the record.
    #[cold]
    pub fn refresh_from_records(&mut self) {
        self.refresh_changed();
    }

    /// A revoker that dies tells nobody but by its death: so every change of the membership makes
    /// us look here as well.
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
            self.revoke(board.twin);
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
        changed |= self.note_far_gone();
        self.core.membership.generation = generation;
        if changed || !self.core.membership.broken.is_empty() {
            self.fail_hopeless();
        }
        self.let_slots_go(generation);
    }

    /// Lets the slots of those go of whom nothing is needed any more, and says how far this process has
    /// looked: then others may get them.
    fn let_slots_go(&self, generation: u32) {
        let core = &self.core;
        for &slot in core.membership.gone.keys() {
            let is_needed =
                core.is_kept_in(slot) || needs_of_first_world(&core.segment, core.slot, slot);
            core.segment.release_vacant(core.slot, slot, is_needed);
        }
        core.segment.set_seen(core.slot, generation);
    }

    /// Takes note of one slot; true when somebody is newly gone.
    fn refresh_slot(&mut self, slot: u32) -> bool {
        if slot == self.core.slot {
            return false;
        }
        let record = self.core.segment.slot_record(slot);
        let known = self.core.membership.incarnations[slot as usize];
        if record.incarnation != known {
            self.core.membership.incarnations[slot as usize] = record.incarnation;
            if known != 0 {
                self.succeed(slot);
            }
            self.near.forget_before(Peer(slot), record.incarnation);
        }
        let is_next = known != 0 && record.incarnation != known;
        if !record.state.is_gone() || self.core.membership.gone.contains_key(&slot) {
            return is_next;
        }
        // What it sent before it went still counts, and is no more than its ring holds.
        self.core.keeps_all = true;
        while self.near.poll_peer_into(Peer(slot), &mut self.core) {}
        self.core.keeps_all = false;
        let died = record.state == landeck_memory::SlotState::Dead;
        self.core.membership.gone.insert(slot, died);
        if died {
            self.core.membership.unacknowledged.insert(slot);
        }
        self.core.heap.reclaim_from(slot);
        true
    }

    /// Looks at the peers of other networks, whose end no membership word tells; true when
    /// somebody is newly gone.
    pub fn refresh_far(&mut self) -> bool {
        let changed = self.note_far_gone();
        if changed {
            self.fail_hopeless();
        }
        changed
    }

    fn note_far_gone(&mut self) -> bool {
        let far_gone = self.far_gone();
        let membership = &mut self.core.membership;
        let mut changed = false;
        for (peer, died) in far_gone {
            if membership.gone.insert(peer.0, died).is_none() {
                if died {
                    membership.unacknowledged.insert(peer.0);
                }
                membership.changes += 1;
                changed = true;
            }
        }
        changed
    }

    /// Ends every request that depends on somebody who is gone.
    fn fail_hopeless(&mut self) {
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
        let Some(peer) = work.depends_on() else { return };
        // What goes on with a process that has no slot any more was ended when that was seen.
        let context = match work {
            Work::Posted { wanted, .. } => wanted.context,
            _ => NO_CONTEXT,
        };
        let Some(failure) = self.core.membership.failure_of(context, peer) else { return };
        let is_posted = matches!(work, Work::Posted { .. });
        if !(is_posted && patience == Patience::OfLooks && failure.is_departure()) {
            self.core.end(id, Work::failed(failure));
        }
    }

    /// Why a group cannot do anything together: its context was revoked, or somebody has died.
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

    /// Whether a peer is known to be gone; if so, whether it died.
    pub fn is_gone(&self, peer: Peer) -> Option<bool> {
        self.core.membership.gone.get(&peer.0).copied()
    }

    /// Which of these members of a context has died (or is broken), if any. Who has left in good order had done
    /// what others wait for.
    pub fn death_among(&self, context: u32, members: &[Peer]) -> Option<Failure> {
        let membership = &self.core.membership;
        if membership.nobody_is_gone() {
            return None;
        }
        let mut failures =
            members.iter().filter_map(|&member| membership.failure_of(context, member));
        failures.find(|failure| !failure.is_departure())
    }

    /// For who waits, after a change of the membership: can this request still complete? A request
    /// that cannot is ended, except that a receive from anybody goes on once the dead are
    /// acknowledged.
    pub fn verdict(&mut self, id: RequestId) -> Option<End> {
        self.refresh();
        self.refresh_far();
        self.fail_if_hopeless(id, Patience::OfWaits);
        if self.is_done(id) {
            return None;
        }
        let failure = self.failure_of_pending(id)?;
        if failure.is_departure() {
            // Nobody is left who could send; there is nothing to acknowledge.
            self.progress_thoroughly();
            if !self.is_done(id) {
                self.core.end(id, Work::failed(failure));
            }
            return None;
        }
        Some(End::PeerFailed)
    }

    /// For who looks and may do something else: as [`Endpoint::verdict`], but a receive from
    /// somebody who has left in good order stays as it is, and can be cancelled. Nothing failed.
    pub fn verdict_of_look(&mut self, id: RequestId) -> Option<End> {
        self.refresh();
        self.refresh_far();
        self.fail_if_hopeless(id, Patience::OfLooks);
        let failure = self.failure_of_pending(id)?;
        (!failure.is_departure()).then_some(End::PeerFailed)
    }

    /// Whether a pending receive from anybody may never complete.
    pub fn is_hopeless(&self, id: RequestId) -> bool {
        self.failure_of_pending(id).is_some()
    }

    /// Why it may not.
    pub fn failure_of_pending(&self, id: RequestId) -> Option<Failure> {
        match self.core.requests.get(id) {
            Some(Work::Posted { wanted, .. }) => self.failure_of_wanted(wanted),
            _ => None,
        }
    }

    /// Why what is asked for may never come, for who waits for it.
    pub fn failure_of_wanted(&self, wanted: &Wanted) -> Option<Failure> {
        let membership = &self.core.membership;
        if membership.revoked.contains(&wanted.context) {
            return Some(Failure::Revoked);
        }
        match wanted.source {
            Some(source) => membership.failure_of(wanted.context, Peer(source)),
            None => membership.failure_of_anybody(wanted.context, self.core.slot),
        }
    }

    fn discard(&mut self, doomed: impl Fn(u32, u32) -> bool) {
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
