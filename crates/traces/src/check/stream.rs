//! The one order of all messages, made of what the members delivered, and the checks that it is one.
//!
//! Each member has a part of it, from its first message to its last. A member of a lost host may go its own way at the end:
//! the group asks for such messages anew, so they come later, or never. That end is its *tail*.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::Property;
use super::property::Findings;
use super::run::{Delivery, Fate, Participant, Run};
use crate::event::MessageName;

/// The order of all messages.
#[derive(Default)]
pub(super) struct Stream {
    pub(super) order: Vec<MessageName>,
    pub(super) place: BTreeMap<MessageName, usize>,
    /// The member from which each message was learnt first.
    learnt_from: Vec<usize>,
    /// The numbers that the group gave them, where that is known.
    numbers: BTreeMap<MessageName, u64>,
    /// The places at which messages may be missing, since no member that was added delivered both sides of it.
    seams: BTreeSet<usize>,
    /// The part of each member.
    pub(super) parts: Vec<Part>,
}

/// The part of the order that a member has delivered.
#[derive(Clone, Copy, Default)]
pub(super) struct Part {
    /// The place of its first message.
    pub(super) start: usize,
    /// The place behind its last message.
    pub(super) end: usize,
    /// The number of deliveries before its tail; all of them if it has none.
    pub(super) tail: usize,
    /// Whether it has another order, or gaps.
    pub(super) differs: bool,
}

impl Stream {
    /// Makes the order of what all members delivered. Those of lost hosts come last, those first that were lost last: they
    /// decide nothing against members that survived them.
    pub(super) fn new(run: &Run<'_>, findings: &mut Findings) -> Self {
        let mut stream =
            Self { parts: vec![Part::default(); run.members.len()], ..Self::default() };
        let all = 0..run.members.len();
        let (mut lost, sound): (Vec<_>, Vec<_>) =
            all.partition(|&at| run.members[at].fate == Fate::Lost);
        for at in sound {
            stream.parts[at] = stream.add(run, at, findings);
        }
        lost.sort_by_key(|&at| Reverse((run.members[at].lost_in, run.members[at].name.since)));
        // One may connect others to the order, so all are looked at until none adds anything.
        loop {
            let known = stream.order.len();
            for &at in &lost {
                stream.parts[at] = stream.add(run, at, findings);
            }
            if stream.order.len() == known {
                return stream;
            }
        }
    }

    /// Adds a member.
    fn add(&mut self, run: &Run<'_>, at: usize, findings: &mut Findings) -> Part {
        let member = &run.members[at];
        let (all, is_lost) = (member.deliveries.len(), member.fate == Fate::Lost);
        let Some((before, place)) = self.first_known(member, 0) else {
            let start = self.order.len();
            if is_lost && start > 0 {
                return Part { start, end: start, tail: 0, differs: false };
            }
            self.seams.extend((start > 0 && all > 0).then_some(start));
            (0..all).for_each(|j| self.push(&member.deliveries[j], at));
            return Part { start, end: self.order.len(), tail: all, differs: false };
        };
        let is_open = place == 0 || self.seams.contains(&place);
        let common =
            if is_lost { before.min(self.known_before(run, member, place)) } else { before };
        if before > 0 && is_lost && !(is_open && common > 0) {
            return Part { start: place, end: place, tail: 0, differs: false };
        }
        if before > 0 && is_open {
            self.seams.remove(&place);
            self.insert(place, member, 0..common, at);
            self.seams.extend((place > 0).then_some(place));
        }
        self.walk(run, at, place, findings)
    }

    /// Whether a delivery has the number that the message has at others. At a lost host it may have another one: then it is
    /// of the tail.
    fn is_alike(&self, member: &Participant<'_>, j: usize) -> bool {
        let delivery = &member.deliveries[j];
        let number = self.numbers.get(&delivery.message).filter(|_| member.fate == Fate::Lost);
        number.is_none_or(|&number| delivery.at.is_none_or(|at| at == number))
    }

    /// The number of deliveries of a member before it saw the one come from which the message at a place was learnt. Behind
    /// that, both deliver alike, but for the tail of one of a lost host.
    fn known_before(&self, run: &Run<'_>, member: &Participant<'_>, place: usize) -> usize {
        member.deliveries_without(run.members[self.learnt_from[place]].name)
    }

    /// The first delivery from `from` on that the order has, and its place there.
    fn first_known(&self, member: &Participant<'_>, from: usize) -> Option<(usize, usize)> {
        let known =
            |(j, delivery): (usize, &Delivery)| Some((j, *self.place.get(&delivery.message)?));
        member.deliveries.iter().enumerate().skip(from).find_map(known)
    }

    /// Fills a seam with the messages of a member from delivery `j` on, up to the message behind the seam. Returns whether it
    /// did. A member may end within the seam. One of a lost host fills it only as far as it is no tail.
    fn fill_seam(&mut self, run: &Run<'_>, at: usize, (j, place): (usize, usize)) -> bool {
        if !self.seams.contains(&place) {
            return false;
        }
        let member = &run.members[at];
        let (all, is_lost) = (member.deliveries.len(), member.fate == Fate::Lost);
        let next = self.first_known(member, j);
        let reached = next.filter(|(_, there)| *there == place).map(|(next, _)| next);
        let (end, is_closed) = match reached {
            _ if is_lost => {
                let before = self.known_before(run, member, place);
                let saw_it_come = (before < all).then_some(before);
                (reached.into_iter().chain(saw_it_come).min().unwrap_or(j), true)
            }
            Some(next) => (next, true),
            None => (all, false),
        };
        if end <= j || !is_closed && next.is_some() {
            return false;
        }
        self.seams.remove(&place);
        self.insert(place, member, j..end, at);
        self.seams.extend((!is_closed).then_some(place + end - j));
        true
    }

    /// Compares the messages of a member with the order from a place on. Those behind its end become part of it.
    fn walk(&mut self, run: &Run<'_>, at: usize, start: usize, findings: &mut Findings) -> Part {
        let member = &run.members[at];
        let all = member.deliveries.len();
        let (mut place, mut j) = (start, 0);
        let mut part = Part { start, end: start, tail: all, differs: false };
        while j < all {
            let message = member.deliveries[j].message;
            match self.place.get(&message).copied() {
                Some(there) if there == place && self.is_alike(member, j) => place += 1,
                None if self.fill_seam(run, at, (j, place)) => place += 1,
                _ if member.fate == Fate::Lost => {
                    part.tail = j;
                    break;
                }
                None if place == self.order.len() => {
                    self.push(&member.deliveries[j], at);
                    place += 1;
                }
                other => {
                    part.differs = true;
                    place = self.tell_difference(run, at, (j, place), other, findings);
                }
            }
            j += 1;
        }
        part.end = place;
        let has_common = part.end > part.start && self.learnt_from[part.start] != at;
        if has_common {
            findings.judge(Property::TotalOrder, true, String::new);
            findings.judge(Property::NoGap, true, String::new);
        }
        part
    }

    /// Tells of a message that is not the next one of the order, and returns the place to go on at. The message stands at
    /// another place, `there`, or nowhere.
    fn tell_difference(
        &self,
        run: &Run<'_>,
        at: usize,
        (j, place): (usize, usize),
        there: Option<usize>,
        findings: &mut Findings,
    ) -> usize {
        let member = &run.members[at];
        let message = member.deliveries[j].message;
        match there {
            // It comes before messages that this member has not delivered yet, or never does.
            Some(there) if there > place => {
                for skipped in place..there {
                    self.tell_skipped(run, member, (skipped, message), findings);
                }
                there + 1
            }
            Some(there) => {
                findings
                    .judge(Property::TotalOrder, false, || self.order_told(run, member, j, there));
                place
            }
            None => {
                findings.judge(Property::NoGap, false, || {
                    let other = run.member(run.members[self.learnt_from[place]].name);
                    let (name, message) = (run.member(member.name), run.message(message));
                    let next = run.message(self.order[place]);
                    format!(
                        "{other} did not deliver {message}, which {name} delivered before {next}"
                    )
                });
                place
            }
        }
    }

    /// Tells of a message that a member has left out. One that it delivers later is told then.
    fn tell_skipped(
        &self,
        run: &Run<'_>,
        member: &Participant<'_>,
        (skipped, next): (usize, MessageName),
        findings: &mut Findings,
    ) {
        let message = self.order[skipped];
        if member.place.contains_key(&message) {
            return;
        }
        findings.judge(Property::NoGap, false, || {
            let other = run.member(run.members[self.learnt_from[skipped]].name);
            let (name, message, next) =
                (run.member(member.name), run.message(message), run.message(next));
            format!("{name} did not deliver {message}, which {other} delivered before {next}")
        });
    }

    /// The words for a message that a member delivers later than others do.
    fn order_told(
        &self,
        run: &Run<'_>,
        member: &Participant<'_>,
        j: usize,
        there: usize,
    ) -> String {
        let earlier = member.deliveries[..j].iter().map(|delivery| delivery.message);
        let places = earlier.filter_map(|it| Some((*self.place.get(&it)?, it)));
        let overtook = places.filter(|(place, _)| *place > there).min();
        let overtook = overtook.map(|(_, it)| run.message(it)).unwrap_or_default();
        let other = run.member(run.members[self.learnt_from[there]].name);
        let (name, message) = (run.member(member.name), run.message(self.order[there]));
        format!("{other} delivered {message} before {overtook}, {name} after it")
    }

    fn push(&mut self, delivery: &Delivery, at: usize) {
        self.place.insert(delivery.message, self.order.len());
        self.order.push(delivery.message);
        self.numbers.extend(delivery.at.map(|number| (delivery.message, number)));
        self.learnt_from.push(at);
    }

    /// Inserts some messages of a member at a place.
    fn insert(&mut self, place: usize, member: &Participant<'_>, some: Range<usize>, at: usize) {
        let (count, some) = (some.len(), &member.deliveries[some]);
        let messages = some.iter().map(|delivery| delivery.message);
        self.learnt_from.splice(place..place, std::iter::repeat_n(at, count));
        self.order.splice(place..place, messages);
        self.numbers.extend(some.iter().filter_map(|it| Some((it.message, it.at?))));
        self.place = self.order.iter().enumerate().map(|(place, it)| (*it, place)).collect();
        let shifted = |seam: usize| if seam > place { seam + count } else { seam };
        self.seams = self.seams.iter().map(|&seam| shifted(seam)).collect();
        for part in self.parts.iter_mut().filter(|part| part.start >= place && part.end > 0) {
            part.start += count;
            part.end += count;
        }
    }
}

/// Checks the numbers that the group gives its messages, but for tails.
pub(super) fn check_numbers(run: &Run<'_>, stream: &Stream, findings: &mut Findings) {
    let mut numbers: BTreeMap<MessageName, u64> = BTreeMap::new();
    let mut messages: BTreeMap<u64, MessageName> = BTreeMap::new();
    for (member, part) in run.members.iter().zip(&stream.parts) {
        let mut last = None;
        for delivery in &member.deliveries[..part.tail] {
            let (Some(at), message) = (delivery.at, delivery.message) else { continue };
            findings.judge(Property::OneNumber, last < Some(at), || {
                let (name, message) = (run.member(member.name), run.message(message));
                format!(
                    "{name} delivered {message}, the group's number {at}, after number {}",
                    last.unwrap_or(0)
                )
            });
            last = Some(at);
            let number = *numbers.entry(message).or_insert(at);
            findings.judge(Property::OneNumber, number == at, || {
                let message = run.message(message);
                format!(
                    "{message} is the group's number {number}, and number {at} at {}",
                    run.member(member.name)
                )
            });
            let other = *messages.entry(at).or_insert(message);
            findings.judge(Property::OneNumber, other == message, || {
                let (message, other) = (run.message(message), run.message(other));
                format!("{other} and {message} are both the group's number {at}")
            });
        }
    }
}
