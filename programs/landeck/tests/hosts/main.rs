//! `landeck run` over several hosts, with plain programs: real daemons, real cables, real deaths.
//!
//! Each test makes its own hosts, which takes a quarter of a second, and checks in the end that nothing is left on any
//! of them. `LANDECK_SOAK=1` adds the long ones.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)] // tests may, and so may what helps them

mod capture;
mod environment;
mod gateways;
mod growing;
mod links;
mod load;
mod losses;
mod machine_life;
mod machines;
mod members;
mod networks;
mod next_run;
mod options;
mod output;
mod own_job;
mod refusals;
mod resuming;
mod session;
mod silence;
mod silent_connections;
mod sites;
mod soak;
mod starting;
mod stored;
mod survivors;
mod suspicions;
mod tunnels;

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use landeck_testing::Watchdog;
use landeck_testing::hosts::{Hosts, Wish};

/// No test may take longer.
const TEST_MAX: Duration = Duration::from_secs(300);
/// No run may take longer.
const RUN_MAX: Duration = Duration::from_secs(100);
/// Nothing may be left on a living host longer than this after a run.
const GONE_WITHIN: Duration = Duration::from_secs(60);
/// Prints the processes of a host, one in each line: number, name, command.
const PROCESSES: &str = "for folder in /proc/[0-9]*; do
    number=${folder#/proc/}
    [ $number != $$ ] && read -r line <$folder/stat || continue
    rest=${line##*) } name=${line#*\\(}
    case $rest in [ZX]*) continue ;; esac
    echo \"$number ${name%%)*} $(tr '\\0' ' ' <$folder/cmdline)\"
done 2>/dev/null";

/// Hosts of a test.
struct Cluster {
    hosts: Hosts,
    /// The processes that each host had before anything was started there.
    before: Vec<Vec<u32>>,
    _watchdog: Watchdog,
}

/// A process of a host.
#[derive(Debug, Clone)]
struct Process {
    pid: u32,
    name: String,
    line: String,
}

/// A run that has ended.
struct Ended {
    status: ExitStatus,
    out: String,
    err: String,
    took: Duration,
}

/// A run that goes on.
struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    out: Heard,
    err: Heard,
    began: Instant,
}

/// The text that has come through a pipe so far.
#[derive(Clone, Default)]
struct Heard(Arc<(Mutex<HeardText>, Condvar)>);

#[derive(Default)]
struct HeardText {
    bytes: Vec<u8>,
    has_ended: bool,
}

/// The command, with its daemon beside it.
fn landeck() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        landeck_testing::program::build(env!("CARGO"));
        PathBuf::from(env!("CARGO_BIN_EXE_landeck"))
    })
}

/// The daemon.
fn landeckd() -> PathBuf {
    landeck().with_file_name("landeckd")
}

/// Whether the long tests were asked for.
fn is_soak() -> bool {
    std::env::var_os("LANDECK_SOAK").is_some_and(|value| value == "1")
}

/// A shell that goes on until there is `/tmp/go` on its host, and then says its rank.
const UNTIL_GO: &str = "until [ -e /tmp/go ]; do sleep 0.05; done; echo end $RANK";

impl Cluster {
    /// Two hosts; `None` where this computer cannot make them.
    fn pair(test: &str) -> Option<Cluster> {
        Cluster::wished(test, &Wish::hosts(2))
    }

    /// Hosts by a wish; `None` where this computer cannot make them.
    fn wished(test: &str, wish: &Wish) -> Option<Cluster> {
        let watchdog = Watchdog::start(if is_soak() { TEST_MAX * 8 } else { TEST_MAX });
        landeck();
        let hosts = Hosts::or_skip(test, wish)?;
        let mut cluster = Cluster { hosts, before: Vec::new(), _watchdog: watchdog };
        for host in 0..wish.hosts {
            cluster.note_processes(host);
        }
        Some(cluster)
    }

    /// Takes the processes of a host for those that it always has.
    fn note_processes(&mut self, host: usize) {
        let pids = self.processes(host).iter().map(|process| process.pid).collect();
        self.before.resize(self.before.len().max(host + 1), Vec::new());
        self.before[host] = pids;
    }

    /// `landeck` with arguments on the first host.
    fn landeck(&self, arguments: &[&str]) -> Command {
        let mut command = self.hosts.command(0, landeck());
        command.args(arguments).stdin(Stdio::null());
        command
    }

    /// `landeck run` on two processes of each of two hosts.
    fn four(&self, arguments: &[&str]) -> Command {
        let usual = ["run", "--rsh", "landeck-rsh", "--host", "n1:2,n2:2", "-n", "4"];
        self.landeck(&[&usual, arguments].concat())
    }

    /// Runs four shells to their end.
    fn run_four(&self, options: &[&str], script: &str) -> Ended {
        run(&mut self.four(&[options, &["sh", "-c", script]].concat()))
    }

    /// Starts four shells, and waits until each has said "ready".
    fn start_four(&self, options: &[&str], script: &str) -> Running {
        let script = format!("echo ready; {script}");
        let running = start(&mut self.four(&[options, &["sh", "-c", &script]].concat()));
        running.out.wait_for("four processes", |text| text.matches("ready\n").count() == 4);
        running
    }

    /// Runs a script on a host, and returns its output.
    fn shell(&self, host: usize, script: &str) -> String {
        let output = self.hosts.command(host, "/bin/sh").args(["-c", script]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{script}: {output:?}");
        text
    }

    /// All processes of a host but those that ask.
    fn processes(&self, host: usize) -> Vec<Process> {
        let text = self.shell(host, PROCESSES);
        let each = text.lines().filter_map(|line| {
            let mut words = line.splitn(3, ' ');
            let pid = words.next()?.parse().ok()?;
            let (name, line) = (words.next()?.to_owned(), words.next()?.to_owned());
            Some(Process { pid, name, line })
        });
        // The command substitution of the script is a process too.
        each.filter(|process| !process.line.contains("/proc/[0-9]*")).collect()
    }

    /// The processes of a host with this name.
    fn named(&self, host: usize, name: &str) -> Vec<u32> {
        let all = self.processes(host);
        all.iter().filter(|process| process.name == name).map(|process| process.pid).collect()
    }

    /// Sends a signal to the processes of a host with this name, of which there must be some.
    fn signal(&self, host: usize, name: &str, signal: &str) {
        let pids = self.named(host, name);
        assert!(!pids.is_empty(), "no {name} on host {host}: {:?}", self.processes(host));
        for pid in pids {
            self.signal_pid(host, pid, signal);
        }
    }

    /// Sends a signal to a process of a host.
    fn signal_pid(&self, host: usize, pid: u32, signal: &str) {
        self.shell(host, &format!("kill -s {signal} {pid}"));
    }

    /// The daemon of a host: the process that is no guardian server.
    fn daemon(&self, host: usize) -> u32 {
        let all = self.named(host, "landeckd");
        assert_eq!(all.len(), 1, "{:?}", self.processes(host));
        all[0]
    }

    /// Kills the daemon of a host of a machine, and starts it again when the host is lost: it comes back without its processes.
    fn lose(&self, host: usize) {
        let name = self.hosts.name(host).to_owned();
        self.signal(host, "landeck-keeper", "STOP");
        self.signal_pid(host, self.daemon(host), "KILL");
        wait_until("it is lost", || self.state_of(&name).0 != "up");
        self.signal(host, "landeck-keeper", "CONT");
    }

    /// Kills the daemon of a host of a machine and its keeper, so nobody starts it again.
    fn kill_for_good(&self, host: usize) {
        self.signal(host, "landeck-keeper", "STOP");
        self.signal_pid(host, self.daemon(host), "KILL");
        self.signal(host, "landeck-keeper", "KILL");
    }

    /// Checks that nothing but the host itself runs on a host.
    fn assert_nothing_left_on(&self, host: usize) {
        let until = Instant::now() + GONE_WITHIN;
        loop {
            let mut left = self.processes(host);
            left.retain(|process| !self.before[host].contains(&process.pid));
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < until, "left on {}: {left:?}", self.hosts.name(host));
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Checks that nothing is left on any host.
    fn assert_nothing_left(&self) {
        (0..self.hosts.count()).for_each(|host| self.assert_nothing_left_on(host));
    }

    /// Runs a command to its end, and checks that nothing is left of it.
    fn run_clean(&self, command: &mut Command) -> Ended {
        let ended = run(command);
        self.assert_nothing_left();
        ended
    }
}

/// Starts a command and reads what it writes.
fn start(command: &mut Command) -> Running {
    let began = Instant::now();
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let out = Heard::begin(child.stdout.take().unwrap());
    let err = Heard::begin(child.stderr.take().unwrap());
    Running { stdin: child.stdin.take(), child, out, err, began }
}

/// Runs a command to its end.
fn run(command: &mut Command) -> Ended {
    start(command).end()
}

/// Runs a command to its end, which must come within this time.
fn run_within(command: &mut Command, limit: Duration) -> Ended {
    start(command).end_within(limit)
}

impl Running {
    /// Waits for the end.
    fn end(self) -> Ended {
        self.end_within(RUN_MAX)
    }

    fn end_within(mut self, limit: Duration) -> Ended {
        drop(self.stdin.take());
        let until = Instant::now() + limit;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() >= until {
                let _ = self.child.kill();
                panic!("a run does not end: {:?} {:?}", self.out.text(), self.err.text());
            }
            thread::sleep(Duration::from_millis(2));
        };
        let took = self.began.elapsed();
        let (out, err) = (self.out.whole(), self.err.whole());
        Ended { status, out, err, took }
    }

    /// Lets the command that entered the host go on: it has stopped itself with the program that it waits for.
    fn go_on(&self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", "CONT", &pid]).status().unwrap().success());
    }

    /// Whether it goes on.
    fn goes_on(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Heard {
    fn begin(mut pipe: impl Read + Send + 'static) -> Heard {
        let heard = Heard::default();
        let own = heard.clone();
        thread::spawn(move || {
            let mut block = vec![0; 64 << 10];
            loop {
                let count = pipe.read(&mut block).unwrap_or(0);
                let mut text = own.0.0.lock().unwrap();
                text.bytes.extend_from_slice(&block[..count]);
                text.has_ended |= count == 0;
                own.0.1.notify_all();
                if count == 0 {
                    return;
                }
            }
        });
        heard
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.0.lock().unwrap().bytes).into_owned()
    }

    /// The text when it has ended. A process that outlives the run may hold the pipe, so this does not wait for ever.
    fn whole(&self) -> String {
        let (text, changed) = &*self.0;
        let text = text.lock().unwrap();
        let (text, waited) =
            changed.wait_timeout_while(text, GONE_WITHIN, |text| !text.has_ended).unwrap();
        assert!(!waited.timed_out(), "something still holds the output of a run that has ended");
        String::from_utf8_lossy(&text.bytes).into_owned()
    }

    /// Waits until the text is as wanted.
    fn wait_for(&self, what: &str, is_it: impl Fn(&str) -> bool) {
        let until = Instant::now() + RUN_MAX;
        let (text, changed) = &*self.0;
        let mut text = text.lock().unwrap();
        loop {
            let now = String::from_utf8_lossy(&text.bytes).into_owned();
            if is_it(&now) {
                return;
            }
            assert!(!text.has_ended && Instant::now() < until, "no {what} in {now:?}");
            text = changed.wait_timeout(text, Duration::from_millis(200)).unwrap().0;
        }
    }
}

impl Ended {
    /// Checks the exit code, and that standard error says all of these.
    #[track_caller]
    fn assert(&self, code: i32, said: &[&str]) -> &Ended {
        assert_eq!(self.status.code(), Some(code), "{self:?}");
        for said in said {
            assert!(self.err.contains(said), "{said:?} is not said: {self:?}");
        }
        self
    }

    /// Checks that the run took no longer. Limits are ten times what is promised: the computer may be busy.
    #[track_caller]
    fn within(&self, limit: Duration) -> &Ended {
        assert!(self.took < limit, "{:?} is longer than {limit:?}: {self:?}", self.took);
        self
    }

    /// The lines of standard output, sorted.
    fn sorted(&self) -> Vec<&str> {
        let mut lines: Vec<&str> = self.out.lines().collect();
        lines.sort_unstable();
        lines
    }
}

impl fmt::Debug for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |text: &str| text.chars().take(4000).collect::<String>();
        write!(
            f,
            "{} after {:?}\n--- standard output\n{}\n--- standard error\n{}",
            self.status,
            self.took,
            short(&self.out),
            short(&self.err)
        )
    }
}

/// Waits for a condition.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + RUN_MAX;
    while !is_so() {
        assert!(Instant::now() < until, "{what}: not within {RUN_MAX:?}");
        thread::sleep(Duration::from_millis(20));
    }
}
