//! Two jobs joined by TCP, behind the same channel trait as shared memory: on one host over
//! 127.0.0.1, and as two hosts, in two network namespaces with a cable between them.
//!
//! The near job has two processes, which share memory; its first one also has the connection. The
//! far job has one. As in the other tests, a test runs itself again as the program.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)] // tests may, and so may what helps them

use std::fs;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use landeck::unstable::JobInternals;
use landeck::unstable::tcp::{Tcp, Token};
use landeck::{Any, Error, ErrorKind, Job, Peer, Sum, Tag, World};
use landeck_testing::{Trail, Watchdog};

#[path = "../../../crates/node/tests/faults/played_daemon.rs"]
mod played_daemon;
use played_daemon::PlayedDaemon;

/// No run may take longer.
const RUN_MAX: Duration = Duration::from_secs(150);
/// Nothing may be left longer than this after a run.
const GONE_WITHIN: Duration = Duration::from_secs(10);
/// How long the two jobs may take to find each other.
const CONNECT_TIME: Duration = Duration::from_secs(100);

/// The context in which the processes of both jobs talk.
const CONTEXT: u32 = 1 << 31 | 5;
/// The context of a world of the two with the connection.
const PAIR_CONTEXT: u32 = 1 << 31 | 6;
/// In that world: the process with the connection, its neighbour, the process on the other host.
const HUB: usize = 0;
const NEIGHBOUR: usize = 1;
const FAR: usize = 2;

const PING: Tag = Tag(1);
const PONG: Tag = Tag(2);
const LARGE: Tag = Tag(3);
const ANYBODY: Tag = Tag(4);
const GO_ON: Tag = Tag(5);
const NEVER: Tag = Tag(6);
const SMALL: Tag = Tag(7);

const ROUNDS: u64 = 300;
const LARGE_VALUES: usize = 1 << 18;
/// Messages from each side to the wildcard receive, and sleeps meanwhile, at least.
const ANYBODY_ROUNDS: u64 = 10;
/// Small messages that are not received yet when their sender leaves.
const LAST_WORDS: u32 = 500;
/// Says that no more of them are wanted.
const NO_MORE: u64 = u64::MAX;

#[test]
fn two_jobs_on_one_host_talk_over_tcp() {
    if is_member() {
        return take_part();
    }
    let _watchdog = Watchdog::start(2 * RUN_MAX);
    let here = Ipv4Addr::LOCALHOST.into();
    let [_, far] = run_both("two_jobs_on_one_host_talk_over_tcp", here, [None, None]);
    assert!(text(&far).contains("signal 6"), "it aborts in the end: {}", text(&far));
}

#[test]
fn who_leaves_over_tcp_has_left() {
    if is_member() {
        return leave_or_be_left();
    }
    let _watchdog = Watchdog::start(2 * RUN_MAX);
    let here = Ipv4Addr::LOCALHOST.into();
    let [_, far] = run_both("who_leaves_over_tcp_has_left", here, [None, None]);
    assert!(far.status.success(), "{}", text(&far));
}

#[test]
fn two_network_namespaces_are_two_hosts() {
    if is_member() {
        return take_part();
    }
    let _watchdog = Watchdog::start(2 * RUN_MAX);
    match Namespaces::new() {
        Ok(two) => {
            let [near, far] = &two.names;
            let name = "two_network_namespaces_are_two_hosts";
            let [_, far] = run_both(name, NEAR, [Some(near), Some(far)]);
            assert!(text(&far).contains("signal 6"), "it aborts in the end: {}", text(&far));
        }
        // Past the capture of the test harness.
        Err(why) => {
            let name = "two_network_namespaces_are_two_hosts";
            writeln!(std::io::stdout(), "SKIPPED {name}: {why}").unwrap();
        }
    }
}

/// Whether this process is a member of a job: then it does its part.
fn is_member() -> bool {
    std::env::var_os("LANDECK_SLOT").is_some()
}

/// Runs the near and the far job, each in its network namespace if it has one.
fn run_both(test: &str, address: IpAddr, namespaces: [Option<&str>; 2]) -> [Output; 2] {
    let trail = Trail::new();
    let meeting = Meeting::new(test);
    let secret = Token::random().unwrap().to_secret_text();
    let jobs = [("near", "2", namespaces[0]), ("far", "1", namespaces[1])].map(
        |(side, processes, namespace)| {
            let mut command = in_namespace(namespace, env!("CARGO_BIN_EXE_landeck"));
            command.args(["run", "-n", processes]).arg(std::env::current_exe().unwrap());
            command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
            command.env("LANDECK_TEST_SIDE", side).env("LANDECK_TEST_SECRET", &secret);
            command.env("LANDECK_TEST_LISTEN", address.to_string());
            command.env("LANDECK_TEST_MEETING", &meeting.0);
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            trail.spawn(&mut command)
        },
    );
    let [near, far] = jobs.map(|job| trail.finish(job, RUN_MAX));
    assert!(near.status.success(), "near {}\nfar {}", text(&near), text(&far));
    trail.assert_gone(GONE_WITHIN);
    [near, far]
}

fn in_namespace(namespace: Option<&str>, program: &str) -> Command {
    let Some(namespace) = namespace else { return Command::new(program) };
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace, program]);
    command
}

fn text(ended: &Output) -> String {
    format!(
        "{:?}\n{}\n{}",
        ended.status,
        String::from_utf8_lossy(&ended.stdout),
        String::from_utf8_lossy(&ended.stderr)
    )
}

/// The part of one process.
fn take_part() {
    let job = Job::join().unwrap();
    let side = std::env::var("LANDECK_TEST_SIDE").unwrap();
    match (side.as_str(), job.slot()) {
        ("near", 0) => hub(&job),
        ("near", _) => neighbour(&job),
        _ => far(&job),
    }
    job.leave().unwrap();
}

/// The part of one process where the far one leaves.
fn leave_or_be_left() {
    let job = Job::join().unwrap();
    let side = std::env::var("LANDECK_TEST_SIDE").unwrap();
    match (side.as_str(), job.slot()) {
        ("near", 0) => be_left(&job),
        ("near", _) => neighbour(&job),
        _ => say_much_and_leave(&job),
    }
    job.leave().unwrap();
}

/// The far process leaves: all its messages arrive, whichever is received first, and it counts as left, not as dead.
fn be_left(job: &Job) {
    let (world, far) = listen(job);
    let pair = job.world_of(PAIR_CONTEXT, &[Peer(0), far]).unwrap();
    let (mut large, mut never) = (vec![0u32; LARGE_VALUES], [0u32]);
    let has_left = |lost: Error, in_pair: bool| {
        let ErrorKind::PeerFailed { rank, how, .. } = lost.kind else { panic!("{lost}") };
        assert_eq!((rank, &how[..]), (Some(if in_pair { 1 } else { FAR }), "has left the job"));
    };
    let told = world.scope(|scope| {
        // A receive that waits while it leaves.
        let waits = scope.receive_into(&mut never, FAR, NEVER)?;
        world.receive_into(&mut large, FAR, LARGE)?;
        Ok(waits.wait().unwrap_err())
    });
    has_left(told.unwrap(), false);
    assert!(large.iter().zip(0..).all(|(value, place)| *value == place));
    has_left(world.send(&[1u64], FAR, PING).unwrap_err(), false);
    has_left(world.receive::<u32>(FAR, NEVER).unwrap_err(), false);
    for number in 0..LAST_WORDS {
        assert_eq!(world.receive::<u32>(FAR, SMALL).unwrap().0, number);
    }
    has_left(world.receive::<u32>(FAR, SMALL).unwrap_err(), false);
    has_left(pair.receive::<u32>(Any, SMALL).unwrap_err(), true); // nobody else could send
    assert_eq!(job.acknowledge_failures().unwrap(), [] as [usize; 0], "nobody has died");
    world.send(&[1u64], NEIGHBOUR, GO_ON).unwrap();
    let (value, status) = world.receive::<u64>(Any, ANYBODY).unwrap();
    assert_eq!((value, status.rank()), (1, NEIGHBOUR));
    world.send(&[NO_MORE], NEIGHBOUR, GO_ON).unwrap();
}

/// The process on the other host sends much that is not received yet when it leaves.
fn say_much_and_leave(job: &Job) {
    let (world, _) = connect(job);
    for number in 0..LAST_WORDS {
        world.send(&[number], HUB, SMALL).unwrap();
    }
    let large: Vec<u32> = (0..LARGE_VALUES as u32).collect();
    world.send(&large, HUB, LARGE).unwrap();
}

/// Serves as the process with both a neighbour and a connection.
fn hub(job: &Job) {
    let (world, far) = listen(job);

    assert_eq!(wake_threads(), 0, "nobody has slept yet");
    for round in 0..ROUNDS {
        let (value, status) = world.receive::<u64>(FAR, PING).unwrap();
        assert_eq!((value, status.rank()), (round, FAR));
        world.send(&[value + 1], FAR, PONG).unwrap();
    }
    let mut large = vec![0u32; LARGE_VALUES];
    world.receive_into(&mut large, FAR, LARGE).unwrap();
    assert!(large.iter().zip(0..).all(|(value, place)| *value == place));
    world.send(&large, FAR, LARGE).unwrap();
    make_groups(&job.world_of(PAIR_CONTEXT, &[Peer(0), far]).unwrap());

    receive_from_anybody(job, &world);
    lose_the_far_one(job, &world);
}

/// Groups across hosts have no board: what they do together goes by messages.
fn make_groups(world: &World) {
    for round in 0..20u64 {
        let group = world.split(Some(0), -(world.rank() as i64)).unwrap().unwrap();
        assert_eq!(group.rank(), 1 - world.rank());
        assert_eq!(group.all_reduce(round + group.rank() as u64, Sum).unwrap(), 2 * round + 1);
        assert_eq!(group.agree(group.rank() as u32 | 6).unwrap(), 6);
        assert_eq!(group.clusters().unwrap().clusters(), [[0], [1]], "two hosts");
        assert_eq!(group.shrink().unwrap().size(), 2);
        let alone = group.split(Some(group.rank() as u32), 0).unwrap().unwrap();
        assert_eq!(alone.agree(round as u32).unwrap(), round as u32, "one host has its board");
    }
}

/// Each message is sent only when the one before was received, and after a while: the receiver
/// sleeps, and is woken by shared memory and by the socket in turn.
fn receive_from_anybody(job: &Job, world: &World) {
    let sleeps_before = job.counters().sleeps;
    let slept = || job.counters().sleeps - sleeps_before;
    // Where others compute, what is waited for may be there before it sleeps.
    for round in 0.. {
        if round >= 2 * ANYBODY_ROUNDS && slept() >= ANYBODY_ROUNDS {
            break;
        }
        let sender = if round % 2 == 0 { NEIGHBOUR } else { FAR };
        world.send(&[round], sender, GO_ON).unwrap();
        let (value, status) = world.receive::<u64>(Any, ANYBODY).unwrap();
        assert_eq!((value, status.rank()), (round, sender));
    }
    world.send(&[NO_MORE], FAR, GO_ON).unwrap();
    assert_eq!(wake_threads(), 1, "one thread watches the sockets of a process");
}

/// The other host's process dies: a process that waits for it is told, once, and goes on without it.
fn lose_the_far_one(job: &Job, world: &World) {
    world.send(&[0u64], FAR, NEVER).unwrap();
    let lost = world.receive::<u64>(Any, ANYBODY).unwrap_err();
    let ErrorKind::PeerFailed { rank: Some(FAR), how, .. } = lost.kind else { panic!("{lost}") };
    assert_eq!(how, "ended without leaving the job", "it has not left");
    let lost = world.receive::<u64>(FAR, PING).unwrap_err();
    assert!(matches!(lost.kind, ErrorKind::PeerFailed { rank: Some(FAR), .. }), "{lost}");
    let lost = world.send(&[1u64], FAR, PING).unwrap_err();
    assert!(matches!(lost.kind, ErrorKind::PeerFailed { rank: Some(FAR), .. }), "{lost}");
    job.acknowledge_failures().unwrap();
    world.send(&[1u64], NEIGHBOUR, GO_ON).unwrap();
    let (value, status) = world.receive::<u64>(Any, ANYBODY).unwrap();
    assert_eq!((value, status.rank()), (1, NEIGHBOUR));
    world.send(&[NO_MORE], NEIGHBOUR, GO_ON).unwrap();
}

/// Shares memory with the hub and knows nothing of sockets.
fn neighbour(job: &Job) {
    let world = job.world_of(CONTEXT, &[Peer(0), Peer(1)]).unwrap();
    while answer_late(&world, HUB) {}
    assert_eq!(wake_threads(), 0, "a process without sockets needs no thread");
}

/// The near side of the connection: the world, and the far process.
fn listen(job: &Job) -> (World, Peer) {
    let far = job.first_far_peer();
    let mut network = Tcp::new(job.process(), secret(), move |_| Some(far)).unwrap();
    let address: IpAddr = std::env::var("LANDECK_TEST_LISTEN").unwrap().parse().unwrap();
    let address = network.listen((address, 0).into()).unwrap();
    network.expect(far, CONNECT_TIME).unwrap();
    let network = PlayedDaemon::new(network, job.segment(), &[far]);
    job.set_network(Box::new(network)).unwrap();
    Meeting::of_environment().publish(address);
    (job.world_of(CONTEXT, &[Peer(0), Peer(1), far]).unwrap(), far)
}

/// The far side: the world, and the hub.
fn connect(job: &Job) -> (World, Peer) {
    let hub = job.first_far_peer();
    let mut network = Tcp::new(job.process(), secret(), |_| None).unwrap();
    let address = Meeting::of_environment().find();
    network.connect(address, hub, CONNECT_TIME).unwrap();
    let network = PlayedDaemon::new(network, job.segment(), &[hub]);
    job.set_network(Box::new(network)).unwrap();
    (job.world_of(CONTEXT, &[hub, job.own_peer()]).unwrap(), hub)
}

/// The process on the other host.
fn far(job: &Job) {
    let (world, hub_peer) = connect(job);

    let start = Instant::now();
    for round in 0..ROUNDS {
        world.send(&[round], HUB, PING).unwrap();
        assert_eq!(world.receive::<u64>(HUB, PONG).unwrap().0, round + 1);
    }
    println!("{ROUNDS} rounds over TCP in {:?}", start.elapsed());
    let large: Vec<u32> = (0..LARGE_VALUES as u32).collect();
    world.send(&large, HUB, LARGE).unwrap();
    let mut back = vec![0u32; LARGE_VALUES];
    world.receive_into(&mut back, HUB, LARGE).unwrap();
    assert!(back == large);
    make_groups(&job.world_of(PAIR_CONTEXT, &[hub_peer, job.own_peer()]).unwrap());
    while answer_late(&world, HUB) {}
    world.receive::<u64>(HUB, NEVER).unwrap();
    thread::sleep(Duration::from_millis(50)); // the hub sleeps by then
    std::process::abort();
}

/// Waits for a word and gives it back when the other side should be asleep; false when it was the last.
fn answer_late(world: &World, to: usize) -> bool {
    let (value, _) = world.receive::<u64>(to, GO_ON).unwrap();
    if value == NO_MORE {
        return false;
    }
    thread::sleep(Duration::from_millis(20));
    world.send(&[value], to, ANYBODY).unwrap();
    true
}

fn secret() -> Token {
    std::env::var("LANDECK_TEST_SECRET").unwrap().parse().unwrap()
}

/// The threads of this process that watch sockets.
fn wake_threads() -> usize {
    let name = |task: &fs::DirEntry| fs::read_to_string(task.path().join("comm"));
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    tasks.filter(|task| name(task).is_ok_and(|name| name.trim_end() == "landeck-wake")).count()
}

/// A file in which the hub says where it listens.
struct Meeting(PathBuf);

impl Meeting {
    fn new(test: &str) -> Self {
        Self(std::env::temp_dir().join(format!("landeck-{test}-{}", std::process::id())))
    }

    fn of_environment() -> std::mem::ManuallyDrop<Self> {
        let path = std::env::var_os("LANDECK_TEST_MEETING").unwrap();
        std::mem::ManuallyDrop::new(Self(path.into()))
    }

    fn publish(&self, address: SocketAddr) {
        let unfinished = self.0.with_extension("unfinished");
        fs::write(&unfinished, address.to_string()).unwrap();
        fs::rename(&unfinished, &self.0).unwrap();
    }

    fn find(&self) -> SocketAddr {
        let deadline = Instant::now() + CONNECT_TIME;
        loop {
            if let Ok(text) = fs::read_to_string(&self.0) {
                return text.parse().unwrap();
            }
            assert!(Instant::now() < deadline, "the near job does not say where it listens");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Meeting {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

const NEAR: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 213, 7, 1));

/// Two network namespaces and the cable between them.
struct Namespaces {
    names: [String; 2],
}

impl Namespaces {
    /// Says what is missing where they cannot be made.
    fn new() -> Result<Self, String> {
        let own = std::process::id();
        let two = Self { names: ["near", "far"].map(|side| format!("landeck-{own}-{side}")) };
        for name in &two.names {
            ip(&["netns", "add", name])?;
        }
        let [near, far] = &two.names;
        ip(&["-n", near, "link", "add", "cable", "type", "veth", "peer", "cable", "netns", far])?;
        for (name, address) in [(near, "10.213.7.1/24"), (far, "10.213.7.2/24")] {
            ip(&["-n", name, "address", "add", address, "dev", "cable"])?;
            ip(&["-n", name, "link", "set", "cable", "up"])?;
            ip(&["-n", name, "link", "set", "lo", "up"])?;
        }
        Ok(two)
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in self.names.iter().filter(|name| Path::new("/run/netns").join(name).exists()) {
            let _ = ip(&["netns", "delete", name]);
        }
    }
}

/// Runs the `ip` command.
fn ip(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("ip")
        .args(arguments)
        .output()
        .map_err(|error| format!("the ip command cannot be run: {error}"))?;
    let wrong = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("ip {} (needs root): {}", arguments.join(" "), wrong.trim())),
    }
}
