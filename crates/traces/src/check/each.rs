//! Checks that look at the events of one member, and at what it delivered of each sender.

use std::collections::{BTreeMap, BTreeSet};

use super::Property;
use super::property::Findings;
use super::run::{Fate, Participant, Run, SendOutcome};
use super::stream::Stream;
use crate::event::{MemberName, MessageName, TraceEvent, TraceLevel};

/// Checks that there is a trace of each member, and that none was cut.
pub(super) fn check_whole(run: &Run<'_>, findings: &mut Findings) {
    let present = last_members(run);
    for (at, member) in run.members.iter().enumerate() {
        let is_explained = member.fate == Fate::Ended || !present.contains(&member.name);
        findings.judge(Property::WholeTraces, is_explained, || {
            let (source, lines) = (&member.trace.source, member.trace.events.len() + 2);
            let name = run.member(member.name);
            format!("{source}: line {lines} is the last and no end, but {name} is in the last view: the trace was cut")
        });
        let is_alone = at == 0 || run.members[at - 1].name != member.name;
        findings.judge(Property::WholeTraces, is_alone, || {
            let sources = [at - 1, at].map(|at| run.members[at].trace.source.as_str());
            format!("{} and {} are both of member {}", sources[0], sources[1], member.name)
        });
    }
    check_missing(run, findings);
}

/// The members of the newest view, if a member saw it that went on to its own end. If none did, nobody was left to see the
/// others go.
fn last_members(run: &Run<'_>) -> BTreeSet<MemberName> {
    let newest = |member: &&Participant<'_>| member.views().map(|(_, view)| view.number).max();
    let last = run.members.iter().max_by_key(|member| (newest(member), member.fate == Fate::Ended));
    let last = last.filter(|member| member.fate == Fate::Ended);
    let view = last.and_then(|member| member.views().max_by_key(|(_, view)| view.number));
    let ids =
        view.into_iter().flat_map(|(_, view)| view.members.iter().map(|&id| (id, view.number)));
    ids.filter_map(|(id, view)| run.resolve(id, view)).collect()
}

/// Checks that each sender and each member of a view has a trace.
fn check_missing(run: &Run<'_>, findings: &mut Findings) {
    let mut missing: BTreeMap<MemberName, MemberName> = BTreeMap::new();
    let mut unknown: BTreeMap<u32, MemberName> = BTreeMap::new();
    for member in &run.members {
        for delivery in &member.deliveries {
            let sender = delivery.message.sender;
            if run.find(sender).is_none() {
                missing.entry(sender).or_insert(member.name);
            }
        }
        let ids =
            member.views().flat_map(|(_, view)| view.members.iter().map(|&id| (id, view.number)));
        for (id, _) in ids.filter(|&(id, view)| run.resolve(id, view).is_none()) {
            unknown.entry(id).or_insert(member.name);
        }
    }
    unknown.retain(|id, _| missing.keys().all(|name| name.id != *id));
    let missing = missing
        .into_iter()
        .map(|(name, by)| (format!("{name}, of which it delivered messages"), by));
    let unknown = unknown.into_iter().map(|(id, by)| (format!("{id}, which its views name"), by));
    for (words, by) in missing.chain(unknown) {
        findings.judge(Property::WholeTraces, false, || {
            let source = run.find(by).map_or("", |member| &member.trace.source);
            format!("{source}: there is no trace of member {words}")
        });
    }
}

/// Checks the events of one member.
pub(super) fn check_member(run: &Run<'_>, member: &Participant<'_>, findings: &mut Findings) {
    let name = || run.member(member.name);
    let (mut is_in_view, mut has_ended) = (false, false);
    let mut delivered = BTreeSet::new();
    for event in &member.trace.events {
        match *event {
            TraceEvent::View(_) => is_in_view = true,
            TraceEvent::Ended(_) => has_ended = true,
            TraceEvent::Send { number, .. } => {
                findings.judge(Property::WithinMembership, is_in_view && !has_ended, || {
                    let when = if has_ended { "after its end" } else { "before its first view" };
                    format!("{} sent message {number} {when}", name())
                });
                let is_new = !delivered.contains(&member.sent(number));
                findings.judge(Property::NothingInvented, is_new, || {
                    format!("{} delivered its message {number} before it sent it", name())
                });
            }
            TraceEvent::Delivered { message, level, sum, .. } => {
                findings.judge(Property::WithinMembership, is_in_view, || {
                    format!("{} delivered {} before its first view", name(), run.message(message))
                });
                findings.judge(Property::NothingTwice, delivered.insert(message), || {
                    format!("{} delivered {} twice", name(), run.message(message))
                });
                check_sent(run, member, message, (level, sum), findings);
            }
            _ => {}
        }
    }
}

/// Checks that a delivered message was sent.
fn check_sent(
    run: &Run<'_>,
    member: &Participant<'_>,
    message: MessageName,
    (level, sum): (TraceLevel, u32),
    findings: &mut Findings,
) {
    let Some(sender) = run.find(message.sender) else { return };
    let call = sender.sends.get(&message.number);
    let words = || (run.member(member.name), run.message(message));
    findings.judge(Property::NothingInvented, call.is_some(), || {
        let (name, message) = words();
        format!("{name} delivered {message}, which was never sent")
    });
    let Some(call) = call else { return };
    findings.judge(Property::NothingInvented, (call.level, call.sum) == (level, sum), || {
        let (name, message) = words();
        format!(
            "{name} delivered {message} with other bytes or at another level than it was sent with"
        )
    });
    if sender.has_refusals {
        findings.judge(Property::RefusedNowhere, call.outcome != SendOutcome::Refused, || {
            let (name, message) = words();
            format!("{name} delivered {message}, whose sender was told that it was not sent")
        });
    }
}

/// Checks the order of each sender at one member, and that none of its messages is left out. In the messages that a lost host
/// took along there may be gaps.
pub(super) fn check_senders(
    run: &Run<'_>,
    (member, tail): (&Participant<'_>, usize),
    findings: &mut Findings,
) {
    let mut last: BTreeMap<MemberName, u64> = BTreeMap::new();
    for (at, delivery) in member.deliveries.iter().enumerate() {
        let MessageName { sender, number } = delivery.message;
        let Some(before) = last.insert(sender, number) else { continue };
        findings.judge(Property::SenderOrder, number > before, || {
            let (name, sender) = (run.member(member.name), run.member(sender));
            format!("{name} delivered message {number} of {sender} after its message {before}")
        });
        let (Some(sender), true) = (run.find(sender), at < tail && number > before) else {
            continue;
        };
        let between = sender.sends.range(before + 1..number);
        let mut sent = between.filter(|(_, call)| matches!(call.outcome, SendOutcome::Sent(_)));
        let skipped = sent.find(|(number, _)| !member.place.contains_key(&sender.sent(**number)));
        findings.judge(Property::NoSenderGap, skipped.is_none(), || {
            let skipped = skipped.map_or(0, |(number, _)| *number);
            let (name, sender) = (run.member(member.name), run.member(sender.name));
            format!(
                "{name} delivered messages {before} and {number} of {sender}, but not {skipped}"
            )
        });
    }
}

/// Checks that each message stands behind all that its sender had delivered before.
pub(super) fn check_causes(
    run: &Run<'_>,
    stream: &Stream,
    (member, tail): (&Participant<'_>, usize),
    findings: &mut Findings,
) {
    let mut last: Option<(usize, MessageName)> = None;
    for event in &member.trace.events {
        match *event {
            TraceEvent::Delivered { message, .. } => {
                let is_common = member.place.get(&message).is_some_and(|&at| at < tail);
                let place = stream.place.get(&message).filter(|_| is_common);
                last = last.max(place.map(|&place| (place, message)));
            }
            TraceEvent::Send { number, .. } => {
                let (Some((seen, cause)), Some(&place)) =
                    (last, stream.place.get(&member.sent(number)))
                else {
                    continue;
                };
                findings.judge(Property::CausalOrder, place > seen, || {
                    let (message, cause) = (run.message(member.sent(number)), run.message(cause));
                    format!("{message} is delivered before {cause}, which its sender had delivered before it sent it")
                });
            }
            _ => {}
        }
    }
}
