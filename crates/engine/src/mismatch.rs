//! Members that called different operations, and the remarks of members that wait about their own calls.

use landeck_board::Difference;
use landeck_collectives::Signature;
use landeck_collectives::signature::CALL_BITS;
use landeck_kernel::Endpoint;
use landeck_transports::SharedMemory;

use crate::identity::GroupIdentity;

/// Two members of a group that called different operations in the same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The rank of one of them.
    pub first: u32,
    /// The call of that member.
    pub first_calls: Signature,
    /// The rank of the other one.
    pub second: u32,
    /// The call of the other one.
    pub second_calls: Signature,
}

impl Mismatch {
    /// The mismatch that this member found on a board.
    pub(crate) fn at_board(difference: Difference, own: u32) -> Self {
        let Difference { member, number, theirs, ours } = difference;
        Self {
            first: member,
            first_calls: Signature::at_board(number, theirs),
            second: own,
            second_calls: Signature::at_board(number, ours),
        }
    }

    /// As it travels. Both calls have one number.
    pub(crate) fn encode(&self) -> [u8; 20] {
        let number = self.second_calls.number();
        let calls = [self.first_calls.call(), self.second_calls.call()];
        let words = [self.first, calls[0], self.second, calls[1], number];
        let mut bytes = [0; 20];
        for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// From how it travels; none for other bytes.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; 20] = bytes.try_into().ok()?;
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let call = |at| Signature::of_call(word(16), word(at));
        Some(Self { first: word(0), first_calls: call(4), second: word(8), second_calls: call(12) })
    }
}

/// A call without its number, with as much of its form as there is room for beside it.
pub(super) fn formed(call: Signature, form: u32) -> u32 {
    call.call() | form << CALL_BITS
}

/// The data of a message in which a member says which call it is in, and in which form.
pub(super) fn encode_remark(call: Signature, form: u32) -> [u8; 8] {
    (u64::from(call.number()) << 32 | u64::from(formed(call, form))).to_le_bytes()
}

/// The call in such data, and the call with its form; none in other bytes.
pub(super) fn decode_remark(bytes: &[u8]) -> Option<(Signature, u32)> {
    let bits = u64::from_le_bytes(bytes.try_into().ok()?);
    Some((Signature::of_call((bits >> 32) as u32, bits as u32), bits as u32))
}

/// Says to a member which call this one is in and waits for it.
#[cold]
pub(super) fn remark(
    endpoint: &mut Endpoint<SharedMemory>,
    place: &GroupIdentity,
    to: u32,
    (call, form): (Signature, u32),
) {
    let (tag, data) = (call.remark().tag(), encode_remark(call, form));
    if let Some(&peer) = place.members.get(to as usize) {
        // Without room there is something waiting for it anyway.
        endpoint.tell(peer, place.collective_context, tag, &data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_collectives::Operation;

    #[test]
    fn a_mismatch_survives_its_bytes() {
        let mismatch = Mismatch {
            first: 3,
            first_calls: Signature::new(8_192 + 9, Operation::Barrier, 0),
            second: 70_000,
            second_calls: Signature::new(8_192 + 9, Operation::Gather, 5),
        };
        assert_eq!(Mismatch::decode(&mismatch.encode()), Some(mismatch));
        assert_eq!(Mismatch::decode(&[0; 16]), None);
    }
}
