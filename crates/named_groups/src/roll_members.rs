//! The members of a view as bits of the roll.

use landeck_objects::group_log::Roll;
use landeck_protocols::service::State;
use landeck_wire::SegmentId;

/// The members of a view as bits of the roll.
#[derive(Clone, Copy, Default)]
pub(crate) struct RollMembers {
    view: u64,
    /// None when a member has no bit on the roll or is on another host, or there are no members.
    bits: Option<u32>,
}

impl RollMembers {
    /// The bits of the members of a state on their host; computed once for each view.
    pub(crate) fn of(&mut self, state: &State, host: SegmentId) -> Option<u32> {
        if self.view != state.view() {
            let members = state.members().iter();
            let places = members.map(|member| 1u32.checked_shl(member.id));
            let host = state.host_number(host);
            let has_bits = state.members().last().is_some_and(|last| last.id < Roll::MEMBERS)
                && state.members().iter().all(|member| Some(member.process.host) == host);
            let bits = places.flatten().fold(0, |all, place| all | place);
            *self = Self { view: state.view(), bits: has_bits.then_some(bits) };
        }
        self.bits
    }
}
