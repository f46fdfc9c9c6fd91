//! Hosts that reach each other over gateways alone. The networks are parts of the loopback network, so nothing but their
//! description keeps the hosts apart.

use std::net::TcpStream as Stream;

use landeck_testing::Watchdog;
use landeck_wire::handover::Handover;
use landeck_wire::preamble::{CHALLENGE_BYTES, Preamble};

use super::lanes::{Process, assert_connected, parts};
use super::*;

/// Two sites. Host 0 is at site a, host 3 at site b, and hosts 1 and 2 pass connections on. So does host 4, if there is one,
/// which is where host 1 is.
const LAB: &str = "
    network.a = { addresses = '127.0.1.0/24', site = 'a' }
    network.b = { addresses = '127.0.2.0/24', site = 'b' }
    network.middle = { addresses = '127.0.9.0/24', gateway = ['h1', 'h2', 'h4'] }
    host.h1 = {}
    host.h2 = {}
    host.h4 = {}
";
const NETWORKS: [&[u8]; 5] = [&[1], &[1, 9], &[9, 2], &[2], &[1, 9]];

/// The addresses of a host in its networks.
fn addresses(host: usize, port: u16) -> Vec<SocketAddr> {
    let at = |network: &u8| SocketAddr::from(([127, 0, *network, host as u8 + 1], port));
    NETWORKS[host].iter().map(at).collect()
}

/// A machine with hosts of these numbers, in the order in which they come. The arbiter is the first one.
fn lab(hosts: &[usize]) -> Vec<Daemon> {
    let announced = announce(None);
    let entry = announced.entry(0, addresses(0, announced.address.port()));
    let zero = announced.take_place(entry.clone(), entry);
    zero.ask(|context| context.describe(LAB.to_owned())).unwrap();
    let mut all = vec![zero];
    for &host in &hosts[1..] {
        let announced = announce(None);
        let mut entry = announced.entry(0, addresses(host, announced.address.port()));
        entry.name = format!("h{host}");
        let key = announced.key;
        let enrolment = all[0].ask(move |context| {
            let addresses: Vec<IpAddr> = entry.addresses.iter().map(SocketAddr::ip).collect();
            assert!(context.has_way_to(&entry.name, &addresses));
            let HostEntry { name, incarnation, addresses, .. } = entry;
            let host = context.admit(name, key, incarnation, addresses, 1);
            context.enrolment(host).unwrap()
        });
        let number = enrolment.own.host.0;
        let mut daemon = announced.enrol(enrolment);
        daemon.wait_up(0);
        all[0].wait_up(number);
        all.push(daemon);
    }
    for at in 1..all.len() {
        let last = all.len() as u16 - 1;
        let is_last = |content: &WordContent| matches!(content, WordContent::HostJoined(entry) if entry.host.0 == last);
        all[at].wait_word(is_last);
    }
    all
}

/// The connections that a host passes on.
fn passed_on(daemon: &Daemon) -> usize {
    daemon.ask(|context| context.passed_on())
}

/// Waits until something about a daemon is so.
fn wait_until(mut is_so: impl FnMut() -> bool) {
    let give_up = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < give_up);
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn words_and_lanes_pass_two_gateways() {
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    let mut all = lab(&[0, 1, 2, 3]);
    all[3].send(&all[0], "far");
    assert_eq!(all[0].wait_text(), (3, "far".to_owned()));
    let segments = parts(&all[0], &all[3]);
    let before = [passed_on(&all[1]), passed_on(&all[2])];
    for asks in [0, 1] {
        let first = Process::hello(&segments[asks]);
        first.say(&Handover::Want { far: 0 });
        let mut lane = first.lane();
        let second = Process::hello(&segments[1 - asks]);
        let mut other = second.lane();
        assert_connected(&mut lane, &mut other);
        let after = [passed_on(&all[1]), passed_on(&all[2])];
        assert!(after[0] > before[0] && after[1] > before[1], "{before:?} {after:?}");
        first.say(&Handover::Broken { far: 0, incarnation: 1, lane: lane.0, errno: 104 });
        second.say(&Handover::Broken { far: 0, incarnation: 1, lane: lane.0, errno: 0 });
    }
}

#[test]
fn a_host_is_early_until_a_gateway_is_there() {
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    let all = lab(&[0, 1]);
    let has_way = |host: usize| {
        let addresses: Vec<IpAddr> = addresses(host, 1).iter().map(SocketAddr::ip).collect();
        all[0].ask(move |context| context.has_way_to(&format!("h{host}"), &addresses))
    };
    assert_eq!([2, 3].map(has_way), [true, false]);
}

#[test]
fn another_gateway_takes_over() {
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    let mut all = lab(&[0, 1, 2, 3, 4]);
    let segments = parts(&all[0], &all[3]);
    let (first, second) = (Process::hello(&segments[0]), Process::hello(&segments[1]));
    first.say(&Handover::Want { far: 0 });
    let (mut lane, mut other) = (first.lane(), second.lane());
    assert_connected(&mut lane, &mut other);
    all[1].end(End::Killed);
    // The connection ends on both sides, and the next one goes over the other gateway.
    for stream in [&mut lane.2, &mut other.2] {
        assert!(matches!(stream.read(&mut [0; 1]), Ok(0) | Err(_)));
    }
    let before = passed_on(&all[4]);
    first.say(&Handover::Broken { far: 0, incarnation: 1, lane: lane.0, errno: 104 });
    second.say(&Handover::Broken { far: 0, incarnation: 1, lane: lane.0, errno: 104 });
    first.say(&Handover::Want { far: 0 });
    let (mut lane, mut other) = (first.further_lane(), second.further_lane());
    assert_connected(&mut lane, &mut other);
    assert!(passed_on(&all[4]) > before);
    let mut zero = all.remove(0);
    all[2].send(&zero, "still there");
    assert_eq!(zero.wait_text(), (3, "still there".to_owned()));
}

/// Answers a gateway's challenge with this preamble; returns whether it passes the connection on.
fn is_passed(gateway: &Daemon, preamble: &Preamble) -> bool {
    let mut stream = Stream::connect(gateway.entry.addresses[0]).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut challenge = [0; CHALLENGE_BYTES];
    stream.read_exact(&mut challenge).unwrap();
    stream.write_all(&preamble.encode()).unwrap();
    stream.read_exact(&mut challenge).is_ok()
}

#[test]
fn strangers_are_passed_on_to_the_arbiter_alone_and_for_a_moment() {
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    let all = lab(&[0, 1, 2, 3]);
    let none = HostNumber::NONE;
    let pass = |from, next| Preamble::pass(MACHINE, (from, HostNumber(1), HostNumber(next)), 1);
    let before = passed_on(&all[1]);
    assert!(is_passed(&all[1], &pass(none, 0)));
    wait_until(|| passed_on(&all[1]) == before);
    assert!(!is_passed(&all[1], &pass(none, 2)), "it is no host");
    assert!(!is_passed(&all[1], &pass(HostNumber(3), 2)), "its code is wrong");
    let far = Preamble { lane: 1 << 16, ..pass(none, 0) };
    assert!(!is_passed(&all[1], &far), "there is no such host");
    assert!(!is_passed(&all[3], &pass(none, 0)), "this host is no gateway");
}
