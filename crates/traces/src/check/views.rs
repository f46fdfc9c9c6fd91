//! Checks of views: their sequence, their members, and their places among the messages.

use std::collections::{BTreeMap, BTreeSet};

use super::Property;
use super::property::Findings;
use super::run::{Participant, Run};
use super::stream::{Part, Stream};
use crate::event::{DepartureCause, MemberName, TracedView};

/// Checks the views of one member.
pub(super) fn check_member(run: &Run<'_>, member: &Participant<'_>, findings: &mut Findings) {
    let name = || run.member(member.name);
    let mut before: Option<&TracedView> = None;
    for (_, view) in member.views() {
        let number = view.number;
        findings.judge(Property::OwnViews, view.members.contains(&member.name.id), || {
            format!("{} is not in its view {number}", name())
        });
        if let Some(before) = before {
            findings.judge(Property::GrowingViews, number > before.number, || {
                format!("{} saw view {number} after view {}", name(), before.number)
            });
            if view.after.is_some() {
                findings.judge(
                    Property::NoViewMissed,
                    number <= before.number.saturating_add(1),
                    || format!("{} saw view {number} right after view {}", name(), before.number),
                );
            }
            check_step(&name(), before, view, findings);
        }
        before = Some(view);
    }
    check_gone(run, member, findings);
}

/// Checks that a view follows from the one before it.
fn check_step(name: &str, before: &TracedView, view: &TracedView, findings: &mut Findings) {
    let gone: BTreeSet<u32> = view.departed.iter().map(|(id, _)| *id).collect();
    let joined: BTreeSet<u32> = view.joined.iter().copied().collect();
    let stayed: BTreeSet<u32> =
        before.members.iter().copied().filter(|id| !gone.contains(id)).collect();
    let found: BTreeSet<u32> = view.members.iter().copied().collect();
    let odd: Vec<u32> = (&stayed | &joined).symmetric_difference(&found).copied().collect();
    let (number, last) = (view.number, before.number);
    findings.judge(Property::ViewsFollow, odd.is_empty(), || {
        format!("views {last} and {number} of {name} differ by the members {odd:?}, and view {number} does not say so")
    });
    let survives = |id: &&u32| stayed.contains(id) && found.contains(id) && !joined.contains(id);
    let ranks =
        |view: &TracedView| view.members.iter().filter(survives).copied().collect::<Vec<_>>();
    let (ranks_before, ranks_now) = (ranks(before), ranks(view));
    findings.judge(Property::RanksStay, ranks_before == ranks_now, || {
        format!("view {number} of {name} has the members {ranks_before:?} of view {last} in the order {ranks_now:?}")
    });
}

/// Checks that members that went do not come back, and that nothing of them comes after the view without them.
fn check_gone(run: &Run<'_>, member: &Participant<'_>, findings: &mut Findings) {
    let mut gone: BTreeMap<MemberName, u64> = BTreeMap::new();
    let mut gone_in_stream: BTreeMap<MemberName, u64> = BTreeMap::new();
    let mut deliveries = member.deliveries.iter().peekable();
    for (event, view) in member.views() {
        while let Some(delivery) = deliveries.next_if(|delivery| delivery.event < event) {
            check_sender(run, member, (&gone_in_stream, delivery.message.sender), findings);
        }
        for id in &view.members {
            let Some(name) = run.resolve(*id, view.number) else { continue };
            let Some(went) = gone.get(&name) else { continue };
            findings.judge(Property::GoneForGood, false, || {
                let (name, number) = (run.member(name), view.number);
                format!(
                    "{name} went in view {went} and is in view {number} of {}",
                    run.member(member.name)
                )
            });
        }
        for (id, _) in &view.departed {
            let Some(name) = run.departed(*id, view) else { continue };
            findings.judge(Property::GoneForGood, true, String::new);
            gone.insert(name, view.number);
            if view.after.is_some() {
                gone_in_stream.insert(name, view.number);
            }
        }
    }
    for delivery in deliveries {
        check_sender(run, member, (&gone_in_stream, delivery.message.sender), findings);
    }
}

fn check_sender(
    run: &Run<'_>,
    member: &Participant<'_>,
    (gone, sender): (&BTreeMap<MemberName, u64>, MemberName),
    findings: &mut Findings,
) {
    if let Some(view) = gone.get(&sender) {
        findings.judge(Property::GoneForGood, false, || {
            let (name, sender) = (run.member(member.name), run.member(sender));
            format!("{name} delivered a message of {sender} after view {view}, in which it went")
        });
    }
}

/// Checks that views are the same for all members.
pub(super) fn check_sequence(run: &Run<'_>, findings: &mut Findings) {
    let mut known: BTreeMap<u64, (&Participant<'_>, &TracedView)> = BTreeMap::new();
    let mut lost: BTreeMap<&str, u64> = BTreeMap::new();
    for member in &run.members {
        for (_, view) in member.views() {
            let (first, other) = *known.entry(view.number).or_insert((member, view));
            let changes = |view: &TracedView| (view.joined.clone(), view.departed.clone());
            let is_compared = view.after.is_some() && other.after.is_some();
            let is_same =
                view.members == other.members && (!is_compared || changes(view) == changes(other));
            findings.judge(Property::OneSequenceOfViews, is_same, || {
                let (one, two) = (run.member(first.name), run.member(member.name));
                let sets = (&other.members, &view.members);
                format!("view {} is {:?} at {one} and {:?} at {two}", view.number, sets.0, sets.1)
            });
            let went = view.departed.iter().filter(|(_, cause)| *cause == DepartureCause::Lost);
            let went = went.filter_map(|(id, _)| run.find(run.departed(*id, view)?));
            for other in went.filter(|_| view.after.is_some()) {
                let host = other.trace.head.host.as_str();
                let first = *lost.entry(host).or_insert(view.number);
                findings.judge(Property::OneViewPerHost, first == view.number, || {
                    format!(
                        "members of host {host} were lost in view {first} and in view {}",
                        view.number
                    )
                });
            }
        }
    }
}

/// The place of a view among the messages of a member: the number of messages of the order before it.
fn place_of(member: &Participant<'_>, part: Part, event: usize, stream: &Stream) -> Option<usize> {
    let before = member.deliveries_before(event);
    if before > part.tail || part.differs {
        return None;
    }
    let behind =
        before.checked_sub(1).map(|last| stream.place[&member.deliveries[last].message] + 1);
    behind.or_else(|| {
        let next = member.deliveries[..part.tail].first()?;
        stream.place.get(&next.message).copied()
    })
}

/// Checks that each view of the stream stands at one place.
pub(super) fn check_places(run: &Run<'_>, stream: &Stream, findings: &mut Findings) {
    let mut known: BTreeMap<u64, Vec<ViewPlace>> = BTreeMap::new();
    for (at, (member, part)) in run.members.iter().zip(&stream.parts).enumerate() {
        for (order, (event, view)) in member.views().enumerate() {
            check_after(run, member, (event, view), findings);
            let place = view.after.and_then(|_| place_of(member, *part, event, stream));
            if let Some(place) = place {
                let is_first = order == 0;
                known.entry(view.number).or_default().push(ViewPlace {
                    place,
                    member: at,
                    is_first,
                });
            }
        }
    }
    for (number, places) in known {
        // That of a member which was there before decides.
        let Some(best) = places.iter().min_by_key(|it| it.is_first) else { continue };
        for other in places.iter().filter(|it| it.member != best.member) {
            judge_place(run, stream, (number, best, other), findings);
        }
    }
}

/// The place of a view at a member.
struct ViewPlace {
    place: usize,
    member: usize,
    /// It is the first view of that member.
    is_first: bool,
}

fn judge_place(
    run: &Run<'_>,
    stream: &Stream,
    (number, best, other): (u64, &ViewPlace, &ViewPlace),
    findings: &mut Findings,
) {
    let is_same = best.place == other.place;
    let (early, late) = if best.place < other.place { (best, other) } else { (other, best) };
    let [early, late] = [early, late].map(|it| (&run.members[it.member], it.place));
    let message = stream.order.get(early.1).copied();
    let delivers = message.is_some_and(|message| early.0.place.contains_key(&message));
    let words = |what: &str| {
        let message = message.map(|message| run.message(message)).unwrap_or_default();
        let (early, late) = (run.member(early.0.name), run.member(late.0.name));
        format!("{late} delivered {message} before view {number}, {early} {what}")
    };
    if other.is_first {
        findings.judge(Property::JoinersStart, is_same, || {
            let message = message.map(|message| run.message(message)).unwrap_or_default();
            let name = run.member(run.members[other.member].name);
            match other.place > best.place {
                true => format!(
                    "{name} began with view {number} and did not deliver {message} behind it"
                ),
                false => format!(
                    "{name} began with view {number} and delivered {message} from before it"
                ),
            }
        });
        return;
    }
    findings.judge(Property::SameView, is_same || !delivers, || words("after it"));
    findings.judge(Property::SameBeforeView, is_same || delivers, || words("not at all"));
}

/// Checks that a view stands behind the message that it names.
fn check_after(
    run: &Run<'_>,
    member: &Participant<'_>,
    (event, view): (usize, &TracedView),
    findings: &mut Findings,
) {
    let last = member.deliveries_before(event).checked_sub(1).map(|at| &member.deliveries[at]);
    let (Some(after), Some(at)) = (view.after, last.and_then(|last| last.at)) else { return };
    findings.judge(Property::OneNumber, at == after, || {
        let name = run.member(member.name);
        format!(
            "view {} of {name} is after the group's message {after}, and came after {at}",
            view.number
        )
    });
}
