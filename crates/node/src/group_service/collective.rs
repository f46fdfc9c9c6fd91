//! Collective operations of a group whose members come and go.
//!
//! Operations are numbered, and all members go through the same numbers. Whoever comes to a number
//! first has a cut accepted, which says who takes part from then on; later joins and leaves count for
//! later numbers. Where that differs from before, those who take part make a world.

use std::sync::Arc;

use landeck_groups::service::Cut;
use landeck_kernel::Peer;

use super::Member;
use super::operations::Operations;
use crate::error::{GroupError, Result};
use crate::groups::tag_of;
use crate::named_group::cuts::seats_of;
use crate::named_group::live::Live;
use crate::world::World;
use landeck_engine::context::{NAMES_CONTEXT, founding_of};

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
        *world = Some(world_of(&live, &cut)?);
        *ids = seats_of(&cut).map(|seat| seat.id).collect();
        Ok(true)
    }
}

/// The world of those who take part from a cut on.
fn world_of(live: &Live, cut: &Cut) -> Result<World> {
    let peers: Arc<[Peer]> = cut.members.iter().map(|member| Peer(member[1] as u32)).collect();
    let is_twice = |(place, peer)| peers[..place].contains(peer);
    if peers.iter().enumerate().any(is_twice) {
        return Err(GroupError::TwiceInProcess { group: live.name.clone() }.into());
    }
    let name = format!("group {} from operation {}", live.object.number(), cut.number);
    let tag = tag_of(name.as_bytes(), &peers);
    let talk = World::new(live.shared.clone(), founding_of(NAMES_CONTEXT), peers);
    talk.found_by_messages(tag)
}
