//! All members of a view, as they stand on the roll.

use landeck_groups::service::State;
use landeck_objects::group_log::Roll;

/// All members of a view as they stand on the roll.
#[derive(Clone, Copy, Default)]
pub(super) struct Everybody {
    view: u64,
    /// None when the roll has no place for some of them, or there are none.
    who: Option<u32>,
}

impl Everybody {
    /// The members of a state.
    pub(super) fn of(&mut self, state: &State) -> Option<u32> {
        if self.view != state.view() {
            let members = state.members().iter();
            let places = members.map(|member| 1u32.checked_shl(member.id));
            let is_short = state.members().last().is_some_and(|last| last.id < Roll::MEMBERS);
            let who = places.flatten().fold(0, |all, place| all | place);
            *self = Self { view: state.view(), who: is_short.then_some(who) };
        }
        self.who
    }
}
