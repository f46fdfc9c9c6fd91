//! Checks of what stays: messages before a synchronisation, and safe messages wherever they were delivered.

use std::collections::BTreeMap;

use super::Property;
use super::property::Findings;
use super::run::{Fate, Participant, Run, SendOutcome};
use super::stream::Stream;
use crate::event::{MessageName, TraceEvent, TraceLevel};

/// Checks that no member leaves a synchronisation before all have come.
pub(super) fn check_waits(run: &Run<'_>, findings: &mut Findings) {
    let behind: Vec<BTreeMap<u64, u64>> = run.members.iter().map(first_sends).collect();
    for member in &run.members {
        let mut seen: BTreeMap<_, u64> = BTreeMap::new();
        for event in &member.trace.events {
            match *event {
                TraceEvent::Delivered { message, .. } => {
                    let last = seen.entry(message.sender).or_default();
                    *last = message.number.max(*last);
                }
                TraceEvent::Syncing(round) => {
                    for (other, behind) in run.members.iter().zip(&behind) {
                        let Some(&first) = behind.get(&round) else { continue };
                        let last = seen.get(&other.name).copied().unwrap_or(0);
                        findings.judge(Property::SyncWaits, last < first, || {
                            let (name, other) = (run.member(member.name), run.member(other.name));
                            format!("{other} sent message {first} after synchronisation {round}, and {name} delivered it before it came to it")
                        });
                    }
                }
                _ => {}
            }
        }
    }
}

/// The number of the first message that a member sent after each synchronisation.
fn first_sends(member: &Participant<'_>) -> BTreeMap<u64, u64> {
    let (mut firsts, mut waiting) = (BTreeMap::new(), Vec::new());
    for event in &member.trace.events {
        match *event {
            TraceEvent::Synced(round) => waiting.push(round),
            TraceEvent::Send { number, .. } => {
                firsts.extend(waiting.drain(..).map(|round| (round, number)));
            }
            _ => {}
        }
    }
    firsts
}

/// Checks that members which emptied their mailboxes after a synchronisation have all that was sent before it. Of a lost
/// host, only its safe messages stay.
pub(super) fn check_covered(run: &Run<'_>, stream: &Stream, findings: &mut Findings) {
    for at in 0..run.members.len() {
        let Some((round, emptied)) = run.members[at].emptied else { continue };
        for sender in run.members.iter().filter(|other| other.fate != Fate::Lost) {
            let calls = sender.sends.iter().filter(|(_, call)| call.level != TraceLevel::Safe);
            for (&number, call) in calls {
                let is_before = matches!(call.outcome, SendOutcome::Sent(event) if run.is_before(sender, event, round));
                let message = sender.sent(number);
                if is_before && is_for(run, stream, at, message) {
                    judge_covered(run, at, message, (round, emptied), findings);
                }
            }
        }
    }
}

fn judge_covered(
    run: &Run<'_>,
    at: usize,
    message: MessageName,
    (round, emptied): (u64, usize),
    findings: &mut Findings,
) {
    let member = &run.members[at];
    let is_own = message.sender == member.name;
    let property = if is_own { Property::OwnMessages } else { Property::SyncCovers };
    let place = member.place.get(&message);
    let has = place.is_some_and(|&place| member.deliveries[place].event < emptied);
    findings.judge(property, has, || {
        let (name, message) = (run.member(member.name), run.message(message));
        format!("{name} had not delivered {message} when synchronisation {round} was over and its mailbox empty")
    });
}

/// Whether a message was sent while this member was one: it stands behind the member's first one, or its sender had seen the
/// member.
fn is_for(run: &Run<'_>, stream: &Stream, at: usize, message: MessageName) -> bool {
    let (member, part) = (&run.members[at], &stream.parts[at]);
    match stream.place.get(&message) {
        Some(&place) if part.start < part.end => place >= part.start,
        _ => {
            let sender = run.find(message.sender);
            let call = sender.and_then(|sender| sender.sends.get(&message.number));
            call.is_some_and(|call| call.view >= member.name.since)
        }
    }
}

/// Checks safe messages, and returns how many of them survivors do not have.
pub(super) fn check_safe(run: &Run<'_>, stream: &Stream, findings: &mut Findings) -> usize {
    let mut lost = 0;
    for (message, known) in safe_messages(run) {
        let missing = missing_at(run, stream, message, &known);
        lost += usize::from(missing.is_some());
        findings.judge(Property::SafeStays, missing.is_none(), || {
            let by = known.iter().find(|known| known.is_delivery);
            let by = by.map(|known| run.member(run.members[known.by].name));
            let why = by.map_or("its call returned".to_owned(), |by| format!("{by} delivered it"));
            let missing = missing.map(|at| run.member(run.members[at].name)).unwrap_or_default();
            format!("{missing} did not deliver {}, which is safe: {why}", run.message(message))
        });
    }
    for (member, part) in run.members.iter().zip(&stream.parts) {
        if member.fate == Fate::Lost {
            check_lost(run, stream, (member, part.tail), findings);
        }
    }
    lost
}

/// A member that knows that a safe message is stored everywhere: it delivered it, or its call that sent it returned.
struct KnownSafe {
    by: usize,
    /// The number of events before.
    event: usize,
    is_delivery: bool,
}

/// The safe messages, each with the members that know of it.
fn safe_messages(run: &Run<'_>) -> BTreeMap<MessageName, Vec<KnownSafe>> {
    let mut safe: BTreeMap<MessageName, Vec<KnownSafe>> = BTreeMap::new();
    for (by, member) in run.members.iter().enumerate() {
        for (&number, call) in member.sends.iter().filter(|(_, it)| it.level == TraceLevel::Safe) {
            if let SendOutcome::Sent(event) = call.outcome {
                let known = KnownSafe { by, event, is_delivery: false };
                safe.entry(member.sent(number)).or_default().push(known);
            }
        }
        for delivery in member.deliveries.iter().filter(|it| it.level == TraceLevel::Safe) {
            let known = KnownSafe { by, event: delivery.event, is_delivery: true };
            safe.entry(delivery.message).or_default().push(known);
        }
    }
    safe
}

/// A survivor that should have a safe message and does not have it: it has later ones, or all that was sent before a
/// synchronisation.
fn missing_at(
    run: &Run<'_>,
    stream: &Stream,
    message: MessageName,
    known: &[KnownSafe],
) -> Option<usize> {
    let place = stream.place.get(&message);
    let is_missing = |&at: &usize| {
        let (member, part) = (&run.members[at], &stream.parts[at]);
        let is_between = place.is_some_and(|place| (part.start..part.end).contains(place));
        let is_covered = || {
            let is_before =
                |round| known.iter().any(|it| run.is_before(&run.members[it.by], it.event, round));
            let is_due = member.emptied.is_some_and(|(round, _)| is_before(round));
            is_due && is_for(run, stream, at, message)
        };
        let has = member.place.contains_key(&message);
        member.fate == Fate::Ended && !has && (is_between || is_covered())
    };
    (0..run.members.len()).find(is_missing)
}

/// Checks the safe messages of a member whose host was lost: survivors have all that stands before them.
fn check_lost(
    run: &Run<'_>,
    stream: &Stream,
    (member, tail): (&Participant<'_>, usize),
    findings: &mut Findings,
) {
    let mut last: Option<MessageName> = None;
    let mut hole: Option<MessageName> = None;
    for (at, delivery) in member.deliveries.iter().enumerate() {
        let message = delivery.message;
        let place = stream.place.get(&message);
        if let (Some(place), TraceLevel::Safe) = (place, delivery.level) {
            let words = |other: Option<MessageName>| {
                let other = other.map(|other| run.message(other)).unwrap_or_default();
                format!(
                    "{} delivered {other} before {}",
                    run.member(member.name),
                    run.message(message)
                )
            };
            findings.judge(Property::SafePrefix, hole.is_none(), || {
                format!("{}, which is safe, and no survivor delivered it", words(hole))
            });
            let before = last.and_then(|last| stream.place.get(&last));
            findings.judge(Property::SafeOrder, before < Some(place), || {
                format!("{}, survivors after it; both are safe", words(last))
            });
            last = Some(message);
        }
        if at >= tail && place.is_none() {
            hole = hole.or(Some(message));
        }
    }
}
