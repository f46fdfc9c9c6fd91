//! The boards of a group: one for all members on one host, or one on each of several hosts.

use std::sync::Arc;

use landeck_board::{Board, Difference, LinesPlace, Offer, WINDOW};
use landeck_channel::Peer;
use landeck_collectives::Group;
use landeck_memory::Segment;

use crate::fault::Fault;

/// The boards of a group, as far as this process uses them.
#[allow(clippy::large_enum_variant)] // It is taken apart as soon as it is made.
pub(crate) enum Boards {
    /// All members are on this host and have a board, or the group has none.
    Whole(Option<Board>),
    /// The members are on several hosts, and every host with two members or more has a board for these. None on a host
    /// with one.
    OfHosts(Option<Box<LocalBoard>>),
}

impl From<Option<Board>> for Boards {
    fn from(board: Option<Board>) -> Self {
        Self::Whole(board)
    }
}

/// The board of the members on this host, where the group has others elsewhere. Only the steps of plans go there:
/// agreement, revocation and the announcement of calls are messages.
pub(crate) struct LocalBoard {
    pub(crate) board: Board,
    /// The ranks of its members, by their places on the board.
    pub(crate) ranks: Arc<[u32]>,
    /// The group's number of the call that each of the last operations at the board belongs to.
    calls: CallsAtBoard,
}

/// The last calls of a group that came to the board: for each its first operation at the board and its number in the group.
/// These differ, since some calls go to the board several times.
#[derive(Clone, Copy, Default)]
pub(crate) struct CallsAtBoard {
    last: [(u32, u32); CALLS_KEPT],
    /// The place of the next one.
    next: usize,
}

/// More than a board has lines that can differ.
const CALLS_KEPT: usize = 32;
const _: () = assert!(CALLS_KEPT > WINDOW);

impl CallsAtBoard {
    /// Notes a call by the number of its first operation at the board.
    fn note(&mut self, first: u32, call: u32) {
        self.last[self.next] = (first, call);
        self.next = (self.next + 1) % CALLS_KEPT;
    }

    /// The call to which an operation at the board belongs.
    fn call_of(&self, number: u32) -> u32 {
        let nearest = self.last.iter().min_by_key(|(first, _)| number.wrapping_sub(*first));
        nearest.map_or(0, |&(_, call)| call)
    }

    /// A difference at the board as one of the group: with the rank of its member, and numbered as calls at a board of the
    /// whole group are, from one on.
    pub(crate) fn named(&self, ranks: &[u32], found: Difference) -> Difference {
        let number = self.call_of(found.number).wrapping_add(1);
        Difference { member: rank_of(ranks, found.member), number, ..found }
    }
}

impl LocalBoard {
    /// A difference that was found on the board, as one of the group.
    pub(crate) fn named(&self, found: Difference) -> Difference {
        self.calls.named(&self.ranks, found)
    }

    /// Begins so many operations at the board for the group's call of this number. Returns their numbers and words.
    pub(crate) fn begin(&mut self, number: u32, call: u32, visits: u32) -> Vec<(u32, u32)> {
        let mut begun = Vec::with_capacity(visits as usize);
        for _ in 0..visits {
            begun.push(self.board.begin(call));
        }
        if let Some(&(first, _)) = begun.first() {
            self.calls.note(first, number);
        }
        begun
    }

    /// How to name those at the board, for errors.
    pub(crate) fn names(&self) -> (Arc<[u32]>, CallsAtBoard) {
        (self.ranks.clone(), self.calls)
    }
}

/// The rank of the member at this place on the board.
pub(crate) fn rank_of(ranks: &[u32], place: u32) -> u32 {
    ranks.get(place as usize).copied().unwrap_or(place)
}

/// The members on each host, if all members of the group know them alike.
pub(crate) fn hosts(shape: &Group) -> Option<Vec<Vec<u32>>> {
    let is_known = shape.levels().first().is_some_and(|hosts| hosts.len() == shape.size() as usize);
    is_known.then(|| shape.hosts()).filter(|hosts| hosts.len() > 1)
}

/// Whether every host with two members or more can have a board by these offers. All members find the same.
pub(crate) fn have_boards(hosts: &[Vec<u32>], offers: &[Offer]) -> bool {
    let offer = |member: u32| offers.get(member as usize).copied().unwrap_or_default();
    let has_board = |host: &Vec<u32>| {
        host.len() < 2
            || (offer(host[0]).board != 0 && host.iter().all(|&member| offer(member).lines != 0))
    };
    hosts.iter().all(has_board)
}

/// Opens the board of the members on this host at this place. Their lines stand where `lines` says it.
///
/// # Errors
/// [`Fault::BrokenBoard`]: it cannot be there, or the members on this host are others than all believe.
pub(crate) fn open(
    segment: &Segment,
    (hosts, member): (&[Vec<u32>], u32),
    members: &[Peer],
    shared: impl FnOnce(u32) -> u64,
    lines: impl Fn(u32, u32) -> LinesPlace,
) -> Result<Option<Box<LocalBoard>>, Fault> {
    let slot = |rank: &u32| members.get(*rank as usize).map_or(u32::MAX, |peer| peer.0);
    let is_near = |rank: &u32| slot(rank) < segment.plan().slots();
    let broken = |member| Fault::BrokenBoard { member };
    let Some(own) = hosts.iter().find(|host| host.contains(&member)) else {
        return Err(broken(member));
    };
    let near = (0..members.len() as u32).filter(is_near);
    if !near.eq(own.iter().copied()) {
        return Err(broken(member));
    }
    if own.len() < 2 {
        return Ok(None);
    }
    let places: Vec<LinesPlace> = own.iter().map(|rank| lines(*rank, slot(rank))).collect();
    let place = own.iter().position(|&rank| rank == member).unwrap_or(0) as u32;
    let board = Board::open(segment, shared(own[0]), &places, place);
    let board = board.map_err(|error| broken(rank_of(own, error.member)))?;
    let calls = CallsAtBoard::default();
    Ok(Some(Box::new(LocalBoard { board, ranks: own.clone().into(), calls })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_at_the_board_belongs_to_the_call_that_began_last_before_it() {
        let mut calls = CallsAtBoard::default();
        let first = u32::MAX - 40; // the numbers begin anew in between
        for call in 0..50 {
            calls.note(first.wrapping_add(3 * call), call);
        }
        for number in 3 * 18..3 * 50 {
            assert_eq!(calls.call_of(first.wrapping_add(number)), number / 3);
        }
        assert_eq!(calls.call_of(first.wrapping_add(1_000)), 49, "one that goes there often");
    }
}
