//! Collective operations of a group whose members come and go.
//!
//! Operations are numbered, and all members go through the same numbers. The first member that comes to a number
//! fixes the participants from then on; later joins and leaves count for
//! later numbers. When the participants change, they make a new world.

use std::sync::Arc;

use landeck_engine::context::{NAMES_CONTEXT, founding_of};
use landeck_kernel::Peer;
use landeck_named_groups::{Participants, Replica, TimeLimit};

use super::Member;
use super::operations::Operations;
use crate::error::{self, GroupError, Result};
use crate::groups::tag_of;
use crate::world::World;

impl Member {
    /// Returns the participants of the last [`Member::advance`] as a world, in the order of their
    /// numbers, for collective operations and messages by rank. Before the first advance, this call
    /// advances.
    ///
    /// ```no_run
    /// # fn part(mut member: landeck::Member) -> landeck::Result<()> {
    /// loop {
    ///     // Joins and leaves that came meanwhile count from here on.
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

    /// Returns the numbers of the members of [`Member::world`], in the order of their ranks; an
    /// empty slice before the first [`Member::advance`].
    pub fn world_ids(&self) -> &[u32] {
        &self.operations.ids
    }

    /// Advances to the next operation: joins and leaves that were accepted before the first member
    /// called this count from now on. All members call it equally often, in the same order as
    /// collective operations; a new member waits until the others call it. Returns true if the
    /// members have changed; then [`Member::world`] is a new world. When a member dies, the
    /// operations of the world fail until the next call, after which they go on without it. A
    /// member whose operations have all completed is told by the next call instead; it calls again.
    /// So no process goes on without a member unknowingly.
    ///
    /// # Errors
    /// [`crate::ErrorKind::PeerFailed`] when a member died and no operation of the world has told
    /// of it, or died meanwhile (call again), [`GroupError::NoMember`],
    /// [`GroupError::TwiceInProcess`], [`GroupError::LeftBehind`], [`GroupError::GroupDestroyed`],
    /// [`GroupError::Destroying`], [`crate::ErrorKind::TooManyGroups`], [`crate::ErrorKind::Ended`],
    /// [`crate::ErrorKind::Thread`].
    pub fn advance(&mut self) -> Result<bool> {
        let (replica, seat) = (self.group().replica.clone(), self.seat());
        let operations = &mut self.operations;
        error::call(replica.shared(), "advance", || {
            replica.wait_started(TimeLimit::Unlimited)?;
            let participants = match operations.number {
                0 => replica.first_participants(seat)?,
                last => replica.participants(last + 1, seat)?,
            };
            let first = participants.first_operation;
            if first != operations.world_since {
                operations.tell_of(participants.died)?;
            }
            let Operations { number, world_since, world, ids } = operations;
            *number = if *number == 0 { first } else { *number + 1 };
            if first == *world_since && world.is_some() {
                return Ok(false);
            }
            // The world before is over, even if the new one cannot be made.
            *world = None;
            *world_since = first;
            *world = Some(world_of(&replica, &participants)?);
            *ids = participants.members.iter().map(|member| member.id).collect();
            Ok(true)
        })
    }
}

/// The world of the participants.
fn world_of(replica: &Replica, participants: &Participants) -> Result<World> {
    let peers: Arc<[Peer]> = participants.members.iter().map(|member| Peer(member.peer)).collect();
    let is_twice = |(place, peer)| peers[..place].contains(peer);
    if peers.iter().enumerate().any(is_twice) {
        return Err(GroupError::TwiceInProcess { group: replica.name().to_owned() }.into());
    }
    let (group, first) = (replica.number(), participants.first_operation);
    let name = format!("group {group} from operation {first}");
    let tag = tag_of(name.as_bytes(), &replica.shared().segment, &peers);
    let talk = World::new(replica.shared().clone(), founding_of(NAMES_CONTEXT), peers);
    talk.found_by_messages(tag)
}
