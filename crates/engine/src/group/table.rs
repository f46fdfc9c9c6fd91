//! The groups of a process, by their contexts. Most often the one that was used last is used again.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use landeck_board::{Board, LinesPlace, Room};
use landeck_channel::Peer;
use landeck_collectives::Group;
use landeck_kernel::matching::KeyHasher;
use landeck_memory::Segment;

use crate::context::WORLD_CONTEXT;
use crate::fault::Fault;
use crate::group::GroupState;
use crate::group::host_boards::{self, Boards};
use crate::group::places::Places;
use crate::identity::GroupRef;

/// The groups of a process.
#[derive(Default)]
pub(crate) struct GroupTable {
    /// Where each of them is.
    places: HashMap<u32, usize, BuildHasherDefault<KeyHasher>>,
    groups: Vec<Option<Box<GroupState>>>,
    free: Vec<usize>,
    /// The context that was asked for last, and its place.
    last: Option<(u32, usize)>,
}

impl GroupTable {
    /// The group with this context.
    pub(crate) fn get(&self, context: &u32) -> Option<&GroupState> {
        self.groups[*self.places.get(context)?].as_deref()
    }

    /// The group with this context, to do something there.
    #[inline]
    pub(crate) fn get_mut(&mut self, context: &u32) -> Option<&mut GroupState> {
        let place = match self.last {
            Some((last, place)) if last == *context => place,
            _ => self.look_up(*context)?,
        };
        self.groups.get_mut(place)?.as_deref_mut()
    }

    /// Whether there is one.
    #[inline]
    pub(super) fn has(&mut self, context: u32) -> bool {
        self.last.is_some_and(|(last, _)| last == context) || self.look_up(context).is_some()
    }

    #[inline(never)]
    fn look_up(&mut self, context: u32) -> Option<usize> {
        let place = *self.places.get(&context)?;
        self.last = Some((context, place));
        Some(place)
    }

    /// Keeps a group, in the place of one with the same context.
    pub(crate) fn insert(&mut self, context: u32, group: GroupState) -> &mut GroupState {
        self.remove(&context);
        let place = self.free.pop().unwrap_or(self.groups.len());
        if place == self.groups.len() {
            self.groups.push(None);
        }
        self.places.insert(context, place);
        self.groups[place].insert(Box::new(group))
    }

    /// Takes a group away.
    pub(crate) fn remove(&mut self, context: &u32) -> Option<Box<GroupState>> {
        let place = self.places.remove(context)?;
        self.last = None;
        self.free.push(place);
        self.groups[place].take()
    }

    /// All of them.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut GroupState> {
        self.groups.iter_mut().filter_map(Option::as_deref_mut)
    }

    /// All of them with their contexts.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &GroupState)> {
        let with_group = |(&context, &place): (&u32, &usize)| {
            self.groups[place].as_deref().map(|group| (context, group))
        };
        self.places.iter().filter_map(with_group)
    }
}

/// The group with this context, of which nothing is known before it does something.
///
/// # Errors
/// [`Fault::NotAMember`].
#[inline]
pub(crate) fn group_of<'a>(
    segment: &Segment,
    places: &Places,
    room: &Arc<Room>,
    groups: &'a mut GroupTable,
    of: GroupRef<'_>,
) -> Result<&'a mut GroupState, Fault> {
    if !groups.has(of.context) {
        return first_group(segment, places, room, groups, of);
    }
    groups.get_mut(&of.context).ok_or(Fault::NotAMember)
}

/// A group that does something for the first time. A group is large: no other call has room for one on its
/// stack.
#[cold]
#[inline(never)]
fn first_group<'a>(
    segment: &Segment,
    places: &Places,
    room: &Arc<Room>,
    groups: &'a mut GroupTable,
    of: GroupRef<'_>,
) -> Result<&'a mut GroupState, Fault> {
    let GroupRef { context, members, rank } = of;
    let member = u32::try_from(rank).map_err(|_| Fault::NotAMember)?;
    let shape = GroupState::shape_of(members, segment.plan(), places);
    let shape = shape.map_err(|_| Fault::NotAMember)?;
    let boards = match world_board(segment, context, members, member) {
        None => boards_of_hosts(segment, context, (members, member), &shape)?,
        board => board.into(),
    };
    let (members, plan) = (members.clone(), segment.plan());
    let group = GroupState::shaped(context, members, member, shape, plan, boards);
    let mut group = group.with_links(segment);
    if let Some(board) = group.any_board_mut() {
        board.share_room(room);
    }
    Ok(groups.insert(context, group))
}

/// The boards of the first world's hosts, if it has several. The board of a host is that of its segment's first processes.
///
/// # Errors
/// [`Fault::BrokenBoard`].
fn boards_of_hosts(
    segment: &Segment,
    context: u32,
    (members, member): (&[Peer], u32),
    shape: &Group,
) -> Result<Boards, Fault> {
    let plan = segment.plan();
    let is_first_world = context == WORLD_CONTEXT && members.len() == plan.ranks as usize;
    let Some(hosts) = host_boards::hosts(shape).filter(|_| is_first_world) else {
        return Ok(Boards::Whole(None));
    };
    let shared = |_| plan.world_board();
    let lines = |_, slot| LinesPlace::of_world(plan, slot);
    host_boards::open(segment, (&hosts, member), members, shared, lines).map(Boards::OfHosts)
}

/// The board of the first world, whose places everybody knows.
fn world_board(segment: &Segment, context: u32, members: &[Peer], member: u32) -> Option<Board> {
    let is_here = !segment.plan().world_spans_hosts();
    let has_all = members.len() == segment.plan().processes as usize;
    let is_world = context == WORLD_CONTEXT && is_here && has_all;
    if !is_world || !(0..).zip(members).all(|(slot, &peer)| peer == Peer(slot)) {
        return None;
    }
    let lines: Vec<_> =
        members.iter().map(|peer| LinesPlace::of_world(segment.plan(), peer.0)).collect();
    Board::open(segment, segment.plan().world_board(), &lines, member).ok()
}

#[cfg(test)]
mod tests {
    use landeck_memory::SegmentPlan;

    use super::*;

    #[test]
    fn a_place_that_is_used_again_leads_nobody_to_another_group() {
        let plan = SegmentPlan::new(1, 1);
        let group = |context| {
            GroupState::new(context, [Peer(0)].into(), 0, &plan, &Places::default(), None).unwrap()
        };
        let mut groups = GroupTable::default();
        for context in [5, 6] {
            groups.insert(context, group(context));
        }
        assert_eq!(groups.get_mut(&5).map(|found| found.place.context), Some(5));
        assert_eq!(groups.remove(&5).map(|gone| gone.place.context), Some(5));
        assert!(groups.get_mut(&5).is_none() && groups.get(&5).is_none());
        groups.insert(7, group(7));
        assert_eq!(groups.groups.len(), 2, "its place is used again");
        assert!(groups.get_mut(&5).is_none() && groups.remove(&5).is_none());
        for context in [6, 7, 6] {
            let found = groups.get_mut(&context).map(|found| found.place.context);
            assert_eq!(found, Some(context));
        }
        let mut contexts: Vec<u32> = groups.iter().map(|(context, _)| context).collect();
        contexts.sort_unstable();
        assert_eq!((contexts, groups.values_mut().count()), (vec![6, 7], 2));
    }
}
