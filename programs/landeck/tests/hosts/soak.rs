//! Random deaths: processes, guardians, daemons, launchers, hosts and cables, one in each job. Each row of the table of
//! what may end comes in turn. `make soak` goes on for twenty minutes; `LANDECK_SEED` repeats the deaths of a run, and
//! `LANDECK_SOAK_SECONDS` shortens it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use landeck::{Error, ErrorKind, Job, Tag};
use landeck_testing::Random;

use super::members::is_member;
use super::*;

/// The file that a host keeps about copies of messages, which its first job makes.
const FINDING: &str = "/run/home/.cache/landeck/one-copy";
/// How long it goes on in soak.
const SOAK_SECONDS: u64 = 20 * 60;
/// Each row must have been hit this often in soak.
const EACH_MIN: usize = 20;
/// Clusters in which jobs run at the same time: most of a round is waiting.
const CLUSTERS: usize = 3;
const HOSTS: usize = 3;
const EACH: usize = 2;
const RANKS: usize = HOSTS * EACH;
/// T of most jobs, in seconds. A host that is only cut off for a moment is given more.
const TIMEOUT: &str = "0.5";
const LONG_TIMEOUT: &str = "3";
/// No job may take longer to end behind a death. A host without its arbiter ends after ten seconds.
const ENDS_WITHIN: Duration = Duration::from_secs(30);
/// Rounds of a job in which somebody lives to the end.
const ROUNDS: u64 = 150;
/// Set for jobs that end by themselves.
const ENDS: &str = "LANDECK_TEST_ENDS";
/// Lists the things on a host besides processes: files, named sockets, and sockets that listen or are connected.
const LEFT: &str = "find /tmp -xdev /dev/shm /run/home /run/lock ! -type d ! -name '*.job'
    grep -o '@landeck.*' /proc/net/unix
    ss -H -n -l -t -u
    ss -H -n -t state established";

/// The thing that ends in a job: the rows of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Row {
    Process,
    Guardian,
    GuardianServer,
    Daemon,
    Launcher,
    ArbitersHost,
    OtherHost,
    Network,
    NetworkForAMoment,
}

impl Row {
    /// All rows; the slow ones first.
    const ALL: [Row; 9] = [
        Row::ArbitersHost,
        Row::NetworkForAMoment,
        Row::Network,
        Row::Process,
        Row::Guardian,
        Row::GuardianServer,
        Row::Daemon,
        Row::Launcher,
        Row::OtherHost,
    ];

    /// The name of the process that is killed.
    fn victim(self) -> Option<&'static str> {
        match self {
            Row::Guardian => Some("landeck-guard"),
            Row::GuardianServer => Some("landeck-server"),
            Row::Daemon => Some("landeckd"),
            Row::Launcher => Some("landeck"),
            _ => None,
        }
    }

    /// The exit code of the launcher, if it has one.
    fn exit_code(self) -> Option<i32> {
        match self {
            Row::Launcher | Row::ArbitersHost => None,
            Row::NetworkForAMoment => Some(0),
            _ => Some(137),
        }
    }

    /// Whether processes live to the end of the job.
    fn is_survived(self) -> bool {
        matches!(self, Row::Process | Row::NetworkForAMoment)
    }
}

#[test]
fn random_deaths_leave_nothing() {
    let test = "soak::random_deaths_leave_nothing";
    if is_member() {
        return give_and_take_numbers();
    }
    let wished = std::env::var("LANDECK_SOAK_SECONDS").ok().and_then(|text| text.parse().ok());
    let seconds = wished.unwrap_or(if is_soak() { SOAK_SECONDS } else { 0 });
    let least = if seconds > 0 { EACH_MIN } else { 1 } * Row::ALL.len();
    let (seed, began, next) = (landeck_testing::seed(), Instant::now(), AtomicUsize::new(0));
    let counts = Mutex::new(BTreeMap::<Row, usize>::new());
    thread::scope(|scope| {
        for _ in 0..CLUSTERS {
            scope.spawn(|| {
                let Some(mut cluster) = Cluster::wished(test, &Wish::hosts(HOSTS)) else { return };
                let left: Vec<String> = (0..HOSTS).map(|host| cluster.left(host)).collect();
                loop {
                    let round = next.fetch_add(1, Ordering::Relaxed);
                    if round >= least && began.elapsed() >= Duration::from_secs(seconds) {
                        return;
                    }
                    let row = Row::ALL[round % Row::ALL.len()];
                    let random = Random::new(seed.wrapping_add((round as u64) << 32));
                    Round { cluster: &mut cluster, left: &left, test, row, random }.run();
                    *counts.lock().unwrap().entry(row).or_default() += 1;
                }
            });
        }
    });
    let counts = counts.into_inner().unwrap();
    if counts.is_empty() {
        return; // there are no hosts here
    }
    for row in Row::ALL {
        let count = counts.get(&row).copied().unwrap_or(0);
        println!("{row:?}: {count}");
        assert!(count * Row::ALL.len() >= least, "{row:?} was hit only {count} times");
    }
}

/// One job in which something ends.
struct Round<'a> {
    cluster: &'a mut Cluster,
    /// The things that each host has before anything was started there.
    left: &'a [String],
    test: &'static str,
    row: Row,
    random: Random,
}

impl Round<'_> {
    fn run(&mut self) {
        let row = self.row;
        let (timeout, on_failure) = match row {
            Row::Process => (TIMEOUT, "notify"),
            Row::NetworkForAMoment => (LONG_TIMEOUT, "abort"),
            _ => (TIMEOUT, "abort"),
        };
        let options = ["--host-timeout", timeout, "--on-failure", on_failure];
        let mut command = self.cluster.members(self.test, "n1:2,n2:2,n3:2", &options);
        if row.is_survived() {
            command.env(ENDS, "1");
        }
        let running = start(&mut command);
        running.out.wait_for("six processes", |text| text.matches("connected\n").count() == RANKS);
        thread::sleep(Duration::from_millis(self.random.below(150)));
        let (host, died) = (self.strike(), Instant::now());
        let ended = running.end();
        let what = format!("{row:?} on host {host}: {ended:?}");
        assert!(died.elapsed() < ENDS_WITHIN, "{what}");
        assert!(!ended.err.contains("panicked"), "{what}");
        if let Some(code) = row.exit_code() {
            assert_eq!(ended.status.code(), Some(code), "{what}");
        }
        self.check_output(&ended, &what);
        self.mend(host);
        for host in 0..HOSTS {
            self.cluster.assert_nothing_left_on(host);
            self.assert_nothing_else_left_on(host, &what);
        }
    }

    /// Checks that there are no files and sockets on a host that were not there before, but for the finding of its probe.
    fn assert_nothing_else_left_on(&self, host: usize, what: &str) {
        let until = Instant::now() + GONE_WITHIN;
        loop {
            let left = self.cluster.left(host);
            let is_new = |line: &&str| !self.left[host].contains(line) && *line != FINDING;
            let mut new = left.lines().filter(is_new);
            let Some(first) = new.next() else { return };
            assert!(Instant::now() < until, "{first:?} is left on host {host}: {what}");
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Ends something; returns on which host.
    fn strike(&mut self) -> usize {
        let any = self.random.below(HOSTS as u64) as usize;
        let other = 1 + self.random.below(HOSTS as u64 - 1) as usize;
        let host = match self.row {
            Row::Launcher | Row::ArbitersHost => 0,
            Row::OtherHost | Row::Network | Row::NetworkForAMoment | Row::Daemon => other,
            Row::Process | Row::Guardian | Row::GuardianServer => any,
        };
        match self.row {
            Row::ArbitersHost | Row::OtherHost => self.cluster.hosts.kill(host).unwrap(),
            Row::Network => self.cluster.hosts.cut(host).unwrap(),
            Row::NetworkForAMoment => {
                self.cluster.hosts.cut(host).unwrap();
                thread::sleep(Duration::from_millis(100 + self.random.below(900)));
                self.cluster.hosts.join(host).unwrap();
            }
            _ => self.kill_one(host),
        }
        host
    }

    /// Kills a process of a host.
    fn kill_one(&mut self, host: usize) {
        let mut all = self.cluster.processes(host);
        all.retain(|process| !self.cluster.before[host].contains(&process.pid));
        match self.row.victim() {
            Some(name) => all.retain(|process| process.name == name),
            None => all.retain(|process| {
                process.line.starts_with('/') && process.name.starts_with("hosts")
            }),
        }
        let at = self.random.below(all.len() as u64) as usize;
        let victim = all.get(at).unwrap_or_else(|| {
            panic!("{:?}: nobody to kill in {:?}", self.row, self.cluster.processes(host))
        });
        self.cluster.signal_pid(host, victim.pid, "KILL");
    }

    /// Makes the hosts whole again.
    fn mend(&mut self, host: usize) {
        match self.row {
            Row::ArbitersHost | Row::OtherHost => {
                (0..HOSTS)
                    .filter(|other| *other != host)
                    .for_each(|other| self.cluster.assert_nothing_left_on(other));
                self.cluster.hosts.start(host).unwrap();
                self.cluster.note_processes(host);
            }
            Row::Network => self.cluster.hosts.join(host).unwrap(),
            _ => {}
        }
    }

    /// Checks that what each process has written came in order and without a gap, and that those who live came to
    /// their end.
    fn check_output(&self, ended: &Ended, what: &str) {
        let mut lines = BTreeMap::<u64, u64>::new();
        for line in ended.out.lines() {
            let Some(rest) = line.split_once("line ").map(|(_, rest)| rest) else { continue };
            // Only the last line of a process that was killed may be torn.
            let mut words = rest.split(' ').map(str::parse::<u64>);
            let (Some(Ok(rank)), Some(Ok(number)), Some(Ok(0))) =
                (words.next(), words.next(), words.next())
            else {
                continue;
            };
            let next = lines.entry(rank).or_default();
            assert_eq!(number, *next, "rank {rank}: {what}");
            *next += 1;
        }
        if !self.row.is_survived() {
            return;
        }
        let whole = ended.out.matches("whole\n").count();
        let living = RANKS - usize::from(self.row == Row::Process);
        assert_eq!(whole, living, "{what}");
        let complete = lines.values().filter(|count| **count == ROUNDS).count();
        assert_eq!(complete, living, "{lines:?} {what}");
    }
}

impl Cluster {
    /// The things on a host besides processes.
    fn left(&self, host: usize) -> String {
        let output = self.hosts.command(host, "/bin/sh").args(["-c", LEFT]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

/// A process that gives numbers to all others and takes theirs: none may be missing or come twice, except those of a
/// process that has died.
fn give_and_take_numbers() {
    let job = Job::join().unwrap();
    let world = job.world();
    let rank = world.rank();
    let rounds = if std::env::var_os(ENDS).is_some() { ROUNDS } else { u64::MAX };
    let mut dead = BTreeSet::new();
    for round in 0..rounds {
        let length = [1, 1, 9, 1_000, 1, 3_000][round as usize % 6];
        let value = |from: usize| round << 8 | from as u64;
        for to in (0..RANKS).filter(|to| *to != rank) {
            if let Err(error) = world.send(&vec![value(rank); length], to, Tag(4))
                && !note(&mut dead, &error)
            {
                return;
            }
        }
        for from in (0..RANKS).filter(|from| *from != rank) {
            if dead.contains(&from) {
                continue;
            }
            let mut got = vec![0; length];
            match world.receive_into(&mut got, from, Tag(4)) {
                Ok(_) => assert_eq!(got, vec![value(from); length], "from {from}"),
                Err(error) if note(&mut dead, &error) => {}
                Err(_) => return,
            }
        }
        println!("line {rank} {round} 0");
        if round == 0 {
            println!("connected");
        }
        thread::sleep(Duration::from_millis(2));
    }
    assert!(dead.len() <= 1, "{dead:?}");
    println!("whole");
    job.leave().unwrap();
}

/// Notes a death. False if the job is being ended, which is the only other cause for which a call may fail.
fn note(dead: &mut BTreeSet<usize>, error: &Error) -> bool {
    match &error.kind {
        ErrorKind::PeerFailed { rank: Some(rank), .. } => {
            dead.insert(*rank);
            true
        }
        ErrorKind::Ended => false,
        other => panic!("{other}"),
    }
}
