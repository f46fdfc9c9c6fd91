//! Groups: worlds derived from a world, and recovery when members have failed.
//!
//! ```no_run
//! # fn main() -> landeck::Result<()> {
//! use landeck::ErrorKind::{PeerFailed, Revoked};
//! use landeck::{Error, Job, Sum};
//!
//! let job = Job::join()?;
//! let mut world = job.world();
//! let row = world.split(Some(world.rank() as u32 / 4), 0)?.expect("everybody has a color");
//! let total = row.all_reduce(world.rank(), Sum)?;
//! // Started with --on-failure notify, those that are left go on without the dead.
//! while let Err(Error { kind: PeerFailed { .. } | Revoked { .. }, .. }) = world.barrier() {
//!     world.revoke()?; // so that nobody stays in the barrier
//!     world = world.shrink()?;
//! }
//! # Ok(()) }
//! ```
//!
//! Making a group is a collective operation of its parent. A group is freed when the last handle
//! to it is dropped; its memory comes back when all members have dropped theirs.

pub mod bridge;
mod makers;

use std::sync::Arc;
use std::time::Duration;

use landeck_board::Offer;
use landeck_collectives::{Group, GroupError, Making, MemberPlace, Settings};
use landeck_kernel::Peer;
use landeck_memory::{NoMemory, Operation, Segment, WaitRecord, room};
use landeck_protocols::agreement::Agreed;
use landeck_wire::Tag;

use crate::error::{Error, ErrorKind, Result};
use crate::lease::Lease;
use crate::peers::process_of;
use crate::world::World;
use landeck_engine::context::{NAMES_CONTEXT, founding_of};
use landeck_engine::{Founding, Reservation, WaitError, deadline_ns};
use landeck_host::cpu_set::CpuSet;
use landeck_host::topology::cache_word;

/// How long the maker of a group waits for its daemon to bring numbers.
const NUMBER_TIME: Duration = Duration::from_secs(10);

/// The result of an agreement among the members of a world, which is the same at every member that
/// returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreement {
    /// The bits that are set in the flags of every member that contributed.
    pub flags: u32,
    /// The ranks of the members that have failed or left.
    pub gone: Vec<usize>,
    /// Whether every member that is not gone had acknowledged all deaths among the members
    /// ([`Job::acknowledge_failures`](crate::Job::acknowledge_failures)) before it called.
    pub are_acknowledged: bool,
}

/// Which of the new groups a member will be in; `None` if in none of them. A word, so that it can name the side of a
/// bridge beside a color of the user.
pub(crate) type Color = Option<u64>;

/// The contribution of a member to the creation of a group: what it wants and what it offers.
#[derive(Clone, Copy)]
pub(crate) struct Record {
    pub(crate) color: Color,
    pub(crate) key: i64,
    pub(crate) offer: Offer,
    pub(crate) place: MemberPlace,
}

/// Six: what a line of the board has room for.
pub(crate) const RECORD_WORDS: usize = 6;
/// In the place of a color: the member is in no new group.
const NO_COLOR: u64 = u64::MAX;
/// Bytes of a member's own memory for a new group, about, objects of the fronts included.
const GROUP_BYTES: usize = 1 << 20;
/// In the place of a context: the member has no memory for a new group, so nobody makes it.
const NO_MEMORY: u32 = u32::MAX;
/// The tags of what the first member of a new group tells the others have this bit.
const ANSWER: u32 = 1 << 31;

impl Record {
    pub(crate) fn encode(&self) -> [u64; RECORD_WORDS] {
        let color = self.color.unwrap_or(NO_COLOR);
        let Offer { context, lines, board } = self.offer;
        let MemberPlace { site, host, cache } = self.place;
        let head = u64::from(context) | u64::from(cache) << 32 | u64::from(site) << 48;
        [color, self.key as u64, head, lines, board, host]
    }

    fn decode(words: &[u64]) -> Self {
        let &[color, key, head, lines, board, host] = words else {
            let (offer, place) = (Offer::default(), MemberPlace::default());
            return Self { color: None, key: 0, offer, place };
        };
        let offer = Offer { context: head as u32, lines, board };
        let place = MemberPlace { site: (head >> 48) as u16, host, cache: (head >> 32) as u16 };
        let color = Some(color).filter(|&color| color != NO_COLOR);
        Self { color, key: key as i64, offer, place }
    }
}

impl World {
    /// Divides the world: all members with the same color form a new world, in the order of their
    /// keys and, for equal keys, of their ranks in this world. A member without a color is in no
    /// new world and gets `None`. All members call it.
    ///
    /// # Errors
    /// As [`World::all_gather`], [`ErrorKind::TooManyGroups`].
    pub fn split(&self, color: Option<u32>, key: i64) -> Result<Option<World>> {
        self.call("split", || self.split_as(Making::Split, (color.map(u64::from), key), None))
    }

    /// Creates a new world of the same members: messages and operations of the two worlds do not
    /// meet. All members call it.
    ///
    /// # Errors
    /// As [`World::split`].
    pub fn duplicate(&self) -> Result<World> {
        self.call("duplicate", || {
            let shape = self.shared.engine.enter()?.shape(self.context);
            let made = self.split_as(Making::Duplicate, (Some(0), 0), shape)?;
            let mut world = made.ok_or(ErrorKind::NotAMember)?;
            world.options = self.options.clone();
            Ok(world)
        })
    }

    /// Creates a world of these ranks, in this order. All members of this world call it. They give
    /// the same ranks, or, where several worlds are created at once, the ranks of the world that
    /// they will be in.
    ///
    /// # Errors
    /// [`ErrorKind::NoSuchRank`], [`ErrorKind::RankTwice`], and as [`World::split`].
    pub fn subset(&self, ranks: &[usize]) -> Result<Option<World>> {
        self.call("subset", || {
            self.check_members(ranks)?;
            let place = ranks.iter().position(|&rank| rank == self.rank());
            let color = place.map(|_| ranks.iter().min().map_or(0, |&rank| rank as u64));
            self.split_as(Making::Subset, (color, place.unwrap_or(0) as i64), None)
        })
    }

    /// Divides the world by hosts: all members on one host form a new world, in the order of their
    /// keys and, for equal keys, of their ranks in this world. All members call it.
    ///
    /// # Errors
    /// As [`World::split`].
    pub fn split_by_host(&self, key: i64) -> Result<World> {
        self.call("split_by_host", || {
            let color = self.color_of_host().map(u64::from);
            let made = self.split_as(Making::Split, (color, key), None)?;
            made.ok_or(ErrorKind::NotAMember.into())
        })
    }

    /// The first rank on this host: a number that only the members on one host have.
    pub(crate) fn color_of_host(&self) -> Option<u32> {
        let slots = self.shared.segment.plan().slots();
        self.members.iter().position(|peer| peer.0 < slots).map(|rank| rank as u32)
    }

    /// Creates a world of these ranks, in this order. Only the processes with these ranks call it.
    /// Two calls with processes in common need different tags, or must be made one after the other.
    ///
    /// # Errors
    /// [`ErrorKind::NoSuchRank`], [`ErrorKind::RankTwice`], [`ErrorKind::NotAMember`],
    /// [`ErrorKind::TooManyGroups`], [`ErrorKind::PeerFailed`], [`ErrorKind::Revoked`], [`ErrorKind::Ended`],
    /// [`ErrorKind::Thread`].
    pub fn among(&self, ranks: &[usize], tag: impl Into<Tag>) -> Result<World> {
        self.call("among", || {
            let tag = tag.into();
            self.check_members(ranks)?;
            let members: Arc<[Peer]> = ranks.iter().map(|&rank| self.members[rank]).collect();
            let tag = tag_of(&tag.0.to_le_bytes(), &self.shared.segment, &members);
            self.talk(founding_of(self.context), members).found_by_messages(tag)
        })
    }

    /// Creates a world of these ranks, in this order, without a common world but the job's. Only
    /// the processes with these ranks call it, and all give the same name. Two calls with processes
    /// in common need different names, or must be made one after the other.
    ///
    /// # Errors
    /// As [`World::among`].
    pub fn named(&self, ranks: &[usize], name: &str) -> Result<World> {
        self.call("named", || {
            self.check_members(ranks)?;
            let members: Arc<[Peer]> = ranks.iter().map(|&rank| self.members[rank]).collect();
            let tag = tag_of(name.as_bytes(), &self.shared.segment, &members);
            self.talk(founding_of(NAMES_CONTEXT), members).found_by_messages(tag)
        })
    }

    /// A world of these peers for the messages that create a group; its ranks are their positions.
    pub(crate) fn talk(&self, context: u32, members: Arc<[Peer]>) -> World {
        World::new(self.shared.clone(), context, members)
    }

    /// Creates a world of all members of this one, which has no board: the first member collects
    /// all offers and sends them to all. Another world with some of these members has another tag.
    pub(crate) fn found_by_messages(&self, tag: Tag) -> Result<World> {
        if self.rank() >= self.size() {
            return Err(ErrorKind::NotAMember.into());
        }
        self.are_alive(&[&self.members])?;
        let setting = self.set_aside()?;
        let (offer, place) = (setting.offer, self.own_place()?);
        let own = Record { color: None, key: 0, offer, place }.encode();
        let records = match self.gather_records(&own, tag) {
            Ok(records) => records,
            Err(error) => {
                self.quarantine(setting)?;
                return Err(error);
            }
        };
        let records: Vec<Record> = records.chunks_exact(RECORD_WORDS).map(Record::decode).collect();
        if let Some(error) = self.short_member(&records) {
            self.quarantine(setting)?;
            return Err(error);
        }
        let offers: Vec<Offer> = records.iter().map(|record| record.offer).collect();
        let context = offers.iter().map(|offer| offer.context).max().unwrap_or(0);
        if context == 0 {
            self.quarantine(setting)?;
            return Err(ErrorKind::TooManyGroups.into());
        }
        let ranks: Vec<usize> = (0..self.size()).collect();
        let made = self.found(context, &ranks, offers, self.shape_of(&records)?, setting)?;
        // Either all living members have the world or none: a member that gave up does not come.
        made.barrier()?;
        Ok(made)
    }

    fn gather_records(&self, own: &[u64], tag: Tag) -> Result<Vec<u64>> {
        let (answer, makers) = (Tag(tag.0 | ANSWER), &[&self.members[..]][..]);
        if self.rank() != 0 {
            let told = self.ask_first_maker(own, (tag, answer), makers)?;
            return match told.len() == self.size() * RECORD_WORDS {
                true => Ok(told),
                false => Err(self.given_up(0, &told)?),
            };
        }
        let mut records = Ok(own.to_vec());
        for rank in 1..self.size() {
            match (&mut records, self.receive_record(rank, tag, makers)) {
                (Ok(records), Ok(record)) if record.len() == RECORD_WORDS => records.extend(record),
                (failed @ Ok(_), Ok(_)) => *failed = Err(self.given_up(rank, &[])?),
                (failed, Err(error)) if failed.is_ok() => *failed = Err(error),
                _ => {}
            }
        }
        // If a member is gone, the other members are told, since they wait for this process alone.
        let told = match &records {
            Ok(records) => records,
            Err(_) => &self.words_of_gone(makers)?,
        };
        let mut answered = Ok(());
        for rank in 1..self.size() {
            answered = self.send(told, rank, answer).and(answered);
        }
        records.and_then(|records| answered.map(|()| records))
    }

    /// Checks that the members of a new group are ranks of this world, each named once.
    fn check_members(&self, ranks: &[usize]) -> Result<()> {
        let mut is_named = vec![false; self.size()];
        for &rank in ranks {
            self.peer(rank)?;
            if std::mem::replace(&mut is_named[rank], true) {
                return Err(ErrorKind::RankTwice { rank }.into());
            }
        }
        Ok(())
    }

    /// Creates a world of the same members with the clusters that rank 0 gives, for the
    /// architectures that use clusters. All members call it; `clusters` is used at rank 0 only.
    ///
    /// # Errors
    /// [`ErrorKind::Clusters`], and as [`World::split`].
    pub fn with_clusters(&self, clusters: &Group) -> Result<World> {
        self.call("with_clusters", || {
            let mut places = vec![u32::MAX; 2 * self.size()];
            if self.rank() == 0 && clusters.size() as usize == self.size() {
                let all = (0..).zip(clusters.clusters());
                let members = all.flat_map(|(number, cluster)| {
                    cluster.iter().map(move |&member| [member, number])
                });
                places = members.flatten().collect();
            }
            self.broadcast(&mut places, 0)?;
            let shape = group_of(&places).map_err(ErrorKind::Clusters)?;
            let made = self.split_as(Making::Clusters, (Some(0), 0), Some(shape))?;
            let mut world = made.ok_or(ErrorKind::NotAMember)?;
            world.options = self.options.clone();
            Ok(world)
        })
    }

    pub(crate) fn split_as(
        &self,
        making: Making,
        (color, key): (Color, i64),
        shape: Option<Group>,
    ) -> Result<Option<World>> {
        self.is_ready_to_make()?;
        let setting = self.set_aside()?;
        let (offer, place) = (setting.offer, self.own_place()?);
        let record = Record { color, key, offer, place }.encode();
        let mut records = vec![0; self.size() * RECORD_WORDS];
        match self.making(making).all_gather(&record, &mut records) {
            Ok(()) => self.divide(&records, shape, setting),
            Err(error) => {
                self.quarantine(setting)?;
                Err(error)
            }
        }
    }

    /// Returns this world for the call by which its members make another one. It matches no call that makes something else.
    pub(crate) fn making(&self, making: Making) -> World {
        let mut world = self.clone();
        world.options.making = Some(making);
        world
    }

    /// Creates the new world of this process from the records of all members.
    pub(crate) fn divide(
        &self,
        records: &[u64],
        shape: Option<Group>,
        mut setting: Reservation,
    ) -> Result<Option<World>> {
        let records: Vec<Record> = records.chunks_exact(RECORD_WORDS).map(Record::decode).collect();
        if let Some(error) = self.short_member(&records) {
            self.shared.engine.enter()?.withdraw(setting);
            return Err(error);
        }
        let context = records.iter().map(|record| record.offer.context).max().unwrap_or(0);
        let color = records.get(self.rank()).and_then(|record| record.color);
        if context == 0 || color.is_none() {
            if context != 0 {
                setting.gave_context();
            }
            self.shared.engine.enter()?.withdraw(setting);
            return if context == 0 { Err(ErrorKind::TooManyGroups.into()) } else { Ok(None) };
        }
        let mut ranks: Vec<usize> =
            (0..self.size()).filter(|&rank| records[rank].color == color).collect();
        ranks.sort_by_key(|&rank| (records[rank].key, rank));
        let members: Vec<Record> = ranks.iter().map(|&rank| records[rank]).collect();
        let offers = members.iter().map(|record| record.offer).collect();
        let derived = self.shape_of(&members)?;
        let shape = match shape {
            Some(given) => {
                let levels = derived.levels().to_vec();
                given.with_levels(levels).with_sites(derived.sites().to_vec())
            }
            None => derived,
        };
        self.found(context, &ranks, offers, shape, setting).map(Some)
    }

    /// The reason why no group is made, if a member has no memory for it. It is the same member for
    /// all.
    fn short_member(&self, records: &[Record]) -> Option<Error> {
        let is_short = |record: &Record| record.offer.context == NO_MEMORY;
        let rank = records.iter().position(is_short)?;
        let operation = "the making of a group";
        Some(match records.get(self.rank()).is_some_and(is_short) {
            true => NoMemory { bytes: GROUP_BYTES }.into(),
            false => {
                let who = self.names().member(rank, &self.shared.segment);
                ErrorKind::PeerHeapFull { operation, rank, who }.into()
            }
        })
    }

    /// Where this process runs: its published place, else the processors it is bound to now.
    pub(crate) fn own_place(&self) -> Result<MemberPlace> {
        Ok(self.shared.engine.enter()?.own_place(self.shared.slot, bound_to))
    }

    /// The members at these places, and the clusters derived from the places.
    fn shape_of(&self, records: &[Record]) -> Result<Group> {
        let nearness = Settings::from_words(&self.shared.segment.plan().settings).nearness;
        let places: Vec<MemberPlace> = records.iter().map(|record| record.place).collect();
        nearness.group(&places).map_err(|error| ErrorKind::Clusters(error).into())
    }

    /// Returns how the members are divided into clusters, for the architectures that use clusters:
    /// as given to [`World::with_clusters`], else by where the members run
    /// ([`Nearness`](landeck_collectives::Nearness)). The division stays as it was when the world
    /// was created.
    ///
    /// ```no_run
    /// # fn main() -> landeck::Result<()> {
    /// # let world = landeck::Job::join()?.world();
    /// println!("{} clusters", world.clusters()?.clusters().len());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::NotAMember`], [`ErrorKind::Thread`].
    pub fn clusters(&self) -> Result<Group> {
        let mut engine = self.shared.engine.enter()?;
        let shape = engine.shape_or_make(self.group());
        drop(engine);
        shape.map_err(|fault| self.error(WaitError::Collective(fault), None))
    }

    /// Returns the ways of all collective operations by size, for people.
    pub(crate) fn ways(&self) -> Result<String> {
        let mut engine = self.shared.engine.enter()?;
        let ways = engine.ways_or_make(self.group());
        drop(engine);
        ways.map_err(|fault| self.error(WaitError::Collective(fault), None))
    }

    /// Quarantines the memory reserved for a group that this process does not create: other members
    /// may know of it. Members that have created the group and sleep in it are woken to look again.
    pub(crate) fn quarantine(&self, setting: Reservation) -> Result<()> {
        self.shared.engine.enter()?.quarantine(self.shared.slot, setting);
        let segment = &self.shared.segment;
        let is_near = |peer: &&Peer| peer.0 < segment.plan().slots();
        self.members.iter().filter(is_near).for_each(|peer| segment.tell_news(peer.0));
        Ok(())
    }

    /// Reserves memory for a new group.
    pub(crate) fn set_aside(&self) -> Result<Reservation> {
        let names_context = self.rank() == 0;
        if names_context {
            self.await_number()?;
        }
        let mut setting = self.shared.engine.enter()?.set_aside(self.shared.slot, names_context);
        if room::list::<u8>(GROUP_BYTES).is_err() {
            setting.offer.context = NO_MEMORY;
        }
        Ok(setting)
    }

    /// Waits until this host has a number for a group, as long as a daemon can bring more of them. Without one the group
    /// is not made, and all its members are told so.
    pub(crate) fn await_number(&self) -> Result<()> {
        let mut engine = self.shared.engine.enter()?;
        let is_hopeless = engine.has_number() || !engine.endpoint.has_network();
        drop(engine);
        if is_hopeless {
            return Ok(());
        }
        let record = WaitRecord { operation: Operation::Wait, ..WaitRecord::default() };
        let until = deadline_ns(Some(NUMBER_TIME));
        let waited =
            self.shared.wait_until(&record, until, |engine| engine.has_number().then_some(()));
        match waited {
            Ok(()) | Err(WaitError::TimedOut) => Ok(()),
            Err(error) => Err(self.error(error, None)),
        }
    }

    fn found(
        &self,
        context: u32,
        ranks: &[usize],
        offers: Vec<Offer>,
        shape: Group,
        setting: Reservation,
    ) -> Result<World> {
        let members: Arc<[Peer]> = ranks.iter().map(|&rank| self.members[rank]).collect();
        let member =
            ranks.iter().position(|&rank| rank == self.rank()).ok_or(ErrorKind::NotAMember)?;
        let founding =
            Founding { context, members: members.clone(), member: member as u32, offers, shape };
        let founded = self.shared.engine.enter()?.found(founding, setting);
        founded.map_err(|fault| self.error(WaitError::Collective(fault), None))?;
        let lease = Lease::new(self.shared.clone(), context);
        Ok(World::leased(self.shared.clone(), context, members, lease))
    }

    /// Revokes this world: every operation of every member in it ends with [`ErrorKind::Revoked`],
    /// pending operations as well as later ones. Only [`World::agree`] and [`World::shrink`] still
    /// work in a revoked world.
    ///
    /// Every living member learns of it, even if this process ends immediately afterwards. Members
    /// on several hosts tell each other; a computing member learns of it in its next call that
    /// waits.
    ///
    /// # Errors
    /// [`ErrorKind::Thread`].
    pub fn revoke(&self) -> Result<()> {
        self.call("revoke", || {
            let mut engine = self.shared.engine.enter()?;
            let revoked = engine.revoke_group(self.group());
            drop(engine);
            revoked.map_err(|fault| self.error(WaitError::Collective(fault), None))
        })
    }

    /// Agrees on flags with all members: every living member gets the bitwise AND of the flags of
    /// all that contributed. It also works in a revoked world, when members are gone, and when
    /// members die meanwhile. Members on several hosts agree by messages. Among these a member that
    /// the others can no longer reach counts as gone. Only if no member can reach both parts of a
    /// partitioned world may both parts live on and agree separately.
    ///
    /// # Errors
    /// [`ErrorKind::NotAMember`], [`ErrorKind::Excluded`], [`ErrorKind::OutOfStep`],
    /// [`ErrorKind::Heap`], [`ErrorKind::Ended`], [`ErrorKind::Thread`].
    pub fn agree(&self, flags: u32) -> Result<u32> {
        Ok(self.agree_on_failures(flags)?.flags)
    }

    /// Agrees on flags as [`World::agree`] does, and on which members are gone: all members get the
    /// same [`Agreement`].
    ///
    /// # Errors
    /// As [`World::agree`].
    pub fn agree_on_failures(&self, flags: u32) -> Result<Agreement> {
        self.call("agree", || {
            let Agreed { flags, gone, are_acknowledged, .. } =
                self.agreed(flags, Offer::default())?;
            let gone = gone.into_iter().map(|member| member as usize).collect();
            Ok(Agreement { flags, gone, are_acknowledged })
        })
    }

    /// Creates a world of the living members, in the order of their ranks in this world. All of
    /// them get the same world, even if members die meanwhile. If a member of the new world is dead
    /// by then, its operations report it, and the new world can be shrunk in turn.
    ///
    /// # Errors
    /// As [`World::agree`].
    pub fn shrink(&self) -> Result<World> {
        self.call("shrink", || {
            self.await_number()?;
            let setting = self.shared.engine.enter()?.set_aside(self.shared.slot, true);
            let agreed = match self.agreed(u32::MAX, setting.offer) {
                Ok(agreed) => agreed,
                Err(error) => {
                    let mut engine = self.shared.engine.enter()?;
                    match error.kind {
                        // This member contributed nothing, so no other member knows of the
                        // reservation.
                        ErrorKind::NotAMember | ErrorKind::Heap(_) => engine.withdraw(setting),
                        _ => engine.quarantine(self.shared.slot, setting),
                    }
                    return Err(error);
                }
            };
            let is_gone = |rank: &usize| agreed.gone.binary_search(&(*rank as u32)).is_ok();
            let ranks: Vec<usize> = (0..self.size()).filter(|rank| !is_gone(rank)).collect();
            let engine = self.shared.engine.enter()?;
            let offers: Vec<Offer> =
                ranks.iter().map(|&rank| engine.offer_of(self.context, rank as u32)).collect();
            drop(engine);
            let context = offers.iter().map(|offer| offer.context).max().unwrap_or(0);
            if context == 0 {
                self.quarantine(setting)?;
                return Err(ErrorKind::TooManyGroups.into());
            }
            let left: Vec<u32> = ranks.iter().map(|&rank| rank as u32).collect();
            let shape = self.clusters()?.among(&left).map_err(ErrorKind::Clusters)?;
            self.found(context, &ranks, offers, shape, setting)
        })
    }

    fn agreed(&self, flags: u32, offer: Offer) -> Result<Agreed> {
        let mut engine = self.shared.engine.enter()?;
        let begun = engine.bring(self.group(), (flags, offer));
        let board = engine.endpoint.board_of(self.context).unwrap_or(0);
        drop(engine);
        begun.map_err(|fault| self.error(WaitError::Collective(fault), None))?;
        let (operation, context) = (Operation::Collective, self.context);
        let record = WaitRecord { operation, context, board, ..WaitRecord::default() };
        let agreed = self.shared.wait_until(&record, None, |engine| engine.agreed(context));
        self.shared.engine.enter()?.end_agreement();
        match agreed {
            Ok(Ok(agreed)) if agreed.is_mixed => Err(ErrorKind::OutOfStep.into()),
            Ok(Ok(agreed)) => Ok(agreed),
            Ok(Err(fault)) => Err(self.error(WaitError::Collective(fault), None)),
            Err(error) => Err(self.error(error, None)),
        }
    }
}

/// The tag of the messages by which these members create a group under a name: FNV-1a, folded to
/// the bits of a tag. So messages left of a group that was not created, because a member died, are
/// never taken for those of another group.
pub(crate) fn tag_of(name: &[u8], segment: &Segment, members: &[Peer]) -> Tag {
    // All hosts must find the same tag. Members may learn of an incarnation at different times.
    let places = members.iter().flat_map(|&peer| {
        let process = process_of(segment, peer);
        process.segment.0.to_le_bytes().into_iter().chain(process.slot.0.to_le_bytes())
    });
    let hash = name.iter().copied().chain(places).fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    Tag((hash >> 32 ^ hash) as u32 & !ANSWER)
}

/// The clusters that pairs of member and cluster number describe.
fn group_of(places: &[u32]) -> std::result::Result<Group, GroupError> {
    let mut clusters: Vec<Vec<u32>> = Vec::new();
    for place in places.chunks_exact(2) {
        let cluster = (place[1] as usize).min(clusters.len());
        if cluster == clusters.len() {
            clusters.push(Vec::new());
        }
        clusters[cluster].push(place[0]);
    }
    Group::of(clusters)
}

/// The last-level cache that this thread is bound to; 0 if it is bound to none.
fn bound_to() -> u16 {
    CpuSet::of_this_thread().map_or(0, |processors| cache_word(&processors))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_written() {
        let offer = Offer { context: u32::MAX, lines: 1 << 40, board: 7 };
        for color in [None, Some(0), Some(u64::from(u32::MAX) + 1), Some(NO_COLOR - 1)] {
            for key in [i64::MIN, -1, 0, 5] {
                let place = MemberPlace { site: 1, host: u64::MAX, cache: u16::MAX };
                let read = Record::decode(&Record { color, key, offer, place }.encode());
                assert_eq!((read.color, read.key), (color, key));
                assert_eq!((read.offer, read.place), (offer, place));
            }
        }
    }

    #[test]
    fn divisions_survive_their_numbers() {
        assert_eq!(group_of(&[2, 0, 0, 0, 1, 1]), Group::of(vec![vec![2, 0], vec![1]]));
        assert!(group_of(&[u32::MAX; 6]).is_err());
    }
}
