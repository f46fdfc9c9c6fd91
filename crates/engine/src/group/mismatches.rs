//! How members find that they have called different operations, and how all learn of it.
//!
//! Each message says what its sender called. One that says something else than this member called
//! in its place waits for ever, and is found before this member sleeps, after its next operation, or
//! when it leaves. A member that waits long tells its peer which call it is in, for it may be that neither
//! sends the other anything. The member that finds a mismatch tells all.
//!
//! On a board each word tells what its member has called so far (see [`landeck_board`]), so
//! members find out when they meet, before a line there is used again, or when they leave.
//!
//! The tag of a message has room for 13 bits of a call's number, its place in a *span* of 8,192 calls. A member may be
//! whole spans ahead of another one that it never waits for. So before the first message of another span it tells that
//! member the span, by a message of its own: messages of a pair come in order, so the last span that came tells that of the
//! messages behind it.

use std::collections::BTreeMap;

use landeck_board::Board;
use landeck_channel::Peer;
use landeck_collectives::Signature;
use landeck_kernel::{Area, Endpoint, Received, Wanted};
use landeck_transports::SharedMemory;

use crate::group::GroupState;
use crate::group::departure::Departure;
use crate::identity::GroupIdentity;
use crate::mismatch::{Mismatch, decode_remark};

impl GroupState {
    /// The mismatch that the waiting messages of the group reveal.
    #[cold]
    pub(crate) fn look_for_mismatch(
        &mut self,
        endpoint: &mut Endpoint<SharedMemory>,
    ) -> Option<Mismatch> {
        for (peer, said) in self.waiting(endpoint) {
            let found = if said.is_alarm() {
                self.take_alarm(endpoint, peer, said)
            } else if said.is_remark() {
                self.take_remark(endpoint, peer, said);
                None
            } else {
                self.contradicts(said).and_then(|ours| self.against(peer, said, ours))
            };
            if found.is_some() {
                return found;
            }
        }
        let remarks = std::mem::take(&mut self.remarks);
        let found = remarks.iter().find_map(|&(peer, (theirs, formed))| {
            let ours = self.contradicts_formed(theirs, formed)?;
            self.against(peer, theirs, ours)
        });
        self.remarks = remarks;
        self.forget_remarks();
        found
    }

    /// The calls of the waiting messages of the group. A span that comes first from its sender is taken: it holds for all that
    /// comes from there later.
    #[cold]
    fn waiting(&mut self, endpoint: &mut Endpoint<SharedMemory>) -> Vec<(Peer, Signature)> {
        let kept: Vec<(Peer, u32)> = endpoint.kept_in(self.place.collective_context).collect();
        let mut waiting = Vec::with_capacity(kept.len());
        let mut spans: BTreeMap<Peer, u32> = BTreeMap::new();
        for (peer, tag) in kept {
            let Some(span) = Signature::told_span(tag) else {
                let span = *spans.entry(peer).or_insert_with(|| self.span_of(peer));
                waiting.push((peer, Signature::of_tag(tag).in_span(span)));
                continue;
            };
            if spans.insert(peer, span).is_none() {
                self.spans.insert(peer.0, span);
                drop_told(endpoint, &self.place, peer, tag);
            }
        }
        waiting
    }

    /// The span of the messages from a member, but for those behind a span that waits.
    #[inline]
    fn span_of(&self, peer: Peer) -> u32 {
        self.spans.get(&peer.0).copied().unwrap_or(0)
    }

    /// The mismatch that the oldest waiting message of the group reveals. Messages that are asked for go, so a message
    /// that nobody asks for becomes the oldest.
    #[inline]
    pub(crate) fn look_at_oldest(
        &mut self,
        endpoint: &mut Endpoint<SharedMemory>,
    ) -> Option<Mismatch> {
        let (peer, tag) = endpoint.oldest_kept_in(self.place.collective_context)?;
        let said = Signature::of_tag(tag);
        if said.is_alarm() || said.is_remark() || Signature::told_span(tag).is_some() {
            return self.look_for_mismatch(endpoint);
        }
        let said = said.in_span(self.span_of(peer));
        self.contradicts(said).and_then(|ours| self.against(peer, said, ours))
    }

    /// The mismatch that is found when nobody waits any more, if nobody was told of it.
    #[cold]
    pub(crate) fn unnoticed(&mut self, endpoint: &mut Endpoint<SharedMemory>) -> Option<Mismatch> {
        if self.mismatch.is_some() {
            return None;
        }
        let difference = self.board.as_ref().and_then(Board::look_for_difference);
        let found = difference.map(|found| Mismatch::at_board(found, self.place.member));
        let on_this_host = || {
            let local = self.local.as_ref()?;
            let found = local.named(local.board.look_for_difference()?);
            Some(Mismatch::at_board(found, self.place.member))
        };
        found.or_else(on_this_host).or_else(|| self.look_for_mismatch(endpoint))
    }

    /// Messages about later calls are looked at again.
    fn forget_remarks(&mut self) {
        let next = self.next_number;
        self.remarks.retain(|&(_, (theirs, _))| theirs.number().wrapping_sub(next) as i32 >= 0);
    }

    fn take_remark(
        &mut self,
        endpoint: &mut Endpoint<SharedMemory>,
        peer: Peer,
        remark: Signature,
    ) {
        let Some(bytes) = heard(endpoint, &self.place, peer, remark) else { return };
        if let Some(call) = decode_remark(&bytes) {
            self.remarks.retain(|&(other, _)| other != peer);
            self.remarks.push((peer, call));
        }
    }

    /// Takes the message of a member that has found a mismatch, or that an operation lacks a member that has left.
    fn take_alarm(
        &mut self,
        endpoint: &mut Endpoint<SharedMemory>,
        peer: Peer,
        alarm: Signature,
    ) -> Option<Mismatch> {
        let bytes = heard(endpoint, &self.place, peer, alarm)?;
        if let Some(told) = Departure::decode(&bytes, self.place.members.len())
            && !self.departure.is_some_and(|known| known.concerns(told.number))
        {
            self.departure = Some(told);
        }
        Mismatch::decode(&bytes)
    }

    /// Whether somebody tells of a mismatch or a departure.
    #[cold]
    pub(crate) fn has_alarm(&self, endpoint: &Endpoint<SharedMemory>) -> bool {
        let mut kept = endpoint.kept_in(self.place.collective_context);
        kept.any(|(_, tag)| Signature::of_tag(tag).is_alarm())
    }

    /// The mismatch of a member's call and ours.
    fn against(&self, peer: Peer, theirs: Signature, ours: Signature) -> Option<Mismatch> {
        let rank = self.place.members.iter().position(|&member| member == peer)?;
        let (first, second) = (rank as u32, self.place.member);
        Some(Mismatch { first, first_calls: theirs, second, second_calls: ours })
    }

    /// This member has found a mismatch: the group does nothing any more, and all are told. Some
    /// may be through with their call, and wait in the next one for those who have found it.
    #[cold]
    pub(crate) fn note_mismatch(
        &mut self,
        endpoint: &mut Endpoint<SharedMemory>,
        mismatch: Mismatch,
    ) {
        if self.mismatch.is_none() {
            self.mismatch = Some(mismatch);
            self.tell_all(endpoint, &mismatch);
        }
    }

    /// Before sleep: a mismatch that somebody has found, if this member was told of one.
    #[cold]
    pub(crate) fn told_mismatch(
        &mut self,
        endpoint: &mut Endpoint<SharedMemory>,
    ) -> Option<Mismatch> {
        self.mismatch = self.mismatch.or_else(|| self.look_for_mismatch(endpoint));
        self.mismatch
    }

    /// Tells the others of a mismatch, as far as there is room. A member that waits learns of it; one that does not wait
    /// need not.
    #[cold]
    pub(crate) fn tell_all(&self, endpoint: &mut Endpoint<SharedMemory>, mismatch: &Mismatch) {
        let (place, data) = (&self.place, mismatch.encode());
        let tag = mismatch.second_calls.alarm().tag();
        let own = place.members[place.member as usize];
        for &peer in place.members.iter().filter(|&&peer| peer != own) {
            // A member that is gone, or has no room because it does not listen, is not told.
            endpoint.tell(peer, place.collective_context, tag, &data);
        }
    }
}

/// Takes a message that is kept.
fn heard(
    endpoint: &mut Endpoint<SharedMemory>,
    place: &GroupIdentity,
    peer: Peer,
    said: Signature,
) -> Option<Vec<u8>> {
    let wanted =
        Wanted { context: place.collective_context, source: Some(peer.0), tag: Some(said.tag()) };
    let id = endpoint.receive_own(wanted);
    let heard = endpoint.take(id);
    if heard.is_none() {
        endpoint.abandon(id);
    }
    match heard?.data? {
        Received::Private(bytes) => Some(bytes),
        Received::Borrowed { .. } => None,
    }
}

/// Drops the oldest of these messages, which have no data.
fn drop_told(endpoint: &mut Endpoint<SharedMemory>, place: &GroupIdentity, peer: Peer, tag: u32) {
    let wanted = Wanted { context: place.collective_context, source: Some(peer.0), tag: Some(tag) };
    let id = endpoint.receive(wanted, Area::EMPTY);
    if endpoint.take(id).is_none() {
        endpoint.abandon(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mismatch::{encode_remark, formed};
    use landeck_collectives::Operation;
    use landeck_memory::SegmentPlan;

    fn group() -> GroupState {
        let members = [Peer(0), Peer(1)].into();
        GroupState::new(
            5,
            members,
            0,
            &SegmentPlan::new(1, 2),
            &crate::group::places::Places::default(),
            None,
        )
        .unwrap()
    }

    fn broadcast(number: u32) -> Signature {
        Signature::new(number, Operation::Broadcast, 0)
    }

    #[test]
    fn remarks_on_past_calls_are_forgotten() {
        let mut group = group();
        group.next_number = 100;
        let of = |number| (Peer(1), (broadcast(number), 0));
        group.remarks = vec![of(1), of(99), of(100), of(131), of(8_191), of(8_192 + 99)];
        group.forget_remarks();
        assert_eq!(group.remarks, [of(100), of(131), of(8_191), of(8_192 + 99)]);
    }

    #[test]
    fn calls_whole_spans_apart_are_told_apart() {
        let mut group = group();
        for _ in 0..8_192 + 100 {
            group.count(Operation::Barrier, 0, false);
        }
        let [today, long_ago, far_ahead] = [8_192 + 99, 99, 2 * 8_192 + 99].map(broadcast);
        assert_eq!(today.tag(), long_ago.tag());
        let barrier = Signature::new(8_192 + 99, Operation::Barrier, 0);
        let contradicted = [today, long_ago, far_ahead].map(|theirs| group.contradicts(theirs));
        assert_eq!(contradicted, [Some(barrier), None, None]);
        let said = decode_remark(&encode_remark(today, 5));
        assert_eq!(said, Some((today, formed(today, 5))));
        let waits_in = |form| group.contradicts_formed(barrier, formed(barrier, form));
        assert_eq!((waits_in(0), waits_in(7)), (None, Some(barrier)), "another form");
        assert_eq!(decode_remark(&[0; 4]), None);
    }
}
