//! Connections of strangers: scans, rubbish, half messages, other versions, wrong codes, and far too many.

use landeck_testing::Watchdog;
use landeck_wire::preamble::{CHALLENGE_BYTES, PREAMBLE_BYTES, Preamble, Purpose};
use landeck_wire::{Incarnation, ProcessId, SegmentId, Slot};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::*;

/// A connection that has got its challenge.
fn challenged(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.read_exact(&mut [0; CHALLENGE_BYTES]).unwrap();
    stream
}

/// Waits until the daemon ends the connection. It must not say anything more, except an alert of TLS.
fn assert_ended(mut stream: TcpStream, what: &str) {
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{what}"),
    }
    assert!(rest.len() < 4_096, "{what}: {} bytes", rest.len());
}

fn lane() -> Preamble {
    let process =
        |host| ProcessId { segment: SegmentId(host), slot: Slot(0), incarnation: Incarnation(1) };
    Preamble {
        purpose: Purpose::Lane,
        machine: MACHINE,
        job: JobId(7),
        wanted: process(1),
        own: process(2),
        lane: 1,
        key_generation: 1,
        to: HostNumber(0),
        from: HostNumber(1),
        is_plain: false,
        is_passed: false,
    }
}

#[test]
fn strangers_get_nowhere_and_disturb_nobody() {
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    let mut zero = arbiter();
    let address = zero.entry.addresses[0];
    let mut one = host(&mut zero, Way::default());
    one.wait_up(0);
    let trunk = |from: u16| Preamble::trunk(MACHINE, HostNumber(from), HostNumber(0)).encode();
    let version = |version: u8| {
        let mut bytes = trunk(1);
        bytes[4] = version;
        bytes
    };
    let other_machine = Preamble::trunk(MachineId(9), HostNumber(1), HostNumber(0)).encode();
    let no_tls = [&trunk(1)[..], b"GET / HTTP/1.1\r\n\r\n"].concat();
    for (what, bytes) in [
        ("rubbish", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec()),
        ("an older version", version(0).to_vec()),
        ("a newer version", version(2).to_vec()),
        ("another machine", other_machine.to_vec()),
        ("a host that is no member", trunk(8).to_vec()),
        ("no TLS", no_tls),
        ("a guest without tokens", trunk(u16::MAX).to_vec()),
        ("a lane with a wrong code", lane().encode().to_vec()),
        ("a relay", Preamble { purpose: Purpose::Relay, ..lane() }.encode().to_vec()),
    ] {
        let mut stream = challenged(address);
        stream.write_all(&bytes).unwrap();
        assert_ended(stream, what);
    }
    // A scan connects and leaves.
    for _ in 0..100 {
        drop(TcpStream::connect(address).unwrap());
    }
    let began = Instant::now();
    let mut half = challenged(address);
    half.write_all(&trunk(1)[..PREAMBLE_BYTES / 2]).unwrap();
    assert_ended(half, "half a preamble");
    assert!(began.elapsed() > Duration::from_secs(4), "it has its five seconds");
    one.send(&zero, "still here");
    assert_eq!(zero.wait_text(), (1, "still here".into()));
    assert!(!zero.seen_so_far().iter().any(|seen| matches!(seen, Seen::Down(..))));
}

#[test]
fn ten_thousand_silent_connections_do_not_keep_a_host_out() {
    const MANY: usize = 10_000;
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    let many = maximum.map_or(MANY, |most| MANY.min(most as usize / 2));
    // The strangers have the address of the host. On a busy machine they may be faster than it for longer than usual.
    let mut zero = arbiter_with(DaemonOptions { host_timeout_ms: 40_000, ..options() });
    let address = zero.entry.addresses[0];
    let relay = Relay::to(address);
    let way = Way { to_arbiter: Some(relay.address), is_hidden: true };
    let mut one = host(&mut zero, way);
    one.wait_up(0);
    let mut silent = Vec::with_capacity(many);
    for number in 0..many {
        silent.push(TcpStream::connect(address).unwrap());
        if number % (many / 5) == many / 10 {
            relay.cut();
            one.send(&zero, &number.to_string());
        }
    }
    for round in 0..5 {
        assert_eq!(zero.wait_text(), (1, (round * (many / 5) + many / 10).to_string()));
    }
    // All but a few have lost their places at once, and those lose them after five seconds.
    for stream in &mut silent {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert!(rest.len() <= CHALLENGE_BYTES);
    }
    assert_eq!(zero.ask(|context| context.hosts().count()), 2);
}
