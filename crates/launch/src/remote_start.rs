//! Starting daemons on other hosts: by ssh or another remote shell, one for each host, or by one srun for all of them.
//!
//! A daemon introduces itself by one line on its standard output and then waits for the answer, which is a line on its
//! standard input. Both streams can carry its trunk afterwards, unless they are srun's, which belong to all hosts. What a
//! remote shell says on its standard error is kept for the message in case of failure.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// The number of remote shells that are starting at the same time.
pub const STARTS_AT_ONCE: usize = 64;
/// How long a daemon has to introduce itself.
pub const START_TIME: Duration = Duration::from_secs(30);
/// The beginning of the line by which a daemon introduces itself.
pub const INTRODUCTION: &str = "landeckd 1 ";
/// The line that says that a host has no daemon.
const MISSING: &str = "landeckd is missing";
/// The line by which a host says that its shell has run our line and found a daemon.
const RUN: &str = "landeckd is started";
/// The number of bytes of a greeting that are read before the introduction.
const GREETING_BYTES_MAX: usize = 1 << 20;
/// The number of bytes that are kept of a line, and of complaints.
const KEPT_BYTES_MAX: usize = 64 * 1024;
/// The number of lines that a message repeats of what a remote shell has said.
const REPEATED_LINES: usize = 5;
/// The words of ssh when a server closes a connection before it has said anything: it has too many starting sessions.
const TOO_MANY_STARTING: &str = "_exchange_identification: ";
/// The exit code by which ssh says that it has failed itself.
const SSH_FAILED: i32 = 255;
/// The size of the pipe for answers: those for thousands of hosts, which one srun may not have read yet.
const ANSWERS_BYTES: usize = 1 << 20;
/// The number of hosts that a message names.
const NAMED_MAX: usize = 8;

/// How daemons on other hosts are started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartWay {
    /// The program that reaches other hosts.
    pub tool: StartTool,
    /// The path of the daemon on the launcher's host, which is tried first on the others.
    pub daemon: PathBuf,
    /// The folder of an installation on the other hosts (`--remote-prefix`).
    pub prefix: Option<PathBuf>,
    /// The arguments of `landeckd bootstrap`.
    pub arguments: Vec<String>,
    /// The users as whom the remote shell logs in, by the names of hosts.
    pub logins: BTreeMap<String, String>,
}

/// The program that reaches other hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum StartTool {
    /// `ssh`.
    Ssh,
    /// Another command with its own arguments, called as `COMMAND HOST LINE` (`--rsh`).
    Rsh(Vec<String>),
    /// `srun` in an allocation of Slurm.
    Srun,
    /// The user, who starts `landeckd join` on each host. No remote shell is started.
    ByHand,
}

/// The progress of a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartProgress {
    /// The daemon has introduced itself by this line.
    Introduced(String),
    /// It will not start, for this reason.
    Failed(String),
    /// The other side has refused to begin, for this reason, and may take the same again soon.
    Busy(String),
}

/// A remote shell that starts a daemon, or has started one; with srun, the daemons of several hosts.
#[derive(Debug)]
pub struct RemoteStart {
    /// The hosts as the user named them, in one text.
    host: String,
    /// The host as the remote shell is told of it.
    target: String,
    tool: String,
    child: Child,
    input: Option<OwnedFd>,
    output: Option<OwnedFd>,
    errors: Option<OwnedFd>,
    line: Vec<u8>,
    complaints: Vec<u8>,
    /// The last lines on the standard output that are none of ours.
    greeting: VecDeque<String>,
    skipped: usize,
    /// Whether the host's shell has run our line.
    has_run: bool,
    deadline: Instant,
    /// The number of daemons that have yet to introduce themselves.
    awaited: usize,
    progress: VecDeque<StartProgress>,
}

impl StartTool {
    /// The command that runs a script of the Bourne shell on each of these hosts, which are several only for srun, with
    /// the name of its program.
    pub fn command(&self, hosts: &[&str], script: &str) -> (String, Command) {
        // One line for any shell that runs the script.
        let line = format!("sh -c {}", quoted(script.as_bytes()));
        let host = hosts.first().copied().unwrap_or_default();
        match self {
            StartTool::Ssh | StartTool::ByHand => {
                let mut ssh = Command::new("ssh");
                ssh.args(["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "--"]);
                ssh.arg(host).arg(line);
                ("ssh".to_owned(), ssh)
            }
            StartTool::Rsh(words) => {
                let (program, own) = words
                    .split_first()
                    .map_or(("ssh", &[][..]), |(first, own)| (first.as_str(), own));
                let mut shell = Command::new(program);
                shell.args(own).arg(host).arg(line);
                (program.to_owned(), shell)
            }
            StartTool::Srun => {
                let mut srun = Command::new("srun");
                // The number of tasks too: an allocation's own would hold otherwise.
                let number = hosts.len().to_string();
                srun.args(["-N", &number, "-n", &number, "--ntasks-per-node=1"]);
                srun.args(["--cpu-bind=none", "--mpi=none", "--kill-on-bad-exit=0", "--overlap"]);
                srun.args(["-w", &hosts.join(","), "sh", "-c", script]);
                ("srun".to_owned(), srun)
            }
        }
    }
}

impl StartWay {
    /// Whether one command starts the daemons of all hosts.
    pub fn is_shared(&self) -> bool {
        self.tool == StartTool::Srun
    }

    /// The command that starts a daemon on each of these hosts, which are several only for srun.
    fn command(&self, hosts: &[&str]) -> (String, Command) {
        let targets: Vec<String> = hosts.iter().map(|host| self.target(host)).collect();
        let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
        self.tool.command(&targets, &self.script())
    }

    /// A host as the remote shell is told of it.
    fn target(&self, host: &str) -> String {
        match self.logins.get(host) {
            Some(login) => format!("{login}@{host}"),
            None => host.to_owned(),
        }
    }

    /// Runs the first daemon that is there: at the launcher's own path, below the prefix, in PATH.
    fn script(&self) -> String {
        let beside = self.prefix.as_ref().map(|prefix| prefix.join("bin/landeckd"));
        let paths = [Some(self.daemon.clone()), beside].into_iter().flatten();
        let mut words: Vec<String> =
            paths.map(|path| quoted(path.as_os_str().as_bytes())).collect();
        words.push("landeckd".to_owned());
        let mut arguments: String =
            self.arguments.iter().map(|word| format!(" {}", quoted(word.as_bytes()))).collect();
        let mut own_name = "";
        if self.is_shared() {
            // Slurm's name of a host is the one by which it was asked for.
            own_name = "$SLURMD_NODENAME ";
            arguments += " --shared --name \"$SLURMD_NODENAME\"";
        }
        format!(
            "for p in {}; do if command -v \"$p\" >/dev/null 2>&1; then echo {own_name}{RUN}; \
             exec \"$p\" bootstrap{arguments}; fi; done; echo {own_name}{MISSING}",
            words.join(" ")
        )
    }

    /// The path of the daemon as a user types it on another host.
    pub fn daemon_elsewhere(&self) -> PathBuf {
        match &self.prefix {
            Some(prefix) => prefix.join("bin/landeckd"),
            None => self.daemon.clone(),
        }
    }
}

impl RemoteStart {
    /// Begins to start a daemon on a host; with srun, on several hosts.
    ///
    /// # Errors
    /// The reason, with the host's name and the cure, if the remote shell cannot even be started.
    pub fn begin(way: &StartWay, hosts: &[&str]) -> Result<RemoteStart, String> {
        let host = listed(hosts);
        let (tool, mut command) = way.command(hosts);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Keys pressed at the terminal must not signal the remote shell.
        command.process_group(0);
        let refuse = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => format!(
                "host {host}: there is no program \"{tool}\" on this host; install it, or give another with --rsh"
            ),
            _ => format!("host {host}: \"{tool}\" cannot be started: {error}"),
        };
        let mut child = command.spawn().map_err(refuse)?;
        let input = child.stdin.take().map(OwnedFd::from);
        let output = child.stdout.take().map(OwnedFd::from);
        let errors = child.stderr.take().map(OwnedFd::from);
        for stream in [&output, &errors].into_iter().flatten() {
            // A pipe cannot refuse this.
            let _ = rustix::io::ioctl_fionbio(stream, true);
        }
        if let Some(input) = input.as_ref().filter(|_| way.is_shared()) {
            // A kernel that allows less reads sooner.
            let _ = rustix::pipe::fcntl_setpipe_size(input, ANSWERS_BYTES);
        }
        Ok(RemoteStart {
            host,
            target: hosts.first().map(|host| way.target(host)).unwrap_or_default(),
            tool,
            child,
            input,
            output,
            errors,
            line: Vec::new(),
            complaints: Vec::new(),
            greeting: VecDeque::new(),
            skipped: 0,
            has_run: false,
            deadline: Instant::now() + START_TIME,
            awaited: hosts.len(),
            progress: VecDeque::new(),
        })
    }

    /// The daemons that have yet to introduce themselves.
    const fn is_awaited(&self) -> bool {
        self.awaited > 0
    }

    /// The standard output, until it ends or is taken.
    pub fn output(&self) -> Option<BorrowedFd<'_>> {
        self.output.as_ref().map(AsFd::as_fd)
    }

    /// The standard error, until it ends.
    pub fn errors(&self) -> Option<BorrowedFd<'_>> {
        self.errors.as_ref().map(AsFd::as_fd)
    }

    /// Whether the remote shell runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// When the start counts as failed; `None` if every daemon has introduced itself.
    pub fn deadline(&self) -> Option<Instant> {
        self.is_awaited().then_some(self.deadline)
    }

    /// The next progress.
    pub fn take_progress(&mut self) -> Option<StartProgress> {
        self.progress.pop_front()
    }

    /// Reads from the standard output, which is ready. The descriptor is closed at its end, so the loop must have
    /// stopped watching it if it is returned.
    pub fn read_output(&mut self) -> Option<OwnedFd> {
        let output = self.output.as_ref().filter(|_| self.is_awaited())?;
        let mut bytes = [0; 4096];
        match rustix::io::read(output, &mut bytes) {
            Err(Errno::INTR | Errno::AGAIN) => None,
            Ok(count @ 1..) => {
                self.take_bytes(&bytes[..count]);
                None
            }
            Ok(0) | Err(_) => {
                let ended = self.output.take();
                self.fail();
                ended
            }
        }
    }

    /// Reads from the standard error, which is ready. The descriptor is returned at its end; the loop must stop
    /// watching it before it is dropped.
    pub fn read_errors(&mut self) -> Option<OwnedFd> {
        let errors = self.errors.as_ref()?;
        let mut bytes = [0; 4096];
        match rustix::io::read(errors, &mut bytes) {
            Err(Errno::INTR | Errno::AGAIN) => None,
            Ok(count @ 1..) => {
                let room = KEPT_BYTES_MAX.saturating_sub(self.complaints.len());
                self.complaints.extend_from_slice(&bytes[..count.min(room)]);
                None
            }
            Ok(0) | Err(_) => self.errors.take(),
        }
    }

    /// Whole lines that the remote side has written to its standard error since its daemon has started.
    pub fn take_complaints(&mut self) -> Option<String> {
        let end = self.complaints.iter().rposition(|&byte| byte == b'\n')? + 1;
        let lines: Vec<u8> = self.complaints.drain(..end).collect();
        Some(String::from_utf8_lossy(&lines).into_owned())
    }

    /// Fails the start if its time has passed.
    pub fn look_at_clock(&mut self, now: Instant) {
        if self.deadline().is_some_and(|deadline| now >= deadline) {
            let _ = self.child.kill();
            self.fail_with(&format!(
                "no daemon has introduced itself within {} s",
                START_TIME.as_secs()
            ));
        }
    }

    /// Writes the answer to a daemon. All answers are shorter than the pipe, so this does not wait.
    ///
    /// # Errors
    /// The kernel's error: the daemon has ended.
    pub fn answer(&self, line: &str) -> io::Result<()> {
        let input = self.input.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut bytes = line.as_bytes();
        while !bytes.is_empty() {
            match rustix::io::write(input, bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// Takes the daemon's standard output and standard input, for a trunk.
    pub fn take_streams(&mut self) -> Option<(OwnedFd, OwnedFd)> {
        Some((self.output.take()?, self.input.take()?))
    }

    fn take_bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            match byte {
                _ if !self.is_awaited() => return,
                b'\n' => self.take_line(),
                _ if self.line.len() < KEPT_BYTES_MAX => self.line.push(byte),
                _ => {}
            }
        }
    }

    fn take_line(&mut self) {
        let line = String::from_utf8_lossy(&std::mem::take(&mut self.line)).trim_end().to_owned();
        // A greeting may stand in front of it.
        if let Some(at) = line.find(INTRODUCTION) {
            self.awaited = self.awaited.saturating_sub(1);
            if self.awaited == 0 {
                // What was said on the way to a good start concerns nobody.
                drop(self.read_errors());
                self.complaints.clear();
            }
            self.progress.push_back(StartProgress::Introduced(line[at..].to_owned()));
        } else if let Some(name) = line.strip_suffix(MISSING) {
            self.awaited = 0;
            let name = name.split_whitespace().last().unwrap_or(&self.host);
            self.progress.push_back(StartProgress::Failed(format!(
                "host {name}: there is no landeckd, neither where it is on this host nor in PATH. Install Landeck \
                 there, or name its folder with --remote-prefix"
            )));
        } else if line.ends_with(RUN) {
            self.has_run = true;
        } else {
            self.greet(line);
        }
    }

    /// Takes a line that is none of ours: a greeting, or the reason why nothing starts.
    fn greet(&mut self, line: String) {
        self.skipped += line.len() + 1;
        if self.greeting.back() != Some(&line) {
            self.greeting.push_back(line);
        }
        if self.greeting.len() > REPEATED_LINES {
            self.greeting.pop_front();
        }
        if self.skipped > GREETING_BYTES_MAX {
            let what = format!(
                "its shell has written more than {} MiB before the daemon starts",
                GREETING_BYTES_MAX >> 20
            );
            self.fail_with(&what);
        }
    }

    /// Fails the start: the remote shell has ended without an introduction.
    fn fail(&mut self) {
        if !self.is_awaited() {
            return;
        }
        if let Some(errors) = &self.errors {
            // What it has said is there, as it has ended or is about to.
            let _ = rustix::io::ioctl_fionbio(errors, false);
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = rustix::io::read(errors, &mut bytes) {
                let room = KEPT_BYTES_MAX.saturating_sub(self.complaints.len());
                self.complaints.extend_from_slice(&bytes[..count.min(room)]);
            }
            let _ = rustix::io::ioctl_fionbio(errors, true);
        }
        let (what, code) = match self.child.wait() {
            Ok(status) => match (status.signal(), status.code()) {
                (Some(signal), _) => (format!("{} was killed by signal {signal}", self.tool), None),
                (None, code) => {
                    (format!("{} ended with exit code {}", self.tool, code.unwrap_or(1)), code)
                }
            },
            Err(error) => (error.to_string(), None),
        };
        let line = String::from_utf8_lossy(&std::mem::take(&mut self.line)).trim_end().to_owned();
        if !line.is_empty() {
            self.greet(line);
        }
        let is_busy = String::from_utf8_lossy(&self.complaints).contains(TOO_MANY_STARTING);
        let is_silent = !self.has_run && code.is_some_and(|code| code != SSH_FAILED);
        let text = self.failure(&what, is_silent.then(|| not_run(&self.tool, &self.target)));
        self.progress.push_back(match is_busy {
            true => StartProgress::Busy(text),
            false => StartProgress::Failed(text),
        });
    }

    fn fail_with(&mut self, what: &str) {
        let text = self.failure(what, None);
        self.progress.push_back(StartProgress::Failed(text));
    }

    /// Ends the wait for daemons. Returns the message, with what was said, and the usual cure where that has none.
    fn failure(&mut self, what: &str, usual: Option<String>) -> String {
        self.awaited = 0;
        // The text has them, so nobody else says them again.
        let complaints = std::mem::take(&mut self.complaints);
        let greeting = std::mem::take(&mut self.greeting);
        let complaints = String::from_utf8_lossy(&complaints);
        let complaints = last_lines(&complaints).into_iter().map(str::to_owned);
        let said: Vec<String> = complaints.chain(greeting).collect();
        let said = said.join("\n");
        failure_text(&self.host, &self.target, what, &said, usual)
    }
}

impl Drop for RemoteStart {
    fn drop(&mut self) {
        // It is our own child, not reaped yet, or both calls do nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Names of hosts in one text.
fn listed(hosts: &[&str]) -> String {
    match hosts.get(NAMED_MAX..) {
        None | Some([]) => hosts.join(", "),
        Some(more) => format!("{} and {} more", hosts[..NAMED_MAX].join(", "), more.len()),
    }
}

/// The message about a start that failed: what the remote shell has said, and the cure for that, else the usual one.
pub fn failure_text(
    host: &str,
    target: &str,
    what: &str,
    said: &str,
    usual: Option<String>,
) -> String {
    let cure = cure(target, said).or(usual);
    let head = format!("host {host}: {what}");
    let lines = said.lines().filter(|line| !line.trim().is_empty()).map(|line| line.trim_end());
    let lines = lines.map(str::to_owned).chain(cure).map(|line| format!("\n  {line}"));
    std::iter::once(head).chain(lines).collect()
}

/// The last lines of a text that are not blank, as many as a message repeats.
pub fn last_lines(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(REPEATED_LINES)..].to_vec()
}

/// The cure where a remote shell has come in, and the host has not run our line.
pub fn not_run(tool: &str, target: &str) -> String {
    format!(
        "The command was not run there: a profile, a forced command or the login shell has ended first. Try: {tool} \
         {target} true"
    )
}

/// The cure for what a remote shell has said.
fn cure(host: &str, said: &str) -> Option<String> {
    let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
    if says(&["Host key verification failed", "REMOTE HOST IDENTIFICATION HAS CHANGED"]) {
        return Some(format!("Connect once by hand to check its key: ssh {host}"));
    }
    if says(&["Permission denied", "password", "Too many authentication failures"]) {
        return Some(format!("Let ssh log in without a password: ssh-copy-id {host}"));
    }
    if says(&["Could not resolve hostname", "Name or service not known", "No such host"]) {
        return Some(format!("Is \"{host}\" the right name? Try: getent hosts {host}"));
    }
    if says(&["Connection refused", "Connection timed out", "No route to host", "timed out"]) {
        return Some(format!("Is it up, and does it run an ssh server? Try: ssh {host}"));
    }
    None
}

/// The path of the daemon: beside the running program, in libexec of its installation, or in PATH.
pub fn find_daemon() -> Option<PathBuf> {
    // Without /proc nobody knows where this program is.
    let own = std::env::current_exe().ok();
    let folder = own.as_deref().and_then(Path::parent);
    let beside = folder.map(|folder| folder.join("landeckd"));
    let libexec = folder.and_then(Path::parent).map(|prefix| prefix.join("libexec/landeckd"));
    let search = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&search).map(|folder| folder.join("landeckd"));
    let is_program = |path: &PathBuf| is_executable(path);
    [beside, libexec].into_iter().flatten().chain(in_path).find(is_program)
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

/// Quotes a word for a shell.
pub fn quoted(word: &[u8]) -> String {
    format!("'{}'", String::from_utf8_lossy(word).replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_testing::Watchdog;
    use rustix::event::{PollFd, PollFlags, poll};

    fn way(tool: StartTool) -> StartWay {
        StartWay {
            tool,
            daemon: "/opt/it's/landeckd".into(),
            prefix: Some("/srv/l".into()),
            arguments: vec!["--network".to_owned(), "fd00::/8".to_owned()],
            logins: [("n7", "ada")].map(|(host, login)| (host.into(), login.into())).into(),
        }
    }

    fn rsh(words: &str) -> StartTool {
        StartTool::Rsh(words.split(' ').map(String::from).collect())
    }

    fn words(command: &Command) -> Vec<String> {
        command.get_args().map(|word| word.to_string_lossy().into_owned()).collect()
    }

    /// Starts a "daemon" by a remote shell that is a script, and returns what came of it.
    fn outcome(script: &str) -> (RemoteStart, StartProgress) {
        let _watchdog = Watchdog::start(Duration::from_secs(60));
        let rsh = StartTool::Rsh(["sh", "-c", script].map(str::to_owned).to_vec());
        let mut start = RemoteStart::begin(&way(rsh), &["n2"]).unwrap();
        loop {
            if let Some(progress) = start.take_progress() {
                return (start, progress);
            }
            if let Some(output) = start.output() {
                poll(&mut [PollFd::new(&output, PollFlags::IN)], None).unwrap();
            }
            drop(start.read_output());
        }
    }

    #[test]
    fn each_tool_is_called_as_it_wants() {
        let (_, ssh) = way(StartTool::Ssh).command(&["n1"]);
        let args = words(&ssh);
        assert!(args.contains(&"BatchMode=yes".to_owned()) && args.contains(&"n1".to_owned()));
        assert!(args.last().unwrap().starts_with("sh -c "), "{args:?}");
        let (name, other) = way(rsh("my-rsh -q")).command(&["n1"]);
        assert_eq!(
            (name.as_str(), &words(&other)[..2]),
            ("my-rsh", &["-q", "n1"].map(String::from)[..])
        );
        for tool in [StartTool::Ssh, rsh("my-rsh -q")] {
            let (_, with_login) = way(tool).command(&["n7"]);
            assert!(words(&with_login).contains(&"ada@n7".to_owned()), "{with_login:?}");
        }
        let (_, srun) = way(StartTool::Srun).command(&["n1", "n2"]);
        let args = words(&srun);
        assert!(args.starts_with(&["-N", "2", "-n", "2"].map(String::from)), "{args:?}");
        assert!(args.contains(&"n1,n2".to_owned()) && args.contains(&"--overlap".to_owned()));
        assert!(args.last().unwrap().contains("--shared --name \"$SLURMD_NODENAME\""), "{args:?}");
    }

    #[test]
    fn one_command_starts_several_daemons() {
        let mut tool = way(rsh("sh -c"));
        let script =
            "echo 'landeckd 1 one'; echo 'landeckd 1 other'; read a; read b; echo $b$a >&2";
        tool.tool = StartTool::Rsh(vec!["sh".into(), "-c".into(), script.into()]);
        let mut start = RemoteStart::begin(&tool, &["n1", "n2"]).unwrap();
        let mut introduced = 0;
        while introduced < 2 {
            if let Some(progress) = start.take_progress() {
                assert!(matches!(progress, StartProgress::Introduced(_)), "{progress:?}");
                introduced += 1;
                continue;
            }
            assert!(start.deadline().is_some());
            poll(&mut [PollFd::new(&start.output().unwrap(), PollFlags::IN)], None).unwrap();
            assert!(start.read_output().is_none());
        }
        assert_eq!(start.deadline(), None);
        start.answer("well \nmet\n").unwrap();
        while start.complaints.is_empty() {
            poll(&mut [PollFd::new(&start.errors().unwrap(), PollFlags::IN)], None).unwrap();
            drop(start.read_errors());
        }
        assert_eq!(start.take_complaints().unwrap(), "metwell\n");
    }

    #[test]
    fn a_remote_shell_finds_the_daemon() {
        let script = "[ $0 = n2 ] && [ $# = 1 ] && eval \"$1\"";
        let (_, progress) = outcome(script);
        let StartProgress::Failed(text) = progress else { panic!("{progress:?}") };
        assert!(text.contains("host n2: there is no landeckd"), "{text}");
    }

    #[test]
    fn an_introduction_may_follow_a_greeting() {
        let script = "echo Welcome; echo 'landeckd 1 key 0.1'; read answer; echo \"$answer\"";
        let (mut start, progress) = outcome(script);
        assert_eq!(progress, StartProgress::Introduced("landeckd 1 key 0.1".to_owned()));
        assert_eq!(start.deadline(), None);
        start.answer("well met\n").unwrap();
        let (output, _input) = start.take_streams().unwrap();
        poll(&mut [PollFd::new(&output, PollFlags::IN)], None).unwrap();
        let mut bytes = [0; 64];
        assert_eq!(rustix::io::read(&output, &mut bytes), Ok(9));
    }

    #[test]
    fn a_command_that_ends_before_our_line_is_shown_with_its_cure() {
        let failed = |script: &str| match outcome(script).1 {
            StartProgress::Failed(text) => text,
            other => panic!("{other:?}"),
        };
        let text = failed("echo; echo 'This account is currently not available.'; exit 1");
        let wanted = "host n2: sh ended with exit code 1\n  This account is currently not available.\n  The command \
                      was not run there";
        assert!(text.starts_with(wanted) && text.ends_with("Try: sh n2 true"), "{text}");
        let text = failed("printf 'forced command'; exit 0");
        assert!(text.contains("exit code 0\n  forced command\n  The command was not"), "{text}");
        // Our line has run, and its daemon ends.
        let text = failed("echo 'landeckd is started'; echo dying >&2; exit 3");
        assert!(text.ends_with("exit code 3\n  dying"), "{text}");
    }

    #[test]
    fn a_long_greeting_is_read_and_an_endless_one_told_once() {
        let script = "seq 30000; echo 'landeckd 1 key 0.1'; read answer";
        assert!(matches!(outcome(script).1, StartProgress::Introduced(_)));
        let (mut start, progress) = outcome("yes welcome");
        let StartProgress::Failed(text) = progress else { panic!("{progress:?}") };
        assert!(text.contains("more than 1 MiB") && text.ends_with("\n  welcome"), "{text}");
        assert_eq!(start.take_progress(), None);
        assert_eq!(text.lines().count(), 2, "{text}");
    }

    #[test]
    fn a_server_with_too_many_starting_sessions_is_busy() {
        let words = "kex_exchange_identification: Connection closed by remote host";
        let (_, progress) = outcome(&format!("echo '{words}' >&2; exit 255"));
        let StartProgress::Busy(text) = progress else { panic!("{progress:?}") };
        assert!(text.contains(words), "{text}");
    }

    #[test]
    fn a_refusal_is_told_with_its_cure() {
        let script = "echo 'ada@n2: Permission denied (publickey,password).' >&2; exit 255";
        let (_, progress) = outcome(script);
        let StartProgress::Failed(text) = progress else { panic!("{progress:?}") };
        assert!(text.starts_with("host n2: sh ended with exit code 255\n"), "{text}");
        assert!(text.contains("  ada@n2: Permission denied"), "{text}");
        assert!(text.ends_with("ssh-copy-id n2"), "{text}");
    }

    #[test]
    fn a_silent_host_fails_in_the_end() {
        let tool = rsh("sh -c read");
        let mut start = RemoteStart::begin(&way(tool), &["n2"]).unwrap();
        start.look_at_clock(Instant::now());
        assert_eq!(start.take_progress(), None);
        start.look_at_clock(Instant::now() + START_TIME);
        let Some(StartProgress::Failed(text)) = start.take_progress() else {
            panic!("it has not failed")
        };
        assert!(text.contains("within 30 s"), "{text}");
    }

    #[test]
    fn a_missing_remote_shell_is_named() {
        let tool = rsh("no-such-rsh");
        let text = RemoteStart::begin(&way(tool), &["n2"]).unwrap_err();
        assert!(text.contains("no program \"no-such-rsh\"") && text.contains("--rsh"), "{text}");
    }

    #[test]
    fn complaints_have_cures() {
        let has = |said: &str, wanted: &str| cure("n2", said).unwrap().contains(wanted);
        assert!(has("Host key verification failed.", "ssh n2"));
        assert!(has("ssh: Could not resolve hostname n2", "getent"));
        assert!(has("ssh: connect to host n2 port 22: Connection refused", "ssh server"));
        assert_eq!(cure("n2", "bash: syntax error"), None);
    }
}
