//! Processes that wait for one that is lost with its host, or dies, while nothing closes their connections to it: a cable
//! is pulled, or packets are swallowed. Their calls fail, or tell it as a view, and they go on without it.

use std::time::Duration;

use landeck::{ErrorKind, Gone, GroupOptions, Job, MailboxEvent, Message, Sum, Tag};

use super::members::is_member;
use super::*;

/// The path that the messages of a job take.
const PATHS: [&str; 3] = ["auto", "relay", "daemons"];

/// Three processes, of which that of rank 2 ends in this way on the second host while both others wait for it.
fn survive(how: &str) {
    let job = Job::join().unwrap();
    let world = job.world();
    // Each has heard of each, so nothing is under way on any connection.
    for _ in 0..3 {
        assert_eq!(world.all_reduce(1u64, Sum).unwrap(), 3);
    }
    let (before, after) = ((world.rank() + 2) % 3, (world.rank() + 1) % 3);
    world.send(&[1u64], after, Tag(1)).unwrap();
    world.receive_into(&mut [0u64], before, Tag(1)).unwrap();
    println!("ready");
    let failed = match world.rank() {
        0 => world.receive_into(&mut [0u64], 2, Tag(2)).map(drop).unwrap_err(),
        1 => world.all_reduce(1u64, Sum).map(drop).unwrap_err(),
        _ => loop {
            std::thread::park();
        },
    };
    assert!(matches!(failed.kind, ErrorKind::PeerFailed { rank: Some(2), .. }), "{failed}");
    assert!(failed.to_string().contains(how), "{failed}");
    let rest = world.shrink().unwrap();
    assert_eq!(rest.all_reduce(1u64, Sum).unwrap(), 2);
    println!("went on");
    job.leave().unwrap();
}

#[test]
fn calls_that_wait_for_a_lost_host_fail_and_the_others_go_on() {
    let test = "survivors::calls_that_wait_for_a_lost_host_fail_and_the_others_go_on";
    if is_member() {
        return survive("was lost with its host");
    }
    let name = test.split_once("::").unwrap().1;
    let Some(cluster) = Cluster::wished(name, &Wish::hosts(3)) else { return };
    for path in PATHS {
        let options =
            ["--host-timeout", "0.5", "--on-failure", "notify", "--name", "j", "--path", path];
        let running = start(&mut cluster.members(test, "n1,n3,n2", &options));
        running.out.wait_for("all", |text| text.matches("ready\n").count() == 3);
        cluster.hosts.cut(1).unwrap();
        running.out.wait_for("the others", |text| text.matches("went on\n").count() == 2);
        running.end().assert(137, &["Host n2 is lost: ", "2 processes go on."]);
        cluster.hosts.join(1).unwrap();
        wait_until("the lost host has nothing left", || cluster.named(1, "landeckd").is_empty());
    }
    cluster.assert_nothing_left();
}

#[test]
fn calls_that_wait_for_one_that_dies_behind_a_silent_connection_fail() {
    let test = "survivors::calls_that_wait_for_one_that_dies_behind_a_silent_connection_fail";
    if is_member() {
        return survive("was killed by signal 9");
    }
    let name = test.split_once("::").unwrap().1;
    let Some(cluster) = Cluster::wished(name, &Wish::hosts(2)) else { return };
    cluster.let_rules_come_first();
    for path in PATHS {
        let options =
            ["--host-timeout", "1", "--on-failure", "notify", "--name", "j", "--path", path];
        let running = start(&mut cluster.members(test, "n1:2,n2:1", &options));
        running.out.wait_for("all", |text| text.matches("ready\n").count() == 3);
        cluster.swallow(&cluster.connections(path));
        let all = cluster.processes(1);
        let dies = all.iter().find(|process| process.name.starts_with("hosts-")).unwrap();
        cluster.signal_pid(1, dies.pid, "KILL");
        running.out.wait_for("the others", |text| text.matches("went on\n").count() == 2);
        running.end().assert(137, &[]);
        cluster.swallow(&[]);
    }
    cluster.assert_nothing_left();
}

/// Three processes of a group whose log lies on the first host. Both of the second host are lost.
fn be_told() {
    const LONG: Duration = Duration::from_secs(100);
    let job = Job::join().unwrap();
    let (world, mut inbox) = (job.world(), job.create_mailbox().unwrap());
    let made = (world.rank() == 0).then(|| job.create_group("told", GroupOptions::default()));
    world.barrier().unwrap();
    let group = made.unwrap_or_else(|| job.open_group("told")).unwrap();
    world.barrier().unwrap();
    let member = group.join(&mut inbox).unwrap();
    world.barrier().unwrap();
    println!("ready");
    if world.rank() >= 2 {
        loop {
            std::thread::park();
        }
    }
    let view = loop {
        match inbox.next_event_within(LONG).unwrap() {
            MailboxEvent::View(view) if !view.departed().is_empty() => break view,
            MailboxEvent::View(_) => {}
            MailboxEvent::Message(message) => panic!("{message:?}"),
        }
    };
    assert!(view.departed().iter().all(|(_, how)| *how == Gone::HostLost), "{view:?}");
    assert_eq!((view.departed().len(), view.members().len()), (2, 2), "one view: {view:?}");
    member.broadcast(Message::new().pack(&[member.id()])).unwrap();
    for _ in 0..2 {
        let event = inbox.next_event_within(LONG).unwrap();
        assert!(matches!(event, MailboxEvent::Message(_)), "{event:?}");
    }
    println!("went on");
    job.leave().unwrap();
}

#[test]
fn a_lost_host_is_one_view_for_the_members_of_all_others() {
    let test = "survivors::a_lost_host_is_one_view_for_the_members_of_all_others";
    if is_member() {
        return be_told();
    }
    let name = test.split_once("::").unwrap().1;
    let Some(cluster) = Cluster::wished(name, &Wish::hosts(3)) else { return };
    let options = ["--host-timeout", "0.5", "--on-failure", "notify", "--name", "j"];
    let running = start(&mut cluster.members(test, "n1:1,n3:1,n2:2", &options));
    running.out.wait_for("all", |text| text.matches("ready\n").count() == 4);
    cluster.hosts.cut(1).unwrap();
    running.out.wait_for("the others", |text| text.matches("went on\n").count() == 2);
    running.end().assert(137, &["Host n2 is lost: ", "2 processes go on."]);
    cluster.hosts.join(1).unwrap();
    wait_until("the lost host has nothing left", || cluster.named(1, "landeckd").is_empty());
    cluster.assert_nothing_left();
}
