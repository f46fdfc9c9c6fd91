//! The endpoint's knowledge of the membership: which processes are gone, and in which contexts.
//!
//! The words of agent and daemon are the only source. This keeps only what it has already acted upon.

use std::collections::{HashMap, HashSet};

use landeck_channel::{BrokenPeer, Peer};
use landeck_memory::{FarProcess, Segment, SlotState};

use crate::failure::Failure;
use crate::succession::Succession;
use crate::work::Work;

/// The number of no context: no process was ever lost there.
const NO_CONTEXT: u32 = u32::MAX;

/// The changes of the membership that this endpoint has acted upon.
pub(crate) struct Membership {
    pub(crate) segment: Segment,
    pub(crate) generation: u32,
    /// The number of looks that have found anything new.
    pub(crate) changes: u64,
    /// The number of revocations that this process has looked at.
    pub(crate) revocations: u32,
    /// The places of the shared words of groups that others can revoke.
    pub(crate) boards: HashMap<u32, Board>,
    /// Peers that are gone; the value says whether they died.
    pub(crate) gone: HashMap<u32, bool>,
    /// Those of them that have left, and may come back.
    pub(crate) away: HashSet<u32>,
    /// The context in which a process that has left is waited for until it ends.
    pub(crate) patient_context: Option<u32>,
    pub(crate) broken: HashMap<u32, BrokenPeer>,
    /// The processes of the slots, as far as this was seen: incarnation and tenancy.
    pub(crate) known: Vec<(u32, u32)>,
    /// The processes of the far table, as far as this process has a network.
    pub(crate) far_processes: Vec<FarProcess>,
    /// A far process has returned, and its messages from before are not all taken.
    pub(crate) is_behind: bool,
    /// Far processes that are gone, and whose messages may still arrive.
    pub(crate) leavers: Vec<u32>,
    /// The contexts with members on other hosts, in order.
    pub(crate) far_contexts: Vec<u32>,
    /// Unacknowledged deaths, which fail receives from any source.
    pub(crate) unacknowledged: HashSet<u32>,
    /// The members of each context, unless they are all processes of the first world.
    pub(crate) contexts: HashMap<u32, Vec<Peer>>,
    /// The contexts in which everything ends with the first operation that needs a member that is gone; and the
    /// departure with which one of them has ended.
    pub(crate) joint: HashMap<u32, Option<Failure>>,
    /// Members that are gone although another process has their slot.
    pub(crate) succession: Succession,
    pub(crate) revoked: HashSet<u32>,
}

/// The part of a group's board that revocation needs.
#[derive(Clone, Copy)]
pub(crate) struct Board {
    /// The place of its shared words.
    pub(crate) place: u64,
    /// The group's context for collective operations, which is revoked together with its own.
    pub(crate) collective_context: u32,
}

impl Membership {
    pub(crate) fn new(segment: &Segment) -> Self {
        let slots = segment.plan().slots();
        let known = |slot| {
            let record = segment.slot_record(slot);
            (record.incarnation, record.tenancy())
        };
        Self {
            segment: segment.clone(),
            // Any value but the current one, so that the first look sees everything.
            generation: segment.membership_generation().wrapping_sub(1),
            changes: 0,
            revocations: 0,
            boards: HashMap::new(),
            gone: HashMap::new(),
            away: HashSet::new(),
            patient_context: None,
            broken: HashMap::new(),
            known: (0..slots).map(known).collect(),
            far_processes: Vec::new(),
            is_behind: false,
            leavers: Vec::new(),
            far_contexts: Vec::new(),
            unacknowledged: HashSet::new(),
            contexts: HashMap::new(),
            joint: HashMap::new(),
            succession: Succession::default(),
            revoked: HashSet::new(),
        }
    }

    /// From now on the far table counts: the next look sees all of it.
    pub(crate) fn meet_far(&mut self) {
        self.far_processes.resize(self.segment.plan().far as usize, FarProcess::default());
        self.generation = self.generation.wrapping_sub(1);
    }

    /// Records that a process takes part no more; `is_away` says that it has left, and may come back.
    pub(crate) fn lose(&mut self, peer: u32, died: bool, is_away: bool) {
        self.gone.insert(peer, died);
        if died {
            self.unacknowledged.insert(peer);
        }
        if is_away {
            self.away.insert(peer);
        }
    }

    /// Records that a process that has left does not come back any more; returns whether that is new.
    pub(crate) fn lose_for_good(&mut self, peer: u32) -> bool {
        self.away.remove(&peer)
    }

    /// Whether there is a process that is not known to be gone.
    pub(crate) fn is_there(&self, peer: Peer) -> bool {
        let is_free = self.segment.peer_record(peer.0).state == SlotState::Free;
        !is_free && !self.gone.contains_key(&peer.0)
    }

    /// Sets the members of a context.
    pub(crate) fn set_members(&mut self, context: u32, members: Vec<Peer>) {
        let slots = self.segment.plan().slots();
        let has_far = members.iter().any(|peer| peer.0 >= slots);
        match (self.far_contexts.binary_search(&context), has_far) {
            (Err(place), true) => self.far_contexts.insert(place, context),
            (Ok(place), false) => _ = self.far_contexts.remove(place),
            _ => {}
        }
        self.contexts.insert(context, members);
    }

    /// Forgets the members of a context.
    pub(crate) fn forget_members(&mut self, context: u32) {
        if let Ok(place) = self.far_contexts.binary_search(&context) {
            self.far_contexts.remove(place);
        }
        self.contexts.remove(&context);
        self.joint.remove(&context);
    }

    /// A counter that grows whenever a process is newly gone or a context is revoked.
    #[inline]
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    pub(crate) fn mark_broken(&mut self, peer: Peer, what: BrokenPeer) {
        self.broken.insert(peer.0, what);
        // The next look must fail the operations that depend on it.
        self.generation = self.generation.wrapping_sub(1);
    }

    /// Whether a message to this peer in this context can be sent at all.
    #[inline]
    pub(crate) fn check(&self, to: Peer, context: u32) -> Result<(), Failure> {
        if self.is_whole() {
            return Ok(());
        }
        if self.revoked.contains(&context) {
            return Err(Failure::Revoked);
        }
        let failure = self.joint_end(context).or_else(|| self.failure_of(context, to));
        failure.map_or(Ok(()), Err)
    }

    /// Whether a context is revoked.
    #[inline]
    pub(crate) fn is_revoked(&self, context: u32) -> bool {
        !self.revoked.is_empty() && self.revoked.contains(&context)
    }

    /// Whether no process is gone and nothing was revoked.
    #[inline]
    pub(crate) fn is_whole(&self) -> bool {
        self.nobody_is_gone() && self.revoked.is_empty()
    }

    #[inline]
    pub(crate) fn nobody_is_gone(&self) -> bool {
        self.gone.is_empty() && self.broken.is_empty() && self.succession.is_empty()
    }

    /// Whether a peer has left and is waited for in this context.
    pub(crate) fn may_come(&self, context: u32, peer: Peer) -> bool {
        self.patient_context == Some(context) && self.away.contains(&peer.0)
    }

    /// The reason why nothing can come from or go to a peer in a context.
    pub(crate) fn failure_of(&self, context: u32, peer: Peer) -> Option<Failure> {
        if let Some(what) = self.broken.get(&peer.0) {
            return Some(Failure::PeerBroken { peer, what: what.clone() });
        }
        let gone = self.gone.get(&peer.0).filter(|_| !self.may_come(context, peer));
        let gone = gone.map(|&died| Failure::PeerGone { peer, died });
        gone.or_else(|| self.succession.failure_of(context, peer))
    }

    /// The failure by a member of a context that has died or is broken, if there is one. A member that has left in good
    /// order had done everything that others wait for.
    pub(crate) fn death_among(&self, context: u32, members: &[Peer]) -> Option<Failure> {
        if self.nobody_is_gone() {
            return None;
        }
        let mut failures = members.iter().filter_map(|&member| self.failure_of(context, member));
        failures.find(|failure| !failure.is_departure())
    }

    /// The death or departure with which everything in this context has ended.
    pub(crate) fn joint_end(&self, context: u32) -> Option<Failure> {
        let departure = self.joint.get(&context)?;
        departure.clone().or_else(|| self.death_among(context, self.contexts.get(&context)?))
    }

    /// The reason why an operation that goes on can never complete. A receive from any source has none of its own.
    pub(crate) fn failure_of_work(&self, work: &Work) -> Option<Failure> {
        if let Some(end) = work.context().and_then(|context| self.joint_end(context)) {
            return Some(end);
        }
        // Transfers with a former process of a slot ended when its end was seen.
        let context = match (work, self.patient_context) {
            (Work::Posted { wanted, .. }, _) => wanted.context,
            (_, Some(patient)) if work.context() == Some(patient) => patient,
            _ => NO_CONTEXT,
        };
        self.failure_of(context, work.depends_on()?)
    }

    /// The reason why a receive from any source in this context may never complete.
    pub(crate) fn failure_of_anybody(&self, context: u32, own: u32) -> Option<Failure> {
        if self.nobody_is_gone() {
            return None;
        }
        let is_member = |slot: u32| match self.contexts.get(&context) {
            Some(members) => members.contains(&Peer(slot)),
            None => self.segment.rank_of_peer(slot).is_some(),
        };
        // The next process of a dead one's slot is alive, if the context means that process.
        let is_dead = |slot: u32| {
            self.gone.contains_key(&slot)
                || self.succession.failure_of(context, Peer(slot)).is_some()
        };
        let dead = self.unacknowledged.iter().copied();
        let dead = dead.filter(|&slot| is_member(slot) && is_dead(slot)).min();
        if let Some(slot) = dead {
            return Some(Failure::PeerGone { peer: Peer(slot), died: true });
        }
        let everybody: Vec<Peer> = match self.contexts.get(&context) {
            Some(members) => members.clone(),
            None => {
                let ranks = 0..self.segment.plan().ranks;
                ranks.map(|rank| Peer(self.segment.peer_of_rank(rank))).collect()
            }
        };
        let mut others = everybody.into_iter().filter(|peer| peer.0 != own).peekable();
        let last = others.peek().copied()?;
        let all_gone = others.all(|peer| self.failure_of(context, peer).is_some());
        if all_gone { self.failure_of(context, last) } else { None }
    }
}
