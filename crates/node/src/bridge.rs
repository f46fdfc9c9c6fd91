//! Two groups that talk to each other: what MPI calls an intercommunicator.
//!
//! ```no_run
//! # fn main() -> landeck::Result<()> {
//! use landeck::{Job, Tag};
//!
//! let job = Job::join()?;
//! let world = job.world();
//! let is_left = world.rank() < world.size() / 2;
//! let own = world.split(Some(u32::from(is_left)), 0)?.expect("everybody has a color");
//! let other_leader = if is_left { world.size() / 2 } else { 0 };
//! let leads = own.rank() == 0;
//! let bridge = own.bridge(0, leads.then_some((&world, other_leader)), Tag(1))?;
//! // Ranks of messages over the bridge are those of the other group.
//! bridge.remote().send(&[own.rank() as u64], own.rank() % bridge.remote().size(), Tag(2))?;
//! # Ok(()) }
//! ```
//!
//! A bridge is a world of the own group, for what its members do together, and two views of the
//! other group, for messages. What both groups do together is made of these: the members of a
//! group among themselves, and the first of each with the first of the other, whose messages
//! travel in [`Bridge::inside`] and never meet those of the program.

use std::sync::Arc;

use landeck_kernel::Peer;
use landeck_wire::Tag;

use crate::collective::circle::twin_of;
use crate::collective::groups::{context_of, founding_of, number_of};
use crate::error::{Error, Result};
use crate::groups::Lease;
use crate::world::World;

/// Two groups that talk to each other, as a member of one sees them. A clone is another handle.
#[derive(Clone)]
pub struct Bridge {
    local: World,
    remote: World,
    inside: World,
}

/// The tag of what the first members of two groups tell each other when worlds are made.
const MAKING: Tag = Tag(u32::MAX);
/// Words in front of a leader's list.
const HEAD_WORDS: usize = 2;
/// No context: the leaders have not understood each other.
const NO_CONTEXT: u64 = 0;

impl World {
    /// A bridge between this world and another one. All members of both call it; the leader of
    /// each names a world that has both leaders, and the rank of the other leader there. No other
    /// message with this tag is on its way between them.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::NoBridge`], and as [`World::split`].
    pub fn bridge(
        &self,
        leader: usize,
        other: Option<(&World, usize)>,
        tag: Tag,
    ) -> Result<Bridge> {
        self.peer(leader)?;
        let local = self.duplicate()?;
        let own: Vec<u64> = self.members.iter().map(|peer| u64::from(peer.0)).collect();
        let theirs = other.filter(|_| self.rank() == leader).map(|(between, rank)| {
            between.peer(rank)?;
            let view = between.talk(founding_of(between.context), between.members.clone());
            exchange(&view, rank, tag, &own)
        });
        let (context, words) = tell(&local, leader, theirs)?;
        let remote: Arc<[Peer]> = words.iter().map(|&word| Peer(word as u32)).collect();
        if remote.iter().any(|peer| self.members.contains(peer)) {
            return Err(Error::NoBridge { what: "a process is in both groups" });
        }
        Bridge::new(local, context, remote)
    }
}

impl Bridge {
    fn new(local: World, context: u32, remote: Arc<[Peer]>) -> Result<Self> {
        let shared = local.shared.clone();
        if let Some(number) = number_of(context) {
            shared.segment.skip_group_numbers(number);
        }
        let mut kernel = shared.kernel.enter()?;
        kernel.set_members(context, remote.to_vec());
        kernel.set_members(twin_of(context), remote.to_vec());
        drop(kernel);
        let lease = Lease::new(shared.clone(), context);
        let view = |context| World::leased(shared.clone(), context, remote.clone(), lease.clone());
        let (remote, inside) = (view(context), view(twin_of(context)));
        Ok(Self { local, remote, inside })
    }

    /// A bridge of a world of the own group and one of both groups, which is used for nothing else:
    /// its members that are not of the own group are the other one, in their order there. Nobody
    /// needs to talk for it.
    ///
    /// # Errors
    /// [`Error::NotAMember`], [`Error::Thread`].
    pub fn over(local: World, both: &World) -> Result<Self> {
        let is_far = |peer: &&Peer| !local.members.contains(peer);
        let remote: Arc<[Peer]> = both.members.iter().filter(is_far).copied().collect();
        if remote.len() + local.size() != both.size() {
            return Err(Error::NotAMember);
        }
        let (context, twin) = (both.context, twin_of(both.context));
        let mut kernel = both.shared.kernel.enter()?;
        kernel.set_members(context, remote.to_vec());
        kernel.set_members(twin, remote.to_vec());
        drop(kernel);
        let (inside, remote) = (both.part(twin, remote.clone()), both.part(context, remote));
        Ok(Self { local, remote, inside })
    }

    /// The own group.
    pub fn local(&self) -> &World {
        &self.local
    }

    /// The other group, for messages: who calls is no member of it, and has no rank there.
    pub fn remote(&self) -> &World {
        &self.remote
    }

    /// The same for messages of which the program knows nothing.
    pub fn inside(&self) -> &World {
        &self.inside
    }

    /// Divides both groups: all who give the same color are in a new bridge, in the order of their
    /// keys, and of their ranks here where keys are equal. Who gives none, or a color that nobody
    /// gives on the other side, is in none. All members of both groups call it.
    ///
    /// # Errors
    /// As [`World::bridge`].
    pub fn split(&self, color: Option<u32>, key: i64) -> Result<Option<Bridge>> {
        let own = [color.map_or(u64::MAX, u64::from), key as u64];
        let mut table = vec![0; 2 * self.local.size()];
        self.local.all_gather(&own, &mut table)?;
        let local = self.local.split(color, key);
        let (context, theirs) = self.agree_on(&table)?;
        let (Some(local), Some(color)) = (local?, color) else { return Ok(None) };
        let mut ranks: Vec<(i64, usize)> = (0..)
            .zip(theirs.chunks_exact(2))
            .filter(|(_, entry)| entry[0] == u64::from(color))
            .map(|(rank, entry)| (entry[1] as i64, rank))
            .collect();
        if ranks.is_empty() {
            return Ok(None);
        }
        ranks.sort_unstable();
        let remote =
            ranks.iter().map(|&(_, rank)| self.remote.peer(rank)).collect::<Result<_>>()?;
        Bridge::new(local, context, remote).map(Some)
    }

    /// The same groups with a bridge of their own. All members of both groups call it.
    ///
    /// # Errors
    /// As [`Bridge::split`].
    pub fn duplicate(&self) -> Result<Bridge> {
        self.split(Some(0), 0)?.ok_or(Error::NotAMember)
    }

    /// A world of both groups, first those who do not say that they are high. All members of a
    /// group say the same; where both groups say the same, some order is taken. All members of
    /// both groups call it.
    ///
    /// # Errors
    /// As [`Bridge::split`].
    pub fn merge(&self, is_high: bool) -> Result<World> {
        let (context, theirs) = self.agree_on(&[u64::from(is_high)])?;
        let is_their_high = theirs.first().is_some_and(|&word| word != 0);
        let (own, other) = (&self.local.members, &self.remote.members);
        let is_first = match is_high == is_their_high {
            true => own.first().map(|peer| peer.0) < other.first().map(|peer| peer.0),
            false => !is_high,
        };
        let (first, second) = if is_first { (own, other) } else { (other, own) };
        let all: Arc<[Peer]> = first.iter().chain(second.iter()).copied().collect();
        self.local.talk(founding_of(context), all).found_by_messages(MAKING_WORLD)
    }

    /// What the other group's first member says to this group's, told to all, with a new context
    /// that both groups have agreed on.
    fn agree_on(&self, own: &[u64]) -> Result<(u32, Vec<u64>)> {
        let theirs = (self.local.rank() == 0).then(|| exchange(&self.inside, 0, MAKING, own));
        tell(&self.local, 0, theirs)
    }
}

/// The tag of the messages that make a merged world, in a context of their own.
const MAKING_WORLD: Tag = Tag(0);

/// Two leaders tell each other a list, and name a context: the larger of their proposals.
fn exchange(between: &World, other: usize, tag: Tag, own: &[u64]) -> Result<(u32, Vec<u64>)> {
    let proposal = context_of(between.shared.segment.take_group_number());
    let words: Vec<u64> = [u64::from(proposal)].iter().chain(own).copied().collect();
    let mut theirs = between.scope(|scope| {
        let send = scope.send(&words, other, tag)?;
        let theirs = between.receive_vec::<u64>(other, tag)?.0;
        send.wait().map(|_| theirs)
    })?;
    if theirs.is_empty() || proposal == 0 || theirs[0] == NO_CONTEXT {
        return Err(Error::TooManyGroups);
    }
    let context = proposal.max(theirs.remove(0) as u32);
    Ok((context, theirs))
}

/// A leader tells its group what it has heard, or that it has heard nothing.
fn tell(
    local: &World,
    leader: usize,
    heard: Option<Result<(u32, Vec<u64>)>>,
) -> Result<(u32, Vec<u64>)> {
    let silence = Error::NoBridge { what: "the leader of this group did not reach the other's" };
    let (heard, trouble) = match heard {
        Some(Ok(heard)) => (Some(heard), None),
        Some(Err(error)) => (None, Some(error)),
        None => (None, None),
    };
    let (context, mut words) = heard.unwrap_or((NO_CONTEXT as u32, Vec::new()));
    let mut head: [u64; HEAD_WORDS] = [u64::from(context), words.len() as u64];
    local.broadcast(&mut head, leader)?;
    if head[0] == NO_CONTEXT {
        return Err(trouble.unwrap_or(silence));
    }
    words.resize(head[1] as usize, 0);
    local.broadcast(&mut words, leader)?;
    Ok((head[0] as u32, words))
}
