//! Joint contexts: everything in them ends with the first operation that needs a member that is gone.
//!
//! Members exchange messages there step by step, each with some of the others. A member whose step fails gives up, and
//! its other partners would wait for it. All members learn of a death by their own membership, so it ends everything
//! at once; what living members have sent before still counts. A member that has left in good order may have done all
//! that others need of it. So its departure ends nothing until an operation needs it: the member that finds this tells all
//! others, by a message without data whose tag has the rank of the departed. It may never call again, so it tells those
//! on other hosts to which there is a path already; they pass it on to those that wait for them.

use landeck_channel::{Channel, Peer};
use landeck_wire::{Header, Kind};

use super::{Endpoint, LOOKS_BEFORE_SLEEP};
use crate::area::Area;
use crate::failure::Failure;

/// The tags of messages that tell of a departure have this bit, and no others of a joint context have it.
const DEPARTED: u32 = 1 << 31;

impl<N: Channel> Endpoint<N> {
    pub(super) fn is_joint(&self, context: u32) -> bool {
        self.core.membership.joint.contains_key(&context)
    }

    /// Takes the messages that living members have sent: they still count.
    pub(super) fn take_what_has_arrived(&mut self) {
        for _ in 0..LOOKS_BEFORE_SLEEP {
            if !self.near.poll_thoroughly(&mut self.core) {
                break;
            }
        }
        if let Some(network) = &mut self.far {
            network.poll_thoroughly(&mut self.core);
        }
    }

    /// An operation of a joint context has failed. If a departure is the reason, everything there ends with it, and the
    /// others are told.
    pub(super) fn end_jointly(&mut self, context: u32, failure: Failure) {
        let Failure::PeerGone { peer, died: false } = failure else { return };
        let Some(members) = self.core.membership.contexts.get(&context).cloned() else { return };
        let rank = members.iter().position(|&member| member == peer);
        let end = self.core.membership.joint.get_mut(&context);
        if let (Some(end @ None), Some(rank)) = (end, rank) {
            *end = Some(failure);
            self.tell_of_departure(context, rank as u32, &members);
        }
    }

    fn tell_of_departure(&mut self, context: u32, rank: u32, members: &[Peer]) {
        for &member in members {
            let is_gone = self.core.membership.failure_of(context, member).is_some();
            if member.0 != self.core.slot && !is_gone && self.has_path(member) {
                let header = Header::user(Kind::Eager, 0, context, DEPARTED | rank);
                self.send_otherwise(member, header, Area::EMPTY);
            }
        }
    }

    fn has_path(&self, member: Peer) -> bool {
        let network = self.far.as_ref().filter(|_| self.is_far(member));
        network.is_none_or(|network| !network.is_read_out(member))
    }

    /// Before sleep: looks whether others have told of a departure.
    pub(super) fn hear_of_departures(&mut self) {
        if self.core.membership.joint.values().all(Option::is_some) {
            return;
        }
        let membership = &self.core.membership;
        let open = membership.joint.iter().filter(|(_, end)| end.is_none());
        let told = open.filter_map(|(&context, _)| {
            let mut kept = self.kept_in(context);
            let rank =
                kept.find_map(|(_, tag)| (tag & DEPARTED != 0).then_some(tag & !DEPARTED))?;
            Some((context, *membership.contexts.get(&context)?.get(rank as usize)?))
        });
        let told: Vec<(u32, Peer)> = told.collect();
        for &(context, peer) in &told {
            let departure = Failure::PeerGone { peer, died: false };
            match self.far.is_some() {
                true => self.end_jointly(context, departure),
                false => _ = self.core.membership.joint.insert(context, Some(departure)),
            }
        }
        if !told.is_empty() {
            self.core.membership.changes += 1;
            self.fail_hopeless();
        }
    }
}
