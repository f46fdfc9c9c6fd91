//! Machines of two and three hosts: admission, messages, cut trunks, hosts that end.

use landeck_testing::Watchdog;
use landeck_trust::KeyPair;

use super::*;
use crate::join::FounderWay;

fn limited() -> Watchdog {
    Watchdog::start(Duration::from_secs(170))
}

#[test]
fn hosts_are_admitted_and_talk() {
    let _watchdog = limited();
    let mut zero = arbiter();
    let mut one = host(&mut zero, Way::default());
    let mut two = host(&mut zero, Way::default());
    zero.wait_up(1);
    zero.wait_up(2);
    one.wait_up(0);
    two.wait_up(0);
    zero.send(&one, "from the arbiter");
    one.send(&zero, "from a host");
    one.send(&two, "over the arbiter");
    two.send(&two, "to myself");
    assert_eq!(one.wait_text(), (0, "from the arbiter".into()));
    assert_eq!(zero.wait_text(), (1, "from a host".into()));
    let mut came = [two.wait_text(), two.wait_text()];
    came.sort();
    assert_eq!(came, [(1, "over the arbiter".into()), (2, "to myself".into())]);
    for (daemon, joined) in [(&mut zero, 2), (&mut one, 2), (&mut two, 2)] {
        daemon.wait_word(
            |content| matches!(content, WordContent::HostJoined(entry) if entry.host.0 == joined),
        );
        let names = daemon
            .ask(|context| context.hosts().map(|entry| entry.name.clone()).collect::<Vec<_>>());
        assert_eq!(names, ["h0", "h1", "h2"]);
    }
}

#[test]
fn bulk_comes_in_order_and_is_counted_until_it_has() {
    let _watchdog = limited();
    let mut zero = arbiter();
    let mut one = host(&mut zero, Way::default());
    one.wait_up(0);
    let block = "x".repeat(100_000);
    let unsent = one.ask(move |context| {
        for number in 0..300 {
            context.send_bulk(HostNumber(0), FRAGILE, text(&format!("{number} {block}")));
        }
        context.send(HostNumber(0), FRAGILE, text("control"));
        context.unsent_bulk(HostNumber(0))
    });
    assert!(unsent > 5_000_000, "{unsent} bytes");
    let mut bulk = Vec::new();
    let mut control_at = None;
    while bulk.len() < 300 || control_at.is_none() {
        match zero.wait_text().1 {
            text if text == "control" => control_at = Some(bulk.len()),
            text => bulk.push(text.split(' ').next().unwrap().parse::<usize>().unwrap()),
        }
    }
    assert!(bulk.iter().copied().eq(0..300));
    assert!(control_at < Some(290), "control overtakes bulk: {control_at:?}");
    let give_up = Instant::now() + PATIENCE;
    while one.ask(|context| context.unsent_bulk(HostNumber(0))) > 0 {
        assert!(Instant::now() < give_up);
    }
}

#[test]
fn a_trunk_that_is_cut_is_renewed_without_loss() {
    const ROUNDS: u64 = 20;
    const EACH: u64 = 25;
    let _watchdog = limited();
    let mut zero = arbiter();
    let relay = Relay::to(zero.entry.addresses[0]);
    let way = Way { to_arbiter: Some(relay.address), is_hidden: true };
    let mut one = host(&mut zero, way);
    one.wait_up(0);
    zero.wait_up(1);
    for round in 0..ROUNDS {
        let jobs = round * EACH..(round + 1) * EACH;
        for job in jobs.clone() {
            zero.ask(move |context| context.tell(end_of_job(job)));
            one.send(&zero, &job.to_string());
        }
        relay.cut();
    }
    let mut words = Vec::new();
    while words.len() < (ROUNDS * EACH) as usize {
        let word = one.wait_word(|content| matches!(content, WordContent::JobEnds { .. }));
        let WordContent::JobEnds { job, .. } = word.content else { unreachable!() };
        words.push((job.0, word.number));
    }
    assert!(words.iter().map(|(job, _)| *job).eq(0..ROUNDS * EACH), "each word once, in order");
    assert!(words.windows(2).all(|pair| pair[0].1 < pair[1].1));
    for job in 0..ROUNDS * EACH {
        assert_eq!(zero.wait_text(), (1, job.to_string()));
    }
    one.wait_up(0);
    assert!(!zero.seen_so_far().iter().any(|seen| matches!(seen, Seen::Down(..))));
    let hosts = zero.ask(|context| context.hosts().count());
    assert_eq!(hosts, 2, "nobody is lost");
}

#[test]
fn a_key_that_was_not_admitted_gets_no_trunk() {
    let _watchdog = limited();
    let mut zero = arbiter();
    let announced = announce(None);
    let other = KeyPair::generate().unwrap().hash();
    let entry = admit(&mut zero, &announced, other, vec![announced.address]);
    let mut stranger = announced.take_place(entry, zero.entry.clone());
    let why = stranger.wait_down(0);
    assert!(why.contains("refused") || why.contains("key"), "{why}");
    let why = zero.wait_down(1);
    assert!(why.contains("was admitted"), "{why}");
    assert!(!zero.seen_so_far().contains(&Seen::Up(HostNumber(1))));
}

#[test]
fn when_a_daemon_is_killed_the_others_are_told() {
    let _watchdog = limited();
    let mut zero = arbiter();
    let mut one = host(&mut zero, Way::default());
    let mut two = host(&mut zero, Way::default());
    two.wait_up(0);
    one.wait_up(0);
    zero.wait_up(1);
    one.end(End::Killed);
    let why = zero.wait_down(1);
    assert!(why.contains("refused"), "{why}");
    let lost = |content: &WordContent| matches!(content, WordContent::HostLost { host, .. } if host.0 == 1);
    let word = two.wait_word(lost);
    assert_eq!(zero.wait_word(lost), word);
    let living = two.ask(|context| context.hosts().map(|entry| entry.host.0).collect::<Vec<_>>());
    assert_eq!(living, [0, 2]);
}

#[test]
fn a_host_that_ends_in_order_is_gone_at_once() {
    let _watchdog = limited();
    let mut zero = arbiter();
    let mut one = host(&mut zero, Way::default());
    one.wait_up(0);
    zero.wait_up(1);
    let began = Instant::now();
    one.end(End::InOrder);
    zero.wait_word(|content| matches!(content, WordContent::HostGone { host, .. } if host.0 == 1));
    assert!(began.elapsed() < Duration::from_secs(8), "not after the lease: {:?}", began.elapsed());
    assert_eq!(zero.wait_down(1), "its daemon has ended in order");
}

#[test]
fn when_the_arbiter_ends_the_hosts_are_told() {
    let _watchdog = limited();
    for end in [End::InOrder, End::Killed] {
        let mut zero = arbiter();
        let mut one = host(&mut zero, Way::default());
        one.wait_up(0);
        zero.wait_up(1);
        zero.end(end);
        let why = one.wait_down(0);
        assert!(why.contains("in order") == (end == End::InOrder), "{why}");
    }
}

#[test]
fn where_no_port_is_reached_the_streams_of_ssh_are_the_trunk() {
    let _watchdog = limited();
    let mut zero = arbiter();
    let (child_input, to_child) = rustix::pipe::pipe().unwrap();
    let (from_child, child_output) = rustix::pipe::pipe().unwrap();
    let announced = announce(Some((child_input, child_output)));
    // Nobody listens at the discard port.
    let nowhere: SocketAddr = "127.0.0.1:9".parse().unwrap();
    let entry = admit(&mut zero, &announced, announced.key, vec![nowhere]);
    let mut of_arbiter = zero.entry.clone();
    of_arbiter.addresses = vec![nowhere];
    let number = entry.host;
    let mut one = announced.take_place(entry, of_arbiter);
    zero.ask(move |context| context.add_stdio_trunk(number, from_child, to_child));
    zero.wait_up(1);
    one.wait_up(0);
    one.send(&zero, "through pipes");
    assert_eq!(zero.wait_text(), (1, "through pipes".into()));
    // Without datagrams and ports, heartbeats take the pipes too.
    std::thread::sleep(Duration::from_millis(options().host_timeout_ms + 1_000));
    assert_eq!(zero.ask(|context| context.hosts().count()), 2);
    // The message about a host that is lost then names the remote shell, whether or not that has ended.
    let dependence = |zero: &Daemon| zero.ask(move |context| context.dependence(number).unwrap());
    assert!(dependence(&zero).contains("only connection is that of the remote shell (ssh)"));
    one.end(End::Killed);
    let give_up = Instant::now() + PATIENCE;
    while !dependence(&zero).contains("the remote shell (ssh): the other side ended") {
        assert!(Instant::now() < give_up, "{}", dependence(&zero));
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn behind_a_trunk_the_end_of_the_remote_shell_ends_nothing() {
    let _watchdog = limited();
    let mut zero = arbiter();
    let (child_input, to_child) = rustix::pipe::pipe().unwrap();
    let (from_child, child_output) = rustix::pipe::pipe().unwrap();
    let announced = announce(Some((child_input, child_output)));
    let entry = admit(&mut zero, &announced, announced.key, vec![announced.address]);
    let mut one = announced.take_place(entry, zero.entry.clone());
    zero.wait_up(1);
    one.wait_up(0);
    drop((to_child, from_child));
    for number in 0..20 {
        one.send(&zero, &number.to_string());
        assert_eq!(zero.wait_text(), (1, number.to_string()));
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn before_a_trunk_the_end_of_the_remote_shell_ends_the_daemon() {
    let _watchdog = limited();
    let zero = arbiter();
    let (child_input, to_child) = rustix::pipe::pipe().unwrap();
    let (_from_child, child_output) = rustix::pipe::pipe().unwrap();
    let announced = announce(Some((child_input, child_output)));
    let entry = announced.entry(1, vec![announced.address]);
    let nowhere: SocketAddr = "127.0.0.1:9".parse().unwrap();
    let mut one =
        announced.take_place(entry, HostEntry { addresses: vec![nowhere], ..zero.entry.clone() });
    drop(to_child);
    one.thread.take().unwrap().join().unwrap();
}

#[test]
fn streams_that_nobody_needs_do_not_wake_the_daemon() {
    let _watchdog = limited();
    let mut zero = arbiter();
    let (from_child, _output) = rustix::pipe::pipe().unwrap();
    let (_input, to_child) = rustix::pipe::pipe().unwrap();
    let mut one = host(&mut zero, Way::default());
    let number = one.entry.host;
    zero.ask(move |context| context.add_stdio_trunk(number, from_child, to_child));
    zero.wait_up(1);
    one.wait_up(0);
    // Both sides have dialled; what is left of that ends soon.
    let give_up = Instant::now() + Duration::from_secs(100);
    while let Some(due) = zero.ask(|context| context.trunks_deadline()) {
        assert!(Instant::now() < give_up, "the trunks have something to do at {due:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_token_admits_one_host() {
    let _watchdog = limited();
    let mut zero = arbiter();
    let token = zero.ask(|context| context.issue_token().unwrap());
    let address = zero.entry.addresses[0];
    let ask = |name: &str| {
        let announced = announce(None);
        let pair = KeyPair::generate().unwrap();
        let addresses = vec![announced.address.ip()];
        let incarnation = HostIncarnation(77);
        let request = crate::join::request(
            &token,
            name.into(),
            incarnation,
            announced.address.port(),
            addresses,
        );
        let founder = (token.founder, FounderWay { address, is_gateway: false });
        crate::join::ask(&pair, founder, &request, crate::join::STEP_TIME)
            .map(|answer| (pair.hash(), answer))
    };
    let (key, answer) = ask("by hand").unwrap();
    let crate::daemon_message::DaemonMessage::Admitted(place) = answer else {
        panic!("{answer:?}");
    };
    let found = (place.machine, place.own.host.0, place.arbiter.key);
    assert_eq!(found, (MACHINE, 1, zero.entry.key));
    let word = zero.wait_word(
        |content| matches!(content, WordContent::HostJoined(entry) if entry.name == "by hand"),
    );
    let WordContent::HostJoined(entry) = word.content else { unreachable!() };
    assert_eq!(entry.key, key.0, "the key of the session is admitted");
    let refused = ask("another").unwrap_err().to_string();
    assert!(refused.contains("used before"), "{refused}");
}

#[test]
fn a_host_comes_back_by_its_ticket_in_its_place_once_it_is_over() {
    let _watchdog = limited();
    let mut zero = arbiter();
    let mut one = host(&mut zero, Way::default());
    one.wait_up(0);
    zero.wait_up(1);
    let ticket = zero.ask(|context| context.issue_ticket(HostNumber(1)).unwrap());
    let (address, founder) = (zero.entry.addresses[0], KeyHash(zero.entry.key));
    let ask = |secret: [u8; 16], incarnation: u64| {
        let request = crate::daemon_message::DaemonMessage::Return {
            host: HostNumber(1),
            secret,
            incarnation: HostIncarnation(incarnation),
            port: 1,
            addresses: vec![IpAddr::V4(Ipv4Addr::LOCALHOST)],
            facts: crate::facts::HostFacts::here(),
        };
        let pair = KeyPair::generate().unwrap();
        let founder = (founder, FounderWay { address, is_gateway: false });
        crate::join::ask(&pair, founder, &request, crate::join::STEP_TIME)
    };
    let until_admitted = |incarnation: u64| {
        let give_up = Instant::now() + PATIENCE;
        loop {
            match ask(ticket, incarnation).unwrap() {
                crate::daemon_message::DaemonMessage::Admitted(place) => return place.own.host,
                answer => assert_eq!(answer, crate::daemon_message::DaemonMessage::StillThere),
            }
            assert!(Instant::now() < give_up);
        }
    };
    let refused = ask([0; 16], 70).unwrap_err().to_string();
    assert!(refused.contains("its return ticket is void"), "{refused}");
    // The ticket says that the daemon before is over.
    assert_eq!(until_admitted(71), HostNumber(1));
    let is = |one: u64| move |content: &WordContent| matches!(content, WordContent::HostGone { incarnation, .. } if incarnation.0 == one);
    zero.wait_word(is(one.entry.incarnation.0));
    // The answer was lost: nobody has connected since.
    assert_eq!(until_admitted(72), HostNumber(1));
    zero.wait_word(is(71));
    zero.ask(|context| context.void_ticket(HostNumber(1)));
    let refused = ask(ticket, 73).unwrap_err().to_string();
    assert!(refused.contains("its return ticket is void"), "{refused}");
}
