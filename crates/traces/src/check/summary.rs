//! A line for each set of members that delivered the same messages.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::report::with_commas;
use super::run::{Fate, Participant, Run};
use super::stream::{Part, Stream};
use crate::event::{DepartureCause, MemberName};

/// The views that a line names at most.
const VIEWS_MAX: usize = 3;

/// The lines, the longest part of the order first.
pub(super) fn lines(run: &Run<'_>, stream: &Stream) -> Vec<String> {
    let mut sets: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (at, part) in stream.parts.iter().enumerate() {
        let member = &run.members[at];
        // A member that is unlike all others has a line of its own.
        let own = if member.fate == Fate::Lost || part.differs { at + 1 } else { 0 };
        let key = (Reverse(part.end - part.start), part.start, own, member.fate == Fate::Ended);
        sets.entry(key).or_default().push(at);
    }
    let is_alone = sets.len() == 1 && run.members.len() == 1;
    sets.values().map(|set| line(run, stream, set, is_alone)).collect()
}

fn line(run: &Run<'_>, stream: &Stream, set: &[usize], is_alone: bool) -> String {
    let (member, part) = (&run.members[set[0]], stream.parts[set[0]]);
    let names: Vec<MemberName> = set.iter().map(|&at| run.members[at].name).collect();
    let died = if member.fate == Fate::Died { ", which died" } else { "" };
    let names = format!("{}{died}", list(run, &names));
    let count = (part.end - part.start) as u64;
    let messages = format!("{} message{}", with_commas(count), if count == 1 { "" } else { "s" });
    let words = if part.differs {
        format!("{} messages, which differ", with_commas(member.deliveries.len() as u64))
    } else if part.start > 0 {
        format!("the same {messages} from message {} on", with_commas(part.start as u64 + 1))
    } else if is_alone {
        messages
    } else {
        format!("the same {messages}")
    };
    format!("{names}: {words}{}{}", before_views(member, part), tail(member, part))
}

/// The members of a set: "members 1, 2", with their first views where several members had a number.
fn list(run: &Run<'_>, names: &[MemberName]) -> String {
    match names {
        [one] => run.member(*one),
        several => {
            let words = several.iter().map(|name| run.member(*name).replacen("member ", "", 1));
            format!("members {}", words.collect::<Vec<_>>().join(", "))
        }
    }
}

/// The messages before the views in which members went against their will.
fn before_views(member: &Participant<'_>, part: Part) -> String {
    if part.differs || member.fate != Fate::Ended {
        return String::new();
    }
    let is_sudden = |cause: &DepartureCause| !matches!(cause, DepartureCause::Left);
    let views = member.views().filter(|(_, view)| view.after.is_some());
    let sudden = views.filter(|(_, view)| view.departed.iter().any(|(_, cause)| is_sudden(cause)));
    let places = sudden.map(|(event, view)| (member.deliveries_before(event) as u64, view.number));
    let words = places
        .filter(|(before, _)| *before > 0)
        .take(VIEWS_MAX)
        .map(|(before, view)| format!(", of these {} before view {view}", with_commas(before)));
    words.collect()
}

/// The messages that a lost host took along.
fn tail(member: &Participant<'_>, part: Part) -> String {
    match (member.deliveries.len() - part.tail) as u64 {
        0 => String::new(),
        count => {
            format!(", then {} that {} took along", with_commas(count), member.trace.head.host)
        }
    }
}
