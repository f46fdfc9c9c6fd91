//! A view: the members, their ranks, and those that have left since the view before.

use std::fmt;

use landeck_wire::ProcessId;

/// The members at one moment. A view never changes; a change makes the next view.
///
/// Members keep their relative order from view to view, and new ones come last. So every rank of the next view can be
/// derived from this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    id: u64,
    members: Vec<ProcessId>,
    departed: Vec<ProcessId>,
}

impl View {
    /// Creates the first view of a history. A process that is listed twice is taken once.
    pub fn first(members: impl IntoIterator<Item = ProcessId>) -> Self {
        let mut view = Self { id: 1, members: Vec::new(), departed: Vec::new() };
        view.append(members);
        view
    }

    /// The view after this one: without `gone`, and with `joined` after all others.
    #[must_use]
    pub fn next(&self, gone: &[ProcessId], joined: &[ProcessId]) -> Self {
        let (departed, members) = self.members.iter().partition(|member| gone.contains(member));
        let mut view = Self { id: self.id + 1, members, departed };
        view.append(joined.iter().copied());
        view
    }

    /// The number of the view; each next one is larger.
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// The number of members.
    pub const fn size(&self) -> usize {
        self.members.len()
    }

    /// The members, by rank.
    pub fn members(&self) -> &[ProcessId] {
        &self.members
    }

    /// The members of the view before that are not in this one, in their old order.
    pub fn departed(&self) -> &[ProcessId] {
        &self.departed
    }

    /// The member at a rank.
    pub fn member(&self, rank: usize) -> Option<ProcessId> {
        self.members.get(rank).copied()
    }

    /// The rank of a process, if it is a member.
    pub fn rank_of(&self, process: ProcessId) -> Option<usize> {
        self.members.iter().position(|&member| member == process)
    }

    fn append(&mut self, joined: impl IntoIterator<Item = ProcessId>) {
        for process in joined {
            if !self.members.contains(&process) {
                self.members.push(process);
            }
        }
    }
}

impl fmt::Display for View {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "view {}: {} members", self.id, self.size())?;
        if self.departed.is_empty() {
            Ok(())
        } else {
            write!(out, ", {} gone", self.departed.len())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_wire::{Incarnation, SegmentId, Slot};

    fn process(slot: u32) -> ProcessId {
        ProcessId { segment: SegmentId(1), slot: Slot(slot), incarnation: Incarnation(1) }
    }

    #[test]
    fn survivors_keep_their_order_and_newcomers_come_last() {
        let first = View::first([3, 1, 4, 0].map(process));
        let second = first.next(&[process(1), process(9)], &[process(2)]);
        assert_eq!(second.members(), [3, 4, 0, 2].map(process));
        assert_eq!(second.departed(), [process(1)]);
        assert_eq!((first.id(), second.id()), (1, 2));
        assert_eq!(first.member(1), Some(process(1)), "the old view stays as it was");
    }

    #[test]
    fn ranks_and_members_are_inverse() {
        let view = View::first([7, 5, 6].map(process));
        for rank in 0..view.size() {
            assert_eq!(view.rank_of(view.member(rank).unwrap()), Some(rank));
        }
        assert_eq!((view.member(3), view.rank_of(process(0))), (None, None));
    }

    #[test]
    fn nobody_is_a_member_twice() {
        let view = View::first([1, 1].map(process)).next(&[], &[process(1)]);
        assert_eq!((view.size(), view.id()), (1, 2));
    }

    #[test]
    fn departed_are_those_of_the_last_change_only() {
        let view = View::first([1, 2].map(process)).next(&[process(1)], &[]).next(&[], &[]);
        assert_eq!(view.departed(), []);
        assert_eq!(view.to_string(), "view 3: 1 members");
    }
}
