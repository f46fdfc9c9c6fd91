//! Members that called different operations: how that is found, and how all learn of it.
//!
//! Each message says what its sender called. One that says something else than this member called
//! in its place waits for ever, and is found before this member sleeps, after its next operation, or
//! when it leaves. Who waits long for somebody says to it what it is in, for it may be that neither
//! sends the other anything. Who finds a mismatch tells all.
//!
//! On a board each word tells what its member has called so far (see [`landeck_board`]), so
//! members find out when they meet, before a line there is used again, or when they leave.
//!
//! The tag of a message has room for 13 bits of a call's number. So a message from who is 8,192 calls
//! ahead is taken for one of today if that member waited for nobody in all of them and now calls
//! something else. That takes as many operations that only send, to a member that takes no part in any
//! of them meanwhile: any operation in which all wait for each other, in between, prevents it. Words
//! about calls have room for the whole number.

use landeck_board::{Board, Difference};
use landeck_channel::Peer;
use landeck_collectives::Signature;
use landeck_kernel::{Endpoint, Received, Wanted};
use landeck_transports::SharedMemory;

use super::circle::Circle;
use super::engine::Engine;
use super::fault::Fault;
use super::running::Place;

/// Who called what, and who called what else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch {
    /// The one.
    pub(crate) first: u32,
    pub(crate) first_calls: Signature,
    /// The other.
    pub(crate) second: u32,
    pub(crate) second_calls: Signature,
}

/// After so many operations over messages all that has arrived is looked at.
const CALLS_PER_LOOK: u32 = 8;

impl Mismatch {
    /// What was found on a board by this member.
    pub(crate) fn at_board(difference: Difference, own: u32) -> Self {
        let Difference { member, number, theirs, ours } = difference;
        Self {
            first: member,
            first_calls: Signature::at_board(number, theirs),
            second: own,
            second_calls: Signature::at_board(number, ours),
        }
    }

    /// As it travels.
    pub(crate) fn encode(&self) -> [u8; 16] {
        let words = [self.first, self.first_calls.tag(), self.second, self.second_calls.tag()];
        let mut bytes = [0; 16];
        for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// From how it travels; none for other bytes.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; 16] = bytes.try_into().ok()?;
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        Some(Self {
            first: word(0),
            first_calls: Signature::of_tag(word(4)),
            second: word(8),
            second_calls: Signature::of_tag(word(12)),
        })
    }
}

/// What a member has said that it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Remark {
    /// The number of its call, which its signature has a part of.
    number: u32,
    signature: Signature,
}

impl Remark {
    fn encode(self) -> [u8; 8] {
        let bits = u64::from(self.number) << 32 | u64::from(self.signature.tag());
        bits.to_le_bytes()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let bits = u64::from_le_bytes(bytes.try_into().ok()?);
        Some(Self { number: (bits >> 32) as u32, signature: Signature::of_tag(bits as u32) })
    }
}

impl Circle {
    /// What the waiting messages of the group say against its calls here.
    #[cold]
    pub(super) fn look_for_mismatch(
        &mut self,
        endpoint: &mut Endpoint<SharedMemory>,
    ) -> Option<Mismatch> {
        let waiting: Vec<(Peer, Signature)> = endpoint
            .kept_in(self.place.twin)
            .map(|(peer, tag)| (peer, Signature::of_tag(tag)))
            .collect();
        for (peer, said) in waiting {
            let found = if said.is_alarm() {
                heard(endpoint, &self.place, peer, said).and_then(|bytes| Mismatch::decode(&bytes))
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
        let found = remarks.iter().find_map(|&(peer, theirs)| {
            let ours = self.call_of(theirs.number)?;
            let differs = ours != theirs.signature;
            differs.then(|| self.against(peer, theirs.signature, ours)).flatten()
        });
        self.remarks = remarks;
        self.forget_remarks();
        found
    }

    /// What the message of the group that has waited longest says against its calls here: all that
    /// members ask for goes, so one that nobody asks for comes to be that.
    #[inline]
    fn look_at_oldest(&mut self, endpoint: &mut Endpoint<SharedMemory>) -> Option<Mismatch> {
        let (peer, tag) = endpoint.oldest_kept_in(self.place.twin)?;
        let said = Signature::of_tag(tag);
        if said.is_alarm() || said.is_remark() {
            return self.look_for_mismatch(endpoint);
        }
        self.contradicts(said).and_then(|ours| self.against(peer, said, ours))
    }

    /// What there is to be found when nobody waits any more, and nobody was told of.
    #[cold]
    pub(super) fn unnoticed(&mut self, endpoint: &mut Endpoint<SharedMemory>) -> Option<Mismatch> {
        if self.mismatch.is_some() {
            return None;
        }
        let difference = self.board.as_ref().and_then(Board::look_for_difference);
        let found = difference.map(|found| Mismatch::at_board(found, self.place.member));
        found.or_else(|| self.look_for_mismatch(endpoint))
    }

    /// What is about later calls is looked at again.
    fn forget_remarks(&mut self) {
        let next = self.next_number;
        self.remarks.retain(|&(_, theirs)| theirs.number.wrapping_sub(next) as i32 >= 0);
    }

    fn take_remark(
        &mut self,
        endpoint: &mut Endpoint<SharedMemory>,
        peer: Peer,
        remark: Signature,
    ) {
        let Some(bytes) = heard(endpoint, &self.place, peer, remark) else { return };
        if let Some(remark) = Remark::decode(&bytes) {
            self.remarks.retain(|&(other, _)| other != peer);
            self.remarks.push((peer, remark));
        }
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

    /// Tells the others what was found, as far as there is room: who waits learns of it, and who
    /// does not need not.
    #[cold]
    pub(super) fn tell_all(&self, endpoint: &mut Endpoint<SharedMemory>, mismatch: &Mismatch) {
        let (place, data) = (&self.place, mismatch.encode());
        let tag = mismatch.second_calls.alarm().tag();
        let own = place.members[place.member as usize];
        for &peer in place.members.iter().filter(|&&peer| peer != own) {
            // Who is gone, or has no room because it does not listen, is not told.
            let _ = endpoint.try_send(peer, place.twin, tag, (&data[..]).into());
        }
    }
}

impl Engine {
    /// After an operation over messages: whether all that has come so far fits what was called here.
    pub(super) fn in_step(&mut self, context: u32) -> Result<(), Fault> {
        let Some(circle) = self.circles.get_mut(&context) else { return Ok(()) };
        if circle.next_number.is_multiple_of(CALLS_PER_LOOK) {
            self.endpoint.progress();
        }
        let Some(mismatch) = circle.look_at_oldest(&mut self.endpoint) else { return Ok(()) };
        circle.note_mismatch(&mut self.endpoint, mismatch);
        Err(Fault::Mismatch(mismatch))
    }

    /// Before this process leaves: a mismatch in one of its groups that nobody here was told of.
    #[cold]
    pub(crate) fn unnoticed_mismatch(&mut self) -> Option<Mismatch> {
        self.endpoint.progress_thoroughly();
        let mut contexts: Vec<u32> = self.circles.iter().map(|(context, _)| context).collect();
        contexts.sort_unstable();
        let (endpoint, circles) = (&mut self.endpoint, &mut self.circles);
        let mut unnoticed = |context| circles.get_mut(&context)?.unnoticed(endpoint);
        contexts.into_iter().find_map(&mut unnoticed).or(self.estate.unnoticed)
    }
}

/// Says to a member what this one is in and waits for it: the call with this number and signature.
#[cold]
pub(super) fn remark(
    endpoint: &mut Endpoint<SharedMemory>,
    place: &Place,
    to: u32,
    (number, signature): (u32, Signature),
) {
    let (tag, data) = (signature.remark().tag(), Remark { number, signature }.encode());
    if let Some(&peer) = place.members.get(to as usize) {
        // Without room there is something waiting for it anyway.
        let _ = endpoint.try_send(peer, place.twin, tag, (&data[..]).into());
    }
}

/// Takes a message that is kept.
fn heard(
    endpoint: &mut Endpoint<SharedMemory>,
    place: &Place,
    peer: Peer,
    said: Signature,
) -> Option<Vec<u8>> {
    let wanted = Wanted { context: place.twin, source: Some(peer.0), tag: Some(said.tag()) };
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

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_collectives::Operation;
    use landeck_memory::SegmentPlan;

    #[test]
    fn a_mismatch_survives_its_bytes() {
        let mismatch = Mismatch {
            first: 3,
            first_calls: Signature::new(9, Operation::Barrier, 0),
            second: 70_000,
            second_calls: Signature::new(9, Operation::Gather, 5),
        };
        assert_eq!(Mismatch::decode(&mismatch.encode()), Some(mismatch));
        assert_eq!(Mismatch::decode(&[0; 15]), None);
    }

    fn circle() -> Circle {
        let members = [Peer(0), Peer(1)].into();
        Circle::new(5, members, 0, &SegmentPlan::new(1, 2), &[], None).unwrap()
    }

    fn remark(number: u32) -> (Peer, Remark) {
        (Peer(1), Remark { number, signature: Signature::new(number, Operation::Broadcast, 0) })
    }

    #[test]
    fn remarks_on_past_calls_are_forgotten() {
        let mut circle = circle();
        circle.next_number = 100;
        let of = |number| remark(number);
        circle.remarks = vec![of(1), of(99), of(100), of(131), of(8_191), of(8_192 + 99)];
        circle.forget_remarks();
        assert_eq!(circle.remarks, [of(100), of(131), of(8_191), of(8_192 + 99)]);
    }

    #[test]
    fn calls_8192_apart_are_told_apart_in_words_about_calls() {
        let mut circle = circle();
        for _ in 0..8_192 + 100 {
            circle.count(Operation::Barrier, 0, false);
        }
        let (_, today) = remark(8_192 + 99);
        let (_, long_ago) = remark(99);
        let (_, far_ahead) = remark(2 * 8_192 + 99);
        assert_eq!(today.signature, long_ago.signature, "the tags are the same");
        let calls = [today, long_ago, far_ahead].map(|theirs| circle.call_of(theirs.number));
        let barrier = Signature::new(99, Operation::Barrier, 0);
        assert_eq!(calls, [Some(barrier), None, None]);
        assert_eq!(Remark::decode(&today.encode()), Some(today));
        assert_eq!(Remark::decode(&[0; 4]), None);
        // A message has the short number alone: the limit that stands at the head of this file.
        assert_eq!(circle.contradicts(long_ago.signature), Some(barrier));
    }
}
