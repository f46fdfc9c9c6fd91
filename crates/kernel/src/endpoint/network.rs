//! An endpoint and its network to processes on other hosts.

use landeck_channel::incast::Incast;
use landeck_channel::relay_requests::RelayRequests;
use landeck_channel::{Channel, Peer};
use landeck_memory::{LaneRecord, Operation};
use landeck_wire::way::{Extent, MessageWay, choose};
use landeck_wire::{Class, ContextId};

use super::{Endpoint, NetworkOpener, Started};
use crate::area::Area;
use crate::arrival::{Core, Direct, DirectOwn};
use crate::budget::Interest;
use crate::failure::Failure;
use crate::mailboxes::FIRST_MAILBOX;
use crate::matching::Wanted;
use crate::request::{Completion, RequestId};
use crate::status::Status;
use crate::work::Work;

impl<N: Channel> Endpoint<N> {
    /// Sets the network over which this process reaches all processes on other hosts: the peers from the number of
    /// slots on, as many as the far table has records. An earlier network is dropped: a process that has said goodbye and
    /// comes back takes another one.
    pub fn set_network(&mut self, network: Box<dyn Channel>) {
        self.far = Some(network);
        self.far_peers = self.core.segment.plan().far;
        (self.has_left, self.core.leaves) = (false, false);
        (0..self.far_peers).for_each(|far| self.core.chunks.forget(Peer(self.first_far + far)));
        self.core.membership.meet_far();
    }

    /// Has the network opened as soon as this process sees that another host takes part in the job. Until then the endpoint
    /// is that of a job on one host.
    pub fn await_hosts(&mut self, opener: NetworkOpener<N>) {
        self.opener = Some(opener);
    }

    /// Opens the network that waits for other hosts, if there are any now.
    pub(super) fn meet_hosts(&mut self) {
        let Some(mut open) = self.opener.take() else { return };
        if !(self.core.segment.knows_other_hosts() && open(self)) {
            // Another look is due at the next change; at once, if it could not be opened.
            self.core.membership.is_behind |= self.core.segment.knows_other_hosts();
            self.opener = Some(open);
        }
    }

    /// Sets how many senders on other hosts answer this process in one step of a group that has no wish of its own.
    pub fn set_incast(&mut self, wish: Incast) {
        self.core.pacing.set_usual(wish);
    }

    /// Sets the wish of one group, by its context for collective operations.
    pub fn set_incast_of(&mut self, context: u32, wish: Option<Incast>) {
        self.core.pacing.set(context, wish);
    }

    /// Sends to one receiver beside so many other senders. If all of them together would send more than the receiver's
    /// port holds, the message is offered, and the receiver says when it may come.
    ///
    /// # Errors
    /// The errors of [`Endpoint::send`].
    pub fn send_of_many(
        &mut self,
        to: Peer,
        context: u32,
        tag: u32,
        (area, senders): (Area, u32),
    ) -> Result<Started, Failure> {
        if self.core.pacing.tokens(context).is_some() {
            self.core.pacing.note_senders(context, senders);
        }
        let most =
            if self.is_far(to) { self.unscheduled_bytes(context, senders) } else { u64::MAX };
        match area.packed_bytes() > most {
            true => self.send_synchronous(to, context, tag, area),
            false => self.send(to, context, tag, area),
        }
    }

    #[cold]
    fn unscheduled_bytes(&self, context: u32, senders: u32) -> u64 {
        self.core.pacing.wish(context).unscheduled_bytes(senders)
    }

    /// Whether there is a network to other hosts.
    #[inline]
    pub fn has_network(&self) -> bool {
        self.far.is_some()
    }

    /// The network to other hosts.
    pub fn network(&self) -> Option<&dyn Channel> {
        self.far.as_deref()
    }

    /// The network to other hosts, for changes.
    pub fn network_mut(&mut self) -> Option<&mut (dyn Channel + 'static)> {
        self.far.as_deref_mut()
    }

    /// The channel of a message that this process waits to send to a peer, or to receive from it.
    #[cold]
    pub(crate) fn way_of_wait(
        &self,
        operation: Operation,
        peer: Peer,
        (context, data): (u32, Extent),
    ) -> Option<MessageWay> {
        match &self.far {
            Some(network) if self.is_far(peer) => match operation {
                Operation::Send => network.way_to(peer, Class::User, data.bytes),
                _ => network.way_from(peer),
            },
            _ => Some(choose(self.near_receiver(peer, context), Class::User, data)),
        }
    }

    /// The lanes to other hosts with bytes that have not left, for observers.
    #[cold]
    pub fn lanes(&mut self, now_ns: u64) -> Vec<LaneRecord> {
        let mut lanes = Vec::new();
        if let Some(network) = &mut self.far {
            network.describe_lanes(now_ns, &mut |lane| lanes.push(lane));
        }
        lanes
    }

    /// Asks the daemon for further numbers of groups, over the network. Nothing happens on one host.
    pub fn ask_for_group_numbers(&mut self) {
        if let Some(network) = &mut self.far {
            network.ask_for_group_numbers();
        }
    }

    /// The requests about regions of a far process, for a caller that waits for answers: looks go to the network for them.
    pub fn relay_requests(&mut self, owner: Peer) -> Option<&mut RelayRequests> {
        self.budget.expect(Interest::Surely);
        self.far.as_mut()?.relay_requests(owner)
    }

    /// Receives no message of other hosts from now on, and tells the senders of those that wait here. Otherwise two
    /// processes that leave would wait for each other to receive.
    pub fn receive_no_more(&mut self) {
        if self.far.is_none() {
            return;
        }
        self.core.leaves = true;
        let first_far = self.first_far;
        self.discard(|_, source| source >= first_far);
        self.advance();
    }

    /// Says goodbye on the network: this process sends nothing more, and may end once
    /// [`Endpoint::has_unfinished_sends`] is false. Returns false if there is nobody to tell, because there is only the
    /// nearest channel, whose membership tells it. Messages that come later get no reply: their senders learn that this
    /// process has left.
    pub fn say_goodbye(&mut self) -> bool {
        if let Some(network) = &mut self.far {
            network.leave();
            self.has_left = true;
        }
        self.has_left
    }

    /// Whether this process has said goodbye on the network.
    pub fn has_left(&self) -> bool {
        self.has_left
    }

    /// Whether a peer is reached over the network.
    #[inline]
    pub(crate) fn is_far(&self, peer: Peer) -> bool {
        peer.0.wrapping_sub(self.first_far) < self.far_peers
    }

    /// Counts a look at the neighbours that has found something or not, and goes to the network if that is due.
    #[inline]
    pub(crate) fn look_at_network(&mut self, has_found: bool) -> bool {
        self.budget.is_due(has_found) && self.poll_network()
    }

    /// Counts a look for a receive that has no request; returns how often to look at the network for it.
    fn direct_looks(&mut self, wanted: &Wanted, has_found: bool) -> u32 {
        let interest = self.interest_in(wanted);
        if interest != Interest::Nothing {
            self.budget.expect(interest);
        }
        match (self.budget.is_due(has_found), interest) {
            (false, _) => 0,
            (true, Interest::Surely) => self.far_looks.next(),
            (true, _) => 1,
        }
    }

    /// The look at the network of a receive that has no request, and that has found nothing at the neighbours.
    #[cold]
    #[inline(never)]
    pub(crate) fn receive_from_network(
        &mut self,
        wanted: &Wanted,
        area: &Area,
        is_whole: bool,
        status: &mut Status,
        has_found: bool,
    ) -> Option<Result<(), Box<Failure>>> {
        self.look_for(wanted, has_found, |network, core| {
            let status = &mut *status;
            let mut direct = Direct { core, wanted, area, is_whole, status, result: None };
            (network.poll(&mut direct), direct.result)
        })
    }

    /// The look at the network of a receive that has neither a request nor memory for the data.
    #[cold]
    #[inline(never)]
    pub(crate) fn receive_own_from_network(
        &mut self,
        wanted: &Wanted,
        has_found: bool,
    ) -> Option<Completion> {
        self.look_for(wanted, has_found, |network, core| {
            let mut direct = DirectOwn { core, wanted, completion: None };
            (network.poll(&mut direct), direct.completion)
        })
    }

    /// Looks at the network for a receive, as often as is due. `look` returns whether anything was found, and the result
    /// of the receive.
    #[inline]
    fn look_for<R>(
        &mut self,
        wanted: &Wanted,
        has_found: bool,
        mut look: impl FnMut(&mut dyn Channel, &mut Core) -> (bool, Option<R>),
    ) -> Option<R> {
        let looks = self.direct_looks(wanted, has_found);
        for number in 0..looks {
            let Some(network) = &mut self.far else { break };
            let (any, result) = look(&mut **network, &mut self.core);
            self.after_network();
            if result.is_some() || any {
                self.far_looks.found(number);
                return result;
            }
        }
        self.far_looks.failed(looks);
        None
    }

    /// Makes progress for a request that depends on a far process.
    #[cold]
    #[inline(never)]
    pub(crate) fn progress_for_far(&mut self, id: RequestId) {
        if self.progress() || self.is_done(id) {
            return;
        }
        let looks = self.far_looks.next();
        for look in 1..looks {
            let mut any = self.poll_network();
            if self.core.is_busy() {
                any |= self.advance();
            }
            if any || self.is_done(id) {
                return self.far_looks.found(look);
            }
        }
        self.far_looks.failed(looks);
    }

    #[cold]
    #[inline(never)]
    fn poll_network(&mut self) -> bool {
        let Some(network) = &mut self.far else { return false };
        let any = network.poll(&mut self.core);
        any | self.after_network()
    }

    /// The end of each look at the network; returns whether a far process is newly gone.
    #[inline]
    fn after_network(&mut self) -> bool {
        let is_change = self.look_at_leavers();
        if self.budget.needs_review() {
            let interest = self.interest();
            self.budget.review(interest);
        }
        is_change
    }

    /// The look at the network before sleep.
    #[cold]
    pub(crate) fn look_at_network_thoroughly(&mut self) -> bool {
        let Some(network) = &mut self.far else { return false };
        network.poll_thoroughly(&mut self.core) | self.look_at_leavers()
    }

    /// Returns what a receive expects from the network.
    #[inline]
    pub(crate) fn interest_in(&self, wanted: &Wanted) -> Interest {
        match wanted.source {
            Some(source) if self.is_far(Peer(source)) => Interest::Surely,
            Some(_) => Interest::Nothing,
            None if self.core.hears_far(wanted.context) => Interest::Perhaps,
            None => Interest::Nothing,
        }
    }

    /// Returns what all operations together expect from the network.
    fn interest(&self) -> Interest {
        let has_unsent = self.far.as_ref().is_some_and(|network| network.has_unsent());
        let stores = !self.core.stores.is_empty();
        if has_unsent || stores || self.core.replies.iter().any(|reply| self.is_far(reply.to)) {
            return Interest::Surely;
        }
        let mut most = Interest::Nothing;
        for id in self.core.requests.pending() {
            let interest = match self.core.requests.get(id) {
                Some(Work::Posted { wanted, .. }) => self.interest_in(wanted),
                Some(Work::Fetching(_)) => Interest::Surely,
                Some(work) if work.depends_on().is_some_and(|peer| self.is_far(peer)) => {
                    Interest::Surely
                }
                _ => Interest::Nothing,
            };
            most = most.max(interest);
            if most == Interest::Surely {
                break;
            }
        }
        most
    }
}

impl Core {
    /// Whether messages of this context may come from other hosts.
    fn hears_far(&self, context: u32) -> bool {
        const BESIDE: u32 = ContextId::COLLECTIVE | ContextId::CREATION | ContextId::AGREEMENT;
        // Members also talk in the contexts beside their own, not all of which are known here.
        let is_known = |context: u32| self.membership.far_contexts.binary_search(&context).is_ok();
        context >= FIRST_MAILBOX || is_known(context) || is_known(context & !BESIDE)
    }
}
