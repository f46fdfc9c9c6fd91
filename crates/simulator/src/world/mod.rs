//! The state of a run: members, their processors, and the messages between them.

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod living;
mod losses;
mod messages;
mod rest;

use std::collections::{BTreeMap, VecDeque};

use landeck_collectives::{Calibration, CostParameters, Execution, Precedence};
use landeck_kernel::matching::Matching;
use landeck_memory::SegmentPlan;
use landeck_memory::waiter::Spin;

use crate::board::{Board, Look, Looking};
use crate::caches::{self, Rates, Whose};
use crate::compact_plans::{Path, SimStep};
use crate::fault::Chance;
use crate::footprint::Footprint;
use crate::history::{History, NOTHING, RecordId, What};
use crate::hosts::Hosts;
use crate::near::Near;
use crate::network::{Transit, Wires};
use crate::platform::{Host, bytes_ps};
use crate::processors::{Processors, Turn};
use crate::report::{SimulationProgress, SimulationReport};
use crate::setting::Setting;
use crate::stages::{Spans, Stages};
use crate::time::{Events, Time};
use losses::Lost;
use messages::wanted;
use rest::{Turns, Wait};

/// The context and the tag of the operation's messages.
const CONTEXT: u32 = 0;
const TAG: u32 = 0;
/// The progress is told after this many events.
const EVENTS_BETWEEN_NEWS: u64 = 1 << 16;

/// The number of a message.
type MessageId = u32;

/// An event.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A processor passes from one process to another.
    Turn { ring: u32, number: u32 },
    /// A member has finished its activity.
    Done(u32),
    /// The first piece of a member's deposit is on the board; the whole of it from some moment on.
    Laid { member: u32, bytes: u64, until: Time, record: RecordId },
    /// A message reaches a port.
    Hop(MessageId),
    /// A message has arrived.
    Arrive(MessageId),
    /// Long data of a step have left the sender's card.
    Gone { member: u32, step: u32 },
    /// A member ends.
    Death(u32),
    /// A host hears that a member has ended.
    Notice { host: u32, dead: u32 },
    /// A member has kept its processor long enough, if it is still in this wait.
    Tired { member: u32, hold: u32 },
}

/// The activity of a member until its [`Event::Done`].
#[derive(Clone, Copy, Debug)]
enum Doing {
    /// It runs and looks what to do.
    Nothing,
    /// A local step of its plan, or a step at the board.
    Work(u32),
    /// It hands a message, or its announcement, over to the network.
    Send(MessageId),
    /// It hands a message over to a member of its host, which may take the message before this is finished.
    SendNear(u32),
    /// It asks for announced data.
    Ask(MessageId),
    /// It receives a message.
    Receive(MessageId),
    /// It combines a piece of the common result.
    Piece(u64),
    /// It begins a call.
    Call,
}

/// News for a member.
#[derive(Clone, Copy, Debug)]
enum News {
    /// A message.
    Message(MessageId),
    /// The data of this step of its own have left.
    Gone(u32),
    /// The next part of its announced data may go.
    Part(MessageId),
    /// This member has ended.
    Death(u32),
}

struct Member {
    /// The current plan; none after the last stage.
    execution: Option<Execution<Path>>,
    /// The number of finished stages, and of begun calls.
    stage: u32,
    called: u32,
    /// The current round at the board.
    round: u32,
    matching: Matching<u32, MessageId>,
    /// For each source with a posted receive, how many more receives from there have begun. They follow in order, so
    /// they need no places of their own.
    behind: BTreeMap<u32, u32>,
    news: VecDeque<News>,
    doing: Doing,
    /// Whether it has nothing to do, whether it keeps its processor nevertheless, and how often it has done so.
    is_waiting: bool,
    is_holding: bool,
    holds: u32,
    /// It goes on this much later in its next turn, since it has given its processor away.
    gave: u64,
    /// How often it polls for messages in a call before it gives its processor away, as the product's waiter learns
    /// it; the state of the current wait; and when it began to poll.
    spin: Spin,
    wait: Wait,
    holds_since: Time,
    /// When it ended; the first death that it has heard of, and when; and why it gave up.
    dies: Option<Time>,
    told: Option<(u32, Time)>,
    lost: Option<Lost>,
    /// Message cells that it holds.
    cells: u32,
    /// Whether another processor has taken its last deposit, and whose place it holds since its last take.
    is_taken_elsewhere: bool,
    has_place_of: Whose,
    /// The step that waits for the board.
    at_board: Option<u32>,
    /// The record of its last activity.
    last: RecordId,
    /// When its last call returned.
    end: Option<Time>,
}

/// The stage of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// All data at once.
    Whole,
    /// The announcement of long data.
    Announcement,
    /// The receiver's request for announced data.
    Request,
    /// Announced data.
    Data,
}

#[derive(Clone, Copy, Debug)]
struct SimulatedMessage {
    from: u32,
    to: u32,
    bytes: u64,
    /// The announced bytes that follow behind this part.
    rest_bytes: u64,
    stage: Stage,
    /// The step that sends it, and the step that receives it once that is known.
    sent_by: u32,
    received_by: u32,
    transit: Transit,
    /// It lies in a cell, which its receiver keeps afterwards.
    is_in_cell: bool,
    /// The cause of its travel.
    record: RecordId,
}

impl SimulatedMessage {
    /// The sender and the receiver at its stage.
    const fn ends(&self) -> (u32, u32) {
        match self.stage {
            Stage::Request => (self.to, self.from),
            Stage::Whole | Stage::Announcement | Stage::Data => (self.from, self.to),
        }
    }
}

/// The state of a run.
pub(crate) struct World {
    figures: CostParameters,
    host: Host,
    near: Near,
    hosts: Hosts,
    stages: Stages,
    spans: Spans,
    members: Vec<Member>,
    messages: Vec<SimulatedMessage>,
    free: Vec<MessageId>,
    events: Events<Event>,
    wires: Option<Wires>,
    processors: Processors,
    /// The rates of copies on each processor.
    rates: Vec<Rates>,
    /// The time to pass a processor on.
    turns: Turns,
    /// How long a member looks at its network in each of its turns, where hosts share processors.
    looks_ps: Option<u64>,
    /// The time of a call of a member that shares its processor: over messages, then directly after an equal call,
    /// then at the board.
    crowd_calls_ps: [u64; 2],
    crowd_take_ps: u64,
    /// One board for each stage and round.
    boards: Vec<Board>,
    /// Members that wait at the board.
    board_waiters: Vec<u32>,
    chance: Chance,
    history: History,
    steps_done: u64,
    sent: u64,
    bytes: u64,
    most_in_flight: u32,
    waited_ps: u64,
    happened: u64,
    hash: u64,
}

impl World {
    pub(crate) fn new(setting: &Setting<'_>, hosts: Hosts, stages: Stages) -> Self {
        let (platform, size) = (setting.platform, stages.members());
        let Host { figures, details, processors } = platform.host;
        let sharing = u64::from(hosts.sharing(size, platform).of_processor);
        let usual = || Turns::of(&figures, &details, sharing, stages.is_over_messages());
        let shared = platform.network.as_ref().and_then(|network| network.shared);
        let (turns, processors, on_hosts) = match shared {
            Some(shared) => {
                let turns = Turns { pass_ps: figures.switch_ps, board_ps: 0, message_ps: 0 };
                (turns, shared.processors, vec![(0..size).collect()])
            }
            None => {
                let members = |host| hosts.members(host, size).collect::<Vec<u32>>();
                (usual(), processors, (0..hosts.count).map(members).collect())
            }
        };
        let looks_ps = shared.map(|shared| shared.turn_ps.saturating_sub(figures.switch_ps));
        let mut chance = Chance::new(setting.faults);
        let processors = Processors::new(&on_hosts, processors, turns.pass_ps, &mut chance);
        let touched = footprints(&processors, hosts, &stages);
        let first = |member| stages.path(member, 0).map(Execution::new);
        let cells = SegmentPlan::new(1, size.min(hosts.per_host)).cells_each();
        let members = (0..size).map(|member| Member::new(first(member), cells)).collect();
        let mut world = Self {
            figures,
            near: Near::new(figures, details, sharing, stages.ways()),
            hosts,
            members,
            messages: Vec::new(),
            free: Vec::new(),
            events: Events::default(),
            wires: platform.network.as_ref().map(|network| Wires::new(network, hosts.count)),
            processors,
            rates: caches::rates(&platform.host, &touched),
            turns,
            looks_ps,
            crowd_calls_ps: crowd_calls_ps(&details, sharing),
            crowd_take_ps: Calibration::of_crowd(&details.crowd_takes_ps, sharing),
            boards: boards(&platform.host, &stages),
            host: platform.host,
            spans: stages.spans(),
            stages,
            board_waiters: Vec::new(),
            chance,
            history: History::new(setting.keeps_history),
            steps_done: 0,
            sent: 0,
            bytes: 0,
            most_in_flight: 0,
            waited_ps: 0,
            happened: 0,
            hash: 0xcbf2_9ce4_8422_2325,
        };
        world.plan_deaths(&setting.faults.deaths);
        for member in 0..size {
            world.wake(member, Time::ZERO);
        }
        world
    }

    /// Runs until no event is left.
    pub(crate) fn run(&mut self, mut tell: impl FnMut(SimulationProgress)) {
        while let Some((now, event)) = self.events.pop() {
            self.happened += 1;
            if self.happened.is_multiple_of(EVENTS_BETWEEN_NEWS) {
                tell(self.stages.progress(self.steps_done));
            }
            self.happen(now, event);
        }
    }

    pub(crate) fn report(self) -> SimulationReport {
        SimulationReport {
            spans_ps: self.spans.lengths_ps(),
            calls: self.stages.calls(),
            outcomes: self.outcomes(),
            messages: self.sent,
            bytes: self.bytes,
            most_in_flight: self.most_in_flight,
            waited_ps: self.waited_ps,
            events: self.happened,
            hash: self.hash,
            history: self.history,
        }
    }

    fn happen(&mut self, now: Time, event: Event) {
        match event {
            Event::Turn { ring, number } => {
                let turn = Turn { at: now, ring, number };
                if let Some(member) = self.processors.turn(turn) {
                    self.note(now, 1, member);
                    let place = self.member(member);
                    place.is_waiting = false;
                    let gave_ps = std::mem::take(&mut place.gave);
                    let pass_ps = self.turns.pass_ps;
                    let late_ps = self.chance.stretched_ps(pass_ps) - pass_ps + gave_ps;
                    if late_ps > 0 && self.processors.is_shared(member) {
                        self.events.plan(now + late_ps, Event::Done(member));
                    } else {
                        self.go_on(member, now);
                    }
                }
            }
            Event::Done(member) => {
                self.note(now, 2, member);
                if self.members[member as usize].dies.is_none() {
                    self.finish(member, now);
                }
                self.go_on(member, now);
            }
            Event::Laid { member, bytes, until, record } => {
                if self.members[member as usize].dies.is_none() {
                    let by = (self.processors.number(member), until);
                    self.board(member).lay(member, bytes, by, record);
                    self.wake_at_board(now);
                }
            }
            Event::Hop(id) => self.hop(id, now),
            Event::Arrive(id) => self.arrive(id, now),
            Event::Gone { member, step } => self.hand(member, News::Gone(step), now),
            Event::Death(member) => self.die(member, now),
            Event::Notice { host, dead } => self.notice(host, dead, now),
            Event::Tired { member, hold } => self.tire(member, hold, now),
        }
    }

    /// Adds an event to the run's hash, similar to FNV.
    fn note(&mut self, now: Time, kind: u64, who: u32) {
        for word in [now.ps(), kind << 32 | u64::from(who)] {
            self.hash = (self.hash ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(17);
        }
    }

    /// Lets a running member do its next step, or give its processor away.
    fn go_on(&mut self, member: u32, now: Time) {
        while self.members[member as usize].dies.is_none() {
            if self.call(member, now) {
                return;
            }
            if let Some(step) = self.member(member).begin() {
                if self.begin(member, step, now) {
                    return;
                }
            } else if let Some(step) = self.member(member).at_board.take() {
                if self.try_at_board(member, step, now) {
                    return;
                }
                if self.members[member as usize].news.is_empty() {
                    if self.give_up(member, now) {
                        continue;
                    }
                    break;
                }
                if let Some(news) = self.member(member).news.pop_front()
                    && self.look_at(member, news, now)
                {
                    return;
                }
            } else if let Some(news) = self.member(member).news.pop_front() {
                if self.look_at(member, news, now) {
                    return;
                }
            } else if !self.next_stage(member, now) && !self.give_up(member, now) {
                break;
            }
        }
        self.rest(member, now);
    }

    /// Begins a call; true if that keeps the member busy. The calls that a measurement makes besides take the
    /// product's short path, whose time is part of the deposit.
    fn call(&mut self, member: u32, now: Time) -> bool {
        let place = &mut self.members[member as usize];
        let is_at_board = place.execution.as_ref().is_some_and(|of| of.walk().uses_board());
        let is_short = self.stages.is_around(place.stage) && is_at_board;
        if place.called > place.stage || self.host.details.call_ps == 0 || is_short {
            return false;
        }
        place.called = place.stage + 1;
        let is_again = self.calls_again(member);
        let Some(execution) = &self.members[member as usize].execution else { return false };
        let at_board = execution.walk().uses_board();
        let span_ps = match (at_board, self.processors.is_shared(member)) {
            (false, false) => self.host.details.call_ps + self.scratch_ps(member),
            (true, false) => self.host.details.board_call_ps,
            (false, true) => self.crowd_calls_ps[usize::from(is_again)] + self.scratch_ps(member),
            (true, true) => self.crowd_take_ps.saturating_sub(self.board_of(member).near_take_ps()),
        };
        self.busy(member, Doing::Call, What::Call { member }, span_ps, NOTHING, now);
        true
    }

    /// A call over messages overwrites the private memory for data that it passes on or combines.
    fn scratch_ps(&self, member: u32) -> u64 {
        let execution = self.members[member as usize].execution.as_ref();
        let bytes = execution.map_or(0, |execution| execution.walk().scratch_bytes());
        bytes_ps(bytes, self.rates(member).overwrite_ps())
    }

    /// Moves on to the next stage if the current one is finished. True if there is a next one.
    fn next_stage(&mut self, member: u32, now: Time) -> bool {
        let place = &mut self.members[member as usize];
        if !place.execution.as_ref().is_some_and(Execution::is_over) {
            return false;
        }
        self.stages.note(&mut self.spans, place.stage, now);
        (place.stage, place.round) = (place.stage + 1, 0);
        place.ends_wait();
        place.execution = self.stages.path(member, place.stage).map(Execution::new);
        if place.execution.is_none() {
            place.end = Some(now);
        }
        place.execution.is_some()
    }

    /// The board of the member's current round.
    fn board(&mut self, member: u32) -> &mut Board {
        let number = self.board_number(member);
        &mut self.boards[number]
    }

    fn board_of(&self, member: u32) -> &Board {
        &self.boards[self.board_number(member)]
    }

    fn board_number(&self, member: u32) -> usize {
        let (last, place) = (self.boards.len() - 1, &self.members[member as usize]);
        let boards = self.stages.boards().len().max(1) as u32;
        let number = place.stage * self.stages.rounds_at_board() + place.round;
        ((number * boards + self.stages.board_of(member)) as usize).min(last)
    }

    fn member(&mut self, member: u32) -> &mut Member {
        &mut self.members[member as usize]
    }

    fn plan_turn(&mut self, turn: Option<Turn>) {
        if let Some(Turn { at, ring, number }) = turn {
            self.events.plan(at, Event::Turn { ring, number });
        }
    }

    fn wake(&mut self, member: u32, now: Time) {
        if self.member(member).finds_at_once(now) {
            self.events.plan(now, Event::Done(member));
            return;
        }
        let turn = self.processors.wake(member, now);
        self.plan_turn(turn);
    }

    /// Gives a member news, and wakes it if it waits.
    fn hand(&mut self, member: u32, news: News, now: Time) {
        let place = self.member(member);
        if place.is_gone() {
            return;
        }
        place.news.push_back(news);
        if place.is_waiting {
            self.wake(member, now);
        }
    }

    /// Begins a step; true if that keeps the member busy.
    fn begin(&mut self, member: u32, step: u32, now: Time) -> bool {
        let place = self.member(member);
        if let Some(execution) = &place.execution {
            place.round = execution.walk().round(step);
        }
        match self.deed(member, step) {
            Some(SimStep::Send { to, bytes }) => {
                self.send(member, to, bytes, step, now);
                true
            }
            Some(SimStep::Receive { from }) => self.receive(member, from, step, now),
            Some(SimStep::Copy { bytes }) => {
                let span_ps =
                    self.copy_step_ps(member) + bytes_ps(bytes, self.rates(member).local_ps());
                self.work(member, step, span_ps, NOTHING, now);
                true
            }
            Some(SimStep::Combine { bytes }) => {
                let kib_ps = self.figures.reduction_kib_ps + self.rates(member).more_ps();
                let span_ps = bytes_ps(bytes, kib_ps);
                self.work(member, step, self.host.details.step_ps + span_ps, NOTHING, now);
                true
            }
            _ => self.try_at_board(member, step, now),
        }
    }

    /// The time of a local copy beside its bytes: in a plan over messages, or at the board.
    fn copy_step_ps(&self, member: u32) -> u64 {
        let execution = self.members[member as usize].execution.as_ref();
        let at_board = execution.is_some_and(|execution| execution.walk().uses_board());
        let details = &self.host.details;
        if at_board { details.board_copy_ps } else { details.light_step_ps() }
    }

    /// The rates of copies on a member's processor.
    fn rates(&self, member: u32) -> &Rates {
        &self.rates[self.processors.number(member)]
    }

    /// A step of a member; none after the last one.
    fn deed(&self, member: u32, step: u32) -> Option<SimStep> {
        Some(self.members[member as usize].execution.as_ref()?.walk().deed(step))
    }

    fn work(
        &mut self,
        member: u32,
        step: u32,
        span_ps: u64,
        cause: RecordId,
        now: Time,
    ) -> RecordId {
        self.busy(member, Doing::Work(step), What::Work { member, step }, span_ps, cause, now)
    }

    /// Keeps a member busy for a while. Returns the record.
    fn busy(
        &mut self,
        member: u32,
        doing: Doing,
        what: What,
        span_ps: u64,
        cause: RecordId,
        now: Time,
    ) -> RecordId {
        let end = now + self.chance.stretched_ps(span_ps);
        let last = self.members[member as usize].last;
        let record = self.history.add(what, now, end, [last, cause]);
        let place = self.member(member);
        (place.doing, place.last) = (doing, record);
        self.events.plan(end, Event::Done(member));
        record
    }

    /// Does a step at the board if it can be done, else waits. True if the member is busy.
    fn try_at_board(&mut self, member: u32, step: u32, now: Time) -> bool {
        let Some(deed) = self.deed(member, step) else { return false };
        let (rates, processor) = (*self.rates(member), self.processors.number(member));
        let looking =
            Looking { member, processor, rates: &rates, now, place: self.place_of(member) };
        match self.board(member).look(deed, &looking) {
            Look::Wait => {
                self.member(member).at_board = Some(step);
                if self.board_waiters.last() != Some(&member) {
                    self.board_waiters.push(member);
                }
                false
            }
            Look::Do(span_ps, cause) => {
                self.note_taken(member, deed, processor);
                let record = self.work(member, step, span_ps, cause, now);
                self.lay_in_pieces(member, deed, span_ps, record, now);
                true
            }
            Look::Piece(bytes, span_ps, cause) => {
                self.member(member).at_board = Some(step);
                let what = What::Work { member, step };
                self.busy(member, Doing::Piece(bytes), what, span_ps, cause, now);
                true
            }
        }
    }

    /// The place of a member's next deposit.
    fn place_of(&self, member: u32) -> Whose {
        let place = &self.members[member as usize];
        let execution = place.execution.as_ref();
        if execution.is_some_and(|execution| execution.walk().manner().hands_over) {
            return place.has_place_of;
        }
        if place.is_taken_elsewhere { Whose::Others } else { Whose::Own }
    }

    /// A deposit that another processor takes leaves its depositor's cache.
    fn note_taken(&mut self, by: u32, deed: SimStep, processor: usize) {
        if let SimStep::Take { from, .. } = deed {
            let is_beside = self.processors.number(from) == processor;
            self.member(by).has_place_of = if is_beside { Whose::Own } else { Whose::HandedOver };
        }
        let from = match deed {
            SimStep::Take { from, .. } => vec![from],
            SimStep::CombineDeposits { members, .. } => self.board_of(by).first_members(members),
            SimStep::Resolve { .. } | SimStep::TakeResult { .. } => {
                (0..self.stages.members()).collect()
            }
            _ => return,
        };
        for member in from {
            if self.processors.number(member) != processor {
                self.member(member).is_taken_elsewhere = true;
            }
        }
    }

    /// A member that only gives, on a processor of its own, publishes its first piece before the rest.
    fn lay_in_pieces(
        &mut self,
        member: u32,
        deed: SimStep,
        span_ps: u64,
        record: RecordId,
        now: Time,
    ) {
        let SimStep::Deposit { bytes } = deed else { return };
        let execution = self.members[member as usize].execution.as_ref();
        let only_gives = execution.is_some_and(|execution| execution.walk().manner().only_gives);
        self.member(member).is_taken_elsewhere = false;
        if let Some(first_ps) = Board::first_piece_ps(bytes, span_ps)
            && only_gives
            && !self.processors.is_shared(member)
        {
            let until = now + span_ps;
            self.events.plan(now + first_ps, Event::Laid { member, bytes, until, record });
        }
    }

    /// Makes all members that wait at the board look again.
    fn wake_at_board(&mut self, now: Time) {
        for member in std::mem::take(&mut self.board_waiters) {
            let place = self.member(member);
            if place.at_board.is_some() && place.is_waiting && !place.is_gone() {
                // Its neighbours may have moved on.
                let keeps_ps = self.keeps_ps(member);
                self.processors.dwell(member, keeps_ps);
                self.wake(member, now);
            }
        }
    }

    /// Finishes the activity of a member.
    fn finish(&mut self, member: u32, now: Time) {
        let place = self.member(member);
        let record = place.last;
        match std::mem::replace(&mut place.doing, Doing::Nothing) {
            Doing::Nothing | Doing::Call => {}
            Doing::Work(step) => {
                let Some(deed) = self.deed(member, step) else { return };
                let by = (self.processors.number(member), now);
                let is_news = self.board(member).done(deed, member, by, record);
                self.end_step(member, step);
                if is_news {
                    self.wake_at_board(now);
                }
            }
            Doing::Piece(bytes) => {
                if self.board(member).piece_done(bytes, record) {
                    self.wake_at_board(now);
                }
            }
            Doing::Send(id) => self.sent(id, now),
            Doing::SendNear(step) => self.end_step(member, step),
            Doing::Ask(id) => self.launch(id, Stage::Request, record, now),
            Doing::Receive(id) => {
                let SimulatedMessage { received_by: step, is_in_cell, .. } =
                    self.messages[id as usize];
                let is_last = self.messages[id as usize].rest_bytes == 0;
                self.member(member).cells += u32::from(is_in_cell);
                self.free.push(id);
                if is_last {
                    self.end_step(member, step);
                }
            }
        }
    }

    fn end_step(&mut self, member: u32, step: u32) {
        self.steps_done += 1;
        if let Some(execution) = &mut self.member(member).execution {
            execution.end(step);
        }
    }
}

impl Member {
    fn new(execution: Option<Execution<Path>>, cells: u32) -> Self {
        Self {
            execution,
            stage: 0,
            called: 0,
            round: 0,
            matching: Matching::default(),
            behind: BTreeMap::new(),
            news: VecDeque::new(),
            doing: Doing::Nothing,
            is_waiting: true,
            is_holding: false,
            holds: 0,
            gave: 0,
            spin: Spin::new(true),
            wait: Wait::NotYet,
            holds_since: Time::ZERO,
            dies: None,
            told: None,
            lost: None,
            cells,
            is_taken_elsewhere: true,
            has_place_of: Whose::HandedOver,
            at_board: None,
            last: NOTHING,
            end: None,
        }
    }

    /// Whether it will take part in nothing any more.
    fn is_gone(&self) -> bool {
        self.dies.is_some() || self.lost.is_some()
    }

    /// A posted receive has its message. The next begun receive from that source takes its place: it is the step that
    /// waited for this one.
    fn post_next(&mut self, from: u32, step: u32) {
        match self.behind.get_mut(&from) {
            Some(behind) if *behind > 0 => *behind -= 1,
            _ => {
                self.behind.remove(&from);
                return;
            }
        }
        let path = self.execution.as_ref().map(Execution::walk);
        if let Some(next) = path.and_then(|path| path.next(step).next()) {
            self.matching.post(wanted(from), next);
        }
    }

    /// The next step that may begin.
    fn begin(&mut self) -> Option<u32> {
        self.execution.as_mut()?.begin()
    }
}

/// The host of each processor, and the memory that its members touch.
fn footprints(processors: &Processors, hosts: Hosts, stages: &Stages) -> Vec<(u32, Footprint)> {
    let of_processor = |members: &mut dyn Iterator<Item = u32>| {
        let mut members = members.peekable();
        let host = members.peek().map_or(0, |first| hosts.host(*first));
        (host, Footprint::of_all(members.map(|member| stages.touched(member))))
    };
    processors.members().map(|mut members| of_processor(&mut members)).collect()
}

/// The time of a call over messages in a crowd beside its receives: after something else, and directly after an equal
/// call.
fn crowd_calls_ps(details: &Calibration, sharing: u64) -> [u64; 2] {
    let of = |measured| Calibration::of_crowd(measured, sharing);
    [
        (&details.crowd_calls_ps, &details.crowd_receives_ps),
        (&details.crowd_calls_again_ps, &details.crowd_receives_again_ps),
    ]
    .map(|(calls, receives)| of(calls).saturating_sub(of(receives)))
}

/// One board for each stage, round and host, and short ones for the calls that a measurement makes besides.
fn boards(host: &Host, stages: &Stages) -> Vec<Board> {
    let board = |stage| {
        let board = Board::new(host, stages.members());
        if stages.is_reduction(stage) { board.around() } else { board }
    };
    let count = stages.count() * stages.rounds_at_board();
    if !stages.boards().is_empty() {
        let of_hosts = || stages.boards().iter().cloned();
        let all = (0..count).flat_map(|_| of_hosts());
        return all.map(|members| Board::of_members(host, members)).collect();
    }
    (0..count).map(|number| board(number / stages.rounds_at_board())).collect()
}

#[cfg(test)]
mod tests {
    use super::fixture::four;
    use super::*;
    use landeck_collectives::Operation;

    #[test]
    fn a_deposit_taken_on_another_processor_is_its_depositors_no_more() {
        let mut world = four(Operation::Broadcast, "board", 8);
        let take = SimStep::Take { from: 0, bytes: 8, resolved: false };
        world.member(0).is_taken_elsewhere = false;
        for (by, is_taken, has_place_of) in [(2, false, Whose::Own), (3, true, Whose::HandedOver)] {
            let processor = world.processors.number(by);
            world.note_taken(by, take, processor);
            assert_eq!(world.members[0].is_taken_elsewhere, is_taken, "by {by}");
            assert_eq!(world.members[by as usize].has_place_of, has_place_of);
        }
    }

    #[test]
    fn a_cell_is_its_receivers_then() {
        for (bytes, given) in [(8 << 10, 1), (1 << 10, 0)] {
            let mut world = four(Operation::Broadcast, "flat", bytes);
            let cells = world.members[0].cells;
            world.run(|_| {});
            let all = world.members.iter().map(|member| member.cells).collect::<Vec<_>>();
            let receiver = cells + given;
            assert_eq!(all, [cells - 3 * given, receiver, receiver, receiver], "{bytes}");
        }
    }
}
