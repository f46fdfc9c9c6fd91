//! Tunnels: the messages of all processes of two hosts go over one connection of their daemons.

use landeck_collectives::settings::Settings;
use landeck_testing::Watchdog;
use landeck_transports::Lanes;
use landeck_wire::way::PathWish;

use super::lanes::next_run::{channel, pass};
use super::lanes::{JOB, parts_with, three};
use super::*;

/// The parts of a job whose messages go so.
fn parts<const N: usize>(job: JobId, daemons: [&Daemon; N]) -> [Segment; N] {
    let settings = Settings { paths: [PathWish::Daemons as u64, 0, 0], ..Settings::default() };
    parts_with(&settings, job, daemons)
}

/// The channel of the process of a segment.
fn process(segment: &Segment) -> Lanes {
    channel(segment, PathWish::Daemons)
}

/// The number of established connections to the ports of these daemons, as their own ends see them.
fn connections(daemons: [&Daemon; 2]) -> usize {
    let tables = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];
    let tables = tables.map(|name| std::fs::read_to_string(name).unwrap_or_default());
    let ports = daemons.map(|daemon| format!("{:04X}", daemon.entry.addresses[0].port()));
    let is_one = |line: &&str| {
        let mut words = line.split_whitespace();
        let port = words.nth(1).and_then(|own| own.rsplit_once(':')).map(|(_, port)| port);
        let is_established = words.nth(1) == Some("01");
        is_established && ports.iter().any(|own| Some(own.as_str()) == port)
    };
    tables.iter().flat_map(|table| table.lines()).filter(is_one).count()
}

#[test]
fn all_processes_of_two_hosts_share_one_connection() {
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    let mut zero = arbiter();
    let mut one = host(&mut zero, Way::default());
    one.wait_up(0);
    zero.wait_up(1);
    let before = connections([&zero, &one]);
    let jobs = [0, 1, 2].map(|more| JobId(JOB.0 + more));
    let segments = jobs.map(|job| parts(job, [&zero, &one]));
    let mut pairs = segments.each_ref().map(|[here, there]| [process(here), process(there)]);
    for _ in 0..3 {
        for ([a, b], [here, there]) in pairs.iter_mut().zip(&segments) {
            // Both sides begin streams.
            pass(b, a, there, 0);
            pass(a, b, here, 0);
        }
    }
    assert_eq!(connections([&zero, &one]), before + 1);
    // A job that is over takes its own streams along.
    zero.ask(move |context| context.remove_part(jobs[0]));
    let [_, [a, b], _] = &mut pairs;
    pass(a, b, &segments[1][0], 0);
    assert_eq!(connections([&zero, &one]), before + 1);
}

#[test]
fn messages_go_on_behind_a_tunnel_that_is_cut() {
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    let mut zero = arbiter();
    // The arbiter does not reach the host, so that opens all connections, also the tunnel.
    let relay = Relay::to(zero.entry.addresses[0]);
    let way = Way { to_arbiter: Some(relay.address), is_hidden: true };
    let mut one = host(&mut zero, way);
    one.wait_up(0);
    zero.wait_up(1);
    let segments = parts(JOB, [&zero, &one]);
    let [mut a, mut b] = [0, 1].map(|at| process(&segments[at]));
    for _ in 0..5 {
        for _ in 0..20 {
            pass(&mut a, &mut b, &segments[0], 0);
            pass(&mut b, &mut a, &segments[1], 0);
        }
        relay.cut();
    }
    pass(&mut a, &mut b, &segments[0], 0);
    pass(&mut b, &mut a, &segments[1], 0);
}

#[test]
fn messages_over_tunnels_go_on_behind_a_new_run() {
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    let [zero, one, two] = three();
    let segments = parts(JOB, [&zero, &one, &two]);
    let [mut a, mut b, mut c] = [0, 1, 2].map(|at| process(&segments[at]));
    let mut pass_all = |times| {
        for _ in 0..times {
            pass(&mut a, &mut b, &segments[0], 0);
            pass(&mut b, &mut a, &segments[1], 0);
            pass(&mut b, &mut c, &segments[1], 1);
            pass(&mut c, &mut a, &segments[2], 0);
        }
    };
    pass_all(3);
    one.begin_again(1, &[&zero, &two]);
    pass_all(20);
    one.begin_again(2, &[&zero, &two]);
    zero.begin_again(1, &[&one, &two]);
    pass_all(3);
}

#[test]
fn a_host_that_is_lost_takes_its_tunnel_along() {
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    let [zero, mut one, mut two] = three();
    let segments = parts(JOB, [&zero, &one, &two]);
    let [mut a, mut b, mut c] = [0, 1, 2].map(|at| process(&segments[at]));
    pass(&mut b, &mut c, &segments[1], 1);
    two.end(End::Killed);
    one.wait_word(|content| matches!(content, WordContent::HostLost { .. }));
    pass(&mut b, &mut a, &segments[1], 0);
    pass(&mut a, &mut b, &segments[0], 0);
}

#[test]
fn a_stream_with_a_wrong_code_is_refused() {
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    let mut zero = arbiter();
    let mut one = host(&mut zero, Way::default());
    one.wait_up(0);
    zero.wait_up(1);
    let segments = parts(JOB, [&zero, &one]);
    let [mut a, mut b] = [0, 1].map(|at| process(&segments[at]));
    pass(&mut b, &mut a, &segments[1], 0);
    let host = one.entry.host;
    let whys = zero.ask(move |context| context.whys_of_streams(host));
    assert_eq!(
        whys,
        [
            None,
            Some("the code of its stream is wrong"),
            Some("the code of its stream is wrong"),
            Some("its tunnel has ended"),
            Some("its stream is none to a relay"),
            Some("its stream is none to a relay"),
            Some("its code is made under a secret that this host does not have"),
        ]
    );
}
