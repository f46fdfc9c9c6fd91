//! A member that has left in good order, and the first operation of its group that lacks it.
//!
//! The deeds of a member that has left count, so only a member that waits for something of it finds out that an
//! operation lacks it: by a message that never comes, or at the board of its host. Others may wait for that one alone.
//! So it tells all members. When the membership says so too, they come to nothing from this operation on, as after a
//! death. On a board of all members the words there tell it.

use landeck_channel::Peer;
use landeck_kernel::{Endpoint, Failure};
use landeck_transports::SharedMemory;

use crate::fault::Fault;
use crate::identity::GroupIdentity;

/// A member that has left, and the first operation that lacks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Departure {
    /// The member.
    pub(crate) member: u32,
    /// The number of the operation.
    pub(crate) number: u32,
}

impl Departure {
    /// The departure that makes an operation of a group fail; `None` for any other fault.
    pub(crate) fn behind(fault: &Fault, place: &GroupIdentity, number: u32) -> Option<Self> {
        let Fault::Failure(Failure::PeerGone { peer, died: false }) = fault else { return None };
        let member = place.members.iter().position(|member| member == peer)? as u32;
        Some(Self { member, number })
    }

    /// Whether this operation lacks the member.
    #[inline]
    pub(crate) fn concerns(self, number: u32) -> bool {
        number.wrapping_sub(self.number) as i32 >= 0
    }

    /// Whether the membership says that the member has left, or died.
    pub(crate) fn is_recorded(
        self,
        place: &GroupIdentity,
        endpoint: &Endpoint<SharedMemory>,
    ) -> bool {
        let peer = place.members.get(self.member as usize);
        peer.is_some_and(|&peer| endpoint.recorded_loss(place.context, peer).is_some())
    }

    /// The failure of the operations that lack the member.
    pub(crate) fn failure(self, place: &GroupIdentity) -> Failure {
        let peer = place.members.get(self.member as usize).copied();
        Failure::PeerGone { peer: peer.unwrap_or(Peer(u32::MAX)), died: false }
    }

    /// As it travels.
    pub(crate) fn encode(self) -> u64 {
        u64::from(self.number) << 32 | u64::from(self.member)
    }

    /// From how it travels in a group of this size; `None` for other bytes.
    pub(crate) fn decode(bytes: &[u8], size: usize) -> Option<Self> {
        let bits = u64::from_le_bytes(bytes.try_into().ok()?);
        let departure = Self { member: bits as u32, number: (bits >> 32) as u32 };
        ((departure.member as usize) < size).then_some(departure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_departure_survives_its_bytes() {
        let departure = Departure { member: 3, number: u32::MAX };
        let bytes = departure.encode().to_le_bytes();
        assert_eq!(Departure::decode(&bytes, 4), Some(departure));
        assert_eq!(Departure::decode(&bytes, 3), None, "there is no such member");
        assert_eq!(Departure::decode(&bytes[..7], 4), None);
    }

    #[test]
    fn it_concerns_the_operations_from_its_number_on() {
        let departure = Departure { member: 0, number: u32::MAX };
        let concerned = [u32::MAX - 1, u32::MAX, 0, 5].map(|number| departure.concerns(number));
        assert_eq!(concerned, [false, true, true, true]);
    }
}
