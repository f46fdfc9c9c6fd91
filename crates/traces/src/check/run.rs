//! The traces of one group, prepared for the checks: what became of each member, its sends and its deliveries.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use crate::event::{
    DepartureCause, GroupTrace, MemberName, MessageName, TraceEvent, TraceLevel, TracedView,
};

/// The traces of one group.
pub(super) struct Run<'a> {
    /// The members that have traces, in the order of their coming.
    pub(super) members: Vec<Participant<'a>>,
    by_name: BTreeMap<MemberName, usize>,
    /// The names that had each number, in the order of their coming.
    by_id: BTreeMap<u32, Vec<MemberName>>,
    /// The earliest of the last views before each synchronisation: members of that view belong to it.
    rounds: BTreeMap<u64, u64>,
}

/// The fate of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Its trace has an end.
    Ended,
    /// Its trace has none: its process died.
    Died,
    /// Its host was lost, or may have been: nobody saw its end.
    Lost,
}

/// A member and what it saw.
pub(super) struct Participant<'a> {
    pub(super) trace: &'a GroupTrace,
    pub(super) name: MemberName,
    pub(super) fate: Fate,
    /// The view in which it was lost with its host; its last one if nobody saw that.
    pub(super) lost_in: Option<u64>,
    /// The messages that it delivered, each once, in its order.
    pub(super) deliveries: Vec<Delivery>,
    /// The place of each of them in `deliveries`.
    pub(super) place: BTreeMap<MessageName, usize>,
    pub(super) sends: BTreeMap<u64, SendCall>,
    /// Whether some of them were refused.
    pub(super) has_refusals: bool,
    /// The synchronisations that it came to, with the number of events before.
    syncs: BTreeMap<u64, usize>,
    /// The last synchronisation behind which its mailbox was empty, and the number of events before that.
    pub(super) emptied: Option<(u64, usize)>,
}

/// A message that a member delivered.
pub(super) struct Delivery {
    pub(super) message: MessageName,
    pub(super) level: TraceLevel,
    pub(super) at: Option<u64>,
    /// The number of events before it.
    pub(super) event: usize,
}

/// A call that sends a message.
pub(super) struct SendCall {
    pub(super) level: TraceLevel,
    pub(super) sum: u32,
    pub(super) outcome: SendOutcome,
    /// The last view that the sender had seen.
    pub(super) view: u64,
}

/// The result of a call that sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendOutcome {
    /// The sender does not know.
    InDoubt,
    /// It returned, after so many events.
    Sent(usize),
    /// It was not sent.
    Refused,
}

impl<'a> Run<'a> {
    pub(super) fn new(traces: &'a [GroupTrace]) -> Self {
        let mut members: Vec<_> = traces.iter().map(Participant::new).collect();
        members.sort_by_key(|member| (member.name.since, member.name.id));
        let by_name = members.iter().enumerate().map(|(at, member)| (member.name, at)).collect();
        let (mut by_id, mut rounds) = (BTreeMap::<u32, Vec<_>>::new(), BTreeMap::new());
        for member in &members {
            by_id.entry(member.name.id).or_default().push(member.name);
            for (&round, &event) in &member.syncs {
                let views = member.views().take_while(|(at, _)| *at < event);
                let last = views.last().map_or(member.name.since, |(_, view)| view.number);
                let earliest = rounds.entry(round).or_insert(last);
                *earliest = last.min(*earliest);
            }
        }
        let mut run = Self { members, by_name, by_id, rounds };
        run.find_lost();
        run
    }

    /// Finds the members of lost hosts: those that a view names, and in a run over several hosts also those whose end nobody
    /// saw.
    fn find_lost(&mut self) {
        let told: BTreeMap<MemberName, (DepartureCause, u64)> =
            self.departures().map(|(name, cause, view)| (name, (cause, view))).collect();
        let hosts: BTreeSet<&str> =
            self.members.iter().map(|member| member.trace.head.host.as_str()).collect();
        let is_spread = hosts.len() > 1;
        for member in &mut self.members {
            let lost_in = match told.get(&member.name) {
                Some((DepartureCause::Lost, view)) => Some(*view),
                None if member.fate == Fate::Died && is_spread => {
                    let last = member.views().map(|(_, view)| view.number).max();
                    Some(last.unwrap_or(member.name.since))
                }
                _ => continue,
            };
            (member.fate, member.lost_in) = (Fate::Lost, lost_in);
        }
    }

    /// The members that went, as all views name them, with the number of the view.
    pub(super) fn departures(
        &self,
    ) -> impl Iterator<Item = (MemberName, DepartureCause, u64)> + '_ {
        let views = self.members.iter().flat_map(|member| member.views().map(|(_, view)| view));
        views.flat_map(|view| {
            let departed = view.departed.iter();
            departed.filter_map(|&(id, cause)| Some((self.departed(id, view)?, cause, view.number)))
        })
    }

    pub(super) fn find(&self, name: MemberName) -> Option<&Participant<'a>> {
        self.by_name.get(&name).map(|&at| &self.members[at])
    }

    /// The member that has this number in this view: the one that had the number last, or the first that had it at all.
    pub(super) fn resolve(&self, id: u32, view: u64) -> Option<MemberName> {
        let with_id = self.by_id.get(&id)?;
        let later = with_id.iter().take_while(|name| name.since <= view).last();
        later.or(with_id.first()).copied()
    }

    /// The member that a view says has gone.
    pub(super) fn departed(&self, id: u32, view: &TracedView) -> Option<MemberName> {
        self.resolve(id, view.number.saturating_sub(1))
    }

    /// Whether what a member did or saw at this event was before this synchronisation was complete: it had not come to it
    /// yet. One that never came to it had gone before, if it belonged to it.
    pub(super) fn is_before(&self, member: &Participant<'_>, event: usize, round: u64) -> bool {
        let belongs = self.rounds.get(&round).is_some_and(|&view| member.name.since <= view);
        member.syncs.get(&round).map_or(belongs, |&came| event < came)
    }

    /// The words for a member: its number, with its first view where several had the number.
    pub(super) fn member(&self, name: MemberName) -> String {
        match self.by_id.get(&name.id).map_or(0, Vec::len) {
            0 | 1 => format!("member {}", name.id),
            _ => format!("member {} of view {}", name.id, name.since),
        }
    }

    /// The words for a message.
    pub(super) fn message(&self, message: MessageName) -> String {
        format!("message {} of {}", message.number, self.member(message.sender))
    }
}

impl<'a> Participant<'a> {
    fn new(trace: &'a GroupTrace) -> Self {
        let mut member = Self {
            trace,
            name: trace.head.member,
            fate: if trace.end().is_some() { Fate::Ended } else { Fate::Died },
            lost_in: None,
            deliveries: Vec::new(),
            place: BTreeMap::new(),
            sends: BTreeMap::new(),
            has_refusals: false,
            syncs: BTreeMap::new(),
            emptied: None,
        };
        let (mut round, mut view) = (None, 0);
        for (at, event) in trace.events.iter().enumerate() {
            match *event {
                TraceEvent::Synced(number) => round = Some(number),
                TraceEvent::Empty => member.emptied = round.map(|round| (round, at)),
                TraceEvent::View(ref next) => view = next.number,
                _ => member.add(at, event, view),
            }
        }
        member
    }

    fn add(&mut self, event: usize, what: &TraceEvent, view: u64) {
        match *what {
            TraceEvent::Send { number, level, sum } => {
                let call = SendCall { level, sum, outcome: SendOutcome::InDoubt, view };
                self.sends.entry(number).or_insert(call);
            }
            TraceEvent::Sent(number) => self.set_outcome(number, SendOutcome::Sent(event)),
            TraceEvent::Refused(number) => self.set_outcome(number, SendOutcome::Refused),
            TraceEvent::Delivered { message, level, at, .. } => {
                if let Entry::Vacant(vacant) = self.place.entry(message) {
                    vacant.insert(self.deliveries.len());
                    self.deliveries.push(Delivery { message, level, at, event });
                }
            }
            TraceEvent::Syncing(round) => {
                self.syncs.entry(round).or_insert(event);
            }
            _ => {}
        }
    }

    fn set_outcome(&mut self, number: u64, outcome: SendOutcome) {
        self.has_refusals |= outcome == SendOutcome::Refused;
        if let Some(call) = self.sends.get_mut(&number) {
            call.outcome = outcome;
        }
    }

    /// Its views, each with the number of events before it.
    pub(super) fn views(&self) -> impl Iterator<Item = (usize, &'a TracedView)> + use<'a> {
        self.trace.views()
    }

    /// The number of deliveries before so many events.
    pub(super) fn deliveries_before(&self, events: usize) -> usize {
        self.deliveries.partition_point(|delivery| delivery.event < events)
    }

    /// The number of deliveries before it saw another member come.
    pub(super) fn deliveries_without(&self, other: MemberName) -> usize {
        let came = self.views().find(|(_, view)| view.number >= other.since);
        came.map_or(self.deliveries.len(), |(event, _)| self.deliveries_before(event))
    }

    /// The name of one of its messages.
    pub(super) fn sent(&self, number: u64) -> MessageName {
        MessageName { sender: self.name, number }
    }
}
