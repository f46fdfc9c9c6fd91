//! Bridges: communication between two groups, known as intercommunicators in MPI.
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
//! A bridge has a world of the own group, a world of both groups, and two views of the other group
//! for messages. Messages in [`Bridge::inside`] never match those of the program. Operations of
//! both groups use the world of both, so they end alike for all members, even if one of them dies.

use std::sync::Arc;

use landeck_collectives::Making;
use landeck_kernel::Peer;
use landeck_memory::{Segment, room};
use landeck_wire::{ProcessId, Tag};

use crate::collectives::combine::Minimum;
use crate::error::{Error, ErrorKind, Numbering, Result};
use crate::peers::{self, peer_of, process_of};
use crate::world::World;
use landeck_engine::context::{collective_context, founding_of};

/// A connection between two groups, as a member of one of them sees it. A clone is another handle.
#[derive(Clone)]
pub struct Bridge {
    local: World,
    remote: World,
    inside: World,
    both: World,
}

/// The number of words before a leader's list.
const HEAD_WORDS: usize = 2;
/// The value of a context when creating the bridge has failed.
const NO_CONTEXT: u32 = 0;
/// The tag of the messages that create the world of both groups, in a context of their own.
const MAKING_BOTH: Tag = Tag(0);
/// The error if a group gives no reason and no member has died.
const GIVEN_UP: ErrorKind = ErrorKind::NoBridge {
    what: "one of the groups gave up, and the error of its members says why",
};

impl World {
    /// Creates a bridge between this world and another one. All members of both worlds call it and
    /// give the rank of their own `leader`. Only the leader gives `other`: a world that contains
    /// both leaders, and the rank of the other leader in it. No other message with this tag may be
    /// in flight between the leaders.
    ///
    /// # Errors
    /// [`ErrorKind::NoSuchRank`], [`ErrorKind::NoBridge`], and as [`World::split`].
    pub fn bridge(
        &self,
        leader: usize,
        other: Option<(&World, usize)>,
        tag: impl Into<Tag>,
    ) -> Result<Bridge> {
        self.call("bridge", || {
            self.peer(leader)?;
            let other =
                other.filter(|_| self.rank() == leader).map(|(between, rank)| OtherLeader {
                    peer: between.peer(rank).ok(),
                    meeting: between.peer(rank).map(|_| (between.clone(), rank)),
                });
            Bridge::connect(&self.members, self.duplicate(), leader, other, tag.into())
        })
    }

    /// Creates a bridge between two groups of ranks of this world, which need no other world in
    /// common. All members of both groups call it and give the same name. Each gives the ranks of
    /// its `own` group and the position of its `leader` in it. A leader also gives the rank of the
    /// `other` group's leader in this world. Two calls with processes in common need different
    /// names, or must be made one after the other.
    ///
    /// # Errors
    /// As [`World::named`] and [`World::bridge`].
    pub fn bridge_named(
        &self,
        own: &[usize],
        leader: usize,
        other: Option<usize>,
        name: &str,
    ) -> Result<Bridge> {
        self.call("bridge_named", || {
            let size = own.len();
            let own_leader =
                *own.get(leader).ok_or(ErrorKind::NoSuchRank { rank: leader, size })?;
            let members: Arc<[Peer]> =
                own.iter().map(|&rank| self.peer(rank)).collect::<Result<_>>()?;
            let local = self.named(own, &format!("side {name}"));
            let leaders = other.filter(|_| own_leader == self.rank()).map(|other| {
                // Both leaders list the pair in the same order.
                let pair = [own_leader.min(other), own_leader.max(other)];
                let between = self.named(&pair, &format!("leaders {name}"));
                let between = between.map(|between| between.numbered(Numbering::Joint));
                let meeting = between.map(|between| (between, usize::from(own_leader < other)));
                OtherLeader { peer: self.peer(other).ok(), meeting }
            });
            Bridge::connect(&members, local, leader, leaders, Tag(0))
        })
    }
}

/// The other group's leader, as the leader of the own group names it.
struct OtherLeader {
    peer: Option<Peer>,
    /// A world that has both leaders, and the rank of the other one there.
    meeting: Result<(World, usize)>,
}

impl Bridge {
    /// Creates a bridge whose own side is `local`, a world of these members, if it was created. The
    /// leader names the other leader.
    ///
    /// A leader always sends to the other one, even after a failure in its own group, since the
    /// other group waits for it.
    fn connect(
        members: &[Peer],
        local: Result<World>,
        leader: usize,
        other: Option<OtherLeader>,
        tag: Tag,
    ) -> Result<Self> {
        let Some(segment) = other
            .as_ref()
            .and_then(|other| other.meeting.as_ref().ok())
            .map(|(between, _)| between.shared.segment.clone())
            .or_else(|| local.as_ref().ok().map(|local| local.shared.segment.clone()))
        else {
            return Err(local.err().unwrap_or(GIVEN_UP.into()));
        };
        // Peers are numbers of one host, and the other group may be on another one.
        let own: Vec<u64> = words_of(&segment, members);
        let suspect = other.as_ref().and_then(|other| other.peer);
        let own = match &local {
            Ok(_) => Ok(own),
            Err(error) => Err(words_of(&segment, gone_in(members, error).as_slice())),
        };
        let heard = other.map(|other| {
            let (between, rank) = other.meeting?;
            let view = between.talk(founding_of(between.context), between.members.clone());
            exchange(&view, rank, tag, own)
        });
        let local = local?;
        let told = tell(&local, leader, heard, suspect)?;
        let processes = told.words.as_chunks().0.iter().map(|&words| peers::from_words(words));
        let processes: Vec<ProcessId> = processes.collect();
        let known = processes.iter().filter_map(|&process| peer_of(&segment, process));
        let remote: Arc<[Peer]> = known.collect();
        if told.context == NO_CONTEXT {
            let death = match local.told_gone(&told.words)? {
                None => local.gone_among(&[members], |died| died)?,
                death => death,
            };
            return Err(death.unwrap_or(GIVEN_UP.into()));
        }
        if remote.iter().any(|peer| members.contains(peer)) {
            return Err(ErrorKind::NoBridge {
                what: "a process is in both groups. Name groups without common members",
            }
            .into());
        }
        if remote.len() != processes.len() {
            let what = "this host does not know all processes of the other group";
            return Err(ErrorKind::NoBridge { what }.into());
        }
        let own_first = members.first().map(|&peer| process_of(&segment, peer));
        let is_first = own_first < processes.first().copied();
        let (first, second) = if is_first { (members, &*remote) } else { (&*remote, members) };
        let all: Arc<[Peer]> = first.iter().chain(second).copied().collect();
        let talk = local.talk(founding_of(told.context), all).numbered(Numbering::Joint);
        let both = talk.found_by_messages(MAKING_BOTH)?;
        let between = both.duplicate()?;
        Self::over(local, both, &between)
    }

    /// Creates a bridge from existing worlds: one of the own group and two of both groups, with the
    /// members of one group before those of the other. `both` carries common operations; `between`
    /// is used for nothing else. This needs no messages.
    ///
    /// # Errors
    /// [`ErrorKind::NotAMember`], [`ErrorKind::Thread`].
    pub fn over(local: World, both: World, between: &World) -> Result<Self> {
        let is_far = |peer: &&Peer| !local.members.contains(peer);
        let remote: Arc<[Peer]> = between.members.iter().filter(is_far).copied().collect();
        let is_of_both = remote.len() + local.size() == between.size();
        if !is_of_both || both.members != between.members {
            return Err(ErrorKind::NotAMember.into());
        }
        let (context, twin) = (between.context, collective_context(between.context));
        let mut engine = between.shared.engine.enter()?;
        engine.endpoint.set_members(context, remote.to_vec());
        engine.endpoint.set_members(twin, remote.to_vec());
        drop(engine);
        let other = |context| between.part(context, remote.clone()).numbered(Numbering::OtherGroup);
        let (inside, both) = (other(twin), both.numbered(Numbering::Joint));
        Ok(Self { local, remote: other(context), inside, both })
    }

    /// Returns the world of the own group.
    pub fn local(&self) -> &World {
        &self.local
    }

    /// Returns the other group as a world for messages. This process is not a member of it and has
    /// no rank in it.
    pub fn remote(&self) -> &World {
        &self.remote
    }

    /// Returns the other group as a world for internal messages of a library, which never match
    /// those of [`Bridge::remote`].
    pub fn inside(&self) -> &World {
        &self.inside
    }

    /// Returns the world of both groups, one after the other, each in the order of its ranks.
    pub fn both(&self) -> &World {
        &self.both
    }

    /// Divides both groups: all members with the same color form a new bridge, in the order of
    /// their keys and, for equal keys, of their ranks. A member without a color, or with a color
    /// that the other group does not use, is in no new bridge and gets `None`. All members of both
    /// groups call it.
    ///
    /// # Errors
    /// [`ErrorKind::NoBridge`], and as [`World::split`].
    pub fn split(&self, color: Option<u32>, key: i64) -> Result<Option<Bridge>> {
        self.split_as(Making::Split, color, key)
    }

    fn split_as(&self, making: Making, color: Option<u32>, key: i64) -> Result<Option<Bridge>> {
        // Also the own group's world is made by both: a member that has learned of a death in the other group is missing
        // in the own one, and the others learn why.
        let divided = |color, key| self.both.split_as(making, (color, key), None);
        let color = color.map(u64::from);
        let local = divided(color.map(|color| self.side() | color), key);
        let place = local.as_ref().ok().and_then(Option::as_ref).map_or(0, World::rank);
        // The other members take part in all of these, so this one does too after a failure.
        let key = behind(!self.is_first(), place);
        let (both, between) = (divided(color, key), divided(color, key));
        let is_made = local.is_ok() && both.is_ok() && between.is_ok();
        let are_made = self.both.all_reduce(u8::from(is_made), Minimum);
        let (local, both, between) = (local?, both?, between?);
        if are_made? == 0 {
            let death = self.both.gone_among(&[&self.both.members], |died| died)?;
            return Err(death.unwrap_or(GIVEN_UP.into()));
        }
        let (Some(local), Some(both), Some(between)) = (local, both, between) else {
            return Ok(None);
        };
        if both.size() == local.size() {
            return Ok(None);
        }
        Self::over(local, both, &between).map(Some)
    }

    /// Divides both groups by hosts, as [`Bridge::split`] divides them. `None` where the other group has no member on
    /// this host.
    ///
    /// # Errors
    /// As [`Bridge::split`].
    pub fn split_by_host(&self, key: i64) -> Result<Option<Bridge>> {
        self.split_as(Making::Split, self.both.color_of_host(), key)
    }

    /// Creates a new bridge between the same groups. All members of both groups call it.
    ///
    /// # Errors
    /// As [`Bridge::split`].
    pub fn duplicate(&self) -> Result<Bridge> {
        self.split_as(Making::Duplicate, Some(0), 0)?.ok_or_else(|| ErrorKind::NotAMember.into())
    }

    /// Creates a world of both groups, first the group that gives `is_high` as false. All members
    /// of a group give the same value; if both groups give the same value, the order is
    /// unspecified. All members of both groups call it.
    ///
    /// # Errors
    /// As [`World::split`].
    pub fn merge(&self, is_high: bool) -> Result<World> {
        let mut highs = vec![0; self.both.size()];
        self.both.all_gather(&[u8::from(is_high)], &mut highs)?;
        let second = if self.is_first() { self.local.size() } else { self.remote.size() };
        let is_turned = highs[0] > highs[second];
        let key = behind(self.is_first() == is_turned, self.local.rank());
        self.both.split(Some(0), key)?.ok_or_else(|| ErrorKind::NotAMember.into())
    }

    /// The own group as a color, above the colors of users.
    pub(crate) fn side(&self) -> u64 {
        u64::from(!self.is_first()) << 32
    }

    /// Returns whether the own group comes first in the world of both.
    fn is_first(&self) -> bool {
        self.both.rank() == self.local.rank()
    }
}

/// The words of the processes that these peers stand for.
fn words_of(segment: &Segment, peers: &[Peer]) -> Vec<u64> {
    peers.iter().flat_map(|&peer| peers::to_words(process_of(segment, peer))).collect()
}

/// The key of a place in the first or in the second group.
fn behind(is_second: bool, place: usize) -> i64 {
    i64::from(is_second) << 32 | place as i64
}

/// The process whose end is the reason of an error among these members.
fn gone_in(members: &[Peer], error: &Error) -> Option<Peer> {
    match error.kind {
        ErrorKind::PeerFailed { rank: Some(rank), .. } => members.get(rank).copied(),
        _ => None,
    }
}

/// The message between two leaders: a new context, and the list of a group. If creating the bridge has failed in one of
/// the groups, the context is [`NO_CONTEXT`], and the list has the process whose end is the reason, or nothing.
struct Told {
    context: u32,
    words: Vec<u64>,
}

/// Exchanges lists between two leaders and agrees on a context, the larger of their proposals. A
/// leader whose group has failed reports this and why, since the other leader waits for it.
fn exchange(
    between: &World,
    other: usize,
    tag: Tag,
    own: std::result::Result<Vec<u64>, Vec<u64>>,
) -> Result<Told> {
    let proposal = match own {
        Err(_) => NO_CONTEXT,
        Ok(_) => {
            between.await_number()?;
            between.shared.engine.enter()?.new_context()
        }
    };
    let has_no_number = own.is_ok() && proposal == NO_CONTEXT;
    let list = match own {
        Ok(_) if has_no_number => Vec::new(),
        Ok(list) | Err(list) => list,
    };
    let words: Vec<u64> = [u64::from(proposal)].into_iter().chain(list).collect();
    let mut theirs = between.scope(|scope| {
        let send = scope.send(&words, other, tag)?;
        let theirs = between.receive_vec::<u64>(other, tag)?.0;
        send.wait().map(|_| theirs)
    })?;
    let answer = if theirs.is_empty() { NO_CONTEXT } else { theirs.remove(0) as u32 };
    let has_failed = proposal == NO_CONTEXT || answer == NO_CONTEXT;
    let context = if has_failed { NO_CONTEXT } else { proposal.max(answer) };
    if context != proposal {
        between.shared.engine.enter()?.keep_context(proposal);
    }
    if has_no_number {
        return Err(ErrorKind::TooManyGroups.into());
    }
    Ok(Told { context, words: theirs })
}

/// Broadcasts to the leader's group what the other leader sent, or which leader did not answer.
/// Both leaders act on that alone, whatever happens to their own groups meanwhile: so either both
/// of them enter the world of both, or neither.
fn tell(
    local: &World,
    leader: usize,
    heard: Option<Result<Told>>,
    suspect: Option<Peer>,
) -> Result<Told> {
    let nothing = |suspect: Option<Peer>| Told {
        context: NO_CONTEXT,
        words: words_of(&local.shared.segment, suspect.as_slice()),
    };
    let (mut told, trouble) = match heard {
        Some(Ok(heard)) => (heard, None),
        Some(Err(error)) => {
            let is_gone = matches!(error.kind, ErrorKind::PeerFailed { .. });
            (nothing(suspect.filter(|_| is_gone)), Some(error))
        }
        None => (nothing(None), None),
    };
    let mut head: [u64; HEAD_WORDS] = [u64::from(told.context), told.words.len() as u64];
    let sent = local.broadcast(&mut head, leader).and_then(|()| {
        told.context = head[0] as u32;
        if local.rank() != leader {
            told.words = room::zeroes(head[1] as usize)?;
        }
        local.broadcast(&mut told.words, leader)
    });
    match (trouble, sent) {
        (Some(error), _) => Err(error),
        (None, Err(Error { kind: ErrorKind::PeerFailed { .. }, .. })) if local.rank() == leader => {
            Ok(told)
        }
        (None, sent) => sent.map(|()| told),
    }
}
