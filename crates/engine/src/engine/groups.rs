//! The groups of a process: how one comes to be, agrees, is revoked and is forgotten.
//!
//! Before members make a group together, each sets memory aside for it and *offers* it to the
//! others: lines of its own, and a page of its pool for the words that all write. When all know
//! all offers, each *founds* the group from the same ones; what is not needed goes back. An offer
//! that others know of, and that comes to nothing here because the operation failed, is *buried*:
//! some may have founded the group, so its memory is never used again.
//!
//! A group that this process has forgotten keeps its memory until all members have forgotten it.

use std::collections::VecDeque;
use std::sync::Arc;

use landeck_board::{Board, BoardPool, LINES_BYTES, LinesPlace, Offer, Part, roster_bytes};
use landeck_channel::Peer;
use landeck_collectives::{Group, MemberPlace};
use landeck_memory::Segment;
use landeck_memory::heap::Block;
use landeck_protocols::agreement::Agreed;

use crate::Engine;
use crate::context::{
    agreement_context, collective_context, context_of, contexts_beside, number_of,
};
use crate::fault::Fault;
use crate::group::GroupState;
use crate::group::holdings::Holdings;
use crate::group::host_boards::{self, Boards};
use crate::identity::GroupRef;
use crate::mismatch::Mismatch;

/// The memory that this process has in groups, or had.
pub(super) struct GroupMemory {
    pool: BoardPool,
    /// Forgotten here, not by all; the oldest first.
    forgotten: VecDeque<Box<GroupState>>,
    /// Never used again.
    buried: Vec<Holdings>,
    /// Numbers of groups that this process took and that no group has got.
    kept_numbers: Vec<u32>,
    /// Members of a group that is no more were out of step, and nobody here was told so.
    pub(super) unnoticed: Option<Mismatch>,
}

/// Memory set aside for a group that is not yet made.
pub struct Reservation {
    /// The offer that the other members are told of.
    pub offer: Offer,
    holdings: Holdings,
    /// The number that the offered context follows from, until a group has got it.
    number: Option<u32>,
}

impl Reservation {
    /// Records that a group got the offered context, which this process does not make itself.
    pub fn gave_context(&mut self) {
        self.number = None;
    }
}

/// A group to be made here.
pub struct Founding {
    /// The context of the new group.
    pub context: u32,
    /// Its processes, in the order of ranks.
    pub members: Arc<[Peer]>,
    /// The rank of this process.
    pub member: u32,
    /// The offers of its members, in their order.
    pub offers: Vec<Offer>,
    /// Its members, divided into clusters.
    pub shape: Group,
}

impl GroupMemory {
    pub(super) fn new(segment: &Segment, slot: u32) -> Self {
        let pool = BoardPool::new(segment, slot);
        let (forgotten, buried, kept_numbers) = (VecDeque::new(), Vec::new(), Vec::new());
        Self { pool, forgotten, buried, kept_numbers, unnoticed: None }
    }

    /// The groups that are forgotten here, and not by all.
    pub(super) fn forgotten_groups(&mut self) -> impl Iterator<Item = &mut GroupState> {
        self.forgotten.iter_mut().map(|group| &mut **group)
    }
}

impl Engine {
    /// Sets memory aside for a new group, as far as there is any: a group without it has no board.
    /// With a context for it if this process is to name one.
    pub fn set_aside(&mut self, slot: u32, names_context: bool) -> Reservation {
        self.reclaim(RECLAIMED_AT_ONCE);
        let mut setting = self.set_aside_now(slot);
        if setting.offer.lines == 0 || setting.offer.board == 0 {
            self.withdraw(setting);
            self.reclaim(usize::MAX);
            setting = self.set_aside_now(slot);
        }
        if names_context {
            setting.number = self.take_number();
            setting.offer.context = setting.number.map_or(0, context_of);
        }
        setting
    }

    /// A context for a new group, which no other group of the job has; 0 when this host has none left.
    pub fn new_context(&mut self) -> u32 {
        self.take_number().map_or(0, context_of)
    }

    /// Keeps a context that was taken for a group and that no process uses, for the next group of this process.
    pub fn keep_context(&mut self, context: u32) {
        self.estate.kept_numbers.extend(number_of(context));
    }

    /// Whether this process has a number for the next group that it names. If its host has none left, the daemon is
    /// asked for more.
    pub fn has_number(&mut self) -> bool {
        if self.estate.kept_numbers.is_empty() {
            let number = self.take_number();
            self.estate.kept_numbers.extend(number);
        }
        !self.estate.kept_numbers.is_empty()
    }

    fn take_number(&mut self) -> Option<u32> {
        let kept = self.estate.kept_numbers.pop();
        let number = kept.or_else(|| self.segment.take_group_number());
        if self.segment.needs_group_numbers() {
            self.endpoint.ask_for_group_numbers();
        }
        number
    }

    fn set_aside_now(&mut self, slot: u32) -> Reservation {
        let mut lines = self.endpoint.allocate(LINES_BYTES as usize).ok();
        let place =
            lines.as_mut().map(|block| LinesPlace::in_block(&self.segment, slot, block).offset);
        let board = self.estate.pool.take();
        let offer = Offer { context: 0, lines: place.unwrap_or(0), board: board.unwrap_or(0) };
        Reservation { offer, holdings: Holdings { lines, board, roster: None }, number: None }
    }

    /// Takes back what nobody will use.
    pub fn withdraw(&mut self, setting: Reservation) {
        self.estate.kept_numbers.extend(setting.number);
        self.give_back(setting.holdings);
    }

    fn give_back(&mut self, Holdings { lines, board, roster }: Holdings) {
        drop((lines, roster));
        if let Some(place) = board {
            self.estate.pool.give_back(place);
        }
    }

    /// Abandons a reservation whose memory other processes may still access: this process refuses all calls there, and never
    /// uses the memory again.
    pub fn quarantine(&mut self, slot: u32, setting: Reservation) {
        if setting.offer.lines != 0 {
            LinesPlace { slot, offset: setting.offer.lines }.refuse(&self.segment);
        }
        self.estate.buried.push(setting.holdings);
    }

    /// Makes a group of the members' offers. It has a board if all have offered lines and all are
    /// processes of this host, and its first member has offered a page. Where they are on several hosts, each host has a
    /// board on these terms, or none has.
    ///
    /// # Errors
    /// [`Fault::BrokenBoard`].
    pub fn found(&mut self, founding: Founding, mut setting: Reservation) -> Result<(), Fault> {
        let Founding { context, members, member, offers, shape } = founding;
        // All members found the group from the same offers, so none of them uses another context.
        let unused = setting.number.take().filter(|&number| context_of(number) != context);
        self.estate.kept_numbers.extend(unused);
        let shared = offers.first().map_or(0, |offer| offer.board);
        let hosts = host_boards::hosts(&shape);
        let leads = match &hosts {
            Some(hosts) => hosts.iter().any(|host| host[0] == member),
            None => member == 0,
        };
        if !leads && let Some(place) = setting.holdings.board.take() {
            self.estate.pool.give_back(place);
        }
        let boards = match hosts.filter(|hosts| host_boards::have_boards(hosts, &offers)) {
            Some(hosts) => self.open_boards_of_hosts((&hosts, member), &members, &offers),
            None => self.open_board(shared, &members, member, &offers).map(Boards::Whole),
        };
        let boards = match boards {
            Ok(boards) => boards,
            Err(fault) => {
                let own = members.get(member as usize).map_or(0, |peer| peer.0);
                self.quarantine(own, setting);
                return Err(fault);
            }
        };
        let mut holdings = std::mem::take(&mut setting.holdings);
        if let (0, Boards::Whole(Some(board))) = (member, &boards) {
            holdings.roster = self.enroll(board, context, &members, &offers);
        }
        let has_board = matches!(boards, Boards::Whole(Some(_)));
        let plan = self.segment.plan();
        let group = GroupState::shaped(context, members.clone(), member, shape, plan, boards);
        let mut group = group.with_links(&self.segment);
        match group.any_board_mut() {
            Some(board) => {
                board.claim(context);
                group.holdings = holdings;
            }
            None => self.give_back(holdings),
        }
        if has_board {
            self.endpoint.set_board(context, collective_context(context), shared);
        }
        if !has_board {
            self.open_council(context, &members, member);
        }
        self.endpoint.set_members(context, members.to_vec());
        self.keep_group(context, group);
        Ok(())
    }

    fn open_board(
        &self,
        shared: u64,
        members: &[Peer],
        member: u32,
        offers: &[Offer],
    ) -> Result<Option<Board>, Fault> {
        let is_near = |peer: &Peer| peer.0 < self.segment.plan().slots();
        let has_lines = offers.iter().all(|offer| offer.lines != 0);
        if shared == 0 || !has_lines || !members.iter().all(is_near) {
            return Ok(None);
        }
        let lines = lines_of(members, offers);
        let board = Board::open(&self.segment, shared, &lines, member);
        board.map(Some).map_err(|broken| Fault::BrokenBoard { member: broken.member })
    }

    fn open_boards_of_hosts(
        &self,
        (hosts, member): (&[Vec<u32>], u32),
        members: &[Peer],
        offers: &[Offer],
    ) -> Result<Boards, Fault> {
        let offer = |rank: u32| offers.get(rank as usize).copied().unwrap_or_default();
        let shared = |first| offer(first).board;
        let lines = |rank, slot| LinesPlace { slot, offset: offer(rank).lines };
        let local = host_boards::open(&self.segment, (hosts, member), members, shared, lines);
        local.map(Boards::OfHosts)
    }

    /// Writes down who the members are, if there is room: nobody depends on it.
    fn enroll(
        &mut self,
        board: &Board,
        context: u32,
        members: &[Peer],
        offers: &[Offer],
    ) -> Option<Block> {
        let mut block = self.endpoint.allocate(roster_bytes(members.len())).ok()?;
        board.enroll(context, &lines_of(members, offers), &mut block);
        Some(block)
    }

    /// Forgets a group: nothing is done in it any more.
    pub fn forget(&mut self, context: u32) {
        let Some(mut group) = self.groups.remove(&context) else {
            self.forget_contexts(context);
            return;
        };
        // After that, the lines of others may be those of another group.
        let unnoticed = group.unnoticed(&mut self.endpoint);
        self.estate.unnoticed = self.estate.unnoticed.or(unnoticed);
        if let Some(board) = group.any_board() {
            board.forget();
        }
        self.estate.forgotten.push_back(group);
        self.reclaim(RECLAIMED_AT_ONCE);
    }

    /// Looks at all forgotten groups.
    pub(super) fn reclaim_all(&mut self) {
        self.reclaim(self.estate.forgotten.len());
    }

    /// Looks at some of the forgotten groups, the oldest first, whether all have forgotten them.
    fn reclaim(&mut self, most: usize) {
        for _ in 0..most.min(self.estate.forgotten.len()) {
            let Some(mut group) = self.estate.forgotten.pop_front() else { return };
            let context = group.place.context;
            let is_held = group.any_board().is_some_and(|board| !board.is_forgotten());
            if is_held || self.goes_on_in(context) {
                self.estate.forgotten.push_back(group);
                continue;
            }
            self.forget_contexts(context);
            let holdings = std::mem::take(&mut group.holdings);
            drop(group);
            self.give_back(holdings);
        }
    }

    /// Whether a collective operation of a group goes on, whose messages are still needed.
    fn goes_on_in(&self, context: u32) -> bool {
        let is_in_it = |id| self.running.get(id).is_some_and(|it| it.place().context == context);
        self.running.active().iter().any(|&id| is_in_it(id))
    }

    fn forget_contexts(&mut self, context: u32) {
        for beside in contexts_beside(context) {
            self.endpoint.forget_context(beside);
        }
        if self.leave_council(context) {
            self.endpoint.forget_context(agreement_context(context));
        }
    }

    /// Revokes a group, for all members: over its board, or by messages.
    ///
    /// # Errors
    /// [`Fault::NotAMember`].
    pub fn revoke_group(&mut self, of: GroupRef<'_>) -> Result<(), Fault> {
        match &self.group(of)?.board {
            Some(board) => board.revoke(),
            None => {
                self.open_council(of.context, of.members, of.rank as u32);
                self.revoke_by_messages(of.context);
            }
        }
        self.revoke(of.context);
        Ok(())
    }

    /// Brings this member's part to the next agreement of a group.
    ///
    /// # Errors
    /// [`Fault::NotAMember`], [`Fault::Heap`].
    pub fn bring(&mut self, of: GroupRef<'_>, (flags, offer): (u32, Offer)) -> Result<(), Fault> {
        let GroupRef { context, members, rank } = of;
        self.endpoint.refresh();
        let acknowledged = self.endpoint.acknowledged_among(members);
        if self.group(of)?.board.is_none() {
            self.open_council(context, members, rank as u32);
            self.bring_to_council(context, flags, offer)?;
            self.agreeing += 1;
            return Ok(());
        }
        let (groups, endpoint) = (&mut self.groups, &mut self.endpoint);
        let board = groups.get_mut(&context).and_then(|group| group.board.as_mut());
        let board = board.ok_or(Fault::NoBoard)?;
        board
            .bring(&Part { flags, acknowledged, offer }, |bytes| endpoint.allocate(bytes))
            .map_err(Fault::Heap)?;
        self.agreeing += 1;
        Ok(())
    }

    /// The result of a group's agreement; none while others are missing.
    pub fn agreed(&mut self, context: u32) -> Option<Result<Agreed, Fault>> {
        self.endpoint.refresh();
        let Some(board) = self.groups.get_mut(&context)?.board.as_mut() else {
            return self.agreed_by_messages(context);
        };
        let agreed = board.agreed();
        agreed.map_err(|broken| Fault::BrokenBoard { member: broken.member }).transpose()
    }

    /// Nobody waits for an agreement any more, of those who did.
    pub fn end_agreement(&mut self) {
        self.agreeing = self.agreeing.saturating_sub(1);
    }

    /// The offer of a member in the last agreement of a group.
    pub fn offer_of(&self, context: u32, member: u32) -> Offer {
        match self.groups.get(&context).and_then(|group| group.board.as_ref()) {
            Some(board) => board.offer(member),
            None => self.offer_by_messages(context, member),
        }
    }

    /// The place where this process runs: as its starter has said, else the cache that `bound_to` finds this thread bound
    /// to when it is first asked (0 for none).
    pub fn own_place(&mut self, slot: u32, bound_to: impl FnOnce() -> u16) -> MemberPlace {
        let known = self.places.of_slot(slot);
        if known.cache != 0 {
            return known;
        }
        let cache = *self.own_cache.get_or_insert_with(bound_to);
        MemberPlace { cache, ..known }
    }

    /// How a group is divided into clusters.
    ///
    /// # Errors
    /// [`Fault::NotAMember`].
    pub fn shape_or_make(&mut self, of: GroupRef<'_>) -> Result<Group, Fault> {
        Ok(self.group(of)?.shape().clone())
    }

    /// The ways of all operations of a group by size, for people. All members find the same.
    ///
    /// # Errors
    /// [`Fault::NotAMember`].
    pub fn ways_or_make(&mut self, of: GroupRef<'_>) -> Result<String, Fault> {
        Ok(self.group(of)?.ways())
    }

    /// How a group is divided into clusters, if that is known here.
    pub fn shape(&self, context: u32) -> Option<Group> {
        self.groups.get(&context).map(|group| group.shape().clone())
    }
}

/// Where the members' lines are.
fn lines_of(members: &[Peer], offers: &[Offer]) -> Vec<LinesPlace> {
    let place = |(peer, offer): (&Peer, &Offer)| LinesPlace { slot: peer.0, offset: offer.lines };
    members.iter().zip(offers).map(place).collect()
}

/// Forgotten groups looked at when another one is made or forgotten.
const RECLAIMED_AT_ONCE: usize = 4;
