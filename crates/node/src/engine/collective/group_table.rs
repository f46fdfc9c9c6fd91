//! The groups of a process, by their contexts. Most often the one that was used last is used again.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use landeck_board::{Board, LinesPlace, Room};
use landeck_channel::Peer;
use landeck_collectives::Place;
use landeck_kernel::matching::KeyHasher;
use landeck_memory::Segment;

use super::fault::Fault;
use super::group_state::GroupState;
use crate::engine::context::WORLD_CONTEXT;

/// The groups of a process.
#[derive(Default)]
pub(super) struct GroupTable {
    /// Where each of them is.
    places: HashMap<u32, usize, BuildHasherDefault<KeyHasher>>,
    circles: Vec<Option<Box<GroupState>>>,
    free: Vec<usize>,
    /// The context that was asked for last, and its place.
    last: Option<(u32, usize)>,
}

impl GroupTable {
    /// The group with this context.
    pub(super) fn get(&self, context: &u32) -> Option<&GroupState> {
        self.circles[*self.places.get(context)?].as_deref()
    }

    /// The same, to do something there.
    #[inline]
    pub(super) fn get_mut(&mut self, context: &u32) -> Option<&mut GroupState> {
        let place = match self.last {
            Some((last, place)) if last == *context => place,
            _ => self.look_up(*context)?,
        };
        self.circles.get_mut(place)?.as_deref_mut()
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
    pub(super) fn insert(&mut self, context: u32, circle: GroupState) -> &mut GroupState {
        self.remove(&context);
        let place = self.free.pop().unwrap_or(self.circles.len());
        if place == self.circles.len() {
            self.circles.push(None);
        }
        self.places.insert(context, place);
        self.circles[place].insert(Box::new(circle))
    }

    /// Takes a group away.
    pub(super) fn remove(&mut self, context: &u32) -> Option<Box<GroupState>> {
        let place = self.places.remove(context)?;
        self.last = None;
        self.free.push(place);
        self.circles[place].take()
    }

    /// All of them.
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut GroupState> {
        self.circles.iter_mut().filter_map(Option::as_deref_mut)
    }

    /// All of them with their contexts.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &GroupState)> {
        let with_circle = |(&context, &place): (&u32, &usize)| {
            self.circles[place].as_deref().map(|circle| (context, circle))
        };
        self.places.iter().filter_map(with_circle)
    }
}

/// The group with this context, of which nothing is known before it does something.
///
/// # Errors
/// [`Fault::NotAMember`].
#[inline]
pub(super) fn circle_of<'a>(
    segment: &Segment,
    places: &[Place],
    room: &Arc<Room>,
    circles: &'a mut GroupTable,
    (context, members, member): (u32, &Arc<[Peer]>, usize),
) -> Result<&'a mut GroupState, Fault> {
    if !circles.has(context) {
        return first_circle(segment, places, room, circles, (context, members, member));
    }
    circles.get_mut(&context).ok_or(Fault::NotAMember)
}

/// A group that does something for the first time. A circle is large: no other call has room for one on its
/// stack.
#[cold]
#[inline(never)]
fn first_circle<'a>(
    segment: &Segment,
    places: &[Place],
    room: &Arc<Room>,
    circles: &'a mut GroupTable,
    (context, members, member): (u32, &Arc<[Peer]>, usize),
) -> Result<&'a mut GroupState, Fault> {
    let member = u32::try_from(member).map_err(|_| Fault::NotAMember)?;
    let mut board = world_board(segment, context, members, member);
    if let Some(board) = &mut board {
        board.share_room(room);
    }
    let circle = GroupState::new(context, members.clone(), member, segment.plan(), places, board);
    Ok(circles.insert(context, circle.map_err(|_| Fault::NotAMember)?))
}

/// The board of the first world, whose places everybody knows.
fn world_board(segment: &Segment, context: u32, members: &[Peer], member: u32) -> Option<Board> {
    let is_world = context == WORLD_CONTEXT && members.len() == segment.plan().processes as usize;
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
        let circle =
            |context| GroupState::new(context, [Peer(0)].into(), 0, &plan, &[], None).unwrap();
        let mut circles = GroupTable::default();
        for context in [5, 6] {
            circles.insert(context, circle(context));
        }
        assert_eq!(circles.get_mut(&5).map(|found| found.place.context), Some(5));
        assert_eq!(circles.remove(&5).map(|gone| gone.place.context), Some(5));
        assert!(circles.get_mut(&5).is_none() && circles.get(&5).is_none());
        circles.insert(7, circle(7));
        assert_eq!(circles.circles.len(), 2, "its place is used again");
        assert!(circles.get_mut(&5).is_none() && circles.remove(&5).is_none());
        for context in [6, 7, 6] {
            let found = circles.get_mut(&context).map(|found| found.place.context);
            assert_eq!(found, Some(context));
        }
        let mut contexts: Vec<u32> = circles.iter().map(|(context, _)| context).collect();
        contexts.sort_unstable();
        assert_eq!((contexts, circles.values_mut().count()), (vec![6, 7], 2));
    }
}
