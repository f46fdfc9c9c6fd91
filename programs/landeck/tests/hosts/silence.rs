//! Cables that are pulled, hosts that are stopped, and strangers that say nothing.

use std::collections::VecDeque;
use std::io::{Write, stdin};
use std::net::TcpStream;

use landeck::{Job, Tag};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::members::is_member;
use super::*;

/// Set in the process that connects and says nothing: where to.
const SILENT: &str = "LANDECK_TEST_SILENT";
/// How often it connects before anything else happens, and at most.
const STRANGERS: usize = 10_000;
const STRANGERS_MAX: usize = 2 * STRANGERS;

#[test]
fn a_short_cut_ends_nothing() {
    let Some(cluster) = Cluster::pair("a_short_cut_ends_nothing") else { return };
    // Much longer than the cut: to pull a cable and to put it back takes time of its own.
    let mut running = cluster.start_four(&["--host-timeout", "30"], UNTIL_GO);
    cluster.hosts.cut(1).unwrap();
    thread::sleep(Duration::from_secs(2));
    cluster.hosts.join(1).unwrap();
    assert!(running.goes_on(), "{:?}", running.err.text());
    (0..2).for_each(|host| drop(cluster.shell(host, "touch /tmp/go")));
    let ended = running.end();
    ended.assert(0, &[]);
    assert_eq!(ended.out.matches("end ").count(), 4, "{ended:?}");
    cluster.assert_nothing_left();
}

#[test]
fn a_long_cut_ends_the_job() {
    let Some(cluster) = Cluster::pair("a_long_cut_ends_the_job") else { return };
    let running = cluster.start_four(&[], "exec sleep 60");
    let cut = Instant::now();
    cluster.hosts.cut(1).unwrap();
    let silent = silence_of_n2(&running.end());
    assert!((3.0..30.0).contains(&silent), "{silent} s");
    let after = cut.elapsed();
    assert!(Duration::from_secs(3) < after && after < Duration::from_secs(50), "{after:?}");
    cluster.assert_nothing_left_on(0);
    // landeck-rsh needs no cable: its end is the end of the daemon there.
    cluster.assert_nothing_left_on(1);
}

/// The time for which n2 has not answered, in seconds, as the launcher says it.
fn silence_of_n2(ended: &Ended) -> f64 {
    let said = &ended.assert(137, &["Host n2 is lost: it has not answered for "]).err;
    let time = said.split("it has not answered for ").nth(1).unwrap();
    time.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn a_short_limit_is_kept() {
    let Some(cluster) = Cluster::pair("a_short_limit_is_kept") else { return };
    let running = cluster.start_four(&["--host-timeout", "0.5"], "exec sleep 60");
    let cut = Instant::now();
    cluster.hosts.cut(1).unwrap();
    let silent = silence_of_n2(&running.end());
    assert!((0.5..5.0).contains(&silent), "{silent} s");
    assert!(cut.elapsed() < Duration::from_secs(50), "{:?}", cut.elapsed());
    cluster.assert_nothing_left();
}

#[test]
fn a_stopped_host_is_not_lost() {
    let Some(cluster) = Cluster::pair("a_stopped_host_is_not_lost") else { return };
    let mut running = cluster.start_four(&["--host-timeout", "1"], UNTIL_GO);
    // Its daemon alone: its kernel goes on, and answers for it.
    let daemon = cluster.daemon(1);
    cluster.signal_pid(1, daemon, "STOP");
    thread::sleep(Duration::from_secs(3));
    assert!(running.goes_on(), "{:?}", running.err.text());
    cluster.signal_pid(1, daemon, "CONT");
    (0..2).for_each(|host| drop(cluster.shell(host, "touch /tmp/go")));
    let ended = running.end();
    ended.assert(0, &[]);
    assert_eq!(ended.out.matches("end ").count(), 4, "{ended:?}");
    cluster.assert_nothing_left();
}

/// Connects to a daemon again and again, and says nothing, until the daemon has ended.
fn say_nothing(address: &str) {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    let most = maximum.map_or(STRANGERS, |most| (most as usize / 2).min(STRANGERS));
    let mut kept = VecDeque::with_capacity(most);
    for number in 1..=STRANGERS_MAX {
        match TcpStream::connect(address) {
            Ok(stream) => kept.push_back(stream),
            Err(error) if number <= STRANGERS => panic!("{number}: {error}"),
            Err(_) => break,
        }
        if kept.len() > most {
            kept.pop_front();
        }
        if number == STRANGERS {
            println!("many of them.");
        }
    }
    stdin().read_to_end(&mut Vec::new()).unwrap();
}

/// A process that needs no lane before it is told, and then one to each other process.
fn open_lanes_when_told() {
    let job = Job::join().unwrap();
    let (world, size) = (job.world(), job.world().size());
    println!("ready");
    stdin().read_to_end(&mut Vec::new()).unwrap();
    for other in (0..size).filter(|other| *other != world.rank()) {
        let mut got = [0];
        let rank = [world.rank()];
        world.send_receive(&rank, (other, Tag(1)), &mut got, (other, Tag(1))).unwrap();
        assert_eq!(got, [other]);
    }
    println!("whole");
    job.leave().unwrap();
}

#[test]
fn silent_strangers_keep_neither_lanes_nor_trunks_out() {
    let test = "silence::silent_strangers_keep_neither_lanes_nor_trunks_out";
    if is_member() {
        return open_lanes_when_told();
    }
    if let Ok(address) = std::env::var(SILENT) {
        return say_nothing(&address);
    }
    let Some(cluster) = Cluster::pair(test) else { return };
    let options = ["--port-range", "40000-40000", "--stdin", "all"];
    let mut running = start(cluster.four_members(test, &options).stdin(Stdio::piped()));
    running.out.wait_for("four processes", |text| text.matches("ready\n").count() == 4);
    let trunk = cluster.shell(1, "ss -Htn state established dst 10.77.1.1");
    let words: Vec<&str> = trunk.split_whitespace().collect();
    assert_eq!(trunk.lines().count(), 1, "{trunk}");
    let own = words.iter().find(|word| word.starts_with("10.77.1.2:")).unwrap();
    let mut strangers = cluster.hosts.command(1, std::env::current_exe().unwrap());
    strangers.args([test, "--exact", "--nocapture"]).env(SILENT, "10.77.1.1:40000");
    let mut strangers = start(strangers.stdin(Stdio::piped()));
    strangers.out.wait_for("strangers", |text| text.contains("many of them."));
    let broken = cluster.shell(1, &format!("ss -K -Htn src {own}"));
    assert_eq!(broken.lines().count(), 1, "{broken}");
    running.stdin.take().unwrap().flush().unwrap();
    let ended = running.end();
    ended.assert(0, &[]).within(Duration::from_secs(30));
    assert_eq!(ended.out.matches("whole\n").count(), 4, "{ended:?}");
    drop(strangers.stdin.take());
    strangers.end().assert(0, &[]);
    cluster.assert_nothing_left();
}
