//! Hosts of a test: network namespaces with cables to bridges, each with processes, names and files of its own.
//!
//! The program of the tests is the *maker* of a cluster. It starts one process, the first of a process namespace, in
//! which the network and all hosts are. That process ends when the maker does, however that ends, and the kernel ends
//! everything in its namespaces. Nothing has a name outside of them, and nothing outside is changed.
//!
//! ```no_run
//! use landeck_testing::hosts::{Hosts, Wish};
//!
//! let Some(mut hosts) = Hosts::or_skip("two_hosts_talk", &Wish::hosts(2)) else { return };
//! let output = hosts.command(0, "landeck-rsh").args(["n2", "hostname"]).output().unwrap();
//! assert_eq!(output.stdout, b"n2\n");
//! hosts.cut(1).unwrap(); // n2's cable is pulled
//! hosts.kill(0).unwrap(); // n1 has no power any more
//! ```

mod cure;
mod kept;
mod maker;
mod tools;
mod wish;

pub use wish::{Cable, Families, WhyNot, Wish};

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::OnceLock;

use maker::Maker;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

/// How long a killed host may take to end.
const END_TIME: Timespec = Timespec { tv_sec: 20, tv_nsec: 0 };
/// Programs of a cluster, which its processes find first.
const OWN_PROGRAMS: &str = "/run/hosts/bin";
/// The directories of programs on every host.
const PROGRAMS: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The home directory on each host, its own.
const HOME: &str = "/run/home";
/// Changes into the maker's directory if the host has it, then becomes the program.
const START: &str = "cd -- \"$0\" 2>/dev/null || cd; exec \"$@\"";
/// Stops everything but the first process and itself, until nothing runs.
const PAUSE: &str = "
    for try in $(seq 500); do
        kill -s STOP -- -1 || exit 0
        runs=
        for process in /proc/[0-9]*; do
            [ $process != /proc/1 ] && [ $process != /proc/$$ ] || continue
            read -r line 2>/dev/null <$process/stat || continue
            case ${line##*) } in [TtZX]*) ;; *) runs=$line ;; esac
        done
        [ -n \"$runs\" ] || exit 0
        sleep 0.01
    done
    echo \"it cannot be stopped: $runs\" >&2
    exit 1";
/// The configuration of Slurm, if a cluster has it.
const SLURM_CONFIGURATION: &str = "/run/hosts/slurm/slurm.conf";

/// Several hosts on this computer. Dropping them ends every process on them.
#[derive(Debug)]
pub struct Hosts {
    maker: Maker,
    wish: Wish,
    /// The first process of each host, as this process numbers it; `None` for a host without power.
    inits: Vec<Option<u32>>,
}

impl Hosts {
    /// Makes the hosts that are wished for, and returns when all of them are ready.
    ///
    /// # Errors
    ///
    /// If a tool is missing, the kernel or this user's rights refuse hosts, or a host does not start.
    pub fn new(wish: &Wish) -> Result<Hosts, WhyNot> {
        wish.check()?;
        tools::check(wish)?;
        Hosts::make(wish).map_err(|why| match (why, why_never()) {
            (WhyNot::Failed(_), Some(never)) => WhyNot::Refused(never.to_owned()),
            (why, _) => why,
        })
    }

    fn make(wish: &Wish) -> Result<Hosts, WhyNot> {
        let mut maker = Maker::start(wish)?;
        for number in 1..=wish.hosts {
            maker.boot(number)?;
        }
        let mut inits = vec![None; wish.hosts];
        while inits.contains(&None) {
            let (number, pid) = maker.next_host()?;
            inits[number - 1] = Some(pid);
        }
        let hosts = Hosts { maker, wish: wish.clone(), inits };
        if wish.slurm {
            hosts.wait_for_slurm()?;
        }
        Ok(hosts)
    }

    /// Makes the hosts for a test, or says on standard output why the test of this name is skipped.
    ///
    /// # Panics
    ///
    /// If the hosts could be made here, but were not.
    pub fn or_skip(test: &str, wish: &Wish) -> Option<Hosts> {
        match Hosts::new(wish) {
            Ok(hosts) => Some(hosts),
            Err(why) if why.is_of_this_computer() => {
                // Past the capture of the test harness.
                let _ = io::Write::write_fmt(
                    &mut io::stdout(),
                    format_args!("SKIPPED {test}: {}\n", why.to_string().replace('\n', " ")),
                );
                None
            }
            Err(why) => panic!("{test}: {why}"),
        }
    }

    /// The number of hosts.
    #[must_use]
    pub fn count(&self) -> usize {
        self.inits.len()
    }

    /// The name of a host: "n1" for host 0.
    #[must_use]
    pub fn name(&self, host: usize) -> String {
        format!("n{}", host + 1)
    }

    /// The site of a host, from 0.
    #[must_use]
    pub fn site(&self, host: usize) -> usize {
        self.wish.site(host)
    }

    /// The address of a host on its first cable: of IPv4 if the cluster has that, else of IPv6.
    #[must_use]
    pub fn address(&self, host: usize) -> IpAddr {
        let (site, number) = (self.site(host) + 1, host + 1);
        match self.wish.families {
            Families::V6 => Ipv6Addr::new(0xfd77, 0, 0, site as u16, 0, 0, 0, number as u16).into(),
            Families::V4 | Families::Both => Ipv4Addr::new(10, 77, site as u8, number as u8).into(),
        }
    }

    /// A command that runs a program on a host. The caller adds arguments and variables of the environment as usual. It
    /// begins in this process's directory (that of `current_dir` has no effect). If it is killed before it has ended,
    /// the program goes on until its host ends.
    ///
    /// # Panics
    ///
    /// If the host has no power.
    #[must_use]
    pub fn command(&self, host: usize, program: impl Into<PathBuf>) -> Command {
        let pid = self.init(host).unwrap_or_else(|error| panic!("{error}"));
        let mut command = self.maker.enter(pid, &["--mount", "--uts", "--ipc", "--net", "--pid"]);
        let here = std::env::current_dir().unwrap_or_else(|_| HOME.into());
        command.args(["/bin/sh", "-c", START]).arg(here).arg(program.into());
        command.env("PATH", tools::path_inside());
        command.env("HOME", HOME).env("USER", "root").env("LOGNAME", "root");
        command.env("HOSTNAME", self.name(host));
        if self.wish.slurm {
            command.env("SLURM_CONF", SLURM_CONFIGURATION);
        }
        for variable in ["TMPDIR", "XDG_RUNTIME_DIR", "SSH_AUTH_SOCK"] {
            command.env_remove(variable);
        }
        command
    }

    /// Pulls all network cables of a host.
    ///
    /// # Errors
    ///
    /// If the outer end of a cable cannot be set.
    pub fn cut(&self, host: usize) -> io::Result<()> {
        self.cables(host).try_for_each(|cable| self.cut_cable(host, cable))
    }

    /// Puts all network cables of a host in again.
    ///
    /// # Errors
    ///
    /// If the outer end of a cable cannot be set.
    pub fn join(&self, host: usize) -> io::Result<()> {
        self.cables(host).try_for_each(|cable| self.join_cable(host, cable))
    }

    /// Pulls one network cable of a host: 0 is that of `eth0`, 1 that of `eth1`.
    ///
    /// # Errors
    ///
    /// If the host has no such cable, or its outer end cannot be set.
    pub fn cut_cable(&self, host: usize, cable: usize) -> io::Result<()> {
        self.set_link(host, cable, &["down"])
    }

    /// Puts one network cable of a host in again: 0 is that of `eth0`, 1 that of `eth1`.
    ///
    /// # Errors
    ///
    /// If the host has no such cable, or its outer end cannot be set.
    pub fn join_cable(&self, host: usize, cable: usize) -> io::Result<()> {
        self.set_link(host, cable, &["up"])
    }

    /// Has the first cable of a host swallow packets that are longer than this and come to it, without a word to their sender. The
    /// hosts must send no longer ones at once than go on the cable: `ip link set eth0 gso_max_segs 1`.
    ///
    /// # Errors
    ///
    /// If its end of the cable cannot be set.
    pub fn swallow_longer(&self, host: usize, bytes: u32) -> io::Result<()> {
        self.set_link(host, 0, &["mtu", &bytes.to_string()])
    }

    /// Takes the power of a host: its cables are silent, and then all its processes are dead at once. No peer gets a last
    /// packet.
    ///
    /// # Errors
    ///
    /// If the host has no power.
    pub fn kill(&mut self, host: usize) -> io::Result<()> {
        let pid = self.init(host)?;
        self.cut(host)?;
        if let Some(pid) = Pid::from_raw(pid as i32)
            && let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty())
        {
            pidfd_send_signal(&pidfd, Signal::KILL)?;
            poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&END_TIME))?;
        }
        self.inits[host] = None;
        Ok(())
    }

    /// Gives a host its power back: it starts anew, with empty files of its own.
    ///
    /// # Errors
    ///
    /// If the host has power, or does not start.
    pub fn start(&mut self, host: usize) -> io::Result<()> {
        if self.inits[host].is_some() {
            let name = self.name(host);
            return Err(io::Error::other(format!("{name} runs: kill it before it starts again")));
        }
        self.maker.boot(host + 1).map_err(io::Error::other)?;
        let (number, pid) = self.maker.next_host().map_err(io::Error::other)?;
        self.inits[number - 1] = Some(pid);
        Ok(())
    }

    /// Stops all processes of a host, and returns when they are stopped. Its kernel goes on and answers for them.
    ///
    /// # Errors
    ///
    /// If the host has no power, or a process of it cannot be stopped.
    pub fn pause(&self, host: usize) -> io::Result<()> {
        let mut command = self.maker.enter(self.init(host)?, &["--mount", "--pid"]);
        complete(command.args(["/bin/sh", "-c", PAUSE])).map(drop)
    }

    /// Lets the processes of a paused host go on.
    ///
    /// # Errors
    ///
    /// If the host has no power, or no process besides its first.
    pub fn resume(&self, host: usize) -> io::Result<()> {
        let mut command = self.maker.enter(self.init(host)?, &["--pid"]);
        // The shell has this command built in, so nothing else is started that it would reach.
        complete(command.args(["/bin/sh", "-c", "kill -s CONT -- -1"]))?;
        // A command stops itself when its program is stopped, and goes on only when it is told.
        let target = format!("--target={}", self.init(host)?);
        for entry in fs::read_dir("/proc")?.flatten() {
            let Ok(words) = fs::read(entry.path().join("cmdline")) else { continue };
            let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
            if words.split(|&byte| byte == 0).nth(1) == Some(target.as_bytes())
                && let Some(pid) = pid.and_then(Pid::from_raw)
            {
                let _ = kill_process(pid, Signal::CONT);
            }
        }
        Ok(())
    }

    /// The folder in which a host keeps what it shares with this process: its log is `log`. On the hosts it is
    /// `/run/hosts/NAME`.
    #[must_use]
    pub fn folder(&self, host: usize) -> PathBuf {
        self.maker.shared().join(self.name(host))
    }

    fn init(&self, host: usize) -> io::Result<u32> {
        self.inits[host].ok_or_else(|| {
            io::Error::other(format!("{} has no power: start it first", self.name(host)))
        })
    }

    /// The cables of a host, as its interfaces number them.
    fn cables(&self, host: usize) -> Range<usize> {
        0..1 + self.wish.further_cables(host).count()
    }

    /// Sets the outer end of a cable.
    fn set_link(&self, host: usize, cable: usize, wanted: &[&str]) -> io::Result<()> {
        if !self.cables(host).contains(&cable) {
            let (name, last) = (self.name(host), self.cables(host).end - 1);
            let text = format!("{name} has no cable eth{cable}: its last one is eth{last}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let mut command = self.maker.enter(self.maker.pid(), &["--net"]);
        let link = format!("host{}-eth{cable}", host + 1);
        command.args(["ip", "link", "set", &link]).args(wanted);
        complete(&mut command).map(drop)
    }

    /// Waits until all hosts are idle nodes of Slurm.
    fn wait_for_slurm(&self) -> Result<(), WhyNot> {
        let script = format!(
            "for try in $(seq 300); do
                 [ \"$(sinfo -h -N -o %T 2>&1 | grep -c '^idle$')\" != {} ] || exit 0
                 sleep 0.1
             done
             sinfo -N -l >&2; tail -n 5 /run/hosts/slurm/*.log >&2; exit 1",
            self.count()
        );
        complete(self.command(0, "/bin/sh").args(["-c", &script]))
            .map(drop)
            .map_err(|error| WhyNot::Failed(format!("Slurm does not come up: {error}")))
    }
}

/// Why this computer makes not even one host, found out once; `None` if it does.
fn why_never() -> Option<&'static str> {
    static NEVER: OnceLock<Option<String>> = OnceLock::new();
    let find = || match Hosts::make(&Wish::hosts(1)).err()? {
        WhyNot::Refused(text) => Some(text),
        WhyNot::Failed(text) => Some(cure::with(&text)),
        WhyNot::Wish(_) | WhyNot::Missing { .. } => None,
    };
    NEVER.get_or_init(find).as_deref()
}

/// Runs a command to its good end.
fn complete(command: &mut Command) -> io::Result<Output> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(output);
    }
    let mut words = output.stderr;
    words.truncate(words.trim_ascii_end().len());
    let words = std::ffi::OsStr::from_bytes(&words).to_string_lossy().into_owned();
    Err(io::Error::other(format!("{command:?} failed ({}): {words}", output.status)))
}
