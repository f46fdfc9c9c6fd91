//! Connections of living processes that are closed, reset or swallowed by the network. A suspicion is no death: no call
//! fails by it, and there is another connection.

use std::io::stdin;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use landeck::{Error, ErrorKind, Job, Sum, Tag};
use landeck_testing::Random;
use rustix::net::{
    AddressFamily, Shutdown, connect_unspec, getpeername, getsockname, shutdown, sockopt,
};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

use super::members::is_member;
use super::*;

const RANKS: usize = 4;
/// The variable for the fate of a job's connections, and its seed.
const KIND: &str = "LANDECK_TEST_KIND";
const SEED: &str = "LANDECK_TEST_SEED";
/// The most rounds before a process breaks its connections.
const ROUNDS_MAX: u64 = 60;
/// How often each kind comes, and in soak.
const BREAKS: u64 = 2;
const BREAKS_SOAK: u64 = 70;
const HOLES: u64 = 3;
const HOLES_SOAK: u64 = 60;

/// The connections of this process to processes of other hosts.
pub(super) fn lanes() -> Vec<OwnedFd> {
    let own = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd").unwrap().flatten() {
        let number = entry.file_name().to_str().and_then(|text| text.parse().ok());
        let copy = number.and_then(|n| pidfd_getfd(&own, n, PidfdGetfdFlags::empty()).ok());
        found.extend(copy.filter(|copy| {
            let family = getpeername(copy).ok().flatten().map(|peer| peer.address_family());
            family.is_some_and(|one| one == AddressFamily::INET || one == AddressFamily::INET6)
        }));
    }
    found
}

/// Breaks one or all connections of this process in the way that its job is to try. Returns whether there were any.
fn break_lanes(kind: &str, random: &mut Random) -> bool {
    let mut lanes = lanes();
    let count = lanes.len();
    if random.once_in(2) && count > 0 {
        lanes.swap(0, random.below(count as u64) as usize);
        lanes.truncate(1);
    }
    for lane in lanes {
        match kind {
            "close" if random.once_in(2) => shutdown(&lane, Shutdown::Write).unwrap(),
            "close" => shutdown(&lane, Shutdown::Both).unwrap(),
            "reset" if random.once_in(2) => connect_unspec(&lane).unwrap(),
            // The kernel's memory of the connection is lost: the other side hears of it when it sends.
            "reset" => {
                sockopt::set_socket_linger(&lane, Some(Duration::ZERO)).unwrap();
                connect_unspec(&lane).unwrap();
            }
            other => panic!("{other}"),
        }
    }
    count > 0
}

/// The lengths of messages, in turn.
const LENGTHS: &[usize] = &[1, 1, 8, 1_000, 1, 20_000, 1, 2, 3];
/// Those where long ones would need minutes.
const LENGTHS_SHORT: &[usize] = &[1, 8, 400];

/// Gives numbered values of many lengths to all others and takes theirs.
fn exchange(job: &Job, round: u64) -> Result<(), Error> {
    exchange_of(job, round, LENGTHS[round as usize % LENGTHS.len()])
}

/// Gives so many numbered values to all others and takes theirs.
fn exchange_of(job: &Job, round: u64, length: usize) -> Result<(), Error> {
    let world = job.world();
    let rank = world.rank();
    let others = (1..RANKS).map(|step| (rank + step) % RANKS);
    let sent = vec![round << 8 | rank as u64; length];
    for to in others {
        let from = (2 * rank + RANKS - to) % RANKS;
        let mut got = vec![0; length];
        world.send_receive(&sent, (to, Tag(3)), &mut got, (from, Tag(3)))?;
        assert!(got.iter().all(|value| *value == round << 8 | from as u64), "round {round}");
    }
    Ok(())
}

/// A process whose connections, or those of another, are broken at some time.
fn to_the_end() {
    let job = Job::join().unwrap();
    let kind = std::env::var(KIND).unwrap();
    let mut random = Random::new(std::env::var(SEED).unwrap().parse().unwrap());
    let (breaker, when) = (random.below(RANKS as u64), random.below(ROUNDS_MAX));
    let mut is_broken = false;
    for round in 0..2 * ROUNDS_MAX {
        if job.world().rank() as u64 == breaker && round >= when && !is_broken {
            is_broken = break_lanes(&kind, &mut random);
            println!("{}", if is_broken { "hit" } else { "no lane yet" });
        }
        exchange(&job, round).unwrap();
    }
    println!("whole");
    job.leave().unwrap();
}

#[test]
fn a_broken_connection_fails_no_call_and_is_followed_by_another_one() {
    let test = "suspicions::a_broken_connection_fails_no_call_and_is_followed_by_another_one";
    if is_member() {
        return to_the_end();
    }
    let Some(cluster) = Cluster::pair(test) else { return };
    let seed = landeck_testing::seed();
    for kind in ["close", "reset"] {
        for number in 0..if is_soak() { BREAKS_SOAK } else { BREAKS } {
            let seed = seed.wrapping_add(number << 32);
            let mut command = cluster.four_members(test, &[]);
            let ended = run(command.env(KIND, kind).env(SEED, seed.to_string()));
            ended.assert(0, &[]);
            assert_eq!(ended.out.matches("hit\n").count(), 1, "{ended:?}");
            assert_eq!(ended.out.matches("whole\n").count(), RANKS, "{ended:?}");
        }
    }
    cluster.assert_nothing_left();
}

/// A process of a job that goes on until its input ends. Its messages have these lengths, and it tells of
/// every round whose number `told` divides.
pub(super) fn until_told(lengths: &[usize], told: u64) {
    let job = Job::join().unwrap();
    let rank = job.world().rank();
    static IS_OVER: AtomicBool = AtomicBool::new(false);
    if rank == 0 {
        thread::spawn(|| {
            let _ = stdin().read_to_end(&mut Vec::new());
            IS_OVER.store(true, Ordering::Relaxed);
        });
    }
    for round in 0.. {
        exchange_of(&job, round, lengths[round as usize % lengths.len()]).unwrap();
        if round == 0 {
            for lane in lanes() {
                let port = |address: rustix::net::SocketAddrAny| {
                    std::net::SocketAddr::try_from(address).unwrap().port()
                };
                let (own, far) =
                    (getsockname(&lane).unwrap(), getpeername(&lane).unwrap().unwrap());
                println!("lane {} . {}", port(own), port(far));
            }
            println!("connected");
        }
        if round % told == 0 && rank == RANKS - 1 {
            println!("round {round}.");
        }
        let sum = job.world().all_reduce(round << 8 | rank as u64, Sum).unwrap();
        assert_eq!(sum, (0..RANKS as u64).map(|rank| round << 8 | rank).sum::<u64>());
        let mut is_over = [u8::from(IS_OVER.load(Ordering::Relaxed))];
        job.world().broadcast(&mut is_over[..], 0).unwrap();
        if is_over[0] != 0 {
            break;
        }
        thread::sleep(Duration::from_millis(1));
    }
    println!("whole");
    job.leave().unwrap();
}

/// The last round that a job has told of.
pub(super) fn last_round(text: &str) -> u64 {
    let told = text.lines().rev().find_map(|line| line.split_once("round ")?.1.strip_suffix('.'));
    told.map_or(0, |number| number.parse().unwrap())
}

/// The packets that a hole swallowed while it was there.
fn swallow(cluster: &Cluster, rule: &str, time: Duration) -> u64 {
    let table = format!(
        "add table inet hole
         add chain inet hole in {{ type filter hook input priority 0; }}
         add chain inet hole out {{ type filter hook output priority 0; }}
         add rule inet hole in iifname eth0 {rule} counter drop
         add rule inet hole out oifname eth0 {rule} counter drop"
    );
    cluster.shell(1, &format!("nft -f - <<END\n{table}\nEND"));
    thread::sleep(time);
    let counted = cluster.shell(1, "nft list table inet hole; nft delete table inet hole");
    let packets = counted.split("packets ").skip(1).map(|rest| rest.split(' ').next().unwrap());
    packets.map(|number| number.parse::<u64>().unwrap()).sum()
}

#[test]
fn holes_of_the_network_are_survived() {
    let test = "suspicions::holes_of_the_network_are_survived";
    if is_member() {
        return until_told(LENGTHS, 16);
    }
    if Command::new("nft").arg("--version").output().is_err() {
        println!("SKIPPED {test}: there is no program nft (package nftables)");
        return;
    }
    let Some(cluster) = Cluster::pair(test) else { return };
    let mut random = Random::new(landeck_testing::seed());
    let mut command = cluster.four_members(test, &[]);
    let mut running = start(command.stdin(Stdio::piped()));
    running.out.wait_for("four lanes", |text| text.matches("connected\n").count() == RANKS);
    let text = running.out.text();
    let lanes: Vec<&str> =
        text.lines().filter_map(|line| Some(line.split_once("lane ")?.1)).collect();
    assert_eq!(lanes.len(), 2 * RANKS, "{text}");
    let lanes = format!("tcp sport . tcp dport {{ {} }}", lanes.join(", "));
    let mut hits = [0; 3];
    for number in 0..if is_soak() { HOLES_SOAK } else { HOLES } {
        let kind = (number % 3) as usize;
        // The hosts' timeout is three seconds. Lanes alone may be silent for longer.
        let (rule, most) = [(&lanes[..], 4_000), ("meta l4proto tcp", 2_000), ("", 1_500)][kind];
        let least = if kind == 0 && !is_soak() { 3_500 } else { 200 };
        let time = Duration::from_millis(least + random.below(most - least));
        let swallowed = swallow(&cluster, rule, time);
        assert!(swallowed > 0, "hole {number}");
        let before = last_round(&running.out.text());
        // Only the second new line is of a round that has begun behind the hole.
        running.out.wait_for("progress", |text| last_round(text) >= before + 32);
        assert!(running.goes_on(), "{:?}", running.err.text());
        hits[kind] += 1;
    }
    println!("holes: {} of lanes, {} of TCP, {} of all", hits[0], hits[1], hits[2]);
    let ended = running.end();
    ended.assert(0, &[]);
    assert_eq!(ended.out.matches("whole\n").count(), RANKS, "{ended:?}");
    cluster.assert_nothing_left();
}

/// Lanes and the trunk of two hosts are ended at once. All of them are opened again, whether the processes give and take or
/// sleep.
#[test]
fn lanes_that_break_with_their_trunk_are_opened_again() {
    let test = "suspicions::lanes_that_break_with_their_trunk_are_opened_again";
    if is_member() {
        return give_or_sleep();
    }
    if Command::new("ss").arg("-V").output().is_err() {
        println!("SKIPPED {test}: there is no program ss (package iproute2)");
        return;
    }
    let Some(cluster) = Cluster::pair(test) else { return };
    for kind in ["busy", "asleep"] {
        let mut command = cluster.four_members(test, &[]);
        let running = start(command.env(KIND, kind).stdin(Stdio::piped()));
        running.out.wait_for("lanes", |text| text.matches("connected\n").count() == RANKS);
        let other = start(cluster.hosts.command(1, "ss").args(["-K", "-Htn", "dst", "10.77.1.1"]));
        let ended = cluster.shell(0, "ss -K -Htn dst 10.77.1.2");
        assert!(other.end().out.lines().count() + ended.lines().count() >= 5, "{ended}");
        if kind == "busy" {
            let before = last_round(&running.out.text());
            running.out.wait_for("progress", |text| last_round(text) >= before + 32);
        }
        let ended = running.end();
        ended.assert(0, &[]);
        assert_eq!(ended.out.matches("whole\n").count(), RANKS, "{ended:?}");
    }
    cluster.assert_nothing_left();
}

/// A process that gives and takes, or one that sleeps until rank 0 is told and tells the others.
fn give_or_sleep() {
    if std::env::var(KIND).unwrap() == "busy" {
        return until_told(LENGTHS, 16);
    }
    let job = Job::join().unwrap();
    let world = job.world();
    exchange(&job, 0).unwrap();
    println!("connected");
    if world.rank() == 0 {
        stdin().read_to_end(&mut Vec::new()).unwrap();
        (1..RANKS).for_each(|to| world.send(&[7u8], to, Tag(9)).unwrap());
    } else {
        assert_eq!(world.receive::<u8>(0, Tag(9)).unwrap().0, 7);
    }
    exchange(&job, 1).unwrap();
    println!("whole");
    job.leave().unwrap();
}

/// Both hosts lose a part of the packets that come, at random.
fn lose(cluster: &Cluster, of_thousand: u32) {
    let table = format!(
        "add table inet loss
         add chain inet loss in {{ type filter hook input priority 0; }}
         add rule inet loss in iifname eth0 numgen random mod 1000 < {of_thousand} counter drop"
    );
    for host in 0..2 {
        cluster.shell(host, &format!("nft -f - <<END\n{table}\nEND"));
    }
}

/// The packets that both hosts have lost. They lose none any more.
fn lost(cluster: &Cluster) -> u64 {
    let counted =
        |host| cluster.shell(host, "nft list table inet loss; nft delete table inet loss");
    let each = (0..2).map(|host| {
        let text = counted(host);
        let number = text.split("packets ").nth(1).and_then(|rest| rest.split(' ').next());
        number.unwrap().parse::<u64>().unwrap()
    });
    each.sum()
}

/// The parts of 1,000 packets that are lost, and the rounds of each job meanwhile.
const LOSSES: &[(u32, u64)] = &[(1, 48), (10, 48), (50, 12), (200, 5)];
/// Those of soak, with short messages and with long ones.
const LOSSES_SOAK: &[(u32, u64)] = &[(1, 5_000), (10, 2_000), (50, 400), (100, 200), (200, 100)];
const LOSSES_LONG: &[(u32, u64)] = &[(1, 2_000), (10, 500), (50, 100)];

/// Numbered messages, sums and broadcasts arrive over lanes and relays, whatever part of the packets is lost.
#[test]
fn everything_arrives_over_a_network_that_loses_packets() {
    let test = "suspicions::everything_arrives_over_a_network_that_loses_packets";
    if is_member() {
        let is_long = std::env::var(KIND).unwrap() == "long";
        return until_told(if is_long { LENGTHS } else { LENGTHS_SHORT }, 1);
    }
    if Command::new("nft").arg("--version").output().is_err() {
        println!("SKIPPED {test}: there is no program nft (package nftables)");
        return;
    }
    let Some(cluster) = Cluster::pair(test) else { return };
    if !is_soak() {
        return go_on_at_losses(&cluster, test, "short", LOSSES);
    }
    go_on_at_losses(&cluster, test, "short", LOSSES_SOAK);
    go_on_at_losses(&cluster, test, "long", LOSSES_LONG);
}

/// Two jobs, one over lanes and one over relays, go on while the network loses this much.
fn go_on_at_losses(cluster: &Cluster, test: &str, kind: &str, losses: &[(u32, u64)]) {
    let mut jobs = ["lane", "relay"].map(|path| {
        // A host may seem silent for long when every fifth packet is lost.
        let options = ["--path", path, "--host-timeout", "30"];
        let mut command = cluster.four_members(test, &options);
        start(command.env(KIND, kind).stdin(Stdio::piped()))
    });
    for job in &jobs {
        job.out.wait_for("four", |text| text.matches("connected\n").count() == RANKS);
    }
    for &(of_thousand, rounds) in losses {
        lose(cluster, of_thousand);
        let begun = Instant::now();
        for job in &jobs {
            let first = last_round(&job.out.text());
            // Nobody knows how long all of them take: each has its own time.
            for round in first + 1..=first + rounds {
                job.out.wait_for("progress", |text| last_round(text) >= round);
            }
        }
        let lost = lost(cluster);
        println!("{kind}, {of_thousand} of 1,000 packets lost: {lost} in {:?}", begun.elapsed());
        assert!(lost > 0 || of_thousand < 50, "{of_thousand} of 1,000");
        for job in &mut jobs {
            assert!(job.goes_on(), "{:?}", job.err.text());
        }
    }
    for job in jobs {
        let ended = job.end();
        ended.assert(0, &[]);
        assert_eq!(ended.out.matches("whole\n").count(), RANKS, "{ended:?}");
    }
    cluster.assert_nothing_left();
}

/// New connections are swallowed on a host, and those of a pair are broken. The trunk lives, and so the hosts do. When
/// no further connection comes in time, the job ends and names both ends.
#[test]
fn a_pair_that_gets_no_further_connection_ends_its_job() {
    let test = "suspicions::a_pair_that_gets_no_further_connection_ends_its_job";
    if is_member() {
        return break_when_told();
    }
    if Command::new("nft").arg("--version").output().is_err() {
        println!("SKIPPED {test}: there is no program nft (package nftables)");
        return;
    }
    let Some(cluster) = Cluster::pair(test) else { return };
    let swallow = "nft -f - <<END
        add table inet hole
        add chain inet hole in { type filter hook input priority 0; }
        add chain inet hole out { type filter hook output priority 0; }
        add rule inet hole in tcp flags & (syn | ack) == syn drop
        add rule inet hole out tcp flags & (syn | ack) == syn drop\nEND";
    for path in ["lane", "relay"] {
        let options = ["--path", path, "--host-timeout", "1"];
        let mut command = cluster.members(test, "n1:1,n2:1", &options);
        let running = start(command.stdin(Stdio::piped()));
        running.out.wait_for("a pair", |text| text.matches("connected\n").count() == 2);
        cluster.shell(1, swallow);
        let ended = running.end(); // which ends its input
        cluster.shell(1, "nft delete table inet hole");
        assert!(ended.out.contains("broken\n"), "{ended:?}");
        let said = ["the connection of rank ", "rank 0", "rank 1", "both processes and hosts live"];
        ended.assert(137, &said);
        println!("{path}: {:?}, {}", ended.took, ended.err.lines().next().unwrap_or_default());
        cluster.assert_nothing_left();
    }
}

/// A process that exchanges messages for ever. Rank 0 breaks its connections when its input ends.
fn break_when_told() {
    let job = Job::join().unwrap();
    let world = job.world();
    let (own, other) = (world.rank(), 1 - world.rank());
    for round in 0u64.. {
        let mut got = [0u64];
        let (to, from) = ((other, Tag(3)), (other, Tag(3)));
        let exchanged = world.send_receive(&[round], to, &mut got, from);
        let is_right = matches!(exchanged, Ok(_) | Err(Error { kind: ErrorKind::Ended, .. }));
        assert!(is_right, "round {round}: {exchanged:?}");
        if exchanged.is_err() {
            return;
        }
        assert_eq!(got, [round]);
        if round == 0 {
            println!("connected");
            if own == 0 {
                thread::spawn(|| {
                    let _ = stdin().read_to_end(&mut Vec::new());
                    lanes().iter().for_each(|lane| shutdown(lane, Shutdown::Both).unwrap());
                    println!("broken");
                });
            }
        }
        thread::sleep(Duration::from_millis(1));
    }
}
