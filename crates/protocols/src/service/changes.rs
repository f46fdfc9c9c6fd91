//! The last changes of a group's members, which members are told as views, in their place among the messages.

use std::collections::VecDeque;

use super::entry::{Party, Seat};

/// The number of changes that a group remembers. A member that lags behind more of them is not told the first ones.
pub const CHANGES_MAX: usize = 256;

/// The way in which a member goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// It left, or its process ended in good order.
    Left = 1,
    /// Its process died.
    Died = 2,
    /// It was evicted.
    Evicted = 3,
    /// Its host was lost.
    HostLost = 4,
}

/// A member that has joined or gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberChange {
    /// The number of the view that it has made. A lost host makes one view, with a change for each of its members.
    pub view: u64,
    /// The number of broadcasts that were accepted before.
    pub after: u64,
    /// How the member has gone; none if it has joined.
    pub gone: Option<Gone>,
    /// The member.
    pub member: ChangedMember,
}

/// A member at the time of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangedMember {
    /// Its number.
    pub id: u32,
    /// Its process.
    pub process: Party,
    /// The context of its mailbox.
    pub context: u32,
    /// The address of the mailbox's mark.
    pub place: u64,
    /// The place in the log at which it joined.
    pub joined_at: u64,
}

impl ChangedMember {
    /// Its identity in entries.
    pub const fn seat(&self) -> Seat {
        Seat::new(self.id, self.joined_at)
    }
}

/// A view of a group: the members that messages behind it go to, up to the next view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Its number.
    pub number: u64,
    /// The number of broadcasts that were accepted before it.
    pub after: u64,
    /// The members, in the order of their numbers.
    pub members: Vec<ChangedMember>,
    /// The changes that have made it.
    pub changes: Vec<MemberChange>,
    /// Changes before it are not remembered.
    pub has_missed: bool,
}

/// The last changes, in the order of their views.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    kept: VecDeque<MemberChange>,
    /// The number of the last view of which a change is forgotten; 0 if none is.
    forgotten: u64,
}

impl Changes {
    pub(super) const fn new(kept: VecDeque<MemberChange>, forgotten: u64) -> Self {
        Self { kept, forgotten }
    }

    pub(super) fn add(&mut self, change: MemberChange) {
        if self.kept.len() == CHANGES_MAX
            && let Some(first) = self.kept.pop_front()
        {
            self.forgotten = first.view;
        }
        self.kept.push_back(change);
    }

    pub(super) fn view_of_joining(&self, seat: Seat) -> Option<u64> {
        let mut joined = self.kept.iter().filter(|change| change.gone.is_none());
        joined.find(|change| change.member.seat() == seat).map(|change| change.view)
    }

    pub(super) const fn kept(&self) -> &VecDeque<MemberChange> {
        &self.kept
    }

    pub(super) const fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// The first view after a number, where the group has these members now, and made its last view with that number.
    pub(super) fn view_after(
        &self,
        number: u64,
        (now, mut members): (u64, Vec<ChangedMember>),
    ) -> Option<View> {
        if number >= now {
            return None;
        }
        let has_missed = number < self.forgotten;
        let next = if has_missed { self.kept.front()?.view } else { number + 1 };
        for change in self.kept.iter().rev().take_while(|change| change.view > next) {
            match change.gone {
                None => members.retain(|member| *member != change.member),
                Some(_) => members.push(change.member),
            }
        }
        members.sort_by_key(|member| member.id);
        let changes: Vec<_> = self.kept.iter().filter(|it| it.view == next).copied().collect();
        let after = changes.first()?.after;
        Some(View { number: next, after, members, changes, has_missed })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{GroupEntry, Joining, Rules, State};
    use super::*;
    use landeck_wire::SegmentId;

    const fn party(host: u16, slot: u16) -> Party {
        Party { host, slot, incarnation: 1 }
    }

    fn group() -> State {
        let mut state = State::new(Rules { minimum: 0, is_persistent: true }, SegmentId(1));
        state.apply(GroupEntry::Host(SegmentId(2)));
        state
    }

    fn join(state: &mut State, process: Party) {
        state.apply(GroupEntry::Join(Joining { process, context: 5, place: 64 }));
    }

    fn send(state: &mut State) {
        state.apply(GroupEntry::Broadcast { was_held: false, by: None });
    }

    fn ids(view: &View) -> Vec<u32> {
        view.members.iter().map(|member| member.id).collect()
    }

    #[test]
    fn each_view_has_its_members_its_place_and_its_reasons() {
        let mut state = group();
        (0..3).for_each(|slot| join(&mut state, party(0, slot)));
        send(&mut state);
        let second = state.members()[1].seat();
        state.apply(GroupEntry::Died(second));
        send(&mut state);
        join(&mut state, party(1, 4));
        let views: Vec<_> = (0..5).map(|number| state.view_after(number).unwrap()).collect();
        assert_eq!(
            views.iter().map(ids).collect::<Vec<_>>(),
            [vec![0], vec![0, 1], vec![0, 1, 2], vec![0, 2], vec![0, 1, 2]]
        );
        assert_eq!(views.iter().map(|view| view.after).collect::<Vec<_>>(), [0, 0, 0, 1, 2]);
        assert_eq!(views[3].changes[0].gone, Some(Gone::Died));
        assert_eq!(views[4].members[1].process, party(1, 4), "the number has another member");
        assert!(views.iter().all(|view| !view.has_missed));
        assert_eq!(state.view_after(5), None);
    }

    #[test]
    fn a_lost_host_is_one_view() {
        let mut state = group();
        for process in [party(0, 0), party(1, 0), party(1, 1), party(0, 1)] {
            join(&mut state, process);
        }
        let before = state.view();
        state.apply(GroupEntry::Hold(party(1, 1)));
        state.apply(GroupEntry::HostGone(1));
        assert_eq!(state.view(), before + 1);
        let view = state.view_after(before).unwrap();
        assert_eq!(ids(&view), [0, 3]);
        let gone: Vec<_> = view.changes.iter().map(|it| (it.member.id, it.gone)).collect();
        assert_eq!(gone, [(1, Some(Gone::HostLost)), (2, Some(Gone::HostLost))]);
        assert!(state.held().is_empty(), "its processes wait no more");
        let again = state.clone();
        state.apply(GroupEntry::HostGone(1));
        assert_eq!((state.view(), state.members()), (again.view(), again.members()));
    }

    #[test]
    fn a_member_that_lags_far_behind_is_told_so() {
        let mut state = group();
        join(&mut state, party(0, 0));
        for _ in 0..CHANGES_MAX {
            join(&mut state, party(0, 1));
            let second = state.members()[1].seat();
            state.apply(GroupEntry::Leave(second));
        }
        let first = state.view_after(1).unwrap();
        assert!(first.has_missed && first.number > 2);
        assert!(first.members.len() == 1 || ids(&first) == [0, 1]);
        let next = state.view_after(first.number).unwrap();
        assert!(!next.has_missed && next.number == first.number + 1);
        assert_ne!(next.members.len(), first.members.len());
    }
}
