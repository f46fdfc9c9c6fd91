//! The pacing of many-to-one steps between hosts: the receiver's grants of long messages.
//!
//! A long message to another host is offered, and its parts follow when the receiver accepts it. In a many-to-one step
//! the receiver does not accept all offers at once: [`Grants`] say when, and up to which position. An acceptance with a
//! position holds up to there; further ones follow with later positions.
//!
//! An offer is part of such a step if it came in the context of collective operations, and receives from other senders
//! are posted there, or other messages come by grants. This is decided at the end of each look, when all receives of a
//! step are posted. A message that comes alone is accepted whole, and waits for nothing.

use std::collections::HashMap;
use std::time::Duration;

use landeck_channel::Peer;
use landeck_channel::grants::{GrantLimits, Grants};
use landeck_channel::incast::{Calibration, Incast};
use landeck_memory::Bytes;
use landeck_wire::{ContextId, Header, Kind};

use crate::arrival::Core;
use crate::mailboxes::FIRST_MAILBOX;
use crate::request::RequestId;
use crate::transfer::{Reply, decode_pair, encode_pair};
use crate::work::Work;

/// The most posted receives that are looked at for other senders of a step.
const POSTED_LOOKS: usize = 256;

/// The bytes of an acceptance of the whole message, and of one up to a position.
const PAIR_BYTES: usize = 16;
pub(crate) const ACCEPTANCE_BYTES_MAX: usize = PAIR_BYTES + 8;

/// A message that comes by grants.
#[derive(Clone, Copy)]
struct Offered {
    from: Peer,
    context: u32,
    /// The receive that its parts name.
    named: RequestId,
    send: u64,
    bytes: u64,
    /// The position up to which its sender may send.
    told: u64,
}

/// The steps of one wish.
struct Paced {
    wish: Incast,
    grants: Grants<RequestId>,
    calibration: Calibration,
}

/// The pacing of an endpoint's receives.
pub(crate) struct Pacing {
    /// The wish of groups that have none of their own.
    usual: Incast,
    /// The wishes of groups, by their context for collective operations.
    wishes: HashMap<u32, Incast>,
    paced: Vec<Paced>,
    offered: Vec<Offered>,
    /// The offers at the end of `offered` that are not decided yet.
    undecided: usize,
    /// The bytes that have come since the last look.
    arrived: Vec<(RequestId, u64)>,
}

impl Default for Pacing {
    fn default() -> Self {
        Self {
            usual: Incast::None,
            wishes: HashMap::new(),
            paced: Vec::new(),
            offered: Vec::new(),
            undecided: 0,
            arrived: Vec::new(),
        }
    }
}

impl Pacing {
    /// Sets the wish for groups that have none of their own.
    pub(crate) const fn set_usual(&mut self, wish: Incast) {
        self.usual = wish;
    }

    /// Sets the wish for a context of collective operations.
    pub(crate) fn set(&mut self, context: u32, wish: Option<Incast>) {
        match wish {
            Some(wish) => self.wishes.insert(context, wish),
            None => self.wishes.remove(&context),
        };
    }

    pub(crate) fn wish(&self, context: u32) -> Incast {
        if context >= FIRST_MAILBOX || context & ContextId::COLLECTIVE == 0 {
            return Incast::None;
        }
        self.wishes.get(&context).copied().unwrap_or(self.usual)
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.offered.is_empty()
    }

    fn paced(&mut self, wish: Incast) -> &mut Paced {
        let at = self.paced.iter().position(|one| one.wish == wish);
        let at = at.unwrap_or_else(|| {
            let grants = Grants::new(GrantLimits::senders(1));
            self.paced.push(Paced { wish, grants, calibration: Calibration::default() });
            self.paced.len() - 1
        });
        &mut self.paced[at]
    }
}

impl Paced {
    fn add(&mut self, named: RequestId, bytes: u64, now: Duration) {
        if self.grants.is_empty() {
            self.calibration.begin(now);
            self.grants.set_limits(match self.wish {
                Incast::None => GrantLimits::senders(u32::MAX),
                Incast::Fixed(senders) => GrantLimits::senders(senders),
                Incast::Calibrated => self.calibration.limits(),
                Incast::Credit(bytes) => GrantLimits::credit(bytes),
            });
        }
        self.grants.add(named, bytes, now);
    }

    /// Counts bytes of a message. Returns whether it is whole with them.
    fn received(&mut self, named: RequestId, bytes: u64, now: Duration) -> bool {
        if !self.grants.contains(named) {
            return false;
        }
        self.calibration.received(bytes);
        self.grants.received(named, bytes, now);
        if self.grants.is_empty() {
            self.calibration.end(now);
        }
        !self.grants.contains(named)
    }
}

impl Core {
    /// Accepts an offer of a message from another host now, or leaves that to the pacing of its step.
    pub(crate) fn accept_or_pace(&mut self, from: Peer, context: u32, named: RequestId, send: u64) {
        let is_far = from.0 >= self.segment.plan().slots();
        let bytes = match self.requests.get(named) {
            Some(Work::Collecting(collecting)) => collecting.status.bytes,
            _ => 0,
        };
        let is_paced = is_far && bytes > 0 && self.pacing.wish(context) != Incast::None;
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
    pub(crate) fn grant(&mut self, now: Duration) -> bool {
        self.count_arrived(now);
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

    fn count_arrived(&mut self, now: Duration) {
        let pacing = &mut self.pacing;
        for (named, bytes) in pacing.arrived.drain(..) {
            for paced in &mut pacing.paced {
                if paced.received(named, bytes, now) {
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
        let mut data = [0; ACCEPTANCE_BYTES_MAX];
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

/// Decodes an acceptance: the send, the receive, and the position up to which the send may go.
pub(crate) fn decode_acceptance(data: Bytes<'_>) -> Option<(u64, u64, u64)> {
    let (send, receive) = decode_pair(data.part(0, PAIR_BYTES))?;
    match data.len() {
        PAIR_BYTES => Some((send, receive, u64::MAX)),
        ACCEPTANCE_BYTES_MAX => {
            let mut upto = [0; 8];
            data.part(PAIR_BYTES, 8).copy_to_slice(&mut upto);
            Some((send, receive, u64::from_le_bytes(upto)))
        }
        _ => None,
    }
}
