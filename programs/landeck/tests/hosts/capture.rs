//! The network's sight of a job: a capture of every packet holds no byte of a program's data in clear.

use landeck::{Job, RegionAddress, Tag};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SocketFlags, SocketType, eth, recv, socket_with, sockopt,
};

use super::members::is_member;
use super::*;

/// Set in the process that captures.
const CAPTURES: &str = "LANDECK_TEST_CAPTURES";
/// The ways that data take between hosts over lanes and relays, whose protection `--plain` takes away.
const OVER_LANES: [&str; 6] = ["eager", "long", "urgent", "mailbox", "put", "get"];
/// The ways over trunks, which are always protected.
const OVER_TRUNKS: [&str; 2] = ["output", "input"];
/// The length of what is looked for.
const PIECE: usize = 16;
/// The data of a process that are longer than a packet.
const LONG: usize = 200_000;
/// The most bytes that wait for the capturing process.
const BUFFER: usize = 64 << 20;

/// The 64 bytes that go a way: the same 16 four times, so that a packet that ends within them shows some.
fn marker(way: &str) -> [u8; 4 * PIECE] {
    let piece = format!("{way:->9}:mArKeR");
    std::array::from_fn(|at| piece.as_bytes()[at % PIECE])
}

fn repeated(way: &str, length: usize) -> Vec<u8> {
    marker(way).iter().copied().cycle().take(length).collect()
}

/// Captures what passes this host's network until its input ends, and says how often each marker was seen.
fn capture() {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let packets =
        socket_with(AddressFamily::PACKET, SocketType::RAW, flags, Some(eth::ALL)).unwrap();
    let _ = sockopt::set_socket_recv_buffer_size_force(&packets, BUFFER);
    println!("captures.");
    let input = std::io::stdin();
    let (mut bytes, mut seen) = (0, [0; OVER_LANES.len() + OVER_TRUNKS.len()]);
    let markers = OVER_LANES.iter().chain(&OVER_TRUNKS).map(|way| marker(way));
    let markers: Vec<[u8; 4 * PIECE]> = markers.collect();
    let mut packet = vec![0; 128 << 10];
    let mut is_over = false;
    loop {
        match recv(&packets, &mut packet[..], RecvFlags::empty()) {
            Ok((_, length)) => {
                bytes += length;
                for (marker, seen) in markers.iter().zip(&mut seen) {
                    let piece = &marker[..PIECE];
                    *seen += packet[..length].windows(PIECE).filter(|part| *part == piece).count();
                }
            }
            Err(Errno::AGAIN) if is_over => break,
            Err(Errno::AGAIN) => {
                let both =
                    &mut [PollFd::new(&packets, PollFlags::IN), PollFd::new(&input, PollFlags::IN)];
                poll(both, None).unwrap();
                is_over = !both[1].revents().is_empty();
            }
            Err(error) => panic!("{error}"),
        }
    }
    println!("captured {bytes} bytes");
    for (way, seen) in OVER_LANES.iter().chain(&OVER_TRUNKS).zip(seen) {
        println!("seen {way} {seen}");
    }
}

/// Sends markers to a process of the other host in all ways, and takes its.
fn send_in_all_ways() {
    let job = Job::join().unwrap();
    let world = job.world();
    let (rank, far) = (world.rank(), (world.rank() + 2) % 4);
    for (way, length) in [("eager", 4 * PIECE), ("long", LONG)] {
        let mut got = vec![0u8; length];
        let sent = repeated(way, length);
        world.send_receive(&sent, (far, Tag(1)), &mut got, (far, Tag(1))).unwrap();
        assert!(got == sent);
    }
    world.send_urgent(&marker("urgent")[..3 * PIECE], far, Tag(2)).unwrap();
    assert_eq!(
        world.receive::<[u8; 3 * PIECE]>(far, Tag(2)).unwrap().0,
        marker("urgent")[..3 * PIECE]
    );

    let mut inbox = job.create_mailbox().unwrap();
    inbox.register(format!("inbox of {rank}")).unwrap();
    let region = job.create_region(8 * PIECE).unwrap();
    region.write(0, &marker("get")).unwrap();
    let mut all = [0u64; 16];
    world.all_gather(&region.address().to_words(), &mut all).unwrap();
    let outbox = job.open_mailbox(format!("inbox of {far}")).unwrap();
    outbox.post_values(&marker("mailbox")).unwrap();
    let mut got = [0u8; 4 * PIECE];
    inbox.retrieve_values(&mut got).unwrap();
    assert_eq!(got, marker("mailbox"));

    let words: [u64; 4] = all[4 * far..][..4].try_into().unwrap();
    let remote = job.open_region(RegionAddress::from_words(words)).unwrap();
    remote.put(4 * PIECE, &marker("put")).unwrap();
    remote.get(0, &mut got).unwrap();
    assert_eq!(got, marker("get"));

    let mut input = Vec::new();
    std::io::stdin().read_to_end(&mut input).unwrap();
    assert_eq!(input, marker("input"));
    println!("{}", String::from_utf8_lossy(&marker("output")));
    world.barrier().unwrap();
    job.leave().unwrap();
}

/// Runs a job, and returns how often each marker passed the network of the first host.
fn captured(cluster: &Cluster, test: &str, options: &[&str]) -> Vec<(String, u64)> {
    let program = std::env::current_exe().unwrap();
    let mut capture = cluster.hosts.command(0, program);
    capture.args([test, "--exact", "--nocapture"]).env(CAPTURES, "1").stdin(Stdio::piped());
    let capture = start(&mut capture);
    capture.out.wait_for("capture", |text| text.contains("captures."));
    let mut command = cluster.four_members(test, &[&["--stdin", "all"], options].concat());
    let mut running = start(command.stdin(Stdio::piped()));
    let mut input = running.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, &marker("input")).unwrap();
    drop(input);
    let ended = running.end();
    ended.assert(0, &[]);
    assert_eq!(
        ended.out.matches(&*String::from_utf8_lossy(&marker("output"))).count(),
        4,
        "{ended:?}"
    );
    let captured = capture.end();
    captured.assert(0, &[]);
    let number = |text: &str| text.trim().parse::<u64>().unwrap();
    let bytes = captured.out.split_once("captured ").unwrap().1.split_once(" bytes").unwrap().0;
    assert!(number(bytes) > 4 * LONG as u64, "no packet may be missing: {captured:?}");
    let lines = captured.out.lines().filter_map(|line| line.strip_prefix("seen ")?.split_once(' '));
    lines.map(|(way, seen)| (way.to_owned(), number(seen))).collect()
}

#[test]
fn the_network_sees_no_data_unless_they_are_plain() {
    let test = "capture::the_network_sees_no_data_unless_they_are_plain";
    if is_member() {
        return send_in_all_ways();
    }
    if std::env::var_os(CAPTURES).is_some() {
        return capture();
    }
    let Some(cluster) = Cluster::pair(test) else { return };
    let sealed = captured(&cluster, test, &[]);
    assert_eq!(sealed.len(), OVER_LANES.len() + OVER_TRUNKS.len(), "{sealed:?}");
    assert!(sealed.iter().all(|(_, seen)| *seen == 0), "in clear: {sealed:?}");
    // The same capture sees clear data, so it would have seen them.
    let plain = captured(&cluster, test, &["--plain"]);
    for (way, seen) in &plain {
        assert_eq!(OVER_LANES.contains(&&way[..]), *seen > 0, "{way}: {plain:?}");
    }
    cluster.assert_nothing_left();
}
