//! A run that holds, and for each property a run with one fault that is reported.

use super::{Property, TraceReport, check};
use crate::event::{
    DepartureCause, GroupTrace, MemberName, MessageName, TraceEnd, TraceEvent, TraceHead,
    TraceLevel, TracedView,
};

/// A run of four members, each with its name, its host, and its events in short words:
///
/// | word | event |
/// |---|---|
/// | `v4/9:1,2+2-0lost` | view 4 after message 9 has the members 1 and 2; 2 has come, and 0 was lost |
/// | `s1`, `s1!` | sends message 1, at level `total`; at level `safe` |
/// | `ok1`, `no1` | has sent it; was refused |
/// | `0.2@9`, `0.2!@9` | delivers message 2 of member 0, the 9th of the group; a safe one |
/// | `y1`, `Y1`, `e`, `.` | comes to synchronisation 1, completes it, has an empty mailbox, leaves |
///
/// Member 0 is lost with its host n2, which takes its last message along. Member 3 comes afterwards.
const RUN: [(MemberName, &str, &str); 4] = [
    (
        MemberName { id: 0, since: 1 },
        "n2",
        "v1/0:0+0 v2/0:0,1+1 v3/0:0,1,2+2 s1 ok1 0.1@1 1.1@2 2.1!@3 s2 ok2 0.2@4 s3 ok3 0.3@5",
    ),
    (
        MemberName { id: 1, since: 2 },
        "n1",
        "v2/0:0,1+1 v3/0:0,1,2+2 0.1@1 s1 ok1 1.1@2 2.1!@3 0.2@4 v4/4:1,2-0lost s2 ok2 1.2@5 \
         v5/5:1,2,3+3 s3 no3 3.1@6 s4 ok4 1.4@7 y1 Y1 2.2@8 y2 Y2 e .",
    ),
    (
        MemberName { id: 2, since: 3 },
        "n3",
        "v3/0:0,1,2+2 0.1@1 s1! 1.1@2 2.1!@3 ok1 0.2@4 v4/4:1,2-0lost 1.2@5 v5/5:1,2,3+3 3.1@6 \
         1.4@7 y1 Y1 s2 ok2 2.2@8 y2 Y2 e .",
    ),
    (MemberName { id: 3, since: 5 }, "n1", "v5/5:1,2,3+3 s1 ok1 3.1@6 1.4@7 y1 Y1 2.2@8 y2 Y2 e ."),
];

/// Makes the traces of a run, after some changes: in the events of a member, one text becomes another.
fn traces(changes: &[(u32, &str, &str)]) -> Vec<GroupTrace> {
    let trace = |(member, host, words): (MemberName, &str, &str)| {
        let mut words = words.to_owned();
        for (_, from, to) in changes.iter().filter(|change| change.0 == member.id) {
            assert!(words.contains(from), "{from:?} is not in {words}");
            words = words.replacen(from, to, 1);
        }
        let (group, host) = ("ord".into(), host.into());
        let head = TraceHead { group, member, rank: member.id, host };
        let events = words.split_whitespace().map(event).collect();
        GroupTrace { source: format!("out/rank-{}.stdout", member.id), head, events }
    };
    RUN.into_iter().map(trace).collect()
}

fn member(id: u32) -> MemberName {
    RUN.iter()
        .map(|(name, ..)| *name)
        .find(|name| name.id == id)
        .unwrap_or(MemberName { id, since: 9 })
}

fn event(word: &str) -> TraceEvent {
    let number = |digits: &str| digits.parse().unwrap();
    match word.as_bytes()[0] {
        b'v' => TraceEvent::View(view(&word[1..])),
        b's' => {
            let (number, level) = level(&word[1..]);
            TraceEvent::Send { number, level, sum: sum(number) }
        }
        b'o' => TraceEvent::Sent(number(&word[2..])),
        b'n' => TraceEvent::Refused(number(&word[2..])),
        b'y' => TraceEvent::Syncing(number(&word[1..])),
        b'Y' => TraceEvent::Synced(number(&word[1..])),
        b'e' => TraceEvent::Empty,
        b'.' => TraceEvent::Ended(TraceEnd::Left),
        _ => {
            let (name, at) = word.split_once('@').unwrap();
            let (sender, rest) = name.split_once('.').unwrap();
            let (rest, is_garbled) =
                rest.strip_suffix('?').map_or((rest, false), |rest| (rest, true));
            let (number, level) = level(rest);
            let message = MessageName { sender: member(sender.parse().unwrap()), number };
            let sum = sum(number) + u32::from(is_garbled);
            TraceEvent::Delivered { message, level, sum, at: at.parse().ok() }
        }
    }
}

fn sum(number: u64) -> u32 {
    number as u32 * 16
}

fn level(word: &str) -> (u64, TraceLevel) {
    match word.strip_suffix('!') {
        Some(number) => (number.parse().unwrap(), TraceLevel::Safe),
        None => (word.parse().unwrap(), TraceLevel::Total),
    }
}

fn view(word: &str) -> TracedView {
    let (places, rest) = word.split_once(':').unwrap();
    let (number, after) = places.split_once('/').unwrap();
    let (rest, gone) = rest.split_once('-').unwrap_or((rest, ""));
    let (members, joined) = rest.split_once('+').unwrap_or((rest, ""));
    let ids = |ids: &str| ids.split(',').filter_map(|id| id.parse().ok()).collect();
    let cause = |cause: &str| match cause {
        "lost" => DepartureCause::Lost,
        "left" => DepartureCause::Left,
        _ => DepartureCause::Died,
    };
    let departed = gone.split(',').filter(|word| !word.is_empty());
    TracedView {
        number: number.parse().unwrap(),
        after: after.parse().ok(),
        members: ids(members),
        joined: ids(joined),
        departed: departed.map(|it| (it[..1].parse().unwrap(), cause(&it[1..]))).collect(),
    }
}

fn report(changes: &[(u32, &str, &str)]) -> TraceReport {
    check(&traces(changes))
}

/// Checks that a run with changes breaks a property, in these words.
fn breaks(property: Property, words: &str, changes: &[(u32, &str, &str)]) {
    let report = report(changes);
    let text = format!("{property}: {words}");
    let found = report.violations.iter().any(|violation| violation.to_string() == text);
    assert!(found, "wanted: {text}\n{report}");
}

#[test]
fn a_run_that_holds_is_told_in_a_line_for_each_set() {
    let report = report(&[]);
    let lines = "members 1, 2: the same 8 messages, of these 4 before view 4\n\
                 member 0: the same 4 messages, then 1 that n2 took along\n\
                 member 3: the same 3 messages from message 6 on\n\
                 safe lost: 0; 28 properties hold\n";
    assert_eq!(report.to_string(), lines);
    assert!(report.holds() && report.not_shown().next().is_none());
}

#[test]
fn no_traces_show_nothing() {
    let report = check(&[]);
    assert!(report.holds() && report.not_shown().count() == Property::ALL.len());
}

#[test]
fn a_run_without_places_of_views_shows_less() {
    let mut traces = traces(&[]);
    for trace in &mut traces {
        for event in &mut trace.events {
            match event {
                TraceEvent::View(view) => view.after = None,
                TraceEvent::Delivered { at, .. } => *at = None,
                _ => {}
            }
        }
    }
    let report = check(&traces);
    let missing: Vec<Property> = report.not_shown().collect();
    let places = [Property::NoViewMissed, Property::OneViewPerHost, Property::OneNumber];
    let more = [Property::SameView, Property::SameBeforeView, Property::JoinersStart];
    assert!(report.holds(), "{report}");
    assert_eq!(missing, [&places[..], &more].concat());
}

#[test]
fn a_trace_that_was_cut_is_named() {
    let words = "out/rank-3.stdout: line 13 is the last and no end, but member 3 is in the last \
                 view: the trace was cut";
    breaks(Property::WholeTraces, words, &[(3, " .", "")]);
    let mut traces = traces(&[]);
    traces.remove(3);
    let words =
        "out/rank-1.stdout: there is no trace of member 3@5, of which it delivered messages";
    assert_eq!(check(&traces).violations[0].text, words);
    let mut unheard = self::traces(&[(1, "3.1@6", ""), (2, "3.1@6", "")]);
    unheard.remove(3);
    let words = "out/rank-1.stdout: there is no trace of member 3, which its views name";
    assert_eq!(check(&unheard).violations[0].text, words);
    let mut twice = self::traces(&[]);
    twice.push(twice[1].clone());
    twice[4].source = "out/copy".into();
    let words = "out/rank-1.stdout and out/copy are both of member 1@2";
    assert_eq!(check(&twice).violations[0].text, words);
}

#[test]
fn faults_of_views_are_told() {
    let views = "views 4 and 5 of member 1 differ by the members [2], and view 5 does not say so";
    breaks(Property::ViewsFollow, views, &[(1, "v5/5:1,2,3", "v5/5:1,3")]);
    let one = "view 5 is [1, 3] at member 1 and [1, 2, 3] at member 2";
    breaks(Property::OneSequenceOfViews, one, &[(1, "v5/5:1,2,3", "v5/5:1,3")]);
    let own = "member 2 is not in its view 4";
    breaks(Property::OwnViews, own, &[(2, "v4/4:1,2", "v4/4:1")]);
    let grow = "member 1 saw view 4 after view 4";
    breaks(Property::GrowingViews, grow, &[(1, "v5/5", "v4/5")]);
    let missed = "member 1 saw view 5 right after view 3";
    breaks(Property::NoViewMissed, missed, &[(1, "v4/4:1,2-0lost", "")]);
    let ranks = "view 4 of member 1 has the members [1, 2] of view 3 in the order [2, 1]";
    breaks(Property::RanksStay, ranks, &[(1, "v4/4:1,2", "v4/4:2,1")]);
    let back = "member 0 went in view 4 and is in view 5 of member 1";
    breaks(Property::GoneForGood, back, &[(1, "v5/5:1,2,3", "v5/5:0,1,2,3")]);
    let late = "member 1 delivered a message of member 0 after view 4, in which it went";
    breaks(Property::GoneForGood, late, &[(1, "0.2@4 v4/4:1,2-0lost", "v4/4:1,2-0lost 0.2@4")]);
}

#[test]
fn a_host_that_goes_in_two_views_is_told() {
    let mut traces = traces(&[
        (1, "v5/5:1,2,3+3", "v5/5:1,2,3+3 v6/5:1,2-3lost"),
        (2, "v5/5:1,2,3+3", "v5/5:1,2,3+3 v6/5:1,2-3lost"),
    ]);
    traces[3].head.host = "n2".into();
    let words = "members of host n2 were lost in view 4 and in view 6";
    let found = check(&traces).violations;
    let found = found.iter().find(|it| it.property == Property::OneViewPerHost);
    assert_eq!(found.unwrap().text, words);
}

#[test]
fn faults_of_messages_are_told() {
    let outside = "member 3 sent message 1 before its first view";
    breaks(Property::WithinMembership, outside, &[(3, "v5/5:1,2,3+3 s1", "s1 v5/5:1,2,3+3")]);
    let outside = "member 3 sent message 2 after its end";
    breaks(Property::WithinMembership, outside, &[(3, " .", " . s2")]);
    let invented = "member 1 delivered message 9 of member 2, which was never sent";
    breaks(Property::NothingInvented, invented, &[(1, "2.2@8", "2.2@8 2.9@9")]);
    let garbled = "member 1 delivered message 2 of member 2 with other bytes or at another level than it was sent with";
    breaks(Property::NothingInvented, garbled, &[(1, "2.2@8", "2.2?@8")]);
    let early = "member 1 delivered its message 1 before it sent it";
    breaks(Property::NothingInvented, early, &[(1, "s1 ok1 1.1@2", "1.1@2 s1 ok1")]);
    let refused =
        "member 2 delivered message 3 of member 1, whose sender was told that it was not sent";
    breaks(Property::RefusedNowhere, refused, &[(2, "1.4@7", "1.3@7 1.4@8")]);
    let twice = "member 1 delivered message 2 of member 0 twice";
    breaks(Property::NothingTwice, twice, &[(1, "0.2@4", "0.2@4 0.2@5")]);
}

#[test]
fn faults_of_order_are_told() {
    let order = "member 2 delivered message 1 of member 1 after its message 2";
    breaks(Property::SenderOrder, order, &[(2, "1.1@2", "1.2@2"), (2, "1.2@5", "1.1@5")]);
    let gap = "member 2 delivered messages 1 and 4 of member 1, but not 2";
    breaks(Property::NoSenderGap, gap, &[(2, "1.2@5", "")]);
    let gap = "member 2 did not deliver message 2 of member 1, which member 1 delivered before message 1 of member 3";
    breaks(Property::NoGap, gap, &[(2, "1.2@5", "")]);
    let gap = "member 1 did not deliver message 2 of member 1, which member 2 delivered before message 1 of member 3";
    breaks(Property::NoGap, gap, &[(1, "1.2@5", "")]);
    let order =
        "member 1 delivered message 1 of member 1 before message 1 of member 2, member 2 after it";
    breaks(Property::TotalOrder, order, &[(2, "1.1@2 2.1!@3", "2.1!@3 1.1@2")]);
    let cause = "message 1 of member 1 is delivered before message 1 of member 0, which its sender had delivered before it sent it";
    let swap = |member| (member, "0.1@1", "1.1@1");
    let swapped = |member| (member, "1.1@2", "0.1@2");
    // Member 1 is killed before it delivers its own message, so its order is the order of the others.
    let dies = (
        1,
        "1.1@2 2.1!@3 0.2@4 v4/4:1,2-0lost s2 ok2 1.2@5 v5/5:1,2,3+3 s3 no3 3.1@6 s4 ok4 1.4@7 y1 Y1 2.2@8 y2 Y2 e .",
        "",
    );
    let told = (2, "v4/4:1,2-0lost", "v4/4:2-0lost,1died");
    let next = |member| (member, "v5/5:1,2,3+3", "v5/5:2,3+3");
    let home = [(0, "1.1@2", ""), (0, "0.1@1", "1.1@1 0.1@2")];
    let changes = [&[dies, swap(2), swapped(2), told, next(2), next(3)][..], &home].concat();
    breaks(Property::CausalOrder, cause, &changes);
}

#[test]
fn faults_of_numbers_are_told() {
    let other = "message 2 of member 2 is the group's number 8, and number 9 at member 2";
    breaks(Property::OneNumber, other, &[(2, "2.2@8", "2.2@9")]);
    let both = "message 1 of member 0 and message 1 of member 1 are both the group's number 1";
    breaks(Property::OneNumber, both, &[(1, "1.1@2", "1.1@1")]);
    let back = "member 1 delivered message 2 of member 0, the group's number 2, after number 3";
    breaks(Property::OneNumber, back, &[(1, "0.2@4", "0.2@2")]);
    let view = "view 5 of member 1 is after the group's message 6, and came after 5";
    breaks(Property::OneNumber, view, &[(1, "v5/5", "v5/6")]);
}

#[test]
fn faults_of_the_places_of_views_are_told() {
    let same = "member 1 delivered message 2 of member 1 before view 5, member 2 after it";
    breaks(Property::SameView, same, &[(2, "1.2@5 v5/5:1,2,3+3", "v5/4:1,2,3+3 1.2@5")]);
    // Member 2 dies behind view 4, and misses the message before it.
    let dies = "1.2@5 v5/5:1,2,3+3 3.1@6 1.4@7 y1 Y1 s2 ok2 2.2@8 y2 Y2 e .";
    let missed = "member 1 delivered message 2 of member 0 before view 4, member 2 not at all";
    breaks(Property::SameBeforeView, missed, &[(2, dies, ""), (2, "0.2@4 v4/4", "v4/3")]);
    let start = "member 3 began with view 5 and did not deliver message 1 of member 3 behind it";
    breaks(Property::JoinersStart, start, &[(3, "3.1@6", "")]);
    let start = "member 3 began with view 5 and delivered message 2 of member 1 from before it";
    breaks(Property::JoinersStart, start, &[(3, "s1 ok1", "1.2@5 s1 ok1")]);
}

#[test]
fn faults_of_synchronisations_are_told() {
    let own = "member 2 had not delivered message 2 of member 2 when synchronisation 2 was over and its mailbox empty";
    breaks(Property::OwnMessages, own, &[(2, "2.2@8", "")]);
    let other = "member 3 had not delivered message 2 of member 2 when synchronisation 2 was over and its mailbox empty";
    breaks(Property::SyncCovers, other, &[(3, "2.2@8", "")]);
    let early = "member 2 sent message 2 after synchronisation 1, and member 3 delivered it before it came to it";
    breaks(Property::SyncWaits, early, &[(3, "y1 Y1 2.2@8", "2.2@8 y1 Y1")]);
}

#[test]
fn faults_of_safe_messages_are_told() {
    let gap =
        "member 1 did not deliver message 1 of member 2, which is safe: member 2 delivered it";
    breaks(Property::SafeStays, gap, &[(1, "2.1!@3", ""), (0, "2.1!@3", "")]);
    // The host takes along a safe message that it delivered; one that its sender was told is sent.
    let taken =
        "member 1 did not deliver message 3 of member 0, which is safe: member 0 delivered it";
    let delivered = [(0, "s3", "s3!"), (0, "0.3@5", "0.3!@5")];
    breaks(Property::SafeStays, taken, &delivered);
    assert_eq!(report(&delivered).safe_lost, 1);
    let told = "member 1 did not deliver message 3 of member 0, which is safe: its call returned";
    breaks(Property::SafeStays, told, &[(0, "s3", "s3!"), (0, "0.3@5", "")]);
    // A safe message whose call did not return, and that nobody delivered, may go.
    let open = report(&[(0, "s3 ok3", "s3!"), (0, "0.3@5", "")]);
    assert!(open.holds(), "{open}");
}

#[test]
fn faults_of_safe_messages_of_a_lost_host_are_told() {
    let prefix = "member 0 delivered message 3 of member 0 before message 1 of member 2, which is safe, and no survivor delivered it";
    let changes = [(0, "2.1!@3 s2 ok2 0.2@4 s3 ok3 0.3@5", "s2 s3 0.3@3 2.1!@4")];
    breaks(Property::SafePrefix, prefix, &changes);
    let order = "member 0 delivered message 1 of member 2 before message 2 of member 0, survivors after it; both are safe";
    let swap = |member| (member, "2.1!@3", "0.2!@3");
    let swapped = |member, from| (member, from, "2.1!@4");
    let all = [
        swap(1),
        swapped(1, "0.2@4"),
        swap(2),
        swapped(2, "0.2@4"),
        (0, "s2", "s2!"),
        (0, "0.2@4", "0.2!@4"),
    ];
    breaks(Property::SafeOrder, order, &all);
}

#[test]
fn violations_beyond_the_first_of_a_property_are_counted() {
    let report = report(&[
        (1, "0.1@1", "0.1@1 0.1@1 0.1@1 0.1@1"),
        (2, "0.1@1", "0.1@1 0.1@1 0.1@1 0.1@1 0.1@1"),
    ]);
    assert!(report.to_string().contains("VIOLATED nothing twice: 2 more\n"), "{report}");
}
