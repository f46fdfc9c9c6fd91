//! Connections that carry nothing, while their hosts hear each other: a firewall has forgotten them, an address was
//! replaced, long packets are swallowed. The job goes on over others. A process that does not read is no such thing.
//!
//! `LANDECK_SOAK=1` makes 200 silent deaths of lanes and connections to relays.

use landeck_testing::Random;

use super::members::is_member;
use super::resuming::{SEED, talk_until_told};
use super::suspicions::{last_round, until_told};
use super::*;

/// The silent deaths for each path, and in soak.
const DEATHS: usize = 2;
const DEATHS_SOAK: usize = 100;
/// A job may not stand still for longer, behind any of them: many times the second after which a connection is given up.
const STANDS_STILL_MAX: Duration = Duration::from_secs(60);

/// The two ports of a connection, of the first host and of the second one.
type Ports = (u16, u16);

impl Cluster {
    /// Starts two processes that talk over a path, on two hosts.
    fn start_talk(&self, test: &str, options: &[&str]) -> Running {
        let mut command = self.members(test, "n1:1,n2:1", &[options, &["--stdin", "all"]].concat());
        command.env(SEED, landeck_testing::seed().to_string()).stdin(Stdio::piped());
        let running = start(&mut command);
        running.out.wait_for("a first round", |text| last_round(text) > 0);
        running
    }

    /// The connections of the job's processes to the other host, or to its relay; with this path, those of the daemons.
    pub(super) fn connections(&self, path: &str) -> Vec<Ports> {
        let owner = if path == "daemons" { "\"landeckd\"" } else { "\"hosts-" };
        let mut all = Vec::new();
        for host in 0..2 {
            let listed = self.shell(host, "ss -Htnp state established");
            for line in listed.lines().filter(|line| line.contains(owner)) {
                let ports: Vec<u16> = line
                    .split_whitespace()
                    .filter_map(|word| word.rsplit_once(':')?.1.parse().ok())
                    .collect();
                let [own, far] = ports[..] else { panic!("{line}") };
                all.push(if host == 0 { (own, far) } else { (far, own) });
            }
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Lets rules about packets be asked before the table of the host's own addresses.
    pub(super) fn let_rules_come_first(&self) {
        for host in 0..2 {
            self.shell(host, "ip rule add pref 100 lookup local && ip rule del pref 0");
        }
    }

    /// Swallows all packets of these connections where they come in. What was swallowed before is forgotten: its connections
    /// are closed, and others may have their ports by now.
    pub(super) fn swallow(&self, connections: &[Ports]) {
        for host in 0..2 {
            let mut script = "while ip rule del pref 1 2>/dev/null; do :; done\n".to_owned();
            for (first, second) in connections {
                let (from, to) = if host == 0 { (second, first) } else { (first, second) };
                script += &format!(
                    "ip rule add pref 1 iif eth0 ipproto tcp sport {from} dport {to} blackhole\n"
                );
            }
            self.shell(host, &script);
        }
    }
}

/// Waits until a job has made two more rounds, the second of which has begun now or later. Returns how long that took.
fn wait_for_rounds(running: &mut Running, what: &str) -> Duration {
    let (before, began) = (last_round(&running.out.text()), Instant::now());
    while last_round(&running.out.text()) < before + 2 {
        let goes_on = running.goes_on() && began.elapsed() < STANDS_STILL_MAX;
        assert!(goes_on, "no {what}: {:?} {:?}", began.elapsed(), running.err.text());
        thread::sleep(Duration::from_millis(20));
    }
    began.elapsed()
}

/// Ends a job of two processes that talk, and checks that both have everything.
fn end_talk(cluster: &Cluster, running: Running) -> Ended {
    let ended = running.end();
    ended.assert(0, &[]);
    assert_eq!(ended.out.matches("whole: ").count(), 2, "{ended:?}");
    cluster.assert_nothing_left();
    ended
}

/// Has connections of a job die in silence, one after the other or all at once.
fn die_in_silence(test: &str, path: &str) {
    if is_member() {
        return talk_until_told();
    }
    let Some(cluster) = Cluster::pair(test) else { return };
    cluster.let_rules_come_first();
    let mut running = cluster.start_talk(test, &["--path", path, "--host-timeout", "1"]);
    let mut random = Random::new(landeck_testing::seed());
    let (mut deaths, mut longest) = (0, Duration::ZERO);
    while deaths < if is_soak() { DEATHS_SOAK } else { DEATHS } {
        let mut all = cluster.connections(path);
        assert!(!all.is_empty(), "{:?}", running.err.text());
        if random.once_in(2) {
            all = vec![all[random.below(all.len() as u64) as usize]];
        }
        cluster.swallow(&all);
        deaths += all.len();
        longest = longest.max(wait_for_rounds(&mut running, "progress behind a silent death"));
    }
    println!("{deaths} silent deaths over {path}: the job stood still for {longest:?} at most");
    let ended = end_talk(&cluster, running);
    assert!(!ended.err.contains("long ones seem to be lost") || deaths > 2, "{ended:?}");
}

#[test]
fn a_lane_that_dies_in_silence_is_followed_by_another_one() {
    let test = "silent_connections::a_lane_that_dies_in_silence_is_followed_by_another_one";
    die_in_silence(test, "lane");
}

#[test]
fn a_connection_to_a_relay_that_dies_in_silence_is_followed_by_another_one() {
    let test = "silent_connections::a_connection_to_a_relay_that_dies_in_silence_is_followed_by_another_one";
    die_in_silence(test, "relay");
}

#[test]
fn a_tunnel_that_dies_in_silence_is_followed_by_another_one() {
    let test = "silent_connections::a_tunnel_that_dies_in_silence_is_followed_by_another_one";
    die_in_silence(test, "daemons");
}

#[test]
fn a_host_whose_address_is_replaced_goes_on() {
    let test = "silent_connections::a_host_whose_address_is_replaced_goes_on";
    if is_member() {
        return talk_until_told();
    }
    for path in ["lane", "relay", "daemons"] {
        let Some(cluster) = Cluster::pair(test) else { return };
        let mut running = cluster.start_talk(test, &["--path", path]);
        cluster.shell(
            1,
            "ip address del 10.77.1.2/24 dev eth0 && ip address add 10.77.1.77/24 dev eth0
             ip route add default via 10.77.1.254",
        );
        let took = wait_for_rounds(&mut running, "progress behind a change of address");
        println!("{path}: {took:?}");
        end_talk(&cluster, running);
    }
}

/// A job over a network that swallows long packets, from its beginning or in its midst.
fn go_through_a_hole(test: &str, path: &str, to: &[usize], is_first: bool) {
    let Some(cluster) = Cluster::pair(test) else { return };
    for host in 0..2 {
        cluster.shell(host, "ip link set eth0 gso_max_segs 1");
    }
    let make_hole =
        || to.iter().for_each(|host| cluster.hosts.swallow_longer(*host, 1_280).unwrap());
    if is_first {
        make_hole();
    }
    let mut running = cluster.start_talk(test, &["--path", path]);
    let started = running.began.elapsed();
    if !is_first {
        make_hole();
    }
    let took = wait_for_rounds(&mut running, "progress through a hole");
    println!("{path} to {to:?}: began after {started:?}, went on after {took:?}");
    let ended = end_talk(&cluster, running);
    assert!(ended.err.contains("long ones seem to be lost"), "{ended:?}");
}

#[test]
fn long_packets_that_vanish_from_the_beginning_are_replaced_by_short_ones() {
    let test = "silent_connections::long_packets_that_vanish_from_the_beginning_are_replaced_by_short_ones";
    if is_member() {
        return talk_until_told();
    }
    go_through_a_hole(test, "lane", &[0, 1], true);
    if is_soak() {
        go_through_a_hole(test, "relay", &[0, 1], true);
        go_through_a_hole(test, "lane", &[0], true);
        go_through_a_hole(test, "lane", &[1], true);
    }
}

#[test]
fn long_packets_that_vanish_in_mid_run_are_replaced_by_short_ones() {
    let test = "silent_connections::long_packets_that_vanish_in_mid_run_are_replaced_by_short_ones";
    if is_member() {
        return talk_until_told();
    }
    go_through_a_hole(test, "lane", &[1], false);
    go_through_a_hole(test, "relay", &[0], false);
    if is_soak() {
        go_through_a_hole(test, "lane", &[0], false);
        go_through_a_hole(test, "relay", &[1], false);
        go_through_a_hole(test, "lane", &[0, 1], false);
    }
}

/// Not even packets of the shortest segments pass, but heartbeats and the opening of connections do.
#[test]
fn a_way_that_carries_no_data_ends_the_job_and_names_both_ends() {
    let test = "silent_connections::a_way_that_carries_no_data_ends_the_job_and_names_both_ends";
    if is_member() {
        return until_told(&[20_000], 1);
    }
    let Some(cluster) = Cluster::pair(test) else { return };
    (0..2).for_each(|host| drop(cluster.shell(host, "ip link set eth0 gso_max_segs 1")));
    let mut command = cluster.four_members(test, &["--host-timeout", "1"]);
    let running = start(command.stdin(Stdio::piped()));
    running.out.wait_for("a first round", |text| last_round(text) > 0);
    (0..2).for_each(|host| cluster.hosts.swallow_longer(host, 700).unwrap());
    let ended = running.end();
    println!("{:?}: {}", ended.took, ended.err);
    let said =
        ["both processes and hosts live: it has carried nothing for", "as the ones before it"];
    ended.assert(137, &said);
    cluster.assert_nothing_left();
}

#[test]
fn a_process_that_does_not_read_keeps_its_connections() {
    let test = "silent_connections::a_process_that_does_not_read_keeps_its_connections";
    if is_member() {
        return talk_until_told();
    }
    let Some(cluster) = Cluster::pair(test) else { return };
    let mut running = cluster.start_talk(test, &["--host-timeout", "1"]);
    let before = cluster.connections("lane");
    let member =
        cluster.processes(1).into_iter().find(|one| one.name.starts_with("hosts-")).unwrap();
    cluster.signal_pid(1, member.pid, "STOP");
    thread::sleep(Duration::from_secs(4));
    cluster.signal_pid(1, member.pid, "CONT");
    wait_for_rounds(&mut running, "progress behind a stop");
    assert_eq!(cluster.connections("lane"), before);
    end_talk(&cluster, running);
}

#[test]
fn why_names_a_network_that_carries_nothing() {
    let test = "silent_connections::why_names_a_network_that_carries_nothing";
    if is_member() {
        return talk_until_told();
    }
    let Some(cluster) = Cluster::pair(test) else { return };
    cluster.let_rules_come_first();
    // Its connections are given up after three quarters of that.
    let mut running = cluster.start_talk(test, &["--host-timeout", "60"]);
    cluster.swallow(&cluster.connections("lane"));
    let cause = [
        "The network carries nothing: of ",
        " rank 0 on n1",
        " rank 1 on n2",
        "the network carries nothing there",
    ];
    wait_until("the cause is named", || {
        let told = run(&mut cluster.landeck(&["why"]));
        cause.iter().all(|words| told.out.contains(words))
    });
    (0..2).for_each(|host| {
        cluster.shell(host, "while ip rule del pref 1 2>/dev/null; do :; done");
    });
    wait_for_rounds(&mut running, "progress when the packets pass again");
    end_talk(&cluster, running);
}
