//! The consequences for an endpoint when a slot gets its next process.

use landeck_channel::{Channel, Peer};

use super::Endpoint;
use crate::failure::Failure;
use crate::request::RequestId;
use crate::work::Work;

impl<N: Channel> Endpoint<N> {
    /// Gives a context the members of another one, in the same slots: members that are dead there are dead here.
    pub fn set_members_of(&mut self, context: u32, other: u32, members: Vec<Peer>) {
        self.set_members(context, members);
        self.core.membership.succession.begin_beside(context, other);
    }

    /// Records that a slot has another process than the one known here, whose end may not have been seen.
    pub(crate) fn succeed(&mut self, slot: u32) {
        self.core.chunks.forget(Peer(slot));
        let membership = &mut self.core.membership;
        let seen = membership.gone.remove(&slot);
        let was_away = membership.lose_for_good(slot);
        let contexts = membership.contexts.iter();
        let with_it = contexts.filter(|(_, members)| members.contains(&Peer(slot)));
        let with_it = with_it.map(|(&context, _)| context);
        membership.succession.succeed(slot, seen.unwrap_or(true), with_it);
        membership.broken.remove(&slot);
        if seen.is_none() {
            membership.unacknowledged.insert(slot);
        }
        if seen.is_none() || was_away {
            self.core.heap.reclaim_from(slot);
        }
        let needs_it: Vec<RequestId> =
            self.core.requests.pending().filter(|&id| self.needed_predecessor(id, slot)).collect();
        for id in needs_it {
            let failure = Failure::PeerGone { peer: Peer(slot), died: seen.unwrap_or(true) };
            self.core.end(id, Work::failed(failure));
        }
    }

    /// Records that a process that had left takes part again, whether or not this process has seen it leave. What it was
    /// a member of before is over for it; its messages stay.
    pub(super) fn come_back(&mut self, peer: u32) {
        let membership = &mut self.core.membership;
        membership.gone.remove(&peer);
        membership.away.remove(&peer);
        let contexts = membership.contexts.iter();
        let with_it = contexts.filter(|(_, members)| members.contains(&Peer(peer)));
        membership.succession.succeed(peer, false, with_it.map(|(&context, _)| context));
        let lost = |id: &RequestId| {
            let work =
                self.core.requests.get(*id).filter(|work| work.depends_on() == Some(Peer(peer)));
            let context = work.and_then(Work::context);
            context.is_some_and(|context| {
                self.core.membership.succession.failure_of(context, Peer(peer)).is_some()
            })
        };
        let lost: Vec<RequestId> = self.core.requests.pending().filter(lost).collect();
        for id in lost {
            let failure = Failure::PeerGone { peer: Peer(peer), died: false };
            self.core.end(id, Work::failed(failure));
        }
    }

    /// Whether an operation needs the process that a slot had before.
    fn needed_predecessor(&self, id: RequestId, slot: u32) -> bool {
        let Some(work) = self.core.requests.get(id) else { return false };
        if work.depends_on() != Some(Peer(slot)) {
            return false;
        }
        match work {
            Work::Posted { wanted, .. } => {
                self.core.membership.succession.failure_of(wanted.context, Peer(slot)).is_some()
            }
            _ => true,
        }
    }
}
