//! The visible state of a job on one host at a moment, as it travels to an observer on another host.
//!
//! A slot and a peer mean something on their own host only. So a picture names processes by their `ProcessId`, and a
//! rank by its number in the first world.

use std::collections::BTreeMap;

use landeck_board::{Roster, Standing, roster_of, standing_of};
use landeck_host::process_figures::{self, Activity, ProcessFigures};
use landeck_memory::observed::SelfPortrait;
use landeck_memory::system::now_ns;
use landeck_memory::{
    Counters, FarRecord, JobState, LaneRecord, Observed, Operation, Presence, SlotRecord,
    SlotState, WaitRecord,
};
use landeck_wire::{Incarnation, ProcessId, SegmentId, Slot};
use serde::{Deserialize, Serialize};

use crate::forms::{CountersForm, OperationForm, PresenceForm, SlotRecordForm};
use crate::names::Role;

/// A job on one of its hosts at a moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostPicture {
    /// The identity of the segment there.
    pub host: SegmentId,
    /// The number of the host in its machine.
    pub number: u16,
    /// The name of the host.
    pub name: String,
    /// The number of processes of the job's first world, on all hosts.
    pub ranks: u32,
    /// The number of those on this host.
    pub processes: u32,
    /// Whether the job is being ended.
    pub is_ending: bool,
    /// All processes that are, were or will be here, by slot.
    pub members: Vec<Member>,
    /// The daemon's records of the processes on other hosts.
    pub far: Vec<FarMember>,
    /// The names of the machine's hosts.
    pub host_names: Vec<(u16, String)>,
    /// The groups in which processes wait.
    pub boards: Vec<BoardPicture>,
    /// The hosts that are reached over gateways, with the names of these, the nearest first. The daemon of the host fills them in.
    pub ways: Vec<(u16, Vec<String>)>,
    /// The data of messages that stay on the host until their receivers fetch them.
    pub stored: Stored,
}

/// Data of messages that stay on a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// The messages.
    pub messages: u64,
    /// The bytes that they take.
    pub bytes: u64,
    /// The bytes that they may take.
    pub quota: u64,
}

/// A process of a job at a moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// The process; [`crate::Picture::names`] has its name.
    pub process: ProcessId,
    /// Its role in the job.
    pub role: Role,
    /// The agent's record of it.
    #[serde(with = "SlotRecordForm")]
    pub record: SlotRecord,
    /// How far its program has come with joining and leaving.
    #[serde(with = "PresenceForm")]
    pub presence: Presence,
    /// Its current wait.
    pub wait: ObservedWait,
    /// The function of a front that its program has called, if the wait is long.
    pub call: Option<String>,
    /// The processes any of which can end its wait; empty where that is not known.
    pub any_of: Vec<ProcessId>,
    /// The members of the group in which it waits, in the order of their ranks, if the group has no board.
    pub group: Vec<ProcessId>,
    /// Its lanes to other hosts with unsent bytes, if its wait is long.
    pub lanes: Vec<LanePicture>,
    /// Its counters.
    #[serde(with = "CountersForm")]
    pub counters: Counters,
    /// Whether it sleeps until it is woken.
    pub is_asleep: bool,
    /// The kernel's figures; `None` if they were not asked for, or its process cannot be seen.
    pub figures: Option<ProcessFigures>,
    /// Whether one of its threads computes, as far as that was asked.
    pub has_running_thread: bool,
    /// When it was seen, in nanoseconds of its host's monotonic clock.
    pub at_ns: u64,
    /// Whether it was seen; otherwise only its record is known.
    pub is_seen: bool,
    /// Whether it is gone because its host is lost.
    pub is_host_lost: bool,
}

/// The activity of a process, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// It computes, in no call that waits.
    Run,
    /// It waits in a call, awake.
    Spin,
    /// It waits in a call, asleep.
    Sleep,
    /// It waits for something outside Landeck: a file, the network, a timer.
    Wait,
    /// It was stopped by a signal or a debugger.
    Stopped,
    /// It has not started yet.
    Expected,
    /// It has left in good order.
    Left,
    /// It died.
    Dead,
    /// Its host has sent no picture.
    Unseen,
}

impl Doing {
    /// The word in the output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Spin => "spin",
            Self::Sleep => "sleep",
            Self::Wait => "wait",
            Self::Stopped => "stopped",
            Self::Expected => "expected",
            Self::Left => "left",
            Self::Dead => "dead",
            Self::Unseen => "unseen",
        }
    }
}

/// A process of the job on another host, as the daemon of this host records it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FarMember {
    /// The process.
    pub process: ProcessId,
    /// The number of its host.
    pub host_number: u16,
    /// Its rank in the first world.
    pub rank: Option<u32>,
    /// Its state.
    #[serde(with = "SlotRecordForm")]
    pub record: SlotRecord,
    /// Whether it is gone because its host is lost.
    pub is_host_lost: bool,
}

/// The wait of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedWait {
    /// The call.
    #[serde(with = "OperationForm")]
    pub operation: Operation,
    /// The process that it waits for; none means any.
    pub peer: Option<ProcessId>,
    /// The tag; none means any.
    pub tag: Option<u32>,
    /// The context.
    pub context: u32,
    /// Bytes of the message, where known.
    pub bytes: u64,
    /// Since when, in nanoseconds of its host's monotonic clock.
    pub since_ns: u64,
    /// The place of the group's board in the segment of its host; zero where it has none.
    pub board: u64,
    /// The number of a collective operation on the board; zero where it has none.
    pub number: u32,
    /// The number of the channel that the message takes ([`landeck_wire::way::MessageWay`]); zero where it is not known.
    pub way: u8,
}

/// A lane of a process, on which bytes wait that the other host has not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LanePicture {
    /// The process at the other end.
    pub to: ProcessId,
    /// The bytes.
    pub unsent_bytes: u64,
    /// The messages that were sent and are not known to be received there.
    pub open_messages: u32,
    /// Since when none of the bytes has moved, in nanoseconds of the clock of the process's host.
    pub since_ns: u64,
    /// Since when the other host has acknowledged none of them, though it could; 0 if it does.
    pub silent_since_ns: u64,
}

/// A group whose members meet on a board of one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoardPicture {
    /// The place of the board.
    pub board: u64,
    /// Whether it is that of the first world.
    pub is_world: bool,
    /// The members, in the order of their ranks.
    pub members: Vec<ProcessId>,
    /// The operations in which members wait: the number of each, and the progress of the members.
    pub operations: Vec<(u32, Vec<BoardProgress>)>,
}

/// The progress of a member of a group in one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BoardProgress {
    /// It has not come.
    NotYet {
        /// The number of operations that it has to complete before.
        behind: u32,
    },
    /// It has come, with this signature of its call.
    Here(u32),
    /// It has completed the operation.
    Past,
}

impl From<Standing> for BoardProgress {
    fn from(standing: Standing) -> Self {
        match standing {
            Standing::NotYet { behind } => Self::NotYet { behind },
            Standing::Here(signature) => Self::Here(signature),
            Standing::Past => Self::Past,
        }
    }
}

/// A segment with its tables, while a picture of it is taken.
struct Look<'a> {
    segment: &'a Observed,
    state: JobState,
    records: Vec<SlotRecord>,
    far: Vec<FarRecord>,
}

impl HostPicture {
    /// Takes a picture of a job on this host. Without `sees_processes`, the PIDs in the segment mean nothing here, as
    /// those of a container.
    pub fn take(segment: &Observed, sees_processes: bool) -> Self {
        let look = Look::at(segment);
        let mut picture = look.picture();
        for member in picture.members.iter_mut().filter(|_| sees_processes) {
            member.ask_the_kernel();
        }
        picture.boards = look.boards(&picture.members);
        picture
    }

    /// Takes a picture without the kernel's figures about each process, which take most of the time, and without
    /// boards. This suffices for the first of the two pictures of a [`Report`](crate::Report).
    pub fn glance(segment: &Observed) -> Self {
        Look::at(segment).picture()
    }
}

/// The number and name of the host itself: the only one with a name and without far processes.
fn own_name(names: &[(u16, String)], far: &[FarMember]) -> (u16, String) {
    let is_far = |number: u16| far.iter().any(|one| one.host_number == number);
    let mut own = names.iter().filter(|(number, _)| !is_far(*number));
    match (own.next(), own.next()) {
        (Some(one), None) => one.clone(),
        _ => {
            let name = rustix::system::uname();
            (u16::MAX, name.nodename().to_string_lossy().into_owned())
        }
    }
}

impl FarMember {
    fn of(record: &FarRecord) -> Option<Self> {
        (record.state != SlotState::Free).then(|| Self {
            process: process_of(record),
            host_number: record.host_number,
            rank: record.rank,
            record: record.as_slot(),
            is_host_lost: record.is_host_lost,
        })
    }
}

fn process_of(FarRecord { process, .. }: &FarRecord) -> ProcessId {
    ProcessId {
        segment: SegmentId(process.host),
        slot: Slot(process.slot),
        incarnation: Incarnation(process.incarnation),
    }
}

impl<'a> Look<'a> {
    fn at(segment: &'a Observed) -> Self {
        let (state, records) = segment.membership();
        let far = if segment.plan().has_host_tables() { segment.far_records() } else { Vec::new() };
        Self { segment, state, records, far }
    }

    fn picture(&self) -> HostPicture {
        let plan = self.segment.plan();
        let ranks = self.segment.ranks_of_slots();
        let members = (0..).zip(&ranks).filter_map(|(slot, rank)| self.member(slot, *rank));
        let mut members: Vec<Member> = members.collect();
        let at_ns = now_ns();
        members.iter_mut().for_each(|member| member.at_ns = at_ns);
        let far: Vec<FarMember> = self.far.iter().filter_map(FarMember::of).collect();
        let names = self.segment.host_names().into_iter();
        let host_names: Vec<(u16, String)> =
            names.map(|(number, name)| (number, name.to_string())).collect();
        let (number, name) = own_name(&host_names, &far);
        HostPicture {
            host: SegmentId(plan.host),
            number,
            name,
            ranks: plan.ranks,
            processes: plan.processes,
            is_ending: self.state == JobState::Ending,
            members,
            far,
            host_names,
            boards: Vec::new(),
            ways: Vec::new(),
            stored: self.stored(),
        }
    }

    fn stored(&self) -> Stored {
        let (messages, bytes) = self.segment.stored();
        Stored { messages, bytes, quota: self.segment.plan().store_bytes() }
    }

    fn member(&self, slot: u32, rank: Option<u32>) -> Option<Member> {
        let record = *self.records.get(slot as usize)?;
        if record.state == SlotState::Free {
            return None;
        }
        let SelfPortrait { presence, wait, counters, remark, lanes, is_asleep, .. } =
            self.segment.portrait(slot).unwrap_or_default();
        let any_of = remark.iter().flat_map(|remark| &remark.any_of);
        let group = remark.iter().flat_map(|remark| &remark.members);
        let lane = |lane: &LaneRecord| LanePicture {
            to: self.process(lane.peer),
            unsent_bytes: lane.unsent_bytes,
            open_messages: lane.open_messages,
            since_ns: lane.since_ns,
            silent_since_ns: lane.silent_since_ns,
        };
        Some(Member {
            presence,
            wait: self.wait(wait),
            call: remark.as_ref().and_then(|remark| remark.call).map(|call| call.to_string()),
            any_of: any_of.map(|&peer| self.process(peer)).collect(),
            group: group.map(|&peer| self.process(peer)).collect(),
            lanes: lanes.iter().map(lane).collect(),
            counters,
            is_asleep,
            ..Member::new(
                self.process(slot),
                Role::of(slot, &record, rank, self.segment.plan().ranks),
                record,
            )
        })
    }

    /// The process that a peer of this segment is.
    fn process(&self, peer: u32) -> ProcessId {
        let slots = self.segment.plan().slots();
        let far = peer.checked_sub(slots).and_then(|far| self.far.get(far as usize));
        if let Some(record) = far.filter(|record| record.state != SlotState::Free) {
            return process_of(record);
        }
        let incarnation = self.records.get(peer as usize).map_or(0, |record| record.incarnation);
        let host = SegmentId(self.segment.plan().host);
        ProcessId { segment: host, slot: Slot(peer), incarnation: Incarnation(incarnation) }
    }

    fn wait(&self, wait: WaitRecord) -> ObservedWait {
        let WaitRecord { operation, peer, tag, context, bytes, since_ns, board, number, way } =
            wait;
        let peer = peer.map(|peer| self.process(peer));
        ObservedWait { operation, peer, tag, context, bytes, since_ns, board, number, way }
    }

    /// The groups in which these processes wait.
    fn boards(&self, members: &[Member]) -> Vec<BoardPicture> {
        let mut boards: BTreeMap<u64, Option<(Roster, BoardPicture)>> = BTreeMap::new();
        let waits = members.iter().map(|member| &member.wait);
        for wait in waits.filter(|wait| wait.operation != Operation::None && wait.board != 0) {
            let board = boards.entry(wait.board).or_insert_with(|| self.board(wait.board));
            let Some((roster, picture)) = board else { continue };
            let is_known = picture.operations.iter().any(|(number, _)| *number == wait.number);
            if wait.number != 0 && wait.operation == Operation::Collective && !is_known {
                let all = roster.members.iter();
                let progress = all.map(|lines| standing_of(self.segment, *lines, wait.number));
                picture.operations.push((wait.number, progress.map(BoardProgress::from).collect()));
            }
        }
        boards.into_values().flatten().map(|(_, picture)| picture).collect()
    }

    fn board(&self, board: u64) -> Option<(Roster, BoardPicture)> {
        let roster = roster_of(self.segment, board)?;
        let members = roster.members.iter().map(|lines| self.process(lines.slot)).collect();
        let is_world = roster.context.is_none();
        let picture = BoardPicture { board, is_world, members, operations: Vec::new() };
        Some((roster, picture))
    }
}

impl Member {
    fn ask_the_kernel(&mut self) {
        let SlotRecord { state, pid, .. } = self.record;
        if state != SlotState::Alive || pid == 0 {
            return;
        }
        self.figures = process_figures::of_process(pid);
        let has_threads = self.figures.is_some_and(|figures| figures.threads > 1);
        self.has_running_thread = match self.figures {
            Some(_) if has_threads && self.wait.operation != Operation::None => {
                process_figures::has_running_thread(pid)
            }
            Some(figures) => figures.activity == Activity::Runs,
            None => false,
        };
    }
}

impl Member {
    /// A process that does nothing and of which nothing else is known.
    pub fn new(process: ProcessId, role: Role, record: SlotRecord) -> Self {
        Self {
            process,
            role,
            record,
            presence: Presence::Attached,
            wait: ObservedWait::default(),
            call: None,
            any_of: Vec::new(),
            group: Vec::new(),
            lanes: Vec::new(),
            counters: Counters::default(),
            is_asleep: false,
            figures: None,
            has_running_thread: false,
            at_ns: 0,
            is_seen: true,
            is_host_lost: false,
        }
    }

    /// A process of which only the record on another host is known.
    pub(crate) fn unseen(far: &FarMember) -> Self {
        let role = far.rank.map_or(Role::Guest(far.process.slot.0), Role::Rank);
        let is_host_lost = far.is_host_lost;
        Self { is_seen: false, is_host_lost, ..Self::new(far.process, role, far.record) }
    }

    /// The activity of the process, in one word.
    pub fn doing(&self) -> Doing {
        match self.record.state {
            SlotState::Left | SlotState::Departed => return Doing::Left,
            SlotState::Dead => return Doing::Dead,
            _ if !self.is_seen => return Doing::Unseen,
            SlotState::Free | SlotState::Reserved => return Doing::Expected,
            SlotState::Alive => {}
        }
        let activity = self.figures.map(|figures| figures.activity);
        match (self.wait.operation, activity) {
            _ if self.is_stopped() => Doing::Stopped,
            (Operation::None, Some(Activity::Sleeps | Activity::Ended)) => Doing::Wait,
            (Operation::None, _) => Doing::Run,
            _ if self.is_asleep => Doing::Sleep,
            _ => Doing::Spin,
        }
    }

    /// Whether a signal or a debugger has stopped it. The agent only knows this of its own children.
    pub fn is_stopped(&self) -> bool {
        let activity = self.figures.map(|figures| figures.activity);
        self.record.stopped || activity == Some(Activity::Stopped)
    }

    /// How long it has waited since it joined, in nanoseconds, the present wait included.
    pub fn waited_ns(&self) -> u64 {
        let present_ns = match self.wait.operation {
            Operation::None => 0,
            _ => self.at_ns.saturating_sub(self.wait.since_ns),
        };
        self.counters.waited_ns.saturating_add(present_ns)
    }

    /// Whether it said the same of itself in another picture.
    pub(crate) fn says_the_same(&self, other: &Self) -> bool {
        let words = |one: &Self| (one.presence, one.wait, one.counters, one.is_asleep);
        words(self) == words(other) && (&self.call, &self.any_of) == (&other.call, &other.any_of)
    }
}
