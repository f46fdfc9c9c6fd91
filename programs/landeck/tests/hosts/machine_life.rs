//! The life of a machine that stays: daemons, launchers and cables that fail at random times, hosts that come and go
//! again and again, a founder that is stopped, packets that vanish in one direction, stops at bad moments, two users.
//!
//! `LANDECK_SEED` repeats the steps of a random life. `LANDECK_SOAK=1` makes it longer, and `LANDECK_SOAK_SECONDS` sets its
//! length: 1800 is half an hour.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;

use landeck_testing::Random;
use rustix::net::{
    AddressFamily, RecvFlags, SocketAddrUnix, SocketType, connect, recv, socket, sockopt,
};

use super::machines::lab;
use super::*;

/// The length of a random life, and in soak.
const LIFE_SECONDS: u64 = 15;
const LIFE_SECONDS_SOAK: u64 = 120;
/// A life whose founder dies is shorter by this factor.
const SHORTER: u64 = 3;
const HOSTS: usize = 3;
/// Commands and jobs that go on at the same time.
const GOING_MAX: usize = 5;
/// Long faults last this much longer.
const LONG_FACTOR: u32 = 10;
/// A daemon that is killed more often within a minute stays away.
const KILLS_MAX: usize = 3;
const MINUTE: Duration = Duration::from_secs(61);
/// No command of a machine may take longer to end it: ten times what is promised for one without stopped hosts.
const STOPS_WITHIN: Duration = Duration::from_secs(50);
/// How often a host comes and goes, and in soak.
const ROUNDS: usize = 12;
const ROUNDS_SOAK: usize = 100;
/// The rounds before anything is measured.
const WARM_ROUNDS: usize = 5;
/// The growth of a daemon's memory that is none, in KiB: its log has a thousand lines, and each host that was there leaves a
/// few hundred bytes.
const GROWTH_KIB: u64 = 1_024;
/// Another user than that of the tests.
const OTHER_USER: &str = "65534";
/// Set in the process that calls sockets of another user: their names.
const SOCKETS: &str = "LANDECK_TEST_SOCKETS";

/// A command or job of a random life.
struct Going {
    line: String,
    running: Running,
    /// The processes of a job.
    processes: Option<usize>,
    /// Its launcher was killed.
    is_killed: bool,
}

/// A fault that ends at its time.
#[derive(Clone, Copy)]
enum Mend {
    /// A stopped process goes on.
    Continue(usize, u32),
    /// A cable is put in again.
    Join(usize),
}

/// A machine of three hosts to which something happens again and again.
struct Life<'a> {
    cluster: &'a Cluster,
    random: Random,
    began: Instant,
    going: Vec<Going>,
    mends: Vec<(Instant, Mend)>,
    kills: Vec<(usize, Instant)>,
    jobs: usize,
    counts: BTreeMap<&'static str, usize>,
}

impl<'a> Life<'a> {
    fn new(cluster: &'a Cluster) -> Self {
        Self {
            cluster,
            random: Random::new(landeck_testing::seed()),
            began: Instant::now(),
            going: Vec::new(),
            mends: Vec::new(),
            kills: Vec::new(),
            jobs: 0,
            counts: BTreeMap::new(),
        }
    }

    /// Lives for so many seconds.
    fn go_on(&mut self, seconds: u64) {
        while self.began.elapsed() < Duration::from_secs(seconds) {
            self.mend(false);
            self.reap();
            self.step();
        }
        println!("{:?}", self.counts);
    }

    /// Takes one step. It draws the same numbers whatever has happened before.
    fn step(&mut self) {
        let (kind, host) = (self.random.below(12), self.random.below(HOSTS as u64) as usize);
        let (number, time) = (self.random.bits(), self.random.below(1_500));
        let pause = Duration::from_millis(self.random.below(120));
        // In soak a fault may last longer than the lease of ten seconds.
        let factor = if self.random.once_in(16) && is_soak() { LONG_FACTOR } else { 1 };
        let (other, time) = (1 + number as usize % (HOSTS - 1), Duration::from_millis(time));
        let time = time * factor;
        let done = match kind {
            0 => self.kill_daemon(host),
            1 => self.stop_daemon(host, time),
            2 => self.cut(host, time),
            3 => self.kill_launcher(host),
            4..=6 => self.start_job(host, number),
            7 => self.command(host, "drains", &["vm", "drain", ["n2", "n3"][other - 1]]),
            8 => self.command(host, "resumes", &["vm", "resume", ["n2", "n3"][other - 1]]),
            9 => {
                let job = format!("j{}", self.jobs.saturating_sub(number as usize % 3));
                self.command(host, "ends a job", &["end", &job])
            }
            _ => {
                let asked = [&["ps"][..], &["why"], &["vm", "status"], &["vm", "log"]];
                self.command(host, "asks", asked[number as usize % asked.len()])
            }
        };
        if let Some(done) = done {
            *self.counts.entry(done).or_default() += 1;
            println!("{:?}: {kind} {done} on n{}", self.began.elapsed(), host + 1);
        }
        // The faults are the stimulus of the test, and their times are drawn.
        thread::sleep(pause);
    }

    fn kill_daemon(&mut self, host: usize) -> Option<&'static str> {
        self.kills.retain(|(_, at)| at.elapsed() < MINUTE);
        let is_often = self.kills.iter().filter(|(at, _)| *at == host).count() >= KILLS_MAX;
        let daemon = self.daemon_of(host).filter(|_| !is_often)?;
        self.signal(host, daemon, "KILL");
        self.kills.push((host, Instant::now()));
        Some("kills a daemon")
    }

    fn stop_daemon(&mut self, host: usize, time: Duration) -> Option<&'static str> {
        let daemon = self.daemon_of(host)?;
        self.signal(host, daemon, "STOP");
        self.mends.push((Instant::now() + time, Mend::Continue(host, daemon)));
        Some("stops a daemon")
    }

    fn cut(&mut self, host: usize, time: Duration) -> Option<&'static str> {
        self.cluster.hosts.cut(host).unwrap();
        self.mends.push((Instant::now() + time, Mend::Join(host)));
        Some("pulls a cable")
    }

    fn kill_launcher(&mut self, host: usize) -> Option<&'static str> {
        let all = self.cluster.processes(host);
        let is_its = |going: &&mut Going, line: &str| {
            going.processes.is_some() && line.contains(&format!("--name {} ", going.line))
        };
        for launcher in all.iter().filter(|process| process.name == "landeck") {
            if let Some(going) = self.going.iter_mut().find(|going| is_its(going, &launcher.line)) {
                going.is_killed = true;
                let pid = launcher.pid;
                self.signal(host, pid, "KILL");
                return Some("kills a launcher");
            }
        }
        None
    }

    fn start_job(&mut self, host: usize, number: u64) -> Option<&'static str> {
        if self.going.len() >= GOING_MAX {
            return None;
        }
        self.jobs += 1;
        let (name, processes) = (format!("j{}", self.jobs), 1 + number as usize % 4);
        let script = format!("sleep {}.{}; echo end", number >> 8 & 1, number >> 16 & 7);
        let notify = ["--on-failure", if number >> 24 & 1 == 0 { "notify" } else { "abort" }];
        let count = processes.to_string();
        let usual = ["run", "--name", &name, "--map-by", "node", "-n", &count];
        let line = [&usual[..], &notify, &["sh", "-c", &script]].concat();
        let running = start(&mut self.cluster.landeck_on(host, &line));
        self.going.push(Going {
            line: name,
            running,
            processes: Some(processes),
            is_killed: false,
        });
        Some("starts a job")
    }

    fn command(&mut self, host: usize, done: &'static str, words: &[&str]) -> Option<&'static str> {
        if self.going.len() >= GOING_MAX {
            return None;
        }
        let running = start(&mut self.cluster.landeck_on(host, words));
        let line = format!("landeck {} on n{}", words.join(" "), host + 1);
        self.going.push(Going { line, running, processes: None, is_killed: false });
        Some(done)
    }

    /// The daemon of a host, if there is one just now.
    fn daemon_of(&self, host: usize) -> Option<u32> {
        self.cluster.named(host, "landeckd").first().copied()
    }

    /// Sends a signal to a process that may have ended.
    fn signal(&self, host: usize, pid: u32, signal: &str) {
        self.cluster.shell(host, &format!("kill -s {signal} {pid} 2>/dev/null || true"));
    }

    /// Ends the faults whose time has come, or all of them.
    fn mend(&mut self, all: bool) {
        let now = Instant::now();
        let is_due = |(at, _): &mut (Instant, Mend)| all || *at <= now;
        for (_, mend) in self.mends.extract_if(.., is_due).collect::<Vec<_>>() {
            match mend {
                Mend::Continue(host, pid) => self.signal(host, pid, "CONT"),
                Mend::Join(host) => self.cluster.hosts.join(host).unwrap(),
            }
        }
    }

    /// Checks what has ended, and that nothing else takes too long.
    fn reap(&mut self) {
        for going in &mut self.going {
            let is_late = going.running.began.elapsed() > RUN_MAX;
            assert!(!is_late, "{} does not end: {}", going.line, going.running.err.text());
        }
        for going in self.going.extract_if(.., |going| !going.running.goes_on()).collect::<Vec<_>>()
        {
            going.check();
        }
    }

    /// Waits for the end of everything that goes on.
    fn end_all(&mut self) {
        self.going.drain(..).for_each(Going::check);
    }

    /// Waits until all hosts take part again, and each of them reaches the founder. Then jobs may come to all of them.
    fn wait_until_whole(&mut self) {
        self.mend(true);
        wait_until("all hosts are back", || {
            (0..HOSTS).all(|host| {
                let asked = run(&mut self.cluster.landeck_on(host, &["vm", "status", "--json"]));
                asked.status.success() && are_up(&asked.out)
            })
        });
        // One of these may drain a host.
        self.end_all();
        for host in ["n2", "n3"] {
            run(&mut self.cluster.landeck(&["vm", "resume", host])).assert(0, &[]);
        }
    }
}

/// Whether all hosts of a machine take part.
fn are_up(status: &str) -> bool {
    let status: serde_json::Value = serde_json::from_str(status).unwrap();
    let hosts = status["hosts"].as_array().unwrap();
    assert_eq!(hosts.len(), HOSTS, "{status}");
    hosts.iter().all(|host| ["up", "draining"].contains(&host["state"].as_str().unwrap()))
}

impl Going {
    /// Waits for its end. Whatever has not ended well says why.
    fn check(self) {
        let line = self.line;
        let ended = self.running.end();
        if self.is_killed {
            return;
        }
        assert!(!ended.err.contains("panicked"), "{line}: {ended:?}");
        if !ended.status.success() {
            println!("{line}: {}, {:?}", ended.status, ended.err);
        }
        match (ended.status.code(), self.processes) {
            (Some(0), Some(count)) => {
                let said = ended.out.matches("end\n").count();
                let may_miss = ended.err.contains("output may be missing");
                assert!(said == count || said < count && may_miss, "{line}: {ended:?}");
            }
            (Some(0), None) => {}
            (Some(_), Some(_)) => {
                let names = ["host n", "Host n", "rank ", "landeckd", "lab"];
                assert!(names.iter().any(|name| ended.err.contains(name)), "{line}: {ended:?}");
            }
            (Some(_), None) => assert!(ended.err.starts_with("landeck: "), "{line}: {ended:?}"),
            // `landeck end` ends a launcher that waits for its booking.
            (None, Some(_)) if ended.status.signal() == Some(15) => {}
            (None, _) => panic!("{line} was killed: {ended:?}"),
        }
    }
}

/// The length of a random life.
fn life_seconds() -> u64 {
    let wished = std::env::var("LANDECK_SOAK_SECONDS").ok().and_then(|text| text.parse().ok());
    wished.unwrap_or(if is_soak() { LIFE_SECONDS_SOAK } else { LIFE_SECONDS })
}

#[test]
fn a_random_life_harms_no_other_jobs_and_ends_when_it_is_stopped() {
    let test = "a_random_life_harms_no_other_jobs_and_ends_when_it_is_stopped";
    let Some(cluster) = lab(test, HOSTS, &["n2", "n3"]) else { return };
    // Its launcher and its process are on the founding host, which stays.
    let calm = cluster.start_waiting(0, "calm", "1");
    let mut life = Life::new(&cluster);
    life.go_on(life_seconds());
    life.wait_until_whole();
    cluster.shell(0, "touch /tmp/go");
    assert_eq!(calm.end().assert(0, &[]).out, "ready\nend\n");
    wait_until("the founder knows it", || cluster.jobs_on(0).is_empty());
    // All hosts together carry a job.
    let mut each = cluster.where_on(1, &["-n", &cluster.all_of(HOSTS)]);
    each.dedup();
    assert_eq!(each, ["n1", "n2", "n3"], "{}", cluster.status_on(0));
    for host in 0..HOSTS {
        life.start_job(host, (1 << 8) + 3);
    }
    wait_until("jobs", || {
        cluster.jobs_on(1).len() == HOSTS || life.going.iter_mut().any(|one| !one.running.goes_on())
    });
    run(&mut cluster.landeck_on(2, &["vm", "stop", "--now"])).assert(0, &[]).within(STOPS_WITHIN);
    life.end_all();
    cluster.assert_nothing_left();
}

#[test]
fn a_random_life_ends_with_its_founder() {
    let test = "a_random_life_ends_with_its_founder";
    let Some(cluster) = lab(test, HOSTS, &["n2", "n3"]) else { return };
    let mut life = Life::new(&cluster);
    life.go_on(life_seconds() / SHORTER);
    life.mend(true);
    cluster.kill_for_good(0);
    life.end_all();
    cluster.assert_nothing_left();
    run(&mut cluster.landeck(&["vm", "status"])).assert(125, &["no machine of this user"]);
}

/// The open descriptors of a process on a host, and its own memory in KiB.
fn figures(cluster: &Cluster, host: usize, pid: u32) -> (u64, u64) {
    let script = format!(
        "ls /proc/{pid}/fd | wc -l; sed -n 's/^RssAnon:[^0-9]*\\([0-9]*\\).*/\\1/p' /proc/{pid}/status"
    );
    let text = cluster.shell(host, &script);
    let mut numbers = text.lines().map(|line| line.trim().parse().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

#[test]
fn a_host_comes_and_goes_again_and_again() {
    let Some(cluster) = lab("a_host_comes_and_goes_again_and_again", 3, &["n2"]) else { return };
    let (cores, all) = (cluster.cores(), cluster.all_of(1));
    // All cores of the others are taken, so what follows goes to the host that comes.
    let mut calm = cluster.start_waiting(0, "calm", &cluster.all_of(2));
    let daemons = [0, 1].map(|host| (host, cluster.daemon(host)));
    let mut warm = [(0, 0); 2];
    for round in 0..if is_soak() { ROUNDS_SOAK } else { ROUNDS } {
        let add = ["vm", "add", "--rsh", "landeck-rsh", "n3"];
        let added = run(&mut cluster.landeck_on(round % 2, &add));
        assert!(added.assert(0, &[]).out.starts_with("n3 has joined ("), "{added:?}");
        let start_on = |host: usize, script: &str| {
            let script = format!("hostname; {script}");
            let words = ["run", "--name", "visit", "-n", &all, "sh", "-c", &script];
            let job = start(&mut cluster.landeck_on(host, &words));
            job.out.wait_for("the new host", |text| text == "n3\n".repeat(cores));
            job
        };
        let remove = |options: &[&str]| {
            let words = [&["vm", "remove", "n3"], options].concat();
            run(&mut cluster.landeck_on(round % 2, &words)).assert(0, &[]);
        };
        match round % 3 {
            0 => {
                start_on(1, "").end().assert(0, &[]);
                remove(&[]);
            }
            1 => {
                let job = start_on(0, "sleep 0.3; echo end");
                remove(&[]);
                assert_eq!(job.end().assert(0, &[]).out.matches("end\n").count(), cores);
            }
            _ => {
                let job = start_on(2, "exec sleep 99");
                remove(&["--now"]);
                job.end().assert(137, &["n3 was removed from lab"]);
            }
        }
        cluster.assert_nothing_left_on(2);
        if round + 1 == WARM_ROUNDS {
            warm = daemons.map(|(host, pid)| figures(&cluster, host, pid));
        }
    }
    assert!(calm.goes_on(), "{:?}", calm.err.text());
    for ((host, pid), warm) in daemons.into_iter().zip(warm) {
        wait_until("as few descriptors as before", || figures(&cluster, host, pid).0 <= warm.0);
        let now = figures(&cluster, host, pid);
        println!("n{}: descriptors and KiB {warm:?}, at last {now:?}", host + 1);
        assert!(now.1 < warm.1 + GROWTH_KIB, "n{}: {warm:?} KiB, then {now:?}", host + 1);
    }
    (0..2).for_each(|host| drop(cluster.shell(host, "touch /tmp/go")));
    assert_eq!(calm.end().assert(0, &[]).out.matches("end\n").count(), 2 * cores);
    cluster.stop_lab();
}

#[test]
fn a_stopped_founder_ends_nothing_before_the_lease_and_all_other_hosts_then() {
    let test = "a_stopped_founder_ends_nothing_before_the_lease_and_all_other_hosts_then";
    let Some(cluster) = lab(test, 3, &["n2", "n3"]) else { return };
    let there = cluster.start_waiting(1, "there", "1");
    let here = cluster.start_waiting(0, "here", "1");
    let script = "echo ready; exec sleep 299";
    let wide = ["run", "--name", "wide", "--map-by", "node", "-n", "3", "sh", "-c", script];
    let wide = start(&mut cluster.landeck(&wide));
    wide.out.wait_for("its processes", |text| text.matches("ready\n").count() == 3);
    let founder = cluster.daemon(0);
    cluster.signal_pid(0, founder, "STOP");
    // Many times the hosts' timeout, which is half a second, and less than the lease of ten.
    thread::sleep(Duration::from_secs(4));
    let asked = start(&mut cluster.landeck_on(1, &["vm", "status"]));
    asked.end().assert(125, &["this host is cut off from lab", "has not answered for"]);
    cluster.signal_pid(0, founder, "CONT");
    assert_eq!(cluster.jobs_on(0), ["there", "here", "wide"]);
    wait_until("n2 and n3 are answered again", || {
        (1..3).all(|host| {
            let status = run(&mut cluster.landeck_on(host, &["vm", "status", "--json"]));
            status.status.success() && status.out.matches("\"up\"").count() == 3
        })
    });
    assert!(!run(&mut cluster.landeck(&["vm", "status"])).out.contains("time 2"));
    cluster.signal_pid(0, founder, "STOP");
    let stopped = Instant::now();
    let said = "The job was ended: the founding host n1 is not reached: it did not answer for 1";
    there.end().assert(137, &[said]);
    let after = stopped.elapsed();
    // The lease counts from the heartbeat that was answered last, which may be one of the founder's sleep.
    assert!(Duration::from_secs(5) < after && after < Duration::from_secs(50), "{after:?}");
    wait_until("n3 has ended its part", || cluster.named(2, "sleep").is_empty());
    let here_too = cluster.processes(0);
    let is_its = |process: &Process| process.line.starts_with("sleep 299");
    assert!(here_too.iter().any(is_its), "the founding host ends nothing by itself: {here_too:?}");
    cluster.signal_pid(0, founder, "CONT");
    let ended = wide.end();
    ended.assert(137, &["is lost: "]);
    let names = ["Host n2", "Host n3"];
    assert!(names.iter().any(|name| ended.err.contains(name)), "{ended:?}");
    for host in ["n2", "n3"] {
        wait_until("the others are back", || cluster.state_of(host).0 == "up");
    }
    assert_eq!(cluster.where_on(0, &["--map-by", "node", "-n", "3"]), ["n1", "n2", "n3"]);
    cluster.shell(0, "touch /tmp/go");
    here.end().assert(0, &[]);
    cluster.stop_lab();
}

#[test]
fn a_host_that_is_heard_or_hears_in_one_direction_alone_is_lost_and_comes_back() {
    let test = "a_host_that_is_heard_or_hears_in_one_direction_alone_is_lost_and_comes_back";
    let Some(cluster) = lab(test, 3, &["n2", "n3"]) else { return };
    // Packets to a hardware address that nobody has vanish. `from` and `to` are the hosts whose packets go lost.
    let change = |from: usize, to: usize, vanish: bool| {
        let address = cluster.hosts.address(to);
        let change = match vanish {
            true => format!("replace {address} lladdr 02:00:00:00:00:99 nud permanent"),
            false => format!("del {address}"),
        };
        cluster.shell(from, &format!("ip neigh {change} dev eth0"));
    };
    let cores = cluster.cores();
    for (time, is_heard) in [("time 2", false), ("time 3", true)] {
        (0..3).for_each(|host| drop(cluster.shell(host, "rm -f /tmp/go")));
        let script = "echo ready; until [ -e /tmp/go ]; do sleep 0.05; done; echo end";
        let how =
            ["run", "--name", "wide", "--map-by", "node", "--on-failure", "notify", "-n", "3"];
        let wide = start(&mut cluster.landeck_on(1, &[&how[..], &["sh", "-c", script]].concat()));
        wide.out.wait_for("its processes", |text| text.matches("ready\n").count() == 3);
        let calm = [0, 1].map(|host| cluster.start_waiting(host, "calm", "1"));
        let pairs = [(2, 0), (2, 1)].map(|(n3, to)| if is_heard { (to, n3) } else { (n3, to) });
        pairs.iter().for_each(|&(from, to)| change(from, to, true));
        let lost = "Host n3 is lost: it has not answered for ";
        wide.err.wait_for("the loss", |text| text.contains(lost));
        wait_until("n3 tells that it is cut off", || {
            let said = run(&mut cluster.landeck_on(2, &["vm", "status"]));
            said.status.code() == Some(125) && said.err.contains("this host is cut off from lab")
        });
        let shown = run(&mut cluster.landeck_on(1, &["vm", "status"]));
        assert!(shown.out.contains("no answer for "), "{shown:?}");
        // That of n3 may still be heard, and waits on.
        (0..2).for_each(|host| drop(cluster.shell(host, "touch /tmp/go")));
        for calm in calm {
            assert_eq!(calm.end().assert(0, &[]).out, "ready\nend\n");
        }
        assert_eq!(wide.end().assert(137, &[lost]).out.matches("end\n").count(), 2);
        pairs.iter().for_each(|&(from, to)| change(from, to, false));
        wait_until("n3 is back", || {
            let status = cluster.status_on(1);
            let mut hosts = status["hosts"].as_array().unwrap().iter();
            let n3 = hosts.find(|host| host["name"] == "n3").unwrap();
            n3["state"] == "up" && n3["why"].as_str().unwrap().contains(time)
        });
        assert_eq!(cluster.where_on(2, &["-n", &cluster.all_of(1)]), vec!["n3"; cores]);
    }
    cluster.stop_lab();
}

#[test]
fn a_job_that_is_ended_before_its_start_says_so() {
    let Some(cluster) = lab("a_job_that_is_ended_before_its_start_says_so", 2, &["n2"]) else {
        return;
    };
    // A host whose daemon is stopped does not answer whether it can start its part, and is not lost.
    let start_slowly = || {
        let daemon = cluster.daemon(1);
        cluster.signal_pid(1, daemon, "STOP");
        let words = ["run", "--name", "new", "--map-by", "node", "-n", "2", "sleep", "299"];
        let starting = start(&mut cluster.landeck(&words));
        wait_until("the job", || cluster.jobs_on(0) == ["new"]);
        (starting, daemon)
    };
    let (starting, daemon) = start_slowly();
    run(&mut cluster.landeck(&["end", "new"])).assert(0, &[]);
    let said = "The job was ended before its start by `landeck end` on host n1.";
    starting.end().assert(143, &[said]);
    cluster.signal_pid(1, daemon, "CONT");
    // A launcher that hears at once of the wish and that all hosts are ready obeys the wish.
    let (starting, daemon) = start_slowly();
    cluster.signal(0, "landeck", "STOP");
    run(&mut cluster.landeck(&["end", "--timeout", "0.1", "new"])).assert(124, &["has not ended"]);
    cluster.signal_pid(1, daemon, "CONT");
    wait_until("its processes", || cluster.named(1, "sleep").len() == 1);
    cluster.signal(0, "landeck", "CONT");
    starting.go_on();
    starting.end().assert(143, &[said]);
    wait_until("the job is over", || cluster.jobs_on(0).is_empty());
    let (starting, daemon) = start_slowly();
    let removing = start(&mut cluster.landeck(&["vm", "remove", "--now", "n2"]));
    removing.err.wait_for("the job", |text| text.contains("waiting: new runs (n1 n2)"));
    cluster.signal_pid(1, daemon, "CONT");
    let said = "the job was ended before its start: host n2 was removed from lab";
    starting.end().assert(125, &[said]);
    removing.end().assert(0, &[]);
    cluster.assert_nothing_left_on(1);
    run(&mut cluster.landeck(&["vm", "add", "--rsh", "landeck-rsh", "n2"])).assert(0, &[]);
    let (starting, daemon) = start_slowly();
    let stopped = run(&mut cluster.landeck(&["vm", "stop", "--now"]));
    // Without the answer of that host, and without the twenty seconds that running jobs have.
    stopped.assert(0, &[]).within(Duration::from_secs(15));
    starting.end().assert(125, &["the job was ended before its start: lab was stopped"]);
    cluster.signal_pid(1, daemon, "CONT");
    cluster.assert_nothing_left();
}

#[test]
fn an_order_to_end_a_job_that_is_over_takes_no_output_away() {
    let test = "an_order_to_end_a_job_that_is_over_takes_no_output_away";
    let Some(cluster) = lab(test, 1, &[]) else { return };
    let job = cluster.start_waiting(0, "heat", "1");
    // Its launcher hears at once of the output, of the end and of the order.
    cluster.signal(0, "landeck", "STOP");
    cluster.shell(0, "touch /tmp/go");
    wait_until("the end of the job", || cluster.named(0, "landeck-guard").is_empty());
    run(&mut cluster.landeck(&["end", "--timeout", "0.1", "--machine", "lab", "heat"]))
        .assert(124, &["has not ended"]);
    cluster.signal(0, "landeck", "CONT");
    job.go_on();
    assert_eq!(job.end().assert(0, &[]).out, "ready\nend\n");
    cluster.stop_lab();
}

/// Stops the machine, in which this job may run, and returns whether it ends. A machine with jobs stays, and names one.
fn stop(cluster: &Cluster, host: usize, now: bool) -> bool {
    let words = ["vm", "stop", "--now"];
    let stopped = run(&mut cluster.landeck_on(host, &words[..if now { 3 } else { 2 }]));
    stopped.within(STOPS_WITHIN);
    match stopped.status.code() {
        Some(1) if !now => {
            stopped.assert(1, &[" runs (", "--now ends jobs"]);
            false
        }
        _ => stopped.assert(0, &[]).status.success(),
    }
}

/// Stops a machine in a phase of it, without and with `--now`, and checks that nothing is left.
fn stop_in_phase(test: &str, hosts: &[&str], phase: impl Fn(&Cluster, bool)) {
    let Some(cluster) = Cluster::wished(test, &Wish::hosts(3)) else { return };
    for now in [false, true] {
        (0..3).for_each(|host| drop(cluster.shell(host, "rm -f /tmp/go")));
        let start =
            ["vm", "start", "--name", "lab", "--rsh", "landeck-rsh", "--host-timeout", "0.5"];
        run(&mut cluster.landeck(&[&start[..], hosts].concat())).assert(0, &[]);
        phase(&cluster, now);
        cluster.assert_nothing_left();
    }
}

#[test]
fn a_machine_is_stopped_while_a_host_is_added() {
    stop_in_phase("a_machine_is_stopped_while_a_host_is_added", &["n2"], |cluster, now| {
        // This remote shell is slow, and then it starts the daemon of a machine that has ended.
        let slow = "printf '#!/bin/sh\nuntil [ -e /tmp/go ]; do sleep 0.05; done; exec landeck-rsh \"$@\"\n' \
            >/tmp/rsh; chmod +x /tmp/rsh";
        cluster.shell(0, slow);
        let adding = start(&mut cluster.landeck(&["vm", "add", "--rsh", "/tmp/rsh", "n3"]));
        wait_until("the remote shell", || cluster.named(0, "rsh").len() == 1);
        assert!(stop(cluster, 1, now));
        adding.end().assert(125, &["the daemon of lab on this host does not answer"]);
    });
}

#[test]
fn a_machine_is_stopped_while_the_daemon_of_a_host_begins() {
    let test = "a_machine_is_stopped_while_the_daemon_of_a_host_begins";
    stop_in_phase(test, &["n2"], |cluster, now| {
        let adding = start(&mut cluster.landeck(&["vm", "add", "--rsh", "landeck-rsh", "n3"]));
        wait_until("its daemon", || !cluster.named(2, "landeckd").is_empty());
        assert!(stop(cluster, 1, now));
        let ended = adding.end();
        assert!(ended.status.success() || ended.err.starts_with("landeck: "), "{ended:?}");
    });
}

#[test]
fn a_machine_is_stopped_while_a_job_starts() {
    let test = "a_machine_is_stopped_while_a_job_starts";
    stop_in_phase(test, &["n2", "n3"], |cluster, now| {
        for host in [0, 1] {
            (0..3).for_each(|host| drop(cluster.shell(host, "rm -f /tmp/go")));
            // One that is stopped before the launcher has found it is missed by name.
            let job = ["run", "--machine", "lab", "--name", "new", "--map-by", "node", "-n", "3"];
            let script = "until [ -e /tmp/go ]; do sleep 0.05; done; echo end";
            let line = [&job[..], &["sh", "-c", script]].concat();
            let starting = start(&mut cluster.landeck_on(host, &line));
            wait_until("the job", || !cluster.named(host, "landeck").is_empty());
            if stop(cluster, 2, now) {
                let ended = starting.end();
                assert!(!ended.status.success() && ended.err.contains("lab"), "{ended:?}");
                break;
            }
            (0..3).for_each(|host| drop(cluster.shell(host, "touch /tmp/go")));
            assert_eq!(starting.end().assert(0, &[]).out, "end\n".repeat(3));
            wait_until("the founder knows it", || cluster.jobs_on(0).is_empty());
            if host == 1 {
                assert!(stop(cluster, 2, now));
            }
        }
    });
}

#[test]
fn a_machine_is_stopped_while_a_host_is_lost() {
    let test = "a_machine_is_stopped_while_a_host_is_lost";
    stop_in_phase(test, &["n2", "n3"], |cluster, now| {
        let job = ["run", "--map-by", "node", "-n", "3", "--on-failure", "notify", "sleep", "299"];
        let job = start(&mut cluster.landeck(&job));
        wait_until("its processes", || (0..3).all(|host| cluster.named(host, "sleep").len() == 1));
        cluster.hosts.cut(2).unwrap();
        job.err.wait_for("the loss", |text| text.contains("Host n3 is lost: "));
        if !now {
            assert!(!stop(cluster, 1, false));
            cluster.signal(0, "landeck", "TERM");
            wait_until("the job is over", || cluster.jobs_on(1).is_empty());
        }
        assert!(stop(cluster, 1, now));
        let said = if now { "lab was stopped" } else { "Host n3 is lost" };
        let ended = job.end();
        assert!(ended.err.contains(said), "{ended:?}");
        cluster.hosts.join(2).unwrap();
    });
}

#[test]
fn a_machine_is_stopped_while_a_host_drains() {
    let test = "a_machine_is_stopped_while_a_host_drains";
    stop_in_phase(test, &["n2", "n3"], |cluster, now| {
        let job = cluster.start_waiting(1, "stays", "1");
        let removing = start(&mut cluster.landeck_on(2, &["vm", "remove", "n2"]));
        removing.err.wait_for("the job", |text| text.contains("waiting: stays runs (n2)"));
        if !stop(cluster, 0, now) {
            cluster.shell(1, "touch /tmp/go");
            job.end().assert(0, &[]);
            removing.end().assert(0, &[]);
            cluster.assert_nothing_left_on(1);
            assert!(stop(cluster, 0, false));
            return;
        }
        job.end().assert(137, &["lab was stopped"]);
        removing.end().assert(125, &["landeck: the daemon of lab on this host does not answer"]);
    });
}

/// Calls sockets of another user. Their daemon says nothing.
fn call_sockets(names: &str) {
    for name in names.split(' ') {
        let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap();
        let socket = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(RUN_MAX)).unwrap();
        connect(&socket, &address).unwrap();
        let (count, _) = recv(&socket, &mut [0; 64][..], RecvFlags::empty()).unwrap();
        println!("{count} bytes.");
    }
}

#[test]
fn two_users_have_machines_of_one_name_and_nothing_in_common() {
    let test = "machine_life::two_users_have_machines_of_one_name_and_nothing_in_common";
    if let Ok(names) = std::env::var(SOCKETS) {
        return call_sockets(&names);
    }
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED {test}: it needs root, which can become another user");
        return;
    }
    let Some(cluster) = lab(test, 2, &["n2"]) else { return };
    let heat = cluster.start_waiting(0, "heat", &cluster.all_of(2));
    let other_user = |host: usize, program: &Path, words: &[&str]| {
        let mut command = cluster.hosts.command(host, "setpriv");
        let user = [format!("--reuid={OTHER_USER}"), format!("--regid={OTHER_USER}")];
        command.args(user).arg("--clear-groups").arg(program).args(words).stdin(Stdio::null());
        command
    };
    let other = |host: usize, words: &[&str]| run(&mut other_user(host, landeck(), words));
    let identity = cluster.status_on(0)["jobs"][0]["job"].as_str().unwrap().to_owned();
    for host in 0..2 {
        for words in [&["status"][..], &["log"], &["stop"], &["stop", "--now"], &["drain", "n2"]] {
            let none = other(host, &[&["vm"], words].concat());
            none.assert(125, &["no machine of this user is on this host"]);
            let named = other(host, &[&["vm"], words, &["--machine", "lab"]].concat());
            named.assert(125, &["no machine lab of this user is on this host"]);
            assert!(!named.out.contains("n1") && !named.err.contains("there is"), "{named:?}");
        }
        for words in [["why", "heat"], ["ps", "heat"], ["end", "heat"], ["end", &identity]] {
            let unseen = other(host, &words);
            assert!(!unseen.assert(2, &[]).err.contains("heat ("), "{unseen:?}");
        }
        // It calls the daemon, as programs of its own could.
        let mut caller = other_user(
            host,
            &std::env::current_exe().unwrap(),
            &[test, "--exact", "--nocapture", "--test-threads=1"],
        );
        caller.env(SOCKETS, "landeckd-0-machine-lab landeckd-0-looks-lab");
        let called = run(&mut caller);
        assert_eq!(called.assert(0, &[]).out.matches("0 bytes.\n").count(), 2, "{called:?}");
    }
    let own = other(0, &["vm", "start", "--name", "lab"]);
    assert!(own.assert(0, &[]).out.starts_with("lab: 1 host, "), "{own:?}");
    let shown = other(0, &["vm", "status"]);
    assert!(!shown.assert(0, &[]).out.contains("heat"), "{shown:?}");
    assert_eq!(other(0, &["run", "-n", "1", "id", "-u"]).assert(0, &[]).out, "65534\n");
    assert_eq!(cluster.status_on(0)["hosts"].as_array().unwrap().len(), 2);
    assert_eq!(cluster.jobs_on(1), ["heat"]);
    // Each stops its own.
    other(0, &["vm", "stop", "--now"]).assert(0, &[]);
    other(0, &["vm", "status"]).assert(125, &["no machine of this user"]);
    assert_eq!(cluster.jobs_on(1), ["heat"]);
    (0..2).for_each(|host| drop(cluster.shell(host, "touch /tmp/go")));
    heat.end().assert(0, &[]);
    wait_until("the founder knows it", || cluster.jobs_on(0).is_empty());
    other(0, &["vm", "start", "--name", "lab"]).assert(0, &[]);
    run(&mut cluster.landeck_on(1, &["vm", "stop"])).assert(0, &[]);
    assert!(other(0, &["vm", "status"]).assert(0, &[]).out.starts_with("lab: 1 host, "));
    other(0, &["vm", "stop"]).assert(0, &[]);
    cluster.assert_nothing_left();
}
