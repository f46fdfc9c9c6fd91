//! A group, as a process knows it for its collective operations.

use std::collections::BTreeMap;
use std::sync::Arc;

use landeck_board::Board;
use landeck_channel::Peer;
use landeck_collectives::board_schedule::{BoardGroup, BoardSchedule};
use landeck_collectives::signature::DIRECT_MEMBERS_MAX;
use landeck_collectives::{
    BoardStyle, CostParameters, Facts, Group, GroupError, Link, Links, Operation, Settings,
    Signature, Table, Task, Walk, Way, WayRequest, is_derived_over_hosts, segments_of,
};
use landeck_kernel::{Endpoint, Failure};
use landeck_memory::message_cells::CELL_BYTES;
use landeck_memory::{Segment, SegmentPlan};
use landeck_transports::SharedMemory;

use crate::board::call::{BoardCall, Chunks};
use crate::board::{AtBoard, Protocol};
use crate::call::Call;
use crate::call::facts::CallFacts;
use crate::combine::Combiner;
use crate::context::collective_context;
use crate::fault::Fault;
use crate::group::departure::Departure;
use crate::group::driving::{Direct, Driving};
use crate::group::holdings::Holdings;
use crate::group::host_boards::{Boards, LocalBoard};
use crate::group::places::Places;
use crate::group::plans::{Plans, Prepared};
use crate::identity::{GroupIdentity, ToldSpans};
use crate::inline::InlineCollective;
use crate::mismatch::{Mismatch, formed};
use crate::route::{Circumstances, Polling, Route, decide};

pub(crate) mod departure;
pub(crate) mod driving;
pub(crate) mod holdings;
pub(crate) mod host_boards;
mod mismatches;
pub(crate) mod places;
pub(crate) mod plans;
pub(crate) mod table;

/// A group and its collective operations so far. All members keep it alike: they call the same
/// operations in the same order.
pub(crate) struct GroupState {
    pub(crate) place: Arc<GroupIdentity>,
    /// Which way each call takes; with it the group as architectures see it.
    table: Table,
    plans: Plans,
    pub(super) next_number: u32,
    /// The last calls with their forms, to recognise what others called in their place.
    called: [u32; CALLS_KEPT],
    /// The calls that other waiting members have said they are in, the last of each, and these with their forms.
    pub(super) remarks: Vec<(Peer, (Signature, u32))>,
    /// The span that each other member has told last, but for those that have told none.
    spans: BTreeMap<u32, u32>,
    /// Members are out of step: nothing that follows can be right.
    pub(crate) mismatch: Option<Mismatch>,
    /// A member has left, and the operations from a number on lack it: members of a group without a board come to none
    /// of them.
    pub(crate) departure: Option<Departure>,
    /// Where all members are on one host.
    pub(crate) board: Option<Board>,
    /// Where the members are on several hosts, and several of them on this one.
    pub(crate) local: Option<Box<LocalBoard>>,
    /// There are more processes than processors.
    is_crowded: bool,
    spare: Option<Box<AtBoard>>,
    /// The plans over the board that were used last, by what they are for.
    board_plans: Vec<(u64, Arc<Walk>, Protocol)>,
    pub(crate) combiner: Combiner,
    /// The memory of this process that the group is made of.
    pub(super) holdings: Holdings,
}

/// The most bytes that a member sends, and that it has of others, in a started operation that goes directly.
const DIRECT_BYTES_MAX: u64 = 64 << 10;
const CALLS_KEPT: usize = 64;
/// No call.
const NOTHING: u32 = u32::MAX;
/// Plans over the board kept at hand: few, because they are looked through in order.
const BOARD_PLANS_MAX: usize = 16;

impl GroupState {
    #[cfg(test)]
    /// A group that has done nothing yet. `places` says where its peers run, as far as all members know it alike.
    ///
    /// # Errors
    /// [`GroupError::Empty`].
    pub(crate) fn new(
        context: u32,
        members: Arc<[Peer]>,
        member: u32,
        plan: &SegmentPlan,
        places: &Places,
        boards: impl Into<Boards>,
    ) -> Result<Self, GroupError> {
        let shape = Self::shape_of(&members, plan, places)?;
        Ok(Self::shaped(context, members, member, shape, plan, boards.into()))
    }

    /// How members are divided into clusters, as far as all of them know alike where they run.
    ///
    /// # Errors
    /// [`GroupError::Empty`].
    pub(crate) fn shape_of(
        members: &[Peer],
        plan: &SegmentPlan,
        places: &Places,
    ) -> Result<Group, GroupError> {
        match places.of(members) {
            Some(places) => Settings::from_words(&plan.settings).nearness.group(&places),
            None => Group::whole(members.len() as u32),
        }
    }

    /// A group that has done nothing yet, with its members divided into clusters.
    pub(crate) fn shaped(
        context: u32,
        members: Arc<[Peer]>,
        member: u32,
        shape: Group,
        plan: &SegmentPlan,
        boards: Boards,
    ) -> Self {
        let table = Table::new(facts(shape, &members, plan, &boards));
        let (board, local) = match boards {
            Boards::Whole(board) => (board, None),
            Boards::OfHosts(local) => (None, local),
        };
        let place = Arc::new(GroupIdentity {
            context,
            collective_context: collective_context(context),
            members,
            member,
            told: ToldSpans::default(),
        });
        let (plans, called) = (Plans::default(), [NOTHING; CALLS_KEPT]);
        Self {
            place,
            table,
            plans,
            next_number: 0,
            called,
            remarks: Vec::new(),
            spans: BTreeMap::new(),
            mismatch: None,
            departure: None,
            board,
            local,
            is_crowded: plan.is_oversubscribed(),
            spare: None,
            board_plans: Vec::new(),
            combiner: Combiner::default(),
            holdings: Holdings::default(),
        }
    }

    /// Returns this group, which chooses by the measured links of its hosts from now on.
    pub(crate) fn with_links(mut self, segment: &Segment) -> Self {
        let facts = self.table.facts();
        let links = links_of(segment, &self.place.members, facts);
        if !links.is_empty() {
            self.table = Table::new(Facts { links, ..facts.clone() });
        }
        self
    }

    /// The ways of all operations by size, for people.
    pub(crate) fn ways(&self) -> String {
        self.table.to_string()
    }

    /// Whether its board keeps what this process has deposited.
    pub(crate) fn keeps(&self) -> bool {
        self.any_board().is_some_and(|board| board.kept_bytes() > 0)
    }

    /// The board of all members, or of those on this host.
    pub(crate) fn any_board(&self) -> Option<&Board> {
        self.board.as_ref().or_else(|| Some(&self.local.as_ref()?.board))
    }

    /// The board of all members, or of those on this host, to do something there.
    pub(crate) fn any_board_mut(&mut self) -> Option<&mut Board> {
        match &mut self.board {
            Some(board) => Some(board),
            None => Some(&mut self.local.as_mut()?.board),
        }
    }

    /// The group as architectures see it.
    pub(crate) fn shape(&self) -> &Group {
        &self.table.facts().group
    }

    /// How many members there are.
    pub(crate) fn size(&self) -> u32 {
        self.table.facts().group.size()
    }

    /// Whether the members share processors.
    pub(crate) fn is_oversubscribed(&self) -> bool {
        self.is_crowded
    }

    /// Whether the members are on several hosts, and have boards there.
    #[inline]
    pub(crate) fn hosts_have_boards(&self) -> bool {
        self.table.facts().hosts_have_boards
    }

    /// The facts that decide the route of a call which goes on in the table of operations.
    pub(crate) fn facts<'c>(&self, call: &'c Call) -> CallFacts<'c> {
        CallFacts { request: self.request(call), ..call.facts() }
    }

    /// The question for the table. Over hosts the mean counts of lengths that differ and that all members know. On one host
    /// they do not count, since each block is looked at by itself there.
    fn request(&self, call: &Call) -> WayRequest {
        let request = call.request();
        match call.mean_bytes(self.size()).filter(|_| self.hosts_have_boards()) {
            None => request,
            bytes => WayRequest { bytes, ..request },
        }
    }

    /// The route of a call with these facts, and with an inline form if its data are short.
    #[inline(always)]
    pub(crate) fn route<'i, 'a>(
        &mut self,
        facts: CallFacts<'_>,
        inline: Option<&'i mut InlineCollective<'a>>,
        polling: Polling,
        is_idle: bool,
    ) -> Route<'i, 'a> {
        let here = Circumstances {
            polling,
            is_idle,
            has_board: self.board.is_some(),
            is_oversubscribed: self.is_crowded,
            board_bytes: self.table.facts().board_bytes,
        };
        let way = match facts.way {
            Some(way) => way,
            None => &self.table.way(&facts.request).way,
        };
        decide(way, inline, facts.fits_board_call, here)
    }

    /// The longest block of a call that goes over the board, where blocks differ in length: so many as a
    /// member lays down there have room together. All members find the same.
    #[inline]
    pub(crate) fn longest_on_board(&self, operation: Operation) -> u64 {
        let together = self.table.facts().board_bytes;
        match operation {
            // Each with a word in front of all, which says where it ends.
            Operation::Scatter | Operation::AllToAll => {
                (together / u64::from(self.size())).saturating_sub(8)
            }
            _ => together,
        }
    }

    /// Begins an operation with short data at the board.
    #[inline(always)]
    pub(crate) fn begin_inline(&mut self, inline: &mut InlineCollective<'_>, style: BoardStyle) {
        let call = self.count(inline.operation, inline.root, false).call();
        let Some(board) = &mut self.board else { return };
        let (number, signature) = board.begin(call);
        let together = style == BoardStyle::Together;
        let awaits = inline.operation == Operation::Barrier;
        let protocol = Protocol::of_inline(together, awaits, self.size(), self.is_crowded);
        inline.begin(number, signature, style, protocol);
    }

    /// An operation over the board, with its number.
    ///
    /// # Errors
    /// [`Fault::NoBoard`].
    #[inline]
    pub(crate) fn board_call(
        &mut self,
        call: &Call,
        style: BoardStyle,
    ) -> Result<BoardCall, Fault> {
        let plan = self.board_plan(call, style);
        let Some(board) = &self.board else { return Err(Fault::NoBoard) };
        let group = BoardGroup {
            size: self.size(),
            is_oversubscribed: self.is_crowded,
            handoff_bytes: if board.has_cells() { CELL_BYTES } else { 0 },
            cache_bytes: self.table.facts().settings.figures.cache_bytes(),
        };
        let schedule = match call.options.is_checked {
            true => BoardSchedule::AT_ONCE,
            false => BoardSchedule::of(call.operation, style, call.known_bytes(), group),
        };
        let signature = match schedule.chunks {
            1 => self.count_call(call, call.root, 0),
            chunks => self.count_chunks(call.operation, chunks),
        };
        let Some(board) = &mut self.board else { return Err(Fault::NoBoard) };
        let begun = (Chunks::begin(board, signature.call(), schedule.chunks), schedule);
        let at = self.spare.take().unwrap_or_default();
        let data = (call.known_bytes(), call.check_of(&Way::Board(style)));
        Ok(BoardCall::new(at, begun, signature, plan, data))
    }

    /// The plan for a call over the board, and how members come to it.
    #[inline]
    fn board_plan(&mut self, call: &Call, style: BoardStyle) -> (Arc<Walk>, Protocol) {
        let form = call.operation as u64 | (style as u64) << 8 | u64::from(call.in_place) << 16;
        let key = form | u64::from(call.root) << 32;
        if let Some((_, walk, protocol)) = self.board_plans.iter().find(|(known, ..)| *known == key)
        {
            return (walk.clone(), *protocol);
        }
        let (prepared, _) = self.plan(call, &Way::Board(style));
        let protocol = Protocol::of(call.operation, prepared.walk.plan(), self.is_crowded);
        if self.board_plans.len() >= BOARD_PLANS_MAX {
            self.board_plans.remove(0);
        }
        self.board_plans.push((key, prepared.walk.clone(), protocol));
        (prepared.walk, protocol)
    }

    /// Says on the board that this member comes to nothing any more: the group is broken.
    #[cold]
    pub(super) fn refuse(&mut self) {
        if let Some(board) = self.any_board_mut() {
            board.refuse_next();
        }
    }

    /// It, for its next operation, unless it has failed.
    #[inline]
    pub(super) fn ready(
        &mut self,
        failure: Option<Failure>,
        endpoint: &Endpoint<SharedMemory>,
    ) -> Result<&mut Self, Fault> {
        if let Some(failure) = failure {
            self.refuse();
            return Err(failure.into());
        }
        match (self.mismatch, self.departure) {
            (Some(mismatch), _) => Err(Fault::Mismatch(mismatch)),
            (None, Some(departure))
                if departure.concerns(self.next_number)
                    && departure.is_recorded(&self.place, endpoint) =>
            {
                self.refuse();
                Err(departure.failure(&self.place).into())
            }
            (None, _) => Ok(self),
        }
    }

    /// Takes back the memory of a board call that is complete.
    #[inline]
    pub(crate) fn end_board_call(&mut self, board_call: BoardCall) {
        self.spare = Some(board_call.into_inner());
    }

    /// The plan for a call by a way, and in how many segments it has the data.
    pub(crate) fn plan(&mut self, call: &Call, way: &Way) -> (Prepared, u32) {
        let size = self.size();
        let chosen = match (way, &call.options.way) {
            (Way::Messages { .. } | Way::Hosts { .. }, None) => {
                let choice = self.table.way(&self.request(call));
                Some((choice.segments, choice.order))
            }
            _ => None,
        };
        let segments = match (way, chosen) {
            (Way::Hosts { .. }, Some((segments, _))) => segments,
            (Way::Hosts { .. }, None) => {
                let segments = self.table.segments_by(&self.request(call), way);
                segments_of(&call.task(segments), way, self.shape())
            }
            _ if !call.operation.has_segments() => 1,
            (Way::Messages { split: true, .. }, _) => size,
            (Way::Board(style), _) if style.divides(call.operation) => size,
            _ => chosen.map_or(1, |(segments, _)| segments),
        };
        let usual = call.task(segments);
        let task = Task { order: chosen.map_or(usual.order, |(_, order)| order), ..usual };
        let group = &self.table.facts().group;
        let prepared = self.plans.of(&task, way, group, self.place.member);
        (prepared.clone(), segments)
    }

    /// How this member takes part in a started operation that goes directly to all members of other hosts; `None` where the
    /// call takes another way. All members find the same.
    pub(crate) fn direct(&mut self, call: &Call) -> Option<Direct> {
        let facts = self.table.facts();
        let is_usual = call.options.way.is_none()
            && !call.options.is_checked
            && facts.settings.overrides.preset(call.operation).is_none();
        let knows_lengths = !call.is_varying || call.known_blocks().is_some();
        // Between sites each message counts more than the time of a driver that computes.
        let is_one_site = facts.group.sites().is_empty();
        let may =
            call.is_started && knows_lengths && is_usual && facts.hosts_have_boards && is_one_site;
        if !may || self.size() > DIRECT_MEMBERS_MAX {
            return None;
        }
        let hosts: Arc<[Vec<u32>]> = facts.group.hosts().into();
        let has_one_source = matches!(call.operation, Operation::Broadcast | Operation::Scatter);
        let brought_bytes = |host: &Vec<u32>| match call.is_varying {
            true => host
                .iter()
                .fold(0u64, |sum, &member| sum.saturating_add(call.known_block_bytes(member))),
            false => call.known_bytes().saturating_mul(host.len() as u64),
        };
        let largest_bytes = match has_one_source {
            true => call.known_bytes(),
            false => hosts.iter().map(brought_bytes).max()?,
        };
        if largest_bytes.saturating_mul(u64::from(self.size())) > DIRECT_BYTES_MAX {
            return None;
        }
        let order = self.table.way(&self.request(call)).order;
        let task = Task { order, ..call.task(1) };
        let group = &self.table.facts().group;
        let member = self.place.member;
        let mut plan = |drives| self.plans.of_started(&task, drives, group, member);
        let own = hosts.iter().find(|host| host.contains(&member))?;
        Some(match (has_one_source, own.len()) {
            (true, _) => Direct { plan: plan(false), driving: None },
            (false, 1) => Direct { plan: plan(true), driving: Some(Driving::alone(hosts)) },
            (false, _) => {
                let drives = plan(true);
                Direct { plan: plan(false), driving: Some(Driving::open(hosts, drives)) }
            }
        })
    }

    /// A way that goes to no board of all members, as this group can take it: what its hosts have no boards for goes over
    /// messages between all members. All members find the same.
    pub(crate) fn without_whole_board(&self, call: &Call, way: &Way) -> Way {
        let knows_lengths = !call.is_varying || call.known_blocks().is_some();
        let are_there = self.table.facts().hosts_have_boards && knows_lengths;
        match way {
            Way::Hosts { architecture, split }
                if !are_there || !is_derived_over_hosts(&call.task(1), self.shape()) =>
            {
                let (architecture, split) = (architecture.clone(), *split);
                Way::Messages { architecture, release: None, split }
            }
            way => way.clone(),
        }
    }

    /// The form of a call that its messages tell: 0 where it goes as the shortest data of its kind do.
    pub(crate) fn form_told(&mut self, call: &Call, prepared: &Prepared) -> u32 {
        let plan = prepared.walk.plan();
        let is_usual = match &call.options.way {
            _ if prepared.form == 0 => true,
            None => self.table.usual_form(&self.request(call)) == prepared.form,
            // The length decides nothing but the segments then.
            Some(_) if plan.segments == 1 => true,
            Some(way) => {
                let shortest = WayRequest { bytes: Some(1), ..self.request(call) };
                self.table.segments_by(&shortest, way) == plan.segments
            }
        };
        if is_usual { 0 } else { prepared.form }
    }

    /// The root of a call. Over hosts, a call without one states its segments: members whose lengths imply other numbers of
    /// them go to their boards more or less often.
    pub(crate) fn root_or_rounds(&self, call: &Call, segments: u32) -> u32 {
        let goes_in_rounds = self.table.facts().hosts_have_boards && segments > 1;
        if goes_in_rounds && !call.operation.has_root() { segments } else { call.root }
    }

    /// Counts a call.
    pub(crate) fn count(&mut self, operation: Operation, root: u32, is_checked: bool) -> Signature {
        let usual = Signature::new(self.next_number, operation, root);
        self.count_as(if is_checked { usual.checked() } else { usual }, 0)
    }

    /// Counts a call that goes in this form.
    pub(crate) fn count_call(&mut self, call: &Call, root_or_rounds: u32, form: u32) -> Signature {
        let usual = Signature::new(self.next_number, call.operation, root_or_rounds).by_way(form);
        let stated = call.options.making.map_or(usual, |making| usual.making(making));
        let signature = if call.options.is_checked { stated.checked() } else { stated };
        self.count_as(signature, form)
    }

    /// Counts a started call that goes directly.
    pub(crate) fn count_direct(&mut self, call: &Call) -> Signature {
        let direct = Signature::new(self.next_number, call.operation, call.root).direct();
        self.count_as(call.options.making.map_or(direct, |making| direct.making(making)), 0)
    }

    fn count_as(&mut self, signature: Signature, form: u32) -> Signature {
        self.called[self.next_number as usize % CALLS_KEPT] = formed(signature, form);
        self.next_number = self.next_number.wrapping_add(1);
        signature
    }

    /// Counts the chunks of a call; returns the signature of the first.
    fn count_chunks(&mut self, operation: Operation, chunks: u32) -> Signature {
        let first = self.count(operation, chunks, false);
        for _ in 1..chunks {
            self.count(operation, chunks, false);
        }
        first
    }

    /// The call of this member with this number, if that was not long ago.
    pub(super) fn call_of(&self, number: u32) -> Option<Signature> {
        self.formed_call_of(number).map(|called| Signature::of_call(number, called))
    }

    /// That call with its form.
    fn formed_call_of(&self, number: u32) -> Option<u32> {
        let ago = self.next_number.wrapping_sub(number);
        let is_kept = (1..=CALLS_KEPT as u32).contains(&ago);
        let called = self.called[number as usize % CALLS_KEPT];
        (is_kept && called != NOTHING).then_some(called)
    }

    /// The call of this member that another member contradicts by what it says of its own call, with its form.
    pub(super) fn contradicts_formed(&self, theirs: Signature, formed: u32) -> Option<Signature> {
        let ours = self.formed_call_of(theirs.number()).filter(|&ours| ours != formed)?;
        Some(Signature::of_call(theirs.number(), ours))
    }

    /// The call of this member that the call of another member contradicts.
    pub(crate) fn contradicts(&self, theirs: Signature) -> Option<Signature> {
        self.call_of(theirs.number()).filter(|&ours| ours != theirs)
    }
}

/// The facts by which all members of a group choose the same ways. Processes, processors and heaps differ from host to
/// host, so members on several hosts go by the group itself and by the settings, which the launcher gives to all hosts.
fn facts(group: Group, members: &[Peer], plan: &SegmentPlan, boards: &Boards) -> Facts {
    let settings = Settings::from_words(&plan.settings);
    let is_here = members.iter().all(|peer| peer.0 < plan.slots());
    match is_here {
        true => {
            let (processes, processors) = (plan.processes, plan.cpus);
            let board_bytes = plan.deposit_bytes();
            let has_board = matches!(boards, Boards::Whole(Some(_)));
            Facts {
                group,
                processes,
                processors,
                sharing_hosts: 1,
                has_board,
                hosts_have_boards: false,
                board_bytes,
                settings,
                links: Links::default(),
            }
        }
        false => {
            // The members on each host count by themselves.
            let own = u32::try_from(settings.figures.processors).unwrap_or(u32::MAX);
            let hosts = group.hosts().len() as u32;
            let (processors, sharing_hosts) = settings
                .sharing
                .map_or((own, 1), |sharing| (sharing.processors, sharing.hosts.min(hosts)));
            let (processes, has_board, board_bytes) = (1, false, 0);
            let hosts_have_boards = matches!(boards, Boards::OfHosts(_));
            Facts {
                group,
                processes,
                processors,
                sharing_hosts,
                has_board,
                hosts_have_boards,
                board_bytes,
                settings,
                links: Links::default(),
            }
        }
    }
}

/// The measured links of the hosts of a group. The table of links is the same in the segments of all hosts, so all members
/// find the same, if they know alike where each of them runs.
fn links_of(segment: &Segment, members: &[Peer], facts: &Facts) -> Links {
    let (group, figures): (_, &CostParameters) = (&facts.group, &facts.settings.figures);
    let is_known = group.levels().first().is_some_and(|hosts| hosts.len() == members.len());
    let slots = segment.plan().slots();
    let number_of = |member: u32| match members.get(member as usize)?.0.checked_sub(slots) {
        Some(far) => Some(segment.far_record(far).host_number),
        None => segment.own_host_number(),
    };
    let numbers: Option<Vec<u16>> = group.hosts().iter().map(|host| number_of(host[0])).collect();
    let mut links = Links::default();
    for (high, one) in numbers.iter().filter(|_| is_known).flatten().enumerate() {
        for (low, other) in numbers.iter().flatten().take(high).enumerate() {
            if let Some(link) = Link::from_words(segment.link(*one, *other), figures) {
                links.set(low, high, link);
            }
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use landeck_memory::{FarProcess, FarRecord};

    use super::*;

    #[test]
    fn ways_are_those_that_the_segment_asks_for() {
        let asked = crate::call::options::CallOptions::default();
        let way = |text: &str| {
            let overrides = text.parse().unwrap();
            let settings = Settings { overrides, ..Settings::default() }.to_words();
            let plan = SegmentPlan { settings, ..SegmentPlan::new(1, 2) };
            let mut group =
                GroupState::new(5, [Peer(0), Peer(1)].into(), 0, &plan, &Places::default(), None)
                    .unwrap();
            let call = Call::new(Operation::Barrier, &asked);
            group.route(call.facts(), None, Polling::Never, true).way().to_string()
        };
        assert_eq!((way(""), way("scan=flat")), ("butterfly".into(), "butterfly".into()));
        assert_eq!((way("ring"), way("barrier=flat")), ("ring".into(), "flat".into()));
    }

    #[test]
    fn another_call_of_the_same_number_is_a_contradiction() {
        let mut group = GroupState::new(
            5,
            [Peer(0), Peer(1)].into(),
            0,
            &SegmentPlan::new(1, 2),
            &Places::default(),
            None,
        )
        .unwrap();
        let first = group.count(Operation::Broadcast, 1, false);
        let theirs = Signature::new(0, Operation::Broadcast, 0);
        assert_eq!((group.contradicts(theirs), group.contradicts(first)), (Some(first), None));
        let ahead = Signature::new(1, Operation::Barrier, 0);
        assert_eq!(group.contradicts(ahead), None);
        (0..CALLS_KEPT).for_each(|_| {
            group.count(Operation::Barrier, 0, false);
        });
        assert_eq!(group.contradicts(theirs), None, "long ago");
    }

    /// The segment of one host of a job with the ranks 0, 2 and 4 on one host, and 1 and 3 on another with other
    /// processors and heaps.
    fn segment_of(host: usize) -> Segment {
        let (own, elsewhere) =
            [([0, 2, 4].as_slice(), [1, 3].as_slice()), (&[1, 3], &[0, 2, 4])][host];
        let plan = SegmentPlan::new(10 + host as u64, own.len() as u32);
        let plan = SegmentPlan {
            ranks: 5,
            far: 8,
            hosts: 2,
            cpus: [1, 64][host],
            heap_bytes_per_process: [1 << 20, 1 << 22][host],
            ..plan
        };
        let segment = Segment::local(&plan);
        (0..).zip(own).for_each(|(slot, &rank)| {
            segment.set_cache(slot, 1);
            segment.set_peer_of_rank(rank, slot);
        });
        for (far, &rank) in (0..).zip(elsewhere) {
            let process = FarProcess { host: 11 - host as u64, slot: far, incarnation: 1 };
            let (host_number, rank_there) = (1 - host as u16, Some(rank));
            let record =
                FarRecord { process, host_number, rank: rank_there, ..FarRecord::default() };
            segment.set_far_record(far, record);
            segment.set_peer_of_rank(rank, plan.slots() + far);
        }
        segment
    }

    #[test]
    fn members_on_two_hosts_choose_by_the_same_facts() {
        let group = |host| {
            let segment = segment_of(host);
            let members = crate::first_world(&segment);
            let places = Places::in_segment(&segment);
            GroupState::new(5, members, 0, segment.plan(), &places, None).unwrap()
        };
        let [one, other] = [0, 1].map(group);
        assert_eq!(one.shape().clusters(), [vec![0, 2, 4], vec![1, 3]]);
        assert!(!one.shape().is_on_one_host());
        let facts = [&one, &other].map(|group| format!("{:?}", group.table.facts()));
        assert_eq!(facts[0], facts[1]);
    }

    #[test]
    fn members_at_two_sites_choose_the_way_between_them_alike() {
        let group = |host: u16| {
            let segment = segment_of(host.into());
            segment.set_own_host(host, host.into());
            (0..2).for_each(|number| segment.set_host_site(number, number + 1));
            let (members, places) = (crate::first_world(&segment), Places::in_segment(&segment));
            let boards = Boards::OfHosts(None);
            GroupState::new(5, members, 0, segment.plan(), &places, boards).unwrap()
        };
        let [mut one, other] = [0, 1].map(group);
        assert_eq!(one.shape().sites(), [1, 2, 1, 2, 1]);
        let facts = [&one, &other].map(|group| format!("{:?}", group.table.facts()));
        assert_eq!(facts[0], facts[1]);
        let asked = crate::call::options::CallOptions::default();
        let call = Call { is_started: true, ..Call::new(Operation::Barrier, &asked) };
        assert!(one.direct(&call).is_none(), "each message between sites counts");
        let way = one.route(call.facts(), None, Polling::Never, true).way().to_string();
        assert_eq!(way, "hypercube between hosts");
    }

    #[test]
    fn the_first_world_has_a_board_on_each_host() {
        let ranks_at_board = |host, own: u32| {
            let segment = segment_of(host);
            let (members, places) = (crate::first_world(&segment), Places::in_segment(&segment));
            let (room, mut groups) = (Arc::default(), table::GroupTable::default());
            let context = crate::context::WORLD_CONTEXT;
            let of = crate::GroupRef { context, members: &members, rank: own as usize };
            let group = table::group_of(&segment, &places, &room, &mut groups, of).unwrap();
            assert!(group.board.is_none() && group.table.facts().hosts_have_boards);
            let local = group.local.as_ref().unwrap();
            assert_eq!(local.ranks[local.board.own() as usize], own);
            let call = Call::new(Operation::Barrier, &crate::call::options::CallOptions::default());
            let way = group.route(call.facts(), None, Polling::Never, true).way();
            assert!(matches!(way, Way::Hosts { .. }), "{way}");
            local_ranks(group)
        };
        assert_eq!(ranks_at_board(0, 2), [0, 2, 4]);
        assert_eq!(ranks_at_board(1, 3), [1, 3]);
    }

    fn local_ranks(group: &GroupState) -> Vec<u32> {
        group.local.as_ref().map_or_else(Vec::new, |local| local.ranks.to_vec())
    }

    #[test]
    fn members_on_this_host_choose_by_its_own_facts() {
        let segment = segment_of(1);
        let members: Arc<[Peer]> = [Peer(0), Peer(1)].into();
        let places = Places::in_segment(&segment);
        let group = GroupState::new(5, members, 0, segment.plan(), &places, None).unwrap();
        let facts = group.table.facts();
        assert_eq!((facts.processors, facts.group.is_on_one_host()), (64, true));
        assert_eq!(facts.board_bytes, segment.plan().deposit_bytes());
    }
}
