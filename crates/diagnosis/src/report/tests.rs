//! Reports on made-up pictures, most of them of two hosts.

use super::*;
use crate::host_picture::HostPicture;
use crate::picture::{MissingHost, MissingPicture};
use crate::samples::{self, process, two_hosts, waits};

fn report(pictures: Vec<HostPicture>, missing: Vec<MissingHost>) -> Report {
    let picture = Picture::join(pictures, missing);
    Report::of(&picture, &picture, &mut || picture.clone())
}

fn silent(number: u16, name: &str) -> MissingHost {
    let why = MissingPicture::Silent { silent_ms: 2_100 };
    MissingHost { number, name: name.to_owned(), why }
}

#[test]
fn deaths_have_their_reasons() {
    let of = |status| {
        let mut member = samples::member(1, 0, 0);
        member.record.status = status;
        how_dead(&member)
    };
    assert_eq!(of(9), "was killed by signal 9 (kill)");
    assert_eq!(of(3 << 8), "ended with exit code 3");
    assert_eq!(of(0), "ended without leaving the job");
    assert_eq!(of(SlotRecord::UNKNOWN_STATUS), "has died");
}

#[test]
fn one_host_needs_no_names_of_hosts() {
    let mut pictures = two_hosts();
    pictures.truncate(1);
    let only = &mut pictures[0];
    only.far.clear();
    only.members[1].role = crate::Role::Rank(1);
    waits(&mut only.members[0], Operation::Receive, Some(process(1, 1)));
    waits(&mut only.members[1], Operation::Receive, Some(process(1, 0)));
    let report = report(pictures, Vec::new());
    assert_eq!(
        report.text(),
        "Stuck for 2.0 s: ranks 0 1 wait for each other.\n\
        \x20 rank 0     2.0 s  receive from rank 1, a group\n\
        \x20 rank 1     2.0 s  receive from rank 0, a group\n\
        All of them receive and none sends: one of them has to send first.\n"
    );
}

#[test]
fn a_circle_leads_over_hosts() {
    let mut pictures = two_hosts();
    waits(&mut pictures[0].members[0], Operation::Receive, Some(process(2, 0)));
    waits(&mut pictures[1].members[0], Operation::Receive, Some(process(1, 0)));
    let report = report(pictures, Vec::new());
    assert_eq!(
        report.verdict(),
        "Stuck for 2.0 s: rank 0 on n1 (pid 410) and rank 1 on n2 (pid 411) wait for each other."
    );
    assert_eq!(report.concerned(), [0, 1]);
    assert_eq!(
        report.text().split_once('\n').unwrap().1,
        "  rank 0 on n1 (pid 410)                                2.0 s  receive from rank 1 on n2 (pid 411), a group\n\
        \x20 rank 1 on n2 (pid 411)                                2.0 s  receive from rank 0 on n1 (pid 410), a group\n\
        \x20 rank 2 on n1 (pid 412) and rank 3 on n2 (pid 413)            computes, outside all waits\n\
        All of them receive and none sends: one of them has to send first.\n"
    );
}

#[test]
fn the_channel_of_a_message_is_named() {
    for (way, operation, words) in [
        (0, Operation::Receive, "receive from rank 3 on n2 (pid 413), a group"),
        (3, Operation::Receive, "receive from rank 3 on n2 (pid 413), over a lane, a group"),
        (
            4,
            Operation::Receive,
            "receive from rank 3 on n2 (pid 413), over the relay of n1, a group",
        ),
        (4, Operation::Send, "send to rank 3 on n2 (pid 413), over the relay of n2, a group"),
        (1, Operation::Send, "send to rank 3 on n2 (pid 413), through memory, a group"),
    ] {
        let mut pictures = two_hosts();
        let member = &mut pictures[0].members[0];
        waits(member, operation, Some(process(2, 1)));
        member.wait.way = way;
        let text = report(pictures, Vec::new()).text();
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn a_far_process_that_computes_is_awaited() {
    let mut pictures = two_hosts();
    waits(&mut pictures[0].members[1], Operation::Receive, Some(process(2, 1)));
    let report = report(pictures, Vec::new());
    assert!(report.goes_on());
    assert_eq!(
        report.verdict(),
        "Not stuck: rank 2 on n1 (pid 412) waits, for 2.0 s now, for rank 3 on n2 (pid 413), which computes, \
         outside all waits."
    );
}

#[test]
fn a_far_process_that_is_stopped_holds_up_others() {
    let mut pictures = two_hosts();
    waits(&mut pictures[0].members[0], Operation::Send, Some(process(2, 1)));
    pictures[1].members[1].record.stopped = true;
    let report = report(pictures, Vec::new());
    assert_eq!(
        report.verdict(),
        "Stuck for 2.0 s: rank 3 on n2 (pid 413) is stopped by a signal or a debugger, and rank 0 on n1 (pid 410) \
         waits for it."
    );
    let advice = "Let go on what was stopped: on n2, kill -CONT 413";
    assert_eq!(report.advice(), Some(advice));
}

#[test]
fn a_lost_host_explains_its_processes() {
    let mut pictures = two_hosts();
    pictures.truncate(1);
    for far in &mut pictures[0].far {
        far.record.state = SlotState::Dead;
        far.record.status = SlotRecord::UNKNOWN_STATUS;
        far.is_host_lost = true;
    }
    waits(&mut pictures[0].members[0], Operation::Receive, Some(process(2, 0)));
    let report = report(pictures, Vec::new());
    assert_eq!(
        report.verdict(),
        "Stuck for 2.0 s: rank 1 on n2 (pid 411) was lost with its host, and rank 0 on n1 (pid 410) waits for it."
    );
    assert_eq!(report.missing_hosts(), ["host n2: lost"]);
}

#[test]
fn a_silent_daemon_hides_its_processes() {
    let mut pictures = two_hosts();
    pictures.truncate(1);
    waits(&mut pictures[0].members[0], Operation::Receive, Some(process(2, 0)));
    let report = report(pictures, vec![silent(1, "n2")]);
    assert!(!report.goes_on(), "nobody knows");
    assert_eq!(
        report.verdict(),
        "Not known: rank 0 on n1 (pid 410) waits, for 2.0 s now, for rank 1 on n2 (pid 411), which cannot be seen \
         (daemon silent for 2.1 s)."
    );
    let text = report.text();
    assert!(
        text.contains("cannot be seen\n") && text.ends_with("  host n2: daemon silent for 2.1 s\n"),
        "{text}"
    );
}

#[test]
fn a_world_on_several_hosts_knows_who_has_not_come() {
    let mut pictures = two_hosts();
    let mut comes = |host: usize, slot: usize, tag| {
        let member = &mut pictures[host].members[slot];
        waits(member, Operation::Collective, None);
        member.wait.context = ContextId::WORLD.0;
        member.wait.tag = Some(tag);
    };
    [(0, 0), (0, 1), (1, 1)].into_iter().for_each(|(host, slot)| comes(host, slot, 0));
    let report = report(pictures, Vec::new());
    let Verdict::Awaited { whom, waiting } = report.reason() else { panic!("{report:?}") };
    assert_eq!((&whom[..], &waiting[..]), (&[1][..], &[0, 2, 3][..]));
    let text = report.text();
    assert!(text.contains(", world, missing rank 1 on n2 (pid 411)\n"), "{text}");
}
