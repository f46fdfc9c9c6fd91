//! The maker's side of a cluster: the first process, what it is told and what it says.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, geteuid, pidfd_open};

use super::kept::Kept;
use super::wish::{Cable, Families, WhyNot, Wish};
use super::{SLURM_CONFIGURATION, cure, tools};

/// How long the first process may take for the next thing that it says.
const NEXT_TIME: Duration = Duration::from_secs(60);
/// How long a cluster may take to end when it is told, before it is killed.
const END_TIME: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };

/// Reads the text of the first process, which so is no argument that everybody sees, and runs it.
const BEGIN: &str = "IFS= read -r -d '' text; eval \"$text\"";
const CLUSTER: &str = include_str!("cluster.bash");
/// The files of a cluster, in the order in which its first process reads them; what hosts see of this computer comes first.
const FILES: [&str; 4] = [
    include_str!("host.bash"),
    include_str!("landeck-rsh"),
    include_str!("landeck-cut"),
    include_str!("landeck-cut"), // landeck-join: it looks at its name
];

/// The first process of a cluster.
#[derive(Debug)]
pub(super) struct Maker {
    /// `unshare`, whose child is the first process.
    process: Child,
    /// The cluster ends when this is closed, as it is when this process ends.
    input: Option<ChildStdin>,
    said: Receiver<String>,
    /// The first process, as this process numbers it.
    pid: u32,
    /// Whether the cluster has a user namespace of its own, as it has without root.
    has_users: bool,
}

impl Maker {
    /// Starts the first process: as root if this user is and may, else in a user namespace.
    pub(super) fn start(wish: &Wish) -> Result<Maker, WhyNot> {
        let is_root = geteuid().is_root();
        if is_root {
            match Maker::begin(wish, false) {
                Err(WhyNot::Refused(_)) => {}
                other => return other,
            }
        }
        if wish.ssh || wish.slurm {
            let (what, instead) = match wish.ssh {
                true => ("sshd", "Without --ssh, landeck-rsh starts programs on other hosts."),
                false => ("Slurm", "Its daemons change users."),
            };
            let text = format!("{what} needs root, with the right to make namespaces. {instead}");
            return Err(WhyNot::Refused(text));
        }
        Maker::begin(wish, true)
    }

    fn begin(wish: &Wish, has_users: bool) -> Result<Maker, WhyNot> {
        let failed = |error: std::io::Error| WhyNot::Failed(error.to_string());
        let mut process = first_process(wish, has_users).spawn().map_err(failed)?;
        let (sender, said) = channel();
        pass_lines(process.stdout.take(), sender.clone());
        pass_lines(process.stderr.take(), sender);
        let mut maker = Maker { input: process.stdin.take(), process, said, pid: 0, has_users };
        let kept = Kept::find(wish);
        let texts = kept.texts().chain(FILES.map(OsStr::new));
        for text in std::iter::once(OsStr::new(CLUSTER)).chain(texts) {
            // Where it has ended at once, it says why.
            let _ = maker.tell(&[text.as_bytes(), b"\0"].concat());
        }
        let line = maker.next_line("cluster")?;
        maker.pid = line.parse().map_err(|_| WhyNot::Failed(line))?;
        Ok(maker)
    }

    /// The first process of the cluster, as this process numbers it.
    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// The folder that all hosts see, as this process finds it.
    pub(super) fn shared(&self) -> PathBuf {
        format!("/proc/{}/root/run/shared", self.pid).into()
    }

    /// A command that enters namespaces of a process; the caller adds the program.
    pub(super) fn enter(&self, pid: u32, namespaces: &[&str]) -> Command {
        let nsenter = tools::find("nsenter").unwrap_or_else(|| "nsenter".into());
        let mut command = Command::new(nsenter);
        command.arg(format!("--target={pid}"));
        if self.has_users {
            command.args(["--user", "--preserve-credentials"]);
        }
        command.args(namespaces).arg("--");
        command
    }

    /// Has a host started, which `next_host` reports.
    pub(super) fn boot(&mut self, number: usize) -> Result<(), WhyNot> {
        let told = self.tell(format!("boot {number}\n").as_bytes());
        told.map_err(|error| WhyNot::Failed(error.to_string()))
    }

    /// Waits for the next host that is ready: its number, and its first process.
    pub(super) fn next_host(&mut self) -> Result<(usize, u32), WhyNot> {
        let line = self.next_line("host")?;
        let numbers = line.split_once(' ');
        let numbers = numbers.and_then(|(host, pid)| Some((host.parse().ok()?, pid.parse().ok()?)));
        numbers.ok_or_else(|| WhyNot::Failed(format!("the cluster said \"host {line}\"")))
    }

    fn tell(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let Some(input) = &mut self.input else { return Ok(()) };
        input.write_all(bytes).and_then(|()| input.flush())
    }

    /// The rest of the next line that begins with a word.
    fn next_line(&mut self, wanted: &str) -> Result<String, WhyNot> {
        let mut others = Vec::new();
        loop {
            let line = match self.said.recv_timeout(NEXT_TIME) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) => {
                    others.push(format!("nothing was heard for {NEXT_TIME:?}"));
                    return Err(WhyNot::Failed(others.join("; ")));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let text = others.join("; ");
                    // The tool that makes the namespaces has nothing else to say.
                    return Err(match text.contains("unshare: ") {
                        true => WhyNot::Refused(cure::with(&text)),
                        false => WhyNot::Failed(text),
                    });
                }
            };
            let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
            match word {
                "fail" => return Err(WhyNot::Failed(rest.to_owned())),
                "gone" => {}
                _ if word == wanted => return Ok(rest.to_owned()),
                _ => others.push(line),
            }
        }
    }
}

impl Drop for Maker {
    fn drop(&mut self) {
        drop(self.input.take());
        if let Some(pid) = Pid::from_raw(self.process.id() as i32)
            && let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty())
        {
            let ended = poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&END_TIME));
            if !matches!(ended, Ok(count) if count > 0) {
                let _ = self.process.kill(); // and with it, its child
            }
        }
        let _ = self.process.wait();
    }
}

/// Sends what comes through a pipe on, line by line, from a thread of its own.
fn pass_lines(pipe: Option<impl Read + Send + 'static>, sender: Sender<String>) {
    thread::spawn(move || {
        let lines = pipe.into_iter().flat_map(|pipe| BufReader::new(pipe).lines());
        lines.map_while(Result::ok).all(|line| sender.send(line).is_ok())
    });
}

/// The command that makes the namespaces of a cluster and its first process.
fn first_process(wish: &Wish, has_users: bool) -> Command {
    let mut command = Command::new(tools::find("unshare").unwrap_or_else(|| "unshare".into()));
    if has_users {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--net", "--mount", "--pid", "--fork", "--kill-child"]);
    command.args(["bash", "-c", BEGIN, "landeck-hosts"]);
    let yes = |is: bool| if is { "yes" } else { "no" };
    let families = match wish.families {
        Families::V4 => "4",
        Families::V6 => "6",
        Families::Both => "4 6",
    };
    let path = tools::path_inside();
    command.env_clear().env("LC_ALL", "C").env("PATH", &path).env("PATH_INSIDE", &path);
    command.env("HOSTS", wish.hosts.to_string()).env("SITES", wish.sites.to_string());
    let cable = |cable: &Cable| format!("{}:{}", cable.host + 1, cable.network);
    command.env("CABLES", wish.cables.iter().map(cable).collect::<Vec<_>>().join(" "));
    command.env("APART", yes(wish.is_apart()));
    command.env("FAMILIES", families).env("SSH", yes(wish.ssh)).env("SLURM", yes(wish.slurm));
    command.env("ONE_SESSION", yes(wish.one_session));
    command.env("RATE", wish.rate.as_deref().unwrap_or_default());
    let port = wish.port_bytes.map_or("burst 128kb latency 50ms".to_owned(), |bytes| {
        format!("burst 16kb limit {bytes}") // beyond the burst, packets wait in the port
    });
    command.env("PORT", port);
    command.env("MTU", wish.mtu.map(|mtu| mtu.to_string()).unwrap_or_default());
    command.env("DROP", format!("{:.0}", wish.drop_percent * 100.0));
    if wish.slurm {
        command.env("SLURM_CONF", SLURM_CONFIGURATION);
    }
    // An interrupt from the terminal is for the user's command; the cluster ends with its maker.
    command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}
