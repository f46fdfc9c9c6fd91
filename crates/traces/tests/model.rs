//! A model of a group on several hosts, that draws its steps from a seed and may break one promise.
//!
//! All members read one stream of messages and views. Its end is *stable* up to a place: all hosts have stored it. When the
//! first host, the home, is lost, what only it had goes with it. The others ask for their messages anew.

use landeck_testing::Random;
use landeck_traces::{
    DepartureCause, GroupTrace, MemberName, MessageName, Property, TraceEnd, TraceEvent, TraceHead,
    TraceLevel, TracedView,
};

/// A promise that the group breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A member gets a message twice.
    Twice,
    /// The bytes of a message change.
    Garbled,
    /// A member misses a message.
    Missed,
    /// A member gets two messages in another order.
    Swapped,
    /// A refused message is sent nevertheless.
    Refused,
    /// A member gets its view after the next message.
    LateView,
    /// A member sees another view.
    OtherView,
    /// The ranks change in a view.
    Ranks,
    /// A view is left out.
    ViewMissed,
    /// A safe message is delivered before it is stable.
    EarlySafe,
    /// A call that sends a safe message returns before it is stable.
    EarlyReturn,
    /// Messages that are asked for anew come in another order.
    Reversed,
    /// A message in front of a safe one goes with a lost home, whose members delivered both.
    Hole,
    /// A member of a lost host gets its safe messages in another order.
    SwappedSafe,
    /// A new member misses its first message.
    LateStart,
    /// The members of a lost host go in two views.
    TwoViews,
    /// A member is in a view after it died.
    Back,
    /// A message of a dead member comes after the view in which it went.
    Late,
    /// Two messages have one number.
    Number,
    /// A message comes before one that its sender had delivered.
    Cause,
    /// A synchronisation is over before all messages are there.
    SyncEarly,
    /// A synchronisation waits for nobody.
    SyncAlone,
}

impl Fault {
    /// Each fault with a property that it breaks.
    pub(crate) const ALL: [(Self, Property); 24] = [
        (Self::Twice, Property::NothingTwice),
        (Self::Garbled, Property::NothingInvented),
        (Self::Missed, Property::NoGap),
        (Self::Missed, Property::NoSenderGap),
        (Self::Swapped, Property::TotalOrder),
        (Self::Refused, Property::RefusedNowhere),
        (Self::LateView, Property::SameView),
        (Self::OtherView, Property::OneSequenceOfViews),
        (Self::OtherView, Property::ViewsFollow),
        (Self::Ranks, Property::RanksStay),
        (Self::ViewMissed, Property::NoViewMissed),
        (Self::EarlySafe, Property::SafeStays),
        (Self::EarlyReturn, Property::SafeStays),
        (Self::Reversed, Property::SenderOrder),
        (Self::Hole, Property::SafePrefix),
        (Self::SwappedSafe, Property::SafeOrder),
        (Self::LateStart, Property::JoinersStart),
        (Self::TwoViews, Property::OneViewPerHost),
        (Self::Back, Property::GoneForGood),
        (Self::Late, Property::GoneForGood),
        (Self::Number, Property::OneNumber),
        (Self::Cause, Property::CausalOrder),
        (Self::SyncEarly, Property::SyncCovers),
        (Self::SyncAlone, Property::SyncWaits),
    ];
}

/// Steps of a run.
const STEPS: usize = 120;
/// Hosts of a group at its beginning.
const HOSTS: usize = 3;
/// Members at a time.
const MEMBERS_MAX: usize = 6;

#[derive(Clone)]
struct Posted {
    name: MessageName,
    level: TraceLevel,
    sum: u32,
}

#[derive(Clone)]
enum Item {
    Message(Posted),
    View(TracedView),
}

struct Participant {
    name: MemberName,
    host: usize,
    is_living: bool,
    /// The items that it has read.
    read: usize,
    sent: u64,
    /// A safe message whose call has not returned yet, and its place.
    waits: Option<(u64, usize)>,
    /// It has come to the synchronisation, and is not behind it yet.
    syncs: bool,
    events: Vec<TraceEvent>,
}

/// A group and its members.
pub(crate) struct Model {
    random: Random,
    fault: Option<Fault>,
    items: Vec<Item>,
    stable: usize,
    members: Vec<Participant>,
    views: u64,
    hosts: Vec<usize>,
    /// The members of the synchronisation that goes on, and the number of those so far.
    round: Option<Vec<usize>>,
    rounds: u64,
}

impl Model {
    /// Runs a group, and returns the traces of its members.
    pub(crate) fn run(seed: u64, fault: Option<Fault>) -> Vec<GroupTrace> {
        let mut model = Self {
            random: Random::new(seed),
            fault,
            items: Vec::new(),
            stable: 0,
            members: Vec::new(),
            views: 0,
            hosts: (0..HOSTS).collect(),
            round: None,
            rounds: 0,
        };
        (0..3).for_each(|_| model.join());
        (0..STEPS).for_each(|_| model.step());
        model.end();
        model.members.into_iter().map(trace).collect()
    }

    fn step(&mut self) {
        let Some(at) = self.any_living() else { return };
        match self.random.below(40) {
            0 => self.join(),
            1 if self.living().count() > 2 => self.depart(at, DepartureCause::Left),
            2 if self.living().count() > 2 => self.depart(at, DepartureCause::Died),
            3 if self.hosts.len() > 1 && self.random.once_in(2) => self.lose_host(),
            4 => self.come(at),
            5..=12 => self.send(at),
            13..=16 => self.settle(),
            _ => self.read(at),
        }
        self.complete();
    }

    fn is(&mut self, fault: Fault) -> bool {
        self.fault == Some(fault) && self.random.once_in(2)
    }

    fn living(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.members.len()).filter(|&at| self.members[at].is_living)
    }

    fn any_living(&mut self) -> Option<usize> {
        let living: Vec<usize> = self.living().collect();
        (!living.is_empty()).then(|| *self.random.pick(&living))
    }

    /// Adds a view, which is stable at once, like all before it.
    fn add_view(&mut self, joined: Vec<u32>, departed: Vec<(u32, DepartureCause)>) {
        self.views += 1;
        let mut members: Vec<u32> = self.living().map(|at| self.members[at].name.id).collect();
        // Members keep their ranks; a new one has the last.
        if self.is(Fault::Back) {
            let mut gone = self.members.iter().filter(|it| !it.is_living).map(|it| it.name.id);
            let is_new = |id: &u32| departed.iter().any(|(gone, _)| gone == id);
            let back = gone.find(|id| !members.contains(id) && !is_new(id));
            members.extend(back);
        }
        let after = self.items.iter().filter(|item| matches!(item, Item::Message(_))).count();
        let view =
            TracedView { number: self.views, after: Some(after as u64), members, joined, departed };
        self.items.push(Item::View(view));
        self.stable = self.items.len();
    }

    fn join(&mut self) {
        if self.living().count() >= MEMBERS_MAX {
            return;
        }
        let is_free = |id: &u32| self.living().all(|at| self.members[at].name.id != *id);
        let id = (0..).find(is_free).unwrap();
        let host = *self.random.pick(&self.hosts);
        let name = MemberName { id, since: self.views + 1 };
        let read = self.items.len();
        self.members.push(Participant {
            name,
            host,
            is_living: true,
            read,
            sent: 0,
            waits: None,
            syncs: false,
            events: Vec::new(),
        });
        self.add_view(vec![id], Vec::new());
    }

    fn depart(&mut self, at: usize, cause: DepartureCause) {
        if cause == DepartureCause::Left && self.members[at].waits.is_some() {
            return;
        }
        let member = &mut self.members[at];
        member.is_living = false;
        if cause == DepartureCause::Left {
            member.events.push(TraceEvent::Ended(TraceEnd::Left));
        }
        let id = member.name.id;
        let late =
            (cause == DepartureCause::Died && self.is(Fault::Late)).then(|| self.begin(at, false));
        self.add_view(Vec::new(), vec![(id, cause)]);
        self.items.extend(late.map(Item::Message));
    }

    /// A call begins that sends a message.
    fn begin(&mut self, at: usize, is_safe: bool) -> Posted {
        let level = match self.random.below(3) {
            _ if is_safe => TraceLevel::Safe,
            0 => TraceLevel::Fifo,
            _ => TraceLevel::Total,
        };
        let sum = self.random.bits() as u32;
        let member = &mut self.members[at];
        member.sent += 1;
        let number = member.sent;
        member.events.push(TraceEvent::Send { number, level, sum });
        Posted { name: MessageName { sender: member.name, number }, level, sum }
    }

    fn send(&mut self, at: usize) {
        // A member sends only behind its first view, and when its last call has returned.
        let member = &self.members[at];
        if member.events.is_empty() || member.waits.is_some() || member.syncs {
            return;
        }
        let is_safe = self.random.once_in(3);
        let posted = self.begin(at, is_safe);
        let number = posted.name.number;
        let outcome = self.random.below(12);
        if outcome == 0 && !self.is(Fault::Refused) {
            self.members[at].events.push(TraceEvent::Refused(number));
            return;
        }
        // Not even its sender knows whether it was sent.
        let is_in_doubt = outcome == 1;
        if is_in_doubt && self.random.once_in(2) {
            return;
        }
        let place = match self.is(Fault::Cause) {
            // In front of what only its sender has delivered.
            true => {
                let others = (0..self.members.len()).filter(|&other| other != at);
                let read = others.map(|other| self.members[other].read).max();
                read.unwrap_or(0).max(self.stable).min(self.members[at].read)
            }
            false => self.items.len(),
        };
        self.members[at].read += usize::from(place < self.members[at].read);
        self.items.insert(place, Item::Message(posted));
        let member = &mut self.members[at];
        match (outcome, is_safe) {
            (0, _) => member.events.push(TraceEvent::Refused(number)),
            (1, _) => {}
            (_, true) if self.fault != Some(Fault::EarlyReturn) => {
                member.waits = Some((number, place));
            }
            _ => member.events.push(TraceEvent::Sent(number)),
        }
    }

    /// More of the stream is stored everywhere.
    fn settle(&mut self) {
        let more = self.items.len() - self.stable;
        self.stable += self.random.below(more as u64 + 1) as usize;
        self.answer();
    }

    /// Calls that sent safe messages return.
    fn answer(&mut self) {
        for member in self.members.iter_mut().filter(|member| member.is_living) {
            if let Some((number, place)) = member.waits
                && place < self.stable
            {
                member.events.push(TraceEvent::Sent(number));
                member.waits = None;
            }
        }
    }

    /// A member reads the next item.
    fn read(&mut self, at: usize) {
        let place = self.members[at].read;
        let Some(item) = self.items.get(place).cloned() else { return };
        if self.members[at].syncs && self.random.once_in(2) {
            return;
        }
        let is_early = self.fault == Some(Fault::EarlySafe);
        match &item {
            Item::Message(it)
                if it.level == TraceLevel::Safe && place >= self.stable && !is_early =>
            {
                return;
            }
            _ => {}
        }
        let is_first = self.members[at].events.len() == 1;
        self.members[at].read += 1;
        let is_late = matches!(item, Item::View(_)) && !self.members[at].events.is_empty();
        let next = self.items.get(place + 1).cloned();
        let both_messages = matches!((&item, &next), (Item::Message(_), Some(Item::Message(_))));
        let both_stable = place + 1 < self.stable;
        if let Item::Message(_) = item
            && (self.is(Fault::Missed) || is_first && self.is(Fault::LateStart))
        {
            return;
        }
        if let (Item::View(_), true) = (&item, is_late)
            && self.is(Fault::ViewMissed)
        {
            return;
        }
        let swaps = both_messages && both_stable && (self.is(Fault::Swapped))
            || is_late
                && both_stable
                && matches!(next, Some(Item::Message(_)))
                && self.is(Fault::LateView);
        if swaps {
            self.show(at, place + 1, &next.unwrap());
            self.members[at].read += 1;
        }
        self.show(at, place, &item);
        if self.is(Fault::Twice) {
            self.show(at, place, &item);
        }
    }

    /// Writes an item into the trace of a member.
    fn show(&mut self, at: usize, place: usize, item: &Item) {
        let event = match item {
            Item::Message(Posted { name, level, sum }) => {
                let before = self.items[..place].iter();
                let before = before.filter(|item| matches!(item, Item::Message(_))).count() as u64;
                let at = before + u64::from(!self.is(Fault::Number));
                let sum = sum ^ u32::from(self.is(Fault::Garbled));
                TraceEvent::Delivered { message: *name, level: *level, sum, at: Some(at) }
            }
            Item::View(view) => {
                let mut view = view.clone();
                if view.members.len() > 2 && self.is(Fault::OtherView) {
                    let own = self.members[at].name.id;
                    let other = view.members.iter().position(|id| *id != own).unwrap();
                    view.members.remove(other);
                }
                if self.is(Fault::Ranks) {
                    view.members.reverse();
                }
                TraceEvent::View(view)
            }
        };
        self.members[at].events.push(event);
    }

    /// The home is lost, or another host.
    fn lose_host(&mut self) {
        let other = self.random.below(self.hosts.len() as u64) as usize;
        let place = if self.random.once_in(2) { 0 } else { other };
        let host = self.hosts[place];
        // The last members are not lost: nobody would see it.
        if self.living().all(|at| self.members[at].host == host) {
            return;
        }
        self.hosts.remove(place);
        let gone: Vec<usize> = self.living().filter(|&at| self.members[at].host == host).collect();
        if place == 0 {
            self.last_words(&gone);
            self.cut(host);
        }
        let asked = if place == 0 { self.asked_anew(host) } else { Vec::new() };
        for &at in &gone {
            self.members[at].is_living = false;
        }
        let ids: Vec<u32> = gone.iter().map(|&at| self.members[at].name.id).collect();
        let views = if self.is(Fault::TwoViews) { ids.len() } else { 1 };
        for part in ids.chunks(ids.len().div_ceil(views.max(1)).max(1)) {
            let lost = part.iter().map(|&id| (id, DepartureCause::Lost)).collect();
            self.add_view(Vec::new(), lost);
        }
        self.items.extend(asked.into_iter().map(Item::Message));
        self.find_waits();
    }

    /// Members of the home read on before it is lost.
    fn last_words(&mut self, gone: &[usize]) {
        for &at in gone {
            if self.fault == Some(Fault::Hole) {
                // They deliver a safe message that all others have stored, but not what stands before it.
                self.settle();
            }
            for _ in 0..self.random.below(6) {
                self.read(at);
            }
            let safe = |event: &TraceEvent| {
                matches!(event, TraceEvent::Delivered { level: TraceLevel::Safe, .. })
            };
            let events = &mut self.members[at].events;
            let places: Vec<usize> = (0..events.len()).filter(|&at| safe(&events[at])).collect();
            if let (Some(Fault::SwappedSafe), [.., first, second]) = (self.fault, &places[..]) {
                events.swap(*first, *second);
            }
        }
    }

    /// Items that only the home had are gone, from a place on that no living member elsewhere has read.
    fn cut(&mut self, host: usize) {
        let elsewhere = self.members.iter().filter(|it| it.is_living && it.host != host);
        let read = elsewhere.map(|member| member.read).max().unwrap_or(0);
        let mut kept = self.stable.max(read);
        kept += self.random.below((self.items.len() - kept) as u64 + 1) as usize;
        self.taken(kept);
    }

    fn taken(&mut self, kept: usize) {
        if self.fault == Some(Fault::Hole) {
            let readers = self.members.iter().filter(|it| it.is_living);
            let least = readers.map(|it| it.read).min().unwrap_or(0);
            let is_plain =
                |item: &Item| matches!(item, Item::Message(it) if it.level != TraceLevel::Safe);
            if let Some(at) = (least..kept).find(|&at| is_plain(&self.items[at])) {
                let late = self.members.iter_mut().filter(|it| it.read > at && it.is_living);
                late.for_each(|it| it.read -= 1);
                self.items.remove(at);
                self.stable -= usize::from(at < self.stable);
                return;
            }
        }
        self.items.truncate(kept);
    }

    /// Messages of members of other hosts that are not in the stream any more. Each sender's come in its order.
    fn asked_anew(&mut self, lost: usize) -> Vec<Posted> {
        let mut queues: Vec<Vec<Posted>> = Vec::new();
        for member in self.members.iter().filter(|it| it.is_living && it.host != lost) {
            let has = |number| {
                self.items.iter().any(|item| {
                matches!(item, Item::Message(it) if it.name == MessageName { sender: member.name, number })
            })
            };
            let sent = |number| member.events.contains(&TraceEvent::Sent(number));
            let waits = |number| member.waits.is_some_and(|(waits, _)| waits == number);
            let posts = member.events.iter().filter_map(|event| match *event {
                TraceEvent::Send { number, level, sum }
                    if (sent(number) || waits(number)) && !has(number) =>
                {
                    let name = MessageName { sender: member.name, number };
                    Some(Posted { name, level, sum })
                }
                _ => None,
            });
            queues.push(posts.collect());
        }
        let mut asked = Vec::new();
        while queues.iter().any(|queue| !queue.is_empty()) {
            let at = self.random.below(queues.len() as u64) as usize;
            if queues[at].is_empty() {
                continue;
            }
            let is_reversed = self.is(Fault::Reversed);
            let queue = &mut queues[at];
            asked.push(queue.remove(if is_reversed { queue.len() - 1 } else { 0 }));
        }
        asked
    }

    /// Finds the new places of safe messages whose calls wait.
    fn find_waits(&mut self) {
        let items = &self.items;
        for member in self.members.iter_mut().filter(|it| it.is_living) {
            let Some((number, _)) = member.waits else { continue };
            let name = MessageName { sender: member.name, number };
            let is_it = |item: &Item| matches!(item, Item::Message(it) if it.name == name);
            member.waits = items.iter().position(is_it).map(|place| (number, place));
        }
        self.answer();
    }

    /// A member comes to a synchronisation.
    fn come(&mut self, at: usize) {
        let member = &self.members[at];
        if member.syncs || member.waits.is_some() || member.events.is_empty() {
            return;
        }
        if self.round.is_none() {
            self.rounds += 1;
            self.round = Some(self.living().collect());
        }
        let awaited = self.round.as_ref().unwrap();
        if awaited.contains(&at) {
            self.members[at].events.push(TraceEvent::Syncing(self.rounds));
            self.members[at].syncs = true;
        }
        if self.fault == Some(Fault::SyncAlone) {
            self.members[at].events.push(TraceEvent::Synced(self.rounds));
            self.members[at].syncs = false;
        }
    }

    /// Completes the synchronisation if all have come that live: they find all messages.
    fn complete(&mut self) {
        let Some(awaited) = &self.round else { return };
        let has_come = |at: &usize| {
            let member = &self.members[*at];
            let round = TraceEvent::Syncing(self.rounds);
            !member.is_living || member.syncs || member.events.contains(&round)
        };
        if !awaited.iter().all(has_come) {
            return;
        }
        let awaited = self.round.take().unwrap();
        self.stable = self.items.len();
        self.answer();
        for at in awaited.into_iter().filter(|&at| self.members[at].is_living).collect::<Vec<_>>() {
            if !std::mem::take(&mut self.members[at].syncs) {
                continue;
            }
            self.members[at].events.push(TraceEvent::Synced(self.rounds));
            if self.random.once_in(2) || self.is(Fault::SyncEarly) {
                self.drain(at);
            }
        }
    }

    fn drain(&mut self, at: usize) {
        let left = self.items.len() - self.members[at].read;
        let early = usize::from(self.fault == Some(Fault::SyncEarly));
        (0..left.saturating_sub(early)).for_each(|_| {
            self.members[at].syncs = false;
            self.read(at);
        });
        self.members[at].events.push(TraceEvent::Empty);
    }

    /// All living members come to the last synchronisation, and leave.
    fn end(&mut self) {
        self.stable = self.items.len();
        self.answer();
        let living: Vec<usize> = self.living().collect();
        for &at in &living {
            // A new member first reads its view.
            self.read(at);
        }
        while living.iter().any(|&at| self.members[at].syncs) || self.round.is_some() {
            living.iter().for_each(|&at| self.come(at));
            self.complete();
        }
        living.iter().for_each(|&at| self.come(at));
        self.complete();
        for at in living {
            self.drain(at);
            self.members[at].events.push(TraceEvent::Ended(TraceEnd::Left));
        }
    }
}

fn trace(member: Participant) -> GroupTrace {
    let (rank, host) = (member.name.id, format!("n{}", member.host));
    let head = TraceHead { group: "ord".into(), member: member.name, rank, host };
    GroupTrace { source: format!("member {}", member.name), head, events: member.events }
}
