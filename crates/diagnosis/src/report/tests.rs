//! Reports on made-up pictures, most of them of two hosts.

use super::*;
use crate::host_picture::{HostPicture, LanePicture};
use crate::picture::{MissingHost, MissingPicture};
use crate::samples::{self, process, two_hosts, waits};
use landeck_collectives::Operation as Together;

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
        (5, Operation::Send, "send to rank 3 on n2 (pid 413), in one copy, a group"),
        (5, Operation::Receive, "receive from rank 3 on n2 (pid 413), through memory, a group"),
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
fn the_host_where_data_stay_is_named_with_the_way_there() {
    for (operation, peer, words) in [
        (Operation::Send, Some(process(2, 1)), "to rank 3 on n2 (pid 413), to be stored on n2"),
        (Operation::Fetch, None, "fetch, stored on n2"),
    ] {
        for (gateways, through) in [(vec![], ", a group"), (vec!["g"], ", through g, a group")] {
            let mut pictures = two_hosts();
            if !gateways.is_empty() {
                pictures[0].ways = vec![(1, gateways.into_iter().map(str::to_owned).collect())];
            }
            let member = &mut pictures[0].members[0];
            waits(member, operation, peer);
            (member.wait.way, member.wait.number) = (MessageWay::Store as u8, 1);
            let text = report(pictures, Vec::new()).text();
            assert!(text.contains(&format!("{words}{through}")), "{words}{through}: {text}");
        }
    }
}

#[test]
fn a_part_whose_processes_have_ended_ends_no_job() {
    let mut pictures = two_hosts();
    pictures[0].is_ending = true;
    assert!(report(pictures.clone(), Vec::new()).verdict().contains("being ended"));
    pictures[0].members.iter_mut().for_each(|member| member.record.state = SlotState::Departed);
    assert!(!report(pictures, Vec::new()).verdict().contains("being ended"));
}

#[test]
fn a_send_in_one_copy_is_named_on_one_host() {
    let mut pictures = two_hosts();
    pictures.truncate(1);
    let only = &mut pictures[0];
    only.far.clear();
    only.members[1].role = crate::Role::Rank(1);
    for (member, to) in [(0, 1), (1, 0)] {
        waits(&mut only.members[member], Operation::Send, Some(process(1, to)));
    }
    for (number, words) in [
        (0, "in one copy, a group"),
        (1, "in one copy (the probe of this host decides), a group"),
        (2, "in one copy (the figures of landeck tune decide), a group"),
        (3, "in one copy (as asked for), a group"),
    ] {
        let source = OneCopySource::from_number(number);
        let mut pictures = pictures.clone();
        pictures[0]
            .members
            .iter_mut()
            .for_each(|member| member.wait.way = MessageWay::OneCopy.number_with(source));
        let text = report(pictures, Vec::new()).text();
        assert!(text.contains(&format!("send to rank 1, {words}")), "{text}");
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

/// Lets members of a world on two hosts wait in collective operations.
fn in_calls(pictures: &mut [HostPicture], context: u32, calls: &[(usize, usize, Signature)]) {
    for &(host, slot, call) in calls {
        let member = &mut pictures[host].members[slot];
        waits(member, Operation::Collective, None);
        member.wait.context = context;
        member.wait.tag = Some(call.tag());
    }
}

#[test]
fn members_on_two_hosts_that_call_different_operations_are_out_of_step() {
    let mut pictures = two_hosts();
    let broadcast = Signature::new(9, Together::Broadcast, 3);
    let barrier = Signature::new(9, Together::Barrier, 0);
    let calls = [(0, 0, broadcast), (1, 0, broadcast), (1, 1, barrier)];
    in_calls(&mut pictures, ContextId::WORLD.0, &calls);
    let report = report(pictures.clone(), Vec::new());
    assert_eq!(
        report.verdict(),
        "Stuck for 2.0 s: members of world are out of step: rank 0 on n1 (pid 410) and rank 1 on n2 (pid 411) called \
         broadcast with root 3, rank 3 on n2 (pid 413) called barrier. All members call the same operations in the \
         same order."
    );
    assert_eq!(report.concerned(), [0, 1, 3]);
    let next = Signature::new(10, Together::Barrier, 0);
    let calls = [(0, 0, broadcast), (1, 0, broadcast), (1, 1, next)];
    in_calls(&mut pictures, ContextId::WORLD.0, &calls);
    let ahead = self::report(pictures, Vec::new());
    assert!(!matches!(ahead.reason(), Verdict::Mismatch(_)), "a member may be ahead: {ahead:?}");
}

#[test]
fn a_group_over_hosts_has_its_members() {
    let mut pictures = two_hosts();
    let group = ContextId::new(77, 3).0;
    let barrier = Signature::new(0, Together::Barrier, 0);
    in_calls(&mut pictures, group | ContextId::COLLECTIVE, &[(0, 0, barrier), (1, 1, barrier)]);
    let members = vec![process(2, 1), process(1, 0), process(1, 1)];
    pictures[0].members[0].group = members.clone();
    let alone = report(pictures.clone(), Vec::new());
    pictures[1].members[1].group = members;
    for report in [alone, report(pictures, Vec::new())] {
        let text = report.text();
        let wanted = "barrier, the group of ranks 0 2 on n1 and rank 3 on n2 (pid 413), missing rank 2 on n1 (pid 412)";
        assert!(text.contains(wanted), "{text}");
        assert!(text.contains("for rank 2 on n1 (pid 412), which computes"), "{text}");
    }
}

#[test]
fn bytes_that_do_not_move_are_told_with_both_ends() {
    let mut pictures = two_hosts();
    let sender = &mut pictures[1].members[1];
    waits(sender, Operation::Send, Some(process(1, 0)));
    let since_ns = sender.at_ns - 4_000_000_000;
    let lane = |host, unsent_bytes, since_ns| {
        let to = process(host, 0);
        LanePicture { to, unsent_bytes, open_messages: 3, since_ns, silent_since_ns: 0 }
    };
    sender.lanes = vec![lane(1, 1_258_291, since_ns), lane(2, 5, sender.at_ns)];
    let text = report(pictures.clone(), Vec::new()).text();
    assert!(
        text.contains(
            "\n  rank 3 on n2 (pid 413): 1.2 MiB unsent to rank 0 on n1 (pid 410) for 4.0 s, which does not read: it \
             computes, outside all waits\n"
        ),
        "{text}"
    );
    assert_eq!(text.matches("unsent").count(), 1, "what moves is not told: {text}");
    waits(&mut pictures[0].members[0], Operation::Receive, Some(process(1, 1)));
    let report_now = report(pictures.clone(), Vec::new());
    assert!(report_now.lanes()[0].text.ends_with("for 4.0 s, which waits in: receive"));
    assert_eq!((report_now.lanes()[0].place, report_now.lanes()[0].since.as_secs()), (3, 4));
    pictures[0].members[0].record.stopped = true;
    let text = report(pictures.clone(), Vec::new()).text();
    assert!(text.contains("does not read: it is stopped by a signal"), "{text}");
    pictures[0].members[0].record.state = SlotState::Dead;
    assert!(report(pictures, Vec::new()).lanes().is_empty());
}

#[test]
fn a_network_that_carries_nothing_is_no_fault_of_the_program() {
    let mut pictures = two_hosts();
    waits(&mut pictures[0].members[0], Operation::Receive, Some(process(2, 1)));
    let receiver = &mut pictures[1].members[1];
    waits(receiver, Operation::Receive, Some(process(1, 0)));
    let lane = |ms: u64| LanePicture {
        to: process(1, 0),
        unsent_bytes: 199_680,
        open_messages: 3,
        since_ns: receiver.at_ns - ms * 1_000_000,
        silent_since_ns: receiver.at_ns - ms * 1_000_000,
    };
    let (new, old) = (lane(300), lane(2_000));
    receiver.lanes = vec![new];
    let reason = report(pictures.clone(), Vec::new()).reason().clone();
    assert!(matches!(reason, Verdict::Circle(_)), "a packet may have been lost: {reason:?}");
    pictures[1].members[1].lanes = vec![old];
    let report = report(pictures, Vec::new());
    assert_eq!(
        report.verdict(),
        "The network carries nothing: of 195.0 KiB from rank 3 on n2 (pid 413) to rank 0 on n1 (pid 410) nothing has been \
         acknowledged for 2.0 s."
    );
    assert!(report.advice().is_some_and(|advice| advice.contains("MTU")));
    assert!(report.text().contains("for 2.0 s: the network carries nothing there\n"));
    assert!(!report.goes_on());
}
