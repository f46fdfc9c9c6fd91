//! Offers of long messages that are accepted by grants ([`crate::pacing`]).

use std::time::Duration;

use landeck_channel::incast::Incast;
use landeck_channel::{Channel, Peer};
use landeck_wire::{Header, Kind};

use crate::arrival::Core;
use crate::pacing::Offered;
use crate::request::RequestId;
use crate::transfer::{PAIR_BYTES, Reply, TRIPLE_BYTES, encode_pair};
use crate::work::Work;

/// The most posted receives that are looked at for other senders of a step.
const POSTED_LOOKS: usize = 256;

impl Core {
    /// Accepts an offer of a message from another host now, or leaves that to the pacing of its step.
    pub(crate) fn accept_or_pace(&mut self, from: Peer, context: u32, named: RequestId, send: u64) {
        let is_far = from.0 >= self.segment.plan().slots();
        let bytes = match self.requests.get(named) {
            Some(Work::Collecting(collecting)) => collecting.status.bytes,
            _ => 0,
        };
        let is_at_once = matches!(self.pacing.wish(context), Incast::None | Incast::Tokens(_));
        let is_paced = is_far && bytes > 0 && !is_at_once;
        let offered = Offered { from, context, named, send, bytes, told: 0 };
        if is_paced {
            self.pacing.offered.push(offered);
            self.pacing.undecided += 1;
        } else {
            self.accept_whole(&offered);
        }
    }

    fn accept_whole(&mut self, offered: &Offered) {
        let data = encode_pair(offered.send, offered.named.to_bits());
        let header = Header::user(Kind::Accept, data.len() as u32, 0, 0);
        self.replies.push(Reply::new(offered.from, header, &data));
    }

    /// Counts what has come, and makes the grants that can be made now. Returns whether there were any.
    #[cold]
    pub(crate) fn grant(&mut self, network: &mut dyn Channel) -> bool {
        let now = network.clock();
        self.count_arrived(network, now);
        let any = self.decide(now) | self.let_ended_come();
        let mut granted = false;
        for at in 0..self.pacing.paced.len() {
            while let Some((named, upto)) = self.pacing.paced[at].grants.next(now) {
                granted = true;
                self.tell_grant(named, upto);
            }
        }
        any | granted
    }

    fn count_arrived(&mut self, network: &mut dyn Channel, now: Duration) {
        let pacing = &mut self.pacing;
        for (named, bytes) in pacing.arrived.drain(..) {
            let from = pacing.offered.iter().find(|one| one.named == named).map(|one| one.from);
            for paced in &mut pacing.paced {
                let disorder = match from {
                    Some(from) if paced.heeds_disorder(named) => network.take_disorder(from),
                    _ => 0,
                };
                if paced.received(named, (bytes, disorder), now) {
                    pacing.offered.retain(|one| one.named != named);
                }
            }
        }
    }

    /// Decides for new offers whether they come alone or in a step of several senders.
    fn decide(&mut self, now: Duration) -> bool {
        let pacing = &mut self.pacing;
        let first = pacing.offered.len() - std::mem::take(&mut pacing.undecided);
        let new: Vec<Offered> = pacing.offered[first..].to_vec();
        for one in &new {
            let wish = self.pacing.wish(one.context);
            let beside =
                new.iter().any(|other| other.context == one.context && other.from != one.from);
            let is_step = beside
                || !self.pacing.paced(wish).grants.is_empty()
                || self.expects_others(one.context, one.from);
            if is_step {
                self.pacing.paced(wish).add(one.named, one.bytes, now);
            } else {
                self.pacing.offered.retain(|offered| offered.named != one.named);
                self.accept_whole(one);
            }
        }
        !new.is_empty()
    }

    /// Whether receives from other processes on other hosts are posted in a context.
    fn expects_others(&self, context: u32, from: Peer) -> bool {
        let first_far = self.segment.plan().slots();
        let is_other = |source| source != from.0 && source >= first_far;
        let mut posted = self.matching.posted().take(POSTED_LOOKS);
        posted.any(|one| one.wanted.context == context && one.wanted.source.is_none_or(is_other))
    }

    /// Lets the messages come whose receives have ended: their senders wait for the rest of the grant, and what they
    /// send is dropped.
    fn let_ended_come(&mut self) -> bool {
        let is_over =
            |work: Option<&Work>| !matches!(work, Some(Work::Collecting(_) | Work::Passed { .. }));
        let requests = &self.requests;
        let (ended, open): (Vec<_>, Vec<_>) =
            self.pacing.offered.iter().partition(|one| is_over(requests.get(one.named)));
        self.pacing.offered = open;
        for one in &ended {
            for paced in &mut self.pacing.paced {
                paced.grants.remove(one.named);
            }
            if one.told < one.bytes && self.membership.is_there(one.from) {
                self.accept_whole(one);
            }
        }
        !ended.is_empty()
    }

    fn tell_grant(&mut self, named: RequestId, upto: u64) {
        let mut offered = self.pacing.offered.iter_mut();
        let Some(one) = offered.find(|one| one.named == named) else { return };
        one.told = upto;
        let one = *one;
        if upto == one.bytes {
            return self.accept_whole(&one);
        }
        let mut data = [0; TRIPLE_BYTES];
        data[..PAIR_BYTES].copy_from_slice(&encode_pair(one.send, named.to_bits()));
        data[PAIR_BYTES..].copy_from_slice(&upto.to_le_bytes());
        let header = Header::user(Kind::Accept, data.len() as u32, 0, 0);
        self.replies.push(Reply::new(one.from, header, &data));
    }

    /// Notes bytes of a part for the grants.
    #[inline]
    pub(crate) fn note_arrived(&mut self, named: RequestId, bytes: u64) {
        let pacing = &mut self.pacing;
        if pacing.is_empty() {
            return;
        }
        match pacing.arrived.last_mut() {
            Some((last, so_far)) if *last == named => *so_far += bytes,
            _ => pacing.arrived.push((named, bytes)),
        }
    }
}
