//! A group on a simulated host: the machine, the copy's contents, the parties and what they see.

use std::collections::BTreeMap;

use landeck_protocols::order::{Holder, HolderId, OrderEntry, OrderLevel, OrderParty};

/// The content of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Join,
    Message,
}

/// An event that the members on a host see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    View { members: Vec<OrderParty> },
    Message { from: OrderParty, number: u64, level: OrderLevel },
}

/// The events that the parties of one holder have seen, with the positions of the entries.
#[derive(Clone, Debug)]
pub(super) struct Trace {
    pub(super) holder: HolderId,
    pub(super) group: u32,
    pub(super) events: Vec<(u64, Seen)>,
    /// Where each party's membership begins and ends.
    pub(super) spans: BTreeMap<OrderParty, (u64, u64)>,
    /// Whether it lasts until the end of the run.
    pub(super) is_survivor: bool,
}

/// A request that a party has made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) content: Content,
    pub(super) level: OrderLevel,
    /// The position that its host had delivered.
    pub(super) seen: u64,
    pub(super) is_answered: bool,
}

/// A copy of a log with its contents.
#[derive(Clone, Debug, Default)]
pub(super) struct CopyLog {
    pub(super) entries: Vec<OrderEntry>,
    /// A number for each beginning, equal where the entries are.
    prefixes: Vec<u64>,
}

impl CopyLog {
    pub(super) fn len(&self) -> u64 {
        self.entries.len() as u64
    }

    pub(super) fn push(&mut self, entry: OrderEntry) {
        self.prefixes.push(mixed(self.prefix(self.len()), &entry));
        self.entries.push(entry);
    }

    pub(super) fn prefix(&self, length: u64) -> u64 {
        match length {
            0 => 0,
            _ => self.prefixes.get(length as usize - 1).copied().unwrap_or(u64::MAX),
        }
    }
}

fn mixed(before: u64, entry: &OrderEntry) -> u64 {
    let (kind, one, other) = match entry {
        OrderEntry::View { epoch, holders } => (1, *epoch, holders.len() as u64),
        OrderEntry::Holder(holder) => (2, holder.word, 0),
        OrderEntry::HostGone(holder) => (3, holder.word, 0),
        OrderEntry::Died(party) => (4, party.holder.word, u64::from(party.number)),
        OrderEntry::Sealed => (5, 0, 0),
        OrderEntry::Request { party, number, .. } => {
            (6, party.holder.word << 16 | u64::from(party.number), *number)
        }
    };
    [kind, one, other].into_iter().fold(before, |hash, part| {
        (hash ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    })
}

/// A group on a host.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) machine: Holder,
    pub(super) log: CopyLog,
    pub(super) trace: Trace,
    /// The members, in the order of joining, at the delivered position.
    pub(super) members: Vec<OrderParty>,
    /// The living parties of this host.
    pub(super) parties: Vec<OrderParty>,
    pub(super) next_party: u32,
}

impl Held {
    pub(super) fn new(machine: Holder, group: u32) -> Self {
        let trace = Trace {
            holder: machine.id(),
            group,
            events: Vec::new(),
            spans: BTreeMap::new(),
            is_survivor: false,
        };
        Self {
            machine,
            log: CopyLog::default(),
            trace,
            members: Vec::new(),
            parties: Vec::new(),
            next_party: 0,
        }
    }

    /// Another party comes.
    pub(super) fn add_party(&mut self) -> OrderParty {
        let party = OrderParty { holder: self.machine.id(), number: self.next_party };
        self.next_party += 1;
        self.parties.push(party);
        party
    }

    /// Gives an entry to the parties.
    pub(super) fn deliver(
        &mut self,
        position: u64,
        contents: &BTreeMap<(u32, OrderParty, u64), Request>,
    ) {
        let Some(entry) = self.log.entries.get(position as usize) else { return };
        let before = self.members.len();
        match entry {
            OrderEntry::Request { party, number, .. } => {
                let key = (self.trace.group, *party, *number);
                let Some(request) = contents.get(&key) else { return };
                match request.content {
                    Content::Join => {
                        self.members.push(*party);
                        self.trace.spans.insert(*party, (position, u64::MAX));
                    }
                    Content::Message => {
                        let (from, number, level) = (*party, *number, request.level);
                        self.trace.events.push((position, Seen::Message { from, number, level }));
                    }
                }
            }
            OrderEntry::Died(party) => self.members.retain(|member| member != party),
            OrderEntry::HostGone(holder) => self.members.retain(|member| member.holder != *holder),
            _ => {}
        }
        if self.members.len() != before {
            for (party, span) in &mut self.trace.spans {
                if span.1 == u64::MAX && !self.members.contains(party) {
                    span.1 = position;
                }
            }
            let members = self.members.clone();
            self.trace.events.push((position, Seen::View { members }));
        }
    }

    /// Takes over the contents of another copy, of which nobody here has seen anything.
    pub(super) fn begin(
        &mut self,
        log: CopyLog,
        contents: &BTreeMap<(u32, OrderParty, u64), Request>,
    ) {
        self.log = log;
        self.members.clear();
        (0..self.log.len()).for_each(|position| self.deliver(position, contents));
        self.trace.events.clear();
    }
}
