//! A holder of a group: its copy of the log on one host, as a copy, as the home, and on the way from one to the other.
//!
//! Copies are prefixes of one sequence, so the machine knows positions and the meaning of entries; contents are the
//! driver's. Messages of another epoch, of a host that is no holder and garbled ones are dropped and counted.

use std::collections::BTreeSet;
use std::time::Duration;

use super::copy::OrderCopy;
use super::feeding::{BATCH, Feeds, feed_of};
use super::fold::{OrderEntry, OrderFold, OrderParty, RequestShape};
use super::homes::HomeReport;
use super::message::{CopyReport, OrderContent, OrderMessage};
use super::requests::{OrderAnswer, REQUESTS_MAX, Requests, WindowFull};
use super::takeover::Takeover;
use super::words::{GroupChange, GroupStanding, GroupWord, HolderId, OutCause};
use crate::DroppedMessages;
use crate::hosts::HostTiming;
use crate::hosts::timing::Looks;
use std::collections::BTreeMap;

/// An action for the driver of a holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderOutput {
    /// Send a message to another holder. A feed takes its entries from the copy, a beginning the content of the state.
    Send {
        /// The holder.
        to: HolderId,
        /// The message.
        message: OrderMessage,
    },
    /// Write an entry at the end of the copy.
    Stored {
        /// Its position.
        position: u64,
        /// The entry.
        entry: OrderEntry,
    },
    /// The copy begins with the state at this position, which came with the message; what was there before is dropped.
    Begun {
        /// The position.
        at: u64,
    },
    /// Deliver these entries to the host's parties.
    Deliver {
        /// The position of the first.
        from: u64,
        /// The position behind the last.
        to: u64,
    },
    /// A request of a party has its entry.
    Answer(OrderAnswer),
    /// Report something to the arbiter.
    Report {
        /// The epoch of the report.
        epoch: u64,
        /// The report.
        report: HomeReport,
    },
    /// The holder was put out: its copy is worth nothing, and its parties are members no more.
    Evicted(OutCause),
    /// No complete copy of the group is left.
    GroupLost,
}

#[derive(Clone, Debug)]
pub(super) enum Role {
    Following,
    TakingOver(Takeover),
    Open(Feeds),
    Over,
}

/// A holder of a group.
#[derive(Clone, Debug)]
pub struct Holder {
    pub(super) own: HolderId,
    pub(super) standing: GroupStanding,
    pub(super) copy: OrderCopy,
    pub(super) role: Role,
    pub(super) requests: Requests,
    pub(super) timing: HostTiming,
    pub(super) valid_until: Duration,
    /// When each holder has answered this home last.
    pub(super) heard: BTreeMap<HolderId, Duration>,
    pub(super) looks: Looks,
    /// The wanted next home, once this one is to close.
    pub(super) next_home: Option<HolderId>,
    pub(super) slow: Option<HolderId>,
    pub(super) dropped: DroppedMessages,
}

impl Holder {
    /// Creates a holder that the words up to `standing` have registered.
    #[must_use]
    pub fn new(own: HolderId, standing: GroupStanding, timing: HostTiming, now: Duration) -> Self {
        let is_first = standing.epoch == own.word;
        let mut holder = Self {
            own,
            standing,
            copy: if is_first { OrderCopy::created(own) } else { OrderCopy::new(own) },
            role: Role::Following,
            requests: Requests::default(),
            timing,
            valid_until: Duration::ZERO,
            heard: BTreeMap::new(),
            looks: Looks::new(now),
            next_home: None,
            slow: None,
            dropped: DroppedMessages::default(),
        };
        if holder.standing.home == Some(own) {
            holder.role = Role::TakingOver(Takeover::default());
        }
        holder
    }

    /// Its identity.
    #[must_use]
    pub const fn id(&self) -> HolderId {
        self.own
    }

    /// Its epoch, by the words it has.
    #[must_use]
    pub const fn epoch(&self) -> u64 {
        self.standing.epoch
    }

    /// The number of entries of its copy.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.copy.length()
    }

    /// The position before which all holders that count have stored everything, as far as it knows.
    #[must_use]
    pub const fn stable(&self) -> u64 {
        self.copy.stable()
    }

    /// The position before which everything is delivered.
    #[must_use]
    pub const fn delivered(&self) -> u64 {
        self.copy.delivered()
    }

    /// The position from which entries are kept for other holders.
    #[must_use]
    pub const fn kept_from(&self) -> u64 {
        self.copy.kept_from()
    }

    /// The state that follows from its copy.
    #[must_use]
    pub const fn fold(&self) -> &OrderFold {
        self.copy.fold()
    }

    /// Whether its copy has everything from the group's beginning, in itself or in its state.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.copy.is_complete()
    }

    /// Whether it is the home and has begun its epoch.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(self.role, Role::Open(_))
    }

    /// Whether the group is over for it: it was put out, or the group is lost.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        matches!(self.role, Role::Over)
    }

    /// The holders that count: those of the own copy that are registered.
    #[must_use]
    pub fn counted(&self) -> BTreeSet<HolderId> {
        self.copy.fold().present().intersection(&self.standing.registered).copied().collect()
    }

    /// The holder whose lag has made the home refuse a request last.
    #[must_use]
    pub const fn slow(&self) -> Option<HolderId> {
        self.slow
    }

    /// The number of the next request of a party on this host.
    #[must_use]
    pub fn next_number(&self, party: OrderParty) -> u64 {
        self.requests.next_number(party)
    }

    /// The messages that it has dropped.
    #[must_use]
    pub const fn dropped(&self) -> DroppedMessages {
        self.dropped
    }

    /// The host's view is valid until this time of its clock.
    pub fn renewed(&mut self, valid_until: Duration) {
        self.valid_until = valid_until;
    }

    /// Applies a word of the arbiter about the group.
    pub fn word(&mut self, word: &GroupWord, now: Duration) -> Vec<OrderOutput> {
        if self.is_over() {
            return Vec::new();
        }
        self.standing.apply(word);
        match word.change {
            GroupChange::Out(holder, cause) if holder == self.own => {
                self.role = Role::Over;
                vec![OrderOutput::Evicted(cause)]
            }
            GroupChange::Lost => {
                self.role = Role::Over;
                vec![OrderOutput::GroupLost]
            }
            GroupChange::Home(home) => self.new_epoch(home, now),
            _ => self.go_on(now, false),
        }
    }

    fn new_epoch(&mut self, home: HolderId, now: Duration) -> Vec<OrderOutput> {
        let mut outputs = Vec::new();
        self.copy.begins_anew();
        (self.role, self.next_home) = (Role::Following, None);
        if home == self.own {
            self.role = Role::TakingOver(Takeover::default());
            self.heard.clear();
            outputs.extend(self.take_over(now, true));
        }
        outputs
    }

    /// Takes a message. `entries` are those of a feed.
    pub fn receive(
        &mut self,
        from: HolderId,
        message: OrderMessage,
        entries: &[OrderEntry],
        now: Duration,
    ) -> Vec<OrderOutput> {
        let epoch = self.standing.epoch;
        let OrderMessage { epoch: of, content } = message;
        if self.is_over() {
            return Vec::new();
        }
        if matches!(content, OrderContent::Stored(_) | OrderContent::Report(_)) {
            self.heard.insert(from, now);
        }
        let is_current = of == epoch && self.may_send(from, &content);
        if !is_current {
            let dropped = &mut self.dropped;
            *if of == epoch { &mut dropped.foreign } else { &mut dropped.old } += 1;
            // It has not promised yet, so its report says nothing but that it is there.
            let report = || self.send(from, OrderContent::Report(self.copy_report()));
            return (of > epoch).then(report).into_iter().collect();
        }
        match content {
            OrderContent::Feed { from: first, count, stable } => {
                if entries.len() != count as usize || stable > first.saturating_add(count.into()) {
                    self.dropped.garbled += 1;
                    return Vec::new();
                }
                self.take_feed(from, (first, entries), stable, now)
            }
            OrderContent::Begin { at, stable, fold } => {
                self.take_begin(from, (at, stable, fold), now)
            }
            OrderContent::Stored(length) => self.take_stored(from, length, now),
            OrderContent::Ask => vec![self.send(from, OrderContent::Report(self.copy_report()))],
            OrderContent::Report(report) => {
                let Role::TakingOver(takeover) = &mut self.role else { return Vec::new() };
                takeover.reported(from, report);
                self.take_over(now, false)
            }
            OrderContent::Fetch(first) => self.answer_fetch(from, first),
            OrderContent::Requests { party, first, oldest, asked, died_after } => {
                let window = oldest.checked_add(REQUESTS_MAX as u64);
                let last = first.checked_add(asked.len() as u64);
                let is_window = oldest > 0 && oldest <= first && last.is_some() && last <= window;
                if party.holder != from || !is_window {
                    self.dropped.garbled += 1;
                    return Vec::new();
                }
                let requests = (party, first, oldest, asked, died_after);
                let mut outputs = self.take_requests(requests, now);
                outputs.extend(self.serve(now, false));
                outputs
            }
            OrderContent::Full(slow) => {
                self.slow = Some(slow);
                Vec::new()
            }
        }
    }

    /// Whether a holder is in the place to send this in the current epoch.
    fn may_send(&self, from: HolderId, content: &OrderContent) -> bool {
        let is_home = self.standing.home == Some(from);
        match content {
            OrderContent::Feed { .. } | OrderContent::Begin { .. } => match &self.role {
                Role::TakingOver(takeover) => takeover.is_source(from),
                _ => is_home,
            },
            OrderContent::Ask | OrderContent::Fetch(_) | OrderContent::Full(_) => is_home,
            OrderContent::Stored(_) | OrderContent::Report(_) | OrderContent::Requests { .. } => {
                self.standing.home == Some(self.own) && self.standing.registered.contains(&from)
            }
        }
    }

    /// Looks at the time. A driver looks once in each interval of [`HostTiming`]. `drained` says that it has read everything
    /// that has come.
    pub fn look(&mut self, now: Duration, drained: bool) -> Vec<OrderOutput> {
        self.looks.look(now, drained, self.timing);
        let mut outputs = self.go_on(now, true);
        match self.role {
            Role::Following => outputs.extend(self.tell_home()),
            Role::TakingOver(_) | Role::Open(_) => outputs.extend(self.missed(now)),
            Role::Over => {}
        }
        outputs
    }

    /// Takes a request of a party on this host, and returns its number. The driver keeps its content until it is answered.
    ///
    /// # Errors
    /// [`WindowFull`] if too many requests of the party are unanswered.
    pub fn ask(
        &mut self,
        party: OrderParty,
        asked: RequestShape,
        now: Duration,
    ) -> Result<(u64, Vec<OrderOutput>), WindowFull> {
        let number = self.requests.ask(party, asked)?;
        Ok((number, self.tell_one(party, now)))
    }

    /// A party on this host died. Its death gets its entry behind those of its requests.
    pub fn died(&mut self, party: OrderParty, now: Duration) -> Vec<OrderOutput> {
        self.requests.died(party);
        self.tell_one(party, now)
    }

    /// Seals the log, so that a holder on this host becomes the home; without one, the first that counts. False if this is not
    /// the home, or the only holder that counts.
    pub fn close(
        &mut self,
        to: Option<landeck_wire::HostNumber>,
        now: Duration,
    ) -> (bool, Vec<OrderOutput>) {
        let others: Vec<HolderId> =
            self.counted().into_iter().filter(|holder| *holder != self.own).collect();
        let wanted = others.iter().find(|holder| Some(holder.host) == to).or(others.first());
        if wanted.is_none() || !self.may_accept(now) {
            return (false, Vec::new());
        }
        self.next_home = wanted.copied();
        let mut outputs = self.store(OrderEntry::Sealed);
        outputs.extend(self.serve(now, false));
        (true, outputs)
    }

    // ---- the copy

    /// Appends an entry to the own copy.
    pub(super) fn store(&mut self, entry: OrderEntry) -> Vec<OrderOutput> {
        let position = self.copy.push(&entry);
        let own = match &entry {
            OrderEntry::Request { party, number, asked, .. } if party.holder == self.own => {
                self.requests.stored((*party, *number), position, asked.level)
            }
            _ => None,
        };
        let stored = OrderOutput::Stored { position, entry };
        [stored].into_iter().chain(own.map(OrderOutput::Answer)).collect()
    }

    fn take_feed(
        &mut self,
        from: HolderId,
        (first, entries): (u64, &[OrderEntry]),
        stable: u64,
        now: Duration,
    ) -> Vec<OrderOutput> {
        let mut outputs = Vec::new();
        if self.copy.has_begun() && first <= self.copy.length() {
            let known = (self.copy.length() - first) as usize;
            let was_open = self.open_home().is_some();
            for entry in entries.iter().skip(known) {
                outputs.extend(self.store(entry.clone()));
            }
            outputs.extend(self.settle(stable, u64::MAX));
            if !was_open {
                outputs.extend(self.tell_home());
            }
        }
        outputs.extend(self.acknowledge(from, now));
        outputs
    }

    fn take_begin(
        &mut self,
        from: HolderId,
        (at, stable, fold): (u64, u64, OrderFold),
        now: Duration,
    ) -> Vec<OrderOutput> {
        if stable > at {
            self.dropped.garbled += 1;
            return Vec::new();
        }
        let is_news = !self.copy.has_begun() || at > self.copy.length();
        let mut outputs = Vec::new();
        if is_news && !self.copy.is_complete() {
            self.copy.begin(at, stable, fold);
            outputs.push(OrderOutput::Begun { at });
            if matches!(self.role, Role::TakingOver(_)) {
                self.copy.complete();
            }
        }
        outputs.extend(self.acknowledge(from, now));
        outputs
    }

    /// Answers the source of entries: a holder says how far its copy goes, a home to be goes on.
    fn acknowledge(&mut self, from: HolderId, now: Duration) -> Vec<OrderOutput> {
        match self.role {
            Role::TakingOver(_) => self.take_over(now, false),
            _ => {
                let length = if self.copy.has_begun() { self.copy.length() } else { 0 };
                vec![self.send(from, OrderContent::Stored(length))]
            }
        }
    }

    /// Everything before `stable` is stable, and nothing before `needed` is needed for others: answers, delivers, forgets.
    pub(super) fn settle(&mut self, stable: u64, needed: u64) -> Vec<OrderOutput> {
        self.copy.stable_until(stable);
        let answers = self.requests.stable(self.copy.stable());
        let mut outputs: Vec<OrderOutput> = answers.into_iter().map(OrderOutput::Answer).collect();
        let from = self.copy.delivered();
        if self.copy.deliver() {
            outputs.push(OrderOutput::Deliver { from, to: self.copy.delivered() });
        }
        self.copy.forget(needed);
        outputs
    }

    pub(super) fn copy_report(&self) -> CopyReport {
        CopyReport { length: self.copy.length(), is_complete: self.copy.is_complete() }
    }

    fn answer_fetch(&mut self, from: HolderId, first: Option<u64>) -> Vec<OrderOutput> {
        let copy = &self.copy;
        let content = match first {
            Some(first) if (copy.kept_from()..=copy.length()).contains(&first) => {
                feed_of(copy, first, copy.batch(first, BATCH.0, BATCH.1))
            }
            Some(first) => {
                // One from before the view may come late.
                let is_late = first < copy.kept_from();
                *if is_late { &mut self.dropped.old } else { &mut self.dropped.garbled } += 1;
                return Vec::new();
            }
            None => OrderContent::Begin {
                at: copy.length(),
                stable: copy.stable(),
                fold: copy.fold().clone(),
            },
        };
        vec![self.send(from, content)]
    }

    // ---- requests

    /// The home, once its epoch has begun here and this copy is complete: nobody here may miss what follows its requests.
    fn open_home(&self) -> Option<HolderId> {
        let has_begun = self.copy.fold().epoch() == self.standing.epoch;
        let is_follower = matches!(self.role, Role::Following);
        self.standing.home.filter(|_| is_follower && has_begun && self.copy.is_complete())
    }

    /// Tells the home what has no entry.
    fn tell_home(&self) -> Vec<OrderOutput> {
        let Some(home) = self.open_home() else { return Vec::new() };
        let untold = self.requests.untold(self.copy.fold());
        untold.into_iter().map(|content| self.send(home, content)).collect()
    }

    fn tell_one(&mut self, party: OrderParty, now: Duration) -> Vec<OrderOutput> {
        match (&self.role, self.requests.untold_of(party)) {
            (Role::Open(_), Some(content)) => {
                let mut outputs = self.take_own(content, now);
                outputs.extend(self.serve(now, false));
                outputs
            }
            (_, Some(content)) => {
                self.open_home().map(|home| self.send(home, content)).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    pub(super) const fn report(&self, report: HomeReport) -> OrderOutput {
        OrderOutput::Report { epoch: self.standing.epoch, report }
    }

    pub(super) const fn send(&self, to: HolderId, content: OrderContent) -> OrderOutput {
        OrderOutput::Send { to, message: OrderMessage { epoch: self.standing.epoch, content } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::OrderLevel;
    use landeck_wire::HostNumber;

    const FIRST: HolderId = HolderId { word: 1, host: HostNumber(1) };
    const SECOND: HolderId = HolderId { word: 2, host: HostNumber(2) };
    const NOW: Duration = Duration::from_secs(5);
    const PARTY: OrderParty = OrderParty { holder: SECOND, number: 0 };
    const SHAPE: RequestShape = RequestShape { bytes: 1, level: OrderLevel::Total };

    /// The home of a group, alone.
    fn home() -> Holder {
        let mut standing = GroupStanding::default();
        standing.apply(&GroupWord { number: 1, group: 1, change: GroupChange::Created(FIRST) });
        let timing = HostTiming::new(Duration::from_secs(1));
        let mut home = Holder::new(FIRST, standing, timing, NOW);
        home.renewed(2 * NOW);
        home.look(NOW, true);
        home
    }

    fn register(holder: &mut Holder) -> Vec<OrderOutput> {
        let change = GroupChange::Registered(SECOND);
        holder.word(&GroupWord { number: 2, group: 1, change }, NOW)
    }

    fn message(epoch: u64, content: OrderContent) -> OrderMessage {
        OrderMessage { epoch, content }
    }

    #[test]
    fn a_home_alone_begins_its_epoch_and_accepts() {
        let mut home = home();
        assert!(home.is_open() && home.is_complete());
        assert_eq!((home.length(), home.stable(), home.delivered()), (1, 1, 1));
        let own = OrderParty { holder: FIRST, number: 0 };
        let (number, outputs) = home.ask(own, SHAPE, NOW).unwrap();
        assert!(outputs.iter().any(|it| matches!(it, OrderOutput::Answer(_))), "{outputs:?}");
        assert_eq!((number, home.fold().outcome(own, 1)), (1, Some(1)));
        home.renewed(NOW);
        let (_, outputs) = home.ask(own, SHAPE, NOW).unwrap();
        assert_eq!((outputs, home.length()), (Vec::new(), 2), "its view is over");
    }

    #[test]
    fn a_holder_counts_once_its_copy_has_begun() {
        let mut home = home();
        let outputs = register(&mut home);
        assert!(matches!(outputs[0], OrderOutput::Send { to: SECOND, .. }), "{outputs:?}");
        assert_eq!(home.counted().len(), 1);
        home.receive(SECOND, message(1, OrderContent::Stored(0)), &[], NOW);
        assert_eq!(home.counted().len(), 1, "it has nothing");
        home.receive(SECOND, message(1, OrderContent::Stored(1)), &[], NOW);
        assert_eq!((home.counted().len(), home.length(), home.stable()), (2, 2, 1));
        home.receive(SECOND, message(0, OrderContent::Stored(2)), &[], NOW);
        assert_eq!(home.stable(), 1, "it has stored that in another epoch");
        home.receive(SECOND, message(1, OrderContent::Stored(2)), &[], NOW);
        assert_eq!(home.stable(), 2);
    }

    #[test]
    fn messages_that_cannot_be_are_dropped_and_counted() {
        let mut home = home();
        home.receive(SECOND, message(1, OrderContent::Stored(1)), &[], NOW);
        assert_eq!(home.dropped().foreign, 1, "it is no holder");
        register(&mut home);
        home.receive(SECOND, message(0, OrderContent::Stored(1)), &[], NOW);
        assert_eq!(home.dropped().old, 1, "another epoch");
        home.receive(SECOND, message(1, OrderContent::Stored(9)), &[], NOW);
        assert_eq!(home.dropped().garbled, 1, "more than there is");
        let requests = |party, first, oldest| OrderContent::Requests {
            party,
            first,
            oldest,
            asked: vec![SHAPE],
            died_after: None,
        };
        let own = OrderParty { holder: FIRST, number: 0 };
        home.receive(SECOND, message(1, requests(own, 1, 1)), &[], NOW);
        home.receive(SECOND, message(1, requests(PARTY, 1, 2)), &[], NOW);
        home.receive(SECOND, message(1, requests(PARTY, u64::MAX, 1)), &[], NOW);
        assert_eq!(home.dropped().garbled, 4, "another's party, no window");
        home.receive(SECOND, message(1, OrderContent::Ask), &[], NOW);
        let feed = OrderContent::Feed { from: 0, count: 1, stable: 0 };
        home.receive(SECOND, message(1, feed.clone()), &[], NOW);
        assert_eq!((home.dropped().foreign, home.length()), (3, 1), "only the home may");
        let mut standing = home.standing.clone();
        standing.registered.insert(SECOND);
        let mut second = Holder::new(SECOND, standing, HostTiming::new(NOW), NOW);
        second.receive(FIRST, message(1, feed), &[], NOW);
        let begin = OrderContent::Begin { at: 1, stable: 2, fold: OrderFold::default() };
        second.receive(FIRST, message(1, begin), &[], NOW);
        second.receive(FIRST, message(1, OrderContent::Fetch(Some(u64::MAX))), &[], NOW);
        assert_eq!(second.dropped().garbled, 3, "no entry in it, stable before it is there");
    }

    #[test]
    fn a_holder_that_is_put_out_does_nothing_more() {
        let mut home = home();
        let change = GroupChange::Out(FIRST, OutCause::NoPath);
        let outputs = home.word(&GroupWord { number: 3, group: 1, change }, NOW);
        assert_eq!(outputs, [OrderOutput::Evicted(OutCause::NoPath)]);
        assert_eq!(home.look(2 * NOW, true), []);
        assert_eq!(register(&mut home), []);
    }
}
