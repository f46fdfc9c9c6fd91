//! Collective operations of a group whose members come and go.
//!
//! Operations are numbered, and all members go through the same numbers. Whoever comes to a number
//! first has a cut accepted, which says who takes part from then on; later joins and leaves count for
//! later numbers. Where that differs from before, those who take part make a world.

use std::sync::Arc;

use landeck_groups::service::{Cut, EntryWord, Seat, State};
use landeck_kernel::Peer;

use super::live::{Live, Mirror, nobody};
use super::{GroupError, Member};
use crate::collective::groups::founding_of;
use crate::context::NAMES_CONTEXT;
use crate::error::Result;
use crate::groups::tag_of;
use crate::world::World;

/// How far a member has come in the group's operations.
#[derive(Default)]
pub(super) struct Operations {
    /// The number of the last; zero before the first.
    number: u64,
    /// The cut that the world was made by.
    cut: u64,
    world: Option<World>,
    /// The members' numbers, in the order of their ranks there.
    ids: Vec<u32>,
}

impl Member {
    /// The members as a world, for collective operations and messages by rank: those of the last
    /// [`Member::advance`], in the order of their numbers. Before the first, it advances.
    ///
    /// ```no_run
    /// # fn part(mut member: landeck::Member) -> landeck::Result<()> {
    /// loop {
    ///     // Who joined or left meanwhile counts from here on.
    ///     if member.advance()? {
    ///         println!("{} members", member.world()?.size());
    ///     }
    ///     let load = member.world()?.all_reduce(1u64, landeck::Sum)?;
    /// #   drop(load);
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Member::advance`].
    pub fn world(&mut self) -> Result<&World> {
        if self.operations.world.is_none() {
            self.advance()?;
        }
        let left_behind = || GroupError::LeftBehind {
            group: self.group().name().to_owned(),
            number: self.operations.number,
        };
        self.operations.world.as_ref().ok_or_else(|| left_behind().into())
    }

    /// The numbers of the members of [`Member::world`], in the order of their ranks there; none before
    /// the first [`Member::advance`].
    pub fn world_ids(&self) -> &[u32] {
        &self.operations.ids
    }

    /// Goes on to the next operation: joins and leaves that were accepted before the first member came
    /// here count from now on. All members call it, as often and in the same order as collective
    /// operations; one that has joined waits until the others come here. True when the members have
    /// changed; then [`Member::world`] is another one. When a member died, the operations of the world
    /// fail; after the next call they go on without it.
    ///
    /// # Errors
    /// [`crate::ErrorKind::PeerFailed`] when a member died meanwhile (call again), [`GroupError::NoMember`],
    /// [`GroupError::TwiceInProcess`], [`GroupError::LeftBehind`], [`GroupError::GroupDestroyed`],
    /// [`GroupError::Destroying`], [`crate::ErrorKind::TooManyGroups`], [`crate::ErrorKind::Ended`], [`crate::ErrorKind::Thread`].
    pub fn advance(&mut self) -> Result<bool> {
        let (live, seat) = (self.group().live.clone(), self.seat());
        live.wait_started(None)?;
        let cut = match self.operations.number {
            0 => live.first_cut(seat)?,
            last => live.cut(last + 1, seat)?,
        };
        let Operations { number, cut: known, world, ids } = &mut self.operations;
        *number = if *number == 0 { cut.number } else { *number + 1 };
        if cut.number == *known && world.is_some() {
            return Ok(false);
        }
        // Whatever becomes of it, the one before is over.
        *world = None;
        *known = cut.number;
        *world = Some(live.world_of(&cut)?);
        *ids = seats_of(&cut).map(|seat| seat.id).collect();
        Ok(true)
    }
}

impl Live {
    /// The cut of an operation, made by whoever comes there first.
    fn cut(&self, number: u64, seat: Seat) -> Result<Cut> {
        self.with(|mirror| {
            self.check_member(&mirror.state, seat)?;
            self.make_cut(mirror, number)?;
            let left_behind = || GroupError::LeftBehind { group: self.name.clone(), number };
            mirror.state.cut(number).cloned().ok_or_else(|| left_behind().into())
        })
    }

    /// The first cut that this member is in.
    fn first_cut(&self, seat: Seat) -> Result<Cut> {
        self.wait(None, nobody, |mirror| {
            self.check_goes_on(&mirror.state)?;
            self.check_member(&mirror.state, seat)?;
            let last = mirror.state.cuts_made();
            // If nobody of those who would make the next one is left, it is for whoever comes.
            let is_forlorn = mirror
                .state
                .cut(last)
                .is_none_or(|cut| !seats_of(cut).any(|seat| mirror.state.member(seat).is_some()));
            if is_forlorn {
                self.make_cut(mirror, last + 1)?;
            }
            let newest = mirror.state.cut(mirror.state.cuts_made());
            Ok(newest.filter(|cut| seats_of(cut).any(|it| it == seat)).cloned())
        })
    }

    fn make_cut(&self, mirror: &mut Mirror, number: u64) -> Result<()> {
        if mirror.state.cuts_made() < number {
            let number = EntryWord::low_bits(number);
            self.append(mirror, EntryWord::Cut { number }, |mirror| {
                self.check_open(&mirror.state)
            })?;
        }
        Ok(())
    }

    fn check_member(&self, state: &State, seat: Seat) -> Result<()> {
        self.check_open(state)?;
        state.member(seat).map(drop).ok_or_else(|| self.no_member(seat.id))
    }

    fn world_of(&self, cut: &Cut) -> Result<World> {
        let peers: Arc<[Peer]> = cut.members.iter().map(|member| Peer(member[1] as u32)).collect();
        let is_twice = |(place, peer)| peers[..place].contains(peer);
        if peers.iter().enumerate().any(is_twice) {
            return Err(GroupError::TwiceInProcess { group: self.name.clone() }.into());
        }
        let name = format!("group {} from operation {}", self.object.number(), cut.number);
        let tag = tag_of(name.as_bytes(), &peers);
        let talk = World::new(self.shared.clone(), founding_of(NAMES_CONTEXT), peers);
        talk.found_by_messages(tag)
    }
}

fn seats_of(cut: &Cut) -> impl Iterator<Item = Seat> + '_ {
    cut.members.iter().map(|&[id, _, _, joined_at]| Seat::new(id as u32, joined_at))
}
