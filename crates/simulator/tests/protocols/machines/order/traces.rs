//! The properties of groups over hosts that are checked on what members saw, after a run.
//!
//! A member sees views and messages. A view is known by the position of its entry.

use std::collections::BTreeMap;

use landeck_protocols::order::{OrderLevel, OrderParty};

use super::held::{Request, Seen, Trace};
use crate::machines::host_checks::{Check, ensure};

/// The events that one member saw while it was one.
struct MemberTrace<'a> {
    party: OrderParty,
    events: Vec<&'a (u64, Seen)>,
}

type Messages = Vec<(OrderParty, u64)>;

impl MemberTrace<'_> {
    /// Its views with the messages in each.
    fn views(&self) -> Vec<(u64, &[OrderParty], Messages)> {
        let mut views: Vec<(u64, &[OrderParty], Messages)> = Vec::new();
        for (position, seen) in &self.events {
            match (seen, views.last_mut()) {
                (Seen::View { members }, _) => views.push((*position, members, Vec::new())),
                (Seen::Message { from, number, .. }, Some(view)) => view.2.push((*from, *number)),
                _ => {}
            }
        }
        views
    }
}

fn members<'a>(traces: &[&'a Trace]) -> Vec<MemberTrace<'a>> {
    let mut members = Vec::new();
    for trace in traces {
        for (party, (from, to)) in trace.spans.iter().filter(|it| it.0.holder == trace.holder) {
            let is_its = |event: &&(u64, Seen)| event.0 >= *from && event.0 < *to;
            let events = trace.events.iter().filter(is_its).collect();
            members.push(MemberTrace { party: *party, events });
        }
    }
    members
}

/// Checks what the members of one group saw.
pub(super) fn all_hold(
    group: u32,
    traces: &[&Trace],
    requests: &BTreeMap<(u32, OrderParty, u64), Request>,
) -> Check {
    let survivors: Vec<&Trace> = traces.iter().copied().filter(|it| it.is_survivor).collect();
    let everybody = members(traces);
    everybody.iter().try_for_each(views_hold)?;
    everybody.iter().try_for_each(|member| messages_hold(group, member, requests))?;
    views_agree(&members(&survivors))?;
    order_agrees(&survivors)?;
    safe_order_agrees(traces)
}

fn views_hold(member: &MemberTrace<'_>) -> Check {
    let party = member.party;
    if let Some((position, first)) = member.events.first() {
        ensure(matches!(first, Seen::View { .. }), "a member begins with a view", || {
            format!("{party:?} saw {first:?} first, at {position}")
        })?;
    }
    let mut before: Option<(u64, &[OrderParty])> = None;
    for (position, members, _) in member.views() {
        ensure(members.contains(&party), "a view has its own member", || {
            format!("{party:?} is not in its view {position}")
        })?;
        let (last, former) = before.unwrap_or((0, &[]));
        ensure(before.is_none() || position > last, "views follow each other", || {
            format!("{party:?} saw view {position} after {last}")
        })?;
        let stay = |all: &[OrderParty], other: &[OrderParty]| {
            all.iter().filter(|it| other.contains(it)).copied().collect::<Vec<_>>()
        };
        ensure(
            stay(former, members) == stay(members, former),
            "survivors keep their order",
            || format!("{party:?} saw {former:?}, then {members:?}"),
        )?;
        before = Some((position, members));
    }
    Ok(())
}

fn messages_hold(
    group: u32,
    member: &MemberTrace<'_>,
    requests: &BTreeMap<(u32, OrderParty, u64), Request>,
) -> Check {
    let party = member.party;
    let mut last: BTreeMap<OrderParty, u64> = BTreeMap::new();
    for (position, seen) in &member.events {
        let Seen::Message { from, number, level } = seen else { continue };
        let sent = requests.get(&(group, *from, *number));
        ensure(sent.is_some_and(|it| it.level == *level), "a message was sent", || {
            format!("{party:?} saw {from:?} {number}, which nobody sent")
        })?;
        let before = last.insert(*from, *number);
        ensure(before != Some(*number), "a message comes once", || {
            format!("{party:?} saw {from:?} {number} again at {position}")
        })?;
        let follows = before.is_none_or(|before| *number == before + 1);
        ensure(follows, "a sender's messages come in order", || {
            format!("{party:?} saw {from:?} {number} after {before:?}")
        })?;
    }
    Ok(())
}

/// Surviving members that go from one view to the next together saw the same, and each message in the same view.
fn views_agree(members: &[MemberTrace<'_>]) -> Check {
    let mut between: BTreeMap<(u64, u64), Messages> = BTreeMap::new();
    let mut former: BTreeMap<u64, Vec<(OrderParty, u64)>> = BTreeMap::new();
    let mut view_of: BTreeMap<(OrderParty, u64), u64> = BTreeMap::new();
    for member in members {
        let views = member.views();
        for (view, _, messages) in &views {
            for message in messages {
                let known = *view_of.entry(*message).or_insert(*view);
                ensure(known == *view, "a message has one view", || {
                    format!("{message:?} came in {known} and, to {:?}, in {view}", member.party)
                })?;
            }
        }
        for pair in views.windows(2) {
            let [(one, _, messages), (next, ..)] = pair else { continue };
            former.entry(*next).or_default().push((member.party, *one));
            let known = between.entry((*one, *next)).or_insert_with(|| messages.clone());
            ensure(known == messages, "members of two views saw the same between", || {
                format!("{:?} saw others between {one} and {next}", member.party)
            })?;
        }
    }
    let agree = former.iter().all(|(_, all)| all.iter().all(|(_, one)| *one == all[0].1));
    ensure(agree, "members agree on the view before", || format!("{former:?}"))
}

/// Two surviving hosts saw one part of the log alike.
fn order_agrees(survivors: &[&Trace]) -> Check {
    let mut at: BTreeMap<u64, &Seen> = BTreeMap::new();
    for trace in survivors {
        for (position, seen) in &trace.events {
            let known = *at.entry(*position).or_insert(seen);
            ensure(known == seen, "survivors see one order", || {
                format!("{:?} saw {seen:?} at {position}, another host {known:?}", trace.holder)
            })?;
        }
    }
    let gap = survivors.iter().find(|trace| {
        let first = trace.events.first().map_or(u64::MAX, |event| event.0);
        at.range(first..).count() != trace.events.len()
    });
    ensure(gap.is_none(), "survivors see all", || {
        format!("{:?} saw less than others", gap.map(|trace| trace.holder))
    })
}

/// Safe messages have one order, also with those that lost hosts saw.
fn safe_order_agrees(traces: &[&Trace]) -> Check {
    let mut places: BTreeMap<(OrderParty, u64), u64> = BTreeMap::new();
    let mut messages: BTreeMap<u64, (OrderParty, u64)> = BTreeMap::new();
    for trace in traces {
        for (position, seen) in &trace.events {
            let Seen::Message { from, number, level: OrderLevel::Safe } = seen else { continue };
            let message = (*from, *number);
            let place = *places.entry(message).or_insert(*position);
            let known = *messages.entry(*position).or_insert(message);
            ensure(place == *position && known == message, "safe messages have one order", || {
                format!("{message:?} at {position} and {place}, with {known:?}")
            })?;
        }
    }
    let lost = |message: &&(OrderParty, u64)| {
        let survivors = traces.iter().filter(|trace| trace.is_survivor);
        let place = places.get(*message).copied().unwrap_or(0);
        let mut begun = survivors.filter(|it| it.events.first().is_some_and(|it| it.0 <= place));
        begun.any(|trace| !trace.events.iter().any(|(at, _)| *at == place))
    };
    let lost = places.keys().find(lost);
    ensure(lost.is_none(), "no safe message is lost", || format!("{lost:?} is"))
}
